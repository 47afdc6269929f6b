//! The table of control variables: a row for each value that steers the engine or the launcher.
//!
//! To add one, add a row. Environment (`PERUSAL_…`), tune file, MPI_T, `perusal info --cvars` and all checks follow
//! from it. The code that obeys the variable reads `config.number(VariableId::…)`; [`super::Config`] has accessors for
//! values with a unit or a special value.
//!
//! Columns: identifier, name, category, scope, when it can be changed, verbosity, domain, default, description.

use super::algorithms;
use super::category::Category;
use super::copy_engines::COPY_ENGINES;
use super::enumeration::{CHECKS, SWITCH};
use super::job_shape::JobShape;
use super::variable::{Domain, Settable, Variable, VariableScope, Verbosity};
use crate::limits::{
    EVENT_BUFFER, INLINE, MAX_BULK, MAX_CELLS, MAX_EAGER, MIN_BULK, MIN_CELLS, SHORT_QUEUE,
    SHORT_QUEUE_AGAIN, TEAM_PART,
};

macro_rules! table {
    ($($id:ident => $name:literal, $category:ident, $scope:ident, $settable:ident, $verbosity:ident,
        $domain:expr, $default:expr, $what:literal;)*) => {
        /// A control variable, by its index in [`VARIABLES`].
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        #[repr(usize)]
        pub enum VariableId { $(#[doc = $what] $id),* }

        /// How many variables there are.
        pub const COUNT: usize = [$(VariableId::$id),*].len();

        /// All control variables; the index of a row is the variable's index in MPI_T.
        pub static VARIABLES: [Variable; COUNT] = [$(Variable {
            id: VariableId::$id,
            name: $name,
            environment: {
                const NAME: &str = concat!("PERUSAL_", $name);
                const UPPER: [u8; NAME.len()] = upper(NAME);
                ascii(&UPPER)
            },
            domain: $domain,
            default: $default,
            scope: VariableScope::$scope,
            settable: Settable::$settable,
            verbosity: Verbosity::$verbosity,
            category: Category::$category,
            what: $what,
        }),*];
    };
}

const fn upper<const N: usize>(name: &str) -> [u8; N] {
    let mut bytes = [0; N];
    let mut at = 0;
    while at < N {
        bytes[at] = name.as_bytes()[at].to_ascii_uppercase();
        at += 1;
    }
    bytes
}

const fn ascii(bytes: &'static [u8]) -> &'static str {
    match core::str::from_utf8(bytes) {
        Ok(text) => text,
        Err(_) => panic!("a variable's name is ASCII"),
    }
}

impl VariableId {
    /// Returns what is known of the variable.
    #[inline]
    #[must_use]
    pub fn variable(self) -> &'static Variable {
        &VARIABLES[self as usize]
    }
}

/// Most bytes of an eager message: it must leave room for others in the bulk area, and fit into one record.
pub(super) fn most_eager(shape: &JobShape) -> u64 {
    u64::from(shape.ring_bulk / 4).min(MAX_EAGER as u64)
}

/// Bytes up to which a message is one record.
fn eager(shape: &JobShape) -> u64 {
    (if shape.streams { EAGER_STREAMED } else { EAGER }).min(most_eager(shape))
}

/// Most bytes of a message that goes in eager fragments: all of them lie in the bulk area at once.
fn most_fragments(shape: &JobShape) -> u64 {
    u64::from(shape.ring_bulk / 2).min(MAX_EAGER as u64)
}

/// Bytes up to which a message is sent unasked.
fn fragments(shape: &JobShape) -> u64 {
    let in_turn = shape.streams && shape.is_oversubscribed();
    most_fragments(shape).min(if in_turn { FRAGMENTS_IN_TURN } else { FRAGMENTS })
}

/// A message of more bytes may take no longer copied in one step, with its announcement, than through the ring: the
/// machines that were looked at agree within a factor of two.
pub(super) const EAGER: u64 = 16 << 10;
/// The same on AMD's processors, where two copies that meet in a cache take less than one by the kernel: what is longer
/// may be remapped.
const EAGER_STREAMED: u64 = (32 << 10) - 1;
/// What several members move takes no longer copied in one step than through their bulk from so many bytes on.
const ONE_STEP: u64 = 8 << 10;
/// The same where their bulk is filled past the cache or through it as they learn.
const ONE_STEP_STREAMED: u64 = 64 << 10;
/// The same where the answer comes only after another rank's turn on the CPU.
const READ_IN_TURN: u64 = 32 << 10;
const FRAGMENTS: u64 = 128 << 10;
/// The same where an announcement would be answered after a turn of other ranks, and the answer used after another.
const FRAGMENTS_IN_TURN: u64 = 256 << 10;
const DIRECT: u64 = 16 << 10;
const SHARE: u64 = 64 << 10;
/// To remap a page takes as long as about twelve copies of it by the kernel are longer than one that sees both ends.
const REMAP_AFTER: u64 = 16;
/// The same where ranks outnumber CPUs: there the longer copies also take turns of other ranks (decision 58).
const REMAP_SOON: u64 = 4;
/// More than a core's own cache holds.
const UNCACHED: u64 = 4 << 20;
/// A smaller block is sent eagerly or in two fragments anyway.
const MALLOC: u64 = 32 << 10;
/// A copy threshold that no message reaches.
pub const NEVER: u64 = u32::MAX as u64;

/// On AMD's processors, two copies that meet in a cache take less than one by the kernel. But each time that the ring
/// is full takes a turn of all ranks of the CPU, so what is longer than this, or than one ring-full where more than so
/// many ranks share a CPU, is copied in one step.
const IN_RING_FULLS: u64 = 1 << 20;
const FEW_ON_A_CPU: u32 = 4;

/// Where ranks share CPUs, what fits into a member's share of shared memory is copied through that: it costs no system
/// call for each pair of ranks.
fn copied_in_turn(shape: &JobShape) -> u64 {
    if shape.streams {
        let on_a_cpu = shape.ranks.div_ceil(shape.usable_cpus.max(1));
        let few = on_a_cpu <= FEW_ON_A_CPU;
        return 1 + if few { IN_RING_FULLS } else { u64::from(shape.ring_bulk) };
    }
    (TEAM_PART as u64 / u64::from(shape.ranks.max(1))).clamp(READ_IN_TURN, 2 * READ_IN_TURN)
}

/// Where ranks share CPUs, so many bytes are not announced if the ring takes them unasked:
/// the sender would wait for the receiver's turn.
fn read_in_turn(shape: &JobShape) -> u64 {
    if shape.streams {
        return copied_in_turn(shape);
    }
    (1 + copied_in_turn(shape).min(most_fragments(shape))).max(READ_IN_TURN)
}

/// On AMD's processors what fits into the ring is never announced; what is longer goes as the messages before it say.
fn one_step(shape: &JobShape) -> u64 {
    if shape.streams { 1 + fragments(shape) } else { EAGER }
}

table! {
    RingCells => "ring_cells", Rings, AllEqual, BeforeJob, TunerBasic,
        Domain::PowerOfTwo(MIN_CELLS as u64, MAX_CELLS as u64), |shape| u64::from(shape.ring_cells),
        "cells of a ring, 64 bytes each";
    RingBulk => "ring_bulk", Rings, AllEqual, BeforeJob, TunerBasic,
        Domain::PowerOfTwo(MIN_BULK as u64, MAX_BULK as u64), |shape| u64::from(shape.ring_bulk),
        "bytes of a ring's bulk area";
    EagerLimit => "eager_limit", Protocols, Local, Always, UserBasic,
        Domain::Number(|shape| (0, most_eager(shape))), |shape| eager(shape),
        "largest payload in bytes that is sent before a receive is known; at most a quarter of ring_bulk. Unless it has been set, what is longer than 16384 bytes and lies in memory that copy_direct_from speaks of is copied from there";
    TrainLimit => "train_limit", Protocols, Local, Always, TunerBasic,
        Domain::Number(|shape| (0, most_fragments(shape))), |shape| fragments(shape),
        "largest payload in bytes that is sent in eager fragments before a receive is known, if the ring has room for all of them; up to eager_limit: in one record";
    CopyEngine => "copy_engine", Copies, Local, Always, UserBasic,
        Domain::Choice(&COPY_ENGINES), |_| 0,
        "how the large messages that this rank receives are copied; auto: once where the buffer lies in the shared heap, elsewhere by copy_read_from and copy_halves_from, or through the ring where copies so far say that it is faster";
    CopyReadFrom => "copy_read_from", Copies, Local, Always, TunerBasic,
        Domain::Number(|_| (0, NEVER)), |shape| if shape.is_oversubscribed() { read_in_turn(shape) } else { one_step(shape) },
        "bytes from which a message is announced and read by its receiver out of the sender's memory in one step, where the kernel allows that; 4294967295: never";
    CopyHalvesFrom => "copy_halves_from", Copies, Local, Always, TunerBasic,
        Domain::Number(|_| (0, NEVER)), |shape| if shape.is_oversubscribed() { NEVER } else { one_step(shape) },
        "bytes from which a message is announced and written by its sender into the receiver's memory, of which the receiver reads a half itself if it is long; where the kernel allows that; 4294967295: never, as where ranks outnumber CPUs";
    CopyDirectFrom => "copy_direct_from", Copies, Local, Always, TunerBasic,
        Domain::Number(|_| (1, NEVER)), |_| DIRECT,
        "bytes from which a message is announced and copied once if its buffer lies in memory from MPI_Alloc_mem that all ranks see, and from which MPI_Alloc_mem takes such memory; 4294967295: never";
    CopyShareFrom => "copy_share_from", Copies, Local, Always, TunerBasic,
        Domain::Number(|_| (1, NEVER)), |shape| if shape.is_oversubscribed() { NEVER } else { SHARE },
        "bytes from which receiver and sender each copy parts of such a message if the receiver's buffer lies in such memory too; 4294967295: never, as where ranks outnumber CPUs";
    CopyRemapAfter => "copy_remap_after", Copies, Local, Always, UserBasic,
        Domain::Number(|_| (1, NEVER)), |shape| if shape.is_oversubscribed() { REMAP_SOON } else { REMAP_AFTER },
        "messages after which a buffer of 32 KiB or more is remapped, by default 4 where ranks outnumber CPUs: its pages are moved into memory that all ranks see, under the program's hands, so that further messages are copied once and not by the kernel; 4294967295: never";
    CopyUncachedFrom => "copy_uncached_from", Copies, Local, Always, TunerBasic,
        Domain::Number(|_| (0, NEVER)), |_| UNCACHED,
        "bytes under way to a rank in chunks from which the rank writes what it receives past its cache; 4294967295: never";
    SharedHeap => "shared_heap", Job, AllEqual, BeforeJob, UserDetail,
        Domain::Number(|_| (0, 1 << 46)), |shape| shape.heap,
        "bytes of address space for memory from MPI_Alloc_mem that all ranks see; half of the machine's memory, or of the cgroup's limit, by default; 0: none";
    ShareHeap => "share_heap", Job, AllEqual, BeforeJob, UserBasic,
        Domain::Choice(&SWITCH), |_| 0,
        "on: malloc in the ranks takes large blocks from the shared heap, so that large messages are copied once; the same as mpiexec --share-heap";
    ShareHeapFrom => "share_heap_from", Job, Local, BeforeInit, TunerBasic,
        Domain::Number(|_| (4096, NEVER)), |_| MALLOC,
        "bytes from which share_heap makes malloc give memory of the shared heap";
    Check => "check", Job, AllEqual, BeforeInit, UserBasic,
        Domain::Choice(&CHECKS), |_| 0,
        "on: mistakes that no error shows are said at MPI_Finalize: what was never completed, received or freed, collective calls that differ, buffers used twice; the same as mpiexec --check. strict: besides, each blocking collective call waits for all members";
    InlineLimit => "inline_limit", Protocols, Constant, Never, TunerDetail,
        Domain::Number(|_| (INLINE as u64, INLINE as u64)), |_| INLINE as u64,
        "largest payload in bytes that travels within one cell of a ring, with its envelope";
    MatchShort => "match_short", Queues, Local, Always, TunerDetail,
        Domain::Number(|_| (2 * SHORT_QUEUE_AGAIN as u64, SHORT_QUEUE as u64)), |_| SHORT_QUEUE as u64,
        "entries up to which a queue compares them side by side, before it sorts them into bins; counts for the queues of communicators made from then on";
    SpinUs => "spin_us", Doorbell, Local, Always, UserBasic,
        Domain::Number(|_| (0, 1_000_000)), |shape| if shape.is_oversubscribed() { 1 } else { 50 },
        "microseconds that a waiting rank polls before it yields or sleeps, in a blocking receive twice as long where ranks outnumber CPUs; where every rank has a CPU and the last such wait was over within 20 times as long, before it polls on for so long";
    Yields => "yields", Doorbell, Local, Always, TunerBasic,
        Domain::Number(|_| (0, 1000)), |shape| if shape.is_oversubscribed() { 200 } else { 0 },
        "times that a waiting rank gives its CPU away before it sleeps";
    NapMs => "nap_ms", Doorbell, Local, Always, TunerDetail,
        Domain::Number(|_| (1, 10_000)), |_| 100,
        "milliseconds that a sleep lasts at most; after it, the rank checks whether its peers are alive";
    ProgressThread => "progress_thread", Doorbell, Local, BeforeInit, UserBasic,
        Domain::Choice(&SWITCH), |_| 0,
        "on: a thread of the library makes progress while the program's threads compute, so that nonblocking operations go on; for ranks that have a CPU to spare. Of programs that use the C interface";
    KeepApart => "keep_apart", Doorbell, Local, Always, UserDetail,
        Domain::Choice(&SWITCH), |shape| u64::from(shape.is_oversubscribed()),
        "on: ranks begin on the CPUs in turn where they outnumber them and go back there when the kernel has moved them, those that exchange short messages with their neighbours share CPUs with them, and of two that share a CPU and wait only for each other, one moves to another CPU that it may use, unless bind_to has bound them; on where ranks outnumber CPUs";
    SenderFences => "sender_fences", Doorbell, AllEqual, BeforeInit, TunerDetail,
        Domain::Choice(&SWITCH), |shape| u64::from(shape.sender_fences),
        "on: senders fence, off: sleepers do by membarrier(2)";
    EventBuffer => "event_buffer", Events, Local, Always, UserDetail,
        Domain::Number(|_| (0, EVENT_BUFFER as u64)), |_| 0,
        "entries of the buffer of an MPI_T event handle that is made without the hint perusal_event_buffer; 0: no buffer";
    CollShared => "coll_shared", Collectives, AllEqual, BetweenCollectives, UserDetail,
        Domain::Choice(&SWITCH), |_| 1,
        "whether the blocking collectives of a communicator get shared memory when its members first meet; off: they go by messages";
    CollBarrier => "coll_barrier", Collectives, AllEqual, BetweenCollectives, TunerBasic,
        Domain::Choice(&algorithms::BARRIER), |_| 0,
        "how MPI_Barrier is done: messages, or shared memory with a count or with flags; auto: a count where ranks outnumber CPUs";
    CollBcast => "coll_bcast", Collectives, AllEqual, BetweenCollectives, TunerBasic,
        Domain::Choice(&algorithms::BCAST), |_| 0, "how MPI_Bcast is done, as coll_barrier";
    CollAllgather => "coll_allgather", Collectives, AllEqual, BetweenCollectives, TunerBasic,
        Domain::Choice(&algorithms::ALLGATHER), |_| 0, "how MPI_Allgather is done, as coll_barrier";
    CollAlltoall => "coll_alltoall", Collectives, AllEqual, BetweenCollectives, TunerBasic,
        Domain::Choice(&algorithms::ALLTOALL), |_| 0, "how MPI_Alltoall is done up to coll_alltoall_most, as coll_barrier";
    CollReduce => "coll_reduce", Collectives, AllEqual, BetweenCollectives, TunerBasic,
        Domain::Choice(&algorithms::REDUCE), |_| 0, "how MPI_Reduce is done, as coll_barrier";
    CollAllreduce => "coll_allreduce", Collectives, AllEqual, BetweenCollectives, TunerBasic,
        Domain::Choice(&algorithms::ALLREDUCE), |_| 0, "how MPI_Allreduce is done, as coll_barrier";
    CollGather => "coll_gather", Collectives, AllEqual, BetweenCollectives, TunerBasic,
        Domain::Choice(&algorithms::GATHER), |_| 0, "how MPI_Gather is done, as coll_barrier";
    CollScatter => "coll_scatter", Collectives, AllEqual, BetweenCollectives, TunerBasic,
        Domain::Choice(&algorithms::SCATTER), |_| 0, "how MPI_Scatter is done, as coll_barrier";
    CollReduceScatter => "coll_reduce_scatter", Collectives, AllEqual, BetweenCollectives, TunerBasic,
        Domain::Choice(&algorithms::REDUCE_SCATTER), |_| 0,
        "how MPI_Reduce_scatter and MPI_Reduce_scatter_block are done, as coll_barrier";
    CollScan => "coll_scan", Collectives, AllEqual, BetweenCollectives, TunerBasic,
        Domain::Choice(&algorithms::SCAN), |_| 0, "how MPI_Scan and MPI_Exscan are done, as coll_barrier";
    CollDirectFrom => "coll_direct_from", Collectives, AllEqual, BetweenCollectives, TunerBasic,
        Domain::Number(|_| (1, NEVER)), |shape| if shape.is_oversubscribed() { copied_in_turn(shape) } else if shape.streams { ONE_STEP_STREAMED } else { ONE_STEP },
        "bytes from which a blocking collective operation copies out of the other members' memory in one step, where the kernel allows that; of a reduction, bytes of the part that each member reduces, or of its operands where they do not fit into shared memory; 4294967295: never";
    CollPiece => "coll_piece", Collectives, AllEqual, BetweenCollectives, TunerBasic,
        Domain::Number(|_| (4096, 1 << 30)), |_| 128 << 10,
        "most bytes of a piece in which a collective operation moves data through shared memory";
    CollAlltoallMost => "coll_alltoall_most", Collectives, AllEqual, BetweenCollectives, TunerBasic,
        Domain::Number(|_| (0, 1 << 30)), |_| 1 << 30,
        "largest block in bytes of an MPI_Alltoall that goes through shared memory in several pieces; what fits into one always does";
    CollYields => "coll_yields", Collectives, Local, Always, TunerBasic,
        Domain::Number(|_| (0, 100_000)), |_| 64,
        "times that a rank that waits in a collective gives its CPU away, where ranks outnumber CPUs, before it waits as for a message; 0: nor does it do so once when a nonblocking one begins";
    ConnectTimeout => "connect_timeout", Job, Local, Always, UserBasic,
        Domain::Number(|_| (0, NEVER)), |_| 180,
        "seconds that MPI_Comm_connect waits for MPI_Comm_accept at most, if the info key timeout does not say; 0: for ever";
    UsableCpus => "usable_cpus", Job, AllEqual, BeforeJob, TunerBasic,
        Domain::Number(|_| (1, 1 << 20)), |shape| u64::from(shape.usable_cpus),
        "CPUs that the job may use, as the library counts them: whether ranks outnumber them decides how they wait and which algorithms they take";
    BindTo => "bind_to", Job, Readonly, Never, UserBasic,
        Domain::Text, |_| 0,
        "what the launcher binds ranks to, as its option --bind-to; empty: an equal share of the cores if ranks do not outnumber them";
    MapBy => "map_by", Job, Readonly, Never, UserDetail,
        Domain::Text, |_| 0,
        "how the launcher maps ranks to cores, as its option --map-by; empty: neighbouring ranks to neighbouring cores";
    TuneFile => "tune_file", Job, Readonly, Never, UserDetail,
        Domain::Text, |_| 0,
        "file that `perusal tune` wrote and the launcher reads; empty: perusal/tune.toml in XDG_CONFIG_HOME or ~/.config";
}
