//! Linear: one step, in which a rank that has data sends it to each of those that need it.

use super::{Blocks, pairwise};
use crate::coll::buffer::{InputBuffer, Landing, OutputBuffer, copy};
use crate::coll::intracomm::receive;
use crate::coll::selection::Case;
use crate::coll::{ReductionKernel, Scratch, Transport};
use crate::engine::Mode;
use crate::error::Result;

/// Returns whether the algorithm can perform `case`.
pub const fn serves(_: &Case) -> bool {
    true
}

/// Gathers at `root`: piece `r` becomes what rank `r` sends; `send` may be `None` there.
///
/// # Errors
/// Those of the transport; [`crate::Error::Truncate`] if a piece is too small.
pub async fn gather<'a, T: Transport>(
    transport: &T,
    send: Option<InputBuffer<'_>>,
    pieces: impl Fn(usize) -> OutputBuffer<'a>,
    root: usize,
) -> Result<()> {
    let rank = transport.rank();
    transport.set_message_mode(Mode::ToRoot);
    if rank != root {
        return match send {
            Some(send) => transport.send(root, &send.packed()?).await,
            None => Ok(()),
        };
    }
    let mut landings = landings(transport, &pieces)?;
    let own = || send.map_or(Ok(()), |send| copy(send, &pieces(rank)));
    transport.exchange_all_while(&[], &mut rooms(&mut landings), own).await?;
    land(landings)
}

/// Scatters from `root`: `recv` becomes the caller's piece there; it may be `None` at the root.
///
/// # Errors
/// Those of the transport; [`crate::Error::Truncate`] if there is not enough room.
pub async fn scatter<'a, T: Transport>(
    transport: &T,
    pieces: impl Fn(usize) -> InputBuffer<'a>,
    recv: Option<OutputBuffer<'_>>,
    root: usize,
) -> Result<()> {
    let rank = transport.rank();
    transport.set_message_mode(Mode::FromRoot);
    if rank != root {
        return match recv {
            Some(recv) => receive(transport, root, recv).await,
            None => Ok(()),
        };
    }
    let packed = others(transport).map(|to| Ok((to, pieces(to).packed()?))).collect::<Result<Vec<_>>>()?;
    let sends: Vec<(usize, &[u8])> = packed.iter().map(|(to, bytes)| (*to, &**bytes)).collect();
    let own = || recv.map_or(Ok(()), |recv| copy(pieces(rank), &recv));
    transport.exchange_all_while(&sends, &mut [], own).await
}

/// Returns when all ranks have called it.
///
/// # Errors
/// Those of the transport.
pub async fn barrier<T: Transport>(transport: &T) -> Result<()> {
    let sends: Vec<(usize, &[u8])> = others(transport).map(|to| (to, &[][..])).collect();
    let mut recvs: Vec<(usize, &mut [u8])> = others(transport).map(|from| (from, &mut [][..])).collect();
    transport.exchange_all(&sends, &mut recvs).await
}

/// Makes every rank's `data` that of `root`.
///
/// # Errors
/// Those of the transport.
pub async fn bcast<T: Transport>(transport: &T, data: &mut [u8], root: usize) -> Result<()> {
    if transport.rank() != root {
        return transport.recv(root, data).await;
    }
    let sends: Vec<(usize, &[u8])> = others(transport).map(|to| (to, &*data)).collect();
    transport.exchange_all(&sends, &mut []).await
}

/// Fills `all`, which has a block for each rank.
///
/// # Errors
/// Those of the transport.
pub async fn allgather<T: Transport>(transport: &T, all: &mut [u8], blocks: Blocks<'_>) -> Result<()> {
    let (rank, size) = (transport.rank(), transport.size());
    let (mut own, mut rest): (&[u8], _) = (&[], all);
    let mut recvs = Vec::with_capacity(size);
    for from in 0..size {
        let (block, behind) = rest.split_at_mut(blocks.range(from).len());
        if from == rank {
            own = block;
        } else {
            recvs.push((from, block));
        }
        rest = behind;
    }
    // Each begins with the rank behind it, so that they do not all go to the same one at once.
    recvs.rotate_left(rank);
    let sends: Vec<(usize, &[u8])> = others(transport).map(|to| (to, own)).collect();
    transport.exchange_all(&sends, &mut recvs).await
}

