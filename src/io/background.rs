//! Accesses that go on while their caller does something else: performed by threads of the process, which begin with
//! the first of them. Short ones that wait for nothing are over before they would have reached a thread: their caller
//! performs them (docs/decisions/0025).

use super::access::{Access, Elements, Transfer};
use super::file::File;
use super::file_events::{BackgroundObserver, ObservedAccess};
use crate::comm::lock;
use crate::sync::{Arc, Condvar, Mutex, PublishedFlag};
use std::collections::VecDeque;

/// Threads at most for files that wait for storage devices alone.
const THREADS: usize = 4;

/// Bytes that the caller moves itself at most.
const SHORT: u64 = 1 << 16;

/// An access in the background.
#[derive(Debug, Default)]
pub struct BackgroundAccess {
    over: PublishedFlag,
    outcome: Mutex<Transfer>,
    /// Until its end is reported.
    observer: Mutex<Option<BackgroundObserver>>,
}

impl BackgroundAccess {
    /// One that is over already.
    #[must_use]
    pub(super) fn done(outcome: Transfer, observer: Option<BackgroundObserver>) -> Arc<Self> {
        let (over, outcome) = (PublishedFlag::new(true), Mutex::new(outcome));
        Arc::new(Self { over, outcome, observer: Mutex::new(observer) })
    }

    /// Whether it is over.
    #[must_use]
    pub fn is_over(&self) -> bool {
        // "file access" edge, pairs with `finish`: what was read is in the buffer, and the outcome is there.
        self.over.is_set()
    }

    /// What became of it, once it is over. The first time, the end is emitted to the file's listeners.
    pub fn outcome(&self) -> Transfer {
        let outcome = lock(&self.outcome).clone();
        let observer = lock(&self.observer).take();
        if let Some(BackgroundObserver { access, comm }) = observer {
            access.complete(&comm, &outcome);
        }
        outcome
    }

    fn finish(&self, outcome: Transfer) {
        *lock(&self.outcome) = outcome;
        // "file access" edge, pairs with `is_over`.
        self.over.set(true);
    }
}

type Job = Box<dyn FnOnce() + Send>;

/// The name of a thread that accesses files, by which a launcher knows it.
pub const FILE_THREAD: &str = "perusal-io";

/// The threads that access files in the background, and the accesses that wait for one.
struct Pool {
    /// Threads at most.
    most: usize,
    state: Mutex<State>,
    work: Condvar,
}

struct State {
    jobs: VecDeque<Job>,
    idle: usize,
    threads: usize,
}

static FILES: Pool = Pool::of(THREADS);
/// An access to a stream may wait for anybody, so it gets a thread whatever others wait for.
static STREAMS: Pool = Pool::of(usize::MAX);

impl Pool {
    const fn of(most: usize) -> Self {
        let state = State { jobs: VecDeque::new(), idle: 0, threads: 0 };
        Self { most, state: Mutex::new(state), work: Condvar::new() }
    }

    /// Has a thread perform `job`; the caller if there ought to be one more thread and can be none.
    fn perform(&'static self, job: Job) {
        let mut state = lock(&self.state);
        state.jobs.push_back(job);
        if state.idle >= state.jobs.len() {
            self.work.notify_one();
            return;
        }
        if state.threads == self.most {
            return;
        }
        if spawn(|| self.serve()) {
            state.threads += 1;
        } else {
            let job = state.jobs.pop_back();
            drop(state);
            job.into_iter().for_each(|job| job());
        }
    }

    fn serve(&self) {
        let mut state = lock(&self.state);
        loop {
            match state.jobs.pop_front() {
                Some(job) => {
                    drop(state);
                    job();
                    state = lock(&self.state);
                }
                None => {
                    state.idle += 1;
                    state = self.work.wait(state).unwrap_or_else(std::sync::PoisonError::into_inner);
                    state.idle -= 1;
                }
            }
        }
    }
}

/// Starts a thread on which no signal handler of the program runs. One signal that comes of what the thread itself does
/// is not blocked: the kernel would end the program.
fn spawn(body: impl FnOnce() + Send + 'static) -> bool {
    // SAFETY: fills a set of signals and exchanges this thread's mask, which a new thread inherits, for it;
    // then puts the old one back.
    unsafe {
        let (mut all, mut old) = (core::mem::zeroed(), core::mem::zeroed());
        libc::sigfillset(&raw mut all);
        libc::sigdelset(&raw mut all, libc::SIGBUS);
        libc::pthread_sigmask(libc::SIG_SETMASK, &raw const all, &raw mut old);
        let spawned = std::thread::Builder::new().name(FILE_THREAD.into()).spawn(body).is_ok();
        libc::pthread_sigmask(libc::SIG_SETMASK, &raw const old, core::ptr::null_mut());
        spawned
    }
}

impl File {
    /// Whether an access is short and waits neither for a lock nor for anything outside of memory.
    fn is_quick(&self, access: &Access) -> bool {
        access.bytes <= SHORT
            && !self.is_atomic()
            && !self.is_stream()
            && access.view.runs(access.at, access.bytes).next().is_some_and(|(offset, len)| {
                len == access.bytes && self.descriptor().is_in_memory(access.direction, offset, len)
            })
    }

    /// Performs an access in the background.
    pub(super) fn start(
        self: Arc<Self>,
        access: Access,
        elements: Elements,
        observed: Option<ObservedAccess>,
        over: impl FnOnce() + Send + 'static,
    ) -> Arc<BackgroundAccess> {
        let comm = self.comm.clone();
        let observer = |access| BackgroundObserver { access, comm };
        if access.bytes == 0 || access.view.parts.representation.is_users() || self.is_quick(&access) {
            let (outcome, observed) = self.perform_observed(&access, &elements, observed);
            return BackgroundAccess::done(outcome, observed.map(observer));
        }
        let operation = Arc::new(BackgroundAccess::default());
        let theirs = operation.clone();
        let pool = if self.is_stream() { &STREAMS } else { &FILES };
        pool.perform(Box::new(move || {
            let (outcome, observed) = self.perform_observed(&access, &elements, observed);
            *lock(&theirs.observer) = observed.map(observer);
            // A thread that learns of the end may close the file, which must be nobody else's then.
            drop((access, elements, self));
            theirs.finish(outcome);
            over();
        }));
        operation
    }

    /// Performs an access, and notes for listeners what became of it.
    fn perform_observed(
        &self,
        access: &Access,
        elements: &Elements,
        observed: Option<ObservedAccess>,
    ) -> (Transfer, Option<ObservedAccess>) {
        match observed {
            Some(observed) => {
                let (transfer, observed) = observed.perform_silently(|| self.perform(access, elements));
                (transfer, Some(observed))
            }
            None => (self.perform(access, elements), None),
        }
    }
}
