//! Fabric, domain, event queue and memory registration: what stands above and beside endpoints.

use crate::api::*;
use crate::object::{Lock, Object, Tables, close, give, table, with};
use crate::{av, cntr, cq, ep};
use libc::{c_int, c_void};
use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

type FabricHead = (*const c_void, u32);
type Fabric = Object<FabricHead, ()>;

static FABRIC_FID: FidOps = FidOps::new([close::<FabricHead, ()> as *const (), NONE, NONE, NONE, NONE, NONE]);
static FABRIC: Table<6> = Table::new([
    domain as *const (),
    NONE,
    eq_open as *const (),
    NONE,
    trywait as *const (),
    domain2 as *const (),
]);

/// `fabric` of the provider.
///
/// # Safety
///
/// As fi_fabric(3) says.
pub unsafe extern "C" fn fabric(attr: *mut FabricAttr, out: *mut *mut Fid, context: *mut c_void) -> c_int {
    // SAFETY: the interface promises a valid structure.
    let version = unsafe { (*attr).api_version };
    let lock = Rc::new(Lock::default());
    // SAFETY: the interface promises a place for the object.
    unsafe { give(FI_CLASS_FABRIC, &FABRIC_FID, (table(&FABRIC), version), &lock, (), context, out) }
}

/// No object has a descriptor to wait on: the caller may always wait.
unsafe extern "C" fn trywait(_: *mut Fid, _: *mut *mut Fid, _: c_int) -> c_int {
    0
}

type DomainHead = Tables<2>;
/// What a domain's objects share is the lock.
pub type Domain = Object<DomainHead, ()>;

static DOMAIN_FID: FidOps = FidOps::new([close::<DomainHead, ()> as *const (), NONE, NONE, NONE, NONE, NONE]);
static DOMAIN: Table<11> = Table::new([
    av::open as *const (),
    cq::open as *const (),
    ep::open as *const (),
    NONE,
    cntr::open as *const (),
    NONE,
    NONE,
    NONE,
    NONE,
    NONE,
    endpoint2 as *const (),
]);
static MR: Table<3> = Table::new([mr_reg as *const (), mr_regv as *const (), mr_regattr as *const ()]);

unsafe extern "C" fn domain(
    _: *mut Fid,
    info: *const Info,
    out: *mut *mut Fid,
    context: *mut c_void,
) -> c_int {
    // SAFETY: the interface promises a valid structure.
    let threading = unsafe { (*info).domain_attr.as_ref() }.map_or(FI_THREAD_SAFE, |attr| attr.threading);
    let lock = Rc::new(Lock::new(threading));
    // SAFETY: the interface promises a place for the object.
    unsafe { give(FI_CLASS_DOMAIN, &DOMAIN_FID, [table(&DOMAIN), table(&MR)], &lock, (), context, out) }
}

unsafe extern "C" fn domain2(
    fabric: *mut Fid,
    info: *const Info,
    out: *mut *mut Fid,
    flags: u64,
    context: *mut c_void,
) -> c_int {
    if flags != 0 {
        return -FI_EBADFLAGS;
    }
    // SAFETY: the same promises.
    unsafe { domain(fabric, info, out, context) }
}

unsafe extern "C" fn endpoint2(
    domain: *mut Fid,
    info: *const Info,
    out: *mut *mut Fid,
    flags: u64,
    context: *mut c_void,
) -> c_int {
    if flags != 0 {
        return -FI_EBADFLAGS;
    }
    // SAFETY: the same promises.
    unsafe { ep::open(domain, info, out, context) }
}

// Memory registration. Messages need none; a registration has the key that the caller asks for.

#[repr(C)]
#[derive(Debug)]
struct MrHead {
    desc: *mut c_void,
    key: u64,
}

static MR_FID: FidOps =
    FidOps::new([close::<MrHead, ()> as *const (), mr_bind as *const (), NONE, NONE, NONE, NONE]);

unsafe extern "C" fn mr_bind(_: *mut Fid, _: *mut Fid, _: u64) -> c_int {
    0
}

unsafe fn register(domain: *mut Fid, key: u64, context: *mut c_void, out: *mut *mut Fid) -> c_int {
    // SAFETY: the interface promises a domain of ours.
    let lock = unsafe { with(domain, |domain: &Domain| Rc::clone(&domain.lock)) };
    let head = MrHead { desc: std::ptr::null_mut(), key };
    // SAFETY: the interface promises a place for the object.
    unsafe { give(FI_CLASS_MR, &MR_FID, head, &lock, (), context, out) }
}

#[allow(clippy::too_many_arguments, reason = "the interface's signature")]
unsafe extern "C" fn mr_reg(
    domain: *mut Fid,
    _buf: *const c_void,
    _len: usize,
    _access: u64,
    _offset: u64,
    key: u64,
    _flags: u64,
    out: *mut *mut Fid,
    context: *mut c_void,
) -> c_int {
    // SAFETY: the interface's promises.
    unsafe { register(domain, key, context, out) }
}

