//! Compiles what is in C: arithmetic on `long double`, which Rust has no type for.

use std::io::ErrorKind;

const SOURCE: &str = "src/datatype/op/long_double.c";

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed={SOURCE}");
    let mut build = cc::Build::new();
    // Each operation is rounded on its own, as Rust's are; nothing is exported from the shared library.
    build.file(SOURCE).std("c11").opt_level(2).flag("-ffp-contract=off").flag("-fvisibility=hidden");
    build.cargo_output(true).warnings(true);
    let compiler = build.get_compiler();
    match compiler.to_command().arg("--version").output() {
        Err(error) if error.kind() == ErrorKind::NotFound => {
            // `cargo check` links nothing, so it must not need the compiler of another architecture.
            println!(
                "cargo::warning={} is not installed, so {SOURCE} is not compiled: checks work, and linking will miss \
                 `perusal_long_double_sum` and its like",
                compiler.path().display()
            );
            // A file that is never there: as soon as there is a compiler, this script finds it.
            println!("cargo::rerun-if-changed=no-c-compiler");
        }
        _ => build.compile("perusal_long_double"),
    }
}
