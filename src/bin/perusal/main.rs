//! The `perusal` command; under the names `mpiexec` and `mpirun` it is `perusal run`.

mod args;
mod bench;
mod environment;
mod guard;
mod info;
mod input;
mod logger;
mod output;
mod preload;
mod report;
mod run;
mod spawn;
mod supervise;
mod sys;
mod tokens;
mod trace;
mod tune;
mod variables;
mod verdict;

use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;

use clap::Parser;

/// Runs MPI programs on this machine and shows what their messages do.
#[derive(Parser)]
#[command(name = "perusal", version, arg_required_else_help = true)]
enum Command {
    /// Run a program on several ranks; `mpiexec` and `mpirun` are the same. See `perusal run --help`.
    #[command(disable_help_flag = true)]
    Run {
        /// Options, program and its arguments.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        args: Vec<OsString>,
    },
    /// Measure messages on this machine, beside what the machine can do.
    Bench(bench::Options),
    /// Say what this machine and this build offer.
    Info(info::Options),
    /// Measure this machine for a few seconds and write what steers jobs best here.
    Tune(tune::Options),
    /// Analyse a trace: who waited for whom, queues, searches, messages; as a page, JSON or text.
    Report(report::Options),
    /// Look at a trace that `perusal run --trace FILE` has written, or turn it into another format.
    #[command(subcommand)]
    Trace(trace::Command),
}

fn main() -> ExitCode {
    let mut args = std::env::args_os();
    let name = args.next().unwrap_or_else(|| "perusal".into());
    let name =
        Path::new(&name).file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned());
    let mut rest: Vec<OsString> = args.collect();
    if name.starts_with("mpiexec") || name.starts_with("mpirun") {
        return run::main(&name, &rest);
    }
    if rest.first().is_some_and(|first| first == "run") {
        return run::main("perusal run", &rest.split_off(1));
    }
    match Command::parse() {
        Command::Run { args } => run::main("perusal run", &args),
        Command::Bench(options) => bench::main(&options),
        Command::Info(options) => info::main(&options),
        Command::Tune(options) => tune::main(&options),
        Command::Report(options) => report::main(&options),
        Command::Trace(command) => trace::main(&command),
    }
}
