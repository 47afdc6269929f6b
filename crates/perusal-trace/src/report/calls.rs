//! How long the program was in which functions of MPI.

use crate::events::{Event, FUNCTIONS};
use crate::trace::{RecordPayload, Trace};
use serde::Serialize;
use std::collections::{BTreeMap, HashMap};

/// Calls of one function, all ranks'.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct CallReport {
    /// The function.
    pub function: String,
    /// Calls, those without an end included. Of MPI_Test and the like, those in which something happened.
    pub calls: u64,
    /// Time in them, calls within calls left out: those are in the call that they are in.
    pub inside_ns: u64,
    /// The longest.
    pub longest_ns: u64,
    /// When that one began.
    pub longest_at_ns: u64,
    /// The rank that was in the function longest.
    pub most_rank: u32,
    /// How long that was.
    pub most_ns: u64,
}

/// All functions that were called, those first in which most time was spent.
#[must_use]
pub fn calls(trace: &Trace) -> Vec<CallReport> {
    let mut rows: BTreeMap<u16, CallReport> = BTreeMap::new();
    for rank in &trace.ranks {
        let mut open: HashMap<u16, Vec<(u16, u64)>> = HashMap::new();
        let mut inside: BTreeMap<u16, u64> = BTreeMap::new();
        let mut end = |row: &mut CallReport, function: u16, begin: u64, when: u64| {
            let ns = when.saturating_sub(begin);
            *inside.entry(function).or_default() += ns;
            row.inside_ns += ns;
            if ns >= row.longest_ns {
                (row.longest_ns, row.longest_at_ns) = (ns, begin);
            }
        };
        for record in &rank.records {
            let RecordPayload::Call { function } = record.payload else { continue };
            let calls = open.entry(record.stream).or_default();
            if record.event == Event::CallBegin {
                calls.push((function, record.when));
                rows.entry(function).or_default().calls += 1;
            } else if let Some(at) = calls.iter().rposition(|(open, _)| *open == function) {
                let begin = calls[at].1;
                calls.truncate(at);
                if calls.is_empty() {
                    end(rows.entry(function).or_default(), function, begin, record.when);
                }
            }
        }
        let last = rank.records.last().map_or(0, |record| record.when);
        for (function, begin) in open.into_values().filter_map(|calls| calls.first().copied()) {
            end(rows.entry(function).or_default(), function, begin, last);
        }
        for (function, ns) in inside {
            let row = rows.entry(function).or_default();
            if ns > row.most_ns {
                (row.most_rank, row.most_ns) = (rank.rank, ns);
            }
        }
    }
    let named = |(function, row): (u16, CallReport)| {
        let name = FUNCTIONS.get(usize::from(function)).map(|name| name.to_string_lossy().into_owned());
        CallReport { function: name.unwrap_or_else(|| format!("function {function}")), ..row }
    };
    let mut rows: Vec<_> = rows.into_iter().map(named).collect();
    rows.sort_by_key(|row| std::cmp::Reverse(row.inside_ns));
    rows
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::Record;
    use crate::trace::synthetic::Synthetic;

    #[test]
    fn time_in_calls_is_summed_by_function_and_calls_within_calls_count_once() {
        let number = |name: &str| {
            FUNCTIONS.iter().position(|known| known.to_bytes() == name.as_bytes()).unwrap() as u16
        };
        let (dup, group, wait) = (number("MPI_Comm_dup"), number("MPI_Comm_group"), number("MPI_Wait"));
        let mut job = Synthetic::new(2);
        let mut put = |rank, when, event, function| {
            let payload = RecordPayload::Call { function };
            job.push(rank, when, &Record { payload, ..Synthetic::record(event, 0) });
        };
        put(0, 100, Event::CallBegin, dup);
        put(0, 200, Event::CallBegin, group);
        put(0, 300, Event::CallEnd, group);
        put(0, 500, Event::CallEnd, dup);
        put(0, 600, Event::CallBegin, wait);
        put(0, 650, Event::CallEnd, wait);
        put(1, 100, Event::CallBegin, wait);
        put(1, 400, Event::CallEnd, wait);
        // The rank is killed in this one.
        put(1, 900, Event::CallBegin, dup);
        put(1, 950, Event::CallBegin, group);
        let row = |function: &str, calls, inside_ns, (longest_ns, longest_at_ns), (most_rank, most_ns)| {
            let function = function.to_owned();
            CallReport { function, calls, inside_ns, longest_ns, longest_at_ns, most_rank, most_ns }
        };
        let first = 100;
        let wanted = [
            row("MPI_Comm_dup", 2, 450, (400, 100 - first), (0, 400)),
            row("MPI_Wait", 2, 350, (300, 100 - first), (1, 300)),
            row("MPI_Comm_group", 2, 0, (0, 0), (0, 0)),
        ];
        assert_eq!(calls(&job.trace()), wanted);
    }
}
