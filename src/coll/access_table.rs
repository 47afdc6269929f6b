//! One-sided operations that are under way, in the shared heap, so that each origin can compare what it accesses at a
//! target with what others access there: a part of the table of calls that are checked.
//!
//! - **Access rule 1.** Entries and the mark are written by whoever holds the lock before them, and read so, but that
//!   anybody may ask whether the mark is
//!   0. An entry is free while its key is 0, and all are from the [mark](MARK_AT) on.
//! - **Access rule 2.** An origin makes the entries of an operation before it begins it, and frees them when it is
//!   complete at its target: at the latest before another one can know that it is, and where a fence ends it, when all
//!   have come to the fence.

use super::signature_table::{get, hold, set, set_text, text_of};
use crate::limits::APART;
use crate::shm::SharedLock;
use crate::sync::AtomicU64;
use core::ops::Range;
use core::ptr::NonNull;

const ENTRIES: usize = 8192;
/// Words of an entry: its key, its origin and what it does, its epoch, the number of its operation, where it begins and
/// ends, and the function.
const WORDS: usize = 9;
const DONE_BY: usize = 1;
const EPOCH: usize = 2;
const NUMBER: usize = 3;
const START: usize = 4;
const END: usize = 5;
const TEXT: usize = 6;
/// The word of the mark, behind the lock.
const MARK_AT: usize = 64;
const _: () = assert!(size_of::<SharedLock>() <= MARK_AT && MARK_AT + 8 <= APART);
/// Bytes of this part of the table.
pub const BYTES: usize = APART + (ENTRIES * WORDS * 8).next_multiple_of(APART);

/// What an operation does at its target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AccessKind {
    /// It reads.
    Get = 0,
    /// It writes.
    Put = 1,
    /// It reads and writes each element at once, as others of its kind may do meanwhile.
    Accumulate = 2,
    /// It reads each element at once, as others may update it meanwhile: MPI_NO_OP.
    Fetch = 3,
}

impl AccessKind {
    const fn of(word: u64) -> Self {
        match word {
            0 => Self::Get,
            1 => Self::Put,
            2 => Self::Accumulate,
            _ => Self::Fetch,
        }
    }

    /// Whether it changes nothing at its target.
    #[must_use]
    pub const fn reads(self) -> bool {
        matches!(self, Self::Get | Self::Fetch)
    }

    /// Whether operations of the two kinds on one place must not be under way at once.
    fn conflicts(self, other: Self) -> bool {
        let is_atomic = |kind| matches!(kind, Self::Accumulate | Self::Fetch);
        !(self.reads() && other.reads() || is_atomic(self) && is_atomic(other))
    }
}

/// A one-sided operation.
#[derive(Debug, Clone, Copy)]
pub struct TableAccess {
    /// The context id of the window.
    pub context: u32,
    /// The target's rank in the job.
    pub target: u32,
    /// The origin's rank in the job.
    pub origin: u32,
    /// What it does.
    pub kind: AccessKind,
    /// Fences that the origin has called on the window, if it is one between two fences; else 0.
    pub epoch: u64,
    /// The number of the operation at its origin.
    pub number: u64,
    /// The function.
    pub function: &'static str,
}

/// An operation that is under way and accesses the same place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Conflict {
    /// Its origin's rank in the job.
    pub origin: u32,
    /// What it does.
    pub kind: AccessKind,
    /// The function.
    pub function: String,
    /// The addresses at the target that both access.
    pub shared: Range<u64>,
}

/// The part of the job's table that has the one-sided operations.
#[derive(Debug, Clone, Copy)]
pub struct AccessTable {
    base: NonNull<u8>,
}

impl AccessTable {
    /// The part at `base`.
    ///
    /// # Safety
    /// [`BYTES`] bytes that were zeroed lie there, aligned as the job's memory is, and are mapped as long as the
    /// process lives; they are for accesses only.
    pub(super) const unsafe fn new(base: NonNull<u8>) -> Self {
        Self { base }
    }

    fn lock(&self) -> &SharedLock {
        // SAFETY: the part begins with the lock (`new`), zeroed, which is a value of it; all accesses are atomic.
        unsafe { self.base.cast::<SharedLock>().as_ref() }
    }

