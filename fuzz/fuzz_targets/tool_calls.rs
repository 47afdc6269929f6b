//! Any sequence of MPI_T's calls that make, use and free handles, with handles good, stale, foreign and invented: what
//! is not there is refused, what is there can be used and freed once, and nothing crashes.
//!
//! A step is three bytes: what to do, to which handle, and a detail.
#![no_main]

use core::ffi::{c_int, c_void};
use core::ptr::{null, null_mut};
use libfuzzer_sys::fuzz_target;
use perusal::internals::abi::{MPI_COMM_SELF, MPI_INFO_NULL};
use perusal_abi as _;
use std::sync::Once;

type Handle = usize;

unsafe extern "C" {
    fn PMPI_Init(argc: *mut c_int, argv: *mut *mut *mut i8) -> c_int;
    fn PMPI_T_init_thread(required: c_int, provided: *mut c_int) -> c_int;
    fn PMPI_T_cvar_handle_alloc(
        index: c_int,
        object: *mut c_void,
        handle: *mut Handle,
        count: *mut c_int,
    ) -> c_int;
    fn PMPI_T_cvar_handle_free(handle: *mut Handle) -> c_int;
    fn PMPI_T_cvar_read(handle: Handle, buf: *mut c_void) -> c_int;
    fn PMPI_T_cvar_write(handle: Handle, buf: *const c_void) -> c_int;
    fn PMPI_T_pvar_session_create(session: *mut Handle) -> c_int;
    fn PMPI_T_pvar_session_free(session: *mut Handle) -> c_int;
    fn PMPI_T_pvar_handle_alloc(
        session: Handle,
        index: c_int,
        object: *mut c_void,
        handle: *mut Handle,
        count: *mut c_int,
    ) -> c_int;
    fn PMPI_T_pvar_handle_free(session: Handle, handle: *mut Handle) -> c_int;
    fn PMPI_T_pvar_start(session: Handle, handle: Handle) -> c_int;
    fn PMPI_T_pvar_stop(session: Handle, handle: Handle) -> c_int;
    fn PMPI_T_pvar_read(session: Handle, handle: Handle, buf: *mut c_void) -> c_int;
    fn PMPI_T_pvar_reset(session: Handle, handle: Handle) -> c_int;
    fn PMPI_T_pvar_readreset(session: Handle, handle: Handle, buf: *mut c_void) -> c_int;
    fn PMPI_T_pvar_write(session: Handle, handle: Handle, buf: *const c_void) -> c_int;
    fn PMPI_T_event_handle_alloc(
        index: c_int,
        object: *mut c_void,
        info: Handle,
        handle: *mut Handle,
    ) -> c_int;
    fn PMPI_T_event_handle_free(handle: Handle, data: *mut c_void, freed: *const c_void) -> c_int;
    fn PMPI_T_event_handle_get_info(handle: Handle, info: *mut Handle) -> c_int;
    fn PMPI_Info_free(info: *mut Handle) -> c_int;
}

/// Steps of one input: fewer than it takes for a freed handle to come back.
const MOST_STEPS: usize = 500;
/// Room for the largest variable, whose number of elements is a few.
const ROOM: usize = 4096;

/// What was given out, and whether it is still there.
#[derive(Clone, Copy)]
struct Given {
    value: Handle,
    /// For a performance variable's handle: the session.
    session: Handle,
    live: bool,
}

#[derive(Default)]
struct Pool(Vec<Given>);

impl Pool {
    /// The handle that a byte means: one that was given out, or a number that was not.
    fn pick(&self, byte: u8) -> Handle {
        const INVENTED: [Handle; 8] = [0, 1, 257, 4096, 4097, 1 << 30, usize::MAX, 0x7fff_dead_beef];
        let at = usize::from(byte);
        if at >= 248 {
            INVENTED[at - 248]
        } else {
            self.0.get(at % self.0.len().max(1)).map_or(0, |given| given.value)
        }
    }

    fn live(&self, value: Handle) -> Option<&Given> {
        self.0.iter().find(|given| given.live && given.value == value)
    }

    fn add(&mut self, value: Handle, session: Handle) {
        assert!(self.live(value).is_none(), "a handle is given out twice");
        self.0.push(Given { value, session, live: true });
    }

    fn end(&mut self, of: impl Fn(&Given) -> bool) {
        self.0.iter_mut().filter(|given| of(given)).for_each(|given| given.live = false);
    }
}

#[derive(Default)]
struct Model {
    cvars: Pool,
    sessions: Pool,
    pvars: Pool,
    events: Pool,
}

