//! Streams: files without offsets, as pipes and terminals are.
//! The shared file pointer gives a part of the stream to each access.
//!
//! - **Turn rule 1.** Who has been given a part accesses it when all parts before it are over, and then ends its own
//!   turn, whatever became of the access. A part that lies beyond the largest offset is never accessed, and neither is
//!   any behind it.

use super::access::Access;
use super::file::File;
use super::view::View;
use crate::comm::Group;
use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::shm::RosterEntry;
use crate::sync::Turns;
use core::ptr::NonNull;

/// A part of a stream, in etypes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Turn {
    at: i64,
    end: i64,
}

/// A turn that has come, and ends when this is dropped.
pub(super) struct TurnGuard<'a> {
    turns: &'a Turns,
    end: i64,
}

impl Drop for TurnGuard<'_> {
    fn drop(&mut self) {
        self.turns.end(self.end);
    }
}

/// The members of a file, for a thread that may wait for any of them and is in no call of the program.
#[derive(Debug)]
pub(super) struct Members(Vec<(u32, NonNull<RosterEntry>)>);

// SAFETY: what they point to are atomics in memory that is mapped in the whole process.
unsafe impl Send for Members {}
// SAFETY: what they point to are atomics in memory that is mapped in the whole process.
unsafe impl Sync for Members {}

impl Members {
    /// The members of `group`.
    pub fn of(engine: &Engine, group: &Group) -> Self {
        Self(group.iter().map(|rank| (rank, NonNull::from(engine.job().roster().entry(rank)))).collect())
    }

    /// Checks that all are alive.
    ///
    /// # Errors
    /// [`Error::ProcFailed`].
    pub fn check_alive(&self) -> Result<()> {
        for (rank, entry) in &self.0 {
            // SAFETY: entries of the job's roster, whose memory stays mapped as long as files of its ranks are open.
            let entry = unsafe { entry.as_ref() };
            if entry.death().is_some() {
                let how = entry.exit().map_or_else(|| "its process is gone".into(), |exit| exit.to_string());
                return Err(Error::ProcFailed { rank: *rank, how });
            }
        }
        Ok(())
    }
}

impl File {
    /// Whether it is a stream, at one member at least.
    pub(super) fn is_stream(&self) -> bool {
        self.stream.is_some()
    }

    /// Puts an access where the shared file pointer has stood.
    pub(super) fn at_shared(&self, access: Access, at: i64) -> Result<Access> {
        let etypes = access.view.etypes(access.bytes)?;
        let position = access.view.position(at)?;
        access.view.check(position, access.bytes)?;
        let turn = (self.is_stream() && etypes > 0).then_some(Turn { at, end: at + etypes });
        Ok(Access { at: position, turn, ..access })
    }

    /// Waits until all accesses before this one are over, if it is one of a stream (turn rule 1).
    pub(super) fn wait_for_turn(&self, access: &Access) -> Result<Option<TurnGuard<'_>>> {
        let (Some(members), Some(turn)) = (&self.stream, access.turn) else { return Ok(None) };
        let turns = self.shared()?.turns();
        turns.wait(turn.at, || members.check_alive())?;
        Ok(Some(TurnGuard { turns, end: turn.end }))
    }

    /// Checks that offsets have a meaning in the file. `sequential` is why they have none with MPI_MODE_SEQUENTIAL.
    pub(super) fn check_offsets(&self, sequential: &str) -> Result<()> {
        if self.mode.is_sequential() {
            return Err(self.impossible(sequential));
        }
        if self.is_stream() {
            return Err(self.impossible(
                "it has no offsets, as pipes and terminals have none; all that is possible are accesses at the shared file pointer",
            ));
        }
        Ok(())
    }

    /// Checks that the file can have a view.
    pub(super) fn check_view(&self, view: &View) -> Result<()> {
        if self.is_stream() && (view.parts.disp > 0 || view.has_gaps()) {
            return Err(self.impossible(
                "it has no offsets, as pipes and terminals have none; give a view without displacement and without gaps",
            ));
        }
        Ok(())
    }
}
