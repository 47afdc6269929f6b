//! Chain: ranks stand in a row, and each passes the data on in pieces, so that every link is busy at once.

use crate::coll::Transport;
use crate::coll::selection::Case;
use crate::error::Result;

/// Bytes of a piece.
const PIECE: usize = 64 * 1024;

/// Returns whether the algorithm can perform `case`.
pub const fn serves(_: &Case) -> bool {
    true
}

/// Makes every rank's `data` that of `root`.
///
/// # Errors
/// Those of the transport.
pub async fn bcast<T: Transport>(transport: &T, data: &mut [u8], root: usize) -> Result<()> {
    let size = transport.size();
    let position = (transport.rank() + size - root) % size;
    let rank_at = |position: usize| (position + root) % size;
    for piece in data.chunks_mut(PIECE) {
        if position > 0 {
            transport.recv(rank_at(position - 1), piece).await?;
        }
        if position + 1 < size {
            transport.send(rank_at(position + 1), piece).await?;
        }
    }
    Ok(())
}
