//! The file that `perusal tune` writes: what it measured on this machine, as values of control variables.
//!
//! It is a small TOML file: `[machine]` says where it was written, `[values]` has control variables by name, `[values.roomy]` those
//! for jobs in which every rank has a CPU and `[values.crowded]` those for the others. The launcher reads it and hands the values to
//! the ranks ([`super::settings::TUNED`]); a file from another machine is left alone.

use super::{VARIABLES, VariableId};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

/// What must be the same for a file to be of use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Machine {
    /// The processor's name.
    pub cpu: String,
    /// How many logical CPUs the machine has, whether or not this process may use them.
    pub cpus: usize,
}

impl Machine {
    /// This one.
    #[must_use]
    pub fn here() -> Self {
        let info = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let name = info.lines().find_map(|line| line.strip_prefix("model name")?.split_once(':'));
        let cpu = name.map_or(std::env::consts::ARCH, |(_, name)| name.trim());
        // SAFETY: asks the C library for a number.
        let cpus = unsafe { libc::sysconf(libc::_SC_NPROCESSORS_CONF) };
        Self { cpu: cpu.replace(['"', '\\'], "'"), cpus: usize::try_from(cpus).unwrap_or(1) }
    }
}

impl core::fmt::Display for Machine {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "{}, {} CPUs", self.cpu, self.cpus)
    }
}

/// For which jobs a value is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JobKind {
    /// All.
    All,
    /// Those in which every rank has a CPU.
    Roomy,
    /// Those in which ranks outnumber CPUs.
    Crowded,
}

impl JobKind {
    const SECTIONS: [(&'static str, Self); 3] =
        [("values", Self::All), ("values.roomy", Self::Roomy), ("values.crowded", Self::Crowded)];

    fn of_section(section: &str) -> Option<Self> {
        Self::SECTIONS.iter().find(|(name, _)| *name == section).map(|(_, jobs)| *jobs)
    }
}

/// What a tune file says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TuneFile {
    /// Where it was written.
    pub machine: Machine,
    /// Values of control variables by name.
    pub values: Vec<(JobKind, String, u64)>,
}

impl TuneFile {
    /// The file's text.
    #[must_use]
    pub fn text(&self) -> String {
        let mut text = String::from(
            "# What `perusal tune` measured on this machine. The environment wins over it; delete it to do without it.\n\n",
        );
        let Machine { cpu, cpus } = &self.machine;
        // Writing to a string cannot fail.
        let _ = writeln!(text, "[machine]\ncpu = \"{cpu}\"\ncpus = {cpus}");
        for (section, jobs) in JobKind::SECTIONS {
            let _ = writeln!(text, "\n[{section}]");
            for (_, name, value) in self.values.iter().filter(|(of, ..)| *of == jobs) {
                if let Some(variable) = super::Variable::named(name) {
                    let _ = writeln!(text, "# {}", variable.what);
                }
                let _ = writeln!(text, "{name} = {value}");
            }
        }
        text
    }

    /// Reads a file's text.
    ///
    /// # Errors
    /// What is wrong with which line.
    pub fn parse(text: &str) -> core::result::Result<Self, String> {
        let (mut section, mut cpu, mut cpus, mut values) = ("", None, None, Vec::new());
        for (number, line) in text.lines().enumerate() {
            let line = line.trim();
            let wrong = |what: &str| format!("line {}: {what}: {line:?}", number + 1);
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            if let Some(name) = line.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
                section = name;
                continue;
            }
            let (name, value) = line.split_once('=').ok_or_else(|| wrong("neither a section nor a value"))?;
            let (name, value) = (name.trim(), value.trim());
            let number = || value.parse::<u64>().map_err(|_| wrong("not a number"));
            match (section, name) {
                ("machine", "cpu") => cpu = Some(value.trim_matches('"').to_owned()),
                ("machine", "cpus") => cpus = Some(number()? as usize),
                _ => {
                    if let Some(jobs) = JobKind::of_section(section) {
                        values.push((jobs, name.to_owned(), number()?));
                    }
                }
            }
        }
        let machine = cpu.zip(cpus).map(|(cpu, cpus)| Machine { cpu, cpus });
        machine
            .map(|machine| Self { machine, values })
            .ok_or_else(|| "it does not say on which machine it was written".into())
    }

