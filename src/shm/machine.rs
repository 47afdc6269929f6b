//! How much memory the job may have: the machine's, or what the cgroup leaves of it.

use super::cpus::ancestors;
use std::fs;

/// Bytes of memory that the job may have.
#[must_use]
pub fn memory() -> u64 {
    // SAFETY: the calls take a number and touch no memory.
    let [pages, page] = [libc::_SC_PHYS_PAGES, libc::_SC_PAGESIZE].map(|name| unsafe { libc::sysconf(name) });
    let machine = pages.max(0).unsigned_abs().saturating_mul(page.max(0).unsigned_abs());
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
