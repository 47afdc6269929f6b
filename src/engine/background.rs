//! Background operations: more than one message each, and in progress while their user does something else (nonblocking
//! collectives).
//!
//! The progress engine advances them. Each step starts messages or takes the outcome of finished ones, and never waits.

use super::Progress;
use crate::engine::Engine;
use crate::shm::telemetry::{MessageAbout, OperationAbout};
use crate::sync::{AtomicUsize, Mutex, MutexGuard, Ordering};
use core::ptr::addr_eq;
use std::sync::{Arc, PoisonError};

/// An operation in the background.
pub trait BackgroundOperation: Send + Sync {
    /// Advances as far as possible without waiting, and returns whether the operation is over.
    /// Called by one thread at a time.
    fn advance(&self, engine: &Engine) -> bool;

    /// Called before the rank sleeps: returns whether the operation can go on. If it cannot, somebody rings this rank's
    /// doorbell when it can, as the arrival of a message does.
    fn can_go_on(&self, _: &Engine) -> bool {
        false
    }

    /// Adds the ranks for which the operation may be waiting, for a report; not those whose messages it awaits.
    fn add_awaited(&self, _: &Engine, _: &mut Vec<MessageAbout>) {}

    /// Returns what it is, for a report, if it is a collective operation of the program's.
    fn about(&self) -> Option<OperationAbout> {
        None
    }
}

/// What is left of an operation that its user has freed, until a message that belongs to it has come or gone.
pub trait PutAside: Send + Sync {
    /// Returns whether it is over, and then has given back what it held; it is asked no more after that.
    fn is_over(&self, engine: &Engine) -> bool;
    /// Returns whether it must be over before the rank leaves the job: a message of the program's.
    fn holds_up_leaving(&self) -> bool {
        false
    }
}

/// The operations of an engine that are not over.
#[derive(Default)]
pub(crate) struct BackgroundOperations {
    /// Length of the list, so that progress without any operation takes no lock.
    count: AtomicUsize,
    list: Mutex<Vec<Arc<dyn BackgroundOperation>>>,
    /// What nobody waits for. It is asked when more is put aside, not by progress, which it would slow down.
    aside: Mutex<Vec<Box<dyn PutAside>>>,
}

impl BackgroundOperations {
    /// Starts an operation: at once as far as it gets, the rest as progress is made. `again`: it may be in progress
    /// still, of an earlier start whose end nobody here has seen.
    pub fn start(&self, engine: &Engine, operation: Arc<dyn BackgroundOperation>, again: bool) {
        let mut list = self.list.lock().unwrap_or_else(PoisonError::into_inner);
        if operation.advance(engine) {
            return;
        }
        if !again || !list.iter().any(|other| addr_eq(Arc::as_ptr(other), Arc::as_ptr(&operation))) {
            list.push(operation);
            self.publish_count(&list);
        }
        drop(list);
        // Another thread may be about to sleep, and has not asked this operation.
        while engine.shared && self.can_go_on(engine) {
            if self.advance_all(engine) {
                engine.progress().something_happened();
            }
        }
    }

    /// Forgets an operation that cannot end well, if it is in the list: nothing of it is done once this returns.
    pub fn stop<T>(&self, operation: *const T) {
        // Whoever advances an operation has the list.
        let mut list = self.list.lock().unwrap_or_else(PoisonError::into_inner);
        list.retain(|other| !addr_eq(Arc::as_ptr(other), operation));
        self.publish_count(&list);
    }

    /// Called before the rank sleeps: returns whether an operation can go on ([`BackgroundOperation::can_go_on`]).
    pub fn can_go_on(&self, engine: &Engine) -> bool {
        if self.is_empty() {
            return false;
        }
        // A thread that holds the list advances an operation.
        let Ok(list) = self.list.try_lock() else { return true };
        list.iter().any(|operation| operation.can_go_on(engine))
    }

    /// Advances all operations. Returns whether one of them ended.
    #[inline]
    pub fn advance(&self, engine: &Engine) -> bool {
        !self.is_empty() && self.advance_all(engine)
    }

    /// Whether there is no operation.
    #[inline(always)]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The number of operations.
    #[inline(always)]
    pub fn len(&self) -> usize {
        // Relaxed: a hint; a thread that waits for an operation that it started has seen its own store.
        self.count.load(Ordering::Relaxed)
    }

    /// Adds the ranks for which the operations may be waiting ([`BackgroundOperation::add_awaited`]).
    pub fn add_awaited(&self, engine: &Engine, to: &mut Vec<MessageAbout>) {
        if let Ok(list) = self.list.try_lock() {
            list.iter().for_each(|operation| operation.add_awaited(engine, to));
        }
    }

