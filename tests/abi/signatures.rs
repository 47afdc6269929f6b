//! The Rust functions take what the C prototypes say: what no linker checks.

use crate::common::root;
use crate::{abi, bindings};
use std::collections::BTreeMap;
use std::fs;

fn table(name: &str) -> String {
    fs::read_to_string(root().join("crates/perusal-abi/src/abi").join(name)).expect("a table")
}

/// Argument types of every function that the bindings' generator writes.
fn written() -> BTreeMap<String, Vec<String>> {
    const HEAD: &str = "pub unsafe extern \"C\" fn ";
    let observed = include_str!("../../src/events/functions.rs");
    let text = bindings::source(&abi::functions(&table("functions.csv")), &table("bindings.csv"), observed);
    let mut found = BTreeMap::new();
    for (at, _) in text.match_indices(HEAD) {
        let rest = &text[at + HEAD.len()..];
        let open = rest.find('(').expect("arguments");
        let list = &rest[open + 1..matching(rest, open)];
        let types = split(list);
        let types = types.iter().map(|a| a.split_once(':').expect("name: type").1.trim().to_owned());
        let again = found.insert(rest[..open].to_owned(), types.collect());
        assert!(again.is_none(), "{} is written twice", &rest[..open]);
    }
    found
}

fn matching(text: &str, open: usize) -> usize {
    let mut depth = 0;
    for (at, c) in text[open..].char_indices() {
        match c {
            '(' => depth += 1,
            ')' if depth == 1 => return open + at,
            ')' => depth -= 1,
            _ => {}
        }
    }
    panic!("unbalanced parentheses");
}

/// Splits at commas outside brackets.
fn split(list: &str) -> Vec<String> {
    let mut parts = vec![String::new()];
    let mut depth = 0;
    for c in list.chars() {
        match c {
            '(' | '<' | '[' => depth += 1,
            ')' | ']' => depth -= 1,
            '>' if !parts.last().is_some_and(|p| p.ends_with('-')) => depth -= 1,
            ',' if depth == 0 => {
                parts.push(String::new());
                continue;
            }
            _ => {}
        }
        parts.last_mut().expect("never empty").push(c);
    }
    parts.retain(|p| !p.trim().is_empty());
    parts
}

/// What a machine passes: width and, for pointers, the width of what is pointed to where it matters.
fn shape_of_c(declaration: &str) -> String {
    let declaration = declaration.replace("const ", "");
    let base = declaration.split([' ', '*', '[']).next().unwrap_or_default();
    let scalar = match base {
        "int" | "MPI_T_cb_safety" | "MPI_T_source_order" => "int",
        "MPI_Count" | "MPI_Offset" => "i64",
        "MPI_Aint" => "isize",
        "char" => "char",
        "void" => "void",
        "double" => "double",
        "MPI_Status" => "status",
        // A pointer to what a callback gets, not a handle: it means something while the callback runs.
        "MPI_T_event_instance" => "*void",
        _ if base.ends_with("_function") || base.ends_with("_function_c") => return "callback".to_owned(),
        _ => "handle",
    };
    let stars = declaration.matches(['*', '[']).count();
    if declaration.contains("[][3]") {
        return "*int".to_owned();
    }
    format!("{}{scalar}", "*".repeat(stars))
}

fn shape_of_rust(ty: &str) -> String {
    let mut ty = ty.trim();
    let mut stars = String::new();
    while let Some(rest) = ty.strip_prefix("*mut ").or_else(|| ty.strip_prefix("*const ")) {
        stars.push('*');
        ty = rest.trim();
    }
    let scalar = match ty.rsplit("::").next().unwrap_or(ty) {
        "c_int" | "i32" | "c_int; 3]" => "int",
        "i64" | "MPI_Count" | "MPI_Offset" => "i64",
        "isize" | "MPI_Aint" => "isize",
        "c_char" => "char",
        "c_void" => "void",
        "f64" => "double",
        "MPI_Status" => "status",
        "usize" => "handle",
        name if name.starts_with("MPI_") && !name.contains("unction") => "handle",
        _ => "callback",
    };
    format!("{stars}{scalar}")
}

/// A callback may be kept as the address that it is: `*void`, `handle` (a `usize`), or a function type.
fn compatible(c: &str, rust: &str) -> bool {
    c == rust || c == "callback" && ["*void", "handle"].contains(&rust)
}

#[test]
fn every_written_function_takes_the_arguments_of_its_prototype() {
    let table: BTreeMap<String, Vec<String>> =
        abi::functions(&table("functions.csv")).into_iter().map(|f| (f.name, f.arguments)).collect();
    let written = written();
    assert_eq!(written.len(), table.len());
    let mut wrong = Vec::new();
    for (name, types) in written {
        let Some(arguments) = table.get(&name) else {
            wrong.push(format!("{name}: not in the ABI"));
            continue;
        };
        let c: Vec<String> = arguments.iter().filter(|a| *a != "...").map(|a| shape_of_c(a)).collect();
        let rust: Vec<String> = types.iter().map(|t| shape_of_rust(t)).collect();
        if c.len() != rust.len() || !c.iter().zip(&rust).all(|(c, r)| compatible(c, r)) {
            wrong.push(format!("{name}: C has {c:?}, Rust {rust:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
