//! Placement of ranks on cores: topology, policy, report. Only the launcher has this; the MPI library binds nothing.
//!
//! A topology is a list of usable CPUs with the core, socket and NUMA node of each ([`MachineTopology`]): from hwloc
//! when binding was asked for, from a few files of `/sys` for the default, from the affinity mask alone where there is
//! neither. What to do with it is pure arithmetic ([`place`]):
//! a list of CPUs for each rank, or none where a rank floats.
//!
//! By default each rank of a job that fits gets an equal share of the cores, neighbours next to each other. A rank gets
//! all cores of its share, not one of them, so that its threads keep them. Nothing is bound when ranks outnumber cores
//! or the cgroup's quota (the scheduler then knows better), or when there is one rank. Nor is it when another perusal
//! job on this machine has bound its ranks: two jobs that both start at core 0 are worse than none that is bound.

mod policy;
mod report;
mod topology;

pub use policy::{Bind, MapBy, Placement, Policy, RanksEach, place, ranks_per_node};
pub use topology::{Cpu, MachineTopology, Region};

use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener};

/// That this job is the one on the machine whose ranks are bound by default; given back when dropped or killed.
#[derive(Debug)]
pub struct BindingClaim(#[expect(dead_code, reason = "the open socket is the claim")] UnixListener);

/// Claims the machine's cores for default binding; `None` if another job has them. The claim is a socket with an
/// abstract name: it cannot be left behind, and containers with networks of their own do not see each other's.
#[must_use]
pub fn claim() -> Option<BindingClaim> {
    let name = SocketAddr::from_abstract_name("perusal-placement").ok()?;
    UnixListener::bind_addr(&name).ok().map(BindingClaim)
}
