//! What the reader makes of sound, torn and spoiled files.

use super::super::format::{TraceHeader, window};
use super::super::synthetic::{Synthetic, SyntheticMessage};
use super::*;

fn two_messages() -> Synthetic {
    let mut job = Synthetic::new(2);
    job.message(&SyntheticMessage {
        from: 0,
        to: 1,
        tag: 7,
        bytes: 64,
        sent: 1000,
        posted: 9000,
        ..SyntheticMessage::default()
    });
    job.message(&SyntheticMessage {
        from: 0,
        to: 1,
        tag: 8,
        bytes: 65,
        sent: 2000,
        posted: 500,
        ..SyntheticMessage::default()
    });
    job
}

#[test]
fn times_count_from_the_first_record_of_the_job() {
    let trace = two_messages().trace();
    assert_eq!(trace.ranks[1].records[0].when, 0, "rank 1 posts its receive first");
    assert_eq!(trace.ranks[0].records[0].when, 500);
    assert_eq!(trace.job.duration, 9000 + 2 * Synthetic::STEP - 500);
    assert!(trace.ranks.iter().all(|rank| rank.records.is_sorted_by_key(|record| record.when)));
}

#[test]
fn queue_lengths_stand_beside_every_record() {
    let trace = two_messages().trace();
    let rank = &trace.ranks[1];
    assert_eq!((rank.posted_high, rank.unexpected_high), (1, 1));
    let after = |event: Event| {
        let record = rank.records.iter().find(|record| record.event == event).expect("happened");
        (record.posted, record.unexpected)
    };
    assert_eq!(after(Event::ReqInsertInPostedQ), (1, 0));
    assert_eq!(after(Event::MsgInsertInUnexQ), (1, 1));
    assert_eq!(after(Event::ReqRemoveFromPostedQ), (0, 1));
    assert_eq!(after(Event::MsgRemoveFromUnexQ), (0, 0));
}

#[test]
fn what_stands_in_the_header_and_the_rank_blocks_is_told() {
    let mut job = two_messages();
    job.trace_header().cpus = vec!["0-3,8".into(), String::new()];
    job.drop_events(1, 12).kill(0).ended(Some(9));
    let trace = job.trace();
    let JobInfo { command, host, status, .. } = &trace.job;
    assert_eq!((command.as_str(), host.as_str(), *status), ("synthetic", "nowhere", Some(9)));
    assert_eq!(trace.job.version, env!("CARGO_PKG_VERSION"));
    assert_eq!([&trace.ranks[0].cpus, &trace.ranks[1].cpus], ["0-3,8", ""]);
    assert_eq!((trace.dropped(), trace.ranks[1].dropped), (12, 12));
    assert_eq!((trace.ranks[0].complete, trace.ranks[1].complete), (false, true));
    assert_eq!(job.ended(None).trace().job.status, None);
}

#[test]
fn payloads_read_back_as_they_were_recorded() {
    let payloads = [
        (Event::SearchUnexQEnd, RecordPayload::Search { depth: 9, hit: true }),
        (Event::ReqRemoveFromPostedQ, RecordPayload::Cancelled),
        (
            Event::CollBegin,
            RecordPayload::Coll {
                operation: 3,
                root: crate::events::CollRoot(Some(5)),
                algorithm: 2,
                mode: 1,
                bytes: 7,
            },
        ),
        (Event::CopyEnd, RecordPayload::Copy { engine: 4, bytes: 9, peer: 3 }),
        (Event::BellSleep, RecordPayload::Sleep { waiting: 1, peer: 2 }),
        (Event::RingFull, RecordPayload::Ring { peer: 1, waiting: 77 }),
        (Event::ErrhandlerInvoked, RecordPayload::Error { class: 15, code: -3 }),
        (Event::Placed, RecordPayload::Placement { cpu: 5, policy: 1 }),
    ];
    let mut job = Synthetic::new(1);
    for (when, (event, payload)) in (0..).zip(payloads) {
        job.push(0, when, &Record { payload, ..Synthetic::record(event, 1) });
    }
    let read: Vec<_> =
        job.trace().ranks[0].records.iter().map(|record| (record.event, record.payload)).collect();
    assert_eq!(read, payloads);
}

#[test]
fn sizes_and_times_that_cannot_be_are_left_out_and_counted() {
    let mut job = Synthetic::new(1);
    for (when, bytes) in
        [(10, 8), (20, 1 << 47), (30, (1 << 47) + 1), ((1 << 53) + 1, 8), (40, u64::MAX), (50, 9)]
    {
        job.push(0, when, &Record { bytes, ..Synthetic::record(Event::ReqActivate, 1) });
    }
    let rank = &job.trace().ranks[0];
    assert_eq!(rank.records.iter().map(|record| record.bytes).collect::<Vec<_>>(), [8, 1 << 47, 9]);
    assert_eq!((rank.records[2].when, rank.unreadable), (40, 3));
}

