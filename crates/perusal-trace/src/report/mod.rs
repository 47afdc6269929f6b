//! `perusal report`: what a trace says of the job, as one page, as JSON and as text.
//!
//! [`analyse`] goes through a trace and finds everything. `docs/report.md` tells users how each figure is computed.
//!
//! | file | what it defines |
//! |---|---|
//! | [`types`] | what is found |
//! | `queues`, `sleeping` | of each rank alone: queues, searches and lifetimes; sleeps and full rings |
//! | `matrix`, `partitioned`, `calls` | who sent how much to whom; partitioned messages; how long calls took |
//! | `waits`, `collectives`, `windows`, `files` | when a rank waited, and for whom: for messages, in collectives, at windows, at files |
//! | `blame`, `lateness` | whom waiting is charged to; late senders and receivers, pair by pair |
//! | `verdict` | what stands out, in words |
//! | `page`, `text` | the report as a page, and as text |
//! | `flow` | messages, sorted for the questions that are asked of them |
//! | `communicators` | what went over each communicator |
//! | `series`, `distribution` | values over time; values in bins |
//! | `words` | numbers for people |

mod blame;
mod calls;
mod collectives;
mod communicators;
mod distribution;
mod files;
mod flow;
mod lateness;
mod matrix;
mod page;
mod partitioned;
mod queues;
mod series;
mod sleeping;
#[cfg(test)]
mod tests;
mod text;
pub mod types;
mod verdict;
mod waits;
mod windows;
mod words;

pub use calls::CallReport;
pub use distribution::ValueDistribution;
pub use page::page;
pub use partitioned::PartitionedReport;
pub use text::text;
pub use types::Report;

use super::Trace;
use super::flows::flows;
use queues::Scales;
use series::{TimeGrid, coverage};
use types::{EdgeLists, High, JobReport, KeyFigures, RankReport, Series, Verdict, Waited};
use waits::{Cause, CausedWait, Slept};

/// Finds out everything about a trace. `file` is the name that the report gives it.
#[must_use]
pub fn analyse(trace: &Trace, file: &str) -> Report {
    let grid = TimeGrid::of(trace.job.duration, trace.ranks.len());
    let scales = Scales::default();
    let mut queues = Series { bin_ns: grid.width, bins: grid.bins, ..Series::default() };
    let mut ranks = vec![];
    for rank in &trace.ranks {
        let alone = queues::walk(rank, grid, &scales);
        queues.posted.push(alone.posted);
        queues.unexpected.push(alone.unexpected);
        ranks.push(alone.rank);
    }
    let flows = flows(trace);
    let slept: Vec<Vec<Slept>> = trace.ranks.iter().map(waits::sleeps).collect();
    let (collectives, in_collectives) = collectives::collectives(trace, &slept);
    let by_rank = flow::rank_flows(&flows, trace.ranks.len());
    let mut at_windows = windows::one_sided(trace);
    let mut at_files = files::files(trace);
    let waits: Vec<Vec<CausedWait>> = in_collectives
        .into_iter()
        .enumerate()
        .map(|(rank, mut all)| {
            all.extend(waits::for_messages(&trace.ranks[rank], &slept[rank], &flows, &by_rank[rank]));
            all.append(&mut at_windows.waits[rank]);
            all.append(&mut at_files.of_ranks[rank]);
            waits::in_order(all)
        })
        .collect();
    for (rank, caused) in ranks.iter_mut().zip(blame::charge(&waits)) {
        rank.caused = caused;
    }
    for (index, rank) in ranks.iter_mut().enumerate() {
        let stretches = waits::stretches(&slept[index], &waits[index]);
        rank.waited = waited(&waits[index], &stretches);
        rank.sleep = sleeping::sleep(&slept[index]);
        rank.ring_full = sleeping::ring_full(&trace.ranks[index]);
        queues.waiting.push(coverage(grid, stretches.into_iter()));
    }
    let (late_senders, late_receivers) = lateness::tables(&flows, &waits);
    let matrix = matrix::matrix(trace);
    let unpaired = flows.iter().filter(|flow| flow.incoming.is_none()).count() as u64;
    let key = key(&ranks, &matrix, &collectives, &at_windows.cells);
    let mut report = Report {
        format: "perusal-report-1",
        job: job(trace, file, unpaired),
        verdict: Verdict { paragraph: String::new(), cautions: vec![], findings: vec![] },
        key,
        edges: EdgeLists { time: scales.times.all().to_vec(), count: scales.counts.all().to_vec() },
        ranks,
        queues,
        matrix,
        late_senders,
        late_receivers,
        collectives,
        communicators: communicators::communicators(trace, &flows),
        partitioned: partitioned::partitioned(trace),
        calls: calls::calls(trace),
        windows: at_windows.windows,
        one_sided: at_windows.cells,
        lock_waits: at_windows.lock_waits,
        files: at_files.files,
        file_waits: at_files.waits,
    };
    report.verdict = verdict::verdict(trace, &report);
    report
}

