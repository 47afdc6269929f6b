//! PERUSE_Lock: exclusion, hand-over, no lost wake-up, and refusal for the whole of a callback.
//!
//! Run:   .ci/loom peruse_lock
//! Bound: interleavings of 2 threads with at most 4 preemptions, or 3; of three threads those with at most 1
//!        (LOOM_MAX_PREEMPTIONS raises that, of three threads to 2).
//! Time:  six seconds, all models together.
//!
//! Weakened, each of these makes at least one model fail (checked by editing the line and running, one at a time):
//!
//! - the wake-up in `PeruseLock::unlock`;
//! - the loop around the wait in `PeruseLock::lock`;
//! - the mark that `PeruseLock::lock` leaves on a refused callback;
//! - the look at the depth in `PeruseLock::unlock`;
//! - the exemption of the lock's owner in `Registry::release`.
//!
//! A lost wake-up shows as a deadlock, which loom reports; a failed exclusion as two threads in one `Plain`.
#![cfg(perusal_loom)]

use crate::support::Plain;
use crate::support::tool::{EVENT, registry_and_world};
use loom::thread;
use perusal::events::{CommEvents, EventRecord, LockError, PeruseLock, Registry, Spec, Subscription};
use std::sync::Arc;

fn model(preemptions: Option<usize>, body: impl Fn() + Send + Sync + 'static) {
    let asked = loom::model::Builder::new().preemption_bound.unwrap_or(0);
    // None is every interleaving, which nothing raises.
    model_with(preemptions.map(|own| own.max(asked)), body);
}

fn model_with(bound: Option<usize>, body: impl Fn() + Send + Sync + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = bound;
    builder.check(body);
}

/// Calls a callback on the calling thread.
fn happen(comm: &CommEvents) {
    let spec = Spec { comm: 1, ..Spec::NOTHING };
    comm.emit(&EventRecord::new(EVENT, 1, &spec));
}

#[test]
fn three_threads_exclude_each_other_and_all_get_their_turn() {
    // Three threads that wait on one word have too many orders for more than two. A thread that waits is no preemption.
    let asked = loom::model::Builder::new().preemption_bound.unwrap_or(1);
    model_with(Some(asked.clamp(1, 2)), || {
        let (registry, _world) = registry_and_world();
        let total = Arc::new(Plain::new(0));
        let turn = |registry: &Registry, total: &Plain<u32>| {
            registry.lock().lock().unwrap();
            total.update(|sum| *sum += 1);
            registry.lock().unlock().unwrap();
        };
        let others = [(); 2].map(|()| {
            let (registry, total) = (registry.clone(), total.clone());
            thread::spawn(move || turn(&registry, &total))
        });
        turn(&registry, &total);
        others.into_iter().for_each(|t| t.join().unwrap());
        registry.lock().lock().unwrap();
        assert_eq!(total.get(), 3);
    });
}

#[test]
fn nobody_unlocks_for_another() {
    model(Some(4), || {
        let (registry, _world) = registry_and_world();
        let total = Arc::new(Plain::new(0));
        let (theirs, sum) = (registry.clone(), total.clone());
        let stranger = thread::spawn(move || {
            assert_eq!(theirs.lock().unlock(), Err(LockError::NotOwner));
            theirs.lock().lock().unwrap();
            sum.update(|sum| *sum += 1);
            theirs.lock().unlock().unwrap();
        });
        registry.lock().lock().unwrap();
        total.update(|sum| *sum += 1);
        registry.lock().unlock().unwrap();
        assert_eq!(registry.lock().unlock(), Err(LockError::NotOwner));
        stranger.join().unwrap();
    });
}

#[test]
fn an_upcall_on_the_owners_thread_is_refused_from_first_to_last_while_others_wait_for_the_lock() {
    model(Some(3), || {
        let (registry, world) = registry_and_world();
        let total = Arc::new(Plain::new(0));
        let (inside, sum) = (registry.clone(), total.clone());
        let callback = move |_: &perusal::events::EventRecord<'_>| {
            if inside.lock().is_mine() {
                for _ in 0..2 {
                    assert_eq!(inside.lock().lock(), Err(LockError::NotGrantable));
                    assert_eq!(inside.lock().unlock(), Err(LockError::NotOwner));
                }
            } else {
                inside.lock().lock().unwrap();
                sum.update(|sum| *sum += 1);
                inside.lock().unlock().unwrap();
            }
        };
        let _subscription = Subscription::new(&world, EVENT, callback).unwrap();
        let theirs = world.clone();
        let other = thread::spawn(move || happen(&theirs));
        registry.lock().lock().unwrap();
        total.update(|sum| *sum += 1);
        happen(&world);
        total.update(|sum| *sum += 1);
        registry.lock().unlock().unwrap();
        happen(&world);
        other.join().unwrap();
        assert_eq!(total.get(), 4);
    });
}

#[test]
fn a_release_by_the_owner_does_not_wait_for_a_callback_that_waits_for_the_lock() {
    // Without a bound it takes a minute.
    model(Some(4), || {
        let (registry, world) = registry_and_world();
        let inside = registry.clone();
        let callback = move |_: &perusal::events::EventRecord<'_>| {
            inside.lock().lock().unwrap();
            inside.lock().unlock().unwrap();
        };
        let subscription = Subscription::new(&world, EVENT, callback).unwrap();
        let theirs = world.clone();
        let other = thread::spawn(move || happen(&theirs));
        registry.lock().lock().unwrap();
        drop(subscription);
        registry.lock().unlock().unwrap();
        other.join().unwrap();
    });
}

#[test]
fn a_refused_upcall_is_refused_a_lock_that_becomes_free_meanwhile() {
    model(Some(3), || {
        let (registry, world) = registry_and_world();
        let contended = Arc::new(PeruseLock::new());
        let (inside, wanted) = (registry.clone(), contended.clone());
        let callback = move |_: &perusal::events::EventRecord<'_>| {
            assert_eq!(inside.lock().lock(), Err(LockError::NotGrantable));
            for _ in 0..2 {
                assert_eq!(wanted.lock(), Err(LockError::NotGrantable));
            }
        };
        let _subscription = Subscription::new(&world, EVENT, callback).unwrap();
        let theirs = contended.clone();
        let other = thread::spawn(move || {
            theirs.lock().unwrap();
            theirs.unlock().unwrap();
        });
        registry.lock().lock().unwrap();
        happen(&world);
        registry.lock().unlock().unwrap();
        contended.lock().unwrap();
        contended.unlock().unwrap();
        other.join().unwrap();
    });
}
