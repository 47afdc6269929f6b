//! Supervises a running job: passes on output, input and signals, and reaps ranks that end.
//!
//! One thread waits in one place, `epoll`. It never blocks on a rank or on the reader of its output.
//!
//! | file | what it has |
//! |---|---|
//! | `mod` | [`Supervisor`]: the event loop |
//! | `worlds` | ranks that were started together, and how they end |
//! | `universe` | answers to requests of ranks: processes to spawn, ports to meet at |
//! | `meetings` | ports and published names |
//! | `guests` | jobs of other launchers, whose processes have places here |
//! | `failure` | which rank failed, and why |
//! | `interrupts` | which signal asks for the second time that the job ends |
//! | `killed` | ranks that SIGKILL has not ended yet |
//! | `reaper` | the process that kills what a killed launcher leaves |

pub mod failure;
mod guests;
mod interrupts;
mod killed;
mod meetings;
pub mod reaper;
pub mod universe;
mod worlds;

use std::io::{self, IsTerminal};
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use perusal::internals::placement::BindingClaim;
use perusal::internals::shm::{Exit, Memory};
use rustix::event::epoll::EventFlags;

use crate::args::{OnDeadlock, Plan};
use crate::hang;
use crate::run::streams_of;
use crate::start::starter::{NewProcess, ProcessStarter, StartError, Started};
use crate::streams::input::Relay;
use crate::streams::output::{Outlet, RankStream};
use crate::streams::sinks::{Sinks, Targets};
use crate::sys::{self, ChildStatus, Epoll, Signals};
use failure::Failure;
use guests::Guests;
use interrupts::{Interrupt, Interrupts};
use meetings::Meetings;
use reaper::Reaper;
use universe::Universe;
use worlds::{Ending, RankProcess};

/// Signals that are passed on to the ranks.
pub const FORWARDED: [i32; 9] = [
    libc::SIGINT,
    libc::SIGTERM,
    libc::SIGHUP,
    libc::SIGQUIT,
    libc::SIGUSR1,
    libc::SIGUSR2,
    libc::SIGALRM,
    libc::SIGTSTP,
    libc::SIGCONT,
];

/// From SIGTERM to SIGKILL for the ranks of a job that has failed.
pub const GRACE: Duration = Duration::from_millis(400);
/// From SIGKILL, or the last sign that a killed rank is ending, to giving it up:
/// another user's, or kept by a sandbox or the kernel.
const KILL_LIMIT: Duration = Duration::from_secs(3);
/// For what ranks have left running when the last of them has ended: time to finish writing.
const STRAY_GRACE: Duration = Duration::from_millis(200);
/// For processes that do not even die of SIGKILL at once.
const STRAY_LIMIT: Duration = Duration::from_secs(1);
/// A line that has not ended after so long is taken for a prompt, at a terminal.
const PROMPT: Duration = Duration::from_millis(150);
/// Between attempts to write where the system cannot say when it is possible.
const RETRY: Duration = Duration::from_millis(10);

const SIGNALS: u64 = 0;
const STDIN: u64 = 1;
const RELAY: u64 = 2;
const DOOR: u64 = 3;
/// The program that was there before the launcher.
pub const LIFELINE: u64 = 4;
/// Where processes of other jobs ask.
pub const LISTENER: u64 = 5;
const SINKS: u64 = 8;
const STREAMS: u64 = 16;
/// Processes that wait at a port, by number; far beyond all streams.
pub const WAITING: u64 = 1 << 40;
/// Connections of processes of other jobs, by number.
pub const CALLERS: u64 = 1 << 41;
/// Sockets of other jobs' launchers, by number.
pub const WATCHED: u64 = 1 << 42;

/// The parts that a supervisor is made of.
pub struct SupervisorParts<'a> {
    /// What the launcher was called.
    pub name: &'a str,
    /// The job as asked for.
    pub plan: &'a Plan,
    /// The job's memory.
    pub memory: Memory,
    /// The launcher's signals.
    pub signals: Signals,
    /// The reaper, already running.
    pub reaper: Reaper,
    /// The terminal, if one rank gets it.
    pub relay: Option<Relay>,
    /// Signals that were ignored when the launcher was started, and so stay.
    pub ignored: Vec<i32>,
    /// That this job has bound its ranks.
    pub claim: Option<BindingClaim>,
    /// Starts processes.
    pub starter: ProcessStarter,
    /// The launcher's side of the socket for requests.
    pub door: OwnedFd,
}

