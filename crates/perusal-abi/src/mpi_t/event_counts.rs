//! Counts that are kept only while a started handle asks for them: of what events say, by a global subscriber.

use crate::arch::clock::ticks;
use crate::events::{Event, EventRecord, EventSet, GlobalSubscription};
use crate::process;
use crate::sync::{AtomicU64, Ordering};
use core::cell::Cell;
use std::sync::Arc;

/// Counts of one kind, and the events that they are made of.
pub(super) struct EventCounts<const COUNTS: usize> {
    counts: [AtomicU64; COUNTS],
    /// The generation of the subscription that counts: of two, of which one is about to end, the younger. 0: none.
    current: AtomicU64,
    events: &'static [Event],
    /// Adds what an event says.
    on_event: fn(&EventRecord<'_>),
}

impl<const COUNTS: usize> EventCounts<COUNTS> {
    pub const fn new(events: &'static [Event], on_event: fn(&EventRecord<'_>)) -> Self {
        Self { counts: [const { AtomicU64::new(0) }; COUNTS], current: AtomicU64::new(0), events, on_event }
    }

    /// What was counted so far.
    pub fn get(&self, which: usize) -> u64 {
        // Relaxed, here and below: counts; nothing else is read because of them.
        self.counts[which].load(Ordering::Relaxed)
    }

    pub fn add(&self, which: usize, n: u64) {
        self.counts[which].fetch_add(n, Ordering::Relaxed);
    }

    /// Nothing is counted from now on, before the subscription is dropped.
    pub fn stop(&self) {
        // Relaxed: as in `get`; what other threads emit right now is counted or not.
        self.current.store(0, Ordering::Relaxed);
    }

    /// Counts until [`Self::stop`]. `generation` is one that no subscription before had, and not 0.
    pub fn subscribe(&'static self, generation: u64) -> GlobalSubscription {
        // Relaxed: as in `stop`.
        self.current.store(generation, Ordering::Relaxed);
        let events: EventSet = self.events.iter().copied().collect();
        let count = move |record: &EventRecord<'_>| {
            // Relaxed: as in `stop`.
            if self.current.load(Ordering::Relaxed) == generation {
                (self.on_event)(record);
            }
        };
        process::registry().subscribe_globally(events, Arc::new(count))
    }
}

/// When a thread began what it has not ended yet.
pub(super) struct Began(Cell<u64>);

impl Began {
    pub const fn new() -> Self {
        Self(Cell::new(0))
    }

    pub fn begin(&self) {
        self.0.set(ticks());
    }

    /// Ticks since it began; 0 for what began before anybody asked.
    pub fn end(&self) -> u64 {
        let began = self.0.take();
        if began == 0 { 0 } else { ticks().saturating_sub(began) }
    }
}
