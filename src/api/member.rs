//! One rank's engine, as safe Rust may have it.
//!
//! Rules:
//! - **API rule 1 (one entry).** The engine is used by [`Member::perform`] only. It refuses calls from inside an event
//!   callback, for the engine is then in the middle of something, and calls on a rank that is broken or has left.
//! - **API rule 2 (who is inside).** With [`Single`](super::Single), everything that leads to a member is neither
//!   `Send` nor `Sync`, so only the thread that made it is ever inside. With [`Multiple`](super::Multiple), a thread
//!   inside holds `inside` for reading; a thread that holds it for writing knows that no other is inside.
//! - **API rule 3 (broken is inert).** Once waiting has become pointless, requests remain that nobody will end, and
//!   they name buffers of callers. A call that says so returns only after the member was *settled*: nobody is inside,
//!   nobody will be, and no other rank reaches into buffers here. So the buffers may go.
//! - **API rule 4 (an active request keeps its buffer).** Until a request is over or the member settled, its buffer is
//!   borrowed for longer ([`Scope`](super::Scope)), owned by what a leak would leak ([`OwnedSend`](super::OwnedSend),
//!   [`OwnedReceive`](super::OwnedReceive)), or parked here.

use crate::coll::agreement;
use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::events::{Event, EventPayload, Registry, inside_callback};
use crate::p2p::Request;
use crate::shm::{Abort, Job, RankState, contexts};
use crate::sync::{Mutex, OnceLock, PublishedStage, ShardedLock, ShardedLockReadGuard};
use crate::trace::Recording;
use core::any::Any;
use std::collections::HashSet;
use std::path::Path;
use std::sync::{Arc, PoisonError, TryLockError};

const RUNNING: u8 = 0;
const BROKEN: u8 = 1;
const LEFT: u8 = 2;

/// Whether a rank may still use its engine.
pub(super) struct Fate {
    state: PublishedStage,
    why: OnceLock<Error>,
}

impl Fate {
    pub fn new() -> Arc<Self> {
        Arc::new(Self { state: PublishedStage::new(), why: OnceLock::new() })
    }

    /// The rank must not go on; the first reason counts.
    pub fn break_with(&self, why: Error) {
        let _ = self.why.set(why);
        // "fate" edge: publishes the reason to `error`. A rank that has left stays so.
        self.state.advance(RUNNING, BROKEN);
    }

    fn leave(&self) {
        self.state.advance(RUNNING, LEFT);
    }

    /// Why the engine must not be used, if so.
    #[inline]
    fn error(&self) -> Option<Error> {
        // "fate" edge: the reason comes from `break_with`.
        match self.state.get() {
            RUNNING => None,
            LEFT => Some(Error::NotInitialized("a function of a communicator")),
            _ => Some(self.why.get().cloned().unwrap_or(Error::Other("the rank has failed".into()))),
        }
    }
}

/// A request whose owner is gone, with its buffer.
struct Parked {
    request: Request,
    _buffer: Box<dyn Any + Send>,
}

/// A rank's engine and what is kept until it is done with it.
pub(super) struct Member {
    engine: Engine,
    /// As long as the engine.
    _recording: Option<Recording>,
    fate: Arc<Fate>,
    /// Sharded, so that threads that enter do not meet.
    inside: ShardedLock<()>,
    parked: Mutex<Vec<Parked>>,
    /// Contexts of communicators that are open here.
    open: Mutex<HashSet<u32>>,
    /// Those of them whose communicators are dropped.
    closing: Mutex<Vec<u32>>,
}

/// Marks the member as broken if a panic unwinds through it: the engine was in the middle of something.
struct PanicGuard<'a>(&'a Member);

