//! What measures, measures what it says.

#[path = "../common/mod.rs"]
mod common;

mod command;
mod peers;
mod rma_threads;
