//! Opening and closing epochs (MPI 5.0 §12.5).

use super::epoch::Hold;
use super::lock::Ticket;
use super::window::Window;
use crate::arch::clock::now;
use crate::comm::Group;
use crate::engine::{CallAbout, Engine, describing};
use crate::error::{Error, Result};
use crate::events::{Event, WindowSync};
use crate::shm::telemetry::{LockAbout, Wait, Waiting};
use crate::sync::{AtomicU64, Ordering, SleepMark, fence, has_sleepers, take_sleepers};

/// Flushes and the like of which one polls: together they take about as long as the poll.
const CALLS_PER_POLL: u32 = 64;

/// A lock of MPI_Win_lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LockKind {
    /// MPI_LOCK_SHARED.
    Shared,
    /// MPI_LOCK_EXCLUSIVE.
    Exclusive,
}

/// What the program asserts of a synchronisation call, so that less needs to be done.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Assert {
    /// MPI_MODE_NOCHECK.
    pub no_check: bool,
    /// MPI_MODE_NOSUCCEED.
    pub no_succeed: bool,
}

impl Window {
    /// Waits until `done`, and runs progress meanwhile.
    /// `mark` says that this rank sleeps, and `peer` for whom it waits now.
    fn wait(
        &self,
        engine: &Engine,
        kind: Waiting,
        peer: impl Fn() -> Option<u32>,
        mark: SleepMark<'_>,
        mut done: impl FnMut() -> bool,
    ) -> Result<()> {
        if done() {
            return Ok(());
        }
        // Asked no more once it has said yes: to be granted a lock is something that happens once.
        let (mut over, mut marked) = (false, false);
        let since = now();
        let why = || Some(Wait { kind, peer: peer(), tag: None, context: self.context(), since });
        let result = engine.progress().wait_for_word(why, |sleeps| {
            // Window rule 2.
            if sleeps {
                mark.set(engine.fences);
                marked = true;
            }
            over = over || done();
            over
        });
        // Others look at the mark's line: it is not taken from them without need.
        if marked {
            mark.clear();
        }
        result
    }

    /// Wakes this member if it sleeps: a word that it may wait for has changed.
    fn wake(&self, engine: &Engine, rank: u32) {
        engine.fences.light_barrier();
        let marks = self.control.member(rank).marks();
        if has_sleepers(marks) {
            take_sleepers(core::iter::once(marks), |_| engine.progress().wake_peer(self.world(rank)));
        }
    }

    /// MPI_Win_fence: all members call it.
    ///
    /// # Errors
    /// [`Error::RmaSync`] within an epoch of another kind; those of the messages.
    pub fn fence(&self, engine: &Engine, assert: Assert) -> Result<()> {
        self.epochs.check_fence()?;
        self.synchronize(WindowSync::Fence, None, Hold::None, |_| {
            self.barrier(engine)?;
            self.epochs.fenced(!assert.no_succeed);
            if !assert.no_succeed {
                self.epoch_event(Event::WinFenceEpoch, None);
            }
            Ok(())
        })
    }

    /// Calls `with` with the rank in the window of each member of a group.
    ///
    /// # Errors
    /// [`Error::Group`] at the first member that the window does not have.
    #[inline]
    fn each_rank_of(&self, group: &Group, mut with: impl FnMut(u32)) -> Result<()> {
        group.iter().try_for_each(|world| {
            let rank = self.group().rank_of(world);
            with(rank.ok_or(Error::Group("a member of the group is not in the window's"))?);
            Ok(())
        })
    }

    /// MPI_Win_post: lets the members of `origins` access this member's memory.
    ///
    /// # Errors
    /// [`Error::RmaSync`] if an exposure epoch is open; [`Error::Group`] for a member that the window does not have.
    pub fn post(&self, engine: &Engine, origins: &Group) -> Result<()> {
        let mut last = None;
        self.each_rank_of(origins, |origin| last = Some(origin))?;
        self.epochs.post(origins.size() as usize, last.filter(|_| origins.size() == 1))?;
        self.synchronize(WindowSync::Post, None, Hold::None, |_| {
            self.epoch_event(Event::WinExposeBegin, None);
            self.each_rank_of(origins, |origin| self.post_to(engine, origin))
        })
    }

