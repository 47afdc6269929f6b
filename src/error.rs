//! One precise error for the whole engine, mapped once to MPI error classes ([`Error::class`]).
//!
//! Each variant says what was wrong, with which value, and where it can, what to do. The C face raises
//! `class()` through the communicator's error handler and gives `Display` as the text of a fatal error.

use crate::abi;

/// What every fallible function of the engine returns.
pub type Result<T, E = Error> = core::result::Result<T, E>;

/// Everything that can go wrong, named.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// MPI_ERR_BUFFER.
    #[error("invalid buffer: {0}")]
    Buffer(&'static str),
    /// MPI_ERR_COUNT.
    #[error("count is {0}; it must not be negative")]
    Count(i64),
    /// MPI_ERR_TYPE.
    #[error("invalid datatype: {0}")]
    Type(&'static str),
    /// MPI_ERR_TAG.
    #[error("tag is {0}; it must be 0..=MPI_TAG_UB, or MPI_ANY_TAG for a receive")]
    Tag(i32),
    /// MPI_ERR_COMM.
    #[error("invalid communicator: {0}")]
    Comm(&'static str),
    /// MPI_ERR_RANK.
    #[error("rank is {rank}; the communicator has ranks 0..{size}")]
    Rank {
        /// The rank that was given.
        rank: i32,
        /// The size of the communicator.
        size: i32,
    },
    /// MPI_ERR_RANK: a list of ranks names one twice.
    #[error("rank {0} comes twice in the list")]
    RankTwice(i32),
    /// MPI_ERR_ROOT.
    #[error("root is {root}; the communicator has ranks 0..{size}")]
    Root {
        /// The root that was given.
        root: i32,
        /// The size of the communicator.
        size: i32,
    },
    /// MPI_ERR_REQUEST.
    #[error("invalid request: {0}")]
    Request(&'static str),
    /// MPI_ERR_GROUP.
    #[error("invalid group: {0}")]
    Group(&'static str),
    /// MPI_ERR_OP.
    #[error("invalid reduction operation: {0}")]
    Op(&'static str),
    /// MPI_ERR_TOPOLOGY.
    #[error("invalid topology: {0}")]
    Topology(&'static str),
    /// MPI_ERR_DIMS.
    #[error("invalid dimensions: {0}")]
    Dims(&'static str),
    /// MPI_ERR_ARG.
    #[error("invalid argument: {0}")]
    Arg(&'static str),
    /// MPI_ERR_TRUNCATE.
    #[error("message of {sent} bytes does not fit into a receive buffer of {room} bytes")]
    Truncate {
        /// Bytes that were sent.
        sent: u64,
        /// Bytes that the posted receive can take.
        room: u64,
    },
    /// MPI_ERR_BUFFER: a buffered send found no room.
    #[error(
        "buffered send of {need} bytes: {free} bytes are free in the attached buffer; attach a larger one with MPI_Buffer_attach"
    )]
    BsendSpace {
        /// Bytes needed, overhead included.
        need: usize,
        /// The largest free piece in bytes.
        free: usize,
    },
    /// MPI_ERR_INFO and its key and value classes.
    #[error("invalid info object: {0}")]
    Info(&'static str),
    /// MPI_ERR_INFO_KEY.
    #[error("invalid info key: {0}")]
    InfoKey(&'static str),
    /// MPI_ERR_INFO_VALUE.
    #[error("invalid info value: {0}")]
    InfoValue(&'static str),
    /// MPI_ERR_INFO_NOKEY.
    #[error("no such info key")]
    InfoNoKey,
    /// MPI_ERR_KEYVAL.
    #[error("invalid keyval: {0}")]
    Keyval(&'static str),
    /// MPI_ERR_ERRHANDLER.
    #[error("invalid error handler: {0}")]
    Errhandler(&'static str),
    /// MPI_ERR_SESSION.
    #[error("invalid session: {0}")]
    Session(&'static str),
    /// MPI_ERR_NO_MEM.
    #[error("out of memory: {0}")]
    NoMem(String),
    /// MPI_ERR_VALUE_TOO_LARGE.
    #[error("{0} does not fit into the argument's type; use the _c form of the function")]
    TooLarge(&'static str),
    /// MPI_ERR_UNSUPPORTED_OPERATION.
    #[error("{0} is not implemented in this version of perusal")]
    Unsupported(&'static str),
    /// MPI_ERR_OTHER: a call outside the time between initialisation and finalisation.
    #[error("{0} called before MPI_Init or after MPI_Finalize")]
    NotInitialized(&'static str),
    /// MPI_ERR_OTHER: an MPI call from inside an event callback (PERUSE 2.0 §5.1.2).
    #[error("an event callback may call MPI_Wtime and MPI_Wtick only (PERUSE 2.0, section 5.1.2)")]
    InsideCallback,
    /// MPI_ERR_PROC_ABORTED: a peer is gone.
    #[error("rank {rank} is gone: {how}")]
    PeerGone {
        /// Its rank in MPI_COMM_WORLD.
        rank: u32,
        /// What became of it.
        how: String,
    },
    /// MPI_ERR_INTERN: the bytes that a peer put into shared memory make no sense.
    #[error("corrupt record from rank {rank}: {what}")]
    Corrupt {
        /// World rank of the writer.
        rank: u32,
        /// What was wrong with it.
        what: String,
    },
    /// MPI_ERR_OTHER: the job's shared memory cannot be made, mapped or grown.
    #[error("job memory: {0}")]
    Segment(String),
    /// MPI_ERR_OTHER: a trace cannot be made or read.
    #[error("trace: {0}")]
    Trace(String),
    /// MPI_ERR_IN_STATUS: the statuses say which of several requests failed.
    #[error("one or more requests failed; see the MPI_ERROR fields of the statuses")]
    InStatus,
    /// MPI_ERR_PENDING: neither failed nor complete.
    #[error("request is still pending")]
    Pending,
    /// Any other error class or code, user-defined ones included.
    #[error("error code {0}")]
    Code(i32),
    /// MPI_ERR_OTHER.
    #[error("{0}")]
    Other(String),
    /// MPI_ERR_INTERN.
    #[error("internal error: {0}; please report it")]
    Intern(String),
}

impl Error {
    /// The MPI error class (or user-defined code) that the C face raises for this error.
    #[must_use]
    pub fn class(&self) -> i32 {
        use Error as E;
        match self {
            E::Buffer(_) | E::BsendSpace { .. } => abi::MPI_ERR_BUFFER,
            E::Count(_) => abi::MPI_ERR_COUNT,
            E::Type(_) => abi::MPI_ERR_TYPE,
            E::Tag(_) => abi::MPI_ERR_TAG,
            E::Comm(_) => abi::MPI_ERR_COMM,
            E::Rank { .. } | E::RankTwice(_) => abi::MPI_ERR_RANK,
            E::Root { .. } => abi::MPI_ERR_ROOT,
            E::Request(_) => abi::MPI_ERR_REQUEST,
            E::Group(_) => abi::MPI_ERR_GROUP,
            E::Op(_) => abi::MPI_ERR_OP,
            E::Topology(_) => abi::MPI_ERR_TOPOLOGY,
            E::Dims(_) => abi::MPI_ERR_DIMS,
            E::Arg(_) => abi::MPI_ERR_ARG,
            E::Truncate { .. } => abi::MPI_ERR_TRUNCATE,
            E::Info(_) => abi::MPI_ERR_INFO,
            E::InfoKey(_) => abi::MPI_ERR_INFO_KEY,
            E::InfoValue(_) => abi::MPI_ERR_INFO_VALUE,
            E::InfoNoKey => abi::MPI_ERR_INFO_NOKEY,
            E::Keyval(_) => abi::MPI_ERR_KEYVAL,
            E::Errhandler(_) => abi::MPI_ERR_ERRHANDLER,
            E::Session(_) => abi::MPI_ERR_SESSION,
            E::NoMem(_) => abi::MPI_ERR_NO_MEM,
            E::TooLarge(_) => abi::MPI_ERR_VALUE_TOO_LARGE,
            E::Unsupported(_) => abi::MPI_ERR_UNSUPPORTED_OPERATION,
            E::PeerGone { .. } => abi::MPI_ERR_PROC_ABORTED,
            E::Corrupt { .. } | E::Intern(_) => abi::MPI_ERR_INTERN,
            E::NotInitialized(_) | E::InsideCallback | E::Segment(_) | E::Trace(_) | E::Other(_) => {
                abi::MPI_ERR_OTHER
            }
            E::InStatus => abi::MPI_ERR_IN_STATUS,
            E::Pending => abi::MPI_ERR_PENDING,
            E::Code(code) => *code,
        }
    }
}
