//! Linear: the root sends to, or receives from, one rank after the other.

use crate::coll::Transport;
use crate::coll::buffer::{Input, Output, copy};
use crate::coll::intracomm::receive;
use crate::coll::selection::Case;
use crate::error::Result;

/// Returns whether the algorithm can perform `case`.
pub const fn serves(_: &Case) -> bool {
    true
}

/// Gathers at `root`: piece `r` becomes what rank `r` sends; `send` may be `None` there.
///
/// # Safety
/// As in [`crate::coll::intracomm`].
///
/// # Errors
/// Those of the transport; [`crate::Error::Truncate`] if a piece is too small.
pub async unsafe fn gather<'a, T: Transport>(
    transport: &T,
    send: Option<Input<'_>>,
    pieces: impl Fn(usize) -> Output<'a>,
    root: usize,
) -> Result<()> {
    let rank = transport.rank();
    if rank != root {
        return match send {
            // SAFETY: the module's contract.
            Some(send) => transport.send(root, &unsafe { send.packed() }).await,
            None => Ok(()),
        };
    }
    for from in 0..transport.size() {
        if from != rank {
            // SAFETY: the module's contract.
            unsafe { receive(transport, from, pieces(from)) }.await?;
        } else if let Some(send) = send {
            // SAFETY: the module's contract.
            unsafe { copy(send, pieces(from)) }?;
        }
    }
    Ok(())
}

/// Scatters from `root`: `recv` becomes the caller's piece there; it may be `None` at the root.
///
/// # Safety
/// As in [`crate::coll::intracomm`].
///
/// # Errors
/// Those of the transport; [`crate::Error::Truncate`] if there is not enough room.
pub async unsafe fn scatter<'a, T: Transport>(
    transport: &T,
    pieces: impl Fn(usize) -> Input<'a>,
    recv: Option<Output<'_>>,
    root: usize,
) -> Result<()> {
    let rank = transport.rank();
    if rank != root {
        return match recv {
            // SAFETY: the module's contract.
            Some(recv) => unsafe { receive(transport, root, recv) }.await,
            None => Ok(()),
        };
    }
    for to in 0..transport.size() {
        if to != rank {
            // SAFETY: the module's contract.
            transport.send(to, &unsafe { pieces(to).packed() }).await?;
        } else if let Some(recv) = recv {
            // SAFETY: the module's contract.
            unsafe { copy(pieces(to), recv) }?;
        }
    }
    Ok(())
}
