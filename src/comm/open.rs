//! A communicator becomes usable for messages.

use super::{Comm, Group};
use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::events::CommEvents;
use crate::shm::contexts;
use std::sync::Arc;

impl Engine {
    /// Opens a communicator's two contexts, so that it can be used. [`Self::close_communicator`] is its lease's.
    ///
    /// # Errors
    ///
    /// [`Error::Intern`] when its context id is out of range.
    pub fn open(&self, comm: Comm) -> Result<Comm> {
        let id = comm.context;
        let out_of_range = || Error::Intern(format!("context id {id} is out of range"));
        let user = self.context(id).ok_or_else(out_of_range)?;
        let own = self.context(id + 1).ok_or_else(out_of_range)?;
        // SAFETY: just made or found; open from here on, so they stay until `close_communicator`.
        let (user_ref, own_ref) = unsafe { (user.as_ref(), own.as_ref()) };
        user_ref.reopen();
        own_ref.reopen();
        user_ref.observe(comm.events.clone());
        user_ref.set_errhandler(comm.errhandler.clone());
        self.mark(user_ref);
        if let Some(session) = comm.group().session() {
            user_ref.set_session_buffers(&session.buffers);
        }
        Ok(comm.with_contexts(user, own))
    }

    /// Opens a communicator for messages of the library's own among processes that may have none in common, before they
    /// make one. It lends the contexts of MPI_COMM_SELF, which all processes have, and on the collective one of which
    /// nobody sends to others: a caller that does so sees to tags of its own.
    ///
    /// # Errors
    ///
    /// As for [`Self::open`].
    pub fn open_for_introductions(&self, rank: u32, group: Group, events: Arc<CommEvents>) -> Result<Comm> {
        let comm = Comm::intra(2 * contexts::SELF, rank, group, events);
        let context =
            |id| self.context(id).ok_or_else(|| Error::Intern("no context of MPI_COMM_SELF".into()));
        let (user, own) = (context(comm.context)?, context(comm.context + 1)?);
        Ok(comm.with_contexts(user, own))
    }
}
