//! Peers on other nodes: the records of the rings, carried by an endpoint of another provider of libfabric,
//! the *core provider*.
//!
//! | file | what it has |
//! |---|---|
//! | `core_provider` | which core provider the environment asks for |
//! | `library` | the libfabric that has loaded this provider |
//! | `node` | what tells nodes apart, and who is still there |
//! | `buffers` | the callers' buffers that the core provider moves |
//! | `mod` | the core provider's endpoint, and what goes through it |
//!
//! - **Network rule 1.** A buffer that was given to the core provider is touched by nobody until its completion, or the
//!   end of the core provider's endpoint.
//! - **Network rule 2.** Before the first record to a peer goes a hello with the sender's name; the provider keeps the
//!   order (FI_ORDER_SAS). A record of a sender that has said no hello is dropped.
//! - **Network rule 3.** What is received goes to the same protocol and the same matching as what comes out of a ring.

mod buffers;
mod core_provider;
mod library;
mod node;

use crate::api::*;
use crate::names::name::{Elsewhere, Name};
pub use core_provider::wanted;
use library::{Handle, Library};
pub use node::Watched;
use node::Watchers;
use perusal::internals::ring::Header;
use std::collections::HashMap;
use std::ffi::CStr;
use std::net::SocketAddr;
use std::os::fd::RawFd;
use std::ptr::null_mut;

/// Bytes of a record before its payload.
const HEAD: usize = 32;
/// Bytes of a send's number before a message that is sent at once.
const NUMBER: usize = 8;
/// The longest payload that is copied into a record: a fragment of a long message.
pub const PAYLOAD: usize = 32 << 10;
/// The longest payload: a message that is sent at once, from its sender's buffer. To ask the receiver for a place first
/// would take longer than a copy there.
pub const AT_ONCE: usize = 256 << 10;
/// Receives that are always posted.
const RECEIVES: usize = 32;
/// Records under way to one peer.
const IN_FLIGHT: u32 = 64;
/// What a completion is of: the lowest bits of its context, below a number.
const RECEIVE: usize = 0;
const SEND: usize = 1;
const BUFFER_RECEIVE: usize = 2;
const BUFFER_SEND: usize = 3;
const RECORD: u32 = 0x7065_7203;
const HELLO: u32 = 0x7065_7204;

/// A peer on another node.
#[derive(Debug)]
struct Destination {
    /// What the core provider's address vector calls it.
    address: u64,
    peer: u32,
    in_flight: u32,
    greeted: bool,
}

/// A buffer and whom its bytes are sent to.
#[derive(Debug)]
struct Outgoing {
    bytes: Box<[u8]>,
    to: usize,
    /// The send of the endpoint's whose buffer is the payload: `bytes` is then the head alone.
    buffer_of: Option<u64>,
}

/// What has happened at the core provider's endpoint.
#[derive(Debug)]
pub enum Event {
    /// A record is in this receive's buffer, of so many bytes.
    Arrived(usize, usize),
    /// A send is over.
    Sent,
    /// A send to this peer has failed.
    Failed(u32),
    /// The buffer of this receive of the endpoint's is back, with so many bytes or with an error.
    BufferReceived(u64, usize, i32),
    /// The buffer of this send of the endpoint's is back, perhaps with an error.
    BufferSent(u64, i32),
}

/// A record, or a hello, as it has arrived.
#[derive(Debug)]
pub enum Arrived<'a> {
    /// Who says hello.
    Hello(Name),
    /// Of this peer.
    Record(u32, Header, &'a [u8]),
}

