//! Dispatch on the first thread: to its hazard record by one comparison (`hazard::of_first_thread`), and to the only
//! listener without a walk.
//!
//! Run:   .ci/loom first_thread
//! Bound: interleavings of 2 threads with at most 3 preemptions, or 2 (LOOM_MAX_PREEMPTIONS raises both).
//! Time:  seven seconds on two cores, all models together.
//!
//! In each model the thread that emits is the one that had a hazard record first, and knows it before it emits:
//! [`first`] claims the record, and what is emitted afterwards finds it by the comparison. The control side runs on
//! another thread.
//!
//! Weakened: that only the first record's owner takes this path (3 models fail), that the list is walked when the only
//! listener has moved (4), that the hazard pointer is cleared then, that only the last listener gets the spec itself;
//! Release of `ListenerList::note_only` and Acquire of `ListEntry::holds`; and most of what `registry.rs` lists.
#![cfg(perusal_loom)]

use crate::support::tool::{EVENT, expecting_one, listening, reading, registry_and_world, tool_data};
use core::ffi::{c_int, c_long, c_void};
use loom::sync::atomic::{AtomicU32, Ordering};
use loom::thread;
use perusal::events::{
    Callback, CommEvents, CommSpec, EventPayload, EventRecord, Handle, Registry, Spec, Subscription,
    inside_callback,
};
use std::sync::Arc;

fn model(preemptions: usize, body: impl Fn() + Send + Sync + 'static) {
    perusal::model::check(preemptions, body);
}

/// The calling thread is the first from now on, unless another is.
fn first() {
    assert!(!inside_callback());
}

/// What an event site does.
fn happen(comm: &CommEvents) {
    if comm.gate.is_open(EVENT) {
        comm.emit_once(EVENT, 1, 6, EventPayload::None, Spec { peer: 3, tag: 4, ..Spec::NOTHING });
    }
}

/// A thread that is the first, and then does what an event site does.
fn first_dispatcher(world: &Arc<CommEvents>) -> thread::JoinHandle<()> {
    let world = world.clone();
    thread::spawn(move || {
        first();
        happen(&world);
    })
}

#[test]
fn after_release_the_tools_data_is_its_own_again() {
    model(3, || {
        let (registry, world) = registry_and_world();
        let data = tool_data();
        let handle = listening(&registry, &world, &data);
        let dispatcher = first_dispatcher(&world);
        registry.release(handle).unwrap();
        data.set(2);
        assert_eq!(Arc::strong_count(&data), 1, "the closure is dropped");
        dispatcher.join().unwrap();
    });
}

#[test]
fn a_callback_sees_what_was_written_before_activation() {
    model(3, || {
        let (registry, world) = registry_and_world();
        let data = tool_data();
        let handle = registry.register(&world, EVENT, expecting_one(&data)).unwrap();
        let dispatcher = first_dispatcher(&world);
        data.set(1);
        registry.activate(handle).unwrap();
        dispatcher.join().unwrap();
    });
}

#[test]
fn a_replaced_callback_is_not_read_any_more() {
    model(3, || {
        let (registry, world) = registry_and_world();
        let (old, new) = (tool_data(), tool_data());
        let handle = listening(&registry, &world, &old);
        let dispatcher = first_dispatcher(&world);
        registry.deactivate(handle).unwrap();
        registry.set_callback(handle, reading(&new)).unwrap();
        registry.activate(handle).unwrap();
        registry.release(handle).unwrap();
        old.set(9);
        new.set(9);
        dispatcher.join().unwrap();
    });
}

#[test]
fn a_lasting_listener_is_called_once_while_another_comes_and_goes() {
    model(3, || {
        let (_registry, world) = registry_and_world();
        let delivered = Arc::new(AtomicU32::new(0));
        let count = delivered.clone();
        let all_the_time =
            Subscription::new(&world, EVENT, move |_| _ = count.fetch_add(1, Ordering::Relaxed));
        let dispatcher = first_dispatcher(&world);
        drop(Subscription::new(&world, EVENT, |_| {}).unwrap());
        dispatcher.join().unwrap();
        assert_eq!(delivered.load(Ordering::Relaxed), 1);
        drop(all_the_time);
    });
}

