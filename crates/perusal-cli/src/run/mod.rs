//! `perusal run`: from the command line to running ranks. [`crate::supervisor`] takes over from there.
//!
//! | file | what it has |
//! |---|---|
//! | `mod` | [`main`]: the command line, the job's memory, its ranks |
//! | `adopt` | the same for a program that was started without a launcher |

pub mod adopt;

use std::ffi::{CString, OsString};
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::process::ExitCode;

use crate::args::{self, App, Plan, PlanError, Stdin};
use crate::hang;
use crate::start::environment::{self, RankIdentity};
use crate::start::spawn::{SpawnError, SpawnStep};
use crate::start::starter::{NewProcess, ProcessStarter, StartError};
use crate::streams::input::Input;
use crate::streams::label::Label;
use crate::streams::output::RankStream;
use crate::streams::sinks::Targets;
use crate::supervisor::failure::Failure;
use crate::supervisor::reaper::Reaper;
use crate::supervisor::universe::find_program;
use crate::supervisor::{FORWARDED, Supervisor, SupervisorParts};
use crate::sys;
use crate::tune::file::FoundTuneFile;
use perusal::internals::dynamic::launcher::door;
use perusal::internals::placement::{self, Bind, BindingClaim, MachineTopology, Placement, Policy};
use perusal::internals::shm::{Memory, Universe, cpus, machine};
use perusal::internals::variables::Overrides;
use perusal::internals::variables::misspelt::{misspelt, misspelt_in_environment};
use perusal_trace::{file, terminal::one_line};

/// Runs a job; `name` is what the launcher was called.
pub fn main(name: &str, arguments: &[OsString]) -> ExitCode {
    let usable = cpus::usable();
    let plan = match plan(name, arguments, usable) {
        Ok(plan) => plan,
        Err(PlanError::Clap(error)) => {
            // A closed terminal can show no error message.
            let _ = error.print();
            return ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(2));
        }
        Err(PlanError::Text(text)) => {
            sys::print_error(&format!("{name}: {text}\n"));
            return ExitCode::from(2);
        }
    };
    if plan.hosts.is_none()
        && let FoundTuneFile::Ignored(path, why) = crate::tune::take_over(plan.ranks() > usable)
    {
        sys::print_error(&format!("{name}: note: the tune file {} is ignored: {why}\n", path.display()));
    }
    for note in &plan.notes {
        sys::print_error(&format!("{name}: note: {note}\n"));
    }
    if let Some(hosts) = &plan.hosts {
        let why = crate::hosts::run(&plan, hosts);
        sys::print_error(&format!("{name}: {why}\n"));
        return ExitCode::from(2);
    }
    match start(name, &plan, usable) {
        Ok(supervisor) => {
            let status = supervisor.run();
            if let Some(trace) = &plan.trace {
                sys::print_error(&format!("{name}: {}\n", trace.end(status)));
            }
            ExitCode::from(status)
        }
        Err(failure) => {
            sys::print_error(&format!("{name}: {}\n", failure.text));
            ExitCode::from(failure.status)
        }
    }
}

/// Reads the command line, and takes what it sets for the whole job into the environment of this process.
fn plan(name: &str, arguments: &[OsString], usable: u32) -> Result<Plan, PlanError> {
    let line = args::read(name, arguments)?;
    for (variable, value) in line.job_variables()? {
        // SAFETY: this is the only thread of the process, so nothing reads the environment meanwhile.
        unsafe { std::env::set_var(variable, value) };
    }
    let names: Vec<String> = line.names().collect();
    let mut plan = args::plan(line, usable)?;
    let mistakes = misspelt_in_environment().into_iter().chain(misspelt(names.iter().map(String::as_str)));
    for mistake in mistakes {
        if !plan.notes.contains(&mistake) {
            plan.notes.push(mistake);
        }
    }
    Ok(plan)
}

fn failure(what: &str) -> impl Fn(io::Error) -> Failure + '_ {
    move |error| Failure { status: 1, text: format!("{what}: {}", machine::why(&error)) }
}

