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
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    rust_files(&root.join("src"), &mut found);
    rust_files(&root.join("crates"), &mut found);
    assert!(found.len() > 10, "the sources were found");
    found.into_iter().map(|path| (path.clone(), fs::read_to_string(path).expect("readable text"))).collect()
}

/// clippy's `disallowed-types` sees through the re-exports of `crate::sync` and would ban those too.
#[test]
fn atomics_cells_and_loom_come_through_the_one_door() {
    let banned = ["sync::atomic", "UnsafeCell", "loom::"];
    let mut offenders = Vec::new();
    for (path, text) in sources() {
        if path.to_string_lossy().contains("/src/sync") {
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

/// `eprintln!` writes a line in as many pieces as its format has, and those of several ranks mix.
#[test]
fn lines_to_standard_error_are_written_at_once() {
    let mut offenders = Vec::new();
    for (path, text) in sources() {
        for (number, line) in text.lines().enumerate() {
            let code = line.split("//").next().unwrap_or_default();
            if code.contains("eprintln!(") || code.contains("eprint!(") {
                offenders.push(format!("{}:{}: {}", path.display(), number + 1, line.trim()));
            }
        }
    }
    assert!(offenders.is_empty(), "use error::report, or sys::print_error:\n{}", offenders.join("\n"));
}

/// A check of `tests/c/check.h` notes what is wrong, and goes on: a program that is to end with 0 has to return that.
#[test]
fn a_program_that_checks_returns_what_it_has_found() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/c");
    let (mut found, mut offenders) = (0, vec![]);
    for entry in fs::read_dir(folder).expect("a readable folder") {
        let path = entry.expect("a readable entry").path();
        if path.extension().is_none_or(|extension| extension != "c") {
            continue;
        }
        let text = fs::read_to_string(&path).expect("readable text");
        let checks = [" CHECK(", " SAME(", " OK(", " CLASS("].iter().any(|check| text.contains(check));
        let returns = ["return verdict();", "return failures != 0;", "return end();"];
        if checks && !text.contains("\n * EXIT:") {
            found += 1;
            if !returns.iter().any(|statement| text.contains(statement)) {
                offenders.push(path.display().to_string());
            }
        }
    }
    assert!(found > 100, "{found} programs: the test does not find them");
    assert!(offenders.is_empty(), "these end with 0 whatever they find:\n{}", offenders.join("\n"));
}

/// The C bindings are a crate of their own, and so is what runs when they are loaded.
#[test]
fn the_engine_exports_no_c_symbol_and_runs_nothing_at_load() {
    let banned = ["no_mangle", "export_name", "init_array", "#[ctor", "global_asm!"];
    let engine = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    for (path, text) in sources().iter().filter(|(path, _)| path.starts_with(&engine)) {
        for word in banned {
            assert!(!text.contains(word), "{}: {word}", path.display());
        }
    }
}

/// How a SAFETY comment begins that refers to another place instead of saying why the operation is sound there.
const WITHOUT_A_FACT: [&str; 14] = [
    "as above",
    "as below",
    "as in ",
    "as for ",
    "as the caller",
    "as there",
    "as this",
    "see above",
    "see below",
    "the caller promises it",
    "the caller vouches",
    "the caller's promise",
    "the caller's.",
    "the same promise",
];

/// What holds somewhere else may not hold here, and the other place may change.
#[test]
fn safety_comments_state_the_fact_that_makes_the_operation_sound() {
    let mut offenders = Vec::new();
    for (path, text) in sources() {
        for (number, line) in text.lines().enumerate() {
            let Some((_, reason)) = line.split_once("// SAFETY: ") else { continue };
            if WITHOUT_A_FACT.iter().any(|beginning| reason.starts_with(beginning)) {
                offenders.push(format!("{}:{}: {reason}", path.display(), number + 1));
            }
        }
    }
    assert!(offenders.is_empty(), "say what makes it sound here:\n{}", offenders.join("\n"));
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

/// Files of the repository with one of these endings, in the folders that hold what people write.
fn written(endings: &[&str]) -> Vec<(PathBuf, String)> {
    fn walk(folder: &Path, endings: &[&str], found: &mut Vec<PathBuf>) {
        for entry in fs::read_dir(folder).expect("a readable folder") {
            let path = entry.expect("a readable entry").path();
            if path.is_dir() && path.file_name().is_some_and(|name| name != "target") {
                walk(&path, endings, found);
            } else if path.extension().and_then(|e| e.to_str()).is_some_and(|e| endings.contains(&e)) {
                found.push(path);
            }
        }
    }
    let mut found = Vec::new();
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    for folder in [
        "src",
        "crates",
        "tests",
        "loom-tests",
        "xtask",
        "benches",
        "examples",
        "fuzz",
        "include",
        "tools",
        "preload",
    ] {
        walk(&root.join(folder), endings, &mut found);
    }
    assert!(found.len() > 1000, "the files were found");
    found.into_iter().map(|path| (path.clone(), fs::read_to_string(path).expect("readable text"))).collect()
}

/// Whether the line is a comment, or one of a comment's lines, that could be wrapped: rows of tables and the lines of a
/// test program's header that a program reads (`STDERR: …`) cannot.
fn wraps(line: &str) -> bool {
    let line = line.trim_start();
    let Some(text) = ["///", "//!", "//", "/*", "* "].iter().find_map(|mark| line.strip_prefix(mark)) else {
        return false;
    };
    let text = text.trim_start();
    let key = text.split_once(": ").map_or("", |(key, _)| key);
    let read_by_a_program = !key.is_empty() && key.bytes().all(|b| b.is_ascii_uppercase());
    !text.starts_with('|') && (!read_by_a_program || key == "SAFETY")
}

#[test]
fn comments_are_not_wider_than_120_columns() {
    let mut offenders = Vec::new();
    for (path, text) in written(&["rs", "c", "h"]) {
        for (number, line) in text.lines().enumerate() {
            if line.chars().count() > 120 && wraps(line) {
                offenders.push(format!("{}:{}", path.display(), number + 1));
            }
        }
    }
    assert!(offenders.is_empty(), "wrap them:\n{}", offenders.join("\n"));
}

/// Words and number of each `<word> rule <n>` in a line, wherever it stands.
fn rules(line: &str) -> impl Iterator<Item = (&str, u32, &str)> {
    line.match_indices(" rule ").filter_map(move |(at, between)| {
        let word = line[..at].rsplit(|c: char| !c.is_ascii_alphabetic()).next().filter(|w| !w.is_empty())?;
        let rest = &line[at + between.len()..];
        let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
        Some((word, rest[..end].parse().ok()?, &rest[end..]))
    })
}

/// Whether a line states `<word> rule <rule>`: with a capital letter at the word,
/// or at the beginning of a bold name of several words.
fn begins_a_statement(line: &str, word: &str, rule: u32) -> bool {
    let name = format!("{word} rule {rule}");
    let bold = |start: &str| start.contains(&name) && start.starts_with(char::is_uppercase);
    word.starts_with(char::is_uppercase) || line.split("**").skip(1).step_by(2).any(bold)
}

/// A rule is stated once, as `**Ring rule 1.**`, `**Ring rule 1 (name).**` or `Walk rule 1: …`,
/// and cited as `ring rule 1`.
#[test]
fn every_rule_that_is_cited_is_stated_somewhere() {
    let mut stated = std::collections::BTreeSet::new();
    let mut cited = Vec::new();
    for (path, text) in sources() {
        for (number, line) in text.lines().enumerate() {
            for (word, rule, rest) in rules(line) {
                let name = (word.to_lowercase(), rule);
                if begins_a_statement(line, word, rule) && rest.starts_with(['.', ':', ' ']) {
                    stated.insert(name.clone());
                }
                cited.push((name, format!("{}:{}", path.display(), number + 1)));
            }
        }
    }
    assert!(stated.len() > 10, "the rules were found");
    let missing: Vec<String> = cited
        .iter()
        .filter(|(name, _)| !stated.contains(name))
        .map(|((word, rule), place)| format!("{place}: {word} rule {rule}"))
        .collect();
    assert!(missing.is_empty(), "cited, but stated nowhere:\n{}", missing.join("\n"));
}
