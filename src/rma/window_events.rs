//! Where events of windows are emitted, and what they say.

use super::epoch::Hold;
use super::window::{Target, Window};
use crate::datatype::Datatype;
use crate::error::Result;
use crate::events::{
    CommEvents, Event, EventPayload, EventRecord, Operation, RmaOperation, RmaTarget, Spec, WindowLock,
    WindowReach, WindowSync, fast_path_is_open,
};
use crate::sync::Arc;
use core::cell::Cell;

/// A target that stands for all, or none.
const ALL: i32 = -1;

impl Window {
    /// Emits that the window has been made, now that it has a handle; how it lies in memory;
    /// and its name, if it has one.
    pub fn emit_created(&self) {
        self.emit_life(Event::WinCreated);
        if self.comm.events.registry().gate.is_open(Event::WinPlaced) {
            let (bytes, _) = self.own_size();
            let payload =
                EventPayload::Window { flavor: self.flavor as u8, reach: self.reach() as u8, bytes };
            self.emit_of_engine(Event::WinPlaced, payload);
        }
        if !self.name().is_empty() {
            self.emit_name();
        }
    }

    /// Emits that the window's handle is freed.
    pub fn emit_freed(&self) {
        self.emit_life(Event::WinFreed);
    }

    /// Emits that the window has been given a name.
    pub fn emit_name(&self) {
        if self.comm.events.registry().gate.is_open(Event::WinNamed) {
            self.emit_of_engine(Event::WinNamed, EventPayload::Name(&String::from_utf8_lossy(&self.name())));
        }
    }

    fn emit_life(&self, event: Event) {
        if self.comm.events.registry().gate.is_open(event) {
            let group: Vec<u32> = self.group().iter().collect();
            self.emit_of_engine(event, EventPayload::Comm { size: self.size(), group: &group });
        }
    }

    /// Emits an event that is bound to no window, though it speaks of this one.
    #[cold]
    fn emit_of_engine(&self, event: Event, payload: EventPayload<'_>) {
        let spec = Spec { comm: self.comm.handle(), peer: ALL, tag: self.rank() as i32, ..Spec::NOTHING };
        let context = self.context();
        self.comm.events.registry().emit(&EventRecord { event, id: 0, context, spec: &spec, payload });
    }

    /// How this member reaches the memory of another one.
    #[must_use]
    pub fn reach_of(&self, rank: u32) -> WindowReach {
        match self.targets[rank as usize].address() {
            Some(_) => WindowReach::Mapped,
            None if self.service.is_some() => WindowReach::Messages,
            None => WindowReach::Kernel,
        }
    }

    /// The slowest way in which this member reaches the memory of another one.
    #[must_use]
    pub fn reach(&self) -> WindowReach {
        let ranks = (0..self.size()).map(|rank| self.reach_of(rank));
        ranks.max_by_key(|reach| *reach as u8).unwrap_or(WindowReach::Mapped)
    }
}

/// The handles that a program gave for an operation, which the engine does not know:
/// 0 for those that it can find itself.
#[derive(Debug, Clone, Copy, Default)]
pub struct GivenHandles {
    /// The MPI_Datatype of the origin's elements.
    pub origin: usize,
    /// The MPI_Datatype of the target's elements.
    pub target: usize,
    /// The MPI_Op.
    pub op: usize,
}

crate::sync::thread_local! {
    static GIVEN: Cell<GivenHandles> = const { Cell::new(GivenHandles { origin: 0, target: 0, op: 0 }) };
}

/// A one-sided operation, as its events describe it.
pub(super) struct OneSided<'a> {
    /// Which.
    pub operation: RmaOperation,
    /// The origin's elements: where they are, how many, of which type; for those that only fetch, the result's.
    pub origin: (*const u8, usize, &'a Datatype),
    /// The target's.
    pub target: Target<'a>,
}

impl OneSided<'_> {
    fn peruse(&self) -> Operation {
        match self.operation {
            RmaOperation::Put => Operation::Put,
            RmaOperation::Get => Operation::Get,
            RmaOperation::Accumulate
            | RmaOperation::GetAccumulate
            | RmaOperation::FetchAndOp
            | RmaOperation::CompareAndSwap => Operation::Acc,
        }
    }

    /// Bytes that move.
    fn bytes(&self) -> usize {
        let (_, count, datatype) = self.origin;
        let of = |count: usize, datatype: &Datatype| count.saturating_mul(datatype.size());
        of(count, datatype).min(of(self.target.count, self.target.datatype))
    }

    /// The contiguous regions of the target's memory: displacement, bytes,
    /// and how many bytes lie before it in the packed stream.
    fn regions(&self) -> impl Iterator<Item = (isize, usize, usize)> {
        let (mut at, mut left) = (0, self.bytes());
        self.target.datatype.runs(self.target.count).map_while(move |(disp, len)| {
            let len = len.min(left);
            let region = (disp, len, at);
            (at, left) = (at + len, left - len);
            (len > 0).then_some(region)
        })
    }
}

