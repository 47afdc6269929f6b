//! The environment of a rank: the launcher's own, changed as asked, without what belongs to another job.

use std::ffi::{CString, OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;

use perusal::internals::shm::{self, JOB_ID_VARIABLE};
use perusal::internals::variables::overrides::TUNED;
use perusal_trace::PATH_VARIABLE;

/// One variable as the command line names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum VariableChange {
    /// Set it to this value.
    Set(OsString, OsString),
    /// Pass it on, even where most are not.
    Pass(OsString),
}

impl VariableChange {
    /// Reads `VAR=VALUE` or `VAR`.
    pub fn of(text: &OsStr) -> Self {
        let bytes = text.as_bytes();
        match bytes.iter().position(|byte| *byte == b'=') {
            Some(at) => Self::Set(
                OsStr::from_bytes(&bytes[..at]).to_owned(),
                OsStr::from_bytes(&bytes[at + 1..]).to_owned(),
            ),
            None => Self::Pass(text.to_owned()),
        }
    }
}

/// How a program's environment differs from the launcher's.
#[derive(Debug, Clone, Default)]
pub struct EnvironmentChanges {
    /// The only variables to pass on; `None` for all.
    pub only: Option<Vec<OsString>>,
    /// What is set or passed on besides, in order.
    pub set: Vec<VariableChange>,
}

/// The environment that all ranks of one program share, as `execve` wants it.
#[must_use]
pub fn of_app(changes: &EnvironmentChanges) -> Vec<CString> {
    let own = std::env::vars_os().collect();
    finished(apply(own, changes))
}

/// The environment of a program that a rank spawns: `own` of that rank and, later ones first, what is set besides;
/// each `NAME=VALUE`.
#[must_use]
pub fn of_spawned(own: &[Vec<u8>], set: &[Vec<u8>]) -> Vec<CString> {
    let own = own.iter().filter_map(|entry| {
        let at = entry.iter().position(|byte| *byte == b'=')?;
        Some((OsString::from_vec(entry[..at].to_vec()), OsString::from_vec(entry[at + 1..].to_vec())))
    });
    let set = set.iter().map(|entry| VariableChange::of(OsStr::from_bytes(entry))).collect();
    finished(apply(own.collect(), &EnvironmentChanges { only: None, set }))
}

fn finished(variables: Vec<(OsString, OsString)>) -> Vec<CString> {
    // The tune file's values are passed on even where other variables are not: the launcher has made the job by them.
    let tuned = std::env::var_os(TUNED).map(|values| (OsString::from(TUNED), values));
    variables.into_iter().chain(tuned).filter_map(|(name, value)| entry(name, value)).collect()
}

/// A rank's number on the node, and how many there are, under the names of MPICH's and Intel MPI's launchers: scripts
/// choose a device by them, and programs find out whether they run under MPI at all.
const LOCAL_RANK_VARIABLE: &str = "MPI_LOCALRANKID";
const LOCAL_SIZE_VARIABLE: &str = "MPI_LOCALNRANKS";

fn apply(own: Vec<(OsString, OsString)>, changes: &EnvironmentChanges) -> Vec<(OsString, OsString)> {
    let reserved = [
        shm::FD_VARIABLE,
        shm::RANK_VARIABLE,
        shm::SIZE_VARIABLE,
        shm::LAUNCHER_VARIABLE,
        shm::DOOR_VARIABLE,
        shm::WORLD_VARIABLE,
        shm::PARENT_VARIABLE,
        shm::ERRHANDLER_VARIABLE,
        shm::KINDS_VARIABLE,
        shm::GIVEN_APPNUM_VARIABLE,
        JOB_ID_VARIABLE,
        shm::APPNUM_VARIABLE,
        shm::PROCESSES_VARIABLE,
        shm::SOFT_VARIABLE,
        LOCAL_RANK_VARIABLE,
        LOCAL_SIZE_VARIABLE,
        PATH_VARIABLE,
        TUNED,
    ]
    .map(OsString::from);
    let passed = |name: &OsString| {
        let listed = changes.only.as_ref().is_none_or(|only| only.contains(name));
        (listed || changes.set.contains(&VariableChange::Pass(name.clone()))) && !reserved.contains(name)
    };
    let mut result: Vec<_> = own.into_iter().filter(|(name, _)| passed(name)).collect();
    for change in &changes.set {
        if let VariableChange::Set(name, value) = change {
            result.retain(|(other, _)| other != name);
            result.push((name.clone(), value.clone()));
        }
    }
    result
}

/// A rank's identity.
#[derive(Debug, Clone, Copy)]
pub struct RankIdentity<'a> {
    /// The job's number.
    pub job_id: u64,
    /// The launcher's process id.
    pub launcher: u32,
    /// The descriptor of the job's memory.
    pub fd: i32,
    /// The descriptor of the socket for requests to the launcher.
    pub door: i32,
    /// The rank.
    pub rank: u32,
    /// The number of ranks.
    pub size: u32,
    /// What a spawned process needs besides.
    pub spawned: Option<Spawned>,
    /// Which of the job's programs it runs.
    pub app: usize,
    /// How many processes of that program were asked for.
    pub processes: u32,
    /// The job's trace, if there is one.
    pub trace: Option<&'a Path>,
}

