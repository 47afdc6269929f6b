//! Every rule of handles, a test each. Callbacks count into atomics; the fatal hook stores the texts that it gets.

use super::*;
use crate::limits::rounds;
use crate::sync::{AtomicI64, AtomicUsize, Mutex, Ordering};
use crate::variables::Category;
use core::ffi::{c_int, c_long, c_void};
use std::sync::Arc;
use std::sync::mpsc;

const WORLD: usize = 0x101;

struct Bench {
    registry: Arc<Registry>,
    world: Arc<CommEvents>,
    fatal: Arc<Mutex<Vec<String>>>,
}

fn bench() -> Bench {
    let fatal = Arc::new(Mutex::new(Vec::new()));
    let texts = fatal.clone();
    let registry = Registry::new(Box::new(move |text| texts.lock().unwrap().push(text)));
    let world = registry.attach(WORLD);
    Bench { registry, world, fatal }
}

fn spec(comm: usize) -> Spec {
    Spec {
        comm,
        buf: core::ptr::null_mut(),
        count: 1,
        datatype: 2,
        peer: 3,
        tag: 4,
        operation: Operation::Send,
        bytes: 0,
    }
}

/// What an event site does.
fn happen(comm: &CommEvents, event: Event) {
    if comm.gate.is_open(event) {
        comm.emit(&EventRecord::new(event, 7, &spec(comm.comm())));
    }
}

unsafe extern "C" fn count(_: c_long, _: isize, _: *mut CommSpec, param: *mut c_void) -> c_int {
    // SAFETY: the tests pass a live AtomicUsize that outlives the handle.
    unsafe { &*param.cast::<AtomicUsize>() }.fetch_add(1, Ordering::Relaxed);
    0
}

unsafe extern "C" fn fail(_: c_long, _: isize, _: *mut CommSpec, _: *mut c_void) -> c_int {
    17
}

fn counting(counter: &AtomicUsize) -> Callback {
    Callback::C { function: count, param: core::ptr::from_ref(counter).cast_mut().cast() }
}

fn calls(counter: &AtomicUsize) -> usize {
    counter.load(Ordering::Relaxed)
}

#[test]
fn a_callback_runs_while_its_window_is_open_and_only_then() {
    let Bench { registry, world, .. } = bench();
    let seen = AtomicUsize::new(0);
    let handle = registry.register(&world, Event::ReqActivate, counting(&seen)).unwrap();
    happen(&world, Event::ReqActivate);
    assert_eq!(calls(&seen), 0, "registered is not active");
    registry.activate(handle).unwrap();
    registry.activate(handle).unwrap();
    happen(&world, Event::ReqActivate);
    happen(&world, Event::ReqNotify);
    assert_eq!(calls(&seen), 1);
    registry.deactivate(handle).unwrap();
    registry.deactivate(handle).unwrap();
    assert!(!world.gate.is_any_open());
    world.emit(&EventRecord::new(Event::ReqActivate, 7, &spec(WORLD)));
    assert_eq!(calls(&seen), 1, "even past the gate");
}

#[test]
fn the_callback_receives_handle_id_spec_and_param() {
    type Received = (i64, isize, [i64; 7], usize);
    static RECEIVED: Mutex<Vec<Received>> = Mutex::new(Vec::new());
    unsafe extern "C" fn store(h: c_long, id: isize, spec: *mut CommSpec, param: *mut c_void) -> c_int {
        // SAFETY: dispatch passes a live spec.
        let s = unsafe { *spec };
        let fields = [
            s.comm as i64,
            s.buf as i64,
            s.count.into(),
            s.datatype as i64,
            s.peer.into(),
            s.tag.into(),
            s.operation.into(),
        ];
        RECEIVED.lock().unwrap().push((h, id, fields, param as usize));
        0
    }
    let Bench { registry, world, .. } = bench();
    let callback = Callback::C { function: store, param: core::ptr::without_provenance_mut(0x77) };
    let handle = registry.register(&world, Event::MsgArrived, callback).unwrap();
    registry.activate(handle).unwrap();
    let what = Spec {
        comm: 5,
        buf: core::ptr::without_provenance_mut(6),
        count: 7,
        datatype: 8,
        peer: -1,
        tag: 10,
        operation: Operation::Recv,
        bytes: 0,
    };
    world.emit(&EventRecord::new(Event::MsgArrived, -44, &what));
    let received = RECEIVED.lock().unwrap();
    assert_eq!(*received, [(handle.raw(), -44, [5, 6, 7, 8, -1, 10, 1], 0x77)]);
}

