//! Collectives between the two groups of an intercommunicator.
//!
//! Each group works through its own transport (`local`); what crosses goes through a transport whose ranks are the
//! remote group's (`remote`), mostly between the two ranks 0.

use super::buffer::{InputBuffer, OpKernel, OutputBuffer};
use super::intracomm::{block_ends, receive};
use super::{Scratch, Transport, algorithms};
use crate::error::Result;

/// The two transports of an intercommunicator.
#[derive(Debug)]
pub struct Sides<T> {
    /// Over the caller's own group.
    pub local: T,
    /// Over the remote group: `rank` is the caller's in its own, `size` the remote one's.
    pub remote: T,
}

/// Where the root of an operation is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IntercommRoot {
    /// The caller (MPI_ROOT).
    Caller,
    /// Another rank of the caller's group (MPI_PROC_NULL): nothing to do.
    Sibling,
    /// This rank of the remote group.
    Remote(usize),
}

impl<T: Transport> Sides<T> {
    fn leads(&self) -> bool {
        self.local.rank() == 0
    }
}

/// Returns when all ranks of both groups have called it.
///
/// # Errors
/// Those of the transports.
pub async fn barrier<T: Transport>(sides: &Sides<T>) -> Result<()> {
    super::barrier(&sides.local).await?;
    if sides.leads() {
        sides.remote.exchange(0, &[], 0, &mut []).await?;
    }
    super::bcast(&sides.local, &mut [0], 0).await
}

/// Makes the elements of the group without the root the root's.
///
/// # Errors
/// Those of the transports.
pub async fn bcast<T: Transport>(
    sides: &Sides<T>,
    data: OutputBuffer<'_>,
    root: IntercommRoot,
) -> Result<()> {
    match root {
        IntercommRoot::Sibling => Ok(()),
        IntercommRoot::Caller => sides.remote.send(0, &data.as_input().packed()?).await,
        IntercommRoot::Remote(root) => {
            let mut landing = data.landing()?;
            if sides.leads() {
                sides.remote.recv(root, &mut landing).await?;
            }
            super::bcast(&sides.local, &mut landing, 0).await?;
            landing.land()
        }
    }
}

/// Makes piece `r`, at the root, what rank `r` of the other group sends.
///
/// # Errors
/// Those of the transports.
pub async fn gather<'a, T: Transport>(
    sides: &Sides<T>,
    send: Option<InputBuffer<'_>>,
    pieces: impl Fn(usize) -> OutputBuffer<'a>,
    root: IntercommRoot,
) -> Result<()> {
    match (root, send) {
        (IntercommRoot::Caller, _) => {
            for from in 0..sides.remote.size() {
                receive(&sides.remote, from, pieces(from)).await?;
            }
            Ok(())
        }
        (IntercommRoot::Remote(root), Some(send)) => sides.remote.send(root, &send.packed()?).await,
        _ => Ok(()),
    }
}

/// Makes `recv`, in the group without the root, the caller's piece at the root.
///
/// # Errors
/// Those of the transports.
pub async fn scatter<'a, T: Transport>(
    sides: &Sides<T>,
    pieces: impl Fn(usize) -> InputBuffer<'a>,
    recv: Option<OutputBuffer<'_>>,
    root: IntercommRoot,
) -> Result<()> {
    match (root, recv) {
        (IntercommRoot::Caller, _) => {
            for to in 0..sides.remote.size() {
                sides.remote.send(to, &pieces(to).packed()?).await?;
            }
            Ok(())
        }
        (IntercommRoot::Remote(root), Some(recv)) => receive(&sides.remote, root, recv).await,
        _ => Ok(()),
    }
}

/// Makes piece `r` what rank `r` of the other group sends.
///
/// # Errors
/// Those of the transports.
pub async fn allgather<'a, T: Transport>(
    sides: &Sides<T>,
    send: InputBuffer<'_>,
    pieces: impl Fn(usize) -> OutputBuffer<'a>,
) -> Result<()> {
    alltoall(sides, |_| send, pieces).await
}

