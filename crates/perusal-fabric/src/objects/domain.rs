//! Fabric and domain: what stands above endpoints.

use crate::api::*;
use crate::forks;
use crate::lock::Lock;
use crate::objects::eq::{self, Eq};
use crate::objects::object::{Object, Tables, Ties, close, give, table, with};
use crate::objects::opened::{Modes, Opened};
use crate::objects::{av, cntr, cq, ep, mr, poll, rma, wait};
use crate::operands::region::Regions;
use crate::progress::automatic::{Automatic, Next};
use crate::progress::endpoint::Endpoint;
use libc::{c_int, c_void};
use std::cell::RefCell;
use std::rc::{Rc, Weak};

type FabricHead = (*const c_void, u32);
/// A fabric.
pub type Fabric = Object<FabricHead, Opened>;

static FABRIC_FID: FidOps =
    FidOps::new([close::<FabricHead, Opened> as *const (), NONE, NONE, NONE, NONE, NONE]);
static FABRIC: Table<6> = Table::new([
    domain as *const (),
    NONE,
    eq::open as *const (),
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
    let opened = Opened::new();
    let number = opened.number();
    // SAFETY: caller rule 3: a place for the object, which is there then.
    unsafe {
        give(FI_CLASS_FABRIC, &FABRIC_FID, head, Ties::default(), opened, context, out);
        Opened::tell_fabric(number, *out, version);
    }
    0
}

type DomainHead = Tables<2>;
/// A domain; all its objects have the same lock.
pub type Domain = Object<DomainHead, Rc<Shared>>;

/// What the objects of a domain share.
#[derive(Debug)]
pub struct Shared {
    pub regions: Rc<Regions>,
    endpoints: RefCell<Vec<Weak<RefCell<Endpoint>>>>,
    /// The version of the interface that the caller knows.
    pub version: u32,
    opened: Opened,
    /// Of a domain whose progress needs no calls.
    automatic: Option<Automatic>,
}

impl Shared {
    /// What the objects of a domain share whose caller knows this version of the interface.
    fn new(regions: Regions, version: u32) -> Self {
        let (endpoints, opened) = (RefCell::default(), Opened::new());
        Self { regions: Rc::new(regions), endpoints, version, opened, automatic: None }
    }

    /// Has an endpoint serve accesses to the domain's regions.
    pub fn add(&self, endpoint: &Rc<RefCell<Endpoint>>) {
        endpoint.borrow_mut().serve(&self.regions);
        // Whoever waits for a counter of a region has all endpoints make progress.
        self.regions.each(|region| region.counters.borrow().iter().for_each(|one| one.1.bound.add(endpoint)));
        let mut endpoints = self.endpoints.borrow_mut();
        endpoints.retain(|one| one.strong_count() > 0);
        endpoints.push(Rc::downgrade(endpoint));
        if let Some(automatic) = &self.automatic {
            automatic.wake();
        }
    }

    /// One step of the thread of a domain whose progress needs no calls.
    fn step(&self, seen: &mut u32) -> Next {
        let endpoints: Vec<_> = self.endpoints.borrow().iter().filter_map(Weak::upgrade).collect();
        self.automatic.as_ref().map_or(Next::End, |automatic| automatic.step(&endpoints, seen))
    }

    /// Calls `f` with each endpoint.
    pub fn each(&self, f: impl FnMut(Rc<RefCell<Endpoint>>)) {
        self.endpoints.borrow().iter().filter_map(Weak::upgrade).for_each(f);
    }
}

static DOMAIN_FID: FidOps = FidOps::new([
    close_domain as *const (),
    bind as *const (),
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
    poll::open as *const (),
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
    let modes = Modes::of(unsafe { (*info).domain_attr.as_ref() });
    let asks = |bit| modes.registration & bit != 0;
    let regions = Regions::new(asks(FI_MR_VIRT_ADDR), asks(FI_MR_PROV_KEY));
    // SAFETY: caller rule 1: a fabric of ours.
    let (version, uses) = unsafe {
        let fabric = &*fabric.cast::<Fabric>();
        (fabric.head.1, vec![fabric.users.clone()])
    };
    let automatic = if modes.automatic { Automatic::new().map(Some) } else { Ok(None) };
    let shared = match automatic {
        Ok(automatic) => Rc::new(Shared { automatic, ..Shared::new(regions, version) }),
        Err(error) => return -error,
    };
    let number = shared.opened.number();
    let head = [table(&DOMAIN), table(&mr::TABLE)];
    let ties = Ties::of(Lock::new(!modes.one_thread || modes.automatic), uses);
    // SAFETY: caller rule 3: a place for the object, which is there then.
    unsafe {
        give(FI_CLASS_DOMAIN, &DOMAIN_FID, head, ties, shared, context, out);
        forks::watch(&(*(*out).cast::<Domain>()).lock);
        Opened::tell_domain(number, *out, fabric, version, modes);
        match start(*out) {
            Ok(()) => 0,
            Err(error) => {
                close_domain(*out);
                -error
            }
        }
    }
}

/// A domain, for its thread.
struct Progressed(*mut Fid);
// SAFETY: the thread uses the domain under its lock alone, which is needed in such a domain, and `close_domain` joins
// the thread before the domain is gone.
unsafe impl Send for Progressed {}

impl Progressed {
    /// One step of the thread.
    fn step(&self, seen: &mut u32) -> Next {
        // SAFETY: the domain is there as long as its thread.
        unsafe { with(self.0, |domain: &Domain| domain.value.step(seen)) }
    }
}

/// Starts the thread of a domain whose progress needs no calls.
///
/// # Safety
///
/// `domain` is a domain of ours.
unsafe fn start(domain: *mut Fid) -> Result<(), c_int> {
    let (progressed, mut seen) = (Progressed(domain), 0);
    let start = |domain: &Domain| match &domain.value.automatic {
        Some(automatic) => automatic.start(move || progressed.step(&mut seen)),
        None => Ok(()),
    };
    // SAFETY: a domain of ours, as the caller promises.
    unsafe { with(domain, start) }
}

/// `close` of a domain, whose thread ends first.
unsafe extern "C" fn close_domain(domain: *mut Fid) -> c_int {
    let stop = |domain: &Domain| {
        let automatic = domain.value.automatic.as_ref();
        if domain.is_used() { Err(FI_EBUSY) } else { Ok(automatic.and_then(Automatic::stop)) }
    };
    // SAFETY: caller rule 1: a domain of ours.
    if unsafe { (*domain.cast::<Domain>()).lock.is_inherited() } {
        return 0;
    }
    // SAFETY: caller rule 1: a domain of ours.
    match unsafe { with(domain, stop) } {
        Err(error) => return -error,
        // It has no panic to tell of.
        Ok(thread) => drop(thread.map(std::thread::JoinHandle::join)),
    }
    // SAFETY: caller rule 1: a domain of ours that nobody uses any more.
    unsafe { close::<DomainHead, Rc<Shared>>(domain) }
}

/// `bind` of a domain with an event queue, to which nothing is reported: registrations are complete when their call
/// returns, so that a flag that has them report (FI_REG_MR) is refused.
unsafe extern "C" fn bind(domain: *mut Fid, other: *mut Fid, flags: u64) -> c_int {
    // SAFETY: caller rule 1: an object.
    let class = unsafe { (*other).class };
    if class != FI_CLASS_EQ {
        return -FI_EINVAL;
    }
    if flags != 0 {
        return -FI_EBADFLAGS;
    }
    // SAFETY: caller rule 1: a domain of ours; its class says that the other object is an event queue of ours.
    unsafe { with(domain, |domain: &Domain| domain.uses(&(*other.cast::<Eq>()).users)) };
    0
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operands::spans::Spans;
    use crate::protocol::queue::Counter;

    #[test]
    fn an_endpoint_makes_progress_for_the_counters_of_regions_that_were_there_before() {
        let shared = Shared::new(Regions::default(), 2 << 16);
        let counter = Rc::new(Counter::default());
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
