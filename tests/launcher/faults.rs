//! Whatever is killed, whenever: the job ends, the reason is named, and nothing stays behind.

use std::fs::File;
use std::io::Read;
use std::os::fd::FromRawFd;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use crate::common::dist::dist;
use crate::common::executable;
use crate::common::jobs::{Directory, Job, PERUSAL, RANK, eldest, eventually, marked, run, start, start_as};

fn up(dir: &Directory, count: usize) -> bool {
    std::fs::read_dir(dir.path()).unwrap().count() >= count
}

/// A job of `ranks` ranks that are all up and wait, each with a child in a session of its own.
fn waiting(dir: &Directory, ranks: usize) -> Job {
    let script = format!("exec {RANK} init fork touch {}$PERUSAL_RANK wait", dir.file("up"));
    let job = start(&["-n", &ranks.to_string(), "sh", "-c", &script], Stdio::null());
    eventually("start", || up(dir, ranks));
    job
}

fn nothing_is_left(mark: &str) {
    eventually("the end of every process of the job", || marked(mark).is_empty());
}

#[test]
fn a_rank_that_is_killed_ends_the_job() {
    let dir = Directory::new("rank");
    let job = waiting(&dir, 3);
    let mark = job.mark.clone();
    let victims: Vec<i32> = job.processes().into_iter().filter(|pid| is_rank(*pid, 1)).collect();
    // The rank, and not its child that waits for nobody.
    // SAFETY: sends a signal to a process of the test's own job; no memory is involved.
    unsafe { libc::kill(eldest(&victims), libc::SIGKILL) };
    let ended = job.end();
    assert_eq!(ended.code(), 137);
    assert!(ended.err.contains("rank 1 (process "), "{ended:?}");
    assert!(ended.err.contains("killed by SIGKILL (signal 9); the other ranks are ended"), "{ended:?}");
    nothing_is_left(&mark);
}

fn is_rank(pid: i32, rank: u32) -> bool {
    let environment = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
    environment.split(|byte| *byte == 0).any(|entry| entry == format!("PERUSAL_RANK={rank}").as_bytes())
}

#[test]
fn a_launcher_that_is_killed_leaves_no_process_of_any_generation() {
    let dir = Directory::new("launcher");
    let job = waiting(&dir, 3);
    let mark = job.mark.clone();
    // Launcher, reaper, three ranks and their children.
    assert!(job.processes().len() >= 8, "{:?}", job.processes());
    job.signal(libc::SIGKILL);
    nothing_is_left(&mark);
}

#[test]
fn a_launcher_killed_at_any_moment_leaves_nothing() {
    // Nothing of it has a name in a file system, in memory or elsewhere.
    let dir = Directory::new("no-file");
    let named = || -> Vec<PathBuf> {
        let entries =
            |dir: &Path| std::fs::read_dir(dir).into_iter().flatten().flatten().map(|entry| entry.path());
        let of_jobs = |path: &PathBuf| path.to_string_lossy().contains("perusal");
        entries(Path::new("/dev/shm")).filter(of_jobs).chain(entries(Path::new(&dir.file("")))).collect()
    };
    let before = named();
    for step in 0..40 {
        let mut launcher = Command::new(dist().join("bin/mpiexec"));
        launcher.env("TMPDIR", dir.file(""));
        let job = start_as(&mut launcher, &["-n", "6", "sh", "-c", "sleep 1000 & sleep 1000"], Stdio::null());
        let mark = job.mark.clone();
        thread::sleep(Duration::from_micros(step * 500));
        job.signal(libc::SIGKILL);
        drop(job);
        nothing_is_left(&mark);
        assert_eq!(named(), before);
    }
}

