//! Whether long messages from a peer are copied once, by the kernel, or twice, through the ring: as copies so far say.
//!
//! The kernel looks up every page, and waits for each line that the other CPU has stored last. So of what a program has
//! just stored, two copies through the ring may take half the time of one by the kernel; of what nobody stores or looks
//! at, they may take twice as long. And it depends on whether the two CPUs share a cache. So both ranks time what they
//! copy into the ring and out of it, and what the kernel reads and writes for them, and the sender says so to the
//! receiver, which chooses. The sender also says what it knows of the bytes: each kind has times of its own. Ranks time
//! no whole messages: those wait for the peer, and for others that are under way.

use crate::arch::clock;
use crate::sync::Relaxed;
use core::ops::Range;

/// Of [`PERIOD`] messages these go the other way: so many that the memory they go to lies where that way leaves it. The
/// first messages of all, before these, go through the ring: so many that some are not the first to touch its memory.
/// (If their bytes are the same as before they are copied by the kernel.)
const TRIAL: Range<u32> = 64..80;
/// Messages after which the next such ones may come early, because the usual way takes longer than after the last ones.
const SOONEST: u32 = 256;
/// No multiple of it is a usual number of messages that come at once.
const PERIOD: u32 = 2039;
/// Most messages that may come unasked after one that was announced, of which the receiver has chosen the way.
const MOST_UNASKED: u32 = 63;
/// What is shorter says little of a long message.
const LONG: usize = 8 << 10;
/// Bytes of a part of a message of many parts.
const PART: usize = 32 << 10;
/// Bytes of a sample.
const SAMPLE: u32 = 64 << 10;

/// Ticks for a KiB that the last three samples took; 0: none yet. The middle one counts: one may have been interrupted.
#[derive(Debug, Default)]
struct LastThree {
    samples: [Relaxed<u32>; 3],
    /// What belongs to the next sample. Parts of one message differ by who has waited for whom.
    bytes: Relaxed<u32>,
    ticks: Relaxed<u32>,
}

impl LastThree {
    /// Ticks of 0 say nothing.
    fn took(&self, bytes: usize, ticks: u64) {
        if ticks == 0 {
            return;
        }
        let least = |sum: u64| u32::try_from(sum).unwrap_or(u32::MAX);
        let bytes = least((bytes as u64).saturating_add(self.bytes.get().into())).max(1);
        let ticks = least(ticks.saturating_add(self.ticks.get().into()));
        let is_whole = bytes >= SAMPLE;
        self.bytes.set(if is_whole { 0 } else { bytes });
        self.ticks.set(if is_whole { 0 } else { ticks });
        if is_whole {
            let [last, before, first] = &self.samples;
            first.set(before.get());
            before.set(last.get());
            last.set(least((u64::from(ticks) << 10) / u64::from(bytes)).max(1));
        }
    }

    /// The middle one of three, the less of two.
    fn usual(&self) -> u32 {
        let mut samples = self.samples.each_ref().map(Relaxed::get);
        samples.sort_unstable();
        if samples[1] == 0 { samples[2] } else { samples[1] }
    }
}

/// Nanoseconds for a MiB, of ticks for a KiB.
fn nanoseconds(ticks: u32) -> u64 {
    let ticks = u128::from(ticks) << 10;
    (ticks * 1_000_000_000 / u128::from(clock::source().ticks_per_second.max(1))) as u64
}

/// What a sender knows of the bytes of a message, by a few of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Contents {
    /// Nothing.
    Unknown,
    /// They are those that the buffer held when it was last sent: nobody has stored there, or the same bytes again.
    Same,
    /// They have changed since the buffer was last sent: the program has stored there.
    Changed,
}

impl Contents {
    /// What a peer says by its number.
    pub fn of(number: u64) -> Option<Self> {
        [Self::Unknown, Self::Same, Self::Changed].get(usize::try_from(number).ok()?).copied()
    }
}

/// How the kernel would copy a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KernelCopy {
    /// The receiver reads it.
    Read,
    /// The sender writes it.
    Write,
    /// Each copies a half, both at once.
    Halves,
}

/// The way that takes less time; `None` while the kernel has copied nothing.
///
/// The ring has to be an eighth faster: rates of the way that is not taken are those of a few messages, which find
/// memory as the other way has left it. Where the bytes are the same as before it may take three fifths of the time at
/// most: they are in the cache to which the kernel copies them, unless the program has stored the same bytes again.
fn usual(ring: u32, kernel: u32, contents: Contents) -> Option<CopyRoute> {
    let (least, most) = if contents == Contents::Same { (5, 3) } else { (8, 7) };
    let is_ring = ring > 0 && least * u64::from(ring) <= most * u64::from(kernel);
    (kernel > 0).then_some(if is_ring { CopyRoute::Ring } else { CopyRoute::Kernel })
}

