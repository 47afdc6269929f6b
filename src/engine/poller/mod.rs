//! The poller: takes records out of the rings to this rank and has them handled.
//!
//! One thread at a time has it, under the engine's `poller` lock. Which rings it looks into follows from the
//! notification mode: with flags those that it polls ([`PolledRings`]) and those whose peers have set their flag in the
//! doorbell; with counters those whose count has changed ([`Counters`]). A receive that nothing else precedes takes its
//! message out of a ring itself ([`Poller::try_look`]).

mod counters;
mod polled;
mod rings;

use self::counters::Counters;
use self::polled::PolledRings;
use self::rings::InboundRings;
use super::notification::NotificationMode;
use crate::arch::serialize_loads;
use crate::engine::Engine;
use crate::error::Error;
use crate::limits::POLLED_OVERSUBSCRIBED;
use crate::ring::{Consumer, Header, MappedRing, Polled};

/// Most rings that are polled where every rank has a CPU. To poll a silent ring costs a load from the cache.
const POLLED: usize = 32;
/// Records that one peer may deliver before the next one has its turn.
const TURN: usize = 32;
/// Messages that receives may take out of a ring themselves, and polls in vain of one of them,
/// before other rings are polled.
const DIRECT_TURN: u32 = 16;

/// The receiving side of a rank.
pub(crate) struct Poller {
    rings: InboundRings,
    /// Empty where notification is by counter.
    polled: PolledRings,
    /// Present where notification is by counter.
    counters: Option<Counters>,
    /// Whether streams are polled from a distance ([`Consumer::should_take`]):
    /// not where the sender may be waiting for our CPU.
    from_distance: bool,
    /// Messages that receives have taken themselves since others were polled,
    /// and out of the first polled ring in a row.
    direct: u32,
}

/// Whose ring a receive takes its message out of.
#[derive(Debug, Clone, Copy)]
pub(crate) enum RingOf {
    /// That of one rank of the job.
    Peer(u32),
    /// Those that are polled or whose counts have changed, in turn.
    Any,
}

/// What a receive or a probe looks for in the rings.
pub(crate) trait Look: Copy {
    /// What it finds.
    type Found;
    /// In which rings it looks.
    fn rings(self) -> RingOf;
    /// Looks once. Unwanted: everything must be left to [`Poller::poll`].
    fn look(self, engine: &Engine, poller: &mut Poller) -> Polled<Self::Found>;
}

impl Poller {
    pub fn new(peers: u32, notification: NotificationMode, oversubscribed: bool) -> Self {
        Self {
            rings: InboundRings::new(peers),
            polled: PolledRings::new(if oversubscribed { POLLED_OVERSUBSCRIBED } else { POLLED }),
            counters: (notification == NotificationMode::Counter).then(|| Counters::new(peers)),
            from_distance: !oversubscribed,
            direct: 0,
        }
    }

    /// Handles what has come in, once. Returns how many records that was. `SHARED` is
    /// [`Engine::shared`]; `waits`: the caller polls again until something has happened.
    #[inline(always)]
    pub fn poll<const SHARED: bool>(&mut self, engine: &Engine, waits: bool) -> usize {
        let mut handled = 0;
        let awaited = self.awaited::<SHARED>(engine, waits);
        let mut at = 0;
        while let Some(peer) = self.polled.get(at) {
            if self.rings.get_mut(peer).is_some_and(|ring| ring.should_take(awaited)) {
                handled += self.drain_inline(engine, peer, TURN, awaited, waits);
                if self.polled.get(at) != Some(peer) {
                    continue; // Its ring is corrupt, and the next one stands in its place.
                }
                if at > 0 {
                    self.polled.move_to_front(at);
                }
            }
            at += 1;
        }
        if self.counters.is_some() {
            handled += self.poll_counters::<SHARED>(engine, waits);
        }
        for word in 0..engine.doorbell.words() {
            if engine.doorbell.has_flags(word) {
                handled += self.poll_flagged(engine, word, waits);
            }
        }
        handled
    }

    /// How many messages a waiting thread hopes for, from a distance.
    #[inline(always)]
    fn awaited<const SHARED: bool>(&self, engine: &Engine, waits: bool) -> usize {
        if !SHARED && waits && self.from_distance { engine.telemetry().posted.now.get() as usize } else { 0 }
    }

    /// Handles the records of peers whose counts have changed; where there is one thread, only until a message has come
    /// for which no receive is posted: the receives that will be take the others out of their rings themselves.
    #[inline(never)]
    fn poll_counters<const SHARED: bool>(&mut self, engine: &Engine, waits: bool) -> usize {
        let unexpected = || engine.telemetry().unexpected.now.get();
        let (before, mut handled, mut compared) = (unexpected(), 0, false);
        loop {
            let Some(counters) = &mut self.counters else { return handled };
            let Some((peer, count)) = counters.next() else {
                if handled > 0 || compared || !counters.compare(engine, &mut self.rings) {
                    return handled;
                }
                compared = true;
                continue;
            };
            let left = counters.left(peer, count);
            let taken = self.drain(engine, peer, left.min(TURN), waits);
            handled += taken;
            if let Some(counters) = &mut self.counters
                && counters.next() == Some((peer, count))
            {
                counters.end_turn(taken > 0);
            }
            if !SHARED && unexpected() > before {
                return handled;
            }
        }
    }