#[test]
fn several_handles_of_one_event_have_windows_of_their_own() {
    let Bench { registry, world, .. } = bench();
    let seen: Vec<_> = (0..40).map(|_| AtomicUsize::new(0)).collect();
    let handles: Vec<_> =
        seen.iter().map(|s| registry.register(&world, Event::ReqComplete, counting(s)).unwrap()).collect();
    for (index, handle) in handles.iter().enumerate() {
        assert!(!handles[index + 1..].contains(handle), "handles are distinct");
        registry.activate(*handle).unwrap();
    }
    happen(&world, Event::ReqComplete);
    for handle in handles.iter().step_by(2) {
        registry.deactivate(*handle).unwrap();
    }
    happen(&world, Event::ReqComplete);
    for handle in handles.iter().step_by(2) {
        registry.release(*handle).unwrap();
    }
    happen(&world, Event::ReqComplete);
    for (index, counter) in seen.iter().enumerate() {
        assert_eq!(calls(counter), if index % 2 == 0 { 1 } else { 3 });
    }
}

#[test]
fn the_gate_is_open_exactly_while_some_window_is() {
    let Bench { registry, world, .. } = bench();
    let seen = AtomicUsize::new(0);
    let one = registry.register(&world, Event::ReqNotify, counting(&seen)).unwrap();
    let two = registry.register(&world, Event::ReqNotify, counting(&seen)).unwrap();
    let gate = || (world.gate.is_open(Event::ReqNotify), world.gate.is_any_open());
    assert_eq!(gate(), (false, false));
    registry.activate(one).unwrap();
    registry.activate(two).unwrap();
    registry.deactivate(one).unwrap();
    assert_eq!(gate(), (true, true));
    assert!(!world.gate.is_open(Event::ReqActivate));
    registry.release(two).unwrap();
    assert_eq!(gate(), (false, false));
    registry.activate(one).unwrap();
    registry.detach(&world);
    assert_eq!(gate(), (false, false));
}

#[test]
fn a_released_handle_is_refused_by_everything_also_when_its_slot_is_used_again() {
    let Bench { registry, world, .. } = bench();
    let (old_seen, seen) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let old = registry.register(&world, Event::ReqActivate, counting(&old_seen)).unwrap();
    registry.activate(old).unwrap();
    registry.release(old).unwrap();
    let new = registry.register(&world, Event::ReqNotify, counting(&seen)).unwrap();
    assert_eq!(new.index(), old.index(), "the slot is used again");
    let stale = Err(EventError::Handle);
    assert_eq!(registry.activate(old), stale);
    assert_eq!(registry.deactivate(old), stale);
    assert_eq!(registry.release(old), stale);
    assert_eq!(registry.event(old), Err(EventError::Handle));
    assert_eq!(registry.object(old), Err(EventError::Handle));
    assert_eq!(registry.callback(old).err(), Some(EventError::Handle));
    assert_eq!(registry.set_callback(old, counting(&seen)), stale);
    assert_eq!(registry.set_propagation(old, true), stale);
    assert_eq!(registry.event(new), Ok(Event::ReqNotify));
}

#[test]
fn numbers_that_are_no_handles_are_refused() {
    let Bench { registry, world, .. } = bench();
    let seen = AtomicUsize::new(0);
    let handle = registry.register(&world, Event::ReqActivate, counting(&seen)).unwrap();
    assert_eq!(Handle::from_raw(0), None);
    assert!(handle.raw() > 0);
    for raw in
        [1, -1, i64::MIN, i64::MAX, handle.raw() + 1, handle.raw() ^ 1 << 40, handle.raw() & !0xffff_ffff]
    {
        let wrong = Handle::from_raw(raw).unwrap();
        assert_eq!(registry.activate(wrong), Err(EventError::Handle), "{raw:#x}");
        assert_eq!(registry.release(wrong), Err(EventError::Handle), "{raw:#x}");
        assert_eq!(registry.event(wrong), Err(EventError::Handle), "{raw:#x}");
    }
}

