//! Open Trace Format 2, through its own library.
//!
//! Each stream of a rank has two locations: its calls, arrivals, sleeps and collectives on one, its searches of the
//! queues on another, so that tools which sum up time by location keep them apart.
//! Messages and queue lengths are on the rank's first location.
//!
//! | file | what it defines |
//! |---|---|
//! | `library`, `writer` | the functions of OTF2; an archive that is being written |
//! | `calls`, `communicators`, `collectives`, `files`, `windows` | which records of OTF2 those of a trace become |

mod calls;
mod collectives;
mod communicators;
mod files;
mod library;
mod windows;
mod writer;

use super::super::files::JobFiles;
use super::super::model::{RankTrace, Record, RecordPayload, Trace};
use super::super::windows::JobWindows;
use super::labels;
use super::slices::{Edge, SliceKind, Slices};
use crate::error::{Error, Result};
use crate::events::{Collective, Event, FileOperation, RmaOperation, WindowSync};
use calls::CalledFunctions;
use collectives::OpenCollectives;
use communicators::{Otf2Communicators, Otf2Ranks};
use files::Otf2Files;
use library::Library;
use std::path::Path;
use windows::Otf2Windows;
use writer::{Archive, Attribute, AttributeKind, Definitions, Location};

/// Regions that are always there; collectives follow, then one-sided operations, calls that synchronise windows, waits
/// for locks, accesses to files, and functions that the program calls.
const REGIONS: [(&str, u8); 6] = [
    ("send", POINT_TO_POINT),
    ("receive", POINT_TO_POINT),
    ("arrival", POINT_TO_POINT),
    ("search posted queue", CODE),
    ("search unexpected queue", CODE),
    ("sleep", CODE),
];
const CODE: u8 = 4;
const COLLECTIVE: u8 = 26;
const FILE_IO: u8 = 27;
const POINT_TO_POINT: u8 = 28;
const RMA: u8 = 29;

const COLLECTIVES: u32 = REGIONS.len() as u32;
const OPERATIONS: u32 = COLLECTIVES + Collective::NAMES.len() as u32;
const SYNCHRONIZATIONS: u32 = OPERATIONS + RmaOperation::NAMES.len() as u32;
const LOCK_WAIT: u32 = SYNCHRONIZATIONS + WindowSync::NAMES.len() as u32;
const FILE_ACCESSES: u32 = LOCK_WAIT + 1;
/// Calls of the program's, by the function's number.
const CALLS: u32 = FILE_ACCESSES + FileOperation::NAMES.len() as u32;

/// Metric classes, which are metrics' numbers in events: both queues together, and what a search compared.
const QUEUES: u32 = 0;
const COMPARED: u32 = 1;

const ATTRIBUTE_SOURCE: u32 = 0;
const ATTRIBUTE_TAG: u32 = 1;
const ATTRIBUTE_COMMUNICATOR: u32 = 2;
const ATTRIBUTE_COMPARED: u32 = 3;
const ATTRIBUTE_FOUND: u32 = 4;
/// Attributes of the regions of searches: of their begins, and of their ends.
const ATTRIBUTES: [(u32, &str, &str, AttributeKind); 5] = [
    (
        ATTRIBUTE_SOURCE,
        "source",
        "rank of the sender in the communicator, or MPI_ANY_SOURCE",
        AttributeKind::Int32,
    ),
    (ATTRIBUTE_TAG, "tag", "tag of the message, or MPI_ANY_TAG", AttributeKind::Int32),
    (ATTRIBUTE_COMMUNICATOR, "communicator", "communicator of the message", AttributeKind::Comm),
    (ATTRIBUTE_COMPARED, "compared", "queue entries that the search compared", AttributeKind::Uint32),
    (ATTRIBUTE_FOUND, "found", "1 if the search found something, else 0", AttributeKind::Uint32),
];

