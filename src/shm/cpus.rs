//! The CPUs that a process may use: its affinity mask, and what the cgroup's quota leaves of it.
//!
//! The masks go through `libc`, because they have as many bits as the machine has CPUs;
//! `rustix` knows masks of 1,024 bits only.

use std::fs;

/// Ids of the CPUs in the calling thread's affinity mask, in ascending order; at least one.
#[must_use]
pub fn affinity() -> Vec<usize> {
    affinity_of(0).unwrap_or_else(|| vec![0])
}

/// Ids of the CPUs in the affinity mask of process `pid`, in ascending order; `None` if the kernel does not tell.
#[must_use]
pub fn affinity_of(pid: u32) -> Option<Vec<usize>> {
    // The kernel refuses a mask shorter than its own, so ask with a longer one until it fits.
    for words in [16_usize, 128, 1024] {
        let mut mask = vec![0_u64; words];
        // SAFETY: `mask` is `words * 8` writable bytes, and the kernel writes at most the length that it is passed.
        let got = unsafe { libc::sched_getaffinity(pid.cast_signed(), words * 8, mask.as_mut_ptr().cast()) };
        if got == 0 {
            let set: Vec<usize> =
                (0..words * 64).filter(|cpu| mask[cpu / 64] >> (cpu % 64) & 1 == 1).collect();
            if !set.is_empty() {
                return Some(set);
            }
        }
    }
    None
}

/// The CPU that the calling thread runs on, at this moment; `None` if nobody says.
#[must_use]
pub fn current() -> Option<u32> {
    // Miri has no such call.
    if cfg!(miri) {
        return None;
    }
    u32::try_from(rustix::thread::sched_getcpu()).ok()
}

/// Binds the calling thread to `cpus`.
///
/// # Errors
/// The kernel's, for CPUs of which none exists or is allowed.
pub fn set_affinity(cpus: &[usize]) -> std::io::Result<()> {
    let words = cpus.iter().max().map_or(0, |last| last / 64 + 1);
    let mut mask = vec![0_u64; words];
    cpus.iter().for_each(|cpu| mask[cpu / 64] |= 1 << (cpu % 64));
    // SAFETY: `mask` is `words * 8` readable bytes.
    let set = unsafe { libc::sched_setaffinity(0, words * 8, mask.as_ptr().cast()) };
    if set == 0 { Ok(()) } else { Err(std::io::Error::last_os_error()) }
}

/// Moves the calling thread to `cpu`, which is one of `allowed`, and allows it all of them again at once: it stays
/// there until the kernel has a reason to move it. Returns whether that was possible.
pub fn visit(cpu: usize, allowed: &[usize]) -> bool {
    debug_assert!(allowed.is_empty() || allowed.contains(&cpu));
    !allowed.is_empty() && set_affinity(&[cpu]).is_ok() && set_affinity(allowed).is_ok()
}

/// CPUs of the machine that are online; at least one.
#[must_use]
pub fn online() -> usize {
    // SAFETY: `sysconf` takes a number and touches no memory of this process.
    usize::try_from(unsafe { libc::sysconf(libc::_SC_NPROCESSORS_ONLN) }).unwrap_or(1).max(1)
}

/// CPUs' worth of time that the cgroup grants, rounded up; `None` without a quota.
#[must_use]
pub fn quota() -> Option<u32> {
    let own = fs::read_to_string("/proc/self/cgroup").ok()?;
    quota_of(&own, |path| fs::read_to_string(path).ok())
}

/// [`quota`] over the text of /proc/self/cgroup and a reader of files: the least quota on the way up to the root.
fn quota_of(own: &str, read: impl Fn(&str) -> Option<String>) -> Option<u32> {
    let mut least: Option<f64> = None;
    for line in own.lines() {
        let mut fields = line.splitn(3, ':');
        let (Some(_), Some(controllers), Some(path)) = (fields.next(), fields.next(), fields.next()) else {
            continue;
        };
        let v1 = controllers.split(',').any(|controller| controller == "cpu");
        if !v1 && !controllers.is_empty() {
            continue;
        }
        let roots: &[&str] = if v1 {
            &["/sys/fs/cgroup/cpu", "/sys/fs/cgroup/cpu,cpuacct"]
        } else {
            &["/sys/fs/cgroup", "/sys/fs/cgroup/unified"]
        };
        for root in roots {
            for ancestor in ancestors(path) {
                let at = format!("{root}{ancestor}");
                let here = if v1 { quota_v1(&at, &read) } else { quota_v2(&at, &read) };
                least = match (least, here) {
                    (Some(a), Some(b)) => Some(a.min(b)),
                    (a, b) => a.or(b),
                };
            }
        }
    }
    // At least one CPU, and a part of one counts as one: it can run a rank.
    least.map(|cpus| cpus.ceil().clamp(1.0, f64::from(u32::MAX)) as u32)
}

