//! Counts what one-sided communication does, for as long as a started handle asks: a global subscriber to events of windows.

use crate::arch::clock::ticks;
use crate::events::{Event, EventPayload, EventRecord, EventSet, GlobalSubscription, RmaOperation};
use crate::process;
use crate::sync::{AtomicU64, Ordering};
use crate::tool::pvar::WindowCount;
use core::cell::Cell;
use std::sync::Arc;

/// What was counted, by [`WindowCount`]; times in ticks.
static COUNTS: [AtomicU64; WindowCount::ALL] = [const { AtomicU64::new(0) }; WindowCount::ALL];

/// The generation of the subscription that counts; 0: none. As in `searching`.
static CURRENT: AtomicU64 = AtomicU64::new(0);

thread_local! {
    /// When this thread began to wait for a lock.
    static BEGAN: Cell<u64> = const { Cell::new(0) };
}

/// What was counted so far.
pub(super) fn count(what: WindowCount) -> u64 {
    // Relaxed, here and below: counts; nothing else is read because of them.
    COUNTS[what as usize].load(Ordering::Relaxed)
}

fn add(what: WindowCount, n: u64) {
    COUNTS[what as usize].fetch_add(n, Ordering::Relaxed);
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
    let events = [Event::WinReqComplete, Event::WinSyncEnd, Event::WinLockWaitBegin, Event::WinLockWaitEnd];
    let events: EventSet = events.into_iter().collect();
    let count = move |record: &EventRecord<'_>| {
        // Relaxed: as in `stop`.
        if CURRENT.load(Ordering::Relaxed) == generation {
            count_event(record);
        }
    };
    process::registry().subscribe_globally(events, Arc::new(count))
}

fn count_event(record: &EventRecord<'_>) {
    match (record.event, record.payload) {
        (Event::WinReqComplete, EventPayload::Rma { operation, .. }) => {
            let (times, bytes) = match operation {
                _ if operation == RmaOperation::Put as u8 => (WindowCount::Puts, WindowCount::BytesPut),
                _ if operation == RmaOperation::Get as u8 => (WindowCount::Gets, WindowCount::BytesGot),
                _ => (WindowCount::Accumulates, WindowCount::BytesAccumulated),
            };
            add(times, 1);
            add(bytes, record.spec.bytes);
        }
        (Event::WinSyncEnd, _) => add(WindowCount::Synchronizations, 1),
        (Event::WinLockWaitBegin, _) => BEGAN.set(ticks()),
        (Event::WinLockWaitEnd, _) => {
            // A wait that began before anybody asked has no time.
            let began = BEGAN.take();
            add(WindowCount::LockWaits, 1);
            add(WindowCount::LockWaitTime, if began == 0 { 0 } else { ticks().saturating_sub(began) });
        }
        _ => {}
    }
}
