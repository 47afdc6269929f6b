//! Long messages that sender and receiver copy together: the receiver reads parts out of the sender's memory, from the
//! beginning on, while the sender writes others into the receiver's, from the end on, until they meet ([`Claims`]).
//! Neither waits for the other to begin: a sender that makes no progress leaves all to the receiver.
//!
//! When the receiver's own call is over every part is somebody's. What is the sender's then, the sender is copying at
//! this moment or has copied; it says so (FILLED), and the receive completes. A copy that the kernel refuses, to
//! either, has the bytes come through the ring.

use crate::api::FI_EIO;
use crate::peers::{Outgoing, Ring};
use crate::protocol::core::{Core, EAGER_LIMIT};
use crate::protocol::operation::{Part, There};
use crate::protocol::wire;
use perusal::internals::arch::streams;
use perusal::internals::engine::{Contents, CopyRoute, KernelCopy};
use perusal::internals::protocol::rendezvous::{Claims, Split};
use perusal::internals::ring::{Header, Storage};

/// Bytes from which a message is copied by both.
const SHARE_FROM: usize = 64 << 10;
/// Bytes of the smallest part that is worth a system call, and how many parts there are at most.
const LEAST: usize = 16 << 10;
const PARTS: usize = 8;

/// How a message is cut: both sides compute it from the bytes that are wanted.
fn split(wanted: usize) -> Split {
    Split::into_units(wanted, LEAST.max(wanted / PARTS))
}

impl Core {
    /// Whether a message of `wanted` bytes from this peer, in one piece at both ends, is copied by both.
    pub(crate) fn is_shared(&self, peer: u32, wanted: usize) -> bool {
        let entry = &self.peers.all[peer as usize];
        // Whoever sends long messages itself has peers that copy those meanwhile: each copies what it receives.
        let helps = self.sends.is_empty() && entry.incoming.is_some() && !entry.no_parts;
        self.shares && wanted >= SHARE_FROM && helps
    }

    /// Whether a message of `wanted` bytes from this peer comes through the ring, though the kernel could copy it:
    /// because two copies have taken less time so far than one by the kernel (decision 49). One of many goes the other
    /// way. What is short is announced only if its sender waits for its receipt, and need make no progress then.
    pub(crate) fn goes_by_ring(&self, peer: u32, wanted: usize) -> bool {
        if !self.shares || wanted <= EAGER_LIMIT || !streams() {
            return false;
        }
        let rates = &self.peers.all[peer as usize].rates;
        let by_kernel = if self.is_shared(peer, wanted) { KernelCopy::Halves } else { KernelCopy::Read };
        let route = rates.choose((wanted, Contents::Unknown), by_kernel, self.sends.len() as u64);
        rates.count();
        route == CopyRoute::Ring
    }

    /// Copies a message to `to`, a receive's buffer, together with the sender.
    ///
    /// # Safety
    ///
    /// `to` has room for the bytes that the receive wants, and nobody else touches them until it completes.
    pub(crate) unsafe fn copy_with_sender(&mut self, number: u64, there: There, to: *mut u8) {
        let Some(one) = self.arriving.get(number) else { return };
        let (peer, send, wanted) = (one.peer, one.send, one.wanted);
        let Some(ring) = self.peers.all[peer as usize].incoming else { return self.ask(number) };
        let (claims, split) = (Claims::over(&ring.control().protocol.claims), split(wanted));
        let (turn, first) = claims.open(split);
        let words = [number, to.expose_provenance() as u64, wanted as u64];
        let header = Header { tag: turn.cast_signed(), ..wire::control(wire::SHARE, send) };
        self.peers.control(peer, header, words);
        let entry = &mut self.peers.all[peer as usize];
        let (mut own, mut copied, mut part) = (0, true, Some(first));
        while let Some(range) = part {
            own += range.len();
            // SAFETY: within the receive's buffer, which is ours until it completes and has room for what is wanted, as
            // the caller promises; the part is nobody else's.
            copied = copied
                && there
                    .at
                    .checked_add(range.start as u64)
                    .is_some_and(|from| unsafe { entry.copy(from, to.add(range.start), range.len()) });
            // Also if nothing is copied any more: no part is left for a sender that comes later.
            part = claims.take_low(turn, split).unwrap_or_else(|_| {
                copied = false;
                None
            });
        }
        copied = copied && entry.still_announces(there.cancels);
        let missing = wanted.saturating_sub(own);
        if let Some(one) = self.arriving.get(number) {
            one.part = Some(Part { missing, failed: !copied });
        }
        match (missing, copied) {
            (0, true) => self.arrived(number, 0),
            (0, false) => self.ask(number),
            _ => {}
        }
    }

