//! Which of a handle's functions is called where: changed at any time, read by every event without a lock, never half.
//!
//! Two sides, of which the version's last bit names the one in force. A change writes the other side and then moves the version
//! on; so a reader is never held up by a change that stands still, and goes again only when one was completed beneath it.
//!
//! # Rules
//! - **Choice rule 1.** `set` is called by one thread at a time.
//! - **Choice rule 2.** A side is written only while the version names the other one; a reader whose version is the same before and
//!   after has read a side that nobody wrote meanwhile.

use crate::sync::{AtomicPtr, AtomicU64, Ordering, fence};
use core::ffi::c_void;
use core::ptr;

/// A C function, as an address, and what it is given. Null: none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Call {
    /// The function.
    pub function: *mut c_void,
    /// Handed to it, never looked at.
    pub data: *mut c_void,
}

impl Call {
    /// No function.
    pub const NONE: Call = Call { function: ptr::null_mut(), data: ptr::null_mut() };
}

#[derive(Debug)]
struct Entry {
    function: AtomicPtr<c_void>,
    data: AtomicPtr<c_void>,
}

impl Entry {
    fn new() -> Entry {
        Entry { function: AtomicPtr::new(ptr::null_mut()), data: AtomicPtr::new(ptr::null_mut()) }
    }
}

/// For each of `N` places, the function that is called there.
#[derive(Debug)]
pub struct Choice<const N: usize> {
    version: AtomicU64,
    sides: [[Entry; N]; 2],
}

impl<const N: usize> Default for Choice<N> {
    fn default() -> Self {
        Self::new()
    }
}

impl<const N: usize> Choice<N> {
    /// No function at any place.
    #[must_use]
    pub fn new() -> Self {
        let side = || core::array::from_fn(|_| Entry::new());
        Choice { version: AtomicU64::new(0), sides: [side(), side()] }
    }

    /// Puts `calls`, one for each place, in force (choice rule 1).
    pub fn set(&self, calls: [Call; N]) {
        // Relaxed: only we write it.
        let version = self.version.load(Ordering::Relaxed);
        // Release: choice edge, pairs with the fence in `get`: who sees any word written below sees the version that is in
        // force now, and so goes again if it began with the one before.
        fence(Ordering::Release);
        let side = &self.sides[(version as usize & 1) ^ 1];
        for (entry, call) in side.iter().zip(calls) {
            // Relaxed: published by the version.
            entry.function.store(call.function, Ordering::Relaxed);
            entry.data.store(call.data, Ordering::Relaxed);
        }
        // Release: choice edge, pairs with Acquire in `get`, publishes the side.
        self.version.store(version + 1, Ordering::Release);
    }

    /// What is called at `place`, which is below `N`.
    #[inline(always)]
    pub fn get(&self, place: usize) -> Call {
        // Acquire: choice edge, pairs with Release in `set`.
        let mut version = self.version.load(Ordering::Acquire);
        loop {
            let entry = &self.sides[version as usize & 1][place];
            // Relaxed: checked by the second look at the version.
            let call = Call {
                function: entry.function.load(Ordering::Relaxed),
                data: entry.data.load(Ordering::Relaxed),
            };
            // Acquire: choice edge, pairs with the fence in `set`.
            fence(Ordering::Acquire);
            // Acquire, for the next round: as the first.
            let now = self.version.load(Ordering::Acquire);
            if now == version {
                return call;
            }
            version = now;
        }
    }
}

#[cfg(all(test, not(perusal_loom)))]
mod tests {
    use super::*;
    use crate::tool::event::safety::{LEVELS, Safety};

    fn call(n: usize) -> Call {
        Call { function: ptr::without_provenance_mut(n), data: ptr::without_provenance_mut(n) }
    }

    #[test]
    fn each_level_has_its_own_call_and_the_last_change_counts() {
        let choice = Choice::<LEVELS>::new();
        assert_eq!(choice.get(Safety::ThreadSafe.index()), Call::NONE);
        for round in 1..5 {
            choice.set(core::array::from_fn(|level| call(10 * round + level)));
            for level in Safety::ALL {
                assert_eq!(choice.get(level.index()), call(10 * round + level.index()));
            }
        }
    }

    #[test]
    fn function_and_data_are_always_of_one_change() {
        let choice = Choice::<1>::new();
        std::thread::scope(|scope| {
            scope.spawn(|| (1..50_000).for_each(|n| choice.set([call(n)])));
            for _ in 0..50_000 {
                let seen = choice.get(0);
                assert_eq!(seen.function.addr(), seen.data.addr());
            }
        });
    }
}
