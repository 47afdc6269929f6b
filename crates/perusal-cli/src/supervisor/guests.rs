//! Jobs of other launchers: their processes have places here, as ours have there. Each launcher gives places in its own
//! job's memory only, and hears from the other how processes of the other job end.

use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

use perusal::internals::abi::{MPI_ERR_OTHER, MPI_ERR_PORT};
use perusal::internals::dynamic::elsewhere::{address, dial, is_of_own_user, map};
use perusal::internals::dynamic::launcher::{
    IncomingRequest, has_given_up, next_request, reply, reply_with, subscribe,
};
use perusal::internals::dynamic::request::{BUSY, Ending};
use perusal::internals::dynamic::{Answer, Request};
use perusal::internals::shm::{Exit, Memory, RankState, RosterEntry};
use rustix::event::epoll::EventFlags;
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, accept_with, bind, listen, recv, send,
    socket_with,
};

use super::failure::Failure;
use super::meetings::{Outcome, Outsider};
use super::{CALLERS, LISTENER, Supervisor, WAITING, WATCHED};
use crate::hang::Scene;
use crate::start::starter::Started;

/// Most connections of other jobs' processes that have not said yet what they want,
/// and most launchers that watch this job at once.
const MOST: usize = 1024;

const SURVIVES: &str = "a job of mpiexec --survive does not meet other jobs: start both without --survive";

/// A job whose processes have places here.
#[derive(Debug)]
struct OtherJob {
    id: u64,
    memory: Arc<Memory>,
    /// Its memory's descriptor, for our processes.
    file: OwnedFd,
    /// Runs of places here: the first, and how many.
    runs: Vec<(u32, u32)>,
    /// By which the loop names the socket on which the other launcher says how processes end.
    number: u64,
    /// That socket; none once the other launcher has ended.
    watch: Option<OwnedFd>,
}

impl OtherJob {
    fn places(&self) -> impl Iterator<Item = u32> {
        self.runs.iter().flat_map(|(first, count)| *first..first + count)
    }
}

/// Why the processes of another job get no places.
enum Refusal {
    /// Its launcher cannot take a connection now.
    Busy,
    Other(String),
}

impl Refusal {
    fn answer(self) -> Answer {
        match self {
            Self::Busy => Answer::error(BUSY, "the job's launcher takes no connection now"),
            Self::Other(what) => Answer::error(MPI_ERR_PORT, &what),
        }
    }
}

/// Whether a process has finalized, and is in no communicator that reaches out.
fn has_left(entry: &RosterEntry) -> bool {
    entry.state() == RankState::Finalized && !entry.is_linked()
}

impl<T: Into<String>> From<T> for Refusal {
    fn from(what: T) -> Self {
        Self::Other(what.into())
    }
}

/// What a launcher knows of other jobs.
#[derive(Debug, Default)]
pub struct Guests {
    /// Where processes and launchers of other jobs ask; there once anybody may have a reason to.
    listener: Option<OwnedFd>,
    /// Connections that have not said yet what they want.
    callers: Vec<(u64, OwnedFd)>,
    jobs: Vec<OtherJob>,
    /// Launchers that want to hear how processes of this job end.
    watchers: Vec<OwnedFd>,
    numbered: u64,
}

impl Guests {
    /// Whether a place belongs to a process of another job.
    pub fn hold(&self, place: u32) -> bool {
        self.jobs.iter().any(|job| job.places().any(|held| held == place))
    }

    /// This job, with those whose processes have places here.
    pub fn scene<'a>(&'a self, own: &'a Memory) -> Scene<'a> {
        Scene::new(own, self.jobs.iter().map(|job| &*job.memory))
    }

    /// Tells the launchers that watch this job how a process has ended.
    pub fn tell(&mut self, place: u32, exit: Exit) {
        let ending = Ending { place, exit: exit.0 }.encode();
        // One that does not listen hears of the job's end.
        self.watchers.retain(|watcher| {
            let sent = send(watcher, &ending, SendFlags::NOSIGNAL | SendFlags::DONTWAIT);
            matches!(sent, Ok(_) | Err(Errno::AGAIN))
        });
    }

