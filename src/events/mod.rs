//! PERUSE events: catalogue, gate, registry, dispatch, lock.
//!
//! An event site tests its communicator's [`Gate`]; when that is open it fills a [`Spec`] and calls
//! [`CommEvents::emit`], which walks the handles of that event on that communicator and calls those that are active.
//! The control side ([`Registry`]) changes all of this at any time, from any thread, without ever stopping a dispatcher.
//!
//! # Rules
//! - **Event rule 1.** SlotTable and links are memory that keeps its type: made when needed, given out again, freed only with the
//!   registry or the communicator that owns them. So whatever a dispatcher loads leads to a slot.
//! - **Event rule 2.** A handle is a number: slot index and generation, to which the slot's state gives meaning. A slot is in the
//!   places of a row exactly while its handle is active there; it is another handle's only after it has left all of them. So a
//!   dispatcher that has found it in a place, protected it, and then finds it still in that place, has a handle that is active in that row.
//! - **Event rule 3.** The slot owns its callback. It is replaced under the control lock, and what was replaced or released is freed
//!   once nobody can be inside: out of the slot or the rows, and then found in no hazard (rule 6).
//! - **Event rule 4.** The control lock is held over no callback, no drop of a closure and no wait but the condition variable's.
//!   So callbacks may call anything here.
//! - **Event rule 5.** A released handle is retired exactly once: from the list of those that leave, under the control lock, by whoever
//!   finds it in no hazard: who releases, or a pass that ends.
//! - **Event rule 6.** *HazardRecord, fence, look; take out, fence, scan.* A dispatcher writes a slot into its hazard, fences, and then looks
//!   whether the place still holds the slot; it calls only then, and keeps the hazard until the call is over. The control side takes the
//!   slot out of its places (or a callback out of the slot), fences, and then reads all hazard pointers. So either the dispatcher sees the change, or the control side sees the hazard.
//! - **Event rule 7.** *Clear, fence, ask; want, fence, scan.* A pass that ends clears its hazard, fences, and then asks whether the control
//!   side wants something; that says so, fences, and then reads the hazard pointers. So what a scan finds protected is seen to by the pass that hazard pointers it.
//! - **Event rule 8.** A thread has one hazard. What happens inside a callback is told to nobody.
//! - **Event rule 9.** Only who is told of an event last is given the description itself, to write into; nobody reads that any more.
//!
//! None of a dispatcher's steps is an atomic read-modify-write, and none of its fences costs anything where the kernel has
//! `membarrier(2)`: see `hazard`.
//!
//! *Edge 4*: `Row::insert` (Release) → `Place::holds` (Acquire) publishes what the slot holds, and `State::open` (Release) →
//! `State::view` (Acquire) its event; `HazardRecord::set` (Release) → `HazardDomain::busy` (Acquire) hands it back.

mod callback;
mod callback_state;
mod comm_events;
mod control;
mod dispatch;
mod event;
mod event_set;
mod field;
mod gate;
mod global;
mod hazard;
mod listeners;
mod lock;
mod payload;
mod record;
mod registry;
mod release;
mod slots;
mod spec;
mod state;
mod subscription;
mod table;
mod values;

#[cfg(all(test, feature = "peruse", not(perusal_loom)))]
mod tests;

pub(crate) use callback::Listener;
pub use callback_state::inside_callback;
pub(crate) use callback_state::run_sleep_hook;
#[cfg(not(perusal_loom))]
pub(crate) use callback_state::{hold_fast_path, set_sleep_hook};
pub use comm_events::CommEvents;
pub(crate) use dispatch::current_subject;
pub use event::{Binding, Event, EventInfo, Identity, Shown, Verbosity};
pub use event_set::EventSet;
pub use field::{FieldInfo, FieldType, FieldValue};
pub use gate::Gate;
pub use global::GlobalSubscription;
pub(crate) use hazard::{HazardRecord, of_this_thread as hazard_record};
pub use lock::{LockError, PeruseLock};
pub use payload::Words;
pub use record::{EventRecord, GlobalSubscriber};
pub use registry::{EventError, Fatal, Registry};
pub use spec::{Callback, CommCallback, CommSpec, Operation, Spec};
pub use subscription::Subscription;
pub use table::{CATALOG, EVENTS, EventPayload, Field, PERUSE_EVENTS, PayloadKind};
pub use values::{Algorithm, CollMode, Collective};
// For the bindings.
#[cfg(not(perusal_loom))]
#[doc(hidden)]
pub use callback_state::{fast_path_is_open, open_bindings};

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
