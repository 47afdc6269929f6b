//! The gate: what an event site costs when nobody listens — one relaxed load and one branch.
//!
//! A gate is a mask of several words, one bit for each event type. The first word has the bits of the first event
//! types, which are those of the message path. It also has a bit that says whether any of the other words has one, so
//! one load says whether anybody listens to anything.
//! A site knows its event type when it is compiled, and so the word that it loads.

use super::Event;
use super::callback_state::hold_fast_path;
use crate::limits::EVENT_TYPES;
use crate::sync::{AtomicU32, Ordering};

/// Bits of the first word that belong to event types. Here and below few in a model,
/// which makes all atomics anew in each of its runs.
pub(super) const FIRST: usize = if cfg!(perusal_loom) { 2 } else { 31 };
/// Event types in each further word.
pub(super) const NEXT: usize = if cfg!(perusal_loom) { 4 } else { u32::BITS as usize };
/// Words of a gate: together a cache line. A model has the first fourteen event types.
pub(super) const WORDS: usize = if cfg!(perusal_loom) { 4 } else { 1 + (EVENT_TYPES - FIRST).div_ceil(NEXT) };
/// In the first word: some further word is not zero.
const MORE: u32 = 1 << FIRST;

// A model's atomics are larger.
#[cfg(not(perusal_loom))]
const _: () = assert!(size_of::<Gate>() <= 64, "a gate is a cache line");

/// Which events of one communicator, or of the engine itself, somebody listens to.
///
/// A closed gate proves that no handle of that event type is active *as far as this thread can know*: an activation
/// that happened before (on this thread, or ordered by any synchronisation) is seen, one that races may not be.
#[derive(Debug)]
pub struct Gate([AtomicU32; WORDS]);

#[cfg(not(perusal_loom))]
static CLOSED: Gate = Gate([const { AtomicU32::new(0) }; WORDS]);
#[cfg(not(perusal_loom))]
static OPEN: Gate = Gate([const { AtomicU32::new(u32::MAX) }; WORDS]);

/// The word and the bit of an event type.
#[inline(always)]
const fn bit(event: Event) -> (usize, u32) {
    match event.index().checked_sub(FIRST) {
        None => (0, 1 << event.index()),
        Some(after) => (1 + after / NEXT, 1 << (after % NEXT)),
    }
}

impl Gate {
    /// A gate that is shut.
    pub(super) fn new() -> Gate {
        Gate(core::array::from_fn(|_| AtomicU32::new(0)))
    }

    /// A gate that is never open, for what has no communicator yet: no site then asks whether there is one.
    pub(crate) fn closed() -> &'static Gate {
        #[cfg(not(perusal_loom))]
        return &CLOSED;
        // A static cannot hold one of loom's atomics.
        #[cfg(perusal_loom)]
        return Box::leak(Box::new(Gate::new()));
    }

    /// A gate that is always open, for what no fast path may take:
    /// every site then asks for listeners, and mostly finds none.
    pub(crate) fn open() -> &'static Gate {
        #[cfg(not(perusal_loom))]
        return &OPEN;
        // A static cannot hold one of loom's atomics.
        #[cfg(perusal_loom)]
        return Box::leak(Box::new(Gate(core::array::from_fn(|_| AtomicU32::new(u32::MAX)))));
    }

    /// Whether anybody listens to `event`. Constant `false` without the feature `peruse`.
    #[inline(always)]
    #[must_use]
    pub fn is_open(&self, event: Event) -> bool {
        let (word, bit) = bit(event);
        // Relaxed: a hint; the listener list publishes what a callback reads (edge 4).
        cfg!(feature = "peruse") && self.0[word].load(Ordering::Relaxed) & bit != 0
    }

    /// Whether anybody listens to any event. Constant `false` without the feature `peruse`.
    #[inline(always)]
    #[must_use]
    pub fn is_any_open(&self) -> bool {
        // Relaxed: a hint, as in `is_open`.
        cfg!(feature = "peruse") && self.0[0].load(Ordering::Relaxed) != 0
    }

    /// Opens the gate for `event`. The caller, here and in the next two, holds the registry's control lock.
    pub(super) fn open_for(&self, event: Event) {
        let (word, bit) = bit(event);
        // Relaxed, here and below: hints, as in `is_open`; the control lock orders the writers.
        if word > 0 {
            self.0[word].fetch_or(bit, Ordering::Relaxed);
        }
        if self.0[0].fetch_or(if word > 0 { MORE } else { bit }, Ordering::Relaxed) == 0 {
            hold_fast_path(true);
        }
    }

    /// Shuts the gate for `event`. Returns 1 if that shuts it altogether,
    /// which the caller then subtracts from the process.
    #[must_use]
    pub(super) fn shut_for(&self, event: Event) -> usize {
        let (word, bit) = bit(event);
        let mut shut = bit;
        if word > 0 {
            self.0[word].fetch_and(!bit, Ordering::Relaxed);
            let more = self.0[1..].iter().any(|word| word.load(Ordering::Relaxed) != 0);
            shut = if more { 0 } else { MORE };
        }
        let before = self.0[0].fetch_and(!shut, Ordering::Relaxed);
        usize::from(before != 0 && before & !shut == 0)
    }

    /// Shuts the gate for every event; returns what shutting it for the last one would.
    #[must_use]
    pub(super) fn shut(&self) -> usize {
        self.0[1..].iter().for_each(|word| word.store(0, Ordering::Relaxed));
        usize::from(self.0[0].swap(0, Ordering::Relaxed) != 0)
    }
}

impl Drop for Gate {
    fn drop(&mut self) {
        // Nobody can emit anything here any more.
        if self.shut() > 0 {
            hold_fast_path(false);
        }
    }
}

#[cfg(all(test, feature = "peruse", not(perusal_loom)))]
mod tests {
    use super::*;

    #[test]
    fn each_event_type_has_a_bit_of_its_own_and_any_open_gate_shows_in_the_first_word() {
        let gate = Gate::new();
        let step = if cfg!(miri) { 51 } else { 1 };
        let all = || (1..=EVENT_TYPES as u16).step_by(step).map(Event::new);
        for event in all() {
            assert!(!gate.is_any_open());
            gate.open_for(event);
            assert!(gate.is_any_open() && all().all(|other| gate.is_open(other) == (other == event)));
            assert_eq!(gate.shut_for(event), 1, "{event:?}");
        }
        hold_fast_path_by(-(all().count() as i64));
    }

    #[test]
    fn a_gate_shuts_with_the_last_of_its_event_types() {
        let gate = Gate::new();
        let events = [1, 31, 32, 300, 301].map(Event::new);
        events.iter().for_each(|event| gate.open_for(*event));
        assert_eq!(events.map(|event| gate.shut_for(event)), [0, 0, 0, 0, 1]);
        hold_fast_path_by(-1);
        gate.open_for(events[3]);
        gate.open_for(events[0]);
        assert_eq!((gate.shut(), gate.shut()), (1, 0));
        hold_fast_path_by(-1);
        assert!(events.iter().all(|event| !gate.is_open(*event)));
    }

    /// Gives the fast path back, as the caller of `shut_for` must.
    fn hold_fast_path_by(count: i64) {
        (count..0).for_each(|_| hold_fast_path(false));
    }
}
