//! The fast paths of blocking and nonblocking collectives: not many bytes of a predefined type without gaps, among the
//! members of an intracommunicator whose team has been made, while nobody listens to events.
//!
//! As with messages (`mpi::p2p`), a fast path finds out nothing that is wrong. `None` means that it cannot be taken and
//! has done nothing that others see: the complete implementation is asked, which says what is wrong or does what is
//! unusual. Members may take different paths; in the memory of the team both look alike.

use super::arguments;
use super::checks::{in_place, members};
use super::performer::Performer;
use crate::arch::copy_run;
use crate::arguments::{Buffer, Integers, Unbounded};
use crate::coll::call::CollectiveOp;
use crate::coll::shared_memory::{Operands, show};
use crate::coll::{Purpose, ReductionKernel, Transport, algorithms, pair};
use crate::comm::Comm;
use crate::datatype::Basic;
use crate::datatype::op::BasicReduction;
use crate::datatypes::contiguous_size;
use crate::error::Result;
use crate::events::Collective;
use crate::messages::is_memory;
use core::ffi::c_int;
use perusal::ring::Room;

/// Most bytes of a member's data. What the complete implementation finds out about a call is little beside the copies
/// of more.
pub(super) const MOST: usize = 32 << 10;

/// Bytes of some elements that begin somewhere.
#[inline(always)]
fn few(buffer: Buffer<'_>) -> Option<usize> {
    let (count, size) = (usize::try_from(buffer.count).ok()?, contiguous_size(buffer.datatype)?);
    let bytes = count.checked_mul(size)?;
    (bytes > 0 && bytes <= MOST && is_memory(buffer.addr.addr())).then_some(bytes)
}

/// Where the operands are of an operation in which every member has operands and gets a result:
/// in place, where the result comes.
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
pub(super) unsafe fn copy(from: *const u8, to: *mut u8, len: usize) {
    if from != to.cast_const() {
        // SAFETY: they hold `len` bytes and differ, so that they are apart.
        unsafe { copy_run(from, to, len) };
    }
}

/// A predefined operation on a basic type that it takes.
///
/// It fits into registers and owns nothing: what is moved in memory is loaded right after it was stored, which can take
/// as long as a line (decision 53).
#[derive(Clone, Copy)]
struct PlainKernel {
    reduction: BasicReduction,
    /// Bytes of a value, a power of two.
    size: usize,
}

impl PlainKernel {
    #[inline(always)]
    fn new(op: usize, datatype: usize) -> Option<Self> {
        let basic = Basic::of(datatype)?;
        let (reduction, size) = (BasicReduction::of(op, basic)?, basic.size());
        size.is_power_of_two().then_some(Self { reduction, size })
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
        unsafe { self.reduction.apply(left.as_ptr(), right.as_mut_ptr(), count) };
        Ok(())
    }
}

/// MPI_Barrier.
#[inline(always)]
pub fn barrier<'a, P: Performer<'a>>(performer: P) -> Option<P::Outcome> {
    let team = performer.team(Collective::Barrier)?;
    performer.in_round(team, arguments::barrier, async |team| team.barrier().await)
}

/// MPI_Bcast.
#[inline(always)]
pub fn bcast<'a, P: Performer<'a>>(performer: P, buffer: Buffer<'_>, root: c_int) -> Option<P::Outcome> {
    let bytes = few(buffer)?;
    let mut team = performer.team(Collective::Bcast)?;
    let root = team.member(root)?;
    // SAFETY: argument rule 3: the buffer has so many bytes, which the call may change.
    let data = unsafe { core::slice::from_raw_parts_mut(buffer.addr.cast(), bytes) };
    let what = |comm: &Comm| arguments::bcast(comm, buffer, root as c_int);
    if team.goes_by_messages(Collective::Bcast, bytes) {
        let is_root = team.rank() == root;
        drop(team);
        return performer.by_messages(
            Purpose::Bcast,
            what,
            async move |transport: &P::Transport| match is_root {
                true => transport.send(1 - root, data).await,
                false => transport.recv(root, data).await,
            },
        );
    }
    performer.in_team(team, bytes, what, async move |team| team.bcast(data, root).await)
}

