//! Threads that call MPI: whether the thread level allows it (MPI 5.0 §11.6.2), and collective calls of two threads on
//! one communicator (MPI 5.0 §6.14).

use super::{State, is_on, requests, with};
use crate::abi::{MPI_THREAD_FUNNELED, MPI_THREAD_MULTIPLE, MPI_THREAD_SERIALIZED, MPI_THREAD_SINGLE};
use crate::process;
use core::cell::Cell;
use core::ffi::c_int;
use std::collections::HashMap;
use std::thread::{self, ThreadId};

/// Calls that have begun and not ended.
#[derive(Default)]
pub struct Callers {
    /// The thread that has begun one, and the function, where threads call one at a time.
    inside: Option<(ThreadId, &'static str)>,
    /// The thread that is in a collective call on each communicator, and the function, by the context id.
    collective: HashMap<u32, (ThreadId, &'static str)>,
}

thread_local! {
    /// Calls that this thread has begun and not ended: functions that it calls may be in another call.
    static DEPTH: Cell<u32> = const { Cell::new(0) };
    /// Whether its call is the one that is known to be inside.
    static INSIDE: Cell<bool> = const { Cell::new(false) };
    /// The communicator on which it is in a collective call.
    static COLLECTIVE: Cell<Option<u32>> = const { Cell::new(None) };
}

fn name_of(level: c_int) -> &'static str {
    match level {
        MPI_THREAD_SINGLE => "MPI_THREAD_SINGLE",
        MPI_THREAD_FUNNELED => "MPI_THREAD_FUNNELED",
        _ => "MPI_THREAD_SERIALIZED",
    }
}

/// A call begins. Returns whether [`ended`] must be called at its end.
pub fn began(function: &'static str) -> bool {
    if !is_on() {
        return false;
    }
    DEPTH.set(DEPTH.get() + 1);
    let Some(level) = process::level().filter(|level| *level < MPI_THREAD_MULTIPLE) else { return true };
    if DEPTH.get() > 1 {
        return true;
    }
    let finding = if level == MPI_THREAD_SERIALIZED {
        let own = thread::current().id();
        let other = with(|state| match state.callers.inside {
            Some((thread, other)) if thread != own => Some(other),
            _ => {
                state.callers.inside = Some((own, function));
                INSIDE.set(true);
                None
            }
        });
        let said = |other| {
            format!(
                "{function} was called while another thread was in {other}, and the thread level is MPI_THREAD_SERIALIZED; let the threads call one after the other, or ask MPI_Init_thread for MPI_THREAD_MULTIPLE"
            )
        };
        other.flatten().map(said)
    } else {
        let name = name_of(level);
        (!process::is_main_thread()).then(|| {
            format!(
                "{function} was called by another thread than the one that initialised MPI, and the thread level is {name}; ask MPI_Init_thread for MPI_THREAD_SERIALIZED or MPI_THREAD_MULTIPLE"
            )
        })
    };
    // Which calls are a session's is not known.
    if let Some(finding) = finding.filter(|_| !process::has_sessions()) {
        with(|state| state.findings.say(finding));
    }
    true
}

/// A call ends.
pub fn ended() {
    let depth = DEPTH.get().saturating_sub(1);
    DEPTH.set(depth);
    if depth > 0 {
        return;
    }
    requests::asked_no_more();
    let (context, is_inside) = (COLLECTIVE.take(), INSIDE.take());
    if context.is_some() || is_inside {
        with(|state| {
            if is_inside {
                state.callers.inside = None;
            }
            if let Some(context) = context {
                state.callers.collective.remove(&context);
            }
        });
    }
}

/// The collective call `function` of this thread begins on the communicator of this context, which is named `on`: says
/// if another thread is in one.
pub fn collective(state: &mut State, context: u32, function: &'static str, on: impl Fn() -> String) {
    if DEPTH.get() == 0 {
        return;
    }
    let own = thread::current().id();
    match state.callers.collective.get(&context) {
        Some((thread, other)) if *thread != own => state.findings.say(format!(
            "{function} on {} was called while another thread was in {other} on it; let the threads make the collective calls on a communicator one after the other, or give each a communicator",
            on()
        )),
        // Of a call within a call nothing is kept: the outer one ends behind it.
        _ if COLLECTIVE.get().is_some() => {}
        _ => {
            state.callers.collective.insert(context, (own, function));
            COLLECTIVE.set(Some(context));
        }
    }
}
