//! Events of spawned processes (PERUSE 2.0 appendix E, section 12.5).

use crate::comm::Comm;
use crate::comms;
use crate::engine::Engine;
use crate::events::{CollRoot, Event, EventPayload, EventRecord, Spec};
use crate::shm::RankState;
use crate::types::MPI_Comm;

/// One spawn, from its SPAWN_BEGIN to its SPAWN_END.
pub struct SpawnSpan<'a> {
    comm: &'a Comm,
    root: u32,
    /// 0 if nobody listened when it began: then nothing is emitted.
    id: isize,
}

impl<'a> SpawnSpan<'a> {
    /// Tells that processes are to be spawned; `wanted` is how many, where that is known.
    pub fn begin(comm: &'a Comm, root: u32, wanted: Option<u32>) -> Self {
        let observed = comm.events.gate.is_any_open();
        let id = if observed { comm.events.registry().fresh_id() } else { 0 };
        let span = Self { comm, root, id };
        span.emit(Event::SpawnBegin, span.payload(wanted.unwrap_or(u32::MAX), 0));
        span
    }

    /// Tells which processes there are, and how many; none if the spawn has failed.
    pub fn end(self, engine: &Engine, made: Option<&MPI_Comm>) {
        if self.id == 0 {
            return;
        }
        let made = made.and_then(|handle| comms::get(*handle).ok());
        let ranks: Vec<u32> = made.as_ref().map(|made| made.peers().iter().collect()).unwrap_or_default();
        if self.comm.rank() == self.root {
            for rank in &ranks {
                let entry = engine.job().roster().entry(*rank);
                // The first of them has met us; the others may be on their way.
                // If this job ends meanwhile, so does the wait.
                let known = || Ok(entry.pid() != 0 || entry.state() == RankState::Dead);
                let pid = engine.progress().wait_for(known).map_or(0, |()| entry.pid());
                self.emit(Event::ProcessSpawned, EventPayload::Process { rank: *rank, pid });
            }
        }
        let handle = made.map_or(0, |made| made.handle() as u64);
        self.emit(Event::SpawnEnd, self.payload(ranks.len() as u32, handle));
    }

    fn payload(&self, processes: u32, intercomm: u64) -> EventPayload<'static> {
        EventPayload::Spawn { root: CollRoot(u16::try_from(self.root).ok()), processes, intercomm }
    }

    fn emit(&self, event: Event, payload: EventPayload<'_>) {
        if self.id != 0 && self.comm.events.gate.is_open(event) {
            let spec = Spec { comm: self.comm.handle(), ..Spec::NOTHING };
            let (id, context) = (self.id, self.comm.context);
            self.comm.events.emit(&EventRecord { event, id, context, spec: &spec, payload });
        }
    }
}
