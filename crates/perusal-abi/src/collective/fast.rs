//! The fast paths of blocking collectives: few bytes of a predefined type without gaps, among the members of an
//! intracommunicator whose team has been made, while nobody listens to events.
//!
//! As with messages (`mpi::p2p`), a fast path finds out nothing that is wrong. `None` means that it cannot be taken and has
//! done nothing: the complete implementation is asked, which says what is wrong or does what is unusual. Members may take
//! different paths; in the memory of the team both look alike.

use super::checks::in_place;
use crate::arguments::{Buffer, CommHandle};
use crate::coll::shared_memory::{BlockingTeam, Operands};
use crate::coll::{ReductionKernel, run, team_of};
use crate::datatype::Basic;
use crate::datatype::op::Op;
use crate::datatypes::contiguous_size;
use crate::error::Result;
use crate::events::{Collective, fast_path_is_open};
use crate::messages::is_memory;
use crate::process::running;
use crate::team::PAYLOAD;
use core::ffi::c_int;

/// The team of a communicator.
#[inline(always)]
fn team<'a>(comm: CommHandle<'a>, operation: Collective) -> Option<BlockingTeam<'a>> {
    if !fast_path_is_open() {
        return None;
    }
    team_of(running()?, comm.peek()?, operation)
}

/// Bytes of some elements that begin somewhere and of which a slot holds `times` as many.
#[inline(always)]
fn few(buffer: Buffer<'_>, times: usize) -> Option<usize> {
    let (count, size) = (usize::try_from(buffer.count).ok()?, contiguous_size(buffer.datatype)?);
    let bytes = count.checked_mul(size)?;
    (bytes > 0 && bytes <= PAYLOAD / times && is_memory(buffer.addr.addr())).then_some(bytes)
}

/// Where the operands are of an operation in which every member has operands and gets a result: in place, where the result comes.
#[inline(always)]
fn operands(send: Buffer<'_>, recv: Buffer<'_>) -> Option<*const u8> {
    let from = if in_place(send.addr) { recv.addr } else { send.addr };
    (is_memory(from.addr()) && send.addr != recv.addr).then_some(from.cast_const().cast())
}

/// Copies between places that may be one.
///
/// # Safety
/// Both hold `len` bytes, and are the same or apart.
#[inline(always)]
unsafe fn copy(from: *const u8, to: *mut u8, len: usize) {
    if from != to.cast_const() {
        // SAFETY: they hold `len` bytes and differ, so that they are apart.
        unsafe { to.copy_from_nonoverlapping(from, len) };
    }
}

/// A predefined operation on a basic type that it takes.
struct PlainKernel {
    op: Op,
    basic: Basic,
    /// Bytes of a value, a power of two.
    size: usize,
}

