//! Models against mutants: every ordered access and every fence that a model comes by is weakened, one at a time, and
//! some model must fail. One build; `src/sync/mutants.rs` has the points.

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
    /// No model fails, and this one goes on beyond its limit: how long that is says the machine, too.
    Endless(String),
    Survived,
}

/// `mutants [PART…]`: mutants whose place has one of these parts in it, or all. Each that has been tried has its row in
/// `loom-tests/mutants.md` at once; no row of a place that is gone is left.
pub fn main(arguments: &[String]) -> Result {
    let programs = model_programs()?;
    let scratch = folder(root().join("build/mutants"))?;
    let models = models(&programs, &scratch)?;
    let all: BTreeSet<&String> = models.iter().flat_map(|model| &model.places).collect();
    let names = names(&all)?;
    let wanted: Vec<&String> = all
        .into_iter()
        .filter(|place| arguments.is_empty() || arguments.iter().any(|part| place.contains(part)))
        .collect();
    println!("{} models, {} mutants", models.len(), wanted.len());
    let reasons = reasons()?;
    let next = AtomicUsize::new(0);
    let mut page = Page::read()?;
    let there: BTreeSet<Row> = names.values().map(|name| row(name)).collect();
    page.rows.retain(|row, _| there.contains(row));
    let page = Mutex::new(page);
    let worker = || -> Result {
        while let Some(place) = wanted.get(next.fetch_add(1, Relaxed)) {
            let fate = fate(&programs, &models, place);
            println!("{place}: {fate:?}");
            let mut page = page.lock().expect("no worker panics");
            page.add(names.get(*place).unwrap_or(place), &fate, &reasons);
            write(root().join(PAGE), page.text())?;
        }
        Ok(())
    };
    thread::scope(|scope| {
        let number = thread::available_parallelism().map_or(1, usize::from);
        let workers: Vec<_> = (0..number).map(|_| scope.spawn(worker)).collect();
        workers.into_iter().try_for_each(|it| it.join().map_err(|_| "a worker panicked".to_owned())?)
    })?;
    let page = page.into_inner().expect("no worker panics");
    let (tried, unexplained) = (&page.tried, &page.unexplained);
    let killed = tried.iter().filter(|row| !page.rows[*row].starts_with(SURVIVES)).count();
    println!("{} mutants, {killed} killed, {} unexplained survivors", tried.len(), unexplained.len());
    if unexplained.is_empty() { Ok(()) } else { Err(unexplained.join("\n")) }
}

/// All models with the places that they come by, in the order in which they are tried: those of fewest places first,
/// which are about the fewest things. Nothing that a run measures counts,
/// so that the page names the same models whoever makes it.
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
    models.sort_by(|one, other| (one.places.len(), &one.name).cmp(&(other.places.len(), &other.name)));
    Ok(models)
}

/// Runs the models that come by a place until one fails.
fn fate(programs: &Models, models: &[Model], place: &str) -> Fate {
    let mut endless = None;
    for fences in [None, Some("1")] {
        for model in models.iter().filter(|model| model.places.contains(place)) {
            let mut run = programs.run(&model.program, &model.name);
            // Events have a form for kernels without membarrier.
            run.env("PERUSAL_MUTANT", place).envs(fences.map(|on| ("PERUSAL_MODEL_FENCES", on)));
            let Ok(mut child) = run.spawn() else { continue };
            // A mutant may have more orders to try than the model itself, or may never end.
            match ends_well(&mut child, model.took * 20 + Duration::from_secs(20)) {
                Some(true) => {}
                Some(false) => return Fate::Killed(model.name.clone()),
                None => endless = endless.or_else(|| Some(model.name.clone())),
            }
        }
        if !place.contains("src/events/") {
            break;
        }
    }
    endless.map_or(Fate::Survived, Fate::Endless)
}

/// How a model ends; nothing if it has had `limit` of a CPU and has not ended:
/// of its time alone, so that it may run beside anything.
fn ends_well(child: &mut Child, limit: Duration) -> Option<bool> {
    let (mut used, mut asleep) = (Duration::ZERO, 0);
    loop {
        match child.try_wait() {
            Ok(Some(status)) => return Some(status.success()),
            Ok(None) if used < limit && asleep < ASLEEP => thread::sleep(Duration::from_millis(5)),
            _ => {
                let _ = child.kill();
                let _ = child.wait();
                return (asleep == ASLEEP).then_some(false);
            }
        }
        let now = time_used(child.id());
        asleep = if now == used && is_asleep(child.id()) { asleep + 1 } else { 0 };
        used = now;
    }
}

/// Looks in a row at a model all of whose threads sleep. A model waits for nobody: one that sleeps has failed, and was
/// to end when a panic had left a lock locked.
const ASLEEP: u32 = 400;