#[test]
fn the_callback_can_be_replaced_only_while_the_handle_is_inactive() {
    let Bench { registry, world, .. } = bench();
    let (first, second) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let handle = registry.register(&world, Event::ReqActivate, counting(&first)).unwrap();
    registry.activate(handle).unwrap();
    assert_eq!(registry.set_callback(handle, counting(&second)), Err(EventError::Handle));
    let Some(CFunction::Comm(_, param)) = registry.callback(handle).unwrap() else { panic!("a C function") };
    assert_eq!(param.cast_const().cast(), core::ptr::from_ref(&first), "readable while active");
    registry.deactivate(handle).unwrap();
    registry.set_callback(handle, counting(&second)).unwrap();
    registry.activate(handle).unwrap();
    happen(&world, Event::ReqActivate);
    assert_eq!((calls(&first), calls(&second)), (0, 1));
}

#[test]
fn a_handle_dies_with_its_communicator_and_can_still_be_released() {
    let Bench { registry, world, .. } = bench();
    let seen = AtomicUsize::new(0);
    let comm = registry.attach(0x5000);
    let handle = registry.register(&comm, Event::ReqActivate, counting(&seen)).unwrap();
    let other = registry.register(&world, Event::ReqActivate, counting(&seen)).unwrap();
    registry.activate(handle).unwrap();
    registry.detach(&comm);
    comm.emit(&EventRecord::new(Event::ReqActivate, 7, &spec(0x5000)));
    assert_eq!(calls(&seen), 0);
    let dead = Err(EventError::Object);
    assert_eq!(registry.activate(handle), dead);
    assert_eq!(registry.deactivate(handle), dead);
    assert_eq!(registry.set_propagation(handle, true), dead);
    assert_eq!(registry.set_callback(handle, counting(&seen)), dead);
    assert_eq!(registry.callback(handle).err(), Some(EventError::Object));
    assert_eq!(registry.event(handle), Err(EventError::Object));
    assert_eq!(registry.object(handle), Err(EventError::Object));
    assert_eq!(registry.release(handle), dead, "an error, and the handle is released");
    assert_eq!(registry.release(handle), Err(EventError::Handle));
    assert_eq!(registry.register(&comm, Event::ReqActivate, counting(&seen)), Err(EventError::Comm));
    assert_eq!(registry.object(other), Ok(WORLD), "others live on");
}

#[test]
fn a_handle_whose_communicator_was_dropped_is_dead_too() {
    let Bench { registry, .. } = bench();
    let seen = AtomicUsize::new(0);
    let comm = registry.attach(0x5000);
    let handle = registry.register(&comm, Event::ReqActivate, counting(&seen)).unwrap();
    registry.detach(&comm);
    drop(comm);
    assert_eq!(registry.object(handle), Err(EventError::Object));
    assert_eq!(registry.release(handle), Err(EventError::Object));
}

#[test]
fn propagation_carries_handle_and_window_to_duplicates() {
    let Bench { registry, world, .. } = bench();
    let (on, off, shut) = (AtomicUsize::new(0), AtomicUsize::new(0), AtomicUsize::new(0));
    let carried = registry.register(&world, Event::ReqActivate, counting(&on)).unwrap();
    let left = registry.register(&world, Event::ReqActivate, counting(&off)).unwrap();
    let inactive = registry.register(&world, Event::ReqActivate, counting(&shut)).unwrap();
    registry.set_propagation(carried, true).unwrap();
    registry.set_propagation(inactive, true).unwrap();
    registry.activate(carried).unwrap();
    registry.activate(left).unwrap();
    assert_eq!(registry.set_propagation(carried, false), Err(EventError::Handle), "only while inactive");
    let copy = registry.attach(0x6000);
    registry.propagate(&world, &copy);
    let copy_of_copy = registry.attach(0x7000);
    registry.propagate(&copy, &copy_of_copy);
    for comm in [&world, &copy, &copy_of_copy] {
        happen(comm, Event::ReqActivate);
    }
    assert_eq!((calls(&on), calls(&off), calls(&shut)), (3, 1, 0));
    assert_eq!(registry.object(carried), Ok(WORLD), "the communicator it was registered with");
    registry.activate(inactive).unwrap();
    registry.deactivate(carried).unwrap();
    happen(&copy, Event::ReqActivate);
    assert_eq!((calls(&on), calls(&shut)), (3, 1), "one window for all of them");
}

#[test]
fn propagation_switched_off_leaves_what_was_propagated() {
    let Bench { registry, world, .. } = bench();
    let seen = AtomicUsize::new(0);
    let handle = registry.register(&world, Event::ReqActivate, counting(&seen)).unwrap();
    registry.set_propagation(handle, true).unwrap();
    let first = registry.attach(0x6000);
    registry.propagate(&world, &first);
    registry.set_propagation(handle, false).unwrap();
    let second = registry.attach(0x7000);
    registry.propagate(&world, &second);
    registry.activate(handle).unwrap();
    happen(&first, Event::ReqActivate);
    happen(&second, Event::ReqActivate);
    assert_eq!(calls(&seen), 1);
}

