//! MPI_Buffer_flush and MPI_Buffer_detach, and those of communicators and sessions (MPI 5.0 §3.6).

use crate::arch::clock::now;
use crate::engine::{Buffers, Engine};
use crate::error::Result;
use crate::shm::telemetry::{Wait, Waiting};

impl Engine {
    /// The process's attached buffer.
    pub fn buffers(&self) -> &Buffers {
        &self.buffers
    }

    /// Waits until every buffered send that has been begun has left the buffer (MPI_Buffer_flush).
    ///
    /// # Errors
    ///
    /// As [`Engine::wait`].
    pub fn flush_buffer(&self, buffers: &Buffers) -> Result<()> {
        let begun = buffers.reserved();
        let why = || Some(Wait { kind: Waiting::Send, peer: None, tag: None, context: 0, since: now() });
        self.progress().wait_until(why, || buffers.is_free_before(begun))
    }

    /// Waits until the buffer is free and takes it away: address and size, or null and 0 if none was attached.
    ///
    /// # Errors
    ///
    /// As [`Engine::wait`].
    pub fn detach_buffer(&self, buffers: &Buffers) -> Result<(*mut u8, usize)> {
        loop {
            self.flush_buffer(buffers)?;
            // Not, if another thread has begun a send meanwhile.
            if let Some(taken) = buffers.take_free() {
                return Ok(taken.unwrap_or((core::ptr::null_mut(), 0)));
            }
        }
    }
}
