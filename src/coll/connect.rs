//! Two groups that their leaders connect: they tell each other who their members are,
//! by names that are the same in all jobs.

use super::create::{Agreed, Contexts, NONE, goes_first, received, share};
use super::{Transport, allgather, bcast};
use crate::comm::Group;
use crate::error::{Error, Result};

/// Bytes of an encoded name.
const NAME: usize = 12;

/// The names of a group's members, one behind the other: the same bytes in all jobs.
#[must_use]
pub fn names(contexts: &impl Contexts, group: &Group) -> Vec<u8> {
    let name = |place| {
        let (job, place) = contexts.name(place);
        [&job.to_le_bytes()[..], &place.to_le_bytes()].concat()
    };
    group.iter().flat_map(name).collect()
}

/// The group of processes with these names; `None` if this process cannot reach one of them.
fn named(contexts: &impl Contexts, names: &[u8]) -> Result<Option<Group>> {
    let place = |bytes: &[u8; NAME]| {
        let job = u64::from_le_bytes(core::array::from_fn(|i| bytes[i]));
        contexts.place((job, u32::from_le_bytes(core::array::from_fn(|i| bytes[8 + i]))))
    };
    let places = names.as_chunks().0.iter().map(place).collect::<Result<Option<Vec<u32>>>>()?;
    Ok(places.map(Group::from_world_ranks))
}

/// What members say that do not know why their leader could not connect the groups.
pub const NOT_CONNECTED: &str = "the leaders could not connect the groups, a job has no room for the processes of another, or no context id is left";

/// MPI_Intercomm_create: `local` is the group of `transport`, whose rank `leader` alone has `peer`, a transport and
/// there the rank of the other leader. A leader without one sends its group that the call has failed.
///
/// # Errors
/// As for [`context`](super::create::context); [`Error::Comm`] if the groups have a member in common.
pub async fn connect<T: Transport, U: Transport>(
    transport: &T,
    contexts: &impl Contexts,
    local: &Group,
    leader: usize,
    peer: Option<(&U, usize)>,
) -> Result<Agreed> {
    let near = names(contexts, local);
    let mut far = Vec::new();
    if let Some((peer, other)) = peer {
        far = introduce(peer, other, &near).await?;
    }
    let [size] = share(transport, [(far.len() / NAME) as u32], leader).await?;
    far.resize(size as usize * NAME, 0);
    bcast(transport, &mut far, leader).await?;
    if is_of_several(&near) || is_of_several(&far) {
        bring_together(transport, contexts, (&near, &far), leader, peer).await?;
    }
    let remote = named(contexts, &far).unwrap_or_default();
    let apart = remote.as_ref().is_none_or(|remote| !remote.iter().any(|place| local.contains(place)));
    let mut good = remote.is_some() && apart;
    if jobs(&near).chain(jobs(&far)).any(|job| Some(job) != jobs(&near).next()) {
        // A member may know less of other jobs than its leader.
        let mut all = vec![0; transport.size()];
        all[transport.rank()] = u8::from(good);
        allgather(transport, &mut all).await?;
        good = all.iter().all(|good| *good == 1);
    }
    let (mut context, mut why) = (NONE, NONE);
    if let Some((peer, other)) = peer {
        context = bargain(peer, other, (local, remote.as_ref().filter(|_| good)), contexts).await?;
        why = number_of(peer.failure());
    }
    let [context, why] = share(transport, [context, why], leader).await?;
    if !apart {
        return Err(Error::Comm("the two groups of an intercommunicator have a member in common"));
    }
    let rank = transport.rank() as u32;
    match remote {
        Some(remote) if received(context).is_ok() => {
            let remote = remote.of_session(local.session());
            Ok(Agreed { context, rank, group: local.clone(), remote: Some(remote) })
        }
        _ => Err(of_number(contexts, why)),
    }
}

/// What a leader tells its group where the communicator in which it met the other leader has been revoked.
const REVOKED: u32 = NONE - 1;

/// What has kept a leader from the other one: the place of a process that has died, [`REVOKED`], or, if it is something
/// else or nothing, [`NONE`].
fn number_of(failure: Option<Error>) -> u32 {
    match failure {
        Some(Error::ProcFailed { rank, .. }) => rank,
        Some(Error::Revoked) => REVOKED,
        _ => NONE,
    }
}

fn of_number(contexts: &impl Contexts, number: u32) -> Error {
    match number {
        NONE => Error::Comm(NOT_CONNECTED),
        REVOKED => Error::Revoked,
        place => contexts.failed(place),
    }
}

fn jobs(names: &[u8]) -> impl Iterator<Item = &[u8]> {
    names.chunks_exact(NAME).map(|name| &name[..8])
}

/// Whether a group has processes of more than one job.
fn is_of_several(group: &[u8]) -> bool {
    jobs(group).any(|job| Some(job) != jobs(group).next())
}

