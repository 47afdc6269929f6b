//! What the members of a new communicator agree on: its group, and its context.
//!
//! One member takes the context id, with a reference for each member, and sends it to the others. If there is none, the
//! same message says so, and all fail alike. Where one call makes several communicators, or some callers get none, all
//! callers fail with those for whom no context is left: they would go different ways otherwise.

use super::connect::NOT_CONNECTED;
use super::intercomm::Sides;
use super::{Subset, Transport, allgather, bcast};
use crate::comm::Group;
use crate::error::{Error, Result};

/// Where contexts come from.
pub trait Contexts {
    /// A context (even) for a communicator of these groups, each member of which gives it back once.
    ///
    /// # Errors
    /// [`Error::NoMem`] if none is left.
    fn allocate(&self, members: &[&Group]) -> Result<u32>;

    /// Gives a context back that the caller got with the others and has made nothing of.
    fn give_back(&self, context: u32);

    /// The name of the process at `place`, which is the same in all jobs.
    fn name(&self, place: u32) -> Name {
        (0, place)
    }

    /// The place of the process of that name; `None` for one that this process cannot reach.
    ///
    /// # Errors
    /// Those of getting to know a job.
    fn place(&self, (_, place): Name) -> Result<Option<u32>> {
        Ok(Some(place))
    }

    /// Has the caller's own job give the processes of another one places.
    ///
    /// # Errors
    /// Those of asking the launchers.
    fn host(&self, _job: u64) -> Result<()> {
        Ok(())
    }

    /// The error that says that the process at `place` has died.
    fn failed(&self, _place: u32) -> Error {
        Error::Comm(NOT_CONNECTED)
    }
}

/// A process: the number of its job, and its place there.
pub type Name = (u64, u32);
/// A communicator that its members have agreed on, as one of them sees it.
#[derive(Clone, Debug)]
pub struct Agreed {
    /// Its context.
    pub context: u32,
    /// The caller's rank in `group`.
    pub rank: u32,
    /// The caller's own group.
    pub group: Group,
    /// The other group of an intercommunicator.
    pub remote: Option<Group>,
}

/// What is sent in place of a context when there is none.
pub(super) const NONE: u32 = u32::MAX;

/// The context of MPI_COMM_WORLD, which no other communicator has: what a leader takes for an answer that never came.
const WORLD: u32 = 0;

pub(super) fn received(context: u32) -> Result<u32> {
    if matches!(context, NONE | WORLD) {
        Err(Error::NoMem("no context id is left for a communicator".into()))
    } else {
        Ok(context)
    }
}

/// A context for `group`, the members of `transport`, taken by rank 0.
///
/// # Errors
/// Those of the transport; [`Error::NoMem`] if there is none.
pub async fn context<T: Transport>(transport: &T, contexts: &impl Contexts, group: &Group) -> Result<u32> {
    let taken = if transport.rank() == 0 { contexts.allocate(&[group]).unwrap_or(NONE) } else { NONE };
    let [context] = share(transport, [taken], 0).await?;
    received(context)
}

/// A context for two groups, the local one first, taken by rank 0 of the one that goes first.
///
/// # Errors
/// As for [`context`].
pub async fn inter_context<T: Transport>(
    sides: &Sides<T>,
    groups: (&Group, &Group),
    contexts: &impl Contexts,
) -> Result<u32> {
    let first = goes_first(contexts, groups.0, groups.1);
    let mut taken = NONE.to_le_bytes();
    if sides.local.rank() == 0 && first {
        taken = contexts.allocate(&[groups.0, groups.1]).unwrap_or(NONE).to_le_bytes();
        sides.remote.send(0, &taken).await?;
    } else if sides.local.rank() == 0 {
        sides.remote.recv(0, &mut taken).await?;
    }
    let [context] = share(&sides.local, [u32::from_le_bytes(taken)], 0).await?;
    received(context)
}

/// Of two disjoint groups, the one whose rank 0 has the lesser name goes first where an order is needed.
#[must_use]
pub fn goes_first(contexts: &impl Contexts, local: &Group, remote: &Group) -> bool {
    let first = |group: &Group| group.iter().next().map(|place| contexts.name(place));
    first(local) < first(remote)
}

