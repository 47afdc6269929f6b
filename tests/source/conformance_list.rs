//! The list of expected failures says why, for each of them.

use std::fs;

#[test]
fn every_expected_failure_names_a_test_once_and_gives_a_reason() {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/.ci/conformance-expected.txt");
    let text = fs::read_to_string(file).expect("the list is part of the tree");
    let mut seen = Vec::new();
    for line in text.lines().filter(|l| !l.is_empty() && !l.starts_with('#')) {
        let (test, reason) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
        assert!((2..=3).contains(&test.split('/').count()), "{test}: directory/test");
        assert!(reason.split_whitespace().count() >= 4, "{test}: {reason:?} is no reason");
        assert!(!seen.contains(&test), "{test} is there twice");
        seen.push(test);
    }
}
