//! Communicators after the death of members, in a job that goes on without them (`mpiexec --survive`):
//! User Level Failure Mitigation.

use super::communicator::Communicator;
use super::threading::Threading;
use crate::coll::agreement;
use crate::error::{Error, Result};

impl<T: Threading> Communicator<T> {
    /// Ends all operations on the communicator, at all ranks: they fail with [`Error::Revoked`] (MPIX_Comm_revoke).
    ///
    /// # Errors
    /// [`Error::Segment`] if there is no memory for it.
    pub fn revoke(&self) -> Result<()> {
        self.member.perform(|engine| agreement::revoke(engine, &self.comm))
    }

    /// Returns whether a rank has revoked the communicator (MPIX_Comm_is_revoked).
    ///
    /// # Errors
    /// [`Error::Segment`] if there is no memory for the answer.
    pub fn is_revoked(&self) -> Result<bool> {
        self.member.perform(|engine| agreement::is_revoked(engine, &self.comm))
    }

    /// Returns the ranks that have died, in the order of their deaths (MPIX_Comm_get_failed).
    ///
    /// # Errors
    /// Why this rank is broken or has left.
    pub fn failed(&self) -> Result<Vec<usize>> {
        self.member.perform(|engine| {
            let dead = agreement::dead_members(engine, &self.comm, u32::MAX);
            let group = self.comm.group();
            Ok(dead.into_iter().filter_map(|world| group.rank_of(world)).map(|rank| rank as usize).collect())
        })
    }

    /// Acknowledges the first `count` of the ranks that [`failed`](Self::failed) gives, all of them if they are fewer:
    /// receives from any source and agreements no longer fail because of them. Returns how many are acknowledged now
    /// (MPIX_Comm_ack_failed).
    ///
    /// # Errors
    /// Why this rank is broken or has left.
    pub fn acknowledge_failed(&self, count: usize) -> Result<usize> {
        self.member.perform(|engine| Ok(agreement::acknowledge(engine, &self.comm, count)))
    }

    /// Makes a communicator of the ranks that live (MPIX_Comm_shrink); all of them call it, and get the same one. It
    /// works on a communicator that has been revoked. A rank that dies meanwhile may be a dead rank of the new one.
    ///
    /// # Errors
    /// [`Error::NoMem`], at all ranks, if no context is left.
    pub fn shrink(&self) -> Result<Self> {
        let shrunk = self.make_by(|engine| {
            let serial = agreement::begin(engine, &self.comm)?;
            agreement::run(engine, &self.comm, agreement::shrink(engine, &self.comm, serial)).map(Some)
        })?;
        shrunk.ok_or(Error::Intern("a communicator of those that live without its maker".into()))
    }

    /// Returns the bitwise and of the `flag`s of all ranks that live, and how all of them see the deaths:
    /// [`Error::ProcFailed`] if a rank has died and not all that live have acknowledged that (MPIX_Comm_agree). It
    /// works on a communicator that has been revoked.
    ///
    /// # Errors
    /// [`Error::NoMem`] and [`Error::Segment`] if there is no memory for the agreement: then there was none.
    pub fn agree(&self, flag: u32) -> Result<(u32, Result<()>)> {
        self.member.perform(|engine| {
            let serial = agreement::begin(engine, &self.comm)?;
            agreement::run(engine, &self.comm, agreement::agree(engine, &self.comm, serial, flag))
        })
    }
}
