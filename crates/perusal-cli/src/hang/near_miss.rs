//! Messages that are nearly what a rank waits for: sent with another tag,
//! on another communicator, by another rank or to another one, or not started.
//!
//! Each is a guess: a message with another tag may be one that is wanted later. That ranks wait for each other's
//! messages is certain, so where they do that comes first, unless each of them has its near miss.

use perusal::internals::shm::telemetry::{MessageAbout, Wait, Waiting};

use super::cause::{Cause, is_absent, under_way, waits};
use super::{LongWait, RankView, circle, comm_name};

/// A rank that waits, and what it has instead of what it waits for.
struct NearMiss<'a> {
    /// The rank that waits.
    rank: u32,
    /// The message that has come instead.
    message: Option<&'a MessageAbout>,
    cause: Cause,
}

/// In what a message differs from what a rank waits for, the likeliest mistakes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mismatch {
    Start,
    Tag,
    Communicator,
    SourceOfTheAbsent,
    CommunicatorOfTheAbsent,
    Destination,
    Source,
}

/// Those that are likely mistakes whatever else the ranks wait for.
const LIKELY: [Mismatch; 6] = [
    Mismatch::Start,
    Mismatch::Tag,
    Mismatch::Communicator,
    Mismatch::SourceOfTheAbsent,
    Mismatch::CommunicatorOfTheAbsent,
    Mismatch::Destination,
];

/// The near misses of all ranks: of each kind in turn.
fn near_misses<'a>(ranks: &'a [RankView], kinds: &[Mismatch]) -> impl Iterator<Item = NearMiss<'a>> {
    kinds.iter().flat_map(move |what| {
        waits(ranks).filter_map(move |(rank, wait)| match what {
            Mismatch::Start => unstarted(ranks, rank.rank, wait),
            Mismatch::Destination => sent_to_another(ranks, rank.rank, wait),
            what => unlike(ranks, rank.rank, wait, *what),
        })
    })
}

/// A likely near miss; behind the circle of ranks that wait for each other's messages,
/// if its rank waits for one of these.
pub fn likely(ranks: &[RankView]) -> Option<Cause> {
    let first = near_misses(ranks, &LIKELY).next()?;
    match circle::behind(ranks, first.rank) {
        Some(round) => of_circle(ranks, &round, Some(first)),
        None => Some(first.cause),
    }
}

/// A receive or probe of the wrong source.
pub fn wrong_source(ranks: &[RankView]) -> Option<Cause> {
    near_misses(ranks, &[Mismatch::Source]).next().map(|near_miss| near_miss.cause)
}

/// Ranks that wait for each other.
pub fn cycle(ranks: &[RankView]) -> Option<Cause> {
    let round = circle::first(ranks)?;
    of_circle(ranks, &round, None)
}

/// What is said of the ranks that wait in a circle: that they do, and a near miss of one of them, or else the one that
/// led here. Where each has one, that alone.
fn of_circle(ranks: &[RankView], round: &[u32], led: Option<NearMiss<'_>>) -> Option<Cause> {
    let kinds = [&LIKELY[..], &[Mismatch::Source]].concat();
    let near: Vec<NearMiss<'_>> =
        near_misses(ranks, &kinds).filter(|near| round.contains(&near.rank)).collect();
    // A rank that waits until the message is received that is another one's near miss.
    let has_sent = |member: u32, near: &NearMiss<'_>| {
        let wait = ranks.get(member as usize).and_then(RankView::wait).map(|wait| &wait.wait);
        wait.zip(near.message).is_some_and(|(wait, message)| {
            (wait.kind, wait.peer, wait.tag, wait.context)
                == (Waiting::Send, Some(near.rank), message.tag, message.context)
                && message.peer == Some(member)
        })
    };
    let explains = |member: u32| near.iter().any(|near| near.rank == member || has_sent(member, near));
    let explains_all = round.iter().all(|member| explains(*member));
    let Some(near) = near.into_iter().next().or(led) else { return circle::tell(ranks, round) };
    if explains_all {
        return Some(near.cause);
    }
    let circle = circle::tell(ranks, round)?;
    Some(Cause {
        kind: circle.kind,
        text: format!("{}; {}", circle.text, near.cause.text),
        advice: format!("{}; or {}", circle.advice, near.cause.advice),
    })
}

