//! Which ranks had better share a CPU, where ranks outnumber CPUs.
//!
//! Ranks begin on the CPUs in turn, so those whose numbers follow each other are apart (`core_migration`). A rank that
//! exchanges messages with both of these in each step, as in a halo exchange, then waits for two that share another
//! CPU, and each step takes a turn of all ranks. In blocks, as where ranks 0 to 3 share the first CPU, every visit to a
//! CPU serves two steps: what a rank has from its neighbour there it has at once, and the other neighbour runs at the
//! same time. So a rank that yields surveys now and then whom it sends to. When all ranks of the job say that they had
//! better be in blocks, that is where they go; when one says so no more, they go back.

use crate::engine::Engine;
use crate::sync::{AtomicU32, AtomicU64, Ordering};

/// Looks at the rank's own CPU from one survey to the next: 128 yields.
const LOOKS_PER_SURVEY: u32 = 8;
/// Most ranks of a job that is surveyed: each looks at what all say.
const MOST_RANKS: u32 = 64;
/// Bytes of messages for each record from which they are long: ranks that have a CPU each at that moment may copy such
/// a message together.
const LONG: u64 = 32 << 10;
/// Records that a rank has sent between two surveys, at least, if messages are what it mostly waits for, and not rounds
/// of collectives: among neighbours it sends two for each yield or two. Fewer say nothing.
const FEW_RECORDS: u64 = 64;

/// What a rank knows of whom it sends to.
/// Relaxed throughout: notes of one rank to itself, on no edge.
#[derive(Debug, Default)]
pub(super) struct Neighborhood {
    /// One more than the CPU of the rank if they are in blocks; 0 for none.
    home: AtomicU32,
    /// CPUs among which they are distributed.
    cpus: AtomicU32,
    looks: AtomicU32,
    /// Records to each rank up to the last survey.
    sent: Box<[AtomicU64]>,
    /// Bytes of all messages up to then.
    bytes: AtomicU64,
}

impl Neighborhood {
    /// Of a rank of a job of `ranks` ranks, which are not in blocks.
    pub fn new(ranks: u32) -> Self {
        let surveyed = if ranks <= MOST_RANKS { ranks } else { 0 };
        Self { sent: (0..surveyed).map(|_| AtomicU64::new(0)).collect(), ..Self::default() }
    }

    /// The rank and all others may use these CPUs.
    pub fn begin(&self, rank: u32, cpus: &[usize]) {
        let (ranks, count) = (self.sent.len() as u32, cpus.len() as u32);
        // A spawned rank, or one of too many.
        if rank < ranks {
            self.cpus.store(count, Ordering::Relaxed);
            self.home.store(cpus[block_of(rank, ranks, count) as usize] as u32 + 1, Ordering::Relaxed);
        }
    }

    /// The CPU of the rank's block, if all ranks had better be in blocks.
    pub fn home(&self, engine: &Engine) -> Option<u32> {
        let home = self.home.load(Ordering::Relaxed).checked_sub(1)?;
        let wants = |rank| engine.job.telemetry(rank).last_yield.wants_block();
        (wants(engine.rank) && (0..engine.job.places_in_use()).all(wants)).then_some(home)
    }

    /// The rank looks at its own CPU, in a wait, so it has no ring locked. Now and then it surveys whom it has sent to
    /// since it last did, and says whether ranks had better be in blocks.
    pub fn note(&self, engine: &Engine) {
        let looks = self.looks.fetch_add(1, Ordering::Relaxed);
        if self.home.load(Ordering::Relaxed) == 0 || engine.shared || !looks.is_multiple_of(LOOKS_PER_SURVEY)
        {
            return;
        }
        let since = |(peer, before): (usize, &AtomicU64)| {
            let tx = engine.peers[peer].tx.lock(engine.shared);
            let now = tx.as_ref().map_or(0, |tx| tx.producer.position());
            now.wrapping_sub(before.swap(now, Ordering::Relaxed))
        };
        let sent: Vec<u64> = self.sent.iter().enumerate().map(since).collect();
        let bytes = engine.telemetry().bytes_sent_alone();
        let bytes = bytes.wrapping_sub(self.bytes.swap(bytes, Ordering::Relaxed));
        if let Some(better) =
            is_better_in_blocks(engine.rank, &sent, bytes, self.cpus.load(Ordering::Relaxed))
        {
            engine.telemetry().last_yield.want_block(better);
        }
    }
}

