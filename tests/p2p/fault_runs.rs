//! Faults of every kind, chosen by a seed: the job ends in time, says in words what is wrong or does what it should,
//! and leaves nothing.
//!
//! PERUSAL_FAULT_RUNS (default 20) is how many jobs there are; PERUSAL_FAULT_SEED repeats a run, and PERUSAL_FAULT
//! names one kind of fault to try alone. All failures are listed at the end, with how many runs each fault had.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use super::faults::{HANG, Random, has_variable, leftovers, marked, setting};
use crate::common::dist::dist;
use crate::common::examples::{mpicc, product};

/// What befalls a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Fault {
    KillRank,
    KillLauncher,
    KillReaper,
    StopRank,
    StopLauncher,
    SlowRank,
    Signals,
    AddressSpace,
    FileSize,
    Descriptors,
    Stack,
    RefusedCall,
    ForkAndExec,
    NestedLaunch,
    TwoJobs,
    TinySharedMemory,
    OtherClock,
    ClockJumps,
    ControlGroup,
}

const FAULTS: [Fault; 19] = [
    Fault::KillRank,
    Fault::KillLauncher,
    Fault::KillReaper,
    Fault::StopRank,
    Fault::StopLauncher,
    Fault::SlowRank,
    Fault::Signals,
    Fault::AddressSpace,
    Fault::FileSize,
    Fault::Descriptors,
    Fault::Stack,
    Fault::RefusedCall,
    Fault::ForkAndExec,
    Fault::NestedLaunch,
    Fault::TwoJobs,
    Fault::TinySharedMemory,
    Fault::OtherClock,
    Fault::ClockJumps,
    Fault::ControlGroup,
];

/// How a job may end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    /// As if nothing had been.
    Well,
    /// So, or with a failure in words of the launcher or the library.
    Either,
    /// Killed, without a word.
    Killed,
    /// Any of these; where a rank was killed for memory, in words that say so.
    OutOfMemory,
}

impl Fault {
    fn end(self) -> End {
        match self {
            // A victim may have ended before.
            Self::KillRank
            | Self::AddressSpace
            | Self::FileSize
            | Self::Descriptors
            | Self::Stack
            | Self::RefusedCall => End::Either,
            Self::KillLauncher => End::Killed,
            Self::ControlGroup => End::OutOfMemory,
            _ => End::Well,
        }
    }
}

/// System calls that a filter may refuse, as those of containers do.
const REFUSED: [libc::c_long; 16] = [
    libc::SYS_membarrier,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_memfd_create,
    libc::SYS_fallocate,
    libc::SYS_pidfd_open,
    libc::SYS_pidfd_send_signal,
    libc::SYS_sched_setaffinity,
    libc::SYS_sched_getaffinity,
    libc::SYS_io_uring_setup,
    libc::SYS_close_range,
    libc::SYS_prctl,
    libc::SYS_setrlimit,
    libc::SYS_prlimit64,
    libc::SYS_kill,
    libc::SYS_madvise,
];

/// Has the kernel refuse a system call with an error, from now on.
fn refuse(call: libc::c_long, error: i32) -> io::Result<()> {
    let statement =
        |code: u32, yes: u8, no: u8, k: u32| libc::sock_filter { code: code as u16, jt: yes, jf: no, k };
    let mut filter = [
        // The number of the system call comes first.
        statement(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0, 0),
        statement(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, 1, 0, call as u32),
        statement(libc::BPF_RET | libc::BPF_K, 0, 0, libc::SECCOMP_RET_ALLOW),
        statement(libc::BPF_RET | libc::BPF_K, 0, 0, libc::SECCOMP_RET_ERRNO | error as u32),
    ];
    let program = libc::sock_fprog { len: filter.len() as u16, filter: filter.as_mut_ptr() };
    // SAFETY: the program and its statements live through the call, which copies them.
    let refused = unsafe {
        libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0
            || libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &raw const program) != 0
    };
    if refused { Err(io::Error::last_os_error()) } else { Ok(()) }
}

fn limit(what: libc::__rlimit_resource_t, to: u64) -> io::Result<()> {
    let limit = libc::rlimit { rlim_cur: to, rlim_max: to };
    // SAFETY: `limit` is read during the call.
    if unsafe { libc::setrlimit(what, &raw const limit) } == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}

fn send(pid: i32, signal: i32) {
    // SAFETY: kill has no memory effects; the pid is of a process that carries this test's mark, or of our own child.
    unsafe { libc::kill(pid, signal) };
}

/// A job with a fault.
struct Run<'a> {
    fault: Fault,
    program: &'a Path,
    temporary: PathBuf,
    mark: String,
    /// The control group that it runs in.
    group: Option<ControlGroup>,
    /// Which system call gives which error, if that is not left to chance.
    refused: Option<(libc::c_long, i32)>,
    /// What was chosen, for a report.
    detail: String,
}