#[test]
fn a_rank_killed_at_any_moment_ends_the_job_by_name() {
    let seed = std::process::id();
    println!("seed {seed}");
    let mut random = seed;
    for _ in 0..60 {
        let job = start(&["-n", "5", RANK, "init", "wait"], Stdio::null());
        let mark = job.mark.clone();
        random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let (victim, delay) = (random >> 29, random >> 12 & 0x3fff);
        let victim = victim % 5;
        let mut pid = None;
        eventually("the rank's start", || {
            pid = job.processes().into_iter().find(|pid| is_rank(*pid, victim));
            pid.is_some()
        });
        thread::sleep(Duration::from_micros(delay.into()));
        // SAFETY: sends a signal to a process of the test's own job; no memory is involved.
        unsafe { libc::kill(pid.unwrap(), libc::SIGKILL) };
        let ended = job.end();
        assert_eq!(ended.code(), 137, "{ended:?}");
        assert!(ended.err.contains(&format!("rank {victim} ")), "{ended:?}");
        nothing_is_left(&mark);
    }
}

#[test]
fn a_rank_that_vanishes_behind_a_shell_ends_the_job() {
    let script = format!("{RANK} init segv; sleep 1000");
    let ended = run(&["-n", "1", RANK, "init", "wait", ":", "-n", "1", "sh", "-c", &script]);
    assert_eq!(ended.code(), 1, "{ended:?}");
    assert!(ended.err.contains("perusal run: rank 1 (process "), "{ended:?}");
    assert!(ended.err.contains("ended before MPI_Finalize; process "), "{ended:?}");
}

#[test]
fn a_reaper_that_is_killed_does_not_matter() {
    let dir = Directory::new("reaper");
    let job = start(
        &[
            "-n",
            "2",
            "sh",
            "-c",
            &format!(
                "touch {}$PERUSAL_RANK; while test -e {}; do sleep 0.01; done; echo done",
                dir.file("up"),
                dir.file("up0")
            ),
        ],
        Stdio::null(),
    );
    eventually("start", || up(&dir, 2));
    let comm = |pid: &i32| std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
    // It is there before the ranks are, but may not have come to give itself its name.
    let mut reaper = None;
    eventually("the reaper's name", || {
        reaper = job.processes().into_iter().find(|pid| comm(pid) == "perusal-reaper\n");
        reaper.is_some()
    });
    let reaper = reaper.expect("just found");
    // SAFETY: sends a signal to a process of the test's own job; no memory is involved.
    unsafe { libc::kill(reaper, libc::SIGKILL) };
    eventually("the reaper's end", || marked(&job.mark).iter().all(|pid| *pid != reaper));
    std::fs::remove_file(dir.file("up0")).unwrap();
    let ended = job.end();
    assert_eq!((ended.code(), ended.out.as_str()), (0, "done\ndone\n"));
}

/// A process that has nothing to do with any job, leads a group of its own,
/// and looks as if it belonged to job [`ANOTHER`].
struct Bystander(Child);

const ANOTHER: &str = "00000000deadbeef";

impl Bystander {
    fn start() -> Self {
        let mut command = Command::new("sleep");
        Self(command.arg("1000").env("PERUSAL_JOB_ID", ANOTHER).process_group(0).spawn().expect("sleep"))
    }

    fn survives(&mut self) -> bool {
        self.0.try_wait().expect("our own child").is_none()
    }
}

