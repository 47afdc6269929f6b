//! Epochs: which calls on a window are legal now, as its own rank sees it (MPI 5.0 §12.5).
//!
//! Every call that opens or closes an epoch, and every operation, asks here first, so that a wrong call is an error at
//! itself and not a hang somewhere else. Nothing here waits or touches shared memory.

use crate::error::{Error, Result};
use crate::sync::{AtomicU8, ConditionalGuard, ConditionalLock, Ordering};
use num_enum::FromPrimitive;

/// How the window's memory at other ranks may be accessed now.
#[derive(Debug, Clone, Copy, PartialEq, Eq, FromPrimitive)]
#[repr(u8)]
enum Access {
    /// Not at all.
    #[num_enum(default)]
    None = 0,
    /// After a fence: the first operation opens an epoch, and another kind of epoch may be opened instead.
    AfterFence = 1,
    /// Between two fences, after an operation.
    Fence = 2,
    /// At the ranks that MPI_Win_start has named.
    Started = 3,
    /// At each rank that is locked.
    Locked = 4,
    /// At all ranks, by MPI_Win_lock_all.
    LockedAll = 5,
}

/// How one rank's memory is held by this rank.
#[derive(Debug, Clone, Copy, PartialEq, Eq, FromPrimitive)]
#[repr(u8)]
pub enum Hold {
    /// Not.
    #[num_enum(default)]
    None = 0,
    /// By a shared lock, or by an exclusive one, of the window's.
    Shared = 1,
    /// By an exclusive lock.
    Exclusive = 2,
    /// By a lock that is none: MPI_MODE_NOCHECK.
    Unchecked = 3,
    /// It is a target of MPI_Win_start.
    Started = 4,
}

/// The epochs of a window at one rank.
#[derive(Debug)]
pub struct Epochs {
    access: AtomicU8,
    /// A [`Hold`] for each rank of the window.
    holds: Box<[AtomicU8]>,
    /// What only calls that open and close epochs need; they take turns.
    turns: ConditionalLock<Turns>,
    /// Whether several threads may be inside.
    shared: bool,
}

/// What calls that open and close epochs know.
#[derive(Debug, Default)]
struct Turns {
    /// Targets of MPI_Win_start; empty without one.
    started: Vec<u32>,
    /// How many ranks are locked one by one.
    locked: usize,
    /// How many ranks the exposure epoch is for, while there is one.
    exposed: Option<usize>,
    /// The only rank that the last exposure epoch was for, if there was one rank.
    sole_origin: Option<u32>,
}

const fn wrong(what: &'static str) -> Error {
    Error::RmaSync(what)
}

/// What is wrong with a call for a target that this rank has not locked.
#[cold]
fn not_locked(access: Access) -> Error {
    match access {
        Access::Locked => wrong("this rank has not locked the target (MPI_Win_lock)"),
        _ => wrong("the call is for epochs of MPI_Win_lock and MPI_Win_lock_all, and there is none"),
    }
}

impl Epochs {
    /// No epoch, in a window of `ranks` ranks. `shared`: several threads may be inside.
    ///
    /// # Errors
    /// [`Error::NoMem`] if there is no memory for so many.
    pub fn new(ranks: usize, shared: bool) -> Result<Self> {
        let mut holds = Vec::new();
        holds.try_reserve_exact(ranks)?;
        holds.resize_with(ranks, || AtomicU8::new(0));
        Ok(Self { access: AtomicU8::new(0), holds: holds.into(), turns: ConditionalLock::default(), shared })
    }

