//! Endpoints, as the interface sees them: binding, and messages with and without tags.

use crate::api::*;
use crate::av::Av;
use crate::cntr::Cntr;
use crate::core::EAGER_LIMIT;
use crate::cq::Cq;
use crate::domain::Domain;
use crate::endpoint::Endpoint;
use crate::info::IOV_LIMIT;
use crate::object::{Object, Tables, close, give, locked, table, with};
use crate::operation::{Receive, Send, Several};
use crate::rma;
use crate::service::Service;
use crate::spans::Spans;
use libc::{c_int, c_void, iovec};
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;

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
    enabled: Cell<bool>,
}

impl Bindings {
    /// Whether operations may be called: an endpoint is enabled before (fi_endpoint(3)).
    ///
    /// # Errors
    ///
    /// FI_EOPBADSTATE.
    #[inline(always)]
    pub fn check_enabled(&self) -> Result<(), i32> {
        if self.enabled.get() { Ok(()) } else { Err(FI_EOPBADSTATE) }
    }
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
static COLLECTIVE: Table<8> = Table::new([NONE; 8]);

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
            info.caps,
            info.tx_attr.as_ref().map_or(0, |tx| tx.op_flags),
            info.rx_attr.as_ref().map_or(0, |rx| rx.op_flags),
        )
    };
    // SAFETY: caller rule 3: a valid structure, whose source address has as many bytes as it says.
    let source = unsafe { crate::info::bytes_of((*info).src_addr, (*info).src_addrlen) };
    // Only the name of a service can be had again.
    let Some(service) = source.map_or(Some(Service::default()), Service::parse) else {
        return -FI_EADDRNOTAVAIL;
    };
    let mut endpoint = match Endpoint::with_network(&service) {
        Ok(endpoint) => endpoint,
        Err(error) => return -error,
    };
    endpoint.core.directed = caps & FI_DIRECTED_RECV != 0;
    let bindings = Bindings {
        endpoint: Rc::new(RefCell::new(endpoint)),
        send_flags: Cell::new(send_flags),
        receive_flags: Cell::new(receive_flags),
        select_sends: Cell::new(false),
        select_receives: Cell::new(false),
        has_addresses: Cell::new(false),
        enabled: Cell::new(false),
    };
    let head = [
        table(&OPS),
        table(&CM),
        table(&MESSAGES),
        table(&rma::RMA),
        table(&TAGGED),
        table(&rma::ATOMIC),
        table(&COLLECTIVE),
    ];
    // SAFETY: caller rule 1: a domain of ours; caller rule 3: a place for the object.
    unsafe {
        let lock = with(domain, |domain: &Domain| {
            domain.value.add(&bindings.endpoint);
            Arc::clone(&domain.lock)
        });
        give(FI_CLASS_EP, &FID, head, &lock, bindings, context, out)
    }
}

unsafe extern "C" fn bind(ep: *mut Fid, other: *mut Fid, flags: u64) -> c_int {
    // SAFETY: caller rule 1: an object of the same domain.
    let class = unsafe { (*other).class };
    let bind = |ep: &Ep| {
        let endpoint = &ep.value.endpoint;
        match class {
            FI_CLASS_AV => {
                // SAFETY: its class says that it is one of ours; the lock of the domain is held.
                unsafe { &*other.cast::<Av>() }.value.bind(endpoint);
                ep.value.has_addresses.set(true);
            }
            FI_CLASS_CQ => {
                // SAFETY: its class says that it is one of ours; the lock of the domain is held.
                let queue = &unsafe { &*other.cast::<Cq>() }.value;
                queue.bound.add(endpoint);
                let select = flags & FI_SELECTIVE_COMPLETION != 0;
                let reports = &mut endpoint.borrow_mut().core.reports;
                if flags & FI_SEND != 0 {
                    reports.send_queue = Some(Rc::clone(queue));
                    ep.value.select_sends.set(select);
                }
                if flags & FI_RECV != 0 {
                    reports.receive_queue = Some(Rc::clone(queue));
                    ep.value.select_receives.set(select);
                }
            }
            FI_CLASS_CNTR => {
                // SAFETY: its class says that it is one of ours; the lock of the domain is held.
                let counter = &unsafe { &*other.cast::<Cntr>() }.value;
                counter.bound.add(endpoint);
                if flags & (FI_REMOTE_READ | FI_REMOTE_WRITE) != 0 {
                    endpoint.borrow_mut().count_accesses();
                }
                let reports = &mut endpoint.borrow_mut().core.reports;
                let accesses = flags & (FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE);
                if accesses != 0 {
                    reports.access_counters.push((accesses, Rc::clone(counter)));
                }
                if flags & FI_SEND != 0 {
                    reports.send_counters.push(Rc::clone(counter));
                }
                if flags & FI_RECV != 0 {
                    reports.receive_counters.push(Rc::clone(counter));
                }
            }
            FI_CLASS_EQ => {}
            _ => return -FI_ENOSYS,
        }
        0
    };
    // SAFETY: caller rule 1: an endpoint of ours.
    unsafe { with(ep, bind) }
}

