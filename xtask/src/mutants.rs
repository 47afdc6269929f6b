//! Models against mutants: every ordered access and every fence that a model comes by is weakened, one at a time, and some model must
//! fail. One build; `src/sync/mutants.rs` has the points.

use crate::loom::{Models, model_programs};
use crate::shell::{Result, at, command, folder, read, root, write};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

/// Where the table goes.
const PAGE: &str = "loom-tests/mutants.md";
/// Why mutants survive: a line each, `name of the mutant | reason`.
const SURVIVORS: &str = "loom-tests/survivors.txt";

/// A model: a test of a program.
#[derive(Debug, Clone)]
struct Model {
    program: PathBuf,
    name: String,
    took: Duration,
    places: BTreeSet<String>,
}

/// What became of a mutant.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Fate {
    Killed(String),
    Survived,
}

/// `mutants [PART…]`: mutants whose place has one of these parts in it, or all; writes `loom-tests/mutants.md` if all were tried.
pub fn main(arguments: &[String]) -> Result {
    let programs = model_programs()?;
    let scratch = folder(root().join("build/mutants"))?;
    let models = models(&programs, &scratch)?;
    let all: BTreeSet<&String> = models.iter().flat_map(|model| &model.places).collect();
    let wanted: Vec<&String> = all
        .into_iter()
        .filter(|place| arguments.is_empty() || arguments.iter().any(|part| place.contains(part)))
        .collect();
    println!("{} models, {} mutants", models.len(), wanted.len());
    let next = AtomicUsize::new(0);
    let fates = Mutex::new(BTreeMap::new());
    let worker = || {
        while let Some(place) = wanted.get(next.fetch_add(1, Relaxed)) {
            let fate = fate(&programs, &models, place);
            println!("{place}: {fate:?}");
            fates.lock().expect("no worker panics").insert((*place).clone(), fate);
        }
    };
    thread::scope(|scope| {
        for _ in 0..thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(worker);
        }
    });
    let fates = fates.into_inner().expect("no worker panics");
    let reasons = reasons()?;
    let (page, unexplained) = page(&fates, &reasons)?;
    if arguments.is_empty() {
        write(root().join(PAGE), page)?;
    }
    let killed = fates.values().filter(|fate| **fate != Fate::Survived).count();
    println!("{} mutants, {killed} killed, {} unexplained survivors", fates.len(), unexplained.len());
    if unexplained.is_empty() { Ok(()) } else { Err(unexplained.join("\n")) }
}

/// All models, the quickest first, with the places that they come by.
fn models(programs: &Models, scratch: &Path) -> Result<Vec<Model>> {
    let mut models = Vec::new();
    for program in &programs.files {
        let list = at(program, command(program).args(["--list", "--format=terse"]).output())?;
        let text = String::from_utf8_lossy(&list.stdout).into_owned();
        for name in text.lines().filter_map(|line| line.strip_suffix(": test")) {
            let file = scratch.join("places");
            let _ = std::fs::remove_file(&file);
            let began = Instant::now();
            let mut run = programs.run(program, name);
            let good = run.env("PERUSAL_MUTANT_PLACES", &file).status().is_ok_and(|status| status.success());
            if !good {
                return Err(format!("{name} fails without any mutant"));
            }
            let places =
                std::fs::read_to_string(&file).unwrap_or_default().lines().map(str::to_owned).collect();
            models.push(Model {
                program: program.clone(),
                name: name.to_owned(),
                took: began.elapsed(),
                places,
            });
        }
    }
    models.sort_by_key(|model| model.took);
    Ok(models)
}

/// Runs the models that come by a place until one fails.
fn fate(programs: &Models, models: &[Model], place: &str) -> Fate {
    for fences in [None, Some("1")] {
        for model in models.iter().filter(|model| model.places.contains(place)) {
            let mut run = programs.run(&model.program, &model.name);
            // Events have a form for kernels without membarrier.
            run.env("PERUSAL_MUTANT", place).envs(fences.map(|on| ("PERUSAL_MODEL_FENCES", on)));
            let Ok(mut child) = run.spawn() else { continue };
            // A mutant may have more orders to try than the model itself, or may never end.
            if !ends_well(&mut child, model.took * 20 + Duration::from_secs(20)) {
                return Fate::Killed(model.name.clone());
            }
        }
        if !place.contains("src/events/") {
            break;
        }
    }
    Fate::Survived
}

