//! The memory that the ranks of a job share, and which ranks there are.
//!
//! | file | what it defines |
//! |---|---|
//! | `job_file` | the job's file: a memfd that nobody can shrink |
//! | [`segment`] | that file, mapped whole; its pages are reserved before they are touched |
//! | [`layout`] | where everything lies in the segment: offsets, the same in every process |
//! | [`memory`] | [`Memory`]: a job's segment with its layout, as launcher and observers have it |
//! | [`heap_region`], [`free_runs`] | the part of the job's file behind the segment, which the shared heap is made of; what a process keeps of it |
//! | [`job`] | [`Job`]: the memory as one rank has it |
//! | [`inherited`] | the memory that this process has inherited from a launcher (process-wide) |
//! | [`header`], [`roster`], [`telemetry`] | the first page; who has arrived and who has died; what a rank does right now |
//! | [`exit`] | how a process has ended |
//! | [`hold`] | what a spawned process waits for before it takes its place |
//! | [`contexts`], [`collective_segments`] | two tables of reference counts: context ids, and memory for the collectives of a communicator |
//! | [`shared_lock`], [`shared_count`] | a lock for short work on shared memory; a count of its users |
//! | [`failures`] | which ranks have died, revoked communicators, and agreement among those that live |
//! | [`cpus`], [`machine`] | CPUs and bytes of memory that the job may use |
//! | [`hardware`] | which parts of the machine a process is confined to |
//! | [`peer_memory`] | the memory of another process of the job, by system calls |
//!
//! The launcher makes the memory ([`Memory::create`]) and the ranks inherit its descriptor ([`Job::from_environment`]).
//! A program without launcher is a job of one rank ([`Job::singleton`]); ranks that are threads share the memory inside
//! their process ([`Job::threads`]). Processes exchange offsets into the segment, never addresses.
//!
//! - **Shm rule 1.** Header, rank blocks and the first page of the context table are reserved when the memory is made.
//!   The producer of a ring reserves it before it uses it first ([`Memory::reserve_ring`]). The ring's consumer
//!   reserves the first page itself ([`Memory::reserve_ring_start`]) and reads the other pages only where the producer
//!   has committed a record.
//! - **Shm rule 2.** Words that more than one process may touch are atomics, in types that accept every bit pattern.

pub mod collective_segments;
pub mod contexts;
pub mod cpus;
pub mod exit;
pub mod failures;
pub mod free_runs;
#[cfg(not(perusal_loom))]
pub mod hardware;
pub mod header;
pub mod heap_region;
pub mod hold;
pub mod inherited;
pub mod job;
#[cfg(not(miri))]
mod job_file;
#[cfg(miri)]
#[path = "job_file_on_heap.rs"]
mod job_file;
pub mod layout;
pub mod machine;
pub mod memory;
pub mod peer_memory;
pub mod roster;
pub mod segment;
pub mod shared_count;
pub mod shared_lock;
pub mod telemetry;

pub use collective_segments::CollectiveSegments;
use collective_segments::{IdleMemory, SegmentMemory};
pub use contexts::ContextIds;
pub use exit::Exit;
pub use failures::Failures;
pub use free_runs::{FreeRun, FreeRuns};
pub use header::{Abort, JobHeader};
pub use heap_region::HeapRegion;
pub use inherited::{
    APPNUM_VARIABLE, Contact, DOOR_VARIABLE, ERRHANDLER_VARIABLE, FD_VARIABLE, GIVEN_APPNUM_VARIABLE,
    INITIAL_ERRHANDLERS, JOB_ID_VARIABLE, JobWorld, KINDS_VARIABLE, LAUNCHER_VARIABLE, PARENT_VARIABLE,
    PROCESSES_VARIABLE, RANK_VARIABLE, SIZE_VARIABLE, SOFT_VARIABLE, WORLD_VARIABLE, door, expected_shape,
    initial_errhandler, parent, usual_shape,
};
pub use job::{Job, is_gone};
pub use layout::{Geometry, JobLayout, RingOffsets};
pub use memory::{Memory, RingArea, Universe};
pub use roster::{RankState, Roster, RosterEntry};
pub use segment::Segment;
pub use shared_count::{Leaving, SharedCount};
pub use shared_lock::{SharedLock, SharedLockGuard};
pub use telemetry::Telemetry;
