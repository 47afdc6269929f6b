//! From options to a plan: what has a value by default, what holds for the whole job, what is impossible.

use std::ffi::{OsStr, OsString};
use std::time::Duration;

use perusal::internals::placement::Policy;
use perusal::internals::shm::{
    ERRHANDLER_VARIABLE, INITIAL_ERRHANDLERS, KINDS_VARIABLE, SOFT_VARIABLE, initial_errhandler,
};
use perusal::internals::variables::VariableId;

use super::job_variables::{CommandLine, checking};
use super::{App, OnDeadlock, Plan, PlanError, RunOptions, Stdin, count, notes, output};
use crate::hosts::{self, Hosts, this_machine};
use crate::start::environment::{EnvironmentChanges, VariableChange};
use crate::start::logger::Logging;
use crate::start::preload;
use crate::streams::output_files::OutputFiles;
use crate::trace::Request;

/// What the environment says of a variable that the launcher obeys.
pub(super) fn steered(id: VariableId) -> Option<String> {
    let text = std::env::var_os(id.variable().environment)?;
    Some(text.to_string_lossy().into_owned()).filter(|text| !text.is_empty())
}

/// The variables by which ranks learn the options that steer the launcher.
fn steering(blocks: &[RunOptions]) -> Vec<VariableChange> {
    let given =
        |get: fn(&RunOptions) -> &Option<String>| blocks.iter().rev().find_map(|block| get(block).clone());
    let binding = [
        (VariableId::BindTo, given(|block| &block.bind_to)),
        (VariableId::MapBy, given(|block| &block.map_by)),
    ];
    let binding = binding.into_iter().filter_map(|(id, text)| Some((id.variable().environment, text?)));
    binding.map(|(name, value)| VariableChange::Set(name.into(), value.into())).collect()
}

/// Puts the options of all programs of the job together. `usable` is the number of usable CPUs.
///
/// # Errors
/// What is impossible here.
pub fn plan(line: CommandLine, usable: u32) -> Result<Plan, PlanError> {
    let CommandLine(mut blocks) = line;
    let mut plan = Plan {
        apps: vec![],
        label: false,
        timestamps: false,
        prefix: None,
        files: OutputFiles::default(),
        timeout: None,
        on_deadlock: OnDeadlock::End,
        survive: false,
        deadlock_report: None,
        stdin: Stdin::Rank(0),
        policy: Policy::default(),
        report_bindings: false,
        universe: None,
        trace: None,
        hosts: hosts_of(&blocks),
        notes: vec![],
    };
    if let Some(seconds) = std::env::var_os("MPIEXEC_TIMEOUT") {
        plan.timeout = Some(seconds_of("MPIEXEC_TIMEOUT", &seconds.to_string_lossy())?);
    }
    if let Some(how) = steered(VariableId::MapBy) {
        plan.policy.set_map(&how)?;
    }
    if let Some(what) = steered(VariableId::BindTo) {
        plan.policy.set_bind(&what)?;
    }
    let default_count = match &plan.hosts {
        _ if blocks.len() > 1 => 1,
        Some(hosts) => hosts.ranks()?,
        None => match hosts_named(&blocks) {
            list if list.is_empty() => usable,
            list => hosts::ranks(&list)?,
        },
    };
    let everywhere: Vec<VariableChange> = blocks
        .iter_mut()
        .flat_map(|block| std::mem::take(&mut block.genv))
        .map(|set| variable("-genv", &set))
        .collect::<Result<_, _>>()?;
    // Another library runs on several hosts: nothing is preloaded for it.
    let logging = if plan.hosts.is_some() { Logging::default() } else { logging(&blocks) };
    let set = [steering(&blocks), checking(&blocks), logging.changes()?, everywhere].concat();
    let genvlist = blocks.iter().find_map(|block| block.genvlist.as_deref());
    let only = only(genvlist, blocks.iter().any(|block| block.genvnone));
    let for_all = EnvironmentChanges { only, set };
    let share_heap = plan.hosts.is_none() && blocks.iter().any(|block| block.share_heap);
    for block in blocks {
        take_globals(&mut plan, &block, usable)?;
        let (count, most) = count::of(&block, &plan, default_count)?;
        plan.apps.push(App {
            count,
            most,
            changes: changes(&block, &for_all, (&logging, share_heap))?,
            wdir: block.wdir,
            path: block.path,
            command: block.command,
        });
    }
    check(&plan, usable)?;
    Ok(plan)
}

