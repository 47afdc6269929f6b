//! The lock of one rank's memory in a window: shared or exclusive, first come first served.
//!
//! A rank takes a ticket. A shared lock is granted when all exclusive ones before it have been released, an exclusive
//! one when everything before it has. Nothing here waits: a rank that waits asks [`LockWords::is_granted`] again.
//!
//! - **Window lock rule 1.** `write` counts the locks released. `read` counts the tickets of which all exclusive locks
//!   before are released: a granted shared lock passes it on, and an exclusive one when it is released.
//! - **Window lock rule 2.** Only the rank that holds the ticket that `read` or `write` has reached stores to that
//!   word: stores need no read-modify-write, but for the `write` of shared locks, which are released in any order.

use crate::sync::{AtomicU32, Ordering};

/// The words of a lock, in memory that all ranks of the window see. All zero: free.
#[derive(Debug, Default)]
#[repr(C)]
pub struct LockWords {
    /// The next ticket.
    next: AtomicU32,
    /// Tickets whose shared lock may be granted.
    read: AtomicU32,
    /// Tickets whose exclusive lock may be granted.
    write: AtomicU32,
}

/// A place in the queue of a lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub struct Ticket {
    number: u32,
    exclusive: bool,
}

impl LockWords {
    /// Joins the queue.
    #[inline]
    pub fn take_ticket(&self, exclusive: bool) -> Ticket {
        // Relaxed: it orders nothing; what was done under the lock is seen through `read` and `write`.
        Ticket { number: self.next.fetch_add(1, Ordering::Relaxed), exclusive }
    }

    /// Takes the lock if it is free and nobody waits for it; a shared one also while others hold it shared.
    /// `false`: nothing has been done.
    #[inline(always)]
    #[must_use]
    pub fn try_acquire(&self, exclusive: bool) -> bool {
        let turn = if exclusive { &self.write } else { &self.read };
        // Acquire: as in `is_granted`.
        let ticket = turn.load(Ordering::Acquire);
        let after = ticket.wrapping_add(1);
        // Relaxed, twice: as in `take_ticket`. It takes the ticket whose turn it is, if nobody else has.
        let taken = self.next.compare_exchange(ticket, after, Ordering::Relaxed, Ordering::Relaxed).is_ok();
        if taken && !exclusive {
            self.pass_on(after);
        }
        taken
    }

    /// Window lock rule 2: the holder of a shared lock's ticket, whose turn it is, makes it the next one's.
    #[inline(always)]
    fn pass_on(&self, next: u32) {
        // Release: "window lock" edge, pairs with Acquire in `is_granted` and `try_acquire`: the next shared lock sees
        // what this one was shown.
        self.read.store(next, Ordering::Release);
    }

    /// Whether it is the ticket's turn. Once it is, the lock is held, and nobody asks again.
    #[inline]
    pub fn is_granted(&self, ticket: Ticket) -> bool {
        if ticket.exclusive {
            // Acquire: "window lock" edge, pairs with Release in `release`.
            return self.write.load(Ordering::Acquire) == ticket.number;
        }
        // Acquire: "window lock" edge, pairs with Release in `release` and `pass_on`.
        let turn = self.read.load(Ordering::Acquire) == ticket.number;
        if turn {
            self.pass_on(ticket.number.wrapping_add(1));
        }
        turn
    }

    /// Releases a lock that was granted. What was done under it is there for the rank that is granted the lock next.
    #[inline(always)]
    pub fn release(&self, exclusive: bool) {
        if exclusive {
            // Window lock rule 2. Relaxed: the holder's own turn; nobody else stores.
            let after = self.write.load(Ordering::Relaxed).wrapping_add(1);
            // Release, twice: "window lock" edge, pairs with Acquire in `is_granted` and `try_acquire`.
            self.read.store(after, Ordering::Release);
            self.write.store(after, Ordering::Release);
        } else {
            // Release: "window lock" edge, pairs with Acquire in `is_granted` and `try_acquire`: a read-modify-write,
            // so that a rank that is granted the lock exclusively sees what all shared locks before did.
            self.write.fetch_add(1, Ordering::Release);
        }
    }
}

#[cfg(all(test, not(perusal_loom)))]
mod tests {
    use super::*;

    #[test]
    fn shared_locks_are_held_together_and_an_exclusive_one_alone() {
        let lock = LockWords::default();
        let (a, b, c, d) = (
            lock.take_ticket(false),
            lock.take_ticket(false),
            lock.take_ticket(true),
            lock.take_ticket(false),
        );
        assert!(lock.is_granted(a) && lock.is_granted(b));
        assert!(!lock.is_granted(c) && !lock.is_granted(d));
        lock.release(false);
        assert!(!lock.is_granted(c));
        lock.release(false);
        assert!(!lock.is_granted(d) && lock.is_granted(c));
        lock.release(true);
        assert!(lock.is_granted(d));
        lock.release(false);
    }

    #[test]
    fn a_lock_is_taken_at_once_only_if_nobody_holds_it_against_that_or_waits() {
        let lock = LockWords::default();
        assert!(lock.try_acquire(false) && lock.try_acquire(false) && !lock.try_acquire(true));
        let waits = lock.take_ticket(true);
        assert!(!lock.is_granted(waits) && !lock.try_acquire(false));
        (0..2).for_each(|_| lock.release(false));
        assert!(!lock.try_acquire(true) && lock.is_granted(waits) && !lock.try_acquire(false));
        lock.release(true);
        assert!(lock.try_acquire(true) && !lock.try_acquire(true) && !lock.try_acquire(false));
        lock.release(true);
    }

    #[test]
    fn tickets_wrap_around() {
        let lock = LockWords {
            next: AtomicU32::new(u32::MAX),
            read: AtomicU32::new(u32::MAX),
            write: AtomicU32::new(u32::MAX),
        };
        for exclusive in [true, false, true] {
            let ticket = lock.take_ticket(exclusive);
            assert!(lock.is_granted(ticket));
            lock.release(exclusive);
        }
        let words = || [&lock.next, &lock.read, &lock.write];
        words().iter().for_each(|word| word.store(u32::MAX, Ordering::Relaxed));
        assert!(lock.try_acquire(false) && lock.try_acquire(false));
        (0..2).for_each(|_| lock.release(false));
        assert!(lock.try_acquire(true));
    }
}
