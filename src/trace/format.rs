//! How a trace lies in its file: a header page, a block for each rank, then windows of records. `docs/trace-format.md`
//! says it for people; the two are kept alike by the tests here and in the reader.
//!
//! All numbers are little-endian. A file is written through shared mappings by many processes at once, without locks:
//!
//! # Rules
//! - **Trace rule 1.** The launcher writes the header and the rank blocks before it starts a rank; afterwards the only
//!   words of the header that change are [`NEXT`], by atomic addition, and the state, by the launcher. In a trace that
//!   ranks join they are made for [`header::CAPACITY`] ranks, and each that joins takes a block, and counts, by atomic
//!   instructions.
//! - **Trace rule 2.** A window belongs to one stream, from the addition that took its place to the end of the file's
//!   life. Its magic number is written after the rest of its header.
//! - **Trace rule 3.** A window's records are written in order, the word with the event's number last. So a record is
//!   there or it is not, whoever is killed when, and behind the first that is not there is none.
//! - **Trace rule 4.** A stream writes into its first window, its *stage*. When that is full it is copied, header and
//!   all, to a place of its own, and written again from the start. Before that [`window::AFTER`] is set to the time of
//!   its last record, so that none of its records counts any more; then its sequence is set to the next. So the stage
//!   and its copy may both be there, with the same sequence; the one that has more records counts.
//! - **Trace rule 5.** The moment of a window that is written again is read on two clocks, which are two words. Its
//!   ticks are 0 before the nanoseconds change, and are written after them; no two rounds have the same. So ticks that
//!   are not 0, and are the same before and after a look at the nanoseconds, belong to them.

use crate::error::{Error, Result};
use crate::events::Words;
use crate::limits::EVENT_TYPES;

/// First eight bytes of a trace.
pub const MAGIC: u64 = u64::from_le_bytes(*b"PERUTRC1");
/// First eight bytes of a window.
pub const WINDOW_MAGIC: u64 = u64::from_le_bytes(*b"PERUWIN1");
/// Version of all this; a reader takes its own alone.
pub const VERSION: u32 = 3;

/// Most ranks of a job that is traced: the root of a collective operation has 16 bits of its record,
/// of which 0 says that there is none.
pub const MOST_RANKS: u32 = u16::MAX as u32;

/// Most ranks of a trace that ranks join.
pub const MOST_JOINING: u32 = 1024;
/// Labels of a trace that ranks join, behind the rank blocks: what ranks number alike, u64 each; 0: not taken.
pub const LABELS: u32 = 4096;

/// Bytes of the header.
pub const HEADER: u64 = 4096;
/// Bytes of a rank's block.
pub const RANK_BLOCK: u64 = 1024;
/// Windows begin at, and are as long as, multiples of this many bytes.
pub const UNIT: u64 = 64 << 10;
/// Bytes at the begin of a window before its first record.
pub const WINDOW_HEADER: u64 = 64;
/// Bytes of a record.
pub const RECORD: u64 = 32;

/// Offsets in the header.
pub mod header {
    /// [`super::MAGIC`], u64.
    pub const MAGIC: u64 = 0;
    /// [`super::VERSION`], u32.
    pub const VERSION: u64 = 8;
    /// Ranks of the job, u32; where ranks join, one more than the highest number that is taken.
    pub const RANKS: u64 = 12;
    /// Where the first window begins, u64.
    pub const WINDOWS: u64 = 16;
    /// Where the next window may begin, u64, atomic.
    pub const NEXT: u64 = 24;
    /// Nanoseconds since 1970 when the trace was made, u64.
    pub const STARTED: u64 = 32;
    /// 1 once the job has ended, u32.
    pub const ENDED: u64 = 40;
    /// The job's exit status, i32; valid once it has ended.
    pub const STATUS: u64 = 44;
    /// The moment from which records count ticks, in ticks, u64.
    pub const BASE_TICKS: u64 = 48;
    /// The same moment in nanoseconds of CLOCK_MONOTONIC, u64.
    pub const BASE_NANOSECONDS: u64 = 56;
    /// Ticks in a second, u64.
    pub const TICKS_PER_SECOND: u64 = 64;
    /// Bytes of windows that each rank may have, u64.
    pub const LIMIT: u64 = 72;
    /// Bytes of the text, u32.
    pub const TEXT_LENGTH: u64 = 80;
    /// Ranks that may join, u32; 0: all are the launcher's.
    pub const CAPACITY: u64 = 88;
    /// The text: lines of `name=value`; the rest of the page is for it.
    pub const TEXT: u64 = 128;
}
pub use header::NEXT;

