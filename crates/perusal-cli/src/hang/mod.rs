//! Why a job stands still, read from its memory.
//!
//! | file | what it does |
//! |---|---|
//! | `mod` | [`RankView`]: what one rank does right now |
//! | `process` | what the kernel says of a rank's process |
//! | `asleep` | threads that wait for a mutex, or for a thread's end |
//! | `scene` | [`Scene`]: the job, and those whose processes are guests in it |
//! | `proof` | [`Watch`]: whether the job is deadlocked |
//! | `cause` | [`Cause`]: which mistake it is, in a sentence |
//! | `circle` | ranks that wait for each other |
//! | `near_miss` | messages that are nearly what a rank waits for |
//! | `left_out` | collective calls that a rank has left out |
//! | `partitions` | mistakes with partitioned messages |
//! | `remarks` | what is said behind a cause |
//! | `action` | what the launcher does about it |
//! | `report` | the report, for people and as JSON |
//!
//! Every rank can write the job's memory: what is read there is printed, and decides whether this job ends;
//! nothing else follows from it.

mod action;
mod asleep;
mod cause;
mod circle;
mod left_out;
mod near_miss;
mod partitions;
mod process;
mod proof;
mod remarks;
mod report;
mod scene;
#[cfg(test)]
mod tests;

pub use action::{Proved, forget_report};
pub use cause::{Cause, cause};
pub use proof::{CHECK, Watch};
pub use report::{home, json, report};
pub use scene::{Scene, number};

use asleep::Sleeper;
use perusal::internals::arch::clock::now;
use perusal::internals::shm::roster::names;
use perusal::internals::shm::telemetry::detail::UNKNOWN_CONTEXT;
use perusal::internals::shm::telemetry::{
    AboutKind, LockAbout, MessageAbout, OperationAbout, Wait, WaitDetail, Waiting, WaitingThread,
};
use perusal::internals::shm::{Memory, RankState, contexts, is_gone};
use process::ProcessView;

/// What one rank does.
#[derive(Debug, Clone)]
pub struct RankView {
    /// The rank in the job.
    pub rank: u32,
    /// Of a guest whose job is known: that job's number, and its rank there.
    pub home: Option<(u32, u32)>,
    /// The process id that the rank has entered; 0 if it has not arrived.
    pub pid: i32,
    /// Where it is between its start and its end.
    pub stage: Stage,
    /// Receives that are posted, and messages that are unexpected.
    pub queues: [u64; 2],
    /// What the kernel says of its process, for a rank that runs.
    pub process: ProcessView,
    /// What other threads of a rank that waits wait for, in MPI.
    pub others: Vec<LongWait>,
    /// Threads that are not in MPI and wait for one of its process.
    pub asleep: Vec<Sleeper>,
}

/// Where a rank is between its start and its end.
#[derive(Debug, Clone, PartialEq)]
pub enum Stage {
    /// It has not called MPI_Init.
    Absent,
    /// It is inside MPI_Init.
    Starting,
    /// It has finalized MPI, or its sessions, and runs on.
    Finalized,
    /// Its process has ended, in these words.
    Ended(String),
    /// It waits inside MPI.
    Waits(Box<LongWait>),
    /// It belongs to another job, whose launcher knows more of it.
    Guest,
    /// It is between MPI_Init and MPI_Finalize, and does not wait.
    Runs,
    /// It is inside MPI_Finalize, and does not wait.
    Finalizes,
}

/// A wait and its detail.
#[derive(Debug, Clone, PartialEq)]
pub struct LongWait {
    /// Its number.
    pub number: u64,
    /// What it is for.
    pub wait: Wait,
    /// What the rank says of it; nothing if it has not waited long.
    pub detail: WaitDetail,
    /// Seconds that it has lasted.
    pub seconds: f64,
    /// Whether the rank is inside MPI_Finalize.
    pub finalizing: bool,
}

