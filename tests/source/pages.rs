//! What the pages name exists: files, links and their anchors.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// First parts of paths that the pages name between backticks.
const FOLDERS: [&str; 13] = [
    ".ci",
    "benches",
    "crates",
    "docs",
    "examples",
    "fuzz",
    "include",
    "loom-tests",
    "preload",
    "src",
    "tests",
    "tools",
    "xtask",
];

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn pages() -> Vec<(PathBuf, String)> {
    let in_folder = |folder: &str| {
        let entries = fs::read_dir(root().join(folder)).expect("a readable folder");
        entries.map(|entry| entry.expect("a readable entry").path()).collect::<Vec<_>>()
    };
    let all = [
        in_folder("docs"),
        in_folder("docs/decisions"),
        vec![root().join("README.md"), root().join("CONTRIBUTING.md")],
    ];
    let pages = all.concat().into_iter().filter(|path| path.extension().is_some_and(|e| e == "md"));
    pages.map(|path| (path.clone(), fs::read_to_string(path).expect("readable text"))).collect()
}

/// The text without blocks of code.
fn prose(page: &str) -> String {
    page.split("```").step_by(2).collect()
}

#[test]
fn every_path_that_a_page_names_exists() {
    let mut missing = BTreeSet::new();
    for (page, text) in pages() {
        for code in prose(&text).split('`').skip(1).step_by(2) {
            let path = code.split([' ', ':', '#']).next().unwrap_or_default();
            let is_pattern = path.contains(['*', '{', '<', '…']);
            if path.contains('/')
                && !is_pattern
                && FOLDERS.contains(&path.split('/').next().unwrap_or_default())
                && !root().join(path).exists()
            {
                missing.insert(format!("{}: {path}", page.display()));
            }
        }
    }
    assert!(missing.is_empty(), "{missing:#?}");
}

/// The words of a page's blocks of code.
fn words_of_code(page: &str) -> impl Iterator<Item = &str> {
    let blocks = page.split("```").skip(1).step_by(2);
    blocks.flat_map(str::split_whitespace).map(|word| word.trim_matches(['"', '\'', '`', '(', ')', ',', ';']))
}

#[test]
fn every_file_that_a_command_of_a_page_names_exists() {
    let mut missing = BTreeSet::new();
    for (page, text) in pages() {
        for path in
            words_of_code(&text).filter(|word| word.contains('/') && !word.contains(['*', '{', '<', '…']))
        {
            let is_here = FOLDERS.contains(&path.split('/').next().unwrap_or_default());
            if is_here && !root().join(path).exists() {
                missing.insert(format!("{}: {path}", page.display()));
            }
        }
    }
    assert!(missing.is_empty(), "{missing:#?}");
}

/// `cargo test -p perusal-cli --test c_programs -- PART` runs nothing, and does not fail, if no program has that in its
/// name.
#[test]
fn tests_that_a_page_has_run_exist() {
    let programs = fs::read_dir(root().join("tests/c")).expect("a readable folder");
    let programs: Vec<String> = programs
        .map(|entry| entry.expect("a readable entry").file_name().to_string_lossy().into_owned())
        .collect();
    for (page, text) in pages() {
        for rest in text.split("--test c_programs -- ").skip(1) {
            let part = rest.split(['`', ' ', '\n']).next().unwrap_or_default();
            let there = part == "NAME" || programs.iter().any(|program| program.contains(part));
            assert!(there, "{}: no program of tests/c has {part} in its name", page.display());
        }
    }
}

/// The anchors of a page's headings, as renderers of Markdown make them.
fn anchors(text: &str) -> BTreeSet<String> {
    let headings = text.lines().filter(|line| line.starts_with('#'));
    headings
        .map(|line| {
            let line = line.trim_start_matches('#').trim().to_lowercase();
            let kept = line.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
            kept.map(|c| if c == ' ' { '-' } else { c }).collect()
        })
        .collect()
}

#[test]
fn every_link_between_pages_leads_somewhere() {
    let mut broken = BTreeSet::new();
    for (page, text) in pages() {
        for link in prose(&text).split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            if link.contains("://") {
                continue;
            }
            let (file, anchor) = link.split_once('#').unwrap_or((link, ""));
            let target = if file.is_empty() { page.clone() } else { page.with_file_name(file) };
            let leads = target.exists()
                && (anchor.is_empty()
                    || fs::read_to_string(&target).is_ok_and(|text| anchors(&text).contains(anchor)));
            if !leads {
                broken.insert(format!("{}: {link}", page.display()));
            }
        }
    }
    assert!(broken.is_empty(), "{broken:#?}");
}

#[test]
fn decisions_are_numbered_without_holes() {
    let mut numbers: Vec<u32> = pages()
        .iter()
        .filter(|(path, _)| path.parent().is_some_and(|folder| folder.ends_with("decisions")))
        .map(|(path, text)| {
            let name = path.file_name().expect("a file").to_string_lossy().into_owned();
            let number = &name[..4];
            assert!(text.starts_with(&format!("# {number} ")), "{name} begins with its number");
            number.parse().expect("four digits")
        })
        .collect();
    numbers.sort_unstable();
    assert!(numbers.iter().copied().eq(1..=numbers.len() as u32), "{numbers:?}");
}

