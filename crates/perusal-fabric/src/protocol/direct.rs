//! Long messages between nodes: the core provider moves them from the sender's buffer into the receive's,
//! without a copy of ours.
//!
//! Matching is as for all messages: an RTS finds its receive. Then the receiver gives the receive's buffer to the core
//! provider, for a message with a tag that nobody else has, and the tag to the sender, which has the core provider send
//! its buffer. Neither operation completes before the core provider has given its buffer back, whatever becomes of the
//! peer: a receive is cancelled; a message that has begun to arrive ends when it is there, or when the core provider
//! sees that the connection is gone. Where it sees that too late, it is closed ([`Network::close`]).

use crate::api::{FI_EIO, FI_ESHUTDOWN};
use crate::operands::spans::Spans;
use crate::peers::Outgoing;
use crate::protocol::core::{Core, send_flags};
use crate::protocol::operation::{Send, Sending};
use crate::protocol::trace::Traced;
use crate::protocol::wire;
use crate::remote::Network;
use std::cell::RefCell;
use std::rc::Rc;

/// What the core provider does with the bytes of a send.
#[derive(Debug, Clone, Copy, Default)]
pub struct Direct {
    /// The tag that the receiver has given; 0: the bytes go as records.
    pub tag: u64,
    /// The core provider has the buffer (network rule 1).
    pub held: bool,
    /// How the send ends when the buffer is back, if that is known before.
    pub ends_with: Option<i32>,
}

/// Gives the buffer of a send to the core provider. False: it does not take it now.
pub fn push(number: u64, send: &mut Sending, outgoing: &mut Outgoing) -> bool {
    let ((from, len), Outgoing::Network(network, to)) = (send.spans.single(), outgoing) else {
        // A peer of this version gives a tag only to who can use it.
        return true;
    };
    if send.wanted > len {
        return true;
    }
    // SAFETY: the send's buffer, which is valid until the send completes, and it does not while the buffer is held.
    send.direct.held =
        unsafe { network.borrow_mut().send_from(*to, number, from, send.wanted, send.direct.tag) };
    send.direct.held
}

impl Core {
    /// Whether a message to another node is short enough to go there before somebody receives it.
    pub(crate) fn goes_at_once(&self, peer: u32, send: &Send) -> bool {
        let Some(Outgoing::Network(network, _)) = &self.peers.all[peer as usize].outgoing else {
            return false;
        };
        let (at, len) = send.spans.single();
        !send.matched && !at.is_null() && network.borrow().sends_at_once(len)
    }

    /// Sends a message to another node in one record, from its buffer.
    pub(crate) fn send_at_once(&mut self, peer: u32, send: Send) -> Result<(), i32> {
        let Send { spans, tag, data, context, completion, delivery, own, .. } = send;
        let kind = if delivery { wire::NUMBERED } else { wire::EAGER } | wire::bits(tag, data);
        let header = wire::envelope(kind, tag.unwrap_or(0), data.unwrap_or(0));
        let (from, len) = spans.single();
        let began = self.trace_time();
        let number = self.sends.insert(Sending {
            peer,
            spans,
            len,
            sent: 0,
            wanted: len,
            number: 0,
            confirmed: delivery,
            context,
            flags: send_flags(tag),
            completion,
            own,
            regions: Vec::new(),
            direct: Direct { held: true, ..Direct::default() },
            traced: Traced::default(),
        });
        let pushed = match self.peers.outgoing(peer)? {
            // SAFETY: the send's buffer, which is valid until the send completes,
            // and it does not while the buffer is held.
            Outgoing::Network(network, to) => unsafe {
                network.borrow_mut().push_from(*to, &header, (number, delivery), from, len)
            },
            Outgoing::Ring(_) => false,
        };
        if pushed {
            if self.trace.is_some() {
                self.trace_announced(number, began, tag);
            }
            return Ok(());
        }
        self.sends.remove(number);
        Err(self.peers.refuse(peer))
    }

