//! Copy engine by cross-memory attach from both sides: the sender writes into the receiver's memory, while the receiver
//! may read a part, the first, out of the sender's.

use super::Rendezvous;
use super::selection::refuse;
use super::{CopyEngine, emit, is_plain};
use crate::engine::{Body, CopyRoute, Engine, KernelCopy, Part, Ref, Rts, Stage, corrupt, timed};
use crate::error::Result;
use crate::events::Event;
use crate::protocol::Control;
use crate::shm::peer_memory::{read_peer, write_peer};
use crate::shm::telemetry::ProtocolKind;

pub(super) static ENGINE: CopyEngine = CopyEngine { number: 2, takes, begin };

fn takes(engine: &Engine, body: &Body, rts: &Rts) -> bool {
    let policy = &engine.protocol_state().copy;
    let [_, split] = policy.cma_thresholds(engine);
    is_plain(body, rts)
        && (rts.total >= split || policy.halves_in_turn(engine, rts))
        && policy.by_kernel(engine, body) != KernelCopy::Read
        && !policy.prefers_ring(engine, body, rts)
}

fn begin(engine: &Engine, request: Ref, _: &Rts) -> Result<()> {
    // SAFETY: request rule 2: matched, so ours.
    let body = unsafe { request.body() };
    let split = engine.protocol_state().copy.own_part(engine, body);
    body.stage.set(Stage::Split { own: Part::Pending, other: Part::Pending });
    let (world, remote, addr) = (body.world.get(), body.remote.get(), body.addr.get());
    let clear = Control::SplitCts {
        receiver: request.id(),
        addr: addr as u64,
        split: split as u64,
        end: body.wanted.get() as u64,
    };
    engine.answer(world, remote, clear)?;
    emit(request, Event::ReqXferBegin);
    engine.emit_copy(Event::CopyBegin, request, body, ENGINE.number, split);
    let copy = |pid| {
        // SAFETY: our buffer is valid for `split` bytes, and the sender writes only behind them.
        let read = || unsafe { read_peer(pid, body.remote_addr.get(), addr, split) };
        let rates = engine.peers[world as usize].copy_rates(body.contents.get());
        engine.job.reach(world, || rates.time(CopyRoute::Kernel, split, read))
    };
    let read = engine.job.process_of(world).and_then(copy);
    let read = matches!(read, Some(Ok(_)));
    if !read {
        refuse(engine, body.world.get());
    }
    body.moved.set(if read { split } else { 0 });
    engine.emit_copy(Event::CopyEnd, request, body, ENGINE.number, body.moved.get());
    engine.rendezvous().end_part(request, true, read)
}

impl Rendezvous<'_> {
    /// One part is over, ours or the sender's; when both are, the message is here, or the ring must bring it.
    fn end_part(self, request: Ref, ours: bool, copied: bool) -> Result<()> {
        // SAFETY: request rule 2: a receive at this stage belongs to progress, or to the thread that has just begun it.
        let body = unsafe { request.body() };
        let Stage::Split { mut own, mut other } = body.stage.get() else {
            unreachable!("checked by the caller")
        };
        *(if ours { &mut own } else { &mut other }) = if copied { Part::Copied } else { Part::Failed };
        body.stage.set(Stage::Split { own, other });
        match (own, other) {
            (Part::Pending, _) | (_, Part::Pending) => Ok(()),
            (Part::Copied, Part::Copied) => self.finish_copied(request, ProtocolKind::Shared),
            _ => {
                body.moved.set(0);
                self.fall_back(request)
            }
        }
    }

    /// The receiver wants bytes `[split, end)` written behind `addr` in its memory.
    pub(in crate::protocol) fn on_split_cts(
        self,
        from: u32,
        id: u32,
        receiver: u32,
        addr: u64,
        (split, end): (u64, u64),
    ) -> Result<()> {
        let request = self.engine.requests().own_send(from, id, |stage| stage == Stage::AwaitsCts)?;
        // SAFETY: request rule 2: awaits the peer, so it belongs to progress.
        let body = unsafe { request.body() };
        if split > end || end > body.bytes.get() as u64 || !body.is_bytes() {
            return Err(corrupt(
                from,
                format!("a copy of bytes {split}..{end} of a message of {}", body.bytes.get()),
            ));
        }
        emit(request, Event::ReqXferBegin);
        let (at, len) = (split as usize, (end - split) as usize);
        self.engine.emit_copy(Event::CopyBegin, request, body, ENGINE.number, len);
        let (own, peers) = (body.addr.get().wrapping_add(at), addr.wrapping_add(split));
        let copy = |pid| {
            // SAFETY: our buffer has `end` bytes (checked) and stays valid until the request completes;
            // the peer asked for them.
            let write = || unsafe { write_peer(pid, own, peers, len) };
            self.engine.job.reach(from, write)
        };
        let (written, ticks) = timed(len, || self.engine.job.process_of(from).and_then(copy));
        let copied = matches!(written, Some(Ok(_)));
        self.engine.emit_copy(Event::CopyEnd, request, body, ENGINE.number, if copied { len } else { 0 });
        body.stage.set(Stage::AwaitsFin);
        self.engine.answer(from, receiver, Control::SplitDone { copied, ticks })
    }

    /// The sender's part is over.
    pub(in crate::protocol) fn on_split_done(
        self,
        from: u32,
        id: u32,
        copied: bool,
        ticks: u64,
    ) -> Result<()> {
        let pending = |stage| matches!(stage, Stage::Split { other: Part::Pending, .. });
        let request = self.engine.requests().own_receive(from, id, pending)?;
        if copied {
            // SAFETY: request rule 2: a receive at this stage belongs to progress.
            let body = unsafe { request.body() };
            let written = body.wanted.get().saturating_sub(body.moved.get());
            self.engine.peers[from as usize].copy_rates(body.contents.get()).written(written, ticks);
        }
        self.end_part(request, false, copied)
    }
}
