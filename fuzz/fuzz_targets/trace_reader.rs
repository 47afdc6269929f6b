//! The reader of traces, and what works on what it reads, on files that are spoiled or made up.
//!
//! The first bytes of the input say what kind of file it is: as it is, a sound header with records made of the input,
//! or that with words written anywhere. Whatever it is, reading gives a trace or an error that says "trace"; nothing
//! panics, and what is read keeps its promises: records in order, streams and ranks within bounds.
#![no_main]

use libfuzzer_sys::fuzz_target;
use perusal_trace::flows::flows;
use perusal_trace::format::{self, TraceHeader, window};
use perusal_trace::{Trace, export, read_bytes, report};

const RANKS: u32 = 3;

fn put(file: &mut [u8], at: u64, bytes: &[u8]) {
    if let Some(to) = file.get_mut(at as usize..at as usize + bytes.len()) {
        to.copy_from_slice(bytes);
    }
}

/// A sound header, and for each part of the input a window that holds it.
fn made_of(input: &[u8]) -> Vec<u8> {
    let mut file = TraceHeader { ranks: RANKS, ticks_per_second: 1_000_000_000, ..TraceHeader::default() }.bytes();
    for (number, part) in (0_u32..).zip(input.chunks(20 * format::RECORD as usize)).take(6) {
        let at = file.len() as u64;
        file.resize((at + format::UNIT) as usize, 0);
        put(&mut file, at + window::MAGIC, &format::WINDOW_MAGIC.to_le_bytes());
        put(&mut file, at + window::RANK, &(number % RANKS).to_le_bytes());
        put(&mut file, at + window::STREAM, &(number / RANKS % 2).to_le_bytes());
        put(&mut file, at + window::UNITS, &1_u32.to_le_bytes());
        // Events that there are, in most records: the rest is the input's.
        for (record, bytes) in (0..).zip(part.chunks(format::RECORD as usize)) {
            let to = at + format::WINDOW_HEADER + record * format::RECORD;
            put(&mut file, to, bytes);
            let event =
                if bytes[0] > 250 { format::CONTINUATION } else { u16::from(bytes[0] % 32).max(1) };
            let [low, high] = event.to_le_bytes();
            let ticks = bytes.get(1).map_or(0, |byte| byte & !3);
            put(&mut file, to, &[low, high | ticks]);
            // Few ids, contexts and peers, so that they meet.
            put(&mut file, to + 9, &[0; 4]);
            put(&mut file, to + 13, &[0, 0, 0]);
        }
    }
    file
}

fn check(trace: &Trace) {
    for (number, rank) in trace.ranks.iter().enumerate() {
        assert_eq!(rank.rank as usize, number);
        assert!(rank.records.is_sorted_by_key(|record| record.when));
        assert!(rank.records.iter().all(|record| record.stream < rank.streams));
        assert!(rank.records.iter().all(|record| record.posted <= rank.posted_high));
    }
    for flow in flows(trace) {
        assert!(flow.source < trace.ranks.len() as u32);
        let _ = (flow.late_sender(), flow.late_receiver());
    }
    let mut sink = std::io::sink();
    export::print(trace, &mut sink).expect("a sink takes all");
    export::perfetto(trace, &mut sink).expect("a sink takes all");
    check_report(trace);
}

/// The report of whatever was read: its sums are those of its parts,
/// and its page holds one text of data that nothing ends early.
fn check_report(trace: &Trace) {
    let found = report::analyse(trace, "fuzzed <file>");
    assert_eq!(found.ranks.len(), trace.ranks.len());
    for rank in &found.ranks {
        for queue in [&rank.posted, &rank.unexpected] {
            assert!(queue.entries >= u64::from(queue.left) && queue.occupied_ns <= trace.job.duration.max(1));
        }
    }
    assert!(!found.verdict.paragraph.is_empty());
    let page = report::page(&found).expect("numbers and text make JSON");
    assert_eq!(page.matches("</script>").count(), 2, "data has ended its script");
    assert!(!report::text(&found).is_empty());
}

fuzz_target!(|input: &[u8]| {
    let Some((&kind, input)) = input.split_first() else { return };
    let mut file = if kind & 3 == 0 { input.to_vec() } else { made_of(input) };
    if kind & 3 == 2 {
        // Words of the input, written where the words before them say.
        for poke in input.as_chunks::<8>().0.iter().take(8) {
            let at = u64::from(u32::from_le_bytes([poke[0], poke[1], poke[2], 0])) % (file.len() as u64 + 1);
            put(&mut file, at, &poke[3..]);
        }
    }
    if kind & 3 == 3 {
        file.truncate(usize::from(kind) * 1024);
    }
    match read_bytes(&file) {
        Ok(trace) => check(&trace),
        Err(error) => assert!(error.to_string().contains("trace"), "{error}"),
    }
});
