//! Gate and registry against dispatch: what is published before activation is seen inside callbacks, and what a release
//! takes back is not touched again.
//!
//! Run:   .ci/loom registry
//! Bound: interleavings of 2 threads with at most 3 preemptions, or all where that is quick;
//!        of 3 threads that dispatch or control, those with 1
//!        (LOOM_MAX_PREEMPTIONS raises the bounds, that of 3 threads to 2).
//! Time:  seven seconds on two cores, all models together.
//!
//! Weakened, each of these makes at least one model fail (by an assertion, a data race, a deadlock or a fault; checked
//! by changing it alone, and running). Release of `Node::fill`, `ListenerList::put`, `ListenerTable::make`,
//! `SlotTable::grow`, `SlotState::open`, `HazardRecord::set`, `append` in `hazard`; of the event in `Registry::occupy`,
//! and of the callback in `Registry::replace`. Acquire of `ListEntry::holds`, `Node::next`, `ListenerTable::get`,
//! `SlotTable::get`, `SlotState::status`, `event_of`, `Protected::callback`, `HazardDomain::read` and `next`, and of an
//! `append` that comes second. (Release of `ListenerList::note_only` in `first_thread.rs`: here a thread that
//! dispatches for the first time walks the list.) The fence between publishing and looking, and the one after a
//! dispatch; `HazardDomain::heavy_fence`; `want` after that fence instead of before; the question at the end of a
//! dispatch; the second look at the list entry; the look at the hazard pointers in `settle`, and in
//! `Registry::replace`; the wake-up in `retire`; the wait in `end`. The hashed records left out of what the control
//! side reads; a record taken for one's own because it is anybody's. Of the dispatch to the only listener, in
//! `first_thread.rs` alone, where C functions are: a writable spec for all listeners instead of the last, and a hazard
//! pointer left set when the only listener has moved. Where only the fast path waits for a callback: the look at all
//! hazard pointers (`HazardDomain::idle`), and the fence after a dispatch.
//!
//! A callback's foreign data is `Plain`: loom fails a model in which two threads touch it without an edge between.
#![cfg(perusal_loom)]

use crate::support::Plain;
use crate::support::tool::{
    EVENT, closure, expecting_one, happens, listening, reading, registry_and_world, tool_data,
};
use loom::thread;
use perusal::events::{
    CommEvents, Event, EventError, EventRecord, EventSet, Handle, Subscription, inside_callback,
};
use perusal::internals::events::fast_path_is_open;
use std::sync::Arc;

/// One whose listener lists are made when somebody listens: in a model all but the first two.
const LATE: Event = Event::ReqInsertInPostedQ;

fn model(preemptions: Option<usize>, body: impl Fn() + Send + Sync + 'static) {
    let mut builder = loom::model::Builder::new();
    // None is every interleaving, which nothing raises.
    builder.preemption_bound = preemptions.map(|own| own.max(builder.preemption_bound.unwrap_or(0)));
    builder.check(body);
}

/// Three threads have so many orders that two preemptions take a minute, and more are not tried.
fn model_of_three(body: impl Fn() + Send + Sync + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(builder.preemption_bound.unwrap_or(1).clamp(1, 2));
    builder.check(body);
}

/// Does what a site of [`EVENT`] does.
fn happen(comm: &CommEvents) {
    happens(EVENT, comm);
}

fn dispatcher(world: &Arc<CommEvents>) -> thread::JoinHandle<()> {
    dispatcher_of(EVENT, world)
}

fn dispatcher_of(event: Event, world: &Arc<CommEvents>) -> thread::JoinHandle<()> {
    let world = world.clone();
    thread::spawn(move || happens(event, &world))
}

#[test]
fn a_callback_sees_what_was_written_before_activation() {
    model(None, || {
        let (registry, world) = registry_and_world();
        let data = tool_data();
        let handle = registry.register(&world, EVENT, expecting_one(&data)).unwrap();
        // The dispatcher is there before the write: only activation can publish it.
        let dispatcher = dispatcher(&world);
        data.set(1);
        registry.activate(handle).unwrap();
        dispatcher.join().unwrap();
    });
}