/// Has `copy` copy `bytes` bytes. How many ticks it took; 0 for few bytes.
pub fn timed<R>(bytes: usize, copy: impl FnOnce() -> R) -> (R, u64) {
    if bytes < LONG {
        return (copy(), 0);
    }
    let began = clock::ticks();
    let result = copy();
    (result, (clock::ticks() - began).max(1))
}

/// How messages are copied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CopyRoute {
    /// Once, by the kernel.
    Kernel,
    /// Twice, through the ring.
    Ring,
}

/// How long messages from one peer are copied, and why: the times by which the last one was judged.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CopiesFromPeer {
    /// Which way, but for one message of many; `None` where thresholds decide.
    pub route: Option<CopyRoute>,
    /// Nanoseconds that the ring takes for a MiB; 0: none yet.
    pub ring: u64,
    /// Nanoseconds that the kernel takes.
    pub kernel: u64,
}

/// What a rank has learned about copies from and to one peer.
/// What the peer says is a number that no sense is asked of.
#[derive(Debug, Default)]
pub struct CopyRates {
    messages: Relaxed<u32>,
    /// Out of the peer's ring.
    out_of_ring: LastThree,
    /// Into the ring to the peer.
    into_ring: LastThree,
    /// Into the peer's ring, as it has said last; 0: unknown.
    peer_into_ring: Relaxed<u32>,
    /// Messages to the peer that may go unasked, as it has said last.
    unasked: Relaxed<u32>,
    /// The kernel, out of the peer's memory.
    reads: LastThree,
    /// The kernel, for the peer, into this rank's memory: as the peer says.
    writes: LastThree,
    /// What the usual way took after the last messages that went the other way; 0: not known yet.
    judged: Relaxed<u32>,
    /// Which way was the usual one for the last message: [`BY_RING`] or [`BY_KERNEL`]; 0: there was none.
    last: Relaxed<u32>,
    /// Its times by which that was chosen.
    last_ring: Relaxed<u32>,
    last_kernel: Relaxed<u32>,
}

const BY_RING: u32 = 1;
const BY_KERNEL: u32 = 2;

impl CopyRates {
    /// Which way the next message goes, of so many bytes, of which that is known, and which the kernel would copy in
    /// that way. `own`: messages of its own that this rank has to copy meanwhile.
    pub fn choose(&self, (bytes, contents): (usize, Contents), by_kernel: KernelCopy, own: u64) -> CopyRoute {
        let (ring, kernel) = (self.ring_time(bytes, own), self.kernel_time(by_kernel, contents));
        let usual = usual(ring, kernel, contents);
        self.last_ring.set(ring);
        self.last_kernel.set(kernel);
        let first = if contents == Contents::Same { CopyRoute::Kernel } else { CopyRoute::Ring };
        let is_kernel = usual.unwrap_or(first) == CopyRoute::Kernel;
        self.last.set(if is_kernel { BY_KERNEL } else { BY_RING });
        let at = self.number(if is_kernel { kernel } else { ring }, is_kernel, contents);
        match usual {
            None if self.messages.get() < TRIAL.start => first,
            None => CopyRoute::Kernel,
            Some(route) if !TRIAL.contains(&at) => route,
            Some(CopyRoute::Ring) => CopyRoute::Kernel,
            Some(CopyRoute::Kernel) => CopyRoute::Ring,
        }
    }

    /// The next message's number in its period. The next period begins early if the usual way, which takes `usual`,
    /// takes half as long again as it did: what a program does with the bytes has changed, and what the other way took
    /// says little. If they are the same as before it does so while they go through the ring, which is seldom right.
    fn number(&self, usual: u32, is_kernel: bool, contents: Contents) -> u32 {
        let messages = self.messages.get();
        let at = messages % PERIOD;
        let is_doubtful = match contents {
            Contents::Same => !is_kernel,
            _ => u64::from(usual) * 2 > u64::from(self.judged.get()) * 3,
        };
        if TRIAL.contains(&at) {
            self.judged.set(0);
        } else if self.judged.get() == 0 {
            self.judged.set(usual);
        } else if at >= SOONEST && is_doubtful {
            self.messages.set((messages - at).wrapping_add(PERIOD + TRIAL.start));
            return TRIAL.start;
        }
        at
    }