/// What only spawned processes need.
#[derive(Debug, Clone, Copy)]
pub struct Spawned {
    /// The place of the world's first rank, and the world's context id.
    pub world: (u32, u32),
    /// The place of the rank that has spawned it, and the context id of the intercommunicator with that rank's group.
    pub parent: (u32, u32),
}

impl RankIdentity<'_> {
    /// The variables that identify the rank, as `execve` wants them.
    #[must_use]
    pub fn environment(&self) -> Vec<CString> {
        let numbers = [
            (shm::FD_VARIABLE, self.fd.to_string()),
            (shm::DOOR_VARIABLE, self.door.to_string()),
            (shm::RANK_VARIABLE, self.rank.to_string()),
            (shm::SIZE_VARIABLE, self.size.to_string()),
            (shm::LAUNCHER_VARIABLE, self.launcher.to_string()),
            (JOB_ID_VARIABLE, format!("{:016x}", self.job_id)),
            (shm::APPNUM_VARIABLE, self.app.to_string()),
            (shm::PROCESSES_VARIABLE, self.processes.to_string()),
            (LOCAL_RANK_VARIABLE, self.rank.to_string()),
            (LOCAL_SIZE_VARIABLE, self.size.to_string()),
        ];
        let trace = self.trace.and_then(|path| entry(PATH_VARIABLE.into(), path.into()));
        let pair = |(one, other): (u32, u32)| format!("{one},{other}");
        let spawned = self.spawned.map(|spawned| {
            [(shm::WORLD_VARIABLE, pair(spawned.world)), (shm::PARENT_VARIABLE, pair(spawned.parent))]
        });
        numbers
            .into_iter()
            .chain(spawned.into_iter().flatten())
            .filter_map(|(name, value)| entry(name.into(), value.into()))
            .chain(trace)
            .collect()
    }
}

/// `NAME=VALUE`; a NUL inside cannot come from a command line or an environment.
fn entry(mut name: OsString, value: OsString) -> Option<CString> {
    name.push("=");
    name.push(value);
    CString::new(name.into_vec()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pairs(pairs: &[(&str, &str)]) -> Vec<(OsString, OsString)> {
        pairs.iter().map(|(name, value)| (name.into(), value.into())).collect()
    }

    #[test]
    fn all_is_passed_on_but_what_belongs_to_another_job() {
        let own = pairs(&[
            ("A", "1"),
            ("PERUSAL_RANK", "7"),
            ("PERUSAL_JOB_FD", "9"),
            ("PERUSAL_RING_CELLS", "64"),
        ]);
        assert_eq!(
            apply(own, &EnvironmentChanges::default()),
            pairs(&[("A", "1"), ("PERUSAL_RING_CELLS", "64")])
        );
    }

    #[test]
    fn the_last_setting_counts() {
        let set = ["A=2", "B=3", "A=4"].map(|text| VariableChange::of(text.as_ref())).to_vec();
        let changed = apply(pairs(&[("A", "1")]), &EnvironmentChanges { only: None, set });
        assert_eq!(changed, pairs(&[("B", "3"), ("A", "4")]));
    }

    #[test]
    fn a_list_keeps_the_rest_away() {
        let changes = EnvironmentChanges {
            only: Some(vec!["A".into()]),
            set: vec![VariableChange::of("B".as_ref()), VariableChange::of("C=".as_ref())],
        };
        let own = pairs(&[("A", "1"), ("B", "2"), ("D", "3")]);
        assert_eq!(apply(own, &changes), pairs(&[("A", "1"), ("B", "2"), ("C", "")]));
    }

    #[test]
    fn a_rank_gets_its_identity_in_variables() {
        let trace = Some(Path::new("/t"));
        let spawned = Some(Spawned { world: (8, 5), parent: (2, 6) });
        let identity = RankIdentity {
            job_id: 0xab,
            launcher: 77,
            fd: 100,
            door: 101,
            rank: 3,
            size: 8,
            spawned,
            app: 1,
            processes: 5,
            trace,
        };
        let variables = identity.environment();
        assert!(variables.contains(&c"PERUSAL_DOOR_FD=101".to_owned()));
        assert!(variables.contains(&c"PERUSAL_WORLD=8,5".to_owned()));
        assert!(variables.contains(&c"PERUSAL_PARENT=2,6".to_owned()));
        let variables = RankIdentity { spawned: None, ..identity }.environment();
        assert!(!variables.iter().any(|entry| entry.to_bytes().starts_with(b"PERUSAL_WORLD")));
        assert!(variables.contains(&c"PERUSAL_LAUNCHER=77".to_owned()));
        assert!(variables.contains(&c"PERUSAL_RANK=3".to_owned()));
        assert!(variables.contains(&c"PERUSAL_JOB_ID=00000000000000ab".to_owned()));
        assert!(variables.contains(&c"PERUSAL_APPNUM=1".to_owned()));
        assert!(variables.contains(&c"PERUSAL_MAXPROCS=5".to_owned()));
        assert!(variables.contains(&c"PERUSAL_TRACE=/t".to_owned()));
    }
}
