//! Is a distribution what it should be? Each check is one line; the last is in the form of cargo's test runner.

use crate::dist::PACKAGES;
use crate::shell::{
    Result, attempt, cargo, command, distribution, empty, files, folder, has, name, output, read, root, tail,
    target, write,
};
use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// `check-dist [DIST]`
pub fn main(arguments: &[String]) -> Result {
    let (dist, _) = distribution(arguments)?;
    let dist = fs::canonicalize(&dist).map_err(|error| error.to_string())?;
    let mut check = Check::new(dist)?;
    check.libraries();
    check.provider();
    check.transport();
    check.programs();
    check.tools();
    check.wrappers();
    check.pages();
    check.manual();
    let Check { passed, failed, .. } = check;
    let word = if failed == 0 { "ok" } else { "FAILED" };
    println!("test result: {word}. {passed} passed; {failed} failed; 0 ignored");
    if failed == 0 { Ok(()) } else { Err(String::new()) }
}

const VERSION: &str = r#"#include <mpi.h>
#include <stdio.h>
int main(void) {
    int version, subversion;
    if (MPI_Get_version(&version, &subversion) != MPI_SUCCESS) return 1;
    printf("MPI %d.%d\n", version, subversion);
    return version != MPI_VERSION;
}
"#;

const TOOL: &str = r#"#include <mpi.h>
#include <stdio.h>
int MPI_Get_version(int *version, int *subversion) {
    puts("tool");
    return PMPI_Get_version(version, subversion);
}
"#;

/// What a check that failed says.
type CheckResult = std::result::Result<(), String>;

fn expect(found: &str, expected: &str) -> CheckResult {
    if found.trim_end() == expected { Ok(()) } else { Err(format!("expected {expected:?}, found {found:?}")) }
}

/// A folder with two programs in C, and what was counted.
struct Check {
    dist: PathBuf,
    work: PathBuf,
    passed: usize,
    failed: usize,
}

impl Check {
    fn new(dist: PathBuf) -> Result<Self> {
        let work = empty(target().join("check-dist"))?;
        for (name, text) in [("version.c", VERSION), ("version.cpp", VERSION), ("tool.c", TOOL)] {
            write(work.join(name), text)?;
        }
        Ok(Self { dist, work, passed: 0, failed: 0 })
    }

    fn that(&mut self, sentence: &str, check: impl FnOnce(&Check) -> CheckResult) {
        match check(self) {
            Ok(()) => {
                self.passed += 1;
                println!("ok: {sentence}");
            }
            Err(why) => {
                self.failed += 1;
                println!("FAILED: {sentence}\n{}", tail(&why, 20));
            }
        }
    }

    /// A wrapper of the distribution, run where the programs are.
    fn wrapper(&self, name: &str) -> Command {
        self.at(&self.dist.join("bin").join(name))
    }

    fn at(&self, program: &Path) -> Command {
        let mut command = command(program);
        command.current_dir(&self.work);
        command
    }

    fn must(command: &mut Command) -> std::result::Result<String, String> {
        let (good, text) = attempt(command);
        if good { Ok(text) } else { Err(text) }
    }

    fn builds(&self, compiler: &mut Command, arguments: &[&str], expected: &str) -> CheckResult {
        Self::must(compiler.args(arguments).args(["-o", "program"]))?;
        expect(&Self::must(&mut self.at(&self.work.join("program")))?, expected)
    }

    /// Weak `MPI_X` at the place of a strong `PMPI_X`, for every function of the ABI.
    fn twins(&self, library: &str, option: &str) -> CheckResult {
        let text = output(command("readelf").args(["-W", option]).arg(self.dist.join("lib").join(library)))?;
        let mut symbols = HashMap::new();
        for line in text.lines() {
            let fields: Vec<&str> = line.split_whitespace().collect();
            if let [_, value, _, _, binding, _, section, name] = fields[..]
                && section != "UND"
            {
                symbols.insert(name, (binding, value));
            }
        }
        let functions: Vec<&str> = symbols.keys().copied().filter(|name| name.starts_with("MPI_")).collect();
        if functions.len() < 664 {
            return Err(format!("only {} functions", functions.len()));
        }
        let wrong = |name: &&&str| {
            let (weak, strong) = (symbols[**name], symbols.get(&*format!("P{name}")));
            !(weak.0 == "WEAK" && strong == Some(&("GLOBAL", weak.1)))
        };
        let wrong: Vec<&str> = functions.iter().filter(wrong).copied().collect();
        if wrong.is_empty() {
            Ok(())
        } else {
            Err(format!("not a weak alias of its PMPI twin: {}", wrong.join(", ")))
        }
    }

