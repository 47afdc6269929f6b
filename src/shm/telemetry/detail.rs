//! What a rank that has slept in vain says of its wait besides [`Wait`](super::Wait):
//! for people who ask why a job stands still.

use super::collective::{CollectiveAbout, RootAbout};
use super::counters::Counter;
use crate::events::{AboutKind, CommAbout};
use crate::sync::{Ordering, fence};
use core::fmt;
use num_enum::FromPrimitive;

/// Messages that a detail has room for.
pub const MESSAGES: usize = 4;
/// Collective operations for which requests stand that a detail has room for.
pub const OPERATIONS: usize = 4;
/// Communicators of which a detail can say how many collective calls the rank has made.
pub const COUNTED: usize = 8;
/// Partitions that a detail has room for the numbers of.
pub const PARTITIONS: usize = 4;
/// Ranks of the job that a detail can name as members of a communicator or holders of a lock;
/// of sets with later ranks it names none.
pub const MEMBERS: usize = 1024;

/// Words of the name of an MPI function (the call's, and that of a request), of a communicator, and of a message's
/// communicator, 8 bytes each.
const CALL: usize = 6;
const NAME: usize = 8;
const SHORT_NAME: usize = 4;
/// In a model, which stores no detail, two: so many as show a mixture.
const WORDS: usize = if cfg!(perusal_loom) { 2 } else { ALL_WORDS };
const ALL_WORDS: usize = 2 * CALL
    + NAME
    + 1
    + RANKS
    + 2 * (1 + MESSAGES * (3 + SHORT_NAME))
    + 3
    + 2 * SHORT_NAME
    + OF_COLLECTIVES
    + 2
    + PARTITIONS
    + 2
    + RANKS;
/// Words of a set of ranks.
const RANKS: usize = 1 + MEMBERS / 64;
const OF_COLLECTIVES: usize = 1 + OPERATIONS * (2 + 2 * SHORT_NAME) + 1 + COUNTED * 2;
/// The context id of a message of which it is not known. No communicator has it.
pub const UNKNOWN_CONTEXT: u32 = u32::MAX - 1;

/// A message that is unexpected, or a receive or send that is not over, or not begun.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MessageAbout {
    /// The peer's rank in the job; `None` for any.
    pub peer: Option<u32>,
    /// The tag; `None` for any.
    pub tag: Option<i32>,
    /// The context id.
    pub context: u32,
    /// Bytes: of the message, or of the room for it.
    pub bytes: u64,
    /// Whether it is a send. (An unexpected message is none.)
    pub sends: bool,
    /// Whether it is a persistent request that is not started.
    pub unstarted: bool,
    /// The communicator's name, cut off after 31 bytes.
    pub comm: String,
}

/// A collective operation for which a request of the rank stands, and which is not over.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OperationAbout {
    /// The function that began it, cut off after 31 bytes.
    pub function: String,
    /// Its number among the collective calls on its communicator, from 1; 0 if it is not known.
    pub number: u64,
    /// The context id of its communicator, which is even.
    pub context: u32,
    /// The communicator's name, cut off after 31 bytes.
    pub comm: String,
}

/// How many collective calls a rank has made on a communicator.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CallsMade {
    /// The context id of the communicator, which is even.
    pub context: u32,
    /// The calls, nonblocking ones that are not over among them.
    pub calls: u64,
}

/// The partitions of a partitioned send that have not been marked as ready in this round, or those of a partitioned
/// receive that have not come.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct UnreadyPartitions {
    /// How many there are.
    pub count: u64,
    /// Partitions of the request, those that are ready, or have come, among them.
    pub of: u64,
    /// The numbers of the first ones, from 0; behind those that there are, 0.
    pub first: [u64; PARTITIONS],
}

impl UnreadyPartitions {
    /// Of a request of `of` partitions these, in the order of their numbers.
    #[must_use]
    pub fn new(of: usize, unready: impl Iterator<Item = usize>) -> Self {
        let mut all = Self { of: of as u64, ..Self::default() };
        for partition in unready {
            if let Some(first) = all.first.get_mut(all.count as usize) {
                *first = partition as u64;
            }
            all.count += 1;
        }
        all
    }

