//! Calls of the program's: regions by the names of the functions, as Score-P has them.

use super::super::super::model::{RecordPayload, Trace};
use super::super::labels;
use super::{CALLS, COLLECTIVE, FILE_IO, POINT_TO_POINT, RMA};
use crate::events::FUNCTIONS;

const FUNCTION: u8 = 1;
const BARRIER: u8 = 15;
const ONE_TO_ALL: u8 = 23;
const ALL_TO_ONE: u8 = 24;
const ALL_TO_ALL: u8 = 25;

/// The functions that the program called, whose regions are numbered in this order.
pub struct CalledFunctions(Vec<u16>);

impl CalledFunctions {
    pub fn of(trace: &Trace) -> Self {
        let mut called = [false; FUNCTIONS_AND_LATER];
        for record in trace.ranks.iter().flat_map(|rank| &rank.records) {
            if let RecordPayload::Call { function } = record.payload {
                called[place(function)] = true;
            }
        }
        Self((0..).zip(called).filter_map(|(function, called)| called.then_some(function)).collect())
    }

    /// The region of a function.
    pub fn region(&self, function: u16) -> u32 {
        CALLS + self.0.partition_point(|called| usize::from(*called) < place(function)) as u32
    }

    /// Number, name and role of the regions.
    pub fn regions(&self) -> impl Iterator<Item = (u32, &'static str, u8)> {
        (CALLS..).zip(&self.0).map(|(region, function)| {
            let name = labels::function(*function);
            (region, name, role(name))
        })
    }
}

/// Functions of a later version share a place behind all that are known.
const FUNCTIONS_AND_LATER: usize = FUNCTIONS.len() + 1;

fn place(function: u16) -> usize {
    usize::from(function).min(FUNCTIONS.len())
}

/// OTF2_RegionRole of a function.
pub fn role(name: &str) -> u8 {
    let name = name.strip_prefix("MPI_").unwrap_or(name).to_ascii_lowercase();
    let base = name.strip_suffix("_init").unwrap_or(&name);
    let is = |names: &[&str]| {
        let blocking = base.strip_prefix('i').unwrap_or(base);
        names.contains(&base) || names.contains(&blocking)
    };
    let begins = |starts: &[&str]| starts.iter().any(|start| name.starts_with(start));
    if is(&["barrier"]) {
        BARRIER
    } else if is(&["bcast", "scatter", "scatterv"]) {
        ONE_TO_ALL
    } else if is(&["gather", "gatherv", "reduce"]) {
        ALL_TO_ONE
    } else if is(&[
        "allgather",
        "allgatherv",
        "alltoall",
        "alltoallv",
        "alltoallw",
        "allreduce",
        "reduce_scatter",
        "reduce_scatter_block",
    ]) {
        ALL_TO_ALL
    } else if is(&["scan", "exscan"]) || begins(&["neighbor_", "ineighbor_"]) {
        COLLECTIVE
    } else if begins(&["file_"]) {
        FILE_IO
    } else if begins(&["win_"])
        || is(&["put", "get", "accumulate", "get_accumulate", "fetch_and_op", "compare_and_swap"])
        || begins(&["rput", "rget", "raccumulate"])
    {
        RMA
    } else if is(&["send", "bsend", "ssend", "rsend", "recv", "mrecv", "sendrecv", "sendrecv_replace"])
        || begins(&[
            "wait", "test", "start", "probe", "iprobe", "mprobe", "improbe", "psend", "precv", "pready",
        ])
        || is(&["parrived", "cancel", "request_free", "request_get_status"])
    {
        POINT_TO_POINT
    } else {
        FUNCTION
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_have_the_roles_that_viewers_colour_them_by() {
        for (name, wanted) in [
            ("MPI_Send", POINT_TO_POINT),
            ("MPI_Irecv", POINT_TO_POINT),
            ("MPI_Waitall", POINT_TO_POINT),
            ("MPI_Send_init", POINT_TO_POINT),
            ("MPI_Barrier", BARRIER),
            ("MPI_Ibcast", ONE_TO_ALL),
            ("MPI_Gatherv_init", ALL_TO_ONE),
            ("MPI_Iallreduce", ALL_TO_ALL),
            ("MPI_Neighbor_alltoall", COLLECTIVE),
            ("MPI_Win_fence", RMA),
            ("MPI_Rget_accumulate", RMA),
            ("MPI_File_write_at_all", FILE_IO),
            ("MPI_Comm_dup", FUNCTION),
        ] {
            assert_eq!(role(name), wanted, "{name}");
        }
    }
}
