//! The launcher: jobs, faults, terminals, tuning, the shared heap, control variables.

#[path = "../common/mod.rs"]
mod common;

mod attach;
mod checks;
mod deadlocks;
mod endpoints;
mod faults;
mod jobs;
mod meeting;
mod mistakes;
mod output_files;
mod resource_limits;
mod share_heap;
mod spawned;
mod terminal;
mod tune;
mod variables_docs;
