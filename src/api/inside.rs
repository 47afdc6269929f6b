//! Which threads are inside a rank's engine: a sharded lock, so that threads that enter do not meet.

use crate::sync::{CachePadded, THREAD_SLOTS, thread_slot};
use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard, TryLockError};

/// A lock for each thread slot. A reader takes its own slot's; a writer takes all, in order.
#[derive(Default)]
pub(super) struct Inside([CachePadded<RwLock<()>>; THREAD_SLOTS]);

impl Inside {
    /// Enters. As long as the guard lives, no thread is [`Self::alone`].
    #[inline]
    pub fn enter(&self) -> RwLockReadGuard<'_, ()> {
        self.0[thread_slot()].read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until no thread is inside; none is as long as the guards live.
    #[must_use]
    pub fn alone(&self) -> Vec<RwLockWriteGuard<'_, ()>> {
        self.0.iter().map(|lock| lock.write().unwrap_or_else(PoisonError::into_inner)).collect()
    }

    /// Returns the same, if no thread is inside now.
    #[must_use]
    pub fn try_alone(&self) -> Option<Vec<RwLockWriteGuard<'_, ()>>> {
        self.0
            .iter()
            .map(|lock| match lock.try_write() {
                Ok(alone) => Some(alone),
                Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
                Err(TryLockError::WouldBlock) => None,
            })
            .collect()
    }
}

#[cfg(all(test, not(perusal_loom)))]
mod tests {
    use super::*;

    #[test]
    fn nobody_is_alone_while_a_thread_of_whatever_slot_is_inside() {
        let inside = Inside::default();
        for _ in 0..3 {
            std::thread::scope(|scope| {
                let (told, tell) = std::sync::mpsc::channel::<()>();
                let (came, come) = std::sync::mpsc::channel();
                let inside = &inside;
                scope.spawn(move || {
                    let _inside = inside.enter();
                    came.send(()).expect("the other thread waits for it");
                    let _ = tell.recv();
                });
                come.recv().expect("it is inside");
                assert!(inside.try_alone().is_none());
                drop(told);
            });
            assert_eq!(inside.try_alone().map(|guards| guards.len()), Some(THREAD_SLOTS));
            drop(inside.alone());
        }
    }
}
