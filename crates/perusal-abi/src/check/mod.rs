//! Checks for mistakes that no error and no hang shows (`mpiexec --check`): what is never completed, received or freed,
//! collective calls that differ between ranks, buffers that two operations use at once.
//!
//! | file | what lives there |
//! |---|---|
//! | `mod` | the switch; the function that this thread has called |
//! | [`requests`] | requests that are alive |
//! | [`buffers`] | the memory that active operations use |
//! | [`accesses`] | one-sided operations and split accesses to files, which no request ends |
//! | [`objects`] | handles that are alive, and who made them |
//! | [`collectives`] | calls compared with those of other members |
//! | [`targets`] | what one-sided operations access at their targets |
//! | [`threads`] | threads that call at once |
//! | [`types`] | types of messages, compared between sender and receiver |
//! | [`report`] | what was found, and how it is said |
//!
//! While calls are checked the bindings take no fast path, as if a listener were there: so a program that is not
//! checked pays nothing. What is found is said and changes nothing: the program goes on, and its exit status stays.

mod accesses;
mod buffers;
mod collectives;
mod objects;
mod report;
mod requests;
mod targets;
mod threads;
mod types;

pub use accesses::{
    attached, began_one_sided, began_split, blocking_file, detached, ended_split, file_name, flushed,
    one_sided_request, packing, window_freed, window_name,
};
pub use buffers::Access;
pub use collectives::{compare, compare_call, compare_groups, compare_on_comm};
pub use objects::{ObjectKind, made, port_closed, port_opened};
pub use report::{comm_freed, context_freed};
pub use requests::{
    Half, arrived, asked, began_exchange, began_file, began_message, began_operation, began_partitioned,
    began_partitioned_receive, began_persistent, blocking_exchange, blocking_message, blocking_operation,
    ended, freed, noted, ready, received, seen, started,
};
pub use targets::{ended as ended_at_target, fence};
pub use threads::{began as call_began, ended as call_ended};
pub use types::{call_failed, cancelled, claimed};

use crate::comm::Comm;
use crate::engine::Engine;
use crate::events::{GlobalSubscription, shut_fast_path};
use crate::sync::{AtomicBool, Ordering};
use crate::variables::VariableId;
use crate::variables::enumeration::CHECK_STRICT;
use core::cell::Cell;
use core::fmt;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

static ON: AtomicBool = AtomicBool::new(false);
static STRICT: OnceLock<()> = OnceLock::new();

thread_local! {
    /// The function that this thread has called last.
    static FUNCTION: Cell<&'static str> = const { Cell::new("") };
}

/// What is known of the calls of this process.
#[derive(Default)]
struct State {
    requests: requests::Live,
    buffers: buffers::InUse,
    accesses: accesses::Accesses,
    objects: objects::Makers,
    collectives: collectives::Calls,
    messages: types::Messages,
    targets: targets::Targets,
    callers: threads::Callers,
    findings: report::Findings,
    freed: report::FreedComms,
}

static STATE: Mutex<Option<State>> = Mutex::new(None);
/// Has events say which messages are sent and matched, while calls are checked.
static WATCH: Mutex<Option<GlobalSubscription>> = Mutex::new(None);

/// What an operation does with a buffer, and what ends it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// It sends or receives; its request ends it.
    Message,
    /// It reads from a file or writes to it; its request ends it.
    File,
    /// It reads from a file or writes to it; another call ends it.
    SplitFile,
    /// It accesses a window; a flush or the end of an epoch ends it.
    OneSided,
    /// It is an attached buffer: buffered sends use it until it is detached.
    Attached,
}

impl Kind {
    /// What it does with a buffer that it reads, or writes.
    const fn does(self, access: Access) -> &'static str {
        match (self, access) {
            (Self::Message, Access::Read) => "sends",
            (Self::Message, Access::Write) => "receives into",
            (Self::Attached, _) => "keeps for buffered sends",
            (_, Access::Read) => "reads",
            (_, Access::Write) => "writes",
        }
    }

    const fn advice(self) -> &'static str {
        match self {
            Self::Message | Self::File => "wait for it before",
            Self::SplitFile => "end the access before",
            Self::OneSided => "flush it or end its epoch before",
            Self::Attached => "detach it before",
        }
    }

    /// What it is until then.
    const fn state(self) -> &'static str {
        match self {
            Self::Attached => "",
            _ => ", which is not complete",
        }
    }
}

/// Says where areas that an operation is about to use are in use, or overlap, or are not there.
fn conflicts<T: fmt::Display>(areas: &[buffers::Area], text: impl Fn() -> T) {
    if !areas.iter().all(buffers::Area::is_there) {
        with(|state| {
            state.findings.say(format!(
                "{} has a buffer that is no memory of the process, or ends behind it; give the address of the data, and no more elements than there are",
                text()
            ));
        });
    }
    overlaps(areas, &text);
    for area in areas.iter().filter(|area| area.is_written()) {
        targets::about_to_write(area, || text().to_string());
    }
    with(|state| {
        for area in areas {
            let Some((other, access, bytes)) = state.buffers.conflict(area) else { continue };
            let (other, kind) = state.accesses.text(other).unwrap_or_else(|| state.requests.text(other));
            let finding = format!(
                "{} uses {} of the buffer that {other} {}{}; {}, or use another buffer",
                text(),
                report::bytes(bytes as u64),
                kind.does(access),
                kind.state(),
                kind.advice()
            );
            state.findings.say(finding);
        }
    });
}

/// Says where areas of one operation overlap, and it writes one of them.
fn overlaps<T: fmt::Display>(areas: &[buffers::Area], text: impl Fn() -> T) {
    let shared = buffers::overlap(areas);
    if shared > 0 {
        with(|state| {
            let bytes = report::bytes(shared as u64);
            state.findings.say(format!(
                "{} writes {bytes} that it also reads, or writes twice; its buffers must not overlap",
                text()
            ));
        });
    }
    if areas.iter().any(buffers::Area::is_written_twice) {
        with(|state| {
            state.findings.say(format!(
                "{} writes elements of its type in one place; a type that receives must not have two elements in one place",
                text()
            ));
        });
    }
}

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

/// Whether blocking collective calls wait for all members, as MPI allows them to (MPI 5.0 §6.14).
#[must_use]
pub fn is_strict() -> bool {
    is_on() && STRICT.get().is_some()
}

/// Checks calls from now on, if the control variable `check` says so.
pub fn begin(engine: &Engine) {
    let how = engine.config().number(VariableId::Check);
    if how == 0 || is_on() {
        return;
    }
    if how == CHECK_STRICT {
        let _ = STRICT.set(());
    }
    *STATE.lock().unwrap_or_else(PoisonError::into_inner) = Some(State::default());
    shut_fast_path();
    *WATCH.lock().unwrap_or_else(PoisonError::into_inner) = Some(types::watch(engine));
    ON.store(true, Ordering::Relaxed);
}

/// This thread has called `function`.
pub fn entered(function: &'static str) {
    FUNCTION.set(function);
    types::entered();
}

/// The function that this thread has called, for [`resumed`].
#[must_use]
pub fn current() -> &'static str {
    FUNCTION.get()
}

/// This thread goes on in `function`: an operation of the program's may have called others meanwhile.
pub fn resumed(function: &'static str) {
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
