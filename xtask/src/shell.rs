//! What a shell would do: commands, their output, files put in place.

use std::ffi::OsStr;
use std::fs;
use std::io::Read;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

/// An error is a sentence for the person who ran the command; an empty one if everything has been said.
pub type Result<T = ()> = std::result::Result<T, String>;

/// Returns the source tree.
pub fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask lies in the tree")
}

/// Returns cargo's target directory.
pub fn target() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), |path| root().join(path))
}

/// Returns a command that runs `program` in the source tree,
/// without what cargo has added to the environment of this program.
pub fn command(program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new(program);
    command.current_dir(root());
    if let Ok(path) = std::env::var("LD_LIBRARY_PATH") {
        let target = target();
        let cargos = |part: &&str| Path::new(part).starts_with(&target) || part.contains("/toolchains/");
        let own: Vec<&str> = path.split(':').filter(|part| !part.is_empty() && !cargos(part)).collect();
        if own.is_empty() {
            command.env_remove("LD_LIBRARY_PATH");
        } else {
            command.env("LD_LIBRARY_PATH", own.join(":"));
        }
    }
    command
}

/// Returns this program with other arguments.
pub fn itself<const N: usize>(arguments: [&str; N]) -> Result<Command> {
    let program = std::env::current_exe().map_err(|error| error.to_string())?;
    let mut command = command(program);
    command.args(arguments);
    Ok(command)
}

/// Returns cargo with these arguments.
pub fn cargo<S: AsRef<OsStr>>(arguments: impl IntoIterator<Item = S>) -> Command {
    let mut cargo = command(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.args(arguments);
    // Of the package that this program is, not of those that are built.
    let inherited = std::env::vars_os().map(|(name, _)| name);
    for name in inherited.filter(|name| name.to_string_lossy().starts_with("CARGO_PKG_")) {
        cargo.env_remove(name);
    }
    cargo.env_remove("CARGO_MANIFEST_DIR").env_remove("CARGO_MANIFEST_PATH");
    cargo
}

/// Returns the command with a lower priority: it takes the processors that others leave.
pub fn nice(of: &Command) -> Command {
    let mut nice = command("nice");
    nice.args(["-n", "10"]).arg(of.get_program()).args(of.get_args());
    for (name, value) in of.get_envs() {
        match value {
            Some(value) => nice.env(name, value),
            None => nice.env_remove(name),
        };
    }
    nice
}

/// Returns the command as people would type it.
pub fn line(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    words.map(|word| word.to_string_lossy().into_owned()).collect::<Vec<_>>().join(" ")
}

/// Runs the command to its end, which must be a success.
pub fn run(command: &mut Command) -> Result {
    let status = command.status().map_err(|error| format!("{}: {error}", line(command)))?;
    if status.success() { Ok(()) } else { Err(format!("{}: {status}", line(command))) }
}

/// Runs the command, which must succeed, and returns what it printed.
pub fn output(command: &mut Command) -> Result<String> {
    let out = command.stderr(Stdio::inherit()).output();
    let out = out.map_err(|error| format!("{}: {error}", line(command)))?;
    if !out.status.success() {
        return Err(format!("{}: {}", line(command), out.status));
    }
    Ok(String::from_utf8_lossy(&out.stdout).into_owned())
}

/// Runs the command, and returns whether it succeeded and everything that it printed.
pub fn attempt(command: &mut Command) -> (bool, String) {
    match command.stdin(Stdio::null()).output() {
        Err(error) => (false, format!("{}: {error}\n", line(command))),
        Ok(out) => {
            let text = [out.stdout, out.stderr].concat();
            (out.status.success(), String::from_utf8_lossy(&text).into_owned())
        }
    }
}

/// Runs the command as [`attempt`] does, and ends it once it has printed nothing for so long.
pub fn attempt_until_silent(mut command: Command, silence: Duration) -> (bool, String) {
    let shown = line(&command);
    let started = std::io::pipe().and_then(|(reader, writer)| {
        let child = command.stdin(Stdio::null()).stdout(writer.try_clone()?).stderr(writer).spawn()?;
        Ok((child, reader))
    });
    let (mut child, mut reader) = match started {
        Ok(started) => started,
        Err(error) => return (false, format!("{shown}: {error}\n")),
    };
    // It has the pipe's other end, whose last copy the reader waits for.
    drop(command);
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || {
        let mut piece = [0; 4096];
        while let Ok(length @ 1..) = reader.read(&mut piece) {
            let _ = sender.send(piece[..length].to_vec());
        }
    });
    let mut text = Vec::new();
    let mut is_silent = false;
    loop {
        match receiver.recv_timeout(silence) {
            Ok(piece) => text.extend(piece),
            Err(mpsc::RecvTimeoutError::Disconnected) => break,
            Err(mpsc::RecvTimeoutError::Timeout) if is_silent => break,
            Err(mpsc::RecvTimeoutError::Timeout) => {
                is_silent = true;
                text.extend(format!("{shown}: printed nothing for {} s\n", silence.as_secs()).into_bytes());
                let _ = child.kill();
            }
        }
    }
    let is_good = child.wait().is_ok_and(|status| status.success()) && !is_silent;
    (is_good, String::from_utf8_lossy(&text).into_owned())
}