fn ends_well(child: &mut Child, limit: Duration) -> bool {
    let began = Instant::now();
    loop {
        match child.try_wait() {
            Ok(Some(status)) => return status.success(),
            Ok(None) if began.elapsed() < limit => thread::sleep(Duration::from_millis(5)),
            _ => {
                let _ = child.kill();
                let _ = child.wait();
                return false;
            }
        }
    }
}

/// Reasons by mutant.
fn reasons() -> Result<BTreeMap<String, String>> {
    let text = read(SURVIVORS)?;
    let lines = text.lines().filter(|line| !line.starts_with('#') && !line.is_empty());
    let row = |line: &str| {
        line.split_once(" | ").map(|(name, why)| (name.trim().to_owned(), why.trim().to_owned()))
    };
    Ok(lines.filter_map(row).collect())
}

/// What a mutant is called: the file, the function, which place of the function, and the change. Lines move; this stays.
fn names(fates: &BTreeMap<String, Fate>) -> Result<BTreeMap<String, String>> {
    let mut names = BTreeMap::new();
    let mut of_function: BTreeMap<String, Vec<(u32, u32)>> = BTreeMap::new();
    let split = |place: &str| -> Option<(String, u32, u32, String)> {
        let (at, change) = place.rsplit_once(' ')?;
        let mut parts = at.rsplitn(3, ':');
        let (column, line) = (parts.next()?.parse().ok()?, parts.next()?.parse().ok()?);
        Some((parts.next()?.to_owned(), line, column, change.to_owned()))
    };
    let mut rows = Vec::new();
    for place in fates.keys() {
        let Some((file, line, column, change)) = split(place) else { continue };
        let text = read(&file)?;
        let before: Vec<&str> = text.lines().take(line as usize).collect();
        let function = before.iter().rev().find_map(|line| {
            let (_, rest) = line.split_once("fn ")?;
            let name: String = rest.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
            (!name.is_empty() && !line.trim_start().starts_with("//")).then_some(name)
        });
        let function = format!("{file}: {}", function.unwrap_or_default());
        let places = of_function.entry(function.clone()).or_default();
        if !places.contains(&(line, column)) {
            places.push((line, column));
        }
        rows.push((place, function, (line, column), change));
    }
    for places in of_function.values_mut() {
        places.sort_unstable();
    }
    for (place, function, at, change) in rows {
        let number = of_function[&function].iter().position(|other| *other == at).unwrap_or(0) + 1;
        names.insert(place.clone(), format!("{function} {number} {change}"));
    }
    Ok(names)
}

/// The page, and the survivors that nobody has explained.
fn page(fates: &BTreeMap<String, Fate>, reasons: &BTreeMap<String, String>) -> Result<(String, Vec<String>)> {
    let names = names(fates)?;
    let killed = fates.values().filter(|fate| **fate != Fate::Survived).count();
    let mut page = format!(
        "# Mutants\n\nFor somebody who doubts a model: each ordered access and each fence that the models of `loom-tests/` come by, weakened \
        alone, and the first model that fails then. Beside orderings, a store or fence is lost, a relaxed store changes places with the thread's \
        next one (late), an exchange does not look at what it replaces (blind). `cargo xtask mutants` writes this page; a place is numbered within its function. {} \
        mutants, {killed} killed. Why the others survive is said in their rows, from `{SURVIVORS}`.\n\n\
        | place | change | killed by, or why not |\n|---|---|---|\n",
        fates.len()
    );
    let mut unexplained = Vec::new();
    for (place, fate) in fates {
        let name = names.get(place).cloned().unwrap_or_else(|| place.clone());
        let (at, change) = name.rsplit_once(' ').unwrap_or((&name, ""));
        let what = match fate {
            Fate::Killed(model) => format!("`{model}`"),
            Fate::Survived => match reasons.get(&name) {
                Some(why) => format!("survives: {why}"),
                None => {
                    unexplained.push(name.clone());
                    "survives".to_owned()
                }
            },
        };
        // Writing to a string cannot fail.
        let _ = writeln!(page, "| `{at}` | {change} | {what} |");
    }
    Ok((page, unexplained))
}

impl Models {
    /// One model alone, without its words.
    fn run(&self, program: &Path, name: &str) -> Command {
        let mut run = Command::new(program);
        run.args(["--exact", name, "--test-threads=1"])
            .envs(self.preload.iter().map(|it| ("LD_PRELOAD", it)));
        run.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).current_dir(root());
        run
    }
}
