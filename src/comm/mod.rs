//! Groups, communicators, context ids, attributes, info, error handlers.
//!
//! What lives here turns *rank 3 of this communicator* into *rank 17 of the job*; below this module no code knows more
//! of a communicator than its context id. The hot words of [`Comm`] come first in it; everything that a user hangs on a
//! communicator (name, attributes, error handler) lies behind them.
//!
//! | file | what it defines |
//! |---|---|
//! | `communicator`, `group` | [`Comm`], and the ordered set of its processes |
//! | `open` | a communicator becomes usable for messages |
//! | [`attributes`] | what users cache on communicators, datatypes and windows |
//! | [`topology`] | neighbours |
//! | `hints` | the hints of a communicator |
//! | `links` | which processes of other worlds this one is connected with |
//! | `events` | events of a communicator's life |

pub mod attributes;
mod communicator;
mod events;
mod group;
mod hints;
pub mod links;
mod open;
pub mod topology;

pub use attributes::{Attributes, Keyvals, Predefined};
pub use communicator::Comm;
pub use group::{Group, OfSession, Similarity};
pub use links::Link;
pub use topology::Topology;

pub use crate::errhandler::{Errhandler, ErrhandlerSlot};

use crate::sync::{Mutex, MutexGuard};

/// Locks `mutex`; a panic of an earlier holder does not matter,
/// because no invariant spans two statements under these locks.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}
