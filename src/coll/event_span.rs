//! The events of collective operations: CollBegin and CollEnd,
//! for blocking and nonblocking ones and each start of a persistent one.

use super::call::{CallRoot, CollectiveOp, Elements, Form, Pieces};
use super::intercomm::IntercommRoot;
use super::pair::is_pair;
use super::selection::{Case, by_messages};
use super::shared_memory::TeamCapacity;
use crate::comm::Comm;
use crate::events::{Algorithm, CollMode, CollRoot, Collective, Event, EventPayload, EventRecord, Spec};
use crate::team::{PAYLOAD, RoundArrival};

/// What is known of an operation before it begins.
#[derive(Debug, Clone, Copy)]
pub struct CollContents {
    /// How it is performed.
    pub algorithm: Algorithm,
    /// The root's rank; `None` if there is none, or it is this rank's side of an intercommunicator.
    pub root: Option<usize>,
    /// Bytes that the caller contributes, or gets if it contributes nothing.
    pub bytes: u64,
    /// Bytes that the caller gets.
    pub received: u64,
}

/// One operation from its CollBegin to its CollEnd.
pub struct EventSpan<'a> {
    comm: &'a Comm,
    operation: Collective,
    mode: CollMode,
    /// The id, and what the events contain. `None` if no listener was there at the beginning:
    /// then CollEnd is not emitted either.
    contents: Option<(isize, CollContents)>,
}

impl<'a> EventSpan<'a> {
    /// Emits CollBegin for `operation` on `comm`. `what` is called only if there is a listener.
    #[inline]
    pub fn begin(
        comm: &'a Comm,
        operation: Collective,
        mode: CollMode,
        what: impl FnOnce() -> CollContents,
    ) -> Self {
        let gate = &comm.events.gate;
        let mut span = Self { comm, operation, mode, contents: None };
        if gate.is_open(Event::CollBegin) || gate.is_open(Event::CollEnd) {
            span.contents = Some((comm.events.registry().fresh_id(), what()));
            span.emit(Event::CollBegin);
        }
        span
    }

    /// Emits CollEnd, whether or not the operation has failed.
    #[inline]
    pub fn end(self) {
        if self.contents.is_some() {
            self.emit(Event::CollEnd);
        }
    }

    #[cold]
    fn emit(&self, event: Event) {
        let Some((id, contents)) = self.contents.filter(|_| self.comm.events.gate.is_open(event)) else {
            return;
        };
        let spec = Spec { comm: self.comm.handle(), ..Spec::NOTHING };
        let payload = EventPayload::Coll {
            operation: self.operation as u16,
            root: CollRoot(contents.root.and_then(|root| root.try_into().ok())),
            algorithm: contents.algorithm as u16,
            mode: self.mode as u8,
            bytes: if event == Event::CollEnd { contents.received } else { contents.bytes },
        };
        let context = self.comm.context;
        self.comm.events.emit(&EventRecord { event, id, context, spec: &spec, payload });
    }
}

fn bytes(elements: &Elements) -> u64 {
    elements.bytes() as u64
}

fn all_bytes(pieces: &Pieces, ranks: usize) -> u64 {
    (0..ranks).map(|r| pieces.bytes(r) as u64).sum()
}

/// How many neighbours the caller has in the topology of `comm`: those that it receives from,
/// or those that it sends to.
fn neighbours(comm: &Comm, sources: bool) -> usize {
    if sources { comm.sources().len() } else { comm.destinations().len() }
}

impl CollectiveOp {
    /// Returns which operation the call is.
    #[must_use]
    pub const fn operation(&self) -> Collective {
        match self {
            Self::Barrier => Collective::Barrier,
            Self::Bcast(..) => Collective::Bcast,
            Self::Gather(..) => Collective::Gather,
            Self::Scatter(..) => Collective::Scatter,
            Self::Allgather(..) => Collective::Allgather,
            Self::Alltoall(..) => Collective::Alltoall,
            Self::Reduce(..) => Collective::Reduce,
            Self::Allreduce(..) => Collective::Allreduce,
            Self::ReduceScatter(..) => Collective::ReduceScatter,
            Self::Scan(..) => Collective::Scan,
            Self::Exscan(..) => Collective::Exscan,
            Self::NeighbourAllgather(..) => Collective::NeighbourAllgather,
            Self::NeighbourAlltoall(..) => Collective::NeighbourAlltoall,
        }
    }

