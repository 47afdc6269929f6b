//! Retired words stay out of the source and of the pages (`docs/glossary.md` has the words to use). Only words that
//! have no other sense here are on the list.

use std::fs;
use std::path::{Path, PathBuf};

/// A word, and what to say instead.
const RETIRED: [(&str, &str); 35] = [
    ("crowded", "oversubscribed"),
    ("roomy", "a CPU for each rank"),
    ("haunted", "peer died"),
    ("told_shortly", "observed"),
    ("told", "delivered, or who learns or gets it"),
    ("owes", "has unfinished; credit"),
    ("inbox", "receive path"),
    ("outbox", "transmit queue"),
    ("upcall", "callback"),
    ("upcalls", "callbacks"),
    ("foresee", "prefetch"),
    ("train", "eager fragments"),
    ("crowd", "ranks that outnumber CPUs"),
    ("elided", "conditional"),
    ("folds", "reduces"),
    ("foreseen", "prefetched"),
    ("ghost", "rank that died"),
    ("ghosts", "ranks that died"),
    ("haunt", "die"),
    ("hurries", "prefetches"),
    ("hurry", "prefetch"),
    ("lean", "fast path"),
    ("nap", "sleep"),
    ("pace", "wait strategy"),
    ("parting", "core migration"),
    ("senseless", "pointless"),
    ("spoke", "sent"),
    ("tap", "global subscriber"),
    ("taps", "global subscribers"),
    ("trains", "eager fragments"),
    ("unwatched", "not polled"),
    ("seat", "share, or slot"),
    ("seats", "shares, or slots"),
    ("patience", "a bound, by what it bounds"),
    ("knock", "a request that comes in"),
];

/// Names that users write, and the other places where a retired word is not ours to change.
const KEPT: [&str; 11] = [
    "values.crowded",
    "values.roomy",
    "crowded.c",
    "./crowded",
    "mpiexec -n 4 crowded",
    "mpiexec -n RANKS crowded",
    "\"crowded\"",
    "\"roomy\"",
    "\"crowd\"",
    "crowd.c",
    "MPICH (crowd)",
];

/// Files of source and pages.
const READ: [&str; 5] = ["rs", "md", "c", "h", "py"];

fn files(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("a readable folder") {
        let path = entry.expect("a readable entry").path();
        if path.is_dir() {
            files(&path, found);
        } else if path.extension().and_then(|e| e.to_str()).is_some_and(|e| READ.contains(&e)) {
            found.push(path);
        }
    }
}

#[test]
fn retired_words_stay_out() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut found = vec![root.join("README.md"), root.join("CONTRIBUTING.md")];
    for folder in [
        "src",
        "crates",
        "docs",
        "examples",
        "loom-tests",
        "xtask",
        "fuzz/fuzz_targets",
        "tests/c",
        "benches",
    ] {
        files(&root.join(folder), &mut found);
    }
    let mut offenders = Vec::new();
    for path in found {
        let text = fs::read_to_string(&path).expect("readable text");
        for (number, line) in text.lines().enumerate() {
            let kept = KEPT.iter().fold(line.to_owned(), |line, kept| line.replace(kept, ""));
            let words = kept.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'));
            for word in words.map(str::to_ascii_lowercase) {
                if let Some((retired, instead)) = RETIRED.iter().find(|(retired, _)| *retired == word) {
                    offenders.push(format!("{}:{}: {retired}; say {instead}", path.display(), number + 1));
                }
            }
        }
    }
    assert!(offenders.is_empty(), "{}", offenders.join("\n"));
}
