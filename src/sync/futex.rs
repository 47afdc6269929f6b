//! A word in shared memory that threads of any process sleep on.
//!
//! (`atomic-wait` sets FUTEX_PRIVATE_FLAG, so it cannot wake a thread of another process, and it has no time limit.)

use crate::sync::AtomicU32;

#[cfg(not(perusal_loom))]
mod imp {
    use super::AtomicU32;
    use core::time::Duration;
    use rustix::thread::futex::{self, Timespec};

    /// A 32-bit word in memory that processes share.
    #[derive(Debug, Default)]
    #[repr(transparent)]
    pub struct Futex(AtomicU32);

    impl Futex {
        /// The word itself.
        #[inline(always)]
        pub fn word(&self) -> &AtomicU32 {
            &self.0
        }

        /// Sleeps while the word is `expected`, `timeout` at the longest. May return at any time without a reason.
        pub fn wait(&self, expected: u32, timeout: Duration) {
            let timeout = Timespec {
                tv_sec: timeout.as_secs().min(1 << 30) as i64,
                tv_nsec: timeout.subsec_nanos().into(),
            };
            // An error is a reason to look again, as any return is:
            // the word has changed, a signal came, the time is over.
            let _ = futex::wait(&self.0, futex::Flags::empty(), expected, Some(&timeout));
        }

        /// Wakes one sleeper.
        pub fn wake(&self) {
            self.wake_some(1);
        }

        /// Wakes all sleepers.
        pub fn wake_all(&self) {
            self.wake_some(i32::MAX as u32);
        }

        fn wake_some(&self, most: u32) {
            futex::wake(&self.0, futex::Flags::empty(), most).expect("the word is aligned and mapped");
        }
    }
}

#[cfg(perusal_loom)]
mod imp {
    use super::AtomicU32;
    use crate::sync::{Condvar, Mutex, Ordering};
    use core::time::Duration;

    /// loom's futex: a mutex makes "compare and sleep" one step, as the kernel's does. Time-outs never fire, so a
    /// lost wake-up is a deadlock that loom reports.
    #[derive(Debug, Default)]
    pub struct Futex {
        word: AtomicU32,
        lock: Mutex<()>,
        bell: Condvar,
    }

    impl Futex {
        /// The word itself.
        pub fn word(&self) -> &AtomicU32 {
            &self.word
        }
        /// Sleeps while the word is `expected`.
        pub fn wait(&self, expected: u32, _: Duration) {
            let guard = self.lock.lock().expect("no panic under this lock");
            if self.word.load(Ordering::Relaxed) == expected {
                drop(self.bell.wait(guard).expect("no panic under this lock"));
            }
        }
        /// Wakes one sleeper.
        pub fn wake(&self) {
            drop(self.lock.lock().expect("no panic under this lock"));
            self.bell.notify_one();
        }
        /// Wakes all sleepers.
        pub fn wake_all(&self) {
            drop(self.lock.lock().expect("no panic under this lock"));
            self.bell.notify_all();
        }
    }
}

pub use imp::Futex;
