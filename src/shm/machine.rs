//! Which machine this is, and how much of its memory the job may have.

use super::cpus::ancestors;
use rustix::process::{Resource, Rlimit};
use std::sync::OnceLock;
use std::{fs, io};

/// What distinguishes machines on which measurements differ.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MachineId {
    /// The processor's name.
    pub cpu: String,
    /// How many logical CPUs the machine has, whether or not this process may use them.
    pub cpus: usize,
}

impl MachineId {
    /// Names this machine.
    #[must_use]
    pub fn here() -> Self {
        let info = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let name = info.lines().find_map(|line| line.strip_prefix("model name")?.split_once(':'));
        let cpu = name.map_or(std::env::consts::ARCH, |(_, name)| name.trim());
        // SAFETY: `sysconf` takes a number and touches no memory of this process.
        let cpus = unsafe { libc::sysconf(libc::_SC_NPROCESSORS_CONF) };
        Self { cpu: cpu.replace(['"', '\\'], "'"), cpus: usize::try_from(cpus).unwrap_or(1) }
    }
}

impl core::fmt::Display for MachineId {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "{}, {} CPUs", self.cpu, self.cpus)
    }
}

/// Bytes of memory that the job may have: the machine's, or the cgroup's limit if that is less.
#[must_use]
pub fn memory() -> u64 {
    let info = rustix::system::sysinfo();
    let machine = info.totalram.saturating_mul(u64::from(info.mem_unit));
    let own = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    limit_of(&own, |path| fs::read_to_string(path).ok()).map_or(machine, |limit| limit.min(machine))
}

/// How many processes of this control group the kernel has killed because memory had run out: the group's own limit, or
/// an outer one's. `None` where there is no such count.
#[must_use]
pub fn killed_for_memory() -> Option<u64> {
    let own = fs::read_to_string("/proc/self/cgroup").ok()?;
    kills_of(&own, |path| fs::read_to_string(path).ok())
}

/// The count, over the text of /proc/self/cgroup and a reader of files.
fn kills_of(own: &str, read: impl Fn(&str) -> Option<String>) -> Option<u64> {
    own.lines().find_map(|line| {
        let mut fields = line.splitn(3, ':').skip(1);
        let (controllers, path) = (fields.next()?, fields.next()?);
        let (root, file) = match controllers {
            "" => ("/sys/fs/cgroup", "memory.events"),
            "memory" => ("/sys/fs/cgroup/memory", "memory.oom_control"),
            _ => return None,
        };
        // In a container the group may be what is mounted at the root.
        let text = ancestors(path).into_iter().find_map(|at| read(&format!("{root}{at}/{file}")))?;
        text.lines().find_map(|line| line.strip_prefix("oom_kill ")?.trim().parse().ok())
    })
}

/// Bytes of address space that a process may have, if there is a limit (`ulimit -v`).
#[must_use]
pub fn address_space() -> Option<u64> {
    resource_limit(Resource::As).current
}

/// Bytes that the stack of a process may grow to (`ulimit -s`).
#[must_use]
pub fn stack_size() -> u64 {
    resource_limit(Resource::Stack).current.unwrap_or(u64::MAX)
}

/// Bytes that a file may have (`ulimit -f`).
#[must_use]
pub fn file_size() -> u64 {
    resource_limit(Resource::Fsize).current.unwrap_or(u64::MAX)
}

/// Descriptors that a process may have open (`ulimit -n`), and how many it may allow itself (`ulimit -Hn`).
#[must_use]
pub fn open_files() -> (u64, u64) {
    let limit = resource_limit(Resource::Nofile);
    (limit.current.unwrap_or(u64::MAX), limit.maximum.unwrap_or(u64::MAX))
}

/// Says how many descriptors this process will have open, for [`why`]. The first number stands.
pub fn wants_descriptors(number: u64) {
    // A second one is of the same process.
    let _ = DESCRIPTORS.set(number);
}

static DESCRIPTORS: OnceLock<u64> = OnceLock::new();

/// Descriptors that one call of MPI needs at most.
const OF_A_CALL: u64 = 32;

