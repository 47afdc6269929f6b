//! What the analysis finds: the contents of `--json`, and of the data block of the page. Times are nanoseconds since
//! the job's first record, durations nanoseconds, ranks those of MPI_COMM_WORLD.

use super::calls::CallReport;
use super::distribution::ValueDistribution;
use super::partitioned::PartitionedReport;
use serde::Serialize;

/// Everything.
#[derive(Debug, Clone, Serialize)]
pub struct Report {
    /// "perusal-report-1": names the form of all this.
    pub format: &'static str,
    /// The job.
    pub job: JobReport,
    /// What stands out, in words.
    pub verdict: Verdict,
    /// The sums that are shown first.
    pub key: KeyFigures,
    /// Where the bins of histograms begin.
    pub edges: EdgeLists,
    /// One for each rank.
    pub ranks: Vec<RankReport>,
    /// QueueReport lengths and waiting over time.
    pub queues: Series,
    /// Who sends to whom.
    pub matrix: Matrix,
    /// Pairs of which the receiver waited for the send to begin; what cost most first.
    pub late_senders: Vec<LateSender>,
    /// Pairs of which the send came before the receive was posted; what cost most first.
    pub late_receivers: Vec<LateReceiver>,
    /// A row for each operation on each communicator; what cost most first.
    pub collectives: Vec<CollectiveReport>,
    /// The communicators.
    pub communicators: Vec<CommunicatorReport>,
    /// Functions of MPI that the program called; those with most time first.
    pub calls: Vec<CallReport>,
    /// Partitioned messages between two ranks; those with most bytes first.
    pub partitioned: Vec<PartitionedReport>,
    /// The windows; those with most bytes first.
    pub windows: Vec<WindowReport>,
    /// Bytes of one-sided operations between ranks.
    pub one_sided: Vec<OneSidedCell>,
    /// Who waited for whose lock; what cost most first.
    pub lock_waits: Vec<LockWaitReport>,
    /// The files; those with most bytes first.
    pub files: Vec<FileReport>,
    /// Who waited for whose lock of a part of a file; what cost most first.
    pub file_waits: Vec<FileWaitReport>,
}

impl Report {
    /// What the report is called: program, without its folder, and arguments;
    /// the trace's name where they are not known.
    #[must_use]
    pub fn name(&self) -> String {
        const LONGEST: usize = 200;
        let command = self.job.command.trim();
        if command.is_empty() {
            return self.job.file.clone();
        }
        let (program, arguments) = command.split_once(' ').unwrap_or((command, ""));
        let program = program.rsplit('/').next().unwrap_or(program);
        let name = format!("{program} {arguments}");
        match name.trim_end().char_indices().nth(LONGEST) {
            None => name.trim_end().to_owned(),
            Some((cut, _)) => format!("{}…", &name[..cut]),
        }
    }
}

/// The job as the trace knows it.
#[derive(Debug, Clone, Serialize)]
pub struct JobReport {
    /// Program and arguments.
    pub command: String,
    /// The machine.
    pub host: String,
    /// Name of the trace's file.
    pub file: String,
    /// When it was started, seconds since 1970.
    pub started: u64,
    /// Exit status, if it is known.
    pub status: Option<i32>,
    /// From the first record to the last.
    pub duration_ns: u64,
    /// Records of all ranks.
    pub records: u64,
    /// Events of all ranks that have no record.
    pub dropped: u64,
    /// Ranks whose trace does not reach their end.
    pub incomplete: Vec<u32>,
    /// Messages of which one side alone is in the trace, so that their lateness is not known.
    pub unpaired: u64,
}

/// What stands out.
#[derive(Debug, Clone, Serialize)]
pub struct Verdict {
    /// The first paragraph.
    pub paragraph: String,
    /// What makes the rest less than the whole truth.
    pub cautions: Vec<String>,
    /// The same as the paragraph, one by one; empty if nothing stands out.
    pub findings: Vec<Finding>,
}

/// One thing that stands out.
#[derive(Debug, Clone, Serialize)]
pub struct Finding {
    /// "culprit", "waiting", "collective", "lock", "unexpected-queue", "posted-queue", "search",
    /// "ring-full" or "lost-messages".
    pub kind: &'static str,
    /// The rank that it is about, if it is about one.
    pub rank: Option<u32>,
    /// What it costs, if that is known.
    pub cost_ns: u64,
    /// A sentence or two.
    pub text: String,
}

