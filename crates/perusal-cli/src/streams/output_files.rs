//! Files for what ranks write: `--output-filename` and `--output`, as Open MPI has them, and `-outfile-pattern` and
//! `-errfile-pattern`, as MPICH does.

use std::ffi::{OsStr, OsString};
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// Which file a stream of a rank goes to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FileName {
    /// This name with the rank behind it, as `name.07`: its number has as many digits as that of the last rank.
    Ranked(PathBuf),
    /// In this directory: `1/rank.07/stdout` and `stderr`.
    InDirectory(PathBuf),
    /// This name, in which `%r` stands for the rank, `%h` for the machine, and `%g` and `%p`,
    /// of which there is one each, for 0.
    Pattern(PathBuf),
}

impl FileName {
    /// Whether it is one of MPICH's launcher's.
    #[must_use]
    pub fn is_pattern(&self) -> bool {
        matches!(self, Self::Pattern(_))
    }
}

/// Where output goes besides, or instead of, the launcher's own.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OutputFiles {
    /// The files of standard output and of standard error.
    pub names: [Option<FileName>; 2],
    /// Whether what goes to a file goes to no other place.
    pub alone: bool,
    /// Whether standard error goes where standard output goes.
    pub merged: bool,
}

impl OutputFiles {
    /// Takes the value of `--output-filename`: a name, and perhaps `:nocopy`.
    ///
    /// # Errors
    /// Says what cannot be a name.
    pub fn set_ranked(&mut self, text: &OsStr) -> Result<(), String> {
        self.set_both("--output-filename", text, FileName::Ranked)
    }

    /// Takes the file or directory `text`, which `option` names, for both streams.
    fn set_both(
        &mut self,
        option: &str,
        text: &OsStr,
        name: impl Fn(PathBuf) -> FileName,
    ) -> Result<(), String> {
        let (path, alone) = without_qualifier(text);
        let path = absolute(option, path)?;
        self.names = [Some(name(path.clone())), Some(name(path))];
        self.alone = alone;
        Ok(())
    }