/// The path and all above it, the root as the empty path. In a container the path may not be visible; the root is.
pub(super) fn ancestors(path: &str) -> Vec<&str> {
    let mut all = vec![];
    let mut rest = path.trim_end_matches('/');
    while !rest.is_empty() {
        all.push(rest);
        rest = rest.rfind('/').map_or("", |slash| &rest[..slash]);
    }
    all.push("");
    all
}

/// `cpu.max`: "quota period" in microseconds, or "max period".
fn quota_v2(dir: &str, read: &impl Fn(&str) -> Option<String>) -> Option<f64> {
    let text = read(&format!("{dir}/cpu.max"))?;
    let mut words = text.split_whitespace();
    ratio(words.next()?, words.next().unwrap_or("100000"))
}

/// `cpu.cfs_quota_us` (-1 for none) and `cpu.cfs_period_us`.
fn quota_v1(dir: &str, read: &impl Fn(&str) -> Option<String>) -> Option<f64> {
    ratio(&read(&format!("{dir}/cpu.cfs_quota_us"))?, &read(&format!("{dir}/cpu.cfs_period_us"))?)
}

fn ratio(quota: &str, period: &str) -> Option<f64> {
    let quota: f64 = quota.trim().parse().ok()?;
    let period: f64 = period.trim().parse().ok()?;
    (quota > 0.0 && period > 0.0).then(|| quota / period)
}

/// CPUs that the calling process may use: those of its affinity mask,
/// fewer if the cgroup's quota is less. At least one.
#[must_use]
pub fn usable() -> u32 {
    let mask = u32::try_from(affinity().len()).unwrap_or(u32::MAX);
    quota().map_or(mask, |quota| quota.min(mask)).max(1)
}

/// The numbers of a kernel list such as "0-3,8,10-11"; what is no number is left out.
#[must_use]
pub fn parse_list(list: &str) -> Vec<u32> {
    let range = |part: &str| -> Option<core::ops::RangeInclusive<u32>> {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        Some(first.trim().parse().ok()?..=last.trim().parse().ok()?)
    };
    list.split(',').filter_map(range).flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernel_lists_are_read() {
        assert_eq!(parse_list("0-3,8,10-11\n"), [0, 1, 2, 3, 8, 10, 11]);
        assert!(parse_list("\n").is_empty());
    }

    fn quota_with(own: &str, files: &[(&str, &str)]) -> Option<u32> {
        quota_of(own, |path| files.iter().find(|(name, _)| *name == path).map(|(_, text)| (*text).to_owned()))
    }

    #[test]
    fn no_quota_is_no_limit() {
        assert_eq!(quota_with("0::/\n", &[("/sys/fs/cgroup/cpu.max", "max 100000\n")]), None);
        assert_eq!(quota_with("", &[]), None);
        let v1 = [
            ("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1\n"),
            ("/sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n"),
        ];
        assert_eq!(quota_with("1:cpu:/\n", &v1), None);
    }

    #[test]
    fn a_quota_of_a_cpu_and_a_half_counts_two() {
        assert_eq!(quota_with("0::/a/b\n", &[("/sys/fs/cgroup/a/b/cpu.max", "150000 100000\n")]), Some(2));
    }

    #[test]
    fn the_least_quota_on_the_way_up_counts() {
        let files = [
            ("/sys/fs/cgroup/a/b/cpu.max", "800000 100000\n"),
            ("/sys/fs/cgroup/a/cpu.max", "300000 100000\n"),
        ];
        assert_eq!(quota_with("0::/a/b\n", &files), Some(3));
    }

    #[test]
    fn version_one_of_cgroups_is_read_too() {
        let files = [
            ("/sys/fs/cgroup/cpu/x/cpu.cfs_quota_us", "50000\n"),
            ("/sys/fs/cgroup/cpu/x/cpu.cfs_period_us", "100000\n"),
        ];
        assert_eq!(quota_with("3:cpuset:/\n2:cpu,cpuacct:/x\n", &files), Some(1));
    }

    #[test]
    fn a_visit_ends_on_its_cpu_with_all_of_them_allowed_again() {
        // A thread of its own: its mask goes with it.
        let visited = std::thread::spawn(|| {
            let allowed = affinity();
            let seen = |&cpu: &usize| visit(cpu, &allowed) && affinity() == allowed && current().is_some();
            allowed.iter().all(seen)
        });
        assert!(visited.join().expect("the visitor"));
        assert!(!visit(0, &[]));
    }

    #[test]
    fn this_machine_has_a_cpu() {
        assert!(usable() >= 1);
        assert!(usable() as usize <= affinity().len());
    }
}
