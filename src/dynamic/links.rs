//! Which communicators connect a process with others than those of its world (MPI 5.0 §11.10.4).

use crate::comm::Group;
use crate::engine::Engine;

/// Whether a communicator with these groups has members outside the world of this process.
#[must_use]
pub fn reaches_out(engine: &Engine, local: &Group, remote: Option<&Group>) -> bool {
    let (job, world) = (engine.job(), engine.job().world());
    if job.places_in_use() == world.size {
        return false;
    }
    let outside = |place: u32| place < world.first || place - world.first >= world.size;
    local.iter().chain(remote.into_iter().flat_map(Group::iter)).any(outside)
}

/// Counts such a communicator, or counts it no more (roster rule 5), in this job and those of other members.
pub fn count(engine: &Engine, members: impl IntoIterator<Item = u32>, there: bool) {
    let entry = engine.job().roster().entry(engine.rank());
    if there {
        entry.link()
    } else {
        entry.unlink()
    }
    engine.count_outside(members, there);
}
