//! One function for each operation: from the arguments that its forms have in common to a [`Call`].
//!
//! Safety, for all of them: arrays have an element for each peer (rank of the group; rank of the remote group of an
//! intercommunicator; neighbour), and buffers are as the standard asks until the call has been performed.

// C's argument lists, with the communicator in front.
#![allow(clippy::too_many_arguments)]

use super::checks::{
    Number, Raw, RawPieces, RawV, RawW, combine, count, counts, distinct, distinct_piece, in_place, is_leaf,
    is_root, place,
};
use crate::capi::datatypes;
use crate::coll::call::{Call, CallRoot, Elements, Form, Pieces, TypedOp};
use crate::coll::intercomm::IntercommRoot;
use crate::comm::{Comm, Topology};
use crate::datatype::Datatype;
use crate::error::{Error, Result};
use core::ffi::{c_int, c_void};

type In = *const c_void;
type Out = *mut c_void;

fn peers(comm: &Comm) -> usize {
    comm.peers().size() as usize
}

pub unsafe fn barrier(_: &Comm) -> Result<Call> {
    Ok(Call::Barrier)
}

pub unsafe fn bcast<N: Number>(comm: &Comm, buffer: Out, n: N, datatype: usize, root: c_int) -> Result<Call> {
    let root = place(comm, root)?;
    let raw = Raw { addr: buffer.cast_const(), count: n, datatype };
    let data = if root == CallRoot::Intercomm(IntercommRoot::Sibling) { nothing()? } else { raw.elements()? };
    Ok(Call::Bcast(data, root))
}

/// What a rank passes for what has no meaning there.
fn nothing() -> Result<Elements> {
    let datatype = Datatype::predefined(crate::abi::MPI_BYTE).ok_or(Error::Type("MPI_BYTE"))?;
    Ok(Elements { addr: core::ptr::null_mut(), count: 0, datatype })
}

unsafe fn gathered<N: Number>(comm: &Comm, send: Raw<N>, recv: impl RawPieces, root: c_int) -> Result<Call> {
    let root = place(comm, root)?;
    // SAFETY: the module's contract.
    let pieces = is_root(comm, root).then(|| unsafe { recv.pieces(peers(comm)) }).transpose()?;
    let send = match root {
        CallRoot::Intracomm(_) if pieces.is_some() => send.unless_in_place(comm)?,
        _ if is_leaf(root) => Some(send.elements()?),
        _ => None,
    };
    if let (Some(send), Some(pieces), CallRoot::Intracomm(rank)) = (&send, &pieces, root) {
        distinct_piece(send, pieces, rank)?;
    }
    Ok(Call::Gather(send, pieces, root))
}

pub unsafe fn gather<N: Number>(
    comm: &Comm,
    sendbuf: In,
    sendcount: N,
    sendtype: usize,
    recvbuf: Out,
    recvcount: N,
    recvtype: usize,
    root: c_int,
) -> Result<Call> {
    let send = Raw { addr: sendbuf, count: sendcount, datatype: sendtype };
    let recv = Raw { addr: recvbuf.cast_const(), count: recvcount, datatype: recvtype };
    // SAFETY: the module's contract.
    unsafe { gathered(comm, send, recv, root) }
}

pub unsafe fn gatherv<N: Number, D: Number>(
    comm: &Comm,
    sendbuf: In,
    sendcount: N,
    sendtype: usize,
    recvbuf: Out,
    recvcounts: *const N,
    displs: *const D,
    recvtype: usize,
    root: c_int,
) -> Result<Call> {
    let send = Raw { addr: sendbuf, count: sendcount, datatype: sendtype };
    let recv = RawV { addr: recvbuf.cast_const(), counts: recvcounts, displs, datatype: recvtype };
    // SAFETY: the module's contract.
    unsafe { gathered(comm, send, recv, root) }
}

unsafe fn scattered<N: Number>(comm: &Comm, send: impl RawPieces, recv: Raw<N>, root: c_int) -> Result<Call> {
    let root = place(comm, root)?;
    // SAFETY: the module's contract.
    let pieces = is_root(comm, root).then(|| unsafe { send.pieces(peers(comm)) }).transpose()?;
    let recv = match root {
        CallRoot::Intracomm(_) if pieces.is_some() => recv.unless_in_place(comm)?,
        _ if is_leaf(root) => Some(recv.elements()?),
        _ => None,
    };
    if let (Some(recv), Some(pieces), CallRoot::Intracomm(rank)) = (&recv, &pieces, root) {
        distinct_piece(recv, pieces, rank)?;
    }
    Ok(Call::Scatter(pieces, recv, root))
}

