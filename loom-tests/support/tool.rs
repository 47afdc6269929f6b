//! A tool that listens to an event, for the models of events.

use super::Plain;
use perusal::events::{Callback, CommEvents, Event, EventRecord, Handle, Registry, Spec};
use std::sync::Arc;

/// The event that models raise.
pub const EVENT: Event = Event::ReqActivate;

/// Returns a tool's data, which its callbacks share without any synchronisation of their own.
pub fn tool_data() -> Arc<Plain<u32>> {
    Arc::new(Plain::new(0))
}

/// Returns a registry and the events of a communicator in it. A race that loom finds inside a callback panics there,
/// and the fatal hook passes the panic on.
pub fn registry_and_world() -> (Arc<Registry>, Arc<CommEvents>) {
    let registry = Registry::new(Box::new(|text| panic!("{text}")));
    let world = registry.attach(1);
    (registry, world)
}

/// Does what a site of `event` does.
pub fn happens(event: Event, comm: &CommEvents) {
    if comm.gate.is_open(event) {
        let spec = Spec { comm: comm.comm(), ..Spec::NOTHING };
        comm.emit(&EventRecord::new(event, 1, &spec));
    }
}

pub fn closure(run: impl Fn(Handle, &EventRecord<'_>) + Send + Sync + 'static) -> Callback {
    Callback::Rust(Box::new(run))
}

/// Returns a callback that reads `data`.
pub fn reading(data: &Arc<Plain<u32>>) -> Callback {
    let used = data.clone();
    closure(move |_, _| _ = used.get())
}

/// Returns a callback that demands that `data` was written before it was activated.
pub fn expecting_one(data: &Arc<Plain<u32>>) -> Callback {
    let seen = data.clone();
    closure(move |_, _| assert_eq!(seen.get(), 1))
}

/// Has a callback that reads `data` listen to [`EVENT`].
pub fn listening(registry: &Registry, world: &Arc<CommEvents>, data: &Arc<Plain<u32>>) -> Handle {
    let handle = registry.register(world, EVENT, reading(data)).unwrap();
    registry.activate(handle).unwrap();
    handle
}
