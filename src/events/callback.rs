//! What a slot owns: a callback of whatever kind, with the one function by which dispatch calls it.
//!
//! The slot's pointer is thin. To deliver an event is one load and one indirect call, because a callback in memory
//! begins with a [`CallbackHeader`], and that with the call's function.
//! Only the functions of the header know what follows.

use super::hazard_record::HazardRecord;
use super::record::{EventRecord, GlobalSubscriber};
use super::registry::Registry;
use super::spec::{
    Callback, CallbackClosure, CommCallback, CommSpec, FileCallback, FileSpec, Spec, WinCallback, WinSpec,
};
use super::{Binding, Handle};
use core::ffi::{c_int, c_void};
use core::marker::PhantomData;
use core::ptr::NonNull;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

/// A listener of the library's own: called without the detours of a [`GlobalSubscriber`],
/// and with the thread's hazard record.
///
/// The contract is that of [`GlobalSubscriber`], except that it must not panic.
pub(crate) trait Listener: Send + Sync + 'static {
    /// Receives one record.
    fn deliver(&self, record: &EventRecord<'_>, hazard: &HazardRecord);

    /// What the subject is that it leaves in [`HazardRecord::set_subject`] before it calls a tool's function; `None` if
    /// it leaves none. All listeners that a handle ever has ([`Registry::set_listener`]) return the same.
    fn subject_type(&self) -> Option<NonNull<c_void>>;
}

/// The [`Spec`] of an event whose last listener may write into it,
/// as `peruse_comm_spec_t` allows C functions to; or none.
#[derive(Clone, Copy)]
pub(super) struct WritableSpec(*mut Spec);

impl WritableSpec {
    /// None: a C function receives a copy.
    pub(super) const NOTHING: WritableSpec = WritableSpec(core::ptr::null_mut());

    /// # Safety
    /// `spec` may be read and written until the event has been delivered,
    /// and nobody reads it as a [`Spec`] after a C function received it.
    #[inline(always)]
    pub(super) unsafe fn new(spec: *mut Spec) -> WritableSpec {
        WritableSpec(spec)
    }

    /// It as C sees it, if C can see all of it so.
    #[inline(always)]
    fn for_c(self) -> Option<NonNull<CommSpec>> {
        let spec = NonNull::new(self.0)?;
        // SAFETY: `new` was given a spec that may be read until it is written to, and this is the last listener:
        // nobody has (event rule 9).
        unsafe { spec.as_ref() }.is_for_c().then_some(spec.cast())
    }
}

/// Calls a callback. Returns what a C function returns, and 0 for every other kind.
///
/// # Safety
/// The callback is of the kind that the function was made for.
/// Nobody reads the writable spec, nor the record's, afterwards.
type CallbackFn = unsafe fn(CallbackRef<'_>, &EventRecord<'_>, &HazardRecord, WritableSpec) -> c_int;

/// The beginning of each kind of callback in memory.
#[repr(C)]
pub(super) struct CallbackHeader {
    call: CallbackFn,
    handle: Handle,
    /// The registry whose slot owns the callback, and which therefore outlives it;
    /// its fatal hook is called if the callback fails.
    registry: *const Registry,
    /// Of a listener of the library's own: [`Listener::subject_type`].
    subject_type: Option<NonNull<c_void>>,
    /// The address that names it in a fatal message.
    address: usize,
    /// Drops the box.
    ///
    /// # Safety
    /// The header is that of a box of the kind that the function was made for, and the caller owns the box.
    free: unsafe fn(*mut CallbackHeader),
    /// A C function's address and parameter.
    c: Option<CFunction>,
}

/// A C function that was registered, with its parameter.
#[derive(Debug, Clone, Copy)]
pub enum CFunction {
    /// For the events of a communicator.
    Comm(CommCallback, *mut c_void),
    /// For the events of a window.
    Win(WinCallback, *mut c_void),
    /// For the events of a file.
    File(FileCallback, *mut c_void),
}

/// A callback of one kind in memory.
#[repr(C)]
struct CallbackBox<L> {
    head: CallbackHeader,
    listener: L,
}

