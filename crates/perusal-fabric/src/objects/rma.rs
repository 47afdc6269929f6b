//! Accesses to registered memory and atomic operations, as the interface sees them.

use crate::api::*;
use crate::objects::ep::{Ep, answer};
use crate::objects::info::IOV_LIMIT;
use crate::objects::object::{Halves, with};
use crate::operands::arithmetic::{self, Family};
use crate::operands::region::Remote;
use crate::operands::spans::Spans;
use crate::protocol::access::{ATOMIC_BYTES, RMA_IOV_LIMIT};
use crate::protocol::core::{Core, EAGER_LIMIT};
use crate::protocol::operation::{Access, Atomic};
use libc::{c_int, c_void, iovec};

/// `struct fi_ops_rma`: reads and writes.
pub static RMA: Halves<9> = Halves::new(
    [
        read as *const (),
        readv as *const (),
        readmsg as *const (),
        write as *const (),
        writev as *const (),
        writemsg as *const (),
        inject as *const (),
        writedata as *const (),
        injectdata as *const (),
    ],
    3,
    9,
);
/// `struct fi_ops_atomic`: what writes alone, and what brings values back; and which operations there are.
pub static ATOMIC: Halves<13> = Halves::new(
    [
        atomic as *const (),
        atomicv as *const (),
        atomicmsg as *const (),
        inject_atomic as *const (),
        fetch as *const (),
        fetchv as *const (),
        fetchmsg as *const (),
        compare as *const (),
        comparev as *const (),
        comparemsg as *const (),
        write_valid as *const (),
        fetch_valid as *const (),
        compare_valid as *const (),
    ],
    4,
    10,
);

/// What an access has besides its buffers.
struct To<'a> {
    address: u64,
    /// The peer's memory; a length of `None` is that of the buffers.
    place: Place<'a>,
    data: Option<u64>,
    context: *mut c_void,
    /// `None`: the endpoint's.
    flags: Option<u64>,
    /// fi_inject_write, fi_inject_atomic: no completion.
    silent: bool,
}

enum Place<'a> {
    /// Address and key of as many bytes as the buffers have.
    One(u64, u64),
    Pieces(&'a [RmaIov]),
}

/// An access.
fn access(ep: &Ep, spans: Spans, to: &To<'_>, unit: usize) -> Result<Access, i32> {
    ep.value.check_call(FI_SEND, to.flags)?;
    let flags = to.flags.unwrap_or_else(|| ep.value.send_flags.get());
    let pieces = match to.place {
        Place::One(addr, key) => vec![Remote { addr, len: spans.len(), key }],
        Place::Pieces(all) => {
            let piece = |one: &RmaIov| {
                Ok(Remote { addr: one.addr, len: one.len.checked_mul(unit).ok_or(FI_EINVAL)?, key: one.key })
            };
            all.iter().map(piece).collect::<Result<_, i32>>()?
        }
    };
    let completion = (!ep.value.select_sends.get() || flags & FI_COMPLETION != 0) && !to.silent;
    let inject = to.silent || flags & FI_INJECT != 0;
    if inject && spans.len() > EAGER_LIMIT {
        return Err(FI_EMSGSIZE);
    }
    // An operation without a context of its own has the endpoint's, should it fail (fi_endpoint(3)).
    let (data, context) = (to.data, if to.silent { ep.fid.context } else { to.context });
    let fenced = flags & FI_FENCE != 0;
    if fenced {
        ep.value.endpoint.borrow().core.fence(to.address)?;
    }
    Ok(Access { spans, to: to.address, pieces, data, context, completion, inject, fenced })
}

/// # Safety
///
/// `ep` is an endpoint of ours; the buffers are as [`Spans`] wants them.
unsafe fn perform(
    ep: *mut Fid,
    spans: Spans,
    to: To<'_>,
    call: fn(&mut Core, Access) -> Result<(), i32>,
) -> isize {
    let perform = |ep: &Ep| {
        let access = access(ep, spans, &to, 1)?;
        call(&mut ep.value.endpoint.borrow_mut().core, access)
    };
    // SAFETY: an endpoint of ours, as the caller promises.
    answer(unsafe { with(ep, perform) })
}

