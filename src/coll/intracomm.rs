//! Collectives on users' buffers, within one group.
//!
//! What differs from rank to rank comes as a function from a rank to its piece; so one function serves the plain form,
//! the `v` and the `w` form. `MPI_IN_PLACE` is `None` for the buffer that is not given.
//!
//! The buffer rules ([`super::buffer`]) hold for inputs and outputs until the future is ready, or is leaked.

use super::algorithms::{self, Blocks};
use super::buffer::{InputBuffer, Landing, OpKernel, OutputBuffer, copy, copy_to_other};
use super::bytes::{allgather_in, allgatherv_in};
use super::shared_memory::{Operands, TeamGuard, one_run, show};
use super::{Scratch, Transport, pair};
use crate::arch::copy_slice;
use crate::error::{Error, Result};
use crate::events::Collective;
use crate::ring::Room;

/// Whether there is no other rank: then operands are results, and data is where it belongs, and neither is packed.
fn is_alone<T: Transport>(transport: &T) -> bool {
    transport.size() == 1
}

/// Gathers at `root`: piece `r` becomes what rank `r` sends; `send` may be `None` there.
/// `even`: all pieces have the same length.
///
/// # Errors
/// Those of the transport; [`Error::Truncate`] if a piece is too small.
pub async fn gather<'a, T: Transport>(
    transport: &T,
    send: Option<InputBuffer<'_>>,
    pieces: impl Fn(usize) -> OutputBuffer<'a>,
    root: usize,
    even: bool,
) -> Result<()> {
    let (rank, size) = (transport.rank(), transport.size());
    if even && let Some(mut team) = transport.team(Collective::Gather).await {
        let block = if rank == root { pieces(root).bytes() } else { send.map_or(0, |send| send.bytes()) };
        let run = rank == root && (0..size).all(|r| follows(&pieces(0), r * block, &pieces(r)));
        // SAFETY: buffer rule 2 holds for each piece, and the pieces are this run.
        let mut all = run.then(|| unsafe { pieces(0).widened(size * block) }.landing()).transpose()?;
        let kept = match send {
            Some(send) if rank == root && !run => copy(send, &pieces(root)),
            _ => Ok(()),
        };
        let own = send.map(|send| send.packed()).transpose()?;
        let own = own.as_deref().unwrap_or_default();
        // A root whose own piece has another length takes part nevertheless: the others may be elsewhere already.
        let checked = kept.and(check_block(own, block));
        let own = if checked.is_ok() { own } else { &[] };
        let place = |from: usize, fill: &mut dyn FnMut(&mut [u8]) -> Result<()>| {
            let mut landing = pieces(from).landing()?;
            fill(&mut landing)?;
            landing.land()
        };
        let write = |to: &mut Room<'_>| show(own, &mut to.part(0, own.len()));
        if team.gather_direct(own, all.as_deref_mut(), root, block, place).await? {
            return checked;
        }
        drop(all);
        let each = |from: usize, bytes: &[u8]| {
            if from == root {
                send.map_or(Ok(()), |send| copy(send, &pieces(root)))
            } else {
                pieces(from).write(bytes)
            }
        };
        if team.gather(block, root, write, each).await? {
            return checked;
        }
    }
    algorithms::gather(transport, send, pieces, root).await
}

