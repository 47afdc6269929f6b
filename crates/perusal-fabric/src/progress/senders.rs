//! Who sends to an endpoint: rings that come and go, and peers that have ended.

use crate::api::FI_ESHUTDOWN;
use crate::memory::process;
use crate::memory::words;
use crate::progress::endpoint::Endpoint;
use perusal::internals::ring::{Consumer, MappedRing, Storage};
use perusal::internals::sync::Ordering;
use std::collections::BTreeSet;
use std::time::{Duration, Instant};

/// How often it is checked which peers have ended.
const PEER_CHECK: Duration = Duration::from_millis(100);

/// The ring from a peer.
#[derive(Debug)]
pub(crate) struct Incoming {
    pub consumer: Consumer<MappedRing>,
    pub slot: usize,
    pub peer: u32,
    /// Records that others had sent through the slot before.
    pub before: u64,
}

impl Incoming {
    fn new(consumer: Consumer<MappedRing>, slot: usize, peer: u32) -> Self {
        Self { before: consumer.position(), consumer, slot, peer }
    }

    /// Records that were taken.
    pub fn taken(&self) -> u64 {
        self.consumer.position() - self.before
    }
}

impl Endpoint {
    #[cold]
    pub(crate) fn take_changed_slots(&mut self) {
        self.changes = self.segment.words().changes();
        // Rings that a sender has left after those that it has come by:
        // what it has sent by a former one is taken before what comes by another.
        let states = [words::READY, words::CLOSED];
        for (state, slot) in
            states.into_iter().flat_map(|state| (0..words::SLOTS).map(move |slot| (state, slot)))
        {
            if self.segment.words().state(slot) != state {
                continue;
            }
            match (state, self.incoming.iter().position(|one| one.slot == slot)) {
                (words::READY, None) => self.take_sender(slot),
                (words::CLOSED, known) => self.leave_sender(slot, known),
                _ => {}
            }
        }
        self.core.shares = !self.is_outnumbered();
    }

    /// Takes records by the ring of a slot from now on.
    fn take_sender(&mut self, slot: usize) {
        let sender = self.segment.sender(slot);
        let peer = self.core.peers.number(sender);
        let ring = self.segment.ring(slot);
        let consumer = Consumer::resume(ring);
        self.core.peers.all[peer as usize].incoming = Some(ring);
        consumer.disable_notification();
        self.incoming.push(Incoming::new(consumer, slot, peer));
        self.cpus.add(sender.pid);
        self.meets_itself |= sender == self.address;
    }

    /// Takes what is left in the ring of a slot whose sender has left it, and gives the slot back.
    fn leave_sender(&mut self, slot: usize, known: Option<usize>) {
        let sender = self.segment.sender(slot);
        let peer = self.core.peers.number(sender);
        let mut incoming = match known {
            Some(at) => {
                self.last = 0;
                self.incoming.swap_remove(at)
            }
            None => Incoming::new(Consumer::resume(self.segment.ring(slot)), slot, peer),
        };
        let consumer = &mut incoming.consumer;
        while let Ok(Some(())) = consumer.poll(|header, payload| self.core.take(peer, header, payload)) {}
        consumer.retire();
        self.taken_before += incoming.taken();
        self.forget_ring_from(peer);
        self.segment.words().free(slot);
        self.core.end_arriving_from(peer);
    }

    /// A ring from a peer is gone; the peer may have come by another one.
    fn forget_ring_from(&mut self, peer: u32) {
        let other = self.incoming.iter().find(|one| one.peer == peer);
        self.core.peers.all[peer as usize].incoming = other.map(|one| *one.consumer.storage());
    }

    /// Looks for peers that have ended, if it was not done lately.
    #[cold]
    pub(crate) fn check_at_times(&mut self) {
        if self.peers_checked.is_none_or(|checked| checked.elapsed() >= PEER_CHECK) {
            self.look_for_the_dead();
        }
    }

    /// Peers on this node whose end matters: who sends, who is sent to, and whoever a receive names.
    pub(crate) fn awaited(&self) -> BTreeSet<u32> {
        let peers = &self.core.peers.all;
        let is_met =
            |at: &u32| peers[*at as usize].outgoing.is_some() || peers[*at as usize].incoming.is_some();
        let mut awaited: BTreeSet<u32> = (0..peers.len() as u32).filter(is_met).collect();
        awaited.extend(self.core.receives.iter().filter_map(|one| one.1.pattern.peer));
        // A receive may name a number that no peer has.
        awaited.retain(|&at| peers.get(at as usize).is_some_and(|peer| !peer.is_remote()));
        awaited
    }

