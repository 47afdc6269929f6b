//! Late senders and late receivers, pair by pair, and what each cost.

use super::blame::within;
use super::flow::came;
use super::types::{LateReceiver, LateSender};
use super::waits::{Cause, CausedWait};
use crate::trace::flows::Flow;
use std::collections::BTreeMap;

/// The two tables, first those who themselves cost most: what they passed on from others is not theirs.
/// `waits` are those of each rank.
#[must_use]
pub fn tables(flows: &[Flow], waits: &[Vec<CausedWait>]) -> (Vec<LateSender>, Vec<LateReceiver>) {
    let mut senders: BTreeMap<(u32, u32), LateSender> = BTreeMap::new();
    let mut receivers: BTreeMap<(u32, u32), LateReceiver> = BTreeMap::new();
    for flow in flows {
        open(flow, &mut senders, &mut receivers);
    }
    for wait in waits.iter().flatten() {
        let passed_on = waits.get(wait.on as usize).map_or(0, |own| sum(within(own, wait.begin, wait.end)));
        match wait.cause {
            Cause::LateSender(flow) => {
                let row = senders.entry((flows[flow].source, flows[flow].dest)).or_default();
                row.waited_ns += wait.end - wait.begin;
                row.passed_on_ns += passed_on;
            }
            Cause::LateReceiver(flow) => {
                let row = receivers.entry((flows[flow].dest, flows[flow].source)).or_default();
                row.waited_ns += wait.end - wait.begin;
                row.passed_on_ns += passed_on;
            }
            Cause::Collective | Cause::Lock | Cause::Epoch => {}
        }
    }
    longest(flows, waits, &mut senders, &mut receivers);
    let senders = senders.into_iter().map(|((sender, receiver), row)| LateSender { sender, receiver, ..row });
    let receivers =
        receivers.into_iter().map(|((receiver, sender), row)| LateReceiver { receiver, sender, ..row });
    let mut senders: Vec<_> = senders.filter(|row| row.waited_ns > 0).collect();
    let mut receivers: Vec<_> = receivers.filter(|row| row.messages > 0 || row.waited_ns > 0).collect();
    senders.sort_by_key(|row| std::cmp::Reverse((own(row.waited_ns, row.passed_on_ns), row.waited_ns)));
    receivers.sort_by_key(|row| {
        std::cmp::Reverse((own(row.waited_ns, row.passed_on_ns), row.waited_ns, row.early_ns))
    });
    (senders, receivers)
}

/// What is left of the time that others waited without the time in which the late one waited itself.
fn own(waited_ns: u64, passed_on_ns: u64) -> u64 {
    waited_ns.saturating_sub(passed_on_ns)
}

fn sum(waits: impl Iterator<Item = CausedWait>) -> u64 {
    waits.map(|wait| wait.end - wait.begin).sum()
}

/// Which side came first, whether a rank waited or not.
fn open(
    flow: &Flow,
    senders: &mut BTreeMap<(u32, u32), LateSender>,
    receivers: &mut BTreeMap<(u32, u32), LateReceiver>,
) {
    let Some(incoming) = &flow.incoming else { return };
    if let Some(late) = flow.late_sender() {
        senders.entry((flow.source, flow.dest)).or_default().open_ns += late;
    }
    let Some(came) = came(incoming).filter(|came| *came > flow.sent) else { return };
    let row = receivers.entry((flow.dest, flow.source)).or_default();
    row.messages += 1;
    row.early_ns += came - flow.sent;
    row.earliest_ns = row.earliest_ns.max(came - flow.sent);
}

/// Waits for one message may lie in several pieces (a sleep lasts 100 ms at most): the longest is that of a message.
fn longest(
    flows: &[Flow],
    waits: &[Vec<CausedWait>],
    senders: &mut BTreeMap<(u32, u32), LateSender>,
    receivers: &mut BTreeMap<(u32, u32), LateReceiver>,
) {
    for wait in waits.iter().flat_map(|of_rank| whole(of_rank)) {
        let ns = wait.end;
        match wait.cause {
            Cause::LateSender(flow) => {
                let row = senders.entry((flows[flow].source, flows[flow].dest)).or_default();
                row.messages += 1;
                if ns > row.longest_ns {
                    (row.longest_ns, row.longest_at_ns) = (ns, wait.begin);
                }
            }
            Cause::LateReceiver(flow) => {
                let row = receivers.entry((flows[flow].dest, flows[flow].source)).or_default();
                if ns > row.longest_ns {
                    (row.longest_ns, row.longest_at_ns) = (ns, wait.begin);
                }
            }
            Cause::Collective | Cause::Lock | Cause::Epoch => {}
        }
    }
}

/// Pieces for the same cause put together: `begin` of the first, and in `end` the sum of their lengths.
fn whole(waits: &[CausedWait]) -> impl Iterator<Item = CausedWait> {
    waits
        .chunk_by(|a, b| a.cause == b.cause && a.cause != Cause::Collective)
        .map(|pieces| CausedWait { end: sum(pieces.iter().copied()), ..pieces[0] })
}
