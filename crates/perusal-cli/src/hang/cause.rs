//! Which mistake makes a job stand still, in a sentence, and what to do about it.

use std::collections::BTreeMap;

use perusal::internals::shm::roster::names;
use perusal::internals::shm::telemetry::{CollectiveAbout, MessageAbout, RootAbout, Waiting};

use super::circle::awaited;
use super::remarks::with_remarks;
use super::{LongWait, RankView, Stage, left_out, message_text, near_miss, operation_text, partitions};

/// The mistake by which ranks wait for ever.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cause {
    /// Its name, for programs.
    pub kind: &'static str,
    /// What is wrong: a sentence without its full stop.
    pub text: String,
    /// What to look for in the program.
    pub advice: String,
}

impl Cause {
    /// A mistake, for who looks for one.
    pub fn new(kind: &'static str, text: String, advice: &'static str) -> Option<Self> {
        Some(Self { kind, text, advice: advice.to_owned() })
    }
}

/// The mistake behind what the ranks of a job that stands still do; the likeliest one, where there are several.
pub fn cause(ranks: &[RankView]) -> Cause {
    with_remarks(likeliest(ranks), ranks)
}

fn likeliest(ranks: &[RankView]) -> Cause {
    roots_of_two_groups(ranks)
        .or_else(|| different_arguments(ranks))
        .or_else(|| different_collectives(ranks))
        .or_else(|| different_agreements(ranks))
        .or_else(|| different_group_tags(ranks))
        .or_else(|| partitions::never_ready(ranks))
        .or_else(|| different_neighbours(ranks))
        .or_else(|| another_root(ranks))
        .or_else(|| no_leader(ranks))
        .or_else(|| partitions::of_another_tag(ranks))
        .or_else(|| near_miss::likely(ranks))
        .or_else(|| partitions::missing(ranks))
        .or_else(|| left_out::before_a_message(ranks))
        .or_else(|| awaits_the_absent(ranks))
        .or_else(|| near_miss::cycle(ranks))
        .or_else(|| different_numbers(ranks))
        .or_else(|| missing_in_collective(ranks))
        .or_else(|| near_miss::wrong_source(ranks))
        .or_else(|| left_out::before_any_message(ranks))
        .or_else(|| nobody_sends(ranks))
        .or_else(|| single(ranks))
        .or_else(|| nobody_receives(ranks))
        .unwrap_or_else(|| Cause {
            kind: "standstill",
            text: "every rank waits, and no message is under way".into(),
            advice: "compare what each rank waits for with what the others have done".into(),
        })
}

/// The ranks that wait, and their waits.
pub fn waits(ranks: &[RankView]) -> impl Iterator<Item = (&RankView, &LongWait)> {
    ranks.iter().filter_map(|rank| Some((rank, rank.wait()?)))
}

fn verb(ranks: &[u32], one: &'static str, several: &'static str) -> &'static str {
    if ranks.len() == 1 { one } else { several }
}

/// Ranks in collective operations, by context.
fn collectives(ranks: &[RankView]) -> BTreeMap<u32, Vec<(&RankView, &LongWait)>> {
    let mut all: BTreeMap<u32, Vec<_>> = BTreeMap::new();
    for (rank, wait) in waits(ranks).filter(|(_, wait)| wait.is_collective()) {
        all.entry(wait.wait.context).or_default().push((rank, wait));
    }
    all
}

/// Of ranks in collective operations on one communicator, those whose calls can be compared: where some wait for
/// requests, of which a rank may have several, those that are in the earliest one.
fn in_step<'a>(members: &[(&'a RankView, &'a LongWait)]) -> Vec<(&'a RankView, &'a LongWait)> {
    let for_requests = members.iter().any(|(_, wait)| wait.wait.kind == Waiting::Operation);
    if for_requests { in_earliest(members) } else { members.to_vec() }
}

/// Of ranks in collective operations on one communicator, those that are in the earliest one.
fn in_earliest<'a>(members: &[(&'a RankView, &'a LongWait)]) -> Vec<(&'a RankView, &'a LongWait)> {
    let number = |wait: &LongWait| wait.detail.collective.number;
    let earliest = members.iter().map(|(_, wait)| number(wait)).min();
    members.iter().filter(|(_, wait)| Some(number(wait)) == earliest).copied().collect()
}

