//! x86-64 under Linux.

use core::arch::x86_64::{
    __cpuid, __cpuid_count, __m128i, _MM_HINT_T0, _bzhi_u64, _mm_lfence, _mm_loadu_si128, _mm_prefetch,
    _mm_sfence, _mm_storeu_si128, _mm_stream_si128, _mm256_loadu_si256, _mm512_castsi256_si512,
    _mm512_cvtepu32_epi64, _mm512_mask_storeu_epi8, _mm512_mask_storeu_epi32, _mm512_mask_storeu_epi64,
    _mm512_maskz_loadu_epi8, _mm512_permutexvar_epi64, _mm512_set_epi64, _rdtsc,
};
use std::sync::LazyLock;

/// An instruction with a lock prefix, and any exchange with memory, is a full fence (Intel SDM vol. 3A §9.2.3.8, AMD64
/// vol. 2 §7.4.2).
pub const EXCHANGE_IS_FENCE: bool = true;

#[inline(always)]
pub fn serialize_loads() {
    // SAFETY: LFENCE belongs to SSE2, which every x86-64 processor has, and touches no memory.
    unsafe { _mm_lfence() };
}

#[inline(always)]
pub fn prefetch_read(line: *const u8) {
    // SAFETY: PREFETCHT0 reads nothing and never faults, whatever the address.
    unsafe { _mm_prefetch::<_MM_HINT_T0>(line.cast()) };
}

#[inline(always)]
pub fn prefetch_write(line: *mut u8) {
    // SAFETY: PREFETCHW writes nothing and never faults, whatever the address; a processor without it executes a NOP.
    unsafe {
        core::arch::asm!("prefetchw [{}]", in(reg) line, options(readonly, nostack, preserves_flags));
    }
}

#[inline(always)]
pub fn thread_id() -> usize {
    let id: usize;
    // SAFETY: under Linux the word at fs:0 is the address of the thread's control block (System V ABI, thread-local
    // storage), written by the C library before the thread runs and only read here.
    unsafe {
        core::arch::asm!("mov {}, fs:0", out(reg) id, options(pure, nomem, nostack, preserves_flags));
    }
    id
}

/// Name and description of the counter, as tools read them.
pub const COUNTER: (&str, &str) = ("tsc", "the processor's time stamp counter, one for all cores");

/// Whether there is a counter that runs at one rate in all states of the processor: the time stamp counter where
/// CPUID says *invariant*.
pub fn has_steady_counter() -> bool {
    const EXTENDED: u32 = 0x8000_0000;
    const POWER: u32 = 0x8000_0007;
    // Bit 4 of leaf 1: there is a counter. Bit 8 of the power leaf: it is invariant.
    __cpuid(1).edx & 1 << 4 != 0 && __cpuid(EXTENDED).eax >= POWER && __cpuid(POWER).edx & 1 << 8 != 0
}

/// The counter of [`has_steady_counter`].
#[inline(always)]
pub fn counter() -> u64 {
    // SAFETY: RDTSC touches no memory; `clock` calls this only where `has_steady_counter` has found the counter.
    unsafe { _rdtsc() }
}

/// Ticks of a second, where the processor says it: few do, so `clock` measures.
pub fn counter_frequency() -> Option<u64> {
    None
}

/// Copies `len` bytes; see [`super::copy_long`].
///
/// # Safety
///
/// `from` is valid for reads and `to` for writes of `len` bytes.
#[inline]
pub unsafe fn copy_long(from: *const u8, to: *mut u8, len: usize) {
    if strings_stall(from.addr(), to.addr()) {
        // SAFETY: the caller gives `len` bytes that are valid for reads at `from` and for writes at `to`.
        return unsafe { copy_in_vectors(from, to, len) };
    }
    if !*FAST_STRINGS {
        // SAFETY: the caller gives `len` bytes that are valid for reads at `from` and for writes at `to`.
        return unsafe { core::ptr::copy(from, to, len) };
    }
    // Between the caches of two cores this is faster than any loop of vectors, and needs no warming up.
    // SAFETY: the instruction reads `len` bytes at `from` and writes as many at `to`, which the caller gives; the ABI
    // keeps the direction flag clear.
    unsafe {
        core::arch::asm!(
            "rep movsb",
            inout("rcx") len => _,
            inout("rsi") from => _,
            inout("rdi") to => _,
            options(nostack, preserves_flags)
        );
    }
}

/// See [`super::strings_stall`]: on AMD's processors, where `to` lies 1 to 31 bytes behind `from`, not counting whole
/// pages. So do a large block of malloc's, which begins 16 bytes behind a page, and anything that begins at one.
#[inline(always)]
pub fn strings_stall(from: usize, to: usize) -> bool {
    (1..32).contains(&(to.wrapping_sub(from) % 4096)) && *IS_AMD
}

/// Copies without string instructions.
///
/// # Safety
///
/// `from` is valid for reads and `to` for writes of `len` bytes.
#[inline(never)]
unsafe fn copy_in_vectors(from: *const u8, to: *mut u8, len: usize) {
    const STEP: usize = 64;
    let (steps, tail) = (len / STEP, len % STEP);
    // SAFETY: the steps and the tail make up the `len` bytes that the caller gives; loads and stores need no alignment.
    unsafe {
        for at in (0..steps).map(|step| step * STEP) {
            let (from, to) = (from.add(at).cast::<__m128i>(), to.add(at).cast::<__m128i>());
            let line = [0, 1, 2, 3].map(|i| _mm_loadu_si128(from.add(i)));
            for (i, part) in line.into_iter().enumerate() {
                _mm_storeu_si128(to.add(i), part);
            }
        }
        core::ptr::copy(from.add(len - tail), to.add(len - tail), tail);
    }
}

