//! The copy of a long run of bytes between two places of memory that a peer may be looking at.

/// Copies `len` bytes. The places may overlap: what is there afterwards is then undefined, and nothing worse.
///
/// # Safety
///
/// `from` is valid for reads and `to` for writes of `len` bytes.
#[inline]
pub(crate) unsafe fn copy_run(from: *const u8, to: *mut u8, len: usize) {
    #[cfg(all(target_arch = "x86_64", not(perusal_loom)))]
    if fast_strings() {
        // Between the caches of two cores this is faster than any loop of vectors, and needs no warming up.
        // SAFETY: the caller's promise; the direction flag is clear by the ABI.
        unsafe {
            core::arch::asm!(
                "rep movsb",
                inout("rcx") len => _,
                inout("rsi") from => _,
                inout("rdi") to => _,
                options(nostack, preserves_flags)
            );
        }
        return;
    }
    // SAFETY: the caller's promise.
    unsafe { core::ptr::copy(from, to, len) };
}

/// The same, past this processor's cache: for bytes that will have left it before anybody reads them. They take the place of
/// nothing there, and what is written over is not fetched.
///
/// # Safety
///
/// As [`copy_run`]; the places do not overlap.
pub(crate) unsafe fn copy_uncached(from: *const u8, to: *mut u8, len: usize) {
    #[cfg(all(target_arch = "x86_64", not(perusal_loom)))]
    {
        use core::arch::x86_64::{__m128i, _mm_loadu_si128, _mm_sfence, _mm_stream_si128};
        const STEP: usize = 64;
        let head = to.align_offset(STEP).min(len);
        let (steps, tail) = ((len - head) / STEP, (len - head) % STEP);
        // SAFETY: head, steps and tail are the run, within what the caller promises; steps begin on a line. The fence puts the
        // stores before whatever says that the bytes are there.
        unsafe {
            core::ptr::copy_nonoverlapping(from, to, head);
            for at in (0..steps).map(|step| head + step * STEP) {
                let (from, to) = (from.add(at).cast::<__m128i>(), to.add(at).cast::<__m128i>());
                let line = [0, 1, 2, 3].map(|i| _mm_loadu_si128(from.add(i)));
                for (i, part) in line.into_iter().enumerate() {
                    _mm_stream_si128(to.add(i), part);
                }
            }
            core::ptr::copy_nonoverlapping(from.add(len - tail), to.add(len - tail), tail);
            _mm_sfence();
        }
    }
    #[cfg(not(all(target_arch = "x86_64", not(perusal_loom))))]
    // SAFETY: the caller's promise.
    unsafe {
        copy_run(from, to, len);
    }
}

/// Whether the processor moves strings by whole lines (ERMS).
// A model copies nothing this long.
#[cfg(all(target_arch = "x86_64", not(perusal_loom)))]
#[inline]
fn fast_strings() -> bool {
    use core::arch::x86_64::{__cpuid, __cpuid_count};
    static KNOWN: std::sync::LazyLock<bool> =
        std::sync::LazyLock::new(|| __cpuid(0).eax >= 7 && __cpuid_count(7, 0).ebx >> 9 & 1 == 1);
    *KNOWN
}

#[cfg(all(test, not(perusal_loom)))]
mod tests {
    use super::*;

    #[test]
    fn runs_of_any_length_and_alignment_arrive() {
        let from: Vec<u8> = (0..70_000_u32).map(|i| (i % 251) as u8).collect();
        for (at, len) in [(0, 0), (1, 1), (3, 4095), (64, 65_536), (7, 69_993)] {
            let mut to = vec![0; len + 2];
            // SAFETY: both are ours, and long enough.
            unsafe { copy_run(from[at..].as_ptr(), to[1..].as_mut_ptr(), len) };
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
                // SAFETY: both are ours, and long enough.
                unsafe { copy_uncached(from[at..].as_ptr(), to[shift..].as_mut_ptr(), len) };
                assert_eq!(to[shift..shift + len], from[at..at + len]);
                assert!(to[..shift].iter().chain(&to[shift + len..]).all(|byte| *byte == 0));
            }
        }
    }
}
