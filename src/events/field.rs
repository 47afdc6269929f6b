//! What an event tells, field by field: what a generic tool may read of a [`EventRecord`] without knowing the event.

use super::record::{EventPayload, EventRecord};
use core::ffi::CStr;

/// One thing that an event tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Field {
    /// Relates events: see [`Identity`](super::Identity).
    Id,
    /// Handle of the communicator.
    Communicator,
    /// Context id of the communicator; [`EventRecord::NO_CONTEXT`] if there is none.
    Context,
    /// Send or receive: see [`Operation`](super::Operation).
    Operation,
    /// Rank of the other side in the communicator, or MPI_ANY_SOURCE.
    Peer,
    /// The tag, or MPI_ANY_TAG.
    Tag,
    /// Size in bytes.
    Bytes,
    /// Elements of the datatype.
    Count,
    /// Handle of the datatype.
    Datatype,
    /// Address of the user's buffer.
    Buffer,
    /// Entries that a search compared.
    Compared,
    /// Whether a search found something.
    Hit,
    /// Which collective operation: see [`Collective`].
    Collective,
    /// How it is performed: see [`Algorithm`].
    Algorithm,
    /// Whether somebody waits in it: see [`CollMode`].
    CollMode,
    /// Which copy engine.
    CopyEngine,
    /// Rank of the other side in the job; 2^32 - 1 for none or several.
    World,
    /// What is waited for.
    Waiting,
    /// Records and messages that wait for room in a ring.
    Queued,
    /// Members of a communicator (the other group's, of an intercommunicator).
    Size,
    /// A communicator's name.
    Name,
    /// Error class.
    ErrorClass,
    /// Error code.
    ErrorCode,
    /// The lowest CPU that the rank may run on.
    Cpu,
    /// Whether the rank is bound to a part of the machine.
    Placement,
}

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
    /// Of [`FieldType::Text`]; may be longer than the kind says, and is cut by who copies it.
    Text(&'a str),
}

/// What request events tell.
pub(super) const REQUEST: &[Field] = &[
    Field::Id,
    Field::Operation,
    Field::Peer,
    Field::Tag,
    Field::Bytes,
    Field::Count,
    Field::Datatype,
    Field::Buffer,
    Field::Communicator,
    Field::Context,
];
/// What message events tell.
pub(super) const MESSAGE: &[Field] =
    &[Field::Id, Field::Peer, Field::Tag, Field::Bytes, Field::Communicator, Field::Context];
/// What the beginning of a search tells.
pub(super) const SEARCH: &[Field] = MESSAGE;
/// What the end of a search tells.
pub(super) const SEARCH_END: &[Field] = &[
    Field::Id,
    Field::Peer,
    Field::Tag,
    Field::Bytes,
    Field::Communicator,
    Field::Context,
    Field::Compared,
    Field::Hit,
];
/// What collective events tell.
pub(super) const COLLECTIVE: &[Field] = &[
    Field::Id,
    Field::Collective,
    Field::Algorithm,
    Field::Bytes,
    Field::Communicator,
    Field::Context,
    Field::CollMode,
];
/// What copy engines tell.
pub(super) const COPY: &[Field] = &[Field::Id, Field::CopyEngine, Field::Bytes, Field::World];

impl Field {
    /// Name and description for people.
    #[must_use]
    pub const fn text(self) -> (&'static CStr, &'static str) {
        match self {
            Field::Id => (c"id", "relates the events of one request, message, search or operation"),
            Field::Communicator => (c"comm", "handle of the communicator"),
            Field::Context => (c"context", "context id of the communicator; 4294967295: none"),
            Field::Operation => (c"operation", "send or receive"),
            Field::Peer => (c"peer", "rank of the other side in the communicator, or MPI_ANY_SOURCE"),
            Field::Tag => (c"tag", "tag, or MPI_ANY_TAG"),
            Field::Bytes => (c"bytes", "size in bytes"),
            Field::Count => (c"count", "elements of the datatype"),
            Field::Datatype => (c"datatype", "handle of the datatype"),
            Field::Buffer => (c"buffer", "address of the user's buffer; 0: unknown"),
            Field::Compared => (c"compared", "queue entries that the search compared"),
            Field::Hit => (c"hit", "1 if the search found something, else 0"),
            Field::Collective => (c"collective", "which collective operation"),
            Field::Algorithm => (c"algorithm", "how the operation is performed"),
            Field::CollMode => (c"mode", "whether the operation is a blocking one"),
            Field::CopyEngine => (c"engine", "which copy engine"),
            Field::World => (c"world_rank", "rank of the other side in the job; 4294967295: none or several"),
            Field::Waiting => (c"waiting_for", "what is waited for"),
            Field::Queued => (c"queued", "records and messages that wait for room in the ring"),
            Field::Size => (c"size", "ranks of the communicator; of an intercommunicator, the remote ones"),
            Field::Name => (c"name", "name of the communicator"),
            Field::ErrorClass => (c"error_class", "class of the error"),
            Field::ErrorCode => (c"error_code", "error code"),
            Field::Cpu => (c"cpu", "lowest CPU that the rank may run on; 4294967295: unknown"),
            Field::Placement => (c"placement", "whether the rank is bound to a part of the machine"),
        }
    }

