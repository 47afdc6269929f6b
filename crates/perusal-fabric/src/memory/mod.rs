//! The memory of an endpoint, into which its peers write.
//!
//! | file | what it has |
//! |---|---|
//! | `process` | whether a process still has that memory, and whether it has ended |
//! | `words` | the words at the beginning of the memory, and their rules |
//! | `status` | what the endpoint does, for those who look from outside |
//! | `segment` | the memory itself, with a ring for each peer |

pub mod process;
pub mod segment;
pub mod status;
pub mod words;
