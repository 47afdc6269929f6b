//! A reader finds what was recorded, from any number of threads, up to the limit and no further.

use crate::clock;
use crate::events::{CollRoot, Collective, Spec};
use crate::events::{Event, EventPayload, EventRecord, Operation, Registry};
use crate::trace::format::TraceHeader;
use crate::trace::testing::ScratchFile;
use crate::trace::{self, Recording, Trace, file, format};
use std::sync::Arc;

const SPEC: Spec = Spec { peer: 3, tag: -7, bytes: 1 << 40, operation: Operation::Recv, ..Spec::NOTHING };

fn registry() -> Arc<Registry> {
    Registry::new(Box::new(|text| panic!("{text}")))
}

fn trace_header(units: u64) -> TraceHeader {
    let base = clock::read();
    TraceHeader {
        ranks: 2,
        limit: units * format::UNIT,
        base_ticks: base.ticks,
        base_nanoseconds: base.nanoseconds,
        ticks_per_second: clock::source().ticks_per_second,
        ..TraceHeader::default()
    }
}

/// A trace that allows so many units, and a recording of rank 1 in it.
fn begin(name: &str, units: u64) -> (ScratchFile, Arc<Registry>, Recording) {
    let scratch = ScratchFile::new(name);
    file::create(scratch.path(), &trace_header(units)).expect("made");
    let registry = registry();
    let recording = Recording::start(scratch.path(), 1, &registry).expect("started");
    (scratch, registry, recording)
}

fn read(scratch: &ScratchFile) -> Trace {
    trace::read(scratch.path()).expect("a trace")
}

#[test]
fn what_is_recorded_is_read_back() {
    let (scratch, registry, recording) = begin("recorded", 4);
    let comm = registry.attach(0x1234);
    comm.emit(&EventRecord { context: 6, ..EventRecord::new(Event::MsgArrived, 1 << 40, &SPEC) });
    let found = EventPayload::Search { depth: 9, hit: true };
    comm.emit(&EventRecord {
        context: 6,
        payload: found,
        ..EventRecord::new(Event::SearchPostedQEnd, 5, &SPEC)
    });
    let group: Vec<u32> = (0..50).collect();
    let made = EventPayload::Comm { size: 50, group: &group };
    registry.emit(&EventRecord { context: 8, ..EventRecord::of_engine(Event::CommCreated, made) });
    let name = "a communicator with a long name, as people give them";
    registry.emit(&EventRecord {
        context: 8,
        ..EventRecord::of_engine(Event::CommNamed, EventPayload::Name(name))
    });
    registry.emit(&EventRecord { context: 8, ..EventRecord::of_engine(Event::CommFreed, made) });
    let operation = Collective::Bcast as u16;
    let begin = EventPayload::Coll { operation, root: CollRoot::default(), algorithm: 2, mode: 1, bytes: 77 };
    comm.emit(&EventRecord {
        context: 6,
        payload: begin,
        ..EventRecord::new(Event::CollBegin, 9, &Spec::NOTHING)
    });
    registry.emit(&EventRecord::of_engine(Event::Finalizing, EventPayload::None));
    drop(recording);
    registry.emit(&EventRecord::of_engine(Event::Finalizing, EventPayload::None));

    let trace = read(&scratch);
    // Names and groups lie in further records, which count for none.
    let tally = trace::tally(scratch.path()).expect("a trace");
    assert_eq!((tally.records, trace.len(), tally.recorded), (7, 7, 1));
    assert!(trace.ranks[0].records.is_empty() && trace.ranks[0].pid == 0);
    let rank = &trace.ranks[1];
    assert!(rank.complete && rank.unreadable == 0 && rank.records.len() == 7, "{rank:?}");
    let first = rank.records[0];
    assert_eq!((first.event, first.id, first.context), (Event::MsgArrived, 1 << 40, 6));
    assert_eq!((first.peer, first.tag, first.bytes, first.send), (3, -7, 1 << 40, false));
    assert_eq!(rank.records[1].payload, trace::RecordPayload::Search { depth: 9, hit: true });
    let comm = rank.communicator(8, u64::MAX).expect("created");
    assert_eq!((&comm.group[..], comm.name.as_str()), (group.as_slice(), name));
    assert!(comm.freed.is_some());
    assert_eq!(
        rank.records[5].payload,
        trace::RecordPayload::Coll { operation, root: CollRoot::default(), algorithm: 2, mode: 1, bytes: 77 }
    );
    assert_eq!(rank.records[5].bytes, 77);
}