/// Offsets in a rank's block.
pub mod rank {
    /// Process id, u32; 0 until the rank records.
    pub const PID: u64 = 0;
    /// 1 once the rank has begun to finalize, u32.
    pub const FINALIZED: u64 = 4;
    /// Streams so far, u32, atomic.
    pub const STREAMS: u64 = 8;
    /// Why recording stopped: an errno, u32; 0 if it did not, or at the limit.
    pub const ERROR: u64 = 12;
    /// Bytes of windows taken, u64, atomic.
    pub const TAKEN: u64 = 16;
    /// Records that go on with the one before them, u64, atomic.
    pub const CONTINUED: u64 = 24;
    /// The CPUs it is bound to, as text, zero-terminated.
    pub const CPUS: u64 = 64;
    /// Bytes for that text.
    pub const CPUS_LENGTH: u64 = 128;
    /// Of a rank that has joined: what else names it within its process, two u64.
    pub const MEMBER: u64 = 192;
    /// Events without a record, by the event's number, u64 each, atomic; those with higher numbers share the last one.
    pub const DROPPED: u64 = 256;
    /// How many counts there are.
    pub const DROPPED_LENGTH: u64 = 64;
}

/// Offsets in a window's header.
pub mod window {
    /// [`super::WINDOW_MAGIC`], u64, written last.
    pub const MAGIC: u64 = 0;
    /// The rank, u32.
    pub const RANK: u64 = 8;
    /// The stream, u32.
    pub const STREAM: u64 = 12;
    /// Windows that the stream had before, u32.
    pub const SEQUENCE: u64 = 16;
    /// Length in units, u32.
    pub const UNITS: u64 = 20;
    /// When it was opened, in ticks, u64.
    pub const TICKS: u64 = 24;
    /// The same moment in nanoseconds of CLOCK_MONOTONIC, u64.
    pub const NANOSECONDS: u64 = 32;
    /// If not 0: records that are not later than so many ticks are not there, u64.
    pub const AFTER: u64 = 40;
}

const _: () = {
    assert!(rank::DROPPED + rank::DROPPED_LENGTH * 8 <= RANK_BLOCK);
    assert!(rank::CPUS + rank::CPUS_LENGTH <= rank::MEMBER && rank::MEMBER + 16 <= rank::DROPPED);
    assert!(WINDOW_HEADER.is_multiple_of(RECORD) && UNIT.is_multiple_of(RECORD));
    assert!(EVENT_TYPES < CONTINUATION as usize && CONTINUATION as u64 <= NUMBER);
    // Context ids are two for each entry of the job's table; one number is kept for "none".
    assert!(crate::limits::CONTEXTS * 2 < NO_CONTEXT);
};

/// Where the first window of a trace of `ranks` ranks begins.
#[must_use]
pub const fn windows_begin(ranks: u32) -> u64 {
    (HEADER + ranks as u64 * RANK_BLOCK).next_multiple_of(UNIT)
}

/// Where the labels of a trace begin that so many ranks may join.
#[must_use]
pub const fn labels_begin(capacity: u32) -> u64 {
    HEADER + capacity as u64 * RANK_BLOCK
}

/// Where the first window of a trace begins that so many ranks may join.
#[must_use]
pub const fn windows_begin_behind_labels(capacity: u32) -> u64 {
    (labels_begin(capacity) + LABELS as u64 * 8).next_multiple_of(UNIT)
}

/// The number of a record that goes on with what the one before it could not hold; no event has it.
pub const CONTINUATION: u16 = 1023;
/// Bytes of such a record that carry something.
pub const CARRIED: usize = 24;

const NO_CONTEXT: u32 = (1 << CONTEXT_BITS) - 1;
const CONTEXT_BITS: u32 = 20;
const ID_BITS: u32 = 43;
const ID: u64 = (1 << ID_BITS) - 1;
/// Ticks have what the event's number leaves.
const TICK_SHIFT: u32 = 10;
/// The bits of the event's number.
const NUMBER: u64 = (1 << TICK_SHIFT) - 1;

