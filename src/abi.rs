//! The constants of the MPI 5.0 standard ABI, generated from `src/capi/abi/constants.csv` at build time.
//!
//! Handles and addresses are `usize`, everything else is `i32` (`MPI_DISPLACEMENT_CURRENT` is `i64`).
#![allow(missing_docs)]
include!(concat!(env!("OUT_DIR"), "/constants.rs"));