impl PlainKernel {
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

impl ReductionKernel for PlainKernel {
    fn commutes(&self) -> bool {
        true
    }
    fn unit(&self) -> usize {
        self.size
    }
    #[inline(always)]
    fn reduce(&self, left: &[u8], right: &mut [u8]) -> Result<()> {
        let count = left.len().min(right.len()) >> self.size.trailing_zeros();
        // SAFETY: two slices of so many values, of which one is borrowed for us alone.
        unsafe { self.op.apply_basic(self.basic, left.as_ptr(), right.as_mut_ptr(), count) }
    }
}

/// MPI_Barrier.
#[inline(always)]
pub fn barrier(comm: CommHandle<'_>) -> Option<Result<()>> {
    Some(run(team(comm, Collective::Barrier)?.barrier()))
}

/// MPI_Bcast.
#[inline(always)]
pub fn bcast(comm: CommHandle<'_>, buffer: Buffer<'_>, root: c_int) -> Option<Result<()>> {
    let bytes = few(buffer, 1)?;
    let mut team = team(comm, Collective::Bcast)?;
    let root = team.member(root)?;
    // SAFETY: argument rule 3: the buffer has so many bytes, which the call may change.
    let data = unsafe { core::slice::from_raw_parts_mut(buffer.addr.cast(), bytes) };
    Some(run(team.bcast(data, root)).map(drop))
}

/// MPI_Allgather.
#[inline(always)]
pub fn allgather(comm: CommHandle<'_>, send: Buffer<'_>, recv: Buffer<'_>) -> Option<Result<()>> {
    let block = few(recv, 1)?;
    let is_in_place = in_place(send.addr);
    if !is_in_place && few(send, 1)? != block {
        return None;
    }
    let mut team = team(comm, Collective::Allgather)?;
    let (me, size) = (team.rank(), team.size());
    let own = recv.addr.cast::<u8>().wrapping_add(me * block);
    if !is_in_place {
        if own == send.addr.cast() {
            return None;
        }
        // SAFETY: argument rule 3: `block` bytes each; MPI 5.0 §6 forbids that the buffers overlap.
        unsafe { copy(send.addr.cast(), own, block) };
    }
    // SAFETY: argument rule 3: a block for each member, which the call may change.
    let all = unsafe { core::slice::from_raw_parts_mut(recv.addr.cast(), block * size) };
    Some(run(team.allgather(all, block)).map(drop))
}

/// MPI_Alltoall.
#[inline(always)]
pub fn alltoall(comm: CommHandle<'_>, send: Buffer<'_>, recv: Buffer<'_>) -> Option<Result<()>> {
    let block = few(recv, 2)?;
    if few(send, 2)? != block || send.addr == recv.addr {
        return None;
    }
    let mut team = team(comm, Collective::Alltoall)?;
    if block * team.size() > PAYLOAD {
        return None;
    }
    let (from, to) = (send.addr.cast::<u8>().cast_const(), recv.addr.cast::<u8>());
    let own = team.rank() * block;
    // SAFETY: argument rule 3: both buffers have a block for each member, and MPI 5.0 §6 forbids that they overlap; `at` and the
    // lengths lie within a block.
    let done = unsafe {
        copy(from.add(own), to.add(own), block);
        run(team.alltoall(
            block,
            |peer, at, room| copy(from.add(peer * block + at), room.as_mut_ptr(), room.len()),
            |peer, at, data| copy(data.as_ptr(), to.add(peer * block + at), data.len()),
        ))
    };
    Some(done.map(drop))
}

/// MPI_Gather.
#[inline(always)]
pub fn gather(comm: CommHandle<'_>, send: Buffer<'_>, recv: Buffer<'_>, root: c_int) -> Option<Result<()>> {
    let mut team = team(comm, Collective::Gather)?;
    let root = team.member(root)?;
    let is_root = team.rank() == root;
    let (from, to) = (send.addr.cast::<u8>().cast_const(), recv.addr.cast::<u8>());
    let block = if is_root { few(recv, 1)? } else { few(send, 1)? };
    let own = to.wrapping_add(root * block);
    if is_root && !in_place(send.addr) {
        if few(send, 1)? != block || own.cast_const() == from {
            return None;
        }
        // SAFETY: argument rule 3: `block` bytes each; MPI 5.0 §6 forbids that the buffers overlap.
        unsafe { copy(from, own, block) };
    }
    let show = |room: &mut perusal::ring::Room<'_>| {
        if !is_root {
            // SAFETY: argument rule 3: the caller sends `block` bytes, as many as there is room for.
            unsafe { copy(from, room.as_mut_ptr(), room.len()) }
        }
    };
    let each = |member: usize, bytes: &[u8]| {
        if member != root {
            // SAFETY: argument rule 3: the root has room for a block of each member.
            unsafe { copy(bytes.as_ptr(), to.add(member * block), bytes.len()) };
        }
        Ok(())
    };
    Some(run(team.gather(block, root, show, each)).map(drop))
}

/// MPI_Scatter.
#[inline(always)]
pub fn scatter(comm: CommHandle<'_>, send: Buffer<'_>, recv: Buffer<'_>, root: c_int) -> Option<Result<()>> {
    let mut team = team(comm, Collective::Scatter)?;
    let root = team.member(root)?;
    let (is_root, size) = (team.rank() == root, team.size());
    let (from, to) = (send.addr.cast::<u8>().cast_const(), recv.addr.cast::<u8>());
    let block = if is_root { few(send, size)? } else { few(recv, size)? };
    if is_root && !in_place(recv.addr) {
        let own = from.wrapping_add(root * block);
        if few(recv, 1)? != block || own == to.cast_const() {
            return None;
        }
        // SAFETY: argument rule 3: `block` bytes each; MPI 5.0 §6 forbids that the buffers overlap.
        unsafe { copy(own, to, block) };
    }
    // SAFETY: argument rule 3: the root has a block for each member.
    let all = |room: &mut perusal::ring::Room<'_>| unsafe { copy(from, room.as_mut_ptr(), room.len()) };
    // SAFETY: argument rule 3: the others have room for a block.
    let own = |bytes: &[u8]| unsafe { copy(bytes.as_ptr(), to, bytes.len()) };
    Some(run(team.scatter(block, root, all, own)).map(drop))
}

