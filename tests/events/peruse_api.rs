//! PERUSE's C functions between PERUSE_Init and MPI_Finalize:
//! every result and every error return, one test per function.
//!
//! The communicators are real, the messages are not: events are raised by the tests.
#![cfg(feature = "peruse")]

use core::ffi::{CStr, c_char, c_int, c_long, c_void};
use core::ptr::{null, null_mut};
use perusal::events::{
    CATALOG, CommCallback, CommSpec, Event, EventRecord, Operation, PERUSE_EVENTS, Registry, Spec,
};
use perusal::internals::abi::{MPI_COMM_NULL, MPI_COMM_SELF, MPI_COMM_WORLD};
use perusal::internals::comm::Comm;
use perusal_abi::boundary::{Phase, set_phase};
use perusal_abi::peruse::*;
use perusal_abi::{comms, overrides};
use std::sync::{Arc, Once};

const SUCCESS: c_int = Code::Success as c_int;
const ERR_EVENT: c_int = Code::Event as c_int;
const ERR_HANDLE: c_int = Code::EventHandle as c_int;
const ERR_PARAMETER: c_int = Code::Parameter as c_int;
const ERR_COMM: c_int = Code::Comm as c_int;
const ERR_OBJECT: c_int = Code::MpiObject as c_int;
const ERR_LOCK: c_int = Code::Lock as c_int;
const NOT_GRANTABLE: c_int = Code::LockNotGrantable as c_int;

/// MPI, as far as PERUSE looks at it.
fn start() -> &'static Arc<Registry> {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let registry = Registry::new(Box::new(|text| panic!("{text}")));
        let world = Comm::world(0, 1, registry.attach(0));
        let itself = Comm::itself(0, registry.attach(0));
        comms::install(Arc::new(world), Arc::new(itself));
        overrides::install(vec![("PERUSAL_ONE", "1".into()), ("PERUSAL_TWO", "two".into())]);
        comms::name_predefined(true);
        set_phase(Phase::Running);
        // SAFETY: no pointers.
        assert_eq!(unsafe { PERUSE_Init() }, SUCCESS);
    });
    registry()
}

fn registry() -> &'static Arc<Registry> {
    comms::world().unwrap().events.registry()
}

/// A communicator of the test's own, with its handle.
fn a_comm() -> (usize, Arc<Comm>) {
    let comm = Arc::new(Comm::itself(0, registry().attach(0)));
    (comms::insert(comm.clone()).unwrap(), comm)
}

fn free(comm: usize) {
    let gone = comms::remove(comm).unwrap();
    registry().detach(&gone.events);
}

unsafe extern "C" fn count(_: c_long, _: isize, _: *mut CommSpec, param: *mut c_void) -> c_int {
    // SAFETY: the tests pass a c_int that outlives the handle, and raise on their own thread.
    unsafe { *param.cast::<c_int>() += 1 };
    0
}

unsafe extern "C" fn nothing(_: c_long, _: isize, _: *mut CommSpec, _: *mut c_void) -> c_int {
    0
}

fn raise(comm: &Comm, event: Event) {
    if comm.events.gate.is_open(event) {
        let spec = Spec {
            comm: comm.handle(),
            buf: null_mut(),
            count: 0,
            datatype: 0,
            peer: 0,
            tag: 0,
            operation: Operation::Send,
            bytes: 0,
        };
        comm.events.emit(&EventRecord::new(event, 1, &spec));
    }
}

fn register(event: Event, comm: usize, param: *mut c_int) -> c_long {
    let mut handle = 0;
    // SAFETY: `handle` may be written.
    let code = unsafe {
        PERUSE_Event_comm_register(event.number(), comm, Some(count), param.cast(), &raw mut handle)
    };
    assert_eq!(code, SUCCESS);
    assert_ne!(handle, 0);
    handle
}

/// Handles that no function takes.
const NO_HANDLES: [c_long; 6] = [0, -1, 1, 77 << 32 | 1, c_long::MAX, c_long::MIN];

macro_rules! gives {
    ($code:expr, $call:expr) => {
        // SAFETY: pointers are null or lead to locals of the right type.
        assert_eq!(unsafe { $call }, $code, stringify!($call))
    };
}

#[test]
fn init_may_be_called_by_any_number_of_tools() {
    start();
    gives!(SUCCESS, PERUSE_Init());
    gives!(SUCCESS, PERUSE_Init());
}

