//! Jobs on several hosts: MPICH's launcher starts them, with MPICH's library in place of perusal's and perusal's
//! provider of libfabric below it. The program is the same: both libraries have the standard's ABI.
//!
//! | file | what it has |
//! |---|---|
//! | `mod` | the command line for MPICH's launcher |
//! | `this_machine` | which names are this machine's |
//! | `fabric` | `perusal fabric`: the provider of libfabric under another MPI |
//! | `endpoints` | `perusal fabric --show`: what endpoints of the provider do |
//! | `traced` | `perusal fabric --trace`: what they have done, in a trace |

mod endpoints;
pub mod fabric;
pub mod this_machine;
mod traced;

use std::ffi::{OsStr, OsString};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::args::{Plan, Stdin};
use crate::start::environment::VariableChange;
use crate::start::preload;

/// MPICH's launcher.
const LAUNCHER: &str = "mpiexec.hydra";
/// The library by the standard's ABI.
const LIBRARY: &str = "libmpi_abi.so.1";
/// Names the folder that MPICH is installed in, where its launcher is not in PATH.
const MPICH: &str = "PERUSAL_MPICH";

/// Hosts of a job, and how to reach them.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Hosts {
    /// `HOST` or `HOST:RANKS`, in order.
    pub list: Vec<String>,
    /// Options that MPICH's launcher takes as they are: name and value.
    pub options: Vec<(&'static str, OsString)>,
}

impl Hosts {
    /// How many ranks the hosts are for.
    ///
    /// # Errors
    ///
    /// As for [`ranks`].
    pub fn ranks(&self) -> Result<u32, String> {
        ranks(&self.list)
    }
}

/// How many ranks `hosts` are for; a host without a number is for one.
///
/// # Errors
///
/// What a number cannot be.
pub fn ranks(hosts: &[String]) -> Result<u32, String> {
    hosts.iter().try_fold(0_u32, |sum, host| Ok(sum.saturating_add(ranks_of(host)?)))
}

fn ranks_of(host: &str) -> Result<u32, String> {
    let number = match host.rsplit_once(']') {
        Some((_, behind)) => behind,
        // An address of IPv6.
        None if host.matches(':').count() > 1 => "",
        None => host.find(':').map_or("", |at| &host[at..]),
    };
    let ranks = match number.strip_prefix(':') {
        Some(number) => number.parse().ok(),
        None => number.is_empty().then_some(1),
    };
    let ranks = ranks.filter(|ranks: &u32| *ranks > 0 && number != host);
    ranks.ok_or_else(|| format!("--hosts {host}: it must be HOST or HOST:RANKS"))
}

/// An MPICH that can run the program.
#[derive(Debug)]
struct Mpich {
    launcher: PathBuf,
    /// Where its libraries are.
    libraries: PathBuf,
}

impl Mpich {
    /// Finds it by PERUSAL_MPICH, or by PATH.
    fn find() -> Result<Self, String> {
        let named = std::env::var_os(MPICH).filter(|prefix| !prefix.is_empty());
        let launcher = match &named {
            Some(prefix) => Some(Path::new(prefix).join("bin").join(LAUNCHER)).filter(|path| path.is_file()),
            None => {
                let path = std::env::var_os("PATH").unwrap_or_default();
                std::env::split_paths(&path).map(|dir| dir.join(LAUNCHER)).find(|path| path.is_file())
            }
        };
        let how = "install MPICH 5 (`pip install mpich`) on every host, at the same place, and have its bin in PATH or its folder in PERUSAL_MPICH";
        let launcher = launcher.ok_or_else(|| match &named {
            Some(prefix) => format!(
                "jobs on several hosts are started by MPICH's launcher, and {MPICH}={} has no bin/{LAUNCHER}: {how}",
                prefix.to_string_lossy()
            ),
            None => format!(
                "jobs on several hosts are started by MPICH's launcher, and {LAUNCHER} is not in PATH: {how}"
            ),
        })?;
        let prefix = launcher.parent().and_then(Path::parent).unwrap_or(Path::new("/"));
        let folders = ["lib", "lib64"].map(|folder| prefix.join(folder));
        match folders.iter().find(|folder| folder.join(LIBRARY).exists()) {
            Some(libraries) => Ok(Self { launcher, libraries: libraries.clone() }),
            None => Err(format!(
                "the MPICH of {} has no {LIBRARY} in {}: it is too old, or was built without the standard's ABI; {how}",
                launcher.display(),
                folders[0].display()
            )),
        }
    }
}

/// What of a plan MPICH's launcher cannot do.
fn refuse(plan: &Plan) -> Result<(), String> {
    let asked = [
        ("--trace", plan.trace.is_some()),
        ("--survive", plan.survive),
        ("--deadlock-report", plan.deadlock_report.is_some()),
        ("--universe", plan.universe.is_some()),
        ("--report-bindings", plan.report_bindings),
        ("--output-filename", plan.files.names.iter().flatten().any(|name| !name.is_pattern())),
        ("--merge-stderr-to-stdout", plan.files.merged),
    ];
    match asked.iter().find(|one| one.1) {
        Some((option, _)) => {
            Err(format!("{option} works where perusal's own library runs: on one machine, without --hosts"))
        }
        None => Ok(()),
    }
}

