//! The consumers of all rings to this rank, and which of them are looked at: those that are watched or have rung or, where many
//! ranks outnumber the CPUs, those whose count says that there is more than was taken ([`NotificationMode`]).

use super::notification::NotificationMode;
use crate::arch::serialize_loads;
use crate::engine::Engine;
use crate::engine::corrupt;
use crate::engine::parts::ring;
use crate::error::{Error, Result};
use crate::limits::POLLED_OVERSUBSCRIBED;
use crate::ring::{Consumer, Header, MappedRing, Polled};

/// Rings that are looked at without being rung for, at most, where ranks have a CPU each. Looking at one that is silent costs a load
/// from the cache.
const WATCHED: usize = 32;
/// Records that one peer may deliver before the next one has its turn.
const TURN: usize = 32;
/// Messages that short receives may take, and looks that one of them may take in vain, before others are looked at.
const DIRECT: u32 = 16;

/// What the driver of progress has.
pub(crate) struct Poller {
    consumers: Box<[Side]>,
    /// Peers whose rings are watched; the one that spoke last is first.
    watched: Vec<u32>,
    /// How many that may be.
    most: usize,
    /// How much has been taken from each peer, modulo 2¹⁶; of none, unless news is counted.
    heard: Box<[u16]>,
    /// Peers that had something when the counts were last looked at, and their counts; the next one last.
    speaking: Vec<(u32, u16)>,
    /// Whether streams are looked at from a distance ([`Consumer::look`]): not where who sends may be waiting for our CPU.
    patient: bool,
    /// Messages that short receives have taken since others were looked at, and from the first watched ring at a stretch.
    direct: u32,
}

/// Whose ring a short receive looks into.
#[derive(Debug, Clone, Copy)]
pub(crate) enum From {
    /// That of one rank of the job.
    Peer(u32),
    /// Those that are watched, in turn.
    Anybody,
}

/// The consumer of one peer's ring.
enum Side {
    /// The peer has not rung yet: its ring may have no memory.
    Silent,
    Open(Box<Consumer<MappedRing>>),
    /// The peer spoiled it.
    Spoiled,
}

impl Poller {
    pub fn new(size: u32, notification: NotificationMode, crowded: bool) -> Self {
        let consumers = (0..size).map(|_| Side::Silent).collect();
        let counted = if notification == NotificationMode::Counter { size as usize } else { 0 };
        let most = if crowded { POLLED_OVERSUBSCRIBED } else { WATCHED };
        let heard = vec![0; counted].into();
        let patient = !crowded;
        Self { consumers, watched: Vec::new(), most, heard, speaking: Vec::new(), patient, direct: 0 }
    }

    /// One look at everything that may have come in. Returns how many records were handled. `SHARED` is
    /// [`Engine::shared`]; `waits`: the caller comes again until something has happened.
    #[inline(always)]
    pub fn poll<const SHARED: bool>(&mut self, engine: &Engine, waits: bool) -> usize {
        let mut handled = 0;
        let hope = self.hope::<SHARED>(engine, waits);
        let mut at = 0;
        while let Some(&peer) = self.watched.get(at) {
            if self.look(peer, hope) {
                handled += self.drain::<SHARED>(engine, peer, TURN, hope);
                if self.watched.get(at) != Some(&peer) {
                    continue; // It has spoiled its ring, and the next one stands in its place.
                }
                if at > 0 {
                    self.watched[..=at].rotate_right(1);
                }
            }
            at += 1;
        }
        if !self.heard.is_empty() {
            handled += self.hear::<SHARED>(engine);
        }
        for word in 0..engine.doorbell.words() {
            if engine.doorbell.rung(word) {
                handled += self.answer::<SHARED>(engine, word);
            }
        }
        handled
    }

