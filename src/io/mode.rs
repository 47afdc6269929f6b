//! Access modes of files (MPI 5.0 §14.2.1).

use crate::abi;
use crate::error::{Error, Result};

/// A checked access mode.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mode(i32);

const KNOWN: i32 = abi::MPI_MODE_APPEND
    | abi::MPI_MODE_CREATE
    | abi::MPI_MODE_DELETE_ON_CLOSE
    | abi::MPI_MODE_EXCL
    | abi::MPI_MODE_RDONLY
    | abi::MPI_MODE_RDWR
    | abi::MPI_MODE_SEQUENTIAL
    | abi::MPI_MODE_UNIQUE_OPEN
    | abi::MPI_MODE_WRONLY;

/// The names of the bits of an access mode, also of a wrong one.
#[must_use]
pub fn mode_names(bits: i32) -> String {
    const NAMES: [(i32, &str); 9] = [
        (abi::MPI_MODE_RDONLY, "MPI_MODE_RDONLY"),
        (abi::MPI_MODE_RDWR, "MPI_MODE_RDWR"),
        (abi::MPI_MODE_WRONLY, "MPI_MODE_WRONLY"),
        (abi::MPI_MODE_CREATE, "MPI_MODE_CREATE"),
        (abi::MPI_MODE_EXCL, "MPI_MODE_EXCL"),
        (abi::MPI_MODE_DELETE_ON_CLOSE, "MPI_MODE_DELETE_ON_CLOSE"),
        (abi::MPI_MODE_UNIQUE_OPEN, "MPI_MODE_UNIQUE_OPEN"),
        (abi::MPI_MODE_SEQUENTIAL, "MPI_MODE_SEQUENTIAL"),
        (abi::MPI_MODE_APPEND, "MPI_MODE_APPEND"),
    ];
    let named: Vec<&str> = NAMES.iter().filter(|(bit, _)| bits & bit != 0).map(|(_, name)| *name).collect();
    if named.is_empty() { format!("access mode {bits}") } else { named.join(" | ") }
}

impl Mode {
    /// Checks the bits of an access mode.
    ///
    /// # Errors
    /// [`Error::AccessMode`] if they contradict each other.
    pub fn new(bits: i32) -> Result<Self> {
        let mode = Self(bits);
        let directions = [abi::MPI_MODE_RDONLY, abi::MPI_MODE_RDWR, abi::MPI_MODE_WRONLY];
        let wrong = |what| Err(Error::AccessMode(what));
        if bits & !KNOWN != 0 {
            return wrong("it has bits that are no MPI_MODE_ constant of files");
        }
        if directions.iter().filter(|direction| mode.has(**direction)).count() != 1 {
            return wrong("it must have exactly one of MPI_MODE_RDONLY, MPI_MODE_RDWR and MPI_MODE_WRONLY");
        }
        if mode.has(abi::MPI_MODE_RDONLY) && (mode.has(abi::MPI_MODE_CREATE) || mode.has(abi::MPI_MODE_EXCL))
        {
            return wrong("MPI_MODE_CREATE and MPI_MODE_EXCL do not go with MPI_MODE_RDONLY");
        }
        if mode.has(abi::MPI_MODE_RDWR) && mode.has(abi::MPI_MODE_SEQUENTIAL) {
            return wrong("MPI_MODE_SEQUENTIAL does not go with MPI_MODE_RDWR");
        }
        Ok(mode)
    }

    fn has(self, bit: i32) -> bool {
        self.0 & bit != 0
    }

    /// The bits, as MPI_File_get_amode gives them.
    #[must_use]
    pub fn bits(self) -> i32 {
        self.0
    }

    /// Whether the file may be read.
    #[must_use]
    pub fn reads(self) -> bool {
        !self.has(abi::MPI_MODE_WRONLY)
    }

    /// Whether the file may be written.
    #[must_use]
    pub fn writes(self) -> bool {
        !self.has(abi::MPI_MODE_RDONLY)
    }

    /// MPI_MODE_CREATE.
    #[must_use]
    pub fn creates(self) -> bool {
        self.has(abi::MPI_MODE_CREATE)
    }

    /// MPI_MODE_EXCL.
    #[must_use]
    pub fn is_exclusive(self) -> bool {
        self.has(abi::MPI_MODE_EXCL)
    }

    /// MPI_MODE_APPEND.
    #[must_use]
    pub fn appends(self) -> bool {
        self.has(abi::MPI_MODE_APPEND)
    }

    /// MPI_MODE_DELETE_ON_CLOSE.
    #[must_use]
    pub fn deletes_on_close(self) -> bool {
        self.has(abi::MPI_MODE_DELETE_ON_CLOSE)
    }

    /// MPI_MODE_SEQUENTIAL.
    #[must_use]
    pub fn is_sequential(self) -> bool {
        self.has(abi::MPI_MODE_SEQUENTIAL)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modes_that_contradict_themselves_are_refused() {
        use abi::*;
        for good in [MPI_MODE_RDONLY, MPI_MODE_RDWR | MPI_MODE_CREATE, MPI_MODE_WRONLY | MPI_MODE_SEQUENTIAL]
        {
            assert_eq!(Mode::new(good).unwrap().bits(), good);
        }
        let both = MPI_MODE_RDONLY | MPI_MODE_WRONLY;
        let bad = [0, both, MPI_MODE_RDONLY | MPI_MODE_CREATE, MPI_MODE_RDWR | MPI_MODE_SEQUENTIAL, 1 << 20];
        for bits in bad {
            assert!(matches!(Mode::new(bits), Err(Error::AccessMode(_))), "{bits}");
        }
    }
}
