//! Copies of long runs of bytes between two places of memory that a peer may be looking at.

use super::imp;

/// Copies `len` bytes in the way that is fastest for long runs.
///
/// The places may overlap: what is there afterwards is then undefined, and nothing worse.
///
/// # Safety
///
/// `from` is valid for reads and `to` for writes of `len` bytes.
#[inline]
pub unsafe fn copy_long(from: *const u8, to: *mut u8, len: usize) {
    // SAFETY: the caller gives `len` bytes that are valid for reads at `from` and for writes at `to`.
    unsafe { imp::copy_long(from, to, len) };
}

/// Copies `len` bytes past this processor's cache, for bytes that would leave it before anybody reads them.
///
/// They displace nothing in the cache, and the lines that they overwrite are not fetched.
///
/// # Safety
///
/// `from` is valid for reads and `to` for writes of `len` bytes, and they do not overlap.
#[inline]
pub unsafe fn copy_nontemporal(from: *const u8, to: *mut u8, len: usize) {
    // SAFETY: the caller gives `len` bytes that are valid for reads at `from` and for writes at `to`, without overlap.
    unsafe { imp::copy_nontemporal(from, to, len) };
}

/// Bytes from which a run that another processor reads next is best copied past the cache, by [`copy_nontemporal`]; `usize::MAX`: never.
#[inline]
pub fn streamed_from() -> usize {
    imp::streamed_from()
}

/// Returns whether there are such runs.
#[must_use]
pub fn streams() -> bool {
    streamed_from() < usize::MAX
}

/// Copies `len` bytes to memory that another processor reads next: past this one's cache, where that is best.
///
/// # Safety
///
/// `from` is valid for reads and `to` for writes of `len` bytes, and they do not overlap.
#[inline]
pub unsafe fn copy_for_others(from: *const u8, to: *mut u8, len: usize) {
    if len >= streamed_from() {
        // SAFETY: the caller gives `len` bytes that are valid for reads at `from` and for writes at `to`, without overlap.
        unsafe { copy_nontemporal(from, to, len) };
    } else {
        // SAFETY: as above.
        unsafe { core::ptr::copy_nonoverlapping(from, to, len) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_of_any_length_and_alignment_arrive() {
        let from: Vec<u8> = (0..70_000_u32).map(|i| (i % 251) as u8).collect();
        for (at, len) in [(0, 0), (1, 1), (3, 4095), (64, 65_536), (7, 69_993)] {
            let mut to = vec![0; len + 2];
            // SAFETY: both vectors are live, do not overlap, and hold `len` bytes from there on.
            unsafe { copy_long(from[at..].as_ptr(), to[1..].as_mut_ptr(), len) };
            assert_eq!((to[0], to[len + 1]), (0, 0));
            assert_eq!(to[1..=len], from[at..at + len]);
        }
    }

    #[test]
    fn past_the_cache_they_arrive_as_well_at_every_alignment() {
        let from: Vec<u8> = (0..5_000_u32).map(|i| (i % 251) as u8).collect();
        for (at, len) in [(0, 0), (1, 1), (3, 63), (5, 64), (7, 65), (0, 200), (64, 4096), (9, 4991)] {
            for shift in 0..66 {
                let mut to = vec![0; len + 70];
                // SAFETY: both vectors are live, do not overlap, and hold `len` bytes from there on.
                unsafe { copy_nontemporal(from[at..].as_ptr(), to[shift..].as_mut_ptr(), len) };
                assert_eq!(to[shift..shift + len], from[at..at + len]);
                assert!(to[..shift].iter().chain(&to[shift + len..]).all(|byte| *byte == 0));
            }
        }
    }
}
