//! What models share.
//!
//! | file | what it defines |
//! |---|---|
//! | `tool` | a tool that listens to an event |

pub mod tool;

use loom::cell::UnsafeCell;

/// A value that threads access by plain loads and stores. Where what is modelled does not order two accesses, of which
/// one writes, loom fails the model before the second one runs.
#[derive(Debug, Default)]
pub struct Plain<T>(UnsafeCell<T>);

// SAFETY: `UnsafeCell::with` and `with_mut` panic before they run beside an access with which they conflict; each
// access takes place in them.
unsafe impl<T: Send> Sync for Plain<T> {}

impl<T: Copy> Plain<T> {
    #[track_caller]
    pub fn new(value: T) -> Self {
        Self(UnsafeCell::new(value))
    }

    #[track_caller]
    pub fn get(&self) -> T {
        // SAFETY: loom panics before this runs beside a write.
        self.0.with(|value| unsafe { *value })
    }

    #[track_caller]
    pub fn set(&self, value: T) {
        self.update(|own| *own = value);
    }

    #[track_caller]
    pub fn update<R>(&self, change: impl FnOnce(&mut T) -> R) -> R {
        // SAFETY: loom panics before this runs beside another access, `change`'s own included.
        self.0.with_mut(|value| change(unsafe { &mut *value }))
    }
}
