//! The memory that a collective operation uses, for checks that no other operation uses it at the same time.

use super::call::{CallRoot, CollectiveOp, Elements, Form, Pieces};
use super::intercomm::IntercommRoot;
use crate::comm::Comm;

impl Pieces {
    /// All pieces of `peers` ranks (or neighbours); those behind each other as one.
    fn all(&self, peers: usize) -> Vec<Elements> {
        match &self.form {
            Form::Even(count, _) => {
                let all = count.checked_mul(peers).and_then(|all| self.piece(0).with_count(all).ok());
                all.into_iter().collect()
            }
            Form::Varied(counts, ..) | Form::Each(counts, ..) => {
                (0..counts.len().min(peers)).filter(|at| counts[*at] > 0).map(|at| self.piece(at)).collect()
            }
        }
    }
}

/// What an operation uses: elements, and whether it writes them.
#[derive(Default)]
struct Used(Vec<(Elements, bool)>);

impl Used {
    fn reads(mut self, elements: impl IntoIterator<Item = Elements>) -> Self {
        self.0.extend(elements.into_iter().map(|elements| (elements, false)));
        self
    }

    fn writes(mut self, elements: impl IntoIterator<Item = Elements>) -> Self {
        self.0.extend(elements.into_iter().map(|elements| (elements, true)));
        self
    }
}

impl CollectiveOp {
    /// Returns the elements that the operation uses at the caller, and whether it writes them.
    #[must_use]
    pub fn memory(&self, comm: &Comm) -> Vec<(Elements, bool)> {
        let peers = comm.peers().size() as usize;
        let all = |pieces: Option<&Pieces>| pieces.map(|pieces| pieces.all(peers)).unwrap_or_default();
        // Nothing goes to where a grid has no neighbour, or comes from there (MPI 5.0 §8.6).
        let there = |ranks: &[i32]| (0..ranks.len()).filter(|at| ranks[*at] >= 0).collect::<Vec<_>>();
        let (sources, destinations) = (there(comm.sources()), there(comm.destinations()));
        let of = |pieces: &Pieces, neighbours: &[usize]| -> Vec<Elements> {
            neighbours.iter().map(|at| pieces.piece(*at)).collect()
        };
        let is_root = |root: &CallRoot| {
            *root == CallRoot::Intracomm(comm.rank() as usize)
                || *root == CallRoot::Intercomm(IntercommRoot::Caller)
        };
        let used = Used::default();
        let used = match self {
            Self::Barrier => used,
            Self::Bcast(data, root) if is_root(root) => used.reads([data.clone()]),
            Self::Bcast(data, _) => used.writes([data.clone()]),
            Self::Gather(send, pieces, ..) => used.reads(send.clone()).writes(all(pieces.as_ref())),
            Self::Scatter(pieces, recv, ..) => used.reads(all(pieces.as_ref())).writes(recv.clone()),
            Self::Allgather(send, pieces) => used.reads(send.clone()).writes(all(Some(pieces))),
            Self::Alltoall(send, recv) => used.reads(all(send.as_ref())).writes(all(Some(recv))),
            Self::Reduce(send, recv, ..) => used.reads(send.clone()).writes(recv.clone()),
            // Rank 0 gets nothing.
            Self::Exscan(send, recv, _) if comm.rank() == 0 => {
                used.reads([send.as_ref().unwrap_or(recv).clone()])
            }
            Self::Allreduce(send, recv, _) | Self::Scan(send, recv, _) | Self::Exscan(send, recv, _) => {
                used.reads(send.clone()).writes([recv.clone()])
            }
            // In place, what is sent lies where the result goes.
            Self::ReduceScatter(send, recv, ..) if send.addr() == recv.addr() => used.writes([send.clone()]),
            Self::ReduceScatter(send, recv, ..) => used.reads([send.clone()]).writes([recv.clone()]),
            Self::NeighbourAllgather(send, recv) => {
                let send = (!destinations.is_empty()).then(|| send.clone());
                used.writes(of(recv, &sources)).reads(send)
            }
            Self::NeighbourAlltoall(send, recv) => {
                used.reads(of(send, &destinations)).writes(of(recv, &sources))
            }
        };
        used.0
    }
}
