//! Ports and published names, and who waits at them (MPI 5.0 §11.9).

use std::collections::{HashMap, VecDeque};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

use perusal::internals::abi::{
    MPI_ERR_NAME, MPI_ERR_OTHER, MPI_ERR_PORT, MPI_ERR_SERVICE, MPI_MAX_PORT_NAME,
};
use perusal::internals::dynamic::launcher::{has_given_up, reply};
use perusal::internals::dynamic::{Answer, Request, Scope};
use perusal::internals::shm::Memory;

/// Most ports, names and waiting processes of a job.
const MOST: usize = 65_536;

/// What a process of another job brings along.
#[derive(Debug, Clone)]
pub struct Outsider {
    /// Its job's memory, in which this job's processes have places.
    pub memory: Arc<Memory>,
    /// Its place there.
    pub place: u32,
}

/// A process that waits at a port.
#[derive(Debug)]
struct Waiting {
    place: u32,
    outsider: Option<Outsider>,
    /// By which the launcher's loop names the socket.
    number: u64,
    answer: OwnedFd,
}

#[derive(Debug, Default)]
struct Port {
    owner: u32,
    /// At most one of the two has entries.
    accepting: VecDeque<Waiting>,
    connecting: VecDeque<Waiting>,
}

#[derive(Debug)]
struct Name {
    port: Vec<u8>,
    owner: u32,
    scope: Scope,
}

/// All ports and names of a job.
#[derive(Debug)]
pub struct Meetings {
    job_id: u64,
    ports: HashMap<Vec<u8>, Port>,
    names: HashMap<Vec<u8>, Name>,
    opened: u64,
    waited: u64,
}

/// What becomes of a request.
#[derive(Debug)]
pub enum Outcome {
    /// It has its answer.
    Answered,
    /// The process waits; the loop watches its socket under this number, and calls [`Meetings::stir`].
    Waits(u64),
}

impl Meetings {
    /// None yet.
    pub fn new(job_id: u64) -> Self {
        Self { job_id, ports: HashMap::new(), names: HashMap::new(), opened: 0, waited: 0 }
    }

    /// Deals with a request of the process at `place`, other than to spawn.
    pub fn take(&mut self, memory: &Memory, place: u32, request: Request, answer: OwnedFd) -> Outcome {
        let given = match request {
            Request::Accept(port) => return self.wait(memory, &port, true, (place, None), answer),
            Request::Connect(port) => return self.wait(memory, &port, false, (place, None), answer),
            Request::OpenPort => self.open(place),
            Request::ClosePort(port) => self.close(&port),
            Request::Publish(service, port, scope) => {
                self.publish(service, Name { port, owner: place, scope })
            }
            Request::Unpublish(service, port) => self.unpublish(&service, &port),
            Request::LookUp(service) => self.look_up(&service),
            _ => Answer::error(MPI_ERR_OTHER, "this is no meeting"),
        };
        reply(answer.as_fd(), &given);
        Outcome::Answered
    }

    /// Has a process of another job, which has the place `place` here, wait for one that accepts.
    pub fn connect_from(
        &mut self,
        memory: &Memory,
        port: &[u8],
        place: u32,
        outsider: Outsider,
        answer: OwnedFd,
    ) -> Outcome {
        self.wait(memory, port, false, (place, Some(outsider)), answer)
    }

    /// The socket of a process that waits.
    pub fn socket(&self, number: u64) -> Option<&OwnedFd> {
        let waiting = self.ports.values().flat_map(|port| port.accepting.iter().chain(&port.connecting));
        waiting.into_iter().find(|waiting| waiting.number == number).map(|waiting| &waiting.answer)
    }

    /// A process that waits has given up, or has ended.
    pub fn stir(&mut self, number: u64) {
        for port in self.ports.values_mut() {
            port.accepting.retain(|waiting| waiting.number != number);
            port.connecting.retain(|waiting| waiting.number != number);
        }
    }

    /// The process at `place` has ended: so have its ports and names.
    pub fn ended(&mut self, place: u32) {
        let own = |port: &Port| port.owner == place;
        let ports: Vec<Vec<u8>> =
            self.ports.iter().filter(|(_, port)| own(port)).map(|(name, _)| name.clone()).collect();
        for port in ports {
            self.end(&port, "the process that opened the port has ended");
        }
        self.names.retain(|_, name| name.owner != place);
    }

    fn open(&mut self, place: u32) -> Answer {
        if self.ports.len() >= MOST {
            return Answer::error(
                MPI_ERR_PORT,
                &format!("{MOST} ports are open; close those that are not needed"),
            );
        }
        self.opened += 1;
        let name = format!("perusal:{:016x}:{}", self.job_id, self.opened).into_bytes();
        self.ports.insert(name.clone(), Port { owner: place, ..Port::default() });
        Answer::good(&name, &[])
    }