/// Writes the trace as an OTF2 archive into the folder `folder`, which must not be there yet;
/// its anchor file is `traces.otf2`.
///
/// # Errors
/// [`Error::Trace`]: the library is missing, the folder is there, or what OTF2 says.
pub fn otf2(trace: &Trace, folder: &Path) -> Result<()> {
    if folder.exists() {
        return Err(Error::Trace(format!(
            "{}: is there; an OTF2 archive is a new folder, so name another or remove it",
            folder.display()
        )));
    }
    let library = Library::load()?;
    let archive = Archive::create(&library, folder)?;
    let ranks = Otf2Ranks::of(trace);
    let comms = Otf2Communicators::of(trace);
    let windows = Otf2Windows { job: JobWindows::of(trace), first: comms.list.len() as u32 };
    let first = windows.first + windows.job.all.len() as u32;
    let objects = Otf2Objects {
        calls: CalledFunctions::of(trace),
        windows,
        files: Otf2Files { job: JobFiles::of(trace), first },
    };
    let mut counts = Vec::new();
    for (place, rank) in trace.ranks.iter().enumerate() {
        counts.push(write_rank(&archive, place, rank, &comms, &objects)?);
    }
    let others = || ranks.others().map(|(place, _)| location_of(place));
    for location in others() {
        archive.location(location)?.close()?;
    }
    archive.close_events()?;
    let definitions = archive.definitions()?;
    define(&definitions, trace, (&comms, &ranks), &objects, &counts)?;
    objects.windows.define(&definitions, &ranks)?;
    objects.files.define(&definitions, &ranks)?;
    definitions.close()?;
    for location in trace.ranks.iter().flat_map(locations).flatten().chain(others()) {
        archive.local_definitions(location)?;
    }
    archive.close()
}

/// The first location of the rank at this place.
fn location_of(place: u32) -> u64 {
    u64::from(place) << 20
}

/// The locations of a rank, by stream: for what it does, and for its searches.
/// A rank that recorded nothing has one all the same.
fn locations(rank: &RankTrace) -> Vec<[u64; 2]> {
    let first = location_of(rank.rank);
    (0..u64::from(rank.streams.max(1))).map(|stream| [first + stream * 2, first + stream * 2 + 1]).collect()
}

/// What ranks made together, beside communicators, and what they called.
struct Otf2Objects<'a> {
    calls: CalledFunctions,
    windows: Otf2Windows<'a>,
    files: Otf2Files<'a>,
}

impl Otf2Objects<'_> {
    fn put(&self, location: &mut Location<'_>, place: usize, record: &Record) -> Result<()> {
        self.windows.put(location, place, record)?;
        self.files.put(location, place, record)
    }
}

/// Events on each location of a rank.
type Otf2Counts = Vec<[u64; 2]>;

/// The events of one rank.
fn write_rank(
    archive: &Archive<'_>,
    place: usize,
    rank: &RankTrace,
    comms: &Otf2Communicators,
    objects: &Otf2Objects<'_>,
) -> Result<Otf2Counts> {
    let numbers = locations(rank);
    let mut open = Vec::new();
    for [calls, searches] in &numbers {
        open.push([archive.location(*calls)?, archive.location(*searches)?]);
    }
    let mut slices = Slices::each_once();
    let mut edges = Vec::new();
    let mut queues = None;
    let mut collectives = OpenCollectives::default();
    for record in &rank.records {
        slices.step(record, &mut edges);
        // How many entries a search compared is written before its end.
        if let RecordPayload::Search { depth, .. } = record.payload {
            let [_, searches] = &mut open[usize::from(record.stream)];
            searches.metric(record.when, COMPARED, &[u64::from(depth)])?;
        }
        // What an operation does comes after its region's begin and before its end.
        let (ends, begins): (Vec<Edge>, Vec<Edge>) = edges.drain(..).partition(|edge| !edge.enter);
        if begins.is_empty() {
            collectives.put(&mut open[usize::from(record.stream)][0], rank, record, comms)?;
            objects.put(&mut open[usize::from(record.stream)][0], place, record)?;
        }
        for edge in ends.iter().chain(&begins) {
            if edge.kind.is_search() {
                put_search(&mut open, edge, (rank, record), comms, &objects.calls)?;
            } else {
                put_edge(&mut open, edge, &objects.calls)?;
            }
        }
        if !begins.is_empty() {
            collectives.put(&mut open[usize::from(record.stream)][0], rank, record, comms)?;
            objects.put(&mut open[usize::from(record.stream)][0], place, record)?;
        }
        let [first, _] = &mut open[0];
        put_message(first, rank, record, comms)?;
        let now = [u64::from(record.posted), u64::from(record.unexpected)];
        if queues != Some(now) {
            first.metric(record.when, QUEUES, &now)?;
            queues = Some(now);
        }
    }
    slices.finish(rank.records.last().map_or(0, |record| record.when), &mut edges);
    for edge in edges {
        put_edge(&mut open, &edge, &objects.calls)?;
    }
    let mut counts = Otf2Counts::new();
    for [calls, searches] in open {
        counts.push([calls.close()?, searches.close()?]);
    }
    Ok(counts)
}