    /// The receiver of a message wants it copied by both: copies what it takes.
    pub(crate) fn copy_own_part(&mut self, peer: u32, header: &Header, payload: &[u8]) {
        let [number, to, wanted] = [0, 1, 2].map(|at| wire::word(payload, at));
        let awaited =
            |send: &&mut crate::protocol::operation::Sending| send.peer == peer && send.wanted == usize::MAX;
        let Some(send) = self.sends.get(wire::number(header)).filter(awaited) else { return };
        let (from, len) = send.spans.single();
        let wanted = usize::try_from(wanted).unwrap_or(usize::MAX);
        // A peer of this version asks for no more than there is.
        if wanted > len || self.peers.outgoing(peer).is_err() {
            return;
        }
        let entry = &mut self.peers.all[peer as usize];
        let Some(ring) = entry.outgoing.as_ref().and_then(Outgoing::ring).map(Ring::storage) else { return };
        let (claims, split, turn) =
            (Claims::over(&ring.control().protocol.claims), split(wanted), header.tag.cast_unsigned());
        let (mut own, mut copied) = (0, true);
        while copied && let Ok(Some(range)) = claims.take_high(turn, split) {
            own += range.len();
            // SAFETY: within the send's buffer, which is valid until the send completes;
            // the peer has asked for the bytes there.
            copied = unsafe {
                entry.fill(from.add(range.start), to.wrapping_add(range.start as u64), range.len())
            };
        }
        if own > 0 {
            let error = if copied { 0 } else { FI_EIO };
            self.peers.control(peer, wire::control(wire::FILLED, number), [own as u64, error as u64, 0]);
        }
    }

