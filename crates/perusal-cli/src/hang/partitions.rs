//! Mistakes with partitioned messages.

use perusal::internals::shm::telemetry::{UnreadyPartitions, Wait, Waiting};

use super::cause::{Cause, waits};
use super::{RankView, circle};

/// A partitioned send that its own rank holds up.
pub fn never_ready(ranks: &[RankView]) -> Option<Cause> {
    let (rank, wait) = waits(ranks).find(|(_, wait)| wait.wait.kind == Waiting::Partitions)?;
    Cause::new(
        "partitions-not-ready",
        format!("rank {} waits in {}, {}", rank.rank, wait.text(), unready_text(&wait.detail.partitions)),
        "call MPI_Pready for each partition before the wait",
    )
}

/// Which partitions of a send hold it up.
fn unready_text(unready: &UnreadyPartitions) -> String {
    let verb = if unready.count == 1 { "was" } else { "were" };
    format!("of which {unready} {verb} never ready")
}

/// A partitioned receive whose sender waits for something else than messages that belong to it.
pub fn missing(ranks: &[RankView]) -> Option<Cause> {
    let (rank, wait) = waits(ranks).find(|(rank, wait)| {
        wait.is_for_partitions() && !wait.finalizing && circle::behind(ranks, rank.rank).is_none()
    })?;
    let peer = ranks.get(wait.wait.peer? as usize)?;
    let missing = &wait.detail.partitions;
    let verb = if missing.count == 1 { "has" } else { "have" };
    Cause::new(
        "partitions-not-ready",
        format!(
            "rank {} waits in {}, of which {missing} {verb} not come; rank {} {}",
            rank.rank,
            wait.text(),
            peer.rank,
            peer.doing()
        ),
        "the sender must call MPI_Start, and MPI_Pready for each partition, for a send with the same tag and communicator",
    )
}

/// A partitioned receive whose sender waits for a send with another tag.
pub fn of_another_tag(ranks: &[RankView]) -> Option<Cause> {
    waits(ranks).filter(|(_, wait)| wait.is_for_partitions() && !wait.finalizing).find_map(|(rank, wait)| {
        let Wait { peer: Some(peer), tag: Some(tag), context, .. } = wait.wait else { return None };
        let sent = &ranks.get(peer as usize)?.wait().filter(|sent| !sent.finalizing)?.wait;
        let other = sent.tag.filter(|other| *other != tag)?;
        if sent.kind != Waiting::Send || sent.peer != Some(rank.rank) || sent.context != context {
            return None;
        }
        let text = format!(
            "rank {} waits for tag {tag} from rank {peer} on {}, in partitions; rank {peer} sends tag {other}",
            rank.rank,
            wait.comm()
        );
        Cause::new("wrong-tag", text, "give the partitioned send and its receive the same tag")
    })
}
