//! Communicators in OTF2, and the ranks that are members of what the job made.
//!
//! An intercommunicator is one communicator of both groups, in the order of their ranks, for a message has to name the
//! same one at both ends. A member that is not part of the trace, because it was spawned or is of another job, has a
//! location without events.

use super::super::super::model::{CommInfo, RankTrace, Record, Trace};
use std::collections::{BTreeMap, BTreeSet};
use std::iter::repeat;

/// The ranks of the trace, and behind them all others that communicators, windows and files have.
pub struct Otf2Ranks {
    traced: u32,
    others: Vec<u32>,
}

impl Otf2Ranks {
    /// Those of a trace.
    pub fn of(trace: &Trace) -> Self {
        let traced = trace.ranks.len() as u32;
        let groups = trace.ranks.iter().flat_map(|rank| {
            let windows = rank.windows.iter().map(|window| &window.comm);
            rank.communicators.iter().chain(windows).chain(&rank.files)
        });
        let members = groups.flat_map(|comm| comm.group.iter().copied());
        let others: BTreeSet<u32> = members.filter(|rank| *rank >= traced).collect();
        Self { traced, others: others.into_iter().collect() }
    }

    /// The place of a rank among all of them.
    fn place(&self, rank: u32) -> u64 {
        match self.others.binary_search(&rank) {
            Ok(behind) => u64::from(self.traced) + behind as u64,
            Err(_) => u64::from(rank),
        }
    }

    /// A group of these ranks, as OTF2 has it: by their places.
    pub fn group(&self, ranks: &[u32]) -> Vec<u64> {
        ranks.iter().map(|rank| self.place(*rank)).collect()
    }

    /// Those that are not part of the trace: place and rank.
    pub fn others(&self) -> impl Iterator<Item = (u32, u32)> {
        (self.traced..).zip(self.others.iter().copied())
    }
}

/// All communicators of the trace, each once.
pub struct Otf2Communicators {
    numbers: BTreeMap<Known, u32>,
    /// In the order of their numbers.
    pub list: Vec<Otf2Communicator>,
}

/// A name, and the members by their ranks in the job.
pub struct Otf2Communicator {
    pub name: String,
    pub members: Vec<u32>,
}

/// A communicator as one rank knew it: the rank, the context, and when it was made, for a context comes again.
type Known = (u32, u32, u64);

fn known(rank: &RankTrace, comm: &CommInfo) -> Known {
    (rank.rank, comm.context, comm.created)
}

/// Whether the rank knows the other group of an intercommunicator.
fn is_other_group(rank: &RankTrace, comm: &CommInfo) -> bool {
    !comm.group.contains(&rank.rank)
}

/// The intercommunicators of this context that a rank knew, and that have `other` in the other group.
fn between(rank: &RankTrace, context: u32, other: u32) -> impl Iterator<Item = &CommInfo> {
    let of_both = move |comm: &&CommInfo| {
        comm.context == context && is_other_group(rank, comm) && comm.group.contains(&other)
    };
    rank.communicators.iter().filter(of_both)
}

/// The rank's own group of an intercommunicator, if a member of the other group is part of the trace:
/// that one knows it.
///
/// Two ranks make and free what they are both members of in the same order, and a context comes again when both have
/// freed it: the first of one is the first of the other.
fn own_group<'a>(trace: &'a Trace, rank: &RankTrace, comm: &CommInfo) -> Option<&'a [u32]> {
    let member = |world: &u32| trace.ranks.get(*world as usize).filter(|of| of.rank == *world);
    let other = comm.group.iter().find_map(member)?;
    let before = between(rank, comm.context, other.rank).position(|one| std::ptr::eq(one, comm))?;
    between(other, comm.context, rank.rank).nth(before).map(|there| &*there.group)
}

