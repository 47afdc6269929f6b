//! The pool of this process, for `libperusal-heap.so` (`preload/`): large memory from malloc in the job's shared heap.
//!
//! The library stands before the C library's malloc from the program's first instruction on, and knows nothing of jobs. When this
//! one is loaded, before `main` where the program is linked with it, it looks for the other one and hands it a table of
//! functions. From then on what malloc gives is shared if it is large. The job's memory is mapped here for that, once: a job
//! that is joined later ([`crate::shm::Job::from_environment`]) takes this mapping.
//!
//! Over a fork: [`before_fork`] holds the pool's lock, the child makes itself copies of its blocks, and the parent stands still
//! until it has them, so that the child sees what it would have seen of ordinary memory.

use core::ffi::{c_char, c_int, c_void};
use core::ptr::null_mut;
use std::cell::RefCell;
use std::sync::OnceLock;

use super::arena::{Arena, FreeRuns};
use crate::shm::{FD_VARIABLE, Memory, variable};
use crate::sync::{Arc, MutexGuard};
use crate::variables::{Overrides, VARIABLES, VariableId, table};

/// What the preloaded library is given. `preload/heap.h` has the same.
#[repr(C)]
struct HookTable {
    version: u32,
    base: *mut u8,
    len: usize,
    /// Bytes from which memory comes from here.
    from: usize,
    take: extern "C" fn(usize, usize, c_int) -> *mut c_void,
    give: extern "C" fn(*mut c_void) -> c_int,
    bytes: extern "C" fn(*mut c_void) -> usize,
    resize: extern "C" fn(*mut c_void, usize) -> c_int,
}

// SAFETY: written before it is handed out, and only read since.
unsafe impl Send for HookTable {}
// SAFETY: as above.
unsafe impl Sync for HookTable {}

/// Of [`HookTable`].
const VERSION: u32 = 1;

static POOL: OnceLock<Arena> = OnceLock::new();
static TABLE: OnceLock<HookTable> = OnceLock::new();

type Serve = unsafe extern "C" fn(*const HookTable) -> c_int;

/// The job's memory, if it is mapped already.
pub(crate) fn memory() -> Option<Arc<Memory>> {
    POOL.get().map(|pool| Arc::clone(pool.memory()))
}

/// Serves the preloaded library, if there is one. The C bindings have the dynamic linker call this when they are loaded.
pub extern "C" fn at_load() {
    // Who preloads nothing pays for one look at a list of symbols.
    let Some(serve) = preloaded() else { return };
    let Some(table) = table_of_job() else { return };
    // SAFETY: integers and functions that live as long as the process; a child calls the third while it has one thread.
    let watched = unsafe { libc::pthread_atfork(Some(before_fork), Some(after_fork), Some(in_child)) };
    if watched == 0 {
        stay();
        // SAFETY: the preloaded library's function takes such a table, which is never changed or moved.
        unsafe { serve(TABLE.get_or_init(|| table)) };
    }
}

/// Keeps this library from being unloaded, since malloc is to call it. Where it is a part of the program it stays anyway.
fn stay() {
    // SAFETY: all zeros is a value of it; the call fills it for an address of our own, and the name that it gives is the
    // dynamic linker's, which keeps it. Opened anew, nothing is loaded or run.
    unsafe {
        let mut own: libc::Dl_info = core::mem::zeroed();
        let ours = at_load as extern "C" fn() as *const c_void;
        if libc::dladdr(ours, &raw mut own) != 0 && !own.dli_fname.is_null() {
            libc::dlopen(own.dli_fname, libc::RTLD_NOW | libc::RTLD_NOLOAD | libc::RTLD_NODELETE);
        }
    }
}

/// The function by which the preloaded library is served.
fn preloaded() -> Option<Serve> {
    // SAFETY: a NUL-terminated name.
    let symbol = unsafe { libc::dlsym(libc::RTLD_DEFAULT, c"perusal_heap_serve".as_ptr()) };
    // SAFETY: that name is the preloaded library's alone, and stands for such a function.
    (!symbol.is_null()).then(|| unsafe { core::mem::transmute::<*mut c_void, Serve>(symbol) })
}

