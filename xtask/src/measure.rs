//! What things cost: every bench, idle events in instructions, listening in time.

use crate::dist::library;
use crate::shell::{
    Result, cargo, command, distribution, empty, folder, line, number, output, put, root, run, write,
};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// `bench [DIST]`: ratios are worth quoting, seconds are not.
pub fn bench(arguments: &[String]) -> Result {
    let (dist, _) = distribution(arguments)?;
    run(&mut cargo(["bench", "--quiet", "--locked", "--workspace"]))?;
    let program = folder("build/bench")?.join("pingpong");
    run(command(dist.join("bin/mpicc")).args(["-O2", "examples/pingpong.c", "-o"]).arg(&program))?;
    println!("One-way latency between two ranks:");
    run(command(dist.join("bin/mpiexec")).args(["-n", "2"]).arg(&program))?;
    println!("This machine:");
    run(command(dist.join("bin/perusal")).arg("bench"))?;
    println!("What idle events cost:");
    event_cost(arguments)
}

/// `rma-threads [DIST] [THREADS,… [BYTES,… [MEBIBYTES]]]`: `benches/rma_threads.c`, which says what its lines have.
pub fn rma_threads(arguments: &[String]) -> Result {
    let (dist, rest) = distribution(arguments)?;
    let program = folder("build/bench")?.join("rma_threads");
    let mut mpicc = command(dist.join("bin/mpicc"));
    run(mpicc.args(["-O2", "-pthread", "benches/rma_threads.c", "-o"]).arg(&program))?;
    run(command(dist.join("bin/mpiexec")).args(["-n", "2"]).arg(&program).args(rest))
}

/// Builds the library without events, as a folder that LD_LIBRARY_PATH may name.
fn without_events(at: &Path) -> Result<PathBuf> {
    let target = crate::shell::target().join("no-events");
    let built =
        library("no-events/release", &["--no-default-features", "--target-dir", &target.to_string_lossy()])?;
    let folder = folder(root().join(at).join("without"))?;
    put(&built.join("libperusal_abi.so"), &folder.join("libmpi_abi.so.1"))?;
    Ok(folder)
}

/// Runs of which the least counts.
const COUNTS: usize = 5;
/// Per cent of a case's instructions that idle events may cost.
const MOST_COST: f64 = 1.0;
/// Moves no data; its two calls have an event each.
const WINDOW_LOCK: &str = "window-lock";

/// `event-cost [DIST]`: instructions are counted one by one (`benches/event_cost.c`), so load and clock do not matter.
/// Fails where idle events cost a message, or an access to a window, more than [`MOST_COST`].
pub fn event_cost(arguments: &[String]) -> Result {
    let (dist, _) = distribution(arguments)?;
    let out = folder("build/event-cost")?;
    let without = without_events(&out)?;
    let program = out.join("event_cost");
    run(command(dist.join("bin/mpicc")).args(["-O2", "benches/event_cost.c", "-o"]).arg(&program))?;
    // A rank that has lost its CPU is woken, which costs the other one instructions:
    // the least of some runs has none of these.
    let count = |libraries: &Path, word: &str| -> Result<BTreeMap<String, f64>> {
        let mut least = BTreeMap::new();
        for _ in 0..COUNTS {
            let mut job = command(dist.join("bin/mpiexec"));
            let text = output(job.args(["-n", "2"]).arg(&program).env("LD_LIBRARY_PATH", libraries))?;
            text.lines().for_each(|line| println!("{word} events: {line}"));
            let pairs = text.lines().filter_map(|line| {
                Some((field(line, "case")?.to_owned(), field(line, "pair")?.parse::<f64>().ok()?))
            });
            for (case, pair) in pairs {
                least.entry(case).and_modify(|least: &mut f64| *least = least.min(pair)).or_insert(pair);
            }
        }
        Ok(least)
    };
    let with = count(&dist.join("lib"), "with")?;
    let without = count(&without, "without")?;
    let mut dear = Vec::new();
    if with.is_empty() {
        return Err("nothing was counted".into());
    }
    for (case, pair) in with {
        let bare = without.get(&case).ok_or_else(|| format!("case {case} was not counted without events"))?;
        let cost = (pair / bare - 1.0) * 100.0;
        println!("idle events cost {cost:.2} % of the instructions of a pair, case {case}");
        if cost > MOST_COST && case != WINDOW_LOCK {
            dear.push(case);
        }
    }
    match dear.join(", ").as_str() {
        "" => Ok(()),
        dear => Err(format!("idle events cost more than {MOST_COST} %: {dear}")),
    }
}

/// The value of `name=value` in a line.
pub fn field<'a>(line: &'a str, name: &str) -> Option<&'a str> {
    line.split_whitespace().find_map(|word| word.strip_prefix(name)?.strip_prefix('='))
}

