//! What a spawn asks for, from the arguments and info keys of MPI_Comm_spawn (MPI 5.0 §11.8.4).

use super::request::{Program, Scope, SpawnRequest};
use crate::abi::MPI_ERR_SPAWN;
use crate::error::{Error, Result};
use crate::info::Info;
use crate::shm::{
    ERRHANDLER_VARIABLE, GIVEN_APPNUM_VARIABLE, KINDS_VARIABLE, SOFT_VARIABLE, initial_errhandler,
};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::time::Duration;

/// A program, of which `most` processes are wished for where there is room for `places`. Of the info keys, `host` must
/// name this node, called `here`; `wdir`, `path`, `soft`, `appnum`, `mpi_initial_errhandler`, `mpi_memory_alloc_kinds`
/// and `env` (`NAME=VALUE`, a line each) are obeyed, others ignored.
///
/// # Errors
/// [`Error::Arg`] for an empty name, [`Error::InfoValue`] for a value without sense,
/// [`Error::Dynamic`] for another host, or where `soft` allows no number up to `most`.
pub fn program(
    command: &[u8],
    arguments: &[&[u8]],
    most: u32,
    places: u32,
    hints: &Info,
    here: &str,
) -> Result<Program> {
    if command.is_empty() {
        return Err(Error::Arg("the name of a program to spawn is empty"));
    }
    if let Some(hosts) = hints.get("host")? {
        check_hosts(hosts, here)?;
    }
    let text = |key: &str| -> Result<Vec<u8>> { Ok(hints.get(key)?.unwrap_or_default().to_vec()) };
    let counts = match hints.get("soft")? {
        Some(soft) => soft_counts(soft, most, places)?,
        None => vec![most],
    };
    let env = hints.get("env")?.unwrap_or_default().split(|byte| *byte == b'\n');
    let mut env: Vec<Vec<u8>> = env.filter(|line| !line.is_empty()).map(<[u8]>::to_vec).collect();
    if env.iter().any(|line| !line.iter().skip(1).any(|byte| *byte == b'=')) {
        return Err(Error::InfoValue("a line of env is not NAME=VALUE"));
    }
    if let Some(handler) = hints.get("mpi_initial_errhandler")? {
        let name = initial_errhandler(handler);
        let name = name.ok_or(Error::InfoValue("mpi_initial_errhandler is no predefined error handler"))?;
        env.push(format!("{ERRHANDLER_VARIABLE}={name}").into_bytes());
    }
    if hints.get("appnum")?.is_some() {
        let number = hints.text("appnum").and_then(|number| number.trim().parse::<i32>().ok());
        let number = number.ok_or(Error::InfoValue("appnum is not an integer"))?;
        env.push(format!("{GIVEN_APPNUM_VARIABLE}={number}").into_bytes());
    }
    if let Some(soft) = hints.get("soft")? {
        env.push([SOFT_VARIABLE.as_bytes(), b"=", soft].concat());
    }
    if let Some(kinds) = hints.get("mpi_memory_alloc_kinds")? {
        env.push([KINDS_VARIABLE.as_bytes(), b"=", kinds].concat());
    }
    let command = std::iter::once(command).chain(arguments.iter().copied()).map(<[u8]>::to_vec).collect();
    Ok(Program { command, most, counts, wdir: text("wdir")?, path: text("path")?, env })
}

/// What this process asks for: its working directory and environment are what the programs start with.
#[must_use]
pub fn request(programs: Vec<Program>) -> SpawnRequest {
    let wdir = std::env::current_dir().map(|dir| dir.into_os_string().into_vec()).unwrap_or_default();
    let entry = |(name, value): (std::ffi::OsString, std::ffi::OsString)| {
        [name.as_bytes(), b"=", value.as_bytes()].concat()
    };
    SpawnRequest { programs, wdir, env: std::env::vars_os().map(entry).collect() }
}

/// How long to wait at a port, if the info key `timeout` says so, in seconds.
///
/// # Errors
/// [`Error::InfoValue`] for anything but a number from zero on.
pub fn limit(hints: &Info) -> Result<Option<Duration>> {
    let Some(text) = hints.get("timeout")? else { return Ok(None) };
    let seconds = core::str::from_utf8(text).ok().and_then(|text| text.trim().parse::<f64>().ok());
    let limit = seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    limit.map(Some).ok_or(Error::InfoValue("timeout is not a number of seconds"))
}

