//! What C's arguments of collectives are checked for, once for `int` and for `MPI_Count`.

use crate::abi::{MPI_IN_PLACE, MPI_PROC_NULL, MPI_ROOT};
use crate::capi::datatypes;
use crate::coll::call::{CallRoot, Elements, Form, Pieces, TypedOp};
use crate::coll::intercomm::IntercommRoot;
use crate::comm::Comm;
use crate::error::{Error, Result};
use core::ffi::{c_int, c_void};

/// A count or displacement of either width.
pub trait Number: Copy {
    /// As the wider one.
    fn wide(self) -> i64;
}

impl Number for c_int {
    fn wide(self) -> i64 {
        self.into()
    }
}
impl Number for i64 {
    fn wide(self) -> i64 {
        self
    }
}
impl Number for isize {
    fn wide(self) -> i64 {
        self as i64
    }
}

/// Buffer, count and type as C has them.
#[derive(Clone, Copy)]
pub struct Raw<N> {
    pub addr: *const c_void,
    pub count: N,
    pub datatype: usize,
}

/// Buffer, counts, displacements in elements, type.
#[derive(Clone, Copy)]
pub struct RawV<N, D> {
    pub addr: *const c_void,
    pub counts: *const N,
    pub displs: *const D,
    pub datatype: usize,
}

/// Buffer, counts, displacements in bytes, types.
#[derive(Clone, Copy)]
pub struct RawW<N, D> {
    pub addr: *const c_void,
    pub counts: *const N,
    pub displs: *const D,
    pub types: *const usize,
}

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

pub fn count<N: Number>(count: N) -> Result<usize> {
    usize::try_from(count.wide()).map_err(|_| Error::Count(count.wide()))
}

/// NULL is MPI_BOTTOM, which means something only for types with absolute displacements.
fn there(addr: *const c_void, count: usize, datatype: usize) -> Result<()> {
    if addr.is_null() && count > 0 && datatypes::contiguous_size(datatype).is_some_and(|size| size > 0) {
        return Err(Error::Buffer("NULL with a positive count"));
    }
    Ok(())
}

impl<N: Number> Raw<N> {
    /// The elements, which are not in place.
    pub fn elements(self) -> Result<Elements> {
        not_in_place(self.addr)?;
        let count = count(self.count)?;
        let datatype = datatypes::datatype(self.datatype)?;
        there(self.addr, count, self.datatype)?;
        Ok(Elements { addr: self.addr.cast_mut().cast(), count, datatype })
    }

    /// The elements, or `None` in place, which intercommunicators do not have.
    pub fn unless_in_place(self, comm: &Comm) -> Result<Option<Elements>> {
        if in_place(self.addr) && !comm.is_inter() { Ok(None) } else { self.elements().map(Some) }
    }
}

/// Arguments that describe a piece for each rank.
pub trait RawPieces: Copy {
    /// The buffer.
    fn addr(&self) -> *const c_void;
    /// The pieces of `n` ranks.
    ///
    /// # Safety
    /// Arrays have `n` elements.
    unsafe fn form(&self, n: usize) -> Result<Form>;

    /// The pieces of `n` ranks, which are not in place.
    ///
    /// # Safety
    /// As for [`form`](Self::form).
    unsafe fn pieces(&self, n: usize) -> Result<Pieces> {
        not_in_place(self.addr())?;
        // SAFETY: the caller's promise.
        Ok(Pieces { addr: self.addr().cast_mut().cast(), form: unsafe { self.form(n) }? })
    }
}

/// An array argument of `n` elements.
///
/// # Safety
/// It is NULL or has that many.
unsafe fn array<'a, T>(array: *const T, n: usize) -> Result<&'a [T]> {
    // SAFETY: the caller's promise. As many as a communicator has ranks, or a rank neighbours, fit into an int.
    unsafe { crate::capi::args::list(array, n as c_int) }
}

