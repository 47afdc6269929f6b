//! A job as the command line asks for it.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use perusal::internals::placement::Policy;

use crate::hosts::Hosts;
use crate::start::environment::EnvironmentChanges;
use crate::streams::label::LabelText;
use crate::streams::output_files::OutputFiles;
use crate::trace::Request;

/// One program of a job.
#[derive(Debug)]
pub struct App {
    /// Ranks, at least 1.
    pub count: u32,
    /// Ranks that were asked for: more, where a smaller number would do.
    pub most: u32,
    /// Working directory, if another than the launcher's.
    pub wdir: Option<OsString>,
    /// How its environment differs from the launcher's.
    pub changes: EnvironmentChanges,
    /// Where the program is looked for first.
    pub path: Option<OsString>,
    /// Program and arguments, at least the program.
    pub command: Vec<OsString>,
}

/// Who gets standard input.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Stdin {
    /// Nobody.
    #[default]
    None,
    /// This rank.
    Rank(u32),
    /// All ranks, each a copy.
    All,
}

/// What the launcher does about a deadlock.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum OnDeadlock {
    /// It says why, and ends the job.
    #[default]
    End,
    /// It says why.
    Warn,
    /// Nothing: it does not look.
    Ignore,
}

/// A job as asked for.
#[derive(Debug, Default)]
pub struct Plan {
    /// Its programs in the order of ranks.
    pub apps: Vec<App>,
    /// Whether lines get their rank written before them.
    pub label: bool,
    /// Whether lines get the time and their stream written before them.
    pub timestamps: bool,
    /// What else is written before lines.
    pub prefix: Option<LabelText>,
    /// Where output goes besides.
    pub files: OutputFiles,
    /// When to give up.
    pub timeout: Option<Duration>,
    /// What to do about a deadlock.
    pub on_deadlock: OnDeadlock,
    /// Whether the job goes on when a rank dies.
    pub survive: bool,
    /// Where JSON about a job that stands still goes.
    pub deadlock_report: Option<PathBuf>,
    /// Who gets standard input.
    pub stdin: Stdin,
    /// Where ranks are put.
    pub policy: Policy,
    /// Whether to say where ranks were put.
    pub report_bindings: bool,
    /// How many processes programs may expect to have, if that was asked for.
    pub universe: Option<u32>,
    /// Where the trace goes, if there is one.
    pub trace: Option<Request>,
    /// Where to run, if not on this machine alone.
    pub hosts: Option<Hosts>,
    /// What was taken but means nothing here, a sentence each.
    pub notes: Vec<String>,
}

impl Plan {
    /// Number of ranks of the whole job.
    #[must_use]
    pub fn ranks(&self) -> u32 {
        self.apps.iter().map(|app| app.count).sum()
    }
}

/// Why there is no plan.
#[derive(Debug)]
pub enum PlanError {
    /// Printed by clap: help, version, or an error with its usage.
    Clap(clap::Error),
    /// An error that clap does not know.
    Text(String),
}

impl From<String> for PlanError {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<perusal::Error> for PlanError {
    fn from(error: perusal::Error) -> Self {
        Self::Text(error.to_string())
    }
}
