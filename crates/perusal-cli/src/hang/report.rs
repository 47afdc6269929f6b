//! The report: lines for people, and JSON.

use std::fmt::Write as _;

use perusal::internals::shm::telemetry::{
    CallsMade, CollectiveAbout, MessageAbout, OperationAbout, RootAbout, Waiting,
};
use serde_json::{Value, json};

use super::asleep::{self, Awaits, Sleeper};
use super::{Cause, LongWait, RankView, Stage, message_text, operation_text};
use perusal::internals::shm::roster::names;

/// Groups of ranks that are written out.
const MOST_LINES: usize = 32;
/// Things of a rank for which threads wait that are not in MPI, that are written out.
const MOST_SLEEPERS: usize = 4;

/// What each rank does: a line for all ranks that do the same, and below it what the first of them has in its queues.
pub fn report(ranks: &[RankView]) -> String {
    let mut groups: Vec<(String, String, Vec<&RankView>)> = vec![];
    let job = |rank: &RankView| rank.home.map(|(job, _)| job);
    for rank in ranks {
        let (doing, more) = (rank.doing(), details(rank));
        let is_like = |members: &[&RankView]| job(members[0]) == job(rank);
        match groups
            .iter_mut()
            .find(|(text, below, members)| (text, below) == (&doing, &more) && is_like(members))
        {
            Some((_, _, members)) => members.push(rank),
            None => groups.push((doing, more, vec![rank])),
        }
    }
    let mut text = String::new();
    for (doing, more, members) in groups.iter().take(MOST_LINES) {
        let numbers: Vec<u32> = members.iter().map(|rank| rank.rank).collect();
        let doing = if numbers.len() == 1 { doing.clone() } else { plural(doing) };
        let since = members.iter().filter_map(|rank| Some(rank.wait()?.seconds)).reduce(f64::min);
        let since = since.map_or_else(String::new, |seconds| format!(", for {seconds:.1} s"));
        // Writing to a string cannot fail.
        let _ = writeln!(text, "perusal:   {}{} {doing}{since}", names(&numbers), home(members));
        text.push_str(more);
    }
    if groups.len() > MOST_LINES {
        let _ = writeln!(text, "perusal:   … and {} more lines", groups.len() - MOST_LINES);
    }
    text
}

/// Where guests of one job are at home, in parentheses behind their names; nothing for ranks of this job.
pub fn home(guests: &[&RankView]) -> String {
    let ranks: Vec<u32> = guests.iter().filter_map(|rank| Some(rank.home?.1)).collect();
    let job = guests.first().and_then(|rank| Some(rank.home?.0));
    job.map_or_else(String::new, |job| format!(" ({} of job {job})", names(&ranks)))
}

/// The same of several ranks.
pub fn plural(doing: &str) -> String {
    let verbs = [
        ("does not wait in MPI: it ", "do not wait in MPI: they "),
        ("waits in", "wait in"),
        ("has ", "have "),
        ("is ", "are "),
        ("computes, or polls", "compute, or poll"),
        ("sleeps in", "sleep in"),
        ("belongs to", "belong to"),
    ];
    let Some((rest, all)) = verbs.iter().find_map(|(one, all)| Some((doing.strip_prefix(one)?, all))) else {
        return doing.to_owned();
    };
    // What follows a pronoun has a verb of its own.
    let rest = if all.ends_with("they ") { plural(rest) } else { rest.to_owned() };
    format!("{all}{}", rest.replace(" and runs on", " and run on"))
}

/// What lies in the queues of a rank that waits, and what its other threads wait for.
fn details(rank: &RankView) -> String {
    let mut text = rank.wait().map_or_else(String::new, |wait| queues(rank, wait));
    let others = asleep::said_of(rank);
    let (one, other) = if rank.wait().is_some() { ("another", "other ") } else { ("a", "") };
    for (awaits, threads) in others.iter().take(MOST_SLEEPERS) {
        let _ = match threads {
            1 => writeln!(text, "perusal:     {one} thread waits for {awaits}"),
            threads => writeln!(text, "perusal:     {threads} {other}threads wait for {awaits}"),
        };
    }
    if rank.process.threads > 1 && (rank.wait().is_some() || !others.is_empty()) {
        let _ = writeln!(text, "perusal:     has {} threads", rank.process.threads);
    }
    text
}

/// What lies in the queues of a rank that waits, and what other threads wait for in MPI.
fn queues(rank: &RankView, wait: &LongWait) -> String {
    let mut text = String::new();
    for message in &wait.detail.unexpected {
        let _ = writeln!(text, "perusal:     has an unexpected message {}", message_text(message, true));
    }
    // The message that a single receive or send is about is named above.
    let own = |message: &&MessageAbout| {
        wait.wait.kind as u64 > 2 && message.context.is_multiple_of(2)
            || message.context != wait.wait.context
            || message.unstarted
    };
    for message in wait.detail.pending.iter().filter(own).filter(|message| message.context.is_multiple_of(2))
    {
        let what = if message.sends { "send" } else { "receive" };
        let (kind, state) = if message.unstarted { ("persistent ", "started") } else { ("", "over") };
        let _ =
            writeln!(text, "perusal:     its {kind}{what} {} is not {state}", message_text(message, false));
    }
    // The operation that the wait is for is named above.
    let waited_for = |operation: &&OperationAbout| {
        wait.wait.kind == Waiting::Operation
            && (operation.number, operation.context)
                == (wait.detail.collective.number, wait.wait.context & !1)
    };
    for operation in wait.detail.operations.iter().filter(|operation| !waited_for(operation)) {
        let _ = writeln!(text, "perusal:     its {} is not over", operation_text(operation));
    }
    let unready = &wait.detail.partitions;
    if unready.count > 0 {
        let state = match (unready.count, wait.is_for_partitions()) {
            (1, true) => "has not come",
            (1, false) => "is not ready",
            (_, true) => "have not come",
            (_, false) => "are not ready",
        };
        let _ = writeln!(text, "perusal:     {unready} {state}");
    }
    for other in &rank.others {
        let _ = writeln!(text, "perusal:     another thread waits in {}", other.text());
    }
    text
}

