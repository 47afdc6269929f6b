//! Chooses values from measured times. A default gives way only to something that is clearly better in every
//! repetition, because no machine is quiet.

use super::file::JobKind;
use super::rank::{EAGER, ENGINES, SIZES, STRATEGIES};
use perusal::internals::variables::table::NEVER;
use perusal::internals::variables::{JobShape, Variable};
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// One protocol is better than another if it takes less than this share of its time.
const CLEARLY: f64 = 0.93;
/// Yields and polling on a shared CPU must win by more: the default suits many ranks, and two are measured.
const BY_FAR: f64 = 0.75;
/// A larger message cannot take less than this share of a smaller one's time in the same way.
const IMPOSSIBLY: f64 = 0.5;
/// Index in [`STRATEGIES`] of the default where ranks outnumber CPUs.
const USUAL: usize = STRATEGIES.len() - 1;

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

    /// The shortest times of all repetitions.
    pub fn shortest(repetitions: &[Self]) -> Self {
        let mut all = Self::default();
        for (key, time) in repetitions.iter().flat_map(|one| &one.0) {
            let least = all.0.entry(key.clone()).or_insert(f64::INFINITY);
            *least = least.min(*time);
        }
        all
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

/// What becomes of a control variable, and why.
#[derive(Debug, Clone, PartialEq)]
pub struct Chosen {
    pub jobs: JobKind,
    pub name: &'static str,
    /// Its value; none where the default stays.
    pub value: Option<u64>,
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
        let value = value.map_or_else(|| "default".into(), shown);
        text += &format!("  {name:16} {value:>10}  {why}{jobs}\n");
    }
    text
}

fn shown(value: u64) -> String {
    if value == NEVER { "never".into() } else { value.to_string() }
}

/// All that follows from what was measured, in a job of this shape but for its ranks and CPUs.
pub fn all(repetitions: &[Measured], job: &JobShape) -> Vec<Chosen> {
    let dedicated = JobShape { ranks: 2, usable_cpus: 2, ..*job };
    let settled = RULES.iter().filter_map(|rule| rule.settle(repetitions, &dedicated));
    settled.chain(oversubscribed(repetitions)).collect()
}

/// How a control variable of jobs in which each rank has a CPU follows from the times of one repetition.
struct Rule {
    name: &'static str,
    /// What is compared, and at which sizes.
    series: &'static [&'static str],
    sizes: &'static [usize],
    /// None: nothing speaks against the default.
    value: fn(&Measured) -> Option<u64>,
    why: &'static str,
}

const RULES: [Rule; 5] = [
    Rule {
        name: "copy_read_from",
        series: &["chunks", "read"],
        sizes: &SIZES,
        value: |measured| Some(read_from(measured)),
        why: "from here on reading the sender's memory wins",
    },
    Rule {
        name: "copy_halves_from",
        series: &["chunks", "read", "halves"],
        sizes: &SIZES,
        value: |measured| Some(halves_from(measured)),
        why: "from here on copying a half each wins",
    },
    Rule {
        name: "eager_limit",
        series: &["eager", "fragments", "rendezvous"],
        sizes: &EAGER,
        value: |measured| up_to(measured, "eager", &["fragments", "rendezvous"]),
        why: "up to here an eager message is no slower than eager fragments or rendezvous",
    },
    Rule {
        name: "train_limit",
        series: &["fragments", "rendezvous"],
        sizes: &EAGER,
        value: |measured| up_to(measured, "fragments", &["rendezvous"]),
        why: "up to here eager fragments are no slower than rendezvous",
    },
    Rule { name: "spin_us", series: &["spin"], sizes: &[0], value: spin, why: "twice what a sleep costs" },
];

