//! Who sends to whom, counted on both sides: where one side's records were dropped, the other's count holds.

use super::types::{Matrix, MatrixCell};
use crate::events::Event;
use crate::trace::{Record, Trace};
use std::collections::BTreeMap;

#[derive(Default)]
struct Pair {
    sent: (u64, u64),
    arrived: (u64, u64),
    unexpected: (u64, u64),
}

/// All pairs that have a message.
#[must_use]
pub fn matrix(trace: &Trace) -> Matrix {
    let mut pairs: BTreeMap<(u32, u32), Pair> = BTreeMap::new();
    for rank in &trace.ranks {
        for record in &rank.records {
            let outgoing = match record.event {
                Event::ReqActivate | Event::PartStart if record.send => true,
                Event::PartComplete if !record.send => false,
                Event::MsgArrived | Event::MsgInsertInUnexQ => false,
                _ => continue,
            };
            let Some(peer) = rank.world_peer(record) else { continue };
            let pair = if outgoing { (rank.rank, peer) } else { (peer, rank.rank) };
            count(pairs.entry(pair).or_default(), record);
        }
    }
    let cells = pairs.into_iter().map(|((from, to), pair)| {
        let (messages, bytes) = if pair.arrived.0 > pair.sent.0 { pair.arrived } else { pair.sent };
        (from, to, messages, bytes, pair.unexpected.0, pair.unexpected.1)
    });
    Matrix { group: 1, cells: cells.collect() }
}

fn count(pair: &mut Pair, record: &Record) {
    let sums = match record.event {
        Event::ReqActivate | Event::PartStart => &mut pair.sent,
        Event::MsgArrived | Event::PartComplete => &mut pair.arrived,
        _ => &mut pair.unexpected,
    };
    sums.0 += 1;
    sums.1 += record.bytes;
}

impl Matrix {
    /// A matrix of at most `most` rows: neighbouring ranks put together.
    #[must_use]
    pub fn grouped(&self, ranks: u32, most: u32) -> Matrix {
        let group = ranks.div_ceil(most).max(1);
        let mut cells: BTreeMap<(u32, u32), MatrixCell> = BTreeMap::new();
        for &(from, to, messages, bytes, unexpected, unexpected_bytes) in &self.cells {
            let pair = (from / group, to / group);
            let cell = cells.entry(pair).or_insert((pair.0, pair.1, 0, 0, 0, 0));
            cell.2 += messages;
            cell.3 += bytes;
            cell.4 += unexpected;
            cell.5 += unexpected_bytes;
        }
        Matrix { group, cells: cells.into_values().collect() }
    }
}
