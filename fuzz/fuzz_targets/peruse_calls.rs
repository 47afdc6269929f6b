//! Any sequence of PERUSE calls, with handles good, stale, foreign and invented: every return value and every count of
//! callbacks is what a model that a reader can check by eye says.
//!
//! A step is three bytes: what to do, to which handle or communicator, and a detail.
#![no_main]

use core::cell::Cell;
use core::ffi::{c_int, c_long, c_void};
use core::ptr::null_mut;
use libfuzzer_sys::fuzz_target;
use perusal::internals::abi::MPI_COMM_NULL;
use perusal_abi::boundary::{Phase, set_phase};
use perusal_abi::comms;
use perusal_abi::peruse::*;
use perusal::internals::comm::Comm;
use perusal::events::{CommCallback, CommSpec, Event, EventRecord, Operation, PERUSE_EVENTS, Registry, Spec};
use std::sync::{Arc, Once};

/// The event of this number that communicators have.
fn known(number: i32) -> Option<Event> {
    Event::by_number(number).filter(|_| number <= PERUSE_EVENTS as i32)
}

/// Steps of one input; fewer than a communicator's handle needs to come round to the same value.
const MOST_STEPS: usize = 300;

fn registry() -> &'static Arc<Registry> {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let registry = Registry::new(Box::new(|text| panic!("{text}")));
        let world = Comm::world(0, 1, registry.attach(0));
        comms::install(Arc::new(world), Arc::new(Comm::itself(0, registry.attach(0))));
        set_phase(Phase::Running);
        // SAFETY: no pointers.
        assert_eq!(unsafe { PERUSE_Init() }, 0);
    });
    comms::world().unwrap().events.registry()
}

/// What a callback's `param` points to.
struct Tool {
    event: i32,
    calls: Cell<u32>,
}

/// What the callback does with its own handle.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Habit {
    Counts,
    Deactivates,
    Releases,
}

fn called(handle: c_long, param: *mut c_void) {
    // SAFETY: every handle is registered with a `Tool` that lives until the input is done.
    let tool = unsafe { &*param.cast::<Tool>() };
    tool.calls.set(tool.calls.get() + 1);
    let mut event = 0;
    // SAFETY: `event` may be written.
    assert_eq!(unsafe { PERUSE_Event_get(handle, &mut event) }, 0);
    assert_eq!(event, tool.event);
}

unsafe extern "C" fn counts(handle: c_long, _: isize, _: *mut CommSpec, param: *mut c_void) -> c_int {
    called(handle, param);
    0
}

unsafe extern "C" fn deactivates(handle: c_long, _: isize, _: *mut CommSpec, param: *mut c_void) -> c_int {
    called(handle, param);
    // SAFETY: no pointers.
    unsafe { PERUSE_Event_deactivate(handle) }
}

unsafe extern "C" fn releases(handle: c_long, _: isize, _: *mut CommSpec, param: *mut c_void) -> c_int {
    called(handle, param);
    let mut own = handle;
    // SAFETY: `own` may be written.
    unsafe { PERUSE_Event_release(&mut own) }
}

impl Habit {
    fn of(byte: u8) -> Habit {
        match byte >> 6 {
            0 | 1 => Habit::Counts,
            2 => Habit::Deactivates,
            _ => Habit::Releases,
        }
    }
    fn callback(self) -> CommCallback {
        match self {
            Habit::Counts => counts,
            Habit::Deactivates => deactivates,
            Habit::Releases => releases,
        }
    }
}

struct ModelHandle {
    raw: c_long,
    event: Event,
    home: usize,
    attached: Vec<usize>,
    active: bool,
    propagates: bool,
    dead: bool,
    released: bool,
    habit: Habit,
    tool: Box<Tool>,
    expected: u32,
}

struct ModelComm {
    handle: usize,
    comm: Arc<Comm>,
    freed: bool,
}

struct Model {
    comms: Vec<ModelComm>,
    handles: Vec<ModelHandle>,
    lock_is_mine: bool,
}

impl Model {
    fn new() -> Model {
        let mut model = Model { comms: Vec::new(), handles: Vec::new(), lock_is_mine: false };
        model.make_comm();
        model
    }

    fn make_comm(&mut self) -> Arc<Comm> {
        let comm = Arc::new(Comm::itself(0, registry().attach(0)));
        let handle = comms::insert(comm.clone()).unwrap();
        self.comms.push(ModelComm { handle, comm: comm.clone(), freed: false });
        comm
    }

