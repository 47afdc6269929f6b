//! An engine beside a hostile peer: records that are well-formed and lie, and bytes written anywhere in the ring.
//!
//! Rank 0 is an engine with receives and sends under way; rank 1 is this target's hand in the shared memory, with a
//! process of its own that only sleeps, so that copies between processes have somewhere to go. Whatever rank 1 does,
//! rank 0 neither panics nor touches memory outside its users' buffers, and what it reports has a name. Some of the
//! buffers lie in the shared heap, and rank 1 names places there, and places that are none.
#![no_main]

use libfuzzer_sys::fuzz_target;
use perusal::Error;
use perusal::internals::abi::{MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_BYTE};
use perusal::internals::comm::Comm;
use perusal::internals::datatype::Datatype;
use perusal::internals::doorbell::Doorbell;
use perusal::internals::engine::Engine;
use perusal::internals::heap::Heap;
use perusal::events::{Binding, CATALOG, EventRecord, Registry, Subscription};
use perusal::internals::shm::{FD_VARIABLE, Job, LAUNCHER_VARIABLE, Memory, RANK_VARIABLE, SIZE_VARIABLE};
use perusal::internals::p2p::{Mode, RecvBuf, Request, SendBuf};
use perusal::ring::{Consumer, Header, MappedRing, Producer};
use perusal::internals::sync::{AtomicUsize, Ordering};
use std::ptr::NonNull;
use std::sync::{Arc, OnceLock};

/// A step of the input: what to do, and its details.
type Step = [u8; 8];

/// Memory that the sleeping process has too, for copies that work.
static mut SHARED: [u8; 4096] = [7; 4096];

/// Rank 1's process: sleeps, and goes when we go.
fn sleeper() -> i32 {
    static SLEEPER: OnceLock<i32> = OnceLock::new();
    *SLEEPER.get_or_init(|| {
        // SAFETY: the child calls async-signal-safe functions only, and never returns.
        unsafe {
            match libc::fork() {
                0 => {
                    libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
                    loop {
                        libc::pause();
                    }
                }
                child => child,
            }
        }
    })
}

/// Rank 1.
struct Hostile {
    producer: Producer<MappedRing>,
    consumer: Consumer<MappedRing>,
    ring: NonNull<u8>,
    bytes: usize,
    doorbell: Doorbell,
}

impl Hostile {
    fn new(memory: &Memory) -> Self {
        let ring = |from, to| {
            memory.reserve_ring(from, to).expect("a few pages");
            let area = memory.ring(from, to);
            let base = NonNull::new(area.control).expect("mapped");
            // SAFETY: reserved, and the memory outlives this; the engine has the other end of each ring.
            (base, area, unsafe { MappedRing::new(base, area.cell_count as usize, area.bulk_bytes as usize) })
        };
        let (base, area, to_us) = ring(1, 0);
        let (words, _) = memory.doorbell(0);
        // SAFETY: rank 0's doorbell area, valid as long as the memory.
        let doorbell = unsafe { Doorbell::over(NonNull::new(words).expect("mapped"), 2) };
        Self {
            producer: Producer::new(to_us),
            consumer: Consumer::new(ring(0, 1).2),
            ring: base,
            bytes: MappedRing::bytes(area.cell_count as usize, area.bulk_bytes as usize),
            doorbell,
        }
    }

    fn push(&mut self, header: &Header, len: usize, fill: impl FnOnce(&mut [u8])) {
        let len = len % (self.producer.max_payload() + 1);
        self.producer.try_push(header, len, |room| fill(room));
        self.doorbell.ring(1);
    }

    fn drain(&mut self) {
        while let Ok(Some(())) = self.consumer.poll(|_, _| ()) {
            self.consumer.return_credit();
        }
        self.doorbell.ring(1);
    }

    fn write(&mut self, at: u16, word: u64) {
        let at = usize::from(at) % (self.bytes / 8) * 8;
        // SAFETY: within the ring, aligned; this thread is the only one, and holds no reference into it.
        unsafe { self.ring.add(at).cast::<u64>().write(word) };
        self.doorbell.ring(1);
    }
}

/// Rank 0 with what its user has under way.
struct User<'a> {
    engine: &'a Engine,
    comm: &'a Comm,
    /// A byte, and three pairs of bytes with a hole after the first two.
    types: [Datatype; 2],
    /// Buffers stay until the engine is gone.
    buffers: &'a mut Vec<Vec<u8>>,
    /// How many buffers lie in the shared heap.
    shared: usize,
    requests: Vec<(Request, bool)>,
    over: bool,
}

