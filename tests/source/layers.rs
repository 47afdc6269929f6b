//! The layers hold: a module of the engine names only modules that stand before it in [`LAYERS`].
//!
//! The test reads the tokens of every source file under `src/`, resolves each path that begins with `crate`, `$crate`,
//! `self` or `super`, and fails on every path into a module that stands later in the table. There are no exceptions;
//! only what is compiled for tests (`#[cfg(test)]`) is passed over.

use proc_macro2::{Delimiter, TokenStream, TokenTree};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// The modules of `src/`, lowest layer first. Within a layer, a module may name those that stand before it.
const LAYERS: &[(&str, &[&str])] = &[
    ("the processor", &["arch"]),
    ("atomics, cells, futexes", &["sync"]),
    ("constants, capacities, errors, handles", &["abi", "limits", "error", "errhandler", "info", "handles"]),
    ("control variables", &["variables"]),
    ("leaves", &["scratch", "datatype", "doorbell", "ring", "matching", "events"]),
    ("the job's memory, requests", &["shm", "heap", "placement", "request", "team"]),
    ("one rank", &["engine", "protocol"]),
    ("communicators", &["comm"]),
    ("the verbs of MPI", &["p2p", "coll", "rma", "io", "dynamic", "part"]),
    ("what tools see", &["tool"]),
    ("traces", &["trace"]),
    ("what programs in Rust see", &["api", "model"]),
];

/// One path in the source: where it stands, and the module of `src/` that it leads to.
struct Import {
    file: PathBuf,
    line: usize,
    from: String,
    to: String,
}

#[test]
fn every_module_has_a_layer() {
    let ranks = ranks();
    let unknown: Vec<_> =
        top_modules().into_iter().filter(|name| !ranks.contains_key(name.as_str())).collect();
    assert!(unknown.is_empty(), "these modules of src/ have no layer in tests/source/layers.rs: {unknown:?}");
    let gone: Vec<_> = ranks.keys().filter(|name| !top_modules().iter().any(|top| top == *name)).collect();
    assert!(gone.is_empty(), "tests/source/layers.rs names modules that src/ does not have: {gone:?}");
}

