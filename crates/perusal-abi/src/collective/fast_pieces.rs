//! The fast paths of collectives in which each member has its own amount of data for each other (gatherv, scatterv,
//! alltoallv, allgatherv), and of those among neighbours: pieces of predefined types without gaps. What is said of the
//! others ([`super::fast`]) holds for them.

use super::arguments;
use super::checks::{Peers, Types, Varied, destinations, in_place, members, sources};
use super::fast::{MOST, copy};
use super::performer::Performer;
use crate::arguments::Buffer;
use crate::coll::call::CollectiveOp;
use crate::coll::{Purpose, Transport};
use crate::comm::Comm;
use crate::datatypes::contiguous_size;
use crate::engine::Mode;
use crate::error::Result;
use crate::events::{Collective, fast_path_is_open};
use crate::messages::is_memory;
use crate::team::PAYLOAD;
use core::ffi::c_int;
use smallvec::SmallVec;

/// One of something for each peer. Those of few peers take no memory of the heap.
type PerPeer<T> = SmallVec<[T; 4]>;

/// A piece of the program's memory, which is valid while the call is performed (argument rule 3).
#[derive(Clone, Copy)]
struct Piece {
    addr: *mut u8,
    bytes: usize,
}

impl Piece {
    fn of(buffer: Buffer<'_>) -> Option<Self> {
        let count = usize::try_from(buffer.count).ok()?;
        let bytes = count.checked_mul(contiguous_size(buffer.datatype)?)?;
        // More than the address space holds is an error that the complete implementation tells.
        let fits = isize::try_from(bytes).is_ok();
        (fits && is_memory(buffer.addr.addr())).then_some(Self { addr: buffer.addr.cast(), bytes })
    }

    /// As many as that, one behind the other.
    fn times(self, number: usize) -> Option<impl Fn(usize) -> Self> {
        self.bytes.checked_mul(number).filter(|&sum| isize::try_from(sum).is_ok())?;
        Some(move |at| Self { addr: self.addr.wrapping_add(at * self.bytes), ..self })
    }

    /// # Safety
    /// The program lets the call read it.
    unsafe fn data<'a>(self) -> &'a [u8] {
        if self.bytes == 0 {
            return &[];
        }
        // SAFETY: the program's memory (argument rule 3), not null, of so many bytes.
        unsafe { core::slice::from_raw_parts(self.addr, self.bytes) }
    }

    /// # Safety
    /// The program lets the call write it, and nothing else refers to it meanwhile.
    unsafe fn room<'a>(self) -> &'a mut [u8] {
        if self.bytes == 0 {
            return &mut [];
        }
        // SAFETY: the program's memory (argument rule 3), not null, of so many bytes, which nothing else refers to.
        unsafe { core::slice::from_raw_parts_mut(self.addr, self.bytes) }
    }

    /// Returns `to`, where the caller has room for what it has for itself, which is here; `None` if that has another
    /// length or is the same place.
    fn for_self(self, to: Self) -> Option<Self> {
        (self.bytes == to.bytes && (self.addr != to.addr || to.bytes == 0)).then_some(to)
    }

    /// Copies this to `to`, which [`Self::for_self`] has given.
    fn copy_to(self, to: Self) {
        if to.bytes > 0 {
            // SAFETY: both have so many bytes (argument rule 3); MPI 5.0 §6 forbids that they overlap.
            unsafe { copy(self.addr, to.addr, to.bytes) };
        }
    }

    /// What the caller copies to its place, this one, if it is not there already; `None` as for
    /// [`for_self`](Self::for_self).
    fn own(self, from: Buffer<'_>) -> Option<Option<(Self, Self)>> {
        if in_place(from.addr) {
            return Some(None);
        }
        let from = Self::of(from)?;
        Some(Some((from, from.for_self(self)?)))
    }
}

