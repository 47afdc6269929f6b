//! Events of calls: where the program enters a function of MPI, and where it leaves it.
//!
//! A call is seen where somebody listens to anything, which keeps it from its fast path: a fast path has no instruction
//! for these events, or two at its end.

use super::boundary::is_open;
use super::check;
use super::process::registry;
use crate::events::{Event, EventPayload, EventRecord, fast_path_is_open, inside_callback};
use core::cell::Cell;

/// A function of MPI.
#[derive(Debug, Clone, Copy)]
pub struct Function {
    /// Its name.
    pub name: &'static str,
    /// Its number in events; [`Function::WITHOUT_EVENTS`] if its calls have none.
    pub number: u16,
}

impl Function {
    /// The number of a function whose calls have no events.
    pub const WITHOUT_EVENTS: u16 = u16::MAX;
}

/// Emits CallBegin, if anybody listens. Returns whether somebody listens to the call, or it is checked.
fn emit_begin(function: &Function) -> bool {
    if function.number == Function::WITHOUT_EVENTS || !is_open() || inside_callback() {
        return false;
    }
    let gate = &registry().gate;
    let has_listener = gate.is_open(Event::CallBegin) || gate.is_open(Event::CallEnd);
    if has_listener {
        emit(Event::CallBegin, function.number);
    }
    check::call_began(function.name) || has_listener
}

/// The call ends of which [`emit_begin`] has said that somebody listens.
#[cold]
#[inline(never)]
fn emit_end(function: u16) {
    if check::is_on() {
        check::call_ended();
    }
    emit(Event::CallEnd, function);
}

#[cold]
#[inline(never)]
fn emit(event: Event, function: u16) {
    let registry = registry();
    if registry.gate.is_open(event) {
        registry.emit(&EventRecord::of_engine(event, EventPayload::Call { function }));
    }
}

/// A call that has begun, whose CallEnd is emitted when this is dropped; or one to which nobody listens.
#[derive(Debug)]
#[must_use = "CallEnd is emitted when it is dropped"]
pub struct CallSpan(Option<u16>);

impl CallSpan {
    /// Emits CallBegin, if anybody listens.
    #[inline(always)]
    pub fn begin(function: &'static Function) -> Self {
        if fast_path_is_open() { Self(None) } else { Self::begin_observed(function) }
    }

    #[cold]
    #[inline(never)]
    fn begin_observed(function: &'static Function) -> Self {
        Self(emit_begin(function).then_some(function.number))
    }
}

impl Drop for CallSpan {
    #[inline(always)]
    fn drop(&mut self) {
        if let Some(function) = self.0 {
            emit_end(function);
        }
    }
}

/// Calls within calls that are remembered.
const DEPTH: usize = 16;

thread_local! {
    /// The calls of [`begin`] that have not ended, innermost last, and how many there are. One is left over where the
    /// last listener has gone meanwhile; the oldest make room.
    static OPEN: Cell<([u16; DEPTH], usize)> = const { Cell::new(([0; DEPTH], 0)) };
}

/// Emits CallBegin, if anybody listens, and remembers the call for [`end`]: what does without a [`CallSpan`], which a
/// fast path would have to keep.
pub fn begin(function: &Function) {
    if !emit_begin(function) {
        return;
    }
    let (mut calls, mut count) = OPEN.get();
    if count == DEPTH {
        calls.copy_within(1.., 0);
        count -= 1;
    }
    calls[count] = function.number;
    OPEN.set((calls, count + 1));
}

/// Emits CallEnd, if CallBegin was emitted.
#[cold]
#[inline(never)]
pub fn end(function: &Function) {
    let (calls, count) = OPEN.get();
    if count > 0 && calls[count - 1] == function.number && !inside_callback() {
        OPEN.set((calls, count - 1));
        emit_end(function.number);
    }
}
