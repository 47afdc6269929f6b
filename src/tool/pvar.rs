//! The performance variables: one row for each thing that the engine knows about itself (MPI 5.0 §15.3.7).
//!
//! A row says where its value comes from ([`PvarSource`]); what a handle may do with it, and what its value is relative
//! to, follows from that. All but those of searches and windows read what the engine counts anyway: a handle costs the
//! engine nothing. Those count only while a started handle asks.

use super::states::{REACHES, ROUTES, STATES, WAITING};
use crate::engine::{CopiesFromPeer, CopyRoute, Engine, FileCount};
use crate::events::Binding;
use crate::heap::RemappedBuffers;
use crate::shm::telemetry::{ProtocolKind, QueueLength, Wait};
use crate::variables::Category;
use crate::variables::Verbosity;
use crate::variables::enumeration::Enumeration;

/// The classes of MPI 5.0 §15.3.7.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Class {
    /// One of a set of states.
    State,
    /// How much of something there is now.
    Level,
    /// How large something is.
    Size,
    /// A share, from 0 to 1.
    Percentage,
    /// The most there has been since the handle was started or reset.
    HighWatermark,
    /// The least there has been since the handle was started or reset.
    LowWatermark,
    /// How often something happened while the handle was started.
    Counter,
    /// The sum of something over what happened while the handle was started.
    Aggregate,
    /// Time spent on something while the handle was started.
    Timer,
    /// Anything else.
    Generic,
}

/// A length that the engine keeps, with its extremes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Queue {
    /// Posted receives.
    Posted,
    /// Unexpected messages.
    Unexpected,
    /// Bytes that unexpected messages hold.
    UnexpectedBytes,
}

impl Queue {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Posted, Self::Unexpected, Self::UnexpectedBytes];

    /// Its place in the telemetry page.
    #[must_use]
    pub fn of(self, engine: &Engine) -> &QueueLength {
        let telemetry = engine.telemetry();
        match self {
            Self::Posted => &telemetry.posted,
            Self::Unexpected => &telemetry.unexpected,
            Self::UnexpectedBytes => &telemetry.unexpected_bytes,
        }
    }

    /// How long it is now.
    #[must_use]
    pub fn now(self, engine: &Engine) -> u64 {
        match self {
            Self::Posted => engine.telemetry().posted_now(),
            Self::Unexpected => engine.telemetry().unexpected_now(),
            Self::UnexpectedBytes => self.of(engine).now.get(),
        }
    }

    /// Begins a new period for its extremes; returns the most and the least of the one that ends.
    pub fn cut(self, engine: &Engine) -> (u64, u64) {
        self.of(engine).cut(self.now(engine))
    }
}

/// What the searches of the queues are asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(usize)]
pub enum Search {
    /// Receives compared with arriving messages.
    PostedAttempts = 0,
    /// Messages compared with receives and matched probes.
    UnexpectedAttempts = 1,
    /// Nanoseconds of searches of the posted queue that found nothing.
    PostedFailedTime = 2,
    /// Nanoseconds of searches of the unexpected queue.
    UnexpectedTime = 3,
}

/// What is counted of one-sided communication.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(usize)]
pub enum WindowCount {
    /// Puts.
    Puts = 0,
    /// Gets.
    Gets = 1,
    /// Accumulates, get-accumulates, fetch-and-ops, compare-and-swaps.
    Accumulates = 2,
    /// Bytes of puts.
    BytesPut = 3,
    /// Bytes of gets.
    BytesGot = 4,
    /// Bytes of what counts as accumulates.
    BytesAccumulated = 5,
    /// Calls that synchronise a window.
    Synchronizations = 6,
    /// Locks that were not granted at once.
    LockWaits = 7,
    /// Ticks of waiting for locks.
    LockWaitTime = 8,
}

impl WindowCount {
    /// How many there are.
    pub const ALL: usize = WindowCount::LockWaitTime as usize + 1;
}

/// What is read of a communicator.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OfComm {
    /// Its posted receives.
    Posted,
    /// Its unexpected messages.
    Unexpected,
    /// Its ranks.
    Size,
}

/// What is read of how long messages from a rank are copied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OfCopies {
    /// Which way they go: an MPI_INT, a value of [`ROUTES`].
    Route,
    /// Nanoseconds that copies through the ring take for a MiB.
    RingTime,
    /// Nanoseconds that copies by the kernel take for a MiB.
    KernelTime,
}

