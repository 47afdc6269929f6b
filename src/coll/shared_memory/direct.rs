//! Collectives of long data: each member says where its data lies, and where it has room, and the members copy between
//! each other's memory. There is one copy of each byte, where messages and the bulk take two.
//!
//! Where each has data for others, the owner of the data writes it: what a member has just stored lies in its cache,
//! from where it is written faster than others fetch it. Others read where one member has the data for all, so that all
//! copy at once, where there is no one run of bytes to write to, and what they reduce.
//!
//! - **Direct rule 1.** What a member exposes, it leaves alone until the members have met, but for what the operation
//!   says; then its call may return.
//! - **Direct rule 2.** Between two meetings, a byte that one member writes no other reads or writes.
//!
//! - **Direct rule 3.** A member that waits for the others in vain, because one has died, leaves once no other copies;
//!   and a member that is about to copy looks first whether one has died.
//!
//! What a member reads out of a slot is an address, which the kernel checks in the process that it belongs to: a peer
//! that writes garbage spoils its own memory, or that of its job.

use super::{AlgorithmKind, Hold, OperationKey, TeamGuard};
use crate::arch::copy_slice;
use crate::coll::buffer::InputBuffer;
use crate::coll::intracomm::check_block;
use crate::comm::Comm;
use crate::engine::{Contents, Engine, PEER_ADDRESS, PeerAddress, probe_address};
use crate::error::{Error, Result};
use crate::events::Collective;
use crate::heap::{BufferUse, ExposedPlaces};
use core::ops::Range;

/// Bytes of a broadcast from which the root writes a share of it:
/// less is not worth a system call for each of the others.
const SHARE: usize = 4096;

/// What a member exposes: what others read, and what they write.
pub(super) const RUNS: usize = 2;
pub(super) const SEND: usize = 0;
pub(super) const RECV: usize = 1;

/// Where the runs of all members lie.
pub(super) struct Exposed<'a> {
    engine: &'a Engine,
    comm: &'a Comm,
    runs: Vec<[PeerAddress; RUNS]>,
    /// What keeps the caller's runs where they are, if they have been remapped.
    places: Option<ExposedPlaces>,
    /// The caller's run that others write to, if it has been remapped.
    written: Option<ExposedRun>,
    /// Whether what a member sends has changed, as far as its bytes were looked at.
    has_changed: bool,
}

/// What a member shows when the members look whether their runs lie in the shared heap.
pub(super) struct Look {
    what: OperationKey,
    own: [ExposedRun; RUNS],
    has_changed: bool,
}

/// A run of bytes of the caller: where it begins, and its length.
pub(super) type ExposedRun = (*const u8, usize);

/// How others use a run: they find in it what the caller has there.
const AS_IT_IS: BufferUse = BufferUse { is_sent: true, is_quiet: false };

/// None: nobody else uses it.
pub(super) const NO_RUN: ExposedRun = (core::ptr::null(), 0);

pub(super) fn run_of(bytes: &[u8]) -> ExposedRun {
    (bytes.as_ptr(), bytes.len())
}

