//! Event tools as users build and run them, and the pages that list what tools see.

#[path = "../common/mod.rs"]
mod common;

mod logger;
mod peruse_examples;
#[cfg(feature = "peruse")]
mod tool_docs;
mod tool_examples;