/// The launcher of a job while the job runs.
pub struct Supervisor<'a> {
    name: &'a str,
    pub(crate) plan: &'a Plan,
    pub(crate) memory: Memory,
    pub(crate) universe: Universe,
    signals: Signals,
    pub(crate) reaper: Option<Reaper>,
    relay: Option<Relay>,
    ignored: Vec<i32>,
    _claim: Option<BindingClaim>,
    pub(crate) epoll: Epoll,
    sinks: Sinks,
    pub(crate) streams: Vec<RankStream>,
    pub(crate) ranks: Vec<RankProcess>,
    pub(crate) forwarded: Vec<i32>,
    interrupts: Interrupts,
    failure: Option<Failure>,
    /// The first failure that has ended a part of the job.
    pub(crate) first_failure: Option<Failure>,
    /// The first death that the job has outlived.
    pub(crate) first_death: Option<Failure>,
    pub(crate) ending: Vec<Ending>,
    pub(crate) lifeline: Option<OwnedFd>,
    kill_at: Option<Instant>,
    leave_at: Option<Instant>,
    timeout_at: Option<Instant>,
    check_at: Option<Instant>,
    pub(crate) watch: hang::Watch,
    pub(crate) proved: Option<hang::Proved>,
    interactive: bool,
}

impl<'a> Supervisor<'a> {
    /// A supervisor of ranks that are yet to be started.
    pub fn new(parts: SupervisorParts<'a>) -> io::Result<Self> {
        let SupervisorParts { name, plan, memory, signals, reaper, relay, ignored, claim, starter, door } =
            parts;
        let epoll = Epoll::new()?;
        epoll.add(signals.fd(), EventFlags::IN, SIGNALS)?;
        epoll.add(&door, EventFlags::IN, DOOR)?;
        let job_id = memory.header().job_id();
        let (meetings, guests) = (Meetings::new(job_id), Guests::default());
        let universe = Universe { door, starter, meetings, guests, worlds: vec![], spawns: vec![], job_id };
        Ok(Self {
            name,
            plan,
            memory,
            universe,
            signals,
            reaper: Some(reaper),
            relay,
            ignored,
            _claim: claim,
            epoll,
            sinks: Sinks::new(),
            streams: vec![],
            ranks: vec![],
            forwarded: vec![],
            interrupts: Interrupts::default(),
            failure: None,
            first_failure: None,
            first_death: None,
            ending: vec![],
            lifeline: None,
            kill_at: None,
            leave_at: None,
            timeout_at: plan.timeout.map(|timeout| Instant::now() + timeout),
            check_at: Some(Instant::now() + hang::CHECK),
            watch: hang::Watch::new(plan.on_deadlock != OnDeadlock::Ignore),
            proved: None,
            interactive: io::stdin().is_terminal() && io::stdout().is_terminal(),
        })
    }

    /// The job's memory.
    pub fn memory(&self) -> &Memory {
        &self.memory
    }

    /// Starts a process of the job.
    pub fn start(&self, new: &NewProcess<'_>) -> Result<Started, StartError> {
        self.universe.starter.start(new, self.reaper.as_ref())
    }

    /// Whether the job is ending because of a failure.
    pub fn is_failing(&self) -> bool {
        self.failure.is_some()
    }

    /// Where both streams of `rank` go. Its files are opened, unless they are open.
    pub fn targets_of(&mut self, rank: u32) -> io::Result<[Targets; 2]> {
        self.sinks.targets(&self.plan.files, rank, self.memory.size())
    }

    /// Adds a rank that has just been started: the next, or one at a place that is free again.
    pub fn add_rank(&mut self, rank: u32, started: Started) -> io::Result<()> {
        let Started { pid, output: [out, err] } = started;
        put(&mut self.ranks, rank as usize, RankProcess::new(pid));
        for pipe in [&out, &err] {
            sys::set_nonblocking(pipe)?;
        }
        let streams = streams_of(rank, self.plan, [out, err], self.targets_of(rank)?);
        for (index, mut stream) in (rank as usize * 2..).zip(streams) {
            let watched = watch(&self.epoll, &mut stream, index);
            put(&mut self.streams, index, stream);
            watched?;
        }
        Ok(())
    }

