//! Counts what searches of the queues cost, for as long as a started handle asks: a global subscriber to their beginnings and ends.

use crate::arch::clock::ticks;
use crate::process;

use crate::events::{Event, EventPayload, EventRecord, EventSet, GlobalSubscription};
use crate::sync::{AtomicU64, Ordering};
use crate::tool::pvar::Search;
use core::cell::Cell;
use std::sync::Arc;

/// What was counted, by [`Search`]; times in ticks.
static COUNTS: [AtomicU64; 4] = [const { AtomicU64::new(0) }; 4];

thread_local! {
    /// When this thread began to search.
    static BEGAN: Cell<u64> = const { Cell::new(0) };
}

/// The generation of the subscription that counts: of two, of which one is about to end, the younger. 0: none.
static CURRENT: AtomicU64 = AtomicU64::new(0);

/// What was counted so far.
pub(super) fn count(search: Search) -> u64 {
    // Relaxed, here and below: counts; nothing else is read because of them.
    COUNTS[search as usize].load(Ordering::Relaxed)
}

fn add(search: Search, n: u64) {
    COUNTS[search as usize].fetch_add(n, Ordering::Relaxed);
}

/// Nothing is counted from now on, before the subscription is dropped.
pub(super) fn stop() {
    // Relaxed: as in `count`; what other threads emit right now is counted or not.
    CURRENT.store(0, Ordering::Relaxed);
}

/// Counts until [`stop`]. `generation` is one that no subscription before had, and not 0.
pub(super) fn subscribe(generation: u64) -> GlobalSubscription {
    // Relaxed: as in `stop`.
    CURRENT.store(generation, Ordering::Relaxed);
    let events =
        [Event::SearchPostedQBegin, Event::SearchPostedQEnd, Event::SearchUnexQBegin, Event::SearchUnexQEnd];
    let events: EventSet = events.into_iter().collect();
    let count = move |record: &EventRecord<'_>| {
        // Relaxed: as in `stop`.
        if CURRENT.load(Ordering::Relaxed) == generation {
            count_search(record);
        }
    };
    process::registry().subscribe_globally(events, Arc::new(count))
}

fn count_search(record: &EventRecord<'_>) {
    let EventPayload::Search { depth, hit } = record.payload else {
        if matches!(record.event, Event::SearchPostedQBegin | Event::SearchUnexQBegin) {
            BEGAN.set(ticks());
        }
        return;
    };
    // A search that began before anybody asked has no time.
    let began = BEGAN.take();
    let took = if began == 0 { 0 } else { ticks().saturating_sub(began) };
    if record.event == Event::SearchPostedQEnd {
        add(Search::PostedAttempts, u64::from(depth));
        add(Search::PostedFailedTime, if hit { 0 } else { took });
    } else {
        add(Search::UnexpectedAttempts, u64::from(depth));
        add(Search::UnexpectedTime, took);
    }
}
