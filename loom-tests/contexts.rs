//! Match contexts: of two threads that make one, both get the same, whole; a thread that finds it finds its events and
//! their gate; and the last to leave a context that is closed takes it away, behind all that others have done to it.
//!
//! Run:   .ci/loom contexts
//! Bound: 2 and 3 threads, every interleaving with at most 2 preemptions (LOOM_MAX_PREEMPTIONS raises that).
//! Time:  some seconds.
//!
//! `cargo xtask mutants src/engine/context.rs` weakens each ordering and says which model fails
//! (`loom-tests/mutants.md`).
#![cfg(perusal_loom)]

use crate::support::Plain;
use loom::sync::Arc;
use loom::thread;
use perusal::internals::engine::{MatchContext, MatchContexts};
use perusal::internals::events::Registry;

fn model(body: impl Fn() + Send + Sync + 'static) {
    perusal::model::check(2, body);
}

/// A table, and something that the users of its context use.
#[derive(Default)]
struct Table {
    contexts: MatchContexts,
    value: Plain<u32>,
}

impl Table {
    fn made(&self) -> &MatchContext {
        // SAFETY: the model takes it away when all are done.
        unsafe { self.contexts.make(1, 4).expect("an id of the table").as_ref() }
    }

    /// One more use, if others' uses are ordered before or behind it.
    fn use_it(&self) {
        self.value.update(|value| *value += 1);
    }
}

// The writer is the first thread, the reader a spawned one: `observed.rs` says why.

#[test]
fn two_that_make_a_context_get_the_same_whole_one() {
    model(|| {
        let table = Arc::new(Table::default());
        let other = {
            let table = table.clone();
            thread::spawn(move || {
                let context = table.made();
                context.look();
                core::ptr::from_ref(context).addr()
            })
        };
        let own = table.made();
        own.look();
        assert_eq!(other.join().unwrap(), core::ptr::from_ref(own).addr());
    });
}

#[test]
fn who_finds_a_context_finds_a_whole_one() {
    model(|| {
        let table = Arc::new(Table::default());
        let finder = {
            let table = table.clone();
            thread::spawn(move || {
                // SAFETY: nobody takes it away.
                if let Some(context) = table.contexts.get(1).map(|context| unsafe { context.as_ref() }) {
                    context.look();
                    assert_eq!(context.id(), 1);
                }
            })
        };
        table.made();
        finder.join().unwrap();
    });
}

#[test]
fn who_looks_at_all_contexts_sees_whole_ones() {
    model(|| {
        let table = Arc::new(Table::default());
        let looker = {
            let table = table.clone();
            thread::spawn(move || table.contexts.for_each(MatchContext::look))
        };
        table.made();
        looker.join().unwrap();
    });
}

#[test]
fn who_sees_the_events_of_a_context_sees_them_and_their_gate_whole() {
    model(|| {
        let table = Arc::new(Table::default());
        let context = table.made();
        let reader = {
            let table = table.clone();
            thread::spawn(move || {
                let context = table.made();
                if let Some(events) = context.events() {
                    assert_eq!(events.comm(), 7);
                }
                assert!(!context.observed());
            })
        };
        let registry = Registry::new(Box::new(|text| panic!("{text}")));
        context.observe(registry.attach(7));
        reader.join().unwrap();
    });
}

#[test]
fn of_those_that_leave_a_closed_context_the_last_takes_it_away_behind_the_others() {
    model(|| {
        let table = Arc::new(Table::default());
        let context = table.made();
        context.reopen();
        context.retain(true);
        context.retain(true);
        let leave = |table: &Table, is_last: bool| {
            if is_last {
                table.use_it();
                table.contexts.remove(1);
            }
            is_last
        };
        let requests: Vec<_> = (0..2)
            .map(|own| {
                let table = table.clone();
                thread::spawn(move || {
                    // SAFETY: its request keeps the context.
                    let context = unsafe { table.contexts.get(1).expect("there").as_ref() };
                    if own == 0 {
                        table.use_it();
                    }
                    let is_last = context.release(true);
                    leave(&table, is_last)
                })
            })
            .collect();
        let mut last = u32::from(leave(&table, context.close(true)));
        last += requests.into_iter().map(|request| u32::from(request.join().unwrap())).sum::<u32>();
        assert_eq!(last, 1);
        assert!(table.contexts.get(1).is_none());
    });
}
