//! One function for each operation: from the arguments that its forms have in common to a [`CollectiveOp`].

use super::checks::{
    Peers, PiecesArgument, Varied, combine, destinations, distinct, distinct_piece, elements, in_place,
    is_leaf, is_root, members, peers, place, sources, unless_in_place,
};
use crate::arguments::{Buffer, Count, Integers, Unbounded};
use crate::coll::call::{CallRoot, CollectiveOp, Elements, TypedOp};
use crate::coll::intercomm::IntercommRoot;
use crate::comm::Comm;
use crate::datatype::Datatype;
use crate::datatypes;
use crate::error::{Error, Result};
use core::ffi::c_int;

/// MPI_Barrier.
pub fn barrier(_: &Comm) -> Result<CollectiveOp> {
    Ok(CollectiveOp::Barrier)
}

/// MPI_Bcast.
pub fn bcast(comm: &Comm, buffer: Buffer<'_>, root: c_int) -> Result<CollectiveOp> {
    let root = place(comm, root)?;
    let is_idle = root == CallRoot::Intercomm(IntercommRoot::Sibling);
    Ok(CollectiveOp::Bcast(if is_idle { nothing()? } else { elements(buffer)? }, root))
}

/// What a rank passes for what has no meaning there.
fn nothing() -> Result<Elements> {
    let datatype = Datatype::predefined(crate::abi::MPI_BYTE).ok_or(Error::Type("MPI_BYTE"))?;
    Elements::new(core::ptr::null_mut(), 0, datatype)
}

/// MPI_Gather.
pub fn gather(comm: &Comm, send: Buffer<'_>, recv: Buffer<'_>, root: c_int) -> Result<CollectiveOp> {
    gather_any(comm, send, recv, root, true)
}

/// MPI_Gatherv.
pub fn gatherv(comm: &Comm, send: Buffer<'_>, recv: Varied<'_>, root: c_int) -> Result<CollectiveOp> {
    gather_any(comm, send, recv, root, false)
}

fn gather_any(
    comm: &Comm,
    send: Buffer<'_>,
    recv: impl PiecesArgument,
    root: c_int,
    even: bool,
) -> Result<CollectiveOp> {
    let root = place(comm, root)?;
    let pieces = is_root(comm, root).then(|| recv.pieces(peers(comm))).transpose()?;
    let send = match root {
        CallRoot::Intracomm(_) if pieces.is_some() => unless_in_place(send, comm)?,
        _ if is_leaf(root) => Some(elements(send)?),
        _ => None,
    };
    if let (Some(send), Some(pieces), CallRoot::Intracomm(rank)) = (&send, &pieces, root) {
        distinct_piece(send, pieces, rank)?;
    }
    Ok(CollectiveOp::Gather(send, pieces, root, even))
}

/// MPI_Scatter.
pub fn scatter(comm: &Comm, send: Buffer<'_>, recv: Buffer<'_>, root: c_int) -> Result<CollectiveOp> {
    scatter_any(comm, send, recv, root, true)
}

/// MPI_Scatterv.
pub fn scatterv(comm: &Comm, send: Varied<'_>, recv: Buffer<'_>, root: c_int) -> Result<CollectiveOp> {
    scatter_any(comm, send, recv, root, false)
}

fn scatter_any(
    comm: &Comm,
    send: impl PiecesArgument,
    recv: Buffer<'_>,
    root: c_int,
    even: bool,
) -> Result<CollectiveOp> {
    let root = place(comm, root)?;
    let pieces = is_root(comm, root).then(|| send.pieces(peers(comm))).transpose()?;
    let recv = match root {
        CallRoot::Intracomm(_) if pieces.is_some() => unless_in_place(recv, comm)?,
        _ if is_leaf(root) => Some(elements(recv)?),
        _ => None,
    };
    if let (Some(recv), Some(pieces), CallRoot::Intracomm(rank)) = (&recv, &pieces, root) {
        distinct_piece(recv, pieces, rank)?;
    }
    Ok(CollectiveOp::Scatter(pieces, recv, root, even))
}

/// MPI_Allgather.
pub fn allgather(comm: &Comm, send: Buffer<'_>, recv: Buffer<'_>) -> Result<CollectiveOp> {
    allgather_any(comm, send, recv)
}