#[test]
fn what_a_release_cannot_wait_for_is_settled_by_the_dispatch_that_was_inside() {
    model(3, || {
        let (registry, world) = registry_and_world();
        let data = tool_data();
        let handle = listening(&registry, &world, &data);
        let dispatcher = first_dispatcher(&world);
        // The owner of the lock does not wait.
        registry.lock().lock().unwrap();
        registry.release(handle).unwrap();
        registry.lock().unlock().unwrap();
        dispatcher.join().unwrap();
        assert_eq!(Arc::strong_count(&data), 1, "somebody has dropped the closure");
        data.set(2);
    });
}

#[test]
fn two_threads_that_ask_at_once_do_not_share_a_hazard_record() {
    model(2, || {
        let (registry, world) = registry_and_world();
        let step = AtomicU32::new(0);
        let closure = move |_: Handle, _: &EventRecord<'_>| {
            // The other one may clear its hazard pointer here.
            step.fetch_add(1, Ordering::Relaxed);
            assert!(inside_callback(), "this thread's hazard pointer is cleared by another");
        };
        let handle = registry.register(&world, EVENT, Callback::Rust(Box::new(closure))).unwrap();
        registry.activate(handle).unwrap();
        let threads = [(); 2].map(|()| {
            let theirs = world.clone();
            thread::spawn(move || {
                first();
                happen(&theirs);
            })
        });
        threads.into_iter().for_each(|thread| thread.join().unwrap());
    });
}

/// Finds the description as the site made it, and writes over it.
unsafe extern "C" fn scribbles(_: c_long, _: isize, spec: *mut CommSpec, delivered: *mut c_void) -> c_int {
    // SAFETY: as peruse_comm_callback_f is called: the description is there, and ours to write into for now.
    let spec = unsafe { &mut *spec };
    // SAFETY: a leaked counter, which lives as long as the process.
    let delivered = unsafe { &*delivered.cast::<AtomicU32>() };
    assert_eq!((spec.peer, spec.tag), (3, 4));
    (spec.peer, spec.tag, spec.operation) = (-1, -1, -1);
    delivered.fetch_add(1, Ordering::Relaxed);
    0
}

/// Has [`scribbles`] called from now on, with the counter at this address.
fn listen(registry: &Registry, world: &Arc<CommEvents>, delivered: usize) -> Handle {
    let callback =
        Callback::C { function: scribbles, param: core::ptr::with_exposed_provenance_mut(delivered) };
    let handle = registry.register(world, EVENT, callback).unwrap();
    registry.activate(handle).unwrap();
    handle
}

#[test]
fn a_function_that_writes_into_the_spec_spoils_it_for_nobody() {
    model(3, || {
        let (registry, world) = registry_and_world();
        let delivered = Box::into_raw(Box::new(AtomicU32::new(0)));
        let one = listen(&registry, &world, delivered.expose_provenance());
        let theirs = world.clone();
        let dispatcher = thread::spawn(move || {
            first();
            happen(&theirs);
            happen(&theirs);
        });
        // While it comes, the first may be the only one or not.
        let (registry_too, theirs, param) = (registry.clone(), world.clone(), delivered.expose_provenance());
        let other = thread::spawn(move || listen(&registry_too, &theirs, param));
        dispatcher.join().unwrap();
        for handle in [one, other.join().unwrap()] {
            registry.release(handle).unwrap();
        }
        // SAFETY: from the box above; whoever used it has been released.
        let delivered = unsafe { Box::from_raw(delivered) };
        assert!((2..=4).contains(&delivered.load(Ordering::Relaxed)));
    });
}