/// The pieces of a message of the interface, or none if there are too many.
///
/// # Safety
///
/// `at` has `count` entries.
unsafe fn pieces<'a>(at: *const RmaIov, count: usize, iov_count: usize) -> Option<Place<'a>> {
    if count > RMA_IOV_LIMIT || iov_count > IOV_LIMIT || count > 0 && at.is_null() {
        return None;
    }
    // SAFETY: `at` has `count` entries, as the caller promises.
    let all = if count == 0 { &[] } else { unsafe { std::slice::from_raw_parts(at, count) } };
    Some(Place::Pieces(all))
}

/// What an atomic operation has besides.
struct Kind {
    datatype: u32,
    op: u32,
    family: Family,
    /// `struct fi_ioc`s: values to compare, and places for the old values.
    compare: (*const iovec, usize),
    result: (*const iovec, usize),
}

/// Buffers out of an array of `struct fi_ioc`, whose lengths count values of `size` bytes.
///
/// # Safety
///
/// As [`Spans::of`].
unsafe fn values(ioc: *const iovec, count: usize, size: usize) -> Result<Spans, i32> {
    if count > IOV_LIMIT {
        return Err(FI_EINVAL);
    }
    if count == 0 || ioc.is_null() {
        return Ok(Spans::none());
    }
    // SAFETY: the array has `count` entries, as the caller promises.
    let all = unsafe { std::slice::from_raw_parts(ioc, count) };
    let piece = |one: &iovec| {
        Ok(iovec { iov_base: one.iov_base, iov_len: one.iov_len.checked_mul(size).ok_or(FI_EINVAL)? })
    };
    let bytes = all.iter().map(piece).collect::<Result<Vec<_>, i32>>()?;
    // SAFETY: the list has `count` entries; each piece stays valid until the operation completes,
    // as the caller promises.
    Ok(unsafe { Spans::of(bytes.as_ptr(), count) })
}

/// # Safety
///
/// As [`perform`]; the arrays have as many entries as said.
unsafe fn perform_atomic(ep: *mut Fid, operand: (*const iovec, usize), to: To<'_>, kind: Kind) -> isize {
    let perform = |ep: &Ep| {
        let size = arithmetic::size(kind.datatype, kind.op, kind.family).ok_or(FI_EOPNOTSUPP)?;
        // SAFETY: the arrays have as many entries as said, and their pieces stay valid, as the caller promises.
        let (operand, compare, result) = unsafe {
            (
                values(operand.0, operand.1, size)?,
                values(kind.compare.0, kind.compare.1, size)?,
                values(kind.result.0, kind.result.1, size)?,
            )
        };
        let len = if kind.family == Family::Write { operand.len() } else { result.len() };
        // The target would be a receive with a tag.
        if to.flags.is_some_and(|flags| flags & FI_TAGGED != 0) {
            return Err(FI_EBADFLAGS);
        }
        let mut access = access(ep, operand, &to, size)?;
        if let Place::One(addr, key) = to.place {
            access.pieces = vec![Remote { addr, len, key }];
        }
        let Kind { datatype, op, family, .. } = kind;
        let atomic = Atomic { datatype, op, family, compare, result };
        ep.value.endpoint.borrow_mut().core.atomic(access, atomic)
    };
    // SAFETY: an endpoint of ours, as the caller promises.
    answer(unsafe { with(ep, perform) })
}

/// How many values one call takes; an error where there is no such operation.
///
/// # Safety
///
/// `count` is null or may be written to.
unsafe fn valid(datatype: u32, op: u32, family: Family, count: *mut usize) -> c_int {
    let Some(size) = arithmetic::size(datatype, op, family) else { return -FI_EOPNOTSUPP };
    if !count.is_null() {
        // SAFETY: `count` may be written to if it is not null, as the caller promises.
        unsafe { *count = ATOMIC_BYTES / size };
    }
    0
}

/// `query_atomic` of a domain.
///
/// # Safety
///
/// As fi_query_atomic(3) says.
pub unsafe extern "C" fn query_atomic(
    _: *mut Fid,
    datatype: u32,
    op: u32,
    attr: *mut AtomicAttr,
    flags: u64,
) -> c_int {
    let family = match flags {
        // Receives with a tag are no targets.
        _ if flags & FI_TAGGED != 0 => return -FI_EOPNOTSUPP,
        0 => Family::Write,
        FI_FETCH_ATOMIC => Family::Fetch,
        FI_COMPARE_ATOMIC => Family::Compare,
        _ => return -FI_EBADFLAGS,
    };
    let Some(size) = arithmetic::size(datatype, op, family) else { return -FI_EOPNOTSUPP };
    // SAFETY: caller rule 3: a place.
    unsafe { *attr = AtomicAttr { count: ATOMIC_BYTES / size, size } };
    0
}

