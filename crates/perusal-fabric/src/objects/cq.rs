//! Completion queues, as the interface sees them.

use crate::api::*;
use crate::objects::domain::Domain;
use crate::objects::object::{Object, Tables, close, give, table, with};
use crate::objects::wait::{control, left_of, pause};
use crate::protocol::queue::{Awaited, Queue};
use libc::{c_char, c_int, c_void};
use std::rc::Rc;
use std::time::Instant;

/// A completion queue.
pub type Cq = Object<Tables<1>, Rc<Queue>>;

static FID: FidOps = FidOps::new([
    close::<Tables<1>, Rc<Queue>> as *const (),
    NONE,
    control::<Queue> as *const (),
    NONE,
    NONE,
    NONE,
]);
static CQ: Table<7> = Table::new([
    read as *const (),
    readfrom as *const (),
    readerr as *const (),
    sread as *const (),
    sreadfrom as *const (),
    signal as *const (),
    strerror as *const (),
]);

/// `cq_open` of a domain.
///
/// # Safety
///
/// As fi_cq_open(3) says.
pub unsafe extern "C" fn open(
    domain: *mut Fid,
    attr: *mut CqAttr,
    out: *mut *mut Fid,
    context: *mut c_void,
) -> c_int {
    // SAFETY: caller rule 3: null or a valid structure.
    let (format, wait, flags) =
        unsafe { attr.as_ref() }.map_or((0, 0, 0), |attr| (attr.format, attr.wait_obj, attr.flags));
    if ![FI_WAIT_NONE, FI_WAIT_UNSPEC, FI_WAIT_FD, FI_WAIT_YIELD].contains(&wait) {
        return -FI_ENOSYS;
    }
    if format > FI_CQ_FORMAT_TAGGED {
        return -FI_EINVAL;
    }
    // FI_AFFINITY is a hint; FI_PEER would have another provider's queue take the completions.
    if flags & !FI_AFFINITY != 0 {
        return -FI_ENOSYS;
    }
    let format = if format == FI_CQ_FORMAT_UNSPEC { FI_CQ_FORMAT_CONTEXT } else { format };
    // SAFETY: caller rule 1: a domain of ours.
    let version = unsafe { with(domain, |domain: &Domain| domain.value.version) };
    let queue = Rc::new(Queue::new(format, wait, version));
    if let (FI_WAIT_FD, Err(error)) = (wait, queue.make_waker()) {
        return -error;
    }
    // SAFETY: caller rule 1: a domain of ours; caller rule 3: a place for the object.
    unsafe {
        let ties = with(domain, |domain: &Domain| domain.ties());
        give(FI_CLASS_CQ, &FID, [table(&CQ)], ties, queue, context, out)
    }
}

/// Takes up to `count` completions.
///
/// # Safety
///
/// `buf` has room for `count` entries, and `sources`, unless it is null, for as many addresses.
#[inline(always)]
unsafe fn take(queue: &Queue, buf: *mut u8, count: usize, sources: *mut u64) -> isize {
    let mut done = queue.done.borrow_mut();
    if done.is_empty() || count == 0 {
        drop(done);
        queue.bound.progress();
        done = queue.done.borrow_mut();
    }
    let mut taken = 0;
    while taken < count {
        let Some(front) = done.front() else { break };
        if front.error != 0 {
            break;
        }
        // SAFETY: there is room for `count` entries and addresses, as the caller promises.
        unsafe {
            queue.write(&front.entry, buf, taken);
            if !sources.is_null() {
                *sources.add(taken) = front.source;
            }
        }
        done.pop_front();
        taken += 1;
    }
    if taken > 0 {
        return taken as isize;
    }
    match done.front() {
        None => -(FI_EAGAIN as isize),
        Some(front) if front.error != 0 => -(FI_EAVAIL as isize),
        // None were asked for: a program makes progress so.
        Some(_) => 0,
    }
}

unsafe extern "C" fn read(cq: *mut Fid, buf: *mut u8, count: usize) -> isize {
    // SAFETY: caller rule 1: a completion queue of ours; caller rule 3: room for the entries.
    unsafe { with(cq, |cq: &Cq| take(&cq.value, buf, count, std::ptr::null_mut())) }
}

unsafe extern "C" fn readfrom(cq: *mut Fid, buf: *mut u8, count: usize, sources: *mut u64) -> isize {
    // SAFETY: caller rule 1: a completion queue of ours; caller rule 3: room for the entries.
    unsafe { with(cq, |cq: &Cq| take(&cq.value, buf, count, sources)) }
}

