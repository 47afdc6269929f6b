//! Fabric, domain and event queue: what stands above and beside endpoints.

use crate::api::*;
use crate::endpoint::Endpoint;
use crate::lock::Lock;
use crate::object::{Object, Tables, Ties, close, give, table, with};
use crate::region::Regions;
use crate::{av, cntr, cq, ep, mr, rma, wait};
use libc::{c_int, c_void};
use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::{Rc, Weak};

type FabricHead = (*const c_void, u32);
type Fabric = Object<FabricHead, ()>;

static FABRIC_FID: FidOps = FidOps::new([close::<FabricHead, ()> as *const (), NONE, NONE, NONE, NONE, NONE]);
static FABRIC: Table<6> = Table::new([
    domain as *const (),
    NONE,
    eq_open as *const (),
    NONE,
    wait::trywait as *const (),
    domain2 as *const (),
]);

/// `fabric` of the provider.
///
/// # Safety
///
/// As fi_fabric(3) says.
pub unsafe extern "C" fn fabric(attr: *mut FabricAttr, out: *mut *mut Fid, context: *mut c_void) -> c_int {
    // SAFETY: caller rule 3: a valid structure.
    let version = unsafe { (*attr).api_version };
    let head = (table(&FABRIC), version);
    // SAFETY: caller rule 3: a place for the object.
    unsafe { give(FI_CLASS_FABRIC, &FABRIC_FID, head, Ties::default(), (), context, out) }
}

type DomainHead = Tables<2>;
/// A domain; all its objects have the same lock.
pub type Domain = Object<DomainHead, Rc<Shared>>;

/// What the objects of a domain share.
#[derive(Debug, Default)]
pub struct Shared {
    pub regions: Rc<Regions>,
    endpoints: RefCell<Vec<Weak<RefCell<Endpoint>>>>,
}

impl Shared {
    /// Has an endpoint serve accesses to the domain's regions.
    pub fn add(&self, endpoint: &Rc<RefCell<Endpoint>>) {
        endpoint.borrow_mut().serve(&self.regions);
        // Whoever waits for a counter of a region has all endpoints make progress.
        self.regions.each(|region| region.counters.borrow().iter().for_each(|one| one.1.bound.add(endpoint)));
        let mut endpoints = self.endpoints.borrow_mut();
        endpoints.retain(|one| one.strong_count() > 0);
        endpoints.push(Rc::downgrade(endpoint));
    }

    /// Calls `f` with each endpoint.
    pub fn each(&self, f: impl FnMut(Rc<RefCell<Endpoint>>)) {
        self.endpoints.borrow().iter().filter_map(Weak::upgrade).for_each(f);
    }
}

static DOMAIN_FID: FidOps = FidOps::new([
    close::<DomainHead, Rc<Shared>> as *const (),
    NONE,
    mr::control_keys as *const (),
    NONE,
    NONE,
    NONE,
]);
static DOMAIN: Table<11> = Table::new([
    av::open as *const (),
    cq::open as *const (),
    ep::open as *const (),
    NONE,
    cntr::open as *const (),
    NONE,
    NONE,
    NONE,
    rma::query_atomic as *const (),
    NONE,
    endpoint2 as *const (),
]);
unsafe extern "C" fn domain(
    fabric: *mut Fid,
    info: *const Info,
    out: *mut *mut Fid,
    context: *mut c_void,
) -> c_int {
    // SAFETY: caller rule 3: a valid structure.
    let attr = unsafe { (*info).domain_attr.as_ref() };
    let threading = attr.map_or(FI_THREAD_SAFE, |attr| attr.threading);
    let mode = attr.map_or(0, |attr| attr.mr_mode);
    let asks = |bit| mode == FI_MR_BASIC || mode & bit != 0;
    let regions = Rc::new(Regions::new(asks(FI_MR_VIRT_ADDR), asks(FI_MR_PROV_KEY)));
    let shared = Rc::new(Shared { regions, endpoints: RefCell::default() });
    let head = [table(&DOMAIN), table(&mr::TABLE)];
    // SAFETY: caller rule 1: a fabric of ours; caller rule 3: a place for the object.
    unsafe {
        let uses = vec![(*fabric.cast::<Fabric>()).users.clone()];
        let ties = Ties::of(Lock::new(threading != FI_THREAD_DOMAIN), uses);
        give(FI_CLASS_DOMAIN, &DOMAIN_FID, head, ties, shared, context, out)
    }
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
    // SAFETY: caller rule 1: a fabric of ours; caller rule 3: a valid structure, and a place for the object.
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
    // SAFETY: caller rule 1: a domain of ours; caller rule 3: a valid structure, and a place for the object.
    unsafe { ep::open(domain, info, out, context) }
}

