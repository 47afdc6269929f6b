//! A window: memory of each member of a communicator that the other members may access.

use super::accumulate::{Update, compare_and_swap};
use super::attached::RegionTable;
use super::control::{Control, StoreFlag};
use super::create::give_back;
use super::epoch::Epochs;
use super::hints::has_no_locks;
use super::memory::TargetMemory;
use super::remote::{NO_MEMORY, Remote, Served, Service};
use super::transfer::{TargetElements, check_room, get, put};
use super::window_events::OneSided;
use crate::coll::buffer::{InputBuffer, OutputBuffer};
use crate::coll::{BlockingTransport, Purpose, barrier, blocking_barrier};
use crate::comm::{Attributes, Comm, ErrhandlerSlot, Group, Link, lock};
use crate::datatype::Datatype;
use crate::datatype::op::Op;
use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::events::RmaOperation;
use crate::heap::{Extent, Heap, KeptMemory};
use crate::info::Info;
use crate::limits::PAGE;
use crate::scratch::Scratch;
use crate::sync::{Arc, AtomicBool, AtomicU32, ConditionalLock, Mutex, Ordering};

/// The memory that a member gives to a new window.
#[derive(Debug, Clone, Copy)]
pub enum Memory {
    /// The program's own (MPI_Win_create).
    Own {
        /// Its address; any, if there are no bytes.
        base: *mut u8,
        /// Its bytes.
        bytes: usize,
    },
    /// So many bytes of the library's (MPI_Win_allocate).
    Allocated(usize),
    /// So many bytes that all members can load and store (MPI_Win_allocate_shared).
    Shared(usize),
    /// What is attached later (MPI_Win_create_dynamic).
    Dynamic,
}

impl Memory {
    /// Returns how many bytes the window has of it from the start.
    pub fn bytes(self) -> usize {
        match self {
            Self::Own { bytes, .. } | Self::Allocated(bytes) | Self::Shared(bytes) => bytes,
            Self::Dynamic => 0,
        }
    }

    /// Returns how a window of it is made.
    pub fn flavor(self) -> Flavor {
        match self {
            Self::Own { .. } => Flavor::Create,
            Self::Allocated(_) => Flavor::Allocate,
            Self::Shared(_) => Flavor::Shared,
            Self::Dynamic => Flavor::Dynamic,
        }
    }
}

/// How a window was made (MPI_WIN_CREATE_FLAVOR).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flavor {
    /// MPI_Win_create.
    Create,
    /// MPI_Win_allocate.
    Allocate,
    /// MPI_Win_create_dynamic.
    Dynamic,
    /// MPI_Win_allocate_shared.
    Shared,
}

/// The target of an operation.
#[derive(Debug, Clone, Copy)]
pub struct Target<'a> {
    /// Its rank in the window's group.
    pub rank: i32,
    /// Displacement, in units of the target's.
    pub disp: i64,
    /// Elements.
    pub count: usize,
    /// Their type.
    pub datatype: &'a Datatype,
}

/// A member's part of memory that the caller can load and store (MPI_Win_shared_query).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SharedPart {
    /// Its bytes.
    pub bytes: u64,
    /// The member's displacement unit.
    pub unit: u64,
    /// Its address here.
    pub addr: usize,
}

/// A window, as one member has it.
pub struct Window {
    /// Of the members alone: barriers, and nothing of the program's.
    pub(super) comm: Arc<Comm>,
    /// Counts it among what connects processes.
    pub(super) link: Link,
    pub(super) flavor: Flavor,
    pub(super) targets: Box<[TargetMemory]>,
    pub(super) control: Control,
    pub(super) epochs: Epochs,
    /// What this member has allocated: its memory, and the member of rank 0 the words of `control`.
    pub(super) extents: Vec<Extent>,
    /// What this member has put in of its own, or attached: address and bytes.
    pub(super) attached: Served,
    /// The same: others write to it while this member sends it.
    pub(super) kept: Mutex<Vec<KeptMemory>>,
    /// The tables in which it tells the others what it has attached, each a page.
    pub(super) tables: Mutex<Vec<Extent>>,
    /// Serves it to the others, where the kernel lets them not access it.
    pub(super) service: Option<Arc<Service>>,
    /// Whose turn it is to ask a member's service.
    pub(super) exchange: ConditionalLock<()>,
    /// Whether this member has stored into other members' memory since it last made its stores visible.
    pub(super) stores: StoreFlag,
    /// How many more calls, which may be a program's that polls, do not poll.
    pub(super) calls_before_poll: AtomicU32,
    /// Whether the hints say that there are no locks.
    pub(super) no_locks: AtomicBool,
    /// How often each target has been seen to expose its memory to this member.
    pub(super) seen_posts: Box<[AtomicU32]>,
    /// How many completions this member has waited for.
    pub(super) seen_completions: AtomicU32,
    pub(super) name: Mutex<Vec<u8>>,
    pub(super) info: Mutex<Info>,
    /// What users cached on it.
    pub attributes: Attributes,
    /// What happens to errors of functions on it.
    pub errhandler: ErrhandlerSlot,
}