fn different_collectives(ranks: &[RankView]) -> Option<Cause> {
    for members in collectives(ranks).values() {
        let members = &in_step(members);
        let calls = groups(members, |wait| wait.function().to_owned());
        if calls.len() < 2 {
            continue;
        }
        let text = format!(
            "the ranks call different collective operations on {}: {}",
            members[0].1.comm(),
            said_by(members, |wait| [wait.numbered_call(), wait.arguments()].join(" ").trim_end().to_owned())
        );
        return Cause::new("different-collectives", text, SAME_COLLECTIVES);
    }
    None
}

/// Members of a communicator that outlive deaths by different functions.
fn different_agreements(ranks: &[RankView]) -> Option<Cause> {
    let mut all: BTreeMap<u32, Vec<_>> = BTreeMap::new();
    for (rank, wait) in waits(ranks) {
        if wait.wait.kind == Waiting::Agreement && !wait.finalizing {
            all.entry(wait.wait.context).or_default().push((rank, wait));
        }
    }
    let call = |wait: &LongWait| wait.detail.call.clone();
    let members = all.values().find(|members| groups(members, call).len() > 1)?;
    Cause::new(
        "different-collectives",
        format!(
            "the ranks call different collective operations on {}: {}",
            members[0].1.comm(),
            said_by(members, call)
        ),
        SAME_COLLECTIVES,
    )
}

/// Members of a group that call MPI_Comm_create_group with different tags. Of one that has gone on the message is
/// there.
fn different_group_tags(ranks: &[RankView]) -> Option<Cause> {
    let calls: Vec<_> = waits(ranks).filter(|(_, wait)| !wait.finalizing && wait.is_among_some()).collect();
    let gave = calls.iter().find(|(_, wait)| wait.detail.collective.op.contains(" gave tag "));
    if let Some((rank, wait)) = gave {
        let CollectiveAbout { data, op, .. } = &wait.detail.collective;
        let text = format!(
            "the tags of {} on {} differ: rank {} waits in it with {data}, {op}",
            wait.function(),
            wait.comm(),
            rank.rank
        );
        return Cause::new("different-tags", text, SAME_GROUP_TAGS);
    }
    calls.iter().find_map(|(_, first)| {
        let is_same = |wait: &LongWait| {
            wait.function() == first.function()
                && wait.wait.context == first.wait.context
                && !wait.detail.collective.op.is_empty()
                && wait.detail.collective.op == first.detail.collective.op
        };
        let members: Vec<_> = calls.iter().filter(|(_, wait)| is_same(wait)).copied().collect();
        if groups(&members, |wait| wait.detail.collective.data.clone()).len() < 2 {
            return None;
        }
        let text = format!(
            "the tags of {} on {} differ: {}",
            first.function(),
            first.comm(),
            said_by(&members, LongWait::arguments)
        );
        Cause::new("different-tags", text, SAME_GROUP_TAGS)
    })
}

const SAME_GROUP_TAGS: &str = "all members of the group must give this call the same tag";

const SAME_COLLECTIVES: &str =
    "every rank of a communicator must call the same collective operations in the same order";

/// All members of a communicator are in the same operation, but some count more calls: these have made a call that
/// waited for nobody (a root that broadcasts, a rank that gives its part to a root), and that the others left out.
fn different_numbers(ranks: &[RankView]) -> Option<Cause> {
    collectives(ranks).values().find_map(|members| {
        let first = members[0].1;
        let all = &first.detail.comm.members;
        let are_there = |member: &u32| members.iter().any(|(rank, _)| rank.rank == *member);
        let numbers = groups(members, |wait| match wait.detail.collective.number {
            0 => String::new(),
            number => number.to_string(),
        });
        let compares = members.iter().all(|(_, wait)| wait.wait.kind == Waiting::Collective);
        if all.is_empty() || !all.iter().all(are_there) || numbers.len() < 2 || !compares {
            return None;
        }
        Cause::new(
            "different-numbers",
            format!(
                "the ranks have made different numbers of collective calls on {}: {}",
                first.comm(),
                said_by(members, LongWait::numbered_call)
            ),
            "look for a collective call that some ranks make and others leave out: MPI_Bcast within a branch for its root",
        )
    })
}

