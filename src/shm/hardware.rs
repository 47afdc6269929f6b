//! Parts of the machine that this process is confined to (MPI 5.0 §9.1.2): those that all its CPUs belong to.
//!
//! The kernel says in `/sys` which CPUs belong to a part. That is read for one CPU of the process; the others are
//! looked for in what it says.

use super::cpus::{affinity, affinity_of, parse_list};
use std::fs;
use std::path::Path;

/// Types of hardware resources, from the largest to the smallest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HardwareResource {
    /// The whole machine.
    Machine,
    /// What sits in one socket.
    Package,
    /// CPUs that are equally near to a part of the memory.
    NumaNode,
    /// CPUs that share a cache of the third level.
    L3Cache,
    /// CPUs that share a cache of the second level.
    L2Cache,
    /// CPUs that share a data cache of the first level.
    L1Cache,
    /// The hardware threads of a core.
    Core,
    /// One hardware thread, which the kernel calls a CPU.
    Pu,
}

use HardwareResource::{Core, L1Cache, L2Cache, L3Cache, Machine, NumaNode, Package, Pu};

/// How many types there are.
pub const HARDWARE_RESOURCES: usize = 8;

impl HardwareResource {
    /// All of them, in order.
    pub const ALL: [Self; HARDWARE_RESOURCES] =
        [Machine, Package, NumaNode, L3Cache, L2Cache, L1Cache, Core, Pu];

    /// The name that the standard recommends: a URI, with what hwloc calls it.
    #[must_use]
    pub const fn uri(self) -> &'static str {
        match self {
            Machine => "hwloc://Machine",
            Package => "hwloc://Package",
            NumaNode => "hwloc://NUMANode",
            L3Cache => "hwloc://L3Cache",
            L2Cache => "hwloc://L2Cache",
            L1Cache => "hwloc://L1Cache",
            Core => "hwloc://Core",
            Pu => "hwloc://PU",
        }
    }

    /// What other MPI libraries call it besides.
    const fn alias(self) -> &'static str {
        match self {
            Machine => "host",
            Package => "socket",
            NumaNode => "numa",
            L3Cache => "l3",
            L2Cache => "l2",
            L1Cache => "l1",
            Core => "core",
            Pu => "hwthread",
        }
    }

    /// The type of a name: a URI, or what other MPI libraries take, in capitals or not.
    #[must_use]
    pub fn named(name: &[u8]) -> Option<Self> {
        let is_one = |kind: &Self| {
            let (_, short) = kind.uri().split_at("hwloc://".len());
            [kind.uri(), short, kind.alias()].iter().any(|known| known.as_bytes().eq_ignore_ascii_case(name))
        };
        Self::ALL.into_iter().find(is_one)
    }
}

/// Of which instance of a type the CPUs of a process are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Confinement {
    /// The kernel knows no such part of this machine.
    Unknown,
    /// Of several.
    Several,
    /// Of the one whose first CPU has this number.
    One(u32),
}

impl Confinement {
    /// The first CPU of the one instance that they are of.
    #[must_use]
    pub fn first_cpu(self) -> Option<u32> {
        match self {
            Self::One(cpu) => Some(cpu),
            Self::Unknown | Self::Several => None,
        }
    }
}

/// What this process is confined to, by type, now.
#[must_use]
pub fn confinement() -> [Confinement; HARDWARE_RESOURCES] {
    let cpus = own_cpus();
    HardwareResource::ALL.map(|kind| confined(&cpus, kind, Path::new("/sys/devices/system")))
}

/// The CPUs that threads of this process may use, in ascending order.
/// A program may bind each of its threads to a CPU of its own.
fn own_cpus() -> Vec<u32> {
    let threads = fs::read_dir("/proc/self/task").into_iter().flatten().flatten();
    let numbers = threads.filter_map(|thread| thread.file_name().to_str()?.parse().ok());
    let all = numbers.filter_map(affinity_of).flatten().chain(affinity());
    let mut cpus: Vec<u32> = all.filter_map(|cpu| u32::try_from(cpu).ok()).collect();
    cpus.sort_unstable();
    cpus.dedup();
    cpus
}

fn confined(cpus: &[u32], kind: HardwareResource, root: &Path) -> Confinement {
    let Some(&cpu) = cpus.first() else { return Confinement::Unknown };
    let Some(instance) = instance(cpu, kind, root).filter(|all| all.contains(&cpu)) else {
        return Confinement::Unknown;
    };
    if kind == Machine || cpus.iter().all(|cpu| instance.contains(cpu)) {
        instance.iter().min().map_or(Confinement::Unknown, |first| Confinement::One(*first))
    } else {
        Confinement::Several
    }
}

