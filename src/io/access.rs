//! Accesses of one rank: from elements in memory to runs in a file.

use super::file::File;
use super::mapped;
use super::stream::Turn;
use super::system::Descriptor;
pub use super::system::Transfer;
use super::view::View;
use crate::datatype::Datatype;
use crate::error::Result;
use crate::scratch::Scratch;
use crate::sync::Arc;
use core::slice;

/// Bytes that elements which do not lie together are packed into at a time.
const PIECE: usize = 1 << 20;
/// Bytes of the file that a strided read takes at a time, wanted and unwanted ones.
const SIEVE: u64 = 1 << 19;
/// A strided read takes unwanted bytes with the wanted ones where runs are shorter than this.
const SHORT_RUN: u64 = 1 << 12;
/// A strided read takes at most so many times the bytes that are wanted.
const WASTE: u64 = 16;

/// Runs that are written together at most.
const MOST_RUNS: usize = 1 << 16;

/// Elements in a program's memory, to be written to a file or read from it.
///
/// **Elements rule.** As long as they are used, the memory can be read, if they are written to a file, or written, if
/// they are read from one, and no other thread uses it. The code that makes one guarantees that.
#[derive(Debug, Clone)]
pub struct Elements {
    addr: *mut u8,
    count: usize,
    datatype: Datatype,
    handle: usize,
}

// SAFETY: the elements rule holds whichever thread uses them.
unsafe impl Send for Elements {}
// SAFETY: all that is behind the address is reached by one access, which one thread performs.
unsafe impl Sync for Elements {}

impl Elements {
    /// Names `count` elements of type `datatype`, whose handle is `handle`, at `addr`.
    ///
    /// # Safety
    /// The elements rule. [`Datatype::bytes_of`] knows how many bytes they are.
    #[must_use]
    pub unsafe fn new(addr: *mut u8, count: usize, datatype: Datatype, handle: usize) -> Self {
        Self { addr, count, datatype, handle }
    }

    /// Bytes of the packed elements.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.count * self.datatype.size()
    }

    pub(super) fn addr(&self) -> *mut u8 {
        self.addr
    }

    pub(super) fn count(&self) -> usize {
        self.count
    }

    pub(super) fn datatype(&self) -> &Datatype {
        &self.datatype
    }

    pub(super) fn handle(&self) -> usize {
        self.handle
    }

    /// Where they lie, if they are one run of bytes.
    pub(super) fn run(&self) -> Option<*mut u8> {
        self.datatype.is_contiguous().then(|| self.addr.wrapping_offset(self.datatype.true_lb()))
    }

    /// Copies packed bytes from position `at` on to `to`, as many as it holds.
    pub(super) fn pack(&self, at: usize, to: &mut [u8]) {
        // SAFETY: the elements can be read (elements rule), and `to` is memory of this library's.
        unsafe { self.datatype.pack(self.count, self.addr, at, to) };
    }

    /// Copies packed bytes to position `at` and what follows.
    pub(super) fn unpack(&self, at: usize, from: &[u8]) {
        // SAFETY: the elements can be written (elements rule), and `from` is memory of this library's.
        unsafe { self.datatype.unpack(self.count, self.addr, at, from) };
    }
}

/// Whether an access reads or writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// From the file to memory.
    Read,
    /// From memory to the file.
    Write,
}

/// An access that is ready to be performed: where in the view, and how many bytes of the file.
#[derive(Debug, Clone)]
pub(super) struct Access {
    pub direction: Direction,
    pub view: Arc<View>,
    /// Position in the view's stream of bytes.
    pub at: u64,
    /// Bytes in the file.
    pub bytes: u64,
    /// The part of a stream that the shared file pointer has given it.
    pub turn: Option<Turn>,
}

