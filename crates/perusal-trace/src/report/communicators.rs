//! The communicators of a job, and what went over each.

use super::types::CommunicatorReport;
use super::words;
use crate::trace::flows::Flow;
use crate::trace::{CommInfo, Trace};
use std::collections::BTreeMap;

/// What a communicator is called where it has no name of its own.
#[must_use]
pub fn name(comm: Option<&CommInfo>, context: u32) -> String {
    match comm.map(|comm| comm.name.as_str()) {
        Some(name) if !name.is_empty() => name.to_owned(),
        _ => format!("communicator {context}"),
    }
}

/// All of them, those with most messages first. Ranks' own, of one member and without messages, are left out.
#[must_use]
pub fn communicators(trace: &Trace, flows: &[Flow]) -> Vec<CommunicatorReport> {
    let mut found: BTreeMap<(u32, &[u32]), CommunicatorReport> = BTreeMap::new();
    for comm in trace.ranks.iter().flat_map(|rank| &rank.communicators) {
        let row = found.entry((comm.context, &comm.group[..])).or_insert_with(|| CommunicatorReport {
            name: name(Some(comm), comm.context),
            context: comm.context,
            size: comm.group.len() as u32,
            members: words::ranks(comm.group.to_vec(), 12),
            messages: 0,
            bytes: 0,
            unexpected: 0,
        });
        if !comm.name.is_empty() {
            row.name.clone_from(&comm.name);
        }
    }
    for flow in flows {
        let comm =
            trace.ranks.get(flow.source as usize).and_then(|rank| rank.communicator(flow.context, flow.sent));
        let Some(row) = comm.and_then(|comm| found.get_mut(&(comm.context, &comm.group[..]))) else {
            continue;
        };
        row.messages += 1;
        row.bytes += flow.bytes;
        row.unexpected += u64::from(flow.incoming.is_some_and(|incoming| incoming.unexpected));
    }
    let mut all: Vec<_> = found.into_values().filter(|row| row.size > 1 || row.messages > 0).collect();
    all.sort_by(|a, b| b.messages.cmp(&a.messages).then(a.context.cmp(&b.context)));
    all
}