/// MPI_Allgather.
#[inline(always)]
pub fn allgather<'a, P: Performer<'a>>(
    performer: P,
    send: Buffer<'_>,
    recv: Buffer<'_>,
) -> Option<P::Outcome> {
    let block = few(recv)?;
    let is_in_place = in_place(send.addr);
    if !is_in_place && few(send)? != block {
        return None;
    }
    let team = performer.team(Collective::Allgather)?;
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
    let what = |comm: &Comm| arguments::allgather(comm, send, recv);
    performer.in_team(team, block, what, async move |team| team.allgather(all, block).await)
}

/// MPI_Alltoall.
#[inline(always)]
pub fn alltoall<'a, P: Performer<'a>>(
    performer: P,
    send: Buffer<'_>,
    recv: Buffer<'_>,
) -> Option<P::Outcome> {
    let block = few(recv)?;
    if few(send)? != block || send.addr == recv.addr {
        return None;
    }
    let mut team = performer.team(Collective::Alltoall)?;
    let all = block * team.size();
    if all > MOST || team.is_long(block) {
        return None;
    }
    let (from, to) = (send.addr.cast::<u8>().cast_const(), recv.addr.cast::<u8>());
    let own = team.rank() * block;
    // SAFETY: argument rule 3: both buffers have a block for each member, and MPI 5.0 §6 forbids that they overlap.
    let from = unsafe {
        copy(from.add(own), to.add(own), block);
        core::slice::from_raw_parts(from, all)
    };
    let what = |comm: &Comm| arguments::alltoall(comm, send, recv);
    let read = move |peer: usize, at: usize, room: &mut Room<'_>| {
        show(&from[peer * block + at..][..room.len()], room)
    };
    // SAFETY: argument rule 3: a block of each member, within which the bytes from `at` on lie.
    let write = move |peer: usize, at: usize, data: &[u8]| unsafe {
        copy(data.as_ptr(), to.add(peer * block + at), data.len());
    };
    performer
        .in_team(team, all, what, async move |team| team.alltoall(block, Some((from, to)), read, write).await)
}

/// MPI_Gather.
#[inline(always)]
pub fn gather<'a, P: Performer<'a>>(
    performer: P,
    send: Buffer<'_>,
    recv: Buffer<'_>,
    root: c_int,
) -> Option<P::Outcome> {
    let mut team = performer.team(Collective::Gather)?;
    let root = team.member(root)?;
    let is_root = team.rank() == root;
    let (from, to) = (send.addr.cast::<u8>().cast_const(), recv.addr.cast::<u8>());
    let block = if is_root { few(recv)? } else { few(send)? };
    let own = to.wrapping_add(root * block);
    let by_messages = team.goes_by_messages(Collective::Gather, block);
    if team.is_long(block) || by_messages && team.size() > 2 {
        return None;
    }
    if is_root && !in_place(send.addr) {
        if few(send)? != block || own.cast_const() == from {
            return None;
        }
        // SAFETY: argument rule 3: `block` bytes each; MPI 5.0 §6 forbids that the buffers overlap.
        unsafe { copy(from, own, block) };
    }
    let what = |comm: &Comm| arguments::gather(comm, send, recv, root as c_int);
    if by_messages {
        let other = to.wrapping_add((1 - root) * block);
        drop(team);
        return performer.by_messages(Purpose::Gather, what, async move |transport: &P::Transport| {
            if is_root {
                // SAFETY: argument rule 3: the root has room for a block of each member.
                let room = unsafe { core::slice::from_raw_parts_mut(other, block) };
                return transport.recv(1 - root, room).await;
            }
            // SAFETY: argument rule 3: the caller sends `block` bytes.
            transport.send(root, unsafe { core::slice::from_raw_parts(from, block) }).await
        });
    }
    let own = move |room: &mut Room<'_>| {
        if !is_root {
            // SAFETY: argument rule 3: the caller sends `block` bytes.
            show(unsafe { core::slice::from_raw_parts(from, block) }, room);
        }
    };
    let each = move |member: usize, bytes: &[u8]| {
        if member != root {
            // SAFETY: argument rule 3: the root has room for a block of each member.
            unsafe { copy(bytes.as_ptr(), to.add(member * block), bytes.len()) };
        }
        Ok(())
    };
    performer.in_team(team, block, what, async move |team| team.gather(block, root, own, each).await)
}