/// Becomes MPICH's launcher with this job. Returns only if that fails.
pub fn run(plan: &Plan, hosts: &Hosts) -> String {
    let command = refuse(plan)
        .and_then(|()| Ok((Mpich::find()?, preload::library(fabric::PROVIDER, "the provider of libfabric")?)))
        .map(|(mpich, provider)| command(plan, hosts, &mpich, &provider));
    match command {
        Ok(mut command) => {
            let error = command.exec();
            format!("{} cannot be started: {error}", command.get_program().to_string_lossy())
        }
        Err(why) => why,
    }
}

fn command(plan: &Plan, hosts: &Hosts, mpich: &Mpich, provider: &Path) -> Command {
    let mut command = Command::new(&mpich.launcher);
    let mut libraries = mpich.libraries.clone().into_os_string();
    if let Some(others) = std::env::var_os("LD_LIBRARY_PATH").filter(|others| !others.is_empty()) {
        libraries.push(":");
        libraries.push(others);
    }
    let set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    let mut own: Vec<(&str, OsString)> = vec![("LD_LIBRARY_PATH", libraries)];
    let folder = provider.parent().unwrap_or(Path::new("/"));
    let variables =
        fabric::variables(fabric::OtherMpi::Mpich, Some(fabric::NETWORK), &folder.to_string_lossy());
    own.extend(variables.into_iter().map(|(name, value)| (name, value.into())));
    // Whoever names a list of providers has another network.
    own.retain(|one| one.0 != "FI_PROVIDER" || !set("FI_PROVIDER"));
    command.args(["-hosts", &hosts.list.join(",")]);
    for (name, value) in &hosts.options {
        command.arg(name).arg(value);
    }
    for (name, value) in &own {
        command.env(name, value);
        command.arg("-genv").arg(name).arg(value);
    }
    if plan.label {
        command.arg("-l");
    }
    match plan.stdin {
        Stdin::None => _ = command.args(["-s", "none"]),
        Stdin::All => _ = command.args(["-s", "all"]),
        Stdin::Rank(0) => {}
        Stdin::Rank(rank) => _ = command.args(["-s", &rank.to_string()]),
    }
    if let Some(seconds) = plan.timeout {
        command.env("MPIEXEC_TIMEOUT", seconds.as_secs().max(1).to_string());
    }
    for (at, app) in plan.apps.iter().enumerate() {
        if at > 0 {
            command.arg(":");
        }
        command.args(["-n", &app.count.to_string()]);
        if let Some(wdir) = &app.wdir {
            command.arg("-wdir").arg(wdir);
        }
        if let Some(only) = &app.changes.only {
            let names: Vec<&OsStr> = only.iter().map(OsString::as_os_str).collect();
            match names.is_empty() {
                true => _ = command.arg("-envnone"),
                false => _ = command.arg("-envlist").arg(names.join(OsStr::new(","))),
            }
        }
        for change in &app.changes.set {
            match change {
                VariableChange::Set(name, value) => _ = command.arg("-env").arg(name).arg(value),
                // All are passed on, unless a list says which.
                VariableChange::Pass(name) => {
                    if let Some(value) = std::env::var_os(name) {
                        command.arg("-env").arg(name).arg(value);
                    }
                }
            }
        }
        command.args(&app.command);
    }
    command
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args;

    fn of(line: &str) -> Vec<String> {
        let words: Vec<OsString> = line.split(' ').map(OsString::from).collect();
        let plan = args::parse("mpiexec", &words, 4).expect("a plan");
        let hosts = plan.hosts.clone().expect("hosts elsewhere");
        let mpich = Mpich { launcher: "/m/bin/mpiexec.hydra".into(), libraries: "/m/lib".into() };
        let command = command(&plan, &hosts, &mpich, Path::new("/p/lib/libperusal-fi.so"));
        command.get_args().map(|word| word.to_string_lossy().into_owned()).collect()
    }

    fn has(words: &[String], part: &str) -> bool {
        let part: Vec<&str> = part.split(' ').collect();
        words.windows(part.len()).any(|window| window == part)
    }

    #[test]
    fn ranks_hosts_variables_and_programs_reach_the_other_launcher() {
        let words = of("--hosts a:4,b:4 -launcher rsh -l -x A=1 ./x -n 3 : -n 2 -wdir /tmp ./y");
        assert!(has(&words, "-hosts a:4,b:4") && has(&words, "-launcher rsh") && has(&words, "-l"));
        assert!(has(&words, "-genv FI_PROVIDER_PATH /p/lib"));
        assert!(words.iter().any(|word| word.starts_with("/p/lib/libperusal-yield.so")), "{words:?}");
        assert!(has(&words, "-n 1 -env A 1 ./x -n 3 : -n 2"));
        assert!(words.ends_with(&["-n", "2", "-wdir", "/tmp", "./y"].map(str::to_owned)));
        assert!(has(&of("-hosts a:4,b ./x"), "-n 5 ./x"));
        assert!(has(&of("-hosts a,b -outfile-pattern o.%r ./x"), "-outfile-pattern o.%r"));
    }

    #[test]
    fn what_the_other_launcher_cannot_do_is_refused() {
        for option in ["--survive", "--universe 9", "--report-bindings", "--output file=x", "--output merge"]
        {
            let words: Vec<OsString> =
                format!("--hosts a,b {option} ./x").split(' ').map(OsString::from).collect();
            let plan = args::parse("mpiexec", &words, 4).expect("a plan");
            assert!(refuse(&plan).is_err_and(|why| why.contains("on one machine")), "{option}");
        }
    }
}
