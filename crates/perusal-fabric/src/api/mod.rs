//! The application binary interface of libfabric, as far as the provider speaks it: structures, constants, function tables.
//!
//! Source: the manual pages of libfabric 1.17 to 2.5. Structures that later versions extend are extended at their ends only, so these
//! declarations serve all of them.

mod constants;
mod tables;
mod types;

pub use constants::*;
pub use tables::*;
pub use types::*;
