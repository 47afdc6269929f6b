//! Operations on bytes whose type does not matter: through the shared-memory team where there is one, else by messages.

use super::Transport;
use super::algorithms::{self, Blocks};
use super::shared_memory::TeamGuard;
use crate::error::Result;
use crate::events::Collective;

/// Returns when all ranks have called it.
///
/// # Errors
/// Those of the transport.
pub async fn barrier<T: Transport>(transport: &T) -> Result<()> {
    if let Some(mut team) = transport.team(Collective::Barrier).await {
        return team.barrier().await;
    }
    algorithms::barrier(transport).await
}

/// Makes every rank's `data` that of `root`. All give the same length.
///
/// # Errors
/// Those of the transport.
pub async fn bcast<T: Transport>(transport: &T, data: &mut [u8], root: usize) -> Result<()> {
    if let Some(mut team) = transport.team(Collective::Bcast).await
        && team.bcast(data, root).await?
    {
        return Ok(());
    }
    algorithms::bcast(transport, data, root).await
}

/// Fills `all`, which consists of a block for each rank, of equal length, of which the caller's own is filled in.
///
/// # Errors
/// Those of the transport.
pub async fn allgather<T: Transport>(transport: &T, all: &mut [u8]) -> Result<()> {
    let block = all.len() / transport.size();
    allgather_in(transport.team(Collective::Allgather).await, transport, all, block).await
}

/// Does what [`allgather`] does, where the team, if there is one, has been asked for, and the caller's block was filled
/// in with `sent` bytes.
pub(super) async fn allgather_in<'t, T: Transport>(
    team: Option<TeamGuard<'t, T::Hold<'t>>>,
    transport: &'t T,
    all: &mut [u8],
    sent: usize,
) -> Result<()> {
    if let Some(mut team) = team
        && team.allgather(all, sent).await?
    {
        return Ok(());
    }
    let block = all.len() / transport.size();
    algorithms::allgather(transport, all, Blocks::Equal(block)).await
}

/// Does what [`allgather`] does for blocks of different lengths: that of rank `r` ends before byte `ends[r]` and begins
/// where that of `r − 1` ends.
///
/// # Errors
/// Those of the transport.
pub async fn allgatherv<T: Transport>(transport: &T, all: &mut [u8], ends: &[usize]) -> Result<()> {
    allgatherv_in(transport.team(Collective::Allgather).await, transport, all, ends).await
}

/// Does what [`allgatherv`] does, where the team, if there is one, has been asked for.
pub(super) async fn allgatherv_in<'t, T: Transport>(
    team: Option<TeamGuard<'t, T::Hold<'t>>>,
    transport: &'t T,
    all: &mut [u8],
    ends: &[usize],
) -> Result<()> {
    if let Some(mut team) = team
        && team.allgatherv(all, ends).await?
    {
        return Ok(());
    }
    algorithms::allgather(transport, all, Blocks::EndingAt(ends)).await
}
