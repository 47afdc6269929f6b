//! The short ways of blocking collectives: few bytes of a predefined type without gaps, among the members of an
//! intracommunicator that have met before, while nobody listens.
//!
//! As with messages (`p2p::send`), a fast path finds out nothing that is wrong. `None` means that it cannot be taken and has
//! done nothing: the general way is taken, which says what is wrong or does what is unusual. Members may come by different ways;
//! in the memory where they meet both look alike.
//!
//! Safety, for all of them: as the MPI function of that name says of its arguments.

// C's argument lists, with the communicator in front.
#![allow(clippy::too_many_arguments)]

use super::checks::{Number, in_place};
use crate::capi::comms;
use crate::capi::datatypes::contiguous_size;
use crate::capi::messages::is_memory;
use crate::capi::process::running;
use crate::capi::types::MPI_Comm;
use crate::coll::shared_memory::TeamGuard;
use crate::coll::{ReductionKernel, team_of};
use crate::datatype::Basic;
use crate::datatype::op::Op;
use crate::error::Result;
use crate::events::Collective;
use crate::events::fast_path_is_open;
use crate::team::PAYLOAD;
use core::ffi::{c_int, c_void};

type In = *const c_void;
type Out = *mut c_void;

/// Where the members of `comm` meet.
///
/// # Safety
/// The communicator is not freed meanwhile.
#[inline(always)]
unsafe fn team<'a>(comm: MPI_Comm, operation: Collective) -> Option<TeamGuard<'a>> {
    if !fast_path_is_open() {
        return None;
    }
    // SAFETY: the caller's promise.
    team_of(running()?, unsafe { comms::peek(comm) }?, operation)
}

/// Bytes of some elements that begin somewhere and of which a slot holds `times` as many.
#[inline(always)]
fn few<N: Number>(addr: In, count: N, datatype: usize, times: usize) -> Option<usize> {
    let (count, size) = (usize::try_from(count.wide()).ok()?, contiguous_size(datatype)?);
    let bytes = count.checked_mul(size)?;
    (bytes > 0 && bytes <= PAYLOAD / times && is_memory(addr.addr())).then_some(bytes)
}

/// Copies between places that may be one.
///
/// # Safety
/// Both hold `len` bytes, and are the same or apart.
#[inline(always)]
unsafe fn copy(from: *const u8, to: *mut u8, len: usize) {
    if from != to.cast_const() {
        // SAFETY: the caller's promise.
        unsafe { to.copy_from_nonoverlapping(from, len) };
    }
}

/// A predefined operation on a basic type that it takes.
struct Plain {
    op: Op,
    basic: Basic,
    /// Bytes of a value, a power of two.
    size: usize,
}

impl Plain {
    #[inline(always)]
    fn new(op: usize, datatype: usize) -> Option<Self> {
        let (op, basic) = (Op::predefined(op)?, Basic::of(datatype)?);
        let size = basic.size();
        (size.is_power_of_two() && !op.is_for_rma_only() && op.takes(basic)).then_some(Self {
            op,
            basic,
            size,
        })
    }
}

impl ReductionKernel for Plain {
    fn commutes(&self) -> bool {
        true
    }
    #[inline(always)]
    fn reduce(&self, left: &[u8], right: &mut [u8]) -> Result<()> {
        let count = left.len().min(right.len()) >> self.size.trailing_zeros();
        // SAFETY: two slices of so many values, of which one is borrowed for us alone.
        unsafe { self.op.apply_basic(self.basic, left.as_ptr(), right.as_mut_ptr(), count) }
    }
}

#[inline(always)]
pub unsafe fn barrier(comm: MPI_Comm) -> Option<Result<()>> {
    // SAFETY: the module's contract.
    Some(unsafe { team(comm, Collective::Barrier) }?.barrier())
}

#[inline(always)]
pub unsafe fn bcast<N: Number>(
    comm: MPI_Comm,
    buffer: Out,
    count: N,
    datatype: usize,
    root: c_int,
) -> Option<Result<()>> {
    let bytes = few(buffer.cast_const(), count, datatype, 1)?;
    // SAFETY: the module's contract.
    let mut team = unsafe { team(comm, Collective::Bcast) }?;
    let root = team.member(root)?;
    // SAFETY: the program's buffer, of so many bytes.
    let data = unsafe { core::slice::from_raw_parts_mut(buffer.cast(), bytes) };
    Some(team.bcast(data, root).map(drop))
}

