//! An ordered set of processes: which rank of the job is rank *i* here, and the other way round (MPI 5.0 §7.3).
//!
//! A run of consecutive job ranks, the world above all, takes two words whatever its size; any other group is a list
//! with its inverse. Both are immutable, so a clone shares them.

use crate::abi;
use crate::engine::Buffers;
use crate::error::{Error, Result};
use crate::sync::Arc;

/// An ordered set of job ranks.
#[derive(Clone, Debug)]
pub struct Group {
    members: Members,
    /// What the session that it comes from has for it, if it comes from one.
    session: Option<Arc<OfSession>>,
}

/// What a session has for the groups, and so the communicators, that come from it.
#[derive(Debug, Default)]
pub struct OfSession {
    /// The attached buffer of the session.
    pub buffers: Buffers,
    /// The memory allocation kinds that the session supports (MPI 5.0 §11.4.3), as the info key has them.
    pub kinds: String,
}

#[derive(Clone, Debug)]
enum Members {
    /// The job ranks `first..first + size`, in order.
    Run { first: u32, size: u32 },
    /// Any others.
    List(Arc<List>),
}

#[derive(Debug)]
struct List {
    /// Job rank of each group rank.
    world: Box<[u32]>,
    /// (job rank, group rank), sorted by job rank.
    inverse: Box<[(u32, u32)]>,
}

/// How two groups compare (MPI 5.0 §7.3.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Similarity {
    /// The same members in the same order.
    Ident,
    /// The same members in another order.
    Similar,
    /// Different members.
    Unequal,
}

/// `first, last, stride` of MPI_Group_range_incl and MPI_Group_range_excl.
pub type Range = [i32; 3];

impl Group {
    /// The group without members.
    #[must_use]
    pub const fn empty() -> Self {
        Self::run(0, 0)
    }

    /// The job ranks `first..first + size`, in order; takes no memory however large.
    #[must_use]
    pub const fn run(first: u32, size: u32) -> Self {
        Self { members: Members::Run { first, size }, session: None }
    }

    /// The group whose rank `i` is job rank `world[i]`; all must be different.
    #[must_use]
    pub fn from_world_ranks(world: Vec<u32>) -> Self {
        let first = world.first().copied().unwrap_or(0);
        let size = to_u32(world.len());
        if world.iter().zip(u64::from(first)..).all(|(&rank, expected)| u64::from(rank) == expected) {
            return Self::run(first, size);
        }
        let mut inverse: Box<[(u32, u32)]> = world.iter().copied().zip(0..).collect();
        inverse.sort_unstable();
        debug_assert!(inverse.windows(2).all(|pair| pair[0].0 != pair[1].0), "a process twice in a group");
        Self { members: Members::List(Arc::new(List { world: world.into(), inverse })), session: None }
    }

    /// The same, of a session; groups made of it are the session's, too.
    #[must_use]
    pub fn of_session(self, session: Option<&Arc<OfSession>>) -> Self {
        Self { session: session.cloned(), ..self }
    }

    /// What the session that it comes from has for it, if it comes from one.
    #[must_use]
    pub const fn session(&self) -> Option<&Arc<OfSession>> {
        self.session.as_ref()
    }

    /// Number of members.
    #[inline]
    #[must_use]
    pub fn size(&self) -> u32 {
        match &self.members {
            Members::Run { size, .. } => *size,
            Members::List(list) => to_u32(list.world.len()),
        }
    }

    /// Job rank of the member `rank`, which must be less than [`size`](Self::size).
    #[inline(always)]
    #[must_use]
    pub fn world_rank(&self, rank: u32) -> u32 {
        match &self.members {
            Members::Run { first, size } => {
                debug_assert!(rank < *size);
                first.wrapping_add(rank)
            }
            Members::List(list) => list.world[rank as usize],
        }
    }

