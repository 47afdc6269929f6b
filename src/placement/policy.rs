//! From a topology and what the user asked for to a list of CPUs for each rank. Pure.

use crate::placement::MachineTopology;
use crate::{Error, Result};

/// What a rank is bound to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Bind {
    /// An equal share of the cores if the job fits; otherwise nothing.
    #[default]
    Auto,
    /// Nothing: the scheduler decides.
    None,
    /// Hardware threads.
    Hwthread,
    /// Cores.
    Core,
    /// The socket that it is mapped to.
    Socket,
    /// The NUMA node that it is mapped to.
    Numa,
}

/// In which order ranks are dealt to places.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum MapBy {
    /// One after the other: neighbours beside each other.
    #[default]
    Pack,
    /// Round robin over sockets.
    Socket,
    /// Round robin over NUMA nodes.
    Numa,
}

/// What the user asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Policy {
    /// What a rank is bound to.
    pub bind: Bind,
    /// In which order.
    pub map: MapBy,
    /// Cores (hardware threads for [`Bind::Hwthread`]) a rank, at least 1.
    pub width: u32,
}

impl Default for Policy {
    fn default() -> Self {
        Self { bind: Bind::Auto, map: MapBy::Pack, width: 1 }
    }
}

impl Policy {
    /// Reads the value of `--bind-to`: none, hwthread, core, socket or numa, as Open MPI and MPICH spell them, with an
    /// optional width ("core:2").
    ///
    /// # Errors
    /// [`Error::Other`] that lists what is possible.
    pub fn set_bind(&mut self, text: &str) -> Result<()> {
        let lower = text.to_ascii_lowercase();
        let (what, modifier) = lower.split_once(':').unwrap_or((&lower, ""));
        self.bind = match what {
            "none" => Bind::None,
            "hwthread" | "pu" | "hwt" => Bind::Hwthread,
            "core" => Bind::Core,
            "socket" | "package" | "sock" => Bind::Socket,
            "numa" | "numanode" | "node" => Bind::Numa,
            _ => {
                return Err(Error::Other(format!(
                    "--bind-to {text}: it must be none, core, socket, numa or hwthread"
                )));
            }
        };
        match modifier {
            "" | "overload-allowed" | "if-supported" => Ok(()),
            width => self.set_width("--bind-to", text, width),
        }
    }

    /// Reads the value of `--map-by`: core, slot, hwthread or ppr:N:node (pack), socket or numa (round robin), with the
    /// modifiers PE=n (width) and, without effect, OVERSUBSCRIBE, NOOVERSUBSCRIBE and SPAN.
    ///
    /// # Errors
    /// [`Error::Other`] that lists what is possible.
    pub fn set_map(&mut self, text: &str) -> Result<()> {
        let lower = text.to_ascii_lowercase();
        let (what, modifiers) = match per_node(&lower) {
            Some((_, modifiers)) => ("node", modifiers),
            None => first_part(&lower),
        };
        self.map = match what {
            "core" | "slot" | "hwthread" | "pack" | "" => MapBy::Pack,
            "socket" | "package" | "spread" => MapBy::Socket,
            "numa" | "numanode" => MapBy::Numa,
            // There is one node.
            "node" => MapBy::Pack,
            _ => {
                return Err(Error::Other(format!(
                    "--map-by {text}: it must be core, slot, socket, numa or ppr:N:node (with :PE=n for n cores a rank)"
                )));
            }
        };
        for modifier in modifiers.split([':', ',']).filter(|modifier| !modifier.is_empty()) {
            match modifier.strip_prefix("pe=") {
                Some(width) => self.set_width("--map-by", text, width)?,
                None if matches!(modifier, "oversubscribe" | "nooversubscribe" | "span" | "hwtcpus") => {}
                None => return Err(Error::Other(format!("--map-by {text}: {modifier} is not understood"))),
            }
        }
        Ok(())
    }

    fn set_width(&mut self, option: &str, text: &str, width: &str) -> Result<()> {
        self.width = width.parse().ok().filter(|width| *width > 0).ok_or_else(|| {
            Error::Other(format!("{option} {text}: {width} is not a number of cores of at least 1"))
        })?;
        // A width says how many cores a rank gets, so it asks for them.
        if self.bind == Bind::Auto {
            self.bind = Bind::Core;
        }
        Ok(())
    }
}

/// How many ranks a value of `--map-by` wants on each node: the N of ppr:N:node.
#[must_use]
pub fn ranks_per_node(text: &str) -> Option<u32> {
    per_node(&text.to_ascii_lowercase()).map(|(ranks, _)| ranks)
}

/// The number in ppr:N:node, and the modifiers behind it.
fn per_node(lower: &str) -> Option<(u32, &str)> {
    let (number, rest) = lower.strip_prefix("ppr:")?.split_once(':')?;
    let (what, modifiers) = first_part(rest);
    Some((number.parse().ok()?, modifiers)).filter(|_| what == "node")
}