    /// Ends what has been started, because the rest cannot be.
    pub fn give_up(mut self, cause: &Failure) {
        // With a cause, the end of the ranks is not reported as a failure of its own.
        self.failure = Some(cause.clone());
        self.signal_running(libc::SIGKILL);
        let limit = Instant::now() + STRAY_LIMIT;
        while self.is_running() && Instant::now() < limit {
            self.pass(Some(limit));
        }
        self.clear_up();
    }

    /// Runs until the last rank has ended. Returns the launcher's exit status.
    pub fn run(mut self) -> u8 {
        while self.is_running() {
            let deadline = self.next_deadline();
            self.pass(deadline);
            self.check_deadlines();
        }
        self.clear_up();
        let death = self.first_death.as_ref().filter(|_| !self.has_succeeded());
        self.failure.as_ref().or(self.first_failure.as_ref()).or(death).map_or(0, |failure| failure.status)
    }

    /// Whether any rank runs.
    pub(crate) fn is_running(&self) -> bool {
        self.ranks.iter().any(|rank| rank.running)
    }

    /// One wait, at most until `deadline`, and all that it brings.
    fn pass(&mut self, deadline: Option<Instant>) {
        self.watch_terminal();
        let timeout = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
        // An error here is a descriptor table in ruins; the next round meets the same, so slow down and go on reaping.
        let ready = self.epoll.wait(timeout).unwrap_or_else(|_| {
            std::thread::sleep(RETRY);
            vec![SIGNALS]
        });
        for token in ready {
            match token {
                SIGNALS => self.take_signals(),
                STDIN => self.relay_input(Relay::read),
                RELAY => self.relay_input(Relay::write),
                DOOR => self.take_requests(),
                LIFELINE => self.end_adopted(),
                SINKS => {}
                LISTENER => self.take_callers(),
                WATCHED.. => self.hear_watched(token - WATCHED),
                CALLERS.. => self.hear_caller(token - CALLERS),
                WAITING.. => self.universe.meetings.stir(token - WAITING),
                _ => self.take_output((token - STREAMS) as usize),
            }
        }
        self.retry_spawns();
        self.flush_prompts();
        self.flush();
    }

    fn relay_input(&mut self, act: impl FnOnce(&mut Relay)) {
        if let Some(relay) = &mut self.relay {
            act(relay);
        }
    }

    /// Watches the terminal while its lines are wanted, and the rank's pipe while it is full.
    fn watch_terminal(&mut self) {
        let Some(relay) = &self.relay else { return };
        let terminal = rustix::stdio::stdin();
        self.epoll.remove(terminal);
        if relay.wants_more() {
            // A terminal and a pipe can always be watched.
            let _ = self.epoll.add(terminal, EventFlags::IN, STDIN);
        }
        for fd in relay.blocked_on() {
            self.epoll.remove(fd);
            let _ = self.epoll.add(fd, EventFlags::OUT, RELAY);
        }
    }

    fn take_output(&mut self, index: usize) {
        let stream = &mut self.streams[index];
        let mut sinks = self.sinks.of(stream.targets);
        stream.read(&mut sinks);
        if sinks.is_full() {
            self.set_resting();
        }
    }

    /// Lets the streams of full sinks rest, and wakes those of sinks that have room again.
    fn set_resting(&mut self) {
        if !self.sinks.take_turned() {
            return;
        }
        for (index, stream) in self.streams.iter_mut().enumerate() {
            if self.sinks.of(stream.targets).is_full() {
                unwatch(&self.epoll, stream);
            } else {
                // It was watched before, so it can be again.
                let _ = watch(&self.epoll, stream, index);
            }
        }
    }

    fn flush_prompts(&mut self) {
        if !self.interactive {
            return;
        }
        for stream in &mut self.streams {
            if stream.idle_since.is_some_and(|since| since.elapsed() >= PROMPT) {
                stream.emit_partial(&mut self.sinks.of(stream.targets));
            }
        }
    }

    /// Writes what can be written, and has the loop come back for the rest.
    fn flush(&mut self) {
        self.sinks.flush(&self.epoll, SINKS);
        self.set_resting();
        self.check_output();
    }

