//! Collective accesses of many short runs: through a buffer in the shared heap of the job of the member of rank 0, so
//! that few long accesses reach the file.
//!
//! The file between the first and the last byte of all members is taken window by window. To write, every member copies
//! its bytes into the buffer; then each member writes a part of the window, all runs in it that anybody has filled. To
//! read, each member reads a part; then every member copies its bytes out. So each byte is copied once between the
//! program's memory and the buffer, and once by the kernel.
//!
//! Where the two writes before have filled all of the span, the pages are there, and what is left is to copy: then each
//! member writes by itself, through its mapping. That copies each byte once, and carries none from one CPU to another.
//! The first write of a span is made through the buffer, for to make new pages ready for a mapping takes longer than to
//! write them.
//!
//! - **Two-phase rule 1.** While members copy in or out, a member's bytes of the buffer are its own (in writing, bytes
//!   that two members write are either's), and so is its map; while the window is read or written, a member's part of
//!   the buffer and of all maps is its own. Barriers separate the two.

use super::access::{Access, Direction, Elements, Transfer};
use super::file::File;
use super::hints;
use super::mapped;
use super::shared_buffer::{NOWHERE, Report, SharedBuffer, WORD, filled_runs, mark_filled};
use super::system::{Descriptor, errno_of, number_of};
use crate::arch::copy_run;
use crate::comm::lock;
use crate::engine::Engine;
use crate::error::Result;
use crate::limits::PAGE;
use core::slice;
use rustix::io::Errno;

/// Runs shorter than this on average are brought together.
const SHORT: i64 = 1 << 15;
/// Runs that a member must have on average, so that there is something to gain.
const MANY: i64 = 4;
/// The file between first and last byte may be so many times what is written: runs that do not become long ones are
/// written by each member alone.
const SPARSE_WRITE: i64 = 2;
/// The same for reading, where each byte in between is read once instead of by every member.
const SPARSE_READ: i64 = 4;
/// Runs of a part that are written together at most.
const MOST_RUNS: usize = 1 << 16;
/// What the collective writes before this one have filled: the same at all members, which make the same calls.
#[derive(Debug, Default)]
pub(super) struct Filled {
    first: u64,
    end: u64,
    /// Writes within it, besides the first one.
    again: u32,
}

impl Filled {
    /// Notes a write. Returns whether the two before have filled its pages.
    fn note(&mut self, first: u64, end: u64) -> bool {
        if self.first <= first && end <= self.end {
            self.again += 1;
        } else {
            *self = Self { first, end, again: 0 };
        }
        self.again > 1
    }
}

/// What all members know of an access.
struct Plan {
    direction: Direction,
    first: u64,
    end: u64,
    /// Whether all members can map what they write.
    maps: bool,
}

impl File {
    /// Performs an access in which all members take part; `None` if it is better performed by each member alone, which
    /// all find alike. `own` is an error of this member's arguments, or its access.
    pub(super) fn two_phase(
        &self,
        engine: &Engine,
        own: Option<&Access>,
        elements: &Elements,
        direction: Direction,
    ) -> Result<Option<Transfer>> {
        if self.comm.size() == 1 {
            return Ok(None);
        }
        let Some(plan) = self.plan(engine, own, elements, direction)? else { return Ok(None) };
        if direction == Direction::Write
            && lock(&self.filled).note(plan.first, plan.end)
            && plan.maps
            && plan.end - plan.first <= mapped::WINDOW
        {
            return Ok(None);
        }
        let mut shared = lock(&self.buffer);
        // All members have the same windows and the same plan, so all of them make a larger buffer or none does.
        let span = plan.end - plan.first;
        if shared.as_ref().is_none_or(|buffer| buffer.window < buffer.limit && (buffer.window as u64) < span)
        {
            if let Some(small) = shared.take() {
                small.free(engine);
            }
            *shared = self.make_shared_buffer(engine, span)?;
        }
        match &*shared {
            Some(buffer) => {
                let passage = Passage::new(self, engine, buffer, own, elements);
                Ok(Some(self.moving(own, || passage.run(&plan).unwrap_or_else(Transfer::failed))))
            }
            None => Ok(None),
        }
    }

