//! A receive is taken out of its queue; a send is, too, if it still waits at its sender, or its receiver is asked
//! whether the message is still unmatched.

use super::deliver::pattern;
use super::eager::{cancel_id, header_of};
use super::record::{Control, Kind};
use super::selection::is_one_record;
use crate::engine::message_events::cancelled_event;
use crate::engine::{
    Deferred, Engine, MatchContext, Payload, Queues, Ref, Stage, UnexpectedMessage, corrupt,
};
use crate::error::Result;
use crate::matching::Envelope;
use crate::ring::Header;

/// What became of a send that was recalled ([`Cancellation::recall`]).
pub(super) enum Recall {
    /// It was still here, and is the caller's to end.
    Taken,
    /// Its receiver has been asked; or, of a message of this rank to itself, it has been matched.
    Asked,
}

/// The cancelling of messages and receives of an engine ([`Engine::cancellation`]).
#[derive(Clone, Copy)]
pub(crate) struct Cancellation<'e> {
    pub(super) engine: &'e Engine,
}

impl Cancellation<'_> {
    /// Takes a receive out of the posted receive queue, if it is there.
    pub(crate) fn cancel_receive(self, context: &MatchContext, request: Ref) {
        let mut queues = context.queues.lock(self.engine.shared);
        if request.state().is_complete() {
            return;
        }
        // SAFETY: request rule 2: if it is posted, it belongs to the thread that has the queues.
        let body = unsafe { request.body() };
        // Until it is matched, peer and tag are what the user gave.
        if !body.stage.is(Stage::Posted)
            || !queues.posted.remove(&pattern(body.peer.get(), body.tag.get()), request)
        {
            return;
        }
        self.engine.delivery().count_posted(context, -1, self.engine.shared);
        cancelled_event(context, request);
        body.cancelled();
        drop(queues);
        self.engine.requests().finish(request);
    }

    /// Asks for a send back, wherever it is.
    ///
    /// # Errors
    ///
    /// As [`Engine::wait`]: the receiver's answer is awaited.
    pub(crate) fn cancel_send(self, context: &MatchContext, request: Ref) -> Result<()> {
        // SAFETY: request rule 2: envelope, length and counterpart do not change while the user has the request.
        let body = unsafe { request.body() };
        let world = body.world.get();
        if world == u32::MAX || request.state().is_detached() {
            return Ok(());
        }
        // A large message is known by the request that carries it, a small one by its sender's.
        let announced = !is_one_record(self.engine, body, body.mode.get());
        let id = if announced && body.counterpart.get() != 0 { body.counterpart.get() } else { request.id() };
        if world == self.engine.rank {
            self.cancel_local_send(context, request);
            return Ok(());
        }
        if let Some(taken) = self.take_deferred(world, id)? {
            self.cancelled(request, Some(taken));
            return Ok(());
        }
        let header = header_of(Kind::Cancel, context, body, id);
        if self.ask_receiver(world, header)? {
            // Nobody will answer an announced send any more, so what carries it is still there; a small one was gone
            // when its data was in the ring.
            let carrier = if announced { self.engine.slab.get(id as usize) } else { None };
            // SAFETY: request rule 2: nobody will answer it any more, so it is ours.
            if carrier.is_some_and(|carrier| unsafe { carrier.body() }.stage.is(Stage::AwaitsCts)) {
                self.engine.protocol_state().copy.settle(self.engine, world);
            }
            self.cancelled(request, carrier);
        }
        Ok(())
    }

    /// Asks the receiver for a message; whether it was given back.
    fn ask_receiver(self, world: u32, header: Header) -> Result<bool> {
        let id = header.id;
        self.engine.protocol_state().cancelling().insert(id, None);
        self.engine.transmit().send_control(world, header, Control::Cancel.write().1)?;
        let mut answer = None;
        self.engine.progress().wait_until(
            || None,
            || {
                answer = self.engine.protocol_state().cancelling().get(&id).copied().flatten();
                // The dead do not answer.
                answer.is_some() || self.engine.job().survives() && self.engine.job().roster().is_dead(world)
            },
        )?;
        self.engine.protocol_state().cancelling().remove(&id);
        Ok(answer == Some(true))
    }

    /// Ends a send that nobody will receive, and the request that carries its data, if that is another one.
    fn cancelled(self, request: Ref, carrier: Option<Ref>) {
        // SAFETY: request rule 2: the message is in no queue and no ring any more, so its requests are ours.
        unsafe { request.body() }.cancelled();
        if let Some(carrier) = carrier.filter(|carrier| *carrier != request) {
            self.engine.requests().finish(carrier);
        }
        if request.state().is_active() {
            self.engine.requests().finish(request);
        }
    }

    /// Has a send of a communicator in trouble back, which awaits its match or the receiver's answer; does not wait.
    pub(super) fn recall(self, context: &MatchContext, request: Ref) -> Recall {
        // SAFETY: request rule 2: it awaits a record, so it belongs to progress, which we run.
        let body = unsafe { request.body() };
        let (world, id) = (body.world.get(), cancel_id(request.id(), body));
        let announced = body.stage.is(Stage::AwaitsCts);
        let id = if announced { request.id() } else { id };
        let taken = if world == self.engine.rank {
            self.take_local(context, request).is_some()
        } else {
            matches!(self.take_deferred(world, id), Ok(Some(_)))
        };
        if taken {
            // Settled.
            body.stage.set(Stage::Done);
            return Recall::Taken;
        }
        let state = self.engine.protocol_state();
        if world != self.engine.rank && !state.cancelling().contains_key(&id) && state.recalled().insert(id) {
            let header = header_of(Kind::Cancel, context, body, id);
            if self.engine.transmit().send_control(world, header, Control::Cancel.write().1).is_err() {
                state.recalled().remove(&id);
            }
        }
        Recall::Asked
    }

    /// Takes the youngest message of that name out of what waits for room to `world`; gives the request that carries
    /// it. Older ones may have it, too: a buffered send is over for the program while its data waits, and its request's
    /// number is used again.
    fn take_deferred(self, world: u32, id: u32) -> Result<Option<Ref>> {
        self.engine.transmit().with(world, |tx| {
            let found = tx.deferred.iter().rposition(|waiting| match waiting {
                // SAFETY: request rule 2: deferred, so it belongs to the thread that has the queue to its receiver.
                Deferred::Send(send) => cancel_id(send.id(), unsafe { send.body() }) == id,
                Deferred::Control(header, _) => header.kind == Kind::Rts as u8 && header.id == id,
            });
            match tx.deferred.remove(found?)? {
                Deferred::Send(send) => Some(send),
                Deferred::Control(..) => {
                    self.engine.protocol_state().copy.settle(self.engine, world);
                    self.engine.slab.get(id as usize)
                }
            }
        })
    }

    fn cancel_local_send(self, context: &MatchContext, request: Ref) {
        if let Some(carrier) = self.take_local(context, request) {
            self.cancelled(request, carrier);
        }
    }

    /// Takes a message of this rank to itself out of the unexpected queue, if it is there;
    /// gives the request that carries it, if one does.
    fn take_local(self, context: &MatchContext, request: Ref) -> Option<Option<Ref>> {
        let mut queues = context.queues.lock(self.engine.shared);
        let id = request.id();
        // SAFETY: request rule 2: the envelope does not change while the user has the request.
        let body = unsafe { request.body() };
        let (own, tag) = (self.engine.rank, body.tag.get());
        let found = take_back(&mut queues, body.source.get(), (own, id, tag));
        let (envelope, arrived) = found?;
        self.engine.delivery().count_unexpected(context, -1, arrived.held(), self.engine.shared);
        self.engine.withdrawal_event(context, &envelope, &arrived);
        drop(queues);
        Some(if let Payload::Local(send) = arrived.payload { Some(send) } else { None })
    }

    /// A sender wants its message back: it can have it while no receive has matched it.
    pub(super) fn on_cancel(self, from: u32, header: &Header) -> Result<()> {
        let mut granted = false;
        if let Some(context) = self.engine.contexts.get(header.context) {
            // SAFETY: contexts go only when nothing is pending; as `context_of` says.
            let context = unsafe { context.as_ref() };
            let mut queues = context.queues.lock(self.engine.shared);
            let found = take_back(&mut queues, header.source, (from, header.id, header.tag));
            if let Some((envelope, arrived)) = found {
                self.engine.delivery().count_unexpected(context, -1, arrived.held(), self.engine.shared);
                self.engine.withdrawal_event(context, &envelope, &arrived);
                granted = true;
            }
        }
        self.engine.answer(from, header.id, Control::CancelReply { granted })
    }

    /// The receiver has answered.
    pub(super) fn on_cancel_reply(self, from: u32, id: u32, granted: bool) -> Result<()> {
        if self.engine.protocol_state().recalled().remove(&id) {
            if granted {
                self.engine.failing().end_recalled(id);
            }
            return Ok(());
        }
        match self.engine.protocol_state().cancelling().get_mut(&id) {
            Some(answer) => *answer = Some(granted),
            None => {
                return Err(corrupt(
                    from,
                    format!("an answer to a cancellation of {id} that nobody asked for"),
                ));
            }
        }
        if self.engine.shared {
            // Another thread may wait for it.
            self.engine.progress().notify_any_event();
        }
        Ok(())
    }
}

/// Takes a message out of the unexpected queue: the youngest that process `world` has sent so under that id. An older
/// one may have had the id before, of a persistent send or of a request that was over when its data was in the ring; it
/// is received first, so that no other than the youngest can be the one that is wanted back.
fn take_back(
    queues: &mut Queues,
    source: u32,
    (world, id, tag): (u32, u32, i32),
) -> Option<(Envelope, UnexpectedMessage)> {
    queues.unexpected.remove_youngest(source, |envelope, arrived| {
        envelope.tag == tag && arrived.world == world && arrived.id == id
    })
}
