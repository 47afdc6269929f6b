//! Doorbells: how a rank learns which peers have something for it, and how it sleeps and wakes across processes.
//!
//! Each rank has one [`Doorbell`]: a flag for every peer, a count for every peer, and a word to sleep on. To poll P
//! rings costs P cache misses; to look at the flags costs one access that is nearly always a hit. There are two
//! notification modes:
//!
//! - *Flag.* A rank polls the rings of the peers that it is in conversation with (ring rule 7), and those peers never
//!   touch the doorbell. The others set their flag there.
//! - *Counter.* Where 10 to 256 ranks outnumber CPUs nothing is polled: each sender publishes in the doorbell how many
//!   records it has committed, and the owner compares all counts, a line for 32 peers.
//!
//! # Rules
//!
//! Four pairs of a store and a later load must not pass each other, each side storing what the other loads:
//!
//! | | side A stores, then loads | side B stores, then loads |
//! |---|---|---|
//! | Doorbell rule 1 | sender: commit word, `notification` | receiver: `notification` = NOTIFY, commit word |
//! | Doorbell rule 2 | consumer: heads, `wants_credit` | producer: `wants_credit`, heads |
//! | Doorbell rule 3 | ringer: a flag, `state` | sleeper: `state` = ASLEEP, flags (and what else it waits for) |
//! | Doorbell rule 6 | sender: its count, `state` | sleeper: `state` = ASLEEP, all counts |
//!
//! Rules 1, 2 and 6 are on every message's way. So their side A has [`AsymmetricFence::light_barrier`], which costs
//! nothing where the kernel has `membarrier`. Side B, which is about to sleep or to drop a ring from those it polls,
//! pays with [`AsymmetricFence::heavy_barrier`]. Rule 3 is entered only by a rank that must ring:
//! both sides use a processor fence.
//!
//! - **Doorbell rule 4.** A flag is set by the peer it names and taken by the doorbell's owner, who then looks at that
//!   peer's ring and at what waits for room to that peer. A count is written by the peer it names alone.
//! - **Doorbell rule 5.** Only the owner sleeps; anyone may wake it.
//!   A wake-up without a reason is allowed, a lost one is not.

use crate::limits::APART;
use crate::sync::{AsymmetricFence, AtomicU16, AtomicU64, Futex, Ordering, fence};
use core::ptr::NonNull;
use core::time::Duration;

const AWAKE: u32 = 0;
const ASLEEP: u32 = 1;

/// A view of a doorbell in shared memory. Its owner takes flags and sleeps; everyone else rings.
#[derive(Debug, Clone, Copy)]
pub struct Doorbell {
    state: NonNull<Futex>,
    /// 64 flags each.
    flags: NonNull<AtomicU64>,
    words: usize,
    /// One for each peer.
    counts: NonNull<AtomicU16>,
    peers: usize,
}

// SAFETY: `Doorbell` points to atomics only, which any thread may use,
// and which outlive every copy (promised to the constructors).
unsafe impl Send for Doorbell {}
// SAFETY: `Doorbell` points to atomics only, which threads may use at once,
// and which outlive every copy (promised to the constructors).
unsafe impl Sync for Doorbell {}

impl Doorbell {
    /// Bytes of a doorbell for `peers` peers: the sleeper's word, 128 bytes further the flags,
    /// and as far behind them the counts.
    pub const fn bytes(peers: usize) -> usize {
        Self::counts_at(peers) + (peers * size_of::<u16>()).next_multiple_of(APART)
    }

    const fn counts_at(peers: usize) -> usize {
        APART + (peers.div_ceil(64) * 8).next_multiple_of(APART)
    }

