//! Who has something for me; sleeping and waking across processes.
//!
//! Each rank has one [`Doorbell`]: a bit for every peer, and a word to sleep on. Looking at P rings costs P cache misses;
//! looking at the bits costs one that is nearly always a hit. A rank *watches* the rings of the peers it is in
//! conversation with (ring rule 7), and those peers never touch the bell. Where 10 to 256 ranks outnumber CPUs nothing is watched: each
//! sender has a count in the bell, says there how much it has committed, and the owner looks at all counts, a line for 32 peers.
//!
//! # Rules
//!
//! Three pairs of a store and a later load must not pass each other, each side storing what the other loads:
//!
//! | | side A stores, then loads | side B stores, then loads |
//! |---|---|---|
//! | Doorbell rule 1 | sender: commit word, `watched` | receiver: `watched` = UNWATCHED, commit word |
//! | Doorbell rule 2 | consumer: heads, `wants_credit` | producer: `wants_credit`, heads |
//! | Doorbell rule 3 | ringer: a bit, `state` | sleeper: `state` = ASLEEP, bits (and what else it waits for) |
//!
//! Rules 1 and 2 are on every message's way, so their side A has [`AsymmetricFence::light_barrier`], which costs nothing where the
//! kernel has `membarrier`, and side B, which is about to sleep or to look elsewhere, pays with [`AsymmetricFence::heavy_barrier`].
//! Doorbell rule 6 is of the same kind. Rule 3 is only entered by who must ring: both sides use a full fence.
//!
//! - **Doorbell rule 4.** A bit is set by the peer it names and taken by the bell's owner. Who takes it looks at that
//!   peer's ring and at what is deferred for that peer.
//! - **Doorbell rule 6.** Where news is counted, a sender stores how much it has committed, then loads `state`, with [`AsymmetricFence::light_barrier`]
//!   in between, and wakes who sleeps; the sleeper stores `state` = ASLEEP, then loads all counts, behind [`AsymmetricFence::heavy_barrier`]. A count
//!   is written by the peer it names alone.
//! - **Doorbell rule 5.** Only the owner sleeps; anyone may wake. A wake-up without a reason is allowed, a lost one is not.

use crate::limits::APART;
use crate::sync::{AsymmetricFence, AtomicU16, AtomicU64, Futex, Ordering, fence};
use core::ptr::NonNull;
use core::time::Duration;

const AWAKE: u32 = 0;
const ASLEEP: u32 = 1;

/// A view of a bell in shared memory. Its owner takes bits and sleeps; everyone else rings.
#[derive(Debug, Clone, Copy)]
pub struct Doorbell {
    state: NonNull<Futex>,
    bits: NonNull<AtomicU64>,
    words: usize,
    /// As many as there are peers.
    counts: NonNull<AtomicU16>,
    peers: usize,
}

// SAFETY: all access goes through atomics.
unsafe impl Send for Doorbell {}
// SAFETY: as above.
unsafe impl Sync for Doorbell {}

impl Doorbell {
    /// Bytes of a bell for `peers` peers: the sleeper's word, 128 bytes further the bits, and as far behind them the counts.
    pub const fn bytes(peers: usize) -> usize {
        Self::counts_at(peers) + (peers * size_of::<u16>()).next_multiple_of(APART)
    }

    const fn counts_at(peers: usize) -> usize {
        APART + (peers.div_ceil(64) * 8).next_multiple_of(APART)
    }

    /// A bell over `bytes(peers)` bytes at `base`.
    ///
    /// # Safety
    ///
    /// The bytes are valid as long as any copy of the bell lives, 128-byte aligned, zeroed before the first use by
    /// anybody, and touched by nothing but bells over the same place.
    #[cfg(not(perusal_loom))]
    pub unsafe fn over(base: NonNull<u8>, peers: usize) -> Self {
        // SAFETY: `APART` lies within the bytes that the caller promises.
        let bits = unsafe { base.add(APART) }.cast();
        // SAFETY: as above.
        let counts = unsafe { base.add(Self::counts_at(peers)) }.cast();
        Self { state: base.cast(), bits, words: peers.div_ceil(64), counts, peers }
    }

    /// Under loom words cannot overlay bytes; whole engines are not modelled.
    ///
    /// # Safety
    ///
    /// It is never called.
    #[cfg(perusal_loom)]
    pub unsafe fn over(_: NonNull<u8>, _: usize) -> Self {
        unreachable!("models use `over_parts`")
    }

