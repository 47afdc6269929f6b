//! What an endpoint does, as it says in its memory for those who look from outside.
//!
//! - **Status rule.** The owner alone writes, and each word stands for itself: who reads may find words that are newer
//!   than others, and takes them for no more than a picture.

use perusal::internals::sync::{AtomicU64, Ordering};

/// Receives, messages and sends that are named, each; of more only the count is there.
pub const NAMED: usize = 8;
/// Words of a receive, of a message, of a send.
const RECEIVE: usize = 4;
const MESSAGE: usize = 4;
const SEND: usize = 2;
const COUNTS: usize = 11;
const WORDS: usize = COUNTS + NAMED * (RECEIVE + MESSAGE + SEND);

/// The words in an endpoint's memory.
#[derive(Debug)]
#[repr(C, align(128))]
pub struct StatusWords([AtomicU64; WORDS]);

impl Default for StatusWords {
    fn default() -> Self {
        Self(std::array::from_fn(|_| AtomicU64::default()))
    }
}

/// A receive that no message has come for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PostedReceive {
    /// The process that it waits for; `None`: any.
    pub from: Option<u32>,
    /// The tag, and the bits of it to ignore, of a receive that has one.
    pub tag: Option<(u64, u64)>,
}

/// A message that no receive has taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KeptMessage {
    /// The process that has sent it.
    pub from: u32,
    /// Its tag, if it has one.
    pub tag: Option<u64>,
    /// Its bytes.
    pub len: u64,
}

/// A send whose bytes the peer has not taken, or has not confirmed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OpenSend {
    /// The process that it is for.
    pub to: u32,
    /// Its bytes.
    pub len: u64,
}

/// What an endpoint does.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Status {
    /// Its process.
    pub process: u32,
    /// The descriptor of its memory there.
    pub descriptor: u32,
    /// When it has said all this, in nanoseconds of the monotonic clock; 0: it was hardly polled yet.
    pub said: u64,
    /// When it has noticed for the last time that records had come or gone.
    pub moved: u64,
    /// Records that it has taken.
    pub taken: u64,
    /// Records that it has sent.
    pub sent: u64,
    /// Receives that no message has come for.
    pub receives: u64,
    /// Messages that no receive has taken.
    pub kept: u64,
    /// Sends and accesses under way.
    pub sends: u64,
    /// Messages on their way into a buffer.
    pub arriving: u64,
    /// Peers that records wait for room to.
    pub full: u64,
    /// The oldest receives, [`NAMED`] at most.
    pub first_receives: Vec<PostedReceive>,
    /// The oldest messages, those with tags first.
    pub first_kept: Vec<KeptMessage>,
    /// Some of the sends.
    pub first_sends: Vec<OpenSend>,
}

impl StatusWords {
    /// Says what the owner does.
    pub fn write(&self, status: &Status) {
        let counts = [
            u64::from(status.process),
            u64::from(status.descriptor),
            status.said,
            status.moved,
            status.taken,
            status.sent,
            status.receives,
            status.kept,
            status.sends,
            status.arriving,
            status.full,
        ];
        let receive = |one: &PostedReceive| {
            let (tag, ignore) = one.tag.unwrap_or_default();
            [u64::from(one.from.unwrap_or(0)), u64::from(one.tag.is_some()), tag, ignore]
        };
        let message = |one: &KeptMessage| {
            [u64::from(one.from), u64::from(one.tag.is_some()), one.tag.unwrap_or_default(), one.len]
        };
        let send = |one: &OpenSend| [u64::from(one.to), one.len];
        let receives = named(status.first_receives.iter().map(receive));
        let kept = named(status.first_kept.iter().map(message));
        let sends = named(status.first_sends.iter().map(send));
        let all = counts.into_iter().chain(receives).chain(kept).chain(sends);
        // Relaxed: status rule.
        self.0.iter().zip(all).for_each(|(word, value)| word.store(value, Ordering::Relaxed));
    }

    /// What the owner has said.
    pub fn read(&self) -> Status {
        // Relaxed: status rule.
        let words: Vec<u64> = self.0.iter().map(|word| word.load(Ordering::Relaxed)).collect();
        let (counts, rest) = words.split_at(COUNTS);
        let (receives, rest) = rest.split_at(NAMED * RECEIVE);
        let (kept, sends) = rest.split_at(NAMED * MESSAGE);
        let named_of = |count: u64| usize::try_from(count).unwrap_or(NAMED).min(NAMED);
        let receive = |one: &[u64]| PostedReceive {
            from: (one[0] != 0).then_some(one[0] as u32),
            tag: (one[1] != 0).then_some((one[2], one[3])),
        };
        let message = |one: &[u64]| KeptMessage {
            from: one[0] as u32,
            tag: (one[1] != 0).then_some(one[2]),
            len: one[3],
        };
        let send = |one: &[u64]| OpenSend { to: one[0] as u32, len: one[1] };
        Status {
            process: counts[0] as u32,
            descriptor: counts[1] as u32,
            said: counts[2],
            moved: counts[3],
            taken: counts[4],
            sent: counts[5],
            receives: counts[6],
            kept: counts[7],
            sends: counts[8],
            arriving: counts[9],
            full: counts[10],
            first_receives: receives.chunks_exact(RECEIVE).take(named_of(counts[6])).map(receive).collect(),
            first_kept: kept.chunks_exact(MESSAGE).take(named_of(counts[7])).map(message).collect(),
            first_sends: sends.chunks_exact(SEND).take(named_of(counts[8])).map(send).collect(),
        }
    }
}

/// The words of [`NAMED`] entries; of those that are missing, zeros.
fn named<const N: usize>(entries: impl Iterator<Item = [u64; N]>) -> impl Iterator<Item = u64> {
    entries.chain(std::iter::repeat([0; N])).take(NAMED).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_said_is_read() {
        let words = StatusWords::default();
        assert_eq!(words.read(), Status::default());
        let receive = |from, tag| PostedReceive { from, tag };
        let mut status = Status {
            process: 1,
            descriptor: 2,
            said: 3,
            moved: 4,
            taken: 5,
            sent: 6,
            receives: 3,
            kept: 1,
            sends: 20,
            arriving: 7,
            full: 8,
            first_receives: vec![
                receive(None, None),
                receive(Some(9), Some((u64::MAX, 3))),
                receive(None, Some((0, 0))),
            ],
            first_kept: vec![KeptMessage { from: 9, tag: Some(1 << 63), len: 40 }],
            first_sends: (0..NAMED as u32).map(|to| OpenSend { to, len: 1 << 40 }).collect(),
        };
        words.write(&status);
        assert_eq!(words.read(), status);
        (status.receives, status.first_receives) = (0, Vec::new());
        words.write(&status);
        assert_eq!(words.read(), status, "what has ended is not read");
    }
}
