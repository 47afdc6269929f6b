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

    /// Whether it is the ticket's turn. Once it is, the lock is held, and nobody asks again.
    #[inline]
    pub fn is_granted(&self, ticket: Ticket) -> bool {
        if ticket.exclusive {
            // Acquire: "window lock" edge, pairs with Release in `release`.
            return self.write.load(Ordering::Acquire) == ticket.number;
        }
        // Acquire: "window lock" edge, pairs with Release in `release` and below.
        let turn = self.read.load(Ordering::Acquire) == ticket.number;
        if turn {
            // Window lock rule 2. Release: "window lock" edge, pairs with Acquire above:
            // the next shared lock sees what this one was shown.
            self.read.store(ticket.number.wrapping_add(1), Ordering::Release);
        }
        turn
    }

    /// Releases a lock that was granted. What was done under it is there for the rank that is granted the lock next.
    #[inline]
    pub fn release(&self, exclusive: bool) {
        if exclusive {
            // Window lock rule 2. Relaxed: the holder's own turn; nobody else stores.
            let after = self.write.load(Ordering::Relaxed).wrapping_add(1);
            // Release, twice: "window lock" edge, pairs with Acquire in `is_granted`.
            self.read.store(after, Ordering::Release);
            self.write.store(after, Ordering::Release);
        } else {
            // Release: "window lock" edge, pairs with Acquire in `is_granted`: a read-modify-write, so that a rank that
            // is granted the lock exclusively sees what all shared locks before did.
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
    }
}