/// Installs what is missing of Debian's packages: `NAME`, or `NAME=PROGRAM` where the program has another name.
pub fn need(packages: &[&str]) -> Result {
    run(command(root().join(".ci/setup")).args(packages))
}

/// Whether the machine has this program.
pub fn has(program: &str) -> bool {
    let paths = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&paths).any(|folder| folder.join(program).is_file())
}

/// Returns the distribution that the arguments begin with, or else `dist`, and the other arguments.
pub fn distribution(arguments: &[String]) -> Result<(PathBuf, &[String])> {
    let (path, rest) = match arguments.split_first() {
        Some((first, rest)) if Path::new(first).join("bin").is_dir() => (root().join(first), rest),
        _ => (root().join("dist"), arguments),
    };
    if path.join("bin/mpicc").exists() && path.join("bin/mpiexec").exists() {
        Ok((path, rest))
    } else {
        Err(format!("no distribution in {} (run: make dist)", path.display()))
    }
}

/// Says what went wrong with a file.
pub fn at<T>(path: &Path, result: std::io::Result<T>) -> Result<T> {
    result.map_err(|error| format!("{}: {error}", path.display()))
}

/// Reads a text.
pub fn read(path: impl AsRef<Path>) -> Result<String> {
    at(path.as_ref(), fs::read_to_string(path.as_ref()))
}

/// Writes a file.
pub fn write(path: impl AsRef<Path>, text: impl AsRef<[u8]>) -> Result {
    at(path.as_ref(), fs::write(path.as_ref(), text))
}

/// Makes a folder and those above it.
pub fn folder(path: impl AsRef<Path>) -> Result<PathBuf> {
    at(path.as_ref(), fs::create_dir_all(path.as_ref()))?;
    Ok(path.as_ref().to_path_buf())
}

/// Makes an empty folder.
pub fn empty(path: impl AsRef<Path>) -> Result<PathBuf> {
    let _ = fs::remove_dir_all(path.as_ref());
    folder(path)
}

/// Puts a file in place at once, so that a program that runs keeps the old one.
pub fn put(from: &Path, to: &Path) -> Result {
    let new = to.with_file_name(format!(".{}.new", name(to)));
    at(from, fs::copy(from, &new))?;
    at(to, fs::rename(&new, to))
}

/// Writes a program that everybody may run.
pub fn put_program(text: &str, to: &Path) -> Result {
    write(to, text)?;
    at(to, fs::set_permissions(to, fs::Permissions::from_mode(0o755)))
}

/// Makes a symbolic link, in the place of an older one.
pub fn link(to: &str, link: &Path) -> Result {
    let _ = fs::remove_file(link);
    at(link, symlink(to, link))
}

/// Copies a folder with all that is in it.
pub fn copy_folder(from: &Path, to: &Path) -> Result {
    folder(to)?;
    for path in files(from)? {
        let there = to.join(name(&path));
        if path.is_dir() {
            copy_folder(&path, &there)?;
        } else {
            at(&path, fs::copy(&path, &there))?;
        }
    }
    Ok(())
}

/// Returns what lies in a folder, in the order of names.
pub fn files(path: &Path) -> Result<Vec<PathBuf>> {
    let entries = at(path, fs::read_dir(path))?;
    let mut found: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    found.sort();
    Ok(found)
}

/// Returns the names, without the extension, of the files of a folder that have this extension.
pub fn stems(path: &Path, extension: &str) -> Result<Vec<String>> {
    let found = files(path)?.into_iter().filter(|file| file.extension().is_some_and(|e| e == extension));
    Ok(found.filter_map(|file| Some(file.file_stem()?.to_string_lossy().into_owned())).collect())
}