pub unsafe fn scatter<N: Number>(
    comm: &Comm,
    sendbuf: In,
    sendcount: N,
    sendtype: usize,
    recvbuf: Out,
    recvcount: N,
    recvtype: usize,
    root: c_int,
) -> Result<Call> {
    let send = Raw { addr: sendbuf, count: sendcount, datatype: sendtype };
    let recv = Raw { addr: recvbuf.cast_const(), count: recvcount, datatype: recvtype };
    // SAFETY: the module's contract.
    unsafe { scattered(comm, send, recv, root) }
}

pub unsafe fn scatterv<N: Number, D: Number>(
    comm: &Comm,
    sendbuf: In,
    sendcounts: *const N,
    displs: *const D,
    sendtype: usize,
    recvbuf: Out,
    recvcount: N,
    recvtype: usize,
    root: c_int,
) -> Result<Call> {
    let send = RawV { addr: sendbuf, counts: sendcounts, displs, datatype: sendtype };
    let recv = Raw { addr: recvbuf.cast_const(), count: recvcount, datatype: recvtype };
    // SAFETY: the module's contract.
    unsafe { scattered(comm, send, recv, root) }
}

unsafe fn allgathered<N: Number>(comm: &Comm, send: Raw<N>, recv: impl RawPieces) -> Result<Call> {
    // SAFETY: the module's contract.
    let pieces = unsafe { recv.pieces(peers(comm)) }?;
    let send = send.unless_in_place(comm)?;
    if let (Some(send), false) = (&send, comm.is_inter()) {
        distinct_piece(send, &pieces, comm.rank() as usize)?;
    }
    Ok(Call::Allgather(send, pieces))
}

pub unsafe fn allgather<N: Number>(
    comm: &Comm,
    sendbuf: In,
    sendcount: N,
    sendtype: usize,
    recvbuf: Out,
    recvcount: N,
    recvtype: usize,
) -> Result<Call> {
    let send = Raw { addr: sendbuf, count: sendcount, datatype: sendtype };
    let recv = Raw { addr: recvbuf.cast_const(), count: recvcount, datatype: recvtype };
    // SAFETY: the module's contract.
    unsafe { allgathered(comm, send, recv) }
}

pub unsafe fn allgatherv<N: Number, D: Number>(
    comm: &Comm,
    sendbuf: In,
    sendcount: N,
    sendtype: usize,
    recvbuf: Out,
    recvcounts: *const N,
    displs: *const D,
    recvtype: usize,
) -> Result<Call> {
    let send = Raw { addr: sendbuf, count: sendcount, datatype: sendtype };
    let recv = RawV { addr: recvbuf.cast_const(), counts: recvcounts, displs, datatype: recvtype };
    // SAFETY: the module's contract.
    unsafe { allgathered(comm, send, recv) }
}

unsafe fn exchanged(comm: &Comm, send: impl RawPieces, recv: impl RawPieces) -> Result<Call> {
    // SAFETY: the module's contract.
    let recv = unsafe { recv.pieces(peers(comm)) }?;
    if in_place(send.addr()) && !comm.is_inter() {
        return Ok(Call::Alltoall(None, recv));
    }
    // SAFETY: the module's contract.
    let send = unsafe { send.pieces(peers(comm)) }?;
    if !comm.is_inter() {
        let own = send.piece(comm.rank() as usize);
        let own = Elements { addr: own.addr, count: own.count, datatype: own.datatype.clone() };
        distinct_piece(&own, &recv, comm.rank() as usize)?;
    }
    Ok(Call::Alltoall(Some(send), recv))
}

pub unsafe fn alltoall<N: Number>(
    comm: &Comm,
    sendbuf: In,
    sendcount: N,
    sendtype: usize,
    recvbuf: Out,
    recvcount: N,
    recvtype: usize,
) -> Result<Call> {
    let send = Raw { addr: sendbuf, count: sendcount, datatype: sendtype };
    let recv = Raw { addr: recvbuf.cast_const(), count: recvcount, datatype: recvtype };
    // SAFETY: the module's contract.
    unsafe { exchanged(comm, send, recv) }
}

pub unsafe fn alltoallv<N: Number, D: Number>(
    comm: &Comm,
    sendbuf: In,
    sendcounts: *const N,
    sdispls: *const D,
    sendtype: usize,
    recvbuf: Out,
    recvcounts: *const N,
    rdispls: *const D,
    recvtype: usize,
) -> Result<Call> {
    let send = RawV { addr: sendbuf, counts: sendcounts, displs: sdispls, datatype: sendtype };
    let recv = RawV { addr: recvbuf.cast_const(), counts: recvcounts, displs: rdispls, datatype: recvtype };
    // SAFETY: the module's contract.
    unsafe { exchanged(comm, send, recv) }
}