    fn libraries(&mut self) {
        self.that("the shared library has each function weak and strong", |it| {
            it.twins("libmpi_abi.so.1", "--dyn-syms")
        });
        self.that("the static library has each function weak and strong", |it| {
            it.twins("libmpi_abi.a", "-s")
        });
        self.that(
            "programs and libraries are looked for beside each other, not where they were built",
            |it| {
                let mut seen = 0;
                for folder in ["bin", "lib"] {
                    for file in files(&it.dist.join(folder))?
                        .iter()
                        .filter(|file| file.is_file() && !file.is_symlink())
                    {
                        // A file that readelf refuses has no run path: a script, a text.
                        let (_, text) = attempt(it.at(Path::new("readelf")).args(["-W", "-d"]).arg(file));
                        for line in text.lines().filter(|line| line.contains("PATH)")) {
                            seen += 1;
                            let paths = line.split_once('[').and_then(|(_, rest)| rest.split_once(']'));
                            let paths = paths.map_or("", |(paths, _)| paths);
                            if paths.split(':').any(|path| !path.starts_with("$ORIGIN")) {
                                return Err(format!("{}: {line}", file.display()));
                            }
                        }
                    }
                }
                // The event logger needs the library beside it.
                if seen == 0 { Err("no run path at all".into()) } else { Ok(()) }
            },
        );
    }

    fn provider(&mut self) {
        self.that("a shell evaluates the variables of the libfabric provider, and the provider is there", |it| {
            for mpi in ["mpich", "intel", "openmpi"] {
                let script = format!(
                    "eval \"$('{}' fabric --env {mpi})\" && readelf -W --dyn-syms \"$FI_PROVIDER_PATH/libperusal-fi.so\"",
                    it.dist.join("bin/perusal").display()
                );
                let symbols = Self::must(it.at(Path::new("sh")).args(["-c", &script]))?;
                if !symbols.lines().any(|line| line.contains(" GLOBAL ") && line.ends_with(" fi_prov_ini")) {
                    return Err(format!("{mpi}: no fi_prov_ini\n{symbols}"));
                }
            }
            Ok(())
        });
    }

    fn transport(&mut self) {
        self.that("a C program uses the transport without MPI", |it| {
            let library = it.dist.join("lib");
            let mut compiler = it.at(Path::new("cc"));
            compiler.arg(root().join("examples/transport/pingpong.c")).arg("-I").arg(it.dist.join("include"));
            compiler.arg("-L").arg(&library).arg(format!("-Wl,-rpath,{}", library.display()));
            it.builds(&mut compiler, &["-lperusal-fi"], "1000 rounds; the other one has left: 1")
        });
        self.that(
            "and so does a Rust program in a package of its own, by the dependency that its page names",
            |it| {
                let page = read(root().join("docs/embedding.md"))?;
                let line = page.split('`').find(|code| code.starts_with("perusal-fabric = "));
                let line = line.ok_or("docs/embedding.md names none")?;
                let line = line.replace("path/of/perusal", &root().display().to_string());
                let package = empty(it.work.join("package"))?;
                let text = format!(
                    "[package]\nname = \"own\"\nedition = \"2024\"\n[workspace]\n[dependencies]\n{line}\n"
                );
                write(package.join("Cargo.toml"), text)?;
                // The versions that are here already: nothing is fetched.
                write(package.join("Cargo.lock"), read(root().join("Cargo.lock"))?)?;
                write(
                    folder(package.join("src"))?.join("main.rs"),
                    read(root().join("examples/transport/farm.rs"))?,
                )?;
                let mut run = cargo(["run", "--quiet", "--offline"]);
                // What it has built stays for the next time.
                run.current_dir(&package).env("CARGO_TARGET_DIR", target().join("own-package"));
                expect(&Self::must(&mut run)?, "200 results, all right: true; one worker was killed")
            },
        );
    }

