//! Endpoints, as the interface sees them: binding, and messages with and without tags.

use crate::api::*;
use crate::names::service::Service;
use crate::objects::av::Av;
use crate::objects::cntr::Cntr;
use crate::objects::cq::Cq;
use crate::objects::domain::Domain;
use crate::objects::eq::Eq;
use crate::objects::info::{IOV_LIMIT, RX_FLAGS, TX_FLAGS};
use crate::objects::object::{Object, Tables, close, give, locked, table, with};
use crate::objects::rma;
use crate::operands::spans::Spans;
use crate::progress::endpoint::Endpoint;
use crate::protocol::core::EAGER_LIMIT;
use crate::protocol::operation::{Receive, Send, Several};
use libc::{c_int, c_void, iovec};
use std::cell::{Cell, RefCell};
use std::rc::Rc;

/// An endpoint and how it is bound.
#[derive(Debug)]
pub struct Bindings {
    pub endpoint: Rc<RefCell<Endpoint>>,
    /// The flags of operations that are not called with flags.
    pub send_flags: Cell<u64>,
    receive_flags: Cell<u64>,
    /// Only operations that ask for it report to the queue.
    pub select_sends: Cell<bool>,
    select_receives: Cell<bool>,
    has_addresses: Cell<bool>,
    /// Whether it is enabled ([`ENABLED`]), and for which operations a queue is bound then.
    ready: Cell<u64>,
    /// Whether its operations end in a queue for sends, and in one for receives.
    needs: (bool, bool),
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
static MESSAGES: Table<9> = Table::new([
    recv as *const (),
    recvv as *const (),
    recvmsg as *const (),
    send as *const (),
    sendv as *const (),
    sendmsg as *const (),
    inject as *const (),
    senddata as *const (),
    injectdata as *const (),
]);
static TAGGED: Table<9> = Table::new([
    trecv as *const (),
    trecvv as *const (),
    trecvmsg as *const (),
    tsend as *const (),
    tsendv as *const (),
    tsendmsg as *const (),
    tinject as *const (),
    tsenddata as *const (),
    tinjectdata as *const (),
]);
/// What an endpoint has in place of functions that it was not opened for.
static NOTHING: Table<13> = Table::new([NONE; 13]);

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
    let (caps, send_flags, receive_flags) = unsafe {
        let info = &*info;
        (
            crate::objects::info::granted(info.caps),
            info.tx_attr.as_ref().map_or(0, |tx| tx.op_flags),
            info.rx_attr.as_ref().map_or(0, |rx| rx.op_flags),
        )
    };
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
    endpoint.core.directed = caps & FI_DIRECTED_RECV != 0;
    let is_target = caps & (FI_RMA | FI_ATOMIC) != 0;
    endpoint.core.serves = if is_target { caps & (FI_REMOTE_READ | FI_REMOTE_WRITE) } else { 0 };
    let bindings = Bindings {
        endpoint: Rc::new(RefCell::new(endpoint)),
        send_flags: Cell::new(send_flags),
        receive_flags: Cell::new(receive_flags),
        select_sends: Cell::new(false),
        select_receives: Cell::new(false),
        has_addresses: Cell::new(false),
        ready: Cell::new(0),
        needs: (starts(caps), caps & (FI_MSG | FI_TAGGED) != 0 && caps & FI_RECV != 0),
    };
    // Nothing but what was asked for (fi_getinfo(3)).
    let asked = |which, table| if caps & which != 0 { table } else { self::table(&NOTHING) };
    let head = [
        table(&OPS),
        table(&CM),
        asked(FI_MSG, table(&MESSAGES)),
        asked(FI_RMA, table(&rma::RMA)),
        asked(FI_TAGGED, table(&TAGGED)),
        asked(FI_ATOMIC, table(&rma::ATOMIC)),
        table(&NOTHING),
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

/// Whether an endpoint with these capabilities sends messages or begins accesses.
fn starts(caps: u64) -> bool {
    let sends = caps & (FI_MSG | FI_TAGGED) != 0 && caps & FI_SEND != 0;
    sends || caps & (FI_RMA | FI_ATOMIC) != 0 && caps & (FI_READ | FI_WRITE) != 0
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
    counter.bound.add(&ep.value.endpoint);
    let endpoint = &mut ep.value.endpoint.borrow_mut();
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
        FI_GETOPSFLAG => flags_of(ep, unsafe { *argument.cast::<u64>() }).map(|(flags, ..)| {
            // SAFETY: the same place.
            unsafe { *argument.cast() = flags.get() };
        }),
        FI_SETOPSFLAG => {
            // SAFETY: caller rule 3: flags.
            let asked = unsafe { *argument.cast::<u64>() };
            flags_of(ep, asked).and_then(|(flags, which, known)| {
                let new = asked & !which;
                if new & !known != 0 {
                    return Err(FI_EBADFLAGS);
                }
                flags.set(new);
                Ok(())
            })
        }
        _ => Err(FI_ENOSYS),
    };
    // SAFETY: caller rule 1: an endpoint of ours.
    unsafe { with(ep, control) }.map_or_else(|error| -error, |()| 0)
}

/// The flags of operations that are called without flags, of those that send (FI_TRANSMIT) or those that receive
/// (FI_RECV); what names them, and which flags there are.
fn flags_of(ep: &Ep, asked: u64) -> Result<(&Cell<u64>, u64, u64), c_int> {
    match asked & OPERATIONS {
        FI_SEND => Ok((&ep.value.send_flags, FI_SEND, TX_FLAGS)),
        FI_RECV => Ok((&ep.value.receive_flags, FI_RECV, RX_FLAGS)),
        _ => Err(FI_EINVAL),
    }
}

fn enable(ep: &Ep) -> Result<(), c_int> {
    let endpoint = ep.value.endpoint.borrow();
    let reports = &endpoint.core.reports;
    if !ep.value.has_addresses.get() {
        return Err(FI_ENOAV);
    }
    // Also an operation that wants no completion may fail: there is a queue for its error, whatever counts it (fi_endpoint(3)). An endpoint that also sends may have
    // none for receives: then it begins none.
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

/// What a send has besides its buffers.
struct To {
    address: u64,
    tag: Option<u64>,
    data: Option<u64>,
    context: *mut c_void,
    /// `None`: the endpoint's.
    flags: Option<u64>,
    /// fi_inject: no completion.
    silent: bool,
}

const DELIVERY: u64 = FI_DELIVERY_COMPLETE | FI_MATCH_COMPLETE;

/// Flags of a call that ask for what the provider does not offer: whoever relies on it is to know.
const REFUSED: u64 = FI_TRIGGER | FI_FENCE | FI_COMMIT_COMPLETE;

impl Bindings {
    /// Checks that operations may be called whose errors go to the queue of `which`, FI_SEND or FI_RECV: an endpoint is enabled before (fi_endpoint(3)), with a queue
    /// for them; and with the flags of this call, if it has some.
    ///
    /// # Errors
    ///
    /// FI_EOPBADSTATE, FI_ENOCQ, FI_EBADFLAGS.
    #[inline(always)]
    pub fn check_call(&self, which: u64, flags: Option<u64>) -> Result<(), i32> {
        if self.ready.get() & which == 0 {
            return Err(if self.ready.get() == 0 { FI_EOPBADSTATE } else { FI_ENOCQ });
        }
        if flags.is_some_and(|flags| flags & REFUSED != 0) { Err(FI_EBADFLAGS) } else { Ok(()) }
    }
}

/// # Safety
///
/// `ep` is an endpoint of ours; the buffers are as [`Spans`] wants them.
#[inline(always)]
unsafe fn send_to(ep: *mut Fid, spans: Spans, to: To) -> isize {
    // SAFETY: an endpoint of ours, as the caller promises.
    let (ep, _locked) = unsafe { locked::<Tables<7>, Bindings>(ep) };
    if let Err(error) = ep.value.check_call(FI_SEND, to.flags) {
        return answer(Err(error));
    }
    let flags = to.flags.unwrap_or_else(|| ep.value.send_flags.get());
    let completion = (!ep.value.select_sends.get() || flags & FI_COMPLETION != 0) && !to.silent;
    let delivery = flags & DELIVERY != 0 && !to.silent;
    let core = &mut ep.value.endpoint.borrow_mut().core;
    let To { address, tag, data, context, silent, .. } = to;
    if spans.len() <= EAGER_LIMIT && !delivery {
        return answer(core.send_eager(address, tag, data, &spans, context, completion));
    }
    let gives_back = silent || flags & FI_INJECT != 0;
    if gives_back && spans.len() > EAGER_LIMIT {
        return -(FI_EMSGSIZE as isize);
    }
    let matched = flags & FI_MATCH_COMPLETE != 0;
    let mut send = Send { spans, to: address, tag, data, context, completion, delivery, matched, own: None };
    if gives_back {
        send.keep_bytes();
    }
    answer(core.announce(send))
}

/// What a receive has besides its buffers.
struct From {
    address: u64,
    /// Tag, and the bits of it to ignore.
    tag: Option<(u64, u64)>,
    context: *mut c_void,
    /// `None`: the endpoint's.
    flags: Option<u64>,
}

/// # Safety
///
/// As [`send_to`].
#[inline(always)]
unsafe fn receive_from(ep: *mut Fid, spans: Spans, from: From) -> isize {
    // SAFETY: an endpoint of ours, as the caller promises.
    let (ep, _locked) = unsafe { locked::<Tables<7>, Bindings>(ep) };
    if let Err(error) = ep.value.check_call(FI_RECV, from.flags) {
        return answer(Err(error));
    }
    let flags = from.flags.unwrap_or_else(|| ep.value.receive_flags.get());
    let (tag, ignore) = from.tag.unwrap_or((0, u64::MAX));
    let endpoint = &mut *ep.value.endpoint.borrow_mut();
    let pattern = match endpoint.core.pattern(from.address, tag, ignore) {
        Ok(pattern) => pattern,
        Err(error) => return -(error as isize),
    };
    let tagged = from.tag.is_some();
    let several = (!tagged && flags & FI_MULTI_RECV != 0).then(Several::default);
    // Messages lie in one buffer, one behind the other.
    if several.is_some() && !spans.is_single() {
        return -(FI_EINVAL as isize);
    }
    let completion = !ep.value.select_receives.get() || flags & FI_COMPLETION != 0;
    let receive = Receive { spans, context: from.context, pattern, tagged, completion, several };
    // In a call without flags these bits have no such meaning.
    let special = from.flags.unwrap_or(0) & (FI_PEEK | FI_CLAIM | FI_DISCARD);
    if special & FI_PEEK != 0 {
        // What has arrived is to be found.
        endpoint.progress();
        endpoint.core.peek(tagged, &pattern, from.context, special);
        return 0;
    }
    if special != 0 {
        return answer(endpoint.core.take_claimed(receive, special));
    }
    endpoint.core.receive(receive);
    0
}

// The functions of the interface, whose callers keep the caller rules of `api` (fi_msg(3), fi_tagged(3)).

#[rustfmt::skip]
mod functions {
    use super::*;
    type P = *const c_void;
    type C = *mut c_void;
    const INVALID: isize = -(FI_EINVAL as isize);

    pub unsafe extern "C" fn recv(ep: *mut Fid, buf: P, len: usize, _: C, address: u64, context: C) -> isize {
        // SAFETY: caller rule 1: `ep` is an endpoint of ours; caller rule 2 for the buffer.
        unsafe { receive_from(ep, Spans::one(buf, len), From { address, tag: None, context, flags: None }) }
    }
    pub unsafe extern "C" fn recvv(ep: *mut Fid, iov: *const iovec, _: *mut C, count: usize, address: u64, context: C) -> isize {
        if count > IOV_LIMIT { return INVALID; }
        // SAFETY: caller rule 1: `ep` is an endpoint of ours; caller rule 2 for the pieces, caller rule 3 for their array.
        unsafe { receive_from(ep, Spans::of(iov, count), From { address, tag: None, context, flags: None }) }
    }
    pub unsafe extern "C" fn recvmsg(ep: *mut Fid, msg: *const Msg, flags: u64) -> isize {
        // SAFETY: caller rule 1: `ep` is an endpoint of ours; caller rule 2 for the pieces, caller rule 3 for the message and its arrays.
        unsafe {
            let msg = &*msg;
            if msg.iov_count > IOV_LIMIT { return INVALID; }
            receive_from(ep, Spans::of(msg.iov, msg.iov_count), From { address: msg.addr, tag: None, context: msg.context, flags: Some(flags) })
        }
    }
    pub unsafe extern "C" fn send(ep: *mut Fid, buf: P, len: usize, _: C, address: u64, context: C) -> isize {
        // SAFETY: caller rule 1: `ep` is an endpoint of ours; caller rule 2 for the buffer.
        unsafe { send_to(ep, Spans::one(buf, len), To { address, tag: None, data: None, context, flags: None, silent: false }) }
    }
    pub unsafe extern "C" fn sendv(ep: *mut Fid, iov: *const iovec, _: *mut C, count: usize, address: u64, context: C) -> isize {
        if count > IOV_LIMIT { return INVALID; }
        // SAFETY: caller rule 1: `ep` is an endpoint of ours; caller rule 2 for the pieces, caller rule 3 for their array.
        unsafe { send_to(ep, Spans::of(iov, count), To { address, tag: None, data: None, context, flags: None, silent: false }) }
    }
    pub unsafe extern "C" fn sendmsg(ep: *mut Fid, msg: *const Msg, flags: u64) -> isize {
        // SAFETY: caller rule 1: `ep` is an endpoint of ours; caller rule 2 for the pieces, caller rule 3 for the message and its arrays.
        unsafe {
            let msg = &*msg;
            if msg.iov_count > IOV_LIMIT { return INVALID; }
            let data = (flags & FI_REMOTE_CQ_DATA != 0).then_some(msg.data);
            send_to(ep, Spans::of(msg.iov, msg.iov_count), To { address: msg.addr, tag: None, data, context: msg.context, flags: Some(flags), silent: false })
        }
    }
    pub unsafe extern "C" fn inject(ep: *mut Fid, buf: P, len: usize, address: u64) -> isize {
        // SAFETY: caller rule 1: `ep` is an endpoint of ours; caller rule 2 for the buffer.
        unsafe { send_to(ep, Spans::one(buf, len), To { address, tag: None, data: None, context: std::ptr::null_mut(), flags: None, silent: true }) }
    }
    pub unsafe extern "C" fn senddata(ep: *mut Fid, buf: P, len: usize, _: C, data: u64, address: u64, context: C) -> isize {
        // SAFETY: caller rule 1: `ep` is an endpoint of ours; caller rule 2 for the buffer.
        unsafe { send_to(ep, Spans::one(buf, len), To { address, tag: None, data: Some(data), context, flags: None, silent: false }) }
    }
    pub unsafe extern "C" fn injectdata(ep: *mut Fid, buf: P, len: usize, data: u64, address: u64) -> isize {
        // SAFETY: caller rule 1: `ep` is an endpoint of ours; caller rule 2 for the buffer.
        unsafe { send_to(ep, Spans::one(buf, len), To { address, tag: None, data: Some(data), context: std::ptr::null_mut(), flags: None, silent: true }) }
    }
    pub unsafe extern "C" fn trecv(ep: *mut Fid, buf: P, len: usize, _: C, address: u64, tag: u64, ignore: u64, context: C) -> isize {
        // SAFETY: caller rule 1: `ep` is an endpoint of ours; caller rule 2 for the buffer.
        unsafe { receive_from(ep, Spans::one(buf, len), From { address, tag: Some((tag, ignore)), context, flags: None }) }
    }
    pub unsafe extern "C" fn trecvv(ep: *mut Fid, iov: *const iovec, _: *mut C, count: usize, address: u64, tag: u64, ignore: u64, context: C) -> isize {
        if count > IOV_LIMIT { return INVALID; }
        // SAFETY: caller rule 1: `ep` is an endpoint of ours; caller rule 2 for the pieces, caller rule 3 for their array.
        unsafe { receive_from(ep, Spans::of(iov, count), From { address, tag: Some((tag, ignore)), context, flags: None }) }
    }
    pub unsafe extern "C" fn trecvmsg(ep: *mut Fid, msg: *const MsgTagged, flags: u64) -> isize {
        // SAFETY: caller rule 1: `ep` is an endpoint of ours; caller rule 2 for the pieces, caller rule 3 for the message and its arrays.
        unsafe {
            let msg = &*msg;
            if msg.iov_count > IOV_LIMIT { return INVALID; }
            receive_from(ep, Spans::of(msg.iov, msg.iov_count), From { address: msg.addr, tag: Some((msg.tag, msg.ignore)), context: msg.context, flags: Some(flags) })
        }
    }
    pub unsafe extern "C" fn tsend(ep: *mut Fid, buf: P, len: usize, _: C, address: u64, tag: u64, context: C) -> isize {
        // SAFETY: caller rule 1: `ep` is an endpoint of ours; caller rule 2 for the buffer.
        unsafe { send_to(ep, Spans::one(buf, len), To { address, tag: Some(tag), data: None, context, flags: None, silent: false }) }
    }
    pub unsafe extern "C" fn tsendv(ep: *mut Fid, iov: *const iovec, _: *mut C, count: usize, address: u64, tag: u64, context: C) -> isize {
        if count > IOV_LIMIT { return INVALID; }
        // SAFETY: caller rule 1: `ep` is an endpoint of ours; caller rule 2 for the pieces, caller rule 3 for their array.
        unsafe { send_to(ep, Spans::of(iov, count), To { address, tag: Some(tag), data: None, context, flags: None, silent: false }) }
    }
    pub unsafe extern "C" fn tsendmsg(ep: *mut Fid, msg: *const MsgTagged, flags: u64) -> isize {
        // SAFETY: caller rule 1: `ep` is an endpoint of ours; caller rule 2 for the pieces, caller rule 3 for the message and its arrays.
        unsafe {
            let msg = &*msg;
            if msg.iov_count > IOV_LIMIT { return INVALID; }
            let data = (flags & FI_REMOTE_CQ_DATA != 0).then_some(msg.data);
            send_to(ep, Spans::of(msg.iov, msg.iov_count), To { address: msg.addr, tag: Some(msg.tag), data, context: msg.context, flags: Some(flags), silent: false })
        }
    }
    pub unsafe extern "C" fn tinject(ep: *mut Fid, buf: P, len: usize, address: u64, tag: u64) -> isize {
        // SAFETY: caller rule 1: `ep` is an endpoint of ours; caller rule 2 for the buffer.
        unsafe { send_to(ep, Spans::one(buf, len), To { address, tag: Some(tag), data: None, context: std::ptr::null_mut(), flags: None, silent: true }) }
    }
    pub unsafe extern "C" fn tsenddata(ep: *mut Fid, buf: P, len: usize, _: C, data: u64, address: u64, tag: u64, context: C) -> isize {
        // SAFETY: caller rule 1: `ep` is an endpoint of ours; caller rule 2 for the buffer.
        unsafe { send_to(ep, Spans::one(buf, len), To { address, tag: Some(tag), data: Some(data), context, flags: None, silent: false }) }
    }
    pub unsafe extern "C" fn tinjectdata(ep: *mut Fid, buf: P, len: usize, data: u64, address: u64, tag: u64) -> isize {
        // SAFETY: caller rule 1: `ep` is an endpoint of ours; caller rule 2 for the buffer.
        unsafe { send_to(ep, Spans::one(buf, len), To { address, tag: Some(tag), data: Some(data), context: std::ptr::null_mut(), flags: None, silent: true }) }
    }
}
use functions::*;
