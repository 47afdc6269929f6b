//! MPI_T events: types, handles, and the way from an event to a tool's function (MPI 5.0 §15.3.8).
//!
//! | file | what lives there |
//! |---|---|
//! | [`types`] | the event types and their elements, made from `events::catalog` and the paper's table |
//! | [`source`] | who raises events, and in what order |
//! | [`safety`] | what a function must keep to where it is called |
//! | [`registration`] | a handle: what it accepts and whom it tells |
//! | [`callback_table`] | which function for which level, changed beneath the events |
//! | [`instance`] | one event on its way to one function |
//! | [`buffer`] | where events wait, if the handle wants it |
//! | [`buffer_chain`] | the buffers of one handle, whose size may change |
//! | [`delivery`] | all handles, and the passes in which they are told what waits |
//!
//! The functions of MPI_T are in `capi::mpi_t::event`. `docs/tool-events.md` says what a tool sees.

pub mod buffer;
pub mod buffer_chain;
pub mod callback_table;
pub mod delivery;
pub mod instance;
pub mod registration;
pub mod safety;
pub mod source;
pub mod types;
