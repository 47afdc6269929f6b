//! From which size on two processes copy between their memories, and whether the kernel lets them.

use super::contents::SentContents;
use crate::arch::strings_stall;
use crate::engine::{
    Announced, Body, Contents, CopiesFromPeer, CopyRates, CopyRoute, Engine, KernelCopy, Mode, Rts,
};
use crate::shm::Job;
use crate::sync::{AtomicU64, AtomicUsize, Ordering};
use crate::variables::{Config, CopyChoice, ValueSource, VariableId};

/// Word of the header's tuning area that says whether a cross-memory copy was refused.
const TUNING: usize = 0;
const REFUSED: u64 = 1;

/// Bytes from which a message is so long that its receiver copies a part of it.
const LONG: usize = 64 << 10;
/// Bytes of a message of which half a copy takes longer than the sender's next turn on its CPU is away, if others wait.
const LONGER_THAN_TURNS: usize = 1 << 20;

/// Most bytes of a changed message for which the ring is tried where writers do not go past the cache.
const LONGEST_CHANGED: usize = 256 << 10;

/// What one rank knows of the copy engines.
#[derive(Debug, Default)]
pub(crate) struct CopyPolicy {
    under_way: UnderWay,
    /// Messages of this rank that are announced, and neither copied nor cancelled.
    announced: AtomicU64,
    sent: SentContents,
}

impl Engine {
    /// How long messages from the rank at place `world` are copied.
    #[must_use]
    pub fn copies_from(&self, world: u32) -> CopiesFromPeer {
        let learns = world != self.rank() && self.protocol_state().copy.learns(self, 0, Contents::Unknown);
        if learns { self.peers[world as usize].copies_so_far() } else { CopiesFromPeer::default() }
    }

    /// Notes that other ranks read the `bytes` bytes at `addr`. What is known of them since they did so last.
    ///
    /// # Safety
    /// The bytes may be read.
    pub(crate) unsafe fn note_contents(&self, addr: *const u8, bytes: usize) -> Contents {
        // SAFETY: the bytes may be read, as the caller promises.
        unsafe { self.protocol_state().copy.sent.note(addr, bytes) }
    }
}

impl CopyPolicy {
    /// Bytes from which the receiver reads the sender's memory, and from which both copy one part;
    /// `usize::MAX` for never.
    pub fn cma_thresholds(&self, engine: &Engine) -> [usize; 2] {
        const ALWAYS: usize = 0;
        const NOT: usize = usize::MAX;
        if engine.job.are_threads() || is_refused(&engine.job) {
            return [NOT, NOT];
        }
        match engine.config.copy() {
            CopyChoice::Chunks => [NOT, NOT],
            CopyChoice::Read => [ALWAYS, NOT],
            CopyChoice::Halves => [NOT, ALWAYS],
            CopyChoice::Auto | CopyChoice::Direct => engine.config.copy_from(),
        }
    }

    /// Whether messages of so many bytes from each peer are copied as copies before them say
    /// ([`crate::engine::CopyRates`]). Of long ones, of which the kernel copies a half for each rank, times say too
    /// little but where writers may go past the cache, or where the bytes have changed.
    fn learns(&self, engine: &Engine, bytes: usize, contents: Contents) -> bool {
        let shape = engine.config.shape();
        let may_pay = shape.streams
            || match contents {
                Contents::Unknown | Contents::Same => bytes < LONG,
                Contents::Changed => bytes <= LONGEST_CHANGED,
            };
        may_pay && !shape.is_oversubscribed() && self.is_left_to_us(engine)
    }

    /// Whether messages of so many bytes might go either way.
    fn is_open(&self, engine: &Engine, bytes: usize, contents: Contents) -> bool {
        let [read, halves] = self.cma_thresholds(engine);
        bytes >= read.min(halves) && self.learns(engine, bytes, contents)
    }

