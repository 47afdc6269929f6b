//! What is said behind a cause: what the sentence would leave open.

use perusal::internals::shm::telemetry::detail::UNKNOWN_CONTEXT;
use perusal::internals::shm::telemetry::{AboutKind, Waiting};

use super::cause::{Cause, waits};
use super::{LongWait, RankView, asleep};

/// The cause with what belongs to it.
pub fn with_remarks(mut cause: Cause, ranks: &[RankView]) -> Cause {
    if let Some(name) = name_of_two(ranks).filter(|name| cause.text.contains(&format!("'{name}'"))) {
        cause.text.push_str(&format!("; several communicators have the name '{name}'"));
    }
    if let Some(text) = asleep::held_mutex(ranks) {
        cause.text.push_str(&format!("; {text}"));
        cause.advice = format!(
            "unlock the mutex before the call of MPI, if the other thread is to do what is waited for; or {}",
            cause.advice
        );
    }
    if cause.kind == "finalized-early" && on_something(ranks) {
        cause
            .advice
            .push_str(", also at the collective calls on the file or window: mpiexec --check compares them");
    }
    cause
}

/// Whether a rank waits in a collective call on a file or window.
fn on_something(ranks: &[RankView]) -> bool {
    let is_it =
        |wait: &LongWait| wait.wait.kind == Waiting::Collective && wait.detail.comm.kind != AboutKind::Comm;
    waits(ranks).any(|(_, wait)| is_it(wait))
}

/// A name that several communicators have of which one rank is a member, as far as the ranks that wait say.
fn name_of_two(ranks: &[RankView]) -> Option<&str> {
    // Contexts of other jobs count apart from those of this one.
    let own = || waits(ranks).filter(|(rank, _)| rank.home.is_none());
    own().find_map(|(rank, wait)| {
        let is_other = |name: &str, context: u32| {
            let name_here = &wait.detail.comm.name;
            let is_known = context != UNKNOWN_CONTEXT && wait.detail.comm.kind == AboutKind::Comm;
            is_known && !name.is_empty() && name == name_here && context & !1 != wait.wait.context & !1
        };
        let messages = || wait.detail.unexpected.iter().chain(&wait.detail.pending);
        let of_messages = || messages().any(|message| is_other(&message.comm, message.context));
        let of_operations =
            || wait.detail.operations.iter().any(|operation| is_other(&operation.comm, operation.context));
        let of_others = || {
            own().any(|(_, other)| {
                let is_member = other.detail.comm.members.contains(&rank.rank);
                is_member
                    && other.detail.comm.kind == AboutKind::Comm
                    && is_other(&other.detail.comm.name, other.wait.context)
            })
        };
        (of_messages() || of_operations() || of_others()).then_some(wait.detail.comm.name.as_str())
    })
}
