//! What an endpoint says of itself, from time to time, for those who look from outside.

use crate::memory::status::{KeptMessage, NAMED, OpenSend, PostedReceive, Status};
use crate::progress::endpoint::Endpoint;
use crate::progress::senders::Incoming;
use crate::protocol::operation::{Message, Receive, Sending};
use crate::protocol::wire;

/// Nanoseconds of the monotonic clock, which all processes share.
pub fn now() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: a place for the time.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut time) };
    time.tv_sec.cast_unsigned() * 1_000_000_000 + time.tv_nsec.cast_unsigned()
}

impl Endpoint {
    /// Writes into the endpoint's memory what it does now.
    #[cold]
    pub(crate) fn say_status(&mut self) {
        let (now, taken, sent) = (now(), self.taken(), self.core.peers.sent());
        let sent = sent.here + sent.elsewhere;
        if self.moved.0 != taken + sent || self.moved.1 == 0 {
            self.moved = (taken + sent, now);
        }
        let core = &self.core;
        let process = |peer: u32| core.peers.all.get(peer as usize).map_or(0, |peer| peer.address.pid);
        let posted = |one: &Receive| PostedReceive {
            from: one.pattern.peer.map(process),
            tag: one.tagged.then_some((one.pattern.tag, one.pattern.ignore)),
        };
        let kept = |one: &Message| KeptMessage {
            from: process(one.peer),
            tag: (one.kind & wire::TAGGED != 0).then_some(one.tag),
            len: one.len as u64,
        };
        let tagged = core.posted.iter().take(NAMED);
        let receives = tagged.chain(core.posted_plain.iter().copied()).filter_map(|at| core.receives.at(at));
        let tagged = core.unexpected.iter().map(|one| &one.1.message).take(NAMED);
        let messages = tagged.chain(core.unexpected_plain.iter().map(|one| &one.message));
        let sends = core.sends.iter().map(|(_, send)| send);
        let send = |one: &Sending| OpenSend { to: process(one.peer), len: one.len as u64 };
        self.segment.status().write(&Status {
            process: self.address.pid,
            descriptor: self.address.fd,
            said: now,
            moved: self.moved.1,
            taken,
            sent,
            receives: (core.posted.len() + core.posted_plain.len()) as u64,
            kept: (core.unexpected.len() + core.unexpected_plain.len()) as u64,
            sends: core.sends.iter().count() as u64,
            arriving: core.arriving.iter().count() as u64,
            full: core.peers.with_waiting.len() as u64,
            first_receives: receives.take(NAMED).map(posted).collect(),
            first_kept: messages.take(NAMED).map(kept).collect(),
            first_sends: sends.take(NAMED).map(send).collect(),
        });
    }

    /// Records that were taken out of the rings, those that senders have left included.
    fn taken(&self) -> u64 {
        self.incoming.iter().map(Incoming::taken).fold(self.taken_before, u64::wrapping_add)
    }
}
