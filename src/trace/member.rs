//! Traces that ranks join: of processes that another launcher has started, whose number nobody knows before.
//!
//! Whoever makes such a trace says how many may join. Each takes a block, and with it its rank; behind the blocks are
//! labels, which give all ranks the same number for the same value.

use super::file::Store;
use super::format::{self, RawRecord, header, rank as block};
use super::recorder::Recorder;
use crate::error::{Error, Result};
use crate::events::{Event, Words};
use crate::sync::Ordering;
use std::path::Path;

/// Who joins a trace, so that others find its rank.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Member {
    /// Its process.
    pub pid: u32,
    /// What names it within its process.
    pub name: [u64; 2],
}

/// The recorder of a rank that has joined a trace.
#[derive(Debug)]
pub struct MemberRecorder {
    recorder: Recorder,
    path: Box<Path>,
}

impl MemberRecorder {
    /// Joins the trace at `path`: as rank `wanted`, if that is free, else as the next one that is, from `others` on.
    ///
    /// # Errors
    /// [`Error::Trace`] with the path: it cannot be opened, or nobody joins it, or as many have joined as may.
    pub fn join(path: &Path, member: Member, wanted: Option<u32>, others: u32) -> Result<Self> {
        let mut capacity = 0;
        let store = Store::map(path, |start, begin| {
            capacity = format::get_u32(start, header::CAPACITY).unwrap_or(0);
            let known = (1..=format::MOST_JOINING).contains(&capacity);
            if known && begin == format::windows_begin_behind_labels(capacity) {
                return Ok(());
            }
            Err("this is a trace of another launcher's ranks, which nobody joins".into())
        })?;
        let first = others.min(capacity);
        let places =
            wanted.into_iter().filter(|rank| *rank < capacity).chain(first..capacity).chain(0..first);
        let free = |rank: &u32| {
            let pid = store.u32_at(at(*rank, block::PID));
            // Relaxed: an exchange gives each a block of their own; nothing is published by it.
            pid.compare_exchange(0, member.pid, Ordering::Relaxed, Ordering::Relaxed).is_ok()
        };
        let Some(rank) = { places }.find(free) else {
            let what =
                format!("{}: {capacity} have joined the trace, which is all it has room for", path.display());
            return Err(Error::Trace(what));
        };
        for (place, word) in (0..).zip(member.name) {
            // Relaxed: whoever looks for this member has its name from the member itself, which tells it afterwards.
            store.u64_at(at(rank, block::MEMBER + place * 8)).store(word, Ordering::Relaxed);
        }
        // Relaxed: a count, for whoever reads later.
        store.u32_at(header::RANKS).fetch_max(rank + 1, Ordering::Relaxed);
        let recorder = MemberRecorder { recorder: Recorder::new(store.of_rank(rank)), path: path.into() };
        recorder.event(Event::Initialized);
        Ok(recorder)
    }

    /// Its rank in the trace.
    #[must_use]
    pub fn rank(&self) -> u32 {
        self.recorder.store().rank()
    }

    /// Where the trace is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The rank of another member, if it has joined.
    #[must_use]
    pub fn rank_of(&self, member: Member) -> Option<u32> {
        let store = self.recorder.store();
        // Relaxed: a member had joined before this process learned its name.
        let ranks = store.u32_at(header::RANKS).load(Ordering::Relaxed).min(format::MOST_JOINING);
        (0..ranks).find(|&rank| {
            // Relaxed: as above.
            store.u32_at(at(rank, block::PID)).load(Ordering::Relaxed) == member.pid
                && (0..).zip(member.name).all(|(place, word)| {
                    // Relaxed: as above.
                    store.u64_at(at(rank, block::MEMBER + place * 8)).load(Ordering::Relaxed) == word
                })
        })
    }

    /// The number that all ranks of the trace have for a value; `None` if there are too many values.
    /// The highest value cannot have one.
    #[must_use]
    pub fn label(&self, value: u64) -> Option<u32> {
        let store = self.recorder.store();
        let begin = format::labels_begin(self.capacity());
        (0..format::LABELS).find(|&number| {
            let word = store.u64_at(begin + u64::from(number) * 8);
            // Relaxed: a value stands for itself; an exchange gives each number to one value.
            let taken = word.compare_exchange(0, value + 1, Ordering::Relaxed, Ordering::Relaxed);
            taken.err().is_none_or(|there| there == value + 1)
        })
    }

