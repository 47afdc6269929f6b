//! Giving up buffers that requests still name: their owner may free them although the requests are not over.

use super::operation::{Part, RequestOperation, Stage};
use crate::engine::Engine;
use crate::error::Result;
use crate::shm::RankState;

impl Engine {
    /// Makes sure that no other rank reads or writes this rank's buffers any more. The engine itself does not either,
    /// because nobody calls it again.
    ///
    /// In one case there is no way to be sure: another *process* was asked to write its part of a large message into a
    /// buffer here and has not said that it is done. Then this process ends.
    ///
    /// # Safety
    ///
    /// No thread is inside this engine, and none calls it again but for this.
    pub unsafe fn withdraw_buffers(&self) {
        self.job.withdraw();
        // SAFETY: no thread is inside the engine.
        if !self.job.are_threads() && unsafe { self.peer_writes() } {
            crate::error::report(format_args!(
                "rank {}: another rank may be writing into a receive buffer that is given up; \
                 the process cannot go on",
                self.rank
            ));
            std::process::abort();
        }
    }

    /// Leaves to a process that may get this place later where it is to go on in all rings.
    /// This rank may go on itself, and retire again.
    pub fn retire(&self) {
        // Nobody gets the places that a job begins with; but those that this process has in other jobs.
        let stays = self.job.world().first == 0;
        if !stays {
            self.poller.lock(self.shared).retire();
        }
        for peer in &self.peers {
            if let Some(tx) = peer.tx.lock(self.shared).as_ref().filter(|tx| !stays || tx.outside.is_some()) {
                tx.producer.retire();
            }
        }
    }

    /// Waits until no other process is about to write into a buffer here: all parts that were asked for are copied, or
    /// who was asked has left the job.
    ///
    /// # Errors
    ///
    /// As [`Engine::wait`].
    ///
    /// # Safety
    ///
    /// No other thread is inside this engine.
    pub unsafe fn await_writers(&self) -> Result<()> {
        // SAFETY: no other thread is inside the engine, and between two polls nobody works on a request.
        self.progress().wait_for(|| Ok(!unsafe { self.peer_writes() }))
    }

    /// Whether another rank, still in the job, was asked to write into a buffer here and has not answered.
    ///
    /// # Safety
    ///
    /// No other thread is inside this engine.
    unsafe fn peer_writes(&self) -> bool {
        self.slab.alive_ones().any(|request| {
            // SAFETY: request rule 2: the bodies are in nobody's hands, says the caller.
            let body = unsafe { request.body() };
            request.state().is_active()
                && body.operation.get() == RequestOperation::Receive
                && matches!(
                    body.stage.get(),
                    Stage::Split { other: Part::Pending, .. } | Stage::AwaitsHeapDone
                )
                && self.job.roster().entry(body.world.get()).state() < RankState::Finalized
        })
    }
}
