//! Files that the ranks of a communicator read and write together (MPI 5.0 chapter 14).
//!
//! - **API file rule 1.** Memory that an access in the background uses belongs to its [`PendingFile`], which waits for
//!   the end before it gives the memory back. One that is forgotten leaves its memory where it is.

use super::communicator::Communicator;
use super::element::{Element, datatype, zeroed};
use super::threading::{Single, Threading};
use crate::abi;
use crate::datatype::{Datatype, Order};
use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::events::{CommEvents, Event, EventRecord, Subscription};
use crate::info::Info;
use crate::io::{self, BackgroundAccess, Direction, Elements, Start, Transfer, Whence};
use crate::sync::{Arc, Condvar, Mutex};
use core::mem::ManuallyDrop;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::PoisonError;

/// How a file is opened, as [`std::fs::OpenOptions`] says it. All ranks say the same.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[must_use]
pub struct FileOptions {
    read: bool,
    write: bool,
    others: i32,
}

impl FileOptions {
    /// Nothing yet: one of [`read`](Self::read) and [`write`](Self::write) must follow, or both.
    pub fn new() -> Self {
        Self::default()
    }

    /// The file can be read.
    pub fn read(self) -> Self {
        Self { read: true, ..self }
    }

    /// The file can be written.
    pub fn write(self) -> Self {
        Self { write: true, ..self }
    }

    /// It is made if it is not there (MPI_MODE_CREATE).
    pub fn create(self) -> Self {
        Self { others: self.others | abi::MPI_MODE_CREATE, ..self }
    }

    /// It is made, and must not be there (MPI_MODE_EXCL).
    pub fn create_new(self) -> Self {
        Self { others: self.others | abi::MPI_MODE_CREATE | abi::MPI_MODE_EXCL, ..self }
    }

    /// All file pointers stand at its end at first (MPI_MODE_APPEND).
    pub fn append(self) -> Self {
        Self { others: self.others | abi::MPI_MODE_APPEND, ..self }
    }

    /// It is deleted as it is closed (MPI_MODE_DELETE_ON_CLOSE).
    pub fn delete_on_close(self) -> Self {
        Self { others: self.others | abi::MPI_MODE_DELETE_ON_CLOSE, ..self }
    }

    fn bits(self) -> i32 {
        let direction = match (self.read, self.write) {
            (true, true) => abi::MPI_MODE_RDWR,
            (true, false) => abi::MPI_MODE_RDONLY,
            (false, true) => abi::MPI_MODE_WRONLY,
            // The error says what is missing.
            (false, false) => 0,
        };
        direction | self.others
    }
}

/// Which elements of a file a rank sees, over and over again to its end: what a filetype is in MPI.
#[derive(Debug, Clone)]
pub struct FilePattern {
    filetype: Datatype,
    etype: Datatype,
    /// What its elements are made of.
    handle: usize,
}

fn element<E: Element>() -> Result<Datatype> {
    Datatype::contiguous(E::COUNT, datatype::<E>())
}

impl FilePattern {
    /// All elements.
    ///
    /// # Errors
    /// [`Error::CountTooLarge`], for elements that leave the address space.
    pub fn all<E: Element>() -> Result<Self> {
        let etype = element::<E>()?;
        Ok(Self { filetype: etype.clone(), etype, handle: E::HANDLE })
    }

    /// The first `len` of each `every` elements (MPI_Type_contiguous, resized).
    ///
    /// # Errors
    /// [`Error::Arg`] if `len` is 0 or more than `every`, or if sizes leave the address space;
    /// [`Error::CountTooLarge`].
    pub fn blocks<E: Element>(len: usize, every: usize) -> Result<Self> {
        if len == 0 || len > every {
            return Err(Error::Arg("a block of a file's pattern has 1 to `every` elements"));
        }
        let etype = element::<E>()?;
        let extent = every.checked_mul(size_of::<E>()).and_then(|bytes| isize::try_from(bytes).ok());
        let extent = extent.ok_or(Error::CountTooLarge(every))?;
        let filetype = Datatype::resized(&Datatype::contiguous(len, &etype)?, 0, extent)?;
        Ok(Self { filetype, etype, handle: E::HANDLE })
    }

