//! What MPI_T shows and steers: the tables behind it. The functions themselves are in `capi::mpi_t`.
//!
//! | file | what lives there |
//! |---|---|
//! | [`enums`] | names behind values |
//! | [`event`] | events: types, handles, buffers, and how a tool is told |
//! | [`category`] | the tree that sorts everything |
//! | [`pvar`] | the performance variables, a row each |
//!
//! Control variables are rows of [`crate::config::table`], because the engine reads them.

pub mod category;
pub mod enums;
#[cfg(not(perusal_loom))]
pub mod event;
/// Its protocols, for their models.
#[cfg(perusal_loom)]
pub mod event {
    pub mod buffer;
    pub mod choice;
    pub mod segments;
}
pub mod pvar;

pub use category::Category;
