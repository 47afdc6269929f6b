//! What a slot owns: a callback of whatever kind, with the one function by which dispatch calls it.
//!
//! The slot's pointer is thin, and so that a delivery is one look at it and one indirect call, what is behind it begins with
//! that call's function. What follows is known to the functions of its [`CallbackHeader`] alone.

use super::Handle;
use super::hazard::HazardRecord;
use super::record::{EventRecord, GlobalSubscriber};
use super::registry::Registry;
use super::spec::{Callback, CommCallback, CommSpec, Spec};
use core::ffi::{c_int, c_void};
use core::ptr::NonNull;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

/// A listener of the library's own: told without the detours of a [`GlobalSubscriber`], and with the hazard of the thread.
///
/// The contract is a global subscriber's, but that it must not panic.
pub(crate) trait Listener: Send + Sync + 'static {
    /// Something has happened.
    fn deliver(&self, record: &EventRecord<'_>, hazard: &HazardRecord);

    /// If it calls functions, and says what of by [`HazardRecord::set_subject`] before it does: how that is to be read. Of all listeners that a
    /// handle has ([`Registry::set_listener`]) the same.
    fn subject_type(&self) -> Option<NonNull<c_void>>;
}

/// A description that the last listener of an event may write into, as `peruse_comm_spec_t` allows C functions to; or none.
#[derive(Clone, Copy)]
pub(super) struct WritableSpec(*mut Spec);

impl WritableSpec {
    /// None: who may write is handed a copy.
    pub(super) const NOTHING: WritableSpec = WritableSpec(core::ptr::null_mut());

    /// # Safety
    /// It stays until the event has been told, and after the first write through this nobody reads it as a [`Spec`].
    #[inline(always)]
    pub(super) unsafe fn new(spec: *mut Spec) -> WritableSpec {
        WritableSpec(spec)
    }

    /// It as C sees it, if C can see all of it so.
    #[inline(always)]
    fn for_c(self) -> Option<NonNull<CommSpec>> {
        let spec = NonNull::new(self.0)?;
        // SAFETY: there, by the contract of `new`, and not yet written to.
        unsafe { spec.as_ref() }.is_for_c().then_some(spec.cast())
    }
}

/// Calls a callback. Gives what a C function returns, and 0 for every other kind.
///
/// # Safety
/// The head lies in a box of the kind that the function was made for, which nobody frees meanwhile. Nobody reads what is writable afterwards,
/// nor the record's description if anything is.
type Call = unsafe fn(&CallbackHeader, &EventRecord<'_>, &HazardRecord, WritableSpec) -> c_int;

/// How each kind of callback begins in memory.
#[repr(C)]
pub(super) struct CallbackHeader {
    call: Call,
    handle: Handle,
    /// Whose it is, and told if it fails; lives longer, for its slots own what is called.
    registry: *const Registry,
    /// Of a listener of the library's own: [`Listener::subject_type`].
    subject_type: Option<NonNull<c_void>>,
    /// What names it in a fatal message.
    address: usize,
    /// Drops the box.
    ///
    /// # Safety
    /// It is of the kind that the function was made for, and writable up by who calls.
    free: unsafe fn(*mut CallbackHeader),
    /// A C function's address and parameter.
    c: Option<(CommCallback, *mut c_void)>,
}

/// A callback in memory.
#[repr(C)]
struct CallbackBox<L> {
    head: CallbackHeader,
    listener: L,
}

/// Owns a callback.
pub(super) struct OwnedCallback(NonNull<CallbackHeader>);

// SAFETY: every kind that is made here is Send and Sync, by its own bounds or (C functions) by the tool's promise
// (PERUSE 2.0 §5.1.2).
unsafe impl Send for OwnedCallback {}

impl Drop for OwnedCallback {
    fn drop(&mut self) {
        // SAFETY: `head` is always there, and ours to give up.
        unsafe { (self.0.as_ref().free)(self.0.as_ptr()) };
    }
}

impl core::fmt::Debug for OwnedCallback {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("OwnedCallback").finish_non_exhaustive()
    }
}