    /// Takes the socket of a launcher that wants to hear how processes of this job end.
    /// Gives it back if there are too many.
    fn watch(&mut self, watcher: OwnedFd) -> Result<(), OwnedFd> {
        // Of a launcher that has ended nothing else says so.
        self.watchers.retain(|watcher| !has_given_up(watcher.as_fd()));
        if self.watchers.len() >= MOST {
            return Err(watcher);
        }
        self.watchers.push(watcher);
        Ok(())
    }

    fn next(&mut self) -> u64 {
        self.numbered += 1;
        self.numbered
    }
}

impl Supervisor<'_> {
    /// Listens for processes of other jobs from now on.
    ///
    /// # Errors
    /// Those of the system.
    pub fn listen(&mut self) -> std::io::Result<()> {
        if self.universe.guests.listener.is_some() {
            return Ok(());
        }
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let socket = socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)?;
        bind(&socket, &address(self.universe.job_id)?)?;
        listen(&socket, 128)?;
        self.epoll.add(&socket, EventFlags::IN, LISTENER)?;
        self.universe.guests.listener = Some(socket);
        Ok(())
    }

    /// Takes the connections that processes of other jobs have made.
    pub fn take_callers(&mut self) {
        let guests = &mut self.universe.guests;
        while let Some(listener) = &guests.listener {
            let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
            let Ok(caller) = accept_with(listener, flags) else { return };
            if guests.callers.len() >= MOST || !is_of_own_user(&caller) {
                continue;
            }
            let number = guests.next();
            if self.epoll.add(&caller, EventFlags::IN, CALLERS + number).is_ok() {
                guests.callers.push((number, caller));
            }
        }
    }

    /// Answers what a process of another job wants: one request a connection.
    pub fn hear_caller(&mut self, number: u64) {
        let callers = &mut self.universe.guests.callers;
        let Some(at) = callers.iter().position(|caller| caller.0 == number) else { return };
        let (_, caller) = callers.swap_remove(at);
        let Some(Some(IncomingRequest { answer, request, along })) = next_request(caller.as_fd()) else {
            return;
        };
        let refuse = |class, what: &str| reply(answer.as_fd(), &Answer::error(class, what));
        match request {
            Ok((_, Request::Greet)) => match self.may_meet() {
                Ok(()) => {
                    reply_with(answer.as_fd(), &Answer::good(b"", &[]), self.memory.segment().file().as_fd());
                }
                Err(what) => refuse(MPI_ERR_PORT, &what),
            },
            Ok((_, Request::LookUp(service))) => {
                reply(answer.as_fd(), &self.universe.meetings.look_up_from_elsewhere(&service));
            }
            Ok((_, Request::Watch)) => {
                if let Err(answer) = self.universe.guests.watch(answer) {
                    reply(answer.as_fd(), &Answer::error(MPI_ERR_OTHER, "too many launchers watch this job"));
                }
            }
            Ok((place, Request::ConnectFrom(port))) => match self.host_with(along) {
                Ok(at) => self.let_wait(at, place, &port, answer),
                Err(refusal) => reply(answer.as_fd(), &refusal.answer()),
            },
            Ok(_) => refuse(MPI_ERR_OTHER, "a process of another job may not ask for that"),
            Err(error) => refuse(MPI_ERR_OTHER, &error.to_string()),
        }
    }

    /// Has a process of another job wait at a port.
    fn let_wait(&mut self, at: usize, place: u32, port: &[u8], answer: OwnedFd) {
        let job = &self.universe.guests.jobs[at];
        let Some(here) = self.memory.roster().place_of_guest(job.id, place) else {
            return reply(answer.as_fd(), &Answer::error(MPI_ERR_OTHER, "the process has no place here"));
        };
        let outsider = Outsider { memory: Arc::clone(&job.memory), place };
        let meetings = &mut self.universe.meetings;
        let outcome = meetings.connect_from(&self.memory, port, here, outsider, answer);
        if let Outcome::Waits(number) = outcome
            && let Some(socket) = meetings.socket(number)
            && self.epoll.add(socket, EventFlags::IN, WAITING + number).is_err()
        {
            meetings.stir(number);
        }
    }

    /// Whether this job can meet others.
    fn may_meet(&self) -> Result<(), String> {
        if self.plan.survive {
            return Err(SURVIVES.into());
        }
        Ok(())
    }

    /// As [`Self::host`] with the memory that has come along with a request.
    fn host_with(&mut self, along: Option<OwnedFd>) -> Result<usize, Refusal> {
        self.host(along.ok_or("no memory came along")?)
    }

    /// Gives the processes of the job with this memory places, unless they have them. Returns which job it is.
    fn host(&mut self, file: OwnedFd) -> Result<usize, Refusal> {
        self.may_meet()?;
        self.forget_guests();
        let memory = map(&file).map_err(|error| error.to_string())?;
        let id = memory.header().job_id();
        if id == self.universe.job_id {
            return Err("a job does not meet itself".into());
        }
        let at = match self.universe.guests.jobs.iter().position(|job| job.id == id) {
            Some(at) => {
                // Of processes there that have ended nothing is said later, when others may have their places.
                self.hear_watched(self.universe.guests.jobs[at].number);
                if self.universe.guests.jobs[at].watch.is_none() {
                    return Err("the job has ended".into());
                }
                at
            }
            None => {
                if memory.failures().are_survived() {
                    return Err(SURVIVES.into());
                }
                self.listen().map_err(|error| format!("no socket to listen at: {error}"))?;
                let failed = |error: std::io::Error| format!("the job's launcher cannot be reached: {error}");
                let launcher = dial(id).map_err(|error| match error {
                    // This launcher waits for nobody.
                    Errno::AGAIN => Refusal::Busy,
                    error => failed(error.into()).into(),
                })?;
                let watch = subscribe(launcher.as_fd(), &Request::Watch).map_err(failed)?;
                let number = self.universe.guests.next();
                self.epoll.add(&watch, EventFlags::IN, WATCHED + number).map_err(failed)?;
                let (runs, memory) = (vec![], Arc::new(memory));
                let job = OtherJob { id, memory, file, runs, number, watch: Some(watch) };
                self.universe.guests.jobs.push(job);
                self.universe.guests.jobs.len() - 1
            }
        };
        self.cover(at)?;
        Ok(at)
    }

    /// Gives places to those processes of a job that have none.
    fn cover(&mut self, at: usize) -> Result<(), String> {
        let job = &self.universe.guests.jobs[at];
        let (id, in_use) = (job.id, job.memory.places_in_use());
        let (here, there) = (self.memory.roster(), job.memory.roster());
        let mut covered = vec![false; in_use as usize];
        for place in job.places() {
            let entry = here.entry(place);
            let Some((_, home)) = entry.guest().filter(|guest| guest.1 < in_use) else { continue };
            covered[home as usize] = true;
            // The process that has left well has given its place there to another one.
            let successor = there.entry(home);
            if has_left(entry) && successor.guest().is_none() && successor.pid() != entry.pid() {
                self.memory.renew_places(place, 1).map_err(|error| error.to_string())?;
                entry.prepare_guest(entry.world(), (id, home));
            }
        }
        // Its guests are processes of ours, or of others that it has met.
        let is_new = |place: &u32| !covered[*place as usize] && there.entry(*place).guest().is_none();
        let new: Vec<u32> = (0..in_use).filter(is_new).collect();
        let count = new.len() as u32;
        if count == 0 {
            return Ok(());
        }
        self.forget_worlds();
        let room = self.longest_row(|place| self.is_free(place));
        let first = self.find_places(count).ok_or_else(|| {
            format!("a job has room for {room} more processes, and the other one has {count}; mpiexec --universe N makes more room")
        })?;
        self.memory.renew_places(first, count).map_err(|error| error.to_string())?;
        for (here, there) in (first..).zip(new) {
            self.memory.roster().entry(here).prepare_guest(first, (id, there));
            self.add_guest(here).map_err(|error| error.to_string())?;
        }
        self.universe.guests.jobs[at].runs.push((first, count));
        Ok(())
    }

    /// Keeps the table of processes without holes: a guest is none of them.
    fn add_guest(&mut self, place: u32) -> std::io::Result<()> {
        let output = [std::io::pipe()?.0, std::io::pipe()?.0];
        let added = self.add_rank(place, Started { pid: 0, output });
        let rank = &mut self.ranks[place as usize];
        (rank.running, rank.given_up) = (false, true);
        added
    }

    /// Answers a request of one of this job's processes that is about another job.
    pub fn serve_own(&mut self, request: &Request, along: Option<OwnedFd>, answer: &OwnedFd) {
        let given = match request {
            Request::OtherJob(id) => match self.universe.guests.jobs.iter().find(|job| job.id == *id) {
                Some(job) => return reply_with(answer.as_fd(), &Answer::good(b"", &[]), job.file.as_fd()),
                None => Answer::error(MPI_ERR_OTHER, "the other job has ended"),
            },
            _ => match self.host_with(along) {
                Ok(_) => Answer::good(b"", &[]),
                Err(refusal) => refusal.answer(),
            },
        };
        reply(answer.as_fd(), &given);
    }

    /// The launcher of another job says how processes have ended, or has ended itself.
    pub fn hear_watched(&mut self, number: u64) {
        let Some(at) = self.universe.guests.jobs.iter().position(|job| job.number == number) else { return };
        loop {
            let job = &mut self.universe.guests.jobs[at];
            let (id, Some(watch)) = (job.id, &job.watch) else { return };
            let mut bytes = [0; 8];
            match recv(watch, &mut bytes[..], RecvFlags::DONTWAIT) {
                Err(Errno::AGAIN | Errno::INTR) => return,
                Ok((8, _)) => {
                    let Ending { place, exit } = Ending::decode(bytes);
                    if let Some(here) = self.memory.roster().place_of_guest(id, place) {
                        self.end_guest(here, Some(Exit(exit)));
                    }
                }
                // Nothing else is sent: the launcher has ended, and its processes with it.
                Ok(_) | Err(_) => {
                    let ended = job.watch.take();
                    let places: Vec<u32> = job.places().collect();
                    drop(ended);
                    places.into_iter().for_each(|place| self.end_guest(place, None));
                    return;
                }
            }
        }
    }

    /// A process of another job has ended. If it had finalized, that is well;
    /// else it ends whoever was connected with it (roster rule 5).
    fn end_guest(&mut self, place: u32, exit: Option<Exit>) {
        let entry = self.memory.roster().entry(place);
        if entry.state() == RankState::Dead || entry.pid() == 0 && exit.is_none_or(|exit| exit.status() == 0)
        {
            return;
        }
        if let Some(exit) = exit {
            entry.set_exit(exit);
        }
        let (_, there) = entry.guest().unwrap_or_default();
        if !self.memory.roster().declare_dead(place) || self.is_failing() {
            return;
        }
        if self.connected(place) {
            let how = self.memory.roster().how(place);
            let text = format!(
                "rank {there} of another job, with which this one was connected (process {}), {how}",
                entry.pid()
            );
            let status = exit.map(|exit| exit.status() as u8).filter(|status| *status != 0).unwrap_or(1);
            self.fail_with(place, Failure { status, text });
        }
    }

    /// Whether a process of ours that runs ends with that at `place`.
    fn connected(&self, place: u32) -> bool {
        self.concerned(place).iter().any(|other| self.is_running_at(*other))
    }

    /// Gives the places of jobs that have ended well to others.
    pub fn forget_guests(&mut self) {
        let roster = self.memory.roster();
        let is_over = |place: u32| {
            let entry = roster.entry(place);
            entry.pid() == 0 || has_left(entry)
        };
        self.universe.guests.jobs.retain(|job| job.watch.is_some() || !job.places().all(is_over));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use perusal::internals::dynamic::launcher::door;

    #[test]
    fn launchers_that_have_ended_keep_no_other_from_watching() {
        let mut guests = Guests::default();
        let (own, lives) = door().unwrap();
        guests.watch(lives).unwrap();
        for _ in 0..2 * MOST {
            guests.watch(door().unwrap().1).unwrap();
        }
        assert_eq!(guests.watchers.len(), 2);
        guests.tell(3, Exit(9));
        let mut bytes = [0; 8];
        let (len, _) = recv(&own, &mut bytes[..], RecvFlags::DONTWAIT).unwrap();
        let Ending { place, exit } = Ending::decode(bytes);
        assert_eq!((len, place, exit), (8, 3, 9));
    }
}