    fn capacity(&self) -> u32 {
        // Relaxed: written before the trace was there.
        self.recorder.store().u32_at(header::CAPACITY).load(Ordering::Relaxed)
    }

    /// The time that a record of now has.
    #[inline]
    #[must_use]
    pub fn now(&self) -> u64 {
        self.recorder.now()
    }

    /// Writes a record. Of one thread, records are to be in the order of time.
    pub fn record(&self, record: RawRecord) {
        if !self.recorder.write(record.pack()) {
            self.recorder.store().drop_event(record.event);
        }
    }

    /// Tells what a context is called, before the first record that has it: all ranks of the trace are in it.
    pub fn name_context(&self, context: u32, name: &str) {
        let record = |event: Event, third| {
            let words = Words { third, ..Words::default() };
            self.record(RawRecord {
                ticks: self.now(),
                event: event.code(),
                id: 0,
                context,
                send: false,
                words,
            });
        };
        record(Event::CommCreated, 0);
        record(Event::CommNamed, name.len() as u64);
        name.as_bytes().chunks(format::CARRIED).for_each(|bytes| self.recorder.carry(bytes));
    }

    /// Notes that the rank leaves.
    pub fn finish(&self) {
        self.event(Event::Finalizing);
        self.recorder.store().finalized();
    }

    fn event(&self, event: Event) {
        let context = u32::MAX;
        self.record(RawRecord { ticks: self.now(), event: event.code(), context, ..RawRecord::default() });
    }
}

/// The place of a word of a rank's block.
fn at(rank: u32, offset: u64) -> u64 {
    format::HEADER + u64::from(rank) * format::RANK_BLOCK + offset
}

#[cfg(test)]
mod tests {
    use super::super::file;
    use super::super::format::TraceHeader;
    use super::super::testing::ScratchFile;
    use super::*;

    fn trace(name: &str, capacity: u32) -> ScratchFile {
        let scratch = ScratchFile::new(name);
        let header = TraceHeader { capacity, limit: u64::MAX, ..TraceHeader::default() };
        drop(file::create(scratch.path(), &header).expect("writable"));
        scratch
    }

    fn member(pid: u32, name: u64) -> Member {
        Member { pid, name: [name, 7] }
    }

    #[test]
    fn each_has_the_rank_that_it_wants_or_the_next_that_is_free() {
        let scratch = trace("join", 4);
        let join = |pid, name, wanted| MemberRecorder::join(scratch.path(), member(pid, name), wanted, 2);
        let all = [
            join(10, 1, Some(1)).expect("room"),
            join(10, 2, Some(1)).expect("room"),
            join(11, 1, None).expect("room"),
            join(12, 1, Some(9)).expect("room"),
        ];
        assert_eq!(all.each_ref().map(MemberRecorder::rank), [1, 2, 3, 0]);
        assert!(join(13, 1, None).unwrap_err().to_string().contains("4 have joined"));
        for one in &all {
            let found = [(10, 1), (10, 2), (11, 1), (12, 1), (12, 2)]
                .map(|(pid, name)| one.rank_of(member(pid, name)));
            assert_eq!(found, [Some(1), Some(2), Some(3), Some(0), None]);
        }
        let start = std::fs::read(scratch.path()).expect("there");
        assert_eq!(format::check_header(&start), Ok(4));
    }

    #[test]
    fn a_value_has_one_number_at_all_ranks() {
        let scratch = trace("labels", 2);
        let join = |pid| MemberRecorder::join(scratch.path(), member(pid, 0), None, 0).expect("room");
        let (one, other) = (join(1), join(2));
        assert_eq!(
            [one.label(0), one.label(9), other.label(9), other.label(0)].map(Option::unwrap),
            [0, 1, 1, 0]
        );
        (2..format::LABELS).for_each(|number| assert_eq!(other.label(u64::from(number) + 100), Some(number)));
        assert_eq!((one.label(50), one.label(9)), (None, Some(1)));
    }

    #[test]
    fn a_trace_of_a_launcher_is_joined_by_nobody() {
        let scratch = ScratchFile::new("unjoined");
        drop(
            file::create(scratch.path(), &TraceHeader { ranks: 2, ..TraceHeader::default() })
                .expect("writable"),
        );
        let refused = MemberRecorder::join(scratch.path(), member(1, 1), None, 0).unwrap_err().to_string();
        assert!(refused.contains("nobody joins") && refused.contains("unjoined"), "{refused}");
        assert!(MemberRecorder::join(Path::new("/no/such"), member(1, 1), None, 0).is_err());
    }
}