    /// The sender of a message has copied its part.
    pub(crate) fn filled(&mut self, peer: u32, header: &Header, payload: &[u8]) {
        let number = wire::number(header);
        let Some(one) = self.arriving.get(number).filter(|one| one.peer == peer) else { return };
        let Some(part) = one.part else { return };
        let refused = wire::error(&payload[8.min(payload.len())..]) != 0;
        self.peers.all[peer as usize].no_parts |= refused;
        if part.failed || refused || wire::word(payload, 0) != part.missing as u64 {
            self.ask(number);
        } else {
            self.arrived(number, 0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::FI_ADDR_NOTAVAIL;
    use crate::memory::segment::Segment;
    use crate::names::address::Address;
    use crate::names::service::Service;
    use crate::operands::spans::Spans;
    use crate::protocol::direct::Direct;
    use crate::protocol::operation::{Arriving, Message, Sending, Taken};
    use crate::protocol::queue::Queue;
    use crate::protocol::trace::Traced;
    use std::rc::Rc;

    const WANTED: usize = 1 << 20;

    /// A receive whose sender copies `missing` bytes, of an endpoint whose peer nobody can reach.
    fn waiting(missing: usize, failed: bool) -> (Core, u32, u64) {
        let mut core = Core::new(Address { pid: std::process::id(), fd: 0, nonce: 1 });
        core.reports.receive_queue = Some(Rc::new(Queue::default()));
        let peer = core.peers.number(Address { pid: 0, fd: 0, nonce: 2 });
        let message = Message { peer, kind: wire::RTS, tag: 0, data: 0, len: WANTED };
        let receive = Taken { context: std::ptr::null_mut(), completion: true, several: None, trace: 0 };
        let part = Some(Part { missing, failed });
        // SAFETY: nothing is written there: no bytes arrive in these tests.
        let spans = unsafe { Spans::one(std::ptr::null(), WANTED) };
        let arriving = Arriving { part, ..Arriving::new(message, spans, WANTED, receive) };
        let number = core.arriving.insert(arriving);
        (core, peer, number)
    }

    fn say(core: &mut Core, peer: u32, number: u64, words: [u64; 2]) {
        let mut payload = [0; 16];
        wire::words(words, &mut payload);
        core.take(peer, &wire::control(wire::FILLED, number), &payload);
    }

    fn completions(core: &Core) -> Vec<(i32, u64)> {
        let queue = core.reports.receive_queue.as_ref().expect("a queue").done.borrow();
        queue.iter().map(|one| (one.error, one.source)).collect()
    }

    #[test]
    fn a_receive_completes_when_the_sender_has_copied_what_was_missing() {
        let (mut core, peer, number) = waiting(4096, false);
        let stranger = core.peers.number(Address { pid: 0, fd: 0, nonce: 3 });
        say(&mut core, stranger, number, [4096, 0]);
        assert!(core.awaits_part() && completions(&core).is_empty());
        say(&mut core, peer, number, [4096, 0]);
        assert!(!core.awaits_part());
        assert_eq!(completions(&core), [(0, FI_ADDR_NOTAVAIL)]);
    }

    #[test]
    fn a_copy_that_is_refused_to_either_side_has_the_bytes_come_through_the_ring() {
        for (failed, bytes, error) in [(true, 4096, 0), (false, 4096, FI_EIO as u64), (false, 8192, 0)] {
            let (mut core, peer, number) = waiting(4096, failed);
            say(&mut core, peer, number, [bytes, error]);
            let one = core.arriving.get(number).expect("it still arrives");
            assert!(one.part.is_none() && one.filled == 0);
            assert!(completions(&core).is_empty());
            assert_eq!(core.peers.all[peer as usize].no_parts, error != 0);
        }
    }

    #[test]
    fn a_part_of_a_peer_that_is_dead_is_not_waited_for() {
        let (mut core, peer, _) = waiting(4096, false);
        core.peers.all[peer as usize].dead = true;
        core.end_with(peer);
        assert!(!core.awaits_part());
        assert_eq!(completions(&core), [(crate::api::FI_ESHUTDOWN, FI_ADDR_NOTAVAIL)]);
    }

    #[test]
    fn who_sends_long_messages_itself_copies_alone() {
        let (mut core, peer, _) = waiting(0, false);
        let (segment, _) = Segment::new(&Service::default()).expect("memory");
        core.peers.all[peer as usize].incoming = Some(segment.ring(0));
        assert!(core.is_shared(peer, SHARE_FROM) && !core.is_shared(peer, SHARE_FROM - 1));
        let number = core.sends.insert(Sending {
            peer,
            spans: Spans::none(),
            len: 0,
            sent: 0,
            wanted: usize::MAX,
            number: 0,
            confirmed: false,
            context: std::ptr::null_mut(),
            flags: 0,
            completion: true,
            own: None,
            regions: Vec::new(),
            direct: Direct::default(),
            traced: Traced::default(),
        });
        assert!(!core.is_shared(peer, SHARE_FROM));
        core.sends.remove(number);
        assert!(core.is_shared(peer, SHARE_FROM));
    }

    /// What is announced because its sender waits for the receipt needs no progress of the sender's.
    #[test]
    fn only_long_messages_come_through_the_ring_for_speed() {
        let (core, peer, _) = waiting(0, false);
        let rates = &core.peers.all[peer as usize].rates;
        assert!(!core.goes_by_ring(peer, EAGER_LIMIT));
        assert_eq!(core.goes_by_ring(peer, EAGER_LIMIT + 1), streams(), "the ring is tried first");
        rates.time(CopyRoute::Ring, 1 << 20, || std::thread::sleep(std::time::Duration::from_millis(40)));
        rates.time(CopyRoute::Ring, 1 << 20, || std::thread::sleep(std::time::Duration::from_millis(40)));
        rates.time(CopyRoute::Kernel, 1 << 20, || ());
        rates.time(CopyRoute::Kernel, 1 << 20, || ());
        assert!(!core.goes_by_ring(peer, EAGER_LIMIT + 1));
    }

    #[test]
    fn sizes_are_cut_into_few_parts() {
        for wanted in [SHARE_FROM, SHARE_FROM + 1, 1 << 20, (1 << 30) + 5] {
            let (word, split) = (perusal::internals::sync::AtomicU64::new(0), split(wanted));
            let claims = Claims::over(&word);
            let (turn, first) = claims.open(split);
            let (mut end, mut count) = (first.end, 1);
            while let Some(range) = claims.take_low(turn, split).expect("sound") {
                assert_eq!(range.start, end);
                (end, count) = (range.end, count + 1);
            }
            assert_eq!(end, wanted);
            assert!(count <= PARTS, "{wanted} bytes in {count} parts");
        }
    }
}
