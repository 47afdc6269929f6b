//! Operations that cannot end well any more, because a rank has died or a communicator has been revoked,
//! end with an error.
//!
//! | what | ends |
//! |---|---|
//! | a receive from the dead, a send to the dead | at once, wherever it is |
//! | any receive on a revoked communicator | at once, unless its message is under way |
//! | a send to the living on a revoked communicator | when its receiver, which is asked, has not taken it ([`super::Cancellation`]) |
//! | the messages of a collective operation some member of which has died | as on a revoked communicator, after a moment in which it may complete |
//!
//! A receive from any source stays: its communicator's other members may still send, and its user decides.

use super::cancel::Recall;
use crate::abi;
use crate::engine::specialization::{AsStarted, Locking};
use crate::engine::{Body, Deferred, Engine, MatchContext, Ref, RequestOperation, Stage, Trouble};
use crate::error::Error;

/// Tags of the messages of collective operations, on the collective context: those of [`crate::coll::Purpose`] and of
/// nonblocking operations. Not those of the service of windows, of leaving the job, of making a communicator of some
/// members, and of partitioned requests.
fn is_collective(tag: i32) -> bool {
    (1..1 << 10).contains(&tag) || (1 << 20..1 << 21).contains(&tag)
}

/// The failures of an engine's operations ([`Engine::failing`]).
#[derive(Clone, Copy)]
pub(crate) struct Failing<'e> {
    pub(super) engine: &'e Engine,
}

