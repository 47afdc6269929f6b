//! The Rust API, with ranks that are threads.

mod api;
mod faults;
