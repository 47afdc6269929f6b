//! Messages that probes find.

use super::tests::{open_rings, pattern, ranks, recv, send};
use crate::abi::{MPI_ANY_SOURCE, MPI_ANY_TAG};
use crate::p2p::Mode;
use std::sync::Barrier;

#[test]
fn what_a_probe_finds_stays_in_the_ring_until_it_is_received() {
    let sent = Barrier::new(2);
    ranks(2, false, |engine, comm| {
        open_rings(engine, comm);
        if comm.rank() == 0 {
            send(engine, comm, &pattern(100, 3), 1, 9, Mode::Standard);
            send(engine, comm, &pattern(5, 4), 1, 10, Mode::Standard);
            send(engine, comm, &pattern(9000, 5), 1, 9, Mode::Standard);
            sent.wait();
            return;
        }
        sent.wait();
        let unexpected = || engine.telemetry().unexpected_now();
        let probe = |source, tag| {
            let status = engine.iprobe(comm, source, tag).expect("probe").expect("it is there");
            (status.source, status.tag, status.bytes)
        };
        for (source, tag) in [(0, 9), (0, MPI_ANY_TAG), (MPI_ANY_SOURCE, 9), (MPI_ANY_SOURCE, MPI_ANY_TAG)] {
            assert_eq!(probe(source, tag), (0, 9, 100));
        }
        assert_eq!(engine.probe(comm, 0, 9).expect("probe").bytes, 100);
        assert_eq!(unexpected(), 0, "it lies in the ring");
        assert_eq!(recv(engine, comm, 100, 0, 9).expect("receive").0, pattern(100, 3));
        assert_eq!(unexpected(), 0);
        // The first with that tag lies behind one with another tag: both are put aside.
        assert_eq!(probe(0, 9), (0, 9, 9000));
        assert!(unexpected() >= 2);
        assert_eq!(probe(MPI_ANY_SOURCE, MPI_ANY_TAG), (0, 10, 5), "the oldest");
        assert_eq!(recv(engine, comm, 9000, MPI_ANY_SOURCE, 9).expect("receive").0, pattern(9000, 5));
        assert_eq!(recv(engine, comm, 5, 0, 10).expect("receive").0, pattern(5, 4));
        assert!(engine.iprobe(comm, MPI_ANY_SOURCE, MPI_ANY_TAG).expect("probe").is_none());
    });
}
