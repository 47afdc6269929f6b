//! Pages in a browser that nobody sees: headless Chromium.
#![allow(dead_code)]

use super::run::{Outcome, run};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// Longer than a page takes on the slowest machine; what it catches is a hang.
const HANG: Duration = crate::common::HANG;

/// What became of a page after its scripts ran.
pub struct Page {
    /// The document as it then was.
    pub dom: String,
    /// What it wrote to the console, errors of its script and refused requests included, a line each.
    pub console: Vec<String>,
}

/// Opens a file and lets its scripts run.
pub fn open(page: &Path) -> Page {
    let outcome = chromium(page, &["--dump-dom", "--window-size=1280,900"]);
    let console =
        outcome.stderr.lines().filter(|line| line.contains(":CONSOLE")).map(str::to_owned).collect();
    Page { dom: outcome.stdout, console }
}

/// A picture of the whole page, for people to look at.
pub fn picture(page: &Path, to: &Path, arguments: &[&str]) {
    let shot = format!("--screenshot={}", to.display());
    let all: Vec<&str> =
        [shot.as_str(), "--hide-scrollbars"].into_iter().chain(arguments.iter().copied()).collect();
    chromium(page, &all);
    assert!(to.is_file(), "chromium took no picture of {}", page.display());
}

fn chromium(page: &Path, arguments: &[&str]) -> Outcome {
    let dir = page.parent().expect("a file lies in a directory");
    let name = page.file_stem().expect("a file has a name").to_string_lossy().into_owned();
    let profile = dir.join(format!("profile-{name}"));
    let mut command = Command::new(program());
    command
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run"])
        .args(["--disable-background-networking", "--disable-component-update", "--disable-extensions"])
        .args(["--enable-logging=stderr", "--v=0"])
        .arg(format!("--user-data-dir={}", profile.display()))
        .args(arguments)
        .arg(format!("file://{}", page.display()))
        .env("HOME", dir);
    let outcome = run(&mut command, dir, &format!("chromium-{name}"), HANG);
    assert_eq!(outcome.code(), Some(0), "chromium {}: {}", page.display(), outcome.stderr);
    let _ = std::fs::remove_dir_all(profile);
    outcome
}

fn program() -> PathBuf {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let names = ["chromium", "chromium-browser", "google-chrome"];
    let mut found = std::env::split_paths(&path).flat_map(|dir| names.map(|name| dir.join(name)));
    found.find(|program| program.is_file()).expect("a Chromium in PATH (run: .ci/setup chromium)")
}
