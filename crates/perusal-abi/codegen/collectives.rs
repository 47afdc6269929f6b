//! Source text of the collective functions. They differ in their counts' width and in when the operation runs; what an
//! operation's arguments mean is written once, as the function of its name in `crates/perusal-abi/src/collective`.

use crate::abi::Function;
use std::fmt::Write as _;

/// The operations, as they are called behind `MPI_` or, with a small first letter, behind `MPI_I`.
const OPERATIONS: [&str; 22] = [
    "Barrier",
    "Bcast",
    "Gather",
    "Gatherv",
    "Scatter",
    "Scatterv",
    "Allgather",
    "Allgatherv",
    "Alltoall",
    "Alltoallv",
    "Alltoallw",
    "Reduce",
    "Allreduce",
    "Reduce_scatter",
    "Reduce_scatter_block",
    "Scan",
    "Exscan",
    "Neighbor_allgather",
    "Neighbor_allgatherv",
    "Neighbor_alltoall",
    "Neighbor_alltoallv",
    "Neighbor_alltoallw",
];

/// Operations whose blocking forms have a short way (`crates/perusal-abi/src/collective/short.rs`).
const SHORT: [&str; 6] = ["barrier", "bcast", "allgather", "alltoall", "reduce", "allreduce"];

/// The operation that a function of this name is of, in small letters, and the way to run it.
fn operation(name: &str) -> Option<(String, &'static str)> {
    let name = name.strip_prefix("MPI_")?;
    let name = name.strip_suffix("_c").unwrap_or(name);
    let (name, persistent) = match name.strip_suffix("_init") {
        Some(rest) => (rest, true),
        None => (name, false),
    };
    let known = |name: &str| OPERATIONS.iter().find(|o| **o == name).map(|o| o.to_lowercase());
    if let Some(operation) = known(name) {
        return Some((operation, if persistent { "prepare" } else { "run" }));
    }
    let mut rest = name.strip_prefix('I')?.chars();
    let capital: String = rest.next()?.to_uppercase().chain(rest).collect();
    known(&capital).map(|operation| (operation, "start"))
}

/// Whether [`source`] has this function.
pub fn has(name: &str) -> bool {
    operation(name).is_some()
}

/// One `export!` a function.
pub fn source(functions: &[Function]) -> String {
    let mut text = String::new();
    for function in functions {
        let Some((operation, way)) = operation(&function.name) else { continue };
        let names: Vec<&str> = function.arguments.iter().map(|a| name_of(a)).collect();
        let typed: Vec<String> = function
            .arguments
            .iter()
            .zip(&names)
            .map(|(a, name)| format!("{name}: {}", rust_type(a)))
            .collect();
        let operands: Vec<&str> =
            names.iter().copied().filter(|name| !["comm", "info", "request"].contains(name)).collect();
        let rest = match way {
            "run" => "",
            "start" => ", request",
            _ => ", info, request",
        };
        let name = &function.name;
        let (typed, operands) = (typed.join(", "), operands.join(", "));
        let mut call = format!("{way}(comm, |comm| {operation}(comm, {operands}){rest})");
        if way == "run" && SHORT.contains(&operation.as_str()) {
            call = format!(
                "match short::{operation}(comm, {operands}) {{ Some(done) => done, None => {call} }}"
            );
        }
        writeln!(
            text,
            "crate::export! {{
    /// MPI 5.0 §6, §8.6.
    fn {name}({typed}) raises(comm) {{
        // SAFETY: the caller's arguments are what the standard asks of them.
        unsafe {{ {call} }}
    }}
}}"
        )
        .expect("writing to a string");
    }
    text
}

fn name_of(declaration: &str) -> &str {
    let end = declaration.find('[').unwrap_or(declaration.len());
    declaration[..end].rsplit([' ', '*']).next().unwrap_or_default()
}

fn rust_type(declaration: &str) -> String {
    let pointers = declaration.matches(['*', '[']).count();
    let (qualifier, bare) = match declaration.strip_prefix("const ") {
        Some(bare) => ("*const ", bare),
        None => ("*mut ", declaration),
    };
    let scalar = match bare.split([' ', '*']).next().unwrap_or_default() {
        "int" => "core::ffi::c_int",
        "void" => "core::ffi::c_void",
        "MPI_Count" => "i64",
        "MPI_Aint" => "isize",
        handle if handle.starts_with("MPI_") => "usize",
        other => panic!("functions.csv: unknown type {other:?}"),
    };
    format!("{}{scalar}", qualifier.repeat(pointers))
}
