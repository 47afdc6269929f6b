//! The Python wheel, laid out as PyPI's wheel of MPICH is: `bin`, `include` and `lib` of the environment.

use super::{VERSION, binaries, builds_and_runs, find_beside, made, strip};
use crate::shell::{
    Result, attempt, command, copy_folder, distribution, empty, files, folder, name, need, output, put, read,
    run, write,
};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// What every manylinux system has (PEP 600); a wheel brings other libraries with it.
const MANYLINUX: [&str; 9] = [
    "libc.so.6",
    "libm.so.6",
    "libdl.so.2",
    "librt.so.1",
    "libpthread.so.0",
    "libgcc_s.so.1",
    "libstdc++.so.6",
    "ld-linux-x86-64.so.2",
    "ld-linux-aarch64.so.1",
];

/// `wheel [DIST]`: writes `build/wheel/perusal-*.whl`.
pub fn main(arguments: &[String]) -> Result {
    let (dist, _) = distribution(arguments)?;
    need(&["patchelf"])?;
    let work = empty("build/wheel")?;
    let tree = folder(work.join("tree"))?;
    let data = folder(tree.join(format!("perusal-{VERSION}.data/data")))?;
    for part in ["bin", "include", "share"] {
        copy_folder(&dist.join(part), &data.join(part))?;
    }
    let lib = folder(data.join("lib"))?;
    for library in files(&dist.join("lib"))? {
        if library.is_dir() {
            copy_folder(&library, &lib.join(name(&library)))?;
        } else if !library.is_symlink() && library.extension().is_none_or(|extension| extension != "a") {
            put(&library, &lib.join(name(&library)))?;
        }
    }
    // A wheel has no symbolic links. The linker takes this text for one.
    write(lib.join("libmpi_abi.so"), "INPUT(libmpi_abi.so.1)\n")?;
    // mpi4py looks for a library of this name in the environment, and asks it which ABI it has.
    let mut compiler = command(std::env::var_os("CC").unwrap_or_else(|| "cc".into()));
    compiler.args(["-shared", "-nostdlib", "-Wl,--no-as-needed", "-Wl,-soname,libmpi.so", "-x", "c"]);
    compiler.args(["/dev/null", "-x", "none", "-Wl,-rpath,$ORIGIN", "-o"]).arg(lib.join("libmpi.so"));
    run(compiler.arg(lib.join("libmpi_abi.so.1")))?;
    bundle(&data)?;
    find_beside(&lib)?;
    strip(&data)?;
    let tag = format!("py3-none-manylinux_{}_{}", glibc(&data)?.replace('.', "_"), std::env::consts::ARCH);
    let about = folder(tree.join(format!("perusal-{VERSION}.dist-info")))?;
    write(
        about.join("WHEEL"),
        format!("Wheel-Version: 1.0\nGenerator: perusal\nRoot-Is-Purelib: false\nTag: {tag}\n"),
    )?;
    write(
        about.join("METADATA"),
        format!(
            "Metadata-Version: 2.4\nName: perusal\nVersion: {VERSION}\nSummary: An MPI for one machine that shows what messages do\n\
             License-Expression: MIT OR Apache-2.0\nLicense-File: LICENSE-APACHE\nLicense-File: LICENSE-MIT\n\
             Classifier: Operating System :: POSIX :: Linux\nDescription-Content-Type: text/markdown\n\n{}",
            read("README.md")?
        ),
    )?;
    let licences = folder(about.join("licenses"))?;
    for licence in ["LICENSE-APACHE", "LICENSE-MIT"] {
        put(Path::new(licence), &licences.join(licence))?;
    }
    let pack = environment(&work.join("pack"), &["wheel"])?;
    run(command(pack.join("bin/wheel")).arg("pack").arg(&tree).arg("--dest-dir").arg(&work))?;
    println!("wheel: {} is ready", made(&work, "whl")?.display());
    Ok(())
}