    /// Entries before it may be in use.
    fn mark(&self) -> &AtomicU64 {
        // SAFETY: a word behind the lock (`new`), zeroed; all accesses are atomic.
        unsafe { self.base.add(MARK_AT).cast().as_ref() }
    }

    fn entries(&self) -> impl Iterator<Item = &[AtomicU64]> {
        // SAFETY: behind the lock the part has so many words (`new`), zeroed; all accesses are atomic.
        let words = unsafe {
            core::slice::from_raw_parts(self.base.add(APART).cast::<AtomicU64>().as_ptr(), ENTRIES * WORDS)
        };
        words.chunks_exact(WORDS)
    }

    fn in_use(&self) -> impl Iterator<Item = &[AtomicU64]> {
        self.entries().take(get(self.mark()) as usize)
    }

    /// An operation begins, which accesses these addresses at its target. Returns another one that is under way and
    /// must not be, and whether there was room for all of this one.
    #[must_use]
    pub fn begin(&self, access: &TableAccess, runs: &[Range<u64>]) -> (Option<Conflict>, bool) {
        let Some(_held) = hold(self.lock()) else { return (None, false) };
        let key = key_of(access.context, access.target);
        let mut other = None;
        for entry in self.in_use().filter(|entry| get(&entry[0]) == key && get(&entry[EPOCH]) == access.epoch)
        {
            let (origin, kind) = done_by(entry);
            if !kind.conflicts(access.kind) {
                continue;
            }
            if let Some(shared) = shared_with(entry, runs) {
                other =
                    Some(Conflict { origin, kind, function: text_of(entry[TEXT..].iter().map(get)), shared });
                break;
            }
        }
        let mut left = runs.iter();
        let mut next = left.next();
        for (at, entry) in self.entries().enumerate() {
            let Some(run) = next else { break };
            if get(&entry[0]) != 0 {
                continue;
            }
            set(&entry[0], key);
            set(&entry[DONE_BY], u64::from(access.origin) << 32 | access.kind as u64);
            set(&entry[EPOCH], access.epoch);
            set(&entry[NUMBER], access.number);
            set(&entry[START], run.start);
            set(&entry[END], run.end);
            set_text(&entry[TEXT..], access.function);
            set(self.mark(), get(self.mark()).max(at as u64 + 1));
            next = left.next();
        }
        (other, next.is_none())
    }

    /// An operation that is under way and writes or updates memory of the rank `target` of the job at one of these
    /// addresses. Of those between two fences only where `is_now` says so, by the context id of the window and the
    /// number of its fences.
    #[must_use]
    pub fn writer(
        &self,
        target: u32,
        runs: impl FnOnce() -> Vec<Range<u64>>,
        is_now: impl Fn(u32, u64) -> bool,
    ) -> Option<Conflict> {
        // An operation that the caller must know of, by a message, had its entry before.
        if get(self.mark()) == 0 {
            return None;
        }
        let runs = runs();
        let _held = hold(self.lock())?;
        self.in_use().find_map(|entry| {
            let (key, epoch) = (get(&entry[0]), get(&entry[EPOCH]));
            let (origin, kind) = done_by(entry);
            if key == 0 || key as u32 != target || kind.reads() {
                return None;
            }
            if epoch != 0 && !is_now(context_of(key), epoch) {
                return None;
            }
            let shared = shared_with(entry, &runs)?;
            Some(Conflict { origin, kind, function: text_of(entry[TEXT..].iter().map(get)), shared })
        })
    }

    /// Operations of this origin on a window are complete:
    /// those of which `is_over` says so, by target, kind and number.
    pub fn end(&self, context: u32, origin: u32, is_over: impl Fn(u32, AccessKind, u64) -> bool) {
        let Some(_held) = hold(self.lock()) else { return };
        let mut mark = 0;
        for (at, entry) in self.in_use().enumerate() {
            let key = get(&entry[0]);
            let (of, kind) = done_by(entry);
            let is_own = key != 0 && context_of(key) == context && of == origin;
            if is_own && is_over(key as u32, kind, get(&entry[NUMBER])) {
                set(&entry[0], 0);
            } else if key != 0 {
                mark = at as u64 + 1;
            }
        }
        set(self.mark(), mark);
    }
}

const fn key_of(context: u32, target: u32) -> u64 {
    (context as u64 + 1) << 32 | target as u64
}

/// The context id in a key that is not 0. Another rank may have written any other.
const fn context_of(key: u64) -> u32 {
    ((key >> 32) as u32).wrapping_sub(1)
}

