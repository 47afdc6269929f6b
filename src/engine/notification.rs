//! Notification modes: how a receiver learns which ring has a record. All ranks of a job agree on one.

use super::Transmit;
use super::tx::TxQueue;
use crate::sync::AsymmetricFence;
use crate::variables::JobShape;
use core::hint::cold_path;

/// How a receiver learns which ring has a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NotificationMode {
    /// By a flag in the doorbell: a receiver polls the rings of a few peers, and the others set their flag; the
    /// light barrier binds the compiler only.
    Flag,
    /// By a flag; both barriers are a processor fence.
    FencedFlag,
    /// By a counter in the doorbell for each peer: where many ranks outnumber the CPUs,
    /// many have sent between two polls.
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

impl Transmit<'_> {
    /// After a commit: notifies the peer unless it polls the ring anyway.
    #[inline(always)]
    pub(crate) fn notify(self, tx: &TxQueue) {
        match self.engine.notification {
            NotificationMode::Flag => self.notify_by_flag(tx, AsymmetricFence::Membarrier),
            NotificationMode::FencedFlag | NotificationMode::Counter => {
                cold_path();
                self.notify_fenced(tx);
            }
        }
    }

    #[inline(never)]
    fn notify_fenced(self, tx: &TxQueue) {
        if tx.outside.is_some() {
            return self.notify_by_flag(tx, AsymmetricFence::Processor);
        }
        match self.engine.notification {
            NotificationMode::Counter => self.notify_by_counter(tx),
            NotificationMode::Flag | NotificationMode::FencedFlag => {
                self.notify_by_flag(tx, self.engine.fences);
            }
        }
    }

    /// Sets our flag in the peer's doorbell if the peer does not poll the ring (ring rule 7).
    #[inline(always)]
    fn notify_by_flag(self, tx: &TxQueue, asymmetric: AsymmetricFence) {
        // Doorbell rule 1, side A: the commit word is stored; `notification` is loaded next.
        asymmetric.light_barrier();
        if tx.producer.must_notify() {
            self.tell(tx);
        }
    }

    /// Publishes how much has been committed, and wakes the peer if it sleeps.
    #[inline(always)]
    fn notify_by_counter(self, tx: &TxQueue) {
        let doorbell = &self.engine.peers[tx.peer as usize].doorbell;
        doorbell.publish_count(self.engine.rank as usize, tx.producer.position());
        // Doorbell rule 6, side A: the count is stored; the sleeper's word is loaded next.
        self.engine.fences.light_barrier();
        if doorbell.is_asleep() {
            self.engine.telemetry().wakes.add(1);
            doorbell.wake();
        }
    }

    /// Notifies a peer that does not poll the ring.
    #[cold]
    #[inline(never)]
    fn tell(self, tx: &TxQueue) {
        let Some(outside) = &tx.outside else { return self.ring(tx.peer) };
        self.engine.telemetry().wakes.add(1);
        outside.tell(&tx.producer);
    }

    /// Rings a peer's doorbell.
    #[cold]
    #[inline(never)]
    pub(crate) fn ring(self, peer: u32) {
        self.engine.telemetry().wakes.add(1);
        // A guest of a job that this process has not met sends nothing that it would wait for.
        if let Ok(Some(outside)) = self.engine.outside(peer) {
            return outside.ring();
        }
        self.engine.peers[peer as usize].doorbell.ring(self.engine.rank as usize);
    }
}
