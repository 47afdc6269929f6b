//! The benchmark of threads and one-sided operations, whose figures are from events.

use crate::common::examples::{job, lines, mpicc, product};

#[test]
fn every_operation_is_told_and_every_figure_is_one() {
    let program = product("rma_threads").to_string_lossy().into_owned();
    mpicc(&["-pthread", "benches/rma_threads.c", "-o", &program]);
    let out = job(&["-n", "2", &program, "1,3", "8,10000", "1"]);
    let synchronisations = ["flush", "all_flush", "lock", "fence", "pscw"];
    for operation in ["put", "get"] {
        let all = lines(&out, operation);
        assert_eq!(all.len(), 2 * 2 * synchronisations.len(), "{out}");
        for line in all {
            let threads = line.count("threads");
            let rounds = if line.count("bytes") == 8 { 200 } else { 1048576 / (10000 * 16 * threads) };
            assert_eq!(line.count("operations"), rounds.max(3) * 16 * threads, "{out}");
            // An operation is complete when its call returns: on the thread that made it.
            assert_eq!((line.count("elsewhere"), line.number("share")), (0, 1.0), "{out}");
            assert!(line.number("op_us") > 0.0 && line.number("op_us") <= line.number("longest_us"), "{out}");
            assert!((1.0..=threads as f64).contains(&line.number("at_once")), "{out}");
            assert!(line.number("sync_us") > 0.0 && line.number("listening") > 0.0, "{out}");
        }
    }
}
