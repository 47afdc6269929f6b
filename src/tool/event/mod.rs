//! MPI_T events: types, handles, and the way from an event to a tool's function (MPI 5.0 §15.3.8).
//!
//! | file | what lives there |
//! |---|---|
//! | [`types`] | the event types and their elements, made from `events::table` and the paper's table |
//! | [`source`] | which thread or buffer events come from, and in what order |
//! | [`safety`] | what a function may do where it is called |
//! | [`registration`] | a handle: which events it receives and which functions it calls |
//! | `listener` | what the registry has of a registration |
//! | [`callback_table`] | which function for which level, replaced while events come |
//! | [`instance`] | one event on its way to one function |
//! | [`buffer`] | where events wait, if the handle wants it |
//! | [`buffer_chain`] | the buffers of one handle, whose size may change |
//! | [`delivery`] | all handles, and the passes that deliver what waits |
//! | [`waits`] | the words that say whether a pass has anything to do |
//!
//! The functions of MPI_T are in the C bindings, `mpi_t::event`. `docs/tool-events.md` says what a tool sees.

pub mod buffer;
pub mod buffer_chain;
pub mod callback_table;
pub mod delivery;
pub mod instance;
mod listener;
pub mod registration;
pub mod safety;
pub mod source;
pub mod types;
pub mod waits;
