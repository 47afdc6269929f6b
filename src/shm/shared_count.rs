//! Counts of references to what many processes use, and which whoever finds it unused may take.

use crate::sync::{AtomicU32, Ordering};

/// How many users something has; zero is free.
#[derive(Debug, Default)]
#[repr(transparent)]
pub struct SharedCount(AtomicU32);

// SAFETY: an atomic, any value of which is a number of users.
unsafe impl super::segment::SharedWords for SharedCount {}

/// What a user that leaves finds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Leaving {
    /// Others remain.
    Others,
    /// It is the last; the count is one still.
    Last,
    /// There were no users.
    Nobody,
}

impl SharedCount {
    /// Takes what nobody uses, for `users`. Returns whether it was free.
    #[must_use]
    pub fn take(&self, users: u32) -> bool {
        // Acquire: "shared count" edge, pairs with Release in `leave`,
        // `leave_unless_last` and `free`: all former users are done with it.
        self.0.compare_exchange(0, users, Ordering::Acquire, Ordering::Relaxed).is_ok()
    }

    /// Leaves it. Returns whether the caller was the last, so that it is free now; `None` if there were no users.
    #[must_use]
    pub fn leave(&self) -> Option<bool> {
        let mut seen = self.0.load(Ordering::Relaxed);
        while seen != 0 {
            // Release: "shared count" edge, pairs with Acquire in `take`.
            match self.0.compare_exchange_weak(seen, seen - 1, Ordering::Release, Ordering::Relaxed) {
                Ok(_) => return Some(seen == 1),
                Err(now) => seen = now,
            }
        }
        None
    }

    /// Leaves it, unless the caller is the last, who clears up and calls [`Self::free`].
    #[must_use]
    pub fn leave_unless_last(&self) -> Leaving {
        // Acquire, here and where the exchange fails: "shared count" edge, pairs with Release below: who finds itself
        // the last finds the others done with it.
        let mut seen = self.0.load(Ordering::Acquire);
        loop {
            match seen {
                0 => return Leaving::Nobody,
                1 => return Leaving::Last,
                _ => {}
            }
            // Release: "shared count" edge, pairs with Acquire above.
            match self.0.compare_exchange_weak(seen, seen - 1, Ordering::Release, Ordering::Acquire) {
                Ok(_) => return Leaving::Others,
                Err(now) => seen = now,
            }
        }
    }

    /// Frees it, for the last user.
    pub fn free(&self) {
        // Release: "shared count" edge, pairs with Acquire in `take`.
        self.0.store(0, Ordering::Release);
    }

    /// Counts one user more, for a caller that is one.
    pub fn join(&self) {
        // Relaxed: the caller uses it, so that nobody takes it meanwhile.
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}
