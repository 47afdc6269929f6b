//! Completion queues and counters.

use crate::api::{CqEntry, FI_CQ_FORMAT_CONTEXT, FI_CQ_FORMAT_DATA, FI_CQ_FORMAT_MSG};
use crate::endpoint::Endpoint;
use std::cell::{Cell, RefCell};
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

    /// Waits for something to do, for at most about `milliseconds`.
    pub fn sleep(&self, milliseconds: u64) {
        let all = self.0.borrow();
        match all.as_slice() {
            [only] => {
                if let Some(endpoint) = only.upgrade() {
                    endpoint.borrow_mut().sleep(milliseconds);
                }
            }
            _ => std::thread::sleep(std::time::Duration::from_micros(100)),
        }
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
}

impl Queue {
    #[inline(always)]
    pub fn push(&self, completion: Completion) {
        self.done.borrow_mut().push_back(completion);
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
    pub bound: Bound,
}

impl Counter {
    #[inline(always)]
    pub fn count(&self, error: bool) {
        let cell = if error { &self.errors } else { &self.value };
        cell.set(cell.get().wrapping_add(1));
    }
}