/// The pool's functions, if the environment asks for them and there is a job with a heap. What is wrong with the environment
/// MPI_Init will say.
fn table_of_job() -> Option<HookTable> {
    let settings = Overrides::from_environment().ok()?;
    if settings.number(VariableId::ShareHeap) != Some(1) {
        return None;
    }
    let memory = Memory::look(variable(FD_VARIABLE).ok()??).ok()?;
    let from = settings.number(VariableId::ShareHeapFrom);
    let from =
        from.unwrap_or_else(|| (VARIABLES[VariableId::ShareHeapFrom as usize].default)(&memory.shape()));
    let pool = Arena::new(Arc::new(memory), overcommits_never())?;
    let pool = POOL.get_or_init(|| pool);
    let (base, len) = pool.memory().heap()?.mapped();
    let from = if from == table::NEVER { usize::MAX } else { from as usize };
    Some(HookTable { version: VERSION, base: base.as_ptr(), len, from, take, give, bytes, resize })
}

/// Whether the kernel promises no more memory than there is.
fn overcommits_never() -> bool {
    std::fs::read_to_string("/proc/sys/vm/overcommit_memory").is_ok_and(|mode| mode.trim() == "2")
}

extern "C" fn take(bytes: usize, align: usize, zeroed: c_int) -> *mut c_void {
    POOL.get().map_or(null_mut(), |pool| pool.take(bytes, align, zeroed != 0)).cast()
}

extern "C" fn give(addr: *mut c_void) -> c_int {
    POOL.get().is_some_and(|pool| pool.give(addr.cast())).into()
}

extern "C" fn bytes(addr: *mut c_void) -> usize {
    POOL.get().map_or(0, |pool| pool.bytes(addr.cast()))
}

extern "C" fn resize(addr: *mut c_void, bytes: usize) -> c_int {
    POOL.get().is_some_and(|pool| pool.resize(addr.cast(), bytes)).into()
}

/// What is held over a fork: the pool's lock, and a pipe that ends when the child is ready.
struct Fork {
    _held: MutexGuard<'static, FreeRuns>,
    pipe: Option<[c_int; 2]>,
}

thread_local! {
    /// Of the fork that this thread has under way.
    static FORK: RefCell<Option<Fork>> = const { RefCell::new(None) };
}

fn fork() -> Option<Fork> {
    FORK.try_with(|fork| fork.try_borrow_mut().ok()?.take()).ok().flatten()
}

extern "C" fn before_fork() {
    let Some(pool) = POOL.get() else { return };
    let _held = pool.hold();
    let mut ends = [0; 2];
    // SAFETY: `ends` has room for two descriptors.
    let piped = pool.has_blocks() && unsafe { libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC) } == 0;
    let fork = Fork { _held, pipe: piped.then_some(ends) };
    let _ = FORK.try_with(|place| place.try_borrow_mut().map(|mut place| *place = Some(fork)));
}

extern "C" fn after_fork() {
    // Whatever other threads take and give waits with us: the child copies what is there now.
    let Some(Fork { _held, pipe }) = fork() else { return };
    let Some([read, write]) = pipe else { return };
    let mut byte: c_char = 0;
    // SAFETY: our own descriptors, and room for the byte that never comes: the end of the pipe does, when the child is ready,
    // is gone, or there is none.
    unsafe {
        libc::close(write);
        while libc::read(read, (&raw mut byte).cast(), 1) < 0
            && std::io::Error::last_os_error().raw_os_error() == Some(libc::EINTR)
        {}
        libc::close(read);
    }
}

extern "C" fn in_child() {
    let fork = fork();
    let Some(pool) = POOL.get() else { return };
    if !pool.part() {
        const WHY: &str =
            "perusal: no memory for a child process's copy of what its parent's malloc shares\n";
        // SAFETY: a literal; then the child ends, which has no way to go on with memory that is its parent's.
        unsafe {
            libc::write(2, WHY.as_ptr().cast(), WHY.len());
            libc::_exit(127);
        }
    }
    if let Some(Fork { pipe: Some(ends), .. }) = fork {
        for end in ends {
            // SAFETY: our own copies of the descriptors.
            unsafe { libc::close(end) };
        }
    }
}
