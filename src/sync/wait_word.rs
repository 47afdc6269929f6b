//! A word that threads of one process sleep on, for as long as it takes.
//!
//! `atomic-wait` is right here: it sets FUTEX_PRIVATE_FLAG, which spares the kernel a look at the mapping, and has no
//! time limit. What other processes wake, or what must look up now and then, sleeps on a [`Futex`](super::Futex).

#[cfg(not(perusal_loom))]
mod imp {
    use crate::sync::AtomicU32;

    /// A 32-bit word of this process.
    #[derive(Debug)]
    pub struct WaitWord(AtomicU32);

    impl WaitWord {
        /// A word that is `value`.
        #[must_use]
        pub const fn new(value: u32) -> WaitWord {
            WaitWord(AtomicU32::new(value))
        }

        /// The word itself.
        #[inline(always)]
        pub fn word(&self) -> &AtomicU32 {
            &self.0
        }

        /// Sleeps while the word is `expected`. May return at any time without a reason.
        pub fn wait(&self, expected: u32) {
            atomic_wait::wait(&self.0, expected);
        }

        /// Wakes one sleeper.
        pub fn wake_one(&self) {
            atomic_wait::wake_one(&self.0);
        }

        /// Wakes all sleepers.
        pub fn wake_all(&self) {
            atomic_wait::wake_all(&self.0);
        }
    }
}

#[cfg(perusal_loom)]
mod imp {
    use crate::sync::{AtomicU32, Condvar, Mutex, Ordering};

    /// loom's word: a mutex makes "compare and sleep" one step, as the kernel's does.
    /// A lost wake-up is a deadlock that loom reports.
    #[derive(Debug)]
    pub struct WaitWord {
        word: AtomicU32,
        lock: Mutex<()>,
        sleepers: Condvar,
    }

    impl WaitWord {
        /// A word that is `value`.
        pub fn new(value: u32) -> WaitWord {
            WaitWord { word: AtomicU32::new(value), lock: Mutex::new(()), sleepers: Condvar::new() }
        }
        /// The word itself.
        pub fn word(&self) -> &AtomicU32 {
            &self.word
        }
        /// Sleeps while the word is `expected`.
        pub fn wait(&self, expected: u32) {
            let guard = self.lock.lock().expect("no panic under this lock");
            if self.word.load(Ordering::Relaxed) == expected {
                drop(self.sleepers.wait(guard).expect("no panic under this lock"));
            }
        }
        /// Wakes one sleeper.
        pub fn wake_one(&self) {
            drop(self.lock.lock().expect("no panic under this lock"));
            self.sleepers.notify_one();
        }
        /// Wakes all sleepers.
        pub fn wake_all(&self) {
            drop(self.lock.lock().expect("no panic under this lock"));
            self.sleepers.notify_all();
        }
    }
}

pub use imp::WaitWord;
