//! The fast paths of blocking collectives: not many bytes of a predefined type without gaps, among the members of an
//! intracommunicator whose team has been made, while nobody listens to events.
//!
//! As with messages (`mpi::p2p`), a fast path finds out nothing that is wrong. `None` means that it cannot be taken and has
//! done nothing that others see: the complete implementation is asked, which says what is wrong or does what is unusual. Members may take
//! different paths; in the memory of the team both look alike.

use super::arguments;
use super::checks::{in_place, members};
use crate::arguments::{Buffer, CommHandle, Integers, Unbounded};
use crate::coll::call::CollectiveOp;
use crate::coll::shared_memory::{BlockingTeam, Operands, show};
use crate::coll::{
    BlockingTransport, NumberedCall, Purpose, ReductionKernel, Scratch, Transport, algorithms, run, team_of,
};
use crate::comm::Comm;
use crate::datatype::Basic;
use crate::datatype::op::Op;
use crate::datatypes::contiguous_size;
use crate::engine::describing;
use crate::error::Result;
use crate::events::{Collective, fast_path_is_open};
use crate::messages::is_memory;
use crate::process::running;
use crate::shm::telemetry::CollectiveAbout;
use crate::team::PAYLOAD;
use core::ffi::c_int;
use perusal::ring::Room;

/// Most bytes of a member's data. What the complete implementation finds out about a call is little beside the copies of more.
const MOST: usize = 32 << 10;

/// The team of a communicator.
#[inline(always)]
fn team<'a>(comm: CommHandle<'a>, operation: Collective) -> Option<BlockingTeam<'a>> {
    if !fast_path_is_open() {
        return None;
    }
    team_of(running()?, comm.peek()?, operation)
}

/// Bytes of some elements that begin somewhere.
#[inline(always)]
fn few(buffer: Buffer<'_>) -> Option<usize> {
    let (count, size) = (usize::try_from(buffer.count).ok()?, contiguous_size(buffer.datatype)?);
    let bytes = count.checked_mul(size)?;
    (bytes > 0 && bytes <= MOST && is_memory(buffer.addr.addr())).then_some(bytes)
}

/// Performs `$call` on `$team`, of which a member shows `$bytes` bytes; `None` if the team does not serve it. `$what` is the call, for a report if it waits long. A
/// macro, so that nothing lies between a call of few bytes and the team.
macro_rules! perform {
    ($team:ident, $bytes:expr, $what:expr, $call:expr) => {{
        if $bytes <= PAYLOAD {
            // Such a call takes one round, as which it counts; what it is, the slot says.
            return Some(run($call).map(drop));
        }
        let (comm, before) = ($team.comm(), $team.round());
        let number = comm.call_number(before);
        let result = describing(&|| about(&$what, comm, number), || run($call));
        let done = !matches!(result, Ok(false));
        $team.count_call(before, done);
        done.then(|| result.map(drop))
    }};
}

