//! What connects a process with others than those of its world (MPI 5.0 §11.10.4): communicators, windows and files.

use super::Group;
use crate::engine::Engine;

/// The members of a communicator, window or file that reaches out of a process's world; none of one that does not.
#[derive(Debug)]
pub struct Link(Vec<u32>);

impl Link {
    /// Counts what has these groups, if it has members outside the world of this process, until [`Link::end`].
    #[must_use]
    pub fn new(engine: &Engine, local: &Group, remote: Option<&Group>) -> Self {
        let members = || local.iter().chain(remote.into_iter().flat_map(Group::iter));
        let (job, world) = (engine.job(), engine.job().world());
        let outside = |place: u32| place < world.first || place - world.first >= world.size;
        if job.places_in_use() == world.size || !members().any(outside) {
            return Self(Vec::new());
        }
        let members: Vec<u32> = members().collect();
        count(engine, members.iter().copied(), true);
        Self(members)
    }

    /// Counts it no more.
    pub fn end(&self, engine: &Engine) {
        if !self.0.is_empty() {
            count(engine, self.0.iter().copied(), false);
        }
    }
}

/// Counts something with these members, or counts it no more (roster rule 5), in this job and those of other members.
pub fn count(engine: &Engine, members: impl IntoIterator<Item = u32>, there: bool) {
    let entry = engine.job().roster().entry(engine.rank());
    if there {
        entry.link()
    } else {
        entry.unlink()
    }
    engine.count_outside(members, there);
}
