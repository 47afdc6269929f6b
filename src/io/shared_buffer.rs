//! The buffer of collective accesses of many short runs, in the shared heap of the job of the member of rank 0:
//! a window of the file, a map of it for each member (a bit for each byte that it has filled), and a report of each.
//!
//! Which member may use what when, two-phase rule 1 says (`two_phase`).

use super::file::File;
use super::hints;
use crate::comm::lock;
use crate::engine::{Engine, HomeJob};
use crate::error::Result;
use crate::heap::{Extent, Heap};
use crate::limits::PAGE;
use core::ptr::NonNull;
use core::slice;

/// Bits of a word of a map, and so the bytes of the window that it stands for.
pub(super) const WORD: usize = 64;

/// The shared buffer, as one member has it.
#[derive(Debug)]
pub(super) struct SharedBuffer {
    /// What the member of rank 0 has allocated.
    extent: Option<Extent>,
    /// The window; behind it the reports, then the maps.
    pub base: NonNull<u8>,
    /// Bytes of a window, a multiple of a page for each member.
    pub window: usize,
    /// Bytes of a window at most.
    pub limit: usize,
    pub members: usize,
    /// Whose memory it is: it stays mapped.
    _home: HomeJob,
}

// SAFETY: it is memory that is mapped in the whole process; two-phase rule 1 says who uses what when.
unsafe impl Send for SharedBuffer {}

/// A member's report of the part that it has read or written.
#[derive(Debug, Clone, Copy)]
#[repr(C, align(64))]
pub(super) struct Report {
    /// Read: where the file ends within the part. Written: where writing has failed. [`NOWHERE`]: neither.
    pub stopped: u64,
    /// The number of the error there; 0 for none.
    pub errno: i64,
}

/// Behind every offset.
pub(super) const NOWHERE: u64 = u64::MAX;

impl Report {
    /// A part that was read or written as a whole.
    pub const WHOLE: Self = Self { stopped: NOWHERE, errno: 0 };
}

impl SharedBuffer {
    /// Bytes of a buffer with a window of so many; `None` for more than can be.
    fn bytes(window: usize, members: usize) -> Option<usize> {
        let maps = (window / 8).checked_mul(members)?;
        let reports = size_of::<Report>().checked_mul(members)?;
        window.checked_add(maps)?.checked_add(reports)
    }

    /// The report of a member.
    pub fn report(&self, member: usize) -> NonNull<Report> {
        assert!(member < self.members);
        // SAFETY: the reports lie behind the window (`bytes`), which is a multiple of a page.
        unsafe { self.base.add(self.window).cast::<Report>().add(member) }
    }

    /// The map of a member: a bit for each byte of the window that it has filled.
    pub fn map(&self, member: usize) -> NonNull<u64> {
        assert!(member < self.members);
        let reports = self.window + size_of::<Report>() * self.members;
        // SAFETY: the maps lie behind the reports (`bytes`), aligned as these are.
        unsafe { self.base.add(reports + self.window / 8 * member).cast() }
    }

    /// The part of the window that a member reads or writes.
    pub fn part(&self, member: usize) -> core::ops::Range<usize> {
        let pages = self.window / PAGE;
        let page = |member: usize| pages * member / self.members * PAGE;
        page(member)..page(member + 1)
    }

    /// Gives the memory back. No member uses it any more.
    pub fn free(self, engine: &Engine) {
        if let (Some(extent), Some(heap)) = (&self.extent, Heap::of(engine.job())) {
            heap.free(extent);
        }
    }
}

/// Sets the bits of `bytes` bytes from `at` on.
///
/// # Safety
/// The map has a bit for each of them, and nobody else uses it meanwhile.
pub(super) unsafe fn mark_filled(map: NonNull<u64>, at: usize, bytes: usize) {
    let (first, last) = (at / WORD, (at + bytes - 1) / WORD);
    let from_first = u64::MAX << (at % WORD);
    let to_last = u64::MAX >> (WORD - 1 - (at + bytes - 1) % WORD);
    // SAFETY: the words of the bytes are in the map, which is the caller's (`Safety`).
    unsafe {
        if first == last {
            *map.add(first).as_ptr() |= from_first & to_last;
            return;
        }
        *map.add(first).as_ptr() |= from_first;
        slice::from_raw_parts_mut(map.add(first + 1).as_ptr(), last - first - 1).fill(u64::MAX);
        *map.add(last).as_ptr() |= to_last;
    }
}