    /// Takes one of the words of `--output`, if it says where output goes. Returns false for one that does not.
    ///
    /// # Errors
    /// As for [`Self::set_ranked`].
    pub fn set_word(&mut self, word: &str) -> Result<bool, String> {
        match word.split_once('=') {
            None if matches!(word, "merge" | "merge-stderr-to-stdout") => self.merged = true,
            Some(("file" | "filename", file)) => {
                self.set_both("--output file", OsStr::new(file), FileName::Ranked)?;
            }
            Some(("dir" | "directory", dir)) => {
                self.set_both("--output dir", OsStr::new(dir), FileName::InDirectory)?;
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// Takes the value of `-outfile-pattern` (stream 0) or `-errfile-pattern` (stream 1).
    ///
    /// # Errors
    /// As for [`Self::set_ranked`].
    pub fn set_pattern(&mut self, stream: usize, text: &OsStr) -> Result<(), String> {
        let option = if stream == 0 { "-outfile-pattern" } else { "-errfile-pattern" };
        self.names[stream] = Some(FileName::Pattern(absolute(option, text)?));
        self.alone = true;
        Ok(())
    }

    /// How many files a rank needs.
    #[must_use]
    pub fn each(&self) -> u64 {
        self.names.iter().flatten().count() as u64
    }

    /// The file of a stream (0 or 1) of `rank`, in a job of `ranks`.
    #[must_use]
    pub fn name_of(&self, stream: usize, rank: u32, ranks: u32) -> Option<PathBuf> {
        let width = ranks.saturating_sub(1).to_string().len();
        let number = format!("{rank:0width$}");
        Some(match self.names[stream].as_ref()? {
            FileName::Ranked(path) => {
                let mut name = path.clone().into_os_string();
                name.push(".");
                name.push(number);
                name.into()
            }
            FileName::InDirectory(path) => {
                path.join("1").join(format!("rank.{number}")).join(["stdout", "stderr"][stream])
            }
            FileName::Pattern(path) => filled(path, rank),
        })
    }
}

/// The name without `:nocopy`, and whether that stood behind it.
fn without_qualifier(text: &OsStr) -> (&OsStr, bool) {
    const QUALIFIER: &[u8] = b":nocopy";
    let bytes = text.as_bytes();
    match bytes.len().checked_sub(QUALIFIER.len()).map(|at| bytes.split_at(at)) {
        Some((name, end)) if end.eq_ignore_ascii_case(QUALIFIER) => (OsStr::from_bytes(name), true),
        _ => (text, false),
    }
}

fn absolute(option: &str, path: &OsStr) -> Result<PathBuf, String> {
    let name = path.to_string_lossy();
    std::path::absolute(path).map_err(|error| format!("{option} {name}: {error}"))
}

/// The name of a pattern for one rank. What stands for nothing stays.
fn filled(pattern: &Path, rank: u32) -> PathBuf {
    let mut name = vec![];
    let mut rest = pattern.as_os_str().as_bytes();
    while let [first, after @ ..] = rest {
        let value = match (first, after.first()) {
            (b'%', Some(b'r')) => rank.to_string(),
            (b'%', Some(b'g' | b'p')) => "0".to_owned(),
            (b'%', Some(b'h')) => host(),
            _ => {
                name.push(*first);
                rest = after;
                continue;
            }
        };
        name.extend_from_slice(value.as_bytes());
        rest = &after[1..];
    }
    OsString::from_vec(name).into()
}

/// The name of this machine.
#[must_use]
pub fn host() -> String {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    name.trim().to_owned()
}

/// Makes the file, or empties the one that is there, and makes the directories that it lies in.
///
/// # Errors
/// Those of the system: also where nobody reads a pipe.
pub fn open(path: &Path) -> io::Result<File> {
    if let Some(parent) = path.parent() {
        std::fs::create_dir_all(parent)?;
    }
    OpenOptions::new().write(true).create(true).truncate(true).custom_flags(libc::O_NONBLOCK).open(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn files(set: impl FnOnce(&mut OutputFiles) -> Result<(), String>) -> OutputFiles {
        let mut files = OutputFiles::default();
        set(&mut files).unwrap();
        files
    }

    #[test]
    fn a_rank_s_number_has_the_digits_of_the_last_one() {
        let files = files(|files| files.set_ranked("/t/out:NOCOPY".as_ref()));
        assert!(files.alone);
        assert_eq!(files.name_of(0, 3, 4), Some("/t/out.3".into()));
        assert_eq!(files.name_of(1, 3, 11), Some("/t/out.03".into()));
        assert_eq!(files.name_of(1, 12, 11), Some("/t/out.12".into()), "one that was spawned");
        assert_eq!(files.each(), 2);
    }

    #[test]
    fn a_directory_has_one_for_each_rank() {
        let files = files(|files| files.set_word("dir=/t").map(|taken| assert!(taken)));
        assert!(!files.alone);
        assert_eq!(files.name_of(1, 0, 2), Some("/t/1/rank.0/stderr".into()));
    }

    #[test]
    fn a_pattern_has_the_rank_where_it_says_so() {
        let files = files(|files| files.set_pattern(0, "/t/o-%r%%r-%x.%g%p%".as_ref()));
        assert!(files.alone);
        assert_eq!(files.name_of(0, 7, 8), Some("/t/o-7%7-%x.00%".into()));
        assert_eq!(files.name_of(1, 7, 8), None);
    }

    #[test]
    fn names_are_seen_from_where_the_launcher_is() {
        let files = files(|files| files.set_ranked("a:b".as_ref()));
        let here = std::env::current_dir().unwrap();
        assert_eq!(files.name_of(0, 0, 1), Some(here.join("a:b.0")));
    }
}