impl Drop for PanicGuard<'_> {
    fn drop(&mut self) {
        self.0.fate.break_with(Error::Intern("a panic inside the engine".into()));
        self.0.job().withdraw();
        if self.0.engine.is_shared() {
            // Other threads may be at work on the buffers that are about to be unwound here.
            crate::error::report(format_args!("a panic inside the engine, which other threads may be using"));
            std::process::abort();
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> crate::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Member {
    /// Joins `job`, and records it: in the file that the launcher has named, or in `trace`,
    /// which whoever made the job has made.
    ///
    /// # Errors
    /// As [`Engine::new`] and [`Recording::start`].
    ///
    /// # Safety
    /// Unless `shared`, whatever leads to the result stays on one thread (API rule 2).
    pub unsafe fn join(
        job: Job,
        shared: bool,
        trace: Option<&Path>,
        fate: Arc<Fate>,
        fatal: Box<dyn Fn(String) + Send + Sync>,
    ) -> Result<Self> {
        let registry = Registry::new(fatal);
        let recording = match trace {
            Some(path) => Some(Recording::start(path, job.rank(), &registry)?),
            None => Recording::of_job(&job, &registry),
        };
        // SAFETY: API rule 2: without `shared`, the caller keeps whatever leads to the engine on one thread.
        let engine = unsafe { Engine::new(job, shared, registry) }?;
        Ok(Self {
            engine,
            _recording: recording,
            fate,
            inside: ShardedLock::default(),
            parked: Mutex::default(),
            open: Mutex::default(),
            closing: Mutex::default(),
        })
    }

    /// Returns the job.
    pub fn job(&self) -> &Job {
        self.engine.job()
    }

    /// Returns the registry of events, which may be used at any time.
    pub fn registry(&self) -> &Arc<crate::events::Registry> {
        self.engine.registry()
    }

    /// Emits the event that the rank has joined, or begins to leave.
    pub fn note(&self, event: Event) {
        self.engine.emit(event, || EventPayload::None);
    }

    /// Runs `operation` on the engine (API rule 1).
    ///
    /// # Errors
    /// Those of the operation; [`Error::InsideCallback`]; why the rank is broken or has left. API rule 3 holds for all
    /// but [`Error::InsideCallback`], where nothing was begun.
    #[inline]
    pub fn perform<R>(&self, operation: impl FnOnce(&Engine) -> Result<R>) -> Result<R> {
        let inside = self.enter()?;
        let guard = PanicGuard(self);
        let result = operation(&self.engine);
        core::mem::forget(guard);
        match result {
            Ok(value) => Ok(value),
            Err(error) => Err(self.failed(inside, error)),
        }
    }

    #[inline]
    fn enter(&self) -> Result<Option<ShardedLockReadGuard<'_, ()>>> {
        if inside_callback() {
            return Err(Error::InsideCallback);
        }
        let inside =
            self.engine.is_shared().then(|| self.inside.read().unwrap_or_else(PoisonError::into_inner));
        match self.fate.error() {
            None => Ok(inside),
            Some(error) => {
                drop(inside);
                self.settle();
                Err(error)
            }
        }
    }

    /// An operation has failed: if that is because waiting has become pointless, the member is broken and settled.
    #[cold]
    fn failed(&self, inside: Option<ShardedLockReadGuard<'_, ()>>, error: Error) -> Error {
        // What makes waiting pointless does not pass, so it can be asked for afterwards.
        let over = self.engine.failed().cloned().map_or_else(|| self.job().check_alive(None), Err);
        drop(inside);
        if let Err(why) = over {
            self.fate.break_with(why);
        }
        if self.fate.error().is_some() {
            self.settle();
        }
        error
    }

    /// What API rule 3 asks for. Not from inside the engine.
    fn settle(&self) {
        // Ends the waits of other threads, now or at their next poll.
        self.engine.fail(self.fate.error().unwrap_or(Error::Intern("settled without a reason".into())));
        self.engine.progress().something_happened();
        let _alone = self.inside.write().unwrap_or_else(PoisonError::into_inner);
        // SAFETY: by API rule 2 nobody else is inside, we are not (our callers have left), and nobody enters any more:
        // `enter` looks at the fate after it has taken the lock.
        unsafe { self.engine.withdraw_buffers() };
    }

    /// The rank fails for a reason of its own, and the whole job with it. Not from inside the engine.
    pub fn give_up(&self, why: Error, code: i32) {
        self.abort(code);
        self.fate.break_with(why);
        if !inside_callback() {
            self.settle();
        }
    }

    /// Takes over a request whose owner does not wait for it; `buffer` is what the request names.
    pub fn park(&self, request: Request, buffer: Box<dyn Any + Send>) {
        lock(&self.parked).push(Parked { request, _buffer: buffer });
    }

    /// Lets go of what is parked and over.
    pub fn reap(&self) {
        let mut parked = core::mem::take(&mut *lock(&self.parked));
        if parked.is_empty() {
            return;
        }
        let reaped = self.perform(|engine| {
            parked.retain(|parked| {
                let over = parked.request.state().is_complete();
                if over {
                    engine.take_outcome(parked.request);
                }
                !over
            });
            Ok(())
        });
        // From inside a callback nothing could be done; on a broken rank nothing need be.
        if matches!(reaped, Ok(()) | Err(Error::InsideCallback)) {
            lock(&self.parked).append(&mut parked);
        }
    }

    /// Takes a context that ranks have agreed on for a new communicator. Two communicators in one would free each
    /// other's channels, so this does not rely on other ranks' being right, or on their doing the same at all.
    ///
    /// # Errors
    /// [`Error::Other`] if no communicator made here can have it.
    pub fn claim(&self, context: u32) -> Result<()> {
        let possible = context.is_multiple_of(2) && context / 2 > contexts::SELF;
        if possible && lock(&self.open).insert(context) {
            return Ok(());
        }
        Err(Error::Other("the ranks of a communicator called different functions to make another one".into()))
    }

    /// Gives back the context of a communicator that nobody has any more.
    pub fn close(&self, context: u32) {
        lock(&self.closing).push(context);
        self.close_dropped();
    }

    /// Closes what has been dropped, if no thread is inside: one that runs progress might have the channel of a message
    /// in its hands. Otherwise it is done later.
    pub fn close_dropped(&self) {
        if inside_callback() {
            return;
        }
        let _alone = match self.inside.try_write() {
            Ok(alone) => alone,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => return,
        };
        if self.fate.error().is_some() {
            return;
        }
        for context in core::mem::take(&mut *lock(&self.closing)) {
            self.engine.close_communicator(context);
            lock(&self.open).remove(&context);
        }
    }

    /// Ends what is parked, waits for all ranks of `world` and leaves the job.
    ///
    /// # Errors
    /// What ended the wait.
    pub fn leave(&self, world: &crate::comm::Comm) -> Result<()> {
        if inside_callback() {
            return Err(Error::InsideCallback);
        }
        self.job().advance(RankState::Finalizing);
        // Dropped when their requests are over, or the member is settled.
        let parked = core::mem::take(&mut *lock(&self.parked));
        let ended = self.perform(|engine| {
            for parked in &parked {
                engine.wait_for_good(parked.request)?;
                engine.take_outcome(parked.request);
            }
            if engine.job().survives() {
                agreement::leave_with_the_living(engine, world)?;
            } else {
                engine.leave(world)?;
            }
            // SAFETY: with several threads no halves are asked for, so there is nothing to look at;
            // with one, it is ours.
            if engine.is_shared() { Ok(()) } else { unsafe { engine.await_writers() } }
        });
        drop(parked);
        ended?;
        self.fate.leave();
        // Requests may be left that their owners forgot.
        self.settle();
        self.job().advance(RankState::Finalized);
        Ok(())
    }

    /// Calls for the end of the job: every rank's waits end with an error.
    pub fn abort(&self, code: i32) {
        self.job().header().set_abort(Abort::by_program(self.engine.rank(), code));
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        // What is parked goes with the member.
        // SAFETY: borrowed mutably, so nobody is inside, and nobody will be.
        unsafe { self.engine.withdraw_buffers() };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn member() -> Member {
        let job = Job::singleton().expect("memory");
        // SAFETY: it stays on this thread.
        unsafe { Member::join(job, false, None, Fate::new(), Box::new(|text| panic!("{text}"))) }
            .expect("engine")
    }

    #[test]
    fn a_context_is_claimed_once_until_it_is_closed() {
        let member = member();
        member.claim(8).unwrap();
        for wrong in [8, 9, 0, 2 * contexts::SELF, 1] {
            assert!(matches!(member.claim(wrong), Err(Error::Other(_))), "{wrong}");
        }
        member.close(8);
        member.claim(8).unwrap();
    }

    #[test]
    fn a_member_that_gave_up_refuses_everything_for_its_reason() {
        let member = member();
        assert_eq!(member.perform(|engine| Ok(engine.rank())), Ok(0));
        member.give_up(Error::Code(5), 5);
        member.give_up(Error::Code(6), 6);
        assert_eq!(member.perform(|engine| Ok(engine.rank())), Err(Error::Code(5)));
        assert_eq!(member.job().header().abort(1).map(|abort| abort.code), Some(5));
    }

    #[test]
    fn a_panic_inside_the_engine_leaves_it_alone() {
        let member = member();
        let panics = || member.perform::<()>(|_| std::panic::resume_unwind(Box::new("quietly")));
        assert!(std::panic::catch_unwind(std::panic::AssertUnwindSafe(panics)).is_err());
        assert!(matches!(member.perform(|_| Ok(())), Err(Error::Intern(_))));
    }
}
