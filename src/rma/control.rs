//! What the members of a window share beside its memory: the words of locks and epochs, in the job's shared heap.
//!
//! - **Window rule 1.** The member of rank 0 allocates the words, zeroed, before any member uses them,
//!   and frees them when no member will.
//! - **Window rule 2.** A member sleeps only after it has set its mark and looked once more; a member that changes a
//!   word then looks at the marks ([`SleepMark`]).

use super::attached::NewestTable;
use super::epoch::Hold;
use super::lock::LockWords;
use crate::limits::LINE;
use crate::sync::{
    AtomicBool, AtomicU8, AtomicU32, AtomicU64, Ordering, SleepMark, fence, fence_after_exchange,
};
use core::ptr::NonNull;

/// How often something has happened to a member: its origins have completed,
/// or a target has exposed its memory to it. It wraps around.
#[derive(Debug, Default)]
#[repr(transparent)]
pub struct EpochCount(AtomicU32);

impl EpochCount {
    /// It has happened once more.
    pub fn add(&self) {
        // Release: "window post, completion" edge, pairs with Acquire in `since`: what the caller stored before is
        // seen.
        self.0.fetch_add(1, Ordering::Release);
    }

    /// The same, of a count that no other rank adds to: without waiting for its line.
    pub fn add_alone(&self) {
        // Relaxed: the caller's own.
        let count = self.0.load(Ordering::Relaxed);
        // Release: as in `add`.
        self.0.store(count.wrapping_add(1), Ordering::Release);
    }

    /// How often it has happened since the count was `seen`.
    #[must_use]
    pub fn since(&self, seen: u32) -> u32 {
        // Acquire: "window post, completion" edge, pairs with Release in `add`.
        self.0.load(Ordering::Acquire).wrapping_sub(seen)
    }
}

/// Whether a member has stored into other members' memory since it last made its stores visible. Its threads share it.
#[derive(Debug, Default)]
pub struct StoreFlag(AtomicBool);

impl StoreFlag {
    /// Stores have been made that [`complete`](Self::complete) must order.
    #[inline(always)]
    pub fn set(&self) {
        // Release: "window stores" edge, pairs with the exchange in `complete`.
        self.0.store(true, Ordering::Release);
    }

    /// Makes the stores visible before what the caller loads from now on.
    /// Loads are in order by themselves, or by the fence.
    #[inline(always)]
    pub fn complete(&self) {
        if self.0.load(Ordering::Relaxed) {
            // AcqRel: "window stores" edge, pairs with Release in `set`: stores of another thread come before the fence
            // as well.
            self.0.swap(false, Ordering::AcqRel);
            fence_after_exchange();
        } else {
            // Acquire: another thread that has found it set has made the stores visible before;
            // gets stay before what follows.
            fence(Ordering::Acquire);
        }
    }
}

/// The words of one member, on lines of their own.
#[derive(Debug, Default)]
#[repr(C, align(128))]
pub struct MemberWords {
    /// The lock of its memory.
    pub lock: LockWords,
    /// The member that was granted the lock last, plus one; 0 for none. It is for people alone.
    holder: AtomicU32,
    /// How often an origin has ended an access epoch for which the member was exposed (MPI_Win_complete).
    pub completed: EpochCount,
    /// Whether the member sleeps until a target has exposed its memory to it, and until its origins have completed: a
    /// mark each, because it may be in an access epoch and in an exposure epoch at once, in two threads.
    asleep: AtomicU64,
    /// What it has attached to the window.
    pub attached: NewestTable,
}

impl MemberWords {
    /// The member that was granted the lock last, as far as this one sees.
    pub fn last_holder(&self) -> Option<u32> {
        // Relaxed: for people alone.
        self.holder.load(Ordering::Relaxed).checked_sub(1)
    }

    /// Notes that `member` has been granted the lock.
    #[inline(always)]
    pub fn set_last_holder(&self, member: u32) {
        // Relaxed: as in `last_holder`.
        self.holder.store(member + 1, Ordering::Relaxed);
    }

