//! A port over some ranks of another.

use super::Port;
use crate::error::Result;

/// Rank `i` here is rank `ranks[i]` of `port`. Those who are not in `ranks` take no part.
pub struct Subset<'a, P> {
    /// The port that carries the messages.
    pub port: &'a P,
    /// Its ranks that are in here.
    pub ranks: &'a [usize],
    /// The caller's place in `ranks`.
    pub rank: usize,
}

impl<P: Port> Port for Subset<'_, P> {
    fn rank(&self) -> usize {
        self.rank
    }
    fn size(&self) -> usize {
        self.ranks.len()
    }
    async fn send(&self, to: usize, bytes: &[u8]) -> Result<()> {
        self.port.send(self.ranks[to], bytes).await
    }
    async fn recv(&self, from: usize, room: &mut [u8]) -> Result<()> {
        self.port.recv(self.ranks[from], room).await
    }
    async fn exchange(&self, to: usize, bytes: &[u8], from: usize, room: &mut [u8]) -> Result<()> {
        self.port.exchange(self.ranks[to], bytes, self.ranks[from], room).await
    }
    async fn exchange_all(&self, sends: &[(usize, &[u8])], recvs: &mut [(usize, &mut [u8])]) -> Result<()> {
        let sends: Vec<(usize, &[u8])> = sends.iter().map(|&(to, bytes)| (self.ranks[to], bytes)).collect();
        let mut recvs: Vec<(usize, &mut [u8])> =
            recvs.iter_mut().map(|(from, room)| (self.ranks[*from], &mut **room)).collect();
        self.port.exchange_all(&sends, &mut recvs).await
    }
}

#[cfg(test)]
mod tests {
    use super::super::{allgather, fake, run};
    use super::*;

    #[test]
    fn a_subset_numbers_its_ranks_as_it_lists_them() {
        fake::ranks(5, |port| {
            let ranks = [4, 1, 2];
            let Some(rank) = ranks.iter().position(|&r| r == port.rank()) else { return };
            let subset = Subset { port, ranks: &ranks, rank };
            let mut all = [0; 3];
            all[rank] = port.rank() as u8;
            run(allgather(&subset, &mut all)).unwrap();
            assert_eq!(all, [4, 1, 2]);
        });
    }
}
