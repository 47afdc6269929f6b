//! The words of an endpoint of the libfabric provider, and the lock of a domain: nobody takes an endpoint, a sender or
//! a region for there whose words are not, and no two threads are in a domain.
//!
//! Run:   .ci/loom fabric
//! Bound: 2 threads, every interleaving with at most 3 preemptions (LOOM_MAX_PREEMPTIONS raises that).
//! Time:  a second.
//!
//! Weakened, each of these makes at least one model fail (checked by editing the line and running, one at a time):
//!
//! - the Release and the Acquire of `Words::open` and `is`, `close` and `is_closed`, and the fences there, `publish`
//!   (of the state, and of the count of changes) and `state`, `changes`;
//! - of `arm` and `take_armed`;
//! - of `free`, `give_up` and `claim`;
//! - the Release of `tell` and the Acquire of `known`;
//! - the Release fence of `forget`, the Acquire fence of `known` and its second look at the generation;
//! - the fences of `cancel` and `cancels`;
//! - the Release of `Locked::drop` and the Acquire of `Lock::wait`.
#![cfg(perusal_loom)]

use loom::sync::Arc;
use loom::thread;
use perusal::internals::sync::{AtomicU32, Ordering};

#[path = "../crates/perusal-fabric/src/lock.rs"]
#[allow(dead_code)]
mod lock;
#[path = "../crates/perusal-fabric/src/memory/words.rs"]
#[allow(dead_code)]
mod words;

use lock::Lock;
use words::{CLOSED, Known, READY, Words};

fn check(model: impl Fn() + Send + Sync + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = builder.preemption_bound.or(Some(3));
    builder.check(model);
}

/// A word that is written and read without an order of its own.
#[derive(Default)]
struct Plain(AtomicU32);

impl Plain {
    fn set(&self, value: u32) {
        // Relaxed: what is to be shown is that an edge of another word orders it.
        self.0.store(value, Ordering::Relaxed);
    }
    fn get(&self) -> u32 {
        // Relaxed: see `set`.
        self.0.load(Ordering::Relaxed)
    }
}

fn with_words(model: impl Fn(Arc<(Words, Plain)>, Arc<(Words, Plain)>) + Send + Sync + 'static) {
    check(move || {
        let words = Arc::new((Words::new(), Plain::default()));
        model(words.clone(), words);
    });
}

#[test]
fn an_endpoint_that_is_open_has_all_its_words() {
    with_words(|own, peer| {
        let peer = thread::spawn(move || {
            if peer.0.is(7) {
                assert!(peer.0.uses_membarrier());
            }
        });
        own.0.open(7, true);
        peer.join().unwrap();
    });
}

#[test]
fn whoever_sees_an_endpoint_closed_sees_what_came_before() {
    with_words(|own, peer| {
        own.0.open(7, true);
        let peer = thread::spawn(move || {
            if peer.0.is_closed() {
                assert_eq!(peer.1.get(), 1);
            }
        });
        own.1.set(1);
        own.0.close();
        peer.join().unwrap();
    });
}

#[test]
fn whoever_has_read_what_came_after_the_end_sees_an_endpoint_closed() {
    with_words(|own, peer| {
        own.0.open(7, true);
        let peer = thread::spawn(move || {
            let seen = peer.1.get();
            if !peer.0.is_closed() {
                assert_eq!(seen, 0);
            }
        });
        own.0.close();
        own.1.set(1);
        peer.join().unwrap();
    });
}

#[test]
fn whoever_wakes_an_owner_knows_its_pipe() {
    with_words(|own, peer| {
        let peer = thread::spawn(move || {
            if peer.0.take_armed() {
                assert_eq!(peer.0.pipe(), Some((3, 4)));
            }
        });
        own.0.arm(3, 4);
        peer.join().unwrap();
    });
}

