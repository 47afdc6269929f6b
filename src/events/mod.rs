//! PERUSE events: catalogue, gate, registry, dispatch, lock.
//!
//! An event site tests its communicator's [`Gate`]; when that is open it fills a [`Spec`] and calls
//! [`CommEvents::raise`], which walks the handles of that event on that communicator and calls those that are active.
//! The control side ([`Registry`]) changes all of this at any time, from any thread, without ever stopping a dispatcher.
//!
//! # Rules
//! - **Event rule 1.** Slots and links are memory that keeps its type: made when needed, given out again, freed only with the
//!   registry or the communicator that owns them. So whatever a dispatcher loads leads to a slot.
//! - **Event rule 2.** A handle is a number: slot index and generation. Only `State::enter` gives it meaning: it counts the
//!   dispatcher in if, and only if, the slot still has that generation and the window is open.
//! - **Event rule 3.** The slot owns its callback. It is replaced under the control lock while the handle is inactive, and
//!   freed under that lock once nobody can be inside: released or inactive, and nobody in flight.
//! - **Event rule 4.** The control lock is held over no callback, no drop of a closure and no wait but the condition variable's.
//!   So callbacks may call anything here.
//! - **Event rule 5.** A released handle is retired exactly once: by `release` if nobody is inside, else by the last to leave.
//!
//! *Edge 4*: `State::activate` and `State::open` (Release) → `State::enter` and `State::view` (Acquire) publish what the slot
//! holds; `State::leave` (Release) → `State::release` and the last `State::leave` (Acquire) hand it back.

mod catalog;
mod comm_events;
mod dispatch;
mod fact;
mod field;
mod gate;
mod lock;
mod registry;
mod rows;
mod slots;
mod spec;
mod state;
mod subscription;
mod tap;
mod upcall;

#[cfg(all(test, feature = "peruse", not(perusal_loom)))]
mod tests;

pub use catalog::{Binding, CATALOG, EVENTS, Event, Identity, PERUSE_EVENTS, Row, Verbosity};
pub use comm_events::CommEvents;
pub use fact::{Detail, Events, Fact, Tap};
pub use field::{Algorithm, Collective, Field, Kind, Value};
pub use gate::Gate;
pub use lock::{Lock, LockError};
pub use registry::{EventError, Fatal, Registry};
pub use spec::{Callback, CommCallback, CommSpec, Occurrence, Operation, Spec};
pub use subscription::Subscription;
pub use tap::TapHandle;
pub use upcall::inside_callback;
#[cfg(not(perusal_loom))]
pub(crate) use upcall::{keep_awake, open_c_face, quiet};

/// An event handle: slot index and generation, as one positive number. A copy outlives the handle and is then refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Handle(core::num::NonZeroU64);

impl Handle {
    const INDEX: u64 = u32::MAX as u64;

    fn new(index: usize, generation: u32) -> Handle {
        let bits = u64::from(generation) << 32 | (index as u64 + 1);
        Handle(core::num::NonZeroU64::new(bits).expect("the low half is at least 1"))
    }

    /// The handle that a C program gives; `None` for PERUSE_EVENT_HANDLE_NULL. Any other number may be asked about.
    #[must_use]
    pub fn from_raw(raw: i64) -> Option<Handle> {
        Handle::from_bits(raw.cast_unsigned())
    }

    /// The handle as a `peruse_event_h`.
    #[must_use]
    pub fn raw(self) -> i64 {
        self.0.get().cast_signed()
    }

    fn from_bits(bits: u64) -> Option<Handle> {
        core::num::NonZeroU64::new(bits).map(Handle)
    }

    fn bits(self) -> u64 {
        self.0.get()
    }

    /// The slot; beyond every slot if the number was not made by us.
    fn index(self) -> usize {
        (self.bits() & Handle::INDEX).wrapping_sub(1) as usize
    }

    fn generation(self) -> u32 {
        (self.bits() >> 32) as u32
    }
}
