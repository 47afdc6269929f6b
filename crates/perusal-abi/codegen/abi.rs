//! The ABI's functions as data, and which of them the sources implement.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// One function of the ABI, as `functions.csv` has it.
#[derive(Clone)]
pub struct Function {
    /// C's return type.
    pub returns: String,
    /// `MPI_…`.
    pub name: String,
    /// C declarations of the arguments; empty for `void`.
    pub arguments: Vec<String>,
}

/// All functions that the library exports.
///
/// `MPI_Psend_init` and `MPI_Precv_init` take an `MPI_Count`, as the standard, MPICH and Open MPI have it; the table's `int`, and the
/// `_c` twins, are the Forum's stub header's. All four names are exported, the two of the standard are declared (`docs/abi.md`).
pub fn functions(csv: &str) -> Vec<Function> {
    let mut functions: Vec<Function> = csv.lines().skip(1).map(function).collect();
    for f in functions.iter_mut().filter(|f| PARTITIONED.contains(&f.name.as_str())) {
        for argument in f.arguments.iter_mut().filter(|a| *a == "int count") {
            *argument = "MPI_Count count".to_owned();
        }
    }
    functions
}

/// The functions whose count the stub header and the standard disagree about.
pub const PARTITIONED: [&str; 2] = ["MPI_Psend_init", "MPI_Precv_init"];

fn function(row: &str) -> Function {
    let mut fields = row.splitn(3, ',');
    let (Some(returns), Some(name), Some(arguments)) = (fields.next(), fields.next(), fields.next()) else {
        panic!("functions.csv: expected return_type,name,arguments in {row:?}");
    };
    let arguments = arguments.trim().trim_matches('"');
    let arguments = arguments.split(';').map(|a| a.trim().to_owned());
    Function {
        returns: returns.to_owned(),
        name: name.to_owned(),
        arguments: arguments.filter(|a| !a.is_empty() && a != "void").collect(),
    }
}

/// The names that the Rust files under `directory` define: each `fn MPI_X` at the start of a line, whether with its arguments
/// behind it or as a name that a macro gives arguments to.
pub fn implemented(directory: &Path) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    let entries = fs::read_dir(directory).unwrap_or_else(|e| panic!("{}: {e}", directory.display()));
    for entry in entries.map(|e| e.expect("a readable directory").path()) {
        if entry.is_dir() {
            names.append(&mut implemented(&entry));
        } else if entry.extension().is_some_and(|e| e == "rs") {
            let text = fs::read_to_string(&entry).unwrap_or_else(|e| panic!("{}: {e}", entry.display()));
            names.extend(text.lines().filter_map(defined));
        }
    }
    names
}

fn defined(line: &str) -> Option<String> {
    let rest = line.trim_start().strip_prefix("fn MPI_")?;
    let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(rest.len());
    (rest[end..].is_empty() || rest[end..].starts_with(['(', ','])).then(|| format!("MPI_{}", &rest[..end]))
}
