//! Reading and writing many short runs through a mapping of the file:
//! a copy for each, where a system call takes microseconds.
//!
//! The kernel makes every page that is about to be accessed ready first (`MADV_POPULATE_READ`, `MADV_POPULATE_WRITE`),
//! and says so if it cannot: on a full disk, beyond the end, where the file system maps no files. Then the caller goes
//! run by run. Bytes between the runs are never written, so other ranks and jobs may write these meanwhile, which
//! reading, changing and writing back would undo. The file keeps the last mapping: to make one, and its pages ready for
//! the first time, takes many times as long as to copy.
//!
//! - **Mapping rule 1.** Pages of the mapping are accessed only after they have been made ready, within
//!   [`Mapping::access`]: a file may be cut off between the two. Then the caller goes run by run, too.

use super::access::Direction;
use super::cut_off::PagesMayGo;
use super::system::Descriptor;
use crate::arch::copy_run;
use crate::limits::PAGE;
use rustix::io::Errno;
use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap, munmap};

/// Bytes of the file from the first to the last run that are mapped at a time.
pub(super) const WINDOW: u64 = 1 << 24;
/// A mapping begins and ends at multiples of this in the file: the kernel makes a large folio of the page cache ready
/// in one step where the mapping has all of it, and page by page, at many times the cost, where it has not.
const BLOCK: u64 = 1 << 24;
/// Runs shorter than this are worth a mapping.
pub(super) const SHORT_RUN: u64 = 1 << 15;
/// So few runs are not worth a mapping.
pub(super) const FEW: usize = 8;

/// Part of a file in this process.
#[derive(Debug)]
pub(super) struct Mapping {
    base: *mut u8,
    /// Where in the file it begins.
    start: u64,
    len: usize,
    writable: bool,
    pages: PagesMayGo,
}

// SAFETY: it is memory that is mapped in the whole process, and its owner alone reaches it.
unsafe impl Send for Mapping {}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: it was mapped with this length, and nobody keeps an address of it.
        let _ = unsafe { munmap(self.base.cast(), self.len) };
    }
}

impl Mapping {
    /// Maps what has `first` to `end` of the file: the mapping that the file has kept, if it fits.
    /// `None` if that is not possible here.
    fn of(file: &Descriptor, direction: Direction, first: u64, end: u64) -> Option<Self> {
        let fd = file.for_mapping(direction)?;
        let writable = direction == Direction::Write;
        let fits = |kept: &Self| {
            kept.start <= first && end <= kept.start + kept.len as u64 && kept.writable >= writable
        };
        if let Some(kept) = file.take_mapping().filter(fits) {
            return Some(kept);
        }
        let start = first / BLOCK * BLOCK;
        let len = (end.next_multiple_of(BLOCK) - start) as usize;
        let prot = if writable { ProtFlags::READ | ProtFlags::WRITE } else { ProtFlags::READ };
        // SAFETY: a new mapping, at an address that the kernel chooses.
        match unsafe { mmap(core::ptr::null_mut(), len, prot, MapFlags::SHARED, fd, start) } {
            Ok(base) => Some(Self { base: base.cast(), start, len, writable, pages: PagesMayGo::heed() }),
            Err(errno) => {
                // No room now may be room later.
                if errno != Errno::NOMEM {
                    file.never_map(direction);
                }
                None
            }
        }
    }

    /// Makes the pages of all `runs` (offset, bytes), which ascend, ready for accesses in this direction.
    /// False if that is not possible.
    fn prepare(&self, file: &Descriptor, direction: Direction, runs: &[(u64, u64)]) -> bool {
        // Pages that touch are made ready together; those that no run touches are left alone.
        let mut group: Option<(usize, usize)> = None;
        for (offset, len) in runs {
            let (at, behind) = ((offset - self.start) as usize, (offset + len - self.start) as usize);
            match &mut group {
                Some((_, end)) if at / PAGE <= end.div_ceil(PAGE) => *end = (*end).max(behind),
                _ => {
                    if let Some((from, to)) = group.replace((at, behind))
                        && self.prepare_pages(direction, from, to).is_err()
                    {
                        return false;
                    }
                }
            }
        }
        let Some((from, to)) = group else { return true };
        let prepared = self.prepare_pages(direction, from, to);
        // A kernel before 5.14.
        if prepared == Err(Errno::INVAL) {
            file.never_map(direction);
        }
        prepared.is_ok()
    }

