//! Reading and writing files (MPI 5.0 §14.4).

use crate::abi::MPI_SUCCESS;
use crate::arguments::{Buffer, StatusOut};
use crate::boundary::{ErrorSource, RaisedOn};
use crate::check::{self, Access};
use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::files::{self, FileObject};
use crate::io::{BackgroundAccess, Direction, Elements, Start, Transfer};
use crate::messages::contents;
use crate::p2p::MessageStatus;
use crate::process::engine;
use crate::requests::{Task, insert_task};
use crate::types::{MPI_File, MPI_Request};
use std::sync::Arc;

/// From the file.
#[must_use]
pub const fn read() -> Direction {
    Direction::Read
}

/// To the file.
#[must_use]
pub const fn write() -> Direction {
    Direction::Write
}

/// The kinds of split collective accesses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Split {
    /// At an explicit offset.
    At,
    /// At the individual file pointer.
    Next,
    /// At the shared file pointer.
    Ordered,
}

impl Split {
    fn name(self, direction: Direction) -> &'static str {
        match (self, direction) {
            (Self::At, Direction::Read) => "read_at_all",
            (Self::At, Direction::Write) => "write_at_all",
            (Self::Next, Direction::Read) => "read_all",
            (Self::Next, Direction::Write) => "write_all",
            (Self::Ordered, Direction::Read) => "read_ordered",
            (Self::Ordered, Direction::Write) => "write_ordered",
        }
    }
}

/// The elements of a buffer.
fn elements(buffer: &Buffer<'_>) -> Result<Elements> {
    let (count, datatype) = contents(buffer)?;
    datatype.bytes_of(count)?;
    // SAFETY: argument rule 3: until the operation is complete, the elements are there, or there is room for them.
    Ok(unsafe { Elements::new(buffer.addr.cast(), count, datatype.clone(), buffer.datatype) })
}

fn status_of(outcome: &Transfer) -> MessageStatus {
    let error = outcome.error.as_ref().map_or(MPI_SUCCESS, Error::class);
    MessageStatus { bytes: outcome.bytes, error, ..MessageStatus::EMPTY }
}

/// The status says what was moved, also where something went wrong behind that.
fn ended(outcome: Transfer, status: StatusOut<'_>) -> Result<()> {
    status.set(&status_of(&outcome));
    outcome.error.map_or(Ok(()), Err)
}

/// What an access does with its buffer.
const fn access(direction: Direction) -> Access {
    match direction {
        Direction::Read => Access::Write,
        Direction::Write => Access::Read,
    }
}

fn alone(
    direction: Direction,
    fh: &FileObject,
    start: Start,
    buf: &Buffer<'_>,
    status: StatusOut<'_>,
) -> Result<()> {
    let elements = elements(buf)?;
    if check::is_on() {
        check::blocking_file(fh, buf, access(direction));
    }
    ended(fh.file().transfer(direction, start, &elements), status)
}

/// Performs a collective access. A member whose buffer is wrong or refused by `check`, or which has not ended a split
/// collective access, takes part without any elements, so that the others do not wait for it.
fn together(
    direction: Direction,
    fh: &FileObject,
    start: Start,
    buf: &Buffer<'_>,
    check: impl FnOnce(&Elements) -> Result<()>,
) -> Result<Transfer> {
    let engine = engine()?;
    super::file::compare_function(fh);
    let checked = || elements(buf).and_then(|given| check(&given).map(|()| given));
    let given = fh.file().check_not_split().and_then(|()| checked());
    let none = || elements(&buf.without_elements());
    let outcome = match &given {
        Ok(given) => perform_together(engine, direction, fh, start, given),
        Err(_) => perform_together(engine, direction, fh, start, &none()?),
    };
    given.map(|_| outcome)
}

fn perform_together(
    engine: &Engine,
    direction: Direction,
    fh: &FileObject,
    start: Start,
    elements: &Elements,
) -> Transfer {
    match start {
        Start::Shared => fh.file().transfer_ordered(engine, direction, elements),
        _ => fh.file().transfer_all(engine, direction, start, elements),
    }
}

/// MPI_File_read_at, MPI_File_write_at.
pub fn at(
    direction: Direction,
    fh: &FileObject,
    offset: i64,
    buf: Buffer<'_>,
    status: StatusOut<'_>,
) -> Result<()> {
    alone(direction, fh, Start::At(offset), &buf, status)
}

/// MPI_File_read, MPI_File_write.
pub fn next(direction: Direction, fh: &FileObject, buf: Buffer<'_>, status: StatusOut<'_>) -> Result<()> {
    alone(direction, fh, Start::Individual, &buf, status)
}

/// MPI_File_read_shared, MPI_File_write_shared.
pub fn shared(direction: Direction, fh: &FileObject, buf: Buffer<'_>, status: StatusOut<'_>) -> Result<()> {
    alone(direction, fh, Start::Shared, &buf, status)
}

fn all(
    direction: Direction,
    fh: &FileObject,
    start: Start,
    buf: &Buffer<'_>,
    status: StatusOut<'_>,
) -> Result<()> {
    if check::is_on() {
        check::blocking_file(fh, buf, access(direction));
    }
    ended(together(direction, fh, start, buf, |_| Ok(()))?, status)
}

/// MPI_File_read_at_all, MPI_File_write_at_all.
pub fn at_all(
    direction: Direction,
    fh: &FileObject,
    offset: i64,
    buf: Buffer<'_>,
    status: StatusOut<'_>,
) -> Result<()> {
    all(direction, fh, Start::At(offset), &buf, status)
}

