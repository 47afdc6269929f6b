//! Starting one rank, at the price of a vfork: the child runs in the launcher's memory until it has become the program,
//! so nothing is copied however many ranks there are, and a failure comes back as a plain number.

use crate::supervisor::reaper::Reaper;
use rustix::process::{Resource, Rlimit};
use std::ffi::{CString, OsStr};
use std::io::{self, Read};
use std::os::fd::RawFd;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

/// What a rank is started with.
#[derive(Debug)]
pub struct RankStart<'a> {
    /// Program (looked up in PATH if it has no slash, then in the working directory) and arguments.
    pub argv: &'a [CString],
    /// Environment: the program's, then the rank's own.
    pub env: [&'a [CString]; 2],
    /// Working directory, if another than the launcher's.
    pub wdir: Option<&'a CString>,
    /// CPUs to run on; empty for all.
    pub cpus: &'a [u32],
    /// Standard input, output and error.
    pub stdio: [RawFd; 3],
    /// The job's memory and the door to the launcher; the rank inherits them under the same numbers.
    pub inherited: [RawFd; 2],
    /// The signal mask to start with.
    pub mask: &'a libc::sigset_t,
    /// The limit on open descriptors to go back to, if it was raised.
    pub descriptors: Option<Rlimit>,
    /// What gets the rank's process group.
    pub reaper: Option<&'a Reaper>,
}

/// Which step of starting failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SpawnStep {
    /// Making the process.
    Clone,
    /// Going to the working directory.
    Directory,
    /// Becoming the program.
    Exec,
}

/// A start that failed.
#[derive(Debug)]
pub struct SpawnError {
    /// Where.
    pub step: SpawnStep,
    /// Why.
    pub error: io::Error,
}

/// All that the child needs, made before it exists: it must not allocate.
struct ChildSetup<'a> {
    start: &'a RankStart<'a>,
    argv: *const *const libc::c_char,
    envp: *const *const libc::c_char,
    here: Option<&'a CString>,
    executable: Option<&'a CString>,
    affinity: &'a [u64],
    launcher: libc::pid_t,
    failed: Option<(SpawnStep, i32)>,
}

/// Bytes of the child's stack besides what its arguments need: `execvpe` keeps a path and, for a script without a
/// first line, a second list of arguments there.
const STACK: usize = 256 << 10;

/// Starts a rank in a process group of its own; its process id, which is also the group's.
/// The rank dies with the launcher.
pub fn spawn(start: &RankStart<'_>) -> Result<i32, SpawnError> {
    let pointers = |strings: &mut dyn Iterator<Item = &CString>| -> Vec<*const libc::c_char> {
        strings.map(|string| string.as_ptr()).chain([std::ptr::null()]).collect()
    };
    let argv = pointers(&mut start.argv.iter());
    let envp = pointers(&mut start.env.iter().copied().flatten());
    let affinity = mask_of(start.cpus);
    let here = in_working_directory(&start.argv[0]);
    let executable = executable(&start.argv[0], start.wdir);
    let mut stack = vec![0_u128; (STACK + argv.len() * 16) / 16];
    let mut child = ChildSetup {
        start,
        argv: argv.as_ptr(),
        envp: envp.as_ptr(),
        here: here.as_ref(),
        executable: executable.as_ref(),
        affinity: &affinity,
        // SAFETY: the call has no preconditions.
        launcher: unsafe { libc::getpid() },
        failed: None,
    };
    let flags = libc::CLONE_VM | libc::CLONE_VFORK | libc::SIGCHLD;
    let all = all_signals();
    let mut own = all;
    // SAFETY: `stack` and `child` outlive the child's use of them, because CLONE_VFORK suspends this thread, the only
    // one, until the child has exec'd or exited; the stack's end is 16-byte aligned; `run_child` neither allocates nor
    // panics nor returns before `_exit`. All signals are blocked meanwhile, so that no handler runs in the child on
    // shared memory; the child sets the rank's mask itself.
    let pid = unsafe {
        libc::sigprocmask(libc::SIG_SETMASK, &raw const all, &raw mut own);
        let top = stack.as_mut_ptr_range().end;
        let pid = libc::clone(run_child, top.cast(), flags, (&raw mut child).cast());
        libc::sigprocmask(libc::SIG_SETMASK, &raw const own, std::ptr::null_mut());
        pid
    };
    let failed = |step, errno| SpawnError { step, error: io::Error::from_raw_os_error(errno) };
    if pid < 0 {
        return Err(failed(
            SpawnStep::Clone,
            io::Error::last_os_error().raw_os_error().unwrap_or(libc::EAGAIN),
        ));
    }
    // SAFETY: a volatile read of a live local that the child, which has ended or exec'd by now, may have written.
    match unsafe { (&raw const child.failed).read_volatile() } {
        None => Ok(pid),
        Some((step, errno)) => {
            // SAFETY: reaps the child that has just exited; a null status is allowed.
            unsafe { libc::waitpid(pid, std::ptr::null_mut(), 0) };
            Err(failed(step, errno))
        }
    }
}

