//! The progress thread: runs progress while the program's threads compute,
//! if the control variable `progress_thread` asks for it.
//!
//! It takes its turn only while no other thread runs progress, for one poll at a time, so that a thread that waits
//! takes over at once. It never sleeps on the doorbell. Between polls that find nothing it spins where every rank has a
//! second CPU, and sleeps for a while elsewhere.

use super::Progress;
use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::sync::{Mutex, MutexGuard, share_slot, spin_loop};
use core::time::Duration;
use std::sync::{OnceLock, PoisonError};
use std::thread::{self, Thread};
use std::time::Instant;

/// A sleep while something is under way: about what waking up costs a thread that computes on the same CPU,
/// twenty times over.
const SHORT_SLEEP: Duration = Duration::from_micros(50);
/// A sleep while nothing is.
const LONG_SLEEP: Duration = Duration::from_micros(200);
/// Its name: as much as the kernel keeps of one (pthread_setname_np(3)).
pub const PROGRESS_THREAD: &str = "perusal-advance";
/// Polls in vain between two looks at the clock.
const POLLS: u32 = 16;

/// The thread of an engine, once there is one.
#[derive(Debug, Default)]
pub(super) struct ProgressThread {
    thread: OnceLock<Thread>,
    /// Whether it may run progress. It keeps the lock for each of its polls.
    may_run: Mutex<bool>,
}

impl ProgressThread {
    fn may_run(&self) -> MutexGuard<'_, bool> {
        self.may_run.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Engine {
    /// Makes the progress thread, which waits until it may run ([`Self::let_progress_thread_run`]).
    /// It stays to the end of the process.
    ///
    /// # Errors
    /// [`Error::Other`] if the system gives no thread.
    ///
    /// # Panics
    /// If only one thread may be inside the engine.
    pub fn start_progress_thread(&'static self) -> Result<()> {
        assert!(self.shared, "the progress thread is a second one");
        // Signals are for the program's threads: the new one inherits that all are blocked.
        let blocked = BlockedSignals::new();
        let made = thread::Builder::new().name(PROGRESS_THREAD.into()).spawn(move || run(self));
        drop(blocked);
        let made = made.map_err(|error| {
            Error::Other(format!(
                "the progress thread cannot be made: {error}; PERUSAL_PROGRESS_THREAD=off does without it"
            ))
        })?;
        let _ = self.progress_thread.thread.set(made.thread().clone());
        Ok(())
    }

    /// Lets the progress thread run, if there is one, or holds it: when this returns it is not inside the engine.
    pub fn let_progress_thread_run(&self, may_run: bool) {
        *self.progress_thread.may_run() = may_run;
        if let Some(thread) = self.progress_thread.thread.get() {
            thread.unpark();
        }
    }
}

/// All signals are blocked in this thread until the end of the value's life.
struct BlockedSignals(libc::sigset_t);

impl BlockedSignals {
    fn new() -> Self {
        // SAFETY: a set of signals is plain data, which the next call fills.
        let (mut all, mut before) = unsafe { (core::mem::zeroed(), core::mem::zeroed()) };
        // SAFETY: two live sets, the first of which is only read once it is full;
        // the calls change this thread's mask alone.
        unsafe {
            libc::sigfillset(&raw mut all);
            libc::pthread_sigmask(libc::SIG_SETMASK, &raw const all, &raw mut before);
        }
        Self(before)
    }
}

impl Drop for BlockedSignals {
    fn drop(&mut self) {
        // SAFETY: a live set, which `new` has filled; no old mask is asked for.
        unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &raw const self.0, core::ptr::null_mut()) };
    }
}

fn run(engine: &'static Engine) {
    // It is none of the threads by which ranks are found to outnumber CPUs.
    share_slot();
    let (progress, shape) = (engine.progress(), engine.config().shape());
    let spins = u64::from(shape.usable_cpus) >= 2 * u64::from(shape.ranks);
    let mut last = Instant::now();
    loop {
        let may_run = engine.progress_thread.may_run();
        if !*may_run {
            drop(may_run);
            thread::park();
            continue;
        }
        let happened = (0..POLLS).any(|_| {
            let happened = progress.poll_for_others();
            if happened == Some(false) {
                spin_loop();
            }
            happened == Some(true)
        });
        drop(may_run);
        if happened {
            last = Instant::now();
            continue;
        }
        let is_under_way = progress.has_background() || progress.has_backlog::<true>();
        if !(spins && is_under_way && last.elapsed() < engine.config().spin()) {
            thread::park_timeout(if is_under_way { SHORT_SLEEP } else { LONG_SLEEP });
        }
    }
}

impl Progress<'_> {
    /// Runs progress once and says whether anything happened; `None` if another thread runs it.
    fn poll_for_others(self) -> Option<bool> {
        let engine = self.engine;
        let mut poller = engine.poller.try_lock(true)?;
        let happened = self.advance(&mut poller, false);
        if !happened && engine.may_have_failures() {
            engine.notice_failures();
        }
        drop(poller);
        engine.waiters.pass_on();
        Some(happened)
    }
}