    /// Ticks for a KiB of a message of `bytes` bytes through the ring.
    ///
    /// Each rank copies all of it, and the second begins when the first has copied a part. If each has a message for
    /// the other, one copy comes after the other; if it has several, each waits for room and for parts, too: half as
    /// much again.
    fn ring_time(&self, bytes: usize, own: u64) -> u32 {
        let out = self.out_of_ring.usual();
        if own > 0 {
            let both = out.saturating_add(self.into_ring.usual());
            return both.saturating_add(if own > 1 { both / 2 } else { 0 });
        }
        let parts = u32::try_from(bytes / PART).unwrap_or(u32::MAX).max(2);
        let into = self.peer_into_ring.get();
        out.max(into).saturating_add(out.min(into) / parts)
    }

    /// Ticks for a KiB by the kernel; 0: unknown.
    ///
    /// What it has moved to the other CPU's cache comes back when the program looks at it, or stores there again: half
    /// as much again as one rank takes to copy it, if the program does so.
    fn kernel_time(&self, by_kernel: KernelCopy, contents: Contents) -> u32 {
        let (reads, writes) = (self.reads.usual(), self.writes.usual());
        let by_one = match by_kernel {
            KernelCopy::Read => reads,
            KernelCopy::Write => writes,
            KernelCopy::Halves => reads.max(writes),
        };
        let copies = if by_kernel == KernelCopy::Halves { by_one.div_ceil(2) } else { by_one };
        copies.saturating_add(if contents == Contents::Changed { by_one / 2 } else { 0 })
    }

    /// Which way messages go, and what copies took: nothing before there was one that might have gone either way.
    pub fn so_far(&self) -> CopiesFromPeer {
        let route = match self.last.get() {
            0 => return CopiesFromPeer::default(),
            BY_KERNEL => CopyRoute::Kernel,
            _ => CopyRoute::Ring,
        };
        let (ring, kernel) = (nanoseconds(self.last_ring.get()), nanoseconds(self.last_kernel.get()));
        CopiesFromPeer { route: Some(route), ring, kernel }
    }

    /// Notes that a message that might have gone either way has come.
    pub fn count(&self) {
        self.messages.set(self.messages.get().wrapping_add(1));
    }

    /// How many messages may come unasked after this one, whose way has just been chosen: those before the next that
    /// are to go the other way, if they go through the ring.
    pub fn invites(&self) -> u32 {
        let at = self.messages.get() % PERIOD;
        let left = if at < TRIAL.start { TRIAL.start - at } else { PERIOD - at };
        let is_usual = self.last.get() == BY_RING && !TRIAL.contains(&at);
        if is_usual { (left - 1).min(MOST_UNASKED) } else { 0 }
    }

    /// The peer has said how many messages may go there unasked.
    pub fn invited(&self, messages: u32) {
        self.unasked.set(messages.min(MOST_UNASKED));
    }

    /// Whether the next message to the peer goes there unasked.
    pub fn goes_unasked(&self) -> bool {
        let left = self.unasked.get();
        self.unasked.set(left.saturating_sub(1));
        left > 0
    }

    /// Has `copy` copy `bytes` bytes out of the ring, or have the kernel read them.
    pub fn time<R>(&self, route: CopyRoute, bytes: usize, copy: impl FnOnce() -> R) -> R {
        let (result, ticks) = timed(bytes, copy);
        let by = if route == CopyRoute::Ring { &self.out_of_ring } else { &self.reads };
        by.took(bytes, ticks);
        result
    }

    /// It took so many ticks to copy `bytes` bytes into the ring to the peer.
    pub fn filled(&self, bytes: usize, ticks: u64) {
        self.into_ring.took(bytes, ticks);
    }

    /// What to tell the peer of that: ticks for a KiB; 0: nothing yet.
    pub fn fill_time(&self) -> u32 {
        self.into_ring.usual()
    }

    /// The peer has said what it takes to copy into its ring.
    pub fn peer_fills(&self, fill_time: u32) {
        self.peer_into_ring.set(fill_time);
    }

    /// It took the peer's kernel so many ticks to write `bytes` bytes.
    pub fn written(&self, bytes: usize, ticks: u64) {
        self.writes.took(bytes, ticks);
    }
}

#[cfg(all(test, not(perusal_loom)))]
mod tests {
    use super::{SAMPLE as SAMPLE_BYTES, *};

    const SAMPLE: usize = SAMPLE_BYTES as usize;

    /// Lets messages come of which each copy takes so many ticks, and returns how many of them went through the ring.
    fn let_come(rates: &CopyRates, messages: u32, ring: u64, kernel: u64) -> u32 {
        let_come_of(rates, Contents::Unknown, messages, ring, kernel)
    }

