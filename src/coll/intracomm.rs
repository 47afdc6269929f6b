//! Collectives on users' buffers, within one group.
//!
//! What differs from rank to rank comes as a function from a rank to its piece; so one function serves the plain form, the
//! `v` and the `w` form. `MPI_IN_PLACE` is `None` for the buffer that is not given.
//!
//! Safety, for all of them: inputs may be read and outputs written, by nobody else, until the future is ready; the pieces of
//! different ranks do not overlap, nor do inputs and outputs.

use super::algorithms::{self, Blocks};
use super::buffer::{Input, OpKernel, Output, copy};
use super::{Scratch, Transport, allgatherv};
use crate::events::Collective;

use crate::error::Result;

/// Everybody's elements become those of `root`.
///
/// # Safety
/// See the module.
///
/// # Errors
/// Those of the transport.
pub async unsafe fn bcast<T: Transport>(transport: &T, data: Output<'_>, root: usize) -> Result<()> {
    let is_root = transport.rank() == root;
    // SAFETY: the module's contract.
    let mut landing = unsafe { if is_root { data.filled_landing() } else { data.landing() } };
    super::bcast(transport, &mut landing, root).await?;
    if is_root { Ok(()) } else { landing.land() }
}

/// Piece `r` becomes what rank `r` sends; in place, it is there already.
///
/// # Safety
/// See the module.
///
/// # Errors
/// Those of the transport; [`crate::Error::Truncate`] if the caller's own piece is too small.
pub async unsafe fn allgather<'a, T: Transport>(
    transport: &T,
    send: Option<Input<'_>>,
    pieces: impl Fn(usize) -> Output<'a>,
) -> Result<()> {
    let (rank, size) = (transport.rank(), transport.size());
    if let Some(send) = send {
        // SAFETY: the module's contract.
        unsafe { copy(send, pieces(rank)) }?;
    }
    let mut end = 0;
    let lengths = (0..size).map(|r| pieces(r).bytes());
    let ends: Vec<usize> = lengths
        .map(|length| {
            end += length;
            end
        })
        .collect();
    let equal = ends.iter().enumerate().all(|(r, &end)| end == (r + 1) * ends[0]);
    let begin = |r: usize| if r == 0 { 0 } else { ends[r - 1] };
    let first = pieces(0);
    let mut run = None;
    if (0..size).all(|r| follows(&first, begin(r), &pieces(r))) {
        let all = Output { count: end.checked_div(first.datatype.size()).unwrap_or(0), ..first };
        // SAFETY: the module's contract; the pieces are one run, which this is.
        run = Some(unsafe { all.landing() });
    }
    if let Some(mut all) = run {
        return gather_everywhere(transport, &mut all, &ends, equal).await;
    }
    let mut all = Scratch::zeroed(end);
    // SAFETY: the module's contract.
    all[begin(rank)..ends[rank]].copy_from_slice(&unsafe { pieces(rank).as_input().packed() });
    gather_everywhere(transport, &mut all, &ends, equal).await?;
    // SAFETY: the module's contract.
    (0..size).filter(|&r| r != rank).try_for_each(|r| unsafe { pieces(r).write(&all[begin(r)..ends[r]]) })
}

/// Whether `piece` lies `offset` bytes after the beginning of the run that `first` begins.
fn follows(first: &Output<'_>, offset: usize, piece: &Output<'_>) -> bool {
    piece.bytes() == 0
        || (piece.datatype.is_contiguous()
            && first.datatype.is_contiguous()
            && first.datatype.size() > 0
            && piece.addr.wrapping_offset(piece.datatype.true_lb())
                == first.addr.wrapping_offset(first.datatype.true_lb()).wrapping_add(offset))
}

async fn gather_everywhere<T: Transport>(
    transport: &T,
    all: &mut [u8],
    ends: &[usize],
    equal: bool,
) -> Result<()> {
    if equal { super::allgather(transport, all).await } else { allgatherv(transport, all, ends).await }
}

