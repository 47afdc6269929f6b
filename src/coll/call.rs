//! A collective operation with its arguments: what is run at once, in the background, or again and again.

use super::buffer::{Input, OpKernel, Output};
use super::intercomm::{self, IntercommRoot, Sides};
use super::{EventSpan, Transport, algorithms, intracomm, neighbor};
use crate::comm::Comm;
use crate::datatype::Datatype;
use crate::datatype::op::Op;
use crate::error::{Error, Result};

/// Elements in a user's memory. Whoever makes one promises that they may be read, or written, for as long as a [`Call`] with
/// it is performed.
#[derive(Clone, Debug)]
pub struct Elements {
    /// The user's address.
    pub addr: *mut u8,
    /// Elements.
    pub count: usize,
    /// Their type.
    pub datatype: Datatype,
}

// SAFETY: an address in the user's memory, which any thread may use under the promise above, and what is `Send` and `Sync`.
unsafe impl Send for Elements {}
// SAFETY: as above.
unsafe impl Sync for Elements {}

impl Elements {
    fn input(&self) -> Input<'_> {
        self.output().as_input()
    }
    fn output(&self) -> Output<'_> {
        Output { addr: self.addr, count: self.count, datatype: &self.datatype }
    }
}

/// A piece of a user's memory for each rank (or neighbour), under the same promise as [`Elements`].
#[derive(Clone, Debug)]
pub struct Pieces {
    /// The user's address.
    pub addr: *mut u8,
    /// Where the pieces lie.
    pub form: Form,
}

// SAFETY: as for `Elements`.
unsafe impl Send for Pieces {}
// SAFETY: as for `Elements`.
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
    /// The piece of rank (or neighbour) `r`.
    #[must_use]
    pub fn piece(&self, r: usize) -> Output<'_> {
        let (offset, count, datatype) = match &self.form {
            Form::Even(count, datatype) => {
                ((r as isize).wrapping_mul(*count as isize).wrapping_mul(datatype.extent()), *count, datatype)
            }
            Form::Varied(counts, offsets, datatype) => (offsets[r], counts[r], datatype),
            Form::Each(counts, offsets, types) => (offsets[r], counts[r], &types[r]),
        };
        Output { addr: self.addr.wrapping_offset(offset), count, datatype }
    }
}