/// Checks that this machine, `usable` of whose CPUs may be used, can run the plan.
fn check(plan: &Plan, usable: u32) -> Result<(), PlanError> {
    let total: u64 = plan.apps.iter().map(|app| u64::from(app.count)).sum();
    if total > u64::from(u16::MAX) {
        return Err(PlanError::Text(format!("{total} ranks are more processes than a machine can run")));
    }
    if plan.universe.is_some_and(|all| all > u32::from(u16::MAX)) {
        return Err(PlanError::Text("--universe: so many processes are more than a machine can run".into()));
    }
    if plan.hosts.is_none() && plan.policy.width > usable.max(1) {
        return Err(PlanError::Text(format!(
            "--map-by or --bind-to: no rank can have {} CPUs, for {usable} are usable here",
            plan.policy.width
        )));
    }
    match plan.stdin {
        Stdin::Rank(rank) if rank >= plan.ranks() => {
            let last = plan.ranks() - 1;
            Err(PlanError::Text(format!("--stdin {rank}: the last rank of the job is {last}")))
        }
        _ => Ok(()),
    }
}

/// The hosts of all programs together.
fn hosts_named(blocks: &[RunOptions]) -> Vec<String> {
    let all = blocks.iter().flat_map(|block| &block.host).flat_map(|hosts| hosts.split(','));
    all.map(str::to_owned).filter(|host| !host.is_empty()).collect()
}

/// The same, if one of them is not this machine.
fn hosts_of(blocks: &[RunOptions]) -> Option<Hosts> {
    let list = hosts_named(blocks);
    if list.iter().all(|host| this_machine::is_host(host)) {
        return None;
    }
    let mut options = Vec::new();
    for block in blocks {
        let kinds = block.memory_alloc_kinds.as_ref().map(OsString::from);
        let per_node = block.per_node.or(block.one_per_node.then_some(1));
        let per_node = per_node.map(|ranks| ranks.to_string().into());
        let given = [
            ("-launcher", &block.launcher),
            ("-launcher-exec", &block.launcher_exec),
            ("-iface", &block.iface),
            ("-memory-alloc-kinds", &kinds),
            ("-ppn", &per_node),
            ("-outfile-pattern", &block.outfile_pattern),
            ("-errfile-pattern", &block.errfile_pattern),
            ("-prepend-pattern", &block.prepend_pattern),
        ];
        options.extend(given.into_iter().filter_map(|(name, value)| Some((name, value.clone()?))));
    }
    Some(Hosts { list, options })
}

/// What is to be logged of the whole job; the last word of several counts.
fn logging(blocks: &[RunOptions]) -> Logging {
    let mut logging = Logging::default();
    for block in blocks {
        logging.events = block.log_events.clone().or(logging.events);
        logging.output = block.log_output.clone().or(logging.output);
        logging.queues |= block.queue_statistics;
        logging.list |= block.list_events;
    }
    logging
}

/// Takes over what holds for the whole job.
fn take_globals(plan: &mut Plan, block: &RunOptions, usable: u32) -> Result<(), PlanError> {
    plan.label |= block.label;
    plan.report_bindings |= block.report_bindings || output::shows_bindings(block);
    plan.survive |= block.survive;
    match block.with_ft.as_deref() {
        None | Some("none" | "no" | "0" | "false") => {}
        Some("ulfm" | "mpi" | "yes" | "1" | "true") => plan.survive = true,
        Some(other) => {
            return Err(PlanError::Text(format!(
                "--with-ft {other}: only \"ulfm\" and \"none\" are possible"
            )));
        }
    }
    if let Some(universe) = &block.universe {
        plan.universe = count::universe(universe, usable)?;
    }
    output::take_output(plan, block)?;
    if let Some(seconds) = &block.timeout {
        plan.timeout = Some(seconds_of("--timeout", seconds)?);
    }
    match block.on_deadlock.as_deref() {
        None => {}
        Some("end") => plan.on_deadlock = OnDeadlock::End,
        Some("warn") => plan.on_deadlock = OnDeadlock::Warn,
        Some("ignore") => plan.on_deadlock = OnDeadlock::Ignore,
        Some(other) => {
            let text = format!("--on-deadlock {other}: it must be \"end\", \"warn\" or \"ignore\"");
            return Err(PlanError::Text(text));
        }
    }
    if let Some(file) = &block.deadlock_report {
        plan.deadlock_report = Some(file.clone());
    }
    match block.stdin.as_deref() {
        None => {}
        Some("none") => plan.stdin = Stdin::None,
        Some("all") => plan.stdin = Stdin::All,
        Some(rank) => {
            let rank = rank
                .parse()
                .map_err(|_| format!("--stdin {rank}: it must be a rank, \"all\" or \"none\""))?;
            plan.stdin = Stdin::Rank(rank);
        }
    }
    if let Some(ranks) = block.per_socket {
        plan.policy.set_map(&format!("ppr:{ranks}:socket"))?;
    }
    if let Some(how) = &block.map_by {
        plan.policy.set_map(how)?;
    }
    if let Some(what) = &block.bind_to {
        plan.policy.set_bind(what)?;
    }
    block.arch.as_deref().map_or(Ok(()), this_machine::check_arch)?;
    take_trace(plan, block)?;
    notes::note_what_has_no_effect(plan, block);
    Ok(())
}

