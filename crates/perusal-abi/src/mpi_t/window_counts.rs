//! What one-sided communication does.

use super::event_counts::{Began, EventCounts};
use crate::events::{Event, EventPayload, EventRecord, RmaOperation};
use crate::tool::pvar::WindowCount;

/// What was counted, by [`WindowCount`]; times in ticks.
pub(super) static WINDOWS: EventCounts<{ WindowCount::ALL }> = EventCounts::new(
    &[Event::WinReqComplete, Event::WinSyncEnd, Event::WinLockWaitBegin, Event::WinLockWaitEnd],
    count_event,
);

thread_local! {
    /// When this thread began to wait for a lock.
    static BEGAN: Began = const { Began::new() };
}

fn add(what: WindowCount, n: u64) {
    WINDOWS.add(what as usize, n);
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
        (Event::WinLockWaitBegin, _) => BEGAN.with(Began::begin),
        (Event::WinLockWaitEnd, _) => {
            add(WindowCount::LockWaits, 1);
            add(WindowCount::LockWaitTime, BEGAN.with(Began::end));
        }
        _ => {}
    }
}
