//! Event queues. Nothing here reports to one: callers may write to it and read that back.

use crate::api::*;
use crate::lock::Lock;
use crate::objects::cq;
use crate::objects::domain::Fabric;
use crate::objects::object::{Object, Tables, Ties, close, give, table, with};
use libc::{c_int, c_void};
use std::cell::RefCell;
use std::collections::VecDeque;
use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::{AsRawFd, FromRawFd};
use std::time::{Duration, Instant};

/// Events, each with its bytes.
#[derive(Debug)]
pub struct Events {
    waiting: RefCell<VecDeque<(u32, Box<[u8]>)>>,
    wait_object: u32,
    /// Readable while there are events: it counts them. Of a queue that was opened with FI_WAIT_FD.
    counter: Option<File>,
}

/// An event queue.
pub type Eq = Object<Tables<1>, Events>;

static FID: FidOps =
    FidOps::new([close::<Tables<1>, Events> as *const (), NONE, control as *const (), NONE, NONE, NONE]);
static EQ: Table<5> = Table::new([
    read as *const (),
    readerr as *const (),
    write as *const (),
    sread as *const (),
    cq::strerror as *const (),
]);

/// The beginning of `struct fi_eq_attr`.
#[repr(C)]
#[derive(Debug)]
struct EqAttr {
    size: usize,
    flags: u64,
    wait_obj: u32,
}

/// `eq_open` of a fabric.
///
/// # Safety
///
/// As fi_eq_open(3) says.
pub unsafe extern "C" fn open(
    fabric: *mut Fid,
    attr: *const c_void,
    out: *mut *mut Fid,
    context: *mut c_void,
) -> c_int {
    // SAFETY: caller rule 3: null or a valid structure.
    let attr = unsafe { attr.cast::<EqAttr>().as_ref() };
    let (wait, flags) = attr.map_or((FI_WAIT_NONE, 0), |attr| (attr.wait_obj, attr.flags));
    if flags & !(FI_WRITE | FI_AFFINITY) != 0 {
        return -FI_EINVAL;
    }
    let counter = match wait {
        FI_WAIT_NONE | FI_WAIT_UNSPEC | FI_WAIT_YIELD => None,
        FI_WAIT_FD => match new_counter() {
            Ok(counter) => Some(counter),
            Err(error) => return -error,
        },
        _ => return -FI_ENOSYS,
    };
    // SAFETY: caller rule 1: a fabric of ours; caller rule 3: a place for the object.
    unsafe {
        let uses = vec![(*fabric.cast::<Fabric>()).users.clone()];
        // Threads may write and read at once.
        let ties = Ties::of(Lock::new(true), uses);
        let events = Events { waiting: RefCell::default(), wait_object: wait, counter };
        give(FI_CLASS_EQ, &FID, [table(&EQ)], ties, events, context, out)
    }
}

/// A descriptor that counts up by what is written to it, and down by each read.
fn new_counter() -> Result<File, i32> {
    // SAFETY: the call takes numbers alone; a descriptor that is not negative was just made and nobody else has it.
    unsafe {
        let fd = libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK | libc::EFD_SEMAPHORE);
        if fd < 0 {
            return Err(last_error());
        }
        Ok(File::from_raw_fd(fd))
    }
}

impl Events {
    /// Whether a thread may wait for the descriptor.
    ///
    /// # Errors
    ///
    /// FI_EAGAIN if there is an event.
    pub fn try_wait(&self) -> Result<(), i32> {
        if self.waiting.borrow().is_empty() { Ok(()) } else { Err(FI_EAGAIN) }
    }
}

/// FI_GETWAIT gives the descriptor, FI_GETWAITOBJ the kind of wait object.
unsafe extern "C" fn control(eq: *mut Fid, command: c_int, out: *mut c_void) -> c_int {
    if command == FI_GETWAITOBJ {
        // SAFETY: caller rule 1: an event queue of ours; caller rule 3: a place for the kind.
        unsafe { *out.cast::<u32>() = with(eq, |eq: &Eq| eq.value.wait_object) };
        return 0;
    }
    if command != FI_GETWAIT {
        return -FI_ENOSYS;
    }
    // SAFETY: caller rule 1: an event queue of ours.
    let Some(fd) = (unsafe { with(eq, |eq: &Eq| eq.value.counter.as_ref().map(File::as_raw_fd)) }) else {
        return -FI_ENODATA;
    };
    // SAFETY: caller rule 3: a place for a descriptor.
    unsafe { *out.cast::<c_int>() = fd };
    0
}

unsafe extern "C" fn read(eq: *mut Fid, event: *mut u32, buf: *mut u8, len: usize, flags: u64) -> isize {
    let read = |eq: &Eq| {
        let mut events = eq.value.waiting.borrow_mut();
        let Some((number, bytes)) = events.front() else { return -(FI_EAGAIN as isize) };
        if bytes.len() > len {
            return -(FI_ETOOSMALL as isize);
        }
        let read = bytes.len();
        // SAFETY: caller rule 3: `len` bytes and a place for the event.
        unsafe {
            *event = *number;
            std::ptr::copy_nonoverlapping(bytes.as_ptr(), buf, read);
        }
        if flags & FI_PEEK == 0 {
            events.pop_front();
            // It counts this event, so that there is something to read.
            let _ = eq.value.counter.as_ref().map(|mut counter| counter.read(&mut [0; 8]));
        }
        read as isize
    };
    // SAFETY: caller rule 1: an event queue of ours.
    unsafe { with(eq, read) }
}

unsafe extern "C" fn sread(
    eq: *mut Fid,
    event: *mut u32,
    buf: *mut u8,
    len: usize,
    timeout: c_int,
    flags: u64,
) -> isize {
    let start = Instant::now();
    loop {
        // SAFETY: caller rule 1: an event queue of ours; caller rule 3: `len` bytes and a place for the event.
        let read = unsafe { read(eq, event, buf, len, flags) };
        if read != -(FI_EAGAIN as isize) || (timeout >= 0 && start.elapsed().as_millis() >= timeout as u128) {
            return read;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

unsafe extern "C" fn readerr(_: *mut Fid, _: *mut c_void, _: u64) -> isize {
    -(FI_EAGAIN as isize)
}

unsafe extern "C" fn write(eq: *mut Fid, event: u32, buf: *const u8, len: usize, _: u64) -> isize {
    // SAFETY: caller rule 3: `len` bytes; of none, perhaps no address.
    let bytes = if len == 0 { &[] } else { unsafe { std::slice::from_raw_parts(buf, len) } };
    let bytes: Box<[u8]> = bytes.into();
    let write = |eq: &Eq| {
        eq.value.waiting.borrow_mut().push_back((event, bytes));
        let _ = eq.value.counter.as_ref().map(|mut counter| counter.write(&1_u64.to_ne_bytes()));
    };
    // SAFETY: caller rule 1: an event queue of ours.
    unsafe { with(eq, write) };
    len as isize
}
