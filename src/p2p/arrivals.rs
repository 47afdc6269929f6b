//! Small messages out of one ring, one after the other, on channels that nobody observes: each to its receive, or among the
//! unexpected ones. What they have in common is done once for all of them.

use super::channel::{Arrived, Channel, Payload, Queues};
use super::outbox::{copy_out, unpack};
use super::short::{protocol_of, status_of};
use crate::engine::Engine;
use crate::matching::Envelope;
use crate::request::{Layout, Ref, Stage, Then};
use crate::ring::{Consumer, Header, MappedRing};
use crate::shm::telemetry::ProtocolKind;
use crate::wire::Kind;
use core::ptr::NonNull;

/// What a run of messages has come to, and what is not told yet.
#[derive(Default)]
struct Passing {
    /// The context of the last message, and its channel, which stays while no request is let go of. Not used where several threads
    /// may be inside, any of which may take a channel away.
    context: u32,
    channel: Option<NonNull<Channel>>,
    /// Receives on that channel that have met their message.
    matched: i64,
    messages: u64,
    bytes: u64,
}

impl Engine {
    /// Takes records of `from` (a rank of the job) as long as each is a small message on a channel that is there and not
    /// observed, and `most` at most. How many those were. `SHARED` is [`Engine::shared`].
    #[inline(always)]
    pub(crate) fn arrive_in_turn<const SHARED: bool>(
        &self,
        from: u32,
        consumer: &mut Consumer<MappedRing>,
        most: usize,
    ) -> usize {
        let mut passing = Passing::default();
        let taken =
            consumer.run(most, |header, data| self.arrive_next::<SHARED>(&mut passing, from, header, data));
        self.pass::<SHARED>(&mut passing, ProtocolKind::Inline);
        taken
    }

    /// The same for one eager message, which may have its payload anywhere. False, with nothing done, if it must go the general
    /// way.
    #[inline]
    pub(crate) fn arrive_alone<const SHARED: bool>(&self, from: u32, header: &Header, data: &[u8]) -> bool {
        let mut passing = Passing::default();
        let taken = self.arrive_next::<SHARED>(&mut passing, from, header, data);
        self.pass::<SHARED>(&mut passing, protocol_of(data.len()));
        taken
    }

    /// The run is over.
    #[inline(always)]
    fn pass<const SHARED: bool>(&self, passing: &mut Passing, protocol: ProtocolKind) {
        self.settle(passing);
        if passing.messages > 0 {
            self.telemetry().count_received(protocol, passing.messages, passing.bytes, SHARED);
        }
    }

    /// One of them. False, with nothing done, if it must go the general way.
    #[inline(always)]
    fn arrive_next<const SHARED: bool>(
        &self,
        passing: &mut Passing,
        from: u32,
        header: &Header,
        data: &[u8],
    ) -> bool {
        if header.kind != Kind::Eager as u8 {
            return false;
        }
        let known = if SHARED || passing.context != header.context { None } else { passing.channel };
        let Some(channel) = known.or_else(|| self.turn_to(passing, header.context)) else { return false };
        // SAFETY: as in `match_posted`; and one that is known has been there since the last message, for no request has been
        // let go of (`let_go`).
        let channel = unsafe { channel.as_ref() };
        let envelope = Envelope { source: header.source, tag: header.tag };
        let mut queues = channel.queues.lock(SHARED);
        let Some(request) = queues.posted.take_uncounted(&envelope) else {
            self.keep(channel, &mut queues, from, header, data);
            return true;
        };
        // SAFETY: request rule 2: taken from the queue, so it is ours.
        let body = unsafe { request.body() };
        // Under the queues, where who cancels looks.
        body.stage = Stage::Done;
        body.peer = header.source as i32;
        body.tag = header.tag;
        body.world = from;
        if SHARED {
            self.note_posted_beside(channel, -1, true);
        } else {
            passing.matched += 1;
        }
        drop(queues);
        body.total = data.len();
        if data.len() > body.bytes || !matches!(body.layout, Layout::Bytes) {
            self.arrive_unusually(passing, request, data);
            return true;
        }
        // SAFETY: the user's buffer stays valid until the request completes, and the message fits; the ring is none of it.
        unsafe { copy_out(data, body.addr) };
        passing.messages += 1;
        passing.bytes += data.len() as u64;
        body.status = status_of(header.source, header.tag, data.len());
        if SHARED {
            self.complete(request, true);
        } else if request.state().complete(false) == Then::Release {
            self.let_go(passing, request);
        }
        true
    }

    /// Keeps a message that no receive was posted for.
    #[inline(never)]
    fn keep(&self, channel: &Channel, queues: &mut Queues, from: u32, header: &Header, data: &[u8]) {
        let payload = Payload::copy(data);
        let arrived = Arrived { world: from, id: header.id, synchronous: false, event_id: 0, payload };
        self.note_unexpected(channel, 1, arrived.held(), self.shared);
        let envelope = Envelope { source: header.source, tag: header.tag };
        queues.unexpected.insert(envelope, arrived);
    }

    /// The channel of a context, if it is there and nobody observes it.
    #[inline(never)]
    fn turn_to(&self, passing: &mut Passing, context: u32) -> Option<NonNull<Channel>> {
        self.settle(passing);
        let channel = self.channels.get(context)?;
        // SAFETY: as in `match_posted`.
        if unsafe { channel.as_ref() }.observed() {
            return None;
        }
        (passing.context, passing.channel) = (context, Some(channel));
        Some(channel)
    }

