//! docs/memory-model.md against the sources: every ordered access has a row, and every row names what there is.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// Files whose ordered accesses are on no edge of the library.
const APART: [(&str, &str); 3] = [
    ("src/sync/", "defines what the others use"),
    ("crates/perusal-cli/src/bench/limits.rs", "measures the machine with words of its own"),
    ("crates/perusal-trace/src/synthetic.rs", "makes traces for tests"),
];

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .ancestors()
        .find(|at| at.join("Cargo.lock").exists())
        .expect("the workspace")
}

fn rust_files(directory: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(directory).expect("a readable source directory") {
        let path = entry.expect("a readable entry").path();
        if path.is_dir() {
            rust_files(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

/// The sources without tests: path from the root, and text up to the file's tests.
fn sources() -> Vec<(String, String)> {
    let mut found = Vec::new();
    rust_files(&root().join("src"), &mut found);
    rust_files(&root().join("crates"), &mut found);
    let name = |path: &Path| path.strip_prefix(root()).expect("below the root").display().to_string();
    let is_test = |name: &str| name.ends_with("tests.rs") || name.ends_with("_test.rs");
    let text = |path: &Path| {
        let text = fs::read_to_string(path).expect("readable text");
        let end = text.find("\n#[cfg(test)]\nmod ").or_else(|| text.find("\n#[cfg(all(test"));
        text[..end.unwrap_or(text.len())].to_owned()
    };
    found.iter().map(|path| (name(path), text(path))).filter(|(name, _)| !is_test(name)).collect()
}

fn page() -> String {
    fs::read_to_string(root().join("docs/memory-model.md")).expect("docs/memory-model.md")
}

/// The rows of the page's first table.
fn rows(page: &str) -> Vec<Vec<&str>> {
    let table = page
        .lines()
        .skip_while(|line| !line.starts_with("| edge |"))
        .take_while(|line| line.starts_with('|'));
    table.skip(2).map(|line| line.trim_matches('|').split('|').map(str::trim).collect()).collect()
}

/// What stands between backticks.
fn code(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2)
}

/// The name of the function that a line begins.
fn function(line: &str) -> Option<&str> {
    let (before, after) = line.trim_start().split_once("fn ")?;
    let words = ["pub", "pub(crate)", "pub(super)", "unsafe", "const", "extern", "\"C\""];
    if !before.split_whitespace().all(|word| words.contains(&word) || word.starts_with("pub(in")) {
        return None;
    }
    after.split(|c: char| !(c.is_alphanumeric() || c == '_')).next()
}

/// The functions of a file that have an access with an ordering, or a fence.
fn ordered(text: &str) -> BTreeSet<&str> {
    let (mut inside, mut found) = ("", BTreeSet::new());
    for line in text.lines().map(|line| line.split("//").next().unwrap_or_default()) {
        inside = function(line).unwrap_or(inside);
        let orderings = ["Ordering::Acquire", "Ordering::Release", "Ordering::AcqRel", "Ordering::SeqCst"];
        if orderings.iter().any(|ordering| line.contains(ordering)) {
            found.insert(inside);
        }
    }
    found
}

/// The module of a file: the folder or file below `src`, or the crate.
fn module(path: &str) -> String {
    let mut parts = path.split('/');
    match (parts.next(), parts.next()) {
        (Some("src"), Some(module)) => module.trim_end_matches(".rs").to_owned(),
        (Some("crates"), Some(name)) => name.replace('-', "_"),
        _ => panic!("{path} is no source"),
    }
}

#[test]
fn every_function_with_an_ordered_access_has_a_row() {
    let page = page();
    let named = |line: &str, module: &str, function: &str| {
        let mentions = |word: &str| code(line).any(|code| code.split("::").any(|part| part == word));
        mentions(function) && mentions(module)
    };
    let mut missing = Vec::new();
    for (path, text) in sources() {
        if APART.iter().any(|(apart, _)| path.starts_with(apart)) {
            continue;
        }
        for function in ordered(&text) {
            if !page.lines().any(|line| line.starts_with('|') && named(line, &module(&path), function)) {
                missing.push(format!("{path}: `{}::…::{function}`", module(&path)));
            }
        }
    }
    assert!(missing.is_empty(), "docs/memory-model.md has no row that names\n{}", missing.join("\n"));
}

#[test]
fn every_function_that_a_row_names_exists() {
    let page = page();
    let sources = sources();
    let exists = |name: &str| {
        let needles =
            [format!("fn {name}("), format!("fn {name}<"), format!(" {name} "), format!("mod {name};")];
        sources.iter().any(|(_, text)| needles.iter().any(|needle| text.contains(needle.as_str())))
    };
    let mut missing = Vec::new();
    for row in rows(&page) {
        for name in code(row[1]).chain(code(row[2])).filter_map(|path| path.rsplit("::").next()) {
            if !exists(name) {
                missing.push(format!("{}: `{name}`", row[0]));
            }
        }
        for model in code(row[6]).filter(|model| !root().join(model).exists()) {
            if !root().join("loom-tests").join(model).exists() {
                missing.push(format!("{}: {model}", row[0]));
            }
        }
    }
    assert!(missing.is_empty(), "docs/memory-model.md names what is not there:\n{}", missing.join("\n"));
}

/// Whether an `impl` of this type in this text has this function.
fn has_method(text: &str, of_type: &str, name: &str) -> bool {
    let is_word = |line: &str, word: &str| {
        line.split(|c: char| !(c.is_alphanumeric() || c == '_')).any(|part| part == word)
    };
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        let code = line.trim_start();
        if !(code.starts_with("impl") || code.starts_with("unsafe impl")) || !is_word(code, of_type) {
            continue;
        }
        let end = format!("{}}}", &line[..line.len() - code.len()]);
        if lines.by_ref().take_while(|line| **line != end).any(|line| function(line) == Some(name)) {
            return true;
        }
    }
    false
}

#[test]
fn every_method_that_the_page_names_is_one_of_its_type() {
    let page = page();
    let sources = sources();
    let mut missing = BTreeSet::new();
    for path in page.lines().filter(|line| line.starts_with('|')).flat_map(code) {
        let mut parts = path.rsplit("::");
        let (Some(name), Some(of_type)) = (parts.next(), parts.next()) else { continue };
        let is_type = of_type.starts_with(|c: char| c.is_ascii_uppercase());
        if is_type && !sources.iter().any(|(_, text)| has_method(text, of_type, name)) {
            missing.insert(path);
        }
    }
    assert!(
        missing.is_empty(),
        "docs/memory-model.md names methods that their types do not have: {missing:?}"
    );
}

/// The comments of a file, each in one line.
fn comments(text: &str) -> Vec<String> {
    let mut found = vec![String::new()];
    for line in text.lines().map(str::trim_start) {
        match line.strip_prefix("//") {
            Some(words) => {
                let comment = found.last_mut().expect("one is there");
                *comment = format!("{comment} {}", words.trim_start_matches(['/', '!']).trim());
            }
            None => found.push(String::new()),
        }
    }
    found
}

#[test]
fn the_other_end_that_a_label_names_has_an_ordering() {
    let sources = sources();
    let ends: BTreeSet<&str> = sources.iter().flat_map(|(_, text)| ordered(text)).collect();
    let (mut wrong, mut checked) = (Vec::new(), 0);
    for (path, text) in &sources {
        if APART.iter().any(|(apart, _)| path.starts_with(apart)) {
            continue;
        }
        for comment in comments(text) {
            for label in comment.split("pairs with ").skip(1) {
                // Up to the end of the clause; a name has no such marks.
                let clause = label.split(['.', ';']).next().unwrap_or_default();
                let clause = clause.split(": ").next().unwrap_or_default();
                let Some((_, names)) = clause.split_once(" in ") else { continue };
                let functions = code(names).filter_map(|name| name.rsplit("::").next());
                // A type stands for its drop.
                for name in functions.filter(|name| !name.starts_with(|c: char| c.is_ascii_uppercase())) {
                    checked += 1;
                    if !ends.contains(name) {
                        wrong.push(format!("{path}: pairs with {clause}: `{name}` has none"));
                    }
                }
            }
        }
    }
    assert!(checked > 100, "only {checked} found: the test does not read the labels");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_edge_that_is_cited_has_a_row_and_every_numbered_row_is_cited_at_both_ends() {
    let page = page();
    // An exchange that is both ends of its edge cites it once.
    let ends = |row: &[&str]| if row[4].starts_with("AcqRel") { 1 } else { 2 };
    let number = |row: &Vec<&str>| row[0].split(' ').next()?.parse::<u32>().ok();
    let edges: BTreeMap<u32, usize> =
        rows(&page).iter().filter_map(|row| Some((number(row)?, ends(row)))).collect();
    let mut cited: BTreeMap<u32, usize> = BTreeMap::new();
    for (path, text) in sources() {
        for (at, before) in text.match_indices("edge ") {
            let rest = &text[at + before.len()..];
            let digits = &rest[..rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len())];
            let other = text[..at].ends_with("handles ") || text[..at].ends_with("boundary ");
            let Some(edge) = digits.parse::<u32>().ok().filter(|_| !other) else { continue };
            assert!(
                edges.contains_key(&edge),
                "{path} cites edge {edge}, which docs/memory-model.md does not have"
            );
            *cited.entry(edge).or_default() += 1;
        }
    }
    for (edge, ends) in edges {
        let cited = cited.get(&edge).copied().unwrap_or(0);
        assert!(cited >= ends, "edge {edge} is cited {cited} times");
    }
}
