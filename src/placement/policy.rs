//! From a topology and what the user asked for to a list of CPUs for each rank. Pure.

use crate::placement::{MachineTopology, Region};
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
    /// The region that it is mapped to.
    Region(Region),
}

impl Bind {
    /// What `--bind-to` means by this name, in small letters.
    fn named(name: &str) -> Option<Self> {
        Some(match name {
            // One machine is all there is.
            "none" | "machine" | "board" => Self::None,
            "node" => Self::Region(Region::Numa),
            "hwthread" | "pu" | "hwt" => Self::Hwthread,
            "core" => Self::Core,
            region => Self::Region(Region::named(region)?),
        })
    }
}

/// In which order ranks are dealt to places.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum MapBy {
    /// One after the other: neighbours beside each other.
    #[default]
    Pack,
    /// Round robin over the regions of a kind.
    Region(Region),
}

/// So many ranks on each hardware thread, core or region: the N and the name of ppr:N:name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RanksEach {
    ranks: u32,
    /// [`Bind::Hwthread`], [`Bind::Core`] or a region.
    unit: Bind,
}

impl RanksEach {
    /// How many ranks that are on this machine; at most so many as can be counted.
    #[must_use]
    pub fn total(self, topology: &MachineTopology) -> u32 {
        let units = u32::try_from(units(topology, self.unit).len()).unwrap_or(u32::MAX);
        self.ranks.saturating_mul(units)
    }
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
    /// How many ranks each part of the machine gets, if that was said.
    pub each: Option<RanksEach>,
}

impl Default for Policy {
    fn default() -> Self {
        Self { bind: Bind::Auto, map: MapBy::Pack, width: 1, each: None }
    }
}

impl Policy {
    /// Reads the value of `--bind-to`: none, hwthread, core or a region, as Open MPI and MPICH spell them, with an
    /// optional width ("core:2").
    ///
    /// # Errors
    /// [`Error::Other`] that lists what is possible.
    pub fn set_bind(&mut self, text: &str) -> Result<()> {
        let lower = text.to_ascii_lowercase();
        let (what, modifier) = lower.split_once(':').unwrap_or((&lower, ""));
        self.bind = Bind::named(what).ok_or_else(|| {
            Error::Other(format!(
                "--bind-to {text}: it must be none, core, socket, numa, l3cache, l2cache, l1cache or hwthread"
            ))
        })?;
        match modifier {
            "" | "overload-allowed" | "if-supported" => Ok(()),
            width => self.set_width("--bind-to", text, width),
        }
    }

    /// Reads the value of `--map-by`: core, slot, hwthread or ppr:N:node (pack), a region (round robin) or ppr:N:name
    /// (N ranks on each), with the modifiers PE=n (width) and, without effect, OVERSUBSCRIBE, NOOVERSUBSCRIBE and SPAN.
    ///
    /// # Errors
    /// [`Error::Other`] that lists what is possible.
    pub fn set_map(&mut self, text: &str) -> Result<()> {
        let wrong = || {
            Error::Other(format!(
                "--map-by {text}: it must be core, slot, socket, numa, l3cache, l2cache, l1cache, or ppr:N:NAME with node or one of these for a name (with :PE=n for n cores a rank)"
            ))
        };
        let lower = text.to_ascii_lowercase();
        let each = each_of(&lower);
        let (what, modifiers) = each.map_or_else(|| first_part(&lower), |each| (each.name, each.modifiers));
        (self.map, self.each) = match (what, each) {
            // There is one node.
            ("node", _) | ("core" | "slot" | "hwthread" | "pack" | "", None) => (MapBy::Pack, None),
            ("spread", None) => (MapBy::Region(Region::Socket), None),
            (region, None) => (MapBy::Region(Region::named(region).ok_or_else(wrong)?), None),
            (name, Some(each)) => {
                let unit = Bind::named(name).filter(|unit| *unit != Bind::None && each.ranks > 0);
                (MapBy::Pack, Some(RanksEach { ranks: each.ranks, unit: unit.ok_or_else(wrong)? }))
            }
        };
        for modifier in modifiers.split([':', ',']).filter(|modifier| !modifier.is_empty()) {
            match modifier.strip_prefix("pe=") {
                Some(width) => self.set_width("--map-by", text, width)?,
                None if matches!(modifier, "oversubscribe" | "nooversubscribe" | "span" | "hwtcpus") => {}
                None => return Err(Error::Other(format!("--map-by {text}: {modifier} is not understood"))),
            }
        }
        if let (Some(each), Bind::Auto) = (self.each, self.bind) {
            self.bind = each.unit;
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
    each_of(&text.to_ascii_lowercase()).filter(|each| each.name == "node").map(|each| each.ranks)
}

/// The parts of ppr:N:name, and the modifiers behind it.
#[derive(Clone, Copy)]
struct EachText<'a> {
    ranks: u32,
    name: &'a str,
    modifiers: &'a str,
}

fn each_of(lower: &str) -> Option<EachText<'_>> {
    let (number, rest) = lower.strip_prefix("ppr:")?.split_once(':')?;
    let (name, modifiers) = first_part(rest);
    Some(EachText { ranks: number.parse().ok()?, name, modifiers })
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
    let all = units(topology, policy.bind);
    if let Some(each) = policy.each.filter(|_| policy.bind != Bind::None) {
        return on_each(topology, ranks, each, (policy.bind, &all, width));
    }
    match policy.bind {
        Bind::None => Placement::unbound(ranks, "not bound, as asked"),
        Bind::Auto => share(topology, ranks, usable, policy.map),
        Bind::Hwthread | Bind::Core => {
            deal(&ordered(topology, &all, policy.map), ranks, width, title(policy.bind))
        }
        Bind::Region(_) => deal(&regions(topology, &all, policy), ranks, 1, title(policy.bind)),
    }
}

