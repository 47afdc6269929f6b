//! `mpiexec -configfile FILE` (MPI 5.0 §11.5), and `--app FILE` of Open MPI: what would stand on the command line
//! between colons stands in the file, a line each. A line that begins with `#` is a comment; one that ends with `\`
//! goes on in the next. Words are quoted as for a shell.

use super::options::OptionTable;
use std::ffi::OsString;
use std::fs;

/// The option, and what Open MPI calls it.
const OPTIONS: [&str; 2] = ["configfile", "app"];

/// The arguments with what the file says in place of the option, if they have it:
/// options may stand before it, and nothing behind it.
///
/// # Errors
/// A file that cannot be read, has a quotation mark without its partner or says nothing; further arguments.
pub fn expand(arguments: &[OsString], table: &OptionTable) -> Result<Option<Vec<OsString>>, String> {
    let is_option = |text: &str| text.starts_with('-') && OPTIONS.contains(&text.trim_start_matches('-'));
    let Some(at) = arguments.iter().position(|argument| argument.to_str().is_some_and(is_option)) else {
        return Ok(None);
    };
    // Behind a program's name it is an argument of that program.
    let before = &arguments[..at];
    if table.normalise("", before)?.iter().any(|word| word == "--") {
        return Ok(None);
    }
    let option = arguments[at].to_string_lossy();
    let [file] = &arguments[at + 1..] else {
        return Err(format!("{option} needs the name of a file, and nothing behind that"));
    };
    let name = file.to_string_lossy();
    let text = fs::read_to_string(file).map_err(|error| format!("{option} {name}: {error}"))?;
    let words =
        words(&text).map_err(|Unread { line, why }| format!("{option} {name}: line {line}: {why}"))?;
    if words.is_empty() {
        return Err(format!("{option} {name}: no program stands there"));
    }
    Ok(Some(before.iter().cloned().chain(words).collect()))
}

/// A line that cannot be read.
#[derive(Debug, PartialEq, Eq)]
struct Unread {
    /// Its number, from 1.
    line: usize,
    why: &'static str,
}

/// The words of all programs, `:` between them.
fn words(text: &str) -> Result<Vec<OsString>, Unread> {
    let mut all: Vec<OsString> = vec![];
    let mut open = String::new();
    for (line, number) in text.lines().zip(1_usize..) {
        if open.is_empty() && line.trim_start().starts_with('#') {
            continue;
        }
        if let Some(begun) = line.strip_suffix('\\') {
            open.push_str(begun);
            open.push(' ');
            continue;
        }
        open.push_str(line);
        let words = shlex::split(&std::mem::take(&mut open))
            .ok_or(Unread { line: number, why: "a quotation mark is open" })?;
        if !words.is_empty() && !all.is_empty() {
            all.push(":".into());
        }
        all.extend(words.into_iter().map(OsString::from));
    }
    if open.is_empty() {
        Ok(all)
    } else {
        Err(Unread { line: text.lines().count(), why: "nothing follows its \\" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_line_is_a_program() {
        let text = "# two programs\n-n 1 ./a 'b c'\n\n-n 2 \\\n -env A 1 ./d\n";
        let expected = ["-n", "1", "./a", "b c", ":", "-n", "2", "-env", "A", "1", "./d"].map(OsString::from);
        assert_eq!(words(text).unwrap(), expected);
        assert_eq!(words("a\n\"b\n").unwrap_err().line, 2);
        assert_eq!(words("a\nb \\\n").unwrap_err().line, 2, "nothing follows");
        assert_eq!(words("\n# a\n").unwrap(), Vec::<OsString>::new());
    }

    #[test]
    fn only_options_may_stand_before_it() {
        let table = OptionTable::of(
            clap::Command::new("a").arg(clap::Arg::new("n").short('n').num_args(1).required(false)),
        );
        let given = |words: &[&str]| expand(&words.iter().map(OsString::from).collect::<Vec<_>>(), &table);
        assert_eq!(given(&["-n", "1", "a"]).unwrap(), None);
        assert_eq!(given(&["-n", "1", "a", "-configfile", "f"]).unwrap(), None);
        assert!(given(&["-n", "1", "-configfile", "/no/such/file"]).unwrap_err().contains("/no/such/file"));
        assert!(given(&["-configfile", "f", "-n"]).unwrap_err().contains("nothing behind"));
        assert!(given(&["--configfile"]).unwrap_err().contains("the name of a file"));
        assert!(given(&["--app", "/no/such/file"]).unwrap_err().starts_with("--app /no/such/file"));
    }
}
