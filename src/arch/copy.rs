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

/// Whether a string instruction, by which the C library and the kernel copy long runs, takes more than ten times as
/// long from one of these addresses to the other.
#[inline]
pub fn strings_stall(from: usize, to: usize) -> bool {
    imp::strings_stall(from, to)
}

/// Bytes from which the C library copies a run by a string instruction.
const STRINGS: usize = 2 << 10;

/// Copies a run of bytes as `copy_nonoverlapping` does,
/// but in another way where the processor's string instructions are slow.
///
/// # Safety
///
/// `from` is valid for reads and `to` for writes of `len` bytes, and they do not overlap.
#[inline(always)]
pub unsafe fn copy_run(from: *const u8, to: *mut u8, len: usize) {
    // SAFETY: the caller gives `len` bytes that are valid for reads at `from` and for writes at `to`, without overlap.
    unsafe {
        if len >= STRINGS && strings_stall(from.addr(), to.addr()) {
            imp::copy_long(from, to, len);
        } else {
            core::ptr::copy_nonoverlapping(from, to, len);
        }
    }
}

/// `copy_nonoverlapping` without a call for lengths up to 16, which is what most runs of structures are.
///
/// # Safety
///
/// That of `copy_nonoverlapping`.
#[inline(always)]
pub unsafe fn copy_short(from: *const u8, to: *mut u8, len: usize) {
    // Two moves that may overlap each other cover every length between one and two of their size.
    macro_rules! ends {
        ($word:ty) => {{
            const N: usize = size_of::<$word>();
            // SAFETY: N <= len, so both words lie within the `len` bytes of each side;
            // both are read before either is written.
            unsafe {
                let head = from.cast::<$word>().read_unaligned();
                let tail = from.add(len - N).cast::<$word>().read_unaligned();
                to.cast::<$word>().write_unaligned(head);
                to.add(len - N).cast::<$word>().write_unaligned(tail);
            }
        }};
    }
    match len {
        0 => {}
        1 => ends!(u8),
        2..4 => ends!(u16),
        4..8 => ends!(u32),
        8..=16 => ends!(u64),
        // SAFETY: both have `len` bytes and do not overlap; bytes need no alignment.
        _ => unsafe { copy_run(from, to, len) },
    }
}

/// Copies runs of bytes, each from an address to an address, most of them short and of lengths that nobody foresees.
///
/// # Safety
///
/// For each of them, that of [`copy_run`].
#[inline(always)]
pub unsafe fn copy_each(runs: impl Iterator<Item = (*const u8, *mut u8, usize)>) {
    // SAFETY: each run is valid on both sides, without overlap, as the caller promises.
    unsafe { imp::copy_each(runs) };
}

/// The same by a branch for the length of each.
///
/// # Safety
///
/// That of [`copy_each`].
#[inline(always)]
pub(super) unsafe fn copy_each_by_length(runs: impl Iterator<Item = (*const u8, *mut u8, usize)>) {
    for (from, to, len) in runs {
        // SAFETY: each run is valid on both sides, without overlap, as the caller promises.
        unsafe { copy_short(from, to, len) };
    }
}

/// Copies `count` runs of `N` bytes that lie one behind the other to every other run from `to` on, and leaves alone
/// what lies between them.
///
/// # Safety
///
/// The runs at both places are valid, and do not overlap.
#[inline(always)]
pub unsafe fn copy_apart<const N: usize>(from: *const u8, to: *mut u8, count: usize) {
    // SAFETY: the runs at both places are valid, and do not overlap, as the caller promises.
    unsafe { imp::copy_apart::<N>(from, to, count) };
}

/// The same, run by run.
///
/// # Safety
///
/// That of [`copy_apart`].
#[inline(always)]
pub(super) unsafe fn copy_apart_by_runs<const N: usize>(from: *const u8, to: *mut u8, count: usize) {
    for i in 0..count {
        // SAFETY: run `i` at both places, which the caller gives.
        unsafe { core::ptr::copy_nonoverlapping(from.add(N * i), to.add(2 * N * i), N) };
    }
}