/// All that a rank may be bound to, in order; nothing where that is nothing.
fn units(topology: &MachineTopology, bind: Bind) -> Vec<Vec<u32>> {
    match bind {
        Bind::Auto | Bind::None => vec![],
        Bind::Hwthread => topology.groups(|cpu| cpu.id),
        Bind::Core => topology.cores(),
        Bind::Region(region) => topology.regions(region),
    }
}

const fn title(bind: Bind) -> &'static str {
    match bind {
        Bind::Auto | Bind::None => "nothing",
        Bind::Hwthread => "hardware thread",
        Bind::Core => "core",
        Bind::Region(region) => region.title(),
    }
}

/// Places `each` many ranks on each part of the machine, the first ranks on the first part. A rank gets `width` of the
/// places in its part, out of `all` that ranks may be bound to; if the part lies within one place, it gets that one.
fn on_each(
    topology: &MachineTopology,
    ranks: u32,
    each: RanksEach,
    (bind, all, width): (Bind, &[Vec<u32>], usize),
) -> Placement {
    let parts = units(topology, each.unit);
    let many = each.ranks as usize;
    let within = |part: &Vec<u32>| -> Vec<Vec<u32>> {
        let touches = |unit: &&Vec<u32>| unit.iter().any(|cpu| part.contains(cpu));
        all.iter().filter(touches).cloned().collect()
    };
    let width = if matches!(bind, Bind::Region(_)) { 1 } else { width };
    // All ranks may be on the first part, and no part has more.
    let of_part = |part| deal(&within(part), each.ranks.min(ranks), width, "").ranks;
    let places: Vec<Vec<u32>> = parts.iter().flat_map(of_part).collect();
    let shared = if many > 1 && bind == each.unit { ", shared" } else { "" };
    Placement {
        ranks: (0..ranks as usize).map(|rank| places[rank % places.len()].clone()).collect(),
        reason: format!("bound to {}{shared}: {many} ranks on each {}", title(bind), title(each.unit)),
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
    let MapBy::Region(kind) = map else { return units.to_vec() };
    let region_of = |unit: &Vec<u32>| {
        let cpu = unit.first().and_then(|id| topology.cpu(*id));
        cpu.map_or(0, |cpu| topology.region_of(cpu, kind))
    };
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
        place(&machine(), ranks, 8, &Policy { bind, map, width, each: None }).ranks
    }

    #[test]
    fn cores_are_packed_or_dealt_over_sockets() {
        assert_eq!(placed(3, Bind::Core, MapBy::Pack, 1), [[0, 4], [1, 5], [2, 6]]);
        assert_eq!(placed(3, Bind::Core, MapBy::Region(Region::Socket), 1), [[0, 4], [2, 6], [1, 5]]);
        assert_eq!(placed(3, Bind::Core, MapBy::Region(Region::Numa), 1), [[0, 4], [2, 6], [1, 5]]);
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
        assert_eq!(
            placed(3, Bind::Region(Region::Socket), MapBy::Pack, 1),
            [a.clone(), a.clone(), b.clone()]
        );
        assert_eq!(
            placed(3, Bind::Region(Region::Numa), MapBy::Region(Region::Socket), 1),
            [a.clone(), b, a]
        );
    }

    #[test]
    fn so_many_ranks_are_on_each_part() {
        let placed = |text: &str, bind: &str, ranks: u32| {
            let mut policy = Policy::default();
            policy.set_map(text).unwrap();
            if !bind.is_empty() {
                policy.set_bind(bind).unwrap();
            }
            (place(&machine(), ranks, 8, &policy).ranks, policy.each.unwrap().total(&machine()))
        };
        let (a, b) = (vec![0, 1, 4, 5], vec![2, 3, 6, 7]);
        // Bound to the part, unless something else is asked for.
        assert_eq!(placed("ppr:2:socket", "", 5), (vec![a.clone(), a.clone(), b.clone(), b, a.clone()], 4));
        assert_eq!(placed("ppr:1:core", "", 2), (vec![vec![0, 4], vec![1, 5]], 4));
        assert_eq!(placed("ppr:2:numa", "core", 3), (vec![vec![0, 4], vec![1, 5], vec![2, 6]], 4));
        assert_eq!(placed("PPR:1:Socket:PE=2", "", 1), (vec![a.clone()], 2));
        assert_eq!(placed("ppr:1:hwthread", "socket", 1), (vec![a], 8));
        assert_eq!(placed("ppr:2:l2cache", "none", 1), (vec![vec![]], 8));
        assert_eq!(placed("ppr:4294967295:core", "", 2), (vec![vec![0, 4]; 2], u32::MAX));
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
        let regions = || Region::ALL.into_iter();
        let binds = || [Bind::Hwthread, Bind::Core].into_iter().chain(regions().map(Bind::Region));
        for bind in binds() {
            let maps =
                [(MapBy::Pack, None)].into_iter().chain(regions().map(|kind| (MapBy::Region(kind), None)));
            let eaches =
                binds().flat_map(|unit| [1, 3].map(|ranks| (MapBy::Pack, Some(RanksEach { ranks, unit }))));
            for (map, each) in maps.chain(eaches) {
                for (width, ranks) in (1..10).flat_map(|width| (1..20).map(move |ranks| (width, ranks))) {
                    let placement = place(&machine, ranks, 8, &Policy { bind, map, width, each });
                    assert_eq!(placement.ranks.len(), ranks as usize);
                    for cpus in &placement.ranks {
                        assert!(!cpus.is_empty() && cpus.iter().all(|id| machine.cpu(*id).is_some()));
                    }
                }
            }
        }
    }

    #[test]
    fn options_are_read_as_peers_spell_them() {
        let mut policy = Policy::default();
        policy.set_map("socket:PE=2:OVERSUBSCRIBE").unwrap();
        assert_eq!(
            policy,
            Policy { bind: Bind::Core, map: MapBy::Region(Region::Socket), width: 2, each: None }
        );
        policy.set_bind("core:3").unwrap();
        assert_eq!(policy.width, 3);
        policy.set_bind("NUMA").unwrap();
        assert_eq!(policy.bind, Bind::Region(Region::Numa));
        for wrong in ["", "corr", "core:0", "core:x"] {
            assert!(policy.set_bind(wrong).is_err(), "{wrong}");
        }
        policy.set_map("ppr:2:node:pe=4").unwrap();
        assert_eq!((policy.map, policy.width), (MapBy::Pack, 4));
        assert_eq!(ranks_per_node("PPR:2:node:pe=4"), Some(2));
        for wrong in
            ["ppr:2:moon", "ppr:0:core", "ppr:2:none", "ppr:x:node", "ppr:2", "ppr", "ppr:2:node:PE=0"]
        {
            assert!(policy.set_map(wrong).is_err(), "{wrong}");
        }
        for (name, region) in
            [("l3cache", Region::L3Cache), ("L2", Region::L2Cache), ("l1dcache", Region::L1Cache)]
        {
            policy.set_bind(name).unwrap();
            policy.set_map(name).unwrap();
            assert_eq!((policy.bind, policy.map), (Bind::Region(region), MapBy::Region(region)));
        }
        assert_eq!(ranks_per_node("node"), None);
        assert!(policy.set_map("core:PE=0").is_err());
    }
}
