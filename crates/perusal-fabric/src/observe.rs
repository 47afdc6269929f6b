//! What the endpoints of this machine do, seen from outside: `perusal fabric --show`.
//!
//! An endpoint writes into its memory what it does, ten times a second while it polls, and when it has polled in vain
//! for long. Whoever looks maps that memory for reading only, so that nothing is changed by looking.

use crate::memory::segment::{Segment, is_memory};
pub use crate::memory::status::{KeptMessage, NAMED, OpenSend, PostedReceive, Status};
pub use crate::progress::saying::now;
use std::collections::HashSet;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

/// What all endpoints say whose memory this process may look at, by process: those of the same user; for root, of all.
pub fn endpoints() -> Vec<Status> {
    let mut seen = HashSet::new();
    let mut all: Vec<Status> = descriptors().filter_map(|path| look(path, &mut seen)).collect();
    all.sort_by_key(|one| (one.process, one.descriptor));
    all
}

/// The descriptors of all processes, as far as they can be listed.
fn descriptors() -> impl Iterator<Item = PathBuf> {
    let entries =
        |path: PathBuf| fs::read_dir(path).into_iter().flatten().flatten().map(|entry| entry.path());
    let is_process = |path: &PathBuf| {
        path.file_name().is_some_and(|name| name.as_encoded_bytes().iter().all(u8::is_ascii_digit))
    };
    entries("/proc".into()).filter(is_process).flat_map(move |process| entries(process.join("fd")))
}

/// What the endpoint says whose memory this is. A peer of it has the same memory open, too.
fn look(path: PathBuf, seen: &mut HashSet<(u64, u64)>) -> Option<Status> {
    let link = fs::read_link(&path).ok()?;
    let file = if is_memory(&link) { fs::metadata(&path).ok()? } else { return None };
    if !seen.insert((file.dev(), file.ino())) {
        return None;
    }
    let status = Segment::look(&path)?.status().read();
    // One whose process has ended is there as long as a peer has its memory.
    let is_owners = || {
        let own = format!("/proc/{}/fd/{}", status.process, status.descriptor);
        fs::metadata(own).is_ok_and(|own| (own.dev(), own.ino()) == (file.dev(), file.ino()))
    };
    is_owners().then_some(status)
}
