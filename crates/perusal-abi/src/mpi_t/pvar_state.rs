//! Sessions and handles of performance variables, and what a handle's value is.
//!
//! All are under one lock, in which no callback runs and nothing waits.
//! A handle is a number that is never given out again.

use super::Outcome;
use super::searching::SEARCHES;
use super::window_counts::WINDOWS;
use crate::abi::*;
use crate::arch::clock;
use crate::arch::clock::now;
use crate::comm::Comm;
use crate::engine::{CopiesFromPeer, Engine};
use crate::events::{CommEvents, GlobalSubscription};
use crate::limits::TOOL_HANDLES;
use crate::shm::telemetry;
use crate::tool::pvar::{OfComm, Pvar, PvarSource, Queue};
use crate::{comms, process, windows};
use core::ffi::{c_int, c_uint};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

/// A value on its way to the user.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum PvarValue {
    /// MPI_INT.
    Int(c_int),
    /// MPI_UNSIGNED.
    Length(c_uint),
    /// MPI_UNSIGNED_LONG_LONG.
    Number(u64),
    /// MPI_DOUBLE.
    Real(f64),
}

/// What a handle names.
struct PvarHandle {
    session: usize,
    pvar: &'static Pvar,
    object: BoundObject,
    started: bool,
    /// It has been neither started nor written since it was made or reset: of a watermark, the length at its start
    /// counts, not that of before.
    unused: bool,
    /// What was counted when it was started or reset.
    base: u64,
    /// What was counted in the times before in which it was started; of a watermark, the extreme so far.
    kept: u64,
    /// When it was started, in nanoseconds, and how long it had been started before.
    since: u64,
    before: u64,
}

/// The communicator or window that a handle is bound to: its handle, 0 for none, which another one may have when it is
/// gone, and its events, which no other has.
pub(super) struct BoundObject {
    pub handle: usize,
    pub events: Weak<CommEvents>,
}

impl BoundObject {
    /// Of a variable that is bound to nothing.
    pub const NONE: Self = Self { handle: 0, events: Weak::new() };

    /// Whether these are its events.
    fn is(&self, events: &Arc<CommEvents>) -> Outcome {
        if core::ptr::eq(self.events.as_ptr(), Arc::as_ptr(events)) {
            Ok(())
        } else {
            Err(MPI_T_ERR_INVALID_HANDLE)
        }
    }
}

/// All sessions and handles.
pub(super) struct PvarState {
    next: usize,
    sessions: BTreeSet<usize>,
    handles: BTreeMap<usize, PvarHandle>,
    /// What counts only while a handle is started: searches, and windows.
    counting: [Counting; 2],
}

/// Started handles of variables of one kind, and the subscription that counts for them.
struct Counting {
    started: usize,
    subscription: Option<GlobalSubscription>,
    subscribe: fn(u64) -> GlobalSubscription,
    stop: fn(),
}

impl Counting {
    const fn new(subscribe: fn(u64) -> GlobalSubscription, stop: fn()) -> Counting {
        Counting { started: 0, subscription: None, subscribe, stop }
    }

    /// The subscription that no handle needs any more, and that counts nothing from now on.
    fn idle(&mut self) -> Option<GlobalSubscription> {
        let idle = if self.started == 0 { self.subscription.take() } else { None };
        if idle.is_some() {
            (self.stop)();
        }
        idle
    }
}

/// What counts for a variable, if it counts only while a handle is started.
fn counts(source: PvarSource) -> Option<usize> {
    match source {
        PvarSource::Searches(_) => Some(0),
        PvarSource::Windows(_) => Some(1),
        _ => None,
    }
}

static STATE: Mutex<PvarState> = Mutex::new(PvarState {
    next: 4096,
    sessions: BTreeSet::new(),
    handles: BTreeMap::new(),
    counting: [
        Counting::new(|generation| SEARCHES.subscribe(generation), || SEARCHES.stop()),
        Counting::new(|generation| WINDOWS.subscribe(generation), || WINDOWS.stop()),
    ],
});

fn lock() -> MutexGuard<'static, PvarState> {
    STATE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Runs `body` under the lock. A subscription that no handle needs any more is dropped afterwards: its end may wait for
/// a thread that wants the lock.
pub(super) fn with<R>(body: impl FnOnce(&mut PvarState) -> R) -> R {
    let mut state = lock();
    let result = body(&mut state);
    let idle = state.counting.each_mut().map(Counting::idle);
    drop(state);
    drop(idle);
    result
}

/// Forgets all sessions and handles.
pub(super) fn end() {
    with(|state| {
        state.sessions.clear();
        state.handles.clear();
        state.counting.iter_mut().for_each(|counting| counting.started = 0);
    });
}

