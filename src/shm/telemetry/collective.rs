//! What a rank says of a collective call: for people who compare it with those of other ranks.

use core::fmt;

/// The root of a collective operation, as its caller gives it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RootAbout {
    /// This rank; in an intercommunicator one of the other group.
    Rank(u32),
    /// The caller, in an intercommunicator (MPI_ROOT).
    Caller,
    /// Another rank of the caller's group, in an intercommunicator (MPI_PROC_NULL).
    Sibling,
}

impl fmt::Display for RootAbout {
    /// Writes what the program gives: "0", "MPI_ROOT".
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Rank(rank) => write!(f, "{rank}"),
            Self::Caller => f.write_str("MPI_ROOT"),
            Self::Sibling => f.write_str("MPI_PROC_NULL"),
        }
    }
}

impl RootAbout {
    const CALLER: u64 = 1 << 32;

    /// A root, or none, as a word.
    pub(crate) fn to_word(root: Option<Self>) -> u64 {
        match root {
            None => 0,
            Some(Self::Rank(rank)) => u64::from(rank) + 1,
            Some(Self::Caller) => Self::CALLER + 1,
            Some(Self::Sibling) => Self::CALLER + 2,
        }
    }

    /// What a word says, which anybody may have written.
    pub(super) fn of_word(word: u64) -> Option<Self> {
        match word.checked_sub(1)? {
            Self::CALLER => Some(Self::Caller),
            more if more == Self::CALLER + 1 => Some(Self::Sibling),
            rank => u32::try_from(rank).ok().map(Self::Rank),
        }
    }
}

/// The arguments of a collective call that the ranks must agree on, as people read them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CollectiveAbout {
    /// The function that began it, if the program waits for its request in another one; else empty.
    pub function: String,
    /// Its number among the collective calls on its communicator, from 1; 0 if it is not known.
    pub number: u64,
    /// The root, if the operation has one.
    pub root: Option<RootAbout>,
    /// How much of what, as "4 × MPI_INT"; empty where nothing moves, or each rank may give another length.
    pub data: String,
    /// The bytes of that, if they are known.
    pub bytes: Option<u64>,
    /// The operation of a reduction; empty for others.
    pub op: String,
}

impl fmt::Display for CollectiveAbout {
    /// Writes the arguments: "root 0, 4 × MPI_INT, MPI_SUM"; nothing where there are none.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let root = self.root.map(|root| format!("root {root}"));
        let parts = [root.as_deref().unwrap_or_default(), &self.data, &self.op];
        for (at, part) in parts.into_iter().filter(|part| !part.is_empty()).enumerate() {
            f.write_str(if at == 0 { "" } else { ", " })?;
            f.write_str(part)?;
        }
        Ok(())
    }
}