unsafe extern "C" fn control(ep: *mut Fid, command: c_int, _: *mut c_void) -> c_int {
    let enable = |ep: &Ep| {
        let endpoint = ep.value.endpoint.borrow();
        let reports = &endpoint.core.reports;
        if !ep.value.has_addresses.get() {
            return -FI_ENOAV;
        }
        let sends = reports.send_queue.is_some()
            || !reports.send_counters.is_empty()
            || !reports.access_counters.is_empty();
        let receives = reports.receive_queue.is_some() || !reports.receive_counters.is_empty();
        if !sends && !receives {
            return -FI_ENOCQ;
        }
        ep.value.enabled.set(true);
        0
    };
    match command {
        // SAFETY: caller rule 1: an endpoint of ours.
        FI_ENABLE => unsafe { with(ep, enable) },
        _ => -FI_ENOSYS,
    }
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

/// # Safety
///
/// `ep` is an endpoint of ours; the buffers are as [`Spans`] wants them.
#[inline(always)]
unsafe fn send_to(ep: *mut Fid, spans: Spans, to: To) -> isize {
    // SAFETY: an endpoint of ours, as the caller promises.
    let (ep, _locked) = unsafe { locked::<Tables<7>, Bindings>(ep) };
    if let Err(error) = ep.value.check_enabled() {
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
    if let Err(error) = ep.value.check_enabled() {
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

    pub unsafe extern "C" fn recv(ep: *mut Fid, buf: P, len: usize, _: C, address: u64, context: C) -> isize {
        // SAFETY: caller rule 1: `ep` is an endpoint of ours; caller rule 2 for the buffer.
        unsafe { receive_from(ep, Spans::one(buf, len), From { address, tag: None, context, flags: None }) }
    }
    pub unsafe extern "C" fn recvv(ep: *mut Fid, iov: *const iovec, _: *mut C, count: usize, address: u64, context: C) -> isize {
        // SAFETY: caller rule 1: `ep` is an endpoint of ours; caller rule 2 for the pieces, caller rule 3 for their array.
        unsafe { receive_from(ep, Spans::of(iov, count), From { address, tag: None, context, flags: None }) }
    }
    pub unsafe extern "C" fn recvmsg(ep: *mut Fid, msg: *const Msg, flags: u64) -> isize {
        // SAFETY: caller rule 1: `ep` is an endpoint of ours; caller rule 2 for the pieces, caller rule 3 for the message and its arrays.
        unsafe {
            let msg = &*msg;
            if msg.iov_count > IOV_LIMIT { return -(FI_EINVAL as isize); }
            receive_from(ep, Spans::of(msg.iov, msg.iov_count), From { address: msg.addr, tag: None, context: msg.context, flags: Some(flags) })
        }
    }
    pub unsafe extern "C" fn send(ep: *mut Fid, buf: P, len: usize, _: C, address: u64, context: C) -> isize {
        // SAFETY: caller rule 1: `ep` is an endpoint of ours; caller rule 2 for the buffer.
        unsafe { send_to(ep, Spans::one(buf, len), To { address, tag: None, data: None, context, flags: None, silent: false }) }
    }
    pub unsafe extern "C" fn sendv(ep: *mut Fid, iov: *const iovec, _: *mut C, count: usize, address: u64, context: C) -> isize {
        // SAFETY: caller rule 1: `ep` is an endpoint of ours; caller rule 2 for the pieces, caller rule 3 for their array.
        unsafe { send_to(ep, Spans::of(iov, count), To { address, tag: None, data: None, context, flags: None, silent: false }) }
    }
    pub unsafe extern "C" fn sendmsg(ep: *mut Fid, msg: *const Msg, flags: u64) -> isize {
        // SAFETY: caller rule 1: `ep` is an endpoint of ours; caller rule 2 for the pieces, caller rule 3 for the message and its arrays.
        unsafe {
            let msg = &*msg;
            if msg.iov_count > IOV_LIMIT { return -(FI_EINVAL as isize); }
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
        // SAFETY: caller rule 1: `ep` is an endpoint of ours; caller rule 2 for the pieces, caller rule 3 for their array.
        unsafe { receive_from(ep, Spans::of(iov, count), From { address, tag: Some((tag, ignore)), context, flags: None }) }
    }
    pub unsafe extern "C" fn trecvmsg(ep: *mut Fid, msg: *const MsgTagged, flags: u64) -> isize {
        // SAFETY: caller rule 1: `ep` is an endpoint of ours; caller rule 2 for the pieces, caller rule 3 for the message and its arrays.
        unsafe {
            let msg = &*msg;
            if msg.iov_count > IOV_LIMIT { return -(FI_EINVAL as isize); }
            receive_from(ep, Spans::of(msg.iov, msg.iov_count), From { address: msg.addr, tag: Some((msg.tag, msg.ignore)), context: msg.context, flags: Some(flags) })
        }
    }
    pub unsafe extern "C" fn tsend(ep: *mut Fid, buf: P, len: usize, _: C, address: u64, tag: u64, context: C) -> isize {
        // SAFETY: caller rule 1: `ep` is an endpoint of ours; caller rule 2 for the buffer.
        unsafe { send_to(ep, Spans::one(buf, len), To { address, tag: Some(tag), data: None, context, flags: None, silent: false }) }
    }
    pub unsafe extern "C" fn tsendv(ep: *mut Fid, iov: *const iovec, _: *mut C, count: usize, address: u64, tag: u64, context: C) -> isize {
        // SAFETY: caller rule 1: `ep` is an endpoint of ours; caller rule 2 for the pieces, caller rule 3 for their array.
        unsafe { send_to(ep, Spans::of(iov, count), To { address, tag: Some(tag), data: None, context, flags: None, silent: false }) }
    }
    pub unsafe extern "C" fn tsendmsg(ep: *mut Fid, msg: *const MsgTagged, flags: u64) -> isize {
        // SAFETY: caller rule 1: `ep` is an endpoint of ours; caller rule 2 for the pieces, caller rule 3 for the message and its arrays.
        unsafe {
            let msg = &*msg;
            if msg.iov_count > IOV_LIMIT { return -(FI_EINVAL as isize); }
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
