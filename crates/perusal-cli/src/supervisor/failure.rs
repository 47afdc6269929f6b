//! Which rank failed and why, in one line. For a job that hangs: what each rank waits for.

use std::fmt::Write as _;
use std::sync::OnceLock;

use crate::hang::{RankView, Scene};
use perusal::internals::shm::{Abort, Exit, Memory, RankState, exit::signal_name, is_gone, machine};

/// The failure that ends a job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// Exit status of the launcher.
    pub status: u8,
    /// One line, or several, for people.
    pub text: String,
}

/// Kinds of failure, the likeliest cause first: when several ranks end at once,
/// the message names the first kind among them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Severity {
    Signal,
    Status,
    Early,
}

/// Returns the failure, if any, behind the ranks that have just ended.
/// `forwarded` are the signals that the launcher has passed on.
pub fn failure_of_ended(memory: &Memory, ended: &[(u32, Exit)], forwarded: &[i32]) -> Option<Failure> {
    let concerns = |abort: &Abort| ended.iter().any(|(rank, _)| memory.roster().concerns(abort.rank, *rank));
    if let Some(abort) = memory.header().abort(memory.places()).filter(concerns) {
        return Some(Failure {
            status: status_of(abort.code),
            text: format!("rank {} {}", abort.rank, abort.what()),
        });
    }
    let worst = ended
        .iter()
        .filter_map(|(rank, exit)| Some((severity(memory, *rank, *exit)?, *rank, *exit)))
        .min_by_key(|(severity, rank, _)| (*severity, *rank))?;
    let (severity, rank, exit) = worst;
    let pid = memory.roster().entry(rank).pid();
    let who = if pid <= 0 { format!("rank {rank}") } else { format!("rank {rank} (process {pid})") };
    let killer = if exit.signal() == Some(libc::SIGKILL) { killed_for_memory() } else { "" };
    let text = match (severity, exit.signal()) {
        (Severity::Signal, Some(signal)) if forwarded.contains(&signal) => {
            format!("rank {rank} ended by {}, which was passed on to it", signal_name(signal))
        }
        (Severity::Early, _) => early(memory, rank, &who),
        (Severity::Status, _) if is_inside(memory, rank) => {
            format!("{who} {exit} before {}", memory.roster().entry(rank).last_function())
        }
        _ => format!("{who} {exit}{killer}"),
    };
    let status = if severity == Severity::Early { 1 } else { exit.status() };
    Some(Failure { status: u8::try_from(status).unwrap_or(1), text })
}

/// Counts the processes that have been killed for memory, so that [`failure_of_ended`] can say so of a rank.
pub fn watch_memory() {
    let _ = KILLED_BEFORE.set(machine::killed_for_memory());
}

/// The count when the job began.
static KILLED_BEFORE: OnceLock<Option<u64>> = OnceLock::new();

/// What a line about a killed rank says besides, if the kernel has killed for memory since the job began.
fn killed_for_memory() -> &'static str {
    let before = KILLED_BEFORE.get().copied().flatten();
    match (before, machine::killed_for_memory()) {
        (Some(before), Some(now)) if now > before => {
            " by the kernel, as the memory of its control group had run out (a limit of the container, the batch system or systemd)"
        }
        _ => "",
    }
}

/// Returns the failure of a rank whose MPI process has died while `child`, the process that the launcher started for it
/// (a shell, a debugger), runs on; `None` if that is not so.
pub fn died_unseen(memory: &Memory, rank: u32, child: i32) -> Option<Failure> {
    let entry = memory.roster().entry(rank);
    let pid = entry.pid();
    let inside = matches!(entry.state(), RankState::Arrived | RankState::Initialised | RankState::Finalizing);
    if !inside || pid <= 0 || pid == child || !is_gone(pid) || entry.state() == RankState::Finalized {
        return None;
    }
    let text = format!(
        "rank {rank} (process {pid}) ended before {}; process {child}, which started it, runs on",
        entry.last_function()
    );
    Some(Failure { status: 1, text })
}

/// Whether the end of a rank is a failure, and of what kind.
fn severity(memory: &Memory, rank: u32, exit: Exit) -> Option<Severity> {
    if exit.signal().is_some() {
        return Some(Severity::Signal);
    }
    if exit.status() != 0 {
        return Some(Severity::Status);
    }
    // A program that never called MPI_Init may come and go; one that did must call MPI_Finalize.
    is_inside(memory, rank).then_some(Severity::Early)
}

