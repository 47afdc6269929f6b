//! The collective calls that are under way, in the shared heap, so that each member can compare its call with that of
//! the first, and the types of messages that no receive has taken: one table for the whole job, made only where calls
//! are checked. Its last part has one-sided operations ([`access_table`]).
//!
//! - **Signature rule 1.** Entries are read and written by whoever holds the table's lock.
//!   An entry is free while its key is 0.
//! - **Signature rule 2.** Whoever comes first to a call makes its entry, and whoever comes last frees it. Where there
//!   is no room, the call is not compared.
//! - **Signature rule 3.** A sender makes the entry of a message before it sends it, and the receiver frees it when it
//!   is matched. An entry that is there already is of a message of a communicator that has been freed.

use super::access_table::{self, AccessTable};
use super::signature::{Balance, FIELDS, Signature};
use crate::error::Result;
use crate::heap;
use crate::limits::APART;
use crate::shm::{Job, SharedLock, SharedLockGuard};
use crate::sync::{AtomicU64, Ordering, yield_now};
use core::ptr::NonNull;

/// Entries that a key may lie in.
const WAYS: usize = 8;
const SETS: usize = 1024;
/// Sets of entries of messages, behind those of calls.
const MESSAGE_SETS: usize = 2 * SETS;
/// Words of an entry of a message: its key, its type, since when it is sent in ready mode, and a text.
const MESSAGE_WORDS: usize = 16;
const TYPE: usize = 1;
const READY: usize = 2;
const MESSAGE_TEXT: usize = 3;
/// Bytes of the text of a message that an entry has room for.
pub const MESSAGE_TEXT_BYTES: usize = (MESSAGE_WORDS - MESSAGE_TEXT) * 8;
/// Words of an entry of a call: its key, members that have come and all members, the rank that came first, the fields,
/// the four of the balance, whether a member has differed, and a text.
const WORDS: usize = 32;
const ARRIVED: usize = 1;
const FIRST: usize = 2;
const FIELDS_AT: usize = 3;
const BALANCE: usize = FIELDS_AT + FIELDS;
const DIFFERED: usize = BALANCE + 4;
const TEXT: usize = DIFFERED + 1;
/// Bytes of a text that an entry has room for.
pub const TEXT_BYTES: usize = (WORDS - TEXT) * 8;
/// Where the entries of messages begin. A word behind the lock is not 0 once types are compared no more.
const MESSAGES_AT: usize = APART + SETS * WAYS * WORDS * 8;
const STOPPED_AT: usize = 64;
/// Where the one-sided operations begin, behind the messages.
const ACCESSES_AT: usize = MESSAGES_AT + MESSAGE_SETS * WAYS * MESSAGE_WORDS * 8;
const _: () = assert!(ACCESSES_AT.is_multiple_of(APART));
const _: () = assert!(size_of::<SharedLock>() <= STOPPED_AT && STOPPED_AT + 8 <= APART);
/// Times that the lock is tried. Its holder may have been killed.
const TRIES: u32 = 100_000;

/// The job's table of collective calls that are under way, and of the types of messages.
#[derive(Debug, Clone, Copy)]
pub struct SignatureTable {
    base: NonNull<u8>,
}

// SAFETY: it points to atomics in memory that is mapped in the whole process.
unsafe impl Send for SignatureTable {}
// SAFETY: it points to atomics in memory that is mapped in the whole process.
unsafe impl Sync for SignatureTable {}

/// A collective call, as the table knows it.
#[derive(Debug, Clone, Copy)]
pub struct TableCall {
    /// The context id of its communicator.
    pub context: u32,
    /// Its number there, from 1.
    pub number: u32,
    /// Members of the communicator.
    pub members: u32,
    /// The caller's rank in the job.
    pub rank: u32,
    /// What is compared.
    pub signature: Signature,
}

/// What a sender says of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SentMessage<T> {
    /// The number of its type; 0 for one that may stand for others.
    pub kind: u64,
    /// When it was sent, in nanoseconds of CLOCK_MONOTONIC, if that was in ready mode; else 0.
    pub ready: u64,
    /// What is said of it.
    pub text: T,
}

/// The text of a message, until somebody reads it.
#[derive(Debug, Clone, Copy)]
pub struct KeptText([u64; MESSAGE_WORDS - MESSAGE_TEXT]);

impl core::fmt::Display for KeptText {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(&text_of(self.0.into_iter()))
    }
}

/// How a call compares with that of the member that came first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Comparison {
    /// They agree as far as is known, or the caller is the first.
    Agrees,
    /// They differ: the other's rank in the job, its signature, and what it said.
    Differs(u32, Signature, String),
    /// All members have come, and what they send is not as long as what they expect of each other.
    LengthsUnbalanced,
    /// All members have come, and what they send has other types than what they expect of each other.
    TypesUnbalanced,
    /// All members have come, and not one rank is the root between two groups, or not all of the other group name it.
    RootsUnbalanced,
    /// There was no room to compare it.
    Unknown,
}

