//! The match itself, as arithmetic: a key is a word, and a pattern is a word and a mask of the bits that must agree.
//!
//! Everything above this file works on [`KeyWord`]s. [`Envelope`] and [`Pattern`] are MPI's instance (source and
//! 31-bit tag); another interface, say 64-bit tags with an ignore mask,
//! is another pair of [`MatchKey`] and [`MatchPattern`].

use core::fmt::Debug;
use core::ops::{BitAnd, BitOr, BitXor};

/// An unsigned integer wide enough for a key.
pub trait KeyWord:
    Copy + Eq + Default + Debug + BitAnd<Output = Self> + BitOr<Output = Self> + BitXor<Output = Self>
{
    /// Spreads the word's bits over 64, the high ones best.
    fn hash(self) -> u64;
}

/// 2⁶⁴ divided by the golden ratio, made odd.
const GOLDEN: u64 = 0x9E37_79B9_7F4A_7C15;

/// Both halves of the product, so that no input bit is lost to the high bits of the result.
#[inline(always)]
const fn folded(word: u64, factor: u64) -> u64 {
    let product = word as u128 * factor as u128;
    (product >> 64) as u64 ^ product as u64
}

impl KeyWord for u64 {
    #[inline(always)]
    fn hash(self) -> u64 {
        folded(self ^ GOLDEN, 0xD6E8_FEB8_6659_FD93)
    }
}

impl KeyWord for u128 {
    #[inline(always)]
    fn hash(self) -> u64 {
        ((self >> 64) as u64).hash() ^ (self as u64).wrapping_add(GOLDEN).hash().rotate_left(29)
    }
}

/// What a message is matched by: the key of its queue's entries.
pub trait MatchKey: Copy + Debug {
    /// The key as one integer.
    type Word: KeyWord;
    /// The sender.
    type Source: Copy;
    /// The bits that each class of pattern compares: one source and one tag (all bits), any source, any tag, both any.
    /// The last has one bit at most.
    const CARES: [Self::Word; 4];
    /// Whether the first three of [`CARES`](Self::CARES) are only what a queue begins with: a class that is not in use
    /// then becomes that of a pattern which has none.
    const LEARNS: bool = false;
    /// Returns the key as one integer. Two keys are equal exactly if their words are.
    fn word(&self) -> Self::Word;
    /// Returns whether this message is from `source`.
    fn is_from(&self, source: Self::Source) -> bool;
    /// Returns a word with the bits that all keys from `source` have for it, and zeros elsewhere.
    fn source_word(source: Self::Source) -> Self::Word;
}

/// The integer of a pattern's keys.
pub(super) type WordOf<P> = <<P as MatchPattern>::Key as MatchKey>::Word;

/// What a receive asks for.
pub trait MatchPattern: Copy + Debug {
    /// The keys among which it selects.
    type Key: MatchKey;
    /// Returns the wanted bits; zero where [`care`](Self::care) is.
    fn value(&self) -> <Self::Key as MatchKey>::Word;
    /// Returns the bits that must agree.
    fn care(&self) -> <Self::Key as MatchKey>::Word;

    /// Returns whether a receive with this pattern takes a message with this key.
    #[inline(always)]
    fn takes(&self, key: &Self::Key) -> bool {
        agree(key.word(), self.value(), self.care())
    }
}

/// Returns whether `word` has the bits of `value` wherever `care` is set.
#[inline(always)]
pub(super) fn agree<W: KeyWord>(word: W, value: W, care: W) -> bool {
    (word ^ value) & care == W::default()
}

/// What a message is matched by in MPI: its sender's rank in the communicator, and its tag.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Envelope {
    /// The sender's rank in the communicator.
    pub source: u32,
    /// 0..=MPI_TAG_UB for a user's message; below zero for the library's own.
    pub tag: i32,
}

/// What a receive asks for in MPI.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Pattern {
    /// The sender's rank in the communicator; `None` is MPI_ANY_SOURCE.
    pub source: Option<u32>,
    /// The tag; `None` is MPI_ANY_TAG, which takes every tag from zero on and none below.
    pub tag: Option<i32>,
}

const SOURCE: u64 = 0xFFFF_FFFF_0000_0000;
const TAG: u64 = 0x0000_0000_FFFF_FFFF;
/// The bit that tells the library's own tags from a user's (matching rule 4).
const OWN: u64 = 0x0000_0000_8000_0000;

impl MatchKey for Envelope {
    type Word = u64;
    type Source = u32;
    const CARES: [u64; 4] = [SOURCE | TAG, TAG, SOURCE | OWN, OWN];

    #[inline(always)]
    fn word(&self) -> u64 {
        (u64::from(self.source) << 32) | u64::from(self.tag.cast_unsigned())
    }
    #[inline(always)]
    fn is_from(&self, source: u32) -> bool {
        self.source == source
    }
    #[inline(always)]
    fn source_word(source: u32) -> u64 {
        u64::from(source) << 32
    }
}

impl MatchPattern for Pattern {
    type Key = Envelope;

    #[inline(always)]
    fn value(&self) -> u64 {
        Envelope { source: self.source.unwrap_or(0), tag: self.tag.unwrap_or(0) }.word()
    }
    #[inline(always)]
    fn care(&self) -> u64 {
        let source = if self.source.is_some() { SOURCE } else { 0 };
        let tag = if self.tag.is_some() { TAG } else { OWN };
        source | tag
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const EDGES: [i32; 7] = [i32::MIN, -2, -1, 0, 1, 77, i32::MAX];
    const RANKS: [u32; 5] = [0, 1, 2, 0x7FFF_FFFF, u32::MAX];

    fn by_definition(pattern: &Pattern, key: &Envelope) -> bool {
        let source = match pattern.source {
            None => true,
            Some(source) => source == key.source,
        };
        let tag = match pattern.tag {
            None => key.tag >= 0,
            Some(tag) => tag == key.tag,
        };
        source && tag
    }

    #[test]
    fn the_masked_compare_is_the_definition_on_every_edge() {
        let sources = RANKS.iter().map(|&rank| Some(rank)).chain([None]);
        for source in sources {
            for tag in EDGES.iter().map(|&tag| Some(tag)).chain([None]) {
                let pattern = Pattern { source, tag };
                for key in RANKS.iter().flat_map(|&source| EDGES.map(|tag| Envelope { source, tag })) {
                    assert_eq!(pattern.takes(&key), by_definition(&pattern, &key), "{pattern:?} {key:?}");
                }
            }
        }
    }

    #[test]
    fn any_tag_takes_zero_and_never_a_tag_below() {
        let pattern = Pattern { source: None, tag: None };
        assert!(pattern.takes(&Envelope { source: 3, tag: 0 }));
        assert!(!pattern.takes(&Envelope { source: 3, tag: -1 }));
    }

    #[test]
    fn every_mpi_pattern_is_of_one_of_the_four_classes() {
        for (source, tag, class) in
            [(Some(1), Some(2), 0), (None, Some(2), 1), (Some(1), None, 2), (None, None, 3)]
        {
            assert_eq!(Pattern { source, tag }.care(), Envelope::CARES[class]);
        }
    }

    #[test]
    fn regular_keys_spread_over_a_table_of_their_number() {
        for step in [1u64, 2, 64, 1 << 16, 1 << 32, (1 << 32) + 1, (1 << 33) + 64] {
            let mut hit = vec![0u32; 1024];
            for i in 0..1024 {
                hit[((i * step).hash() >> 54) as usize] += 1;
            }
            assert!(hit.iter().all(|&n| n <= 12), "step {step}: a slot was hit {:?} times", hit.iter().max());
        }
    }
}
