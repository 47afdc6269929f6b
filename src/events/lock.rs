//! PERUSE_Lock and PERUSE_Unlock: mutual exclusion between tools' threads, with an owner and without self-deadlock.
//!
//! Lock rule 1: the owner is a thread and the depth of callbacks at which it took the lock.
//! Lock rule 2: a thread that would wait for itself is refused. A callback that was refused once is refused until it
//! returns, whatever happens to the lock meanwhile, so that a tool which drops a record drops the whole of it.
//! Lock rule 3: a callback cannot give up what the code it interrupted has taken.

use super::callback_state;
use crate::sync::{AtomicU32, AtomicUsize, Ordering, WaitWord, thread_id};

/// Why [`PeruseLock::lock`] or [`PeruseLock::unlock`] failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum LockError {
    /// PERUSE_ERR_LOCK: the lock is free, or another's.
    #[error("the PERUSE lock is not held by the caller")]
    NotOwner,
    /// PERUSE_ERR_LOCK_NOT_GRANTABLE: the caller would wait for its own thread, or this callback met that before.
    #[error("the PERUSE lock cannot be granted in this callback")]
    NotGrantable,
}

/// A blocking lock with an owner (PERUSE 2.0 §5.2.16, §5.2.17).
#[derive(Debug)]
pub struct PeruseLock {
    /// [`FREE`], [`HELD`] or [`CONTENDED`].
    state: WaitWord,
    /// The owning thread; 0 while the lock is free. Written by the owner alone.
    owner: AtomicUsize,
    /// The depth of callbacks at which the owner took it. Written by the owner alone.
    depth: AtomicU32,
}

const FREE: u32 = 0;
/// Held, and nobody waits.
const HELD: u32 = 1;
/// Held, and somebody may wait.
const CONTENDED: u32 = 2;

impl Default for PeruseLock {
    fn default() -> Self {
        PeruseLock::new()
    }
}

impl PeruseLock {
    /// A free lock.
    #[must_use]
    pub fn new() -> PeruseLock {
        PeruseLock { state: WaitWord::new(FREE), owner: AtomicUsize::new(0), depth: AtomicU32::new(0) }
    }

    /// Takes the lock, waiting for other threads as long as it takes.
    ///
    /// # Errors
    /// `NotGrantable` if the caller's thread holds the lock already, or if that was so before in the present callback.
    pub fn lock(&self) -> Result<(), LockError> {
        if callback_state::refused() {
            return Err(LockError::NotGrantable);
        }
        if self.is_mine() {
            callback_state::refuse();
            return Err(LockError::NotGrantable);
        }
        let word = self.state.word();
        // Acquire, here and below: pairs with Release in `unlock`; what the last owner did is there.
        if word.compare_exchange(FREE, HELD, Ordering::Acquire, Ordering::Relaxed).is_err() {
            while word.swap(CONTENDED, Ordering::Acquire) != FREE {
                self.state.wait(CONTENDED);
            }
        }
        // Relaxed: others compare it with their own name, which only they write.
        self.owner.store(thread_id(), Ordering::Relaxed);
        self.depth.store(callback_state::depth(), Ordering::Relaxed);
        Ok(())
    }

    /// Gives the lock up, and wakes one thread that waits for it.
    ///
    /// # Errors
    /// `NotOwner` if the caller's thread does not hold it, or took it outside the callback that calls this.
    pub fn unlock(&self) -> Result<(), LockError> {
        // Relaxed: if the lock is ours, we wrote it.
        if !self.is_mine() || callback_state::depth() > self.depth.load(Ordering::Relaxed) {
            return Err(LockError::NotOwner);
        }
        self.owner.store(0, Ordering::Relaxed);
        // Release: pairs with Acquire in `lock`.
        if self.state.word().swap(FREE, Ordering::Release) == CONTENDED {
            self.state.wake_one();
        }
        Ok(())
    }

    /// Whether the calling thread holds the lock.
    #[must_use]
    pub fn is_mine(&self) -> bool {
        // Relaxed: our name is there only if we wrote it, and have not taken it away since.
        self.owner.load(Ordering::Relaxed) == thread_id()
    }
}

#[cfg(all(test, not(perusal_loom)))]
mod tests {
    use super::super::callback_state::CallbackScope;
    use super::*;
    use crate::limits::rounds;
    use std::sync::Arc;

    #[test]
    fn unlocking_what_one_does_not_hold_is_an_error() {
        let lock = Arc::new(PeruseLock::new());
        assert_eq!(lock.unlock(), Err(LockError::NotOwner), "free");
        lock.lock().unwrap();
        let theirs = lock.clone();
        assert_eq!(std::thread::spawn(move || theirs.unlock()).join().unwrap(), Err(LockError::NotOwner));
        assert!(lock.is_mine());
        lock.unlock().unwrap();
        assert_eq!(lock.unlock(), Err(LockError::NotOwner), "twice");
    }

    #[test]
    fn an_upcall_on_the_owners_thread_is_refused_until_it_returns() {
        let lock = PeruseLock::new();
        lock.lock().unwrap();
        {
            let _scope = CallbackScope::enter();
            assert_eq!(lock.lock(), Err(LockError::NotGrantable));
            assert_eq!(lock.unlock(), Err(LockError::NotOwner), "what the interrupted code holds stays held");
            assert_eq!(lock.lock(), Err(LockError::NotGrantable));
        }
        lock.unlock().unwrap();
        let _scope = CallbackScope::enter();
        lock.lock().unwrap();
        lock.unlock().unwrap();
    }

    #[test]
    fn a_refused_upcall_is_refused_even_another_lock_that_is_free() {
        let (held, free) = (PeruseLock::new(), PeruseLock::new());
        held.lock().unwrap();
        let callback = CallbackScope::enter();
        assert_eq!(held.lock(), Err(LockError::NotGrantable));
        assert_eq!(free.lock(), Err(LockError::NotGrantable));
        drop(callback);
        free.lock().unwrap();
    }

    #[test]
    fn locking_twice_outside_of_upcalls_is_refused_once_and_not_remembered() {
        let lock = PeruseLock::new();
        lock.lock().unwrap();
        assert_eq!(lock.lock(), Err(LockError::NotGrantable));
        lock.unlock().unwrap();
        lock.lock().unwrap();
        lock.unlock().unwrap();
    }

    #[test]
    fn a_lock_taken_in_an_upcall_can_be_given_up_after_it() {
        let lock = PeruseLock::new();
        let callback = CallbackScope::enter();
        lock.lock().unwrap();
        drop(callback);
        lock.unlock().unwrap();
    }

    #[test]
    fn increments_under_the_lock_are_never_lost() {
        let lock = Arc::new(PeruseLock::new());
        let total = Arc::new(crate::sync::AtomicU64::new(0));
        let add = |lock: &PeruseLock, total: &crate::sync::AtomicU64| {
            for _ in 0..rounds(1000) {
                lock.lock().unwrap();
                let seen = total.load(crate::sync::Ordering::Relaxed);
                total.store(seen + 1, crate::sync::Ordering::Relaxed);
                lock.unlock().unwrap();
            }
        };
        let threads: Vec<_> = (0..4)
            .map(|_| {
                let (lock, total) = (lock.clone(), total.clone());
                std::thread::spawn(move || add(&lock, &total))
            })
            .collect();
        threads.into_iter().for_each(|t| t.join().unwrap());
        assert_eq!(total.load(crate::sync::Ordering::Relaxed), 4 * rounds(1000) as u64);
    }
}
