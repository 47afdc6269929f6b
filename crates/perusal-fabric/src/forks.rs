//! Children of fork: what domains have is their parent's.

use crate::lock::Lock;
use std::cell::RefCell;
use std::sync::{Arc, Mutex, MutexGuard, Once, PoisonError, Weak};

type Locks = Vec<Weak<Lock>>;

/// The locks of this process's domains.
static LOCKS: Mutex<Locks> = Mutex::new(Vec::new());

thread_local! {
    /// Held by a thread that forks: no other one is changing the list then, and the child can use it.
    static HELD: RefCell<Option<MutexGuard<'static, Locks>>> = const { RefCell::new(None) };
}

fn locks() -> MutexGuard<'static, Locks> {
    LOCKS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Has children of fork find a domain's lock taken for good.
pub fn watch(lock: &Arc<Lock>) {
    static FORKS: Once = Once::new();
    FORKS.call_once(|| {
        // SAFETY: the handlers use memory, and a lock that the thread has which forks. Without memory to note them a
        // child's calls go unnoticed, as if this were not here.
        let _ = unsafe { libc::pthread_atfork(Some(before), Some(in_parent), Some(in_child)) };
    });
    let mut locks = locks();
    locks.retain(|one| one.strong_count() > 0);
    locks.push(Arc::downgrade(lock));
}

extern "C" fn before() {
    let held = locks();
    HELD.set(Some(held));
}

extern "C" fn in_parent() {
    drop(HELD.take());
}

extern "C" fn in_child() {
    let held = HELD.take();
    held.iter().flat_map(|locks| locks.iter()).filter_map(Weak::upgrade).for_each(|lock| lock.inherit());
}
