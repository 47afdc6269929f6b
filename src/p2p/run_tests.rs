//! Runs of small messages in one ring.

use super::tests::{byte, ranks, recv, send};
use crate::abi::MPI_BYTE;
use crate::datatype::Datatype;
use crate::error::Error;
use crate::p2p::{Mode, RecvBuf, Request};

/// Receives of one round, in the order of their messages.
const WINDOW: usize = 48;

/// Message `i` has `len(i)` bytes, all of them `i`.
fn len(i: usize) -> usize {
    if i % 12 == 5 { 64 } else { 8 }
}

fn room(i: usize) -> usize {
    if i % 12 == 3 { 4 } else { len(i) }
}

#[test]
fn a_run_of_messages_meets_odd_receives_on_its_way_and_counts_all_of_them() {
    let twos = Datatype::vector(4, 2, 4, byte()).expect("four pairs of bytes");
    for shared in [false, true] {
        ranks(2, shared, |engine, comm| {
            if comm.rank() == 0 {
                recv(engine, comm, 0, 1, 99).expect("they are posted");
                for i in 0..WINDOW {
                    send(engine, comm, &vec![i as u8; len(i)], 1, 1, Mode::Standard);
                    if i % 12 == 7 {
                        send(engine, comm, &[200; 8], 1, 2, Mode::Standard);
                    }
                }
                return;
            }
            let before = engine.telemetry().sum(|counts| counts.received.iter().map(|n| n.get()).sum());
            let mut places = vec![[255_u8; 64]; WINDOW];
            let post = |i: usize, place: &mut [u8; 64]| -> Request {
                let (count, datatype) = if i % 12 == 9 { (1, &twos) } else { (room(i), byte()) };
                let buf = RecvBuf::new(place.as_mut_ptr(), count, datatype, MPI_BYTE).expect("it fits");
                // SAFETY: the places live until all of the messages have come, below.
                unsafe { engine.irecv(comm, &buf, 0, 1) }.expect("post")
            };
            let requests: Vec<_> = places.iter_mut().enumerate().map(|(i, place)| post(i, place)).collect();
            let posted = || (engine.telemetry().posted_now(), comm.p2p().posted.get());
            assert_eq!(posted(), (WINDOW as u64, WINDOW as u64));
            (0..WINDOW).filter(|i| i % 12 == 11).for_each(|i| engine.free_request(requests[i]));
            send(engine, comm, &[], 0, 99, Mode::Standard);
            for i in (0..WINDOW).filter(|i| i % 12 != 11) {
                match engine.wait(requests[i]) {
                    Err(error) => assert_eq!((i % 12, error), (3, Error::Truncate { sent: 8, room: 4 })),
                    Ok(status) => {
                        assert_eq!((status.source, status.tag, status.bytes), (0, 1, len(i) as u64));
                    }
                }
            }
            // The last one's user has let go of it: what was sent behind it tells that it is there.
            for _ in 0..WINDOW / 12 {
                assert_eq!(recv(engine, comm, 8, 0, 2).expect("unexpected").0, [200; 8]);
            }
            while comm.p2p().posted.get() > 0 {
                engine.progress().poll_once().expect("progress");
            }
            assert_eq!(posted(), (0, 0));
            for (i, place) in places.iter().enumerate() {
                let filled = |at: usize| if i % 12 == 9 { at % 4 < 2 && at < 14 } else { at < room(i) };
                let expected: Vec<u8> = (0..64).map(|at| if filled(at) { i as u8 } else { 255 }).collect();
                assert_eq!(place[..], expected[..], "message {i}");
            }
            let after = engine.telemetry().sum(|counts| counts.received.iter().map(|n| n.get()).sum());
            assert_eq!(after - before, (WINDOW + WINDOW / 12) as u64);
        });
    }
}
