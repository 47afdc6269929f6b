//! A file that is cut off while it is accessed through a mapping: by another program, or by a rank that has opened it
//! once more (MPI 5.0 §14.6.1: what is in the file is then undefined, and the program goes on). The pages that are gone
//! would end the program by SIGBUS.
//!
//! As long as there is a mapping of a file, a handler puts memory in the place of the one that the thread is accessing.
//! The access goes on there, to no effect, and is made again without a mapping. Any other such signal is what it would
//! be without the handler: the end of the program, or a call of the program's own handler. (A program in Rust has one
//! from its beginning on.)

use super::signals::{HandledSignal, Reason};
use crate::sync::{order_for_handlers, thread_local};
use core::cell::Cell;
use core::ffi::{c_int, c_void};
use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous};

static PAGES_GONE: HandledSignal = HandledSignal::before_the_program(libc::SIGBUS, pages_are_gone);

/// The mapping that a thread is accessing.
#[derive(Clone, Copy)]
struct Accessed {
    base: usize,
    bytes: usize,
    /// Whether memory has taken its place.
    is_gone: bool,
}

const NONE: Accessed = Accessed { base: 0, bytes: 0, is_gone: false };

thread_local! {
    static ACCESSED: Cell<Accessed> = const { Cell::new(NONE) };
}

/// Volatile, and in order with the accesses around it: the handler looks between two steps of the thread.
fn set(accessed: Accessed) {
    order_for_handlers();
    // SAFETY: a value of this thread's, which no reference points to.
    ACCESSED.with(|place| unsafe { place.as_ptr().write_volatile(accessed) });
    order_for_handlers();
}

fn get() -> Accessed {
    order_for_handlers();
    // SAFETY: a value of this thread's, which no reference points to.
    ACCESSED.with(|place| unsafe { place.as_ptr().read_volatile() })
}

/// The kernel sends the signal to the thread that has touched the page.
extern "C" fn pages_are_gone(_: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    // SAFETY: the kernel gives the handler what it knows of the signal: an address, if a page is the reason.
    let (by_kernel, at) = unsafe { ((*info).si_code > 0, (*info).si_addr().addr()) };
    let accessed = get();
    if by_kernel && at.checked_sub(accessed.base).is_some_and(|into| into < accessed.bytes) {
        let (protection, flags) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE | MapFlags::FIXED);
        let base = core::ptr::with_exposed_provenance_mut(accessed.base);
        // SAFETY: it takes the place of a mapping whose only user this thread is (`access`), and which it accesses by
        // raw pointers alone. The call touches nothing else of the process.
        if unsafe { mmap_anonymous(base, accessed.bytes, protection, flags | MapFlags::NORESERVE) }.is_ok() {
            set(Accessed { is_gone: true, ..accessed });
            return;
        }
    }
    PAGES_GONE.pass_on(info, context);
}

/// A mapping of a file: its pages may go.
#[derive(Debug)]
pub(super) struct PagesMayGo(
    #[expect(dead_code, reason = "it handles the signal as long as it lives")] Reason,
);

impl PagesMayGo {
    /// Handles the signal.
    pub fn heed() -> Self {
        Self(PAGES_GONE.handle())
    }

    /// Accesses a mapping of `bytes` bytes at `base`, which nobody else uses. Returns whether its pages were there all
    /// the time; if not, the mapping is memory of this process's now, and what was written to it is lost.
    #[inline]
    pub fn access(&self, base: *mut u8, bytes: usize, access: impl FnOnce()) -> bool {
        set(Accessed { base: base.expose_provenance(), bytes, is_gone: false });
        access();
        let is_gone = get().is_gone;
        set(NONE);
        !is_gone
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fs::{MemfdFlags, ftruncate, memfd_create};
    use rustix::mm::{mmap, munmap};

    #[test]
    #[cfg_attr(miri, ignore = "Miri has no signals")]
    fn an_access_outlives_pages_that_go_and_says_so() {
        const BYTES: usize = 1 << 20;
        let file = memfd_create("cut off", MemfdFlags::CLOEXEC).unwrap();
        for round in 0..3 {
            ftruncate(&file, BYTES as u64).unwrap();
            let protection = ProtFlags::READ | ProtFlags::WRITE;
            // SAFETY: a new mapping, at an address that the kernel chooses.
            let base = unsafe { mmap(core::ptr::null_mut(), BYTES, protection, MapFlags::SHARED, &file, 0) };
            let base = base.unwrap().cast::<u8>();
            let pages = PagesMayGo::heed();
            // SAFETY: the mapping has so many bytes, and nobody else has it.
            let touch = |at: usize| unsafe {
                let place = base.add(at);
                place.write_volatile(place.read_volatile() + 1);
                place.read_volatile()
            };
            assert!(pages.access(base, BYTES, || assert_eq!(touch(BYTES - 1), 1)));
            let whole = pages.access(base, BYTES, || {
                touch(5);
                ftruncate(&file, round * 4096).unwrap();
                // What is there instead can be accessed too.
                assert_eq!(touch(BYTES - 1), 1);
                assert_eq!(touch(BYTES - 1), 2);
                touch(0);
            });
            assert!(!whole);
            // SAFETY: it was mapped with this length, and nobody keeps an address of it.
            unsafe { munmap(base.cast(), BYTES) }.unwrap();
            ftruncate(&file, 0).unwrap();
        }
    }
}