/// Whether the processor moves strings by whole lines (ERMS).
static FAST_STRINGS: LazyLock<bool> =
    LazyLock::new(|| __cpuid(0).eax >= 7 && __cpuid_count(7, 0).ebx >> 9 & 1 == 1);

/// Whether the maker is AMD, or Hygon, whose processors are AMD's.
static IS_AMD: LazyLock<bool> = LazyLock::new(|| {
    let id = __cpuid(0);
    let maker = [id.ebx, id.edx, id.ecx].map(u32::to_le_bytes);
    matches!(maker.as_flattened(), b"AuthenticAMD" | b"HygonGenuine")
});

/// See [`super::streams`]. On AMD's processors a store to a line that another core has read waits for that core's
/// answer, and few such stores are under way at once. Stores past the cache need no answer.
#[inline]
pub fn streams() -> bool {
    *IS_AMD
}

/// Copies `len` bytes past the cache; see [`super::copy_nontemporal`].
///
/// # Safety
///
/// `from` is valid for reads and `to` for writes of `len` bytes, and they do not overlap.
pub unsafe fn copy_nontemporal(from: *const u8, to: *mut u8, len: usize) {
    const STEP: usize = 64;
    let head = to.align_offset(STEP).min(len);
    let (steps, tail) = ((len - head) / STEP, (len - head) % STEP);
    // SAFETY: head, steps and tail make up the `len` bytes that the caller gives, and each step begins on a line, as
    // the aligned stores need. SFENCE orders the streaming stores before the store that announces the bytes.
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

/// Copies runs of bytes; see [`super::copy_each`].
///
/// # Safety
///
/// For each of them, that of [`super::copy_run`].
#[inline(always)]
pub unsafe fn copy_each(runs: impl Iterator<Item = (*const u8, *mut u8, usize)>) {
    if std::is_x86_feature_detected!("avx512bw") && std::is_x86_feature_detected!("bmi2") {
        // SAFETY: each run is valid on both sides, without overlap, as the caller promises;
        // the processor has the instructions.
        return unsafe { copy_each_by_masks(runs) };
    }
    // SAFETY: each run is valid on both sides, without overlap, as the caller promises.
    unsafe { super::copy::copy_each_by_length(runs) };
}

/// See [`super::copy_apart`]: several runs are one store under a mask, where the processor has those.
///
/// # Safety
///
/// That of [`super::copy_apart`].
#[inline]
pub unsafe fn copy_apart<const N: usize>(from: *const u8, to: *mut u8, count: usize) {
    if matches!(N, 4 | 8) && std::is_x86_feature_detected!("avx512f") {
        // SAFETY: the runs at both places are valid, and do not overlap, as the caller promises; the processor has the
        // instructions.
        return unsafe { copy_apart_by_masks::<N>(from, to, count) };
    }
    // SAFETY: the runs at both places are valid, and do not overlap, as the caller promises.
    unsafe { super::copy::copy_apart_by_runs::<N>(from, to, count) };
}

/// The same, of runs of four or eight bytes: as many as fill half a line are spread over a line, of which a store under
/// a mask writes the runs alone.
///
/// # Safety
///
/// That of [`super::copy_apart`]; the processor has the instructions.
#[target_feature(enable = "avx512f")]
unsafe fn copy_apart_by_masks<const N: usize>(from: *const u8, to: *mut u8, count: usize) {
    const HALF: usize = 32;
    let halves = count * N / HALF;
    // Not by a chain of iterators: their functions lack the instructions, and would be called.
    for half in 0..halves {
        // SAFETY: half a line of runs can be read, and the runs that it is spread to can be written, as the caller
        // promises; the store touches nothing between them.
        unsafe {
            let (from, to) = (from.add(half * HALF), to.add(half * 2 * HALF));
            let runs = _mm256_loadu_si256(from.cast());
            if N == 4 {
                _mm512_mask_storeu_epi32(to.cast(), 0x5555, _mm512_cvtepu32_epi64(runs));
            } else {
                let spread = _mm512_permutexvar_epi64(
                    _mm512_set_epi64(3, 3, 2, 2, 1, 1, 0, 0),
                    _mm512_castsi256_si512(runs),
                );
                _mm512_mask_storeu_epi64(to.cast(), 0x55, spread);
            }
        }
    }
    let copied = halves * HALF / N;
    // SAFETY: what is left of the runs.
    unsafe {
        super::copy::copy_apart_by_runs::<N>(from.add(copied * N), to.add(copied * 2 * N), count - copied)
    };
}

/// The same by moves under a mask, which are one for every length up to 64: a branch for the length would be foretold
/// wrong every other time.
///
/// # Safety
///
/// That of [`copy_each`]; the processor has the instructions.
#[target_feature(enable = "avx512f,avx512bw,bmi2")]
unsafe fn copy_each_by_masks(runs: impl Iterator<Item = (*const u8, *mut u8, usize)>) {
    const MOVE: usize = 64;
    for (from, to, len) in runs {
        if len > MOVE {
            // SAFETY: each run is valid on both sides, without overlap, as the caller promises.
            unsafe { super::copy_run(from, to, len) };
            continue;
        }
        let mask = _bzhi_u64(u64::MAX, len as u32);
        // SAFETY: the moves access the first `len` bytes alone, which the caller gives.
        unsafe {
            let bytes = _mm512_maskz_loadu_epi8(mask, from.cast());
            _mm512_mask_storeu_epi8(to.cast(), mask, bytes);
        }
    }
}