    #[inline(always)]
    fn turns(&self) -> ConditionalGuard<'_, Turns> {
        self.turns.lock(self.shared)
    }

    #[inline(always)]
    fn access(&self) -> Access {
        // Relaxed, here and below: it is this rank's own; threads that use one window at once order their calls
        // (MPI 5.0 §12.7).
        Access::from(self.access.load(Ordering::Relaxed))
    }

    #[inline(always)]
    fn set_access(&self, access: Access) {
        self.access.store(access as u8, Ordering::Relaxed);
    }

    #[inline(always)]
    fn hold_of(&self, rank: u32) -> Hold {
        Hold::from(self.holds[rank as usize].load(Ordering::Relaxed))
    }

    #[inline(always)]
    fn set_hold(&self, rank: u32, hold: Hold) {
        self.holds[rank as usize].store(hold as u8, Ordering::Relaxed);
    }

    /// Whether an operation may access the memory of `rank`, a member. Of an epoch that begins with it,
    /// [`check_access`](Self::check_access) knows.
    #[inline(always)]
    #[must_use]
    pub fn allows(&self, rank: u32) -> bool {
        match self.access() {
            Access::LockedAll | Access::Fence => true,
            Access::Locked | Access::Started => self.hold_of(rank) != Hold::None,
            Access::None | Access::AfterFence => false,
        }
    }

    /// Whether the window is between two fences, at least until an epoch of another kind begins.
    #[must_use]
    pub fn is_fenced(&self) -> bool {
        matches!(self.access(), Access::AfterFence | Access::Fence)
    }

    /// Checks that an operation may access `rank`'s memory.
    ///
    /// # Errors
    /// [`Error::RmaSync`] if no epoch allows it.
    #[inline]
    pub fn check_access(&self, rank: u32) -> Result<()> {
        match self.access() {
            Access::LockedAll | Access::Fence => Ok(()),
            Access::AfterFence => {
                self.set_access(Access::Fence);
                Ok(())
            }
            Access::Locked | Access::Started if self.hold_of(rank) != Hold::None => Ok(()),
            Access::Locked => Err(wrong("the operation's target is not locked by this rank (MPI_Win_lock)")),
            Access::Started => Err(wrong("the operation's target is not in the group of MPI_Win_start")),
            Access::None => Err(wrong(
                "an operation outside of every access epoch; open one with MPI_Win_fence, MPI_Win_start, MPI_Win_lock or MPI_Win_lock_all",
            )),
        }
    }

    /// Checks that a request-based operation, a flush or the like may be called for `rank`,
    /// or for all with `None`: a lock is held.
    ///
    /// # Errors
    /// [`Error::RmaSync`] outside of a passive-target epoch.
    #[inline(always)]
    pub fn check_passive(&self, rank: Option<u32>) -> Result<()> {
        match (self.access(), rank) {
            (Access::Locked | Access::LockedAll, None) => Ok(()),
            (_, Some(rank)) if self.is_passive(rank) => Ok(()),
            (access, _) => Err(not_locked(access)),
        }
    }

    /// Whether this rank has locked `rank`, a member, alone or with all others.
    #[inline(always)]
    #[must_use]
    pub fn is_passive(&self, rank: u32) -> bool {
        match self.access() {
            Access::LockedAll => true,
            Access::Locked => self.hold_of(rank) != Hold::None,
            _ => false,
        }
    }

    /// Checks that a fence may be called, and returns what to do when it is over.
    ///
    /// # Errors
    /// [`Error::RmaSync`] within an epoch of another kind.
    pub fn check_fence(&self) -> Result<()> {
        match self.access() {
            Access::None | Access::AfterFence | Access::Fence if self.turns().exposed.is_none() => Ok(()),
            Access::None | Access::AfterFence | Access::Fence => {
                Err(wrong("MPI_Win_fence between MPI_Win_post and MPI_Win_wait"))
            }
            Access::Started => Err(wrong("MPI_Win_fence between MPI_Win_start and MPI_Win_complete")),
            Access::Locked | Access::LockedAll => Err(wrong("MPI_Win_fence while a lock is held")),
        }
    }

    /// A fence is over. `succeeds`: operations may follow (no MPI_MODE_NOSUCCEED).
    pub fn fenced(&self, succeeds: bool) {
        self.set_access(if succeeds { Access::AfterFence } else { Access::None });
    }

    fn check_none(&self) -> Result<()> {
        match self.access() {
            Access::None | Access::AfterFence => Ok(()),
            Access::Fence => {
                Err(wrong("an epoch of MPI_Win_fence is open; end it with a fence with MPI_MODE_NOSUCCEED"))
            }
            Access::Started => Err(wrong("an epoch of MPI_Win_start is open; end it with MPI_Win_complete")),
            Access::Locked => Err(wrong("an epoch of MPI_Win_lock is open; end it with MPI_Win_unlock")),
            Access::LockedAll => {
                Err(wrong("an epoch of MPI_Win_lock_all is open; end it with MPI_Win_unlock_all"))
            }
        }
    }

    /// Checks that MPI_Win_start may be called, and returns a place for its targets.
    ///
    /// # Errors
    /// [`Error::RmaSync`] if an access epoch is open.
    pub fn check_start(&self) -> Result<Vec<u32>> {
        self.check_none()?;
        Ok(core::mem::take(&mut self.turns().started))
    }

    /// MPI_Win_start is over: its epoch is open at `targets`.
    pub fn started(&self, targets: Vec<u32>) {
        targets.iter().for_each(|rank| self.set_hold(*rank, Hold::Started));
        self.turns().started = targets;
        self.set_access(Access::Started);
    }

    /// MPI_Win_complete begins; returns the targets.
    ///
    /// # Errors
    /// [`Error::RmaSync`] without MPI_Win_start.
    pub fn complete(&self) -> Result<Vec<u32>> {
        if self.access() != Access::Started {
            return Err(wrong("MPI_Win_complete without MPI_Win_start"));
        }
        let targets = core::mem::take(&mut self.turns().started);
        targets.iter().for_each(|rank| self.set_hold(*rank, Hold::None));
        self.set_access(Access::None);
        Ok(targets)
    }

    /// MPI_Win_complete is over. The next MPI_Win_start has the place of its targets again.
    pub fn completed(&self, mut targets: Vec<u32>) {
        targets.clear();
        self.turns().started = targets;
    }

    /// MPI_Win_post begins, for `origins` ranks; `sole` if that is one.
    ///
    /// # Errors
    /// [`Error::RmaSync`] if an exposure epoch is open.
    pub fn post(&self, origins: usize, sole: Option<u32>) -> Result<()> {
        if self.access() == Access::Fence {
            return self.check_none();
        }
        let mut turns = self.turns();
        if turns.exposed.is_some() {
            return Err(wrong("an epoch of MPI_Win_post is open; end it with MPI_Win_wait"));
        }
        turns.exposed = Some(origins);
        turns.sole_origin = sole;
        Ok(())
    }

    /// The ranks for which the window is exposed.
    ///
    /// # Errors
    /// [`Error::RmaSync`] without MPI_Win_post.
    pub fn exposed(&self) -> Result<usize> {
        self.turns().exposed.ok_or(wrong("MPI_Win_wait or MPI_Win_test without MPI_Win_post"))
    }

    /// The rank for which the window is exposed, if that is one rank: for people alone, who ask whom a wait is for.
    pub fn sole_origin(&self) -> Option<u32> {
        self.turns().sole_origin
    }

    /// The exposure epoch is over.
    pub fn unexpose(&self) {
        self.turns().exposed = None;
    }

    /// Whether `rank`, a member, may be locked by itself.
    #[inline(always)]
    #[must_use]
    pub fn may_lock(&self, rank: u32) -> bool {
        match self.access() {
            Access::None | Access::AfterFence => true,
            Access::Locked => self.hold_of(rank) == Hold::None,
            Access::Fence | Access::Started | Access::LockedAll => false,
        }
    }

    /// Checks that `rank` may be locked by itself.
    ///
    /// # Errors
    /// [`Error::RmaSync`] if it is locked by this rank, or an epoch of another kind is open.
    pub fn check_lock(&self, rank: u32) -> Result<()> {
        match self.access() {
            _ if self.may_lock(rank) => Ok(()),
            Access::Locked => Err(wrong("this rank has locked the target already")),
            _ => self.check_none(),
        }
    }

    /// `rank` has been locked.
    #[inline(always)]
    pub fn locked(&self, rank: u32, hold: Hold) {
        self.turns().locked += 1;
        self.set_hold(rank, hold);
        self.set_access(Access::Locked);
    }

    /// How `rank`, a member, is locked by itself; `None` if it is not.
    #[inline(always)]
    #[must_use]
    pub fn lock_of(&self, rank: u32) -> Option<Hold> {
        let hold = self.hold_of(rank);
        (self.access() == Access::Locked && hold != Hold::None).then_some(hold)
    }

    /// How `rank` is locked.
    ///
    /// # Errors
    /// [`Error::RmaSync`] if it is not, or by MPI_Win_lock_all.
    pub fn check_unlock(&self, rank: u32) -> Result<Hold> {
        self.lock_of(rank).ok_or_else(|| match self.access() {
            Access::LockedAll => {
                wrong("MPI_Win_unlock in an epoch of MPI_Win_lock_all; end it with MPI_Win_unlock_all")
            }
            _ => wrong("MPI_Win_unlock of a rank that this one has not locked"),
        })
    }

    /// `rank` has been unlocked.
    #[inline(always)]
    pub fn unlocked(&self, rank: u32) {
        let mut turns = self.turns();
        turns.locked -= 1;
        self.set_hold(rank, Hold::None);
        if turns.locked == 0 {
            self.set_access(Access::None);
        }
    }

    /// Checks that all ranks may be locked at once.
    ///
    /// # Errors
    /// [`Error::RmaSync`] if an access epoch is open.
    pub fn check_lock_all(&self) -> Result<()> {
        self.check_none()
    }

    /// All ranks have been locked, by `hold`.
    pub fn locked_all(&self, hold: Hold) {
        (0..self.holds.len()).for_each(|rank| self.set_hold(rank as u32, hold));
        self.set_access(Access::LockedAll);
    }

    /// How all ranks are locked.
    ///
    /// # Errors
    /// [`Error::RmaSync`] if they are not, by MPI_Win_lock_all.
    pub fn check_unlock_all(&self) -> Result<Hold> {
        if self.access() == Access::LockedAll {
            return Ok(self
                .holds
                .first()
                .map_or(Hold::None, |hold| Hold::from(hold.load(Ordering::Relaxed))));
        }
        Err(wrong("MPI_Win_unlock_all without MPI_Win_lock_all"))
    }

    /// All ranks have been unlocked.
    pub fn unlocked_all(&self) {
        (0..self.holds.len()).for_each(|rank| self.set_hold(rank as u32, Hold::None));
        self.set_access(Access::None);
    }

    /// Checks that the window may be freed.
    ///
    /// # Errors
    /// [`Error::RmaSync`] within an epoch.
    pub fn check_free(&self) -> Result<()> {
        if self.turns().exposed.is_some() {
            return Err(wrong("an epoch of MPI_Win_post is open; end it with MPI_Win_wait"));
        }
        match self.access() {
            // What a fence has opened, the barrier of MPI_Win_free closes; that the program should have done so, the
            // checks of `--check` say.
            Access::Fence => Ok(()),
            _ => self.check_none(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn epochs() -> Epochs {
        Epochs::new(3, true).expect("memory")
    }

    fn start(epochs: &Epochs, targets: &[u32]) -> Result<()> {
        let mut place = epochs.check_start()?;
        assert!(place.is_empty(), "the targets of an epoch that is over: {place:?}");
        place.extend(targets);
        epochs.started(place);
        Ok(())
    }

    fn complete(epochs: &Epochs) -> Vec<u32> {
        let targets = epochs.complete().unwrap();
        epochs.completed(targets.clone());
        targets
    }

    #[test]
    fn an_operation_needs_an_epoch_that_has_its_target() {
        let e = epochs();
        assert!(e.check_access(0).is_err());
        e.check_fence().unwrap();
        e.fenced(true);
        e.check_access(2).unwrap();
        e.check_fence().unwrap();
        e.fenced(false);
        assert!(e.check_access(2).is_err());
        start(&e, &[1]).unwrap();
        e.check_access(1).unwrap();
        assert!(e.check_access(0).is_err() && e.check_passive(Some(1)).is_err());
        assert_eq!(complete(&e), [1]);
        e.check_lock(2).unwrap();
        e.locked(2, Hold::Shared);
        e.check_access(2).unwrap();
        e.check_passive(Some(2)).unwrap();
        assert!(e.check_access(1).is_err() && e.check_passive(Some(1)).is_err());
        assert_eq!(e.check_unlock(2).unwrap(), Hold::Shared);
        e.unlocked(2);
        e.check_free().unwrap();
    }

    #[test]
    fn a_fence_without_operations_gives_way_to_any_other_epoch() {
        let e = epochs();
        e.fenced(true);
        e.check_lock(0).unwrap();
        e.check_lock_all().unwrap();
        start(&e, &[]).unwrap();
        complete(&e);
        e.fenced(true);
        e.check_access(0).unwrap();
        assert!(e.check_lock(0).is_err() && e.check_lock_all().is_err() && start(&e, &[]).is_err());
        assert!(e.post(1, None).is_err());
    }

    #[test]
    fn epochs_of_two_kinds_do_not_nest_and_none_is_closed_that_is_not_open() {
        let e = epochs();
        assert!(e.complete().is_err() && e.exposed().is_err());
        assert!(e.check_unlock(0).is_err() && e.check_unlock_all().is_err());
        e.locked(0, Hold::Exclusive);
        assert!(e.check_lock(0).is_err() && e.check_lock_all().is_err() && e.check_fence().is_err());
        e.check_lock(1).unwrap();
        e.locked(1, Hold::Shared);
        e.unlocked(0);
        assert!(e.check_free().is_err() && e.check_unlock_all().is_err());
        e.unlocked(1);
        e.locked_all(Hold::Shared);
        assert!(e.check_unlock(0).is_err() && e.check_fence().is_err());
        assert_eq!(e.check_unlock_all().unwrap(), Hold::Shared);
        e.unlocked_all();
        // Exposure is beside access.
        e.post(2, None).unwrap();
        assert!(e.post(1, None).is_err() && e.check_fence().is_err() && e.check_free().is_err());
        start(&e, &[0]).unwrap();
        assert_eq!(e.exposed().unwrap(), 2);
        e.unexpose();
        complete(&e);
    }
}