// The functions of the interface, whose callers keep the caller rules of `api` (fi_rma(3), fi_atomic(3)).

#[rustfmt::skip]
mod functions {
    use super::*;
    type P = *const c_void;
    type C = *mut c_void;
    const INVALID: isize = -(FI_EINVAL as isize);

    fn one<'a>(address: u64, addr: u64, key: u64, context: C) -> To<'a> {
        To { address, place: Place::One(addr, key), data: None, context, flags: None, silent: false }
    }
    fn silent<'a>(address: u64, addr: u64, key: u64) -> To<'a> {
        To { silent: true, ..one(address, addr, key, std::ptr::null_mut()) }
    }

    pub unsafe extern "C" fn read(ep: *mut Fid, buf: C, len: usize, _: C, address: u64, addr: u64, key: u64, context: C) -> isize {
        // SAFETY: caller rule 1: `ep` is an endpoint of ours; caller rule 2 for the buffer.
        unsafe { perform(ep, Spans::one(buf, len), one(address, addr, key, context), Core::read) }
    }
    pub unsafe extern "C" fn readv(ep: *mut Fid, iov: *const iovec, _: *mut C, count: usize, address: u64, addr: u64, key: u64, context: C) -> isize {
        if count > IOV_LIMIT { return INVALID; }
        // SAFETY: caller rule 1: `ep` is an endpoint of ours;
        // caller rule 2 for the pieces, caller rule 3 for their array.
        unsafe { perform(ep, Spans::of(iov, count), one(address, addr, key, context), Core::read) }
    }
    pub unsafe extern "C" fn readmsg(ep: *mut Fid, msg: *const MsgRma, flags: u64) -> isize {
        // SAFETY: caller rule 1: `ep` is an endpoint of ours;
        // caller rule 2 for the pieces, caller rule 3 for the message and its arrays.
        unsafe {
            let msg = &*msg;
            let Some(place) = pieces(msg.rma_iov, msg.rma_iov_count, msg.iov_count) else { return INVALID };
            let to = To { address: msg.addr, place, data: None, context: msg.context, flags: Some(flags), silent: false };
            perform(ep, Spans::of(msg.iov, msg.iov_count), to, Core::read)
        }
    }
    pub unsafe extern "C" fn write(ep: *mut Fid, buf: P, len: usize, _: C, address: u64, addr: u64, key: u64, context: C) -> isize {
        // SAFETY: caller rule 1: `ep` is an endpoint of ours; caller rule 2 for the buffer.
        unsafe { perform(ep, Spans::one(buf, len), one(address, addr, key, context), Core::write) }
    }
    pub unsafe extern "C" fn writev(ep: *mut Fid, iov: *const iovec, _: *mut C, count: usize, address: u64, addr: u64, key: u64, context: C) -> isize {
        if count > IOV_LIMIT { return INVALID; }
        // SAFETY: caller rule 1: `ep` is an endpoint of ours;
        // caller rule 2 for the pieces, caller rule 3 for their array.
        unsafe { perform(ep, Spans::of(iov, count), one(address, addr, key, context), Core::write) }
    }
    pub unsafe extern "C" fn writemsg(ep: *mut Fid, msg: *const MsgRma, flags: u64) -> isize {
        // SAFETY: caller rule 1: `ep` is an endpoint of ours;
        // caller rule 2 for the pieces, caller rule 3 for the message and its arrays.
        unsafe {
            let msg = &*msg;
            let Some(place) = pieces(msg.rma_iov, msg.rma_iov_count, msg.iov_count) else { return INVALID };
            let data = (flags & FI_REMOTE_CQ_DATA != 0).then_some(msg.data);
            let to = To { address: msg.addr, place, data, context: msg.context, flags: Some(flags), silent: false };
            perform(ep, Spans::of(msg.iov, msg.iov_count), to, Core::write)
        }
    }
    pub unsafe extern "C" fn inject(ep: *mut Fid, buf: P, len: usize, address: u64, addr: u64, key: u64) -> isize {
        // SAFETY: caller rule 1: `ep` is an endpoint of ours; caller rule 2 for the buffer.
        unsafe { perform(ep, Spans::one(buf, len), silent(address, addr, key), Core::write) }
    }
    pub unsafe extern "C" fn writedata(ep: *mut Fid, buf: P, len: usize, _: C, data: u64, address: u64, addr: u64, key: u64, context: C) -> isize {
        // SAFETY: caller rule 1: `ep` is an endpoint of ours; caller rule 2 for the buffer.
        unsafe { perform(ep, Spans::one(buf, len), To { data: Some(data), ..one(address, addr, key, context) }, Core::write) }
    }
    pub unsafe extern "C" fn injectdata(ep: *mut Fid, buf: P, len: usize, data: u64, address: u64, addr: u64, key: u64) -> isize {
        // SAFETY: caller rule 1: `ep` is an endpoint of ours; caller rule 2 for the buffer.
        unsafe { perform(ep, Spans::one(buf, len), To { data: Some(data), ..silent(address, addr, key) }, Core::write) }
    }