    /// The same, if that is known of their bytes.
    fn let_come_of(rates: &CopyRates, contents: Contents, messages: u32, ring: u64, kernel: u64) -> u32 {
        let one = || {
            let route = rates.choose((1 << 20, contents), KernelCopy::Halves, 0);
            for _ in 0..3 {
                match route {
                    CopyRoute::Ring => rates.out_of_ring.took(SAMPLE, ring),
                    CopyRoute::Kernel => {
                        rates.reads.took(SAMPLE, kernel);
                        rates.written(SAMPLE, kernel);
                    }
                }
            }
            rates.count();
            u32::from(route == CopyRoute::Ring)
        };
        (0..messages).map(|_| one()).sum()
    }

    #[test]
    fn messages_go_the_faster_way_but_for_a_few() {
        let few = TRIAL.len() as u32;
        for (ring, kernel, by_ring) in
            [(1300, 3000, PERIOD - few), (1400, 3000, few), (u64::MAX, 1, few), (1, u64::MAX, PERIOD - few)]
        {
            let rates = CopyRates::default();
            assert_eq!(let_come(&rates, TRIAL.start, ring, kernel), TRIAL.start, "the first ones");
            assert_eq!(let_come(&rates, 1, ring, kernel), 0, "the other way is tried soon");
            let_come(&rates, PERIOD - TRIAL.start - 1, ring, kernel);
            assert_eq!(let_come(&rates, 10 * PERIOD, ring, kernel), 10 * by_ring, "{ring} {kernel}");
        }
    }

    #[test]
    fn they_follow_what_changes() {
        let rates = CopyRates::default();
        let chooses = || rates.choose((1 << 20, Contents::Unknown), KernelCopy::Halves, 0);
        let_come(&rates, PERIOD, 1000, 3000);
        assert_eq!(chooses(), CopyRoute::Ring);
        let_come(&rates, 1, 2000, 3000);
        assert_eq!(chooses(), CopyRoute::Kernel, "the ring has become slow");
        let_come(&rates, PERIOD, 1000, 3000);
        assert_eq!(chooses(), CopyRoute::Ring, "a trial has found that it is fast again");
    }

    #[test]
    fn the_other_way_is_tried_soon_when_the_usual_one_has_become_slow() {
        let rates = CopyRates::default();
        let_come(&rates, PERIOD / 2, 9000, 3000);
        let_come(&rates, 100, 1000, 3000);
        assert_eq!(rates.so_far().route, Some(CopyRoute::Kernel), "nothing has shown that the ring is fast");
        let_come(&rates, TRIAL.len() as u32 + 3, 1000, 6000);
        assert_eq!(rates.so_far().route, Some(CopyRoute::Ring));
        let few = TRIAL.len() as u32;
        assert_eq!(let_come(&rates, PERIOD, 1000, 6000), PERIOD - few, "once");
    }

    #[test]
    fn a_message_takes_as_long_as_the_slower_rank_does() {
        let rates = CopyRates::default();
        let chooses = |by_kernel, own| rates.choose((1 << 20, Contents::Unknown), by_kernel, own);
        let_come(&rates, PERIOD, 1200, 3000);
        assert_eq!(chooses(KernelCopy::Halves, 0), CopyRoute::Ring);
        assert_eq!(chooses(KernelCopy::Write, 2), CopyRoute::Ring);
        (0..3).for_each(|_| rates.filled(SAMPLE, 2000));
        assert_eq!(
            chooses(KernelCopy::Halves, 0),
            CopyRoute::Ring,
            "the peer's time counts, not this rank's"
        );
        assert_eq!(chooses(KernelCopy::Write, 2), CopyRoute::Kernel, "this rank has two copies to make");
        rates.peer_fills(rates.fill_time());
        assert_eq!(chooses(KernelCopy::Halves, 0), CopyRoute::Kernel);
        (0..3).for_each(|_| rates.written(SAMPLE, 4000));
        assert_eq!(chooses(KernelCopy::Write, 1), CopyRoute::Ring, "one copy behind the other: 3200");
        assert_eq!(chooses(KernelCopy::Write, 2), CopyRoute::Kernel, "several wait for each other: 4800");
        (0..3).for_each(|_| rates.written(SAMPLE, 6000));
        assert_eq!(chooses(KernelCopy::Halves, 0), CopyRoute::Ring, "the peer's writes are slow");
        assert_eq!(chooses(KernelCopy::Read, 0), CopyRoute::Ring);
        // A peer may say anything.
        (0..3).for_each(|_| rates.written(usize::MAX, u64::MAX));
        (0..3).for_each(|_| rates.written(0, 0));
        rates.peer_fills(u32::MAX);
        (0..3).for_each(|_| rates.filled(1, u64::MAX));
        let _ = (chooses(KernelCopy::Halves, 2), rates.so_far());
    }

