//! `perusal why`: why a running job does not go on, seen from outside.

use std::process::ExitCode;
use std::thread::sleep;
use std::time::{Duration, Instant};

use clap::Args;

use super::attach;
use crate::hang::{RankView, Watch, cause, json, report};
use crate::sys;

/// Which job to ask about.
#[derive(Args, Debug)]
pub struct WhyOptions {
    /// The job's number, as `perusal ps` shows it [default: your only job]
    #[arg(value_name = "JOB", value_parser = attach::job_number)]
    job: Option<u32>,
    /// Write JSON
    #[arg(long)]
    json: bool,
}

/// As long as it takes to prove a deadlock on a busy machine.
const LIMIT: Duration = Duration::from_millis(1500);

/// Looks at the job a few times, and says what is known.
pub fn main(options: &WhyOptions) -> ExitCode {
    let mut job = match attach::job(options.job) {
        Ok(job) => job,
        Err(text) => {
            sys::print_error(&format!("perusal why: {text}\n"));
            return ExitCode::FAILURE;
        }
    };
    job.find_guests();
    let scene = job.scene();
    let (mut watch, start) = (Watch::new(true), Instant::now());
    let mut deadlocked = watch.look(&scene);
    // A rank that is not in a wait ends it at once: there is nothing to prove.
    while let Some(pause) = watch.next().filter(|_| !deadlocked && start.elapsed() < LIMIT) {
        sleep(pause);
        deadlocked = watch.look(&scene);
    }
    let ranks = RankView::all(&scene);
    let cause = deadlocked.then(|| cause(&ranks));
    if options.json {
        println!("{:#}", json(cause.as_ref(), &ranks));
        return ExitCode::SUCCESS;
    }
    match &cause {
        Some(cause) => println!("perusal: deadlock: {}", cause.text),
        None => println!("perusal: no deadlock is proved; what the ranks do:"),
    }
    print!("{}", report(&ranks));
    if let Some(cause) = &cause {
        println!("perusal:   {}", cause.advice);
    }
    ExitCode::SUCCESS
}