fn take_trace(plan: &mut Plan, block: &RunOptions) -> Result<(), PlanError> {
    if let Some(path) = &block.trace {
        plan.trace = Some(Request::new(path)?);
    }
    if let Some(size) = &block.trace_limit {
        let Some(trace) = &mut plan.trace else {
            return Err(PlanError::Text(format!(
                "--trace-limit {size}: without --trace FILE there is no trace"
            )));
        };
        trace.set_limit(size)?;
    }
    Ok(())
}

/// The variables that alone are passed on: those of a list, or none; `None`: all are.
fn only(list: Option<&str>, none: bool) -> Option<Vec<OsString>> {
    let listed = |names: &str| names.split(',').map(OsString::from).collect();
    list.map(listed).or_else(|| none.then(Vec::new))
}

/// How the environment of one program's ranks differs from the launcher's. `for_all`: what holds for all programs.
fn changes(
    block: &RunOptions,
    for_all: &EnvironmentChanges,
    (logging, share_heap): (&Logging, bool),
) -> Result<EnvironmentChanges, String> {
    let only = only(block.envlist.as_deref(), block.envnone);
    let only = only.or_else(|| for_all.only.clone().filter(|_| !block.envall));
    let own = block.x.iter().map(|set| variable("-x", set));
    let own = own.chain(block.env.iter().map(|set| variable("-env", set))).collect::<Result<Vec<_>, _>>()?;
    let mut set = [&for_all.set[..], &own].concat();
    if let Some(handler) = &block.initial_errhandler {
        let Some(handler) = initial_errhandler(handler.as_bytes()) else {
            let known = INITIAL_ERRHANDLERS.join(", ");
            return Err(format!("--initial-errhandler {handler}: it must be one of {known}"));
        };
        set.push(VariableChange::Set(ERRHANDLER_VARIABLE.into(), handler.into()));
    }
    if let Some(soft) = &block.soft {
        set.push(VariableChange::Set(SOFT_VARIABLE.into(), soft.into()));
    }
    if let Some(kinds) = &block.memory_alloc_kinds {
        set.push(VariableChange::Set(KINDS_VARIABLE.into(), kinds.into()));
    }
    // Last: whatever the user preloads stays.
    set.extend(logging.preloading(&set)?);
    set.extend(preload::sharing(share_heap, &set)?);
    Ok(EnvironmentChanges { only, set })
}

/// Reads `VAR=VALUE` or `VAR`, the value of `option`.
pub(super) fn variable(option: &str, text: &OsStr) -> Result<VariableChange, String> {
    match VariableChange::of(text) {
        VariableChange::Set(name, _) | VariableChange::Pass(name) if name.is_empty() => {
            Err(format!("{option} {}: a variable needs a name", text.to_string_lossy()))
        }
        change => Ok(change),
    }
}

/// Seconds of a time limit at most: 31 years, which a moment of the clock can be put off by.
const MOST_SECONDS: f64 = 1e9;

fn seconds_of(what: &str, text: &str) -> Result<Duration, String> {
    let seconds =
        text.trim().parse::<f64>().ok().filter(|seconds| *seconds > 0.0 && *seconds <= MOST_SECONDS);
    seconds.map(Duration::from_secs_f64).ok_or_else(|| {
        format!("{what} {text}: it must be a number of seconds above 0, {MOST_SECONDS} at most")
    })
}
