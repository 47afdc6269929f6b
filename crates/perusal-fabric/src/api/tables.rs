//! Function tables. A table says its size first, and has its functions in the order that the interface fixes.

use super::constants::FI_ENOSYS;

/// A table of `N` functions. Each is called with the signature that the interface gives its place.
#[derive(Debug)]
#[repr(C)]
pub struct Table<const N: usize> {
    size: usize,
    functions: [*const (); N],
}

// SAFETY: a table holds addresses of functions and is never written.
unsafe impl<const N: usize> Sync for Table<N> {}

impl<const N: usize> Table<N> {
    /// A table of these functions.
    pub const fn new(functions: [*const (); N]) -> Self {
        Self { size: size_of::<Self>(), functions }
    }

    /// Returns the address of function `at`.
    pub fn function(&self, at: usize) -> *const () {
        self.functions[at]
    }
}

/// `struct fi_ops`: close, bind, control, ops_open, tostr, ops_set.
pub type FidOps = Table<6>;

/// What stands where a function is not supported: an int or ssize_t function that returns -FI_ENOSYS whatever its
/// arguments are.
///
/// # Safety
///
/// None is needed: it reads no argument.
pub unsafe extern "C" fn unsupported() -> isize {
    -(FI_ENOSYS as isize)
}

/// [`unsupported`] as an entry of a table.
pub const NONE: *const () = unsupported as *const ();
