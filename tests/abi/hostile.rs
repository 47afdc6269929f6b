//! Every exported function is called with arguments that are wrong:
//! no crash, no hang, and the error class of what is wrong.
//!
//! `hostile.c` has the values and the calls; what is written here, from the ABI's table, is the table of functions: for
//! each the kinds of its arguments (`hostile_kinds.rs`), and how it is called. `PERUSAL_HOSTILE_CALLS` is the number of
//! calls with several wrong arguments each (`make verify` makes many), `PERUSAL_HOSTILE_SEED` repeats a run.

use crate::abi::{self, Function};
use crate::common::dist::dist;
use crate::common::run::run;
use crate::common::{root, scratch};
use crate::hostile_kinds::kind;
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::process::Command;
use std::time::Duration;

/// What does not come back, spoils what other calls are made on, takes a program's place, waits for another program, or
/// takes arguments that cannot be listed.
const NOT_CALLED: [&str; 5] =
    ["MPI_Abort", "MPI_Finalize", "MPI_Pcontrol", "MPI_T_finalize", "MPIX_Comm_revoke"];

/// What `mpi.h` does not declare: `docs/abi.md` says why.
const NOT_DECLARED: [&str; 2] = ["MPI_Psend_init_c", "MPI_Precv_init_c"];

/// What waits for another process if nothing is wrong with its arguments.
const WAITS: [&str; 11] = [
    "MPI_Comm_spawn",
    "MPI_Comm_spawn_multiple",
    "MPI_Comm_accept",
    "MPI_Comm_connect",
    "MPI_Comm_join",
    "MPI_Intercomm_create",
    "MPI_Win_wait",
    "MPI_Win_complete",
    "MPI_Init",
    "MPI_Init_thread",
    "MPI_Session_finalize",
];

/// The table of functions as C.
fn table(functions: &[Function], anytime: &BTreeSet<String>) -> String {
    let mut text = String::from("/* Written by tests/abi/hostile.rs. */\n");
    let mut rows = String::from("static const struct function functions[] = {\n");
    for f in functions {
        if NOT_CALLED.contains(&f.name.as_str()) || NOT_DECLARED.contains(&f.name.as_str()) {
            continue;
        }
        let mut casts = Vec::new();
        let mut kinds = Vec::new();
        for (n, argument) in f.arguments.iter().enumerate() {
            let kind = kind(&f.name, argument);
            let name = argument.split('[').next().expect("a declaration");
            let name = name.rsplit([' ', '*']).next().expect("a name");
            casts.push(format!("({})a[{n}]", cast(argument, name)));
            kinds.push(format!("{{ K_{kind}, \"{name}\" }}"));
        }
        let parameter = if casts.is_empty() { "(void)a; " } else { "" };
        let profiling = if f.name.starts_with("MPI_") { "P" } else { "" };
        for (wrapper, name) in
            [("call", f.name.clone()), ("profiling_call", format!("{profiling}{}", f.name))]
        {
            let call = format!("{name}({})", casts.join(", "));
            let call = if f.returns == "int" && !f.name.ends_with("_toint") {
                format!("return {call};")
            } else {
                format!("(void){call}; return MPI_SUCCESS;")
            };
            writeln!(text, "static int {wrapper}_{}(const intptr_t *a) {{ {parameter}{call} }}", f.name)
                .expect("a string");
        }
        let waits = u8::from(WAITS.contains(&f.name.as_str()));
        let anytime = u8::from(anytime.contains(&f.name));
        let (name, length, kinds) = (&f.name, kinds.len(), kinds.join(", "));
        writeln!(
            rows,
            "    {{ \"{name}\", call_{name}, profiling_call_{name}, {length}, {waits}, {anytime}, {{ {kinds} }} }},"
        )
        .expect("a string");
    }
    text + &rows + "};\n"
}