impl core::fmt::Debug for Window {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Window")
            .field("flavor", &self.flavor)
            .field("comm", &self.comm)
            .finish_non_exhaustive()
    }
}

/// The table in a page of a window's.
fn region_table(extent: &Extent) -> &RegionTable {
    // SAFETY: a page of the shared heap that was zeroed before anybody knew it, and is a table until the window is
    // freed (attached rule 1); all accesses are atomic.
    unsafe { extent.addr().cast().as_ref() }
}

impl Window {
    /// Checks that no epoch keeps the window from being freed.
    ///
    /// # Errors
    /// [`Error::RmaSync`] within an epoch.
    pub fn check_free(&self) -> Result<()> {
        self.epochs.check_free()
    }

    /// Frees the window; all members call this.
    ///
    /// # Errors
    /// [`Error::RmaSync`] within an epoch, and then nothing has changed; those of the messages.
    pub fn free(&self, engine: &Engine) -> Result<()> {
        self.epochs.check_free()?;
        // By messages of its own, so that a member in another call on the window does not pass for one that is here.
        let transport = BlockingTransport::tagged(engine, &self.comm, Purpose::Create as i32);
        transport.run(barrier(&transport))?;
        self.service.as_ref().map_or(Ok(()), |service| service.stop(engine))
    }

    /// Gives the memory of a freed window back. Nobody uses the window any more.
    pub fn release(self, engine: &Engine) {
        give_back(engine, self.extents);
        give_back(engine, core::mem::take(&mut *lock(&self.tables)));
        self.link.end(engine);
        engine.close_communicator(self.comm.context);
    }

    pub(super) fn barrier(&self, engine: &Engine) -> Result<()> {
        blocking_barrier(engine, &self.comm)
    }

    /// How it was made.
    #[must_use]
    pub fn flavor(&self) -> Flavor {
        self.flavor
    }

    /// The members.
    #[must_use]
    pub fn group(&self) -> &Group {
        self.comm.group()
    }

    /// The caller's rank among the members.
    #[must_use]
    pub fn rank(&self) -> u32 {
        self.comm.rank()
    }

    /// Number of members.
    #[must_use]
    pub fn size(&self) -> u32 {
        self.comm.size()
    }

    /// The address of the caller's own memory here; 0 for a dynamic window.
    #[must_use]
    pub fn base(&self) -> usize {
        self.part(self.rank()).map_or(0, |part| part.addr)
    }

    /// Bytes and displacement unit of the caller's own memory.
    #[must_use]
    pub fn own_size(&self) -> (u64, u64) {
        let own = &self.targets[self.rank() as usize];
        (own.bytes, own.unit)
    }

    fn part(&self, rank: u32) -> Option<SharedPart> {
        let target = &self.targets[rank as usize];
        let addr = target.address()?;
        Some(SharedPart { bytes: target.bytes, unit: target.unit, addr })
    }

    /// The part of a member that the caller can load and store; that of the first member that has bytes for `None`
    /// (MPI_Win_shared_query with MPI_PROC_NULL). `Ok(None)`: its memory is not mapped here.
    ///
    /// # Errors
    /// [`Error::WinRank`].
    pub fn shared_part(&self, rank: Option<i32>) -> Result<Option<SharedPart>> {
        self.shared_rank(rank).map(|rank| self.part(rank))
    }

    /// The displacement unit of the same member, whose memory need not be mapped here.
    ///
    /// # Errors
    /// [`Error::WinRank`].
    pub fn shared_unit(&self, rank: Option<i32>) -> Result<u64> {
        self.shared_rank(rank).map(|rank| self.targets[rank as usize].unit)
    }

    fn shared_rank(&self, rank: Option<i32>) -> Result<u32> {
        match rank {
            Some(rank) => self.member(rank),
            None => Ok(self.targets.iter().position(|target| target.bytes > 0).unwrap_or(0) as u32),
        }
    }

