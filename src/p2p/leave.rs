//! Leaving the job together (MPI 5.0 §11.2.2).

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
}