    fn programs(&mut self) {
        const STRICT: [&str; 2] = ["-Wall", "-Werror"];
        self.that("a C program links and runs", |it| {
            it.builds(it.wrapper("mpicc").args(STRICT), &["version.c"], "MPI 5.0")
        });
        self.that("a C++ program links and runs", |it| {
            it.builds(it.wrapper("mpicxx").args(STRICT), &["version.cpp"], "MPI 5.0")
        });
        self.that("mpic++ is mpicxx", |it| it.builds(&mut it.wrapper("mpic++"), &["version.cpp"], "MPI 5.0"));
        self.that("a program links by the name that the library has with other MPIs", |it| {
            it.builds(&mut it.wrapper("mpicc"), &["version.c", "-lmpi"], "MPI 5.0")
        });
        self.that("and needs the library by its own name alone", |it| {
            let needed = Self::must(it.at(Path::new("readelf")).args(["-d", "program"]))?;
            if needed.contains("[libmpi_abi.so.1]") && !needed.contains("[libmpi.so") {
                Ok(())
            } else {
                Err(needed)
            }
        });
        self.that("a program links with the static library", |it| {
            it.builds(&mut it.wrapper("mpicc"), &["version.c", "-static-mpi"], "MPI 5.0")
        });
        self.that("and does not need the shared one", |it| {
            let needed = Self::must(it.at(Path::new("readelf")).args(["-d", "program"]))?;
            if needed.contains("libmpi_abi") { Err(needed) } else { Ok(()) }
        });
        self.that("a program links statically as a whole", |it| {
            it.builds(&mut it.wrapper("mpicc"), &["version.c", "-static"], "MPI 5.0")
        });
        self.that("and so at an address of the kernel's choice", |it| {
            it.builds(&mut it.wrapper("mpicc"), &["version.c", "-static-pie"], "MPI 5.0")
        });
        self.that("mpicc says why it compiles no program of 32 bits", |it| {
            let refused = it
                .wrapper("mpicc")
                .args(["version.c", "-m32"])
                .output()
                .map_err(|error| error.to_string())?;
            let said = String::from_utf8_lossy(&refused.stderr);
            if refused.status.code() == Some(2) && said.contains("64 bits") {
                Ok(())
            } else {
                Err(said.into())
            }
        });
        self.that("make install leaves folders as they are, and gives everybody what it puts there", |it| {
            let (from, to) = (it.work.join("private"), it.work.join("installed"));
            Self::must(it.at(Path::new("cp")).arg("-a").arg(&it.dist).arg(&from))?;
            Self::must(it.at(Path::new("chmod")).args(["-R", "go-rwx"]).arg(&from))?;
            Self::must(it.at(Path::new("mkdir")).args(["-p", "-m", "751"]).arg(&to).arg(to.join("bin")))?;
            let mut make = it.at(Path::new("make"));
            make.arg("-C").arg(root()).args(["-o", "dist", "install", "DESTDIR="]);
            make.arg(format!("DIST={}", from.display())).arg(format!("PREFIX={}", to.display()));
            Self::must(&mut make)?;
            let mut stat = it.at(Path::new("stat"));
            stat.args(["-c", "%a"]).args(["", "bin", "bin/mpicc", "include/mpi.h"].map(|part| to.join(part)));
            expect(&Self::must(&mut stat)?, "751\n751\n755\n644")?;
            it.builds(&mut it.at(&to.join("bin/mpicc")), &["version.c"], "MPI 5.0")
        });
        self.that("a distribution works where it is moved to", |it| {
            Self::must(it.at(Path::new("cp")).arg("-a").arg(&it.dist).arg("moved"))?;
            it.builds(&mut it.at(&it.work.join("moved/bin/mpicc")), &["version.c"], "MPI 5.0")
        });
    }