    /// A bell over words that live elsewhere: for tests and loom.
    ///
    /// # Safety
    ///
    /// `state`, `bits` and `counts` outlive every copy of the bell.
    pub unsafe fn over_parts(state: &Futex, bits: &[AtomicU64], counts: &[AtomicU16]) -> Self {
        let (first, counts_at) = (NonNull::from(&bits[0]), NonNull::from(&counts[0]));
        Self {
            state: NonNull::from(state),
            bits: first,
            words: bits.len(),
            counts: counts_at,
            peers: counts.len(),
        }
    }

    #[inline(always)]
    fn state(&self) -> &Futex {
        // SAFETY: valid by the promise given to the constructor; made of atomics.
        unsafe { self.state.as_ref() }
    }

    #[inline(always)]
    fn word(&self, at: usize) -> &AtomicU64 {
        debug_assert!(at < self.words);
        // SAFETY: `at < words`, all of which the constructor was promised.
        unsafe { self.bits.add(at).as_ref() }
    }

    #[inline(always)]
    fn count(&self, peer: usize) -> &AtomicU16 {
        assert!(peer < self.peers);
        // SAFETY: `peer < peers`, all of which the constructor was promised.
        unsafe { self.counts.add(peer).as_ref() }
    }

    /// Says how many records `from` has `committed` so far, modulo 2¹⁶, where the owner looks at counts. The caller issues
    /// [`AsymmetricFence::light_barrier`] and asks [`Self::is_asleep`] (doorbell rule 6).
    #[inline(always)]
    pub fn say(&self, from: usize, committed: u64) {
        // Release: edge 11, pairs with Acquire in `said` and `news`: who sees the count finds the records.
        self.count(from).store(committed as u16, Ordering::Release);
    }

    /// How much peer `from` says that it has committed, modulo 2¹⁶.
    #[inline(always)]
    pub fn said(&self, from: usize) -> u16 {
        // Acquire: edge 11, pairs with Release in `say`.
        self.count(from).load(Ordering::Acquire)
    }

    /// The peers whose count is not the one in `heard`, with it. `heard` has one for every peer.
    #[inline(always)]
    pub fn news(&self, heard: &[u16]) -> impl Iterator<Item = (usize, u16)> {
        assert!(heard.len() <= self.peers);
        // SAFETY: there are as many counts as peers, all of which the constructor was promised; made of atomics.
        let counts = unsafe { core::slice::from_raw_parts(self.counts.as_ptr(), heard.len()) };
        counts.iter().zip(heard).enumerate().filter_map(|(peer, (count, &heard))| {
            // Acquire: edge 11, pairs with Release in `say`: who sees the count finds the records.
            let said = count.load(Ordering::Acquire);
            (said != heard).then_some((peer, said))
        })
    }

    /// Whether the owner sleeps, and must be woken.
    #[inline(always)]
    pub fn is_asleep(&self) -> bool {
        // Relaxed: ordered behind the caller's store by its fence; `wake_after_fence` confirms it.
        self.state().word().load(Ordering::Relaxed) == ASLEEP
    }

    /// Number of 64-bit words of bits.
    #[inline(always)]
    pub fn words(&self) -> usize {
        self.words
    }

    /// Says that peer `from` has something, and wakes the owner if it sleeps.
    pub fn ring(&self, from: usize) {
        // Release: edge 6, pairs with Acquire in `take`: what `from` committed is there to be found.
        self.word(from / 64).fetch_or(1 << (from % 64), Ordering::Release);
        self.wake();
    }

    /// Wakes the owner if it sleeps (doorbell rule 3, side A).
    pub fn wake(&self) {
        fence(Ordering::SeqCst);
        self.wake_after_fence();
    }

    /// As [`Self::wake`], of a caller that has executed the SeqCst fence.
    #[inline]
    pub fn wake_after_fence(&self) {
        let word = self.state().word();
        // Relaxed load: the caller's fence orders it behind the caller's store. Release swap: edge 7, pairs with Acquire in
        // `sleep`.
        if word.load(Ordering::Relaxed) == ASLEEP && word.swap(AWAKE, Ordering::Release) == ASLEEP {
            self.state().wake();
        }
    }

