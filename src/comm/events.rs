//! Events of a communicator's life.

use super::Comm;
use crate::events::{Event, EventPayload, EventRecord, Spec};

impl Comm {
    /// Emits that the communicator has been made, with its handle; and its name, if it has one already.
    pub fn emit_created(&self) {
        self.emit_life(Event::CommCreated);
        let name = self.name();
        if !name.is_empty() {
            self.emit_name(&name);
        }
    }

    /// Emits that the communicator's handle is freed.
    pub fn emit_freed(&self) {
        self.emit_life(Event::CommFreed);
    }

    /// Emits that the communicator has been named `name`.
    pub fn emit_name(&self, name: &[u8]) {
        if self.events.registry().gate.is_open(Event::CommNamed) {
            self.emit(Event::CommNamed, EventPayload::Name(&String::from_utf8_lossy(name)));
        }
    }

    fn emit_life(&self, event: Event) {
        if self.events.registry().gate.is_open(event) {
            let group: Vec<u32> = self.peers().iter().collect();
            self.emit(event, EventPayload::Comm { size: self.peers().size(), group: &group });
        }
    }

    #[cold]
    fn emit(&self, event: Event, payload: EventPayload<'_>) {
        let spec = Spec { comm: self.handle(), ..Spec::NOTHING };
        self.events.registry().emit(&EventRecord {
            event,
            id: 0,
            context: self.context,
            spec: &spec,
            payload,
        });
    }
}
