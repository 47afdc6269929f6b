//! What steers this rank: what environment and tools ask for before there is an engine,
//! and what was in force when it was made.

use super::process;
use crate::error::Result;
use crate::shm::{self, FD_VARIABLE};
use crate::variables::{
    Config, Domain, OverrideValue, Overrides, Refusal, Settable, VARIABLES, ValueSource, VariableId, table,
};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

static IN_FORCE: OnceLock<Vec<(&'static str, String)>> = OnceLock::new();

/// Makes the variables and the values with which the engine begins known; called once, by initialisation.
pub fn install(in_force: Vec<(&'static str, String)>) {
    let _ = IN_FORCE.set(in_force);
}

/// The variables and the values with which the engine began, for PERUSE_Query_environment, whose list stays as it is;
/// none before initialisation. What tools have changed since is in [`with_config`].
#[must_use]
pub fn in_force() -> Vec<(&'static str, String)> {
    IN_FORCE.get().cloned().unwrap_or_default()
}

/// What tools have asked for while there was no engine.
struct Asked {
    numbers: [Option<u64>; table::COUNT],
    /// Initialisation has taken them and is at work: what comes now comes too late for it and too early for the engine.
    taken: bool,
}

static ASKED: Mutex<Asked> = Mutex::new(Asked { numbers: [None; table::COUNT], taken: false });

fn asked() -> MutexGuard<'static, Asked> {
    ASKED.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Asked {
    fn add_to(&self, mut settings: Overrides) -> Overrides {
        for (variable, number) in VARIABLES.iter().zip(self.numbers) {
            if let Some(number) = number {
                settings.set(variable.id, OverrideValue::Number(number), ValueSource::Tool);
            }
        }
        settings
    }
}

/// Takes the settings for the engine that is about to be made. [`give_back`] must follow if it was not.
///
/// # Errors
/// [`crate::Error::Other`] when a variable in the environment makes no sense.
pub fn take() -> Result<Overrides> {
    let mut asked = asked();
    let settings = asked.add_to(Overrides::from_environment()?);
    asked.taken = true;
    Ok(settings)
}

/// The engine was not made after all.
pub fn give_back() {
    asked().taken = false;
}

/// What would be in force if MPI were initialised now; what makes no sense is left out.
fn expected() -> Option<Config> {
    let settings = asked().add_to(Overrides::from_environment().unwrap_or_default());
    let place = shm::expected_shape(&settings);
    Config::new(&settings, place).or_else(|_| Config::new(&Overrides::default(), place)).ok()
}

/// Runs `read` on the values in force, or on those that would be if MPI were initialised now.
pub fn with_config<R>(read: impl FnOnce(&Config) -> R) -> Option<R> {
    match process::running() {
        Some(engine) => Some(read(engine.config())),
        None => expected().map(|config| read(&config)),
    }
}

/// Gives a variable another value, now or for the engine to come.
///
/// # Errors
/// [`Refusal`], and nothing has changed.
pub fn change(id: VariableId, number: u64) -> core::result::Result<(), Refusal> {
    let mut asked = asked();
    if let Some(engine) = process::running() {
        return engine.config().change(id, number, engine.progress().has_background());
    }
    let variable = id.variable();
    match variable.settable {
        Settable::Never => return Err(Refusal::Never),
        // The launcher has made the job's memory.
        Settable::BeforeJob if std::env::var_os(FD_VARIABLE).is_some() => return Err(Refusal::Never),
        _ if asked.taken => return Err(Refusal::NotNow),
        _ => {}
    }
    let mut settings = asked.add_to(Overrides::from_environment().unwrap_or_default());
    settings.set(id, OverrideValue::Number(number), ValueSource::Tool);
    let place = shm::expected_shape(&settings);
    if matches!(variable.domain, Domain::Text) || !variable.allows(number, &place) {
        return Err(Refusal::Value);
    }
    asked.numbers[id as usize] = Some(number);
    Ok(())
}
