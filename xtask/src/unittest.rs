//! What Python's `unittest` prints of tests that several ranks run at once, with mpiexec's labels before its lines.

use std::collections::{BTreeMap, BTreeSet};

/// How the tests ended.
pub struct Report {
    /// How many passed on all ranks.
    pub passed: usize,
    /// How many rank 0 left out.
    pub skipped: usize,
    /// Why it left them out: `12 cupy, 3 comm.size==1`.
    pub reasons: String,
    /// Those that failed on a rank, and ranks that did not come to their end.
    pub failures: Vec<String>,
    /// Whether all ranks came to their end: else tests that did not fail need not have run.
    pub whole: bool,
}

impl Report {
    /// Reads what `ranks` ranks have printed.
    pub fn of(log: &str, ranks: u32) -> Self {
        let mut failures = BTreeSet::new();
        let mut reasons = BTreeMap::<&str, usize>::new();
        let (mut ran, mut ended) = (0, BTreeSet::new());
        for (rank, line) in log.lines().filter_map(labelled) {
            if let Some(test) = line.strip_prefix("FAIL: ").or_else(|| line.strip_prefix("ERROR: ")) {
                failures.insert(full_name(test));
            } else if let Some(count) = line.strip_prefix("Ran ").and_then(|rest| rest.split(' ').next()) {
                ended.insert(rank);
                ran = count.parse().unwrap_or(ran);
            } else if rank == 0
                && let Some((_, reason)) = line.rsplit_once("skipped '")
            {
                *reasons.entry(reason.trim_end_matches('\'')).or_default() += 1;
            }
        }
        let whole = (0..ranks).all(|rank| ended.contains(&rank));
        let skipped = reasons.values().sum();
        let passed = usize::saturating_sub(ran, skipped + failures.len());
        failures.extend(
            (0..ranks)
                .filter(|rank| !ended.contains(rank))
                .map(|rank| format!("rank {rank} has not come to the end")),
        );
        let reasons: Vec<String> =
            reasons.iter().map(|(reason, count)| format!("{count} {reason}")).collect();
        Self { passed, skipped, reasons: reasons.join(", "), failures: failures.into_iter().collect(), whole }
    }
}

/// The tests that failed on a rank, each once, of output without labels,
/// in which lines of several ranks may run into each other.
pub fn failures(log: &str) -> Vec<String> {
    let after = |word: &'static str| log.split(word).skip(1);
    let is_name = |test: &&str| test.split_once(' ').is_some_and(|(_, rest)| rest.starts_with('('));
    let named = after("FAIL: ").chain(after("ERROR: ")).filter(is_name);
    named
        .map(|test| full_name(test.lines().next().unwrap_or_default()))
        .collect::<BTreeSet<_>>()
        .into_iter()
        .collect()
}

/// `[3] text`
fn labelled(line: &str) -> Option<(u32, &str)> {
    let (label, text) = line.strip_prefix('[')?.split_once(']')?;
    Some((label.trim().parse().ok()?, text.strip_prefix(' ').unwrap_or(text)))
}

/// `module.Class.test` of `test (module.Class.test) (name='…')`,
/// or of `test (module.Class)` as older versions print it.
fn full_name(printed: &str) -> String {
    let test = printed.split(' ').next().unwrap_or(printed);
    let class = printed.split_once('(').and_then(|(_, rest)| rest.split(')').next()).unwrap_or_default();
    if class.ends_with(test) { class.to_owned() } else { format!("{class}.{test}") }
}

#[cfg(test)]
mod tests {
    use super::{Report, failures};

    const LOG: &str = "\
[0] testA (test_x.TestX.testA) ... ok
[0] testB (test_x.TestX.testB) ... skipped 'comm.size==1'
[1] testB (test_x.TestX.testB) ... skipped 'comm.size==1'
[1] ERROR: testC (test_x.TestX.testC) (name='MPI_INT')
[1] ERROR: testC (test_x.TestX.testC) (name='MPI_LONG')
[0] FAIL: testD (test_x.TestX)
[0] Ran 5 tests in 0.1s
";

    #[test]
    fn a_test_that_fails_in_several_parts_or_on_one_rank_counts_once() {
        let report = Report::of(LOG, 1);
        assert_eq!((report.passed, report.skipped, &*report.reasons), (2, 1, "1 comm.size==1"));
        assert_eq!(report.failures, ["test_x.TestX.testC", "test_x.TestX.testD"]);
    }

    #[test]
    fn failures_are_told_from_output_without_labels() {
        let log = "....ERROR: testC (test_x.TestX.testC)FAIL: testD (test_x.TestX)\nFAIL: testD (test_x.TestX)\nERROR: no test\n";
        assert_eq!(failures(log), ["test_x.TestX.testC", "test_x.TestX.testD"]);
    }

    #[test]
    fn a_rank_that_does_not_end_is_a_failure() {
        let report = Report::of(LOG, 2);
        assert_eq!(report.failures.first().unwrap(), "rank 1 has not come to the end");
        assert!(!report.whole && Report::of(LOG, 1).whole);
    }
}
