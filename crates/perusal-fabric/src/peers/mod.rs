//! The peers of an endpoint: who they are, the rings to them, and what waits for room there.
//!
//! | file | what it has |
//! |---|---|
//! | `directory` | peers by the numbers that an address vector gives them |
//! | `mod` | rings to peers, and the ways to peers on other nodes |

pub mod directory;

use crate::api::{FI_ADDR_NOTAVAIL, FI_EAGAIN, FI_EBUSY, FI_ENOMEM, FI_ESHUTDOWN};
use crate::memory::process::Memory;
use crate::memory::segment::{self, Segment};
use crate::memory::words::{self, Known};
use crate::names::address::Address;
use crate::names::name::Name;
use crate::operands::region::Remote;
use crate::remote::{Network, Watched};
use perusal::internals::doorbell::Doorbell;
use perusal::internals::engine::{CopyRates, CopyRoute};
use perusal::internals::ring::{Header, MappedRing, Producer, Room};
use perusal::internals::shm::peer_memory::{read_peer, write_peer};
use perusal::internals::sync::AsymmetricFence;
use std::cell::RefCell;
use std::collections::{HashMap, VecDeque};
use std::fs::File;
use std::io::Write;
use std::rc::Rc;
use std::time::{Duration, Instant};

/// The way to a peer.
#[derive(Debug)]
#[allow(clippy::large_enum_variant, reason = "the usual one, which is not to be behind another pointer")]
pub enum Outgoing {
    /// On this node.
    Ring(Ring),
    /// On another one: the number of the way there.
    Network(Rc<RefCell<Network>>, usize),
}

/// The ring to a peer.
#[derive(Debug)]
pub struct Ring {
    producer: Producer<MappedRing>,
    doorbell: Doorbell,
    fence: AsymmetricFence,
    slot: usize,
    /// Records that others had sent through the slot before.
    before: u64,
    /// Who owns the memory.
    owner: Address,
    /// The owner's pipe, once it was needed.
    pipe: Option<File>,
    segment: Segment,
}

impl Ring {
    fn attach(own: Address, to: Address) -> Result<Self, i32> {
        let segment = Segment::open(to)?;
        let fence = segment.fence()?;
        let slot = segment.claim(own)?;
        let producer = Producer::resume(segment.ring(slot));
        segment.publish(slot, words::READY);
        let doorbell = segment.doorbell();
        let before = producer.position();
        let mut outgoing = Self { producer, doorbell, fence, slot, before, owner: to, pipe: None, segment };
        outgoing.wake();
        Ok(outgoing)
    }

    /// Pushes a record, and notifies the owner if it does not poll. False: there is no room.
    #[inline(always)]
    pub fn push(&mut self, header: &Header, len: usize, fill: impl FnOnce(&mut Room<'_>)) -> bool {
        if !self.producer.try_push(header, len, fill) {
            return false;
        }
        self.fence.light_barrier();
        if self.producer.must_notify() {
            self.doorbell.ring(self.slot);
            self.wake();
        }
        true
    }

    /// Wakes a thread that waits for the owner's pipe.
    #[cold]
    fn wake(&mut self) {
        if self.segment.words().take_armed() {
            if self.pipe.is_none() {
                self.pipe = self.segment.open_pipe(self.owner);
            }
            // A pipe that is full, or whose owner is gone, wakes nobody more.
            let _ = self.pipe.as_mut().map(|pipe| pipe.write(&[1]));
        }
    }
}

impl Outgoing {
    /// Pushes a record. False: there is no room.
    #[inline(always)]
    pub fn push(&mut self, header: &Header, len: usize, fill: impl FnOnce(&mut Room<'_>)) -> bool {
        match self {
            Outgoing::Ring(ring) => ring.push(header, len, fill),
            Outgoing::Network(network, to) => {
                network.borrow_mut().push(*to, header, len, |to| fill(&mut Room::from(to)))
            }
        }
    }

    /// The ring, if the peer is on this node.
    pub fn ring(&self) -> Option<&Ring> {
        match self {
            Outgoing::Ring(ring) => Some(ring),
            Outgoing::Network(..) => None,
        }
    }

    /// Whether the owner counts accesses; of an owner on another node that is not known.
    pub fn counts_accesses(&self) -> bool {
        self.ring().is_none_or(|ring| ring.segment.words().counts_accesses())
    }

    /// Whether the owner has closed its endpoint, as far as that is seen from here.
    pub fn is_closed(&self) -> bool {
        self.ring().is_some_and(|ring| ring.segment.words().is_closed())
    }
}

impl Ring {
    /// What the owner says of the region with this key.
    pub fn known(&self, key: u64) -> Option<Known> {
        self.segment.words().known(key)
    }

