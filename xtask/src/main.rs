//! What people and continuous integration do with the tree: `cargo xtask COMMAND`.
//!
//! A command is a function in a file of its subject and a row of [`COMMANDS`].
//! The Makefile and the scripts in `.ci/` call them.
//!
//! | file | what it does |
//! |---|---|
//! | `dist`, `check_dist`, `packages` | lays out a distribution; checks it; makes packages of it |
//! | `generate`, `abi`, `header` | writes what follows from tables; reads the tables, writes `mpi.h` (both are the bindings' own) |
//! | `test`, `verify` | runs the suites, and what takes longer |
//! | `loom`, `mutants` | runs models, and weakens the orderings that they come by |
//! | `fuzz`, `miri`, `sanitizers`, `aarch64` | runs fuzz targets; tests in Miri, under sanitizers, on another processor |
//! | `conformance`, `clients`, `unittest` | runs MPICH's tests, and other people's; reads what Python's tests print |
//! | `fabric_test`, `nodes` | runs tests of the libfabric provider, also between two nodes |
//! | `demo`, `measure`, `instructions`, `watched`, `peers` | shows and measures: an example, costs, instructions, being watched, other MPIs |
//! | `shell` | what a shell would do |

mod aarch64;
#[path = "../../crates/perusal-abi/codegen/abi.rs"]
mod abi;
mod check_dist;
mod clients;
mod conformance;
mod demo;
mod dist;
mod fabric_test;
mod fuzz;
mod generate;
#[path = "../../crates/perusal-abi/codegen/header.rs"]
mod header;
mod instructions;
mod loom;
mod measure;
mod miri;
mod mutants;
mod nodes;
mod packages;
mod peers;
mod sanitizers;
mod shell;
mod test;
mod unittest;
mod verify;
mod watched;

use shell::Result;
use std::process::ExitCode;

/// A command: its name, its arguments, what it does, and the function that does it.
type Command = (&'static str, &'static str, &'static str, fn(&[String]) -> Result);

const COMMANDS: &[Command] = &[
    (
        "dist",
        "[DIST]",
        "lay out a distribution: library, launcher, compiler wrappers, headers, pages",
        dist::main,
    ),
    (
        "demo",
        "[DIST]",
        "run a heat solver, one rank of it slow, under a profiler that shows which",
        demo::main,
    ),
    (
        "test",
        "[SUITE…]",
        "format lint aarch64 build rust loom fuzz dist; the last line is 'N passed, N failed'",
        test::main,
    ),
    ("check-dist", "[DIST]", "is a distribution what it should be?", check_dist::main),
    (
        "generate",
        "[--check]",
        "write the files that follow from tables, or name those that are not current",
        generate::main,
    ),
    ("aarch64", "", "cross-compile for AArch64, and run tests and jobs under emulation", aarch64::main),
    ("loom", "[MODEL…]", "run the models of loom-tests/", loom::main),
    ("fuzz", "[SECONDS] [TARGET…]", "run each fuzz target for a while", fuzz::main),
    (
        "conformance",
        "[DIST] [DIR/TEST… | mpi4py | rsmpi | pnetcdf | hdf5]",
        "the own tests of MPICH, mpi4py, the crate mpi, PnetCDF and HDF5 against a distribution",
        conformance::main,
    ),
    (
        "fabric-test",
        "[DIST] [fabtests | mpich | mpi4py | nodes | TEST…]",
        "libfabric's tests against the provider, and MPICH's on stock MPICH over it",
        fabric_test::main,
    ),
    (
        "exchange",
        "[DIST]",
        "programs built with MPICH's header on this library, and ours on MPICH",
        peers::exchange,
    ),
    (
        "peers",
        "[DIST] [--markdown] [--update] [--tables]",
        "MPICH, Open MPI and Intel MPI beside this library",
        peers::main,
    ),
    ("bench", "[DIST]", "every bench, a ping-pong, and what the machine can do", measure::bench),
    (
        "event-cost",
        "[DIST]",
        "instructions of a message with idle events and without events",
        measure::event_cost,
    ),
    ("overhead", "[DIST]", "what listening to events costs, in seven configurations", measure::overhead),
    (
        "rma-threads",
        "[DIST] [THREADS,… [BYTES,… [MEBIBYTES]]]",
        "threads that put and get: bandwidth, and what the events of windows say about it",
        measure::rma_threads,
    ),
    (
        "instructions",
        "[DIST] [CASE]",
        "instructions of MPI calls on an 8-byte message, or the functions of one case",
        instructions::main,
    ),
    (
        "watched",
        "[DIST]",
        "instructions of calls of a job that perusal top, why and ps look at, and of one alone",
        watched::main,
    ),
    ("valgrind", "[DIST]", "message programs under memcheck", verify::valgrind),
    ("miri", "[SUITE…]", "tests under the rules of the language", miri::main),
    ("mutants", "[PART…]", "models against weakened orderings; writes loom-tests/mutants.md", mutants::main),
    ("tsan", "[FILTER…]", "tests of threads under ThreadSanitizer", sanitizers::thread),
    ("asan", "[FILTER…]", "the same tests under AddressSanitizer", sanitizers::address),
    ("wheel", "[DIST]", "a Python wheel of a distribution", packages::wheel::main),
    (
        "wheel-check",
        "[DIST]",
        "make the wheel, and run mpi4py from it in a new environment",
        packages::wheel::check,
    ),
    ("deb", "[DIST]", "a Debian package of a distribution", packages::debian::main),
    (
        "deb-check",
        "[DIST]",
        "make the Debian package, install it beside other MPIs, and remove it",
        packages::debian::check,
    ),
    ("verify", "[PART…]", "what takes longer than the tests may, after them", verify::main),
];

/// Has the command end without a word where nobody reads its output any more, as in
/// `cargo xtask instructions CASE | head`.
fn end_without_a_reader() {
    let said_before = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        let text = panic.payload_as_str().unwrap_or_default();
        if text.starts_with("failed printing to stdout") && text.contains("Broken pipe") {
            // As a shell has the status of a program that SIGPIPE ended.
            std::process::exit(128 + 13);
        }
        said_before(panic);
    }));
}

fn main() -> ExitCode {
    end_without_a_reader();
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let Some((name, rest)) = arguments.split_first() else { return usage() };
    let Some((_, _, _, command)) = COMMANDS.iter().find(|(known, ..)| known == name) else { return usage() };
    if let Err(error) = std::env::set_current_dir(shell::root()) {
        eprintln!("{name}: {error}");
        return ExitCode::from(2);
    }
    match command(rest) {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            if !why.is_empty() {
                eprintln!("{name}: {why}");
            }
            ExitCode::FAILURE
        }
    }
}

fn usage() -> ExitCode {
    eprintln!("cargo xtask COMMAND, where COMMAND is one of");
    for (name, arguments, what, _) in COMMANDS {
        eprintln!("  {:<34} {what}", format!("{name} {arguments}"));
    }
    ExitCode::from(2)
}
