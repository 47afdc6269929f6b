//! The objects behind `struct fid *`.

use crate::api::*;
use crate::lock::{Lock, Locked};
use libc::{c_int, c_void};
use std::sync::Arc;

/// An object: the part that the interface knows (`struct fid` and `H` behind it), and ours.
#[derive(Debug)]
#[repr(C)]
pub struct Object<H, T> {
    pub fid: Fid,
    pub head: H,
    /// Counted by all threads: it is cloned and dropped outside the lock.
    pub lock: Arc<Lock>,
    pub value: T,
}

/// What libfabric sees of an object with `N` tables behind its `struct fid`.
pub type Tables<const N: usize> = [*const c_void; N];

/// A table's address, for [`Tables`].
pub const fn table<const N: usize>(table: &'static Table<N>) -> *const c_void {
    (&raw const *table).cast()
}

/// Makes an object, and gives it to the caller.
///
/// # Safety
///
/// `out` may be written to.
pub unsafe fn give<H, T>(
    class: usize,
    ops: &'static FidOps,
    head: H,
    lock: &Arc<Lock>,
    value: T,
    context: *mut c_void,
    out: *mut *mut Fid,
) -> c_int {
    let fid = Fid { class, context, ops };
    let object = Box::new(Object { fid, head, lock: Arc::clone(lock), value });
    // SAFETY: `out` may be written to, as the caller promises.
    unsafe { *out = Box::into_raw(object).cast() };
    0
}

/// The object, and the lock of its domain, which is taken until it is dropped.
///
/// # Safety
///
/// `fid` came from [`give`] with the same types, and is not closed.
#[inline(always)]
pub unsafe fn locked<'a, H, T>(fid: *mut Fid) -> (&'a Object<H, T>, Locked<'a>) {
    // SAFETY: `fid` begins an object of these types that is not closed, as the caller promises.
    let object = unsafe { &*fid.cast::<Object<H, T>>() };
    (object, object.lock.lock())
}

/// Calls `f` with the object, under the lock of its domain.
///
/// # Safety
///
/// As [`locked`].
#[inline(always)]
pub unsafe fn with<H, T, R>(fid: *mut Fid, f: impl FnOnce(&Object<H, T>) -> R) -> R {
    // SAFETY: `fid` begins an object of these types that is not closed, as the caller promises.
    let (object, _locked) = unsafe { locked(fid) };
    f(object)
}

/// `close` of an object of these types.
///
/// # Safety
///
/// As [`with`]; nobody uses the object any more.
pub unsafe extern "C" fn close<H, T>(fid: *mut Fid) -> c_int {
    // SAFETY: `give` made it of a box, and nobody uses it any more, as the caller promises.
    let object = unsafe { Box::from_raw(fid.cast::<Object<H, T>>()) };
    let lock = Arc::clone(&object.lock);
    let _locked = lock.lock();
    drop(object);
    0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_threads_may_count_the_lock() {
        fn by_all<T: Send + Sync>(_: fn(&Object<(), ()>) -> &T) {}
        by_all(|object| &object.lock);
    }
}
