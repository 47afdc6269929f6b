//! What the processes of a job are given, and how they are started.
//!
//! | file | what it has |
//! |---|---|
//! | `environment` | the variables of a rank |
//! | `preload` | libraries that ranks preload |
//! | `logger` | the event logger for a job |
//! | `spawn` | starting one process |
//! | `starter` | starting the ranks of a job, at first and later |

pub mod environment;
pub mod logger;
pub mod preload;
pub mod spawn;
pub mod starter;