/// What one process gives in a split: its color, if it takes part, and its key.
type Vote = (Option<i32>, i32);

/// MPI_Comm_split: the processes of the caller's color, by key and rank. `None` for no color.
///
/// # Errors
/// As for [`context`].
pub async fn split<T: Transport>(
    transport: &T,
    contexts: &impl Contexts,
    group: &Group,
    vote: Vote,
) -> Result<Option<Agreed>> {
    let votes = votes(transport, vote).await?;
    let Some(color) = vote.0 else {
        all_succeed(transport, true).await?;
        return Ok(None);
    };
    let ranks = chosen(&votes, color);
    let subset = member(transport, &ranks)?;
    let group = picked(group, &ranks);
    let context = context(&subset, contexts, &group).await;
    let all = all_succeed(transport, context.is_ok()).await;
    let context = kept(contexts, context, all)?;
    Ok(Some(Agreed { context, rank: subset.rank as u32, group, remote: None }))
}

/// Returns if all members of `transport` have got what they wanted: they call with whether they have.
async fn all_succeed<T: Transport>(transport: &T, success: bool) -> Result<()> {
    let mut all = vec![0; transport.size()];
    all[transport.rank()] = u8::from(success);
    allgather(transport, &mut all).await?;
    if all.iter().all(|success| *success == 1) { Ok(()) } else { received(NONE).map(drop) }
}

/// The context, if the others succeed too; else it is given back.
fn kept(contexts: &impl Contexts, context: Result<u32>, all: Result<()>) -> Result<u32> {
    let context = context?;
    all.map(|()| context).inspect_err(|_| contexts.give_back(context))
}

/// MPI_Comm_split of an intercommunicator: the caller's color on both sides. `None` if one side has none.
///
/// # Errors
/// As for [`context`].
pub async fn inter_split<T: Transport>(
    sides: &Sides<T>,
    contexts: &impl Contexts,
    (local, remote): (&Group, &Group),
    vote: Vote,
) -> Result<Option<Agreed>> {
    let ours = votes(&sides.local, vote).await?;
    let mut theirs = vec![0; VOTE * sides.remote.size()];
    if sides.local.rank() == 0 {
        let ours: Vec<u8> = ours.iter().flat_map(|&vote| encode(vote)).collect();
        sides.remote.exchange(0, &ours, 0, &mut theirs).await?;
    }
    bcast(&sides.local, &mut theirs, 0).await?;
    let theirs: Vec<Vote> = theirs.chunks_exact(VOTE).map(decode).collect();
    let found = vote.0.map(|color| (chosen(&ours, color), chosen(&theirs, color)));
    let Some((near, far)) = found.filter(|(_, far)| !far.is_empty()) else {
        all_succeed_on_both(sides, true).await?;
        return Ok(None);
    };
    let (group, other) = (picked(local, &near), picked(remote, &far));
    let own = member(&sides.local, &near)?;
    let rank = own.rank;
    let new = Sides { local: own, remote: Subset { transport: &sides.remote, ranks: &far, rank } };
    let context = inter_context(&new, (&group, &other), contexts).await;
    let all = all_succeed_on_both(sides, context.is_ok()).await;
    let context = kept(contexts, context, all)?;
    Ok(Some(Agreed { context, rank: rank as u32, group, remote: Some(other) }))
}

/// As [`all_succeed`], of both groups.
async fn all_succeed_on_both<T: Transport>(sides: &Sides<T>, success: bool) -> Result<()> {
    let ours = all_succeed(&sides.local, success).await.is_ok();
    let mut theirs = [0];
    if sides.local.rank() == 0 {
        sides.remote.exchange(0, &[u8::from(ours)], 0, &mut theirs).await?;
    }
    let [theirs] = share(&sides.local, [u32::from(theirs[0])], 0).await?;
    if ours && theirs == 1 { Ok(()) } else { received(NONE).map(drop) }
}

