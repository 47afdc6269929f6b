//! What a record means: envelope, eager payload, handshake for large messages, the copy engines.
//!
//! | kind | from → to | `id` names a request of | payload |
//! |---|---|---|---|
//! | `Eager` | sender → receiver | the sender (for cancelling) | the message |
//! | `EagerSync` | sender → receiver | the sender | the message; wants `Ack` |
//! | `Announce` | sender → receiver | the sender | size, address or 0, place in the shared heap or 0 |
//! | `Ack` | receiver → sender | the sender | – |
//! | `Clear` | receiver → sender | the sender | the receiver's request |
//! | `Chunk` | sender → receiver | the receiver | a piece of the message, in order |
//! | `Halves` | receiver → sender | the sender | the receiver's request, address, where the second half begins, end |
//! | `HalfDone` | sender → receiver | the receiver | 1, or 0 if the sender could not |
//! | `Finish` | receiver → sender | the sender | how it was copied |
//! | `Cancel` | sender → receiver | the sender | – |
//! | `Train` | sender → receiver | the sender (for cancelling) | the size of a message whose pieces are the very next records |
//! | `Piece` | sender → receiver | – | a piece of that message, in order |
//! | `CancelReply` | receiver → sender | the sender | 1 if the message was still unmatched |
//! | `Fill` | receiver → sender | the sender | the receiver's request, place of its buffer, size, turn of the shared copy or 0 for all by the sender |
//! | `Filled` | sender → receiver | the receiver | bytes that the sender has copied there |
//!
//! Everything a peer wrote is checked once, in `Kind::of` and `Control::read` and where a request id is looked up.

/// Kinds of record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Kind {
    Eager = 1,
    EagerSync,
    Announce,
    Ack,
    Clear,
    Chunk,
    Halves,
    HalfDone,
    Finish,
    Cancel,
    CancelReply,
    Train,
    Piece,
    Fill,
    Filled,
}

impl Kind {
    /// The kind with that number.
    #[inline(always)]
    pub fn of(number: u8) -> Option<Self> {
        Some(match number {
            1 => Self::Eager,
            2 => Self::EagerSync,
            3 => Self::Announce,
            4 => Self::Ack,
            5 => Self::Clear,
            6 => Self::Chunk,
            7 => Self::Halves,
            8 => Self::HalfDone,
            9 => Self::Finish,
            10 => Self::Cancel,
            11 => Self::CancelReply,
            12 => Self::Train,
            13 => Self::Piece,
            14 => Self::Fill,
            15 => Self::Filled,
            _ => return None,
        })
    }
}

/// The words of a control record.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Control(pub [u64; 4]);

impl Control {
    /// Bytes on the wire.
    pub const BYTES: usize = 32;

    /// Puts the words into a record's payload.
    #[inline]
    pub fn write(&self, to: &mut [u8]) {
        for (word, bytes) in self.0.iter().zip(to.chunks_exact_mut(8)) {
            bytes.copy_from_slice(&word.to_le_bytes());
        }
    }

    /// The words of a record's payload; missing ones are zero.
    #[inline]
    pub fn read(from: &[u8]) -> Self {
        let mut words = [0; 4];
        for (word, bytes) in words.iter_mut().zip(from.chunks_exact(8)) {
            *word = u64::from_le_bytes(bytes.try_into().expect("chunks of eight"));
        }
        Self(words)
    }
}

const _: () = assert!(Control::BYTES <= crate::ring::INLINE);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_words_survive_the_wire() {
        let mut bytes = [0; Control::BYTES];
        let control = Control([1, u64::MAX, 3, 1 << 63]);
        control.write(&mut bytes);
        assert_eq!(Control::read(&bytes), control);
        assert_eq!(Control::read(&bytes[..15]), Control([1, 0, 0, 0]));
    }

    #[test]
    fn kinds_are_what_they_say_and_nothing_else() {
        for number in 0..=u8::MAX {
            assert_eq!(Kind::of(number).map(|kind| kind as u8), (1..=15).contains(&number).then_some(number));
        }
    }
}
