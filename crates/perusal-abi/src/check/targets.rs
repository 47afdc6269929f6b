//! What one-sided operations access at their targets, compared with those of other origins, and of this one, that are
//! under way (MPI 5.0 §12.7).
//!
//! Operations between two fences are under way until the second one, wherever they are called between the two. All
//! others are from their call to the flush, unlock or MPI_Win_complete that ends them: what another origin does before
//! or after that is seen only if it happens meanwhile, so that nothing is said of operations that messages may have
//! ordered.

use super::accesses::window_name;
use super::buffers::Area;
use super::{State, function, report, with};
use crate::arguments::Target;
use crate::coll::access_table::{AccessKind, AccessTable, TableAccess};
use crate::comm::Comm;
use crate::process::engine;
use crate::rma::Flavor;
use crate::windows::WindowObject;
use core::ffi::c_int;
use std::collections::HashMap;

/// Runs of an operation's elements that are compared.
const RUNS: usize = 64;

/// What is known of the windows of this process.
#[derive(Default)]
pub struct Targets {
    /// Fences on each window, by its context id.
    fences: HashMap<u32, u64>,
    /// Operations that could not be compared.
    pub unknown: u64,
}

/// What the function that this thread has called does at its target; `only_reads`: it has nothing to write there.
fn kind(only_reads: bool) -> AccessKind {
    match function() {
        "MPI_Get" | "MPI_Rget" => AccessKind::Get,
        "MPI_Put" | "MPI_Rput" => AccessKind::Put,
        _ if only_reads => AccessKind::Fetch,
        _ => AccessKind::Accumulate,
    }
}

const fn verb(kind: AccessKind) -> &'static str {
    match kind {
        AccessKind::Get | AccessKind::Fetch => "reads",
        AccessKind::Put => "writes",
        AccessKind::Accumulate => "updates",
    }
}

/// The part of the job's table that has one-sided operations, if all members of the window are of this job and live.
fn table(state: &mut State, comm: &Comm) -> Option<AccessTable> {
    let engine = engine().ok()?;
    if engine.has_failures() || engine.has_guests(crate::coll::agreement::members(comm)) {
        return None;
    }
    Some(state.collectives.table()?.accesses())
}

/// The one-sided operation of this `number` begins, which `text` names. `only_reads`: it has nothing to write.
pub fn began(target: &Target<'_>, number: usize, text: &str, only_reads: bool) {
    let win = target.win;
    let Ok(rank) = u32::try_from(target.rank) else { return };
    let Some(runs) = target.runs(RUNS).filter(|runs| win.allows(rank) && !runs.is_empty()) else { return };
    let Ok(own) = engine().map(|engine| engine.rank()) else { return };
    with(|state| {
        let Some(table) = table(state, win.comm()) else { return };
        let context = win.context();
        let fences = state.targets.fences.get(&context).copied().unwrap_or_default();
        let access = TableAccess {
            context,
            target: win.group().world_rank(rank),
            origin: own,
            kind: kind(only_reads),
            epoch: if win.is_fenced() { fences } else { 0 },
            number: number as u64,
            function: function(),
        };
        let (other, had_room) = table.begin(&access, &runs);
        state.targets.unknown += u64::from(!had_room);
        if let Some(other) = other {
            let bytes = report::bytes(other.shared.end - other.shared.start);
            let at = match win.flavor() {
                Flavor::Dynamic => format!("address {:#x}", other.shared.start),
                _ => format!("byte {}", other.shared.start.wrapping_sub(win.address_at(rank, 0))),
            };
            state.findings.say(format!(
                "{text} {} {bytes}, from {at} on, that {} of rank {} {}, and nothing says which of the two is first; separate them by a fence, or by a flush and a message",
                verb(access.kind),
                other.function,
                other.origin,
                verb(other.kind)
            ));
        }
    });
}

/// An operation of this rank that is no one-sided one is about to write an area:
/// says which one-sided operation writes there, too.
pub fn about_to_write(area: &Area, text: impl FnOnce() -> String) {
    let Ok(own) = engine().map(|engine| engine.rank()) else { return };
    with(|state| {
        // Without the table no operation is known.
        let Some(table) = state.collectives.table().map(|table| table.accesses()) else { return };
        let fences = &state.targets.fences;
        let is_now = |context, epoch| fences.get(&context) == Some(&epoch);
        let Some(other) = table.writer(own, || area.addresses(), is_now) else { return };
        let bytes = report::bytes(other.shared.end - other.shared.start);
        state.findings.say(format!(
            "{} writes {bytes} of this rank's window that {} of rank {} {}, and nothing says which of the two is first; separate them by a fence, or by a flush and a message",
            text(),
            other.function,
            other.origin,
            verb(other.kind)
        ));
    });
}

/// A fence begins on a window. `none_before`: MPI_MODE_NOPRECEDE, which says that it ends no operation.
pub fn fence(win: &WindowObject, none_before: bool) {
    let context = win.context();
    with(|state| {
        *state.targets.fences.entry(context).or_default() += 1;
        if none_before {
            for text in state.accesses.on(context) {
                let on = window_name(win);
                state.findings.say(format!(
                    "MPI_Win_fence with MPI_MODE_NOPRECEDE on {on} ends {text}; leave the assertion out"
                ));
            }
        }
    });
}

/// The operations on the window with a target, or with all, are complete there, or about to be, so that others may know
/// it; `only_gets`: only those that read.
pub fn ended(win: &WindowObject, target: Option<c_int>, only_gets: bool) {
    // Whether there is such a target the call itself says, later.
    let world = |rank| {
        u32::try_from(rank).ok().filter(|rank| *rank < win.size()).map(|rank| win.group().world_rank(rank))
    };
    let target = match target.map(world) {
        Some(None) => return,
        Some(target) => target,
        None => None,
    };
    end(win.comm(), |of, kind, _| target.is_none_or(|target| target == of) && (kind.reads() || !only_gets));
}

/// An operation that reads is complete, for its request is.
pub fn get_ended(state: &mut State, context: u32, number: usize) {
    if let (Some(table), Ok(engine)) = (state.collectives.table(), engine()) {
        let is_it = |_, kind: AccessKind, of| kind.reads() && of == number as u64;
        table.accesses().end(context, engine.rank(), is_it);
    }
}

fn end(comm: &Comm, is_over: impl Fn(u32, AccessKind, u64) -> bool) {
    with(|state| {
        if let (Some(table), Ok(engine)) = (table(state, comm), engine()) {
            table.end(comm.context, engine.rank(), is_over);
        }
    });
}

/// A window is about to be freed; another one may get its context id.
pub fn window_freed(win: &WindowObject) {
    ended(win, None, false);
    with(|state| state.targets.fences.remove(&win.context()));
}
