//! A rank for the launcher's tests: it takes its place in the job as the MPI library does, and then does what its
//! arguments say, one after the other.
//!
//! `close`: closes what it has inherited of the job. `init`, `finalizing`, `finalize`: moves on in the roster.
//! `exit N`, `abort N`, `segv`: ends so. `touch FILE`: says that it came so far. `wait`: notes a receive from rank 0
//! with tag 7 in its telemetry and waits until the job is over for it (status 70). `sleep`: for as long as anybody.
//! `deaf`: from now on SIGTERM and SIGINT are ignored. `echo-usr1`: prints a line for each SIGUSR1. `fork`: leaves a
//! sleeping child in a session of its own. `scribble PID JOB`: writes a process id wherever the job's memory has one,
//! negated for the ranks' own, and another job's id. `stray-abort`: writes a word that no rank writes where MPI_Abort
//! leaves its own. `alive`: ends with status 72 if the job seems to be over. `dawdle`: from now on the kernel takes
//! seconds to take it apart.

use std::os::unix::fs::FileExt;
use std::process::exit;
use std::time::Duration;

use perusal::internals::shm::telemetry::{Wait, Waiting};
use perusal::internals::shm::{Abort, Job, RankState};

fn main() {
    let mut args = std::env::args().skip(1);
    let mut job = None;
    while let Some(verb) = args.next() {
        let mut number = || args.next().and_then(|text| text.parse::<i32>().ok()).expect("a number");
        match verb.as_str() {
            "close" => close(),
            "init" => job = Some(init()),
            "finalizing" => of(&job).advance(RankState::Finalizing),
            "finalize" => of(&job).advance(RankState::Finalized),
            "exit" => exit(number()),
            "abort" => abort(of(&job), number()),
            "segv" => kill_self(libc::SIGSEGV),
            "touch" => touch(&args.next().expect("a file")),
            "wait" => wait(of(&job)),
            "sleep" => sleep(),
            "deaf" => [libc::SIGTERM, libc::SIGINT].into_iter().for_each(ignore),
            "fork" => fork(),
            "scribble" => scribble(of(&job), number(), &args.next().expect("a job's id")),
            "stray-abort" => write(of(&job), ABORT, &0x0000_0000_1234_5678_u64.to_le_bytes()),
            "alive" => alive(of(&job)),
            "dawdle" => dawdle(),
            other => panic!("unknown verb {other}"),
        }
    }
}

fn of(job: &Option<Job>) -> &Job {
    job.as_ref().expect("init comes first")
}

fn init() -> Job {
    match Job::from_environment() {
        Ok(Some(job)) => {
            job.advance(RankState::Initialised);
            job
        }
        Ok(None) => panic!("not launched"),
        Err(error) => {
            eprintln!("{error}");
            exit(71)
        }
    }
}

fn close() {
    for name in ["PERUSAL_JOB_FD", "PERUSAL_DOOR_FD"] {
        let number = std::env::var(name).ok().and_then(|text| text.parse().ok()).expect("launched");
        // SAFETY: the launcher has opened the descriptor for this process, in which nothing owns it yet.
        assert_eq!(unsafe { libc::close(number) }, 0, "{name}");
    }
}

fn abort(job: &Job, code: i32) -> ! {
    job.header().set_abort(Abort::by_program(job.rank(), code));
    exit(code)
}

fn touch(file: &str) {
    std::fs::write(file, "").expect("the test's directory is writable");
}

fn wait(job: &Job) -> ! {
    let what = Wait {
        kind: Waiting::Receive,
        peer: Some(0),
        tag: Some(7),
        context: 0,
        since: perusal::internals::arch::clock::now(),
    };
    job.own_telemetry().posted.set(1);
    job.own_telemetry().waiting.set(&what);
    while job.check_alive(None).is_ok() {
        std::thread::sleep(Duration::from_millis(5));
    }
    exit(70)
}

fn sleep() -> ! {
    loop {
        std::thread::sleep(Duration::from_secs(1000));
    }
}

fn kill_self(signal: i32) {
    // SAFETY: restores a default action and sends a signal; no memory is involved.
    unsafe {
        libc::signal(signal, libc::SIG_DFL);
        libc::raise(signal);
    }
}

fn ignore(signal: i32) {
    // SAFETY: sets a disposition; no memory is involved.
    unsafe { libc::signal(signal, libc::SIG_IGN) };
}

fn fork() {
    // SAFETY: the process has one thread; the child only sleeps.
    if unsafe { libc::fork() } == 0 {
        // SAFETY: no memory is involved.
        unsafe { libc::setsid() };
        sleep();
    }
}

/// Where the header has the job's id, the launcher's process id, and the abort word (docs/job-memory.md).
const JOB_ID: u64 = 32;
const LAUNCHER: u64 = 40;
const ABORT: u64 = 128;

fn write(job: &Job, at: u64, bytes: &[u8]) {
    job.segment().file().write_all_at(bytes, at).expect("the job's memory can be written");
}

fn scribble(job: &Job, pid: i32, id: &str) {
    let id = u64::from_str_radix(id, 16).expect("a job's id");
    // A place that seems taken is not taken again.
    while (0..job.size()).any(|rank| job.roster().entry(rank).state() == RankState::Absent) {
        std::thread::sleep(Duration::from_millis(1));
    }
    write(job, JOB_ID, &id.to_le_bytes());
    write(job, LAUNCHER, &pid.to_le_bytes());
    for rank in 0..job.size() {
        // Process id, and what follows it: once a process group.
        write(job, job.layout().roster(rank) + 4, &(-pid).to_le_bytes());
        write(job, job.layout().roster(rank) + 8, &pid.to_le_bytes());
    }
}

fn alive(job: &Job) {
    if job.check_alive(None).is_err() {
        exit(72);
    }
}

/// Leaves most of the only CPU that it may use to children, which want it for 8 seconds, and has memory that takes a
/// while to be given back.
fn dawdle() {
    const BYTES: usize = 192 << 20;
    let (protection, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
    // SAFETY: a new mapping, of which each page is written in its own bounds; integers, and structures that live
    // through the calls. The process has one thread, and its children make system calls only.
    unsafe {
        let memory = libc::mmap(std::ptr::null_mut(), BYTES, protection, flags, -1, 0);
        assert_ne!(memory, libc::MAP_FAILED, "memory");
        libc::madvise(memory, BYTES, libc::MADV_NOHUGEPAGE);
        (0..BYTES).step_by(4096).for_each(|at| memory.cast::<u8>().add(at).write_volatile(1));
        let [mut all, mut one]: [libc::cpu_set_t; 2] = std::mem::zeroed();
        let size = size_of_val(&all);
        libc::sched_getaffinity(0, size, &raw mut all);
        libc::CPU_SET(libc::sched_getcpu() as usize, &mut one);
        assert_eq!(libc::sched_setaffinity(0, size, &raw const one), 0, "affinity");
        let rank = libc::getpid();
        if (0..4).any(|_| libc::fork() == 0) {
            // What goes to the group of the rank is not meant for it. The session, within which the scheduler weighs
            // processes, is the same.
            libc::setpgid(0, 0);
            let start = now();
            while now() < start + 8 {}
            libc::sched_setaffinity(rank, size, &raw const all);
            libc::_exit(0);
        }
        assert_eq!(libc::setpriority(libc::PRIO_PROCESS, 0, 19), 0, "nice");
    }
}

/// Seconds that only grow.
fn now() -> libc::time_t {
    // SAFETY: integers, and a structure that lives through the call.
    unsafe {
        let mut now: libc::timespec = std::mem::zeroed();
        libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut now);
        now.tv_sec
    }
}
