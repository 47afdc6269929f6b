//! Command lines that nobody would write, and tune files that are spoiled: a plan or an error in words, and nothing
//! else. `PERUSAL_RANDOM_ROUNDS` makes more of them, `PERUSAL_RANDOM_SEED` repeats a run.

use super::*;
use crate::tune::file::TuneFile;
use perusal::matching::oracle::TestRandom;

/// Values for options, good for some of them.
const VALUES: [&str; 40] = [
    "",
    "0",
    "1",
    "2",
    "-1",
    "4294967295",
    "4294967296",
    "99999999999999999999",
    "1e9",
    "0x10",
    " ",
    "=",
    "=a",
    "a=",
    "A=b=c",
    ",",
    ",,",
    "1,2",
    "1-3",
    "3-1",
    "1:6:0",
    "0:5",
    "1:4294967295",
    ":",
    "core",
    "core:PE=0",
    "core:PE=4294967295",
    "numa:pe=2",
    "none",
    "rank",
    "localhost:2",
    "\u{1b}[2J",
    "\u{202e}",
    "é",
    "/no/such/folder",
    "/dev/null",
    "%r",
    "inf",
    "NaN",
    "warn",
];

/// What spoils a tune file.
const PIECES: [&str; 15] = [
    "[values]",
    "=",
    "\"",
    "\n",
    "[",
    "]",
    "-1",
    "18446744073709551616",
    "\0",
    "é",
    "{}",
    "cpus",
    "'''",
    "#",
    "1.5",
];

fn number(name: &str, otherwise: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(otherwise)
}

fn one_of<'a, T: AsRef<str>>(random: &mut TestRandom, from: &'a [T]) -> &'a str {
    from[random.below(from.len() as u64) as usize].as_ref()
}

/// All options in all spellings.
fn options() -> Vec<String> {
    let mut command = RunOptions::command();
    command.build();
    let mut options = Vec::new();
    for option in command.get_arguments() {
        options.extend(option.get_short().into_iter().map(|name| format!("-{name}")));
        let long = option.get_long().into_iter().chain(option.get_all_aliases().into_iter().flatten());
        options.extend(long.flat_map(|name| [format!("--{name}"), format!("-{name}")]));
    }
    options
}

#[test]
fn any_command_line_gives_a_plan_or_an_error_in_words() {
    let options = options();
    assert!(options.len() > 40, "{options:?}");
    let seed = number("PERUSAL_RANDOM_SEED", 1);
    let mut random = TestRandom::new(seed);
    let mut plans = 0;
    for round in 0..number("PERUSAL_RANDOM_ROUNDS", 3000) {
        let mut line: Vec<OsString> = Vec::new();
        for _ in 0..random.below(8) {
            let word = match random.below(12) {
                0..=4 => one_of(&mut random, &options).to_owned(),
                5 => format!("{}={}", one_of(&mut random, &options), one_of(&mut random, &VALUES)),
                6 => format!("-{}", one_of(&mut random, &VALUES)),
                7 => ":".to_owned(),
                8 => "--".to_owned(),
                9 => "true".to_owned(),
                _ => one_of(&mut random, &VALUES).to_owned(),
            };
            line.push(word.into());
        }
        let plan = std::panic::catch_unwind(|| parse("mpiexec", &line, 6));
        let plan = plan.unwrap_or_else(|_| panic!("seed {seed}, round {round}: {line:?} panics"));
        match plan {
            Ok(plan) => {
                plans += 1;
                let whole = plan.ranks() > 0 && plan.apps.iter().all(|app| !app.command.is_empty());
                assert!(whole, "seed {seed}: {line:?} gives {plan:?}");
            }
            Err(PlanError::Text(text)) => assert!(text.len() > 10, "{line:?}: {text}"),
            Err(PlanError::Clap(error)) => assert!(error.to_string().len() > 10, "{line:?}: {error}"),
        }
    }
    assert!(plans > 0, "some lines are good");
}

#[test]
fn any_tune_file_gives_values_or_what_is_wrong_in_which_line() {
    const SOUND: &str = "[machine]\ncpu = \"a\"\ncpus = 2\n\n[values]\neager_limit = 16384\n\n[values.dedicated]\nspin_us = 5\n";
    let seed = number("PERUSAL_RANDOM_SEED", 1);
    let mut random = TestRandom::new(seed);
    let mut read = 0;
    for _ in 0..number("PERUSAL_RANDOM_ROUNDS", 3000) {
        let mut text = SOUND.to_owned();
        for _ in 0..=random.below(3) {
            let at = random.below(text.len() as u64) as usize;
            let end = (at + random.below(6) as usize).min(text.len());
            if text.is_char_boundary(at) && text.is_char_boundary(end) {
                text.replace_range(at..end, one_of(&mut random, &PIECES));
            }
        }
        match std::panic::catch_unwind(|| TuneFile::parse(&text)) {
            Ok(Ok(file)) => {
                read += 1;
                // What was read is written so that it is read again.
                assert_eq!(TuneFile::parse(&file.text()).as_ref(), Ok(&file), "seed {seed}: {text:?}");
            }
            Ok(Err(why)) => assert!(why.len() > 10, "seed {seed}: {text:?}: {why}"),
            Err(_) => panic!("seed {seed}: {text:?} panics"),
        }
    }
    assert!(read > 0, "some are good");
}