impl Exposed<'_> {
    /// Fills `to` with bytes of a member's run, from byte `at` on.
    pub(super) fn read(&self, member: usize, run: usize, at: usize, to: &mut [u8]) -> Result<()> {
        let world = self.comm.world_rank_of(member as i32);
        self.copy(|| {
            // SAFETY: `to` is borrowed.
            unsafe { self.engine.read_memory(world, self.runs[member][run], at, to.as_mut_ptr(), to.len()) }
        })
    }

    /// The `len` bytes of a member's run from byte `at` on, which lies in the shared heap.
    pub(super) fn view(&self, member: usize, run: usize, at: usize, len: usize) -> Result<&[u8]> {
        let here = self.engine.view_memory(self.runs[member][run], at, len).ok_or_else(|| {
            Error::Other(format!(
                "rank {member} says that its data lies at a place that the shared heap does not have"
            ))
        })?;
        // SAFETY: the run lies in the shared heap, which is mapped here; nobody writes to it before the members have
        // met, but for what the operation says (direct rules 1 and 2).
        Ok(unsafe { core::slice::from_raw_parts(here, len) })
    }

    /// Whether all members have a run that lies in the shared heap.
    pub(super) fn are_in_heap(&self, run: usize) -> bool {
        self.runs.iter().all(|runs| matches!(runs[run], PeerAddress::Place(_)))
    }

    /// Whether no member has a run that lies elsewhere.
    pub(super) fn are_nowhere_else(&self, run: usize) -> bool {
        self.runs.iter().all(|runs| matches!(runs[run], PeerAddress::Place(_) | PeerAddress::Address(0)))
    }

    /// Whether a member has one run of bytes for what others write.
    fn has_room(&self, member: usize) -> bool {
        self.runs[member][RECV] != PeerAddress::Address(0)
    }

    /// Writes `from` into a member's run, from byte `at` on.
    pub(super) fn write(&self, member: usize, run: usize, at: usize, from: &[u8]) -> Result<()> {
        let world = self.comm.world_rank_of(member as i32);
        self.copy(|| {
            // SAFETY: `from` is borrowed; the member has exposed the run.
            unsafe { self.engine.write_memory(world, self.runs[member][run], at, from.as_ptr(), from.len()) }
        })
    }

    /// Fetches what others have written to the caller's run, all but its bytes `own`. All have met.
    pub(super) fn fetch_written(&self, own: Range<usize>) {
        let Some((places, (addr, len))) = self.places.as_ref().zip(self.written) else { return };
        for written in [0..own.start, own.end..len] {
            // SAFETY: a buffer of the operation, which the program leaves alone; others have written to it.
            unsafe { places.buffers().fetch_edges(addr.cast_mut(), len, written) };
        }
    }

    /// Copies, unless a member has died (direct rule 3).
    pub(super) fn copy(&self, copy: impl FnOnce() -> Result<()>) -> Result<()> {
        let own = self.engine.job().roster().entry(self.engine.rank());
        own.begin_copying();
        let copied = self.engine.check_before_copying(self.comm.collective()).and_then(|()| copy());
        own.end_copying();
        // The memory of a process is gone before others hear of its death.
        copied.map_err(|error| self.engine.trouble_by_now(self.comm.p2p()).unwrap_or(error))
    }
}

impl<'a, H: Hold> TeamGuard<'a, H> {
    /// Whether `bytes` bytes are so many that they may be copied in one step.
    #[inline]
    #[must_use]
    pub fn is_long(&mut self, bytes: usize) -> bool {
        bytes >= self.engine.config().coll_direct_from() && bytes >= self.capacity().least_in_one_step()
    }

    /// Whether the members perform an operation in one step; `bytes` as for [`super::TeamCapacity::algorithm_kind`].
    /// All get the same answer.
    ///
    /// # Errors
    /// Those of waiting.
    pub async fn is_one_step(&mut self, operation: Collective, bytes: usize) -> Result<bool> {
        Ok(self.is_long(bytes)
            && self.capacity().algorithm_kind(operation, bytes) == AlgorithmKind::OneStep
            && self.may_copy().await?)
    }

    /// Whether the kernel allows the members to copy out of each other's memory. All get the same answer.
    pub(super) async fn may_copy(&mut self) -> Result<bool> {
        match self.team().direct {
            Some(direct) => Ok(direct),
            // Apart, as all that is rare or long: of futures the longest decides how much memory an operation has.
            None => Box::pin(self.try_memory()).await,
        }
    }

    /// Each member tries the memory of the next.
    #[cold]
    async fn try_memory(&mut self) -> Result<bool> {
        let (rank, size) = (self.rank(), self.size());
        let probes = self.exchange_numbers(0xfe, probe_address()).await?;
        let next = (rank + 1) % size;
        let may = self.engine.may_read_memory(self.comm.world_rank_of(next as i32), probes[next]);
        let all = self.exchange_numbers(0xfd, u64::from(may)).await?.into_iter().all(|may| may == 1);
        self.team().direct = Some(all);
        Ok(all)
    }

