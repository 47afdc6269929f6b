//! The objects behind `struct fid *`.

use crate::api::*;
use libc::{c_int, c_void};
use perusal::internals::sync::{AtomicU32, Ordering};
use std::rc::Rc;

/// The lock of a domain and all that belongs to it. It is taken only if the caller did not promise to use one thread at a time for each
/// domain (FI_THREAD_DOMAIN, FI_THREAD_COMPLETION).
#[derive(Debug, Default)]
pub struct Lock {
    needed: bool,
    taken: AtomicU32,
}

impl Lock {
    /// A lock for this `enum fi_threading`.
    pub fn new(threading: u32) -> Self {
        let needed = threading != FI_THREAD_DOMAIN && threading != FI_THREAD_COMPLETION;
        Self { needed, taken: AtomicU32::new(0) }
    }

    /// Whether threads may call at once.
    pub fn is_needed(&self) -> bool {
        self.needed
    }

    #[inline(always)]
    fn lock(&self) -> Locked<'_> {
        if self.needed {
            self.wait();
        }
        Locked(self)
    }

    #[inline(never)]
    fn wait(&self) {
        // Acquire: domain edge, pairs with Release in `Locked::drop`: what the other thread did is there.
        while self.taken.swap(1, Ordering::Acquire) == 1 {
            std::thread::yield_now();
        }
    }
}

struct Locked<'a>(&'a Lock);

impl Drop for Locked<'_> {
    #[inline(always)]
    fn drop(&mut self) {
        if self.0.needed {
            // Release: domain edge, pairs with Acquire in `wait`.
            self.0.taken.store(0, Ordering::Release);
        }
    }
}

/// An object: the part that the interface knows (`struct fid` and `H` behind it), and ours.
#[derive(Debug)]
#[repr(C)]
pub struct Object<H, T> {
    pub fid: Fid,
    pub head: H,
    pub lock: Rc<Lock>,
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
    lock: &Rc<Lock>,
    value: T,
    context: *mut c_void,
    out: *mut *mut Fid,
) -> c_int {
    let fid = Fid { class, context, ops };
    let object = Box::new(Object { fid, head, lock: Rc::clone(lock), value });
    // SAFETY: the caller promises it.
    unsafe { *out = Box::into_raw(object).cast() };
    0
}

/// Calls `f` with the object, under the lock of its domain.
///
/// # Safety
///
/// `fid` came from [`give`] with the same types, and is not closed.
#[inline(always)]
pub unsafe fn with<H, T, R>(fid: *mut Fid, f: impl FnOnce(&Object<H, T>) -> R) -> R {
    // SAFETY: the caller promises it.
    let object = unsafe { &*fid.cast::<Object<H, T>>() };
    let _locked = object.lock.lock();
    f(object)
}

/// `close` of an object of these types.
///
/// # Safety
///
/// As [`with`]; nobody uses the object any more.
pub unsafe extern "C" fn close<H, T>(fid: *mut Fid) -> c_int {
    // SAFETY: the caller promises that it came from `give`, which made it of a box.
    let object = unsafe { Box::from_raw(fid.cast::<Object<H, T>>()) };
    let lock = Rc::clone(&object.lock);
    let _locked = lock.lock();
    drop(object);
    0
}