    /// Returns the bytes of data that the caller contributes on `comm`, or gets where it contributes none.
    pub(super) fn bytes(&self, comm: &Comm) -> u64 {
        match self {
            Self::Barrier => 0,
            Self::Bcast(data, _) => bytes(data),
            Self::Gather(Some(data), ..) | Self::Scatter(_, Some(data), ..) => bytes(data),
            Self::Allgather(Some(data), _) => bytes(data),
            Self::Reduce(data, result, ..) => data.as_ref().or(result.as_ref()).map_or(0, bytes),
            Self::Allreduce(_, data, _) | Self::Scan(_, data, _) | Self::Exscan(_, data, _) => bytes(data),
            Self::ReduceScatter(data, ..) | Self::NeighbourAllgather(data, _) => bytes(data),
            Self::Alltoall(send, recv) => {
                all_bytes(send.as_ref().unwrap_or(recv), comm.peers().size() as usize)
            }
            Self::Gather(None, ..)
            | Self::Scatter(_, None, ..)
            | Self::Allgather(None, _)
            | Self::NeighbourAlltoall(..) => 0,
        }
    }

    /// Returns what the events of the operation on `comm` say, which is performed by `algorithm`.
    pub(super) fn contents(&self, comm: &Comm, algorithm: Algorithm) -> CollContents {
        let root = match self {
            Self::Bcast(_, root)
            | Self::Gather(_, _, root, _)
            | Self::Scatter(_, _, root, _)
            | Self::Reduce(_, _, _, root) => match root {
                CallRoot::Intracomm(rank) | CallRoot::Intercomm(IntercommRoot::Remote(rank)) => Some(*rank),
                CallRoot::Intercomm(IntercommRoot::Caller | IntercommRoot::Sibling) => None,
            },
            _ => None,
        };
        let bytes = match self {
            Self::Scatter(Some(pieces), ..) => all_bytes(pieces, comm.peers().size() as usize),
            Self::NeighbourAllgather(data, _) => bytes(data) * neighbours(comm, false) as u64,
            Self::NeighbourAlltoall(send, _) => all_bytes(send, neighbours(comm, false)),
            _ => self.bytes(comm),
        };
        CollContents { algorithm, root, bytes, received: self.received(comm) }
    }

    /// Returns the bytes of data that the caller gets on `comm`.
    fn received(&self, comm: &Comm) -> u64 {
        let ranks = comm.peers().size() as usize;
        match self {
            Self::Barrier | Self::Scatter(_, None, ..) | Self::Gather(_, None, ..) => 0,
            Self::Bcast(data, root) => {
                let sends = matches!(root, CallRoot::Intercomm(IntercommRoot::Caller))
                    || *root == CallRoot::Intracomm(comm.rank() as usize);
                if sends { 0 } else { bytes(data) }
            }
            Self::Scatter(_, Some(data), ..) => bytes(data),
            Self::Gather(_, Some(pieces), ..) | Self::Allgather(_, pieces) | Self::Alltoall(_, pieces) => {
                all_bytes(pieces, ranks)
            }
            Self::Reduce(_, result, ..) => result.as_ref().map_or(0, bytes),
            Self::Allreduce(_, data, _)
            | Self::Scan(_, data, _)
            | Self::Exscan(_, data, _)
            | Self::ReduceScatter(_, data, ..) => bytes(data),
            Self::NeighbourAllgather(_, pieces) | Self::NeighbourAlltoall(_, pieces) => {
                all_bytes(pieces, neighbours(comm, true))
            }
        }
    }

    /// Returns whether the shared-memory team may serve the operation.
    pub(super) const fn has_team_form(&self) -> bool {
        match self {
            Self::Barrier
            | Self::Bcast(..)
            | Self::Allgather(..)
            | Self::Reduce(..)
            | Self::Allreduce(..)
            | Self::ReduceScatter(..)
            | Self::Scan(..)
            | Self::Exscan(..) => true,
            Self::Gather(_, _, _, even) | Self::Scatter(_, _, _, even) => *even,
            Self::Alltoall(_, pieces) => matches!(pieces.form, Form::Even(..)),
            _ => false,
        }
    }

