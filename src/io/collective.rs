//! Accesses of all members.

use super::access::{Access, Direction, Elements, Transfer};
use super::file::{File, Start};
use crate::engine::Engine;
use crate::error::Result;
use crate::events::{Event, FileMode};

impl File {
    /// Performs an access in which all members take part.
    pub fn transfer_all(
        &self,
        engine: &Engine,
        direction: Direction,
        start: Start,
        elements: &Elements,
    ) -> Transfer {
        let how = (direction, start, FileMode::Collective);
        self.observe(how, elements, || self.perform_all(engine, direction, start, elements))
    }

    fn perform_all(
        &self,
        engine: &Engine,
        direction: Direction,
        start: Start,
        elements: &Elements,
    ) -> Transfer {
        let prepared = self.prepare(direction, start, elements);
        let moved = match self.two_phase(engine, prepared.as_ref().ok(), elements, direction) {
            Ok(Some(moved)) => {
                self.count(direction, &moved);
                moved
            }
            Ok(None) => prepared
                .as_ref()
                .map_or_else(|_| Transfer::default(), |access| self.perform(access, elements)),
            Err(error) => Transfer::failed(error),
        };
        match prepared {
            Ok(access) => {
                self.settle(start, &access, &moved);
                moved
            }
            Err(error) => Transfer::failed(error),
        }
    }

    /// Performs an access in which all members take part at the shared file pointer, in the order of their ranks.
    pub fn transfer_ordered(&self, engine: &Engine, direction: Direction, elements: &Elements) -> Transfer {
        self.observe((direction, Start::Shared, FileMode::Collective), elements, || {
            self.access_event(Event::FilePointerBegin);
            let prepared = self.prepare_ordered(engine, direction, elements);
            self.access_event(Event::FilePointerEnd);
            match prepared {
                Ok(access) => self.perform(&access, elements),
                Err(error) => Transfer::failed(error),
            }
        })
    }

    fn prepare_ordered(&self, engine: &Engine, direction: Direction, elements: &Elements) -> Result<Access> {
        // A member that has no pointer must be given no turn.
        let own = self.shared().and_then(|_| self.check_access(direction, elements));
        let etypes = own.as_ref().map_or(0, |(_, etypes)| *etypes);
        let all = self.exchange(engine, [etypes])?;
        let sum = all.iter().try_fold(0_i64, |sum, [etypes]| sum.checked_add(*etypes));
        let taken = match self.comm.rank() {
            0 => sum.and_then(|sum| self.shared().ok()?.take(sum)).unwrap_or(-1),
            _ => 0,
        };
        let base = self.exchange(engine, [taken])?[0][0];
        let (access, _) = own?;
        if base < 0 {
            self.shared()?;
            return Err(self.pointer_too_far());
        }
        let before: i64 = all[..self.comm.rank() as usize].iter().map(|[etypes]| *etypes).sum();
        self.at_shared(access, base + before)
    }
}
