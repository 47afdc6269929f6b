//! Whatever is killed, and whenever: the job ends at once, says why, and leaves nothing behind.
//!
//! PERUSAL_FAULT_ROUNDS (default 8) is how many jobs are killed; PERUSAL_FAULT_SEED repeats a run. One job in four has
//! its launcher killed, the others one of their ranks, at a random moment from their very start on.
//!
//! That the end comes at once is shown without a limit on time, which a slow machine would fail. In every second job a
//! rank sleeps for [`NAP_MS`] if nobody wakes it. Ends that waited for such sleeps would take seconds; and on a machine
//! that takes as long for everything, so would a job that starts and ends by itself, of which there is one beside each
//! of them.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use crate::common::dist::dist;
use crate::common::examples::{example, mpicc, product};

const RANKS: usize = 8;
/// Milliseconds that a rank sleeps, in every second job, if nobody wakes it.
const NAP_MS: u64 = 10_000;
/// Half of the ends are quicker than this, or than so many jobs that start and end by themselves. Asked for in long
/// runs, where half of the ends are many.
const PROMPT: Duration = Duration::from_millis(NAP_MS / 4);
const JOBS: u32 = 3;
const LONG_RUN: u64 = 100;
/// Beyond this nothing is slow any more: it hangs.
pub const HANG: Duration = crate::common::HANG;

/// Instead of a message's bytes: a job that does collectives.
const COLLECTIVES: &str = "collectives of all";

/// SplitMix64: good enough to choose moments and victims.
pub struct Random(pub u64);

impl Random {
    pub fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (z ^ (z >> 31)) % limit
    }
}

pub fn setting(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|v| v.parse().ok()).unwrap_or(default)
}

pub fn has_variable(pid: i32, is_it: impl Fn(&[u8]) -> bool) -> bool {
    let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
    environment.split(|&byte| byte == 0).any(is_it)
}

/// The processes that carry a mark in their environment, zombies not among them.
pub fn marked(mark: &str) -> BTreeSet<i32> {
    let wanted = format!("PERUSAL_TEST_MARK={mark}");
    let entries = fs::read_dir("/proc").expect("Linux has /proc");
    let pids = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    pids.filter(|pid| has_variable(*pid, |v| v == wanted.as_bytes())).collect()
}

/// What a job could leave behind: its directory for temporary files is its own, /dev/shm and /tmp are everybody's.
pub fn leftovers(temporary: &Path) -> BTreeSet<String> {
    let names = |dir: &Path, all: bool| -> Vec<String> {
        let Ok(entries) = fs::read_dir(dir) else { return Vec::new() };
        let paths = entries.filter_map(|e| Some(e.ok()?.path().to_string_lossy().into_owned()));
        paths.filter(|path| all || path.contains("perusal")).collect()
    };
    let mut found: BTreeSet<String> = names(temporary, true).into_iter().collect();
    found.extend(names(Path::new("/dev/shm"), false));
    found.extend(names(Path::new("/tmp"), false));
    found
}

struct Job {
    launcher: Child,
    mark: String,
    began: Instant,
}

impl Job {
    fn start(program: &Path, temporary: &Path, mark: String, bytes: &str, sleeps: bool) -> Job {
        let mut command = Command::new(dist().join("bin/mpiexec"));
        let messages = ["--seconds", "600", "--messages", "20000", "--bytes", bytes, "--quiet"];
        let arguments = if bytes == COLLECTIVES { &[][..] } else { &messages[..] };
        command.args(["-n", &RANKS.to_string()]).arg(program).args(arguments);
        command.env("PERUSAL_TEST_MARK", &mark).env("TMPDIR", temporary);
        if sleeps {
            command.env("PERUSAL_NAP_MS", NAP_MS.to_string());
        }
        let launcher = command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(fs::File::create(temporary.with_extension("stderr")).expect("a writable directory"))
            .spawn()
            .expect("the launcher runs");
        Job { launcher, mark, began: Instant::now() }
    }

    /// The ranks that run by now: what carries a rank, which neither the launcher nor its reaper does.
    fn ranks(&self) -> Vec<i32> {
        marked(&self.mark)
            .into_iter()
            .filter(|pid| has_variable(*pid, |v| v.starts_with(b"PERUSAL_RANK=")))
            .collect()
    }

    /// Waits until a rank is there to be killed, and then for the chosen moment.
    fn wait_for(&self, moment: Duration) -> Vec<i32> {
        loop {
            let ranks = self.ranks();
            if !ranks.is_empty() && self.began.elapsed() >= moment {
                return ranks;
            }
            assert!(self.began.elapsed() < HANG, "the job did not start");
            sleep(Duration::from_millis(1));
        }
    }

