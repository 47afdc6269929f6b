//! The event logger `libperusal-mel.so` for a job: where it lies, and the variables that tell it what to do.

use std::ffi::{OsStr, OsString};

use super::environment::VariableChange;
use super::preload;

/// The logger's file, next to the library in the distribution.
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

    /// The variable by which ranks preload the logger besides what `set` has them preload;
    /// none if nothing is to be logged.
    ///
    /// # Errors
    /// The logger is not where the distribution has it.
    pub fn preloading(&self, set: &[VariableChange]) -> Result<Option<VariableChange>, String> {
        if !self.wanted() {
            return Ok(None);
        }
        let library = preload::library(LIBRARY, "the event logger")?;
        Ok(Some(preload::change(&library, preload::others(set))))
    }

    /// The variables that say to the logger what to do; none if nothing is to be logged.
    ///
    /// # Errors
    /// What is asked for makes no sense together.
    pub fn changes(&self) -> Result<Vec<VariableChange>, String> {
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
        let set = |name: &str, value: &str| VariableChange::Set(name.into(), value.into());
        let mut changes = vec![
            set("MEL_EVENTS", self.events.as_deref().unwrap_or_default()),
            set("MEL_QUEUES", if self.queues { "1" } else { "0" }),
        ];
        if let Some(output) = &self.output {
            changes.push(VariableChange::Set("MEL_OUTPUT".into(), from_here(output)));
        }
        Ok(changes)
    }
}

/// The file as ranks with another working directory find it.
fn from_here(output: &OsStr) -> OsString {
    match std::path::absolute(output) {
        // What stands for a rank stands there in what the user has named alone.
        Ok(path)
            if path.to_string_lossy().matches("%r").count()
                == output.to_string_lossy().matches("%r").count() =>
        {
            path.into()
        }
        _ => output.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_output_lies_where_the_launcher_is_whatever_directory_the_ranks_have() {
        let logging = Logging { queues: true, output: Some("log.%r".into()), ..Logging::default() };
        let here = std::env::current_dir().expect("a working directory").join("log.%r");
        let set = VariableChange::Set("MEL_OUTPUT".into(), here.into());
        assert!(logging.changes().expect("it is there").contains(&set));
    }

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
}
