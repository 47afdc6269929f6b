//! What it costs a job to be looked at by `perusal top`, `why` and `ps`: no instruction.

use crate::instructions;
use crate::measure::field;
use crate::shell::{Result, command, distribution, folder, line, number, root};
use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Child, Stdio};

/// Cases of `benches/instructions.c`: 8 bytes each.
const CASES: [&str; 15] = [
    "send",
    "recv",
    "recv-any",
    "recv-unexpected",
    "sendrecv",
    "isend",
    "irecv-there",
    "irecv",
    "barrier",
    "bcast",
    "allreduce",
    "alltoall",
    "put",
    "get",
    "flush",
];
/// Looks at a job that a run must have at least.
const LOOKS: usize = 20;
/// Runs after which counts that differ differ for another reason than a partner that was late,
/// unless WATCHED_RUNS says another number.
const RUNS: u64 = 10;

/// The least instructions of each case.
type Counts = BTreeMap<String, u64>;

/// `watched [DIST]`: counts the instructions of calls alone and while others look at the job all the time.
/// Fails where they differ.
pub fn main(arguments: &[String]) -> Result {
    let (dist, _) = distribution(arguments)?;
    let (mut alone, mut watched, mut looks) = (Counts::new(), Counts::new(), 0);
    for _ in 0..number("WATCHED_RUNS", RUNS) {
        count(&dist, &mut alone, |_| ())?;
        count(&dist, &mut watched, |job| looks += look_until_its_end(&dist, job))?;
        if alone == watched && looks >= LOOKS {
            break;
        }
    }
    let mut differ = Vec::new();
    for case in CASES {
        let [Some(alone), Some(watched)] = [&alone, &watched].map(|counts| counts.get(case)) else {
            return Err(format!("case {case} was not counted"));
        };
        println!("case={case} alone={alone} watched={watched}");
        if alone != watched {
            differ.push(case);
        }
    }
    println!("{looks} looks");
    if !differ.is_empty() {
        return Err(format!("other instructions while watched: {}", differ.join(", ")));
    }
    if looks < LOOKS {
        return Err(format!("{looks} looks at the job are too few to say anything"));
    }
    Ok(())
}

/// Counts once more, while `meanwhile` does something with the job, and keeps the least.
fn count(dist: &Path, least: &mut Counts, meanwhile: impl FnOnce(&mut Child)) -> Result {
    let out = folder(root().join("build/watched"))?;
    let mut job = instructions::job(dist, &out)?;
    job.args(CASES).stdout(Stdio::piped());
    let shown = line(&job);
    let mut job = job.spawn().map_err(|error| format!("{shown}: {error}"))?;
    meanwhile(&mut job);
    let ended = job.wait_with_output().map_err(|error| error.to_string())?;
    if !ended.status.success() {
        return Err(format!("{shown}: {}", ended.status));
    }
    for line in String::from_utf8_lossy(&ended.stdout).lines() {
        let counted = field(line, "instructions").and_then(|counted| counted.parse::<u64>().ok());
        if let (Some(case), Some(counted)) = (field(line, "case"), counted) {
            least.entry(case.to_owned()).and_modify(|least| *least = counted.min(*least)).or_insert(counted);
        }
    }
    Ok(())
}

/// Looks at the job again and again; returns how often `perusal top` has shown both ranks.
fn look_until_its_end(dist: &Path, job: &mut Child) -> usize {
    let number = job.id().to_string();
    let mut looks = 0;
    while matches!(job.try_wait(), Ok(None)) {
        let look = |arguments: &[&str]| command(dist.join("bin/perusal")).args(arguments).output();
        let top = look(&["top", &number, "--json", "--interval", "0.05"]);
        let shown = |text: &[u8]| String::from_utf8_lossy(text).contains("sent_per_second");
        looks += usize::from(top.is_ok_and(|top| top.status.success() && shown(&top.stdout)));
        // What these say does not matter: the job may be over.
        for other in [&["why", number.as_str()][..], &["ps"]] {
            let _ = look(other);
        }
    }
    looks
}