/// What stands before the first separator, and what behind.
fn first_part(text: &str) -> (&str, &str) {
    text.split_once([':', ',']).unwrap_or((text, ""))
}

/// Where each rank of a job sits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Placement {
    /// Each rank's CPUs in ascending order; empty for one that floats over all usable ones.
    pub ranks: Vec<Vec<u32>>,
    /// What was done and why, as a clause.
    pub reason: String,
}

impl Placement {
    /// Nobody is bound, for this reason.
    #[must_use]
    pub fn unbound(ranks: u32, reason: impl Into<String>) -> Self {
        Self { ranks: vec![vec![]; ranks as usize], reason: reason.into() }
    }
}

/// Places `ranks` ranks. `usable` is the number of CPUs' worth of time that the job has (affinity and cgroup quota).
#[must_use]
pub fn place(topology: &MachineTopology, ranks: u32, usable: u32, policy: &Policy) -> Placement {
    let width = policy.width as usize;
    match policy.bind {
        Bind::None => Placement::unbound(ranks, "not bound, as asked"),
        Bind::Auto => share(topology, ranks, usable, policy.map),
        Bind::Hwthread => {
            let threads = topology.groups(|cpu| cpu.id);
            deal(&ordered(topology, &threads, policy.map), ranks, width, "hardware thread")
        }
        Bind::Core => deal(&ordered(topology, &topology.cores(), policy.map), ranks, width, "core"),
        Bind::Socket => deal(&regions(topology, &topology.sockets(), policy), ranks, 1, "socket"),
        Bind::Numa => deal(&regions(topology, &topology.numas(), policy), ranks, 1, "NUMA node"),
    }
}

/// The default: each rank an equal share of the cores.
fn share(topology: &MachineTopology, ranks: u32, usable: u32, map: MapBy) -> Placement {
    let cores = ordered(topology, &topology.cores(), map);
    let count = ranks as usize;
    if ranks <= 1 {
        return Placement::unbound(ranks, "not bound: there is one rank");
    }
    if count > cores.len() || ranks > usable {
        let room = cores.len().min(usable as usize);
        return Placement::unbound(ranks, format!("not bound: {ranks} ranks outnumber {room} usable cores"));
    }
    let width = cores.len() / count;
    let mut placement = deal(&cores, ranks, width, "core");
    placement.reason = format!("by default each rank has {} of {} cores", width, cores.len());
    placement
}

/// `units` (cores or threads) in the order in which ranks take them: as they lie, or one of each region in turn.
fn ordered(topology: &MachineTopology, units: &[Vec<u32>], map: MapBy) -> Vec<Vec<u32>> {
    let region_of = |unit: &Vec<u32>| {
        let cpu = unit.first().and_then(|id| topology.cpu(*id));
        cpu.map_or(0, |cpu| if map == MapBy::Numa { cpu.numa } else { cpu.socket })
    };
    if map == MapBy::Pack {
        return units.to_vec();
    }
    let mut seen = std::collections::BTreeMap::<u32, usize>::new();
    let mut turns: Vec<(usize, usize)> = units
        .iter()
        .enumerate()
        .map(|(index, unit)| {
            let turn = seen.entry(region_of(unit)).or_default();
            *turn += 1;
            (*turn, index)
        })
        .collect();
    turns.sort_unstable();
    turns.into_iter().map(|(_, index)| units[index].clone()).collect()
}

/// One region a turn: dealt round robin, or, packed, a region as often as it has room for ranks.
fn regions(topology: &MachineTopology, regions: &[Vec<u32>], policy: &Policy) -> Vec<Vec<u32>> {
    if policy.map != MapBy::Pack {
        return regions.to_vec();
    }
    let cores = topology.cores();
    let room = |region: &Vec<u32>| {
        let inside = cores.iter().filter(|core| core.first().is_some_and(|id| region.contains(id))).count();
        (inside / policy.width as usize).max(1)
    };
    regions.iter().flat_map(|region| std::iter::repeat_n(region.clone(), room(region))).collect()
}

