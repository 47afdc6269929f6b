//! Checks for mistakes that no error and no hang shows (`mpiexec --check`): what is never completed, received or freed, collective calls that
//! differ between ranks, buffers that two operations use at once.
//!
//! | file | what lives there |
//! |---|---|
//! | `mod` | the switch; the function that this thread has called |
//! | [`requests`] | requests that are alive |
//! | [`buffers`] | the memory that active operations use |
//! | [`objects`] | handles that are alive, and who made them |
//! | [`collectives`] | calls compared with those of other members |
//! | [`report`] | what was found, and how it is said |
//!
//! While calls are checked the bindings take no fast path, as if a listener were there: so a program that is not checked pays nothing. What
//! is found is said and changes nothing: the program goes on, and its exit status stays.

mod buffers;
mod collectives;
mod objects;
mod report;
mod requests;

pub use buffers::Access;
pub use collectives::compare;
pub use objects::{Kind, made};
pub use report::comm_freed;
pub use requests::{
    began_message, began_operation, blocking_message, blocking_operation, ended, freed, noted, seen, started,
};

use crate::comm::Comm;
use crate::engine::Engine;
use crate::events::shut_fast_path;
use crate::sync::{AtomicBool, Ordering};
use crate::variables::VariableId;
use core::cell::Cell;
use std::sync::{Mutex, MutexGuard, PoisonError};

static ON: AtomicBool = AtomicBool::new(false);

thread_local! {
    /// The function that this thread has called last.
    static FUNCTION: Cell<&'static str> = const { Cell::new("") };
}

/// What is known of the calls of this process.
#[derive(Default)]
struct State {
    requests: requests::Live,
    buffers: buffers::InUse,
    objects: objects::Makers,
    collectives: collectives::Calls,
    findings: report::Findings,
    freed: report::FreedComms,
}

static STATE: Mutex<Option<State>> = Mutex::new(None);

/// Runs `f` on the state; nothing where calls are not checked.
fn with<R>(f: impl FnOnce(&mut State) -> R) -> Option<R> {
    let mut state: MutexGuard<'_, _> = STATE.lock().unwrap_or_else(PoisonError::into_inner);
    state.as_mut().map(f)
}

/// Whether calls are checked.
#[inline(always)]
#[must_use]
pub fn is_on() -> bool {
    // Relaxed: set before the first call that is checked returns from MPI_Init.
    ON.load(Ordering::Relaxed)
}

/// Checks calls from now on, if the control variable `check` says so.
pub fn begin(engine: &Engine) {
    if engine.config().number(VariableId::Check) != 1 || is_on() {
        return;
    }
    *STATE.lock().unwrap_or_else(PoisonError::into_inner) = Some(State::default());
    shut_fast_path();
    ON.store(true, Ordering::Relaxed);
}

/// This thread has called `function`.
pub fn entered(function: &'static str) {
    FUNCTION.set(function);
}

/// The function that this thread has called, without the suffix of large counts.
fn function() -> &'static str {
    let function = FUNCTION.get();
    function.strip_suffix("_c").unwrap_or(function)
}

/// Says what the program has left undone, in MPI_Finalize: all ranks of `world` do. Calls are checked no more.
pub fn finish_world(engine: &'static Engine, world: &Comm) {
    if is_on() {
        report::finish_together(engine, world);
    }
}

/// Says what the program has left undone, when its last session ends: each rank for itself.
pub fn finish_session(engine: &'static Engine) {
    if is_on() {
        report::finish_alone(engine);
    }
}