/// Field 3 of proc_pid_stat(5) and those behind it; the name before them, in parentheses, may contain anything.
fn fields(stat: &Path) -> Vec<String> {
    let stat = std::fs::read_to_string(stat).unwrap_or_default();
    stat.rsplit_once(')').map_or("", |(_, rest)| rest).split_whitespace().map(str::to_owned).collect()
}

/// Whether all threads of a process sleep.
fn is_asleep(process: u32) -> bool {
    let Ok(threads) = std::fs::read_dir(format!("/proc/{process}/task")) else { return false };
    let mut threads = threads.flatten().map(|thread| fields(&thread.path().join("stat")));
    threads.all(|fields| fields.first().is_some_and(|state| state == "S"))
}

/// The CPU time that a process has had.
fn time_used(process: u32) -> Duration {
    let fields = fields(Path::new(&format!("/proc/{process}/stat")));
    // Fields 14 and 15, in hundredths of a second.
    let ticks = fields.iter().skip(11).take(2).filter_map(|field| field.parse::<u64>().ok());
    Duration::from_millis(10 * ticks.sum::<u64>())
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

/// What a mutant is called: the file, the function, which place of the function, and the change.
/// Lines move; this stays.
fn names(places: &BTreeSet<&String>) -> Result<BTreeMap<String, String>> {
    let mut names = BTreeMap::new();
    let mut of_function: BTreeMap<String, Vec<(u32, u32)>> = BTreeMap::new();
    let split = |place: &str| -> Option<(String, u32, u32, String)> {
        let (at, change) = place.rsplit_once(' ')?;
        let mut parts = at.rsplitn(3, ':');
        let (column, line) = (parts.next()?.parse().ok()?, parts.next()?.parse().ok()?);
        Some((parts.next()?.to_owned(), line, column, change.to_owned()))
    };
    let mut rows = Vec::new();
    for place in places {
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
        names.insert((*place).clone(), format!("{function} {number} {change}"));
    }
    Ok(names)
}

/// How the last column of a survivor's row begins.
const SURVIVES: &str = "survives";

/// A row's first two columns: the place and the change.
type Row = (String, String);

/// The row of a mutant.
fn row(name: &str) -> Row {
    let (at, change) = name.rsplit_once(' ').unwrap_or((name, ""));
    (at.to_owned(), change.to_owned())
}

/// The page, as it is and with what is tried now.
#[derive(Debug, Default)]
struct Page {
    /// The last column of each row.
    rows: BTreeMap<Row, String>,
    /// What has been tried now.
    tried: BTreeSet<Row>,
    /// Of these, the survivors that nobody has explained.
    unexplained: Vec<String>,
}

impl Page {
    /// The page as it is.
    fn read() -> Result<Self> {
        let text = read(PAGE)?;
        let row = |line: &str| {
            let mut columns = line.strip_prefix("| `")?.strip_suffix(" |")?.splitn(3, " | ");
            let place = columns.next()?.strip_suffix('`')?;
            Some(((place.to_owned(), columns.next()?.to_owned()), columns.next()?.to_owned()))
        };
        Ok(Self { rows: text.lines().filter_map(row).collect(), ..Self::default() })
    }

    /// Adds what has become of a mutant, or puts it in the place of what was said before.
    fn add(&mut self, name: &str, fate: &Fate, reasons: &BTreeMap<String, String>) {
        let what = match fate {
            Fate::Killed(model) => format!("`{model}`"),
            Fate::Endless(model) => format!("`{model}`, which does not end"),
            Fate::Survived => match reasons.get(name) {
                Some(why) => format!("{SURVIVES}: {why}"),
                None => {
                    self.unexplained.push(name.to_owned());
                    SURVIVES.to_owned()
                }
            },
        };
        let row = row(name);
        self.tried.insert(row.clone());
        self.rows.insert(row, what);
    }

    fn text(&self) -> String {
        let killed = self.rows.values().filter(|what| !what.starts_with(SURVIVES)).count();
        let mut page = format!(
            "# Mutants\n\nFor somebody who doubts a model: each ordered access and each fence that the models of `loom-tests/` come by, weakened \
            alone, and of the models that fail then the one that comes by the fewest places, by name among equals. Besides orderings, a store or fence is lost, a relaxed store changes places with the thread's \
            next one (late), an exchange does not look at what it replaces (blind). `cargo xtask mutants` writes this page; a place is numbered within its function. {} \
            mutants, {killed} killed. Why the others survive is said in their rows, from `{SURVIVORS}`.\n\n\
            | place | change | killed by, or why not |\n|---|---|---|\n",
            self.rows.len()
        );
        for ((place, change), what) in &self.rows {
            // Writing to a string cannot fail.
            let _ = writeln!(page, "| `{place}` | {change} | {what} |");
        }
        page
    }
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