    fn kind(datatype: u32, op: u32, family: Family) -> Kind {
        Kind { datatype, op, family, compare: (std::ptr::null(), 0), result: (std::ptr::null(), 0) }
    }
    fn ioc(buf: P, count: usize) -> iovec {
        iovec { iov_base: buf.cast_mut(), iov_len: count }
    }
    pub unsafe extern "C" fn atomic(ep: *mut Fid, buf: P, count: usize, _: C, address: u64, addr: u64, key: u64, datatype: u32, op: u32, context: C) -> isize {
        let operand = ioc(buf, count);
        // SAFETY: caller rule 1: `ep` is an endpoint of ours; caller rule 2 for the buffer.
        unsafe { perform_atomic(ep, (&raw const operand, 1), one(address, addr, key, context), kind(datatype, op, Family::Write)) }
    }
    pub unsafe extern "C" fn atomicv(ep: *mut Fid, iov: *const iovec, _: *mut C, count: usize, address: u64, addr: u64, key: u64, datatype: u32, op: u32, context: C) -> isize {
        // SAFETY: caller rule 1: `ep` is an endpoint of ours;
        // caller rule 2 for the pieces, caller rule 3 for their array.
        unsafe { perform_atomic(ep, (iov, count), one(address, addr, key, context), kind(datatype, op, Family::Write)) }
    }
    /// # Safety
    ///
    /// The message is valid.
    unsafe fn message<'a>(msg: *const MsgAtomic, flags: u64) -> Option<((*const iovec, usize), To<'a>)> {
        // SAFETY: the message is valid, and so are its arrays, as the caller promises.
        unsafe {
            let msg = &*msg;
            let place = pieces(msg.rma_iov, msg.rma_iov_count, msg.iov_count)?;
            let data = (flags & FI_REMOTE_CQ_DATA != 0).then_some(msg.data);
            Some(((msg.iov, msg.iov_count), To { address: msg.addr, place, data, context: msg.context, flags: Some(flags), silent: false }))
        }
    }
    pub unsafe extern "C" fn atomicmsg(ep: *mut Fid, msg: *const MsgAtomic, flags: u64) -> isize {
        // SAFETY: caller rule 1: `ep` is an endpoint of ours;
        // caller rule 2 for the pieces, caller rule 3 for the message and its arrays.
        unsafe {
            let Some((operand, to)) = message(msg, flags) else { return INVALID };
            perform_atomic(ep, operand, to, kind((*msg).datatype, (*msg).op, Family::Write))
        }
    }
    pub unsafe extern "C" fn inject_atomic(ep: *mut Fid, buf: P, count: usize, address: u64, addr: u64, key: u64, datatype: u32, op: u32) -> isize {
        let operand = ioc(buf, count);
        // SAFETY: caller rule 1: `ep` is an endpoint of ours; caller rule 2 for the buffer.
        unsafe { perform_atomic(ep, (&raw const operand, 1), silent(address, addr, key), kind(datatype, op, Family::Write)) }
    }
    pub unsafe extern "C" fn fetch(ep: *mut Fid, buf: P, count: usize, _: C, result: C, _: C, address: u64, addr: u64, key: u64, datatype: u32, op: u32, context: C) -> isize {
        let (operand, result) = (ioc(buf, count), ioc(result, count));
        let kind = Kind { result: (&raw const result, 1), ..kind(datatype, op, Family::Fetch) };
        // SAFETY: caller rule 1: `ep` is an endpoint of ours; caller rule 2 for the buffers.
        unsafe { perform_atomic(ep, (&raw const operand, 1), one(address, addr, key, context), kind) }
    }
    pub unsafe extern "C" fn fetchv(ep: *mut Fid, iov: *const iovec, _: *mut C, count: usize, result: *const iovec, _: *mut C, results: usize, address: u64, addr: u64, key: u64, datatype: u32, op: u32, context: C) -> isize {
        let kind = Kind { result: (result, results), ..kind(datatype, op, Family::Fetch) };
        // SAFETY: caller rule 1: `ep` is an endpoint of ours;
        // caller rule 2 for the pieces, caller rule 3 for their array.
        unsafe { perform_atomic(ep, (iov, count), one(address, addr, key, context), kind) }
    }
    pub unsafe extern "C" fn fetchmsg(ep: *mut Fid, msg: *const MsgAtomic, result: *const iovec, _: *mut C, results: usize, flags: u64) -> isize {
        // SAFETY: caller rule 1: `ep` is an endpoint of ours;
        // caller rule 2 for the pieces, caller rule 3 for the message and its arrays.
        unsafe {
            let Some((operand, to)) = message(msg, flags) else { return INVALID };
            let kind = Kind { result: (result, results), ..kind((*msg).datatype, (*msg).op, Family::Fetch) };
            perform_atomic(ep, operand, to, kind)
        }
    }
    pub unsafe extern "C" fn compare(ep: *mut Fid, buf: P, count: usize, _: C, compare: P, _: C, result: C, _: C, address: u64, addr: u64, key: u64, datatype: u32, op: u32, context: C) -> isize {
        let (operand, compare, result) = (ioc(buf, count), ioc(compare, count), ioc(result, count));
        let kind = Kind { datatype, op, family: Family::Compare, compare: (&raw const compare, 1), result: (&raw const result, 1) };
        // SAFETY: caller rule 1: `ep` is an endpoint of ours; caller rule 2 for the buffers.
        unsafe { perform_atomic(ep, (&raw const operand, 1), one(address, addr, key, context), kind) }
    }
    pub unsafe extern "C" fn comparev(ep: *mut Fid, iov: *const iovec, _: *mut C, count: usize, compare: *const iovec, _: *mut C, compares: usize, result: *const iovec, _: *mut C, results: usize, address: u64, addr: u64, key: u64, datatype: u32, op: u32, context: C) -> isize {
        let kind = Kind { datatype, op, family: Family::Compare, compare: (compare, compares), result: (result, results) };
        // SAFETY: caller rule 1: `ep` is an endpoint of ours;
        // caller rule 2 for the pieces, caller rule 3 for their array.
        unsafe { perform_atomic(ep, (iov, count), one(address, addr, key, context), kind) }
    }
    pub unsafe extern "C" fn comparemsg(ep: *mut Fid, msg: *const MsgAtomic, compare: *const iovec, _: *mut C, compares: usize, result: *const iovec, _: *mut C, results: usize, flags: u64) -> isize {
        // SAFETY: caller rule 1: `ep` is an endpoint of ours;
        // caller rule 2 for the pieces, caller rule 3 for the message and its arrays.
        unsafe {
            let Some((operand, to)) = message(msg, flags) else { return INVALID };
            let kind = Kind { datatype: (*msg).datatype, op: (*msg).op, family: Family::Compare, compare: (compare, compares), result: (result, results) };
            perform_atomic(ep, operand, to, kind)
        }
    }
    pub unsafe extern "C" fn write_valid(_: *mut Fid, datatype: u32, op: u32, count: *mut usize) -> c_int {
        // SAFETY: caller rule 3: a place, or null.
        unsafe { valid(datatype, op, Family::Write, count) }
    }
    pub unsafe extern "C" fn fetch_valid(_: *mut Fid, datatype: u32, op: u32, count: *mut usize) -> c_int {
        // SAFETY: caller rule 3: a place, or null.
        unsafe { valid(datatype, op, Family::Fetch, count) }
    }
    pub unsafe extern "C" fn compare_valid(_: *mut Fid, datatype: u32, op: u32, count: *mut usize) -> c_int {
        // SAFETY: caller rule 3: a place, or null.
        unsafe { valid(datatype, op, Family::Compare, count) }
    }
}
use functions::*;