/// The number of the block of a rank.
fn block_of(rank: u32, ranks: u32, cpus: u32) -> u32 {
    (u64::from(rank) * u64::from(cpus) / u64::from(ranks)) as u32
}

/// Whether `rank`, which has sent so many records to each, and so many bytes in all, had better share a CPU with its
/// block than with those who begin on its CPU: it sends to several, and to its block not little, and twice as much as
/// to the others. Two that send to each other only had better be apart, and so had ranks that send long messages, or
/// nothing. `None`: these are too few to tell.
fn is_better_in_blocks(rank: u32, sent: &[u64], bytes: u64, cpus: u32) -> Option<bool> {
    let ranks = sent.len() as u32;
    let total = |shares: &dyn Fn(u32) -> bool| {
        (0..ranks).filter(|&peer| shares(peer)).map(|peer| sent[peer as usize]).sum::<u64>()
    };
    let all = total(&|_| true);
    let in_block = total(&|peer| block_of(peer, ranks, cpus) == block_of(rank, ranks, cpus));
    let in_turn = total(&|peer| peer % cpus == rank % cpus);
    let most = sent.iter().copied().max().unwrap_or(0);
    let better = most <= all / 4 * 3 && in_block >= all / 4 && in_block / 2 >= in_turn;
    let is_apart = all == 0 || bytes / all >= LONG;
    (is_apart || all >= FEW_RECORDS).then_some(!is_apart && better)
}

#[cfg(all(test, not(perusal_loom)))]
mod tests {
    use super::*;

    /// What each rank says whose partners are those.
    fn says(ranks: u32, cpus: u32, partners: impl Fn(u32) -> Vec<u32>) -> Vec<bool> {
        let sent = |rank| {
            let mut sent = vec![0; ranks as usize];
            partners(rank).iter().for_each(|&partner| sent[partner as usize] += 100);
            sent
        };
        (0..ranks).map(|rank| is_better_in_blocks(rank, &sent(rank), 0, cpus).expect("enough")).collect()
    }

    #[test]
    fn neighbours_in_a_ring_had_better_be_in_blocks() {
        for (ranks, cpus) in [(4, 2), (8, 2), (16, 2), (12, 4)] {
            let ring = |rank| vec![(rank + 1) % ranks, (rank + ranks - 1) % ranks];
            assert_eq!(says(ranks, cpus, ring), vec![true; ranks as usize], "{ranks} {cpus}");
        }
    }

    #[test]
    fn pairs_all_to_all_a_root_and_a_token_had_better_not() {
        let no = vec![false; 8];
        assert_eq!(says(8, 2, |rank| vec![rank ^ 1]), no);
        assert_eq!(says(8, 2, |rank| (0..8).filter(|&peer| peer != rank).collect()), no);
        assert_eq!(says(8, 2, |rank| vec![(rank + 1) % 8]), no);
        assert_eq!(says(8, 2, |rank| vec![(rank + 2) % 8, (rank + 6) % 8]), no, "they share a CPU already");
        let root = says(8, 2, |rank| if rank == 0 { (1..8).collect() } else { vec![0] });
        assert!(root.contains(&false));
    }

    #[test]
    fn few_messages_say_nothing_and_long_ones_that_ranks_had_better_be_apart() {
        assert_eq!(is_better_in_blocks(1, &[32, 0, 32, 0], 64 * LONG - 1, 2), Some(true));
        for sent in [[32, 0, 32, 0], [1, 0, 1, 0]] {
            let bytes = sent.iter().sum::<u64>() * LONG;
            assert_eq!(is_better_in_blocks(1, &sent, bytes, 2), Some(false));
        }
        assert_eq!(is_better_in_blocks(1, &[31, 0, 31, 0], 0, 2), None);
        assert_eq!(is_better_in_blocks(1, &[0; 4], 0, 2), Some(false), "rounds of collectives");
    }

    #[test]
    fn blocks_are_as_long_as_each_other_or_one_longer() {
        let blocks = |ranks, cpus| (0..ranks).map(|rank| block_of(rank, ranks, cpus)).collect::<Vec<_>>();
        assert_eq!(blocks(5, 2), [0, 0, 0, 1, 1]);
        assert_eq!(blocks(6, 3), [0, 0, 1, 1, 2, 2]);
        assert_eq!(blocks(2, 3), [0, 1]);
    }
}