#[test]
fn a_freed_duplicate_leaves_the_handle_and_a_freed_original_takes_it_along() {
    let Bench { registry, .. } = bench();
    let seen = AtomicUsize::new(0);
    let original = registry.attach(0x5000);
    let handle = registry.register(&original, Event::ReqActivate, counting(&seen)).unwrap();
    registry.set_propagation(handle, true).unwrap();
    registry.activate(handle).unwrap();
    let [one, two] = [0x6000, 0x7000].map(|comm| {
        let copy = registry.attach(comm);
        registry.propagate(&original, &copy);
        copy
    });
    registry.detach(&one);
    one.emit(&EventRecord::new(Event::ReqActivate, 7, &spec(0x6000)));
    assert_eq!(calls(&seen), 0);
    happen(&original, Event::ReqActivate);
    happen(&two, Event::ReqActivate);
    assert_eq!(calls(&seen), 2);
    registry.detach(&original);
    assert!(!two.gate.is_any_open());
    two.emit(&EventRecord::new(Event::ReqActivate, 7, &spec(0x7000)));
    assert_eq!(calls(&seen), 2);
    assert_eq!(registry.release(handle), Err(EventError::Object));
}

#[test]
fn a_non_success_return_is_fatal_and_names_the_callback() {
    let Bench { registry, world, fatal } = bench();
    // One pointer: a function may have several addresses.
    let function: CommCallback = fail;
    let callback = Callback::C { function, param: core::ptr::null_mut() };
    let handle = registry.register(&world, Event::ReqXferBegin, callback).unwrap();
    registry.activate(handle).unwrap();
    happen(&world, Event::ReqXferBegin);
    let fatal = fatal.lock().unwrap();
    let [text] = &fatal[..] else { panic!("one report, not {fatal:?}") };
    let address = format!("{:#x}", function as usize);
    for part in ["PERUSE_COMM_REQ_XFER_BEGIN", &format!("{:#x}", handle.raw()), &address, "returned 17"] {
        assert!(text.contains(part), "{part} is missing in {text}");
    }
}

#[test]
fn a_closure_that_panics_is_fatal_and_leaves_the_handle_in_order() {
    let Bench { registry, world, fatal } = bench();
    let subscription = Subscription::new(&world, Event::ReqNotify, |_| panic!("on purpose")).unwrap();
    happen(&world, Event::ReqNotify);
    assert!(fatal.lock().unwrap()[0].contains("panicked"));
    assert!(!inside_callback());
    let handle = subscription.handle();
    drop(subscription);
    assert_eq!(registry.release(handle), Err(EventError::Handle));
}

#[test]
fn a_subscription_listens_until_it_is_dropped_and_drops_its_closure_then() {
    let Bench { world, .. } = bench();
    let seen = Arc::new(AtomicI64::new(0));
    let inside = seen.clone();
    let subscription = Subscription::new(&world, Event::ReqActivate, move |what| {
        assert!(inside_callback());
        assert_eq!((what.event, what.id, what.spec.peer), (Event::ReqActivate, 7, 3));
        inside.fetch_add(1, Ordering::Relaxed);
    })
    .unwrap();
    happen(&world, Event::ReqActivate);
    subscription.pause().unwrap();
    happen(&world, Event::ReqActivate);
    subscription.resume().unwrap();
    happen(&world, Event::ReqActivate);
    drop(subscription);
    happen(&world, Event::ReqActivate);
    assert_eq!(seen.load(Ordering::Relaxed), 2);
    assert_eq!(Arc::strong_count(&seen), 1, "the closure has been dropped");
}

#[test]
fn a_release_from_inside_the_callback_takes_effect_when_it_returns() {
    let Bench { registry, world, .. } = bench();
    let owned = Arc::new(());
    let (inside, mine) = (registry.clone(), owned.clone());
    let releasing = move |handle: Handle, _: &EventRecord<'_>| {
        assert_eq!(inside.release(handle), Ok(()));
        assert_eq!(inside.release(handle), Err(EventError::Handle));
        assert_eq!(Arc::strong_count(&mine), 2, "the running closure still owns it");
    };
    let handle = registry.register(&world, Event::ReqActivate, Callback::Rust(Box::new(releasing))).unwrap();
    registry.activate(handle).unwrap();
    happen(&world, Event::ReqActivate);
    assert_eq!(Arc::strong_count(&owned), 1);
    assert!(!world.gate.is_any_open());
    let seen = AtomicUsize::new(0);
    let next = registry.register(&world, Event::ReqActivate, counting(&seen)).unwrap();
    assert_eq!(next.index(), handle.index(), "the slot came back");
}