/// An argument of collective calls: what differs, how it is called, and its value at a rank;
/// empty where it is not known.
type Argument = (&'static str, &'static str, fn(&LongWait) -> String);

const ARGUMENTS: [Argument; 4] = [
    // Of MPI_Intercomm_create, whose leaders meet by it on another communicator.
    ("different-tags", "tags", |wait| {
        let data = &wait.detail.collective.data;
        if data.starts_with("tag ") { data.clone() } else { String::new() }
    }),
    ("different-roots", "roots", |wait| {
        // Between two groups the members give it in other ways.
        match wait.detail.collective.root {
            Some(root @ RootAbout::Rank(_)) => root.to_string(),
            _ => String::new(),
        }
    }),
    ("different-operations", "operations", |wait| wait.detail.collective.op.clone()),
    ("different-counts", "counts or types", |wait| wait.detail.collective.data.clone()),
];

/// Ranks in the same collective call between two groups of which none, or several, say that they are the root.
fn roots_of_two_groups(ranks: &[RankView]) -> Option<Cause> {
    const ADVICE: &str = "of an intercommunicator the root gives MPI_ROOT, the others of its group give MPI_PROC_NULL, and those of the other group give the root's rank in its group";
    collectives(ranks).values().find_map(|members| {
        let there: Vec<_> = in_earliest(members);
        let (first, root) = (there[0].1, |wait: &LongWait| wait.detail.collective.root);
        if groups(&there, |wait| wait.function().to_owned()).len() != 1 {
            return None;
        }
        let call = format!("{} on {}", first.numbered_call(), first.comm());
        let callers = there.iter().filter(|(_, wait)| root(wait) == Some(RootAbout::Caller));
        let callers: Vec<u32> = callers.map(|(rank, _)| rank.rank).collect();
        if callers.len() > 1 {
            let text = format!("{} each say that they are the root of {call} (MPI_ROOT)", names(&callers));
            return Cause::new("different-roots", text, ADVICE);
        }
        // In a communicator of one group they could go on.
        let same = root(first).filter(|root| matches!(root, RootAbout::Rank(_)))?;
        let all = &first.detail.comm.members;
        let is_there =
            |member: &u32| there.iter().any(|(rank, wait)| rank.rank == *member && root(wait) == Some(same));
        if all.len() < 2 || !all.iter().all(is_there) || !arguments_agree(&there) {
            return None;
        }
        let text = format!("no rank says that it is the root of {call} (MPI_ROOT): all give root {same}");
        Cause::new("different-roots", text, ADVICE)
    })
}

/// Whether nothing differs in the arguments of ranks in the same collective call.
fn arguments_agree(members: &[(&RankView, &LongWait)]) -> bool {
    ARGUMENTS.into_iter().all(|(_, _, value)| groups(members, value).len() < 2)
}

/// Ranks in the same collective call that give another root, operation, count or type. Others may have made it, for
/// which what differs was all the same.
fn different_arguments(ranks: &[RankView]) -> Option<Cause> {
    collectives(ranks).values().find_map(|members| {
        let members = &in_earliest(members);
        if groups(members, |wait| wait.function().to_owned()).len() != 1 {
            return None;
        }
        let (kind, what, _) = ARGUMENTS.into_iter().find(|(_, _, value)| groups(members, value).len() > 1)?;
        let first = members[0].1;
        Cause::new(
            kind,
            format!(
                "the {what} of {} on {} differ: {}",
                first.numbered_call(),
                first.comm(),
                said_by(members, LongWait::arguments)
            ),
            "give a collective operation the same root, operation, count, type and tag on all ranks",
        )
    })
}

/// Ranks by what is said of their waits, which is something; those of the lowest rank first.
fn groups(members: &[(&RankView, &LongWait)], say: impl Fn(&LongWait) -> String) -> Vec<(String, Vec<u32>)> {
    let mut said: Vec<(String, Vec<u32>)> = vec![];
    for (rank, wait) in members.iter().filter(|(_, wait)| !wait.detail.call.is_empty()) {
        let text = say(wait);
        match said.iter_mut().find(|(other, _)| *other == text) {
            Some((_, ranks)) => ranks.push(rank.rank),
            None if text.is_empty() => {}
            None => said.push((text, vec![rank.rank])),
        }
    }
    said
}

