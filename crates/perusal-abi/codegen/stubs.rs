//! Source text of the functions that are not implemented.

use crate::abi::Function;
use std::collections::BTreeSet;
use std::fmt::Write as _;

/// One `export!` a missing function, and their names as `NAMES`.
pub fn source(functions: &[Function], implemented: &BTreeSet<String>) -> String {
    let missing: Vec<&Function> = functions.iter().filter(|f| !implemented.contains(&f.name)).collect();
    let mut text = String::from(
        "/// Every stub's name, in the order of the ABI's table.\npub const NAMES: &[&str] = &[\n",
    );
    for function in &missing {
        writeln!(text, "    \"{}\",", function.name).expect("writing to a string");
    }
    text.push_str("];\n");
    for function in missing {
        stub(&mut text, function);
    }
    text
}

fn stub(text: &mut String, function: &Function) {
    let Function { name, returns, arguments } = function;
    let fixed: Vec<&String> = arguments.iter().filter(|a| *a != "...").collect();
    let list: Vec<String> =
        fixed.iter().enumerate().map(|(i, a)| format!("a{i}: {}", rust_type(a))).collect();
    let body = if name.starts_with("MPI_T_") {
        "crate::abi::MPI_T_ERR_NOT_SUPPORTED".to_owned()
    } else {
        let raise = format!(
            "crate::capi::boundary::raise({}, \"{name}\", crate::Error::Unsupported(\"{name}\"))",
            object(&fixed)
        );
        if returns == "int" { raise } else { format!("{raise} as {}", rust_type(&format!("{returns} x"))) }
    };
    let result = rust_type(&format!("{returns} x"));
    let list = list.join(", ");
    writeln!(text, "crate::export! {{ fn {name}({list}) -> {result} {{ {body} }} }}")
        .expect("writing to a string");
}

/// The object whose error handler hears of it: the first communicator, window, file or session that is passed.
fn object(arguments: &[&String]) -> String {
    for (i, argument) in arguments.iter().enumerate() {
        if argument.contains(['*', '[']) {
            continue;
        }
        match argument.split_whitespace().next() {
            Some("MPI_Comm") => return format!("a{i}"),
            Some("MPI_Win") => return format!("crate::capi::boundary::Source::Win(a{i})"),
            Some("MPI_File") => return format!("crate::capi::boundary::Source::File(a{i})"),
            Some("MPI_Session") => return format!("crate::capi::boundary::Source::Session(a{i})"),
            _ => {}
        }
    }
    // Opening a file has no file yet: the standard raises such errors on MPI_FILE_NULL.
    if arguments.iter().any(|a| a.starts_with("MPI_File *")) {
        return "crate::capi::boundary::Source::File(crate::abi::MPI_FILE_NULL)".to_owned();
    }
    "crate::abi::MPI_COMM_SELF".to_owned()
}

/// A Rust type that a C declaration's value is passed in alike.
fn rust_type(declaration: &str) -> &'static str {
    if declaration.contains(['*', '[']) {
        return "*mut core::ffi::c_void";
    }
    match declaration.trim_start_matches("const ").split_whitespace().next().expect("a type") {
        "int" | "MPI_T_cb_safety" | "MPI_T_source_order" => "core::ffi::c_int",
        "MPI_Count" | "MPI_Offset" => "i64",
        "MPI_Aint" => "isize",
        "double" => "f64",
        handle if handle.starts_with("MPI_") => "usize",
        other => panic!("functions.csv: unknown type {other:?}"),
    }
}
