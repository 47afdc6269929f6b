//! Ranks that wait for each other: for whom each wait is, and the circles that these make.

use perusal::internals::shm::roster::names;
use perusal::internals::shm::telemetry::{MessageAbout, Waiting};

use super::cause::{Cause, is_among_neighbours, is_finalizing, missing, said, under_way, waits};
use super::{LongWait, RankView};

/// The ranks that a wait is for: one of them at least must go on, or all, where several hold a lock. None where that is
/// not known, as of a lock that is being handed over.
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
    if wait.wait.kind == Waiting::Lock && !wait.detail.lock.holders.is_empty() {
        return wait.detail.lock.holders.clone();
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

/// The first circle of ranks that wait for each other, from its lowest rank on.
pub fn first(ranks: &[RankView]) -> Option<Vec<u32>> {
    let next = |at: u32| {
        let rank = ranks.get(at as usize)?;
        // Of several that are needed, one that waits itself.
        let awaited = awaited(ranks, rank, rank.wait()?);
        awaited.into_iter().find(|peer| waits_itself(ranks, *peer))
    };
    (0..ranks.len() as u32).find_map(|start| round(ranks, start, next).filter(|round| round[0] == start))
}

/// The circle of ranks that `rank` waits for, perhaps as one of them, by waits for one rank each: for its message, its
/// receive, a lock that it holds.
pub fn behind(ranks: &[RankView], rank: u32) -> Option<Vec<u32>> {
    let next = |at: u32| {
        let wait = ranks.get(at as usize)?.wait().filter(|wait| !wait.finalizing)?;
        let is_for_one = matches!(
            wait.wait.kind,
            Waiting::Receive
                | Waiting::Probe
                | Waiting::Send
                | Waiting::Room
                | Waiting::Lock
                | Waiting::Epoch
        );
        wait.wait.peer.filter(|peer| is_for_one && waits_itself(ranks, *peer))
    };
    round(ranks, rank, next)
}

fn waits_itself(ranks: &[RankView], rank: u32) -> bool {
    ranks.get(rank as usize).is_some_and(|rank| rank.wait().is_some())
}

/// The circle that one comes into from `start`, from its lowest rank on.
fn round(ranks: &[RankView], start: u32, next: impl Fn(u32) -> Option<u32>) -> Option<Vec<u32>> {
    // After so many steps one is in it.
    let first = (0..ranks.len()).try_fold(start, |at, _| next(at))?;
    let mut round = vec![first];
    let mut at = next(first)?;
    while at != first {
        round.push(at);
        at = next(at)?;
    }
    let lowest = round.iter().enumerate().min_by_key(|(_, rank)| **rank)?.0;
    round.rotate_left(lowest);
    Some(round)
}

/// What is said of the ranks of a circle.
pub fn tell(ranks: &[RankView], round: &[u32]) -> Option<Cause> {
    let wait_of = |rank: u32| ranks[rank as usize].wait();
    let kinds: Vec<Waiting> = round.iter().filter_map(|rank| Some(wait_of(*rank)?.wait.kind)).collect();
    let all = |kind: Waiting| kinds.iter().all(|other| *other == kind);
    let mut sorted = round.to_vec();
    sorted.sort_unstable();
    let who = names(&sorted);
    if let [alone] = round {
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
    let all_exchange =
        round.iter().filter_map(|rank| wait_of(*rank)).all(|wait| wait.call().starts_with("MPI_Sendrecv"));
    if all(Waiting::Receive) && all_exchange {
        return Cause::new(
            "receive-cycle",
            format!("{who} wait for each other: each waits for a message, and none has sent it yet"),
            "compare source and destination of the calls of MPI_Sendrecv: each must receive from a rank that sends to it",
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
    let following = round.iter().cycle().skip(1);
    let steps: Vec<String> = round
        .iter()
        .zip(following)
        .filter_map(|(rank, next)| {
            let wait = wait_of(*rank)?;
            let peer = if wait.wait.kind == Waiting::Lock { wait.lock() } else { format!("rank {next}") };
            Some(format!("rank {rank} in {} for {peer}", said(wait)))
        })
        .collect();
    Cause::new(
        "cycle",
        format!("{who} wait for each other: {}", steps.join(", ")),
        "look for a call that is missing, or make these calls in one order on all ranks",
    )
}
