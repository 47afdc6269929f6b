//! Accesses to registered memory, and atomic operations: at the origin and at the target.
//!
//! A target says in its memory where its regions are, as long as there is room. Then the origin copies by itself, where
//! the kernel lets it, and the target takes no part. Else an access goes to the target as a record, which the target's
//! progress serves; its answer tells where the region is. Both hold as long as the target has taken no region away.
//! Atomic operations are always the target's: it performs them one behind the other.
//!
//! - **Access rule 1.** An origin copies by itself only when the peer has answered all it was asked:
//!   accesses keep their order.
//! - **Access rule 2.** A target looks up key, range and permission of every record in its own table. What a peer tells
//!   of its regions is used for copies to and from that peer's memory only, which the kernel checks.

use crate::api::*;
use crate::memory::words::Known;
use crate::operands::arithmetic::{self, Family};
use crate::operands::region::{Found, Region, Remote};
use crate::operands::spans::Spans;
use crate::peers::{Outgoing, Waiting};
use crate::protocol::core::{Core, EAGER_LIMIT};
use crate::protocol::direct::Direct;
use crate::protocol::operation::{Access, Arrival, Arriving, Atomic, Message, Sending, Taken};
use crate::protocol::trace::Traced;
use crate::protocol::wire;
use perusal::internals::ring::Header;
use perusal::internals::shm::peer_memory::{read_peer, write_peer};
use std::collections::HashMap;
use std::rc::Rc;

/// Pieces of a peer's memory in one access.
pub const RMA_IOV_LIMIT: usize = 16;
/// Bytes of the values of one atomic operation.
pub const ATOMIC_BYTES: usize = 4096;
/// Regions that are remembered of a peer.
const MOST_KNOWN: usize = 4096;

// The origin.

impl Core {
    /// Reads from a peer's memory.
    ///
    /// # Errors
    ///
    /// As [`Core::send_eager`].
    pub fn read(&mut self, access: Access) -> Result<(), i32> {
        let flags = FI_RMA | FI_READ;
        let Some((peer, pieces)) = self.begin_access(&access, flags, FI_REMOTE_READ)? else { return Ok(()) };
        let number = self.await_result(peer, access.spans.clone(), &access, flags);
        let header = wire::access(wire::READ | wire::TELL, pieces, 0);
        let len = wire::access_bytes(1, pieces);
        if !self
            .peers
            .outgoing(peer)?
            .push(&header, len, |to| _ = wire::put_access([number], &access.pieces, to))
        {
            self.arriving.remove(number);
            return Err(self.peers.refuse(peer));
        }
        self.peers.all[peer as usize].unanswered += 1;
        Ok(())
    }

    /// Writes into a peer's memory.
    ///
    /// # Errors
    ///
    /// As [`Core::send_eager`].
    pub fn write(&mut self, access: Access) -> Result<(), i32> {
        let flags = FI_RMA | FI_WRITE;
        let len = access.spans.len();
        if access.inject && len > EAGER_LIMIT {
            return Err(FI_EMSGSIZE);
        }
        let Some((peer, pieces)) = self.begin_access(&access, flags, FI_REMOTE_WRITE)? else { return Ok(()) };
        let inline = len <= EAGER_LIMIT;
        let kind =
            if inline { wire::INLINE } else { 0 } | if access.data.is_some() { wire::HAS_DATA } else { 0 };
        let spans = if inline { Spans::none() } else { access.spans.clone() };
        let number = self.await_confirmation(peer, spans, &access, flags);
        let header = wire::access(wire::WRITE | wire::TELL | kind, pieces, access.data.unwrap_or(0));
        let words = [number, len as u64, access.spans.single().0 as u64];
        let bytes = wire::access_bytes(words.len(), pieces) + if inline { len } else { 0 };
        let fill = |to: &mut [u8]| {
            let rest = wire::put_access(words, &access.pieces, to);
            if inline {
                access.spans.read(0, rest);
            }
        };
        if !self.peers.outgoing(peer)?.push(&header, bytes, |to| fill(to)) {
            self.sends.remove(number);
            return Err(self.peers.refuse(peer));
        }
        self.peers.all[peer as usize].unanswered += 1;
        Ok(())
    }