    /// Returns the numbers that are known.
    #[must_use]
    pub fn numbers(&self) -> &[u64] {
        &self.first[..self.count.min(PARTITIONS as u64) as usize]
    }
}

impl fmt::Display for UnreadyPartitions {
    /// Writes "partition 3 (of 8)", or "partitions 0, 1, 4, 5 and 2 others (of 8)";
    /// "some partitions" where they are not known.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let numbers = self.numbers();
        let Some((last, others)) = numbers.split_last() else { return f.write_str("some partitions") };
        let list = others.iter().map(|number| format!("{number}, ")).collect::<String>();
        match self.count - numbers.len() as u64 {
            0 if others.is_empty() => write!(f, "partition {last} (of {})", self.of),
            0 => write!(f, "partitions {} and {last} (of {})", list.trim_end_matches(", "), self.of),
            1 => write!(f, "partitions {list}{last} and another one (of {})", self.of),
            more => write!(f, "partitions {list}{last} and {more} others (of {})", self.of),
        }
    }
}

/// The lock of a window for which a rank waits.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LockAbout {
    /// The rank in the job whose memory is locked; `None` if it is not known.
    pub target: Option<u32>,
    /// The ranks in the job that hold it; empty while it is handed over.
    pub holders: Vec<u32>,
    /// Whether they hold it in shared mode.
    pub shared: bool,
}

/// What a rank says of a wait in which it has slept in vain.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WaitDetail {
    /// The MPI function that the program has called; empty where it called none (the Rust API), or its name is unknown.
    pub call: String,
    /// The communicator of the wait.
    pub comm: CommAbout,
    /// The call's arguments, if it is a collective one.
    pub collective: CollectiveAbout,
    /// Messages of the program that have come and that no receive has taken:
    /// those first that are likest to what is awaited.
    pub unexpected: Vec<MessageAbout>,
    /// Receives and sends that the rank has begun and that are not over;
    /// behind them those of persistent requests that are not started.
    pub pending: Vec<MessageAbout>,
    /// Collective operations that the rank has begun and that are not over.
    pub operations: Vec<OperationAbout>,
    /// The collective calls that the rank has made, where it is in none.
    pub made: Vec<CallsMade>,
    /// What the rank itself holds up, if it waits for a partitioned send.
    pub partitions: UnreadyPartitions,
    /// Which lock it is, if it waits for one.
    pub lock: LockAbout,
}

/// A [`WaitDetail`] in shared memory: a sequence lock with one writer, the thread that runs progress. A reader believes
/// nothing: numbers are bounded, and text is made printable.
#[derive(Debug)]
#[repr(C)]
pub struct DetailWords {
    /// The number of the wait that the words are about; 0 while they are written.
    of: Counter,
    words: [Counter; WORDS],
}

impl Default for DetailWords {
    fn default() -> Self {
        Self { of: Counter::default(), words: core::array::from_fn(|_| Counter::default()) }
    }
}

impl DetailWords {
    /// Stores what there is to say of the wait `number`, which is not 0.
    pub fn set(&self, number: u64, detail: &WaitDetail) {
        self.set_words(number, &encode(detail));
    }

    fn set_words(&self, number: u64, words: &[u64]) {
        self.of.set(0);
        // Release: pairs with the Acquire fence in `words_of`: a reader that has seen one of the words below sees that
        // they are written.
        fence(Ordering::Release);
        self.words.iter().zip(words).for_each(|(to, word)| to.set(*word));
        // Release: "wait detail" edge, pairs with Acquire in `words_of`.
        self.of.0.store(number, Ordering::Release);
    }

    /// Says nothing of any wait: what was said of the current one may have changed.
    pub fn forget(&self) {
        self.of.set(0);
    }

    /// Whether it is about the wait `number`, for the rank itself.
    #[must_use]
    pub fn is_of(&self, number: u64) -> bool {
        self.of.get() == number
    }

