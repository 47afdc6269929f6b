//! Chooses values from measured times. A default gives way only to something that is clearly better, because no machine is quiet.

use super::file::JobKind;
use super::rank::{EAGER, ENGINES, SIZES, STRATEGIES};
use perusal::internals::variables::table::NEVER;
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// One protocol is better than another if it takes less than this share of its time.
const CLEARLY: f64 = 0.93;
/// Yields and polling on a shared CPU must win by more: the default suits many ranks, and two are measured.
const BY_FAR: f64 = 0.75;
/// A larger message cannot take less than this share of a smaller one's time in the same way.
const IMPOSSIBLY: f64 = 0.5;
/// Index in [`STRATEGIES`] of the default where ranks outnumber CPUs.
const USUAL: usize = 5;

/// Times one way in nanoseconds, by what was done and how large or which.
#[derive(Debug, Default)]
pub struct Measured(BTreeMap<(String, u64), f64>);

impl Measured {
    /// Takes over what ranks have printed.
    ///
    /// # Errors
    /// Names the line that makes no sense.
    pub fn add(&mut self, printed: &str) -> Result<(), String> {
        for line in printed.lines() {
            let mut words = line.split_whitespace();
            let parsed = (|| {
                let (what, number, time) =
                    (words.next()?, words.next()?.parse().ok()?, words.next()?.parse().ok()?);
                Some(((what.to_owned(), number), time))
            })();
            let (key, time) = parsed.ok_or_else(|| format!("a rank printed {line:?}"))?;
            self.0.insert(key, time);
        }
        Ok(())
    }

    fn time(&self, what: &str, number: u64) -> Option<f64> {
        self.0.get(&(what.to_owned(), number)).copied()
    }

    /// What was measured, for people.
    pub fn table(&self) -> String {
        let mut text = String::new();
        // Writing to a string cannot fail.
        let cell = |what: &str, number| {
            self.time(what, number).map_or_else(|| "-".into(), |time| format!("{:.2}", time / 1e3))
        };
        if self.time("chunks", SIZES[0] as u64).is_some() {
            let _ = writeln!(
                text,
                "large messages, us one way\n  {:>9}{:>10}{:>10}{:>10}",
                "bytes", "chunks", "read", "halves"
            );
            for bytes in SIZES.map(|bytes| bytes as u64) {
                let [chunks, read, halves] = ENGINES.map(|(name, _)| cell(name, bytes));
                let _ = writeln!(text, "  {bytes:>9}{chunks:>10}{read:>10}{halves:>10}");
            }
            let _ = writeln!(
                text,
                "protocols, us one way\n  {:>9}{:>10}{:>10}{:>12}",
                "bytes", "eager", "fragments", "rendezvous"
            );
            for bytes in EAGER.map(|bytes| bytes as u64) {
                let _ = writeln!(
                    text,
                    "  {bytes:>9}{:>10}{:>10}{:>12}",
                    cell("eager", bytes),
                    cell("fragments", bytes),
                    cell("rendezvous", bytes)
                );
            }
            let _ = writeln!(
                text,
                "a message to a rank that has waited, us one way: it polls {}, it sleeps {}",
                cell("spin", 1000),
                cell("spin", 0)
            );
        }
        let _ = writeln!(text, "waiting on one CPU, us one way");
        for (strategy, (spin, yields)) in STRATEGIES.into_iter().enumerate() {
            let _ = writeln!(
                text,
                "  {spin:>3} us polling, {yields:>3} yields{:>10}",
                cell("oversubscribed", strategy as u64)
            );
        }
        text
    }
}

/// A value to write, and why.
#[derive(Debug, Clone, PartialEq)]
pub struct Chosen {
    pub jobs: JobKind,
    pub name: &'static str,
    pub value: u64,
    pub why: String,
}