impl Run<'_> {
    fn command(&mut self, random: &mut Random) -> Command {
        let mpiexec = dist().join("bin/mpiexec");
        let ranks = 2 + random.below(4);
        let rounds = (20 + random.below(100)).to_string();
        let wrapped = |wrapper: &[&str]| {
            let mut command = Command::new(wrapper[0]);
            command.args(&wrapper[1..]).arg(&mpiexec);
            command
        };
        let mut command = match self.fault {
            Fault::TinySharedMemory if may_unshare("--mount") => wrapped(&[
                "unshare",
                "--mount",
                "sh",
                "-c",
                "mount -t tmpfs -o size=4k none /dev/shm && exec \"$@\"",
                "sh",
            ]),
            Fault::OtherClock if may_unshare("--time") => {
                wrapped(&["unshare", "--time", "--monotonic", "100000000", "--boottime", "100000000", "--"])
            }
            _ => Command::new(&mpiexec),
        };
        command.args(["-n", &ranks.to_string()]).arg(self.program).arg(&rounds);
        match self.fault {
            Fault::ForkAndExec => {
                command.arg("fork");
            }
            Fault::ClockJumps => {
                command.env("LD_PRELOAD", jumping_clock());
            }
            Fault::NestedLaunch => {
                // Each rank of the outer job, which never calls MPI, is the launcher of an inner one.
                command = Command::new(&mpiexec);
                command.args(["-n", "2"]).arg(&mpiexec).args(["-n", "2"]).arg(self.program).arg(&rounds);
            }
            _ => {}
        }
        self.detail = format!("{ranks} ranks, {rounds} rounds");
        self.limit(&mut command, random);
        command
    }

    /// What the kernel is to refuse to the launcher and all its ranks.
    fn limit(&mut self, command: &mut Command, random: &mut Random) {
        let mut set = |what, unit: u64, most: u64| {
            let to = unit * (1 + random.below(most));
            self.detail += &format!(", limit {to}");
            // SAFETY: setrlimit is a system call.
            unsafe { command.pre_exec(move || limit(what, to)) };
        };
        match self.fault {
            // With half of the least, the dynamic linker may have no room for the launcher's libraries.
            Fault::AddressSpace => set(libc::RLIMIT_AS, 32 << 20, 100),
            Fault::FileSize => set(libc::RLIMIT_FSIZE, 1 << 20, 3000),
            // With fewer than three, the dynamic linker finds no library.
            Fault::Descriptors => set(libc::RLIMIT_NOFILE, 4, 20),
            Fault::Stack => set(libc::RLIMIT_STACK, 96 << 10, 40),
            Fault::RefusedCall => {
                let (call, error) = self.refused.unwrap_or_else(|| {
                    let call = REFUSED[random.below(REFUSED.len() as u64) as usize];
                    (call, [libc::EPERM, libc::ENOSYS][random.below(2) as usize])
                });
                self.detail += &format!(", system call {call} gives {}", io::Error::from_raw_os_error(error));
                // SAFETY: `refuse` makes system calls only.
                unsafe { command.pre_exec(move || refuse(call, error)) };
            }
            Fault::ControlGroup => match &self.group {
                Some(group) => {
                    let bytes = (4 << 20) + random.below(150 << 20);
                    group.limit(bytes);
                    self.detail += &format!(", a control group of {} MiB", bytes >> 20);
                    let mut members = fs::OpenOptions::new()
                        .write(true)
                        .open(group.path.join("cgroup.procs"))
                        .expect("a group of ours");
                    // SAFETY: a system call on a descriptor that is open.
                    unsafe { command.pre_exec(move || io::Write::write_all(&mut members, b"0")) };
                }
                None => self.detail += ", no control group: they cannot be made here",
            },
            _ => {}
        }
    }

    fn start(&self, mut command: Command, name: &str) -> Child {
        let file =
            |end| fs::File::create(self.temporary.with_extension(format!("{name}.{end}"))).expect("a file");
        command.env("PERUSAL_TEST_MARK", &self.mark).env("TMPDIR", &self.temporary);
        command.stdin(Stdio::null()).stdout(file("out")).stderr(file("err"));
        command.spawn().expect("the launcher runs")
    }

    fn said(&self, name: &str, end: &str) -> String {
        let bytes = fs::read(self.temporary.with_extension(format!("{name}.{end}"))).unwrap_or_default();
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// The processes of the job that are ranks, or that are none.
    fn processes(&self, ranks: bool) -> Vec<i32> {
        let is_rank = |pid: i32| has_variable(pid, |v| v.starts_with(b"PERUSAL_RANK="));
        marked(&self.mark).into_iter().filter(|pid| is_rank(*pid) == ranks).collect()
    }

    /// Does what is done to a job that runs.
    fn disturb(&self, launcher: &Child, random: &mut Random) {
        sleep(Duration::from_micros(random.below(80_000)));
        let ranks = self.processes(true);
        let victim = (!ranks.is_empty()).then(|| ranks[random.below(ranks.len().max(1) as u64) as usize]);
        let launcher = launcher.id() as i32;
        match (self.fault, victim) {
            (Fault::KillRank, Some(victim)) => send(victim, libc::SIGKILL),
            (Fault::KillLauncher, _) => send(launcher, libc::SIGKILL),
            (Fault::KillReaper, _) => {
                let others = self.processes(false);
                let reaper = others.into_iter().find(|pid| {
                    fs::read_to_string(format!("/proc/{pid}/comm"))
                        .is_ok_and(|name| name == "perusal-reaper\n")
                });
                reaper.into_iter().for_each(|reaper| send(reaper, libc::SIGKILL));
            }
            (Fault::StopRank, Some(victim)) => {
                send(victim, libc::SIGSTOP);
                sleep(Duration::from_millis(random.below(3000)));
                send(victim, libc::SIGCONT);
            }
            (Fault::StopLauncher, _) => {
                send(launcher, libc::SIGSTOP);
                sleep(Duration::from_millis(random.below(1500)));
                send(launcher, libc::SIGCONT);
            }
            (Fault::SlowRank, Some(victim)) => {
                for _ in 0..20 {
                    send(victim, libc::SIGSTOP);
                    sleep(Duration::from_millis(10));
                    send(victim, libc::SIGCONT);
                    sleep(Duration::from_micros(random.below(3000)));
                }
            }
            (Fault::Signals, _) => {
                for _ in 0..200 {
                    // A rank that has not come to say what it does with the signal would be ended by it.
                    ranks.iter().filter(|rank| handles(**rank)).for_each(|rank| send(*rank, libc::SIGUSR1));
                    sleep(Duration::from_micros(500));
                }
            }
            _ => {}
        }
    }

    /// Waits until the launchers and everything else have ended.
    fn wait(&self, launchers: &mut [Child]) -> Result<(), String> {
        let began = Instant::now();
        loop {
            let over = launchers.iter_mut().all(|it| it.try_wait().expect("our own child").is_some());
            let left = marked(&self.mark);
            if over && left.is_empty() {
                return Ok(());
            }
            if began.elapsed() > HANG {
                left.iter().for_each(|pid| send(*pid, libc::SIGKILL));
                return Err(format!("{} s later these run: {left:?}", HANG.as_secs()));
            }
            sleep(Duration::from_millis(3));
        }
    }

    fn perform(&mut self, random: &mut Random) -> Result<(), String> {
        let before = leftovers(&self.temporary);
        let command = self.command(random);
        let mut launchers = vec![self.start(command, "first")];
        if self.fault == Fault::TwoJobs {
            let command = self.command(random);
            launchers.push(self.start(command, "second"));
        }
        self.disturb(&launchers[0], random);
        self.wait(&mut launchers)?;
        for (launcher, name) in launchers.iter_mut().zip(["first", "second"]) {
            let status = launcher.wait().expect("our own child");
            let (out, err) = (self.said(name, "out"), self.said(name, "err"));
            let times = if self.fault == Fault::NestedLaunch { 2 } else { 1 };
            let well = status.success() && out == "done\n".repeat(times);
            let reported = status.code().is_some_and(|code| code != 0)
                && err.lines().any(|line| line.starts_with("mpiexec: ") || line.starts_with("perusal: "));
            let good = match self.fault.end() {
                End::Well => well,
                End::Either => well || reported,
                End::Killed => well || status.code().is_none(),
                // The kernel chooses whom it kills, the launcher among them.
                End::OutOfMemory => {
                    let killed = err.contains("killed by SIGKILL");
                    let said = !killed || err.contains("the memory of its control group had run out");
                    well || reported && said || status.code().is_none()
                }
            };
            if !good || err.contains("panicked") || err.contains("internal error") {
                return Err(format!("it ends with {status}, and says {out:?} and {err:?}"));
            }
        }
        // What other jobs have in the places that are everybody's goes away; what this one has left behind stays.
        let mut left: Vec<_> = leftovers(&self.temporary).difference(&before).cloned().collect();
        let over = Instant::now();
        while !left.is_empty() && over.elapsed() < HANG {
            sleep(Duration::from_millis(5));
            left.retain(|path| Path::new(path).exists());
        }
        if left.is_empty() { Ok(()) } else { Err(format!("it leaves {left:?}")) }
    }
}