#[test]
fn supported_events_are_the_catalogue() {
    start();
    let (mut number, mut names, mut events) = (0, null(), null());
    gives!(SUCCESS, PERUSE_Query_supported_events(&mut number, &mut names, &mut events));
    let rows = || CATALOG.iter().filter(|row| row.peruse.is_some());
    assert_eq!(number as usize, rows().count());
    for (i, row) in rows().enumerate() {
        // SAFETY: the arrays have `number` entries.
        let (name, event) = unsafe { (CStr::from_ptr(*names.add(i)), *events.add(i)) };
        assert_eq!((name, event), (row.name, row.event.number()));
    }
    gives!(ERR_PARAMETER, PERUSE_Query_supported_events(null_mut(), &mut names, &mut events));
    gives!(ERR_PARAMETER, PERUSE_Query_supported_events(&mut number, null_mut(), &mut events));
    gives!(ERR_PARAMETER, PERUSE_Query_supported_events(&mut number, &mut names, null_mut()));
}

#[test]
fn events_are_found_by_every_spelling_and_named_by_the_first() {
    start();
    for row in CATALOG.iter().filter(|row| row.peruse.is_some()) {
        for spelling in row.aliases.iter().chain([&row.name]) {
            let (mut event, mut name) = (-1, null::<c_char>());
            gives!(SUCCESS, PERUSE_Query_event(spelling.as_ptr(), &mut event));
            assert_eq!(event, row.event.number());
            gives!(SUCCESS, PERUSE_Query_event_name(event, &mut name));
            // SAFETY: a NUL-terminated string of the library's.
            assert_eq!(unsafe { CStr::from_ptr(name) }, row.name);
        }
    }
}

#[test]
fn unknown_events_are_invalid() {
    start();
    let mut event = 5;
    gives!(ERR_EVENT, PERUSE_Query_event(c"PERUSE_COMM_POSTED_QUEUE_INSERT".as_ptr(), &mut event));
    assert_eq!(event, 0, "PERUSE_EVENT_INVALID");
    gives!(ERR_PARAMETER, PERUSE_Query_event(null(), &mut event));
    gives!(ERR_PARAMETER, PERUSE_Query_event(c"PERUSE_COMM_REQ_ACTIVATE".as_ptr(), null_mut()));
    for number in [c_int::MIN, -1, 0, PERUSE_EVENTS as c_int + 1, c_int::MAX] {
        let mut name = c"before".as_ptr();
        gives!(ERR_EVENT, PERUSE_Query_event_name(number, &mut name));
        assert!(name.is_null());
    }
    gives!(ERR_PARAMETER, PERUSE_Query_event_name(1, null_mut()));
}

#[test]
fn the_environment_is_what_is_in_force() {
    start();
    let (mut size, mut env) = (0, null());
    gives!(SUCCESS, PERUSE_Query_environment(&mut size, &mut env));
    assert_eq!(size, 2);
    // SAFETY: the array has two entries.
    let strings = unsafe { [CStr::from_ptr(*env), CStr::from_ptr(*env.add(1))] };
    assert_eq!(strings, [c"PERUSAL_ONE=1", c"PERUSAL_TWO=two"]);
    gives!(ERR_PARAMETER, PERUSE_Query_environment(null_mut(), &mut env));
    gives!(ERR_PARAMETER, PERUSE_Query_environment(&mut size, null_mut()));
}

#[test]
fn queues_are_per_communicator() {
    start();
    let mut scope = -1;
    gives!(SUCCESS, PERUSE_Query_queue_event_scope(&mut scope));
    assert_eq!(scope, 0, "PERUSE_PER_COMM");
    gives!(ERR_PARAMETER, PERUSE_Query_queue_event_scope(null_mut()));
}

#[test]
fn registering_says_what_is_wrong_and_leaves_a_null_handle() {
    start();
    let (freed, _) = a_comm();
    free(freed);
    let mut handle = 5;
    let mut refused = |code, event, comm, callback: Option<CommCallback>| {
        handle = 5;
        gives!(code, PERUSE_Event_comm_register(event, comm, callback, null_mut(), &mut handle));
        assert_eq!(handle, 0);
    };
    refused(ERR_PARAMETER, 1, MPI_COMM_WORLD, None);
    for event in [c_int::MIN, -1, 0, PERUSE_EVENTS as c_int + 1] {
        refused(ERR_EVENT, event, MPI_COMM_WORLD, Some(nothing));
    }
    for comm in [0, MPI_COMM_NULL, 5000, usize::MAX, freed] {
        refused(ERR_COMM, 1, comm, Some(nothing));
    }
    gives!(
        ERR_PARAMETER,
        PERUSE_Event_comm_register(1, MPI_COMM_WORLD, Some(nothing), null_mut(), null_mut())
    );
}