/// What was chosen, for people.
pub fn table(chosen: &[Chosen]) -> String {
    let mut text = String::from("chosen\n");
    for Chosen { jobs, name, value, why } in chosen {
        let jobs = match jobs {
            JobKind::All => "",
            JobKind::Dedicated => " (a CPU for each rank)",
            JobKind::Oversubscribed => " (more ranks than CPUs)",
        };
        let value = if *value == NEVER { "never".into() } else { value.to_string() };
        text += &format!("  {name:16} {value:>10}  {why}{jobs}\n");
    }
    text
}

/// All values that follow from what was measured.
pub fn all(measured: &Measured) -> Vec<Chosen> {
    let mut all = [thresholds(measured), eager(measured), spin(measured), oversubscribed(measured)].concat();
    all.retain(|chosen| chosen.jobs != JobKind::All || contradiction(measured, chosen.name).is_none());
    all
}

/// What keeps its default because measurements contradict one another, for people.
pub fn doubts(measured: &Measured) -> String {
    let of =
        |(name, ..): &Series| Some(format!("  {name:16}    default  {}\n", contradiction(measured, name)?));
    SERIES.iter().filter_map(of).collect()
}

/// A control variable, and the times by size from which it is chosen.
type Series = (&'static str, &'static [usize], &'static [&'static str]);

const SERIES: [Series; 4] = [
    ("copy_read_from", &SIZES, &["chunks", "read"]),
    ("copy_halves_from", &SIZES, &["chunks", "read", "halves"]),
    ("eager_limit", &EAGER, &["eager", "fragments", "rendezvous"]),
    ("train_limit", &EAGER, &["fragments", "rendezvous"]),
];

/// Times that cannot both be right, of those from which the variable is chosen: what else the machine did has been measured.
fn contradiction(measured: &Measured, variable: &str) -> Option<String> {
    let (_, sizes, series) = SERIES.iter().find(|(name, ..)| *name == variable)?;
    series.iter().find_map(|what| {
        let times = || sizes.iter().filter_map(|&bytes| Some((bytes, measured.time(what, bytes as u64)?)));
        times().enumerate().find_map(|(at, (smaller, time))| {
            let (larger, less) = times().skip(at + 1).find(|(_, less)| *less < IMPOSSIBLY * time)?;
            let (time, less) = (time / 1e3, less / 1e3);
            Some(format!("{what} of {smaller} bytes took {time:.2} us and of {larger} only {less:.2}: measure again on a quieter machine"))
        })
    })
}

/// The smallest size from which on `wins` holds for all measured ones.
fn from(sizes: &[usize], wins: impl Fn(u64) -> bool) -> u64 {
    let losing = sizes.iter().rposition(|&bytes| !wins(bytes as u64));
    let first = losing.map_or(0, |at| at + 1);
    sizes.get(first).map_or(NEVER, |&bytes| bytes as u64)
}

fn thresholds(measured: &Measured) -> Vec<Chosen> {
    if measured.time("chunks", SIZES[0] as u64).is_none() {
        return vec![];
    }
    let time = |what, bytes| measured.time(what, bytes).unwrap_or(f64::INFINITY);
    let read = from(&SIZES, |bytes| time("read", bytes) < CLEARLY * time("chunks", bytes));
    let halves = from(&SIZES, |bytes| {
        let other =
            time("chunks", bytes).min(if bytes >= read { time("read", bytes) } else { f64::INFINITY });
        time("halves", bytes) < CLEARLY * other
    });
    let chosen = |name, value, what: &str| Chosen {
        jobs: JobKind::All,
        name,
        value,
        why: if value == NEVER {
            format!("{what} wins nowhere")
        } else {
            format!("{what} wins from here on")
        },
    };
    vec![
        chosen("copy_read_from", read, "reading the sender's memory"),
        chosen("copy_halves_from", halves, "copying a half each"),
    ]
}

