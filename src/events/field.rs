//! What an event's record holds, field by field: what a generic tool reads without knowing the event type.

use super::contents::{EventPayload, FIELDS, Field};
use super::functions::FUNCTIONS;
use super::record::EventRecord;
use core::ffi::CStr;

/// The type of a [`Field`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FieldType {
    /// A signed 32-bit number.
    I32,
    /// An unsigned 32-bit number.
    U32,
    /// A signed 64-bit number.
    I64,
    /// An unsigned 64-bit number; addresses and handles too.
    U64,
    /// Text of at most so many bytes, a terminating zero included.
    Text(usize),
}

/// The value of a [`Field`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FieldValue<'a> {
    /// Of [`FieldType::I32`].
    I32(i32),
    /// Of [`FieldType::U32`].
    U32(u32),
    /// Of [`FieldType::I64`].
    I64(i64),
    /// Of [`FieldType::U64`].
    U64(u64),
    /// Of [`FieldType::Text`]; may be longer than the type says. Whoever copies it cuts it.
    Text(&'a str),
}

/// One row of the table of fields.
#[derive(Debug)]
pub struct FieldInfo {
    /// Its name in MPI_T.
    pub name: &'static CStr,
    /// One line for people.
    pub description: &'static str,
    /// Its type.
    pub field_type: FieldType,
    /// Its name in exports.
    pub label: &'static str,
    /// For an enumeration, the names of its values, from 0.
    pub names: Option<&'static [&'static CStr]>,
}

/// Declares fields; see `table`.
macro_rules! fields {
    ($($field:ident: $type:ident $(($length:expr))?, $name:literal, $label:literal, $names:expr; $description:literal;)*) => {
        /// One thing that an event's record holds.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum Field { $(#[doc = concat!("`", $name, "`: ", $description, ".")] $field),* }

        /// The table of fields.
        pub(super) static FIELDS: &[FieldInfo] = &[$(FieldInfo {
            name: c_string(concat!($name, "\0")),
            description: $description,
            field_type: FieldType::$type $(($length))?,
            label: $label,
            names: $names,
        }),*];
    };
}
pub(super) use fields;

impl Field {
    /// Its row of the table.
    #[must_use]
    pub fn info(self) -> &'static FieldInfo {
        &FIELDS[self as usize]
    }

    /// Zero, or empty: what a record reads as that does not hold it.
    fn zero(self) -> FieldValue<'static> {
        match self.info().field_type {
            FieldType::I32 => FieldValue::I32(0),
            FieldType::U32 => FieldValue::U32(0),
            FieldType::I64 => FieldValue::I64(0),
            FieldType::U64 => FieldValue::U64(0),
            FieldType::Text(_) => FieldValue::Text(""),
        }
    }

    /// `value` for people: the name of an enumeration's value, or the number.
    #[must_use]
    pub fn show(self, value: FieldValue<'_>) -> String {
        let name = |value: i32| self.info().names?.get(usize::try_from(value).ok()?);
        match (self, value) {
            (Field::Hit, FieldValue::I32(hit)) => if hit == 0 { "no" } else { "yes" }.into(),
            (Field::World, FieldValue::U32(u32::MAX)) => "any".into(),
            (_, FieldValue::I32(value)) => {
                name(value).map_or_else(|| value.to_string(), |name| name.to_string_lossy().into_owned())
            }
            (_, FieldValue::U32(value)) => value.to_string(),
            (_, FieldValue::I64(value)) => value.to_string(),
            (_, FieldValue::U64(value)) => value.to_string(),
            (_, FieldValue::Text(value)) => value.into(),
        }
    }
}

impl<'a> EventRecord<'a> {
    /// The name of the function that an event of a call is about.
    #[must_use]
    pub fn function_name(&self) -> Option<&'static CStr> {
        match self.payload {
            EventPayload::Call { function } => FUNCTIONS.get(usize::from(function)).copied(),
            _ => None,
        }
    }

    /// The value of `field`; zero, or empty, for one that the record does not hold.
    // A caller that writes the value somewhere does so in each branch, without a value in between.
    #[inline(always)]
    #[must_use]
    pub fn read(&self, field: Field) -> FieldValue<'a> {
        let spec = self.spec;
        match field {
            Field::Id => FieldValue::U64(self.id as u64),
            Field::Communicator | Field::Window | Field::File => FieldValue::U64(spec.comm as u64),
            Field::Context => FieldValue::U32(self.context),
            Field::Operation => FieldValue::I32(spec.operation as i32),
            Field::Peer => FieldValue::I32(spec.peer),
            Field::Tag | Field::Origin => FieldValue::I32(spec.tag),
            Field::Target => FieldValue::I32(spec.peer),
            Field::Bytes => self.payload.read(Field::Bytes).unwrap_or(FieldValue::U64(spec.bytes)),
            Field::Count => FieldValue::I64(spec.count),
            Field::Datatype => FieldValue::U64(spec.datatype as u64),
            Field::Buffer => FieldValue::U64(spec.buf as u64),
            Field::FunctionName => {
                FieldValue::U64(self.function_name().map_or(0, |name| name.as_ptr() as u64))
            }
            _ => self.payload.read(field).unwrap_or_else(|| field.zero()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::events::{CATALOG, Event, EventPayload, Spec, Words};

    #[test]
    fn every_field_of_every_event_reads_as_its_type() {
        for row in &CATALOG {
            let payload = row.payload.unpack(Words { first: 1, second: 2, third: 1 << 63 });
            let record = EventRecord { payload, ..EventRecord::new(row.event, 7, &Spec::NOTHING) };
            for field in row.fields {
                let info = field.info();
                let fits = matches!(
                    (info.field_type, record.read(*field)),
                    (FieldType::I32, FieldValue::I32(_))
                        | (FieldType::U32, FieldValue::U32(_))
                        | (FieldType::I64, FieldValue::I64(_))
                        | (FieldType::U64, FieldValue::U64(_))
                        | (FieldType::Text(_), FieldValue::Text(_))
                );
                assert!(fits, "{:?} of {:?}", field, row.event);
                assert!(info.names.is_none() || info.field_type == FieldType::I32);
            }
        }
    }

    #[test]
    fn payloads_are_read_where_they_are() {
        let payload = EventPayload::Search { depth: 9, hit: true };
        let record = EventRecord { payload, ..EventRecord::new(Event::SearchPostedQEnd, 1, &Spec::NOTHING) };
        assert_eq!(
            (record.read(Field::Compared), record.read(Field::Hit)),
            (FieldValue::U32(9), FieldValue::I32(1))
        );
        let payload = EventPayload::Copy { engine: 2, bytes: 1 << 40, peer: 3 };
        let record = EventRecord { payload, ..EventRecord::new(Event::CopyEnd, 1, &Spec::NOTHING) };
        let read = [Field::CopyEngine, Field::Bytes, Field::World].map(|field| record.read(field));
        assert_eq!(read, [FieldValue::I32(2), FieldValue::U64(1 << 40), FieldValue::U32(3)]);
        assert_eq!(record.read(Field::Name), FieldValue::Text(""));
    }

    #[test]
    fn values_are_shown_by_name_where_they_have_one() {
        assert_eq!(Field::Collective.show(FieldValue::I32(1)), "bcast");
        assert_eq!(Field::Collective.show(FieldValue::I32(99)), "99");
        assert_eq!(Field::Hit.show(FieldValue::I32(1)), "yes");
        assert_eq!(Field::World.show(FieldValue::U32(u32::MAX)), "any");
    }
}
