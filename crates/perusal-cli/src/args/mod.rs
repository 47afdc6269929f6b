//! The command line of `perusal run`, as people type it for `mpiexec`: long options with one dash or two, `:` between
//! the programs of a job. What has a meaning on one machine is honoured, what has none is taken with a note, and what
//! would change the outcome or is unknown is refused.
//!
//! | file | what it has |
//! |---|---|
//! | `options` | options as people write them, in the form that clap reads |
//! | `config_file` | the command lines in a file of `-configfile` |
//! | `plan` | [`Plan`]: a job as the command line asks for it |
//! | `planning` | from options to a plan |
//! | `count` | how many ranks |
//! | `output` | where output goes, and what stands before its lines |
//! | `job_variables` | control variables that the launcher obeys itself, or sets for the ranks |
//! | `notes` | what is said of options that are taken and not obeyed |

mod config_file;
mod count;
mod job_variables;
mod notes;
mod options;
mod output;
mod plan;
mod planning;

pub use job_variables::CommandLine;
pub use plan::{App, OnDeadlock, Plan, PlanError, Stdin};
pub use planning::plan;

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{ArgAction, CommandFactory, FromArgMatches, Parser};

use options::OptionTable;

/// Run a program on several ranks of this machine.
///
/// Long options may be written with one dash or two. Several programs make one job when they are separated by `:`, each
/// with its own -n, -env and -wdir; `-configfile FILE` reads them from a file, a line each. Exit status: 0 if all ranks
/// ended well; that of the first rank that failed (128 plus the signal that killed it); 124 after --timeout; 125 after
/// a deadlock; 126 or 127 if a program cannot be run.
#[derive(Parser, Debug, Default)]
#[command(
    name = "perusal",
    version,
    allow_negative_numbers = true,
    override_usage = "perusal run [-n N] [options] program [args…] [: [-n N] [options] program [args…]]…"
)]
struct RunOptions {
    /// Number of ranks [default: one for each usable CPU, or 1 for each of several programs]
    #[arg(short = 'n', long = "np", aliases = ["n", "c"], short_alias = 'c', value_name = "N")]
    count: Option<u32>,

    /// Numbers of ranks that will do, of which the largest up to -n is taken: 2,4:8,10:20:5
    #[arg(long = "soft", value_name = "NUMBERS")]
    soft: Option<String>,
    /// Directories in which the program is looked for before those of PATH, separated by colons
    #[arg(long = "path", value_name = "DIRS")]
    path: Option<OsString>,
    /// What an error does until the program sets a handler:
    /// mpi_errors_are_fatal (the default), mpi_errors_abort, mpi_errors_return
    #[arg(long = "initial-errhandler", value_name = "NAME")]
    initial_errhandler: Option<String>,
    /// Kinds of memory that the ranks want to use, separated by commas, of the info key mpi_memory_alloc_kinds
    #[arg(long = "memory-alloc-kinds", value_name = "KINDS")]
    memory_alloc_kinds: Option<String>,
    /// Architecture; only this machine's is possible
    #[arg(long = "arch", value_name = "NAME", hide = true)]
    arch: Option<String>,

    /// Working directory of the ranks
    #[arg(long = "wdir", visible_alias = "wd", value_name = "DIR")]
    wdir: Option<OsString>,

    /// Set a variable for the ranks (all variables of mpiexec are passed on anyway)
    #[arg(short = 'x', value_name = "VAR[=VALUE]")]
    x: Vec<OsString>,
    /// Set a variable for the ranks of this program
    #[arg(long = "env", value_name = "VAR VALUE")]
    env: Vec<OsString>,
    /// Set a variable for all ranks
    #[arg(long = "genv", value_name = "VAR VALUE")]
    genv: Vec<OsString>,
    /// Pass on only these variables, separated by commas
    #[arg(long = "envlist", value_name = "VARS")]
    envlist: Option<String>,
    /// The same for all programs
    #[arg(long = "genvlist", value_name = "VARS")]
    genvlist: Option<String>,
    /// Pass on no variables
    #[arg(long = "envnone")]
    envnone: bool,
    /// The same for all programs
    #[arg(long = "genvnone")]
    genvnone: bool,
    /// Pass on all variables (the default), whatever holds for all programs
    #[arg(long = "envall", hide = true)]
    envall: bool,
    /// Pass on all variables (the default)
    #[arg(long = "genvall", hide = true)]
    genvall: bool,

