//! What stands out, in words. Each finding has a threshold below which it is left out; `docs/report.md` has them.

use super::distribution::ValueDistribution;
use super::types::{Finding, RankReport, Report, Verdict};
use super::words::{bytes, count, counted, duration, named, share};
use crate::trace::Trace;
use std::cmp::Reverse;

/// Waiting below this part of all ranks' time is not worth a word: one in so many.
const WAITING_COUNTS: u64 = 50;
/// A rank with more than one in so many of all waiting at the root of it is named.
const CULPRIT: f64 = 0.4;
/// An unexpected queue this long is reported.
const LONG_QUEUE: u32 = 64;
/// A posted queue this long is reported: many receives are posted ahead on purpose.
const LONG_POSTED: u32 = 1000;
/// A mean search over so many entries is reported.
const DEEP_SEARCH: u64 = 16;

/// Looks at what was found.
#[must_use]
pub fn verdict(trace: &Trace, report: &Report) -> Verdict {
    let mut findings = vec![];
    findings.extend(culprit(report));
    findings.extend(collective(report));
    findings.extend(lock(report));
    findings.extend(file_lock(report));
    findings.extend(unexpected_queue(report));
    findings.extend(posted_queue(report));
    findings.extend(search(report));
    findings.extend(ring_full(report));
    findings.extend(lost(report));
    let texts: Vec<&str> = findings.iter().map(|finding| finding.text.as_str()).collect();
    let paragraph = match (report.job.records, findings.is_empty()) {
        (0, _) => "The trace has no records: nothing can be said.".to_owned(),
        (_, true) => nothing(trace, report),
        _ => texts.join(" "),
    };
    Verdict { paragraph, cautions: cautions(trace, report), findings }
}

fn nothing(trace: &Trace, report: &Report) -> String {
    let key = &report.key;
    if key.messages == 0 && key.collectives == 0 && key.one_sided == 0 {
        return "No message was sent, and no collective or one-sided operation called.".to_owned();
    }
    let waiting = match trace.job.of_endpoints {
        true => "No".to_owned(),
        false => {
            let waited = share(key.waited_ns, key.rank_time_ns);
            format!("The ranks spent {waited} of their time waiting, no")
        }
    };
    format!(
        "Nothing stands out. {waiting} queue grew long (the longest had {}), and {} of {} came before their receive.",
        entries(key.unexpected_high.length.max(key.posted_high.length)),
        count(key.unexpected),
        counted(key.messages, "message"),
    )
}

fn entries(n: u32) -> String {
    if n == 1 { "1 entry".to_owned() } else { format!("{} entries", count(n.into())) }
}

/// Waiting with a known cause, of all ranks.
fn caused(report: &Report) -> u64 {
    let key = &report.key;
    key.late_sender_ns + key.late_receiver_ns + key.collective_wait_ns + key.window_wait_ns
}

/// The rank that the others wait for, if there is one, or else how much waiting there is.
fn culprit(report: &Report) -> Option<Finding> {
    let all = caused(report);
    if all.saturating_mul(WAITING_COUNTS) < report.key.rank_time_ns || all == 0 {
        return None;
    }
    let mut by_root: Vec<&RankReport> = report.ranks.iter().collect();
    by_root.sort_by_key(|rank| Reverse(rank.caused.root_ns));
    let first = by_root[0];
    if (first.caused.root_ns as f64) < CULPRIT * all as f64 {
        return Some(spread(report, &by_root, all));
    }
    // Of two ranks that keep each other waiting alike, neither is the culprit.
    if let Some(second) = by_root.get(1)
        && second.caused.root_ns as f64 > 0.8 * first.caused.root_ns as f64
    {
        return Some(spread(report, &by_root, all));
    }
    let root = first.caused.root_ns;
    let mut text = format!(
        "Rank {} kept the others waiting: {} of all waiting time, {} of {}, goes back to it",
        first.rank,
        share(root, all),
        duration(root),
        duration(all)
    );
    text += &in_what(first);
    text += &format!(
        ". In all, the ranks waited for each other for {} of their time.",
        share(all, report.key.rank_time_ns)
    );
    Some(Finding { kind: "culprit", rank: Some(first.rank), cost_ns: root, text })
}

