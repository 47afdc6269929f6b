//! Files that follow from tables: the ABI's constants, `mpi.h`, and the lists in pages.

use crate::shell::{Result, cargo, read, run, write};
use crate::{abi, header};
use std::fmt::Write as _;

/// Where the ABI's tables are.
const TABLES: &str = "crates/perusal-abi/src/abi";

/// `generate [--check]`
pub fn main(arguments: &[String]) -> Result {
    let check = match arguments {
        [] => false,
        [option] if option == "--check" => true,
        _ => return Err("expected nothing, or --check".into()),
    };
    let constants = read(format!("{TABLES}/constants.csv"))?;
    let functions = abi::functions(&read(format!("{TABLES}/functions.csv"))?);
    let files = [
        ("src/abi/constants.rs", rust_constants(&constants)?),
        ("include/mpi.h", header::header(&read(format!("{TABLES}/types.csv"))?, &constants, &functions)),
    ];
    let mut old = Vec::new();
    for (path, text) in files {
        if read(path).is_ok_and(|there| there == text) {
            continue;
        }
        if check {
            old.push(path);
        } else {
            write(path, text)?;
            println!("{path} is written anew");
        }
    }
    if !old.is_empty() {
        return Err(format!("not current: {} (run: cargo xtask generate)", old.join(", ")));
    }
    pages(check)
}

/// The lists in `docs/` follow from tables in Rust, which the tests that check them can read.
fn pages(check: bool) -> Result {
    let tests = [
        ("perusal-abi", "abi", "docs::"),
        ("perusal-cli", "launcher", "variables_docs::"),
        ("perusal-cli", "events", "tool_docs::"),
    ];
    for (package, program, test) in tests {
        let mut cargo = cargo(["test", "--quiet", "--locked", "--package", package, "--test", program, test]);
        if !check {
            cargo.env("PERUSAL_GENERATE", "1");
        }
        run(cargo.stdout(std::process::Stdio::null()))?;
    }
    println!("the lists in docs/ are current");
    Ok(())
}

/// One `pub const` a row: handles and addresses as `usize`, the rest as integers of C's.
fn rust_constants(csv: &str) -> Result<String> {
    let mut text = String::new();
    for row in csv.lines().skip(1) {
        let mut fields = row.split(',');
        let (Some(name), Some(kind), Some(value)) = (fields.next(), fields.next(), fields.next()) else {
            return Err(format!("constants.csv: expected name,kind,value in {row:?}"));
        };
        let address = ["pointer:", "buffer_address", "callback:", "mpi_t_handle"];
        let ty = match kind {
            "int:MPI_Offset" => "i64",
            _ if kind.contains("handle:") || address.iter().any(|start| kind.starts_with(start)) => "usize",
            _ => "i32",
        };
        writeln!(text, "pub const {name}: {ty} = {value};").expect("writing to a string");
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shell::root;

    #[test]
    fn the_constants_in_rust_are_what_the_table_gives() {
        let csv = read(root().join(TABLES).join("constants.csv")).expect("a table");
        let there = read(root().join("src/abi/constants.rs")).expect("a generated file");
        assert!(there == rust_constants(&csv).expect("rows"), "not current: run `cargo xtask generate`");
    }
}