/// Messages that a rank has begun and that are not over.
pub fn under_way(wait: &LongWait) -> impl Iterator<Item = &MessageAbout> {
    wait.detail.pending.iter().filter(|message| !message.unstarted)
}

/// What is said of each rank's wait: "rank 0 this, ranks 1 and 2 that".
fn said_by(members: &[(&RankView, &LongWait)], say: impl Fn(&LongWait) -> String) -> String {
    let said: Vec<String> =
        groups(members, say).iter().map(|(text, ranks)| format!("{} {text}", names(ranks))).collect();
    said.join(", ")
}

/// Whether a rank has called MPI_Finalize, and its process has not ended.
pub fn is_finalizing(rank: &RankView) -> bool {
    match &rank.stage {
        Stage::Waits(wait) => wait.finalizing,
        Stage::Finalizes | Stage::Finalized => true,
        _ => false,
    }
}

/// Whether `rank` will call nothing any more that others wait for.
pub fn is_absent(ranks: &[RankView], rank: u32) -> bool {
    let absent = |rank: &RankView| is_finalizing(rank) || matches!(rank.stage, Stage::Ended(_));
    ranks.get(rank as usize).is_some_and(absent)
}

/// Members of the communicator of a collective wait that are in no collective operation there, without those that have
/// made the call and gone on, if others are left. Of a nonblocking one, those that have begun it, too, whatever they
/// wait for, are there.
pub fn missing(ranks: &[RankView], wait: &LongWait) -> Vec<u32> {
    let context = wait.wait.context;
    let is_there = |rank: &RankView| {
        rank.wait().is_some_and(|other| {
            // What a rank awaits in MPI_Finalize has the same context.
            let has_begun =
                || !other.finalizing && under_way(other).any(|message| message.context == context);
            other.is_collective() && other.wait.context == context
                || wait.wait.kind == Waiting::Operation && has_begun()
        })
    };
    let members = wait.detail.comm.members.iter().filter_map(|member| ranks.get(*member as usize));
    let absent: Vec<&RankView> = members.filter(|rank| !is_there(rank)).collect();
    let number = wait.detail.collective.number;
    // One that gives its part to a root waits for nobody.
    let has_made = |rank: &RankView| completed_calls(rank, context & !1).is_some_and(|made| made >= number);
    let left_out = absent.iter().filter(|rank| number == 0 || !has_made(rank));
    let left_out: Vec<u32> = left_out.map(|rank| rank.rank).collect();
    if left_out.is_empty() { absent.iter().map(|rank| rank.rank).collect() } else { left_out }
}

/// How many collective calls a rank has completed on the communicator of a context, if it says so.
pub fn completed_calls(rank: &RankView, context: u32) -> Option<u64> {
    let wait = rank.wait()?;
    if wait.is_collective() && wait.wait.context & !1 == context {
        return wait.detail.collective.number.checked_sub(1);
    }
    let made = wait.detail.made.iter().find(|made| made.context == context)?.calls;
    let under_way = wait.detail.operations.iter().filter(|operation| operation.context == context).count();
    made.checked_sub(under_way as u64)
}

/// Whether a wait is in a collective operation among neighbours.
pub fn is_among_neighbours(wait: &LongWait) -> bool {
    wait.is_collective() && wait.function().starts_with("MPI_Neighbor_")
}

/// A rank that waits in a collective operation among neighbours for one that has made this call: it does not have the
/// first one as a neighbour.
fn different_neighbours(ranks: &[RankView]) -> Option<Cause> {
    waits(ranks).filter(|(_, wait)| is_among_neighbours(wait)).find_map(|(rank, wait)| {
        let peer = wait.wait.peer?;
        let (number, context) = (wait.detail.collective.number, wait.wait.context & !1);
        let theirs = ranks.get(peer as usize)?.wait()?;
        let is_made = theirs.detail.made.iter().any(|made| made.context == context && made.calls >= number);
        // A rank sends to all its neighbours before it waits for one.
        let is_in_it = is_among_neighbours(theirs)
            && (theirs.detail.collective.number, theirs.wait.context & !1) == (number, context)
            && theirs.function() == wait.function();
        if number == 0 || !is_made && !is_in_it {
            return None;
        }
        let how = if is_in_it { "is in this call, too," } else { "has made this call" };
        Cause::new(
            "different-neighbours",
            format!(
                "rank {} waits in {} for rank {peer}, which {how} and does not have rank {} as a neighbour",
                rank.rank,
                said(wait),
                rank.rank
            ),
            "a rank that receives from another one must be among those that the other one sends to: compare the arguments of MPI_Dist_graph_create_adjacent",
        )
    })
}

