//! Built without events, the API is there and reports none:
//! `cargo test --no-default-features -p perusal-abi --test peruse_off`.
#![cfg(not(feature = "peruse"))]

use core::ffi::{c_int, c_long, c_void};
use core::ptr::{null, null_mut};
use perusal::events::{CommSpec, EVENTS, Event, Registry};
use perusal::internals::abi::MPI_COMM_WORLD;
use perusal::internals::comm::Comm;
use perusal_abi::boundary::{Phase, set_phase};
use perusal_abi::comms;
use perusal_abi::peruse::*;
use std::sync::Arc;

unsafe extern "C" fn nothing(_: c_long, _: isize, _: *mut CommSpec, _: *mut c_void) -> c_int {
    0
}

#[test]
fn there_are_no_events_and_no_site_raises_one() {
    let registry = Registry::new(Box::new(|text| panic!("{text}")));
    let events = registry.attach(0);
    let world = Comm::world(0, 1, events.clone());
    comms::install(Arc::new(world), Arc::new(Comm::itself(0, registry.attach(0))));
    comms::name_predefined(true);
    set_phase(Phase::Running);
    let (mut number, mut names, mut numbers, mut event, mut handle) = (5, null(), null(), 5, 5);
    // SAFETY: every pointer leads to a local of the right type.
    unsafe {
        assert_eq!(PERUSE_Init(), Code::Success as c_int);
        let code = PERUSE_Query_supported_events(&mut number, &mut names, &mut numbers);
        assert_eq!((code, number), (Code::Success as c_int, 0));
        assert!(names.is_null() && numbers.is_null());
        let code = PERUSE_Query_event(c"PERUSE_COMM_REQ_ACTIVATE".as_ptr(), &mut event);
        assert_eq!((code, event), (Code::Event as c_int, 0));
        let code = PERUSE_Event_comm_register(1, MPI_COMM_WORLD, Some(nothing), null_mut(), &mut handle);
        assert_eq!((code, handle), (Code::Event as c_int, 0));
    }
    assert!((1..=EVENTS as i32).all(|n| !events.gate.is_open(Event::by_number(n).unwrap())));
}