/// MPI_Allgatherv.
pub fn allgatherv(comm: &Comm, send: Buffer<'_>, recv: Varied<'_>) -> Result<CollectiveOp> {
    allgather_any(comm, send, recv)
}

fn allgather_any(comm: &Comm, send: Buffer<'_>, recv: impl PiecesArgument) -> Result<CollectiveOp> {
    let pieces = recv.pieces(peers(comm))?;
    let send = unless_in_place(send, comm)?;
    if let (Some(send), false) = (&send, comm.is_inter()) {
        distinct_piece(send, &pieces, comm.rank() as usize)?;
    }
    Ok(CollectiveOp::Allgather(send, pieces))
}

/// MPI_Alltoall.
pub fn alltoall(comm: &Comm, send: Buffer<'_>, recv: Buffer<'_>) -> Result<CollectiveOp> {
    alltoall_any(comm, send, recv)
}

/// MPI_Alltoallv, MPI_Alltoallw.
pub fn alltoallv(comm: &Comm, send: Varied<'_>, recv: Varied<'_>) -> Result<CollectiveOp> {
    alltoall_any(comm, send, recv)
}

fn alltoall_any<P: PiecesArgument>(comm: &Comm, send: P, recv: P) -> Result<CollectiveOp> {
    let recv = recv.pieces(peers(comm))?;
    if in_place(send.addr()) && !comm.is_inter() {
        return Ok(CollectiveOp::Alltoall(None, recv));
    }
    let send = send.pieces(peers(comm))?;
    if !comm.is_inter() {
        let own = send.piece(comm.rank() as usize);
        distinct_piece(&own, &recv, comm.rank() as usize)?;
    }
    Ok(CollectiveOp::Alltoall(Some(send), recv))
}

/// MPI_Reduce.
pub fn reduce(
    comm: &Comm,
    send: Buffer<'_>,
    recv: Buffer<'_>,
    op: usize,
    root: c_int,
) -> Result<CollectiveOp> {
    let root = place(comm, root)?;
    let at_root = is_root(comm, root);
    let datatype = recv.datatype;
    let recv = at_root.then(|| elements(recv)).transpose()?;
    let send = match root {
        CallRoot::Intracomm(_) if at_root => unless_in_place(send, comm)?,
        _ if is_leaf(root) => Some(elements(send)?),
        _ => None,
    };
    if let (Some(send), Some(recv)) = (&send, &recv) {
        distinct(send, recv)?;
    }
    let combine = match send.as_ref().or(recv.as_ref()) {
        Some(some) => combine(op, some, datatype)?,
        None => TypedOp { op: datatypes::op(op)?, handle: datatype, held: None },
    };
    Ok(CollectiveOp::Reduce(send, recv, combine, root))
}

/// Operands and results of an operation in which everybody has both.
fn operands(comm: &Comm, send: Buffer<'_>, recv: Buffer<'_>) -> Result<(Option<Elements>, Elements)> {
    let recv = elements(recv)?;
    let send = unless_in_place(send, comm)?;
    if let Some(send) = &send {
        distinct(send, &recv)?;
    }
    Ok((send, recv))
}

/// MPI_Allreduce.
pub fn allreduce(comm: &Comm, send: Buffer<'_>, recv: Buffer<'_>, op: usize) -> Result<CollectiveOp> {
    let datatype = recv.datatype;
    let (send, recv) = operands(comm, send, recv)?;
    let combine = combine(op, &recv, datatype)?;
    Ok(CollectiveOp::Allreduce(send, recv, combine))
}

fn reduce_scatter_any(
    comm: &Comm,
    send: Buffer<'_>,
    recv: Buffer<'_>,
    counts: Vec<usize>,
    op: usize,
) -> Result<CollectiveOp> {
    let datatype = recv.datatype;
    let sum = |sum: usize, &count| sum.checked_add(count).filter(|sum| i64::try_from(*sum).is_ok());
    let total = counts.iter().try_fold(0, sum).ok_or(Error::CountTooLarge(counts[0]))?;
    let own = counts[comm.rank() as usize];
    let recv = elements(recv.with_count(own))?;
    let combine = combine(op, &recv, datatype)?;
    let send = match unless_in_place(send.with_count(total), comm)? {
        Some(send) => {
            distinct(&send, &recv)?;
            send
        }
        // In place, all operands lie where the result comes.
        None => recv.with_count(total)?,
    };
    Ok(CollectiveOp::ReduceScatter(send, recv, counts, combine))
}

