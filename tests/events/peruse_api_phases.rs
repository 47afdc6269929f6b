//! PERUSE's C functions at the wrong time: before MPI_Init, before PERUSE_Init, after MPI_Finalize.
//! One process, one story.

use core::ffi::{CStr, c_char, c_int, c_long, c_void};
use core::ptr::{null, null_mut};
use perusal::events::{CommSpec, Registry};
use perusal::internals::abi::MPI_COMM_WORLD;
use perusal::internals::comm::Comm;
use perusal_abi::boundary::{Phase, set_phase};
use perusal_abi::comms;
use perusal_abi::peruse::*;
use std::sync::Arc;

const SUCCESS: c_int = Code::Success as c_int;
const ERR_INIT: c_int = Code::Init as c_int;
const ERR_MPI_INIT: c_int = Code::MpiInit as c_int;

unsafe extern "C" fn nothing(_: c_long, _: isize, _: *mut CommSpec, _: *mut c_void) -> c_int {
    0
}

/// What all functions but PERUSE_Init return, in the order of appendix C.
fn all_but_init() -> [c_int; 16] {
    let (mut number, mut names, mut events, mut event) = (0, null(), null(), 0);
    let (mut name, mut env, mut handle) = (null(), null(), 0);
    let (mut object, mut function, mut param) = (null_mut(), None, null_mut());
    // SAFETY: every pointer leads to a local of the right type.
    unsafe {
        [
            PERUSE_Query_supported_events(&mut number, &mut names, &mut events),
            PERUSE_Query_event(c"PERUSE_COMM_REQ_ACTIVATE".as_ptr(), &mut event),
            PERUSE_Query_event_name(1, &mut name),
            PERUSE_Query_environment(&mut number, &mut env),
            PERUSE_Query_queue_event_scope(&mut number),
            PERUSE_Event_comm_register(1, MPI_COMM_WORLD, Some(nothing), null_mut(), &mut handle),
            PERUSE_Event_activate(handle),
            PERUSE_Event_deactivate(handle),
            PERUSE_Event_comm_callback_set(handle, Some(nothing), null_mut()),
            PERUSE_Event_comm_callback_get(handle, &mut function, &mut param),
            PERUSE_Event_get(handle, &mut event),
            PERUSE_Event_object_get(handle, &mut object),
            PERUSE_Event_propagate(handle, 0),
            PERUSE_Event_release(&mut handle),
            PERUSE_Lock(),
            PERUSE_Unlock(),
        ]
    }
}

#[test]
fn peruse_needs_mpi_and_its_own_init() {
    // SAFETY: no pointers.
    let init = || unsafe { PERUSE_Init() };
    assert_eq!(init(), ERR_MPI_INIT);
    assert_eq!(all_but_init(), [ERR_INIT; 16]);

    let registry = Registry::new(Box::new(|text| panic!("{text}")));
    let world = Comm::world(0, 1, registry.attach(0));
    comms::install(Arc::new(world), Arc::new(Comm::itself(0, registry.attach(0))));
    comms::name_predefined(true);
    set_phase(Phase::Running);
    assert_eq!(all_but_init(), [ERR_INIT; 16], "before PERUSE_Init");
    assert_eq!(init(), SUCCESS);
    let mut expected = [SUCCESS; 16];
    // The window is closed again when the callback is set, so all succeed.
    assert_eq!(all_but_init(), expected);

    let mut name: *const c_char = null();
    // SAFETY: `name` may be written.
    assert_eq!(unsafe { PERUSE_Query_event_name(1, &mut name) }, SUCCESS);
    set_phase(Phase::After);
    assert_eq!(init(), ERR_MPI_INIT);
    expected.fill(ERR_INIT);
    assert_eq!(all_but_init(), expected, "after MPI_Finalize");
    // SAFETY: the library's string; promised until MPI_Finalize, and never freed.
    assert_eq!(unsafe { CStr::from_ptr(name) }, c"PERUSE_COMM_REQ_ACTIVATE");
}
