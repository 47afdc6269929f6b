//! The constants of the MPI 5.0 standard ABI, generated from `crates/perusal-abi/src/abi/constants.csv`.
//!
//! Handles and addresses are `usize`, everything else is `i32` (`MPI_DISPLACEMENT_CURRENT` is `i64`).
#![allow(missing_docs)]
include!("abi/constants.rs");
