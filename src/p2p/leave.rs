//! Leaving the job, together (MPI 5.0 §11.2.2) or each for itself (§11.3).

use crate::comm::Comm;
use crate::engine::Engine;
use crate::error::Result;

/// Tag of the farewell on the world's collective context: no collective uses the library's own tags from here down.
const FAREWELL: i32 = i32::MIN;

impl Engine {
    /// Waits until everything sent has left, and all ranks of `world` have come here: a dissemination barrier.
    ///
    /// # Errors
    ///
    /// As [`Engine::wait`].
    pub fn leave(&self, world: &Comm) -> Result<()> {
        // Sends that nobody waits for any more must still arrive (MPI 5.0 §11.2.2); only then is what they left in line sent.
        self.wait_until(|| None, || self.sends_let_go() == 0 && self.backlog.lock(self.shared).is_empty())?;
        let (rank, size) = (world.rank(), world.size());
        let mut distance = 1;
        while distance < size {
            let (to, from) = ((rank + distance) % size, (rank + size - distance) % size);
            // SAFETY: no bytes.
            unsafe {
                self.coll_send(world, core::ptr::null(), 0, to as i32, FAREWELL)?;
                self.coll_recv(world, core::ptr::null_mut(), 0, from as i32, FAREWELL)?;
            }
            distance *= 2;
        }
        self.wait_until(|| None, || self.backlog.lock(self.shared).is_empty())
    }

    /// Waits until nothing that this rank has begun needs it any more: buffered sends have been received, operations whose
    /// requests were freed are over, and what waited for room at a peer has left. Nobody else has to come here.
    ///
    /// # Errors
    ///
    /// As [`Engine::wait`].
    pub fn depart(&self) -> Result<()> {
        self.flush_buffer()?;
        let freed =
            || self.requests.alive_ones().any(|it| it.state().is_detached() && it.state().is_active());
        self.wait_until(|| None, || !freed() && self.backlog.lock(self.shared).is_empty())
    }
}
