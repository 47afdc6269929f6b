//! A collective operation with its arguments: what is run at once, in the background, or again and again.

use super::buffer::{InputBuffer, OpKernel, OutputBuffer};
use super::intercomm::{self, IntercommRoot, Sides};
use super::{EventSpan, Transport, intracomm, neighbor};
use crate::comm::Comm;
use crate::datatype::Datatype;
use crate::datatype::op::Op;
use crate::error::{Error, Result};
use core::any::Any;
use std::sync::Arc;

/// Elements in a user's memory, which is used while a [`CollectiveOp`] with them is performed
/// ([`CollectiveOp::perform`]).
#[derive(Clone, Debug)]
pub struct Elements {
    /// The user's address.
    addr: *mut u8,
    /// Elements.
    count: usize,
    /// Their type.
    datatype: Datatype,
    /// [`Datatype::bytes_of`] the elements.
    bytes: usize,
}

// SAFETY: the address is used only by `CollectiveOp::perform`, while the buffer is valid on every thread
// (buffer rules 1 and 2); the rest is `Send` and `Sync`.
unsafe impl Send for Elements {}
// SAFETY: what is shared is never changed: an address, a number, and what is `Sync`.
unsafe impl Sync for Elements {}

impl Elements {
    /// Names `count` elements at `addr`.
    ///
    /// # Errors
    /// [`Error::CountTooLarge`] for more than the address space holds.
    pub fn new(addr: *mut u8, count: usize, datatype: Datatype) -> Result<Self> {
        let bytes = datatype.bytes_of(count)?;
        Ok(Self { addr, count, datatype, bytes })
    }

    /// Returns the same with another number of elements.
    ///
    /// # Errors
    /// As for [`new`](Self::new).
    pub fn with_count(&self, count: usize) -> Result<Self> {
        Self::new(self.addr, count, self.datatype.clone())
    }

    /// Returns the user's address.
    #[must_use]
    pub fn addr(&self) -> *mut u8 {
        self.addr
    }

    /// Returns how many there are.
    #[must_use]
    pub fn count(&self) -> usize {
        self.count
    }

    /// Returns the elements' type.
    #[must_use]
    pub fn datatype(&self) -> &Datatype {
        &self.datatype
    }

    /// Returns the bytes of the packed elements.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// # Safety
    /// Buffer rule 1.
    unsafe fn input(&self) -> InputBuffer<'_> {
        // SAFETY: buffer rule 1: this is called only within `perform`, while the program's buffer can be read.
        unsafe { InputBuffer::new(self.addr, self.count, &self.datatype) }
    }
    /// # Safety
    /// Buffer rule 2.
    unsafe fn output(&self) -> OutputBuffer<'_> {
        // SAFETY: buffer rule 2: this is called only within `perform`, while the program's buffer can be written.
        unsafe { OutputBuffer::new(self.addr, self.count, &self.datatype) }
    }
}

/// A piece of a user's memory for each rank (or neighbour), used as [`Elements`] are.
#[derive(Clone, Debug)]
pub struct Pieces {
    /// The user's address.
    addr: *mut u8,
    /// Where the pieces lie. All of them together are no larger than the address space.
    pub(super) form: Form,
}

// SAFETY: the address is used only by `CollectiveOp::perform`, while the buffer is valid on every thread
// (buffer rules 1 and 2); the rest is `Send` and `Sync`.
unsafe impl Send for Pieces {}
// SAFETY: what is shared is never changed: an address, lists of numbers, and what is `Sync`.
unsafe impl Sync for Pieces {}

/// Where pieces lie.
#[derive(Clone, Debug)]
pub enum Form {
    /// Equally many elements each, one behind the other.
    Even(usize, Datatype),
    /// Element counts, displacements in bytes, one type.
    Varied(Vec<usize>, Vec<isize>, Datatype),
    /// Element counts, displacements in bytes, types.
    Each(Vec<usize>, Vec<isize>, Vec<Datatype>),
}

impl Pieces {
    /// Names a piece for each of `peers` ranks (or neighbours), the first or the origin of which is at `addr`.
    ///
    /// # Errors
    /// [`Error::CountTooLarge`] if they are more than the address space holds.
    pub fn new(addr: *mut u8, form: Form, peers: usize) -> Result<Self> {
        let all = match &form {
            Form::Even(count, datatype) => {
                let all = count.checked_mul(peers.max(1)).ok_or(Error::CountTooLarge(*count))?;
                return datatype.bytes_of(all).map(|_| Self { addr, form });
            }
            Form::Varied(counts, _, datatype) => {
                sum(counts.iter().map(|&count| (count, datatype.bytes_of(count))))
            }
            Form::Each(counts, _, types) => {
                sum(counts.iter().zip(types).map(|(&count, datatype)| (count, datatype.bytes_of(count))))
            }
        };
        all.map(|_| Self { addr, form })
    }