unsafe extern "C" fn sread(
    cq: *mut Fid,
    buf: *mut u8,
    count: usize,
    cond: *const c_void,
    timeout: c_int,
) -> isize {
    // SAFETY: caller rule 1: a completion queue of ours; caller rule 3: room for the entries.
    unsafe { sreadfrom(cq, buf, count, std::ptr::null_mut(), cond, timeout) }
}

unsafe extern "C" fn sreadfrom(
    cq: *mut Fid,
    buf: *mut u8,
    count: usize,
    sources: *mut u64,
    _cond: *const c_void,
    timeout: c_int,
) -> isize {
    let start = Instant::now();
    for tries in 0_u32.. {
        // SAFETY: caller rule 1: a completion queue of ours; caller rule 3: room for the entries.
        let taken = unsafe { with(cq, |cq: &Cq| take(&cq.value, buf, count, sources)) };
        // SAFETY: caller rule 1: a completion queue of ours.
        let signaled = unsafe { with(cq, |cq: &Cq| cq.value.signaled.take()) };
        let left = left_of(timeout, start);
        let (true, false, Some(left)) = (taken == -(FI_EAGAIN as isize), signaled, left) else {
            return taken;
        };
        // SAFETY: caller rule 1: a completion queue of ours.
        unsafe { pause::<Queue>(cq, tries, left) };
    }
    -(FI_EAGAIN as isize)
}

unsafe extern "C" fn signal(cq: *mut Fid) -> c_int {
    // SAFETY: caller rule 1: a completion queue of ours.
    unsafe {
        with(cq, |cq: &Cq| {
            cq.value.signaled.set(true);
            cq.value.signaled_to_poll.set(true);
            if let Some(waker) = cq.value.waker().get() {
                waker.signal();
            }
        });
    }
    0
}

/// Versions of the interface in which `struct fi_cq_err_entry` has become longer:
/// what a caller of an older one has behind it is left alone.
const ERR_DATA_SIZE: u32 = 1 << 16 | 5;
const SRC_ADDR: u32 = 1 << 16 | 20;

unsafe extern "C" fn readerr(cq: *mut Fid, out: *mut CqErrEntry, _: u64) -> isize {
    let readerr = |cq: &Cq| {
        let mut done = cq.value.done.borrow_mut();
        let Some(front) = done.front().filter(|front| front.error != 0).copied() else {
            return -(FI_EAGAIN as isize);
        };
        done.pop_front();
        let entry = front.entry;
        let version = cq.value.version;
        cq.value.keep_error_data(front.error);
        let data = cq.value.error_data.borrow();
        // SAFETY: caller rule 3: room for the entry as the caller's version has it, and a buffer of as many bytes as it
        // says. Without one the caller looks at ours, until it reads on.
        unsafe {
            let room = if version >= ERR_DATA_SIZE { (*out).err_data_size } else { 0 };
            let mut written = data.len();
            (*out).context = entry.context;
            (*out).flags = entry.flags;
            (*out).len = entry.len;
            (*out).buf = entry.buf;
            (*out).data = entry.data;
            (*out).tag = entry.tag;
            (*out).olen = front.overflow;
            (*out).err = front.error;
            (*out).prov_errno = front.error;
            if room > 0 {
                written = written.min(room);
                std::ptr::copy_nonoverlapping(data.as_ptr(), (*out).err_data.cast(), written);
            } else {
                let at = if data.is_empty() { std::ptr::null() } else { data.as_ptr() };
                (*out).err_data = at.cast_mut().cast();
            }
            if version >= ERR_DATA_SIZE {
                (*out).err_data_size = written;
            }
            if version >= SRC_ADDR {
                (*out).src_addr = FI_ADDR_NOTAVAIL;
            }
        }
        1
    };
    // SAFETY: caller rule 1: a completion queue of ours.
    unsafe { with(cq, readerr) }
}

/// `strerror` of a completion queue, and of an event queue.
///
/// # Safety
///
/// As fi_cq_strerror(3) says.
pub unsafe extern "C" fn strerror(
    _: *mut Fid,
    number: c_int,
    _: *const c_void,
    buf: *mut c_char,
    len: usize,
) -> *const c_char {
    let text = crate::api::error_text(number);
    if !buf.is_null() && len > 0 {
        // SAFETY: caller rule 3: `len` bytes.
        unsafe {
            libc::strncpy(buf, text, len - 1);
            *buf.add(len - 1) = 0;
        }
    }
    text
}
