//! The errors of calls on a file that it does not allow: each names the file, and says what to do.

use super::file::File;
use crate::abi;
use crate::error::Error;

impl File {
    /// What is not done with this file.
    #[cold]
    pub(super) fn refused(&self, class: i32, what: impl Into<String>) -> Error {
        self.descriptor.name().refused(class, what)
    }

    /// What is impossible with this file.
    pub(super) fn impossible(&self, why: &str) -> Error {
        self.refused(abi::MPI_ERR_UNSUPPORTED_OPERATION, why)
    }

    /// A change of a file that is only read.
    pub(super) fn read_only(&self) -> Error {
        self.refused(abi::MPI_ERR_READ_ONLY, "it was opened with MPI_MODE_RDONLY")
    }

    /// An access at the shared file pointer.
    pub(super) fn pointer_too_far(&self) -> Error {
        self.refused(abi::MPI_ERR_ARG, "the shared file pointer would go beyond the largest offset, 2^63 - 1")
    }

    /// Members that give different arguments.
    pub(super) fn differ(&self, what: &str) -> Error {
        let what = format!("{what} differ between the ranks; give the same everywhere");
        self.refused(abi::MPI_ERR_NOT_SAME, what)
    }

    /// A call while the split collective access `name` is under way.
    pub(super) fn unended(&self, name: &str) -> Error {
        self.impossible(&format!(
            "a split collective access has been begun and not been ended; call MPI_File_{name}_end first"
        ))
    }
}