/// Calls `run` with the first bit and the length of each run of set bits among `words`.
pub(super) fn filled_runs(words: &[u64], mut run: impl FnMut(usize, usize)) {
    let mut begin = None;
    for (i, word) in words.iter().enumerate() {
        let at = i * WORD;
        match (*word, begin) {
            (0, None) | (u64::MAX, Some(_)) => {}
            (u64::MAX, None) => begin = Some(at),
            (word, _) => {
                for bit in 0..WORD {
                    match (word >> bit & 1, begin) {
                        (1, None) => begin = Some(at + bit),
                        (0, Some(start)) => {
                            run(start, at + bit - start);
                            begin = None;
                        }
                        _ => {}
                    }
                }
            }
        }
    }
    if let Some(start) = begin {
        run(start, words.len() * WORD - start);
    }
}

impl File {
    /// Makes the buffer, which the member of rank 0 allocates, for accesses of so many bytes of the file; `None` if
    /// there is no room for it.
    pub(super) fn make_shared_buffer(&self, engine: &Engine, span: u64) -> Result<Option<SharedBuffer>> {
        let members = self.comm.size() as usize;
        let mut extent = None;
        let mut made = [0; 3];
        if self.comm.rank() == 0 {
            let asked = hints::buffer_size(&lock(&self.info)).min(1 << 30);
            let limit = asked.next_multiple_of(PAGE).max(PAGE * members);
            // A page more: the first window begins at a multiple of a page.
            let enough = (span.min(limit as u64) as usize + PAGE).next_power_of_two();
            let window = enough.max(PAGE * members).min(limit);
            let heap = Heap::of(engine.job());
            extent = heap.zip(SharedBuffer::bytes(window, members)).and_then(|(heap, bytes)| {
                let extent = heap.allocate(bytes, PAGE)?;
                let place = heap.place_of(extent.addr().as_ptr(), bytes)?;
                // SAFETY: the extent is ours and so long, and nobody else knows it yet.
                unsafe { extent.addr().add(window).write_bytes(0, bytes - window) };
                made = [place as i64, window as i64, limit as i64];
                Some(extent)
            });
        }
        let [place, window, limit] = self.exchange(engine, made)?[0];
        let sound = place > 0
            && place % PAGE as i64 == 0
            && window % PAGE as i64 == 0
            && window >= (PAGE * members) as i64;
        let home = engine.home_of(self.comm.group().world_rank(0));
        let mapped =
            home.as_ref().ok().and_then(|home| Heap::of(home.memory(engine))).filter(|_| sound).and_then(
                |heap| heap.at(place as u64, SharedBuffer::bytes(window as usize, members)? as u64),
            );
        let all = self.exchange(engine, [i64::from(mapped.is_some())])?;
        let everybody = all.iter().all(|[mapped]| *mapped == 1);
        let (window, limit) = (window as usize, limit as usize);
        let buffer = mapped.zip(home.ok()).map(|(base, home)| SharedBuffer {
            extent,
            base,
            window,
            limit,
            members,
            _home: home,
        });
        if everybody {
            return Ok(buffer);
        }
        if let Some(buffer) = buffer {
            buffer.free(engine);
        }
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_filled_is_found_again() {
        let mut seed = 1_u64;
        let mut below = |n: u64| {
            seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (seed >> 33) % n
        };
        for _ in 0..200 {
            let mut map = vec![0_u64; 16];
            let mut oracle = vec![false; 16 * WORD];
            for _ in 0..below(6) {
                let at = below(1000) as usize;
                let bytes = 1 + below((oracle.len() - at) as u64) as usize;
                // SAFETY: the map has a bit for each byte, and is this test's.
                unsafe { mark_filled(NonNull::new(map.as_mut_ptr()).unwrap(), at, bytes) };
                oracle[at..at + bytes].fill(true);
            }
            let mut found = vec![false; oracle.len()];
            filled_runs(&map, |at, bytes| {
                assert!(at == 0 || !found[at - 1], "runs that touch are one");
                found[at..at + bytes].fill(true);
            });
            assert_eq!(found, oracle);
        }
    }
}
