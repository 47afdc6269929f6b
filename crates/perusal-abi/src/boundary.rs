//! The two edges of every call from C: whether it is allowed now, and which error handler its error reaches.
//!
//! # From error to user
//! An implementation returns an [`Error`]; [`raise`] asks which error handler the object at fault has (the
//! [`Hooks`] know; before initialisation every object has MPI_ERRORS_ARE_FATAL), and does what that handler says:
//! *fatal* and *abort* print `perusal: rank R: MPI_Send: <text>` and end the job; *return* gives the code back; a
//! user's function is called and, if it returns, the code is given back (MPI 5.0 §9.3).
//!
//! # When calls are allowed
//! Most of MPI may be called while the bindings are open: from MPI_Init to MPI_Finalize, and while there is a session.
//! [`phase`] knows the former alone.
//!
//! # Panics
//! A panic must not unwind into C. Every exported function is `extern "C"`, at whose edge Rust aborts the process;
//! `install_panic_text` makes the message name perusal, so that a user knows where to report it.

use crate::abi;
use crate::check;
use crate::comm::{Comm, Errhandler, ErrhandlerSlot};
use crate::engine::RaisingComm;
use crate::error::{Error, Result};
use crate::events::{
    Event, EventPayload, EventRecord, Spec, fast_path_is_open, inside_callback, inside_peruse_callback,
    open_bindings,
};
use crate::shm::ERRHANDLER_VARIABLE;
use crate::sync::{AtomicBool, Ordering, PublishedFlag, PublishedStage};
use crate::tool::event::delivery;
use core::cell::{Cell, RefCell};
use core::ffi::c_int;
use std::sync::{Once, OnceLock};

/// The object that an error is raised on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrorSource {
    /// Nothing that has an error handler: MPI_COMM_SELF stands for it (MPI 5.0 §9.3).
    Nothing,
    /// A communicator handle. An invalid one, and MPI_COMM_NULL, name nothing.
    Comm(usize),
    /// A window handle.
    Win(usize),
    /// A file handle; MPI_FILE_NULL holds the default for files, MPI_ERRORS_RETURN.
    File(usize),
    /// A session handle.
    Session(usize),
    /// A communicator that the call was to make, with the error handler that it was to have (MPI 5.0 §7.4.2).
    NewComm(usize),
    /// A session that the call was to make, with the error handler that it was to have (MPI 5.0 §11.3.1).
    NewSession(usize),
}

impl ErrorSource {
    /// What a user's error handler is given.
    fn handle(self) -> usize {
        match self {
            Self::Comm(handle) | Self::Win(handle) | Self::File(handle) | Self::Session(handle) => handle,
            Self::Nothing => abi::MPI_COMM_SELF,
            Self::NewComm(_) => abi::MPI_COMM_NULL,
            Self::NewSession(_) => abi::MPI_SESSION_NULL,
        }
    }
}

impl From<usize> for ErrorSource {
    fn from(comm: usize) -> Self {
        Self::Comm(comm)
    }
}

/// A user's error handler. C's type is variadic: `void (MPI_Comm *, int *, ...)`;
/// the handles are one size for all kinds.
pub type UserHandler = unsafe extern "C" fn(*mut usize, *mut c_int, ...);

/// What an error handler does.
#[derive(Debug, Clone, Copy)]
pub enum Handler {
    /// MPI_ERRORS_ARE_FATAL: end the job.
    Fatal,
    /// MPI_ERRORS_ABORT: end the job as MPI_Abort on the object would.
    Abort,
    /// MPI_ERRORS_RETURN.
    Return,
    /// A function of the user's.
    User(UserHandler),
}

/// What the boundary must know from the layers below; given once at initialisation.
#[derive(Debug, Clone, Copy)]
pub struct Hooks {
    /// The error handler that an error at a source invokes, and the object that it is invoked on: that of the source,
    /// or, where its handle names nothing, what stands for it.
    pub handler: fn(ErrorSource) -> (Handler, ErrorSource),
    /// Ends the job with this exit code; the message has been printed. Must not return.
    pub end_job: fn(code: c_int) -> !,
    /// This process's rank in MPI_COMM_WORLD, for messages.
    pub rank: fn() -> Option<u32>,
}