impl RankView {
    /// What `rank` does right now.
    pub fn of(scene: &Scene<'_>, rank: u32) -> Self {
        let here = scene.own.roster().entry(rank);
        let (memory, place) = scene.home(rank).unwrap_or((scene.own, rank));
        let is_guest = here.guest().is_some();
        let (entry, page) = (memory.roster().entry(place), memory.telemetry(place));
        let pid = entry.pid();
        let stage = match (here.state(), here.exit()) {
            (_, Some(exit)) => Stage::Ended(exit.to_string()),
            (RankState::Dead, None) => Stage::Ended("has died".into()),
            (_, None) if is_guest && core::ptr::eq(memory, scene.own) => Stage::Guest,
            _ => Self::stage(memory, place),
        };
        let stage = match stage {
            Stage::Waits(wait) if is_guest => {
                // A guest names ranks of its own job.
                wait.translated(|rank| scene.rank_of(memory, rank)).map_or(Stage::Guest, Stage::Waits)
            }
            stage => stage,
        };
        let runs = !matches!(stage, Stage::Absent | Stage::Ended(_) | Stage::Guest);
        let process = if runs { ProcessView::of(pid) } else { ProcessView::default() };
        let home = (is_guest && !core::ptr::eq(memory, scene.own)).then(|| (number(memory), place));
        let mut others = vec![];
        if let Stage::Waits(main) = &stage {
            let waits = page.waiting_threads().map(|thread| Box::new(main.of_another(thread)));
            let translated = |wait: Box<LongWait>| {
                if is_guest { wait.translated(|rank| scene.rank_of(memory, rank)) } else { Some(wait) }
            };
            others = waits.filter_map(translated).map(|wait| *wait).collect();
        }
        let mut asleep = vec![];
        if process.threads > 1 {
            let other_threads = page.waiting_threads().map(|thread| u64::from(thread.thread));
            let in_mpi: Vec<u64> = other_threads.chain([page.poller.get()]).collect();
            asleep = Sleeper::all(pid, &in_mpi, matches!(stage, Stage::Waits(_)));
        }
        let queues = [page.posted_now(), page.unexpected_now()];
        Self { rank, home, pid, stage, queues, process, others, asleep }
    }

    /// What the process of this job at `place` does.
    fn stage(memory: &Memory, place: u32) -> Stage {
        let (entry, page) = (memory.roster().entry(place), memory.telemetry(place));
        match (entry.state(), entry.exit()) {
            (_, Some(exit)) => Stage::Ended(exit.to_string()),
            (RankState::Dead, None) => Stage::Ended("has died".into()),
            (RankState::Absent, None) => Stage::Absent,
            (RankState::Arrived, None) => Stage::Starting,
            (RankState::Finalized, None) if is_gone(entry.pid()) => Stage::Ended("exited".into()),
            (RankState::Finalized, None) => Stage::Finalized,
            (state, None) => {
                let finalizing = state == RankState::Finalizing;
                match page.waiting.numbered() {
                    None if finalizing => Stage::Finalizes,
                    None => Stage::Runs,
                    Some((number, wait)) => Stage::Waits(Box::new(LongWait {
                        number,
                        wait,
                        detail: page.detail.get(number).unwrap_or_default(),
                        seconds: seconds_of(&wait),
                        finalizing,
                    })),
                }
            }
        }
    }

    /// What all ranks do.
    pub fn all(scene: &Scene<'_>) -> Vec<Self> {
        (0..scene.own.places_in_use()).map(|rank| Self::of(scene, rank)).collect()
    }

    /// Its wait, if it waits.
    pub fn wait(&self) -> Option<&LongWait> {
        match &self.stage {
            Stage::Waits(wait) => Some(wait),
            _ => None,
        }
    }

    /// What it does, to follow its name in a sentence.
    pub fn doing(&self) -> String {
        match &self.stage {
            Stage::Absent => "has not called MPI_Init".into(),
            Stage::Starting => "is inside MPI_Init".into(),
            Stage::Guest => "belongs to another job, with which this one has met".into(),
            Stage::Finalized => "has finalized MPI and runs on".into(),
            Stage::Ended(how) => format!("has ended: {how}"),
            Stage::Finalizes => "is in MPI_Finalize".into(),
            Stage::Runs => format!("does not wait in MPI: it {}", self.process.doing()),
            Stage::Waits(wait) if self.process.is_stopped() => {
                format!("is stopped (a signal or a debugger), in {}", wait.text())
            }
            Stage::Waits(wait) => format!("waits in {}", wait.text()),
        }
    }
}

impl LongWait {
    /// The wait of another thread of the rank, of which less is known.
    fn of_another(&self, thread: WaitingThread) -> Self {
        let WaitingThread { number, wait, .. } = thread;
        let mut detail = WaitDetail::default();
        if self.wait.context & !1 == wait.context & !1 {
            detail.comm.name.clone_from(&self.detail.comm.name);
        }
        Self { number, wait, detail, seconds: seconds_of(&wait), finalizing: false }
    }