    fn post_to(&self, engine: &Engine, origin: u32) {
        self.control.posts(origin, self.rank()).add_alone();
        self.wake(engine, origin);
    }

    /// MPI_Win_start: waits until the members of `targets` have exposed their memory.
    /// Where one of them has died, there is no epoch.
    ///
    /// # Errors
    /// [`Error::RmaSync`] if an access epoch is open; [`Error::Group`] for a member that the window does not have;
    /// [`Error::RankFailed`].
    pub fn start(&self, engine: &Engine, targets: &Group) -> Result<()> {
        let mut ranks = self.epochs.check_start()?;
        self.each_rank_of(targets, |target| ranks.push(target))?;
        self.synchronize(WindowSync::Start, None, Hold::None, |_| {
            ranks.iter().try_for_each(|target| self.start_at(engine, *target))?;
            self.epochs.started(ranks);
            Ok(())
        })
    }

    fn start_at(&self, engine: &Engine, target: u32) -> Result<()> {
        let seen = &self.seen_posts[target as usize];
        // Relaxed, twice: only this member's own calls change it, one after the other.
        let wanted = seen.load(Ordering::Relaxed).wrapping_add(1);
        seen.store(wanted, Ordering::Relaxed);
        let posts = self.control.posts(self.rank(), target);
        // A target does not post twice before this member has completed.
        let exposed = || posts.since(wanted) == 0;
        let mark = self.control.member(self.rank()).mark_of_start();
        self.wait(engine, Waiting::Epoch, || Some(self.world(target)), mark, exposed)?;
        self.epoch_event(Event::WinAccessBegin, Some(target));
        Ok(())
    }

    /// MPI_Win_complete: the accesses since MPI_Win_start are done.
    ///
    /// # Errors
    /// [`Error::RmaSync`] without MPI_Win_start.
    pub fn complete(&self, engine: &Engine) -> Result<()> {
        let targets = self.epochs.complete()?;
        self.synchronize(WindowSync::Complete, None, Hold::None, |_| {
            targets.iter().for_each(|target| self.complete_at(engine, *target));
            self.epochs.completed(targets);
            Ok(())
        })
    }

    fn complete_at(&self, engine: &Engine, target: u32) {
        self.control.member(target).completed.add();
        self.epoch_event(Event::WinAccessEnd, Some(target));
        self.wake(engine, target);
    }

    /// Whether all origins of the exposure epoch have completed.
    fn is_completed(&self, origins: usize) -> bool {
        // Relaxed: only this member's own calls change it, one after the other.
        let seen = self.seen_completions.load(Ordering::Relaxed);
        self.control.member(self.rank()).completed.since(seen) as usize >= origins
    }

    fn unexpose(&self, origins: usize) {
        // Relaxed, twice: see `is_completed`.
        let seen = self.seen_completions.load(Ordering::Relaxed);
        self.seen_completions.store(seen.wrapping_add(origins as u32), Ordering::Relaxed);
        self.epochs.unexpose();
        self.epoch_event(Event::WinExposeEnd, None);
    }

    /// MPI_Win_wait: waits until all for which MPI_Win_post exposed the memory have completed. Where one of them has
    /// died, the epoch is over.
    ///
    /// # Errors
    /// [`Error::RmaSync`] without MPI_Win_post; [`Error::RankFailed`].
    pub fn wait_completed(&self, engine: &Engine) -> Result<()> {
        let origins = self.epochs.exposed()?;
        self.synchronize(WindowSync::Wait, None, Hold::None, |_| {
            let mark = self.control.member(self.rank()).mark_of_wait();
            let sole = || self.epochs.sole_origin().map(|origin| self.world(origin));
            let waited = self.wait(engine, Waiting::Epoch, sole, mark, || self.is_completed(origins));
            waited.inspect_err(|_| self.epochs.unexpose())?;
            self.unexpose(origins);
            Ok(())
        })
    }