    /// The name, at most MPI_MAX_OBJECT_NAME − 1 bytes.
    #[must_use]
    pub fn name(&self) -> Vec<u8> {
        lock(&self.name).clone()
    }

    /// Sets the name, cut off at MPI_MAX_OBJECT_NAME − 1 bytes.
    pub fn set_name(&self, name: &[u8]) {
        let name = &name[..name.len().min(crate::abi::MPI_MAX_OBJECT_NAME as usize - 1)];
        *lock(&self.name) = name.to_vec();
        self.comm.events.about().name = String::from_utf8_lossy(name).into_owned();
    }

    /// The hints in force.
    #[must_use]
    pub fn info(&self) -> Info {
        lock(&self.info).clone()
    }

    /// Replaces the hints.
    pub fn set_info(&self, info: Info) {
        // Relaxed: threads that use one window at once order their calls (MPI 5.0 §12.7).
        self.no_locks.store(has_no_locks(&info), Ordering::Relaxed);
        *lock(&self.info) = info;
    }

    /// Lets the others access the `bytes` bytes at `base` (MPI_Win_attach).
    ///
    /// # Errors
    /// [`Error::RmaFlavor`] if the window is not dynamic; [`Error::RmaAttach`] if some of it is attached already;
    /// [`Error::NoMem`] if the shared heap has no room to tell the others.
    pub fn attach(&self, engine: &Engine, base: *mut u8, bytes: u64) -> Result<()> {
        self.check_dynamic()?;
        let at = base.expose_provenance() as u64;
        let mut attached = lock(&self.attached);
        let end = at.saturating_add(bytes);
        if bytes > 0
            && attached
                .iter()
                .any(|(other, more)| *more > 0 && at < other.saturating_add(*more) && *other < end)
        {
            return Err(Error::RmaAttach("some of this memory is attached to the window already"));
        }
        attached.try_reserve(1)?;
        let kept = KeptMemory::new(at, bytes);
        if bytes > 0 {
            self.publish_region(engine, at, bytes)?;
        }
        attached.push((at, bytes));
        lock(&self.kept).push(kept);
        Ok(())
    }

    /// Tells the other members of a region, in a table that has room. Called with `attached` locked (attached rule 1).
    fn publish_region(&self, engine: &Engine, at: u64, bytes: u64) -> Result<()> {
        let mut tables = lock(&self.tables);
        if tables.iter().rev().any(|extent| region_table(extent).add(at, bytes)) {
            return Ok(());
        }
        tables.try_reserve(1)?;
        let room = || Error::NoMem("the shared heap has no room for what is attached to the window".into());
        let heap = Heap::of(engine.job()).ok_or_else(room)?;
        let extent = heap.allocate(PAGE, PAGE).ok_or_else(room)?;
        // SAFETY: the extent is ours, a page at least, and nobody else knows it yet.
        unsafe { extent.addr().as_ptr().write_bytes(0, PAGE) };
        let table = region_table(&extent);
        let place = heap.place_of(extent.addr().as_ptr(), PAGE);
        let place = place.ok_or_else(|| Error::Intern("an extent lies outside of the shared heap".into()))?;
        assert!(table.add(at, bytes), "an empty table has room");
        self.control.member(self.rank()).attached.push(table, place);
        tables.push(extent);
        Ok(())
    }

    /// Takes back what was attached at `base` (MPI_Win_detach).
    ///
    /// # Errors
    /// [`Error::RmaFlavor`] if the window is not dynamic; [`Error::RmaAttach`] if nothing was attached there.
    pub fn detach(&self, base: *const u8) -> Result<()> {
        self.check_dynamic()?;
        let mut attached = lock(&self.attached);
        let found = attached.iter().position(|(at, _)| *at == base as u64);
        let found = found.ok_or(Error::RmaAttach("nothing is attached to the window at this address"))?;
        let (at, bytes) = attached.swap_remove(found);
        let mut kept = lock(&self.kept);
        if let Some(found) = kept.iter().position(|kept| kept.addr() == at) {
            kept.swap_remove(found);
        }
        if bytes > 0 {
            lock(&self.tables).iter().any(|extent| region_table(extent).remove(at, bytes));
        }
        Ok(())
    }

    fn remote<'a>(&'a self, engine: &'a Engine) -> Remote<'a> {
        let (comm, exchange) = (&*self.comm, &self.exchange);
        Remote { engine, comm, by_messages: self.service.is_some(), exchange }
    }