/// Returns the largest size up to which `protocol` is no slower than all others; `None` if it is slower at once, or was not measured.
fn up_to(measured: &Measured, protocol: &str, others: &[&str]) -> Option<u64> {
    let slower = EAGER.iter().position(|&bytes| {
        let time = |what| measured.time(what, bytes as u64);
        let best = others.iter().filter_map(|other| time(other)).min_by(f64::total_cmp);
        time(protocol).zip(best).is_none_or(|(own, best)| own * CLEARLY > best)
    });
    let last = slower.unwrap_or(EAGER.len()).checked_sub(1)?;
    Some(EAGER[last] as u64)
}

fn eager(measured: &Measured) -> Vec<Chosen> {
    let chosen = |name, value: Option<u64>, why: &str| {
        value.map(|value| Chosen { jobs: JobKind::All, name, value, why: why.into() })
    };
    let eager = up_to(measured, "eager", &["fragments", "rendezvous"]);
    let fragments = up_to(measured, "fragments", &["rendezvous"]);
    [
        chosen(
            "eager_limit",
            eager,
            "up to here, an eager message is no slower than eager fragments or rendezvous",
        ),
        chosen("train_limit", fragments, "up to here, eager fragments are no slower than rendezvous"),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// Polling for as long as a sleep and a wake-up cost never takes more than twice the best possible time. The default is longer, for
/// programs whose ranks compute a little between messages, and is the lower bound.
fn spin(measured: &Measured) -> Vec<Chosen> {
    let times = measured.time("spin", 0).zip(measured.time("spin", 1000));
    let Some((asleep, awake)) = times.filter(|(asleep, awake)| asleep > awake) else { return vec![] };
    let cost = (asleep - awake) / 1e3;
    vec![Chosen {
        jobs: JobKind::Dedicated,
        name: "spin_us",
        value: ((2.0 * cost).ceil() as u64).clamp(50, 500),
        why: format!("a sleep costs {cost:.1} us; twice that, and no less than 50"),
    }]
}

fn oversubscribed(measured: &Measured) -> Vec<Chosen> {
    let time = |strategy: usize| measured.time("oversubscribed", strategy as u64).unwrap_or(f64::INFINITY);
    let best = (0..STRATEGIES.len()).min_by(|&a, &b| time(a).total_cmp(&time(b))).unwrap_or(USUAL);
    let better = time(best) < BY_FAR * time(USUAL);
    let (spin, yields) = STRATEGIES[if better { best } else { USUAL }];
    let why = if better { "the fastest on one CPU" } else { "nothing is faster by far on one CPU" };
    let chosen = |name, value| Chosen { jobs: JobKind::Oversubscribed, name, value, why: why.into() };
    vec![chosen("spin_us", spin), chosen("yields", yields)]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn measured(lines: &[(&str, u64, f64)]) -> Measured {
        let mut all = Measured::default();
        let text: String =
            lines.iter().map(|(what, number, time)| format!("{what} {number} {time}\n")).collect();
        all.add(&text).expect("good lines");
        all
    }

    fn value(chosen: &[Chosen], jobs: JobKind, name: &str) -> Option<u64> {
        chosen.iter().find(|c| c.jobs == jobs && c.name == name).map(|c| c.value)
    }

    fn copies(read: impl Fn(f64) -> f64, halves: impl Fn(f64) -> f64) -> Measured {
        let lines: Vec<_> = SIZES
            .iter()
            .flat_map(|&bytes| {
                let b = bytes as f64;
                [
                    ("chunks", bytes as u64, b),
                    ("read", bytes as u64, read(b)),
                    ("halves", bytes as u64, halves(b)),
                ]
            })
            .collect();
        measured(&lines)
    }

    #[test]
    fn an_engine_is_chosen_from_where_it_wins_for_good() {
        let all = all(&copies(|b| 70_000.0 + 0.5 * b, |b| 300_000.0 + 0.1 * b));
        assert_eq!(value(&all, JobKind::All, "copy_read_from"), Some(256 << 10));
        assert_eq!(value(&all, JobKind::All, "copy_halves_from"), Some(1 << 20));
    }

    #[test]
    fn an_engine_that_wins_nowhere_or_only_in_between_is_never_chosen() {
        let all = all(&copies(|b| 0.99 * b, |b| if b < 1e6 { 0.5 * b } else { 2.0 * b }));
        assert_eq!(value(&all, JobKind::All, "copy_read_from"), Some(NEVER));
        assert_eq!(value(&all, JobKind::All, "copy_halves_from"), Some(NEVER));
    }

    #[test]
    fn the_limits_of_eager_messages_and_fragments_are_where_they_begin_to_lose() {
        let time = |bytes: usize, most: usize| if bytes > most { 3.0 } else { 1.0 };
        let protocols = |bytes: usize| {
            let at = bytes as u64;
            [
                ("eager", at, time(bytes, 16 << 10)),
                ("fragments", at, time(bytes, 64 << 10)),
                ("rendezvous", at, 2.0),
            ]
        };
        let lines: Vec<_> = EAGER.iter().flat_map(|&bytes| protocols(bytes)).collect();
        let all = all(&measured(&lines));
        assert_eq!(value(&all, JobKind::All, "eager_limit"), Some(16 << 10));
        assert_eq!(value(&all, JobKind::All, "train_limit"), Some(64 << 10));
    }

    #[test]
    fn what_is_chosen_from_times_that_contradict_one_another_keeps_its_default() {
        let spoiled = |bytes: f64| if bytes == f64::from(128 << 10) { 22_753_000.0 } else { 0.5 * bytes };
        let clean = |bytes: f64| 0.2 * bytes;
        let chosen = |read: fn(f64) -> f64, halves: fn(f64) -> f64| {
            let measured = copies(read, halves);
            let values = all(&measured);
            let of = |name| value(&values, JobKind::All, name);
            (of("copy_read_from"), of("copy_halves_from"), doubts(&measured))
        };
        assert_eq!(chosen(clean, clean), (Some(32 << 10), Some(NEVER), String::new()));
        let (read, halves, said) = chosen(spoiled, clean);
        assert_eq!((read, halves, said.lines().count()), (None, None, 2), "{said}");
        let wanted = "read of 131072 bytes took 22753.00 us and of 262144 only 131.07";
        assert!(said.contains("copy_read_from      default") && said.contains(wanted), "{said}");
        // What does not depend on them is chosen.
        let (read, halves, said) = chosen(clean, spoiled);
        assert_eq!((read, halves, said.lines().count()), (Some(32 << 10), None, 1), "{said}");
    }

    #[test]
    fn polling_lasts_twice_a_sleep_within_limits() {
        let spin = |asleep: f64| {
            value(
                &all(&measured(&[("spin", 0, asleep), ("spin", 1000, 100.0)])),
                JobKind::Dedicated,
                "spin_us",
            )
        };
        assert_eq!(spin(40_100.0), Some(80));
        assert_eq!(spin(3_100.0), Some(50));
        assert_eq!(spin(9e9), Some(500));
        assert_eq!(spin(50.0), None, "sleeping costs nothing: not measured rightly");
    }

    #[test]
    fn what_is_not_by_far_better_leaves_the_default_of_oversubscribed_jobs() {
        let chosen = |best: f64| {
            let lines: Vec<_> = (0..STRATEGIES.len() as u64)
                .map(|n| ("oversubscribed", n, if n == 7 { best } else { 100.0 }))
                .collect();
            let all = all(&measured(&lines));
            (value(&all, JobKind::Oversubscribed, "spin_us"), value(&all, JobKind::Oversubscribed, "yields"))
        };
        assert_eq!(chosen(90.0), (Some(2), Some(3)));
        assert_eq!(chosen(50.0), (Some(2), Some(30)));
    }

    #[test]
    fn a_line_that_makes_no_sense_is_named() {
        assert!(Measured::default().add("chunks many 3").expect_err("no number").contains("many"));
    }
}
