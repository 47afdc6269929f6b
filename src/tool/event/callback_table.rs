//! The callback table of a handle: which function of a tool is called at which safety level. A change puts a new table
//! in the place of the old one, at any time; an event reads the one that is in force without a lock,
//! and never half of it.
//!
//! The old table is freed once no reader can hold it any more (`crossbeam-epoch`). No thread waits for that, and a
//! reader that stands still delays none: tables are changed when a tool registers a function, a few times in a run.

use crate::sync::Ordering;
use crate::sync::epoch::{self, Atomic, Owned};
use core::ffi::c_void;
use core::ptr;

/// A C function, as an address, and the data that is passed to it. Null: none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CallbackPointer {
    /// The function.
    pub function: *mut c_void,
    /// Passed to it, never dereferenced.
    pub data: *mut c_void,
}

impl CallbackPointer {
    /// No function.
    pub const NONE: CallbackPointer = CallbackPointer { function: ptr::null_mut(), data: ptr::null_mut() };
}

/// For each of `N` safety levels, the function that is called there.
#[derive(Debug)]
pub struct CallbackTable<const N: usize>(Atomic<[CallbackPointer; N]>);

impl<const N: usize> Default for CallbackTable<N> {
    fn default() -> Self {
        Self::new()
    }
}

impl<const N: usize> CallbackTable<N> {
    /// No function at any level.
    #[must_use]
    pub fn new() -> Self {
        CallbackTable(Atomic::new([CallbackPointer::NONE; N]))
    }

    /// Puts `callbacks`, one for each level, in force.
    pub fn set(&self, callbacks: [CallbackPointer; N]) {
        let guard = epoch::pin();
        // AcqRel: callback table edge, pairs with Acquire in `get`, publishes the table; and that of the table before,
        // which is ours to free.
        let old = self.0.swap(Owned::new(callbacks), Ordering::AcqRel, &guard);
        // SAFETY: the swap took it out, so no thread can find it any more, and only this thread retires it; readers
        // that found it before are in epochs that the deferred destruction waits for.
        unsafe { guard.defer_destroy(old) };
    }

    /// What is called at `level`, which is below `N`.
    #[inline]
    pub fn get(&self, level: usize) -> CallbackPointer {
        let guard = epoch::pin();
        // Acquire: callback table edge, pairs with AcqRel in `set`.
        let table = self.0.load(Ordering::Acquire, &guard);
        // SAFETY: never null, from `new` on; and not freed while this thread's guard is there.
        let table = unsafe { table.deref() };
        table[level]
    }
}

impl<const N: usize> Drop for CallbackTable<N> {
    fn drop(&mut self) {
        // SAFETY: self is borrowed mutably, so no other thread reads the table.
        let guard = unsafe { epoch::unprotected() };
        let table = self.0.swap(epoch::Shared::null(), Ordering::Relaxed, guard);
        // SAFETY: never null, and taken out just now: no reader is left, and there will be none.
        drop(unsafe { table.into_owned() });
    }
}

// SAFETY: functions and data are words that only the tool's callbacks interpret; the safety level that the tool gave
// with each (MPI 5.0 §15.3.8) says from which threads it may be called.
unsafe impl<const N: usize> Send for CallbackTable<N> {}
// SAFETY: a table is never changed once it is in force;
// the safety levels say from which threads its functions may be called.
unsafe impl<const N: usize> Sync for CallbackTable<N> {}

#[cfg(all(test, not(perusal_loom)))]
mod tests {
    use super::*;
    use crate::tool::event::safety::{LEVELS, Safety};

    fn callback(n: usize) -> CallbackPointer {
        CallbackPointer { function: ptr::without_provenance_mut(n), data: ptr::without_provenance_mut(n) }
    }

    #[test]
    fn each_level_has_its_own_function_and_the_last_change_counts() {
        let table = CallbackTable::<LEVELS>::new();
        assert_eq!(table.get(Safety::ThreadSafe.index()), CallbackPointer::NONE);
        for round in 1..5 {
            table.set(core::array::from_fn(|level| callback(10 * round + level)));
            for level in Safety::ALL {
                assert_eq!(table.get(level.index()), callback(10 * round + level.index()));
            }
        }
    }

    #[test]
    fn function_and_data_are_always_of_one_change() {
        let table = CallbackTable::<1>::new();
        std::thread::scope(|scope| {
            let changes = scope.spawn(|| (1..50_000).for_each(|n| table.set([callback(n)])));
            for _ in 0..50_000 {
                let seen = table.get(0);
                assert_eq!(seen.function.addr(), seen.data.addr());
            }
            changes.join().unwrap();
        });
    }
}
