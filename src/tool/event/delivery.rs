//! Delivery: all handles, and the passes in which a tool's functions receive the events that waited in buffers.
//!
//! A tool's function is called at once, where the event happens, or at a *safe point*: the beginning of an MPI
//! function, and the end of MPI_Init, MPI_Finalize and their like for sessions. No lock of the engine is held there, so
//! the function may call MPI itself. One thread delivers at a time; another that passes a safe point meanwhile goes on.
//! A thread that is about to sleep inside MPI delivers too, because events would wait as long as it sleeps: to the
//! functions that could be called where the events happened, since locks of the engine may be held. What they leave
//! waits for a safe point.
//!
//! # A pass
//! 1. For each buffer, note how far it is filled: the pass goes so far and no further.
//! 2. Report each handle's drops. Whatever step 3 delivers was put in before step 1. So what was dropped before it, at
//!    this handle or at another, is reported before it is delivered (MPI 5.0 §15.3.8, handling dropped events).
//! 3. Deliver what waits, handle by handle.
//!
//! The state here is the process's: MPI_T's handles are, too.

use super::registration::Registration;
use super::safety::Safety;
use super::waits::Waits;
use crate::events::{hold_fast_path, inside_callback, set_sleep_hook};
use crate::handles::{HandleKind, HandleTable};
use crate::limits::TOOL_HANDLES;
use crate::sync::{AtomicBool, AtomicU64, Mutex, MutexGuard, Ordering};
use core::cell::Cell;
use std::sync::{Arc, PoisonError, TryLockError};

static HANDLES: HandleTable<Registration> = HandleTable::new(HandleKind::EventRegistration);
/// All registrations, each at an index of its own as long as it lives.
static ALL: Mutex<RegistrationTable> =
    Mutex::new(RegistrationTable { entries: Vec::new(), free: Vec::new() });
/// Whether there is anything to do.
static WAITS: Waits = Waits::new();
/// Held by the thread that delivers.
static TURN: Mutex<()> = Mutex::new(());
/// MPI_THREAD_MULTIPLE: functions may run at the same time.
static SHARED: AtomicBool = AtomicBool::new(false);

struct RegistrationTable {
    entries: Vec<Option<Arc<Registration>>>,
    free: Vec<usize>,
}

impl RegistrationTable {
    /// Adds `registration`.
    fn put(&mut self, registration: &Arc<Registration>) {
        let place = self.free.pop().unwrap_or(self.entries.len());
        registration.set_place(place);
        if place == self.entries.len() {
            self.entries.push(None);
        }
        self.entries[place] = Some(registration.clone());
    }

    fn take(&mut self, registration: &Registration) {
        let place = registration.place();
        self.entries[place] = None;
        self.free.push(place);
    }
}

thread_local! {
    static DELIVERING: Cell<bool> = const { Cell::new(false) };
}

/// Says whether several threads may be inside the engine at once; before it is asked to do anything.
pub fn set_shared(shared: bool) {
    // Relaxed: a flag that publishes nothing; set before threads use the engine.
    if SHARED.swap(shared, Ordering::Relaxed) != shared {
        each(|_| true, |registration| registration.require());
    }
}

/// The safety level that a function must have where an event happens. Locks of the engine may be held, so it must not
/// call MPI; and with MPI_THREAD_MULTIPLE other threads emit events at the same time.
#[must_use]
pub fn level_at_once() -> Safety {
    // Relaxed: a flag that publishes nothing.
    if SHARED.load(Ordering::Relaxed) { Safety::ThreadSafe } else { Safety::Restricted }
}

/// The safety level that a function must have at a safe point: none, unless other threads emit events at the same time.
#[must_use]
pub fn level_at_safe_point() -> Safety {
    if SHARED.load(Ordering::Relaxed) { Safety::ThreadSafe } else { Safety::None }
}

/// The safety level that a function must have if this thread calls it now,
/// from an MPI_T function or from inside an event.
#[must_use]
pub fn level_here() -> Safety {
    if inside_callback() { level_at_once() } else { level_at_safe_point() }
}

/// Makes `registration` known; gives its handle. `None` if there are too many.
pub fn admit(registration: &Arc<Registration>) -> Option<usize> {
    if HANDLES.len() >= TOOL_HANDLES {
        return None;
    }
    let number = HANDLES.insert(registration.clone()).ok()?;
    set_sleep_hook(deliver_in_wait);
    all().put(registration);
    if registration.may_keep() {
        // Every MPI function calls `deliver` when it begins, for as long as something may wait.
        hold_fast_path(true);
    }
    Some(number)
}

