//! The cut between engine and protocols: the engine moves records, the protocols give them a meaning.

use super::{Engine, Ref, TxQueue};
use crate::error::Error;
use crate::ring::{Consumer, MappedRing};
use core::any::Any;

/// What the engine asks of the protocols; it knows nothing else of them.
pub(crate) trait Protocols: Send + Sync {
    /// Takes what waits in the ring from `peer` (a rank of the job), `most` records at most. `awaited` as in
    /// [`Consumer::should_take`]; `waits`: the caller asks again until something has happened. How many records those
    /// were. Called by the thread that runs progress.
    ///
    /// # Errors
    ///
    /// [`Error::Corrupt`] when a record makes no sense: the ring is spoiled.
    fn receive(
        &self,
        engine: &Engine,
        peer: u32,
        consumer: &mut Consumer<MappedRing>,
        most: usize,
        awaited: usize,
        waits: bool,
    ) -> Result<usize, Box<Error>>;

    /// Puts a send that waited for room into the ring; false, with nothing done, if there is no room.
    fn transmit(&self, engine: &Engine, tx: &mut TxQueue, send: Ref) -> bool;

    /// Moves on the large sends of a transmit queue ([`TxQueue::streams`]). Whether anything moved.
    fn pump(&self, engine: &Engine, tx: &mut TxQueue) -> bool;

    /// Ends the operations that cannot end well any more, because a rank has died or a communicator has been revoked.
    /// Called by the thread that runs progress, after the match contexts have been marked.
    fn end_failed(&self, engine: &Engine);

    /// What the protocols keep, for themselves.
    fn state(&self) -> &dyn Any;
}
