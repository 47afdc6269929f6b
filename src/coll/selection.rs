//! Selects the algorithm of a collective operation. All members of a communicator must select alike, so what decides is
//! the same at all of them: the operation, its [`Case`], and control variables that are equal in all ranks.
//!
//! A blocking operation of all members of an intracommunicator goes through their shared-memory team, if [`arrival`]
//! says how its members arrive and the team can serve the case. Everything else goes by messages, performed by a row of
//! the operation's table in [`crate::variables::algorithms`].

use super::algorithms;
use crate::events::{Algorithm, Collective};
use crate::team::RoundArrival;
use crate::variables::algorithms::{AUTO, COUNTED, FLAGGED, algorithm_table};
use crate::variables::{Config, VariableId};
use core::ops::RangeBounds;

/// What an algorithm is selected by.
#[derive(Debug, Clone, Copy)]
pub struct Case {
    /// Bytes: of a broadcast or reduction, those of each rank's data; of an allgather, those of all blocks together; of
    /// an alltoall of equal blocks, those of one; else 0, because ranks may know different numbers.
    pub bytes: usize,
    /// Ranks that take part.
    pub ranks: usize,
    /// Whether every rank's block has the same length.
    pub equal_blocks: bool,
    /// Whether the order of operands does not matter.
    pub commutes: bool,
    /// Whether ranks outnumber CPUs: then each step of an algorithm costs a switch of every rank.
    pub oversubscribed: bool,
}

impl Case {
    /// Makes a case of `bytes` bytes and `ranks` ranks that have a CPU each,
    /// with equal blocks and operands whose order does not matter.
    #[must_use]
    pub const fn new(bytes: usize, ranks: usize) -> Self {
        Self { bytes, ranks, equal_blocks: true, commutes: true, oversubscribed: false }
    }
}

/// Members up to which each polls the flags of all, where every rank has a CPU. Flags are read side by side, where
/// additions to a count follow each other: sixteen ranks meet in 0.5 microseconds instead of 1.3.
/// Nobody has measured more ranks.
const FLAGGED_UP_TO: usize = 64;

/// Returns the control variable of an operation, if it has one.
#[inline(always)]
pub(super) const fn variable(operation: Collective) -> Option<VariableId> {
    Some(match operation {
        Collective::Barrier => VariableId::CollBarrier,
        Collective::Bcast => VariableId::CollBcast,
        Collective::Allgather => VariableId::CollAllgather,
        Collective::Alltoall => VariableId::CollAlltoall,
        Collective::Reduce => VariableId::CollReduce,
        Collective::Allreduce => VariableId::CollAllreduce,
        Collective::Gather => VariableId::CollGather,
        Collective::Scatter => VariableId::CollScatter,
        Collective::ReduceScatter => VariableId::CollReduceScatter,
        Collective::Scan | Collective::Exscan => VariableId::CollScan,
        _ => return None,
    })
}

/// Returns how `members` arrive in the team's rounds of an operation; `None` if it goes by messages.
#[inline]
#[must_use]
pub fn arrival(config: &Config, operation: Collective, members: usize) -> Option<RoundArrival> {
    match config.number(variable(operation)?) {
        AUTO if members <= FLAGGED_UP_TO && !config.shape().is_oversubscribed() => Some(RoundArrival::Flags),
        AUTO | COUNTED => Some(RoundArrival::Count),
        FLAGGED => Some(RoundArrival::Flags),
        _ => None,
    }
}

/// Returns the value of an operation's control variable, [`AUTO`] if it has none:
/// which algorithm over messages is asked for.
#[must_use]
pub fn requested(config: &Config, operation: Collective) -> u64 {
    variable(operation).map_or(AUTO, |id| config.number(id))
}

/// A row of an operation's table, judged by a case.
#[derive(Clone, Copy)]
struct Candidate {
    value: u64,
    label: Algorithm,
    /// The algorithm can perform the case.
    serves: bool,
    /// The case lies in the row's ranges.
    preferred: bool,
}

/// Returns the row that is requested, if it can perform the case; else the first that can and is preferred.
fn best(requested: u64, table: &[Candidate]) -> Option<Candidate> {
    let asked_for = table.iter().find(|row| row.value == requested && row.serves);
    asked_for.or_else(|| table.iter().find(|row| row.serves && row.preferred)).copied()
}

/// The row is taken wherever its ranges fit.
const fn always(_: &Case) -> bool {
    true
}

/// The row is taken where ranks outnumber CPUs.
const fn oversubscribed(case: &Case) -> bool {
    case.oversubscribed
}

