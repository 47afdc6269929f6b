//! `perusal report`: what a trace says of its job.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use perusal_trace::{report, terminal};

use super::check_output;
use crate::sys;

/// What to make of which trace.
#[derive(Args, Debug)]
pub struct ReportOptions {
    /// The trace, as `perusal run --trace FILE` wrote it
    #[arg(value_name = "FILE")]
    trace: PathBuf,
    /// Where to write the page [default: FILE with .html for its ending]
    #[arg(short = 'o', long = "output", value_name = "report.html")]
    page: Option<PathBuf>,
    /// Write everything that was found out as JSON ("-": to standard output); without -o no page is written
    #[arg(long, value_name = "summary.json")]
    json: Option<PathBuf>,
    /// Print a summary; without -o no page is written
    #[arg(long)]
    text: bool,
    /// Report the job's first seconds alone, as if it had been killed then
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    until: Option<u64>,
}

/// Nanoseconds of a number of seconds.
fn seconds(text: &str) -> Result<u64, String> {
    let seconds = text.parse::<f64>().ok().filter(|seconds| (0.0..=1e9).contains(seconds));
    seconds.map(|seconds| (seconds * 1e9) as u64).ok_or_else(|| "it must be a number of seconds".to_owned())
}

/// Memory that a report takes at most, for a record: what was measured, and some more (docs/report.md).
const BYTES_A_RECORD: u64 = 110;

/// Refuses a trace for which there is no memory: a clear message at the start is better than a kill in the middle.
fn check_memory(options: &ReportOptions) -> Result<(), String> {
    let records =
        perusal_trace::most_records(&options.trace, options.until).map_err(|error| error.to_string())?;
    let (needed, free) = (records.saturating_mul(BYTES_A_RECORD), sys::free_memory());
    if needed <= free {
        return Ok(());
    }
    let mib = |bytes: u64| bytes.div_ceil(1 << 20);
    Err(format!(
        "{}: {records} records need about {} MiB of memory, and {} MiB are to be had; --until SECONDS reports the first part",
        options.trace.display(),
        mib(needed),
        mib(free)
    ))
}

/// Reads, analyses, writes.
pub fn main(options: &ReportOptions) -> ExitCode {
    match report(options) {
        Ok(()) => ExitCode::SUCCESS,
        Err(what) => {
            sys::print_error(&format!("perusal report: {}\n", what.strip_prefix("trace: ").unwrap_or(&what)));
            ExitCode::FAILURE
        }
    }
}

fn report(options: &ReportOptions) -> Result<(), String> {
    // Asking for text or JSON alone writes no page.
    let page = (options.page.is_some() || (!options.text && options.json.is_none()))
        .then(|| options.page.clone().unwrap_or_else(|| beside(&options.trace)));
    page.iter().chain(&options.json).try_for_each(|path| check_output(path))?;
    check_memory(options)?;
    let trace =
        perusal_trace::read_until(&options.trace, options.until).map_err(|error| error.to_string())?;
    let file = options.trace.file_name().unwrap_or_default().to_string_lossy();
    let found = report::analyse(&trace, &file);
    // The records are the bulk; what was found in them is small.
    drop(trace);
    let to_stdout = options.json.as_deref() == Some(Path::new("-"));
    if let Some(path) = &options.json {
        let mut json = serde_json::to_string_pretty(&found).map_err(|error| error.to_string())?;
        json.push('\n');
        if to_stdout { print!("{}", terminal::json(&json)) } else { write(path, &json)? }
    }
    if options.text {
        print!("{}", report::text(&found));
    }
    if let Some(path) = page {
        let page = report::page(&found).map_err(|error| error.to_string())?;
        write(&path, &page)?;
        if !options.text && !to_stdout {
            let (verdict, path) = (&found.verdict.paragraph, path.to_string_lossy());
            println!("{}\n\nThe page: {}", terminal::one_line(verdict), terminal::one_line(&path));
        }
    }
    Ok(())
}

/// "heat.trace" becomes "heat.html"; a trace that is called .html already must stay.
fn beside(trace: &Path) -> PathBuf {
    let page = trace.with_extension("html");
    if page == trace {
        let mut name: OsString = trace.as_os_str().to_owned();
        name.push(".html");
        return name.into();
    }
    page
}

fn write(path: &Path, text: &str) -> Result<(), String> {
    fs::write(path, text).map_err(|error| format!("cannot write {}: {error}", path.display()))
}
