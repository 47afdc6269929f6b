//! Rules of the house that no lint knows, checked on the source text.

use std::fs;
use std::path::{Path, PathBuf};

fn rust_files(directory: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(directory).expect("a readable source directory") {
        let path = entry.expect("a readable entry").path();
        if path.is_dir() {
            rust_files(&path, found);
        } else if path.extension().is_some_and(|e| e == "rs") {
            found.push(path);
        }
    }
}

fn sources() -> Vec<(PathBuf, String)> {
    let mut found = Vec::new();
    rust_files(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"), &mut found);
    assert!(found.len() > 10, "the sources were found");
    found.into_iter().map(|path| (path.clone(), fs::read_to_string(path).expect("readable text"))).collect()
}

/// clippy's `disallowed-types` sees through the re-exports of `crate::sync` and would ban those too.
#[test]
fn atomics_cells_and_loom_come_through_the_one_door() {
    let banned = ["sync::atomic", "UnsafeCell", "loom::"];
    let mut offenders = Vec::new();
    for (path, text) in sources() {
        if path.ends_with("src/sync.rs") {
            continue;
        }
        for (number, line) in text.lines().enumerate() {
            let code = line.split("//").next().unwrap_or_default();
            if banned.iter().any(|word| code.contains(word)) {
                offenders.push(format!("{}:{}: {}", path.display(), number + 1, line.trim()));
            }
        }
    }
    assert!(offenders.is_empty(), "use crate::sync instead:\n{}", offenders.join("\n"));
}

#[test]
fn no_source_file_is_longer_than_600_lines() {
    let long: Vec<String> = sources()
        .iter()
        .filter(|(_, text)| text.lines().count() > 600)
        .map(|(path, text)| format!("{}: {} lines", path.display(), text.lines().count()))
        .collect();
    assert!(long.is_empty(), "look for the second room:\n{}", long.join("\n"));
}
