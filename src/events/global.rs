//! Global subscriptions: listening on all communicators and to the engine itself.

use super::callback::{Listener, OwnedCallback};
use super::registry::Registry;
use super::spec::Callback;
use super::{EventSet, GlobalSubscriber, Handle};
use std::sync::Arc;

/// The subscription of a [`GlobalSubscriber`]. Dropping it ends it: afterwards [`GlobalSubscriber::on_event`] does not
/// run and will not, and the registry's share of the subscriber is dropped (see [`Registry::release`] for a drop from
/// inside a callback).
#[derive(Debug)]
#[must_use = "a subscription that is dropped ends at once"]
pub struct GlobalSubscription {
    registry: Arc<Registry>,
    /// None where events are compiled out, or no handle is left.
    handle: Option<Handle>,
}

impl GlobalSubscription {
    /// The handle behind it, if it listens at all: not where events are compiled out, or no handle is left.
    #[must_use]
    pub fn handle(&self) -> Option<Handle> {
        self.handle
    }
}

impl Drop for GlobalSubscription {
    fn drop(&mut self) {
        if let Some(handle) = self.handle {
            // It cannot fail: the handle is ours, and bound to no communicator that could have gone first.
            let _ = self.registry.end(handle);
        }
    }
}

impl Registry {
    /// Calls `subscriber` for `events` on every communicator there is or will be,
    /// and for those of the engine itself, from now on.
    ///
    /// ```
    /// use perusal::events::{EventPayload, Event, EventSet, EventRecord, Registry};
    /// use std::sync::{Arc, mpsc};
    ///
    /// let registry = Registry::new(Box::new(|why| panic!("{why}")));
    /// let (sender, receiver) = mpsc::channel();
    /// let events = EventSet::PERUSE.with(Event::RingFull);
    /// let subscriber = Arc::new(move |record: &EventRecord<'_>| sender.send(record.event).unwrap());
    /// let subscription = registry.subscribe_globally(events, subscriber);
    ///
    /// // What the engine does when a ring is full:
    /// if registry.gate.is_open(Event::RingFull) {
    ///     registry.emit(&EventRecord::of_engine(Event::RingFull, EventPayload::Ring { peer: 3, waiting: 1 }));
    /// }
    /// assert_eq!(receiver.recv(), Ok(Event::RingFull));
    /// // A communicator that comes later is open to the subscriber from the beginning:
    /// assert!(registry.attach(0x101).gate.is_open(Event::MsgArrived));
    ///
    /// drop(subscription);
    /// assert!(!registry.gate.is_any_open());
    /// ```
    pub fn subscribe_globally(
        self: &Arc<Self>,
        events: EventSet,
        subscriber: Arc<dyn GlobalSubscriber>,
    ) -> GlobalSubscription {
        let handle = self
            .register_global(events, |handle| {
                OwnedCallback::new(self, handle, Callback::GlobalSubscriber(subscriber))
            })
            .ok();
        GlobalSubscription { registry: self.clone(), handle }
    }

    /// As [`subscribe_globally`](Self::subscribe_globally), for a listener of the library's own.
    pub(crate) fn listen_globally<L: Listener>(
        self: &Arc<Self>,
        events: EventSet,
        listener: L,
    ) -> GlobalSubscription {
        let handle =
            self.register_global(events, |handle| OwnedCallback::of_listener(self, handle, listener)).ok();
        GlobalSubscription { registry: self.clone(), handle }
    }
}

#[cfg(all(test, feature = "peruse", not(perusal_loom)))]
mod tests {
    use super::*;
    use crate::events::{
        Binding, CATALOG, Event, EventError, EventPayload, EventRecord, Handle, Operation, Spec,
    };
    use crate::limits::rounds;
    use crate::sync::{AtomicUsize, Mutex, Ordering};

    fn registry() -> Arc<Registry> {
        Registry::new(Box::new(|text| panic!("{text}")))
    }