/// A rank that waits in a collective operation with a root for one that has made its call of this number.
fn another_root(ranks: &[RankView]) -> Option<Cause> {
    // A persistent operation has its number before it is started.
    let is_one = |wait: &LongWait| wait.is_collective() && !wait.function().ends_with("_init");
    waits(ranks).filter(|(_, wait)| is_one(wait)).find_map(|(rank, wait)| {
        let about = &wait.detail.collective;
        let root = about.root?;
        // In a team's memory a rank awaits what the root shows there, and no message.
        let shown = || match root {
            RootAbout::Rank(root) if wait.function().contains("cast") || wait.function().contains("catter") => {
                wait.detail.comm.members.get(root as usize).copied()
            }
            _ => None,
        };
        let peer = wait.wait.peer.or_else(shown).filter(|peer| *peer != rank.rank)?;
        let made = completed_calls(ranks.get(peer as usize)?, wait.wait.context & !1)?;
        if about.number == 0 || made < about.number {
            return None;
        }
        let text = format!(
            "rank {} waits in {} {} for rank {peer}, which has made its call no. {} there: it gave another root, or called another function",
            rank.rank,
            said(wait),
            wait.arguments(),
            about.number
        );
        let advice = "all ranks must give the same root; of an intercommunicator the root itself gives MPI_ROOT";
        Cause::new("different-roots", text, advice)
    })
}

/// A leader of MPI_Intercomm_create that waits for a rank of the other group that is not its leader.
fn no_leader(ranks: &[RankView]) -> Option<Cause> {
    let is_leader = |wait: &LongWait| wait.detail.collective.data.starts_with("tag ");
    let in_it =
        || waits(ranks).filter(|(_, wait)| !wait.finalizing && wait.function() == "MPI_Intercomm_create");
    in_it().filter(|(_, wait)| is_leader(wait)).find_map(|(rank, wait)| {
        let peer = wait.wait.peer?;
        in_it().find(|(other, wait)| other.rank == peer && !is_leader(wait))?;
        let text = format!(
            "rank {} waits in {} for rank {peer} as the leader of the other group, which is in that call, and not the leader of its group",
            rank.rank,
            said(wait)
        );
        let advice = "give MPI_Intercomm_create the rank that the other group's leader has in the peer communicator";
        Cause::new("different-leaders", text, advice)
    })
}

/// A wait for a rank that has ended, or is in MPI_Finalize.
fn awaits_the_absent(ranks: &[RankView]) -> Option<Cause> {
    waits(ranks).filter(|(_, wait)| !wait.finalizing).find_map(|(rank, wait)| {
        let is_leaving = |member: &u32| ranks.get(*member as usize).is_some_and(is_finalizing);
        let peer = match wait.wait.kind {
            // Those that have ended have no say in it.
            Waiting::Agreement => wait.detail.comm.members.iter().copied().find(is_leaving),
            _ => awaited(ranks, rank, wait).into_iter().find(|peer| is_absent(ranks, *peer)),
        };
        let peer = &ranks[peer? as usize];
        let doing = if is_finalizing(peer) { "is in MPI_Finalize already".to_owned() } else { peer.doing() };
        let behind = match wait.wait.kind {
            Waiting::Lock => format!("{}; rank {} {doing}", wait.lock(), peer.rank),
            _ => format!("rank {}, which {doing}", peer.rank),
        };
        Cause::new(
            "finalized-early",
            format!("rank {} waits in {} for {behind}", rank.rank, said(wait)),
            "a rank that leaves early has skipped a call that the others wait for: look at its branches and loop bounds",
        )
    })
}