    fn tools(&mut self) {
        const BOTH: &str = "tool\nMPI 5.0";
        for (suffix, arguments) in [("", vec![]), (", statically", vec!["-static-mpi"])] {
            self.that(&format!("a tool interposes by link order{suffix}"), |it| {
                it.builds(
                    &mut it.wrapper("mpicc"),
                    &[&["version.c", "tool.c"], &arguments[..]].concat(),
                    BOTH,
                )
            });
        }
        for (suffix, arguments) in [("", vec![]), (", statically", vec!["-static-mpi"])] {
            self.that(&format!("a static profiling library interposes{suffix}"), |it| {
                Self::must(it.wrapper("mpicc").args(["-c", "tool.c"]))?;
                let _ = fs::remove_file(it.work.join("libtool.a"));
                Self::must(it.at(Path::new("ar")).args(["rc", "libtool.a", "tool.o"]))?;
                let line = [&["version.c", "-L.", "-ltool"], &arguments[..]].concat();
                it.builds(&mut it.wrapper("mpicc"), &line, BOTH)
            });
        }
        self.that("a tool interposes by LD_PRELOAD", |it| {
            Self::must(it.wrapper("mpicc").args(["version.c", "-o", "program"]))?;
            Self::must(it.wrapper("mpicc").args(["-shared", "-fPIC", "tool.c", "-o", "tool.so"]))?;
            let mut program = it.at(&it.work.join("program"));
            expect(&Self::must(program.env("LD_PRELOAD", it.work.join("tool.so")))?, BOTH)
        });
        for (sentence, argument) in [
            ("messages pass under a tool in the program", None),
            ("messages pass under a tool in the program, statically", Some("-static-mpi")),
            ("messages pass in a program that is static as a whole", Some("-static")),
        ] {
            self.that(sentence, |it| {
                let source = root().join("tests/c/interposed.c");
                Self::must(it.wrapper("mpicc").arg(source).args(argument).args(["-o", "program"]))?;
                Self::must(it.wrapper("mpiexec").args(["-n", "3", "./program"]).env("MPIEXEC_TIMEOUT", "600"))
                    .map(drop)
            });
        }
    }

    fn wrappers(&mut self) {
        self.that("mpicc passes the exit status of the compiler on", |it| {
            let status =
                it.wrapper("mpicc").arg("nothing.c").output().map_err(|error| error.to_string())?.status;
            expect(&status.code().unwrap_or(-1).to_string(), "1")
        });
        self.that("mpicc -help, however it is spelt, lists mpicc's own options", |it| {
            for spelling in ["-help", "--help", "-showme:help"] {
                let said = Self::must(it.wrapper("mpicc").arg(spelling))?;
                if !said.starts_with("usage: mpicc ")
                    || !said.contains("\n  -static-mpi ")
                    || said.contains("set -u")
                {
                    return Err(said);
                }
            }
            Ok(())
        });
        self.that("mpicc -show prints the command", |it| {
            let shown = Self::must(it.wrapper("mpicc").args(["-show", "x.c"]))?;
            if shown.contains("-lmpi_abi") { Ok(()) } else { Err(shown) }
        });
        self.that("mpicc -show does not link with -c", |it| {
            let shown = Self::must(it.wrapper("mpicc").args(["-show", "-c", "x.c"]))?;
            expect(&shown, &format!("cc -I{}/include -c x.c", it.dist.display()))
        });
        self.that("MPICC_CC names the compiler", |it| {
            let mut mpicc = it.wrapper("mpicc");
            let shown = Self::must(mpicc.args(["-show", "-c", "x.c"]).env("MPICC_CC", "ccache gcc"))?;
            if !shown.starts_with("ccache gcc ") {
                return Err(shown);
            }
            for (wrapper, name) in [("mpicc", "OMPI_CC"), ("mpicc", "MPICH_CC"), ("mpicxx", "I_MPI_CXX")] {
                let mut other = it.wrapper(wrapper);
                let shown = Self::must(other.args(["-show", "-c", "x.c"]).env(name, "another"))?;
                if !shown.starts_with("another ") {
                    return Err(format!("{name}: {shown}"));
                }
            }
            Ok(())
        });
        self.that("mpicc keeps blanks in arguments", |it| {
            it.builds(&mut it.wrapper("mpicc"), &["version.c", "-DTEXT=\"a b\""], "MPI 5.0")
        });
        self.that("pkg-config knows the library by each name, with its run path", |it| {
            for name in PACKAGES {
                let ask = |what: &str| {
                    let mut config = it.at(Path::new("pkg-config"));
                    config.args([what, name]).env("PKG_CONFIG_PATH", it.dist.join("lib/pkgconfig"));
                    Self::must(&mut config)
                };
                expect(ask("--libs-only-l")?.trim(), "-lmpi_abi")?;
                let others = ask("--libs-only-other")?;
                if !others.contains("-Wl,-rpath,") {
                    return Err(format!("{name}: {others}"));
                }
            }
            Ok(())
        });
    }