pub unsafe fn alltoallw<N: Number, D: Number>(
    comm: &Comm,
    sendbuf: In,
    sendcounts: *const N,
    sdispls: *const D,
    sendtypes: *const usize,
    recvbuf: Out,
    recvcounts: *const N,
    rdispls: *const D,
    recvtypes: *const usize,
) -> Result<Call> {
    let send = RawW { addr: sendbuf, counts: sendcounts, displs: sdispls, types: sendtypes };
    let recv = RawW { addr: recvbuf.cast_const(), counts: recvcounts, displs: rdispls, types: recvtypes };
    // SAFETY: the module's contract.
    unsafe { exchanged(comm, send, recv) }
}

pub unsafe fn reduce<N: Number>(
    comm: &Comm,
    sendbuf: In,
    recvbuf: Out,
    n: N,
    datatype: usize,
    op: usize,
    root: c_int,
) -> Result<Call> {
    let root = place(comm, root)?;
    let raw = |addr| Raw { addr, count: n, datatype };
    let at_root = is_root(comm, root);
    let recv = at_root.then(|| raw(recvbuf.cast_const()).elements()).transpose()?;
    let send = match root {
        CallRoot::Intracomm(_) if at_root => raw(sendbuf).unless_in_place(comm)?,
        _ if is_leaf(root) => Some(raw(sendbuf).elements()?),
        _ => None,
    };
    if let (Some(send), Some(recv)) = (&send, &recv) {
        distinct(send, recv)?;
    }
    let combine = match send.as_ref().or(recv.as_ref()) {
        Some(some) => combine(op, some, datatype)?,
        None => TypedOp { op: datatypes::op(op)?, handle: datatype },
    };
    Ok(Call::Reduce(send, recv, combine, root))
}

/// Operands and results of an operation in which everybody has both.
fn operands<N: Number>(
    comm: &Comm,
    sendbuf: In,
    recvbuf: Out,
    n: N,
    datatype: usize,
) -> Result<(Option<Elements>, Elements)> {
    let recv = Raw { addr: recvbuf.cast_const(), count: n, datatype }.elements()?;
    let send = Raw { addr: sendbuf, count: n, datatype }.unless_in_place(comm)?;
    if let Some(send) = &send {
        distinct(send, &recv)?;
    }
    Ok((send, recv))
}

pub unsafe fn allreduce<N: Number>(
    comm: &Comm,
    sendbuf: In,
    recvbuf: Out,
    n: N,
    datatype: usize,
    op: usize,
) -> Result<Call> {
    let (send, recv) = operands(comm, sendbuf, recvbuf, n, datatype)?;
    let combine = combine(op, &recv, datatype)?;
    Ok(Call::Allreduce(send, recv, combine))
}

fn reduce_scattered(
    comm: &Comm,
    sendbuf: In,
    recvbuf: Out,
    counts: Vec<usize>,
    datatype: usize,
    op: usize,
) -> Result<Call> {
    let (total, own) = (counts.iter().sum::<usize>(), counts[comm.rank() as usize]);
    let recv = Raw { addr: recvbuf.cast_const(), count: own as i64, datatype }.elements()?;
    let combine = combine(op, &recv, datatype)?;
    let send = match (Raw { addr: sendbuf, count: total as i64, datatype }).unless_in_place(comm)? {
        Some(send) => {
            distinct(&send, &recv)?;
            send
        }
        // In place, all operands lie where the result comes.
        None => Elements { count: total, ..recv.clone() },
    };
    Ok(Call::ReduceScatter(send, recv, counts, combine))
}

pub unsafe fn reduce_scatter<N: Number>(
    comm: &Comm,
    sendbuf: In,
    recvbuf: Out,
    recvcounts: *const N,
    datatype: usize,
    op: usize,
) -> Result<Call> {
    // SAFETY: the module's contract, of the own group.
    let counts = unsafe { counts(recvcounts, comm.size() as usize) }?;
    reduce_scattered(comm, sendbuf, recvbuf, counts, datatype, op)
}

pub unsafe fn reduce_scatter_block<N: Number>(
    comm: &Comm,
    sendbuf: In,
    recvbuf: Out,
    recvcount: N,
    datatype: usize,
    op: usize,
) -> Result<Call> {
    let counts = vec![count(recvcount)?; comm.size() as usize];
    reduce_scattered(comm, sendbuf, recvbuf, counts, datatype, op)
}

fn within_a_group(comm: &Comm) -> Result<()> {
    if comm.is_inter() { Err(Error::Comm("intercommunicators do not have this operation")) } else { Ok(()) }
}

pub unsafe fn scan<N: Number>(
    comm: &Comm,
    sendbuf: In,
    recvbuf: Out,
    n: N,
    datatype: usize,
    op: usize,
) -> Result<Call> {
    within_a_group(comm)?;
    let (send, recv) = operands(comm, sendbuf, recvbuf, n, datatype)?;
    let combine = combine(op, &recv, datatype)?;
    Ok(Call::Scan(send, recv, combine))
}