    /// What is known of copies to and from the peer of a message of so many bytes, if that might go either way.
    pub fn rates_of<'e>(&self, engine: &'e Engine, body: &Body, bytes: usize) -> Option<&'e CopyRates> {
        let contents = body.contents.get();
        let is_open = self.is_open(engine, bytes, contents);
        is_open.then(|| engine.peers[body.world.get() as usize].copy_rates(contents))
    }

    /// The same, of an announced message and its receive.
    fn rates_of_receive<'e>(&self, engine: &'e Engine, body: &Body) -> Option<&'e CopyRates> {
        let is_plain = body.remote_addr.get() != 0 && body.is_bytes();
        if is_plain { self.rates_of(engine, body, body.wanted.get()) } else { None }
    }

    /// Notes that an announced message has come, through the ring or by the kernel.
    pub fn count(&self, engine: &Engine, body: &Body) {
        if let Some(rates) = self.rates_of_receive(engine, body) {
            rates.count();
        }
    }

    /// Notes what a message of this rank holds, longer than an eager one, and in the message what is known of that:
    /// nothing, where it makes no difference. Where writers may go past the cache it makes none that bytes are the same
    /// as before: the ring mostly takes less time than the kernel in either case.
    pub fn note_contents(&self, engine: &Engine, body: &Body) {
        let bytes = body.bytes.get();
        let decides = super::shared_heap::may_be_remapped(engine, bytes)
            || self.is_open(engine, bytes, Contents::Changed);
        // SAFETY: the user's buffer has the message's bytes, and stays valid until the request completes.
        let note = || unsafe { self.sent.note(body.addr.get(), bytes) };
        body.contents.set(match if decides && body.is_bytes() { note() } else { Contents::Unknown } {
            Contents::Same if engine.config.shape().streams => Contents::Unknown,
            known => known,
        });
    }

    /// Notes that a message of `bytes` bytes is received.
    pub fn note_received(&self, body: &Body, bytes: usize) {
        if body.is_bytes() {
            self.sent.overwrite(body.addr.get(), bytes);
        }
    }

    /// How many messages may come unasked after one that its receiver takes out of the ring.
    pub fn invites(&self, engine: &Engine, body: &Body) -> u32 {
        self.rates_of_receive(engine, body).map_or(0, CopyRates::invites)
    }

    /// Whether a message that the kernel could copy goes through the ring unasked, because its receiver has taken those
    /// before it from there. To a receiver that has unexpected messages it does not: it would be copied once more.
    pub fn goes_unasked(&self, engine: &Engine, body: &Body) -> bool {
        let world = body.world.get();
        self.rates_of(engine, body, body.bytes.get()).is_some_and(CopyRates::goes_unasked)
            && engine.job.telemetry(world).unexpected_bytes.now.get() == 0
    }

    /// Returns whether nobody has said how messages are copied.
    pub fn is_left_to_us(&self, engine: &Engine) -> bool {
        let config = &engine.config;
        config.copy() == CopyChoice::Auto
            && matches!(config.source(VariableId::CopyReadFrom), ValueSource::Default)
    }

    /// Whether the receiver takes a message out of the ring, though it could copy it in one step: because that takes
    /// less time, or because the kernel would copy it at a tenth of its speed.
    pub fn prefers_ring(&self, engine: &Engine, body: &Body, rts: &Rts) -> bool {
        let is_faster = || {
            let rates = engine.peers[body.world.get() as usize].judged_copy_rates(rts.contents);
            let message = (rts.total, rts.contents);
            rates.choose(message, self.by_kernel(engine, body), self.own_messages()) == CopyRoute::Ring
        };
        let is_changed = rts.contents == Contents::Changed;
        let is_one_of_many = is_changed && rts.total >= LONG && self.own_messages() > 1;
        self.learns(engine, rts.total, rts.contents) && !is_one_of_many && is_faster()
            || engine.config.copy() == CopyChoice::Auto
                && strings_stall(rts.addr as usize, body.addr.get().addr())
    }

    /// How the kernel would copy a message. With several threads another one may meet the sender's part while we copy
    /// ours: two owners of one body. Of what one member of a collective operation has for all, each reads its own. What
    /// nobody has stored to is in the receiver's cache, too: it reads that, unless it is long, and answers nothing.
    pub fn by_kernel(&self, engine: &Engine, body: &Body) -> KernelCopy {
        let (mode, is_ours) = (body.mode.get(), self.is_left_to_us(engine));
        let is_same = body.contents.get() == Contents::Same;
        let is_short_and_same = mode != Mode::ToRoot && is_same && body.wanted.get() < LONG;
        if engine.shared || is_ours && (mode == Mode::FromRoot || is_short_and_same) {
            KernelCopy::Read
        } else if self.own_part(engine, body) > 0 {
            KernelCopy::Halves
        } else {
            KernelCopy::Write
        }
    }

    /// Whether each rank copies a half of a message though ranks outnumber CPUs, where the answer to an announcement
    /// takes a turn of other ranks: if the sender has announced others there, and so has to wait in any case; or if the
    /// message is so long that its turn comes meanwhile, and it has nobody else to answer. The receivers of all may
    /// share a CPU, and the senders another.
    pub fn halves_in_turn(&self, engine: &Engine, rts: &Rts) -> bool {
        let shape = engine.config.shape();
        let [read, _] = self.cma_thresholds(engine);
        rts.total >= read.max(halved_in_turn_from(rts.others))
            && shape.is_oversubscribed()
            && !shape.streams
            && self.is_left_to_us(engine)
            && !self.sends_itself()
    }

    /// How many bytes of a message the receiver reads, if its sender writes the rest.
    ///
    /// What the sender has just stored lies in its cache: to write from there takes a third of the time that the
    /// receiver takes to fetch it. So the receiver helps only with long messages, if it has none of its own on their
    /// way, and not with one of many.
    pub fn own_part(&self, engine: &Engine, body: &Body) -> usize {
        let bytes = body.wanted.get();
        let helps_many = body.mode.get() == Mode::ToRoot && self.is_left_to_us(engine);
        if bytes < LONG || helps_many || self.sends_itself() {
            return 0;
        }
        (bytes / 2).next_multiple_of(crate::limits::PAGE).min(bytes)
    }

    /// Notes that a message is announced. Returns which others are.
    pub fn announce(&self, engine: &Engine, body: &Body) -> Announced {
        let there = engine.peers[body.world.get() as usize].announce();
        // Relaxed, here and below: a hint about this rank alone.
        match self.announced.fetch_add(1, Ordering::Relaxed) {
            _ if there => Announced::There,
            0 => Announced::Nothing,
            _ => Announced::Elsewhere,
        }
    }

    /// Notes that a message announced to the rank at place `world` needs this rank no more.
    pub fn settle(&self, engine: &Engine, world: u32) {
        self.announced.fetch_sub(1, Ordering::Relaxed);
        engine.peers[world as usize].settle();
    }

    /// Whether this rank sends large messages itself: then it has no time to help its peers.
    pub fn sends_itself(&self) -> bool {
        self.own_messages() > 0
    }

    /// How many messages this rank has announced that are not copied yet.
    fn own_messages(&self) -> u64 {
        self.announced.load(Ordering::Relaxed)
    }

    /// Notes that the message of a receive comes through the ring.
    pub fn expect(&self, body: &Body) {
        self.under_way.expect(body.addr.get().addr(), body.wanted.get() as u64);
    }

    /// Notes that `bytes` of it have come. Whether they are best written past the cache: with what else is on its way,
    /// it is more than the cache holds.
    pub fn come(&self, config: &Config, body: &Body, bytes: usize) -> bool {
        self.under_way.come(body.addr.get().addr(), bytes as u64) > config.uncached_from()
    }
}