/// An operation and the type of its operands.
#[derive(Clone, Debug)]
pub struct TypedOp {
    /// The operation.
    pub op: Op,
    /// The type's handle, which user's functions are told.
    pub handle: usize,
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
pub enum Call {
    /// MPI_Barrier.
    Barrier,
    /// MPI_Bcast: the elements, the root.
    Bcast(Elements, CallRoot),
    /// MPI_Gather(v): what the caller sends, where the root puts it, the root.
    Gather(Option<Elements>, Option<Pieces>, CallRoot),
    /// MPI_Scatter(v): what the root sends, where the caller puts it, the root.
    Scatter(Option<Pieces>, Option<Elements>, CallRoot),
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

impl Call {
    /// Performs the operation on `comm`, whose transports are `transports`.
    ///
    /// # Safety
    /// The user's memory is as [`Elements`] promises until the future is ready, which it is polled to be, or it is leaked.
    ///
    /// # Errors
    /// Those of the transfers and of the operation; [`Error::Comm`] for one that intercommunicators do not have.
    pub async unsafe fn perform<T: Transport>(&self, transports: &Transports<T>, comm: &Comm) -> Result<()> {
        let arrival = || match transports {
            Transports::Intracomm(transport) if self.has_team_form() => {
                let mut team = transport.team(self.operation())?;
                self.is_served_by(&mut team).then_some(team.arrival)
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
        let what = || (self.algorithm(comm, arrival(), requested()), self.bytes(comm));
        let span = EventSpan::begin(comm, self.operation(), mode, what);
        let result = match transports {
            // SAFETY: the caller's promise.
            Transports::Intracomm(transport) => unsafe { self.within(transport, comm) }.await,
            // SAFETY: the caller's promise.
            Transports::Intercomm(sides) => unsafe { self.between(sides) }.await,
        };
        span.end();
        result
    }

    /// # Safety
    /// As for [`perform`](Self::perform).
    async unsafe fn within<T: Transport>(&self, transport: &T, comm: &Comm) -> Result<()> {
        // SAFETY: the caller's promise is what all of these ask for.
        unsafe {
            match self {
                Self::Barrier => super::barrier(transport).await,
                Self::Bcast(data, root) => intracomm::bcast(transport, data.output(), rank(*root)?).await,
                Self::Gather(send, pieces, root) => {
                    let send = send.as_ref().map(Elements::input);
                    algorithms::gather(transport, send, |r| piece(pieces.as_ref(), r), rank(*root)?).await
                }
                Self::Scatter(pieces, recv, root) => {
                    let recv = recv.as_ref().map(Elements::output);
                    algorithms::scatter(
                        transport,
                        |r| piece(pieces.as_ref(), r).as_input(),
                        recv,
                        rank(*root)?,
                    )
                    .await
                }
                Self::Allgather(send, pieces) => {
                    intracomm::allgather(transport, send.as_ref().map(Elements::input), |r| pieces.piece(r))
                        .await
                }
                Self::Alltoall(send, recv) => {
                    let even = matches!(recv.form, Form::Even(..));
                    let send = send.as_ref().map(|send| move |r| send.piece(r).as_input());
                    if even {
                        intracomm::alltoall_even(transport, send, |r| recv.piece(r)).await
                    } else {
                        intracomm::alltoall(transport, send, |r| recv.piece(r)).await
                    }
                }
                Self::Reduce(send, recv, op, root) => {
                    let operands = send.as_ref().or(recv.as_ref()).ok_or(NOTHING)?;
                    let result = recv.as_ref().map(Elements::output);
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
                    neighbor::exchange(transport, comm, |_| send.input(), |r| recv.piece(r)).await
                }
                Self::NeighbourAlltoall(send, recv) => {
                    neighbor::exchange(transport, comm, |r| send.piece(r).as_input(), |r| recv.piece(r)).await
                }
            }
        }
    }

    /// # Safety
    /// As for [`perform`](Self::perform).
    async unsafe fn between<T: Transport>(&self, sides: &Sides<T>) -> Result<()> {
        // SAFETY: the caller's promise is what all of these ask for.
        unsafe {
            match self {
                Self::Barrier => intercomm::barrier(sides).await,
                Self::Bcast(data, root) => intercomm::bcast(sides, data.output(), side(*root)?).await,
                Self::Gather(send, pieces, root) => {
                    let send = send.as_ref().map(Elements::input);
                    intercomm::gather(sides, send, |r| piece(pieces.as_ref(), r), side(*root)?).await
                }
                Self::Scatter(pieces, recv, root) => {
                    let recv = recv.as_ref().map(Elements::output);
                    intercomm::scatter(sides, |r| piece(pieces.as_ref(), r).as_input(), recv, side(*root)?)
                        .await
                }
                Self::Allgather(Some(send), pieces) => {
                    intercomm::allgather(sides, send.input(), |r| pieces.piece(r)).await
                }
                Self::Alltoall(Some(send), recv) => {
                    intercomm::alltoall(sides, |r| send.piece(r).as_input(), |r| recv.piece(r)).await
                }
                Self::Reduce(send, recv, op, root) => {
                    let Some(some) = send.as_ref().or(recv.as_ref()) else { return Ok(()) };
                    let (from, to) =
                        (send.as_ref().map(Elements::input), recv.as_ref().map(Elements::output));
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

/// The piece of `r`, where there are pieces: only the root has them, and only the root asks.
fn piece(pieces: Option<&Pieces>, r: usize) -> Output<'_> {
    pieces.expect("the root gives pieces").piece(r)
}
