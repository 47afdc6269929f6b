//! The Rust API, with ranks that are threads.

mod api;
mod faults;
#[cfg(not(miri))]
mod files;
mod windows;

/// Returns how many of `many` rounds a test takes: few where it is interpreted (Miri).
fn rounds(many: usize) -> usize {
    if cfg!(miri) { many.min(4) } else { many }
}