// Event queues. Nothing here reports to one: callers may write to it and read that back.

/// An event and its bytes.
type Events = RefCell<VecDeque<(u32, Box<[u8]>)>>;
/// An event queue.
pub type Eq = Object<Tables<1>, Events>;

static EQ_FID: FidOps = FidOps::new([close::<Tables<1>, Events> as *const (), NONE, NONE, NONE, NONE, NONE]);
static EQ: Table<5> = Table::new([
    eq_read as *const (),
    eq_readerr as *const (),
    eq_write as *const (),
    eq_sread as *const (),
    cq::strerror as *const (),
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
    // SAFETY: caller rule 3: null or a valid structure.
    let wait = unsafe { attr.as_ref() }.map_or(FI_WAIT_NONE, |attr| attr.wait_obj);
    if ![FI_WAIT_NONE, FI_WAIT_UNSPEC, FI_WAIT_YIELD].contains(&wait) {
        return -FI_ENOSYS;
    }
    // SAFETY: caller rule 1: a fabric of ours; caller rule 3: a place for the object.
    unsafe {
        let uses = vec![(*fabric.cast::<Fabric>()).users.clone()];
        // Threads may write and read at once.
        let ties = Ties::of(Lock::new(true), uses);
        give(FI_CLASS_EQ, &EQ_FID, [table(&EQ)], ties, Events::default(), context, out)
    }
}

unsafe extern "C" fn eq_read(eq: *mut Fid, event: *mut u32, buf: *mut u8, len: usize, flags: u64) -> isize {
    let read = |eq: &Eq| {
        let mut events = eq.value.borrow_mut();
        let Some((number, bytes)) = events.front() else { return -(FI_EAGAIN as isize) };
        if bytes.len() > len {
            return -(FI_ETOOSMALL as isize);
        }
        let read = bytes.len();
        // SAFETY: caller rule 3: `len` bytes and a place for the event.
        unsafe {
            *event = *number;
            std::ptr::copy_nonoverlapping(bytes.as_ptr(), buf, read);
        }
        if flags & FI_PEEK == 0 {
            events.pop_front();
        }
        read as isize
    };
    // SAFETY: caller rule 1: an event queue of ours.
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
        // SAFETY: caller rule 1: an event queue of ours; caller rule 3: `len` bytes and a place for the event.
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
    // SAFETY: caller rule 3: `len` bytes; of none, perhaps no address.
    let bytes = if len == 0 { &[] } else { unsafe { std::slice::from_raw_parts(buf, len) } };
    let bytes: Box<[u8]> = bytes.into();
    // SAFETY: caller rule 1: an event queue of ours.
    unsafe { with(eq, |eq: &Eq| eq.value.borrow_mut().push_back((event, bytes))) };
    len as isize
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::queue::Counter;
    use crate::spans::Spans;

    #[test]
    fn an_endpoint_makes_progress_for_the_counters_of_regions_that_were_there_before() {
        let (shared, counter) = (Shared::default(), Rc::new(Counter::default()));
        let region = shared.regions.add(1, FI_REMOTE_WRITE, Box::new([(0, 0)])).expect("a free key");
        region.counters.borrow_mut().push((FI_REMOTE_WRITE, Rc::clone(&counter)));
        let endpoint = Rc::new(RefCell::new(Endpoint::new().expect("an endpoint")));
        shared.add(&endpoint);
        assert!(!counter.bound.progress());
        let mut peer = Endpoint::new().expect("an endpoint");
        peer.core.introduce(0, endpoint.borrow().address);
        peer.core.send_eager(0, None, None, &Spans::none(), std::ptr::null_mut(), false).expect("room");
        assert!(counter.bound.progress());
    }
}
