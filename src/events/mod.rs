//! Events: the table of event types, gates, listener lists, dispatch, and the PERUSE lock.
//!
//! An event site tests its communicator's [`Gate`]. If that is open, the site fills a [`Spec`] and emits an
//! [`EventRecord`] ([`CommEvents::emit`]): dispatch walks the listener list of that event type on that communicator,
//! and calls the callback of each handle in it. The control side ([`Registry`]) changes all of this at any time, from
//! any thread, without ever stopping a dispatch.
//!
//! | file | what it has |
//! |---|---|
//! | `table`, `contents` | the event types, what their records hold, and how to add one |
//! | `event`, `field`, `field_lists`, `payload`, `values`, `waiting` | what a row of the table is |
//! | `event_set` | sets of event types |
//! | [`functions`] | the MPI functions whose calls have events |
//! | `record`, `spec` | what a callback receives |
//! | `gate`, `listeners`, `comm_events` | who listens to an event type of a communicator |
//! | `dispatch`, `hazard`, `hazard_record`, `callback` | from a site to the callbacks |
//! | `registry`, `control`, `slots`, `state`, `release` | handles, from register to release |
//! | `subscription`, `global` | closures and subscribers in Rust |
//! | `lock`, `callback_state` | PERUSE_Lock; what a thread knows of the callbacks that it is inside of |
//!
//! Process-wide are the hazard domain (`hazard`), the count behind [`fast_path_is_open`] and the sleep hook (both in
//! `callback_state`). All else belongs to a [`Registry`], of which an engine has one.
//!
//! # Rules
//! - **Event rule 1.** Handle slots, list nodes and listener lists are memory that keeps its type: made when needed,
//!   used again, freed only with the registry or the communicator that owns them. So whatever a dispatch loads leads to
//!   a slot.
//! - **Event rule 2.** A handle is a number: slot index and generation, to which the slot's state gives meaning. A slot
//!   is in the entries of a listener list exactly while its handle is active there; it becomes another handle's only
//!   after it has left all lists. So a dispatch that found a slot in an entry, published its hazard pointer, and then
//!   still finds it in that entry, has a handle that is active there.
//! - **Event rule 3.** The slot owns its callback. The callback is replaced under the control lock. What was replaced
//!   or released is freed once no dispatch can be inside:
//!   out of the slot or the lists, and then found in no hazard pointer (rule 6).
//! - **Event rule 4.** The control lock is held over no callback, no drop of a closure and no wait.
//!   So callbacks may call anything here.
//! - **Event rule 5.** A released handle is retired exactly once: taken from the list of released handles, under the
//!   control lock, by the thread that finds it in no hazard pointer: the one that releases, or one whose dispatch ends.
//! - **Event rule 6.** *Publish, fence, look; take out, fence, scan.* A dispatch writes the slot to its thread's hazard
//!   pointer, fences, and then looks whether the entry still holds the slot. Only then does it call, and it clears the
//!   hazard pointer after the call. The control side takes the slot out of its entries (or a callback out of the slot),
//!   fences, and then reads all hazard pointers. So either the dispatch sees the change, or the control side sees the
//!   hazard pointer.
//! - **Event rule 7.** *Clear, fence, ask; request, fence, scan.* A dispatch that ends clears its hazard pointer,
//!   fences, and then asks whether the control side has requested help. The control side sets that request, fences, and
//!   then reads the hazard pointers. So a slot that a scan finds in a hazard pointer is settled by the dispatch that
//!   has it there.
//! - **Event rule 8.** A thread has one hazard pointer. What happens inside a callback emits no events.
//! - **Event rule 9.** Only the listener that receives an event last gets the [`Spec`] itself, to write into.
//!   Nobody reads it afterwards.
//!
//! No step of a dispatch is an atomic read-modify-write, and none of its fences costs anything where the kernel has
//! `membarrier(2)`: see `hazard`.
//!
//! *Edge 4*: `Node::fill` and `ListenerList::note_only` (Release) → `ListEntry::holds` (Acquire) publishes what the
//! slot holds, and `SlotState::open` (Release) → `SlotState::status` (Acquire) its event type; `HazardRecord::set`
//! (Release) → `HazardDomain::read` (Acquire) hands the slot back.

mod callback;
mod callback_state;
mod comm_events;
mod contents;
mod control;
mod dispatch;
mod event;
mod event_set;
mod field;
mod field_lists;
mod functions;
mod gate;
mod global;
mod hazard;
mod hazard_record;
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
mod waiting;

#[cfg(all(test, feature = "peruse", not(perusal_loom)))]
mod tests;

pub use callback::CFunction;
pub(crate) use callback::Listener;
#[cfg(perusal_loom)]
pub use callback_state::SlowPath;
pub use callback_state::inside_callback;
pub(crate) use callback_state::run_sleep_hook;
#[cfg(not(perusal_loom))]
pub(crate) use callback_state::set_sleep_hook;
pub use comm_events::{AboutKind, CommAbout, CommEvents};
pub(crate) use dispatch::current_subject;
pub use event::{Binding, Event, EventInfo, Identity, Shown, Verbosity};
pub use event_set::EventSet;
pub use field::{FieldInfo, FieldType, FieldValue};
pub use functions::{FUNCTIONS, polls};
pub use gate::Gate;
pub use global::GlobalSubscription;
pub(crate) use hazard::of_this_thread as this_thread;
pub(crate) use hazard_record::HazardRecord;
pub use lock::{LockError, PeruseLock};
pub use payload::{CollRoot, PartitionBytes, PartitionCount, Words};
pub use record::{EventRecord, GlobalSubscriber};
pub use registry::{EventError, Fatal, Registry};
pub use spec::{
    Callback, CallbackClosure, CommCallback, CommSpec, FileCallback, FileSpec, Operation, RmaTarget, Spec,
    WinCallback, WinSpec,
};
pub use subscription::Subscription;
pub use table::{CATALOG, EVENTS, EventPayload, Field, PERUSE_EVENTS, PayloadKind};
pub use values::{
    Algorithm, CollMode, Collective, FileMode, FileOperation, FilePointer, RmaOperation, WindowLock,
    WindowReach, WindowSync,
};
pub use waiting::Waiting;
// For the bindings.
#[doc(hidden)]
pub use callback_state::fast_path_is_open;
#[cfg(not(perusal_loom))]
#[doc(hidden)]
pub use callback_state::open_bindings;
pub use callback_state::{hold_fast_path, shut_fast_path};
#[cfg(not(perusal_loom))]
#[doc(hidden)]
pub use dispatch::inside_peruse_callback;

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
