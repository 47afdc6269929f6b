//! Partitioned messages: between whom, and who kept whose partitions waiting.

use crate::events::Event;
use crate::trace::{RankTrace, Record, RecordPayload, Trace};
use serde::Serialize;
use std::collections::{BTreeMap, HashMap};

/// Partitioned messages from one rank to another.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct PartitionedReport {
    /// Who sends.
    pub sender: u32,
    /// Who receives.
    pub receiver: u32,
    /// Operations that the sender has started; or that the receiver has completed, if those are more.
    pub messages: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Partitions that were marked as ready.
    pub partitions: u64,
    /// From the first partition that was ready to the last, of all operations.
    pub ready_ns: u64,
    /// Partitions that were ready before the receiver had started.
    pub put_off: u64,
    /// From such a partition's being ready to its being sent, of all of them.
    pub put_off_ns: u64,
    /// From the receiver's start to the end, of all operations.
    pub open_ns: u64,
    /// Calls of MPI_Parrived.
    pub tested: u64,
    /// Those that found the partition missing.
    pub in_vain: u64,
}

/// A partition that is sent within so many nanoseconds was not put off: both events are of one call.
const AT_ONCE: u64 = 5_000;

/// An operation under way.
#[derive(Default)]
struct Open {
    started: u64,
    first: Option<u64>,
    last: u64,
    ready: HashMap<u32, u64>,
}

/// All pairs, those with most bytes first.
#[must_use]
pub fn partitioned(trace: &Trace) -> Vec<PartitionedReport> {
    let mut pairs: BTreeMap<(u32, u32), PartitionedReport> = BTreeMap::new();
    let mut received: BTreeMap<(u32, u32), (u64, u64)> = BTreeMap::new();
    for rank in &trace.ranks {
        let mut open: HashMap<u64, Open> = HashMap::new();
        for record in &rank.records {
            let Some(pair) = pair(rank, record) else { continue };
            let row = pairs.entry(pair).or_insert_with(|| PartitionedReport {
                sender: pair.0,
                receiver: pair.1,
                ..PartitionedReport::default()
            });
            let operation = open.entry(record.id).or_default();
            match record.payload {
                RecordPayload::PartOperation { bytes, .. } if record.event == Event::PartStart => {
                    *operation = Open { started: record.when, ..Open::default() };
                    row.messages += u64::from(record.send);
                    row.bytes += if record.send { bytes } else { 0 };
                }
                RecordPayload::PartOperation { bytes, .. } => {
                    let over = open.remove(&record.id).unwrap_or_default();
                    if record.send {
                        row.ready_ns += over.last.saturating_sub(over.first.unwrap_or(over.last));
                    } else {
                        row.open_ns += record.when.saturating_sub(over.started);
                        let sums = received.entry(pair).or_default();
                        (sums.0, sums.1) = (sums.0 + 1, sums.1 + bytes);
                    }
                }
                RecordPayload::Partition { partition, arrived, .. } => match record.event {
                    Event::PartReady => {
                        row.partitions += 1;
                        operation.first.get_or_insert(record.when);
                        operation.last = record.when;
                        operation.ready.insert(partition, record.when);
                    }
                    Event::PartXferBegin => {
                        let ready = operation.ready.remove(&partition).unwrap_or(record.when);
                        let waited = record.when.saturating_sub(ready);
                        if waited > AT_ONCE {
                            row.put_off += 1;
                            row.put_off_ns += waited;
                        }
                    }
                    Event::PartTested => {
                        row.tested += 1;
                        row.in_vain += u64::from(!arrived);
                    }
                    _ => {}
                },
                _ => {}
            }
        }
    }
    for (pair, (messages, bytes)) in received {
        if let Some(row) = pairs.get_mut(&pair).filter(|row| row.messages < messages) {
            (row.messages, row.bytes) = (messages, bytes);
        }
    }
    let mut rows: Vec<_> = pairs.into_values().collect();
    rows.sort_by_key(|row| (std::cmp::Reverse(row.bytes), row.sender, row.receiver));
    rows
}

/// Sender and receiver of a partitioned message; `None` of any other record, and of messages to nobody.
fn pair(rank: &RankTrace, record: &Record) -> Option<(u32, u32)> {
    if !matches!(record.payload, RecordPayload::PartOperation { .. } | RecordPayload::Partition { .. }) {
        return None;
    }
    let peer = rank.world_peer(record)?;
    Some(if record.send { (rank.rank, peer) } else { (peer, rank.rank) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::events::{PartitionBytes, PartitionCount};
    use crate::trace::synthetic::Synthetic;

    #[test]
    fn partitions_that_wait_for_a_receiver_are_told_with_their_pair() {
        let mut job = Synthetic::new(2);
        let operation = RecordPayload::PartOperation { bytes: 200, partitions: PartitionCount(2) };
        let of = |event, send, payload| Record {
            send,
            peer: i32::from(send),
            context: 0,
            payload,
            ..Synthetic::record(event, 9)
        };
        let partition =
            |partition, arrived| RecordPayload::Partition { partition, arrived, bytes: PartitionBytes(100) };
        job.push(0, 1_000, &of(Event::PartStart, true, operation));
        job.push(0, 2_000, &of(Event::PartReady, true, partition(1, false)));
        job.push(0, 42_000, &of(Event::PartReady, true, partition(0, false)));
        job.push(0, 42_100, &of(Event::PartXferBegin, true, partition(0, false)));
        job.push(0, 90_000, &of(Event::PartXferBegin, true, partition(1, false)));
        job.push(0, 90_100, &of(Event::PartComplete, true, operation));
        job.push(1, 30_000, &of(Event::PartStart, false, operation));
        job.push(1, 31_000, &of(Event::PartTested, false, partition(0, false)));
        job.push(1, 95_000, &of(Event::PartTested, false, partition(0, true)));
        job.push(1, 96_000, &of(Event::PartComplete, false, operation));
        let wanted = PartitionedReport {
            sender: 0,
            receiver: 1,
            messages: 1,
            bytes: 200,
            partitions: 2,
            ready_ns: 40_000,
            put_off: 1,
            put_off_ns: 88_000,
            open_ns: 66_000,
            tested: 2,
            in_vain: 1,
        };
        assert_eq!(partitioned(&job.trace()), [wanted]);
    }
}