    /// Waits until nothing of the job runs; gives how long that took, less what this test was itself held up for.
    fn wait_for_the_end(&mut self) -> Duration {
        const NAP: Duration = Duration::from_millis(5);
        let began = Instant::now();
        let mut held_up = Duration::ZERO;
        loop {
            let over = self.launcher.try_wait().expect("our own child").is_some();
            if over && marked(&self.mark).is_empty() {
                return began.elapsed().saturating_sub(held_up);
            }
            if began.elapsed() > HANG {
                let left = marked(&self.mark);
                for pid in &left {
                    kill(*pid);
                }
                panic!(
                    "{} s after the kill the launcher is {}, and these run: {left:?}",
                    HANG.as_secs(),
                    if over { "gone" } else { "there" }
                );
            }
            let asleep = Instant::now();
            sleep(NAP);
            held_up += asleep.elapsed().saturating_sub(2 * NAP);
        }
    }
}

/// How long a job takes that starts and ends by itself.
fn undisturbed(program: &Path) -> Duration {
    let began = Instant::now();
    let mut command = Command::new(dist().join("bin/mpiexec"));
    command.args(["-n", &RANKS.to_string()]).arg(program).args([
        "--messages",
        "1",
        "--bytes",
        "8",
        "--quiet",
    ]);
    let ended = command.stdin(Stdio::null()).output().expect("the launcher runs");
    assert!(ended.status.success(), "{ended:?}");
    began.elapsed()
}

/// The duration that half of them do not exceed.
fn median(durations: &mut [Duration]) -> Duration {
    durations.sort_unstable();
    durations.get(durations.len().saturating_sub(1) / 2).copied().unwrap_or_default()
}

fn kill(pid: i32) {
    // SAFETY: kill has no memory effects; the pid is of a process that carries this test's mark.
    unsafe { libc::kill(pid, libc::SIGKILL) };
}

/// Kills a launcher or a rank at a moment of its choice and checks what is left. Returns how long the end took.
fn kill_one(
    programs: &[PathBuf; 2],
    (round, sleeps): (u64, bool),
    seed: u64,
    random: &mut Random,
) -> Duration {
    let temporary = crate::common::scratch(&format!("faults-{round}"));
    let before = leftovers(&temporary);
    let mark = format!("{}-{seed}-{round}", std::process::id());
    // Within a cache line, through the ring's bulk area, large, in shared memory:
    // each has a way of its own to be in the middle of.
    let bytes = ["8", "4096", "400000", COLLECTIVES][random.below(4) as usize];
    let mut job = Job::start(&programs[usize::from(bytes == COLLECTIVES)], &temporary, mark, bytes, sleeps);
    let ranks = job.wait_for(Duration::from_micros(random.below(250_000)));
    let launcher = random.below(4) == 0;
    let victim =
        if launcher { job.launcher.id() as i32 } else { ranks[random.below(ranks.len() as u64) as usize] };
    kill(victim);
    let took = job.wait_for_the_end();
    let status = job.launcher.wait().expect("our own child");
    let said = fs::read_to_string(temporary.with_extension("stderr")).expect("the launcher's words");
    let what = format!(
        "round {round} of seed {seed}, {bytes} bytes, {} killed",
        if launcher { "launcher" } else { "rank" }
    );
    if launcher {
        assert_eq!(status.signal(), Some(libc::SIGKILL), "{what}");
    } else {
        assert!(!status.success(), "{what}: the launcher succeeded");
        assert!(said.contains("SIGKILL") || said.contains("signal 9"), "{what}: the launcher said {said:?}");
    }
    // What other jobs have in the places that are everybody's goes away; what this one has left behind stays.
    let mut left: Vec<_> = leftovers(&temporary).difference(&before).cloned().collect();
    let over = Instant::now();
    while !left.is_empty() && over.elapsed() < HANG {
        sleep(Duration::from_millis(5));
        left.retain(|path| Path::new(path).exists());
    }
    assert!(left.is_empty(), "{what}: left behind {left:?}");
    took
}

#[test]
fn a_kill_at_any_moment_ends_the_job_at_once_and_leaves_nothing() {
    let clock = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970").as_nanos() as u64;
    let seed = setting("PERUSAL_FAULT_SEED", clock);
    let rounds = setting("PERUSAL_FAULT_ROUNDS", 8);
    let mut random = Random(seed);
    let collectives = product("collectives");
    mpicc(&["tests/p2p/collectives.c", "-o", &collectives.to_string_lossy()]);
    let programs = [example("all_to_all_order.c"), collectives];
    let (mut ends, mut sleepers, mut jobs) = (vec![], vec![], vec![]);
    for round in 0..rounds {
        let sleeps = round % 2 == 0;
        let took = kill_one(&programs, (round, sleeps), seed, &mut random);
        ends.push(took);
        if sleeps && rounds >= LONG_RUN {
            sleepers.push(took);
            jobs.push(undisturbed(&programs[0]));
        }
    }
    let (half, half_of_jobs, slowest) = (median(&mut sleepers), median(&mut jobs), ends.iter().max());
    println!(
        "{rounds} kills, seed {seed}: the slowest end took {slowest:?}; with sleeps of {NAP_MS} ms half of them took {half:?} at most, \
         and half of the jobs that end by themselves {half_of_jobs:?}"
    );
    assert!(
        half < PROMPT || half < JOBS * half_of_jobs,
        "seed {seed}: half of the ends took {half:?} or more, and half of the jobs that end by themselves {half_of_jobs:?} at most"
    );
}