/// Scatters from `root`: `recv` becomes the caller's piece there; it may be `None` at the root.
/// `even`: all pieces have the same length.
///
/// # Errors
/// Those of the transport; [`Error::Truncate`] if there is not enough room.
pub async fn scatter<'a, T: Transport>(
    transport: &T,
    pieces: impl Fn(usize) -> InputBuffer<'a>,
    recv: Option<OutputBuffer<'_>>,
    root: usize,
    even: bool,
) -> Result<()> {
    let (rank, size) = (transport.rank(), transport.size());
    if even && let Some(mut team) = transport.team(Collective::Scatter).await {
        let is_root = rank == root;
        let block = if is_root { pieces(root).bytes() } else { recv.as_ref().map_or(0, OutputBuffer::bytes) };
        let done = {
            let run = if is_root { one_run(size, block, &pieces) } else { None };
            let mut packed = Scratch::of(if is_root && run.is_none() { size * block } else { 0 })?;
            if !packed.is_empty() {
                (0..size).for_each(|r| pieces(r).pack(0, &mut packed[r * block..][..block]));
            }
            let all = run.unwrap_or(&packed);
            let own = if is_root { None } else { recv.as_ref().map(OutputBuffer::reborrowed) };
            let mut landing = own.map(OutputBuffer::landing).transpose()?;
            let room = landing.as_deref_mut().unwrap_or_default();
            let meanwhile = || match &recv {
                Some(recv) if is_root => copy(pieces(root), recv),
                _ => Ok(()),
            };
            if team.scatter_direct(all, room, root, block, meanwhile).await? {
                return landing.map_or(Ok(()), Landing::land);
            }
            let done = team.scatter(block, root, all, |from| copy_slice(from, room)).await?;
            if done && let Some(landing) = landing {
                landing.land()?;
            }
            done
        };
        if done {
            return match recv {
                Some(recv) if is_root => copy(pieces(root), &recv),
                _ => Ok(()),
            };
        }
    }
    algorithms::scatter(transport, pieces, recv, root).await
}

/// Makes every rank's elements those of `root`.
///
/// # Errors
/// Those of the transport.
pub async fn bcast<T: Transport>(transport: &T, data: OutputBuffer<'_>, root: usize) -> Result<()> {
    if is_alone(transport) {
        return Ok(());
    }
    let is_root = transport.rank() == root;
    let mut landing = if is_root { data.filled_landing() } else { data.landing() }?;
    super::bcast(transport, &mut landing, root).await?;
    if is_root { Ok(()) } else { landing.land() }
}

/// Returns where each piece ends, if they lie one behind the other.
fn ends_of(lengths: impl Iterator<Item = usize>) -> Vec<usize> {
    let mut end = 0;
    let ends = lengths.map(|length| {
        end += length;
        end
    });
    ends.collect()
}

