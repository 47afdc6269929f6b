//! AArch64 under Linux.

use core::arch::asm;

pub(super) use super::copy::{copy_apart_by_runs as copy_apart, copy_each_by_length as copy_each};

/// Neither an exclusive pair nor an atomic instruction with acquire and release orders its store before a later load
/// (Arm ARM B2.3): that takes a DMB.
pub const EXCHANGE_IS_FENCE: bool = false;

#[inline(always)]
pub fn serialize_loads() {
    // SAFETY: DMB ISHLD touches no memory.
    unsafe { asm!("dmb ishld", options(nostack, preserves_flags)) };
}

#[inline(always)]
pub fn prefetch_read(line: *const u8) {
    // SAFETY: PRFM reads nothing and never faults, whatever the address.
    unsafe { asm!("prfm pldl1keep, [{}]", in(reg) line, options(readonly, nostack, preserves_flags)) };
}

#[inline(always)]
pub fn prefetch_write(line: *mut u8) {
    // SAFETY: PRFM writes nothing and never faults, whatever the address.
    unsafe { asm!("prfm pstl1keep, [{}]", in(reg) line, options(readonly, nostack, preserves_flags)) };
}

#[inline(always)]
pub fn thread_id() -> usize {
    let id: usize;
    // SAFETY: under Linux TPIDR_EL0 is the address of the thread's control block (AAPCS64, thread-local storage), which
    // the C library sets before the thread runs; it may be read in user mode.
    unsafe { asm!("mrs {}, tpidr_el0", out(reg) id, options(pure, nomem, nostack, preserves_flags)) };
    id
}

/// Name and description of the counter, as tools read them.
pub const COUNTER: (&str, &str) = ("cntvct", "the processor's virtual counter, one for all cores");

/// Whether there is a counter that runs at one rate in all states of the processor: the generic timer's, which is part
/// of the architecture (Arm ARM D12.1), and which Linux lets user mode read.
pub fn has_steady_counter() -> bool {
    true
}

/// The counter of [`has_steady_counter`].
#[inline(always)]
pub fn counter() -> u64 {
    let ticks: u64;
    // SAFETY: CNTVCT_EL0 may be read in user mode under Linux, and touches no memory. It may be read before earlier
    // instructions have completed, so that ticks would fall; ISB prevents that.
    unsafe {
        asm!("isb", "mrs {}, cntvct_el0", out(reg) ticks, options(nostack, preserves_flags));
    }
    ticks
}

/// Ticks of a second, where the processor says it.
pub fn counter_frequency() -> Option<u64> {
    let frequency: u64;
    // SAFETY: CNTFRQ_EL0 may be read in user mode under Linux, and touches no memory.
    unsafe { asm!("mrs {}, cntfrq_el0", out(reg) frequency, options(pure, nomem, nostack, preserves_flags)) };
    // Firmware is to set the register, and some forgets it.
    (frequency >= 1_000_000).then_some(frequency)
}

/// Copies `len` bytes; see [`super::copy_long`]. The C library's loop is as fast as any: there is no `rep movsb`.
///
/// # Safety
///
/// `from` is valid for reads and `to` for writes of `len` bytes.
#[inline]
pub unsafe fn copy_long(from: *const u8, to: *mut u8, len: usize) {
    // SAFETY: the caller gives `len` bytes that are valid for reads at `from` and for writes at `to`.
    unsafe { core::ptr::copy(from, to, len) };
}

/// See [`super::strings_stall`]: nothing is known of it.
#[inline]
pub fn strings_stall(_: usize, _: usize) -> bool {
    false
}

/// See [`super::streams`]: nothing is known of these processors.
#[inline]
pub fn streams() -> bool {
    false
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
    // SAFETY: head, steps and tail make up the `len` bytes that the caller gives. STNP is a store like any other for
    // the release store that announces the bytes, and needs no fence of its own.
    unsafe {
        core::ptr::copy_nonoverlapping(from, to, head);
        for at in (0..steps).map(|step| head + step * STEP) {
            asm!(
                "ldp {a:q}, {b:q}, [{from}]",
                "ldp {c:q}, {d:q}, [{from}, #32]",
                "stnp {a:q}, {b:q}, [{to}]",
                "stnp {c:q}, {d:q}, [{to}, #32]",
                from = in(reg) from.add(at),
                to = in(reg) to.add(at),
                a = out(vreg) _, b = out(vreg) _, c = out(vreg) _, d = out(vreg) _,
                options(nostack, preserves_flags)
            );
        }
        core::ptr::copy_nonoverlapping(from.add(len - tail), to.add(len - tail), tail);
    }
}