/// ", mostly because it sent late (…)".
fn in_what(rank: &RankReport) -> String {
    let caused = &rank.caused;
    let forms = [
        (caused.late_sender_ns, "it sent late"),
        (caused.late_receiver_ns, "it posted its receives late"),
        (caused.collective_ns, "it came last to collective operations"),
        (caused.lock_ns, "it held locks of windows or files"),
        (caused.epoch_ns, "it exposed its memory to accesses, or completed its own, late"),
    ];
    match forms.iter().max_by_key(|(ns, _)| *ns) {
        Some((ns, form)) if *ns > 0 => {
            let only = *ns == caused.direct_ns;
            let mostly = if only { "" } else { "mostly " };
            let amount = if only { String::new() } else { format!(" ({} directly)", duration(*ns)) };
            format!(", {mostly}because {form}{amount}")
        }
        _ => String::new(),
    }
}

fn spread(report: &Report, by_root: &[&RankReport], all: u64) -> Finding {
    let named: Vec<String> = by_root
        .iter()
        .take(3)
        .filter(|rank| rank.caused.root_ns > 0)
        .map(|rank| format!("rank {} ({})", rank.rank, share(rank.caused.root_ns, all)))
        .collect();
    let text = format!(
        "The ranks waited for each other for {} of their time ({}), and no single one is behind it; most goes back to {}.",
        share(all, report.key.rank_time_ns),
        duration(all),
        named.join(", ")
    );
    Finding { kind: "waiting", rank: None, cost_ns: all, text }
}

/// The collective operation that costs most, if it costs one part in twenty of the time.
fn collective(report: &Report) -> Option<Finding> {
    let row = report.collectives.iter().max_by_key(|row| row.waited_ns)?;
    if row.waited_ns.saturating_mul(20) < report.key.rank_time_ns || row.waited_ns == 0 {
        return None;
    }
    let last = row.last.first().map_or_else(String::new, |last| {
        format!(
            ", most of it ({}) for rank {}, last in {}",
            duration(last.cost_ns),
            last.rank,
            counted(last.times, "call")
        )
    });
    let text = format!(
        "In {} on {} the ranks waited {} for the last one to come{last}.",
        row.operation,
        row.communicator,
        duration(row.waited_ns)
    );
    Some(Finding {
        kind: "collective",
        rank: row.last.first().map(|last| last.rank),
        cost_ns: row.waited_ns,
        text,
    })
}

/// Locks of files that cost one part in twenty of all ranks' time.
fn file_lock(report: &Report) -> Option<Finding> {
    let all: u64 = report.file_waits.iter().map(|row| row.waited_ns).sum();
    if all.saturating_mul(20) < report.key.rank_time_ns || all == 0 {
        return None;
    }
    let row = report.file_waits.first()?;
    let holder = match row.holder {
        Some(holder) => format!("which rank {holder} had locked"),
        None => "which somebody else had locked".into(),
    };
    let text = format!(
        "The ranks waited {} for locks of files in atomic mode, rank {} alone {} for a part of {}, {holder}.",
        duration(all),
        row.waiter,
        duration(row.waited_ns),
        row.file,
    );
    Some(Finding { kind: "file_lock", rank: row.holder, cost_ns: all, text })
}

/// A lock that costs one part in twenty of all ranks' time.
fn lock(report: &Report) -> Option<Finding> {
    let all: u64 = report.lock_waits.iter().map(|row| row.waited_ns).sum();
    if all.saturating_mul(20) < report.key.rank_time_ns || all == 0 {
        return None;
    }
    let row = report.lock_waits.first()?;
    let holder = row.holder.map_or_else(String::new, |holder| format!(", which rank {holder} held"));
    let text = format!(
        "The ranks waited {} for locks of windows, rank {} alone {} for that of rank {}'s memory in {}{holder}.",
        duration(all),
        row.waiter,
        duration(row.waited_ns),
        row.target,
        row.window,
    );
    Some(Finding { kind: "lock", rank: row.holder, cost_ns: all, text })
}