/// Bytes of a message that the sender can help to copy in its turn, by what else it has announced.
fn halved_in_turn_from(others: Announced) -> usize {
    match others {
        Announced::There => LONG,
        Announced::Nothing => LONGER_THAN_TURNS,
        Announced::Elsewhere => usize::MAX,
    }
}

/// How much memory the messages fill that are on their way to this rank through the ring.
/// Relaxed throughout: counts that publish nothing.
#[derive(Debug, Default)]
struct UnderWay {
    bytes: AtomicU64,
    /// Where the last of these messages goes.
    last: AtomicUsize,
    /// Bytes of the messages that go there, too, all but one.
    repeated: AtomicU64,
}

impl UnderWay {
    /// A message of `bytes` bytes to the address `to` is on its way.
    fn expect(&self, to: usize, bytes: u64) {
        let others = self.bytes.fetch_add(bytes, Ordering::Relaxed);
        if self.last.swap(to, Ordering::Relaxed) == to && others > 0 {
            self.repeated.fetch_add(bytes, Ordering::Relaxed);
        } else {
            self.repeated.store(0, Ordering::Relaxed);
        }
    }

    /// So many bytes of it have come. Returns how many bytes of memory were to be filled until now.
    fn come(&self, to: usize, bytes: u64) -> u64 {
        let under_way = self.bytes.fetch_sub(bytes, Ordering::Relaxed);
        let repeated = self.repeated.load(Ordering::Relaxed);
        if repeated > 0 && self.last.load(Ordering::Relaxed) == to {
            self.repeated.store(repeated.saturating_sub(bytes), Ordering::Relaxed);
        }
        under_way.saturating_sub(repeated)
    }
}