impl Model {
    /// One step. Pointers are to this frame's memory, or NULL where that is allowed.
    fn step(&mut self, what: u8, which: u8, detail: u8) {
        let mut room = [detail; ROOM];
        let buf = room.as_mut_ptr().cast::<c_void>();
        let (mut made, mut count, mut comm) = (0, 0, MPI_COMM_SELF);
        let object = (&raw mut comm).cast::<c_void>();
        let index = c_int::from(detail) - 2;
        let session = self.sessions.pick(detail >> 2);
        let pvar = self.pvars.pick(which);
        let fits = self.pvars.live(pvar).is_some_and(|given| given.session == session);
        let refused = |code: c_int, there: bool| assert!(there || code != 0, "what is not there is used");
        // SAFETY: MPI_T's functions, with room for what they write.
        unsafe {
            match what % 16 {
                0 => {
                    if PMPI_T_cvar_handle_alloc(index, object, &raw mut made, &raw mut count) == 0 {
                        self.cvars.add(made, 0);
                    }
                }
                1 => {
                    let mut handle = self.cvars.pick(which);
                    let (value, there) = (handle, self.cvars.live(handle).is_some());
                    assert_eq!(PMPI_T_cvar_handle_free(&raw mut handle) == 0, there);
                    self.cvars.end(|given| given.value == value);
                }
                2 => {
                    let handle = self.cvars.pick(which);
                    assert_eq!(PMPI_T_cvar_read(handle, buf) == 0, self.cvars.live(handle).is_some());
                }
                3 => {
                    let handle = self.cvars.pick(which);
                    refused(PMPI_T_cvar_write(handle, buf), self.cvars.live(handle).is_some());
                }
                4 => {
                    assert_eq!(PMPI_T_pvar_session_create(&raw mut made), 0);
                    self.sessions.add(made, 0);
                }
                5 => {
                    let mut handle = self.sessions.pick(which);
                    let (value, there) = (handle, self.sessions.live(handle).is_some());
                    assert_eq!(PMPI_T_pvar_session_free(&raw mut handle) == 0, there);
                    self.sessions.end(|given| given.value == value);
                    self.pvars.end(|given| there && given.session == value);
                }
                6 | 7 => {
                    let session = self.sessions.pick(which);
                    let code =
                        PMPI_T_pvar_handle_alloc(session, index, object, &raw mut made, &raw mut count);
                    refused(code, self.sessions.live(session).is_some());
                    if code == 0 {
                        assert!(count as usize * 8 <= ROOM);
                        self.pvars.add(made, session);
                    }
                }
                8 => {
                    let mut handle = pvar;
                    assert_eq!(PMPI_T_pvar_handle_free(session, &raw mut handle) == 0, fits);
                    self.pvars.end(|given| fits && given.value == pvar);
                }
                9 => refused(PMPI_T_pvar_start(session, pvar), fits || pvar == 1),
                10 => refused(PMPI_T_pvar_stop(session, pvar), fits || pvar == 1),
                11 => refused(PMPI_T_pvar_read(session, pvar, buf), fits),
                12 => {
                    refused(PMPI_T_pvar_reset(session, pvar), fits || pvar == 1);
                    refused(PMPI_T_pvar_readreset(session, pvar, buf), fits);
                    refused(PMPI_T_pvar_write(session, pvar, buf), fits);
                }
                13 => {
                    if PMPI_T_event_handle_alloc(index, object, MPI_INFO_NULL, &raw mut made) == 0 {
                        self.events.add(made, 0);
                    }
                }
                14 => {
                    let handle = self.events.pick(which);
                    let there = self.events.live(handle).is_some();
                    assert_eq!(PMPI_T_event_handle_free(handle, null_mut(), null()) == 0, there);
                    self.events.end(|given| given.value == handle);
                }
                _ => {
                    let handle = self.events.pick(which);
                    let code = PMPI_T_event_handle_get_info(handle, &raw mut made);
                    assert_eq!(code == 0, self.events.live(handle).is_some());
                    if code == 0 {
                        assert_eq!(PMPI_Info_free(&raw mut made), 0);
                    }
                }
            }
        }
    }

    /// Frees what is left, so that one input is as the next.
    fn clear(&mut self) {
        for given in core::mem::take(&mut self.cvars.0).iter_mut().filter(|given| given.live) {
            // SAFETY: a handle that is there.
            assert_eq!(unsafe { PMPI_T_cvar_handle_free(&raw mut given.value) }, 0);
        }
        for given in core::mem::take(&mut self.events.0).iter().filter(|given| given.live) {
            // SAFETY: a handle that is there.
            assert_eq!(unsafe { PMPI_T_event_handle_free(given.value, null_mut(), null()) }, 0);
        }
        for given in core::mem::take(&mut self.sessions.0).iter_mut().filter(|given| given.live) {
            // SAFETY: a session that is there; its handles go with it.
            assert_eq!(unsafe { PMPI_T_pvar_session_free(&raw mut given.value) }, 0);
        }
    }
}

fuzz_target!(|bytes: &[u8]| {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let mut provided = 0;
        // SAFETY: NULL stands for no arguments.
        unsafe {
            assert_eq!(PMPI_Init(null_mut(), null_mut()), 0);
            assert_eq!(PMPI_T_init_thread(0, &raw mut provided), 0);
        }
    });
    let mut model = Model::default();
    for step in bytes.chunks_exact(3).take(MOST_STEPS) {
        model.step(step[0], step[1], step[2]);
    }
    model.clear();
});
