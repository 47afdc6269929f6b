//! The objects that libfabric calls.
//!
//! | file | what it has |
//! |---|---|
//! | `object` | what stands behind `struct fid *` |
//! | `opened` | the fabrics and domains of this process that are open |
//! | `info` | fi_getinfo: what the provider offers |
//! | `domain` | fabric and domain |
//! | `av` | address vectors |
//! | `eq` | event queues |
//! | `cq`, `cntr` | completion queues; counters |
//! | `wait`, `poll` | how a call waits; poll sets |
//! | `mr` | memory registration |
//! | `ep` | endpoints: binding, flags and options |
//! | `messages` | messages with and without tags |
//! | `rma` | accesses to registered memory and atomic operations |

pub mod av;
pub mod cntr;
pub mod cq;
pub mod domain;
pub mod ep;
pub mod eq;
pub mod info;
pub mod messages;
pub mod mr;
pub mod object;
pub mod opened;
pub mod poll;
pub mod rma;
pub mod wait;