    /// Tells how many receives have met their message, and forgets the channel.
    #[inline(always)]
    fn settle(&self, passing: &mut Passing) {
        let matched = core::mem::take(&mut passing.matched);
        if let Some(channel) = passing.channel.take()
            && matched > 0
        {
            // SAFETY: as in `arrive_next`. Where there are other threads none is counted here.
            self.note_posted_beside(unsafe { channel.as_ref() }, -matched, false);
        }
    }

    /// Releases a request whose user has let go of it: it may be the last that keeps the channel.
    #[cold]
    #[inline(never)]
    fn let_go(&self, passing: &mut Passing, request: Ref) {
        self.settle(passing);
        self.release_request(request);
    }

    /// A matched message that must be unpacked, or does not fit.
    #[cold]
    #[inline(never)]
    fn arrive_unusually(&self, passing: &mut Passing, request: Ref, data: &[u8]) {
        self.settle(passing);
        // SAFETY: request rule 2: matched, so it belongs to who holds the message.
        let body = unsafe { request.body() };
        let taken = data.len().min(body.bytes);
        // SAFETY: the user's buffer stays valid until the request completes; `taken` fits.
        unsafe { unpack(body, 0, &data[..taken]) };
        self.count_received(protocol_of(data.len()), taken, self.shared);
        self.finish_receive(request, data.len());
    }
}

#[cfg(all(test, not(perusal_loom)))]
mod tests {
    use crate::abi::MPI_BYTE;
    use crate::datatype::Datatype;
    use crate::error::Error;
    use crate::p2p::tests::{byte, ranks, recv, send};
    use crate::p2p::{Mode, RecvBuf, Request};

    /// Receives of one round, in the order of their messages.
    const WINDOW: usize = 48;

    /// Message `i` has `len(i)` bytes, all of them `i`.
    fn len(i: usize) -> usize {
        if i % 12 == 5 { 64 } else { 8 }
    }

    fn room(i: usize) -> usize {
        if i % 12 == 3 { 4 } else { len(i) }
    }

    #[test]
    fn a_run_of_messages_meets_odd_receives_on_its_way_and_counts_all_of_them() {
        let twos = Datatype::vector(4, 2, 4, &byte()).expect("four pairs of bytes");
        for shared in [false, true] {
            ranks(2, shared, |engine, comm| {
                if comm.rank() == 0 {
                    recv(engine, comm, 0, 1, 99).expect("they are posted");
                    for i in 0..WINDOW {
                        send(engine, comm, &vec![i as u8; len(i)], 1, 1, Mode::Standard);
                        if i % 12 == 7 {
                            send(engine, comm, &[200; 8], 1, 2, Mode::Standard);
                        }
                    }
                    return;
                }
                let before = engine.telemetry().sum(|counts| counts.received.iter().map(|n| n.get()).sum());
                let mut places = vec![[255_u8; 64]; WINDOW];
                let post = |i: usize, place: &mut [u8; 64]| -> Request {
                    let (count, datatype) = if i % 12 == 9 { (1, &twos) } else { (room(i), &byte()) };
                    let buf = RecvBuf { addr: place.as_mut_ptr(), count, datatype, handle: MPI_BYTE };
                    // SAFETY: the places live until all of the messages have come, below.
                    unsafe { engine.irecv(comm, &buf, 0, 1) }.expect("post")
                };
                let requests: Vec<_> =
                    places.iter_mut().enumerate().map(|(i, place)| post(i, place)).collect();
                let posted = || (engine.telemetry().posted_now(), comm.p2p().posted.get());
                assert_eq!(posted(), (WINDOW as u64, WINDOW as u64));
                (0..WINDOW).filter(|i| i % 12 == 11).for_each(|i| engine.free_request(requests[i]));
                send(engine, comm, &[], 0, 99, Mode::Standard);
                for i in (0..WINDOW).filter(|i| i % 12 != 11) {
                    match engine.wait(requests[i]) {
                        Err(error) => assert_eq!((i % 12, error), (3, Error::Truncate { sent: 8, room: 4 })),
                        Ok(status) => {
                            assert_eq!((status.source, status.tag, status.bytes), (0, 1, len(i) as u64));
                        }
                    }
                }
                // The last one's user has let go of it: what was sent behind it tells that it is there.
                for _ in 0..WINDOW / 12 {
                    assert_eq!(recv(engine, comm, 8, 0, 2).expect("unexpected").0, [200; 8]);
                }
                while comm.p2p().posted.get() > 0 {
                    engine.poll_once().expect("progress");
                }
                assert_eq!(posted(), (0, 0));
                for (i, place) in places.iter().enumerate() {
                    let filled = |at: usize| if i % 12 == 9 { at % 4 < 2 && at < 14 } else { at < room(i) };
                    let expected: Vec<u8> =
                        (0..64).map(|at| if filled(at) { i as u8 } else { 255 }).collect();
                    assert_eq!(place[..], expected[..], "message {i}");
                }
                let after = engine.telemetry().sum(|counts| counts.received.iter().map(|n| n.get()).sum());
                assert_eq!(after - before, (WINDOW + WINDOW / 12) as u64);
            });
        }
    }
}
