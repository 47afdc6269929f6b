//! Every function of the ABI is in both libraries: `PMPI_X` strong, `MPI_X` weak and at the same place; and nothing but
//! functions of MPI and PERUSE is exported.

use crate::abi;
use crate::common::{built, root, success};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

/// Global symbols that are defined: name to (binding, type, value).
fn symbols(library: &Path, which: &str) -> BTreeMap<String, (String, String, String)> {
    let out =
        Command::new("readelf").args(["-W", which]).arg(library).output().expect("readelf, from binutils");
    let text = success(out, "readelf");
    let mut found = BTreeMap::new();
    for line in text.lines() {
        let fields: Vec<&str> = line.split_whitespace().collect();
        if let [_, value, _, kind, binding @ ("GLOBAL" | "WEAK"), "DEFAULT", section, name, ..] = fields[..]
            && section != "UND"
        {
            let name = name.split('@').next().unwrap_or(name);
            found.insert(name.to_owned(), (binding.to_owned(), kind.to_owned(), value.to_owned()));
        }
    }
    assert!(!found.is_empty(), "readelf showed symbols of {}", library.display());
    found
}

fn names() -> Vec<String> {
    let csv = fs::read_to_string(root().join("crates/perusal-abi/src/abi/functions.csv")).expect("a table");
    let more = fs::read_to_string(root().join("crates/perusal-abi/src/abi/extensions.csv")).expect("a table");
    [csv, more].iter().flat_map(|csv| abi::functions(csv)).map(|f| f.name).collect()
}

fn every_function_is_weak_with_a_strong_twin(library: &Path, which: &str) {
    let symbols = symbols(library, which);
    for name in names() {
        let (binding, kind, value) = symbols.get(&name).unwrap_or_else(|| panic!("{name} is missing"));
        let twin = symbols.get(&format!("P{name}")).unwrap_or_else(|| panic!("P{name} is missing"));
        assert_eq!((binding.as_str(), kind.as_str()), ("WEAK", "FUNC"), "{name}");
        assert_eq!((twin.0.as_str(), twin.1.as_str()), ("GLOBAL", "FUNC"), "P{name}");
        assert_eq!(value, &twin.2, "{name} and P{name} are one function");
    }
}

#[test]
fn the_shared_library_has_every_function_twice() {
    every_function_is_weak_with_a_strong_twin(&built("libperusal_abi.so"), "--dyn-syms");
}

#[test]
fn the_static_library_has_every_function_twice() {
    every_function_is_weak_with_a_strong_twin(&built("libperusal_abi.a"), "-s");
}

#[test]
fn the_shared_library_exports_nothing_else_and_no_data() {
    let known: std::collections::BTreeSet<String> =
        names().into_iter().flat_map(|n| [format!("P{n}"), n]).collect();
    for (name, (_, kind, _)) in symbols(&built("libperusal_abi.so"), "--dyn-syms") {
        assert!(known.contains(&name) || name.starts_with("PERUSE_"), "{name} is exported");
        assert_eq!(kind, "FUNC", "{name}: the ABI has no data symbols");
    }
}

#[test]
fn the_shared_library_is_named_as_the_abi_says_and_needs_only_the_c_library() {
    let out =
        Command::new("readelf").args(["-W", "-d"]).arg(built("libperusal_abi.so")).output().expect("readelf");
    let text = success(out, "readelf");
    assert!(text.contains("Library soname: [libmpi_abi.so.1]"), "{text}");
    let allowed = ["libc.so", "libm.so", "libgcc_s.so", "libpthread.so", "libdl.so", "librt.so", "ld-linux"];
    for line in text.lines().filter(|l| l.contains("(NEEDED)")) {
        assert!(allowed.iter().any(|name| line.contains(name)), "a program needs nothing else: {line}");
    }
}