pub unsafe fn exscan<N: Number>(
    comm: &Comm,
    sendbuf: In,
    recvbuf: Out,
    n: N,
    datatype: usize,
    op: usize,
) -> Result<Call> {
    within_a_group(comm)?;
    let (send, recv) = operands(comm, sendbuf, recvbuf, n, datatype)?;
    let combine = combine(op, &recv, datatype)?;
    Ok(Call::Exscan(send, recv, combine))
}

/// How many neighbours the caller receives from and sends to.
fn degrees(comm: &Comm) -> Result<(usize, usize)> {
    let topology: &Topology = comm.topology().ok_or(Error::Topology("the communicator has none"))?;
    Ok((topology.sources(comm.rank()).len(), topology.destinations(comm.rank()).len()))
}

unsafe fn told<N: Number>(comm: &Comm, send: Raw<N>, recv: impl RawPieces) -> Result<Call> {
    // SAFETY: the module's contract.
    Ok(Call::NeighbourAllgather(send.elements()?, unsafe { recv.pieces(degrees(comm)?.0) }?))
}

unsafe fn swapped(comm: &Comm, send: impl RawPieces, recv: impl RawPieces) -> Result<Call> {
    let (from, to) = degrees(comm)?;
    // SAFETY: the module's contract.
    let (send, recv): (Pieces, Pieces) = unsafe { (send.pieces(to)?, recv.pieces(from)?) };
    debug_assert!(!matches!(&send.form, Form::Each(counts, ..) if counts.len() != to));
    Ok(Call::NeighbourAlltoall(send, recv))
}

pub unsafe fn neighbor_allgather<N: Number>(
    comm: &Comm,
    sendbuf: In,
    sendcount: N,
    sendtype: usize,
    recvbuf: Out,
    recvcount: N,
    recvtype: usize,
) -> Result<Call> {
    let send = Raw { addr: sendbuf, count: sendcount, datatype: sendtype };
    let recv = Raw { addr: recvbuf.cast_const(), count: recvcount, datatype: recvtype };
    // SAFETY: the module's contract.
    unsafe { told(comm, send, recv) }
}

pub unsafe fn neighbor_allgatherv<N: Number, D: Number>(
    comm: &Comm,
    sendbuf: In,
    sendcount: N,
    sendtype: usize,
    recvbuf: Out,
    recvcounts: *const N,
    displs: *const D,
    recvtype: usize,
) -> Result<Call> {
    let send = Raw { addr: sendbuf, count: sendcount, datatype: sendtype };
    let recv = RawV { addr: recvbuf.cast_const(), counts: recvcounts, displs, datatype: recvtype };
    // SAFETY: the module's contract.
    unsafe { told(comm, send, recv) }
}

pub unsafe fn neighbor_alltoall<N: Number>(
    comm: &Comm,
    sendbuf: In,
    sendcount: N,
    sendtype: usize,
    recvbuf: Out,
    recvcount: N,
    recvtype: usize,
) -> Result<Call> {
    let send = Raw { addr: sendbuf, count: sendcount, datatype: sendtype };
    let recv = Raw { addr: recvbuf.cast_const(), count: recvcount, datatype: recvtype };
    // SAFETY: the module's contract.
    unsafe { swapped(comm, send, recv) }
}

pub unsafe fn neighbor_alltoallv<N: Number, D: Number>(
    comm: &Comm,
    sendbuf: In,
    sendcounts: *const N,
    sdispls: *const D,
    sendtype: usize,
    recvbuf: Out,
    recvcounts: *const N,
    rdispls: *const D,
    recvtype: usize,
) -> Result<Call> {
    let send = RawV { addr: sendbuf, counts: sendcounts, displs: sdispls, datatype: sendtype };
    let recv = RawV { addr: recvbuf.cast_const(), counts: recvcounts, displs: rdispls, datatype: recvtype };
    // SAFETY: the module's contract.
    unsafe { swapped(comm, send, recv) }
}

pub unsafe fn neighbor_alltoallw<N: Number, D: Number>(
    comm: &Comm,
    sendbuf: In,
    sendcounts: *const N,
    sdispls: *const D,
    sendtypes: *const usize,
    recvbuf: Out,
    recvcounts: *const N,
    rdispls: *const D,
    recvtypes: *const usize,
) -> Result<Call> {
    let send = RawW { addr: sendbuf, counts: sendcounts, displs: sdispls, types: sendtypes };
    let recv = RawW { addr: recvbuf.cast_const(), counts: recvcounts, displs: rdispls, types: recvtypes };
    // SAFETY: the module's contract.
    unsafe { swapped(comm, send, recv) }
}
