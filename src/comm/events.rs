//! Events of a communicator's life.

use super::Comm;
use crate::events::{Event, EventPayload, EventRecord, Spec};

impl Comm {
    /// Emits that it is there, under its handle; and its name, if it has one from the beginning.
    pub fn note_created(&self) {
        self.note_life(Event::CommCreated);
        let name = self.name();
        if !name.is_empty() {
            self.note_name(&name);
        }
    }

    /// Emits that its handle goes.
    pub fn note_freed(&self) {
        self.note_life(Event::CommFreed);
    }

    /// Emits that it is called `name`.
    pub fn note_name(&self, name: &[u8]) {
        if self.events.registry().gate.is_open(Event::CommNamed) {
            self.note(Event::CommNamed, EventPayload::Name(&String::from_utf8_lossy(name)));
        }
    }

    fn note_life(&self, event: Event) {
        if self.events.registry().gate.is_open(event) {
            let group: Vec<u32> = self.peers().iter().collect();
            self.note(event, EventPayload::Comm { size: self.peers().size(), group: &group });
        }
    }

    #[cold]
    fn note(&self, event: Event, payload: EventPayload<'_>) {
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
