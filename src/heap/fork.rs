//! What becomes of a process's blocks of the shared heap when it calls `fork`: the child makes private copies, and the
//! parent waits until it has them, so that the child sees what it would have seen of ordinary memory.
//!
//! `before_fork` holds the locks of the blocks, so that the child finds them free, and copies what was there then.
//! `posix_spawn` and `vfork` call nothing of this, and need nothing of it.
//!
//! **Process-wide state**: `FORK`, one for each thread, between the two ends of its fork; `WATCHED`, written once.

use super::arena::Arena;
use super::remapped_ranges::RemappedState;
use super::{malloc, remap};
use crate::shm::FreeRuns;
use crate::sync::MutexGuard;
use core::ffi::c_void;
use std::cell::RefCell;
use std::io::{ErrorKind, PipeReader, PipeWriter, Read};
use std::sync::OnceLock;

/// Whether `fork` calls the functions below.
static WATCHED: OnceLock<bool> = OnceLock::new();

/// Has `fork` copy the blocks of this process from now on. Returns whether it does.
pub(super) fn watch() -> bool {
    *WATCHED.get_or_init(|| {
        // SAFETY: the three functions have no arguments and live as long as the process, because of `stay`.
        let watched = unsafe { libc::pthread_atfork(Some(before_fork), Some(after_fork), Some(in_child)) };
        if watched == 0 {
            stay();
        }
        watched == 0
    })
}

/// Keeps this library from being unloaded, since `fork` is to call it, and malloc may.
/// Where it is a part of the program it stays anyway.
fn stay() {
    // SAFETY: zeros are a `Dl_info`, which `dladdr` fills for an address of this library; the name in it belongs to the
    // dynamic linker, which keeps it as long as the library is loaded. RTLD_NOLOAD loads and runs nothing.
    unsafe {
        let mut own: libc::Dl_info = core::mem::zeroed();
        let ours = in_child as extern "C" fn() as *const c_void;
        if libc::dladdr(ours, &raw mut own) != 0 && !own.dli_fname.is_null() {
            libc::dlopen(own.dli_fname, libc::RTLD_NOW | libc::RTLD_NOLOAD | libc::RTLD_NODELETE);
        }
    }
}

/// What is held over a fork: locks, and a pipe that ends when the child is ready.
struct Fork {
    _blocks: Option<MutexGuard<'static, FreeRuns>>,
    remapped: Option<MutexGuard<'static, RemappedState>>,
    pipe: Option<(PipeReader, PipeWriter)>,
}

thread_local! {
    /// The fork that this thread has under way.
    static FORK: RefCell<Option<Fork>> = const { RefCell::new(None) };
}

fn take_fork() -> Option<Fork> {
    FORK.try_with(|fork| fork.try_borrow_mut().ok()?.take()).ok().flatten()
}

extern "C" fn before_fork() {
    let remapped = remap::existing().map(|buffers| buffers.lock());
    let _blocks = malloc::arena().map(Arena::hold);
    let has_blocks = malloc::arena().is_some_and(Arena::has_blocks);
    let has_pages = remapped.as_ref().is_some_and(|state| state.has_pages());
    let pipe = (has_blocks || has_pages).then(std::io::pipe).and_then(Result::ok);
    let fork = Fork { _blocks, remapped, pipe };
    let _ = FORK.try_with(|place| place.try_borrow_mut().map(|mut place| *place = Some(fork)));
}

extern "C" fn after_fork() {
    // Other threads that allocate, free, or send wait with this one: the child copies what is there now.
    let Some(Fork { _blocks, remapped: _remapped, pipe }) = take_fork() else { return };
    let Some((mut reader, writer)) = pipe else { return };
    drop(writer);
    // Nothing is ever written: the pipe ends when the child is ready or dead, or if there is none.
    while reader.read(&mut [0]).is_err_and(|error| error.kind() == ErrorKind::Interrupted) {}
}

extern "C" fn in_child() {
    // Dropped at the end: the locks, and both ends of the pipe.
    let mut fork = take_fork();
    let state = fork.as_mut().and_then(|fork| fork.remapped.as_mut());
    let remapped = remap::existing().zip(state).is_none_or(|(buffers, state)| buffers.become_child(state));
    if !remapped || !malloc::arena().is_none_or(Arena::become_child) {
        die(b"perusal: no memory for a child process's copy of what its parent shares with the job\n");
    }
}

/// Ends the process, which cannot go on with its memory, and says why.
pub(super) fn die(why: &[u8]) -> ! {
    let _ = rustix::io::write(rustix::stdio::stderr(), why);
    // SAFETY: ends the process.
    unsafe { libc::_exit(127) }
}