/// MPI_Comm_create_group: `group`, whose members alone call this,
/// each with the ranks that all of them have in `transport`.
///
/// # Errors
/// As for [`context`].
pub async fn among<T: Transport>(
    transport: &T,
    contexts: &impl Contexts,
    group: Group,
    ranks: &[usize],
) -> Result<Agreed> {
    let subset = member(transport, ranks)?;
    let context = context(&subset, contexts, &group).await?;
    Ok(Agreed { context, rank: subset.rank as u32, group, remote: None })
}

/// MPI_Intercomm_merge: both groups in one, that with `high` behind the other.
///
/// # Errors
/// As for [`context`].
pub async fn merge<T: Transport>(
    sides: &Sides<T>,
    contexts: &impl Contexts,
    (local, remote): (&Group, &Group),
    high: bool,
) -> Result<Agreed> {
    let mut theirs = [0];
    if sides.local.rank() == 0 {
        sides.remote.exchange(0, &[u8::from(high)], 0, &mut theirs).await?;
    }
    // Rank 0 decides for its group, so that all order the groups alike.
    let [high, theirs] = share(&sides.local, [u32::from(high), u32::from(theirs[0])], 0).await?;
    let first = goes_first(contexts, local, remote);
    let context = inter_context(sides, (local, remote), contexts).await?;
    let in_front = if high == theirs { first } else { high == 0 };
    let group = if in_front { local.union(remote) } else { remote.union(local) };
    let rank = sides.local.rank() as u32 + if in_front { 0 } else { remote.size() };
    Ok(Agreed { context, rank, group, remote: None })
}

/// Makes every rank's numbers those of `root`.
pub(super) async fn share<T: Transport, const N: usize>(
    transport: &T,
    numbers: [u32; N],
    root: usize,
) -> Result<[u32; N]> {
    let mut bytes: Vec<u8> = numbers.iter().flat_map(|n| n.to_le_bytes()).collect();
    bcast(transport, &mut bytes, root).await?;
    let mut shared = [0; N];
    shared.iter_mut().zip(words(&bytes)).for_each(|(to, from)| *to = from);
    Ok(shared)
}

fn words(bytes: &[u8]) -> impl Iterator<Item = u32> + '_ {
    bytes.as_chunks::<4>().0.iter().map(|&word| u32::from_le_bytes(word))
}

/// Bytes of an encoded vote.
const VOTE: usize = 12;

fn encode((color, key): Vote) -> [u8; VOTE] {
    let mut bytes = [0; VOTE];
    bytes[0] = u8::from(color.is_some());
    bytes[4..8].copy_from_slice(&color.unwrap_or(0).to_le_bytes());
    bytes[8..].copy_from_slice(&key.to_le_bytes());
    bytes
}

fn decode(bytes: &[u8]) -> Vote {
    let [takes_part, color, key] = core::array::from_fn(|i| words(bytes).nth(i).unwrap_or(0));
    ((takes_part != 0).then_some(color.cast_signed()), key.cast_signed())
}

async fn votes<T: Transport>(transport: &T, vote: Vote) -> Result<Vec<Vote>> {
    let mut all = vec![0; VOTE * transport.size()];
    all[VOTE * transport.rank()..][..VOTE].copy_from_slice(&encode(vote));
    allgather(transport, &mut all).await?;
    Ok(all.chunks_exact(VOTE).map(decode).collect())
}

/// The ranks of `color`, by key and, where keys are equal, by rank.
fn chosen(votes: &[Vote], color: i32) -> Vec<usize> {
    let mut ranks: Vec<usize> = (0..votes.len()).filter(|&r| votes[r].0 == Some(color)).collect();
    ranks.sort_by_key(|&r| votes[r].1);
    ranks
}

fn picked(group: &Group, ranks: &[usize]) -> Group {
    let members = ranks.iter().map(|&r| group.world_rank(r as u32)).collect();
    Group::from_world_ranks(members).of_session(group.session())
}

fn member<'a, T: Transport>(transport: &'a T, ranks: &'a [usize]) -> Result<Subset<'a, T>> {
    let own = transport.rank();
    let rank = ranks.iter().position(|&r| r == own);
    let rank = rank.ok_or(Error::Group("the caller is not a member of the group"))?;
    Ok(Subset { transport, ranks, rank })
}