impl Drop for Bystander {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn what_a_rank_writes_into_the_job_s_memory_gets_nobody_else_killed() {
    let mut bystander = Bystander::start();
    let dir = Directory::new("scribble");
    let scribble = format!("{RANK} init scribble {} {ANOTHER}", bystander.0.id());
    // The launcher is killed.
    let script = format!("exec {scribble} fork touch {}$PERUSAL_RANK sleep", dir.file("up"));
    let job = start(&["-n", "2", "sh", "-c", &script], Stdio::null());
    eventually("start", || up(&dir, 2));
    let mark = job.mark.clone();
    job.signal(libc::SIGKILL);
    nothing_is_left(&mark);
    assert!(bystander.survives(), "the reaper has killed a process that was not the job's");
    // A rank dies, and the launcher ends the others.
    let script = format!("{scribble} alive; test $PERUSAL_RANK = 1 && kill -9 $$; sleep 1000");
    let ended = run(&["-n", "2", "sh", "-c", &script]);
    assert_eq!(ended.code(), 137, "{ended:?}");
    assert!(bystander.survives(), "the launcher has killed a process that was not the job's");
}

#[test]
fn a_launcher_that_is_killed_takes_along_what_hides_in_the_ranks_groups() {
    let dir = Directory::new("hidden");
    // Without the job's id in its environment only the group tells whose it is.
    let script = format!("env -i sleep 1000 & echo $! >{0}.new; mv {0}.new {0}; wait", dir.file("pid"));
    let job = start(&["-n", "1", "sh", "-c", &script], Stdio::null());
    let read = || std::fs::read_to_string(dir.file("pid"));
    eventually("start", || read().is_ok());
    let pid = read().unwrap();
    let state = |pid: &str| std::fs::read_to_string(format!("/proc/{}/stat", pid.trim()));
    eventually("the hidden process", || state(&pid).is_ok_and(|stat| stat.contains("(sleep)")));
    job.signal(libc::SIGKILL);
    eventually("the hidden process's end", || state(&pid).map_or(true, |stat| stat.contains(") Z ")));
}

/// A launcher that this thread traces; killed when dropped.
struct Traced(libc::pid_t);

impl Traced {
    /// Starts `command`, which stops where a process that it has started by a vfork is a program. `None` where no
    /// process may be traced.
    fn start(command: &mut Command) -> Option<Self> {
        // SAFETY: the closure makes one system call.
        unsafe {
            command.pre_exec(|| match libc::ptrace(libc::PTRACE_TRACEME, 0, 0, 0) {
                0 => Ok(()),
                _ => Err(std::io::Error::last_os_error()),
            });
        }
        let traced = Self(command.spawn().ok()?.id().cast_signed());
        traced.stop()?;
        let options = libc::PTRACE_O_TRACEVFORKDONE | libc::PTRACE_O_EXITKILL;
        // SAFETY: the process is a child of this thread, which it has asked to trace it, and it is stopped.
        (unsafe { libc::ptrace(libc::PTRACE_SETOPTIONS, traced.0, 0, options) } == 0).then_some(traced)
    }

    /// Its next stop: the signal, and the event behind it if there is one. `None` if it has ended.
    fn stop(&self) -> Option<(i32, i32)> {
        let mut status = 0;
        // SAFETY: waits for a child of this process, whose status goes to a local.
        let waited = unsafe { libc::waitpid(self.0, &raw mut status, 0) };
        (waited == self.0 && libc::WIFSTOPPED(status)).then(|| (libc::WSTOPSIG(status), status >> 16))
    }