/// A message that is awaited while its other side has a persistent request for it that is not started.
fn unstarted<'a>(ranks: &'a [RankView], rank: u32, wait: &LongWait) -> Option<NearMiss<'a>> {
    if wait.finalizing {
        return None;
    }
    let Wait { kind, peer, tag, context, .. } = wait.wait;
    let sends = kind == Waiting::Send;
    let one = MessageAbout { peer, tag, context, sends, ..MessageAbout::default() };
    let awaited: Vec<&MessageAbout> = match kind {
        Waiting::Receive | Waiting::Probe | Waiting::Send => vec![&one],
        Waiting::Any | Waiting::All => under_way(wait).collect(),
        _ => vec![],
    };
    let fits = |awaited: &MessageAbout, idle: &MessageAbout| {
        let tag = awaited.tag.is_none() || idle.tag.is_none() || awaited.tag == idle.tag;
        let peer = idle.peer.is_none_or(|peer| peer == rank);
        idle.unstarted && idle.sends != awaited.sends && idle.context == awaited.context && tag && peer
    };
    awaited.into_iter().find_map(|awaited| {
            let (peer, other) = waits(ranks).find(|(other, wait)| {
                let is_peer = awaited.peer.is_none_or(|peer| peer == other.rank);
                is_peer && wait.detail.pending.iter().any(|idle| fits(awaited, idle))
            })?;
            let idle = other.detail.pending.iter().find(|idle| fits(awaited, idle))?;
            let what = if idle.sends { "send" } else { "receive" };
            let cause = Cause::new(
                "not-started",
                format!(
                    "rank {rank} waits in {}; rank {} has a persistent {what} for that, which is not started",
                    wait.text(),
                    peer.rank
                ),
                "call MPI_Start before each wait for a persistent request: MPI_Wait returns at once for one that is not started",
            )?;
            Some(NearMiss { rank, message: None, cause })
        })
}

/// A message that a receive or probe would have taken, had it been sent to its rank: it lies at another one, which
/// waits for no message.
fn sent_to_another<'a>(ranks: &'a [RankView], rank: u32, wait: &LongWait) -> Option<NearMiss<'a>> {
    let Wait { peer: Some(peer), tag: Some(tag), context, .. } = wait.wait else { return None };
    if !wait.is_for_message() {
        return None;
    }
    let is_it = |message: &&MessageAbout| {
        (message.peer, message.tag, message.context) == (Some(peer), Some(tag), context)
    };
    let is_done = |other: &RankView, there: &LongWait| {
        other.rank != rank && (there.finalizing || there.is_collective())
    };
    let mut there = waits(ranks).filter(|(other, wait)| is_done(other, wait));
    let (other, message) =
        there.find_map(|(other, wait)| Some((other.rank, wait.detail.unexpected.iter().find(is_it)?)))?;
    let cause = Cause::new(
        "wrong-destination",
        format!(
            "rank {rank} waits for tag {tag} from rank {peer} on {}; rank {peer} has sent one to {}",
            wait.comm(),
            if other == peer { "itself".to_owned() } else { format!("rank {other}") }
        ),
        "name the rank that receives as the destination of the send",
    )?;
    Some(NearMiss { rank, message: Some(message), cause })
}

/// A message that a receive or probe would have taken, had it the right tag, communicator or source.
fn unlike<'a>(ranks: &[RankView], rank: u32, wait: &'a LongWait, what: Mismatch) -> Option<NearMiss<'a>> {
    if !wait.is_for_message() {
        return None;
    }
    let wanted = &wait.wait;
    let fits = |message: &&MessageAbout| {
        let source = wanted.peer.is_none() || message.peer == wanted.peer;
        let tag = wanted.tag.is_none() || message.tag == wanted.tag;
        let comm = message.context == wanted.context;
        let is_of_absent = || wanted.peer.is_some_and(|peer| is_absent(ranks, peer));
        match what {
            Mismatch::Tag => source && !tag && comm,
            Mismatch::Communicator => source && tag && !comm,
            Mismatch::SourceOfTheAbsent => !source && tag && comm && is_of_absent(),
            // Ranks of two communicators have the same number.
            Mismatch::CommunicatorOfTheAbsent => {
                !source && wanted.tag.is_some() && tag && !comm && is_of_absent()
            }
            Mismatch::Source => !source && tag && comm,
            Mismatch::Start | Mismatch::Destination => false,
        }
    };
    let message = wait.detail.unexpected.iter().find(fits)?;
    let source = message.peer?;
    let there = comm_name(&message.comm, message.context);
    let from = wanted.peer.map_or_else(|| "any rank".to_owned(), |peer| format!("rank {peer}"));
    let tag = wanted.tag.map_or_else(|| "any tag".to_owned(), |tag| format!("tag {tag}"));
    let waits = format!("rank {rank} waits for {tag} from {from} on {}", wait.comm());
    let cause = match what {
        Mismatch::Tag => Cause::new(
            "wrong-tag",
            format!("{waits}; from rank {source} there is tag {}", message.tag?),
            "give the send and its receive the same tag",
        ),
        Mismatch::Communicator | Mismatch::CommunicatorOfTheAbsent => Cause::new(
            "wrong-communicator",
            format!("{waits}; rank {source} has sent it on {there}"),
            "give the send and its receive the same communicator",
        ),
        _ => Cause::new(
            "wrong-source",
            format!("{waits}; there is one from rank {source}"),
            "name the rank that sends as the source of the receive",
        ),
    };
    Some(NearMiss { rank, message: Some(message), cause: cause? })
}
