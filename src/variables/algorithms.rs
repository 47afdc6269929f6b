//! The algorithms of collective operations: one table for each operation, one row for each algorithm.
//!
//! A row has
//! - the name that the operation's control variable takes, if it has one. It is the name of the algorithm's file in
//!   `src/coll/algorithms/`, too, which has a function named as the operation;
//! - the value that stands for it in MPI_T. Values are never given to another algorithm;
//! - the `events::Algorithm` that events report;
//! - the bytes, and the numbers of ranks, for which it is taken by default, and whether it is `always` or only where
//!   ranks are `oversubscribed`, or two. Of all rows that fit, and that can perform the case, the first is taken;
//!   the last fits always.
//!
//! These are the algorithms over messages. Before them,
//! blocking operations try the shared-memory team (`coll::selection`).

use super::enumeration::{Enumeration, EnumerationItem};

/// Calls `$then! { $arguments $rows }` with the table of an operation.
///
/// Linear algorithms have one step, in which every rank may send to every other.
macro_rules! algorithm_table {
    (barrier $then:ident $arguments:tt) => {
        $then! { $arguments
            linear             5 Linear        (..) (3..=64) oversubscribed;
            dissemination      4 Dissemination (..) (..) always;
        }
    };
    // Along a chain every link is busy at once; it is long, so that short messages take the tree.
    (bcast $then:ident $arguments:tt) => {
        $then! { $arguments
            linear             6 Linear        (..64 << 10) (3..=64) oversubscribed;
            chain              4 Chain         (64 << 10..) (3..) always;
            binomial_tree      5 Tree          (..) (..) always;
        }
    };
    (gather $then:ident $arguments:tt) => {
        $then! { $arguments
            linear             4 Linear        (..) (..) always;
        }
    };
    (scatter $then:ident $arguments:tt) => {
        $then! { $arguments
            linear             4 Linear        (..) (..) always;
        }
    };
    // ⌈log₂ n⌉ steps with growing blocks, or n − 1 steps with one block each.
    (allgather $then:ident $arguments:tt) => {
        $then! { $arguments
            linear             6 Linear        (..) (3..=64) oversubscribed;
            bruck              4 Bruck         (..=64 << 10) (3..) always;
            ring               5 Ring          (..) (..) always;
        }
    };
    (alltoall $then:ident $arguments:tt) => {
        $then! { $arguments
            linear             5 Linear        (..) (2..=64) always;
            pairwise           4 Pairwise      (..) (..) always;
        }
    };
    (reduce $then:ident $arguments:tt) => {
        $then! { $arguments
            linear             5 Linear        (..=8 << 10) (3..=64) oversubscribed;
            binomial_tree      4 Tree          (..) (..) always;
        }
    };
    (allreduce $then:ident $arguments:tt) => {
        $then! { $arguments
            linear             5 Linear        (..=4 << 10) (3..=64) oversubscribed;
            reduce_scatter_allgather 6 ReduceScatterAllgather (32 << 10..) (..) always;
            recursive_doubling 4 Doubling      (..) (..) always;
        }
    };
    (reduce_scatter $then:ident $arguments:tt) => {
        $then! { $arguments
            linear             5 Linear        (..) (3..=64) oversubscribed;
            pairwise           4 Pairwise      (..) (..) always;
        }
    };
    (scan $then:ident $arguments:tt) => {
        $then! { $arguments
            chain              5 Chain         (..) (..) pair_or_oversubscribed;
            recursive_doubling 4 Doubling      (..) (..) always;
        }
    };
    (exscan $then:ident $arguments:tt) => {
        $then! { $arguments
            chain              5 Chain         (..) (..) pair_or_oversubscribed;
            recursive_doubling 4 Doubling      (..) (..) always;
        }
    };
}
pub(crate) use algorithm_table;

/// The value that leaves the choice to the library.
pub const AUTO: u64 = 0;
/// The value that asks for messages, by whatever algorithm.
pub const MESSAGES: u64 = 1;
/// The value that asks for the shared-memory team, whose members arrive by a count.
pub const COUNTED: u64 = 2;
/// The value that asks for the shared-memory team, whose members arrive by flags.
pub const FLAGGED: u64 = 3;

/// The enumeration of an operation's control variable.
macro_rules! enumeration {
    (($(#[$doc:meta])* $static:ident $name:literal)
     $($algorithm:ident $value:literal $label:ident ($($bytes:tt)*) ($($ranks:tt)*) $when:ident;)*) => {
        $(#[$doc])*
        pub static $static: Enumeration = Enumeration {
            name: $name,
            items: &[
                EnumerationItem { name: "auto", value: AUTO as i32 },
                EnumerationItem { name: "messages", value: MESSAGES as i32 },
                EnumerationItem { name: "counted", value: COUNTED as i32 },
                EnumerationItem { name: "flagged", value: FLAGGED as i32 },
                $(EnumerationItem { name: stringify!($algorithm), value: $value },)*
            ],
        };
        const _: () = {
            let values: &[u64] = &[AUTO, MESSAGES, COUNTED, FLAGGED, $($value),*];
            let mut at = 0;
            while at < values.len() {
                let mut other = 0;
                while other < at {
                    assert!(values[at] != values[other], "a value stands for one algorithm");
                    other += 1;
                }
                at += 1;
            }
        };
    };
}

algorithm_table!(barrier enumeration (
    /// What `coll_barrier` can be.
    BARRIER "barrier_algorithm"
));
algorithm_table!(bcast enumeration (
    /// What `coll_bcast` can be.
    BCAST "bcast_algorithm"
));
algorithm_table!(allgather enumeration (
    /// What `coll_allgather` can be.
    ALLGATHER "allgather_algorithm"
));
algorithm_table!(alltoall enumeration (
    /// What `coll_alltoall` can be.
    ALLTOALL "alltoall_algorithm"
));
algorithm_table!(reduce enumeration (
    /// What `coll_reduce` can be.
    REDUCE "reduce_algorithm"
));
algorithm_table!(allreduce enumeration (
    /// What `coll_allreduce` can be.
    ALLREDUCE "allreduce_algorithm"
));
algorithm_table!(gather enumeration (
    /// What `coll_gather` can be.
    GATHER "gather_algorithm"
));
algorithm_table!(scatter enumeration (
    /// What `coll_scatter` can be.
    SCATTER "scatter_algorithm"
));
algorithm_table!(reduce_scatter enumeration (
    /// What `coll_reduce_scatter` can be.
    REDUCE_SCATTER "reduce_scatter_algorithm"
));
algorithm_table!(scan enumeration (
    /// What `coll_scan` can be: the algorithms of MPI_Exscan are those of MPI_Scan.
    SCAN "scan_algorithm"
));
