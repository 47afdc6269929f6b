//! What is known of one control variable.

use super::category::Category;
use super::enumeration::Enumeration;
use super::job_shape::JobShape;
use super::table::{VARIABLES, VariableId};
use crate::abi;
use crate::limits::VARIABLE_TEXT;
use core::ffi::c_int;

/// The values that a variable can have.
#[derive(Debug, Clone, Copy)]
pub enum Domain {
    /// A number from the first to the second, both included.
    Number(fn(&JobShape) -> (u64, u64)),
    /// A power of two from the first to the second, both included.
    PowerOfTwo(u64, u64),
    /// One of several.
    Choice(&'static Enumeration),
    /// A string of at most [`VARIABLE_TEXT`] bytes.
    Text,
}

/// Which ranks must be given a new value when one rank is (MPI 5.0 §15.3.6).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum VariableScope {
    /// It is the same in all jobs of this version.
    Constant,
    /// It cannot be changed: it shows what the launcher did.
    Readonly,
    /// Each rank on its own.
    Local,
    /// All ranks must have the same.
    AllEqual,
}

/// When a rank can change a variable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Settable {
    /// A rank never can: the variable is constant, or it is the launcher that obeys it.
    Never,
    /// Before the job's memory is made: by the launcher's environment,
    /// or before MPI_Init of a program without launcher.
    BeforeJob,
    /// Before MPI_Init.
    BeforeInit,
    /// At any time; a change takes effect at once.
    Always,
    /// At any time when no collective operation of this rank is under way.
    BetweenCollectives,
}

/// For whom a variable or an event type is, and in how much detail: the nine levels of MPI 5.0 §15.3.1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verbosity {
    /// MPI_T_VERBOSITY_USER_BASIC.
    UserBasic,
    /// MPI_T_VERBOSITY_USER_DETAIL.
    UserDetail,
    /// MPI_T_VERBOSITY_USER_ALL.
    UserAll,
    /// MPI_T_VERBOSITY_TUNER_BASIC.
    TunerBasic,
    /// MPI_T_VERBOSITY_TUNER_DETAIL.
    TunerDetail,
    /// MPI_T_VERBOSITY_TUNER_ALL.
    TunerAll,
    /// MPI_T_VERBOSITY_MPIDEV_BASIC.
    MpidevBasic,
    /// MPI_T_VERBOSITY_MPIDEV_DETAIL.
    MpidevDetail,
    /// MPI_T_VERBOSITY_MPIDEV_ALL.
    MpidevAll,
}

impl Verbosity {
    /// Returns the level's constant in MPI_T.
    #[must_use]
    pub fn code(self) -> c_int {
        match self {
            Self::UserBasic => abi::MPI_T_VERBOSITY_USER_BASIC,
            Self::UserDetail => abi::MPI_T_VERBOSITY_USER_DETAIL,
            Self::UserAll => abi::MPI_T_VERBOSITY_USER_ALL,
            Self::TunerBasic => abi::MPI_T_VERBOSITY_TUNER_BASIC,
            Self::TunerDetail => abi::MPI_T_VERBOSITY_TUNER_DETAIL,
            Self::TunerAll => abi::MPI_T_VERBOSITY_TUNER_ALL,
            Self::MpidevBasic => abi::MPI_T_VERBOSITY_MPIDEV_BASIC,
            Self::MpidevDetail => abi::MPI_T_VERBOSITY_MPIDEV_DETAIL,
            Self::MpidevAll => abi::MPI_T_VERBOSITY_MPIDEV_ALL,
        }
    }
}

/// One control variable.
#[derive(Debug)]
pub struct Variable {
    /// Its index in [`VARIABLES`].
    pub id: VariableId,
    /// Its name in MPI_T and in tune files.
    pub name: &'static str,
    /// Its name in the environment.
    pub environment: &'static str,
    /// The values that it can have.
    pub domain: Domain,
    /// Its value if nobody sets it.
    pub default: fn(&JobShape) -> u64,
    /// Which ranks must change it together.
    pub scope: VariableScope,
    /// When a rank can change it.
    pub settable: Settable,
    /// For whom it is.
    pub verbosity: Verbosity,
    /// The branch of the tree that it belongs to.
    pub category: Category,
    /// What it does, with its unit.
    pub what: &'static str,
}

impl Variable {
    /// Returns the variable of that name, if there is one.
    #[must_use]
    pub fn named(name: &str) -> Option<&'static Variable> {
        VARIABLES.iter().find(|variable| variable.name == name)
    }

    /// Returns its enumeration, if it is a choice.
    #[must_use]
    pub fn enumeration(&self) -> Option<&'static Enumeration> {
        match self.domain {
            Domain::Choice(enumeration) => Some(enumeration),
            _ => None,
        }
    }

    /// Returns whether it can have this value in such a job.
    #[must_use]
    pub fn allows(&self, value: u64, shape: &JobShape) -> bool {
        match self.domain {
            Domain::Number(range) => {
                let (min, max) = range(shape);
                (min..=max).contains(&value)
            }
            Domain::PowerOfTwo(min, max) => value.is_power_of_two() && (min..=max).contains(&value),
            Domain::Choice(of) => i32::try_from(value).is_ok_and(|value| of.name_of(value).is_some()),
            Domain::Text => false,
        }
    }

    /// Returns the end of a sentence that begins with "it must be".
    #[must_use]
    pub fn range(&self, shape: &JobShape) -> String {
        match self.domain {
            Domain::Number(range) => {
                let (min, max) = range(shape);
                format!("a number in {min}..={max}")
            }
            Domain::PowerOfTwo(min, max) => format!("a power of two in {min}..={max}"),
            Domain::Choice(of) => of.names(),
            Domain::Text => format!("at most {} bytes", VARIABLE_TEXT - 1),
        }
    }

    /// Returns a value as people write it.
    #[must_use]
    pub fn show(&self, value: u64) -> String {
        let name = self.enumeration().and_then(|of| of.name_of(i32::try_from(value).ok()?));
        name.map_or_else(|| value.to_string(), str::to_owned)
    }

    /// Returns its description in MPI_T: what it does, and when and by whom it can be changed.
    #[must_use]
    pub fn description(&self) -> String {
        let when = match self.settable {
            Settable::Never if self.scope == VariableScope::Constant => "it cannot be changed",
            Settable::Never => "it shows what the launcher was given and cannot be changed",
            Settable::BeforeJob => {
                "to be set in the launcher's environment, or before MPI_Init in a program without launcher"
            }
            Settable::BeforeInit => "to be set before MPI_Init",
            Settable::Always => "may be set at any time and takes effect at once",
            Settable::BetweenCollectives => "may be set while no collective operation is under way",
        };
        let who = if self.scope == VariableScope::AllEqual { ", to the same value in all ranks" } else { "" };
        format!("{}; {when}{who}. Environment: {}", self.what, self.environment)
    }
}
