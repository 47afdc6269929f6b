//! Jobs of this user that run on this machine, and their memory, mapped for reading only.
//!
//! A job's memory has no name: it is found as a descriptor that one of its processes has open, which the kernel lets
//! the same user (and root) open.

use std::collections::HashSet;
use std::fs::{self, File};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use perusal::internals::shm::Memory;
use perusal_fi::observe;
use perusal_trace::terminal::one_line;

use crate::hang::{Scene, number};

/// What the link of such a descriptor says.
const LINK: &str = "/memfd:perusal-job";

/// A job that runs.
#[derive(Debug)]
pub struct RunningJob {
    /// Its number: the process id of its launcher, or of its only process.
    pub number: u32,
    /// Its memory.
    pub memory: Memory,
    /// That of jobs whose processes are guests in this one, as far as they have been found.
    others: Vec<Memory>,
    /// The launcher's command line.
    pub command: String,
    /// Seconds since that process was started.
    pub seconds: f64,
}

impl RunningJob {
    /// The job, with those whose processes are guests in it, as far as they have been found.
    pub fn scene(&self) -> Scene<'_> {
        Scene::new(&self.memory, &self.others)
    }

    /// Finds the jobs whose processes are guests in this one.
    pub fn find_guests(&mut self) {
        let roster = self.memory.roster();
        let is_unknown = |place: u32| {
            roster.entry(place).guest().is_some()
                && !roster.is_dead(place)
                && self.scene().home(place).is_none()
        };
        if (0..self.memory.places_in_use()).any(is_unknown) {
            let memories = jobs().into_iter().map(|job| job.memory);
            self.others = memories.filter(|memory| self.scene().has_guests_of(memory)).collect();
        }
    }

    /// Whether its launcher, or its only process, is still there.
    pub fn runs(&self) -> bool {
        // One that has ended has no program any more, though its parent may not have asked how it ended.
        Path::new(&format!("/proc/{}/exe", self.number)).read_link().is_ok()
    }
}

/// All jobs of this user, by number.
pub fn jobs() -> Vec<RunningJob> {
    let mut seen = HashSet::new();
    let mut jobs: Vec<RunningJob> = processes().filter_map(|pid| job_of(pid, &mut seen)).collect();
    jobs.sort_by_key(|job| job.number);
    jobs
}

/// A job's number on a command line.
pub fn job_number(text: &str) -> Result<u32, String> {
    text.parse().map_err(|_| "a job has a number, which perusal ps shows".to_owned())
}

/// The job `number`; the only one, if no number is given.
pub fn job(number: Option<u32>) -> Result<RunningJob, String> {
    let mut jobs = jobs();
    let listed: Vec<String> = jobs.iter().map(|job| job.number.to_string()).collect();
    match number {
        Some(number) => jobs.into_iter().find(|job| job.number == number).ok_or_else(|| no_job(number)),
        None if jobs.len() == 1 => Ok(jobs.remove(0)),
        None if jobs.is_empty() => Err("no job of yours runs on this machine; \
                                         perusal fabric --show tells of processes under other MPIs"
            .into()),
        None => Err(format!("which job? There are {}; perusal ps lists them", listed.join(", "))),
    }
}

/// Why there is no job of this number.
fn no_job(number: u32) -> String {
    if observe::endpoints().iter().any(|one| one.process == number) {
        return format!(
            "process {number} is no job of perusal's: it has an endpoint under another MPI, of which perusal fabric --show tells"
        );
    }
    format!("there is no job {number} of yours; perusal ps lists what there is")
}

fn processes() -> impl Iterator<Item = u32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

/// The job whose launcher, or only process, `pid` is.
fn job_of(pid: u32, seen: &mut HashSet<u64>) -> Option<RunningJob> {
    let descriptors = fs::read_dir(format!("/proc/{pid}/fd")).ok()?.flatten();
    for path in descriptors.map(|entry| entry.path()) {
        let link = fs::read_link(&path).unwrap_or_default();
        if !link.to_string_lossy().starts_with(LINK) {
            continue;
        }
        // A process that ends meanwhile takes its descriptors along.
        let Ok(file) = File::open(&path) else { continue };
        let inode = file.metadata().ok()?.ino();
        let Ok(memory) = Memory::observe(file) else { continue };
        // What a process has forked, has the same memory as the process.
        if pid == number(&memory) && seen.insert(inode) {
            let (command, seconds, others) = (command(pid), age(pid), vec![]);
            return Some(RunningJob { number: pid, memory, others, command, seconds });
        }
    }
    None
}

/// The command line of a process.
pub fn command(pid: u32) -> String {
    let words = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let words: Vec<String> = words
        .split(|byte| *byte == 0)
        .filter(|word| !word.is_empty())
        .map(|word| String::from_utf8_lossy(word).into_owned())
        .collect();
    one_line(&words.join(" ")).to_string()
}

/// Seconds since a process was started.
pub fn age(pid: u32) -> f64 {
    let number = |text: Option<&str>| text.and_then(|text| text.parse::<f64>().ok()).unwrap_or(0.0);
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    // The name, in parentheses, may contain anything; the start is field 22, and the state, behind the name, field 3.
    let start = number(stat.rsplit_once(')').and_then(|(_, rest)| rest.split_whitespace().nth(19)));
    let uptime = fs::read_to_string("/proc/uptime").unwrap_or_default();
    let ticks = rustix::param::clock_ticks_per_second() as f64;
    (number(uptime.split_whitespace().next()) - start / ticks).max(0.0)
}