/// PERUSE's functions, from their header.
fn peruse_functions(header: &str) -> Vec<Function> {
    let declarations = header.split("\nint ").skip(1);
    let declarations = declarations.map(|rest| rest.split(';').next().expect("a declaration"));
    let functions = declarations.map(|declaration| {
        let (name, arguments) = declaration.split_once('(').expect("arguments");
        let arguments = arguments.trim_end().trim_end_matches(')').split(',');
        let arguments = arguments.map(|argument| argument.split_whitespace().collect::<Vec<_>>().join(" "));
        Function {
            returns: "int".to_owned(),
            name: name.to_owned(),
            arguments: arguments.filter(|argument| argument != "void").collect(),
        }
    });
    functions.collect()
}

/// The functions that are legal before MPI_Init: those whose rows in `bindings.csv` say so.
fn anytime(bindings: &str) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for row in bindings.lines().skip(1) {
        // A family has its words in braces.
        let (head, rest) =
            row.split_at(row.find('{').filter(|at| row.find(',').is_some_and(|c| at < &c)).unwrap_or(0));
        let (words, rest) = match rest.strip_prefix('{').and_then(|rest| rest.split_once('}')) {
            Some((words, rest)) => (words.split(',').collect(), rest),
            None => (vec![""], rest),
        };
        let mut fields = rest.splitn(4, ',');
        let (tail, form) = (fields.next().unwrap_or_default(), fields.nth(1).unwrap_or_default());
        if form.contains("anytime") || form == "plain" {
            names.extend(words.iter().map(|word| format!("{head}{word}{tail}")));
        }
    }
    names
}

/// The C type of an argument, for a cast.
fn cast(argument: &str, name: &str) -> String {
    let (before, after) = argument.split_at(argument.rfind(name).expect("a declaration has its name"));
    let dimensions = &after[name.len()..];
    match dimensions {
        "" if before.contains("_cb_function") => format!("{}*", before.trim()),
        "" => before.trim().to_owned(),
        "[][3]" => format!("{before}(*)[3]"),
        _ => format!("{before}*"),
    }
}

#[test]
fn wrong_arguments_give_an_error_of_their_class_and_nothing_else() {
    let rows =
        |name| fs::read_to_string(root().join("crates/perusal-abi/src/abi").join(name)).expect("a table");
    let (csv, extensions) = (rows("functions.csv"), rows("extensions.csv"));
    let dir = scratch("hostile");
    let bindings =
        fs::read_to_string(root().join("crates/perusal-abi/src/abi/bindings.csv")).expect("a table");
    let header = fs::read_to_string(root().join("include/peruse.h")).expect("a header");
    let functions = [abi::functions(&csv), abi::functions(&extensions), peruse_functions(&header)].concat();
    fs::write(dir.join("calls.h"), table(&functions, &anytime(&bindings))).expect("a writable directory");
    let program = dir.join("hostile");
    let compiled = Command::new(dist().join("bin/mpicc"))
        .args([
            "-g",
            "-O0",
            "-Wall",
            "-Wextra",
            "-Werror",
            "-Wno-deprecated-declarations",
            // Values that are no addresses: MPI_UNWEIGHTED.
            "-Wno-stringop-overread",
            "-D_GNU_SOURCE",
            "-I",
        ])
        .arg(&dir)
        .arg(root().join("tests/abi/hostile.c"))
        .arg("-o")
        .arg(&program)
        .output()
        .expect("the wrapper runs");
    assert!(compiled.status.success(), "{}", String::from_utf8_lossy(&compiled.stderr));
    let number = |name: &str, otherwise: u64| {
        std::env::var(name).map_or(otherwise, |n| n.parse().unwrap_or_else(|_| panic!("{name}: a number")))
    };
    let calls = number("PERUSAL_HOSTILE_CALLS", 20_000);
    let seed = number("PERUSAL_HOSTILE_SEED", 1);
    let mut command = Command::new(&program);
    command
        .args([seed.to_string(), calls.to_string()])
        .env("PERUSAL_INITIAL_ERRHANDLER", "mpi_errors_return");
    let outcome = run(&mut command, &dir, "run", Duration::from_secs(120 + calls / 1000));
    println!("seed {seed}: {}", outcome.stdout);
    assert_eq!(outcome.code(), Some(0), "seed {seed}\n{}\n{}", outcome.stdout, outcome.stderr);
}