    /// Performs an atomic operation in a peer's memory.
    ///
    /// # Errors
    ///
    /// As [`Core::send_eager`]; FI_EMSGSIZE for more than [`ATOMIC_BYTES`].
    pub fn atomic(&mut self, access: Access, atomic: Atomic) -> Result<(), i32> {
        let fetches = atomic.family != Family::Write;
        let flags = FI_ATOMIC | if fetches { FI_READ } else { FI_WRITE };
        let len = access.pieces.iter().fold(0_usize, |sum, piece| sum.saturating_add(piece.len));
        let operand = if arithmetic::has_operand(atomic.op) { len } else { 0 };
        let compare = if atomic.family == Family::Compare { len } else { 0 };
        let fits = access.spans.len() >= operand && atomic.compare.len() >= compare;
        if !fits || fetches && atomic.result.len() != len || access.pieces.is_empty() {
            return Err(FI_EINVAL);
        }
        if len > ATOMIC_BYTES || access.pieces.len() > RMA_IOV_LIMIT {
            return Err(FI_EMSGSIZE);
        }
        let peer = self.way_to(access.to)?;
        let number = match fetches {
            true => self.await_result(peer, atomic.result, &access, flags),
            false => self.await_confirmation(peer, Spans::none(), &access, flags),
        };
        let kind =
            if fetches { wire::INLINE } else { 0 } | if access.data.is_some() { wire::HAS_DATA } else { 0 };
        let header = wire::access(wire::ATOMIC | kind, access.pieces.len(), access.data.unwrap_or(0));
        let words = [number, u64::from(atomic.op) << 32 | u64::from(atomic.datatype)];
        let bytes = wire::access_bytes(words.len(), access.pieces.len()) + operand + compare;
        let fill = |to: &mut [u8]| {
            let (first, second) = wire::put_access(words, &access.pieces, to).split_at_mut(operand);
            access.spans.read(0, first);
            atomic.compare.read(0, second);
        };
        if !self.peers.outgoing(peer)?.push(&header, bytes, |to| fill(to)) {
            let _ = if fetches {
                self.arriving.remove(number).is_some()
            } else {
                self.sends.remove(number).is_some()
            };
            return Err(self.peers.refuse(peer));
        }
        self.peers.all[peer as usize].unanswered += 1;
        Ok(())
    }

    /// The peer behind a number of the address vector, to which nothing waits for room.
    fn way_to(&mut self, to: u64) -> Result<u32, i32> {
        let peer = self.peer_of(to).ok_or(FI_EINVAL)?;
        if !self.peers.all[peer as usize].waiting.is_empty() && !self.push_waiting_to(peer) {
            return Err(self.peers.refuse(peer));
        }
        self.peers.outgoing(peer)?;
        Ok(peer)
    }

    /// Checks an access, and performs it where that takes no part of the peer's.
    /// Else returns the peer and how many pieces there are.
    fn begin_access(
        &mut self,
        access: &Access,
        flags: u64,
        remote: u64,
    ) -> Result<Option<(u32, usize)>, i32> {
        let len = access.spans.len();
        let there = access.pieces.iter().try_fold(0_usize, |sum, piece| sum.checked_add(piece.len));
        let pieces = access.pieces.len();
        if there != Some(len) || pieces > RMA_IOV_LIMIT {
            return Err(FI_EINVAL);
        }
        let peer = self.way_to(access.to)?;
        let performed = len == 0 || !access.fenced && self.copy_directly(peer, access, remote);
        if !performed {
            return Ok(Some((peer, pieces)));
        }
        if access.data.is_some() || self.peers.outgoing(peer)?.counts_accesses() {
            let kind = wire::NOTICE | if access.data.is_some() { wire::HAS_DATA } else { 0 };
            let header = wire::access(kind, 0, access.data.unwrap_or(0));
            if let [piece] = access.pieces[..] {
                self.peers.control(peer, header, [remote, len as u64, piece.key]);
            } else {
                let keys = access.pieces.iter().map(|piece| piece.key);
                let words = [remote, len as u64].into_iter().chain(keys);
                self.peers.answer(peer, header, words.flat_map(u64::to_le_bytes).collect());
            }
        }
        self.reports.ended(access.context, flags, len, access.completion, 0);
        Ok(None)
    }

