//! How threads of a rank get into each other's way (MPI_THREAD_MULTIPLE): `cargo bench --bench contention`.
//!
//! The message rate of N threads, 8 bytes, each thread for itself:
//!
//! - own engines: each is a rank of a job of its own, so that threads share nothing but the machine:
//!   what can be reached;
//! - own communicators: each sends to its own rank and receives, on a communicator that no other thread uses;
//! - own tags: the same on one communicator for all;
//! - own sources: each receives from a rank of its own (a thread too) on one communicator, in windows of 64.
//!
//! Threads that do not meet are as fast as those that share nothing: the last column is the rate over that of own
//! engines, taken in turn with it. Where the CPUs are two threads of one core, nothing multiplies a rate by two. Own
//! sources have a second thread for each: where there are fewer CPUs than that, they wait for the scheduler.
//!
//! It has its own loop: what counts is the rate of all threads together over the same time,
//! not what a step of one of them takes.

use perusal::{Communicator, Multiple, Result, run_threads_with};
use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};

const THREADS: [usize; 4] = [1, 2, 4, 8];
const WINDOW: usize = 64;
const LONG: Duration = Duration::from_millis(150);
const REPETITIONS: usize = 5;

/// Messages that a thread passes to itself until time is up.
fn to_self(comm: &Communicator<Multiple>, tag: i32, until: Instant) -> Result<u64> {
    let (mut room, mut count) = ([0_u64], 0);
    while Instant::now() < until {
        for _ in 0..WINDOW {
            comm.send(&[count], 0, tag)?;
            comm.recv_into(&mut room, 0, tag)?;
        }
        count += WINDOW as u64;
    }
    Ok(count)
}

/// Runs `work` on each thread's communicator and number. Gives millions a second of all.
fn rate(
    comms: &[&Communicator<Multiple>],
    work: impl Fn(&Communicator<Multiple>, i32, Instant) -> Result<u64> + Sync,
) -> Result<f64> {
    let start = Instant::now();
    let until = start + LONG;
    let counts = thread::scope(|scope| {
        let work = &work;
        let started: Vec<_> = comms
            .iter()
            .enumerate()
            .map(|(number, comm)| scope.spawn(move || work(comm, number as i32, until)))
            .collect();
        started.into_iter().map(|one| one.join().expect("no panic in here")).collect::<Result<Vec<_>>>()
    })?;
    Ok(counts.iter().sum::<u64>() as f64 / start.elapsed().as_secs_f64() / 1e6)
}

fn engines(threads: usize) -> Result<f64> {
    let ready = Barrier::new(threads);
    thread::scope(|scope| {
        let one = || {
            let rates = run_threads_with::<Multiple, _>(1, |world| {
                ready.wait();
                rate(&[world], to_self)
            })?;
            Ok(rates[0])
        };
        let started: Vec<_> = (0..threads).map(|_| scope.spawn(one)).collect();
        started.into_iter().map(|one| one.join().expect("no panic in here")).sum()
    })
}

fn alone(threads: usize, own_communicators: bool) -> Result<f64> {
    let rates = run_threads_with::<Multiple, _>(1, |world| {
        let dups: Vec<_> = (0..threads).map(|_| world.dup()).collect::<Result<_>>()?;
        let comms: Vec<_> = dups.iter().map(|dup| if own_communicators { dup } else { &dups[0] }).collect();
        rate(&comms, to_self)
    })?;
    Ok(rates[0])
}

/// Windows from the rank after `number`, each answered; the answer says whether to go on.
fn from_source(world: &Communicator<Multiple>, number: i32, until: Instant) -> Result<u64> {
    let (source, mut room, mut count) = (number as usize + 1, [0_u64], 0);
    loop {
        for _ in 0..WINDOW {
            world.recv_into(&mut room, source, number)?;
        }
        count += WINDOW as u64;
        let more = Instant::now() < until;
        world.send(&[u8::from(more)], source, number)?;
        if !more {
            return Ok(count);
        }
    }
}

fn sources(threads: usize) -> Result<f64> {
    let rates = run_threads_with::<Multiple, _>(threads + 1, |world| {
        if world.rank() == 0 {
            let comms: Vec<&Communicator<Multiple>> = vec![world; threads];
            return rate(&comms, from_source);
        }
        let (tag, mut more) = (world.rank() as i32 - 1, [1_u8]);
        while more[0] == 1 {
            for _ in 0..WINDOW {
                world.send(&[1_u64], 0, tag)?;
            }
            world.recv_into(&mut more, 0, tag)?;
        }
        Ok(0.0)
    })?;
    Ok(rates[0])
}

fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn main() -> Result<()> {
    // `cargo test` starts it too, to see that it starts.
    if !std::env::args().any(|arg| arg == "--bench") {
        println!("run me with `cargo bench --bench contention`");
        return Ok(());
    }
    println!(
        "{} CPUs; M messages a second of all threads, medians of {REPETITIONS}",
        perusal::internals::shm::cpus::usable()
    );
    println!("{:<20}{:>9}{:>10}{:>16}{:>20}", "", "threads", "M/s", "times one's", "of own engines'");
    type Case = (&'static str, fn(usize) -> Result<f64>);
    let cases: [Case; 4] = [
        ("own engines", engines),
        ("own communicators", |threads| alone(threads, true)),
        ("own tags", |threads| alone(threads, false)),
        ("own sources", sources),
    ];
    let mut first = [0.0; 4];
    for threads in THREADS {
        // In turn, because two CPUs of a virtual machine are not always the same two.
        let rounds = (0..REPETITIONS)
            .map(|_| cases.iter().map(|(_, run)| run(threads)).collect::<Result<Vec<f64>>>())
            .collect::<Result<Vec<_>>>()?;
        for (number, (name, _)) in cases.iter().enumerate() {
            let rate = median(rounds.iter().map(|rates| rates[number]));
            let share = median(rounds.iter().map(|rates| rates[number] / rates[0]));
            if threads == 1 {
                first[number] = rate;
            }
            println!("{name:<20}{threads:>9}{rate:>10.2}{:>16.2}{share:>20.2}", rate / first[number]);
        }
    }
    Ok(())
}