static HOOKS: OnceLock<Hooks> = OnceLock::new();

/// Makes the layers below known. The first call wins; later ones change nothing.
pub fn install(hooks: Hooks) {
    let _ = HOOKS.set(hooks);
    install_panic_text();
}

/// Where the process stands between MPI_Init and MPI_Finalize.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Phase {
    /// MPI_Init has not returned.
    Before = 0,
    /// The time in which MPI may be used.
    Running = 1,
    /// MPI_Finalize has completed.
    After = 2,
}

static PHASE: PublishedStage = PublishedStage::new();
static OPEN: PublishedFlag = PublishedFlag::new(false);

/// Moves the process to `phase`; called by MPI_Init* and MPI_Finalize only.
pub fn set_phase(phase: Phase) {
    // Boundary edge 1, pairs with `phase`, publishes what initialisation built.
    PHASE.set(phase as u8);
}

static FORKED: AtomicBool = AtomicBool::new(false);

/// Closes the bindings in a child of `fork`: the rank, its rings and its requests are its parent's.
extern "C" fn in_child() {
    if is_open() {
        // Relaxed: the child has one thread.
        FORKED.store(true, Ordering::Relaxed);
        set_open(false);
    }
}

/// Opens the bindings, or closes them.
pub fn set_open(open: bool) {
    static WATCH_FORKS: Once = Once::new();
    if open {
        WATCH_FORKS.call_once(|| {
            // SAFETY: `in_child` only writes atomics. Without memory to note it a child's calls go unnoticed,
            // as if this were not here.
            let _ = unsafe { libc::pthread_atfork(None, None, Some(in_child)) };
        });
    }
    // Boundary edge 2, pairs with `is_open`, publishes what initialisation built.
    OPEN.set(open);
    open_bindings(open);
}

/// Whether MPI is initialised or a session is open.
#[inline(always)]
#[must_use]
pub fn is_open() -> bool {
    // Boundary edge 2, pairs with `set_open`.
    OPEN.is_set()
}

/// Where the process stands.
#[inline(always)]
#[must_use]
pub fn phase() -> Phase {
    // Boundary edge 1, pairs with `set_phase`.
    match PHASE.get() {
        1 => Phase::Running,
        2 => Phase::After,
        _ => Phase::Before,
    }
}

/// Every call that needs a running MPI starts here: `Error::NotInitialized` or `Error::InsideCallback` if it may not
/// run now.
#[inline(always)]
pub fn enter(function: &'static str) -> Result<()> {
    if fast_path_is_open() || may_go_on() { Ok(()) } else { enter_slow(function) }
}

/// Every local enquiry that needs a running MPI starts here: [`enter`], except that event callbacks may call it.
#[inline(always)]
pub fn enter_enquiry(function: &'static str) -> Result<()> {
    if fast_path_is_open() || (inside_callback() && is_open()) { Ok(()) } else { enter(function) }
}

/// Whether a call may go on although a listener keeps it from its fast path: the bindings are open, no callback runs on
/// this thread, no event waits for delivery, and calls are not checked.
#[inline(never)]
pub fn may_go_on() -> bool {
    is_open() && !inside_callback() && !delivery::waits() && !check::is_on()
}

#[cold]
#[inline(never)]
fn enter_slow(function: &'static str) -> Result<()> {
    if !is_open() {
        // Relaxed: set before this process's only thread could come here.
        if FORKED.load(Ordering::Relaxed) {
            end_child(function);
        }
        return Err(Error::NotInitialized(function));
    }
    outside_callback()?;
    check::entered(function);
    // No lock of the engine is held here, and the function has not begun.
    delivery::deliver();
    Ok(())
}

/// `Error::InsideCallback` while this thread runs an event callback of PERUSE (PERUSE 2.0 §5.1.2),
/// `Error::InsideToolCallback` while it runs one of MPI_T (MPI 5.0 §15.3.8).
#[inline(always)]
pub fn outside_callback() -> Result<()> {
    if inside_callback() { Err(refused()) } else { Ok(()) }
}

