//! The control variables: one row for each value that steers the engine or the launcher.
//!
//! To add one: a row here, and an accessor in [`super::Config`] for the code that obeys it. Environment (`PERUSAL_…`), tune file,
//! MPI_T, `perusal info --cvars` and its checks follow from the row.

use super::Category;
use super::algorithms;
use super::enumeration::{Enumeration, EnumerationItem, SWITCH};
use crate::limits::{
    EVENT_BUFFER, INLINE, MAX_BULK, MAX_CELLS, MAX_COUNTED_CELLS, MAX_COUNTED_RANKS, MAX_EAGER, MIN_BULK,
    MIN_CELLS, POLLED_OVERSUBSCRIBED, SHORT_QUEUE, SHORT_QUEUE_AGAIN, VARIABLE_TEXT,
};

/// What defaults and ranges follow from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct JobShape {
    /// Ranks of the job.
    pub ranks: u32,
    /// CPUs that it may use.
    pub usable_cpus: u32,
    /// Cells of a ring.
    pub ring_cells: u32,
    /// Bytes of a ring's bulk area.
    pub ring_bulk: u32,
    /// Whether the job's memory was made for senders that fence.
    pub sender_fences: bool,
    /// Bytes of address space of the job's shared heap.
    pub heap: u64,
}

impl JobShape {
    /// Whether ranks outnumber the CPUs.
    #[must_use]
    pub fn is_oversubscribed(&self) -> bool {
        self.ranks > self.usable_cpus
    }

    /// Whether ranks say how much they have committed to each other, and look at what all others say (bell rule 6): where they
    /// outnumber the CPUs, are more than a rank watches, and not so many that looking at all is dear.
    #[must_use]
    pub fn uses_counters(&self) -> bool {
        self.is_oversubscribed()
            && (POLLED_OVERSUBSCRIBED as u32 + 2..=MAX_COUNTED_RANKS).contains(&self.ranks)
            && self.ring_cells <= MAX_COUNTED_CELLS
    }
}

/// What values a variable can have.
#[derive(Debug, Clone, Copy)]
pub enum Domain {
    /// A number from the first to the second, both included.
    Number(fn(&JobShape) -> (u64, u64)),
    /// A power of two from the first to the second, both included.
    PowerOfTwo(u64, u64),
    /// One of several.
    Choice(&'static Enumeration),
    /// A string of at most [`VARIABLE_TEXT`] bytes.
    Text,
}

/// Who must be given a new value when one rank is (MPI tool chapter, table 14.5).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum VariableScope {
    /// It is the same in all jobs of this version.
    Constant,
    /// Nobody can change it: it tells what the launcher did.
    Readonly,
    /// Each rank on its own.
    Local,
    /// All ranks must have the same.
    AllEqual,
}

/// Until when a rank can change it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Settable {
    /// A rank never can: it is constant, or the launcher obeys it.
    Never,
    /// Before the job's memory is made: by the launcher's environment, or before MPI_Init of a program without launcher.
    BeforeJob,
    /// Before MPI_Init.
    BeforeInit,
    /// At any time; a change takes effect at once.
    Always,
    /// At any time when no collective operation of this rank is under way.
    BetweenCollectives,
}

/// For whom a variable is (MPI tool chapter §14.3.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verbosity {
    /// Users.
    UserBasic,
    /// Users who want to know more.
    UserDetail,
    /// Who tunes a program.
    TunerBasic,
    /// Who tunes it further.
    TunerDetail,
    /// Who works on the library.
    MpidevBasic,
}

/// One control variable.
#[derive(Debug)]
pub struct Variable {
    /// Which; also its index.
    pub id: VariableId,
    /// Its name in MPI_T and in tune files.
    pub name: &'static str,
    /// Its name in the environment.
    pub environment: &'static str,
    /// What it can be.
    pub kind: Domain,
    /// What it is if nobody sets it.
    pub default: fn(&JobShape) -> u64,
    /// Who must change it with this rank.
    pub scope: VariableScope,
    /// Until when this rank can change it.
    pub when: Settable,
    /// For whom it is.
    pub verbosity: Verbosity,
    /// Where it hangs.
    pub category: Category,
    /// What it does, with its unit.
    pub what: &'static str,
}