    /// Has all members know a number of each.
    async fn exchange_numbers(&mut self, kind: u8, own: u64) -> Result<Vec<u64>> {
        self.in_slots(OperationKey::numbered(kind, 0, 8), own.to_ne_bytes(), u64::from_ne_bytes).await
    }

    /// A round in which each member writes a few bytes, and sees those of all.
    async fn in_slots<const N: usize, T>(
        &mut self,
        what: OperationKey,
        own: [u8; N],
        decode: impl Fn([u8; N]) -> T,
    ) -> Result<Vec<T>> {
        wait!(self, self.begin()?);
        self.write_slot(what, |payload| payload[..N].copy_from_slice(&own));
        self.arrive(|_| {})?;
        wait!(self, self.completion());
        let size = self.size();
        let all = (0..size).map(|member| {
            self.read_slot(member, what, |payload| decode(core::array::from_fn(|at| payload[at])))
        });
        let all: Result<Vec<T>> = all.collect();
        self.leave();
        all.map_err(|error| self.fail_with(error))
    }

    /// Where a run of the caller lies for others, and whether because it has been remapped: it is now, if it has been
    /// used often enough.
    pub(super) fn place_of(&self, run: ExposedRun) -> (PeerAddress, bool) {
        let address = self.engine.peer_address(run.0, run.1);
        // SAFETY: of a buffer of the operation, which the caller leaves alone until all have met, but for what the
        // operation says (direct rule 1). Its edges are those that the caller has of it, also where others write.
        let place = || unsafe { self.engine.remapped_place(run.0, run.1, AS_IT_IS) };
        let remapped = if matches!(address, PeerAddress::Address(1..)) { place() } else { None };
        (remapped.map_or(address, PeerAddress::Place), remapped.is_some())
    }