    /// What an RTS says of where its bytes are.
    pub(crate) fn place_of(&self, peer: u32, spans: &Spans) -> u64 {
        let at = spans.single().0 as u64;
        match &self.peers.network {
            Some(network) if self.peers.all[peer as usize].is_remote() => {
                u64::from(at != 0 && network.borrow().takes_buffers())
            }
            _ => at,
        }
    }

    /// Has the core provider receive a message of a peer on another node into its buffer.
    /// False: its bytes are to come as records.
    pub(crate) fn receive_directly(&mut self, number: u64) -> bool {
        let Some(one) = self.arriving.get(number) else { return false };
        let (peer, send, wanted) = (one.peer, one.send, one.wanted);
        let ((to, room), Some(Outgoing::Network(network, _))) =
            (one.spans.single(), &self.peers.all[peer as usize].outgoing)
        else {
            return false;
        };
        if !(1..=room).contains(&wanted) {
            return false;
        }
        // SAFETY: the receive's buffer, which is ours until it completes, and it does not while the buffer is held.
        let Some(tag) = (unsafe { network.borrow_mut().receive_into(number, to, wanted) }) else {
            return false;
        };
        one.held = true;
        self.peers.control(peer, wire::control(wire::CTS, send), [number, wanted as u64, tag]);
        true
    }

    /// The core provider is to give the buffer of a receive back, unless a message is in it already.
    #[cold]
    pub(crate) fn ask_buffer_back(&self, number: u64) {
        if let Some(network) = &self.peers.network {
            network.borrow().cancel(number);
        }
    }

    /// The core provider has given the buffer of a receive back, with so many bytes or with an error.
    pub(crate) fn directly_received(&mut self, number: u64, len: usize, error: i32) {
        let Some(one) = self.arriving.get(number).filter(|one| one.held) else { return };
        one.held = false;
        let error = match (error, len == one.wanted) {
            (0, true) => 0,
            (0, false) => FI_EIO,
            _ => FI_ESHUTDOWN,
        };
        self.arrived(number, error);
    }

    /// The core provider has given the buffer of a send back. Returns the peer if the bytes have not gone there.
    pub(crate) fn directly_sent(&mut self, number: u64, error: i32) -> Option<u32> {
        let send = self.sends.get(number).filter(|send| send.direct.held)?;
        send.direct.held = false;
        let (peer, confirmed) = (send.peer, send.confirmed);
        match send.direct.ends_with {
            _ if error != 0 => self.end_send(number, FI_ESHUTDOWN),
            Some(known) => self.end_send(number, known),
            None if !confirmed => self.end_send(number, 0),
            // The peer says when all is received.
            None => {}
        }
        (error != 0).then_some(peer)
    }

    /// Peers that the core provider has buffers for.
    pub(crate) fn with_buffers(&self) -> impl Iterator<Item = u32> {
        let receives = self.arriving.iter().filter(|(_, one)| one.held).map(|(_, one)| one.peer);
        receives.chain(self.sends.iter().filter(|(_, one)| one.direct.held).map(|(_, one)| one.peer))
    }