    /// MPI_Win_test: whether all have completed; if so the epoch is over.
    ///
    /// # Errors
    /// As for [`wait_completed`](Self::wait_completed), at which the epoch is over, and those of progress.
    pub fn test_completed(&self, engine: &Engine) -> Result<bool> {
        let origins = self.epochs.exposed()?;
        self.synchronize(WindowSync::Test, None, Hold::None, |_| {
            if self.is_completed(origins) {
                self.unexpose(origins);
                return Ok(true);
            }
            engine.progress().poll_for_program(false)?;
            let trouble =
                self.comm().collective().is_given_up().then(|| engine.trouble_of(self.comm().collective()));
            match trouble.flatten() {
                Some(error) => {
                    self.epochs.unexpose();
                    Err(error)
                }
                None => Ok(false),
            }
        })
    }

    /// Acquires a lock, and returns the member that had been granted it before;
    /// `id` is that of the call for its events, or 0.
    #[inline(always)]
    pub(super) fn acquire(&self, engine: &Engine, rank: u32, hold: Hold, id: isize) -> Result<Option<u32>> {
        let exclusive = hold == Hold::Exclusive;
        let member = self.control.member(rank);
        let ticket = member.lock.take_ticket(exclusive);
        if !member.lock.is_granted(ticket) {
            self.wait_for_lock(engine, rank, (hold, ticket), id)?;
        }
        let before = if id == 0 { None } else { member.last_holder() };
        self.granted(engine, rank, hold);
        Ok(before)
    }

    /// This member has been granted the lock of `rank`.
    #[inline(always)]
    fn granted(&self, engine: &Engine, rank: u32, hold: Hold) {
        self.control.member(rank).set_last_holder(self.rank());
        self.control.set_hold(rank, self.rank(), hold);
        // The next in the queue may hold a shared lock as well.
        if hold != Hold::Exclusive {
            self.wake_queue(engine, rank);
        }
    }

    #[cold]
    #[inline(never)]
    fn wait_for_lock(
        &self,
        engine: &Engine,
        rank: u32,
        (hold, ticket): (Hold, Ticket),
        id: isize,
    ) -> Result<()> {
        let member = self.control.member(rank);
        let holder = member.last_holder();
        self.lock_event(Event::WinLockWaitBegin, id, Some(rank), hold, holder);
        let mark = self.control.lock_mark(rank, self.rank());
        let granted = || member.lock.is_granted(ticket);
        // It changes while others are granted the lock before this rank: asked for anew at each sleep.
        let others = || self.control.holders(rank).filter(|(member, _)| *member != self.rank());
        let peer = || others().next().map(|(holder, _)| self.world(holder));
        let about = || {
            let holders = others().map(|(holder, _)| self.world(holder)).collect();
            let shared = others().any(|(_, hold)| hold == Hold::Shared);
            CallAbout::Lock(LockAbout { target: Some(self.world(rank)), holders, shared })
        };
        let result = describing(&about, || self.wait(engine, Waiting::Lock, peer, mark, granted));
        self.lock_event(Event::WinLockWaitEnd, id, Some(rank), hold, holder);
        result
    }

    #[inline(always)]
    pub(super) fn release_lock(&self, engine: &Engine, rank: u32, hold: Hold) {
        match hold {
            Hold::Shared | Hold::Exclusive => {
                self.control.set_hold(rank, self.rank(), Hold::None);
                self.control.member(rank).lock.release(hold == Hold::Exclusive);
                self.wake_queue(engine, rank);
            }
            // Nobody takes this lock, so the call itself makes what was stored visible.
            Hold::Unchecked => self.stores.complete(),
            Hold::None | Hold::Started => {}
        }
    }

    /// Wakes who sleeps in the queue of a lock.
    #[inline(always)]
    fn wake_queue(&self, engine: &Engine, rank: u32) {
        engine.fences.light_barrier();
        let marks = self.control.lock_marks(rank);
        if marks.iter().any(has_sleepers) {
            self.wake_marked(engine, marks);
        }
    }

    #[cold]
    #[inline(never)]
    fn wake_marked(&self, engine: &Engine, marks: &[AtomicU64]) {
        take_sleepers(marks.iter(), |member| {
            if member < self.size() as usize {
                engine.progress().wake_peer(self.world(member as u32));
            }
        });
    }

    fn check_lockable(&self) -> Result<()> {
        // Relaxed: as in `set_info`.
        if self.no_locks.load(Ordering::Relaxed) {
            return Err(Error::RmaSync("the window's hints say that it is never locked (no_locks)"));
        }
        Ok(())
    }

