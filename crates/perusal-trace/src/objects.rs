//! What several ranks made together, each once: windows and files.

use super::model::{CommInfo, RankTrace, Record, Trace};
use std::collections::HashMap;

/// All objects of a kind in a job, each once: those that several ranks made together are one.
#[derive(Debug)]
pub struct JobObjects<'a, T> {
    /// In the order of their numbers: as the first rank that has it knows it.
    pub all: Vec<&'a T>,
    /// By rank and context: when each was made that had it, ascending, and its number.
    numbers: Vec<HashMap<u32, Vec<(u64, usize)>>>,
}

/// Context, members, and which one in turn: a context comes again after an object is freed.
type Identity<'a> = (u32, &'a [u32], usize);

impl<'a, T> JobObjects<'a, T> {
    /// Those that `of_rank` gives of each rank, in the order of their making; `comm` says what they are.
    pub(super) fn collect(
        trace: &'a Trace,
        of_rank: impl Fn(&'a RankTrace) -> &'a [T],
        comm: impl Fn(&'a T) -> &'a CommInfo,
    ) -> Self {
        let mut job = Self { all: vec![], numbers: vec![] };
        let mut known: HashMap<Identity<'a>, usize> = HashMap::new();
        for rank in &trace.ranks {
            let mut turns: HashMap<(u32, &[u32]), usize> = HashMap::new();
            let mut numbers: HashMap<u32, Vec<(u64, usize)>> = HashMap::new();
            for object in of_rank(rank) {
                let CommInfo { context, group, created, .. } = comm(object);
                let turn = turns.entry((*context, group)).or_default();
                let identity = (*context, &group[..], *turn);
                *turn += 1;
                let number = *known.entry(identity).or_insert_with(|| {
                    job.all.push(object);
                    job.all.len() - 1
                });
                numbers.entry(*context).or_default().push((*created, number));
            }
            job.numbers.push(numbers);
        }
        job
    }

    /// The number of the object that a record is of; its rank has this place among the ranks.
    #[must_use]
    pub fn number(&self, place: usize, record: &Record) -> Option<usize> {
        let of_context = self.numbers.get(place)?.get(&record.context)?;
        let after = of_context.partition_point(|(created, _)| *created <= record.when);
        of_context.get(after.saturating_sub(1)).map(|(_, number)| *number)
    }
}
