//! `perusal ps`: the jobs that run, and the processes that have endpoints under other MPIs.

use std::process::ExitCode;

use clap::Args;
use perusal::internals::shm::Memory;
use perusal_fi::observe::{self, Status};
use serde_json::json;

use super::attach::{self, RunningJob};
use crate::hang::{RankView, Scene, Stage};

/// How to list jobs.
#[derive(Args, Debug)]
pub struct PsOptions {
    /// Write JSON, of jobs alone
    #[arg(long)]
    json: bool,
}

/// Ranks that wait in MPI, that run, and that have ended or not begun.
#[derive(Debug, Default, PartialEq, Eq)]
struct Counts {
    wait: usize,
    run: usize,
    other: usize,
}

impl Counts {
    fn of(memory: &Memory) -> Self {
        let mut counts = Self::default();
        for rank in RankView::all(&Scene::new(memory, [])) {
            match rank.stage {
                Stage::Waits(_) => counts.wait += 1,
                Stage::Runs | Stage::Starting | Stage::Finalizes | Stage::Finalized => counts.run += 1,
                Stage::Absent | Stage::Ended(_) => counts.other += 1,
                // Its own job counts it.
                Stage::Guest => {}
            }
        }
        counts
    }
}

/// Lists the jobs.
pub fn main(options: &PsOptions) -> ExitCode {
    let jobs = attach::jobs();
    if options.json {
        let all: Vec<_> = jobs.iter().map(as_json).collect();
        println!("{:#}", json!(all));
        return ExitCode::SUCCESS;
    }
    println!("{:>8} {:>6} {:>8} {:>6} {:>6}  COMMAND", "JOB", "RANKS", "TIME", "WAIT", "RUN");
    for job in &jobs {
        let counts = Counts::of(&job.memory);
        let (ranks, time) = (job.memory.processes(), time(job.seconds));
        println!(
            "{:>8} {ranks:>6} {time:>8} {:>6} {:>6}  {}",
            job.number, counts.wait, counts.run, job.command
        );
    }
    list_endpoints(&observe::endpoints());
    ExitCode::SUCCESS
}

/// Lists the processes that have endpoints under another MPI, if there are any.
fn list_endpoints(all: &[Status]) {
    if all.is_empty() {
        return;
    }
    println!("\nProcesses under other MPIs (what they wait for: perusal fabric --show)");
    println!("{:>8} {:>8} {:>10} {:>10}  COMMAND", "PROCESS", "TIME", "SENT", "TAKEN");
    for one in all {
        let (time, command) = (time(attach::age(one.process)), attach::command(one.process));
        println!("{:>8} {time:>8} {:>10} {:>10}  {command}", one.process, one.sent, one.taken);
    }
}

fn as_json(job: &RunningJob) -> serde_json::Value {
    let counts = Counts::of(&job.memory);
    json!({
        "job": job.number,
        "ranks": job.memory.processes(),
        "seconds": job.seconds,
        "waiting": counts.wait,
        "running": counts.run,
        "other": counts.other,
        "command": job.command,
    })
}

/// Hours, minutes, seconds.
pub fn time(seconds: f64) -> String {
    let seconds = seconds as u64;
    let (hours, minutes) = (seconds / 3600, seconds / 60 % 60);
    if hours > 0 {
        format!("{hours}:{minutes:02}:{:02}", seconds % 60)
    } else {
        format!("{minutes}:{:02}", seconds % 60)
    }
}

#[cfg(test)]
mod tests {
    use super::time;

    #[test]
    fn times_have_hours_where_there_are_some() {
        assert_eq!([0.9, 61.0, 3599.0, 3661.5].map(time), ["0:00", "1:01", "59:59", "1:01:01"]);
    }
}