/// The CPUs of the instance that `cpu` belongs to; of the machine, whichever they are.
pub(crate) fn instance(cpu: u32, kind: HardwareResource, root: &Path) -> Option<Vec<u32>> {
    let dir = root.join(format!("cpu/cpu{cpu}"));
    let list = |path: &Path| fs::read_to_string(path).ok().map(|text| parse_list(&text));
    // The second name is that of older kernels.
    let topology = |names: [&str; 2]| names.iter().find_map(|name| list(&dir.join("topology").join(name)));
    match kind {
        Machine => Some(vec![0, cpu]),
        Package => topology(["package_cpus_list", "core_siblings_list"]),
        NumaNode => {
            let names = fs::read_dir(&dir).ok()?.flatten().map(|entry| entry.file_name());
            let is_node = |name: &str| name.strip_prefix("node").is_some_and(|n| n.parse::<u32>().is_ok());
            let node = names.filter_map(|name| name.into_string().ok()).find(|name| is_node(name))?;
            list(&root.join("node").join(node).join("cpulist"))
        }
        L3Cache => list(&cache(&dir, "3")?),
        L2Cache => list(&cache(&dir, "2")?),
        L1Cache => list(&cache(&dir, "1")?),
        Core => topology(["core_cpus_list", "thread_siblings_list"]),
        Pu => Some(vec![cpu]),
    }
}

/// The file that says which CPUs share the data cache of a level.
fn cache(cpu: &Path, level: &str) -> Option<std::path::PathBuf> {
    let is = |path: &Path, name: &str, what: &str| {
        fs::read_to_string(path.join(name)).is_ok_and(|text| text.trim() == what)
    };
    let caches = fs::read_dir(cpu.join("cache")).ok()?.flatten().map(|entry| entry.path());
    let mut found = caches.filter(|path| is(path, "level", level) && !is(path, "type", "Instruction"));
    found.next().map(|path| path.join("shared_cpu_list"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two sockets with two cores of two threads each; siblings are 4 apart.
    fn machine(root: &Path) {
        let write = |path: String, text: &str| {
            let path = root.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, format!("{text}\n")).unwrap();
        };
        for cpu in 0..8 {
            let (core, socket) = (cpu % 4, cpu % 4 / 2);
            let (siblings, package) =
                (format!("{core},{}", core + 4), ["0-1,4-5", "2-3,6-7"][socket as usize]);
            write(format!("cpu/cpu{cpu}/topology/thread_siblings_list"), &siblings);
            write(format!("cpu/cpu{cpu}/topology/package_cpus_list"), package);
            write(format!("cpu/cpu{cpu}/node{socket}/meminfo"), "");
            for (index, (level, kind, list)) in [
                ("1", "Instruction", siblings.as_str()),
                ("1", "Data", &siblings),
                ("2", "Unified", &siblings),
                ("3", "Unified", package),
            ]
            .into_iter()
            .enumerate()
            {
                let dir = format!("cpu/cpu{cpu}/cache/index{index}");
                write(format!("{dir}/level"), level);
                write(format!("{dir}/type"), kind);
                write(format!("{dir}/shared_cpu_list"), list);
            }
            write(format!("node/node{socket}/cpulist"), package);
        }
    }

    #[test]
    fn a_process_is_confined_to_what_all_its_cpus_belong_to() {
        let root = std::env::temp_dir().join(format!("perusal-hardware-{}", std::process::id()));
        machine(&root);
        let of = |cpus: &[u32]| HardwareResource::ALL.map(|kind| confined(cpus, kind, &root).first_cpu());
        assert_eq!(of(&[7]), [0, 2, 2, 2, 3, 3, 3, 7].map(Some));
        assert_eq!(of(&[3, 7]), [Some(0), Some(2), Some(2), Some(2), Some(3), Some(3), Some(3), None]);
        assert_eq!(of(&[2, 7]), [Some(0), Some(2), Some(2), Some(2), None, None, None, None]);
        assert_eq!(of(&[0, 2]), [Some(0), None, None, None, None, None, None, None]);
        assert_eq!(confined(&[0, 2], Package, &root), Confinement::Several);
        // CPUs of which the kernel says nothing.
        assert_eq!(confined(&[9], Package, &root), Confinement::Unknown);
        assert_eq!(confined(&[9], L3Cache, &root), Confinement::Unknown);
        assert_eq!(confined(&[9], Pu, &root), Confinement::One(9));
        fs::remove_dir_all(&root).unwrap();
    }

    #[test]
    fn names_are_those_of_the_standard_and_of_other_libraries() {
        for kind in HardwareResource::ALL {
            assert_eq!(HardwareResource::named(kind.uri().as_bytes()), Some(kind));
        }
        assert_eq!(HardwareResource::named(b"numanode"), Some(NumaNode));
        assert_eq!(HardwareResource::named(b"Socket"), Some(Package));
        assert_eq!(HardwareResource::named(b"hwthread"), Some(Pu));
        assert_eq!(HardwareResource::named(b"hwloc://"), None);
        assert_eq!(HardwareResource::named(b""), None);
    }

    #[test]
    fn this_process_is_confined_to_its_machine() {
        let [machine, .., thread] = confinement();
        assert_eq!(machine, Confinement::One(0));
        assert_ne!(thread, Confinement::Unknown);
    }
}
