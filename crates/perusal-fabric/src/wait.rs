//! How a call of the interface waits.

use crate::api::Fid;
use crate::object::{Object, Tables, with};
use crate::queue::Bound;
use std::time::{Duration, Instant};

/// Tries in vain before a call that waits has its thread sleep.
const SPINS: u32 = 1000;

/// Milliseconds that are left of a time that began at `start`, negative for no end; `None` if it is over.
pub fn left_of(timeout: i32, start: Instant) -> Option<u64> {
    let Ok(all) = u64::try_from(timeout) else { return Some(u64::MAX) };
    let left = Duration::from_millis(all).saturating_sub(start.elapsed());
    (!left.is_zero()).then(|| u64::try_from(left.as_millis()).unwrap_or(u64::MAX).max(1))
}

/// Ends a try in vain of a call that waits: the first ones poll again at once, then the thread sleeps until there is something to do.
///
/// # Safety
///
/// As [`with`].
pub unsafe fn pause<T>(object: *mut Fid, tries: u32, left: u64, bound: impl Fn(&T) -> &Bound) {
    if tries < SPINS {
        return std::hint::spin_loop();
    }
    // SAFETY: the caller promises it; the lock is not held while this thread waits.
    let shared = unsafe { (*object.cast::<Object<Tables<1>, T>>()).lock.is_needed() };
    if shared {
        std::thread::sleep(Duration::from_micros(50));
    } else {
        // SAFETY: the same promise.
        unsafe { with(object, |object: &Object<Tables<1>, T>| bound(&object.value).sleep(left.min(100))) };
    }
}
