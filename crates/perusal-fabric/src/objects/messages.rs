//! Messages with and without tags, as the interface sees them.

use crate::api::*;
use crate::objects::ep::{Bindings, answer};
use crate::objects::info::IOV_LIMIT;
use crate::objects::object::{Halves, Tables, locked};
use crate::operands::spans::Spans;
use crate::protocol::core::EAGER_LIMIT;
use crate::protocol::operation::{Receive, Send, Several};
use libc::{c_void, iovec};

/// `struct fi_ops_msg`: receives and sends.
pub static MESSAGES: Halves<9> = Halves::new(
    [
        recv as *const (),
        recvv as *const (),
        recvmsg as *const (),
        send as *const (),
        sendv as *const (),
        sendmsg as *const (),
        inject as *const (),
        senddata as *const (),
        injectdata as *const (),
    ],
    3,
    9,
);

/// `struct fi_ops_tagged`: receives and sends.
pub static TAGGED: Halves<9> = Halves::new(
    [
        trecv as *const (),
        trecvv as *const (),
        trecvmsg as *const (),
        tsend as *const (),
        tsendv as *const (),
        tsendmsg as *const (),
        tinject as *const (),
        tsenddata as *const (),
        tinjectdata as *const (),
    ],
    3,
    9,
);

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
    if let Err(error) = ep.value.check_call(FI_SEND, to.flags) {
        return answer(Err(error));
    }
    let flags = to.flags.unwrap_or_else(|| ep.value.send_flags.get());
    let completion = (!ep.value.select_sends.get() || flags & FI_COMPLETION != 0) && !to.silent;
    let delivery = flags & DELIVERY != 0 && !to.silent;
    let core = &mut ep.value.endpoint.borrow_mut().core;
    let To { address, tag, data, context, silent, .. } = to;
    if flags & FI_FENCE != 0 {
        let fenced = core.fence(address);
        if fenced.is_err() {
            return answer(fenced);
        }
    }
    // An operation without a context of its own has the endpoint's, should it fail (fi_endpoint(3)).
    let context = if silent { ep.fid.context } else { context };
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
    let tagged = from.tag.is_some();
    let pattern = match endpoint.core.pattern(tagged, from.address, tag, ignore) {
        Ok(pattern) => pattern,
        Err(error) => return -(error as isize),
    };
    // In a call without flags these bits have no such meaning.
    let special = from.flags.unwrap_or(0) & (FI_PEEK | FI_CLAIM | FI_DISCARD);
    let takes_several = !tagged || ep.value.tagged_several;
    if from.flags.is_some() && !takes_several && flags & FI_MULTI_RECV != 0 {
        return -(FI_EBADFLAGS as isize);
    }
    let several = (takes_several && special == 0 && flags & FI_MULTI_RECV != 0).then(Several::default);
    // Messages lie in one buffer, one behind the other.
    if several.is_some() && !spans.is_single() {
        return -(FI_EINVAL as isize);
    }
    let completion = !ep.value.select_receives.get() || flags & FI_COMPLETION != 0;
    let receive = Receive { spans, context: from.context, pattern, tagged, completion, several, trace: 0 };
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
        // SAFETY: caller rule 1: `ep` is an endpoint of ours; caller rule 2 for the pieces, caller rule 3 for their
        // array.
        unsafe { receive_from(ep, Spans::of(iov, count), From { address, tag: None, context, flags: None }) }
    }
    pub unsafe extern "C" fn recvmsg(ep: *mut Fid, msg: *const Msg, flags: u64) -> isize {
        // SAFETY: caller rule 1: `ep` is an endpoint of ours; caller rule 2 for the pieces, caller rule 3 for the
        // message and its arrays.
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
        // SAFETY: caller rule 1: `ep` is an endpoint of ours; caller rule 2 for the pieces, caller rule 3 for their
        // array.
        unsafe { send_to(ep, Spans::of(iov, count), To { address, tag: None, data: None, context, flags: None, silent: false }) }
    }
    pub unsafe extern "C" fn sendmsg(ep: *mut Fid, msg: *const Msg, flags: u64) -> isize {
        // SAFETY: caller rule 1: `ep` is an endpoint of ours; caller rule 2 for the pieces, caller rule 3 for the
        // message and its arrays.
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
        // SAFETY: caller rule 1: `ep` is an endpoint of ours; caller rule 2 for the pieces, caller rule 3 for their
        // array.
        unsafe { receive_from(ep, Spans::of(iov, count), From { address, tag: Some((tag, ignore)), context, flags: None }) }
    }
    pub unsafe extern "C" fn trecvmsg(ep: *mut Fid, msg: *const MsgTagged, flags: u64) -> isize {
        // SAFETY: caller rule 1: `ep` is an endpoint of ours; caller rule 2 for the pieces, caller rule 3 for the
        // message and its arrays.
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
        // SAFETY: caller rule 1: `ep` is an endpoint of ours; caller rule 2 for the pieces, caller rule 3 for their
        // array.
        unsafe { send_to(ep, Spans::of(iov, count), To { address, tag: Some(tag), data: None, context, flags: None, silent: false }) }
    }
    pub unsafe extern "C" fn tsendmsg(ep: *mut Fid, msg: *const MsgTagged, flags: u64) -> isize {
        // SAFETY: caller rule 1: `ep` is an endpoint of ours; caller rule 2 for the pieces, caller rule 3 for the
        // message and its arrays.
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
