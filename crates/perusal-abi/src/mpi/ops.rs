//! Reduction operations (MPI 5.0 §6.9.5, §6.9.7).

use crate::abi::*;
use crate::capi::args::{put, take};
use crate::capi::datatypes::{contiguous_size, datatype as committed, insert_op, op as find, remove_op};
use crate::capi::messages::is_memory;
use crate::capi::types::{MPI_Count, MPI_Datatype, MPI_Op};
use crate::datatype::op::{Op, UserFunction, UserFunctionC};
use crate::{Error, Result, export};
use core::ffi::{c_int, c_void};

const NO_FUNCTION: Error = Error::Arg("the operation's function is NULL");

/// # Safety
/// Both buffers hold `n` elements of the datatype and do not overlap.
unsafe fn reduce_local(
    inbuf: *const c_void,
    inoutbuf: *mut c_void,
    n: i64,
    datatype: MPI_Datatype,
    op: MPI_Op,
) -> Result<()> {
    let n = usize::try_from(n).map_err(|_| Error::Count(n))?;
    let (ty, op) = (committed(datatype)?, find(op)?);
    if op.is_for_rma_only() {
        return Err(Error::Op("only one-sided communication takes this operation"));
    }
    op.check(&ty)?;
    if n == 0 {
        return Ok(());
    }
    if inbuf.cast() == inoutbuf {
        return Err(Error::Buffer("inbuf and inoutbuf are the same"));
    }
    let absolute = contiguous_size(datatype).is_none();
    if !absolute && (!is_memory(inbuf as usize) || !is_memory(inoutbuf as usize)) {
        return Err(Error::Buffer("inbuf or inoutbuf is NULL or MPI_IN_PLACE"));
    }
    // SAFETY: the caller's.
    unsafe { op.apply(inbuf.cast(), inoutbuf.cast(), n, &ty, datatype) }
}

export! {
    /// MPI 5.0 §6.9.5.
    fn MPI_Op_create(user_fn: Option<UserFunction>, commute: c_int, op: *mut MPI_Op) raises(MPI_COMM_SELF) {
        // SAFETY: the user keeps the function callable while the operation is in use.
        let made = unsafe { Op::user(user_fn.ok_or(NO_FUNCTION)?, commute != 0) };
        // SAFETY: an output argument.
        unsafe { put(op, insert_op(made)?) }
    }

    /// MPI 5.0 §6.9.5.
    fn MPI_Op_create_c(user_fn: Option<UserFunctionC>, commute: c_int, op: *mut MPI_Op) raises(MPI_COMM_SELF) {
        // SAFETY: the user keeps the function callable while the operation is in use.
        let made = unsafe { Op::user_c(user_fn.ok_or(NO_FUNCTION)?, commute != 0) };
        // SAFETY: an output argument.
        unsafe { put(op, insert_op(made)?) }
    }

    /// MPI 5.0 §6.9.5. Collectives that use the operation go on.
    fn MPI_Op_free(op: *mut MPI_Op) raises(MPI_COMM_SELF) {
        // SAFETY: an argument that is passed by address.
        remove_op(unsafe { take(op) }?)?;
        // SAFETY: an output argument.
        unsafe { put(op, MPI_OP_NULL) }
    }

    /// MPI 5.0 §6.9.7.
    fn MPI_Op_commutative(op: MPI_Op, commute: *mut c_int) raises(MPI_COMM_SELF) {
        // SAFETY: an output argument.
        unsafe { put(commute, c_int::from(find(op)?.commutative())) }
    }

    /// MPI 5.0 §6.9.7.
    fn MPI_Reduce_local(
        inbuf: *const c_void,
        inoutbuf: *mut c_void,
        count: c_int,
        datatype: MPI_Datatype,
        op: MPI_Op,
    ) raises(MPI_COMM_SELF) {
        // SAFETY: the buffers are what the other arguments say.
        unsafe { reduce_local(inbuf, inoutbuf, i64::from(count), datatype, op) }
    }

    /// MPI 5.0 §6.9.7.
    fn MPI_Reduce_local_c(
        inbuf: *const c_void,
        inoutbuf: *mut c_void,
        count: MPI_Count,
        datatype: MPI_Datatype,
        op: MPI_Op,
    ) raises(MPI_COMM_SELF) {
        // SAFETY: the buffers are what the other arguments say.
        unsafe { reduce_local(inbuf, inoutbuf, count, datatype, op) }
    }
}
