//! Operations without a request, or whose request is not all that ends them: one-sided operations use their buffers
//! until they are flushed or their epoch ends, split collective accesses to files until they are ended, buffered sends
//! the attached buffer until it is detached.

use super::buffers::{Access, Area};
use super::{Kind, State, conflicts, function, report, targets, with};
use crate::abi::MPI_PROC_NULL;
use crate::arguments::{Buffer, Target};
use crate::datatypes;
use crate::files::FileObject;
use crate::windows::WindowObject;
use core::cell::Cell;
use core::ffi::c_int;
use std::collections::BTreeMap;

/// What ends an access.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Until {
    /// The end of its epoch, or a flush: the context of the window, and the target.
    Flush(u32, c_int),
    /// The end of the split collective access to the file with that context.
    End(u32),
    /// The detachment of the buffer that begins there.
    Detach(usize),
}

impl Until {
    const fn kind(self) -> Kind {
        match self {
            Self::Flush(..) => Kind::OneSided,
            Self::End(_) => Kind::SplitFile,
            Self::Detach(_) => Kind::Attached,
        }
    }
}

struct LiveAccess {
    until: Until,
    text: String,
    areas: Vec<Area>,
    /// What it reads, as it was at the beginning.
    sums: Vec<Option<u64>>,
}

/// Accesses that have not ended, by number.
#[derive(Default)]
pub struct Accesses {
    live: BTreeMap<usize, LiveAccess>,
    /// Those that requests stand for.
    of_requests: BTreeMap<usize, usize>,
    begun: usize,
}

/// Numbers of accesses are above all handles of requests.
const ABOVE: usize = 1 << (usize::BITS - 1);

thread_local! {
    /// The access that this thread has begun last.
    static LAST: Cell<usize> = const { Cell::new(0) };
}

impl Accesses {
    /// The call that made the access, and what ends it, if that number is one's.
    pub fn text(&self, number: usize) -> Option<(String, Kind)> {
        let access = self.live.get(&number)?;
        Some((access.text.clone(), access.until.kind()))
    }

    /// The one-sided operations on the window of that context that use buffers here.
    pub fn on(&self, context: u32) -> Vec<String> {
        let is_of = |access: &&LiveAccess| matches!(access.until, Until::Flush(of, _) if of == context);
        let of_window = self.live.values().filter(is_of).filter(|access| !access.areas.is_empty());
        of_window.map(|access| access.text.clone()).collect()
    }

    /// Forgets what the buffers held: the program may know that operations are over.
    pub fn forget_sums(&mut self) {
        self.live.values_mut().for_each(|access| access.sums.clear());
    }
}

/// Returns the number of the access.
fn begin(until: Until, text: &str, areas: Vec<Area>) -> Option<usize> {
    conflicts(&areas, || text.to_owned());
    with(|state| {
        state.accesses.begun += 1;
        let number = ABOVE | state.accesses.begun;
        areas.iter().for_each(|area| state.buffers.add(number, area.clone()));
        let sums = areas.iter().map(Area::sum).collect();
        state.accesses.live.insert(number, LiveAccess { until, text: text.to_owned(), areas, sums });
        LAST.set(number);
        number
    })
}

fn end(state: &mut State, is_over: impl Fn(usize, Until) -> bool) {
    let over = state.accesses.live.extract_if(.., |number, access| is_over(*number, access.until));
    for (number, access) in over {
        state.buffers.remove(number, &access.areas);
        if Area::first_changed(&access.areas, &access.sums).is_some() {
            state.findings.say(format!(
                "the buffer of {} was changed before it was complete; {}",
                access.text,
                access.until.kind().advice()
            ));
        }
    }
}

/// A window's name in quotation marks.
pub fn window_name(win: &WindowObject) -> String {
    match win.name() {
        name if name.is_empty() => "a window without a name".to_owned(),
        name => format!("window '{}'", String::from_utf8_lossy(&name)),
    }
}

/// A one-sided operation begins, which uses these buffers.
pub fn began_one_sided(target: &Target<'_>, buffers: &[(&Buffer<'_>, Access)]) {
    if target.rank == MPI_PROC_NULL {
        return;
    }
    let rank = target.win.group().world_rank(target.rank as u32);
    let areas: Vec<Area> = buffers.iter().filter_map(|(buffer, access)| Area::of(buffer, *access)).collect();
    let bytes = areas.first().map_or(0, Area::bytes);
    let bytes = report::bytes(bytes as u64);
    let text = format!("{} (rank {rank}, on {}, {bytes})", function(), window_name(target.win));
    if let Some((buffer, _)) = buffers.first() {
        say_other_type(target, buffer, &text);
    }
    if let Some(number) = begin(Until::Flush(target.win.context(), target.rank), &text, areas) {
        // An operation that has nothing at its origin to read, as one with MPI_NO_OP, changes nothing at its target.
        let only_reads = buffers.iter().all(|(_, access)| *access == Access::Write);
        targets::began(target, number, &text, only_reads);
    }
}

