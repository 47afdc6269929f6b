//! Intercommunicators and ranks that are not part of the trace, in an OTF2 archive: messages name the same communicator
//! at both ends, and every communicator has members that are defined.

use crate::common::dist::dist;
use crate::common::examples::{mpicc, mpiexec, product, products};
use crate::common::run::run;
use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

#[test]
fn an_otf2_archive_of_a_program_with_intercommunicators_and_spawned_processes_is_sound() {
    let text = |path: &Path| path.to_string_lossy().into_owned();
    let (program, path) = (text(&product("trace_groups")), text(&product("groups.trace")));
    mpicc(&["tests/trace/groups.c", "-o", &program]);
    let outcome = mpiexec(&["-n", "2", "--trace", &path, &program]);
    assert_eq!(outcome.code(), Some(0), "{outcome:?}");
    let folder = product("groups.otf2");
    let mut export = Command::new(dist().join("bin/perusal"));
    export.args(["trace", "export", "--format", "otf2", &path, "-o", &text(&folder)]);
    let exported = run(&mut export, products(), "groups-export", crate::common::HANG);
    assert_eq!(exported.code(), Some(0), "{exported:?}");
    let print = |arguments: &[&str], name: &str| {
        let mut print = Command::new("otf2-print");
        let out =
            run(print.args(arguments).arg(folder.join("traces.otf2")), products(), name, crate::common::HANG);
        assert_eq!((out.code(), out.stderr.as_str()), (Some(0), ""), "{out:?}");
        out.stdout
    };
    let events = print(&[], "groups-events");
    let lines = |event: &str, of: &str| -> Vec<&str> {
        events.lines().filter(|line| line.starts_with(event) && line.contains(of)).collect()
    };
    // Each rank of "groups" sends to the other one and receives from it: their ranks among both groups.
    for (event, other) in [("MPI_SEND", "Receiver"), ("MPI_RECV", "Sender")] {
        let found = lines(event, "\"groups\"");
        assert_eq!(found.len(), 2, "{events}");
        for (location, peer) in [("0", 1), ("1048576", 0)] {
            let line = found.iter().find(|line| of_location(line, location));
            let line = line.unwrap_or_else(|| panic!("no {event} at {location}\n{events}"));
            assert!(line.contains(&format!("{other}: {peer} (")), "{line}");
        }
    }
    let named = events.split("Communicator: ").filter_map(|rest| rest.split([',', '\n']).next());
    let all: BTreeSet<&str> = named.filter(|name| name.starts_with("\"groups\"")).collect();
    assert_eq!(all.len(), 1, "one communicator of both groups: {all:?}\n{events}");
    let root = lines("MPI_COLLECTIVE_END", "\"groups\"");
    assert!(root.iter().any(|line| of_location(line, "0") && line.contains("Root: 1 (")), "{events}");
    // The spawned process is the third.
    let received = lines("MPI_RECV", "\"children\"");
    assert_eq!(received.len(), 2, "{events}");
    assert!(received.iter().all(|line| line.contains("Sender: 2 (")), "{events}");
    let definitions = print(&["-G"], "groups-definitions");
    assert!(definitions.contains("\"rank 2, not traced\""), "{definitions}");
}

/// Whether an event is of this location.
fn of_location(line: &str, location: &str) -> bool {
    line.split_whitespace().nth(1) == Some(location)
}
