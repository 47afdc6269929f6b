//! Traces of jobs whose messages are known, as the reader, the report and other tools see them.

mod calls;
mod cancelled;
mod collectives;
#[path = "../common/mod.rs"]
mod common;
mod events;
mod files;
mod groups;
mod late;
mod partitioned;
mod recorded;
mod report;
mod report_page;
mod windows;