    /// Copies to or from the peer's memory, if the regions are known and the kernel allows that.
    fn copy_directly(&mut self, peer: u32, access: &Access, remote: u64) -> bool {
        let entry = &mut self.peers.all[peer as usize];
        // Access rule 1.
        if entry.unanswered > 0 {
            return false;
        }
        let Some(outgoing) = entry.outgoing.as_ref().and_then(Outgoing::ring) else { return false };
        let generation = outgoing.generation();
        let mut places = Vec::with_capacity(access.pieces.len());
        for piece in &access.pieces {
            let remembered = entry.regions.get(&piece.key).copied();
            let known = match remembered.filter(|known| known.generation == generation) {
                Some(known) => known,
                None => {
                    let Some(known) = outgoing.known(piece.key) else { return false };
                    remember(&mut entry.regions, piece.key, known);
                    known
                }
            };
            let Some(at) = known.place(piece, remote) else { return false };
            places.push((at, piece.len));
        }
        if !entry.is_reachable() {
            return false;
        }
        let pid = entry.address.pid.cast_signed();
        let mut there = places.into_iter();
        let (mut at, mut room) = (0, 0);
        for (mut here, mut left) in access.spans.pieces() {
            while left > 0 {
                if room == 0 {
                    let Some(next) = there.next() else { return false };
                    (at, room) = next;
                    continue;
                }
                let len = left.min(room);
                // SAFETY: the caller's buffer, which has `left` bytes from `here` on;
                // the kernel checks the peer's addresses.
                let copied = unsafe {
                    match remote {
                        FI_REMOTE_READ => read_peer(pid, at, here, len),
                        _ => write_peer(pid, here, at, len),
                    }
                };
                if copied.is_err() {
                    // The target serves it, or says what is wrong.
                    entry.regions.clear();
                    entry.give_up_copies();
                    return false;
                }
                (here, left, at, room) = (here.wrapping_add(len), left - len, at + len as u64, room - len);
            }
        }
        true
    }

    /// Has the bytes that an access brings back arrive.
    fn await_result(&mut self, peer: u32, spans: Spans, access: &Access, flags: u64) -> u64 {
        let wanted = spans.len();
        let receive =
            Taken { context: access.context, completion: access.completion, several: None, trace: 0 };
        let message = Message { peer, kind: 0, tag: 0, data: 0, len: wanted };
        let access = Some(Arrival::Result(flags));
        self.arriving.insert(Arriving { access, ..Arriving::new(message, spans, wanted, receive) })
    }

    /// Has an access wait until the peer says that it is performed, or asks for these bytes.
    fn await_confirmation(&mut self, peer: u32, spans: Spans, access: &Access, flags: u64) -> u64 {
        self.sends.insert(Sending {
            peer,
            spans,
            len: access.pieces.iter().map(|piece| piece.len).sum(),
            sent: 0,
            wanted: usize::MAX,
            number: 0,
            confirmed: true,
            context: access.context,
            flags,
            completion: access.completion,
            own: None,
            regions: Vec::new(),
            direct: Direct::default(),
            traced: Traced::default(),
        })
    }
}

fn remember(regions: &mut HashMap<u64, Known>, key: u64, known: Known) {
    if regions.len() >= MOST_KNOWN {
        regions.clear();
    }
    regions.insert(key, known);
}

// The target.