/// A highest point.
#[derive(Debug, Clone, Copy, Default, Serialize)]
pub struct High {
    /// Which rank.
    pub rank: u32,
    /// How many entries.
    pub length: u32,
    /// When.
    pub at_ns: u64,
}

/// Sums over all ranks.
#[derive(Debug, Clone, Default, Serialize)]
pub struct KeyFigures {
    /// Point-to-point messages that were sent or, if the sender's side is missing, received.
    pub messages: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Messages that came before their receive.
    pub unexpected: u64,
    /// Time from each rank's first record to its last.
    pub rank_time_ns: u64,
    /// Waiting of all ranks, for whatever reason.
    pub waited_ns: u64,
    /// Of which for messages that were not sent yet,
    pub late_sender_ns: u64,
    /// for receives that were not posted yet,
    pub late_receiver_ns: u64,
    /// and for the last rank in a collective operation.
    pub collective_wait_ns: u64,
    /// and for others at windows and files: for locks, and to open and close epochs.
    pub window_wait_ns: u64,
    /// Calls of collective operations, each rank's counted.
    pub collectives: u64,
    /// One-sided operations.
    pub one_sided: u64,
    /// Their bytes.
    pub one_sided_bytes: u64,
    /// Sleeps of all ranks.
    pub sleeps: u64,
    /// How often a ring was found full.
    pub ring_full: u64,
    /// The longest unexpected queue.
    pub unexpected_high: High,
    /// The longest posted queue.
    pub posted_high: High,
}

/// Edges of histograms.
#[derive(Debug, Clone, Serialize)]
pub struct EdgeLists {
    /// Of times.
    pub time: Vec<u64>,
    /// Of counts.
    pub count: Vec<u64>,
}

/// Messages and their bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Amount {
    /// How many.
    pub messages: u64,
    /// How many bytes.
    pub bytes: u64,
}

/// One rank.
#[derive(Debug, Clone, Default, Serialize)]
pub struct RankReport {
    /// Its number.
    pub rank: u32,
    /// Its records.
    pub records: u64,
    /// Its events without a record.
    pub dropped: u64,
    /// Whether its trace reaches to MPI_Finalize.
    pub complete: bool,
    /// From its first record to its last.
    pub active_ns: u64,
    /// Sends that it began.
    pub sent: Amount,
    /// Messages that it received.
    pub received: Amount,
    /// Its unexpected queue.
    pub unexpected: QueueReport,
    /// Its posted queue.
    pub posted: QueueReport,
    /// Life of send requests, from activation to notification.
    pub send_requests: ValueDistribution,
    /// Life of receive requests.
    pub receive_requests: ValueDistribution,
    /// How it slept.
    pub sleep: Sleep,
    /// Where it found no room.
    pub ring_full: RingFull,
    /// What it waited for.
    pub waited: Waited,
    /// What others waited for because of it.
    pub caused: Caused,
}

/// A queue of one rank.
#[derive(Debug, Clone, Default, Serialize)]
pub struct QueueReport {
    /// Entries that were ever in it.
    pub entries: u64,
    /// Most at once.
    pub high: u32,
    /// When that was reached first.
    pub high_at_ns: u64,
    /// How many were still in it at the last record.
    pub left: u32,
    /// For how long it was not empty.
    pub occupied_ns: u64,
    /// How long entries stayed that left again.
    pub residence: ValueDistribution,
    /// How long searches took.
    pub search_time: ValueDistribution,
    /// How many entries they compared.
    pub search_depth: ValueDistribution,
    /// Searches that found what they looked for.
    pub hits: u64,
}

/// Sleeps.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Sleep {
    /// How often.
    pub times: u64,
    /// For how long in all.
    pub ns: u64,
    /// The longest one.
    pub longest_ns: u64,
    /// By what was waited for, the longest first.
    pub kinds: Vec<SleepKind>,
}

/// Sleeps for one kind of thing.
#[derive(Debug, Clone, Serialize)]
pub struct SleepKind {
    /// For what.
    pub what: &'static str,
    /// How often.
    pub times: u64,
    /// For how long in all.
    pub ns: u64,
}

/// Full rings.
#[derive(Debug, Clone, Default, Serialize)]
pub struct RingFull {
    /// How often one was found full.
    pub times: u64,
    /// Whose, the most frequent first.
    pub peers: Vec<Times>,
}

/// How often with which rank.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Times {
    /// The rank.
    pub rank: u32,
    /// How often.
    pub times: u64,
}