impl Failing<'_> {
    /// The error that an operation ends with, if it cannot end well:
    /// one that is about to start, or has not met its message.
    #[inline]
    pub(super) fn of(self, context: &MatchContext, body: &Body) -> Option<Error> {
        if context.trouble() == 0 { None } else { self.error_of(context, body) }
    }

    #[cold]
    fn error_of(self, context: &MatchContext, body: &Body) -> Option<Error> {
        let world = body.world.get();
        if world != u32::MAX && body.peer.get() != abi::MPI_ANY_SOURCE && self.is_dead(world) {
            // A revoked communicator says more.
            let revoked = context.trouble() & Trouble::REVOKED != 0;
            return Some(if revoked { Error::Revoked } else { self.engine.proc_failed(world) });
        }
        self.error_among_living(context, body)
    }

    /// The same, of an operation with a rank that lives.
    #[inline]
    pub(super) fn among_living(self, context: &MatchContext, body: &Body) -> Option<Error> {
        if context.trouble() == 0 { None } else { self.error_among_living(context, body) }
    }

    #[cold]
    fn error_among_living(self, context: &MatchContext, body: &Body) -> Option<Error> {
        let collective = context.id() % 2 == 1;
        if collective && !is_collective(body.tag.get()) {
            return None;
        }
        let among_living = collective && body.peer.get() != abi::MPI_ANY_SOURCE && context.is_given_up();
        if context.trouble() & Trouble::REVOKED == 0 && !among_living {
            return None;
        }
        self.engine.trouble_of(context)
    }

    fn is_dead(self, world: u32) -> bool {
        self.engine.job().survives() && self.engine.job().roster().is_dead(world)
    }

    /// Ends an operation that is in no queue, and of which no record of a living peer is awaited.
    pub(super) fn end(self, request: Ref, error: Error) {
        // SAFETY: request rule 2: it is in no queue, so it belongs to progress, which we run,
        // or to the thread that starts it.
        let body = unsafe { request.body() };
        let announced =
            matches!(body.stage.get(), Stage::AwaitsCts | Stage::RingData { .. } | Stage::AwaitsFin);
        if announced && body.operation.get() == RequestOperation::Send {
            self.engine.protocol_state().copy.settle(self.engine, body.world.get());
        }
        if body.operation.get() != RequestOperation::Send
            && matches!(body.stage.get(), Stage::RingData { .. })
        {
            // Nobody waits for the rest of it any more.
            let left = body.wanted.get().saturating_sub(body.moved.get());
            self.engine.protocol_state().copy.come(&self.engine.config, body, left);
        }
        self.engine.protocol_state().recalled().remove(&request.id());
        body.error.set(Some(Box::new(error)));
        self.engine.requests().finish(request);
    }

    /// Ends everything that cannot end well. The caller runs progress.
    #[cold]
    pub(super) fn end_all(self) {
        self.end_posted();
        self.end_deferred();
        self.end_under_way();
    }

    /// Ends receives that wait for a message.
    fn end_posted(self) {
        let engine = self.engine;
        let mut ended = vec![];
        engine.contexts.for_each(|context| {
            if context.trouble() == 0 {
                return;
            }
            let mut queues = context.queues.lock(engine.shared);
            let posted: Vec<Ref> = queues.posted.iter().collect();
            for request in posted {
                // SAFETY: request rule 2: it is posted, so it belongs to the thread that has the queues.
                let body = unsafe { request.body() };
                let Some(error) = self.error_of(context, body) else { continue };
                if queues.posted.remove(&super::pattern(body.peer.get(), body.tag.get()), request) {
                    engine.delivery().count_posted(context, -1, AsStarted::shared(engine));
                    body.stage.set(Stage::Done);
                    ended.push((request, error));
                }
            }
        });
        ended.into_iter().for_each(|(request, error)| self.end(request, error));
    }

    /// Ends sends that wait for room, and drops all that waits for room to the dead.
    fn end_deferred(self) {
        let engine = self.engine;
        for (world, peer) in engine.peers.iter().enumerate() {
            let dead = self.is_dead(world as u32);
            let mut ended = vec![];
            if let Some(tx) = &mut *peer.tx.lock(engine.shared) {
                tx.dead |= dead;
                let waiting = core::mem::take(&mut tx.deferred);
                for one in waiting {
                    let error = match &one {
                        // SAFETY: request rule 2: deferred, so it belongs to the thread that has the queue to its
                        // receiver; active.
                        Deferred::Send(send) => unsafe {
                            let body = send.body();
                            self.of(body.active_context(), body)
                        },
                        Deferred::Control(..) => None,
                    };
                    match (one, error) {
                        (Deferred::Send(send), Some(error)) => ended.push((send, error)),
                        (Deferred::Control(..), _) if dead => {}
                        (one, _) => tx.deferred.push_back(one),
                    }
                }
                if dead {
                    tx.streams.clear();
                }
            }
            ended.into_iter().for_each(|(request, error)| self.end(request, error));
            if dead {
                self.end_fragments(world);
            }
        }
    }

    /// Ends the receive of a message of which the dead has sent a part.
    fn end_fragments(self, world: usize) {
        let receive = {
            let mut assembly = self.engine.protocol_state().assemblies[world].lock(self.engine.shared);
            assembly.take().and_then(|assembly| assembly.receive())
        };
        if let Some(request) = receive {
            self.end(request, self.engine.proc_failed(world as u32));
        }
    }

    /// Ends what awaits a record of a peer.
    fn end_under_way(self) {
        for request in self.engine.slab.alive_ones() {
            // SAFETY: request rule 2: an active request at one of these stages awaits a record,
            // so it belongs to progress, which we run.
            let body = unsafe { request.body() };
            let stage = body.stage.get();
            let sends = body.operation.get() == RequestOperation::Send;
            let waits = match stage {
                Stage::AwaitsMatch | Stage::AwaitsCts | Stage::AwaitsFin => sends,
                Stage::RingData { .. } => true,
                Stage::Split { .. } | Stage::AwaitsHeapDone => !sends,
                Stage::Idle | Stage::Posted | Stage::Deferred | Stage::Done => false,
            };
            let world = body.world.get();
            if !waits || !request.state().is_active() || request.state().is_complete() || world == u32::MAX {
                continue;
            }
            // SAFETY: the request is active.
            let context = unsafe { body.active_context() };
            if self.is_dead(world) {
                self.end(
                    request,
                    self.error_of(context, body).unwrap_or_else(|| self.engine.proc_failed(world)),
                );
            } else if matches!(stage, Stage::AwaitsMatch | Stage::AwaitsCts)
                && let Some(error) = self.of(context, body)
            {
                match self.engine.cancellation().recall(context, request) {
                    Recall::Taken => self.end(request, error),
                    Recall::Asked => {}
                }
            }
        }
    }

    /// Ends a send that its receiver has given back.
    pub(super) fn end_recalled(self, id: u32) {
        let Some(request) = self.engine.slab.get(id as usize).filter(|request| request.state().is_active())
        else {
            return;
        };
        // SAFETY: request rule 2: active and announced, so it belongs to progress, which we run.
        let body = unsafe { request.body() };
        if matches!(body.stage.get(), Stage::AwaitsMatch | Stage::AwaitsCts) {
            // SAFETY: the request is active.
            let error = self.of(unsafe { body.active_context() }, body);
            self.end(request, error.unwrap_or(Error::Revoked));
        }
    }
}
