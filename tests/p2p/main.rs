//! Whole jobs that pass messages: order among many ranks, and what is left when ranks are killed.

#[path = "../common/mod.rs"]
mod common;

mod fault_runs;
mod faults;
mod lies;
mod order;
