//! What things are called in exports.

use super::super::model::{RankTrace, Record, RecordPayload};
use crate::events::{Event, Field};

/// An event's name without what all of them begin with: `req_activate`.
pub fn event(event: Event) -> String {
    let name = event.info().name.to_string_lossy();
    let short = name.strip_prefix("PERUSE_COMM_").or_else(|| name.strip_prefix("PERUSAL_")).unwrap_or(&name);
    short.to_ascii_lowercase()
}

/// The name of an enumeration's value, or the value.
pub fn value(field: Field, number: impl Into<u64>) -> String {
    let number = number.into();
    let name = usize::try_from(number).ok().and_then(|at| field.names()?.get(at).copied());
    name.map_or_else(|| number.to_string(), |name| name.to_string_lossy().into_owned())
}

/// The communicator of a record, by name if it has one.
pub fn communicator(rank: &RankTrace, record: &Record) -> Option<String> {
    if record.context == Record::NO_CONTEXT {
        return None;
    }
    let named = rank.communicator(record.context, record.when).filter(|comm| !comm.name.is_empty());
    Some(named.map_or_else(|| format!("context {}", record.context), |comm| comm.name.clone()))
}

/// What a record's kind alone tells, as names and values.
pub fn payload(record: &Record) -> Vec<(&'static str, String)> {
    let peer = || if record.peer < 0 { "any".into() } else { record.peer.to_string() };
    match record.payload {
        RecordPayload::None => vec![],
        RecordPayload::Withdrawn => vec![("why", "cancelled".into())],
        RecordPayload::Search { depth, hit } => {
            vec![("compared", depth.to_string()), ("found", if hit { "yes" } else { "no" }.into())]
        }
        RecordPayload::Coll { operation, algorithm, mode } => vec![
            ("operation", value(Field::Collective, operation)),
            ("algorithm", value(Field::Algorithm, algorithm)),
            ("mode", value(Field::CollMode, mode)),
        ],
        RecordPayload::Copy { engine } => {
            vec![("engine", value(Field::CopyEngine, engine)), ("rank", peer())]
        }
        RecordPayload::Bell { waiting } => {
            vec![("waiting", value(Field::Waiting, waiting)), ("rank", peer())]
        }
        RecordPayload::Ring { waiting } => vec![("rank", peer()), ("queued", waiting.to_string())],
        RecordPayload::Comm { size } => vec![("size", size.to_string())],
        RecordPayload::Error { class, code } => {
            vec![("class", class.to_string()), ("code", code.to_string())]
        }
        RecordPayload::Place { cpu, policy } => {
            vec![("cpu", cpu.to_string()), ("placement", value(Field::Placement, policy))]
        }
    }
}

/// Whether the event is of a request, a message or a search, and so has peer, tag and bytes.
pub fn is_of_message(record: &Record) -> bool {
    record.event.is_peruse()
}