/// Who is to find a published name, or where to look for one, as the info key `scope` says: all programs of the user,
/// or this job.
///
/// # Errors
/// [`Error::InfoValue`] for another value than `user` and `job`.
pub fn scope(hints: &Info) -> Result<Scope> {
    match hints.get("scope")?.map(<[u8]>::trim_ascii) {
        None | Some(b"user") => Ok(Scope::User),
        Some(b"job") => Ok(Scope::Job),
        Some(_) => Err(Error::InfoValue("scope is neither \"user\" nor \"job\"")),
    }
}

fn check_hosts(hosts: &[u8], here: &str) -> Result<()> {
    let hosts = String::from_utf8_lossy(hosts);
    let is_here = |host: &str| {
        // `host:4` says how many processes the host takes.
        let host = host.trim().split(':').next().unwrap_or_default();
        let short = |name: &str| name.split('.').next().unwrap_or_default().to_owned();
        matches!(host, "" | "localhost" | "127.0.0.1") || host == here || short(host) == short(here)
    };
    match hosts.split(',').find(|host| !is_here(host)) {
        None => Ok(()),
        Some(host) => Err(Error::Dynamic {
            class: MPI_ERR_SPAWN,
            what: format!("no process can be started on {host:?}: a job is on one machine, here {here:?}"),
        }),
    }
}

/// The numbers of processes that `soft` allows, up to `most`, the largest first;
/// of the smaller ones those for which there are `places`.
///
/// # Errors
/// As for [`most_of_soft`].
pub fn soft_counts(soft: &[u8], most: u32, places: u32) -> Result<Vec<u32>> {
    let ranges = soft_ranges(soft)?;
    // Only what there may be room for is listed.
    let counts = [most].into_iter().chain((0..most.min(places.saturating_add(1))).rev());
    let counts: Vec<u32> = counts.filter(|count| largest(&ranges, *count) == Some(*count)).collect();
    if counts.is_empty() { Err(none_allowed()) } else { Ok(counts) }
}

/// The largest number of processes up to `most` that `soft` allows.
///
/// # Errors
/// [`Error::InfoValue`] for what is no list of numbers, [`Error::Dynamic`] for one that allows none.
pub fn most_of_soft(soft: &[u8], most: u32) -> Result<u32> {
    largest(&soft_ranges(soft)?, most).ok_or_else(none_allowed)
}

fn none_allowed() -> Error {
    let what = "soft allows no number of processes up to maxprocs".into();
    Error::Dynamic { class: MPI_ERR_SPAWN, what }
}

/// The numbers `first`, `first + step`, …, up to `last`, which the step, a positive one, need not meet;
/// none if `last` is less.
struct SoftRange {
    first: i64,
    last: i64,
    step: i64,
}

/// The largest number up to `most` in any of the ranges that is not negative.
fn largest(ranges: &[SoftRange], most: u32) -> Option<u32> {
    let of_range = |SoftRange { first, last, step }: &SoftRange| {
        let top = i64::from(most).min(*last);
        (*first <= top).then(|| top - (top - first) % step)
    };
    ranges.iter().filter_map(of_range).filter_map(|count| u32::try_from(count).ok()).max()
}

