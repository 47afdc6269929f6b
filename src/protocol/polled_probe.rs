//! A probe looks into the ring for its message: if the next record is that message, it stays there, and its receive
//! takes it from the ring to its buffer. To put the message aside until then would take one more copy, and memory.
//!
//! This is done where a receive polls before it is posted ([`super::polled_receive`]), and while no tool reads how long
//! the queues are: it would miss the message there.

use super::Kind;
use super::deliver::status_of;
use super::polled_receive::{PolledReceive, is_for, ring_of};
use crate::engine::{Engine, Look, MatchContext, Poller, RingOf};
use crate::request::MessageStatus;
use crate::ring::{Header, Polled};
use crate::shm::telemetry::{Wait, has_readers};
use core::cell::Cell;

/// Which message a probe asks for.
#[derive(Clone, Copy)]
pub(crate) struct Probed<'a> {
    pub context: &'a MatchContext,
    /// The sender's rank in the communicator, and in the job; negative: any.
    pub source: i32,
    pub world: u32,
    pub tag: i32,
}

/// The message of a probe, from its sender or from `ANY`.
#[derive(Clone, Copy)]
struct LookFor<'a, const ANY: bool>(Probed<'a>);

impl<const ANY: bool> Look for LookFor<'_, ANY> {
    type Found = MessageStatus;

    #[inline(always)]
    fn rings(self) -> RingOf {
        ring_of::<ANY>(self.0.world)
    }

    /// Finds the message if it is the next record of the ring, where it stays.
    #[inline(always)]
    fn look(self, engine: &Engine, poller: &mut Poller) -> Polled<MessageStatus> {
        let Probed { context, source, tag, .. } = self.0;
        let seen = Cell::new(None);
        let note = |header: &Header, bytes| {
            let is_whole = [Kind::Eager as u8, Kind::EagerSynchronous as u8].contains(&header.kind);
            if is_whole && is_for::<ANY>(header, context.id(), source as u32, tag) {
                seen.set(Some(status_of(header.source, header.tag, bytes)));
            }
            false
        };
        match poller.take(engine, self.rings(), note, |_| ()) {
            Polled::Empty => Polled::Empty,
            Polled::Unwanted | Polled::Taken(_) => seen.get().map_or(Polled::Unwanted, Polled::Taken),
        }
    }
}

impl PolledReceive<'_> {
    /// Looks for the message of a probe, which is not unexpected yet. Unwanted: the probe must run progress. Empty: it
    /// need not, for there is nothing to be done.
    pub(crate) fn probe(self, probed: Probed<'_>) -> Polled<MessageStatus> {
        if !self.may_probe(probed) {
            return Polled::Unwanted;
        }
        match probed.source {
            ..0 => self.probe_once(LookFor::<true>(probed)),
            _ => self.probe_once(LookFor::<false>(probed)),
        }
    }

    #[inline(always)]
    fn probe_once(self, look: impl Look<Found = MessageStatus>) -> Polled<MessageStatus> {
        let mut poller = self.engine.poller.lock(false);
        match look.look(self.engine, &mut poller) {
            Polled::Empty if poller.others_wait(self.engine, look.rings()) => Polled::Unwanted,
            seen => seen,
        }
    }

    /// Waits a moment for the message of a probe for which [`Self::probe`] has found nothing.
    pub(crate) fn await_probed(
        self,
        probed: Probed<'_>,
        why: &dyn Fn() -> Option<Wait>,
    ) -> Option<MessageStatus> {
        if !self.may_probe(probed) {
            return None;
        }
        match probed.source {
            ..0 => self.look_on::<false, _>(LookFor::<true>(probed), why),
            _ => self.look_on::<false, _>(LookFor::<false>(probed), why),
        }
    }

    /// Whether a probe may leave its message in the ring: its receive would take it there.
    fn may_probe(self, probed: Probed<'_>) -> bool {
        !self.engine.shared
            && !probed.context.observed()
            && !has_readers()
            && !self.wants_progress()
            && probed.context.queues.lock(false).posted.is_empty()
    }
}
