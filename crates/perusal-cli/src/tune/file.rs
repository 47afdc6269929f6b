//! The file that `perusal tune` writes: what it measured on this machine, as values of control variables.
//!
//! It is a small TOML file. `[machine]` says where it was written, `[values]` has control variables by name,
//! `[values.dedicated]` those for jobs in which every rank has a CPU, and `[values.oversubscribed]` those for the
//! others. The launcher reads it and hands the values to the ranks
//! ([`TUNED`](perusal::internals::variables::overrides::TUNED)); it ignores a file from another machine.

use perusal::internals::shm::machine::MachineId;
use perusal::internals::variables::{Overrides, ValueSource, Variable, VariableId};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

/// For which jobs a value is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JobKind {
    /// All.
    All,
    /// Those in which every rank has a CPU.
    Dedicated,
    /// Those in which ranks outnumber CPUs.
    Oversubscribed,
}

/// What a tune file says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TuneFile {
    /// Where it was written.
    pub machine: MachineId,
    /// Values of control variables by name.
    pub values: Vec<(JobKind, String, u64)>,
}

/// The file as TOML has it.
#[derive(Deserialize)]
struct Document {
    machine: Option<Machine>,
    #[serde(default)]
    values: Values,
}

#[derive(Deserialize)]
struct Machine {
    cpu: String,
    cpus: usize,
}

#[derive(Deserialize, Default)]
struct Values {
    #[serde(default, alias = "roomy")]
    dedicated: BTreeMap<String, u64>,
    #[serde(default, alias = "crowded")]
    oversubscribed: BTreeMap<String, u64>,
    #[serde(flatten)]
    all: BTreeMap<String, u64>,
}

impl TuneFile {
    /// Returns the file's text, with a comment for each value.
    #[must_use]
    pub fn text(&self) -> String {
        let mut text = String::from(
            "# What `perusal tune` measured on this machine. The environment wins over it; delete it to do without it.\n\n",
        );
        let MachineId { cpu, cpus } = &self.machine;
        // Writing to a string cannot fail.
        let _ = writeln!(text, "[machine]\ncpu = {}\ncpus = {cpus}", toml::Value::from(cpu.as_str()));
        for (section, jobs) in [
            ("values", JobKind::All),
            ("values.dedicated", JobKind::Dedicated),
            ("values.oversubscribed", JobKind::Oversubscribed),
        ] {
            let _ = writeln!(text, "\n[{section}]");
            for (_, name, value) in self.values.iter().filter(|(of, ..)| *of == jobs) {
                if let Some(variable) = Variable::named(name) {
                    let _ = writeln!(text, "# {}", variable.what);
                }
                // A name that the file's writer made up may need quotation marks.
                let line = toml::to_string(&BTreeMap::from([(name, value)]));
                text += &line.expect("a name and a number of at most 63 bits, as TOML has them");
            }
        }
        text
    }

    /// Reads a file's text.
    ///
    /// # Errors
    /// What is wrong in which line.
    pub fn parse(text: &str) -> Result<Self, String> {
        let Document { machine, values } = toml::from_str(text).map_err(|error| {
            let line = error.span().map_or(0, |span| text[..span.start].matches('\n').count()) + 1;
            format!("line {line}: {}", error.message())
        })?;
        let Some(Machine { cpu, cpus }) = machine else {
            return Err("it does not say on which machine it was written".into());
        };
        let of = |jobs, values: BTreeMap<String, u64>| {
            values.into_iter().map(move |(name, value)| (jobs, name, value))
        };
        let values = of(JobKind::All, values.all)
            .chain(of(JobKind::Dedicated, values.dedicated))
            .chain(of(JobKind::Oversubscribed, values.oversubscribed));
        Ok(Self { machine: MachineId { cpu, cpus }, values: values.collect() })
    }

    /// Returns the values for a job, as its ranks get them: `name=value`, separated by commas.
    #[must_use]
    pub fn pairs(&self, oversubscribed: bool) -> String {
        let other = if oversubscribed { JobKind::Dedicated } else { JobKind::Oversubscribed };
        let values = self.values.iter().filter(|(jobs, ..)| *jobs != other);
        let pairs: Vec<String> = values.map(|(_, name, value)| format!("{name}={value}")).collect();
        pairs.join(",")
    }

    /// Returns the values that this version does not know or allow, `name=value`: ranks leave them out.
    #[must_use]
    pub fn left_out(&self) -> Vec<String> {
        let is_taken = |pair: &str, name: &str| {
            let mut taken = Overrides::default();
            taken.tune(pair);
            Variable::named(name).is_some_and(|variable| taken.source(variable.id) == ValueSource::TuneFile)
        };
        let pairs = self.values.iter().map(|(_, name, value)| (format!("{name}={value}"), name));
        pairs.filter(|(pair, name)| !is_taken(pair, name)).map(|(pair, _)| pair).collect()
    }
}

