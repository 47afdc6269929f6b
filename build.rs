//! Generates what is data: the ABI's constants as Rust, and the stubs of functions that are not there yet.

use std::fmt::Write as _;
use std::path::Path;
use std::{env, fs};

fn main() {
    let out = env::var("OUT_DIR").expect("cargo sets OUT_DIR");
    println!("cargo:rerun-if-changed=src/capi/abi/constants.csv");
    println!("cargo:rerun-if-changed=build.rs");
    let csv = fs::read_to_string("src/capi/abi/constants.csv")
        .expect("src/capi/abi/constants.csv is part of the source");
    fs::write(Path::new(&out).join("constants.rs"), constants(&csv)).expect("OUT_DIR is writable");
}

/// One `pub const` a row: handles and addresses as `usize`, the rest as `i32`.
fn constants(csv: &str) -> String {
    let mut text = String::new();
    for row in csv.lines().skip(1) {
        let mut fields = row.split(',');
        let (Some(name), Some(kind), Some(value)) = (fields.next(), fields.next(), fields.next()) else {
            panic!("constants.csv: expected name,kind,value in {row:?}");
        };
        let ty = match kind {
            "int:MPI_Offset" => "i64",
            k if k.contains("handle:") || k.starts_with("mpi_t_handle") => "usize",
            k if k.starts_with("pointer:")
                || k.starts_with("buffer_address")
                || k.starts_with("callback:") =>
            {
                "usize"
            }
            _ => "i32",
        };
        writeln!(text, "pub const {name}: {ty} = {value};").expect("writing to a string");
    }
    text
}
