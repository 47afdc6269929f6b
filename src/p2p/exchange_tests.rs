//! Receives that begin before the rank sends, and what they leave in the ring.

use super::tests::{byte, open_rings, pattern, ranks, recv, send};
use crate::abi::MPI_BYTE;
use crate::comm::Comm;
use crate::engine::{Engine, Ref, Run};
use crate::p2p::{Mode, RecvBuf};
use std::sync::Barrier;

/// Begins a receive from rank 0 as MPI_Irecv does, on a communicator that nobody observes.
fn begin(engine: &Engine, comm: &Comm, to: &mut [u8], tag: i32) -> Ref {
    let run = Run { addr: to.as_mut_ptr(), bytes: to.len(), count: to.len(), handle: MPI_BYTE };
    // SAFETY: the caller keeps the memory, and waits for the receive.
    let begun = unsafe { engine.irecv_fast(comm, run, 0, tag) }.expect("the fast path");
    engine.requests().get(begun.get() as usize).expect("its request")
}

#[test]
fn a_receive_that_begins_takes_a_short_payload_and_leaves_a_longer_one_in_the_ring() {
    let sent = Barrier::new(2);
    ranks(2, false, |engine, comm| {
        open_rings(engine, comm);
        if comm.rank() == 0 {
            send(engine, comm, &pattern(40, 1), 1, 2, Mode::Standard);
            send(engine, comm, &pattern(41, 2), 1, 3, Mode::Standard);
            send(engine, comm, &pattern(9000, 3), 1, 4, Mode::Standard);
            sent.wait();
            return;
        }
        sent.wait();
        let (mut short, mut longer, mut long) = ([0; 40], [0; 41], vec![0; 9000]);
        let requests = [
            begin(engine, comm, &mut short, 2),
            begin(engine, comm, &mut longer, 3),
            begin(engine, comm, &mut long, 4),
        ];
        assert_eq!(requests.map(|request| request.state().is_complete()), [true, false, false]);
        assert_eq!(engine.telemetry().posted_now(), 2);
        for (request, bytes) in requests.into_iter().zip([40, 41, 9000]) {
            assert_eq!(engine.wait(request).expect("receive").bytes, bytes);
        }
        assert_eq!((&short[..], &longer[..]), (&pattern(40, 1)[..], &pattern(41, 2)[..]));
        assert_eq!(long, pattern(9000, 3));
    });
}

#[test]
fn a_wait_leaves_messages_behind_its_own_to_the_receives_that_come() {
    const BYTES: usize = 20_000;
    let sent = Barrier::new(2);
    ranks(2, false, |engine, comm| {
        if comm.rank() == 0 {
            recv(engine, comm, 0, 1, 1).expect("a receive is posted");
            for message in 0..3 {
                send(engine, comm, &pattern(BYTES, message), 1, 2, Mode::Standard);
            }
            sent.wait();
            return;
        }
        let mut place = vec![0; BYTES];
        let receive = |place: &mut Vec<u8>| {
            let buf = RecvBuf::new(place.as_mut_ptr(), BYTES, byte(), MPI_BYTE).expect("it fits");
            // SAFETY: the memory lives until the message has come.
            unsafe { engine.irecv(comm, &buf, 0, 2) }.expect("post")
        };
        let first = receive(&mut place);
        send(engine, comm, &[], 0, 1, Mode::Standard);
        sent.wait();
        let mut next = Some(first);
        for message in 0..3 {
            let request = next.take().unwrap_or_else(|| receive(&mut place));
            engine.wait(request).expect("receive");
            assert_eq!(place, pattern(BYTES, message));
            assert_eq!(
                engine.telemetry().unexpected_now(),
                0,
                "it was copied twice, behind message {message}"
            );
        }
    });
}
