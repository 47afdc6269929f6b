//! The protocol: what an endpoint sends, what arrives, and where the ends of operations are reported.
//!
//! | file | what it has |
//! |---|---|
//! | `wire` | the records in the rings |
//! | `queue` | completion queues and counters |
//! | `slab` | values with numbers: the operations under way |
//! | `operation` | operations under way, and where their ends are reported |
//! | `core` | the state of an endpoint: sends, and records that arrive |
//! | `receive` | receives: which one a message belongs to |
//! | `share` | long messages that sender and receiver copy together |
//! | `direct` | long messages between nodes |
//! | `trace` | what a trace has of all that |
//! | `access` | accesses to registered memory, and atomic operations |

pub mod access;
pub mod core;
pub mod direct;
pub mod operation;
pub mod queue;
pub mod receive;
pub mod share;
pub mod slab;
pub mod trace;
pub mod wire;
