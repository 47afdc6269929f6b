//! How a writer writes to memory that a certain reader reads:
//! through its cache, or past it, by how long its own writing takes.
//!
//! A store to a line that another core has read waits for that core's answer. Where the two share a cache the answer
//! comes soon, and the reader finds the line in that cache; where they do not, writing through the cache may take ten
//! times as long as past it, which waits for nobody. Which CPUs share a cache, nobody says on a virtual machine, and it
//! changes while a job runs. Where ranks outnumber CPUs, the reader may even have the writer's own CPU,
//! and its nearest cache.
//!
//! So a writer times a little of what it writes, and of that a little that goes the other way.

use crate::arch::{clock, copy_nontemporal, copy_run};
use crate::sync::Relaxed;

/// Bytes from which writing may go past the cache.
const LONG: usize = 2 << 10;
/// Of so many times one is timed.
const TIMED: u32 = 4;
/// Of so many times one goes the other way, and is timed.
const OTHER_WAY: u32 = 32;
/// How many times as long a copy through the cache takes where it had better go past: readers take two to four times as
/// long for lines that are in no cache, so that the writer has to gain more.
const COPY: u32 = 4;
/// The same of data that is packed, which takes the writer longer in either way.
const PACKED: u32 = 2;

/// What a writer has learned about one reader, or about several that read the same.
/// Times are ticks for a KiB; 0: none yet.
#[derive(Debug, Default)]
pub struct CopyTimes {
    number: Relaxed<u32>,
    /// Of the last two through the cache that were timed. The less counts: one may have been interrupted.
    through: [Relaxed<u32>; 2],
    /// Of the last one past it.
    past: Relaxed<u32>,
    goes_past: Relaxed<bool>,
}

impl CopyTimes {
    /// What a writer has learned that writes past the cache.
    #[cfg(test)]
    pub fn going_past() -> Self {
        Self { goes_past: Relaxed::new(true), ..Self::default() }
    }

    /// Whether the writer goes past the cache at present.
    #[must_use]
    pub fn goes_past(&self) -> bool {
        self.goes_past.get()
    }

    /// Copies `len` bytes to where the reader reads them.
    ///
    /// # Safety
    /// `from` is valid for reads and `to` for writes of `len` bytes, and they do not overlap.
    pub unsafe fn copy(&self, from: *const u8, to: *mut u8, len: usize) {
        // SAFETY: `from` is valid for reads and `to` for writes of `len` bytes, and they do not overlap,
        // as the caller promises.
        self.choose(len, COPY, |past| unsafe {
            if past { copy_nontemporal(from, to, len) } else { copy_run(from, to, len) }
        });
    }

    /// Has `pack` pack `len` bytes to where the reader reads them: past the cache if its argument is true.
    pub fn pack(&self, len: usize, pack: impl FnOnce(bool)) {
        self.choose(len, PACKED, pack);
    }

    fn choose(&self, len: usize, worth_it: u32, write: impl FnOnce(bool)) {
        if len < LONG {
            return write(false);
        }
        let (usual, number) = (self.goes_past(), self.number.get());
        self.number.set(number.wrapping_add(1));
        if !number.is_multiple_of(TIMED) {
            return write(usual);
        }
        // The first ones touch memory that was never touched.
        let past = usual != (number % OTHER_WAY == TIMED);
        let began = clock::ticks();
        write(past);
        self.took(past, len, clock::ticks() - began, worth_it);
    }

    /// Takes note of how long `len` bytes took.
    fn took(&self, past: bool, len: usize, ticks: u64, worth_it: u32) {
        let ticks = u32::try_from((ticks << 10) / len as u64).unwrap_or(u32::MAX).max(1);
        let [last, before] = &self.through;
        if past {
            self.past.set(ticks);
        } else {
            before.set(last.get());
            last.set(ticks);
        }
        let through = last.get().min(before.get());
        self.goes_past.set(self.past.get() > 0 && through / worth_it >= self.past.get());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(copies: &[(bool, u64)]) -> bool {
        let times = CopyTimes::default();
        copies.iter().for_each(|(past, ticks)| times.took(*past, LONG, *ticks, COPY));
        times.goes_past()
    }

    #[test]
    fn copies_go_past_the_cache_where_two_in_a_row_took_much_longer_through_it() {
        const THROUGH: bool = false;
        const PAST: bool = true;
        assert!(!after(&[]));
        assert!(!after(&[(THROUGH, 9_000), (THROUGH, 9_000)]), "nothing is known of the other way");
        assert!(!after(&[(PAST, 1_000), (THROUGH, 9_000)]), "once is an accident");
        assert!(after(&[(THROUGH, 9_000), (PAST, 1_000), (THROUGH, 9_000)]));
        assert!(!after(&[(THROUGH, 3_000), (PAST, 1_000), (THROUGH, 3_000)]), "readers would lose more");
        assert!(!after(&[(THROUGH, 9_000), (THROUGH, 9_000), (PAST, 1_000), (THROUGH, 1_000)]));
        assert!(!after(&[(THROUGH, 9_000), (THROUGH, 9_000), (PAST, 1_000), (PAST, 8_000)]));
        assert!(!after(&[(THROUGH, u64::MAX >> 10), (PAST, u64::MAX >> 10)]));
    }

    #[test]
    fn whatever_the_way_the_bytes_arrive() {
        let from: Vec<u8> = (0..10_000_u32).map(|i| (i % 251) as u8).collect();
        let times = CopyTimes::default();
        for len in (0..10_000).step_by(333).chain([LONG; 100]) {
            for goes_past in [false, true] {
                times.goes_past.set(goes_past);
                let mut to = vec![0; len + 1];
                // SAFETY: both vectors are live, do not overlap, and hold `len` bytes.
                unsafe { times.copy(from.as_ptr(), to.as_mut_ptr(), len) };
                assert_eq!((&to[..len], to[len]), (&from[..len], 0));
            }
        }
        assert!(times.past.get() > 0 && times.through.iter().all(|ticks| ticks.get() > 0));
    }
}
