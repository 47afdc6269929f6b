//! For the tests of this module.

use std::path::{Path, PathBuf};

/// A path of its own for one test; what is there goes with it.
pub struct ScratchFile(PathBuf);

impl ScratchFile {
    pub fn new(name: &str) -> ScratchFile {
        ScratchFile(std::env::temp_dir().join(format!("perusal-trace-{}-{name}", std::process::id())))
    }

    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for ScratchFile {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}