impl OwnedCallback {
    /// The user's callback, as that of `handle`.
    pub(super) fn new(registry: &Registry, handle: Handle, callback: Callback) -> OwnedCallback {
        let address = callback.address();
        match callback {
            Callback::C { function, param } => {
                let head = CallbackHeader::new::<CFunction>(registry, handle, call_c);
                OwnedCallback::make(
                    CallbackHeader { address, c: Some((function, param)), ..head },
                    CFunction { function, param },
                )
            }
            Callback::Rust(closure) => {
                let head = CallbackHeader::new::<Closure>(registry, handle, call_closure);
                OwnedCallback::make(CallbackHeader { address, ..head }, closure)
            }
            Callback::GlobalSubscriber(tap) => {
                let head = CallbackHeader::new::<Arc<dyn GlobalSubscriber>>(registry, handle, call_tap);
                OwnedCallback::make(CallbackHeader { address, ..head }, tap)
            }
        }
    }

    /// A listener of the library's own, as the callback of `handle`.
    pub(super) fn of_listener<L: Listener>(
        registry: &Registry,
        handle: Handle,
        listener: L,
    ) -> OwnedCallback {
        let head = CallbackHeader::new::<L>(registry, handle, call_listener::<L>);
        OwnedCallback::make(CallbackHeader { subject_type: listener.subject_type(), ..head }, listener)
    }

    /// `head` is made for `L`.
    fn make<L>(head: CallbackHeader, listener: L) -> OwnedCallback {
        OwnedCallback(NonNull::from(Box::leak(Box::new(CallbackBox { head, listener }))).cast())
    }

    /// For a slot to own.
    pub(super) fn into_raw(self) -> *mut CallbackHeader {
        let head = self.0.as_ptr();
        core::mem::forget(self);
        head
    }

    /// What a slot owned; none if that is null.
    ///
    /// # Safety
    /// `head` is null or came from [`Self::into_raw`], and is writable up by who calls.
    pub(super) unsafe fn from_raw(head: *mut CallbackHeader) -> Option<OwnedCallback> {
        NonNull::new(head).map(OwnedCallback)
    }
}

impl CallbackHeader {
    /// As that of `handle`; `call` is made for `L`.
    fn new<L>(registry: &Registry, handle: Handle, call: Call) -> CallbackHeader {
        CallbackHeader { call, handle, registry, subject_type: None, address: 0, free: free::<L>, c: None }
    }

    /// How what it tells functions of is to be read, if it does.
    #[inline(always)]
    pub(super) fn subject_type(&self) -> Option<NonNull<c_void>> {
        self.subject_type
    }

    /// Runs the callback. Gives 0, or with what it has failed if that is still to be told ([`Self::fail`]).
    ///
    /// # Safety
    /// Nobody frees it meanwhile. If anything is `writable`, nobody reads that or the record's description afterwards.
    #[inline(always)]
    pub(super) unsafe fn call(
        &self,
        record: &EventRecord<'_>,
        hazard: &HazardRecord,
        writable: WritableSpec,
    ) -> c_int {
        // SAFETY: `make` has put the function there together with what it is made for; the rest is the caller's.
        unsafe { (self.call)(self, record, hazard, writable) }
    }

    /// The C function and its parameter, if it is one.
    pub(super) fn c(&self) -> Option<(CommCallback, *mut c_void)> {
        self.c
    }

    /// The callback has failed, which ends the job. `comm`: the record's, whose description may be written over.
    #[cold]
    #[inline(never)]
    pub(super) fn fail(&self, record: &EventRecord<'_>, comm: usize, how: &dyn core::fmt::Display) {
        // SAFETY: whoever calls is inside of a dispatcher of this registry, which borrows it.
        let registry = unsafe { &*self.registry };
        let text = format!(
            "PERUSE callback at {:#x} {how} for event {} (handle {:#x}, communicator {:#x}, unique id {:#x}); \
             a callback's non-success return ends the job (PERUSE 2.0, section 5.1.2)",
            self.address,
            registry.name_of(record.event),
            self.handle.raw(),
            comm,
            record.id,
        );
        registry.fatal(text);
    }
}

