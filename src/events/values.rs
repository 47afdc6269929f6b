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
    /// Whether the caller of a collective operation waits in it: `mode` of [`EventPayload::Coll`](super::EventPayload::Coll).
    CollMode:
    /// It does.
    Blocking c"blocking",
    /// It goes on while the operation does (MPI_Ibarrier and its like).
    Nonblocking c"nonblocking",
    /// As before; this is one of several starts (MPI_Start after MPI_Barrier_init and its like).
    Persistent c"persistent",
}

/// Names of [`Operation`](super::Operation)s.
pub(super) const OPERATIONS: &[&CStr] = &[c"send", c"recv", c"put", c"get", c"acc", c"io_read", c"io_write"];
/// Names of copy engines.
pub(super) const COPY_ENGINES: &[&CStr] = &[c"chunks", c"read", c"halves", c"direct"];
/// Names of what a rank can wait for, as `shm::telemetry` numbers it.
pub(super) const WAITING: &[&CStr] =
    &[c"nothing", c"receive", c"send", c"probe", c"any", c"all", c"collective", c"finalize", c"room"];
/// Names of the policies by which a rank is placed.
pub(super) const PLACEMENTS: &[&CStr] = &[c"free", c"bound"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn enumerations_have_their_names_at_the_place_of_their_values() {
        assert_eq!(Collective::NAMES[Collective::NeighbourAlltoall as usize], c"neighbor_alltoall");
        assert_eq!(Algorithm::NAMES[Algorithm::Between as usize], c"between_groups");
    }
}
