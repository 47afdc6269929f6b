//! The exported functions, generated from the tables in `abi` by `codegen/bindings.rs`;
//! `OUT_DIR/bindings.rs` has the text.
#![allow(
    non_snake_case,
    unused_variables,
    unused_unsafe,
    clippy::too_many_arguments,
    clippy::missing_safety_doc,
    clippy::redundant_closure
)]

use super::arguments::Call;
use super::boundary::ErrorSource;
use super::calls::Function;
use super::collective::{self, arguments, fast, fast_pieces};
use super::mpi::file_access::Split;
use super::mpi::*;
use super::mpi_t::{self, category, cvar, enums, event, pvar};
use super::{datatypes, types};
use crate::abi;
use crate::comm::attributes::KeyvalKind;
use crate::error::Result;
use crate::info::Info;
use crate::p2p::Mode;

include!(concat!(env!("OUT_DIR"), "/bindings.rs"));
