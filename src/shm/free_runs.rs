//! Runs of granules of the shared heap that a process has freed and keeps with their memory for a while: taking pages
//! anew costs more than anything else that an allocation does.

/// Most runs that are kept.
pub const RUNS: usize = 128;

/// A run that is kept.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct FreeRun {
    /// Its first granule.
    pub first: u64,
    /// How many granules it has.
    pub granules: u64,
    /// Bytes from its beginning on that have memory, as far as somebody counts them.
    pub reserved: u64,
}

/// The runs that this process keeps, oldest first.
#[derive(Debug)]
pub struct FreeRuns {
    runs: [FreeRun; RUNS],
    len: usize,
    granules: u64,
}

impl Default for FreeRuns {
    fn default() -> Self {
        Self { runs: [FreeRun::default(); RUNS], len: 0, granules: 0 }
    }
}

impl FreeRuns {
    /// Removes a run for `granules` granules whose first one `fits`, and of which at most a quarter would be wasted:
    /// the shortest; of equals the one freed last.
    pub fn reuse(&mut self, granules: u64, fits: impl Fn(u64) -> bool) -> Option<FreeRun> {
        let most = granules + granules / 4;
        let runs = self.runs[..self.len].iter().enumerate().rev();
        let (at, _) = runs
            .filter(|(_, run)| (granules..=most).contains(&run.granules) && fits(run.first))
            .min_by_key(|(_, run)| run.granules)?;
        Some(self.remove(at))
    }

    fn remove(&mut self, at: usize) -> FreeRun {
        let run = self.runs[at];
        self.runs.copy_within(at + 1..self.len, at);
        self.len -= 1;
        self.granules -= run.granules;
        run
    }

    /// Keeps a run, if it has at most half of the `most` granules that are kept; calls `give_back` for the oldest that
    /// there is no more room for, or for the run itself.
    pub fn keep(&mut self, run: FreeRun, most: u64, mut give_back: impl FnMut(FreeRun)) {
        if run.granules > most / 2 {
            return give_back(run);
        }
        while self.len == RUNS || self.granules + run.granules > most {
            give_back(self.remove(0));
        }
        self.runs[self.len] = run;
        self.len += 1;
        self.granules += run.granules;
    }

    /// Removes the oldest run.
    pub fn take(&mut self) -> Option<FreeRun> {
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

    const MOST: u64 = 2000;

    fn run(first: u64, granules: u64) -> FreeRun {
        FreeRun { first, granules, reserved: 0 }
    }

    #[test]
    fn the_oldest_go_when_there_are_too_many_or_too_long_ones() {
        let (mut runs, mut gone) = (FreeRuns::default(), Vec::new());
        let many = RUNS as u64 + 8;
        for first in 0..many {
            runs.keep(run(100 * first, 10), MOST, |run| gone.push(run));
        }
        assert_eq!(runs.kept(), (RUNS, 10 * RUNS as u64));
        assert_eq!(gone, (0..8).map(|first| run(100 * first, 10)).collect::<Vec<_>>());
        gone.clear();
        runs.keep(run(90_000, 500), MOST, |run| gone.push(run));
        runs.keep(run(95_000, MOST / 2 + 1), MOST, |run| gone.push(run));
        assert_eq!(
            gone,
            [run(800, 10), run(95_000, MOST / 2 + 1)],
            "one for its place; what is too long is not kept"
        );
        runs.keep(run(200_000, MOST / 2), MOST, |run| gone.push(run));
        assert!(runs.kept().1 <= MOST && runs.kept().0 > 2, "{:?}", runs.kept());
        while let Some(oldest) = runs.take() {
            gone.push(oldest);
        }
        assert_eq!(gone.len() as u64, many - 8 + 3);
        assert_eq!(gone[gone.len() - 2..], [run(90_000, 500), run(200_000, MOST / 2)]);
    }

    #[test]
    fn the_shortest_that_fits_is_had_again_if_it_wastes_little() {
        let mut runs = FreeRuns::default();
        for one in [run(100, 12), run(200, 10), run(300, 13), run(400, 10)] {
            runs.keep(one, MOST, |_| panic!("there is room"));
        }
        assert_eq!(runs.reuse(7, |_| true), None, "more than a quarter is wasted");
        assert_eq!(runs.reuse(10, |first| first != 400), Some(run(200, 10)));
        assert_eq!(runs.reuse(10, |_| true), Some(run(400, 10)));
        assert_eq!(runs.reuse(10, |_| true), Some(run(100, 12)));
        assert_eq!(runs.reuse(10, |_| true), None);
        assert_eq!(runs.reuse(13, |_| false), None);
        assert_eq!(runs.kept(), (1, 13));
    }
}