#[test]
fn release_waits_for_a_callback_on_another_thread() {
    let Bench { registry, world, .. } = bench();
    let (entered, has_entered) = mpsc::channel();
    let (leave, may_leave) = mpsc::channel::<()>();
    let may_leave = Mutex::new(may_leave);
    let finished = Arc::new(AtomicUsize::new(0));
    let ends = finished.clone();
    let slow = move |_: Handle, _: &EventRecord<'_>| {
        entered.send(()).unwrap();
        may_leave.lock().unwrap().recv().unwrap();
        ends.store(1, Ordering::Relaxed);
    };
    let handle = registry.register(&world, Event::ReqActivate, Callback::Rust(Box::new(slow))).unwrap();
    registry.activate(handle).unwrap();
    let dispatcher = std::thread::spawn(move || happen(&world, Event::ReqActivate));
    has_entered.recv().unwrap();
    registry.deactivate(handle).unwrap();
    assert_eq!(finished.load(Ordering::Relaxed), 0, "deactivate does not wait");
    let releaser = {
        let (registry, finished) = (registry.clone(), finished.clone());
        std::thread::spawn(move || {
            registry.release(handle).unwrap();
            finished.load(Ordering::Relaxed)
        })
    };
    // Released for everybody else as soon as `release` has begun, though it has not returned.
    while registry.event(handle).is_ok() {
        std::thread::yield_now();
    }
    assert!(!releaser.is_finished());
    leave.send(()).unwrap();
    assert_eq!(releaser.join().unwrap(), 1, "release returned before the callback did");
    dispatcher.join().unwrap();
}

#[test]
fn the_owner_of_the_lock_releases_without_waiting_for_a_callback_that_waits_for_the_lock() {
    let Bench { registry, world, .. } = bench();
    let (entered, has_entered) = mpsc::channel();
    let inside = registry.clone();
    let locking = move |_: Handle, _: &EventRecord<'_>| {
        entered.send(()).unwrap();
        inside.lock().lock().unwrap();
        inside.lock().unlock().unwrap();
    };
    let handle = registry.register(&world, Event::ReqActivate, Callback::Rust(Box::new(locking))).unwrap();
    registry.activate(handle).unwrap();
    registry.lock().lock().unwrap();
    let dispatcher = std::thread::spawn(move || happen(&world, Event::ReqActivate));
    has_entered.recv().unwrap();
    registry.release(handle).unwrap();
    registry.lock().unlock().unwrap();
    dispatcher.join().unwrap();
    assert_eq!(registry.event(handle), Err(EventError::Handle));
}

#[test]
fn callbacks_may_ask_about_handles_and_change_others() {
    let Bench { registry, world, fatal } = bench();
    let seen = AtomicUsize::new(0);
    let other = registry.register(&world, Event::ReqNotify, counting(&seen)).unwrap();
    let inside = registry.clone();
    let asking = move |handle: Handle, _: &EventRecord<'_>| {
        assert_eq!(inside.event(handle), Ok(Event::ReqActivate));
        assert_eq!(inside.object(handle), Ok(WORLD));
        assert!(inside.callback(handle).unwrap().is_none());
        inside.activate(other).unwrap();
    };
    let asks = registry.register(&world, Event::ReqActivate, Callback::Rust(Box::new(asking))).unwrap();
    registry.activate(asks).unwrap();
    happen(&world, Event::ReqActivate);
    happen(&world, Event::ReqNotify);
    assert!(fatal.lock().unwrap().is_empty());
    assert_eq!(calls(&seen), 1);
}

#[test]
fn handles_come_and_go_by_the_thousand_without_growth() {
    let Bench { registry, world, .. } = bench();
    let seen = AtomicUsize::new(0);
    let mut highest = 0;
    for round in 0..rounds(10_000) {
        let handle = registry.register(&world, Event::ReqActivate, counting(&seen)).unwrap();
        registry.activate(handle).unwrap();
        if round % 100 == 0 {
            happen(&world, Event::ReqActivate);
        }
        highest = highest.max(handle.index());
        registry.release(handle).unwrap();
    }
    assert_eq!((highest, calls(&seen)), (0, rounds(10_000).div_ceil(100)));
}