/// MPI_Scatter.
#[inline(always)]
pub fn scatter<'a, P: Performer<'a>>(
    performer: P,
    send: Buffer<'_>,
    recv: Buffer<'_>,
    root: c_int,
) -> Option<P::Outcome> {
    let mut team = performer.team(Collective::Scatter)?;
    let root = team.member(root)?;
    let (is_root, size) = (team.rank() == root, team.size());
    let (from, to) = (send.addr.cast::<u8>().cast_const(), recv.addr.cast::<u8>());
    let block = if is_root { few(send)? } else { few(recv)? };
    let by_messages = team.goes_by_messages(Collective::Scatter, block);
    if block * size > MOST || team.is_long(block) || by_messages && size > 2 {
        return None;
    }
    if is_root && !in_place(recv.addr) {
        let own = from.wrapping_add(root * block);
        if few(recv)? != block || own == to.cast_const() {
            return None;
        }
        // SAFETY: argument rule 3: `block` bytes each; MPI 5.0 §6 forbids that the buffers overlap.
        unsafe { copy(own, to, block) };
    }
    let what = |comm: &Comm| arguments::scatter(comm, send, recv, root as c_int);
    if by_messages {
        let other = from.wrapping_add((1 - root) * block);
        drop(team);
        return performer.by_messages(Purpose::Scatter, what, async move |transport: &P::Transport| {
            match is_root {
                // SAFETY: argument rule 3: the root has a block for each member.
                true => transport.send(1 - root, unsafe { core::slice::from_raw_parts(other, block) }).await,
                // SAFETY: argument rule 3: the others have room for a block.
                false => transport.recv(root, unsafe { core::slice::from_raw_parts_mut(to, block) }).await,
            }
        });
    }
    // SAFETY: argument rule 3: the root has a block for each member.
    let all: &[u8] = if is_root { unsafe { core::slice::from_raw_parts(from, block * size) } } else { &[] };
    // SAFETY: argument rule 3: the others have room for a block.
    let own = move |bytes: &[u8]| unsafe { copy(bytes.as_ptr(), to, bytes.len()) };
    let shown = block * (size - 1);
    performer.in_team(team, shown, what, async move |team| team.scatter(block, root, all, own).await)
}

/// MPI_Reduce_scatter_block.
#[inline(always)]
pub fn reduce_scatter_block<'a, P: Performer<'a>>(
    performer: P,
    send: Buffer<'_>,
    recv: Buffer<'_>,
    op: usize,
) -> Option<P::Outcome> {
    reduce_blocks(performer, send, recv, op, |comm| arguments::reduce_scatter_block(comm, send, recv, op))
}

/// MPI_Reduce_scatter, where all members get as many elements.
#[inline(always)]
pub fn reduce_scatter<'a, P: Performer<'a>>(
    performer: P,
    send: Buffer<'_>,
    recv: Buffer<'_>,
    counts: Unbounded<'_, Integers<'_>>,
    op: usize,
) -> Option<P::Outcome> {
    let mut each = members(performer.comm()?).of(counts).ok()?.iter();
    let count = each.next()?;
    if each.any(|other| other != count) {
        return None;
    }
    let count = usize::try_from(count).ok()?;
    let what = |comm: &Comm| arguments::reduce_scatter(comm, send, recv, counts, op);
    reduce_blocks(performer, send.with_count(count), recv.with_count(count), op, what)
}

/// A reduce-scatter of which each member gets the elements of `recv`.
#[inline(always)]
fn reduce_blocks<'a, P: Performer<'a>>(
    performer: P,
    send: Buffer<'_>,
    recv: Buffer<'_>,
    op: usize,
    what: impl Fn(&Comm) -> Result<CollectiveOp>,
) -> Option<P::Outcome> {
    let from = operands(send, recv)?;
    let kernel = PlainKernel::new(op, recv.datatype)?;
    let team = performer.team(Collective::ReduceScatter)?;
    let block = few(recv)?;
    let bytes = block * team.size();
    if bytes > MOST {
        return None;
    }
    // SAFETY: argument rule 3: a block of operands for each member, and room for one.
    let operands = unsafe { Operands::new(from, recv.addr.cast(), bytes, kernel.size) };
    let range = move |member| member * block..(member + 1) * block;
    performer
        .in_team(team, bytes, what, async move |team| team.reduce_scatter(operands, range, &kernel).await)
}

