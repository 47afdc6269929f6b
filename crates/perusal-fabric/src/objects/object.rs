//! The objects behind `struct fid *`.

use crate::api::*;
use crate::lock::{Lock, Locked};
use libc::{c_int, c_void};
use std::cell::RefCell;
use std::sync::Arc;

/// Counts those that use an object: it is closed after them (fi_close(3)).
#[derive(Debug, Clone, Default)]
pub struct Users(Arc<()>);

/// What an object is made with: the lock of its domain, and the objects that it uses.
#[derive(Debug, Default)]
pub struct Ties {
    lock: Arc<Lock>,
    uses: Vec<Users>,
}

impl Ties {
    /// With a lock of its own.
    pub fn of(lock: Lock, uses: Vec<Users>) -> Self {
        Self { lock: Arc::new(lock), uses }
    }
}

/// An object: the part that the interface knows (`struct fid` and `H` behind it), and ours.
#[derive(Debug)]
#[repr(C)]
pub struct Object<H, T> {
    pub fid: Fid,
    pub head: H,
    /// Counted by all threads: it is cloned and dropped outside the lock.
    pub lock: Arc<Lock>,
    pub users: Users,
    uses: RefCell<Vec<Users>>,
    pub value: T,
}

impl<H, T> Object<H, T> {
    /// What an object of this domain is made with.
    pub fn ties(&self) -> Ties {
        Ties { lock: Arc::clone(&self.lock), uses: vec![self.users.clone()] }
    }

    /// What another object is made with that uses what this one uses, and may outlive it.
    pub fn same_ties(&self) -> Ties {
        Ties { lock: Arc::clone(&self.lock), uses: self.uses.borrow().clone() }
    }

    /// From now on this object uses another one.
    pub fn uses(&self, other: &Users) {
        self.uses.borrow_mut().push(other.clone());
    }

    /// Whether another object uses this one.
    pub fn is_used(&self) -> bool {
        Arc::strong_count(&self.users.0) > 1
    }

    /// Whether both are of one domain.
    ///
    /// # Errors
    ///
    /// FI_EDOMAIN if they are not.
    pub fn check_domain<I, U>(&self, other: &Object<I, U>) -> Result<(), c_int> {
        if Arc::ptr_eq(&self.lock, &other.lock) { Ok(()) } else { Err(FI_EDOMAIN) }
    }
}

/// What libfabric sees of an object with `N` tables behind its `struct fid`.
pub type Tables<const N: usize> = [*const c_void; N];

/// A table's address, for [`Tables`].
pub const fn table<const N: usize>(table: &'static Table<N>) -> *const c_void {
    (&raw const *table).cast()
}

/// A table of operations of two kinds, and what is left of it for endpoints that do not do one of them, or neither.
#[derive(Debug)]
pub struct Halves<const N: usize>([Table<N>; 4]);

impl<const N: usize> Halves<N> {
    /// Functions of the first kind up to place `first`, of the second up to `both`, and then such as belong to both.
    pub const fn new(functions: [*const (); N], first: usize, both: usize) -> Self {
        let mut halves = [[NONE; N], functions, functions, functions];
        let mut at = 0;
        while at < both {
            halves[if at < first { 2 } else { 1 }][at] = NONE;
            at += 1;
        }
        let [none, one, other, all] = halves;
        Self([Table::new(none), Table::new(one), Table::new(other), Table::new(all)])
    }

    /// The table of an endpoint that does what is of the first kind, or of the second, for [`Tables`].
    pub fn of(&'static self, does_first: bool, does_second: bool) -> *const c_void {
        table(&self.0[usize::from(does_first) + 2 * usize::from(does_second)])
    }
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
    ties: Ties,
    value: T,
    context: *mut c_void,
    out: *mut *mut Fid,
) -> c_int {
    let fid = Fid { class, context, ops };
    let Ties { lock, uses } = ties;
    let (users, uses) = (Users::default(), RefCell::new(uses));
    let object = Box::new(Object { fid, head, lock, users, uses, value });
    // SAFETY: `out` is valid for a write, as the caller promises.
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

/// `close` of an object of these types: FI_EBUSY while others use it.
///
/// # Safety
///
/// As [`with`]; nobody uses the object any more.
pub unsafe extern "C" fn close<H, T>(fid: *mut Fid) -> c_int {
    // SAFETY: the caller promises that it came from `give`.
    let object = unsafe { &*fid.cast::<Object<H, T>>() };
    let lock = Arc::clone(&object.lock);
    // What it has is its parent's, and stays so.
    if lock.is_inherited() {
        return 0;
    }
    let _locked = lock.lock();
    if object.is_used() {
        return -FI_EBUSY;
    }
    // SAFETY: `give` made it of a box, and the caller promises that nobody uses it any more.
    drop(unsafe { Box::from_raw(fid.cast::<Object<H, T>>()) });
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
