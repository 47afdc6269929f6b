//! What an operation's end says of it.

/// What MPI_Status says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MessageStatus {
    /// Rank of the sender in the communicator.
    pub source: i32,
    /// Tag of the message.
    pub tag: i32,
    /// Error class, for the calls that fill several statuses.
    pub error: i32,
    /// Bytes received.
    pub bytes: u64,
    /// Whether MPI_Cancel succeeded.
    pub cancelled: bool,
}

impl MessageStatus {
    /// The status of a request that is null, inactive, or has none (MPI 5.0 §3.7.3).
    pub const EMPTY: Self = Self {
        source: crate::abi::MPI_ANY_SOURCE,
        tag: crate::abi::MPI_ANY_TAG,
        error: crate::abi::MPI_SUCCESS,
        bytes: 0,
        cancelled: false,
    };
    /// The status of a receive from MPI_PROC_NULL (MPI 5.0 §3.10).
    pub const PROC_NULL: Self = Self { source: crate::abi::MPI_PROC_NULL, ..Self::EMPTY };
}

impl Default for MessageStatus {
    fn default() -> Self {
        Self::EMPTY
    }
}
