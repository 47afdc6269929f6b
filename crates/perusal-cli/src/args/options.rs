//! Turns options as people write them for `mpiexec` into the form that clap reads.

use std::collections::HashMap;
use std::ffi::{OsStr, OsString};

/// All options by name, with the number of values that follow each.
#[derive(Debug)]
pub struct OptionTable {
    long: HashMap<String, usize>,
    short: HashMap<char, usize>,
}

impl OptionTable {
    /// The options of `command`.
    pub fn of(mut command: clap::Command) -> Self {
        let mut table = Self { long: HashMap::new(), short: HashMap::new() };
        command.build();
        for arg in command.get_arguments().filter(|arg| !arg.is_positional()) {
            let values = arg.get_num_args().map_or(0, |range| range.min_values());
            let longs = arg.get_long().into_iter().chain(arg.get_all_aliases().into_iter().flatten());
            table.long.extend(longs.map(|name| (name.to_owned(), values)));
            let shorts = arg.get_short().into_iter().chain(arg.get_all_short_aliases().into_iter().flatten());
            table.short.extend(shorts.map(|name| (name, values)));
        }
        table
    }

    /// Brings one program's arguments into a form that clap reads: two dashes before long names, `VAR VALUE` as one,
    /// and `--` before the program.
    ///
    /// # Errors
    /// An option that is unknown or lacks a value, in words.
    pub fn normalise(&self, name: &str, arguments: &[OsString]) -> Result<Vec<OsString>, String> {
        let mut normal = vec![OsString::from(name)];
        let mut rest = arguments;
        while let [argument, after @ ..] = rest {
            let Some(text) = argument.to_str().filter(|text| text.starts_with('-')) else { break };
            rest = after;
            if text == "--" {
                break;
            }
            let taken = self.option(text, rest, &mut normal)?;
            rest = &rest[taken..];
        }
        if !rest.is_empty() {
            normal.push("--".into());
            normal.extend(rest.iter().cloned());
        }
        Ok(normal)
    }

    /// Appends one option with its values; how many of the following arguments those were.
    fn option(&self, text: &str, after: &[OsString], normal: &mut Vec<OsString>) -> Result<usize, String> {
        let bare = text.trim_start_matches('-');
        let (name, attached) = match bare.split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None => (bare, None),
        };
        let short = name.chars().next().filter(|_| !text.starts_with("--"));
        let values = if let Some(values) = self.long.get(name).filter(|_| name.len() > 1 || short.is_none()) {
            normal.push(format!("--{bare}").into());
            *values
        } else if let Some(values) = short.and_then(|short| self.short.get(&short)) {
            // "-n4" and "-xVAR=1" carry their value; nobody types other letters together.
            let alone = bare.len() == 1;
            let carries =
                name == "x" || bare.starts_with('x') || bare[1..].bytes().all(|byte| byte.is_ascii_digit());
            if !(alone || *values == 1 && carries) {
                return Err(unknown(text));
            }
            normal.push(text.into());
            if alone { *values } else { 0 }
        } else {
            return Err(unknown(text));
        };
        if attached.is_some() || values == 0 {
            return Ok(0);
        }
        if after.len() < values {
            return Err(format!("{text} needs {values} more argument{}", if values == 1 { "" } else { "s" }));
        }
        // "-env VAR VALUE" and "-env VAR=VALUE" are both in use.
        if matches!(name, "env" | "genv") && !contains_equals(&after[0]) {
            let [variable, value, ..] = after else {
                return Err(format!("{text} needs a variable and its value"));
            };
            let mut both = variable.clone();
            both.push("=");
            both.push(value);
            normal.push(both);
            return Ok(2);
        }
        normal.extend(after[..values].iter().cloned());
        Ok(values)
    }
}

fn contains_equals(argument: &OsStr) -> bool {
    argument.as_encoded_bytes().contains(&b'=')
}

fn unknown(text: &str) -> String {
    format!("unknown option {text}; see perusal run --help")
}