    /// Exchanges the members' accesses. Returns the plan for all of them; `None` if each performs its access alone.
    fn plan(
        &self,
        engine: &Engine,
        own: Option<&Access>,
        elements: &Elements,
        direction: Direction,
    ) -> Result<Option<Plan>> {
        // A member that reads and one that writes do not agree.
        let wanted = 1 + direction as i64;
        let maps =
            i64::from(direction == Direction::Write && self.descriptor().for_mapping(direction).is_some());
        let mut own_part = [i64::MAX, 0, 0, 0, wanted, maps];
        if let Some(access) = own.filter(|access| access.bytes > 0) {
            let view = &access.view;
            let first = view.runs(access.at, access.bytes).next().map_or((0, 1), |run| run);
            let last = view.offset_of(access.at + access.bytes - 1)?;
            let fits =
                view.ascends() && !view.parts.representation.converts(direction) && elements.bytes() > 0;
            let agreed = fits && !self.is_atomic() && hints::buffers(&lock(&self.info), direction);
            let runs = access.bytes.div_ceil(first.1.max(1)) as i64;
            let wanted = if agreed { wanted } else { 0 };
            own_part = [first.0 as i64, last as i64 + 1, access.bytes as i64, runs, wanted, maps];
        }
        let all = self.exchange(engine, own_part)?;
        let sum = |i: usize| all.iter().fold(0_i64, |sum, part| sum.saturating_add(part[i]));
        let first = all.iter().map(|part| part[0]).min().unwrap_or(0);
        let end = all.iter().map(|part| part[1]).max().unwrap_or(0);
        let (bytes, runs) = (sum(2), sum(3));
        let agreed = all.iter().all(|part| part[4] == wanted);
        let sparse = if direction == Direction::Write { SPARSE_WRITE } else { SPARSE_READ };
        let pays = runs >= MANY * i64::from(self.comm.size())
            && bytes / runs.max(1) < SHORT
            && (end - first) / sparse <= bytes;
        let maps = all.iter().all(|part| part[5] == 1);
        let plan = Plan { direction, first: first as u64, end: end as u64, maps };
        Ok((agreed && bytes > 0 && pays).then_some(plan))
    }
}

/// A member's progress through the windows of an access.
struct Passage<'a> {
    file: &'a File,
    engine: &'a Engine,
    buffer: &'a SharedBuffer,
    elements: &'a Elements,
    runs: Option<super::view::Runs<'a>>,
    /// What is left of the run that is next: offset in the file, bytes.
    next: Option<(u64, u64)>,
    /// Bytes of this member's stream that are behind it.
    done: u64,
    /// A part of all maps, taken together.
    joined: Vec<u64>,
}

impl<'a> Passage<'a> {
    fn new(
        file: &'a File,
        engine: &'a Engine,
        buffer: &'a SharedBuffer,
        own: Option<&'a Access>,
        elements: &'a Elements,
    ) -> Self {
        let mut runs = own.map(|access| access.view.runs(access.at, access.bytes));
        let next = runs.as_mut().and_then(Iterator::next);
        Self { file, engine, buffer, elements, runs, next, done: 0, joined: Vec::new() }
    }