/// The core provider's endpoint, and what is under way there.
#[derive(Debug)]
pub struct Network {
    // In the order in which they are closed.
    endpoint: Option<Handle>,
    queue: Handle,
    addresses: Handle,
    _domain: Handle,
    fabric: Handle,
    /// Can be read when something has happened; `None`: the provider has no such descriptor.
    wakes: Option<RawFd>,
    // Behind the endpoint that uses them (network rule 1).
    receives: Vec<Box<[u8]>>,
    /// Receives that the core provider did not take.
    refused: Vec<usize>,
    sends: Vec<Outgoing>,
    free: Vec<usize>,
    destinations: Vec<Destination>,
    /// Places of destinations that were given up.
    unused: Vec<usize>,
    /// Destinations so far.
    met: u64,
    peers: HashMap<u64, u32>,
    own: Name,
    watchers: Watchers,
    /// Records to peers on other nodes.
    records: u64,
    /// The core provider takes messages with tags: long ones go from buffer to buffer.
    tagged: bool,
    /// It sends a head and a payload that lie apart.
    vectors: bool,
    next_tag: u64,
    /// Callers' buffers that the core provider has.
    buffers: usize,
}

type Send =
    unsafe extern "C" fn(*mut Fid, *const u8, usize, *mut libc::c_void, u64, *mut libc::c_void) -> isize;
type Receive =
    unsafe extern "C" fn(*mut Fid, *mut u8, usize, *mut libc::c_void, u64, *mut libc::c_void) -> isize;

/// An error entry with room for what later versions append.
#[repr(C)]
struct ErrorEntry(CqErrEntry, [u64; 16]);

impl Network {
    /// Opens an endpoint of the core provider for the endpoint with this address.
    ///
    /// # Errors
    ///
    /// The number of the error; what the user can do about it is printed.
    pub fn open(provider: &CStr, local: crate::names::address::Address) -> Result<Self, i32> {
        Self::begin(provider, local).map_err(|(what, error)| {
            let why = std::io::Error::from_raw_os_error(error);
            let name = provider.to_string_lossy();
            perusal::internals::error::report(format_args!(
                "{what} for peers on other nodes (core provider {name}): {why}; FI_PROVIDER must list perusal and {name}"
            ));
            error
        })
    }

    fn begin(provider: &CStr, local: crate::names::address::Address) -> Result<Self, (&'static str, i32)> {
        let step = |what: &'static str| move |error: i32| (what, error);
        let library = Library::find().ok_or(("no libfabric is loaded", FI_ENODATA))?;
        let offers = library.offers(provider).map_err(step("no provider of libfabric"))?;
        let offer = offers
            .iter()
            .filter_map(|offer| Some((rank(source(offer)?)?, offer)))
            .min_by_key(|one| one.0)
            .ok_or(("no provider of libfabric with addresses of sockets", FI_ENODATA))?
            .1;
        let open = step("the provider refuses an endpoint");
        let fabric = library.open(offer).map_err(open)?;
        let info = (&raw const *offer).cast_mut();
        // SAFETY: the first function of a fabric's table opens domains.
        let domain = unsafe { fabric.open(0, info) }.map_err(open)?;
        // SAFETY: the first function of a domain's table opens address vectors. Zero is a value of every attribute.
        let addresses = unsafe {
            let mut vector: AvAttr = std::mem::zeroed();
            vector.kind = FI_AV_TABLE;
            domain.open(0, &raw mut vector)
        };
        let addresses = addresses.map_err(open)?;
        let (queue, wakes) = completion_queue(&domain).map_err(open)?;
        // SAFETY: the third function of a domain's table opens endpoints.
        let endpoint = unsafe { domain.open(2, info) }.map_err(open)?;
        endpoint.bind(&addresses, 0).map_err(open)?;
        endpoint.bind(&queue, FI_SEND | FI_RECV).map_err(open)?;
        endpoint.control(FI_ENABLE).map_err(open)?;
        let core = name_of(&endpoint).ok_or(("the provider's endpoint has no address", FI_EIO))?;
        let listen = |error| ("no port", number_of(error));
        let watchers = Watchers::listen(core).map_err(listen)?;
        let watch = watchers.port().map_err(listen)?;
        // SAFETY: an offer is libfabric's.
        let (tagged, vectors) = unsafe { ((*info).caps & FI_TAGGED != 0, (*(*info).tx_attr).iov_limit >= 2) };
        let mut network = Self {
            endpoint: Some(endpoint),
            queue,
            addresses,
            _domain: domain,
            fabric,
            wakes,
            receives: (0..RECEIVES).map(|_| vec![0; HEAD + NUMBER + AT_ONCE].into_boxed_slice()).collect(),
            refused: Vec::new(),
            sends: Vec::new(),
            free: Vec::new(),
            destinations: Vec::new(),
            unused: Vec::new(),
            met: 0,
            peers: HashMap::new(),
            own: Name { local, elsewhere: Some(Elsewhere { node: node::node(), core, watch }) },
            watchers,
            records: 0,
            tagged,
            vectors,
            next_tag: 0,
            buffers: 0,
        };
        for at in 0..RECEIVES {
            network.post(at).map_err(step("the provider takes no receives"))?;
        }
        Ok(network)
    }