/// The begin or the end of a search, with what its event says: Vampir shows that as attributes of the region.
fn put_search(
    open: &mut [[Location<'_>; 2]],
    edge: &Edge,
    (rank, record): (&RankTrace, &Record),
    comms: &Otf2Communicators,
    calls: &CalledFunctions,
) -> Result<()> {
    let location = &mut open[usize::from(edge.stream)][1];
    match record.payload {
        RecordPayload::Search { depth, hit } => {
            location.attribute(ATTRIBUTE_COMPARED, Attribute::Uint32(depth))?;
            location.attribute(ATTRIBUTE_FOUND, Attribute::Uint32(hit.into()))?;
        }
        _ if edge.enter => {
            location.attribute(ATTRIBUTE_SOURCE, Attribute::Int32(record.peer))?;
            location.attribute(ATTRIBUTE_TAG, Attribute::Int32(record.tag))?;
            if let Some(comm) = comms.number(rank, record) {
                location.attribute(ATTRIBUTE_COMMUNICATOR, Attribute::Comm(comm))?;
            }
        }
        _ => {}
    }
    put_edge(open, edge, calls)
}

fn put_edge(open: &mut [[Location<'_>; 2]], edge: &Edge, calls: &CalledFunctions) -> Result<()> {
    let location = &mut open[usize::from(edge.stream)][usize::from(edge.kind.is_search())];
    let region = match edge.kind {
        SliceKind::Call(function) => calls.region(function),
        SliceKind::Send => 0,
        SliceKind::Receive => 1,
        SliceKind::Arrival => 2,
        SliceKind::SearchPosted => 3,
        SliceKind::SearchUnexpected => 4,
        SliceKind::Sleep => 5,
        // Operations of a later version share the last number.
        SliceKind::Collective(operation) => {
            COLLECTIVES + u32::from(operation).min(OPERATIONS - COLLECTIVES - 1)
        }
        SliceKind::OneSided(operation) => {
            OPERATIONS + u32::from(operation).min(SYNCHRONIZATIONS - OPERATIONS - 1)
        }
        SliceKind::Synchronization(call) => {
            SYNCHRONIZATIONS + u32::from(call).min(LOCK_WAIT - SYNCHRONIZATIONS - 1)
        }
        SliceKind::LockWait => LOCK_WAIT,
        SliceKind::FileAccess(operation) => {
            FILE_ACCESSES + u32::from(operation).min(FileOperation::NAMES.len() as u32 - 1)
        }
    };
    if edge.enter { location.enter(edge.when, region) } else { location.leave(edge.when, region) }
}

/// A message leaves when its send begins, and comes when it is matched; a partitioned one when it is complete.
fn put_message(
    location: &mut Location<'_>,
    rank: &RankTrace,
    record: &Record,
    comms: &Otf2Communicators,
) -> Result<()> {
    let sent = matches!(record.event, Event::ReqActivate | Event::PartStart) && record.send;
    let came = match record.event {
        Event::MsgMatchPostedReq => true,
        Event::MsgRemoveFromUnexQ => record.payload != RecordPayload::Cancelled,
        Event::PartComplete => !record.send,
        _ => false,
    };
    if !sent && !came {
        return Ok(());
    }
    let Some((comm, peer)) = comms.with_peer(rank, record, record.peer) else { return Ok(()) };
    let Record { when, tag, bytes, .. } = *record;
    if sent {
        location.send(when, peer, comm, tag.cast_unsigned(), bytes)
    } else {
        location.receive(when, peer, comm, tag.cast_unsigned(), bytes)
    }
}

/// What the events speak of.
fn define(
    to: &Definitions<'_>,
    trace: &Trace,
    (comms, ranks): (&Otf2Communicators, &Otf2Ranks),
    objects: &Otf2Objects<'_>,
    counts: &[Otf2Counts],
) -> Result<()> {
    let job = &trace.job;
    to.clock(job.duration, job.started)?;
    to.paradigm("MPI")?;
    to.node(&job.host, &job.command)?;
    for (region, (name, role)) in (0..).zip(REGIONS) {
        to.region(region, name, role)?;
    }
    for (region, operation) in (COLLECTIVES..).zip(0..Collective::NAMES.len() as u16) {
        let name = collectives::function(operation);
        to.region(region, &name, calls::role(&name))?;
    }
    for (region, operation) in (OPERATIONS..).zip(0..RmaOperation::NAMES.len() as u8) {
        to.region(region, &labels::one_sided(operation), RMA)?;
    }
    for (region, call) in (SYNCHRONIZATIONS..).zip(0..WindowSync::NAMES.len() as u8) {
        to.region(region, &labels::synchronization(call), RMA)?;
    }
    to.region(LOCK_WAIT, "wait for lock", RMA)?;
    for (region, operation) in (FILE_ACCESSES..).zip(0..FileOperation::NAMES.len() as u8) {
        to.region(region, &labels::file_access(operation), FILE_IO)?;
    }
    for (region, name, role) in objects.calls.regions() {
        to.region(region, name, role)?;
    }
    for (number, name, what, kind) in ATTRIBUTES {
        to.attribute(number, name, what, kind)?;
    }
    for (member, name, what) in [
        (0, "posted queue", "receives that wait for their message"),
        (1, "unexpected queue", "messages that wait for their receive"),
        (2, "entries compared", "queue entries that a search compared"),
    ] {
        to.metric_member(member, name, what)?;
    }
    to.metric_class(QUEUES, &[0, 1])?;
    to.metric_class(COMPARED, &[2])?;
    for (rank, counts) in trace.ranks.iter().zip(counts) {
        to.process(rank.rank, &format!("rank {}", rank.rank))?;
        for (stream, (numbers, counts)) in locations(rank).into_iter().zip(counts).enumerate() {
            let of = if stream == 0 { String::new() } else { format!(" of stream {stream}") };
            to.location(numbers[0], &format!("messages{of}"), counts[0], rank.rank)?;
            to.location(numbers[1], &format!("searches{of}"), counts[1], rank.rank)?;
        }
    }
    for (place, rank) in ranks.others() {
        to.process(place, &format!("rank {rank}, not traced"))?;
        to.location(location_of(place), "messages", 0, place)?;
    }
    let traced = trace.ranks.iter().map(|rank| locations(rank)[0][0]);
    let all: Vec<u64> = traced.chain(ranks.others().map(|(place, _)| location_of(place))).collect();
    to.ranks(&all)?;
    for (number, comm) in (0..).zip(&comms.list) {
        to.communicator(number, &comm.name, &ranks.group(&comm.members))?;
    }
    Ok(())
}