    /// Returns what is said of the wait `number`, if anything is.
    #[must_use]
    pub fn get(&self, number: u64) -> Option<WaitDetail> {
        self.words_of(number).map(|words| decode(&words))
    }

    fn words_of(&self, number: u64) -> Option<[u64; WORDS]> {
        // Acquire: "wait detail" edge, pairs with Release in `set_words`.
        if number == 0 || self.of.0.load(Ordering::Acquire) != number {
            return None;
        }
        let words = core::array::from_fn(|at| self.words[at].get());
        // Acquire: pairs with the Release fence in `set_words`.
        fence(Ordering::Acquire);
        (self.of.get() == number).then_some(words)
    }

    /// Stores `value` in every word, for models.
    #[cfg(perusal_loom)]
    pub fn fill(&self, number: u64, value: u64) {
        self.set_words(number, &[value; WORDS]);
    }

    /// Returns the words of the wait `number`, for models.
    #[cfg(perusal_loom)]
    pub fn values(&self, number: u64) -> Option<Vec<u64>> {
        self.words_of(number).map(|words| words.to_vec())
    }
}

struct Encoder {
    words: [u64; ALL_WORDS],
    at: usize,
}

impl Encoder {
    fn word(&mut self, word: u64) {
        self.words[self.at] = word;
        self.at += 1;
    }

    /// At most `words` words of `text`, the last byte of which is 0.
    fn text(&mut self, text: &str, words: usize) {
        let mut end = text.len().min(words * 8 - 1);
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        let bytes = &text.as_bytes()[..end];
        for word in 0..words {
            let part = bytes.get(word * 8..).unwrap_or_default();
            let mut eight = [0; 8];
            let len = part.len().min(8);
            eight[..len].copy_from_slice(&part[..len]);
            self.word(u64::from_le_bytes(eight));
        }
    }

    /// How many ranks there are, and a bit for each; none, if there is no room for one of them.
    fn ranks(&mut self, ranks: &[u32]) {
        let known = ranks.iter().all(|rank| (*rank as usize) < MEMBERS);
        self.word(if known { ranks.len() as u64 } else { 0 });
        let mut bits = [0_u64; MEMBERS / 64];
        for rank in ranks.iter().filter(|_| known) {
            bits[*rank as usize / 64] |= 1 << (rank % 64);
        }
        bits.into_iter().for_each(|word| self.word(word));
    }

    fn messages(&mut self, messages: &[MessageAbout]) {
        self.word(messages.len().min(MESSAGES) as u64);
        for at in 0..MESSAGES {
            let message = messages.get(at).cloned().unwrap_or_default();
            self.word(u64::from(message.peer.unwrap_or(u32::MAX)) | u64::from(message.context) << 32);
            let flags = [message.tag.is_none(), message.sends, message.unstarted];
            let flags = flags.into_iter().enumerate().fold(0, |all, (at, flag)| all | u64::from(flag) << at);
            self.word(u64::from(message.tag.unwrap_or(0).cast_unsigned()) | flags << 32);
            self.word(message.bytes);
            self.text(&message.comm, SHORT_NAME);
        }
    }
}

fn encode(detail: &WaitDetail) -> [u64; ALL_WORDS] {
    let mut to = Encoder { words: [0; ALL_WORDS], at: 0 };
    to.text(&detail.call, CALL);
    to.text(&detail.comm.name, NAME);
    to.word(detail.comm.kind as u64);
    to.ranks(&detail.comm.members);
    to.messages(&detail.unexpected);
    to.messages(&detail.pending);
    to.word(detail.collective.number);
    to.word(RootAbout::to_word(detail.collective.root));
    to.word(detail.collective.bytes.unwrap_or(u64::MAX));
    to.text(&detail.collective.data, SHORT_NAME);
    to.text(&detail.collective.op, SHORT_NAME);
    to.text(&detail.collective.function, CALL);
    to.word(detail.operations.len().min(OPERATIONS) as u64);
    for at in 0..OPERATIONS {
        let operation = detail.operations.get(at).cloned().unwrap_or_default();
        to.word(operation.number);
        to.word(u64::from(operation.context));
        to.text(&operation.function, SHORT_NAME);
        to.text(&operation.comm, SHORT_NAME);
    }
    to.word(detail.made.len().min(COUNTED) as u64);
    for at in 0..COUNTED {
        let made = detail.made.get(at).copied().unwrap_or_default();
        to.word(u64::from(made.context));
        to.word(made.calls);
    }
    let UnreadyPartitions { count, of, first } = detail.partitions;
    [count, of].into_iter().chain(first).for_each(|word| to.word(word));
    to.word(detail.lock.target.map_or(0, |target| u64::from(target) + 1));
    to.ranks(&detail.lock.holders);
    to.word(detail.lock.shared.into());
    to.words
}

