//! Answers the requests of ranks: processes to spawn, ports to meet at.

use std::ffi::CString;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use perusal::internals::abi::{MPI_ERR_OTHER, MPI_ERR_SPAWN};
use perusal::internals::dynamic::launcher::{IncomingRequest, has_given_up, next_request, reply};
use perusal::internals::dynamic::{Answer, Program, Request, Scope, SpawnRequest};
use perusal::internals::shm::{JobWorld, machine};
use rustix::event::epoll::EventFlags;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

use super::guests::Guests;
use super::meetings::{Meetings, Outcome};
use super::{Supervisor, WAITING};
use crate::start::environment::{self, RankIdentity, Spawned};
use crate::start::spawn::SpawnStep;
use crate::start::starter::{NewProcess, ProcessStarter, StartError, Started};

/// Most requests that are answered before output and signals have their turn.
const TURN: usize = 64;

/// What a launcher has for processes that come later.
#[derive(Debug)]
pub struct Universe {
    /// The launcher's side of the door.
    pub door: OwnedFd,
    /// Starts processes.
    pub starter: ProcessStarter,
    /// Ports and names.
    pub meetings: Meetings,
    /// Jobs of other launchers.
    pub guests: Guests,
    /// Worlds that have been spawned and may still run.
    pub worlds: Vec<JobWorld>,
    /// Spawns that wait until processes that end have left their places.
    pub spawns: Vec<WaitingSpawn>,
    /// The job's number.
    pub job_id: u64,
}

/// A spawn that waits for places.
#[derive(Debug)]
pub struct WaitingSpawn {
    /// The place of who asks.
    place: u32,
    spawn: SpawnRequest,
    answer: OwnedFd,
    since: Instant,
}

/// Why a world is not started.
enum Refusal {
    /// Too few places in a row are free now.
    Full(String),
    Other(String),
}

/// How long a spawn waits for the places of processes that have no connection to others left, and so are about to end.
const LEAVING: Duration = Duration::from_secs(10);
/// How long it waits for those of processes that are connected: what one side of MPI_Comm_disconnect has left the other
/// may just be leaving.
const CONNECTED: Duration = Duration::from_secs(1);

/// A program of a request, as it is started.
struct Chosen<'a> {
    program: &'a Program,
    /// How many processes.
    count: u32,
    argv: Vec<CString>,
    env: Vec<CString>,
    wdir: CString,
}