/// Whether the rank has begun to take part in MPI and not finished. Its own state may already say that it is dead.
fn is_inside(memory: &Memory, rank: u32) -> bool {
    let entry = memory.roster().entry(rank);
    entry.pid() != 0 && entry.state() != RankState::Finalized
}

/// The line about a rank that left with status 0 too early, and what the others do about it.
fn early(memory: &Memory, rank: u32, who: &str) -> String {
    let mut text =
        format!("{who} exited with status 0 before {}", memory.roster().entry(rank).last_function());
    let scene = Scene::new(memory, []);
    let others = (0..memory.places_in_use()).filter(|other| *other != rank);
    let views = others.map(|other| RankView::of(&scene, other));
    if let Some((other, wait)) = views.filter_map(|view| Some((view.rank, view.wait()?.text()))).next() {
        // Writing to a string cannot fail.
        let _ = write!(text, ", and others wait (rank {other} in {wait})");
    }
    text
}

/// An MPI_Abort code as an exit status: its low byte, but never 0, for an aborted job did not succeed.
fn status_of(code: i32) -> u8 {
    match code & 0xff {
        0 => 1,
        // The mask leaves eight bits.
        low => low as u8,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use perusal::internals::shm::telemetry::{Wait, Waiting};

    fn ended(memory: &Memory, rank: u32, status: i32) -> (u32, Exit) {
        memory.roster().entry(rank).set_exit(Exit(status));
        (rank, Exit(status))
    }

    #[test]
    fn a_signal_outweighs_a_status_that_may_follow_from_it() {
        let memory = Memory::create(3, 0).unwrap();
        let both = [ended(&memory, 0, 1 << 8), ended(&memory, 2, 11)];
        let failure = failure_of_ended(&memory, &both, &[]).unwrap();
        assert_eq!(failure, Failure { status: 139, text: "rank 2 killed by SIGSEGV (signal 11)".into() });
    }

    #[test]
    fn an_abort_is_named_whoever_ended_first() {
        let memory = Memory::create(3, 0).unwrap();
        memory.header().set_abort(Abort::by_program(1, 256));
        let failure = failure_of_ended(&memory, &[ended(&memory, 0, 9)], &[]).unwrap();
        assert_eq!(failure, Failure { status: 1, text: "rank 1 called MPI_Abort with code 256".into() });
        assert_eq!(status_of(5), 5);
        assert_eq!(status_of(-1), 255);
        assert_eq!(status_of(0), 1);
    }

    #[test]
    fn leaving_with_status_0_is_a_failure_only_inside_mpi() {
        let memory = Memory::create(3, 0).unwrap();
        assert_eq!(failure_of_ended(&memory, &[ended(&memory, 0, 0)], &[]), None);
        memory.roster().entry(1).arrive(1, 77).unwrap();
        memory.roster().entry(1).advance(RankState::Initialised);
        memory.roster().entry(2).arrive(2, std::process::id().cast_signed()).unwrap();
        memory.roster().entry(2).advance(RankState::Initialised);
        memory.telemetry(2).waiting.set(&Wait {
            kind: Waiting::Receive,
            peer: Some(1),
            tag: Some(5),
            context: 0,
            since: 0,
        });
        let failure = failure_of_ended(&memory, &[ended(&memory, 1, 0)], &[]).unwrap();
        assert_eq!(failure.status, 1);
        assert_eq!(
            failure.text,
            "rank 1 (process 77) exited with status 0 before MPI_Finalize, and others wait (rank 2 in a receive for rank 1, tag 5, on 'MPI_COMM_WORLD')"
        );
        memory.roster().entry(1).advance(RankState::Finalized);
        assert_eq!(failure_of_ended(&memory, &[(1, Exit(0))], &[]), None);
        assert_eq!(
            failure_of_ended(&memory, &[(1, Exit(3 << 8))], &[]).unwrap().text,
            "rank 1 (process 77) exited with status 3"
        );
    }

    #[test]
    fn a_signal_that_was_passed_on_is_nobodys_fault() {
        let memory = Memory::create(1, 0).unwrap();
        let failure = failure_of_ended(&memory, &[ended(&memory, 0, 2)], &[libc::SIGINT]).unwrap();
        assert_eq!(failure.status, 130);
        assert_eq!(failure.text, "rank 0 ended by SIGINT (signal 2), which was passed on to it");
    }
}
