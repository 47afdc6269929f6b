//! The recorder: a [`GlobalSubscriber`] that writes a record for each event into a mapped file,
//! and does next to nothing else.
//!
//! Each thread that is inside MPI writes into a window of its own, so that threads do not meet and records of one
//! stream are in order. That window, the stream's *stage*, is mapped from the file: what has been stored there is the
//! kernel's, and in the file whatever becomes of the process. When it is full it is copied behind the others by one
//! system call, and written again: so all stores go to the same sixteen pages,
//! which stay in the cache and meet no fault.
//!
//! # Rules
//! - **Recorder rule 1.** A stream belongs to one thread at a time: from its being taken out of `idle`, or made, to the
//!   thread's end, when it goes back. Its pen and stage are touched by that thread alone.
//! - **Recorder rule 2.** A thread's own pen (`HERE`) is the pen of the recorder that it names, or of none. Numbers of
//!   recorders are not given twice.
//! - **Recorder rule 3.** What lies between a pen's `at` and its `end` is inside the stage that the stream of the pen
//!   holds, is taken on disk, and has no record that counts.

use super::file::{Store, WindowError};
use super::format::{self, RawRecord};
use super::stage::{RecordSlot, WORDS, WindowHeader};
use crate::arch::clock;
use crate::error::Result;
use crate::events::{
    Event, EventPayload, EventRecord, EventSet, GlobalSubscriber, GlobalSubscription, Operation, Registry,
    Words, polls,
};
use crate::shm::Job;
use crate::sync::{AtomicU64, Mutex, MutexGuard, Ordering};
use core::cell::{Cell, RefCell};
use memmap2::MmapRaw;
use std::path::Path;
use std::sync::{Arc, PoisonError};

/// The trace's file; set by the launcher for its ranks.
pub const PATH_VARIABLE: &str = "PERUSAL_TRACE";

/// What is recorded: all, but for the regions of one-sided operations, whose beginnings and ends are recorded.
const RECORDED: EventSet =
    EventSet::ALL.without(Event::WinRegionBegin).without(Event::WinRegionEnd).without(Event::FileDiskAccess);

/// Where the next record goes.
#[derive(Debug, Clone, Copy)]
struct Pen {
    at: *const RecordSlot,
    end: *const RecordSlot,
}

impl Pen {
    const NONE: Pen = Pen { at: core::ptr::null(), end: core::ptr::null() };
}

/// What a thread has at hand. No destructor, so that looking at it is one load.
struct ThreadPen {
    /// Number of the recorder that the pen is of; 0 is none.
    owner: Cell<u64>,
    pen: Cell<Pen>,
    /// The beginning of a call that looks once whether something has happened, for the recorder of that number;
    /// written once something has.
    look_owner: Cell<u64>,
    look: Cell<[u64; WORDS]>,
}

crate::sync::thread_local! {
    static HERE: ThreadPen = const {
        ThreadPen { owner: Cell::new(0), pen: Cell::new(Pen::NONE), look_owner: Cell::new(0), look: Cell::new([0; WORDS]) }
    };
    /// The streams that this thread has, for each recorder that it has written to.
    static TAKEN: RefCell<Vec<OwnedStream>> = const { RefCell::new(Vec::new()) };
}

/// A recording that goes on until this is dropped.
#[derive(Debug)]
#[must_use = "a recording that is dropped ends at once"]
pub struct Recording {
    _handle: GlobalSubscription,
}

impl Recording {
    /// Records all events of `registry` in the trace that the launcher has made at `path`, as those of job rank `rank`.
    ///
    /// # Errors
    /// [`crate::Error::Trace`] with the path.
    pub fn start(path: &Path, rank: u32, registry: &Arc<Registry>) -> Result<Recording> {
        let recorder = Recorder::new(Store::open(path, rank)?);
        Ok(Recording { _handle: registry.subscribe_globally(RECORDED, Arc::new(recorder)) })
    }