impl File {
    /// Checks an access at position `at` of the view and makes it ready.
    pub(super) fn access(
        &self,
        direction: Direction,
        view: Arc<View>,
        at: u64,
        elements: &Elements,
    ) -> Result<Access> {
        // Without a function for this direction a representation is the native one (MPI 5.0 §14.5.3).
        let bytes = match view.parts.representation.converts(direction) {
            true => view.parts.representation.file_bytes(&elements.datatype, elements.count)?,
            false => elements.datatype.bytes_of(elements.count)?,
        } as u64;
        view.etypes(bytes)?;
        view.check(at, bytes)?;
        Ok(Access { direction, view, at, bytes, turn: None })
    }

    /// Performs an access. Bytes are counted as they are in memory.
    pub(super) fn perform(&self, access: &Access, elements: &Elements) -> Transfer {
        let guards = self.wait_for_turn(access).and_then(|turn| Ok((self.lock_if_atomic(access)?, turn)));
        let guards = match guards {
            Ok(guards) => guards,
            Err(error) => return Transfer::failed(error),
        };
        let transfer = self.moving(Some(access), || move_elements(self.descriptor(), access, elements));
        drop(guards);
        self.count(access.direction, &transfer);
        transfer
    }
}

/// Performs an access without any lock.
pub(super) fn move_elements(file: &Descriptor, access: &Access, elements: &Elements) -> Transfer {
    let representation = &access.view.parts.representation;
    if !representation.converts(access.direction) {
        return move_native(file, access, elements);
    }
    let mut staged = match Scratch::of(access.bytes as usize) {
        Ok(staged) => staged,
        Err(error) => return Transfer::failed(error),
    };
    match access.direction {
        Direction::Write => {
            if let Err(error) = representation.encode(elements, &mut staged) {
                return Transfer::failed(error);
            }
            let written = write_runs(file, &access.view, access.at, &staged);
            let bytes = representation.native_bytes(elements, written.bytes);
            written.converted(bytes)
        }
        Direction::Read => {
            let read = read_runs(file, &access.view, access.at, &mut staged);
            let got = &mut staged[..read.bytes as usize];
            match representation.decode(elements, got) {
                Ok(bytes) => read.converted(bytes),
                Err(error) => Transfer::failed(error),
            }
        }
    }
}

fn move_native(file: &Descriptor, access: &Access, elements: &Elements) -> Transfer {
    let Access { direction, view, at, bytes, .. } = access;
    let total = *bytes as usize;
    if total == 0 {
        return Transfer::default();
    }
    if let Some(run) = elements.run() {
        return match direction {
            // SAFETY: elements of a contiguous type are one run of bytes that can be read (elements rule).
            Direction::Write => write_runs(file, view, *at, unsafe { slice::from_raw_parts(run, total) }),
            // SAFETY: elements of a contiguous type are one run of bytes that can be written,
            // and no other thread uses (elements rule).
            Direction::Read => read_runs(file, view, *at, unsafe { slice::from_raw_parts_mut(run, total) }),
        };
    }
    let mut piece = match Scratch::of(total.min(PIECE)) {
        Ok(piece) => piece,
        Err(error) => return Transfer::failed(error),
    };
    let mut done = 0;
    while done < total {
        let len = piece.len().min(total - done);
        let position = at + done as u64;
        let moved = match direction {
            Direction::Write => {
                elements.pack(done, &mut piece[..len]);
                write_runs(file, view, position, &piece[..len])
            }
            Direction::Read => {
                let moved = read_runs(file, view, position, &mut piece[..len]);
                elements.unpack(done, &piece[..moved.bytes as usize]);
                moved
            }
        };
        done += moved.bytes as usize;
        if moved.error.is_some() || (moved.bytes as usize) < len {
            return Transfer::of(done as u64, moved.error);
        }
    }
    Transfer::of(done as u64, None)
}

/// Writes bytes to the runs of a view from position `at` on.
fn write_runs(file: &Descriptor, view: &View, at: u64, from: &[u8]) -> Transfer {
    let mut writer = RunWriter::new(file);
    let mut done = 0;
    for (offset, len) in view.runs(at, from.len() as u64) {
        if !writer.takes(offset, len) && !writer.flush(&from[..done]) {
            break;
        }
        writer.take(offset, len);
        done += len as usize;
    }
    writer.flush(&from[..done]);
    writer.ended()
}

