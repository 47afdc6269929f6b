//! Processes of other jobs, which have a place here as guests, as this process has one there.
//!
//! A process receives in its own job's memory only: a guest sends into the ring from its place here. So it maps the
//! memory of each job that it has met, writes to the rings from its own place there, and rings the doorbells there. Of
//! its shared heap it uses what processes there name: the words of a partitioned message, a window's memory, a file's
//! shared pointer. Its collective segments it does not use.

use super::Engine;
use super::parts::{Peer, doorbell, ring};
use crate::doorbell::Doorbell;
use crate::error::{Error, Result};
use crate::ring::{MappedRing, Producer};
use crate::shm::{Memory, RankState};
use crate::sync::{AsymmetricFence, AtomicBool, Mutex, Ordering, RwLock, serve_membarrier};
use std::sync::{Arc, PoisonError};

/// A job that this process has met.
#[derive(Debug)]
pub struct OtherJob {
    id: u64,
    memory: Memory,
    /// This process's place there.
    own_place: u32,
    /// Whether its processes are notified by counters.
    counts: bool,
}

impl OtherJob {
    /// Its memory.
    #[must_use]
    pub fn memory(&self) -> &Memory {
        &self.memory
    }

    /// Counts a communicator through which this process reaches that job, or counts it no more (roster rule 5).
    pub fn count_link(&self, there: bool) {
        let entry = self.memory.roster().entry(self.own_place);
        if there { entry.link() } else { entry.unlink() }
    }
}

/// The job that a process belongs to: this process's own, or one that it has met,
/// whose memory stays mapped as long as this is kept.
#[derive(Debug, Clone)]
pub struct HomeJob(Option<Arc<OtherJob>>);

impl HomeJob {
    /// This process's own job.
    pub const OWN: Self = Self(None);

    /// Whether it is this process's own job.
    #[must_use]
    pub fn is_own(&self) -> bool {
        self.0.is_none()
    }

    /// Its memory, as this process has it.
    #[must_use]
    pub fn memory<'a>(&'a self, engine: &'a Engine) -> &'a Memory {
        self.0.as_ref().map_or(&engine.job, |job| &job.memory)
    }

    /// This process's place there.
    #[must_use]
    pub fn own_place(&self, engine: &Engine) -> u32 {
        self.0.as_ref().map_or(engine.rank, |job| job.own_place)
    }
}

/// A guest, as a sender sees it.
#[derive(Debug, Clone)]
pub(crate) struct Outside {
    doorbell: Doorbell,
    job: Arc<OtherJob>,
    /// Its place in its own job.
    place: u32,
}

impl Outside {
    /// Its job, and its place there.
    pub(super) fn name(&self) -> (u64, u32) {
        (self.job.id, self.place)
    }

    /// Rings its doorbell, as the process that is there at `place`.
    pub(super) fn ring_for(&self, place: u32) {
        self.doorbell.ring(place as usize);
    }

    /// Wakes it, for a word that has been written.
    pub(super) fn wake(&self) {
        self.ring_for(self.place);
    }

    /// Rings its doorbell for the ring from this process.
    pub(super) fn ring(&self) {
        self.ring_for(self.job.own_place);
    }

    /// The ring from this process to it.
    pub(super) fn own_ring(&self) -> Result<MappedRing> {
        self.job.memory.reserve_ring(self.job.own_place, self.place)?;
        // SAFETY: the ring's memory has just been reserved; the holder of the ring holds this, and with it the memory;
        // the producer side is made once a guest, under the peer's lock.
        Ok(unsafe { ring(&self.job.memory, self.job.own_place, self.place) })
    }

    /// After a commit that the ring's consumer wants to hear of: by its job's way.
    #[cold]
    pub(super) fn tell(&self, producer: &Producer<MappedRing>) {
        if self.job.counts {
            producer.notify_again();
            self.doorbell.publish_count(self.job.own_place as usize, producer.position());
            // Doorbell rule 6, side A: the count is stored; the sleeper's word is loaded next.
            AsymmetricFence::Processor.light_barrier();
            if self.doorbell.is_asleep() {
                self.doorbell.wake();
            }
        } else {
            self.ring();
        }
    }
}