/// Makes piece `r` what rank `r` sends; in place, it is there already.
///
/// # Errors
/// Those of the transport; [`Error::Truncate`] if the caller's own piece is too small.
pub async fn allgather<'a, T: Transport>(
    transport: &T,
    send: Option<InputBuffer<'_>>,
    pieces: impl Fn(usize) -> OutputBuffer<'a>,
) -> Result<()> {
    if is_alone(transport) {
        return send.map_or(Ok(()), |send| copy(send, &pieces(0)));
    }
    let (rank, size) = (transport.rank(), transport.size());
    let ends = ends_of((0..size).map(|r| pieces(r).bytes()));
    let end = ends[size - 1];
    let equal = ends.iter().enumerate().all(|(r, &end)| Some(end) == ends[0].checked_mul(r + 1));
    let begin = |r: usize| if r == 0 { 0 } else { ends[r - 1] };
    let first = pieces(0);
    let is_run = (0..size).all(|r| follows(&first, begin(r), &pieces(r)));
    // SAFETY: buffer rule 2 holds for each piece, and the pieces are this run of `end` bytes, if `is_run`. While the
    // landing is in use no piece is.
    let run = || is_run.then(|| unsafe { first.reborrowed().widened(end) }.landing()).transpose();
    let sent = send.map_or(ends[rank] - begin(rank), |send| send.bytes());
    let mut team = transport.team(Collective::Allgather).await;
    if let (2, Some(team)) = (size, &mut team)
        && team.exchanges_blocks(&ends, equal)
    {
        // From where each has its own.
        let (peer, own) = (1 - rank, send.unwrap_or_else(|| pieces(rank).as_input()));
        let mut landing = pieces(peer).landing()?;
        let (sends, mut recvs) = ([(peer, &*own.packed()?)], [(peer, &mut *landing)]);
        let copy_own = || send.map_or(Ok(()), |send| copy(send, &pieces(rank)));
        transport.exchange_all_while(&sends, &mut recvs, copy_own).await?;
        return landing.land();
    }
    if let (true, Some(team), true) = (is_run, &mut team, equal)
        && team.copies_equal_blocks(ends[0]).await?
        && let Some(mut all) = run()?
    {
        let own = send.map(|send| send.packed()).transpose()?;
        return team.allgather_direct(own.as_deref(), &mut all, sent).await;
    }
    if let (Some(team), false) = (&mut team, equal)
        && team.copies_blocks(&ends).await?
    {
        let own = send.unwrap_or_else(|| pieces(rank).as_input());
        let place = |from: usize, fill: &mut dyn FnMut(&mut [u8]) -> Result<()>| {
            if pieces(from).bytes() == 0 {
                return Ok(());
            }
            let mut landing = pieces(from).landing()?;
            fill(&mut landing)?;
            landing.land()
        };
        team.allgatherv_direct(&own.packed()?, (ends[rank] - begin(rank), end), place).await?;
        return send.map_or(Ok(()), |send| copy(send, &pieces(rank)));
    }
    // A caller whose own piece is too small takes part nevertheless: the others would wait for it.
    let copied = send.map_or(Ok(()), |send| copy(send, &pieces(rank)));
    if let Some(mut all) = run()? {
        return copied.and(gather_everywhere(transport, team, &mut all, &ends, equal.then_some(sent)).await);
    }
    let (blocks, agreed) =
        if equal { (Blocks::Equal(ends[0]), sent) } else { (Blocks::EndingAt(&ends), end) };
    if let Some(team) = &mut team
        && !(equal && team.copies_equal_blocks(ends[0]).await?)
    {
        // Into their places at once, wherever those are.
        let own = pieces(rank).as_input();
        let show = |at: usize, to: &mut Room<'_>| own.show(at, to);
        if team
            .allgather_pieces((blocks, agreed), show, |from, at, bytes| pieces(from).unpack(at, bytes))
            .await?
        {
            return copied;
        }
    }
    let mut all = Scratch::of(end)?;
    copy_slice(&pieces(rank).as_input().packed()?, &mut all[begin(rank)..ends[rank]]);
    copied.and(gather_everywhere(transport, team, &mut all, &ends, equal.then_some(sent)).await)?;
    (0..size).filter(|&r| r != rank).try_for_each(|r| pieces(r).write(&all[begin(r)..ends[r]]))
}

/// Checks that the caller's own data, unless it is in its place already, is as long as a block.
pub(in crate::coll) fn check_block(own: &[u8], block: usize) -> Result<()> {
    if own.is_empty() || own.len() == block {
        return Ok(());
    }
    Err(Error::Truncate { sent: own.len() as u64, room: block as u64 })
}

/// Whether `piece` lies `offset` bytes after the beginning of the run that `first` begins.
fn follows(first: &OutputBuffer<'_>, offset: usize, piece: &OutputBuffer<'_>) -> bool {
    let (own, beginning) = (piece.as_input().run(), first.as_input().run());
    let is_behind = || own.is_some() && own == beginning.map(|at| at.wrapping_add(offset));
    piece.bytes() == 0 || (first.datatype().size() > 0 && is_behind())
}

/// Gathers blocks that are equally long, of which the caller's has `sent` bytes, or others.
async fn gather_everywhere<'t, T: Transport>(
    transport: &'t T,
    team: Option<TeamGuard<'t, T::Hold<'t>>>,
    all: &mut [u8],
    ends: &[usize],
    sent: Option<usize>,
) -> Result<()> {
    match sent {
        Some(sent) => allgather_in(team, transport, all, sent).await,
        None => allgatherv_in(team, transport, all, ends).await,
    }
}

