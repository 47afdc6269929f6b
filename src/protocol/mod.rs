//! What the records between two ranks mean: one file for each protocol.
//!
//! | file | protocol |
//! |---|---|
//! | `record` | the kinds of record, and what each carries |
//! | `eager` | a small message: one record with its payload |
//! | `eager_fragments` | a message of medium size: several records, sent before a receive is known |
//! | `rendezvous` | a large message: ready-to-send, clear-to-send, data by a copy engine, finish |
//! | `loopback` | a rank's messages to itself |
//! | `deliver` | a message meets its receive |
//! | `runs` | the same for what waits in one ring, one small message after the other |
//! | `polled_receive` | a receive that polls the ring for its message before it is posted |

mod deliver;
pub(crate) mod eager;
mod eager_fragments;
mod loopback;
mod polled_receive;
mod record;
pub mod rendezvous;
mod runs;

pub(crate) use deliver::corrupt;
pub(crate) use eager_fragments::Train;
pub(crate) use record::{Control, Kind};

use crate::abi;
use crate::matching::Pattern;

/// The pattern of MPI's source and tag arguments.
#[inline(always)]
pub(crate) fn pattern(source: i32, tag: i32) -> Pattern {
    Pattern {
        source: (source != abi::MPI_ANY_SOURCE).then_some(source as u32),
        tag: (tag != abi::MPI_ANY_TAG).then_some(tag),
    }
}
