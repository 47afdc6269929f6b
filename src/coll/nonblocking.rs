//! Nonblocking collectives: the algorithms of the blocking ones, resumed whenever the engine makes progress.

use crate::comm::{Comm, lock};
use crate::engine::BackgroundOperation;
use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::sync::{AtomicBool, Mutex, Ordering};
use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll, Waker};
use std::sync::Arc;

/// A future that owns what it works on.
type Work = Pin<Box<dyn Future<Output = Result<()>>>>;

/// A collective in the background.
pub struct NonblockingOperation {
    work: Mutex<Option<Work>>,
    over: AtomicBool,
    error: Mutex<Option<Error>>,
    /// The communicator whose background team it may use.
    comm: Option<Arc<Comm>>,
}

// SAFETY: the work is polled under its lock only, so by one thread at a time, and holds nothing that is bound to a thread (`new` takes
// no other).
unsafe impl Send for NonblockingOperation {}
// SAFETY: what is shared lies behind locks or is atomic.
unsafe impl Sync for NonblockingOperation {}

impl NonblockingOperation {
    /// Makes an operation that `work` performs. It makes progress once it is given to [`crate::engine::Progress::start_background`].
    ///
    /// # Safety
    /// `work` holds nothing that is bound to a thread: addresses, cells of its own, and what is `Send`. It uses the background team of `comm`
    /// alone, if of any.
    #[must_use]
    pub unsafe fn new(work: Work, comm: Option<Arc<Comm>>) -> Self {
        Self { work: Mutex::new(Some(work)), over: AtomicBool::new(false), error: Mutex::new(None), comm }
    }

    /// Returns whether the operation is over.
    #[must_use]
    pub fn is_over(&self) -> bool {
        // Acquire: pairs with Release in `advance`, publishes the outcome and what the operation wrote.
        self.over.load(Ordering::Acquire)
    }

    /// Returns what the operation failed with, once it is over.
    #[must_use]
    pub fn error(&self) -> Option<Error> {
        lock(&self.error).clone()
    }
}

impl BackgroundOperation for NonblockingOperation {
    fn advance(&self, engine: &Engine) -> bool {
        let mut work = lock(&self.work);
        let Some(going) = work.as_mut() else { return true };
        let mut result = going.as_mut().poll(&mut Context::from_waker(Waker::noop()));
        if result.is_pending()
            && let Some(failed) = engine.failed()
        {
            // No message of it will come any more, so it need not be polled; but what is under way may still be written to.
            result = Poll::Ready(Err(failed.clone()));
            core::mem::forget(work.take());
        }
        let Poll::Ready(result) = result else { return false };
        *work = None;
        *lock(&self.error) = result.err();
        // Release: pairs with Acquire in `is_over`.
        self.over.store(true, Ordering::Release);
        true
    }

    fn can_go_on(&self, engine: &Engine) -> bool {
        self.comm.as_ref().is_some_and(|comm| comm.background_team().can_go_on(engine.fences))
    }
}

impl Drop for NonblockingOperation {
    fn drop(&mut self) {
        // Messages of an operation that is not over may still come: its memory must stay.
        core::mem::forget(lock(&self.work).take());
    }
}