/// One record, unpacked. The table of event types says what its words hold
/// ([`EventPayload`](crate::events::EventPayload)): of a request, message or search the peer, the tag and the size; of
/// others, and in the place of the size at the end of a search, the payload.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RawRecord {
    /// Ticks since the header's base; 54 bits are kept.
    pub ticks: u64,
    /// The event's number, or [`CONTINUATION`]; never 0.
    pub event: u16,
    /// The event's id; 43 bits are kept.
    pub id: u64,
    /// The context; `u32::MAX` for none.
    pub context: u32,
    /// Whether it is of a send.
    pub send: bool,
    /// See above.
    pub words: Words,
}

/// The ticks in a record's first word.
pub fn ticks_of(first_word: u64) -> u64 {
    first_word >> TICK_SHIFT
}

/// The record's first word, later than `ticks` if it is not.
pub(super) fn later_than(first_word: u64, ticks: u64) -> u64 {
    let event = first_word & NUMBER;
    ticks_of(first_word).max(ticks + 1) << TICK_SHIFT | event
}

impl RawRecord {
    /// The four words of the file. The first is never 0.
    #[inline(always)]
    #[must_use]
    pub fn pack(&self) -> [u64; 4] {
        let context = u64::from(self.context.min(NO_CONTEXT));
        [
            self.ticks << TICK_SHIFT | u64::from(self.event),
            self.id & ID | u64::from(self.send) << ID_BITS | context << (ID_BITS + 1),
            u64::from(self.words.second) << 32 | u64::from(self.words.first),
            self.words.third,
        ]
    }

    /// What the four words say; `None` if there is no record.
    #[must_use]
    pub fn unpack(words: [u64; 4]) -> Option<RawRecord> {
        let [when, what, halves, third] = words;
        if when == 0 {
            return None;
        }
        let context = (what >> (ID_BITS + 1)) as u32;
        Some(RawRecord {
            ticks: when >> TICK_SHIFT,
            event: (when & NUMBER) as u16,
            id: what & ID,
            context: if context == NO_CONTEXT { u32::MAX } else { context },
            send: what >> ID_BITS & 1 == 1,
            words: Words { first: halves as u32, second: (halves >> 32) as u32, third },
        })
    }

    /// A record that goes on with `bytes`, at most [`CARRIED`] of them.
    #[must_use]
    pub fn continuation(ticks: u64, bytes: &[u8]) -> [u64; 4] {
        let mut carried = [0; CARRIED];
        let taken = bytes.len().min(CARRIED);
        carried[..taken].copy_from_slice(&bytes[..taken]);
        let word = |at: usize| u64::from_le_bytes(carried[at..at + 8].try_into().expect("eight bytes"));
        [ticks << TICK_SHIFT | u64::from(CONTINUATION), word(0), word(8), word(16)]
    }
}

/// What the launcher writes before it starts a rank.
#[derive(Debug, Clone, Default)]
pub struct TraceHeader {
    /// Ranks of the job; 0 if ranks join.
    pub ranks: u32,
    /// Ranks that may join; 0 if all are the launcher's.
    pub capacity: u32,
    /// Bytes of windows that each rank may have.
    pub limit: u64,
    /// Nanoseconds since 1970.
    pub started: u64,
    /// Now, in ticks.
    pub base_ticks: u64,
    /// Now, in nanoseconds of CLOCK_MONOTONIC.
    pub base_nanoseconds: u64,
    /// Ticks in a second.
    pub ticks_per_second: u64,
    /// Program and arguments.
    pub command: String,
    /// Name of the machine.
    pub host: String,
    /// CPUs of each rank, as text; may be shorter than `ranks`.
    pub cpus: Vec<String>,
}