#[inline(always)]
pub unsafe fn allgather<N: Number>(
    comm: MPI_Comm,
    sendbuf: In,
    sendcount: N,
    sendtype: usize,
    recvbuf: Out,
    recvcount: N,
    recvtype: usize,
) -> Option<Result<()>> {
    let block = few(recvbuf.cast_const(), recvcount, recvtype, 1)?;
    if !in_place(sendbuf) && few(sendbuf, sendcount, sendtype, 1)? != block {
        return None;
    }
    // SAFETY: the module's contract.
    let mut team = unsafe { team(comm, Collective::Allgather) }?;
    let (me, size) = (team.rank(), team.size());
    let own = recvbuf.cast::<u8>().wrapping_add(me * block);
    if !in_place(sendbuf) {
        if own.cast_const() == sendbuf.cast() {
            return None;
        }
        // SAFETY: the program's buffers, which are apart, of `block` bytes here.
        unsafe { copy(sendbuf.cast(), own, block) };
    }
    // SAFETY: the program's buffer, of a block for each member.
    let all = unsafe { core::slice::from_raw_parts_mut(recvbuf.cast(), block * size) };
    Some(team.allgather(all).map(drop))
}

#[inline(always)]
pub unsafe fn alltoall<N: Number>(
    comm: MPI_Comm,
    sendbuf: In,
    sendcount: N,
    sendtype: usize,
    recvbuf: Out,
    recvcount: N,
    recvtype: usize,
) -> Option<Result<()>> {
    let block = few(recvbuf.cast_const(), recvcount, recvtype, 2)?;
    if few(sendbuf, sendcount, sendtype, 2)? != block || sendbuf == recvbuf.cast_const() {
        return None;
    }
    // SAFETY: the module's contract.
    let mut team = unsafe { team(comm, Collective::Alltoall) }?;
    if block * team.size() > PAYLOAD {
        return None;
    }
    let (from, to) = (sendbuf.cast::<u8>(), recvbuf.cast::<u8>());
    let own = team.rank() * block;
    // SAFETY: the program's buffers, of a block for each member, and apart; `at` and the lengths lie within a block.
    let done = unsafe {
        copy(from.add(own), to.add(own), block);
        team.alltoall(
            block,
            |peer, at, room| copy(from.add(peer * block + at), room.as_mut_ptr(), room.len()),
            |peer, at, data| copy(data.as_ptr(), to.add(peer * block + at), data.len()),
        )
    };
    Some(done.map(drop))
}

#[inline(always)]
pub unsafe fn reduce<N: Number>(
    comm: MPI_Comm,
    sendbuf: In,
    recvbuf: Out,
    count: N,
    datatype: usize,
    op: usize,
    root: c_int,
) -> Option<Result<()>> {
    // In place has a meaning at the root only, and there the operands are the result's.
    let bytes = few(sendbuf, count, datatype, 1)?;
    let kernel = Plain::new(op, datatype)?;
    // SAFETY: the module's contract.
    let mut team = unsafe { team(comm, Collective::Reduce) }?;
    let root = team.member(root)?;
    if team.rank() == root && (!is_memory(recvbuf.addr()) || sendbuf == recvbuf.cast_const()) {
        return None;
    }
    // SAFETY: the program's buffers, of so many bytes; only the root's result is written.
    let done = unsafe { team.reduce(sendbuf.cast(), recvbuf.cast(), (bytes, kernel.size), &kernel, root) };
    Some(done.map(drop))
}

#[inline(always)]
pub unsafe fn allreduce<N: Number>(
    comm: MPI_Comm,
    sendbuf: In,
    recvbuf: Out,
    count: N,
    datatype: usize,
    op: usize,
) -> Option<Result<()>> {
    let bytes = few(recvbuf.cast_const(), count, datatype, 1)?;
    let from = if in_place(sendbuf) { recvbuf.cast_const() } else { sendbuf };
    if !is_memory(from.addr()) || sendbuf == recvbuf.cast_const() {
        return None;
    }
    let kernel = Plain::new(op, datatype)?;
    // SAFETY: the module's contract; the program's buffers, of so many bytes.
    let done = unsafe {
        let mut team = team(comm, Collective::Allreduce)?;
        team.allreduce(from.cast(), recvbuf.cast(), (bytes, kernel.size), &kernel)
    };
    Some(done.map(drop))
}
