//! What things are called in exports.

use super::super::model::{RankTrace, Record, RecordPayload};
use crate::events::{Event, Field, FieldValue};

/// An event's name without what all of them begin with: `req_activate`.
pub fn event(event: Event) -> String {
    event.info().label()
}

/// The name of an enumeration's value, or the value.
pub fn value(field: Field, number: impl Into<i32>) -> String {
    field.show(FieldValue::I32(number.into()))
}

/// The communicator of a record, by name if it has one.
pub fn communicator(rank: &RankTrace, record: &Record) -> Option<String> {
    if record.context == Record::NO_CONTEXT {
        return None;
    }
    let named = rank.communicator(record.context, record.when).filter(|comm| !comm.name.is_empty());
    Some(named.map_or_else(|| format!("context {}", record.context), |comm| comm.name.clone()))
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