impl Core {
    /// Takes a record of an access.
    pub(crate) fn take_access(&mut self, peer: u32, header: &Header, payload: &[u8]) {
        let source = self.peers.all[peer as usize].source;
        let data = (header.kind & wire::HAS_DATA != 0).then(|| wire::data(header));
        let kind = header.kind & wire::KIND;
        let number = match kind {
            wire::WRITE | wire::READ | wire::ATOMIC => wire::word(payload, 0),
            _ => wire::number(header),
        };
        match kind {
            wire::WRITE => {
                let error = match self.serve_write(peer, header, payload, data) {
                    Ok(true) => 0,
                    Ok(false) => return,
                    Err(error) => error,
                };
                self.peers.control(peer, wire::control(wire::FIN, number), [error as u64, 0, 0]);
            }
            wire::READ => {
                if let Err(error) = self.serve_read(peer, header, payload) {
                    self.peers.control(peer, wire::control(wire::FAIL, number), [error as u64, 0, 0]);
                }
            }
            wire::ATOMIC => match self.serve_atomic(header, payload, data, source) {
                Ok(old) if header.kind & wire::INLINE != 0 => {
                    self.peers.answer(peer, wire::control(wire::DATA, number), old);
                }
                other => {
                    let error = other.err().unwrap_or(0) as u64;
                    let kind = if header.kind & wire::INLINE != 0 { wire::FAIL } else { wire::FIN };
                    self.peers.control(peer, wire::control(kind, number), [error, 0, 0]);
                }
            },
            wire::REGION => {
                let entry = &mut self.peers.all[peer as usize];
                let [key, base, at, len, access] = [0, 2, 3, 4, 5].map(|at| wire::word(payload, at));
                if entry.unanswered > 0 {
                    let generation = wire::word(payload, 1) as u32;
                    remember(&mut entry.regions, key, Known { generation, base, at, len, access });
                }
            }
            wire::FAIL => {
                let known = self.arriving.get(number).filter(|one| one.peer == peer && one.part.is_none());
                if known.is_some() {
                    self.arrived(number, wire::error(payload).max(1));
                }
            }
            wire::NOTICE => {
                let which = wire::word(payload, 0) & (FI_REMOTE_READ | FI_REMOTE_WRITE);
                let Some(regions) = &self.regions else { return };
                let keys = (2..payload.len() / 8).take(RMA_IOV_LIMIT).map(|at| wire::word(payload, at));
                let accessed: Vec<Rc<Region>> = keys.filter_map(|key| regions.get(key)).collect();
                let len = wire::word(payload, 1) as usize;
                self.reports.accessed(FI_RMA | which, &accessed, data, len, source);
            }
            _ => {}
        }
    }

    /// Returns whether the write is performed; if not, its bytes are on their way.
    fn serve_write(
        &mut self,
        peer: u32,
        header: &Header,
        payload: &[u8],
        data: Option<u64>,
    ) -> Result<bool, i32> {
        let (pieces, bytes) = wire::take_access(header, payload, 3, RMA_IOV_LIMIT).ok_or(FI_EINVAL)?;
        let (regions, places) = self.find(&pieces, FI_REMOTE_WRITE)?;
        self.tell(peer, header, &regions);
        // SAFETY: memory that this process has registered for this,
        // and that stays valid until it takes the region away.
        let spans = unsafe { Spans::of_places(&places) };
        let len = spans.len();
        let source = self.peers.all[peer as usize].source;
        if header.kind & wire::INLINE != 0 {
            if bytes.len() != len {
                return Err(FI_EINVAL);
            }
            spans.write(0, bytes);
            self.reports.accessed(FI_RMA | FI_REMOTE_WRITE, &regions, data, len, source);
            return Ok(true);
        }
        let (from, (to, room)) = (wire::word(payload, 2), spans.single());
        let reachable = self.peers.outgoing(peer).is_ok();
        let entry = &mut self.peers.all[peer as usize];
        let copies = reachable && from != 0 && room == len;
        // SAFETY: the place in the region, which is as long.
        if copies && unsafe { entry.copy(from, to, len) } {
            self.reports.accessed(FI_RMA | FI_REMOTE_WRITE, &regions, data, len, source);
            return Ok(true);
        }
        let send = wire::word(payload, 0);
        let receive = Taken { context: std::ptr::null_mut(), completion: false, several: None, trace: 0 };
        let message = Message { peer, kind: 0, tag: 0, data: 0, len };
        let access = Some(Arrival::Written(regions, data));
        let arriving = Arriving { send, access, ..Arriving::new(message, spans, len, receive) };
        let number = self.arriving.insert(arriving);
        self.peers.control(peer, wire::control(wire::CTS, send), [number, len as u64, 0]);
        Ok(false)
    }