    /// Returns where the piece of rank (or neighbour) `r` lies, how many elements it has, and their type.
    fn place(&self, r: usize) -> (*mut u8, usize, &Datatype) {
        let (offset, count, datatype) = match &self.form {
            Form::Even(count, datatype) => {
                ((r as isize).wrapping_mul(*count as isize).wrapping_mul(datatype.extent()), *count, datatype)
            }
            Form::Varied(counts, offsets, datatype) => (offsets[r], counts[r], datatype),
            Form::Each(counts, offsets, types) => (offsets[r], counts[r], &types[r]),
        };
        (self.addr.wrapping_offset(offset), count, datatype)
    }

    /// Returns the piece of rank (or neighbour) `r`.
    #[must_use]
    pub fn piece(&self, r: usize) -> Elements {
        let (addr, count, datatype) = self.place(r);
        Elements { addr, count, datatype: datatype.clone(), bytes: count * datatype.size() }
    }

    /// Returns whether all pieces have one length, and lie one behind the other.
    #[must_use]
    pub fn are_even(&self) -> bool {
        matches!(self.form, Form::Even(..))
    }

    /// Returns the bytes of the packed piece of rank (or neighbour) `r`.
    #[must_use]
    pub fn bytes(&self, r: usize) -> usize {
        self.data(r).0
    }

    /// Returns the bytes of the packed piece of rank (or neighbour) `r`, and the type of its elements.
    pub(super) fn data(&self, r: usize) -> (usize, &Datatype) {
        let (_, count, datatype) = self.place(r);
        (count * datatype.size(), datatype)
    }

    /// # Safety
    /// Buffer rule 1.
    unsafe fn input(&self, r: usize) -> InputBuffer<'_> {
        let (addr, count, datatype) = self.place(r);
        // SAFETY: buffer rule 1: this is called only within `perform`, while the program's buffer can be read.
        unsafe { InputBuffer::new(addr, count, datatype) }
    }

    /// # Safety
    /// Buffer rule 2.
    unsafe fn output(&self, r: usize) -> OutputBuffer<'_> {
        let (addr, count, datatype) = self.place(r);
        // SAFETY: buffer rule 2: this is called only within `perform`, while the program's buffer can be written.
        unsafe { OutputBuffer::new(addr, count, datatype) }
    }
}

/// Adds up the bytes of pieces, each of which comes with its count.
fn sum(pieces: impl Iterator<Item = (usize, Result<usize>)>) -> Result<usize> {
    pieces.into_iter().try_fold(0_usize, |sum, (count, bytes)| {
        sum.checked_add(bytes?).filter(|sum| isize::try_from(*sum).is_ok()).ok_or(Error::CountTooLarge(count))
    })
}

/// An operation and the type of its operands.
#[derive(Clone, Debug)]
pub struct TypedOp {
    /// The operation.
    pub op: Op,
    /// The type's handle, which user functions are called with.
    pub handle: usize,
    /// What keeps the handle valid for as long as they may be called.
    pub held: Option<Arc<dyn Any + Send + Sync>>,
}

impl TypedOp {
    fn of<'a>(&'a self, elements: &'a Elements) -> OpKernel<'a> {
        OpKernel { op: &self.op, datatype: &elements.datatype, handle: self.handle }
    }
}

/// Where the root of an operation is: a rank within a group, or seen from one side of an intercommunicator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallRoot {
    /// This rank.
    Intracomm(usize),
    /// On this side or the other.
    Intercomm(IntercommRoot),
}