impl OfCopies {
    /// Its value.
    #[must_use]
    pub fn of(self, copies: &CopiesFromPeer) -> u64 {
        match (self, copies.route) {
            (Self::Route, None) => 0,
            (Self::Route, Some(CopyRoute::Kernel)) => 1,
            (Self::Route, Some(CopyRoute::Ring)) => 2,
            (Self::RingTime, _) => copies.ring,
            (Self::KernelTime, _) => copies.kernel,
        }
    }
}

/// Where a value comes from.
#[derive(Debug, Clone, Copy)]
pub enum PvarSource {
    /// What is so now: read-only and continuous. A number.
    Now(fn(&Engine) -> u64),
    /// How many entries a queue has now: the same, an MPI_UNSIGNED.
    Length(Queue),
    /// The same, an MPI_INT with or without an enumeration.
    Int(fn(&Engine) -> i32),
    /// The same, an MPI_DOUBLE.
    Real(fn(&Engine) -> f64),
    /// A number that grows; a handle has its growth while it was started.
    Sum(fn(&Engine) -> u64),
    /// Nanoseconds that grow; a handle has the seconds of growth while it was started.
    Time(fn(&Engine) -> u64),
    /// Nanoseconds that grow; a handle has their share of the time while it was started.
    Share(fn(&Engine) -> u64),
    /// The most of a length since the handle was started or reset.
    Most(Queue),
    /// The least.
    Least(Queue),
    /// What searches cost, counted while a handle is started.
    Searches(Search),
    /// What one-sided communication does, counted while a handle is started.
    Windows(WindowCount),
    /// A number of the communicator that the handle is bound to, as it is now.
    Comm(OfComm),
    /// One for each rank that sends to the caller on the communicator that the handle is bound to, as it is now.
    Copies(OfCopies),
    /// How the window that the handle is bound to reaches its members' memory:
    /// an MPI_INT, by [`crate::events::WindowReach`].
    WinReach,
}

/// One performance variable.
#[derive(Debug)]
pub struct Pvar {
    /// Its name; unique within its class.
    pub name: &'static str,
    /// What kind of value it has.
    pub class: Class,
    /// Where that comes from.
    pub source: PvarSource,
    /// Names of its values, if it is a state.
    pub enumeration: Option<&'static Enumeration>,
    /// For whom it is.
    pub verbosity: Verbosity,
    /// Where it hangs.
    pub category: Category,
    /// What it measures, with its unit.
    pub what: &'static str,
}

impl Pvar {
    /// Whether its value can be neither written nor reset.
    #[must_use]
    pub fn is_readonly(&self) -> bool {
        self.is_continuous() || matches!(self.source, PvarSource::Share(_))
    }

    /// Whether it can be neither started nor stopped.
    #[must_use]
    pub fn is_continuous(&self) -> bool {
        matches!(
            self.source,
            PvarSource::Now(_)
                | PvarSource::Length(_)
                | PvarSource::Int(_)
                | PvarSource::Real(_)
                | PvarSource::Comm(_)
                | PvarSource::Copies(_)
                | PvarSource::WinReach
        )
    }

    /// Whether it can be read and reset in one step.
    #[must_use]
    pub fn is_atomic(&self) -> bool {
        !self.is_readonly()
    }

    /// What a handle of it is bound to.
    #[must_use]
    pub fn binding(&self) -> Binding {
        match self.source {
            PvarSource::Comm(_) | PvarSource::Copies(_) => Binding::Communicator,
            PvarSource::WinReach => Binding::Window,
            _ => Binding::Nothing,
        }
    }

    /// Whether it counts entries of a queue: then its value is an MPI_UNSIGNED,
    /// as tools that know the names from MPICH expect.
    #[must_use]
    pub fn is_length(&self) -> bool {
        match self.source {
            PvarSource::Length(_) => true,
            PvarSource::Most(queue) | PvarSource::Least(queue) => queue != Queue::UnexpectedBytes,
            PvarSource::Comm(what) => what != OfComm::Size,
            _ => false,
        }
    }

    /// Whether its value is an MPI_INT.
    #[must_use]
    pub fn is_int(&self) -> bool {
        matches!(self.source, PvarSource::Int(_) | PvarSource::WinReach | PvarSource::Copies(OfCopies::Route))
    }