impl SignatureTable {
    /// The table of a job, made by whoever comes first.
    ///
    /// # Errors
    /// [`crate::Error::NoMem`] if the shared heap has no room for it.
    pub fn of(job: &Job) -> Result<Self> {
        let bytes = ACCESSES_AT + access_table::BYTES;
        heap::table(job, &job.header().signatures, bytes, "table of calls that are checked")
            .map(|base| Self { base })
    }

    /// The part that has one-sided operations.
    #[must_use]
    pub fn accesses(&self) -> AccessTable {
        // SAFETY: behind the messages the table has so many bytes, zeroed, for accesses only; it is aligned, and mapped
        // as long as the process lives.
        unsafe { AccessTable::new(self.base.add(ACCESSES_AT)) }
    }

    fn lock(&self) -> &SharedLock {
        // SAFETY: the table begins with the lock, zeroed, which is a value of it; all accesses are atomic.
        unsafe { self.base.cast::<SharedLock>().as_ref() }
    }

    fn entry(&self, set: usize, way: usize) -> &[AtomicU64] {
        let at = APART + (set % SETS * WAYS + way % WAYS) * WORDS * 8;
        // SAFETY: behind the lock the table has so many entries, zeroed; all accesses are atomic.
        unsafe { core::slice::from_raw_parts(self.base.add(at).cast::<AtomicU64>().as_ptr(), WORDS) }
    }

    fn hold(&self) -> Option<SharedLockGuard<'_>> {
        hold(self.lock())
    }

    /// The entries that the key of a message may lie in.
    fn message_entries(&self, key: u64) -> impl Iterator<Item = &[AtomicU64]> {
        let set = key as usize % MESSAGE_SETS;
        (0..WAYS).map(move |way| {
            let at = MESSAGES_AT + (set * WAYS + way) * MESSAGE_WORDS * 8;
            // SAFETY: behind the entries of calls the table has so many, zeroed; all accesses are atomic.
            unsafe {
                core::slice::from_raw_parts(self.base.add(at).cast::<AtomicU64>().as_ptr(), MESSAGE_WORDS)
            }
        })
    }

    /// Whether types of messages are compared no more.
    fn stopped(&self) -> &AtomicU64 {
        // SAFETY: a word behind the lock, zeroed; all accesses are atomic.
        unsafe { self.base.add(STOPPED_AT).cast().as_ref() }
    }

    /// Keeps what its sender says of a message until it is matched. Returns whether there was room.
    #[must_use]
    pub fn put(&self, key: u64, message: SentMessage<&str>) -> bool {
        let Some(_held) = self.hold() else { return false };
        let entry = self.message_entries(key).find(|entry| get(&entry[0]) == key);
        let Some(entry) = entry.or_else(|| self.message_entries(key).find(|entry| get(&entry[0]) == 0))
        else {
            return false;
        };
        set(&entry[0], key);
        set(&entry[TYPE], message.kind);
        set(&entry[READY], message.ready);
        set_text(&entry[MESSAGE_TEXT..], message.text);
        true
    }

    /// Takes what [`Self::put`] has kept of a message; `None` if there is nothing.
    #[must_use]
    pub fn take(&self, key: u64) -> Option<SentMessage<KeptText>> {
        let _held = self.hold()?;
        let entry = self.message_entries(key).find(|entry| get(&entry[0]) == key)?;
        set(&entry[0], 0);
        let text = || KeptText(core::array::from_fn(|at| get(&entry[MESSAGE_TEXT + at])));
        let message = || SentMessage { kind: get(&entry[TYPE]), ready: get(&entry[READY]), text: text() };
        (get(self.stopped()) == 0).then(message)
    }

    /// Compares no types of messages any more: a message that was cancelled is none of those that a receiver counts.
    pub fn stop_messages(&self) {
        if let Some(_held) = self.hold() {
            set(self.stopped(), 1);
        }
    }

    /// Compares a call with that of the member that came first, and says that the caller has come. Of the first, at
    /// most [`TEXT_BYTES`] of `text` are kept.
    #[must_use]
    pub fn compare(&self, call: &TableCall, text: impl FnOnce() -> String) -> Comparison {
        let Some(_held) = self.hold() else { return Comparison::Unknown };
        let key = (u64::from(call.context) + 1) << 32 | u64::from(call.number);
        let set = (key.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40) as usize;
        let entries = || (0..WAYS).map(|way| self.entry(set, way));
        // Relaxed, all: signature rule 1, the lock orders them.
        let of_key = |key: u64| entries().find(|entry| entry[0].load(Ordering::Relaxed) == key);
        match of_key(key) {
            Some(entry) => join(entry, call),
            None => of_key(0).map_or(Comparison::Unknown, |entry| {
                begin(entry, key, call, text);
                Comparison::Agrees
            }),
        }
    }
}