#[cold]
fn refused() -> Error {
    if inside_peruse_callback() { Error::InsideCallback } else { Error::InsideToolCallback }
}

impl From<Errhandler> for Handler {
    fn from(handler: Errhandler) -> Self {
        match handler {
            Errhandler::Fatal => Self::Fatal,
            Errhandler::Abort => Self::Abort,
            Errhandler::Return => Self::Return,
            Errhandler::User(user) => Self::User(user.function),
        }
    }
}

/// What the error of a request is raised on.
#[derive(Debug, Clone, Copy)]
pub struct RaisedOn {
    source: ErrorSource,
    /// The error handler of a communicator, whose handle names it no more if it was freed before the request was over
    /// (MPI 5.0 §7.4.3). `None`: that which the source has.
    handler: Option<Handler>,
}

impl From<ErrorSource> for RaisedOn {
    fn from(source: ErrorSource) -> Self {
        Self { source, handler: None }
    }
}

impl From<RaisingComm> for RaisedOn {
    fn from(comm: RaisingComm) -> Self {
        Self { source: ErrorSource::Comm(comm.handle), handler: comm.errhandler.map(Handler::from) }
    }
}

impl From<&Comm> for RaisedOn {
    fn from(comm: &Comm) -> Self {
        Self::comm(comm.handle(), &comm.errhandler)
    }
}

impl RaisedOn {
    /// The communicator of `handle`, which has its error handler in `slot`.
    #[must_use]
    pub fn comm(handle: usize, slot: &ErrhandlerSlot) -> Self {
        Self { source: ErrorSource::Comm(handle), handler: Some(slot.get().into()) }
    }
}

thread_local! {
    /// What the request that has just failed is on.
    static BLAMED: Cell<Option<RaisedOn>> = const { Cell::new(None) };
}

/// The error that this call is about to raise is that of a request:
/// it is raised on what the request is on, whatever the function says.
#[cold]
pub fn blame(on: Option<RaisedOn>) {
    BLAMED.set(on);
}

/// Takes back what [`blame`] has said: the error is not raised now.
#[cold]
pub fn blamed() -> Option<RaisedOn> {
    BLAMED.take()
}

thread_local! {
    /// The last error of the library's that this thread was given: its class, that of the first request which failed,
    /// where there are several (its own, else), and what it says.
    static LAST: RefCell<Option<([c_int; 2], String)>> = const { RefCell::new(None) };
}

/// What the last error that this thread was given says, if it was of `class`.
#[must_use]
pub fn last_said(class: c_int) -> Option<String> {
    let said = |last: &RefCell<Option<([c_int; 2], String)>>| {
        last.borrow().as_ref().filter(|(of, _)| of.contains(&class)).map(|(_, text)| text.clone())
    };
    LAST.try_with(said).ok().flatten()
}

/// Raises `error` of `function` on `source` and gives back the code that the function returns, if it returns.
#[cold]
pub fn raise(source: impl Into<ErrorSource>, function: &'static str, error: Error) -> c_int {
    super::process::await_end();
    let RaisedOn { source, handler } = BLAMED.take().unwrap_or_else(|| RaisedOn::from(source.into()));
    let code = error.class();
    check::call_failed(&error);
    // A communicator that was freed before its request was over is named as it was.
    let (handler, source) = handler.map_or_else(|| handler_of(source), |handler| (handler, source));
    emit_invoked(source, code);
    let in_status = match &error {
        Error::InStatus { first, .. } => Some(first.class()),
        _ => None,
    };
    if !matches!(handler, Handler::Fatal | Handler::Abort) && !matches!(error, Error::Code(_)) {
        let classes = [code, in_status.unwrap_or(code)];
        // A thread that is ending has no such place any more.
        let _ = LAST.try_with(|last| last.replace(Some((classes, sentence(function, &error)))));
    }
    match handler {
        Handler::Return => code,
        Handler::Fatal | Handler::Abort => end(function, &error, code),
        Handler::User(call) => {
            let mut h = source.handle();
            let mut said = in_status.unwrap_or(code);
            // SAFETY: the user registered this function as an error handler for objects of this kind (MPI 5.0
            // §9.3.1): it takes a pointer to the handle and one to the code, both of which live until it returns.
            unsafe { call(&mut h, &mut said) };
            // The handler may have put another code there: it is the one that the function returns (§9.3.1), as in
            // MPICH and Open MPI. Of MPI_ERR_IN_STATUS it does not know:
            // it is given the code in the status of the request that has failed.
            if in_status.is_none() { said } else { code }
        }
    }
}