    /// Whether its value is an MPI_DOUBLE.
    #[must_use]
    pub fn is_real(&self) -> bool {
        match self.source {
            PvarSource::Real(_) | PvarSource::Time(_) | PvarSource::Share(_) => true,
            PvarSource::Searches(search) => {
                matches!(search, Search::PostedFailedTime | Search::UnexpectedTime)
            }
            PvarSource::Windows(count) => count == WindowCount::LockWaitTime,
            _ => false,
        }
    }
}

fn wait(engine: &Engine) -> Option<Wait> {
    engine.telemetry().waiting.get()
}

fn total(words: &[crate::shm::telemetry::Counter]) -> u64 {
    words.iter().map(crate::shm::telemetry::Counter::get).sum()
}

/// Bytes of memory that the job's segment has taken.
fn used(engine: &Engine) -> u64 {
    engine.job().segment().taken()
}

#[cfg(not(perusal_loom))]
fn dropped() -> u64 {
    super::event::delivery::drops()
}

/// Events of MPI_T are not in the models.
#[cfg(perusal_loom)]
fn dropped() -> u64 {
    0
}

macro_rules! table {
    ($($name:literal $class:ident $verbosity:ident $category:ident $source:expr $(; $enumeration:expr)? => $what:literal,)*) => {
        /// All performance variables; the place of a row is its index in MPI_T.
        pub static PVARS: &[Pvar] = &[$(Pvar {
            name: $name,
            class: Class::$class,
            source: $source,
            enumeration: table!(@ $($enumeration)?),
            verbosity: Verbosity::$verbosity,
            category: Category::$category,
            what: $what,
        }),*];
    };
    (@) => { None };
    (@ $enumeration:expr) => { Some($enumeration) };
}

