//! Where events of windows are emitted, and what they say.

use super::window::Window;
use crate::events::{Event, EventPayload, EventRecord, Spec, WindowReach};

/// A target that stands for all, or none.
const ALL: i32 = -1;

impl Window {
    /// Emits that the window has been made, now that it has a handle; how it lies in memory; and its name, if it has one.
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