    /// MPI_Win_lock without an assertion, if nothing is wrong, and nobody listens, and the lock is free.
    /// `false`: nothing has been done, and the complete function is asked.
    #[inline(always)]
    #[must_use]
    pub fn lock_direct(&self, engine: &Engine, kind: LockKind, rank: i32) -> bool {
        // A negative rank is a large unsigned one.
        let rank = rank as u32;
        let hold = if kind == LockKind::Exclusive { Hold::Exclusive } else { Hold::Shared };
        // Relaxed: as in `set_info`.
        let may = (rank as usize) < self.targets.len()
            && !self.no_locks.load(Ordering::Relaxed)
            && self.epochs.may_lock(rank);
        let is_granted = may && self.control.member(rank).lock.try_acquire(kind == LockKind::Exclusive);
        if is_granted {
            self.granted(engine, rank, hold);
            self.epochs.locked(rank, hold);
        }
        is_granted
    }

    /// MPI_Win_lock.
    ///
    /// # Errors
    /// [`Error::RmaSync`] if this rank is locked already, within an epoch of another kind, or where hints say that
    /// there are no locks; [`Error::WinRank`]; [`Error::RankFailed`].
    #[inline(always)]
    pub fn lock(&self, engine: &Engine, kind: LockKind, rank: i32, assert: Assert) -> Result<()> {
        let rank = self.member(rank)?;
        self.check_lockable()?;
        self.epochs.check_lock(rank)?;
        let hold = match kind {
            _ if assert.no_check => Hold::Unchecked,
            LockKind::Shared => Hold::Shared,
            LockKind::Exclusive => Hold::Exclusive,
        };
        if self.is_observed() {
            let lock = |id| self.lock_as(engine, rank, hold, id);
            return self.synchronize_observed(WindowSync::Lock, Some(rank), hold, lock);
        }
        self.lock_as(engine, rank, hold, 0)
    }

    #[inline(always)]
    fn lock_as(&self, engine: &Engine, rank: u32, hold: Hold, id: isize) -> Result<()> {
        let before = if hold == Hold::Unchecked { None } else { self.acquire(engine, rank, hold, id)? };
        self.epochs.locked(rank, hold);
        self.lock_event(Event::WinLockAcquired, id, Some(rank), hold, before);
        Ok(())
    }

    /// MPI_Win_unlock.
    ///
    /// # Errors
    /// [`Error::RmaSync`] if this member has not locked the rank; [`Error::WinRank`]; those of progress.
    #[inline(always)]
    pub fn unlock(&self, engine: &Engine, rank: i32) -> Result<()> {
        let rank = self.member(rank)?;
        let hold = self.epochs.check_unlock(rank)?;
        if self.is_observed() {
            let unlock = |id| self.unlock_as(engine, rank, hold, id);
            return self.synchronize_observed(WindowSync::Unlock, Some(rank), hold, unlock);
        }
        self.unlock_as(engine, rank, hold, 0)
    }

    /// MPI_Win_unlock, if nothing is wrong, and nobody listens, and it is not its turn to poll.
    /// `false`: nothing has been done, and the complete function is asked.
    #[inline(always)]
    #[must_use]
    pub fn unlock_direct(&self, engine: &Engine, rank: i32) -> bool {
        // A negative rank is a large unsigned one.
        let rank = rank as u32;
        if rank as usize >= self.targets.len() {
            return false;
        }
        let Some(hold) = self.epochs.lock_of(rank) else { return false };
        let is_direct = self.needs_no_poll();
        if is_direct {
            self.epochs.unlocked(rank);
            self.release_lock(engine, rank, hold);
        }
        is_direct
    }

    #[inline(always)]
    fn unlock_as(&self, engine: &Engine, rank: u32, hold: Hold, id: isize) -> Result<()> {
        self.epochs.unlocked(rank);
        self.release_lock(engine, rank, hold);
        self.lock_event(Event::WinLockReleased, id, Some(rank), hold, Some(self.rank()));
        self.poll_now_and_then(engine)
    }

