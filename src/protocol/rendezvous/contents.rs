//! Whether what a program sends from a buffer has changed since it last sent that buffer.
//!
//! A program that has stored into a buffer has its lines in its own CPU's cache, and most likely the receiver looks at
//! what it gets. Such a message mostly takes less time through the ring than by the kernel, and one that nobody stores
//! or looks at more ([`crate::engine::CopyRates`]). So the two kinds are judged apart.

use crate::engine::Contents;
use crate::sync::{AtomicU64, Ordering};

/// Buffers that are remembered; each one is forgotten when another takes its place.
const BUFFERS: usize = 256;
/// Words of a message that are looked at: the first, the last, and as many between at equal distances.
const WORDS: usize = 8;
const WORD: usize = size_of::<u64>();

/// What the buffers held that this rank has sent last.
#[derive(Debug)]
pub(super) struct SentContents {
    buffers: Box<[SentBuffer; BUFFERS]>,
}

/// One buffer. Relaxed throughout: of two threads that send at once one may find what the other has half written, and
/// then says the wrong thing of its message, which costs time and nothing else.
#[derive(Debug)]
struct SentBuffer {
    /// Its address and length, mixed; 0: none.
    name: AtomicU64,
    /// Some of its words, mixed.
    words: AtomicU64,
}

impl Default for SentContents {
    fn default() -> Self {
        let none = |_| SentBuffer { name: AtomicU64::new(0), words: AtomicU64::new(0) };
        Self { buffers: Box::new(core::array::from_fn(none)) }
    }
}

impl SentContents {
    /// The name of the buffer of `bytes` bytes at `addr`, and where it is remembered.
    fn buffer(&self, addr: *const u8, bytes: usize) -> (u64, &SentBuffer) {
        let name = mix(addr as u64, bytes as u64).max(1);
        (name, &self.buffers[name as usize % BUFFERS])
    }

    /// Notes that a message is received into the `bytes` bytes at `addr`: if they are sent again they have changed, and
    /// lie in this rank's cache, as after stores of the program, even if they are what they were.
    pub fn overwrite(&self, addr: *const u8, bytes: usize) {
        let (name, buffer) = self.buffer(addr, bytes);
        if buffer.name.load(Ordering::Relaxed) == name {
            buffer.words.fetch_xor(1, Ordering::Relaxed);
        }
    }

    /// Notes that the `bytes` bytes at `addr` are sent. What is known of them: as far as a few of their words tell.
    ///
    /// # Safety
    ///
    /// The bytes may be read.
    pub unsafe fn note(&self, addr: *const u8, bytes: usize) -> Contents {
        if bytes < WORDS * WORD {
            return Contents::Unknown;
        }
        let word = |at: usize| {
            // SAFETY: the word lies within the bytes, which the caller promises; volatile, because they are the
            // program's, which may never have stored there.
            unsafe { addr.add(at * (bytes - WORD) / (WORDS - 1)).cast::<[u8; WORD]>().read_volatile() }
        };
        let words = (0..WORDS).fold(0, |mixed, at| mix(mixed, u64::from_ne_bytes(word(at))));
        let (name, buffer) = self.buffer(addr, bytes);
        let is_known = buffer.name.swap(name, Ordering::Relaxed) == name;
        let was = buffer.words.swap(words, Ordering::Relaxed);
        match is_known {
            false => Contents::Unknown,
            true if was == words => Contents::Same,
            true => Contents::Changed,
        }
    }
}

/// Both in one word, of which each bit depends on many bits of them.
fn mix(first: u64, second: u64) -> u64 {
    // An odd number whose bits look random: the golden ratio's.
    let product = u128::from(first.rotate_left(23) ^ second) * 0x9e37_79b9_7f4a_7c15;
    (product >> 64) as u64 ^ product as u64
}

#[cfg(all(test, not(perusal_loom)))]
mod tests {
    use super::*;
    use Contents::{Changed, Same, Unknown};

    fn note(sent: &SentContents, data: &[u8]) -> Contents {
        // SAFETY: the bytes are a slice's.
        unsafe { sent.note(data.as_ptr(), data.len()) }
    }

    #[test]
    fn a_buffer_has_changed_if_it_was_sent_before_with_other_bytes() {
        let sent = SentContents::default();
        let mut data = vec![0; 100_000];
        assert_eq!([note(&sent, &data), note(&sent, &data)], [Unknown, Same]);
        for byte in 1..=3 {
            data.fill(byte);
            assert_eq!([note(&sent, &data), note(&sent, &data)], [Changed, Same]);
        }
        *data.last_mut().expect("it has bytes") = 9;
        assert_eq!(note(&sent, &data), Changed);
        assert_eq!(note(&sent, &data[1..]), Unknown, "another buffer");
        assert_eq!(note(&sent, &data[..99_999]), Unknown);
        assert_eq!([note(&sent, &data[..WORD]), note(&sent, &data[..WORD])], [Unknown, Unknown], "too short");
    }

    #[test]
    fn a_buffer_has_changed_if_a_message_has_come_there_meanwhile() {
        let sent = SentContents::default();
        let data = vec![7; 100_000];
        assert_eq!([note(&sent, &data), note(&sent, &data)], [Unknown, Same]);
        sent.overwrite(data.as_ptr(), data.len());
        assert_eq!([note(&sent, &data), note(&sent, &data)], [Changed, Same]);
        sent.overwrite(data.as_ptr(), data.len() - 1);
        assert_eq!(note(&sent, &data), Same, "another buffer");
    }

    #[test]
    fn many_buffers_are_told_apart() {
        let sent = SentContents::default();
        let mut data = vec![vec![0; 4096]; 16];
        for byte in 0..10 {
            let changed = data.iter().filter(|data| note(&sent, data) == Changed).count();
            // Two of them may want one place.
            assert!(if byte == 0 { changed == 0 } else { changed >= 8 }, "{changed} of 16");
            data.iter_mut().for_each(|data| data.fill(byte + 1));
        }
    }
}