    #[test]
    fn what_a_program_stores_and_looks_at_costs_the_kernel_more() {
        let rates = CopyRates::default();
        let chooses = |contents, by_kernel, own| rates.choose((1 << 20, contents), by_kernel, own);
        let_come(&rates, PERIOD, 1000, 2200);
        (0..3).for_each(|_| rates.filled(SAMPLE, 600));
        (0..3).for_each(|_| rates.written(SAMPLE, 1600));
        assert_eq!(chooses(Contents::Unknown, KernelCopy::Halves, 0), CopyRoute::Kernel, "1100");
        assert_eq!(chooses(Contents::Changed, KernelCopy::Halves, 0), CopyRoute::Ring, "2200");
        assert_eq!(
            chooses(Contents::Unknown, KernelCopy::Write, 1),
            CopyRoute::Kernel,
            "1600, and the ring as much"
        );
        assert_eq!(chooses(Contents::Changed, KernelCopy::Write, 1), CopyRoute::Ring, "2400");
        assert_eq!(
            chooses(Contents::Changed, KernelCopy::Write, 2),
            CopyRoute::Kernel,
            "2400, and the ring as much"
        );
    }

    #[test]
    fn what_nobody_touches_is_left_to_the_kernel_unless_the_ring_is_much_faster() {
        let rates = CopyRates::default();
        let come = |messages, ring, kernel| let_come_of(&rates, Contents::Same, messages, ring, kernel);
        assert_eq!(come(TRIAL.start, 1000, 3000), 0, "the first ones");
        assert_eq!(come(TRIAL.len() as u32, 1000, 3000), TRIAL.len() as u32, "a trial");
        assert_eq!(come(PERIOD - TRIAL.end, 1000, 3000), 0, "1000 of 1500");
        let but = 1 + TRIAL.len() as u32;
        assert_eq!(
            come(SOONEST, 1000, 4000),
            SOONEST - but,
            "1000 of 2000, which the first has shown; and a trial"
        );
        assert_eq!(rates.so_far().route, Some(CopyRoute::Ring));
        assert!(come(2 * SOONEST, 1000, 3000) <= SOONEST, "the kernel is tried soon");
        assert_eq!(rates.so_far().route, Some(CopyRoute::Kernel));
    }

    #[test]
    fn messages_are_invited_up_to_the_next_trial_while_the_ring_is_the_faster_way() {
        let (rates, sender) = (CopyRates::default(), CopyRates::default());
        assert!(!sender.goes_unasked(), "not before the receiver has said so");
        let invited_after = |messages| {
            let_come(&rates, messages, 1000, 3000);
            let _ = rates.choose((1 << 20, Contents::Unknown), KernelCopy::Halves, 0);
            rates.invites()
        };
        assert_eq!(invited_after(1), TRIAL.start - 2, "the first ones go through the ring anyway");
        assert_eq!(invited_after(TRIAL.start - 2), 0, "the next one is a trial");
        assert_eq!(invited_after(1), 0, "a trial");
        assert_eq!(invited_after(TRIAL.len() as u32), MOST_UNASKED);
        let_come(&rates, PERIOD, 9000, 3000);
        let _ = rates.choose((1 << 20, Contents::Unknown), KernelCopy::Halves, 0);
        assert_eq!(rates.invites(), 0, "the kernel is faster");
        for (said, go) in [(0, 0), (3, 3), (u32::MAX, MOST_UNASKED)] {
            sender.invited(said);
            assert_eq!((0..100).filter(|_| sender.goes_unasked()).count() as u32, go);
        }
    }

    #[test]
    fn one_copy_that_was_interrupted_and_short_ones_change_nothing() {
        let rates = CopyRates::default();
        let_come(&rates, PERIOD, 1000, 3000);
        let is_ring = || rates.choose((1 << 20, Contents::Unknown), KernelCopy::Halves, 0) == CopyRoute::Ring;
        rates.out_of_ring.took(SAMPLE, 9000);
        assert!(is_ring());
        for _ in 0..2 {
            rates.time(CopyRoute::Ring, LONG - 1, || std::thread::sleep(std::time::Duration::from_millis(1)));
        }
        assert!(is_ring());
        for _ in 0..2 {
            rates.time(CopyRoute::Ring, SAMPLE, || std::thread::sleep(std::time::Duration::from_millis(1)));
        }
        assert!(!is_ring(), "that were two of three");
    }
}
