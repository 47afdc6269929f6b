//! Files in OTF2: each opening is an IoHandle of an IoRegularFile, and what happens to it has OTF2's I/O events.
//!
//! | of the trace | in OTF2 |
//! |---|---|
//! | a file is opened, closed | IoCreateHandle, IoDestroyHandle |
//! | an access is called, complete | IoOperationBegin (and IoOperationIssued if it is nonblocking), IoOperationComplete |
//! | a lock is acquired, released | IoAcquireLock, IoReleaseLock |

use super::super::super::files::JobFiles;
use super::super::super::model::{Record, RecordPayload};
use super::communicators::Otf2Ranks;
use super::writer::{Definitions, Location};
use crate::error::Result;
use crate::events::{Event, FileMode, FileOperation, WindowLock};
use core::ptr::null_mut;

/// A trace has no access modes.
const READ_WRITE: u8 = 2;
const NO_FLAGS: u32 = 0;
const NONBLOCKING: u32 = 1;
const COLLECTIVE: u32 = 2;
const READ: u8 = 0;
const WRITE: u8 = 1;
const EXCLUSIVE: u8 = 0;
const SHARED: u8 = 1;

/// The files of the job. The communicators of their members follow all others.
pub struct Otf2Files<'a> {
    /// The files.
    pub job: JobFiles<'a>,
    /// The number of the first one's communicator.
    pub first: u32,
}

impl Otf2Files<'_> {
    /// What events speak of.
    pub fn define(&self, to: &Definitions<'_>, ranks: &Otf2Ranks) -> Result<()> {
        if self.job.all.is_empty() {
            return Ok(());
        }
        to.io_paradigm("MPI-IO")?;
        for (number, file) in (0..).zip(&self.job.all) {
            let name = self.job.name(number as usize);
            to.communicator(self.first + number, &name, &ranks.group(&file.group))?;
            to.file(number, &name, self.first + number)?;
        }
        Ok(())
    }

    /// Writes what a record of a file, made by the rank at this place, is in OTF2.
    pub fn put(&self, location: &mut Location<'_>, place: usize, record: &Record) -> Result<()> {
        if !record.is_of_file() {
            return Ok(());
        }
        let Some(number) = self.job.number(place, record) else { return Ok(()) };
        let (file, when, bytes, id) = (number as u32, record.when, record.bytes, record.id);
        match (record.event, record.payload) {
            (Event::FileOpened, _) => location.event("file", when, |otf2, writer, when| {
                // SAFETY: writer rule 1, and numbers; no attributes.
                unsafe { (otf2.io_create)(writer, null_mut(), when, file, READ_WRITE, NO_FLAGS, NO_FLAGS) }
            }),
            (Event::FileClosed, _) => location.event("file", when, |otf2, writer, when| {
                // SAFETY: writer rule 1, and numbers; no attributes.
                unsafe { (otf2.io_destroy)(writer, null_mut(), when, file) }
            }),
            (Event::FileReqActivate, RecordPayload::File { operation, mode, .. }) => {
                let kind = if operation == FileOperation::Read as u8 { READ } else { WRITE };
                let nonblocking = mode == FileMode::Nonblocking as u8;
                let flags = match mode {
                    _ if nonblocking => NONBLOCKING,
                    _ if mode == FileMode::Collective as u8 => COLLECTIVE,
                    _ => NO_FLAGS,
                };
                location.event("access", when, |otf2, writer, when| {
                    // SAFETY: writer rule 1, and numbers; no attributes.
                    unsafe { (otf2.io_begin)(writer, null_mut(), when, file, kind, flags, bytes, id) }
                })?;
                if !nonblocking {
                    return Ok(());
                }
                location.event("access", when, |otf2, writer, when| {
                    // SAFETY: writer rule 1, and numbers; no attributes.
                    unsafe { (otf2.io_issued)(writer, null_mut(), when, file, id) }
                })
            }
            (Event::FileReqComplete, _) => location.event("access", when, |otf2, writer, when| {
                // SAFETY: writer rule 1, and numbers; no attributes.
                unsafe { (otf2.io_complete)(writer, null_mut(), when, file, bytes, id) }
            }),
            (Event::FileLockAcquired | Event::FileLockReleased, RecordPayload::FileLock { lock, .. }) => {
                let kind = if lock == WindowLock::Shared as u8 { SHARED } else { EXCLUSIVE };
                location.event("lock", when, |otf2, writer, when| {
                    // SAFETY: writer rule 1, and numbers; no attributes.
                    unsafe {
                        match record.event {
                            Event::FileLockAcquired => {
                                (otf2.io_acquire_lock)(writer, null_mut(), when, file, kind)
                            }
                            _ => (otf2.io_release_lock)(writer, null_mut(), when, file, kind),
                        }
                    }
                })
            }
            _ => Ok(()),
        }
    }
}