    /// Closes the core provider's endpoint: what is under way there ends.
    pub(crate) fn take_buffers_back(&mut self, network: &Rc<RefCell<Network>>) {
        network.borrow_mut().close();
        let receives: Vec<u64> = self.arriving.iter().filter(|one| one.1.held).map(|one| one.0).collect();
        receives.into_iter().for_each(|number| self.directly_received(number, 0, FI_ESHUTDOWN));
        let sends: Vec<u64> = self.sends.iter().filter(|one| one.1.direct.held).map(|one| one.0).collect();
        sends.into_iter().for_each(|number| _ = self.directly_sent(number, FI_ESHUTDOWN));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::FI_SEND;
    use crate::names::address::Address;
    use crate::protocol::operation::{Arriving, Message, Taken};
    use crate::protocol::queue::Queue;

    const WANTED: usize = 100_000;

    /// An endpoint whose core provider has the buffer of a receive and of a send.
    fn holding(confirmed: bool) -> (Core, u32, u64, u64) {
        let mut core = Core::new(Address { pid: std::process::id(), fd: 0, nonce: 1 });
        core.reports.receive_queue = Some(Rc::new(Queue::default()));
        core.reports.send_queue = Some(Rc::new(Queue::default()));
        let peer = core.peers.number(Address { pid: 0, fd: 0, nonce: 2 });
        let message = Message { peer, kind: wire::RTS, tag: 0, data: 0, len: WANTED };
        let receive = Taken { context: std::ptr::null_mut(), completion: true, several: None, trace: 0 };
        // SAFETY: no memory, which nobody touches: a held buffer is the core provider's.
        let spans = unsafe { Spans::one(std::ptr::null(), WANTED) };
        let arriving = Arriving { held: true, ..Arriving::new(message, spans.clone(), WANTED, receive) };
        let arriving = core.arriving.insert(arriving);
        let sending = core.sends.insert(Sending {
            peer,
            spans,
            len: 0,
            sent: 0,
            wanted: WANTED,
            number: 0,
            confirmed,
            context: std::ptr::null_mut(),
            flags: FI_SEND,
            completion: true,
            own: None,
            regions: Vec::new(),
            direct: Direct { tag: 1, held: true, ends_with: None },
            traced: Traced::default(),
        });
        (core, peer, arriving, sending)
    }

    fn ends(core: &Core) -> (Vec<i32>, Vec<i32>) {
        let errors = |queue: &Option<Rc<Queue>>| {
            queue.as_ref().expect("a queue").done.borrow().iter().map(|one| one.error).collect()
        };
        (errors(&core.reports.receive_queue), errors(&core.reports.send_queue))
    }

    #[test]
    fn the_number_before_a_message_is_no_part_of_it() {
        let (mut core, peer, ..) = holding(true);
        let header = wire::envelope(wire::NUMBERED | wire::TAGGED, 5, 0);
        core.take(peer, &header, &[7; 4]);
        assert!(core.unexpected.is_empty());
        core.take(peer, &header, &[[7; 8], [9; 8]].concat());
        let pattern = crate::operands::key::TagPattern { peer: None, tag: 5, ignore: 0 };
        let (_, message) = core.unexpected.take(&pattern).expect("a message");
        assert!(matches!(message.body, crate::protocol::operation::Body::Here(bytes) if *bytes == [9; 8]));
    }

    #[test]
    fn operations_end_when_their_buffers_are_back() {
        for (len, error, end) in [(WANTED, 0, 0), (WANTED - 1, 0, FI_EIO), (0, 1, FI_ESHUTDOWN)] {
            let (mut core, peer, arriving, sending) = holding(false);
            core.directly_received(arriving, len, error);
            let failed = core.directly_sent(sending, error);
            assert_eq!(failed, (error != 0).then_some(peer));
            assert_eq!(ends(&core), (vec![end], vec![if error == 0 { 0 } else { FI_ESHUTDOWN }]));
            assert_eq!(core.with_buffers().count(), 0);
        }
    }

    #[test]
    fn nothing_ends_while_the_core_provider_has_its_buffer() {
        let (mut core, peer, arriving, sending) = holding(false);
        core.peers.all[peer as usize].dead = true;
        core.end_with(peer);
        // What a peer sends in their place is not taken, either.
        core.take(peer, &wire::control(wire::DATA, arriving), &[7; 64]);
        assert_eq!(ends(&core), (vec![], vec![]));
        assert_eq!(core.with_buffers().collect::<Vec<_>>(), [peer, peer]);
        core.directly_received(arriving, 0, 1);
        core.directly_sent(sending, 0);
        assert_eq!(ends(&core), (vec![FI_ESHUTDOWN], vec![FI_ESHUTDOWN]));
    }

    #[test]
    fn a_send_that_is_confirmed_ends_when_both_have_come() {
        for fin_first in [false, true] {
            let (mut core, peer, _, sending) = holding(true);
            let fin = |core: &mut Core| core.take(peer, &wire::control(wire::FIN, sending), &[0; 24]);
            if fin_first {
                fin(&mut core);
            } else {
                core.directly_sent(sending, 0);
            }
            assert_eq!(ends(&core).1, []);
            if fin_first {
                core.directly_sent(sending, 0);
            } else {
                fin(&mut core);
            }
            assert_eq!(ends(&core).1, [0]);
        }
    }
}
