//! What an endpoint does for peers on other nodes.

use crate::api::FI_ESHUTDOWN;
use crate::names::name::Name;
use crate::names::service::Service;
use crate::progress::endpoint::Endpoint;
use crate::remote::{self, Arrived, Event, Network};
use perusal::internals::error::report;
use std::cell::RefCell;
use std::collections::{BTreeSet, HashMap};
use std::rc::Rc;
use std::time::{Duration, Instant};

/// Events taken from the core provider before rings are looked at again.
const BATCH: usize = 64;
/// Polls of the rings for one of the core provider, at most, while something is on its way to other nodes, and else.
/// The core provider asks the system each time.
const SENDING: u32 = 2;
const QUIET: u32 = 32;
/// Polls of the core provider in vain for which what other nodes have begun is likely to go on, and for how many such a
/// poll counts if rings had something.
const EXPECTING: u32 = 256;
const BUSY: u32 = 16;
/// Polls of the core provider in vain from which on the CPU is given away after each, unless something is on its way.
const LONG: u32 = 8;
/// Polls of the core provider for one look at the clock.
const CLOCK: u32 = 256;
/// How long the core provider may keep buffers for a peer that has ended.
const KEPT: Duration = Duration::from_secs(2);

/// When the core provider is polled.
#[derive(Debug, Default)]
pub struct Turns {
    /// Polls of the rings until then.
    left: u32,
    /// As many as the last time.
    interval: u32,
    polls: u32,
    /// Polls in vain since something has happened.
    in_vain: u32,
    /// When peers were first seen to have ended.
    ended: HashMap<u32, Instant>,
}

impl Turns {
    /// Has the next poll of the rings ask the core provider, too.
    pub(crate) fn come_next(&mut self) {
        self.left = 0;
    }

    /// These peers are not known any more.
    pub(crate) fn forget(&mut self, peers: &BTreeSet<u32>) {
        self.ended.retain(|peer, _| !peers.contains(peer));
    }
}

impl Endpoint {
    /// An endpoint that also reaches other nodes, if the environment asks for that.
    /// It has the name of the service, if it is one.
    ///
    /// # Errors
    ///
    /// The number of the error.
    pub fn with_network(service: &Service) -> Result<Self, i32> {
        let mut endpoint = Self::of(service)?;
        if let Some(provider) = remote::wanted() {
            let network = Network::open(&provider, endpoint.address)?;
            endpoint.core.peers.network = Some(Rc::new(RefCell::new(network)));
        }
        Ok(endpoint)
    }

    /// The name that others find the endpoint by.
    pub fn name(&self) -> Name {
        let network = self.core.peers.network.as_ref();
        network.map_or(self.address.into(), |network| network.borrow().own())
    }

    /// Takes what has arrived from other nodes, when it is their turn. `any`: the rings had something.
    #[cold]
    pub(crate) fn network_progress(&mut self, any: bool) -> bool {
        self.turns.left = self.turns.left.saturating_sub(1);
        if self.turns.left > 0 {
            return false;
        }
        let Some(network) = self.core.peers.network.clone() else { return false };
        let mut found = 0;
        while found < BATCH {
            let Some(event) = network.borrow_mut().poll() else { break };
            found += 1;
            match event {
                Event::Arrived(at, len) => {
                    let bytes = network.borrow_mut().take(at);
                    self.arrived(&network, bytes.get(..len).unwrap_or_default());
                    network.borrow_mut().give_back(at, bytes);
                }
                Event::Failed(peer) => self.give_up(peer),
                Event::BufferReceived(number, len, error) => self.core.directly_received(number, len, error),
                Event::BufferSent(number, error) => {
                    if let Some(peer) = self.core.directly_sent(number, error) {
                        self.give_up(peer);
                    }
                }
                Event::Sent => {}
            }
        }
        let turns = &mut self.turns;
        let sending = !self.core.peers.with_waiting.is_empty() || network.borrow().is_sending();
        let step = if any { BUSY } else { 1 };
        turns.in_vain = if found > 0 { 0 } else { turns.in_vain.saturating_add(step) };
        let most = if sending || turns.in_vain < EXPECTING { SENDING } else { QUIET };
        // An answer is likely to come soon after something else; rings that are busy are looked at more often.
        turns.interval = if found > 0 { 1 } else { (turns.interval + 1 + u32::from(any)).min(most) };
        turns.left = turns.interval;
        turns.polls = turns.polls.wrapping_add(1);
        if !sending && turns.in_vain >= LONG {
            // What comes from other nodes says nothing of who needs this CPU:
            // peers there are not counted among those who may.
            std::thread::yield_now();
        }
        if turns.polls.is_multiple_of(CLOCK) {
            self.check_at_times();
        }
        found > 0
    }

    fn arrived(&mut self, network: &Rc<RefCell<Network>>, bytes: &[u8]) {
        // Not borrowed while the record is taken: the answer to it goes through the network.
        let arrived = network.borrow_mut().read(bytes);
        match arrived {
            Some(Arrived::Hello(name)) => {
                let peer = self.core.peers.named(name);
                network.borrow_mut().know(name, peer);
            }
            Some(Arrived::Record(peer, header, payload)) => self.core.take(peer, &header, payload),
            None => {}
        }
    }

    /// Ends what is under way with peers on other nodes that have ended, or do not answer.
    pub(crate) fn look_for_the_dead_elsewhere(&mut self) {
        let Some(network) = self.core.peers.network.clone() else { return };
        network.borrow_mut().accept_watchers();
        // Whoever is sent to, and whoever a receive names. Wildcards name nobody.
        let sent = |at: &u32| self.core.peers.all[*at as usize].outgoing.is_some();
        let mut awaited: BTreeSet<u32> = (0..self.core.peers.all.len() as u32).filter(sent).collect();
        awaited.extend(self.core.receives.iter().filter_map(|one| one.1.pattern.peer));
        awaited.extend(self.core.with_buffers());
        let mut kept = false;
        for peer in awaited {
            let one = &mut self.core.peers.all[peer as usize];
            if one.is_remote() && one.has_ended() {
                let since = *self.turns.ended.entry(peer).or_insert_with(Instant::now);
                self.end_with_elsewhere(peer);
                kept |= since.elapsed() > KEPT && self.core.with_buffers().any(|other| other == peer);
            }
        }
        if kept {
            self.lose(&network);
        }
    }

    /// The core provider does not see that a peer has ended, and keeps buffers for it:
    /// only its own end gives them back.
    #[cold]
    fn lose(&mut self, network: &Rc<RefCell<Network>>) {
        report(format_args!(
            "process {} gives its network up: a peer on another node is gone in the middle of a message, and the core provider still waits for it",
            self.address.pid
        ));
        self.core.take_buffers_back(network);
        for peer in 0..self.core.peers.all.len() as u32 {
            if self.core.peers.all[peer as usize].is_remote() {
                self.give_up(peer);
            }
        }
    }

    /// Gives up a peer that has failed, or does not answer.
    fn give_up(&mut self, peer: u32) {
        self.core.peers.all[peer as usize].dead = true;
        self.end_with_elsewhere(peer);
    }

    /// Also receives that name the peer end: no word of its end would come by a ring.
    fn end_with_elsewhere(&mut self, peer: u32) {
        self.core.end_with(peer);
        self.core.end_receives_from(peer, FI_ESHUTDOWN);
    }

    /// Whether records have not left yet.
    pub(crate) fn is_sending_elsewhere(&self) -> bool {
        self.core.peers.network.as_ref().is_some_and(|network| network.borrow().is_sending())
    }
}