/// Writes runs that ascend, short ones through a mapping.
pub(super) struct RunWriter<'a> {
    file: &'a Descriptor,
    /// Runs that are not written yet, and their bytes.
    runs: Vec<(u64, u64)>,
    waiting: u64,
    moved: Transfer,
}

impl<'a> RunWriter<'a> {
    pub fn new(file: &'a Descriptor) -> Self {
        Self { file, runs: Vec::new(), waiting: 0, moved: Transfer::default() }
    }

    /// Whether a run can be written together with those that wait.
    #[inline]
    pub fn takes(&self, offset: u64, len: u64) -> bool {
        match (self.runs.first(), self.runs.last()) {
            (Some((first, _)), Some((last, bytes))) => {
                len < mapped::SHORT_RUN
                    && *bytes < mapped::SHORT_RUN
                    && offset >= last + bytes
                    && offset + len - first <= mapped::WINDOW
                    && self.runs.len() < MOST_RUNS
            }
            _ => true,
        }
    }

    #[inline]
    pub fn take(&mut self, offset: u64, len: u64) {
        self.runs.push((offset, len));
        self.waiting += len;
    }

    /// Writes what waits, whose bytes are the last ones of `from`. False if something went wrong.
    pub fn flush(&mut self, from: &[u8]) -> bool {
        let from = &from[from.len() - self.waiting as usize..];
        if self.runs.len() >= mapped::FEW && mapped::write(self.file, &self.runs, from) {
            self.moved.bytes += self.waiting;
        } else {
            let mut done = 0;
            for (offset, len) in &self.runs {
                let moved = self.file.write(*offset, &from[done..done + *len as usize]);
                done += *len as usize;
                self.moved.bytes += moved.bytes;
                if moved.error.is_some() {
                    self.moved.error = moved.error;
                    break;
                }
            }
        }
        self.runs.clear();
        self.waiting = 0;
        self.moved.error.is_none()
    }

    pub fn ended(self) -> Transfer {
        self.moved
    }
}

/// Reads bytes from the runs of a view from position `at` on, until the file ends.
fn read_runs(file: &Descriptor, view: &View, at: u64, to: &mut [u8]) -> Transfer {
    let mut runs = view.runs(at, to.len() as u64).peekable();
    let (mut sieve, mut few) = (Scratch::default(), Vec::new());
    let mut done = 0;
    while let Some(first) = runs.next() {
        let (start, mut wanted) = first;
        let mut end = start + wanted;
        few.clear();
        if wanted < SHORT_RUN {
            while let Some((offset, len)) = runs.next_if(|(offset, len)| {
                *offset >= end
                    && offset + len - start <= SIEVE
                    && offset + len - start <= (wanted + len) * WASTE
            }) {
                if few.is_empty() {
                    few.push(first);
                }
                few.push((offset, len));
                (end, wanted) = (offset + len, wanted + len);
            }
        }
        let wanted = wanted as usize;
        let moved = if few.is_empty() {
            file.read(start, &mut to[done..done + wanted])
        } else if few.len() >= mapped::FEW && mapped::read(file, &few, &mut to[done..done + wanted]) {
            Transfer::of(wanted as u64, None)
        } else {
            if sieve.is_empty() {
                sieve = match Scratch::of(SIEVE as usize) {
                    Ok(sieve) => sieve,
                    Err(error) => return Transfer::of(done as u64, Some(error)),
                };
            }
            let span = file.read(start, &mut sieve[..(end - start) as usize]);
            let mut put = 0;
            for (offset, len) in &few {
                let from = (offset - start) as usize;
                let here = (*len as usize).min((span.bytes as usize).saturating_sub(from));
                to[done + put..done + put + here].copy_from_slice(&sieve[from..from + here]);
                put += here;
                if here < *len as usize {
                    break;
                }
            }
            Transfer::of(put as u64, span.error.filter(|_| put < wanted))
        };
        done += moved.bytes as usize;
        if moved.error.is_some() || (moved.bytes as usize) < wanted {
            return Transfer::of(done as u64, moved.error);
        }
    }
    Transfer::of(done as u64, None)
}