#[test]
fn a_handle_is_registered_activated_heard_and_released() {
    start();
    let (comm, there) = a_comm();
    let mut heard = 0;
    let mut handle = register(Event::ReqActivate, comm, &raw mut heard);
    raise(&there, Event::ReqActivate);
    gives!(SUCCESS, PERUSE_Event_activate(handle));
    gives!(SUCCESS, PERUSE_Event_activate(handle));
    raise(&there, Event::ReqActivate);
    raise(&there, Event::ReqNotify);
    gives!(SUCCESS, PERUSE_Event_deactivate(handle));
    gives!(SUCCESS, PERUSE_Event_deactivate(handle));
    raise(&there, Event::ReqActivate);
    assert_eq!(heard, 1);
    let mut copy = handle;
    gives!(SUCCESS, PERUSE_Event_release(&mut handle));
    assert_eq!(handle, 0, "PERUSE_EVENT_HANDLE_NULL");
    gives!(ERR_HANDLE, PERUSE_Event_release(&mut handle));
    gives!(ERR_HANDLE, PERUSE_Event_release(&mut copy));
    assert_ne!(copy, 0, "only a release writes the handle");
    free(comm);
}

#[test]
fn handles_know_their_event_and_communicator() {
    start();
    for comm in [MPI_COMM_WORLD, MPI_COMM_SELF] {
        let mut handle = register(Event::MsgArrived, comm, null_mut());
        let (mut event, mut object) = (0, null_mut());
        gives!(SUCCESS, PERUSE_Event_get(handle, &mut event));
        gives!(SUCCESS, PERUSE_Event_object_get(handle, &mut object));
        assert_eq!((event, object.addr()), (Event::MsgArrived.number(), comm));
        gives!(ERR_PARAMETER, PERUSE_Event_get(handle, null_mut()));
        gives!(ERR_PARAMETER, PERUSE_Event_object_get(handle, null_mut()));
        gives!(SUCCESS, PERUSE_Event_release(&mut handle));
    }
}

#[test]
fn callbacks_are_read_at_any_time_and_set_while_inactive() {
    start();
    let (comm, there) = a_comm();
    let (mut first, mut second) = (0, 0);
    let mut handle = register(Event::ReqNotify, comm, &raw mut first);
    let read = || {
        let (mut function, mut param) = (None, null_mut());
        gives!(SUCCESS, PERUSE_Event_comm_callback_get(handle, &mut function, &mut param));
        (function.unwrap() as usize, param.cast::<c_int>().cast_const())
    };
    assert_eq!(read(), (count as CommCallback as usize, &raw const first));
    gives!(SUCCESS, PERUSE_Event_activate(handle));
    assert_eq!(read(), (count as CommCallback as usize, &raw const first), "while active");
    gives!(ERR_HANDLE, PERUSE_Event_comm_callback_set(handle, Some(nothing), null_mut()));
    gives!(SUCCESS, PERUSE_Event_deactivate(handle));
    gives!(ERR_PARAMETER, PERUSE_Event_comm_callback_set(handle, None, null_mut()));
    gives!(SUCCESS, PERUSE_Event_comm_callback_set(handle, Some(count), (&raw mut second).cast()));
    gives!(SUCCESS, PERUSE_Event_activate(handle));
    raise(&there, Event::ReqNotify);
    assert_eq!((first, second), (0, 1));
    let (mut function, mut param) = (None, null_mut());
    gives!(ERR_PARAMETER, PERUSE_Event_comm_callback_get(handle, null_mut(), &mut param));
    gives!(ERR_PARAMETER, PERUSE_Event_comm_callback_get(handle, &mut function, null_mut()));
    gives!(SUCCESS, PERUSE_Event_release(&mut handle));
    free(comm);
}

#[test]
fn propagation_is_set_while_inactive_and_every_mode_but_zero_is_true() {
    start();
    let (comm, there) = a_comm();
    let mut heard = 0;
    let mut handle = register(Event::ReqComplete, comm, &raw mut heard);
    for mode in [0, -3] {
        gives!(SUCCESS, PERUSE_Event_propagate(handle, mode));
        let copy = registry().attach(0);
        registry().propagate(&there.events, &copy);
        gives!(SUCCESS, PERUSE_Event_activate(handle));
        assert_eq!(copy.gate.is_open(Event::ReqComplete), mode != 0);
        gives!(ERR_HANDLE, PERUSE_Event_propagate(handle, 1));
        gives!(SUCCESS, PERUSE_Event_deactivate(handle));
    }
    gives!(SUCCESS, PERUSE_Event_release(&mut handle));
    free(comm);
}

