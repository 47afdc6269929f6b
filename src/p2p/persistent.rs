//! Persistent requests (MPI 5.0 §3.9).

use super::args::{RecvBuf, SendBuf};
use crate::comm::Comm;
use crate::engine::{Data, Engine, Mode, Ref, RequestOperation};
use crate::error::Result;

impl Engine {
    /// A send that [`Engine::start`] activates, any number of times.
    ///
    /// # Errors
    ///
    /// [`crate::Error::NoMem`] when too many requests are alive.
    ///
    /// # Safety
    ///
    /// From each start until completion `buf` describes memory that is valid for reads and not written.
    pub unsafe fn send_init(
        &self,
        comm: &Comm,
        buf: &SendBuf<'_>,
        dest: i32,
        tag: i32,
        mode: Mode,
    ) -> Result<Ref> {
        let request = self.prepare_send(comm.p2p(), comm, Data::from(buf), dest, tag, mode)?;
        self.persist(request, mode);
        Ok(request)
    }

    /// A receive that [`Engine::start`] activates, any number of times.
    ///
    /// # Errors
    ///
    /// [`crate::Error::NoMem`] when too many requests are alive.
    ///
    /// # Safety
    ///
    /// From each start until completion `buf` describes memory that is valid for writes and untouched by others.
    pub unsafe fn recv_init(&self, comm: &Comm, buf: &RecvBuf<'_>, source: i32, tag: i32) -> Result<Ref> {
        let request = self.prepare_recv(comm.p2p(), comm, Data::from(buf), source, tag)?;
        self.persist(request, Mode::Standard);
        Ok(request)
    }

    fn persist(&self, request: Ref, mode: Mode) {
        // SAFETY: request rule 2: prepared by us, not active.
        let body = unsafe { request.body() };
        body.persistent.set(true);
        body.template.set((body.peer.get(), body.tag.get(), body.world.get(), mode));
    }

    /// Activates a persistent request, which is inactive.
    ///
    /// # Errors
    ///
    /// As [`Engine::isend`] and [`Engine::irecv`]; [`crate::Error::Request`] when it is active or not persistent.
    pub fn start(&self, request: Ref) -> Result<()> {
        // SAFETY: request rule 2: an inactive request is its user's.
        let body = unsafe { request.body() };
        if !body.persistent.get() {
            return Err(crate::Error::Request("only a persistent request can be started"));
        }
        if request.state().is_active() || request.state().is_complete() {
            return Err(crate::Error::Request(
                "the request is active already; wait for it before starting it again",
            ));
        }
        let (peer, tag, world, mode) = body.template.get();
        body.peer.set(peer);
        body.tag.set(tag);
        body.world.set(world);
        body.moved.set(0);
        body.total.set(body.bytes.get());
        body.error.take();
        body.status.set(crate::request::MessageStatus::EMPTY);
        match body.operation.get() {
            RequestOperation::Send => self.start_send(request, mode),
            RequestOperation::Receive => self.start_recv(request),
        }
    }
}
