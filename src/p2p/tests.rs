//! Engines as threads of one process, talking to each other through the C-free interface.

use super::*;
use crate::abi::{MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_BYTE};
use crate::comm::Comm;
use crate::datatype::Datatype;
use crate::engine::{Engine, Mode};
use crate::error::Error;
use crate::events::Registry;
use crate::limits::rounds;
use crate::shm::Job;
use std::io::Write;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Runs what `rank` does in `test`. If that panics the process ends: the other ranks would wait for this one for ever.
/// The harness has captured what the panic has said, so that is said again.
fn run_rank<R>(test: &str, rank: u32, body: impl FnOnce() -> R) -> R {
    catch_unwind(AssertUnwindSafe(body)).unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().map(String::as_str);
        let text = text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("no text");
        let _ = writeln!(std::io::stderr(), "{test}: rank {rank} of a job of threads panicked: {text}");
        std::process::exit(101)
    })
}

/// Runs `body` on `n` ranks, each a thread, and gives back what they return. A rank that panics ends the process.
pub(crate) fn ranks<R: Send>(n: u32, shared: bool, body: impl Fn(&Engine, &Comm) -> R + Sync) -> Vec<R> {
    let jobs = Job::threads(n).expect("memory");
    std::thread::scope(|scope| {
        let threads: Vec<_> = jobs
            .into_iter()
            .map(|job| {
                let body = &body;
                let test = std::thread::current().name().unwrap_or("a test").to_owned();
                scope.spawn(move || {
                    // SAFETY: each engine is used by its own thread, or `shared` is true.
                    let engine =
                        unsafe { Engine::new(job, shared, Registry::new(Box::new(|text| panic!("{text}")))) }
                            .expect("engine");
                    let comm = Comm::world(engine.rank(), engine.size(), engine.registry().attach(0));
                    let comm = engine.open(comm).expect("world");
                    let result = run_rank(&test, engine.rank(), || body(&engine, &comm));
                    // Nobody leaves while another one may still talk to it.
                    for peer in 0..engine.size() as i32 {
                        // SAFETY: no bytes.
                        unsafe { engine.coll_send(&comm, core::ptr::null(), 0, peer, 99, Mode::Standard) }
                            .expect("goodbye");
                    }
                    for peer in 0..engine.size() as i32 {
                        // SAFETY: no bytes.
                        unsafe {
                            engine.coll_recv(&comm, core::ptr::null_mut(), 0, peer, 99, Mode::Standard)
                        }
                        .expect("goodbye");
                    }
                    result
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().expect("a rank failed")).collect()
    })
}

/// Opens the rings between ranks 0 and 1: each has a message from the other. Rank 0 goes on when rank 1 polls no more.
pub(super) fn open_rings(engine: &Engine, comm: &Comm) {
    if comm.rank() == 0 {
        send(engine, comm, b"open", 1, 1, Mode::Standard);
        recv(engine, comm, 0, 1, 1).expect("the answer");
    } else {
        recv(engine, comm, 4, 0, 1).expect("the first message");
        send(engine, comm, &[], 0, 1, Mode::Standard);
    }
}

pub(super) fn byte() -> &'static Datatype {
    Datatype::predefined_ref(MPI_BYTE).expect("MPI_BYTE")
}

pub(super) fn send(engine: &Engine, comm: &Comm, data: &[u8], dest: i32, tag: i32, mode: Mode) {
    let buf = SendBuf::new(data.as_ptr(), data.len(), byte(), MPI_BYTE).expect("it fits");
    // SAFETY: a live slice.
    unsafe { engine.send(comm, &buf, dest, tag, mode) }.expect("send");
}

pub(super) fn recv(
    engine: &Engine,
    comm: &Comm,
    room: usize,
    source: i32,
    tag: i32,
) -> Result<(Vec<u8>, MessageStatus), Error> {
    let mut data = vec![0; room];
    let buf = RecvBuf::new(data.as_mut_ptr(), room, byte(), MPI_BYTE).expect("it fits");
    // SAFETY: a live vector.
    let status = unsafe { engine.recv(comm, &buf, source, tag) }?;
    data.truncate(status.bytes as usize);
    Ok((data, status))
}

#[test]
fn a_wait_for_a_lone_receive_takes_its_own_message_and_leaves_the_others_theirs() {
    for source in [0, MPI_ANY_SOURCE] {
        ranks(2, false, |engine, comm| {
            if comm.rank() == 0 {
                for round in 0..rounds(100) {
                    recv(engine, comm, 0, 1, 5).expect("it is posted");
                    if round % 3 == 0 {
                        send(engine, comm, &[1; 8], 1, 1, Mode::Standard);
                    }
                    let (len, mode) =
                        if round % 5 == 0 { (64, Mode::Synchronous) } else { (8, Mode::Standard) };
                    send(engine, comm, &vec![2; len], 1, 2, mode);
                }
                return;
            }
            for round in 0..rounds(100) {
                let mut place = [0_u8; 64];
                let buf = RecvBuf::new(place.as_mut_ptr(), 64, byte(), MPI_BYTE).expect("it fits");
                // SAFETY: the place lives until the message has come, below.
                let request = unsafe { engine.irecv(comm, &buf, source, 2) }.expect("post");
                send(engine, comm, &[], 0, 5, Mode::Standard);
                let status = engine.wait(request).expect("wait");
                let len = if round % 5 == 0 { 64 } else { 8 };
                assert_eq!((status.source, status.tag, status.bytes), (0, 2, len));
                assert!(place.iter().enumerate().all(|(at, &got)| got == 2 * u8::from(at < len as usize)));
                assert_eq!((engine.telemetry().posted.now.get(), comm.p2p().posted.get()), (0, 0));
                if round % 3 == 0 {
                    assert_eq!(recv(engine, comm, 8, source, 1).expect("unexpected").0, [1; 8]);
                }
            }
        });
    }
}

/// Bytes that repeat at no distance at which a message is divided.
pub(super) fn pattern(len: usize, seed: u8) -> Vec<u8> {
    let period: Vec<u8> = (0..=250_u8).map(|i| i.wrapping_mul(31).wrapping_add(seed)).collect();
    let mut bytes = period.repeat(len / period.len() + 1);
    bytes.truncate(len);
    bytes
}

const SIZES: [usize; 12] = [0, 1, 8, 40, 41, 64, 1000, 16 << 10, (16 << 10) + 1, 100_000, 1 << 20, 3_000_001];

/// The largest are for memory that the processor copies.
fn sizes() -> impl Iterator<Item = usize> {
    SIZES.into_iter().filter(|size| !cfg!(miri) || *size <= 100_000)
}

#[test]
fn every_size_arrives_in_every_mode_expected_or_not() {
    ranks(2, false, |engine, comm| {
        let mut memory = vec![0_u8; if cfg!(miri) { 1 << 18 } else { 1 << 23 }];
        engine.buffers().attach(memory.as_mut_ptr(), memory.len()).expect("first");
        for mode in [Mode::Standard, Mode::Synchronous, Mode::Ready, Mode::Buffered] {
            for (i, size) in sizes().enumerate() {
                let tag = i as i32;
                if comm.rank() == 0 {
                    send(engine, comm, &pattern(size, i as u8), 1, tag, mode);
                } else {
                    let (data, status) = recv(engine, comm, size, 0, tag).expect("receive");
                    assert!(data == pattern(size, i as u8), "{size} bytes, {mode:?}");
                    assert_eq!((status.source, status.tag, status.bytes), (0, tag, size as u64));
                }
            }
        }
        engine.detach_buffer(engine.buffers()).expect("idle");
    });
}

#[test]
fn strided_blocks_that_are_too_many_for_the_ring_go_through_it_in_chunks() {
    const BLOCKS: usize = 300;
    let strided = Datatype::vector(BLOCKS, 1000, 1001, byte()).expect("blocks of bytes");
    ranks(2, false, |engine, comm| {
        let mut memory = vec![0; 1001 * BLOCKS];
        if comm.rank() == 0 {
            memory.copy_from_slice(&pattern(1001 * BLOCKS, 5));
            let buf = SendBuf::new(memory.as_ptr(), 1, &strided, MPI_BYTE).expect("it fits");
            // SAFETY: a live vector.
            return unsafe { engine.send(comm, &buf, 1, 3, Mode::Standard) }.expect("send");
        }
        let buf = RecvBuf::new(memory.as_mut_ptr(), 1, &strided, MPI_BYTE).expect("it fits");
        // SAFETY: a live vector.
        let status = unsafe { engine.recv(comm, &buf, 0, 3) }.expect("receive");
        assert_eq!(status.bytes, 1000 * BLOCKS as u64);
        let mut expected = pattern(1001 * BLOCKS, 5);
        expected.iter_mut().skip(1000).step_by(1001).for_each(|gap| *gap = 0);
        let wrong = memory.iter().zip(&expected).position(|(byte, expected)| byte != expected);
        assert_eq!(wrong, None, "the first byte that is wrong");
    });
}

#[test]
fn a_rank_talks_to_itself() {
    ranks(1, false, |engine, comm| {
        for size in sizes() {
            let data = pattern(size, 1);
            let mut got = vec![0; size];
            let buf = RecvBuf::new(got.as_mut_ptr(), size, byte(), MPI_BYTE).expect("it fits");
            // SAFETY: lives until the wait.
            let posted = unsafe { engine.irecv(comm, &buf, 0, 5) }.expect("post");
            send(engine, comm, &data, 0, 5, Mode::Standard);
            engine.wait(posted).expect("receive");
            assert!(got == data, "{size} bytes");
            let buf = SendBuf::new(data.as_ptr(), size, byte(), MPI_BYTE).expect("it fits");
            // SAFETY: lives until the wait.
            let sent = unsafe { engine.isend(comm, &buf, 0, 6, Mode::Standard) }.expect("send");
            let got = recv(engine, comm, size, MPI_ANY_SOURCE, MPI_ANY_TAG).expect("receive").0;
            assert!(got == data, "{size} bytes");
            engine.wait(sent).expect("sent");
        }
    });
}

#[test]
fn a_message_that_does_not_fit_is_an_error_and_the_sender_goes_on() {
    ranks(2, false, |engine, comm| {
        for size in [10, 1000, 100_000] {
            if comm.rank() == 0 {
                send(engine, comm, &pattern(size, 0), 1, 1, Mode::Standard);
            } else {
                let error = recv(engine, comm, 5, 0, 1).unwrap_err();
                assert_eq!(error, Error::Truncate { sent: size as u64, room: 5 });
            }
        }
    });
}

#[test]
fn messages_do_not_overtake_each_other_however_full_the_ring() {
    const MESSAGES: u32 = rounds(20_000) as u32;
    ranks(3, false, |engine, comm| {
        if comm.rank() > 0 {
            for i in 0..MESSAGES {
                send(engine, comm, &i.to_le_bytes(), 0, 7, Mode::Standard);
            }
            return;
        }
        let mut next = [0_u32; 3];
        for _ in 0..2 * MESSAGES {
            let (data, status) = recv(engine, comm, 4, MPI_ANY_SOURCE, 7).expect("receive");
            let i = u32::from_le_bytes(data.try_into().expect("four bytes"));
            assert_eq!(i, next[status.source as usize], "from {}", status.source);
            next[status.source as usize] += 1;
        }
    });
}

#[test]
fn probes_see_what_a_receive_would_get() {
    ranks(2, false, |engine, comm| {
        if comm.rank() == 0 {
            send(engine, comm, &pattern(100, 3), 1, 9, Mode::Standard);
            send(engine, comm, &pattern(50_000, 4), 1, 10, Mode::Standard);
            return;
        }
        let status = engine.probe(comm, MPI_ANY_SOURCE, MPI_ANY_TAG).expect("probe");
        assert_eq!((status.tag, status.bytes), (9, 100));
        let message = engine.mprobe(comm, 0, 10).expect("mprobe");
        assert_eq!(message.status().bytes, 50_000);
        assert!(engine.iprobe(comm, 0, 10).expect("iprobe").is_none(), "a matched probe takes it away");
        let mut got = vec![0; 50_000];
        let buf = RecvBuf::new(got.as_mut_ptr(), got.len(), byte(), MPI_BYTE).expect("it fits");
        // SAFETY: lives until the wait.
        let request = unsafe { engine.imrecv(&buf, &mut Some(message)) }.expect("imrecv");
        engine.wait(request).expect("receive");
        assert!(got == pattern(50_000, 4));
        assert_eq!(recv(engine, comm, 100, 0, 9).expect("receive").0, pattern(100, 3));
    });
}

#[test]
fn what_is_cancelled_in_time_does_not_happen() {
    ranks(2, false, |engine, comm| {
        for size in [4, 1000, 100_000] {
            if comm.rank() == 0 {
                let data = pattern(size, 0);
                let buf = SendBuf::new(data.as_ptr(), size, byte(), MPI_BYTE).expect("it fits");
                // SAFETY: lives until the wait.
                let request = unsafe { engine.isend(comm, &buf, 1, 1, Mode::Standard) }.expect("send");
                engine.cancel(request).expect("cancel");
                assert!(engine.wait(request).expect("wait").cancelled, "nobody had received it");
                send(engine, comm, b"next", 1, 2, Mode::Standard);
                assert_eq!(recv(engine, comm, 4, 1, 3).expect("receive").0, b"look");
            } else {
                let mut got = [0_u8; 4];
                let buf = RecvBuf::new(got.as_mut_ptr(), 4, byte(), MPI_BYTE).expect("it fits");
                // SAFETY: lives until the wait.
                let request = unsafe { engine.irecv(comm, &buf, 0, 77) }.expect("post");
                engine.cancel(request).expect("cancel");
                assert!(engine.wait(request).expect("wait").cancelled);
                assert_eq!(recv(engine, comm, 4, 0, 2).expect("receive").0, b"next");
                assert!(engine.iprobe(comm, 0, 1).expect("probe").is_none(), "the sender took it back");
                // Only now: the next message may be seen before it is taken back.
                send(engine, comm, b"look", 0, 3, Mode::Standard);
            }
        }
    });
}

#[test]
fn threads_of_one_rank_send_and_receive_at_once() {
    const MESSAGES: u32 = rounds(2_000) as u32;
    ranks(2, true, |engine, comm| {
        std::thread::scope(|scope| {
            let threads = [0, 1, 2_i32].map(|thread| {
                scope.spawn(move || {
                    for i in 0..MESSAGES {
                        let size = if i % 50 == 0 { 50_000 } else { 12 };
                        let mine = pattern(size, (i as u8).wrapping_add(thread as u8));
                        if (i + comm.rank()) % 2 == 0 {
                            send(engine, comm, &mine, 1 - comm.rank() as i32, thread, Mode::Standard);
                            assert!(
                                recv(engine, comm, size, 1 - comm.rank() as i32, thread).expect("receive").0
                                    == mine
                            );
                        } else {
                            assert!(
                                recv(engine, comm, size, 1 - comm.rank() as i32, thread).expect("receive").0
                                    == mine
                            );
                            send(engine, comm, &mine, 1 - comm.rank() as i32, thread, Mode::Standard);
                        }
                    }
                })
            });
            threads.into_iter().for_each(|thread| thread.join().unwrap());
        });
    });
}