impl TraceHeader {
    /// Header and rank blocks, up to where windows begin.
    #[must_use]
    pub fn bytes(&self) -> Vec<u8> {
        let begin = match self.capacity {
            0 => windows_begin(self.ranks),
            capacity => windows_begin_behind_labels(capacity),
        };
        let mut bytes = vec![0; begin as usize];
        put_u64(&mut bytes, header::MAGIC, MAGIC);
        put_u32(&mut bytes, header::VERSION, VERSION);
        put_u32(&mut bytes, header::RANKS, self.ranks);
        put_u64(&mut bytes, header::WINDOWS, begin);
        put_u64(&mut bytes, header::NEXT, begin);
        put_u64(&mut bytes, header::STARTED, self.started);
        put_u64(&mut bytes, header::BASE_TICKS, self.base_ticks);
        put_u64(&mut bytes, header::BASE_NANOSECONDS, self.base_nanoseconds);
        put_u64(&mut bytes, header::TICKS_PER_SECOND, self.ticks_per_second);
        put_u64(&mut bytes, header::LIMIT, self.limit);
        put_u32(&mut bytes, header::CAPACITY, self.capacity);
        let line = |name, value: &str| format!("{name}={}\n", value.replace(['\n', '\0'], " "));
        let text = [("version", env!("CARGO_PKG_VERSION")), ("host", &self.host), ("command", &self.command)]
            .map(|(name, value)| line(name, value))
            .concat();
        let text = shorten(&text, (HEADER - header::TEXT) as usize);
        put_u32(&mut bytes, header::TEXT_LENGTH, text.len() as u32);
        put(&mut bytes, header::TEXT, text.as_bytes());
        for (rank, cpus) in (0..u64::from(self.ranks)).zip(&self.cpus) {
            let cpus = shorten(cpus, rank::CPUS_LENGTH as usize - 1);
            put(&mut bytes, HEADER + rank * RANK_BLOCK + rank::CPUS, cpus.as_bytes());
        }
        bytes
    }
}

/// The longest start of a text that has at most `most` bytes.
fn shorten(text: &str, most: usize) -> &str {
    let end = (0..=most.min(text.len())).rev().find(|end| text.is_char_boundary(*end));
    &text[..end.unwrap_or(0)]
}

fn put(bytes: &mut [u8], at: u64, what: &[u8]) {
    bytes[at as usize..at as usize + what.len()].copy_from_slice(what);
}

/// Writes a number at `at`, low byte first.
pub fn put_u32(bytes: &mut [u8], at: u64, value: u32) {
    put(bytes, at, &value.to_le_bytes());
}

/// Writes a number at `at`, low byte first.
pub fn put_u64(bytes: &mut [u8], at: u64, value: u64) {
    put(bytes, at, &value.to_le_bytes());
}

/// Reads `N` bytes at `at`, if the file has them.
pub fn get<const N: usize>(bytes: &[u8], at: u64) -> Option<[u8; N]> {
    let at = usize::try_from(at).ok()?;
    bytes.get(at..at.checked_add(N)?)?.try_into().ok()
}

/// Reads a number at `at`; `None` behind the end.
pub fn get_u32(bytes: &[u8], at: u64) -> Option<u32> {
    get(bytes, at).map(u32::from_le_bytes)
}

/// Reads a number at `at`; `None` behind the end.
pub fn get_u64(bytes: &[u8], at: u64) -> Option<u64> {
    get(bytes, at).map(u64::from_le_bytes)
}

/// What helps against a header that makes no sense.
const AGAIN: &str = "copy the file again, or record the job again";