/// Makes piece `r` of `recv` the piece of rank `r` that is for the caller; in place, `recv` holds what is sent first.
///
/// # Safety
/// See the module.
///
/// # Errors
/// Those of the transport; [`crate::Error::Truncate`] if a piece is too small.
pub async unsafe fn alltoall<'a, 'b, T: Transport>(
    transport: &T,
    send: Option<impl Fn(usize) -> Input<'a>>,
    recv: impl Fn(usize) -> Output<'b>,
) -> Result<()> {
    // SAFETY: the rules of this module are those of `algorithms`.
    unsafe { algorithms::alltoall(transport, None, send, recv) }.await
}

/// Does what [`alltoall`] does where all pieces of all ranks have the same length.
///
/// # Safety
/// See the module.
///
/// # Errors
/// As for [`alltoall`].
pub async unsafe fn alltoall_even<'a, 'b, T: Transport>(
    transport: &T,
    send: Option<impl Fn(usize) -> Input<'a>>,
    recv: impl Fn(usize) -> Output<'b>,
) -> Result<()> {
    if let Some(mut team) = transport.team(Collective::Alltoall) {
        let read = |peer: usize, at: usize, to: &mut [u8]| {
            let from = send.as_ref().map_or_else(|| recv(peer).as_input(), |send| send(peer));
            // SAFETY: the module's contract; in place, nobody has written what is read.
            unsafe { from.datatype.pack(from.count, from.addr, at, to) };
        };
        let write = |peer: usize, at: usize, from: &[u8]| {
            let to = recv(peer);
            // SAFETY: the module's contract.
            unsafe { to.datatype.unpack(to.count, to.addr, at, from) };
        };
        if team.alltoall(recv(0).bytes(), read, write)? {
            let rank = transport.rank();
            // SAFETY: the module's contract.
            return send.map_or(Ok(()), |send| unsafe { copy(send(rank), recv(rank)) });
        }
    }
    // SAFETY: the caller's promise.
    unsafe { algorithms::alltoall(transport, Some(recv(0).bytes()), send, recv) }.await
}

/// At `root`, `recv` becomes the combination of everybody's `send`.
///
/// # Safety
/// See the module.
///
/// # Errors
/// Those of the transport and the operation.
pub async unsafe fn reduce<T: Transport>(
    transport: &T,
    send: Input<'_>,
    recv: Option<Output<'_>>,
    kernel: OpKernel<'_>,
    root: usize,
) -> Result<()> {
    let bytes = send.bytes();
    if bytes > 0
        && let Some(mut team) = transport.team(Collective::Reduce)
    {
        let to = recv.filter(|_| transport.rank() == root);
        // SAFETY: the module's contract; each place has so many bytes.
        let done = unsafe {
            packed_places(send, to, |from, to| {
                team.reduce(from, to, (bytes, send.datatype.size()), &kernel, root)
            })
        }?;
        if done {
            return Ok(());
        }
    }
    // SAFETY: the module's contract.
    let mut acc = unsafe { send.copied() };
    if acc.is_empty() {
        return Ok(());
    }
    algorithms::reduce(transport, &mut acc, root, &kernel).await?;
    match recv {
        // SAFETY: the module's contract.
        Some(recv) if transport.rank() == root => unsafe { recv.write(&acc) },
        _ => Ok(()),
    }
}

/// `recv` becomes the combination of everybody's `send`.
///
/// # Safety
/// See the module; `send` may be `recv`.
///
/// # Errors
/// Those of the transport and the operation.
pub async unsafe fn allreduce<T: Transport>(
    transport: &T,
    send: Input<'_>,
    recv: Output<'_>,
    kernel: OpKernel<'_>,
) -> Result<()> {
    let bytes = send.bytes();
    if bytes > 0
        && let Some(mut team) = transport.team(Collective::Allreduce)
    {
        // SAFETY: the module's contract; both places have so many bytes.
        let done = unsafe {
            packed_places(send, Some(recv), |from, to| {
                team.allreduce(from, to, (bytes, send.datatype.size()), &kernel)
            })
        }?;
        if done {
            return Ok(());
        }
    }
    // SAFETY: the module's contract.
    let mut acc = unsafe { send.copied() };
    if acc.is_empty() {
        return Ok(());
    }
    algorithms::allreduce(transport, &mut acc, &kernel).await?;
    // SAFETY: the module's contract.
    unsafe { recv.write(&acc) }
}

