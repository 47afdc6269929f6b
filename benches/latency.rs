//! One-way latency of small messages beside the physical limit: a cache line bounced between the same two processes.
//!
//!     cargo bench --bench latency [-- REPETITIONS]
//!
//! Two processes, each bound to a CPU of its own, take turns: a bare line, then MPI_Send and MPI_Recv of 0, 8, 40, 64
//! and 1024 bytes, over and over. Printed is per size the median over repetitions, the spread (10th to 90th
//! percentile), and the ratio to the limits of the same repetition. There are two limits, each the fastest of three
//! loops (between two looks a pause, nothing, or `lfence`, so that one look is over before the next begins):
//!
//! - *a line each way*: each process writes a line of its own that the other one polls. This is what a message is: the
//!   sender must take the line away from the receiver that polls it, and the receiver fetch it back.
//! - *one shared word*: both write the same word, so that a turn ends with the line where the next one begins. Half of
//!   the work is saved, which no channel that goes one way can do; it is the least that two processors can do.
//!
//! It has its own loop: two processes take turns between lines and messages,
//! which a library that times one after the other does not.

use perusal::internals::abi::{MPI_BYTE, MPI_COMM_WORLD};
use perusal::internals::arch::serialize_loads;
use perusal::internals::shm::{FD_VARIABLE, Memory, RANK_VARIABLE, SIZE_VARIABLE};
use perusal_abi::bindings;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

const ROUNDS: u32 = 20_000;
const SIZES: [usize; 5] = [0, 8, 40, 64, 1024];
/// A CPU that does not answer for this long is taken to be busy with something else.
const SPINS: u64 = 2_000_000_000;

fn main() {
    let repetitions = std::env::args().filter_map(|arg| arg.parse().ok()).next().unwrap_or(15);
    if !std::env::args().any(|arg| arg == "--bench") {
        return println!("run me with `cargo bench --bench latency`");
    }
    let cpus = perusal::internals::shm::cpus::affinity();
    if cpus.len() < 2 {
        return println!("latency: needs two CPUs, this process may use {}", cpus.len());
    }
    let memory = Memory::create(2, 0).expect("a job for two");
    let lines = shared_lines();
    // SAFETY: nothing has been started yet that a child could miss: one thread, no MPI.
    let child = unsafe { libc::fork() };
    assert!(child >= 0, "fork: {}", std::io::Error::last_os_error());
    let rank = usize::from(child == 0);
    bind(cpus[rank]);
    // SAFETY: one thread.
    unsafe {
        std::env::set_var(FD_VARIABLE, memory.segment().fd().to_string());
        std::env::set_var(RANK_VARIABLE, rank.to_string());
        std::env::set_var(SIZE_VARIABLE, "2");
        assert_eq!(bindings::MPI_Init(null_mut(), null_mut()), 0);
    }
    let (mut each_way, mut shared) = (Vec::new(), Vec::new());
    let mut messages = vec![Vec::new(); SIZES.len()];
    for _ in 0..repetitions {
        each_way.push(limit(lines, rank, true));
        shared.push(limit(lines, rank, false));
        for (at, size) in SIZES.into_iter().enumerate() {
            messages[at].push(timed(|| exchange(rank, size)));
        }
    }
    // SAFETY: initialised above.
    unsafe { assert_eq!(bindings::MPI_Finalize(), 0) };
    if rank == 1 {
        std::process::exit(0);
    }
    let mut status = 0;
    // SAFETY: waits for our own child.
    unsafe { libc::waitpid(child, &raw mut status, 0) };
    report(&each_way, &shared, &messages);
}

/// One-way time in nanoseconds of a function that does `ROUNDS` round trips.
fn timed(run: impl FnOnce()) -> f64 {
    let start = Instant::now();
    run();
    start.elapsed().as_nanos() as f64 / f64::from(ROUNDS) / 2.0
}

/// One-way time of the fastest of the loops that bounce a line.
fn limit(lines: &[Line; 2], rank: usize, each_way: bool) -> f64 {
    let times = [
        timed(|| bounce(lines, rank, each_way, || ())),
        timed(|| bounce(lines, rank, each_way, std::hint::spin_loop)),
        timed(|| bounce(lines, rank, each_way, serialize_loads)),
    ];
    times.into_iter().fold(f64::INFINITY, f64::min)
}

