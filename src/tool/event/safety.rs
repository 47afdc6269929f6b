//! What a tool's function must keep to where it is called (MPI 5.0 §15.3.8, callback safety requirements).

use crate::abi;
use core::ffi::c_int;

/// How many levels there are.
pub const LEVELS: usize = 4;

/// A level; each includes what those before it ask.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Safety {
    /// MPI_T_CB_REQUIRE_NONE: nothing; any MPI function may be called.
    None,
    /// MPI_T_CB_REQUIRE_MPI_RESTRICTED: of MPI only MPI_T functions and local enquiries.
    Restricted,
    /// MPI_T_CB_REQUIRE_THREAD_SAFE: and other callbacks, the same among them, may run at the same time.
    ThreadSafe,
    /// MPI_T_CB_REQUIRE_ASYNC_SIGNAL_SAFE: and it may interrupt anything.
    SignalSafe,
}

impl Safety {
    /// From the least that is asked to the most.
    pub const ALL: [Safety; LEVELS] =
        [Safety::None, Safety::Restricted, Safety::ThreadSafe, Safety::SignalSafe];

    /// The level of a C argument.
    #[must_use]
    pub fn from_c(level: c_int) -> Option<Safety> {
        Safety::ALL.into_iter().find(|safety| safety.to_c() == level)
    }

    /// The level as MPI_T_cb_safety.
    #[must_use]
    pub const fn to_c(self) -> c_int {
        match self {
            Safety::None => abi::MPI_T_CB_REQUIRE_NONE,
            Safety::Restricted => abi::MPI_T_CB_REQUIRE_MPI_RESTRICTED,
            Safety::ThreadSafe => abi::MPI_T_CB_REQUIRE_THREAD_SAFE,
            Safety::SignalSafe => abi::MPI_T_CB_REQUIRE_ASYNC_SIGNAL_SAFE,
        }
    }

    /// Place in a table of levels.
    #[inline(always)]
    #[must_use]
    pub const fn index(self) -> usize {
        self as usize
    }
}

#[cfg(all(test, not(perusal_loom)))]
mod tests {
    use super::*;

    #[test]
    fn levels_are_ordered_and_every_other_number_is_none() {
        for pair in Safety::ALL.windows(2) {
            assert!(pair[0] < pair[1] && pair[0].to_c() < pair[1].to_c());
        }
        for level in -2..70 {
            assert_eq!(Safety::from_c(level).is_some(), [0, 3, 15, 63].contains(&level), "{level}");
        }
    }
}
