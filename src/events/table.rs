//! The table of event types, and of what their records hold:
//! names, numbers, labels and documentation come from here alone.
//!
//! PERUSE, MPI_T, `perusal info --events`, trace files, exports and the tables in `docs/` are made from it.
//!
//! To add an event type:
//! 1. Add a row at the end of `event_types!`, with the next number.
//!    Numbers are the codes in trace files, and are never given again.
//! 2. Emit it where it happens: `Engine::emit` for an event of the engine,
//!    `CommEvents::emit` for one of a communicator, window or file.
//!
//! If its records hold something new, add that to `fields!`, and the payload that carries it to `payloads!`, both in
//! `contents`. The listener, the MPI_T event type, the trace record and the export follow.
//!
//! The first 31 rows share the word of a gate that says whether anybody listens at all;
//! those that follow cost a site the same.

pub use super::contents::{EventPayload, Field, PayloadKind};
use super::event::{Binding, Event, EventInfo, Identity, Shown, Verbosity, c_string, event_types};
use super::field_lists::{
    ACCESS, ARRIVAL, CALL, COLLECTIVE, COPY, EPOCH, FILE_ACCESS, FILE_LOCK, LOCK, MESSAGE, ONE_SIDED,
    PART_OPERATION, PARTITION, REQUEST, SEARCH_END, SPAWN, SYNCHRONIZATION,
};
use crate::variables::Category;

