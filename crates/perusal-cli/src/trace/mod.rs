//! Traces: their making, and the commands that read them.
//!
//! | file | what it has |
//! |---|---|
//! | `mod` | `perusal run --trace` before and after the job, and `perusal trace` |
//! | `report` | `perusal report`: what a trace says of its job |

pub mod report;

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, BufWriter, Read, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Subcommand, ValueEnum};
use perusal::internals::placement::Placement;
use perusal_trace::{
    export, file,
    format::{MAGIC, MOST_JOINING, TraceHeader, UNIT},
};

use crate::args::Plan;
use crate::supervisor::failure::Failure;
use crate::sys;

/// The trace that a job is to leave.
#[derive(Debug)]
pub struct Request {
    /// Where; absolute, because ranks may have another working directory.
    pub path: PathBuf,
    /// Bytes that each rank may write.
    limit: u64,
}

impl Request {
    /// A trace at `path`.
    ///
    /// # Errors
    /// What is wrong with the path, in words.
    pub fn new(path: &OsStr) -> Result<Self, String> {
        let path = std::path::absolute(path)
            .map_err(|error| format!("--trace {}: {error}", path.to_string_lossy()))?;
        Ok(Self { path, limit: file::DEFAULT_LIMIT })
    }

    /// Takes the argument of --trace-limit.
    ///
    /// # Errors
    /// That it is no size, in words.
    pub fn set_limit(&mut self, size: &str) -> Result<(), String> {
        let limit = limit_of(size).ok_or_else(|| {
            format!("--trace-limit {size}: it must be a number of bytes, with K, M, G or T behind it or not, or \"none\"")
        })?;
        // Less than one window would be nothing at all.
        self.limit = limit.max(UNIT);
        Ok(())
    }

    /// Makes the file. Where the job cannot be started, that must be undone.
    ///
    /// # Errors
    /// What keeps it from being written; no rank is started then.
    pub fn begin(&self, plan: &Plan, placement: &Placement) -> Result<file::Replaced, Failure> {
        let words = plan.apps[0].command.iter().map(|word| word.to_string_lossy().into_owned());
        let trace_header = TraceHeader {
            cpus: (0..plan.ranks()).map(|rank| placement.cpus_of(rank)).collect(),
            ..file::trace_header(plan.ranks(), self.limit, words)
        };
        file::create(&self.path, &trace_header)
            .map_err(|error| Failure { status: 1, text: error.to_string() })
    }

    /// Makes the file for endpoints of another MPI, which join it. Where its program, of these words, cannot be
    /// started, that must be undone.
    ///
    /// # Errors
    /// What keeps it from being written, in words.
    pub fn begin_joined(&self, words: &[OsString]) -> Result<file::Replaced, String> {
        let words = words.iter().map(|word| word.to_string_lossy().into_owned());
        let header = file::trace_header(0, self.limit, words);
        let trace_header = TraceHeader { capacity: MOST_JOINING, ..header };
        file::create(&self.path, &trace_header).map_err(|error| error.to_string())
    }

    /// Notes how the job ended, and says what there is and how to look at it.
    pub fn end(&self, status: u8) -> String {
        self.ended(status, "ranks", "come to MPI_Finalize")
    }

    /// The same of a trace that endpoints have joined.
    pub fn end_joined(&self, status: u8) -> String {
        self.ended(status, "endpoints", "close")
    }

    /// The same of a trace of such members, which are to do this at their end.
    fn ended(&self, status: u8, members: &str, last: &str) -> String {
        let ended =
            file::finish(&self.path, i32::from(status)).and_then(|()| perusal_trace::tally(&self.path));
        match ended {
            Ok(tally) => summary(&tally, &self.path, members, last),
            Err(error) => error.to_string(),
        }
    }
}

fn limit_of(size: &str) -> Option<u64> {
    if size == "none" {
        return Some(u64::MAX);
    }
    let digits = size.trim_end_matches(|c: char| !c.is_ascii_digit());
    let shift = match size[digits.len()..].to_ascii_uppercase().as_str() {
        "" => 0,
        "K" | "KB" | "KIB" => 10,
        "M" | "MB" | "MIB" => 20,
        "G" | "GB" | "GIB" => 30,
        "T" | "TB" | "TIB" => 40,
        _ => return None,
    };
    digits.parse::<u64>().ok()?.checked_mul(1 << shift)
}

