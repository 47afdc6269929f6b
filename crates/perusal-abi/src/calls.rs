//! Events of calls: where the program enters a function of MPI, and where it leaves it.
//!
//! A call is seen where somebody listens to anything, which keeps it from its fast path: a fast path has no instruction for these events.

use super::boundary::is_open;
use super::process::registry;
use crate::events::{Event, EventPayload, EventRecord, fast_path_is_open, inside_callback};

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

/// A call that has begun, whose end is told when this is dropped; or one to which nobody listens.
#[derive(Debug)]
#[must_use = "the end of the call is told when it is dropped"]
pub struct CallSpan(Option<u16>);

impl CallSpan {
    /// Tells that a call begins, if anybody listens.
    #[inline(always)]
    pub fn begin(function: &'static Function) -> Self {
        if fast_path_is_open() { Self(None) } else { Self::begin_observed(function.number) }
    }

    #[cold]
    #[inline(never)]
    fn begin_observed(function: u16) -> Self {
        if function == Function::WITHOUT_EVENTS || !is_open() || inside_callback() {
            return Self(None);
        }
        let gate = &registry().gate;
        if !gate.is_open(Event::CallBegin) && !gate.is_open(Event::CallEnd) {
            return Self(None);
        }
        emit(Event::CallBegin, function);
        Self(Some(function))
    }
}

impl Drop for CallSpan {
    #[inline(always)]
    fn drop(&mut self) {
        if let Some(function) = self.0 {
            emit(Event::CallEnd, function);
        }
    }
}

#[cold]
#[inline(never)]
fn emit(event: Event, function: u16) {
    let registry = registry();
    if registry.gate.is_open(event) {
        registry.emit(&EventRecord::of_engine(event, EventPayload::Call { function }));
    }
}
