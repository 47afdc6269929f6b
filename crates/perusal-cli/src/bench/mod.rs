//! `perusal bench`: measures this library on this machine in about ten seconds,
//! and the machine's own limits for comparison.
//!
//! The command starts itself again as the ranks of a job ([`ranks`]). Rank 0 measures, and prints the figures as a
//! table or as JSON ([`figures`]; [`measure`] has what a measurement is). The ranks call the C functions
//! ([`crate::mpi`]), as programs do. [`limits`] needs no MPI.

mod figures;
mod limits;
mod measure;
mod ranks;

use clap::Args;
use perusal::internals::shm::{RANK_VARIABLE, cpus};
use std::ffi::OsString;
use std::process::ExitCode;

use crate::sys;

/// Seconds that all measurements take together when nothing is said.
const SECONDS: f64 = 8.0;

/// Measure latency, bandwidth, message rate, matching and collectives on this machine, and the machine's own limits.
#[derive(Args, Debug, Clone)]
pub struct BenchOptions {
    /// Ranks that take part in collectives; the first two also talk alone [default:
    /// one for each usable CPU, at least 2]
    #[arg(short = 'n', value_name = "N")]
    ranks: Option<u32>,
    /// Seconds that the measurements take together
    #[arg(long, value_name = "SECONDS", default_value_t = SECONDS)]
    seconds: f64,
    /// Print JSON instead of a table
    #[arg(long)]
    json: bool,
    /// What the ranks of the job are started with.
    #[arg(long, hide = true)]
    rank: bool,
}

/// Runs the benchmark, as its launcher or as one of its ranks.
pub fn main(options: &BenchOptions) -> ExitCode {
    let ranks = options.ranks.unwrap_or_else(|| cpus::usable().max(2));
    if ranks < 2 {
        return refuse("-n 1: messages need two ranks");
    }
    if !(options.seconds > 0.0 && options.seconds <= 3600.0) {
        return refuse(&format!("--seconds {}: it must be above 0, and 3600 at most", options.seconds));
    }
    if options.rank {
        if std::env::var_os(RANK_VARIABLE).is_none() {
            return refuse("--rank is what perusal bench starts its own ranks with");
        }
        return match ranks::main(options.seconds, options.json) {
            Ok(()) => ExitCode::SUCCESS,
            Err(why) => refuse(&why),
        };
    }
    if let Err(missing) = crate::mpi::library() {
        return refuse(&missing);
    }
    let own = match std::env::current_exe() {
        Ok(own) => own,
        Err(error) => return refuse(&format!("this program's own file cannot be found: {error}")),
    };
    let seconds = options.seconds.to_string();
    let mut arguments: Vec<OsString> = vec!["-n".into(), ranks.to_string().into()];
    // Ranks that migrate between processors would measure the scheduler.
    // By default another job on the machine leaves them unbound.
    if ranks <= cpus::usable() {
        arguments.extend(["--bind-to", "core"].map(OsString::from));
    }
    arguments.push(own.into());
    arguments.extend(["bench", "--rank", "--seconds", &seconds].map(OsString::from));
    if options.json {
        arguments.push("--json".into());
    }
    crate::run::main("perusal bench", &arguments)
}

fn refuse(text: &str) -> ExitCode {
    sys::print_error(&format!("perusal bench: {text}\n"));
    ExitCode::from(2)
}