#[test]
fn so_it_does_in_a_list_that_was_not_there() {
    model(None, || {
        let (registry, world) = registry_and_world();
        let data = tool_data();
        let handle = registry.register(&world, LATE, expecting_one(&data)).unwrap();
        let dispatcher = dispatcher_of(LATE, &world);
        data.set(1);
        registry.activate(handle).unwrap();
        dispatcher.join().unwrap();
    });
}

#[test]
fn so_it_does_behind_a_listener_that_stays() {
    for has_node in [false, true] {
        model(Some(3), move || {
            let (registry, world) = registry_and_world();
            let data = tool_data();
            let stays = registry.register(&world, EVENT, closure(|_, _| {})).unwrap();
            registry.activate(stays).unwrap();
            let comes = registry.register(&world, EVENT, expecting_one(&data)).unwrap();
            if has_node {
                // The node that it leaves behind is used again.
                registry.activate(comes).unwrap();
                registry.deactivate(comes).unwrap();
            }
            let dispatcher = dispatcher(&world);
            data.set(1);
            registry.activate(comes).unwrap();
            dispatcher.join().unwrap();
        });
    }
}

#[test]
fn after_release_the_tools_data_is_its_own_again() {
    model(Some(3), || {
        let (registry, world) = registry_and_world();
        let data = tool_data();
        let handle = listening(&registry, &world, &data);
        let dispatcher = dispatcher(&world);
        registry.release(handle).unwrap();
        data.set(2);
        assert_eq!(Arc::strong_count(&data), 1, "the closure is dropped");
        dispatcher.join().unwrap();
    });
}

#[test]
fn release_waits_for_the_last_of_two_dispatchers() {
    model_of_three(|| {
        let (registry, world) = registry_and_world();
        let data = tool_data();
        let handle = listening(&registry, &world, &data);
        let dispatchers = [dispatcher(&world), dispatcher(&world)];
        registry.release(handle).unwrap();
        data.set(2);
        assert_eq!(Arc::strong_count(&data), 1);
        dispatchers.into_iter().for_each(|d| d.join().unwrap());
    });
}

#[test]
fn release_waits_for_threads_whose_hazard_records_are_made_for_them() {
    model(Some(3), || {
        // These two keep the records that are there.
        (0..2).for_each(|_| thread::spawn(|| assert!(!inside_callback())).join().unwrap());
        let (registry, world) = registry_and_world();
        let data = tool_data();
        let handle = listening(&registry, &world, &data);
        let dispatcher = dispatcher(&world);
        happen(&world);
        registry.release(handle).unwrap();
        data.set(2);
        dispatcher.join().unwrap();
    });
}

#[test]
fn a_handle_released_inside_its_callback_is_retired_once_by_the_last_one_out() {
    model(Some(3), || {
        let (registry, world) = registry_and_world();
        let owned = Arc::new(());
        let (inside, kept) = (registry.clone(), owned.clone());
        let releasing = move |handle: Handle, _: &EventRecord<'_>| {
            // Two dispatchers may be inside at once; the first of them releases.
            let _ = inside.release(handle);
            assert!(Arc::strong_count(&kept) == 2, "what the running closure owns is there");
        };
        let handle = registry.register(&world, EVENT, closure(releasing)).unwrap();
        registry.activate(handle).unwrap();
        let other = dispatcher(&world);
        happen(&world);
        other.join().unwrap();
        assert_eq!(Arc::strong_count(&owned), 1);
        assert_eq!(registry.release(handle), Err(EventError::Handle));
        // The slot came back once: of two new handles one has another slot.
        let [a, b] = [(); 2].map(|()| registry.register(&world, EVENT, closure(|_, _| {})).unwrap());
        assert_ne!(a.raw() as u32, b.raw() as u32);
        assert!([a, b].iter().any(|h| h.raw() as u32 == handle.raw() as u32));
    });
}