    /// Its type.
    #[must_use]
    pub const fn kind(self) -> FieldType {
        match self {
            Field::Operation | Field::Peer | Field::Tag | Field::Hit => FieldType::I32,
            Field::Collective | Field::Algorithm | Field::CollMode => FieldType::I32,
            Field::CopyEngine | Field::Waiting | Field::Placement => FieldType::I32,
            Field::ErrorClass | Field::ErrorCode => FieldType::I32,
            Field::Context | Field::Compared | Field::World | Field::Queued | Field::Size | Field::Cpu => {
                FieldType::U32
            }
            Field::Count => FieldType::I64,
            Field::Id | Field::Communicator | Field::Bytes | Field::Datatype | Field::Buffer => {
                FieldType::U64
            }
            Field::Name => FieldType::Text(crate::abi::MPI_MAX_OBJECT_NAME as usize),
        }
    }

    /// For a field that is an enumeration, the names of its values, from 0.
    #[must_use]
    pub const fn names(self) -> Option<&'static [&'static CStr]> {
        Some(match self {
            Field::Operation => &[c"send", c"recv", c"put", c"get", c"acc", c"io_read", c"io_write"],
            Field::Collective => Collective::NAMES,
            Field::Algorithm => Algorithm::NAMES,
            Field::CollMode => CollMode::NAMES,
            Field::CopyEngine => &[c"chunks", c"read", c"halves", c"direct"],
            Field::Waiting => &[
                c"nothing",
                c"receive",
                c"send",
                c"probe",
                c"any",
                c"all",
                c"collective",
                c"finalize",
                c"room",
            ],
            Field::Placement => &[c"free", c"bound"],
            _ => return None,
        })
    }
}

impl<'a> EventRecord<'a> {
    /// The value of `field`; zero, or empty, for one that the event does not tell.
    // Who writes the value somewhere does so in each branch here, without a value in between.
    #[inline(always)]
    #[must_use]
    pub fn read(&self, field: Field) -> FieldValue<'a> {
        let spec = self.spec;
        match field {
            Field::Id => FieldValue::U64(self.id as u64),
            Field::Communicator => FieldValue::U64(spec.comm as u64),
            Field::Context => FieldValue::U32(self.context),
            Field::Operation => FieldValue::I32(spec.operation as i32),
            Field::Peer => FieldValue::I32(spec.peer),
            Field::Tag => FieldValue::I32(spec.tag),
            Field::Bytes => FieldValue::U64(match self.payload {
                EventPayload::Coll { bytes, .. } | EventPayload::Copy { bytes, .. } => bytes,
                _ => spec.bytes,
            }),
            Field::Count => FieldValue::I64(spec.count),
            Field::Datatype => FieldValue::U64(spec.datatype as u64),
            Field::Buffer => FieldValue::U64(spec.buf as u64),
            _ => self.read_detail(field),
        }
    }

    // By reference: a copy would be read in larger pieces than it was written in a moment before, which a processor waits for.
    #[inline(always)]
    fn read_detail(&self, field: Field) -> FieldValue<'a> {
        match (field, &self.payload) {
            (Field::Compared, EventPayload::Search { depth, .. }) => FieldValue::U32(*depth),
            (Field::Hit, EventPayload::Search { hit, .. }) => FieldValue::I32((*hit).into()),
            (Field::Collective, EventPayload::Coll { operation, .. }) => FieldValue::I32((*operation).into()),
            (Field::Algorithm, EventPayload::Coll { algorithm, .. }) => FieldValue::I32((*algorithm).into()),
            (Field::CollMode, EventPayload::Coll { mode, .. }) => FieldValue::I32((*mode).into()),
            (Field::CopyEngine, EventPayload::Copy { engine, .. }) => FieldValue::I32((*engine).into()),
            (
                Field::World,
                EventPayload::Copy { peer, .. }
                | EventPayload::Sleep { peer, .. }
                | EventPayload::Ring { peer, .. },
            ) => FieldValue::U32(*peer),
            (Field::Waiting, EventPayload::Sleep { waiting, .. }) => FieldValue::I32((*waiting).into()),
            (Field::Queued, EventPayload::Ring { waiting, .. }) => FieldValue::U32(*waiting),
            (Field::Size, EventPayload::Comm { size, .. }) => FieldValue::U32(*size),
            (Field::Name, EventPayload::Name(name)) => FieldValue::Text(name),
            (Field::ErrorClass, EventPayload::Error { class, .. }) => FieldValue::I32(*class),
            (Field::ErrorCode, EventPayload::Error { code, .. }) => FieldValue::I32(*code),
            (Field::Cpu, EventPayload::Placement { cpu, .. }) => FieldValue::U32(*cpu),
            (Field::Placement, EventPayload::Placement { policy, .. }) => FieldValue::I32((*policy).into()),
            (field, _) => field.nothing(),
        }
    }
}

