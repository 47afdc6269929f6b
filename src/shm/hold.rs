//! Holds a process back that has been started, until the rest of its world has been started too (roster rule 6).

use crate::sync::{AtomicU32, Futex, Ordering};
use core::time::Duration;

/// The word: the process is to wait, or may go on.
const SET: u32 = 1;
const RELEASED: u32 = 0;

/// A word in a process's roster entry on which it sleeps before it takes its place.
#[derive(Debug, Default)]
#[repr(transparent)]
pub struct Hold(Futex);

impl Hold {
    fn word(&self) -> &AtomicU32 {
        self.0.word()
    }

    /// Has the process, which is about to be started, wait.
    pub fn set(&self) {
        // Relaxed: starting the process orders it before all that the process does.
        self.word().store(SET, Ordering::Relaxed);
    }

    /// Lets the process go on.
    pub fn release(&self) {
        // Relaxed: it says nothing of other words; what the launcher has prepared,
        // it prepared before it started the process.
        self.word().store(RELEASED, Ordering::Relaxed);
        self.0.wake();
    }

    /// Sleeps while the process is to wait, `timeout` at the longest. Returns whether it is still to wait.
    #[must_use]
    pub fn is_set(&self, timeout: Duration) -> bool {
        // Relaxed, twice: see `release`.
        if self.word().load(Ordering::Relaxed) == SET {
            self.0.wait(SET, timeout);
        }
        self.word().load(Ordering::Relaxed) == SET
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_that_is_held_waits_until_it_is_released() {
        let hold = Hold::default();
        assert!(!hold.is_set(Duration::MAX));
        hold.set();
        assert!(hold.is_set(Duration::ZERO));
        std::thread::scope(|scope| {
            let waits = scope.spawn(|| while hold.is_set(Duration::from_secs(3600)) {});
            hold.release();
            waits.join().unwrap();
        });
    }
}