/// What became of the tune file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FoundTuneFile {
    /// There is none.
    Nothing,
    /// Its values count.
    Used(PathBuf, TuneFile),
    /// It was written on another machine, and which: nothing unusual where machines share a home directory.
    Elsewhere(PathBuf, String),
    /// It is of no use, and why.
    Ignored(PathBuf, String),
}

/// Where the file is: PERUSAL_TUNE_FILE, else `perusal/tune.toml` in XDG_CONFIG_HOME, else in `~/.config`. `None` if
/// the former is "none", or there is no home directory.
#[must_use]
pub fn path() -> Option<PathBuf> {
    let variable = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
    match variable(VariableId::TuneFile.variable().environment) {
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
    path().map_or(FoundTuneFile::Nothing, |path| read(path, &MachineId::here()))
}

fn read(path: PathBuf, here: &MachineId) -> FoundTuneFile {
    // A pipe would be waited for, and a device may never end.
    if std::fs::metadata(&path).is_ok_and(|data| !data.is_file()) {
        return FoundTuneFile::Ignored(path, "it is not a regular file".into());
    }
    let text = match std::fs::read_to_string(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return FoundTuneFile::Nothing,
        Err(error) => return FoundTuneFile::Ignored(path, error.to_string()),
    };
    match TuneFile::parse(&text) {
        Ok(file) if file.machine == *here => FoundTuneFile::Used(path, file),
        Ok(file) => {
            let why = format!("written on another machine ({}; this is {here})", file.machine);
            FoundTuneFile::Elsewhere(path, why)
        }
        Err(why) => FoundTuneFile::Ignored(path, why),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file() -> TuneFile {
        let machine = MachineId { cpu: "A Processor (R) @ 3 GHz".into(), cpus: 12 };
        let value = |jobs, name: &str, value| (jobs, name.to_owned(), value);
        let values = vec![
            value(JobKind::All, "copy_read_from", 65536),
            value(JobKind::Dedicated, "spin_us", 31),
            value(JobKind::Oversubscribed, "spin_us", 1),
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
    fn values_that_ranks_leave_out_are_named() {
        let mut file = file();
        assert!(file.left_out().is_empty());
        file.values[0].1 = "copy_reed_from".into();
        file.values[1].2 = 1_000_001;
        assert_eq!(file.left_out(), ["copy_reed_from=65536", "spin_us=1000001"]);
    }

    #[test]
    fn a_name_that_is_no_word_is_written_so_that_it_is_read_again() {
        let mut file = file();
        for name in ["values.dedicated_us", "", "two words", "a\"b\nc", "[machine]"] {
            file.values[0].1 = name.to_owned();
            assert_eq!(TuneFile::parse(&file.text()).as_ref(), Ok(&file), "{name:?}");
        }
    }

    #[test]
    fn a_file_with_the_former_names_of_its_sections_is_read_as_before() {
        let former = file().text().replace("dedicated", "roomy").replace("oversubscribed", "crowded");
        assert_eq!(TuneFile::parse(&former), Ok(file()));
    }

    #[test]
    fn a_file_that_makes_no_sense_says_where() {
        let wrong = |text: &str| TuneFile::parse(text).expect_err(text);
        for text in ["[values]\nspin_us = much", "[values]\nspin_us = \"much\"", "[values]\nspin_us = -1"] {
            assert!(wrong(text).starts_with("line "), "{}", wrong(text));
        }
        assert!(
            wrong("[values]\nspin_us = much").contains("line 2"),
            "{}",
            wrong("[values]\nspin_us = much")
        );
        assert!(wrong("hello").contains("line 1"));
        assert!(wrong("[values]\nspin_us = 3").contains("on which machine"));
    }

    #[test]
    fn a_file_of_another_machine_is_left_alone() {
        let path = std::env::temp_dir().join(format!("perusal-tune-{}.toml", std::process::id()));
        std::fs::write(&path, file().text()).expect("a writable directory");
        assert_eq!(read(path.clone(), &file().machine), FoundTuneFile::Used(path.clone(), file()));
        let FoundTuneFile::Elsewhere(_, why) = read(path.clone(), &MachineId { cpus: 13, ..file().machine })
        else {
            panic!("taken");
        };
        assert!(why.contains("12 CPUs") && why.contains("13 CPUs"), "{why}");
        std::fs::remove_file(&path).expect("there");
        assert_eq!(read(path, &file().machine), FoundTuneFile::Nothing);
    }

    #[test]
    fn this_machine_has_a_name_that_survives_the_file() {
        let file = TuneFile { machine: MachineId::here(), values: vec![] };
        assert!(!file.machine.cpu.is_empty() && file.machine.cpus > 0);
        assert_eq!(TuneFile::parse(&file.text()), Ok(file));
    }
}