/// A callback that somebody owns. It points to the whole box: a reference to the header would borrow the header alone,
/// and what follows could not be reached through it.
#[derive(Clone, Copy)]
pub(super) struct CallbackRef<'a> {
    head: NonNull<CallbackHeader>,
    owner: PhantomData<&'a OwnedCallback>,
}

/// Owns a callback of whatever kind.
pub(super) struct OwnedCallback(NonNull<CallbackHeader>);

// SAFETY: every kind that is made here is Send and Sync, by its own bounds or (C functions) by the tool's promise
// (PERUSE 2.0 §5.1.2).
unsafe impl Send for OwnedCallback {}

impl Drop for OwnedCallback {
    fn drop(&mut self) {
        // SAFETY: `make` leaked the box for this value to own, and its header has the function that frees its kind.
        unsafe { (self.0.as_ref().free)(self.0.as_ptr()) };
    }
}

impl core::fmt::Debug for OwnedCallback {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("OwnedCallback").finish_non_exhaustive()
    }
}

impl OwnedCallback {
    /// The user's callback, for `handle`.
    pub(super) fn new(registry: &Registry, handle: Handle, callback: Callback) -> OwnedCallback {
        let address = callback.address();
        match callback {
            Callback::C { function, param } => {
                let head = CallbackHeader::new::<CommFunction>(registry, handle, call_c);
                OwnedCallback::make(
                    CallbackHeader { address, c: Some(CFunction::Comm(function, param)), ..head },
                    CommFunction { function, param },
                )
            }
            Callback::Win { function, param } => {
                let head = CallbackHeader::new::<WinFunction>(registry, handle, call_win);
                OwnedCallback::make(
                    CallbackHeader { address, c: Some(CFunction::Win(function, param)), ..head },
                    WinFunction { function, param },
                )
            }
            Callback::File { function, param } => {
                let head = CallbackHeader::new::<FileFunction>(registry, handle, call_file);
                OwnedCallback::make(
                    CallbackHeader { address, c: Some(CFunction::File(function, param)), ..head },
                    FileFunction { function, param },
                )
            }
            Callback::Rust(closure) => {
                let head = CallbackHeader::new::<CallbackClosure>(registry, handle, call_closure);
                OwnedCallback::make(CallbackHeader { address, ..head }, closure)
            }
            Callback::GlobalSubscriber(subscriber) => {
                let head =
                    CallbackHeader::new::<Arc<dyn GlobalSubscriber>>(registry, handle, call_subscriber);
                OwnedCallback::make(CallbackHeader { address, ..head }, subscriber)
            }
        }
    }

    /// A listener of the library's own, for `handle`.
    pub(super) fn of_listener<L: Listener>(
        registry: &Registry,
        handle: Handle,
        listener: L,
    ) -> OwnedCallback {
        let head = CallbackHeader::new::<L>(registry, handle, call_listener::<L>);
        OwnedCallback::make(CallbackHeader { subject_type: listener.subject_type(), ..head }, listener)
    }

    /// Puts `listener` behind `head`, which was made for `L`.
    fn make<L>(head: CallbackHeader, listener: L) -> OwnedCallback {
        OwnedCallback(NonNull::from(Box::leak(Box::new(CallbackBox { head, listener }))).cast())
    }

    /// Gives it to a slot to own.
    pub(super) fn into_raw(self) -> *mut CallbackHeader {
        let head = self.0.as_ptr();
        core::mem::forget(self);
        head
    }

    /// Takes what a slot owned; none if that is null.
    ///
    /// # Safety
    /// `head` is null or came from [`Self::into_raw`], and the slot does not own it any more.
    pub(super) unsafe fn from_raw(head: *mut CallbackHeader) -> Option<OwnedCallback> {
        NonNull::new(head).map(OwnedCallback)
    }
}

impl CallbackHeader {
    /// For `handle`; `call` was made for `L`.
    fn new<L>(registry: &Registry, handle: Handle, call: CallbackFn) -> CallbackHeader {
        CallbackHeader { call, handle, registry, subject_type: None, address: 0, free: free::<L>, c: None }
    }
}

