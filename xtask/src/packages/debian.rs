//! The Debian package. Everything lies in a folder of its own; Debian's alternatives lead to it.

use super::{VERSION, binaries, builds_and_runs, find_beside, made, strip};
use crate::shell::{
    Result, attempt, command, copy_folder, distribution, empty, files, folder, link, name, need, output, put,
    put_program, read, run, write,
};
use std::path::{Path, PathBuf};

/// Whom a package names. Nobody answers there: the tree has no address.
const MAINTAINER: &str = "perusal developers <perusal@localhost>";

/// Where Debian's man pages of commands lie.
const MAN: &str = "/usr/share/man/man1";

/// The name of a man page in the package: the alternatives choose among pages as they do among commands.
fn package_page(page: &str) -> String {
    if page.starts_with("perusal") { format!("{page}.gz") } else { page.replace(".1", ".perusal.1.gz") }
}

/// `deb [DIST]`: writes `build/deb/perusal_*.deb`.
pub fn main(arguments: &[String]) -> Result {
    let (dist, _) = distribution(arguments)?;
    need(&["dpkg-dev=dpkg-shlibdeps", "patchelf"])?;
    let work = empty("build/deb")?;
    let triplet = output(command("dpkg-architecture").arg("-qDEB_HOST_MULTIARCH"))?.trim().to_owned();
    let arch = output(command("dpkg").arg("--print-architecture"))?.trim().to_owned();
    let prefix = format!("/usr/lib/{triplet}/perusal");
    let tree = DebianTree { dist, root: folder(work.join("tree"))?, triplet, prefix };
    tree.put_distribution()?;
    tree.put_pages()?;
    tree.put_manual()?;
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

/// `deb-check [DIST]`: makes the Debian package, and installs it into a folder beside Debian's MPICH and Open MPI,
/// and removes it again.
pub fn check(arguments: &[String]) -> Result {
    main(arguments)?;
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

    /// Puts man pages and shell completions where Debian looks for them.
    fn put_manual(&self) -> Result {
        let share = self.dist.join("share");
        let man = folder(self.inside(MAN))?;
        for page in files(&share.join("man/man1"))? {
            let at = man.join(package_page(&name(&page)));
            if let Ok(other) = std::fs::read_link(&page) {
                link(&package_page(&name(&other)), &at)?;
            } else {
                let text = at.with_extension("");
                put(&page, &text)?;
                run(command("gzip").arg("-9n").arg(text))?;
            }
        }
        for (completions, folders) in [
            ("bash-completion/completions/perusal", "bash-completion/completions"),
            ("zsh/site-functions/_perusal", "zsh/vendor-completions"),
            ("fish/vendor_completions.d/perusal.fish", "fish/vendor_completions.d"),
        ] {
            let completions = share.join(completions);
            let to = folder(self.inside(&format!("/usr/share/{folders}")))?;
            put(&completions, &to.join(name(&completions)))?;
        }
        Ok(())
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
        let page =
            |of: &str, to: &str| format!("    --slave {MAN}/{of}.1.gz {of}.1.gz {MAN}/{to}.perusal.1.gz");
        let config =
            |to: &str| format!("    --slave {lib}/pkgconfig/{to} {to}-{triplet} {prefix}/lib/pkgconfig/{to}");
        format!(
            "#!/bin/sh\nset -e\nif [ \"$1\" = configure ]; then\n\
             update-alternatives --install /usr/bin/mpicc mpi /usr/bin/mpicc.perusal 30 \\\n    \
             --slave /usr/bin/mpic++ mpic++ /usr/bin/mpicxx.perusal \\\n    \
             --slave /usr/bin/mpicxx mpicxx /usr/bin/mpicxx.perusal \\\n    \
             --slave /usr/bin/mpiCC mpiCC /usr/bin/mpicxx.perusal \\\n{} \\\n{} \\\n{} \\\n{}\n\
             update-alternatives --install /usr/bin/mpirun mpirun /usr/bin/mpirun.perusal 30 \\\n    \
             --slave /usr/bin/mpiexec mpiexec /usr/bin/mpiexec.perusal \\\n{} \\\n{}\n\
             update-alternatives --install /usr/include/{triplet}/mpi mpi-{triplet} {prefix}/include 30 \\\n    \
             --slave {lib}/libmpi.so libmpi.so-{triplet} {prefix}/lib/libmpi_abi.so \\\n\
             {} \\\n{} \\\n{}\n\
             update-alternatives --install {lib}/libmpi_abi.so.1 libmpi_abi.so.1-{triplet} {prefix}/lib/libmpi_abi.so.1 30\nfi\n",
            page("mpicc", "mpicc"),
            page("mpic++", "mpicxx"),
            page("mpicxx", "mpicxx"),
            page("mpiCC", "mpicxx"),
            page("mpirun", "mpirun"),
            page("mpiexec", "mpiexec"),
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
            format!("{MAN}/mpicc.1.gz"),
            format!("{MAN}/mpiexec.1.gz"),
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