    /// How often the owner has taken a region away.
    pub fn generation(&self) -> u32 {
        self.segment.words().generation()
    }

    /// Records that this endpoint has sent through it.
    fn records(&self) -> u64 {
        self.producer.position() - self.before
    }

    /// The ring itself.
    pub fn storage(&self) -> MappedRing {
        *self.producer.storage()
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        self.producer.retire();
        self.segment.publish(self.slot, words::CLOSED);
        self.wake();
    }
}

/// What waits for room in the ring to a peer, in order.
#[derive(Debug)]
pub enum Waiting {
    /// A record with up to three words.
    Control(Header, [u64; 3]),
    /// A record with any bytes.
    Bytes(Header, Box<[u8]>),
    /// The bytes of a send that the peer has asked for.
    Stream(u64),
}

/// Another endpoint, or this one.
#[derive(Debug)]
pub struct Peer {
    pub address: Address,
    /// What completions call it: FI_ADDR_NOTAVAIL, if there is nothing else to say.
    pub source: u64,
    /// What the address vector calls it, several numbers where it was inserted more than once, each with what
    /// completions call it then. The first serves.
    numbers: Vec<(u64, u64)>,
    /// Messages of it that no receive has taken.
    pub kept: usize,
    pub outgoing: Option<Outgoing>,
    pub waiting: VecDeque<Waiting>,
    /// The ring from the peer, while it has one.
    pub incoming: Option<MappedRing>,
    /// The kernel has refused the peer to copy into this process's memory.
    pub no_parts: bool,
    /// What copies of its messages took, by the kernel and out of the ring.
    pub rates: CopyRates,
    /// Which file its memory is, once that was asked.
    memory: Option<Memory>,
    pub dead: bool,
    /// The kernel has refused to copy from its memory.
    no_copies: bool,
    refused: u32,
    /// When the process was last seen alive.
    seen: Option<Instant>,
    /// Accesses that the peer has not answered yet.
    pub unanswered: usize,
    /// What the peer has said of its regions, by key.
    pub regions: HashMap<u64, Known>,
    /// Where it is, if it is on another node.
    remote: Option<Watched>,
}

impl Known {
    /// Where a piece of the region is in the peer's memory.
    pub fn place(&self, piece: &Remote, access: u64) -> Option<u64> {
        let offset = piece.addr.checked_sub(self.base)?;
        let fits = offset.checked_add(piece.len as u64)? <= self.len && self.access & access == access;
        let at = self.at.checked_add(offset)?;
        (fits && at.checked_add(piece.len as u64).is_some()).then_some(at)
    }
}

/// How long a process that was seen alive is taken for that process without another look. Its number would have to be
/// given to a new process meanwhile, and the kernel gives it only after all others:
/// thousands of processes would have to begin within this time.
const FRESH: Duration = Duration::from_millis(1);

impl Peer {
    /// An endpoint that nothing is known of but its address.
    fn new(address: Address) -> Self {
        Self {
            address,
            source: FI_ADDR_NOTAVAIL,
            numbers: Vec::new(),
            kept: 0,
            outgoing: None,
            waiting: VecDeque::new(),
            incoming: None,
            no_parts: false,
            rates: CopyRates::default(),
            memory: None,
            dead: false,
            no_copies: false,
            refused: 0,
            seen: None,
            unanswered: 0,
            regions: HashMap::new(),
            remote: None,
        }
    }

    /// Its name, as far as it is known: of a peer on this node, the address there.
    pub fn name(&self) -> Name {
        Name { local: self.address, elsewhere: self.remote.as_ref().map(|watched| watched.elsewhere) }
    }

    /// The address vector calls it `fi_addr`, too, and completions `source`.
    pub fn add_number(&mut self, fi_addr: u64, source: u64) {
        self.numbers.push((fi_addr, source));
        self.choose_source();
    }

    /// Completions call it `source` from now on, where they would take `fi_addr`.
    pub fn rename(&mut self, fi_addr: u64, source: u64) {
        self.numbers.iter_mut().filter(|one| one.0 == fi_addr).for_each(|one| one.1 = source);
        self.choose_source();
    }

