//! The match of tagged messages: 64-bit tags with a mask of bits to ignore, from one peer or from any.

use perusal::internals::matching::{MatchKey, MatchPattern};

/// What a message is matched by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TagKey {
    /// The peer's number in this endpoint.
    pub peer: u32,
    /// The tag.
    pub tag: u64,
}

/// What a receive asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TagPattern {
    /// The peer's number in this endpoint; `None` takes any.
    pub peer: Option<u32>,
    /// The wanted bits.
    pub tag: u64,
    /// The bits of the tag that need not agree.
    pub ignore: u64,
}

const PEER: u128 = (u32::MAX as u128) << 64;
const TAG: u128 = u64::MAX as u128;

impl MatchKey for TagKey {
    type Word = u128;
    type Source = u32;
    const CARES: [u128; 4] = [PEER | TAG, TAG, PEER, 0];
    // An MPI ignores bits of its own in every receive.
    const LEARNS: bool = true;

    #[inline(always)]
    fn word(&self) -> u128 {
        u128::from(self.peer) << 64 | u128::from(self.tag)
    }
    #[inline(always)]
    fn is_from(&self, peer: u32) -> bool {
        self.peer == peer
    }
    #[inline(always)]
    fn source_word(peer: u32) -> u128 {
        u128::from(peer) << 64
    }
}

impl MatchPattern for TagPattern {
    type Key = TagKey;

    #[inline(always)]
    fn value(&self) -> u128 {
        TagKey { peer: self.peer.unwrap_or(0), tag: self.tag & !self.ignore }.word()
    }
    #[inline(always)]
    fn care(&self) -> u128 {
        let peer = if self.peer.is_some() { PEER } else { 0 };
        peer | u128::from(!self.ignore)
    }
}