#[test]
fn the_control_side_races_dispatch_freely() {
    race(bench());
}

#[test]
fn the_control_side_races_dispatch_freely_where_the_kernel_has_no_membarrier() {
    let bench = bench();
    bench.registry.alone.store(true, Ordering::Relaxed);
    race(bench);
}

fn race(Bench { world, fatal, .. }: Bench) {
    const ROUNDS: usize = rounds(2_000);
    let stop = Arc::new(crate::sync::AtomicBool::new(false));
    let dispatchers: Vec<_> = (0..2)
        .map(|_| {
            let (world, stop) = (world.clone(), stop.clone());
            std::thread::spawn(move || {
                while !stop.load(Ordering::Relaxed) {
                    happen(&world, Event::ReqActivate);
                }
            })
        })
        .collect();
    for _ in 0..ROUNDS {
        let released = Arc::new(crate::sync::AtomicBool::new(false));
        let check = released.clone();
        let subscription = Subscription::new(&world, Event::ReqActivate, move |_| {
            assert!(!check.load(Ordering::Relaxed), "a callback ran after release had returned");
        })
        .unwrap();
        subscription.pause().unwrap();
        subscription.resume().unwrap();
        drop(subscription);
        released.store(true, Ordering::Relaxed);
    }
    stop.store(true, Ordering::Relaxed);
    dispatchers.into_iter().for_each(|t| t.join().unwrap());
    assert!(fatal.lock().unwrap().is_empty(), "{:?}", fatal.lock().unwrap());
}

/// A table of 320 event types, those of the first 300 of communicators, the rest of the engine.
fn large_table() -> &'static [EventInfo] {
    let event_type = |number: u16| EventInfo {
        event: Event::new(number),
        name: c"TEST_EVENT",
        aliases: &[],
        peruse: None,
        description: "a test",
        identity: Identity::Nothing,
        fires: "in a test",
        binding: if number <= 300 { Binding::Communicator } else { Binding::Nothing },
        verbosity: Verbosity::UserBasic,
        category: Category::Events,
        fields: &[],
        payload: PayloadKind::None,
        shown: Shown::Instant,
    };
    (1..=320).map(event_type).collect::<Vec<_>>().leak()
}

#[test]
fn listeners_to_the_three_hundredth_event_type_of_a_table_get_its_records_and_no_others() {
    let registry = Registry::with_table(large_table(), Box::new(|why| panic!("{why}")));
    let (last_of_comm, of_engine) = (Event::new(300), Event::new(310));
    let world = registry.attach(WORLD);
    let records = Arc::new(Mutex::new(Vec::new()));
    let listener = |records: &Arc<Mutex<Vec<(Event, isize)>>>| {
        let records = records.clone();
        move |record: &EventRecord<'_>| records.lock().unwrap().push((record.event, record.id))
    };
    let subscription = Subscription::new(&world, last_of_comm, listener(&records)).unwrap();
    let everywhere = [last_of_comm, of_engine].into_iter().collect();
    let global = registry.subscribe_globally(everywhere, Arc::new(listener(&records)));
    let attached_last = registry.attach(WORLD + 1);
    assert_eq!(registry.register(&world, of_engine, counting(&AtomicUsize::new(0))), Err(EventError::Event));

    for number in 1..=320_u16 {
        let event = Event::new(number);
        let comm = event == last_of_comm;
        assert_eq!((world.gate.is_open(event), attached_last.gate.is_open(event)), (comm, comm), "{event:?}");
        assert_eq!(registry.gate.is_open(event), event == of_engine);
        let record = EventRecord::new(event, number as isize, &Spec::NOTHING);
        if number <= 300 {
            world.emit(&record)
        } else {
            registry.emit(&record)
        };
    }
    attached_last.emit_once(last_of_comm, 7, 6, EventPayload::None, Spec::NOTHING);
    let expected = [(last_of_comm, 300), (last_of_comm, 300), (of_engine, 310), (last_of_comm, 7)];
    assert_eq!(*records.lock().unwrap(), expected);

    drop(subscription);
    assert!(world.gate.is_open(last_of_comm) && world.gate.is_any_open());
    drop(global);
    assert!(![&world.gate, &attached_last.gate, &registry.gate].iter().any(|gate| gate.is_any_open()));
}
