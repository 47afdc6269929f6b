//! The hook of `libperusal-heap.so` (`preload/`), which stands before the C library's malloc:
//! large blocks come from the shared heap.
//!
//! The preloaded library runs from the program's first instruction on and knows nothing of jobs. When the C bindings
//! are loaded, before `main` where the program is linked with them, [`serve_preloaded`] looks for it and hands it a
//! table of functions. From then on large blocks from malloc are shared.
//! The job's memory is mapped for that ([`inherited::map_early`]).
//!
//! Over a fork, `before_fork` holds the arena's lock; the child makes private copies of its blocks, and the parent
//! waits until it has them, so that the child sees what it would have seen of ordinary memory.
//!
//! **Process-wide state.** malloc is one in a process, so its arena is: `ARENA` and `TABLE`, both written once and
//! never freed; `SERVED`, so that this happens once; and `FORK`, one for each thread, between the two ends of its fork.

use super::arena::Arena;
use crate::shm::{FreeRuns, inherited};
use crate::sync::{Arc, MutexGuard};
use crate::variables::{Overrides, VariableId, table};
use core::ffi::{c_int, c_void};
use core::ptr::null_mut;
use std::cell::RefCell;
use std::io::{ErrorKind, PipeReader, PipeWriter, Read};
use std::sync::{Once, OnceLock};

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

// SAFETY: numbers, functions, and an address that is only compared with others; nothing of it changes once it is made.
unsafe impl Send for HookTable {}
// SAFETY: nothing of a table changes once it is made.
unsafe impl Sync for HookTable {}

/// Version of [`HookTable`].
const VERSION: u32 = 1;

static ARENA: OnceLock<Arena> = OnceLock::new();
static TABLE: OnceLock<HookTable> = OnceLock::new();
static SERVED: Once = Once::new();

type Serve = unsafe extern "C" fn(*const HookTable) -> c_int;

/// Serves the preloaded library, if there is one; again, it does nothing. The C bindings have the dynamic linker call
/// this when they are loaded; a program in Rust calls it when it joins its job.
pub extern "C" fn serve_preloaded() {
    SERVED.call_once(serve);
}

fn serve() {
    // A program that preloads nothing pays for one look-up of a symbol.
    let Some(take_table) = preloaded() else { return };
    let Some(table) = table_of_job() else { return };
    // SAFETY: the three functions have no arguments and live as long as the process, because of `stay`.
    let watched = unsafe { libc::pthread_atfork(Some(before_fork), Some(after_fork), Some(in_child)) };
    if watched == 0 {
        stay();
        // SAFETY: `preload/heap.h` declares the function with this table, which lies in a static and never changes.
        unsafe { take_table(TABLE.get_or_init(|| table)) };
    }
}

/// Keeps this library from being unloaded, since malloc is to call it.
/// Where it is a part of the program it stays anyway.
fn stay() {
    // SAFETY: zeros are a `Dl_info`, which `dladdr` fills for an address of this library; the name in it belongs to the
    // dynamic linker, which keeps it as long as the library is loaded. RTLD_NOLOAD loads and runs nothing.
    unsafe {
        let mut own: libc::Dl_info = core::mem::zeroed();
        let ours = serve_preloaded as extern "C" fn() as *const c_void;
        if libc::dladdr(ours, &raw mut own) != 0 && !own.dli_fname.is_null() {
            libc::dlopen(own.dli_fname, libc::RTLD_NOW | libc::RTLD_NOLOAD | libc::RTLD_NODELETE);
        }
    }
}

/// The function by which the preloaded library is served.
fn preloaded() -> Option<Serve> {
    // SAFETY: the name is terminated by a zero.
    let symbol = unsafe { libc::dlsym(libc::RTLD_DEFAULT, c"perusal_heap_serve".as_ptr()) };
    // SAFETY: only the preloaded library defines a symbol of that name, a function of this type.
    (!symbol.is_null()).then(|| unsafe { core::mem::transmute::<*mut c_void, Serve>(symbol) })
}

/// The arena's functions, if the environment asks for them and there is a job with a heap. MPI_Init reports what is
/// wrong with the environment.
fn table_of_job() -> Option<HookTable> {
    let overrides = Overrides::from_environment().ok()?;
    if overrides.number(VariableId::ShareHeap) != Some(1) {
        return None;
    }
    let memory = inherited::map_early()?;
    let from = overrides.number(VariableId::ShareHeapFrom);
    let from = from.unwrap_or_else(|| (VariableId::ShareHeapFrom.variable().default)(&memory.shape()));
    let arena = Arena::new(Arc::clone(memory), overcommits_never())?;
    let region = ARENA.get_or_init(|| arena).heap().region();
    let (base, len) = (region.base(), region.len() as usize);
    let from = if from == table::NEVER { usize::MAX } else { from as usize };
    Some(HookTable { version: VERSION, base: base.as_ptr(), len, from, take, give, bytes, resize })
}

/// Whether the kernel promises no more memory than there is.
fn overcommits_never() -> bool {
    std::fs::read_to_string("/proc/sys/vm/overcommit_memory").is_ok_and(|mode| mode.trim() == "2")
}

extern "C" fn take(bytes: usize, align: usize, zeroed: c_int) -> *mut c_void {
    ARENA.get().map_or(null_mut(), |arena| arena.allocate(bytes, align, zeroed != 0)).cast()
}

extern "C" fn give(addr: *mut c_void) -> c_int {
    ARENA.get().is_some_and(|arena| arena.free(addr.cast())).into()
}

extern "C" fn bytes(addr: *mut c_void) -> usize {
    ARENA.get().map_or(0, |arena| arena.bytes(addr.cast()))
}

extern "C" fn resize(addr: *mut c_void, bytes: usize) -> c_int {
    ARENA.get().is_some_and(|arena| arena.resize(addr.cast(), bytes)).into()
}

/// What is held over a fork: the arena's lock, and a pipe that ends when the child is ready.
struct Fork {
    _held: MutexGuard<'static, FreeRuns>,
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
    let Some(arena) = ARENA.get() else { return };
    let _held = arena.hold();
    let pipe = arena.has_blocks().then(std::io::pipe).and_then(Result::ok);
    let fork = Fork { _held, pipe };
    let _ = FORK.try_with(|place| place.try_borrow_mut().map(|mut place| *place = Some(fork)));
}

extern "C" fn after_fork() {
    // Other threads that allocate and free wait with this one: the child copies what is there now.
    let Some(Fork { _held, pipe }) = take_fork() else { return };
    let Some((mut reader, writer)) = pipe else { return };
    drop(writer);
    // Nothing is ever written: the pipe ends when the child is ready or dead, or if there is none.
    while reader.read(&mut [0]).is_err_and(|error| error.kind() == ErrorKind::Interrupted) {}
}

extern "C" fn in_child() {
    // Dropped at the end: the lock, and both ends of the pipe.
    let _fork = take_fork();
    let Some(arena) = ARENA.get() else { return };
    if !arena.become_child() {
        const WHY: &[u8] =
            b"perusal: no memory for a child process's copy of what its parent's malloc shares\n";
        let _ = rustix::io::write(rustix::stdio::stderr(), WHY);
        // SAFETY: ends the process; the child cannot go on with memory that is its parent's.
        unsafe { libc::_exit(127) }
    }
}
