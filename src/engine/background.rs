//! Operations that are more than one message and go on while their user does something else: nonblocking collectives.
//!
//! Whoever drives progress moves them on; each step starts messages or takes the outcome of finished ones, and never waits.

use crate::engine::Engine;
use crate::sync::{AtomicUsize, Mutex, Ordering};
use std::sync::{Arc, PoisonError};

/// An operation in the background.
pub trait Background: Send + Sync {
    /// Moves it on as far as it gets without waiting; whether it is over. Called by one thread at a time.
    fn advance(&self, engine: &Engine) -> bool;
}

/// The operations of an engine that are not over.
#[derive(Default)]
pub(crate) struct Backgrounds {
    /// How many, so that progress without any takes no lock.
    count: AtomicUsize,
    list: Mutex<Vec<Arc<dyn Background>>>,
}

impl Engine {
    /// Begins an operation: at once as far as it gets, the rest as progress is made.
    pub fn in_background(&self, operation: Arc<dyn Background>) {
        let mut list = self.backgrounds.list.lock().unwrap_or_else(PoisonError::into_inner);
        if !operation.advance(self) {
            list.push(operation);
            // Relaxed: a hint; the lock publishes the list.
            self.backgrounds.count.store(list.len(), Ordering::Relaxed);
        }
    }

    /// Moves on what is in the background. Whether something ended.
    #[inline]
    pub(super) fn advance_background(&self) -> bool {
        self.has_background() && self.advance_all()
    }

    /// Whether anything is in the background.
    #[inline(always)]
    pub fn has_background(&self) -> bool {
        // Relaxed: as in `in_background`; whoever waits for an operation that it began has seen its own store.
        self.backgrounds.count.load(Ordering::Relaxed) > 0
    }

    /// How many operations are in the background.
    pub(crate) fn backgrounds(&self) -> u64 {
        // Relaxed: a sample.
        self.backgrounds.count.load(Ordering::Relaxed) as u64
    }

    #[cold]
    fn advance_all(&self) -> bool {
        // Held by who begins one; it moves on what it begins, and the next look comes soon.
        let Ok(mut list) = self.backgrounds.list.try_lock() else { return false };
        let before = list.len();
        list.retain(|operation| !operation.advance(self));
        self.backgrounds.count.store(list.len(), Ordering::Relaxed);
        let ended = list.len() < before;
        drop(list);
        if ended {
            self.something_happened();
        }
        ended
    }
}