/// A collective operation. `None` stands for MPI_IN_PLACE, and for what has no meaning at the caller.
#[derive(Clone, Debug)]
pub enum CollectiveOp {
    /// MPI_Barrier.
    Barrier,
    /// MPI_Bcast: the elements, the root.
    Bcast(Elements, CallRoot),
    /// MPI_Gather(v): what the caller sends, where the root puts it, the root; whether all pieces have one length.
    Gather(Option<Elements>, Option<Pieces>, CallRoot, bool),
    /// MPI_Scatter(v): what the root sends, where the caller puts it, the root; whether all pieces have one length.
    Scatter(Option<Pieces>, Option<Elements>, CallRoot, bool),
    /// MPI_Allgather(v).
    Allgather(Option<Elements>, Pieces),
    /// MPI_Alltoall(v, w).
    Alltoall(Option<Pieces>, Pieces),
    /// MPI_Reduce: operands, result, the root.
    Reduce(Option<Elements>, Option<Elements>, TypedOp, CallRoot),
    /// MPI_Allreduce.
    Allreduce(Option<Elements>, Elements, TypedOp),
    /// MPI_Reduce_scatter(_block): operands, result, elements of each rank's result.
    ReduceScatter(Elements, Elements, Vec<usize>, TypedOp),
    /// MPI_Scan.
    Scan(Option<Elements>, Elements, TypedOp),
    /// MPI_Exscan.
    ///
    /// The results of rank 0 are not written: they may be its operands.
    Exscan(Option<Elements>, Elements, TypedOp),
    /// MPI_Neighbor_allgather(v).
    NeighbourAllgather(Elements, Pieces),
    /// MPI_Neighbor_alltoall(v, w).
    NeighbourAlltoall(Pieces, Pieces),
}

/// The transports of a communicator.
pub enum Transports<T> {
    /// Of an intracommunicator.
    Intracomm(T),
    /// Of an intercommunicator.
    Intercomm(Sides<T>),
}

impl CollectiveOp {
    /// Performs the operation on `comm`, whose transports are `transports`.
    ///
    /// # Safety
    /// Until the future is ready, or for ever if it is dropped before, what the operation reads can be read and no
    /// thread writes it, and what it writes can be written and no other thread uses it (MPI 5.0 §6.2 to §6.12 say which
    /// is which). The future is polled until it is ready, or leaked.
    ///
    /// # Errors
    /// Those of the transfers and of the operation; [`Error::Comm`] for one that intercommunicators do not have.
    pub async unsafe fn perform<T: Transport>(&self, transports: &Transports<T>, comm: &Comm) -> Result<()> {
        let arrival = || match transports {
            Transports::Intracomm(transport) if self.has_team_form() => {
                let (arrival, capacity) = transport.team_capacity(self.operation())?;
                self.is_served_by(&capacity).then_some(arrival)
            }
            _ => None,
        };
        let mode = match transports {
            Transports::Intracomm(transport) => transport.mode(),
            Transports::Intercomm(sides) => sides.remote.mode(),
        };
        let requested = || match transports {
            Transports::Intracomm(transport) => transport.requested(self.operation()),
            Transports::Intercomm(_) => 0,
        };
        let oversubscribed = || match transports {
            Transports::Intracomm(transport) => transport.is_oversubscribed(),
            Transports::Intercomm(_) => false,
        };
        let what = || self.contents(comm, self.algorithm(comm, arrival(), requested(), oversubscribed()));
        let span = EventSpan::begin(comm, self.operation(), mode, what);
        let result = match transports {
            // SAFETY: the buffers stay valid until this future, and so that of `within`,
            // is ready or leaked (MPI 5.0 §6.2 to §6.12).
            Transports::Intracomm(transport) => unsafe { self.within(transport, comm) }.await,
            // SAFETY: the buffers stay valid until this future, and so that of `between`,
            // is ready or leaked (MPI 5.0 §6.2 to §6.12).
            Transports::Intercomm(sides) => unsafe { self.between(sides) }.await,
        };
        span.end();
        result
    }