/// A header may claim many ranks where the file is a hole: memory goes by what the file holds.
#[test]
fn what_is_kept_for_ranks_that_are_claimed_goes_by_their_number_and_not_by_its_square() {
    const RANKS: u32 = 20_000;
    let mut bytes = TraceHeader { ranks: RANKS, ..TraceHeader::default() }.bytes();
    let nobody = read_bytes(&bytes).expect("a header");
    assert!(nobody.ranks.iter().all(|rank| rank.communicators.is_empty()));
    for rank in 0..RANKS {
        let at = format::HEADER + u64::from(rank) * format::RANK_BLOCK;
        format::put_u32(&mut bytes, at + format::rank::PID, 1000 + rank);
    }
    let trace = read_bytes(&bytes).expect("a header");
    let world = |rank: &RankTrace| rank.communicator(0, 0).expect("the world").group.clone();
    let first = world(&trace.ranks[0]);
    assert_eq!(first.len(), RANKS as usize);
    assert!(trace.ranks.iter().all(|rank| Arc::ptr_eq(&world(rank), &first)));
}

#[test]
fn a_group_that_fills_many_records_is_whole() {
    let group: Vec<u32> = (0..300).rev().collect();
    let mut job = Synthetic::new(300);
    job.communicator(10, 6, "the ones in reverse", &group);
    job.push(7, 90, &Record { context: 6, ..Synthetic::record(Event::CommFreed, 0) });
    let trace = job.trace();
    let comm = trace.ranks[7].communicator(6, 50).expect("made");
    assert_eq!((&comm.group[..], comm.name.as_str()), (group.as_slice(), "the ones in reverse"));
    assert_eq!((comm.created, comm.freed), (0, Some(80)));
    assert_eq!(trace.ranks[7].communicator(0, 50).expect("the world").group.len(), 300);
    assert_eq!(trace.ranks[7].unreadable, 0);
}

#[test]
fn streams_of_a_rank_are_put_together_by_time() {
    let mut job = Synthetic::new(1);
    for when in 0..5000 {
        let stream = u16::from(when % 3 == 0);
        job.push(0, when, &Record { stream, ..Synthetic::record(Event::ReqActivate, when + 1) });
    }
    let trace = job.trace();
    let rank = &trace.ranks[0];
    assert_eq!((rank.streams, rank.records.len()), (2, 5000));
    assert!((1..).zip(&rank.records).all(|(id, record)| record.id == id && record.when == id - 1));
}

#[test]
fn a_file_cut_anywhere_is_an_error_or_a_shorter_trace() {
    let mut job = two_messages();
    job.communicator(50, 6, "pair", &[1, 0]);
    let whole = job.bytes();
    let all = job.trace().len();
    let mut lengths = Vec::new();
    for end in (0..whole.len()).step_by(37).chain([whole.len()]) {
        match read_bytes(&whole[..end]) {
            Ok(trace) => lengths.push(trace.len()),
            Err(error) => assert!(error.to_string().contains("trace"), "{error}"),
        }
    }
    assert!(lengths.is_sorted(), "{lengths:?}");
    assert_eq!((lengths.first(), lengths.last()), (Some(&0), Some(&all)));
}

#[test]
fn spoiled_records_are_left_out_and_counted() {
    let sound = two_messages();
    let mut bytes = sound.bytes();
    let first = (format::windows_begin(2) + format::WINDOW_HEADER) as usize;
    bytes[first] = 200;
    let [low, high] = format::CONTINUATION.to_le_bytes();
    let second = first + format::RECORD as usize;
    bytes[second] = low;
    bytes[second + 1] |= high;
    let trace = read_bytes(&bytes).expect("a sound header");
    assert_eq!(trace.ranks[0].unreadable, 2);
    assert_eq!(trace.len() + 2, sound.trace().len());
}

#[test]
fn a_window_whose_taker_died_at_once_is_skipped() {
    let job = two_messages();
    let mut bytes = job.bytes();
    let begin = format::windows_begin(2) as usize;
    bytes.splice(begin..begin, vec![0; 2 * format::UNIT as usize]);
    assert_eq!(read_bytes(&bytes).expect("sound"), job.trace());
}