    /// The name of the endpoint.
    pub fn own(&self) -> Name {
        self.own
    }

    /// Whether an endpoint is on another node.
    pub fn is_remote(&self, elsewhere: Elsewhere) -> bool {
        self.own.elsewhere.is_some_and(|own| own.node != elsewhere.node)
    }

    /// The descriptor that can be read when something has happened, if the core provider has one.
    pub fn wakes(&self) -> Option<RawFd> {
        self.wakes
    }

    /// Whether a thread may wait for [`Network::wakes`] now: nothing has happened yet.
    pub fn is_quiet(&self) -> bool {
        type Trywait = unsafe extern "C" fn(*mut Fid, *mut *mut Fid, i32) -> i32;
        let mut queue = self.queue.fid();
        // SAFETY: the fifth function of a fabric's table takes objects and how many.
        self.wakes.is_none()
            || unsafe { self.fabric.function::<Trywait>(0, 4)(self.fabric.fid(), &raw mut queue, 1) } == 0
    }

    /// Lets peers go on watching this endpoint.
    pub fn accept_watchers(&mut self) {
        self.watchers.accept();
    }

    /// A number for the way to a peer.
    ///
    /// # Errors
    ///
    /// FI_EHOSTUNREACH if the core provider does not take the address.
    pub fn connect(&mut self, peer: u32, to: Elsewhere) -> Result<usize, i32> {
        type Insert =
            unsafe extern "C" fn(*mut Fid, *const u8, usize, *mut u64, u64, *mut libc::c_void) -> i32;
        if self.endpoint.is_none() {
            return Err(FI_EHOSTUNREACH);
        }
        let (bytes, _) = node::to_sockaddr(to.core);
        let mut address = FI_ADDR_NOTAVAIL;
        // SAFETY: an address vector inserts first; one address, and a place for what it is called.
        let inserted = unsafe {
            let insert = self.addresses.function::<Insert>(0, 0);
            insert(self.addresses.fid(), bytes.as_ptr(), 1, &raw mut address, 0, null_mut())
        };
        if inserted != 1 {
            return Err(FI_EHOSTUNREACH);
        }
        self.met += 1;
        let destination = Destination { address, peer, in_flight: 0, greeted: false };
        if let Some(to) = self.unused.pop() {
            self.destinations[to] = destination;
            return Ok(to);
        }
        self.destinations.push(destination);
        Ok(self.destinations.len() - 1)
    }

    /// Forgets the endpoint with this nonce, which has ended, and the way to it, if there was one.
    /// False: records to it are still under way.
    pub fn forget(&mut self, nonce: u64, way: Option<usize>) -> bool {
        type Remove = unsafe extern "C" fn(*mut Fid, *const u64, usize, u64) -> i32;
        if let Some(to) = way {
            let is_open = self.endpoint.is_some();
            let Destination { address, in_flight, .. } = self.destinations[to];
            if is_open && in_flight > 0 {
                return false;
            }
            if is_open {
                // SAFETY: the fourth function of an address vector removes; one number that it has given.
                unsafe {
                    let remove = self.addresses.function::<Remove>(0, 3);
                    remove(self.addresses.fid(), &raw const address, 1, 0);
                }
            }
            self.unused.push(to);
        }
        self.peers.remove(&nonce);
        true
    }

