//! The payload of an event's record: what this type of event carries besides the request or message,
//! in memory and in a trace.

use super::field::FieldValue;
use super::table::{EventPayload, Field};

/// The three words of a trace record that hold a message's peer, tag and size, or a payload.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Words {
    /// Peer.
    pub first: u32,
    /// Tag.
    pub second: u32,
    /// Bytes.
    pub third: u64,
}

/// As long as any name: what is left of one where only its length counts.
pub(super) const BLANKS: &str = match core::str::from_utf8(&[b' '; crate::abi::MPI_MAX_OBJECT_NAME as usize])
{
    Ok(blanks) => blanks,
    Err(_) => "",
};

/// Set in the third word of a removal from the posted queue if a cancellation took the receive out.
pub(super) const CANCELLED: u64 = 1 << 63;

impl Words {
    /// Bytes of the message, or of the part of one, that has `payload`.
    #[must_use]
    pub fn message_bytes(self, payload: EventPayload<'_>) -> u64 {
        match payload {
            EventPayload::Cancelled => self.third & !CANCELLED,
            EventPayload::Search { .. } => 0,
            _ => payload.bytes().unwrap_or(self.third),
        }
    }
}

/// A value of a payload.
pub(super) trait PayloadValue: Copy {
    /// As a field of an event's record.
    fn field(self) -> FieldValue<'static>;
    /// As bits of a trace record.
    fn bits(self) -> u64;
    /// From bits of a trace record, which may hold anything; what is too large becomes the largest value.
    fn from_bits(bits: u64) -> Self;
}

macro_rules! values {
    ($($type:ty: $field:ident $as:ty, $bits:expr, $from:expr;)*) => {$(
        impl PayloadValue for $type {
            #[inline(always)]
            fn field(self) -> FieldValue<'static> {
                FieldValue::$field(<$as>::from(self))
            }
            #[inline(always)]
            fn bits(self) -> u64 {
                $bits(self)
            }
            fn from_bits(bits: u64) -> Self {
                $from(bits)
            }
        }
    )*};
}

values! {
    bool: I32 i32, u64::from, |bits| bits & 1 == 1;
    u8: I32 i32, u64::from, |bits| u8::try_from(bits).unwrap_or(u8::MAX);
    u16: I32 i32, u64::from, |bits| u16::try_from(bits).unwrap_or(u16::MAX);
    i32: I32 i32, |value: i32| u64::from(value.cast_unsigned()), |bits| (bits as u32).cast_signed();
    u32: U32 u32, u64::from, |bits| bits as u32;
    u64: U64 u64, u64::from, |bits| bits;
}

/// The root of a collective operation: its rank, or none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CollRoot(pub Option<u16>);

impl PayloadValue for CollRoot {
    #[inline(always)]
    fn field(self) -> FieldValue<'static> {
        FieldValue::I32(self.0.map_or(-1, i32::from))
    }
    #[inline(always)]
    fn bits(self) -> u64 {
        self.0.map_or(0, |rank| u64::from(rank) + 1)
    }
    fn from_bits(bits: u64) -> Self {
        Self(bits.checked_sub(1).map(|rank| u16::try_from(rank).unwrap_or(u16::MAX)))
    }
}

/// How many partitions an operation has; in a trace 65,535 means that many or more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PartitionCount(pub u32);

impl PayloadValue for PartitionCount {
    #[inline(always)]
    fn field(self) -> FieldValue<'static> {
        FieldValue::U32(self.0)
    }
    #[inline(always)]
    fn bits(self) -> u64 {
        u64::from(self.0.min(u32::from(u16::MAX)))
    }
    fn from_bits(bits: u64) -> Self {
        Self(bits as u32)
    }
}

/// Bytes of a partition; in a trace 4,294,967,295 means that many or more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PartitionBytes(pub u64);

impl PayloadValue for PartitionBytes {
    #[inline(always)]
    fn field(self) -> FieldValue<'static> {
        FieldValue::U64(self.0)
    }
    #[inline(always)]
    fn bits(self) -> u64 {
        self.0.min(u64::from(u32::MAX))
    }
    fn from_bits(bits: u64) -> Self {
        Self(bits)
    }
}

/// The bits from `from` to `to` of a word.
pub(super) const fn bits(word: u64, from: u32, to: u32) -> u64 {
    word >> from & u64::MAX >> (u64::BITS + from - to)
}

