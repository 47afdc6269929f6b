//! What a program sees that depends on this crate: the API alone, and nothing of the launcher's.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

fn tree() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// A crate outside of the workspace that depends on this one, with these files.
struct Foreign(PathBuf);

impl Foreign {
    fn new(name: &str, files: &[(&str, &str)]) -> Foreign {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("foreign-{name}"));
        let _ = fs::remove_dir_all(&folder);
        let manifest = format!(
            "[package]\nname = \"foreign-{name}\"\nedition = \"2024\"\n[dependencies]\nperusal = {{ path = {:?} }}\n[workspace]\n",
            tree()
        );
        // The same versions, so that nothing has to be looked up.
        let lock = fs::read_to_string(tree().join("Cargo.lock")).expect("the lock file");
        for (path, text) in [("Cargo.toml", &*manifest), ("Cargo.lock", &*lock)].iter().chain(files) {
            let path = folder.join(path);
            fs::create_dir_all(path.parent().expect("a folder")).expect("a writable target folder");
            fs::write(path, text).expect("a writable target folder");
        }
        Foreign(folder)
    }

    /// Runs cargo there. Whether it succeeded, and all that it said.
    fn cargo(&self, arguments: &[&str], flags: &str) -> (bool, String) {
        let cargo = || Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
        let fetched = cargo().args(["fetch", "--quiet", "--locked"]).current_dir(tree()).status();
        assert!(fetched.expect("cargo").success(), "the packages of the lock file are there");
        // What is built once serves all of these crates.
        let target = Path::new(env!("CARGO_TARGET_TMPDIR")).join("foreign");
        let mut command = cargo();
        command.args(arguments).arg("--offline").current_dir(&self.0);
        command.env("CARGO_TARGET_DIR", target).env("RUSTFLAGS", flags).env("CARGO_PROFILE_DEV_DEBUG", "0");
        let out = command.output().expect("cargo");
        (out.status.success(), String::from_utf8_lossy(&[out.stdout, out.stderr].concat()).into_owned())
    }
}

#[test]
fn a_callback_is_modelled_in_a_crate_outside() {
    let model = fs::read_to_string(tree().join("loom-tests/my_callback.rs")).expect("the model");
    let foreign = Foreign::new("tool", &[("src/lib.rs", ""), ("tests/my_callback.rs", &model)]);
    let (good, said) = foreign.cargo(&["check", "--tests"], "--cfg perusal_loom");
    assert!(good, "{said}");
    assert!(!said.contains("warning"), "{said}");
}

#[test]
fn the_engine_cannot_be_named_outside() {
    let program = |path: &str| format!("pub use perusal::{path};\n");
    for path in ["engine", "internals", "shm"] {
        let foreign = Foreign::new("nosy", &[("src/lib.rs", &program(path))]);
        let (good, said) = foreign.cargo(&["check"], "");
        assert!(
            !good && (said.contains("E0432") || said.contains("E0603") || said.contains("E0365")),
            "{said}"
        );
    }
    let foreign = Foreign::new("user", &[("src/lib.rs", &program("{World, events, matching, model, ring}"))]);
    let (good, said) = foreign.cargo(&["check"], "");
    assert!(good, "{said}");
}

#[test]
fn a_program_that_depends_on_the_crate_builds_no_launcher() {
    let foreign = Foreign::new("light", &[("src/lib.rs", "")]);
    let (good, said) = foreign.cargo(&["tree", "--edges", "normal,build", "--prefix", "none"], "");
    assert!(good && said.contains("perusal v"), "{said}");
    for heavy in ["clap", "hwloc2", "serde", "toml", "loom", "divan"] {
        assert!(!said.lines().any(|line| line.starts_with(&format!("{heavy} v"))), "{heavy}: {said}");
    }
}