    /// Group rank of the job rank `world`, if it is a member.
    #[must_use]
    pub fn rank_of(&self, world: u32) -> Option<u32> {
        match &self.members {
            Members::Run { first, size } => world.checked_sub(*first).filter(|rank| rank < size),
            Members::List(list) => {
                let at = list.inverse.binary_search_by_key(&world, |entry| entry.0).ok()?;
                Some(list.inverse[at].1)
            }
        }
    }

    /// Whether the job rank `world` is a member.
    #[must_use]
    pub fn contains(&self, world: u32) -> bool {
        self.rank_of(world).is_some()
    }

    /// The job ranks of the members, in group order.
    pub fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        (0..self.size()).map(|rank| self.world_rank(rank))
    }

    /// Compares members and order.
    #[must_use]
    pub fn compare(&self, other: &Self) -> Similarity {
        if self.size() != other.size() {
            return Similarity::Unequal;
        }
        if self.iter().eq(other.iter()) {
            return Similarity::Ident;
        }
        // Same size and members all different: one inclusion is equality.
        if self.iter().all(|world| other.contains(world)) { Similarity::Similar } else { Similarity::Unequal }
    }

    /// All of `self`, then those of `other` that are not in `self`.
    #[must_use]
    pub fn union(&self, other: &Self) -> Self {
        let rest = other.iter().filter(|&world| !self.contains(world));
        let session = self.session().or(other.session());
        Self::from_world_ranks(self.iter().chain(rest).collect()).of_session(session)
    }

    /// Those of `self` that are in `other`, in the order of `self`.
    #[must_use]
    pub fn intersection(&self, other: &Self) -> Self {
        self.filtered(|_, world| other.contains(world))
    }

    /// Those of `self` that are not in `other`, in the order of `self`.
    #[must_use]
    pub fn difference(&self, other: &Self) -> Self {
        self.filtered(|_, world| !other.contains(world))
    }

    /// The members `ranks`, in that order.
    ///
    /// # Errors
    /// [`Error::Rank`] for a rank outside the group, [`Error::RankTwice`] for one that comes twice.
    pub fn incl(&self, ranks: &[i32]) -> Result<Self> {
        self.marked(ranks.iter().copied())?;
        let members = ranks.iter().map(|&rank| self.world_rank(rank as u32)).collect();
        Ok(Self::from_world_ranks(members).of_session(self.session()))
    }

    /// All members but `ranks`, in the order of `self`.
    ///
    /// # Errors
    /// As for [`incl`](Self::incl).
    pub fn excl(&self, ranks: &[i32]) -> Result<Self> {
        let marked = self.marked(ranks.iter().copied())?;
        Ok(self.filtered(|rank, _| !marked[rank as usize]))
    }

    /// The members that `ranges` list, in that order.
    ///
    /// # Errors
    /// [`Error::Arg`] for a stride that is zero or leads away from the last rank;
    /// otherwise as for [`incl`](Self::incl).
    pub fn range_incl(&self, ranges: &[Range]) -> Result<Self> {
        self.incl(&self.expanded(ranges)?)
    }

    /// All members but those that `ranges` list, in the order of `self`.
    ///
    /// # Errors
    /// As for [`range_incl`](Self::range_incl).
    pub fn range_excl(&self, ranges: &[Range]) -> Result<Self> {
        self.excl(&self.expanded(ranges)?)
    }

    /// The rank in `to` of the member `rank` of `self`: MPI_UNDEFINED if it is not in there,
    /// MPI_PROC_NULL for MPI_PROC_NULL.
    ///
    /// # Errors
    /// [`Error::Rank`] for a rank outside the group.
    pub fn translate(&self, rank: i32, to: &Self) -> Result<i32> {
        if rank == abi::MPI_PROC_NULL {
            return Ok(abi::MPI_PROC_NULL);
        }
        let world = self.world_rank(self.checked(rank)?);
        Ok(to.rank_of(world).map_or(abi::MPI_UNDEFINED, |rank| rank as i32))
    }

    /// `rank` if it is one of the group's.
    ///
    /// # Errors
    /// [`Error::Rank`] if not.
    pub fn checked(&self, rank: i32) -> Result<u32> {
        let size = self.size();
        u32::try_from(rank).ok().filter(|&r| r < size).ok_or(Error::Rank { rank, size: size as i32 })
    }

    fn filtered(&self, keep: impl Fn(u32, u32) -> bool) -> Self {
        let kept = self.iter().zip(0..).filter(|&(world, rank)| keep(rank, world));
        Self::from_world_ranks(kept.map(|(world, _)| world).collect()).of_session(self.session())
    }

    /// Which members `ranks` names; each at most once.
    fn marked(&self, ranks: impl Iterator<Item = i32>) -> Result<Vec<bool>> {
        let mut marked = vec![false; self.size() as usize];
        for rank in ranks {
            let mark = &mut marked[self.checked(rank)? as usize];
            if std::mem::replace(mark, true) {
                return Err(Error::RankTwice(rank));
            }
        }
        Ok(marked)
    }

    /// The ranks of `ranges`; stops at the first that is no rank, so that a wild range costs no memory.
    fn expanded(&self, ranges: &[Range]) -> Result<Vec<i32>> {
        let mut ranks = Vec::new();
        for &[first, last, stride] in ranges {
            if stride == 0 {
                return Err(Error::Arg("the stride of a range of ranks is zero"));
            }
            if (stride > 0 && first > last) || (stride < 0 && first < last) {
                return Err(Error::Arg("the stride of a range of ranks leads away from its last rank"));
            }
            let steps = (i64::from(last) - i64::from(first)) / i64::from(stride);
            for step in 0..=steps {
                // Between first and last, so an i32.
                let rank = (i64::from(first) + step * i64::from(stride)) as i32;
                self.checked(rank)?;
                ranks.push(rank);
            }
        }
        Ok(ranks)
    }
}