    /// Lets it go on to where the first process that it starts by a vfork is a program.
    fn go_on_to_the_first_program(&self) {
        let mut signal = 0;
        loop {
            // SAFETY: as for the options: it is stopped, and this thread traces it.
            let went_on = unsafe { libc::ptrace(libc::PTRACE_CONT, self.0, 0, signal) };
            assert_eq!(went_on, 0, "{}", std::io::Error::last_os_error());
            match self.stop().expect("the launcher starts a rank") {
                (_, libc::PTRACE_EVENT_VFORK_DONE) => return,
                (_, event) if event != 0 => signal = 0,
                (other, _) => signal = other,
            }
        }
    }
}

impl Drop for Traced {
    fn drop(&mut self) {
        // SAFETY: a child of this process, which nothing else waits for.
        unsafe {
            libc::kill(self.0, libc::SIGKILL);
            libc::waitpid(self.0, std::ptr::null_mut(), 0);
        }
    }
}

#[test]
fn a_launcher_killed_once_a_rank_is_a_program_leaves_nothing_in_its_group() {
    let dir = Directory::new("at-once");
    let name = dir.file("hidden");
    let script = format!("env -i sleep 1000 & echo $! >{name}.new; mv {name}.new {name}; wait");
    let mut launcher = Command::new(PERUSAL);
    launcher.args(["run", "--on-deadlock", "ignore", "-n", "1", "sh", "-c", &script]).stdin(Stdio::null());
    let Some(launcher) = Traced::start(&mut launcher) else {
        println!("no process may be traced here: not checked");
        return;
    };
    launcher.go_on_to_the_first_program();
    // The launcher makes no system call any more: whatever it hands to the reaper once it has started a rank comes too
    // late.
    eventually("the name of the hidden process", || Path::new(&name).exists());
    drop(launcher);
    let pid = std::fs::read_to_string(&name).expect("the rank has written it");
    let state = || std::fs::read_to_string(format!("/proc/{}/stat", pid.trim()));
    eventually("the hidden process's end", || state().map_or(true, |stat| stat.contains(") Z ")));
}

#[test]
fn the_launcher_that_ranks_watch_is_not_the_one_that_a_rank_writes() {
    // The process id of a process that has ended.
    let mut gone = Bystander::start();
    gone.0.kill().expect("our own child");
    gone.0.wait().expect("our own child");
    let pid = gone.0.id().to_string();
    let ended = run(&["-n", "2", RANK, "init", "scribble", &pid, ANOTHER, "alive", "finalize"]);
    assert_eq!(ended.code(), 0, "{ended:?}");
}

#[test]
fn an_abort_of_no_rank_is_none() {
    let ended = run(&["-n", "2", RANK, "init", "stray-abort", "alive", "finalize", "exit", "3"]);
    assert_eq!(ended.code(), 3, "{ended:?}");
    assert!(ended.err.contains(" exited with status 3"), "{ended:?}");
}

#[test]
fn a_terminal_obeys_no_name_that_the_launcher_prints() {
    let name = "/no/\u{1b}[2J\r\u{9b}\u{202e}\nperusal";
    for arguments in [&["-n", "1", name][..], &["-n", "1", "-wdir", name, "true"]] {
        let ended = run(arguments);
        assert!(!ended.err.trim_end().contains(|c: char| c.is_control() || c == '\u{202e}'), "{ended:?}");
        assert!(ended.err.contains("/no/\\u{1b}[2J\\r\\u{9b}\\u{202e}\\nperusal"), "{ended:?}");
    }
}

#[test]
fn what_ranks_leave_running_ends_with_the_job() {
    let job = start(&["-n", "2", "sh", "-c", "setsid sleep 1000 & sleep 1000 & exit 0"], Stdio::null());
    let mark = job.mark.clone();
    assert_eq!(job.end().code(), 0);
    nothing_is_left(&mark);
}

#[test]
fn an_abort_is_named_with_its_rank_and_code() {
    let ended = run(&["-n", "2", RANK, "init", "wait", ":", "-n", "1", RANK, "init", "abort", "5"]);
    assert_eq!(ended.code(), 5, "{ended:?}");
    assert!(ended.err.contains("rank 2 called MPI_Abort with code 5"), "{ended:?}");
}

#[test]
fn what_a_rank_says_of_its_end_comes_before_what_the_launcher_says() {
    // Each rank ends with a sentence of its own; the launcher sleeps until all of that has happened.
    let dir = Directory::new("order");
    for _ in 0..10 {
        let up = dir.file("up");
        let script = format!(
            "touch {up}$PERUSAL_RANK; until test -e {up}; do sleep 0.01; done; echo reason >&2; exec {RANK} init abort 5"
        );
        let job = start(&["-n", "3", "sh", "-c", &script], Stdio::null());
        eventually("start", || (0..3).all(|rank| Path::new(&format!("{up}{rank}")).exists()));
        job.signal(libc::SIGSTOP);
        std::fs::write(&up, "").unwrap();
        // Launcher and reaper are left.
        eventually("the end of the ranks", || job.processes().len() <= 2);
        job.signal(libc::SIGCONT);
        let ended = job.end();
        assert_eq!(ended.code(), 5, "{ended:?}");
        assert_eq!(ended.err.lines().next(), Some("reason"), "{ended:?}");
        std::fs::read_dir(dir.path())
            .unwrap()
            .for_each(|file| std::fs::remove_file(file.unwrap().path()).unwrap());
    }
}

/// What the command writes to standard error, a text for each write.
fn writes_of(command: &mut Command) -> Vec<String> {
    let mut ends = [0; 2];
    // SAFETY: room for two descriptors. Each read from a pipe of packets returns what one write has written (pipe(2)).
    assert_eq!(unsafe { libc::pipe2(ends.as_mut_ptr(), libc::O_DIRECT | libc::O_CLOEXEC) }, 0);
    // SAFETY: the pipe's, which nothing else owns.
    let [mut reader, writer] = ends.map(|end| unsafe { File::from_raw_fd(end) });
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(writer).spawn().unwrap();
    command.stderr(Stdio::null());
    let (mut writes, mut room) = (vec![], [0; 4096]);
    loop {
        let bytes = reader.read(&mut room).unwrap();
        if bytes == 0 {
            break;
        }
        writes.push(String::from_utf8_lossy(&room[..bytes]).into_owned());
    }
    child.wait().unwrap();
    writes
}

#[test]
fn what_is_said_is_written_in_whole_lines() {
    let said: [&[&str]; 6] = [
        &["run", "--no-such-option"],
        &["run", "-n", "2", "/no/such/program"],
        &["run", "-n", "3", RANK, "init", "abort", "5"],
        &["run", "-n", "3", RANK, "init", "exit", "0"],
        &["run", "-n", "2", "--timeout", "1", RANK, "init", "wait"],
        &["why", "0"],
    ];
    for arguments in said {
        let writes = writes_of(Command::new(PERUSAL).args(arguments));
        assert!(!writes.is_empty(), "{arguments:?}");
        assert!(writes.iter().all(|write| write.ends_with('\n')), "{arguments:?}: {writes:#?}");
    }
}

#[test]
fn leaving_before_finalize_is_a_failure_even_with_status_0() {
    let ended = run(&["-n", "1", RANK, "init", "wait", ":", "-n", "1", RANK, "init", "exit", "0"]);
    assert_eq!(ended.code(), 1, "{ended:?}");
    assert!(ended.err.contains("rank 1 (process "), "{ended:?}");
    assert!(ended.err.contains("exited with status 0 before MPI_Finalize"), "{ended:?}");
}

#[test]
fn leaving_inside_finalize_is_a_failure_too() {
    let ended = run(&["-n", "1", RANK, "init", "finalizing", "exit", "0"]);
    assert_eq!(ended.code(), 1, "{ended:?}");
}

#[test]
fn a_status_before_finalize_is_told_apart_from_one_after_it() {
    let before = run(&["-n", "1", RANK, "init", "exit", "3"]);
    assert_eq!(before.code(), 3);
    assert!(before.err.contains("exited with status 3 before MPI_Finalize"), "{before:?}");
    let after = run(&["-n", "1", RANK, "init", "finalize", "exit", "3"]);
    assert_eq!(after.code(), 3);
    assert!(after.err.ends_with("exited with status 3\n"), "{after:?}");
}

#[test]
fn programs_that_know_nothing_of_mpi_may_come_and_go() {
    let ended = run(&["-n", "1", "true", ":", "-n", "2", "sleep", "0.1"]);
    assert_eq!((ended.code(), ended.err.as_str()), (0, ""));
}

#[test]
fn a_job_without_mpi_outlives_a_death_unless_nobody_ends_well() {
    let status = |rank: &str| {
        let ended = run(&["--survive", "-n", "2", "sh", "-c", rank, ":", "-n", "1", "sh", "-c", "exit 3"]);
        assert!(ended.err.contains("perusal run: rank 2 exited with status 3"), "{ended:?}");
        ended.code()
    };
    assert_eq!(status("sleep 0.1"), 0);
    assert_eq!(status("sleep 0.1; exit 4"), 3);
}

#[test]
fn a_program_that_a_rank_starts_is_not_the_rank() {
    // The rank closes nothing and passes its environment on; its own attaching keeps the descriptor from the program.
    let dir = Directory::new("started");
    let up = dir.file("up");
    let script = format!(
        "{RANK} init touch {up} sleep & until test -e {up}; do sleep 0.01; done; \
         {RANK} init; echo status $?; kill $!; wait"
    );
    let ended = run(&["-n", "1", "sh", "-c", &script]);
    assert!(ended.out.contains("status 71"), "{ended:?}");
    assert!(ended.err.contains("rank 0 of this job is process"), "{ended:?}");
}

#[test]
fn a_rank_finds_its_job_where_what_has_started_it_has_closed_the_descriptors() {
    let ended = run(&["-n", "2", RANK, "close", "init", "finalize"]);
    assert_eq!((ended.code(), ended.err.as_str()), (0, ""));
    // Another job's number, as it is left in an environment: that launcher's memory is not this job's.
    let ended = run(&["-n", "1", "env", "PERUSAL_JOB_ID=7", RANK, "close", "init", "finalize"]);
    assert_eq!(ended.code(), 71, "{ended:?}");
    assert!(ended.err.contains("PERUSAL_JOB_FD is not open"), "{ended:?}");
}

#[test]
fn a_reader_that_goes_away_ends_the_job_quietly() {
    let mut shell = Command::new("sh");
    shell.args(["-c", &format!("{{ {PERUSAL} run -n 2 yes; echo status $? >&2; }} | head -n 1")]);
    let ended = start_as(&mut shell, &[], Stdio::null()).end();
    assert_eq!(ended.out, "y\n");
    assert_eq!(ended.err, "status 141\n");
}

#[test]
fn output_that_cannot_be_written_is_an_error_with_its_reason() {
    let mut shell = Command::new("sh");
    shell.args(["-c", &format!("exec {PERUSAL} run -n 2 echo lost >/dev/full")]);
    let ended = start_as(&mut shell, &[], Stdio::null()).end();
    assert_eq!(ended.code(), 1, "{ended:?}");
    assert!(ended.err.contains("standard output: No space left on device"), "{ended:?}");
}

#[test]
fn few_descriptors_are_made_more_and_the_ranks_get_the_old_limit() {
    let mut shell = Command::new("sh");
    shell.args(["-c", &format!("ulimit -Sn 40; exec {PERUSAL} run -n 50 sh -c 'ulimit -Sn'")]);
    let ended = start_as(&mut shell, &[], Stdio::null()).end();
    assert_eq!(ended.code(), 0, "{ended:?}");
    assert_eq!(ended.lines(), vec!["40"; 50]);
}

/// A file that the kernel would run, were this another processor.
fn foreign(path: &str) {
    let mut header = [0_u8; 64];
    header[..7].copy_from_slice(b"\x7fELF\x02\x01\x01");
    // An executable of a machine that nobody builds.
    header[16..20].copy_from_slice(&[2, 0, 0xfe, 0xca]);
    executable(Path::new(path), &header);
}

#[test]
fn a_program_for_another_processor_is_not_given_to_a_shell() {
    let dir = Directory::new("foreign");
    let (path, directory) = (dir.file("program"), dir.path().to_str().unwrap().to_owned());
    foreign(&path);
    for program in [&["-n", "2", path.as_str()][..], &["-wdir", &directory, "-n", "1", "program"]] {
        let ended = run(program);
        assert_eq!(ended.code(), 126, "{ended:?}");
        let what = "cannot be run: it is neither a script nor a program for this processor";
        assert!(ended.err.contains(what) && ended.err.lines().count() == 1, "{ended:?}");
    }
}

#[test]
fn a_tune_file_of_no_use_is_named_and_never_waited_for() {
    let dir = Directory::new("tune-files");
    let (broken, fifo) = (dir.file("broken"), dir.file("fifo"));
    std::fs::write(&broken, "broken = [").unwrap();
    assert!(Command::new("mkfifo").arg(&fifo).status().unwrap().success());
    for (path, why) in [(broken, "line 1: "), (fifo, "it is not a regular file")] {
        let mut command = Command::new(PERUSAL);
        command.arg("run").env("PERUSAL_TUNE_FILE", &path);
        let ended = start_as(&mut command, &["-n", "1", "true"], Stdio::null()).end();
        assert_eq!(ended.code(), 0, "{ended:?}");
        let note = format!("perusal run: note: the tune file {path} is ignored: {why}");
        assert!(ended.err.starts_with(&note), "{ended:?}");
    }
}

#[test]
fn a_launcher_needs_no_large_stack() {
    let mut shell = Command::new("sh");
    shell.args(["-c", &format!("ulimit -s 96; exec {PERUSAL} run -n 2 sh -c 'ulimit -s'")]);
    let ended = start_as(&mut shell, &[], Stdio::null()).end();
    assert_eq!((ended.code(), ended.lines()), (0, vec!["96"; 2]), "{ended:?}");
}

/// Refuses, in this process and all that it starts, to send signals.
fn refuse_signals() -> std::io::Result<()> {
    let statement =
        |code: u32, yes: u8, no: u8, k: u32| libc::sock_filter { code: code as u16, jt: yes, jf: no, k };
    let (load, equal, give) = (
        libc::BPF_LD | libc::BPF_W | libc::BPF_ABS,
        libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K,
        libc::BPF_RET | libc::BPF_K,
    );
    let mut filter = [
        // The number of the system call comes first.
        statement(load, 0, 0, 0),
        statement(equal, 3, 0, libc::SYS_kill as u32),
        statement(equal, 2, 0, libc::SYS_pidfd_send_signal as u32),
        statement(equal, 1, 0, libc::SYS_tgkill as u32),
        statement(give, 0, 0, libc::SECCOMP_RET_ALLOW),
        statement(give, 0, 0, libc::SECCOMP_RET_ERRNO | libc::EPERM as u32),
    ];
    let program = libc::sock_fprog { len: filter.len() as u16, filter: filter.as_mut_ptr() };
    // SAFETY: the program and its statements live through the call, which copies them.
    let refused = unsafe {
        libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0
            || libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &raw const program) != 0
    };
    if refused { Err(std::io::Error::last_os_error()) } else { Ok(()) }
}

