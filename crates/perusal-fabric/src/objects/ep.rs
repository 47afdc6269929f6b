//! Endpoints, as the interface sees them: how they are bound and enabled, their flags and options.

use crate::api::*;
use crate::names::service::Service;
use crate::objects::av::Av;
use crate::objects::cntr::Cntr;
use crate::objects::cq::Cq;
use crate::objects::domain::Domain;
use crate::objects::eq::Eq;
use crate::objects::info::{RX_FLAGS, TX_FLAGS, narrowed};
use crate::objects::messages;
use crate::objects::object::{Object, Tables, close, give, table, with};
use crate::objects::rma;
use crate::progress::endpoint::Endpoint;
use libc::{c_int, c_void};
use std::cell::{Cell, RefCell};
use std::rc::Rc;

/// An endpoint and how it is bound.
#[derive(Debug)]
pub struct Bindings {
    pub endpoint: Rc<RefCell<Endpoint>>,
    /// The flags of operations that are not called with flags.
    pub send_flags: Cell<u64>,
    pub receive_flags: Cell<u64>,
    /// Only operations that ask for it report to the queue.
    pub select_sends: Cell<bool>,
    pub select_receives: Cell<bool>,
    has_addresses: Cell<bool>,
    /// Whether it is enabled ([`ENABLED`]), and for which operations a queue is bound then.
    ready: Cell<u64>,
    /// Whether its operations end in a queue for sends, and in one for receives.
    needs: (bool, bool),
    /// Buffers of tagged receives may take several messages (FI_TAGGED_MULTI_RECV).
    pub tagged_several: bool,
    /// Flags of a call that sends and asks for what the endpoint does not do.
    refused: u64,
}

impl Bindings {
    /// The same endpoint, bound and enabled as it is now, whose flags may be others (fi_ep_alias).
    fn alias(&self) -> Self {
        Self {
            endpoint: Rc::clone(&self.endpoint),
            send_flags: self.send_flags.clone(),
            receive_flags: self.receive_flags.clone(),
            select_sends: self.select_sends.clone(),
            select_receives: self.select_receives.clone(),
            has_addresses: self.has_addresses.clone(),
            ready: self.ready.clone(),
            needs: self.needs,
            tagged_several: self.tagged_several,
            refused: self.refused,
        }
    }

    /// The flags of operations that are called without flags, of those that send (FI_TRANSMIT) or those that receive
    /// (FI_RECV); what names them, and which flags there are.
    fn flags_of(&self, asked: u64) -> Result<(&Cell<u64>, u64, u64), c_int> {
        match asked & OPERATIONS {
            FI_SEND => Ok((&self.send_flags, FI_SEND, TX_FLAGS)),
            FI_RECV => Ok((&self.receive_flags, FI_RECV, RX_FLAGS)),
            _ => Err(FI_EINVAL),
        }
    }

    /// Sets the flags of those that `asked` names, to the others in it.
    fn set_flags(&self, asked: u64) -> Result<(), c_int> {
        let (flags, which, known) = self.flags_of(asked)?;
        let new = asked & !which;
        if new & !known != 0 {
            return Err(FI_EBADFLAGS);
        }
        flags.set(new);
        Ok(())
    }
}

/// `struct fi_alias`.
#[repr(C)]
struct Alias {
    fid: *mut *mut Fid,
    flags: u64,
}

/// fi_ep_alias: another object of the endpoint, with flags of its own for the operations that `flags` names. The
/// endpoint closes with the last of its objects.
///
/// # Safety
///
/// The place in `alias` may be written to.
unsafe fn alias(ep: &Ep, alias: &Alias) -> Result<(), c_int> {
    // What is bound later would be bound for one of them alone.
    if ep.value.ready.get() == 0 {
        return Err(FI_EOPBADSTATE);
    }
    let bindings = ep.value.alias();
    bindings.set_flags(alias.flags)?;
    // SAFETY: a place for the object, as the caller promises.
    unsafe { give(FI_CLASS_EP, &FID, ep.head, ep.same_ties(), bindings, ep.fid.context, alias.fid) };
    Ok(())
}

/// An endpoint.
pub type Ep = Object<Tables<7>, Bindings>;

static FID: FidOps = FidOps::new([
    close::<Tables<7>, Bindings> as *const (),
    bind as *const (),
    control as *const (),
    NONE,
    NONE,
    NONE,
]);
static OPS: Table<7> =
    Table::new([cancel as *const (), getopt as *const (), setopt as *const (), NONE, NONE, NONE, NONE]);
static CM: Table<9> = Table::new([NONE, getname as *const (), NONE, NONE, NONE, NONE, NONE, NONE, NONE]);
/// `struct fi_ops_collective`, of which nothing is offered.
static COLLECTIVES: Table<11> = Table::new([NONE; 11]);