/// Ranks are counted in an `int` in the C bindings, so a length always fits.
fn to_u32(len: usize) -> u32 {
    debug_assert!(i32::try_from(len).is_ok());
    len as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All lists of different ranks below `n`, each as a group and as the plain list.
    fn all(n: u32) -> Vec<(Vec<u32>, Group)> {
        let mut lists = vec![vec![]];
        let mut at = 0;
        while at < lists.len() {
            let list = lists[at].clone();
            lists
                .extend((0..n).filter(|rank| !list.contains(rank)).map(|rank| [&list[..], &[rank]].concat()));
            at += 1;
        }
        lists.into_iter().map(|list| (list.clone(), Group::from_world_ranks(list))).collect()
    }

    fn members(group: &Group) -> Vec<u32> {
        group.iter().collect()
    }

    #[test]
    fn both_translations_agree_with_a_list() {
        for (list, group) in all(4) {
            assert_eq!(group.size() as usize, list.len());
            assert_eq!(members(&group), list);
            for world in 0..5 {
                let expected = list.iter().position(|&w| w == world).map(|r| r as u32);
                assert_eq!(group.rank_of(world), expected, "{list:?}");
            }
        }
    }

    #[test]
    fn set_operations_agree_with_lists() {
        let groups = all(4);
        for (a, group_a) in &groups {
            for (b, group_b) in &groups {
                let mut union = a.clone();
                union.extend(b.iter().filter(|w| !a.contains(w)));
                assert_eq!(members(&group_a.union(group_b)), union);
                let both: Vec<u32> = a.iter().copied().filter(|w| b.contains(w)).collect();
                assert_eq!(members(&group_a.intersection(group_b)), both);
                let only: Vec<u32> = a.iter().copied().filter(|w| !b.contains(w)).collect();
                assert_eq!(members(&group_a.difference(group_b)), only);
            }
        }
    }

    #[test]
    fn comparison_agrees_with_lists() {
        let groups = all(4);
        for (a, group_a) in &groups {
            for (b, group_b) in &groups {
                let (mut sorted_a, mut sorted_b) = (a.clone(), b.clone());
                sorted_a.sort_unstable();
                sorted_b.sort_unstable();
                let expected = match (a == b, sorted_a == sorted_b) {
                    (true, _) => Similarity::Ident,
                    (_, true) => Similarity::Similar,
                    _ => Similarity::Unequal,
                };
                assert_eq!(group_a.compare(group_b), expected, "{a:?} {b:?}");
            }
        }
    }

    #[test]
    fn inclusion_and_exclusion_agree_with_lists() {
        let group = Group::from_world_ranks(vec![7, 3, 9, 4]);
        for (chosen, _) in all(4) {
            let ranks: Vec<i32> = chosen.iter().map(|&r| r as i32).collect();
            let included: Vec<u32> = chosen.iter().map(|&r| [7, 3, 9, 4][r as usize]).collect();
            assert_eq!(members(&group.incl(&ranks).unwrap()), included);
            let rest: Vec<u32> =
                (0..4).filter(|r| !chosen.contains(r)).map(|r| [7, 3, 9, 4][r as usize]).collect();
            assert_eq!(members(&group.excl(&ranks).unwrap()), rest);
        }
    }

    #[test]
    fn a_rank_outside_or_twice_is_an_error() {
        let group = Group::run(10, 3);
        assert_eq!(group.incl(&[3]).unwrap_err(), Error::Rank { rank: 3, size: 3 });
        assert_eq!(group.excl(&[-1]).unwrap_err(), Error::Rank { rank: -1, size: 3 });
        assert_eq!(group.incl(&[1, 2, 1]).unwrap_err(), Error::RankTwice(1));
        assert_eq!(group.range_excl(&[[0, 2, 1], [2, 2, 1]]).unwrap_err(), Error::RankTwice(2));
    }

    #[test]
    fn ranges_agree_with_counting() {
        let group = Group::run(0, 6);
        for first in -1..7 {
            for last in -1..7 {
                for stride in -3..4 {
                    let got = group.range_incl(&[[first, last, stride]]);
                    if stride == 0 || (last - first) * stride < 0 {
                        assert!(matches!(got, Err(Error::Arg(_))));
                        continue;
                    }
                    let mut expected = vec![];
                    let mut rank = first;
                    while (stride > 0 && rank <= last) || (stride < 0 && rank >= last) {
                        expected.push(rank);
                        rank += stride;
                    }
                    if expected.iter().all(|rank| (0..6).contains(rank)) {
                        let expected: Vec<u32> = expected.iter().map(|&r| r as u32).collect();
                        assert_eq!(members(&got.unwrap()), expected, "{first} {last} {stride}");
                    } else {
                        assert!(matches!(got, Err(Error::Rank { .. })), "{first} {last} {stride}");
                    }
                }
            }
        }
    }

    #[test]
    fn a_wild_range_fails_at_its_first_wrong_rank() {
        let group = Group::run(0, 6);
        assert_eq!(group.range_incl(&[[0, i32::MAX, 1]]).unwrap_err(), Error::Rank { rank: 6, size: 6 });
        assert_eq!(
            group.range_incl(&[[i32::MIN, i32::MAX, i32::MAX]]).unwrap_err(),
            Error::Rank { rank: i32::MIN, size: 6 }
        );
    }

    #[test]
    fn translation_keeps_proc_null_and_says_undefined() {
        let (from, to) = (Group::run(2, 4), Group::from_world_ranks(vec![5, 2]));
        let translated: Vec<i32> = (0..4).map(|rank| from.translate(rank, &to).unwrap()).collect();
        assert_eq!(translated, [1, abi::MPI_UNDEFINED, abi::MPI_UNDEFINED, 0]);
        assert_eq!(from.translate(abi::MPI_PROC_NULL, &to).unwrap(), abi::MPI_PROC_NULL);
        assert_eq!(from.translate(4, &to).unwrap_err(), Error::Rank { rank: 4, size: 4 });
    }

    #[test]
    fn consecutive_ranks_take_no_list() {
        let world = Group::run(0, 1_000_000);
        assert!(matches!(
            world.intersection(&Group::run(5, 10)).members,
            Members::Run { first: 5, size: 10 }
        ));
    }
}
