//! Control variables: what steers the engine.
//!
//! | file | what it defines |
//! |---|---|
//! | [`table`] | the variables, a row each |
//! | [`variable`] | what is known of one variable: domain, scope, when it can be changed |
//! | [`job_shape`] | the facts about a job that defaults and ranges follow from |
//! | [`overrides`] | what tune file, environment and tools ask for before there is an engine |
//! | [`misspelt`] | names in the environment that are nearly those of variables |
//! | [`config`] | the values in force in one engine |
//! | [`enumeration`] | names behind values |
//! | [`algorithms`], [`copy_engines`] | the algorithms and copy engines among which users can choose, a row each |
//! | [`category`] | the tree that sorts variables and event types |
//!
//! An engine has one [`Config`]. Its values are atomics that any thread may change at any time. Code that obeys a
//! variable reads it each time, and must be right with the old value and with the new one.

pub mod algorithms;
pub mod category;
pub mod config;
pub mod copy_engines;
pub mod enumeration;
pub mod job_shape;
pub mod misspelt;
pub mod overrides;
pub mod table;
pub mod variable;

pub use category::Category;
pub use config::{Config, Refusal};
pub use copy_engines::CopyChoice;
pub use enumeration::{Enumeration, EnumerationItem};
pub use job_shape::JobShape;
pub use overrides::{OverrideValue, Overrides, ValueSource};
pub use table::{VARIABLES, VariableId};
pub use variable::{Domain, Settable, Variable, VariableScope, Verbosity};