    fn close(&mut self, name: &[u8]) -> Answer {
        if !self.ports.contains_key(name) {
            return self.no_port(name);
        }
        self.end(name, "the port has been closed");
        Answer::good(b"", &[])
    }

    /// Takes a port away; who waits there learns why.
    fn end(&mut self, name: &[u8], why: &str) {
        let Some(port) = self.ports.remove(name) else { return };
        for waiting in port.accepting.iter().chain(&port.connecting) {
            reply(waiting.answer.as_fd(), &Answer::error(MPI_ERR_PORT, why));
        }
    }

    /// Why there is no port of this name, which may be anything.
    fn no_port(&self, name: &[u8]) -> Answer {
        let text = String::from_utf8_lossy(&name[..name.len().min(64)]).into_owned();
        let job = text.strip_prefix("perusal:").and_then(|rest| rest.split(':').next());
        let what = match job {
            Some(job) if job != format!("{:016x}", self.job_id) => {
                "is a port of another job, whose processes alone accept there"
            }
            _ => "is not open",
        };
        Answer::error(MPI_ERR_PORT, &format!("{text:?} {what}"))
    }

    fn wait(
        &mut self,
        memory: &Memory,
        name: &[u8],
        accepts: bool,
        (place, outsider): (u32, Option<Outsider>),
        answer: OwnedFd,
    ) -> Outcome {
        let waits =
            self.ports.values().map(|port| port.accepting.len() + port.connecting.len()).sum::<usize>();
        let Some(port) = self.ports.get_mut(name) else {
            reply(answer.as_fd(), &self.no_port(name));
            return Outcome::Answered;
        };
        let (own, others) = if accepts {
            (&mut port.accepting, &mut port.connecting)
        } else {
            (&mut port.connecting, &mut port.accepting)
        };
        while let Some(other) = others.pop_front() {
            // Dynamic rule 1: one that has given up is not there.
            if has_given_up(other.answer.as_fd()) {
                continue;
            }
            let (local, outside) = match (&outsider, &other.outsider) {
                (Some(outsider), _) => ((other.place, &other.answer), (place, Some(outsider), &answer)),
                (None, outsider) => ((place, &answer), (other.place, outsider.as_ref(), &other.answer)),
            };
            if introduce((memory, self.job_id), local, outside) {
                return Outcome::Answered;
            }
            // The process of the other job has got an error; the one of this job waits on.
            if outsider.is_some() {
                others.push_front(other);
                return Outcome::Answered;
            }
        }
        if waits >= MOST {
            reply(answer.as_fd(), &Answer::error(MPI_ERR_PORT, "too many processes wait at ports"));
            return Outcome::Answered;
        }
        self.waited += 1;
        own.push_back(Waiting { place, outsider, number: self.waited, answer });
        Outcome::Waits(self.waited)
    }

    fn publish(&mut self, service: Vec<u8>, name: Name) -> Answer {
        let shown = shown(&service);
        let why = if service.is_empty() {
            Some("a service needs a name".into())
        } else if name.port.len() >= MPI_MAX_PORT_NAME as usize {
            Some(format!("its port's name is longer than MPI_MAX_PORT_NAME ({MPI_MAX_PORT_NAME}) allows"))
        } else if self.names.len() >= MOST {
            Some(format!("{MOST} names are published; take those back that are not needed"))
        } else {
            None
        };
        if let Some(why) = why {
            return Answer::error(MPI_ERR_SERVICE, &format!("{shown} cannot be published: {why}"));
        }
        if self.names.contains_key(&service) {
            return Answer::error(MPI_ERR_SERVICE, &format!("{shown} is published already"));
        }
        self.names.insert(service, name);
        Answer::good(b"", &[])
    }

    fn unpublish(&mut self, service: &[u8], port: &[u8]) -> Answer {
        match self.names.get(service) {
            Some(name) if name.port == port => {
                self.names.remove(service);
                Answer::good(b"", &[])
            }
            Some(_) => {
                Answer::error(MPI_ERR_SERVICE, &format!("{} is published with another port", shown(service)))
            }
            None => Answer::error(MPI_ERR_SERVICE, &format!("{} is not published", shown(service))),
        }
    }

    /// Looks a service up for a process of another job.
    pub fn look_up_from_elsewhere(&self, service: &[u8]) -> Answer {
        match self.names.get(service) {
            Some(Name { scope: Scope::Job, .. }) => Answer::error(MPI_ERR_NAME, "it is for its own job"),
            _ => self.look_up(service),
        }
    }

    fn look_up(&self, service: &[u8]) -> Answer {
        match self.names.get(service) {
            Some(name) => Answer::good(&name.port, &[]),
            None => Answer::error(MPI_ERR_NAME, &format!("{} is not published by this job", shown(service))),
        }
    }
}

