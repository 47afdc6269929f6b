//! The tables behind MPI_T: event types, handles, performance variables.
//! The C functions are in `mpi_t` of the crate `perusal-abi`.
//!
//! | file | what lives there |
//! |---|---|
//! | [`event`] | events: types, handles, buffers, and how a tool receives them |
//! | [`pvar`] | the performance variables, a row each |
//! | [`states`] | the names of the states that they have |
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
    pub mod waits;
}
pub mod pvar;
pub mod states;