/// Checks that `bytes` begin with the header of a trace of this version, whole with its rank blocks;
/// gives the number of ranks.
///
/// # Errors
/// [`Error::Trace`] that says what it is instead.
pub fn check_header(bytes: &[u8]) -> Result<u32> {
    let wrong = |what: String| Err(Error::Trace(what));
    let word = |at| get_u32(bytes, at).unwrap_or(0);
    if get_u64(bytes, header::MAGIC) != Some(MAGIC) {
        return wrong("this is no trace of perusal: it does not begin as one".into());
    }
    let version = word(header::VERSION);
    if version != VERSION {
        return wrong(format!(
            "the trace has format version {version}; this perusal reads version {VERSION}: use the perusal that wrote it"
        ));
    }
    let (ranks, capacity) = (word(header::RANKS), word(header::CAPACITY));
    let need = if capacity == 0 { windows_begin(ranks) } else { windows_begin_behind_labels(capacity) };
    let is_whole = get_u64(bytes, header::WINDOWS) == Some(need) && bytes.len() as u64 >= need;
    if is_whole && capacity > 0 && ranks == 0 {
        return wrong("nobody has joined the trace yet: no process has opened an endpoint of perusal's provider of libfabric, so it says nothing".into());
    }
    if capacity > MOST_JOINING || capacity > 0 && ranks > capacity {
        return wrong(format!(
            "the trace's header is spoiled: it speaks of {ranks} ranks that have joined, of {capacity}: {AGAIN}"
        ));
    }
    if ranks == 0 || !is_whole {
        return wrong(format!(
            "the trace's header is cut off or spoiled: it speaks of {ranks} ranks, which need {need} bytes; the file has {}: {AGAIN}",
            bytes.len()
        ));
    }
    // A file with holes can be as long as any number of ranks needs, and a reader keeps something for each of them.
    if ranks > MOST_RANKS {
        return wrong(format!(
            "the trace's header is spoiled: it speaks of {ranks} ranks, and a trace has {MOST_RANKS} at most: {AGAIN}"
        ));
    }
    Ok(ranks)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_reads_back_as_it_was_packed() {
        let entry = RawRecord {
            ticks: (1 << 54) - 1,
            event: EVENT_TYPES as u16,
            id: (1 << 43) - 1,
            context: crate::limits::CONTEXTS * 2 - 1,
            send: true,
            words: Words { first: u32::MAX, second: 7, third: u64::MAX },
        };
        assert_eq!(RawRecord::unpack(entry.pack()), Some(entry));
        let none = RawRecord { context: u32::MAX, send: false, ..entry };
        assert_eq!(RawRecord::unpack(none.pack()), Some(none));
        assert_eq!(RawRecord::unpack([0; 4]), None);
    }

    #[test]
    fn a_text_that_is_too_long_is_cut_between_characters() {
        assert_eq!(shorten("aé", 3), "aé");
        assert_eq!(shorten("aé", 2), "a");
        let trace_header = TraceHeader { ranks: 1, command: "é".repeat(4000), ..TraceHeader::default() };
        let bytes = trace_header.bytes();
        assert_eq!(check_header(&bytes), Ok(1));
        assert_eq!(bytes.len() as u64, windows_begin(1));
    }

    #[test]
    fn a_trace_that_ranks_join_has_as_many_as_have_joined() {
        let mut bytes = TraceHeader { capacity: 5, ..TraceHeader::default() }.bytes();
        assert_eq!(bytes.len() as u64, windows_begin_behind_labels(5));
        assert!(check_header(&bytes).unwrap_err().to_string().contains("nobody has joined"));
        put_u32(&mut bytes, header::RANKS, 5);
        assert_eq!(check_header(&bytes), Ok(5));
        put_u32(&mut bytes, header::RANKS, 6);
        assert!(check_header(&bytes).unwrap_err().to_string().contains("spoiled"));
        put_u32(&mut bytes, header::RANKS, 5);
        assert!(check_header(&bytes[..5000]).unwrap_err().to_string().contains("cut off"));
        put_u32(&mut bytes, header::CAPACITY, u32::MAX);
        assert!(check_header(&bytes).unwrap_err().to_string().contains("spoiled"));
    }

    #[test]
    fn what_is_no_trace_is_named() {
        let good = TraceHeader { ranks: 3, ..TraceHeader::default() }.bytes();
        assert!(check_header(b"no").unwrap_err().to_string().contains("no trace of perusal"));
        let mut newer = good.clone();
        put_u32(&mut newer, header::VERSION, 9);
        assert!(check_header(&newer).unwrap_err().to_string().contains("format version 9"));
        assert!(check_header(&good[..5000]).unwrap_err().to_string().contains("cut off"));
        let mut many = good;
        put_u32(&mut many, header::RANKS, u32::MAX);
        assert!(check_header(&many).is_err());
        // Long enough for all of them, as a file with holes may be.
        for (ranks, fits) in [(MOST_RANKS, true), (MOST_RANKS + 1, false)] {
            let bytes = TraceHeader { ranks, ..TraceHeader::default() }.bytes();
            let checked = check_header(&bytes);
            assert_eq!(checked.is_ok(), fits, "{checked:?}");
            let what = checked.map_or_else(|error| error.to_string(), |_| String::new());
            assert!(fits || what.contains("65536 ranks") && what.contains("copy the file again"), "{what}");
        }
    }
}