impl User<'_> {
    /// Notes what a call said; false when it is over with this job.
    fn check<R>(&mut self, result: Result<R, Error>) -> Option<R> {
        match result {
            Ok(value) => Some(value),
            Err(Error::Corrupt { rank: 1, .. }) => {
                self.over = true;
                None
            }
            Err(Error::Truncate { .. }) => None,
            Err(other) => panic!("a hostile peer is reported as corrupt, not as: {other}"),
        }
    }

    /// A new buffer of exactly as many bytes as the elements need.
    fn buffer(&mut self, count: usize, strided: bool) -> (*mut u8, Datatype) {
        let datatype = self.types[usize::from(strided)].clone();
        let bytes = count * datatype.extent() as usize;
        let job = self.engine.job();
        // Half of them where the peer may copy to; freed with the job.
        let shared = self.buffers.len() + self.shared & 1 == 1;
        if let Some(extent) =
            Heap::of(job).filter(|_| shared).and_then(|heap| heap.allocate(bytes, 1))
        {
            self.shared += 1;
            return (extent.addr().as_ptr(), datatype);
        }
        self.buffers.push(vec![0; bytes]);
        (self.buffers.last_mut().expect("just pushed").as_mut_ptr(), datatype)
    }

    fn receive(&mut self, any_source: bool, tag: u8, count: usize, strided: bool) {
        let (addr, datatype) = self.buffer(count, strided);
        let buf = RecvBuf::new(addr, count, &datatype, MPI_BYTE).expect("it fits");
        let source = if any_source { MPI_ANY_SOURCE } else { 1 };
        // SAFETY: the buffer outlives the engine.
        let request = unsafe { self.engine.irecv(self.comm, &buf, source, wanted(tag)) };
        if let Some(request) = self.check(request) {
            self.requests.push((request, true));
        }
    }

    fn send(&mut self, count: usize, synchronous: bool, strided: bool) {
        let (addr, datatype) = self.buffer(count, strided);
        let buf = SendBuf::new(addr, count, &datatype, MPI_BYTE).expect("it fits");
        let mode = if synchronous { Mode::Synchronous } else { Mode::Standard };
        // SAFETY: the buffer outlives the engine.
        let request = unsafe { self.engine.isend(self.comm, &buf, 1, 3, mode) };
        if let Some(request) = self.check(request) {
            self.requests.push((request, false));
        }
    }

    fn test(&mut self, which: u8) {
        let Some(at) = usize::from(which).checked_rem(self.requests.len()) else { return };
        let tested = self.engine.test_complete(self.requests[at].0);
        if self.check(tested) == Some(true) {
            let (request, _) = self.requests.swap_remove(at);
            if let (_, Some(error)) = self.engine.take_outcome(request) {
                self.check::<()>(Err(error));
            }
        }
    }

    fn cancel_receive(&mut self, which: u8) {
        let Some(at) = usize::from(which).checked_rem(self.requests.len()) else { return };
        // A send's cancellation waits for the peer's answer, which may never come.
        if let (request, true) = self.requests[at] {
            let cancelled = self.engine.cancel(request);
            self.check(cancelled);
        }
    }

    fn probe(&mut self, tag: u8) {
        let probed = self.engine.iprobe(self.comm, MPI_ANY_SOURCE, wanted(tag));
        self.check(probed);
    }
}

/// The tag that a receive asks for: any, or an even one.
fn wanted(tag: u8) -> i32 {
    if tag & 1 == 1 { MPI_ANY_TAG } else { i32::from(tag & 6) }
}

/// The id of one of rank 0's requests, or what is nearly one.
fn request_id(user: &User<'_>, byte: u8) -> u32 {
    let at = usize::from(byte & 0x3F).checked_rem(user.requests.len());
    let id = at.map_or(0, |at| user.requests[at].0.id());
    if byte < 0xC0 { id } else { id ^ u32::from(byte) << (byte & 0x1F) }
}

/// Four words of a control record. Lengths, request ids and addresses that make sense are likelier than others.
fn words(user: &User<'_>, [_, _, _, which, low, high, x, y]: Step) -> [u64; 4] {
    let length = u64::from(u16::from_le_bytes([low, high]) & 0x7FF);
    // The second granule of the heap is the first that is dealt out.
    let place = (1 << 16) + u64::from(y & 0x7F) * 1024;
    let choices = [
        length,
        u64::from(request_id(user, x)),
        if y & 0x80 == 0 { &raw const SHARED as u64 + u64::from(y) } else { place },
        u64::from_le_bytes([x, y, low, high, x, y, high, low]),
    ];
    [0, 2, 4, 6].map(|shift| choices[usize::from(which >> shift & 3)])
}

/// What rank 1 says: mostly of the world's context, and as rank 1.
fn header(user: &User<'_>, [_, kind, about, ..]: Step) -> Header {
    Header {
        kind: if kind < 0xF0 { 1 + kind % 15 } else { kind },
        context: user.comm.context + u32::from(about >> 6 == 3),
        tag: i32::from(about & 6),
        source: if about & 8 == 0 { 1 } else { u32::from(about) },
        id: 0,
    }
}