    fn serve_read(&mut self, peer: u32, header: &Header, payload: &[u8]) -> Result<(), i32> {
        let (pieces, _) = wire::take_access(header, payload, 1, RMA_IOV_LIMIT).ok_or(FI_EINVAL)?;
        let (regions, places) = self.find(&pieces, FI_REMOTE_READ)?;
        self.tell(peer, header, &regions);
        // SAFETY: memory that this process has registered for this,
        // and that stays valid until it takes the region away.
        let spans = unsafe { Spans::of_places(&places) };
        let wanted = spans.len();
        if wanted <= EAGER_LIMIT {
            // Copied now: what is written later is not to be seen.
            let mut bytes = vec![0; wanted].into_boxed_slice();
            spans.read(0, &mut bytes);
            let source = self.peers.all[peer as usize].source;
            self.reports.accessed(FI_RMA | FI_REMOTE_READ, &regions, None, wanted, source);
            self.peers.answer(peer, wire::control(wire::DATA, wire::word(payload, 0)), bytes);
            return Ok(());
        }
        let number = self.sends.insert(Sending {
            peer,
            spans,
            len: wanted,
            sent: 0,
            wanted,
            number: wire::word(payload, 0),
            confirmed: false,
            context: std::ptr::null_mut(),
            flags: FI_RMA | FI_REMOTE_READ,
            completion: false,
            own: None,
            regions,
            direct: Direct::default(),
            traced: Traced::default(),
        });
        self.peers.wait(peer, Waiting::Stream(number));
        self.push_some_to(peer);
        Ok(())
    }

    /// Returns the old values.
    fn serve_atomic(
        &mut self,
        header: &Header,
        payload: &[u8],
        data: Option<u64>,
        source: u64,
    ) -> Result<Box<[u8]>, i32> {
        let (pieces, bytes) = wire::take_access(header, payload, 2, RMA_IOV_LIMIT).ok_or(FI_EINVAL)?;
        let (datatype, op) = (wire::word(payload, 1) as u32, (wire::word(payload, 1) >> 32) as u32);
        let fetches = header.kind & wire::INLINE != 0;
        let families = if fetches { &[Family::Fetch, Family::Compare][..] } else { &[Family::Write] };
        let fitting =
            families.iter().find_map(|&family| Some((family, arithmetic::size(datatype, op, family)?)));
        let (family, size) = fitting.ok_or(FI_EINVAL)?;
        let (remote, which) = match (fetches, op) {
            (false, _) => (FI_REMOTE_WRITE, FI_REMOTE_WRITE),
            (true, arithmetic::ATOMIC_READ) => (FI_REMOTE_READ, FI_REMOTE_READ),
            (true, _) => (FI_REMOTE_READ | FI_REMOTE_WRITE, FI_REMOTE_READ),
        };
        let (regions, places) = self.find(&pieces, remote)?;
        // SAFETY: memory that this process has registered for this,
        // and that stays valid until it takes the region away.
        let spans = unsafe { Spans::of_places(&places) };
        let len = spans.len();
        let operands = usize::from(arithmetic::has_operand(op)) + usize::from(family == Family::Compare);
        if len > ATOMIC_BYTES || !len.is_multiple_of(size) || bytes.len() != operands * len {
            return Err(FI_EINVAL);
        }
        let (operand, compare) = bytes.split_at(len.min(bytes.len()));
        let (mut old, mut new) = (vec![0; len].into_boxed_slice(), vec![0; len]);
        spans.read(0, &mut old);
        if op != arithmetic::ATOMIC_READ {
            arithmetic::apply(datatype, op, &old, operand, compare, &mut new);
            spans.write(0, &new);
        }
        self.reports.accessed(FI_ATOMIC | which, &[], data, len, source);
        // A region counts what has modified it as a write, whether it was fetched or not (fi_mr(3));
        // an endpoint does not (fi_endpoint(3)).
        regions.iter().for_each(|region| region.count(remote, len));
        Ok(old)
    }

    fn find(&self, pieces: &[Remote], access: u64) -> Result<Found, i32> {
        let found = self.regions.as_ref().ok_or(FI_EKEYREJECTED)?.find(pieces, access)?;
        if self.serves & access == access { Ok(found) } else { Err(FI_EACCES) }
    }

    /// Tells the origin of an access where its region is, if it wants to know and the region is one piece.
    fn tell(&mut self, peer: u32, header: &Header, regions: &[Rc<Region>]) {
        let generation = self.regions.as_ref().map_or(0, |regions| u64::from(regions.generation.get()));
        let (true, [region]) = (header.kind & wire::TELL != 0, regions) else { return };
        // Only an origin on this node can use it.
        if self.peers.all[peer as usize].is_remote() {
            return;
        }
        if let [(at, len)] = *region.pieces {
            let words = [region.key, generation, region.base, at, len as u64, region.access & self.serves];
            let mut bytes = vec![0; 8 * words.len()].into_boxed_slice();
            wire::words(words, &mut bytes);
            self.peers.answer(peer, wire::control(wire::REGION, 0), bytes);
        }
    }

