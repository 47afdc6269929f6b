//! `include/mpi-ext.h` declares what the library has beyond the standard.

use crate::abi;
use crate::common::{root, scratch};
use std::fs;
use std::process::Command;

fn header() -> String {
    fs::read_to_string(root().join("include/mpi-ext.h")).expect("include/mpi-ext.h")
}

#[test]
fn it_declares_every_function_of_the_table_twice_and_no_other() {
    let csv = fs::read_to_string(root().join("crates/perusal-abi/src/abi/extensions.csv")).expect("a table");
    let text = header();
    let mut declared: Vec<&str> = text.lines().filter(|line| line.ends_with(");")).collect();
    for function in abi::functions(&csv) {
        for prefix in ["", "P"] {
            let prototype = format!("int {prefix}{}({});", function.name, function.arguments.join(", "));
            let before = declared.len();
            declared.retain(|line| *line != prototype);
            assert_eq!(declared.len(), before - 1, "{prototype}");
        }
    }
    assert_eq!(declared, [""; 0], "the table does not have these");
}

#[test]
fn its_error_classes_are_the_library_s() {
    use perusal::error::{MPIX_ERR_PROC_FAILED, MPIX_ERR_PROC_FAILED_PENDING, MPIX_ERR_REVOKED};
    let classes = [
        ("MPIX_ERR_PROC_FAILED", MPIX_ERR_PROC_FAILED),
        ("MPIX_ERR_PROC_FAILED_PENDING", MPIX_ERR_PROC_FAILED_PENDING),
        ("MPIX_ERR_REVOKED", MPIX_ERR_REVOKED),
    ];
    for (name, value) in classes {
        let line = format!("#define {name} {value}");
        assert!(header().lines().any(|there| there == line), "{line}");
    }
}

#[test]
fn it_compiles_pedantically_as_c_and_as_cxx() {
    let dir = scratch("extension_header");
    for (compiler, extension, standard) in [("cc", "c", "-std=c99"), ("c++", "cpp", "-std=c++11")] {
        let source = dir.join(format!("empty.{extension}"));
        let text = "#include <mpi-ext.h>\n#include <mpi.h>\n#include <mpi-ext.h>\nint main(void) { return MPIX_ERR_REVOKED; }\n";
        fs::write(&source, text).expect("scratch");
        let out = Command::new(compiler)
            .args([standard, "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-fsyntax-only", "-I"])
            .arg(root().join("include"))
            .arg(&source)
            .output()
            .expect("a compiler");
        assert!(out.status.success(), "{compiler} {standard}: {}", String::from_utf8_lossy(&out.stderr));
    }
}
