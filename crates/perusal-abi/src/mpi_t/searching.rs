//! What searches of the queues cost.

use super::event_counts::{Began, EventCounts};
use crate::events::{Event, EventPayload, EventRecord};
use crate::tool::pvar::Search;

/// What was counted, by [`Search`]; times in ticks.
pub(super) static SEARCHES: EventCounts<4> = EventCounts::new(
    &[Event::SearchPostedQBegin, Event::SearchPostedQEnd, Event::SearchUnexQBegin, Event::SearchUnexQEnd],
    count_search,
);

thread_local! {
    /// When this thread began to search.
    static BEGAN: Began = const { Began::new() };
}

fn add(search: Search, n: u64) {
    SEARCHES.add(search as usize, n);
}

fn count_search(record: &EventRecord<'_>) {
    let EventPayload::Search { depth, hit } = record.payload else {
        if matches!(record.event, Event::SearchPostedQBegin | Event::SearchUnexQBegin) {
            BEGAN.with(Began::begin);
        }
        return;
    };
    let took = BEGAN.with(Began::end);
    if record.event == Event::SearchPostedQEnd {
        add(Search::PostedAttempts, u64::from(depth));
        add(Search::PostedFailedTime, if hit { 0 } else { took });
    } else {
        add(Search::UnexpectedAttempts, u64::from(depth));
        add(Search::UnexpectedTime, took);
    }
}