    /// Handles what peers have that speak; where there is one thread, until a message has come that nobody has asked for: the
    /// receives that will take the others straight from their rings.
    #[inline(never)]
    fn hear<const SHARED: bool>(&mut self, engine: &Engine) -> usize {
        let unasked = || engine.telemetry().unexpected.now.get();
        let (before, mut handled, mut looked) = (unasked(), 0, false);
        loop {
            let Some(&(peer, said)) = self.speaking.last() else {
                if handled > 0 || looked || !self.listen(engine) {
                    return handled;
                }
                looked = true;
                continue;
            };
            let there = said.wrapping_sub(self.heard[peer as usize]) as usize;
            let n = self.drain::<SHARED>(engine, peer, there.min(TURN), 0);
            handled += n;
            if self.speaking.last() == Some(&(peer, said)) {
                self.next_speaker(n > 0);
            }
            if !SHARED && unasked() > before {
                return handled;
            }
        }
    }

    /// Looks at the counts, and asks for the lines of what there is. Whether anybody speaks.
    fn listen(&mut self, engine: &Engine) -> bool {
        let heard = core::mem::take(&mut self.heard);
        for (peer, said) in engine.doorbell.news(&heard) {
            if self.opens(engine, peer as u32) {
                self.speaking.push((peer as u32, said));
            }
        }
        self.heard = heard;
        !self.speaking.is_empty()
    }

    /// A peer has had its turn. What was seen and is not taken yet comes behind the others' turns, unless nothing was `found`: then, and
    /// if there is more than was seen, the next look at the counts finds it again.
    #[inline]
    fn next_speaker(&mut self, found: bool) {
        if let Some((peer, said)) = self.speaking.pop()
            && found
            && self.heard[peer as usize] != said
        {
            self.speaking.insert(0, (peer, said));
        }
    }

    /// Whether a peer that speaks is to be listened to. Its ring is opened the first time.
    #[inline(always)]
    fn opens(&mut self, engine: &Engine, peer: u32) -> bool {
        if matches!(self.consumers[peer as usize], Side::Silent) {
            self.open(engine, peer);
        }
        let Side::Open(consumer) = &self.consumers[peer as usize] else { return false };
        consumer.expect();
        true
    }

    /// How many messages are hoped for, from a distance.
    #[inline(always)]
    fn hope<const SHARED: bool>(&self, engine: &Engine, waits: bool) -> usize {
        if !SHARED && waits && self.patient { engine.telemetry().posted.now.get() as usize } else { 0 }
    }

    #[inline(always)]
    fn look(&mut self, peer: u32, hope: usize) -> bool {
        match &mut self.consumers[peer as usize] {
            Side::Open(consumer) => consumer.look(hope),
            Side::Silent | Side::Spoiled => false,
        }
    }

    /// Handles what waits in one ring, `most` records at most; `hope` as [`Consumer::look`] has it.
    #[inline(never)]
    fn drain<const SHARED: bool>(&mut self, engine: &Engine, peer: u32, most: usize, hope: usize) -> usize {
        let Side::Open(consumer) = &mut self.consumers[peer as usize] else { return 0 };
        if !self.heard.is_empty() {
            consumer.foresee(most);
        }
        let mut n = 0;
        while n < most {
            let before = n;
            n += engine.take_run::<SHARED>(peer, consumer, most - n);
            if n == most || !consumer.look(hope.saturating_sub(n)) {
                break;
            }
            if n > before && consumer.has_seen() {
                continue;
            }
            match take_one::<SHARED>(engine, peer, consumer) {
                Ok(true) => n += 1,
                Ok(false) => break,
                Err(error) => return self.spoil(engine, peer, error),
            }
        }
        give_credit(engine, peer, consumer);
        if !self.heard.is_empty() {
            self.note_heard(peer);
        }
        n
    }

    /// Keeps how much has been taken from a peer, where that is looked at.
    #[inline(never)]
    fn note_heard(&mut self, peer: u32) {
        if let Side::Open(consumer) = &self.consumers[peer as usize] {
            self.heard[peer as usize] = consumer.position() as u16;
        }
    }

