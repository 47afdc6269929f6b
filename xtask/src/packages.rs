//! Packages that people install: a Python wheel and a Debian package of a distribution, and whether they serve.

use crate::shell::{
    Result, attempt, command, copy_folder, distribution, empty, files, folder, link, name, need, output, put,
    put_program, read, run, write,
};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// The version of both packages.
const VERSION: &str = env!("CARGO_PKG_VERSION");
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
/// Whom a package names. Nobody answers there: the tree has no address.
const MAINTAINER: &str = "perusal developers <perusal@localhost>";

/// `wheel [DIST]`: writes `build/wheel/perusal-*.whl`, laid out as PyPI's wheel of MPICH is:
/// `bin`, `include` and `lib` of the environment.
pub fn wheel(arguments: &[String]) -> Result {
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
pub fn wheel_check(arguments: &[String]) -> Result {
    wheel(arguments)?;
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

/// `deb [DIST]`: writes `build/deb/perusal_*.deb`. Everything lies in a folder of its own;
/// Debian's alternatives lead to it.
pub fn deb(arguments: &[String]) -> Result {
    let (dist, _) = distribution(arguments)?;
    need(&["dpkg-dev=dpkg-shlibdeps", "patchelf"])?;
    let work = empty("build/deb")?;
    let triplet = output(command("dpkg-architecture").arg("-qDEB_HOST_MULTIARCH"))?.trim().to_owned();
    let arch = output(command("dpkg").arg("--print-architecture"))?.trim().to_owned();
    let prefix = format!("/usr/lib/{triplet}/perusal");
    let tree = DebianTree { dist, root: folder(work.join("tree"))?, triplet, prefix };
    tree.put_distribution()?;
    tree.put_pages()?;
    tree.put_commands()?;
    tree.strip()?;
    run(command("chmod").args(["-R", "u+rwX,go+rX,go-w"]).arg(&tree.root))?;
    let control = folder(tree.root.join("DEBIAN"))?;
    write(control.join("control"), tree.control(&work, &arch)?)?;
    put_program(&tree.postinst(), &control.join("postinst"))?;
    put_program(&tree.prerm(), &control.join("prerm"))?;
    let package = work.join(format!("perusal_{VERSION}_{arch}.deb"));
    run(command("dpkg-deb").args(["--root-owner-group", "--build"]).arg(&tree.root).arg(&package))?;
    println!("deb: {} is ready", package.display());
    Ok(())
}

/// What a Debian package has, as it lies in a folder.
struct DebianTree {
    dist: PathBuf,
    /// The folder.
    root: PathBuf,
    /// The machine's name in paths of libraries.
    triplet: String,
    /// Where the distribution lies once it is installed.
    prefix: String,
}

impl DebianTree {
    /// Where a path of the installed package lies.
    fn inside(&self, path: &str) -> PathBuf {
        self.root.join(path.trim_start_matches('/'))
    }

    fn put_distribution(&self) -> Result {
        let prefix = &self.prefix;
        folder(self.inside(prefix))?;
        for part in ["bin", "include", "lib"] {
            run(command("cp").arg("-a").arg(self.dist.join(part)).arg(self.inside(prefix)))?;
        }
        for config in files(&self.inside(&format!("{prefix}/lib/pkgconfig")))? {
            // Found through a link of the alternatives, a file does not know where it is.
            write(&config, read(&config)?.replace("prefix=${pcfiledir}/../..", &format!("prefix={prefix}")))?;
        }
        Ok(())
    }

    fn put_pages(&self) -> Result {
        let pages = self.inside("/usr/share/doc/perusal");
        copy_folder(&self.dist.join("share/doc/perusal"), &pages)?;
        for licence in ["LICENSE-APACHE", "LICENSE-MIT"] {
            crate::shell::at(&pages, std::fs::remove_file(pages.join(licence)))?;
        }
        let mit = read("LICENSE-MIT")?;
        write(
            pages.join("copyright"),
            format!(
                "perusal may be used under the Apache License 2.0 (/usr/share/common-licenses/Apache-2.0),\nor under this one:\n\n{mit}"
            ),
        )?;
        write(
            pages.join("changelog"),
            format!(
                "perusal ({VERSION}) unstable; urgency=low\n\n  * Built from its source tree.\n\n -- {MAINTAINER}  Thu, 01 Jan 1970 00:00:00 +0000\n"
            ),
        )?;
        run(command("gzip").args(["-9n"]).arg(pages.join("changelog")))
    }

    fn put_commands(&self) -> Result {
        let bin = folder(self.inside("/usr/bin"))?;
        let to = format!("../lib/{}/perusal/bin", self.triplet);
        link(&format!("{to}/perusal"), &bin.join("perusal"))?;
        for program in ["mpicc", "mpicxx", "mpiexec", "mpirun"] {
            link(&format!("{to}/{program}"), &bin.join(format!("{program}.perusal")))?;
        }
        Ok(())
    }

    fn strip(&self) -> Result {
        let prefix = self.inside(&self.prefix);
        strip(&prefix)?;
        find_beside(&prefix.join("lib"))?;
        run(command("strip").arg("--strip-debug").arg(prefix.join("lib/libmpi_abi.a")))
    }

    /// What the package says of itself.
    fn control(&self, work: &Path, arch: &str) -> Result<String> {
        let size = output(command("du").args(["-sk", "--apparent-size"]).arg(&self.root))?;
        let size = size.split_whitespace().next().unwrap_or("0");
        Ok(format!(
            "Package: perusal\nVersion: {VERSION}\nArchitecture: {arch}\nMaintainer: {MAINTAINER}\nInstalled-Size: {size}\nDepends: {}\n\
             Recommends: gcc | c-compiler, g++ | c++-compiler, pkg-config\nSection: net\nPriority: optional\n\
             Description: MPI for one machine that shows what messages do\n \
             A shared-memory message engine that exports the standard ABI of MPI 5.0,\n \
             PERUSE 2.0 and events of the MPI tool information interface.\n .\n \
             It installs beside other MPIs: update-alternatives chooses among them.\n",
            dependencies(work, &self.inside(&self.prefix))?
        ))
    }

    /// What Debian runs once the package is installed. Names and groups are those of Debian's packages of MPICH and
    /// Open MPI, which have priorities 40 and 50.
    fn postinst(&self) -> String {
        let Self { triplet, prefix, .. } = self;
        let lib = format!("/usr/lib/{triplet}");
        let config = |to: &str| {
            let there = self.dist.join(format!("lib/pkgconfig/{to}")).exists();
            let file = if there { to } else { "perusal.pc" };
            format!("    --slave {lib}/pkgconfig/{to} {to}-{triplet} {prefix}/lib/pkgconfig/{file}")
        };
        format!(
            "#!/bin/sh\nset -e\nif [ \"$1\" = configure ]; then\n\
             update-alternatives --install /usr/bin/mpicc mpi /usr/bin/mpicc.perusal 30 \\\n    \
             --slave /usr/bin/mpic++ mpic++ /usr/bin/mpicxx.perusal \\\n    \
             --slave /usr/bin/mpicxx mpicxx /usr/bin/mpicxx.perusal \\\n    \
             --slave /usr/bin/mpiCC mpiCC /usr/bin/mpicxx.perusal\n\
             update-alternatives --install /usr/bin/mpirun mpirun /usr/bin/mpirun.perusal 30 \\\n    \
             --slave /usr/bin/mpiexec mpiexec /usr/bin/mpiexec.perusal\n\
             update-alternatives --install /usr/include/{triplet}/mpi mpi-{triplet} {prefix}/include 30 \\\n    \
             --slave {lib}/libmpi.so libmpi.so-{triplet} {prefix}/lib/libmpi_abi.so \\\n\
             {} \\\n{} \\\n{}\n\
             update-alternatives --install {lib}/libmpi_abi.so.1 libmpi_abi.so.1-{triplet} {prefix}/lib/libmpi_abi.so.1 30\nfi\n",
            config("mpi.pc"),
            config("mpi-c.pc"),
            config("mpi-cxx.pc"),
        )
    }

    /// What Debian runs before the package is removed.
    fn prerm(&self) -> String {
        let Self { triplet, prefix, .. } = self;
        format!(
            "#!/bin/sh\nset -e\nif [ \"$1\" = remove ] || [ \"$1\" = deconfigure ]; then\n\
             update-alternatives --remove mpi /usr/bin/mpicc.perusal\n\
             update-alternatives --remove mpirun /usr/bin/mpirun.perusal\n\
             update-alternatives --remove mpi-{triplet} {prefix}/include\n\
             update-alternatives --remove libmpi_abi.so.1-{triplet} {prefix}/lib/libmpi_abi.so.1\nfi\n"
        )
    }
}

/// A folder into which packages of Debian's are installed. What the packages depend on is not what is tried there; and
/// their scripts act on the folder, not on this machine.
struct DebianRoot(PathBuf);

impl DebianRoot {
    /// Makes it anew in `work`.
    fn make(work: &Path) -> Result<Self> {
        let root = empty(work.join("root"))?;
        for part in
            ["var/lib/dpkg/updates", "var/lib/dpkg/info", "var/lib/dpkg/alternatives", "etc/alternatives"]
        {
            folder(root.join(part))?;
        }
        folder(root.join("var/log"))?;
        write(root.join("var/lib/dpkg/status"), "")?;
        Ok(Self(root))
    }

    fn dpkg(&self) -> std::process::Command {
        let mut dpkg = command("dpkg");
        dpkg.arg(format!("--root={}", self.0.display()));
        dpkg.args(["--force-depends", "--force-script-chrootless", "--force-not-root"]);
        dpkg
    }

    /// Chooses `path` among the alternatives of `name`.
    fn choose(&self, name: &str, path: &str) -> Result {
        must(command("update-alternatives").arg("--root").arg(&self.0).args(["--set", name, path]))
    }

    /// The file that a path leads to, through symbolic links.
    fn leads(&self, path: &str) -> String {
        let mut path = PathBuf::from(path);
        while let Ok(to) = std::fs::read_link(self.0.join(path.strip_prefix("/").unwrap_or(&path))) {
            path = if to.is_absolute() { to } else { path.parent().unwrap_or(Path::new("/")).join(to) };
        }
        path.to_string_lossy().into_owned()
    }

    /// Fails unless all that Debian gives to the MPI that was chosen leads to perusal's, which is at `prefix`.
    fn is_chosen(&self, triplet: &str, prefix: &str) -> Result {
        let lib = format!("/usr/lib/{triplet}");
        for place in [
            "/usr/bin/mpicc".to_owned(),
            "/usr/bin/mpicxx".into(),
            "/usr/bin/mpiCC".into(),
            "/usr/bin/mpiexec".into(),
            "/usr/bin/mpirun".into(),
            format!("/usr/include/{triplet}/mpi"),
            format!("{lib}/libmpi.so"),
            format!("{lib}/libmpi_abi.so.1"),
            format!("{lib}/pkgconfig/mpi.pc"),
            format!("{lib}/pkgconfig/mpi-c.pc"),
            format!("{lib}/pkgconfig/mpi-cxx.pc"),
        ] {
            let to = self.leads(&place);
            let file = self.0.join(to.trim_start_matches('/'));
            if !to.contains("perusal") || !file.exists() {
                return Err(format!("{place} leads to {to}"));
            }
            if place.ends_with(".pc") && !read(&file)?.starts_with(&format!("prefix={prefix}\n")) {
                return Err(format!("{place} names another place than {prefix}"));
            }
        }
        Ok(())
    }
}

/// Runs a command, whose output is shown only if it fails.
fn must(command: &mut std::process::Command) -> Result {
    let (good, text) = attempt(command);
    if good { Ok(()) } else { Err(format!("{}\n{text}", crate::shell::line(command))) }
}

/// `deb-check [DIST]`: makes the Debian package, and installs it into a folder beside Debian's MPICH and Open MPI,
/// and removes it again.
pub fn deb_check(arguments: &[String]) -> Result {
    deb(arguments)?;
    let work = crate::shell::at(Path::new("build/deb"), std::fs::canonicalize("build/deb"))?;
    let package = made(&work, "deb")?;
    let root = DebianRoot::make(&work)?;
    let others = empty(work.join("others"))?;
    let mut get = command("apt-get");
    get.current_dir(&others).args(["download", "--quiet=2", "-o", "APT::Sandbox::User=root"]);
    run(get.args(["mpich", "libmpich-dev", "openmpi-bin", "libopenmpi-dev"]))?;
    must(root.dpkg().arg("--install").args(files(&others)?))?;
    must(root.dpkg().arg("--install").arg(&package))?;
    let before = root.leads("/usr/bin/mpicc");
    if before.contains("perusal") {
        return Err("the package has taken the place of another MPI without being asked".into());
    }
    let triplet = output(command("dpkg-architecture").arg("-qDEB_HOST_MULTIARCH"))?.trim().to_owned();
    let prefix = format!("/usr/lib/{triplet}/perusal");
    root.choose("mpi", "/usr/bin/mpicc.perusal")?;
    root.choose("mpirun", "/usr/bin/mpirun.perusal")?;
    root.choose(&format!("mpi-{triplet}"), &format!("{prefix}/include"))?;
    root.is_chosen(&triplet, &prefix)?;
    builds_and_runs(&root.0.join(prefix.trim_start_matches('/')).join("bin"), &work)?;
    must(root.dpkg().args(["--purge", "perusal"]))?;
    let mut find = command("find");
    let left = output(find.arg(&root.0).args(["-name", "*perusal*", "-not", "-path", "*/var/lib/dpkg/*"]))?;
    let after = root.leads("/usr/bin/mpicc");
    if !left.trim().is_empty() || after != before {
        return Err(format!("after its removal there is {left}, and mpicc is {after}"));
    }
    println!("deb: installed beside Debian's MPICH and Open MPI, chosen, used and removed");
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

/// What the programs and libraries in `prefix` depend on, as Debian names it.
fn dependencies(work: &Path, prefix: &Path) -> Result<String> {
    folder(work.join("debian"))?;
    write(work.join("debian/control"), "Source: perusal\n\nPackage: perusal\nArchitecture: any\n")?;
    let prefix = crate::shell::at(prefix, std::fs::canonicalize(prefix))?;
    let mut depends = command("dpkg-shlibdeps");
    depends.current_dir(work).args(["-O", "--ignore-missing-info"]);
    depends.arg(format!("-l{}", prefix.join("lib").display()));
    for file in binaries(&prefix)? {
        depends.arg(format!("-e{}", file.display()));
    }
    let found = output(&mut depends)?;
    found
        .trim()
        .strip_prefix("shlibs:Depends=")
        .map(str::to_owned)
        .ok_or_else(|| format!("dpkg-shlibdeps: {found}"))
}