/// `endpoint` of a domain.
///
/// # Safety
///
/// As fi_endpoint(3) says.
pub unsafe extern "C" fn open(
    domain: *mut Fid,
    info: *const Info,
    out: *mut *mut Fid,
    context: *mut c_void,
) -> c_int {
    // SAFETY: caller rule 3: valid structures.
    let (caps, tx, rx) = unsafe {
        let info = &*info;
        (
            info.caps,
            info.tx_attr.as_ref().map_or((0, 0), |tx| (tx.caps, tx.op_flags)),
            info.rx_attr.as_ref().map_or((0, 0), |rx| (rx.caps, rx.op_flags)),
        )
    };
    let ((starts, send_flags), (takes, receive_flags)) = (tx, rx);
    let (starts, takes) = (narrowed(caps, starts), narrowed(caps, takes));
    // SAFETY: caller rule 3: a valid structure, whose source address has as many bytes as it says.
    let source = unsafe { crate::objects::info::bytes_of((*info).src_addr, (*info).src_addrlen) };
    // Only the name of a service can be had again.
    let Some(service) = source.map_or(Some(Service::default()), Service::parse) else {
        return -FI_EADDRNOTAVAIL;
    };
    let mut endpoint = match Endpoint::with_network(&service) {
        Ok(endpoint) => endpoint,
        Err(error) => return -error,
    };
    let exact = takes & FI_EXACT_DIRECTED_RECV != 0;
    let directed = takes & FI_DIRECTED_RECV != 0 || exact && takes & FI_TAGGED_DIRECTED_RECV == 0;
    endpoint.core.directed = [directed, directed || takes & FI_TAGGED_DIRECTED_RECV != 0];
    endpoint.core.exact = exact;
    endpoint.core.reports.names_strangers = takes & FI_SOURCE_ERR != 0;
    let is_target = takes & (FI_RMA | FI_ATOMIC) != 0;
    endpoint.core.serves = if is_target { takes & (FI_REMOTE_READ | FI_REMOTE_WRITE) } else { 0 };
    let receives = |kinds| takes & kinds != 0 && takes & FI_RECV != 0;
    let sends = |kinds| starts & kinds != 0 && starts & FI_SEND != 0;
    let begins = |kinds, which| starts & kinds != 0 && starts & which != 0;
    let (messages, accesses) = (FI_MSG | FI_TAGGED, FI_RMA | FI_ATOMIC);
    let bindings = Bindings {
        endpoint: Rc::new(RefCell::new(endpoint)),
        send_flags: Cell::new(send_flags),
        receive_flags: Cell::new(receive_flags),
        select_sends: Cell::new(false),
        select_receives: Cell::new(false),
        has_addresses: Cell::new(false),
        ready: Cell::new(0),
        needs: (sends(messages) || begins(accesses, FI_READ | FI_WRITE), receives(messages)),
        tagged_several: takes & FI_TAGGED_MULTI_RECV != 0,
        refused: REFUSED & !(starts & FI_FENCE),
    };
    // Nothing but what was asked for (fi_getinfo(3)).
    let head = [
        table(&OPS),
        table(&CM),
        messages::MESSAGES.of(receives(FI_MSG), sends(FI_MSG)),
        rma::RMA.of(begins(FI_RMA, FI_READ), begins(FI_RMA, FI_WRITE)),
        messages::TAGGED.of(receives(FI_TAGGED), sends(FI_TAGGED)),
        rma::ATOMIC.of(begins(FI_ATOMIC, FI_WRITE), begins(FI_ATOMIC, FI_READ)),
        table(&COLLECTIVES),
    ];
    // SAFETY: caller rule 1: a domain of ours; caller rule 3: a place for the object.
    unsafe {
        let ties = with(domain, |domain: &Domain| {
            domain.value.add(&bindings.endpoint);
            domain.ties()
        });
        give(FI_CLASS_EP, &FID, head, ties, bindings, context, out)
    }
}

/// Flags of a queue or a counter that name operations; FI_TRANSMIT is FI_SEND.
const OPERATIONS: u64 = FI_SEND | FI_RECV;
/// Among them: the endpoint is enabled.
const ENABLED: u64 = 1;
const ACCESSES: u64 = FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE;