    /// The part of an array of `shape` that begins at `start` and has `part` elements in each dimension, the last of
    /// which is the one that lies together (MPI_Type_create_subarray).
    ///
    /// # Errors
    /// [`Error::Arg`] if there is no dimension, the slices differ in length, a size is 0,
    /// or the part is not inside the array.
    pub fn part<E: Element>(shape: &[usize], part: &[usize], start: &[usize]) -> Result<Self> {
        let etype = element::<E>()?;
        let filetype = Datatype::subarray(shape, part, start, Order::C, &etype)?;
        Ok(Self { filetype, etype, handle: E::HANDLE })
    }
}

/// A file that all ranks of a communicator have opened. [`Communicator::open_file`] makes one.
///
/// Offsets and positions count elements of the view: bytes, until [`set_view`](Self::set_view) is called.
///
/// | at | one rank alone | all ranks together | in the background |
/// |---|---|---|---|
/// | an offset | [`read_at`](Self::read_at), [`write_at`](Self::write_at) | [`read_at_all`](Self::read_at_all), [`write_at_all`](Self::write_at_all) | [`begin_read_at`](Self::begin_read_at), [`begin_write_at`](Self::begin_write_at) |
/// | the rank's own position | [`read`](Self::read), [`write`](Self::write) | [`read_all`](Self::read_all), [`write_all`](Self::write_all) | |
/// | the position that all ranks share | [`read_shared`](Self::read_shared), [`write_shared`](Self::write_shared) | in the order of ranks: [`read_ordered`](Self::read_ordered), [`write_ordered`](Self::write_ordered) | |
///
/// A read gives how many elements it has got: fewer than there is room for at the end of the file alone.
/// [`close`](Self::close) tells errors; a file that is dropped without is closed at this rank, and is not deleted.
///
/// ```
/// use perusal::{FileOptions, FilePattern};
///
/// # fn main() -> perusal::Result<()> {
/// let name = std::env::temp_dir().join(format!("perusal-example.{}", std::process::id()));
/// perusal::run_threads(3, |world| {
///     let options = FileOptions::new().read().write().create().delete_on_close();
///     let mut file = world.open_file(&name, options)?;
///     // Every third number is a rank's own.
///     let (rank, size) = (world.rank(), world.size());
///     file.set_view(8 * rank as u64, &FilePattern::blocks::<u64>(1, size)?)?;
///     file.write_at_all(0, &[rank as u64; 4])?;
///     file.set_view(0, &FilePattern::all::<u64>()?)?;
///     let mut all = [9_u64; 12];
///     assert_eq!(file.read_at(0, &mut all)?, 12);
///     assert_eq!(all, [0, 1, 2, 0, 1, 2, 0, 1, 2, 0, 1, 2]);
///     file.close()
/// })?;
/// # Ok(()) }
/// ```
pub struct File<'c, T: Threading = Single> {
    comm: &'c Communicator<T>,
    /// `None` once it is closed.
    inner: Option<Arc<io::File>>,
    events: Arc<CommEvents>,
    /// What the elements of the view are made of.
    handle: usize,
}

impl<T: Threading> core::fmt::Debug for File<'_, T> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("File").field("inner", &self.inner).finish_non_exhaustive()
    }
}