/// Remembers that the kernel refused a cross-memory copy:
/// no rank of the job tries again, or announces messages for that purpose.
pub(super) fn refuse(engine: &Engine, peer: u32) {
    // The kernel may let a process read those of its own job only.
    if engine.is_guest(peer) {
        return;
    }
    // Relaxed, here and below: a hint; a refused copy falls back anyway.
    engine.job.header().tuning[TUNING].store(REFUSED, Ordering::Relaxed);
}

fn is_refused(job: &Job) -> bool {
    job.header().tuning[TUNING].load(Ordering::Relaxed) == REFUSED
}

/// Whether the kernel has the system calls of cross-memory copies and lets this process use them on itself. What it
/// says of another process is known when it is tried.
#[must_use]
pub fn has_cross_memory_attach() -> bool {
    let (from, mut to) = ([1_u8], [0_u8]);
    // SAFETY: `to` is ours and has a byte.
    let read = unsafe {
        crate::shm::peer_memory::read_peer(
            std::process::id() as i32,
            from.as_ptr() as u64,
            to.as_mut_ptr(),
            1,
        )
    };
    read.is_ok()
}

#[cfg(all(test, not(perusal_loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_sender_helps_in_its_turn_if_it_has_to_wait_there_or_for_nobody_else() {
        for (others, bytes, helps) in [
            (Announced::There, LONG, true),
            (Announced::There, LONG - 1, false),
            (Announced::Nothing, LONGER_THAN_TURNS, true),
            (Announced::Nothing, LONGER_THAN_TURNS - 1, false),
            (Announced::Elsewhere, 1 << 40, false),
        ] {
            assert_eq!(bytes >= halved_in_turn_from(others), helps, "{others:?}, {bytes} bytes");
        }
    }

    #[test]
    fn messages_to_one_buffer_count_once() {
        let under_way = UnderWay::default();
        (0..4).for_each(|_| under_way.expect(0x1000, 100));
        assert_eq!(under_way.come(0x1000, 50), 100);
        assert_eq!(under_way.come(0x1000, 50), 100);
        (0..3).for_each(|_| assert!(under_way.come(0x1000, 100) <= 100));
        // One after the other into the same buffer: each counts.
        for _ in 0..3 {
            under_way.expect(0x1000, 100);
            assert_eq!(under_way.come(0x1000, 100), 100);
        }
    }

    #[test]
    fn messages_to_several_buffers_count_each() {
        let under_way = UnderWay::default();
        (0..4).for_each(|i| under_way.expect(0x1000 * i, 100));
        for left in (1..=4).rev() {
            assert_eq!(under_way.come(0x1000 * (left as usize - 1), 100), 100 * left);
        }
        // What goes to a buffer that is not the last one counts each time.
        for to in [0x1000, 0x1000, 0x2000] {
            under_way.expect(to, 100);
        }
        assert_eq!(under_way.come(0x1000, 100), 300);
    }
}
