//! Signals that end a program by default, and that this library handles as long as it has a reason to. A program that
//! this one executes has the default action.

use crate::comm::lock;
use crate::sync::{AtomicI32, AtomicUsize, Mutex, Ordering};
use core::ffi::{c_int, c_void};

/// A handler of a signal.
pub(super) type Handler = extern "C" fn(c_int, *mut libc::siginfo_t, *mut c_void);

/// A signal with a handler of this library's.
pub(super) struct HandledSignal {
    signal: c_int,
    handler: Handler,
    /// Whether the handler goes before one that the program has.
    goes_first: bool,
    state: Mutex<State>,
    /// The action that the handler has taken the place of, as [`pass_on`](Self::pass_on) needs it.
    before: (AtomicUsize, AtomicI32),
}

struct State {
    /// How many reasons there are.
    reasons: usize,
    /// The action that the handler has taken the place of.
    before: Option<libc::sigaction>,
}

/// A reason to handle a signal, as long as it lives.
pub(super) struct Reason(&'static HandledSignal);

impl core::fmt::Debug for Reason {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_tuple("Reason").field(&self.0.signal).finish()
    }
}

impl HandledSignal {
    /// A signal whose handler is installed only where the program has none and does not ignore the signal.
    pub const fn left_to_the_program(signal: c_int, handler: Handler) -> Self {
        Self::new(signal, handler, false)
    }

    /// A signal whose handler is installed before one of the program's, to which it passes on what is not its own.
    pub const fn before_the_program(signal: c_int, handler: Handler) -> Self {
        Self::new(signal, handler, true)
    }

    const fn new(signal: c_int, handler: Handler, goes_first: bool) -> Self {
        let before = (AtomicUsize::new(libc::SIG_DFL), AtomicI32::new(0));
        Self { signal, handler, goes_first, state: Mutex::new(State { reasons: 0, before: None }), before }
    }

    /// Handles the signal from now on.
    pub fn handle(&'static self) -> Reason {
        let mut state = lock(&self.state);
        state.reasons += 1;
        // Miri has no signals.
        if state.reasons == 1 && !cfg!(miri) {
            state.before =
                self.action().filter(|action| self.goes_first || action.sa_sigaction == libc::SIG_DFL);
        }
        if let (1, Some(before)) = (state.reasons, &state.before) {
            // Relaxed, both: the handler is installed behind them.
            self.before.0.store(before.sa_sigaction, Ordering::Relaxed);
            self.before.1.store(before.sa_flags, Ordering::Relaxed);
            // SAFETY: a handler that calls what one may call, on the stack that the program has set aside if it has.
            unsafe {
                let mut action: libc::sigaction = core::mem::zeroed();
                action.sa_sigaction = self.handler as libc::sighandler_t;
                action.sa_flags = libc::SA_ONSTACK | libc::SA_RESTART | libc::SA_SIGINFO;
                libc::sigaction(self.signal, &raw const action, core::ptr::null_mut());
            }
        }
        Reason(self)
    }

    /// The action of the signal.
    fn action(&self) -> Option<libc::sigaction> {
        // SAFETY: asks for the action of one signal, which zeroed memory has room for.
        unsafe {
            let mut present: libc::sigaction = core::mem::zeroed();
            (libc::sigaction(self.signal, core::ptr::null(), &raw mut present) == 0).then_some(present)
        }
    }

    /// Does for a signal what would have been done without the handler, which calls this as the last thing.
    pub fn pass_on(&self, info: *mut libc::siginfo_t, context: *mut c_void) {
        // Relaxed, both: they were stored before the handler was installed.
        let action = self.before.0.load(Ordering::Relaxed);
        let flags = self.before.1.load(Ordering::Relaxed);
        match action {
            // SAFETY: two functions that a signal handler may call. The signal is blocked until the handler returns.
            libc::SIG_DFL | libc::SIG_IGN => unsafe {
                libc::signal(self.signal, libc::SIG_DFL);
                libc::raise(self.signal);
            },
            // SAFETY: the program's handler, installed with this flag, takes these arguments.
            _ if flags & libc::SA_SIGINFO != 0 => unsafe {
                core::mem::transmute::<usize, Handler>(action)(self.signal, info, context);
            },
            // SAFETY: the program's handler, installed without that flag, takes this argument.
            _ => unsafe { core::mem::transmute::<usize, extern "C" fn(c_int)>(action)(self.signal) },
        }
    }
}

impl Drop for Reason {
    fn drop(&mut self) {
        let handled = self.0;
        let mut state = lock(&handled.state);
        state.reasons -= 1;
        if state.reasons > 0 {
            return;
        }
        let is_ours = |action: &libc::sigaction| action.sa_sigaction == handled.handler as libc::sighandler_t;
        if let Some(before) = state.before.take().filter(|_| handled.action().as_ref().is_some_and(is_ours)) {
            // SAFETY: sets the action of one signal to what it was.
            unsafe { libc::sigaction(handled.signal, &raw const before, core::ptr::null_mut()) };
        }
    }
}