#[test]
fn a_reader_reaches_every_page_from_the_readme() {
    let readme = fs::read_to_string(root().join("README.md")).expect("the README");
    for (page, _) in pages() {
        let name = page.strip_prefix(root()).expect("below the root").to_string_lossy().into_owned();
        let listed = name == "README.md"
            || name.starts_with("docs/decisions/")
            || readme.contains(&format!("({name}"));
        assert!(listed, "{name} is not in the README");
    }
}

/// `docs/testing.md` has a row for each part of `make verify`.
#[test]
fn the_page_of_tests_has_every_part_of_verify() {
    let source = fs::read_to_string(root().join("xtask/src/verify.rs")).expect("xtask/src/verify.rs");
    let table = source.split("const PARTS").nth(1).and_then(|rest| rest.split("\n];").next()).expect("PARTS");
    let page = fs::read_to_string(root().join("docs/testing.md")).expect("docs/testing.md");
    let parts = page.split("| part |").nth(1).and_then(|rest| rest.split("\n\n").next()).expect("the table");
    let rows = parts.lines().filter_map(|line| line.strip_prefix("| ")?.split('|').next());
    let on_the_page: BTreeSet<&str> = rows.flat_map(|cell| cell.split('`').skip(1).step_by(2)).collect();
    let parts: BTreeSet<&str> =
        table.split("\n    (").skip(1).filter_map(|part| part.split('"').nth(1)).collect();
    assert!(parts.len() > 10, "{parts:?}: the test does not read the table");
    assert_eq!(on_the_page, parts);
}

/// `docs/testing.md` names every test program of the workspace; the models have a script.
#[test]
fn the_page_of_tests_has_every_test_program() {
    let read = |path: &Path| fs::read_to_string(path).expect("a readable manifest");
    let mut manifests = vec![read(&root().join("Cargo.toml"))];
    for entry in fs::read_dir(root().join("crates")).expect("a readable folder") {
        manifests.push(read(&entry.expect("a readable entry").path().join("Cargo.toml")));
    }
    let page = fs::read_to_string(root().join("docs/testing.md")).expect("docs/testing.md");
    let tables = manifests.iter().flat_map(|manifest| manifest.split("[[test]]").skip(1));
    let programs: BTreeSet<&str> = tables.filter_map(|table| table.split('"').nth(1)).collect();
    let is_named = |program: &&str| program.starts_with("loom") || page.contains(&format!("`{program}`"));
    let missing: Vec<&str> = programs.iter().copied().filter(|program| !is_named(program)).collect();
    assert!(programs.len() > 10, "{programs:?}: the test does not read the manifests");
    assert!(missing.is_empty(), "{missing:?}");
}

/// The page of promises names files of tests, and behind each the tests in it.
#[test]
fn every_test_that_a_promise_names_exists() {
    let page = fs::read_to_string(root().join("docs/guarantees.md")).expect("docs/guarantees.md");
    let (mut missing, mut named) = (vec![], 0);
    for row in page.lines().filter(|line| line.starts_with("| ")) {
        let Some(tests) = row.split('|').nth(2) else { continue };
        let mut file = None;
        for code in tests.split('`').skip(1).step_by(2).filter(|code| !code.starts_with('.')) {
            if code.contains('/') {
                file = fs::read_to_string(root().join(code)).ok();
                named += usize::from(file.is_some());
                if file.is_none() {
                    missing.push(code.to_owned());
                }
                continue;
            }
            named += 1;
            let declared = format!("fn {code}(");
            if !file.as_ref().is_some_and(|text| text.contains(&declared)) {
                missing.push(code.to_owned());
            }
        }
    }
    assert!(missing.is_empty(), "docs/guarantees.md names what there is not: {missing:?}");
    assert!(named > 30, "only {named} found: the test does not read the page");
}

/// The tables of mistakes in `docs/deadlocks.md` say of each what the tests of the launcher make sure of.
#[test]
fn what_the_page_of_hangs_says_of_a_mistake_is_tested() {
    let page = fs::read_to_string(root().join("docs/deadlocks.md")).expect("docs/deadlocks.md");
    let tests = fs::read_to_string(root().join("tests/launcher/mistakes.rs")).expect("the tests' table");
    let rows = |heading: &str| -> Vec<Vec<String>> {
        let section =
            page.split(heading).nth(1).and_then(|rest| rest.split("\n## ").next()).expect("a section");
        let rows = section.lines().filter(|line| line.starts_with("| ") && line.contains('`'));
        rows.map(|row| row.split('|').map(|cell| cell.trim().trim_matches('`').to_owned()).collect())
            .collect()
    };
    let quoted = |text: &str| tests.contains(&format!("\"{text}\""));
    let lines = rows("\n## The most common\n");
    assert!(lines.len() > 20, "only {} found: the test does not read the page", lines.len());
    let unknown: Vec<&str> = lines.iter().map(|row| row[2].as_str()).filter(|line| !quoted(line)).collect();
    assert!(unknown.is_empty(), "no mistake has these first lines: {unknown:#?}");
    let of_others = rows("\n## What others print\n");
    assert_eq!(of_others.len(), 10);
    let unknown: Vec<&str> =
        of_others.iter().map(|row| row[2].as_str()).filter(|name| !quoted(name)).collect();
    assert!(unknown.is_empty(), "there are no such mistakes: {unknown:#?}");
}