impl Supervisor<'_> {
    /// Answers what has come through the door.
    pub fn take_requests(&mut self) {
        for _ in 0..TURN {
            let Some(incoming) = next_request(self.universe.door.as_fd()) else { return };
            let Some(IncomingRequest { answer, request, along }) = incoming else { continue };
            match request {
                Err(error) => reply(answer.as_fd(), &Answer::error(MPI_ERR_OTHER, &error.to_string())),
                Ok((place, _)) if !self.is_running_at(place) => {
                    reply(answer.as_fd(), &Answer::error(MPI_ERR_OTHER, "the process is none of this job's"));
                }
                Ok((place, Request::Spawn(spawn))) => {
                    self.take_spawn(WaitingSpawn { place, spawn, answer, since: Instant::now() });
                }
                Ok((_, request @ (Request::Host | Request::OtherJob(_)))) => {
                    self.serve_own(&request, along, &answer);
                }
                Ok((place, request)) => {
                    if matches!(request, Request::OpenPort | Request::Publish(.., Scope::User)) {
                        // Without a socket the job's own processes meet all the same.
                        let _ = self.listen();
                    }
                    self.take_meeting(place, request, answer);
                }
            }
        }
    }

    fn take_meeting(&mut self, place: u32, request: Request, answer: OwnedFd) {
        let universe = &mut self.universe;
        if let Outcome::Waits(number) = universe.meetings.take(&self.memory, place, request, answer)
            && let Some(socket) = universe.meetings.socket(number)
            && self.epoll.add(socket, EventFlags::IN, WAITING + number).is_err()
        {
            universe.meetings.stir(number);
        }
    }

    /// Starts what a spawn asks for, or has it wait for places.
    fn take_spawn(&mut self, waiting: WaitingSpawn) {
        let given = match self.spawn_world(waiting.place, &waiting.spawn) {
            Ok(answer) => answer,
            Err(Refusal::Full(_))
                if self.waits_until(&waiting).is_some_and(|until| Instant::now() < until) =>
            {
                return self.universe.spawns.push(waiting);
            }
            Err(Refusal::Full(what) | Refusal::Other(what)) => Answer::error(MPI_ERR_SPAWN, &what),
        };
        reply(waiting.answer.as_fd(), &given);
    }

    /// Tries the spawns again that wait for places.
    pub fn retry_spawns(&mut self) {
        for waiting in std::mem::take(&mut self.universe.spawns) {
            if self.is_running_at(waiting.place) && !has_given_up(waiting.answer.as_fd()) {
                self.take_spawn(waiting);
            }
        }
    }

    /// Until when the first of the spawns waits that wait for places.
    pub fn next_spawn_fails(&self) -> Option<Instant> {
        self.universe.spawns.iter().filter_map(|waiting| self.waits_until(waiting)).min()
    }

    /// Until when a spawn waits that found too few places; `None` if there can never be enough.
    fn waits_until(&self, waiting: &WaitingSpawn) -> Option<Instant> {
        let least =
            waiting.spawn.programs.iter().map(|program| program.counts.iter().min().copied().unwrap_or(0));
        let least = least.fold(0, u32::saturating_add);
        if least > self.memory.places() - self.memory.size() {
            return None;
        }
        let limit =
            if least <= self.longest_row(|place| self.is_leaving(place)) { LEAVING } else { CONNECTED };
        Some(waiting.since + limit)
    }

    /// Starts a world for the process at `place`. Returns the answer to that process.
    fn spawn_world(&mut self, place: u32, spawn: &SpawnRequest) -> Result<Answer, Refusal> {
        let other = |error: perusal::Error| Refusal::Other(error.to_string());
        if self.is_failing() {
            return Err(Refusal::Other("the job is ending".into()));
        }
        self.forget_worlds();
        let room = self.longest_row(|place| self.is_free(place));
        let chosen = choose(spawn, room).map_err(|what| match what {
            Some(what) => Refusal::Other(what),
            None => Refusal::Full(format!(
                "{} processes are too many: of the {} that this job has room for at once {room} more can be started; mpiexec --universe N makes more room",
                most_wished(spawn),
                self.memory.places()
            )),
        })?;
        let count = chosen.iter().map(|chosen| chosen.count).sum();
        let first =
            self.find_places(count).ok_or_else(|| Refusal::Full("no places in a row are left".into()))?;
        self.memory.renew_places(first, count).map_err(other)?;
        let contexts = self.memory.contexts();
        let world = contexts.allocate(count).map_err(other)?;
        let bridge = contexts.allocate(2).map_err(|error| {
            contexts.give_up(world);
            other(error)
        })?;
        // A world that ended here may have been longer; the deaths of its processes are none of the new one's.
        for old in self.world_of(first).into_iter().filter(|old| *old >= first + count) {
            self.memory.roster().entry(old).leave_world(old);
        }
        for new in first..first + count {
            self.memory.roster().entry(new).prepare(first, place);
            self.memory.roster().entry(new).hold().set();
        }
        let spawned = Spawned { world: (first, world), parent: (place, bridge) };
        if let Err(what) = self.start_world(&chosen, count, spawned) {
            self.abandon(first);
            (first..first + count).for_each(|new| self.memory.roster().entry(new).end_meeting());
            // Nobody has got them.
            for (id, refs) in [(world, count), (bridge, 2)] {
                (0..refs).for_each(|_| drop(self.memory.contexts().release(id)));
            }
            return Err(Refusal::Other(what));
        }
        (first..first + count).for_each(|new| self.memory.roster().entry(new).hold().release());
        self.universe.worlds.push(JobWorld { first, size: count, context: world });
        let counts = chosen.iter().map(|chosen| chosen.count);
        Ok(Answer::good(b"", &[first, bridge].into_iter().chain(counts).collect::<Vec<u32>>()))
    }

    fn start_world(&mut self, chosen: &[Chosen<'_>], count: u32, spawned: Spawned) -> Result<(), String> {
        let mut rank = 0;
        for (app, Chosen { program, count: of_program, argv, env, wdir }) in chosen.iter().enumerate() {
            for _ in 0..*of_program {
                let identity = RankIdentity {
                    job_id: self.universe.job_id,
                    launcher: std::process::id(),
                    fd: -1,
                    door: -1,
                    rank,
                    size: count,
                    spawned: Some(spawned),
                    app,
                    processes: program.most,
                    trace: None,
                };
                let wdir = (!wdir.is_empty()).then_some(wdir);
                let new = NewProcess { argv, env, identity, wdir, cpus: &[], stdin: None };
                let started: Started = self.start(&new).map_err(|error| why(&error, argv, wdir))?;
                self.memory.header().count_threads(1);
                self.add_rank(spawned.world.0 + rank, started).map_err(|error| error.to_string())?;
                rank += 1;
            }
        }
        Ok(())
    }
}

