//! MPI_Buffer_flush and MPI_Buffer_detach (MPI 5.0 §3.6).

use crate::engine::{Buffers, Engine};
use crate::error::Result;

impl Engine {
    /// The process's attached buffer.
    pub fn buffers(&self) -> &Buffers {
        &self.buffers
    }

    /// Waits until every buffered send has left the buffer (MPI_Buffer_flush).
    ///
    /// # Errors
    ///
    /// As [`Engine::wait`].
    pub fn flush_buffer(&self) -> Result<()> {
        self.progress().wait_until(|| None, || self.buffers.is_idle())
    }

    /// Waits until the buffer is idle and takes it away: address and size, or null and 0 if none was attached.
    ///
    /// # Errors
    ///
    /// As [`Engine::wait`].
    pub fn detach_buffer(&self) -> Result<(*mut u8, usize)> {
        self.flush_buffer()?;
        Ok(self.buffers.take().unwrap_or((core::ptr::null_mut(), 0)))
    }
}