#[test]
fn a_dispatcher_with_a_stale_handle_does_not_reach_the_slots_next_owner() {
    model(Some(3), || {
        let (registry, world) = registry_and_world();
        let data = tool_data();
        let old = listening(&registry, &world, &data);
        let dispatcher = dispatcher(&world);
        registry.release(old).unwrap();
        data.set(2);
        let other = closure(|_, record| panic!("{:?} is not this handle's event", record.event));
        let new = registry.register(&world, Event::ReqNotify, other).unwrap();
        assert_eq!(old.raw() as u32, new.raw() as u32, "the same slot");
        registry.activate(new).unwrap();
        dispatcher.join().unwrap();
    });
}

#[test]
fn a_replaced_callback_is_dropped_only_when_nobody_is_inside() {
    /// Dropped together with the closure that owns it; loom sees the drop as a write.
    struct Owned(Arc<Plain<u32>>);
    impl Drop for Owned {
        fn drop(&mut self) {
            self.0.set(9);
        }
    }
    model(Some(3), || {
        let (registry, world) = registry_and_world();
        let data = [tool_data(), tool_data()];
        let [old, new] = [0, 1].map(|i| {
            let owned = Owned(data[i].clone());
            closure(move |_, _| assert_eq!(owned.0.get(), 0))
        });
        let handle = registry.register(&world, EVENT, old).unwrap();
        registry.activate(handle).unwrap();
        let dispatcher = dispatcher(&world);
        registry.deactivate(handle).unwrap();
        // Published by the new callback alone, to a dispatch that is about to call the old one.
        data[1].set(0);
        registry.set_callback(handle, new).unwrap();
        registry.activate(handle).unwrap();
        registry.release(handle).unwrap();
        assert_eq!(data.map(|d| d.get()), [9, 9]);
        dispatcher.join().unwrap();
    });
}

#[test]
fn detach_propagate_and_dispatch_on_the_duplicate_race_freely() {
    model(Some(3), || {
        let (registry, world) = registry_and_world();
        let copy = registry.attach(2);
        let data = tool_data();
        let handle = registry.register(&world, EVENT, reading(&data)).unwrap();
        registry.set_propagation(handle, true).unwrap();
        registry.activate(handle).unwrap();
        let dispatcher = dispatcher(&copy);
        registry.propagate(&world, &copy);
        registry.detach(&world);
        assert_eq!(registry.release(handle), Err(EventError::Object));
        data.set(2);
        dispatcher.join().unwrap();
    });
}

#[test]
fn a_stale_handle_never_shows_the_next_owners_event() {
    model(None, || {
        let (registry, world) = registry_and_world();
        let old = registry.register(&world, EVENT, closure(|_, _| {})).unwrap();
        // On a thread of its own, for the fence of a release publishes what its thread stores afterwards.
        let released = registry.clone();
        let releasing = thread::spawn(move || released.release(old).unwrap());
        let asked = registry.clone();
        let asking = thread::spawn(move || asked.event(old));
        releasing.join().unwrap();
        let new = registry.register(&world, Event::ReqNotify, closure(|_, _| {})).unwrap();
        assert_eq!(old.raw() as u32, new.raw() as u32, "the same slot");
        assert_ne!(asking.join().unwrap(), Ok(Event::ReqNotify));
    });
}

#[test]
fn a_guessed_handle_never_shows_the_event_of_the_owner_before() {
    model(None, || {
        let (registry, world) = registry_and_world();
        let old = registry.register(&world, EVENT, closure(|_, _| {})).unwrap();
        registry.release(old).unwrap();
        let guess = Handle::from_raw(2 << 32 | old.raw() as u32 as i64).unwrap();
        let asked = registry.clone();
        let asking = thread::spawn(move || asked.event(guess));
        let new = registry.register(&world, LATE, closure(|_, _| {})).unwrap();
        assert_eq!(new, guess);
        let answer = asking.join().unwrap();
        assert!(matches!(answer, Err(EventError::Handle) | Ok(LATE)), "{answer:?}");
    });
}

