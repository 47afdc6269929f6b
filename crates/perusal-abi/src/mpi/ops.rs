//! Reduction operations (MPI 5.0 §6.9.5, §6.9.7).

use crate::abi::MPI_OP_NULL;
use crate::arguments::{Buffer, Given, InOut};
use crate::datatype::Basic;
use crate::datatype::op::{BasicReduction, Op, UserFunction, UserFunctionC};
use crate::datatypes::{insert_op, remove_op};
use crate::error::{Error, Result};
use crate::events::fast_path_is_open;
use crate::messages::{contents, is_memory, run_of_bytes};
use crate::types::MPI_Op;

const NO_FUNCTION: Error = Error::Arg("the operation's function is NULL");

/// MPI_Reduce_local of values of a basic type, by a predefined operation.
#[inline(always)]
pub fn reduce_local_direct(from: Buffer<'_>, to: Buffer<'_>, op: MPI_Op) -> Option<()> {
    let reduction = BasicReduction::of(op, Basic::of(from.datatype)?)?;
    let are_apart = from.addr != to.addr && is_memory(to.addr.addr());
    if !fast_path_is_open() || !are_apart {
        return None;
    }
    run_of_bytes(from)?;
    let (left, right) = (from.addr.cast_const().cast(), to.addr.cast());
    // SAFETY: argument rule 3: both hold so many values, no negative number of them (`run_of_bytes`); MPI 5.0 §6.9.7
    // forbids that they overlap.
    unsafe { reduction.apply(left, right, from.count as usize) };
    Some(())
}

/// MPI_Reduce_local.
pub fn reduce_local(from: Buffer<'_>, to: Buffer<'_>, op: Op) -> Result<()> {
    let (n, ty) = contents(&from)?;
    contents(&to)?;
    ty.bytes_of(n)?;
    if op.is_for_rma_only() {
        return Err(Error::Op("only one-sided communication takes this operation"));
    }
    op.check(ty)?;
    if n == 0 {
        return Ok(());
    }
    if from.addr == to.addr {
        return Err(Error::Buffer("inbuf and inoutbuf are the same"));
    }
    // SAFETY: argument rule 3: both hold `n` elements of the type; MPI 5.0 §6.9.7 forbids that they overlap.
    unsafe { op.apply(from.addr.cast(), to.addr.cast(), n, ty, from.datatype) }
}

/// An operation that has just been made: the program is given its handle.
impl Given<MPI_Op> for Op {
    fn given(self) -> Result<MPI_Op> {
        insert_op(self)
    }
}

/// MPI_Op_create.
///
/// # Safety
/// The program keeps the function callable while the operation is in use.
pub unsafe fn create(function: Option<UserFunction>, commutes: bool) -> Result<Op> {
    // SAFETY: the program keeps the function callable while the operation is in use (MPI 5.0 §6.9.5).
    Ok(unsafe { Op::user(function.ok_or(NO_FUNCTION)?, commutes) })
}

/// MPI_Op_create_c.
///
/// # Safety
/// As for [`create`].
pub unsafe fn create_large(function: Option<UserFunctionC>, commutes: bool) -> Result<Op> {
    // SAFETY: the program keeps the function callable while the operation is in use (MPI 5.0 §6.9.5).
    Ok(unsafe { Op::user_c(function.ok_or(NO_FUNCTION)?, commutes) })
}

/// MPI_Op_free. Collectives that use the operation go on.
pub fn free(op: InOut<'_, MPI_Op>) -> Result<()> {
    remove_op(op.get())?;
    op.set(MPI_OP_NULL);
    Ok(())
}

/// MPI_Op_commutative.
pub fn commutes(op: Op) -> Result<bool> {
    Ok(op.commutative())
}
