//! From where tools are called: at once, where an event happens, or from a safe place, with what has waited.
//!
//! A safe place is the beginning of an MPI function, and the end of MPI_Init, MPI_Finalize and of their like for sessions: no lock of the engine is held there,
//! so a tool's function may call MPI itself. One thread delivers at a time; another that passes a safe place meanwhile goes on.
//! A thread that is about to sleep inside MPI delivers too, lest events lie there as long as it does: to the functions that
//! could be called where the events happened, for locks of the engine may be held. What they leave waits for a safe place.
//!
//! # A pass
//! 1. For each buffer, how far it is filled: the pass goes so far and no further.
//! 2. Each handle's drops. Whatever is in step 3 was put in before step 1, and so what was dropped before it, here or at another
//!    handle, is told before it is told (MPI 5.0 §15.3.8, handling dropped events).
//! 3. What waits, handle by handle.

use super::registration::Registration;
use super::safety::Safety;
use crate::events::{hold_fast_path, inside_callback, set_sleep_hook};
use crate::handles::HandleTable;
use crate::limits::TOOL_HANDLES;
use crate::sync::{AtomicBool, AtomicU64, Mutex, Ordering};
use core::cell::Cell;
use std::sync::{Arc, MutexGuard, PoisonError, TryLockError};

static HANDLES: HandleTable<Registration> = HandleTable::new();
/// All registrations, each at a place of its own as long as it lives.
static ALL: Mutex<RegistrationTable> = Mutex::new(RegistrationTable { places: Vec::new(), free: Vec::new() });
/// Something waits to be told.
static WAITS: AtomicBool = AtomicBool::new(false);
/// A registration is over but for what waits.
static ENDS: AtomicBool = AtomicBool::new(false);
/// Held by the one who delivers.
static TURN: Mutex<()> = Mutex::new(());
/// MPI_THREAD_MULTIPLE: functions may run beside each other.
static SHARED: AtomicBool = AtomicBool::new(false);

struct RegistrationTable {
    places: Vec<Option<Arc<Registration>>>,
    free: Vec<usize>,
}

impl RegistrationTable {
    /// Gives `registration` a place.
    fn put(&mut self, registration: &Arc<Registration>) {
        let place = self.free.pop().unwrap_or(self.places.len());
        registration.set_place(place);
        if place == self.places.len() {
            self.places.push(None);
        }
        self.places[place] = Some(registration.clone());
    }

    fn take(&mut self, registration: &Registration) {
        let place = registration.place();
        self.places[place] = None;
        self.free.push(place);
    }
}

thread_local! {
    static DELIVERING: Cell<bool> = const { Cell::new(false) };
}

/// Says whether several threads may be inside the engine at once; before it is asked to do anything.
pub fn set_shared(shared: bool) {
    // Relaxed: a flag that publishes nothing; events are raised by who has seen the engine.
    if SHARED.swap(shared, Ordering::Relaxed) != shared {
        each(|_| true, |registration| registration.require());
    }
}

/// What a function must keep to where an event happens. Locks of the engine may be held, so it must not call MPI; and with
/// MPI_THREAD_MULTIPLE other threads raise events at the same time.
#[must_use]
pub fn at_once() -> Safety {
    // Relaxed: as in `set_shared`.
    if SHARED.load(Ordering::Relaxed) { Safety::ThreadSafe } else { Safety::Restricted }
}

/// What a function must keep to at a safe place: nothing, unless other threads raise events at the same time.
#[must_use]
pub fn at_safe_place() -> Safety {
    if SHARED.load(Ordering::Relaxed) { Safety::ThreadSafe } else { Safety::None }
}

/// What a function must keep to that this thread calls now, on its way through an MPI_T function or out of an event.
#[must_use]
pub fn here() -> Safety {
    if inside_callback() { at_once() } else { at_safe_place() }
}

/// Makes `registration` known; gives its handle. `None` if there are too many.
pub fn admit(registration: &Arc<Registration>) -> Option<usize> {
    if HANDLES.len() >= TOOL_HANDLES {
        return None;
    }
    let number = HANDLES.insert(registration.clone())?;
    set_sleep_hook(deliver_in_wait);
    all().put(registration);
    if registration.may_keep() {
        // MPI functions look here when they begin, for as long as something may wait.
        hold_fast_path(true);
    }
    Some(number)
}