    /// The address vector does not call it so any more:
    /// it keeps the number that it had, or has the lowest of the others.
    pub fn remove_number(&mut self, fi_addr: u64) {
        let was_first = self.numbers.first().is_some_and(|one| one.0 == fi_addr);
        self.numbers.retain(|one| one.0 != fi_addr);
        if was_first {
            self.numbers.sort_unstable();
        }
        self.choose_source();
    }

    fn choose_source(&mut self) {
        self.source = self.numbers.first().map_or(FI_ADDR_NOTAVAIL, |one| one.1);
    }

    /// Whether the address vector has it.
    pub fn is_known(&self) -> bool {
        !self.numbers.is_empty()
    }

    /// Whether it is on another node.
    pub fn is_remote(&self) -> bool {
        self.remote.is_some()
    }

    /// Whether the kernel lets this process reach the peer's memory, and it is the peer's.
    pub fn is_reachable(&mut self) -> bool {
        if self.no_copies || self.remote.is_some() {
            return false;
        }
        let now = Instant::now();
        if self.seen.is_some_and(|seen| now - seen < FRESH) {
            return !self.outgoing.as_ref().is_some_and(Outgoing::is_closed);
        }
        let alive = !self.has_ended();
        self.seen = alive.then_some(now);
        alive
    }

    /// The kernel has refused to reach the peer's memory: it is not asked again.
    pub fn give_up_copies(&mut self) {
        self.no_copies = true;
    }

    /// Copies bytes from the peer's process, where the kernel allows that. False: they are not there.
    ///
    /// # Safety
    ///
    /// `to` is valid for writes of `len` bytes, and nobody else touches them meanwhile.
    pub unsafe fn copy(&mut self, from: u64, to: *mut u8, len: usize) -> bool {
        if !self.is_reachable() {
            return false;
        }
        // SAFETY: `to` is valid for writes of `len` bytes that nobody else touches, as the caller promises; the kernel
        // checks the peer's address.
        let read = || unsafe { read_peer(self.address.pid.cast_signed(), from, to, len) };
        let copied = self.rates.time(CopyRoute::Kernel, len, read).is_ok();
        self.no_copies = !copied;
        // An endpoint that is open now was open all the time, and its caller has left the bytes alone.
        copied && !self.outgoing.as_ref().is_some_and(Outgoing::is_closed)
    }

    /// Whether what the peer, which is on this node, has announced is there:
    /// it has ended no announced send since (cancel rule).
    pub fn still_announces(&self, cancels: u32) -> bool {
        let ring = self.outgoing.as_ref().and_then(Outgoing::ring);
        ring.is_some_and(|ring| ring.segment.words().cancels() == cancels)
    }

    /// Copies bytes into the peer's process, where the kernel allows that. False: they are not there.
    ///
    /// # Safety
    ///
    /// `from` is valid for reads of `len` bytes, and the peer has asked for bytes at `to`.
    pub unsafe fn fill(&mut self, from: *const u8, to: u64, len: usize) -> bool {
        if !self.is_reachable() {
            return false;
        }
        // SAFETY: `from` is valid for `len` bytes, as the caller promises; the kernel checks the peer's address.
        let write = || unsafe { write_peer(self.address.pid.cast_signed(), from, to, len) };
        self.rates.time(CopyRoute::Kernel, len, write).is_ok()
    }

    /// Whether the endpoint is closed, or its process has ended.
    pub fn has_ended(&mut self) -> bool {
        self.dead = self.dead
            || self.outgoing.as_ref().is_some_and(Outgoing::is_closed)
            || match &mut self.remote {
                Some(watched) => watched.has_ended(),
                None => !self.has_memory(),
            };
        if let (true, Some(watched)) = (self.dead, &mut self.remote) {
            watched.give_up();
        }
        self.dead
    }

