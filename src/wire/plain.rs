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
}
