//! Which machine this is, and how much of its memory the job may have.

use super::cpus::ancestors;
use std::fs;

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