/// The jobs that this process has met.
#[derive(Debug, Default)]
pub(crate) struct OtherJobs {
    /// Whether there has been any.
    any: AtomicBool,
    list: RwLock<Vec<Arc<OtherJob>>>,
    /// Held by the thread that meets a job: another one that comes to the same job waits until it is known.
    meeting: Mutex<()>,
}

impl OtherJobs {
    fn find(&self, id: u64) -> Option<Arc<OtherJob>> {
        let list = self.list.read().unwrap_or_else(PoisonError::into_inner);
        list.iter().find(|job| job.id == id).cloned()
    }
}

impl Engine {
    /// The job of a guest, and its place there; `None` for a process of this job.
    #[inline]
    #[must_use]
    pub fn guest(&self, place: u32) -> Option<(u64, u32)> {
        // Relaxed: set before this process learns of a guest's place.
        if !self.other_jobs.any.load(Ordering::Relaxed) {
            return None;
        }
        self.job.roster().entry(place).guest()
    }

    /// Whether the process at `place` belongs to another job: then no memory is shared with it but rings.
    #[inline]
    #[must_use]
    pub fn is_guest(&self, place: u32) -> bool {
        self.guest(place).is_some()
    }

    /// Whether a group has members of another job.
    #[must_use]
    pub fn has_guests(&self, group: impl IntoIterator<Item = u32>) -> bool {
        // Relaxed: as in `guest`.
        self.other_jobs.any.load(Ordering::Relaxed) && group.into_iter().any(|place| self.is_guest(place))
    }

    /// Refuses for a communicator of several jobs what needs memory that all members share.
    ///
    /// # Errors
    /// [`Error::Comm`].
    pub fn within_one_job(&self, group: impl IntoIterator<Item = u32>, what: &str) -> Result<()> {
        if !self.has_guests(group) {
            return Ok(());
        }
        Err(Error::Dynamic {
            class: crate::abi::MPI_ERR_COMM,
            what: format!(
                "{what} needs memory that all members of the communicator share, and these are processes of several jobs: \
                 start both programs by one mpiexec (mpiexec -n 2 PROGRAM : -n 2 OTHER), or one by MPI_Comm_spawn"
            ),
        })
    }

    /// A job that this process has met.
    #[must_use]
    pub fn other_job(&self, id: u64) -> Option<Arc<OtherJob>> {
        self.other_jobs.find(id)
    }

    /// The job of the process at `place`.
    ///
    /// # Errors
    /// [`Error::Intern`] for a process of a job that this process has not met.
    pub fn home_of(&self, place: u32) -> Result<HomeJob> {
        let Some((id, _)) = self.guest(place) else { return Ok(HomeJob::OWN) };
        let job =
            self.other_job(id).ok_or_else(|| Error::Intern(format!("place {place}, of a job not met")))?;
        Ok(HomeJob(Some(job)))
    }

