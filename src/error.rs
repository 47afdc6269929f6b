//! The error of the engine, of the Rust API and of the C bindings,
//! and its MPI error class ([`Error::class`], MPI 5.0 §9.4).
//!
//! A text says what was wrong, where, with which value, and what to do about it where that is known. The C bindings
//! raise the class through the error handler of the communicator,
//! and print the text where that handler is MPI_ERRORS_ARE_FATAL.

use crate::abi;

/// The ranks of a group of `size`, as an error names them: both ends, for readers of any language.
fn ranks_of(size: i32) -> String {
    match size {
        ..=0 => "no ranks".into(),
        1 => "rank 0 only".into(),
        size => format!("ranks 0 to {}", size - 1),
    }
}

/// A rank, and the constant that has its value, if one has.
fn rank_with_name(rank: i32) -> String {
    match rank {
        abi::MPI_ANY_SOURCE => format!("{rank} (MPI_ANY_SOURCE)"),
        abi::MPI_PROC_NULL => format!("{rank} (MPI_PROC_NULL)"),
        abi::MPI_ROOT => format!("{rank} (MPI_ROOT)"),
        rank => rank.to_string(),
    }
}

/// A tag, and the constant that has its value, if one has.
fn tag_with_name(tag: i32) -> String {
    if tag == abi::MPI_ANY_TAG { format!("{tag} (MPI_ANY_TAG)") } else { tag.to_string() }
}

/// The result of every function that can fail.
pub type Result<T, E = Error> = core::result::Result<T, E>;

/// Writes `perusal: ` and a line to standard error, at once: what several ranks say at the same time is not mixed
/// within a line. Without standard error, nothing is written.
pub fn report(line: core::fmt::Arguments<'_>) {
    use std::io::Write;
    let _ = std::io::stderr().write_all(format!("perusal: {line}\n").as_bytes());
}