    /// Output that cannot be written ends the job, as it ends any program.
    fn check_output(&mut self) {
        let Some((error, file)) = self.sinks.broken().filter(|_| self.failure.is_none()) else { return };
        if error.kind() == io::ErrorKind::BrokenPipe && file.is_none() {
            // Nobody reads the output any more: no message, and the status of SIGPIPE.
            self.failure = Some(Failure { status: 128 + libc::SIGPIPE as u8, text: String::new() });
            self.terminate();
        } else {
            let name = file.map_or_else(|| "standard output".into(), |file| file.display().to_string());
            self.fail(Failure { status: 1, text: format!("{name}: {error}") });
        }
    }

    fn take_signals(&mut self) {
        while let Some(signal) = self.signals.next() {
            match signal {
                libc::SIGCHLD => {}
                // Also where it was ignored, as shells do for what runs in the background.
                libc::SIGQUIT => self.say_what_ranks_do(),
                signal if self.ignored.contains(&signal) => {}
                libc::SIGTSTP => {
                    self.signal_running(libc::SIGTSTP);
                    sys::stop_self();
                }
                signal => self.forward(signal),
            }
        }
        self.reap();
    }

    /// Passes a signal on. A second request to end is obeyed at once, whatever the ranks make of it.
    fn forward(&mut self, signal: i32) {
        let interrupt = self.interrupts.note(signal, Instant::now());
        if interrupt == Interrupt::Copy {
            return;
        }
        let is_request = interrupt != Interrupt::None;
        if interrupt == Interrupt::Again || is_request && self.failure.is_some() {
            let text = format!("{} again", perusal::internals::shm::exit::signal_name(signal));
            self.fail(Failure { status: 128 + signal as u8, text });
            self.signal_running(libc::SIGKILL);
            return;
        }
        if signal == libc::SIGINT && hang::have_waited_long(&self.views()) {
            self.say_what_ranks_do();
        }
        self.forwarded.push(signal);
        self.signal_running(signal);
    }

    fn signal_running(&self, signal: i32) {
        self.ranks.iter().for_each(|rank| rank.signal(signal));
    }

    /// Reaps every rank that has ended, notes the ends in the roster, and fails the job if one of them is a failure.
    fn reap(&mut self) {
        let mut ended = vec![];
        while let ChildStatus::Ended(pid, status) = sys::next_child() {
            if let Some(rank) = self.ranks.iter().position(|rank| rank.pid == pid && rank.running) {
                self.ranks[rank].running = false;
                let entry = self.memory.roster().entry(rank as u32);
                entry.set_exit(Exit(status));
                self.universe.meetings.ended(rank as u32);
                self.universe.guests.tell(rank as u32, Exit(status));
                if rank as u32 >= self.memory.size() {
                    self.memory.header().count_threads(-1);
                }
                ended.push((rank as u32, Exit(status)));
            }
        }
        for (rank, _) in &ended {
            self.memory.roster().declare_dead(*rank);
        }
        ended.retain(|(rank, _)| !self.ranks[*rank as usize].given_up);
        self.judge(&ended);
    }

    /// Ends the job because of `failure`, unless it is ending already.
    pub(crate) fn fail(&mut self, failure: Failure) {
        if self.failure.is_some() {
            return;
        }
        // What ranks have written before comes first: it may be the reason.
        for index in 0..self.streams.len() {
            if self.streams[index].watched {
                self.take_output(index);
            }
        }
        // A report of several lines has its own last word.
        let alone = !self.is_running() || failure.text.contains('\n');
        let others = if alone { "" } else { "; the other ranks are ended" };
        self.say(&format!("{}{others}", failure.text));
        self.failure = Some(failure);
        self.terminate();
    }

    fn terminate(&mut self) {
        self.signal_running(libc::SIGTERM);
        // A stopped process gets SIGTERM only when it continues.
        self.signal_running(libc::SIGCONT);
        self.kill_at = Some(Instant::now() + GRACE);
    }

    /// A line of the launcher's own, in order with what ranks have written.
    pub(crate) fn say(&mut self, text: &str) {
        self.sinks.say(&format!("{}: {text}\n", self.name));
    }