    /// Sends a record. False: there is no room now.
    pub fn push(&mut self, to: usize, header: &Header, len: usize, fill: impl FnOnce(&mut [u8])) -> bool {
        let sent = self.greet(to) && self.send(to, RECORD, header, len, fill);
        self.records += u64::from(sent);
        sent
    }

    /// Network rule 2. False: there is no room now.
    fn greet(&mut self, to: usize) -> bool {
        if !self.destinations[to].greeted {
            let own = self.own.to_bytes();
            let header = Header { kind: 0, context: 0, tag: 0, source: 0, id: 0 };
            self.destinations[to].greeted =
                self.send(to, HELLO, &header, own.len(), |bytes| bytes.copy_from_slice(&own));
        }
        self.destinations[to].greeted
    }

    fn send(
        &mut self,
        to: usize,
        what: u32,
        header: &Header,
        len: usize,
        fill: impl FnOnce(&mut [u8]),
    ) -> bool {
        if len > PAYLOAD {
            return false;
        }
        let Some(at) = self.record_to(to, what, header) else { return false };
        let bytes = &mut self.sends[at].bytes;
        fill(&mut bytes[HEAD..HEAD + len]);
        let (from, address) = (bytes.as_ptr(), self.destinations[to].address);
        let error = self.endpoint.as_ref().map_or(-1, |endpoint| {
            // SAFETY: an endpoint's third table has messages; send is the fourth.
            // The buffer stays until the completion (network rule 1).
            unsafe {
                let function = endpoint.function::<Send>(2, 3);
                function(endpoint.fid(), from, HEAD + len, null_mut(), address, context(at, SEND))
            }
        });
        self.note_sent(at, error)
    }

    /// A buffer with the head of a record to this peer; `None`: there is no room now.
    fn record_to(&mut self, to: usize, what: u32, header: &Header) -> Option<usize> {
        if self.endpoint.is_none() || self.destinations[to].in_flight >= IN_FLIGHT {
            return None;
        }
        let at = self.free.pop().unwrap_or_else(|| {
            let bytes = vec![0; HEAD + PAYLOAD].into_boxed_slice();
            self.sends.push(Outgoing { bytes, to, buffer_of: None });
            self.sends.len() - 1
        });
        let send = &mut self.sends[at];
        send.to = to;
        write_head(&mut send.bytes[..HEAD], what, header, self.own.local.nonce);
        Some(at)
    }

    /// Takes what came of sending record `at`. Returns whether the core provider has taken it.
    fn note_sent(&mut self, at: usize, error: isize) -> bool {
        if error != 0 {
            // Full, not connected yet, or gone: the caller looks whether the peer has ended.
            self.free.push(at);
            return false;
        }
        self.destinations[self.sends[at].to].in_flight += 1;
        true
    }

    /// How many records were sent, and to how many peers.
    pub fn sent(&self) -> (u64, u64) {
        (self.records, self.met)
    }

    /// Whether something has not left yet, or a message is on its way into a buffer.
    pub fn is_sending(&self) -> bool {
        self.endpoint.is_some() && (self.buffers > 0 || self.destinations.iter().any(|one| one.in_flight > 0))
    }

