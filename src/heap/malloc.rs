//! The hook of `libperusal-heap.so` (`preload/`), which stands before the C library's malloc:
//! large blocks come from the shared heap.
//!
//! The preloaded library runs from the program's first instruction on and knows nothing of jobs. When the C bindings
//! are loaded, before `main` where the program is linked with them, [`serve_preloaded`] looks for it and hands it a
//! table of functions. From then on large blocks from malloc are shared.
//! The job's memory is mapped for that ([`inherited::map_early`]).
//!
//! A child that `fork` makes gets copies of all blocks ([`super::fork`]).
//!
//! **Process-wide state.** malloc is one in a process, so its arena is: `ARENA` and `TABLE`, both written once and
//! never freed; and `SERVED`, so that this happens once.

use super::arena::Arena;
use super::fork;
use crate::shm::inherited;
use crate::sync::Arc;
use crate::variables::{Overrides, VariableId, table};
use core::ffi::{c_int, c_void};
use core::ptr::null_mut;
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
    if fork::watch() {
        // SAFETY: `preload/heap.h` declares the function with this table, which lies in a static and never changes.
        unsafe { take_table(TABLE.get_or_init(|| table)) };
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

/// The arena of this process's malloc, if it takes blocks from the shared heap.
pub(super) fn arena() -> Option<&'static Arena> {
    ARENA.get()
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
