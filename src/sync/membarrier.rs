//! `membarrier(2)`: makes every running thread of the processes that registered execute a full fence.

/// Whether the kernel has the expedited global form and this process may use it.
#[must_use]
pub fn is_there() -> bool {
    let needed =
        i64::from(libc::MEMBARRIER_CMD_GLOBAL_EXPEDITED | libc::MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED);
    let commands = call(libc::MEMBARRIER_CMD_QUERY);
    commands > 0 && commands & needed == needed
}

/// Registers this process: from now on [`issue`] in any process fences its running threads.
///
/// # Errors
///
/// What the kernel says when it refuses.
pub fn register() -> std::io::Result<()> {
    if call(libc::MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED) == 0 {
        Ok(())
    } else {
        Err(std::io::Error::last_os_error())
    }
}

/// Fences every running thread of all registered processes.
///
/// # Panics
///
/// When the kernel refuses, which it does not after [`register`] has succeeded.
pub fn issue() {
    let result = call(libc::MEMBARRIER_CMD_GLOBAL_EXPEDITED);
    assert!(result == 0, "membarrier(2) was granted at start-up and is refused now");
}

/// Registers this process for [`issue_private`], once. False where the kernel has no such thing, or refuses it.
#[cfg(not(perusal_loom))]
pub fn join_private() -> bool {
    static JOINED: std::sync::OnceLock<bool> = std::sync::OnceLock::new();
    *JOINED.get_or_init(|| call(libc::MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED) == 0)
}

/// Fences every running thread of this process.
///
/// # Panics
///
/// When the kernel refuses, which it does not after [`join_private`] has said yes.
pub fn issue_private() {
    let result = call(libc::MEMBARRIER_CMD_PRIVATE_EXPEDITED);
    assert!(result == 0, "membarrier(2) was granted before and is refused now");
}

fn call(command: libc::c_int) -> libc::c_long {
    // SAFETY: membarrier takes no pointers and changes no memory of ours.
    unsafe { libc::syscall(libc::SYS_membarrier, command, 0, 0) }
}