    /// Accesses its pages. Returns whether they were there all the time; if not, nothing has been accessed, and the
    /// mapping is of no more use.
    fn access(&self, access: impl FnOnce()) -> bool {
        self.pages.access(self.base, self.len, access)
    }

    fn prepare_pages(&self, direction: Direction, from: usize, to: usize) -> rustix::io::Result<()> {
        let advice = match direction {
            Direction::Read => Advice::LinuxPopulateRead,
            Direction::Write => Advice::LinuxPopulateWrite,
        };
        let first = from / PAGE * PAGE;
        // SAFETY: these pages are in the mapping; making them ready changes no byte.
        unsafe { madvise(self.base.add(first).cast(), to - first, advice) }
    }
}

/// Reads `runs` (offset, bytes), which ascend and lie within [`WINDOW`], one behind the other into `to`. False if that
/// is not possible here, or not worth its while.
pub(super) fn read(file: &Descriptor, runs: &[(u64, u64)], to: &mut [u8]) -> bool {
    let (Some((first, _)), Some((last, len))) = (runs.first(), runs.last()) else { return true };
    let end = last + len;
    if !file.reads_apart_again() {
        return false;
    }
    // Behind the end of the file there is nothing to make ready.
    if file.for_mapping(Direction::Read).is_none() || file.size().map_or(true, |size| size < end) {
        return false;
    }
    let Some(mapping) = Mapping::of(file, Direction::Read, *first, end) else { return false };
    if !mapping.prepare(file, Direction::Read, runs) {
        return false;
    }
    file.disk_access(*first, (end - first) as usize);
    let mut rest = to;
    let copied = mapping.access(|| {
        for (offset, len) in runs {
            let Some((piece, behind)) = core::mem::take(&mut rest).split_at_mut_checked(*len as usize) else {
                break;
            };
            // SAFETY: the run lies in the mapping, whose pages have been made ready (mapping rule 1); another process
            // that writes the same bytes has a race of its own with this one, as it would with `pread`.
            unsafe {
                let from = mapping.base.add((offset - mapping.start) as usize);
                copy_run(from, piece.as_mut_ptr(), piece.len());
            }
            rest = behind;
        }
    });
    if copied {
        file.keep_mapping(mapping);
    }
    copied
}

/// Writes `from`, one piece behind the other for each of `runs`, as [`write_pieces`].
pub(super) fn write(file: &Descriptor, runs: &[(u64, u64)], from: &[u8]) -> bool {
    let mut done = 0;
    let ends = |i: usize| from.len() - runs[i].1 as usize;
    write_pieces(file, runs, |i| {
        // Asked for the last one first, and then for all in order.
        if i + 1 == runs.len() {
            return &from[ends(i)..];
        }
        let at = done;
        done += runs[i].1 as usize;
        &from[at..done]
    })
}

/// Writes a piece for each of `runs` (offset, bytes), which ascend and lie within [`WINDOW`]. False if that is not
/// possible here: then the caller writes run by run, and finds out why.
pub(super) fn write_pieces<'a>(
    file: &Descriptor,
    runs: &[(u64, u64)],
    mut piece: impl FnMut(usize) -> &'a [u8],
) -> bool {
    let (Some((first, _)), Some((last, len))) = (runs.first(), runs.last()) else { return true };
    let end = last + len;
    let Some(mapping) = Mapping::of(file, Direction::Write, *first, end) else { return false };
    let start = mapping.start;
    let mut write_last = || file.write_raw(*last, piece(runs.len() - 1)).1.is_none();
    // A mapping does not extend a file; writing the last run does,
    // and never shortens one that another rank has extended.
    let short = file.size().map_or(true, |size| size < end);
    if short && !write_last() {
        return false;
    }
    file.disk_access(*first, (end - first) as usize);
    if !mapping.prepare(file, Direction::Write, runs) {
        return false;
    }
    // Nor does one set the time of the file's last change where its pages are ready.
    if !short && !write_last() {
        return false;
    }
    let copied = mapping.access(|| {
        for (i, (offset, _)) in runs.iter().enumerate().take(runs.len() - 1) {
            let piece = piece(i);
            // SAFETY: the run lies in the mapping, whose pages have been made ready (mapping rule 1); another process
            // that uses the same bytes has a race of its own with this one, as it would with `pwrite`.
            unsafe {
                let to = mapping.base.add((offset - start) as usize);
                copy_run(piece.as_ptr(), to, piece.len());
            }
        }
    });
    if copied {
        file.keep_mapping(mapping);
    }
    copied
}
