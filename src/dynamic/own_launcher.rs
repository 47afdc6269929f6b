//! A launcher for a program that was started without one, from the first spawn or port on.

use super::launcher::door;
use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::shm::machine;
use rustix::io::{FdFlags, fcntl_setfd};
use std::ffi::{CStr, OsStr};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

/// The launcher of this process: it ends when the lifeline closes, which happens when this process ends.
struct OwnLauncher {
    door: OwnedFd,
    _lifeline: std::io::PipeWriter,
}

static OWN: OnceLock<Result<OwnLauncher>> = OnceLock::new();

/// The door to the launcher of this process, which is started if need be.
///
/// # Errors
/// [`Error::Other`] if the launcher is not there or cannot be started, or ranks are threads.
pub(super) fn of(engine: &Engine) -> Result<BorrowedFd<'static>> {
    let own = OWN.get_or_init(|| start(engine)).as_ref();
    own.map(|own| own.door.as_fd()).map_err(Clone::clone)
}

fn start(engine: &Engine) -> Result<OwnLauncher> {
    let cannot = |what: String| {
        Error::Other(format!("{what}; start the program with mpiexec -n 1, and it can start and meet others"))
    };
    if engine.job().are_threads() {
        return Err(cannot("the ranks of this program are threads".into()));
    }
    let program =
        beside_the_library().ok_or_else(|| cannot("the launcher is not where it was installed".into()))?;
    let failed = |error: std::io::Error| {
        cannot(format!("{} cannot be started: {}", program.display(), machine::why(&error)))
    };
    let (theirs, own) = door().map_err(failed)?;
    let (their_lifeline, lifeline) = std::io::pipe().map_err(failed)?;
    let job = engine.job().segment().file();
    let passed = [job.as_fd(), theirs.as_fd(), own.as_fd(), their_lifeline.as_fd()];
    let numbers = passed.map(|fd| fd.as_raw_fd());
    let mut command = Command::new(&program);
    command.args(["run", "--adopt", &numbers.map(|number| number.to_string()).join(",")]);
    command.stdin(Stdio::null());
    // SAFETY: between fork and exec nothing but system calls on descriptors that this function keeps open.
    unsafe {
        command.pre_exec(move || {
            for number in numbers {
                fcntl_setfd(BorrowedFd::borrow_raw(number), FdFlags::empty())?;
            }
            Ok(())
        });
    }
    // Nobody waits for it: it outlives this process, if only by a moment.
    command.spawn().map_err(failed)?;
    Ok(OwnLauncher { door: own, _lifeline: lifeline })
}

/// The launcher that was installed with this library: `bin/perusal` beside `lib`.
fn beside_the_library() -> Option<PathBuf> {
    let mut about = core::mem::MaybeUninit::<libc::Dl_info>::zeroed();
    let here = beside_the_library as *const () as *const libc::c_void;
    // SAFETY: any address may be asked for, and `about` is room for the answer; all zeros is one, too.
    let about = unsafe { (libc::dladdr(here, about.as_mut_ptr()) != 0).then(|| about.assume_init()) }?;
    if about.dli_fname.is_null() {
        return None;
    }
    // SAFETY: not NULL, so the name of the file that the address belongs to, which stays loaded.
    let file = unsafe { CStr::from_ptr(about.dli_fname) };
    let file = Path::new(OsStr::from_bytes(file.to_bytes())).to_owned();
    let near = |file: PathBuf| Some(file.parent()?.parent()?.join("bin/perusal"));
    // Where it was found, or, where that is a link, where it leads to.
    let places = [near(file.clone()), std::fs::canonicalize(file).ok().and_then(near)];
    let in_path = || {
        let path = std::env::var_os("PATH")?;
        std::env::split_paths(&path).map(|dir| dir.join("perusal")).find(|program| program.is_file())
    };
    places.into_iter().flatten().find(|program| program.is_file()).or_else(in_path)
}
