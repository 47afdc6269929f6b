//! Copies between the user's memory and a record's payload; the commonest sizes without a call.

use crate::arch;
use crate::ring::Room;
use core::hint::cold_path;

/// Bytes from which a run is copied by whole lines.
const LONG: usize = 8 << 10;

/// Bytes from which it may be best to copy a run into the ring past the cache. (Of 1 KiB, windows of messages between
/// cores that share a cache would take a third longer; between others they take half as long.)
const STREAMED: usize = 2 << 10;

/// Copies a payload into the ring.
///
/// # Safety
///
/// `from` is valid for reads of `to.len()` bytes and does not overlap `to`.
#[inline(always)]
pub(crate) unsafe fn copy_in(from: *const u8, to: &mut Room<'_>) {
    // SAFETY: `from` has as many bytes as `to`, without overlap, as the caller promises.
    unsafe {
        if to.len() >= STREAMED {
            to.fill_run(from);
        } else {
            copy_in_short(from, to);
        }
    }
}

/// Copies a payload into a cell; the commonest sizes without a call.
///
/// # Safety
///
/// As for [`copy_in`].
#[inline(always)]
pub(crate) unsafe fn copy_in_short(from: *const u8, to: &mut [u8]) {
    match to.len() {
        // SAFETY: eight bytes at both ends, as the caller promises.
        8 => unsafe { to.as_mut_ptr().cast::<[u8; 8]>().write(from.cast::<[u8; 8]>().read()) },
        // SAFETY: four bytes at both ends, as the caller promises.
        4 => unsafe { to.as_mut_ptr().cast::<[u8; 4]>().write(from.cast::<[u8; 4]>().read()) },
        0 => {}
        len => {
            // So that what the call would destroy is kept elsewhere only if it is made.
            cold_path();
            // SAFETY: `from` has as many bytes as `to`, without overlap, as the caller promises.
            unsafe { core::ptr::copy_nonoverlapping(from, to.as_mut_ptr(), len) };
        }
    }
}

/// Copies a payload out of the ring; the commonest sizes without a call.
///
/// # Safety
///
/// `to` is valid for writes of `data.len()` bytes and does not overlap `data`.
#[inline(always)]
pub(crate) unsafe fn copy_out(data: &[u8], to: *mut u8) {
    match data.len() {
        // SAFETY: eight bytes at both ends, as the caller promises.
        8 => unsafe { to.cast::<[u8; 8]>().write(data.as_ptr().cast::<[u8; 8]>().read()) },
        // SAFETY: four bytes at both ends, as the caller promises.
        4 => unsafe { to.cast::<[u8; 4]>().write(data.as_ptr().cast::<[u8; 4]>().read()) },
        0 => {}
        len => {
            // As in `copy_in`.
            cold_path();
            // SAFETY: `to` has room for as many bytes as `data` has, without overlap, as the caller promises.
            unsafe {
                if len >= LONG {
                    copy_long(data.as_ptr(), to, len);
                } else {
                    arch::copy_run(data.as_ptr(), to, len);
                }
            }
        }
    }
}

/// [`arch::copy_long`], out of the way of what is short.
///
/// # Safety
///
/// As [`arch::copy_long`].
#[inline(never)]
unsafe fn copy_long(from: *const u8, to: *mut u8, len: usize) {
    // SAFETY: `from` is valid for reads and `to` for writes of `len` bytes, as the caller promises.
    unsafe { arch::copy_long(from, to, len) };
}
