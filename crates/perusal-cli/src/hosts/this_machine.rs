//! What is this machine, and what is not.

/// Whether a host is this machine: "localhost:4" and the machine's own name are.
pub fn is_host(host: &str) -> bool {
    let name = if host.starts_with('[') { host } else { host.split(':').next().unwrap_or(host) };
    let own = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let short = |name: &str| name.trim().split('.').next().unwrap_or_default().to_ascii_lowercase();
    ["localhost", "127.0.0.1", "::1", "[::1]", ""].contains(&name) || short(name) == short(&own)
}

/// Refuses an architecture that is not this machine's.
pub fn check_arch(arch: &str) -> Result<(), String> {
    let own = std::env::consts::ARCH;
    if arch == own {
        return Ok(());
    }
    Err(format!("--arch {arch}: perusal runs jobs on this machine only ({own})"))
}
