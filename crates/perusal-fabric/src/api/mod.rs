//! The application binary interface of libfabric, as far as the provider speaks it:
//! structures, constants, function tables.
//!
//! Source: the manual pages of libfabric 1.17 to 2.5. Structures that later versions extend are extended at their ends
//! only, so these declarations serve all of them.
//!
//! What these pages ask of callers is what the functions of the provider rely on:
//!
//! - **Caller rule 1.** A `struct fid` that a function is given comes from the function of the provider that opens
//!   objects of that class (`object::give`), and nobody closes it before the call returns.
//! - **Caller rule 2.** The buffers of an operation, and all pieces of them, are valid for what the operation does with
//!   them until it completes (fi_msg(3), fi_tagged(3), fi_rma(3), fi_atomic(3)).
//! - **Caller rule 3.** Any other pointer leads, until the call returns, to what the page says of that argument: a
//!   structure, an array of as many entries as the call says, a text with its zero, room for what is asked for; or it
//!   is null, where the page allows that.

mod constants;
mod tables;
mod types;

pub use constants::*;
pub use tables::*;
pub use types::*;
