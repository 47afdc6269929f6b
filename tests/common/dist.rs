//! A distribution made of what cargo has just built, so that tests compile and run programs as users do.
#![allow(dead_code)]

use super::{built, executable, root};
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// The launcher, if this is a test of its package.
pub fn launcher() -> Option<&'static Path> {
    option_env!("CARGO_BIN_EXE_perusal").map(Path::new)
}

/// `bin`, `include` and `lib` as `make dist` lays them out.
pub fn dist() -> &'static Path {
    static DIST: OnceLock<PathBuf> = OnceLock::new();
    DIST.get_or_init(|| {
        make(Path::new(env!("CARGO_TARGET_TMPDIR")).join("dist")).expect("a writable target directory")
    })
}

/// Several test programs may do this at once: each thing is put in place by a rename.
fn make(dist: PathBuf) -> std::io::Result<PathBuf> {
    fs::create_dir_all(dist.join("bin"))?;
    fs::create_dir_all(dist.join("lib"))?;
    link(&root().join("include"), &dist.join("include"))?;
    for name in ["libmpi_abi.so.1", "libmpi_abi.so"] {
        link(&built("libperusal_abi.so"), &dist.join("lib").join(name))?;
    }
    link(&built("libperusal_abi.a"), &dist.join("lib/libmpi_abi.a"))?;
    let wrapper =
        fs::read_to_string(root().join("wrappers/mpicc"))?.replace("@VERSION@", env!("CARGO_PKG_VERSION"));
    for name in ["mpicc", "mpicxx"] {
        let new = dist.join(format!("bin/{name}.{}", std::process::id()));
        executable(&new, wrapper.as_bytes());
        fs::rename(new, dist.join("bin").join(name))?;
    }
    if let Some(launcher) = launcher() {
        // No link, for it looks for libraries from where it lies.
        let own = dist.join("bin/perusal");
        let new = dist.join(format!("bin/perusal.{}", std::process::id()));
        let _ = fs::remove_file(&new);
        program_at(launcher, &new);
        fs::rename(&new, &own)?;
        // Two links to one file are left as they are by a rename.
        let _ = fs::remove_file(&new);
        for name in ["mpiexec", "mpirun"] {
            link(&own, &dist.join("bin").join(name))?;
        }
    }
    share_heap(&dist.join("lib/libperusal-heap.so"))?;
    Ok(dist)
}

/// Puts a program at another place, where nothing is yet.
pub fn program_at(program: &Path, at: &Path) {
    if fs::hard_link(program, at).is_err() {
        executable(at, &fs::read(program).expect("a program that can be read"));
    }
}

/// Compiles what `mpiexec --share-heap` preloads.
fn share_heap(library: &Path) -> std::io::Result<()> {
    let new = PathBuf::from(format!("{}.{}", library.display(), std::process::id()));
    let flags =
        ["-std=c11", "-D_GNU_SOURCE", "-O2", "-fPIC", "-fvisibility=hidden", "-fno-builtin", "-shared"];
    let mut compiler = Command::new("cc");
    let compiled = compiler.args(flags).arg(root().join("preload/heap.c")).arg("-o").arg(&new).status()?;
    assert!(compiled.success(), "{compiler:?}");
    fs::rename(new, library)
}

fn link(to: &Path, at: &Path) -> std::io::Result<()> {
    let new = PathBuf::from(format!("{}.{}", at.display(), std::process::id()));
    let _ = fs::remove_file(&new);
    symlink(to, &new)?;
    fs::rename(new, at)
}