/// The addresses of the first of some runs that an entry has, too.
fn shared_with(entry: &[AtomicU64], runs: &[Range<u64>]) -> Option<Range<u64>> {
    let (start, end) = (get(&entry[START]), get(&entry[END]));
    let mut shared = runs.iter().map(|run| run.start.max(start)..run.end.min(end));
    shared.find(|shared| !shared.is_empty())
}

fn done_by(entry: &[AtomicU64]) -> (u32, AccessKind) {
    let word = get(&entry[DONE_BY]);
    ((word >> 32) as u32, AccessKind::of(word & u64::from(u32::MAX)))
}

#[cfg(all(test, not(miri), not(perusal_loom)))]
mod tests {
    use super::*;
    use crate::coll::signature_table::SignatureTable;
    use crate::shm::Job;

    fn access(origin: u32, kind: AccessKind, epoch: u64) -> TableAccess {
        TableAccess {
            context: 3,
            target: 1,
            origin,
            kind,
            epoch,
            number: 7,
            function: "MPI_Compare_and_swap",
        }
    }

    #[test]
    fn what_overlaps_in_one_epoch_is_found_until_it_ends() {
        let job = Job::singleton().unwrap();
        let table = SignatureTable::of(&job).unwrap().accesses();
        let begin =
            |access: &TableAccess, from, to| table.begin(access, core::slice::from_ref(&(from..to))).0;
        assert_eq!(table.begin(&access(0, AccessKind::Put, 2), &[0..8, 16..24]), (None, true));
        assert_eq!(begin(&access(2, AccessKind::Put, 2), 8, 16), None, "beside it");
        assert_eq!(begin(&access(2, AccessKind::Put, 3), 0, 8), None, "in another epoch");
        let elsewhere = TableAccess { target: 2, ..access(2, AccessKind::Put, 2) };
        assert_eq!(begin(&elsewhere, 0, 8), None, "at another target");
        let found = begin(&access(2, AccessKind::Get, 2), 12, 14).map(|other| (other.origin, other.shared));
        assert_eq!(found, Some((2, 12..14)));
        let found = begin(&access(2, AccessKind::Accumulate, 2), 20, 32).unwrap();
        assert_eq!((found.origin, found.function.as_str()), (0, "MPI_Compare_and_swap"));
        let writer = |target, fences| {
            table.writer(target, || vec![14..15, 20..40], |context, epoch| (context, epoch) == (3, fences))
        };
        assert_eq!(writer(1, 2).map(|other| (other.origin, other.shared)), Some((0, 20..24)));
        assert_eq!(writer(1, 3).map(|other| other.origin), None, "of another epoch");
        assert_eq!(writer(2, 2), None, "at another target");
        table.end(3, 0, |target, kind, number| (target, kind, number) == (1, AccessKind::Put, 7));
        assert_eq!(begin(&access(2, AccessKind::Get, 2), 0, 8), None);
        table.end(3, 2, |_, _, _| true);
        assert_eq!(get(table.mark()), 0, "all are free again");
    }

    #[test]
    fn reads_and_accumulates_are_among_themselves() {
        use AccessKind::{Accumulate, Fetch, Get, Put};
        for (one, other) in
            [(Get, Get), (Accumulate, Accumulate), (Fetch, Fetch), (Fetch, Get), (Fetch, Accumulate)]
        {
            assert!(!one.conflicts(other) && !other.conflicts(one), "{one:?} {other:?}");
        }
        for (one, other) in [(Get, Put), (Put, Put), (Accumulate, Put), (Fetch, Put), (Get, Accumulate)] {
            assert!(one.conflicts(other) && other.conflicts(one), "{one:?} {other:?}");
        }
    }

    #[test]
    fn what_has_no_room_is_said() {
        let job = Job::singleton().unwrap();
        let table = SignatureTable::of(&job).unwrap().accesses();
        let many: Vec<_> = (0..ENTRIES as u64).map(|at| at * 2..at * 2 + 1).collect();
        assert!(table.begin(&access(0, AccessKind::Put, 0), &many[1..]).1);
        assert!(table.begin(&access(0, AccessKind::Put, 0), &many[..1]).1);
        assert!(!table.begin(&access(0, AccessKind::Put, 0), &many[..1]).1);
    }
}