unsafe extern "C" fn bind(ep: *mut Fid, other: *mut Fid, flags: u64) -> c_int {
    // SAFETY: caller rule 1: an object.
    let class = unsafe { (*other).class };
    let bind = |ep: &Ep| match class {
        // SAFETY: its class says that it is one of ours.
        FI_CLASS_AV => bind_addresses(ep, unsafe { &*other.cast::<Av>() }),
        // SAFETY: its class says that it is one of ours.
        FI_CLASS_CQ => bind_queue(ep, unsafe { &*other.cast::<Cq>() }, flags),
        // SAFETY: its class says that it is one of ours.
        FI_CLASS_CNTR => bind_counter(ep, unsafe { &*other.cast::<Cntr>() }, flags),
        FI_CLASS_EQ => {
            // SAFETY: its class says that it is one of ours.
            ep.uses(unsafe { &(*other.cast::<Eq>()).users });
            Ok(())
        }
        _ => Err(FI_ENOSYS),
    };
    // SAFETY: caller rule 1: an endpoint of ours.
    unsafe { with(ep, bind) }.map_or_else(|error| -error, |()| 0)
}

/// Of one vector the numbers of addresses are meant: there is no second one (fi_endpoint(3)).
fn bind_addresses(ep: &Ep, av: &Av) -> Result<(), c_int> {
    ep.check_domain(av)?;
    if ep.value.has_addresses.replace(true) {
        return Err(FI_EINVAL);
    }
    av.value.bind(&ep.value.endpoint);
    ep.uses(&av.users);
    Ok(())
}

fn bind_queue(ep: &Ep, cq: &Cq, flags: u64) -> Result<(), c_int> {
    ep.check_domain(cq)?;
    if flags & !(OPERATIONS | FI_SELECTIVE_COMPLETION) != 0 || flags & OPERATIONS == 0 {
        return Err(FI_EBADFLAGS);
    }
    let reports = &mut ep.value.endpoint.borrow_mut().core.reports;
    let has_one = |which, queue: &Option<_>| flags & which != 0 && queue.is_some();
    if has_one(FI_SEND, &reports.send_queue) || has_one(FI_RECV, &reports.receive_queue) {
        return Err(FI_EINVAL);
    }
    let select = flags & FI_SELECTIVE_COMPLETION != 0;
    if flags & FI_SEND != 0 {
        reports.send_queue = Some(Rc::clone(&cq.value));
        ep.value.select_sends.set(select);
    }
    if flags & FI_RECV != 0 {
        reports.receive_queue = Some(Rc::clone(&cq.value));
        ep.value.select_receives.set(select);
    }
    let ready = ep.value.ready.get();
    ep.value.ready.set(if ready == 0 { 0 } else { ready | reports.queues() });
    cq.value.bound.add(&ep.value.endpoint);
    ep.uses(&cq.users);
    Ok(())
}

fn bind_counter(ep: &Ep, cntr: &Cntr, flags: u64) -> Result<(), c_int> {
    ep.check_domain(cntr)?;
    if flags & !(OPERATIONS | ACCESSES) != 0 || flags == 0 {
        return Err(FI_EBADFLAGS);
    }
    let counter = &cntr.value;
    let endpoint = &mut ep.value.endpoint.borrow_mut();
    let reports = &mut endpoint.core.reports;
    if flags & reports.counted() != 0 {
        return Err(FI_EINVAL);
    }
    counter.bound.add(&ep.value.endpoint);
    if flags & (FI_REMOTE_READ | FI_REMOTE_WRITE) != 0 {
        endpoint.count_accesses();
    }
    let reports = &mut endpoint.core.reports;
    if flags & ACCESSES != 0 {
        reports.access_counters.push((flags & ACCESSES, Rc::clone(counter)));
    }
    if flags & FI_SEND != 0 {
        reports.send_counters.push(Rc::clone(counter));
    }
    if flags & FI_RECV != 0 {
        reports.receive_counters.push(Rc::clone(counter));
    }
    ep.uses(&cntr.users);
    Ok(())
}

unsafe extern "C" fn control(ep: *mut Fid, command: c_int, argument: *mut c_void) -> c_int {
    let control = |ep: &Ep| match command {
        FI_ENABLE => enable(ep),
        // SAFETY: caller rule 3: a place for flags.
        FI_GETOPSFLAG => ep.value.flags_of(unsafe { *argument.cast::<u64>() }).map(|(flags, ..)| {
            // SAFETY: caller rule 3: a place for flags.
            unsafe { *argument.cast() = flags.get() };
        }),
        // SAFETY: caller rule 3: flags.
        FI_SETOPSFLAG => ep.value.set_flags(unsafe { *argument.cast::<u64>() }),
        // SAFETY: caller rule 3: a valid structure, and a place for the object.
        FI_ALIAS => unsafe { alias(ep, &*argument.cast()) },
        _ => Err(FI_ENOSYS),
    };
    // SAFETY: caller rule 1: an endpoint of ours.
    unsafe { with(ep, control) }.map_or_else(|error| -error, |()| 0)
}

