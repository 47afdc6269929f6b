//! How to model-check a callback of your own against the engine's dispatch.
//!
//! Your tool counts late messages per peer and prints the counts when it stops. Is it true that nobody counts any more
//! then? That the numbers are whole? loom runs a small program in *every* order in which its threads could take their
//! steps, with every value that the memory model lets a load return,
//! and fails on the first order in which an assertion does not hold.
//!
//! What you need:
//! 1. Your data in the atomics and cells of [`perusal::model`]: loom's while `cfg(perusal_loom)` is set, `std`'s else.
//! 2. A registry and a communicator of your own: `Registry::new`, `attach`. No engine, no ranks.
//! 3. `happen`, which does what a site in the engine does: it looks at the gate, then emits.
//! 4. `model::check`, with two or three threads, and one or two events: more orders than you could read.
//!
//! Try it: use a plain loom cell instead of the atomic in `Late`,
//! or read the counts before the subscription is dropped, and run again.
//!
//! Run:   .ci/loom my_callback
//! Bound: three preemptions (LOOM_MAX_PREEMPTIONS raises that). Time: two seconds on two cores.

use perusal::events::{CommEvents, Event, EventRecord, EventSet, Registry, Spec, Subscription};
use perusal::model::{AtomicU32, Cell, Ordering, check, thread};
use std::sync::Arc;

/// The tool: late messages by peer, and whether the report was printed.
struct Late {
    from: [AtomicU32; 2],
    /// Written without any synchronisation of its own: loom fails if a callback could run at the same time.
    printed: Cell<bool>,
}

// SAFETY: `printed` is read by callbacks and written by `report`, which comes when none runs any more:
// this is what is checked.
unsafe impl Sync for Late {}
// SAFETY: as for Sync.
unsafe impl Send for Late {}

impl Late {
    fn new() -> Arc<Late> {
        Arc::new(Late { from: [AtomicU32::new(0), AtomicU32::new(0)], printed: Cell::new(false) })
    }

    /// The callback.
    fn count(&self, peer: i32) {
        // SAFETY: loom panics before this runs beside a write.
        assert!(!self.printed.with(|printed| unsafe { *printed }), "counted after the report");
        // Relaxed: a number; `report` is ordered behind all of them by the end of the subscription.
        self.from[peer as usize].fetch_add(1, Ordering::Relaxed);
    }

    /// What the tool does at its end.
    fn report(&self) -> [u32; 2] {
        // SAFETY: loom panics before this runs beside another access.
        self.printed.with_mut(|printed| unsafe { *printed = true });
        [0, 1].map(|peer| self.from[peer].load(Ordering::Relaxed))
    }
}

/// What a site in the engine does when a message of `peer` has come too early.
fn happen(comm: &CommEvents, peer: i32) {
    if comm.gate.is_open(Event::MsgInsertInUnexQ) {
        comm.emit(&EventRecord::new(Event::MsgInsertInUnexQ, 1, &Spec { peer, ..Spec::NOTHING }));
    }
}

#[test]
fn nothing_is_counted_after_the_subscription_has_ended() {
    check(3, || {
        let registry = Registry::new(Box::new(|why| panic!("{why}")));
        let comm = registry.attach(1);
        let late = Late::new();
        let tool = late.clone();
        let subscription =
            Subscription::new(&comm, Event::MsgInsertInUnexQ, move |what: &EventRecord<'_>| {
                tool.count(what.spec.peer)
            });
        let theirs = comm.clone();
        let engine = thread::spawn(move || happen(&theirs, 1));
        happen(&comm, 0);
        drop(subscription);
        let counted = late.report();
        // The other thread's message came before the end, or it was not counted: never half of it.
        assert_eq!(counted[0], 1);
        assert!(counted[1] <= 1);
        engine.join().unwrap();
        assert_eq!(late.from[1].load(Ordering::Relaxed), counted[1], "the report was the last word");
    });
}

#[test]
fn the_same_for_a_subscriber_to_all_communicators() {
    check(3, || {
        let registry = Registry::new(Box::new(|why| panic!("{why}")));
        let late = Late::new();
        let tool = late.clone();
        let subscription = registry.subscribe_globally(
            EventSet::from(Event::MsgInsertInUnexQ),
            Arc::new(move |record: &EventRecord<'_>| tool.count(record.spec.peer)),
        );
        let comm = registry.attach(1);
        let engine = thread::spawn(move || happen(&comm, 1));
        drop(subscription);
        let counted = late.report();
        engine.join().unwrap();
        assert_eq!(late.from[1].load(Ordering::Relaxed), counted[1]);
    });
}
