//! Tests of threads under ThreadSanitizer, which finds data races in what a run does, and under AddressSanitizer, which
//! finds accesses beside and after memory: both faster than Miri, and with the processor's own code.
//!
//! The sanitizers come with the toolchain; the standard library is compiled without them. So ThreadSanitizer does not
//! see how its locks order threads, and `src/sync/watched.rs` says it once more under `--cfg perusal_tsan`. What it
//! still does not see are the false reports in `tests/thread_sanitizer.txt`. It knows no fences either, and needs to
//! know none of ours: they stand between loads and stores of atomics (`shm::telemetry`, the pairs of a store and a
//! later load).

use crate::loom::host;
use crate::shell::{Result, attempt, cargo, folder, has, need, output, root, tail, target};
use std::path::Path;
use std::process::Command;

/// A sanitizer, and how tests run under it.
struct Sanitizer {
    /// The command of `xtask`.
    name: &'static str,
    /// The compiler's name for it.
    flag: &'static str,
    /// The part of its runtime's file name.
    runtime: &'static str,
    /// Further options of the compiler.
    further: &'static str,
    /// What a report begins with.
    report: &'static str,
}

const THREAD: Sanitizer = Sanitizer {
    name: "tsan",
    flag: "thread",
    runtime: "_rt.tsan.a",
    further: "-Cunsafe-allow-abi-mismatch=sanitizer --cfg perusal_tsan",
    report: "WARNING: ThreadSanitizer",
};
const ADDRESS: Sanitizer = Sanitizer {
    name: "asan",
    flag: "address",
    runtime: "_rt.asan.a",
    further: "",
    report: "ERROR: AddressSanitizer",
};

/// Whether this toolchain has ThreadSanitizer.
pub fn thread_is_there() -> bool {
    THREAD.is_there()
}

/// Whether this toolchain has AddressSanitizer.
pub fn address_is_there() -> bool {
    ADDRESS.is_there()
}

/// `tsan [FILTER…]`.
pub fn thread(arguments: &[String]) -> Result {
    THREAD.run(arguments)
}

/// `asan [FILTER…]`.
pub fn address(arguments: &[String]) -> Result {
    ADDRESS.run(arguments)
}

impl Sanitizer {
    fn is_there(&self) -> bool {
        let found = output(Command::new("rustc").args(["--print", "target-libdir"])).unwrap_or_default();
        let files = Path::new(found.trim()).read_dir().into_iter().flatten().flatten();
        files.map(|file| file.file_name()).any(|name| name.to_string_lossy().ends_with(self.runtime))
    }

    fn run(&self, arguments: &[String]) -> Result {
        let name = self.name;
        if !self.is_there() {
            println!("{name}: not run: the toolchain has no {name} for this processor");
            return Ok(());
        }
        // Suppressions are names of functions: somebody must find them.
        if !has("llvm-symbolizer") && !has("addr2line") {
            need(&["binutils=addr2line"])?;
        }
        let host = host()?;
        let mut tests = cargo(["test", "--locked", "--no-fail-fast", "--target", &host]);
        tests.args(["--package", "perusal", "--lib", "--test", "rust", "--"]).args(arguments);
        // An unstable flag on the stable toolchain, and a folder of its own: the flag changes every crate.
        tests.env("RUSTC_BOOTSTRAP", "1").env("CARGO_TARGET_DIR", folder(target().join(name))?);
        tests.env("RUSTFLAGS", format!("-Zsanitizer={} {}", self.flag, self.further));
        // A test asks for more memory than there is.
        let known = root().join("tests/thread_sanitizer.txt");
        tests.env(
            "TSAN_OPTIONS",
            format!("allocator_may_return_null=1 history_size=7 suppressions={}", known.display()),
        );
        // LeakSanitizer needs ptrace, which containers forbid.
        tests.env("ASAN_OPTIONS", "allocator_may_return_null=1:detect_leaks=0");
        let (good, log) = attempt(&mut tests);
        for verdict in log.lines().filter(|line| line.starts_with("test result")) {
            println!("{name}: {verdict}");
        }
        if good {
            return Ok(());
        }
        let reports = log.split("==================").filter(|part| part.contains(self.report));
        reports.take(3).for_each(|report| println!("{}", report.trim()));
        println!("{}", tail(&log, 30));
        Err(String::new())
    }
}
