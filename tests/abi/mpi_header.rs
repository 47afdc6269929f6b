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
    let all = [
        ("cc", "c", "-std=c89"),
        ("cc", "c", "-std=c99"),
        ("cc", "c", "-std=c17"),
        ("c++", "cpp", "-std=c++11"),
    ];
    for (compiler, extension, standard) in all {
        let source = dir.join(format!("empty.{extension}"));
        let text = "#include <mpi.h>\n#include <mpi.h>\nint main(void) { return (int)MPI_Comm_c2f(MPI_COMM_NULL); }\n";
        fs::write(&source, text).expect("scratch");
        let out = Command::new(compiler)
            .args([standard, "-Wall", "-Wextra", "-Wpedantic", "-Wundef", "-Werror", "-fsyntax-only", "-I"])
            .arg(root().join("include"))
            .arg(&source)
            .output()
            .expect("a compiler");
        assert!(out.status.success(), "{compiler} {standard}: {}", String::from_utf8_lossy(&out.stderr));
    }
}

#[test]
fn no_compiler_takes_a_constant_in_place_of_weights_for_an_array() {
    let dir = scratch("weights");
    let program = "#include <mpi.h>
void graphs(MPI_Comm *to) {
    int some[1] = {0}, *no = MPI_UNWEIGHTED, *none = MPI_WEIGHTS_EMPTY;
    MPI_Dist_graph_create_adjacent(MPI_COMM_SELF, 1, some, MPI_UNWEIGHTED, 1, some, no, MPI_INFO_NULL, 0, to);
    MPI_Dist_graph_create_adjacent(MPI_COMM_SELF, 0, some, MPI_WEIGHTS_EMPTY, 0, some, none, MPI_INFO_NULL, 0, to);
    MPI_Dist_graph_create(MPI_COMM_SELF, 1, some, some, some, MPI_UNWEIGHTED, MPI_INFO_NULL, 0, to);
}
";
    fs::write(dir.join("weights.c"), program).expect("scratch");
    for level in ["-O0", "-O2"] {
        cc(&[level, "-Wall", "-Wextra", "-Werror", "-c", "-o", "weights.o", "weights.c"], &dir);
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
    let text = String::from_utf8(out.stdout).expect("text");
    let expected: String = constants.iter().map(|c| format!("{} {}\n", c.name, c.value)).collect();
    assert_eq!(text, expected + "status 32 12\n");
}