#[test]
fn no_import_points_up() {
    let ranks = ranks();
    let imports = imports();
    assert!(imports.len() > 300, "only {} imports found: the test does not read the source", imports.len());
    let wrong: Vec<String> = imports
        .iter()
        .filter(|import| match (ranks.get(import.from.as_str()), ranks.get(import.to.as_str())) {
            (Some(from), Some(to)) => to > from,
            _ => false,
        })
        .map(|import| {
            format!("{}:{}: {} names {}", import.file.display(), import.line, import.from, import.to)
        })
        .collect();
    assert!(
        wrong.is_empty(),
        "{} imports point up (order of the layers: tests/source/layers.rs):\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}

#[test]
fn paths_are_resolved() {
    let source = "
        use crate::{ring::{self, Producer}, error::Result as R, Error};
        use super::super::comm::Comm;
        mod inner { use super::super::super::events; use super::own; fn f() { $crate::shm::x(); let y = crate::api::Y; } }
        #[cfg(test)] mod tests { use crate::trace; }
        #[cfg(test)] use crate::tool;
        /// Words about crate::coll.
        fn g() { self::helper(); }
    ";
    let reexports = BTreeMap::from([("Error".to_owned(), "error".to_owned())]);
    let mut found = Vec::new();
    let module = ["engine".to_owned(), "rx".to_owned()];
    scan(source.parse().expect("tokens"), &module, &reexports, &mut |to, _| found.push(to.to_owned()));
    found.retain(|to| to != "engine");
    assert_eq!(found, ["ring", "error", "error", "comm", "events", "shm", "api"]);
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The place of each module in the order of the table.
fn ranks() -> BTreeMap<&'static str, usize> {
    LAYERS.iter().flat_map(|(_, modules)| *modules).enumerate().map(|(rank, name)| (*name, rank)).collect()
}

fn top_modules() -> Vec<String> {
    let entries = fs::read_dir(root().join("src")).expect("src is readable");
    let names = entries.map(|entry| entry.expect("an entry").file_name().into_string().expect("UTF-8"));
    names.map(|name| name.trim_end_matches(".rs").to_owned()).filter(|name| name != "lib").collect()
}

/// All imports between different modules of `src/`.
fn imports() -> Vec<Import> {
    let library = fs::read_to_string(root().join("src/lib.rs")).expect("src/lib.rs is readable");
    let reexports = reexports(library.parse().expect("src/lib.rs is made of tokens"));
    let mut files = Vec::new();
    files_below(&root().join("src"), &mut files);
    let mut imports = Vec::new();
    for file in files {
        let relative = file.strip_prefix(root().join("src")).expect("below src");
        let module = module_of(relative);
        if module.is_empty() || is_for_tests(&file) {
            continue;
        }
        let text = fs::read_to_string(&file).expect("a source file is UTF-8");
        let tokens = text.parse().unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        scan(tokens, &module, &reexports, &mut |to, line| {
            if to != module[0] {
                imports.push(Import {
                    file: Path::new("src").join(relative),
                    line,
                    from: module[0].clone(),
                    to: to.to_owned(),
                });
            }
        });
    }
    imports
}

fn files_below(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("a folder is readable") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            files_below(&path, files);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
}

/// `ring/producer.rs` is the module `ring::producer`.
fn module_of(relative: &Path) -> Vec<String> {
    let path = relative.with_extension("");
    let mut names: Vec<String> = path.iter().map(|name| name.to_string_lossy().into_owned()).collect();
    if matches!(names.last().map(String::as_str), Some("mod" | "lib")) {
        names.pop();
    }
    names
}

/// Whether the file's parent declares it, or a folder above it, for tests only.
fn is_for_tests(file: &Path) -> bool {
    let name = file.file_stem().unwrap_or_default().to_string_lossy();
    let folder = file.parent().expect("below src");
    let parents = [folder.join("mod.rs"), folder.with_extension("rs"), folder.join("lib.rs")];
    parents.iter().filter(|parent| *parent != file).filter_map(|parent| fs::read_to_string(parent).ok()).any(
        |text| {
            let lines: Vec<&str> = text.lines().map(str::trim).collect();
            lines.windows(3).any(|window| {
                let declares = |line: &str| line.ends_with(&format!("mod {name};"));
                let cfg = |line: &str| {
                    line.starts_with("#[cfg(") && line.contains("test") && !line.contains("not(test")
                };
                (declares(window[2]) && (cfg(window[1]) || (window[1].starts_with("#[") && cfg(window[0]))))
                    || (declares(window[1]) && cfg(window[0]))
            })
        },
    )
}

/// What `lib.rs` exports under the crate's own name: item → module.
fn reexports(tokens: TokenStream) -> BTreeMap<String, String> {
    let tokens: Vec<TokenTree> = tokens.into_iter().collect();
    let mut names = BTreeMap::new();
    for (at, token) in tokens.iter().enumerate() {
        if !is_word(token, "use") {
            continue;
        }
        let TokenTree::Ident(module) = &tokens[at + 1] else { continue };
        for token in tokens[at + 2..].iter().take_while(|token| !is_mark(token, ';')) {
            let inner: Vec<TokenTree> = match token {
                TokenTree::Group(group) => group.stream().into_iter().collect(),
                other => vec![other.clone()],
            };
            for token in inner {
                if let TokenTree::Ident(name) = token {
                    names.insert(name.to_string(), module.to_string());
                }
            }
        }
    }
    names
}

/// Calls `found` with the module of `src/`, and the line, of every path in `tokens` that leads out of `module`.
fn scan(
    tokens: TokenStream,
    module: &[String],
    reexports: &BTreeMap<String, String>,
    found: &mut dyn FnMut(&str, usize),
) {
    let tokens: Vec<TokenTree> = tokens.into_iter().collect();
    let mut at = 0;
    while at < tokens.len() {
        if is_mark(&tokens[at], '#') {
            let (after, for_tests) = skip_attribute(&tokens, at);
            at = if for_tests { skip_item(&tokens, after) } else { after };
            continue;
        }
        match &tokens[at] {
            TokenTree::Ident(word) if word == "mod" => {
                if let (Some(TokenTree::Ident(name)), Some(TokenTree::Group(body))) =
                    (tokens.get(at + 1), tokens.get(at + 2))
                {
                    let mut inner = module.to_vec();
                    inner.push(name.to_string());
                    scan(body.stream(), &inner, reexports, found);
                    at += 3;
                    continue;
                }
            }
            TokenTree::Ident(word) if !follows_separator(&tokens, at) => {
                let line = word.span().start().line;
                let base = match word.to_string().as_str() {
                    "crate" => Some(Vec::new()),
                    "self" => Some(module.to_vec()),
                    "super" => Some(module[..module.len() - 1].to_vec()),
                    _ => None,
                };
                if let Some(base) = base {
                    resolve(&tokens[at + 1..], base, line, reexports, found);
                }
            }
            TokenTree::Group(group) => scan(group.stream(), module, reexports, found),
            _ => {}
        }
        at += 1;
    }
}

/// Follows `::name`, `::super` and `::{…}` behind a path's beginning.
fn resolve(
    rest: &[TokenTree],
    base: Vec<String>,
    line: usize,
    reexports: &BTreeMap<String, String>,
    found: &mut dyn FnMut(&str, usize),
) {
    let climbs = starts_path(rest) && is_word(&rest[2], "super");
    if let (Some(first), false) = (base.first(), climbs) {
        return found(first, line);
    }
    if !starts_path(rest) {
        return;
    }
    match &rest[2] {
        _ if climbs => {
            resolve(&rest[3..], base[..base.len().saturating_sub(1)].to_vec(), line, reexports, found);
        }
        TokenTree::Ident(name) => found(reexports.get(&name.to_string()).unwrap_or(&name.to_string()), line),
        TokenTree::Group(group) if group.delimiter() == Delimiter::Brace => {
            let mut first_of_branch = true;
            for token in group.stream() {
                match &token {
                    TokenTree::Ident(name) if first_of_branch => {
                        found(
                            reexports.get(&name.to_string()).unwrap_or(&name.to_string()),
                            name.span().start().line,
                        );
                        first_of_branch = false;
                    }
                    token if is_mark(token, ',') => first_of_branch = true,
                    _ => {}
                }
            }
        }
        _ => {}
    }
}

fn starts_path(rest: &[TokenTree]) -> bool {
    rest.len() > 2 && is_mark(&rest[0], ':') && is_mark(&rest[1], ':')
}

fn follows_separator(tokens: &[TokenTree], at: usize) -> bool {
    at > 0 && is_mark(&tokens[at - 1], ':')
}

/// The index behind the attribute at `at`, and whether it says that its item is for tests only.
fn skip_attribute(tokens: &[TokenTree], at: usize) -> (usize, bool) {
    let group = tokens[at + 1..].iter().take(2).position(|token| matches!(token, TokenTree::Group(_)));
    let Some(offset) = group else { return (at + 1, false) };
    let TokenTree::Group(group) = &tokens[at + 1 + offset] else { return (at + 1, false) };
    let text: String = group.stream().to_string().split_whitespace().collect();
    (at + 2 + offset, text == "cfg(test)" || text.starts_with("cfg(all(test,"))
}

/// The index behind the item that begins at `at`: its `;`, or its block.
fn skip_item(tokens: &[TokenTree], at: usize) -> usize {
    let end = tokens[at..].iter().position(|token| {
        is_mark(token, ';')
            || matches!(token, TokenTree::Group(group) if group.delimiter() == Delimiter::Brace)
    });
    // `use a::{b};` ends with its semicolon.
    let end = end.map_or(tokens.len(), |offset| at + offset + 1);
    if is_word(&tokens[at], "use") && tokens.get(end).is_some_and(|token| is_mark(token, ';')) {
        end + 1
    } else {
        end
    }
}

fn is_mark(token: &TokenTree, mark: char) -> bool {
    matches!(token, TokenTree::Punct(punct) if punct.as_char() == mark)
}

fn is_word(token: &TokenTree, word: &str) -> bool {
    matches!(token, TokenTree::Ident(ident) if ident == word)
}