impl Window {
    /// Notes which handles the program gave for the operation that `perform` calls.
    #[cold]
    pub fn with_handles<R>(&self, given: GivenHandles, perform: impl FnOnce() -> R) -> R {
        GIVEN.set(given);
        let result = perform();
        GIVEN.set(GivenHandles::default());
        result
    }

    /// Its events, to listen to.
    #[must_use]
    pub fn events(&self) -> &Arc<CommEvents> {
        &self.comm.events
    }

    /// Whether anybody listens to an event of this window.
    /// Where nobody listens to anything, that is one load and one branch.
    #[inline(always)]
    #[must_use]
    pub fn is_observed(&self) -> bool {
        !fast_path_is_open() && self.comm.events.gate.is_any_open()
    }

    /// Performs a one-sided operation, and emits its events if anybody listens: then `describe` is called.
    #[inline(always)]
    pub(super) fn operate<'a>(
        &self,
        describe: impl FnOnce() -> OneSided<'a>,
        perform: impl FnOnce() -> Result<()>,
    ) -> Result<()> {
        if self.is_observed() { self.operate_observed(&describe(), perform) } else { perform() }
    }

    #[cold]
    #[inline(never)]
    fn operate_observed(&self, operation: &OneSided<'_>, perform: impl FnOnce() -> Result<()>) -> Result<()> {
        let id = self.comm.events.registry().fresh_id();
        self.emit_operation(operation, id, Event::WinReqActivate);
        self.emit_operation(operation, id, Event::WinReqXferBegin);
        self.emit_regions(operation, id, Event::WinRegionBegin);
        let result = perform();
        self.emit_regions(operation, id, Event::WinRegionEnd);
        self.emit_operation(operation, id, Event::WinReqXferEnd);
        self.emit_operation(operation, id, Event::WinReqComplete);
        result
    }

    fn emit_operation(&self, operation: &OneSided<'_>, id: isize, event: Event) {
        if self.comm.events.gate.is_open(event) {
            let (buf, count, _) = operation.origin;
            let low = operation.target.datatype.true_lb();
            self.emit_rma(operation, id, event, (buf, count as i64), (low, operation.bytes()));
        }
    }

    fn emit_regions(&self, operation: &OneSided<'_>, id: isize, event: Event) {
        if !self.comm.events.gate.is_open(event) {
            return;
        }
        let (buf, count, datatype) = operation.origin;
        for (disp, len, at) in operation.regions() {
            let local = buf.wrapping_offset(datatype.displacement(at));
            self.emit_rma(operation, id, event, (local, count as i64), (disp, len));
        }
    }

    /// Emits an event of an operation on `bytes` bytes at displacement `disp` of the target's elements.
    fn emit_rma(
        &self,
        operation: &OneSided<'_>,
        id: isize,
        event: Event,
        (buf, count): (*const u8, i64),
        (disp, bytes): (isize, usize),
    ) {
        let OneSided { target, origin: (_, _, datatype), .. } = operation;
        let given = GIVEN.get();
        let or_named = |given: usize, datatype: &Datatype| {
            if given != 0 { given } else { datatype.named().unwrap_or(0) }
        };
        let rma_target = RmaTarget {
            count: target.count,
            datatype: or_named(given.target, target.datatype),
            op: given.op,
        };
        let rank = target.rank as u32;
        let spec = Spec {
            buf: buf.cast_mut().cast(),
            count,
            datatype: or_named(given.origin, datatype),
            operation: operation.peruse(),
            bytes: bytes as u64,
            ..self.spec(target.rank)
        };
        let payload = EventPayload::Rma {
            operation: operation.operation as u8,
            reach: self.reach_of(rank) as u8,
            world: self.world(rank),
            address: self.targets[rank as usize].remote_address(target.disp).wrapping_add_signed(disp as i64),
            target: Some(&rma_target),
        };
        self.emit(event, id, &spec, payload);
    }

    /// Performs a call that synchronises the window, and emits where it begins and ends, whether or not it fails, if
    /// anybody listens. `perform` is given the call's id; 0 if nobody does.
    #[inline(always)]
    pub(super) fn synchronize<R>(
        &self,
        call: WindowSync,
        target: Option<u32>,
        lock: Hold,
        perform: impl FnOnce(isize) -> Result<R>,
    ) -> Result<R> {
        if self.is_observed() { self.synchronize_observed(call, target, lock, perform) } else { perform(0) }
    }

    /// As [`synchronize`](Self::synchronize), where somebody listens:
    /// for calls that keep what they do without listeners in line.
    #[cold]
    #[inline(never)]
    pub(super) fn synchronize_observed<R>(
        &self,
        call: WindowSync,
        target: Option<u32>,
        lock: Hold,
        perform: impl FnOnce(isize) -> Result<R>,
    ) -> Result<R> {
        let id = self.comm.events.registry().fresh_id();
        self.emit_sync(Event::WinSyncBegin, id, call, target, lock);
        let result = perform(id);
        self.emit_sync(Event::WinSyncEnd, id, call, target, lock);
        result
    }

    #[cold]
    #[inline(never)]
    fn emit_sync(&self, event: Event, id: isize, call: WindowSync, target: Option<u32>, lock: Hold) {
        if self.comm.events.gate.is_open(event) {
            let target = target.map_or(ALL, |rank| rank as i32);
            let spec = Spec { operation: Operation::of_sync(call), ..self.spec(target) };
            let payload = EventPayload::Sync { target, call: call as u8, lock: lock_of(lock) as u8 };
            self.emit(event, id, &spec, payload);
        }
    }

    /// Emits the event of a lock of one target, or of all; `id` is that of the call, and 0 if nobody listened when that
    /// began. `holder` was granted the lock last.
    #[inline(always)]
    pub(super) fn lock_event(
        &self,
        event: Event,
        id: isize,
        target: Option<u32>,
        lock: Hold,
        holder: Option<u32>,
    ) {
        if id != 0 {
            self.emit_lock(event, id, target, lock, holder);
        }
    }

    #[cold]
    #[inline(never)]
    fn emit_lock(&self, event: Event, id: isize, target: Option<u32>, lock: Hold, holder: Option<u32>) {
        if self.comm.events.gate.is_open(event) {
            let target = target.map_or(ALL, |rank| rank as i32);
            let operation = match event {
                Event::WinLockReleased => Operation::WinUnlock,
                _ => Operation::WinLock,
            };
            let holder = holder.map_or(ALL, |rank| rank as i32);
            let payload = EventPayload::Lock { target, lock: lock_of(lock) as u8, holder };
            self.emit(event, id, &Spec { operation, ..self.spec(target) }, payload);
        }
    }

    /// Emits the event of an epoch, at one target or of the whole window.
    #[inline(always)]
    pub(super) fn epoch_event(&self, event: Event, target: Option<u32>) {
        if self.comm.events.gate.is_open(event) {
            self.emit_epoch(event, target);
        }
    }

    #[cold]
    #[inline(never)]
    fn emit_epoch(&self, event: Event, target: Option<u32>) {
        let payload = match target {
            Some(rank) => EventPayload::Epoch { target: rank as i32 },
            None => EventPayload::None,
        };
        let operation = match event {
            Event::WinAccessBegin => Operation::WinStart,
            Event::WinAccessEnd => Operation::WinComplete,
            Event::WinExposeBegin => Operation::WinPost,
            Event::WinExposeEnd => Operation::WinWait,
            _ => Operation::WinFence,
        };
        let target = target.map_or(ALL, |rank| rank as i32);
        self.emit(event, 0, &Spec { operation, ..self.spec(target) }, payload);
    }

    fn spec(&self, target: i32) -> Spec {
        Spec { comm: self.comm.handle(), peer: target, tag: self.rank() as i32, ..Spec::NOTHING }
    }

    fn emit(&self, event: Event, id: isize, spec: &Spec, payload: EventPayload<'_>) {
        let context = self.context();
        self.comm.events.emit(&EventRecord { event, id, context, spec, payload });
    }
}

fn lock_of(hold: Hold) -> WindowLock {
    match hold {
        Hold::Shared => WindowLock::Shared,
        Hold::Exclusive => WindowLock::Exclusive,
        Hold::Unchecked => WindowLock::Unchecked,
        Hold::None | Hold::Started => WindowLock::None,
    }
}
