//! What the machine looks like, as far as placement cares.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

#[cfg(feature = "hwloc")]
use hwloc2::ObjectType;

use crate::shm::cpus::{self, parse_list};
use crate::shm::hardware::{HardwareResource, instance};

/// One CPU (hardware thread) that the job may use, and where it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Cpu {
    /// NUMA node.
    pub numa: u32,
    /// Socket (package).
    pub socket: u32,
    /// Core: a number that is unique on the machine.
    pub core: u32,
    /// The operating system's number.
    pub id: u32,
}

/// A part of the machine that may have several cores.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Region {
    /// The cores that share a data cache of the first level.
    L1Cache,
    /// The cores that share a cache of the second level.
    L2Cache,
    /// The cores that share a cache of the third level.
    L3Cache,
    /// The cores of a NUMA node.
    Numa,
    /// The cores of a socket.
    Socket,
}

impl Region {
    /// All of them, small ones first.
    pub const ALL: [Self; 5] = [Self::L1Cache, Self::L2Cache, Self::L3Cache, Self::Numa, Self::Socket];

    /// The names that launchers have for it, in small letters; its own comes first.
    pub(super) const fn names(self) -> &'static [&'static str] {
        match self {
            Self::L1Cache => &["l1cache", "l1", "l1dcache", "l1ucache"],
            Self::L2Cache => &["l2cache", "l2", "l2dcache", "l2ucache"],
            Self::L3Cache => &["l3cache", "l3", "l3dcache", "l3ucache"],
            Self::Numa => &["numa", "numanode"],
            Self::Socket => &["socket", "package", "sock"],
        }
    }

    /// The region of a name in small letters.
    pub(super) fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|region| region.names().contains(&name))
    }

    /// What people call it.
    pub(super) const fn title(self) -> &'static str {
        match self {
            Self::L1Cache => "L1 cache",
            Self::L2Cache => "L2 cache",
            Self::L3Cache => "L3 cache",
            Self::Numa => "NUMA node",
            Self::Socket => "socket",
        }
    }
}

/// The usable CPUs, neighbours beside each other: ordered by node, socket, core, number. Never empty.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MachineTopology {
    cpus: Vec<Cpu>,
    source: &'static str,
    /// Where the kernel says which CPUs share a cache, if these are its CPUs.
    root: Option<PathBuf>,
}

impl MachineTopology {
    /// The topology that hwloc sees, cut to the affinity mask; from `/sys` or the mask alone where hwloc sees nothing
    /// or is not built in. Takes milliseconds, on large nodes more.
    #[must_use]
    pub fn load() -> Self {
        let mask = mask();
        let root = Path::new("/sys/devices/system");
        from_hwloc(&mask).map_or_else(
            || Self::quick_of(&mask, root),
            |found| Self { root: Some(root.to_owned()), ..found },
        )
    }

    /// The same from a few files of `/sys`, in microseconds a CPU; from the affinity mask alone where there are none.
    #[must_use]
    pub fn quick() -> Self {
        Self::quick_of(&mask(), Path::new("/sys/devices/system"))
    }

    fn quick_of(mask: &[u32], root: &Path) -> Self {
        from_sysfs(mask, root).unwrap_or_else(|| Self::flat(mask))
    }

    /// Every CPU a core of its own on one socket.
    fn flat(mask: &[u32]) -> Self {
        let cpus = mask.iter().map(|&id| Cpu { numa: 0, socket: 0, core: id, id });
        Self::new(cpus.collect(), "affinity mask")
    }

    /// A topology of `cpus`, put in order. `source` says where it comes from.
    pub(super) fn new(mut cpus: Vec<Cpu>, source: &'static str) -> Self {
        cpus.sort_unstable();
        Self { cpus, source, root: None }
    }

    /// The usable CPUs in order.
    #[must_use]
    pub fn cpus(&self) -> &[Cpu] {
        &self.cpus
    }

