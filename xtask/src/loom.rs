//! The models in `loom-tests/`.

use crate::shell::{Result, cargo, command, folder, output, read, root, run, stems, target};
use std::path::PathBuf;
use std::process::Command;

/// The model that is a test program of its own; the others are modules of one.
const ALONE: &str = "my_callback";

/// `loom [MODEL…]`: a model is a file of `loom-tests/` without `.rs`.
/// LOOM_MAX_PREEMPTIONS overrides the bounds written in the models.
pub fn main(arguments: &[String]) -> Result {
    let known = stems(&root().join("loom-tests"), "rs")?;
    if let Some(unknown) = arguments.iter().find(|model| *model == "main" || !known.contains(model)) {
        return Err(format!("unknown model: {unknown} (each file of loom-tests/ but main.rs is one)"));
    }
    if arguments.is_empty() {
        return run(&mut models()?).map_err(|_| String::new());
    }
    let (alone, modules): (Vec<&str>, Vec<&str>) =
        arguments.iter().map(String::as_str).partition(|model| *model == ALONE);
    let mut good = true;
    if !alone.is_empty() {
        good &= run(programs()?.arg(format!("--test=loom_{ALONE}"))).is_ok();
    }
    if !modules.is_empty() {
        let filters = modules.iter().map(|model| format!("{model}::"));
        good &= run(programs()?.args(["--test=loom", "--"]).args(filters)).is_ok();
    }
    if good { Ok(()) } else { Err(String::new()) }
}

/// Returns the command that runs all models.
pub fn models() -> Result<Command> {
    let mut cargo = programs()?;
    cargo.args(["--test=loom".to_owned(), format!("--test=loom_{ALONE}")]);
    Ok(cargo)
}

/// The test programs of models, as they were built, and what is preloaded to run them.
#[derive(Debug)]
pub struct Models {
    /// The programs.
    pub files: Vec<PathBuf>,
    /// What keeps the stacks of models.
    pub preload: Option<PathBuf>,
}

/// Builds the test programs of models.
pub fn model_programs() -> Result<Models> {
    let mut build = programs()?;
    build.args(["--test=loom", "--no-run", "--message-format=json"]).arg(format!("--test=loom_{ALONE}"));
    let text = output(&mut build)?;
    let files = text.lines().filter_map(|line| {
        let (_, rest) = line.split_once("\"executable\":\"")?;
        Some(PathBuf::from(rest.split('"').next()?))
    });
    let stacks = target().join("loom/stacks.so");
    Ok(Models { files: files.collect(), preload: stacks.exists().then_some(stacks) })
}

/// Returns the command that runs test programs of models.
fn programs() -> Result<Command> {
    let modules = read("loom-tests/main.rs")?;
    for model in stems(&root().join("loom-tests"), "rs")? {
        if model != "main" && model != ALONE && !modules.contains(&format!("mod {model};")) {
            return Err(format!(
                "loom-tests/{model}.rs is no module of loom-tests/main.rs: it would not run"
            ));
        }
    }
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