impl<T: Threading> Communicator<T> {
    /// Opens a file (MPI_File_open). All ranks call it, with the same options and a name of the same file.
    ///
    /// # Errors
    /// [`Error::AccessMode`] for options that contradict each other, [`Error::File`]: at every rank if one has any.
    /// Then no file is left that this call has made. [`Error::RankFailed`].
    pub fn open_file(&self, name: impl AsRef<Path>, options: FileOptions) -> Result<File<'_, T>> {
        self.member.close_dropped();
        let events = self.member.registry().attach_file();
        let opened = self.member.perform(|engine| {
            let name = name.as_ref().as_os_str().as_bytes();
            let file =
                io::File::open(engine, &self.comm, name, options.bits(), &Info::default(), events.clone())?;
            self.member.claim(file.context())?;
            Ok(file)
        });
        let inner = opened.inspect_err(|_| self.member.registry().detach(&events))?;
        inner.emit_opened(0);
        Ok(File { comm: self, inner: Some(Arc::new(inner)), events, handle: u8::HANDLE })
    }
}

/// Names elements that are to be written.
fn source<E: Element>(data: &[E]) -> Elements {
    let addr = data.as_ptr().cast_mut().cast();
    // SAFETY: the callers borrow the slice until the access is over, and elements can be read as bytes (elements rule).
    unsafe { Elements::new(addr, data.len() * E::COUNT, datatype::<E>().clone(), E::HANDLE) }
}

/// Names elements that are to be read.
fn room<E: Element>(room: &mut [E]) -> Elements {
    // SAFETY: the callers borrow the slice exclusively until the access is over,
    // and elements may have any bytes (elements rule).
    unsafe {
        Elements::new(room.as_mut_ptr().cast(), room.len() * E::COUNT, datatype::<E>().clone(), E::HANDLE)
    }
}

fn ended<E: Element>(moved: Transfer) -> Result<usize> {
    match moved.error {
        Some(error) => Err(error),
        None => Ok((moved.bytes as usize).checked_div(size_of::<E>()).unwrap_or(0)),
    }
}

fn offset(at: u64) -> Result<i64> {
    i64::try_from(at).map_err(|_| Error::Arg("an offset in a file is less than 2^63"))
}