/// The library of `clock.c`.
fn jumping_clock() -> PathBuf {
    static LIBRARY: std::sync::OnceLock<PathBuf> = std::sync::OnceLock::new();
    let make = || {
        let library = crate::common::scratch("p2p/clock").join("clock.so");
        let source = crate::common::root().join("tests/p2p/clock.c");
        let mut compiler = Command::new("cc");
        compiler.args(["-O1", "-shared", "-fPIC"]).arg(source).arg("-o").arg(&library);
        assert!(compiler.status().expect("a C compiler").success(), "{compiler:?}");
        library
    };
    LIBRARY.get_or_init(make).clone()
}

/// A control group with a limit on memory. It goes with this.
struct ControlGroup {
    path: PathBuf,
    /// The name of the file that has the limit.
    limit: &'static str,
}

impl ControlGroup {
    /// A new group, where this user may make one.
    fn new(name: &str) -> Option<Self> {
        [("/sys/fs/cgroup/memory", "memory.limit_in_bytes"), ("/sys/fs/cgroup", "memory.max")]
            .into_iter()
            .find_map(|(root, limit)| {
                let path = Path::new(root).join(format!("perusal-test-{name}"));
                fs::create_dir(&path).ok()?;
                let group = Self { path, limit };
                // In version 2 the root may not hand out its memory.
                group.path.join(limit).exists().then_some(group)
            })
    }