#[cfg(test)]
pub(super) use tests::{CountedContexts, halves, members};

#[cfg(test)]
mod tests {
    use super::super::run;
    use super::super::transport::threads::{self, ThreadTransport};
    use super::*;
    use crate::sync::{AtomicU32, Mutex, Ordering};

    /// Hands out 100, 102, … and keeps how many members each was for.
    #[derive(Default)]
    pub struct CountedContexts(AtomicU32, Mutex<Vec<u32>>);

    impl Contexts for CountedContexts {
        fn allocate(&self, members: &[&Group]) -> Result<u32> {
            self.1.lock().unwrap().push(members.iter().map(|group| group.size()).sum());
            Ok(100 + 2 * self.0.fetch_add(1, Ordering::SeqCst))
        }
        fn give_back(&self, _: u32) {
            unreachable!("there is always one");
        }
    }
    impl CountedContexts {
        /// Each context was taken for as many members as got it.
        pub fn check(&self, got: &Mutex<Vec<u32>>) {
            let (got, taken) = (got.lock().unwrap(), self.1.lock().unwrap());
            assert_eq!(got.len() as u32, taken.iter().sum::<u32>());
            for (i, &members) in taken.iter().enumerate() {
                assert_eq!(got.iter().filter(|&&c| c == 100 + 2 * i as u32).count() as u32, members);
            }
        }
    }
    struct Exhausted;
    impl Contexts for Exhausted {
        fn allocate(&self, _: &[&Group]) -> Result<u32> {
            Err(Error::NoMem("none".into()))
        }
        fn give_back(&self, _: u32) {
            unreachable!("nobody got one");
        }
    }

    /// Has one context, and counts how often it is given back.
    #[derive(Default)]
    struct OnlyOne(AtomicU32, AtomicU32);
    impl Contexts for OnlyOne {
        fn allocate(&self, _: &[&Group]) -> Result<u32> {
            let taken = self.0.fetch_add(1, Ordering::SeqCst);
            if taken == 0 { Ok(100) } else { Err(Error::NoMem("none".into())) }
        }
        fn give_back(&self, context: u32) {
            assert_eq!(context, 100);
            self.1.fetch_add(1, Ordering::SeqCst);
        }
    }

    pub fn members(group: &Group) -> Vec<u32> {
        group.iter().collect()
    }

    #[test]
    fn a_split_orders_each_color_by_key_and_rank() {
        for size in 1..=7_usize {
            let (contexts, got) = (CountedContexts::default(), Mutex::new(Vec::new()));
            threads::ranks(size, |transport| {
                let me = transport.rank() as i32;
                // Three classes: thirds descending, but every fifth rank takes no part.
                let vote = |r: i32| ((r % 5 != 4).then_some(r % 3), -r / 2);
                let agreed =
                    run(split(transport, &contexts, &Group::run(10, size as u32), vote(me))).unwrap();
                let Some(color) = vote(me).0 else {
                    assert!(agreed.is_none());
                    return;
                };
                let agreed = agreed.unwrap();
                let mut expected: Vec<i32> = (0..size as i32).filter(|&r| vote(r).0 == Some(color)).collect();
                expected.sort_by_key(|&r| (vote(r).1, r));
                assert_eq!(
                    members(&agreed.group),
                    expected.iter().map(|&r| 10 + r as u32).collect::<Vec<_>>()
                );
                assert_eq!(expected[agreed.rank as usize], me);
                got.lock().unwrap().push(agreed.context);
            });
            contexts.check(&got);
        }
    }

    #[test]
    fn without_a_context_all_fail_alike() {
        threads::ranks(4, |transport| {
            let agreed = run(split(transport, &Exhausted, &Group::run(0, 4), (Some(0), 0)));
            assert!(matches!(agreed, Err(Error::NoMem(_))));
        });
    }