#[test]
fn what_is_no_handle_is_refused_by_every_function() {
    start();
    for wrong in NO_HANDLES {
        let (mut event, mut object, mut function, mut param, mut handle) =
            (0, null_mut(), None, null_mut(), wrong);
        gives!(ERR_HANDLE, PERUSE_Event_activate(wrong));
        gives!(ERR_HANDLE, PERUSE_Event_deactivate(wrong));
        gives!(ERR_HANDLE, PERUSE_Event_release(&mut handle));
        gives!(ERR_HANDLE, PERUSE_Event_get(wrong, &mut event));
        gives!(ERR_HANDLE, PERUSE_Event_object_get(wrong, &mut object));
        gives!(ERR_HANDLE, PERUSE_Event_comm_callback_set(wrong, Some(nothing), null_mut()));
        gives!(ERR_HANDLE, PERUSE_Event_comm_callback_get(wrong, &mut function, &mut param));
        gives!(ERR_HANDLE, PERUSE_Event_propagate(wrong, 1));
    }
    gives!(ERR_PARAMETER, PERUSE_Event_release(null_mut()));
}

#[test]
fn after_the_communicator_is_freed_every_function_says_so_and_release_releases() {
    start();
    let (comm, _there) = a_comm();
    let mut handle = register(Event::ReqComplete, comm, null_mut());
    gives!(SUCCESS, PERUSE_Event_activate(handle));
    free(comm);
    let (mut event, mut object, mut function, mut param) = (0, null_mut(), None, null_mut());
    gives!(ERR_OBJECT, PERUSE_Event_activate(handle));
    gives!(ERR_OBJECT, PERUSE_Event_deactivate(handle));
    gives!(ERR_OBJECT, PERUSE_Event_get(handle, &mut event));
    gives!(ERR_OBJECT, PERUSE_Event_object_get(handle, &mut object));
    gives!(ERR_OBJECT, PERUSE_Event_comm_callback_set(handle, Some(nothing), null_mut()));
    gives!(ERR_OBJECT, PERUSE_Event_comm_callback_get(handle, &mut function, &mut param));
    gives!(ERR_OBJECT, PERUSE_Event_propagate(handle, 1));
    let mut copy = handle;
    gives!(ERR_OBJECT, PERUSE_Event_release(&mut handle));
    assert_eq!(handle, 0);
    gives!(ERR_HANDLE, PERUSE_Event_release(&mut copy));
}

#[test]
fn the_lock_has_an_owner_and_refuses_an_upcall_on_the_owners_thread() {
    unsafe extern "C" fn callback(_: c_long, _: isize, _: *mut CommSpec, param: *mut c_void) -> c_int {
        // SAFETY: the test passes an array of three codes; the functions take no pointers.
        unsafe {
            let codes = [PERUSE_Lock(), PERUSE_Unlock(), PERUSE_Lock()];
            param.cast::<[c_int; 3]>().write(codes);
        }
        0
    }
    start();
    let (comm, there) = a_comm();
    let mut codes = [-1; 3];
    let mut handle = 0;
    gives!(
        SUCCESS,
        PERUSE_Event_comm_register(1, comm, Some(callback), (&raw mut codes).cast(), &mut handle)
    );
    gives!(SUCCESS, PERUSE_Event_activate(handle));
    gives!(ERR_LOCK, PERUSE_Unlock());
    gives!(SUCCESS, PERUSE_Lock());
    let other = std::thread::spawn(|| gives!(ERR_LOCK, PERUSE_Unlock()));
    other.join().unwrap();
    raise(&there, Event::ReqActivate);
    assert_eq!(codes, [NOT_GRANTABLE, ERR_LOCK, NOT_GRANTABLE]);
    gives!(SUCCESS, PERUSE_Unlock());
    raise(&there, Event::ReqActivate);
    assert_eq!(codes, [SUCCESS, SUCCESS, SUCCESS]);
    gives!(SUCCESS, PERUSE_Unlock());
    gives!(SUCCESS, PERUSE_Event_release(&mut handle));
    free(comm);
}
