//! How a call of the interface waits.

use crate::api::*;
use crate::objects::eq::Eq;
use crate::objects::object::{Object, Tables, with};
use crate::progress::waker::{self, Waker};
use crate::protocol::queue::{Awaited, Counter, Queue};
use libc::{c_int, c_void};
use std::rc::Rc;
use std::time::{Duration, Instant};

/// Tries in vain before a call that waits has its thread sleep.
const SPINS: u32 = 1000;

/// Milliseconds that are left of a time that began at `start`, negative for no end; `None` if it is over.
pub fn left_of(timeout: i32, start: Instant) -> Option<u64> {
    let Ok(all) = u64::try_from(timeout) else { return Some(u64::MAX) };
    let left = Duration::from_millis(all).saturating_sub(start.elapsed());
    (!left.is_zero()).then(|| u64::try_from(left.as_millis()).unwrap_or(u64::MAX).max(1))
}

/// Ends a try in vain of a call that waits: the first ones poll again at once,
/// then the thread sleeps until there is something to do.
///
/// # Safety
///
/// As [`with`].
pub unsafe fn pause<T: Awaited>(object: *mut Fid, tries: u32, left: u64) {
    if tries < SPINS {
        return std::hint::spin_loop();
    }
    let left = Duration::from_millis(left.min(100));
    let wait = |object: &Object<Tables<1>, Rc<T>>| {
        let awaited = &object.value;
        // Under a lock nobody may sleep: other threads bring what is waited for.
        if !object.lock.is_needed() && awaited.bound().sleep(left.as_millis() as u64) {
            return None;
        }
        awaited.try_wait(awaited.is_signaled()).map(|()| awaited.waker().get().map(Waker::fd)).ok().flatten()
    };
    // SAFETY: `object` begins an object of these types that is not closed, as the caller promises.
    if let Some(fd) = unsafe { with(object, wait) } {
        waker::wait_for(fd, left);
    }
}

/// fi_control of what can be waited for: FI_GETWAIT gives the descriptor.
///
/// # Safety
///
/// As [`with`]; `out` is what the command wants.
pub unsafe extern "C" fn control<T: Awaited>(object: *mut Fid, command: c_int, out: *mut c_void) -> c_int {
    let get = |object: &Object<Tables<1>, Rc<T>>| object.value.waker().get().map(Waker::fd);
    // SAFETY: `object` begins an object of these types that is not closed, as the caller promises.
    match unsafe { (command, with(object, get)) } {
        (FI_GETWAIT, Some(fd)) => {
            // SAFETY: FI_GETWAIT comes with a place for a descriptor, as the caller promises.
            unsafe { *out.cast::<c_int>() = fd };
            0
        }
        (FI_GETWAITOBJ, _) => {
            let kind = |object: &Object<Tables<1>, Rc<T>>| object.value.wait_object();
            // SAFETY: the caller promises a place for the kind of wait object.
            unsafe { *out.cast::<u32>() = with(object, kind) };
            0
        }
        (FI_GETWAIT, None) => -FI_ENODATA,
        _ => -FI_ENOSYS,
    }
}

/// `trywait` of a fabric: whether a thread may wait for the descriptors of all these objects.
///
/// # Safety
///
/// As fi_trywait(3) says.
pub unsafe extern "C" fn trywait(_: *mut Fid, objects: *mut *mut Fid, count: c_int) -> c_int {
    for at in 0..usize::try_from(count).unwrap_or(0) {
        // SAFETY: caller rules 1 and 3: `count` objects of ours, and the class says which each is.
        let ready = unsafe {
            let object = *objects.add(at);
            match (*object).class {
                FI_CLASS_CQ => with(object, |cq: &Object<Tables<1>, Rc<Queue>>| {
                    cq.value.try_wait(cq.value.signaled_to_poll.take())
                }),
                FI_CLASS_CNTR => {
                    with(object, |cntr: &Object<Tables<1>, Rc<Counter>>| cntr.value.try_wait(false))
                }
                FI_CLASS_EQ => with(object, |eq: &Eq| eq.value.try_wait()),
                _ => Err(FI_EINVAL),
            }
        };
        if let Err(error) = ready {
            return -error;
        }
    }
    0
}
