//! Ranks that wait for each other: for whom each wait is, and the circles that these make.

use perusal::internals::shm::roster::names;
use perusal::internals::shm::telemetry::{MessageAbout, Waiting};

use super::cause::{Cause, is_among_neighbours, is_finalizing, missing, said, under_way, waits};
use super::{LongWait, RankView};

/// The ranks that a wait is for: one of them at least must go on. None where that is not known, as of a lock that others hold in shared mode.
pub fn awaited(ranks: &[RankView], rank: &RankView, wait: &LongWait) -> Vec<u32> {
    if wait.finalizing || wait.wait.kind == Waiting::Finalize {
        let outside = ranks.iter().filter(|other| !is_finalizing(other) && other.rank != rank.rank);
        return outside.map(|other| other.rank).collect();
    }
    if wait.is_collective() {
        let missing = missing(ranks, wait);
        return match wait.wait.peer {
            // By messages: the member whose message is awaited, which in a neighbourhood is there itself perhaps.
            Some(peer) if missing.contains(&peer) || is_among_neighbours(wait) => vec![peer],
            _ => missing,
        };
    }
    match wait.wait.peer {
        Some(peer) => vec![peer],
        None if wait.wait.kind == Waiting::Any => {
            let pending = under_way(wait).filter(|message| !meets(ranks, message));
            let mut peers: Vec<u32> = pending.filter_map(|message| message.peer).collect();
            peers.sort_unstable();
            peers.dedup();
            peers
        }
        // For its buffered sends, which it has no request for: those at whom they lie.
        None if wait.wait.kind == Waiting::Send => {
            let lies = |other: &LongWait| other.detail.unexpected.iter().any(|it| it.peer == Some(rank.rank));
            waits(ranks).filter(|(_, other)| lies(other)).map(|(other, _)| other.rank).collect()
        }
        None => vec![],
    }
}

/// Whether a rank for which a nonblocking collective may be waiting is in one on the same communicator.
fn meets(ranks: &[RankView], awaited: &MessageAbout) -> bool {
    let is_same = |other: &MessageAbout| other.tag.is_none() && other.context == awaited.context;
    let is_collective = awaited.tag.is_none() && !awaited.context.is_multiple_of(2);
    let other = awaited.peer.and_then(|peer| ranks.get(peer as usize)?.wait());
    // What a rank awaits in MPI_Finalize has the same context.
    is_collective && other.is_some_and(|other| !other.finalizing && under_way(other).any(is_same))
}

/// Ranks that wait in a circle.
pub fn cycle(ranks: &[RankView]) -> Option<Cause> {
    let next = |at: u32| -> Option<u32> {
        let rank = ranks.get(at as usize)?;
        // Of several that are needed, one that waits itself.
        let awaited = awaited(ranks, rank, rank.wait()?);
        awaited.into_iter().find(|peer| ranks.get(*peer as usize).is_some_and(|peer| peer.wait().is_some()))
    };
    let start = (0..ranks.len() as u32).find_map(|start| {
        let mut at = start;
        for _ in 0..ranks.len() {
            at = next(at)?;
            if at == start {
                return Some(start);
            }
        }
        None
    })?;
    let mut round = vec![start];
    let mut at = start;
    while let Some(following) = next(at).filter(|following| *following != start && round.len() < ranks.len())
    {
        round.push(following);
        at = following;
    }
    let wait_of = |rank: u32| ranks[rank as usize].wait();
    let kinds: Vec<Waiting> = round.iter().filter_map(|rank| Some(wait_of(*rank)?.wait.kind)).collect();
    let all = |kind: Waiting| kinds.iter().all(|other| *other == kind);
    let mut sorted = round.clone();
    sorted.sort_unstable();
    let who = names(&sorted);
    if let [alone] = round.as_slice() {
        let wait = wait_of(*alone)?;
        let advice = if wait.wait.kind == Waiting::Receive {
            "a rank that receives from itself must start the send first (MPI_Isend), with the same communicator and tag; or compare the rank that it names"
        } else {
            "a rank that sends to itself must start the receive first (MPI_Irecv), or use MPI_Sendrecv"
        };
        return Cause::new(
            "waits-for-itself",
            format!("rank {alone} waits for itself, in {}", said(wait)),
            advice,
        );
    }
    if all(Waiting::Receive) {
        return Cause::new(
            "receive-cycle",
            format!("{who} wait for each other: each waits for a message, and none has sent it yet"),
            "let one rank send first, or use MPI_Sendrecv or MPI_Irecv",
        );
    }
    if all(Waiting::Send) {
        return Cause::new(
            "send-cycle",
            format!("{who} wait for each other: each waits in a send for its receive, and none receives"),
            "let one rank receive first, or use MPI_Sendrecv or MPI_Isend; that it works with short messages is luck",
        );
    }
    let steps: Vec<String> = round
        .iter()
        .filter_map(|rank| {
            let wait = wait_of(*rank)?;
            let peer =
                if wait.wait.kind == Waiting::Lock { wait.lock() } else { format!("rank {}", next(*rank)?) };
            Some(format!("rank {rank} in {} for {peer}", said(wait)))
        })
        .collect();
    Cause::new(
        "cycle",
        format!("{who} wait for each other: {}", steps.join(", ")),
        "look for a call that is missing, or make these calls in one order on all ranks",
    )
}
