//! A module that has a table of its files names all of them there, and no others.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// The files of Rust below a folder that have modules of their own.
fn roots(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("a readable source folder") {
        let path = entry.expect("a readable entry").path();
        let name = path.file_name().expect("a name").to_string_lossy().into_owned();
        if path.is_dir() {
            roots(&path, found);
        } else if ["mod.rs", "lib.rs", "main.rs"].contains(&name.as_str()) {
            found.push(path);
        }
    }
}

/// The words between backticks.
fn in_backticks(text: &str) -> impl Iterator<Item = String> {
    text.split('`').skip(1).step_by(2).map(|word| word.trim_start_matches("mod@").to_owned())
}

/// The modules that a file declares, and whether each is for tests alone.
fn declared(text: &str) -> Vec<(String, bool)> {
    let lines = text.lines().collect::<Vec<_>>();
    let of_tests = |at: usize| {
        let attributes = lines[..at].iter().rev().take_while(|line| line.starts_with("#["));
        attributes.copied().any(|line| line.starts_with("#[cfg(test)]") || line.starts_with("#[cfg(all(test"))
    };
    let modules = lines.iter().enumerate().filter_map(|(at, line)| {
        let (before, name) = line.strip_suffix(';')?.rsplit_once("mod ")?;
        (before.is_empty() || before.starts_with("pub")).then(|| (name.to_owned(), of_tests(at)))
    });
    modules.collect()
}

#[test]
fn a_table_of_modules_has_all_of_them_and_no_others() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let (mut files, mut wrong, mut tables) = (Vec::new(), Vec::new(), 0);
    roots(&root.join("src"), &mut files);
    roots(&root.join("crates"), &mut files);
    roots(&root.join("xtask/src"), &mut files);
    for file in files {
        let text = fs::read_to_string(&file).expect("readable text");
        let page: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix("//! ")).collect();
        if !page.iter().any(|line| line.starts_with("| file |") || line.starts_with("| modules |")) {
            continue;
        }
        tables += 1;
        let (modules, page) = (declared(&text), page.join("\n"));
        let named: BTreeSet<String> = in_backticks(&page).collect();
        for (module, _) in modules.iter().filter(|(module, of_tests)| !of_tests && !named.contains(module)) {
            wrong.push(format!("{}: `{module}` is missing", file.display()));
        }
        let is_there = |name: &String| name == "mod" || modules.iter().any(|(module, _)| module == name);
        for row in page.lines().filter(|line| line.starts_with("| ")) {
            let first = row.split('|').nth(1).unwrap_or_default();
            for name in in_backticks(first).filter(|name| !is_there(name)) {
                wrong.push(format!("{}: there is no module `{name}`", file.display()));
            }
        }
    }
    assert!(tables > 15, "only {tables} found: the test does not read the source");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