/// MPI_Reduce_scatter_block.
#[inline(always)]
pub fn reduce_scatter_block(
    comm: CommHandle<'_>,
    send: Buffer<'_>,
    recv: Buffer<'_>,
    op: usize,
) -> Option<Result<()>> {
    let from = operands(send, recv)?;
    let kernel = PlainKernel::new(op, recv.datatype)?;
    let mut team = team(comm, Collective::ReduceScatter)?;
    let block = few(recv, team.size())?;
    let bytes = block * team.size();
    // SAFETY: argument rule 3: a block of operands for each member, and room for one.
    let operands = unsafe { Operands::new(from, recv.addr.cast(), bytes, kernel.size) };
    Some(run(team.reduce_scatter(operands, |member| member * block..(member + 1) * block, &kernel)).map(drop))
}

/// MPI_Scan.
#[inline(always)]
pub fn scan(comm: CommHandle<'_>, send: Buffer<'_>, recv: Buffer<'_>, op: usize) -> Option<Result<()>> {
    prefix(comm, send, recv, op, true)
}

/// MPI_Exscan.
#[inline(always)]
pub fn exscan(comm: CommHandle<'_>, send: Buffer<'_>, recv: Buffer<'_>, op: usize) -> Option<Result<()>> {
    prefix(comm, send, recv, op, false)
}

#[inline(always)]
fn prefix(
    comm: CommHandle<'_>,
    send: Buffer<'_>,
    recv: Buffer<'_>,
    op: usize,
    inclusive: bool,
) -> Option<Result<()>> {
    let bytes = few(recv, 1)?;
    let from = operands(send, recv)?;
    let kernel = PlainKernel::new(op, recv.datatype)?;
    let mut team = team(comm, if inclusive { Collective::Scan } else { Collective::Exscan })?;
    if team.chains_scan(bytes) {
        return None;
    }
    // SAFETY: argument rule 3: so many bytes each.
    let operands = unsafe { Operands::new(from, recv.addr.cast(), bytes, kernel.size) };
    Some(run(team.scan(operands, inclusive, &kernel)).map(drop))
}

/// MPI_Reduce.
#[inline(always)]
pub fn reduce(
    comm: CommHandle<'_>,
    send: Buffer<'_>,
    recv: Buffer<'_>,
    op: usize,
    root: c_int,
) -> Option<Result<()>> {
    // In place has a meaning at the root only, and there the operands are the result's.
    let bytes = few(send, 1)?;
    let kernel = PlainKernel::new(op, send.datatype)?;
    let mut team = team(comm, Collective::Reduce)?;
    let root = team.member(root)?;
    if team.rank() == root && (!is_memory(recv.addr.addr()) || send.addr == recv.addr) {
        return None;
    }
    let (from, to) = (send.addr.cast_const().cast(), recv.addr.cast());
    // SAFETY: argument rule 3: so many bytes each; only the root's result is written.
    let operands = unsafe { Operands::new(from, to, bytes, kernel.size) };
    Some(run(team.reduce(operands, &kernel, root)).map(drop))
}

/// MPI_Allreduce.
#[inline(always)]
pub fn allreduce(comm: CommHandle<'_>, send: Buffer<'_>, recv: Buffer<'_>, op: usize) -> Option<Result<()>> {
    let bytes = few(recv, 1)?;
    let from = operands(send, recv)?;
    let kernel = PlainKernel::new(op, recv.datatype)?;
    let mut team = team(comm, Collective::Allreduce)?;
    // SAFETY: argument rule 3: so many bytes each.
    let operands = unsafe { Operands::new(from, recv.addr.cast(), bytes, kernel.size) };
    Some(run(team.allreduce(operands, &kernel)).map(drop))
}
