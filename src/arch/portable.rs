//! Any processor: what the standard library offers.

pub(super) use super::copy::{copy_apart_by_runs as copy_apart, copy_each_by_length as copy_each};

pub const EXCHANGE_IS_FENCE: bool = false;

#[inline(always)]
pub fn serialize_loads() {
    core::hint::spin_loop();
}

#[inline(always)]
pub fn prefetch_read(_: *const u8) {}

#[inline(always)]
pub fn prefetch_write(_: *mut u8) {}

#[inline(always)]
pub fn thread_id() -> usize {
    std::thread_local! {
        // Without a destructor: its address belongs to this thread until the thread has ended.
        static MARK: u8 = const { 0 };
    }
    MARK.with(|mark| core::ptr::from_ref(mark) as usize)
}

pub const COUNTER: (&str, &str) = ("", "");

pub fn has_steady_counter() -> bool {
    false
}

#[inline(always)]
pub fn counter() -> u64 {
    unreachable!("`has_steady_counter` says that there is none")
}

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

/// Copies `len` bytes; see [`super::copy_nontemporal`].
///
/// # Safety
///
/// `from` is valid for reads and `to` for writes of `len` bytes, and they do not overlap.
pub unsafe fn copy_nontemporal(from: *const u8, to: *mut u8, len: usize) {
    // SAFETY: the caller gives `len` bytes that are valid for reads at `from` and for writes at `to`, without overlap.
    unsafe { core::ptr::copy_nonoverlapping(from, to, len) };
}
