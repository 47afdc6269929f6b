//! Which way a collective takes, and what steers that. All members of a communicator must choose alike: what is looked at is
//! the operation, bytes that all know, how many they are, and variables that are the same in all ranks.

use crate::team::Arrival;
use crate::variables::{Config, VariableId};

/// The operations that shared memory serves. Their numbers name them in its slots.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum TeamOperation {
    /// MPI_Barrier.
    Barrier = 1,
    /// MPI_Bcast.
    Bcast,
    /// MPI_Allgather, and MPI_Allgatherv with blocks of equal length.
    Allgather,
    /// MPI_Alltoall.
    Alltoall,
    /// MPI_Reduce.
    Reduce,
    /// MPI_Allreduce.
    Allreduce,
}

/// Members up to which everybody looks at everybody, where all ranks have a CPU.
const FLAGGED_UP_TO: usize = 8;

/// How `members` arrive in rounds of an operation; `None` if it goes by messages.
#[inline]
#[must_use]
pub fn arrival(config: &Config, kind: TeamOperation, members: usize) -> Option<Arrival> {
    let way = match kind {
        TeamOperation::Barrier => VariableId::CollBarrier,
        TeamOperation::Bcast => VariableId::CollBcast,
        TeamOperation::Allgather => VariableId::CollAllgather,
        TeamOperation::Alltoall => VariableId::CollAlltoall,
        TeamOperation::Reduce => VariableId::CollReduce,
        TeamOperation::Allreduce => VariableId::CollAllreduce,
    };
    match config.number(way) {
        1 => None,
        2 => Some(Arrival::Count),
        3 => Some(Arrival::Flags),
        _ if members <= FLAGGED_UP_TO && !config.shape().is_oversubscribed() => Some(Arrival::Flags),
        _ => Some(Arrival::Count),
    }
}