    /// Where this comes from: "hwloc", "/sys" or "affinity mask".
    #[must_use]
    pub fn source(&self) -> &'static str {
        self.source
    }

    /// The CPUs of each core, in order.
    #[must_use]
    pub fn cores(&self) -> Vec<Vec<u32>> {
        self.groups(|cpu| cpu.core)
    }

    /// The CPUs of each socket, in order.
    #[must_use]
    pub fn sockets(&self) -> Vec<Vec<u32>> {
        self.groups(|cpu| cpu.socket)
    }

    /// The CPUs of each NUMA node, in order.
    #[must_use]
    pub fn numas(&self) -> Vec<Vec<u32>> {
        self.groups(|cpu| cpu.numa)
    }

    /// The CPUs of each region of a kind, in order.
    #[must_use]
    pub fn regions(&self, kind: Region) -> Vec<Vec<u32>> {
        self.groups(|cpu| self.region_of(cpu, kind))
    }

    /// A number that the CPUs of a region of this kind have in common. Where the kernel does not know the caches, those
    /// of the third level are those of sockets, and the others those of cores.
    pub(super) fn region_of(&self, cpu: &Cpu, kind: Region) -> u32 {
        let (cache, otherwise) = match kind {
            Region::Socket => return cpu.socket,
            Region::Numa => return cpu.numa,
            Region::L1Cache => (HardwareResource::L1Cache, cpu.core),
            Region::L2Cache => (HardwareResource::L2Cache, cpu.core),
            Region::L3Cache => (HardwareResource::L3Cache, cpu.socket),
        };
        let sharers = self.root.as_deref().and_then(|root| instance(cpu.id, cache, root));
        sharers.and_then(|cpus| cpus.into_iter().min()).unwrap_or(otherwise | 1 << 30)
    }

    /// Groups of CPUs with the same key, in the order in which the keys first appear.
    pub(super) fn groups(&self, key: impl Fn(&Cpu) -> u32) -> Vec<Vec<u32>> {
        let mut index = BTreeMap::new();
        let mut groups: Vec<Vec<u32>> = vec![];
        for cpu in &self.cpus {
            let at = *index.entry(key(cpu)).or_insert(groups.len());
            if at == groups.len() {
                groups.push(vec![]);
            }
            groups[at].push(cpu.id);
        }
        groups
    }

    /// The CPU with this number, if it is usable.
    #[must_use]
    pub fn cpu(&self, id: u32) -> Option<&Cpu> {
        self.cpus.iter().find(|cpu| cpu.id == id)
    }
}

/// The affinity mask with CPU numbers as everybody here has them.
fn mask() -> Vec<u32> {
    cpus::affinity().into_iter().filter_map(|cpu| u32::try_from(cpu).ok()).collect()
}

/// What hwloc sees of the CPUs in `mask`. Only the sound part of the binding is used: objects by type, operating-system
/// indexes of CPUs, and sets that are read, never written or kept, while the topology lives. NUMA nodes have no depth
/// that the binding can name, so a CPU's node is read from the CPU's own node set.
#[cfg(feature = "hwloc")]
fn from_hwloc(mask: &[u32]) -> Option<MachineTopology> {
    let topology = hwloc2::Topology::new()?;
    let cores = owners(&topology, &ObjectType::Core);
    let sockets = owners(&topology, &ObjectType::Package);
    let mut cpus = vec![];
    for object in topology.objects_with_type(&ObjectType::PU).ok()? {
        let id = object.os_index();
        if mask.contains(&id) {
            let numa = object.nodeset().and_then(|nodes| u32::try_from(nodes.first()).ok());
            // Without cores a CPU is its own; keep those numbers apart from logical core indexes.
            let core = cores.get(&id).copied().unwrap_or(id | 1 << 31);
            let socket = sockets.get(&id).copied().unwrap_or(0);
            cpus.push(Cpu { numa: numa.unwrap_or(0), socket, core, id });
        }
    }
    // hwloc may be looking at something else than this machine (HWLOC_XMLFILE): then its CPUs are not ours.
    (cpus.len() == mask.len()).then(|| MachineTopology::new(cpus, "hwloc"))
}

#[cfg(not(feature = "hwloc"))]
fn from_hwloc(_: &[u32]) -> Option<MachineTopology> {
    None
}

/// Which object of `kind`, by logical index, each CPU belongs to.
#[cfg(feature = "hwloc")]
fn owners(topology: &hwloc2::Topology, kind: &ObjectType) -> BTreeMap<u32, u32> {
    let mut owner = BTreeMap::new();
    for object in topology.objects_with_type(kind).unwrap_or_default() {
        if let Some(set) = object.cpuset().filter(|set| set.weight() > 0) {
            owner.extend(set.into_iter().map(|cpu| (cpu, object.logical_index())));
        }
    }
    owner
}

/// What `/sys` says of the CPUs in `mask`; `None` if it says nothing.
fn from_sysfs(mask: &[u32], root: &Path) -> Option<MachineTopology> {
    let nodes = sysfs_nodes(root);
    let mut numbers: BTreeMap<(i64, i64), u32> = BTreeMap::new();
    let mut cpus = vec![];
    for &id in mask {
        let dir = root.join(format!("cpu/cpu{id}/topology"));
        let read = |name: &str| fs::read_to_string(dir.join(name)).ok()?.trim().parse::<i64>().ok();
        let (package, core) = (read("physical_package_id")?, read("core_id")?);
        // Core ids repeat on each socket; number the pairs.
        let next = u32::try_from(numbers.len()).ok()?;
        let core = *numbers.entry((package, core)).or_insert(next);
        let numa = nodes.get(&id).copied().unwrap_or(0);
        cpus.push(Cpu { numa, socket: u32::try_from(package).unwrap_or(0), core, id });
    }
    (!cpus.is_empty())
        .then(|| MachineTopology { root: Some(root.to_owned()), ..MachineTopology::new(cpus, "/sys") })
}

