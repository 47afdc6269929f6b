//! Where events of files are emitted, and what they say.
//!
//! Events are raised on threads that are in a call of the program, never on one that performs an access in the
//! background: of such an access there are the call, and its end as the program sees it.

use super::access::{Access, Direction, Elements};
use super::file::{File, Start};
use super::system::{Descriptor, Transfer};
use crate::comm::Comm;
use crate::events::{
    Event, EventPayload, EventRecord, FileMode, FileOperation, FilePointer, Operation, Spec, WindowLock,
    fast_path_is_open,
};
use crate::sync::Arc;
use core::cell::Cell;

/// Where an access begins, as long as that is not known.
const UNKNOWN: u64 = u64::MAX;

/// An access that somebody listens to.
#[derive(Debug, Clone, Copy)]
pub(super) struct ObservedAccess {
    id: isize,
    spec: Spec,
    operation: FileOperation,
    pointer: FilePointer,
    mode: FileMode,
    offset: u64,
    accesses: u32,
    /// It is performed in the background: its accesses to the file system are counted, and raise no events.
    silent: bool,
}

crate::sync::thread_local! {
    static CURRENT: Cell<Option<ObservedAccess>> = const { Cell::new(None) };
}

impl ObservedAccess {
    fn payload(&self) -> EventPayload<'static> {
        EventPayload::File {
            operation: self.operation as u8,
            pointer: self.pointer as u8,
            mode: self.mode as u8,
            accesses: self.accesses,
            offset: self.offset,
        }
    }

    fn emit(&self, comm: &Comm, event: Event) {
        if comm.events.gate.is_open(event) {
            emit(comm, event, self.id, &self.spec, self.payload());
        }
    }

    /// Has the calling thread, which is none of the program's, count what it does for this access.
    pub fn perform_silently<R>(self, perform: impl FnOnce() -> R) -> (R, Self) {
        CURRENT.set(Some(Self { silent: true, ..self }));
        let result = perform();
        (result, CURRENT.take().unwrap_or(self))
    }

    /// Emits that the program sees its end.
    pub fn complete(mut self, comm: &Comm, outcome: &Transfer) {
        self.spec.bytes = outcome.bytes;
        self.emit(comm, Event::FileReqComplete);
    }
}

fn emit(comm: &Comm, event: Event, id: isize, spec: &Spec, payload: EventPayload<'_>) {
    comm.events.emit(&EventRecord { event, id, context: comm.context, spec, payload });
}

/// Whether anybody listens to an event of a file. Where nobody listens to anything, that is one load and one branch.
#[inline(always)]
fn is_observed(comm: &Comm) -> bool {
    !fast_path_is_open() && comm.events.gate.is_any_open()
}

/// The access that the calling thread performs, if its events are wanted.
fn current() -> Option<ObservedAccess> {
    CURRENT.get().filter(|access| !access.silent)
}

impl File {
    /// Tells listeners the handle of a new file; emits that it is open, and its name.
    pub fn emit_opened(&self, handle: usize) {
        self.comm.events.set_comm(handle);
        self.emit_life(Event::FileOpened);
        if self.comm.events.registry().gate.is_open(Event::FileNamed) {
            let name = self.descriptor.name().to_string();
            self.emit_of_engine(Event::FileNamed, EventPayload::Name(&name));
        }
    }

    /// Emits that the file's handle goes.
    pub fn emit_closed(&self) {
        self.emit_life(Event::FileClosed);
    }

    fn emit_life(&self, event: Event) {
        if self.comm.events.registry().gate.is_open(event) {
            let group: Vec<u32> = self.group().iter().collect();
            self.emit_of_engine(event, EventPayload::Comm { size: self.comm.size(), group: &group });
        }
    }

    /// Emits an event that is bound to no file, though it speaks of this one.
    #[cold]
    fn emit_of_engine(&self, event: Event, payload: EventPayload<'_>) {
        let spec = Spec { tag: self.comm.rank() as i32, ..spec_of(&self.comm) };
        let record = EventRecord { event, id: 0, context: self.comm.context, spec: &spec, payload };
        self.comm.events.registry().emit(&record);
    }

    /// Performs an access, and emits where it begins and ends if anybody listens.
    #[inline(always)]
    pub(super) fn observe(
        &self,
        (direction, start, mode): (Direction, Start, FileMode),
        elements: &Elements,
        perform: impl FnOnce() -> Transfer,
    ) -> Transfer {
        if !is_observed(&self.comm) {
            return perform();
        }
        let access = self.activate(direction, start, mode, elements);
        CURRENT.set(Some(access));
        let outcome = perform();
        let access = CURRENT.take().unwrap_or(access);
        access.complete(&self.comm, &outcome);
        outcome
    }

