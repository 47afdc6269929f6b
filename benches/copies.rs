//! What a large message costs by copy engine and size: `cargo bench --bench copies [-- NAME]`.
//!
//! Two ranks, each on a CPU of its own, send a message to and fro; a step is both ways, and the rate is of both. A
//! process can join one job in its life, so for each engine two processes are started, of which rank 0 does the timing
//! and prints a table of its own; `direct` copies between ranks that are threads of one process. `memcpy` of as many
//! bytes on one core, both ways, stands beside each.

mod common;

use common::{bind, two_cpus};
use divan::counter::BytesCount;
use divan::{Bencher, Divan};
use perusal::Result;
use perusal::internals::abi::{MPI_BYTE, MPI_COMM_WORLD};
use perusal::internals::shm::{FD_VARIABLE, Memory, RANK_VARIABLE, SIZE_VARIABLE};
use perusal_abi::bindings;
use perusal_abi::types::MPI_Status;
use std::cell::RefCell;
use std::hint::black_box;
use std::ptr::null_mut;

const SIZES: [usize; 9] =
    [8 << 10, 16 << 10, 32 << 10, 64 << 10, 128 << 10, 256 << 10, 1 << 20, 4 << 20, 16 << 20];
const MOST: usize = SIZES[SIZES.len() - 1];
const ENGINES: [&str; 3] = ["chunks", "read", "halves"];

const TAG: i32 = 7;

/// Sends so many bytes to the other rank and has them back; it stops at a message of nothing.
type RoundTrip = Box<dyn FnMut(usize)>;

thread_local! {
    /// What the job that goes on gives to the benches.
    static TRIP: RefCell<Option<RoundTrip>> = const { RefCell::new(None) };
}

#[divan::bench(args = SIZES, max_time = 1)]
fn there_and_back(bencher: Bencher<'_, '_>, size: usize) {
    TRIP.with_borrow_mut(|trip| {
        let trip = trip.as_mut().expect("a job");
        bencher.counter(BytesCount::new(2 * size)).bench_local(|| trip(size));
    });
}

#[divan::bench(args = SIZES, max_time = 1)]
fn memcpy(bencher: Bencher<'_, '_>, size: usize) {
    let (mut here, mut there) = (vec![1_u8; size], vec![0_u8; size]);
    bencher.counter(BytesCount::new(2 * size)).bench_local(|| {
        black_box(&mut there).copy_from_slice(black_box(&here));
        black_box(&mut here).copy_from_slice(black_box(&there));
    });
}

/// Rank 0's part: the table, and the end of the other's.
fn measure(engine: &str, trip: RoundTrip) {
    println!("{engine}:");
    TRIP.set(Some(trip));
    Divan::from_args().main();
    if let Some(mut trip) = TRIP.take() {
        trip(0);
    }
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
        assert_eq!(bindings::MPI_Init(null_mut(), null_mut()), 0);
    }
    let mut buffer = vec![1_u8; MOST];
    if rank == 0 {
        measure(
            engine,
            Box::new(move |size| {
                send(&buffer[..size], 1);
                receive(&mut buffer, 1);
            }),
        );
    } else {
        loop {
            let size = receive(&mut buffer, 0);
            send(&buffer[..size], 0);
            if size == 0 {
                break;
            }
        }
    }
    // SAFETY: initialised above.
    unsafe { assert_eq!(bindings::MPI_Finalize(), 0) };
}

fn send(bytes: &[u8], to: i32) {
    // SAFETY: a live buffer, and MPI is initialised.
    unsafe {
        bindings::MPI_Send(bytes.as_ptr().cast(), bytes.len() as i32, MPI_BYTE, to, TAG, MPI_COMM_WORLD)
    };
}

/// Gives how many bytes came.
fn receive(room: &mut [u8], from: i32) -> usize {
    let (mut status, mut bytes) = (MPI_Status::default(), 0);
    let (at, most) = (room.as_mut_ptr().cast(), room.len() as i32);
    // SAFETY: a live buffer of that size, a status and a number of ours, and MPI is initialised.
    unsafe {
        bindings::MPI_Recv(at, most, MPI_BYTE, from, TAG, MPI_COMM_WORLD, &raw mut status);
        bindings::MPI_Get_count(&raw const status, MPI_BYTE, &raw mut bytes);
    }
    bytes as usize
}

/// Two processes for an engine, which this one waits for.
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

fn threads() -> Result<()> {
    perusal::run_threads(2, |world| {
        bind(world.rank());
        let (own, mut room) = (world.dup()?, vec![0_u8; MOST]);
        if world.rank() == 0 {
            let trip = move |size: usize| {
                let turn = own.send(&room[..size], 1, TAG).and_then(|()| own.recv_into(&mut room, 1, TAG));
                assert_eq!(turn.expect("the other echoes").bytes, size);
            };
            measure("direct", Box::new(trip));
            return Ok(());
        }
        loop {
            let size = own.recv_into(&mut room, 0, TAG)?.bytes;
            own.send(&room[..size], 0, TAG)?;
            if size == 0 {
                return Ok(());
            }
        }
    })
    .map(|_| ())
}

fn main() -> Result<()> {
    if !two_cpus() {
        println!("copies: needs two CPUs");
        return Ok(());
    }
    // The forks are made while there is one thread.
    ENGINES.into_iter().for_each(processes);
    threads()
}
