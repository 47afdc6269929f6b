//! The benchmark that is compiled with every MPI (`benches/peers`): here with ours, each measurement for an instant;
//! and what its driver makes of the figures.

use crate::common::examples::{job, mpicc, product};
use crate::common::{root, success};
use std::collections::HashMap;
use std::process::{Child, Command};

/// Compiles the benchmark and runs metrics on so many ranks. Gives the lines that it prints, each with its words.
fn lines(options: &[&str], ranks: &str, metrics: &[&str]) -> Vec<Vec<String>> {
    let sources = [
        "main",
        "pair",
        "matching",
        "collectives",
        "crowd",
        "threads",
        "files",
        "onesided",
        "matrix",
        "dynamic",
        "partitioned",
        "probe",
    ];
    let sources = sources.map(|name| format!("benches/peers/{name}.c"));
    let program = product("bench").to_string_lossy().into_owned();
    let mut arguments: Vec<&str> = sources.iter().map(String::as_str).collect();
    arguments.extend(["-pthread", "-o", &program]);
    mpicc(&arguments);
    let output = job(&[options, &["-x", "BENCH_SCALE=0.01", "-n", ranks, &program], metrics].concat());
    output.lines().map(|line| line.split(' ').map(str::to_owned).collect()).collect()
}

/// What it says of each case.
fn bench(ranks: &str, metrics: &[&str]) -> HashMap<String, f64> {
    let results = lines(&[], ranks, metrics).into_iter().map(|words| {
        let [said, name, value] = words.as_slice() else { panic!("{words:?}") };
        assert_eq!(said, "R");
        (name.clone(), value.parse().unwrap_or_else(|_| panic!("{words:?}")))
    });
    results.collect()
}

/// How many cases a family has, each of them above zero.
fn count(results: &HashMap<String, f64>, family: &str) -> usize {
    let own = results.iter().filter(|(name, _)| name.starts_with(&format!("{family}/")));
    own.inspect(|(name, value)| assert!(**value > 0.0, "{name}: {value}")).count()
}

#[test]
fn a_pair_gives_a_figure_for_every_size_and_depth() {
    let results = bench("2", &["latency", "bandwidth", "rate", "posted", "collectives"]);
    assert_eq!(
        ["latency", "bandwidth", "bidirectional", "rate", "posted"].map(|family| count(&results, family)),
        [10, 6, 6, 1, 18]
    );
    assert_eq!(
        ["barrier", "bcast", "allreduce", "alltoall"].map(|family| count(&results, family)),
        [1, 4, 4, 4]
    );
    for families in [["latency-shared", "bandwidth-shared"], ["latency-heap", "bandwidth-heap"]] {
        let results = bench("2", &families);
        assert_eq!(families.map(|family| count(&results, family)), [6, 6]);
    }
}

#[test]
fn files_are_read_and_written_in_ten_ways() {
    for ranks in ["1", "2"] {
        assert_eq!(count(&bench(ranks, &["files"]), "files"), 10);
    }
}

#[test]
fn messages_that_nobody_asked_for_are_found_at_every_depth() {
    let results = bench("2", &["unexpected"]);
    let names: Vec<_> = results.keys().filter(|name| name.starts_with("unexpected/")).collect();
    assert_eq!(names.len(), 24);
    // The clock's own cost is taken off each, so one that is about as small may be anything.
    assert!(results["unexpected/exact-100000"].is_finite());
}

#[test]
fn a_crowd_gives_its_rate_and_its_memory() {
    let results = bench("6", &["memory", "wildcard", "latency"]);
    assert_eq!(["memory", "wildcard", "latency-3pairs"].map(|family| count(&results, family)), [2, 1, 1]);
}

#[test]
fn one_sided_operations_and_synchronisation_give_a_figure_each() {
    let said = bench("2", &["onesided", "onesided-sync"]);
    for (word, figures) in [("rma", 8), ("rma-bandwidth", 3), ("rma-accumulate", 1), ("rma-sync", 2)] {
        assert_eq!(count(&said, word), figures, "{word}");
    }
    assert_eq!(count(&bench("4", &["onesided-sync"]), "rma-sync"), 2);
}

#[test]
fn every_operation_of_the_matrix_has_a_cell_for_each_size() {
    // Two barriers and what has a size, and polling; of two ranks messages of every kind,
    // of more pairs those of all pairs at once.
    let all = 2 + 28 * 6 + 6;
    for (ranks, pairs) in [("2", 10 * 9), ("3", 0), ("4", 3 * 6)] {
        assert_eq!(count(&bench(ranks, &["matrix"]), "matrix"), all + pairs, "{ranks} ranks");
    }
}

#[test]
fn threads_give_their_rate_in_every_shape() {
    assert_eq!(count(&bench("2", &["threads"]), "threads"), 9);
    assert_eq!(count(&bench("1", &["self-threads"]), "threads"), 3);
}

#[test]
fn spawns_meetings_and_partitions_give_their_figures() {
    assert_eq!(count(&bench("1", &["spawn"]), "spawn"), 1);
    let met = bench("2", &["connect"]);
    assert_eq!(["connect", "connect-latency"].map(|family| count(&met, family)), [1, 1]);
    assert_eq!(count(&bench("2", &["partitioned"]), "partitioned"), 1);
}

/// The prober, for as long as this lives.
struct Prober(Child);

impl Drop for Prober {
    fn drop(&mut self) {
        // It may have ended by itself, which its jobs would tell.
        _ = self.0.kill();
        _ = self.0.wait();
    }
}

#[test]
fn with_a_prober_each_sample_has_a_line_before_and_after() {
    let cpus = perusal::internals::shm::cpus::affinity();
    let [first, second, ..] = cpus.as_slice() else {
        return eprintln!("one CPU: there is no line to bounce");
    };
    let (program, page) = (product("prober"), product("prober-page"));
    let sources = ["prober", "probe", "line"].map(|name| root().join(format!("benches/peers/{name}.c")));
    let mut cc = Command::new("cc");
    success(cc.args(["-O2", "-pthread", "-o"]).arg(&program).args(sources).output().expect("cc"), "cc");
    std::fs::write(&page, [0; 4096]).expect("a page in target/tmp");
    let started = Command::new(&program).arg(&page).args([first.to_string(), second.to_string()]).spawn();
    let _prober = Prober(started.expect("the prober runs"));
    let variable = format!("BENCH_PAGE={}", page.display());
    for (ranks, case) in [("2", "rate/1pair"), ("4", "rate/2pairs")] {
        let said = lines(&["-x", &variable], ranks, &["rate", "rate"]);
        assert_eq!(said.len(), 2);
        for words in said {
            assert_eq!((words.len(), words[1].as_str()), (5, case), "{words:?}");
            for probe in &words[3..] {
                assert!(probe.parse::<f64>().expect("microseconds") > 0.0, "{words:?}");
            }
        }
    }
}

#[test]
fn the_driver_makes_tables_goals_and_charts_of_the_figures() {
    let check = root().join("benches/peers/check.py");
    match Command::new("python3").env("PYTHONDONTWRITEBYTECODE", "1").arg(check).output() {
        Ok(out) => drop(success(out, "benches/peers/check.py")),
        Err(error) => {
            eprintln!("python3 cannot be run, and without it nothing here uses the driver: {error}")
        }
    }
}
