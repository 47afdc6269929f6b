//! The engine's unit tests in Miri, which knows the rules of the language: aliasing, data races, and on weakly ordered processors what a load
//! may return.

use crate::shell::{Result, attempt, command, run, tail};
use std::process::Command;

/// Modules whose tests Miri can run: they neither map files nor start processes, and take few rounds there.
const MODULES: [&str; 7] = ["request", "doorbell", "ring", "matching", "datatype", "sync", "handles"];

/// Miri of the nightly toolchain. Cargo itself has no `+nightly`: rustup's has.
fn nightly(arguments: &[&str]) -> Command {
    let mut cargo = command("cargo");
    cargo.args(["+nightly", "miri"]).args(arguments);
    cargo
}

/// `miri [MODULE…]`: needs a nightly toolchain with Miri (`rustup component add --toolchain nightly miri rust-src`).
pub fn main(arguments: &[String]) -> Result {
    let mut known = nightly(&["--version"]);
    if !attempt(&mut known).0 {
        println!("miri: not run: there is no nightly toolchain with Miri");
        return Ok(());
    }
    let modules: Vec<&str> = match arguments {
        [] => MODULES.to_vec(),
        named => named.iter().map(String::as_str).collect(),
    };
    run(&mut nightly(&["setup"]))?;
    let mut failed = Vec::new();
    for module in modules {
        let mut tests = nightly(&["test", "--locked", "--package", "perusal", "--lib"]);
        tests.arg(format!("{module}::")).env("MIRIFLAGS", "-Zmiri-disable-isolation");
        let (good, log) = attempt(&mut tests);
        let verdict = log.lines().rfind(|line| line.starts_with("test result"));
        println!("miri: {module}: {}", verdict.unwrap_or("no result"));
        if !good {
            println!("{}", tail(&log, 60));
            failed.push(module);
        }
    }
    if failed.is_empty() { Ok(()) } else { Err(format!("in {}", failed.join(", "))) }
}
