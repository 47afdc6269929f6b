//! Writes `mpi.h` from the ABI's tables.

use crate::abi::{Function, PARTITIONED};
use std::fmt::Write as _;

/// A constant: name, kind and value as `constants.csv` has them.
pub struct Constant<'a> {
    /// `MPI_…`
    pub name: &'a str,
    /// What it is, e.g. `handle:MPI_Comm`.
    pub kind: &'a str,
    /// Decimal.
    pub value: &'a str,
}

/// The rows of `constants.csv`.
pub fn constants(csv: &str) -> Vec<Constant<'_>> {
    csv.lines().skip(1).filter_map(constant).collect()
}

fn constant(row: &str) -> Option<Constant<'_>> {
    let (name, rest) = row.split_once(',')?;
    let (kind, value) = rest.rsplit_once(',')?;
    Some(Constant { name, kind, value })
}

/// Titles of the header's groups of constants, and which kinds belong to each.
const GROUPS: &[(&str, &[&str])] = &[
    ("Version of the standard, and of its ABI", &["version"]),
    ("Error classes", &["error_class"]),
    ("Communicators", &["handle:MPI_Comm"]),
    ("Groups", &["handle:MPI_Group"]),
    ("Windows", &["handle:MPI_Win"]),
    ("Files", &["handle:MPI_File"]),
    ("Sessions", &["handle:MPI_Session"]),
    ("Messages", &["handle:MPI_Message"]),
    ("Info objects", &["handle:MPI_Info"]),
    ("Error handlers", &["handle:MPI_Errhandler"]),
    ("Requests", &["handle:MPI_Request"]),
    ("Reduction operations", &["handle:MPI_Op"]),
    ("Datatypes; those of fixed size carry log2(size) in bits 3 to 5", &["handle:MPI_Datatype"]),
    ("Addresses that mean something of their own", &["buffer_address", "pointer"]),
    ("Lengths of strings, the terminating zero included", &["max_string"]),
    ("Integers: ranks, tags, modes, results of comparisons, attribute keys and the rest", &["int"]),
    ("Where a Fortran status keeps what", &["fortran_status_index"]),
    ("Predefined callbacks: values that the library knows, not functions", &["callback"]),
    ("Tools interface: error codes", &["mpi_t_error_class"]),
    ("Tools interface: handles", &["mpi_t_handle"]),
    ("Tools interface: verbosity, binding, scope, classes of variables", &["mpi_t_int"]),
];

/// The whole header.
pub fn header(types: &str, constants_csv: &str, functions: &[Function]) -> String {
    let constants = constants(constants_csv);
    let mut text = String::from(OPENING);
    text.push_str(&typedefs(types, &constants));
    for (title, kinds) in GROUPS {
        write!(text, "\n/* {title} */\n").expect("writing to a string");
        for c in constants.iter().filter(|c| kinds.iter().any(|kind| belongs(c.kind, kind))) {
            writeln!(text, "#define {:<34} {}", c.name, expression(c)).expect("writing to a string");
        }
    }
    let declared = functions
        .iter()
        .filter(|f| f.name.strip_suffix("_c").is_none_or(|base| !PARTITIONED.contains(&base)));
    let (plain, profiled): (Vec<_>, Vec<_>) = declared.map(|f| (prototype(f, ""), prototype(f, "P"))).unzip();
    text.push_str("\n/* The functions */\n");
    text.push_str(&plain.concat());
    text.push_str("\n/* The same under the names of the profiling interface, for tools that interpose the ones above */\n");
    text.push_str(&profiled.concat());
    text.push_str(&fortran_handles());
    text.push_str(CLOSING);
    text
}

/// What MPI 5.0 §19.3.4 names, and the ABI leaves to those who add Fortran:
/// conversions as functions of the header, over those of §20.3.
fn fortran_handles() -> String {
    const KINDS: [(&str, &str); 11] = [
        ("Comm", "MPI_Comm"),
        ("Errhandler", "MPI_Errhandler"),
        ("File", "MPI_File"),
        ("Group", "MPI_Group"),
        ("Info", "MPI_Info"),
        ("Message", "MPI_Message"),
        ("Op", "MPI_Op"),
        ("Request", "MPI_Request"),
        ("Session", "MPI_Session"),
        ("Type", "MPI_Datatype"),
        ("Win", "MPI_Win"),
    ];
    let mut text = String::from(FORTRAN_BEGIN);
    for (word, ty) in KINDS {
        writeln!(
            text,
            "static __inline__ MPI_Fint MPI_{word}_c2f({ty} handle) {{ return MPI_{word}_toint(handle); }}\n\
             static __inline__ {ty} MPI_{word}_f2c(MPI_Fint handle) {{ return MPI_{word}_fromint(handle); }}"
        )
        .expect("writing to a string");
    }
    text.push_str(FORTRAN_END);
    text
}

fn belongs(kind: &str, group: &str) -> bool {
    let kind = kind.strip_prefix("alias_of:").and_then(|k| k.split_once(':')).map_or(kind, |(_, rest)| rest);
    kind == group || kind.split(':').next() == Some(group)
}

/// The value with its C type.
fn expression(c: &Constant) -> String {
    let ty = c.kind.rsplit(':').next().unwrap_or_default();
    let value = c.value;
    let bare = value.parse::<i64>().is_ok_and(|v| v >= 0);
    match c.kind.split(':').next().unwrap_or_default() {
        "handle" | "alias_of" | "buffer_address" | "pointer" | "callback" | "mpi_t_handle" => {
            let ty = ty.replace('*', " *").replace("* *", "**").replace("** *", "***");
            format!("(({ty}){value})")
        }
        "int" if c.kind.contains(':') => format!("(({ty}){value})"),
        _ if bare => value.to_owned(),
        _ => format!("({value})"),
    }
}