/// The NUMA node of each CPU that `/sys` knows one for.
fn sysfs_nodes(root: &Path) -> BTreeMap<u32, u32> {
    let mut node_of = BTreeMap::new();
    let Ok(entries) = fs::read_dir(root.join("node")) else { return node_of };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let node = name.to_str().and_then(|name| name.strip_prefix("node")?.parse::<u32>().ok());
        if let (Some(node), Ok(list)) = (node, fs::read_to_string(entry.path().join("cpulist"))) {
            node_of.extend(parse_list(&list).into_iter().map(|cpu| (cpu, node)));
        }
    }
    node_of
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whatever_the_source_the_topology_has_exactly_the_usable_cpus() {
        for topology in [MachineTopology::load(), MachineTopology::quick(), MachineTopology::flat(&mask())] {
            let mut ids: Vec<u32> = topology.cpus().iter().map(|cpu| cpu.id).collect();
            ids.sort_unstable();
            assert_eq!(ids, mask(), "{}", topology.source());
            assert!(!topology.cores().is_empty());
            assert!(topology.cores().len() <= ids.len());
            assert!(topology.sockets().len() <= topology.cores().len());
        }
    }

    #[test]
    fn without_sysfs_the_mask_is_enough() {
        let topology = MachineTopology::quick_of(&[2, 5], Path::new("/nonexistent"));
        assert_eq!(topology.source(), "affinity mask");
        assert_eq!(topology.cores(), [[2], [5]]);
    }

    #[test]
    fn caches_are_those_of_the_kernel_or_of_sockets_and_cores() {
        let root = std::env::temp_dir().join(format!("perusal-caches-{}", std::process::id()));
        // One socket, four cores; two of them share a cache of the second level, all that of the third.
        for id in 0..4_u32 {
            let cpu = root.join(format!("cpu/cpu{id}"));
            for (dir, files) in [
                ("topology", vec![("physical_package_id", "0".to_owned()), ("core_id", id.to_string())]),
                ("cache/index0", shared("1", id..=id)),
                ("cache/index1", shared("2", id / 2 * 2..=id / 2 * 2 + 1)),
                ("cache/index2", shared("3", 0..=3)),
            ] {
                fs::create_dir_all(cpu.join(dir)).unwrap();
                for (name, text) in files {
                    fs::write(cpu.join(dir).join(name), text).unwrap();
                }
            }
        }
        let topology = MachineTopology::quick_of(&[0, 1, 2, 3], &root);
        let sizes = |topology: &MachineTopology| Region::ALL.map(|kind| topology.regions(kind).len());
        assert_eq!(sizes(&topology), [4, 2, 1, 1, 1]);
        assert_eq!(topology.regions(Region::L2Cache), [[0, 1], [2, 3]]);
        fs::remove_dir_all(&root).unwrap();
        assert_eq!(sizes(&topology), [4, 4, 1, 1, 1], "the kernel says nothing any more");
    }

    /// The files of a cache that these CPUs share.
    fn shared(level: &str, cpus: core::ops::RangeInclusive<u32>) -> Vec<(&'static str, String)> {
        let list = format!("{}-{}", cpus.start(), cpus.end());
        vec![("level", level.to_owned()), ("type", "Unified".to_owned()), ("shared_cpu_list", list)]
    }

    #[test]
    fn sysfs_core_ids_that_repeat_on_two_sockets_are_different_cores() {
        let root = std::env::temp_dir().join(format!("perusal-sysfs-{}", std::process::id()));
        // Two sockets, two cores each with two threads, numbered as Intel does: siblings 4 apart.
        for id in 0..8_u32 {
            let dir = root.join(format!("cpu/cpu{id}/topology"));
            fs::create_dir_all(&dir).unwrap();
            fs::write(dir.join("physical_package_id"), format!("{}\n", id % 4 / 2)).unwrap();
            fs::write(dir.join("core_id"), format!("{}\n", id % 2)).unwrap();
        }
        for (node, list) in [(0, "0-1,4-5"), (1, "2-3,6-7")] {
            let dir = root.join(format!("node/node{node}"));
            fs::create_dir_all(&dir).unwrap();
            fs::write(dir.join("cpulist"), list).unwrap();
        }
        let topology = MachineTopology::quick_of(&[0, 1, 2, 3, 4, 5, 6, 7], &root);
        fs::remove_dir_all(&root).unwrap();
        assert_eq!(topology.source(), "/sys");
        assert_eq!(topology.cores(), [[0, 4], [1, 5], [2, 6], [3, 7]]);
        assert_eq!(
            topology.sockets(),
            [[0, 1, 4, 5].to_vec(), [2, 3, 6, 7].to_vec()].map(|mut socket| {
                socket.sort_by_key(|id| (id % 4, *id));
                socket
            })
        );
        assert_eq!(topology.numas().len(), 2);
    }
}
