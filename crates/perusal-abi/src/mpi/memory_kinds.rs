//! Memory allocation kinds (MPI 5.0 §11.4.3): which memory buffers may lie in,
//! for a program that asks before it uses that of a device.

use crate::abi::MPI_MAX_INFO_VAL;
use crate::comm::Comm;
use crate::error::Result;
use crate::info::Info;
use crate::shm::KINDS_VARIABLE;
use std::sync::OnceLock;

/// The info key.
pub const KEY: &str = "mpi_memory_alloc_kinds";

/// What is supported, whoever asks for what.
const ALWAYS: [&str; 2] = ["mpi", "system"];
/// Restrictors of the kind `mpi`: the functions that such memory comes from.
const RESTRICTORS: [&str; 3] = ["alloc_mem", "win_allocate", "win_allocate_shared"];

/// What was asked for when the process was started, if anything was:
/// `mpiexec -memory-alloc-kinds`, or the info key in a spawn.
pub fn requested() -> Option<String> {
    std::env::var(KINDS_VARIABLE).ok()
}

/// The kinds of a session whose hints ask for `asked`.
pub fn of_session(asked: Option<&[u8]>) -> String {
    match asked {
        Some(asked) => supported(&String::from_utf8_lossy(asked)),
        None => of_world().to_owned(),
    }
}

fn of_world() -> &'static str {
    static KINDS: OnceLock<String> = OnceLock::new();
    KINDS.get_or_init(|| supported(&requested().unwrap_or_default()))
}

/// What is supported where a program asks for `asked`: the kinds that always are,
/// then those of `asked` that are as well.
fn supported(asked: &str) -> String {
    let mut kinds = ALWAYS.join(",");
    for kind in asked.split(',').map(str::trim) {
        let has = kinds.split(',').any(|known| known == kind);
        if is_restricted(kind) && !has && kinds.len() + 1 + kind.len() < MPI_MAX_INFO_VAL as usize {
            kinds = [&kinds, kind].join(",");
        }
    }
    kinds
}

/// Whether it is memory of MPI's own, from some of its functions.
fn is_restricted(kind: &str) -> bool {
    let restrictors = kind.strip_prefix("mpi:");
    restrictors.is_some_and(|list| list.split(':').all(|restrictor| RESTRICTORS.contains(&restrictor)))
}

/// The hints of something made from `comm`, with the kinds that it supports: those of its session, or of the world. A
/// program cannot change them.
pub fn with_kinds(mut hints: Info, comm: &Comm) -> Result<Info> {
    match comm.group().session() {
        Some(session) => hints.set(KEY, &session.kinds)?,
        None => hints.set(KEY, of_world())?,
    }
    Ok(hints)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_that_are_not_known_are_left_out() {
        assert_eq!(supported(""), "mpi,system");
        assert_eq!(supported("system, mpi:alloc_mem ,cuda:device"), "mpi,system,mpi:alloc_mem");
        let some = "mpi:win_allocate:win_allocate_shared";
        assert_eq!(supported(&format!("{some},{some},mpi:,mpi:disk")), format!("mpi,system,{some}"));
    }

    #[test]
    fn what_does_not_fit_into_a_value_is_left_out() {
        let long = format!("mpi:{}", ["alloc_mem"; 120].join(":"));
        assert_eq!(supported(&long), "mpi,system");
    }
}
