//! `membarrier(2)`: makes every running thread of the processes that registered execute a full fence. Miri has none.

use rustix::thread::{MembarrierCommand as Command, membarrier_query};

/// The system call by libc's `syscall`, not inline: tests count and refuse it there.
fn membarrier(command: Command) -> std::io::Result<()> {
    if cfg!(miri) {
        return Err(std::io::ErrorKind::Unsupported.into());
    }
    // SAFETY: the call takes numbers and touches no memory of the program.
    let result = unsafe { libc::syscall(libc::SYS_membarrier, command as libc::c_int, 0, 0) };
    if result < 0 { Err(std::io::Error::last_os_error()) } else { Ok(()) }
}

/// Whether the kernel has the expedited global form and this process may use it.
#[must_use]
pub fn is_there() -> bool {
    if cfg!(miri) {
        return false;
    }
    let commands = membarrier_query();
    commands.contains_command(Command::GlobalExpedited)
        && commands.contains_command(Command::RegisterGlobalExpedited)
}

/// Registers this process: from now on [`issue`] in any process fences its running threads.
///
/// # Errors
///
/// What the kernel says when it refuses.
pub fn register() -> std::io::Result<()> {
    membarrier(Command::RegisterGlobalExpedited)
}

/// Fences every running thread of all registered processes.
///
/// # Panics
///
/// When the kernel refuses, which it does not after [`register`] has succeeded.
pub fn issue() {
    membarrier(Command::GlobalExpedited).expect("the kernel granted membarrier(2) to `register`");
}

/// Registers this process for [`issue_private`], once. False where the kernel has no such thing, or refuses it.
#[cfg(not(perusal_loom))]
pub fn join_private() -> bool {
    static JOINED: std::sync::OnceLock<bool> = std::sync::OnceLock::new();
    *JOINED.get_or_init(|| membarrier(Command::RegisterPrivateExpedited).is_ok())
}

/// Fences every running thread of this process.
///
/// # Panics
///
/// When the kernel refuses, which it does not after [`join_private`] has said yes.
pub fn issue_private() {
    membarrier(Command::PrivateExpedited).expect("the kernel granted membarrier(2) to `join_private`");
}