/// The pieces of an argument: all together no larger than the address space.
fn pieces(argument: Varied<'_>, peers: Peers) -> Option<PerPeer<Piece>> {
    if !is_memory(argument.addr.addr()) {
        return None;
    }
    let (counts, displs) = (peers.of(argument.counts).ok()?, peers.of(argument.displs).ok()?);
    let (same, types) = match argument.types {
        Types::Same(datatype) => (Some(contiguous_size(datatype)?), None),
        Types::Each(types) => (None, Some(peers.of(types).ok()?)),
    };
    let mut sum = 0_usize;
    let mut pieces = PerPeer::with_capacity(peers.number());
    for (peer, (count, displ)) in counts.iter().zip(displs.iter()).enumerate() {
        let (size, unit) = match same {
            Some(size) => (size, size as isize),
            None => (contiguous_size(types?[peer])?, 1),
        };
        let bytes = usize::try_from(count).ok()?.checked_mul(size)?;
        sum = sum.checked_add(bytes).filter(|&sum| isize::try_from(sum).is_ok())?;
        let offset = isize::try_from(displ).ok()?.checked_mul(unit)?;
        pieces.push(Piece { addr: argument.addr.cast::<u8>().wrapping_offset(offset), bytes });
    }
    Some(pieces)
}

/// The communicator, if its members can perform something by messages.
fn open<'a>(performer: impl Performer<'a>) -> Option<&'a Comm> {
    performer.comm().filter(|comm| fast_path_is_open() && !comm.is_inter())
}

fn member(comm: &Comm, rank: c_int) -> Option<usize> {
    comm.has_peer(rank).then_some(rank as usize)
}

/// All members but the caller, from the one behind it on, with their pieces.
fn others(pieces: &[Piece], rank: usize) -> impl Iterator<Item = (usize, Piece)> {
    let (before, behind) = (pieces[..rank].iter().enumerate(), pieces.iter().enumerate().skip(rank + 1));
    behind.chain(before).map(|(member, piece)| (member, *piece))
}

/// Sends and receives pieces, and meanwhile copies what the caller has for itself: from one piece to another
/// ([`Piece::for_self`]).
///
/// # Safety
/// The program lets the call read the sends and write the receives.
async unsafe fn exchange<T: Transport>(
    transport: &T,
    sends: impl Iterator<Item = (usize, Piece)>,
    recvs: impl Iterator<Item = (usize, Piece)>,
    own: Option<(Piece, Piece)>,
) -> Result<()> {
    // SAFETY: the program lets the call read what it sends, as the caller promises.
    let sends: PerPeer<(usize, &[u8])> = sends.map(|(to, piece)| (to, unsafe { piece.data() })).collect();
    // SAFETY: the program lets the call write where it receives, as the caller promises; MPI 5.0 §6 forbids that such
    // pieces overlap others.
    let mut recvs: PerPeer<(usize, &mut [u8])> =
        recvs.map(|(from, piece)| (from, unsafe { piece.room() })).collect();
    let copy_own = || {
        own.into_iter().for_each(|(from, to)| from.copy_to(to));
        Ok(())
    };
    transport.exchange_all_while(&sends, &mut recvs, copy_own).await
}

/// MPI_Gatherv.
pub fn gatherv<'a, P: Performer<'a>>(
    performer: P,
    send: Buffer<'_>,
    recv: Varied<'_>,
    root: c_int,
) -> Option<P::Outcome> {
    let comm = open(performer)?;
    let (rank, root) = (comm.rank() as usize, member(comm, root)?);
    let what = |comm: &Comm| arguments::gatherv(comm, send, recv, root as c_int);
    if rank != root {
        let own = Piece::of(send)?;
        return performer.by_messages(Purpose::Gather, what, async move |transport: &P::Transport| {
            transport.set_message_mode(Mode::ToRoot);
            // SAFETY: argument rule 3: the caller sends this.
            transport.send(root, unsafe { own.data() }).await
        });
    }
    let pieces = pieces(recv, members(comm))?;
    let own = pieces[root].own(send)?;
    performer.by_messages(Purpose::Gather, what, async move |transport: &P::Transport| {
        transport.set_message_mode(Mode::ToRoot);
        // SAFETY: argument rule 3: the root has room for what the others send.
        unsafe { exchange(transport, core::iter::empty(), others(&pieces, root), own) }.await
    })
}