struct Decoder<'a> {
    words: &'a [u64],
}

impl Decoder<'_> {
    fn word(&mut self) -> u64 {
        let (first, rest) = self.words.split_first().unwrap_or((&0, &[]));
        self.words = rest;
        *first
    }

    fn text(&mut self, words: usize) -> String {
        let bytes: Vec<u8> = (0..words).flat_map(|_| self.word().to_le_bytes()).collect();
        let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
        String::from_utf8_lossy(&bytes[..end])
            .chars()
            .map(|char| if char.is_control() { '?' } else { char })
            .collect()
    }

    /// A list that has room for `room`, the length of which comes first.
    fn list<T>(&mut self, room: usize, one: fn(&mut Self) -> T) -> Vec<T> {
        let count = self.word().min(room as u64) as usize;
        let mut all: Vec<_> = (0..room).map(|_| one(self)).collect();
        all.truncate(count);
        all
    }

    fn ranks(&mut self) -> Vec<u32> {
        let known = self.word() != 0;
        let mut ranks = vec![];
        for word in 0..MEMBERS as u32 / 64 {
            let bits = self.word();
            ranks.extend((0..64).filter(|bit| known && bits >> bit & 1 == 1).map(|bit| word * 64 + bit));
        }
        ranks
    }

    fn operation(&mut self) -> OperationAbout {
        let (number, context) = (self.word(), self.word() as u32);
        OperationAbout { number, context, function: self.text(SHORT_NAME), comm: self.text(SHORT_NAME) }
    }

    fn calls_made(&mut self) -> CallsMade {
        CallsMade { context: self.word() as u32, calls: self.word() }
    }

    fn message(&mut self) -> MessageAbout {
        let (who, what, bytes) = (self.word(), self.word(), self.word());
        MessageAbout {
            peer: Some(who as u32).filter(|peer| *peer != u32::MAX),
            tag: (what >> 32 & 1 == 0).then_some((what as u32).cast_signed()),
            context: (who >> 32) as u32,
            bytes,
            sends: what >> 33 & 1 == 1,
            unstarted: what >> 34 & 1 == 1,
            comm: self.text(SHORT_NAME),
        }
    }
}

fn decode(words: &[u64]) -> WaitDetail {
    let mut from = Decoder { words };
    let call = from.text(CALL);
    let name = from.text(NAME);
    let kind = AboutKind::from_primitive(from.word());
    let members = from.ranks();
    let [unexpected, pending] = [(); 2].map(|()| from.list(MESSAGES, Decoder::message));
    let (number, root) = (from.word(), from.word());
    let bytes = Some(from.word()).filter(|bytes| *bytes != u64::MAX);
    let root = RootAbout::of_word(root);
    let (data, op, function) = (from.text(SHORT_NAME), from.text(SHORT_NAME), from.text(CALL));
    let collective = CollectiveAbout { function, number, root, data, bytes, op };
    let operations = from.list(OPERATIONS, Decoder::operation);
    let made = from.list(COUNTED, Decoder::calls_made);
    let comm = CommAbout { kind, name, members };
    let (count, of) = (from.word(), from.word());
    let partitions = UnreadyPartitions { count, of, first: core::array::from_fn(|_| from.word()) };
    let target = from.word().checked_sub(1).and_then(|target| u32::try_from(target).ok());
    let lock = LockAbout { target, holders: from.ranks(), shared: from.word() != 0 };
    WaitDetail { call, comm, collective, unexpected, pending, operations, made, partitions, lock }
}