    /// The short way of a receive that nothing else is before: takes the next record of a ring if it is the small message
    /// that `wanted` accepts. Gives its header, length and sender (a rank of the job). Unwanted: anything else is to be done first.
    #[inline(always)]
    pub fn take_direct(
        &mut self,
        engine: &Engine,
        from: From,
        wanted: impl Fn(&Header, usize) -> bool + Copy,
        take: impl Fn(&[u8]) + Copy,
    ) -> Polled<(Header, usize, u32)> {
        // Others must not wait for long: whoever has rung or spoken is served by the general way.
        self.direct += 1;
        if self.direct.is_multiple_of(DIRECT) && self.others_want(engine, from) {
            return Polled::Unwanted;
        }
        self.look_direct(engine, from, wanted, take)
    }

    /// Goes on looking where [`Self::take_direct`] has found nothing: `listens` looks in all. `None` if anything else is to be
    /// done first, or nothing came.
    #[inline(always)]
    pub fn listen_direct(
        &mut self,
        engine: &Engine,
        from: From,
        listens: u32,
        wanted: impl Fn(&Header, usize) -> bool + Copy,
        take: impl Fn(&[u8]) + Copy,
    ) -> Option<(Header, usize, u32)> {
        for moment in 1..listens {
            if moment.is_multiple_of(DIRECT) && self.others_want(engine, from) {
                return None;
            }
            serialize_loads();
            match self.look_direct(engine, from, wanted, take) {
                Polled::Taken(taken) => {
                    engine.oversubscription.spun_well();
                    return Some(taken);
                }
                Polled::Empty => {}
                // The general way finds out what it is.
                Polled::Unwanted => return None,
            }
        }
        None
    }