/// # Safety
/// As for [`CallbackHeader::free`], made for `L`.
unsafe fn free<L>(head: *mut CallbackHeader) {
    // SAFETY: `make` leaked exactly this box, which begins with its head.
    drop(unsafe { Box::from_raw(head.cast::<CallbackBox<L>>()) });
}

/// # Safety
/// `head` is that of a `CallbackBox<L>`.
#[inline(always)]
unsafe fn listener<L>(head: &CallbackHeader) -> &L {
    // SAFETY: by contract; a box's head is borrowed no longer than the box.
    unsafe { &(*core::ptr::from_ref(head).cast::<CallbackBox<L>>()).listener }
}

unsafe fn call_listener<L: Listener>(
    head: &CallbackHeader,
    record: &EventRecord<'_>,
    hazard: &HazardRecord,
    _: WritableSpec,
) -> c_int {
    // SAFETY: made for `L`.
    unsafe { listener::<L>(head) }.deliver(record, hazard);
    0
}

/// A C function and what it is writable.
struct CFunction {
    function: CommCallback,
    param: *mut c_void,
}

unsafe fn call_c(
    head: &CallbackHeader,
    record: &EventRecord<'_>,
    _: &HazardRecord,
    writable: WritableSpec,
) -> c_int {
    let Some(spec) = writable.for_c() else {
        // SAFETY: made for a C function.
        return unsafe { call_c_with_copy(head, record) };
    };
    // SAFETY: made for a C function.
    let CFunction { function, param } = *unsafe { listener::<CFunction>(head) };
    // SAFETY: the tool registered `function` as a peruse_comm_callback_f to be called with `param`; `spec` lives for the
    // call's duration, which is all that §5.1.2 promises of it, and is nobody else's any more.
    unsafe { function(head.handle.raw(), record.id, spec.as_ptr(), param) }
}

/// # Safety
/// As for `call_c`.
#[cold]
#[inline(never)]
unsafe fn call_c_with_copy(head: &CallbackHeader, record: &EventRecord<'_>) -> c_int {
    // SAFETY: made for a C function.
    let CFunction { function, param } = *unsafe { listener::<CFunction>(head) };
    let mut spec = CommSpec::from(record.spec);
    // SAFETY: as in `call_c`; `spec` lives on this stack.
    unsafe { function(head.handle.raw(), record.id, &raw mut spec, param) }
}

type Closure = Box<dyn Fn(Handle, &EventRecord<'_>) + Send + Sync>;

unsafe fn call_closure(
    head: &CallbackHeader,
    record: &EventRecord<'_>,
    _: &HazardRecord,
    _: WritableSpec,
) -> c_int {
    // SAFETY: made for a closure.
    let closure = unsafe { listener::<Closure>(head) };
    guarded(head, record, || closure(head.handle, record))
}

unsafe fn call_tap(
    head: &CallbackHeader,
    record: &EventRecord<'_>,
    _: &HazardRecord,
    _: WritableSpec,
) -> c_int {
    // SAFETY: made for a global subscriber.
    let tap = unsafe { listener::<Arc<dyn GlobalSubscriber>>(head) };
    guarded(head, record, || tap.on_event(record))
}

/// Runs foreign Rust, which may panic.
#[inline(always)]
fn guarded(head: &CallbackHeader, record: &EventRecord<'_>, foreign: impl FnOnce()) -> c_int {
    if let Err(payload) = catch_unwind(AssertUnwindSafe(foreign)) {
        // Foreign code too: dropping it might panic again, inside the engine.
        core::mem::forget(payload);
        head.fail(record, record.spec.comm, &"panicked");
    }
    0
}
