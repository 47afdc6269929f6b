//! Completion queues and counters.

use crate::api::*;
use crate::names::name::Name;
use crate::progress::endpoint::Endpoint;
use crate::progress::waker::Waker;
use std::cell::{Cell, OnceCell, RefCell};
use std::collections::VecDeque;
use std::rc::{Rc, Weak};

/// The end of one operation.
#[derive(Debug, Clone, Copy)]
pub struct Completion {
    /// What the caller sees.
    pub entry: CqEntry,
    /// The sender's fi_addr_t, or FI_ADDR_NOTAVAIL.
    pub source: u64,
    /// 0, or the number of the error.
    pub error: i32,
    /// Bytes that did not fit.
    pub overflow: usize,
}

/// The endpoints that make progress when a queue or a counter is read.
#[derive(Debug, Default)]
pub struct Bound(RefCell<Vec<Weak<RefCell<Endpoint>>>>);

impl Bound {
    pub fn add(&self, endpoint: &Rc<RefCell<Endpoint>>) {
        let mut all = self.0.borrow_mut();
        all.retain(|one| one.strong_count() > 0);
        if !all.iter().any(|one| std::ptr::eq(one.as_ptr(), Rc::as_ptr(endpoint))) {
            all.push(Rc::downgrade(endpoint));
        }
    }

    /// Makes progress once. Returns whether any was made.
    #[inline(always)]
    pub fn progress(&self) -> bool {
        let mut any = false;
        for endpoint in self.0.borrow().iter() {
            if endpoint.strong_count() > 0 {
                // SAFETY: the endpoint is open, and fi_close, which ends it, is called by nobody meanwhile: it takes
                // the lock of the domain, which is held here, and no progress calls it.
                any |= unsafe { &*endpoint.as_ptr() }.borrow_mut().progress();
            }
        }
        any
    }

    /// Waits for something to do, for at most about `milliseconds`. False: not here, with none or several endpoints, or
    /// with a network, which rings no doorbell.
    pub fn sleep(&self, milliseconds: u64) -> bool {
        let mut all = self.0.borrow_mut();
        all.retain(|one| one.strong_count() > 0);
        let [only] = &all[..] else { return false };
        let Some(endpoint) = only.upgrade() else { return false };
        let mut endpoint = endpoint.borrow_mut();
        let by_doorbell = endpoint.core.peers.network.is_none();
        if by_doorbell {
            endpoint.sleep(milliseconds);
        }
        by_doorbell
    }

