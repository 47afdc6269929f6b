//! Linear: the root sends to, or receives from, one rank after the other.

use crate::coll::Transport;
use crate::coll::buffer::{InputBuffer, OutputBuffer, copy};
use crate::coll::intracomm::receive;
use crate::coll::selection::Case;
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
    if rank != root {
        return match send {
            Some(send) => transport.send(root, &send.packed()?).await,
            None => Ok(()),
        };
    }
    for from in 0..transport.size() {
        if from != rank {
            receive(transport, from, pieces(from)).await?;
        } else if let Some(send) = send {
            copy(send, &pieces(from))?;
        }
    }
    Ok(())
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
    if rank != root {
        return match recv {
            Some(recv) => receive(transport, root, recv).await,
            None => Ok(()),
        };
    }
    for to in 0..transport.size() {
        if to != rank {
            transport.send(to, &pieces(to).packed()?).await?;
        } else if let Some(recv) = &recv {
            copy(pieces(to), recv)?;
        }
    }
    Ok(())
}