/// What the system says; for want of descriptors, how many there may be, and how many suffice.
#[must_use]
pub fn why(error: &io::Error) -> String {
    if error.raw_os_error() != Some(libc::EMFILE) {
        return error.to_string();
    }
    let (limit, most) = open_files();
    let wanted = DESCRIPTORS.get().copied().unwrap_or(0).max(limit.saturating_add(OF_A_CALL));
    let hard = if most < wanted { ", and ulimit -Hn with it" } else { "" };
    format!("{error}; the limit is {limit} (ulimit -n), and {wanted} suffice: raise it{hard}")
}

/// A limit of this process; none where a filter refuses to say, at which rustix's own would panic.
#[must_use]
pub fn resource_limit(resource: Resource) -> Rlimit {
    let mut limit = libc::rlimit { rlim_cur: libc::RLIM_INFINITY, rlim_max: libc::RLIM_INFINITY };
    // Miri has no such call.
    if !cfg!(miri) {
        // SAFETY: `limit` is a live rlimit that the call fills; its failure leaves it as it is.
        unsafe { libc::getrlimit(resource as _, &raw mut limit) };
    }
    let finite = |value| (value != libc::RLIM_INFINITY).then_some(value);
    Rlimit { current: finite(limit.rlim_cur), maximum: finite(limit.rlim_max) }
}

/// The least limit on memory on the way up to the root, over the text of /proc/self/cgroup and a reader of files.
fn limit_of(own: &str, read: impl Fn(&str) -> Option<String>) -> Option<u64> {
    let limits = own.lines().filter_map(|line| {
        let mut fields = line.splitn(3, ':').skip(1);
        let (controllers, path) = (fields.next()?, fields.next()?);
        let (root, file) = match controllers {
            "" => ("/sys/fs/cgroup", "memory.max"),
            "memory" => ("/sys/fs/cgroup/memory", "memory.limit_in_bytes"),
            _ => return None,
        };
        // "max" is no number, and no limit.
        let all = ancestors(path).into_iter().filter_map(|at| read(&format!("{root}{at}/{file}")));
        all.filter_map(|text| text.trim().parse().ok()).min()
    });
    limits.min()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kills_are_counted_in_the_group_that_is_there() {
        let second = |path: &str| {
            (path == "/sys/fs/cgroup/job/memory.events")
                .then(|| "low 0\noom 9\noom_kill 2\noom_group_kill 0\n".into())
        };
        assert_eq!(kills_of("0::/job\n", second), Some(2));
        assert_eq!(kills_of("1:cpu:/job\n0::/job/inner\n", second), Some(2));
        let first = |path: &str| {
            (path == "/sys/fs/cgroup/memory/a/memory.oom_control").then(|| "under_oom 0\noom_kill 3\n".into())
        };
        assert_eq!(kills_of("4:memory:/a\n1:cpu:/\n0::/\n", first), Some(3));
        assert_eq!(kills_of("4:memory:/b\n0::/\n", first), None);
    }

    #[test]
    fn a_refusal_for_want_of_descriptors_names_the_limit_and_the_number_wanted() {
        let (limit, _) = open_files();
        let said = why(&io::Error::from_raw_os_error(libc::EMFILE));
        let advice =
            format!("the limit is {limit} (ulimit -n), and {} suffice", limit.saturating_add(OF_A_CALL));
        assert!(said.contains(&advice), "{said}");
        let other = io::Error::from_raw_os_error(libc::ENOENT);
        assert_eq!(why(&other), other.to_string());
    }

    #[test]
    fn there_is_some() {
        assert!(memory() > 1 << 20);
    }

    #[test]
    fn the_least_limit_on_the_way_up_counts() {
        let read = |path: &str| match path {
            "/sys/fs/cgroup/a/b/memory.max" => Some("max\n".to_owned()),
            "/sys/fs/cgroup/a/memory.max" => Some("1000000\n".to_owned()),
            "/sys/fs/cgroup/memory/x/memory.limit_in_bytes" => Some("2000000\n".to_owned()),
            _ => None,
        };
        assert_eq!(limit_of("0::/a/b\n", read), Some(1_000_000));
        assert_eq!(limit_of("3:cpu:/a\n7:memory:/x\n", read), Some(2_000_000));
        assert_eq!(limit_of("0::/\n", read), None);
    }
}
