//! What collective operations tell of themselves: the events CollBegin and CollEnd, for blocking ones, those in the
//! background, and each start of a persistent one.

use super::call::{Call, Elements, Form, Pieces};
use super::selection::TeamOperation;
use super::shared_memory::TeamGuard;
use crate::comm::Comm;
use crate::events::{Algorithm, CollMode, Collective, Event, EventPayload, EventRecord, Spec};
use crate::team::{Arrival, PAYLOAD};
use core::cell::Cell;

/// One operation that somebody may listen to, from its begin to its end.
pub struct EventSpan<'a> {
    comm: &'a Comm,
    /// 0 if nobody listened at the beginning: then there is no end to tell either.
    id: isize,
    operation: Collective,
    mode: CollMode,
    algorithm: Cell<Algorithm>,
    bytes: u64,
}

impl<'a> EventSpan<'a> {
    /// Tells that `operation` begins on `comm`. What it moves is asked for only if somebody listens.
    #[inline]
    pub fn begin(
        comm: &'a Comm,
        operation: Collective,
        mode: CollMode,
        what: impl FnOnce() -> (Algorithm, u64),
    ) -> Self {
        let gate = &comm.events.gate;
        let mut told =
            Self { comm, id: 0, operation, mode, algorithm: Cell::new(Algorithm::Unknown), bytes: 0 };
        if gate.is_open(Event::CollBegin) || gate.is_open(Event::CollEnd) {
            let (algorithm, bytes) = what();
            told.id = comm.events.registry().fresh_id();
            told.algorithm.set(algorithm);
            told.bytes = bytes;
            told.tell(Event::CollBegin);
        }
        told
    }

    /// The operation is performed by `algorithm`: what the end tells.
    pub fn by(&self, algorithm: Algorithm) {
        self.algorithm.set(algorithm);
    }

    /// Tells that the operation is over, whether or not it went well.
    #[inline]
    pub fn end(self) {
        if self.id != 0 {
            self.tell(Event::CollEnd);
        }
    }

    #[cold]
    fn tell(&self, event: Event) {
        if !self.comm.events.gate.is_open(event) {
            return;
        }
        let spec = Spec { comm: self.comm.handle(), ..Spec::NOTHING };
        let payload = EventPayload::Coll {
            operation: self.operation as u16,
            algorithm: self.algorithm.get() as u16,
            mode: self.mode as u8,
            bytes: self.bytes,
        };
        let context = self.comm.context;
        self.comm.events.emit(&EventRecord { event, id: self.id, context, spec: &spec, payload });
    }
}

fn bytes(elements: &Elements) -> u64 {
    (elements.datatype.size() * elements.count) as u64
}

fn all_bytes(pieces: &Pieces, ranks: usize) -> u64 {
    (0..ranks).map(|r| pieces.piece(r)).map(|piece| (piece.datatype.size() * piece.count) as u64).sum()
}

impl Call {
    /// Which operation it is.
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

    /// Bytes of data that the caller contributes on `comm`, or gets where it contributes none.
    pub(super) fn bytes(&self, comm: &Comm) -> u64 {
        match self {
            Self::Barrier => 0,
            Self::Bcast(data, _) => bytes(data),
            Self::Gather(Some(data), ..) | Self::Scatter(_, Some(data), _) => bytes(data),
            Self::Allgather(Some(data), _) => bytes(data),
            Self::Reduce(data, result, ..) => data.as_ref().or(result.as_ref()).map_or(0, bytes),
            Self::Allreduce(_, data, _) | Self::Scan(_, data, _) | Self::Exscan(_, data, _) => bytes(data),
            Self::ReduceScatter(data, ..) | Self::NeighbourAllgather(data, _) => bytes(data),
            Self::Alltoall(send, recv) => {
                all_bytes(send.as_ref().unwrap_or(recv), comm.peers().size() as usize)
            }
            Self::Gather(None, ..)
            | Self::Scatter(_, None, _)
            | Self::Allgather(None, _)
            | Self::NeighbourAlltoall(..) => 0,
        }
    }

    /// Which of the operations it is that shared memory serves, if it is one.
    pub(super) const fn kind(&self) -> Option<TeamOperation> {
        Some(match self {
            Self::Barrier => TeamOperation::Barrier,
            Self::Bcast(..) => TeamOperation::Bcast,
            Self::Allgather(..) => TeamOperation::Allgather,
            Self::Alltoall(_, Pieces { form: Form::Even(..), .. }) => TeamOperation::Alltoall,
            Self::Reduce(..) => TeamOperation::Reduce,
            Self::Allreduce(..) => TeamOperation::Allreduce,
            _ => return None,
        })
    }

    /// Whether shared memory, where it serves this kind of operation, serves one of this size.
    pub(super) fn is_served_by(&self, team: &mut TeamGuard<'_>) -> bool {
        match self {
            Self::Alltoall(_, recv) => team.serves_alltoall(recv.piece(0).bytes()),
            _ => true,
        }
    }

    /// How it is performed on `comm`, as far as that is known before it begins; `arrival` if shared memory serves it.
    pub(super) fn algorithm(&self, comm: &Comm, arrival: Option<Arrival>) -> Algorithm {
        if comm.is_inter() {
            return Algorithm::Between;
        }
        if let Some(arrival) = arrival {
            let small = self.bytes(comm) as usize <= PAYLOAD;
            return match (self, arrival) {
                (_, Arrival::Count) if small => Algorithm::Counted,
                (_, Arrival::Flags) if small => Algorithm::Flagged,
                _ => Algorithm::Shared,
            };
        }
        match self {
            Self::Barrier => Algorithm::Dissemination,
            Self::Bcast(data, _) => super::bytes::bcast_by(bytes(data) as usize, comm.size() as usize),
            Self::Gather(..) | Self::Scatter(..) => Algorithm::Linear,
            Self::Alltoall(..) => Algorithm::Pairwise,
            Self::NeighbourAllgather(..) | Self::NeighbourAlltoall(..) => Algorithm::Linear,
            Self::Allreduce(..) => Algorithm::Doubling,
            _ => Algorithm::Unknown,
        }
    }
}