    fn run(mut self, plan: &Plan) -> Result<Transfer> {
        let mut start = plan.first - plan.first % PAGE as u64;
        while start < plan.end {
            let end = plan.end.min(start + self.buffer.window as u64);
            let before = self.done;
            let stopped = match plan.direction {
                Direction::Write => {
                    self.copy(start, end, Direction::Write);
                    self.file.barrier(self.engine)?;
                    self.write_part(start);
                    self.file.barrier(self.engine)?;
                    let stopped = self.stopped();
                    if let Some((at, _)) = stopped {
                        self.done = before + self.bytes_below(before, at);
                    }
                    stopped.filter(|(_, errno)| errno.is_some())
                }
                Direction::Read => {
                    self.read_part(start, plan);
                    self.file.barrier(self.engine)?;
                    let stopped = self.stopped();
                    let until = stopped.map_or(end, |(at, _)| end.min(at));
                    self.copy(start, until, Direction::Read);
                    // Nobody reads into the buffer before everybody has copied out of it.
                    self.file.barrier(self.engine)?;
                    stopped
                }
            };
            if let Some((at, errno)) = stopped {
                return Ok(self.ended(plan.direction, at, errno));
            }
            start = end;
        }
        Ok(Transfer::of(self.done, None))
    }

    /// What became of an access that has stopped at an offset. A member none of whose bytes are behind it has no error.
    fn ended(&self, direction: Direction, at: u64, errno: Option<Errno>) -> Transfer {
        let whole = self.next.is_none() && self.done == self.elements.bytes() as u64;
        let doing = match direction {
            Direction::Read => format!("reading at byte {at}, in a collective access"),
            Direction::Write => format!("writing at byte {at}, in a collective access"),
        };
        let error = errno.filter(|_| !whole).map(|errno| self.file.descriptor().failure(&doing, errno));
        Transfer::of(self.done, error)
    }

    /// Bytes of this member's stream, from position `from` on, that lie one behind the other below `limit`.
    fn bytes_below(&self, from: u64, limit: u64) -> u64 {
        let Some(runs) = &self.runs else { return 0 };
        let mut sum = 0;
        for (offset, len) in runs.again(from, self.done - from) {
            let below = len.min(limit.saturating_sub(offset));
            sum += below;
            if below < len {
                break;
            }
        }
        sum
    }

    /// Copies this member's bytes between its memory and the window of the file from `start` to `end`.
    fn copy(&mut self, start: u64, end: u64, direction: Direction) {
        let map = self.buffer.map(self.file.comm.rank() as usize);
        let run = self.elements.run();
        while let Some((offset, len)) = self.next.filter(|(offset, _)| (start..end).contains(offset)) {
            let now = len.min(end - offset) as usize;
            let (at, position) = ((offset - start) as usize, self.done as usize);
            // SAFETY: the window has `end - start` bytes, and these are this member's (two-phase rule 1). The elements
            // have `now` bytes at `position` (elements rule).
            unsafe {
                let place = self.buffer.base.add(at).as_ptr();
                match (direction, run) {
                    (Direction::Write, Some(run)) => {
                        copy_run(run.add(position), place, now);
                    }
                    (Direction::Write, None) => {
                        self.elements.pack(position, slice::from_raw_parts_mut(place, now));
                    }
                    (Direction::Read, Some(run)) => {
                        copy_run(place, run.add(position), now);
                    }
                    (Direction::Read, None) => {
                        self.elements.unpack(position, slice::from_raw_parts(place, now))
                    }
                }
                if direction == Direction::Write {
                    mark_filled(map, at, now);
                }
            }
            self.done += now as u64;
            self.next = if (now as u64) < len {
                Some((offset + now as u64, len - now as u64))
            } else {
                self.runs.as_mut().and_then(Iterator::next)
            };
        }
    }

    fn report(&self, report: Report) {
        // SAFETY: a member's own report, which the others read behind a barrier.
        unsafe { self.buffer.report(self.file.comm.rank() as usize).write(report) };
    }

    /// The first place at which a member's part has stopped, and the error there.
    fn stopped(&self) -> Option<(u64, Option<Errno>)> {
        let reports = (0..self.buffer.members).map(|member| {
            // SAFETY: the member has written it before the barrier, and writes it again behind the next one.
            unsafe { self.buffer.report(member).read_volatile() }
        });
        let stopped = reports.filter(|report| report.stopped != NOWHERE);
        stopped.map(|report| (report.stopped, errno_of(report.errno))).min_by_key(|(at, _)| *at)
    }

