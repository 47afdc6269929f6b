//! Blocks: memory for payloads that two ranks pass to and fro.
//!
//! A store to a line that another core has read last waits for that core; a store to a line that this core has read
//! last does not. So who answers a message writes the answer where it has just read the message.
//!
//! Behind the bulk area of each ring lie its blocks, and those of the two rings between a pair of ranks are one set.
//!
//! - **Block rule 1.** A block belongs to one of the two ranks, which alone reads and writes it: at first to the
//!   producer of the ring behind whose bulk area it lies. A record whose payload lies in a block gives it to the
//!   consumer of that record (edge 1).
//! - **Block rule 2.** Within a rank, the producer takes blocks and the consumer puts there what it has read (edge 12):
//!   each under `&mut` (ring rule 4), not both under one lock.
//! - **Block rule 3.** A rank that has no block sends through the bulk area; nobody waits for a block. So a stream in
//!   one direction takes the bulk area, which is larger, as soon as the receiver has all blocks, and keeps them for
//!   what it sends itself.

use super::storage::Storage;
use crate::limits::{MAX_BLOCKS, block_bytes, block_count};
use crate::sync::{Arc, AtomicU32, Ordering};

/// Where the ring begins whose blocks these are, in a mask of blocks: the ring to the peer, or that from it.
const OUTGOING: u32 = 0;
const INCOMING: u32 = 16;

const _: () = assert!(MAX_BLOCKS <= INCOMING as usize);

/// A block, as this rank knows it: its bit in the mask.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Block(u32);

impl Block {
    /// What a record says of it: its number, and whether it lies behind the ring that the record goes through.
    pub fn name(self) -> u32 {
        let lies_here = self.0 < INCOMING;
        self.0 % INCOMING * 2 + u32::from(lies_here)
    }

    /// The block that a record from the peer names; whether it is one, is for [`Blocks::is_peers`] to say.
    pub fn named(name: u32) -> Self {
        let lies_here = name % 2 == 1;
        Self(name / 2 % INCOMING + if lies_here { INCOMING } else { OUTGOING })
    }
}

/// The blocks that one rank passes to and fro with a peer.
#[derive(Debug)]
pub struct Blocks<S> {
    outgoing: S,
    incoming: S,
    /// A bit changes when the consumer puts the block here, and only then. At first it is set if this rank owns the
    /// block.
    put: AtomicU32,
    /// A bit changes when the producer takes the block, and only then. So this rank owns the blocks whose bits in the
    /// two differ, and each of the two is written by one end alone: no store must be locked, which would wait for all
    /// stores before it, those of the last message among them.
    taken: AtomicU32,
}

impl<S: Storage> Blocks<S> {
    /// The blocks of the rings to and from a peer: those of the ring to the peer but for what an earlier process at
    /// this rank's place has given away. It may come back before this one sends. Only the control words of that ring
    /// are read.
    pub fn new(outgoing: S, incoming: S) -> Arc<Self> {
        // Relaxed: a process that has retired has ended before this process was started.
        let given = outgoing.control().producer.blocks.load(Ordering::Relaxed);
        let all = (1 << block_count(outgoing.bulk())) - 1;
        let put = AtomicU32::new((all & !given) << OUTGOING);
        Arc::new(Self { outgoing, incoming, put, taken: AtomicU32::new(0) })
    }

    /// The consumer has the ring from the peer, and this rank of its blocks those whose bits are in `kept`.
    pub(super) fn open_incoming(&self, kept: u32) {
        let all = (1 << block_count(self.incoming.bulk())) - 1;
        // Relaxed, both: who read them last has ended before this process was started.
        self.put.store(self.put.load(Ordering::Relaxed) | (all & kept) << INCOMING, Ordering::Relaxed);
    }

    /// The bits of the blocks that this rank owns. `puts`: how what was put is loaded.
    #[inline(always)]
    fn owned(&self, puts: Ordering) -> u32 {
        // Relaxed: the producer, which writes it, reads what it has written. The consumer asks for a block that the
        // peer has sent back: the producer took it before it sent it to the peer, so edge 1 to the peer and edge 1 back
        // order that before this load.
        self.put.load(puts) ^ self.taken.load(Ordering::Relaxed)
    }

    /// The bits of the outgoing ring's blocks that the peer has, and of the incoming ring's that this rank has: for a
    /// later process at this rank's place.
    #[must_use]
    pub fn left(&self) -> (u32, u32) {
        // Relaxed: who leaves them does nothing else.
        let owned = self.owned(Ordering::Relaxed);
        let all = (1 << block_count(self.outgoing.bulk())) - 1;
        (all & !(owned >> OUTGOING), owned >> INCOMING)
    }

    /// Whether there is a block for a payload of `len` bytes, and it may lie there. If so, it stays so until the
    /// producer takes one, which asks.
    #[inline]
    pub(super) fn has_for(&self, len: usize) -> bool {
        // Relaxed: `take` has the edge.
        self.fits(len) && self.owned(Ordering::Relaxed) != 0
    }

    #[inline]
    fn fits(&self, len: usize) -> bool {
        len <= block_bytes(self.outgoing.bulk())
    }

    /// Takes a block for a payload of `len` bytes, if there is one and the payload may lie there.
    #[inline]
    pub(super) fn take(&self, len: usize) -> Option<Block> {
        if !self.fits(len) {
            return None;
        }
        // Acquire: edge 12, pairs with Release in `put`: the consumer's reads of the block are over.
        let owned = self.owned(Ordering::Acquire);
        if owned == 0 {
            return None;
        }
        let block = Block(owned.trailing_zeros());
        // Relaxed, both: only the producer writes it.
        self.taken.store(self.taken.load(Ordering::Relaxed) ^ 1 << block.0, Ordering::Relaxed);
        Some(block)
    }

    /// Returns whether the peer may have given the block: there is such a one, and it is not this rank's already.
    pub(super) fn is_peers(&self, block: Block) -> bool {
        // Relaxed: of the peer's blocks, only the consumer, which asks, makes some this rank's.
        let owned = self.owned(Ordering::Relaxed);
        (block.0 % INCOMING) < block_count(self.outgoing.bulk()) as u32 && owned >> block.0 & 1 == 0
    }

    /// Puts a block there that has been read, for the producer.
    pub(super) fn put(&self, block: Block) {
        // Relaxed: only the consumer writes it. Release: edge 12, pairs with Acquire in `take`: the reads of the block
        // are over.
        self.put.store(self.put.load(Ordering::Relaxed) ^ 1 << block.0, Ordering::Release);
    }

    /// The ring behind whose bulk area a block lies, and how far behind its beginning.
    pub(super) fn place(&self, block: Block) -> (&S, usize) {
        let ring = if block.0 < INCOMING { &self.outgoing } else { &self.incoming };
        let bulk = ring.bulk();
        (ring, bulk + (block.0 % INCOMING) as usize * block_bytes(bulk))
    }
}