/// Makes piece `r` of `recv` the piece of rank `r` that is for the caller; in place, `recv` holds what is sent first.
///
/// # Errors
/// Those of the transport; [`Error::Truncate`] if a piece is too small.
pub async fn alltoall<'a, 'b, T: Transport>(
    transport: &T,
    send: Option<impl Fn(usize) -> InputBuffer<'a>>,
    recv: impl Fn(usize) -> OutputBuffer<'b>,
) -> Result<()> {
    algorithms::alltoall(transport, None, send, recv).await
}

/// Does what [`alltoall`] does where all pieces of all ranks have the same length.
///
/// # Errors
/// As for [`alltoall`].
pub async fn alltoall_even<'a, 'b, T: Transport>(
    transport: &T,
    send: Option<impl Fn(usize) -> InputBuffer<'a>>,
    recv: impl Fn(usize) -> OutputBuffer<'b>,
) -> Result<()> {
    if let Some(mut team) = transport.team(Collective::Alltoall).await {
        let (rank, size, block) = (transport.rank(), transport.size(), recv(0).bytes());
        // In place, what others read would be overwritten.
        let run = send.as_ref().and_then(|send| one_run(size, block, send));
        let room = one_run(size, block, |r| recv(r).as_input()).map_or(core::ptr::null(), <[u8]>::as_ptr);
        if send.is_some() && team.is_one_step(Collective::Alltoall, block).await? {
            let mut packed = Scratch::of(if run.is_none() { size * block } else { 0 })?;
            if let (None, Some(send)) = (run, &send) {
                (0..size).for_each(|r| send(r).pack(0, &mut packed[r * block..][..block]));
            }
            let all = run.unwrap_or(&packed);
            let place = |from: usize, fill: &mut dyn FnMut(&mut [u8]) -> Result<()>| {
                let mut landing = recv(from).landing()?;
                fill(&mut landing)?;
                landing.land()
            };
            team.alltoall_direct(all, room, block, place).await?;
            return send.map_or(Ok(()), |send| copy(send(rank), &recv(rank)));
        }
        let read = |peer: usize, at: usize, to: &mut Room<'_>| {
            let from = send.as_ref().map_or_else(|| recv(peer).as_input(), |send| send(peer));
            from.show(at, to);
        };
        let write = |peer: usize, at: usize, from: &[u8]| {
            recv(peer).unpack(at, from);
        };
        let runs = run.map(|all| (all, room)).filter(|(_, room)| !room.is_null());
        if team.alltoall(recv(0).bytes(), runs, read, write).await? {
            let rank = transport.rank();
            return send.map_or(Ok(()), |send| copy(send(rank), &recv(rank)));
        }
    }
    algorithms::alltoall(transport, Some(recv(0).bytes()), send, recv).await
}

/// Makes `recv`, at `root`, the reduction of every rank's `send`.
///
/// # Errors
/// Those of the transport and the operation.
pub async fn reduce<T: Transport>(
    transport: &T,
    send: InputBuffer<'_>,
    recv: Option<OutputBuffer<'_>>,
    kernel: OpKernel<'_>,
    root: usize,
) -> Result<()> {
    let bytes = send.bytes();
    if bytes == 0 {
        return Ok(());
    }
    if is_alone(transport) {
        return recv.map_or(Ok(()), |recv| copy_to_other(send, &recv));
    }
    let team = transport.team(Collective::Reduce).await;
    let to = recv.as_ref().filter(|_| transport.rank() == root);
    let unit = send.datatype().size();
    let done = with_packed(send, to, async |from, to| {
        // SAFETY: `from` and, at the root, `to` have `bytes` bytes, which no other thread uses by buffer rules 1 and 2.
        let operands = unsafe { Operands::new(from, to, bytes, unit) };
        if let Some(mut team) = team
            && team.reduce(operands, &kernel, root).await?
        {
            return Ok(true);
        }
        pair::reduce(transport, operands, root, &kernel).await
    })
    .await?;
    if done {
        return Ok(());
    }
    let mut acc = send.copied()?;
    algorithms::reduce(transport, &mut acc, root, &kernel).await?;
    match recv {
        Some(recv) if transport.rank() == root => recv.write(&acc),
        _ => Ok(()),
    }
}