    fn check_dynamic(&self) -> Result<()> {
        if self.flavor == Flavor::Dynamic {
            return Ok(());
        }
        Err(Error::RmaFlavor(
            "memory is attached to and detached from windows of MPI_Win_create_dynamic only",
        ))
    }

    /// The member of that rank.
    ///
    /// # Errors
    /// [`Error::WinRank`] if there is none.
    #[inline(always)]
    pub(super) fn member(&self, rank: i32) -> Result<u32> {
        if self.comm.has_peer(rank) { Ok(rank as u32) } else { Err(self.no_member(rank)) }
    }

    #[cold]
    fn no_member(&self, rank: i32) -> Error {
        Error::WinRank { rank, size: self.comm.peers().size() as i32 }
    }

    /// The address of displacement `disp` in the process of that rank, a member.
    #[must_use]
    pub fn address_at(&self, rank: u32, disp: i64) -> u64 {
        self.targets[rank as usize].remote_address(disp)
    }

    /// Whether an epoch allows to access the memory of that rank, a member, or a fence may begin one.
    #[must_use]
    pub fn allows(&self, rank: u32) -> bool {
        self.epochs.is_fenced() || self.epochs.allows(rank)
    }

    /// Whether the window is between two fences.
    #[must_use]
    pub fn is_fenced(&self) -> bool {
        self.epochs.is_fenced()
    }

    /// Its own communicator.
    #[must_use]
    pub fn comm(&self) -> &Comm {
        &self.comm
    }

    /// Its context id.
    #[must_use]
    pub fn context(&self) -> u32 {
        self.comm.context
    }

    pub(super) fn world(&self, rank: u32) -> u32 {
        self.targets[rank as usize].world
    }

    /// The target's elements, if an epoch allows access.
    #[inline]
    fn elements<'a>(&'a self, engine: &Engine, target: Target<'a>) -> Result<TargetElements<'a>> {
        let rank = self.member(target.rank)?;
        self.epochs.check_access(rank)?;
        let memory = &self.targets[rank as usize];
        let spot = memory.find(engine, target.disp, target.count, target.datatype)?;
        if self.flavor == Flavor::Dynamic {
            self.check_attached(engine, target, rank)?;
        }
        Ok(TargetElements { spot, count: target.count, datatype: target.datatype, locks: &memory.locks })
    }

    /// Checks that the target has attached all that an operation accesses there.
    ///
    /// # Errors
    /// [`Error::RmaOutside`].
    #[cold]
    fn check_attached(&self, engine: &Engine, target: Target<'_>, rank: u32) -> Result<()> {
        let heap = self.targets[rank as usize].home_heap(engine).ok_or(NO_MEMORY)?;
        let table = |place: u64| {
            let at = heap.at(place, PAGE as u64).filter(|_| place.is_multiple_of(PAGE as u64))?;
            // SAFETY: a page of the shared heap, aligned as the heap is, which its member has zeroed and keeps until
            // the window is freed (attached rule 1); all accesses are atomic, so any bytes are a table.
            Some(unsafe { at.cast::<RegionTable>().as_ref() })
        };
        let regions = &self.control.member(rank).attached;
        let covered = |displacement: isize, len: u64| {
            regions.cover(table, target.disp.wrapping_add(displacement as i64).cast_unsigned(), len)
        };
        let (low, high) = target.datatype.data_span(target.count).ok_or(NO_MEMORY)?;
        let mut runs = target.datatype.runs(target.count);
        // What lies between the runs need not be attached.
        if covered(low, (high - low) as u64)
            || runs.all(|(displacement, len)| covered(displacement, len as u64))
        {
            Ok(())
        } else {
            Err(NO_MEMORY)
        }
    }

    /// An operation that may have stored is over.
    fn stored(&self, result: Result<()>) -> Result<()> {
        self.stores.set();
        result
    }

    /// MPI_Put.
    ///
    /// # Errors
    /// [`Error::RmaSync`] outside of an epoch; [`Error::RmaRange`] beyond the target's memory; [`Error::WinRank`];
    /// [`Error::RmaTruncate`] if the origin's elements are more than the target's; those of the kernel where the memory
    /// is private.
    pub fn put(&self, engine: &Engine, origin: InputBuffer<'_>, target: Target<'_>) -> Result<()> {
        let elements = self.elements(engine, target)?;
        let what = || OneSided { operation: RmaOperation::Put, origin: origin.parts(), target };
        self.stored(self.operate(what, || put(self.remote(engine), origin, elements)))
    }

