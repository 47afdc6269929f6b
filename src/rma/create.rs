//! Making a window: what its members tell each other.

use super::block_locks::BlockLocks;
use super::control::{Control, StoreFlag};
use super::epoch::Epochs;
use super::hints::{NUMA_NODE, alignment, has_no_locks, has_own_parts, numa_node};
use super::memory::{MemberMemory, Start, TargetMemory, salt};
use super::remote::{Served, Service};
use super::window::{Memory, Window};
use crate::coll::{BlockingTransport, Purpose, allgather, new_context};
use crate::comm::{Attributes, Comm, ErrhandlerSlot, Link, lock};
use crate::engine::{Engine, HomeJob, probe_address};
use crate::error::{Error, Result};
use crate::heap::{Extent, Heap, KeptMemory};
use crate::info::Info;
use crate::limits::{APART, PAGE};
use crate::scratch::Scratch;
use crate::sync::{Arc, AtomicBool, AtomicU32, ConditionalLock, Mutex};

/// What a member tells the others of itself as a window is made.
#[derive(Debug, Clone, Copy)]
struct Member {
    memory: MemberMemory,
    /// Where the words of the window lie, of the member of rank 0; 0 for none.
    control: u64,
    /// The address of a byte that others can try to read.
    probe: u64,
    /// Whether it has all it needs.
    ready: bool,
    /// Whether it can share memory at all: it has mapped its job's shared heap.
    shares: bool,
    /// Whether its pages lie on the NUMA node that it has asked for.
    placed: bool,
}

/// Bytes of what it tells.
const MEMBER: usize = 8 * 8;

/// Of each member the job in whose shared heap its memory lies, with the locks there.
type Homes = Vec<(HomeJob, BlockLocks)>;

impl Member {
    fn encode(self) -> [u8; MEMBER] {
        let MemberMemory { bytes: room, unit, start, heap, salt } = self.memory;
        let (kind, at) = match start {
            Start::Place(place) => (0, place),
            Start::Address(addr) => (1, addr),
            Start::Bottom => (2, 0),
        };
        let mut bytes = [0; MEMBER];
        let flags = u64::from(self.ready) << 8 | u64::from(self.shares) << 9 | u64::from(self.placed) << 10;
        let words = [kind | flags, at, room, unit, heap, self.control, self.probe, salt];
        for (word, room) in words.iter().zip(bytes.chunks_exact_mut(8)) {
            room.copy_from_slice(&word.to_ne_bytes());
        }
        bytes
    }

    fn decode(bytes: &[u8]) -> Self {
        let word = |i: usize| {
            let mut word = [0; 8];
            word.copy_from_slice(&bytes[i * 8..i * 8 + 8]);
            u64::from_ne_bytes(word)
        };
        let start = match word(0) & 0xff {
            0 => Start::Place(word(1)),
            1 => Start::Address(word(1)),
            _ => Start::Bottom,
        };
        Self {
            memory: MemberMemory { start, bytes: word(2), unit: word(3), heap: word(4), salt: word(7) },
            control: word(5),
            probe: word(6),
            ready: word(0) >> 8 & 1 == 1,
            shares: word(0) >> 9 & 1 == 1,
            placed: word(0) >> 10 & 1 == 1,
        }
    }
}

fn no_room(what: &str) -> Error {
    Error::NoMem(format!(
        "the shared heap has no room for {what}, or this process cannot map it; PERUSAL_SHARED_HEAP (bytes) says how large it is"
    ))
}

const UNSHARED: Error = Error::RmaShared(
    "a member of the communicator has not mapped the job's shared heap: PERUSAL_SHARED_HEAP is 0, or more bytes than the process may map (ulimit -v)",
);