    /// Keeps event and id of the records that it receives.
    #[derive(Default)]
    struct Collector(Mutex<Vec<(Event, isize)>>);

    impl GlobalSubscriber for Collector {
        fn on_event(&self, record: &EventRecord<'_>) {
            self.0.lock().unwrap().push((record.event, record.id));
        }
    }

    impl Collector {
        fn records(&self) -> Vec<(Event, isize)> {
            core::mem::take(&mut self.0.lock().unwrap())
        }
    }

    fn happen(comm: &crate::events::CommEvents, event: Event, id: isize) {
        if comm.gate.is_open(event) {
            comm.emit(&EventRecord::new(event, id, &Spec { operation: Operation::Recv, ..Spec::NOTHING }));
        }
    }

    #[test]
    fn a_subscriber_receives_every_communicator_those_before_and_those_to_come() {
        let registry = registry();
        let before = registry.attach(1);
        let collector = Arc::new(Collector::default());
        let subscription = registry.subscribe_globally(Event::MsgArrived.into(), collector.clone());
        let after = registry.attach(2);
        happen(&before, Event::MsgArrived, 10);
        happen(&after, Event::MsgArrived, 20);
        happen(&after, Event::ReqActivate, 30);
        assert_eq!(collector.records(), [(Event::MsgArrived, 10), (Event::MsgArrived, 20)]);
        drop(subscription);
        assert!(
            !before.gate.is_any_open() && !after.gate.is_any_open() && !registry.attach(3).gate.is_any_open()
        );
        before.emit(&EventRecord::new(Event::MsgArrived, 40, &Spec::NOTHING));
        assert_eq!(collector.records(), []);
        assert_eq!(Arc::strong_count(&collector), 1);
    }

    #[test]
    fn the_engines_own_events_have_a_gate_of_their_own() {
        let registry = registry();
        let comm = registry.attach(1);
        let collector = Arc::new(Collector::default());
        let subscription = registry.subscribe_globally(Event::RingFull.into(), collector.clone());
        assert!(registry.gate.is_open(Event::RingFull) && !registry.gate.is_open(Event::BellSleep));
        assert!(!comm.gate.is_any_open());
        registry.emit(&EventRecord::of_engine(Event::RingFull, EventPayload::Ring { peer: 1, waiting: 2 }));
        assert_eq!(collector.records(), [(Event::RingFull, 0)]);
        drop(subscription);
        assert!(!registry.gate.is_any_open());
    }

    #[test]
    fn every_event_is_delivered_exactly_once_to_every_subscriber_and_every_handle() {
        let registry = registry();
        let comm = registry.attach(1);
        let subscribers: Vec<_> = (0..3).map(|_| Arc::new(Collector::default())).collect();
        let _stay: Vec<_> = subscribers
            .iter()
            .map(|collector| registry.subscribe_globally(EventSet::ALL, collector.clone()))
            .collect();
        let by_handle = Arc::new(AtomicUsize::new(0));
        let _subscriptions: Vec<_> = EventSet::PERUSE
            .iter()
            .filter(|event| event.info().binding == Binding::Communicator)
            .map(|event| {
                let count = by_handle.clone();
                crate::events::Subscription::new(&comm, event, move |_| {
                    count.fetch_add(1, Ordering::Relaxed);
                })
                .unwrap()
            })
            .collect();
        let mut random = 1_u64;
        let mut emitted = Vec::new();
        for id in 0..rounds(5_000) as isize {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            // Those of communicators and of the engine.
            let event = Event::by_number((random >> 33) as i32 % 31 + 1).unwrap();
            let record = EventRecord::new(event, id, &Spec::NOTHING);
            match event.info().binding {
                crate::events::Binding::Communicator if comm.gate.is_open(event) => comm.emit(&record),
                crate::events::Binding::Nothing if registry.gate.is_open(event) => registry.emit(&record),
                _ => panic!("the gate of {event:?} is shut"),
            }
            emitted.push((event, id));
        }
        for collector in &subscribers {
            assert_eq!(collector.records(), emitted);
        }
        let for_handles = emitted.iter().filter(|(event, _)| event.is_peruse()).count();
        assert_eq!(by_handle.load(Ordering::Relaxed), for_handles);
    }