    /// Emits that an access that goes on in the background has been called, if anybody listens.
    pub(super) fn observe_begin(
        &self,
        direction: Direction,
        start: Start,
        elements: &Elements,
        place: &Access,
    ) -> Option<ObservedAccess> {
        let access = is_observed(&self.comm)
            .then(|| self.activate(direction, start, FileMode::Nonblocking, elements))?;
        Some(ObservedAccess { offset: place.view.offset_of(place.at).unwrap_or(UNKNOWN), ..access })
    }

    #[cold]
    fn activate(
        &self,
        direction: Direction,
        start: Start,
        mode: FileMode,
        elements: &Elements,
    ) -> ObservedAccess {
        let (operation, of_peruse) = match direction {
            Direction::Read => (FileOperation::Read, Operation::IoRead),
            Direction::Write => (FileOperation::Write, Operation::IoWrite),
        };
        let pointer = match start {
            Start::At(_) => FilePointer::Explicit,
            Start::Individual => FilePointer::Individual,
            Start::Shared => FilePointer::Shared,
        };
        let spec = Spec {
            buf: elements.addr().cast(),
            count: elements.count() as i64,
            datatype: elements.handle(),
            operation: of_peruse,
            bytes: elements.bytes() as u64,
            tag: self.comm.rank() as i32,
            ..spec_of(&self.comm)
        };
        let offset_of = |etype| self.view().ok()?.offset_of_etype(etype).ok();
        let at = match start {
            Start::At(offset) => offset_of(offset),
            Start::Individual => self.position().ok().and_then(offset_of),
            Start::Shared => None,
        };
        let access = ObservedAccess {
            id: self.comm.events.registry().fresh_id(),
            spec,
            operation,
            pointer,
            mode,
            offset: at.map_or(UNKNOWN, |at| at as u64),
            accesses: 0,
            silent: false,
        };
        access.emit(&self.comm, Event::FileReqActivate);
        access
    }

    /// Emits an event of the access that this thread performs, if there is one.
    #[inline(always)]
    pub(super) fn access_event(&self, event: Event) {
        if is_observed(&self.comm) {
            self.emit_current(event, None);
        }
    }

    /// Performs the part of an access in which bytes move; emits where it begins and ends.
    #[inline(always)]
    pub(super) fn moving(&self, place: Option<&Access>, perform: impl FnOnce() -> Transfer) -> Transfer {
        if !is_observed(&self.comm) {
            return perform();
        }
        let at = place.and_then(|place| place.view.offset_of(place.at).ok());
        if let (Some(access), Some(at)) = (CURRENT.get(), at) {
            CURRENT.set(Some(ObservedAccess { offset: at, ..access }));
        }
        self.emit_current(Event::FileReqXferBegin, None);
        let outcome = perform();
        self.emit_current(Event::FileReqXferEnd, Some(outcome.bytes));
        outcome
    }

    #[cold]
    #[inline(never)]
    fn emit_current(&self, event: Event, bytes: Option<u64>) {
        if let Some(mut access) = current() {
            access.spec.bytes = bytes.unwrap_or(access.spec.bytes);
            access.emit(&self.comm, event);
        }
    }
}

fn spec_of(comm: &Comm) -> Spec {
    Spec { comm: comm.events.comm(), peer: -1, ..Spec::NOTHING }
}

impl Descriptor {
    /// Emits that `bytes` bytes at `offset` are about to be read or written, for the access that this thread performs.
    #[inline(always)]
    pub(super) fn disk_access(&self, offset: u64, bytes: usize) {
        if is_observed(self.comm()) {
            self.emit_disk_access(offset, bytes);
        }
    }

    #[cold]
    #[inline(never)]
    fn emit_disk_access(&self, offset: u64, bytes: usize) {
        let Some(mut access) = CURRENT.get() else { return };
        access.accesses = access.accesses.saturating_add(1);
        CURRENT.set(Some(access));
        if !access.silent {
            let spec = Spec { bytes: bytes as u64, ..access.spec };
            ObservedAccess { offset, spec, ..access }.emit(self.comm(), Event::FileDiskAccess);
        }
    }

    /// Emits the event of a lock of `len` bytes at `offset`.
    #[inline(always)]
    pub(super) fn lock_event(&self, event: Event, lock: WindowLock, offset: u64, len: u64) {
        if is_observed(self.comm()) {
            self.emit_lock(event, lock, offset, len);
        }
    }

    #[cold]
    #[inline(never)]
    fn emit_lock(&self, event: Event, lock: WindowLock, offset: u64, len: u64) {
        let Some(access) = current() else { return };
        if self.comm().events.gate.is_open(event) {
            let length = u32::try_from(len).unwrap_or(u32::MAX);
            let payload = EventPayload::FileLock { length, lock: lock as u8, offset };
            emit(self.comm(), event, access.id, &access.spec, payload);
        }
    }
}

/// Who listens to an access in the background.
#[derive(Debug)]
pub(super) struct BackgroundObserver {
    pub access: ObservedAccess,
    pub comm: Arc<Comm>,
}
