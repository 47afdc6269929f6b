//! Point-to-point messages of the library's own: for collectives, on the communicator's collective context. No events.

use crate::arch::clock::now;
use crate::comm::Comm;
use crate::engine::{Data, Engine, Mode, RecvMemory, Ref};
use crate::error::{Error, Result};
use crate::p2p::MessageStatus;
use crate::shm::telemetry::{Wait, Waiting};

impl Engine {
    /// Sends `bytes` bytes to rank `dest` of the peers.
    ///
    /// # Errors
    ///
    /// As [`Engine::send`].
    ///
    /// # Safety
    ///
    /// `addr` is valid for reads of `bytes` bytes, which nobody writes until the call returns.
    pub unsafe fn coll_send(
        &self,
        comm: &Comm,
        addr: *const u8,
        bytes: usize,
        dest: i32,
        tag: i32,
        mode: Mode,
    ) -> Result<()> {
        // SAFETY: the bytes are valid until the call returns.
        if unsafe { self.coll_send_at_once(comm, addr, bytes, dest, tag) } {
            return Ok(());
        }
        // SAFETY: the bytes are valid until the call returns, which it does not before the request is complete.
        let request = unsafe { self.coll_isend(comm, addr, bytes, dest, tag, mode) }?;
        self.wait(request).map(drop)
    }

    /// Sends such a message if that takes no waiting; false, with nothing done, if it does.
    ///
    /// # Safety
    ///
    /// As [`Self::coll_send`].
    #[inline(always)]
    pub unsafe fn coll_send_at_once(
        &self,
        comm: &Comm,
        addr: *const u8,
        bytes: usize,
        dest: i32,
        tag: i32,
    ) -> bool {
        let context = comm.collective();
        // SAFETY: the bytes are valid until the call returns.
        !context.observed() && unsafe { self.send_fast::<true>(context, comm, addr, bytes, dest, tag) }
    }

    /// Starts such a send.
    ///
    /// # Errors
    ///
    /// As [`Engine::isend`].
    ///
    /// # Safety
    ///
    /// As [`Self::coll_send`], until the request is complete.
    pub unsafe fn coll_isend(
        &self,
        comm: &Comm,
        addr: *const u8,
        bytes: usize,
        dest: i32,
        tag: i32,
        mode: Mode,
    ) -> Result<Ref> {
        let data = Data::bytes(addr.cast_mut(), bytes);
        let request = self.prepare_send(comm.collective(), comm, data, dest, tag, mode)?;
        self.start_send(request, mode)?;
        Ok(request)
    }

    /// Receives at most `room` bytes from rank `source` of the peers; returns how many came.
    ///
    /// # Errors
    ///
    /// As [`Engine::recv`].
    ///
    /// # Safety
    ///
    /// `addr` is valid for writes of `room` bytes, untouched by others until the call returns.
    pub unsafe fn coll_recv(
        &self,
        comm: &Comm,
        addr: *mut u8,
        room: usize,
        source: i32,
        tag: i32,
        mode: Mode,
    ) -> Result<usize> {
        let context = comm.collective();
        if !context.observed() {
            // SAFETY: the bytes are valid until the call returns.
            let room = unsafe { RecvMemory::new(addr, room) };
            if let Some(status) = self.receive_fast(context, comm, room, source, tag) {
                return Ok(status.bytes as usize);
            }
        }
        // SAFETY: the bytes are valid until the call returns, and `finish_coll_recv` leaves no receive posted.
        let request = unsafe { self.coll_irecv(comm, addr, room, source, tag, mode) }?;
        Ok(self.finish_coll_recv(request)?.bytes as usize)
    }

    /// Receives such a message if it has come or comes within a short moment, and needs nothing of its sender; `None`,
    /// with nothing done, if not, and where something else wants progress, as an operation in the background does.
    ///
    /// # Safety
    ///
    /// As [`Self::coll_recv`].
    pub unsafe fn coll_recv_at_once(
        &self,
        comm: &Comm,
        addr: *mut u8,
        room: usize,
        source: i32,
        tag: i32,
    ) -> Option<usize> {
        let context = comm.collective();
        if context.observed() {
            return None;
        }
        // SAFETY: the bytes are valid until the call returns.
        let room = unsafe { RecvMemory::new(addr, room) };
        self.receive_soon::<true>(context, comm, room, source, tag).map(|status| status.bytes as usize)
    }

    /// Waits for such a receive. Where waiting has become pointless it is cancelled: it must not outlive its room.
    ///
    /// # Errors
    ///
    /// As [`Engine::wait`].
    pub fn finish_coll_recv(&self, request: Ref) -> Result<MessageStatus> {
        self.wait(request).inspect_err(|_| {
            if !request.state().is_complete() {
                let _ = self.cancel(request);
            }
        })
    }

    /// Waits for such a message of any length and receives it, unless `instead` gives something first, which it is
    /// asked for whenever something has happened.
    ///
    /// # Errors
    ///
    /// As [`Engine::wait`].
    pub fn coll_take_unless<T>(
        &self,
        comm: &Comm,
        source: i32,
        tag: i32,
        mut instead: impl FnMut() -> Option<T>,
    ) -> Result<Result<T, Vec<u8>>> {
        let context = comm.collective();
        let peer = Some(comm.world_rank_of(source));
        let why = || Wait { kind: Waiting::Collective, peer, tag: None, context: context.id(), since: now() };
        let (mut given, mut arrived) = (None, None);
        self.progress().wait_until(
            || Some(why()),
            || {
                if given.is_none() && arrived.is_none() {
                    given = instead();
                    arrived = if given.is_none() { self.take_unexpected(context, source, tag) } else { None };
                }
                given.is_some() || arrived.is_some()
            },
        )?;
        let (envelope, message) = match (given, arrived) {
            (Some(given), _) => return Ok(Ok(given)),
            (None, Some(arrived)) => arrived,
            (None, None) => return Err(Error::Intern("a wait has ended without a message".into())),
        };
        let mut bytes = Vec::new();
        bytes.try_reserve_exact(message.bytes())?;
        bytes.resize(message.bytes(), 0);
        let room = Data::bytes(bytes.as_mut_ptr(), bytes.len());
        let request = self.prepare_recv(context, comm, room, source, tag)?;
        self.start_matched(request, &envelope, message)?;
        self.finish_coll_recv(request)?;
        Ok(Err(bytes))
    }

    /// Starts such a receive.
    ///
    /// # Errors
    ///
    /// As [`Engine::irecv`].
    ///
    /// # Safety
    ///
    /// As [`Self::coll_recv`], until the request is complete.
    pub unsafe fn coll_irecv(
        &self,
        comm: &Comm,
        addr: *mut u8,
        room: usize,
        source: i32,
        tag: i32,
        mode: Mode,
    ) -> Result<Ref> {
        let request = self.prepare_recv(comm.collective(), comm, Data::bytes(addr, room), source, tag)?;
        // SAFETY: request rule 2: just taken, not active.
        unsafe { request.body() }.mode.set(mode);
        self.start_recv(request)?;
        Ok(request)
    }
}