    fn limit(&self, bytes: u64) {
        fs::write(self.path.join(self.limit), bytes.to_string()).expect("a group of ours");
    }
}

impl Drop for ControlGroup {
    fn drop(&mut self) {
        // Its last members may still be going.
        for _ in 0..1000 {
            if fs::remove_dir(&self.path).is_ok() {
                return;
            }
            sleep(Duration::from_millis(5));
        }
    }
}

/// Whether the process has a handler for SIGUSR1.
fn handles(pid: i32) -> bool {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:"));
    caught
        .and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok())
        .is_some_and(|mask| mask >> (libc::SIGUSR1 - 1) & 1 == 1)
}

/// Whether this process may make a namespace of its own of that kind.
fn may_unshare(kind: &str) -> bool {
    Command::new("unshare")
        .args([kind, "true"])
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
}

#[test]
fn a_job_that_meets_a_fault_ends_in_time_in_words_and_leaves_nothing() {
    let seed = setting("PERUSAL_FAULT_SEED", 1);
    let runs = setting("PERUSAL_FAULT_RUNS", 20);
    let only = std::env::var("PERUSAL_FAULT").ok();
    let mut random = Random(seed);
    let program = product("faulty");
    mpicc(&["tests/p2p/faulty.c", "-o", &program.to_string_lossy()]);
    let mut counts: BTreeMap<Fault, (u64, u64)> = BTreeMap::new();
    let mut failures = Vec::new();
    for round in 0..runs {
        // Each kind in turn; the first run of a seed begins anywhere.
        let mut fault = FAULTS[((seed + round) % FAULTS.len() as u64) as usize];
        if let Some(only) = &only {
            fault = FAULTS
                .into_iter()
                .find(|it| format!("{it:?}") == *only)
                .expect("PERUSAL_FAULT: a kind of fault");
        }
        let temporary = crate::common::scratch(&format!("fault-runs-{round}"));
        let mark = format!("{}-{seed}-fault-{round}", std::process::id());
        let group = if fault == Fault::ControlGroup { ControlGroup::new(&mark) } else { None };
        if fault == Fault::ControlGroup && group.is_none() {
            println!("no control group for memory can be made here: run {round} has no limit");
        }
        let mut run =
            Run { fault, program: &program, temporary, mark, group, refused: None, detail: String::new() };
        let outcome = run.perform(&mut random);
        let count = counts.entry(fault).or_default();
        count.0 += 1;
        if let Err(why) = outcome {
            count.1 += 1;
            failures.push(format!("run {round}, {fault:?} ({}): {why}", run.detail));
        }
    }
    let each: Vec<String> =
        counts.iter().map(|(fault, (runs, failed))| format!("{fault:?} {runs} ({failed} failed)")).collect();
    println!("seed {seed}: {runs} runs, {} failures: {}", failures.len(), each.join(", "));
    assert!(failures.is_empty(), "seed {seed}:\n{}", failures.join("\n"));
}

#[test]
fn a_system_call_that_is_refused_is_done_without_or_told() {
    let mut random = Random(1);
    let program = product("faulty");
    mpicc(&["tests/p2p/faulty.c", "-o", &program.to_string_lossy()]);
    let mut failures = Vec::new();
    for call in REFUSED {
        let temporary = crate::common::scratch(&format!("refused-{call}"));
        let mark = format!("{}-refused-{call}", std::process::id());
        let (fault, refused) = (Fault::RefusedCall, Some((call, libc::EPERM)));
        let mut run =
            Run { fault, program: &program, temporary, mark, group: None, refused, detail: String::new() };
        failures.extend(run.perform(&mut random).err().map(|why| format!("{}: {why}", run.detail)));
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}