/// Holds the lock of a part of the table; `None` if its holder does not let it go.
pub(super) fn hold(lock: &SharedLock) -> Option<SharedLockGuard<'_>> {
    (0..TRIES).find_map(|_| {
        let held = lock.try_hold(1);
        if held.is_none() {
            yield_now();
        }
        held
    })
}

pub(super) fn set(word: &AtomicU64, value: u64) {
    // Relaxed: signature rule 1 and access rule 1, the lock orders it.
    word.store(value, Ordering::Relaxed);
}

pub(super) fn get(word: &AtomicU64) -> u64 {
    // Relaxed: signature rule 1 and access rule 1, the lock orders it.
    word.load(Ordering::Relaxed)
}

/// Makes the entry of a call that nobody else has come to.
fn begin(entry: &[AtomicU64], key: u64, call: &TableCall, text: impl FnOnce() -> String) {
    if call.members < 2 {
        return;
    }
    set(&entry[0], key);
    set(&entry[ARRIVED], 1);
    set(&entry[FIRST], u64::from(call.rank));
    entry[FIELDS_AT..BALANCE].iter().zip(call.signature.fields).for_each(|(word, field)| set(word, field));
    set_balance(entry, call.signature.balance);
    set(&entry[DIFFERED], 0);
    set_text(&entry[TEXT..], &text());
}

fn set_balance(entry: &[AtomicU64], balance: Balance) {
    let words = [balance.lengths, balance.types, u64::from(balance.has_any), balance.roots];
    entry[BALANCE..DIFFERED].iter().zip(words).for_each(|(word, number)| set(word, number));
}

fn balance_of(entry: &[AtomicU64]) -> Balance {
    let word = |at: usize| get(&entry[BALANCE + at]);
    Balance { lengths: word(0), types: word(1), has_any: word(2) != 0, roots: word(3) }
}

/// Compares a call with the one that made the entry.
fn join(entry: &[AtomicU64], call: &TableCall) -> Comparison {
    let arrived = get(&entry[ARRIVED]).saturating_add(1);
    let balance = balance_of(entry) + call.signature.balance;
    set(&entry[ARRIVED], arrived);
    set_balance(entry, balance);
    let mut fields = [0; FIELDS];
    fields.iter_mut().zip(&entry[FIELDS_AT..BALANCE]).for_each(|(field, word)| *field = get(word));
    let other = Signature { fields, balance: Balance::default() };
    let is_last = arrived >= u64::from(call.members);
    // A type or length that differs is said once, by whom it differs.
    let is_weighed = is_last && get(&entry[DIFFERED]) == 0;
    let comparison = match call.signature.difference(&other) {
        Some(_) => {
            set(&entry[DIFFERED], 1);
            Comparison::Differs(get(&entry[FIRST]) as u32, other, text_of(entry[TEXT..].iter().map(get)))
        }
        None if !is_weighed => Comparison::Agrees,
        None if balance.roots != 0 => Comparison::RootsUnbalanced,
        None if balance.lengths != 0 => Comparison::LengthsUnbalanced,
        None if balance.types != 0 && !balance.has_any => Comparison::TypesUnbalanced,
        None => Comparison::Agrees,
    };
    if is_last {
        set(&entry[0], 0);
    }
    comparison
}

/// Stores as much of a text as there is room for.
pub(super) fn set_text(words: &[AtomicU64], text: &str) {
    for (at, word) in words.iter().enumerate() {
        let part = text.as_bytes().get(at * 8..).unwrap_or_default();
        let mut eight = [0; 8];
        let length = part.len().min(8);
        eight[..length].copy_from_slice(&part[..length]);
        set(word, u64::from_le_bytes(eight));
    }
}

/// The text of an entry. Another rank may have written anything there.
pub(super) fn text_of(words: impl Iterator<Item = u64>) -> String {
    let bytes: Vec<u8> = words.flat_map(u64::to_le_bytes).collect();
    let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
    let text = String::from_utf8_lossy(&bytes[..end]);
    text.chars().map(|char| if char.is_control() { '?' } else { char }).collect()
}

#[cfg(all(test, not(miri), not(perusal_loom)))]
mod tests {
    use super::*;

    fn call(rank: u32, number: u32, fields: [u64; FIELDS]) -> TableCall {
        let signature = Signature { fields, balance: Balance::default() };
        TableCall { context: 4, number, members: 3, rank, signature }
    }