fn enable(ep: &Ep) -> Result<(), c_int> {
    let endpoint = ep.value.endpoint.borrow();
    let reports = &endpoint.core.reports;
    if !ep.value.has_addresses.get() {
        return Err(FI_ENOAV);
    }
    // Also an operation that wants no completion may fail: there is a queue for its error, whatever counts it
    // (fi_endpoint(3)). An endpoint that also sends may have none for receives: then it begins none.
    let (sends, receives) = ep.value.needs;
    let has = (reports.send_queue.is_some(), reports.receive_queue.is_some());
    if sends && !has.0 || receives && !sends && !has.1 {
        return Err(FI_ENOCQ);
    }
    // Peers access memory only while somebody has the endpoint make progress.
    let counts = [&reports.send_counters, &reports.receive_counters].iter().any(|all| !all.is_empty());
    if !has.0 && !has.1 && !counts && reports.access_counters.is_empty() {
        return Err(FI_ENOCQ);
    }
    ep.value.ready.set(ENABLED | reports.queues());
    Ok(())
}

unsafe extern "C" fn getname(ep: *mut Fid, out: *mut u8, len: *mut usize) -> c_int {
    let getname = |ep: &Ep| {
        let bytes = ep.value.endpoint.borrow().name().to_bytes();
        // SAFETY: caller rule 3: `*len` bytes.
        unsafe {
            let room = *len;
            *len = bytes.len();
            if room > 0 && !out.is_null() {
                std::ptr::copy_nonoverlapping(bytes.as_ptr(), out, bytes.len().min(room));
            }
            if room < bytes.len() { -FI_ETOOSMALL } else { 0 }
        }
    };
    // SAFETY: caller rule 1: an endpoint of ours.
    unsafe { with(ep, getname) }
}

unsafe extern "C" fn cancel(ep: *mut Fid, context: *mut c_void) -> isize {
    // SAFETY: caller rule 1: an endpoint of ours.
    unsafe { with(ep, |ep: &Ep| ep.value.endpoint.borrow_mut().core.cancel(context)) };
    0
}

unsafe extern "C" fn getopt(
    ep: *mut Fid,
    level: c_int,
    name: c_int,
    out: *mut usize,
    len: *mut usize,
) -> c_int {
    if level != FI_OPT_ENDPOINT || name != FI_OPT_MIN_MULTI_RECV {
        return -FI_ENOPROTOOPT;
    }
    // SAFETY: caller rule 1: an endpoint of ours; caller rule 3: a length, and a value of it.
    unsafe {
        if *len < size_of::<usize>() {
            return -FI_ETOOSMALL;
        }
        *len = size_of::<usize>();
        *out = with(ep, |ep: &Ep| ep.value.endpoint.borrow().core.min_multi_recv);
    }
    0
}

unsafe extern "C" fn setopt(
    ep: *mut Fid,
    level: c_int,
    name: c_int,
    value: *const usize,
    len: usize,
) -> c_int {
    if level != FI_OPT_ENDPOINT || name != FI_OPT_MIN_MULTI_RECV {
        return -FI_ENOPROTOOPT;
    }
    if len != size_of::<usize>() {
        return -FI_EINVAL;
    }
    // SAFETY: caller rule 1: an endpoint of ours; caller rule 3: a value.
    unsafe {
        let value = *value;
        with(ep, |ep: &Ep| ep.value.endpoint.borrow_mut().core.min_multi_recv = value);
    }
    0
}

/// The answer to an operation.
#[inline(always)]
pub fn answer(result: Result<(), i32>) -> isize {
    match result {
        Ok(()) => 0,
        Err(error) => -(error as isize),
    }
}

/// Flags of a call that ask for what the provider does not offer, or for FI_FENCE, which an endpoint has on request:
/// whoever relies on it is to know.
const REFUSED: u64 = FI_TRIGGER | FI_FENCE | FI_COMMIT_COMPLETE | FI_MULTICAST | FI_AUTH_KEY;

impl Bindings {
    /// Checks that operations may be called whose errors go to the queue of `which`, FI_SEND or FI_RECV: an endpoint is
    /// enabled before (fi_endpoint(3)), with a queue for them; and with the flags of this call, if it has some.
    ///
    /// # Errors
    ///
    /// FI_EOPBADSTATE, FI_ENOCQ, FI_EBADFLAGS.
    #[inline(always)]
    pub fn check_call(&self, which: u64, flags: Option<u64>) -> Result<(), i32> {
        if self.ready.get() & which == 0 {
            return Err(if self.ready.get() == 0 { FI_EOPBADSTATE } else { FI_ENOCQ });
        }
        let refused = if which == FI_SEND { self.refused } else { REFUSED };
        if flags.is_some_and(|flags| flags & refused != 0) { Err(FI_EBADFLAGS) } else { Ok(()) }
    }
}