#[cfg(all(test, not(perusal_loom)))]
mod tests {
    use super::*;

    fn detail() -> WaitDetail {
        let message = MessageAbout {
            peer: Some(3),
            tag: Some(-5),
            context: 12,
            bytes: u64::MAX,
            sends: true,
            unstarted: true,
            comm: "halo".into(),
        };
        WaitDetail {
            call: "MPI_Recv".into(),
            comm: CommAbout { kind: AboutKind::File, name: "data".into(), members: vec![0, 63, 64, 1023] },
            collective: CollectiveAbout {
                function: "MPI_Iallreduce".into(),
                number: 17,
                root: Some(RootAbout::Sibling),
                data: "4 × MPI_INT".into(),
                bytes: Some(16),
                op: "MPI_SUM".into(),
            },
            unexpected: vec![message.clone(), MessageAbout { peer: None, tag: None, ..message }],
            pending: vec![],
            operations: vec![OperationAbout {
                function: "MPI_Reduce_scatter_block_init".into(),
                number: 3,
                context: 12,
                comm: "halo".into(),
            }],
            made: vec![CallsMade { context: 12, calls: u64::MAX }],
            partitions: UnreadyPartitions::new(9, [1, 8].into_iter()),
            lock: LockAbout { target: Some(0), holders: vec![1, 1023], shared: true },
        }
    }

    #[test]
    fn what_is_stored_is_read_for_its_wait_only() {
        let words = DetailWords::default();
        words.set(7, &detail());
        assert_eq!(words.get(7), Some(detail()));
        assert_eq!((words.get(8), words.get(0)), (None, None));
    }

    #[test]
    fn long_texts_and_lists_are_cut_and_late_ranks_left_out() {
        let mut long = detail();
        long.comm = CommAbout { name: "ä".repeat(200), members: vec![1024], ..CommAbout::default() };
        long.pending = vec![MessageAbout::default(); 9];
        long.made = vec![CallsMade::default(); 99];
        let words = DetailWords::default();
        words.set(1, &long);
        let read = words.get(1).unwrap();
        assert_eq!(read.comm, CommAbout { name: "ä".repeat(31), ..CommAbout::default() });
        assert_eq!((read.pending.len(), read.made.len()), (MESSAGES, COUNTED));
    }

    #[test]
    fn unready_partitions_are_named_as_far_as_there_is_room() {
        let text = |unready: &[usize]| UnreadyPartitions::new(9, unready.iter().copied()).to_string();
        assert_eq!(text(&[]), "some partitions");
        assert_eq!(text(&[3]), "partition 3 (of 9)");
        assert_eq!(text(&[0, 3]), "partitions 0 and 3 (of 9)");
        assert_eq!(text(&[0, 3, 4, 5]), "partitions 0, 3, 4 and 5 (of 9)");
        assert_eq!(text(&[0, 3, 4, 5, 8]), "partitions 0, 3, 4, 5 and another one (of 9)");
        assert_eq!(text(&[0, 3, 4, 5, 6, 8]), "partitions 0, 3, 4, 5 and 2 others (of 9)");
    }

    #[test]
    fn nothing_that_others_write_is_believed() {
        let words = DetailWords::default();
        words.set_words(1, &[u64::MAX; WORDS]);
        let read = words.get(1).unwrap();
        assert_eq!((read.unexpected.len(), read.pending.len()), (MESSAGES, MESSAGES));
        assert_eq!((read.operations.len(), read.made.len()), (OPERATIONS, COUNTED));
        assert!(read.partitions.to_string().ends_with(" others (of 18446744073709551615)"));
        words.set_words(2, &[u64::from_le_bytes(*b"\x1b[31m\n\r\x07"); WORDS]);
        assert!(words.get(2).unwrap().call.starts_with("?[31m???"), "{:?}", words.get(2));
    }
}
