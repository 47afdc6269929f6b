//! What MPI_T shows and steers: the tables behind it. The functions themselves are in `capi::mpi_t`.
//!
//! | file | what lives there |
//! |---|---|
//! | [`enums`] | names behind values |
//! | [`category`] | the tree that sorts everything |
//!
//! Control variables are rows of [`crate::config::table`], because the engine reads them.

pub mod category;
pub mod enums;

pub use category::Category;
