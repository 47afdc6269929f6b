//! Generates the exported functions from the tables in `src/abi`.

#[path = "codegen/abi.rs"]
mod abi;
#[path = "codegen/bindings.rs"]
mod bindings;
#[path = "codegen/declarations.rs"]
mod declarations;

use std::path::PathBuf;
use std::process::Command;
use std::{env, fs};

/// The functions whose calls have events.
const FUNCTIONS: &str = "../../src/events/functions.rs";

fn main() {
    let out = PathBuf::from(env::var("OUT_DIR").expect("cargo sets OUT_DIR"));
    for path in ["src/abi", "build.rs", "codegen"] {
        println!("cargo:rerun-if-changed={path}");
    }
    let mut functions = abi::functions(&read("src/abi/functions.csv"));
    // What `mpi-ext.h` declares.
    functions.extend(abi::functions(&read("src/abi/extensions.csv")));
    let extensions = read("src/abi/extension_bindings.csv");
    let (_, extensions) = extensions.split_once('\n').expect("a line that names the columns");
    println!("cargo:rerun-if-changed={FUNCTIONS}");
    let bindings =
        bindings::source(&functions, &(read("src/abi/bindings.csv") + extensions), &read(FUNCTIONS));
    fs::write(out.join("bindings.rs"), bindings).expect("OUT_DIR is writable");
    link_arguments();
}

/// The shared library's name, and the weak aliases that rustc's own list of exported symbols does not know
/// (`docs/abi.md`).
fn link_arguments() {
    let root = env::var("CARGO_MANIFEST_DIR").expect("cargo sets CARGO_MANIFEST_DIR");
    println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libmpi_abi.so.1");
    println!("cargo:rustc-cdylib-link-arg=-Wl,--version-script={root}/codegen/exports.map");
    // That list comes on top of rustc's own, which GNU ld refuses. rustc links with its own lld by default on x86-64,
    // and must be asked to elsewhere.
    if env::var("CARGO_CFG_TARGET_ARCH").as_deref() != Ok("x86_64") {
        let host = env::var("HOST").expect("cargo sets HOST");
        println!("cargo:rustc-cdylib-link-arg=-B{}/lib/rustlib/{host}/bin/gcc-ld", sysroot());
        println!("cargo:rustc-cdylib-link-arg=-fuse-ld=lld");
    }
}

/// The toolchain's folder.
fn sysroot() -> String {
    let rustc = env::var("RUSTC").expect("cargo sets RUSTC");
    let said = Command::new(rustc).args(["--print", "sysroot"]).output().expect("rustc runs");
    String::from_utf8_lossy(&said.stdout).trim().to_owned()
}

fn read(path: &str) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{path} is part of the source: {error}"))
}