/// Bounces a line `ROUNDS` times: a word that both write, or one for each direction.
fn bounce(lines: &[Line; 2], rank: usize, each_way: bool, between: impl Fn()) {
    let (mine, theirs) =
        if each_way { (&lines[rank].0, &lines[1 - rank].0) } else { (&lines[0].0, &lines[0].0) };
    let wait = |until: u64| {
        let mut spins = 0;
        while theirs.load(Ordering::Acquire) != until {
            spins += 1;
            assert!(spins < SPINS, "the other process does not answer");
            between();
        }
    };
    // Rank 0 says odd numbers, rank 1 even ones, from where the last measurement ended.
    let base = lines[0].0.load(Ordering::Acquire).max(lines[1].0.load(Ordering::Acquire)).next_multiple_of(2);
    meet(rank);
    for turn in 0..u64::from(ROUNDS) {
        let ping = base + 2 * turn + 1;
        if rank == 0 {
            mine.store(ping, Ordering::Release);
            wait(ping + 1);
        } else {
            wait(ping);
            mine.store(ping + 1, Ordering::Release);
        }
    }
    meet(rank);
}

/// Both have come here: what they do next begins together.
fn meet(rank: usize) {
    exchange_times(rank, 0, 1);
}

fn exchange(rank: usize, size: usize) {
    exchange_times(rank, size, ROUNDS);
}

fn exchange_times(rank: usize, size: usize, rounds: u32) {
    let mut buffer = [0_u8; 1024];
    let at = buffer.as_mut_ptr().cast();
    for _ in 0..rounds {
        // SAFETY: a live buffer of at least `size` bytes.
        unsafe {
            if rank == 0 {
                bindings::MPI_Send(at, size as i32, MPI_BYTE, 1, 7, MPI_COMM_WORLD);
                bindings::MPI_Recv(at, size as i32, MPI_BYTE, 1, 7, MPI_COMM_WORLD, null_mut());
            } else {
                bindings::MPI_Recv(at, size as i32, MPI_BYTE, 0, 7, MPI_COMM_WORLD, null_mut());
                bindings::MPI_Send(at, size as i32, MPI_BYTE, 0, 7, MPI_COMM_WORLD);
            }
        }
    }
}

fn report(each_way: &[f64], shared: &[f64], messages: &[Vec<f64>]) {
    println!(
        "one-way, ns               median   10th to 90th   times a line each way   times one shared word"
    );
    for (size, times) in SIZES.into_iter().zip(messages) {
        let ratios =
            [each_way, shared].map(|limit| sorted(times.iter().zip(limit).map(|(time, limit)| time / limit)));
        line(
            &format!("{size} bytes"),
            times,
            &format!("{:18.2} {:22.2}", middle(&ratios[0]), middle(&ratios[1])),
        );
    }
    line("a line each way", each_way, "");
    line("one shared word", shared, "");
}

fn line(what: &str, times: &[f64], more: &str) {
    let times = sorted(times.iter().copied());
    let at = |share: f64| times[((times.len() - 1) as f64 * share) as usize];
    println!("{what:>22} {:9.1} {:8.1} to {:<6.1} {more}", middle(&times), at(0.1), at(0.9));
}

fn sorted(values: impl Iterator<Item = f64>) -> Vec<f64> {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values
}

fn middle(sorted: &[f64]) -> f64 {
    sorted[sorted.len() / 2]
}

/// A word that no other shares a line (or its neighbour) with.
#[repr(align(128))]
struct Line(AtomicU64);

fn shared_lines() -> &'static [Line; 2] {
    // SAFETY: an anonymous mapping of one page, kept to the end of the process.
    let page = unsafe {
        libc::mmap(
            null_mut(),
            4096,
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_SHARED | libc::MAP_ANONYMOUS,
            -1,
            0,
        )
    };
    assert!(page != libc::MAP_FAILED, "mmap: {}", std::io::Error::last_os_error());
    // SAFETY: page-aligned zeroed memory that nobody unmaps.
    unsafe { &*page.cast() }
}

fn bind(cpu: usize) {
    // SAFETY: a zeroed set is an empty one; the call reads it.
    unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        libc::CPU_SET(cpu, &mut set);
        libc::sched_setaffinity(0, size_of_val(&set), &raw const set);
    }
}