/// Declares payloads; see `table`.
macro_rules! payloads {
    ($($(#[$doc:meta])* $payload:ident {
        $($(#[$value_doc:meta])* $value:ident: $type:ty as $field:ident in $word:ident[$from:literal..$to:literal],)*
    })*) => {
        /// What a type of event carries besides the [`Spec`](super::Spec).
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
        pub enum EventPayload<'a> {
            /// Nothing.
            #[default]
            None,
            /// A cancellation takes the receive out of the posted queue, not a message; or the message out of the
            /// unexpected queue, not a receive.
            Cancelled,
            /// The request is a partitioned one, which has events of its own beside PERUSE's.
            Partitioned,
            /// A message that has arrived.
            Arrival {
                /// Its number among those that have come from its sender on its communicator;
                /// not in a trace, whose reader counts.
                sequence: u64,
            },
            /// A communicator.
            Comm {
                /// Its ranks; of an intercommunicator, the remote ones.
                size: u32,
                /// Job rank of each of them.
                group: &'a [u32],
            },
            /// A name; what is no UTF-8 in it is replaced.
            Name(&'a str),
            /// A one-sided operation, or a part of one.
            Rma {
                /// A [`RmaOperation`](super::RmaOperation).
                operation: u8,
                /// A [`WindowReach`](super::WindowReach).
                reach: u8,
                /// The target, in the job; `u32::MAX` in a trace.
                world: u32,
                /// Where the bytes are in the target's process; 0 in a trace.
                address: u64,
                /// What the user gave of the target's side, where that is at hand.
                target: Option<&'a RmaTarget>,
            },
            /// An access to a file, or a part of one.
            File {
                /// A [`FileOperation`](super::FileOperation).
                operation: u8,
                /// A [`FilePointer`](super::FilePointer).
                pointer: u8,
                /// A [`FileMode`](super::FileMode).
                mode: u8,
                /// Accesses to the file system for it so far.
                accesses: u32,
                /// Where it begins, in bytes from the beginning of the file; `u64::MAX`: not known yet, as in a trace.
                offset: u64,
            },
            $($(#[$doc])* $payload { $($(#[$value_doc])* $value: $type),* },)*
        }

        /// Which payload the records of an event type carry.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum PayloadKind {
            /// None.
            None,
            /// [`EventPayload::Cancelled`] or none.
            Cancelled,
            /// [`EventPayload::Arrival`].
            Arrival,
            /// [`EventPayload::Comm`].
            Comm,
            /// [`EventPayload::Name`].
            Name,
            /// [`EventPayload::Rma`].
            Rma,
            /// [`EventPayload::File`].
            File,
            $(#[doc = concat!("[`EventPayload::", stringify!($payload), "`].")] $payload,)*
        }

        impl<'a> EventPayload<'a> {
            /// The value of `field`; `None` if it is not in here.
            // By reference: a copy would be read in larger pieces than it was written in a moment before,
            // which a processor waits for.
            #[inline(always)]
            #[must_use]
            pub fn read(&self, field: Field) -> Option<FieldValue<'a>> {
                match (field, self) {
                    $($((Field::$field, EventPayload::$payload { $value, .. }) => Some(PayloadValue::field(*$value)),)*)*
                    (Field::Sequence, EventPayload::Arrival { sequence }) => Some(FieldValue::U64(*sequence)),
                    (Field::Size, EventPayload::Comm { size, .. }) => Some(FieldValue::U32(*size)),
                    (Field::Name, EventPayload::Name(name)) => Some(FieldValue::Text(name)),
                    (Field::RmaOperation, EventPayload::Rma { operation, .. }) => Some(FieldValue::I32((*operation).into())),
                    (Field::Reach, EventPayload::Rma { reach, .. }) => Some(FieldValue::I32((*reach).into())),
                    (Field::World, EventPayload::Rma { world, .. }) if *world != u32::MAX => {
                        Some(FieldValue::U32(*world))
                    }
                    (Field::TargetAddress, EventPayload::Rma { address, .. }) => (*address != 0).then_some(FieldValue::U64(*address)),
                    (Field::FileOperation, EventPayload::File { operation, .. }) => Some(FieldValue::I32((*operation).into())),
                    (Field::FilePointer, EventPayload::File { pointer, .. }) => Some(FieldValue::I32((*pointer).into())),
                    (Field::FileMode, EventPayload::File { mode, .. }) => Some(FieldValue::I32((*mode).into())),
                    (Field::DiskAccesses, EventPayload::File { accesses, .. }) => Some(FieldValue::U32(*accesses)),
                    (Field::Offset, EventPayload::File { offset, .. }) => Some(FieldValue::U64(*offset)),
                    _ => None,
                }
            }

            /// Writes it to the words of a trace record, which hold peer, tag and size of the message, if there is one.
            #[inline(always)]
            #[allow(unused_assignments, reason = "a word is cleared before its values are added")]
            pub fn pack(&self, words: &mut Words) {
                match *self {
                    EventPayload::None | EventPayload::Partitioned | EventPayload::Arrival { .. } => {}
                    EventPayload::Cancelled => words.third |= CANCELLED,
                    EventPayload::Comm { size, group } => {
                        *words = Words { first: size, second: group.len() as u32, third: 0 };
                    }
                    EventPayload::Name(name) => *words = Words { third: name.len() as u64, ..Words::default() },
                    // The target and the bytes stay.
                    EventPayload::Rma { operation, reach, .. } => {
                        words.second = u32::from(operation) | u32::from(reach) << 8;
                    }
                    // The bytes stay.
                    EventPayload::File { operation, pointer, mode, accesses, .. } => {
                        words.first = accesses;
                        words.second = u32::from(operation) | u32::from(pointer) << 8 | u32::from(mode) << 16;
                    }
                    $(EventPayload::$payload { $($value),* } => {
                        $(words.$word = 0;)*
                        $(words.$word |= (PayloadValue::bits($value) << $from) as payloads!(@ $word);)*
                    })*
                }
            }

            /// It without what it borrows: no list of ranks, and of a name no more than its length.
            #[must_use]
            pub(crate) fn without_borrows(self) -> EventPayload<'static> {
                match self {
                    EventPayload::None => EventPayload::None,
                    EventPayload::Cancelled => EventPayload::Cancelled,
                    EventPayload::Partitioned => EventPayload::Partitioned,
                    EventPayload::Arrival { sequence } => EventPayload::Arrival { sequence },
                    EventPayload::Comm { size, .. } => EventPayload::Comm { size, group: &[] },
                    EventPayload::Name(name) => EventPayload::Name(&BLANKS[..name.len().min(BLANKS.len())]),
                    EventPayload::Rma { operation, reach, world, address, .. } => {
                        EventPayload::Rma { operation, reach, world, address, target: None }
                    }
                    EventPayload::File { operation, pointer, mode, accesses, offset } => {
                        EventPayload::File { operation, pointer, mode, accesses, offset }
                    }
                    $(EventPayload::$payload { $($value),* } => EventPayload::$payload { $($value),* },)*
                }
            }
        }

        impl PayloadKind {
            /// The payload that the words of a trace record hold.
            /// The list of ranks and the name follow in records of their own.
            #[must_use]
            pub fn unpack(self, words: Words) -> EventPayload<'static> {
                match self {
                    PayloadKind::Cancelled if words.third & CANCELLED != 0 => EventPayload::Cancelled,
                    PayloadKind::Arrival => EventPayload::Arrival { sequence: 0 },
                    PayloadKind::Comm => EventPayload::Comm { size: words.first, group: &[] },
                    PayloadKind::Rma => EventPayload::Rma {
                        operation: words.second as u8,
                        reach: (words.second >> 8) as u8,
                        world: u32::MAX,
                        address: 0,
                        target: None,
                    },
                    PayloadKind::File => EventPayload::File {
                        operation: words.second as u8,
                        pointer: (words.second >> 8) as u8,
                        mode: (words.second >> 16) as u8,
                        accesses: words.first,
                        offset: u64::MAX,
                    },
                    PayloadKind::None | PayloadKind::Cancelled | PayloadKind::Name => EventPayload::None,
                    $(PayloadKind::$payload => EventPayload::$payload {
                        $($value: PayloadValue::from_bits(bits(u64::from(words.$word), $from, $to)),)*
                    },)*
                }
            }
        }
    };
    (@ first) => { u32 };
    (@ second) => { u32 };
    (@ third) => { u64 };
}
pub(super) use payloads;

impl EventPayload<'_> {
    /// The rank of the job that it names, if it names one.
    #[must_use]
    pub fn peer(&self) -> Option<u32> {
        match self.read(Field::World) {
            Some(FieldValue::U32(peer)) => Some(peer),
            _ => None,
        }
    }

    /// The number of bytes that it carries, if it carries one.
    #[must_use]
    pub fn bytes(&self) -> Option<u64> {
        match self.read(Field::Bytes) {
            Some(FieldValue::U64(bytes)) => Some(bytes),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::events::CATALOG;

    #[test]
    fn every_payload_reads_back_from_a_trace_as_it_was_written() {
        let message = Words { first: 3, second: 44, third: 1000 };
        for row in &CATALOG {
            let words = Words { first: 0x0102, second: 0x0001_0203, third: 1 << 63 | 1 << 32 | 5 };
            let payload = row.payload.unpack(words);
            let mut written = message;
            payload.pack(&mut written);
            assert_eq!(row.payload.unpack(written), payload, "{:?}", row.event);
        }
        let mut words = message;
        EventPayload::Search { depth: 9, hit: true }.pack(&mut words);
        assert_eq!(words, Words { third: 9 | 1 << 32, ..message }, "peer and tag stay");
        words = message;
        EventPayload::Cancelled.pack(&mut words);
        assert_eq!((words.message_bytes(EventPayload::Cancelled), words.third >> 63), (1000, 1));
        let root = CollRoot(Some(4));
        EventPayload::Coll { operation: 3, root, algorithm: 2, mode: 1, bytes: 77 }.pack(&mut words);
        assert_eq!(words, Words { first: 3 | 5 << 16, second: 2 | 1 << 16, third: 77 });
    }

    #[test]
    fn a_spoiled_value_becomes_the_largest() {
        let words = Words { first: u32::MAX, second: u32::MAX, third: 0 };
        let coll = crate::events::Event::CollBegin.info().payload.unpack(words);
        let largest = EventPayload::Coll {
            operation: u16::MAX,
            root: CollRoot(Some(u16::MAX - 1)),
            algorithm: u16::MAX,
            mode: u8::MAX,
            bytes: 0,
        };
        assert_eq!(coll, largest);
    }
}