    /// The values for a job as its ranks are told of them.
    #[must_use]
    pub fn pairs(&self, crowded: bool) -> String {
        let other = if crowded { JobKind::Roomy } else { JobKind::Crowded };
        let values = self.values.iter().filter(|(jobs, ..)| *jobs != other);
        let pairs: Vec<String> = values.map(|(_, name, value)| format!("{name}={value}")).collect();
        pairs.join(",")
    }
}

/// What became of the tune file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FoundTuneFile {
    /// There is none.
    Nothing,
    /// Its values count.
    Used(PathBuf, TuneFile),
    /// It is of no use, and why.
    Ignored(PathBuf, String),
}

/// Where the file is: PERUSAL_TUNE_FILE, else `perusal/tune.toml` in XDG_CONFIG_HOME, else in `~/.config`. `None` if the former is
/// "none", or there is no home.
#[must_use]
pub fn place() -> Option<PathBuf> {
    let variable = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
    match variable(VARIABLES[VariableId::TuneFile as usize].environment) {
        Some(path) if path == "none" => return None,
        Some(path) => return Some(path.into()),
        None => {}
    }
    let config = variable("XDG_CONFIG_HOME").map(PathBuf::from);
    let config = config.or_else(|| variable("HOME").map(|home| Path::new(&home).join(".config")));
    config.map(|config| config.join("perusal").join("tune.toml"))
}

/// Looks for the file.
#[must_use]
pub fn find() -> FoundTuneFile {
    place().map_or(FoundTuneFile::Nothing, |path| read(path, &Machine::here()))
}

fn read(path: PathBuf, here: &Machine) -> FoundTuneFile {
    let text = match std::fs::read_to_string(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return FoundTuneFile::Nothing,
        Err(error) => return FoundTuneFile::Ignored(path, error.to_string()),
    };
    match TuneFile::parse(&text) {
        Ok(file) if file.machine == *here => FoundTuneFile::Used(path, file),
        Ok(file) => FoundTuneFile::Ignored(
            path,
            format!("written on another machine ({}; this is {here})", file.machine),
        ),
        Err(why) => FoundTuneFile::Ignored(path, why),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file() -> TuneFile {
        let machine = Machine { cpu: "A Processor (R) @ 3 GHz".into(), cpus: 12 };
        let value = |jobs, name: &str, value| (jobs, name.to_owned(), value);
        let values = vec![
            value(JobKind::All, "copy_read_from", 65536),
            value(JobKind::Roomy, "spin_us", 31),
            value(JobKind::Crowded, "spin_us", 1),
        ];
        TuneFile { machine, values }
    }

    #[test]
    fn what_is_written_is_read_again() {
        assert_eq!(TuneFile::parse(&file().text()), Ok(file()));
        assert_eq!(file().pairs(false), "copy_read_from=65536,spin_us=31");
        assert_eq!(file().pairs(true), "copy_read_from=65536,spin_us=1");
    }

    #[test]
    fn a_file_that_makes_no_sense_says_where() {
        let wrong = |text: &str| TuneFile::parse(text).expect_err(text);
        assert!(wrong("[values]\nspin_us = much").contains("line 2: not a number"));
        assert!(wrong("hello").contains("line 1"));
        assert!(wrong("[values]\nspin_us = 3").contains("on which machine"));
    }

    #[test]
    fn a_file_of_another_machine_is_left_alone() {
        let path = std::env::temp_dir().join(format!("perusal-tune-{}.toml", std::process::id()));
        std::fs::write(&path, file().text()).expect("a writable directory");
        assert_eq!(read(path.clone(), &file().machine), FoundTuneFile::Used(path.clone(), file()));
        let FoundTuneFile::Ignored(_, why) = read(path.clone(), &Machine { cpus: 13, ..file().machine })
        else {
            panic!("taken");
        };
        assert!(why.contains("12 CPUs") && why.contains("13 CPUs"), "{why}");
        std::fs::remove_file(&path).expect("there");
        assert_eq!(read(path, &file().machine), FoundTuneFile::Nothing);
    }

    #[test]
    fn this_machine_has_a_name_that_survives_the_file() {
        let file = TuneFile { machine: Machine::here(), values: vec![] };
        assert!(!file.machine.cpu.is_empty() && file.machine.cpus > 0);
        assert_eq!(TuneFile::parse(&file.text()), Ok(file));
    }
}