/// Runs `work` on the places of packed operands and results (null, if there are none): the user's own where they are one run of
/// bytes, else copies.
///
/// # Safety
/// See the module; `send` may be `recv`.
unsafe fn packed_places(
    send: Input<'_>,
    recv: Option<Output<'_>>,
    work: impl FnOnce(*const u8, *mut u8) -> Result<bool>,
) -> Result<bool> {
    let mut copy = Scratch::default();
    let from = send.run().unwrap_or_else(|| {
        // SAFETY: the module's contract.
        copy = unsafe { send.copied() };
        copy.as_ptr()
    });
    let Some(recv) = recv else { return work(from, core::ptr::null_mut()) };
    if send.bytes() > recv.bytes() {
        return Err(crate::Error::Truncate { sent: send.bytes() as u64, room: recv.bytes() as u64 });
    }
    if let Some(to) = recv.as_input().run() {
        return work(from, to.cast_mut());
    }
    let mut results = Scratch::zeroed(send.bytes());
    let done = work(from, results.as_mut_ptr())?;
    if done {
        // SAFETY: the module's contract.
        unsafe { recv.write(&results) }?;
    }
    Ok(done)
}

/// `recv` becomes the caller's block of the combination of everybody's `send`, of which rank `r` gets `counts(r)` elements.
///
/// # Safety
/// See the module; `send` may be `recv`.
///
/// # Errors
/// Those of the transport and the operation.
pub async unsafe fn reduce_scatter<T: Transport>(
    transport: &T,
    send: Input<'_>,
    recv: Output<'_>,
    counts: impl Fn(usize) -> usize,
    kernel: OpKernel<'_>,
) -> Result<()> {
    // SAFETY: the module's contract. A copy, because in place the result may be written before all has been sent.
    let all = unsafe { send.copied() };
    if all.is_empty() {
        return Ok(());
    }
    let ends = block_ends(transport.size(), counts, send.datatype.size());
    let block = algorithms::reduce_scatter(transport, &all, Blocks::EndingAt(&ends), &kernel).await?;
    // SAFETY: the module's contract.
    unsafe { recv.write(&block) }
}

/// Where the blocks of `counts(r)` elements of `unit` bytes end, in bytes.
pub(super) fn block_ends(size: usize, counts: impl Fn(usize) -> usize, unit: usize) -> Vec<usize> {
    let mut end = 0;
    let next = |r| {
        end += counts(r) * unit;
        end
    };
    (0..size).map(next).collect()
}

/// `recv` becomes the combination of the `send` of all ranks up to the caller's.
///
/// # Safety
/// See the module; `send` may be `recv`.
///
/// # Errors
/// Those of the transport and the operation.
pub async unsafe fn scan<T: Transport>(
    transport: &T,
    send: Input<'_>,
    recv: Output<'_>,
    kernel: OpKernel<'_>,
) -> Result<()> {
    // SAFETY: the module's contract.
    let mut acc = unsafe { send.copied() };
    if acc.is_empty() {
        return Ok(());
    }
    algorithms::scan(transport, &mut acc, &kernel).await?;
    // SAFETY: the module's contract.
    unsafe { recv.write(&acc) }
}

/// `recv` becomes the combination of the `send` of all ranks below the caller's; at rank 0 it stays.
///
/// # Safety
/// See the module; `send` may be `recv`.
///
/// # Errors
/// Those of the transport and the operation.
pub async unsafe fn exscan<T: Transport>(
    transport: &T,
    send: Input<'_>,
    recv: Output<'_>,
    kernel: OpKernel<'_>,
) -> Result<()> {
    // SAFETY: the module's contract.
    let own = unsafe { send.packed() };
    if own.is_empty() {
        return Ok(());
    }
    match algorithms::exscan(transport, &own, &kernel).await? {
        // SAFETY: the module's contract; `own` is not looked at any more.
        Some(below) => unsafe { recv.write(&below) },
        None => Ok(()),
    }
}

/// Receives a message into a user's buffer.
///
/// # Safety
/// See the module.
pub(in crate::coll) async unsafe fn receive<T: Transport>(
    transport: &T,
    from: usize,
    to: Output<'_>,
) -> Result<()> {
    // SAFETY: the module's contract.
    let mut landing = unsafe { to.landing() };
    transport.recv(from, &mut landing).await?;
    landing.land()
}
