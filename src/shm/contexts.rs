//! Context ids: the numbers that keep the traffic of communicators apart, allocated for the whole job.
//!
//! A table has a reference count for each id. One member of a new communicator allocates an id with as many references
//! as the communicator has members, and sends them the id; each member releases its reference when it frees the
//! communicator. At zero the id is free. Id `k` stands for the contexts `2k` (point-to-point) and `2k + 1`
//! (collective).

use crate::limits::{CONTEXTS, PAGE};
use crate::shm::{Memory, SharedCount};
use crate::sync::Ordering;
use crate::{Error, Result};

/// Id of MPI_COMM_WORLD.
pub const WORLD: u32 = 0;
/// Id of every rank's MPI_COMM_SELF: no other rank sends there, so all have the same.
pub const SELF: u32 = 1;
/// The first id that is allocated.
const FIRST: u32 = 2;
/// Entries of the table on one page.
const PER_PAGE: u32 = (PAGE / 4) as u32;

/// The context ids of a job.
#[derive(Debug, Clone, Copy)]
pub struct ContextIds<'a> {
    pub(super) memory: &'a Memory,
}

impl ContextIds<'_> {
    /// Allocates an id with `refs` references (at least one), searching on from where the last search ended.
    ///
    /// # Errors
    /// [`Error::NoMem`] if all ids are in use; [`Error::Segment`] if there is no memory for the table's page;
    /// [`Error::Intern`] for zero references.
    pub fn allocate(self, refs: u32) -> Result<u32> {
        self.allocate_with(refs, |_| Ok(true))
    }

    /// The same, of the ids that `also` takes, too: an id that two jobs have in common.
    ///
    /// # Errors
    /// As for [`Self::allocate`]; those of `also`.
    pub fn allocate_with(self, refs: u32, mut also: impl FnMut(u32) -> Result<bool>) -> Result<u32> {
        if refs == 0 {
            return Err(Error::Intern("a context id without references".into()));
        }
        let hint = &self.memory.header().next_context;
        // Relaxed: only a place to start from; the count below decides.
        let start = hint.load(Ordering::Relaxed).clamp(FIRST, CONTEXTS - 1);
        let mut reserved = None;
        for id in (start..CONTEXTS).chain(FIRST..start) {
            if reserved != Some(id / PER_PAGE) {
                self.reserve_page(id / PER_PAGE)?;
                reserved = Some(id / PER_PAGE);
            }
            if !self.take_reserved(id, refs)? {
                continue;
            }
            match also(id) {
                Ok(true) => {
                    hint.store(id + 1, Ordering::Relaxed);
                    return Ok(id);
                }
                Ok(false) => self.give_up(id),
                Err(error) => {
                    self.give_up(id);
                    return Err(error);
                }
            }
        }
        Err(Error::NoMem(format!(
            "all {CONTEXTS} context ids are in use; free communicators that are not needed"
        )))
    }

    /// Takes `id` with `refs` references, if it is free. Returns whether it was.
    ///
    /// # Errors
    /// [`Error::Segment`] if there is no memory for the table's page.
    pub fn take(self, id: u32, refs: u32) -> Result<bool> {
        self.reserve_page(id / PER_PAGE)?;
        self.take_reserved(id, refs)
    }

    fn take_reserved(self, id: u32, refs: u32) -> Result<bool> {
        let taken = self.count(id).take(refs);
        if taken {
            self.memory.failures().renew(id)?;
        }
        Ok(taken)
    }

    /// Frees an id that the caller has just taken, and nobody else has heard of.
    pub fn give_up(self, id: u32) {
        self.count(id).free();
    }

    /// Releases one reference to `id`. Returns whether that was the last, so that the id is free.
    ///
    /// # Errors
    /// [`Error::Intern`] if `id` was never allocated or has no references left.
    pub fn release(self, id: u32) -> Result<bool> {
        if !(FIRST..CONTEXTS).contains(&id) {
            return Err(Error::Intern(format!("context id {id} was not allocated")));
        }
        // Idempotent, and it makes a wrong id an error where touching its page might be a SIGBUS.
        self.reserve_page(id / PER_PAGE)?;
        let released = || Error::Intern(format!("context id {id} released once too often"));
        self.count(id).leave().ok_or_else(released)
    }

    /// Adds a reference to `id` that nobody releases.
    pub(super) fn keep(self, id: u32) {
        if (FIRST..CONTEXTS).contains(&id) {
            self.count(id).join();
        }
    }

    fn reserve_page(self, page: u32) -> Result<()> {
        let at = self.memory.layout().contexts() + u64::from(page) * PAGE as u64;
        self.memory.segment().reserve(at, PAGE as u64)
    }

    /// The count of `id`, which is below `CONTEXTS` and on a reserved page.
    fn count(&self, id: u32) -> &SharedCount {
        debug_assert!(id < CONTEXTS);
        self.memory.segment().words(self.memory.layout().contexts() + u64::from(id) * 4)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_differ_until_they_are_free_again() {
        let memory = Memory::create(2, 0).unwrap();
        let contexts = memory.contexts();
        let a = contexts.allocate(2).unwrap();
        let b = contexts.allocate(1).unwrap();
        assert!(a >= FIRST && b >= FIRST && a != b);
        assert!(!contexts.release(a).unwrap());
        assert!(contexts.release(a).unwrap());
        assert!(contexts.release(a).is_err());
        assert!(contexts.release(b).unwrap());
    }

    #[test]
    fn every_id_can_be_in_use_and_the_next_is_refused() {
        let memory = Memory::create(1, 0).unwrap();
        let contexts = memory.contexts();
        let mut seen = vec![false; CONTEXTS as usize];
        for _ in FIRST..CONTEXTS {
            let id = contexts.allocate(1).unwrap() as usize;
            assert!(!core::mem::replace(&mut seen[id], true));
        }
        assert!(matches!(contexts.allocate(1), Err(Error::NoMem(_))));
        assert!(contexts.release(40_000).unwrap());
        assert_eq!(contexts.allocate(1).unwrap(), 40_000);
    }

    #[test]
    fn world_and_self_are_never_given_back() {
        let memory = Memory::create(1, 0).unwrap();
        assert!(memory.contexts().release(WORLD).is_err());
        assert!(memory.contexts().release(SELF).is_err());
        assert!(memory.contexts().release(CONTEXTS).is_err());
        assert!(memory.contexts().allocate(0).is_err());
    }

    #[test]
    fn threads_never_get_the_same_id() {
        let memory = Memory::create(4, 0).unwrap();
        let mut ids: Vec<u32> = std::thread::scope(|scope| {
            let takers: Vec<_> = (0..4)
                .map(|_| {
                    scope.spawn(|| {
                        (0..500).map(|_| memory.contexts().allocate(1).unwrap()).collect::<Vec<_>>()
                    })
                })
                .collect();
            takers.into_iter().flat_map(|taker| taker.join().unwrap()).collect()
        });
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), 2000);
    }
}