    fn said() -> String {
        "root 0".into()
    }

    fn table() -> (Job, SignatureTable) {
        let job = Job::singleton().unwrap();
        let table = SignatureTable::of(&job).unwrap();
        (job, table)
    }

    #[test]
    fn whoever_comes_later_is_compared_with_the_first() {
        let (_job, table) = table();
        let same = [1, 2, 3, 4, 5, 6, 7];
        for number in 1..40 {
            assert_eq!(table.compare(&call(0, number, same), said), Comparison::Agrees);
        }
        for number in 1..40 {
            assert_eq!(table.compare(&call(1, number, same), said), Comparison::Agrees);
            let differs = table.compare(&call(2, number, [1, 9, 3, 4, 5, 6, 7]), said);
            let first = Signature { fields: same, balance: Balance::default() };
            assert_eq!(differs, Comparison::Differs(0, first, "root 0".into()));
            assert_eq!(
                table.compare(&call(2, number, [7; FIELDS]), said),
                Comparison::Agrees,
                "the entry is free again"
            );
        }
    }

    #[test]
    fn lengths_and_types_must_add_up_once_all_have_come() {
        let (_job, table) = table();
        let sent = |lengths, types, has_any| Balance { lengths, types, has_any, roots: 0 };
        let less = |number: u64| number.wrapping_neg();
        for (last, expected) in [
            (sent(7, 3, false), Comparison::LengthsUnbalanced),
            (sent(8, 4, false), Comparison::TypesUnbalanced),
            (sent(8, 4, true), Comparison::Agrees),
            (sent(8, 3, false), Comparison::Agrees),
        ] {
            for (rank, balance) in
                [sent(0, 0, false), sent(less(8), less(3), false), last].into_iter().enumerate()
            {
                let mut call = call(rank as u32, 1, [0; FIELDS]);
                call.signature.balance = balance;
                let expected = if rank == 2 { expected.clone() } else { Comparison::Agrees };
                assert_eq!(table.compare(&call, said), expected);
            }
        }
    }

    #[test]
    fn one_rank_is_the_root_that_all_of_the_other_group_name() {
        let (_job, table) = table();
        // One rank is it, two name it.
        for (roots, expected) in [
            ([4_u64.wrapping_neg(), 2, 2], Comparison::Agrees),
            ([0, 2, 2], Comparison::RootsUnbalanced),
            ([4_u64.wrapping_neg(), 2, 3], Comparison::RootsUnbalanced),
        ] {
            let mut last = Comparison::Unknown;
            for rank in 0..3_u32 {
                let mut call = call(rank, 1, [0; FIELDS]);
                call.signature.balance.roots = roots[rank as usize];
                last = table.compare(&call, said);
            }
            assert_eq!(last, expected);
        }
    }

    #[test]
    fn a_full_table_compares_no_more() {
        let (_job, table) = table();
        let comparisons: Vec<_> =
            (0..20_000).map(|number| table.compare(&call(0, number + 1, [0; FIELDS]), said)).collect();
        assert!(comparisons.contains(&Comparison::Unknown) && comparisons[0] == Comparison::Agrees);
    }

    #[test]
    fn the_type_of_a_message_is_there_until_it_is_taken() {
        let (_job, table) = table();
        let keys = || (1..5000_u64).map(|key| key << 40 | key);
        let taken = |key| {
            let taken = table.take(key)?;
            Some((taken.kind, taken.ready, taken.text.to_string()))
        };
        let put = |key, kind, ready, text| table.put(key, SentMessage { kind, ready, text });
        assert!(keys().all(|key| put(key, key ^ 7, 0, "4 × MPI_INT")));
        assert!(put(1 << 40 | 1, 9, 5, "a later one in its place"));
        assert_eq!(taken(1 << 40 | 1), Some((9, 5, "a later one in its place".into())));
        assert!(keys().skip(1).all(|key| taken(key) == Some((key ^ 7, 0, "4 × MPI_INT".into()))));
        assert!(keys().all(|key| table.take(key).is_none()));
        assert!(keys().all(|key| put(key, 1, 0, "")), "there is room again");
        let in_one_set = (0..20_u64).filter(|at| put((at + 1) * MESSAGE_SETS as u64, 1, 0, "")).count();
        assert!(in_one_set <= WAYS);
        table.stop_messages();
        assert_eq!(taken(MESSAGE_SETS as u64), None);
    }

    #[test]
    fn a_type_that_may_stand_for_any_differs_from_none() {
        let with_type =
            |number| Signature { fields: [1, 1, 1, 8, 0, number, 0], balance: Balance::default() };
        assert_eq!(with_type(0).difference(&with_type(5)), None);
        assert!(with_type(4).difference(&with_type(5)).is_some());
    }
}
