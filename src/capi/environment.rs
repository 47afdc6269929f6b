//! The variables that steer this rank, for PERUSE_Query_environment.

use std::sync::OnceLock;

static IN_FORCE: OnceLock<Vec<(&'static str, String)>> = OnceLock::new();

/// Makes the variables and their values in force known; called once, by initialisation.
pub fn install(in_force: Vec<(&'static str, String)>) {
    let _ = IN_FORCE.set(in_force);
}

/// The variables and their values in force; none before initialisation.
#[must_use]
pub fn in_force() -> Vec<(&'static str, String)> {
    IN_FORCE.get().cloned().unwrap_or_default()
}
