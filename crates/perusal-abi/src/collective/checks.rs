//! What C's arguments of collectives are checked for.

use crate::abi::{MPI_IN_PLACE, MPI_PROC_NULL, MPI_ROOT};
use crate::arguments::{Argument, Buffer, Count, Integers, Unbounded};
use crate::coll::call::{self, CallRoot, Elements, Form, TypedOp};
use crate::coll::intercomm::IntercommRoot;
use crate::comm::Comm;
use crate::datatypes;
use crate::error::{Error, Result};
use crate::messages::{self, contents};
use core::ffi::{c_int, c_void};
use std::sync::Arc;

/// A buffer of which each peer has a piece of its own, with counts, displacements and type, or types.
#[derive(Clone, Copy)]
pub struct Varied<'a> {
    /// Where it begins.
    pub addr: *mut c_void,
    /// A count for each peer.
    pub counts: Unbounded<'a, Integers<'a>>,
    /// A displacement for each peer: in elements, or in bytes if each piece has a type.
    pub displs: Unbounded<'a, Integers<'a>>,
    /// The type of the elements.
    pub types: Types<'a>,
}

/// The types of pieces.
#[derive(Clone, Copy)]
pub enum Types<'a> {
    /// All have the same.
    Same(usize),
    /// Each has one.
    Each(Unbounded<'a, &'a [usize]>),
}

impl Argument<'_, usize> for Types<'_> {
    unsafe fn of(from: usize) -> Result<Self> {
        Ok(Self::Same(from))
    }
}

impl<'a> Argument<'a, *const usize> for Types<'a> {
    unsafe fn of(from: *const usize) -> Result<Self> {
        // SAFETY: argument rule 1: the call passes this array, and the call outlives the result.
        unsafe { Argument::of(from) }.map(Self::Each)
    }
}

/// How many elements the arrays of a call have: as many as its communicator has members, peers or neighbours.
#[derive(Clone, Copy)]
pub struct Peers(usize);

/// Members of the group of the caller.
pub fn members(comm: &Comm) -> Peers {
    Peers(comm.size() as usize)
}

/// Members of the group, or of the remote group of an intercommunicator.
pub fn peers(comm: &Comm) -> Peers {
    Peers(comm.peers().size() as usize)
}

/// Neighbours that the caller receives from.
pub fn sources(comm: &Comm) -> Result<Peers> {
    neighbours(comm, comm.sources())
}

/// Neighbours that the caller sends to.
pub fn destinations(comm: &Comm) -> Result<Peers> {
    neighbours(comm, comm.destinations())
}

fn neighbours(comm: &Comm, those: &[i32]) -> Result<Peers> {
    if comm.topology().is_none() {
        return Err(Error::Topology("the communicator has none"));
    }
    Ok(Peers(those.len()))
}

impl Peers {
    /// How many.
    pub fn number(self) -> usize {
        self.0
    }

    /// The elements of an array of the call.
    pub fn of<A>(self, array: Unbounded<'_, A>) -> Result<A> {
        // SAFETY: MPI 5.0 §6 and §8.6 ask for an element for each; `self` was made of the communicator of the call.
        unsafe { array.elements(self.0) }
    }

    /// A buffer of which each of them has as many elements. Of a rank without neighbours nothing is touched: what it
    /// passes may be NULL, whatever the count is.
    pub fn share(self, buffer: Buffer<'_>) -> Result<Buffer<'_>> {
        Count::checked(buffer.count)?;
        Ok(if self.0 == 0 { buffer.with_count(0) } else { buffer })
    }
}

/// Whether a buffer is MPI_IN_PLACE.
pub fn in_place(addr: *const c_void) -> bool {
    addr.addr() == MPI_IN_PLACE
}

fn not_in_place(addr: *const c_void) -> Result<()> {
    if in_place(addr) {
        Err(Error::Buffer("MPI_IN_PLACE is not allowed for this buffer here"))
    } else {
        Ok(())
    }
}

/// The elements of a buffer, which is not in place.
pub fn elements(buffer: Buffer<'_>) -> Result<Elements> {
    not_in_place(buffer.addr)?;
    let (count, datatype) = contents(&buffer)?;
    Elements::new(buffer.addr.cast(), count, datatype.clone())
}

/// The elements of a buffer, or `None` in place, which intercommunicators do not have.
pub fn unless_in_place(buffer: Buffer<'_>, comm: &Comm) -> Result<Option<Elements>> {
    if in_place(buffer.addr) && !comm.is_inter() { Ok(None) } else { elements(buffer).map(Some) }
}

/// Arguments that describe a piece for each peer.
pub trait PiecesArgument: Copy {
    /// The buffer.
    fn addr(&self) -> *mut c_void;
    /// How the pieces lie in it.
    fn form(&self, peers: Peers) -> Result<Form>;