impl Rule {
    /// The value that all repetitions speak for against the default: of those that they give the nearest to it. None if
    /// the variable was not measured.
    fn settle(&self, repetitions: &[Measured], shape: &JobShape) -> Option<Chosen> {
        let first = self.sizes[0] as u64;
        if repetitions.iter().any(|one| one.time(self.series[0], first).is_none()) {
            return None;
        }
        let default = (Variable::named(self.name)?.default)(shape);
        let values = || repetitions.iter().map(|one| (self.value)(one).unwrap_or(default));
        let (least, most) = (values().min()?, values().max()?);
        let (value, why) = if let Some(doubt) = repetitions.iter().find_map(|one| self.contradiction(one)) {
            (None, doubt)
        } else if least > default {
            (Some(least), self.why.to_owned())
        } else if most < default {
            (Some(most), self.why.to_owned())
        } else if least == most {
            (None, "it is the best here, too".to_owned())
        } else {
            (None, format!("repetitions give {} to {}", shown(least), shown(most)))
        };
        Some(Chosen { jobs: JobKind::Dedicated, name: self.name, value, why })
    }

    /// Times that cannot both be right, of those that are compared: what else the machine did has been measured.
    fn contradiction(&self, measured: &Measured) -> Option<String> {
        self.series.iter().find_map(|what| {
            let times =
                || self.sizes.iter().filter_map(|&bytes| Some((bytes, measured.time(what, bytes as u64)?)));
            times().enumerate().find_map(|(at, (smaller, time))| {
                let (larger, less) = times().skip(at + 1).find(|(_, less)| *less < IMPOSSIBLY * time)?;
                let (time, less) = (time / 1e3, less / 1e3);
                Some(format!("{what} of {smaller} bytes took {time:.2} us and of {larger} only {less:.2}: measure again on a quieter machine"))
            })
        })
    }
}

/// The smallest size from which on `wins` holds for all measured ones.
fn from(sizes: &[usize], wins: impl Fn(u64) -> bool) -> u64 {
    let losing = sizes.iter().rposition(|&bytes| !wins(bytes as u64));
    let first = losing.map_or(0, |at| at + 1);
    sizes.get(first).map_or(NEVER, |&bytes| bytes as u64)
}

/// The time, or for ever where there is none.
fn time(measured: &Measured, what: &str, number: u64) -> f64 {
    measured.time(what, number).unwrap_or(f64::INFINITY)
}

fn read_from(measured: &Measured) -> u64 {
    from(&SIZES, |bytes| time(measured, "read", bytes) < CLEARLY * time(measured, "chunks", bytes))
}

fn halves_from(measured: &Measured) -> u64 {
    let read = read_from(measured);
    from(&SIZES, |bytes| {
        let reading = if bytes >= read { time(measured, "read", bytes) } else { f64::INFINITY };
        time(measured, "halves", bytes) < CLEARLY * time(measured, "chunks", bytes).min(reading)
    })
}

/// Returns the largest size up to which `protocol` is no slower than all others;
/// `None` if it is slower at once, or was not measured.
fn up_to(measured: &Measured, protocol: &str, others: &[&str]) -> Option<u64> {
    let slower = EAGER.iter().position(|&bytes| {
        let time = |what| measured.time(what, bytes as u64);
        let best = others.iter().filter_map(|other| time(other)).min_by(f64::total_cmp);
        time(protocol).zip(best).is_none_or(|(own, best)| own * CLEARLY > best)
    });
    let last = slower.unwrap_or(EAGER.len()).checked_sub(1)?;
    Some(EAGER[last] as u64)
}

/// Polling for as long as a sleep and a wake-up cost never takes more than twice the best possible time. The default is
/// longer, for programs whose ranks compute a little between messages, and is the lower bound.
fn spin(measured: &Measured) -> Option<u64> {
    let times = measured.time("spin", 0).zip(measured.time("spin", 1000));
    let (asleep, awake) = times.filter(|(asleep, awake)| asleep > awake)?;
    Some(((asleep - awake) / 500.0).ceil() as u64).map(|twice| twice.clamp(50, 500))
}

