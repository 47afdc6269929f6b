//! AArch64 on a machine with another processor: cross-compiled, and run under `qemu-aarch64`.

use crate::shell::{
    Result, attempt, cargo, command, folder, line, need, put, root, run, tail, target, write,
};
use std::path::Path;
use std::process::Command;

const TARGET: &str = "aarch64-unknown-linux-gnu";
const COMPILER: &str = "aarch64-linux-gnu-gcc";
/// Debian's C library of that processor.
const SYSTEM: &str = "/usr/aarch64-linux-gnu";

/// Returns the command that checks and lints libraries and programs for AArch64, or why they cannot be checked here.
/// Nothing is linked, so no C compiler for that processor is needed. [`main`] builds the tests.
pub fn lint() -> std::result::Result<Command, String> {
    standard_library()?;
    let mut clippy = cargo(["clippy", "--quiet", "--locked", "--workspace", "--exclude", "xtask"]);
    clippy.args(["--target", TARGET, "--", "-D", "warnings"]);
    Ok(clippy)
}

/// Makes sure that rustc has the target's standard library; asks rustup for it once.
fn standard_library() -> std::result::Result<(), String> {
    let there = || {
        let (good, path) = attempt(command("rustc").args(["--print", "target-libdir", "--target", TARGET]));
        good && Path::new(path.trim()).is_dir()
    };
    if there() {
        return Ok(());
    }
    let (_, said) = attempt(command("rustup").args(["target", "add", TARGET]));
    if there() { Ok(()) } else { Err(format!("no standard library for {TARGET}: {}", tail(said.trim(), 1))) }
}

/// Programs of `tests/c`, and their ranks.
const PROGRAMS: [(&str, &str); 5] = [
    ("2", "random_messages"),
    ("2", "datatype_messages"),
    ("2", "peruse_pair_chunks"),
    ("3", "freed_sends_arrive"),
    ("4", "coll_moves"),
];

/// Tests that want more address space than the emulator has.
const TOO_LARGE: [&str; 3] = [
    "a_thousand_ranks_need_little_memory_until_they_talk",
    "address_space_is_not_memory",
    "senders_fence_where_rings_are_watched_by_turns_or_sleepers_cannot",
];

/// `aarch64`: the tests of the engine and of the Rust API, and C programs on several ranks, all under emulation.
pub fn main(_: &[String]) -> Result {
    need(&[
        &format!("gcc-aarch64-linux-gnu={COMPILER}"),
        &format!("libc6-dev-arm64-cross={SYSTEM}/lib/ld-linux-aarch64.so.1"),
        "qemu-user=qemu-aarch64",
    ])?;
    standard_library()?;
    let lib = folder("build/aarch64/lib")?;
    run(cross("rustc").args(["--package", "perusal-abi", "--lib", "--crate-type", "cdylib"]))?;
    // Debian has no hwloc for other processors beside this one's.
    let launcher =
        ["--package", "perusal-cli", "--bin", "perusal", "--no-default-features", "--features", "peruse"];
    run(cross("build").args(launcher))?;
    let built = target().join(TARGET).join("debug");
    put(&built.join("libperusal_abi.so"), &lib.join("libmpi_abi.so.1"))?;
    programs(&built.join("perusal"), &lib)?;
    let mut tests = cross("test");
    tests.args(["--package", "perusal", "--lib", "--test", "rust", "--"]);
    run(tests.args(TOO_LARGE.iter().flat_map(|name| ["--skip", name])))
}

/// Returns cargo with this command, for AArch64; test programs run under emulation.
fn cross(what: &str) -> Command {
    let mut cargo = cargo([what, "--quiet", "--locked", "--target", TARGET]);
    cargo.env("CC_aarch64_unknown_linux_gnu", COMPILER);
    cargo.env("CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER", COMPILER);
    cargo.env("CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUNNER", emulated().join(" "));
    cargo
}

/// The words before a program of that processor. Without `binfmt_misc` a program that starts another must put them
/// there, too.
fn emulated() -> [&'static str; 3] {
    ["qemu-aarch64", "-L", SYSTEM]
}

/// Compiles and runs C programs under the launcher, all of them emulated.
fn programs(launcher: &Path, lib: &Path) -> Result {
    let out = folder("build/aarch64")?;
    let path = format!("LD_LIBRARY_PATH={}", root().join(lib).display());
    let mut failed = Vec::new();
    for (ranks, name) in PROGRAMS {
        let program = root().join(&out).join(name);
        let mut compiler = command(COMPILER);
        compiler.args(["-O1", "-Iinclude", "-Itests/c"]).arg(format!("tests/c/{name}.c"));
        run(compiler.arg(lib.join("libmpi_abi.so.1")).args(["-lm", "-o"]).arg(&program))?;
        let [emulator, option, system] = emulated();
        let mut job = command(emulator);
        job.args([option, system]).arg(launcher).args(["run", "-n", ranks]);
        job.args(emulated()).args(["-E", &path]).arg(&program);
        let (good, log) = attempt(job.env("MPIEXEC_TIMEOUT", "600"));
        write(out.join(format!("{name}.log")), &log)?;
        println!("aarch64: {name} on {ranks} ranks: {}", if good { "passed" } else { "FAILED" });
        if !good {
            println!("{}\n{}", line(&job), tail(&log, 30));
            failed.push(name);
        }
    }
    if failed.is_empty() { Ok(()) } else { Err(format!("failed: {}", failed.join(", "))) }
}
