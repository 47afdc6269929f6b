//! Collective operations in a trace: what an OTF2 archive says of each.

use crate::common::dist::dist;
use crate::common::examples::{mpicc, mpiexec, product, products};
use crate::common::run::run;
use std::process::Command;
use std::time::Duration;

const HANG: Duration = crate::common::HANG;

/// The value behind `key: ` in a line.
fn value(line: &str, key: &str) -> String {
    let rest = line.split_once(&format!("{key}: ")).map(|(_, rest)| rest);
    let end = |rest: &str| rest.find([',', ' ']).unwrap_or(rest.len());
    rest.map(|rest| rest[..end(rest)].to_owned()).unwrap_or_default()
}

#[test]
fn otf2_has_each_collective_with_its_root_and_the_bytes_that_a_rank_sent_and_received() {
    let text = |path: &std::path::Path| path.to_string_lossy().into_owned();
    let (program, path) = (text(&product("trace_collectives")), text(&product("collectives.trace")));
    mpicc(&["tests/trace/collectives.c", "-o", &program]);
    let outcome = mpiexec(&["-n", "3", "--trace", &path, &program]);
    assert_eq!(outcome.code(), Some(0), "{outcome:?}");
    let folder = product("collectives.otf2");
    let mut export = Command::new(dist().join("bin/perusal"));
    export.args(["trace", "export", "--format", "otf2", &path, "-o", &text(&folder)]);
    let exported = run(&mut export, products(), "collectives-export", HANG);
    assert_eq!(exported.code(), Some(0), "{exported:?}");
    let mut print = Command::new("otf2-print");
    print.arg(folder.join("traces.otf2"));
    let printed = run(&mut print, products(), "otf2-collectives", HANG).stdout;
    // Bytes that rank 0 and rank 1, the root, have sent and received.
    let known = [
        ("BCAST", "1", [(0, 64), (64, 0)]),
        ("GATHER", "1", [(8, 0), (8, 24)]),
        ("SCATTER", "1", [(0, 4), (24, 8)]),
        ("REDUCE", "1", [(16, 0), (16, 16)]),
        ("ALLREDUCE", "", [(20, 20), (20, 20)]),
        ("REDUCE_SCATTER", "", [(24, 4), (24, 8)]),
        ("ALLGATHER", "", [(12, 36), (12, 36)]),
    ];
    for rank in 0..2 {
        let location = (u64::from(rank as u32) << 20).to_string();
        let of_rank = |line: &&str| line.split_whitespace().nth(1) == Some(&location);
        let lines: Vec<&str> = printed.lines().filter(of_rank).collect();
        let ends: Vec<&&str> = lines.iter().filter(|line| line.starts_with("MPI_COLLECTIVE_END")).collect();
        let begins = lines.iter().filter(|line| line.starts_with("MPI_COLLECTIVE_BEGIN")).count();
        assert_eq!((begins, ends.len()), (known.len(), known.len()), "{printed}");
        for (line, (operation, root, bytes)) in ends.into_iter().zip(known) {
            assert_eq!(value(line, "Operation"), operation, "{line}");
            assert!(value(line, "Root").starts_with(root), "{line}");
            let (sent, received) = bytes[rank];
            assert_eq!(value(line, "Sent"), sent.to_string(), "{line}");
            assert_eq!(value(line, "Received"), received.to_string(), "{line}");
        }
        let region = |name: &str| lines.iter().any(|line| line.starts_with("ENTER") && line.contains(name));
        assert!(region("\"MPI_Reduce_scatter\"") && !region("\"MPI_Allgather\""), "{printed}");
    }
}