    #[inline(always)]
    fn look_direct(
        &mut self,
        engine: &Engine,
        from: From,
        wanted: impl Fn(&Header, usize) -> bool + Copy,
        take: impl Fn(&[u8]) + Copy,
    ) -> Polled<(Header, usize, u32)> {
        match from {
            From::Peer(peer) => self.take_from(engine, peer, wanted, take),
            From::Anybody => self.take_from_any(engine, wanted, take),
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
        let Side::Open(consumer) = &mut self.consumers[peer as usize] else { return Polled::Unwanted };
        let consumer: &mut Consumer<_> = consumer;
        let polled = consumer.poll_if(wanted, |header, data| {
            take(data);
            (*header, data.len(), peer)
        });
        match polled {
            Ok(Polled::Taken(taken)) => {
                give_credit(engine, peer, consumer);
                if !self.heard.is_empty() {
                    self.note_heard(peer);
                }
                Polled::Taken(taken)
            }
            Ok(other) => other,
            Err(_) => Polled::Unwanted,
        }
    }

    /// The first record in the watched rings; the ring that has it becomes the first of them, until it has had its turn.
    #[inline(always)]
    fn take_from_any(
        &mut self,
        engine: &Engine,
        wanted: impl Fn(&Header, usize) -> bool + Copy,
        take: impl Fn(&[u8]) + Copy,
    ) -> Polled<(Header, usize, u32)> {
        let Some(&first) = self.watched.first() else {
            return self.take_from_speaker(engine, wanted, take);
        };
        let polled = self.take_from(engine, first, wanted, take);
        if matches!(polled, Polled::Empty) {
            return self.take_from_others(engine, wanted, take);
        }
        if self.direct.is_multiple_of(TURN as u32) {
            self.watched.rotate_left(1);
        }
        polled
    }

    /// The first record in the watched rings behind the first one.
    #[inline(never)]
    fn take_from_others(
        &mut self,
        engine: &Engine,
        wanted: impl Fn(&Header, usize) -> bool + Copy,
        take: impl Fn(&[u8]) + Copy,
    ) -> Polled<(Header, usize, u32)> {
        for at in 1..self.watched.len() {
            let polled = self.take_from(engine, self.watched[at], wanted, take);
            if !matches!(polled, Polled::Empty) {
                self.watched[..=at].rotate_right(1);
                return polled;
            }
        }
        if self.heard.is_empty() { Polled::Empty } else { self.take_from_speaker(engine, wanted, take) }
    }

    /// The first record of those that speak.
    #[inline(never)]
    fn take_from_speaker(
        &mut self,
        engine: &Engine,
        wanted: impl Fn(&Header, usize) -> bool,
        take: impl Fn(&[u8]),
    ) -> Polled<(Header, usize, u32)> {
        if self.heard.is_empty() {
            return Polled::Unwanted;
        }
        loop {
            let Some(&(peer, said)) = self.speaking.last() else {
                if self.listen(engine) {
                    continue;
                }
                return Polled::Empty;
            };
            if self.heard[peer as usize] == said {
                // It was taken by who knew its sender.
                self.speaking.pop();
                continue;
            }
            let polled = self.take_from(engine, peer, &wanted, &take);
            let found = !matches!(polled, Polled::Empty);
            if !found || self.heard[peer as usize] == said || self.direct.is_multiple_of(TURN as u32) {
                self.next_speaker(found);
            }
            return polled;
        }
    }

    /// Whether something waits for the general way that a receive from `from` does not see.
    #[inline(never)]
    fn others_want(&self, engine: &Engine, from: From) -> bool {
        let spoken = match from {
            From::Peer(peer) => self.others_speak(engine, peer),
            From::Anybody => false,
        };
        spoken || engine.doorbell.any()
    }

    /// Whether a watched ring other than that of `peer` has a record.
    #[inline(always)]
    fn others_speak(&self, engine: &Engine, peer: u32) -> bool {
        if !self.heard.is_empty() {
            return self.somebody_speaks(engine, Some(peer));
        }
        self.watched.as_slice() != [peer]
            && self.watched.iter().any(|&other| other != peer && self.has_record(other))
    }

    /// Whether a count says that there is something, apart from that of `but`.
    fn somebody_speaks(&self, engine: &Engine, but: Option<u32>) -> bool {
        let mut news = engine.doorbell.news(&self.heard);
        news.any(|(peer, _)| but != Some(peer as u32) && !matches!(self.consumers[peer], Side::Spoiled))
    }

    /// Never looks at a spoiled ring again; every wait ends with what was wrong.
    #[cold]
    fn spoil(&mut self, engine: &Engine, peer: u32, error: Error) -> usize {
        engine.fail(error);
        self.consumers[peer as usize] = Side::Spoiled;
        self.watched.retain(|&watched| watched != peer);
        self.speaking.retain(|&(speaking, _)| speaking != peer);
        1
    }

    /// Peers have rung: watches their rings and handles what is there. What waits for room to them is pumped by the
    /// caller (doorbell rule 4).
    #[cold]
    #[inline(never)]
    fn answer<const SHARED: bool>(&mut self, engine: &Engine, word: usize) -> usize {
        let mut bits = engine.doorbell.take(word);
        // A credit doorbell has no records behind it, but is something that happened.
        let mut handled = 1;
        while bits != 0 {
            let peer = word as u32 * 64 + bits.trailing_zeros();
            bits &= bits - 1;
            if peer == engine.rank() {
                // No ring has anything, but a word that a thread of this rank waits for was written.
                engine.something_happened();
            } else if peer < engine.size() && self.heard.is_empty() {
                self.watch(engine, peer);
                handled += self.drain::<SHARED>(engine, peer, TURN, 0);
            }
        }
        handled
    }

    /// Makes the consumer of a silent peer's ring.
    #[cold]
    fn open(&mut self, engine: &Engine, peer: u32) {
        // The peer has taken the memory before it sent; one that only gives credit has not, and reading where there
        // is no memory would take it without asking.
        if let Err(error) = engine.job.reserve_ring_start(peer, engine.rank()) {
            return engine.fail(error);
        }
        // SAFETY: the ring's first page is there, and all of it once there is a record; this is the only place that makes a
        // consumer, once a peer, under the incoming lock (ring rule 4).
        let consumer = Consumer::new(unsafe { ring(&engine.job, peer, engine.rank()) });
        self.consumers[peer as usize] = Side::Open(Box::new(consumer));
    }

    fn watch(&mut self, engine: &Engine, peer: u32) {
        if matches!(self.consumers[peer as usize], Side::Silent) {
            self.open(engine, peer);
        }
        let Side::Open(consumer) = &self.consumers[peer as usize] else { return };
        if self.watched.contains(&peer) {
            return;
        }
        consumer.watch();
        if self.watched.len() == self.most {
            self.unwatch_from(engine, self.most / 2);
        }
        self.watched.insert(0, peer);
    }

    /// Watches only the first `keep` rings any more. One that has spoken meanwhile rings for itself.
    fn unwatch_from(&mut self, engine: &Engine, keep: usize) {
        let dropped = self.watched.split_off(keep);
        for &peer in &dropped {
            if let Side::Open(consumer) = &self.consumers[peer as usize] {
                consumer.unwatch();
            }
        }
        engine.fences.heavy_barrier();
        for &peer in &dropped {
            if self.has_record(peer) {
                engine.doorbell.ring(peer as usize);
            }
        }
    }

    #[inline(always)]
    fn has_record(&self, peer: u32) -> bool {
        matches!(&self.consumers[peer as usize], Side::Open(consumer) if consumer.ready())
    }

    /// Before sleep: from now on every peer rings. The caller fences and asks [`Self::anything`].
    pub fn unwatch_all(&mut self) {
        for &peer in &self.watched {
            if let Side::Open(consumer) = &self.consumers[peer as usize] {
                consumer.unwatch();
            }
        }
    }

    /// Whether a ring that was watched has a record, or a count says that there is one.
    pub fn anything(&self, engine: &Engine) -> bool {
        self.watched.iter().any(|&peer| self.has_record(peer)) || self.somebody_speaks(engine, None)
    }

    /// After sleep, or instead of it: watches again what has something to say, forgets the rest.
    pub fn rewatch(&mut self) {
        let consumers = &self.consumers;
        self.watched.retain(|&peer| match &consumers[peer as usize] {
            Side::Open(consumer) if consumer.ready() => {
                consumer.watch();
                true
            }
            _ => false,
        });
    }
}

/// Handles the next record of a ring, if there is one, the general way. Whether there was.
#[inline(never)]
fn take_one<const SHARED: bool>(
    engine: &Engine,
    peer: u32,
    consumer: &mut Consumer<MappedRing>,
) -> Result<bool> {
    match consumer.poll(|header, data| engine.take_record::<SHARED>(peer, header, data)) {
        Ok(Some(Err(error @ Error::Corrupt { .. }))) => Err(error),
        Ok(Some(handled)) => {
            let _ = handled.map_err(|error| engine.fail(error));
            Ok(true)
        }
        Ok(None) => Ok(false),
        Err(what) => Err(corrupt(peer, format!("{} ({})", what.what, what.value))),
    }
}

/// Publishes credit if there is a batch of it, and rings a producer that waits for it (doorbell rule 2).
#[inline(always)]
fn give_credit(engine: &Engine, peer: u32, consumer: &mut Consumer<MappedRing>) {
    if consumer.owes() {
        give_credit_now(engine, peer, consumer);
    }
}

#[inline(never)]
fn give_credit_now(engine: &Engine, peer: u32, consumer: &mut Consumer<MappedRing>) {
    consumer.publish();
    engine.fences.light_barrier();
    if consumer.credit_wanted() {
        engine.ring(peer);
    }
}