/// Deals `width` units to each rank in order, from the start again when they run out.
fn deal(units: &[Vec<u32>], ranks: u32, width: usize, name: &str) -> Placement {
    let places = (units.len() / width).max(1);
    let of_rank = |rank: usize| {
        let first = rank % places * width;
        let mut cpus: Vec<u32> = units[first..units.len().min(first + width)].concat();
        cpus.sort_unstable();
        cpus
    };
    let shared = if ranks as usize > places { ", shared: there are fewer than ranks" } else { "" };
    Placement {
        ranks: (0..ranks as usize).map(of_rank).collect(),
        reason: format!("bound to {name}{shared}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::placement::Cpu;

    /// Two sockets, each a NUMA node, with two cores of two threads: core c has CPUs c and c + 4.
    fn machine() -> MachineTopology {
        let cpus = (0..8).map(|id| Cpu { numa: id % 4 / 2, socket: id % 4 / 2, core: id % 4, id });
        MachineTopology::new(cpus.collect(), "test")
    }

    fn placed(ranks: u32, bind: Bind, map: MapBy, width: u32) -> Vec<Vec<u32>> {
        place(&machine(), ranks, 8, &Policy { bind, map, width }).ranks
    }

    #[test]
    fn cores_are_packed_or_dealt_over_sockets() {
        assert_eq!(placed(3, Bind::Core, MapBy::Pack, 1), [[0, 4], [1, 5], [2, 6]]);
        assert_eq!(placed(3, Bind::Core, MapBy::Socket, 1), [[0, 4], [2, 6], [1, 5]]);
        assert_eq!(placed(3, Bind::Core, MapBy::Numa, 1), [[0, 4], [2, 6], [1, 5]]);
    }

    #[test]
    fn a_width_gives_that_many_cores() {
        assert_eq!(placed(2, Bind::Core, MapBy::Pack, 2), [[0, 1, 4, 5], [2, 3, 6, 7]]);
        assert_eq!(placed(1, Bind::Core, MapBy::Pack, 99), [[0, 1, 2, 3, 4, 5, 6, 7]]);
    }

    #[test]
    fn ranks_beyond_the_last_core_start_again() {
        let ranks = placed(5, Bind::Core, MapBy::Pack, 1);
        assert_eq!(ranks[4], ranks[0]);
    }

    #[test]
    fn sockets_fill_up_or_take_turns() {
        let (a, b) = (vec![0, 1, 4, 5], vec![2, 3, 6, 7]);
        assert_eq!(placed(3, Bind::Socket, MapBy::Pack, 1), [a.clone(), a.clone(), b.clone()]);
        assert_eq!(placed(3, Bind::Numa, MapBy::Socket, 1), [a.clone(), b, a]);
    }

    #[test]
    fn hardware_threads_of_a_core_are_neighbours() {
        assert_eq!(placed(3, Bind::Hwthread, MapBy::Pack, 1), [[0], [4], [1]]);
    }

    #[test]
    fn by_default_ranks_share_the_cores_equally() {
        assert_eq!(placed(2, Bind::Auto, MapBy::Pack, 1), [[0, 1, 4, 5], [2, 3, 6, 7]]);
        assert_eq!(placed(4, Bind::Auto, MapBy::Pack, 1), [[0, 4], [1, 5], [2, 6], [3, 7]]);
        assert_eq!(placed(3, Bind::Auto, MapBy::Pack, 1), [[0, 4], [1, 5], [2, 6]]);
    }

    #[test]
    fn by_default_nobody_is_bound_alone_or_when_ranks_outnumber_cores_or_quota() {
        assert_eq!(placed(1, Bind::Auto, MapBy::Pack, 1), [[0_u32; 0]]);
        assert!(placed(5, Bind::Auto, MapBy::Pack, 1).iter().all(Vec::is_empty));
        let quota = place(&machine(), 4, 2, &Policy::default());
        assert!(quota.ranks.iter().all(Vec::is_empty));
        assert_eq!(quota.reason, "not bound: 4 ranks outnumber 2 usable cores");
    }

    #[test]
    fn every_policy_gives_every_rank_usable_cpus() {
        let machine = machine();
        for bind in [Bind::Hwthread, Bind::Core, Bind::Socket, Bind::Numa] {
            for map in [MapBy::Pack, MapBy::Socket, MapBy::Numa] {
                for width in 1..10 {
                    for ranks in 1..20 {
                        let placement = place(&machine, ranks, 8, &Policy { bind, map, width });
                        assert_eq!(placement.ranks.len(), ranks as usize);
                        for cpus in &placement.ranks {
                            assert!(!cpus.is_empty() && cpus.iter().all(|id| machine.cpu(*id).is_some()));
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn options_are_read_as_peers_spell_them() {
        let mut policy = Policy::default();
        policy.set_map("socket:PE=2:OVERSUBSCRIBE").unwrap();
        assert_eq!(policy, Policy { bind: Bind::Core, map: MapBy::Socket, width: 2 });
        policy.set_bind("core:3").unwrap();
        assert_eq!(policy.width, 3);
        policy.set_bind("NUMA").unwrap();
        assert_eq!(policy.bind, Bind::Numa);
        for wrong in ["", "corr", "core:0", "core:x"] {
            assert!(policy.set_bind(wrong).is_err(), "{wrong}");
        }
        policy.set_map("ppr:2:node:pe=4").unwrap();
        assert_eq!((policy.map, policy.width), (MapBy::Pack, 4));
        assert_eq!(ranks_per_node("PPR:2:node:pe=4"), Some(2));
        for wrong in ["ppr:2:socket", "ppr:x:node", "ppr:2", "ppr", "ppr:2:node:PE=0"] {
            assert!(policy.set_map(wrong).is_err(), "{wrong}");
        }
        assert_eq!(ranks_per_node("node"), None);
        assert!(policy.set_map("core:PE=0").is_err());
    }
}