macro_rules! table {
    ($($id:ident => $name:literal, $environment:literal, $category:ident, $scope:ident, $when:ident, $verbosity:ident,
        $kind:expr, $default:expr, $what:literal;)*) => {
        /// A control variable: its index in [`VARIABLES`].
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        #[repr(usize)]
        pub enum VariableId { $(#[doc = $what] $id),* }

        /// How many there are.
        pub const COUNT: usize = [$(VariableId::$id),*].len();

        /// All of them; the place of a row is its index in MPI_T.
        pub static VARIABLES: [Variable; COUNT] = [$(Variable {
            id: VariableId::$id,
            name: $name,
            environment: $environment,
            kind: $kind,
            default: $default,
            scope: VariableScope::$scope,
            when: Settable::$when,
            verbosity: Verbosity::$verbosity,
            category: Category::$category,
            what: $what,
        }),*];
    };
}

/// How large messages are copied, as an enumeration.
pub static COPY_ENGINES: Enumeration = Enumeration {
    name: "copy_engine",
    items: &[
        EnumerationItem { name: "auto", value: 0 },
        EnumerationItem { name: "chunks", value: 1 },
        EnumerationItem { name: "read", value: 2 },
        EnumerationItem { name: "halves", value: 3 },
        EnumerationItem { name: "direct", value: 4 },
    ],
};

/// Largest eager payload in bytes: it must leave room for others in the bulk area, and fits a record's length.
fn most_eager(shape: &JobShape) -> u64 {
    u64::from(shape.ring_bulk / 4).min(MAX_EAGER as u64)
}

/// Largest payload in bytes of a message that goes in several eager pieces: all of them lie in the bulk area at once.
fn most_fragments(shape: &JobShape) -> u64 {
    u64::from(shape.ring_bulk / 2).min(MAX_EAGER as u64)
}

const EAGER: u64 = 16 << 10;
const FRAGMENTS: u64 = 128 << 10;
const DIRECT: u64 = 16 << 10;
const SHARE: u64 = 64 << 10;
/// More than a core's own cache holds. A single message of that size is not "beyond": who waits for one reads it next.
const UNCACHED: u64 = 4 << 20;
/// Bytes from which malloc gives shared memory, where it is asked to: what is smaller is sent in one piece or two.
const MALLOC: u64 = 32 << 10;
/// A copy threshold that no message reaches.
pub const NEVER: u64 = u32::MAX as u64;

table! {
    RingCells => "ring_cells", "PERUSAL_RING_CELLS", Rings, AllEqual, BeforeJob, TunerBasic,
        Domain::PowerOfTwo(MIN_CELLS as u64, MAX_CELLS as u64), |shape| u64::from(shape.ring_cells),
        "cells of a ring, 64 bytes each";
    RingBulk => "ring_bulk", "PERUSAL_RING_BULK", Rings, AllEqual, BeforeJob, TunerBasic,
        Domain::PowerOfTwo(MIN_BULK as u64, MAX_BULK as u64), |shape| u64::from(shape.ring_bulk),
        "bytes of a ring's bulk area";
    EagerLimit => "eager_limit", "PERUSAL_EAGER_LIMIT", Protocols, Local, Always, UserBasic,
        Domain::Number(|shape| (0, most_eager(shape))), |shape| EAGER.min(most_eager(shape)),
        "largest payload in bytes that is sent before a receive is known; at most a quarter of ring_bulk";
    TrainLimit => "train_limit", "PERUSAL_TRAIN_LIMIT", Protocols, Local, Always, TunerBasic,
        Domain::Number(|shape| (0, most_fragments(shape))), |shape| FRAGMENTS.min(most_fragments(shape)),
        "largest payload in bytes that is sent in pieces before a receive is known, if the ring has room for all of them; up to eager_limit: in one piece";
    CopyEngine => "copy_engine", "PERUSAL_COPY_ENGINE", Copies, Local, Always, UserBasic,
        Domain::Choice(&COPY_ENGINES), |_| 0,
        "how the messages that this rank receives are copied if they are large; auto: memory of the shared heap straight, other by copy_read_from and copy_halves_from";
    CopyReadFrom => "copy_read_from", "PERUSAL_COPY_READ_FROM", Copies, Local, Always, TunerBasic,
        Domain::Number(|_| (0, NEVER)), |_| 0,
        "bytes from which a receiver reads the sender's memory in one step; 0: as measured at start-up, 4294967295: never";
    CopyHalvesFrom => "copy_halves_from", "PERUSAL_COPY_HALVES_FROM", Copies, Local, Always, TunerBasic,
        Domain::Number(|_| (0, NEVER)), |_| 0,
        "bytes from which receiver and sender copy one half each; 0: as measured at start-up, 4294967295: never";
    CopyDirectFrom => "copy_direct_from", "PERUSAL_COPY_DIRECT_FROM", Copies, Local, Always, TunerBasic,
        Domain::Number(|_| (1, NEVER)), |_| DIRECT,
        "bytes from which a message is announced and copied once if its buffer lies in memory from MPI_Alloc_mem that all ranks see, and from which MPI_Alloc_mem takes such memory; 4294967295: never";
    CopyShareFrom => "copy_share_from", "PERUSAL_COPY_SHARE_FROM", Copies, Local, Always, TunerBasic,
        Domain::Number(|_| (1, NEVER)), |shape| if shape.is_oversubscribed() { NEVER } else { SHARE },
        "bytes from which receiver and sender share that copy if the receiver's buffer lies in such memory too; 4294967295: never, as where ranks outnumber CPUs";
    CopyUncachedFrom => "copy_uncached_from", "PERUSAL_COPY_UNCACHED_FROM", Copies, Local, Always, TunerBasic,
        Domain::Number(|_| (0, NEVER)), |_| UNCACHED,
        "bytes on their way to a rank in chunks beyond which it writes them past its cache; 4294967295: never";
    SharedHeap => "shared_heap", "PERUSAL_SHARED_HEAP", Job, AllEqual, BeforeJob, UserDetail,
        Domain::Number(|_| (0, 1 << 46)), |shape| shape.heap,
        "bytes of address space for memory from MPI_Alloc_mem that all ranks see; half of the machine's memory, or of the cgroup's limit, if nobody says otherwise; 0: none";
    ShareHeap => "share_heap", "PERUSAL_SHARE_HEAP", Job, AllEqual, BeforeJob, UserBasic,
        Domain::Choice(&SWITCH), |_| 0,
        "on: what the ranks' malloc gives lies in the shared heap if it is large, so that large messages are copied once; the same as mpiexec --share-heap";
    ShareHeapFrom => "share_heap_from", "PERUSAL_SHARE_HEAP_FROM", Job, Local, BeforeInit, TunerBasic,
        Domain::Number(|_| (4096, NEVER)), |_| MALLOC,
        "bytes from which share_heap makes malloc give memory of the shared heap";
    InlineLimit => "inline_limit", "PERUSAL_INLINE_LIMIT", Protocols, Constant, Never, TunerDetail,
        Domain::Number(|_| (INLINE as u64, INLINE as u64)), |_| INLINE as u64,
        "largest payload in bytes that travels within one cell of a ring, with its envelope";
    MatchShort => "match_short", "PERUSAL_MATCH_SHORT", Queues, Local, Always, TunerDetail,
        Domain::Number(|_| (2 * SHORT_QUEUE_AGAIN as u64, SHORT_QUEUE as u64)), |_| SHORT_QUEUE as u64,
        "entries up to which a queue compares them side by side, before it sorts them into bins; counts for the queues of communicators made from then on";
    SpinUs => "spin_us", "PERUSAL_SPIN_US", Doorbell, Local, Always, UserBasic,
        Domain::Number(|_| (0, 1_000_000)), |shape| if shape.is_oversubscribed() { 1 } else { 50 },
        "microseconds that a waiting rank polls before it yields or sleeps";
    Yields => "yields", "PERUSAL_YIELDS", Doorbell, Local, Always, TunerBasic,
        Domain::Number(|_| (0, 1000)), |shape| if shape.is_oversubscribed() { 200 } else { 0 },
        "times that a waiting rank gives its CPU away before it sleeps";
    NapMs => "nap_ms", "PERUSAL_NAP_MS", Doorbell, Local, Always, TunerDetail,
        Domain::Number(|_| (1, 10_000)), |_| 100,
        "milliseconds that a sleep lasts at most; after it, the rank looks whether its peers are alive";
    KeepApart => "keep_apart", "PERUSAL_KEEP_APART", Doorbell, Local, Always, UserDetail,
        Domain::Choice(&SWITCH), |shape| u64::from(shape.is_oversubscribed()),
        "on: of two ranks that wait for nobody but each other and share a CPU one moves to another that it may use, unless bind_to has bound them; on where ranks outnumber CPUs";
    SenderFences => "sender_fences", "PERUSAL_SENDER_FENCES", Doorbell, AllEqual, BeforeInit, TunerDetail,
        Domain::Choice(&SWITCH), |shape| u64::from(shape.sender_fences),
        "on: senders fence, off: sleepers do by membarrier(2)";
    EventBuffer => "event_buffer", "PERUSAL_EVENT_BUFFER", Events, Local, Always, UserDetail,
        Domain::Number(|_| (0, EVENT_BUFFER as u64)), |_| 0,
        "entries of the buffer of an MPI_T event handle that is made without the hint perusal_event_buffer; 0: no buffer";
    CollShared => "coll_shared", "PERUSAL_COLL_SHARED", Collectives, AllEqual, BetweenCollectives, UserDetail,
        Domain::Choice(&SWITCH), |_| 1,
        "whether the blocking collectives of a communicator get shared memory when its members first meet; off: they go by messages";
    CollBarrier => "coll_barrier", "PERUSAL_COLL_BARRIER", Collectives, AllEqual, BetweenCollectives, TunerBasic,
        Domain::Choice(&algorithms::BARRIER), |_| 0,
        "how MPI_Barrier is done: messages, or shared memory with a count or with flags; auto: a count where ranks outnumber CPUs";
    CollBcast => "coll_bcast", "PERUSAL_COLL_BCAST", Collectives, AllEqual, BetweenCollectives, TunerBasic,
        Domain::Choice(&algorithms::BCAST), |_| 0, "how MPI_Bcast is done, as coll_barrier";
    CollAllgather => "coll_allgather", "PERUSAL_COLL_ALLGATHER", Collectives, AllEqual, BetweenCollectives, TunerBasic,
        Domain::Choice(&algorithms::ALLGATHER), |_| 0, "how MPI_Allgather is done, as coll_barrier";
    CollAlltoall => "coll_alltoall", "PERUSAL_COLL_ALLTOALL", Collectives, AllEqual, BetweenCollectives, TunerBasic,
        Domain::Choice(&algorithms::ALLTOALL), |_| 0, "how MPI_Alltoall is done up to coll_alltoall_most, as coll_barrier";
    CollReduce => "coll_reduce", "PERUSAL_COLL_REDUCE", Collectives, AllEqual, BetweenCollectives, TunerBasic,
        Domain::Choice(&algorithms::REDUCE), |_| 0, "how MPI_Reduce is done, as coll_barrier";
    CollAllreduce => "coll_allreduce", "PERUSAL_COLL_ALLREDUCE", Collectives, AllEqual, BetweenCollectives, TunerBasic,
        Domain::Choice(&algorithms::ALLREDUCE), |_| 0, "how MPI_Allreduce is done, as coll_barrier";
    CollPiece => "coll_piece", "PERUSAL_COLL_PIECE", Collectives, AllEqual, BetweenCollectives, TunerBasic,
        Domain::Number(|_| (4096, 1 << 30)), |_| 128 << 10,
        "most bytes of a piece in which collectives go through shared memory";
    CollAlltoallMost => "coll_alltoall_most", "PERUSAL_COLL_ALLTOALL_MOST", Collectives, AllEqual, BetweenCollectives, TunerBasic,
        Domain::Number(|_| (0, 1 << 30)), |_| 1 << 30,
        "largest block in bytes of an MPI_Alltoall that goes through shared memory in several pieces; what fits into one always does";
    CollYields => "coll_yields", "PERUSAL_COLL_YIELDS", Collectives, Local, Always, TunerBasic,
        Domain::Number(|_| (0, 100_000)), |_| 64,
        "times that a rank that waits in a collective gives its CPU away, where ranks outnumber CPUs, before it waits as for a message";
    BindTo => "bind_to", "PERUSAL_BIND_TO", Job, Readonly, Never, UserBasic,
        Domain::Text, |_| 0,
        "what the launcher binds ranks to, as its option --bind-to; empty: an equal share of the cores if ranks do not outnumber them";
    MapBy => "map_by", "PERUSAL_MAP_BY", Job, Readonly, Never, UserDetail,
        Domain::Text, |_| 0,
        "how the launcher deals ranks to cores, as its option --map-by; empty: neighbours beside each other";
    TuneFile => "tune_file", "PERUSAL_TUNE_FILE", Job, Readonly, Never, UserDetail,
        Domain::Text, |_| 0,
        "file that `perusal tune` wrote and the launcher reads; empty: the usual shape";
}

impl Variable {
    /// The variable of that name, if there is one.
    #[must_use]
    pub fn named(name: &str) -> Option<&'static Variable> {
        VARIABLES.iter().find(|variable| variable.name == name)
    }

    /// Its enumeration, if it is a choice.
    #[must_use]
    pub fn enumeration(&self) -> Option<&'static Enumeration> {
        match self.kind {
            Domain::Choice(enumeration) => Some(enumeration),
            _ => None,
        }
    }

    /// Whether `value` is one that it can have there.
    #[must_use]
    pub fn allows(&self, value: u64, shape: &JobShape) -> bool {
        match self.kind {
            Domain::Number(range) => {
                let (min, max) = range(shape);
                (min..=max).contains(&value)
            }
            Domain::PowerOfTwo(min, max) => value.is_power_of_two() && (min..=max).contains(&value),
            Domain::Choice(of) => i32::try_from(value).is_ok_and(|value| of.name_of(value).is_some()),
            Domain::Text => false,
        }
    }

    /// What it can be, as the end of a sentence that begins with "it must be".
    #[must_use]
    pub fn range(&self, shape: &JobShape) -> String {
        match self.kind {
            Domain::Number(range) => {
                let (min, max) = range(shape);
                format!("a number in {min}..={max}")
            }
            Domain::PowerOfTwo(min, max) => format!("a power of two in {min}..={max}"),
            Domain::Choice(of) => of.names(),
            Domain::Text => format!("at most {} bytes", VARIABLE_TEXT - 1),
        }
    }

    /// A value as people write it.
    #[must_use]
    pub fn show(&self, value: u64) -> String {
        let name = self.enumeration().and_then(|of| of.name_of(i32::try_from(value).ok()?));
        name.map_or_else(|| value.to_string(), str::to_owned)
    }

    /// What it does and when it can be changed: its description in MPI_T.
    #[must_use]
    pub fn description(&self) -> String {
        let when = match self.when {
            Settable::Never if self.scope == VariableScope::Constant => "it cannot be changed",
            Settable::Never => "it tells what the launcher was given and cannot be changed",
            Settable::BeforeJob => {
                "to be set in the launcher's environment, or before MPI_Init in a program without launcher"
            }
            Settable::BeforeInit => "to be set before MPI_Init",
            Settable::Always => "may be set at any time and takes effect at once",
            Settable::BetweenCollectives => "may be set while no collective operation is under way",
        };
        let who = if self.scope == VariableScope::AllEqual { ", to the same value in all ranks" } else { "" };
        format!("{}; {when}{who}. Environment: {}", self.what, self.environment)
    }
}
