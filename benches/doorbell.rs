//! What a doorbell costs: `cargo bench --bench doorbell`.
//!
//! Each part of it alone: ringing for an owner that is awake, finding nothing, the fences of both kinds, and a sleeper's
//! way: two threads that wake each other in turn, so that each turn is one futex wake-up and one sleep.

mod common;

use common::{Time, asked_for, time};
use perusal::doorbell::{Bell, Fences};
use perusal::limits::APART;
use std::alloc::{Layout, alloc_zeroed};
use std::hint::black_box;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

const PEERS: usize = 256;

/// A bell as ranks have it, kept for the rest of the process.
fn bell() -> Bell {
    let layout = Layout::from_size_align(Bell::bytes(PEERS), APART).expect("a size of some hundred bytes");
    // SAFETY: the layout is not empty.
    let base = NonNull::new(unsafe { alloc_zeroed(layout) }).expect("memory");
    // SAFETY: as many zeroed, aligned bytes, never freed, and known to this bell alone.
    unsafe { Bell::over(base, PEERS) }
}

fn show(what: &str, time: Time) {
    println!("{what:<64}{time:>28}");
}

/// Two threads that wait for each other, asleep.
fn sleepers(fences: Fences) -> Time {
    const NEVER: Duration = Duration::from_secs(1);
    let bells = [bell(), bell()];
    let over = AtomicU64::new(0);
    let wait = |own: &Bell| {
        while own.take(0) == 0 {
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
        let time = time(|n| {
            for _ in 0..n {
                bells[1].ring(0);
                wait(&bells[0]);
            }
        });
        over.store(1, Ordering::Release);
        bells[1].ring(0);
        time.map(|trip| trip / 2.0)
    })
}

fn main() {
    if !asked_for() {
        return println!("run me with `cargo bench --bench doorbell`");
    }
    println!("{:<64}{:>28}", "ns: median (10 %, 90 %)", "");
    let bell = bell();
    show(
        "nobody has rung: a look at the bits of 256 peers",
        time(|n| (0..n).for_each(|_| _ = black_box(bell.any()))),
    );
    show("ring an owner that is awake", time(|n| (0..n).for_each(|_| black_box(&bell).ring(3))));
    show(
        "ring, and the owner takes the bit",
        time(|n| {
            (0..n).for_each(|_| {
                black_box(&bell).ring(3);
                _ = black_box(bell.take(0));
            });
        }),
    );
    let mut kinds = vec![("both sides fence", Fences::BothSides)];
    match Fences::join(false) {
        Ok(fences) => kinds.push(("membarrier on the sleeper's side", fences)),
        Err(error) => println!("{error}"),
    }
    for (name, fences) in kinds {
        show(&format!("{name}: the sender's part"), time(|n| (0..n).for_each(|_| fences.light())));
        show(&format!("{name}: the sleeper's part"), time(|n| (0..n).for_each(|_| fences.heavy())));
        show(&format!("{name}: ring, wake, and the sleeper runs"), sleepers(fences));
    }
}