/// Makes the job's memory, starts the reaper, then places and starts all ranks.
fn start<'a>(name: &'a str, plan: &'a Plan, usable: u32) -> Result<Supervisor<'a>, Failure> {
    let size = plan.ranks();
    hang::forget_report(plan);
    crate::supervisor::failure::watch_memory();
    check_stack()?;
    // Two pipes a rank, those of its input, its files, and what the launcher needs itself.
    let input = if plan.stdin == Stdin::All { 2 } else { 0 };
    let descriptors = sys::raise_descriptor_limit(u64::from(size) * (2 + input + plan.files.each()) + 128);
    let universe = plan.universe.map_or_else(|| Universe::usual(size, usable), |all| Universe::of(size, all));
    let memory = Overrides::from_environment()
        .and_then(|set| Memory::create_universe(size, universe, std::process::id().cast_signed(), &set))
        .map_err(|error| Failure { status: 1, text: error.to_string() })?;
    if plan.survive {
        memory.survive().map_err(|error| Failure { status: 1, text: error.to_string() })?;
    }
    // Taken before there are ranks, which can write it.
    let job_id = memory.header().job_id();
    let ignored: Vec<i32> = FORWARDED.into_iter().filter(|signal| sys::is_ignored(*signal)).collect();
    let mut watched = FORWARDED.to_vec();
    watched.push(libc::SIGCHLD);
    let signals = sys::Signals::new(&watched).map_err(failure("signalfd"))?;
    sys::adopt_orphans();
    let reaper = Reaper::start(job_id).map_err(failure("starting the reaper process"))?;
    let (placement, claim) = place(name, plan, size, usable);
    let (input, relay) = Input::of(plan.stdin, size).map_err(failure("pipes for standard input"))?;
    let (door, ranks_side) = door().map_err(failure("a socket for the ranks"))?;
    let starter = ProcessStarter::new(memory.segment().file(), ranks_side, signals.original, descriptors)
        .map_err(failure("descriptors for the ranks"))?;
    let parts = SupervisorParts { name, plan, memory, signals, reaper, relay, ignored, claim, starter, door };
    let mut supervisor = Supervisor::new(parts).map_err(failure("epoll"))?;
    let trace = plan.trace.as_ref().map(|trace| trace.begin(plan, &placement)).transpose()?;
    let starter = Starter { plan, job_id, placement, input };
    match starter.start_all(&mut supervisor) {
        Ok(()) => Ok(supervisor),
        Err(failure) => {
            supervisor.give_up(&failure);
            trace.into_iter().for_each(file::Replaced::undo);
            Err(failure)
        }
    }
}

/// Refuses a limit on the stack with which a rank would end by SIGSEGV in MPI_Init, or before.
fn check_stack() -> Result<(), Failure> {
    let bytes = machine::stack_size();
    if bytes >= LEAST_STACK {
        return Ok(());
    }
    let (given, least) = (bytes >> 10, LEAST_STACK >> 10);
    let text = format!(
        "the limit of the stack is {given} KiB (ulimit -s), with which a rank would end by SIGSEGV; allow {least} KiB at least"
    );
    Err(Failure { status: 1, text })
}

/// Bytes of stack that a rank needs: arguments, environment and dynamic linking are in it, too.
const LEAST_STACK: u64 = 96 << 10;

/// Places the ranks, and reports the placement if that was asked for. hwloc is loaded only if the options ask for it.
fn place(name: &str, plan: &Plan, size: u32, usable: u32) -> (Placement, Option<BindingClaim>) {
    let asked = plan.report_bindings || plan.policy != Policy::default();
    let by_default = plan.policy.bind == Bind::Auto;
    if by_default && !asked && (size <= 1 || size > usable) {
        return (Placement::unbound(size, ""), None);
    }
    let claim = if by_default { placement::claim() } else { None };
    let taken = by_default && claim.is_none();
    if taken && !asked {
        return (Placement::unbound(size, ""), None);
    }
    let topology = if asked { MachineTopology::load() } else { MachineTopology::quick() };
    let placement = if taken {
        Placement::unbound(size, "not bound: another job on this machine has bound its ranks")
    } else {
        placement::place(&topology, size, usable, &plan.policy)
    };
    if plan.report_bindings {
        sys::print_error(&format!("{name}: {}", placement.report(&topology, usable)));
    }
    (placement, claim)
}

/// What every rank is started with.
struct Starter<'a> {
    plan: &'a Plan,
    job_id: u64,
    placement: Placement,
    input: Input,
}

