//! Leaving the job, together (MPI 5.0 §11.2.2) or each for itself (§11.3).

use crate::arch::clock::now;
use crate::comm::Comm;
use crate::engine::{Engine, Mode, RequestOperation};
use crate::error::Result;
use crate::heap::Heap;
use crate::shm::telemetry::{Wait, Waiting};

/// Tag of the farewell on the world's collective context: no collective uses the library's own tags from here down.
const FAREWELL: i32 = i32::MIN;

/// Looks at the rings for what has come.
const LOOKS: usize = 64;

fn leaving() -> Wait {
    Wait { kind: Waiting::Finalize, peer: None, tag: None, context: 0, since: now() }
}

impl Engine {
    /// Waits until everything sent has left, and all ranks of `world` have come here: a dissemination barrier.
    ///
    /// # Errors
    ///
    /// As [`Engine::wait`].
    pub fn leave(&self, world: &Comm) -> Result<()> {
        self.leave_after(|| self.meet(world))
    }

    /// As [`Self::leave`], where `meet` returns when all ranks that live have come here.
    ///
    /// # Errors
    ///
    /// Those of `meet`, and as [`Engine::wait`].
    pub fn leave_after(&self, meet: impl FnOnce() -> Result<()>) -> Result<()> {
        // Sends that nobody waits for any more must still arrive (MPI 5.0 §11.2.2);
        // only then is what they left in line sent.
        self.progress().wait_until(
            || Some(leaving()),
            || !self.freed_sends_under_way() && self.backlog.lock(self.shared).is_empty(),
        )?;
        meet()?;
        self.progress().wait_until(|| Some(leaving()), || self.backlog.lock(self.shared).is_empty())?;
        self.oversubscription.report_no_threads(self);
        // Other processes may go on.
        if let Some(heap) = Heap::mapped(&self.job) {
            heap.give_back_kept();
        }
        Ok(())
    }

    /// A dissemination barrier.
    fn meet(&self, world: &Comm) -> Result<()> {
        let (rank, size) = (world.rank(), world.size());
        let mut distance = 1;
        while distance < size {
            let (to, from) = ((rank + distance) % size, (rank + size - distance) % size);
            // SAFETY: no bytes.
            unsafe {
                self.coll_send(world, core::ptr::null(), 0, to as i32, FAREWELL, Mode::Standard)?;
                self.coll_recv(world, core::ptr::null_mut(), 0, from as i32, FAREWELL, Mode::Standard)?;
            }
            distance *= 2;
        }
        Ok(())
    }

    /// Waits until nothing that this rank has begun needs it any more: buffered sends have been received, sends whose
    /// requests were freed are over, and what waited for room at a peer has left. Nobody else has to come here.
    ///
    /// # Errors
    ///
    /// As [`Engine::wait`].
    pub fn depart(&self) -> Result<()> {
        self.flush_buffer(&self.buffers)?;
        self.progress().wait_until(
            || Some(leaving()),
            || !self.freed_sends_under_way() && self.backlog.lock(self.shared).is_empty(),
        )
    }

    /// Waits until all that waits for room at a peer has left.
    ///
    /// # Errors
    ///
    /// As [`Engine::wait`].
    pub fn send_backlog(&self) -> Result<()> {
        self.progress().wait_until(|| Some(leaving()), || self.backlog.lock(self.shared).is_empty())
    }

    /// Takes what has come out of all rings.
    ///
    /// # Errors
    ///
    /// As [`Engine::wait`].
    pub fn take_what_has_come(&self) -> Result<()> {
        // One look finds what was there before it; the others, what a full receive path has left.
        (0..LOOKS).try_for_each(|_| self.progress().poll_once())
    }

    /// Whether a send whose request was freed, or that left an attached buffer, is not over. (Of a receive that was
    /// freed nobody can tell whether it ever will be.)
    fn freed_sends_under_way(&self) -> bool {
        self.slab.alive_ones().any(|request| {
            let state = request.state();
            // SAFETY: request rule 2: what kind of operation it is does not change while it is active.
            state.is_detached()
                && state.is_active()
                && unsafe { request.body() }.operation.get() == RequestOperation::Send
        }) || self.progress().leaving_is_held_up()
    }
}
