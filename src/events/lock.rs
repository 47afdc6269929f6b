//! PERUSE_Lock and PERUSE_Unlock: mutual exclusion between tools' threads, with an owner and without self-deadlock.
//!
//! Lock rule 1: the owner is a thread and the depth of upcalls at which it took the lock.
//! Lock rule 2: who would wait for its own thread is refused instead; an upcall that was refused once is refused until it
//! returns, whatever happens to the lock meanwhile, so that a tool which drops a record drops the whole of it.
//! Lock rule 3: an upcall cannot give up what the code it interrupted has taken.

use super::callback_state;
use crate::sync::{Condvar, Mutex, MutexGuard, thread_id};
use std::sync::PoisonError;

/// Why [`Lock::lock`] or [`Lock::unlock`] failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum LockError {
    /// PERUSE_ERR_LOCK: the lock is free, or another's.
    #[error("the PERUSE lock is not held by the caller")]
    NotOwner,
    /// PERUSE_ERR_LOCK_NOT_GRANTABLE: the caller would wait for its own thread, or this upcall met that before.
    #[error("the PERUSE lock cannot be granted in this upcall")]
    NotGrantable,
}

/// A blocking lock with an owner (PERUSE 2.0 §5.2.16, §5.2.17).
#[derive(Debug)]
pub struct Lock {
    owner: Mutex<Owner>,
    given_up: Condvar,
}

#[derive(Debug, Default)]
struct Owner {
    /// The owning thread; 0 while the lock is free.
    thread: usize,
    /// Depth of upcalls at which it was taken.
    depth: u32,
    waiting: u32,
}

impl Default for Lock {
    fn default() -> Self {
        Lock::new()
    }
}

impl Lock {
    /// A free lock.
    #[must_use]
    pub fn new() -> Lock {
        Lock { owner: Mutex::new(Owner::default()), given_up: Condvar::new() }
    }

    fn owner(&self) -> MutexGuard<'_, Owner> {
        self.owner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes the lock, waiting for other threads as long as it takes.
    ///
    /// # Errors
    /// `NotGrantable` if the caller's thread holds the lock already, or if that was so before in the present upcall.
    pub fn lock(&self) -> Result<(), LockError> {
        if callback_state::refused() {
            return Err(LockError::NotGrantable);
        }
        let me = thread_id();
        let mut owner = self.owner();
        if owner.thread == me {
            callback_state::refuse();
            return Err(LockError::NotGrantable);
        }
        while owner.thread != 0 {
            owner.waiting += 1;
            owner = self.given_up.wait(owner).unwrap_or_else(PoisonError::into_inner);
            owner.waiting -= 1;
        }
        owner.thread = me;
        owner.depth = callback_state::depth();
        Ok(())
    }

    /// Gives the lock up, and wakes one who waits for it.
    ///
    /// # Errors
    /// `NotOwner` if the caller's thread does not hold it, or took it outside of the upcall that calls this.
    pub fn unlock(&self) -> Result<(), LockError> {
        let mut owner = self.owner();
        if owner.thread != thread_id() || callback_state::depth() > owner.depth {
            return Err(LockError::NotOwner);
        }
        owner.thread = 0;
        let somebody_waits = owner.waiting > 0;
        drop(owner);
        if somebody_waits {
            self.given_up.notify_one();
        }
        Ok(())
    }

    /// Whether the calling thread holds the lock.
    #[must_use]
    pub fn is_mine(&self) -> bool {
        self.owner().thread == thread_id()
    }
}

#[cfg(all(test, not(perusal_loom)))]
mod tests {
    use super::super::callback_state::Upcall;
    use super::*;
    use std::sync::Arc;

    #[test]
    fn unlocking_what_one_does_not_hold_is_an_error() {
        let lock = Arc::new(Lock::new());
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
        let lock = Lock::new();
        lock.lock().unwrap();
        {
            let _upcall = Upcall::enter();
            assert_eq!(lock.lock(), Err(LockError::NotGrantable));
            assert_eq!(lock.unlock(), Err(LockError::NotOwner), "what the interrupted code holds stays held");
            assert_eq!(lock.lock(), Err(LockError::NotGrantable));
        }
        lock.unlock().unwrap();
        let _upcall = Upcall::enter();
        lock.lock().unwrap();
        lock.unlock().unwrap();
    }

    #[test]
    fn a_refused_upcall_is_refused_even_another_lock_that_is_free() {
        let (held, free) = (Lock::new(), Lock::new());
        held.lock().unwrap();
        let upcall = Upcall::enter();
        assert_eq!(held.lock(), Err(LockError::NotGrantable));
        assert_eq!(free.lock(), Err(LockError::NotGrantable));
        drop(upcall);
        free.lock().unwrap();
    }

    #[test]
    fn locking_twice_outside_of_upcalls_is_refused_once_and_not_remembered() {
        let lock = Lock::new();
        lock.lock().unwrap();
        assert_eq!(lock.lock(), Err(LockError::NotGrantable));
        lock.unlock().unwrap();
        lock.lock().unwrap();
        lock.unlock().unwrap();
    }

    #[test]
    fn a_lock_taken_in_an_upcall_can_be_given_up_after_it() {
        let lock = Lock::new();
        let upcall = Upcall::enter();
        lock.lock().unwrap();
        drop(upcall);
        lock.unlock().unwrap();
    }

    #[test]
    fn increments_under_the_lock_are_never_lost() {
        let lock = Arc::new(Lock::new());
        let total = Arc::new(crate::sync::AtomicU64::new(0));
        let add = |lock: &Lock, total: &crate::sync::AtomicU64| {
            for _ in 0..1000 {
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
        assert_eq!(total.load(crate::sync::Ordering::Relaxed), 4000);
    }
}
