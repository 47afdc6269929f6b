//! The Rust API of a handle: a closure that listens until its subscription is dropped.

use super::comm_events::CommEvents;
use super::record::EventRecord;
use super::registry::{EventError, Registry};
use super::spec::Callback;
use super::{Event, Handle};
use std::sync::Arc;

/// A closure that is called for one event of one communicator. Dropping it releases the handle: afterwards the closure
/// neither runs nor will run, and is itself dropped (see [`Registry::release`] for a drop from inside a callback).
///
/// ```
/// use perusal::Element;
/// use perusal::events::{Event, EventRecord, Operation, Registry, Spec, Subscription};
/// use std::sync::mpsc;
///
/// let registry = Registry::new(Box::new(|why| panic!("{why}")));
/// let comm = registry.attach(0x101);
/// let (sender, receiver) = mpsc::channel();
/// let subscription = Subscription::new(&comm, Event::MsgInsertInUnexQ, move |record| {
///     sender.send((record.spec.peer, record.spec.count)).unwrap();
/// })?;
///
/// // What the engine does when a message is early:
/// if comm.gate.is_open(Event::MsgInsertInUnexQ) {
///     let spec = Spec {
///         comm: comm.comm(),
///         buf: std::ptr::null_mut(),
///         count: 64,
///         datatype: u8::HANDLE,
///         peer: 3,
///         tag: 0,
///         operation: Operation::Recv,
///         bytes: 64,
///     };
///     comm.emit(&EventRecord::new(Event::MsgInsertInUnexQ, 1, &spec));
/// }
/// assert_eq!(receiver.recv(), Ok((3, 64)));
///
/// drop(subscription);
/// assert!(!comm.gate.is_open(Event::MsgInsertInUnexQ));
/// assert!(receiver.recv().is_err(), "the closure is gone, and its end of the channel with it");
/// # Ok::<(), perusal::events::EventError>(())
/// ```
#[derive(Debug)]
#[must_use = "a subscription that is dropped ends at once"]
pub struct Subscription {
    registry: Arc<Registry>,
    handle: Handle,
}

impl Subscription {
    /// Calls `closure` for every `event` of `comm`, from now on.
    ///
    /// The closure runs on whichever thread makes the event happen, inside the engine: it must not call MPI, and should
    /// be quick. A panic ends the job.
    ///
    /// # Errors
    /// As [`Registry::register`].
    pub fn new(
        comm: &Arc<CommEvents>,
        event: Event,
        closure: impl Fn(&EventRecord<'_>) + Send + Sync + 'static,
    ) -> Result<Subscription, EventError> {
        let registry = comm.registry().clone();
        let handle =
            registry.register(comm, event, Callback::Rust(Box::new(move |_, record| closure(record))))?;
        let subscription = Subscription { registry, handle };
        subscription.resume()?;
        Ok(subscription)
    }

    /// The handle behind it.
    #[must_use]
    pub fn handle(&self) -> Handle {
        self.handle
    }

    /// Closes the window; the closure is kept.
    ///
    /// # Errors
    /// `Object` if the communicator is freed.
    pub fn pause(&self) -> Result<(), EventError> {
        self.registry.deactivate(self.handle)
    }

    /// Opens the window again.
    ///
    /// # Errors
    /// `Object` if the communicator is freed.
    pub fn resume(&self) -> Result<(), EventError> {
        self.registry.activate(self.handle)
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        // `Object` says that the communicator went first; the handle is released all the same.
        let _ = self.registry.release(self.handle);
    }
}