    /// The bytes of an access have arrived, or will not.
    pub(crate) fn access_arrived(
        &mut self,
        access: Arrival,
        message: Message,
        to: Taken,
        send: u64,
        error: i32,
    ) {
        let peer = message.peer;
        match access {
            Arrival::Result(flags) => {
                self.peers.answered(peer);
                self.reports.ended(to.context, flags, message.len, to.completion, error);
            }
            Arrival::Written(regions, data) => {
                if error == 0 {
                    let source = self.peers.all[peer as usize].source;
                    let flags = FI_RMA | FI_REMOTE_WRITE;
                    self.reports.accessed(flags, &regions, data, message.len, source);
                }
                self.peers.control(peer, wire::control(wire::FIN, send), [error as u64, 0, 0]);
            }
        }
    }

    /// Ends accesses of peers to a region that is taken away: its memory is not touched any more.
    pub fn end_region(&mut self, region: &Rc<Region>) {
        let has = |all: &[Rc<Region>]| all.iter().any(|other| Rc::ptr_eq(other, region));
        let written =
            |one: &Arriving| matches!(&one.access, Some(Arrival::Written(regions, _)) if has(regions));
        let arriving: Vec<u64> = self.arriving.iter().filter(|one| written(one.1)).map(|one| one.0).collect();
        arriving.into_iter().for_each(|number| self.arrived(number, FI_ECANCELED));
        let sends: Vec<(u64, u32, u64)> = self
            .sends
            .iter()
            .filter(|one| has(&one.1.regions))
            .map(|one| (one.0, one.1.peer, one.1.number))
            .collect();
        for (number, peer, arriving) in sends {
            self.sends.remove(number);
            self.peers.control(peer, wire::control(wire::FAIL, arriving), [FI_ECANCELED as u64, 0, 0]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::names::address::Address;
    use crate::operands::region::Regions;

    /// Whatever a peer sends as an access, only what is registered is touched.
    #[test]
    fn records_with_anything_in_them_touch_nothing_else() {
        let mut state = 0x9e37_79b9_7f4a_7c15_u64;
        let mut random = move || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state
        };
        let mut memory = [0_u8; 96];
        let at = memory.as_mut_ptr().expose_provenance() as u64;
        let regions = Rc::new(Regions::default());
        regions.add(1, FI_REMOTE_READ | FI_REMOTE_WRITE, Box::new([(at + 32, 32)])).expect("a free key");
        regions.add(2, FI_REMOTE_READ, Box::new([(at, 16), (at + 80, 16)])).expect("a free key");
        let own = Address { pid: std::process::id(), fd: 0, nonce: 1 };
        let mut core = Core::new(own);
        core.regions = Some(regions);
        // Nobody is there to be answered.
        let peer = core.peers.number(Address { pid: 0, fd: 0, nonce: 2 });
        for _ in 0..200_000 {
            let pieces = random() % 3;
            let kind = (wire::WRITE + (random() % 6) as u8) | (random() as u8 & 0x70);
            let header = wire::access(kind, pieces as usize, random());
            let mut words = match kind & wire::KIND {
                wire::WRITE => vec![random() % 4, random() % 40, random() % 2],
                wire::READ => vec![random() % 4],
                wire::ATOMIC => vec![random() % 4, ((random() % 20) << 32) | (random() % 16)],
                _ => vec![],
            };
            let mut len = 0;
            for _ in 0..pieces {
                words.extend([random() % 34, random() % 5 * 8, 1 + random() % 2]);
                len += words[words.len() - 2];
            }
            words.resize(words.len() + (len / 8 * (random() % 3)) as usize, random());
            if random() % 2 == 0 && !words.is_empty() {
                let at = random() as usize % words.len();
                words[at] = if random() % 2 == 0 { u64::MAX - random() % 40 } else { random() };
            }
            let mut payload: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
            if random() % 4 == 0 {
                payload.truncate(random() as usize % (payload.len() + 1));
            }
            core.take(peer, &header, &payload);
        }
        assert!(memory[..32] == [0; 32] && memory[64..] == [0; 32]);
        assert_ne!(memory[32..64], [0; 32], "some of them were valid");
    }
}
