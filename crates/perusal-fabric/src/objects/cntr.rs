//! Counters, as the interface sees them.

use crate::api::*;
use crate::objects::domain::Domain;
use crate::objects::object::{Object, Tables, close, give, table, with};
use crate::objects::wait::{control, left_of, pause};
use crate::protocol::queue::{Awaited, Counter};
use libc::{c_int, c_void};
use std::rc::Rc;
use std::time::Instant;

/// A counter.
pub type Cntr = Object<Tables<1>, Rc<Counter>>;

static FID: FidOps = FidOps::new([
    close::<Tables<1>, Rc<Counter>> as *const (),
    NONE,
    control::<Counter> as *const (),
    NONE,
    NONE,
    NONE,
]);
static CNTR: Table<7> = Table::new([
    read as *const (),
    readerr as *const (),
    add as *const (),
    set as *const (),
    wait as *const (),
    adderr as *const (),
    seterr as *const (),
]);

/// `cntr_open` of a domain.
///
/// # Safety
///
/// As fi_cntr_open(3) says.
pub unsafe extern "C" fn open(
    domain: *mut Fid,
    attr: *const CntrAttr,
    out: *mut *mut Fid,
    context: *mut c_void,
) -> c_int {
    // SAFETY: caller rule 3: null or a valid structure.
    let (events, wait, flags) =
        unsafe { attr.as_ref() }.map_or((0, 0, 0), |attr| (attr.events, attr.wait_obj, attr.flags));
    // A flag (FI_PEER) would have operations counted elsewhere.
    if events > FI_CNTR_EVENTS_BYTES
        || flags != 0
        || ![FI_WAIT_NONE, FI_WAIT_UNSPEC, FI_WAIT_FD, FI_WAIT_YIELD].contains(&wait)
    {
        return -FI_ENOSYS;
    }
    let counter = Rc::new(Counter::new(events == FI_CNTR_EVENTS_BYTES, wait));
    if let (FI_WAIT_FD, Err(error)) = (wait, counter.make_waker()) {
        return -error;
    }
    // SAFETY: caller rule 1: a domain of ours; caller rule 3: a place for the object.
    unsafe {
        let ties = with(domain, |domain: &Domain| domain.ties());
        give(FI_CLASS_CNTR, &FID, [table(&CNTR)], ties, counter, context, out)
    }
}

unsafe extern "C" fn read(cntr: *mut Fid) -> u64 {
    let read = |cntr: &Cntr| {
        cntr.value.bound.progress();
        cntr.value.seen.set(cntr.value.now());
        cntr.value.value.get()
    };
    // SAFETY: caller rule 1: a counter of ours.
    unsafe { with(cntr, read) }
}

unsafe extern "C" fn readerr(cntr: *mut Fid) -> u64 {
    let read = |cntr: &Cntr| {
        cntr.value.bound.progress();
        cntr.value.seen.set(cntr.value.now());
        cntr.value.errors.get()
    };
    // SAFETY: caller rule 1: a counter of ours.
    unsafe { with(cntr, read) }
}

/// Changes the numbers of values and errors, and wakes who waits for them.
///
/// # Safety
///
/// `cntr` is a counter of ours.
unsafe fn change(cntr: *mut Fid, change: impl FnOnce(&Counter)) -> c_int {
    let change = |cntr: &Cntr| {
        change(&cntr.value);
        if let Some(waker) = cntr.value.waker().get() {
            waker.completed();
        }
    };
    // SAFETY: a counter of ours, as the caller promises.
    unsafe { with(cntr, change) };
    0
}

unsafe extern "C" fn add(cntr: *mut Fid, by: u64) -> c_int {
    // SAFETY: caller rule 1: a counter of ours.
    unsafe { change(cntr, |counter| counter.value.set(counter.value.get().wrapping_add(by))) }
}

unsafe extern "C" fn set(cntr: *mut Fid, value: u64) -> c_int {
    // SAFETY: caller rule 1: a counter of ours.
    unsafe { change(cntr, |counter| counter.value.set(value)) }
}

unsafe extern "C" fn adderr(cntr: *mut Fid, by: u64) -> c_int {
    // SAFETY: caller rule 1: a counter of ours.
    unsafe { change(cntr, |counter| counter.errors.set(counter.errors.get().wrapping_add(by))) }
}

unsafe extern "C" fn seterr(cntr: *mut Fid, value: u64) -> c_int {
    // SAFETY: caller rule 1: a counter of ours.
    unsafe { change(cntr, |counter| counter.errors.set(value)) }
}

unsafe extern "C" fn wait(cntr: *mut Fid, threshold: u64, timeout: c_int) -> c_int {
    let start = Instant::now();
    // SAFETY: caller rule 1: a counter of ours.
    let errors = unsafe { with(cntr, |cntr: &Cntr| cntr.value.errors.get()) };
    for tries in 0_u32.. {
        // SAFETY: caller rule 1: a counter of ours.
        unsafe {
            if read(cntr) >= threshold {
                return 0;
            }
            if with(cntr, |cntr: &Cntr| cntr.value.errors.get()) != errors {
                return -FI_EAVAIL;
            }
        }
        let Some(left) = left_of(timeout, start) else { return -FI_ETIMEDOUT };
        // SAFETY: caller rule 1: a counter of ours.
        unsafe { pause::<Counter>(cntr, tries, left) };
    }
    -FI_ETIMEDOUT
}