impl<T: Threading> File<'_, T> {
    fn inner(&self) -> Result<&Arc<io::File>> {
        self.inner.as_ref().ok_or(Error::FileOperation("it is closed"))
    }

    fn perform<R>(&self, operation: impl FnOnce(&io::File, &Engine) -> Result<R>) -> Result<R> {
        let file = self.inner()?;
        self.comm.member.perform(|engine| operation(file, engine))
    }

    /// Checks that elements are made of what the view's are; bytes can be anything.
    fn check<E: Element>(&self) -> Result<()> {
        if [u8::HANDLE, E::HANDLE].contains(&self.handle) {
            return Ok(());
        }
        Err(Error::Type("the elements are made of another type than those of the file's view"))
    }

    fn alone<E: Element>(&self, direction: Direction, start: Start, elements: &Elements) -> Result<usize> {
        self.check::<E>()?;
        self.perform(|file, _| ended::<E>(file.transfer(direction, start, elements)))
    }

    fn together<E: Element>(&self, direction: Direction, start: Start, elements: &Elements) -> Result<usize> {
        let none = source::<E>(&[]);
        let checked = self.check::<E>();
        // A rank whose elements are wrong takes part without any, so that the others do not wait for it.
        let elements = if checked.is_ok() { elements } else { &none };
        let moved = self.perform(|file, engine| {
            ended::<E>(match start {
                Start::Shared => file.transfer_ordered(engine, direction, elements),
                _ => file.transfer_all(engine, direction, start, elements),
            })
        });
        checked.and(moved)
    }

    /// Sets which part of the file this rank sees: `pattern` over and over again, from byte `begin` on
    /// (MPI_File_set_view). All ranks call it, with the same type of elements. All positions are 0 afterwards.
    ///
    /// # Errors
    /// [`Error::File`], [`Error::Arg`], [`Error::Type`] at every rank if one has any; [`Error::RankFailed`].
    pub fn set_view(&mut self, begin: u64, pattern: &FilePattern) -> Result<()> {
        self.perform(|file, engine| {
            let FilePattern { filetype, etype, .. } = pattern.clone();
            let view = offset(begin).and_then(|at| file.make_view(Some(at), etype, filetype, b"native"));
            file.set_view(engine, view, &Info::default())
        })?;
        self.handle = pattern.handle;
        Ok(())
    }

    /// Fills `to` with elements from `at` on (MPI_File_read_at).
    ///
    /// # Errors
    /// [`Error::File`]: what the system says, no whole number of the view's elements, or an offset beyond the largest
    /// one; [`Error::Type`] for elements of another type than the view's, unless that is of bytes.
    pub fn read_at<E: Element>(&self, at: u64, to: &mut [E]) -> Result<usize> {
        self.alone::<E>(Direction::Read, Start::At(offset(at)?), &room(to))
    }

    /// Writes `data` from element `at` on (MPI_File_write_at).
    ///
    /// # Errors
    /// As [`read_at`](Self::read_at).
    pub fn write_at<E: Element>(&self, at: u64, data: &[E]) -> Result<()> {
        self.alone::<E>(Direction::Write, Start::At(offset(at)?), &source(data)).map(drop)
    }

    /// Fills `to` from the rank's own position on, which moves behind it (MPI_File_read).
    ///
    /// # Errors
    /// As [`read_at`](Self::read_at).
    pub fn read<E: Element>(&self, to: &mut [E]) -> Result<usize> {
        self.alone::<E>(Direction::Read, Start::Individual, &room(to))
    }

    /// Writes `data` at the rank's own position, which moves behind it (MPI_File_write).
    ///
    /// # Errors
    /// As [`read_at`](Self::read_at).
    pub fn write<E: Element>(&self, data: &[E]) -> Result<()> {
        self.alone::<E>(Direction::Write, Start::Individual, &source(data)).map(drop)
    }

    /// Fills `to` at the position that all ranks share, which moves behind it:
    /// no two ranks get the same elements (MPI_File_read_shared).
    ///
    /// # Errors
    /// As [`read_at`](Self::read_at); [`Error::NoMem`] if the shared heap had no room for the position.
    pub fn read_shared<E: Element>(&self, to: &mut [E]) -> Result<usize> {
        self.alone::<E>(Direction::Read, Start::Shared, &room(to))
    }

    /// Writes `data` at the position that all ranks share, which moves behind it (MPI_File_write_shared).
    ///
    /// # Errors
    /// As [`read_shared`](Self::read_shared).
    pub fn write_shared<E: Element>(&self, data: &[E]) -> Result<()> {
        self.alone::<E>(Direction::Write, Start::Shared, &source(data)).map(drop)
    }

    /// As [`read_at`](Self::read_at), by all ranks at once (MPI_File_read_at_all):
    /// many short runs become few accesses to the file.
    ///
    /// # Errors
    /// As [`read_at`](Self::read_at); [`Error::RankFailed`].
    pub fn read_at_all<E: Element>(&self, at: u64, to: &mut [E]) -> Result<usize> {
        self.together::<E>(Direction::Read, Start::At(offset(at)?), &room(to))
    }

    /// As [`write_at`](Self::write_at), by all ranks at once (MPI_File_write_at_all).
    ///
    /// # Errors
    /// As [`read_at_all`](Self::read_at_all).
    pub fn write_at_all<E: Element>(&self, at: u64, data: &[E]) -> Result<()> {
        self.together::<E>(Direction::Write, Start::At(offset(at)?), &source(data)).map(drop)
    }

    /// As [`read`](Self::read), by all ranks at once (MPI_File_read_all).
    ///
    /// # Errors
    /// As [`read_at_all`](Self::read_at_all).
    pub fn read_all<E: Element>(&self, to: &mut [E]) -> Result<usize> {
        self.together::<E>(Direction::Read, Start::Individual, &room(to))
    }

    /// As [`write`](Self::write), by all ranks at once (MPI_File_write_all).
    ///
    /// # Errors
    /// As [`read_at_all`](Self::read_at_all).
    pub fn write_all<E: Element>(&self, data: &[E]) -> Result<()> {
        self.together::<E>(Direction::Write, Start::Individual, &source(data)).map(drop)
    }

    /// Reads at the position that all ranks share, in the order of ranks (MPI_File_read_ordered). All ranks call it.
    ///
    /// # Errors
    /// As [`read_shared`](Self::read_shared); [`Error::RankFailed`].
    pub fn read_ordered<E: Element>(&self, to: &mut [E]) -> Result<usize> {
        self.together::<E>(Direction::Read, Start::Shared, &room(to))
    }

    /// Writes at the position that all ranks share, in the order of ranks (MPI_File_write_ordered). All ranks call it.
    ///
    /// # Errors
    /// As [`read_ordered`](Self::read_ordered).
    pub fn write_ordered<E: Element>(&self, data: &[E]) -> Result<()> {
        self.together::<E>(Direction::Write, Start::Shared, &source(data)).map(drop)
    }

    fn begin<E: Element>(
        &self,
        direction: Direction,
        at: u64,
        mut elements: Vec<E>,
    ) -> Result<PendingFile<E>> {
        self.check::<E>()?;
        let named = room(&mut elements);
        // API file rule 1.
        let memory = ManuallyDrop::new(elements);
        let over = Arc::new(Over::default());
        let theirs = over.clone();
        let file = self.inner()?;
        let begun = self
            .comm
            .member
            .perform(|_| file.begin(direction, Start::At(offset(at)?), named, move || theirs.notify()));
        match begun {
            Ok(access) => Ok(PendingFile { access, over, memory }),
            Err(error) => {
                // Nothing was begun.
                drop(ManuallyDrop::into_inner(memory));
                Err(error)
            }
        }
    }

    /// Begins to read `len` elements from `at` on, while the caller goes on (MPI_File_iread_at).
    ///
    /// # Errors
    /// [`Error::File`], [`Error::Arg`], [`Error::NoMem`]; those of the access itself come with its end.
    pub fn begin_read_at<E: Element>(&self, at: u64, len: usize) -> Result<PendingFile<E>> {
        self.begin(Direction::Read, at, zeroed(len)?)
    }

    /// Begins to write `data` from element `at` on, while the caller goes on (MPI_File_iwrite_at).
    ///
    /// # Errors
    /// As [`begin_read_at`](Self::begin_read_at).
    pub fn begin_write_at<E: Element>(&self, at: u64, data: Vec<E>) -> Result<PendingFile<E>> {
        self.begin(Direction::Write, at, data)
    }

    /// Moves the rank's own position to element `at` (MPI_File_seek).
    ///
    /// # Errors
    /// [`Error::Arg`].
    pub fn seek(&self, at: u64) -> Result<()> {
        self.perform(|file, _| file.seek(offset(at)?, Whence::Set))
    }

    /// Moves the position that all ranks share to element `at` (MPI_File_seek_shared). All ranks call it.
    ///
    /// # Errors
    /// [`Error::File`], [`Error::Arg`], [`Error::RankFailed`].
    pub fn seek_shared(&self, at: u64) -> Result<()> {
        self.perform(|file, engine| file.seek_shared(engine, offset(at)?, Whence::Set))
    }

    /// Returns the rank's own position.
    ///
    /// # Errors
    /// [`Error::RankFailed`].
    pub fn position(&self) -> Result<u64> {
        self.perform(|file, _| file.position().map(|at| at as u64))
    }

    /// Returns the bytes of the file.
    ///
    /// # Errors
    /// [`Error::File`].
    pub fn size(&self) -> Result<u64> {
        self.perform(|file, _| file.size())
    }

    /// Makes the file `bytes` long (MPI_File_set_size). All ranks call it.
    ///
    /// # Errors
    /// [`Error::File`], [`Error::RankFailed`].
    pub fn set_size(&self, bytes: u64) -> Result<()> {
        self.perform(|file, engine| file.set_size(engine, offset(bytes)?))
    }

    /// Makes each access of a rank a whole to those of others, also of other jobs, or no longer
    /// (MPI_File_set_atomicity). All ranks call it.
    ///
    /// # Errors
    /// [`Error::File`] if they differ; [`Error::RankFailed`].
    pub fn set_atomic(&self, atomic: bool) -> Result<()> {
        self.perform(|file, engine| file.set_atomic(engine, atomic))
    }

    /// Has the storage device keep what this rank has written (MPI_File_sync).
    ///
    /// # Errors
    /// [`Error::File`].
    pub fn sync(&self) -> Result<()> {
        self.perform(|file, _| file.sync())
    }

    /// Calls `closure` for every `event` of the file until the subscription is dropped,
    /// as [`Communicator::subscribe`] does for messages.
    ///
    /// # Errors
    /// [`Error::Other`] if events are compiled out.
    pub fn subscribe(
        &self,
        event: Event,
        closure: impl Fn(&EventRecord<'_>) + Send + Sync + 'static,
    ) -> Result<Subscription> {
        let made = Subscription::new(&self.events, event, closure);
        made.map_err(|error| Error::Other(error.to_string()))
    }

    /// Closes the file (MPI_File_close). All ranks call it.
    ///
    /// # Errors
    /// [`Error::File`] if it cannot be deleted; it is closed all the same. [`Error::RankFailed`].
    pub fn close(mut self) -> Result<()> {
        let closed = self.perform(|file, engine| file.close(engine));
        let Some(inner) = self.inner.take() else { return closed };
        let context = self.end(&inner);
        // An access in the background that is not over keeps it open.
        if let Some(inner) = Arc::into_inner(inner) {
            self.comm.member.perform(|engine| {
                inner.give_back(engine);
                Ok(())
            })?;
        }
        self.comm.member.close(context);
        closed
    }

    fn end(&self, inner: &io::File) -> u32 {
        self.comm.member.registry().detach(&self.events);
        inner.emit_closed();
        inner.context()
    }
}