#[allow(clippy::too_many_arguments, reason = "the interface's signature")]
unsafe extern "C" fn mr_regv(
    domain: *mut Fid,
    _iov: *const libc::iovec,
    _count: usize,
    _access: u64,
    _offset: u64,
    key: u64,
    _flags: u64,
    out: *mut *mut Fid,
    context: *mut c_void,
) -> c_int {
    // SAFETY: the interface's promises.
    unsafe { register(domain, key, context, out) }
}

/// The beginning of `struct fi_mr_attr`.
#[repr(C)]
#[derive(Debug)]
struct MrAttr {
    iov: *const libc::iovec,
    iov_count: usize,
    access: u64,
    offset: u64,
    requested_key: u64,
    context: *mut c_void,
}

unsafe extern "C" fn mr_regattr(domain: *mut Fid, attr: *const MrAttr, _: u64, out: *mut *mut Fid) -> c_int {
    // SAFETY: the interface promises a valid structure.
    let (key, context) = unsafe { ((*attr).requested_key, (*attr).context) };
    // SAFETY: the interface's promises.
    unsafe { register(domain, key, context, out) }
}

// Event queues. Nothing here reports to one: callers may write to it and read that back.

/// An event and its bytes.
type Events = RefCell<VecDeque<(u32, Box<[u8]>)>>;
type Eq = Object<Tables<1>, Events>;

static EQ_FID: FidOps = FidOps::new([close::<Tables<1>, Events> as *const (), NONE, NONE, NONE, NONE, NONE]);
static EQ: Table<5> = Table::new([
    eq_read as *const (),
    eq_readerr as *const (),
    eq_write as *const (),
    eq_sread as *const (),
    NONE,
]);

/// The beginning of `struct fi_eq_attr`.
#[repr(C)]
#[derive(Debug)]
struct EqAttr {
    size: usize,
    flags: u64,
    wait_obj: u32,
}

unsafe extern "C" fn eq_open(
    fabric: *mut Fid,
    attr: *const EqAttr,
    out: *mut *mut Fid,
    context: *mut c_void,
) -> c_int {
    // SAFETY: the interface promises null or a valid structure.
    let wait = unsafe { attr.as_ref() }.map_or(FI_WAIT_NONE, |attr| attr.wait_obj);
    if ![FI_WAIT_NONE, FI_WAIT_UNSPEC, FI_WAIT_YIELD].contains(&wait) {
        return -FI_ENOSYS;
    }
    // SAFETY: the interface promises a fabric of ours.
    let _ = unsafe { with(fabric, |fabric: &Fabric| fabric.head.1) };
    // Threads may write and read at once.
    let lock = Rc::new(Lock::new(FI_THREAD_SAFE));
    // SAFETY: the interface promises a place for the object.
    unsafe { give(FI_CLASS_EQ, &EQ_FID, [table(&EQ)], &lock, Events::default(), context, out) }
}

unsafe extern "C" fn eq_read(eq: *mut Fid, event: *mut u32, buf: *mut u8, len: usize, flags: u64) -> isize {
    let read = |eq: &Eq| {
        let mut events = eq.value.borrow_mut();
        let Some((number, bytes)) = events.front() else { return -(FI_EAGAIN as isize) };
        if bytes.len() > len {
            return -(FI_ETOOSMALL as isize);
        }
        let read = bytes.len();
        // SAFETY: the interface promises `len` bytes and a place for the event.
        unsafe {
            *event = *number;
            std::ptr::copy_nonoverlapping(bytes.as_ptr(), buf, read);
        }
        if flags & FI_PEEK == 0 {
            events.pop_front();
        }
        read as isize
    };
    // SAFETY: the interface promises an event queue of ours.
    unsafe { with(eq, read) }
}

unsafe extern "C" fn eq_sread(
    eq: *mut Fid,
    event: *mut u32,
    buf: *mut u8,
    len: usize,
    timeout: c_int,
    flags: u64,
) -> isize {
    let start = std::time::Instant::now();
    loop {
        // SAFETY: the same promises.
        let read = unsafe { eq_read(eq, event, buf, len, flags) };
        if read != -(FI_EAGAIN as isize) || (timeout >= 0 && start.elapsed().as_millis() >= timeout as u128) {
            return read;
        }
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
}

unsafe extern "C" fn eq_readerr(_: *mut Fid, _: *mut c_void, _: u64) -> isize {
    -(FI_EAGAIN as isize)
}

unsafe extern "C" fn eq_write(eq: *mut Fid, event: u32, buf: *const u8, len: usize, _: u64) -> isize {
    // SAFETY: the interface promises `len` bytes.
    let bytes: Box<[u8]> = unsafe { std::slice::from_raw_parts(buf, len) }.into();
    // SAFETY: the interface promises an event queue of ours.
    unsafe { with(eq, |eq: &Eq| eq.value.borrow_mut().push_back((event, bytes))) };
    len as isize
}