    /// Ends what is under way with peers that are closed, or whose process has ended,
    /// and gives the slots of processes back that have ended.
    #[cold]
    pub(crate) fn look_for_the_dead(&mut self) {
        self.peers_checked = Some(Instant::now());
        let mut ended = self.awaited();
        ended.retain(|&peer| self.core.peers.all[peer as usize].has_ended());
        // What they have sent is taken first: they send nothing more.
        self.take_changed_slots();
        let mut at = 0;
        while at < self.incoming.len() {
            let one = &self.incoming[at];
            // A peer that is only closed may still be about to say CLOSED:
            // that must not meet another sender's slot (slot rule 1).
            if ended.contains(&one.peer)
                && !one.consumer.ready()
                && !self.core.peers.all[one.peer as usize].has_memory()
            {
                self.drop_peer(at);
            } else {
                at += 1;
            }
        }
        for peer in ended {
            let one = &self.core.peers.all[peer as usize];
            let (sent_to, sends) = (one.outgoing.is_some(), one.incoming.is_some());
            if sent_to {
                self.core.end_with(peer);
            }
            if !sends {
                self.core.end_receives_from(peer, FI_ESHUTDOWN);
            }
        }
        for slot in 0..words::SLOTS {
            let words = self.segment.words();
            if let Some(claimer) = words.claimer(slot).filter(|&pid| process::has_ended(pid)) {
                words.take_back(slot, claimer);
            }
        }
        self.look_for_the_dead_elsewhere();
        let forgotten = self.core.forget_strangers();
        self.turns.forget(&forgotten);
        self.say_status();
    }