impl Field {
    fn nothing(self) -> FieldValue<'static> {
        match self.kind() {
            FieldType::I32 => FieldValue::I32(0),
            FieldType::U32 => FieldValue::U32(0),
            FieldType::I64 => FieldValue::I64(0),
            FieldType::U64 => FieldValue::U64(0),
            FieldType::Text(_) => FieldValue::Text(""),
        }
    }
}

macro_rules! named {
    ($(#[$meta:meta])* $name:ident: $($(#[$doc:meta])* $variant:ident $text:literal,)*) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[repr(u16)]
        pub enum $name {
            $($(#[$doc])* $variant,)*
        }

        impl $name {
            /// The names of the values, from 0.
            pub const NAMES: &'static [&'static CStr] = &[$($text),*];
        }
    };
}

named! {
    /// A collective operation: `operation` of [`EventPayload::Coll`].
    Collective:
    /// MPI_Barrier.
    Barrier c"barrier",
    /// MPI_Bcast.
    Bcast c"bcast",
    /// MPI_Gather and MPI_Gatherv.
    Gather c"gather",
    /// MPI_Scatter and MPI_Scatterv.
    Scatter c"scatter",
    /// MPI_Allgather and MPI_Allgatherv.
    Allgather c"allgather",
    /// MPI_Alltoall, MPI_Alltoallv and MPI_Alltoallw.
    Alltoall c"alltoall",
    /// MPI_Reduce.
    Reduce c"reduce",
    /// MPI_Allreduce.
    Allreduce c"allreduce",
    /// MPI_Reduce_scatter and MPI_Reduce_scatter_block.
    ReduceScatter c"reduce_scatter",
    /// MPI_Scan.
    Scan c"scan",
    /// MPI_Exscan.
    Exscan c"exscan",
    /// MPI_Neighbor_allgather and MPI_Neighbor_allgatherv.
    NeighbourAllgather c"neighbor_allgather",
    /// MPI_Neighbor_alltoall, MPI_Neighbor_alltoallv and MPI_Neighbor_alltoallw.
    NeighbourAlltoall c"neighbor_alltoall",
}

named! {
    /// How a collective operation is performed: `algorithm` of [`EventPayload::Coll`].
    Algorithm:
    /// Not known (yet).
    Unknown c"unknown",
    /// One rank talks to each of the others in turn.
    Linear c"linear",
    /// Signals over distances that double.
    Dissemination c"dissemination",
    /// Down or up a binomial tree.
    Tree c"tree",
    /// Along a chain in pieces.
    Chain c"chain",
    /// Exchanges with partners at distances that double.
    Doubling c"recursive_doubling",
    /// Blocks that grow, in as many steps as the number of ranks has bits.
    Bruck c"bruck",
    /// Block after block around a ring.
    Ring c"ring",
    /// Every pair exchanges once.
    Pairwise c"pairwise",
    /// Through memory that all ranks share, in pieces.
    Shared c"shared_memory",
    /// Between the two groups of an intercommunicator.
    Between c"between_groups",
    /// One round in shared memory, on a count; who comes last does what is common to all.
    Counted c"shared_count",
    /// One round in shared memory, on flags that everybody looks at.
    Flagged c"shared_flags",
}

named! {
    /// Whether the caller of a collective operation waits in it: `mode` of [`EventPayload::Coll`].
    CollMode:
    /// It does.
    Blocking c"blocking",
    /// It goes on while the operation does (MPI_Ibarrier and its like).
    Nonblocking c"nonblocking",
    /// As before; this is one of several starts (MPI_Start after MPI_Barrier_init and its like).
    Persistent c"persistent",
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::events::{CATALOG, Event, Spec};

    #[test]
    fn every_element_of_every_event_reads_as_its_kind() {
        for row in &CATALOG {
            let record = EventRecord::new(row.event, 7, &Spec::NOTHING);
            for field in row.elements {
                let fits = matches!(
                    (field.kind(), record.read(*field)),
                    (FieldType::I32, FieldValue::I32(_))
                        | (FieldType::U32, FieldValue::U32(_))
                        | (FieldType::I64, FieldValue::I64(_))
                        | (FieldType::U64, FieldValue::U64(_))
                        | (FieldType::Text(_), FieldValue::Text(_))
                );
                assert!(fits, "{:?} of {:?}", field, row.event);
                assert!(field.names().is_none() || field.kind() == FieldType::I32);
            }
        }
    }

    #[test]
    fn details_are_read_where_they_are() {
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
    fn enumerations_have_their_names_at_the_place_of_their_values() {
        assert_eq!(Collective::NAMES[Collective::NeighbourAlltoall as usize], c"neighbor_alltoall");
        assert_eq!(Algorithm::NAMES[Algorithm::Between as usize], c"between_groups");
    }
}
