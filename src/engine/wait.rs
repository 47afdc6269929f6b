//! Waits for what is no request.

use super::{Progress, describing};
use crate::arch::clock::now;
use crate::error::Result;
use crate::shm::telemetry::{CollectiveAbout, Wait, Waiting};

impl Progress<'_> {
    /// Waits until `over` says so, asking again whenever something has happened.
    ///
    /// # Errors
    ///
    /// Those of `over`, and as [`crate::engine::Engine::wait`].
    pub fn wait_for(self, over: impl FnMut() -> Result<bool>) -> Result<()> {
        self.wait_for_either(|| None, over)
    }

    /// As [`Self::wait_for`]. `context` says on which communicator the collective operation is that is waited for, if it is one, and `about` what it
    /// is; they are asked only before a sleep.
    ///
    /// # Errors
    ///
    /// As [`Self::wait_for`].
    pub fn wait_for_request_of(
        self,
        context: impl Fn() -> Option<u32>,
        about: impl Fn() -> CollectiveAbout,
        over: impl FnMut() -> Result<bool>,
    ) -> Result<()> {
        describing(&about, || self.wait_for_either(context, over))
    }

    fn wait_for_either(
        self,
        context: impl Fn() -> Option<u32>,
        mut over: impl FnMut() -> Result<bool>,
    ) -> Result<()> {
        let mut failed = Ok(());
        let why = || {
            let (kind, context) =
                context().map_or((Waiting::Any, 0), |context| (Waiting::Operation, context + 1));
            Some(Wait { kind, peer: None, tag: None, context, since: now() })
        };
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
