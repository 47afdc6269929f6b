//! Communicators in OTF2, and the ranks that are members of what the job made.
//!
//! An intercommunicator is one communicator of both groups, in the order of their ranks, for a message has to name the
//! same one at both ends. A member that is not part of the trace, because it was spawned or is of another job, has a
//! location without events.

use super::super::super::model::{CommInfo, RankTrace, Record, Trace};
use std::collections::{BTreeMap, BTreeSet};

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
pub struct Otf2Communicators<'a> {
    numbers: BTreeMap<Seen<'a>, u32>,
    /// In the order of their numbers.
    pub list: Vec<Otf2Communicator>,
}

/// A name, and the members by their ranks in the job.
pub struct Otf2Communicator {
    pub name: String,
    pub members: Vec<u32>,
}

/// What a rank knows a communicator by: its context, those whom a peer names, and whether they are the other group of an intercommunicator.
type Seen<'a> = (u32, &'a [u32], bool);

fn seen<'a>(rank: &RankTrace, comm: &'a CommInfo) -> Seen<'a> {
    (comm.context, &comm.group, !comm.group.contains(&rank.rank))
}

impl<'a> Otf2Communicators<'a> {
    pub fn of(trace: &'a Trace) -> Self {
        let all = || {
            let of_rank = |rank: &'a RankTrace| rank.communicators.iter().map(move |comm| (rank, comm));
            trace.ranks.iter().flat_map(of_rank)
        };
        // Of an intercommunicator, a rank knows the other group: its own one are all that know the same.
        let mut own: BTreeMap<Seen<'a>, BTreeSet<u32>> = BTreeMap::new();
        for (rank, comm) in all() {
            let seen = seen(rank, comm);
            if seen.2 {
                own.entry(seen).or_default().insert(rank.rank);
            }
        }
        let mut this = Self { numbers: BTreeMap::new(), list: Vec::new() };
        let mut by_members: BTreeMap<(u32, Vec<u32>), u32> = BTreeMap::new();
        for (rank, comm) in all() {
            let seen = seen(rank, comm);
            if this.numbers.contains_key(&seen) {
                continue;
            }
            let members = match own.get(&seen) {
                Some(own) => own.iter().chain(seen.1).copied().collect::<BTreeSet<_>>().into_iter().collect(),
                None => seen.1.to_vec(),
            };
            let number = *by_members.entry((comm.context, members.clone())).or_insert_with(|| {
                let name = if comm.name.is_empty() {
                    format!("context {}", comm.context)
                } else {
                    comm.name.clone()
                };
                this.list.push(Otf2Communicator { name, members });
                this.list.len() as u32 - 1
            });
            this.numbers.insert(seen, number);
        }
        this
    }

    /// The communicator that a record is of.
    pub fn number(&self, rank: &RankTrace, record: &Record) -> Option<u32> {
        let comm = rank.communicator(record.context, record.when)?;
        self.numbers.get(&seen(rank, comm)).copied()
    }

    /// The communicator that a record is of, and the rank in it of what is `peer` to the rank that made the record.
    pub fn with_peer(&self, rank: &RankTrace, record: &Record, peer: i32) -> Option<(u32, u32)> {
        let peer = u32::try_from(peer).ok()?;
        let comm = rank.communicator(record.context, record.when)?;
        let seen = seen(rank, comm);
        let number = *self.numbers.get(&seen)?;
        if !seen.2 {
            return Some((number, peer));
        }
        let peer = comm.group.get(peer as usize)?;
        let place = self.list.get(number as usize)?.members.binary_search(peer).ok()?;
        Some((number, place as u32))
    }
}