    /// MPI_Get.
    ///
    /// # Errors
    /// As for [`put`](Self::put).
    pub fn get(&self, engine: &Engine, origin: &OutputBuffer<'_>, target: Target<'_>) -> Result<()> {
        let elements = self.elements(engine, target)?;
        let what = || OneSided { operation: RmaOperation::Get, origin: origin.as_input().parts(), target };
        self.operate(what, || get(self.remote(engine), elements, origin))
    }

    /// MPI_Accumulate.
    ///
    /// # Errors
    /// As for [`put`](Self::put); [`Error::Op`] and [`Error::Type`] for an operation or types that accumulates do not
    /// take.
    pub fn accumulate(
        &self,
        engine: &Engine,
        origin: InputBuffer<'_>,
        target: Target<'_>,
        op: &Op,
    ) -> Result<()> {
        let elements = self.elements(engine, target)?;
        check_room(origin.bytes(), elements.bytes())?;
        if origin.bytes() == 0 {
            return Ok(());
        }
        let update = Update::new(op, Some(origin.datatype()), target.datatype)?;
        let what = || OneSided { operation: RmaOperation::Accumulate, origin: origin.parts(), target };
        let new = origin.packed()?;
        self.stored(self.operate(what, || update.perform(self.remote(engine), elements, Some(&new), None)))
    }

    /// MPI_Get_accumulate. No origin for MPI_NO_OP.
    ///
    /// # Errors
    /// As for [`accumulate`](Self::accumulate).
    pub fn get_accumulate(
        &self,
        engine: &Engine,
        origin: Option<InputBuffer<'_>>,
        result: &OutputBuffer<'_>,
        target: Target<'_>,
        op: &Op,
    ) -> Result<()> {
        let elements = self.elements(engine, target)?;
        if elements.bytes() == 0 {
            return Ok(());
        }
        let update = Update::new(op, origin.as_ref().map(InputBuffer::datatype), target.datatype)?;
        let sent = origin.map_or(0, |origin| origin.bytes());
        check_room(sent, elements.bytes())?;
        check_room(elements.bytes(), result.bytes())?;
        let mut old = Scratch::of(elements.bytes())?;
        let described = origin.unwrap_or_else(|| result.as_input());
        let what = || OneSided { operation: RmaOperation::GetAccumulate, origin: described.parts(), target };
        let new = origin.map(|origin| origin.packed()).transpose()?;
        self.stored(self.operate(what, || {
            update.perform(self.remote(engine), elements, new.as_deref(), Some(&mut old))
        }))?;
        result.write(&old)
    }

    /// MPI_Fetch_and_op: one element of a predefined type. `new` and `old` are the element's bytes, packed.
    ///
    /// # Errors
    /// As for [`accumulate`](Self::accumulate).
    pub fn fetch_and_op(
        &self,
        engine: &Engine,
        new: Option<&[u8]>,
        old: &mut [u8],
        target: Target<'_>,
        op: &Op,
    ) -> Result<()> {
        let update = Update::new(op, None, target.datatype)?;
        let elements = self.elements(engine, target)?;
        let origin = (new.map_or(old.as_ptr(), <[u8]>::as_ptr), 1, target.datatype);
        let what = || OneSided { operation: RmaOperation::FetchAndOp, origin, target };
        self.stored(self.operate(what, || update.perform(self.remote(engine), elements, new, Some(old))))
    }

    /// MPI_Compare_and_swap: one element. `new`, `compare` and `old` are the element's bytes.
    ///
    /// # Errors
    /// As for [`put`](Self::put); [`Error::Type`] for a type that is no integer, logical or byte.
    pub fn compare_and_swap(
        &self,
        engine: &Engine,
        values: (&[u8], &[u8]),
        old: &mut [u8],
        target: Target<'_>,
    ) -> Result<()> {
        let basic = target.datatype.uniform();
        let basic = basic.filter(|basic| target.datatype.elements() == 1 && basic.is_discrete());
        let basic = basic.ok_or(Error::Type(
            "MPI_Compare_and_swap takes one integer, logical, multi-language or byte type",
        ))?;
        let elements = self.elements(engine, target)?;
        let origin = (values.0.as_ptr(), 1, target.datatype);
        let what = || OneSided { operation: RmaOperation::CompareAndSwap, origin, target };
        self.stored(
            self.operate(what, || compare_and_swap(self.remote(engine), elements, basic, values, old)),
        )
    }
}