/// The same for programs.
pub fn json(cause: Option<&Cause>, ranks: &[RankView]) -> Value {
    json!({
        "deadlock": cause.is_some(),
        "kind": cause.map(|cause| cause.kind),
        "cause": cause.map(|cause| cause.text.as_str()),
        "advice": cause.map(|cause| cause.advice.as_str()),
        "ranks": ranks.iter().map(rank_json).collect::<Vec<_>>(),
    })
}

fn rank_json(rank: &RankView) -> Value {
    json!({
        "rank": rank.rank,
        "pid": rank.pid,
        "guest": rank.home.map(|(job, rank)| json!({ "job": job, "rank": rank })),
        "state": match &rank.stage {
            Stage::Absent => "absent",
            Stage::Starting => "starting",
            Stage::Guest => "guest",
            Stage::Finalized => "finalized",
            Stage::Ended(_) => "ended",
            Stage::Waits(_) => "waits",
            Stage::Runs | Stage::Finalizes => "runs",
        },
        "text": rank.doing(),
        "threads": rank.process.threads,
        "posted": rank.queues[0],
        "unexpected": rank.queues[1],
        "wait": rank.wait().map(wait_json),
        "other_waits": rank.others.iter().map(wait_json).collect::<Vec<_>>(),
        "asleep": rank.asleep.iter().map(sleeper_json).collect::<Vec<_>>(),
    })
}

fn sleeper_json(sleeper: &Sleeper) -> Value {
    json!({
        "thread": sleeper.thread,
        "awaits": match sleeper.awaits {
            Awaits::Mutex(_) => "mutex",
            Awaits::End(_) => "end",
        },
        "of": sleeper.awaits.thread(),
        "of_waits_in_mpi": sleeper.on_mpi,
    })
}

fn wait_json(wait: &LongWait) -> Value {
    json!({
        "call": wait.call(),
        "kind": format!("{:?}", wait.wait.kind).to_lowercase(),
        "peer": wait.wait.peer,
        "tag": wait.wait.tag,
        "context": wait.wait.context,
        "communicator": known(&wait.detail.comm.name),
        "members": wait.detail.comm.members,
        "collective": wait.is_collective().then(|| collective_json(&wait.detail.collective)),
        "lock_of": wait.detail.lock.target,
        "lock_held_by": wait.detail.lock.target.map(|_| &wait.detail.lock.holders),
        "lock_shared": wait.detail.lock.target.map(|_| wait.detail.lock.shared),
        "seconds": wait.seconds,
        "unexpected": wait.detail.unexpected.iter().map(message_json).collect::<Vec<_>>(),
        "pending": wait.detail.pending.iter().map(message_json).collect::<Vec<_>>(),
        "operations": wait.detail.operations.iter().map(operation_json).collect::<Vec<_>>(),
        "unready_partitions": (wait.is_for_partitions() || wait.wait.kind == Waiting::Partitions).then(|| json!({
            "count": wait.detail.partitions.count,
            "of": wait.detail.partitions.of,
            "first": wait.detail.partitions.numbers(),
        })),
        "collective_calls": wait.detail.made.iter().map(calls_json).collect::<Vec<_>>(),
    })
}

/// A text, or `None` for one that the rank has not written.
fn known(text: &str) -> Option<&str> {
    (!text.is_empty()).then_some(text)
}

fn collective_json(about: &CollectiveAbout) -> Value {
    json!({
        "function": known(&about.function),
        "number": (about.number > 0).then_some(about.number),
        "root": about.root.map(|root| match root {
            RootAbout::Rank(rank) => json!(rank),
            constant => json!(constant.to_string()),
        }),
        "data": known(&about.data),
        "op": known(&about.op),
    })
}

fn operation_json(operation: &OperationAbout) -> Value {
    json!({
        "function": known(&operation.function),
        "number": (operation.number > 0).then_some(operation.number),
        "context": operation.context,
        "communicator": known(&operation.comm),
    })
}

fn calls_json(made: &CallsMade) -> Value {
    json!({ "context": made.context, "calls": made.calls })
}

fn message_json(message: &MessageAbout) -> Value {
    json!({
        "peer": message.peer,
        "tag": message.tag,
        "context": message.context,
        "communicator": known(&message.comm),
        "bytes": message.bytes,
        "send": message.sends,
        "started": !message.unstarted,
    })
}
