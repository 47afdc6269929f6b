//! Blocking collectives on slices (MPI 5.0 chapter 6). All ranks of the communicator call the same one, with the same
//! numbers of elements of the same type; where ranks disagree, some of them get an error.

use super::address::rank;
use super::communicator::Communicator;
use super::element::{Element, datatype};
use super::threading::Threading;
use crate::abi;
use crate::coll::buffer::{InputBuffer, OpKernel, OutputBuffer};
use crate::coll::{self, BlockingTransport, CollContents, EventSpan, Purpose, algorithms, intracomm};
use crate::datatype::op;
use crate::error::{Error, Result};
use crate::events::{Algorithm, CollMode};

/// A reduction operation (MPI 5.0 §6.9.2). Bitwise operations are for integers. All of them commute; floating-point
/// results have the same bits on all ranks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reduction {
    /// The sum; integers wrap around.
    Sum,
    /// The product; integers wrap around.
    Product,
    /// The smallest.
    Min,
    /// The largest.
    Max,
    /// Bitwise and.
    And,
    /// Bitwise or.
    Or,
    /// Bitwise exclusive or.
    Xor,
}

impl Reduction {
    /// The operation, if it takes elements of type `E`.
    pub(super) fn on<E: Element>(self) -> Result<op::Op> {
        let handle = match self {
            Self::Sum => abi::MPI_SUM,
            Self::Product => abi::MPI_PROD,
            Self::Min => abi::MPI_MIN,
            Self::Max => abi::MPI_MAX,
            Self::And => abi::MPI_BAND,
            Self::Or => abi::MPI_BOR,
            Self::Xor => abi::MPI_BXOR,
        };
        let op = op::Op::predefined(handle).ok_or(Error::Op("not predefined"))?;
        op.check(datatype::<E>()).map(|()| op)
    }
}

pub(super) fn input<E: Element>(data: &[E]) -> InputBuffer<'_> {
    // SAFETY: borrowed for as long as the input lives, so the elements stand still (buffer rule 1).
    unsafe { InputBuffer::new(data.as_ptr().cast(), data.len() * E::COUNT, datatype::<E>()) }
}

pub(super) fn output<E: Element>(data: &mut [E]) -> OutputBuffer<'_> {
    // SAFETY: borrowed exclusively for as long as the output lives, and elements may have any bytes (buffer rule 2).
    unsafe { OutputBuffer::new(data.as_mut_ptr().cast(), data.len() * E::COUNT, datatype::<E>()) }
}

/// A slice that is cut into pieces of `each` elements, one for each rank.
fn input_pieces<'a, E: Element>(all: &'a [E], each: usize) -> impl Fn(usize) -> InputBuffer<'a> {
    move |r| input(&all[r * each..][..each])
}

/// A slice that is cut into pieces of `each` elements, one for each rank.
/// A collective uses one output of a piece at a time.
fn output_pieces<'a, E: Element>(all: &'a mut [E], each: usize) -> impl Fn(usize) -> OutputBuffer<'a> {
    let (first, len) = (all.as_mut_ptr(), all.len());
    move |r| {
        assert!(r * each <= len && each <= len - r * each, "a piece of the slice");
        // SAFETY: by the assertion, elements of the slice, which is borrowed exclusively for as long as the output
        // lives; they may have any bytes (buffer rule 2).
        unsafe { OutputBuffer::new(first.add(r * each).cast(), each * E::COUNT, datatype::<E>()) }
    }
}

/// Checks that `all` elements are `ranks` pieces of `each`.
fn fits(all: usize, each: usize, ranks: usize) -> Result<()> {
    if each.checked_mul(ranks) == Some(all) {
        return Ok(());
    }
    Err(Error::Buffer("its length is not the number of ranks times what each of them contributes"))
}