table! {
    "waiting_for" State UserBasic Doorbell PvarSource::Int(|e| wait(e).map_or(0, |wait| wait.kind as i32)); &WAITING
        => "What this rank waits for now; noted when it is about to sleep",
    "rank_state" State UserBasic Job PvarSource::Int(|e| e.job().roster().entry(e.rank()).state() as i32); &STATES
        => "Where this rank stands between its start and its end",
    "posted_recvq_length" Level UserBasic Queues PvarSource::Length(Queue::Posted)
        => "Receives that wait for a message, over all communicators",
    "unexpected_recvq_length" Level UserBasic Queues PvarSource::Length(Queue::Unexpected)
        => "Messages that have arrived and wait for a receive, over all communicators",
    "unexpected_recvq_buffer_size" Level UserBasic Queues PvarSource::Now(|e| e.telemetry().unexpected_bytes.now.get())
        => "Bytes of memory that unexpected messages hold",
    "posted_recvq_length" HighWatermark UserBasic Queues PvarSource::Most(Queue::Posted)
        => "Most receives that waited at once",
    "unexpected_recvq_length" HighWatermark UserBasic Queues PvarSource::Most(Queue::Unexpected)
        => "Most messages that were unexpected at once",
    "unexpected_recvq_buffer_size" HighWatermark UserBasic Queues PvarSource::Most(Queue::UnexpectedBytes)
        => "Most bytes that unexpected messages held at once",
    "posted_recvq_length" LowWatermark UserDetail Queues PvarSource::Least(Queue::Posted)
        => "Fewest receives that waited",
    "unexpected_recvq_length" LowWatermark UserDetail Queues PvarSource::Least(Queue::Unexpected)
        => "Fewest messages that were unexpected",
    "comm_posted_recvq_length" Level UserDetail Queues PvarSource::Comm(OfComm::Posted)
        => "Receives on this communicator that wait for a message",
    "comm_unexpected_recvq_length" Level UserDetail Queues PvarSource::Comm(OfComm::Unexpected)
        => "Messages on this communicator that wait for a receive",
    "comm_size" Size UserDetail Job PvarSource::Comm(OfComm::Size)
        => "Ranks of this communicator's own group",
    "posted_recvq_match_attempts" Counter TunerBasic Queues PvarSource::Searches(Search::PostedAttempts)
        => "Posted receives that were compared with an arriving message",
    "unexpected_recvq_match_attempts" Counter TunerBasic Queues PvarSource::Searches(Search::UnexpectedAttempts)
        => "Unexpected messages that were compared with a receive or matched probe",
    "time_failed_matching_postedq" Timer TunerBasic Queues PvarSource::Searches(Search::PostedFailedTime)
        => "Seconds spent on searches of the posted queue that found no receive",
    "time_matching_unexpectedq" Timer TunerBasic Queues PvarSource::Searches(Search::UnexpectedTime)
        => "Seconds spent on searches of the unexpected queue",
    "messages_sent" Counter UserBasic Protocols PvarSource::Sum(|e| e.telemetry().sum(|counts| total(&counts.sent)))
        => "Messages sent, those of collective operations that go by messages included",
    "messages_received" Counter UserBasic Protocols PvarSource::Sum(|e| e.telemetry().sum(|counts| total(&counts.received)))
        => "Messages received, those of collective operations that go by messages included",
    "bytes_sent" Aggregate UserBasic Protocols PvarSource::Sum(|e| e.telemetry().sum(|counts| total(&counts.sent_bytes)))
        => "Payload bytes sent",
    "bytes_received" Aggregate UserBasic Protocols PvarSource::Sum(|e| e.telemetry().sum(|counts| total(&counts.received_bytes)))
        => "Payload bytes received",
    "messages_sent_inline" Counter UserDetail Protocols PvarSource::Sum(|e| e.telemetry().sum(|counts| counts.sent[ProtocolKind::Inline as usize].get()))
        => "Messages sent within one cell of a ring",
    "messages_sent_eager" Counter UserDetail Protocols PvarSource::Sum(|e| e.telemetry().sum(|counts| counts.sent[ProtocolKind::Eager as usize].get()))
        => "Messages sent whole through a ring's bulk area",
    "messages_sent_chunked" Counter UserDetail Copies PvarSource::Sum(|e| e.telemetry().sum(|counts| counts.sent[ProtocolKind::Chunked as usize].get()))
        => "Large messages sent in chunks through the ring",
    "messages_sent_read" Counter UserDetail Copies PvarSource::Sum(|e| e.telemetry().sum(|counts| counts.sent[ProtocolKind::Cma as usize].get()))
        => "Large messages that the receiver read out of this rank's memory",
    "messages_sent_halves" Counter UserDetail Copies PvarSource::Sum(|e| e.telemetry().sum(|counts| counts.sent[ProtocolKind::Shared as usize].get()))
        => "Large messages of which this rank copied a half and the receiver the other",
    "messages_sent_direct" Counter UserDetail Copies PvarSource::Sum(|e| e.telemetry().sum(|counts| counts.sent[ProtocolKind::Direct as usize].get()))
        => "Large messages copied once, between two buffers that both ranks map",
    "messages_sent_loopback" Counter UserDetail Protocols PvarSource::Sum(|e| e.telemetry().sum(|counts| counts.sent[ProtocolKind::Loopback as usize].get()))
        => "Messages from this rank to itself",
    "messages_received_inline" Counter UserDetail Protocols PvarSource::Sum(|e| e.telemetry().sum(|counts| counts.received[ProtocolKind::Inline as usize].get()))
        => "Messages received within one cell of a ring",
    "messages_received_eager" Counter UserDetail Protocols PvarSource::Sum(|e| e.telemetry().sum(|counts| counts.received[ProtocolKind::Eager as usize].get()))
        => "Messages received whole through a ring's bulk area",
    "messages_received_chunked" Counter UserDetail Copies PvarSource::Sum(|e| e.telemetry().sum(|counts| counts.received[ProtocolKind::Chunked as usize].get()))
        => "Large messages received in chunks through the ring",
    "messages_received_read" Counter UserDetail Copies PvarSource::Sum(|e| e.telemetry().sum(|counts| counts.received[ProtocolKind::Cma as usize].get()))
        => "Large messages that this rank read out of the sender's memory",
    "messages_received_halves" Counter UserDetail Copies PvarSource::Sum(|e| e.telemetry().sum(|counts| counts.received[ProtocolKind::Shared as usize].get()))
        => "Large messages of which this rank copied a half and the sender the other",
    "messages_received_direct" Counter UserDetail Copies PvarSource::Sum(|e| e.telemetry().sum(|counts| counts.received[ProtocolKind::Direct as usize].get()))
        => "Large messages copied once, between two buffers that both ranks map",
    "bytes_sent_inline" Aggregate TunerBasic Protocols PvarSource::Sum(|e| e.telemetry().sum(|counts| counts.sent_bytes[ProtocolKind::Inline as usize].get()))
        => "Payload bytes sent within one cell of a ring",
    "bytes_sent_eager" Aggregate TunerBasic Protocols PvarSource::Sum(|e| e.telemetry().sum(|counts| counts.sent_bytes[ProtocolKind::Eager as usize].get()))
        => "Payload bytes sent whole through a ring's bulk area",
    "bytes_sent_chunked" Aggregate TunerBasic Copies PvarSource::Sum(|e| e.telemetry().sum(|counts| counts.sent_bytes[ProtocolKind::Chunked as usize].get()))
        => "Payload bytes sent in chunks through the ring",
    "bytes_sent_read" Aggregate TunerBasic Copies PvarSource::Sum(|e| e.telemetry().sum(|counts| counts.sent_bytes[ProtocolKind::Cma as usize].get()))
        => "Payload bytes that receivers read out of this rank's memory",
    "bytes_sent_halves" Aggregate TunerBasic Copies PvarSource::Sum(|e| e.telemetry().sum(|counts| counts.sent_bytes[ProtocolKind::Shared as usize].get()))
        => "Payload bytes of messages that both ranks copied a half of, sent",
    "bytes_sent_direct" Aggregate TunerBasic Copies PvarSource::Sum(|e| e.telemetry().sum(|counts| counts.sent_bytes[ProtocolKind::Direct as usize].get()))
        => "Payload bytes sent that were copied once, between two buffers that both ranks map",
    "bytes_received_inline" Aggregate TunerBasic Protocols PvarSource::Sum(|e| e.telemetry().sum(|counts| counts.received_bytes[ProtocolKind::Inline as usize].get()))
        => "Payload bytes received within one cell of a ring",
    "bytes_received_eager" Aggregate TunerBasic Protocols PvarSource::Sum(|e| e.telemetry().sum(|counts| counts.received_bytes[ProtocolKind::Eager as usize].get()))
        => "Payload bytes received whole through a ring's bulk area",
    "bytes_received_chunked" Aggregate TunerBasic Copies PvarSource::Sum(|e| e.telemetry().sum(|counts| counts.received_bytes[ProtocolKind::Chunked as usize].get()))
        => "Payload bytes received in chunks through the ring",
    "bytes_received_read" Aggregate TunerBasic Copies PvarSource::Sum(|e| e.telemetry().sum(|counts| counts.received_bytes[ProtocolKind::Cma as usize].get()))
        => "Payload bytes that this rank read out of senders' memory",
    "bytes_received_halves" Aggregate TunerBasic Copies PvarSource::Sum(|e| e.telemetry().sum(|counts| counts.received_bytes[ProtocolKind::Shared as usize].get()))
        => "Payload bytes of messages that both ranks copied a half of, received",
    "bytes_received_direct" Aggregate TunerBasic Copies PvarSource::Sum(|e| e.telemetry().sum(|counts| counts.received_bytes[ProtocolKind::Direct as usize].get()))
        => "Payload bytes received that were copied once, between two buffers that both ranks map",
    "allocations_shared" Counter UserDetail Copies PvarSource::Sum(|e| e.telemetry().shared_allocations.get())
        => "Calls of MPI_Alloc_mem that took memory that all ranks see",
    "allocations_ordinary" Counter UserDetail Copies PvarSource::Sum(|e| e.telemetry().ordinary_allocations.get())
        => "Calls of MPI_Alloc_mem for copy_direct_from bytes and more that took ordinary memory: the shared heap is exhausted, or there is none",
    "remapped_bytes" Level UserBasic Copies PvarSource::Now(|e| e.remapped_buffers().map_or(0, RemappedBuffers::bytes))
        => "Bytes of this process's buffers that have been remapped into memory that all ranks see, because messages use them again and again",
    "remapped_buffers" Counter UserDetail Copies PvarSource::Now(|e| e.remapped_buffers().map_or(0, RemappedBuffers::count))
        => "Buffers of this process that have been remapped so far",
    "copy_route" State UserBasic Copies PvarSource::Copies(OfCopies::Route); &ROUTES
        => "How announced messages from each rank of this communicator are copied: as the thresholds say, once by the kernel, or twice through the ring, whichever of the two took less time so far when the last one came (copy_time_…)",
    "copy_time_ring" Level UserDetail Copies PvarSource::Copies(OfCopies::RingTime)
        => "Nanoseconds for a MiB through the ring, by which the way of the last announced message from each rank of this communicator was chosen; 0: none yet",
    "copy_time_kernel" Level UserDetail Copies PvarSource::Copies(OfCopies::KernelTime)
        => "The same by the kernel",
    "requests_alive" Level UserDetail Requests PvarSource::Now(|e| e.slab.alive_ones().count() as u64)
        => "Requests that are alive, the engine's own and persistent ones included",
    "operations_in_background" Level UserDetail Collectives PvarSource::Now(|e| e.progress().background_operations())
        => "Collective operations of this rank that are under way in the background",
    "window_reach" State UserBasic OneSided PvarSource::WinReach; &REACHES
        => "How operations on this window reach the other members' memory; where members differ, the slowest",
    "puts" Counter UserBasic OneSided PvarSource::Windows(WindowCount::Puts)
        => "Puts of this rank",
    "gets" Counter UserBasic OneSided PvarSource::Windows(WindowCount::Gets)
        => "Gets of this rank",
    "accumulates" Counter UserBasic OneSided PvarSource::Windows(WindowCount::Accumulates)
        => "Accumulates, get-accumulates, fetch-and-ops and compare-and-swaps of this rank",
    "bytes_put" Aggregate UserBasic OneSided PvarSource::Windows(WindowCount::BytesPut)
        => "Bytes of puts of this rank",
    "bytes_got" Aggregate UserBasic OneSided PvarSource::Windows(WindowCount::BytesGot)
        => "Bytes of gets of this rank",
    "bytes_accumulated" Aggregate UserBasic OneSided PvarSource::Windows(WindowCount::BytesAccumulated)
        => "Bytes of the target's elements in accumulates and the like of this rank",
    "window_synchronizations" Counter UserDetail OneSided PvarSource::Windows(WindowCount::Synchronizations)
        => "Calls of this rank that synchronise a window: fences, locks, flushes and the like",
    "window_lock_waits" Counter UserBasic OneSided PvarSource::Windows(WindowCount::LockWaits)
        => "Locks of windows that this rank was not granted at once",
    "time_waiting_for_locks" Timer UserBasic OneSided PvarSource::Windows(WindowCount::LockWaitTime)
        => "Seconds that this rank waited for locks of windows",
    "accumulate_lock_waits" Counter UserDetail OneSided PvarSource::Sum(|e| e.accumulate_waits.times())
        => "Times that an accumulate or atomic operation of this rank found the lock of a block of memory taken",
    "time_waiting_for_accumulate_locks" Timer UserDetail OneSided PvarSource::Time(|e| e.accumulate_waits.nanoseconds())
        => "Seconds that accumulates and atomic operations of this rank waited for locks of blocks of memory",
    "file_reads" Counter UserBasic Files PvarSource::Sum(|e| e.files.get(FileCount::Reads))
        => "Accesses of this rank that read files, collective ones included",
    "file_writes" Counter UserBasic Files PvarSource::Sum(|e| e.files.get(FileCount::Writes))
        => "Accesses of this rank that write files, collective ones included",
    "file_bytes_read" Aggregate UserBasic Files PvarSource::Sum(|e| e.files.get(FileCount::BytesRead))
        => "Bytes that this rank read from files, as they are in memory",
    "file_bytes_written" Aggregate UserBasic Files PvarSource::Sum(|e| e.files.get(FileCount::BytesWritten))
        => "Bytes that this rank wrote to files, as they are in memory",
    "file_lock_waits" Counter UserBasic Files PvarSource::Sum(|e| e.files.get(FileCount::LockWaits))
        => "Atomic accesses of this rank to files that had to wait for another one to end",
    "time_waiting_for_file_locks" Timer UserBasic Files PvarSource::Time(|e| e.files.get(FileCount::LockWaitTime))
        => "Seconds that atomic accesses of this rank to files waited for others to end",
    "ring_full" Counter TunerBasic Rings PvarSource::Sum(|e| e.telemetry().ring_full.get())
        => "Times that a send found no room in its ring",
    "ring_size" Size TunerDetail Rings PvarSource::Now(|e| e.job().layout().ring_size())
        => "Bytes of address space of one ring",
    "sleeps" Counter UserBasic Doorbell PvarSource::Sum(|e| e.telemetry().sleeps.get())
        => "Times that this rank went to sleep while it waited",
    "wakes" Counter TunerBasic Doorbell PvarSource::Sum(|e| e.telemetry().wakes.get())
        => "Times that this rank woke a peer",
    "yields" Counter TunerBasic Doorbell PvarSource::Sum(|e| e.telemetry().yields.get())
        => "Times that this rank gave its CPU away while it waited",
    "moves" Counter UserDetail Doorbell PvarSource::Sum(|e| e.telemetry().moves.get())
        => "Times that this rank moved to another CPU, away from the rank that it waited for, or back to where it belongs (keep_apart)",
    "time_asleep" Timer UserBasic Doorbell PvarSource::Time(|e| e.telemetry().asleep.get())
        => "Seconds that this rank slept while it waited",
    "time_asleep" Percentage UserBasic Doorbell PvarSource::Share(|e| e.telemetry().asleep.get())
        => "Share of the time that this rank slept while it waited, since the handle was started",
    "waiting_peer" Generic UserDetail Doorbell
        PvarSource::Int(|e| wait(e).and_then(|wait| wait.peer).map_or(-1, u32::cast_signed))
        => "World rank that this rank waits for now; -1: none, or any",
    "waiting_tag" Generic UserDetail Doorbell PvarSource::Int(|e| wait(e).and_then(|wait| wait.tag).unwrap_or(-1))
        => "Tag that this rank waits for now; -1: none, or any",
    "waiting_time" Generic UserDetail Doorbell PvarSource::Real(waited)
        => "Seconds that the wait has lasted that this rank is in now",
    "events_told" Counter TunerBasic Events PvarSource::Sum(|e| e.registry().delivered())
        => "Events delivered to callbacks, buffers and the library's own listeners; an event counts once for each of them",
    "events_dropped" Counter TunerBasic Events PvarSource::Sum(|_| dropped())
        => "Events that found no room in the buffer of an MPI_T event handle",
    "job_ranks" Size UserBasic Job PvarSource::Now(|e| u64::from(e.size()))
        => "Ranks of the job",
    "job_cpus" Size UserBasic Job PvarSource::Now(|e| u64::from(e.job().header().usable_cpus()))
        => "CPUs that the job may use",
    "job_memory_reserved" Size UserDetail Job PvarSource::Now(|e| e.job().segment().len())
        => "Bytes of address space of the job's memory",
    "job_memory_used" Level UserBasic Job PvarSource::Now(used)
        => "Bytes of memory that the job has taken so far, all ranks together",
    "job_memory_used" Percentage UserDetail Job PvarSource::Real(|e| used(e) as f64 / e.job().segment().len().max(1) as f64)
        => "Share of the job's address space that has memory behind it",
}