#[test]
fn a_long_trace_is_timed_by_its_own_windows() {
    // The header says one tick is a nanosecond; the windows say that in truth it was 0.95.
    let mut job = Synthetic::new(1);
    job.push(0, 200_000_000, &Synthetic::record(Event::ReqActivate, 1));
    job.push(0, 300_000_000, &Synthetic::record(Event::ReqComplete, 1));
    let mut bytes = job.bytes();
    let at = format::windows_begin(1);
    format::put_u64(&mut bytes, at + window::TICKS, 200_000_000);
    format::put_u64(&mut bytes, at + window::NANOSECONDS, 190_000_000);
    assert_eq!(read_bytes(&bytes).expect("sound").job.duration, 95_000_000);
    format::put_u64(&mut bytes, at + window::NANOSECONDS, 19_000_000_000);
    assert_eq!(read_bytes(&bytes).expect("sound").job.duration, 100_000_000, "clocks of two worlds");
}

#[test]
fn a_moment_is_read_on_both_clocks_or_not_at_all() {
    // What the three stores of a window that is opened again leave, one after the other (trace rule 5), and what three
    // looks find between them.
    let words = [(100, 200), (0, 200), (0, 950), (900, 950)];
    for before in 0..4 {
        for between in before..4 {
            for after in between..4 {
                let mut moments = [before, between, after].into_iter();
                let found = super::super::record_windows::opened(|offset| {
                    let (ticks, nanoseconds) = words[moments.next()?];
                    Some(if offset == window::TICKS { ticks } else { nanoseconds })
                });
                let right = found.is_none() || found == Some(words[0]) || found == Some(words[3]);
                assert!(right, "{found:?} after {before}, {between} and {after} stores");
            }
        }
    }
    let unchanged = |offset| Some(if offset == window::TICKS { 100 } else { 200 });
    assert_eq!(super::super::record_windows::opened(unchanged), Some((100, 200)));
}

#[test]
fn a_window_that_is_being_opened_again_says_nothing_of_the_clocks() {
    let mut job = Synthetic::new(1);
    job.push(0, 200_000_000, &Synthetic::record(Event::ReqActivate, 1));
    job.push(0, 300_000_000, &Synthetic::record(Event::ReqComplete, 1));
    let mut bytes = job.bytes();
    let at = format::windows_begin(1);
    format::put_u64(&mut bytes, at + window::NANOSECONDS, 190_000_000);
    format::put_u64(&mut bytes, at + window::TICKS, 0);
    assert_eq!(read_bytes(&bytes).expect("sound").job.duration, 100_000_000);
    format::put_u64(&mut bytes, at + window::NANOSECONDS, 0);
    format::put_u64(&mut bytes, at + window::TICKS, 200_000_000);
    assert_eq!(read_bytes(&bytes).expect("sound").job.duration, 100_000_000);
}