    /// As [`Self::start`], if the launcher of the job asks for it. A trace that cannot be written keeps no program from
    /// running: what is wrong is said on standard error.
    #[must_use]
    pub fn of_job(job: &Job, registry: &Arc<Registry>) -> Option<Recording> {
        let path = std::env::var_os(PATH_VARIABLE).filter(|path| !path.is_empty())?;
        if job.launcher().is_none() {
            // A job of threads, or of one, inside a traced rank is another job.
            if job.rank() == 0 {
                crate::error::report(format_args!(
                    "a job of {} inside a traced program is not traced: --trace records the ranks that the launcher starts; for threads there is run_threads_traced",
                    job.size()
                ));
            }
            return None;
        }
        let started = Recording::start(Path::new(&path), job.rank(), registry);
        started
            .inspect_err(|error| {
                crate::error::report(format_args!("rank {} is not traced: {error}", job.rank()))
            })
            .ok()
    }
}

/// One rank's recorder.
#[derive(Debug)]
pub(super) struct Recorder {
    number: u64,
    shared: Arc<RecorderShared>,
}

/// What threads keep of a recorder.
#[derive(Debug)]
struct RecorderShared {
    store: Store,
    /// Streams whose threads have ended.
    idle: Mutex<Vec<RecordStream>>,
}

/// One source of records.
#[derive(Debug)]
struct RecordStream {
    number: u32,
    stage: Option<MmapRaw>,
    /// How often the stage was full.
    sequence: u32,
    /// The time of the last record before the stage was written again.
    after: u64,
    /// Where it goes on when its thread has another recorder's pen, or none.
    pen: Pen,
    /// No more room is to be had.
    closed: bool,
}

// SAFETY: the pen points into the stage that the stream owns, and goes where the stream goes (recorder rule 1).
unsafe impl Send for RecordStream {}

/// A stream in the hands of a thread.
struct OwnedStream {
    owner: u64,
    shared: Arc<RecorderShared>,
    /// Always there, but while it is given back.
    stream: Option<RecordStream>,
}

impl Drop for OwnedStream {
    fn drop(&mut self) {
        let Some(mut stream) = self.stream.take() else { return };
        // The thread ends: what it has at hand may be gone already, and then nobody has moved the pen since.
        let _ = HERE.try_with(|here| {
            if here.owner.get() == self.owner {
                stream.pen = here.pen.replace(Pen::NONE);
                here.owner.set(0);
            }
        });
        self.shared.idle().push(stream);
    }
}

impl RecorderShared {
    fn idle(&self) -> MutexGuard<'_, Vec<RecordStream>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl GlobalSubscriber for Recorder {
    #[inline]
    fn on_event(&self, record: &EventRecord<'_>) {
        // What PERUSE has of a partitioned request: its own events say more.
        if matches!(record.payload, EventPayload::Partitioned) {
            return;
        }
        let entry = self.entry(record);
        if !self.held_back(record, &entry) && !self.write(entry.pack()) {
            self.shared.store.drop_event(entry.event);
        }
        match record.payload {
            EventPayload::Comm { .. } | EventPayload::Name(_)
                if !matches!(record.event, Event::CommFreed | Event::WinFreed | Event::FileClosed) =>
            {
                self.write_long(record)
            }
            _ => {}
        }
        if record.event == Event::Finalizing {
            self.shared.store.finalized();
        }
    }
}

impl Recorder {
    pub(super) fn new(store: Store) -> Recorder {
        static NUMBERS: AtomicU64 = AtomicU64::new(1);
        // Relaxed: a counter.
        let number = NUMBERS.fetch_add(1, Ordering::Relaxed);
        Recorder { number, shared: Arc::new(RecorderShared { store, idle: Mutex::new(Vec::new()) }) }
    }

    /// The file.
    pub(super) fn store(&self) -> &Store {
        &self.shared.store
    }

    /// Ticks since the header's moment.
    #[inline(always)]
    pub(super) fn now(&self) -> u64 {
        clock::ticks().saturating_sub(self.shared.store.base)
    }

    /// The raw record of an event, as [`RawRecord`] has its words.
    #[inline(always)]
    fn entry(&self, record: &EventRecord<'_>) -> RawRecord {
        let spec = record.spec;
        let ticks = self.now();
        let mut words =
            Words { first: spec.peer.cast_unsigned(), second: spec.tag.cast_unsigned(), third: spec.bytes };
        match record.payload {
            EventPayload::None | EventPayload::Arrival { .. } => {}
            search @ EventPayload::Search { .. } => search.pack(&mut words),
            rare => pack(record.event, rare, &mut words),
        }
        RawRecord {
            ticks,
            event: record.event.code(),
            id: record.id as u64,
            context: record.context,
            send: spec.operation == Operation::Send,
            words,
        }
    }