    /// Whether its process, on this node, still has the endpoint's memory. An endpoint that is being closed has it
    /// until it has left all its slots.
    pub fn has_memory(&mut self) -> bool {
        let memory = match (self.memory, self.outgoing.as_ref().and_then(Outgoing::ring)) {
            (Some(memory), _) => Ok(memory),
            (None, Some(ring)) => ring.segment.memory(),
            (None, None) => segment::find_memory(self.address),
        };
        self.memory = memory.ok();
        memory.map_or_else(may_pass, |memory| memory.is_at(self.address))
    }
}

/// Whether an error comes of a lack of descriptors, memory or a slot, which may pass.
fn may_pass(error: i32) -> bool {
    matches!(error, libc::EMFILE | libc::ENFILE | FI_ENOMEM | FI_EAGAIN | FI_EBUSY)
}

/// Records that an endpoint has sent, and to how many peers: on its node, and on others.
#[derive(Debug, Default, Clone, Copy)]
pub struct Sent {
    pub here: u64,
    pub peers_here: u64,
    pub elsewhere: u64,
    pub peers_elsewhere: u64,
}

/// All peers that this endpoint knows. A peer's number is its place, and stays until it is forgotten.
#[derive(Debug)]
pub struct Peers {
    own: Address,
    pub all: Vec<Peer>,
    /// Places that no peer has.
    unused: Vec<u32>,
    by_address: HashMap<Address, u32>,
    /// Numbers of peers that something waits for.
    pub with_waiting: Vec<u32>,
    /// The way to other nodes.
    pub network: Option<Rc<RefCell<Network>>>,
    /// Records and rings to peers that were let go.
    rings: (u64, u64),
}

impl Peers {
    pub fn new(own: Address) -> Self {
        Self {
            own,
            all: Vec::new(),
            unused: Vec::new(),
            by_address: HashMap::new(),
            with_waiting: Vec::new(),
            network: None,
            rings: (0, 0),
        }
    }

    /// The number of the peer with this address.
    pub fn number(&mut self, address: Address) -> u32 {
        *self.by_address.entry(address).or_insert_with(|| {
            let peer = Peer::new(address);
            if let Some(number) = self.unused.pop() {
                self.all[number as usize] = peer;
                return number;
            }
            self.all.push(peer);
            (self.all.len() - 1) as u32
        })
    }

    /// How many peers there are.
    #[cfg(test)]
    pub fn known(&self) -> usize {
        self.by_address.len()
    }

    /// The number of the peer with this name.
    pub fn named(&mut self, name: Name) -> u32 {
        let number = self.number(name.local);
        let Some(network) = &self.network else { return number };
        if let Some(elsewhere) = name.elsewhere.filter(|&elsewhere| network.borrow().is_remote(elsewhere)) {
            let peer = &mut self.all[number as usize];
            peer.remote.get_or_insert_with(|| Watched::new(elsewhere));
        }
        number
    }

    /// Whether a peer is of no use, as far as its record tells: the address vector does not have it, no ring is shared
    /// with it, no message of it is kept. One on another node has ended besides: who has not may send.
    pub fn is_stranger(&mut self, number: u32) -> bool {
        let peer = &mut self.all[number as usize];
        !peer.is_known()
            && peer.outgoing.is_none()
            && peer.incoming.is_none()
            && peer.kept == 0
            && peer.waiting.is_empty()
            && (peer.remote.is_none() || peer.has_ended())
            && self.by_address.get(&peer.address) == Some(&number)
    }

    /// Forgets a peer that is a stranger, and with whom nothing is under way: its number may be the next one's. False:
    /// the network is not done with it yet.
    pub fn forget(&mut self, number: u32) -> bool {
        let peer = &mut self.all[number as usize];
        if let (Some(watched), Some(network)) = (&peer.remote, &self.network)
            && !network.borrow_mut().forget(peer.address.nonce, watched.way)
        {
            return false;
        }
        self.by_address.remove(&peer.address);
        *peer = Peer { dead: true, ..Peer::new(peer.address) };
        self.unused.push(number);
        true
    }

    /// The way to a peer, made if there is none yet.
    ///
    /// # Errors
    ///
    /// The number of the error.
    #[inline(always)]
    pub fn outgoing(&mut self, peer: u32) -> Result<&mut Outgoing, i32> {
        if self.all[peer as usize].outgoing.is_none() {
            self.attach(peer)?;
        }
        self.all[peer as usize].outgoing.as_mut().ok_or(FI_ESHUTDOWN)
    }

    /// Whether there will never be a way to a peer. Where there is none now for lack of descriptors, memory or a slot
    /// there may be one later.
    pub fn is_gone(&mut self, peer: u32) -> bool {
        self.outgoing(peer).is_err_and(|error| !may_pass(error))
    }