impl Starter<'_> {
    fn start_all(&self, supervisor: &mut Supervisor<'_>) -> Result<(), Failure> {
        for rank in 0..self.plan.ranks() {
            supervisor.targets_of(rank).map_err(failure("a file for output"))?;
        }
        let mut rank = 0;
        for (number, app) in self.plan.apps.iter().enumerate() {
            let env = environment::of_app(&app.changes);
            let mut argv = strings(&app.command)?;
            if let Some(found) = found_in_path(app, &argv[0]) {
                argv[0] = found;
            }
            let wdir =
                app.wdir.clone().map(|dir| strings(&[dir])).transpose()?.and_then(|mut dirs| dirs.pop());
            for _ in 0..app.count {
                let identity = RankIdentity {
                    job_id: self.job_id,
                    launcher: std::process::id(),
                    fd: -1,
                    door: -1,
                    rank,
                    size: supervisor.memory().size(),
                    spawned: None,
                    app: number,
                    processes: app.most,
                    trace: self.plan.trace.as_ref().map(|trace| trace.path.as_path()),
                };
                let started = supervisor.start(&NewProcess {
                    argv: &argv,
                    env: &env,
                    identity,
                    wdir: wdir.as_ref(),
                    cpus: &self.placement.ranks[rank as usize],
                    stdin: self.input.of_rank(rank),
                });
                let started = started.map_err(|error| match error {
                    StartError::Pipe(error) => failure("a pipe for output")(error),
                    StartError::Spawn(failed) => cannot_start(app, &failed),
                })?;
                supervisor.add_rank(rank, started).map_err(failure("watching a rank's output"))?;
                rank += 1;
            }
        }
        Ok(())
    }
}

/// The program in the directories of `-path`, which are seen from its working directory.
fn found_in_path(app: &App, name: &CString) -> Option<CString> {
    let mut from = std::env::current_dir().unwrap_or_default();
    from.extend(&app.wdir);
    let dirs = [app.path.as_ref()?.as_bytes()];
    CString::new(find_program(name.as_bytes(), &dirs, from.as_os_str().as_bytes())?).ok()
}

fn strings(arguments: &[OsString]) -> Result<Vec<CString>, Failure> {
    let string = |argument: &OsString| CString::new(argument.clone().into_vec());
    arguments
        .iter()
        .map(string)
        .collect::<Result<_, _>>()
        .map_err(|_| Failure { status: 2, text: "an argument contains a NUL byte".into() })
}

/// The message and exit status that a shell would give.
fn cannot_start(app: &App, failed: &SpawnError) -> Failure {
    let SpawnError { step, error } = failed;
    let program = app.command[0].to_string_lossy();
    let program = one_line(&program);
    let status = if error.kind() == io::ErrorKind::NotFound { 127 } else { 126 };
    match step {
        SpawnStep::Clone => Failure {
            status: 1,
            text: format!("no process can be started for {program}: {}", machine::why(error)),
        },
        SpawnStep::Directory => {
            let dir = app.wdir.as_ref().map(|dir| dir.to_string_lossy()).unwrap_or_default();
            Failure { status: 126, text: format!("-wdir {}: {error}", one_line(&dir)) }
        }
        SpawnStep::Exec if error.raw_os_error() == Some(libc::ENOEXEC) => Failure {
            status,
            text: format!("{program} cannot be run: it is neither a script nor a program for this processor"),
        },
        SpawnStep::Exec => {
            let advice = if status == 127 { what_is_not_there(app) } else { "" };
            Failure { status, text: format!("{program} cannot be run: {}{advice}", machine::why(error)) }
        }
    }
}

/// Says which file it is that the kernel has not found.
fn what_is_not_there(app: &App) -> &'static str {
    let mut program = std::env::current_dir().unwrap_or_default();
    program.extend(&app.wdir);
    program.push(&app.command[0]);
    if program.is_file() {
        "; the file is there, but not what its first line, or its linker, has named to run it"
    } else if app.command[0].as_bytes().contains(&b'/') {
        ""
    } else {
        "; it is in no directory of -path and PATH, and not in the working directory"
    }
}

/// The two streams of a rank, which go to `targets`.
pub fn streams_of(
    rank: u32,
    plan: &Plan,
    [out, err]: [io::PipeReader; 2],
    targets: [Targets; 2],
) -> [RankStream; 2] {
    [
        RankStream::new(out, rank * 2, Label::of(plan, rank, 0), targets[0]),
        RankStream::new(err, rank * 2 + 1, Label::of(plan, rank, 1), targets[1]),
    ]
}
