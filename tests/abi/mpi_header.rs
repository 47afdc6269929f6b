//! `include/mpi.h` says what the tables say, and a C compiler reads from it what the library means.

use crate::abi;
use crate::common::{cc, root, scratch};
use crate::header;
use std::fs;
use std::process::Command;

fn generated() -> String {
    let read = |name: &str| {
        fs::read_to_string(root().join("crates/perusal-abi/src/abi").join(name)).expect("a table")
    };
    header::header(&read("types.csv"), &read("constants.csv"), &abi::functions(&read("functions.csv")))
}

/// `cargo xtask generate` writes the header.
#[test]
fn the_header_is_what_the_tables_give() {
    let path = root().join("include/mpi.h");
    let text = generated();
    if std::env::var_os("PERUSAL_GENERATE").is_some() {
        fs::create_dir_all(root().join("include")).expect("a writable tree");
        fs::write(&path, &text).expect("a writable header");
    }
    let there = fs::read_to_string(&path).expect("include/mpi.h");
    assert!(there == text, "include/mpi.h is not current: run `cargo xtask generate`");
}

#[test]
fn the_header_compiles_pedantically_as_c_and_as_cxx() {
    let dir = scratch("header");
    for (compiler, extension, standard) in
        [("cc", "c", "-std=c99"), ("cc", "c", "-std=c17"), ("c++", "cpp", "-std=c++11")]
    {
        let source = dir.join(format!("empty.{extension}"));
        fs::write(&source, "#include <mpi.h>\n#include <mpi.h>\nint main(void) { return 0; }\n")
            .expect("scratch");
        let out = Command::new(compiler)
            .args([standard, "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-fsyntax-only", "-I"])
            .arg(root().join("include"))
            .arg(&source)
            .output()
            .expect("a compiler");
        assert!(out.status.success(), "{compiler} {standard}: {}", String::from_utf8_lossy(&out.stderr));
    }
}

#[test]
fn every_constant_has_in_c_the_value_of_the_table() {
    let csv = fs::read_to_string(root().join("crates/perusal-abi/src/abi/constants.csv")).expect("a table");
    let constants = header::constants(&csv);
    assert!(constants.len() >= 365);
    let lines: String = constants
        .iter()
        .map(|c| format!("    printf(\"%s %lld\\n\", \"{0}\", (long long)(intptr_t){0});\n", c.name))
        .collect();
    let program = format!(
        "#include <mpi.h>\n#include <stdio.h>\nint main(void) {{\n{lines}    printf(\"status %zu %zu\\n\", \
         sizeof(MPI_Status), offsetof(MPI_Status, MPI_internal));\n    return 0;\n}}\n"
    );
    let dir = scratch("constants");
    fs::write(dir.join("constants.c"), program).expect("scratch");
    cc(&["-Wall", "-Werror", "-o", "constants", "constants.c"], &dir);
    let out = Command::new(dir.join("constants")).output().expect("the program just built");
    let told = String::from_utf8(out.stdout).expect("text");
    let expected: String = constants.iter().map(|c| format!("{} {}\n", c.name, c.value)).collect();
    assert_eq!(told, expected + "status 32 12\n");
}