/// MPI_Scan.
#[inline(always)]
pub fn scan<'a, P: Performer<'a>>(
    performer: P,
    send: Buffer<'_>,
    recv: Buffer<'_>,
    op: usize,
) -> Option<P::Outcome> {
    prefix(performer, send, recv, op, true)
}

/// MPI_Exscan.
#[inline(always)]
pub fn exscan<'a, P: Performer<'a>>(
    performer: P,
    send: Buffer<'_>,
    recv: Buffer<'_>,
    op: usize,
) -> Option<P::Outcome> {
    prefix(performer, send, recv, op, false)
}

#[inline(always)]
fn prefix<'a, P: Performer<'a>>(
    performer: P,
    send: Buffer<'_>,
    recv: Buffer<'_>,
    op: usize,
    inclusive: bool,
) -> Option<P::Outcome> {
    let bytes = few(recv)?;
    let from = operands(send, recv)?;
    let kernel = PlainKernel::new(op, recv.datatype)?;
    let operation = if inclusive { Collective::Scan } else { Collective::Exscan };
    let mut team = performer.team(operation)?;
    let what = |comm: &Comm| match inclusive {
        true => arguments::scan(comm, send, recv, op),
        false => arguments::exscan(comm, send, recv, op),
    };
    // SAFETY: argument rule 3: so many bytes each.
    let operands = unsafe { Operands::new(from, recv.addr.cast(), bytes, kernel.size) };
    if team.goes_by_messages(operation, bytes) {
        drop(team);
        return performer.by_messages(Purpose::Scan, what, async move |transport: &P::Transport| {
            match inclusive {
                true => algorithms::scan(transport, operands, &kernel).await,
                false => algorithms::exscan(transport, operands, &kernel).await,
            }
        });
    }
    performer.in_team(team, bytes, what, async move |team| team.scan(operands, inclusive, &kernel).await)
}

/// MPI_Reduce.
#[inline(always)]
pub fn reduce<'a, P: Performer<'a>>(
    performer: P,
    send: Buffer<'_>,
    recv: Buffer<'_>,
    op: usize,
    root: c_int,
) -> Option<P::Outcome> {
    // In place has a meaning at the root only, and there the operands are the result's.
    let bytes = few(send)?;
    let kernel = PlainKernel::new(op, send.datatype)?;
    let mut team = performer.team(Collective::Reduce)?;
    let root = team.member(root)?;
    if team.rank() == root && (!is_memory(recv.addr.addr()) || send.addr == recv.addr) {
        return None;
    }
    let (from, to) = (send.addr.cast_const().cast(), recv.addr.cast());
    // SAFETY: argument rule 3: so many bytes each; only the root's result is written.
    let operands = unsafe { Operands::new(from, to, bytes, kernel.size) };
    let what = |comm: &Comm| arguments::reduce(comm, send, recv, op, root as c_int);
    if team.goes_by_messages(Collective::Reduce, bytes) {
        drop(team);
        return performer.by_messages(Purpose::Reduce, what, async move |transport: &P::Transport| {
            pair::reduce(transport, operands, root, &kernel).await.map(drop)
        });
    }
    performer.in_team(team, bytes, what, async move |team| team.reduce(operands, &kernel, root).await)
}

/// MPI_Allreduce.
#[inline(always)]
pub fn allreduce<'a, P: Performer<'a>>(
    performer: P,
    send: Buffer<'_>,
    recv: Buffer<'_>,
    op: usize,
) -> Option<P::Outcome> {
    let bytes = few(recv)?;
    let from = operands(send, recv)?;
    let kernel = PlainKernel::new(op, recv.datatype)?;
    let team = performer.team(Collective::Allreduce)?;
    // SAFETY: argument rule 3: so many bytes each.
    let operands = unsafe { Operands::new(from, recv.addr.cast(), bytes, kernel.size) };
    let what = |comm: &Comm| arguments::allreduce(comm, send, recv, op);
    performer.in_team(team, bytes, what, async move |team| team.allreduce(operands, &kernel).await)
}