#[test]
fn a_guessed_handle_meets_a_whole_slot_or_none() {
    model(None, || {
        let (registry, world) = registry_and_world();
        let asked = registry.clone();
        let first = Handle::from_raw(1 << 32 | 1).unwrap();
        let asking = thread::spawn(move || asked.event(first));
        let handle = registry.register(&world, EVENT, closure(|_, _| {})).unwrap();
        assert_eq!(handle, first);
        let answer = asking.join().unwrap();
        assert!(matches!(answer, Err(EventError::Handle) | Ok(EVENT)), "{answer:?}");
    });
}

#[test]
fn what_a_release_cannot_wait_for_is_retired_by_the_pass_that_was_inside() {
    model(Some(3), || {
        let (registry, world) = registry_and_world();
        let data = tool_data();
        let used = data.clone();
        let subscription = Subscription::new(&world, EVENT, move |_| _ = used.get()).unwrap();
        let dispatcher = dispatcher(&world);
        // The owner of the lock does not wait.
        registry.lock().lock().unwrap();
        drop(subscription);
        registry.lock().unlock().unwrap();
        dispatcher.join().unwrap();
        assert_eq!(Arc::strong_count(&data), 1, "somebody has dropped the closure");
        data.set(2);
        assert!(!world.gate.is_any_open());
    });
}

#[test]
fn a_dropped_global_subscription_leaves_its_data_alone_and_receives_from_a_communicator_that_comes() {
    model(Some(3), || {
        let (registry, world) = registry_and_world();
        let data = tool_data();
        let used = data.clone();
        let subscription = registry
            .subscribe_globally(EventSet::from(EVENT), Arc::new(move |_: &EventRecord<'_>| _ = used.get()));
        let dispatcher = dispatcher(&world);
        let late = registry.attach(2);
        assert!(late.gate.is_open(EVENT));
        happen(&late);
        drop(subscription);
        data.set(2);
        assert_eq!(Arc::strong_count(&data), 1);
        assert!(!late.gate.is_any_open());
        dispatcher.join().unwrap();
    });
}

#[test]
fn two_threads_register_and_release_while_a_third_raises() {
    model_of_three(|| {
        let (_registry, world) = registry_and_world();
        let dispatcher = dispatcher(&world);
        let theirs = world.clone();
        let other = thread::spawn(move || register_and_release(&theirs));
        register_and_release(&world);
        other.join().unwrap();
        dispatcher.join().unwrap();
        assert!(!world.gate.is_any_open());
    });
}

/// Listens for a while with data that is written before and after.
fn register_and_release(world: &Arc<CommEvents>) {
    let data = tool_data();
    let used = data.clone();
    data.set(1);
    let subscription = Subscription::new(world, EVENT, move |_| assert_eq!(used.get(), 1)).unwrap();
    drop(subscription);
    data.set(2);
    assert_eq!(Arc::strong_count(&data), 1);
}

#[test]
fn the_fast_path_opens_only_when_the_callbacks_behind_a_shut_gate_are_over_and_then_it_does() {
    model(Some(3), || {
        let (registry, world) = registry_and_world();
        let refused = closure(|_, _| assert!(!fast_path_is_open(), "open while a callback runs"));
        let handle = registry.register(&world, EVENT, refused).unwrap();
        assert!(fast_path_is_open());
        registry.activate(handle).unwrap();
        let dispatcher = dispatcher(&world);
        // It does not wait for callbacks.
        registry.deactivate(handle).unwrap();
        dispatcher.join().unwrap();
        assert!(fast_path_is_open(), "nobody has given it back");
    });
}
