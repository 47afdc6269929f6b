//! What happens to an error: the predefined answers and the user's (MPI 5.0 §9.3).

use crate::abi;
use crate::error::{Error, Result};
use crate::sync::{Arc, Mutex, MutexGuard};
use std::sync::PoisonError;

/// What kind of object an error handler is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrhandlerKind {
    /// MPI_Comm_create_errhandler.
    Comm,
    /// MPI_Session_create_errhandler.
    Session,
    /// MPI_Win_create_errhandler.
    Win,
    /// MPI_File_create_errhandler.
    File,
}

/// `void (MPI_Comm *comm, int *error_code, ...)`, and the same for sessions, windows and files.
pub type ErrhandlerFn = unsafe extern "C" fn(*mut usize, *mut i32, ...);

/// An error handler.
#[derive(Clone, Debug)]
pub enum Errhandler {
    /// MPI_ERRORS_ARE_FATAL: ends the job.
    Fatal,
    /// MPI_ERRORS_ABORT: ends the processes of the communicator; on one node, the job.
    Abort,
    /// MPI_ERRORS_RETURN: the function returns the error.
    Return,
    /// The user's function.
    User(Arc<UserErrhandler>),
}

/// A user's error handler.
#[derive(Debug)]
pub struct UserErrhandler {
    /// What to call.
    pub function: ErrhandlerFn,
    /// For which kind of object.
    pub kind: ErrhandlerKind,
}

impl Errhandler {
    /// The predefined handler of that ABI value.
    #[must_use]
    pub fn predefined(handle: usize) -> Option<Self> {
        match handle {
            abi::MPI_ERRORS_ARE_FATAL => Some(Self::Fatal),
            abi::MPI_ERRORS_ABORT => Some(Self::Abort),
            abi::MPI_ERRORS_RETURN => Some(Self::Return),
            _ => None,
        }
    }

    /// The ABI value of a predefined handler.
    #[must_use]
    pub fn predefined_handle(&self) -> Option<usize> {
        match self {
            Self::Fatal => Some(abi::MPI_ERRORS_ARE_FATAL),
            Self::Abort => Some(abi::MPI_ERRORS_ABORT),
            Self::Return => Some(abi::MPI_ERRORS_RETURN),
            Self::User(_) => None,
        }
    }

    /// Whether objects of `kind` may have it.
    ///
    /// # Errors
    /// [`Error::Errhandler`] if it was made for another kind.
    pub fn check(&self, kind: ErrhandlerKind) -> Result<()> {
        match self {
            Self::User(user) if user.kind != kind => {
                Err(Error::Errhandler("the error handler was made for another kind of object"))
            }
            _ => Ok(()),
        }
    }
}

/// The error handler that an object has.
#[derive(Debug)]
pub struct ErrhandlerSlot(Mutex<Errhandler>);

impl ErrhandlerSlot {
    /// With `handler` at first.
    #[must_use]
    pub fn new(handler: Errhandler) -> Self {
        Self(Mutex::new(handler))
    }

    /// The present one.
    #[must_use]
    pub fn get(&self) -> Errhandler {
        self.lock().clone()
    }

    /// Puts `handler` in and gives back the one before.
    pub fn replace(&self, handler: Errhandler) -> Errhandler {
        core::mem::replace(&mut self.lock(), handler)
    }

    fn lock(&self) -> MutexGuard<'_, Errhandler> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Default for ErrhandlerSlot {
    /// MPI_ERRORS_ARE_FATAL, as communicators have it from the start.
    fn default() -> Self {
        Self::new(Errhandler::Fatal)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn predefined_handlers_map_to_their_values_and_back() {
        for handle in [abi::MPI_ERRORS_ARE_FATAL, abi::MPI_ERRORS_ABORT, abi::MPI_ERRORS_RETURN] {
            assert_eq!(Errhandler::predefined(handle).and_then(|h| h.predefined_handle()), Some(handle));
        }
        assert!(Errhandler::predefined(abi::MPI_ERRHANDLER_NULL).is_none());
    }
}