/// Returns a path's last part.
pub fn name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// Returns the last lines of a text.
pub fn tail(text: &str, lines: usize) -> String {
    let all: Vec<&str> = text.lines().collect();
    all[all.len().saturating_sub(lines)..].join("\n")
}

/// Returns the number that an environment variable has, or `default`.
pub fn number(variable: &str, default: u64) -> u64 {
    std::env::var(variable).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

/// What the CPUs do during a test: its log says so if it fails,
/// for one that met its limit has either hung, or had no CPU.
pub struct Effort {
    start: Instant,
    /// Seconds of CPU time that the processes had that this one has started, and that all processes had.
    before: (f64, f64),
}

impl Effort {
    /// The beginning of a test.
    pub fn begin() -> Self {
        Self { start: Instant::now(), before: Self::spent() }
    }

    /// How long it took, and the CPU time that was spent meanwhile.
    pub fn end(self) -> (String, String) {
        let (took, now) = (self.start.elapsed().as_secs_f64(), Self::spent());
        let own = now.0 - self.before.0;
        let others = (now.1 - self.before.1 - own).max(0.0);
        let cpus = std::thread::available_parallelism().map_or(1, usize::from);
        let spent = format!(
            "It took {took:.1} s: of {cpus} CPUs the test had {own:.1} s, other programs {others:.1} s."
        );
        (format!("{took:.1} s"), spent)
    }

    /// Runs a job, and adds to what it printed what the CPUs did if it failed.
    pub fn of(job: impl FnOnce() -> (bool, String)) -> (bool, String) {
        let effort = Self::begin();
        let (good, mut log) = job();
        if !good {
            log += &format!("\n{}\n", effort.end().1);
        }
        (good, log)
    }

    fn spent() -> (f64, f64) {
        // Both files count in hundredths of a second. Fields 16 and 17 of the first are the time of processes that have
        // been waited for; the command's name before them may have spaces. The second has the time of programs first,
        // then idle time and that of waiting for disks, then that of interrupts and of other machines.
        let own = read("/proc/self/stat").unwrap_or_default();
        let own = own.rsplit(')').next().unwrap_or_default().split_whitespace();
        let own: f64 = own.skip(13).take(2).filter_map(|word| word.parse::<f64>().ok()).sum();
        let all = read("/proc/stat").unwrap_or_default();
        let all = all.lines().next().unwrap_or_default().split_whitespace().skip(1).take(8).enumerate();
        let all: f64 =
            all.filter(|(at, _)| !matches!(at, 3 | 4)).filter_map(|(_, word)| word.parse::<f64>().ok()).sum();
        (own / 100.0, all / 100.0)
    }
}

#[cfg(test)]
mod tests {
    use super::{Effort, attempt, attempt_until_silent, command};
    use std::time::Duration;

    #[test]
    fn a_command_that_is_heard_runs_to_its_end_and_one_that_falls_silent_is_ended() {
        let mut speaks = command("sh");
        speaks.args(["-c", "echo one; echo two >&2; exit 0"]);
        assert_eq!(attempt_until_silent(speaks, Duration::from_secs(600)), (true, "one\ntwo\n".into()));
        let mut fails = command("sh");
        fails.args(["-c", "echo one; exit 3"]);
        assert_eq!(attempt_until_silent(fails, Duration::from_secs(600)), (false, "one\n".into()));
        let mut silent = command("sleep");
        silent.arg("100000");
        let (is_good, text) = attempt_until_silent(silent, Duration::from_millis(50));
        assert!(!is_good && text.contains("printed nothing"), "{text}");
    }

    #[test]
    fn a_test_that_fails_says_what_cpu_time_it_had() {
        let shell = |script: &str| Effort::of(|| attempt(command("sh").args(["-c", script])));
        assert_eq!(shell("echo well"), (true, "well\n".into()));
        // A million steps are more than the hundredth of a second that the kernel counts in.
        let (is_good, log) = shell("echo ill; i=0; while [ $i -lt 1000000 ]; do i=$((i+1)); done; exit 1");
        let had = log.split_once("CPUs the test had ").and_then(|(_, rest)| rest.split_once(" s"));
        let had = had.and_then(|(seconds, _)| seconds.parse().ok());
        assert!(!is_good && log.starts_with("ill\n") && had > Some(0.0), "{log}");
    }
}