/// A name as an error shows it.
fn shown(name: &[u8]) -> String {
    format!("{:?}", String::from_utf8_lossy(&name[..name.len().min(64)]))
}

/// Tells two processes each other's place, and a context id to meet in: one of this job, and one of this or another
/// job; if they are one process, two of its threads, that they cannot meet. From now on the death of one is an error
/// for the other. Returns false, with an error sent to the other one, if
/// in its job the first has no place.
fn introduce(
    (memory, job): (&Memory, u64),
    (place, answer): (u32, &OwnedFd),
    (other, outsider, to): (u32, Option<&Outsider>, &OwnedFd),
) -> bool {
    if outsider.is_none() && place == other {
        let what = "one process accepts and connects here; two groups that meet have no process in common";
        [answer, to].into_iter().for_each(|to| reply(to.as_fd(), &Answer::error(MPI_ERR_PORT, what)));
        return true;
    }
    let there = outsider.map(|outsider| outsider.memory.roster().place_of_guest(job, place));
    if there == Some(None) {
        let what = "the process that accepts was spawned after the two jobs had met";
        reply(to.as_fd(), &Answer::error(MPI_ERR_PORT, what));
        return false;
    }
    let bridge = match outsider {
        None => memory.contexts().allocate(2),
        Some(outsider) => memory.contexts().allocate_with(1, |id| outsider.memory.contexts().take(id, 1)),
    };
    match bridge {
        Ok(bridge) => {
            let seen = there.flatten().unwrap_or(place);
            [place, other].into_iter().for_each(|place| memory.roster().entry(place).link());
            if let Some(outsider) = outsider {
                let roster = outsider.memory.roster();
                [seen, outsider.place].into_iter().for_each(|place| roster.entry(place).link());
            }
            reply(answer.as_fd(), &Answer::good(b"", &[other, bridge]));
            reply(to.as_fd(), &Answer::good(b"", &[seen, bridge]));
        }
        Err(error) => {
            for answer in [answer, to] {
                reply(answer.as_fd(), &Answer::error(MPI_ERR_OTHER, &error.to_string()));
            }
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use perusal::internals::dynamic::launcher::door;
    use rustix::net::{RecvFlags, recv};

    struct Asked(OwnedFd);

    impl Asked {
        fn answer(&self) -> Option<Answer> {
            let mut room = [0; 4096];
            let (len, _) = recv(&self.0, &mut room[..], RecvFlags::DONTWAIT).ok()?;
            Some(Answer::decode(&room[..len]).unwrap())
        }
    }

    fn ask(meetings: &mut Meetings, memory: &Memory, place: u32, request: Request) -> (Asked, Outcome) {
        let (own, theirs) = door().unwrap();
        let outcome = meetings.take(memory, place, request, theirs);
        (Asked(own), outcome)
    }

    fn answered(meetings: &mut Meetings, memory: &Memory, request: Request) -> Answer {
        ask(meetings, memory, 0, request).0.answer().unwrap()
    }

    #[test]
    fn who_connects_meets_who_accepts_in_the_order_of_coming() {
        let (memory, mut meetings) = (Memory::create(4, 0).unwrap(), Meetings::new(7));
        let port = answered(&mut meetings, &memory, Request::OpenPort).text;
        let (first, _) = ask(&mut meetings, &memory, 1, Request::Connect(port.clone()));
        let (second, _) = ask(&mut meetings, &memory, 2, Request::Connect(port.clone()));
        assert_eq!(first.answer(), None);
        for (asked, place) in [(first, 1), (second, 2)] {
            let (accepting, _) = ask(&mut meetings, &memory, 0, Request::Accept(port.clone()));
            let [to, back] = [accepting.answer().unwrap().numbers, asked.answer().unwrap().numbers];
            assert_eq!((to[0], back[0], to[1]), (place, 0, back[1]));
            assert!(memory.roster().entry(place).is_linked());
        }
    }

    #[test]
    fn a_process_does_not_meet_itself() {
        let (memory, mut meetings) = (Memory::create(2, 0).unwrap(), Meetings::new(7));
        let port = answered(&mut meetings, &memory, Request::OpenPort).text;
        let (connects, _) = ask(&mut meetings, &memory, 0, Request::Connect(port.clone()));
        let (accepts, _) = ask(&mut meetings, &memory, 0, Request::Accept(port.clone()));
        for asked in [connects, accepts] {
            let answer = asked.answer().unwrap();
            assert_eq!(answer.class, MPI_ERR_PORT);
            assert!(String::from_utf8(answer.text).unwrap().contains("no process in common"));
        }
        assert!(!memory.roster().entry(0).is_linked());
        // The port serves others as before.
        let (connects, _) = ask(&mut meetings, &memory, 1, Request::Connect(port.clone()));
        assert_eq!(answered(&mut meetings, &memory, Request::Accept(port)).numbers[0], 1);
        assert_eq!(connects.answer().unwrap().numbers[0], 0);
    }

    #[test]
    fn one_that_has_given_up_is_not_met() {
        let (memory, mut meetings) = (Memory::create(4, 0).unwrap(), Meetings::new(7));
        let port = answered(&mut meetings, &memory, Request::OpenPort).text;
        let (gone, _) = ask(&mut meetings, &memory, 1, Request::Connect(port.clone()));
        drop(gone);
        let (there, waits) = ask(&mut meetings, &memory, 2, Request::Connect(port.clone()));
        assert!(matches!(waits, Outcome::Waits(2)));
        let (accepting, _) = ask(&mut meetings, &memory, 0, Request::Accept(port.clone()));
        assert_eq!((accepting.answer().unwrap().numbers[0], there.answer().unwrap().numbers[0]), (2, 0));
        let (accepting, _) = ask(&mut meetings, &memory, 0, Request::Accept(port));
        meetings.stir(3);
        assert_eq!(meetings.ports.values().next().unwrap().accepting.len(), 0);
        assert!(rustix::net::recv(&accepting.0, &mut [0; 8][..], RecvFlags::empty()).unwrap().0 == 0);
    }

    #[test]
    fn a_port_that_ends_is_an_error_for_who_waits_there() {
        let (memory, mut meetings) = (Memory::create(4, 0).unwrap(), Meetings::new(7));
        for closes in [true, false] {
            let port = answered(&mut meetings, &memory, Request::OpenPort).text;
            let (waiting, _) = ask(&mut meetings, &memory, 1, Request::Connect(port.clone()));
            if closes {
                assert_eq!(answered(&mut meetings, &memory, Request::ClosePort(port.clone())).class, 0);
            } else {
                meetings.ended(0);
            }
            assert_eq!(waiting.answer().unwrap().class, MPI_ERR_PORT);
            assert_eq!(answered(&mut meetings, &memory, Request::Connect(port)).class, MPI_ERR_PORT);
        }
    }

    #[test]
    fn any_bytes_may_be_the_name_of_a_port() {
        let (memory, mut meetings) = (Memory::create(2, 0).unwrap(), Meetings::new(7));
        for name in [&b""[..], b"\xff\xfe", b"perusal:", b"perusal:0000000000000007:1", &[b'x'; 5000]] {
            let answer = answered(&mut meetings, &memory, Request::Connect(name.to_vec()));
            assert_eq!(answer.class, MPI_ERR_PORT);
            assert!(answer.text.len() < 1000);
        }
        let other = answered(&mut meetings, &memory, Request::Accept(b"perusal:0000000000000008:1".to_vec()));
        assert!(String::from_utf8(other.text).unwrap().contains("another job"));
    }

    #[test]
    fn a_name_is_published_once_and_ends_with_its_process() {
        let (memory, mut meetings) = (Memory::create(2, 0).unwrap(), Meetings::new(7));
        let name = || b"service".to_vec();
        let mut class = |request| answered(&mut meetings, &memory, request).class;
        assert_eq!(class(Request::LookUp(name())), MPI_ERR_NAME);
        let publish = |port: &[u8]| Request::Publish(name(), port.to_vec(), Scope::User);
        assert_eq!(class(publish(b"p")), 0);
        assert_eq!(class(publish(b"q")), MPI_ERR_SERVICE);
        assert_eq!(class(Request::LookUp(name())), 0);
        assert_eq!(class(Request::Unpublish(name(), b"q".to_vec())), MPI_ERR_SERVICE);
        assert_eq!(class(Request::Unpublish(name(), b"p".to_vec())), 0);
        assert_eq!(class(Request::Unpublish(name(), b"p".to_vec())), MPI_ERR_SERVICE);
        assert_eq!(class(publish(b"p")), 0);
        assert_eq!(meetings.look_up_from_elsewhere(&name()).class, 0);
        meetings.ended(0);
        assert_eq!(answered(&mut meetings, &memory, Request::LookUp(name())).class, MPI_ERR_NAME);
    }

    #[test]
    fn a_name_of_a_job_is_known_there_alone() {
        let (memory, mut meetings) = (Memory::create(2, 0).unwrap(), Meetings::new(7));
        let publish = Request::Publish(b"service".to_vec(), b"p".to_vec(), Scope::Job);
        assert_eq!(answered(&mut meetings, &memory, publish).class, 0);
        let here = answered(&mut meetings, &memory, Request::LookUp(b"service".to_vec()));
        assert_eq!((here.class, here.text), (0, b"p".to_vec()));
        assert_eq!(meetings.look_up_from_elsewhere(b"service").class, MPI_ERR_NAME);
    }
}
