//! Split collective accesses (MPI 5.0 §14.4.5): performed as they begin; their end tells the outcome. Between the two a
//! file refuses other collective accesses, and what changes its view or size.

use super::access::Transfer;
use super::file::File;
use crate::comm::lock;
use crate::error::Result;

/// An access that was begun and not ended (MPI 5.0 §14.4.5).
#[derive(Debug)]
pub(super) struct Split {
    name: &'static str,
    outcome: Transfer,
}

impl File {
    /// Keeps the outcome of a split collective access until it is ended.
    ///
    /// # Errors
    /// [`crate::Error::File`] if another one has not been ended.
    pub fn begin_split(&self, name: &'static str, outcome: Transfer) -> Result<()> {
        let mut split = lock(&self.split);
        if let Some(begun) = &*split {
            return Err(self.unended(begun.name));
        }
        *split = Some(Split { name, outcome });
        Ok(())
    }

    /// Ends the split collective access of that name.
    ///
    /// # Errors
    /// [`crate::Error::File`] if none has been begun, or another one.
    pub fn end_split(&self, name: &'static str) -> Result<Transfer> {
        let mut split = lock(&self.split);
        match split.take() {
            Some(begun) if begun.name == name => Ok(begun.outcome),
            other => {
                let begun = other.as_ref().map_or("none is under way".to_owned(), |other| {
                    format!("the one under way ends with MPI_File_{}_end", other.name)
                });
                *split = other;
                Err(self.impossible(&format!(
                    "no split collective access that MPI_File_{name}_end ends has been begun; {begun}"
                )))
            }
        }
    }

    /// Checks that no split collective access is under way.
    ///
    /// # Errors
    /// [`crate::Error::File`] if one has been begun and not been ended.
    pub fn check_not_split(&self) -> Result<()> {
        lock(&self.split).as_ref().map_or(Ok(()), |begun| Err(self.unended(begun.name)))
    }
}