/// `wheel-check [DIST]`: makes the wheel, and installs it with mpi4py, built for the standard ABI,
/// in a new environment.
pub fn check(arguments: &[String]) -> Result {
    main(arguments)?;
    let work = PathBuf::from("build/wheel");
    let wheel = made(&work, "whl")?;
    let tools = environment(&work.join("pack"), &["auditwheel", "wheel"])?;
    let shown = output(command(tools.join("bin/auditwheel")).arg("show").arg(&wheel))?;
    let tag = name(&wheel).rsplit('-').next().unwrap_or_default().replace(".whl", "");
    if !shown.contains(&tag) {
        return Err(format!("auditwheel does not say {tag}:\n{shown}"));
    }
    println!("wheel: auditwheel agrees with {tag}");
    let fresh = environment(&work.join("environment"), &[&*wheel.to_string_lossy()])?;
    let fresh = crate::shell::at(&fresh, std::fs::canonicalize(&fresh))?;
    let bin = fresh.join("bin");
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap_or_default());
    let mut pip = command(bin.join("pip"));
    pip.args([
        "install",
        "--quiet",
        "--disable-pip-version-check",
        "--no-cache-dir",
        "--no-binary",
        "mpi4py",
    ]);
    // The compiler of the environment, which the wheel has brought, and the environment's library:
    // nothing else leads to the distribution.
    run(pip.arg("mpi4py").env("PATH", &path).env("MPI4PY_BUILD_MPIABI", "1").env_remove("LD_LIBRARY_PATH"))?;
    let mut job = command(bin.join("mpiexec"));
    job.env("PATH", &path).env_remove("LD_LIBRARY_PATH").env("MPIEXEC_TIMEOUT", "120");
    let (good, text) = attempt(job.args(["-n", "4", "python", "-m", "mpi4py.bench", "helloworld"]));
    let hello = (0..4).all(|rank| text.contains(&format!("I am process {rank} of 4")));
    if !(good && hello) {
        return Err(format!("mpi4py's helloworld on four ranks:\n{text}"));
    }
    let mut library = command(bin.join("python"));
    library
        .env_remove("LD_LIBRARY_PATH")
        .args(["-c", "from mpi4py import MPI; print(MPI.Get_library_version())"]);
    let library = output(&mut library)?;
    if !library.to_lowercase().contains("perusal") {
        return Err(format!("mpi4py has found another library: {library}"));
    }
    builds_and_runs(&bin, &work)?;
    println!("wheel: mpi4py's helloworld ran on four ranks of it, and a program that its mpicc built");
    Ok(())
}

/// Makes an environment of Python's with these packages; returns its folder.
fn environment(place: &Path, packages: &[&str]) -> Result<PathBuf> {
    if !place.join("bin/pip").exists() {
        let make = || {
            command("python3").args(["-m", "venv"]).arg(place).output().is_ok_and(|out| out.status.success())
        };
        if !make() {
            need(&["python3-venv=no-such-program"])?;
            if !make() {
                return Err(format!("python3 -m venv {} fails", place.display()));
            }
        }
    }
    let mut pip = command(place.join("bin/pip"));
    run(pip.args(["install", "--quiet", "--disable-pip-version-check"]).args(packages))?;
    Ok(place.to_path_buf())
}

/// Puts the libraries that not every system has into `lib/perusal`, and makes the programs find them there.
fn bundle(data: &Path) -> Result {
    let place = folder(data.join("lib/perusal"))?;
    let mut brought = BTreeSet::new();
    for file in files(&data.join("bin"))? {
        if !crate::shell::at(&file, std::fs::read(&file))?.starts_with(b"\x7fELF") {
            continue;
        }
        for entry in output(command("ldd").arg(&file))?.lines() {
            let Some((library, path)) = entry.trim().split_once(" => ") else { continue };
            let path = path.split(" (").next().unwrap_or_default();
            if !MANYLINUX.contains(&library) && brought.insert(library.to_owned()) {
                put(Path::new(path), &place.join(library))?;
            }
        }
        run(command("patchelf").args(["--set-rpath", "$ORIGIN/../lib/perusal"]).arg(&file))?;
    }
    for library in files(&place)? {
        run(command("patchelf").args(["--set-rpath", "$ORIGIN"]).arg(&library))?;
    }
    Ok(())
}

/// The oldest glibc that has all that these binaries need.
fn glibc(tree: &Path) -> Result<String> {
    let mut newest = (2, 17);
    for file in binaries(tree)? {
        let needed = output(command("readelf").args(["-W", "--version-info"]).arg(&file))?;
        for version in needed.split("GLIBC_2.").skip(1) {
            let minor: String = version.chars().take_while(char::is_ascii_digit).collect();
            newest = newest.max((2, minor.parse().unwrap_or(0)));
        }
    }
    Ok(format!("{}.{}", newest.0, newest.1))
}