    /// The same wait with other ranks of the job; `None` if there is none for one that it waits for.
    fn translated(mut self: Box<Self>, rank: impl Fn(u32) -> Option<u32>) -> Option<Box<Self>> {
        if let Some(peer) = self.wait.peer {
            self.wait.peer = Some(rank(peer)?);
        }
        let LockAbout { target, holders, .. } = &mut self.detail.lock;
        *target = target.and_then(&rank);
        *holders = holders.iter().filter_map(|holder| rank(*holder)).collect();
        let members = &mut self.detail.comm.members;
        // Members are known all, or none.
        *members = members.iter().map(|member| rank(*member)).collect::<Option<_>>().unwrap_or_default();
        for messages in [&mut self.detail.unexpected, &mut self.detail.pending] {
            messages.retain_mut(|message| match message.peer {
                Some(peer) => {
                    message.peer = rank(peer);
                    message.peer.is_some()
                }
                None => true,
            });
        }
        Some(self)
    }

    /// The function that the program has called, or what stands for it.
    pub fn call(&self) -> &str {
        if !self.detail.call.is_empty() {
            return &self.detail.call;
        }
        match self.wait.kind {
            _ if self.finalizing => "MPI_Finalize",
            Waiting::Receive => "a receive",
            Waiting::Send => "a send",
            Waiting::Probe => "a probe",
            Waiting::Collective => "a collective operation",
            Waiting::Lock | Waiting::Epoch => "a synchronization of a window",
            Waiting::Finalize => "MPI_Finalize",
            Waiting::Agreement => "an agreement",
            _ => "a wait for requests",
        }
    }

    /// The communicator's name in quotation marks, or its context id; the window or file that it belongs to.
    pub fn comm(&self) -> String {
        let name = &self.detail.comm.name;
        match self.detail.comm.kind {
            AboutKind::Comm => comm_name(name, self.wait.context),
            AboutKind::Window if name.is_empty() => "a window without a name".into(),
            AboutKind::Window => format!("window '{name}'"),
            AboutKind::File => format!("file '{name}'"),
        }
    }

    /// The name of the window that it is on, to follow a call: " on window 'counters'"; empty if that has none.
    pub fn on_window(&self) -> String {
        let about = &self.detail.comm;
        let is_named = about.kind == AboutKind::Window && !about.name.is_empty();
        if is_named { format!(" on {}", self.comm()) } else { String::new() }
    }

    /// The lock that it is for, and who holds that.
    pub fn lock(&self) -> String {
        let LockAbout { target, holders, shared } = &self.detail.lock;
        let lock = target.map_or_else(
            || "the lock of a window".into(),
            |rank| format!("the lock of rank {rank}'s window"),
        );
        let how = if *shared { " in shared mode" } else { "" };
        let verb = match holders[..] {
            // It is being handed over.
            [] => return lock,
            [_] => "holds",
            _ => "hold",
        };
        format!("{lock}, which {} {verb}{how}", names(holders))
    }

    /// Whether it is for a message.
    pub fn is_for_message(&self) -> bool {
        !self.finalizing && matches!(self.wait.kind, Waiting::Receive | Waiting::Probe)
    }

    /// Whether it is for a partitioned receive.
    pub fn is_for_partitions(&self) -> bool {
        self.wait.kind == Waiting::Receive && self.detail.partitions.of > 0
    }

    /// The function that began the collective operation: for a wait for its request, not the one that waits.
    pub fn function(&self) -> &str {
        match self.detail.collective.function.as_str() {
            "" if self.wait.kind == Waiting::Operation => "a collective operation",
            "" => self.call(),
            function => function,
        }
    }

    /// The function, and which number the collective call has on its communicator.
    pub fn numbered_call(&self) -> String {
        match self.detail.collective.number {
            0 => self.function().to_owned(),
            // A call on a window or file is one of several that the library makes there.
            _ if self.detail.comm.kind != AboutKind::Comm => self.function().to_owned(),
            number => format!("{} no. {number}", self.function()),
        }
    }

    /// The arguments of a collective call in parentheses, as far as they are known.
    pub fn arguments(&self) -> String {
        let arguments = self.detail.collective.to_string();
        if arguments.is_empty() { arguments } else { format!("({arguments})") }
    }

    /// Whether it is for other members of a communicator in a collective operation, which all of them call.
    pub fn is_collective(&self) -> bool {
        let collective = matches!(self.wait.kind, Waiting::Collective | Waiting::Operation);
        !self.finalizing && collective && !self.is_among_some()
    }

    /// Whether it is for members of a group, which alone call this function.
    pub fn is_among_some(&self) -> bool {
        matches!(
            self.call(),
            "MPI_Comm_create_group" | "MPI_Comm_create_from_group" | "MPI_Intercomm_create_from_groups"
        )
    }