/// Types in the order in which they need one another, which is the table's.
fn typedefs(csv: &str, constants: &[Constant]) -> String {
    let mut text = String::new();
    for row in csv.lines().skip(1) {
        let (name, rest) = row.split_once(',').expect("types.csv: name,kind,definition");
        let (kind, definition) = rest.split_once(',').expect("types.csv: name,kind,definition");
        let definition = definition.trim_matches('"');
        match kind {
            "struct" => text.push_str(STATUS),
            "alias" | "opaque_handle" => {
                let gap = if definition.ends_with('*') { "" } else { " " };
                writeln!(text, "typedef {definition}{gap}{name};").expect("writing to a string");
            }
            "function_type" => {
                let (returns, arguments) = definition.split_once(' ').expect("types.csv: a return type");
                // The table has the Forum header's misspelling of this argument.
                let arguments = arguments.replace(" omm,", " comm,");
                wrapped(&mut text, &format!("typedef {returns} {name}"), &arguments);
            }
            _ => {
                writeln!(text, "typedef enum {name} {{").expect("writing to a string");
                let values: Vec<String> = constants
                    .iter()
                    .filter(|c| c.kind.strip_prefix("mpi_t_enum:") == Some(name))
                    .map(|c| format!("    {} = {}", c.name, c.value))
                    .collect();
                writeln!(text, "{}\n}} {name};", values.join(",\n")).expect("writing to a string");
            }
        }
    }
    text
}

/// An argument as the header declares it. gcc expects a parameter that is spelled as an array to point to something
/// that can be read, and warns of MPI_UNWEIGHTED and MPI_WEIGHTS_EMPTY, which do not; spelled as a pointer it is the
/// same type.
fn spelled(argument: &str) -> String {
    match argument.strip_suffix("weights[]") {
        Some(rest) => {
            let (ty, name) = rest.rsplit_once(' ').expect("a type before a name");
            format!("{ty} *{name}weights")
        }
        None => argument.to_owned(),
    }
}

fn prototype(f: &Function, prefix: &str) -> String {
    let arguments: Vec<String> = f.arguments.iter().map(|argument| spelled(argument)).collect();
    let arguments = if arguments.is_empty() { "void".to_owned() } else { arguments.join(", ") };
    let mut text = String::new();
    wrapped(&mut text, &format!("{} {prefix}{}", f.returns, f.name), &format!("({arguments})"));
    text
}

/// A declaration, broken at commas so that no line passes 110 columns.
fn wrapped(text: &mut String, head: &str, arguments: &str) {
    let mut line = head.to_owned();
    for (i, piece) in arguments.split_inclusive(", ").enumerate() {
        if i > 0 && line.len() + piece.len() > 109 {
            text.push_str(line.trim_end());
            text.push('\n');
            line = "    ".to_owned();
        }
        line.push_str(piece);
    }
    text.push_str(line.trim_end());
    text.push_str(";\n");
}

const OPENING: &str = "\
/* mpi.h: the C interface of MPI 5.0 with its standard ABI, as perusal provides it.
 *
 * Generated from the tables in crates/perusal-abi/src/abi by `cargo xtask generate`; do not edit.
 * A program compiled with this header runs on every library that implements the ABI (libmpi_abi.so.1). */
#ifndef PERUSAL_MPI_H
#define PERUSAL_MPI_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern \"C\" {
#endif

/* Types. Handles are pointers to structs that nobody defines, so that the compiler tells one kind from another;
 * values up to 4095 are predefined, those that the library makes lie above, zero is never valid. */
";

const STATUS: &str = "\
typedef struct MPI_Status {
    int MPI_SOURCE;
    int MPI_TAG;
    int MPI_ERROR;
    int MPI_internal[5];
} MPI_Status;
";

const FORTRAN_BEGIN: &str = "
/* Fortran's handles, for programs that pass them on: not in the library, which has the conversions to and from int. A
 * program that has such functions of its own defines PERUSAL_NO_FORTRAN_HANDLES before this header. */
#ifndef PERUSAL_NO_FORTRAN_HANDLES
typedef int MPI_Fint;
";

const FORTRAN_END: &str = "\
static __inline__ int MPI_Status_c2f(const MPI_Status *c_status, MPI_Fint *f_status) {
    int i;
    f_status[MPI_F_SOURCE] = c_status->MPI_SOURCE;
    f_status[MPI_F_TAG] = c_status->MPI_TAG;
    f_status[MPI_F_ERROR] = c_status->MPI_ERROR;
    for (i = 3; i < MPI_F_STATUS_SIZE; i++) f_status[i] = c_status->MPI_internal[i - 3];
    return MPI_SUCCESS;
}
static __inline__ int MPI_Status_f2c(const MPI_Fint *f_status, MPI_Status *c_status) {
    int i;
    c_status->MPI_SOURCE = f_status[MPI_F_SOURCE];
    c_status->MPI_TAG = f_status[MPI_F_TAG];
    c_status->MPI_ERROR = f_status[MPI_F_ERROR];
    for (i = 3; i < MPI_F_STATUS_SIZE; i++) c_status->MPI_internal[i - 3] = f_status[i];
    return MPI_SUCCESS;
}
#endif
";

const CLOSING: &str = "
#ifdef __cplusplus
}
#endif

#endif
";