/// The child's whole life in the launcher's memory. Only calls that are safe after vfork.
extern "C" fn run_child(arg: *mut libc::c_void) -> libc::c_int {
    // SAFETY: `spawn` passes its own `ChildSetup` and waits until this function has exec'd or exited.
    let child = unsafe { &mut *arg.cast::<ChildSetup<'_>>() };
    let step = prepare_and_exec(child);
    // SAFETY: errno of the failed call; glibc's location is valid in this thread.
    let errno = unsafe { *libc::__errno_location() };
    // SAFETY: a volatile write through the exclusive reference, seen by `spawn` after this process has ended.
    unsafe { (&raw mut child.failed).write_volatile(Some((step, errno))) };
    // SAFETY: leaves without running the launcher's exit handlers.
    unsafe { libc::_exit(127) }
}

/// Returns only if something failed: where.
fn prepare_and_exec(child: &ChildSetup<'_>) -> SpawnStep {
    let start = child.start;
    // SAFETY: system calls on integers, and on memory that `spawn` keeps alive: strings end with NUL, lists with null,
    // the affinity mask has the length that is passed. None allocates, none takes a lock of this process.
    unsafe {
        libc::setpgid(0, 0);
        libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL, 0, 0, 0);
        // The launcher may have died before that took hold.
        if libc::getppid() != child.launcher {
            libc::_exit(127);
        }
        if let Some(reaper) = start.reaper {
            // Without the group the reaper still finds processes by the job's id.
            let _ = reaper.add_own_group();
        }
        // Rust ignores SIGPIPE in the launcher, and that would be inherited.
        libc::signal(libc::SIGPIPE, libc::SIG_DFL);
        for (to, from) in (0..).zip(start.stdio) {
            if from != to {
                libc::dup2(from, to);
            }
        }
        for descriptor in start.inherited {
            libc::fcntl(descriptor, libc::F_SETFD, 0);
        }
        if let Some(limit) = start.descriptors {
            let _ = rustix::process::setrlimit(Resource::Nofile, limit);
        }
        if !child.affinity.is_empty() {
            // Binding is a wish: a CPU that went offline must not keep the job from running.
            libc::sched_setaffinity(0, size_of_val(child.affinity), child.affinity.as_ptr().cast());
        }
        if let Some(wdir) = start.wdir
            && libc::chdir(wdir.as_ptr()) != 0
        {
            return SpawnStep::Directory;
        }
        libc::sigprocmask(libc::SIG_SETMASK, start.mask, std::ptr::null_mut());
        if let Some(executable) = child.executable {
            libc::execve(executable.as_ptr(), child.argv, child.envp);
            return SpawnStep::Exec;
        }
        libc::execvpe(*child.argv, child.argv, child.envp);
        if let Some(here) = child.here
            && *libc::__errno_location() == libc::ENOENT
        {
            libc::execvpe(here.as_ptr(), child.argv, child.envp);
        }
    }
    SpawnStep::Exec
}

/// The program's name with `./` before it if it has no slash: people name a program of the working directory without.
fn in_working_directory(program: &CString) -> Option<CString> {
    let name = program.as_bytes();
    (!name.contains(&b'/')).then(|| CString::new([b"./", name].concat()).ok()).flatten()
}

/// The path, as seen from `wdir`, of a program that is machine code; `None` for scripts and for what cannot be read.
/// `execvpe` gives whatever the kernel does not know to a shell, and so the machine code of another processor.
fn executable(program: &CString, wdir: Option<&CString>) -> Option<CString> {
    let path = |bytes: &[u8]| Path::new(OsStr::from_bytes(bytes)).to_owned();
    let name = path(program.as_bytes());
    let candidates = if program.as_bytes().contains(&b'/') {
        vec![name]
    } else {
        let directories = std::env::var_os("PATH").unwrap_or_else(|| "/bin:/usr/bin".into());
        let found = std::env::split_paths(&directories).map(|directory| directory.join(&name));
        found.chain([Path::new(".").join(&name)]).collect()
    };
    let base = wdir.map_or_else(PathBuf::new, |wdir| path(wdir.as_bytes()));
    let found = candidates.into_iter().find(|candidate| {
        let seen = base.join(candidate);
        seen.is_file() && rustix::fs::access(&seen, rustix::fs::Access::EXEC_OK).is_ok()
    })?;
    let mut magic = [0; 4];
    std::fs::File::open(base.join(&found)).and_then(|mut file| file.read_exact(&mut magic)).ok()?;
    (magic == *b"\x7fELF").then(|| CString::new(found.into_os_string().into_vec()).ok()).flatten()
}

/// The CPUs as the kernel's mask; empty if there are none.
fn mask_of(cpus: &[u32]) -> Vec<u64> {
    let words = cpus.iter().max().map_or(0, |last| *last as usize / 64 + 1);
    let mut mask = vec![0; words];
    for cpu in cpus {
        mask[*cpu as usize / 64] |= 1 << (cpu % 64);
    }
    mask
}

fn all_signals() -> libc::sigset_t {
    let mut set = std::mem::MaybeUninit::uninit();
    // SAFETY: sigfillset fills the set.
    unsafe {
        libc::sigfillset(set.as_mut_ptr());
        set.assume_init()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpus_become_a_mask() {
        assert!(mask_of(&[]).is_empty());
        assert_eq!(mask_of(&[0, 3, 65]), [0b1001, 0b10]);
    }

    #[test]
    fn only_a_bare_name_is_looked_for_in_the_working_directory() {
        assert_eq!(in_working_directory(&c"a".to_owned()), Some(c"./a".to_owned()));
        assert_eq!(in_working_directory(&c"/bin/a".to_owned()), None);
    }
}
