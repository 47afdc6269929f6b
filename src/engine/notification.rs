//! Notification modes: how a receiver learns which ring has a record. All ranks of a job agree on one.

use crate::sync::AsymmetricFence;
use crate::variables::JobShape;

/// How a receiver learns which ring has a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NotificationMode {
    /// By a flag in the doorbell: a receiver polls the rings of a few peers, and the others set their flag; the light barrier binds the compiler only.
    Flag,
    /// By a flag; both barriers are a processor fence.
    FencedFlag,
    /// By a counter in the doorbell for each peer: where many ranks outnumber the CPUs, many have sent between two polls.
    Counter,
}

impl NotificationMode {
    /// The mode of a job of that `shape`.
    pub fn of(shape: &JobShape, fence: AsymmetricFence) -> Self {
        match fence {
            _ if shape.uses_counters() => Self::Counter,
            AsymmetricFence::Membarrier => Self::Flag,
            AsymmetricFence::Processor => Self::FencedFlag,
        }
    }
}
