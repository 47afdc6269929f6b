//! One-sided operations (MPI 5.0 §12.3). The engine has performed them when it returns,
//! so a request for one is complete.
//!
//! Each is tried as a direct one first (`…_direct`, the fast path of its binding), which reports no error and does
//! nothing if it does not serve the case.

use crate::abi::{MPI_NO_OP, MPI_OP_NULL, MPI_PROC_NULL};
use crate::arguments::{Argument, Buffer, Target};
use crate::check::{self, Access};
use crate::coll::buffer::{InputBuffer, OutputBuffer};
use crate::datatype::op::Op;
use crate::datatype::{Basic, Datatype};
use crate::error::{Error, Result};
use crate::events::fast_path_is_open;
use crate::messages::{contents, is_memory, run_of_bytes};
use crate::process::{engine, running};
use crate::requests;
use crate::rma::{GivenHandles, check_operation};
use crate::types::{MPI_Op, MPI_Request};

/// Elements that an operation reads.
fn input<'a>(buffer: &Buffer<'a>) -> Result<InputBuffer<'a>> {
    let (count, datatype) = contents(buffer)?;
    datatype.bytes_of(count)?;
    // SAFETY: argument rule 3: the elements are there until the operation is complete,
    // which it is at the end of the call.
    Ok(unsafe { InputBuffer::new(buffer.addr.cast_const().cast(), count, datatype) })
}

/// Elements that an operation writes.
fn output<'a>(buffer: &Buffer<'a>) -> Result<OutputBuffer<'a>> {
    let (count, datatype) = contents(buffer)?;
    datatype.bytes_of(count)?;
    // SAFETY: argument rule 3: there is room for the elements until the operation is complete,
    // which it is at the end of the call.
    Ok(unsafe { OutputBuffer::new(buffer.addr.cast(), count, datatype) })
}

/// Performs an operation on the target's window, whose events name the handles that it was given.
#[inline(always)]
fn observed(
    origin: &Buffer<'_>,
    target: &Target<'_>,
    op: MPI_Op,
    perform: impl FnOnce() -> Result<()>,
) -> Result<()> {
    if !target.win.is_observed() {
        return perform();
    }
    let given = GivenHandles { origin: origin.datatype, target: target.datatype(), op };
    target.win.with_handles(given, perform)
}

/// Begins an operation that uses these buffers until it is flushed.
fn begun(
    target: &Target<'_>,
    buffers: &[(&Buffer<'_>, Access)],
    perform: impl FnOnce() -> Result<()>,
) -> Result<()> {
    if check::is_on() && target.win.comm().has_peer(target.rank) {
        check::began_one_sided(target, buffers);
    }
    perform()
}

/// What an operation uses that fetches what was there, of its origin and its result; one of MPI_NO_OP has no origin.
fn used<'a>(buffers: &'a [(&'a Buffer<'a>, Access); 2], has_origin: bool) -> &'a [(&'a Buffer<'a>, Access)] {
    &buffers[usize::from(!has_origin)..]
}

/// An operation by its handle.
fn op_of(handle: MPI_Op) -> Result<Op> {
    // SAFETY: the handle is an argument of the call; nothing is asked of it but argument rule 2.
    unsafe { Op::of(handle) }
}

/// MPI_Put of bytes without gaps.
#[inline(always)]
pub fn put_direct(origin: Buffer<'_>, target: Target<'_>) -> Option<()> {
    if !fast_path_is_open() {
        return None;
    }
    let bytes = run_of_bytes(origin)?;
    // SAFETY: argument rule 3: the origin's elements are `bytes` bytes without gaps.
    unsafe { target.direct_for(&origin, bytes)?.put(origin.addr.cast_const().cast(), bytes) }.then_some(())
}

/// MPI_Put.
pub fn put(origin: Buffer<'_>, target: Target<'_>) -> Result<()> {
    let (elements, to) = (input(&origin)?, target.of_engine()?);
    if to.rank == MPI_PROC_NULL {
        return Ok(());
    }
    begun(&target, &[(&origin, Access::Read)], || {
        observed(&origin, &target, MPI_OP_NULL, || target.win.put(engine()?, elements, to))
    })
}

/// MPI_Get of bytes without gaps.
#[inline(always)]
pub fn get_direct(origin: Buffer<'_>, target: Target<'_>) -> Option<()> {
    if !fast_path_is_open() {
        return None;
    }
    let room = run_of_bytes(origin)?;
    let from = target.direct_for(&origin, room)?;
    if from.bytes() > room {
        return None;
    }
    // SAFETY: argument rule 3: there is room for as many bytes without gaps.
    unsafe { from.get(origin.addr.cast()) };
    Some(())
}

