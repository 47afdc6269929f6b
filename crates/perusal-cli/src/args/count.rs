//! How many ranks the options of a program ask for.

use perusal::internals::dynamic::spawn::most_of_soft;
use perusal::internals::placement::ranks_per_node;

use perusal::internals::variables::VariableId;

use super::{RunOptions, steered};
use crate::hosts::Hosts;

/// How many ranks of a program there are to be: -n, or so many on each node, or `default`.
pub(super) fn of(block: &RunOptions, hosts: Option<&Hosts>, default: u32) -> Result<u32, String> {
    let mapped = || ranks_per_node(&block.map_by.clone().or_else(|| steered(VariableId::MapBy))?);
    let per_node = block.per_node.or(block.one_per_node.then_some(1));
    let on_all_nodes = || match hosts {
        Some(hosts) => per_node?.checked_mul(hosts.list.len() as u32),
        None => per_node.or_else(mapped),
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
    Ok(count)
}