    /// Returns whether a team, which may serve the operation, serves one of this size.
    pub(super) fn is_served_by(&self, team: &TeamCapacity<'_>) -> bool {
        match self {
            Self::Alltoall(_, recv) => team.may_serve(self.operation(), recv.bytes(0)),
            Self::Allgather(_, recv) => {
                let longest = (0..team.size).map(|r| recv.bytes(r)).max().unwrap_or_default();
                let equal = (0..team.size).all(|r| recv.bytes(r) == longest);
                let may = |bytes| bytes <= PAYLOAD || team.may_serve(self.operation(), bytes);
                if equal { may(longest) } else { team.size > 2 || longest <= PAYLOAD }
            }
            Self::Gather(_, pieces, ..) | Self::Scatter(pieces, ..) if pieces.is_some() => {
                let block = pieces.as_ref().map_or(0, |pieces| pieces.bytes(0));
                team.may_serve(self.operation(), block)
            }
            Self::Gather(Some(data), ..)
            | Self::Scatter(_, Some(data), ..)
            | Self::Bcast(data, _)
            | Self::ReduceScatter(data, ..)
            | Self::Scan(_, data, _)
            | Self::Exscan(_, data, _) => team.may_serve(self.operation(), data.bytes()),
            Self::Reduce(data, result, ..) => {
                let bytes = data.as_ref().or(result.as_ref()).map_or(0, Elements::bytes);
                team.may_serve(self.operation(), bytes)
            }
            _ => true,
        }
    }

    /// Returns how the operation is performed on `comm`, as far as that is known before it begins; `arrival` if the
    /// team serves it, else `requested` says what its control variable asks for.
    pub(super) fn algorithm(
        &self,
        comm: &Comm,
        arrival: Option<RoundArrival>,
        requested: u64,
        oversubscribed: bool,
    ) -> Algorithm {
        if comm.is_inter() {
            return Algorithm::Between;
        }
        if let Some(arrival) = arrival {
            let small = self.bytes(comm) as usize <= PAYLOAD;
            return match (self, arrival) {
                (_, RoundArrival::Count) if small => Algorithm::Counted,
                (_, RoundArrival::Flags) if small => Algorithm::Flagged,
                _ => Algorithm::Shared,
            };
        }
        if is_pair(self.operation(), comm.size() as usize, requested) {
            return Algorithm::TwoProc;
        }
        let case = self.case(comm).map(|case| Case { oversubscribed, ..case });
        let selected = case.and_then(|case| by_messages(self.operation(), &case, requested));
        match self {
            Self::NeighbourAllgather(..) | Self::NeighbourAlltoall(..) => Algorithm::Linear,
            _ => selected.map_or(Algorithm::Unknown, |(_, label)| label),
        }
    }

    /// Returns what the algorithm is selected by, as far as it is known before the operation begins.
    fn case(&self, comm: &Comm) -> Option<Case> {
        let ranks = comm.size() as usize;
        let of = |elements: &Elements| bytes(elements) as usize;
        Some(match self {
            Self::Bcast(data, _) => Case::new(of(data), ranks),
            Self::Allgather(_, pieces) => match &pieces.form {
                Form::Even(count, datatype) => Case::new(count * datatype.size() * ranks, ranks),
                _ => return None,
            },
            Self::Alltoall(_, recv) => match &recv.form {
                Form::Even(count, datatype) => Case::new(count * datatype.size(), ranks),
                _ => Case { equal_blocks: false, ..Case::new(0, ranks) },
            },
            Self::Reduce(data, result, op, _) => {
                let bytes = data.as_ref().or(result.as_ref()).map_or(0, of);
                Case { commutes: op.op.commutative(), ..Case::new(bytes, ranks) }
            }
            Self::Allreduce(_, data, op) | Self::Scan(_, data, op) | Self::Exscan(_, data, op) => {
                Case { commutes: op.op.commutative(), ..Case::new(of(data), ranks) }
            }
            Self::ReduceScatter(data, _, _, op) => {
                Case { commutes: op.op.commutative(), equal_blocks: false, ..Case::new(of(data), ranks) }
            }
            _ => Case { equal_blocks: false, ..Case::new(0, ranks) },
        })
    }
}