#[test]
fn threads_write_streams_of_their_own_and_hand_them_on() {
    let (scratch, registry, recording) = begin("threads", 64);
    let comm = registry.attach(1);
    let both = std::sync::Barrier::new(2);
    for _ in 0..5 {
        std::thread::scope(|scope| {
            let write = |thread: isize| {
                let (comm, both) = (&comm, &both);
                scope.spawn(move || {
                    both.wait();
                    for k in 0..3000 {
                        comm.emit(&EventRecord::new(Event::ReqActivate, thread * 10_000 + k, &SPEC));
                    }
                    both.wait();
                })
            };
            // A scope ends before what its threads keep for themselves is dropped,
            // where streams are handed on; a join does not.
            for thread in [0, 1].map(write) {
                thread.join().expect("a thread that writes");
            }
        });
    }
    drop(recording);
    let trace = read(&scratch);
    let rank = &trace.ranks[1];
    assert_eq!((rank.streams, rank.records.len(), rank.dropped), (2, 30_000, 0));
    let mut counts = std::collections::BTreeMap::<u64, u32>::new();
    rank.records.iter().for_each(|record| *counts.entry(record.id).or_default() += 1);
    assert!(counts.len() == 6000 && counts.values().all(|count| *count == 5));
}

#[test]
fn records_and_drops_together_are_what_happened() {
    for units in [0, 1, 2, 3, 5] {
        let (scratch, registry, recording) = begin("drops", units);
        let comm = registry.attach(1);
        let happened = 12_345;
        for id in 0..happened {
            comm.emit(&EventRecord::new(Event::ReqActivate, id, &SPEC));
        }
        drop(recording);
        let rank = read(&scratch).ranks.remove(1);
        assert_eq!(rank.records.len() as u64 + rank.dropped, happened as u64, "{units} units");
        let room = units * (format::UNIT - format::WINDOW_HEADER) / format::RECORD;
        assert!(rank.records.len() as u64 >= room.min(happened as u64), "{units} units");
        assert!(rank.records.iter().zip(0..).all(|(record, id)| record.id == id), "the first are kept");
        assert_eq!(rank.stopped_by, 0);
    }
}

#[test]
fn a_thread_may_serve_two_recorders_in_turn() {
    let (scratch, registry, recording) = begin("one", 64);
    let (other_scratch, other_registry, other_recording) = begin("other", 64);
    let (comm, other) = (registry.attach(1), other_registry.attach(1));
    for id in 0..5000 {
        comm.emit(&EventRecord::new(Event::ReqActivate, id, &SPEC));
        other.emit(&EventRecord::new(Event::ReqComplete, id, &SPEC));
    }
    drop((recording, other_recording));
    for (scratch, event) in [(scratch, Event::ReqActivate), (other_scratch, Event::ReqComplete)] {
        let rank = read(&scratch).ranks.remove(1);
        assert_eq!((rank.streams, rank.records.len()), (1, 5000));
        assert!(rank.records.iter().zip(0..).all(|(record, id)| record.id == id && record.event == event));
    }
}

#[test]
fn times_are_those_of_the_clock() {
    let (scratch, registry, recording) = begin("times", 4);
    let comm = registry.attach(1);
    let before = crate::clock::now();
    comm.emit(&EventRecord::new(Event::ReqActivate, 1, &SPEC));
    std::thread::sleep(core::time::Duration::from_millis(60));
    comm.emit(&EventRecord::new(Event::ReqComplete, 1, &SPEC));
    let after = crate::clock::now();
    drop(recording);
    let duration = read(&scratch).job.duration;
    assert!(duration >= 59_000_000 && duration <= (after - before) * 101 / 100, "{duration}");
}

#[test]
fn a_trace_is_made_opened_filled_to_its_limit_and_ended() {
    let scratch = ScratchFile::new("limit");
    let trace_header = TraceHeader { ranks: 2, limit: 3 * format::UNIT, ..TraceHeader::default() };
    file::create(scratch.path(), &trace_header).expect("made");
    let old = file::Store::open(scratch.path(), 0).expect("opened");
    let old_stage = old.stage().expect("within the limit");
    file::create(scratch.path(), &trace_header).expect("made again, over the old one");
    // SAFETY: mapped; a file that had become shorter would end the process here.
    assert_eq!(unsafe { old_stage.as_ptr().read_volatile() }, 0, "who still writes the old one can");
    assert!(file::Store::open(scratch.path(), 2).is_err());
    let store = file::Store::open(scratch.path(), 1).expect("opened");
    let stage = store.stage().expect("within the limit");
    (0..2).for_each(|_| store.keep(&stage).expect("within the limit"));
    assert!(matches!(store.keep(&stage), Err(file::WindowError::Limit)));
    let other = file::Store::open(scratch.path(), 0).expect("opened");
    other.stage().expect("a limit for each rank");
    other.drop_event(3);
    other.finalized();
    file::finish(scratch.path(), 7).expect("ended");
    let trace = trace::read(scratch.path()).expect("a trace");
    assert_eq!((trace.job.status, trace.dropped()), (Some(7), 1));
    assert_eq!([trace.ranks[0].complete, trace.ranks[1].complete], [true, false]);
    assert_eq!(trace.ranks[1].pid, std::process::id());
}