/// Makes `recv` the reduction of every rank's `send`. The two may be the same elements.
///
/// # Errors
/// Those of the transport and the operation.
pub async fn allreduce<T: Transport>(
    transport: &T,
    send: InputBuffer<'_>,
    recv: OutputBuffer<'_>,
    kernel: OpKernel<'_>,
) -> Result<()> {
    let bytes = send.bytes();
    if bytes == 0 {
        return Ok(());
    }
    if is_alone(transport) {
        return copy_to_other(send, &recv);
    }
    let team = transport.team(Collective::Allreduce).await;
    let unit = send.datatype().size();
    let done = with_packed(send, Some(&recv), async |from, to| {
        // SAFETY: `from` and `to` have `bytes` bytes, which no other thread uses by buffer rules 1 and 2.
        let operands = unsafe { Operands::new(from, to, bytes, unit) };
        if let Some(mut team) = team
            && team.allreduce(operands, &kernel).await?
        {
            return Ok(true);
        }
        pair::allreduce(transport, operands, &kernel).await
    })
    .await?;
    if done {
        return Ok(());
    }
    let mut acc = send.copied()?;
    algorithms::allreduce(transport, &mut acc, &kernel).await?;
    recv.write(&acc)
}

/// Runs `work` on the addresses of packed operands and results (null, if there are none): the user's own where they are
/// one run of bytes, else copies.
async fn with_packed(
    send: InputBuffer<'_>,
    recv: Option<&OutputBuffer<'_>>,
    work: impl AsyncFnOnce(*const u8, *mut u8) -> Result<bool>,
) -> Result<bool> {
    let bytes = send.bytes();
    match recv {
        Some(recv) => with_packed_part(send, recv, bytes, work).await,
        None => work(send.packed()?.as_ptr(), core::ptr::null_mut()).await,
    }
}

/// As [`with_packed`], where the results are `bytes` bytes.
async fn with_packed_part(
    send: InputBuffer<'_>,
    recv: &OutputBuffer<'_>,
    bytes: usize,
    work: impl AsyncFnOnce(*const u8, *mut u8) -> Result<bool>,
) -> Result<bool> {
    let copy = if send.run().is_some() { Scratch::default() } else { send.copied()? };
    let from = send.run().unwrap_or(copy.as_ptr());
    if bytes > recv.bytes() {
        return Err(Error::Truncate { sent: bytes as u64, room: recv.bytes() as u64 });
    }
    if let Some(to) = recv.as_input().run() {
        return work(from, to.cast_mut()).await;
    }
    let mut results = Scratch::of(bytes)?;
    let done = work(from, results.as_mut_ptr()).await?;
    if done {
        recv.write(&results)?;
    }
    Ok(done)
}