    /// Whether a record is not written now. A program calls functions that look once over and over: the beginning of
    /// such a call is written when something happens in it, and a call in which nothing happens not at all.
    #[inline(always)]
    fn held_back(&self, record: &EventRecord<'_>, entry: &RawRecord) -> bool {
        HERE.with(|here| {
            if here.look_owner.get() == self.number {
                here.look_owner.set(0);
                if record.event == Event::CallEnd {
                    return true;
                }
                if !self.write(here.look.get()) {
                    self.shared.store.drop_event(Event::CallBegin.code());
                }
            }
            let looks = match (record.event, record.payload) {
                (Event::CallBegin, EventPayload::Call { function }) => polls(function),
                _ => false,
            };
            if looks {
                here.look_owner.set(self.number);
                here.look.set(entry.pack());
            }
            looks
        })
    }

    /// Writes one record; false if there is no room and will be none.
    #[inline(always)]
    pub(super) fn write(&self, words: [u64; WORDS]) -> bool {
        HERE.with(|here| {
            let Pen { at, end } = here.pen.get();
            if here.owner.get() != self.number || at == end {
                return self.write_slowly(here, words);
            }
            here.pen.set(Pen { at: at.wrapping_add(1), end });
            // SAFETY: recorder rules 2 and 3: a slot of this recorder's mapped window that nobody else writes.
            unsafe { &*at }.store(words);
            true
        })
    }

    #[cold]
    #[inline(never)]
    fn write_slowly(&self, here: &ThreadPen, words: [u64; WORDS]) -> bool {
        // A thread that is ending has given its stream back.
        let room = TAKEN.try_with(|taken| self.make_room(here, &mut *taken.try_borrow_mut().ok()?));
        let Ok(Some(after)) = room else { return false };
        let Pen { at, end } = here.pen.get();
        here.pen.set(Pen { at: at.wrapping_add(1), end });
        let [first, rest @ ..] = words;
        let [second, third, fourth] = rest;
        // SAFETY: recorder rules 2 and 3: `make_room` has left this recorder's pen at a slot of its own mapped window.
        unsafe { &*at }.store([format::later_than(first, after), second, third, fourth]);
        true
    }

    /// Gives the thread this recorder's pen, with room for a record that is later than what is returned;
    /// `None` if there is none.
    fn make_room(&self, here: &ThreadPen, taken: &mut Vec<OwnedStream>) -> Option<u64> {
        if here.owner.get() != self.number {
            // Another recorder's pen goes back to its stream.
            if let Some(other) = taken.iter_mut().find(|taken| taken.owner == here.owner.get())
                && let Some(stream) = &mut other.stream
            {
                stream.pen = here.pen.get();
            }
            let mine = match taken.iter().position(|taken| taken.owner == self.number) {
                Some(mine) => mine,
                None => {
                    // Recorders that are gone need their streams no more.
                    taken.retain(|taken| Arc::strong_count(&taken.shared) > 1);
                    let stream =
                        self.shared.idle().pop().unwrap_or_else(|| RecordStream::new(&self.shared.store));
                    taken.push(OwnedStream {
                        owner: self.number,
                        shared: self.shared.clone(),
                        stream: Some(stream),
                    });
                    taken.len() - 1
                }
            };
            here.pen.set(taken[mine].stream.as_ref().map_or(Pen::NONE, |stream| stream.pen));
            here.owner.set(self.number);
        }
        let stream = taken.iter_mut().find(|taken| taken.owner == self.number)?.stream.as_mut()?;
        let Pen { at, end } = here.pen.get();
        if at == end {
            here.pen.set(stream.go_on(&self.shared.store)?);
        }
        Some(stream.after)
    }

    /// Writes what a record of fixed length cannot hold.
    #[cold]
    fn write_long(&self, record: &EventRecord<'_>) {
        let put = |bytes: &[u8]| self.carry(bytes);
        match record.payload {
            EventPayload::Name(name) => {
                name.as_bytes().chunks(format::CARRIED).for_each(put);
            }
            EventPayload::Comm { group, .. } => {
                let mut part = [0; format::CARRIED];
                for ranks in group.chunks(format::CARRIED / 4) {
                    for (to, rank) in part.chunks_exact_mut(4).zip(ranks) {
                        to.copy_from_slice(&rank.to_le_bytes());
                    }
                    put(&part[..ranks.len() * 4]);
                }
            }
            _ => {}
        }
    }
}