fn of_engine<T>(read: impl FnOnce(&'static Engine) -> T, without: T) -> T {
    process::running().map_or(without, read)
}

fn length_now(queue: Queue) -> u64 {
    of_engine(|engine| queue.now(engine), 0)
}

/// What a variable that grows has counted so far.
fn raw(source: PvarSource) -> u64 {
    match source {
        PvarSource::Sum(read) | PvarSource::Time(read) | PvarSource::Share(read) => of_engine(read, 0),
        PvarSource::Searches(search) => SEARCHES.get(search as usize),
        PvarSource::Windows(what) => WINDOWS.get(what as usize),
        _ => 0,
    }
}

fn seconds(nanoseconds: u64) -> f64 {
    nanoseconds as f64 / 1e9
}

/// A count of `pvar`, of the type that its values have.
fn count(pvar: &Pvar, number: u64) -> PvarValue {
    if pvar.is_length() {
        PvarValue::Length(c_uint::try_from(number).unwrap_or(c_uint::MAX))
    } else {
        PvarValue::Number(number)
    }
}

impl PvarHandle {
    fn watched(&self) -> Option<Queue> {
        match self.pvar.source {
            PvarSource::Most(queue) | PvarSource::Least(queue) => Some(queue),
            _ => None,
        }
    }

    /// Takes over the extremes of a time that ends.
    fn absorb(&mut self, (most, least): (u64, u64)) {
        self.kept = match self.pvar.source {
            PvarSource::Most(_) => self.kept.max(most),
            _ => self.kept.min(least),
        };
    }

    /// What it has counted while it was started.
    fn grown(&self) -> u64 {
        let now = if self.started { raw(self.pvar.source).wrapping_sub(self.base) } else { 0 };
        self.kept.wrapping_add(now)
    }

    fn extreme(&self, queue: Queue) -> u64 {
        if !self.started {
            return self.kept;
        }
        let extremes = |engine| (queue.of(engine).most.get(), queue.of(engine).least.get());
        let (most, least) = of_engine(extremes, (0, 0));
        match self.pvar.source {
            PvarSource::Most(_) => self.kept.max(most),
            _ => self.kept.min(least),
        }
    }

    fn value(&self) -> Outcome<PvarValue> {
        Ok(match self.pvar.source {
            PvarSource::Now(read) => PvarValue::Number(of_engine(read, 0)),
            PvarSource::Length(queue) => count(self.pvar, length_now(queue)),
            PvarSource::Int(read) => PvarValue::Int(of_engine(read, 0)),
            PvarSource::Real(read) => PvarValue::Real(of_engine(read, 0.0)),
            PvarSource::Sum(_) => PvarValue::Number(self.grown()),
            PvarSource::Time(_) => PvarValue::Real(seconds(self.grown())),
            PvarSource::Share(_) => {
                let whole = self.before + if self.started { now().saturating_sub(self.since) } else { 0 };
                PvarValue::Real((self.grown() as f64 / whole.max(1) as f64).min(1.0))
            }
            PvarSource::Most(queue) | PvarSource::Least(queue) => count(self.pvar, self.extreme(queue)),
            PvarSource::Searches(_) | PvarSource::Windows(_) if self.pvar.is_real() => {
                PvarValue::Real(self.grown() as f64 / clock::source().ticks_per_second as f64)
            }
            PvarSource::Searches(_) | PvarSource::Windows(_) => PvarValue::Number(self.grown()),
            PvarSource::Comm(what) => count(self.pvar, of_comm(&self.object, what)?),
            // It has several elements, which `PvarState::read` gives.
            PvarSource::Copies(_) => return Err(MPI_T_ERR_INVALID),
            PvarSource::WinReach => {
                let win = windows::get(self.object.handle).map_err(|_| MPI_T_ERR_INVALID_HANDLE)?;
                self.object.is(win.events())?;
                PvarValue::Int(win.reach() as c_int)
            }
        })
    }

    /// Makes its value `to`, or the starting one. The extremes have been cut.
    fn set(&mut self, to: Option<PvarValue>) {
        let start = self.watched().map_or(0, length_now);
        self.kept = match (to, self.pvar.source) {
            (Some(PvarValue::Number(number)), _) => number,
            (Some(PvarValue::Length(length)), _) => u64::from(length),
            (Some(PvarValue::Real(value)), PvarSource::Searches(_) | PvarSource::Windows(_)) => {
                (value * clock::source().ticks_per_second as f64) as u64
            }
            (Some(PvarValue::Real(value)), _) => (value * 1e9) as u64,
            _ => start,
        };
        self.base = raw(self.pvar.source);
        self.unused = to.is_none() && !self.started;
    }

    fn start(&mut self) {
        self.started = true;
        let unused = core::mem::take(&mut self.unused);
        self.base = raw(self.pvar.source);
        self.since = now();
        if let Some(queue) = self.watched() {
            // Also before MPI_Init: what comes then is counted from its beginning.
            telemetry::watch_extremes();
            let length = length_now(queue);
            if unused {
                self.kept = length;
            }
            self.absorb((length, length));
        }
    }

    fn stop(&mut self) {
        self.kept = match self.watched() {
            Some(queue) => self.extreme(queue),
            None => self.grown(),
        };
        self.before += now().saturating_sub(self.since);
        self.started = false;
    }
}

fn comm_of(object: &BoundObject) -> Outcome<Arc<Comm>> {
    let comm = comms::get(object.handle).map_err(|_| MPI_T_ERR_INVALID_HANDLE)?;
    object.is(&comm.events)?;
    Ok(comm)
}

/// How many elements a value of a variable has that is bound to that object.
pub(super) fn elements(pvar: &Pvar, object: &BoundObject) -> Outcome<c_int> {
    match pvar.source {
        PvarSource::Copies(_) => Ok(comm_of(object)?.peers().size() as c_int),
        _ => Ok(1),
    }
}

fn of_comm(object: &BoundObject, what: OfComm) -> Outcome<u64> {
    let comm = comm_of(object)?;
    Ok(match what {
        OfComm::Posted => comm.p2p().posted.get(),
        OfComm::Unexpected => comm.p2p().unexpected.get(),
        OfComm::Size => u64::from(comm.size()),
    })
}

impl PvarState {
    fn fresh(&mut self) -> usize {
        self.next += 1;
        self.next
    }

    /// A new session.
    pub fn open(&mut self) -> Outcome<usize> {
        if self.sessions.len() >= TOOL_HANDLES {
            return Err(MPI_T_ERR_OUT_OF_SESSIONS);
        }
        telemetry::expect_readers();
        let session = self.fresh();
        self.sessions.insert(session);
        Ok(session)
    }

    /// Ends a session and its handles.
    pub fn close(&mut self, session: usize) -> Outcome {
        self.check(session)?;
        for handle in self.of(session) {
            self.release(handle);
        }
        self.sessions.remove(&session);
        Ok(())
    }

    /// MPI_T_ERR_INVALID_SESSION unless there is that session.
    pub fn check(&self, session: usize) -> Outcome {
        if self.sessions.contains(&session) { Ok(()) } else { Err(MPI_T_ERR_INVALID_SESSION) }
    }

    fn of(&self, session: usize) -> Vec<usize> {
        self.handles.iter().filter(|(_, handle)| handle.session == session).map(|(name, _)| *name).collect()
    }

    fn find(&mut self, session: usize, handle: usize) -> Outcome<&mut PvarHandle> {
        self.check(session)?;
        let found = self.handles.get_mut(&handle).filter(|found| found.session == session);
        found.ok_or(MPI_T_ERR_INVALID_HANDLE)
    }

    /// A new handle, bound to `object` if the variable is.
    pub fn bind(&mut self, session: usize, pvar: &'static Pvar, object: BoundObject) -> Outcome<usize> {
        self.check(session)?;
        if self.handles.len() >= TOOL_HANDLES {
            return Err(MPI_T_ERR_OUT_OF_HANDLES);
        }
        let mut handle = PvarHandle {
            session,
            pvar,
            object,
            started: false,
            unused: true,
            base: 0,
            kept: 0,
            since: 0,
            before: 0,
        };
        handle.set(None);
        let name = self.fresh();
        self.handles.insert(name, handle);
        Ok(name)
    }

    /// Frees a handle.
    pub fn free(&mut self, session: usize, handle: usize) -> Outcome {
        self.find(session, handle)?;
        self.release(handle);
        Ok(())
    }

    fn release(&mut self, handle: usize) {
        let found = self.handles.remove(&handle);
        let started = found.filter(|handle| handle.started);
        if let Some(kind) = started.and_then(|handle| counts(handle.pvar.source)) {
            self.counting[kind].started -= 1;
        }
    }

    /// Begins a new time for the extremes of a length: what the old one had, all who watch it take over.
    fn cut(&mut self, queue: Option<Queue>) {
        let Some((queue, engine)) = queue.zip(process::running()) else { return };
        let extremes = queue.cut(engine);
        let watching = |handle: &&mut PvarHandle| handle.started && handle.watched() == Some(queue);
        self.handles.values_mut().filter(watching).for_each(|handle| handle.absorb(extremes));
    }

    /// Starts (or stops) a handle, or all of a session that can be and are not.
    pub fn run(&mut self, session: usize, handle: usize, on: bool) -> Outcome {
        self.check(session)?;
        if handle != MPI_T_PVAR_ALL_HANDLES {
            if self.find(session, handle)?.pvar.is_continuous() {
                return Err(MPI_T_ERR_PVAR_NO_STARTSTOP);
            }
            self.run_one(handle, on);
            return Ok(());
        }
        for handle in self.of(session) {
            if self.handles.get(&handle).is_some_and(|found| !found.pvar.is_continuous()) {
                self.run_one(handle, on);
            }
        }
        Ok(())
    }

    fn run_one(&mut self, name: usize, on: bool) {
        let Some(handle) = self.handles.get(&name).filter(|handle| handle.started != on) else { return };
        if on {
            self.cut(handle.watched());
        }
        let Some(handle) = self.handles.get_mut(&name) else { return };
        if on {
            handle.start()
        } else {
            handle.stop()
        }
        if let Some(kind) = counts(handle.pvar.source) {
            let generation = self.fresh() as u64;
            let counting = &mut self.counting[kind];
            if on {
                counting.started += 1;
                counting.subscription.get_or_insert_with(|| (counting.subscribe)(generation));
            } else {
                counting.started -= 1;
            }
        }
    }

    /// Gives `each` the elements of a handle's value, by number.
    pub fn read(&mut self, session: usize, handle: usize, mut each: impl FnMut(usize, PvarValue)) -> Outcome {
        let handle = self.find(session, handle)?;
        let PvarSource::Copies(what) = handle.pvar.source else {
            each(0, handle.value()?);
            return Ok(());
        };
        let comm = comm_of(&handle.object)?;
        for (at, world) in comm.peers().iter().enumerate() {
            let copies = of_engine(|engine| engine.copies_from(world), CopiesFromPeer::default());
            let number = what.of(&copies);
            each(
                at,
                if handle.pvar.is_int() {
                    PvarValue::Int(number as c_int)
                } else {
                    PvarValue::Number(number)
                },
            );
        }
        Ok(())
    }

    /// The variable behind a handle that may be written.
    pub fn writable(&mut self, session: usize, handle: usize) -> Outcome<&'static Pvar> {
        let pvar = self.find(session, handle)?.pvar;
        if pvar.is_readonly() { Err(MPI_T_ERR_PVAR_NO_WRITE) } else { Ok(pvar) }
    }

    /// Gives a handle a value, or the starting one.
    pub fn write(&mut self, session: usize, handle: usize, to: Option<PvarValue>) -> Outcome {
        self.writable(session, handle)?;
        let watched = self.find(session, handle)?.watched();
        self.cut(watched);
        self.find(session, handle)?.set(to);
        Ok(())
    }

    /// Resets all handles of a session that can be.
    pub fn reset_all(&mut self, session: usize) -> Outcome {
        self.check(session)?;
        for handle in self.of(session) {
            if self.writable(session, handle).is_ok() {
                self.write(session, handle, None)?;
            }
        }
        Ok(())
    }

    /// Reads a handle and resets it, with nothing in between.
    pub fn read_and_reset(&mut self, session: usize, handle: usize) -> Outcome<PvarValue> {
        let pvar = self.find(session, handle)?.pvar;
        if !pvar.is_atomic() {
            return Err(MPI_T_ERR_PVAR_NO_ATOMIC);
        }
        // What comes between the reading and the reset of the engine's count would be lost:
        // so the new base is what was read.
        let found = self.find(session, handle)?;
        if found.watched().is_none() {
            found.absorb_growth();
            let value = found.value_of_kept();
            found.kept = 0;
            return Ok(value);
        }
        let watched = found.watched();
        self.cut(watched);
        let found = self.find(session, handle)?;
        let value = count(found.pvar, found.kept);
        found.set(None);
        Ok(value)
    }
}

impl PvarHandle {
    /// Moves the growth since the base to what is kept, with one look at the count.
    fn absorb_growth(&mut self) {
        if self.started {
            let now = raw(self.pvar.source);
            self.kept = self.kept.wrapping_add(now.wrapping_sub(self.base));
            self.base = now;
        }
    }

    fn value_of_kept(&self) -> PvarValue {
        match self.pvar.source {
            PvarSource::Time(_) => PvarValue::Real(seconds(self.kept)),
            PvarSource::Searches(_) | PvarSource::Windows(_) if self.pvar.is_real() => {
                PvarValue::Real(self.kept as f64 / clock::source().ticks_per_second as f64)
            }
            _ => PvarValue::Number(self.kept),
        }
    }
}