    /// The mark of the member as it waits to be exposed to (MPI_Win_start).
    pub fn mark_of_start(&self) -> SleepMark<'_> {
        SleepMark::new(&self.asleep, 0)
    }

    /// The mark of the member as it waits for completions (MPI_Win_wait).
    pub fn mark_of_wait(&self) -> SleepMark<'_> {
        SleepMark::new(&self.asleep, 1)
    }

    /// The word of both marks.
    pub fn marks(&self) -> &AtomicU64 {
        &self.asleep
    }
}

/// The words of a window's members.
#[derive(Debug, Clone, Copy)]
pub struct Control {
    base: NonNull<u8>,
    members: usize,
    /// Counts in a row of posts.
    row: usize,
    /// Counts of posts, a row for each origin, and behind them a byte for each hold of a lock,
    /// a row for each locked rank.
    posts: NonNull<EpochCount>,
    holds: NonNull<AtomicU8>,
}

// SAFETY: what it points to are atomics in memory that is mapped in the whole process (window rule 1).
unsafe impl Send for Control {}
// SAFETY: what it points to are atomics in memory that is mapped in the whole process (window rule 1).
unsafe impl Sync for Control {}

/// Bytes of which a row of posts takes a multiple: an origin that waits for its posts reads no line that is written for
/// another.
const ROW: usize = 2 * LINE;

/// How many counts a row of posts has in a window of so many members.
fn row_of_posts(members: usize) -> Option<usize> {
    members.checked_next_multiple_of(ROW / size_of::<EpochCount>())
}

impl Control {
    /// How many bytes the words of so many members take; `None` for more than the address space holds.
    #[must_use]
    pub fn bytes(members: usize) -> Option<usize> {
        let own = members.checked_mul(size_of::<MemberWords>())?;
        let marks = members.checked_mul(members.div_ceil(64))?.checked_mul(size_of::<AtomicU64>())?;
        let posts = members.checked_mul(row_of_posts(members)?)?.checked_mul(size_of::<EpochCount>())?;
        let holds = members.checked_mul(members)?;
        own.checked_add(marks)?.checked_next_multiple_of(ROW)?.checked_add(posts)?.checked_add(holds)
    }

    /// The words at `base`.
    ///
    /// # Safety
    /// At `base`, on a line, lie [`Control::bytes`] bytes for so many members, zeroed before first use, that stay
    /// mapped and are used for nothing else as long as a copy of this is used (window rule 1).
    #[must_use]
    pub unsafe fn over(base: NonNull<u8>, members: usize) -> Self {
        let marks = members.div_ceil(64) * size_of::<AtomicU64>();
        let posts_at = (members * (size_of::<MemberWords>() + marks)).next_multiple_of(ROW);
        let row = row_of_posts(members).expect("`bytes` has counted them");
        // SAFETY: the counts lie behind the members' records and marks, and the holds behind those (`bytes`).
        unsafe {
            let posts = base.add(posts_at).cast();
            Self { base, members, row, posts, holds: posts.add(members * row).cast() }
        }
    }

    /// The words of a member.
    ///
    /// # Panics
    /// If there is no such member.
    #[inline(always)]
    #[must_use]
    pub fn member(&self, rank: u32) -> &MemberWords {
        assert!((rank as usize) < self.members);
        // SAFETY: the words begin with one record for each member (`bytes`), aligned as `base` is; zeros are one;
        // all accesses are atomic.
        unsafe { self.base.cast::<MemberWords>().add(rank as usize).as_ref() }
    }

