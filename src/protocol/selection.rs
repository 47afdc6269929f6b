//! Which protocol a send takes.
//!
//! | the message | protocol |
//! |---|---|
//! | to this rank itself | loopback |
//! | at most `eager_limit` bytes | eager |
//! | standard or ready mode, at most `fragments_limit` bytes, not to be copied from the shared heap | eager fragments |
//! | any other | rendezvous |

use crate::engine::{Body, Engine, Mode};

/// The protocols of a send.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Protocol {
    /// A message to this rank itself.
    Loopback,
    /// One record.
    Eager,
    /// Several records, without an answer; rendezvous if the ring has no room for all of them.
    EagerFragments,
    /// Ready-to-send, and an answer.
    Rendezvous,
}

/// The protocol of a send whose body is filled.
#[inline]
pub(super) fn select(engine: &Engine, body: &Body, mode: Mode) -> Protocol {
    let fragments =
        matches!(mode, Mode::Standard | Mode::Ready) && body.bytes <= engine.config.fragments_limit();
    match body.bytes {
        _ if body.world == engine.rank => Protocol::Loopback,
        bytes if engine.is_eager(bytes) => Protocol::Eager,
        _ if fragments && engine.place_of_send(body) == 0 => Protocol::EagerFragments,
        _ => Protocol::Rendezvous,
    }
}

impl Engine {
    /// Whether a message of `bytes` bytes to another rank is sent in one record.
    #[inline(always)]
    pub(crate) fn is_eager(&self, bytes: usize) -> bool {
        bytes <= self.config.eager_limit()
    }
}
