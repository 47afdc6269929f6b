//! Waits for what is no request.

use super::Progress;
use crate::arch::clock::now;
use crate::error::Result;
use crate::shm::telemetry::{Wait, Waiting};

impl Progress<'_> {
    /// Waits until `over` says so, asking again whenever something has happened.
    ///
    /// # Errors
    ///
    /// Those of `over`, and as [`crate::engine::Engine::wait`].
    pub fn wait_for(self, mut over: impl FnMut() -> Result<bool>) -> Result<()> {
        let mut failed = Ok(());
        let why = || Some(Wait { kind: Waiting::Any, peer: None, tag: None, context: 0, since: now() });
        self.wait_until(why, || match over() {
            Ok(over) => over,
            Err(error) => {
                failed = Err(error);
                true
            }
        })?;
        failed
    }

    /// A thread that is none of the program's has ended something that a wait may be for, and has stored that it has.
    pub fn work_has_ended(self) {
        self.wake_others();
    }

    /// Something that a wait may be for has happened outside of the engine.
    pub fn something_happened(self) {
        if self.engine.shared {
            self.wake_others();
        }
    }
}
