//! A distribution: `dist/{bin,include,lib,share}`.

use crate::shell::{
    self, Result, cargo, command, copy_folder, files, folder, link, name, output, put, put_program, read,
    run, write,
};
use std::path::{Path, PathBuf};
use std::process::Command;

/// The version, as the wrappers say it.
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// `dist [DIST]`
pub fn main(arguments: &[String]) -> Result {
    let shown = arguments.first().map_or("dist", String::as_str);
    let dist = shell::root().join(shown);
    say("building the library and the launcher");
    let (library, launcher) = build()?;
    for part in ["bin", "include", "lib/pkgconfig", "share/doc/perusal"] {
        folder(dist.join(part))?;
    }
    put(&library.join("libperusal_abi.so"), &dist.join("lib/libmpi_abi.so.1"))?;
    put(&library.join("libperusal_abi.a"), &dist.join("lib/libmpi_abi.a"))?;
    link("libmpi_abi.so.1", &dist.join("lib/libmpi_abi.so"))?;
    // Build files say `-lmpi`, and configure scripts try it.
    // A program that is linked so asks for libmpi_abi.so.1 all the same.
    link("libmpi_abi.so.1", &dist.join("lib/libmpi.so"))?;
    // libfabric takes files whose names end in `-fi.so`.
    put(&provider()?, &dist.join("lib/libperusal-fi.so"))?;
    put(&launcher, &dist.join("bin/perusal"))?;
    link("perusal", &dist.join("bin/mpiexec"))?;
    link("perusal", &dist.join("bin/mpirun"))?;
    for header in files(Path::new("include"))? {
        put(&header, &dist.join("include").join(name(&header)))?;
    }
    let wrapper = read("wrappers/mpicc")?.replace("@VERSION@", VERSION);
    for name in ["mpicc", "mpicxx"] {
        put_program(&wrapper, &dist.join("bin").join(name))?;
    }
    link("mpicxx", &dist.join("bin/mpic++"))?;
    // Build systems ask for MPI by the names that MPICH and Open MPI have made usual.
    let package = read("wrappers/perusal.pc.in")?.replace("@VERSION@", VERSION);
    for name in PACKAGES {
        write(dist.join(format!("lib/pkgconfig/{name}.pc")), package.replace("@NAME@", name))?;
    }
    event_logger(&dist)?;
    interposer(&dist, "heap")?;
    interposer(&dist, "yield")?;
    pages(&dist.join("share/doc/perusal"))?;
    manual(&dist)?;
    say(&format!("{shown}/ is ready: {shown}/bin/mpicc, {shown}/bin/mpiexec, {shown}/lib/libmpi_abi.so.1"));
    Ok(())
}

/// The names by which pkg-config knows the library.
pub const PACKAGES: [&str; 4] = ["perusal", "mpi", "mpi-c", "mpi-cxx"];

fn say(what: &str) {
    println!("dist: {what}");
}

/// Builds the library, optimised as a whole, and the launcher, in folders of their own and at the same time. The
/// library goes first: the end of its build has one processor busy, and the launcher has the other. Returns the
/// library's folder and the launcher.
fn build() -> Result<(PathBuf, PathBuf)> {
    let mut launcher = cargo(["build", "--quiet", "--locked", "--profile", "launcher"]);
    launcher.args(["--package", "perusal-cli", "--bin", "perusal"]);
    let mut building = shell::nice(&launcher).spawn().map_err(|error| format!("cargo: {error}"))?;
    let built = library("release", &[]);
    let status = building.wait().map_err(|error| format!("cargo: {error}"))?;
    if !status.success() {
        return Err("the launcher does not build".into());
    }
    Ok((built?, shell::target().join("launcher/perusal")))
}

/// Builds the shared and the static library with these arguments of cargo's; returns the folder.
pub fn library(folder: &str, arguments: &[&str]) -> Result<PathBuf> {
    let mut library =
        cargo(["rustc", "--quiet", "--locked", "--release", "--package", "perusal-abi", "--lib"]);
    library.args(["--crate-type", "cdylib,staticlib"]).args(arguments);
    run(&mut library).map_err(|_| "the library does not build".to_owned())?;
    Ok(shell::target().join(folder))
}