/// MPI_Reduce_scatter.
pub fn reduce_scatter(
    comm: &Comm,
    send: Buffer<'_>,
    recv: Buffer<'_>,
    counts: Unbounded<'_, Integers<'_>>,
    op: usize,
) -> Result<CollectiveOp> {
    let counts = members(comm).of(counts)?.counts()?;
    reduce_scatter_any(comm, send, recv, counts, op)
}

/// MPI_Reduce_scatter_block: both buffers have the count of a block.
pub fn reduce_scatter_block(
    comm: &Comm,
    send: Buffer<'_>,
    recv: Buffer<'_>,
    op: usize,
) -> Result<CollectiveOp> {
    let counts = vec![Count::checked(recv.count)?.0; comm.size() as usize];
    reduce_scatter_any(comm, send, recv, counts, op)
}

fn within_a_group(comm: &Comm) -> Result<()> {
    if comm.is_inter() { Err(Error::Comm("intercommunicators do not have this operation")) } else { Ok(()) }
}

/// MPI_Scan.
pub fn scan(comm: &Comm, send: Buffer<'_>, recv: Buffer<'_>, op: usize) -> Result<CollectiveOp> {
    within_a_group(comm)?;
    let datatype = recv.datatype;
    let (send, recv) = operands(comm, send, recv)?;
    let combine = combine(op, &recv, datatype)?;
    Ok(CollectiveOp::Scan(send, recv, combine))
}

/// MPI_Exscan.
pub fn exscan(comm: &Comm, send: Buffer<'_>, recv: Buffer<'_>, op: usize) -> Result<CollectiveOp> {
    within_a_group(comm)?;
    let datatype = recv.datatype;
    let (send, recv) = match comm.rank() {
        // Its result is not significant. But one at the operands is a mistake of all ranks: none of them takes part.
        0 if !in_place(send.addr) && send.addr != recv.addr => {
            elements(send).map(|own| (Some(own.clone()), own))?
        }
        _ => operands(comm, send, recv)?,
    };
    let combine = combine(op, &recv, datatype)?;
    Ok(CollectiveOp::Exscan(send, recv, combine))
}

/// MPI_Neighbor_allgather.
pub fn neighbor_allgather(comm: &Comm, send: Buffer<'_>, recv: Buffer<'_>) -> Result<CollectiveOp> {
    neighbor_allgather_any(comm, send, recv)
}

/// MPI_Neighbor_allgatherv.
pub fn neighbor_allgatherv(comm: &Comm, send: Buffer<'_>, recv: Varied<'_>) -> Result<CollectiveOp> {
    neighbor_allgather_any(comm, send, recv)
}

fn neighbor_allgather_any(comm: &Comm, send: Buffer<'_>, recv: impl PiecesArgument) -> Result<CollectiveOp> {
    let send = elements(destinations(comm)?.share(send)?)?;
    Ok(CollectiveOp::NeighbourAllgather(send, recv.pieces(sources(comm)?)?))
}

/// MPI_Neighbor_alltoall.
pub fn neighbor_alltoall(comm: &Comm, send: Buffer<'_>, recv: Buffer<'_>) -> Result<CollectiveOp> {
    neighbor_alltoall_any(comm, send, recv)
}

/// MPI_Neighbor_alltoallv, MPI_Neighbor_alltoallw.
pub fn neighbor_alltoallv(comm: &Comm, send: Varied<'_>, recv: Varied<'_>) -> Result<CollectiveOp> {
    neighbor_alltoall_any(comm, send, recv)
}

fn neighbor_alltoall_any<P: PiecesArgument>(comm: &Comm, send: P, recv: P) -> Result<CollectiveOp> {
    let (from, to): (Peers, Peers) = (sources(comm)?, destinations(comm)?);
    let send = send.pieces(to)?;
    let recv = recv.pieces(from)?;
    Ok(CollectiveOp::NeighbourAlltoall(send, recv))
}