    /// Exposes the caller's runs, and returns where those of all lie.
    pub(super) async fn expose(
        &mut self,
        what: OperationKey,
        own: [ExposedRun; RUNS],
    ) -> Result<Exposed<'a>> {
        self.expose_saying(what, own, false).await
    }

    /// The same; the caller says whether what it sends has changed.
    async fn expose_saying(
        &mut self,
        what: OperationKey,
        own: [ExposedRun; RUNS],
        has_changed: bool,
    ) -> Result<Exposed<'a>> {
        let (engine, comm) = (self.engine, self.comm);
        let mut bytes = [0; RUNS * PEER_ADDRESS + 1];
        let (mut places, mut written) = (None, None);
        for (run, room) in own.into_iter().zip(bytes.chunks_exact_mut(PEER_ADDRESS)) {
            let (address, is_remapped) = self.place_of(run);
            if is_remapped {
                places = places.or_else(|| Some(engine.remapped_buffers()?.expose()));
                written = Some(run).filter(|run| *run == own[RECV]);
            }
            room.copy_from_slice(&address.encode());
        }
        bytes[RUNS * PEER_ADDRESS] = u8::from(has_changed);
        let decode = |bytes: [u8; RUNS * PEER_ADDRESS + 1]| {
            let run = |i: usize| PeerAddress::decode(core::array::from_fn(|at| bytes[i * PEER_ADDRESS + at]));
            ([run(SEND), run(RECV)], bytes[RUNS * PEER_ADDRESS] != 0)
        };
        let shown = self.in_slots(what, bytes, decode).await?;
        let has_changed = shown.iter().any(|(_, has_changed)| *has_changed);
        let runs = shown.into_iter().map(|(runs, _)| runs).collect();
        Ok(Exposed { engine, comm, runs, places, written, has_changed })
    }

    /// Whether the members look, at an operation that takes rounds else, whether their runs lie in the shared heap, so
    /// that it can be done in one step. All get the same answer. `sent`, if there is any, is what the caller sends: if
    /// that has changed, and is short, rounds move it between the caches in less time.
    pub(super) fn look(
        &mut self,
        (operation, what): (Collective, OperationKey),
        own: [ExposedRun; RUNS],
        sent: Option<ExposedRun>,
    ) -> Option<Look> {
        let least = self.capacity().least_changed_in_heap(operation);
        let has_changed = sent.filter(|(_, len)| *len < least).is_some_and(|(addr, len)| {
            // SAFETY: what the caller sends may be read until the operation has returned.
            unsafe { self.engine.note_contents(addr, len) == Contents::Changed }
        });
        // All members have seen the same operations of each name, and what came of them.
        let is_due = self.team().looks(what.without_root()).is_due();
        if !is_due {
            // SAFETY: of buffers of the operation, as for `place_of`.
            own.into_iter().for_each(|run| unsafe { self.engine.count_use(run.0, run.1) });
        }
        is_due.then_some(Look { what, own, has_changed })
    }

    /// Exposes the caller's runs, if the operation is done in one step: if `fits` finds that of those of all members,
    /// and nothing has changed. All get the same answer.
    pub(super) async fn expose_in_heap(
        &mut self,
        Look { what, own, has_changed }: Look,
        fits: impl FnOnce(&Exposed<'a>) -> bool,
    ) -> Result<Option<Exposed<'a>>> {
        let exposed = self.expose_saying(what, own, has_changed).await?;
        let fits = fits(&exposed) && !exposed.has_changed;
        self.team().looks(what.without_root()).note(!fits);
        Ok(fits.then_some(exposed))
    }

    /// Waits until all members have done their part, and returns whether all have succeeded.
    pub(super) async fn meet(&mut self, done: Result<()>) -> Result<()> {
        let well = self.exchange_numbers(0xfc, u64::from(done.is_ok())).await?;
        done.map_err(|error| self.fail_with(error))?;
        match well.iter().position(|well| *well != 1) {
            None => Ok(()),
            Some(rank) => {
                // Perhaps a member has died, or the communicator is revoked,
                // of which the other one has taken notice before us.
                let failed = self.engine.trouble_by_now(self.comm.p2p()).unwrap_or_else(|| {
                    Error::Other(format!(
                        "rank {rank} could not copy from or to the memory of another rank in this collective"
                    ))
                });
                Err(self.fail_with(failed))
            }
        }
    }

    /// The other members, beginning behind the caller, so that not all ask the same one first.
    pub(super) fn others(&self) -> impl Iterator<Item = usize> + use<H> {
        let (rank, size) = (self.rank(), self.size());
        (1..size).map(move |step| (rank + step) % size)
    }

    /// A broadcast in one step, if it is one.
    pub(super) async fn bcast_direct(
        &mut self,
        what: OperationKey,
        data: &mut [u8],
        root: usize,
    ) -> Result<bool> {
        if !self.is_one_step(Collective::Bcast, data.len()).await? {
            return Ok(false);
        }
        let exposed = self.expose(what, [run_of(data); RUNS]).await?;
        self.bcast_exposed(exposed, data, root).await.map(|()| true)
    }

    /// The same of what would take rounds else, for which there is room; `false` if the data do not all lie in the
    /// shared heap.
    pub(super) async fn bcast_in_heap(
        &mut self,
        what: OperationKey,
        data: &mut [u8],
        root: usize,
    ) -> Result<bool> {
        if self.capacity().algorithm_kind(Collective::Bcast, data.len()) != AlgorithmKind::OneStepInHeap {
            return Ok(false);
        }
        let runs = [run_of(data); RUNS];
        let sent = (self.rank() == root).then_some(runs[SEND]);
        let Some(look) = self.look((Collective::Bcast, what), runs, sent) else { return Ok(false) };
        let fits = |exposed: &Exposed<'_>| exposed.are_in_heap(SEND);
        let Some(exposed) = self.expose_in_heap(look, fits).await? else { return Ok(false) };
        self.bcast_exposed(exposed, data, root).await.map(|()| true)
    }

    /// A broadcast of members that have exposed their `data`. All copy at once, equally much: the root writes the
    /// beginning to each of the others, which read the rest.
    async fn bcast_exposed(&mut self, exposed: Exposed<'_>, data: &mut [u8], root: usize) -> Result<()> {
        let share = (data.len() / self.size()) & !63;
        let share = if share < SHARE { 0 } else { share };
        let done = if self.rank() != root {
            exposed.read(root, SEND, share, &mut data[share..])
        } else if share > 0 {
            self.others().try_for_each(|to| exposed.write(to, RECV, 0, &data[..share]))
        } else {
            Ok(())
        };
        self.meet(done).await?;
        exposed.fetch_written(share..share.max(data.len()));
        Ok(())
    }

    /// An allgather: each writes its own block into all others' memory. The caller's own is `own`, or in `all` already:
    /// `sent` bytes, as in [`Self::allgather`]. The members know that it is done in one step
    /// ([`Self::copies_equal_blocks`]).
    ///
    /// # Errors
    /// Those of waiting and of the kernel; [`Error::Other`] where members disagree about the operation.
    pub async fn allgather_direct(&mut self, own: Option<&[u8]>, all: &mut [u8], sent: usize) -> Result<()> {
        let what = OperationKey::new(Collective::Allgather, 0, sent);
        let exposed = self.expose(what, [NO_RUN, run_of(all)]).await?;
        self.allgather_exposed(exposed, own, all).await
    }

    /// The same, of members that have exposed `all`.
    pub(super) async fn allgather_exposed(
        &mut self,
        exposed: Exposed<'_>,
        own: Option<&[u8]>,
        all: &mut [u8],
    ) -> Result<()> {
        let block = all.len() / self.size();
        let at = self.rank() * block;
        if let Some(own) = own {
            check_block(own, block).map_err(|error| self.fail_with(error))?;
            copy_slice(own, &mut all[at..][..block]);
        }
        let own = own.unwrap_or(&all[at..][..block]);
        let done = self.others().try_for_each(|to| exposed.write(to, RECV, at, own));
        self.meet(done).await?;
        exposed.fetch_written(at..at + block);
        Ok(())
    }

    /// An allgather of blocks of different lengths, `total` bytes together, of which the caller's has `block`, if `own`
    /// is so long: each reads the others', which may lie elsewhere at every member, into what `place` gives. The
    /// members know that it is done in one step.
    ///
    /// # Errors
    /// As for [`Self::allgather_direct`], and those of `place`.
    pub async fn allgatherv_direct(
        &mut self,
        own: &[u8],
        (block, total): (usize, usize),
        mut place: impl FnMut(usize, &mut dyn FnMut(&mut [u8]) -> Result<()>) -> Result<()>,
    ) -> Result<()> {
        let what = OperationKey::new(Collective::Allgather, 0, total);
        let exposed = self.expose(what, [run_of(own), NO_RUN]).await?;
        if own.len() != block {
            let error = Error::Truncate { sent: own.len() as u64, room: block as u64 };
            return Err(self.fail_with(error));
        }
        let mut read = |from: usize| place(from, &mut |room| exposed.read(from, SEND, 0, room));
        let done = self.others().try_for_each(&mut read);
        self.meet(done).await
    }

    /// A gather of blocks of equal length, for which every member calls this: the others write their blocks into `all`,
    /// where the root has one run of bytes for them; else it reads them, each into what `place` gives. The root's own
    /// block is `own`, or in its place already: if that is empty, or if there is no `all`.
    ///
    /// # Errors
    /// Those of waiting, of the kernel and of `place`.
    pub async fn gather_direct(
        &mut self,
        own: &[u8],
        all: Option<&mut [u8]>,
        root: usize,
        block: usize,
        mut place: impl FnMut(usize, &mut dyn FnMut(&mut [u8]) -> Result<()>) -> Result<()>,
    ) -> Result<bool> {
        if !self.is_one_step(Collective::Gather, block).await? {
            return Ok(false);
        }
        let what = OperationKey::new(Collective::Gather, root, block);
        let run = all.as_ref().map_or(NO_RUN, |all| run_of(all));
        let exposed = self.expose(what, [run_of(own), run]).await?;
        let written = exposed.has_room(root);
        let rank = self.rank();
        let done = match all {
            _ if rank != root && written => exposed.write(root, RECV, rank * block, own),
            _ if rank != root => Ok(()),
            Some(all) => {
                copy_slice(own, &mut all[rank * block..][..own.len()]);
                Ok(())
            }
            None => {
                self.others().try_for_each(|from| place(from, &mut |room| exposed.read(from, SEND, 0, room)))
            }
        };
        self.meet(done).await?;
        exposed.fetch_written(rank * block..(rank + 1) * block);
        Ok(true)
    }

    /// A scatter of blocks of equal length, for which every member calls this. `all`, at the root, has all blocks;
    /// `own`, elsewhere, has room for the caller's, which it reads while the root does `meanwhile`.
    ///
    /// # Errors
    /// Those of waiting, of the kernel and of `meanwhile`.
    pub async fn scatter_direct(
        &mut self,
        all: &[u8],
        own: &mut [u8],
        root: usize,
        block: usize,
        meanwhile: impl FnOnce() -> Result<()>,
    ) -> Result<bool> {
        if !self.is_one_step(Collective::Scatter, block).await? {
            return Ok(false);
        }
        let what = OperationKey::new(Collective::Scatter, root, block);
        let rank = self.rank();
        let exposed = self.expose(what, [run_of(all), NO_RUN]).await?;
        let done = if rank == root { meanwhile() } else { exposed.read(root, SEND, rank * block, own) };
        self.meet(done).await.map(|()| true)
    }

    /// An alltoall of blocks of equal length: `all` has the caller's block for each member. Each writes into the
    /// members' `room`, which is one run of bytes for all blocks; a member that has none reads, each block into what
    /// `place` gives. The members know that it is done in one step.
    ///
    /// # Errors
    /// Those of waiting, of the kernel and of `place`.
    pub async fn alltoall_direct(
        &mut self,
        all: &[u8],
        room: *const u8,
        block: usize,
        place: impl FnMut(usize, &mut dyn FnMut(&mut [u8]) -> Result<()>) -> Result<()>,
    ) -> Result<()> {
        let what = OperationKey::new(Collective::Alltoall, 0, block);
        let room_bytes = if room.is_null() { 0 } else { all.len() };
        let exposed = self.expose(what, [run_of(all), (room, room_bytes)]).await?;
        self.alltoall_exposed(exposed, all, room, block, place).await
    }

    /// The same, of members that have exposed `all` and `room`.
    pub(super) async fn alltoall_exposed(
        &mut self,
        exposed: Exposed<'_>,
        all: &[u8],
        room: *const u8,
        block: usize,
        mut place: impl FnMut(usize, &mut dyn FnMut(&mut [u8]) -> Result<()>) -> Result<()>,
    ) -> Result<()> {
        let at = self.rank() * block;
        let mut done = self
            .others()
            .filter(|to| exposed.has_room(*to))
            .try_for_each(|to| exposed.write(to, RECV, at, &all[to * block..][..block]));
        if room.is_null() {
            let mut read = |from: usize| place(from, &mut |room| exposed.read(from, SEND, at, room));
            done = done.and_then(|()| self.others().try_for_each(&mut read));
        }
        self.meet(done).await?;
        exposed.fetch_written(at..at + block);
        Ok(())
    }
}

/// The one run of bytes that a block for each of `size` members are, if they are.
pub(in crate::coll) fn one_run<'a>(
    size: usize,
    block: usize,
    piece: impl Fn(usize) -> InputBuffer<'a>,
) -> Option<&'a [u8]> {
    if block == 0 {
        // Of no bytes the program may give no address.
        return Some(&[]);
    }
    let first = piece(0).run()?;
    let follows = |r: usize| piece(r).run() == Some(first.wrapping_add(r * block));
    // SAFETY: buffer rule 1 holds for each piece, and the pieces are this run.
    (1..size).all(follows).then(|| unsafe { core::slice::from_raw_parts(first, size * block) })
}