    /// A doorbell over `bytes(peers)` bytes at `base`.
    ///
    /// # Safety
    ///
    /// The bytes are valid as long as any copy of the doorbell lives, 128-byte aligned, zeroed before the first use by
    /// anybody, and touched by nothing but doorbells over the same place.
    #[cfg(not(perusal_loom))]
    pub unsafe fn over(base: NonNull<u8>, peers: usize) -> Self {
        // SAFETY: `APART` and `counts_at(peers)` are less than `bytes(peers)`, so both lie within the bytes at `base`.
        let (flags, counts) = unsafe { (base.add(APART), base.add(Self::counts_at(peers))) };
        Self {
            state: base.cast(),
            flags: flags.cast(),
            words: peers.div_ceil(64),
            counts: counts.cast(),
            peers,
        }
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

    /// A doorbell over words that live elsewhere: for tests and loom.
    ///
    /// # Safety
    ///
    /// `state`, `flags` and `counts` outlive every copy of the doorbell.
    pub unsafe fn over_parts(state: &Futex, flags: &[AtomicU64], counts: &[AtomicU16]) -> Self {
        let (first, counts_at) = (NonNull::from(flags).cast(), NonNull::from(counts).cast());
        Self {
            state: NonNull::from(state),
            flags: first,
            words: flags.len(),
            counts: counts_at,
            peers: counts.len(),
        }
    }

    #[inline(always)]
    fn state(&self) -> &Futex {
        // SAFETY: `state` is live as long as any copy of the doorbell (promised to the constructors),
        // and made of an atomic.
        unsafe { self.state.as_ref() }
    }

    #[inline(always)]
    fn word(&self, at: usize) -> &AtomicU64 {
        debug_assert!(at < self.words);
        // SAFETY: `at < words`, and `words` words at `flags` are live as long as any copy of the doorbell.
        unsafe { self.flags.add(at).as_ref() }
    }

    #[inline(always)]
    fn count(&self, peer: usize) -> &AtomicU16 {
        assert!(peer < self.peers);
        // SAFETY: `peer < peers`, and `peers` counts at `counts` are live as long as any copy of the doorbell.
        unsafe { self.counts.add(peer).as_ref() }
    }

    /// Publishes how many records `from` has `committed` so far, modulo 2¹⁶. The caller then executes
    /// [`AsymmetricFence::light_barrier`] and asks [`Self::is_asleep`] (doorbell rule 6).
    #[inline(always)]
    pub fn publish_count(&self, from: usize, committed: u64) {
        // Release: edge 11, pairs with Acquire in `count_of` and `changed_counts`: an owner that sees the count finds
        // the records.
        self.count(from).store(committed as u16, Ordering::Release);
    }

    /// Returns how many records `peer` has committed, modulo 2¹⁶.
    #[inline(always)]
    pub fn count_of(&self, peer: usize) -> u16 {
        // Acquire: edge 11, pairs with Release in `publish_count`: the records are there.
        self.count(peer).load(Ordering::Acquire)
    }

    /// Returns the peers whose count is not the one in `known`, each with its count. `known` has one for every peer.
    ///
    /// # Panics
    ///
    /// If `known` has more.
    #[inline(always)]
    pub fn changed_counts(&self, known: &[u16]) -> impl Iterator<Item = (usize, u16)> {
        assert!(known.len() <= self.peers);
        // SAFETY: `known.len() <= peers`, and `peers` counts, which are atomics,
        // are live as long as any copy of the doorbell.
        let counts = unsafe { core::slice::from_raw_parts(self.counts.as_ptr(), known.len()) };
        counts.iter().zip(known).enumerate().filter_map(|(peer, (count, &known))| {
            // Acquire: edge 11, pairs with Release in `publish_count`: the records are there.
            let count = count.load(Ordering::Acquire);
            (count != known).then_some((peer, count))
        })
    }

    /// Whether the owner sleeps, and must be woken.
    #[inline(always)]
    pub fn is_asleep(&self) -> bool {
        // Relaxed: ordered behind the caller's store by its barrier (doorbell rule 6); `wake_after_fence` looks again.
        self.state().word().load(Ordering::Relaxed) == ASLEEP
    }

    /// Number of 64-bit words of flags.
    #[inline(always)]
    pub fn words(&self) -> usize {
        self.words
    }

    /// Sets the flag of peer `from`, and wakes the owner if it sleeps.
    pub fn ring(&self, from: usize) {
        // Release: edge 6, pairs with Acquire in `take_flags`: what `from` committed is there to be found.
        self.word(from / 64).fetch_or(1 << (from % 64), Ordering::Release);
        self.wake();
    }

    /// Wakes the owner if it sleeps (doorbell rule 3, side A).
    pub fn wake(&self) {
        // Doorbell rule 3, side A: pairs with the fence in `sleep`.
        fence(Ordering::SeqCst);
        self.wake_after_fence();
    }

    /// As [`Self::wake`], for a caller that has executed the SeqCst fence.
    #[inline]
    pub fn wake_after_fence(&self) {
        let word = self.state().word();
        // Relaxed load: the caller's fence orders it behind the caller's store. Release swap: edge 7, pairs with
        // Acquire in `sleep`.
        if word.load(Ordering::Relaxed) == ASLEEP && word.swap(AWAKE, Ordering::Release) == ASLEEP {
            self.state().wake();
        }
    }

    /// Whether any peer of word `at` has set its flag.
    #[inline(always)]
    pub fn has_flags(&self, at: usize) -> bool {
        // Relaxed: a hint; `take_flags` acquires.
        self.word(at).load(Ordering::Relaxed) != 0
    }

    /// Whether any peer has set its flag.
    #[inline(always)]
    pub fn has_any_flag(&self) -> bool {
        (0..self.words).any(|at| self.has_flags(at))
    }

    /// Takes the flags of word `at`; bit `b` is peer `64 * at + b`.
    pub fn take_flags(&self, at: usize) -> u64 {
        // Acquire: edge 6, pairs with Release in `ring`.
        self.word(at).swap(0, Ordering::Acquire)
    }

    /// Sleeps until woken, `timeout` at the longest, unless a flag is set or `reason` finds something
    /// to do. Returns whether it slept.
    ///
    /// The caller has enabled the notification of every ring;
    /// `reason` looks at the rings and counts (doorbell rules 1, 2 and 6, side B).
    pub fn sleep(
        &self,
        asymmetric: AsymmetricFence,
        timeout: Duration,
        reason: impl FnOnce() -> bool,
    ) -> bool {
        let word = self.state().word();
        // Ordered before the loads below by the fence (doorbell rule 3, side B). Acquire: edge 7, pairs with Release in
        // `wake_after_fence`, whose exchange may come late and find us awake: this ASLEEP comes after it.
        word.swap(ASLEEP, Ordering::Acquire);
        // Doorbell rules 1, 2 and 6, side B.
        asymmetric.heavy_barrier();
        // Doorbell rule 3, side B: pairs with the fence in `wake`.
        fence(Ordering::SeqCst);
        let sleep = !self.has_any_flag() && !reason();
        if sleep {
            self.state().wait(ASLEEP, timeout);
        }
        // Acquire: edge 7, pairs with Release in `wake_after_fence`: the next time we are ASLEEP comes after this
        // wake-up.
        word.swap(AWAKE, Ordering::Acquire);
        sleep
    }
}

#[cfg(all(test, not(perusal_loom)))]
mod tests {
    use super::*;
    use crate::sync::Arc;

