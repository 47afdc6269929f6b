//! The team of a communicator's nonblocking collectives, which have it one after the other,
//! in the order in which they were begun.

use super::mapped::MappedSegment;
use super::membership::Membership;
use super::rounds::Awaited;
use crate::sync::{AsymmetricFence, ConditionalLock};

/// The team of a communicator's nonblocking collectives, apart from that of its blocking ones, which may overtake them.
/// Its functions lock it if `shared` (several threads may be inside the engine).
#[derive(Default)]
pub struct BackgroundTeam(ConditionalLock<Queue>);

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
    /// Asks for the team: takes it if nobody has it or has asked for it before.
    ///
    /// # Errors
    /// The caller's ticket, with which it takes the team when its turn has come.
    pub fn ask(&self, shared: bool) -> Result<Membership, u32> {
        let mut queue = self.0.lock(shared);
        let ticket = queue.begun;
        queue.begun = ticket.wrapping_add(1);
        if queue.ended == ticket { Ok(core::mem::take(&mut queue.membership)) } else { Err(ticket) }
    }

    /// Takes the team if nobody has it or has asked for it before; else asks for nothing.
    pub fn take_at_once(&self, shared: bool) -> Option<Membership> {
        let mut queue = self.0.lock(shared);
        if queue.begun != queue.ended {
            return None;
        }
        queue.begun = queue.begun.wrapping_add(1);
        Some(core::mem::take(&mut queue.membership))
    }

    /// Takes the team, if it is the turn of `ticket`.
    pub fn take(&self, shared: bool, ticket: u32) -> Option<Membership> {
        let mut queue = self.0.lock(shared);
        (queue.ended == ticket).then(|| core::mem::take(&mut queue.membership))
    }

    /// Gives the team back: it is the turn of the next ticket.
    pub fn give_back(&self, shared: bool, membership: Membership) {
        let mut queue = self.0.lock(shared);
        queue.ended = queue.ended.wrapping_add(1);
        queue.membership = membership;
        queue.awaited = None;
    }

    /// Says what the operation that has the team waits for.
    pub fn wait_for(&self, shared: bool, awaited: Awaited<MappedSegment>) {
        self.0.lock(shared).awaited = Some(awaited);
    }

    /// Says that the rank is about to sleep, and returns whether the operation that has the team can go on.
    pub fn can_go_on(&self, shared: bool, fences: AsymmetricFence) -> bool {
        self.0.lock(shared).awaited.as_ref().is_some_and(|awaited| awaited.register(fences))
    }

    /// Returns the members for which the operation that has the team may be waiting: for a report.
    pub fn absent(&self, shared: bool) -> Vec<usize> {
        self.0.lock(shared).awaited.as_ref().map(Awaited::absent).unwrap_or_default()
    }
}
