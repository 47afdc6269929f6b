//! Attached buffers: where buffered sends keep their data (MPI 5.0 §3.6).

use super::outbox::pack;
use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::events::Event;
use crate::request::{Layout, Ref};
use crate::sync::{Arc, Mutex, MutexGuard};

/// Bytes that one buffered send takes of the buffer beside its data; MPI_BSEND_OVERHEAD allows 512.
const OVERHEAD: usize = 64;
const _: () = assert!(OVERHEAD <= crate::abi::MPI_BSEND_OVERHEAD as usize);

/// The attached buffer of one process (or one communicator), if there is one.
#[derive(Debug, Default)]
pub struct Buffers(Arc<Mutex<Option<Attached>>>);

#[derive(Debug)]
struct Attached {
    /// Address; MPI_BUFFER_AUTOMATIC where the library makes room by itself, for each message.
    start: usize,
    size: usize,
    /// Pieces in use, as `(offset, length)`, by offset.
    used: Vec<(usize, usize)>,
}

/// A piece of an attached buffer; gives itself back.
#[derive(Debug)]
pub struct Reservation {
    buffer: Arc<Mutex<Option<Attached>>>,
    /// Where in the buffer; of an automatic one, the address of `memory`.
    offset: usize,
    /// Bytes that the library made for this message.
    memory: Option<Box<[u8]>>,
}

fn lock(buffer: &Mutex<Option<Attached>>) -> MutexGuard<'_, Option<Attached>> {
    buffer.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

impl Drop for Reservation {
    fn drop(&mut self) {
        if let Some(attached) = &mut *lock(&self.buffer)
            && let Some(place) = attached.used.iter().position(|&(offset, _)| offset == self.offset)
        {
            attached.used.remove(place);
        }
        drop(self.memory.take());
    }
}

impl Buffers {
    /// Lets the library make room for each message as it comes (MPI_BUFFER_AUTOMATIC).
    ///
    /// # Errors
    ///
    /// As [`Self::attach`].
    pub fn attach_automatic(&self) -> Result<()> {
        self.attach(crate::abi::MPI_BUFFER_AUTOMATIC as *mut u8, 0)
    }

    /// Attaches `size` bytes at `addr`.
    ///
    /// # Errors
    ///
    /// [`Error::Buffer`] when one is attached already.
    pub fn attach(&self, addr: *mut u8, size: usize) -> Result<()> {
        let mut slot = lock(&self.0);
        if slot.is_some() {
            return Err(Error::Buffer("a buffer is attached already; detach it first"));
        }
        *slot = Some(Attached { start: addr as usize, size, used: Vec::new() });
        Ok(())
    }

    /// Whether every piece is free.
    pub(super) fn is_idle(&self) -> bool {
        lock(&self.0).as_ref().is_none_or(|attached| attached.used.is_empty())
    }

    /// Takes the buffer away; gives address and size, or `None` if none is attached.
    pub(super) fn take(&self) -> Option<(*mut u8, usize)> {
        lock(&self.0).take().map(|attached| (attached.start as *mut u8, attached.size))
    }

    /// Reserves room for `bytes` bytes of data: its address, and the piece.
    fn reserve(&self, bytes: usize) -> Result<(*mut u8, Reservation)> {
        let mut slot = lock(&self.0);
        let need = (bytes + OVERHEAD).next_multiple_of(8);
        let Some(attached) = &mut *slot else { return Err(Error::BsendSpace { need, free: 0 }) };
        if attached.start == crate::abi::MPI_BUFFER_AUTOMATIC {
            let mut memory = vec![0; bytes].into_boxed_slice();
            let addr = memory.as_mut_ptr();
            // A name that no other piece has: addresses of live memory differ, and of empty pieces any one may go first.
            attached.used.push((addr as usize, need));
            let buffer = Arc::clone(&self.0);
            return Ok((addr, Reservation { buffer, offset: addr as usize, memory: Some(memory) }));
        }
        let (offset, place) = attached.find(need)?;
        attached.used.insert(place, (offset, need));
        let addr = (attached.start + offset) as *mut u8;
        Ok((addr, Reservation { buffer: Arc::clone(&self.0), offset, memory: None }))
    }
}

impl Attached {
    /// The first gap of `need` bytes: its offset and its place in `used`.
    fn find(&self, need: usize) -> Result<(usize, usize)> {
        let (mut from, mut free) = (0, 0);
        let ends =
            self.used.iter().map(|&(offset, len)| (offset, offset + len)).chain([(self.size, self.size)]);
        for (place, (begin, end)) in ends.enumerate() {
            free = free.max(begin.saturating_sub(from));
            if begin >= from + need {
                return Ok((from, place));
            }
            from = end;
        }
        Err(Error::BsendSpace { need, free })
    }
}

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
        let channel = body.channel.expect("an active send");
        // SAFETY: the request counts as pending on the channel.
        let channel_ref = unsafe { channel.as_ref() };
        let (addr, piece) = self.buffers.reserve(body.bytes)?;
        super::observe::request_event(channel_ref, request, Event::ReqXferBegin);
        // SAFETY: the piece is `bytes` long and ours; the user's buffer is valid until the send completes.
        unsafe { pack(body, 0, core::slice::from_raw_parts_mut(addr, body.bytes)) };
        super::observe::request_event(channel_ref, request, Event::ReqXferEnd);
        let carrier = self.new_request(channel_ref)?;
        // SAFETY: request rule 2: just taken, not active.
        let carried = unsafe { carrier.body() };
        carried.operation = body.operation;
        carried.synchronous = false;
        carried.channel = Some(channel);
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
            self.send_to_self(channel_ref, carrier)
        } else if carried.bytes <= self.config.eager_limit() {
            self.send_eager(carrier)
        } else {
            self.announce(carrier)
        };
        self.finish(request);
        sent
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_are_found_first_fit_and_given_back() {
        let buffers = Buffers::default();
        let mut memory = vec![0_u8; 1000];
        buffers.attach(memory.as_mut_ptr(), memory.len()).expect("none before");
        assert!(buffers.attach(memory.as_mut_ptr(), 1).is_err(), "one at a time");
        let (first, piece) = buffers.reserve(400).expect("room");
        let (second, kept) = buffers.reserve(400).expect("room");
        assert_eq!((first, second), (memory.as_mut_ptr(), memory.as_mut_ptr().wrapping_add(464)));
        assert_eq!(buffers.reserve(400).unwrap_err(), Error::BsendSpace { need: 464, free: 72 });
        drop(piece);
        assert_eq!(buffers.reserve(100).expect("room").0, first);
        drop(kept);
        assert!(buffers.is_idle());
        assert_eq!(buffers.take(), Some((first, 1000)));
    }

    #[test]
    fn without_a_buffer_there_is_no_room() {
        assert_eq!(Buffers::default().reserve(0).unwrap_err(), Error::BsendSpace { need: 64, free: 0 });
    }
}