    /// # Safety
    /// As for [`perform`](Self::perform).
    async unsafe fn within<T: Transport>(&self, transport: &T, comm: &Comm) -> Result<()> {
        // SAFETY: buffer rules 1 and 2: the program leaves the buffers alone until this future is ready or leaked.
        unsafe {
            match self {
                Self::Barrier => super::barrier(transport).await,
                Self::Bcast(data, root) => intracomm::bcast(transport, data.output(), rank(*root)?).await,
                Self::Gather(send, pieces, root, even) => {
                    let send = send.as_ref().map(|send| send.input());
                    let pieces = |r| of_root(pieces.as_ref()).output(r);
                    intracomm::gather(transport, send, pieces, rank(*root)?, *even).await
                }
                Self::Scatter(pieces, recv, root, even) => {
                    let recv = recv.as_ref().map(|recv| recv.output());
                    let pieces = |r| of_root(pieces.as_ref()).input(r);
                    intracomm::scatter(transport, pieces, recv, rank(*root)?, *even).await
                }
                Self::Allgather(send, pieces) => {
                    intracomm::allgather(transport, send.as_ref().map(|send| send.input()), |r| {
                        pieces.output(r)
                    })
                    .await
                }
                Self::Alltoall(send, recv) => {
                    let even = matches!(recv.form, Form::Even(..));
                    let send = send.as_ref().map(|send| move |r| send.input(r));
                    if even {
                        intracomm::alltoall_even(transport, send, |r| recv.output(r)).await
                    } else {
                        intracomm::alltoall(transport, send, |r| recv.output(r)).await
                    }
                }
                Self::Reduce(send, recv, op, root) => {
                    let operands = send.as_ref().or(recv.as_ref()).ok_or(NOTHING)?;
                    let result = recv.as_ref().map(|recv| recv.output());
                    intracomm::reduce(transport, operands.input(), result, op.of(operands), rank(*root)?)
                        .await
                }
                Self::Allreduce(send, recv, op) => {
                    let operands = send.as_ref().unwrap_or(recv).input();
                    intracomm::allreduce(transport, operands, recv.output(), op.of(recv)).await
                }
                Self::ReduceScatter(send, recv, counts, op) => {
                    intracomm::reduce_scatter(
                        transport,
                        send.input(),
                        recv.output(),
                        |r| counts[r],
                        op.of(recv),
                    )
                    .await
                }
                Self::Scan(send, recv, op) => {
                    let operands = send.as_ref().unwrap_or(recv).input();
                    intracomm::scan(transport, operands, recv.output(), op.of(recv)).await
                }
                Self::Exscan(send, recv, op) => {
                    let operands = send.as_ref().unwrap_or(recv).input();
                    intracomm::exscan(transport, operands, recv.output(), op.of(recv)).await
                }
                Self::NeighbourAllgather(send, recv) => {
                    neighbor::exchange(transport, comm, |_| send.input(), |r| recv.output(r)).await
                }
                Self::NeighbourAlltoall(send, recv) => {
                    neighbor::exchange(transport, comm, |r| send.input(r), |r| recv.output(r)).await
                }
            }
        }
    }

    /// # Safety
    /// As for [`perform`](Self::perform).
    async unsafe fn between<T: Transport>(&self, sides: &Sides<T>) -> Result<()> {
        // SAFETY: buffer rules 1 and 2: the program leaves the buffers alone until this future is ready or leaked.
        unsafe {
            match self {
                Self::Barrier => intercomm::barrier(sides).await,
                Self::Bcast(data, root) => intercomm::bcast(sides, data.output(), side(*root)?).await,
                Self::Gather(send, pieces, root, _) => {
                    let send = send.as_ref().map(|send| send.input());
                    intercomm::gather(sides, send, |r| of_root(pieces.as_ref()).output(r), side(*root)?).await
                }
                Self::Scatter(pieces, recv, root, _) => {
                    let recv = recv.as_ref().map(|recv| recv.output());
                    intercomm::scatter(sides, |r| of_root(pieces.as_ref()).input(r), recv, side(*root)?).await
                }
                Self::Allgather(Some(send), pieces) => {
                    intercomm::allgather(sides, send.input(), |r| pieces.output(r)).await
                }
                Self::Alltoall(Some(send), recv) => {
                    intercomm::alltoall(sides, |r| send.input(r), |r| recv.output(r)).await
                }
                Self::Reduce(send, recv, op, root) => {
                    let Some(some) = send.as_ref().or(recv.as_ref()) else { return Ok(()) };
                    let (from, to) =
                        (send.as_ref().map(|send| send.input()), recv.as_ref().map(|recv| recv.output()));
                    intercomm::reduce(sides, from, to, op.of(some), side(*root)?).await
                }
                Self::Allreduce(Some(send), recv, op) => {
                    intercomm::allreduce(sides, send.input(), recv.output(), op.of(recv)).await
                }
                Self::ReduceScatter(send, recv, counts, op) => {
                    intercomm::reduce_scatter(sides, send.input(), recv.output(), |r| counts[r], op.of(recv))
                        .await
                }
                _ => Err(Error::Comm("an intercommunicator does not have this operation, or not in place")),
            }
        }
    }
}

const NOTHING: Error = Error::Buffer("there are no operands");

fn rank(place: CallRoot) -> Result<usize> {
    match place {
        CallRoot::Intracomm(rank) => Ok(rank),
        CallRoot::Intercomm(_) => Err(Error::Comm("not an intercommunicator")),
    }
}

fn side(place: CallRoot) -> Result<IntercommRoot> {
    match place {
        CallRoot::Intercomm(root) => Ok(root),
        CallRoot::Intracomm(_) => Err(Error::Comm("an intercommunicator")),
    }
}

/// Returns the pieces of a root: it alone has them, and it alone asks for them.
fn of_root(pieces: Option<&Pieces>) -> &Pieces {
    pieces.expect("the root gives pieces")
}
