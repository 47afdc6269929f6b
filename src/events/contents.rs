//! What the records of events hold: the fields, and the payloads that carry those that are not in the
//! [`Spec`](super::Spec).

use super::event::c_string;
use super::field::{FieldInfo, FieldType, FieldValue, fields};
use super::functions::FUNCTIONS;
use super::payload::{BLANKS, CANCELLED, PayloadValue, Words, bits, payloads};
use super::payload::{CollRoot, PartitionBytes, PartitionCount};
use super::spec::RmaTarget;
use super::values::{
    Algorithm, COPY_ENGINES, CollMode, Collective, FLAVORS, FileMode, FileOperation, FilePointer, OPERATIONS,
    PLACEMENTS, RmaOperation, WindowLock, WindowReach, WindowSync,
};
use super::waiting::Waiting;
use crate::abi::MPI_MAX_OBJECT_NAME;

// Field: type, name in MPI_T, name in exports, names of its values; description.
fields! {
    Id: U64, "id", "id", None; "relates the events of one request, message, search or operation";
    Communicator: U64, "comm", "comm", None; "handle of the communicator";
    Context: U32, "context", "context", None; "context id of the communicator; 4294967295: none";
    Operation: I32, "operation", "operation", Some(OPERATIONS); "send or receive";
    Peer: I32, "peer", "peer", None; "rank of the other side in the communicator, or MPI_ANY_SOURCE";
    Tag: I32, "tag", "tag", None; "tag, or MPI_ANY_TAG";
    Bytes: U64, "bytes", "bytes", None; "size in bytes";
    Count: I64, "count", "count", None; "elements of the datatype";
    Datatype: U64, "datatype", "datatype", None; "handle of the datatype";
    Buffer: U64, "buffer", "buffer", None; "address of the user's buffer; 0: unknown";
    Compared: U32, "compared", "compared", None; "queue entries that the search compared";
    Hit: I32, "hit", "found", None; "1 if the search found something, else 0";
    Collective: I32, "collective", "operation", Some(Collective::NAMES); "which collective operation";
    Algorithm: I32, "algorithm", "algorithm", Some(Algorithm::NAMES); "how the operation is performed";
    Root: I32, "root", "root", None; "rank of the root in the communicator, of an intercommunicator in the remote group; -1: none, or not there";
    CollMode: I32, "mode", "mode", Some(CollMode::NAMES); "whether the operation is a blocking one";
    CopyEngine: I32, "engine", "engine", Some(COPY_ENGINES); "which copy engine";
    World: U32, "world_rank", "rank", None; "rank of the other side in the job; 4294967295: none or several";
    Waiting: I32, "waiting_for", "waiting", Some(Waiting::NAMES); "what is waited for";
    Queued: U32, "queued", "queued", None; "records and messages that wait for room in the ring";
    Size: U32, "size", "size", None; "ranks of the communicator; of an intercommunicator, the remote ones";
    Name: Text(MPI_MAX_OBJECT_NAME as usize), "name", "name", None; "name of the communicator, window or file";
    ErrorClass: I32, "error_class", "class", None; "class of the error";
    ErrorCode: I32, "error_code", "code", None; "error code";
    Cpu: U32, "cpu", "cpu", None; "lowest CPU that the rank may run on; 4294967295: unknown";
    Window: U64, "win", "window", None; "handle of the window";
    Origin: I32, "origin", "origin", None; "rank of the process that calls, in the group of the window or file";
    Target: I32, "target", "target", None; "rank of the target in the window's group; -1: all, or none";
    RmaOperation: I32, "rma_operation", "operation", Some(RmaOperation::NAMES); "which one-sided operation";
    Reach: I32, "reach", "reach", Some(WindowReach::NAMES); "how the target's memory is reached";
    TargetAddress: U64, "target_address", "address", None; "address of the target's bytes in its own process";
    Synchronization: I32, "synchronization", "call", Some(WindowSync::NAMES); "which call";
    Lock: I32, "lock", "lock", Some(WindowLock::NAMES); "how the target's memory, or a part of a file, is locked";
    Holder: I32, "holder", "holder", None; "rank in the window's group that was granted the lock last; -1: none yet, or not known";
    Flavor: I32, "flavor", "flavor", Some(FLAVORS); "how the window was made";
    Placement: I32, "placement", "placement", Some(PLACEMENTS); "whether the rank is bound to a part of the machine";
    File: U64, "file", "file", None; "handle of the file";
    FileOperation: I32, "file_operation", "operation", Some(FileOperation::NAMES); "whether the access reads or writes";
    FilePointer: I32, "file_pointer", "pointer", Some(FilePointer::NAMES); "where the access begins";
    FileMode: I32, "file_mode", "mode", Some(FileMode::NAMES); "who takes part in the access";
    Offset: U64, "offset", "offset", None; "bytes from the beginning of the file; 18446744073709551615: not known yet";
    DiskAccesses: U32, "disk_accesses", "accesses", None; "accesses to the file system for this access so far";
    Function: I32, "function", "function", Some(FUNCTIONS); "number of the function";
    FunctionName: U64, "function_name", "name", None; "address of the function's name, a string of C that stays where it is";
    Processes: U32, "processes", "processes", None; "processes that are to be spawned, or have been; 4294967295: not known here";
    Intercommunicator: U64, "intercomm", "intercommunicator", None; "handle of the communicator to the spawned processes; 0: none yet";
    Pid: I32, "pid", "pid", None; "process id";
    Sequence: U64, "sequence", "number", None; "number of the message among those that have come from its sender on its communicator, from 0";
    Partitions: U32, "partitions", "partitions", None; "partitions of the operation at this rank";
    Partition: U32, "partition", "partition", None; "which partition";
    Arrived: I32, "arrived", "arrived", None; "1 if the partition is in the receiver's buffer, else 0";
    Length: U32, "length", "length", None; "bytes that are locked; 4294967295: that many or more";
}