    fn next_deadline(&self) -> Option<Instant> {
        let prompt =
            self.streams.iter().filter(|_| self.interactive).filter_map(|stream| stream.idle_since).min();
        [
            self.kill_at,
            self.leave_at,
            self.ending.iter().map(|ending| ending.kill_at).min(),
            self.next_spawn_fails(),
            self.timeout_at,
            self.check_at,
            prompt.map(|since| since + PROMPT),
            self.sinks.want_retry().then(|| Instant::now() + RETRY),
        ]
        .into_iter()
        .flatten()
        .min()
    }

    fn check_deadlines(&mut self) {
        let now = Instant::now();
        if self.kill_at.is_some_and(|at| now >= at) {
            self.kill_at = None;
            self.signal_running(libc::SIGKILL);
            self.note_progress();
            self.leave_at = Some(now + KILL_LIMIT);
        }
        if self.leave_at.is_some_and(|at| now >= at) {
            self.leave_behind();
            self.leave_at = Some(now + KILL_LIMIT);
        }
        self.kill_ending(now);
        if self.check_at.is_some_and(|at| now >= at) {
            self.check_for_died();
            self.check_for_deadlock();
            self.check_at = self.failure.is_none().then(|| Instant::now() + self.watch.pause());
        }
        if self.timeout_at.is_some_and(|at| now >= at) {
            self.timeout_at = None;
            let seconds = self.plan.timeout.unwrap_or_default().as_secs_f64();
            let ranks = self.views();
            self.write_report(&ranks);
            let text = format!("the job did not end within {seconds} s\n{}", hang::report(&ranks).trim_end());
            self.fail(Failure { status: 124, text });
        }
    }

    /// When the last rank has ended: ends what ranks have left running, and writes what is left to be written.
    fn clear_up(&mut self) {
        if let Some(reaper) = self.reaper.take() {
            reaper.stop();
        }
        (self.kill_at, self.leave_at) = (None, None);
        (self.timeout_at, self.check_at) = (None, None);
        self.end_strays();
        while self.streams.iter().any(|stream| stream.fd().is_some()) || !self.sinks.are_empty() {
            for stream in &mut self.streams {
                stream.drain(&mut self.sinks.of(stream.targets));
            }
            self.flush();
            if self.sinks.are_empty() {
                continue;
            }
            let deadline = self.next_deadline();
            let _ = self.epoll.wait(deadline.map(|at| at.saturating_duration_since(Instant::now())));
            // A signal to end the launcher now means that nobody wants the rest.
            if std::iter::from_fn(|| self.signals.next()).any(|s| matches!(s, libc::SIGINT | libc::SIGTERM)) {
                break;
            }
        }
    }

    /// Waits a little for orphans of the job, which have become the launcher's children, then kills them.
    fn end_strays(&mut self) {
        let start = Instant::now();
        loop {
            match sys::next_child() {
                ChildStatus::NoChildren => return,
                ChildStatus::Ended(..) => {}
                ChildStatus::Running if start.elapsed() > STRAY_GRACE + STRAY_LIMIT => return,
                ChildStatus::Running => {
                    let patient = start.elapsed() < STRAY_GRACE && self.failure.is_none();
                    if !patient {
                        own_children().for_each(|pid| sys::signal_process(pid, libc::SIGKILL));
                    }
                    self.pass(Some(Instant::now() + RETRY));
                }
            }
        }
    }
}

/// Puts `new` at the end, or in the place of what is at `index`.
fn put<T>(list: &mut Vec<T>, index: usize, new: T) {
    match list.get_mut(index) {
        Some(old) => *old = new,
        None => list.push(new),
    }
}

fn watch(epoll: &Epoll, stream: &mut RankStream, index: usize) -> io::Result<()> {
    if let Some(fd) = stream.fd().filter(|_| !stream.watched) {
        epoll.add(fd, EventFlags::IN, STREAMS + index as u64)?;
        stream.watched = true;
    }
    Ok(())
}

fn unwatch(epoll: &Epoll, stream: &mut RankStream) {
    if let Some(fd) = stream.fd() {
        epoll.remove(fd);
        stream.watched = false;
    }
}

/// The launcher's children, orphans that it has adopted included.
fn own_children() -> impl Iterator<Item = i32> {
    let own = std::process::id();
    reaper::processes().filter(move |pid| parent_of(*pid) == Some(own)).map(u32::cast_signed)
}

fn parent_of(pid: u32) -> Option<u32> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name, in parentheses, may contain anything; the state and the parent follow it.
    stat.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse().ok()
}