/// The call of a wait, with what does not follow from the peer.
pub fn said(wait: &LongWait) -> String {
    match (wait.wait.kind, wait.wait.tag) {
        (Waiting::Receive | Waiting::Probe | Waiting::Send, Some(tag)) => {
            format!("{} (tag {tag} on {})", wait.call(), wait.comm())
        }
        (Waiting::Send, None) if wait.wait.peer.is_none() => format!("{} (its buffered sends)", wait.call()),
        (Waiting::Collective, _) => format!("{} on {}", wait.numbered_call(), wait.comm()),
        (Waiting::Operation, _) => {
            format!("{} ({} on {})", wait.call(), wait.numbered_call(), wait.comm())
        }
        (Waiting::Receive | Waiting::Probe | Waiting::Send, _) => {
            format!("{} on {}", wait.call(), wait.comm())
        }
        (Waiting::Lock | Waiting::Epoch, _) => format!("{}{}", wait.call(), wait.on_window()),
        (Waiting::Agreement, _) => format!("{} on {}", wait.call(), wait.comm()),
        _ => match operations(wait).as_slice() {
            [] => wait.call().to_owned(),
            operations => format!("{} ({})", wait.call(), operations.join(", ")),
        },
    }
}

/// The collective operations for which a rank that waits has requests.
fn operations(wait: &LongWait) -> Vec<String> {
    let for_requests = matches!(wait.wait.kind, Waiting::Any | Waiting::All);
    wait.detail.operations.iter().filter(|_| for_requests).map(operation_text).collect()
}

fn missing_in_collective(ranks: &[RankView]) -> Option<Cause> {
    collectives(ranks).into_values().find_map(|members| {
        let missing = missing(ranks, members[0].1);
        let first = ranks.get(*missing.first()? as usize)?;
        let there: Vec<u32> = members.iter().map(|(rank, _)| rank.rank).collect();
        let of_first =
            if missing.len() == 1 { ", which".to_owned() } else { format!("; rank {}", first.rank) };
        Cause::new(
            "missing-in-collective",
            format!(
                "{} {} in {} for {}{of_first} {}",
                names(&there),
                verb(&there, "waits", "wait"),
                said(members[0].1),
                names(&missing),
                first.doing()
            ),
            "every rank of a communicator must call its collective operations",
        )
    })
}

/// Receives or probes for which nothing was sent.
fn nobody_sends(ranks: &[RankView]) -> Option<Cause> {
    let (rank, wait) = waits(ranks).find(|(_, wait)| wait.is_for_message())?;
    let from = wait.wait.peer.map_or_else(|| "any rank".to_owned(), |peer| format!("rank {peer}"));
    let who = match wait.wait.peer.and_then(|peer| ranks.get(peer as usize)) {
        Some(peer) => format!("rank {} has sent none and {}", peer.rank, peer.doing()),
        None => "no rank has sent one, and all wait".into(),
    };
    Cause::new(
        "nothing-sent",
        format!("rank {} waits in {} for a message from {from}; {who}", rank.rank, said(wait)),
        "look for the send that belongs to this receive",
    )
}

/// A send that MPI_Finalize waits for: its request was freed, or a wait for it was left out.
fn nobody_receives(ranks: &[RankView]) -> Option<Cause> {
    let is_of_program = |message: &&MessageAbout| message.sends && message.context.is_multiple_of(2);
    let (rank, send) = waits(ranks)
        .filter(|(_, wait)| wait.finalizing)
        .find_map(|(rank, wait)| Some((rank, under_way(wait).find(is_of_program)?)))?;
    Cause::new(
        "nothing-received",
        format!(
            "rank {} waits in MPI_Finalize for its send {}, which nobody receives",
            rank.rank,
            message_text(send, false)
        ),
        "look for the receive that belongs to this send",
    )
}

/// Any other wait.
fn single(ranks: &[RankView]) -> Option<Cause> {
    let (rank, wait) = waits(ranks).find(|(_, wait)| !wait.finalizing)?;
    let of =
        |peer: u32| ranks.get(peer as usize).map(|peer| format!("; rank {} {}", peer.rank, peer.doing()));
    let pending = under_way(wait).find_map(|message| message.peer);
    let peer = wait.wait.peer.or(pending).filter(|peer| *peer != rank.rank);
    let behind = peer.and_then(of).unwrap_or_default();
    Cause::new(
        "standstill",
        format!("rank {} waits in {}{behind}", rank.rank, wait.text()),
        "look at what the rank that is waited for should have called",
    )
}