    /// Call and arguments, without the time.
    pub fn text(&self) -> String {
        let (call, comm) = (self.call(), self.comm());
        let peer = self.wait.peer.map_or_else(|| "any rank".to_owned(), |peer| format!("rank {peer}"));
        let tag = self.wait.tag.map_or_else(|| "any tag".to_owned(), |tag| format!("tag {tag}"));
        match self.wait.kind {
            _ if self.finalizing => "MPI_Finalize".into(),
            Waiting::Receive if self.is_for_partitions() => {
                format!("{call} for its partitioned receive from {peer}, {tag}, on {comm}")
            }
            Waiting::Receive | Waiting::Probe => format!("{call} for {peer}, {tag}, on {comm}"),
            Waiting::Send if self.wait.peer.is_none() => format!("{call} for its buffered sends"),
            Waiting::Send if call.starts_with("MPI_Wait") => {
                format!("{call} for its send to {peer}, {tag}, on {comm}")
            }
            Waiting::Send => format!("{call} to {peer}, {tag}, on {comm}"),
            Waiting::Collective => {
                let arguments = self.arguments();
                let space = if arguments.is_empty() { "" } else { " " };
                format!("{} on {comm}{space}{arguments}", self.numbered_call())
            }
            Waiting::Operation => {
                let arguments = self.arguments();
                let space = if arguments.is_empty() { "" } else { " " };
                format!("{call} for {} on {comm}{space}{arguments}", self.numbered_call())
            }
            Waiting::Agreement => format!("{call} on {comm}"),
            Waiting::Lock => format!("{call}{} for {}", self.on_window(), self.lock()),
            Waiting::Epoch if self.wait.peer.is_none() => {
                format!("{call}{} for the origins of its window", self.on_window())
            }
            Waiting::Epoch if call == "MPI_Win_wait" => {
                format!("{call}{} for MPI_Win_complete of {peer}", self.on_window())
            }
            Waiting::Epoch => format!("{call}{} for the window of {peer}", self.on_window()),
            Waiting::Partitions => format!("{call} for its partitioned send to {peer}, {tag}, on {comm}"),
            Waiting::Outside => format!("{call} for something outside of the job"),
            _ => call.to_owned(),
        }
    }
}

/// Seconds that a wait has lasted.
fn seconds_of(wait: &Wait) -> f64 {
    now().saturating_sub(wait.since) as f64 / 1e9
}

/// Seconds of a wait that is long: a user who interrupts such a job wants to know why.
const LONG: f64 = 1.0;

/// Whether some ranks have waited long, and none has run meanwhile.
pub fn have_waited_long(ranks: &[RankView]) -> bool {
    let over = |rank: &RankView| matches!(rank.stage, Stage::Ended(_) | Stage::Finalized);
    let long = |rank: &RankView| rank.wait().is_some_and(|wait| wait.seconds >= LONG);
    ranks.iter().all(|rank| over(rank) || long(rank)) && ranks.iter().any(long)
}

/// A communicator's name in quotation marks, or its context id.
pub fn comm_name(name: &str, context: u32) -> String {
    if !name.is_empty() {
        format!("'{name}'")
    } else if context & !1 == 2 * contexts::WORLD {
        // A rank that has not waited long has not said its name.
        "'MPI_COMM_WORLD'".into()
    } else {
        format!("a communicator without name (context {})", context & !1)
    }
}

/// A collective operation as the report names it.
pub fn operation_text(operation: &OperationAbout) -> String {
    let comm = comm_name(&operation.comm, operation.context);
    match operation.number {
        0 => format!("{} on {comm}", operation.function),
        number => format!("{} no. {number} on {comm}", operation.function),
    }
}

/// A message as a line of the report names it.
pub fn message_text(message: &MessageAbout, received: bool) -> String {
    let word = if received || !message.sends { "from" } else { "to" };
    let peer = message.peer.map_or_else(|| "any rank".to_owned(), |peer| format!("rank {peer}"));
    let tag = message.tag.map_or_else(|| "any tag".to_owned(), |tag| format!("tag {tag}"));
    let bytes = if message.bytes == 1 { "1 byte".to_owned() } else { format!("{} bytes", message.bytes) };
    if message.context == UNKNOWN_CONTEXT {
        return format!("{word} {peer}, {tag}");
    }
    format!("{word} {peer}, {tag}, on {}, {bytes}", comm_name(&message.comm, message.context))
}
