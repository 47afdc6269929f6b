//! A word that processes sleep on. (`atomic-wait` sets FUTEX_PRIVATE_FLAG, so it cannot wake another process.)

use crate::sync::AtomicU32;

#[cfg(not(perusal_loom))]
mod imp {
    use super::AtomicU32;
    use core::time::Duration;

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
            let spec = libc::timespec {
                tv_sec: timeout.as_secs().min(1 << 30) as libc::time_t,
                tv_nsec: libc::c_long::from(timeout.subsec_nanos() as i32),
            };
            // SAFETY: the word and `spec` outlive the call; FUTEX_WAIT reads both and writes neither.
            unsafe {
                libc::syscall(
                    libc::SYS_futex,
                    &raw const self.0,
                    libc::FUTEX_WAIT,
                    expected,
                    &raw const spec,
                    0,
                    0,
                );
            }
        }

        /// Wakes one sleeper.
        pub fn wake(&self) {
            // SAFETY: FUTEX_WAKE uses the address as a name and does not dereference it.
            unsafe {
                libc::syscall(libc::SYS_futex, &raw const self.0, libc::FUTEX_WAKE, 1, 0, 0, 0);
            }
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
    }
}

pub use imp::Futex;