    fn pages(&mut self) {
        self.that("each link of an installed page leads to a file that is installed", |it| {
            let folder = it.dist.join("share/doc/perusal");
            let broken = [files(&folder)?, files(&folder.join("decisions"))?]
                .concat()
                .into_iter()
                .filter(|page| page.extension().is_some_and(|extension| extension == "md"))
                .map(|page| broken_links(&page))
                .collect::<Result<Vec<_>>>()?
                .concat();
            if broken.is_empty() { Ok(()) } else { Err(broken.join("\n")) }
        });
    }

    fn manual(&mut self) {
        self.that(
            "each program and each command has a man page, of which man and mandb have nothing to say",
            |it| {
                let man = it.dist.join("share/man");
                for program in files(&it.dist.join("bin"))? {
                    it.formats(&man.join(format!("man1/{}.1", name(&program))))?;
                }
                let help = Self::must(it.wrapper("perusal").arg("--help"))?;
                let commands = help.lines().skip_while(|line| *line != "Commands:").skip(1);
                // Lines of a long description begin further to the right.
                let commands = commands.map_while(|line| line.strip_prefix("  "));
                let commands = commands.filter(|line| !line.starts_with(' '));
                let commands = commands.filter_map(|line| line.split(' ').next());
                let commands: Vec<&str> = commands.filter(|word| *word != "help").collect();
                if commands.len() < 10 {
                    return Err(format!("the help lists {commands:?}"));
                }
                for command in commands {
                    it.formats(&man.join(format!("man1/perusal-{command}.1")))?;
                }
                if !has("mandb") {
                    return Ok(());
                }
                let copy = empty(it.work.join("man"))?;
                Self::must(it.at(Path::new("cp")).arg("-a").arg(man.join("man1")).arg(&copy))?;
                let (_, said) = attempt(it.at(Path::new("mandb")).arg("--user-db").arg(&copy));
                if said.contains("warning") { Err(said) } else { Ok(()) }
            },
        );
        self.that("bash completes commands and options", |it| {
            for (program, typed, expected) in
                [("perusal", "to", "top"), ("perusal", "run --bind", "--bind-to"), ("mpiexec", "--map", "--map-by")]
            {
                let words = format!("{program} {typed}");
                let last = words.split(' ').count() - 1;
                let script = format!(
                    "source '{}/share/bash-completion/completions/{program}'; COMP_WORDS=({words}); COMP_CWORD={last}; \
                     _{program} {program} \"${{COMP_WORDS[COMP_CWORD]}}\" \"${{COMP_WORDS[COMP_CWORD-1]}}\"; \
                     echo \"${{COMPREPLY[*]}}\"",
                    it.dist.display()
                );
                expect(&Self::must(it.at(Path::new("bash")).args(["-c", &script]))?, expected)?;
            }
            Ok(())
        });
        self.that("zsh and fish find their completions", |it| {
            let share = it.dist.join("share");
            for program in ["perusal", "mpiexec", "mpirun"] {
                let zsh = read(share.join(format!("zsh/site-functions/_{program}")))?;
                let fish = read(share.join(format!("fish/vendor_completions.d/{program}.fish")))?;
                if !zsh.starts_with(&format!("#compdef {program}\n"))
                    || !fish.contains(&format!("complete -c {program} "))
                {
                    return Err(format!("not for {program}"));
                }
            }
            Ok(())
        });
    }

    /// Whether a man page is there, and man formats it without a warning.
    fn formats(&self, page: &Path) -> CheckResult {
        if !page.exists() {
            return Err(format!("{} is not there", page.display()));
        }
        if !has("man") {
            return Ok(());
        }
        let mut man = self.at(Path::new("man"));
        man.args(["--warnings", "-E", "UTF-8", "-l", "-Tutf8", "-Z"]).arg(page).env("MANWIDTH", "100");
        let formatted = man.output().map_err(|error| error.to_string())?;
        let said = String::from_utf8_lossy(&formatted.stderr);
        if formatted.status.success() && said.is_empty() {
            Ok(())
        } else {
            Err(format!("{}: {said}", page.display()))
        }
    }
}

/// The links of a page that lead to no file beside it.
fn broken_links(page: &Path) -> Result<Vec<String>> {
    let text = read(page)?;
    let links = text.split("](").skip(1).filter_map(|rest| rest.split([')', '#']).next());
    let broken = links.filter(|link| !link.contains("://") && !page.with_file_name(link).exists());
    Ok(broken.map(|link| format!("{}: {link}", page.display())).collect())
}