    /// Writes what anybody has put into this member's part of the window.
    fn write_part(&mut self, start: u64) {
        let part = self.buffer.part(self.file.comm.rank() as usize);
        let words = part.len() / WORD;
        self.joined.clear();
        self.joined.resize(words, 0);
        for member in 0..self.buffer.members {
            // SAFETY: this member's part of everybody's map (two-phase rule 1).
            let theirs = unsafe {
                slice::from_raw_parts_mut(self.buffer.map(member).add(part.start / WORD).as_ptr(), words)
            };
            for (all, word) in self.joined.iter_mut().zip(theirs) {
                *all |= core::mem::take(word);
            }
        }
        let file = self.file.descriptor();
        // SAFETY: these are the bytes of this member's part of the window (two-phase rule 1).
        let bytes = unsafe { slice::from_raw_parts(self.buffer.base.add(part.start).as_ptr(), part.len()) };
        let mut writer = PartWriter {
            file,
            start: start + part.start as u64,
            bytes,
            runs: Vec::new(),
            report: Report::WHOLE,
        };
        filled_runs(&self.joined, |at, len| writer.take(at, len));
        writer.flush();
        let report = writer.report;
        self.report(report);
    }

    /// Reads this member's part of the window, as far as anybody's bytes are in it.
    fn read_part(&self, start: u64, plan: &Plan) {
        let part = self.buffer.part(self.file.comm.rank() as usize);
        let from = plan.first.max(start + part.start as u64);
        let to = plan.end.min(start + part.end as u64);
        let mut report = Report::WHOLE;
        if from < to {
            let (at, len) = ((from - start) as usize, (to - from) as usize);
            // SAFETY: these are bytes of this member's part of the window (two-phase rule 1).
            let room = unsafe { slice::from_raw_parts_mut(self.buffer.base.add(at).as_ptr(), len) };
            let (read, errno) = self.file.descriptor().read_raw(from, room);
            if errno.is_some() || read < len as u64 {
                report = Report { stopped: from + read, errno: number_of(errno) };
            }
        }
        self.report(report);
    }
}

/// Writes the runs of a part, many short ones through a mapping.
struct PartWriter<'a> {
    file: &'a Descriptor,
    /// The file's offset of the part.
    start: u64,
    bytes: &'a [u8],
    runs: Vec<(u64, u64)>,
    report: Report,
}

impl PartWriter<'_> {
    fn take(&mut self, at: usize, len: usize) {
        let (offset, len) = (self.start + at as u64, len as u64);
        let far = self.runs.first().is_some_and(|(first, _)| offset + len - first > mapped::WINDOW);
        if len >= mapped::SHORT_RUN || far {
            self.flush();
        }
        self.runs.push((offset, len));
        if len >= mapped::SHORT_RUN || self.runs.len() == MOST_RUNS {
            self.flush();
        }
    }

    fn flush(&mut self) {
        let runs = core::mem::take(&mut self.runs);
        let piece = |(offset, len): &(u64, u64)| {
            let at = (offset - self.start) as usize;
            &self.bytes[at..at + *len as usize]
        };
        if self.report.stopped != NOWHERE
            || runs.len() >= mapped::FEW && mapped::write_pieces(self.file, &runs, |i| piece(&runs[i]))
        {
            return;
        }
        for run in &runs {
            let (written, errno) = self.file.write_raw(run.0, piece(run));
            if errno.is_some() {
                self.report = Report { stopped: run.0 + written, errno: number_of(errno) };
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_third_write_of_a_span_finds_its_pages() {
        let mut filled = Filled::default();
        let writes = [(0, 100), (0, 100), (10, 90), (0, 100), (0, 101), (0, 100), (5, 101)];
        let long: Vec<bool> = writes.iter().map(|(first, end)| filled.note(*first, *end)).collect();
        assert_eq!(long, [false, false, true, true, false, false, true]);
    }
}
