//! Turns, in memory that processes share.

use super::{AtomicI64, Futex, Ordering};
use core::time::Duration;

/// How long a thread sleeps before it asks whether its wait can still end.
const SLEEP: Duration = Duration::from_millis(100);

/// Up to which number all turns are over. A turn is a range of numbers;
/// no two have a number in common, and each is ended.
#[derive(Debug, Default)]
#[repr(C)]
pub struct Turns {
    over: AtomicI64,
    /// Counts the changes of `over`, for those that sleep.
    changes: Futex,
}

impl Turns {
    /// Waits until all turns before number `at` are over. Now and then it asks `check` whether that can still be.
    ///
    /// # Errors
    /// That of `check`.
    pub fn wait<E>(&self, at: i64, mut check: impl FnMut() -> Result<(), E>) -> Result<(), E> {
        loop {
            // Acquire: "file turn" edge, pairs with Release in `end`: a thread that sees a change counted sees the
            // change, and does not sleep over it.
            let seen = self.changes.word().load(Ordering::Acquire);
            // Acquire: "file turn" edge, pairs with Release in `end`.
            if self.over.load(Ordering::Acquire) == at {
                return Ok(());
            }
            self.changes.wait(seen, SLEEP);
            check()?;
        }
    }

    /// Ends the turn before number `at`.
    pub fn end(&self, at: i64) {
        // Release: "file turn" edge, pairs with Acquire in `wait`: what was done in this turn and in those before.
        self.over.store(at, Ordering::Release);
        // Release: "file turn" edge, pairs with Acquire in `wait`.
        self.changes.word().fetch_add(1, Ordering::Release);
        self.changes.wake_all();
    }

    /// The next turn begins at number `at`. Nobody waits; messages order this before all turns that follow.
    pub fn restart(&self, at: i64) {
        // Relaxed: see above.
        self.over.store(at, Ordering::Relaxed);
    }
}