/// The row is taken between two ranks, and where ranks outnumber CPUs.
const fn pair_or_oversubscribed(case: &Case) -> bool {
    case.ranks == 2 || case.oversubscribed
}

macro_rules! candidates {
    (($case:ident) $($algorithm:ident $value:literal $label:ident ($($bytes:tt)*) ($($ranks:tt)*) $when:ident;)*) => {
        [$(Candidate {
            value: $value,
            label: Algorithm::$label,
            serves: algorithms::$algorithm::serves($case),
            preferred: RangeBounds::contains(&($($bytes)*), &$case.bytes)
                && RangeBounds::contains(&($($ranks)*), &$case.ranks)
                && $when(&$case),
        }),*]
    };
}

/// Returns value and label of the algorithm over messages for an operation,
/// where `requested` is the value of its control variable.
///
/// `None` for an operation without a table, or a case that no row serves.
#[must_use]
pub fn by_messages(operation: Collective, case: &Case, requested: u64) -> Option<(u64, Algorithm)> {
    let best = match operation {
        Collective::Barrier => best(requested, &algorithm_table!(barrier candidates (case))),
        Collective::Bcast => best(requested, &algorithm_table!(bcast candidates (case))),
        Collective::Gather => best(requested, &algorithm_table!(gather candidates (case))),
        Collective::Scatter => best(requested, &algorithm_table!(scatter candidates (case))),
        Collective::Allgather => best(requested, &algorithm_table!(allgather candidates (case))),
        Collective::Alltoall => best(requested, &algorithm_table!(alltoall candidates (case))),
        Collective::Reduce => best(requested, &algorithm_table!(reduce candidates (case))),
        Collective::Allreduce => best(requested, &algorithm_table!(allreduce candidates (case))),
        Collective::ReduceScatter => best(requested, &algorithm_table!(reduce_scatter candidates (case))),
        Collective::Scan => best(requested, &algorithm_table!(scan candidates (case))),
        Collective::Exscan => best(requested, &algorithm_table!(exscan candidates (case))),
        Collective::NeighbourAllgather | Collective::NeighbourAlltoall => None,
    };
    best.map(|row| (row.value, row.label))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn label(operation: Collective, case: Case, requested: u64) -> Option<Algorithm> {
        by_messages(operation, &case, requested).map(|(_, label)| label)
    }

    #[test]
    fn size_and_ranks_decide_where_nothing_is_requested() {
        let bcast = |bytes, ranks| label(Collective::Bcast, Case::new(bytes, ranks), AUTO);
        assert_eq!(bcast(65_535, 3), Some(Algorithm::Tree));
        assert_eq!(bcast(65_536, 3), Some(Algorithm::Chain));
        assert_eq!(bcast(65_536, 2), Some(Algorithm::Tree));
        let allgather = |bytes, ranks| label(Collective::Allgather, Case::new(bytes, ranks), AUTO);
        assert_eq!(allgather(65_536, 3), Some(Algorithm::Bruck));
        assert_eq!(allgather(65_537, 3), Some(Algorithm::Ring));
        assert_eq!(allgather(65_536, 2), Some(Algorithm::Ring));
    }

    #[test]
    fn a_request_wins_where_the_algorithm_can_perform_the_case() {
        assert_eq!(label(Collective::Bcast, Case::new(1 << 20, 8), 5), Some(Algorithm::Tree));
        let unequal = Case { equal_blocks: false, ..Case::new(100, 8) };
        assert_eq!(label(Collective::Allgather, unequal, 4), Some(Algorithm::Ring));
    }

    #[test]
    fn every_table_serves_every_case() {
        let operations = [
            Collective::Barrier,
            Collective::Bcast,
            Collective::Gather,
            Collective::Scatter,
            Collective::Allgather,
            Collective::Alltoall,
            Collective::Reduce,
            Collective::Allreduce,
            Collective::ReduceScatter,
            Collective::Scan,
            Collective::Exscan,
        ];
        for operation in operations {
            for ranks in 1..=9 {
                for bytes in [0, 1, 1 << 16, 1 << 30] {
                    for flags in 0..8 {
                        let (equal_blocks, commutes, oversubscribed) =
                            (flags & 1 > 0, flags & 2 > 0, flags & 4 > 0);
                        let case = Case { bytes, ranks, equal_blocks, commutes, oversubscribed };
                        assert!(label(operation, case, AUTO).is_some(), "{operation:?} {case:?}");
                    }
                }
            }
        }
    }
}