#[test]
fn a_path_that_is_no_trace_is_named_in_the_error() {
    let error = read(Path::new("/no/such/file")).expect_err("no file").to_string();
    assert!(error.contains("/no/such/file"), "{error}");
    let error = read(Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml"))).expect_err("no trace");
    assert!(error.to_string().contains("Cargo.toml: this is no trace"), "{error}");
}

/// One rank with records at 1, 2, 3 … ns: one full window.
fn full_window() -> (Synthetic, usize) {
    let mut job = Synthetic::new(1);
    let full = (format::UNIT - format::WINDOW_HEADER) / format::RECORD;
    for when in 1..=full {
        job.push(0, when, &Synthetic::record(Event::ReqActivate, when));
    }
    (job, full as usize)
}

/// The file with a second window: a copy of the first, changed.
fn with_copy(job: &Synthetic, change: impl FnOnce(&mut [u8])) -> Trace {
    let mut bytes = job.bytes();
    let mut copy = bytes[format::windows_begin(1) as usize..].to_vec();
    change(&mut copy);
    bytes.extend(copy);
    read_bytes(&bytes).expect("sound")
}

/// Fills the places of `records` in the window that begins at `at` with zeros, as a crash of the machine leaves them.
fn punch(bytes: &mut [u8], at: usize, records: core::ops::Range<usize>) {
    let place = |record: usize| at + format::WINDOW_HEADER as usize + record * format::RECORD as usize;
    bytes[place(records.start)..place(records.end)].fill(0);
}

#[test]
fn what_a_hole_in_a_window_has_swallowed_is_counted_and_what_follows_is_read() {
    let (job, full) = full_window();
    let at = format::windows_begin(1) as usize;
    let ids = |bytes: &[u8]| {
        let trace = read_bytes(bytes).expect("a sound header");
        let ids: Vec<u64> = trace.ranks[0].records.iter().map(|record| record.id).collect();
        (ids, trace.ranks[0].unreadable)
    };
    // A page within a full window, and its first record.
    for hole in [500..628, 0..1] {
        let mut bytes = job.bytes();
        punch(&mut bytes, at, hole.clone());
        let (found, missing) = ids(&bytes);
        let right: Vec<u64> = (1..=full as u64).filter(|id| !hole.contains(&(*id as usize - 1))).collect();
        assert_eq!((found, missing), (right, hole.len() as u64));
        // The same in a window that is not full.
        punch(&mut bytes, at, 1000..full);
        let (found, missing) = ids(&bytes);
        assert_eq!((found.last(), found.len(), missing), (Some(&1000), 1000 - hole.len(), hole.len() as u64));
    }
}

#[test]
fn what_is_missing_at_the_end_of_a_window_or_between_two_is_counted() {
    let (mut job, full) = full_window();
    for when in 1..=full as u64 + 5 {
        job.push(0, full as u64 + when, &Synthetic::record(Event::ReqActivate, when));
    }
    let (first, unit) = (format::windows_begin(1) as usize, format::UNIT as usize);
    let whole = job.trace();
    assert_eq!((whole.len(), whole.ranks[0].unreadable), (2 * full + 5, 0));
    let mut bytes = job.bytes();
    punch(&mut bytes, first, full - 7..full);
    let cut = read_bytes(&bytes).expect("a sound header");
    assert_eq!((cut.len(), cut.ranks[0].unreadable), (2 * full - 2, 7));
    let mut bytes = job.bytes();
    bytes[first + unit..first + unit + 8].fill(0);
    let lost = read_bytes(&bytes).expect("a sound header");
    assert_eq!((lost.len(), lost.ranks[0].unreadable), (full + 5, full as u64));
    // While the job goes on, windows lie behind the end as it was when we began.
    format::put_u32(&mut bytes, format::header::ENDED, 0);
    assert_eq!(read_bytes(&bytes).expect("a sound header").ranks[0].unreadable, 0);
}

#[test]
fn a_name_that_a_hole_tears_is_left_out() {
    let mut job = Synthetic::new(1);
    let (long, other) = ("x".repeat(60), "y".repeat(60));
    job.communicator(10, 6, &long, &[0]).communicator(20, 8, &other, &[0]);
    job.push(0, 30, &Synthetic::record(Event::ReqActivate, 1));
    let at = format::windows_begin(1) as usize;
    let whole = job.trace();
    assert_eq!(whole.ranks[0].communicator(8, 30).expect("made").name, other);
    // Head, group, head and three parts of the name, twice:
    // the hole takes the first name's last part, and the next one's head and group.
    let mut bytes = job.bytes();
    punch(&mut bytes, at, 5..8);
    let torn = read_bytes(&bytes).expect("a sound header");
    let rank = &torn.ranks[0];
    assert_eq!(rank.communicator(6, 30).expect("made").name, "");
    assert!(rank.communicators.iter().all(|comm| comm.context != 8), "{:?}", rank.communicators);
    // Three places, and the head of the name that has lost a part.
    assert_eq!(rank.unreadable, 4);
}

#[test]
fn a_stage_and_its_copy_count_once_whichever_has_more() {
    let (job, full) = full_window();
    assert_eq!(with_copy(&job, |_| {}), job.trace());
    // The stage, killed between the two words: none of its records counts, those of the copy do.
    let emptied = with_copy(&job, |stage| format::put_u64(stage, window::AFTER, full as u64));
    assert_eq!(emptied, job.trace());
    // A copy that a full disk cut.
    let cut = with_copy(&job, |copy| copy[30_000..].fill(0));
    assert_eq!(cut, job.trace());
}

#[test]
fn what_a_stage_holds_from_before_does_not_count() {
    let (job, full) = full_window();
    let again = with_copy(&job, |stage| {
        format::put_u64(stage, window::AFTER, full as u64);
        format::put_u32(stage, window::SEQUENCE, 1);
        for record in 0..3 {
            let entry = RawRecord { ticks: full as u64 + 5 + record, event: 1, ..RawRecord::default() };
            format::put_u64(stage, format::WINDOW_HEADER + record * format::RECORD, entry.pack()[0]);
        }
    });
    assert_eq!(again.ranks[0].records.len(), full + 3);
    assert_eq!(again.ranks[0].streams, 1);
    // As a reader sees it who comes while the stage is written again:
    // what is left of the round before is not taken for new.
    let mixed = with_copy(&job, |stage| {
        format::put_u32(stage, window::SEQUENCE, 1);
        let entry = RawRecord { ticks: full as u64 + 5, event: 1, ..RawRecord::default() };
        format::put_u64(stage, format::WINDOW_HEADER, entry.pack()[0]);
    });
    assert_eq!(mixed.ranks[0].records.len(), full + 1);
}