fn waited(engine: &Engine) -> f64 {
    wait(engine).map_or(0.0, |wait| crate::arch::clock::now().saturating_sub(wait.since) as f64 / 1e9)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_within_a_class_and_every_class_is_there() {
        for (index, row) in PVARS.iter().enumerate() {
            let same = |other: &&Pvar| other.name == row.name && other.class == row.class;
            assert!(!PVARS[..index].iter().any(|other| same(&other)), "{}", row.name);
            assert_eq!(row.enumeration.is_some(), row.class == Class::State, "{}", row.name);
        }
        let of = |class| PVARS.iter().filter(|row| row.class == class).count();
        use Class::{
            Aggregate, Counter, Generic, HighWatermark, Level, LowWatermark, Percentage, Size, State, Timer,
        };
        for class in
            [State, Level, Size, Percentage, HighWatermark, LowWatermark, Counter, Aggregate, Timer, Generic]
        {
            assert!(of(class) > 0, "{class:?}");
        }
    }

    #[test]
    fn each_class_has_values_of_a_type_that_the_standard_allows_it() {
        for row in PVARS {
            let int = row.is_int();
            match row.class {
                Class::State => assert!(int, "{}", row.name),
                Class::Percentage => assert!(row.is_real(), "{}", row.name),
                Class::Counter => assert!(!int && !row.is_real(), "{}", row.name),
                Class::Generic => {}
                _ => assert!(!int, "{}", row.name),
            }
        }
    }
}