    /// Gives receive `at` to the core provider.
    fn post(&mut self, at: usize) -> Result<(), i32> {
        let endpoint = self.endpoint.as_ref().ok_or(FI_ESHUTDOWN)?;
        let buffer = &mut self.receives[at];
        let context = context(at, RECEIVE);
        // SAFETY: the endpoint's first function of messages receives.
        // The buffer stays until the completion (network rule 1).
        let error = unsafe {
            let function = endpoint.function::<Receive>(2, 0);
            let (bytes, len) = (buffer.as_mut_ptr(), buffer.len());
            function(endpoint.fid(), bytes, len, null_mut(), FI_ADDR_UNSPEC, context)
        };
        if error == 0 { Ok(()) } else { Err(-error as i32) }
    }

    /// Has the core provider make progress. Returns what has happened, if anything.
    pub fn poll(&mut self) -> Option<Event> {
        self.endpoint.as_ref()?;
        for at in std::mem::take(&mut self.refused) {
            self.post_again(at);
        }
        type Read = unsafe extern "C" fn(*mut Fid, *mut CqEntry, usize) -> isize;
        type Readerr = unsafe extern "C" fn(*mut Fid, *mut ErrorEntry, u64) -> isize;
        // SAFETY: a queue's second function reads entries, the third reads an error; there is room for one.
        // Zero is a value of every field.
        let (context, len, error) = unsafe {
            let mut entry: CqEntry = std::mem::zeroed();
            match self.queue.function::<Read>(0, 0)(self.queue.fid(), &raw mut entry, 1) {
                1 => (entry.context as usize, entry.len, 0),
                read if read == -(FI_EAVAIL as isize) => {
                    let mut entry: ErrorEntry = std::mem::zeroed();
                    let read = self.queue.function::<Readerr>(0, 2);
                    if read(self.queue.fid(), &raw mut entry, 0) != 1 {
                        return None;
                    }
                    (entry.0.context as usize, 0, entry.0.err.max(1))
                }
                _ => return None,
            }
        };
        let at = context >> 2;
        match context & 3 {
            RECEIVE => {
                if error == 0 {
                    return Some(Event::Arrived(at, len));
                }
                // The bytes are another one's, or were cut off: the buffer serves again.
                self.post_again(at);
                return Some(Event::Sent);
            }
            BUFFER_RECEIVE => {
                self.buffers -= 1;
                return Some(Event::BufferReceived(at as u64, len, error));
            }
            BUFFER_SEND => {
                self.buffers -= 1;
                return Some(Event::BufferSent(at as u64, error));
            }
            _ => {}
        }
        let send = self.sends.get_mut(at)?;
        let (to, buffer_of) = (send.to, send.buffer_of.take());
        self.free.push(at);
        let destination = &mut self.destinations[to];
        destination.in_flight -= 1;
        if let Some(number) = buffer_of {
            self.buffers -= 1;
            return Some(Event::BufferSent(number, error));
        }
        Some(if error == 0 { Event::Sent } else { Event::Failed(destination.peer) })
    }

    /// Takes the buffer of a receive that has ended.
    pub fn take(&mut self, at: usize) -> Box<[u8]> {
        std::mem::take(&mut self.receives[at])
    }

    /// Gives the buffer back, for the next record.
    pub fn give_back(&mut self, at: usize, buffer: Box<[u8]>) {
        self.receives[at] = buffer;
        self.post_again(at);
    }

    /// Posts a receive now, or when the core provider takes it: an endpoint without receives gets no records any more.
    fn post_again(&mut self, at: usize) {
        if self.post(at).is_err() {
            self.refused.push(at);
        }
    }

    /// Reads what has arrived; `None` if it is nothing of ours.
    pub fn read<'a>(&mut self, bytes: &'a [u8]) -> Option<Arrived<'a>> {
        let (head, payload) = bytes.split_at_checked(HEAD)?;
        let word = |at: usize| u32::from_le_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]);
        match word(0) {
            HELLO => {
                let name = Name::parse(payload)?;
                // A process on this node sends through rings.
                self.is_remote(name.elsewhere?).then_some(Arrived::Hello(name))
            }
            RECORD => {
                let nonce = u64::from(word(24)) | u64::from(word(28)) << 32;
                let kind = u8::try_from(word(4)).ok()?;
                let (context, tag) = (word(8), word(12).cast_signed());
                let header = Header { kind, context, tag, source: word(16), id: word(20) };
                Some(Arrived::Record(*self.peers.get(&nonce)?, header, payload))
            }
            _ => None,
        }
    }

    /// Records of the endpoint with this name come from `peer` from now on.
    pub fn know(&mut self, name: Name, peer: u32) {
        self.peers.insert(name.local.nonce, peer);
    }
}

