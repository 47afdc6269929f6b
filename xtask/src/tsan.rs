//! Tests under ThreadSanitizer, which finds data races in what a run does: faster than Miri, and with the processor's own code.
//!
//! It knows no fences, so an edge that a fence makes would be a false report; nothing is suppressed, for there is none: fences stand between
//! loads and stores of atomics (`shm::telemetry`, the pairs of a store and a later load), or before memory that the kernel
//! takes (`shm::collective_segments`).

use crate::loom::host;
use crate::shell::{Result, attempt, command, folder, output, tail, target};
use std::path::Path;

/// Whether this machine has what the sanitizer needs.
pub fn is_there() -> bool {
    let root = output(command("rustc").args(["+nightly", "--print", "sysroot"])).unwrap_or_default();
    Path::new(root.trim()).join("lib/rustlib/src/rust/library/Cargo.lock").exists()
}

/// `tsan [FILTER…]`: needs a nightly toolchain with the standard library's source (`rustup component add --toolchain nightly rust-src`),
/// which is compiled with the sanitizer, too.
pub fn main(arguments: &[String]) -> Result {
    if !is_there() {
        println!("tsan: not run: there is no nightly toolchain with the standard library's source");
        return Ok(());
    }
    let mut tests = command("cargo");
    tests.args(["+nightly", "test", "--locked", "--no-fail-fast", "-Zbuild-std", "--target", &host()?]);
    tests.args(["--package", "perusal", "--lib", "--test", "rust", "--"]).args(arguments);
    // A folder of its own: the flag changes every crate.
    tests.env("RUSTFLAGS", "-Zsanitizer=thread").env("CARGO_TARGET_DIR", folder(target().join("tsan"))?);
    // A test asks for more memory than there is.
    let (good, log) = attempt(tests.env("TSAN_OPTIONS", "allocator_may_return_null=1"));
    for verdict in log.lines().filter(|line| line.starts_with("test result")) {
        println!("tsan: {verdict}");
    }
    if good {
        return Ok(());
    }
    let reports = log.split("==================").filter(|part| part.contains("WARNING: ThreadSanitizer"));
    reports.take(3).for_each(|report| println!("{}", report.trim()));
    println!("{}", tail(&log, 30));
    Err(String::new())
}
