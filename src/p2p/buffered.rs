//! Attached buffers: where buffered sends keep their data (MPI 5.0 §3.6).

use crate::engine::message_events::request_event;
use crate::engine::tx::pack;
use crate::engine::{Buffers, Engine, Layout, Ref};
use crate::error::Result;
use crate::events::Event;

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
        self.wait_until(|| None, || self.buffers.is_idle())
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

    /// Copies the data of an activated buffered send into the attached buffer, sends it from there, and completes it.
    pub(super) fn start_buffered(&self, request: Ref) -> Result<()> {
        // SAFETY: request rule 2: activated by us, and nobody else knows it yet.
        let body = unsafe { request.body() };
        let context = body.context.expect("an active send");
        // SAFETY: the request counts as pending on the context.
        let context_ref = unsafe { context.as_ref() };
        let (addr, piece) = self.buffers.reserve(body.bytes)?;
        request_event(context_ref, request, Event::ReqXferBegin);
        // SAFETY: the piece is `bytes` long and ours; the user's buffer is valid until the send completes.
        unsafe { pack(body, 0, core::slice::from_raw_parts_mut(addr, body.bytes)) };
        request_event(context_ref, request, Event::ReqXferEnd);
        let carrier = self.new_request(context_ref)?;
        // SAFETY: request rule 2: just taken, not active.
        let carried = unsafe { carrier.body() };
        carried.operation = body.operation;
        carried.synchronous = false;
        carried.context = Some(context);
        (carried.addr, carried.count, carried.bytes, carried.layout) =
            (addr, body.bytes, body.bytes, Layout::Bytes);
        (carried.peer, carried.tag, carried.source, carried.world) =
            (body.peer, body.tag, body.source, body.world);
        (carried.user, carried.moved) = (body.user, 0);
        carried.keeps = Some(Box::new(piece));
        carrier.state().activate();
        // The carrier is nobody's handle: it releases itself, and with it the piece.
        let _ = carrier.state().detach();
        (body.twin, carried.twin) = (carrier.id(), request.id());
        let sent = if carried.world == self.rank {
            self.send_to_self(context_ref, carrier)
        } else if carried.bytes <= self.config.eager_limit() {
            self.send_eager(carrier)
        } else {
            self.announce(carrier)
        };
        self.finish(request);
        sent
    }
}
