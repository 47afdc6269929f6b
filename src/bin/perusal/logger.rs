//! The event logger `libperusal-mel.so` for a job: where it lies, and the variables that tell it what to do.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use crate::environment::Change;

/// The logger's file, beside the library in the distribution.
const LIBRARY: &str = "libperusal-mel.so";

/// What is to be logged.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Logging {
    /// Names of event types, as MEL_EVENTS takes them.
    pub events: Option<String>,
    /// Whether to tell the statistics of the queues and of the searches in them.
    pub queues: bool,
    /// Whether to list all event types at the end.
    pub list: bool,
    /// Where lines go: a file, `%r` for the rank; standard error if none.
    pub output: Option<OsString>,
}

impl Logging {
    fn wanted(&self) -> bool {
        self.events.is_some() || self.queues || self.list
    }

    /// The variables that ranks need for it; none if nothing is to be logged.
    ///
    /// # Errors
    /// The logger is not where the distribution has it, or what is asked for makes no sense together.
    pub fn changes(&self) -> Result<Vec<Change>, String> {
        if !self.wanted() {
            return match self.output {
                None => Ok(vec![]),
                Some(_) => {
                    Err("--log-output is for --log-events, --queue-statistics or --list-events".into())
                }
            };
        }
        if self.list && (self.events.is_some() || self.queues) {
            return Err("--list-events lists instead of logging; give it alone".into());
        }
        let set = |name: &str, value: &str| Change::Set(name.into(), value.into());
        let mut changes = vec![
            Change::Set("LD_PRELOAD".into(), before_others(&library()?, std::env::var_os("LD_PRELOAD"))),
            set("MEL_EVENTS", self.events.as_deref().unwrap_or_default()),
            set("MEL_QUEUES", if self.queues { "1" } else { "0" }),
        ];
        if let Some(output) = &self.output {
            changes.push(Change::Set("MEL_OUTPUT".into(), output.clone()));
        }
        Ok(changes)
    }
}

/// The logger stands in front of what is preloaded already.
fn before_others(library: &Path, others: Option<OsString>) -> OsString {
    let mut list = library.as_os_str().to_owned();
    if let Some(others) = others.filter(|others| !others.is_empty()) {
        list.push(":");
        list.push(others);
    }
    list
}

fn library() -> Result<PathBuf, String> {
    let own =
        std::env::current_exe().map_err(|error| format!("where perusal itself lies is unknown: {error}"))?;
    let prefix = own.parent().and_then(Path::parent).unwrap_or(Path::new("/"));
    let library = prefix.join("lib").join(LIBRARY);
    if library.is_file() {
        return Ok(library);
    }
    Err(format!(
        "the event logger is missing: {} is where it belongs (`make dist` builds it)",
        library.display()
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_logs_nothing_changes_nothing() {
        assert_eq!(Logging::default().changes(), Ok(vec![]));
    }

    #[test]
    fn an_output_without_anything_to_put_there_is_refused() {
        let logging = Logging { output: Some("x".into()), ..Logging::default() };
        assert!(logging.changes().unwrap_err().contains("--log-output"));
    }

    #[test]
    fn a_list_and_a_log_exclude_each_other() {
        let logging = Logging { list: true, queues: true, ..Logging::default() };
        assert!(logging.changes().unwrap_err().contains("alone"));
    }

    #[test]
    fn what_is_preloaded_already_stays() {
        let library = Path::new("/a/mel.so");
        assert_eq!(before_others(library, None), "/a/mel.so");
        assert_eq!(before_others(library, Some("".into())), "/a/mel.so");
        assert_eq!(before_others(library, Some("/b.so".into())), "/a/mel.so:/b.so");
    }
}