/// Builds the provider of libfabric. Returns the file.
fn provider() -> Result<PathBuf> {
    let mut provider =
        cargo(["rustc", "--quiet", "--locked", "--release", "--package", "perusal-fabric", "--lib"]);
    run(provider.args(["--crate-type", "cdylib"]))
        .map_err(|_| "the provider of libfabric does not build".to_owned())?;
    Ok(shell::target().join("release/libperusal_fi.so"))
}

fn event_logger(dist: &Path) -> Result {
    // Without the wrapper's run path, which names this folder: the library goes where the distribution is copied to.
    let mut compiler = command(dist.join("bin/mpicc"));
    compiler
        .args(["-nompi", "-std=c11", "-D_GNU_SOURCE", "-O2", "-fPIC", "-shared"])
        .arg("-I")
        .arg(dist.join("include"));
    compiler.args(sources("tools/mel")?).arg("-L").arg(dist.join("lib")).arg("-lmpi_abi");
    compiler.args(["-Wl,-rpath,$ORIGIN", "-Wl,--enable-new-dtags"]);
    compile(&mut compiler, &dist.join("lib/libperusal-mel.so"))
}

/// Compiles a library that is preloaded.
fn interposer(dist: &Path, name: &str) -> Result {
    let mut compiler = command(std::env::var_os("CC").unwrap_or_else(|| "cc".into()));
    compiler.args([
        "-std=c11",
        "-D_GNU_SOURCE",
        "-O2",
        "-fPIC",
        "-fvisibility=hidden",
        "-fno-builtin",
        "-shared",
    ]);
    let library = dist.join(format!("lib/libperusal-{name}.so"));
    compile(compiler.arg(format!("preload/{name}.c")), &library)
}

fn sources(folder: &str) -> Result<Vec<PathBuf>> {
    let all = files(Path::new(folder))?;
    Ok(all.into_iter().filter(|file| file.extension().is_some_and(|e| e == "c")).collect())
}

fn compile(compiler: &mut Command, library: &Path) -> Result {
    let new = library.with_extension("new");
    run(compiler.arg("-o").arg(&new))?;
    put(&new, library)?;
    shell::at(&new, std::fs::remove_file(&new))
}

/// Writes man pages and shell completions. The page of the compiler wrappers is what they say of themselves.
fn manual(dist: &Path) -> Result {
    let share = dist.join("share");
    run(command(dist.join("bin/perusal")).arg("manual").arg(&share))?;
    let help = output(command(dist.join("bin/mpicc")).arg("-help"))?;
    let (usage, rest) = help.split_once('\n').ok_or("mpicc -help says nothing")?;
    let usage = usage.trim_start_matches("usage: ");
    let rest = rest.replace('\\', "\\e").replace('-', "\\-").replace("\n.", "\n\\&.");
    let pages = share.join("man/man1");
    write(
        pages.join("mpicc.1"),
        format!(
            ".TH mpicc 1 \"\" \"perusal {VERSION}\" perusal\n.SH NAME\nmpicc, mpicxx, mpic++ \\- compile and link MPI programs\n\
             .SH SYNOPSIS\n\\fB{usage}\\fR\n.SH DESCRIPTION\n.nf\n{rest}.fi\n.SH SEE ALSO\nperusal(1)\n"
        ),
    )?;
    ["mpicxx.1", "mpic++.1"].iter().try_for_each(|page| link("mpicc.1", &pages.join(page)))
}

fn pages(to: &Path) -> Result {
    for page in files(Path::new("docs"))? {
        if page.is_dir() {
            copy_folder(&page, &to.join(name(&page)))?;
        } else {
            put(&page, &to.join(name(&page)))?;
        }
    }
    copy_folder(Path::new("examples"), &to.join("examples"))?;
    for licence in ["LICENSE-APACHE", "LICENSE-MIT"] {
        put(Path::new(licence), &to.join(licence))?;
    }
    // There the other pages lie beside these two.
    ["README.md", "CONTRIBUTING.md"]
        .iter()
        .try_for_each(|page| write(to.join(page), read(page)?.replace("](docs/", "](")))
}