    /// The mark of `member` as it waits for the lock of `rank`.
    ///
    /// # Panics
    /// If there is no such member or rank.
    #[must_use]
    pub fn lock_mark(&self, rank: u32, member: u32) -> SleepMark<'_> {
        assert!((member as usize) < self.members);
        SleepMark::new(&self.lock_marks(rank)[member as usize / 64], member % 64)
    }

    /// The words with the marks of members that wait for the lock of `rank`.
    ///
    /// # Panics
    /// If there is no such rank.
    #[inline(always)]
    #[must_use]
    pub fn lock_marks(&self, rank: u32) -> &[AtomicU64] {
        assert!((rank as usize) < self.members);
        let words = self.members.div_ceil(64);
        let at = self.members * size_of::<MemberWords>() + rank as usize * words * size_of::<AtomicU64>();
        // SAFETY: a row of marks for each member lies behind the members' records (`bytes`); zeros are unset marks; all
        // accesses are atomic.
        unsafe { core::slice::from_raw_parts(self.base.add(at).cast().as_ptr(), words) }
    }

    /// How often `target` has exposed its memory to `origin` (MPI_Win_post).
    ///
    /// # Panics
    /// If there is no such origin or target.
    #[must_use]
    pub fn posts(&self, origin: u32, target: u32) -> &EpochCount {
        assert!((origin as usize) < self.members && (target as usize) < self.members);
        let index = origin as usize * self.row + target as usize;
        // SAFETY: a count for each pair lies at `posts`; zeros are counts; all accesses are atomic.
        unsafe { self.posts.add(index).as_ref() }
    }

    /// How each member holds the lock of `rank`, as a [`Hold`]:
    /// for people alone, so that a member that waits can say for whom.
    #[inline(always)]
    fn holds(&self, rank: u32) -> &[AtomicU8] {
        assert!((rank as usize) < self.members);
        // SAFETY: a byte for each pair of members lies at `holds`, a row for each rank; zeros are no holds;
        // all accesses are atomic.
        unsafe {
            core::slice::from_raw_parts(self.holds.add(rank as usize * self.members).as_ptr(), self.members)
        }
    }

    /// Notes how `member` holds the lock of `rank` from now on.
    ///
    /// # Panics
    /// If there is no such member or rank.
    #[inline(always)]
    pub fn set_hold(&self, rank: u32, member: u32, hold: Hold) {
        // Relaxed: for people alone.
        self.holds(rank)[member as usize].store(hold as u8, Ordering::Relaxed);
    }

    /// The members that hold the lock of `rank`, and how.
    ///
    /// # Panics
    /// If there is no such rank.
    pub fn holders(&self, rank: u32) -> impl Iterator<Item = (u32, Hold)> + '_ {
        // Relaxed: for people alone.
        let holds = self.holds(rank).iter().map(|hold| Hold::from(hold.load(Ordering::Relaxed)));
        (0..).zip(holds).filter(|(_, hold)| *hold != Hold::None)
    }
}

#[cfg(all(test, not(perusal_loom)))]
mod tests {
    use super::*;

    #[test]
    fn no_two_words_overlap() {
        for members in [1, 3, 65] {
            let bytes = Control::bytes(members).expect("little");
            let mut memory = vec![0_u128; bytes.div_ceil(16) + 8];
            let base = memory.as_mut_ptr().cast::<u8>();
            let base = base.wrapping_add(base.align_offset(128));
            // SAFETY: zeroed, aligned, long enough, and used for nothing else in this block.
            let control = unsafe { Control::over(NonNull::new(base).expect("memory"), members) };
            let all = members as u32;
            for a in 0..all {
                assert_eq!(control.member(a).completed.since(0), 0);
                control.member(a).completed.add();
                for b in 0..all {
                    assert_eq!(control.posts(a, b).since(0), 0);
                    control.posts(a, b).add_alone();
                    control.lock_mark(a, b).set_unfenced();
                }
                let marked: u32 =
                    control.lock_marks(a).iter().map(|word| word.load(Ordering::Relaxed).count_ones()).sum();
                assert_eq!(marked, all);
                let holders = || control.holders(a).collect::<Vec<_>>();
                assert_eq!(holders(), []);
                (0..all).for_each(|b| control.set_hold(a, b, Hold::Shared));
                assert_eq!(holders(), (0..all).map(|b| (b, Hold::Shared)).collect::<Vec<_>>());
                (1..all).for_each(|b| control.set_hold(a, b, Hold::None));
                control.set_hold(a, 0, Hold::Exclusive);
                assert_eq!(holders(), [(0, Hold::Exclusive)]);
            }
        }
    }
}