/// Everything that can go wrong. New variants may be added; match with a `_` arm.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A buffer has the wrong length, or is no memory at all (MPI_ERR_BUFFER).
    #[error("invalid buffer: {0}")]
    Buffer(&'static str),
    /// A count is negative (MPI_ERR_COUNT).
    #[error("count is {0}; it must not be negative")]
    Count(i64),
    /// So many elements of the datatype have no place in the address space (MPI_ERR_COUNT).
    #[error("count is {0}; so many elements of this datatype are larger than the address space")]
    CountTooLarge(usize),
    /// A datatype is not one, not committed, or does not suit the operation (MPI_ERR_TYPE).
    #[error("invalid datatype: {0}")]
    Type(&'static str),
    /// A tag is out of range (MPI_ERR_TAG).
    #[error("tag is {}; it must be 0 to MPI_TAG_UB, or MPI_ANY_TAG for a receive", tag_with_name(*.0))]
    Tag(i32),
    /// A receive that takes no wildcard has one (MPI_ERR_TAG, MPI_ERR_RANK).
    #[error("a partitioned receive takes no wildcard: name its source and its tag (MPI 5.0, section 4.2.1)")]
    Wildcard {
        /// Whether it is the tag, and not the source.
        is_tag: bool,
    },
    /// A communicator is not one, or does not have the operation (MPI_ERR_COMM).
    #[error("invalid communicator: {0}")]
    Comm(&'static str),
    /// The communicator has no such rank (MPI_ERR_RANK).
    #[error("rank is {}; the communicator has {}", rank_with_name(*rank), ranks_of(*size))]
    Rank {
        /// The rank that was given.
        rank: i32,
        /// The size of the communicator.
        size: i32,
    },
    /// The window has no such rank (MPI_ERR_RANK).
    #[error("rank is {}; the window has {}", rank_with_name(*rank), ranks_of(*size))]
    WinRank {
        /// The rank that was given.
        rank: i32,
        /// The size of the window's group.
        size: i32,
    },
    /// The group has no such rank (MPI_ERR_RANK).
    #[error("rank is {rank}; the group has {}", ranks_of(*size))]
    GroupRank {
        /// The rank that was given.
        rank: i32,
        /// The size of the group.
        size: i32,
    },
    /// A list of ranks names one twice (MPI_ERR_RANK).
    #[error("rank {0} stands twice in the list; each may stand there once")]
    RankTwice(i32),
    /// The communicator has no such root (MPI_ERR_ROOT).
    #[error("root is {root}; the communicator has {}", ranks_of(*size))]
    Root {
        /// The root that was given.
        root: i32,
        /// The size of the communicator.
        size: i32,
    },
    /// A request is not one, or is not in the state that the function asks for (MPI_ERR_REQUEST).
    #[error("invalid request: {0}")]
    Request(&'static str),
    /// A group is not one, or the caller is not in it (MPI_ERR_GROUP).
    #[error("invalid group: {0}")]
    Group(&'static str),
    /// A reduction operation is not one, or does not take the datatype (MPI_ERR_OP).
    #[error("invalid reduction operation: {0}")]
    Op(&'static str),
    /// A topology is impossible, or the communicator has none (MPI_ERR_TOPOLOGY).
    #[error("invalid topology: {0}")]
    Topology(&'static str),
    /// Dimensions of a grid make no sense (MPI_ERR_DIMS).
    #[error("invalid dimensions: {0}")]
    Dims(&'static str),
    /// A partitioned message has no partition (MPI_ERR_ARG).
    #[error(
        "the number of partitions is {0}; a partitioned message has at least one (MPI 5.0, section 4.2.1)"
    )]
    Partitions(i32),
    /// Another argument is invalid (MPI_ERR_ARG).
    #[error("invalid argument: {0}")]
    Arg(&'static str),
    /// Another argument has a value that is invalid (MPI_ERR_ARG).
    #[error("invalid argument: {0}")]
    Value(String),
    /// A message is larger than the buffer of its receive (MPI_ERR_TRUNCATE). The message is lost.
    #[error(
        "message of {sent} bytes does not fit into a receive buffer of {room} bytes; probe for its size first, or receive into more"
    )]
    Truncate {
        /// Bytes that were sent.
        sent: u64,
        /// Bytes that the posted receive can take.
        room: u64,
    },
    /// Elements are packed into a buffer that is too small (MPI_ERR_TRUNCATE).
    #[error(
        "{need} bytes to pack do not fit into the {room} that are left of the packing buffer; MPI_Pack_size and MPI_Pack_external_size say how many it must have"
    )]
    PackSpace {
        /// Bytes of the elements.
        need: u64,
        /// Bytes of the buffer behind the position.
        room: u64,
    },
    /// More elements are unpacked than there are (MPI_ERR_TRUNCATE).
    #[error(
        "{need} bytes to unpack are more than the {left} that are left of the packing buffer; unpack no more than was packed"
    )]
    UnpackEnd {
        /// Bytes of the elements.
        need: u64,
        /// Bytes of the buffer behind the position.
        left: u64,
    },
    /// A buffered send found no room (MPI_ERR_BUFFER).
    #[error(
        "buffered send of {need} bytes: {free} bytes are free in the attached buffer; attach a larger one with MPI_Buffer_attach"
    )]
    BsendSpace {
        /// Bytes needed, overhead included.
        need: usize,
        /// The largest free piece in bytes.
        free: usize,
    },
    /// An info object is not one (MPI_ERR_INFO).
    #[error("invalid info object: {0}")]
    Info(&'static str),
    /// An info key is empty or too long (MPI_ERR_INFO_KEY).
    #[error("invalid info key: {0}")]
    InfoKey(&'static str),
    /// An info value is too long (MPI_ERR_INFO_VALUE).
    #[error("invalid info value: {0}")]
    InfoValue(&'static str),
    /// An info object does not have the key (MPI_ERR_INFO_NOKEY).
    #[error("the info object does not have this key")]
    InfoNoKey,
    /// An attribute's keyval is not one, or of another kind of object (MPI_ERR_KEYVAL).
    #[error("invalid keyval: {0}")]
    Keyval(&'static str),
    /// An error handler is not one, or of another kind of object (MPI_ERR_ERRHANDLER).
    #[error("invalid error handler: {0}")]
    Errhandler(&'static str),
    /// A session is not one (MPI_ERR_SESSION).
    #[error("invalid session: {0}")]
    Session(&'static str),
    /// A window is not one (MPI_ERR_WIN).
    #[error("invalid window: {0}")]
    Win(&'static str),
    /// A call on a window that the present epoch does not allow (MPI_ERR_RMA_SYNC).
    #[error("wrong synchronisation of one-sided communication: {0}")]
    RmaSync(&'static str),
    /// An access beyond the target's memory (MPI_ERR_RMA_RANGE).
    #[error(
        "displacement {disp}, {bytes} bytes: beyond the {room} bytes of the target's memory in the window"
    )]
    RmaRange {
        /// The displacement, in the target's units.
        disp: i64,
        /// Bytes from the first to the last of the elements.
        bytes: i64,
        /// Bytes of the target's memory.
        room: u64,
    },
    /// The elements at one end of a one-sided operation are more than those at the other (MPI_ERR_TRUNCATE).
    #[error(
        "{sent} bytes do not fit into {room} bytes at the other end; give the origin and the target equally many elements"
    )]
    RmaTruncate {
        /// Bytes that are read.
        sent: u64,
        /// Bytes that may be written.
        room: u64,
    },
    /// Memory of a target's that is not in the window, or is no memory at all (MPI_ERR_RMA_RANGE).
    #[error("outside of the target's memory in the window: {0}")]
    RmaOutside(&'static str),
    /// Memory that cannot be attached to a window, or is not attached where it is to be detached (MPI_ERR_RMA_ATTACH).
    #[error("invalid memory of a window: {0}")]
    RmaAttach(&'static str),
    /// A function for windows that were made in another way (MPI_ERR_RMA_FLAVOR).
    #[error("wrong kind of window: {0}")]
    RmaFlavor(&'static str),
    /// Memory that cannot be shared (MPI_ERR_RMA_SHARED).
    #[error("invalid shared memory of a window: {0}")]
    RmaShared(&'static str),
    /// A size in bytes makes no sense (MPI_ERR_SIZE).
    #[error("invalid size: {0}")]
    Size(&'static str),
    /// A displacement or its unit makes no sense (MPI_ERR_DISP).
    #[error("invalid displacement: {0}")]
    Disp(&'static str),
    /// A kind of lock that there is not (MPI_ERR_LOCKTYPE).
    #[error("invalid kind of lock: {0}")]
    LockKind(&'static str),
    /// Assertions that there are not (MPI_ERR_ASSERT).
    #[error("invalid assertions: {0}")]
    Assert(&'static str),
    /// A file's handle is not one (MPI_ERR_FILE).
    #[error("invalid file: {0}")]
    FileHandle(&'static str),
    /// An access mode of a file makes no sense (MPI_ERR_AMODE).
    #[error("invalid access mode: {0}")]
    AccessMode(&'static str),
    /// The members of a file's communicator gave different arguments (MPI_ERR_NOT_SAME).
    #[error("arguments differ between the ranks: {0}")]
    NotSame(&'static str),
    /// An operation that is not possible on this file (MPI_ERR_UNSUPPORTED_OPERATION).
    #[error("not possible on this file: {0}")]
    FileOperation(&'static str),
    /// A file cannot be opened, read, written or changed.
    #[error("{path}: {what}")]
    File {
        /// The MPI error class.
        class: i32,
        /// The file's name, as it was given.
        path: String,
        /// What was tried, and what the system said.
        what: String,
    },
    /// A data representation cannot be registered or used.
    #[error("data representation {name:?}: {what}")]
    Representation {
        /// The MPI error class.
        class: i32,
        /// Its name.
        name: String,
        /// What was wrong.
        what: &'static str,
    },
    /// Memory, or something else of which there is a limited number, is used up (MPI_ERR_NO_MEM).
    #[error("out of memory: {0}")]
    NoMem(String),
    /// A value does not fit into the type of an argument (MPI_ERR_VALUE_TOO_LARGE).
    #[error("{0} does not fit into the argument's type; use the _c form of the function")]
    TooLarge(&'static str),
    /// A call before initialisation or after finalisation (MPI_ERR_OTHER).
    #[error("{0} called before MPI_Init or after MPI_Finalize, and without a session")]
    NotInitialized(&'static str),
    /// A call from inside an event callback (MPI_ERR_OTHER; PERUSE 2.0 §5.1.2).
    #[error("an event callback may call PERUSE and local enquiries only (PERUSE 2.0, section 5.1.2)")]
    InsideCallback,
    /// A call from inside an event callback of MPI_T, not at a safe point (MPI_ERR_OTHER; MPI 5.0 §15.3.8).
    #[error(
        "an MPI_T callback that runs where its event happens may call MPI_T and local enquiries only \
         (MPI 5.0, section 15.3.8: MPI_T_CB_REQUIRE_MPI_RESTRICTED)"
    )]
    InsideToolCallback,
    /// A rank has failed, and the job with it (MPI_ERR_PROC_ABORTED).
    #[error("rank {rank} has failed: {how}")]
    RankFailed {
        /// Its rank in MPI_COMM_WORLD.
        rank: u32,
        /// What became of it.
        how: String,
    },
    /// A rank has died, and the job goes on without it (MPIX_ERR_PROC_FAILED).
    #[error("rank {rank} has failed: {how}")]
    ProcFailed {
        /// Its rank in MPI_COMM_WORLD.
        rank: u32,
        /// What became of it.
        how: String,
    },
    /// A rank that may be the source of a receive has died;
    /// the receive goes on once that is acknowledged (MPIX_ERR_PROC_FAILED_PENDING).
    #[error(
        "rank {rank}, from which the message might come, has failed: {how}; the receive stays, and can be waited for after \
         MPIX_Comm_ack_failed, or cancelled"
    )]
    ProcFailedPending {
        /// Its rank in MPI_COMM_WORLD.
        rank: u32,
        /// What became of it.
        how: String,
    },
    /// The communicator has been revoked by a member (MPIX_ERR_REVOKED).
    #[error(
        "the communicator has been revoked by MPIX_Comm_revoke; MPIX_Comm_shrink makes one that can be used"
    )]
    Revoked,
    /// The bytes that a peer put into shared memory make no sense (MPI_ERR_INTERN).
    #[error("corrupt record from rank {rank}: {what}")]
    Corrupt {
        /// World rank of the writer.
        rank: u32,
        /// What was wrong with it.
        what: String,
    },
    /// The job's shared memory cannot be made, mapped or grown (MPI_ERR_OTHER).
    #[error("job memory: {0}")]
    Segment(String),
    /// A trace cannot be made or read (MPI_ERR_OTHER).
    #[error("trace: {0}")]
    Trace(String),
    /// Some of several requests failed; the statuses say which (MPI_ERR_IN_STATUS).
    #[error("request {at} of the array failed, {first}; the MPI_ERROR field of each status has its error")]
    InStatus {
        /// Where the first one that failed stands in the program's array.
        at: usize,
        /// What it failed with.
        first: Box<Error>,
    },
    /// A request has neither failed nor completed (MPI_ERR_PENDING).
    #[error("the request is pending; wait for it or test it again")]
    Pending,
    /// Processes cannot be spawned, or a port or a published name is not one.
    #[error("{what}")]
    Dynamic {
        /// The MPI error class: MPI_ERR_SPAWN, MPI_ERR_PORT, MPI_ERR_SERVICE or MPI_ERR_NAME.
        class: i32,
        /// What was wrong.
        what: String,
    },
    /// Any other error class or code, user-defined ones included.
    #[error("error code {0}")]
    Code(i32),
    /// Anything else that a program or a user can mend; the text says what (MPI_ERR_OTHER).
    #[error("{0}")]
    Other(String),
    /// A defect of the library (MPI_ERR_INTERN).
    #[error("internal error: {0}; please report it")]
    Intern(String),
}

/// Class of an operation that a dead process keeps from ending (User Level Failure Mitigation; `mpi-ext.h`). The
/// standard's classes are below, those of users above.
pub const MPIX_ERR_PROC_FAILED: i32 = 101;
/// Class of a receive from any source that waits for deaths to be acknowledged.
pub const MPIX_ERR_PROC_FAILED_PENDING: i32 = 102;
/// Class of an operation on a revoked communicator.
pub const MPIX_ERR_REVOKED: i32 = 103;

/// Memory of a size that a user's number decides is asked for by `try_reserve`.
impl From<std::collections::TryReserveError> for Error {
    #[cold]
    fn from(error: std::collections::TryReserveError) -> Self {
        Self::NoMem(error.to_string())
    }
}

impl Error {
    /// Returns the MPI error class (or user-defined code) of the error: what the C bindings raise.
    #[must_use]
    pub fn class(&self) -> i32 {
        use Error as E;
        match self {
            E::Buffer(_) | E::BsendSpace { .. } => abi::MPI_ERR_BUFFER,
            E::Count(_) | E::CountTooLarge(_) => abi::MPI_ERR_COUNT,
            E::Type(_) => abi::MPI_ERR_TYPE,
            E::Tag(_) | E::Wildcard { is_tag: true } => abi::MPI_ERR_TAG,
            E::Comm(_) => abi::MPI_ERR_COMM,
            E::Rank { .. }
            | E::WinRank { .. }
            | E::GroupRank { .. }
            | E::RankTwice(_)
            | E::Wildcard { .. } => abi::MPI_ERR_RANK,
            E::Root { .. } => abi::MPI_ERR_ROOT,
            E::Request(_) => abi::MPI_ERR_REQUEST,
            E::Group(_) => abi::MPI_ERR_GROUP,
            E::Op(_) => abi::MPI_ERR_OP,
            E::Topology(_) => abi::MPI_ERR_TOPOLOGY,
            E::Dims(_) => abi::MPI_ERR_DIMS,
            E::Arg(_) | E::Value(_) | E::Partitions(_) => abi::MPI_ERR_ARG,
            E::Truncate { .. } | E::RmaTruncate { .. } | E::PackSpace { .. } | E::UnpackEnd { .. } => {
                abi::MPI_ERR_TRUNCATE
            }
            E::Info(_) => abi::MPI_ERR_INFO,
            E::InfoKey(_) => abi::MPI_ERR_INFO_KEY,
            E::InfoValue(_) => abi::MPI_ERR_INFO_VALUE,
            E::InfoNoKey => abi::MPI_ERR_INFO_NOKEY,
            E::Keyval(_) => abi::MPI_ERR_KEYVAL,
            E::Errhandler(_) => abi::MPI_ERR_ERRHANDLER,
            E::Session(_) => abi::MPI_ERR_SESSION,
            E::Win(_) => abi::MPI_ERR_WIN,
            E::RmaSync(_) => abi::MPI_ERR_RMA_SYNC,
            E::RmaRange { .. } | E::RmaOutside(_) => abi::MPI_ERR_RMA_RANGE,
            E::RmaAttach(_) => abi::MPI_ERR_RMA_ATTACH,
            E::RmaFlavor(_) => abi::MPI_ERR_RMA_FLAVOR,
            E::RmaShared(_) => abi::MPI_ERR_RMA_SHARED,
            E::Size(_) => abi::MPI_ERR_SIZE,
            E::Disp(_) => abi::MPI_ERR_DISP,
            E::LockKind(_) => abi::MPI_ERR_LOCKTYPE,
            E::Assert(_) => abi::MPI_ERR_ASSERT,
            E::FileHandle(_) => abi::MPI_ERR_FILE,
            E::AccessMode(_) => abi::MPI_ERR_AMODE,
            E::NotSame(_) => abi::MPI_ERR_NOT_SAME,
            E::File { class, .. } | E::Representation { class, .. } | E::Dynamic { class, .. } => *class,
            E::NoMem(_) => abi::MPI_ERR_NO_MEM,
            E::TooLarge(_) => abi::MPI_ERR_VALUE_TOO_LARGE,
            E::FileOperation(_) => abi::MPI_ERR_UNSUPPORTED_OPERATION,
            E::RankFailed { .. } => abi::MPI_ERR_PROC_ABORTED,
            E::ProcFailed { .. } => MPIX_ERR_PROC_FAILED,
            E::ProcFailedPending { .. } => MPIX_ERR_PROC_FAILED_PENDING,
            E::Revoked => MPIX_ERR_REVOKED,
            E::Corrupt { .. } | E::Intern(_) => abi::MPI_ERR_INTERN,
            E::NotInitialized(_)
            | E::InsideCallback
            | E::InsideToolCallback
            | E::Segment(_)
            | E::Trace(_)
            | E::Other(_) => abi::MPI_ERR_OTHER,
            E::InStatus { .. } => abi::MPI_ERR_IN_STATUS,
            E::Pending => abi::MPI_ERR_PENDING,
            E::Code(code) => *code,
        }
    }
}
