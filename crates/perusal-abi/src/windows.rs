//! Windows by handle.

use crate::abi;
use crate::check;
use crate::error::{Error, Result};
use crate::handles::{HandleKind, HandleTable};
use crate::rma::{Flavor, Window};
use core::ffi::{c_int, c_void};
use core::ops::Deref;
use std::sync::Arc;

/// What a window's handle names.
#[derive(Debug)]
pub struct WindowObject {
    window: Window,
    /// Whether the members' parts lie one behind the other, so that one without bytes has a place too.
    contiguous: bool,
    predefined: Predefined,
}

/// The attributes that a window has from the start (MPI 5.0 §12.2.6). Programs get the addresses of all but the base.
#[derive(Debug)]
struct Predefined {
    base: usize,
    size: isize,
    /// `None` if it does not fit into an `int`.
    unit: Option<c_int>,
    flavor: c_int,
    model: c_int,
}

static MADE: HandleTable<WindowObject> = HandleTable::new(HandleKind::Win);

/// What is wrong with a handle that is no window's.
pub fn invalid(handle: usize) -> Error {
    Error::Win(match handle {
        abi::MPI_WIN_NULL => "MPI_WIN_NULL",
        0 => "0 is no handle",
        _ => "no such window, or it has been freed",
    })
}

/// The window of `handle`, without counting a reference.
///
/// # Safety
/// No thread frees it while the result is in use. MPI asks this of the program for every handle that it passes.
///
/// # Errors
/// [`Error::Win`] if there is none.
#[inline]
pub unsafe fn find<'a>(handle: usize) -> Result<&'a WindowObject> {
    // SAFETY: nobody frees the window while the result is in use, as the caller promises.
    unsafe { peek(handle) }.ok_or_else(|| invalid(handle))
}

/// The same, or nothing if there is none.
///
/// # Safety
/// As for [`find`].
#[inline(always)]
#[must_use]
pub unsafe fn peek<'a>(handle: usize) -> Option<&'a WindowObject> {
    // SAFETY: nobody frees the window while the result is in use (argument rule 2),
    // so its place in the table stays filled.
    unsafe { MADE.peek(handle) }
}

/// The window of `handle`, kept alive by the result.
///
/// # Errors
/// [`Error::Win`] if there is none.
pub fn get(handle: usize) -> Result<Arc<WindowObject>> {
    MADE.get(handle).ok_or_else(|| invalid(handle))
}

/// Gives a new window its handle.
///
/// # Errors
/// [`Error::NoMem`] if no handle is left.
pub fn insert(object: WindowObject) -> Result<usize> {
    let handle = MADE.insert(Arc::new(object))?;
    if check::is_on() {
        check::made(check::ObjectKind::Win, handle);
    }
    Ok(handle)
}

/// The handles of all windows.
pub fn made() -> Vec<usize> {
    MADE.handles()
}

/// Takes `handle` out of use.
///
/// # Errors
/// [`Error::Win`] if there is none.
pub fn remove(handle: usize) -> Result<Arc<WindowObject>> {
    MADE.remove(handle).ok_or_else(|| invalid(handle))
}

impl WindowObject {
    /// A new window, whose own memory begins at address `base` here. `contiguous` says whether the
    /// members' parts lie one behind the other.
    #[must_use]
    pub fn new(window: Window, base: usize, contiguous: bool) -> Self {
        let (bytes, unit) = window.own_size();
        let predefined = Predefined {
            base,
            size: bytes as isize,
            unit: c_int::try_from(unit).ok(),
            flavor: match window.flavor() {
                Flavor::Create => abi::MPI_WIN_FLAVOR_CREATE,
                Flavor::Allocate => abi::MPI_WIN_FLAVOR_ALLOCATE,
                Flavor::Dynamic => abi::MPI_WIN_FLAVOR_DYNAMIC,
                Flavor::Shared => abi::MPI_WIN_FLAVOR_SHARED,
            },
            model: abi::MPI_WIN_UNIFIED,
        };
        Self { window, contiguous, predefined }
    }

    /// The address of a part of so many bytes, as a program is given it:
    /// NULL for one that has neither bytes nor a place between others.
    #[must_use]
    pub fn address(&self, addr: usize, bytes: u64) -> usize {
        if bytes > 0 || self.contiguous { addr } else { 0 }
    }

    /// The value of a predefined attribute as C has it: the base itself, the address of anything else.
    /// `Ok(None)` for another key.
    ///
    /// # Errors
    /// [`Error::TooLarge`] for a displacement unit that is no `int`.
    pub fn predefined(&self, keyval: c_int) -> Result<Option<usize>> {
        let own = &self.predefined;
        let address: *const c_void = match keyval {
            abi::MPI_WIN_BASE => return Ok(Some(own.base)),
            abi::MPI_WIN_SIZE => (&raw const own.size).cast(),
            abi::MPI_WIN_DISP_UNIT => match &own.unit {
                Some(unit) => core::ptr::from_ref(unit).cast(),
                None => return Err(Error::TooLarge("the displacement unit")),
            },
            abi::MPI_WIN_CREATE_FLAVOR => (&raw const own.flavor).cast(),
            abi::MPI_WIN_MODEL => (&raw const own.model).cast(),
            _ => return Ok(None),
        };
        Ok(Some(address as usize))
    }

    /// The window alone.
    #[must_use]
    pub fn into_window(self) -> Window {
        self.window
    }
}

impl Deref for WindowObject {
    type Target = Window;
    #[inline]
    fn deref(&self) -> &Window {
        &self.window
    }
}
