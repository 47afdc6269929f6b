//! Which protocol a send takes.
//!
//! | the message | protocol |
//! |---|---|
//! | to this rank itself | loopback |
//! | at most `eager_limit` bytes, and not of those that are copied from the shared heap | eager |
//! | standard or ready mode, at most `fragments_limit` bytes, not to be copied in one step | eager fragments |
//! | the same, of a pair whose copies through the ring take less time than in one step | eager fragments |
//! | one of many, less than 64 KiB, at most `fragments_limit` bytes | eager fragments |
//! | of an exchange, more than 128 KiB | rendezvous |
//! | any other | rendezvous |

use crate::engine::{Body, Engine, Mode};
use crate::variables::{ValueSource, VariableId};

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

/// Bytes from which a message of many to or from one rank takes less time if all are copied at once,
/// though the copies disturb each other.
const AT_ONCE_FROM: usize = 64 << 10;

/// Most bytes of a message that is sent unasked to one that has a message for the sender, unless a user has set the
/// limit of others: where its receive is not posted yet, because the other is busy with such a message, it is copied
/// once more.
const UNASKED_IN_EXCHANGE: usize = 128 << 10;

/// The protocol of a send whose body is filled.
#[inline]
pub(super) fn select(engine: &Engine, body: &Body, mode: Mode) -> Protocol {
    let config = &engine.config;
    let fragments = match mode {
        Mode::Exchange if config.source(VariableId::TrainLimit) == ValueSource::Default => {
            config.fragments_limit().min(UNASKED_IN_EXCHANGE)
        }
        _ => config.fragments_limit(),
    };
    let bytes = body.bytes.get();
    let is_eager = is_one_record(engine, body, mode);
    let is_one_of_many = matches!(mode, Mode::ToRoot | Mode::FromRoot)
        && bytes < AT_ONCE_FROM
        && engine.protocol_state().copy.is_left_to_us(engine);
    if !is_eager {
        engine.protocol_state().copy.note_contents(engine, body);
        body.is_unchecked.set(false);
        body.place.set(if is_one_of_many { 0 } else { engine.rendezvous().place_of_send(body) });
    }
    let in_one_step = || {
        if is_one_of_many {
            return false;
        }
        let [read, halves] = engine.protocol_state().copy.cma_thresholds(engine);
        let copied = bytes >= read.min(halves) && body.is_bytes();
        let unasked = || engine.protocol_state().copy.goes_unasked(engine, body);
        body.place.get() != 0 || copied && !unasked()
    };
    choose(body.world.get() == engine.rank, bytes, mode, (is_eager, fragments), in_one_step)
}

/// Whether the message of a send is one record. What a buffered send has to say does not depend on where it lies: it is
/// not yet where the program has given it.
pub(super) fn is_one_record(engine: &Engine, body: &Body, mode: Mode) -> bool {
    let (to, addr, bytes) = (body.world.get(), body.addr.get(), body.bytes.get());
    if mode == Mode::Buffered || !body.is_bytes() {
        engine.may_be_eager(bytes)
    } else {
        engine.is_eager(addr, bytes, || to)
    }
}

/// The table. `is_eager`: whether the message is one record; `fragments`: the limit of those that are sent in several;
/// `in_one_step`: whether it is to be copied from one rank's memory to the other's.
#[inline]
fn choose(
    to_self: bool,
    bytes: usize,
    mode: Mode,
    (is_eager, fragments): (bool, usize),
    in_one_step: impl FnOnce() -> bool,
) -> Protocol {
    let unasked =
        matches!(mode, Mode::Standard | Mode::Ready | Mode::ToRoot | Mode::FromRoot | Mode::Exchange);
    if to_self {
        Protocol::Loopback
    } else if is_eager {
        Protocol::Eager
    } else if unasked && bytes <= fragments && !in_one_step() {
        Protocol::EagerFragments
    } else {
        Protocol::Rendezvous
    }
}

impl Engine {
    /// Whether a message of `bytes` bytes is sent in one record, unless it is copied from the shared heap.
    #[inline(always)]
    pub(crate) fn may_be_eager(&self, bytes: usize) -> bool {
        bytes <= self.config.eager_limit()
    }

    /// Whether the message of the `bytes` bytes at `addr` to another rank of the job, `to`, is sent in one record.
    #[inline(always)]
    pub(crate) fn is_eager(&self, addr: *const u8, bytes: usize, to: impl FnOnce() -> u32) -> bool {
        bytes <= self.config.eager_from_anywhere() || self.is_eager_from(addr, bytes, to())
    }

    #[cold]
    #[inline(never)]
    fn is_eager_from(&self, addr: *const u8, bytes: usize, to: u32) -> bool {
        self.may_be_eager(bytes) && !self.rendezvous().copies_from_heap(to, addr, bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_message_takes_the_first_protocol_of_the_table_that_fits_it() {
        let choose =
            |bytes, mode, in_one_step| choose(false, bytes, mode, (bytes <= 10, 100), || in_one_step);
        for mode in [Mode::Standard, Mode::Synchronous, Mode::Ready, Mode::Buffered] {
            let unasked = matches!(mode, Mode::Standard | Mode::Ready);
            let medium = if unasked { Protocol::EagerFragments } else { Protocol::Rendezvous };
            for bytes in [0, 10] {
                assert_eq!(choose(bytes, mode, true), Protocol::Eager);
            }
            for bytes in [11, 100] {
                assert_eq!(choose(bytes, mode, false), medium);
                assert_eq!(choose(bytes, mode, true), Protocol::Rendezvous);
            }
            assert_eq!(choose(101, mode, false), Protocol::Rendezvous);
            assert_eq!(super::choose(true, 1 << 30, mode, (false, 100), || true), Protocol::Loopback);
        }
    }
}