    /// Write the rank before each line of output
    #[arg(short = 'l', long = "tag-output", aliases = ["prepend-rank", "label"])]
    label: bool,
    /// Write the time, and which stream it is, before each line of output
    #[arg(long = "timestamp-output")]
    timestamps: bool,
    /// Write this before each line of output: "%r" stands for the rank, "%h" for the machine,
    /// "%t" for the seconds since the job began
    #[arg(long = "prepend-pattern", value_name = "TEXT")]
    prepend_pattern: Option<OsString>,
    /// Write each rank's output to the file NAME.RANK, too; with ":nocopy" behind the name nowhere else
    #[arg(long = "output-filename", value_name = "NAME")]
    output_filename: Option<OsString>,
    /// Words, separated by commas: "tag" is -l, "timestamp" --timestamp-output, "merge" --merge-stderr-to-stdout,
    /// "file=NAME" --output-filename; "dir=DIR" writes to DIR/1/rank.RANK/stdout and stderr
    #[arg(long = "output", value_name = "WORDS", value_delimiter = ',')]
    output: Vec<String>,
    /// Write what ranks write to standard output to this file only, "%r" standing for the rank
    #[arg(long = "outfile-pattern", alias = "outfile", value_name = "FILE")]
    outfile_pattern: Option<OsString>,
    /// The same for standard error
    #[arg(long = "errfile-pattern", alias = "errfile", value_name = "FILE")]
    errfile_pattern: Option<OsString>,
    /// Write standard error of ranks where their standard output goes
    #[arg(long = "merge-stderr-to-stdout")]
    merge: bool,
    /// End the job after so many seconds and say what each rank waits for;
    /// MPIEXEC_TIMEOUT in the environment is the same
    #[arg(long = "timeout", value_name = "SECONDS")]
    timeout: Option<String>,
    /// What to do about a deadlock: "end" says why and ends the job with status 125, "warn" says why,
    /// "ignore" does not look [default: end]
    #[arg(long = "on-deadlock", value_name = "WHAT")]
    on_deadlock: Option<String>,
    /// Go on when a rank dies: the others get MPIX_ERR_PROC_FAILED where they need it; see docs/surviving.md
    #[arg(long = "survive", aliases = ["enable-recovery", "disable-auto-cleanup"])]
    survive: bool,
    /// "ulfm" or "mpi" is the same as --survive, "none" is the default
    #[arg(long = "with-ft", value_name = "WHAT", hide = true)]
    with_ft: Option<String>,
    /// Write what is known of a deadlock, or of a job that has not ended in time, to this file as JSON
    #[arg(long = "deadlock-report", value_name = "FILE")]
    deadlock_report: Option<PathBuf>,
    /// Say at MPI_Finalize what was never completed, received or freed, and at once where collective calls differ or
    /// two operations use a buffer. "strict" waits besides wherever MPI allows a call to wait: for the receive in a
    /// send, for all members in a blocking collective call
    #[arg(
        long = "check",
        value_name = "HOW",
        value_parser = ["on", "strict"],
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "on"
    )]
    check: Option<String>,
    /// Which rank gets standard input: a rank, "all" or "none" [default: 0]
    #[arg(long = "stdin", short = 's', value_name = "RANK")]
    stdin: Option<String>,

    /// Bind each rank: none, core, socket, numa, l3cache, l2cache, l1cache, hwthread; core:2 for two cores [default: an
    /// equal share of the cores if ranks do not outnumber them]
    #[arg(long = "bind-to", value_name = "WHAT")]
    bind_to: Option<String>,
    /// Assign ranks to cores: core (neighbours next to each other), socket, numa or a cache (in turn); ppr:N:socket for
    /// N ranks on each socket (or node, core, l3cache, …); :PE=2 for two cores a rank
    #[arg(long = "map-by", value_name = "HOW")]
    map_by: Option<String>,
    /// The same as --map-by ppr:N:socket
    #[arg(long = "npersocket", value_name = "N", hide = true)]
    per_socket: Option<u32>,
    /// Say where each rank was put
    #[arg(long = "report-bindings")]
    report_bindings: bool,

    /// How many processes programs may expect to have when they spawn (MPI_UNIVERSE_SIZE): a number, or "SYSTEM" for
    /// the usable CPUs [default: ranks, or usable CPUs if they are more; "INFINITE" is the same]
    #[arg(long = "universe", aliases = ["usize"], value_name = "N")]
    universe: Option<String>,

    /// Have malloc take large blocks from memory that all ranks see, so that large messages are copied once
    #[arg(long = "share-heap")]
    share_heap: bool,

    /// Log the events of these types (MPI_T names, separated by commas;
    /// `*` and `?` as in a shell): a line for each event
    #[arg(long = "log-events", value_name = "NAMES")]
    log_events: Option<String>,
    /// Tell how long messages stayed in the queues and how long searches took, for each rank and for all
    #[arg(long = "queue-statistics")]
    queue_statistics: bool,
    /// List all types of events at the end
    #[arg(long = "list-events")]
    list_events: bool,
    /// Write what is logged to this file, "%r" standing for the rank [default: standard error]
    #[arg(long = "log-output", value_name = "FILE")]
    log_output: Option<OsString>,
    /// Accepted, and without effect: more ranks than CPUs are always allowed
    #[arg(long = "oversubscribe", aliases = ["nooversubscribe", "no-oversubscribe", "use-hwthread-cpus"])]
    oversubscribe: bool,

    /// Write a trace of what messages and queues do; see docs/tracing.md
    #[arg(long = "trace", value_name = "FILE")]
    trace: Option<OsString>,
    /// The most that each rank may write to it: bytes, with K, M, G or T behind; "none" for no limit [default: 256M]
    #[arg(long = "trace-limit", value_name = "SIZE")]
    trace_limit: Option<String>,

    /// Run on these hosts, so many ranks on each: MPICH's launcher starts the job; see docs/nodes.md
    #[arg(long = "hosts", aliases = ["host", "hostlist", "machine", "machines", "machinelist"], short = 'H', value_name = "HOST:RANKS,…")]
    host: Vec<String>,
    /// How MPICH's launcher reaches the hosts (ssh, rsh, slurm, …), if --hosts names others
    #[arg(long = "launcher", aliases = ["bootstrap"], value_name = "NAME")]
    launcher: Option<OsString>,
    /// The program that it calls for that
    #[arg(long = "launcher-exec", aliases = ["bootstrap-exec"], value_name = "PROGRAM")]
    launcher_exec: Option<OsString>,
    /// The network interface that it uses
    #[arg(long = "iface", value_name = "NAME")]
    iface: Option<OsString>,
    /// Taken with a note.
    #[arg(long = "hostfile", aliases = ["machinefile", "default-hostfile", "file"], short = 'f', hide = true)]
    hostfile: Vec<OsString>,
    /// Taken with a note.
    #[arg(long = "mca", aliases = ["gmca", "pmca", "prtemca", "omca"], num_args = 2, hide = true)]
    mca: Vec<OsString>,
    /// Taken with a note.
    #[arg(
        long = "rmk",
        aliases = ["personality", "prefix", "rank-by", "ranks-per-proc", "demux", "topolib", "tune", "order-nodes",
            "nameserver", "localhost", "pmi-port"],
        hide = true
    )]
    elsewhere: Vec<OsString>,
    /// Ranks on each node: on this machine alone their number, where -n does not say it.
    #[arg(long = "ppn", aliases = ["perhost", "npernode", "N", "grr"], short = 'N', hide = true)]
    per_node: Option<u32>,
    /// A rank on each node
    #[arg(long = "pernode", hide = true)]
    one_per_node: bool,
    /// "bind" or "bindings" is the same as --report-bindings; there is nothing else to show on one machine
    #[arg(long = "display", value_name = "WHAT", hide = true)]
    display: Option<String>,
    /// Without meaning and without harm.
    #[arg(
        long = "allow-run-as-root",
        aliases = ["display-map", "display-allocation", "enable-x", "disable-x",
            "print-all-exitcodes", "exitinfo", "nolocal", "quiet", "verbose", "localonly", "local", "rr",
            "print-rank-map", "noprefix", "hetero-nodes", "disable-hostname-propagation", "skip-launch-node",
            "silent-abort", "enable-auto-cleanup", "enable-hostname-propagation", "debug", "display-topo", "display-devel-map", "get-stack-traces", "report-state-on-timeout"],
        short = 'q',
        short_alias = 'v',
        hide = true
    )]
    harmless: bool,

    /// The program and its arguments
    #[arg(last = true, value_name = "PROGRAM", required = true)]
    command: Vec<OsString>,
}

