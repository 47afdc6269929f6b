//! The `perusal` command; under the names `mpiexec` and `mpirun` it is `perusal run`.
//!
//! | modules | what they have |
//! |---|---|
//! | `run`, `args` | `perusal run`: from the command line to a plan, and from there to running ranks |
//! | `start` | what ranks are given (variables, libraries, the event logger), and how processes are started |
//! | `supervisor` | the loop of a running job: ranks that end, requests of ranks, ports, other jobs |
//! | `streams` | what ranks read and write |
//! | `hang` | why a job stands still |
//! | `hosts` | jobs on several hosts, and the libfabric provider under another MPI |
//! | `jobs` | commands that look at running jobs |
//! | `trace` | traces, and the commands for them |
//! | `info`, `bench`, `tune` | what this machine and this build offer, and measurements |
//! | `manual` | man pages and shell completions |
//! | `mpi` | MPI for the ranks of `bench` and `tune` |
//! | `sys` | system calls |

mod args;
mod bench;
mod hang;
mod hosts;
mod info;
mod jobs;
mod manual;
mod mpi;
mod run;
mod start;
mod streams;
mod supervisor;
mod sys;
mod trace;
mod tune;

use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;

use clap::Parser;

/// Runs MPI programs on this machine and shows what their messages do.
#[derive(Parser)]
#[command(name = "perusal", version, arg_required_else_help = true)]
enum Cli {
    /// Run a program on several ranks; `mpiexec` and `mpirun` are the same. See `perusal run --help`.
    #[command(disable_help_flag = true)]
    Run {
        /// Options, program and its arguments.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        args: Vec<OsString>,
    },
    /// Measure messages on this machine, and the machine's own limits.
    Bench(bench::BenchOptions),
    /// Say what this machine and this build offer.
    Info(info::InfoOptions),
    /// Measure this machine for a few seconds and write what steers jobs best here.
    Tune(tune::TuneOptions),
    /// Put perusal's rings under another MPI, as a provider of libfabric.
    Fabric(hosts::fabric::FabricOptions),
    /// List your jobs that run on this machine, and your processes that use the provider under another MPI.
    Ps(jobs::ps::PsOptions),
    /// Show what the ranks of a running job do, again and again.
    Top(jobs::top::TopOptions),
    /// Say why a running job does not go on.
    Why(jobs::why::WhyOptions),
    /// Analyse a trace: who waited for whom, queues, searches, messages; as a page, JSON or text.
    Report(trace::report::ReportOptions),
    /// Look at a trace that `perusal run --trace FILE` has written, or turn it into another format.
    #[command(subcommand)]
    Trace(trace::TraceCommand),
    /// Write man pages and shell completions to a folder; an installation has them already.
    Manual(manual::ManualOptions),
}

/// Bytes of stack that the command needs at most.
const STACK: usize = 2 << 20;

fn main() -> ExitCode {
    if sys::stack_limit() >= STACK as u64 { command() } else { sys::on_stack_of(STACK, command) }
}

fn command() -> ExitCode {
    let mut args = std::env::args_os();
    let name = args.next().unwrap_or_else(|| "perusal".into());
    let name =
        Path::new(&name).file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned());
    let mut rest: Vec<OsString> = args.collect();
    if name.starts_with("mpiexec") || name.starts_with("mpirun") {
        return run::main(&name, &rest);
    }
    if let [run, adopt, numbers] = &rest[..]
        && (run, adopt) == (&"run".into(), &"--adopt".into())
    {
        return run::adopt::main("perusal", &numbers.to_string_lossy());
    }
    if rest.first().is_some_and(|first| first == "run") {
        return run::main("perusal run", &rest.split_off(1));
    }
    let cli = Cli::parse();
    // A launcher learns by a failed write that nobody reads its ranks' output; the other commands only print.
    if !matches!(cli, Cli::Run { .. } | Cli::Bench(_)) {
        sys::die_of_broken_pipes();
    }
    match cli {
        Cli::Run { args } => run::main("perusal run", &args),
        Cli::Bench(options) => bench::main(&options),
        Cli::Info(options) => info::main(&options),
        Cli::Tune(options) => tune::main(&options),
        Cli::Fabric(options) => hosts::fabric::main(&options),
        Cli::Ps(options) => jobs::ps::main(&options),
        Cli::Top(options) => jobs::top::main(&options),
        Cli::Why(options) => jobs::why::main(&options),
        Cli::Report(options) => trace::report::main(&options),
        Cli::Trace(command) => trace::main(&command),
        Cli::Manual(options) => manual::main(&options),
    }
}
