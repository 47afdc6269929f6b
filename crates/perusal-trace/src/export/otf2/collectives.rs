//! Collective operations in OTF2: MpiCollectiveBegin and MpiCollectiveEnd, with communicator, root and the bytes that
//! the rank has sent and received.
//!
//! Within a region they are around what happens in it.
//! A nonblocking operation has both at the moment at which it is complete.

use super::super::super::model::{RankTrace, Record, RecordPayload};
use super::super::labels;
use super::communicators::Otf2Communicators;
use super::writer::Location;
use crate::error::Result;
use crate::events::{CollMode, CollRoot, Collective, Event, Field};
use core::ptr::null_mut;
use std::collections::HashMap;

/// OTF2_UNDEFINED_UINT32.
const NONE: u32 = u32::MAX;

/// OTF2_CollectiveOp of each operation; collectives among neighbours have none.
const OPERATIONS: [(Collective, u8); 11] = [
    (Collective::Barrier, 0),
    (Collective::Bcast, 1),
    (Collective::Gather, 2),
    (Collective::Scatter, 4),
    (Collective::Allgather, 6),
    (Collective::Alltoall, 8),
    (Collective::Allreduce, 11),
    (Collective::Reduce, 12),
    (Collective::ReduceScatter, 13),
    (Collective::Scan, 14),
    (Collective::Exscan, 15),
];

/// The name of the function that performs an operation: `MPI_Allreduce`.
pub fn function(operation: u16) -> String {
    let name = labels::value(Field::Collective, operation);
    let mut letters = name.chars();
    let first = letters.next().map(|letter| letter.to_ascii_uppercase());
    format!("MPI_{}{}", first.map(String::from).unwrap_or_default(), letters.as_str())
}

/// Operations of a rank that have begun, by id: the bytes that they were begun with.
#[derive(Default)]
pub struct OpenCollectives(HashMap<u64, u64>);

impl OpenCollectives {
    /// Writes what a record of a collective operation is in OTF2.
    pub fn put(
        &mut self,
        location: &mut Location<'_>,
        rank: &RankTrace,
        record: &Record,
        comms: &Otf2Communicators,
    ) -> Result<()> {
        let RecordPayload::Coll { operation, root, mode, .. } = record.payload else { return Ok(()) };
        let known = OPERATIONS.iter().find(|(own, _)| *own as u16 == operation);
        let (Some((own, op)), Some(comm)) = (known, comms.number(rank, record)) else { return Ok(()) };
        let (when, blocks) = (record.when, mode == CollMode::Blocking as u8);
        if record.event == Event::CollBegin {
            self.0.insert(record.id, record.bytes);
            return if blocks { begin(location, when) } else { Ok(()) };
        }
        let Some(contributed) = self.0.remove(&record.id) else { return Ok(()) };
        if !blocks {
            begin(location, when)?;
        }
        let received = record.bytes;
        let gives_all = match (own, root) {
            (Collective::Bcast | Collective::Scatter, CollRoot(Some(root))) => {
                rank.communicator(record.context, when).and_then(|comm| comm.group.get(usize::from(root)))
                    == Some(&rank.rank)
            }
            // This side of an intercommunicator has the root, or is not the root's.
            (Collective::Bcast | Collective::Scatter, CollRoot(None)) => received == 0,
            _ => true,
        };
        let sent = if gives_all { contributed } else { 0 };
        let root =
            root.0.and_then(|root| comms.with_peer(rank, record, root.into())).map_or(NONE, |(_, root)| root);
        location.event("collective", when, |otf2, writer, when| {
            // SAFETY: an open writer and numbers; no attributes.
            unsafe { (otf2.collective_end)(writer, null_mut(), when, *op, comm, root, sent, received) }
        })
    }
}

fn begin(location: &mut Location<'_>, when: u64) -> Result<()> {
    location.event("collective", when, |otf2, writer, when| {
        // SAFETY: an open writer and a number; no attributes.
        unsafe { (otf2.collective_begin)(writer, null_mut(), when) }
    })
}
