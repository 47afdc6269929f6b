//! What ranks read and write: standard input, output and error.
//!
//! | file | what it has |
//! |---|---|
//! | `input` | standard input for the ranks that get it |
//! | `output` | what ranks write, passed on a line at a time |
//! | `label` | what stands before each line |
//! | `sinks` | all places where that is written |
//! | `output_files` | those that are files |

pub mod input;
pub mod label;
pub mod output;
pub mod output_files;
pub mod sinks;
