//! `perusal bench`, as its users meet it.

use crate::common::dist::dist;
use crate::common::jobs::start_as;
use serde_json::Value;
use std::process::{Command, Stdio};

fn bench(args: &[&str]) -> crate::common::jobs::Ended {
    start_as(Command::new(dist().join("bin/perusal")).arg("bench"), args, Stdio::null()).end()
}

#[test]
fn every_figure_is_above_zero_and_within_its_spread() {
    let ended = bench(&["--seconds", "0.2", "--json"]);
    assert_eq!((ended.code(), ended.err.as_str()), (0, ""));
    let all: Value = serde_json::from_str(&ended.out).expect("it prints JSON");
    let figures = all["figures"].as_array().expect("a list of figures");
    let number = |value: &Value| value.as_f64().unwrap_or_else(|| panic!("{value} is no number"));
    for figure in figures {
        let [low, median, high] = ["low", "median", "high"].map(|name| number(&figure[name]));
        assert!(0.0 < low && low <= median && median <= high, "{figure}");
        assert!(figure["limit"].is_null() || number(&figure["limit"]["value"]) > 0.0, "{figure}");
    }
    let count = |what: &str| figures.iter().filter(|figure| figure["what"] == what).count();
    assert_eq!(
        ["bare cache line, one way", "latency, one way", "bandwidth", "message rate"].map(count),
        [2, 7, 4, 1]
    );
    let matching = ["round trip past posted receives", "receive from the unexpected queue"];
    assert_eq!((matching.map(count), count("barrier"), count("allreduce of 8 bytes")), ([3, 3], 1, 1));
}

#[test]
fn more_ranks_than_two_take_part_in_collectives() {
    let ended = bench(&["-n", "5", "--seconds", "0.2"]);
    assert_eq!((ended.code(), ended.err.as_str()), (0, ""));
    assert!(ended.out.lines().next().is_some_and(|line| line.contains(", 5 ranks, ")), "{ended:?}");
    assert_eq!(ended.out.lines().filter(|line| line.starts_with("  5 ranks ")).count(), 2, "{ended:?}");
}

#[test]
fn what_cannot_be_measured_is_refused_in_words() {
    for (args, said) in [
        (&["-n", "1"][..], "-n 1: messages need two ranks"),
        (&["--seconds", "0"], "--seconds 0: it must be above 0"),
        (&["--rank"], "--rank is what perusal bench starts its own ranks with"),
    ] {
        let ended = bench(args);
        assert_eq!(ended.code(), 2, "{args:?} {ended:?}");
        assert!(ended.err.contains(said), "{args:?} {ended:?}");
    }
}