/// MPI_Scatterv.
pub fn scatterv<'a, P: Performer<'a>>(
    performer: P,
    send: Varied<'_>,
    recv: Buffer<'_>,
    root: c_int,
) -> Option<P::Outcome> {
    let comm = open(performer)?;
    let (rank, root) = (comm.rank() as usize, member(comm, root)?);
    let what = |comm: &Comm| arguments::scatterv(comm, send, recv, root as c_int);
    if rank != root {
        let own = Piece::of(recv)?;
        return performer.by_messages(Purpose::Scatter, what, async move |transport: &P::Transport| {
            transport.set_message_mode(Mode::FromRoot);
            // SAFETY: argument rule 3: the caller has room for this.
            transport.recv(root, unsafe { own.room() }).await
        });
    }
    let pieces = pieces(send, members(comm))?;
    let own = pieces[root];
    let kept = if in_place(recv.addr) { None } else { Some((own, own.for_self(Piece::of(recv)?)?)) };
    performer.by_messages(Purpose::Scatter, what, async move |transport: &P::Transport| {
        transport.set_message_mode(Mode::FromRoot);
        // SAFETY: argument rule 3: the root has these pieces.
        unsafe { exchange(transport, others(&pieces, root), core::iter::empty(), kept) }.await
    })
}

/// MPI_Alltoallv, MPI_Alltoallw.
pub fn alltoallv<'a, P: Performer<'a>>(
    performer: P,
    send: Varied<'_>,
    recv: Varied<'_>,
) -> Option<P::Outcome> {
    let comm = open(performer)?;
    let rank = comm.rank() as usize;
    let what = |comm: &Comm| arguments::alltoallv(comm, send, recv);
    let (sends, recvs) = (pieces(send, members(comm))?, pieces(recv, members(comm))?);
    let own = (sends[rank], sends[rank].for_self(recvs[rank])?);
    performer.by_messages(Purpose::Alltoall, what, async move |transport: &P::Transport| {
        // SAFETY: argument rule 3: a piece for each member, and room for one of each.
        unsafe { exchange(transport, others(&sends, rank), others(&recvs, rank), Some(own)) }.await
    })
}

/// MPI_Allgatherv, where the pieces lie one behind the other.
pub fn allgatherv<'a, P: Performer<'a>>(
    performer: P,
    send: Buffer<'_>,
    recv: Varied<'_>,
) -> Option<P::Outcome> {
    let team = performer.team(Collective::Allgather)?;
    let pieces = pieces(recv, members(team.comm()))?;
    let first = pieces.iter().find(|piece| piece.bytes > 0)?.addr;
    let longest = pieces.iter().map(|piece| piece.bytes).max().filter(|&longest| longest <= MOST)?;
    let mut ends = PerPeer::<usize>::with_capacity(pieces.len());
    let mut end = 0;
    for piece in &pieces {
        if piece.bytes > 0 && piece.addr != first.wrapping_add(end) {
            return None;
        }
        end += piece.bytes;
        ends.push(end);
    }
    let (rank, own) = (team.rank(), pieces[team.rank()].own(send)?);
    let equal = pieces.iter().all(|piece| piece.bytes == longest);
    let what = |comm: &Comm| arguments::allgatherv(comm, send, recv);
    if team.size() == 2 && longest > PAYLOAD && !equal {
        drop(team);
        let sent = core::iter::once((1 - rank, own.map_or(pieces[rank], |(from, _)| from)));
        return performer.by_messages(Purpose::Allgather, what, async move |transport: &P::Transport| {
            // SAFETY: argument rule 3: the caller's own piece, and room for the other's.
            unsafe { exchange(transport, sent, others(&pieces, rank), own) }.await
        });
    }
    own.into_iter().for_each(|(from, to)| from.copy_to(to));
    performer.in_team(team, longest, what, async move |team| {
        // SAFETY: argument rule 3: room for the pieces, which are this run, and nothing else refers to it.
        let all = unsafe { Piece { addr: first, bytes: end }.room() };
        if equal { team.allgather(all, longest).await } else { team.allgatherv(all, &ends).await }
    })
}

