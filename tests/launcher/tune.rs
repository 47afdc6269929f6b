//! `perusal tune` and the file that it writes, as their users meet them.

use crate::common::dist::dist;
use crate::common::jobs::{Directory, PERUSAL};
use std::fs;
use std::process::{Command, Output};

fn perusal(arguments: &[&str], environment: &[(&str, &str)]) -> Output {
    let mut command = Command::new(dist().join("bin/perusal"));
    command.args(arguments).env_remove("PERUSAL_YIELDS").env("PERUSAL_TUNE_FILE", "none");
    command.envs(environment.iter().copied());
    command.output().expect("the command starts")
}

fn out(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// A tune file of this machine with one value.
fn tuned(directory: &Directory, cpu: &str) -> String {
    let path = directory.path().join("tune.toml");
    let cpus = perusal::internals::shm::machine::MachineId::here().cpus;
    fs::write(&path, format!("[machine]\ncpu = \"{cpu}\"\ncpus = {cpus}\n[values]\nyields = 77\n"))
        .expect("writable");
    path.to_str().expect("a plain path").to_owned()
}

fn here() -> String {
    perusal::internals::shm::machine::MachineId::here().cpu
}

/// A control variable's value and origin, as `perusal info` has them.
fn yields(environment: &[(&str, &str)]) -> (u64, String) {
    let output = perusal(&["info", "--cvars", "--json"], environment);
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let found =
        json["cvars"].as_array().expect("a list").iter().find(|row| row["name"] == "yields").expect("there");
    (found["value"].as_u64().expect("a number"), found["origin"].as_str().expect("a word").to_owned())
}

#[test]
fn tune_shows_what_it_measured_and_writes_a_file_that_the_launcher_takes() {
    let directory = Directory::new("tune-1");
    let path = directory.path().join("below").join("tune.toml");
    let path = path.to_str().expect("a plain path");
    let output = perusal(&["tune", "--output", path], &[]);
    let text = out(&output);
    assert!(output.status.success(), "{output:?}");
    for part in ["waiting on one CPU", "chosen", "yields", "written to"] {
        assert!(text.contains(part), "{part:?} is not in\n{text}");
    }
    let file = fs::read_to_string(path).expect("written");
    assert!(file.contains("[machine]") && file.contains("[values.oversubscribed]"), "{file}");
    let info = out(&perusal(&["info"], &[("PERUSAL_TUNE_FILE", path)]));
    assert!(info.contains(&format!("tune file         {path}: ")), "{info}");
}

#[test]
fn outside_a_distribution_it_is_said_once_that_there_is_no_library_to_measure() {
    for arguments in [&["bench", "--seconds", "0.1"][..], &["tune", "--dry-run"]] {
        // As cargo has built it, without a library where the distribution has one.
        let output = Command::new(PERUSAL).args(arguments).output().expect("the command starts");
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && output.stdout.is_empty(), "{output:?}");
        assert!(error.contains("libmpi_abi.so.1 is where it belongs"), "{error}");
        assert!(error.ends_with("; only the perusal command of a distribution can measure\n"), "{error}");
        assert_eq!(error.lines().count(), 1, "{error}");
    }
}

#[test]
fn a_dry_run_writes_nothing() {
    let directory = Directory::new("tune-2");
    let home = directory.path().to_str().expect("a plain path");
    let output = perusal(&["tune", "--dry-run"], &[("XDG_CONFIG_HOME", home), ("PERUSAL_TUNE_FILE", "")]);
    assert!(output.status.success() && out(&output).contains("chosen"), "{output:?}");
    assert_eq!(fs::read_dir(directory.path()).expect("there").count(), 0);
}

#[test]
fn the_environment_wins_over_the_file_and_the_file_over_the_default() {
    let directory = Directory::new("tune-3");
    let path = tuned(&directory, &here());
    assert_eq!(yields(&[("PERUSAL_TUNE_FILE", &path)]), (77, "tune file".into()));
    assert_eq!(yields(&[("PERUSAL_TUNE_FILE", &path), ("PERUSAL_YIELDS", "5")]), (5, "environment".into()));
    assert_eq!(yields(&[]).1, "default");
}

#[test]
fn the_usual_place_is_in_the_users_configuration() {
    let directory = Directory::new("tune-4");
    fs::create_dir(directory.path().join("perusal")).expect("writable");
    let path = tuned(&directory, &here());
    fs::rename(path, directory.path().join("perusal/tune.toml")).expect("one file system");
    let home = directory.path().to_str().expect("a plain path");
    assert_eq!(yields(&[("PERUSAL_TUNE_FILE", ""), ("XDG_CONFIG_HOME", home)]).0, 77);
}

#[test]
fn a_file_of_another_machine_is_ignored_with_a_word() {
    let directory = Directory::new("tune-5");
    let path = tuned(&directory, "Another Processor");
    assert_eq!(yields(&[("PERUSAL_TUNE_FILE", &path)]).1, "default");
    let info = out(&perusal(&["info"], &[("PERUSAL_TUNE_FILE", &path)]));
    assert!(info.contains("is ignored: written on another machine (Another Processor"), "{info}");
}

#[test]
fn ranks_are_told_of_the_file_and_of_the_binding_whatever_else_is_kept_from_them() {
    let directory = Directory::new("tune-6");
    let path = tuned(&directory, &here());
    let script = "/bin/echo $PERUSAL_TUNED,$PERUSAL_BIND_TO,$PERUSAL_MAP_BY";
    let run =
        ["run", "-n", "1", "--envnone", "--bind-to", "core:1", "--map-by", "socket", "/bin/sh", "-c", script];
    let output = perusal(&run, &[("PERUSAL_TUNE_FILE", &path)]);
    assert_eq!(out(&output), "yields=77,core:1,socket\n", "{output:?}");
    let run = ["run", "-n", "1", "/bin/sh", "-c", script];
    let output = perusal(&run, &[("PERUSAL_TUNED", "yields=3"), ("PERUSAL_BIND_TO", "none")]);
    assert_eq!(out(&output), ",none,\n", "what another job got is not for this one: {output:?}");
}

#[test]
fn a_binding_that_the_environment_spells_wrongly_is_refused() {
    let output = perusal(&["run", "-n", "1", "true"], &[("PERUSAL_BIND_TO", "sofa")]);
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("sofa"), "{output:?}");
}

#[test]
fn info_lists_variables_and_the_tree() {
    let all = out(&perusal(&["info", "--cvars", "--pvars", "--events", "--categories"], &[]));
    for name in [
        "copy_engine",
        "PERUSAL_EAGER_LIMIT",
        "unexpected_recvq_length",
        "\npml_ob1_unex_insert ",
        "\nosc_rdma_lock_acquired ",
        "window_lock_waits",
        "; bound to a window",
        "\n  messages: ",
    ] {
        assert!(all.contains(name), "{name}");
    }
    let json: serde_json::Value =
        serde_json::from_slice(&perusal(&["info", "--json"], &[]).stdout).expect("JSON");
    for part in ["cvars", "pvars", "events", "categories"] {
        assert!(json[part].as_array().is_some_and(|rows| rows.len() > 5), "{part}");
    }
}
