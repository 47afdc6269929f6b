//! Values over time in bins of equal width, of which those where nothing changes are left out.

use super::types::Bin;

/// How time is cut into bins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TimeGrid {
    /// Nanoseconds of a bin, at least 1.
    pub width: u64,
    /// How many bins there are, at least 1.
    pub bins: u32,
}

/// Bins of all ranks together, so that the page stays small whatever the job.
const BUDGET: u64 = 50_000;

impl TimeGrid {
    /// For a job that lasts `duration` ns: the more ranks, the fewer bins.
    #[must_use]
    pub fn of(duration: u64, ranks: usize) -> Self {
        let most = (BUDGET / (ranks as u64).max(1)).clamp(50, 2000);
        // The last record lies at `duration`, which is within the last bin.
        let width = (duration / most + 1).max(1);
        Self { width, bins: (duration / width + 1) as u32 }
    }

    /// The bin of a time; what lies behind the end is in the last one.
    #[must_use]
    pub fn bin(&self, when: u64) -> u32 {
        u32::try_from(when / self.width).unwrap_or(u32::MAX).min(self.bins - 1)
    }
}

/// One value that changes.
#[derive(Debug)]
pub struct BinnedSeries {
    grid: TimeGrid,
    bins: Vec<Bin>,
    value: u32,
}

impl BinnedSeries {
    /// 0 from the begin.
    #[must_use]
    pub fn new(grid: TimeGrid) -> Self {
        Self { grid, bins: vec![], value: 0 }
    }

    /// From `when` on the value is this one. Times do not fall.
    pub fn set(&mut self, when: u64, value: u32) {
        if value == self.value {
            return;
        }
        let bin = self.grid.bin(when);
        match self.bins.last_mut() {
            Some(last) if last.0 == bin => *last = (bin, last.1.min(value), last.2.max(value), value),
            _ => self.bins.push((bin, self.value.min(value), self.value.max(value), value)),
        }
        self.value = value;
    }

    /// The bins with a change in them.
    #[must_use]
    pub fn finish(self) -> Vec<Bin> {
        self.bins
    }
}

/// For how much of each bin something was so, in thousandths. `spans` are disjoint.
#[must_use]
pub fn coverage(grid: TimeGrid, spans: impl Iterator<Item = (u64, u64)>) -> Vec<Bin> {
    let mut covered = vec![0_u64; grid.bins as usize];
    for (begin, end) in spans {
        let mut at = begin;
        while at < end {
            let bin = grid.bin(at);
            let next = if bin + 1 == grid.bins { end } else { end.min((u64::from(bin) + 1) * grid.width) };
            covered[bin as usize] += next - at;
            at = next;
        }
    }
    let thousandths = covered.iter().map(|ns| (ns.saturating_mul(1000) / grid.width).min(1000) as u32);
    thousandths.zip(0..).filter(|(part, _)| *part > 0).map(|(part, bin)| (bin, part, part, 0)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_time_of_the_job_is_in_a_bin_and_many_ranks_have_fewer() {
        for (duration, ranks) in
            [(0, 1), (1, 2), (1999, 2), (2000, 2), (1_000_000_007, 64), (u64::MAX / 2, 1024)]
        {
            let grid = TimeGrid::of(duration, ranks);
            assert!(grid.width > 0 && grid.bins > 0 && grid.bins <= 2001, "{grid:?}");
            assert_eq!(grid.bin(duration), grid.bins - 1, "{grid:?}");
            assert!(u64::from(grid.bins) * grid.width > duration);
        }
        assert!(TimeGrid::of(1_000_000_000, 1024).bins <= 51);
    }

    #[test]
    fn a_bin_knows_the_least_the_most_and_the_last() {
        let mut changes = BinnedSeries::new(TimeGrid { width: 10, bins: 10 });
        for (when, value) in [(3, 1), (4, 5), (9, 2), (31, 2), (45, 0), (45, 7), (99, 7), (120, 8)] {
            changes.set(when, value);
        }
        // In bin 4 it was 2 at first; what lies behind the end counts for the last bin.
        assert_eq!(changes.finish(), [(0, 0, 5, 2), (4, 0, 7, 7), (9, 7, 8, 8)]);
    }

    #[test]
    fn coverage_is_cut_at_the_bins_edges() {
        let grid = TimeGrid { width: 10, bins: 4 };
        let bins = coverage(grid, [(5, 25), (28, 29), (39, 41)].into_iter());
        assert_eq!(bins, [(0, 500, 500, 0), (1, 1000, 1000, 0), (2, 600, 600, 0), (3, 200, 200, 0)]);
        assert_eq!(coverage(grid, [(7, 7)].into_iter()), []);
    }
}