    /// The handle that a byte means: one that was given out, whatever became of it, or a number that was not.
    fn pick(&self, byte: u8) -> (Option<usize>, c_long) {
        let index = usize::from(byte & 31);
        match self.handles.get(index) {
            Some(handle) if byte & 0xc0 != 0xc0 => (Some(index), handle.raw),
            Some(handle) => {
                let wrong = handle.raw ^ (1 << (byte & 63));
                (self.handles.iter().position(|h| h.raw == wrong), wrong)
            }
            None if byte & 1 == 0 => (None, 0),
            None => (None, c_long::from(byte) << 32 | 0xffff),
        }
    }

    /// What every function says of a handle that cannot be used.
    fn trouble(&self, index: Option<usize>) -> Option<Code> {
        match index.map(|i| &self.handles[i]) {
            None => Some(Code::EventHandle),
            Some(h) if h.released => Some(Code::EventHandle),
            Some(h) if h.dead => Some(Code::MpiObject),
            Some(_) => None,
        }
    }

    fn register(&mut self, which: u8, detail: u8) {
        let index = usize::from(which) % (self.comms.len() + 1);
        let (comm, freed) = self.comms.get(index).map_or((MPI_COMM_NULL, true), |c| (c.handle, c.freed));
        let event = known(i32::from(detail & 31));
        let habit = Habit::of(detail);
        let tool = Box::new(Tool { event: i32::from(detail & 31), calls: Cell::new(0) });
        let param = core::ptr::from_ref(&*tool).cast_mut().cast();
        let mut raw = 7;
        // SAFETY: `raw` may be written; the tool lives until the input is done.
        let code = unsafe {
            PERUSE_Event_comm_register(i32::from(detail & 31), comm, Some(habit.callback()), param, &mut raw)
        };
        let Some(event) = event else { return assert_eq!((code, raw), (Code::Event as c_int, 0)) };
        if freed {
            return assert_eq!((code, raw), (Code::Comm as c_int, 0));
        }
        assert_eq!(code, 0);
        assert!(raw > 0 && self.handles.iter().all(|h| h.raw != raw), "a handle value comes once");
        self.handles.push(ModelHandle {
            raw,
            event,
            home: index,
            attached: vec![index],
            active: false,
            propagates: false,
            dead: false,
            released: false,
            habit,
            tool,
            expected: 0,
        });
    }

    fn activate(&mut self, which: u8, open: bool) {
        let (index, raw) = self.pick(which);
        // SAFETY: no pointers.
        let code = unsafe { if open { PERUSE_Event_activate(raw) } else { PERUSE_Event_deactivate(raw) } };
        match self.trouble(index) {
            Some(trouble) => assert_eq!(code, trouble as c_int),
            None => {
                assert_eq!(code, 0);
                self.handles[index.unwrap()].active = open;
            }
        }
    }

    fn release(&mut self, which: u8) {
        let (index, raw) = self.pick(which);
        let mut given = raw;
        // SAFETY: `given` may be written.
        let code = unsafe { PERUSE_Event_release(&mut given) };
        let trouble = self.trouble(index);
        assert_eq!(code, trouble.map_or(0, |t| t as c_int));
        let goes = trouble != Some(Code::EventHandle);
        assert_eq!(given, if goes { 0 } else { raw });
        if goes {
            self.handles[index.unwrap()].released = true;
        }
    }

    fn ask(&mut self, which: u8) {
        let (index, raw) = self.pick(which);
        let (mut event, mut object, mut function, mut param) = (0, null_mut(), None, null_mut());
        // SAFETY: every pointer leads to a local of the right type.
        let codes = unsafe {
            [
                PERUSE_Event_get(raw, &mut event),
                PERUSE_Event_object_get(raw, &mut object),
                PERUSE_Event_comm_callback_get(raw, &mut function, &mut param),
            ]
        };
        let trouble = self.trouble(index);
        assert_eq!(codes, [trouble.map_or(0, |t| t as c_int); 3]);
        if trouble.is_none() {
            let handle = &self.handles[index.unwrap()];
            assert_eq!(event, handle.event.number());
            assert_eq!(object.addr(), self.comms[handle.home].handle);
            assert_eq!(function.unwrap() as usize, handle.habit.callback() as usize);
            assert_eq!(param.addr(), core::ptr::from_ref(&*handle.tool).addr());
        }
    }

    /// `callback_set` and `propagate` want an inactive handle.
    fn change(&mut self, which: u8, detail: u8) {
        let (index, raw) = self.pick(which);
        let habit = Habit::of(detail);
        let tool = index.map_or(core::ptr::null(), |i| core::ptr::from_ref(&*self.handles[i].tool));
        let setting = detail & 1 == 0;
        // SAFETY: the tool lives until the input is done.
        let code = unsafe {
            if setting {
                PERUSE_Event_comm_callback_set(raw, Some(habit.callback()), tool.cast_mut().cast())
            } else {
                PERUSE_Event_propagate(raw, c_int::from(detail & 2))
            }
        };
        let active = |i: usize| self.handles[i].active.then_some(Code::EventHandle);
        let trouble = self.trouble(index).or_else(|| index.and_then(active));
        assert_eq!(code, trouble.map_or(0, |t| t as c_int));
        if trouble.is_none() {
            let handle = &mut self.handles[index.unwrap()];
            match setting {
                true => handle.habit = habit,
                false => handle.propagates = detail & 2 != 0,
            }
        }
    }

