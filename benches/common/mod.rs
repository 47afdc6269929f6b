//! What benches of two threads or processes share: the CPUs that these are bound to.

use std::sync::OnceLock;

/// The CPUs that the bench was given, before a thread of it was bound.
pub fn cpus() -> &'static [usize] {
    static GIVEN: OnceLock<Vec<usize>> = OnceLock::new();
    GIVEN.get_or_init(perusal::internals::shm::cpus::affinity)
}

/// Whether two threads that wait for each other can both run.
pub fn two_cpus() -> bool {
    cpus().len() > 1
}

/// Puts the calling thread on the `nth` of the CPUs that the bench was given.
pub fn bind(nth: usize) {
    let cpus = cpus();
    // SAFETY: a zeroed set is an empty one; the call reads it.
    unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        libc::CPU_SET(cpus[nth % cpus.len()], &mut set);
        libc::sched_setaffinity(0, size_of_val(&set), &raw const set);
    }
}