impl<T: Threading> Drop for File<'_, T> {
    fn drop(&mut self) {
        if let Some(inner) = self.inner.take() {
            let context = self.end(&inner);
            self.comm.member.close(context);
        }
    }
}

/// Wakes the thread that waits for the end of an access in the background.
#[derive(Debug, Default)]
struct Over {
    is_over: Mutex<bool>,
    condvar: Condvar,
}

impl Over {
    fn notify(&self) {
        *self.is_over.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.condvar.notify_all();
    }
}

/// An access to a file that goes on in the background, with its elements. Dropped, it waits for the end.
#[derive(Debug)]
#[must_use = "dropped, it waits for the end of the access"]
pub struct PendingFile<E: Element> {
    access: Arc<BackgroundAccess>,
    over: Arc<Over>,
    memory: ManuallyDrop<Vec<E>>,
}

impl<E: Element> PendingFile<E> {
    /// Returns whether it is over.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.access.is_over()
    }

    fn settle(&self) {
        let mut is_over = self.over.is_over.lock().unwrap_or_else(PoisonError::into_inner);
        while !self.access.is_over() {
            is_over = self.over.condvar.wait(is_over).unwrap_or_else(PoisonError::into_inner);
        }
        drop(is_over);
    }

    /// Waits for the end; returns the elements that were written, or those that were read,
    /// which at the end of the file are fewer.
    ///
    /// # Errors
    /// [`Error::File`]: what the system says.
    pub fn wait(mut self) -> Result<Vec<E>> {
        self.settle();
        let moved = ended::<E>(self.access.outcome())?;
        let mut elements = core::mem::take(&mut *self.memory);
        elements.truncate(moved);
        Ok(elements)
    }
}

impl<E: Element> Drop for PendingFile<E> {
    fn drop(&mut self) {
        self.settle();
        // SAFETY: dropped once, here, and the access that used the memory is over (API file rule 1).
        unsafe { ManuallyDrop::drop(&mut self.memory) };
    }
}