    fn dup(&mut self, which: u8) {
        let old = usize::from(which) % self.comms.len();
        if self.comms[old].freed || self.comms.len() > 20 {
            return;
        }
        let new = self.make_comm();
        registry().propagate(&self.comms[old].comm.events, &new.events);
        let index = self.comms.len() - 1;
        for handle in &mut self.handles {
            if handle.propagates && !handle.released && !handle.dead && handle.attached.contains(&old) {
                handle.attached.push(index);
            }
        }
    }

    fn free(&mut self, which: u8) {
        let index = usize::from(which) % self.comms.len();
        let comm = &mut self.comms[index];
        if comm.freed {
            return;
        }
        comm.freed = true;
        comms::remove(comm.handle).unwrap();
        registry().detach(&comm.comm.events);
        for handle in &mut self.handles {
            handle.dead |= handle.home == index;
            handle.attached.retain(|&there| there != index);
        }
    }

    fn raise(&mut self, which: u8, detail: u8) {
        let index = usize::from(which) % self.comms.len();
        let Some(event) = known(i32::from(detail & 31)) else { return };
        let events = &self.comms[index].comm.events;
        let heard = |h: &ModelHandle| {
            h.active && !h.dead && !h.released && h.event == event && h.attached.contains(&index)
        };
        assert_eq!(events.gate.is_open(event), self.handles.iter().any(heard), "the gate");
        let spec = Spec {
            comm: events.comm(),
            buf: null_mut(),
            count: 1,
            datatype: 2,
            peer: 3,
            tag: 4,
            operation: Operation::Recv,
            bytes: 0,
        };
        events.emit(&EventRecord::new(event, 5, &spec));
        for handle in &mut self.handles {
            if heard(handle) {
                handle.expected += 1;
                handle.active = handle.habit != Habit::Deactivates;
                handle.released = handle.habit == Habit::Releases;
            }
            assert_eq!(handle.tool.calls.get(), handle.expected);
        }
    }

    fn lock(&mut self, take: bool) {
        // SAFETY: no pointers.
        let code = unsafe { if take { PERUSE_Lock() } else { PERUSE_Unlock() } };
        let expected = match (take, self.lock_is_mine) {
            (true, true) => Code::LockNotGrantable,
            (false, false) => Code::Lock,
            _ => Code::Success,
        };
        assert_eq!(code, expected as c_int);
        self.lock_is_mine = take;
    }

    fn query(&self, which: u8, detail: u8) {
        let number = i32::from(which) - 100;
        let mut name = core::ptr::null();
        // SAFETY: `name` may be written.
        let code = unsafe { PERUSE_Query_event_name(number, &mut name) };
        assert_eq!(code == 0, Event::by_peruse_number(number).is_some());
        let text = [b'P', b'E', which, detail, 0];
        let mut event = 9;
        // SAFETY: the text ends with a zero; `event` may be written.
        let code = unsafe { PERUSE_Query_event(text.as_ptr().cast(), &mut event) };
        assert_eq!((code, event), (Code::Event as c_int, 0));
    }

    fn step(&mut self, what: u8, which: u8, detail: u8) {
        match what % 14 {
            0 | 1 => self.register(which, detail),
            2 | 3 => self.activate(which, true),
            4 => self.activate(which, false),
            5 => self.release(which),
            6 => self.ask(which),
            7 => self.change(which, detail),
            8 => self.dup(which),
            9 => self.free(which),
            10 | 11 => self.raise(which, detail),
            12 => self.lock(detail & 1 == 0),
            _ => self.query(which, detail),
        }
    }

    /// Everything goes back, and nothing fires afterwards.
    fn end(mut self) {
        if self.lock_is_mine {
            self.lock(false);
        }
        for index in 0..self.comms.len() {
            self.free(index as u8);
        }
        for index in 0..self.handles.len() {
            let handle = &self.handles[index];
            let (mut raw, released) = (handle.raw, handle.released);
            // SAFETY: `raw` may be written.
            let code = unsafe { PERUSE_Event_release(&mut raw) };
            let expected = if released { Code::EventHandle } else { Code::MpiObject };
            assert_eq!(code, expected as c_int);
        }
    }
}

fuzz_target!(|bytes: &[u8]| {
    registry();
    let mut model = Model::new();
    for step in bytes.chunks_exact(3).take(MOST_STEPS) {
        model.step(step[0], step[1], step[2]);
    }
    model.end();
});
