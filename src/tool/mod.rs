//! What MPI_T shows and steers: the tables behind it. The functions themselves are in `capi::mpi_t`.
//!
//! | file | what lives there |
//! |---|---|
//! | [`event`] | events: types, handles, buffers, and how a tool receives them |
//! | [`pvar`] | the performance variables, a row each |
//!
//! Control variables, enumerations and categories lie in [`crate::variables`], because the engine reads them.

#[cfg(not(perusal_loom))]
pub mod event;
/// Its protocols, for their models.
#[cfg(perusal_loom)]
pub mod event {
    pub mod buffer;
    pub mod buffer_chain;
    pub mod callback_table;
}
pub mod pvar;