    /// Handles the records of the peers that have set their flag, and polls their rings from now on. What waits for
    /// room to them is sent by the caller (doorbell rule 4).
    #[cold]
    #[inline(never)]
    fn poll_flagged(&mut self, engine: &Engine, word: usize, waits: bool) -> usize {
        let mut flags = engine.doorbell.take_flags(word);
        // Behind a flag that announces credit there are no records, but something has happened.
        let mut handled = 1;
        while flags != 0 {
            let peer = word as u32 * 64 + flags.trailing_zeros();
            flags &= flags - 1;
            if peer == engine.rank() {
                // No ring has anything, but a word that a thread of this rank waits for was written.
                engine.progress().something_happened();
            } else if peer < engine.places() && self.counters.is_none() {
                self.polled.add(engine, &mut self.rings, peer);
                handled += self.drain(engine, peer, TURN, waits);
            }
        }
        handled
    }

    /// Handles what waits in one ring, `most` records at most.
    #[inline(never)]
    fn drain(&mut self, engine: &Engine, peer: u32, most: usize, waits: bool) -> usize {
        self.drain_inline(engine, peer, most, 0, waits)
    }

    /// `awaited` as in [`Consumer::should_take`], `waits` as in [`Self::poll`].
    #[inline(always)]
    fn drain_inline(
        &mut self,
        engine: &Engine,
        peer: u32,
        most: usize,
        awaited: usize,
        waits: bool,
    ) -> usize {
        let Some(consumer) = self.rings.get_mut(peer) else { return 0 };
        if self.counters.is_some() {
            consumer.assume_committed(most);
        }
        match engine.protocols.receive(engine, peer, consumer, most, awaited, waits) {
            Ok(taken) => {
                return_credit(engine, peer, consumer);
                if let Some(counters) = &mut self.counters {
                    counters.note_taken(peer, consumer.position());
                }
                taken
            }
            Err(error) => self.close_corrupt(engine, peer, *error),
        }
    }

    /// Keeps how much has been taken from a peer, where counts say what there is.
    /// Apart: nothing of it is wanted where flags do.
    #[cold]
    #[inline(never)]
    fn note_taken(&mut self, peer: u32) {
        if let (Some(counters), Some(consumer)) = (&mut self.counters, self.rings.get(peer)) {
            counters.note_taken(peer, consumer.position());
        }
    }

    /// Leaves to a later process of this place where it is to go on. Peers notify from here on; rings that are polled
    /// still are, in case that this process goes on itself.
    #[cold]
    pub fn retire(&mut self) {
        self.rings.retire();
    }

    #[cold]
    fn close_corrupt(&mut self, engine: &Engine, peer: u32, error: Error) -> usize {
        self.rings.close_corrupt(engine, peer, error);
        self.polled.remove(peer);
        if let Some(counters) = &mut self.counters {
            counters.remove(peer);
        }
        1
    }

    /// Looks for what a receive wants that nothing else precedes, unless others have waited for long. Unwanted: the
    /// receive must leave everything to [`Self::poll`].
    #[inline(always)]
    pub fn try_look<L: Look>(&mut self, engine: &Engine, look: L) -> Polled<L::Found> {
        // Others must not wait for long.
        self.direct += 1;
        if self.direct.is_multiple_of(DIRECT_TURN) && self.others_wait(engine, look.rings()) {
            return Polled::Unwanted;
        }
        look.look(engine, self)
    }

    /// Goes on to look where [`Self::try_look`] has found nothing, for `polls` looks in all.
    #[inline(always)]
    pub fn spin<L: Look>(&mut self, engine: &Engine, polls: u32, look: L) -> Option<L::Found> {
        for poll in 1..polls {
            if poll.is_multiple_of(DIRECT_TURN) && self.others_wait(engine, look.rings()) {
                return None;
            }
            serialize_loads();
            match look.look(engine, self) {
                Polled::Taken(got) => {
                    engine.oversubscription.spun_well();
                    return Some(got);
                }
                Polled::Empty => {}
                Polled::Unwanted => return None,
            }
        }
        None
    }

    /// Takes the next record of a ring, or of any, if it is a small message that `wanted` accepts, and gives its
    /// payload to `take`. Returns its header, length and sender (a rank of the job).
    #[inline(always)]
    pub fn take(
        &mut self,
        engine: &Engine,
        from: RingOf,
        wanted: impl Fn(&Header, usize) -> bool + Copy,
        take: impl Fn(&[u8]) + Copy,
    ) -> Polled<(Header, usize, u32)> {
        match from {
            RingOf::Peer(peer) => self.take_from(engine, peer, wanted, take),
            RingOf::Any => self.take_from_any(engine, wanted, take),
        }
    }