/// Performs a call by messages: one between two members, or a chain.
#[inline(always)]
fn by_messages(
    comm: CommHandle<'_>,
    purpose: Purpose,
    what: impl Fn(&Comm) -> Result<CollectiveOp>,
    call: impl AsyncFnOnce(&BlockingTransport<'_>) -> Result<()>,
) -> Option<Result<()>> {
    let (engine, comm) = (running()?, comm.peek()?);
    let numbered = NumberedCall::begin(engine, comm);
    let transport = BlockingTransport::new(engine, comm, purpose);
    let about = || about(&what, comm, numbered.number);
    Some(describing(&about, || transport.run(call(&transport))))
}

/// What a report says of call `number` on `comm`.
#[cold]
fn about(what: impl Fn(&Comm) -> Result<CollectiveOp>, comm: &Comm, number: u64) -> CollectiveAbout {
    what(comm).map_or_else(|_| CollectiveAbout::default(), |call| call.outline(number).about())
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
    let bytes = few(buffer)?;
    let mut team = team(comm, Collective::Bcast)?;
    let root = team.member(root)?;
    // SAFETY: argument rule 3: the buffer has so many bytes, which the call may change.
    let data = unsafe { core::slice::from_raw_parts_mut(buffer.addr.cast(), bytes) };
    let what = |comm: &Comm| arguments::bcast(comm, buffer, root as c_int);
    if team.is_one_message(Collective::Bcast, bytes) {
        let is_root = team.rank() == root;
        drop(team);
        return by_messages(comm, Purpose::Bcast, what, async |transport| match is_root {
            true => transport.send(1 - root, data).await,
            false => transport.recv(root, data).await,
        });
    }
    perform!(team, bytes, what, team.bcast(data, root))
}

/// MPI_Allgather.
#[inline(always)]
pub fn allgather(comm: CommHandle<'_>, send: Buffer<'_>, recv: Buffer<'_>) -> Option<Result<()>> {
    let block = few(recv)?;
    let is_in_place = in_place(send.addr);
    if !is_in_place && few(send)? != block {
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
    let what = |comm: &Comm| arguments::allgather(comm, send, recv);
    perform!(team, block, what, team.allgather(all, block))
}

/// MPI_Alltoall.
#[inline(always)]
pub fn alltoall(comm: CommHandle<'_>, send: Buffer<'_>, recv: Buffer<'_>) -> Option<Result<()>> {
    let block = few(recv)?;
    if few(send)? != block || send.addr == recv.addr {
        return None;
    }
    let mut team = team(comm, Collective::Alltoall)?;
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
    let read =
        |peer: usize, at: usize, room: &mut Room<'_>| show(&from[peer * block + at..][..room.len()], room);
    // SAFETY: argument rule 3: a block of each member, within which the bytes from `at` on lie.
    let write = |peer: usize, at: usize, data: &[u8]| unsafe {
        copy(data.as_ptr(), to.add(peer * block + at), data.len());
    };
    perform!(team, all, what, team.alltoall(block, read, write))
}

/// MPI_Gather.
#[inline(always)]
pub fn gather(comm: CommHandle<'_>, send: Buffer<'_>, recv: Buffer<'_>, root: c_int) -> Option<Result<()>> {
    let mut team = team(comm, Collective::Gather)?;
    let root = team.member(root)?;
    let is_root = team.rank() == root;
    let (from, to) = (send.addr.cast::<u8>().cast_const(), recv.addr.cast::<u8>());
    let block = if is_root { few(recv)? } else { few(send)? };
    let own = to.wrapping_add(root * block);
    if team.is_long(block) {
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
    if team.is_one_message(Collective::Gather, block) {
        let other = to.wrapping_add((1 - root) * block);
        drop(team);
        return by_messages(comm, Purpose::Gather, what, async |transport| match is_root {
            // SAFETY: argument rule 3: the root has room for a block of each member.
            true => transport.recv(1 - root, unsafe { core::slice::from_raw_parts_mut(other, block) }).await,
            // SAFETY: argument rule 3: the caller sends `block` bytes.
            false => transport.send(root, unsafe { core::slice::from_raw_parts(from, block) }).await,
        });
    }
    let own = |room: &mut Room<'_>| {
        if !is_root {
            // SAFETY: argument rule 3: the caller sends `block` bytes.
            show(unsafe { core::slice::from_raw_parts(from, block) }, room);
        }
    };
    let each = |member: usize, bytes: &[u8]| {
        if member != root {
            // SAFETY: argument rule 3: the root has room for a block of each member.
            unsafe { copy(bytes.as_ptr(), to.add(member * block), bytes.len()) };
        }
        Ok(())
    };
    perform!(team, block, what, team.gather(block, root, own, each))
}

/// MPI_Scatter.
#[inline(always)]
pub fn scatter(comm: CommHandle<'_>, send: Buffer<'_>, recv: Buffer<'_>, root: c_int) -> Option<Result<()>> {
    let mut team = team(comm, Collective::Scatter)?;
    let root = team.member(root)?;
    let (is_root, size) = (team.rank() == root, team.size());
    let (from, to) = (send.addr.cast::<u8>().cast_const(), recv.addr.cast::<u8>());
    let block = if is_root { few(send)? } else { few(recv)? };
    if block * size > MOST || team.is_long(block) {
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
    if team.is_one_message(Collective::Scatter, block) {
        let other = from.wrapping_add((1 - root) * block);
        drop(team);
        return by_messages(comm, Purpose::Scatter, what, async |transport| match is_root {
            // SAFETY: argument rule 3: the root has a block for each member.
            true => transport.send(1 - root, unsafe { core::slice::from_raw_parts(other, block) }).await,
            // SAFETY: argument rule 3: the others have room for a block.
            false => transport.recv(root, unsafe { core::slice::from_raw_parts_mut(to, block) }).await,
        });
    }
    // SAFETY: argument rule 3: the root has a block for each member.
    let all = |room: &mut Room<'_>| show(unsafe { core::slice::from_raw_parts(from, block * size) }, room);
    // SAFETY: argument rule 3: the others have room for a block.
    let own = |bytes: &[u8]| unsafe { copy(bytes.as_ptr(), to, bytes.len()) };
    perform!(team, block * size, what, team.scatter(block, root, all, own))
}

/// MPI_Reduce_scatter_block.
#[inline(always)]
pub fn reduce_scatter_block(
    comm: CommHandle<'_>,
    send: Buffer<'_>,
    recv: Buffer<'_>,
    op: usize,
) -> Option<Result<()>> {
    reduce_blocks(comm, send, recv, op, |comm| arguments::reduce_scatter_block(comm, send, recv, op))
}

/// MPI_Reduce_scatter, where all members get as many elements.
#[inline(always)]
pub fn reduce_scatter(
    comm: CommHandle<'_>,
    send: Buffer<'_>,
    recv: Buffer<'_>,
    counts: Unbounded<'_, Integers<'_>>,
    op: usize,
) -> Option<Result<()>> {
    let mut each = members(comm.peek()?).of(counts).ok()?.iter();
    let count = each.next()?;
    if each.any(|other| other != count) {
        return None;
    }
    let count = usize::try_from(count).ok()?;
    let what = |comm: &Comm| arguments::reduce_scatter(comm, send, recv, counts, op);
    reduce_blocks(comm, send.with_count(count), recv.with_count(count), op, what)
}

/// A reduce-scatter of which each member gets the elements of `recv`.
#[inline(always)]
fn reduce_blocks(
    comm: CommHandle<'_>,
    send: Buffer<'_>,
    recv: Buffer<'_>,
    op: usize,
    what: impl Fn(&Comm) -> Result<CollectiveOp>,
) -> Option<Result<()>> {
    let from = operands(send, recv)?;
    let kernel = PlainKernel::new(op, recv.datatype)?;
    let mut team = team(comm, Collective::ReduceScatter)?;
    let block = few(recv)?;
    let bytes = block * team.size();
    if bytes > MOST {
        return None;
    }
    // SAFETY: argument rule 3: a block of operands for each member, and room for one.
    let operands = unsafe { Operands::new(from, recv.addr.cast(), bytes, kernel.size) };
    let range = |member| member * block..(member + 1) * block;
    perform!(team, bytes, what, team.reduce_scatter(operands, range, &kernel))
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
    let bytes = few(recv)?;
    let from = operands(send, recv)?;
    let kernel = PlainKernel::new(op, recv.datatype)?;
    let mut team = team(comm, if inclusive { Collective::Scan } else { Collective::Exscan })?;
    let what = |comm: &Comm| match inclusive {
        true => arguments::scan(comm, send, recv, op),
        false => arguments::exscan(comm, send, recv, op),
    };
    if team.chains_scan(bytes) {
        drop(team);
        // SAFETY: argument rule 3: so many bytes each.
        let own = unsafe { core::slice::from_raw_parts(from, bytes) };
        return by_messages(comm, Purpose::Scan, what, async |transport| {
            let result = if inclusive {
                let mut reduced = Scratch::copy_of(own)?;
                algorithms::scan(transport, &mut reduced, &kernel).await?;
                Some(reduced)
            } else {
                algorithms::exscan(transport, own, &kernel).await?
            };
            if let Some(result) = result {
                // SAFETY: argument rule 3: room for as many; in place, the operands are not read any more.
                unsafe { copy(result.as_ptr(), recv.addr.cast(), bytes) };
            }
            Ok(())
        });
    }
    // SAFETY: argument rule 3: so many bytes each.
    let operands = unsafe { Operands::new(from, recv.addr.cast(), bytes, kernel.size) };
    perform!(team, bytes, what, team.scan(operands, inclusive, &kernel))
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
    let bytes = few(send)?;
    let kernel = PlainKernel::new(op, send.datatype)?;
    let mut team = team(comm, Collective::Reduce)?;
    let root = team.member(root)?;
    if team.rank() == root && (!is_memory(recv.addr.addr()) || send.addr == recv.addr) {
        return None;
    }
    let (from, to) = (send.addr.cast_const().cast(), recv.addr.cast());
    // SAFETY: argument rule 3: so many bytes each; only the root's result is written.
    let operands = unsafe { Operands::new(from, to, bytes, kernel.size) };
    let what = |comm: &Comm| arguments::reduce(comm, send, recv, op, root as c_int);
    if team.is_one_message(Collective::Reduce, bytes) {
        let is_root = team.rank() == root;
        drop(team);
        // SAFETY: argument rule 3: so many bytes.
        let own = unsafe { core::slice::from_raw_parts(from, bytes) };
        return by_messages(comm, Purpose::Reduce, what, async |transport| {
            let mut reduced = Scratch::copy_of(own)?;
            algorithms::reduce(transport, &mut reduced, root, &kernel).await?;
            if is_root {
                // SAFETY: argument rule 3: the root has room for as many.
                unsafe { copy(reduced.as_ptr(), to, bytes) };
            }
            Ok(())
        });
    }
    perform!(team, bytes, what, team.reduce(operands, &kernel, root))
}

/// MPI_Allreduce.
#[inline(always)]
pub fn allreduce(comm: CommHandle<'_>, send: Buffer<'_>, recv: Buffer<'_>, op: usize) -> Option<Result<()>> {
    let bytes = few(recv)?;
    let from = operands(send, recv)?;
    let kernel = PlainKernel::new(op, recv.datatype)?;
    let mut team = team(comm, Collective::Allreduce)?;
    // SAFETY: argument rule 3: so many bytes each.
    let operands = unsafe { Operands::new(from, recv.addr.cast(), bytes, kernel.size) };
    let what = |comm: &Comm| arguments::allreduce(comm, send, recv, op);
    perform!(team, bytes, what, team.allreduce(operands, &kernel))
}