    #[test]
    fn windows_have_events_of_their_own_and_none_of_communicators() {
        let registry = registry();
        let (comm, win) = (registry.attach(1), registry.attach_window(2));
        let collector = Arc::new(Collector::default());
        let subscription = registry.subscribe_globally(EventSet::ALL, collector.clone());
        for row in &CATALOG {
            let open = (comm.gate.is_open(row.event), win.gate.is_open(row.event));
            assert_eq!(open, (row.binding == Binding::Communicator, row.binding == Binding::Window));
        }
        happen(&win, Event::WinReqComplete, 10);
        happen(&win, Event::MsgArrived, 20);
        assert_eq!(collector.records(), [(Event::WinReqComplete, 10)]);
        drop(subscription);
        assert!(!win.gate.is_any_open());
        let closure = || crate::events::Callback::Rust(Box::new(|_, _| {}));
        assert_eq!(registry.register(&win, Event::MsgArrived, closure()), Err(EventError::Event));
        assert_eq!(registry.register(&comm, Event::WinReqComplete, closure()), Err(EventError::Event));
        assert!(registry.register(&win, Event::WinReqComplete, closure()).is_ok());
    }

    #[test]
    fn a_subscriber_may_end_itself_while_it_runs() {
        let registry = registry();
        let comm = registry.attach(1);
        let own = Arc::new(Mutex::new(None::<GlobalSubscription>));
        let (ends, calls) = (own.clone(), Arc::new(AtomicUsize::new(0)));
        let count = calls.clone();
        let subscription = move |_: &EventRecord<'_>| {
            count.fetch_add(1, Ordering::Relaxed);
            drop(ends.lock().unwrap().take());
        };
        *own.lock().unwrap() = Some(registry.subscribe_globally(EventSet::ALL, Arc::new(subscription)));
        happen(&comm, Event::ReqActivate, 1);
        happen(&comm, Event::ReqActivate, 2);
        assert_eq!(calls.load(Ordering::Relaxed), 1);
        assert_eq!(Arc::strong_count(&calls), 1, "the subscriber is gone");
        assert!(!comm.gate.is_any_open());
    }

    #[test]
    fn a_subscribers_handle_cannot_be_guessed() {
        let registry = registry();
        let subscription = registry.subscribe_globally(EventSet::ALL, Arc::new(Collector::default()));
        let handle: Handle = subscription.handle().unwrap();
        assert_eq!(registry.release(handle), Err(EventError::Handle));
        assert_eq!(registry.deactivate(handle), Err(EventError::Handle));
        assert_eq!(registry.event(handle), Err(EventError::Handle));
        assert_eq!(registry.object(handle), Err(EventError::Handle));
        assert!(registry.gate.is_any_open());
    }

    #[test]
    fn a_freed_communicator_is_open_to_the_global_subscribers_that_it_had_and_to_no_later_ones() {
        let registry = registry();
        let comm = registry.attach(1);
        let collector = Arc::new(Collector::default());
        let first = registry.subscribe_globally(Event::ReqComplete.into(), collector.clone());
        registry.detach(&comm);
        happen(&comm, Event::ReqComplete, 10);
        assert_eq!(collector.records(), [(Event::ReqComplete, 10)]);
        let second = registry.subscribe_globally(EventSet::ALL, Arc::new(Collector::default()));
        assert!(!comm.gate.is_open(Event::ReqNotify));
        drop((first, second));
        assert!(!comm.gate.is_any_open());
    }

    #[test]
    fn communicators_that_are_gone_are_forgotten() {
        let registry = registry();
        for _ in 0..if cfg!(miri) { 130 } else { 1_000 } {
            let _ = registry.attach(1);
        }
        assert!(registry.known_communicators() < 100);
    }
}