/// A configuration: its name, how the table calls it, arguments of mpiexec and an environment variable.
struct Configuration {
    name: &'static str,
    shown: &'static str,
    arguments: Vec<String>,
    environment: Option<(&'static str, String)>,
}

fn configurations(without: &Path, logs: &Path) -> Vec<Configuration> {
    let log = |name: &str| logs.join(name).to_string_lossy().into_owned();
    let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
    let one = |name, shown, arguments, environment| Configuration { name, shown, arguments, environment };
    vec![
        one(
            "without",
            "events compiled out (absolute)",
            vec![],
            Some(("LD_LIBRARY_PATH", without.to_string_lossy().into_owned())),
        ),
        one("idle", "compiled in, no tool", vec![], None),
        one(
            "attached",
            "event logger attached, no callbacks",
            words(&["--list-events", "--log-output", &log("list")]),
            None,
        ),
        one(
            "empty",
            "empty callbacks on all events",
            words(&["--log-events", "*", "--log-output", &log("empty")]),
            Some(("MEL_CALLBACKS", "empty".into())),
        ),
        one(
            "log",
            "event logger: every event a line of text in a file",
            words(&["--log-events", "*", "--log-output", &log("log.%r")]),
            None,
        ),
        one(
            "queues",
            "event logger: queue statistics",
            words(&["--queue-statistics", "--log-output", &log("queues")]),
            None,
        ),
        one("trace", "trace on", words(&["--trace", &log("trace")]), None),
    ]
}

/// The three figures of one run: nanoseconds, million messages a second, microseconds.
type Figures = [f64; 3];

/// `overhead [DIST]`: ROUNDS=9 RANKS=2; prints the table of `docs/performance.md`.
///
/// The configurations are those of Hermanns et al. 2020 (section 5.1) and some more. All run in turn, ROUNDS times;
/// each figure is the median of its ratios to the first configuration in the same round, with the smallest and the
/// largest. Ratios above 1 are cost.
pub fn overhead(arguments: &[String]) -> Result {
    let (dist, _) = distribution(arguments)?;
    let (rounds, ranks) = (number("ROUNDS", 9), number("RANKS", 2).to_string());
    let out = folder(root().join("build/overhead"))?;
    let without = without_events(Path::new("build/overhead"))?;
    let program = out.join("overhead");
    run(command(dist.join("bin/mpicc")).args(["-O2", "benches/overhead.c", "-o"]).arg(&program))?;
    let logs = out.join("logs");
    let configurations = configurations(&without, &logs);
    let mut measured: Vec<Vec<Figures>> = vec![Vec::new(); configurations.len()];
    for _ in 0..rounds {
        for (configuration, figures) in configurations.iter().zip(&mut measured) {
            empty(&logs)?;
            let mut job = command(dist.join("bin/mpiexec"));
            job.args(["-n", &ranks]).args(&configuration.arguments).arg(&program).arg("3");
            job.envs(configuration.environment.iter().map(|(name, value)| (name, value)));
            figures.push(one_run(&output(&mut job)?).ok_or_else(|| {
                format!("configuration {} gave no figures: {}", configuration.name, line(&job))
            })?);
        }
    }
    let mut table = String::from(
        "| configuration | latency 8 B | time a message, window 64 | halo exchange |\n|---|---|---|---|\n",
    );
    for (at, configuration) in configurations.iter().enumerate() {
        table += &format!("| {}", configuration.shown);
        for kind in 0..3 {
            table += &cell(&measured[0], &measured[at], kind, at == 0);
        }
        table += " |\n";
    }
    print!("{table}");
    write(out.join("table.md"), table)
}

fn one_run(text: &str) -> Option<Figures> {
    let line = text.lines().find(|line| line.starts_with("latency_ns="))?;
    let numbers: Vec<f64> =
        line.split_whitespace().filter_map(|word| word.split_once('=')?.1.parse().ok()).collect();
    numbers.get(..3)?.try_into().ok()
}

fn cell(base: &[Figures], this: &[Figures], kind: usize, absolute: bool) -> String {
    let pairs = base.iter().zip(this).map(|(base, this)| (base[kind], this[kind]));
    // The second is a rate.
    let ratio = |(base, this): (f64, f64)| if kind == 1 { base / this } else { this / base };
    let mut values: Vec<f64> = pairs.map(|pair| if absolute { pair.1 } else { ratio(pair) }).collect();
    values.sort_by(f64::total_cmp);
    let (Some(least), Some(most)) = (values.first(), values.last()) else { return " | –".into() };
    let median = values[(values.len() - 1) / 2];
    if absolute {
        let unit = ["ns", "M/s", "us"][kind];
        format!(" | {median:.2} {unit} ({least:.2} to {most:.2})")
    } else {
        format!(" | {median:.3} ({least:.3} to {most:.3})")
    }
}