#[test]
fn a_slot_that_is_given_up_or_taken_back_passes_on_what_its_owner_did() {
    for given_up in [true, false] {
        with_words(move |own, peer| {
            let at = peer.0.claim((1, 2, 3)).unwrap();
            peer.0.publish(at, CLOSED);
            let (first, next) = (own.clone(), own.clone());
            let first = thread::spawn(move || {
                if let (Some(at), true) = (first.0.claim((4, 5, 6)), given_up) {
                    first.0.give_up(at);
                }
            });
            let next = thread::spawn(move || {
                if next.0.claim((7, 8, 9)).is_some() {
                    assert_eq!(next.1.get(), 1, "the owner's end has retired");
                }
            });
            own.1.set(1);
            own.0.free(at);
            if !given_up && own.0.claimer(at) == Some(4) {
                own.0.take_back(at, 4);
            }
            [first, next].into_iter().for_each(|thread| thread.join().unwrap());
        });
    }
}

#[test]
fn a_sender_that_is_there_has_a_name() {
    with_words(|own, peer| {
        let owner = thread::spawn(move || {
            if own.0.state(0) == READY {
                assert_eq!(own.0.sender(0), (1, 2, 3));
            }
        });
        let at = peer.0.claim((1, 2, 3)).unwrap();
        peer.0.publish(at, READY);
        owner.join().unwrap();
    });
}

#[test]
fn a_slot_whose_change_is_counted_has_changed() {
    with_words(|own, peer| {
        let owner = thread::spawn(move || match own.0.changes() {
            0 => {}
            1 => assert!([READY, CLOSED].contains(&own.0.state(0))),
            _ => assert_eq!(own.0.state(0), CLOSED),
        });
        let at = peer.0.claim((1, 2, 3)).unwrap();
        peer.0.publish(at, READY);
        peer.0.publish(at, CLOSED);
        owner.join().unwrap();
    });
}

#[test]
fn a_slot_is_claimed_again_only_when_its_owner_is_done_with_it() {
    with_words(|own, peer| {
        let at = peer.0.claim((1, 2, 3)).unwrap();
        peer.0.publish(at, CLOSED);
        let next = thread::spawn(move || {
            if peer.0.claim((4, 5, 6)).is_some() {
                assert_eq!(peer.1.get(), 1, "the owner's end has retired");
            }
        });
        own.1.set(1);
        own.0.free(at);
        next.join().unwrap();
    });
}

const FIRST: Known = Known { generation: 0, base: 1, at: 10, len: 100, access: 3 };
const SECOND: Known = Known { generation: 1, base: 2, at: 20, len: 200, access: 2 };

#[test]
fn a_region_is_known_whole_or_not_at_all() {
    with_words(|own, peer| {
        let origin = thread::spawn(move || {
            if let Some(known) = peer.0.known(5) {
                assert_eq!(known, FIRST);
            }
        });
        assert!(own.0.tell(5, &FIRST));
        origin.join().unwrap();
    });
}

#[test]
fn a_region_that_takes_the_place_of_another_is_not_mixed_with_it() {
    with_words(|own, peer| {
        assert!(own.0.tell(5, &FIRST));
        let origin = thread::spawn(move || {
            if let Some(known) = peer.0.known(5) {
                assert!([FIRST, SECOND].contains(&known), "{known:?}");
            }
        });
        own.0.forget(5, 1);
        assert!(own.0.tell(5, &SECOND));
        origin.join().unwrap();
    });
}

#[test]
fn whoever_copies_what_came_later_sees_that_the_announcement_was_cancelled() {
    with_words(|own, peer| {
        let peer = thread::spawn(move || {
            let copied = peer.1.get();
            if peer.0.cancels() == 0 {
                assert_eq!(copied, 0);
            }
        });
        own.0.cancel(1);
        own.1.set(1);
        peer.join().unwrap();
    });
}

#[test]
fn one_thread_at_a_time_is_in_a_domain() {
    check(|| {
        let domain = Arc::new((Lock::new(true), Plain::default()));
        let count = |domain: &(Lock, Plain)| {
            let _locked = domain.0.lock();
            domain.1.set(domain.1.get() + 1);
        };
        let other = domain.clone();
        let other = thread::spawn(move || count(&other));
        count(&domain);
        other.join().unwrap();
        let _locked = domain.0.lock();
        assert_eq!(domain.1.get(), 2);
    });
}
