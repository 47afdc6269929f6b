//! Collective calls that a rank has left out, which waits for a message instead.

use super::cause::{Cause, completed_calls, said, waits};
use super::{LongWait, RankView};

/// A rank that waits for a message from one that is further on in the collective calls on the same communicator: a root
/// that broadcasts to ranks that receive.
pub fn before_a_message(ranks: &[RankView]) -> Option<Cause> {
    waits(ranks).filter(|(_, wait)| wait.is_for_message()).find_map(|(rank, wait)| {
        let peer = ranks.get(wait.wait.peer? as usize).filter(|peer| peer.rank != rank.rank)?;
        let (own, theirs) =
            (completed_calls(rank, wait.wait.context)?, completed_calls(peer, wait.wait.context)?);
        let calls = calls_more(theirs, own)?;
        let text = format!(
            "rank {} waits in {} for rank {}, which has made {calls} there that rank {} has not",
            rank.rank,
            said(wait),
            peer.rank,
            rank.rank
        );
        Cause::new("collective-left-out", text, RECEIVED_BY_ALL)
    })
}

const RECEIVED_BY_ALL: &str = "a collective operation is called alike by all ranks: what MPI_Bcast sends, MPI_Bcast receives, not MPI_Recv";

/// The collective calls that one rank has made and another one has not, if there are any.
fn calls_more(theirs: u64, own: u64) -> Option<String> {
    match theirs.checked_sub(own)? {
        0 => None,
        1 => Some(format!("a collective call (no. {theirs})")),
        more => Some(format!("{more} collective calls (the last is no. {theirs})")),
    }
}

/// The same where the message may come from any rank.
pub fn before_any_message(ranks: &[RankView]) -> Option<Cause> {
    let is_from_any = |wait: &LongWait| wait.is_for_message() && wait.wait.peer.is_none();
    waits(ranks).filter(|(_, wait)| is_from_any(wait)).find_map(|(rank, wait)| {
        let own = completed_calls(rank, wait.wait.context)?;
        let ahead = |other: &RankView| {
            let calls = calls_more(completed_calls(other, wait.wait.context)?, own)?;
            Some((other.rank, calls))
        };
        let (other, calls) = ranks.iter().find_map(ahead)?;
        let text = format!(
            "rank {} waits in {} for any rank; rank {other} has made {calls} there that rank {} has not",
            rank.rank,
            said(wait),
            rank.rank
        );
        Cause::new("collective-left-out", text, RECEIVED_BY_ALL)
    })
}
