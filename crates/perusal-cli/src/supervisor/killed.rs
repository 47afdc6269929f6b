//! Ranks that SIGKILL has not ended yet. The kernel takes a process apart on the process's own time: with much memory,
//! or beside others that want the CPUs, that takes seconds. A rank that runs, or waits for a CPU, is ending; only of
//! one that does neither the launcher takes its leave.

use std::fs;

use super::Supervisor;
use crate::sys;

/// Ticks that a process's threads have run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CpuTime(u64);

impl Supervisor<'_> {
    /// Notes how long ranks have run that have just been killed.
    pub(crate) fn note_progress(&mut self) {
        for rank in self.ranks.iter_mut().filter(|rank| rank.running) {
            rank.ran = cpu_time(rank.pid);
        }
    }

    /// Waits no longer for killed ranks that may not be killed, or have neither run since the last look nor want to.
    pub(crate) fn leave_behind(&mut self) {
        for rank in 0..self.ranks.len() {
            let process = &mut self.ranks[rank];
            if !process.running {
                continue;
            }
            let pid = process.pid;
            let refusal = sys::refusal(pid);
            let before = std::mem::replace(&mut process.ran, cpu_time(pid));
            if refusal.is_none() && (process.ran != before || wants_a_cpu(pid)) {
                continue;
            }
            process.running = false;
            let why = refusal.map_or_else(String::new, |error| format!(": {error}"));
            self.say(&format!("rank {rank} (process {pid}) cannot be killed{why}; it is left behind"));
        }
    }
}

/// The fields of a `stat` file behind the name, which may contain anything. The first is the state.
fn fields(path: &str) -> Vec<String> {
    let stat = fs::read_to_string(path).unwrap_or_default();
    stat.rsplit_once(')')
        .map_or_else(Vec::new, |(_, rest)| rest.split_whitespace().map(str::to_owned).collect())
}

fn cpu_time(pid: i32) -> CpuTime {
    // In user mode and in the kernel: fields 14 and 15 of proc_pid_stat(5), of which the state is the third.
    let fields = fields(&format!("/proc/{pid}/stat"));
    CpuTime(fields.iter().skip(11).take(2).filter_map(|ticks| ticks.parse::<u64>().ok()).sum())
}

/// Whether a thread of the process runs or waits for a CPU, or the process has ended and waits to be reaped.
fn wants_a_cpu(pid: i32) -> bool {
    let threads = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let states: Vec<String> = threads
        .filter_map(|thread| fields(&format!("{}/stat", thread.path().display())).into_iter().next())
        .collect();
    states.iter().any(|state| state == "R") || states.iter().all(|state| state == "Z")
}
