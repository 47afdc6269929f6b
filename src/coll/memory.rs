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

impl CollectiveOp {
    /// Returns the elements that the operation uses at the caller, and whether it writes them.
    #[must_use]
    pub fn memory(&self, comm: &Comm) -> Vec<(Elements, bool)> {
        let peers = comm.peers().size() as usize;
        // Nothing goes to where a grid has no neighbour, or comes from there (MPI 5.0 §8.6).
        let there = |ranks: &[i32]| (0..ranks.len()).filter(|at| ranks[*at] >= 0).collect::<Vec<_>>();
        let (sources, destinations) = (there(comm.sources()), there(comm.destinations()));
        let of = |pieces: &Pieces, neighbours: &[usize], writes| -> Vec<(Elements, bool)> {
            neighbours.iter().map(|at| (pieces.piece(*at), writes)).collect()
        };
        let one =
            |elements: &Option<Elements>, writes| elements.iter().map(|one| (one.clone(), writes)).collect();
        let all = |pieces: Option<&Pieces>, peers, writes| -> Vec<(Elements, bool)> {
            let pieces = pieces.map(|pieces| pieces.all(peers)).unwrap_or_default();
            pieces.into_iter().map(|piece| (piece, writes)).collect()
        };
        let mut used: Vec<(Elements, bool)> = vec![];
        match self {
            Self::Barrier => {}
            Self::Bcast(data, root) => {
                let is_root = *root == CallRoot::Intracomm(comm.rank() as usize)
                    || *root == CallRoot::Intercomm(IntercommRoot::Caller);
                used.push((data.clone(), !is_root));
            }
            Self::Gather(send, pieces, ..) => {
                used = one(send, false);
                used.extend(all(pieces.as_ref(), peers, true));
            }
            Self::Scatter(pieces, recv, ..) => {
                used = all(pieces.as_ref(), peers, false);
                used.extend::<Vec<_>>(one(recv, true));
            }
            Self::Allgather(send, pieces) => {
                used = one(send, false);
                used.extend(all(Some(pieces), peers, true));
            }
            Self::Alltoall(send, recv) => {
                used = all(send.as_ref(), peers, false);
                used.extend(all(Some(recv), peers, true));
            }
            Self::Reduce(send, recv, ..) => {
                used = one(send, false);
                used.extend::<Vec<_>>(one(recv, true));
            }
            // Rank 0 gets nothing.
            Self::Exscan(send, recv, _) if comm.rank() == 0 => {
                used.push((send.as_ref().unwrap_or(recv).clone(), false));
            }
            Self::Allreduce(send, recv, _) | Self::Scan(send, recv, _) | Self::Exscan(send, recv, _) => {
                used = one(send, false);
                used.push((recv.clone(), true));
            }
            // In place, what is sent lies where the result goes.
            Self::ReduceScatter(send, recv, ..) if send.addr() == recv.addr() => {
                used = vec![(send.clone(), true)]
            }
            Self::ReduceScatter(send, recv, ..) => used = vec![(send.clone(), false), (recv.clone(), true)],
            Self::NeighbourAllgather(send, recv) => {
                used = of(recv, &sources, true);
                used.extend((!destinations.is_empty()).then(|| (send.clone(), false)));
            }
            Self::NeighbourAlltoall(send, recv) => {
                used = of(send, &destinations, false);
                used.extend(of(recv, &sources, true));
            }
        }
        used
    }
}
