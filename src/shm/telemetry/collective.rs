//! What a rank says of a collective call: for people who compare it with those of other ranks.

use core::fmt;

/// The arguments of a collective call that the ranks must agree on, as people read them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CollectiveAbout {
    /// The function that began it, if the program waits for its request in another one; else empty.
    pub function: String,
    /// Its number among the collective calls on its communicator, from 1; 0 if it is not known.
    pub number: u64,
    /// The root, if the operation has one.
    pub root: Option<u32>,
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
