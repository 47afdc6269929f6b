//! How values are distributed, in bins that grow as the values do.

use serde::Serialize;

/// What is known of many values: exact number, sum, least and most, and a histogram. A bin is a number of [`Edges`].
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct ValueDistribution {
    /// How many values.
    pub count: u64,
    /// Their sum.
    pub total: u64,
    /// The least; 0 if there is none.
    pub min: u64,
    /// The most; 0 if there is none.
    pub max: u64,
    /// Bins that are not empty, ascending, each with how many values are in it.
    pub histogram: Vec<(u16, u64)>,
}

impl ValueDistribution {
    /// The mean; 0 of no values.
    #[must_use]
    pub fn mean(&self) -> u64 {
        self.total.checked_div(self.count).unwrap_or(0)
    }
}

/// Where bins begin: bin `i` has values from edge `i` up to, and without, edge `i + 1`. The first edge is 0.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Edges(Vec<u64>);

impl Edges {
    /// Six bins a decade, for nanoseconds: 0, 1, 2, 3, 5, 7, 10, 15, 20, 30, … up to an hour.
    #[must_use]
    pub fn times() -> Self {
        Self::with(&[10, 15, 20, 30, 50, 70], 12)
    }

    /// Three bins a decade, for counts: 0, 1, 2, 5, 10, 20, … up to a milliard.
    #[must_use]
    pub fn counts() -> Self {
        Self::with(&[10, 20, 50], 9)
    }

    /// `decade` is in tenths.
    fn with(decade: &[u64], decades: u32) -> Self {
        let powers = (0..decades).map(|power| 10_u64.pow(power));
        let mut edges = vec![0];
        // 1.5 is no bin of its own.
        edges.extend(powers.flat_map(|power| decade.iter().map(move |tenths| tenths * power / 10)));
        edges.push(10_u64.pow(decades));
        edges.dedup();
        Self(edges)
    }

    /// The bin of a value.
    #[must_use]
    pub fn bin(&self, value: u64) -> usize {
        self.0.partition_point(|&edge| edge <= value) - 1
    }

    /// All edges.
    #[must_use]
    pub fn all(&self) -> &[u64] {
        &self.0
    }
}

/// Values as they come.
#[derive(Debug)]
pub struct ValueCounter<'e> {
    edges: &'e Edges,
    bins: Vec<u64>,
    sums: ValueDistribution,
}

impl<'e> ValueCounter<'e> {
    /// None yet.
    #[must_use]
    pub fn new(edges: &'e Edges) -> Self {
        Self { edges, bins: vec![0; edges.0.len()], sums: ValueDistribution::default() }
    }

    /// One more.
    pub fn add(&mut self, value: u64) {
        let sums = &mut self.sums;
        sums.min = if sums.count == 0 { value } else { sums.min.min(value) };
        sums.max = sums.max.max(value);
        sums.count += 1;
        sums.total = sums.total.saturating_add(value);
        self.bins[self.edges.bin(value)] += 1;
    }

    /// What has come.
    #[must_use]
    pub fn finish(self) -> ValueDistribution {
        let filled = self.bins.iter().enumerate().filter(|(_, count)| **count > 0);
        let histogram = filled.map(|(bin, count)| (bin as u16, *count)).collect();
        ValueDistribution { histogram, ..self.sums }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_in_the_bin_whose_edges_embrace_it() {
        for edges in [Edges::times(), Edges::counts()] {
            assert!(edges.all().is_sorted_by(|a, b| a < b), "{edges:?}");
            for (bin, &edge) in edges.all().iter().enumerate() {
                assert_eq!(edges.bin(edge), bin);
                assert_eq!(edges.bin(edge.saturating_sub(1)), bin.saturating_sub(1));
            }
            assert_eq!(edges.bin(u64::MAX), edges.all().len() - 1);
        }
        assert_eq!(Edges::times().all()[..9], [0, 1, 2, 3, 5, 7, 10, 15, 20]);
        assert_eq!(Edges::counts().all()[..7], [0, 1, 2, 5, 10, 20, 50]);
    }

    #[test]
    fn sums_are_exact_and_empty_bins_are_left_out() {
        let edges = Edges::times();
        let mut counter = ValueCounter::new(&edges);
        for value in [7, 7, 9, 1200, 0] {
            counter.add(value);
        }
        let d = counter.finish();
        assert_eq!((d.count, d.total, d.min, d.max, d.mean()), (5, 1223, 0, 1200, 244));
        assert_eq!(d.histogram, [(0, 1), (5, 3), (edges.bin(1200) as u16, 1)]);
        assert_eq!(ValueCounter::new(&edges).finish().mean(), 0);
    }
}
