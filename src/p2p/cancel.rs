//! Cancelling (MPI 5.0 §3.8.4): a receive is taken out of the posted queue; a send asks its receiver whether the message
//! is still unmatched.

use crate::engine::Engine;
use crate::engine::message_events::withdrawn_event;
use crate::engine::parts::Deferred;
use crate::engine::tx::name;
use crate::engine::{MatchContext, Payload};
use crate::engine::{Operation, Ref, Stage};
use crate::error::Result;
use crate::protocol::pattern;
use crate::protocol::{Control, Kind};
use crate::ring::Header;

impl Engine {
    /// Marks a request for cancellation. Whether it succeeded is said by its status.
    ///
    /// # Errors
    ///
    /// As [`Engine::wait`]: to cancel a send, the receiver is asked, and its answer awaited.
    pub fn cancel(&self, request: Ref) -> Result<()> {
        // SAFETY: request rule 2: operation, context and peer do not change while the user has the request.
        let (operation, context) = unsafe { (request.body().operation, request.body().context) };
        let Some(context) = context else { return Ok(()) };
        // SAFETY: the request counts as pending on the context.
        let context = unsafe { context.as_ref() };
        match operation {
            Operation::Receive => self.cancel_receive(context, request),
            Operation::Send => return self.cancel_send(context, request),
        }
        Ok(())
    }

    fn cancel_receive(&self, context: &MatchContext, request: Ref) {
        let mut queues = context.queues.lock(self.shared);
        if request.state().is_complete() {
            return;
        }
        // SAFETY: request rule 2: if it is posted, it belongs to who has the queues.
        let body = unsafe { request.body() };
        // Until it is matched, peer and tag are what the user gave.
        if body.stage != Stage::Posted || !queues.posted.remove(&pattern(body.peer, body.tag), request) {
            return;
        }
        self.note_posted(context, -1);
        withdrawn_event(context, request);
        body.status.cancelled = true;
        drop(queues);
        self.finish(request);
    }

    fn cancel_send(&self, context: &MatchContext, request: Ref) -> Result<()> {
        // SAFETY: request rule 2: envelope, length and twin do not change while the user has the request.
        let body = unsafe { request.body() };
        let world = body.world;
        if world == u32::MAX || request.state().is_detached() {
            return Ok(());
        }
        // A large message is known by the request that carries it, a small one by its sender's.
        let announced = body.bytes > self.config.eager_limit();
        let id = if announced && body.twin != 0 { body.twin } else { request.id() };
        if world == self.rank {
            self.cancel_local_send(context, request);
            return Ok(());
        }
        if let Some(taken) = self.take_deferred(world, id)? {
            self.cancelled(request, Some(taken));
            return Ok(());
        }
        let header = Header {
            kind: Kind::Cancel as u8,
            context: context.id(),
            tag: body.tag,
            source: body.source,
            id,
        };
        if self.ask_receiver(world, header)? {
            // Nobody will answer an announced send any more, so what carries it is still there; a small one was gone when
            // its data was in the ring.
            let carrier = if announced { self.requests.get(id as usize) } else { None };
            self.cancelled(request, carrier);
        }
        Ok(())
    }

    /// Asks the receiver for a message; whether it was given back.
    fn ask_receiver(&self, world: u32, header: Header) -> Result<bool> {
        let id = header.id;
        self.asked_to_cancel().insert(id, None);
        self.send_control(world, header, Control::default())?;
        let mut answer = None;
        self.wait_until(
            || None,
            || {
                answer = self.asked_to_cancel().get(&id).copied().flatten();
                answer.is_some()
            },
        )?;
        self.asked_to_cancel().remove(&id);
        Ok(answer == Some(true))
    }

    /// Ends a send that nobody will receive, and the request that carries its data, if that is another one.
    fn cancelled(&self, request: Ref, carrier: Option<Ref>) {
        // SAFETY: request rule 2: the message is in no queue and no ring any more, so its requests are ours.
        unsafe { request.body() }.status.cancelled = true;
        if let Some(carrier) = carrier.filter(|carrier| *carrier != request) {
            self.finish(carrier);
        }
        if request.state().is_active() {
            self.finish(request);
        }
    }

    /// Takes the message of that name out of what waits for room to `world`; gives the request that carries it.
    fn take_deferred(&self, world: u32, id: u32) -> Result<Option<Ref>> {
        self.with_outgoing(world, |out| {
            let found = out.deferred.iter().position(|waiting| match waiting {
                // SAFETY: request rule 2: deferred, so it belongs to who has the way to the peer.
                Deferred::Send(send) => name(send.id(), unsafe { send.body() }) == id,
                Deferred::Control(header, _) => header.kind == Kind::Announce as u8 && header.id == id,
            });
            match out.deferred.remove(found?)? {
                Deferred::Send(send) => Some(send),
                Deferred::Control(..) => self.requests.get(id as usize),
            }
        })
    }

    fn cancel_local_send(&self, context: &MatchContext, request: Ref) {
        let mut queues = context.queues.lock(self.shared);
        let id = request.id();
        // SAFETY: request rule 2: the envelope does not change while the user has the request.
        let source = unsafe { request.body() }.source;
        let found =
            queues.unexpected.remove_where(source, |arrived| arrived.world == self.rank && arrived.id == id);
        let Some((envelope, arrived)) = found else { return };
        self.note_unexpected(context, -1, arrived.held(), self.shared);
        self.removal_event(context, &envelope, &arrived);
        drop(queues);
        let carrier = if let Payload::Local(send) = arrived.payload { Some(send) } else { None };
        self.cancelled(request, carrier);
    }

    /// A sender wants its message back: it can have it while no receive has matched it.
    pub(crate) fn on_cancel(&self, from: u32, header: &Header) -> Result<()> {
        let mut granted = 0;
        if let Some(context) = self.contexts.get(header.context) {
            // SAFETY: contexts go only when nothing is pending; as in `match_posted`.
            let context = unsafe { context.as_ref() };
            let mut queues = context.queues.lock(self.shared);
            let found = queues
                .unexpected
                .remove_where(header.source, |arrived| arrived.world == from && arrived.id == header.id);
            if let Some((envelope, arrived)) = found {
                self.note_unexpected(context, -1, arrived.held(), self.shared);
                self.removal_event(context, &envelope, &arrived);
                granted = 1;
            }
        }
        self.answer(from, Kind::CancelReply, header.id, Control([granted, 0, 0, 0]))
    }

    /// The receiver has answered.
    pub(crate) fn on_cancel_reply(&self, from: u32, id: u32, control: Control) -> Result<()> {
        match self.asked_to_cancel().get_mut(&id) {
            Some(answer) => {
                *answer = Some(control.0[0] == 1);
                Ok(())
            }
            None => Err(crate::protocol::corrupt(
                from,
                format!("an answer to a cancellation of {id} that nobody asked for"),
            )),
        }
    }
}
