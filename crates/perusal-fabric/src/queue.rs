//! Completion queues and counters.

use crate::api::{CqEntry, FI_CQ_FORMAT_CONTEXT, FI_CQ_FORMAT_DATA, FI_CQ_FORMAT_MSG, FI_EAGAIN};
use crate::endpoint::Endpoint;
use crate::waker::Waker;
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
        if !all.iter().any(|one| std::ptr::eq(one.as_ptr(), Rc::as_ptr(endpoint))) {
            all.push(Rc::downgrade(endpoint));
        }
    }

    /// Makes progress once. Returns whether any was made.
    #[inline]
    pub fn progress(&self) -> bool {
        let mut any = false;
        for endpoint in self.0.borrow().iter() {
            if let Some(endpoint) = endpoint.upgrade() {
                any |= endpoint.borrow_mut().progress();
            }
        }
        any
    }

    /// Waits for something to do, for at most about `milliseconds`. False: not here, with none or several endpoints.
    pub fn sleep(&self, milliseconds: u64) -> bool {
        let [only] = &self.0.borrow()[..] else { return false };
        let only = only.upgrade();
        only.is_some_and(|endpoint| {
            endpoint.borrow_mut().sleep(milliseconds);
            true
        })
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

    /// Whether a thread may wait for the descriptor now.
    ///
    /// # Errors
    ///
    /// FI_EAGAIN if there is something to do, or the number of another error.
    fn try_wait(&self) -> Result<(), i32> {
        let waker = self.make_waker()?;
        let nothing = !self.is_there() && self.bound().arm(waker)? && !self.is_there();
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
    fn is_there(&self) -> bool {
        self.signaled.get() || !self.done.borrow().is_empty()
    }
}

impl Awaited for Counter {
    fn bound(&self) -> &Bound {
        &self.bound
    }
    fn waker(&self) -> &OnceCell<Waker> {
        &self.waker
    }
    /// Whether it has changed since it was read last.
    fn is_there(&self) -> bool {
        self.seen.get() != (self.value.get(), self.errors.get())
    }
}

/// A completion queue.
#[derive(Debug, Default)]
pub struct Queue {
    pub done: RefCell<VecDeque<Completion>>,
    pub bound: Bound,
    /// One of the formats of `enum fi_cq_format`.
    pub format: u32,
    /// fi_cq_signal was called.
    pub signaled: Cell<bool>,
    waker: OnceCell<Waker>,
}

impl Queue {
    /// A queue of entries of this format.
    pub fn new(format: u32) -> Self {
        Self { format, ..Self::default() }
    }

    #[inline(always)]
    pub fn push(&self, completion: Completion) {
        self.done.borrow_mut().push_back(completion);
        if let Some(waker) = self.waker.get() {
            waker.completed();
        }
    }

    /// Bytes of an entry.
    #[inline(always)]
    pub fn entry_bytes(&self) -> usize {
        match self.format {
            FI_CQ_FORMAT_CONTEXT => 8,
            FI_CQ_FORMAT_MSG => 24,
            FI_CQ_FORMAT_DATA => 40,
            _ => size_of::<CqEntry>(),
        }
    }
}

/// A counter of completions.
#[derive(Debug, Default)]
pub struct Counter {
    pub value: Cell<u64>,
    pub errors: Cell<u64>,
    /// Both, as a caller has seen them last.
    pub seen: Cell<(u64, u64)>,
    pub bound: Bound,
    waker: OnceCell<Waker>,
}

impl Counter {
    #[inline(always)]
    pub fn count(&self, error: bool) {
        let cell = if error { &self.errors } else { &self.value };
        cell.set(cell.get().wrapping_add(1));
        if let Some(waker) = self.waker.get() {
            waker.completed();
        }
    }
}
