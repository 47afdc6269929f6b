//! The one caller of consumers; deferred sends; how to wait.
//!
//! Whoever has the engine's `incoming` lock drives progress: it looks at the rings it watches, the one that spoke last
//! first, then at its bell, then at what waits for room. Everybody else who waits meets in the `Crowd`.

mod background;
mod crowd;
mod flag;
mod incoming;
mod pace;
mod parting;
mod wait;
mod yielding;

pub use background::Background;
pub(crate) use background::Backgrounds;
pub use crowd::Crowd;
pub(crate) use incoming::{From, Incoming};
pub(crate) use parting::Parting;
pub(crate) use yielding::{Yielding, sharers};