impl Window {
    /// Makes a window of memory of all members of `parent`, each of which calls this.
    ///
    /// # Errors
    /// [`Error::Comm`] for an intercommunicator; [`Error::NoMem`] at all members if one has no memory;
    /// [`Error::RmaShared`] where that is to be shared, and a member can share none; those of the messages.
    pub fn create(engine: &Engine, parent: &Comm, memory: Memory, unit: u64, hints: &Info) -> Result<Self> {
        if parent.is_inter() {
            return Err(Error::Comm("windows are made on intracommunicators"));
        }
        let context = new_context(engine, parent)?;
        // The window's handle is known when it has been made (`CommEvents::set_comm`).
        let events = engine.registry().attach_window(0);
        let comm = Comm::intra(context, parent.rank(), parent.group().clone(), events.clone());
        let made = engine.open(comm).and_then(|comm| {
            let made = Self::among(engine, Arc::new(comm), memory, unit, hints);
            if made.is_err() {
                engine.close_communicator(context);
            }
            made
        });
        if made.is_err() {
            engine.registry().detach(&events);
        }
        made
    }

    /// Makes the window on its own communicator.
    ///
    /// What this member has allocated is freed only where all members have learned that there will be no window. Where
    /// it has failed alone (a member has died, say), others may have one, and access that memory.
    fn among(engine: &Engine, comm: Arc<Comm>, memory: Memory, unit: u64, hints: &Info) -> Result<Self> {
        let members = comm.size() as usize;
        let mut extents = Vec::new();
        let contiguous = matches!(memory, Memory::Shared(_)) && !has_own_parts(hints);
        let own = Self::own(engine, &comm, memory, hints, &mut extents);
        let homes = Self::homes(engine, &comm, contiguous);
        let meeting = Meeting::of(engine, &comm);
        let mut all = meeting.exchange(meeting.member((memory, unit), &own, &homes))?;
        let ready = all.iter().all(|member| member.ready);
        let (ready, placed) = match &homes {
            // One area for all, one part behind the other, allocated by the first; each reserves its own part.
            Ok(homes) if ready && contiguous => {
                meeting.lay_out(&homes[0].0, numa_node(hints), &mut all, &mut extents)?
            }
            _ => (ready, extents.iter().any(Extent::is_placed)),
        };
        if !ready {
            give_back(engine, extents);
            if matches!(memory, Memory::Shared(_)) && all.iter().any(|member| !member.shares) {
                return Err(UNSHARED);
            }
            let others = all.iter().position(|member| !member.ready);
            return Err(own.err().or(homes.err()).unwrap_or_else(|| match others {
                Some(ill) => {
                    no_room(&format!("a window of {members} ranks (rank {ill} of the communicator has none)"))
                }
                None => no_room("the parts of a shared window"),
            }));
        }
        let homes = homes?;
        let control = Self::control(engine, &homes[0].0, all[0].control, members)?;
        let attached = Served::default();
        let mut kept = vec![];
        if let Memory::Own { base, bytes } = memory {
            lock(&attached).push((base as u64, bytes as u64));
            kept.push(KeptMemory::new(base as u64, bytes as u64));
        }
        let service = match meeting.all_can_access_all(&all)? {
            true => None,
            false => Some(Service::start(engine, comm.clone(), attached.clone())?),
        };
        let mut hints = hints.clone();
        if !placed {
            // Not in force, then: there may be no such key.
            let _ = hints.delete(NUMA_NODE);
        }
        let target = |((world, member), home): ((u32, &Member), (HomeJob, BlockLocks))| {
            TargetMemory::new(engine, world, member.memory, home)
        };
        let targets = comm.group().iter().zip(&all).zip(homes).map(target).collect();
        Ok(Self {
            link: Link::new(engine, comm.group(), None),
            flavor: memory.flavor(),
            targets,
            control,
            epochs: Epochs::new(members, engine.is_shared())?,
            extents,
            attached,
            kept: Mutex::new(kept),
            tables: Mutex::default(),
            service,
            exchange: ConditionalLock::default(),
            seen_posts: (0..members).map(|_| AtomicU32::new(0)).collect(),
            stores: StoreFlag::default(),
            calls_before_poll: AtomicU32::new(0),
            no_locks: AtomicBool::new(has_no_locks(&hints)),
            seen_completions: AtomicU32::new(0),
            name: Mutex::default(),
            info: Mutex::new(hints),
            attributes: Attributes::default(),
            errhandler: ErrhandlerSlot::default(),
            comm: comm.clone(),
        })
    }