// Value: its type, the field that it is, and the bits of a trace record that carry it.
payloads! {
    /// A collective operation.
    Coll {
        /// A [`Collective`].
        operation: u16 as Collective in first[0..16],
        /// The root.
        root: CollRoot as Root in first[16..32],
        /// An [`Algorithm`]; at the beginning it may be unknown.
        algorithm: u16 as Algorithm in second[0..16],
        /// A [`CollMode`].
        mode: u8 as CollMode in second[16..32],
        /// Bytes that this rank contributes, or gets if it contributes nothing; at the end, bytes that it gets.
        bytes: u64 as Bytes in third[0..64],
    }
    /// A copy engine at work.
    Copy {
        /// 0 chunks, 1 read, 2 halves, 3 direct.
        engine: u8 as CopyEngine in second[0..32],
        /// Bytes to move; at the end, bytes moved.
        bytes: u64 as Bytes in third[0..64],
        /// The other rank, in the job.
        peer: u32 as World in first[0..32],
    }
    /// Sleep and waking.
    Sleep {
        /// What is waited for: `shm::telemetry::Waiting` as a number; 0 if that is not known.
        waiting: u8 as Waiting in second[0..32],
        /// For which rank of the job; `u32::MAX` for any or several.
        peer: u32 as World in first[0..32],
    }
    /// A full ring.
    Ring {
        /// The ring's receiver, in the job.
        peer: u32 as World in first[0..32],
        /// Records and messages that wait for room there.
        waiting: u32 as Queued in second[0..32],
    }
    /// An error.
    Error {
        /// Its class.
        class: i32 as ErrorClass in first[0..32],
        /// Its code.
        code: i32 as ErrorCode in second[0..32],
    }
    /// Where a rank runs.
    Placement {
        /// The lowest CPU that it may run on; `u32::MAX` if that is not known.
        cpu: u32 as Cpu in first[0..32],
        /// 0: on any CPU of the machine; 1: it is bound to some of them.
        policy: u8 as Placement in second[0..32],
    }
    /// A call that synchronises a window.
    Sync {
        /// The target; -1 for all of them, or none.
        target: i32 as Target in first[0..32],
        /// A [`WindowSync`].
        call: u8 as Synchronization in second[0..8],
        /// A [`WindowLock`]: what MPI_Win_lock asks for.
        lock: u8 as Lock in second[8..16],
    }
    /// A lock of a target's memory.
    Lock {
        /// The target; -1 for all of them.
        target: i32 as Target in first[0..32],
        /// A [`WindowLock`].
        lock: u8 as Lock in second[0..8],
        /// The member that was granted the lock last; -1 if that is none, or not known.
        holder: i32 as Holder in third[0..32],
    }
    /// An access epoch at one target.
    Epoch {
        /// The target.
        target: i32 as Target in first[0..32],
    }
    /// How a window lies in memory.
    Window {
        /// 0 create, 1 allocate, 2 dynamic, 3 shared.
        flavor: u8 as Flavor in second[0..8],
        /// A [`WindowReach`]: the slowest by which this rank reaches another's memory.
        reach: u8 as Reach in second[8..16],
        /// Bytes of this rank's own part.
        bytes: u64 as Bytes in third[0..64],
    }
    /// A lock of a part of a file.
    FileLock {
        /// Bytes that are locked; `u32::MAX` for that many or more.
        length: u32 as Length in first[0..32],
        /// A [`WindowLock`]: shared to read, exclusive to write.
        lock: u8 as Lock in second[0..8],
        /// Where it begins, in bytes from the beginning of the file.
        offset: u64 as Offset in third[0..64],
    }
    /// A partitioned operation.
    PartOperation {
        /// Bytes of all partitions.
        bytes: u64 as Bytes in third[0..48],
        /// How many there are.
        partitions: PartitionCount as Partitions in third[48..64],
    }
    /// A partition.
    Partition {
        /// Which.
        partition: u32 as Partition in third[0..31],
        /// Whether it is in the receiver's buffer.
        arrived: bool as Arrived in third[31..32],
        /// Its bytes.
        bytes: PartitionBytes as Bytes in third[32..64],
    }
    /// A call of the program's.
    Call {
        /// Its place among [`FUNCTIONS`].
        function: u16 as Function in first[0..16],
    }
    /// Processes that are spawned.
    Spawn {
        /// Who asks for them.
        root: CollRoot as Root in first[0..32],
        /// How many.
        processes: u32 as Processes in second[0..32],
        /// Handle of the intercommunicator.
        intercomm: u64 as Intercommunicator in third[0..64],
    }
    /// A process that has been spawned.
    Process {
        /// Its rank in the job.
        rank: u32 as World in first[0..32],
        /// Its process id.
        pid: i32 as Pid in second[0..32],
    }
    /// The end of a search.
    Search {
        /// Queue entries that were compared.
        depth: u32 as Compared in third[0..32],
        /// Whether something was found.
        hit: bool as Hit in third[32..33],
    }
}