/// A rank's waiting; the six do not overlap.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Waited {
    /// For a message whose send had not begun.
    pub late_sender_ns: u64,
    /// For a receive that was not posted.
    pub late_receiver_ns: u64,
    /// For the last rank in a collective operation, or a fence.
    pub collective_ns: u64,
    /// For a lock that another rank held.
    pub lock_ns: u64,
    /// For a rank that had not exposed its memory, or not completed its accesses.
    pub epoch_ns: u64,
    /// Asleep for another reason: the transfer itself, a probe, the others in MPI_Finalize.
    pub other_ns: u64,
}

impl Waited {
    /// All of it.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.late_sender_ns
            + self.late_receiver_ns
            + self.collective_ns
            + self.lock_ns
            + self.epoch_ns
            + self.other_ns
    }
}

/// The waiting of others that is charged to a rank.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Caused {
    /// As a late sender.
    pub late_sender_ns: u64,
    /// As a late receiver.
    pub late_receiver_ns: u64,
    /// As the last in a collective operation, or a fence.
    pub collective_ns: u64,
    /// As the holder of a lock.
    pub lock_ns: u64,
    /// As one who exposed its memory late, or completed its accesses late.
    pub epoch_ns: u64,
    /// The sum of these.
    pub direct_ns: u64,
    /// What goes back to it when the charges of ranks that were waiting themselves are passed on to whom they waited
    /// for.
    pub root_ns: u64,
}

/// Values over time. Each rank has a list of the bins in which something changed, ascending: number of the bin, least,
/// most, last value. Between them the last value holds; before the first it is 0.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Series {
    /// Width of a bin.
    pub bin_ns: u64,
    /// How many there are.
    pub bins: u32,
    /// Length of each rank's posted queue.
    pub posted: Vec<Vec<Bin>>,
    /// Length of each rank's unexpected queue.
    pub unexpected: Vec<Vec<Bin>>,
    /// Thousandths of the bin for which each rank waited.
    pub waiting: Vec<Vec<Bin>>,
}

/// Number of the bin, least, most and last value in it.
pub type Bin = (u32, u32, u32, u32);

/// Who sends to whom.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Matrix {
    /// How many neighbouring ranks a row or column stands for; more than 1 only on the page of a very large job.
    pub group: u32,
    /// The cells that are not empty, by sender and receiver.
    pub cells: Vec<MatrixCell>,
}

/// Sender, receiver, messages, bytes, unexpected messages, unexpected bytes.
pub type MatrixCell = (u32, u32, u64, u64, u64, u64);

/// Messages of one pair that came late.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct LateSender {
    /// Who sent late.
    pub sender: u32,
    /// Who waited.
    pub receiver: u32,
    /// Messages that were waited for.
    pub messages: u64,
    /// How long the receiver waited before the sends had begun.
    pub waited_ns: u64,
    /// The part of it during which the sender was waiting itself.
    pub passed_on_ns: u64,
    /// The longest wait for one message.
    pub longest_ns: u64,
    /// When that one began.
    pub longest_at_ns: u64,
    /// How long receives of the pair stood posted before their sends began, whether the receiver waited or not.
    pub open_ns: u64,
}

/// Messages of one pair that were sent before their receive was posted.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct LateReceiver {
    /// Who received late.
    pub receiver: u32,
    /// Who sent.
    pub sender: u32,
    /// Messages that were sent before their receive was posted.
    pub messages: u64,
    /// How long the sender waited before the receives were posted.
    pub waited_ns: u64,
    /// The part of it during which the receiver was waiting itself.
    pub passed_on_ns: u64,
    /// The longest wait for one receive.
    pub longest_ns: u64,
    /// When that one began.
    pub longest_at_ns: u64,
    /// By how much sends came before receives, whether the sender waited or not.
    pub early_ns: u64,
    /// The most that one send came before its receive.
    pub earliest_ns: u64,
}

/// One collective operation on one communicator.
#[derive(Debug, Clone, Default, Serialize)]
pub struct CollectiveReport {
    /// Its name: "MPI_Barrier", "MPI_Ibarrier" or "MPI_Barrier_init".
    pub operation: String,
    /// "blocking", "nonblocking" or "persistent".
    pub mode: String,
    /// The communicator's name.
    pub communicator: String,
    /// The communicator's context.
    pub context: u32,
    /// Calls, all ranks'.
    pub calls: u64,
    /// Bytes that a rank contributes to a call, on average.
    pub bytes: u64,
    /// Time inside, all ranks'.
    pub inside_ns: u64,
    /// Waiting for the last rank, all ranks'.
    pub waited_ns: u64,
    /// The longest wait of one rank in one call.
    pub longest_ns: u64,
    /// When that one began.
    pub longest_at_ns: u64,
    /// Who came last how often, and what it cost the others; what cost most first.
    pub last: Vec<Last>,
    /// The algorithms that were used.
    pub algorithms: Vec<String>,
}