    /// Gets to know a job in which this process has a place, unless it knows it:
    /// takes that place, and forgets jobs that have gone.
    ///
    /// # Errors
    /// [`Error::Intern`] if it has none; [`Error::Segment`] if it is not free; [`Error::Other`] if the two notify by
    /// fences that do not go together.
    pub fn meet_job(&self, memory: Memory) -> Result<()> {
        let _alone = self.other_jobs.meeting.lock().unwrap_or_else(PoisonError::into_inner);
        let (id, own) = (memory.header().job_id(), (self.job.header().job_id(), self.rank));
        if id == own.0 || self.other_job(id).is_some() {
            return Ok(());
        }
        let own_place = memory
            .roster()
            .place_of_guest(own.0, own.1)
            .ok_or_else(|| Error::Intern("the other job has no place for this process".into()))?;
        let entry = memory.roster().entry(own_place);
        let pid = rustix::process::getpid().as_raw_nonzero().get();
        entry.arrive(own_place, pid)?;
        entry.advance(RankState::Initialised);
        if self.fences == AsymmetricFence::Processor && !memory.header().sender_fences() {
            serve_membarrier().map_err(|error| {
                Error::Other(format!(
                    "membarrier(2), which the other job uses and this one does not: {error}"
                ))
            })?;
        }
        self.config.bound_eager_limit(memory.shape());
        let counts = memory.shape().uses_counters();
        let job = Arc::new(OtherJob { id, memory, own_place, counts });
        let roster = self.job.roster();
        // A place may have had a guest of another job before. A thread that finds the job in the list may send there.
        for place in 0..self.job.places_in_use() {
            let guest = roster.entry(place).guest();
            if guest.is_some_and(|guest| guest.0 == id) {
                self.peers[place as usize].renew(guest, self.shared);
            }
        }
        let mut list = self.other_jobs.list.write().unwrap_or_else(PoisonError::into_inner);
        list.retain(|job| {
            (0..self.job.places_in_use())
                .any(|place| roster.entry(place).guest().is_some_and(|guest| guest.0 == job.id))
        });
        list.push(job);
        // Relaxed: as in `guest`.
        self.other_jobs.any.store(true, Ordering::Relaxed);
        Ok(())
    }

    /// Gets ready to reach the process that has come to `place`, where a guest may have been before,
    /// or come after a process of this job.
    pub fn greet(&self, place: u32) {
        // Relaxed: as in `guest`.
        if self.other_jobs.any.load(Ordering::Relaxed)
            && let Some(peer) = self.peers.get(place as usize)
        {
            peer.renew(self.guest(place), self.shared);
        }
    }

    /// The guest at `place`, if it is one.
    ///
    /// # Errors
    /// [`Error::Intern`] for one of a job that this process has not met.
    pub(super) fn outside(&self, place: u32) -> Result<Option<Outside>> {
        let Some((id, there)) = self.guest(place) else { return Ok(None) };
        let peer: &Peer = &self.peers[place as usize];
        if let Some(known) = peer.outside() {
            return Ok(Some(known));
        }
        let job = self
            .other_job(id)
            .filter(|job| there < job.memory.places())
            .ok_or_else(|| Error::Intern(format!("a message to place {place}, of a job not met")))?;
        let outside = Outside { doorbell: doorbell(&job.memory, there), job, place: there };
        peer.set_outside(outside.clone());
        Ok(Some(outside))
    }

    /// Takes a context id that is free in the jobs of all members of a communicator, with a reference for each.
    ///
    /// # Errors
    /// [`Error::NoMem`] if there is none; [`Error::Intern`] for a member of a job that this process has not met.
    pub fn common_context(&self, members: impl Iterator<Item = u32>) -> Result<u32> {
        let mut own = 0;
        let mut others: Vec<(Arc<OtherJob>, u32)> = vec![];
        for place in members {
            let Some((id, _)) = self.guest(place) else {
                own += 1;
                continue;
            };
            if let Some((_, count)) = others.iter_mut().find(|(job, _)| job.id == id) {
                *count += 1;
                continue;
            }
            let job = self
                .other_job(id)
                .ok_or_else(|| Error::Intern(format!("place {place}, of a job not met")))?;
            others.push((job, 1));
        }
        self.job.contexts().allocate_with(own, |id| {
            let taken = others
                .iter()
                .take_while(|(job, count)| job.memory.contexts().take(id, *count).unwrap_or(false))
                .count();
            if taken < others.len() {
                others[..taken].iter().for_each(|(job, _)| job.memory.contexts().give_up(id));
            }
            Ok(taken == others.len())
        })
    }

    /// Says in the jobs that this process has met that it has moved on.
    pub fn advance_outside(&self, state: RankState) {
        let list = self.other_jobs.list.read().unwrap_or_else(PoisonError::into_inner);
        list.iter().for_each(|job| job.memory.roster().entry(job.own_place).advance(state));
    }