    #[cold]
    pub(crate) fn drop_peer(&mut self, at: usize) {
        self.last = 0;
        let incoming = self.incoming.swap_remove(at);
        self.taken_before += incoming.taken();
        let Incoming { mut consumer, slot, peer, .. } = incoming;
        self.core.peers.all[peer as usize].dead = true;
        self.forget_ring_from(peer);
        self.core.end_with(peer);
        consumer.retire();
        // The next sender goes on where the owner's end is: the dead one left no word about its own.
        let control = consumer.storage().control();
        let order = Ordering::Relaxed;
        // Relaxed: published by `free` (slot rule 1).
        control.producer.tail.store(control.consumer.head.load(order), order);
        control.producer.bulk_tail.store(control.consumer.bulk_head.load(order), order);
        self.segment.words().free(slot);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::FI_ADDR_NOTAVAIL;
    use crate::operands::key::TagPattern;
    use crate::operands::spans::Spans;
    use crate::protocol::operation::Receive;
    use crate::protocol::queue::Queue;
    use std::process::Command;
    use std::rc::Rc;

    /// The child is not waited for before the end, so that its number stays its own.
    #[test]
    fn slots_of_senders_that_were_killed_while_they_came_are_taken_back() {
        let mut endpoint = Endpoint::new().expect("an endpoint");
        let mut child = Command::new("true").spawn().expect("a process");
        // SAFETY: zero is a value of every field, which the call writes.
        unsafe {
            let mut said: libc::siginfo_t = std::mem::zeroed();
            assert_eq!(
                libc::waitid(libc::P_PID, child.id(), &raw mut said, libc::WEXITED | libc::WNOWAIT),
                0
            );
        }
        let words = endpoint.segment.words();
        assert_eq!(words.claim((std::process::id(), 0, 1)), Some(0));
        (1..words::SLOTS).for_each(|at| assert_eq!(words.claim((child.id(), 0, 1)), Some(at)));
        assert_eq!(words.claim((1, 0, 1)), None);
        endpoint.look_for_the_dead();
        let words = endpoint.segment.words();
        assert_eq!(words.claim((1, 0, 1)), Some(1), "the first one's process goes on");
        child.wait().expect("an end");
    }

    #[test]
    fn a_slot_stays_its_senders_until_the_sender_has_left_it() {
        let (mut owner, mut sender) =
            (Endpoint::new().expect("an endpoint"), Endpoint::new().expect("an endpoint"));
        let to = sender.core.peers.number(owner.address);
        let from = owner.core.peers.number(sender.address);
        sender.core.peers.outgoing(to).expect("a ring");
        owner.core.peers.outgoing(from).expect("a ring");
        owner.progress();
        // The sender is in the middle of its end.
        sender.segment.words().close();
        owner.look_for_the_dead();
        assert!(owner.core.peers.all[from as usize].dead);
        assert_eq!(owner.segment.words().state(0), words::READY);
        sender.core.peers.detach(to);
        owner.look_for_the_dead();
        assert_eq!(owner.segment.words().state(0), words::FREE);
    }

    /// Peers that come and go one after the other, as many as a daemon meets.
    #[test]
    fn peers_that_are_gone_are_forgotten() {
        let mut owner = Endpoint::new().expect("an endpoint");
        owner.core.reports.receive_queue = Some(Rc::new(Queue::default()));
        let none = std::ptr::null_mut();
        for round in 0..100 {
            let mut sender = Endpoint::new().expect("an endpoint");
            sender.core.introduce(0, owner.address);
            // It is answered every other time, and two times in three it is known by a number, or by two.
            let numbers = [2 * round, 2 * round + 1];
            numbers[..round as usize % 3]
                .iter()
                .for_each(|&number| owner.core.introduce(number, sender.address));
            sender.core.send_eager(0, None, None, &Spans::none(), none, false).expect("room");
            owner.progress();
            if round % 2 == 0 && round % 3 > 0 {
                owner.core.send_eager(2 * round, None, None, &Spans::none(), none, false).expect("room");
            }
            drop(sender);
            owner.look_for_the_dead();
            assert_eq!(owner.core.peers.known(), 1, "its message is kept");
            let pattern = TagPattern { peer: None, tag: 0, ignore: u64::MAX };
            let (spans, several) = (Spans::none(), None);
            let receive =
                Receive { spans, context: none, pattern, tagged: false, completion: true, several, trace: 0 };
            owner.core.receive(receive);
            owner.look_for_the_dead();
            assert_eq!(owner.core.peers.known(), usize::from(round % 3 > 0), "the address vector has it");
            numbers.iter().for_each(|&number| owner.core.forget(number));
            owner.look_for_the_dead();
            assert_eq!(owner.core.peers.known(), 0);
        }
        assert_eq!(owner.core.peers.all.len(), 1);
        let queue = owner.core.reports.receive_queue.as_ref().expect("a queue").done.take();
        let sources: Vec<u64> = queue.iter().map(|one| one.source).collect();
        let number = |round: u64| if round.is_multiple_of(3) { FI_ADDR_NOTAVAIL } else { 2 * round };
        assert_eq!(sources, (0..100).map(number).collect::<Vec<_>>());
    }

    #[test]
    fn a_peer_with_which_something_is_under_way_is_not_forgotten() {
        let mut owner = Endpoint::new().expect("an endpoint");
        let peer = Endpoint::new().expect("an endpoint");
        owner.core.introduce(0, peer.address);
        let pattern = TagPattern { peer: owner.core.peer_of(0), tag: 0, ignore: 0 };
        let (spans, context, several) = (Spans::none(), std::ptr::null_mut(), None);
        owner.core.receive(Receive {
            spans,
            context,
            pattern,
            tagged: true,
            completion: true,
            several,
            trace: 0,
        });
        owner.core.forget(0);
        owner.look_for_the_dead();
        assert_eq!(owner.core.peers.known(), 1, "a receive names it");
        owner.core.cancel(context);
        owner.look_for_the_dead();
        assert_eq!(owner.core.peers.known(), 0);
    }

    /// A ring that a sender has left is not mistaken for the one that it has come by since.
    #[test]
    fn a_sender_that_comes_again_keeps_its_new_ring() {
        let [mut owner, mut first, mut sender] = [(); 3].map(|()| Endpoint::new().expect("an endpoint"));
        let [to_owner, to] = [&mut first, &mut sender].map(|one| one.core.peers.number(owner.address));
        let from = owner.core.peers.number(sender.address);
        first.core.peers.outgoing(to_owner).expect("a ring");
        sender.core.peers.outgoing(to).expect("a ring");
        owner.progress();
        // Its new slot is before its old one, which is found to be left in the same look.
        first.core.peers.detach(to_owner);
        owner.progress();
        sender.core.peers.detach(to);
        sender.core.peers.outgoing(to).expect("a ring");
        owner.progress();
        assert!(owner.core.peers.all[from as usize].incoming.is_some());
        owner.look_for_the_dead();
        assert_eq!((owner.core.peers.known(), owner.incoming.len()), (1, 1));
    }
}
