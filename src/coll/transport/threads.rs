//! Ranks that are threads of the test: what the algorithms are checked on. A send waits for its receive, as that of a
//! large message does, so that an order of operations that could deadlock does.

use super::Transport;
use crate::error::{Error, Result};
use core::convert::Infallible;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

/// One rank: a thread of the test.
pub struct ThreadTransport {
    rank: usize,
    oversubscribed: bool,
    to: Vec<SyncSender<Vec<u8>>>,
    from: Vec<Receiver<Vec<u8>>>,
}

/// Runs `body` as every rank of `size`, once as if each had a CPU and once as if not;
/// checks that no message is left over.
pub fn ranks(size: usize, body: impl Fn(&ThreadTransport) + Sync) {
    for oversubscribed in [false, true] {
        ranks_on(size, oversubscribed, &body);
    }
}

fn ranks_on(size: usize, oversubscribed: bool, body: &(impl Fn(&ThreadTransport) + Sync)) {
    let make = |rank| ThreadTransport { rank, oversubscribed, to: Vec::new(), from: Vec::new() };
    let mut transports: Vec<ThreadTransport> = (0..size).map(make).collect();
    for from in 0..size {
        for to in 0..size {
            let (sender, receiver) = sync_channel(0);
            transports[from].to.push(sender);
            transports[to].from.push(receiver);
        }
    }
    let transports: Vec<ThreadTransport> = std::thread::scope(|scope| {
        let run = |transport: ThreadTransport| {
            scope.spawn(move || {
                body(&transport);
                transport
            })
        };
        let threads: Vec<_> = transports.into_iter().map(run).collect();
        threads.into_iter().map(|thread| thread.join().expect("a rank failed")).collect()
    });
    for transport in &transports {
        assert!(transport.from.iter().all(|queue| queue.try_recv().is_err()), "a message was never received");
    }
}

impl Transport for ThreadTransport {
    type Hold<'t>
        = Infallible
    where
        Self: 't;

    fn rank(&self) -> usize {
        self.rank
    }
    fn size(&self) -> usize {
        self.to.len()
    }
    fn is_oversubscribed(&self) -> bool {
        self.oversubscribed
    }
    async fn send(&self, to: usize, bytes: &[u8]) -> Result<()> {
        assert_ne!(to, self.rank, "no collective sends to itself");
        self.to[to].send(bytes.to_vec()).map_err(|_| Error::Intern("the receiver is gone".into()))
    }
    async fn recv(&self, from: usize, room: &mut [u8]) -> Result<()> {
        let message = self.from[from].recv().map_err(|_| Error::Intern("the sender is gone".into()))?;
        assert_eq!(message.len(), room.len(), "lengths agree");
        room.copy_from_slice(&message);
        Ok(())
    }
    async fn exchange(&self, to: usize, bytes: &[u8], from: usize, room: &mut [u8]) -> Result<()> {
        assert_ne!(to, self.rank, "no collective sends to itself");
        let queue = &self.to[to];
        std::thread::scope(|scope| {
            scope.spawn(move || queue.send(bytes.to_vec()));
            crate::coll::run(self.recv(from, room))
        })
    }
    async fn exchange_all_while(
        &self,
        sends: &[(usize, &[u8])],
        recvs: &mut [(usize, &mut [u8])],
        own: impl FnOnce() -> Result<()>,
    ) -> Result<()> {
        std::thread::scope(|scope| {
            // One thread a peer: to one peer in order, to different peers at once.
            for (to, queue) in self.to.iter().enumerate() {
                scope.spawn(move || {
                    for (_, bytes) in sends.iter().filter(|send| send.0 == to) {
                        let _ = queue.send(bytes.to_vec());
                    }
                });
            }
            let done = own();
            recvs.iter_mut().try_for_each(|(from, room)| crate::coll::run(self.recv(*from, room)))?;
            done
        })
    }
}
