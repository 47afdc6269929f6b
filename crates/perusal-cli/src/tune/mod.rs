//! `perusal tune`: measures with two ranks where the thresholds lie, and writes them to a file that the launcher reads.
//!
//! | file | what lives there |
//! |---|---|
//! | `rank` | the two ranks that measure: this program again, under this launcher |
//! | `choose` | from measured times to values; pure |
//! | `file` | the file, and where it lies |

mod choose;
pub mod file;
mod rank;

use perusal::internals::shm::machine::MachineId;
use perusal::internals::shm::{Memory, cpus};
use perusal::internals::variables::overrides::TUNED;
use perusal::internals::variables::{Overrides, VARIABLES};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

use crate::sys;
use choose::Measured;
use file::{FoundTuneFile, TuneFile};

/// How to tune.
#[derive(clap::Args, Debug)]
pub struct TuneOptions {
    /// Where to write [default: PERUSAL_TUNE_FILE, else perusal/tune.toml in XDG_CONFIG_HOME or ~/.config]
    #[arg(short = 'o', long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Show what would be chosen, and write nothing
    #[arg(long)]
    dry_run: bool,
    /// Be one of the ranks that measure
    #[arg(long, hide = true, value_name = "WHAT")]
    rank: Option<rank::Measurement>,
}

/// How often everything is measured, so that what changes from time to time is not taken for the machine's.
const REPETITIONS: usize = 3;

/// Measures, shows, writes.
pub fn main(options: &TuneOptions) -> ExitCode {
    let outcome = match options.rank {
        Some(what) => rank::main(what),
        None => tune(options),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(what) => {
            sys::print_error(&format!("perusal tune: {what}\n"));
            ExitCode::FAILURE
        }
    }
}

/// Finds the tune file and puts its values into the environment of this process and of the ranks that it starts. Call
/// it before there is a second thread.
pub fn take_over(oversubscribed: bool) -> FoundTuneFile {
    let found = file::find();
    match &found {
        // SAFETY: this is the only thread of the process, so nothing reads the environment meanwhile.
        FoundTuneFile::Used(_, file) => unsafe { std::env::set_var(TUNED, file.pairs(oversubscribed)) },
        // SAFETY: this is the only thread of the process, so nothing reads the environment meanwhile.
        _ => unsafe { std::env::remove_var(TUNED) },
    }
    found
}

fn tune(options: &TuneOptions) -> Result<(), String> {
    let path = match (&options.output, options.dry_run) {
        (_, true) => None,
        (Some(path), _) => Some(path.clone()),
        (None, _) => {
            let usual = file::path();
            Some(usual.ok_or("there is no home directory to write to; name a file with --output FILE")?)
        }
    };
    crate::mpi::library()?;
    let machine = MachineId::here();
    println!("perusal tune: {machine}; {} usable here", cpus::usable());
    let mut repetitions: [Measured; REPETITIONS] = Default::default();
    if cpus::usable() > 1 {
        for one in &mut repetitions {
            one.add(&run_ranks(rank::Measurement::Copies)?)?;
            one.add(&run_ranks(rank::Measurement::Waits)?)?;
        }
    } else {
        println!("  one CPU: what needs two is not measured");
    }
    bind_to_one_cpu();
    for one in &mut repetitions {
        one.add(&run_ranks(rank::Measurement::Oversubscribed)?)?;
    }
    print!("{}", Measured::shortest(&repetitions).table());
    let job = Memory::create_with(2, 0, &Overrides::default()).map_err(|error| error.to_string())?.shape();
    let chosen = choose::all(&repetitions, &job);
    print!("{}", choose::table(&chosen));
    let Some(path) = path else { return Ok(()) };
    let values = chosen.into_iter().filter_map(|one| Some((one.jobs, one.name.to_owned(), one.value?)));
    write(&path, &TuneFile { machine, values: values.collect() }.text())?;
    println!("written to {}", path.display());
    Ok(())
}

/// Binds this process, and whatever it starts from here on, to the first CPU that it may use.
fn bind_to_one_cpu() {
    let Some(first) = cpus::affinity().first().copied() else { return };
    // If this fails, the two ranks have a CPU each, and the times show it.
    let _ = cpus::set_affinity(&[first]);
}

/// Runs two ranks that measure, without any control variable in their environment. Returns what rank 0 printed.
fn run_ranks(what: rank::Measurement) -> Result<String, String> {
    let own = std::env::current_exe().map_err(|error| format!("finding this program: {error}"))?;
    let mut command = Command::new(&own);
    command.args(["run", "-n", "2", "--timeout", "300"]).arg(&own).args(["tune", "--rank", what.name()]);
    for variable in &VARIABLES {
        command.env_remove(variable.environment);
    }
    command.env("PERUSAL_TUNE_FILE", "none").stdin(Stdio::null()).stderr(Stdio::inherit());
    let output = command.output().map_err(|error| format!("starting two ranks: {error}"))?;
    if !output.status.success() {
        return Err(format!("the ranks that measure ended with {}", output.status));
    }
    String::from_utf8(output.stdout).map_err(|_| "the ranks that measure printed no text".into())
}

fn write(path: &Path, text: &str) -> Result<(), String> {
    let failed = |error: std::io::Error| format!("{}: {error}", path.display());
    if let Some(directory) = path.parent() {
        std::fs::create_dir_all(directory).map_err(failed)?;
    }
    // Written under another name first, so that a job that starts now finds the old file or the new one.
    let beside = path.with_extension(format!("new-{}", std::process::id()));
    std::fs::write(&beside, text).map_err(failed)?;
    std::fs::rename(&beside, path).map_err(failed)
}