/// Has each job of two groups give the processes of all others places. The leaders' jobs have done so for each other;
/// of a group of several, others may not have met those of the other group. Nobody returns before all have: a process
/// that meets a job takes a place there.
async fn bring_together<T: Transport, U: Transport>(
    transport: &T,
    contexts: &impl Contexts,
    (near, far): (&[u8], &[u8]),
    leader: usize,
    peer: Option<(&U, usize)>,
) -> Result<()> {
    let own = jobs(near).nth(transport.rank());
    if jobs(near).position(|job| Some(job) == own) == Some(transport.rank()) {
        let mut others: Vec<&[u8]> = jobs(near).chain(jobs(far)).filter(|job| Some(*job) != own).collect();
        others.sort_unstable();
        others.dedup();
        for job in others {
            // A rank that finds no place for a process afterwards says so.
            let _ = contexts.host(u64::from_le_bytes(core::array::from_fn(|i| job[i])));
        }
    }
    allgather(transport, &mut vec![0; transport.size()]).await?;
    if let Some((peer, other)) = peer {
        peer.exchange(other, &[0], other, &mut [0]).await?;
    }
    share(transport, [0], leader).await.map(drop)
}

/// The leaders exchange the names of their groups' members.
async fn introduce<U: Transport>(peer: &U, other: usize, near: &[u8]) -> Result<Vec<u8>> {
    let mut size = [0; 4];
    peer.exchange(other, &((near.len() / NAME) as u32).to_le_bytes(), other, &mut size).await?;
    let mut far = vec![0; u32::from_le_bytes(size) as usize * NAME];
    peer.exchange(other, near, other, &mut far).await?;
    Ok(far)
}

/// One leader takes the context and sends it to the other, if the members of both know all others.
async fn bargain<U: Transport>(
    peer: &U,
    other: usize,
    (local, remote): (&Group, Option<&Group>),
    contexts: &impl Contexts,
) -> Result<u32> {
    let mut theirs = [0];
    peer.exchange(other, &[u8::from(remote.is_some())], other, &mut theirs).await?;
    let Some(remote) = remote.filter(|_| theirs == [1]) else { return Ok(NONE) };
    if goes_first(contexts, local, remote) {
        let context = contexts.allocate(&[local, remote]).unwrap_or(NONE);
        peer.send(other, &context.to_le_bytes()).await?;
        return Ok(context);
    }
    let mut context = [0; 4];
    peer.recv(other, &mut context).await?;
    Ok(u32::from_le_bytes(context))
}

#[cfg(test)]
mod tests {
    use super::super::create::{CountedContexts, Name, halves, members};
    use super::super::run;
    use super::*;
    use crate::sync::{AtomicU32, Mutex, Ordering};

    #[test]
    fn two_groups_are_connected_by_their_leaders() {
        for size in 2..=7_usize {
            let (contexts, got) = (CountedContexts::default(), Mutex::new(Vec::new()));
            halves(size, |sides, (local, remote), transport| {
                // The last of each group leads.
                let leader = sides.local.size() - 1;
                let other = sides.remote.ranks[sides.remote.ranks.len() - 1];
                let peer = (sides.local.rank() == leader).then_some((transport, other));
                let agreed = run(connect(&sides.local, &contexts, local, leader, peer)).unwrap();
                assert_eq!(members(&agreed.group), members(local));
                assert_eq!(members(&agreed.remote.unwrap()), members(remote));
                got.lock().unwrap().push(agreed.context);
            });
            contexts.check(&got);
        }
    }

    /// Two ranks in a row are a job each.
    fn job(place: u32) -> usize {
        place as usize / 2
    }

    /// Contexts as a rank of a job sees them: which jobs each one has given places, a bit for each.
    struct OfJobs<'a>(&'a CountedContexts, &'a [AtomicU32], usize);
    impl Contexts for OfJobs<'_> {
        fn allocate(&self, members: &[&Group]) -> Result<u32> {
            self.0.allocate(members)
        }
        fn give_back(&self, context: u32) {
            self.0.give_back(context);
        }
        fn name(&self, place: u32) -> Name {
            (job(place) as u64, place)
        }
        fn place(&self, (other, place): Name) -> Result<Option<u32>> {
            let hosts = |job: usize, other: usize| {
                job == other || self.1[job].load(Ordering::SeqCst) & 1 << other != 0
            };
            Ok((hosts(self.2, other as usize) && hosts(other as usize, self.2)).then_some(place))
        }
        fn host(&self, other: u64) -> Result<()> {
            self.1[self.2].fetch_or(1 << other, Ordering::SeqCst);
            Ok(())
        }
    }

    #[test]
    fn jobs_that_have_not_met_do_so_before_anybody_looks_for_their_processes() {
        for size in 3..=8_usize {
            let (counted, got) = (CountedContexts::default(), Mutex::new(Vec::new()));
            let hosted: [AtomicU32; 4] = Default::default();
            halves(size, |sides, (local, remote), transport| {
                let contexts = OfJobs(&counted, &hosted, job(transport.rank() as u32));
                let peer = (sides.local.rank() == 0).then_some((transport, sides.remote.ranks[0]));
                let agreed = run(connect(&sides.local, &contexts, local, 0, peer)).unwrap();
                assert_eq!(members(&agreed.remote.unwrap()), members(remote));
                got.lock().unwrap().push(agreed.context);
            });
            counted.check(&got);
        }
    }
}