/// A rank that came last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Last {
    /// The rank.
    pub rank: u32,
    /// How often.
    pub times: u64,
    /// What the others waited.
    pub cost_ns: u64,
}

/// A communicator.
#[derive(Debug, Clone, Serialize)]
pub struct CommunicatorReport {
    /// Its name.
    pub name: String,
    /// The context id of its messages.
    pub context: u32,
    /// How many ranks.
    pub size: u32,
    /// Which, in words.
    pub members: String,
    /// Messages on it.
    pub messages: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Those that came before their receive.
    pub unexpected: u64,
}

/// A window.
#[derive(Debug, Clone, Default, Serialize)]
pub struct WindowReport {
    /// Its name.
    pub name: String,
    /// The context id of its messages.
    pub context: u32,
    /// How many ranks.
    pub size: u32,
    /// Which, in words.
    pub members: String,
    /// How it was made: "create", "allocate", "dynamic" or "shared".
    pub flavor: String,
    /// How other ranks' memory is reached: "loads and stores", "process vm" or "messages".
    pub reach: String,
    /// Puts.
    pub put: Accesses,
    /// Gets.
    pub get: Accesses,
    /// Accumulates and their like.
    pub accumulated: Accesses,
    /// Its epochs, by kind.
    pub epochs: Vec<EpochReport>,
    /// Time in calls that synchronise it, all ranks'.
    pub synchronizing_ns: u64,
    /// Locks that were not granted at once.
    pub lock_waits: u64,
    /// Waiting for them, all ranks'.
    pub lock_waited_ns: u64,
}

/// One-sided operations and their bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Accesses {
    /// How many.
    pub operations: u64,
    /// How many bytes.
    pub bytes: u64,
}

/// Epochs of one kind on one window, all ranks'.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct EpochReport {
    /// "access", "exposure", "fence" or "lock".
    pub kind: &'static str,
    /// How many.
    pub times: u64,
    /// How long in all.
    pub ns: u64,
    /// The longest one.
    pub longest_ns: u64,
}

/// Origin, target, operations, bytes put, bytes got, bytes accumulated.
pub type OneSidedCell = (u32, u32, u64, u64, u64, u64);

/// Waits of one rank for the lock of another's memory in a window, while one held it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct LockWaitReport {
    /// The window's name.
    pub window: String,
    /// Whose memory was locked.
    pub target: u32,
    /// Who waited.
    pub waiter: u32,
    /// Who held the lock for most of the time, if that is known.
    pub holder: Option<u32>,
    /// How often.
    pub times: u64,
    /// How long in all.
    pub waited_ns: u64,
    /// The longest wait.
    pub longest_ns: u64,
    /// When that one began.
    pub longest_at_ns: u64,
}

/// One file, from its opening on.
#[derive(Debug, Clone, Default, Serialize)]
pub struct FileReport {
    /// The name that it was opened with.
    pub name: String,
    /// The context id of its members.
    pub context: u32,
    /// How many ranks opened it together.
    pub size: u32,
    /// Which, in words.
    pub members: String,
    /// Accesses that read, all ranks'.
    pub read: Accesses,
    /// Accesses that write.
    pub written: Accesses,
    /// Of all of these, the collective ones.
    pub collective: u64,
    /// The nonblocking ones.
    pub nonblocking: u64,
    /// System calls on the file for them.
    pub disk_accesses: u64,
    /// Time in accesses that their callers waited for, all ranks'.
    pub inside_ns: u64,
    /// Of which moving bytes.
    pub moving_ns: u64,
    /// Of which obtaining the shared file pointer: in ordered accesses, waiting for the others.
    pub pointer_ns: u64,
    /// Locks of parts of it that were not granted at once.
    pub lock_waits: u64,
    /// Waiting for them.
    pub lock_waited_ns: u64,
}

/// Waits of one rank for the lock of a part of a file that another one held.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct FileWaitReport {
    /// The file's name.
    pub file: String,
    /// Who waited.
    pub waiter: u32,
    /// Who held the lock for most of the time; `None` for a program outside of the job, or if it is not known.
    pub holder: Option<u32>,
    /// How often.
    pub times: u64,
    /// How long in all.
    pub waited_ns: u64,
    /// The longest wait.
    pub longest_ns: u64,
    /// When that one began.
    pub longest_at_ns: u64,
}