    #[cold]
    fn attach(&mut self, number: u32) -> Result<(), i32> {
        let peer = &mut self.all[number as usize];
        if peer.dead {
            return Err(FI_ESHUTDOWN);
        }
        peer.outgoing = Some(match (&mut peer.remote, &self.network) {
            (Some(watched), Some(network)) => {
                let to = network.borrow_mut().connect(number, watched.elsewhere)?;
                watched.way = Some(to);
                Outgoing::Network(Rc::clone(network), to)
            }
            _ => Outgoing::Ring(Ring::attach(self.own, peer.address)?),
        });
        Ok(())
    }

    /// Gives the way to a peer up.
    pub fn detach(&mut self, peer: u32) {
        let outgoing = self.all[peer as usize].outgoing.take();
        if let Some(ring) = outgoing.as_ref().and_then(Outgoing::ring) {
            self.rings = (self.rings.0 + ring.records(), self.rings.1 + 1);
        }
    }

    /// What was sent so far.
    pub fn sent(&self) -> Sent {
        let rings = self.all.iter().filter_map(|peer| peer.outgoing.as_ref()?.ring());
        let (here, peers_here) = rings.fold(self.rings, |sum, ring| (sum.0 + ring.records(), sum.1 + 1));
        let network = self.network.as_ref().map(|network| network.borrow().sent());
        let (elsewhere, peers_elsewhere) = network.unwrap_or_default();
        Sent { here, peers_here, elsewhere, peers_elsewhere }
    }

    /// The peer has answered an access, or never will.
    pub fn answered(&mut self, peer: u32) {
        let peer = &mut self.all[peer as usize];
        peer.unanswered = peer.unanswered.saturating_sub(1);
    }

    /// The ring to `peer` had no room. Returns the number of the error to report:
    /// FI_EAGAIN, or FI_ESHUTDOWN if the peer has ended.
    #[cold]
    pub fn refuse(&mut self, peer: u32) -> i32 {
        let peer = &mut self.all[peer as usize];
        peer.refused = peer.refused.wrapping_add(1);
        if peer.refused.is_multiple_of(4096) && peer.has_ended() { FI_ESHUTDOWN } else { libc::EAGAIN }
    }

    /// Sends a record now, or when there is room.
    pub fn control(&mut self, peer: u32, header: Header, words: [u64; 3]) {
        self.wait(peer, Waiting::Control(header, words));
        self.push_waiting_of(peer, &mut |_| None);
    }

    /// Sends a record with these bytes now, or when there is room.
    pub fn answer(&mut self, peer: u32, header: Header, bytes: Box<[u8]>) {
        self.wait(peer, Waiting::Bytes(header, bytes));
        self.push_waiting_of(peer, &mut |_| None);
    }

    /// Has something wait for room to a peer.
    pub fn wait(&mut self, peer: u32, what: Waiting) {
        let waiting = &mut self.all[peer as usize].waiting;
        if waiting.is_empty() {
            self.with_waiting.push(peer);
        }
        waiting.push_back(what);
    }

    /// Pushes what waits for `peer`, as far as there is room. `stream` pushes the bytes of a send: `Some(true)` if all
    /// of them, `Some(false)` if the ring is full, `None` to leave it for later.
    pub fn push_waiting_of(
        &mut self,
        peer: u32,
        stream: &mut dyn FnMut((u64, &mut Outgoing)) -> Option<bool>,
    ) -> bool {
        let mut any = false;
        if self.is_gone(peer) {
            // Whoever is gone wants no answer.
            self.all[peer as usize].waiting.retain(|what| matches!(what, Waiting::Stream(_)));
        }
        let entry = &mut self.all[peer as usize];
        while let (Some(what), Some(outgoing)) = (entry.waiting.front(), entry.outgoing.as_mut()) {
            let pushed = match what {
                Waiting::Control(header, words) => {
                    outgoing.push(header, 24, |to| crate::protocol::wire::words(*words, to))
                }
                Waiting::Bytes(header, bytes) => {
                    outgoing.push(header, bytes.len(), |to| to.copy_from_slice(bytes))
                }
                Waiting::Stream(send) => match stream((*send, outgoing)) {
                    Some(all) => {
                        any = true;
                        all
                    }
                    None => false,
                },
            };
            if !pushed {
                break;
            }
            any = true;
            entry.waiting.pop_front();
        }
        if entry.waiting.is_empty() {
            self.with_waiting.retain(|&other| other != peer);
        }
        any
    }
}