    type BellParts = (Futex, Vec<AtomicU64>, Vec<AtomicU16>);

    fn bell(peers: usize) -> (Doorbell, Arc<BellParts>) {
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
        bell.publish_count(129, 0x1_0003);
        bell.publish_count(1, 0x1_ffff);
        assert_eq!([1, 129, 0].map(|peer| bell.count_of(peer)), [0xffff, 3, 0]);
        assert!(!bell.has_any_flag() && !bell.is_asleep());
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
        assert!(bell.has_any_flag() && !bell.has_flags(0));
        assert_eq!(bell.take_flags(2), 1 << 1);
        assert!(!bell.has_any_flag());
    }

    #[test]
    fn a_rung_bell_does_not_sleep() {
        let (bell, _parts) = bell(2);
        bell.ring(1);
        assert!(!bell.sleep(AsymmetricFence::Processor, Duration::from_secs(3600), || false));
    }

    #[test]
    fn a_sleeper_is_woken_by_a_ring() {
        let (bell, _parts) = bell(2);
        std::thread::scope(|scope| {
            let ringing = scope.spawn(|| {
                std::thread::sleep(Duration::from_millis(20));
                bell.ring(0);
            });
            while !bell.has_any_flag() {
                bell.sleep(AsymmetricFence::Processor, Duration::from_secs(3600), || false);
            }
            ringing.join().unwrap();
        });
    }
}