/// How many processes a spawn starts at most.
fn most_wished(spawn: &SpawnRequest) -> usize {
    spawn.programs.iter().map(|program| program.counts[0] as usize).sum()
}

/// How many processes each program gets of `free` places, and what it is started with.
/// No text where places are too few.
fn choose(spawn: &SpawnRequest, free: u32) -> Result<Vec<Chosen<'_>>, Option<String>> {
    let mut chosen = vec![];
    for (program, count) in spawn.programs.iter().zip(shares(&spawn.programs, free).ok_or(None)?) {
        let wdir = joined(&spawn.wdir, &program.wdir);
        let mut command = program.command.clone();
        if let Some(found) = find(program, &wdir, spawn) {
            command[0] = found;
        }
        let nul = |_| Some("an argument contains a NUL byte".to_owned());
        chosen.push(Chosen {
            program,
            count,
            argv: command.into_iter().map(CString::new).collect::<Result<_, _>>().map_err(nul)?,
            env: environment::of_spawned(&spawn.env, &program.env),
            wdir: CString::new(wdir).map_err(nul)?,
        });
    }
    if chosen.iter().all(|chosen| chosen.count == 0) {
        return Err(Some("not one process is to be spawned".into()));
    }
    debug_assert!(chosen.iter().all(|chosen| chosen.program.counts.contains(&chosen.count)));
    Ok(chosen)
}

/// How many processes each program gets of `free` places: one of the numbers that it allows, and as many as can be in
/// all. Where there is a choice, the earlier programs get more. `None` if places are too few.
fn shares(programs: &[Program], free: u32) -> Option<Vec<u32>> {
    let free = free as usize;
    // Mostly each gets what it wishes for.
    let wished: usize = programs.iter().map(|program| program.counts[0] as usize).sum();
    if wished <= free {
        return Some(programs.iter().map(|program| program.counts[0]).collect());
    }
    // Too few for the least numbers. What is left has no more programs than places, but for those that may have none.
    let least = |program: &Program| program.counts.iter().copied().min().map_or(0, |count| count as usize);
    if programs.iter().map(least).sum::<usize>() > free {
        return None;
    }
    // `reachable[at][total]`: the programs from `at` on can have `total` processes together.
    let mut reachable = vec![vec![false; free + 1]; programs.len() + 1];
    reachable[programs.len()][0] = true;
    for (at, program) in programs.iter().enumerate().rev() {
        let (before, after) = reachable.split_at_mut(at + 1);
        let counts = || program.counts.iter().map(|count| *count as usize);
        for total in (0..=free).filter(|total| after[0][*total]) {
            for count in counts().filter(|count| total + count <= free) {
                before[at][total + count] = true;
            }
        }
    }
    let mut left = (0..=free).rev().find(|total| reachable[0][*total])?;
    let share = |(program, after): (&Program, &Vec<bool>)| {
        let does = |count: &u32| left.checked_sub(*count as usize).is_some_and(|rest| after[rest]);
        let count = program.counts.iter().copied().find(does)?;
        left -= count as usize;
        Some(count)
    };
    programs.iter().zip(&reachable[1..]).map(share).collect()
}

/// `path`, seen from the directory `from`.
fn joined(from: &[u8], path: &[u8]) -> Vec<u8> {
    let path = Path::new(OsStr::from_bytes(from)).join(OsStr::from_bytes(path));
    let bytes = path.as_os_str().as_bytes();
    // Joining nothing leaves a slash behind.
    bytes.strip_suffix(b"/").filter(|bytes| !bytes.is_empty()).unwrap_or(bytes).to_vec()
}

/// The program of that name in the directories of the request, or of the PATH of who asks.
fn find(program: &Program, wdir: &[u8], spawn: &SpawnRequest) -> Option<Vec<u8>> {
    let path = spawn.env.iter().rev().find_map(|entry| entry.strip_prefix(b"PATH="));
    find_program(&program.command[0], &[&program.path[..], path.unwrap_or(b"")], wdir)
}

