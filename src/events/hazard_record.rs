//! What each thread has of its own: its hazard pointer, and what it knows of the callbacks that it is inside of.

use crate::sync::{AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, CachePadded, Ordering};
use core::ffi::c_void;

/// A function that is `const`, except under loom, whose atomics cannot be made so.
macro_rules! const_unless_loom {
    ($vis:vis fn $($rest:tt)*) => {
        #[cfg(not(perusal_loom))]
        $vis const fn $($rest)*
        #[cfg(perusal_loom)]
        $vis fn $($rest)*
    };
}

/// What a hazard pointer holds while foreign code runs that no dispatch has called; no slot lies there.
const NO_SLOT: usize = 1;
pub(super) use const_unless_loom;

/// What one thread publishes to the control side, and what it keeps for itself about the callbacks that it is inside
/// of.
#[derive(Debug)]
pub(crate) struct HazardRecord {
    /// Id of the thread; 0: none yet.
    pub(super) owner: AtomicUsize,
    /// The same, once the thread knows this record and the control side fences for all.
    pub(super) known_owner: AtomicUsize,
    /// The hazard pointer: address of the slot whose callback the owner runs, or is about to run;
    /// 0: it is inside no callback.
    pub(super) slot: AtomicUsize,
    /// Callbacks that the owner has run.
    pub(super) delivered: AtomicU64,
    /// What the listener in `slot` calls a tool's function about, if the listener leaves that here.
    /// Here and below: the owner's alone.
    subject: AtomicPtr<c_void>,
    /// When the event of the present dispatch was observed, in ticks; 0 if nobody has read the clock yet.
    when: AtomicU64,
    /// What is delivered at a safe point, where other callbacks may run meanwhile.
    instance: AtomicPtr<c_void>,
    /// Scopes of foreign code that no dispatch has called, inside of each other or of a dispatch.
    scopes: AtomicU32,
    /// The depth of the outermost callback that was refused the PERUSE lock, 0 if none was; and `delivered` then, for a
    /// refusal ends with the callback.
    refused_at: AtomicU32,
    refused_in: AtomicU64,
    pub(super) next: AtomicPtr<CachePadded<HazardRecord>>,
}

// Relaxed, in all that is the owner's alone: what one thread writes for itself is on no edge.
impl HazardRecord {
    const_unless_loom! {
        pub(super) fn new(owner: usize) -> HazardRecord {
            HazardRecord {
                owner: AtomicUsize::new(owner),
                known_owner: AtomicUsize::new(0),
                slot: AtomicUsize::new(0),
                delivered: AtomicU64::new(0),
                subject: AtomicPtr::new(core::ptr::null_mut()),
                when: AtomicU64::new(0),
                instance: AtomicPtr::new(core::ptr::null_mut()),
                scopes: AtomicU32::new(0),
                refused_at: AtomicU32::new(0),
                refused_in: AtomicU64::new(0),
                next: AtomicPtr::new(core::ptr::null_mut()),
            }
        }
    }

    /// Publishes that the thread may be inside `slot`, and is inside no other. The caller then fences
    /// ([`LightFence`](super::hazard::LightFence)).
    #[inline(always)]
    pub(super) fn set(&self, slot: usize) {
        // Release: edge 4, pairs with Acquire in `HazardDomain::read`: the callback of the slot before is over.
        self.slot.store(slot, Ordering::Release);
    }

    /// Publishes that the thread is inside no slot. The caller then fences.
    #[inline(always)]
    pub(super) fn clear(&self) {
        self.set(0);
    }

    /// Address of the slot that the thread is inside of; `None` outside dispatches.
    #[inline(always)]
    pub(super) fn slot(&self) -> Option<usize> {
        let slot = self.slot.load(Ordering::Relaxed);
        (slot > NO_SLOT).then_some(slot)
    }

    /// Whether the thread is inside a callback.
    #[inline(always)]
    pub(super) fn is_inside(&self) -> bool {
        self.slot.load(Ordering::Relaxed) != 0
    }

    /// Counts a callback.
    #[inline(always)]
    pub(super) fn count(&self) {
        // No locked instruction: a sample for others, with one writer.
        self.delivered.store(self.delivered.load(Ordering::Relaxed).wrapping_add(1), Ordering::Relaxed);
    }

    /// How many callbacks the thread is inside of.
    pub(super) fn depth(&self) -> u32 {
        self.scopes.load(Ordering::Relaxed) + u32::from(self.slot().is_some())
    }

    /// Enters foreign code that no dispatch has called.
    pub(super) fn enter(&self) {
        self.scopes.store(self.scopes.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
        if !self.is_inside() {
            self.set(NO_SLOT);
        }
    }

    /// Leaves it.
    pub(super) fn leave(&self) {
        if self.refused_at.load(Ordering::Relaxed) == self.depth() {
            self.refused_at.store(0, Ordering::Relaxed);
        }
        let left = self.scopes.load(Ordering::Relaxed) - 1;
        self.scopes.store(left, Ordering::Relaxed);
        if left == 0 && self.slot.load(Ordering::Relaxed) == NO_SLOT {
            self.clear();
        }
    }

    /// Whether the callback that runs here, or one around it, was refused the PERUSE lock.
    pub(super) fn is_refused(&self) -> bool {
        self.refused_at.load(Ordering::Relaxed) != 0
            && self.refused_in.load(Ordering::Relaxed) == self.delivered.load(Ordering::Relaxed)
    }

    /// Marks the present callback as refused; outside callbacks there is nothing to mark.
    pub(super) fn refuse(&self) {
        if !self.is_refused() {
            self.refused_at.store(self.depth(), Ordering::Relaxed);
            self.refused_in.store(self.delivered.load(Ordering::Relaxed), Ordering::Relaxed);
        }
    }

    /// Leaves `what` a tool's function is called about, until the hazard pointer changes.
    #[inline(always)]
    pub(crate) fn set_subject(&self, what: *const c_void) {
        self.subject.store(what.cast_mut(), Ordering::Relaxed);
    }

    /// What the last [`Self::set_subject`] left; the listener in `slot` must be the one that did.
    #[inline(always)]
    pub(super) fn subject(&self) -> *const c_void {
        self.subject.load(Ordering::Relaxed)
    }

    /// What [`Self::set_when`] left in the present dispatch; 0 if nothing.
    #[inline(always)]
    pub(crate) fn when(&self) -> u64 {
        self.when.load(Ordering::Relaxed)
    }

    /// Leaves the time of the event for the other listeners of this dispatch.
    #[inline(always)]
    pub(crate) fn set_when(&self, ticks: u64) {
        self.when.store(ticks, Ordering::Relaxed);
    }

    /// What [`Self::set_instance`] left.
    #[inline(always)]
    pub(crate) fn instance(&self) -> *mut c_void {
        self.instance.load(Ordering::Relaxed)
    }

    /// Leaves something for the thread's other functions. The caller puts back later what was there.
    #[inline(always)]
    pub(crate) fn set_instance(&self, instance: *mut c_void) {
        self.instance.store(instance, Ordering::Relaxed);
    }
}
