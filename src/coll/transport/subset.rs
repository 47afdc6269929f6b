//! A transport over some ranks of another.

use super::Transport;
use crate::engine::Mode;
use crate::error::{Error, Result};
use crate::events::Collective;
use core::convert::Infallible;

/// Some ranks of a transport: rank `i` here is rank `ranks[i]` there. Ranks that are not in `ranks` take no part.
pub struct Subset<'a, T> {
    /// The transport that carries the messages.
    pub transport: &'a T,
    /// Its ranks that are in here.
    pub ranks: &'a [usize],
    /// The caller's place in `ranks`.
    pub rank: usize,
}

impl<T: Transport> Transport for Subset<'_, T> {
    type Hold<'t>
        = Infallible
    where
        Self: 't;

    fn rank(&self) -> usize {
        self.rank
    }
    fn size(&self) -> usize {
        self.ranks.len()
    }
    fn failure(&self) -> Option<Error> {
        self.transport.failure()
    }
    fn requested(&self, operation: Collective) -> u64 {
        self.transport.requested(operation)
    }
    fn set_message_mode(&self, mode: Mode) {
        self.transport.set_message_mode(mode);
    }
    fn is_oversubscribed(&self) -> bool {
        self.transport.is_oversubscribed()
    }
    async fn send(&self, to: usize, bytes: &[u8]) -> Result<()> {
        self.transport.send(self.ranks[to], bytes).await
    }
    async fn recv(&self, from: usize, room: &mut [u8]) -> Result<()> {
        self.transport.recv(self.ranks[from], room).await
    }
    async fn exchange(&self, to: usize, bytes: &[u8], from: usize, room: &mut [u8]) -> Result<()> {
        self.transport.exchange(self.ranks[to], bytes, self.ranks[from], room).await
    }
    async fn exchange_all_while(
        &self,
        sends: &[(usize, &[u8])],
        recvs: &mut [(usize, &mut [u8])],
        own: impl FnOnce() -> Result<()>,
    ) -> Result<()> {
        let sends: Vec<(usize, &[u8])> = sends.iter().map(|&(to, bytes)| (self.ranks[to], bytes)).collect();
        let mut recvs: Vec<(usize, &mut [u8])> =
            recvs.iter_mut().map(|(from, room)| (self.ranks[*from], &mut **room)).collect();
        self.transport.exchange_all_while(&sends, &mut recvs, own).await
    }
}

#[cfg(test)]
mod tests {
    use super::super::threads;
    use super::*;
    use crate::coll::{allgather, run};

    #[test]
    fn a_subset_numbers_its_ranks_as_it_lists_them() {
        threads::ranks(5, |transport| {
            let ranks = [4, 1, 2];
            let Some(rank) = ranks.iter().position(|&r| r == transport.rank()) else { return };
            let subset = Subset { transport, ranks: &ranks, rank };
            let mut all = [0; 3];
            all[rank] = transport.rank() as u8;
            run(allgather(&subset, &mut all)).unwrap();
            assert_eq!(all, [4, 1, 2]);
        });
    }
}