    /// Whether any peer of word `at` has rung.
    #[inline(always)]
    pub fn rung(&self, at: usize) -> bool {
        // Relaxed: a hint; `take` acquires.
        self.word(at).load(Ordering::Relaxed) != 0
    }

    /// Whether any peer has rung.
    #[inline(always)]
    pub fn any(&self) -> bool {
        (0..self.words).any(|at| self.rung(at))
    }

    /// Takes the bits of word `at`; bit `b` is peer `64 * at + b`.
    pub fn take(&self, at: usize) -> u64 {
        // Acquire: edge 6, pairs with Release in `ring`.
        self.word(at).swap(0, Ordering::Acquire)
    }

    /// Sleeps until woken, `timeout` at the longest, unless a bit is set or `reason` says that there is something
    /// to do. The caller has unwatched every ring; `reason` looks at them (doorbell rules 1 and 2, side B).
    /// Returns whether it slept.
    pub fn sleep(&self, fences: AsymmetricFence, timeout: Duration, reason: impl FnOnce() -> bool) -> bool {
        let word = self.state().word();
        // Ordered before the loads below by the fence (doorbell rule 3, side B). Acquire: edge 7, pairs with Release in `wake`,
        // whose exchange may come late and find us awake: this ASLEEP comes after it.
        word.swap(ASLEEP, Ordering::Acquire);
        fences.heavy_barrier();
        fence(Ordering::SeqCst);
        let sleep = !self.any() && !reason();
        if sleep {
            self.state().wait(ASLEEP, timeout);
        }
        // Acquire: edge 7, pairs with Release in `wake`: the next time we are ASLEEP comes after this waking.
        word.swap(AWAKE, Ordering::Acquire);
        sleep
    }
}

#[cfg(all(test, not(perusal_loom)))]
mod tests {
    use super::*;
    use crate::sync::Arc;

    type Parts = (Futex, Vec<AtomicU64>, Vec<AtomicU16>);

    fn bell(peers: usize) -> (Doorbell, Arc<Parts>) {
        let parts = Arc::new((
            Futex::default(),
            (0..peers.div_ceil(64)).map(|_| AtomicU64::new(0)).collect::<Vec<_>>(),
            (0..peers).map(|_| AtomicU16::new(0)).collect::<Vec<_>>(),
        ));
        // SAFETY: the caller keeps `parts` alive.
        (unsafe { Doorbell::over_parts(&parts.0, &parts.1, &parts.2) }, parts)
    }

    #[test]
    fn a_count_is_its_peers_own_and_goes_round() {
        let (bell, _parts) = bell(130);
        bell.say(129, 0x1_0003);
        bell.say(1, 0x1_ffff);
        assert_eq!([1, 129, 0].map(|peer| bell.said(peer)), [0xffff, 3, 0]);
        assert!(!bell.any() && !bell.is_asleep());
    }

    #[test]
    fn bits_and_counts_of_all_peers_lie_within_the_bell() {
        for peers in [1_usize, 63, 64, 65, 1000, 4096] {
            let bits = APART + peers.div_ceil(64) * 8;
            assert!(
                Doorbell::counts_at(peers) >= bits
                    && Doorbell::bytes(peers) >= Doorbell::counts_at(peers) + 2 * peers
            );
        }
    }

    #[test]
    fn a_bit_names_its_peer_and_is_taken_once() {
        let (bell, _parts) = bell(130);
        bell.ring(129);
        assert!(bell.any() && !bell.rung(0));
        assert_eq!(bell.take(2), 1 << 1);
        assert!(!bell.any());
    }

    #[test]
    fn a_rung_bell_does_not_sleep() {
        let (bell, _parts) = bell(2);
        bell.ring(1);
        assert!(!bell.sleep(AsymmetricFence::Processor, Duration::from_secs(3600), || false));
    }

    #[test]
    fn a_sleeper_is_woken_by_a_ring() {
        let (bell, parts) = bell(2);
        let ringer = std::thread::spawn(move || {
            let parts = parts;
            std::thread::sleep(Duration::from_millis(20));
            bell.ring(0);
            drop(parts);
        });
        while !bell.any() {
            bell.sleep(AsymmetricFence::Processor, Duration::from_secs(3600), || false);
        }
        ringer.join().expect("ringing does not fail");
    }
}
