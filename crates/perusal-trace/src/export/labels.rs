//! What things are called in exports.

use super::super::model::{RankTrace, Record, RecordPayload};
use crate::events::{Event, FUNCTIONS, Field, FieldValue};

/// An event's name without what all of them begin with: `req_activate`.
pub fn event(event: Event) -> String {
    event.info().label()
}

/// The name of an enumeration's value, or the value.
pub fn value(field: Field, number: impl Into<i32>) -> String {
    field.show(FieldValue::I32(number.into()))
}

/// The communicator, window or file of a record, by name if it has one.
pub fn communicator(rank: &RankTrace, record: &Record) -> Option<String> {
    if record.context == Record::NO_CONTEXT {
        return None;
    }
    let named = rank.group_of(record).filter(|comm| !comm.name.is_empty());
    let what = match record {
        _ if record.is_of_window() => "window",
        _ if record.is_of_file() => "file",
        _ => "context",
    };
    Some(named.map_or_else(|| format!("{what} {}", record.context), |comm| comm.name.clone()))
}

/// "MPI_Win_lock" of a call that synchronises a window.
pub fn synchronization(call: u8) -> String {
    format!("MPI_Win_{}", value(Field::Synchronization, call))
}

/// The name of a function of MPI that the program has called.
pub fn function(number: u16) -> &'static str {
    let name = FUNCTIONS.get(usize::from(number)).and_then(|name| name.to_str().ok());
    name.unwrap_or("a function of a later version")
}

/// "put", or another one-sided operation.
pub fn one_sided(operation: u8) -> String {
    value(Field::RmaOperation, operation)
}

/// "read file" or "write file".
pub fn file_access(operation: u8) -> String {
    format!("{} file", value(Field::FileOperation, operation))
}

/// What a record's payload holds, as names and values, without the number of bytes.
pub fn payload(record: &Record) -> Vec<(&'static str, String)> {
    if record.payload == RecordPayload::Cancelled {
        return vec![("why", "cancelled".into())];
    }
    let held = record.event.info().fields.iter().filter(|field| **field != Field::Bytes);
    held.filter_map(|field| Some((field.info().label, field.show(record.payload.read(*field)?)))).collect()
}

/// Whether the event is of a request, a message or a search, and so has peer, tag and bytes.
pub fn is_of_message(record: &Record) -> bool {
    record.event.info().is_of_message()
}
