//! A send and a receive that begin together (MPI 5.0 §3.10).

use super::args::{RecvBuf, SendBuf};
use crate::comm::Comm;
use crate::engine::{Data, Engine, Mode, Ref};
use crate::error::Result;

impl Engine {
    /// Starts a receive and a standard send: both or, on an error, neither. A receive that has begun may have taken a
    /// message, which must not be lost because the send has no request or no ring: so these are had first. Returns the
    /// requests of the send and of the receive.
    ///
    /// # Errors
    ///
    /// As [`Self::isend`] and [`Self::irecv`].
    ///
    /// # Safety
    ///
    /// As for [`Self::isend`] and [`Self::irecv`], for each of the two until its request is complete.
    pub unsafe fn isendrecv(
        &self,
        comm: &Comm,
        (from, dest, send_tag): (&SendBuf<'_>, i32, i32),
        (to, source, recv_tag): (&RecvBuf<'_>, i32, i32),
    ) -> Result<(Ref, Ref)> {
        let sent = self.prepare_send(comm.p2p(), comm, Data::from(from), dest, send_tag, Mode::Standard)?;
        let received = self
            .prepare_recv(comm.p2p(), comm, Data::from(to), source, recv_tag)
            .inspect_err(|_| self.free_request(sent))?;
        let world = (dest >= 0).then(|| comm.world_rank_of(dest)).filter(|world| *world != self.rank());
        let ready = world.map_or(Ok(()), |world| self.transmit().establish(world));
        ready.and_then(|()| self.start_recv(received)).inspect_err(|_| {
            self.free_request(sent);
            self.free_request(received);
        })?;
        // It has its request and its ring, and nothing else of a standard send can fail before it has begun.
        self.start_send(sent, Mode::Standard)?;
        Ok((sent, received))
    }
}
