//! Control variables that options set for the ranks: those by which the launcher makes the job, which the ranks alone
//! could not obey any more, and those that make the ranks check their calls.

use super::planning::variable;
use super::{PlanError, RunOptions};
use crate::start::environment::VariableChange;
use perusal::internals::variables::{Settable, VARIABLES, VariableId, VariableScope};
use std::ffi::{OsStr, OsString};

/// A command line that has been read, before there is a plan.
pub struct CommandLine(pub(super) Vec<RunOptions>);

impl CommandLine {
    /// The variables of the job that `-x`, `-env` and `-genv` set, with their values. The launcher, which takes them
    /// out of its own environment, must have them there before it plans.
    ///
    /// # Errors
    /// Names one that two programs of the job set differently.
    pub fn job_variables(&self) -> Result<Vec<(&'static str, OsString)>, PlanError> {
        let mut found: Vec<(&'static str, OsString)> = vec![];
        for block in &self.0 {
            let of = |option: &'static str, all: &[OsString]| {
                all.iter().map(|text| variable(option, text)).collect::<Result<Vec<_>, _>>()
            };
            for change in [of("-genv", &block.genv)?, of("-x", &block.x)?, of("-env", &block.env)?].concat() {
                let VariableChange::Set(name, value) = change else { continue };
                let Some(name) = of_the_job(&name) else { continue };
                match found.iter().find(|(known, _)| *known == name) {
                    Some((_, other)) if *other != value => {
                        return Err(PlanError::Text(format!(
                            "{name} is set to {} and to {}: it holds for all ranks of a job",
                            other.to_string_lossy(),
                            value.to_string_lossy()
                        )));
                    }
                    Some(_) => {}
                    None => found.push((name, value)),
                }
            }
        }
        Ok(found)
    }

    /// The names of all variables that the options set or pass on.
    pub fn names(&self) -> impl Iterator<Item = String> {
        let all = self.0.iter().flat_map(|block| [&block.genv, &block.x, &block.env]).flatten();
        all.filter_map(|text| match VariableChange::of(text) {
            VariableChange::Set(name, _) | VariableChange::Pass(name) => name.into_string().ok(),
        })
    }
}

/// The control variable of this name in the environment, if the launcher obeys it and not each rank by itself.
fn of_the_job(name: &OsStr) -> Option<&'static str> {
    let found = VARIABLES.iter().find(|variable| variable.environment == name)?;
    let is_launchers = match found.settable {
        Settable::BeforeJob => true,
        Settable::Never => found.scope != VariableScope::Constant,
        Settable::BeforeInit | Settable::Always | Settable::BetweenCollectives => false,
    };
    is_launchers.then_some(found.environment)
}

/// The variables that make the ranks check their calls, if one of the options asks for it.
pub(super) fn checking(blocks: &[RunOptions]) -> Vec<VariableChange> {
    let set =
        |id: VariableId, value: &str| VariableChange::Set(id.variable().environment.into(), value.into());
    match blocks.iter().filter_map(|block| block.check.as_deref()).max() {
        None => vec![],
        // A send that keeps nothing waits for its receive.
        Some("strict") => vec![
            set(VariableId::Check, "strict"),
            set(VariableId::EagerLimit, "0"),
            set(VariableId::TrainLimit, "0"),
        ],
        Some(how) => vec![set(VariableId::Check, how)],
    }
}