/// The program of that name in directories that are separated by colons and seen from `wdir`;
/// `None` for a name with a slash.
pub fn find_program(name: &[u8], dirs: &[&[u8]], wdir: &[u8]) -> Option<Vec<u8>> {
    if name.contains(&b'/') {
        return None;
    }
    dirs.iter().filter(|dirs| !dirs.is_empty()).flat_map(|dirs| dirs.split(|byte| *byte == b':')).find_map(
        |dir| {
            let full: PathBuf = Path::new(OsStr::from_bytes(wdir)).join(OsStr::from_bytes(dir));
            let full = full.join(OsStr::from_bytes(name));
            let about = full.metadata().ok()?;
            (about.is_file() && about.permissions().mode() & 0o111 != 0)
                .then(|| full.into_os_string().as_encoded_bytes().to_vec())
        },
    )
}

/// Why a process was not started, for the program that asked.
fn why(error: &StartError, argv: &[CString], wdir: Option<&CString>) -> String {
    let program = argv[0].to_string_lossy();
    match error {
        StartError::Pipe(error) => format!("a pipe for the output of {program}: {}", machine::why(error)),
        StartError::Spawn(failed) => match failed.step {
            SpawnStep::Clone => {
                format!("no process can be started for {program}: {}", machine::why(&failed.error))
            }
            SpawnStep::Directory => {
                let dir = wdir.map(|dir| dir.to_string_lossy()).unwrap_or_default();
                format!("{dir}, the directory for {program}: {}", failed.error)
            }
            SpawnStep::Exec => format!("{program} cannot be run: {}", machine::why(&failed.error)),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn program(name: &str, counts: &[u32]) -> Program {
        Program {
            command: vec![name.as_bytes().to_vec()],
            most: counts[0],
            counts: counts.to_vec(),
            ..Program::default()
        }
    }

    fn counts(programs: Vec<Program>, free: u32) -> Option<Vec<u32>> {
        let spawn = SpawnRequest { programs, ..SpawnRequest::default() };
        Some(choose(&spawn, free).ok()?.iter().map(|chosen| chosen.count).collect())
    }

    #[test]
    fn as_many_processes_are_chosen_as_there_are_places_for() {
        assert_eq!(counts(vec![program("a", &[4])], 4), Some(vec![4]));
        assert_eq!(counts(vec![program("a", &[4])], 3), None);
        assert_eq!(counts(vec![program("a", &[8, 4, 2]), program("b", &[2, 0])], 5), Some(vec![4, 0]));
        assert_eq!(counts(vec![program("a", &[0])], 5), None);
        // The first program makes room for the second one, and the most in all are started.
        assert_eq!(counts(vec![program("a", &[62, 1]), program("b", &[60])], 62), Some(vec![1, 60]));
        assert_eq!(counts(vec![program("a", &[4, 3]), program("b", &[4, 0])], 7), Some(vec![3, 4]));
        assert_eq!(counts(vec![program("a", &[4, 3]), program("b", &[4])], 6), None);
    }

    #[test]
    fn a_program_is_found_in_the_directories_of_the_request_first() {
        let spawn = SpawnRequest { env: vec![b"PATH=/bin".to_vec()], ..SpawnRequest::default() };
        assert_eq!(find(&program("sh", &[1]), b"/", &spawn), Some(b"/bin/sh".to_vec()));
        let from = Program { path: b"usr/bin:/bin".to_vec(), ..program("sh", &[1]) };
        assert_eq!(find(&from, b"/", &spawn), Some(b"/usr/bin/sh".to_vec()));
        assert_eq!(find(&program("no such program", &[1]), b"/", &spawn), None);
        assert_eq!(find(&program("./sh", &[1]), b"/", &spawn), None);
    }

    #[test]
    fn a_directory_is_seen_from_that_of_who_asks() {
        assert_eq!(joined(b"/tmp", b""), b"/tmp");
        assert_eq!(joined(b"/tmp", b"a"), b"/tmp/a");
        assert_eq!(joined(b"/tmp", b"/usr"), b"/usr");
        assert_eq!((joined(b"", b""), joined(b"/", b"")), (b"".to_vec(), b"/".to_vec()));
    }
}