/// Makes piece `r` of `recv` the piece of rank `r` that is for the caller; in place, `recv` holds what is sent first.
///
/// # Errors
/// Those of the transport; [`crate::Error::Truncate`] if a piece is too small.
pub async fn alltoall<'a, 'b, T: Transport>(
    transport: &T,
    send: Option<impl Fn(usize) -> InputBuffer<'a>>,
    recv: impl Fn(usize) -> OutputBuffer<'b>,
) -> Result<()> {
    let Some(send) = send else {
        // What comes in would overwrite what has not gone out.
        return pairwise::alltoall(transport, send, recv).await;
    };
    let rank = transport.rank();
    let packed = others(transport).map(|to| Ok((to, send(to).packed()?))).collect::<Result<Vec<_>>>()?;
    let sends: Vec<(usize, &[u8])> = packed.iter().map(|(to, bytes)| (*to, &**bytes)).collect();
    let own = || copy(send(rank), &recv(rank));
    let mut landings = landings(transport, &recv)?;
    transport.exchange_all_while(&sends, &mut rooms(&mut landings), own).await?;
    land(landings)
}

/// Reduces every rank's `acc` into that of `root`; the others' is left as it is.
///
/// # Errors
/// Those of the transport and the kernel.
pub async fn reduce<T: Transport, K: ReductionKernel>(
    transport: &T,
    acc: &mut Scratch,
    root: usize,
    kernel: &K,
) -> Result<()> {
    if transport.rank() != root {
        return transport.send(root, acc).await;
    }
    let mut parts = operands(transport, acc.len())?;
    transport.exchange_all(&[], &mut rooms_of(&mut parts)).await?;
    reduce_parts(transport.rank(), acc, parts, kernel)
}

/// Makes every rank's `acc` the reduction of all.
///
/// # Errors
/// Those of the transport and the kernel.
pub async fn allreduce<T: Transport, K: ReductionKernel>(
    transport: &T,
    acc: &mut Scratch,
    kernel: &K,
) -> Result<()> {
    let mut parts = operands(transport, acc.len())?;
    let sends: Vec<(usize, &[u8])> = others(transport).map(|to| (to, &**acc)).collect();
    transport.exchange_all(&sends, &mut rooms_of(&mut parts)).await?;
    reduce_parts(transport.rank(), acc, parts, kernel)
}

/// Reduces every rank's `all` and returns the caller's block of the result.
///
/// # Errors
/// Those of the transport and the kernel.
pub async fn reduce_scatter<T: Transport, K: ReductionKernel>(
    transport: &T,
    all: &[u8],
    blocks: Blocks<'_>,
    kernel: &K,
) -> Result<Scratch> {
    let rank = transport.rank();
    let mut acc = Scratch::copy_of(&all[blocks.range(rank)])?;
    let mut parts = operands(transport, acc.len())?;
    let sends: Vec<(usize, &[u8])> = others(transport).map(|to| (to, &all[blocks.range(to)])).collect();
    transport.exchange_all(&sends, &mut rooms_of(&mut parts)).await?;
    reduce_parts(rank, &mut acc, parts, kernel)?;
    Ok(acc)
}

/// The other ranks, from the one behind the caller on.
fn others<T: Transport>(transport: &T) -> impl Iterator<Item = usize> + use<T> {
    let (rank, size) = (transport.rank(), transport.size());
    (1..size).map(move |step| (rank + step) % size)
}

/// Room for the pieces of the other ranks.
fn landings<'a, T: Transport>(
    transport: &T,
    pieces: impl Fn(usize) -> OutputBuffer<'a>,
) -> Result<Vec<(usize, Landing<'a>)>> {
    others(transport).map(|from| Ok((from, pieces(from).landing()?))).collect()
}

fn rooms<'a>(landings: &'a mut [(usize, Landing<'_>)]) -> Vec<(usize, &'a mut [u8])> {
    landings.iter_mut().map(|(from, landing)| (*from, &mut **landing)).collect()
}

fn land(landings: Vec<(usize, Landing<'_>)>) -> Result<()> {
    landings.into_iter().try_for_each(|(_, landing)| landing.land())
}

/// Room for the operands of the other ranks, of `len` bytes each.
fn operands<T: Transport>(transport: &T, len: usize) -> Result<Vec<(usize, Scratch)>> {
    others(transport).map(|from| Ok((from, Scratch::of(len)?))).collect()
}

fn rooms_of(parts: &mut [(usize, Scratch)]) -> Vec<(usize, &mut [u8])> {
    parts.iter_mut().map(|(from, part)| (*from, &mut **part)).collect()
}

/// Makes `acc`, the operands of `rank`, the reduction of its own and all others', from the highest rank down: so all
/// ranks get the same bits.
fn reduce_parts<K: ReductionKernel>(
    rank: usize,
    acc: &mut Scratch,
    mut parts: Vec<(usize, Scratch)>,
    kernel: &K,
) -> Result<()> {
    parts.push((rank, core::mem::take(acc)));
    parts.sort_unstable_by_key(|(from, _)| core::cmp::Reverse(*from));
    let mut parts = parts.into_iter().map(|(_, part)| part);
    *acc = parts.next().expect("the caller's own is there");
    parts.try_for_each(|below| kernel.reduce(&below, acc))
}
