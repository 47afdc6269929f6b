//! What a large message costs by copy engine and size: `cargo bench --bench copies`.
//!
//! For each engine two processes, each on a CPU of its own, send a message to and fro; printed is the one-way time, what it
//! is in GB/s, and the ratio to memcpy of as many bytes on one core, measured in between. `direct` copies between ranks that
//! are threads of one process.

mod common;

use common::{Time, asked_for, bind};
use perusal::abi::{MPI_BYTE, MPI_COMM_WORLD};
use perusal::capi::mpi::{init, p2p};
use perusal::job::{FD_VARIABLE, Memory, RANK_VARIABLE, SIZE_VARIABLE};
use std::hint::black_box;
use std::ptr::null_mut;
use std::time::Instant;

const SIZES: [usize; 9] =
    [8 << 10, 16 << 10, 32 << 10, 64 << 10, 128 << 10, 256 << 10, 1 << 20, 4 << 20, 16 << 20];
const ENGINES: [&str; 3] = ["chunks", "read", "halves"];
const SAMPLES: usize = 15;
/// Bytes that a sample sends, about.
const SAMPLE_BYTES: usize = 16 << 20;

/// One-way times of `trip`, which sends and receives one message of so many bytes.
fn trips(size: usize, mut trip: impl FnMut()) -> Time {
    let n = (SAMPLE_BYTES / size).clamp(2, 500);
    (0..n).for_each(|_| trip());
    Time::of(
        (0..SAMPLES)
            .map(|_| {
                let start = Instant::now();
                (0..n).for_each(|_| trip());
                start.elapsed().as_nanos() as f64 / n as f64 / 2.0
            })
            .collect(),
    )
}

fn show(engine: &str, size: usize, time: Time) {
    let (from, mut to) = (vec![1_u8; size], vec![0_u8; size]);
    let copy = common::time(|n| (0..n).for_each(|_| black_box(&mut to).copy_from_slice(black_box(&from))));
    println!(
        "{engine:<8}{size:>10}{:>30}{:>10.1}{:>16.2}",
        time.map(|ns| ns / 1e3),
        size as f64 / time.0,
        time.0 / copy.0
    );
}

/// A rank of a job of two processes.
fn process(memory: &Memory, rank: usize, engine: &str) {
    bind(rank);
    // SAFETY: one thread.
    unsafe {
        std::env::set_var(FD_VARIABLE, memory.segment().fd().to_string());
        std::env::set_var(RANK_VARIABLE, rank.to_string());
        std::env::set_var(SIZE_VARIABLE, "2");
        std::env::set_var("PERUSAL_COPY_ENGINE", engine);
        assert_eq!(init::MPI_Init(null_mut(), null_mut()), 0);
    }
    for size in SIZES {
        let mut buffer = vec![1_u8; size];
        let (at, count, peer) = (buffer.as_mut_ptr().cast(), size as i32, 1 - rank as i32);
        let time = trips(size, || {
            // SAFETY: a live buffer of `size` bytes.
            unsafe {
                if rank == 0 {
                    p2p::MPI_Send(at, count, MPI_BYTE, peer, 7, MPI_COMM_WORLD);
                }
                p2p::MPI_Recv(at, count, MPI_BYTE, peer, 7, MPI_COMM_WORLD, null_mut());
                if rank == 1 {
                    p2p::MPI_Send(at, count, MPI_BYTE, peer, 7, MPI_COMM_WORLD);
                }
            }
        });
        if rank == 0 {
            show(engine, size, time);
        }
    }
    // SAFETY: initialised above.
    unsafe { assert_eq!(init::MPI_Finalize(), 0) };
}

/// Two processes for an engine, which this one waits for: a process joins one job in its life.
fn processes(engine: &str) {
    let memory = Memory::create(2, 0).expect("a job for two");
    let children = [0, 1].map(|rank| {
        // SAFETY: one thread, and MPI has not been initialised: the child may do what it likes.
        let child = unsafe { libc::fork() };
        assert!(child >= 0, "fork: {}", std::io::Error::last_os_error());
        if child == 0 {
            process(&memory, rank, engine);
            std::process::exit(0);
        }
        child
    });
    for child in children {
        let mut status = 0;
        // SAFETY: waits for our own child.
        unsafe { libc::waitpid(child, &raw mut status, 0) };
        assert_eq!(status, 0, "{engine}: a rank failed");
    }
}

fn threads() -> perusal::Result<()> {
    perusal::run_threads(2, |world| {
        bind(world.rank());
        for size in SIZES {
            let (data, mut room) = (vec![1_u8; size], vec![0_u8; size]);
            let mut failed = Ok(());
            let time = trips(size, || {
                let peer = 1 - world.rank();
                let turn = if world.rank() == 0 {
                    world.send(&data, peer, 7).and_then(|()| world.recv_into(&mut room, peer, 7))
                } else {
                    world
                        .recv_into(&mut room, peer, 7)
                        .and_then(|got| world.send(&data, peer, 7).map(|()| got))
                };
                if let Err(error) = turn {
                    failed = Err(error);
                }
            });
            failed?;
            if world.rank() == 0 {
                show("direct", size, time);
            }
        }
        Ok(())
    })
    .map(|_| ())
}

fn main() -> perusal::Result<()> {
    if !asked_for() {
        println!("run me with `cargo bench --bench copies`");
        return Ok(());
    }
    if perusal::job::cpus::affinity().len() < 2 {
        println!("copies: needs two CPUs");
        return Ok(());
    }
    println!(
        "{:<8}{:>10}{:>30}{:>10}{:>16}",
        "engine", "bytes", "µs one way (10 %, 90 %)", "GB/s", "times memcpy"
    );
    ENGINES.into_iter().for_each(processes);
    threads()
}