/// [`copy_run`] of a slice into another one.
///
/// # Panics
///
/// If their lengths differ.
#[inline]
pub fn copy_slice(from: &[u8], to: &mut [u8]) {
    assert_eq!(from.len(), to.len(), "slices of equal lengths");
    // SAFETY: both are borrowed, and `to` alone, so they do not overlap.
    unsafe { copy_run(from.as_ptr(), to.as_mut_ptr(), from.len()) };
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

/// Whether a run that another processor reads next may be copied faster past the cache, by [`copy_nontemporal`], than
/// through it.
#[inline]
#[must_use]
pub fn streams() -> bool {
    imp::streams()
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
    fn runs_are_spread_to_every_other_place_and_what_lies_between_stays() {
        fn holds<const N: usize>(spread: unsafe fn(*const u8, *mut u8, usize)) {
            for count in 0..70 {
                let from: Vec<u8> = (0..count * N).map(|i| i as u8).collect();
                // It ends with the last run: a store behind that is outside of the memory.
                let mut to = vec![0xEE_u8; (2 * count * N).saturating_sub(N)];
                // SAFETY: both vectors are live, do not overlap, and hold the runs.
                unsafe { spread(from.as_ptr(), to.as_mut_ptr(), count) };
                for (i, run) in to.chunks(N).enumerate() {
                    let expected = if i % 2 == 0 { &from[i / 2 * N..][..N] } else { &[0xEE; N][..] };
                    assert_eq!(run, expected, "run {i} of {count}, {N} bytes");
                }
            }
        }
        holds::<4>(copy_apart::<4>);
        holds::<8>(copy_apart::<8>);
        holds::<4>(copy_apart_by_runs::<4>);
        holds::<8>(copy_apart_by_runs::<8>);
    }

    #[test]
    fn they_arrive_at_every_distance_within_a_page() {
        const LEN: usize = 2500;
        let from: Vec<u8> = (0..LEN as u32 + 8).map(|i| (i % 251) as u8).collect();
        let mut to = vec![0; LEN + 2 * 4096];
        for distance in (0..80).chain(4000..4096) {
            let begin = (0..4096)
                .find(|at| {
                    to[*at..].as_ptr().addr().wrapping_sub(from[3..].as_ptr().addr()) % 4096 == distance
                })
                .expect("a place in a page");
            to.fill(0);
            copy_slice(&from[3..][..LEN], &mut to[begin..][..LEN]);
            assert_eq!(to[begin..][..LEN], from[3..][..LEN], "{distance}");
            assert!(to[..begin].iter().chain(&to[begin + LEN..]).all(|byte| *byte == 0), "{distance}");
            to.fill(0);
            // SAFETY: both vectors are live, do not overlap, and hold so many bytes from there on.
            unsafe { copy_long(from[3..].as_ptr(), to[begin..].as_mut_ptr(), LEN) };
            assert_eq!(to[begin..][..LEN], from[3..][..LEN], "{distance}");
            assert!(to[..begin].iter().chain(&to[begin + LEN..]).all(|byte| *byte == 0), "{distance}");
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

    #[test]
    fn runs_of_every_length_arrive_whole_and_touch_nothing_else() {
        let from: Vec<u8> = (0..70_000_u32).map(|i| (1 + i % 251) as u8).collect();
        // A byte is left between one and the next.
        let places: Vec<(usize, usize)> =
            (0..300).scan(0, |at, len| Some((core::mem::replace(at, *at + len + 1), len))).collect();
        let mut to = vec![0; from.len()];
        let start = to.as_mut_ptr();
        // SAFETY: both vectors are live, do not overlap, and are longer than all runs.
        unsafe {
            copy_each(
                places.iter().map(|(at, len)| (from.as_ptr().add(*at).cast(), start.wrapping_add(*at), *len)),
            );
        }
        for (at, len) in places {
            assert_eq!(to[at..at + len], from[at..at + len]);
            assert_eq!(to[at + len], 0);
        }
    }
}