/// The registration of a handle.
#[must_use]
pub fn find(handle: usize) -> Option<Arc<Registration>> {
    HANDLES.get(handle)
}

/// Forgets `handle`, which has ended.
pub(super) fn forget(handle: usize) {
    let Some(registration) = HANDLES.remove(handle) else { return };
    all().take(&registration);
    if registration.may_keep() {
        hold_fast_path(false);
    }
}

/// Ends every registration; no function of a tool is called afterwards (MPI_T_finalize).
pub fn close_all() {
    each(
        |_| true,
        |registration| {
            registration.mute();
            registration.close(None, core::ptr::null_mut());
        },
    );
}

/// Entries for which there was no room in any buffer.
static DROPS: AtomicU64 = AtomicU64::new(0);

/// A buffer had no room.
#[cold]
pub(super) fn note_drop() {
    // Relaxed, here and below: a count; tools get reports from each handle's own.
    DROPS.fetch_add(1, Ordering::Relaxed);
}

/// How many events found no room in a buffer, over all handles that there have been.
#[must_use]
pub fn drops() -> u64 {
    DROPS.load(Ordering::Relaxed)
}

/// Notes that something waits for a safe point.
#[inline]
pub(super) fn something_waits() {
    WAITS.something_waits();
}

/// Ends a registration that accepts nothing any more and may have delivered everything, if its callback may run here.
pub(super) fn something_ends() {
    WAITS.something_ends();
    if !inside_callback() {
        deliver();
    }
}

/// Whether something may wait for a safe point.
#[inline(always)]
#[must_use]
pub fn waits() -> bool {
    WAITS.waits()
}

/// Whether this thread is in a tool's function that [`deliver`] has called, or a pass before a sleep.
#[must_use]
pub fn is_delivering() -> bool {
    DELIVERING.get()
}

/// Delivers what waits. The caller holds no lock of the engine.
/// Called from a tool's function that it called, it does nothing.
#[cold]
pub fn deliver() {
    // A hint; the exchange decides.
    while waits() && !DELIVERING.get() {
        let turn = match TURN.try_lock() {
            Ok(turn) => turn,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            // The thread that has the turn checks once more at the end;
            // what comes after that check is for the next safe point.
            Err(TryLockError::WouldBlock) => return,
        };
        DELIVERING.set(true);
        if WAITS.take() {
            pass(level_at_safe_point());
        }
        DELIVERING.set(false);
        drop(turn);
        // Events that the tools' functions have caused wait for the next safe point, or this might not end.
        if !WAITS.take_end() {
            return;
        }
    }
}

/// The pass of a thread that is about to sleep inside MPI, in a callback:
/// no function is called that could not be called at once.
#[cold]
fn deliver_in_wait() {
    // A hint; the exchange decides.
    if !waits() || DELIVERING.get() {
        return;
    }
    // The thread that has the turn delivers it, or leaves it to the next sleep.
    let Ok(turn) = TURN.try_lock() else { return };
    DELIVERING.set(true);
    if WAITS.take() {
        let level = level_at_once();
        begin_pass();
        each(Registration::has_drops, |registration| registration.report_drops(level));
        let is_due =
            |registration: &Registration| registration.has_function(level) && registration.has_part();
        each(is_due, |registration| registration.deliver(level, false));
        let is_left = |registration: &Registration| registration.has_part() || registration.has_drops();
        if all().entries.iter().flatten().any(|registration| is_left(registration)) {
            something_waits();
        }
    }
    DELIVERING.set(false);
    drop(turn);
}

fn pass(level: Safety) {
    begin_pass();
    each(Registration::has_drops, |registration| registration.report_drops(level));
    each(Registration::has_part, |registration| registration.deliver(level, true));
}

fn begin_pass() {
    all().entries.iter().flatten().for_each(|registration| registration.begin_pass());
}

/// Calls `with` for each registration that `wanted` accepts, perhaps with those that come meanwhile,
/// and holds no lock over it.
fn each(wanted: impl Fn(&Registration) -> bool, with: impl Fn(&Arc<Registration>)) {
    let mut from = 0;
    loop {
        let next = {
            let all = all();
            let rest = all.entries.iter().enumerate().skip(from);
            rest.filter_map(|(place, known)| Some((place, known.as_ref()?)))
                .find(|(_, registration)| wanted(registration))
                .map(|(place, registration)| (place, registration.clone()))
        };
        let Some((place, registration)) = next else { return };
        with(&registration);
        from = place + 1;
    }
}

fn all() -> MutexGuard<'static, RegistrationTable> {
    ALL.lock().unwrap_or_else(PoisonError::into_inner)
}