fn oversubscribed(repetitions: &[Measured]) -> [Chosen; 2] {
    let time = |one: &Measured, strategy: usize| time(one, "oversubscribed", strategy as u64);
    let wins =
        |strategy: &usize| repetitions.iter().all(|one| time(one, *strategy) < BY_FAR * time(one, USUAL));
    let sum = |strategy: usize| repetitions.iter().map(|one| time(one, strategy)).sum::<f64>();
    let best = (0..USUAL).filter(wins).min_by(|a, b| sum(*a).total_cmp(&sum(*b)));
    let (spin, yields) = best.map(|best| STRATEGIES[best]).unzip();
    let why =
        if best.is_some() { "by far the fastest on one CPU" } else { "nothing is faster by far on one CPU" };
    let chosen = |name, value| Chosen { jobs: JobKind::Oversubscribed, name, value, why: why.into() };
    [chosen("spin_us", spin), chosen("yields", yields)]
}

#[cfg(test)]
mod tests {
    use super::*;
    use perusal::internals::variables::VariableId;

    const JOB: JobShape = JobShape {
        ranks: 2,
        usable_cpus: 2,
        ring_cells: 256,
        ring_bulk: 256 << 10,
        sender_fences: false,
        heap: 0,
        streams: false,
    };

    fn measured(lines: &[(&str, u64, f64)]) -> Measured {
        let mut all = Measured::default();
        let text: String =
            lines.iter().map(|(what, number, time)| format!("{what} {number} {time}\n")).collect();
        all.add(&text).expect("good lines");
        all
    }

    fn of(chosen: &[Chosen], jobs: JobKind, name: &str) -> Chosen {
        chosen.iter().find(|c| c.jobs == jobs && c.name == name).expect("measured").clone()
    }

    /// What three such repetitions give for a variable of jobs with a CPU for each rank.
    fn value(repetitions: &[Measured], name: &str) -> Option<u64> {
        of(&all(repetitions, &JOB), JobKind::Dedicated, name).value
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
        let all = [copies(|b| 70_000.0 + 0.5 * b, |b| 300_000.0 + 0.1 * b)];
        assert_eq!(value(&all, "copy_read_from"), Some(256 << 10));
        assert_eq!(value(&all, "copy_halves_from"), Some(1 << 20));
    }

    #[test]
    fn an_engine_that_wins_nowhere_or_only_in_between_is_never_chosen() {
        let all = [copies(|b| 0.99 * b, |b| if b < 1e6 { 0.5 * b } else { 2.0 * b })];
        assert_eq!(value(&all, "copy_read_from"), Some(NEVER));
        assert_eq!(value(&all, "copy_halves_from"), Some(NEVER));
    }

    #[test]
    fn a_default_that_is_right_is_not_written() {
        let all = [copies(|b| 0.5 * b, |b| 0.2 * b)];
        assert_eq!((value(&all, "copy_read_from"), value(&all, "copy_halves_from")), (None, None));
    }

    #[test]
    fn repetitions_must_agree_against_the_default_and_the_nearest_to_it_counts() {
        let wins_from = |from: f64| copies(move |b| if b < from { b } else { 0.5 * b }, |b| 2.0 * b);
        let from = |sizes: &[f64]| {
            let repetitions: Vec<Measured> = sizes.iter().copied().map(wins_from).collect();
            of(&all(&repetitions, &JOB), JobKind::Dedicated, "copy_read_from")
        };
        assert_eq!(from(&[65536.0, 131_072.0, 65536.0]).value, Some(65536));
        let unsure = from(&[16384.0, 131_072.0, 65536.0]);
        assert_eq!((unsure.value, unsure.why.as_str()), (None, "repetitions give 16384 to 131072"));
        assert!(table(&[unsure]).contains("copy_read_from      default  repetitions give"));
    }

