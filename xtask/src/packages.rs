//! Packages that people install: a Python [`wheel`] and a [`debian`] package of a distribution, and whether they serve.

pub mod debian;
pub mod wheel;

use crate::shell::{Result, attempt, command, files, name, run};
use std::path::{Path, PathBuf};

/// The version of both packages.
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Returns the one package of this kind in `work`.
fn made(work: &Path, extension: &str) -> Result<PathBuf> {
    let mut found = files(work)?.into_iter().filter(|file| file.extension().is_some_and(|e| e == extension));
    found.next().ok_or_else(|| format!("no .{extension} in {}", work.display()))
}

/// Compiles a program with `mpicc` of this folder, and runs it under its `mpiexec`.
fn builds_and_runs(bin: &Path, work: &Path) -> Result {
    let program = work.join("order");
    let mut mpicc = command(bin.join("mpicc"));
    run(mpicc
        .env_remove("LD_LIBRARY_PATH")
        .args(["examples/all_to_all_order.c", "-O1", "-o"])
        .arg(&program))?;
    let program = crate::shell::at(&program, std::fs::canonicalize(&program))?;
    let mut job = command(bin.join("mpiexec"));
    job.env_remove("LD_LIBRARY_PATH").env("MPIEXEC_TIMEOUT", "120").args(["-n", "3"]).arg(&program);
    let (good, text) = attempt(job.args(["--messages", "1000"]));
    if good { Ok(()) } else { Err(format!("a program of three ranks:\n{text}")) }
}

/// The programs and shared libraries in a tree.
fn binaries(tree: &Path) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for path in files(tree)? {
        if path.is_symlink() {
            continue;
        }
        if path.is_dir() {
            found.extend(binaries(&path)?);
        } else if crate::shell::at(&path, std::fs::read(&path))?.starts_with(b"\x7fELF") {
            found.push(path);
        }
    }
    Ok(found)
}

/// Takes out what only a debugger reads.
fn strip(tree: &Path) -> Result {
    binaries(tree)?.iter().try_for_each(|file| run(command("strip").arg("--strip-unneeded").arg(file)))
}

/// Makes the libraries of a folder find each other there, and nowhere else; no library is a program.
fn find_beside(lib: &Path) -> Result {
    for library in files(lib)? {
        if library.is_dir() || library.is_symlink() || !name(&library).contains(".so") {
            continue;
        }
        run(command("chmod").arg("644").arg(&library))?;
        if crate::shell::at(&library, std::fs::read(&library))?.starts_with(b"\x7fELF") {
            run(command("patchelf").args(["--set-rpath", "$ORIGIN"]).arg(&library))?;
        }
    }
    Ok(())
}
