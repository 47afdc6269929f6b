//! MPI_Cancel (MPI 5.0 §3.8.4).

use crate::engine::{Engine, Ref, RequestOperation};
use crate::error::Result;

impl Engine {
    /// Marks a request for cancellation. Whether it succeeded is said by its status.
    ///
    /// # Errors
    ///
    /// As [`Engine::wait`]: to cancel a send, the receiver is asked, and its answer awaited.
    pub fn cancel(&self, request: Ref) -> Result<()> {
        // SAFETY: request rule 2: operation, context and peer do not change while the user has the request.
        let (operation, context) = unsafe { (request.body().operation.get(), request.body().context.get()) };
        let Some(context) = context else { return Ok(()) };
        // SAFETY: the request counts as pending on the context.
        let context = unsafe { context.as_ref() };
        match operation {
            RequestOperation::Receive => self.cancellation().cancel_receive(context, request),
            RequestOperation::Send => return self.cancellation().cancel_send(context, request),
        }
        Ok(())
    }
}
