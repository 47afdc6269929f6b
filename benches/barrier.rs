//! Barrier and allreduce of 8 bytes beside the physical limit: a bare count and word among the same processes.
//!
//!     cargo bench --bench barrier [-- RANKS …]        (2, 4, 8, 16 and 32 if none are named)
//!
//! Ranks are processes, bound in blocks to the CPUs. In turn: a bare barrier (all add to one word and look at another,
//! giving the CPU away between two looks where they outnumber the CPUs), MPI_Barrier, MPI_Allreduce. Printed are the
//! least of the repetitions, in microseconds, and the ratio to the bare barrier.
//!
//! It has its own loop: ranks must do the same number of rounds,
//! and a library that times one of them would not tell the others.

use perusal::internals::abi::{MPI_COMM_WORLD, MPI_DOUBLE, MPI_SUM};
use perusal::internals::shm::{FD_VARIABLE, Memory, RANK_VARIABLE, SIZE_VARIABLE};
use perusal_abi::bindings;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

const REPETITIONS: usize = 15;

unsafe extern "C" {
    fn PMPI_Barrier(comm: usize) -> i32;
    fn PMPI_Allreduce(
        send: *const f64,
        recv: *mut f64,
        count: i32,
        datatype: usize,
        op: usize,
        comm: usize,
    ) -> i32;
}

/// What the bare barrier needs, each on lines of its own.
#[repr(C, align(128))]
struct Line(AtomicU64);

fn main() {
    if !std::env::args().any(|arg| arg == "--bench") {
        return println!("run me with `cargo bench --bench barrier`");
    }
    let mut jobs: Vec<u32> = std::env::args().filter_map(|arg| arg.parse().ok()).collect();
    if jobs.is_empty() {
        jobs = vec![2, 4, 8, 16, 32];
    }
    for ranks in jobs.into_iter().filter(|&ranks| ranks > 0) {
        // Each job in processes of its own: MPI is initialised once.
        // SAFETY: one thread, and nothing that a child could miss.
        match unsafe { libc::fork() } {
            0 => return job(ranks),
            // SAFETY: waits for the child just made; a null status is allowed.
            child => _ = unsafe { libc::waitpid(child, null_mut(), 0) },
        }
    }
}

fn job(ranks: u32) {
    let memory = Memory::create(ranks, 0).expect("memory for a job");
    let lines = lines();
    let mut rank = 0;
    for other in 1..ranks {
        // SAFETY: one thread, no MPI yet.
        if unsafe { libc::fork() } == 0 {
            rank = other;
            break;
        }
    }
    let cpus = perusal::internals::shm::cpus::affinity();
    let oversubscribed = ranks as usize > cpus.len();
    bind(cpus[rank as usize * cpus.len() / ranks.max(cpus.len() as u32) as usize]);
    // SAFETY: one thread.
    unsafe {
        std::env::set_var(FD_VARIABLE, memory.segment().fd().to_string());
        std::env::set_var(RANK_VARIABLE, rank.to_string());
        std::env::set_var(SIZE_VARIABLE, ranks.to_string());
        assert_eq!(bindings::MPI_Init(null_mut(), null_mut()), 0);
    }
    let rounds = if oversubscribed { 500 } else { 20_000 };
    let (mut round, mut least) = (0, [f64::INFINITY; 3]);
    let (one, mut sum) = (1.0, 0.0);
    for _ in 0..REPETITIONS {
        let took = [
            timed(rounds, || {
                round += 1;
                bare(lines, u64::from(ranks), round, oversubscribed);
            }),
            // SAFETY: initialised, and the buffers are ours.
            timed(rounds, || assert_eq!(unsafe { PMPI_Barrier(MPI_COMM_WORLD) }, 0)),
            timed(rounds, || {
                // SAFETY: as above.
                let code = unsafe { PMPI_Allreduce(&one, &mut sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD) };
                assert_eq!((code, sum), (0, f64::from(ranks)));
            }),
        ];
        least.iter_mut().zip(took).for_each(|(least, took)| *least = least.min(took));
    }
    // SAFETY: initialised.
    unsafe { assert_eq!(bindings::MPI_Finalize(), 0) };
    if rank == 0 {
        let [bare, barrier, allreduce] = least;
        println!(
            "{ranks:4} ranks: bare {bare:8.3} us, MPI_Barrier {barrier:8.3} ({:.2}), MPI_Allreduce 8 B {allreduce:8.3} ({:.2})",
            barrier / bare,
            allreduce / bare
        );
        // SAFETY: waits for the other ranks, this process's children; null is allowed.
        while unsafe { libc::wait(null_mut()) } > 0 {}
    }
    std::process::exit(0);
}

fn bare(lines: &[Line; 2], ranks: u64, round: u64, oversubscribed: bool) {
    if lines[0].0.fetch_add(1, Ordering::AcqRel) + 1 == round * ranks {
        return lines[1].0.store(round, Ordering::Release);
    }
    while lines[1].0.load(Ordering::Acquire) < round {
        if oversubscribed {
            std::thread::yield_now();
        } else {
            std::hint::spin_loop();
        }
    }
}

/// Microseconds that one run of `work` takes.
fn timed(rounds: u32, mut work: impl FnMut()) -> f64 {
    let began = Instant::now();
    (0..rounds).for_each(|_| work());
    began.elapsed().as_secs_f64() * 1e6 / f64::from(rounds)
}

/// Lines that children share.
fn lines() -> &'static [Line; 2] {
    let flags = libc::MAP_SHARED | libc::MAP_ANONYMOUS;
    // SAFETY: a fresh anonymous mapping.
    let page = unsafe { libc::mmap(null_mut(), 4096, libc::PROT_READ | libc::PROT_WRITE, flags, -1, 0) };
    assert!(page != libc::MAP_FAILED, "mmap: {}", std::io::Error::last_os_error());
    // SAFETY: zeroed, page-aligned, never unmapped, made of atomics.
    unsafe { &*page.cast() }
}

fn bind(cpu: usize) {
    // SAFETY: the set is a plain value; the call reads it.
    unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        libc::CPU_SET(cpu, &mut set);
        libc::sched_setaffinity(0, size_of_val(&set), &set);
    }
}
