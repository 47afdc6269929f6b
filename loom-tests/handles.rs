//! Handle tables: a thread that looks a handle up sees its object whole or not at all;
//! one that removes it waits for those that look.
//!
//! Run:   .ci/loom handles
//! Bound: every interleaving of 2 threads; of 3 threads those with at most 3 preemptions (LOOM_MAX_PREEMPTIONS
//!        overrides both).
//! Time:  half a second on two cores, all models together.
//!
//! Weakened, each of these makes at least one model fail (checked by editing the line and running, one at a time):
//!
//! - Acquire of `TableSlot::enter`;
//! - Release of `TableSlot::leave` and of `TableSlot::publish`;
//! - Acquire of the wait in `TableSlot::withdraw`, and the wait itself;
//! - the generation in `TableSlot::enter`;
//! - Release of a chunk in `HandleTable::claim` and its Acquire in `HandleTable::slot`;
//! - Acquire of `HandleTable::peek`.
//!
//! Loom watches a slot's value: it fails a model in which a look and a change meet without an edge between.
#![cfg(perusal_loom)]

use crate::support::Plain;
use loom::thread;
use perusal::internals::handles::{HandleKind, HandleTable};
use std::sync::Arc;

fn model(preemptions: Option<usize>, body: impl Fn() + Send + Sync + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = builder.preemption_bound.or(preemptions);
    builder.check(body);
}

fn object(value: u32) -> Arc<Plain<u32>> {
    Arc::new(Plain::new(value))
}

fn value(object: &Plain<u32>) -> u32 {
    object.get()
}

#[test]
fn a_look_and_a_removal_do_not_meet() {
    model(None, || {
        let table = Arc::new(HandleTable::new(HandleKind::Info));
        let handle = table.insert(object(7)).unwrap();
        let looker = {
            let table = table.clone();
            thread::spawn(move || table.get(handle).map(|object| value(&object)))
        };
        assert_eq!(table.remove(handle).map(|object| value(&object)), Some(7));
        let seen = looker.join().unwrap();
        assert!(seen.is_none_or(|seen| seen == 7));
        assert!(table.get(handle).is_none());
    });
}

#[test]
fn a_slot_that_is_used_again_is_not_seen_through_the_old_handle() {
    model(None, || {
        let table = Arc::new(HandleTable::new(HandleKind::Info));
        let old = table.insert(object(1)).unwrap();
        let looker = {
            let table = table.clone();
            thread::spawn(move || table.get(old).map(|object| value(&object)))
        };
        table.remove(old).unwrap();
        let new = table.insert(object(2)).unwrap();
        assert_ne!(old, new);
        assert!(looker.join().unwrap().is_none_or(|seen| seen == 1));
        assert_eq!(table.get(new).map(|object| value(&object)), Some(2));
    });
}

#[test]
fn a_handle_that_is_passed_on_by_guesswork_shows_a_whole_object() {
    // The handles of a fresh table are known beforehand: the looker needs no edge from the inserter to try one.
    model(None, || {
        let first = HandleTable::new(HandleKind::Info).insert(object(0)).unwrap();
        let table = Arc::new(HandleTable::new(HandleKind::Info));
        let looker = {
            let table = table.clone();
            thread::spawn(move || table.get(first).map(|object| value(&object)))
        };
        assert_eq!(table.insert(object(5)).unwrap(), first);
        assert!(looker.join().unwrap().is_none_or(|seen| seen == 5));
    });
}

#[test]
fn a_handle_that_is_passed_on_by_guesswork_is_peeked_at_whole() {
    model(None, || {
        let first = HandleTable::new(HandleKind::Info).insert(object(0)).unwrap();
        let table = Arc::new(HandleTable::new(HandleKind::Info));
        let looker = {
            let table = table.clone();
            // SAFETY: nobody removes the object.
            thread::spawn(move || unsafe { table.peek(first) }.map(value))
        };
        assert_eq!(table.insert(object(5)).unwrap(), first);
        assert!(looker.join().unwrap().is_none_or(|seen| seen == 5));
    });
}

#[test]
fn of_two_removers_one_gets_the_object() {
    model(Some(3), || {
        let table = Arc::new(HandleTable::new(HandleKind::Info));
        let handle = table.insert(object(9)).unwrap();
        let removers: Vec<_> = (0..2)
            .map(|_| {
                let table = table.clone();
                thread::spawn(move || table.remove(handle).is_some())
            })
            .collect();
        let seen = table.get(handle).map(|object| value(&object));
        assert!(seen.is_none_or(|seen| seen == 9));
        let won = removers.into_iter().map(|r| r.join().unwrap()).filter(|&won| won).count();
        assert_eq!(won, 1);
    });
}