fn act(user: &mut User<'_>, peer: &mut Hostile, step: Step) {
    let [what, a, b, c, low, high, x, y] = step;
    let count = usize::from(u16::from_le_bytes([low, high]) & 0x7FF);
    match what & 15 {
        0 | 1 => user.receive(a & 1 == 1, b, count, c & 1 == 1),
        2 => user.send(count, a & 1 == 1, b & 1 == 1),
        3 => user.test(a),
        4 => user.cancel_receive(a),
        5 => user.probe(a),
        6..=10 => {
            let header = Header { id: request_id(user, what ^ x), ..header(user, step) };
            let payload: Vec<u8> = words(user, step).iter().flat_map(|word| word.to_le_bytes()).collect();
            peer.push(&header, payload.len(), |to| to.copy_from_slice(&payload));
        }
        11..=13 => {
            let header = Header { id: request_id(user, x), ..header(user, step) };
            peer.push(&header, count, |to| to.fill(0xA5));
        }
        14 => peer.drain(),
        _ => peer.write(u16::from_le_bytes([a, b]), u64::from_le_bytes([c, low, high, x, y, what, x, y])),
    }
}

/// What the launcher would put there.
fn environment(memory: &Memory, engine: u8) {
    let engine = ["chunks", "read", "halves", "auto"][usize::from(engine) % 4];
    for (name, value) in [
        (FD_VARIABLE, memory.segment().fd().to_string()),
        (RANK_VARIABLE, "0".to_owned()),
        (SIZE_VARIABLE, "2".to_owned()),
        (LAUNCHER_VARIABLE, std::process::id().to_string()),
        ("PERUSAL_COPY_ENGINE", engine.to_owned()),
    ] {
        // SAFETY: no other thread of this process looks at the environment.
        unsafe { std::env::set_var(name, value) };
    }
}

fn small_rings() {
    for (name, value) in [
        ("PERUSAL_RING_CELLS", "8"),
        ("PERUSAL_RING_BULK", "1024"),
        ("PERUSAL_EAGER_LIMIT", "100"),
        ("PERUSAL_SHARED_HEAP", "2097152"),
        ("PERUSAL_COPY_DIRECT_FROM", "1"),
        ("PERUSAL_COPY_SHARE_FROM", "300"),
    ] {
        // SAFETY: as in `environment`.
        unsafe { std::env::set_var(name, value) };
    }
}

fuzz_target!(|input: &[u8]| {
    // The first byte chooses the copy engine, and whether anybody listens.
    let Some((&first, steps)) = input.split_first() else { return };
    static ONCE: OnceLock<()> = OnceLock::new();
    ONCE.get_or_init(small_rings);
    let memory = Memory::create(2, 0).expect("memory for a small job");
    memory.roster().entry(1).arrive(1, sleeper()).expect("nobody else is rank 1");
    environment(&memory, first & 0x7F);
    let job = Job::from_environment().expect("a job").expect("launched");
    let mut buffers = Vec::new();
    // SAFETY: this thread is the only one.
    let engine = unsafe { Engine::new(job, false, Registry::new(Box::new(|text| panic!("{text}")))) }
        .expect("an engine");
    let comm = engine.open(Comm::world(0, 2, engine.registry().attach(0))).expect("the world");
    let mut peer = Hostile::new(&memory);
    let byte = Datatype::predefined(MPI_BYTE).expect("MPI_BYTE");
    let pairs = Datatype::vector(3, 2, 3, &byte).expect("a small type");
    // Every event has a listener, so that its record is made up from what the peer says.
    let counted = Arc::new(AtomicUsize::new(0));
    let listeners: Vec<Subscription> = CATALOG
        .iter()
        .filter(|row| first & 0x80 != 0 && row.binding == Binding::Communicator)
        .map(|row| {
            let counted = Arc::clone(&counted);
            let listen =
                move |what: &EventRecord<'_>| _ = counted.fetch_add(what.spec.buf as usize, Ordering::Relaxed);
            Subscription::new(&comm.events, row.event, listen).expect("a handle")
        })
        .collect();
    let mut user = User {
        engine: &engine,
        comm: &comm,
        types: [byte, pairs],
        buffers: &mut buffers,
        shared: 0,
        requests: Vec::new(),
        over: false,
    };
    for step in steps.as_chunks().0 {
        act(&mut user, &mut peer, *step);
        if user.over {
            break;
        }
    }
    for _ in 0..8 {
        if !user.over {
            user.probe(1);
        }
    }
    drop(listeners);
    drop(comm);
    drop(engine);
    drop(buffers);
});
