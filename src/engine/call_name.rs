//! The name of the MPI function that the program has called, found on the stack: so that no call has to note it.
//!
//! A frame belongs to an MPI function if the dynamic symbol table says so; the frames of the engine have no symbols
//! there. Found by walking the stack with the unwinder that the standard library brings along. In a program that is
//! linked statically, or in one that uses the Rust API, no name is found.

use core::ffi::{CStr, c_int, c_void};
use core::ptr;

/// Frames that are looked at, from the innermost outwards.
const FRAMES: usize = 64;

/// Returns the innermost MPI function on this thread's stack, without the `P` of the profiling interface; empty if
/// there is none. It takes some microseconds and the lock of the dynamic linker: for a rank that has waited long.
#[cfg(not(any(miri, perusal_loom)))]
pub fn mpi_call_name() -> String {
    let mut search = Search { frames: 0, found: String::new() };
    // SAFETY: `visit` has the type that the unwinder calls, and gets the address of `search`, which outlives the call
    // and is used by nobody else meanwhile. No frame is changed or left.
    unsafe { _Unwind_Backtrace(visit, ptr::from_mut(&mut search).cast()) };
    search.found
}

/// Neither Miri nor loom can walk the stack.
#[cfg(any(miri, perusal_loom))]
pub fn mpi_call_name() -> String {
    String::new()
}

struct Search {
    frames: usize,
    found: String,
}

#[repr(C)]
struct UnwindContext {
    _opaque: [u8; 0],
}

/// Go on with the next frame.
const URC_NO_REASON: c_int = 0;
/// Any other value stops the walk.
const URC_END_OF_STACK: c_int = 5;

#[cfg(not(any(miri, perusal_loom)))]
unsafe extern "C" {
    fn _Unwind_Backtrace(
        visit: extern "C" fn(*mut UnwindContext, *mut c_void) -> c_int,
        argument: *mut c_void,
    ) -> c_int;
    fn _Unwind_GetIP(context: *mut UnwindContext) -> usize;
}

#[cfg(not(any(miri, perusal_loom)))]
extern "C" fn visit(context: *mut UnwindContext, search: *mut c_void) -> c_int {
    // SAFETY: `mpi_call_name` has passed the address of its `Search`, which nobody else uses while the unwinder runs.
    let search = unsafe { &mut *search.cast::<Search>() };
    // SAFETY: the context is the one that the unwinder calls with.
    let address = unsafe { _Unwind_GetIP(context) };
    search.frames += 1;
    // One less: a call that does not return may be the last instruction of its function.
    if let Some(name) = function_at(address.wrapping_sub(1)) {
        search.found = name;
        return URC_END_OF_STACK;
    }
    if search.frames < FRAMES { URC_NO_REASON } else { URC_END_OF_STACK }
}

/// The MPI function that the instruction at `address` belongs to.
#[cfg(not(any(miri, perusal_loom)))]
fn function_at(address: usize) -> Option<String> {
    let mut about = libc::Dl_info {
        dli_fname: ptr::null(),
        dli_fbase: ptr::null_mut(),
        dli_sname: ptr::null(),
        dli_saddr: ptr::null_mut(),
    };
    // SAFETY: the address is only compared, and `about` may be written.
    let known = unsafe { libc::dladdr(address as *const c_void, &raw mut about) };
    if known == 0 || about.dli_sname.is_null() {
        return None;
    }
    // SAFETY: dladdr(3): the string table of a loaded object, which the frame on this stack keeps loaded.
    let symbol = unsafe { CStr::from_ptr(about.dli_sname) }.to_str().ok()?;
    let is_mpi = |name: &str| name.starts_with("MPI_") || name.starts_with("MPIX_");
    let name = symbol.strip_prefix('P').filter(|rest| is_mpi(rest)).unwrap_or(symbol);
    // The forms with large counts may be the same function.
    let name = name.strip_suffix("_c").unwrap_or(name);
    is_mpi(name).then(|| name.to_owned())
}
