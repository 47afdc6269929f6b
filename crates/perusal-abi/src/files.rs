//! Files by handle.

use crate::abi;
use crate::check;
use crate::error::{Error, Result};
use crate::events::CommEvents;
use crate::handles::{HandleKind, HandleTable};
use crate::io::File;
use std::sync::Arc;

/// What a file's handle names.
#[derive(Debug)]
pub struct FileObject {
    file: Arc<File>,
    events: Arc<CommEvents>,
}

static OPEN: HandleTable<FileObject> = HandleTable::new(HandleKind::File);

fn invalid(handle: usize) -> Error {
    Error::FileHandle(match handle {
        abi::MPI_FILE_NULL => "MPI_FILE_NULL",
        0 => "0 is no handle",
        _ => "no such file, or it has been closed",
    })
}

/// The file of `handle`, without counting a reference.
///
/// # Safety
/// No thread closes it while the result is in use. MPI asks this of the program for every handle that it passes.
///
/// # Errors
/// [`Error::FileHandle`] if there is none.
#[inline]
pub unsafe fn find<'a>(handle: usize) -> Result<&'a FileObject> {
    // SAFETY: nobody closes the file while the result is in use (argument rule 2),
    // so its place in the table stays filled.
    unsafe { OPEN.peek(handle) }.ok_or_else(|| invalid(handle))
}

/// The file of `handle`, kept alive by the result.
///
/// # Errors
/// [`Error::FileHandle`] if there is none.
pub fn get(handle: usize) -> Result<Arc<FileObject>> {
    OPEN.get(handle).ok_or_else(|| invalid(handle))
}

/// Gives a new file its handle.
///
/// # Errors
/// [`Error::NoMem`] if no handle is left.
pub fn insert(file: File, events: Arc<CommEvents>) -> Result<usize> {
    let handle = OPEN.insert(Arc::new(FileObject { file: Arc::new(file), events }))?;
    if check::is_on() {
        check::made(check::ObjectKind::File, handle);
    }
    Ok(handle)
}

/// The handles of all open files.
pub fn made() -> Vec<usize> {
    OPEN.handles()
}

/// Takes `handle` out of use.
///
/// # Errors
/// [`Error::FileHandle`] if there is none.
pub fn remove(handle: usize) -> Result<Arc<FileObject>> {
    OPEN.remove(handle).ok_or_else(|| invalid(handle))
}

impl FileObject {
    /// The file itself, which an access in the background keeps open.
    #[must_use]
    pub fn file(&self) -> &Arc<File> {
        &self.file
    }

    /// Its events, to listen to.
    #[must_use]
    pub fn events(&self) -> &Arc<CommEvents> {
        &self.events
    }

    /// The file alone.
    #[must_use]
    pub fn into_file(self) -> Arc<File> {
        self.file
    }
}