/// MPI_File_read_all, MPI_File_write_all.
pub fn next_all(direction: Direction, fh: &FileObject, buf: Buffer<'_>, status: StatusOut<'_>) -> Result<()> {
    all(direction, fh, Start::Individual, &buf, status)
}

/// MPI_File_read_ordered, MPI_File_write_ordered.
pub fn ordered(direction: Direction, fh: &FileObject, buf: Buffer<'_>, status: StatusOut<'_>) -> Result<()> {
    all(direction, fh, Start::Shared, &buf, status)
}

fn split(direction: Direction, kind: Split, fh: &FileObject, start: Start, buf: &Buffer<'_>) -> Result<()> {
    // The end tells what became of the access; arguments that are wrong are an error of the call that has them.
    let check = |given: &Elements| fh.file().check_arguments(direction, start, given);
    let outcome = together(direction, fh, start, buf, check)?;
    fh.file().begin_split(kind.name(direction), outcome)?;
    if check::is_on() {
        check::began_split(fh, buf, access(direction));
    }
    Ok(())
}

/// MPI_File_read_at_all_begin, MPI_File_write_at_all_begin. The access is performed here; its end tells the outcome.
pub fn split_at(direction: Direction, fh: &FileObject, offset: i64, buf: Buffer<'_>) -> Result<()> {
    split(direction, Split::At, fh, Start::At(offset), &buf)
}

/// MPI_File_read_all_begin, MPI_File_write_all_begin.
pub fn split_next(direction: Direction, fh: &FileObject, buf: Buffer<'_>) -> Result<()> {
    split(direction, Split::Next, fh, Start::Individual, &buf)
}

/// MPI_File_read_ordered_begin, MPI_File_write_ordered_begin.
pub fn split_ordered(direction: Direction, fh: &FileObject, buf: Buffer<'_>) -> Result<()> {
    split(direction, Split::Ordered, fh, Start::Shared, &buf)
}

/// MPI_File_read_all_end and its kind.
pub fn end_split(direction: Direction, kind: Split, fh: &FileObject, status: StatusOut<'_>) -> Result<()> {
    super::file::compare_function(fh);
    let outcome = fh.file().end_split(kind.name(direction))?;
    if check::is_on() {
        check::ended_split(fh);
    }
    ended(outcome, status)
}

/// An access in the background, as its request knows it.
struct AccessTask {
    access: Arc<BackgroundAccess>,
    file: MPI_File,
}

impl Task for AccessTask {
    fn poll(&self, _: &Engine) -> Result<bool> {
        Ok(self.access.is_over())
    }
    fn outcome(&self, _: &Engine, _: bool) -> (MessageStatus, Option<Error>) {
        let outcome = self.access.outcome();
        (status_of(&outcome), outcome.error)
    }
    fn cancel(&self, _: &Engine) -> Result<()> {
        Err(Error::Request("an access to a file cannot be cancelled"))
    }
    fn raises_on(&self) -> Option<RaisedOn> {
        Some(ErrorSource::File(self.file).into())
    }
}

fn begin(direction: Direction, fh: MPI_File, start: Start, buf: &Buffer<'_>) -> Result<MPI_Request> {
    let object = files::get(fh)?;
    let engine = engine()?;
    let over = || engine.progress().work_has_ended();
    let elements = elements(buf)?;
    let begun = object.file().begin(direction, start, elements, over)?;
    let handle = insert_task(Box::new(AccessTask { access: begun, file: fh }))?;
    if check::is_on() {
        check::began_file(handle, &object, buf, access(direction));
    }
    Ok(handle)
}

/// Begins an access in which all members take part, each by itself: none waits for another.
fn begin_all(direction: Direction, fh: MPI_File, start: Start, buf: &Buffer<'_>) -> Result<MPI_Request> {
    let object = files::get(fh)?;
    super::file::compare_function(&object);
    object.file().check_not_split()?;
    begin(direction, fh, start, buf)
}

/// MPI_File_iread_at, MPI_File_iwrite_at.
pub fn begin_at(direction: Direction, fh: MPI_File, offset: i64, buf: Buffer<'_>) -> Result<MPI_Request> {
    begin(direction, fh, Start::At(offset), &buf)
}

/// MPI_File_iread_at_all, MPI_File_iwrite_at_all.
pub fn begin_at_all(direction: Direction, fh: MPI_File, offset: i64, buf: Buffer<'_>) -> Result<MPI_Request> {
    begin_all(direction, fh, Start::At(offset), &buf)
}

/// MPI_File_iread, MPI_File_iwrite.
pub fn begin_next(direction: Direction, fh: MPI_File, buf: Buffer<'_>) -> Result<MPI_Request> {
    begin(direction, fh, Start::Individual, &buf)
}

/// MPI_File_iread_all, MPI_File_iwrite_all.
pub fn begin_next_all(direction: Direction, fh: MPI_File, buf: Buffer<'_>) -> Result<MPI_Request> {
    begin_all(direction, fh, Start::Individual, &buf)
}

/// MPI_File_iread_shared, MPI_File_iwrite_shared.
pub fn begin_shared(direction: Direction, fh: MPI_File, buf: Buffer<'_>) -> Result<MPI_Request> {
    begin(direction, fh, Start::Shared, &buf)
}
