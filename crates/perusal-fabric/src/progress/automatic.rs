//! Progress without a call (FI_PROGRESS_AUTO): a thread of a domain that sleeps until a peer or the caller has
//! something for one of its endpoints.
//!
//! It leaves the endpoints alone while calls make progress: it would only take the lock from them. The thread sees that
//! by the polls that it has not made itself, checks again after a pause, and sleeps armed when there were none.

use crate::progress::endpoint::Endpoint;
use crate::progress::waker::{self, Waker};
use std::cell::{Cell, RefCell};
use std::os::fd::RawFd;
use std::rc::Rc;
use std::thread::JoinHandle;
use std::time::Duration;

/// How long the thread leaves endpoints alone that calls have polled.
const PAUSE: Duration = Duration::from_millis(1);
/// How long it sleeps at most: peers that have ended wake nobody.
const SLEEP: Duration = Duration::from_millis(250);

/// What a domain has for its thread. All of it is used under the domain's lock.
#[derive(Debug)]
pub struct Automatic {
    waker: Waker,
    stopped: Cell<bool>,
    thread: RefCell<Option<JoinHandle<()>>>,
}

/// What the thread does next.
#[derive(Debug, PartialEq, Eq)]
pub enum Next {
    End,
    /// There may be more to do now.
    GoOn,
    Pause,
    /// Waits for this descriptor.
    Sleep(RawFd),
}

impl Automatic {
    /// # Errors
    ///
    /// The number of the error.
    pub fn new() -> Result<Self, i32> {
        Ok(Self { waker: Waker::new()?, stopped: Cell::new(false), thread: RefCell::default() })
    }

    /// Starts the thread, which calls `step` until that says that it is to end.
    ///
    /// # Errors
    ///
    /// The number of the error.
    pub fn start(&self, step: impl FnMut() -> Next + Send + 'static) -> Result<(), i32> {
        keep_loaded();
        let thread = std::thread::Builder::new().name("perusal-fi".into()).spawn(|| run(step));
        let thread = thread.map_err(|error| error.raw_os_error().unwrap_or(libc::EAGAIN))?;
        *self.thread.borrow_mut() = Some(thread);
        Ok(())
    }

    /// Has the thread end. It may need the lock for that: whoever joins it does so without.
    pub fn stop(&self) -> Option<JoinHandle<()>> {
        self.stopped.set(true);
        self.waker.signal();
        self.thread.borrow_mut().take()
    }

    /// Has the thread learn of an endpoint that is new.
    pub fn wake(&self) {
        self.waker.signal();
    }

    /// One step of the thread: makes progress, unless calls do. `seen` is how often these endpoints were polled as far
    /// as it knows.
    pub fn step(&self, endpoints: &[Rc<RefCell<Endpoint>>], seen: &mut u32) -> Next {
        if self.stopped.get() {
            return Next::End;
        }
        let polls = || endpoints.iter().fold(0_u32, |sum, one| sum.wrapping_add(one.borrow().polls()));
        if *seen != polls() {
            *seen = polls();
            return Next::Pause;
        }
        self.waker.arm();
        // One that cannot be armed is tried again, after a pause.
        let armed: Vec<_> =
            endpoints.iter().map(|one| self.waker.arm_endpoint(&mut one.borrow_mut())).collect();
        *seen = polls();
        match armed {
            all if all.iter().any(Result::is_err) => Next::Pause,
            all if all.contains(&Ok(false)) => Next::GoOn,
            _ => Next::Sleep(self.waker.fd()),
        }
    }
}

fn run(mut step: impl FnMut() -> Next) {
    loop {
        match step() {
            Next::End => return,
            // Others want the lock, too.
            Next::GoOn => std::thread::yield_now(),
            Next::Pause => std::thread::sleep(PAUSE),
            Next::Sleep(fd) => waker::wait_for(fd, SLEEP),
        }
    }
}

/// Keeps this library where it is: libfabric unloads its providers when the process ends, whatever is open.
fn keep_loaded() {
    // SAFETY: a structure that the call fills, the address of a function of this library, and the C string that it
    // gives; zero is a value of every field.
    unsafe {
        let mut here: libc::Dl_info = std::mem::zeroed();
        if libc::dladdr(keep_loaded as *const libc::c_void, &raw mut here) != 0 && !here.dli_fname.is_null() {
            libc::dlopen(here.dli_fname, libc::RTLD_NOW | libc::RTLD_NOLOAD | libc::RTLD_NODELETE);
        }
    }
}