/// Makes piece `r` of `recv` the piece of rank `r` of the other group that is for the caller.
///
/// # Errors
/// Those of the transports.
pub async fn alltoall<'a, 'b, T: Transport>(
    sides: &Sides<T>,
    send: impl Fn(usize) -> InputBuffer<'a>,
    recv: impl Fn(usize) -> OutputBuffer<'b>,
) -> Result<()> {
    let (rank, theirs) = (sides.local.rank(), sides.remote.size());
    // At step k, rank r sends to r + k and receives from r − k, modulo the larger group; a rank beyond the other group
    // is none. What is sent at a step is received at the same step.
    let rounds = sides.local.size().max(theirs);
    for step in 0..rounds {
        let (to, from) = ((rank + step) % rounds, (rank + rounds - step) % rounds);
        match (to < theirs, from < theirs) {
            (true, true) => {
                let (mine, mut landing) = (send(to).packed()?, recv(from).landing()?);
                sides.remote.exchange(to, &mine, from, &mut landing).await?;
                landing.land()?;
            }
            (true, false) => sides.remote.send(to, &send(to).packed()?).await?,
            (false, true) => receive(&sides.remote, from, recv(from)).await?,
            (false, false) => {}
        }
    }
    Ok(())
}

/// Makes `recv`, at the root, the reduction of the other group's `send`.
///
/// # Errors
/// Those of the transports and the operation.
pub async fn reduce<T: Transport>(
    sides: &Sides<T>,
    send: Option<InputBuffer<'_>>,
    recv: Option<OutputBuffer<'_>>,
    kernel: OpKernel<'_>,
    root: IntercommRoot,
) -> Result<()> {
    match (root, send, recv) {
        (IntercommRoot::Caller, _, Some(recv)) if recv.bytes() > 0 => receive(&sides.remote, 0, recv).await,
        (IntercommRoot::Remote(root), Some(send), _) if send.bytes() > 0 => {
            let mut acc = send.copied()?;
            algorithms::reduce(&sides.local, &mut acc, 0, &kernel).await?;
            if sides.leads() { sides.remote.send(root, &acc).await } else { Ok(()) }
        }
        _ => Ok(()),
    }
}

/// Makes `recv` the reduction of the other group's `send`.
///
/// # Errors
/// Those of the transports and the operation.
pub async fn allreduce<T: Transport>(
    sides: &Sides<T>,
    send: InputBuffer<'_>,
    recv: OutputBuffer<'_>,
    kernel: OpKernel<'_>,
) -> Result<()> {
    if send.bytes() == 0 {
        return Ok(());
    }
    let mut result = reduced_by_other_group(sides, send, recv.bytes(), kernel).await?;
    super::bcast(&sides.local, &mut result, 0).await?;
    recv.write(&result)
}

/// Makes `recv` the caller's block of the reduction of the other group's `send`, of which rank `r` of the caller's
/// group gets `counts(r)` elements. Both groups reduce equally many elements.
///
/// # Errors
/// Those of the transports and the operation.
pub async fn reduce_scatter<T: Transport>(
    sides: &Sides<T>,
    send: InputBuffer<'_>,
    recv: OutputBuffer<'_>,
    counts: impl Fn(usize) -> usize,
    kernel: OpKernel<'_>,
) -> Result<()> {
    if send.bytes() == 0 {
        return Ok(());
    }
    let all = reduced_by_other_group(sides, send, send.bytes(), kernel).await?;
    let ends = block_ends(sides.local.size(), counts, send.datatype().size());
    if !sides.leads() {
        return receive(&sides.local, 0, recv).await;
    }
    for to in 1..sides.local.size() {
        sides.local.send(to, &all[ends[to - 1]..ends[to]]).await?;
    }
    recv.write(&all[..ends[0]])
}

/// Returns, at rank 0, the reduction of the other group's `send`, of `bytes` bytes; at the others, room for it.
async fn reduced_by_other_group<T: Transport>(
    sides: &Sides<T>,
    send: InputBuffer<'_>,
    bytes: usize,
    kernel: OpKernel<'_>,
) -> Result<Scratch> {
    let mut acc = send.copied()?;
    let mut result = Scratch::of(bytes)?;
    algorithms::reduce(&sides.local, &mut acc, 0, &kernel).await?;
    if sides.leads() {
        sides.remote.exchange(0, &acc, 0, &mut result).await?;
    }
    Ok(result)
}