/// Reads the arguments after the command's own name.
///
/// # Errors
/// What is unknown or incomplete.
pub fn read(name: &str, arguments: &[OsString]) -> Result<CommandLine, PlanError> {
    let table = OptionTable::of(definition());
    let from_file = config_file::expand(arguments, &table)?;
    let arguments = from_file.as_deref().unwrap_or(arguments);
    let blocks = arguments.split(|argument| argument == ":").map(|block| {
        let normal = table.normalise(name, block)?;
        let given = definition().try_get_matches_from(normal);
        given.and_then(|given| RunOptions::from_arg_matches(&given)).map_err(PlanError::Clap)
    });
    Ok(CommandLine(blocks.collect::<Result<_, _>>()?))
}

/// Reads and plans.
///
/// # Errors
/// Those of both.
#[cfg(test)]
pub fn parse(name: &str, arguments: &[OsString], usable: u32) -> Result<Plan, PlanError> {
    plan(read(name, arguments)?, usable)
}

/// The options as they are read: of switches, many of which are spellings of one, any number may be given.
pub fn definition() -> clap::Command {
    RunOptions::command().mut_args(|arg| match arg.get_action() {
        ArgAction::SetTrue => {
            let itself = arg.get_id().clone();
            arg.overrides_with(itself)
        }
        _ => arg,
    })
}

#[cfg(test)]
mod random_tests;
#[cfg(test)]
mod tests;