impl<'a> CallbackRef<'a> {
    /// Borrows the callback that begins with `head`.
    ///
    /// # Safety
    /// `head` came from [`OwnedCallback::into_raw`], and nobody drops that callback as long as the result or a copy of
    /// it is used.
    #[inline(always)]
    pub(super) unsafe fn new(head: *mut CallbackHeader) -> CallbackRef<'a> {
        // SAFETY: `into_raw` returns the address of a box.
        CallbackRef { head: unsafe { NonNull::new_unchecked(head) }, owner: PhantomData }
    }

    #[inline(always)]
    fn head(self) -> &'a CallbackHeader {
        // SAFETY: `new` was given the head of a callback that is not dropped meanwhile;
        // nobody writes to it before that.
        unsafe { self.head.as_ref() }
    }

    /// What follows the header.
    ///
    /// # Safety
    /// The callback is a `CallbackBox<L>`.
    #[inline(always)]
    unsafe fn listener<L>(self) -> &'a L {
        // SAFETY: the caller says that a `CallbackBox<L>` begins here, and the pointer is that of the box
        // (`OwnedCallback::make`), which is not dropped meanwhile (`new`).
        unsafe { &(*self.head.as_ptr().cast::<CallbackBox<L>>()).listener }
    }

    /// What its subject is, if it leaves one.
    #[inline(always)]
    pub(super) fn subject_type(self) -> Option<NonNull<c_void>> {
        self.head().subject_type
    }

    /// Runs the callback. Returns 0, or the value with which a C function failed; the caller then calls [`Self::fail`].
    ///
    /// # Safety
    /// Nobody reads the writable spec afterwards, if there is one.
    #[inline(always)]
    pub(super) unsafe fn call(
        self,
        record: &EventRecord<'_>,
        hazard: &HazardRecord,
        writable: WritableSpec,
    ) -> c_int {
        // SAFETY: `make` put the function before a listener of the kind that it was made for;
        // the caller keeps the spec to itself.
        unsafe { (self.head().call)(self, record, hazard, writable) }
    }

    /// The C function and its parameter, if it is one.
    pub(super) fn c(self) -> Option<CFunction> {
        self.head().c
    }

    /// Ends the job, because the callback failed. `comm` is the communicator's handle:
    /// the one in the record's spec may be overwritten.
    #[cold]
    #[inline(never)]
    pub(super) fn fail(self, record: &EventRecord<'_>, comm: usize, how: &dyn core::fmt::Display) {
        let head = self.head();
        // SAFETY: the caller is inside a dispatch, which borrows the registry that owns this callback.
        let registry = unsafe { &*head.registry };
        let text = format!(
            "PERUSE callback at {:#x} {how} for event {} (handle {:#x}, {} {:#x}, unique id {:#x}); \
             a callback's non-success return ends the job (PERUSE 2.0, section 5.1.2)",
            head.address,
            registry.name_of(record.event),
            head.handle.raw(),
            match record.event.info().binding {
                Binding::Window => "window",
                Binding::File => "file",
                Binding::Communicator | Binding::Nothing => "communicator",
            },
            comm,
            record.id,
        );
        registry.fatal(text);
    }
}

/// Drops the box that begins with `head`.
///
/// # Safety
/// `head` came from [`OwnedCallback::make`] for `L`, and the caller owns it.
unsafe fn free<L>(head: *mut CallbackHeader) {
    // SAFETY: `make` leaked exactly this box, which begins with its head.
    drop(unsafe { Box::from_raw(head.cast::<CallbackBox<L>>()) });
}

unsafe fn call_listener<L: Listener>(
    callback: CallbackRef<'_>,
    record: &EventRecord<'_>,
    hazard: &HazardRecord,
    _: WritableSpec,
) -> c_int {
    // SAFETY: `of_listener` makes a `CallbackBox<L>` with this function.
    unsafe { callback.listener::<L>() }.deliver(record, hazard);
    0
}

/// A C function for the events of a communicator, and its parameter.
struct CommFunction {
    function: CommCallback,
    param: *mut c_void,
}

/// A C function for the events of a window, and its parameter.
struct WinFunction {
    function: WinCallback,
    param: *mut c_void,
}