fn soft_ranges(soft: &[u8]) -> Result<Vec<SoftRange>> {
    const WRONG: Error = Error::InfoValue("soft is not a list of numbers, first:last or first:last:stride");
    let range = |part: &str| {
        let numbers = part.split(':').map(|number| number.trim().parse::<i32>().map(i64::from));
        let (first, last, step) = match numbers.collect::<Result<Vec<_>, _>>().map_err(|_| WRONG)?[..] {
            [one] => (one, one, 1),
            [first, last] => (first, last, 1),
            [first, last, stride] if stride != 0 => (first, last, stride),
            _ => return Err(WRONG),
        };
        Ok(if step > 0 {
            SoftRange { first, last, step }
        } else {
            // The same numbers from the other end.
            let steps = (first - last).div_euclid(-step);
            SoftRange { first: first + steps * step, last: first, step: -step }
        })
    };
    core::str::from_utf8(soft).map_err(|_| WRONG)?.split(',').map(range).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn soft_lists_what_it_allows_up_to_the_most() {
        let counts = |soft: &str, most| soft_counts(soft.as_bytes(), most, 64).unwrap();
        assert_eq!(counts("3", 8), [3]);
        assert_eq!(counts("1:4", 3), [3, 2, 1]);
        assert_eq!(counts("0:9:4, 3", 8), [8, 4, 3, 0]);
        assert_eq!(counts("9:0:-3", 8), [6, 3, 0]);
        assert_eq!(counts("50:100", 100)[0], 100);
        assert_eq!(counts("1:2000000000", 70)[..2], [70, 64]);
        assert_eq!(counts("0", 0), [0]);
        assert_eq!(counts("-5:9:3", 8), [7, 4, 1]);
        for wrong in ["", "a", "1:2:3:4", "1:2:0", "9", "5:4:2", "4:5:-2", "-3"] {
            assert!(soft_counts(wrong.as_bytes(), 8, 64).is_err(), "{wrong}");
            assert!(most_of_soft(wrong.as_bytes(), 8).is_err(), "{wrong}");
        }
    }

    #[test]
    fn the_most_that_soft_allows_is_found_among_any_number() {
        let most = |soft: &str, most| most_of_soft(soft.as_bytes(), most).unwrap();
        assert_eq!(most("1:2000000000", u32::MAX), 2_000_000_000);
        assert_eq!(most("1:2000000000:7, 3", 1_000_000_000), 999_999_995);
        assert_eq!(most("2000000000:-2000000000:-3", 10), 8);
        assert_eq!(most("-4:0", 10), 0);
    }

    #[test]
    fn every_soft_list_allows_what_its_numbers_are() {
        for (first, last, stride) in (-9..9)
            .flat_map(|first| (-9..9).flat_map(move |last| (-4..5).map(move |stride| (first, last, stride))))
        {
            let listed = (0..64)
                .map(|step| first + step * stride)
                .filter(|number| if stride > 0 { *number <= last } else { *number >= last });
            let mut listed: Vec<u32> =
                listed.filter_map(|number| u32::try_from(number).ok()).filter(|n| *n <= 6).collect();
            listed.sort_unstable_by(|a, b| b.cmp(a));
            let found = soft_counts(format!("{first}:{last}:{stride}").as_bytes(), 6, 64).unwrap_or_default();
            assert!(stride == 0 && found.is_empty() || found == listed, "{first}:{last}:{stride}");
        }
    }

    #[test]
    fn keys_become_a_program() {
        let mut hints = Info::new();
        for (key, value) in [("host", "localhost"), ("wdir", "/tmp"), ("path", "/bin"), ("env", "A=1\nB=")] {
            hints.set(key, value).unwrap();
        }
        let made = program(b"a", &[b"-x"], 3, 64, &hints, "node").unwrap();
        assert_eq!(made.command, [b"a".to_vec(), b"-x".to_vec()]);
        assert_eq!((made.counts, made.wdir, made.path), (vec![3], b"/tmp".to_vec(), b"/bin".to_vec()));
        assert_eq!(made.env, [b"A=1".to_vec(), b"B=".to_vec()]);
        hints.set("soft", "1:2").unwrap();
        let made = program(b"a", &[], 3, 64, &hints, "node").unwrap();
        assert_eq!((made.most, made.counts), (3, vec![2, 1]));
        assert_eq!(made.env.last().unwrap(), b"PERUSAL_SOFT=1:2");
        hints.set("env", "A").unwrap();
        assert!(program(b"a", &[], 3, 64, &hints, "node").is_err());
    }

    #[test]
    fn a_scope_is_the_user_or_the_job() {
        let of = |value: &str| {
            let mut hints = Info::new();
            hints.set("scope", value).unwrap();
            scope(&hints)
        };
        assert_eq!(scope(&Info::new()).unwrap(), Scope::User);
        assert_eq!((of("user").unwrap(), of(" job").unwrap()), (Scope::User, Scope::Job));
        assert!(of("world").is_err());
    }

    #[test]
    fn another_host_is_refused_by_name() {
        assert!(check_hosts(b"node.example.org:4,localhost", "node").is_ok());
        let error = check_hosts(b"elsewhere", "node").unwrap_err();
        assert_eq!(error.class(), MPI_ERR_SPAWN);
        assert!(error.to_string().contains("elsewhere"));
    }
}