fn unexpected_queue(report: &Report) -> Option<Finding> {
    let high = report.key.unexpected_high;
    if high.length < LONG_QUEUE {
        return None;
    }
    let queue = &report.ranks.get(high.rank as usize)?.unexpected;
    let mut text = format!(
        "Rank {}'s unexpected queue grew to {} messages (at {}); a message lay there for {} on average, {} at most",
        high.rank,
        count(high.length.into()),
        duration(high.at_ns),
        duration(queue.residence.mean()),
        duration(queue.residence.max),
    );
    let sources = report.matrix.cells.iter().filter(|cell| cell.1 == high.rank && cell.4 > 0);
    match sources.clone().max_by_key(|cell| cell.4) {
        Some(&(from, _, _, _, messages, sent)) if messages.saturating_mul(2) >= queue.entries => {
            text += &format!(
                ". {} of {} that came too early there are from rank {from} ({})",
                count(messages),
                count(queue.entries),
                bytes(sent)
            );
        }
        Some(_) => text += &format!(". They come from {}", counted(sources.count() as u64, "rank")),
        None => {}
    }
    let others: Vec<u32> = report
        .ranks
        .iter()
        .filter(|rank| rank.rank != high.rank && rank.unexpected.high >= LONG_QUEUE)
        .map(|rank| rank.rank)
        .collect();
    if !others.is_empty() {
        let all = others.len() + 1 == report.ranks.len() && others.len() > 1;
        let who = if all { "all other ranks".to_owned() } else { named(others, 6) };
        text += &format!("; {who} had long ones too");
    }
    text.push('.');
    Some(Finding { kind: "unexpected-queue", rank: Some(high.rank), cost_ns: 0, text })
}

fn posted_queue(report: &Report) -> Option<Finding> {
    let high = report.key.posted_high;
    if high.length < LONG_POSTED {
        return None;
    }
    let text = format!(
        "Rank {} had up to {} receives posted at once (at {}).",
        high.rank,
        count(high.length.into()),
        duration(high.at_ns)
    );
    Some(Finding { kind: "posted-queue", rank: Some(high.rank), cost_ns: 0, text })
}

/// Searches that go deep, or take one part in a hundred of the time.
fn search(report: &Report) -> Option<Finding> {
    let queues = report
        .ranks
        .iter()
        .flat_map(|rank| [(rank, "unexpected", &rank.unexpected), (rank, "posted", &rank.posted)])
        .map(|(rank, name, queue)| (usual(&queue.search_time, &report.edges.time), rank, name, queue));
    let (time, rank, name, queue) = queues.max_by_key(|(time, ..)| *time)?;
    let depth = &queue.search_depth;
    let deep = depth.count > 0 && depth.mean() >= DEEP_SEARCH;
    if !deep && time.saturating_mul(100) < rank.active_ns.max(1) {
        return None;
    }
    let text = format!(
        "Rank {} spent about {} ({} of its time) searching its {name} queue: {} searches, {} entries compared on average, {} at most.",
        rank.rank,
        duration(time),
        share(time, rank.active_ns),
        count(queue.search_time.count),
        count(depth.mean()),
        count(depth.max),
    );
    Some(Finding { kind: "search", rank: Some(rank.rank), cost_ns: time, text })
}

/// The sum without the hundredth that took longest, at the lower ends of the bins: what the queue costs, and not what
/// it costs to lose the CPU in the middle of a search.
fn usual(times: &ValueDistribution, edges: &[u64]) -> u64 {
    let mut left = times.count - times.count / 100;
    let counted = times.histogram.iter().map(|&(bin, count)| {
        let taken = count.min(left);
        left -= taken;
        taken.saturating_mul(edges.get(usize::from(bin)).copied().unwrap_or(0))
    });
    counted.sum()
}

fn ring_full(report: &Report) -> Option<Finding> {
    let rank = report.ranks.iter().max_by_key(|rank| rank.ring_full.times)?;
    let peer = rank.ring_full.peers.first()?;
    // Now and then one is full; one in a hundred messages is too often.
    if rank.ring_full.times.saturating_mul(100) < rank.sent.messages.max(1) || rank.ring_full.times < 10 {
        return None;
    }
    let text = format!(
        "Rank {} found a ring full {}, mostly that to rank {}, which does not read as fast as it sends.",
        rank.rank,
        counted(rank.ring_full.times, "time"),
        peer.rank
    );
    Some(Finding { kind: "ring-full", rank: Some(peer.rank), cost_ns: 0, text })
}