unsafe fn call_c(
    callback: CallbackRef<'_>,
    record: &EventRecord<'_>,
    _: &HazardRecord,
    writable: WritableSpec,
) -> c_int {
    let Some(spec) = writable.for_c() else {
        // SAFETY: `new` makes a `CallbackBox<CommFunction>` with `call_c`, which this callback has.
        return unsafe { call_c_with_copy(callback, record) };
    };
    // SAFETY: `new` makes a `CallbackBox<CommFunction>` with `call_c`, which this callback has.
    let CommFunction { function, param } = *unsafe { callback.listener::<CommFunction>() };
    // SAFETY: the tool registered `function` as a peruse_comm_callback_f to be called with `param`; `spec` lives for
    // the call's duration, which is all that §5.1.2 promises of it, and nobody else reads it any more (event rule 9).
    unsafe { function(callback.head().handle.raw(), record.id, spec.as_ptr(), param) }
}

/// Calls a C function with a copy of the record's spec.
///
/// # Safety
/// The callback is a `CallbackBox<CommFunction>`.
#[cold]
#[inline(never)]
unsafe fn call_c_with_copy(callback: CallbackRef<'_>, record: &EventRecord<'_>) -> c_int {
    // SAFETY: `new` makes a `CallbackBox<CommFunction>` with `call_c`, which this callback has.
    let CommFunction { function, param } = *unsafe { callback.listener::<CommFunction>() };
    let mut spec = CommSpec::from(record.spec);
    // SAFETY: the tool registered `function` to be called with `param`;
    // `spec` lives on this stack until it has returned.
    unsafe { function(callback.head().handle.raw(), record.id, &raw mut spec, param) }
}

unsafe fn call_win(
    callback: CallbackRef<'_>,
    record: &EventRecord<'_>,
    _: &HazardRecord,
    _: WritableSpec,
) -> c_int {
    // SAFETY: `new` makes a `CallbackBox<WinFunction>` with `call_win`, which this callback has.
    let WinFunction { function, param } = *unsafe { callback.listener::<WinFunction>() };
    let mut spec = WinSpec::from(record);
    // SAFETY: the tool registered `function` as a peruse_win_callback_f to be called with `param`; `spec` lives on this
    // stack until it has returned.
    unsafe { function(callback.head().handle.raw(), record.id, &raw mut spec, param) }
}

/// A C function for the events of a file, and its parameter.
struct FileFunction {
    function: FileCallback,
    param: *mut c_void,
}

unsafe fn call_file(
    callback: CallbackRef<'_>,
    record: &EventRecord<'_>,
    _: &HazardRecord,
    _: WritableSpec,
) -> c_int {
    // SAFETY: `new` makes a `CallbackBox<FileFunction>` with `call_file`, which this callback has.
    let FileFunction { function, param } = *unsafe { callback.listener::<FileFunction>() };
    let mut spec = FileSpec::from(record);
    // SAFETY: the tool registered `function` as a peruse_file_callback_f to be called with `param`; `spec` lives on
    // this stack until it has returned.
    unsafe { function(callback.head().handle.raw(), record.id, &raw mut spec, param) }
}

unsafe fn call_closure(
    callback: CallbackRef<'_>,
    record: &EventRecord<'_>,
    _: &HazardRecord,
    _: WritableSpec,
) -> c_int {
    // SAFETY: `new` makes a `CallbackBox<CallbackClosure>` with this function.
    let closure = unsafe { callback.listener::<CallbackClosure>() };
    guarded(callback, record, || closure(callback.head().handle, record))
}

unsafe fn call_subscriber(
    callback: CallbackRef<'_>,
    record: &EventRecord<'_>,
    _: &HazardRecord,
    _: WritableSpec,
) -> c_int {
    // SAFETY: `new` makes a `CallbackBox<Arc<dyn GlobalSubscriber>>` with this function.
    let subscriber = unsafe { callback.listener::<Arc<dyn GlobalSubscriber>>() };
    guarded(callback, record, || subscriber.on_event(record))
}

/// Runs foreign Rust, which may panic.
#[inline(always)]
fn guarded(callback: CallbackRef<'_>, record: &EventRecord<'_>, foreign: impl FnOnce()) -> c_int {
    if let Err(payload) = catch_unwind(AssertUnwindSafe(foreign)) {
        // Foreign code too: dropping it might panic again, inside the engine.
        core::mem::forget(payload);
        callback.fail(record, record.spec.comm, &"panicked");
    }
    0
}