impl Otf2Communicators {
    pub fn of(trace: &Trace) -> Self {
        let all = || trace.ranks.iter().flat_map(|rank| repeat(rank).zip(&rank.communicators));
        // Where the other group is not part of the trace, the own one is all that know the same.
        let mut alike: BTreeMap<(u32, &[u32]), BTreeSet<u32>> = BTreeMap::new();
        for (rank, comm) in all().filter(|(rank, comm)| is_other_group(rank, comm)) {
            alike.entry((comm.context, &*comm.group)).or_default().insert(rank.rank);
        }
        let mut this = Self { numbers: BTreeMap::new(), list: Vec::new() };
        let mut by_members: BTreeMap<(u32, Vec<u32>), u32> = BTreeMap::new();
        for (rank, comm) in all() {
            let members = if is_other_group(rank, comm) {
                let own: BTreeSet<u32> = match own_group(trace, rank, comm) {
                    Some(own) => own.iter().copied().collect(),
                    None => alike.get(&(comm.context, &*comm.group)).cloned().unwrap_or_default(),
                };
                own.iter().chain(&*comm.group).copied().collect::<BTreeSet<_>>().into_iter().collect()
            } else {
                comm.group.to_vec()
            };
            let number =
                *by_members.entry((comm.context, members)).or_insert_with_key(|(context, members)| {
                    let name =
                        if comm.name.is_empty() { format!("context {context}") } else { comm.name.clone() };
                    this.list.push(Otf2Communicator { name, members: members.clone() });
                    this.list.len() as u32 - 1
                });
            this.numbers.insert(known(rank, comm), number);
        }
        this
    }

    /// The communicator that a record is of.
    pub fn number(&self, rank: &RankTrace, record: &Record) -> Option<u32> {
        let comm = rank.communicator(record.context, record.when)?;
        self.numbers.get(&known(rank, comm)).copied()
    }

    /// The communicator that a record is of, and the rank in it of what is `peer` to the rank that made the record.
    pub fn with_peer(&self, rank: &RankTrace, record: &Record, peer: i32) -> Option<(u32, u32)> {
        let peer = u32::try_from(peer).ok()?;
        let comm = rank.communicator(record.context, record.when)?;
        let number = *self.numbers.get(&known(rank, comm))?;
        if !is_other_group(rank, comm) {
            return Some((number, peer));
        }
        let peer = comm.group.get(peer as usize)?;
        let place = self.list.get(number as usize)?.members.binary_search(peer).ok()?;
        Some((number, place as u32))
    }
}

#[cfg(test)]
mod tests {
    use super::{CommInfo, Otf2Communicators, RankTrace, Trace};

    /// A trace of ranks that each knew these intercommunicators of context 5, by the other group, from such a time on.
    fn trace(known: &[&[(u64, &[u32])]]) -> Trace {
        let comm = |(created, group): &(u64, &[u32])| CommInfo {
            context: 5,
            group: (*group).into(),
            created: *created,
            ..CommInfo::default()
        };
        let rank = |(rank, known): (u32, &&[(u64, &[u32])])| RankTrace {
            rank,
            communicators: known.iter().map(comm).collect(),
            ..RankTrace::default()
        };
        Trace { ranks: (0..).zip(known).map(rank).collect(), ..Trace::default() }
    }

    fn members(trace: &Trace) -> Vec<Vec<u32>> {
        Otf2Communicators::of(trace).list.into_iter().map(|comm| comm.members).collect()
    }

    #[test]
    fn intercommunicators_that_have_one_context_after_another_stay_apart() {
        // The first connects 0 with 2, the second 1 with 2: 0 and 1 know the same of them.
        let trace = trace(&[&[(10, &[2])], &[(30, &[2])], &[(11, &[0]), (31, &[1])]]);
        assert_eq!(members(&trace), [[0, 2], [1, 2]]);
    }

    #[test]
    fn a_rank_that_knows_the_same_group_twice_has_two_intercommunicators() {
        // 0 and 1 with 2, then 0 alone with 2. Rank 2 has freed the first before rank 0 says when it was made.
        let trace = trace(&[&[(10, &[2]), (30, &[2])], &[(12, &[2])], &[(8, &[0, 1]), (29, &[0])]]);
        let comms = Otf2Communicators::of(&trace);
        let all: Vec<&[u32]> = comms.list.iter().map(|comm| &*comm.members).collect();
        assert_eq!(all, [&[0, 1, 2][..], &[0, 2]]);
        let numbers = |rank, created| comms.numbers[&(rank, 5, created)];
        assert_eq!([numbers(0, 10), numbers(1, 12), numbers(2, 8)], [0; 3]);
        assert_eq!([numbers(0, 30), numbers(2, 29)], [1; 2]);
    }

    #[test]
    fn a_group_whose_other_group_is_not_part_of_the_trace_is_of_all_that_know_the_same() {
        assert_eq!(members(&trace(&[&[(10, &[7, 8])], &[(11, &[7, 8])]])), [[0, 1, 7, 8]]);
    }
}
