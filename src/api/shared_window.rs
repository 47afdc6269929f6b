//! Windows whose parts lie one behind the other (MPI_Win_allocate_shared).

use super::communicator::Communicator;
use super::element::Element;
use super::threading::{Single, Threading};
use super::window::{Locked, Window};
use crate::error::{Error, Result};
use crate::rma::Memory;
use core::ops::{Deref, DerefMut};
use core::ptr::NonNull;

impl<T: Threading> Communicator<T> {
    /// As [`window`](Self::window), with the ranks' elements one behind the other in memory (MPI_Win_allocate_shared):
    /// an array that [`Window::lock_whole`] gives as one slice.
    /// The pages that begin in a rank's part are near to that rank.
    ///
    /// # Errors
    /// As for [`window`](Self::window).
    ///
    /// ```
    /// # fn main() -> perusal::Result<()> {
    /// perusal::run_threads(3, |world| {
    ///     let window = world.shared_window::<u32>(1 + world.rank())?;
    ///     window.lock(world.rank())?.fill(world.rank() as u32);
    ///     world.barrier()?;
    ///     assert_eq!(window.lock_whole()?[..], [0, 1, 1, 2, 2, 2]);
    ///     world.barrier()?;
    ///     window.free()
    /// })?;
    /// # Ok(()) }
    /// ```
    pub fn shared_window<E: Element>(&self, len: usize) -> Result<Window<'_, E, T>> {
        self.make_window(len, Memory::Shared)
    }
}

impl<E: Element, T: Threading> Window<'_, E, T> {
    /// Locks all ranks' elements, rank after rank, and returns them as one slice:
    /// nobody else accesses them until it is dropped.
    ///
    /// # Errors
    /// [`Error::RmaFlavor`] for a window of [`Communicator::window`], whose parts are apart;
    /// else as for [`lock`](Self::lock).
    pub fn lock_whole(&self) -> Result<Whole<'_, E, T>> {
        let (mut first, mut len) = (NonNull::dangling(), 0_usize);
        for rank in 0..self.size() {
            let part = self.part(rank)?;
            match part.1 {
                0 => continue,
                _ if len == 0 => first = part.0,
                _ if part.0.as_ptr() == first.as_ptr().wrapping_add(len) => {}
                _ => return Err(Error::RmaFlavor("only the parts of a shared window are one slice")),
            }
            len += part.1;
        }
        // All lock in the same order, so that no two wait for each other.
        let locks = (0..self.size()).map(|rank| self.lock(rank)).collect::<Result<_>>()?;
        Ok(Whole { elements: (first, len), _locks: locks })
    }
}

/// All ranks' elements of a shared window, locked exclusively: a slice.
#[must_use = "dropped, it unlocks"]
pub struct Whole<'w, E: Element, T: Threading = Single> {
    elements: (NonNull<E>, usize),
    _locks: Vec<Locked<'w, E, T>>,
}

impl<E: Element, T: Threading> Deref for Whole<'_, E, T> {
    type Target = [E];

    fn deref(&self) -> &[E] {
        // SAFETY: the parts of a window that lives, each of which begins where the one before ends (`lock_whole`),
        // aligned, which may have any bytes. The locks of all are held exclusively,
        // so nobody writes them (API window rules 1 and 2).
        unsafe { core::slice::from_raw_parts(self.elements.0.as_ptr(), self.elements.1) }
    }
}

impl<E: Element, T: Threading> DerefMut for Whole<'_, E, T> {
    fn deref_mut(&mut self) -> &mut [E] {
        // SAFETY: the parts of a window that lives, one behind the other (`lock_whole`), aligned, which may have any
        // bytes. The locks of all are held exclusively, so nobody reads or writes them, and the guard is borrowed
        // exclusively (API window rules 1 and 2).
        unsafe { core::slice::from_raw_parts_mut(self.elements.0.as_ptr(), self.elements.1) }
    }
}
