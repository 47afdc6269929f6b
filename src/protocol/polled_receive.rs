//! A receive polls the ring for its message before it is posted: if the next record is that message, it goes from the
//! ring to the receive's buffer, and neither queue sees it.
//!
//! This is done where one thread at a time is inside, nobody observes the match context, and nothing that has come
//! before is left for the receive. Every receive polls once, so the first poll is compiled for each of its callers and
//! for both kinds of source, and calls no function; later polls are functions of their own. Those take their arguments
//! one by one, which keeps them in registers: a [`Wanted`] would go to the stack.

use super::content::protocol_of;
use super::deliver::status_of;
use crate::abi;
use crate::arch::clock::now;
use crate::engine::{Engine, Look, MatchContext, Poller, RecvMemory, Ref, RingOf, Stage};
use crate::protocol::Kind;
use crate::request::MessageStatus;
use crate::ring::{Header, INLINE, MAX_LEN, Polled};
use crate::shm::telemetry::{Wait, Waiting};

const _: () = assert!(MAX_LEN < u32::MAX as usize);

/// Polls of a caller that does not wait, for a sender that runs in step with it.
const BRIEF_POLLS: u32 = 50;
/// Most yields of a receive that is not posted yet: by then the sender has had its turn, if it does not compute.
const MOST_YIELDS: u32 = 32;
/// Of these, the first so many come even if other senders wait for progress: to put aside what they have sent, until it
/// is asked for, takes longer than to find it in their rings then.
const PATIENT_YIELDS: u32 = 8;

/// What a receive got out of a ring: two words, so that it is given back in registers.
#[derive(Clone, Copy)]
pub(crate) struct TakenMessage {
    /// The sender's rank in the communicator, and the tag.
    envelope: u64,
    /// The sender's rank in the job, and how many bytes; all ones if there is no message.
    rest: u64,
}

impl TakenMessage {
    const NOTHING: Self = Self { envelope: 0, rest: u64::MAX };

    #[inline(always)]
    fn new((header, bytes, world): (Header, usize, u32)) -> Self {
        let envelope = u64::from(header.source) << 32 | u64::from(header.tag as u32);
        Self { envelope, rest: u64::from(world) << 32 | bytes as u64 }
    }

    /// The message's status; `None` if there is no message.
    #[inline(always)]
    pub fn status(self) -> Option<MessageStatus> {
        let found = self.rest != u64::MAX;
        found
            .then(|| status_of((self.envelope >> 32) as u32, self.envelope as i32, self.rest as u32 as usize))
    }

    /// The sender's rank in the job, if there is a message.
    #[inline(always)]
    pub fn world(self) -> u32 {
        (self.rest >> 32) as u32
    }
}

/// Which message is wanted, by its context, and where it goes. `world`: its sender's rank in the job, if it is not from
/// `ANY`.
#[derive(Clone, Copy)]
struct Wanted<'a, const ANY: bool> {
    context: u32,
    source: u32,
    world: u32,
    tag: i32,
    room: RecvMemory<'a>,
}

impl<const ANY: bool> Look for Wanted<'_, ANY> {
    type Found = (Header, usize, u32);

    #[inline(always)]
    fn rings(self) -> RingOf {
        ring_of::<ANY>(self.world)
    }

    #[inline(always)]
    fn look(self, engine: &Engine, poller: &mut Poller) -> Polled<Self::Found> {
        let matches = move |header: &Header, len| {
            header.kind == Kind::Eager as u8
                && is_for::<ANY>(header, self.context, self.source, self.tag)
                && self.room.fits(len)
        };
        // SAFETY: the length was wanted, so the payload fits; the ring is no user's memory.
        poller.take(engine, self.rings(), matches, move |payload| unsafe { self.room.fill(payload) })
    }
}

/// Whether a message is one of those that a receive or a probe asks for.
#[inline(always)]
pub(super) fn is_for<const ANY: bool>(header: &Header, context: u32, source: u32, tag: i32) -> bool {
    header.context == context
        && (ANY || header.source == source)
        && (header.tag == tag || (tag == abi::MPI_ANY_TAG && header.tag >= 0))
}