event_types! {
    ReqActivate = 1, "PERUSE_COMM_REQ_ACTIVATE" peruse 1 {
        binding: Communicator, verbosity: UserBasic, category: Requests, identity: Request,
        fields: REQUEST, payload: None, shown: Paired,
        what: "a send or receive request becomes active",
        fires: "p2p: entry of every send and receive verb, start of a persistent request",
    }
    ReqMatchUnex = 2, "PERUSE_COMM_REQ_MATCH_UNEX" peruse 2 {
        binding: Communicator, verbosity: UserDetail, category: Queues, identity: Request,
        fields: REQUEST, payload: None, shown: Paired,
        what: "a receive request is matched to a message of the unexpected queue",
        fires: "p2p: a receive is posted and finds its message",
    }
    ReqInsertInPostedQ = 3, "PERUSE_COMM_REQ_INSERT_IN_POSTED_Q" peruse 3 {
        binding: Communicator, verbosity: UserDetail, category: Queues, identity: Request,
        fields: REQUEST, payload: None, shown: Paired,
        what: "a receive request found no message and enters the posted queue",
        fires: "p2p: a receive is posted and finds none",
    }
    ReqRemoveFromPostedQ = 4, "PERUSE_COMM_REQ_REMOVE_FROM_POSTED_Q" peruse 4 {
        binding: Communicator, verbosity: UserDetail, category: Queues, identity: Request,
        fields: REQUEST, payload: Cancelled, shown: Paired,
        what: "a receive request leaves the posted queue: matched, or cancelled",
        fires: "protocol: a message finds its receive; p2p: cancel",
    }
    ReqXferBegin = 5, "PERUSE_COMM_REQ_XFER_BEGIN" peruse 5 {
        binding: Communicator, verbosity: UserDetail, category: Messages, identity: Request,
        fields: REQUEST, payload: None, shown: Paired,
        what: "the first byte of the request's message is scheduled or has come",
        fires: "protocol: first payload byte, control records excluded",
    }
    ReqXferEnd = 6, "PERUSE_COMM_REQ_XFER_END" peruse 6 {
        binding: Communicator, verbosity: UserDetail, category: Messages, identity: Request,
        fields: REQUEST, payload: None, shown: Paired,
        what: "the last byte of the request's message is scheduled or has come",
        fires: "protocol: last payload byte",
    }
    ReqComplete = 7, "PERUSE_COMM_REQ_COMPLETE" peruse 7 {
        binding: Communicator, verbosity: UserBasic, category: Requests, identity: Request,
        fields: REQUEST, payload: None, shown: Paired,
        what: "the request is complete inside the library",
        fires: "engine: transition of the request to complete",
    }
    ReqNotify = 8, "PERUSE_COMM_REQ_NOTIFY" peruse 8 {
        binding: Communicator, verbosity: UserDetail, category: Requests, identity: Request,
        fields: REQUEST, payload: None, shown: Paired,
        what: "the user is notified of the completion",
        fires: "p2p: wait, test, and the return of blocking verbs",
    }
    MsgArrived = 9, "PERUSE_COMM_MSG_ARRIVED" peruse 9 {
        binding: Communicator, verbosity: UserDetail, category: Queues, identity: Message,
        fields: ARRIVAL, payload: Arrival, shown: Paired,
        what: "a message that takes part in matching has arrived",
        fires: "protocol: an envelope is taken from a ring",
    }
    MsgInsertInUnexQ = 10, "PERUSE_COMM_MSG_INSERT_IN_UNEX_Q" peruse 10 {
        binding: Communicator, verbosity: UserBasic, category: Queues, identity: Message,
        fields: MESSAGE, payload: None, shown: Paired,
        what: "a message found no posted receive and enters the unexpected queue",
        fires: "protocol: after the search of the posted queue",
    }
    MsgRemoveFromUnexQ = 11, "PERUSE_COMM_MSG_REMOVE_FROM_UNEX_Q" peruse 11 {
        binding: Communicator, verbosity: UserDetail, category: Queues, identity: Message,
        fields: MESSAGE, payload: Cancelled, shown: Paired,
        what: "a message leaves the unexpected queue: taken, or cancelled by its sender",
        fires: "p2p: a receive or matched probe takes it; protocol: its sender cancels it",
    }
    MsgMatchPostedReq = 12, "PERUSE_COMM_MSG_MATCH_POSTED_REQ" peruse 12 {
        binding: Communicator, verbosity: UserDetail, category: Queues, identity: Message,
        fields: MESSAGE, payload: None, shown: Paired,
        what: "a message is matched to a posted receive on arrival",
        fires: "protocol: after the search of the posted queue",
    }
    SearchPostedQBegin = 13, "PERUSE_COMM_SEARCH_POSTED_Q_BEGIN" peruse 13 {
        binding: Communicator, verbosity: TunerDetail, category: Queues, identity: PostedSearch,
        fields: MESSAGE, payload: None, shown: Paired,
        what: "the search of the posted queue for an incoming message begins",
        fires: "protocol: around the search for an arriving message",
    }
    SearchPostedQEnd = 14, "PERUSE_COMM_SEARCH_POSTED_Q_END" peruse 14 {
        binding: Communicator, verbosity: TunerDetail, category: Queues, identity: PostedSearch,
        fields: SEARCH_END, payload: Search, shown: Paired,
        what: "the search of the posted queue for an incoming message ends",
        fires: "protocol: around the search for an arriving message",
    }
    SearchUnexQBegin = 15, "PERUSE_COMM_SEARCH_UNEX_QUEUE_BEGIN" or "PERUSE_COMM_SEARCH_UNEX_Q_BEGIN" peruse 15 {
        binding: Communicator, verbosity: TunerDetail, category: Queues, identity: UnexpectedSearch,
        fields: MESSAGE, payload: None, shown: Paired,
        what: "the search of the unexpected queue for a receive begins",
        fires: "p2p: around the search for a receive or probe",
    }
    SearchUnexQEnd = 16, "PERUSE_COMM_SEARCH_UNEX_Q_END" or "PERUSE_COMM_SEARCH_UNEX_QUEUE_END" peruse 16 {
        binding: Communicator, verbosity: TunerDetail, category: Queues, identity: UnexpectedSearch,
        fields: SEARCH_END, payload: Search, shown: Paired,
        what: "the search of the unexpected queue for a receive ends",
        fires: "p2p: around the search for a receive or probe",
    }
    ReqXferContinue = 17, "PERUSE_COMM_REQ_XFER_CONTINUE" peruse 17 {
        binding: Communicator, verbosity: UserAll, category: Messages, identity: Request,
        fields: REQUEST, payload: None, shown: Paired,
        what: "a further piece of a large message is scheduled or has come",
        fires: "protocol: each fragment or chunk after the first",
    }
    CollBegin = 18, "PERUSAL_COLL_BEGIN" {
        binding: Communicator, verbosity: UserBasic, category: Collectives, identity: Collective,
        fields: COLLECTIVE, payload: Coll, shown: Paired,
        what: "a collective operation begins at this rank",
        fires: "coll: before the first message of the operation",
    }
    CollEnd = 19, "PERUSAL_COLL_END" {
        binding: Communicator, verbosity: UserBasic, category: Collectives, identity: Collective,
        fields: COLLECTIVE, payload: Coll, shown: Paired,
        what: "a collective operation is over at this rank",
        fires: "coll: after its last message",
    }
    Initialized = 20, "PERUSAL_INITIALIZED" {
        binding: Nothing, verbosity: UserBasic, category: Job, identity: Nothing,
        fields: &[], payload: None, shown: Instant,
        what: "MPI may be used",
        fires: "MPI_Init, the first session, or Rust's init",
    }
    Finalizing = 21, "PERUSAL_FINALIZING" {
        binding: Nothing, verbosity: UserBasic, category: Job, identity: Nothing,
        fields: &[], payload: None, shown: Instant,
        what: "the rank begins to leave the job",
        fires: "MPI_Finalize, the last session, or Rust's finish",
    }
    CommCreated = 22, "PERUSAL_COMM_CREATED" {
        binding: Nothing, verbosity: UserBasic, category: Events, identity: Nothing,
        fields: &[Field::Context, Field::Communicator, Field::Size], payload: Comm, shown: Instant,
        what: "a communicator has been made",
        fires: "comm: when its handle is there",
    }
    CommFreed = 23, "PERUSAL_COMM_FREED" {
        binding: Nothing, verbosity: UserBasic, category: Events, identity: Nothing,
        fields: &[Field::Context, Field::Communicator, Field::Size], payload: Comm, shown: Instant,
        what: "a communicator's handle is freed",
        fires: "comm: when its handle goes",
    }
    CommNamed = 24, "PERUSAL_COMM_NAMED" {
        binding: Nothing, verbosity: UserBasic, category: Events, identity: Nothing,
        fields: &[Field::Context, Field::Communicator, Field::Name], payload: Name, shown: Instant,
        what: "a communicator has been given a name",
        fires: "MPI_Comm_set_name",
    }
    ErrhandlerInvoked = 25, "PERUSAL_ERRHANDLER_INVOKED" {
        binding: Nothing, verbosity: UserBasic, category: Events, identity: Nothing,
        fields: &[Field::ErrorClass, Field::ErrorCode, Field::Communicator], payload: Error, shown: Instant,
        what: "an error handler is invoked",
        fires: "bindings: before the handler, whichever it is",
    }
    Placed = 26, "PERUSAL_PLACED" {
        binding: Nothing, verbosity: TunerBasic, category: Job, identity: Nothing,
        fields: &[Field::Cpu, Field::Placement], payload: Placement, shown: Instant,
        what: "the rank knows where it runs",
        fires: "when the engine starts, and when the rank has moved by itself",
    }
    BellSleep = 27, "PERUSAL_BELL_SLEEP" {
        binding: Nothing, verbosity: TunerDetail, category: Doorbell, identity: Nothing,
        fields: &[Field::Waiting, Field::World], payload: Sleep, shown: Paired,
        what: "a rank that waits goes to sleep, or polls on instead",
        fires: "engine: before the sleep, when nothing is left to do, or when a rank whose waits are short has polled for spin_us",
    }
    BellWake = 28, "PERUSAL_BELL_WAKE" {
        binding: Nothing, verbosity: TunerDetail, category: Doorbell, identity: Nothing,
        fields: &[Field::Waiting, Field::World], payload: Sleep, shown: Paired,
        what: "a rank that slept is awake, or has polled on",
        fires: "engine: after that, woken or not",
    }
    CopyBegin = 29, "PERUSAL_COPY_BEGIN" {
        binding: Nothing, verbosity: TunerDetail, category: Copies, identity: Copy,
        fields: COPY, payload: Copy, shown: Paired,
        what: "a copy engine begins on a large message",
        fires: "protocol: at the rank that copies; both of them for ring chunks, CMA split and a cooperative copy",
    }
    CopyEnd = 30, "PERUSAL_COPY_END" {
        binding: Nothing, verbosity: TunerDetail, category: Copies, identity: Copy,
        fields: COPY, payload: Copy, shown: Paired,
        what: "a copy engine is done with a large message, or has failed",
        fires: "protocol: where it began; bytes are those that were moved",
    }
    RingFull = 31, "PERUSAL_RING_FULL" {
        binding: Nothing, verbosity: TunerBasic, category: Rings, identity: Nothing,
        fields: &[Field::World, Field::Queued], payload: Ring, shown: Instant,
        what: "something waits for room in the ring to a peer",
        fires: "engine: when it is put behind what waits there",
    }
    WinReqActivate = 32, "PERUSE_WIN_REQ_ACTIVATE" peruse 32 {
        binding: Window, verbosity: UserBasic, category: OneSided, identity: OneSided,
        fields: ONE_SIDED, payload: Rma, shown: Paired,
        what: "a one-sided operation has been called",
        fires: "rma: the operation's arguments are right, and an epoch allows it",
    }
    WinReqXferBegin = 33, "PERUSE_WIN_REQ_XFER_BEGIN" peruse 33 {
        binding: Window, verbosity: UserDetail, category: OneSided, identity: OneSided,
        fields: ONE_SIDED, payload: Rma, shown: Paired,
        what: "the first byte of a one-sided operation is about to move",
        fires: "rma: before the origin copies or reduces",
    }
    WinReqXferEnd = 34, "PERUSE_WIN_REQ_XFER_END" peruse 34 {
        binding: Window, verbosity: UserDetail, category: OneSided, identity: OneSided,
        fields: ONE_SIDED, payload: Rma, shown: Paired,
        what: "the last byte of a one-sided operation has moved",
        fires: "rma: after it",
    }
    WinReqComplete = 35, "PERUSE_WIN_REQ_COMPLETE" peruse 35 {
        binding: Window, verbosity: UserBasic, category: OneSided, identity: OneSided,
        fields: ONE_SIDED, payload: Rma, shown: Paired,
        what: "a synchronisation for the operation would not wait",
        fires: "rma: before the operation's call returns",
    }
    WinSyncBegin = 36, "PERUSE_WIN_SYNC_BEGIN" peruse 36 {
        binding: Window, verbosity: UserBasic, category: OneSided, identity: Synchronization,
        fields: SYNCHRONIZATION, payload: Sync, shown: Paired,
        what: "a call that synchronises a window begins",
        fires: "rma: fence, start, complete, post, wait, test, locks, flushes and sync, when the epochs allow the call",
    }
    WinSyncEnd = 37, "PERUSE_WIN_SYNC_END" peruse 37 {
        binding: Window, verbosity: UserBasic, category: OneSided, identity: Synchronization,
        fields: SYNCHRONIZATION, payload: Sync, shown: Paired,
        what: "a call that synchronises a window ends",
        fires: "rma: before it returns, whether or not it has failed",
    }
    WinRegionBegin = 38, "PERUSAL_WIN_REGION_BEGIN" {
        binding: Window, verbosity: TunerDetail, category: OneSided, identity: OneSided,
        fields: ONE_SIDED, payload: Rma, shown: Paired,
        what: "a one-sided operation is about to access a contiguous region of the target's memory",
        fires: "rma: after XFER_BEGIN, for each region",
    }
    WinRegionEnd = 39, "PERUSAL_WIN_REGION_END" {
        binding: Window, verbosity: TunerDetail, category: OneSided, identity: OneSided,
        fields: ONE_SIDED, payload: Rma, shown: Paired,
        what: "a one-sided operation has accessed a contiguous region of the target's memory",
        fires: "rma: before XFER_END, for each region",
    }
    WinLockWaitBegin = 40, "PERUSAL_WIN_LOCK_WAIT_BEGIN" {
        binding: Window, verbosity: UserBasic, category: OneSided, identity: Synchronization,
        fields: LOCK, payload: Lock, shown: Paired,
        what: "a lock is not granted at once, and the rank begins to wait for it",
        fires: "rma: lock, lock_all",
    }
    WinLockWaitEnd = 41, "PERUSAL_WIN_LOCK_WAIT_END" {
        binding: Window, verbosity: UserBasic, category: OneSided, identity: Synchronization,
        fields: LOCK, payload: Lock, shown: Paired,
        what: "the wait for a lock is over",
        fires: "rma: lock, lock_all",
    }
    WinLockAcquired = 42, "PERUSAL_WIN_LOCK_ACQUIRED" {
        binding: Window, verbosity: UserBasic, category: OneSided, identity: Synchronization,
        fields: LOCK, payload: Lock, shown: Paired,
        what: "a lock has been acquired",
        fires: "rma: lock; lock_all, once for all targets",
    }
    WinLockReleased = 43, "PERUSAL_WIN_LOCK_RELEASED" {
        binding: Window, verbosity: UserBasic, category: OneSided, identity: Synchronization,
        fields: LOCK, payload: Lock, shown: Paired,
        what: "a lock has been released",
        fires: "rma: unlock; unlock_all, once for all targets",
    }
    WinAccessBegin = 44, "PERUSAL_WIN_ACCESS_BEGIN" {
        binding: Window, verbosity: UserBasic, category: OneSided, identity: Nothing,
        fields: ACCESS, payload: Epoch, shown: Paired,
        what: "an access epoch at a target has begun: the target has exposed its memory",
        fires: "rma: start, for each target",
    }
    WinAccessEnd = 45, "PERUSAL_WIN_ACCESS_END" {
        binding: Window, verbosity: UserBasic, category: OneSided, identity: Nothing,
        fields: ACCESS, payload: Epoch, shown: Paired,
        what: "an access epoch at a target is over",
        fires: "rma: complete, for each target",
    }
    WinExposeBegin = 46, "PERUSAL_WIN_EXPOSE_BEGIN" {
        binding: Window, verbosity: UserBasic, category: OneSided, identity: Nothing,
        fields: EPOCH, payload: None, shown: Paired,
        what: "an exposure epoch has begun",
        fires: "rma: post",
    }
    WinExposeEnd = 47, "PERUSAL_WIN_EXPOSE_END" {
        binding: Window, verbosity: UserBasic, category: OneSided, identity: Nothing,
        fields: EPOCH, payload: None, shown: Paired,
        what: "an exposure epoch is over: all its origins have completed",
        fires: "rma: wait, test",
    }
    WinFenceEpoch = 48, "PERUSAL_WIN_FENCE_EPOCH" {
        binding: Window, verbosity: UserBasic, category: OneSided, identity: Nothing,
        fields: EPOCH, payload: None, shown: Paired,
        what: "an epoch between two fences has begun",
        fires: "rma: fence, unless nothing succeeds it (MPI_MODE_NOSUCCEED)",
    }
    WinCreated = 49, "PERUSAL_WIN_CREATED" {
        binding: Nothing, verbosity: UserBasic, category: OneSided, identity: Nothing,
        fields: &[Field::Context, Field::Window, Field::Size], payload: Comm, shown: Instant,
        what: "a window has been made",
        fires: "rma: when its handle is there",
    }
    WinPlaced = 50, "PERUSAL_WIN_PLACED" {
        binding: Nothing, verbosity: UserBasic, category: OneSided, identity: Nothing,
        fields: &[Field::Context, Field::Window, Field::Flavor, Field::Bytes, Field::Reach], payload: Window,
        shown: Instant,
        what: "where the memory of a window that has been made lies, and how this rank reaches the others' parts",
        fires: "rma: after WIN_CREATED",
    }
    WinFreed = 51, "PERUSAL_WIN_FREED" {
        binding: Nothing, verbosity: UserBasic, category: OneSided, identity: Nothing,
        fields: &[Field::Context, Field::Window, Field::Size], payload: Comm, shown: Instant,
        what: "a window's handle is freed",
        fires: "rma: when its handle goes",
    }
    WinNamed = 52, "PERUSAL_WIN_NAMED" {
        binding: Nothing, verbosity: UserBasic, category: OneSided, identity: Nothing,
        fields: &[Field::Context, Field::Window, Field::Name], payload: Name, shown: Instant,
        what: "a window has been given a name",
        fires: "MPI_Win_set_name",
    }
    FileReqActivate = 53, "PERUSE_FILE_REQ_ACTIVATE" peruse 53 {
        binding: File, verbosity: UserBasic, category: Files, identity: FileAccess,
        fields: FILE_ACCESS, payload: File, shown: Paired,
        what: "an access to a file has been called",
        fires: "io: entry of every read and write",
    }
    FileReqXferBegin = 54, "PERUSE_FILE_REQ_XFER_BEGIN" peruse 54 {
        binding: File, verbosity: UserDetail, category: Files, identity: FileAccess,
        fields: FILE_ACCESS, payload: File, shown: Paired,
        what: "the first access to the file system for an access is about to happen",
        fires: "io: before it, when a lock is held and, of collective ones, the members have agreed",
    }
    FileReqXferEnd = 55, "PERUSE_FILE_REQ_XFER_END" peruse 55 {
        binding: File, verbosity: UserDetail, category: Files, identity: FileAccess,
        fields: FILE_ACCESS, payload: File, shown: Paired,
        what: "the last access to the file system for an access has happened; bytes are those that were moved",
        fires: "io: after it",
    }
    FileReqComplete = 56, "PERUSE_FILE_REQ_COMPLETE" peruse 56 {
        binding: File, verbosity: UserBasic, category: Files, identity: FileAccess,
        fields: FILE_ACCESS, payload: File, shown: Paired,
        what: "an access to a file is over; bytes are those that were moved",
        fires: "io: before its call returns; of a nonblocking one, when the program learns of its end",
    }
    FileDiskAccess = 57, "PERUSE_FILE_DISK_ACCESS" or "PERUSE_FILE_N_DISK_ACCESSES_PER_IOREQ" peruse 57 {
        binding: File, verbosity: TunerDetail, category: Files, identity: FileAccess,
        fields: FILE_ACCESS, payload: File, shown: Paired,
        what: "the file system is about to be accessed; offset and bytes are those of this one",
        fires: "io: before each system call that reads or writes, and before bytes are copied into a mapping",
    }
    FilePointerBegin = 58, "PERUSE_FILE_SHARED_POINTER_BEGIN" peruse 58 {
        binding: File, verbosity: UserBasic, category: Files, identity: FileAccess,
        fields: FILE_ACCESS, payload: File, shown: Paired,
        what: "the shared file pointer is wanted",
        fires: "io: an access at it; in ordered ones this rank begins to wait for the others",
    }
    FilePointerEnd = 59, "PERUSE_FILE_SHARED_POINTER_END" peruse 59 {
        binding: File, verbosity: UserBasic, category: Files, identity: FileAccess,
        fields: FILE_ACCESS, payload: File, shown: Paired,
        what: "the shared file pointer has been moved behind the access",
        fires: "io: before the file is accessed",
    }
    FileLockWaitBegin = 60, "PERUSAL_FILE_LOCK_WAIT_BEGIN" {
        binding: File, verbosity: UserBasic, category: Files, identity: FileAccess,
        fields: FILE_LOCK, payload: FileLock, shown: Paired,
        what: "a part of a file is locked by another, and the rank begins to wait for it",
        fires: "io: accesses in atomic mode",
    }
    FileLockWaitEnd = 61, "PERUSAL_FILE_LOCK_WAIT_END" {
        binding: File, verbosity: UserBasic, category: Files, identity: FileAccess,
        fields: FILE_LOCK, payload: FileLock, shown: Paired,
        what: "the wait for the lock of a part of a file is over",
        fires: "io: accesses in atomic mode",
    }
    FileLockAcquired = 62, "PERUSAL_FILE_LOCK_ACQUIRED" {
        binding: File, verbosity: UserBasic, category: Files, identity: FileAccess,
        fields: FILE_LOCK, payload: FileLock, shown: Paired,
        what: "a part of a file has been locked",
        fires: "io: accesses in atomic mode",
    }
    FileLockReleased = 63, "PERUSAL_FILE_LOCK_RELEASED" {
        binding: File, verbosity: UserBasic, category: Files, identity: FileAccess,
        fields: FILE_LOCK, payload: FileLock, shown: Paired,
        what: "a part of a file has been unlocked",
        fires: "io: accesses in atomic mode",
    }
    FileOpened = 64, "PERUSAL_FILE_OPENED" {
        binding: Nothing, verbosity: UserBasic, category: Files, identity: Nothing,
        fields: &[Field::Context, Field::File, Field::Size], payload: Comm, shown: Instant,
        what: "a file has been opened",
        fires: "io: when its handle is there",
    }
    FileNamed = 65, "PERUSAL_FILE_NAMED" {
        binding: Nothing, verbosity: UserBasic, category: Files, identity: Nothing,
        fields: &[Field::Context, Field::File, Field::Name], payload: Name, shown: Instant,
        what: "the name of a file that has been opened",
        fires: "io: after FILE_OPENED",
    }
    FileClosed = 66, "PERUSAL_FILE_CLOSED" {
        binding: Nothing, verbosity: UserBasic, category: Files, identity: Nothing,
        fields: &[Field::Context, Field::File, Field::Size], payload: Comm, shown: Instant,
        what: "a file is closed",
        fires: "io: when its handle goes",
    }
    PartStart = 67, "PERUSAL_PART_START" {
        binding: Communicator, verbosity: UserBasic, category: Partitions, identity: Request,
        fields: PART_OPERATION, payload: PartOperation, shown: Paired,
        what: "a partitioned operation is started",
        fires: "part: MPI_Start",
    }
    PartReady = 68, "PERUSAL_PART_READY" {
        binding: Communicator, verbosity: UserDetail, category: Partitions, identity: Request,
        fields: PARTITION, payload: Partition, shown: Instant,
        what: "a partition has been marked as ready",
        fires: "part: MPI_Pready and the like, before the partition is sent",
    }
    PartXferBegin = 69, "PERUSAL_PART_XFER_BEGIN" {
        binding: Communicator, verbosity: UserDetail, category: Partitions, identity: Request,
        fields: PARTITION, payload: Partition, shown: Paired,
        what: "the sender is about to copy a partition to its receiver",
        fires: "part: at once if the receiver has started, else when the sender has found out that it has",
    }
    PartXferEnd = 70, "PERUSAL_PART_XFER_END" {
        binding: Communicator, verbosity: UserDetail, category: Partitions, identity: Request,
        fields: PARTITION, payload: Partition, shown: Paired,
        what: "the sender has copied a partition to its receiver",
        fires: "part: after that",
    }
    PartArrived = 71, "PERUSAL_PART_ARRIVED" {
        binding: Communicator, verbosity: UserDetail, category: Partitions, identity: Request,
        fields: PARTITION, payload: Partition, shown: Instant,
        what: "the receiver has found that a partition is there",
        fires: "part: in MPI_Parrived, in waits and tests, and where progress is made",
    }
    PartTested = 72, "PERUSAL_PART_TESTED" {
        binding: Communicator, verbosity: UserAll, category: Partitions, identity: Request,
        fields: PARTITION, payload: Partition, shown: Instant,
        what: "MPI_Parrived has been asked about a partition",
        fires: "part: before it returns",
    }
    PartComplete = 73, "PERUSAL_PART_COMPLETE" {
        binding: Communicator, verbosity: UserBasic, category: Partitions, identity: Request,
        fields: PART_OPERATION, payload: PartOperation, shown: Paired,
        what: "a partitioned operation is complete",
        fires: "part: before a wait or test would succeed",
    }
    CallBegin = 74, "PERUSAL_CALL_BEGIN" {
        binding: Nothing, verbosity: UserBasic, category: Events, identity: Nothing,
        fields: CALL, payload: Call, shown: Paired,
        what: "the program calls a function of MPI",
        fires: "bindings: functions that communicate, or make and free what others use; before anything happens in them",
    }
    CallEnd = 75, "PERUSAL_CALL_END" {
        binding: Nothing, verbosity: UserBasic, category: Events, identity: Nothing,
        fields: CALL, payload: Call, shown: Paired,
        what: "a function of MPI is about to return to the program",
        fires: "bindings: before an error handler is invoked, if the call has failed",
    }
    SpawnBegin = 76, "PERUSAL_SPAWN_BEGIN" {
        binding: Communicator, verbosity: UserBasic, category: Job, identity: Spawn,
        fields: SPAWN, payload: Spawn, shown: Instant,
        what: "processes are about to be spawned",
        fires: "dynamic: MPI_Comm_spawn and MPI_Comm_spawn_multiple, at all members; processes are those asked for, known at the root",
    }
    SpawnEnd = 77, "PERUSAL_SPAWN_END" {
        binding: Communicator, verbosity: UserBasic, category: Job, identity: Spawn,
        fields: SPAWN, payload: Spawn, shown: Instant,
        what: "processes have been spawned, or could not be",
        fires: "dynamic: before the call returns; processes are those that have started",
    }
    ProcessSpawned = 78, "PERUSAL_PROCESS_SPAWNED" {
        binding: Communicator, verbosity: UserBasic, category: Job, identity: Spawn,
        fields: &[Field::Id, Field::World, Field::Pid, Field::Communicator, Field::Context], payload: Process, shown: Instant,
        what: "a process has been spawned, and takes part in the job",
        fires: "dynamic: at the root, for each process, before SPAWN_END",
    }
}

/// How many events of communicators PERUSE has: those numbered from 1 to this. Those of windows come later.
pub const PERUSE_EVENTS: usize = {
    let mut count = 0;
    while count < EVENTS && CATALOG[count].peruse.is_some() {
        count += 1;
    }
    let mut index = 0;
    while index < EVENTS {
        assert!(CATALOG[index].event.index() == index, "rows stand in the order of their numbers");
        index += 1;
    }
    count
};