    /// Arms all for a thread that will wait for `waker`. Returns whether there is nothing to do now.
    ///
    /// # Errors
    ///
    /// The number of the error.
    pub fn arm(&self, waker: &Waker) -> Result<bool, i32> {
        waker.arm();
        for endpoint in self.0.borrow().iter().filter_map(Weak::upgrade) {
            if !waker.arm_endpoint(&mut endpoint.borrow_mut())? {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

/// What a call waits for.
pub trait Awaited {
    /// The endpoints that make progress for it.
    fn bound(&self) -> &Bound;
    /// Its descriptor, once there is one.
    fn waker(&self) -> &OnceCell<Waker>;
    /// The kind of wait object that it was opened with.
    fn wait_object(&self) -> u32;
    /// Whether the call has what it waits for.
    fn is_there(&self) -> bool;

    /// The descriptor, made if there is none yet.
    ///
    /// # Errors
    ///
    /// The number of the error.
    fn make_waker(&self) -> Result<&Waker, i32> {
        if self.waker().get().is_none() {
            let _ = self.waker().set(Waker::new()?);
        }
        self.waker().get().ok_or(libc::ENOMEM)
    }

    /// Whether fi_cq_signal was called since a call that waits has returned.
    fn is_signaled(&self) -> bool {
        false
    }

    /// Whether a thread may wait for the descriptor now; not if it is `signaled`.
    ///
    /// # Errors
    ///
    /// FI_EAGAIN if there is something to do, or the number of another error.
    fn try_wait(&self, signaled: bool) -> Result<(), i32> {
        let waker = self.make_waker()?;
        let nothing = !signaled && !self.is_there() && self.bound().arm(waker)? && !self.is_there();
        if nothing { Ok(()) } else { Err(FI_EAGAIN) }
    }
}

impl Awaited for Queue {
    fn bound(&self) -> &Bound {
        &self.bound
    }
    fn waker(&self) -> &OnceCell<Waker> {
        &self.waker
    }
    fn wait_object(&self) -> u32 {
        self.wait_object
    }
    fn is_there(&self) -> bool {
        !self.done.borrow().is_empty()
    }
    fn is_signaled(&self) -> bool {
        self.signaled.get()
    }
}

impl Awaited for Counter {
    fn bound(&self) -> &Bound {
        &self.bound
    }
    fn waker(&self) -> &OnceCell<Waker> {
        &self.waker
    }
    fn wait_object(&self) -> u32 {
        self.wait_object
    }
    /// Whether it has changed since it was read last.
    fn is_there(&self) -> bool {
        self.seen.get() != self.now()
    }
}

/// A completion queue.
#[derive(Debug, Default)]
pub struct Queue {
    pub done: RefCell<VecDeque<Completion>>,
    pub bound: Bound,
    /// One of the formats of `enum fi_cq_format`.
    pub format: u32,
    /// fi_cq_signal was called, for a call that waits and for fi_trywait: each sees it once.
    pub signaled: Cell<bool>,
    pub signaled_to_poll: Cell<bool>,
    /// The senders of the messages that are reported as errors of FI_EADDRNOTAVAIL, in their order.
    strangers: RefCell<VecDeque<Name>>,
    /// What belongs to the error that was read last: the caller looks at it here if it gives no room.
    pub error_data: RefCell<Vec<u8>>,
    wait_object: u32,
    waker: OnceCell<Waker>,
    /// The version of the interface that the caller knows.
    pub version: u32,
}

impl Queue {
    /// A queue of entries of this format, with this kind of wait object,
    /// for a caller that knows this version of the interface.
    pub fn new(format: u32, wait_object: u32, version: u32) -> Self {
        Self { format, wait_object, version, ..Self::default() }
    }

    #[inline(always)]
    pub fn push(&self, completion: Completion) {
        self.done.borrow_mut().push_back(completion);
        if let Some(waker) = self.waker.get() {
            waker.completed();
        }
    }

    /// Reports a message of a sender that has no number.
    #[cold]
    pub fn push_stranger(&self, entry: CqEntry, sender: Name) {
        self.strangers.borrow_mut().push_back(sender);
        self.push(Completion { entry, source: FI_ADDR_NOTAVAIL, error: FI_EADDRNOTAVAIL, overflow: 0 });
    }

    /// Keeps what belongs to an error that is read now: the sender's name of a message of a sender that has no number,
    /// else nothing.
    pub fn keep_error_data(&self, error: i32) {
        let sender = if error == FI_EADDRNOTAVAIL { self.strangers.borrow_mut().pop_front() } else { None };
        *self.error_data.borrow_mut() = sender.map_or_else(Vec::new, Name::to_bytes);
    }

    /// Writes an entry as number `at` of those at `buf`.
    ///
    /// # Safety
    ///
    /// There is room for as many entries.
    #[inline(always)]
    pub unsafe fn write(&self, entry: &CqEntry, buf: *mut u8, at: usize) {
        // A format is the beginning of the longest. Each is copied by its own length: the compiler knows it then.
        // SAFETY: there is room at `buf` for entry `at`, as the caller promises.
        unsafe {
            match self.format {
                FI_CQ_FORMAT_CONTEXT => copy::<8>(entry, buf, at),
                FI_CQ_FORMAT_MSG => copy::<24>(entry, buf, at),
                FI_CQ_FORMAT_DATA => copy::<40>(entry, buf, at),
                _ => copy::<{ size_of::<CqEntry>() }>(entry, buf, at),
            }
        }
    }
}

/// Copies the first `N` bytes of an entry to number `at` of the places of as many bytes at `buf`.
///
/// # Safety
///
/// There is room for as many.
#[inline(always)]
unsafe fn copy<const N: usize>(entry: &CqEntry, buf: *mut u8, at: usize) {
    const { assert!(N <= size_of::<CqEntry>()) };
    // SAFETY: there is room at `buf` for `at + 1` pieces of `N` bytes, as the caller promises;
    // an entry has at least `N`.
    unsafe { std::ptr::copy_nonoverlapping((&raw const *entry).cast::<u8>(), buf.add(at * N), N) };
}

/// A counter of completions.
#[derive(Debug, Default)]
pub struct Counter {
    pub value: Cell<u64>,
    pub errors: Cell<u64>,
    /// Both, as a caller has seen them last.
    pub seen: Cell<(u64, u64)>,
    pub bound: Bound,
    /// It counts bytes, not operations (FI_CNTR_EVENTS_BYTES).
    of_bytes: bool,
    wait_object: u32,
    waker: OnceCell<Waker>,
}

impl Counter {
    /// A counter of operations, or of their bytes, with this kind of wait object.
    pub fn new(of_bytes: bool, wait_object: u32) -> Self {
        Self { of_bytes, wait_object, ..Self::default() }
    }

    /// The values and the errors that it has counted.
    pub fn now(&self) -> (u64, u64) {
        (self.value.get(), self.errors.get())
    }

    /// Counts an operation of so many bytes that has ended. One with an error counts as one.
    #[inline(always)]
    pub fn count(&self, error: bool, len: usize) {
        let cell = if error { &self.errors } else { &self.value };
        let by = if self.of_bytes && !error { len as u64 } else { 1 };
        cell.set(cell.get().wrapping_add(by));
        if let Some(waker) = self.waker.get() {
            waker.completed();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endpoints_that_are_closed_are_not_waited_for() {
        let open = || Rc::new(RefCell::new(Endpoint::new().expect("an endpoint")));
        let (bound, first, second) = (Bound::default(), open(), open());
        bound.add(&first);
        bound.add(&second);
        assert!(!bound.sleep(1), "two have no doorbell in common");
        drop(first);
        assert!(bound.sleep(1));
    }
}
