//! Sources, tags and statuses of messages.

use super::element::Element;
use crate::abi;
use crate::error::{Error, Result};

/// Any source, or any tag (MPI_ANY_SOURCE, MPI_ANY_TAG).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Any;

/// The ranks whose messages a receive takes. Made from a rank or from [`Any`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// All of the communicator.
    Any,
    /// One of the communicator.
    Rank(usize),
}

/// The tags of the messages that a receive takes. Made from a tag or from [`Any`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tag {
    /// All.
    Any,
    /// This one, which is not negative.
    Is(i32),
}

impl From<Any> for Source {
    fn from(_: Any) -> Self {
        Self::Any
    }
}

impl From<usize> for Source {
    fn from(rank: usize) -> Self {
        Self::Rank(rank)
    }
}

impl From<Any> for Tag {
    fn from(_: Any) -> Self {
        Self::Any
    }
}

impl From<i32> for Tag {
    fn from(tag: i32) -> Self {
        Self::Is(tag)
    }
}

/// Returns `rank` as MPI counts, if it is one of `size`.
pub(super) fn rank(rank: usize, size: usize) -> Result<i32> {
    match i32::try_from(rank) {
        Ok(known) if rank < size => Ok(known),
        beyond => Err(Error::Rank { rank: beyond.unwrap_or(i32::MAX), size: size as i32 }),
    }
}

/// As [`rank`], of a window.
pub(super) fn window_rank(of_window: usize, size: usize) -> Result<i32> {
    rank(of_window, size).map_err(|error| match error {
        Error::Rank { rank, size } => Error::WinRank { rank, size },
        error => error,
    })
}

/// Returns `tag`, if a message can have it.
pub(super) fn tag(tag: i32) -> Result<i32> {
    if tag < 0 { Err(Error::Tag(tag)) } else { Ok(tag) }
}

impl Source {
    pub(super) fn number(self, size: usize) -> Result<i32> {
        match self {
            Self::Any => Ok(abi::MPI_ANY_SOURCE),
            Self::Rank(source) => rank(source, size),
        }
    }
}

impl Tag {
    pub(super) fn number(self) -> Result<i32> {
        match self {
            Self::Any => Ok(abi::MPI_ANY_TAG),
            Self::Is(given) => tag(given),
        }
    }
}

/// Sender, tag and size of a message (MPI_Status).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Status {
    /// The sender's rank in the communicator.
    pub source: usize,
    /// The message's tag.
    pub tag: i32,
    /// Its size in bytes.
    pub bytes: usize,
}

impl Status {
    /// Returns the number of elements in the message; `None` if it is not made of whole ones (MPI_Get_count).
    #[must_use]
    pub fn count<E: Element>(&self) -> Option<usize> {
        match size_of::<E>() {
            0 => (self.bytes == 0).then_some(0),
            size => self.bytes.is_multiple_of(size).then_some(self.bytes / size),
        }
    }
}

impl From<crate::p2p::MessageStatus> for Status {
    fn from(status: crate::p2p::MessageStatus) -> Self {
        Self { source: status.source as usize, tag: status.tag, bytes: status.bytes as usize }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_beyond_the_communicator_and_negative_tags_are_refused() {
        assert_eq!(Source::from(3).number(4), Ok(3));
        assert_eq!(Source::from(4).number(4), Err(Error::Rank { rank: 4, size: 4 }));
        assert_eq!(Source::from(usize::MAX).number(4), Err(Error::Rank { rank: i32::MAX, size: 4 }));
        assert_eq!(Source::from(Any).number(4), Ok(abi::MPI_ANY_SOURCE));
        assert_eq!(Tag::from(abi::MPI_ANY_TAG).number(), Err(Error::Tag(abi::MPI_ANY_TAG)));
    }

    #[test]
    fn a_status_counts_whole_elements_only() {
        let status = Status { source: 0, tag: 0, bytes: 12 };
        assert_eq!(status.count::<u32>(), Some(3));
        assert_eq!(status.count::<u64>(), None);
        assert_eq!(status.count::<[u8; 0]>(), None);
    }
}