/// What a completion brings back: a number of at most 62 bits, and what it numbers.
fn context(number: usize, what: usize) -> *mut libc::c_void {
    std::ptr::without_provenance_mut(number << 2 | what)
}

fn write_head(to: &mut [u8], what: u32, header: &Header, nonce: u64) {
    let words = [
        what,
        u32::from(header.kind),
        header.context,
        header.tag.cast_unsigned(),
        header.source,
        header.id,
        nonce as u32,
        (nonce >> 32) as u32,
    ];
    for (word, place) in words.iter().zip(to.chunks_exact_mut(4)) {
        place.copy_from_slice(&word.to_le_bytes());
    }
}

/// The address that an offer begins at.
fn source(offer: &Info) -> Option<SocketAddr> {
    if offer.src_addr.is_null() || ![16, 28].contains(&offer.src_addrlen) {
        return None;
    }
    // SAFETY: an offer has as many bytes of address as it says.
    node::from_sockaddr(unsafe { std::slice::from_raw_parts(offer.src_addr.cast::<u8>(), offer.src_addrlen) })
}

/// Which of several addresses to take: the lowest number, the first of equals. `None`: it is of no use elsewhere
/// without more than the address.
fn rank(address: SocketAddr) -> Option<u32> {
    match address {
        SocketAddr::V6(six) if six.ip().is_unicast_link_local() => None,
        _ if address.ip().is_loopback() => Some(2 + u32::from(address.is_ipv6())),
        _ => Some(u32::from(address.is_ipv6())),
    }
}

/// Opens a domain's completion queue, with a descriptor that wakes sleepers if there can be one.
fn completion_queue(domain: &Handle) -> Result<(Handle, Option<RawFd>), i32> {
    // SAFETY: zero is a value of every attribute.
    let mut attributes: CqAttr = unsafe { std::mem::zeroed() };
    attributes.format = FI_CQ_FORMAT_MSG;
    attributes.wait_obj = FI_WAIT_FD;
    // SAFETY: the second function of a domain's table opens completion queues.
    if let Ok(queue) = unsafe { domain.open(1, &raw mut attributes) } {
        let wakes = queue.wait_fd();
        return Ok((queue, wakes));
    }
    attributes.wait_obj = FI_WAIT_NONE;
    // SAFETY: the second function of a domain's table opens completion queues.
    Ok((unsafe { domain.open(1, &raw mut attributes) }?, None))
}

fn name_of(endpoint: &Handle) -> Option<SocketAddr> {
    type Getname = unsafe extern "C" fn(*mut Fid, *mut u8, *mut usize) -> i32;
    let (mut bytes, mut len) = ([0_u8; 64], 64);
    // SAFETY: an endpoint's second table has connections; the second function of it gives the name. 64 bytes, as said.
    let error =
        unsafe { endpoint.function::<Getname>(1, 1)(endpoint.fid(), bytes.as_mut_ptr(), &raw mut len) };
    if error == 0 { node::from_sockaddr(bytes.get(..len)?) } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_that_others_reach_come_first() {
        let of = |text: &str| rank(text.parse().expect("a socket"));
        let order = ["10.0.0.1:1", "[2001:db8::1]:1", "127.0.0.1:1", "[::1]:1"].map(of);
        assert!(order.is_sorted() && order.iter().all(Option::is_some));
        assert_eq!(of("[fe80::1]:1"), None);
    }
}