    #[inline(always)]
    fn take_from(
        &mut self,
        engine: &Engine,
        peer: u32,
        wanted: impl Fn(&Header, usize) -> bool,
        take: impl Fn(&[u8]),
    ) -> Polled<(Header, usize, u32)> {
        let Some(consumer) = self.rings.get_mut(peer) else { return Polled::Unwanted };
        let polled = consumer.poll_if(wanted, |header, data| {
            take(data);
            (*header, data.len(), peer)
        });
        match polled {
            Ok(Polled::Taken(taken)) => {
                return_credit(engine, peer, consumer);
                if self.counters.is_some() {
                    self.note_taken(peer);
                }
                Polled::Taken(taken)
            }
            Ok(other) => other,
            // `poll` finds it again, and says what is wrong.
            Err(_) => Polled::Unwanted,
        }
    }

    /// The first record in the polled rings; its ring becomes the first of them, until it has had its turn.
    #[inline(always)]
    fn take_from_any(
        &mut self,
        engine: &Engine,
        wanted: impl Fn(&Header, usize) -> bool + Copy,
        take: impl Fn(&[u8]) + Copy,
    ) -> Polled<(Header, usize, u32)> {
        let Some(first) = self.polled.get(0) else {
            return self.take_from_counted(engine, wanted, take);
        };
        let polled = self.take_from(engine, first, wanted, take);
        if matches!(polled, Polled::Empty) {
            return self.take_from_others(engine, wanted, take);
        }
        if self.direct.is_multiple_of(TURN as u32) {
            self.polled.rotate();
        }
        polled
    }

    /// The first record in the polled rings behind the first one.
    #[inline(never)]
    fn take_from_others(
        &mut self,
        engine: &Engine,
        wanted: impl Fn(&Header, usize) -> bool + Copy,
        take: impl Fn(&[u8]) + Copy,
    ) -> Polled<(Header, usize, u32)> {
        let mut at = 1;
        while let Some(peer) = self.polled.get(at) {
            let polled = self.take_from(engine, peer, wanted, take);
            if !matches!(polled, Polled::Empty) {
                self.polled.move_to_front(at);
                return polled;
            }
            at += 1;
        }
        Polled::Empty
    }

    /// The first record of the peers whose counts have changed.
    #[inline(never)]
    fn take_from_counted(
        &mut self,
        engine: &Engine,
        wanted: impl Fn(&Header, usize) -> bool,
        take: impl Fn(&[u8]),
    ) -> Polled<(Header, usize, u32)> {
        loop {
            let Some(counters) = &mut self.counters else { return Polled::Unwanted };
            let Some((peer, count)) = counters.next() else {
                if counters.compare(engine, &mut self.rings) {
                    continue;
                }
                return Polled::Empty;
            };
            if counters.left(peer, count) == 0 {
                counters.drop_next();
                continue;
            }
            let polled = self.take_from(engine, peer, &wanted, &take);
            let found = !matches!(polled, Polled::Empty);
            if let Some(counters) = &mut self.counters
                && (!found || counters.left(peer, count) == 0 || self.direct.is_multiple_of(TURN as u32))
            {
                counters.end_turn(found);
            }
            return polled;
        }
    }

    /// Whether something waits for [`Self::poll`] that a receive from `from` does not see.
    #[inline(never)]
    pub fn others_wait(&self, engine: &Engine, from: RingOf) -> bool {
        let has_record = match from {
            RingOf::Peer(peer) => self.other_has_record(engine, peer),
            RingOf::Any => false,
        };
        has_record || engine.doorbell.has_any_flag()
    }

    /// Whether a ring other than that of `peer` has a record.
    #[inline(always)]
    fn other_has_record(&self, engine: &Engine, peer: u32) -> bool {
        match &self.counters {
            Some(counters) => counters.any(engine, &self.rings, Some(peer)),
            None => self.polled.other_has_record(&self.rings, peer),
        }
    }

    /// Before a block: from now on every peer notifies.
    /// The caller executes the heavy barrier and asks [`Self::has_record`].
    pub fn suspend(&mut self) {
        self.polled.suspend(&self.rings);
    }

    /// Whether a polled ring has a record, or a count has changed.
    pub fn has_record(&self, engine: &Engine) -> bool {
        self.polled.has_record(&self.rings)
            || self.counters.as_ref().is_some_and(|counters| counters.any(engine, &self.rings, None))
    }

    /// After a block, or instead of it: polls again the rings that have a record, and no other.
    pub fn resume(&mut self) {
        self.polled.resume(&self.rings);
    }
}

/// Returns credit if there is a batch of it, and notifies a producer that waits for it.
#[inline(always)]
fn return_credit(engine: &Engine, peer: u32, consumer: &mut Consumer<MappedRing>) {
    if consumer.credit_due() {
        return_credit_now(engine, peer, consumer);
    }
}

#[inline(never)]
fn return_credit_now(engine: &Engine, peer: u32, consumer: &mut Consumer<MappedRing>) {
    consumer.return_credit();
    // Doorbell rule 2, side A: the heads are stored; `wants_credit` is loaded next.
    engine.fences.light_barrier();
    if consumer.credit_wanted() {
        engine.transmit().ring(peer);
    }
}
