//! Attached buffers: where buffered sends keep their data (MPI 5.0 §3.6).

use crate::error::{Error, Result};
use crate::sync::{Arc, Mutex, MutexGuard};

/// Bytes that one buffered send takes of the buffer beside its data; MPI_BSEND_OVERHEAD allows 512.
const OVERHEAD: usize = 64;
const _: () = assert!(OVERHEAD <= crate::abi::MPI_BSEND_OVERHEAD as usize);

/// The place for the attached buffer of a process, a session or a communicator. A clone is the same place.
#[derive(Clone, Debug, Default)]
pub struct Buffers(Arc<Mutex<Slot>>);

/// What is attached, if anything is.
#[derive(Debug, Default)]
struct Slot {
    attached: Option<Attached>,
    /// Pieces reserved so far.
    reserved: u64,
}

#[derive(Debug)]
struct Attached {
    /// Address; MPI_BUFFER_AUTOMATIC where the library makes room by itself, for each message.
    start: usize,
    size: usize,
    /// Pieces in use, by offset.
    used: Vec<Piece>,
}

/// A piece of an attached buffer that is in use.
#[derive(Debug, Clone, Copy)]
struct Piece {
    offset: usize,
    len: usize,
    /// Its number among those of the place.
    number: u64,
}

/// A piece of an attached buffer; gives itself back.
#[derive(Debug)]
pub struct Reservation {
    buffer: Arc<Mutex<Slot>>,
    number: u64,
    /// Bytes that the library made for this message.
    memory: Option<Box<[u8]>>,
}

impl Slot {
    fn check_none(&self) -> Result<()> {
        match self.attached {
            None => Ok(()),
            Some(_) => Err(Error::Buffer("a buffer is attached already; detach it first")),
        }
    }
}

fn lock(buffer: &Mutex<Slot>) -> MutexGuard<'_, Slot> {
    buffer.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

impl Drop for Reservation {
    fn drop(&mut self) {
        if let Some(attached) = &mut lock(&self.buffer).attached {
            attached.used.retain(|piece| piece.number != self.number);
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
        slot.check_none()?;
        slot.attached = Some(Attached { start: addr as usize, size, used: Vec::new() });
        Ok(())
    }

    /// Attaches no buffer.
    ///
    /// # Errors
    ///
    /// As [`Self::attach`].
    pub fn check_none(&self) -> Result<()> {
        lock(&self.0).check_none()
    }

    /// Whether a buffer is attached.
    #[must_use]
    pub fn is_attached(&self) -> bool {
        lock(&self.0).attached.is_some()
    }

    /// Where the attached buffer begins; `None` where the program has attached none of its own.
    #[must_use]
    pub fn start(&self) -> Option<usize> {
        let start = lock(&self.0).attached.as_ref()?.start;
        (start != crate::abi::MPI_BUFFER_AUTOMATIC).then_some(start)
    }

    /// Returns how many pieces have been reserved so far, for [`Self::is_free_before`].
    #[must_use]
    pub fn reserved(&self) -> u64 {
        lock(&self.0).reserved
    }

    /// Whether every piece is free of those reserved before so many had been ([`Self::reserved`]).
    #[must_use]
    pub fn is_free_before(&self, reserved: u64) -> bool {
        let slot = lock(&self.0);
        slot.attached
            .as_ref()
            .is_none_or(|attached| attached.used.iter().all(|piece| piece.number >= reserved))
    }

    /// Takes the buffer away, unless a piece of it is in use (`None`); gives address and size, if one was attached.
    pub(crate) fn take_free(&self) -> Option<Option<(*mut u8, usize)>> {
        let mut slot = lock(&self.0);
        if slot.attached.as_ref().is_some_and(|attached| !attached.used.is_empty()) {
            return None;
        }
        Some(slot.attached.take().map(|attached| (attached.start as *mut u8, attached.size)))
    }

    /// Reserves room for `bytes` bytes of data: its address, and the piece.
    pub(crate) fn reserve(&self, bytes: usize) -> Result<(*mut u8, Reservation)> {
        let mut slot = lock(&self.0);
        let need = (bytes + OVERHEAD).next_multiple_of(8);
        let number = slot.reserved;
        let Some(attached) = &mut slot.attached else { return Err(Error::BsendSpace { need, free: 0 }) };
        if attached.start == crate::abi::MPI_BUFFER_AUTOMATIC {
            let mut memory = Vec::new();
            memory.try_reserve_exact(bytes)?;
            memory.resize(bytes, 0);
            let mut memory = memory.into_boxed_slice();
            let addr = memory.as_mut_ptr();
            attached.used.push(Piece { offset: 0, len: need, number });
            slot.reserved += 1;
            return Ok((addr, Reservation { buffer: Arc::clone(&self.0), number, memory: Some(memory) }));
        }
        let (offset, place) = attached.find(need)?;
        attached.used.insert(place, Piece { offset, len: need, number });
        let addr = (attached.start + offset) as *mut u8;
        slot.reserved += 1;
        Ok((addr, Reservation { buffer: Arc::clone(&self.0), number, memory: None }))
    }
}

impl Attached {
    /// The first gap of `need` bytes: its offset and its place in `used`.
    fn find(&self, need: usize) -> Result<(usize, usize)> {
        let (mut from, mut free) = (0, 0);
        let ends = self
            .used
            .iter()
            .map(|piece| (piece.offset, piece.offset + piece.len))
            .chain([(self.size, self.size)]);
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
        assert!(buffers.is_free_before(1) && !buffers.is_free_before(2));
        assert_eq!(buffers.reserve(100).expect("room").0, first);
        assert_eq!(buffers.take_free(), None, "a piece is in use");
        drop(kept);
        assert!(buffers.is_free_before(buffers.reserved()));
        assert_eq!(buffers.take_free(), Some(Some((first, 1000))));
        assert_eq!(buffers.take_free(), Some(None));
    }

    #[test]
    fn without_a_buffer_there_is_no_room() {
        assert_eq!(Buffers::default().reserve(0).unwrap_err(), Error::BsendSpace { need: 64, free: 0 });
    }
}
