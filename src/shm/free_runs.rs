//! Runs of granules of the shared heap that a process has freed and keeps with their memory for a while: taking pages anew costs more than anything else
//! that an allocation does.

use crate::limits::GRANULE;

/// Most runs that are kept.
pub const RUNS: usize = 32;
/// Most granules that are kept: 64 MiB.
pub const KEPT: u64 = (64 << 20) / GRANULE as u64;
/// Granules of the longest run that is kept: 32 MiB. The C library keeps no longer blocks either.
const LONGEST: u64 = KEPT / 2;

/// Such runs, each a first granule and a number of granules, oldest first.
#[derive(Debug, Default)]
pub struct FreeRuns {
    runs: [(u64, u64); RUNS],
    len: usize,
    granules: u64,
}

impl FreeRuns {
    /// Removes a run for `granules` granules whose first one `fits`, and of which at most a quarter would be wasted: the
    /// shortest; of equals the one freed last.
    pub fn reuse(&mut self, granules: u64, fits: impl Fn(u64) -> bool) -> Option<(u64, u64)> {
        let most = granules + granules / 4;
        let runs = self.runs[..self.len].iter().enumerate().rev();
        let (at, _) = runs
            .filter(|(_, (first, len))| (granules..=most).contains(len) && fits(*first))
            .min_by_key(|(_, (_, len))| *len)?;
        Some(self.remove(at))
    }

    fn remove(&mut self, at: usize) -> (u64, u64) {
        let run = self.runs[at];
        self.runs.copy_within(at + 1..self.len, at);
        self.len -= 1;
        self.granules -= run.1;
        run
    }

    /// Keeps a run, unless it is too long to be kept; calls `give_back` for the oldest that there is no more room for, or for the run itself.
    pub fn keep(&mut self, run: (u64, u64), mut give_back: impl FnMut((u64, u64))) {
        if run.1 > LONGEST {
            return give_back(run);
        }
        while self.len == RUNS || self.granules + run.1 > KEPT {
            give_back(self.remove(0));
        }
        self.runs[self.len] = run;
        self.len += 1;
        self.granules += run.1;
    }

    /// Removes the oldest run.
    pub fn take(&mut self) -> Option<(u64, u64)> {
        (self.len > 0).then(|| self.remove(0))
    }

    /// Returns how many runs there are, and how many granules they have together.
    #[must_use]
    pub const fn kept(&self) -> (usize, u64) {
        (self.len, self.granules)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_go_when_there_are_too_many_or_too_long_ones() {
        let (mut runs, mut gone) = (FreeRuns::default(), Vec::new());
        for first in 0..40 {
            runs.keep((100 * first, 10), |run| gone.push(run));
        }
        assert_eq!(runs.kept(), (RUNS, 10 * RUNS as u64));
        assert_eq!(gone, (0..8).map(|first| (100 * first, 10)).collect::<Vec<_>>());
        gone.clear();
        runs.keep((9000, LONGEST), |run| gone.push(run));
        runs.keep((9500, KEPT), |run| gone.push(run));
        assert_eq!(gone, [(800, 10), (9500, KEPT)], "one for its place; what is too long is not kept");
        let before = runs.kept();
        runs.keep((20_000, LONGEST), |run| gone.push(run));
        assert_eq!(runs.kept(), (2, KEPT), "{before:?}");
        assert_eq!(
            (runs.take(), runs.take(), runs.take()),
            (Some((9000, LONGEST)), Some((20_000, LONGEST)), None)
        );
    }

    #[test]
    fn the_shortest_that_fits_is_had_again_if_it_wastes_little() {
        let mut runs = FreeRuns::default();
        for run in [(100, 12), (200, 10), (300, 13), (400, 10)] {
            runs.keep(run, |_| panic!("there is room"));
        }
        assert_eq!(runs.reuse(7, |_| true), None, "more than a quarter is wasted");
        assert_eq!(runs.reuse(10, |first| first != 400), Some((200, 10)));
        assert_eq!(runs.reuse(10, |_| true), Some((400, 10)));
        assert_eq!(runs.reuse(10, |_| true), Some((100, 12)));
        assert_eq!(runs.reuse(10, |_| true), None);
        assert_eq!(runs.reuse(13, |_| false), None);
        assert_eq!(runs.kept(), (1, 13));
    }
}
