//! What an operation is called in the slots of its members, so that they notice when they are not in the same one.

use crate::error::Error;
use crate::events::Collective;
use core::fmt;

/// An operation as slots name it, so that members notice when they are not in the same one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OperationKey(pub(super) u64);

/// In an outcome: the operands could not be reduced.
pub(super) const FAILED: OperationKey = OperationKey(u64::MAX);

impl OperationKey {
    /// Makes the key of an operation from or to `root` (0 where there is none), of `bytes` bytes.
    #[must_use]
    pub const fn new(operation: Collective, root: usize, bytes: usize) -> Self {
        // Not 0: that is the value of a slot that no member has written.
        Self::numbered(operation as u8 + 1, root, bytes)
    }

    pub(super) const fn numbered(kind: u8, root: usize, bytes: usize) -> Self {
        Self((kind as u64) << 56 | (root as u64 & 0xffff) << 40 | bytes as u64 & ((1 << 40) - 1))
    }
}

impl OperationKey {
    /// The number of the operation and its bytes, whichever its root is.
    pub(super) const fn without_root(self) -> u64 {
        self.0 & !(0xffff << 40)
    }

    /// The operation's number, its root if it has one, and its bytes.
    fn parts(self) -> (usize, Option<u32>, u64) {
        let (kind, root, bytes) = ((self.0 >> 56) as usize, self.0 >> 40 & 0xffff, self.0 & ((1 << 40) - 1));
        let rooted = [Collective::Bcast, Collective::Gather, Collective::Scatter, Collective::Reduce];
        let has_root = rooted.iter().any(|operation| *operation as usize + 1 == kind);
        (kind, has_root.then_some(root as u32), bytes)
    }
}

impl fmt::Display for OperationKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (kind, root, bytes) = self.parts();
        let Some(name) = kind.checked_sub(1).and_then(|at| Collective::NAMES.get(at)) else {
            // A member that gives no data writes no slot. The members of a longer one agree first how its data move.
            let what = if kind == 0 {
                "one to which it gives no data (a barrier, or data of another root)"
            } else {
                "one of more bytes"
            };
            return f.write_str(what);
        };
        write!(f, "{} of {bytes} bytes", name.to_string_lossy())?;
        root.map_or(Ok(()), |root| write!(f, ", root {root}"))
    }
}

#[cold]
pub(super) fn disagreement(from: usize, theirs: OperationKey, own: OperationKey) -> Error {
    Error::Other(format!(
        "the ranks are not in the same collective operation: rank {from} is in {theirs}, this rank in {own}; the order of calls, counts, \
         types or roots differ between ranks"
    ))
}

#[cfg(all(test, not(perusal_loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_disagreement_names_both_operations() {
        let own = OperationKey::new(Collective::Bcast, 1, 40);
        for (theirs, said) in [
            (OperationKey::new(Collective::Bcast, 0, 40), "rank 2 is in bcast of 40 bytes, root 0"),
            (OperationKey::new(Collective::Allreduce, 0, 8), "rank 2 is in allreduce of 8 bytes,"),
            (OperationKey::numbered(0xff, 0, 1), "rank 2 is in one of more bytes,"),
            (
                OperationKey(0),
                "rank 2 is in one to which it gives no data (a barrier, or data of another root), this",
            ),
        ] {
            let error = disagreement(2, theirs, own).to_string();
            assert!(
                error.contains(said) && error.contains("this rank in bcast of 40 bytes, root 1;"),
                "{error}"
            );
        }
    }
}