/// Says where the elements of an operation have other basic types at the target than at the origin (MPI 5.0 §12.3).
fn say_other_type(target: &Target<'_>, buffer: &Buffer<'_>, text: &str) {
    let there = || datatypes::any(target.datatype()).ok().zip(datatypes::any(buffer.datatype).ok());
    let Some((theirs, own)) = there() else { return };
    let bytes = usize::try_from(buffer.count).unwrap_or(0).saturating_mul(own.size());
    let (Some(one), Some(other)) = (own.sequence_number(bytes), theirs.sequence_number(bytes)) else {
        return;
    };
    if bytes > 0 && one != other {
        let (own, theirs) = (own.contents_text(bytes), theirs.contents_text(bytes));
        let finding =
            format!("{text} has {own} at the origin and {theirs} at the target; give both the same type");
        with(|state| state.findings.say(finding));
    }
}

/// The request of the one-sided operation that this thread has begun last: its completion ends the operation, too.
pub fn one_sided_request(request: usize) {
    with(|state| {
        let number = LAST.get();
        if let Some(access) = state.accesses.live.get(&number) {
            let text = access.text.clone();
            state.accesses.of_requests.insert(request, number);
            state.requests.rename(request, text);
        }
    });
}

/// A request is complete.
pub fn request_ended(state: &mut State, request: usize) {
    if let Some(number) = state.accesses.of_requests.remove(&request) {
        if let Some(LiveAccess { until: Until::Flush(context, _), .. }) = state.accesses.live.get(&number) {
            targets::get_ended(state, *context, number);
        }
        end(state, |other, _| other == number);
    }
}

/// The one-sided operations on a window with a target, or with all, are complete at their origin.
pub fn flushed(win: &WindowObject, target: Option<c_int>) {
    let context = win.context();
    // What is flushed here alone may not be complete at its target.
    targets::ended(win, target, function().starts_with("MPI_Win_flush_local"));
    with(|state| {
        end(state, |_, until| match until {
            Until::Flush(of, rank) => of == context && target.is_none_or(|target| target == rank),
            Until::End(_) | Until::Detach(_) => false,
        });
    });
}

/// A window is about to be freed: says which one-sided operations no call has ended (MPI 5.0 §12.2.5).
pub fn window_freed(win: &WindowObject) {
    let context = win.context();
    with(|state| {
        for text in state.accesses.on(context) {
            state
                .findings
                .say(format!("{text} was not ended before MPI_Win_free; call MPI_Win_fence between the two"));
        }
    });
    targets::window_freed(win);
    flushed(win, None);
}

/// A split collective access begins.
pub fn began_split(file: &FileObject, buffer: &Buffer<'_>, access: Access) {
    let areas: Vec<Area> = Area::of(buffer, access).into_iter().collect();
    let _ = begin(Until::End(file.file().context()), &file_text(file, buffer), areas);
}

/// The split collective access of a file has ended.
pub fn ended_split(file: &FileObject) {
    let context = file.file().context();
    with(|state| end(state, |_, until| until == Until::End(context)));
}

/// The program has attached a buffer of so many bytes: it is the library's until it is detached (MPI 5.0 §3.6).
pub fn attached(addr: *const u8, bytes: usize) {
    let areas: Vec<Area> = Area::of_bytes(addr, bytes, Access::Write).into_iter().collect();
    let text = format!("{} ({})", function(), report::bytes(bytes as u64));
    let _ = begin(Until::Detach(addr.addr()), &text, areas);
}

/// The buffer that begins there is the program's again.
pub fn detached(start: usize) {
    with(|state| end(state, |_, until| until == Until::Detach(start)));
}

/// An access to a file that is over when its call returns.
pub fn blocking_file(file: &FileObject, buffer: &Buffer<'_>, access: Access) {
    let areas: Vec<Area> = Area::of(buffer, access).into_iter().collect();
    conflicts(&areas, || file_text(file, buffer));
}

/// Elements are about to be packed into so many bytes at `packed`, or unpacked from there;
/// `access` is what is done with the elements.
pub fn packing(elements: &Buffer<'_>, access: Access, packed: *const u8, bytes: usize) {
    let other = if access == Access::Read { Access::Write } else { Access::Read };
    let areas = [Area::of(elements, access), Area::of_bytes(packed, bytes, other)];
    let areas: Vec<Area> = areas.into_iter().flatten().collect();
    conflicts(&areas, || format!("{} ({})", function(), report::bytes(bytes as u64)));
}

/// A file's name in quotation marks.
pub fn file_name(file: &FileObject) -> String {
    format!("file '{}'", file.file().name())
}

/// What is said of an access to a file.
pub fn file_text(file: &FileObject, buffer: &Buffer<'_>) -> String {
    let bytes = Area::of(buffer, Access::Read).map_or(0, |area| area.bytes());
    format!("{} ({}, {})", function(), file_name(file), report::bytes(bytes as u64))
}