/// Messages that nobody received, which is a mistake in the program; reported only of ranks that came to their end.
fn lost(report: &Report) -> Option<Finding> {
    let left = |rank: &RankReport| u64::from(rank.unexpected.left);
    let whole = report.ranks.iter().filter(|rank| rank.complete && rank.dropped == 0 && left(rank) > 0);
    let (all, of): (Vec<u64>, Vec<u32>) = whole.map(|rank| (left(rank), rank.rank)).unzip();
    let first = *of.first()?;
    let sum = all.iter().sum();
    let text = format!(
        "{} to {} {} never received.",
        counted(sum, "message"),
        named(of, 6),
        if sum == 1 { "was" } else { "were" }
    );
    Some(Finding { kind: "lost-messages", rank: Some(first), cost_ns: 0, text })
}

/// What makes the report less than the whole truth.
fn cautions(trace: &Trace, report: &Report) -> Vec<String> {
    let mut all = vec![];
    if trace.job.of_endpoints {
        all.push("The ranks are endpoints under another MPI: its calls are not in the trace, so that nothing is known of how long they waited.".to_owned());
    }
    let dropped: Vec<u32> =
        trace.ranks.iter().filter(|rank| rank.dropped > 0).map(|rank| rank.rank).collect();
    if !dropped.is_empty() {
        all.push(format!(
            "{} of {} could not be recorded, and what happened in them is missing below ({}). `--trace-limit` sets how much is kept.",
            counted(report.job.dropped, "event"),
            count(report.job.records + report.job.dropped),
            named(dropped, 6)
        ));
    }
    for rank in trace.ranks.iter().filter(|rank| rank.stopped_by != 0) {
        let why = std::io::Error::from_raw_os_error(rank.stopped_by);
        all.push(format!("Rank {} stopped recording: {why}.", rank.rank));
    }
    let silent: Vec<u32> = trace.ranks.iter().filter(|rank| rank.pid == 0).map(|rank| rank.rank).collect();
    if !silent.is_empty() {
        let why = if trace.job.of_endpoints { "no endpoint" } else { "no MPI_Init with this library" };
        all.push(format!("Nothing was recorded of {}: {why}.", named(silent.clone(), 6)));
    }
    let cut: Vec<u32> = report.job.incomplete.iter().copied().filter(|rank| !silent.contains(rank)).collect();
    if let Some(until) = trace.job.cut {
        all.push(format!(
            "The first {} alone were read, as asked for; what came later is missing below.",
            duration(until)
        ));
    } else if !cut.is_empty() {
        let why = match report.job.status {
            None => "the job was still running, or its launcher was killed",
            Some(_) if trace.job.of_endpoints => "the endpoint was never closed",
            Some(_) => "MPI_Finalize was never called",
        };
        all.push(format!(
            "The trace of {} ends early: {why}. Times at the end are lower bounds.",
            named(cut, 6)
        ));
    }
    let spoiled: u64 = trace.ranks.iter().map(|rank| rank.unreadable).sum();
    if spoiled > 0 {
        all.push(format!(
            "{} made no sense and were left out: the file is damaged.",
            counted(spoiled, "record")
        ));
    }
    if report.job.unpaired > 0 && all.is_empty() {
        all.push(format!(
            "Of {} the arrival is not in the trace; who was late with them is not known.",
            counted(report.job.unpaired, "message")
        ));
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_search_that_lost_its_cpu_does_not_count_as_one_of_the_queue() {
        let edges = [0, 100, 200, 1_000_000];
        let of = |histogram: Vec<(u16, u64)>| ValueDistribution {
            count: histogram.iter().map(|(_, count)| count).sum(),
            histogram,
            ..ValueDistribution::default()
        };
        assert_eq!(usual(&of(vec![(1, 150), (2, 149), (3, 1)]), &edges), 150 * 100 + 147 * 200);
        assert_eq!(usual(&of(vec![(2, 9)]), &edges), 1_800);
        assert_eq!(usual(&of(vec![]), &edges), 0);
    }
}
