//! Any sequence of operations on both queues beside the oracle: every answer must be the same.
//!
//! Each operation is two bytes of input, what to do and the key, so that libFuzzer's mutations stay meaningful;
//! a repeat count gets it into the deep form with few of them.
#![no_main]

use libfuzzer_sys::fuzz_target;
use perusal::matching::oracle::NaiveQueue;
use perusal::matching::{Envelope, Pattern, PostedQueue, MatchPattern, Ticket, UnexpectedQueue};

/// Five tags, the library's own among them, and eight sources.
fn envelope(byte: u8) -> Envelope {
    const TAGS: [i32; 8] = [0, 1, 2, i32::MAX, -1, i32::MIN, 3, 4];
    Envelope { source: u32::from(byte >> 3 & 7), tag: TAGS[usize::from(byte & 7)] }
}

/// The two highest bits open the source and the tag.
fn pattern(byte: u8) -> Pattern {
    let Envelope { source, tag } = envelope(byte & 0x3F);
    Pattern { source: (byte & 0x40 == 0).then_some(source), tag: (byte & 0x80 == 0).then_some(tag) }
}

/// A queue, its oracle, and what names the entries that were made (`N`), void ones included.
struct Pair<Q, I, N> {
    queue: Q,
    naive: NaiveQueue<I, u32>,
    tickets: Vec<(N, u64)>,
}

type PostedPair = Pair<PostedQueue<u32>, Pattern, (Pattern, u32)>;
type UnexpectedPair = Pair<UnexpectedQueue<u32>, Envelope, Ticket>;

impl<Q: Default, I, N> Default for Pair<Q, I, N> {
    fn default() -> Self {
        Self { queue: Q::default(), naive: NaiveQueue::default(), tickets: Vec::new() }
    }
}

impl<Q, I, N: Copy> Pair<Q, I, N> {
    fn ticket(&self, byte: u8) -> Option<(N, u64)> {
        let at = usize::from(byte).checked_rem(self.tickets.len())?;
        // From the youngest back: those are the likeliest to be still there.
        self.tickets.iter().rev().nth(at).copied()
    }
}

fn on_posted(pair: &mut PostedPair, operation: u8, byte: u8, serial: u32) {
    match operation & 3 {
        0 => {
            pair.queue.insert(pattern(byte), serial);
            pair.tickets.push(((pattern(byte), serial), pair.naive.insert(pattern(byte), serial)));
        }
        1 | 2 => {
            let counted = operation & 3 == 1;
            let queue = &mut pair.queue;
            let found =
                if counted { queue.take(&envelope(byte)) } else { queue.take_uncounted(&envelope(byte)) };
            assert_eq!(found, pair.naive.take_for(&envelope(byte)).map(|(_, value)| value));
        }
        _ => {
            let Some(((pattern, value), name)) = pair.ticket(byte) else { return };
            assert_eq!(pair.queue.remove(&pattern, value), pair.naive.remove(name).is_some());
        }
    }
}

fn on_unexpected(pair: &mut UnexpectedPair, operation: u8, byte: u8, serial: u32) {
    match operation & 3 {
        0 => {
            let ticket = pair.queue.insert(envelope(byte), serial);
            pair.tickets.push((ticket, pair.naive.insert(envelope(byte), serial)));
        }
        1 => {
            let wanted = pattern(byte);
            let peeked = pair.queue.peek(&wanted).map(|(&key, &value)| (key, value));
            let found = pair.queue.take(&wanted);
            assert_eq!(found, peeked);
            assert_eq!(found, pair.naive.take_if(|key, _| wanted.takes(key)));
        }
        2 => {
            let source = envelope(byte).source;
            let wanted = |value: u32| value & 1 == u32::from(byte & 1);
            let found = pair.queue.remove_youngest(source, |_, &value| wanted(value));
            assert_eq!(found, pair.naive.take_youngest(|key, &value| key.source == source && wanted(value)));
        }
        _ => {
            let Some((ticket, name)) = pair.ticket(byte) else { return };
            assert_eq!(pair.queue.remove(ticket), pair.naive.remove(name));
        }
    }
}

fuzz_target!(|bytes: &[u8]| {
    let mut posted = PostedPair::default();
    let mut unexpected = UnexpectedPair::default();
    let mut serial = 0;
    for step in bytes.chunks_exact(2) {
        let (operation, byte) = (step[0], step[1]);
        // Bits 3 to 6 repeat it; the key moves on, so that a repetition is no queue of equals.
        for turn in 0..=(operation >> 3 & 15) {
            serial += 1;
            match operation & 4 {
                0 => on_posted(&mut posted, operation, byte.wrapping_add(turn), serial),
                _ => on_unexpected(&mut unexpected, operation, byte.wrapping_add(turn), serial),
            }
        }
        assert_eq!(posted.queue.len(), posted.naive.len());
        assert_eq!(unexpected.queue.len(), unexpected.naive.len());
    }
    assert!(posted.queue.iter().eq(posted.naive.iter().map(|(_, &value)| value)));
    assert!(unexpected.queue.iter().eq(unexpected.naive.iter()));
});