/// Emits the event that an error handler is about to be invoked.
fn emit_invoked(source: ErrorSource, class: c_int) {
    let registry = super::process::registry();
    if registry.gate.is_open(Event::ErrhandlerInvoked) {
        let comm = match source {
            ErrorSource::Comm(handle) => handle,
            ErrorSource::Nothing => abi::MPI_COMM_SELF,
            _ => 0,
        };
        let (spec, payload) = (Spec { comm, ..Spec::NOTHING }, EventPayload::Error { class, code: class });
        registry
            .emit(&EventRecord { spec: &spec, ..EventRecord::of_engine(Event::ErrhandlerInvoked, payload) });
    }
}

/// What a function returns: success, or what [`raise`] gives back.
#[inline]
pub fn outcome(source: impl Into<ErrorSource>, function: &'static str, result: Result<()>) -> c_int {
    match result {
        Ok(()) => abi::MPI_SUCCESS,
        Err(error) => raise(source, function, error),
    }
}

fn handler_of(source: ErrorSource) -> (Handler, ErrorSource) {
    match HOOKS.get() {
        // A session that cannot begin, or not end, has its error handler all the same.
        Some(hooks)
            if is_open() || matches!(source, ErrorSource::NewSession(_) | ErrorSource::Session(_)) =>
        {
            (hooks.handler)(source)
        }
        _ if matches!(source, ErrorSource::File(_)) => (Handler::Return, source),
        _ => (initial(), ErrorSource::Nothing),
    }
}

/// What errors do that no object has a handler for, and at first those of all communicators:
/// what the launcher was asked for.
pub fn initial() -> Handler {
    match std::env::var(ERRHANDLER_VARIABLE).as_deref() {
        Ok("mpi_errors_return") => Handler::Return,
        Ok("mpi_errors_abort") => Handler::Abort,
        _ => Handler::Fatal,
    }
}

fn end(function: &str, error: &Error, code: c_int) -> ! {
    fatal(&sentence(function, error), code)
}

/// What an error of a function says.
fn sentence(function: &str, error: &Error) -> String {
    let text = error.to_string();
    // Some errors are about the function itself and name it.
    if text.starts_with(function) { text } else { format!("{function}: {text}") }
}

/// Ends this child of `fork`, and not the job, whose rank its parent still is.
#[cold]
fn end_child(function: &str) -> ! {
    crate::error::report(format_args!(
        "process {}: {function} called in a child that fork() made after MPI_Init: only the process that called \
         MPI_Init may call MPI. Fork before MPI_Init, or start programs by exec or MPI_Comm_spawn.",
        std::process::id()
    ));
    // SAFETY: ends the process without exit handlers and without writing what its parent has buffered.
    unsafe { libc::_exit(abi::MPI_ERR_OTHER) }
}

/// Prints `perusal: rank R: <text>` and ends the job with `code`.
pub fn fatal(text: &str, code: c_int) -> ! {
    let hooks = HOOKS.get();
    match hooks.and_then(|hooks| (hooks.rank)()) {
        Some(rank) => crate::error::report(format_args!("rank {rank}: {text}")),
        None => crate::error::report(format_args!("{text}")),
    }
    match hooks {
        Some(hooks) => (hooks.end_job)(code),
        None => std::process::exit(if code & 0xff == 0 { 1 } else { code }),
    }
}

/// Puts perusal's name in front of a panic's message: what follows at the C boundary is an abort.
fn install_panic_text() {
    static ONCE: OnceLock<()> = OnceLock::new();
    ONCE.get_or_init(|| {
        let previous = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            crate::error::report(format_args!("internal error in the MPI library, please report it:"));
            previous(info);
        }));
    });
}