/// Makes `recv` the caller's block of the reduction of every rank's `send`,
/// of which rank `r` gets `counts(r)` elements.
///
/// # Errors
/// Those of the transport and the operation.
pub async fn reduce_scatter<T: Transport>(
    transport: &T,
    send: InputBuffer<'_>,
    recv: OutputBuffer<'_>,
    counts: impl Fn(usize) -> usize,
    kernel: OpKernel<'_>,
) -> Result<()> {
    let unit = send.datatype().size();
    let bytes = send.bytes();
    if bytes == 0 {
        return Ok(());
    }
    if is_alone(transport) {
        return copy_to_other(send, &recv);
    }
    let ends = block_ends(transport.size(), counts, unit);
    let team = transport.team(Collective::ReduceScatter).await;
    let range = |r: usize| (if r == 0 { 0 } else { ends[r - 1] })..ends[r];
    let done = with_packed_part(send, &recv, range(transport.rank()).len(), async |from, to| {
        // SAFETY: `from` has `bytes` bytes and `to` as many as the range,
        // which no other thread uses by buffer rules 1 and 2.
        let operands = unsafe { Operands::new(from, to, bytes, unit) };
        if let Some(mut team) = team
            && team.reduce_scatter(operands, range, &kernel).await?
        {
            return Ok(true);
        }
        pair::reduce_scatter(transport, operands, range, &kernel).await
    })
    .await?;
    if done {
        return Ok(());
    }
    let all = send.copied()?;
    let block = algorithms::reduce_scatter(transport, &all, Blocks::EndingAt(&ends), &kernel).await?;
    recv.write(&block)
}

/// Returns where the blocks of `counts(r)` elements of `unit` bytes end, in bytes.
pub(super) fn block_ends(size: usize, counts: impl Fn(usize) -> usize, unit: usize) -> Vec<usize> {
    let mut end = 0;
    let next = |r| {
        end += counts(r) * unit;
        end
    };
    (0..size).map(next).collect()
}

/// Makes `recv` the reduction of the `send` of all ranks up to the caller's. The two may be the same elements.
///
/// # Errors
/// Those of the transport and the operation.
pub async fn scan<T: Transport>(
    transport: &T,
    send: InputBuffer<'_>,
    recv: OutputBuffer<'_>,
    kernel: OpKernel<'_>,
) -> Result<()> {
    if is_alone(transport) {
        return if send.bytes() == 0 { Ok(()) } else { copy_to_other(send, &recv) };
    }
    prefix(transport, send, Some(&recv), &kernel, true).await
}

/// Makes `recv` the reduction of the `send` of all ranks below the caller's; at rank 0 it stays.
/// The two may be the same elements.
///
/// # Errors
/// Those of the transport and the operation.
pub async fn exscan<T: Transport>(
    transport: &T,
    send: InputBuffer<'_>,
    recv: OutputBuffer<'_>,
    kernel: OpKernel<'_>,
) -> Result<()> {
    if is_alone(transport) {
        return Ok(());
    }
    let stays = transport.rank() == 0;
    prefix(transport, send, Some(&recv).filter(|_| !stays), &kernel, false).await
}

/// A scan, or an exclusive one: through the team, if there is one that does it, or by messages.
async fn prefix<T: Transport>(
    transport: &T,
    send: InputBuffer<'_>,
    recv: Option<&OutputBuffer<'_>>,
    kernel: &OpKernel<'_>,
    inclusive: bool,
) -> Result<()> {
    let operation = if inclusive { Collective::Scan } else { Collective::Exscan };
    let (bytes, unit) = (send.bytes(), send.datatype().size());
    if bytes == 0 {
        return Ok(());
    }
    let team = transport.team(operation).await;
    with_packed(send, recv, async |from, to| {
        // SAFETY: `from` and `to`, where it is not null, have `bytes` bytes,
        // which no other thread uses by buffer rules 1 and 2.
        let operands = unsafe { Operands::new(from, to, bytes, unit) };
        if let Some(mut team) = team
            && team.scan(operands, inclusive, kernel).await?
        {
            return Ok(true);
        }
        match inclusive {
            true => algorithms::scan(transport, operands, kernel).await?,
            false => algorithms::exscan(transport, operands, kernel).await?,
        }
        Ok(true)
    })
    .await
    .map(drop)
}

/// Receives a message into a user's buffer.
pub(in crate::coll) async fn receive<T: Transport>(
    transport: &T,
    from: usize,
    to: OutputBuffer<'_>,
) -> Result<()> {
    let mut landing = to.landing()?;
    transport.recv(from, &mut landing).await?;
    landing.land()
}