/// The registration of a handle.
#[must_use]
pub fn find(handle: usize) -> Option<Arc<Registration>> {
    HANDLES.get(handle)
}

/// `handle` is over.
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
    // Relaxed, here and below: a count; each handle's own is what tools are told.
    DROPS.fetch_add(1, Ordering::Relaxed);
}

/// How many events found no room in a buffer, over all handles that there have been.
#[must_use]
pub fn drops() -> u64 {
    DROPS.load(Ordering::Relaxed)
}

/// Something waits for a safe place.
#[inline]
pub(super) fn something_waits() {
    // Release: pairs with Acquire in `deliver`; an exchange, so that the store of another thread after it does not hide it.
    WAITS.swap(true, Ordering::Release);
}

/// A registration accepts nothing any more, and may have told everything: sees to it here if this is a safe place.
pub(super) fn something_ends() {
    something_waits();
    // Release: pairs with Acquire in `deliver`.
    ENDS.store(true, Ordering::Release);
    if !inside_callback() {
        deliver();
    }
}

/// Whether something may wait for a safe place.
#[inline(always)]
#[must_use]
pub fn waits() -> bool {
    // Relaxed: a hint; whoever delivers has an exchange.
    WAITS.load(Ordering::Relaxed)
}

/// Whether this thread is in a tool's function that [`deliver`] has called, or a pass before a sleep.
#[must_use]
pub fn is_delivering() -> bool {
    DELIVERING.get()
}

/// Tells what waits. To be called where no lock of the engine is held; called from a tool's function that it calls, it does nothing.
#[cold]
pub fn deliver() {
    // A hint; the exchange decides.
    while waits() && !DELIVERING.get() {
        let turn = match TURN.try_lock() {
            Ok(turn) => turn,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            // The one who has the turn looks once more at the end; what comes after that look is for the next safe place.
            Err(TryLockError::WouldBlock) => return,
        };
        DELIVERING.set(true);
        // Acquire: pairs with Release in `something_waits`: what it told of is there.
        if WAITS.swap(false, Ordering::Acquire) {
            pass(at_safe_place());
        }
        DELIVERING.set(false);
        drop(turn);
        // Events that the tools' functions have caused wait for the next safe place, or this might not end. Acquire: pairs with
        // Release in `something_ends`.
        if !ENDS.swap(false, Ordering::Acquire) {
            return;
        }
    }
}

/// The pass of a thread that is about to sleep inside MPI, in an upcall: no function is told that could not be called at once.
#[cold]
fn deliver_in_wait() {
    // Relaxed: as in `deliver`.
    if !WAITS.load(Ordering::Relaxed) || DELIVERING.get() {
        return;
    }
    // The one who has the turn tells it, or leaves it to the next sleep.
    let Ok(turn) = TURN.try_lock() else { return };
    DELIVERING.set(true);
    // Acquire: as in `deliver`.
    if WAITS.swap(false, Ordering::Acquire) {
        let level = at_once();
        begin_pass();
        each(Registration::has_drops, |registration| registration.tell_drops(level));
        let is_told = |registration: &Registration| registration.can_tell(level) && registration.has_part();
        each(is_told, |registration| registration.deliver(level, false));
        let is_left = |registration: &Registration| registration.has_part() || registration.has_drops();
        if all().places.iter().flatten().any(|registration| is_left(registration)) {
            something_waits();
        }
    }
    DELIVERING.set(false);
    drop(turn);
}

fn pass(level: Safety) {
    begin_pass();
    each(Registration::has_drops, |registration| registration.tell_drops(level));
    each(Registration::has_part, |registration| registration.deliver(level, true));
}

fn begin_pass() {
    all().places.iter().flatten().for_each(|registration| registration.begin_pass());
}

/// Calls `with` for each registration that `wanted` wants, those that come meanwhile perhaps among them, without a lock held
/// over it.
fn each(wanted: impl Fn(&Registration) -> bool, with: impl Fn(&Arc<Registration>)) {
    let mut from = 0;
    loop {
        let next = {
            let all = all();
            let rest = all.places.iter().enumerate().skip(from);
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