#[test]
fn a_launcher_that_may_not_kill_ends_all_the_same() {
    let mut command = Command::new(PERUSAL);
    command.args(["run", "-n", "1", "sh", "-c", "exit 3", ":", "-n", "1", "sleep", "1000"]);
    // SAFETY: `refuse_signals` makes system calls only.
    unsafe { command.pre_exec(refuse_signals) };
    let job = start_as(&mut command, &[], Stdio::null());
    let mark = job.mark.clone();
    let ended = job.end();
    assert_eq!(ended.code(), 3, "{ended:?}");
    assert!(ended.err.contains("rank 0 exited with status 3"), "{ended:?}");
    assert!(ended.err.contains("cannot be killed: Operation not permitted"), "{ended:?}");
    // The kernel ends it with its parent.
    nothing_is_left(&mark);
}

#[test]
fn a_launcher_waits_for_ranks_that_take_seconds_to_die() {
    let dir = Directory::new("dawdle");
    let slow = format!("exec {RANK} dawdle touch {} sleep", dir.file("up"));
    let other = format!("until test -e {}; do sleep 0.01; done; exit 3", dir.file("up"));
    let job = start(&["-n", "1", "sh", "-c", &slow, ":", "-n", "1", "sh", "-c", &other], Stdio::null());
    let mark = job.mark.clone();
    let ended = job.end();
    assert_eq!(ended.code(), 3, "{ended:?}");
    assert!(!ended.err.contains("left behind"), "{ended:?}");
    nothing_is_left(&mark);
}