fn summary(tally: &perusal_trace::TraceTally, path: &Path, members: &str, last: &str) -> String {
    let perusal_trace::TraceTally { recorded, ranks, cut, records, dropped, stopped_by, bytes } = *tally;
    let path = path.display();
    if recorded == 0 {
        return format!("trace: no rank of {ranks} initialised MPI, so {path} says nothing");
    }
    let mut text =
        format!("trace: {records} records of {recorded} {members} in {path} ({} KiB)", bytes >> 10);
    if cut > 0 {
        text += &format!("; {cut} of the {members} did not {last}");
    }
    if dropped > 0 {
        let why = match stopped_by {
            0 => "the limit was reached; --trace-limit raises it".into(),
            errno => io::Error::from_raw_os_error(errno).to_string(),
        };
        text += &format!("; {dropped} later events were counted and not recorded ({why})");
    }
    text + &format!(
        "\n  look at it: perusal report {path}\n          or: perusal trace export --format perfetto {path} -o trace.json   (ui.perfetto.dev)"
    )
}

/// What can be done with a trace.
#[derive(Subcommand)]
pub enum TraceCommand {
    /// Print it as text, a line for each record.
    Print {
        /// The trace.
        file: PathBuf,
    },
    /// Write it in another format.
    Export {
        /// Which.
        #[arg(long, value_enum)]
        format: Format,
        /// The trace.
        file: PathBuf,
        /// Where to: a file, or for OTF2 a folder that is not there yet.
        #[arg(short, long)]
        output: PathBuf,
    },
}

/// A format of other tools.
#[derive(Clone, Copy, ValueEnum)]
pub enum Format {
    /// JSON for Perfetto (ui.perfetto.dev) and chrome://tracing.
    Perfetto,
    /// Open Trace Format 2, for Vampir, Scalasca, otf2-print; needs the OTF2 library.
    Otf2,
}

/// Does it.
pub fn main(command: &TraceCommand) -> ExitCode {
    match act(command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(text) => {
            sys::print_error(&format!("perusal trace: {}\n", text.strip_prefix("trace: ").unwrap_or(&text)));
            ExitCode::FAILURE
        }
    }
}

/// Refuses to write to a file that is a trace: mostly the one that is read.
///
/// # Errors
/// That it is one, in words.
pub fn check_output(path: &Path) -> Result<(), String> {
    let mut magic = [0; 8];
    // Whatever else is there (a pipe, a device) is not read.
    let is_file = path.metadata().is_ok_and(|metadata| metadata.is_file());
    let begins = is_file && File::open(path).and_then(|mut file| file.read_exact(&mut magic)).is_ok();
    if begins && u64::from_le_bytes(magic) == MAGIC {
        return Err(format!(
            "{}: this is a trace, over which nothing is written; name another file",
            path.display()
        ));
    }
    Ok(())
}

fn act(command: &TraceCommand) -> Result<(), String> {
    match command {
        TraceCommand::Print { file } => {
            let trace = perusal_trace::read(file).map_err(|error| error.to_string())?;
            let mut out = BufWriter::new(io::stdout().lock());
            export::print(&trace, &mut out).and_then(|()| out.flush()).map_err(|error| error.to_string())
        }
        TraceCommand::Export { format, file, output } => {
            let trace = perusal_trace::read(file).map_err(|error| error.to_string())?;
            match format {
                Format::Perfetto => {
                    check_output(output)?;
                    let failed = |error: io::Error| format!("{}: {error}", output.display());
                    let mut out = BufWriter::new(File::create(output).map_err(failed)?);
                    export::perfetto(&trace, &mut out).and_then(|()| out.flush()).map_err(failed)
                }
                Format::Otf2 => export::otf2(&trace, output).map_err(|error| error.to_string()),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_numbers_with_a_unit() {
        for (size, bytes) in
            [("4096", 4096), ("64K", 64 << 10), ("2g", 2 << 30), ("1MiB", 1 << 20), ("none", u64::MAX)]
        {
            assert_eq!(limit_of(size), Some(bytes), "{size}");
        }
        for size in ["", "K", "-1", "1.5M", "1X", "99999999999T"] {
            assert_eq!(limit_of(size), None, "{size}");
        }
    }
}
