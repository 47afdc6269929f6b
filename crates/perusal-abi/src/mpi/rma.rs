//! One-sided operations (MPI 5.0 §12.3). The engine has performed them when it returns, so a request for one is complete.

use crate::abi::MPI_NO_OP;
use crate::arguments::{Buffer, Target};
use crate::coll::buffer::{InputBuffer, OutputBuffer};
use crate::datatype::Datatype;
use crate::datatype::op::Op;
use crate::error::{Error, Result};
use crate::messages::contents;
use crate::process::engine;
use crate::requests;
use crate::types::MPI_Request;

/// Elements that an operation reads.
#[inline]
fn input<'a>(buffer: &Buffer<'a>) -> Result<InputBuffer<'a>> {
    let (count, datatype) = contents(buffer)?;
    datatype.bytes_of(count)?;
    // SAFETY: argument rule 3: the elements are there until the operation is complete, which it is at the end of the call.
    Ok(unsafe { InputBuffer::new(buffer.addr.cast_const().cast(), count, datatype) })
}

/// Elements that an operation writes.
#[inline]
fn output<'a>(buffer: &Buffer<'a>) -> Result<OutputBuffer<'a>> {
    let (count, datatype) = contents(buffer)?;
    datatype.bytes_of(count)?;
    // SAFETY: argument rule 3: there is room for the elements until the operation is complete, which it is at the end of the call.
    Ok(unsafe { OutputBuffer::new(buffer.addr.cast(), count, datatype) })
}

/// MPI_Put.
pub fn put(origin: Buffer<'_>, target: Target<'_>) -> Result<()> {
    let origin = input(&origin)?;
    let Some(to) = target.of_engine() else { return Ok(()) };
    target.win.put(engine()?, origin, to)
}

/// MPI_Get.
pub fn get(origin: Buffer<'_>, target: Target<'_>) -> Result<()> {
    let origin = output(&origin)?;
    let Some(from) = target.of_engine() else { return Ok(()) };
    target.win.get(engine()?, &origin, from)
}

/// MPI_Accumulate.
pub fn accumulate(origin: Buffer<'_>, target: Target<'_>, op: Op) -> Result<()> {
    if op.is(MPI_NO_OP) {
        return Err(Error::Op("MPI_NO_OP is for operations that fetch what was there"));
    }
    let origin = input(&origin)?;
    let Some(to) = target.of_engine() else { return Ok(()) };
    target.win.accumulate(engine()?, origin, to, &op)
}

/// MPI_Get_accumulate. With MPI_NO_OP there need be no origin.
pub fn get_accumulate(origin: Buffer<'_>, result: Buffer<'_>, target: Target<'_>, op: Op) -> Result<()> {
    let origin = if op.is(MPI_NO_OP) { None } else { Some(input(&origin)?) };
    let result = output(&result)?;
    let Some(to) = target.of_engine() else { return Ok(()) };
    target.win.get_accumulate(engine()?, origin, &result, to, &op)
}

/// Refuses what is not one element of a predefined type.
fn predefined(datatype: &Datatype) -> Result<()> {
    if datatype.is_predefined() {
        return Ok(());
    }
    Err(Error::Type("the function takes predefined datatypes only"))
}

/// MPI_Fetch_and_op. With MPI_NO_OP there need be no origin.
pub fn fetch_and_op(origin: Buffer<'_>, result: Buffer<'_>, target: Target<'_>, op: Op) -> Result<()> {
    predefined(target.datatype)?;
    let origin = if op.is(MPI_NO_OP) { None } else { Some(input(&origin)?) };
    let result = output(&result)?;
    let Some(to) = target.of_engine() else { return Ok(()) };
    let new = origin.map(|origin| origin.packed()).transpose()?;
    let mut old = result.landing()?;
    target.win.fetch_and_op(engine()?, new.as_deref(), &mut old, to, &op)?;
    old.land()
}

/// MPI_Compare_and_swap.
pub fn compare_and_swap(
    origin: Buffer<'_>,
    compare: Buffer<'_>,
    result: Buffer<'_>,
    target: Target<'_>,
) -> Result<()> {
    predefined(target.datatype)?;
    let (origin, compare, result) = (input(&origin)?, input(&compare)?, output(&result)?);
    let Some(to) = target.of_engine() else { return Ok(()) };
    let (new, compare, mut old) = (origin.packed()?, compare.packed()?, result.landing()?);
    target.win.compare_and_swap(engine()?, (&new, &compare), &mut old, to)?;
    old.land()
}

/// Performs an operation in a passive-target epoch, and gives its request.
fn requested(target: Target<'_>, operation: impl FnOnce() -> Result<()>) -> Result<MPI_Request> {
    if let Some(to) = target.of_engine() {
        target.win.check_passive(to.rank)?;
    }
    operation()?;
    requests::over()
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
pub fn raccumulate(origin: Buffer<'_>, target: Target<'_>, op: Op) -> Result<MPI_Request> {
    requested(target, || accumulate(origin, target, op))
}

/// MPI_Rget_accumulate.
pub fn rget_accumulate(
    origin: Buffer<'_>,
    result: Buffer<'_>,
    target: Target<'_>,
    op: Op,
) -> Result<MPI_Request> {
    requested(target, || get_accumulate(origin, result, target, op))
}