    /// The words of a window of so many `members`, which the member of rank 0 has allocated at `place` in the shared
    /// heap of its job.
    fn control(engine: &Engine, home: &HomeJob, place: u64, members: usize) -> Result<Control> {
        let words = Heap::of(home.memory(engine))
            .zip(Control::bytes(members))
            .and_then(|(heap, bytes)| heap.at(place, bytes as u64));
        let words = words
            .ok_or_else(|| Error::Intern("the words of a window lie outside of the shared heap".into()))?;
        // SAFETY: the member of rank 0 has allocated so many bytes for this window, and zeroed them before it said
        // where; they are freed when all members have left (`Window::free`).
        Ok(unsafe { Control::over(words, members) })
    }

    /// The jobs in whose shared heaps the members' memory lies, with the locks there: each in that of its own job, or,
    /// if their parts lie one behind the other, in that of the member of rank 0.
    fn homes(engine: &Engine, comm: &Comm, contiguous: bool) -> Result<Homes> {
        let first = comm.group().world_rank(0);
        let home = |world| {
            let home = engine.home_of(if contiguous { first } else { world })?;
            let locks = BlockLocks::of(engine, &home)?;
            Ok((home, locks))
        };
        comm.group().iter().map(home).collect()
    }

    /// What this member brings: where its memory begins, and where the words of the window lie if it has rank 0.
    fn own(
        engine: &Engine,
        comm: &Comm,
        memory: Memory,
        hints: &Info,
        extents: &mut Vec<Extent>,
    ) -> Result<(Start, u64)> {
        let heap = Heap::of(engine.job()).ok_or_else(|| no_room("a window"))?;
        let mut allocate = |bytes: usize, align: usize, node: Option<u32>| -> Result<u64> {
            let extent = match node.filter(|_| bytes > 0) {
                Some(node) => heap.allocate_on(node, bytes, align),
                None => heap.allocate(bytes, align),
            };
            let extent = extent.ok_or_else(|| no_room(&format!("{bytes} bytes of a window")))?;
            // SAFETY: the extent is ours, at least so long, and nobody else knows it yet.
            unsafe { extent.addr().as_ptr().write_bytes(0, bytes) };
            let place = heap.place_of(extent.addr().as_ptr(), bytes.max(1));
            extents.push(extent);
            place.ok_or_else(|| Error::Intern("an extent lies outside of the shared heap".into()))
        };
        let (align, node) = (alignment(hints), numa_node(hints));
        let start = match memory {
            Memory::Own { base, bytes } => match heap.place_of(base, bytes).filter(|_| bytes > 0) {
                Some(place) => Start::Place(place),
                None => Start::Address(base.expose_provenance() as u64),
            },
            Memory::Allocated(bytes) => Start::Place(allocate(bytes, align, node)?),
            Memory::Shared(bytes) if has_own_parts(hints) => {
                Start::Place(allocate(bytes, align.max(PAGE), node)?)
            }
            // Laid out when all sizes are known.
            Memory::Shared(_) => Start::Place(0),
            Memory::Dynamic => Start::Bottom,
        };
        let control = if comm.rank() == 0 {
            let bytes = Control::bytes(comm.size() as usize).ok_or_else(|| no_room("so many ranks"))?;
            allocate(bytes, APART, None)?
        } else {
            0
        };
        Ok((start, control))
    }
}

/// The members of a window as it is made: what they tell each other, each the same number of times.
struct Meeting<'m> {
    engine: &'m Engine,
    comm: &'m Comm,
    transport: BlockingTransport<'m>,
}

impl<'m> Meeting<'m> {
    fn of(engine: &'m Engine, comm: &'m Comm) -> Self {
        Self { engine, comm, transport: BlockingTransport::new(engine, comm, Purpose::Create) }
    }

    fn rank(&self) -> usize {
        self.comm.rank() as usize
    }

    /// What the caller tells of its memory: what [`Window::own`] and [`Window::homes`] have made of it.
    fn member(
        &self,
        (memory, unit): (Memory, u64),
        own: &Result<(Start, u64)>,
        homes: &Result<Homes>,
    ) -> Member {
        let (start, control) = own.as_ref().map_or((Start::Bottom, 0), |own| *own);
        let home = homes.as_ref().ok().map(|homes| &homes[self.rank()].0);
        let heap = home.and_then(|home| Heap::of(home.memory(self.engine)));
        let heap = heap.map_or(0, |heap| heap.region().base().as_ptr() as u64);
        Member {
            memory: MemberMemory { start, bytes: memory.bytes() as u64, unit, heap, salt: salt(self.engine) },
            control,
            probe: probe_address(),
            ready: own.is_ok() && homes.is_ok(),
            shares: Heap::of(self.engine.job()).is_some(),
            placed: false,
        }
    }