    #[test]
    fn a_split_fails_everywhere_if_one_color_has_no_context() {
        let contexts = OnlyOne::default();
        threads::ranks(7, |transport| {
            // Colors of three members each, one of which gets the context; the last rank takes no part.
            let me = transport.rank();
            let color = (me < 6).then_some((me % 2) as i32);
            let agreed = run(split(transport, &contexts, &Group::run(0, 7), (color, 0)));
            assert!(matches!(agreed, Err(Error::NoMem(_))), "{me}");
        });
        assert_eq!(contexts.1.load(Ordering::SeqCst), 3);
    }

    #[test]
    fn a_split_of_two_groups_fails_on_both_sides_if_one_color_has_no_context() {
        let contexts = OnlyOne::default();
        halves(9, |sides, groups, transport| {
            // Ranks 0 to 3 and 4 to 7, two of each side; the last takes no part.
            let me = transport.rank();
            let color = (me < 8).then_some((me / 4) as i32);
            let agreed = run(inter_split(sides, &contexts, groups, (color, 0)));
            assert!(matches!(agreed, Err(Error::NoMem(_))), "{me}");
        });
        assert_eq!(contexts.1.load(Ordering::SeqCst), 4);
    }

    /// Runs `body` as each rank of two groups: even and odd job ranks.
    pub fn halves(
        size: usize,
        body: impl Fn(&Sides<Subset<'_, ThreadTransport>>, (&Group, &Group), &ThreadTransport) + Sync,
    ) {
        threads::ranks(size, |transport| {
            let side = |odd: usize| (0..size).filter(|r| r % 2 == odd).collect::<Vec<_>>();
            let odd = transport.rank() % 2;
            let (own, other, rank) = (side(odd), side(1 - odd), transport.rank() / 2);
            let group = |ranks: &[usize]| picked(&Group::run(0, size as u32), ranks);
            let sides = Sides {
                local: Subset { transport, ranks: &own, rank },
                remote: Subset { transport, ranks: &other, rank },
            };
            body(&sides, (&group(&own), &group(&other)), transport);
        });
    }

    #[test]
    fn a_merge_puts_the_high_group_behind() {
        for (even_high, odd_high) in [(false, false), (false, true), (true, false), (true, true)] {
            for size in 2..=5_usize {
                let (contexts, got) = (CountedContexts::default(), Mutex::new(Vec::new()));
                halves(size, |sides, groups, transport| {
                    let odd = transport.rank() % 2 == 1;
                    let high = if odd { odd_high } else { even_high };
                    let agreed = run(merge(sides, &contexts, groups, high)).unwrap();
                    let first = u32::from(even_high && !odd_high);
                    let expected: Vec<u32> =
                        [first, 1 - first].iter().flat_map(|&f| (f..size as u32).step_by(2)).collect();
                    assert_eq!(members(&agreed.group), expected, "{even_high} {odd_high}");
                    assert_eq!(expected[agreed.rank as usize], transport.rank() as u32);
                    got.lock().unwrap().push(agreed.context);
                });
                contexts.check(&got);
            }
        }
    }

    #[test]
    fn a_split_between_two_groups_needs_the_color_on_both_sides() {
        for size in 2..=9_usize {
            let (contexts, got) = (CountedContexts::default(), Mutex::new(Vec::new()));
            halves(size, |sides, groups, transport| {
                let color = |r: usize| (r != 5).then_some((r / 3) as i32);
                let me = transport.rank();
                let agreed = run(inter_split(sides, &contexts, groups, (color(me), -(me as i32)))).unwrap();
                let side = |odd: usize| -> Vec<u32> {
                    (0..size)
                        .rev()
                        .filter(|r| r % 2 == odd && color(*r) == color(me))
                        .map(|r| r as u32)
                        .collect()
                };
                let (near, far) = (side(me % 2), side(1 - me % 2));
                if color(me).is_none() || far.is_empty() {
                    assert!(agreed.is_none());
                    return;
                }
                let agreed = agreed.unwrap();
                assert_eq!((members(&agreed.group), members(&agreed.remote.unwrap())), (near, far));
                got.lock().unwrap().push(agreed.context);
            });
            contexts.check(&got);
        }
    }
}
