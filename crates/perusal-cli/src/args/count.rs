//! How many ranks the options of a program ask for, and how many processes programs may expect to have.

use perusal::internals::dynamic::spawn::most_of_soft;
use perusal::internals::placement::{MachineTopology, ranks_per_node};

use perusal::internals::variables::VariableId;

use super::planning::steered;
use super::{Plan, RunOptions};

/// How many ranks of a program there are to be, and how many were asked for, which are more where --soft allows fewer:
/// -n, or so many on each node or part of the machine, as the options say that `plan` has taken over, or `default`.
pub(super) fn of(block: &RunOptions, plan: &Plan, default: u32) -> Result<(u32, u32), String> {
    let mapped = || ranks_per_node(&block.map_by.clone().or_else(|| steered(VariableId::MapBy))?);
    let per_node = block.per_node.or(block.one_per_node.then_some(1));
    let on_all_nodes = || match &plan.hosts {
        Some(hosts) => per_node?.checked_mul(hosts.list.len() as u32),
        None => per_node
            .or_else(mapped)
            .or_else(|| plan.policy.each.map(|each| each.total(&MachineTopology::load()))),
    };
    let most = block.count.or_else(on_all_nodes).unwrap_or(default);
    let count = match &block.soft {
        Some(soft) => most_of_soft(soft.as_bytes(), most).map_err(|_| {
            format!("--soft {soft}: it must list numbers, first:last or first:last:stride, one of them up to {most}")
        })?,
        None => most,
    };
    if count == 0 {
        return Err("-n 0: a job has at least one rank".into());
    }
    Ok((count, most))
}

/// What `--universe` asks for; `None` for what is usual.
pub(super) fn universe(text: &str, usable: u32) -> Result<Option<u32>, String> {
    match text {
        "SYSTEM" => Ok(Some(usable)),
        "INFINITE" => Ok(None),
        number => number.parse().map(Some).map_err(|_| {
            format!("--universe {text}: it must be a number of processes, \"SYSTEM\" or \"INFINITE\"")
        }),
    }
}
