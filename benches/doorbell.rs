//! What a doorbell costs: `cargo bench --bench doorbell [-- NAME]`.
//!
//! Each part of it alone: ringing for an owner that is awake, finding nothing, the fences of both kinds, and a
//! sleeper's way there and back: two threads that wake each other in turn,
//! so that each turn is two futex wake-ups and two sleeps.

use divan::Bencher;
use perusal::internals::doorbell::Doorbell;
use perusal::internals::limits::APART;
use perusal::internals::sync::AsymmetricFence;
use std::alloc::{Layout, alloc_zeroed};
use std::fmt;
use std::hint::black_box;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

const PEERS: usize = 256;

/// A bell as ranks have it, kept for the rest of the process.
fn bell() -> Doorbell {
    let layout =
        Layout::from_size_align(Doorbell::bytes(PEERS), APART).expect("a size of some hundred bytes");
    // SAFETY: the layout is not empty.
    let base = NonNull::new(unsafe { alloc_zeroed(layout) }).expect("memory");
    // SAFETY: as many zeroed, aligned bytes, never freed, and known to this bell alone.
    unsafe { Doorbell::over(base, PEERS) }
}

/// Nobody has rung: a look at the flags of all peers.
#[divan::bench]
fn look(bencher: Bencher<'_, '_>) {
    let bell = bell();
    bencher.bench_local(|| black_box(&bell).has_any_flag());
}

/// For an owner that is awake.
#[divan::bench]
fn ring(bencher: Bencher<'_, '_>) {
    let bell = bell();
    bencher.bench_local(|| black_box(&bell).ring(3));
}

#[divan::bench]
fn ring_and_take(bencher: Bencher<'_, '_>) {
    let bell = bell();
    bencher.bench_local(|| {
        black_box(&bell).ring(3);
        black_box(bell.take_flags(0))
    });
}

/// How the store-load fence is divided between a sender and a receiver that goes to sleep.
#[derive(Clone, Copy)]
enum Kind {
    BothSides,
    Membarrier,
}

const KINDS: [Kind; 2] = [Kind::BothSides, Kind::Membarrier];

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::BothSides => "both sides fence",
            Self::Membarrier => "membarrier, the sleeper's",
        })
    }
}

impl Kind {
    /// None where the kernel has no membarrier.
    fn fences(self) -> Option<AsymmetricFence> {
        match self {
            Self::BothSides => Some(AsymmetricFence::Processor),
            Self::Membarrier => {
                AsymmetricFence::join(false).inspect_err(|error| println!("membarrier(2): {error}")).ok()
            }
        }
    }
}

#[divan::bench(args = KINDS)]
fn senders_fence(bencher: Bencher<'_, '_>, kind: Kind) {
    if let Some(fences) = kind.fences() {
        bencher.bench_local(|| fences.light_barrier());
    }
}

#[divan::bench(args = KINDS)]
fn sleepers_fence(bencher: Bencher<'_, '_>, kind: Kind) {
    if let Some(fences) = kind.fences() {
        bencher.bench_local(|| fences.heavy_barrier());
    }
}

/// Two threads that wait for each other, asleep.
#[divan::bench(args = KINDS)]
fn wake_and_be_woken(bencher: Bencher<'_, '_>, kind: Kind) {
    const NEVER: Duration = Duration::from_secs(1);
    let Some(fences) = kind.fences() else { return };
    let bells = [bell(), bell()];
    let over = AtomicU64::new(0);
    let wait = |own: &Doorbell| {
        while own.take_flags(0) == 0 {
            own.sleep(fences, NEVER, || false);
        }
    };
    thread::scope(|scope| {
        scope.spawn(|| {
            loop {
                wait(&bells[1]);
                bells[0].ring(1);
                // Acquire: pairs with the Release below; a ring follows it in any case.
                if over.load(Ordering::Acquire) == 1 {
                    return;
                }
            }
        });
        bencher.bench_local(|| {
            bells[1].ring(0);
            wait(&bells[0]);
        });
        over.store(1, Ordering::Release);
        bells[1].ring(0);
    });
}

fn main() {
    divan::main();
}