    /// Counts a communicator of these groups in the jobs that it reaches, or counts it no more.
    pub fn count_outside(&self, members: impl IntoIterator<Item = u32>, there: bool) {
        let mut jobs: Vec<u64> =
            members.into_iter().filter_map(|place| self.guest(place)).map(|guest| guest.0).collect();
        jobs.sort_unstable();
        jobs.dedup();
        jobs.iter().filter_map(|id| self.other_job(*id)).for_each(|job| job.count_link(there));
    }
}

#[cfg(all(test, not(perusal_loom)))]
mod tests {
    use super::*;
    use crate::abi::{MPI_ANY_TAG, MPI_BYTE};
    use crate::comm::Comm;
    use crate::datatype::Datatype;
    use crate::events::Registry;
    use crate::limits::rounds;
    use crate::p2p::{Mode, RecvBuf, SendBuf};
    use crate::shm::{Job, Universe};
    use crate::variables::Overrides;
    use std::sync::Barrier;

    /// The first rank of `jobs`; the others have no engine.
    fn engine(jobs: Vec<Job>, shared: bool) -> Engine {
        let job = jobs.into_iter().next().expect("a rank");
        // SAFETY: used by one thread, or `shared` is true.
        unsafe { Engine::new(job, shared, Registry::new(Box::new(|text| panic!("{text}")))) }.expect("engine")
    }

    #[test]
    #[cfg_attr(miri, ignore = "Miri maps no files")]
    fn threads_that_meet_a_job_at_once_take_one_place_there() {
        const THREADS: usize = 4;
        let engine = engine(Job::threads(1).expect("memory"), true);
        for _ in 0..rounds(50) {
            let room = Universe { places: 2, size: 2 };
            let other = Memory::create_universe(1, room, 0, &Overrides::default()).expect("memory");
            other.reserve_places(1, 1).expect("memory");
            other.roster().entry(1).prepare_guest(1, (engine.job().header().job_id(), engine.rank()));
            let together = Barrier::new(THREADS);
            std::thread::scope(|scope| {
                for _ in 0..THREADS {
                    let memory = Memory::attach(other.segment().fd()).expect("memory");
                    scope.spawn(|| {
                        together.wait();
                        engine.meet_job(memory).expect("its place is free, or its own");
                    });
                }
            });
            assert!(engine.other_job(other.header().job_id()).is_some_and(|job| job.own_place == 1));
        }
    }

    #[test]
    fn a_receive_whose_send_cannot_begin_takes_no_message() {
        let engine = engine(Job::threads(2).expect("memory"), false);
        let comm = Comm::world(0, 2, engine.registry().attach(0));
        let comm = engine.open(comm).expect("world");
        // The other one is a process of a job that nobody has met: there is no ring to it.
        engine.job().roster().entry(1).prepare_guest(1, (1, 0));
        engine.other_jobs.any.store(true, Ordering::Relaxed);
        let byte = Datatype::predefined_ref(MPI_BYTE).expect("MPI_BYTE");
        let (data, mut room) = ([7_u8; 3], [0_u8; 3]);
        let from = SendBuf::new(data.as_ptr(), data.len(), byte, MPI_BYTE).expect("it fits");
        let to = RecvBuf::new(room.as_mut_ptr(), room.len(), byte, MPI_BYTE).expect("it fits");
        // SAFETY: the buffers outlive the requests, all of which are over below.
        unsafe {
            engine.send(&comm, &from, 0, 5, Mode::Standard).expect("to itself");
            let failed = engine.isendrecv(&comm, (&from, 1, 5), (&to, 0, MPI_ANY_TAG));
            assert!(matches!(failed, Err(Error::Intern(_))));
            let (sent, received) =
                engine.isendrecv(&comm, (&from, 0, 6), (&to, 0, MPI_ANY_TAG)).expect("to itself");
            assert_eq!(engine.wait(received).expect("the message is there").tag, 5);
            engine.wait(sent).expect("a copy is kept");
            assert_eq!(engine.recv(&comm, &to, 0, MPI_ANY_TAG).expect("the other message").tag, 6);
        }
        assert_eq!(room, data);
        assert_eq!(engine.slab.alive(false), 0, "each request has been given back");
    }
}
