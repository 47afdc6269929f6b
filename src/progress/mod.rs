//! The one caller of consumers; deferred sends; how to wait.
//!
//! Whoever has the engine's `incoming` lock drives progress: it looks at the rings it watches, the one that spoke last
//! first, then at its bell, then at what waits for room. Everybody else who waits meets in the [`Crowd`].

mod crowd;
mod incoming;
mod pace;
mod wait;

pub(crate) use crowd::Crowd;
pub(crate) use incoming::Incoming;
