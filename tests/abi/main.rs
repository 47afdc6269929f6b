//! Libraries, headers and pages against the tables of the ABI.

#[path = "../../crates/perusal-abi/codegen/abi.rs"]
#[allow(dead_code)]
mod abi;
#[path = "../../crates/perusal-abi/codegen/bindings.rs"]
mod bindings;
#[path = "../common/mod.rs"]
mod common;
#[path = "../../crates/perusal-abi/codegen/declarations.rs"]
mod declarations;
#[path = "../../crates/perusal-abi/codegen/header.rs"]
mod header;

mod docs;
mod exports;
mod extension_header;
mod hostile;
mod hostile_kinds;
mod mpi_header;
mod peruse_header;
mod signatures;
mod tool_codes;