    /// MPI_Win_lock_all: a shared lock at every member.
    ///
    /// # Errors
    /// As for [`lock`](Self::lock).
    pub fn lock_all(&self, engine: &Engine, assert: Assert) -> Result<()> {
        self.check_lockable()?;
        self.epochs.check_lock_all()?;
        let hold = if assert.no_check { Hold::Unchecked } else { Hold::Shared };
        self.synchronize(WindowSync::LockAll, None, hold, |id| {
            let ranks = if assert.no_check { 0..0 } else { 0..self.size() };
            for rank in ranks {
                if let Err(error) = self.acquire(engine, rank, hold, id) {
                    (0..rank).for_each(|locked| self.release_lock(engine, locked, hold));
                    return Err(error);
                }
            }
            self.epochs.locked_all(hold);
            self.lock_event(Event::WinLockAcquired, id, None, hold, None);
            Ok(())
        })
    }

    /// MPI_Win_unlock_all.
    ///
    /// # Errors
    /// [`Error::RmaSync`] without MPI_Win_lock_all.
    pub fn unlock_all(&self, engine: &Engine) -> Result<()> {
        let hold = self.epochs.check_unlock_all()?;
        self.synchronize(WindowSync::UnlockAll, None, hold, |id| {
            self.epochs.unlocked_all();
            for rank in 0..self.size() {
                self.release_lock(engine, rank, hold);
            }
            self.lock_event(Event::WinLockReleased, id, None, hold, None);
            Ok(())
        })
    }

    /// Counts a call, unless it is one that polls ([`Self::poll_now_and_then`]): `false` then.
    #[inline(always)]
    fn needs_no_poll(&self) -> bool {
        // Relaxed: a call that is not counted is no harm.
        let left = self.calls_before_poll.load(Ordering::Relaxed);
        if left > 0 {
            self.calls_before_poll.store(left - 1, Ordering::Relaxed);
        }
        left > 0
    }

    /// A program may call a function again and again until another rank has stored something. Some of these calls poll,
    /// so that messages make progress meanwhile, and ranks that need the CPU get it.
    #[inline(always)]
    fn poll_now_and_then(&self, engine: &Engine) -> Result<()> {
        if self.needs_no_poll() {
            return Ok(());
        }
        self.calls_before_poll.store(CALLS_PER_POLL - 1, Ordering::Relaxed);
        engine.progress().poll_for_program(false)
    }

    /// MPI_Win_flush, if nothing is wrong, and nobody listens, and nothing is to be done but to make stores visible.
    /// `false`: nothing has been done, and the complete function is asked.
    #[inline(always)]
    #[must_use]
    pub fn flush_direct(&self, rank: i32) -> bool {
        // A negative rank is a large unsigned one.
        let is_member = (rank as u32 as usize) < self.targets.len();
        let is_direct = is_member && self.epochs.is_passive(rank as u32) && self.needs_no_poll();
        if is_direct {
            self.stores.complete();
        }
        is_direct
    }

    /// MPI_Win_flush and its kind, for one member or all: what this member did there is there. Every operation is
    /// complete when it returns, so that only the processor's store buffer is left.
    ///
    /// # Errors
    /// [`Error::RmaSync`] where no lock is held; [`Error::WinRank`].
    pub fn flush(&self, engine: &Engine, rank: Option<i32>) -> Result<()> {
        let rank = rank.map(|rank| self.member(rank)).transpose()?;
        self.epochs.check_passive(rank)?;
        if self.is_observed() {
            let flush = |_| self.flush_stores(engine);
            return self.synchronize_observed(WindowSync::Flush, rank, Hold::None, flush);
        }
        self.flush_stores(engine)
    }

    #[inline(always)]
    fn flush_stores(&self, engine: &Engine) -> Result<()> {
        self.stores.complete();
        self.poll_now_and_then(engine)
    }

    /// Checks that a request-based operation may be called for `rank`: a lock is held.
    ///
    /// # Errors
    /// [`Error::RmaSync`] where none is; [`Error::WinRank`].
    pub fn check_passive(&self, rank: i32) -> Result<()> {
        let rank = self.member(rank)?;
        self.epochs.check_passive(Some(rank))
    }

    /// MPI_Win_sync: loads and stores before it come before those behind it.
    ///
    /// # Errors
    /// Those of progress.
    pub fn sync(&self, engine: &Engine) -> Result<()> {
        self.synchronize(WindowSync::Sync, None, Hold::None, |_| {
            fence(Ordering::SeqCst);
            self.poll_now_and_then(engine)
        })
    }
}
