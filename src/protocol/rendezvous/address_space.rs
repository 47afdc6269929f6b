//! Copy engine between ranks that are threads of one process: the receiver copies once, from the sender's buffer.

use super::{CopyEngine, emit, is_plain};
use crate::engine::{Body, Engine, Ref, Rts};
use crate::error::Result;
use crate::events::Event;
use crate::shm::telemetry::ProtocolKind;
use crate::variables::CopyChoice;

pub(super) static ENGINE: CopyEngine = CopyEngine { number: 3, takes, begin };

fn takes(engine: &Engine, body: &Body, rts: &Rts) -> bool {
    is_plain(body, rts)
        && engine.job.are_threads()
        && matches!(engine.config.copy(), CopyChoice::Auto | CopyChoice::Direct)
}

fn begin(engine: &Engine, request: Ref, _: &Rts) -> Result<()> {
    // SAFETY: request rule 2: matched, so ours.
    let body = unsafe { request.body() };
    emit(request, Event::ReqXferBegin);
    engine.emit_copy(Event::CopyBegin, request, body, ENGINE.number, body.wanted.get());
    let copied = engine.job.reach(body.world.get(), || {
        // SAFETY: the ranks are threads of one process; the sender keeps its buffer until FIN or until it has withdrawn
        // it, ours is valid until the request completes, and has room for `wanted` bytes.
        // `copy`: the same buffer may be at both ends.
        unsafe { core::ptr::copy(body.remote_addr.get() as *const u8, body.addr.get(), body.wanted.get()) };
    });
    let moved = if copied.is_some() { body.wanted.get() } else { 0 };
    engine.emit_copy(Event::CopyEnd, request, body, ENGINE.number, moved);
    match copied {
        Some(()) => engine.rendezvous().finish_copied(request, ProtocolKind::Direct),
        None => engine.rendezvous().fall_back(request),
    }
}
