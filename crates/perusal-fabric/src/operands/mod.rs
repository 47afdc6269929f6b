//! What operations are given: tags, buffers, registered memory, and what atomic operations compute.
//!
//! | file | what it has |
//! |---|---|
//! | `key` | the match of tagged messages |
//! | `spans` | a caller's buffers |
//! | `region` | memory that a domain has registered for accesses of peers |
//! | `arithmetic` | what atomic operations compute |

pub mod arithmetic;
pub mod key;
pub mod region;
pub mod spans;