    /// What the collective operations among them are, those first that were begun first.
    pub fn about(&self) -> Vec<OperationAbout> {
        let list = self.list.try_lock();
        list.map_or_else(|_| vec![], |list| list.iter().filter_map(|operation| operation.about()).collect())
    }

    #[cold]
    fn advance_all(&self, engine: &Engine) -> bool {
        // Held by a thread that starts an operation: it advances what it starts, and the next poll comes soon.
        let Ok(mut list) = self.list.try_lock() else { return false };
        let before = list.len();
        list.retain(|operation| !operation.advance(engine));
        self.publish_count(&list);
        list.len() < before
    }

    fn publish_count(&self, list: &MutexGuard<'_, Vec<Arc<dyn BackgroundOperation>>>) {
        // Relaxed: a hint; the lock publishes the list.
        self.count.store(list.len(), Ordering::Relaxed);
    }
}

impl<'e> Progress<'e> {
    /// Starts an operation in the background: see [`BackgroundOperation`].
    pub fn start_background(self, operation: Arc<dyn BackgroundOperation>) {
        self.engine.background.start(self.engine, operation, false);
    }

    /// The same of an operation that is started again and again, and may be in the background still.
    pub fn start_background_again(self, operation: Arc<dyn BackgroundOperation>) {
        self.engine.background.start(self.engine, operation, true);
    }

    /// Forgets an operation whose user lets go of what it accesses: nothing of it is done once this returns.
    pub fn stop_background<T>(self, operation: *const T) {
        self.engine.background.stop(operation);
    }

    /// Keeps what is left of a freed operation until it is over, as is seen when something more is put aside.
    pub fn put_aside(self, operation: Box<dyn PutAside>) {
        let mut aside = self.aside();
        aside.push(operation);
        aside.retain(|operation| !operation.is_over(self.engine));
    }

    fn aside(self) -> MutexGuard<'e, Vec<Box<dyn PutAside>>> {
        self.engine.background.aside.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether something that has been put aside must be over before the rank leaves the job.
    pub(crate) fn leaving_is_held_up(self) -> bool {
        let mut aside = self.aside();
        aside.retain(|operation| !operation.is_over(self.engine));
        aside.iter().any(|operation| operation.holds_up_leaving())
    }

    /// Advances the operations in the background. Returns whether one of them ended.
    #[inline]
    pub(super) fn advance_background(self) -> bool {
        let ended = self.engine.background.advance(self.engine);
        if ended {
            self.something_happened();
        }
        ended
    }

    /// Whether anything is in the background.
    #[inline(always)]
    #[must_use]
    pub fn has_background(self) -> bool {
        !self.engine.background.is_empty()
    }

    /// The number of operations in the background.
    pub(crate) fn background_operations(self) -> u64 {
        self.engine.background.len() as u64
    }
}

#[cfg(all(test, not(perusal_loom)))]
mod tests {
    use super::*;
    use crate::p2p::tests::ranks;
    use crate::sync::AtomicBool;

    /// An operation that is over when the test says so.
    struct Round(AtomicBool);

    impl BackgroundOperation for Round {
        fn advance(&self, _: &Engine) -> bool {
            self.0.load(Ordering::Relaxed)
        }
    }

    #[test]
    fn what_is_started_again_is_in_the_list_once() {
        ranks(1, false, |engine, _| {
            let [one, other] = [(); 2].map(|()| Arc::new(Round(AtomicBool::new(false))));
            // A round that ends unseen leaves the operation in the list, for the next one.
            for _ in 0..3 {
                engine.progress().start_background_again(one.clone());
                engine.progress().start_background_again(other.clone());
            }
            assert_eq!(engine.progress().background_operations(), 2);
            one.0.store(true, Ordering::Relaxed);
            assert!(engine.progress().advance_background());
            assert_eq!(engine.progress().background_operations(), 1);
            one.0.store(false, Ordering::Relaxed);
            engine.progress().start_background_again(one.clone());
            assert_eq!(engine.progress().background_operations(), 2);
            engine.progress().stop_background(Arc::as_ptr(&one));
            assert_eq!(engine.progress().background_operations(), 1);
            [&one, &other].iter().for_each(|operation| operation.0.store(true, Ordering::Relaxed));
            engine.progress().advance_background();
            assert_eq!(engine.progress().background_operations(), 0);
        });
    }
}
