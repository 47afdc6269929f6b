//! The models in `loom-tests/`.

use crate::shell::{Result, cargo, command, folder, output, root, run, stems, target};
use std::process::Command;

/// `loom [MODEL…]`: a model is a file of `loom-tests/` without `.rs`. LOOM_MAX_PREEMPTIONS overrides the bounds written in the models.
pub fn main(arguments: &[String]) -> Result {
    run(&mut models(arguments)?).map_err(|_| String::new())
}

/// Returns the command that runs these models, or all.
pub fn models(named: &[String]) -> Result<Command> {
    // A folder of its own: the flag changes every crate.
    let own = folder(target().join("loom"))?;
    let mut cargo = cargo([
        "test",
        "--quiet",
        "--locked",
        "--profile",
        "model",
        "--no-fail-fast",
        "--package",
        "perusal",
    ]);
    let named = if named.is_empty() { stems(&root().join("loom-tests"), "rs")? } else { named.to_vec() };
    cargo.args(named.iter().map(|model| format!("--test=loom_{model}")));
    cargo.env("RUSTFLAGS", "--cfg perusal_loom --cfg crossbeam_loom").env("CARGO_TARGET_DIR", &own);
    // The models alone run with what keeps their stacks, neither cargo nor the compiler.
    let stacks = own.join("stacks.so");
    if run(command("cc").args(["-O2", "-shared", "-fPIC", "loom-tests/stacks.c", "-o"]).arg(&stacks)).is_ok()
    {
        let host = host()?.to_uppercase().replace('-', "_");
        cargo.env(format!("CARGO_TARGET_{host}_RUNNER"), format!("env LD_PRELOAD={}", stacks.display()));
    }
    Ok(cargo)
}

/// Returns the compiler's name for this machine.
pub fn host() -> Result<String> {
    let text = output(command("rustc").arg("-vV"))?;
    let host = text.lines().find_map(|line| line.strip_prefix("host: "));
    host.map(str::to_owned).ok_or_else(|| "rustc names no host".into())
}