fn job(trace: &Trace, file: &str, unpaired: u64) -> JobReport {
    let incomplete = trace.ranks.iter().filter(|rank| !rank.complete).map(|rank| rank.rank).collect();
    JobReport {
        command: trace.job.command.clone(),
        host: trace.job.host.clone(),
        file: file.to_owned(),
        started: trace.job.started / 1_000_000_000,
        status: trace.job.status,
        duration_ns: trace.job.duration.max(1),
        records: trace.len() as u64,
        dropped: trace.dropped(),
        incomplete,
        unpaired,
    }
}

/// `stretches` is all waiting, of which `waits` have a cause.
fn waited(waits: &[CausedWait], stretches: &[(u64, u64)]) -> Waited {
    let mut waited = Waited::default();
    for wait in waits {
        let sum = match wait.cause {
            Cause::LateSender(_) => &mut waited.late_sender_ns,
            Cause::LateReceiver(_) => &mut waited.late_receiver_ns,
            Cause::Collective => &mut waited.collective_ns,
            Cause::Lock => &mut waited.lock_ns,
            Cause::Epoch => &mut waited.epoch_ns,
        };
        *sum += wait.end - wait.begin;
    }
    let all: u64 = stretches.iter().map(|(begin, end)| end - begin).sum();
    waited.other_ns = all.saturating_sub(waited.total());
    waited
}

fn key(
    ranks: &[RankReport],
    matrix: &types::Matrix,
    collectives: &[types::CollectiveReport],
    one_sided: &[types::OneSidedCell],
) -> KeyFigures {
    let sum = |what: fn(&RankReport) -> u64| ranks.iter().map(what).sum::<u64>();
    let highest = |queue: fn(&RankReport) -> &types::QueueReport| {
        let high = ranks.iter().map(|rank| {
            let queue = queue(rank);
            High { rank: rank.rank, length: queue.high, at_ns: queue.high_at_ns }
        });
        // Of equals the first.
        high.rev().max_by_key(|high| high.length).unwrap_or_default()
    };
    KeyFigures {
        messages: matrix.cells.iter().map(|cell| cell.2).sum(),
        bytes: matrix.cells.iter().map(|cell| cell.3).sum(),
        unexpected: matrix.cells.iter().map(|cell| cell.4).sum(),
        rank_time_ns: sum(|rank| rank.active_ns),
        waited_ns: sum(|rank| rank.waited.total()),
        late_sender_ns: sum(|rank| rank.waited.late_sender_ns),
        late_receiver_ns: sum(|rank| rank.waited.late_receiver_ns),
        collective_wait_ns: sum(|rank| rank.waited.collective_ns),
        window_wait_ns: sum(|rank| rank.waited.lock_ns + rank.waited.epoch_ns),
        one_sided: one_sided.iter().map(|cell| cell.2).sum(),
        one_sided_bytes: one_sided.iter().map(|cell| cell.3 + cell.4 + cell.5).sum(),
        collectives: collectives.iter().map(|row| row.calls).sum(),
        sleeps: sum(|rank| rank.sleep.times),
        ring_full: sum(|rank| rank.ring_full.times),
        unexpected_high: highest(|rank| &rank.unexpected),
        posted_high: highest(|rank| &rank.posted),
    }
}