impl Recorder {
    /// Writes what belongs to the record before, at most [`format::CARRIED`] bytes. What finds no room is missing with
    /// its head, or cut: a reader leaves both out.
    pub(super) fn carry(&self, bytes: &[u8]) {
        if self.write(RawRecord::continuation(self.now(), bytes)) {
            self.shared.store.continued();
        }
    }
}

/// Packs a payload of those that are rare.
#[inline(never)]
fn pack(event: Event, payload: EventPayload<'_>, words: &mut Words) {
    payload.pack(words);
    let made = matches!(event, Event::CommCreated | Event::WinCreated | Event::FileOpened);
    if let (true, EventPayload::Comm { group, .. }) = (made, payload) {
        // The ranks follow.
        words.third = group.len() as u64 * 4;
    }
}

impl RecordStream {
    fn new(store: &Store) -> RecordStream {
        RecordStream {
            number: store.next_stream(),
            stage: None,
            sequence: 0,
            after: 0,
            pen: Pen::NONE,
            closed: false,
        }
    }

    /// Room for more records: a stage, or the stage anew.
    fn go_on(&mut self, store: &Store) -> Option<Pen> {
        if self.closed {
            return None;
        }
        match self.turn(store) {
            Ok(pen) => Some(pen),
            Err(refused) => {
                self.closed = true;
                if let WindowError::Disk(error) = refused {
                    store.stopped_by(&error);
                    complain(store.rank(), &error);
                }
                None
            }
        }
    }

    fn turn(&mut self, store: &Store) -> core::result::Result<Pen, WindowError> {
        match self.stage.take() {
            None => {
                let stage = store.stage()?;
                self.open(&stage, store.rank());
                Ok(self.begin(stage))
            }
            Some(stage) => {
                let kept = store.keep(&stage);
                if kept.is_ok() {
                    self.reopen(&stage);
                }
                // If it could not be kept, it is the stream's last window.
                let pen = self.begin(stage);
                kept.map(|()| pen)
            }
        }
    }

    /// The stage's header for the first time.
    fn open(&self, stage: &MmapRaw, rank: u32) {
        let opened = clock::read();
        header(stage).open((rank, self.number), units(stage), opened.ticks, opened.nanoseconds);
    }

    /// The stage's header for the next round (trace rule 4).
    fn reopen(&mut self, stage: &MmapRaw) {
        let opened = clock::read();
        let last = stage.as_ptr().wrapping_add(stage.len() - format::RECORD as usize).cast::<RecordSlot>();
        // SAFETY: the last slot of the stage, which is mapped and full; only this thread writes it.
        // Relaxed: this thread's own store, or one that was handed over with the stream.
        let first_word = unsafe { &*last }.0[0].load(Ordering::Relaxed);
        self.after = format::ticks_of(first_word);
        self.sequence += 1;
        header(stage).reopen(self.after, units(stage), self.sequence, opened.ticks, opened.nanoseconds);
    }

    /// Takes the stage, and points to its first record and behind its last.
    fn begin(&mut self, stage: MmapRaw) -> Pen {
        let start = stage.as_ptr();
        let end = start.wrapping_add(stage.len()).cast();
        self.stage = Some(stage);
        Pen { at: start.wrapping_add(format::WINDOW_HEADER as usize).cast(), end }
    }
}

fn header(stage: &MmapRaw) -> &WindowHeader {
    // SAFETY: a stage is mapped, longer than the header, and begins on a page; all accesses to the words are atomic.
    unsafe { &*stage.as_ptr().cast::<WindowHeader>() }
}

fn units(stage: &MmapRaw) -> u64 {
    stage.len() as u64 / format::UNIT
}

/// Says, once for each stream, that a rank stops to record. No allocation, no lock: the engine's may be held.
fn complain(rank: u32, error: &std::io::Error) {
    use std::io::Write;
    let mut text = [0; 256];
    let mut left = &mut text[..];
    let _ = writeln!(
        left,
        "perusal: rank {rank}: trace: {}; recording stops here, further events are counted, the program goes on",
        match error.raw_os_error() {
            Some(libc::ENOSPC) => "the disk is full",
            _ => "the file cannot grow",
        }
    );
    let length = 256 - left.len();
    // SAFETY: `length` bytes of a live buffer.
    unsafe { libc::write(2, text.as_ptr().cast(), length) };
}