    /// The pieces, which are not in place.
    fn pieces(&self, peers: Peers) -> Result<call::Pieces> {
        not_in_place(self.addr())?;
        call::Pieces::new(self.addr().cast(), self.form(peers)?, peers.number())
    }
}

impl PiecesArgument for Buffer<'_> {
    fn addr(&self) -> *mut c_void {
        self.addr
    }
    fn form(&self, peers: Peers) -> Result<Form> {
        let (count, datatype) = contents(&peers.share(*self)?)?;
        Ok(Form::Even(count, datatype.clone()))
    }
}

/// Displacements in units of `unit` bytes, as bytes. Those of pieces without elements mean nothing.
fn offsets(list: Integers<'_>, unit: isize, counts: &[usize]) -> Result<Vec<isize>> {
    let offset = |(displacement, &count): (i64, &usize)| match isize::checked_mul(displacement as isize, unit)
    {
        Some(offset) => Ok(offset),
        None if count == 0 => Ok(0),
        None => Err(Error::Arg("a displacement leads out of the address space")),
    };
    list.iter().zip(counts).map(offset).collect()
}

impl PiecesArgument for Varied<'_> {
    fn addr(&self) -> *mut c_void {
        self.addr
    }
    fn form(&self, peers: Peers) -> Result<Form> {
        match self.types {
            Types::Same(handle) => {
                let datatype = datatypes::datatype(handle)?;
                let counts = peers.of(self.counts)?.counts()?;
                let offsets = offsets(peers.of(self.displs)?, datatype.extent(), &counts)?;
                messages::place(self.addr.addr(), counts.iter().copied().max().unwrap_or(0), &datatype)?;
                Ok(Form::Varied(counts, offsets, datatype))
            }
            Types::Each(types) => {
                let counts = peers.of(self.counts)?.counts()?;
                let offsets = offsets(peers.of(self.displs)?, 1, &counts)?;
                // A type that nothing is sent of need not be one.
                let chosen = |(&handle, &count): (&usize, &usize)| {
                    datatypes::datatype(if count == 0 { crate::abi::MPI_BYTE } else { handle })
                };
                let types = peers.of(types)?.iter().zip(&counts).map(chosen).collect::<Result<Vec<_>>>()?;
                for ((datatype, &count), &offset) in types.iter().zip(&counts).zip(&offsets) {
                    messages::place(self.addr.addr().wrapping_add_signed(offset), count, datatype)?;
                }
                Ok(Form::Each(counts, offsets, types))
            }
        }
    }
}

/// Where the root is.
pub fn place(comm: &Comm, root: c_int) -> Result<CallRoot> {
    let size = comm.peers().size();
    let rank = usize::try_from(root).ok().filter(|&rank| rank < size as usize);
    match (comm.is_inter(), root, rank) {
        (true, MPI_ROOT, _) => Ok(CallRoot::Intercomm(IntercommRoot::Caller)),
        (true, MPI_PROC_NULL, _) => Ok(CallRoot::Intercomm(IntercommRoot::Sibling)),
        (true, _, Some(rank)) => Ok(CallRoot::Intercomm(IntercommRoot::Remote(rank))),
        (false, _, Some(rank)) => Ok(CallRoot::Intracomm(rank)),
        _ => Err(Error::Root { root, size: size as i32 }),
    }
}

/// Whether the caller is the root.
pub fn is_root(comm: &Comm, place: CallRoot) -> bool {
    place == CallRoot::Intracomm(comm.rank() as usize) || place == CallRoot::Intercomm(IntercommRoot::Caller)
}

/// Whether the caller has an operand, or gets one: everybody in a group;
/// in an intercommunicator the group without the root.
pub fn is_leaf(place: CallRoot) -> bool {
    matches!(place, CallRoot::Intracomm(_) | CallRoot::Intercomm(IntercommRoot::Remote(_)))
}

/// The operation, if it takes this type.
pub fn combine(op: usize, elements: &Elements, handle: usize) -> Result<TypedOp> {
    let op = datatypes::op(op)?;
    if op.is_for_rma_only() {
        return Err(Error::Op("only one-sided communication has this operation"));
    }
    op.check(elements.datatype())?;
    let held = if op.is_predefined() { None } else { datatypes::hold(handle) };
    Ok(TypedOp { op, handle, held: held.map(|held| Arc::new(held) as _) })
}

/// Refuses a result that begins where the operands do.
/// Types with displacements may have one address and different data.
pub fn distinct(a: &Elements, b: &Elements) -> Result<()> {
    if a.addr() == b.addr()
        && !a.addr().is_null()
        && a.bytes() > 0
        && b.bytes() > 0
        && a.datatype().true_lb() == b.datatype().true_lb()
    {
        return Err(Error::Buffer("send and receive buffer are the same; use MPI_IN_PLACE"));
    }
    Ok(())
}

/// Refuses a piece of the caller's own that begins where what it sends does.
pub fn distinct_piece(own: &Elements, pieces: &call::Pieces, rank: usize) -> Result<()> {
    distinct(own, &pieces.piece(rank))
}
