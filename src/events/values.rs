//! The values of fields that are enumerations, with their names.

use core::ffi::CStr;

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
    /// A collective operation: `operation` of [`EventPayload::Coll`](super::EventPayload::Coll).
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
    /// How a collective operation is performed: `algorithm` of [`EventPayload::Coll`](super::EventPayload::Coll).
    Algorithm:
    /// Not known (yet).
    Unknown c"unknown",
    /// One step: a rank that has data sends it to each of those that need it.
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
    /// A reduce-scatter, then an allgather.
    ReduceScatterAllgather c"reduce_scatter_allgather",
    /// Through memory that all ranks share, in pieces.
    Shared c"shared_memory",
    /// Between the two groups of an intercommunicator.
    Between c"between_groups",
    /// One round in shared memory, on a count; the last to come does what is common to all.
    Counted c"shared_count",
    /// One round in shared memory, on flags that everybody looks at.
    Flagged c"shared_flags",
    /// Between two ranks: one message, or one each way, received where the result belongs.
    TwoProc c"two_proc",
}

named! {
    /// Whether the caller of a collective operation waits in it: `mode` of
    /// [`EventPayload::Coll`](super::EventPayload::Coll).
    CollMode:
    /// It does.
    Blocking c"blocking",
    /// It goes on while the operation does (MPI_Ibarrier and its like).
    Nonblocking c"nonblocking",
    /// As before; this is one of several starts (MPI_Start after MPI_Barrier_init and its like).
    Persistent c"persistent",
}

named! {
    /// A one-sided operation: `operation` of [`EventPayload::Rma`](super::EventPayload::Rma).
    RmaOperation:
    /// MPI_Put and MPI_Rput.
    Put c"put",
    /// MPI_Get and MPI_Rget.
    Get c"get",
    /// MPI_Accumulate and MPI_Raccumulate.
    Accumulate c"accumulate",
    /// MPI_Get_accumulate and MPI_Rget_accumulate.
    GetAccumulate c"get_accumulate",
    /// MPI_Fetch_and_op.
    FetchAndOp c"fetch_and_op",
    /// MPI_Compare_and_swap.
    CompareAndSwap c"compare_and_swap",
}

named! {
    /// A call that synchronises a window: `call` of [`EventPayload::Sync`](super::EventPayload::Sync).
    WindowSync:
    /// MPI_Win_fence.
    Fence c"fence",
    /// MPI_Win_start.
    Start c"start",
    /// MPI_Win_complete.
    Complete c"complete",
    /// MPI_Win_post.
    Post c"post",
    /// MPI_Win_wait.
    Wait c"wait",
    /// MPI_Win_lock.
    Lock c"lock",
    /// MPI_Win_unlock.
    Unlock c"unlock",
    /// MPI_Win_test.
    Test c"test",
    /// MPI_Win_lock_all.
    LockAll c"lock_all",
    /// MPI_Win_unlock_all.
    UnlockAll c"unlock_all",
    /// MPI_Win_flush, MPI_Win_flush_local, and these for all targets.
    Flush c"flush",
    /// MPI_Win_sync.
    Sync c"sync",
}

named! {
    /// How a rank's memory in a window is locked: `lock` of [`EventPayload::Lock`](super::EventPayload::Lock).
    WindowLock:
    /// Not.
    None c"none",
    /// MPI_LOCK_SHARED.
    Shared c"shared",
    /// MPI_LOCK_EXCLUSIVE.
    Exclusive c"exclusive",
    /// By a lock that takes none, because of MPI_MODE_NOCHECK.
    Unchecked c"unchecked",
}

named! {
    /// How an origin reaches a target's memory: `reach` of [`EventPayload::Rma`](super::EventPayload::Rma).
    WindowReach:
    /// By loads and stores.
    Mapped c"loads_and_stores",
    /// By process_vm_readv and process_vm_writev.
    Kernel c"process_vm",
    /// By messages, which the target's progress serves.
    Messages c"messages",
}

named! {
    /// What an access to a file does: `operation` of [`EventPayload::File`](super::EventPayload::File).
    FileOperation:
    /// It reads.
    Read c"read",
    /// It writes.
    Write c"write",
}

named! {
    /// Where an access to a file begins: `pointer` of [`EventPayload::File`](super::EventPayload::File).
    FilePointer:
    /// At an offset that the program gives.
    Explicit c"explicit_offset",
    /// At the individual file pointer.
    Individual c"individual",
    /// At the shared file pointer.
    Shared c"shared",
}

named! {
    /// Who takes part in an access to a file: `mode` of [`EventPayload::File`](super::EventPayload::File).
    FileMode:
    /// One rank alone.
    Independent c"independent",
    /// All ranks that have opened it; split ones too.
    Collective c"collective",
    /// One that goes on in the background.
    Nonblocking c"nonblocking",
}

/// Names of [`Operation`](super::Operation)s.
pub(super) const OPERATIONS: &[&CStr] = &[
    c"send",
    c"recv",
    c"put",
    c"get",
    c"acc",
    c"io_read",
    c"io_write",
    c"fence",
    c"start",
    c"complete",
    c"post",
    c"wait",
    c"lock",
    c"unlock",
    c"test",
    c"lock_all",
    c"unlock_all",
    c"flush",
    c"sync",
];
/// Names of copy engines.
pub(super) const COPY_ENGINES: &[&CStr] = &[c"chunks", c"read", c"halves", c"direct"];
/// Names of the policies by which a rank is placed.
pub(super) const PLACEMENTS: &[&CStr] = &[c"free", c"bound"];
/// Names of how windows are made, as `rma::Flavor` numbers it.
pub(super) const FLAVORS: &[&CStr] = &[c"create", c"allocate", c"dynamic", c"shared"];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::events::Operation;

    #[test]
    fn enumerations_have_their_names_at_the_place_of_their_values() {
        assert_eq!(Collective::NAMES[Collective::NeighbourAlltoall as usize], c"neighbor_alltoall");
        assert_eq!(Algorithm::NAMES[Algorithm::Between as usize], c"between_groups");
        assert_eq!(WindowSync::NAMES[WindowSync::Sync as usize], c"sync");
        for call in [WindowSync::Fence, WindowSync::Unlock, WindowSync::Sync] {
            let operation = Operation::of_sync(call);
            assert_eq!(OPERATIONS[operation as usize], WindowSync::NAMES[call as usize]);
        }
        assert_eq!(OPERATIONS.len(), Operation::WinSync as usize + 1);
    }
}
