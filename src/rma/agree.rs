//! What the Rust API asks of a window besides MPI's functions, so that safe code cannot race.

use super::create::give_back;
use super::epoch::Hold;
use super::window::Window;
use crate::coll::{BlockingTransport, Purpose, allgather};
use crate::engine::Engine;
use crate::error::Result;
use crate::scratch::Scratch;

impl Window {
    /// Waits until all members have called this, and returns whether each of them gave the same word.
    ///
    /// # Errors
    /// Those of the messages.
    pub fn agree(&self, engine: &Engine, word: u64) -> Result<bool> {
        const WORD: usize = size_of::<u64>();
        let mut all = Scratch::of(self.size() as usize * WORD)?;
        let at = self.rank() as usize * WORD;
        all[at..at + WORD].copy_from_slice(&word.to_ne_bytes());
        let transport = BlockingTransport::new(engine, &self.comm, Purpose::Create);
        transport.run(allgather(&transport, &mut all))?;
        Ok(all.chunks_exact(WORD).all(|other| *other == word.to_ne_bytes()))
    }

    /// Takes a shared lock of the caller's own memory that belongs to no epoch:
    /// whoever locks it exclusively waits until it is let go.
    ///
    /// # Errors
    /// Those of waiting.
    pub fn hold_own(&self, engine: &Engine) -> Result<()> {
        self.acquire(engine, self.rank(), Hold::Shared, 0).map(drop)
    }

    /// Lets go of what [`hold_own`](Self::hold_own) has taken.
    pub fn let_go_of_own(&self, engine: &Engine) {
        self.release_lock(engine, self.rank(), Hold::Shared);
    }

    /// Checks that a fence may be called: no epoch of another kind is open.
    ///
    /// # Errors
    /// [`Error::RmaSync`](crate::error::Error::RmaSync) if one is.
    pub fn check_fence(&self) -> Result<()> {
        self.epochs.check_fence()
    }

    /// Gives the memory of a freed window back, and returns its context, which is still open.
    /// Nobody uses the window any more.
    #[must_use]
    pub fn give_back(self, engine: &Engine) -> u32 {
        let context = self.context();
        give_back(engine, self.extents);
        context
    }
}
