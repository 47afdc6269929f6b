//! Copy engine by cross-memory attach: the receiver copies once, out of the sender's memory, by system calls.

use super::selection::refuse;
use super::{CopyEngine, emit, is_plain};
use crate::engine::{Body, CopyRoute, Engine, Ref, Rts};
use crate::error::Result;
use crate::events::Event;
use crate::shm::peer_memory::read_peer;
use crate::shm::telemetry::ProtocolKind;

pub(super) static ENGINE: CopyEngine = CopyEngine { number: 1, takes, begin };

fn takes(engine: &Engine, body: &Body, rts: &Rts) -> bool {
    // Also where both ranks might copy, but may not.
    let policy = &engine.protocol_state().copy;
    let [read, split] = policy.cma_thresholds(engine);
    is_plain(body, rts) && rts.total >= read.min(split) && !policy.prefers_ring(engine, body, rts)
}

fn begin(engine: &Engine, request: Ref, _: &Rts) -> Result<()> {
    // SAFETY: request rule 2: matched, so ours.
    let body = unsafe { request.body() };
    emit(request, Event::ReqXferBegin);
    engine.emit_copy(Event::CopyBegin, request, body, ENGINE.number, body.wanted.get());
    let copy = |pid| {
        // SAFETY: our buffer is valid for `wanted` bytes until the request completes.
        let read = || unsafe { read_peer(pid, body.remote_addr.get(), body.addr.get(), body.wanted.get()) };
        let (world, wanted) = (body.world.get(), body.wanted.get());
        let rates = engine.peers[world as usize].copy_rates(body.contents.get());
        engine.job.reach(world, || rates.time(CopyRoute::Kernel, wanted, read))
    };
    let read = engine.job.process_of(body.world.get()).and_then(copy);
    let read = matches!(read, Some(Ok(_)));
    engine.emit_copy(Event::CopyEnd, request, body, ENGINE.number, if read { body.wanted.get() } else { 0 });
    if !read {
        // Forbidden, or the sender is dying, or its process is not the one that the roster says:
        // the ring works wherever messages do.
        refuse(engine, body.world.get());
        return engine.rendezvous().fall_back(request);
    }
    engine.rendezvous().finish_copied(request, ProtocolKind::Cma)
}