    #[test]
    fn the_limits_of_eager_messages_and_fragments_are_where_they_begin_to_lose() {
        let time = |bytes: usize, most: usize| if bytes > most { 3.0 } else { 1.0 };
        let protocols = |bytes: usize| {
            let at = bytes as u64;
            [
                ("eager", at, time(bytes, 32 << 10)),
                ("fragments", at, time(bytes, 64 << 10)),
                ("rendezvous", at, 2.0),
            ]
        };
        let lines: Vec<_> = EAGER.iter().flat_map(|&bytes| protocols(bytes)).collect();
        let all = [measured(&lines)];
        assert_eq!(value(&all, "eager_limit"), Some(32 << 10));
        assert_eq!(value(&all, "train_limit"), Some(64 << 10));
    }

    #[test]
    fn what_is_chosen_from_times_that_contradict_one_another_keeps_its_default() {
        let spoiled = |bytes: f64| if bytes == f64::from(128 << 10) { 22_753_000.0 } else { 0.5 * bytes };
        let clean = |bytes: f64| 0.2 * bytes;
        let chosen = |read: fn(f64) -> f64, halves: fn(f64) -> f64| {
            let all = all(&[copies(read, halves), copies(clean, clean)], &JOB);
            ["copy_read_from", "copy_halves_from"].map(|name| of(&all, JobKind::Dedicated, name))
        };
        let wanted = "read of 131072 bytes took 22753.00 us and of 262144 only 131.07";
        for variable in chosen(spoiled, clean) {
            assert!(variable.value.is_none() && variable.why.contains(wanted), "{variable:?}");
        }
        // What does not depend on them is chosen.
        let [read, halves] = chosen(clean, spoiled);
        assert_eq!((read.value, read.why.as_str()), (None, "it is the best here, too"));
        assert!(halves.value.is_none() && halves.why.contains("halves of 131072"), "{halves:?}");
    }

    #[test]
    fn polling_lasts_twice_a_sleep_within_limits() {
        let spin = |asleep: f64| value(&[measured(&[("spin", 0, asleep), ("spin", 1000, 100.0)])], "spin_us");
        assert_eq!(spin(40_100.0), Some(80));
        assert_eq!(spin(3_100.0), None, "less than the default");
        assert_eq!(spin(9e9), Some(500));
        assert_eq!(spin(50.0), None, "sleeping costs nothing: not measured rightly");
    }

    #[test]
    fn what_needs_two_cpus_and_was_not_measured_is_not_chosen() {
        assert!(all(&[Measured::default()], &JOB).iter().all(|one| one.jobs == JobKind::Oversubscribed));
    }

    #[test]
    fn what_is_not_by_far_better_each_time_leaves_the_default_of_oversubscribed_jobs() {
        let times = |best: f64| {
            let lines: Vec<_> = (0..STRATEGIES.len() as u64)
                .map(|n| ("oversubscribed", n, if n == 3 { best } else { 100.0 }))
                .collect();
            measured(&lines)
        };
        let chosen = |bests: &[f64]| {
            let repetitions: Vec<Measured> = bests.iter().copied().map(times).collect();
            let all = all(&repetitions, &JOB);
            ["spin_us", "yields"].map(|name| of(&all, JobKind::Oversubscribed, name).value)
        };
        assert_eq!(chosen(&[50.0, 90.0]), [None, None]);
        assert_eq!(chosen(&[50.0, 60.0]), [Some(0), Some(30)]);
    }

    #[test]
    fn what_others_are_compared_with_is_the_default_of_oversubscribed_jobs() {
        let shape = JobShape { usable_cpus: 1, ..JOB };
        let default = [VariableId::SpinUs, VariableId::Yields].map(|id| (id.variable().default)(&shape));
        assert_eq!(default, [STRATEGIES[USUAL].0, STRATEGIES[USUAL].1]);
    }

    #[test]
    fn a_line_that_makes_no_sense_is_named() {
        assert!(Measured::default().add("chunks many 3").expect_err("no number").contains("many"));
    }
}
