//! The team of a communicator's nonblocking collectives, which have it one after the other, in the order in which they were begun.

use super::mapped::MappedSegment;
use super::membership::Membership;
use super::rounds::Awaited;
use crate::sync::{AsymmetricFence, Mutex, MutexGuard};
use std::sync::PoisonError;

/// The team of a communicator's nonblocking collectives, apart from that of its blocking ones, which may overtake them.
#[derive(Default)]
pub struct BackgroundTeam(Mutex<Queue>);

#[derive(Default)]
struct Queue {
    /// Operations that have asked for the team.
    begun: u32,
    /// Operations that have given it back.
    ended: u32,
    /// What this rank keeps of the team, unless an operation has it.
    membership: Membership,
    /// What the operation that has the team waits for.
    awaited: Option<Awaited<MappedSegment>>,
}

impl BackgroundTeam {
    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the caller's number among the operations that ask for the team.
    pub fn ticket(&self) -> u32 {
        let mut queue = self.queue();
        let ticket = queue.begun;
        queue.begun = ticket.wrapping_add(1);
        ticket
    }

    /// Takes the team, if it is the turn of `ticket`.
    pub fn take(&self, ticket: u32) -> Option<Membership> {
        let mut queue = self.queue();
        (queue.ended == ticket).then(|| core::mem::take(&mut queue.membership))
    }

    /// Gives the team back: it is the turn of the next ticket.
    pub fn give_back(&self, membership: Membership) {
        let mut queue = self.queue();
        queue.ended = queue.ended.wrapping_add(1);
        queue.membership = membership;
        queue.awaited = None;
    }

    /// Says what the operation that has the team waits for.
    pub fn wait_for(&self, awaited: Option<Awaited<MappedSegment>>) {
        self.queue().awaited = awaited;
    }

    /// Says that the rank is about to sleep, and returns whether the operation that has the team can go on.
    pub fn can_go_on(&self, fences: AsymmetricFence) -> bool {
        self.queue().awaited.as_ref().is_some_and(|awaited| awaited.register(fences))
    }
}