/// Where that comes from, if the sender is `world` in the job.
#[inline(always)]
pub(super) fn ring_of<const ANY: bool>(world: u32) -> RingOf {
    if ANY { RingOf::Any } else { RingOf::Peer(world) }
}

/// Receives of an engine that poll before they are posted ([`Engine::polled_receive`]).
#[derive(Clone, Copy)]
pub(crate) struct PolledReceive<'e> {
    pub(super) engine: &'e Engine,
}

impl PolledReceive<'_> {
    /// Gives a receive its message if it is the next one in its sender's ring, or, if it is from `ANY`, in the first
    /// ring that has one: one look. The caller has seen that no receive is posted that could want it, that none is
    /// unexpected, and that nothing wants progress.
    #[inline(always)]
    fn poll_next<const ANY: bool>(self, wanted: Wanted<'_, ANY>) -> Polled<TakenMessage> {
        match self.engine.poller.lock(false).try_look(self.engine, wanted) {
            Polled::Taken(taken) => {
                self.engine.delivery().count_received(protocol_of(taken.1), taken.1, false);
                Polled::Taken(TakenMessage::new(taken))
            }
            Polled::Empty => Polled::Empty,
            Polled::Unwanted => Polled::Unwanted,
        }
    }

    /// As [`Self::poll_next`], and waits a moment for a message if none is there; `BRIEF`: a short one.
    #[inline(always)]
    fn await_next<const ANY: bool, const BRIEF: bool>(
        self,
        context: &MatchContext,
        world: u32,
        room: RecvMemory<'_>,
        source: i32,
        tag: i32,
    ) -> TakenMessage {
        let wanted = Wanted::<ANY> { context: context.id(), source: source as u32, world, tag, room };
        match self.poll_next(wanted) {
            Polled::Taken(got) => got,
            Polled::Empty => self.poll_on::<ANY, BRIEF>(context, world, room, source, tag),
            Polled::Unwanted => TakenMessage::NOTHING,
        }
    }

    /// [`Self::await_next`] for a receive that has no request.
    #[inline(never)]
    pub(crate) fn receive_next<const ANY: bool, const BRIEF: bool>(
        self,
        context: &MatchContext,
        world: u32,
        room: RecvMemory<'_>,
        source: i32,
        tag: i32,
    ) -> TakenMessage {
        self.await_next::<ANY, BRIEF>(context, world, room, source, tag)
    }

    /// Waits a moment for what [`Self::poll_next`] has not found. Where ranks outnumber CPUs, a caller that waits also
    /// gives the CPU away some times: mostly the sender comes by one of them.
    #[inline(never)]
    fn poll_on<const ANY: bool, const BRIEF: bool>(
        self,
        context: &MatchContext,
        world: u32,
        room: RecvMemory<'_>,
        source: i32,
        tag: i32,
    ) -> TakenMessage {
        let engine = self.engine;
        let wanted = Wanted::<ANY> { context: context.id(), source: source as u32, world, tag, room };
        let why = || {
            let kind = if context.id() % 2 == 1 { Waiting::Collective } else { Waiting::Receive };
            let peer = (!ANY).then_some(world);
            Some(Wait { kind, peer, tag: (tag >= 0).then_some(tag), context: context.id(), since: now() })
        };
        match self.look_on::<BRIEF, _>(wanted, &why) {
            Some(taken) => {
                engine.delivery().count_received(protocol_of(taken.1), taken.1, false);
                TakenMessage::new(taken)
            }
            None => TakenMessage::NOTHING,
        }
    }

    /// Goes on to look into the rings where the first look has found nothing. `None` if nothing came, or everything
    /// must be left to [`Poller::poll`].
    #[inline(always)]
    pub(super) fn look_on<const BRIEF: bool, L: Look>(
        self,
        look: L,
        why: &dyn Fn() -> Option<Wait>,
    ) -> Option<L::Found> {
        let engine = self.engine;
        if engine.oversubscription.spinning_pays() {
            let polls = if BRIEF { BRIEF_POLLS } else { engine.config.ring_polls() };
            let got = engine.poller.lock(false).spin(engine, polls, look);
            if got.is_some() {
                return got;
            }
        }
        if BRIEF || !engine.config.shape().is_oversubscribed() {
            return None;
        }
        self.yield_for(look, why)
    }

    /// Looks, and gives the CPU away until something has come, [`MOST_YIELDS`] times at most. `None` also where
    /// something has waited for progress during the first [`PATIENT_YIELDS`], and where yields are slow. To post a
    /// receive first would take as long as the switch to the sender's turn.
    #[inline(always)]
    fn yield_for<L: Look>(self, look: L, why: &dyn Fn() -> Option<Wait>) -> Option<L::Found> {
        let engine = self.engine;
        for yields in 0..engine.config.yields().min(MOST_YIELDS) {
            let mut poller = engine.poller.lock(false);
            match look.look(engine, &mut poller) {
                Polled::Taken(got) => return Some(got),
                Polled::Empty if yields < PATIENT_YIELDS || !poller.others_wait(engine, look.rings()) => {}
                Polled::Empty | Polled::Unwanted => return None,
            }
            drop(poller);
            if yields == 0 {
                engine.note_vain_spin(why);
            }
            if !engine.oversubscription.yield_cpu(engine) {
                return None;
            }
        }
        None
    }

    /// [`Self::poll_next`] for a caller that does not wait: if the payload lies within its cell. A longer one stays in
    /// the ring until the caller waits, for mostly it has something to send before: in an exchange, of two ranks of
    /// which one is a little behind, this one would copy what the other has sent, and the other wait as long.
    #[inline(never)]
    pub(crate) fn try_next<const ANY: bool>(
        self,
        context: &MatchContext,
        world: u32,
        room: RecvMemory<'_>,
        source: i32,
        tag: i32,
    ) -> TakenMessage {
        let room = room.first(INLINE);
        let wanted = Wanted::<ANY> { context: context.id(), source: source as u32, world, tag, room };
        match self.poll_next(wanted) {
            Polled::Taken(got) => got,
            Polled::Empty | Polled::Unwanted => TakenMessage::NOTHING,
        }
    }

    /// A wait for a receive of plain bytes that is alone in its queue, on a match context that nobody observes, where
    /// one thread at a time is inside: its message goes from the ring to its buffer and past the queue, if it comes
    /// soon. False, with nothing done, in all other cases, and where something else wants progress.
    #[inline(never)]
    pub(crate) fn await_alone(self, request: Ref) -> bool {
        // SAFETY: request rule 2: active, so it belongs to the thread that runs progress: the only one, which is here.
        let body = unsafe { request.body() };
        if !body.stage.is(Stage::Posted) || !body.is_bytes() || self.wants_progress() {
            return false;
        }
        // SAFETY: the request counts as pending on the context.
        let context = unsafe { body.context.get().expect("an active receive").as_ref() };
        let mut queues = context.queues.lock(false);
        if context.observed() || !queues.posted.is_alone(request) {
            return false;
        }
        let (source, tag) = (body.peer.get(), body.tag.get());
        // SAFETY: the user's buffer stays valid until the request completes.
        let room = unsafe { RecvMemory::new(body.addr.get(), body.bytes.get()) };
        // Where ranks outnumber CPUs, a receive that was to be blocking has waited longer already.
        let brief = self.engine.config.shape().is_oversubscribed();
        let got = match (source < 0, brief) {
            (true, false) => self.await_next::<true, false>(context, 0, room, source, tag),
            (true, true) => self.await_next::<true, true>(context, 0, room, source, tag),
            (false, false) => self.await_next::<false, false>(context, body.world.get(), room, source, tag),
            (false, true) => self.await_next::<false, true>(context, body.world.get(), room, source, tag),
        };
        let Some(status) = got.status() else { return false };
        queues.posted.take_alone();
        drop(queues);
        self.engine.delivery().count_posted(context, -1, false);
        body.stage.set(Stage::Done);
        body.peer.set(status.source);
        body.tag.set(status.tag);
        body.world.set(got.world());
        body.total.set(status.bytes as usize);
        body.status.set(status);
        self.engine.requests().complete(request, false);
        true
    }

    /// Whether something waits for progress that a look into one ring does not make.
    #[inline(always)]
    pub(crate) fn wants_progress(self) -> bool {
        self.engine.progress().has_backlog::<false>() || self.engine.progress().has_background()
    }
}
