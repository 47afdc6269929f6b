//! Put and get: bytes move between an origin's buffer and a target's memory, whatever the layouts,
//! and are there when the call returns.

use super::block_locks::BlockLocks;
use super::memory::{Reach, Spot};
use super::remote::Remote;
use crate::arch::copy_long;
use crate::coll::buffer::{InputBuffer, OutputBuffer};
use crate::datatype::{Datatype, LayoutOrder};
use crate::error::{Error, Result};
use crate::scratch::Scratch;

/// Bytes that are packed at a time where both layouts have gaps: they stay in the first-level cache.
const CHUNK: usize = 16 << 10;

/// The target's side of an operation.
#[derive(Debug, Clone, Copy)]
pub(super) struct TargetElements<'a> {
    pub spot: Spot,
    pub count: usize,
    pub datatype: &'a Datatype,
    /// The locks of accumulates there.
    pub locks: &'a BlockLocks,
}

impl TargetElements<'_> {
    /// Bytes of the packed elements.
    pub fn bytes(&self) -> usize {
        self.count * self.datatype.size()
    }

    /// Whether displacements ascend from each element to the next.
    pub fn ascends(&self) -> bool {
        let datatype = self.datatype;
        (self.count == 1 || datatype.extent() >= datatype.true_extent())
            && datatype.layout_order() == LayoutOrder::Ascending
    }

    /// The runs of the packed stream, as displacements and lengths.
    pub fn runs(&self) -> impl Iterator<Item = (isize, usize)> + '_ {
        self.datatype.runs(self.count)
    }
}

/// Runs that are used up piece by piece.
struct RunsInTurn<I> {
    runs: I,
    /// What is left of the last one.
    rest: Option<(isize, usize)>,
}

impl<I: Iterator<Item = (isize, usize)>> RunsInTurn<I> {
    fn of(runs: I) -> Self {
        Self { runs, rest: None }
    }

    /// The runs of the next `len` bytes.
    fn next_bytes(&mut self, mut len: usize) -> impl Iterator<Item = (isize, usize)> + '_ {
        core::iter::from_fn(move || {
            if len == 0 {
                return None;
            }
            let (start, whole) = self.rest.take().or_else(|| self.runs.next())?;
            let part = whole.min(len);
            len -= part;
            self.rest = (part < whole).then_some((start + part as isize, whole - part));
            Some((start, part))
        })
    }
}

/// # Errors
/// [`Error::RmaTruncate`] if `sent` bytes are more than `room`.
pub(super) fn check_room(sent: usize, room: usize) -> Result<()> {
    if sent <= room { Ok(()) } else { Err(Error::RmaTruncate { sent: sent as u64, room: room as u64 }) }
}

/// Copies an origin's elements to a target's.
///
/// # Errors
/// [`Error::RmaTruncate`] if they are more than the target's; those of the kernel for private memory.
pub(super) fn put(remote: Remote<'_>, origin: InputBuffer<'_>, target: TargetElements<'_>) -> Result<()> {
    let bytes = origin.bytes();
    check_room(bytes, target.bytes())?;
    if bytes == 0 {
        return Ok(());
    }
    match (target.spot.reach, origin.run(), target.datatype.is_contiguous()) {
        (Reach::Mapped { addr }, Some(from), true) => {
            let to = addr.wrapping_offset(target.datatype.true_lb());
            // SAFETY: the target's bytes lie in a window (`TargetMemory::find`) that is mapped here;
            // the origin's are contiguous.
            unsafe { copy_long(from, to, bytes) };
            Ok(())
        }
        (Reach::Mapped { addr }, Some(from), false) => {
            // SAFETY: the origin's elements are contiguous, and nobody writes them (buffer rule 1).
            let from = unsafe { core::slice::from_raw_parts(from, bytes) };
            // SAFETY: the target's elements lie in a window that is mapped here.
            unsafe { target.datatype.unpack(target.count, addr, 0, from) };
            Ok(())
        }
        (Reach::Private { world, addr }, Some(from), _) => {
            // SAFETY: the origin's elements are contiguous, and nobody writes them (buffer rule 1).
            let from = unsafe { core::slice::from_raw_parts(from, bytes) };
            remote.write(world, addr, target.runs(), from)
        }
        (reach, None, _) => {
            let mut runs = RunsInTurn::of(target.runs());
            in_chunks(bytes, |at, chunk| {
                origin.pack(at, chunk);
                match reach {
                    Reach::Mapped { addr } => {
                        // SAFETY: the target's elements lie in a window that is mapped here.
                        unsafe { target.datatype.unpack(target.count, addr, at, chunk) };
                        Ok(())
                    }
                    Reach::Private { world, addr } => {
                        remote.write(world, addr, runs.next_bytes(chunk.len()), chunk)
                    }
                }
            })
        }
    }
}

/// Copies a target's elements to an origin's.
///
/// # Errors
/// [`Error::RmaTruncate`] if they are more than the origin's; those of the kernel for private memory.
pub(super) fn get(remote: Remote<'_>, target: TargetElements<'_>, origin: &OutputBuffer<'_>) -> Result<()> {
    let bytes = target.bytes();
    check_room(bytes, origin.bytes())?;
    if bytes == 0 {
        return Ok(());
    }
    match (target.spot.reach, origin.as_input().run(), target.datatype.is_contiguous()) {
        (Reach::Mapped { addr }, Some(to), true) => {
            let from = addr.wrapping_offset(target.datatype.true_lb());
            // SAFETY: the target's bytes lie in a window that is mapped here;
            // the origin's are contiguous and ours (buffer rule 2).
            unsafe { copy_long(from, to.cast_mut(), bytes) };
            Ok(())
        }
        (Reach::Private { world, addr }, Some(to), _) => {
            // SAFETY: the origin's elements are contiguous and ours (buffer rule 2).
            let to = unsafe { core::slice::from_raw_parts_mut(to.cast_mut(), bytes) };
            remote.read(world, addr, target.runs(), to)
        }
        (reach, ..) => {
            let mut runs = RunsInTurn::of(target.runs());
            in_chunks(bytes, |at, chunk| {
                match reach {
                    Reach::Mapped { addr } => {
                        // SAFETY: the target's elements lie in a window that is mapped here.
                        unsafe { target.datatype.pack(target.count, addr, at, chunk) };
                    }
                    Reach::Private { world, addr } => {
                        remote.read(world, addr, runs.next_bytes(chunk.len()), chunk)?;
                    }
                }
                origin.unpack(at, chunk);
                Ok(())
            })
        }
    }
}

/// Calls `part` for the parts of `bytes` bytes, each with where it begins and room for it.
fn in_chunks(bytes: usize, mut part: impl FnMut(usize, &mut [u8]) -> Result<()>) -> Result<()> {
    let mut chunk = Scratch::of(bytes.min(CHUNK))?;
    let mut at = 0;
    while at < bytes {
        let len = chunk.len().min(bytes - at);
        part(at, &mut chunk[..len])?;
        at += len;
    }
    Ok(())
}