/// MPI_Get.
pub fn get(origin: Buffer<'_>, target: Target<'_>) -> Result<()> {
    let (elements, from) = (output(&origin)?, target.of_engine()?);
    if from.rank == MPI_PROC_NULL {
        return Ok(());
    }
    begun(&target, &[(&origin, Access::Write)], || {
        observed(&origin, &target, MPI_OP_NULL, || target.win.get(engine()?, &elements, from))
    })
}

/// Whether a buffer has one element of the target's predefined type.
#[inline(always)]
fn is_one_of(buffer: &Buffer<'_>, target: &Target<'_>) -> bool {
    buffer.count == 1 && buffer.datatype == target.datatype() && is_memory(buffer.addr.addr())
}

/// Combines one value of the target's with one of the origin's, and puts what it was into `result`, if there is one.
#[inline(always)]
fn update_direct(
    origin: &Buffer<'_>,
    result: Option<&Buffer<'_>>,
    target: &Target<'_>,
    op: MPI_Op,
) -> Option<()> {
    let fits = (op == MPI_NO_OP || is_one_of(origin, target))
        && result.is_none_or(|result| is_one_of(result, target));
    if !fits || !fast_path_is_open() {
        return None;
    }
    let basic = Basic::of(target.datatype())?;
    let old = result.map_or(core::ptr::null_mut(), |result| result.addr.cast());
    // SAFETY: argument rule 3: origin and result are one element each; that of MPI_NO_OP is not read.
    unsafe { target.direct()?.update(running()?, basic, op, origin.addr.cast_const().cast(), old) }
        .then_some(())
}

/// MPI_Accumulate of one value.
#[inline(always)]
pub fn accumulate_direct(origin: Buffer<'_>, target: Target<'_>, op: MPI_Op) -> Option<()> {
    if op == MPI_NO_OP { None } else { update_direct(&origin, None, &target, op) }
}

/// MPI_Get_accumulate and MPI_Fetch_and_op of one value.
#[inline(always)]
pub fn fetch_direct(origin: Buffer<'_>, result: Buffer<'_>, target: Target<'_>, op: MPI_Op) -> Option<()> {
    update_direct(&origin, Some(&result), &target, op)
}

/// Combines values of a predefined type one behind the other with as many of the origin's.
#[inline(always)]
fn reduce_direct(origin: &Buffer<'_>, target: &Target<'_>, op: MPI_Op) -> Option<()> {
    if origin.datatype != target.datatype() || !fast_path_is_open() {
        return None;
    }
    let (basic, bytes, target) = (Basic::of(origin.datatype)?, run_of_bytes(*origin)?, target.direct()?);
    // SAFETY: argument rule 3: the origin's elements are `bytes` bytes without gaps.
    let done =
        target.bytes() == bytes && unsafe { target.reduce_all(basic, op, origin.addr.cast_const().cast()) };
    done.then_some(())
}

/// The operation of an accumulate, also of one of no elements or to MPI_PROC_NULL.
fn combining(op: MPI_Op) -> Result<Op> {
    let op = op_of(op)?;
    check_operation(&op)?;
    Ok(op)
}

/// MPI_Accumulate.
pub fn accumulate(origin: Buffer<'_>, target: Target<'_>, op: MPI_Op) -> Result<()> {
    if reduce_direct(&origin, &target, op).is_some() {
        return Ok(());
    }
    let (given, op) = (op, combining(op)?);
    if op.is(MPI_NO_OP) {
        return Err(Error::Op("MPI_NO_OP is for operations that fetch what was there"));
    }
    let (elements, to) = (input(&origin)?, target.of_engine()?);
    if to.rank == MPI_PROC_NULL {
        return Ok(());
    }
    begun(&target, &[(&origin, Access::Read)], || {
        observed(&origin, &target, given, || target.win.accumulate(engine()?, elements, to, &op))
    })
}

/// MPI_Get_accumulate. With MPI_NO_OP there need be no origin.
pub fn get_accumulate(origin: Buffer<'_>, result: Buffer<'_>, target: Target<'_>, op: MPI_Op) -> Result<()> {
    let (given, op) = (op, combining(op)?);
    let elements = if op.is(MPI_NO_OP) { None } else { Some(input(&origin)?) };
    let (room, to) = (output(&result)?, target.of_engine()?);
    if to.rank == MPI_PROC_NULL {
        return Ok(());
    }
    let described = if elements.is_some() { &origin } else { &result };
    begun(&target, used(&[(&origin, Access::Read), (&result, Access::Write)], elements.is_some()), || {
        observed(described, &target, given, || target.win.get_accumulate(engine()?, elements, &room, to, &op))
    })
}