/// # Safety
/// The array is NULL or has `n` elements.
pub unsafe fn counts<N: Number>(list: *const N, n: usize) -> Result<Vec<usize>> {
    // SAFETY: the caller's promise.
    unsafe { array(list, n) }?.iter().map(|&n| count(n)).collect()
}

/// Displacements in units of `unit` bytes, as bytes.
///
/// # Safety
/// The array is NULL or has `n` elements.
unsafe fn offsets<D: Number>(list: *const D, n: usize, unit: isize) -> Result<Vec<isize>> {
    // SAFETY: the caller's promise.
    Ok(unsafe { array(list, n) }?.iter().map(|d| (d.wide() as isize).wrapping_mul(unit)).collect())
}

impl<N: Number> RawPieces for Raw<N> {
    fn addr(&self) -> *const c_void {
        self.addr
    }
    unsafe fn form(&self, _: usize) -> Result<Form> {
        let count = count(self.count)?;
        let datatype = datatypes::datatype(self.datatype)?;
        there(self.addr, count, self.datatype)?;
        Ok(Form::Even(count, datatype))
    }
}

impl<N: Number, D: Number> RawPieces for RawV<N, D> {
    fn addr(&self) -> *const c_void {
        self.addr
    }
    unsafe fn form(&self, n: usize) -> Result<Form> {
        let datatype = datatypes::datatype(self.datatype)?;
        // SAFETY: the caller's promise.
        let (counts, offsets) =
            unsafe { (counts(self.counts, n)?, offsets(self.displs, n, datatype.extent())?) };
        there(self.addr, counts.iter().copied().max().unwrap_or(0), self.datatype)?;
        Ok(Form::Varied(counts, offsets, datatype))
    }
}

impl<N: Number, D: Number> RawPieces for RawW<N, D> {
    fn addr(&self) -> *const c_void {
        self.addr
    }
    unsafe fn form(&self, n: usize) -> Result<Form> {
        // SAFETY: the caller's promise.
        let (counts, offsets, types) =
            unsafe { (counts(self.counts, n)?, offsets(self.displs, n, 1)?, array(self.types, n)?) };
        // A type that nothing is sent of need not be one.
        let chosen = |(&handle, &count): (&usize, &usize)| {
            datatypes::datatype(if count == 0 { crate::abi::MPI_BYTE } else { handle })
        };
        let types = types.iter().zip(&counts).map(chosen).collect::<Result<_>>()?;
        Ok(Form::Each(counts, offsets, types))
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

/// Whether the caller has an operand, or gets one: everybody in a group; in an intercommunicator the group without the root.
pub fn is_leaf(place: CallRoot) -> bool {
    matches!(place, CallRoot::Intracomm(_) | CallRoot::Intercomm(IntercommRoot::Remote(_)))
}

/// The operation, if it takes this type.
pub fn combine(op: usize, elements: &Elements, handle: usize) -> Result<TypedOp> {
    let op = datatypes::op(op)?;
    if op.is_for_rma_only() {
        return Err(Error::Op("only one-sided communication has this operation"));
    }
    op.check(&elements.datatype)?;
    Ok(TypedOp { op, handle })
}

/// Refuses a result that begins where the operands do.
pub fn distinct(a: &Elements, b: &Elements) -> Result<()> {
    let bytes = |e: &Elements| e.count * e.datatype.size();
    if a.addr == b.addr && !a.addr.is_null() && bytes(a) > 0 && bytes(b) > 0 {
        return Err(Error::Buffer("send and receive buffer are the same; use MPI_IN_PLACE"));
    }
    Ok(())
}

/// Refuses a piece of the caller's own that begins where what it sends does.
pub fn distinct_piece(own: &Elements, pieces: &Pieces, rank: usize) -> Result<()> {
    let piece = pieces.piece(rank);
    distinct(own, &Elements { addr: piece.addr, count: piece.count, datatype: piece.datatype.clone() })
}