/// Exchanges pieces among neighbours: `send` for each that the caller sends to, and room, `recv`,
/// for those of the others.
fn with_neighbours<'a, P: Performer<'a>>(
    performer: P,
    comm: &'a Comm,
    send: impl Fn(usize) -> Piece,
    recv: impl Fn(usize) -> Piece,
    what: impl Fn(&Comm) -> Result<CollectiveOp>,
) -> Option<P::Outcome> {
    let (from, to) = (comm.sources(), comm.destinations());
    let order = comm.topology()?.send_order(to.len());
    performer.by_messages(Purpose::Alltoall, what, async move |transport: &P::Transport| {
        // There is nobody behind the edge of a grid.
        let neighbour = |ranks: &[i32], at: usize| usize::try_from(ranks[at]).ok();
        let sends = order.filter_map(|at| Some((neighbour(to, at)?, send(at))));
        let recvs = (0..from.len()).filter_map(|at| Some((neighbour(from, at)?, recv(at))));
        // SAFETY: argument rule 3: a piece for each neighbour, and room for one of each.
        unsafe { exchange(transport, sends, recvs, None) }.await
    })
}

/// MPI_Neighbor_allgather.
pub fn neighbor_allgather<'a, P: Performer<'a>>(
    performer: P,
    send: Buffer<'_>,
    recv: Buffer<'_>,
) -> Option<P::Outcome> {
    let comm = open(performer)?;
    let (own, theirs) = (Piece::of(send)?, Piece::of(recv)?.times(sources(comm).ok()?.number())?);
    with_neighbours(
        performer,
        comm,
        move |_| own,
        theirs,
        |comm| arguments::neighbor_allgather(comm, send, recv),
    )
}

/// MPI_Neighbor_alltoall.
pub fn neighbor_alltoall<'a, P: Performer<'a>>(
    performer: P,
    send: Buffer<'_>,
    recv: Buffer<'_>,
) -> Option<P::Outcome> {
    let comm = open(performer)?;
    let (from, to) = (sources(comm).ok()?.number(), destinations(comm).ok()?.number());
    let (own, theirs) = (Piece::of(send)?.times(to)?, Piece::of(recv)?.times(from)?);
    with_neighbours(performer, comm, own, theirs, |comm| arguments::neighbor_alltoall(comm, send, recv))
}

/// MPI_Neighbor_allgatherv.
pub fn neighbor_allgatherv<'a, P: Performer<'a>>(
    performer: P,
    send: Buffer<'_>,
    recv: Varied<'_>,
) -> Option<P::Outcome> {
    let comm = open(performer)?;
    let (own, theirs) = (Piece::of(send)?, pieces(recv, sources(comm).ok()?)?);
    with_neighbours(
        performer,
        comm,
        move |_| own,
        move |at| theirs[at],
        |comm| arguments::neighbor_allgatherv(comm, send, recv),
    )
}

/// MPI_Neighbor_alltoallv, MPI_Neighbor_alltoallw.
pub fn neighbor_alltoallv<'a, P: Performer<'a>>(
    performer: P,
    send: Varied<'_>,
    recv: Varied<'_>,
) -> Option<P::Outcome> {
    let comm = open(performer)?;
    let own = pieces(send, destinations(comm).ok()?)?;
    let theirs = pieces(recv, sources(comm).ok()?)?;
    with_neighbours(
        performer,
        comm,
        move |at| own[at],
        move |at| theirs[at],
        |comm| arguments::neighbor_alltoallv(comm, send, recv),
    )
}
