//! Lists of fields that several rows of the table of event types share.

use super::contents::Field;

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
pub(super) const MESSAGE: &[Field] =
    &[Field::Id, Field::Peer, Field::Tag, Field::Bytes, Field::Communicator, Field::Context];
pub(super) const ARRIVAL: &[Field] =
    &[Field::Id, Field::Peer, Field::Tag, Field::Bytes, Field::Communicator, Field::Context, Field::Sequence];
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
pub(super) const COLLECTIVE: &[Field] = &[
    Field::Id,
    Field::Collective,
    Field::Algorithm,
    Field::Bytes,
    Field::Communicator,
    Field::Context,
    Field::CollMode,
    Field::Root,
];
pub(super) const ONE_SIDED: &[Field] = &[
    Field::Id,
    Field::RmaOperation,
    Field::Origin,
    Field::Target,
    Field::World,
    Field::Bytes,
    Field::Buffer,
    Field::TargetAddress,
    Field::Reach,
    Field::Window,
    Field::Context,
];
pub(super) const SYNCHRONIZATION: &[Field] = &[
    Field::Id,
    Field::Synchronization,
    Field::Origin,
    Field::Target,
    Field::Lock,
    Field::Window,
    Field::Context,
];
pub(super) const LOCK: &[Field] =
    &[Field::Id, Field::Origin, Field::Target, Field::Lock, Field::Holder, Field::Window, Field::Context];
pub(super) const ACCESS: &[Field] = &[Field::Origin, Field::Target, Field::Window, Field::Context];
pub(super) const EPOCH: &[Field] = &[Field::Origin, Field::Window, Field::Context];
pub(super) const FILE_ACCESS: &[Field] = &[
    Field::Id,
    Field::FileOperation,
    Field::FilePointer,
    Field::FileMode,
    Field::Origin,
    Field::Offset,
    Field::Bytes,
    Field::Count,
    Field::Datatype,
    Field::Buffer,
    Field::DiskAccesses,
    Field::File,
    Field::Context,
];
pub(super) const FILE_LOCK: &[Field] =
    &[Field::Id, Field::Origin, Field::Lock, Field::Offset, Field::Length, Field::File, Field::Context];
pub(super) const PART_OPERATION: &[Field] = &[
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
    Field::Partitions,
];
pub(super) const PARTITION: &[Field] = &[
    Field::Id,
    Field::Operation,
    Field::Peer,
    Field::Tag,
    Field::Bytes,
    Field::Communicator,
    Field::Context,
    Field::Partition,
    Field::Arrived,
];
pub(super) const SPAWN: &[Field] = &[
    Field::Id,
    Field::Root,
    Field::Processes,
    Field::Intercommunicator,
    Field::Communicator,
    Field::Context,
];
pub(super) const CALL: &[Field] = &[Field::Function, Field::FunctionName];
pub(super) const COPY: &[Field] = &[Field::Id, Field::CopyEngine, Field::Bytes, Field::World];
