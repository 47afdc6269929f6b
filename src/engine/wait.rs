//! Waits for what is no request.

use super::{CallAbout, Progress, describing};
use crate::arch::clock::now;
use crate::error::Result;
use crate::shm::telemetry::{Wait, Waiting};

/// What a wait for one request is for.
#[derive(Debug, Clone, Copy)]
pub enum Awaited {
    /// A collective operation on the communicator of this context.
    Operation(u32),
    /// A message that is none of the engine's requests.
    Message {
        /// Whether it is a receive, a send, or a send that the rank itself holds up.
        kind: Waiting,
        /// The peer's rank in the job.
        peer: u32,
        /// The tag.
        tag: i32,
        /// The context id of its communicator.
        context: u32,
    },
}

impl Progress<'_> {
    /// Waits until `over` says so, asking again whenever something has happened.
    ///
    /// # Errors
    ///
    /// Those of `over`, and as [`crate::engine::Engine::wait`].
    pub fn wait_for(self, over: impl FnMut() -> Result<bool>) -> Result<()> {
        self.wait_for_either(|| None, over)
    }

    /// As [`Self::wait_for`]. `awaited` returns what is waited for, if that is a certain request, and `about` what else
    /// there is to say of it; they are asked only before a sleep.
    ///
    /// # Errors
    ///
    /// As [`Self::wait_for`].
    pub fn wait_for_request_of(
        self,
        awaited: impl Fn() -> Option<Awaited>,
        about: impl Fn() -> CallAbout,
        over: impl FnMut() -> Result<bool>,
    ) -> Result<()> {
        describing(&about, || self.wait_for_either(awaited, over))
    }

    fn wait_for_either(
        self,
        awaited: impl Fn() -> Option<Awaited>,
        mut over: impl FnMut() -> Result<bool>,
    ) -> Result<()> {
        let mut failed = Ok(());
        let why = || {
            let any = Wait { kind: Waiting::Any, peer: None, tag: None, context: 0, since: now() };
            Some(match awaited() {
                None => any,
                Some(Awaited::Operation(context)) => {
                    Wait { kind: Waiting::Operation, context: context + 1, ..any }
                }
                Some(Awaited::Message { kind, peer, tag, context }) => {
                    Wait { kind, peer: Some(peer), tag: Some(tag), context, ..any }
                }
            })
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

    /// Publishes that the rank waits for something outside of the job, and has waited long,
    /// until [`Self::outside_has_answered`].
    pub(crate) fn wait_outside(self) {
        let wait = Wait { kind: Waiting::Outside, peer: None, tag: None, context: 0, since: now() };
        self.engine.telemetry().waiting.set(&wait);
        self.engine.publish_wait_detail();
    }

    /// Publishes that it waits no more.
    pub(crate) fn outside_has_answered(self) {
        self.engine.telemetry().waiting.clear();
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