impl<T: Threading> Communicator<T> {
    /// Performs a collective operation: its root, the bytes that the caller contributes (or gets if it contributes
    /// none), and those that it gets.
    fn collective<R>(
        &self,
        (purpose, root, [bytes, received]): (Purpose, Option<usize>, [usize; 2]),
        run: impl FnOnce(&BlockingTransport<'_>) -> Result<R>,
    ) -> Result<R> {
        // Nothing of a collective is under way when it returns, but what a broken member has left (API rule 3).
        self.member.perform(|engine| {
            let what = || CollContents {
                algorithm: Algorithm::Unknown,
                root,
                bytes: bytes as u64,
                received: received as u64,
            };
            let span = purpose
                .operation()
                .map(|operation| EventSpan::begin(&self.comm, operation, CollMode::Blocking, what));
            let result = run(&BlockingTransport::new(engine, &self.comm, purpose));
            if let Some(span) = span {
                span.end();
            }
            result
        })
    }

    fn root(&self, root: usize) -> Result<usize> {
        let size = self.size();
        match rank(root, size) {
            Ok(_) => Ok(root),
            Err(_) => Err(Error::Root { root: root.min(i32::MAX as usize) as i32, size: size as i32 }),
        }
    }

    /// Waits until all ranks have called it (MPI_Barrier, MPI 5.0 §6.3).
    ///
    /// # Errors
    /// [`Error::RankFailed`].
    pub fn barrier(&self) -> Result<()> {
        self.collective((Purpose::Barrier, None, [0, 0]), |transport| transport.run(coll::barrier(transport)))
    }

    /// Makes `data` on all ranks that of rank `root` (MPI_Bcast, MPI 5.0 §6.4). `data` has the same length everywhere.
    ///
    /// # Errors
    /// [`Error::Root`], [`Error::RankFailed`].
    pub fn bcast<E: Element>(&self, data: &mut [E], root: usize) -> Result<()> {
        let root = self.root(root)?;
        let (bytes, data) = (size_of_val(data), output(data));
        let received = if self.rank() == root { 0 } else { bytes };
        self.collective((Purpose::Bcast, Some(root), [bytes, received]), |transport| {
            transport.run(intracomm::bcast(transport, data, root))
        })
    }

    /// Gathers the `data` of all ranks in `all` at rank `root`, in rank order (MPI_Gather, MPI 5.0 §6.5). At the root
    /// `all` is as long as `data` times the number of ranks; elsewhere it stays as it is, and may be empty.
    ///
    /// # Errors
    /// [`Error::Root`]; [`Error::Buffer`] if `all` has not the right length at `root`, where alone it is checked: the
    /// others then wait for a rank that will not come; [`Error::RankFailed`].
    pub fn gather<E: Element>(&self, data: &[E], all: &mut [E], root: usize) -> Result<()> {
        let root = self.root(root)?;
        if self.rank() == root {
            fits(all.len(), data.len(), self.size())?;
        }
        let received = if self.rank() == root { size_of_val(all) } else { 0 };
        let (send, pieces) = (input(data), output_pieces(all, data.len()));
        self.collective((Purpose::Gather, Some(root), [size_of_val(data), received]), |transport| {
            transport.run(algorithms::gather(transport, Some(send), pieces, root))
        })
    }

    /// Gathers the `data` of all ranks in `all`, in rank order (MPI_Allgather, MPI 5.0 §6.7). `all` is as long as
    /// `data` times the number of ranks.
    ///
    /// # Errors
    /// [`Error::Buffer`] if `all` has not the right length; [`Error::RankFailed`].
    pub fn allgather<E: Element>(&self, data: &[E], all: &mut [E]) -> Result<()> {
        fits(all.len(), data.len(), self.size())?;
        let bytes = [size_of_val(data), size_of_val(all)];
        let (send, pieces) = (input(data), output_pieces(all, data.len()));
        self.collective((Purpose::Allgather, None, bytes), |transport| {
            transport.run(intracomm::allgather(transport, Some(send), pieces))
        })
    }

    /// Makes `data` the caller's piece of `all` at rank `root` (MPI_Scatter, MPI 5.0 §6.6). At the root `all` is as
    /// long as `data` times the number of ranks; elsewhere it may be empty.
    ///
    /// # Errors
    /// As [`gather`](Self::gather).
    pub fn scatter<E: Element>(&self, all: &[E], data: &mut [E], root: usize) -> Result<()> {
        let root = self.root(root)?;
        if self.rank() == root {
            fits(all.len(), data.len(), self.size())?;
        }
        let received = size_of_val(data);
        let bytes = [if self.rank() == root { size_of_val(all) } else { received }, received];
        let (pieces, recv) = (input_pieces(all, data.len()), output(data));
        self.collective((Purpose::Scatter, Some(root), bytes), |transport| {
            transport.run(algorithms::scatter(transport, pieces, Some(recv), root))
        })
    }

    /// Makes piece `r` of `received` the piece of rank `r`'s `sent` that has the caller's number (MPI_Alltoall,
    /// MPI 5.0 §6.8). Both slices are cut into as many equal pieces as there are ranks.
    ///
    /// # Errors
    /// [`Error::Buffer`] if the two have different lengths, or are not as many equal pieces as there are ranks;
    /// [`Error::RankFailed`].
    pub fn alltoall<E: Element>(&self, sent: &[E], received: &mut [E]) -> Result<()> {
        let each = sent.len() / self.size();
        fits(sent.len(), each, self.size())?;
        fits(received.len(), each, self.size())?;
        let (bytes, pieces) = (size_of_val(sent), output_pieces(received, each));
        self.collective((Purpose::Alltoall, None, [bytes; 2]), |transport| {
            transport.run(intracomm::alltoall(transport, Some(input_pieces(sent, each)), pieces))
        })
    }

    /// Reduces the `data` of all ranks, element by element, into `result` at rank `root` (MPI_Reduce, MPI 5.0 §6.9.1).
    /// Elsewhere `result` stays as it is, and may be empty.
    ///
    /// # Errors
    /// [`Error::Op`] if the reduction does not take the type; [`Error::Buffer`] if `result` is not as long as `data` at
    /// `root`; [`Error::Root`], [`Error::RankFailed`].
    pub fn reduce<E: Element>(
        &self,
        reduction: Reduction,
        data: &[E],
        result: &mut [E],
        root: usize,
    ) -> Result<()> {
        let root = self.root(root)?;
        let op = reduction.on::<E>()?;
        let is_root = self.rank() == root;
        if is_root {
            fits(result.len(), data.len(), 1)?;
        }
        let kernel = OpKernel { op: &op, datatype: datatype::<E>(), handle: E::HANDLE };
        let (send, recv) = (input(data), is_root.then(|| output(result)));
        let bytes = size_of_val(data);
        self.collective(
            (Purpose::Reduce, Some(root), [bytes, if is_root { bytes } else { 0 }]),
            |transport| transport.run(intracomm::reduce(transport, send, recv, kernel, root)),
        )
    }

    /// Reduces the `data` of all ranks, element by element, into `result` on all ranks (MPI_Allreduce, MPI 5.0 §6.9.6).
    ///
    /// # Errors
    /// [`Error::Op`] if the reduction does not take the type; [`Error::Buffer`] if `result` is not as long as `data`;
    /// [`Error::RankFailed`].
    ///
    /// ```
    /// use perusal::Reduction;
    ///
    /// # fn main() -> perusal::Result<()> {
    /// perusal::run_threads(3, |world| {
    ///     let mut sums = [0.0; 2];
    ///     world.allreduce(Reduction::Sum, &[1.0, world.rank() as f64], &mut sums)?;
    ///     assert_eq!(sums, [3.0, 3.0]);
    ///     Ok(())
    /// })?;
    /// # Ok(()) }
    /// ```
    pub fn allreduce<E: Element>(&self, reduction: Reduction, data: &[E], result: &mut [E]) -> Result<()> {
        let op = reduction.on::<E>()?;
        fits(result.len(), data.len(), 1)?;
        let kernel = OpKernel { op: &op, datatype: datatype::<E>(), handle: E::HANDLE };
        let (send, recv) = (input(data), output(result));
        self.collective((Purpose::Allreduce, None, [size_of_val(data); 2]), |transport| {
            transport.run(intracomm::allreduce(transport, send, recv, kernel))
        })
    }
}