/// Refuses what is not one element of a predefined type.
fn predefined(datatype: &Datatype) -> Result<()> {
    if datatype.is_predefined() {
        return Ok(());
    }
    Err(Error::Type("the function takes predefined datatypes only"))
}

/// MPI_Fetch_and_op. With MPI_NO_OP there need be no origin.
pub fn fetch_and_op(origin: Buffer<'_>, result: Buffer<'_>, target: Target<'_>, op: MPI_Op) -> Result<()> {
    let (given, op, to) = (op, combining(op)?, target.of_engine()?);
    predefined(to.datatype)?;
    let elements = if op.is(MPI_NO_OP) { None } else { Some(input(&origin)?) };
    let room = output(&result)?;
    if to.rank == MPI_PROC_NULL {
        return Ok(());
    }
    let new = elements.map(|elements| elements.packed()).transpose()?;
    let mut old = room.landing()?;
    let described = if new.is_some() { &origin } else { &result };
    begun(&target, used(&[(&origin, Access::Read), (&result, Access::Write)], new.is_some()), || {
        observed(described, &target, given, || {
            target.win.fetch_and_op(engine()?, new.as_deref(), &mut old, to, &op)
        })?;
        old.land()
    })
}

/// MPI_Compare_and_swap of a value that an instruction serves, or a free lock.
#[inline(always)]
pub fn compare_and_swap_direct(
    origin: Buffer<'_>,
    compare: Buffer<'_>,
    result: Buffer<'_>,
    target: Target<'_>,
) -> Option<()> {
    if !fast_path_is_open() || ![origin, compare, result].iter().all(|buffer| is_one_of(buffer, &target)) {
        return None;
    }
    if !Basic::of(target.datatype())?.is_discrete() {
        return None;
    }
    let (new, compare) = (origin.addr.cast_const().cast(), compare.addr.cast_const().cast());
    // SAFETY: argument rule 3: all three are one element.
    unsafe { target.direct()?.compare_and_swap(running()?, new, compare, result.addr.cast()) }.then_some(())
}

/// MPI_Compare_and_swap.
pub fn compare_and_swap(
    origin: Buffer<'_>,
    compare: Buffer<'_>,
    result: Buffer<'_>,
    target: Target<'_>,
) -> Result<()> {
    let to = target.of_engine()?;
    predefined(to.datatype)?;
    let (elements, comparand, room) = (input(&origin)?, input(&compare)?, output(&result)?);
    if to.rank == MPI_PROC_NULL {
        return Ok(());
    }
    let (new, old_value, mut old) = (elements.packed()?, comparand.packed()?, room.landing()?);
    let buffers = [(&origin, Access::Read), (&compare, Access::Read), (&result, Access::Write)];
    begun(&target, &buffers, || {
        observed(&origin, &target, MPI_OP_NULL, || {
            target.win.compare_and_swap(engine()?, (&new, &old_value), &mut old, to)
        })?;
        old.land()
    })
}

/// Performs an operation in a passive-target epoch, and gives its request.
fn requested(target: Target<'_>, operation: impl FnOnce() -> Result<()>) -> Result<MPI_Request> {
    if target.rank != MPI_PROC_NULL {
        target.win.check_passive(target.rank)?;
    }
    operation()?;
    let request = requests::over()?;
    if check::is_on() && target.rank != MPI_PROC_NULL {
        check::one_sided_request(request);
    }
    Ok(request)
}

/// MPI_Rput.
pub fn rput(origin: Buffer<'_>, target: Target<'_>) -> Result<MPI_Request> {
    requested(target, || put(origin, target))
}

/// MPI_Rget.
pub fn rget(origin: Buffer<'_>, target: Target<'_>) -> Result<MPI_Request> {
    requested(target, || get(origin, target))
}

/// MPI_Raccumulate.
pub fn raccumulate(origin: Buffer<'_>, target: Target<'_>, op: MPI_Op) -> Result<MPI_Request> {
    requested(target, || accumulate(origin, target, op))
}

/// MPI_Rget_accumulate.
pub fn rget_accumulate(
    origin: Buffer<'_>,
    result: Buffer<'_>,
    target: Target<'_>,
    op: MPI_Op,
) -> Result<MPI_Request> {
    requested(target, || get_accumulate(origin, result, target, op))
}