    /// Tells `own` to all members. Returns what each of them tells.
    ///
    /// # Errors
    /// Those of the messages.
    fn exchange(&self, own: Member) -> Result<Vec<Member>> {
        let mut all = Scratch::of(self.comm.size() as usize * MEMBER)?;
        all[self.rank() * MEMBER..][..MEMBER].copy_from_slice(&own.encode());
        self.transport.run(allgather(&self.transport, &mut all))?;
        Ok(all.chunks_exact(MEMBER).map(Member::decode).collect())
    }

    /// Gives each member its part of one area, on a NUMA node that it may ask for. Returns whether there is room, to
    /// all members the same answer, and whether the caller's part lies on that node.
    ///
    /// # Errors
    /// Those of the messages.
    fn lay_out(
        &self,
        home: &HomeJob,
        node: Option<u32>,
        all: &mut [Member],
        extents: &mut Vec<Extent>,
    ) -> Result<(bool, bool)> {
        let heap = Heap::of(home.memory(self.engine)).ok_or_else(|| no_room("a window"))?;
        let sum = all.iter().try_fold(0_u64, |sum, member| sum.checked_add(member.memory.bytes));
        let total = sum.and_then(|sum| usize::try_from(sum).ok());
        let own = self.rank();
        let mut area = 0;
        if own == 0 {
            let extent = total.and_then(|total| heap.allocate_space(total, PAGE));
            area = extent.as_ref().and_then(|extent| heap.place_of(extent.addr().as_ptr(), 1)).unwrap_or(0);
            extents.extend(extent);
        }
        let part = MemberMemory { start: Start::Place(area), ..all[own].memory };
        let answers = self.exchange(Member { memory: part, ..all[own] })?;
        let Start::Place(area @ 1..) = answers[0].memory.start else { return Ok((false, false)) };
        let mut at = area;
        for member in all.iter_mut() {
            member.memory.start = Start::Place(at);
            at = at.saturating_add(member.memory.bytes);
        }
        // Each member takes the memory of the pages that begin in its part: they are near to it.
        let Start::Place(from) = all[own].memory.start else { return Ok((true, false)) };
        let (ready, placed) = heap.reserve(from, all[own].memory.bytes, own == 0, node);
        let answers = self.exchange(Member { ready, placed, ..all[own] })?;
        if let Some(extent) = extents.last_mut()
            && own == 0
            && answers.iter().any(|member| member.placed)
        {
            extent.set_placed();
        }
        Ok((answers.iter().all(|member| member.ready), placed))
    }

    /// Whether each member can access the memory of every other one by itself: what is private, if the kernel allows
    /// it. All members get the same answer.
    ///
    /// # Errors
    /// Those of the messages.
    fn all_can_access_all(&self, all: &[Member]) -> Result<bool> {
        let private = all.iter().any(|member| match member.memory.start {
            Start::Place(_) => false,
            Start::Address(_) => member.memory.bytes > 0,
            Start::Bottom => true,
        });
        let group = self.comm.group();
        let threads = self.engine.job().are_threads() && !self.engine.has_guests(group.iter());
        if !private || all.len() < 2 || threads {
            return Ok(true);
        }
        // Each tries its neighbour.
        let (own, next) = (self.rank(), (self.rank() + 1) % all.len());
        let ready = self.engine.may_read_memory(group.world_rank(next as u32), all[next].probe);
        let answers = self.exchange(Member { ready, ..all[own] })?;
        Ok(answers.iter().all(|member| member.ready))
    }
}

/// Gives back what a member has allocated for a window.
pub(super) fn give_back(engine: &Engine, extents: Vec<Extent>) {
    if let Some(heap) = Heap::of(engine.job()) {
        extents.iter().for_each(|extent| heap.free(extent));
    }
}
