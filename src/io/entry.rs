//! The place of a file in a folder: it stays the same when the process goes to another folder.

use super::system::Name;
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{self, AtFlags, OFlags};
use rustix::io::Errno;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// A folder, and a name in it.
#[derive(Debug)]
pub(super) struct Entry {
    folder: OwnedFd,
    name: OsString,
}

impl Entry {
    /// The place that `name` has now, whether a file is there or not.
    pub fn of(name: &Name) -> rustix::io::Result<Self> {
        let path = Path::new(OsStr::from_bytes(name.path().to_bytes()));
        // Without a last part it is a folder: "/" or "..".
        let name = path.file_name().ok_or(Errno::ISDIR)?.to_owned();
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let folder = fs::open(folder.unwrap_or(Path::new(".")), flags, fs::Mode::empty())?;
        Ok(Self { folder, name })
    }

    /// Removes the name if it is still that of `file`; else there is no such file.
    pub fn remove(&self, file: impl AsFd) -> rustix::io::Result<()> {
        let (own, there) = (fs::fstat(file)?, fs::statat(&self.folder, &self.name, AtFlags::empty())?);
        if (own.st_dev, own.st_ino) != (there.st_dev, there.st_ino) {
            return Err(Errno::NOENT);
        }
        fs::unlinkat(&self.folder, &self.name, AtFlags::empty())
    }
}
