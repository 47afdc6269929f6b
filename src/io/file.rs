//! A file: what can be asked of it and changed, and its accesses.

use super::access::{Access, Direction, Elements, Transfer};
use super::background::BackgroundAccess;
use super::entry::Entry;
use super::hints;
use super::mode::Mode;
use super::pointer::SharedPointer;
use super::shared_buffer::SharedBuffer;
use super::split::Split;
use super::stream::Members;
use super::system::{Descriptor, errno_of, number_of};
use super::two_phase::Filled;
use super::view::{CurrentView, View, ViewParts};
use crate::abi;
use crate::coll::{BlockingTransport, Purpose, allgather, blocking_barrier};
use crate::comm::{Comm, ErrhandlerSlot, Group, Link, lock};
use crate::datatype::Datatype;
use crate::engine::{Engine, FileCount, FileCounts};
use crate::error::{Error, Result};
use crate::events::{Event, FileMode};
use crate::info::Info;
use crate::scratch::Scratch;
use crate::sync::{Arc, AtomicBool, Mutex, Ordering};

/// Where an access begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Start {
    /// At so many etypes from the beginning of the view.
    At(i64),
    /// At the individual file pointer, which moves behind the access.
    Individual,
    /// At the shared file pointer, which moves behind the access.
    Shared,
}

/// What an offset of a seek counts from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Whence {
    /// The beginning of the view.
    Set,
    /// The pointer.
    Current,
    /// The end of the file.
    End,
}

/// A file that the members of a communicator have opened, as one of them has it.
#[derive(Debug)]
pub struct File {
    /// Of the members alone, with no message of the program's.
    pub(super) comm: Arc<Comm>,
    /// Counts it among what connects processes.
    pub(super) link: Link,
    pub(super) descriptor: Descriptor,
    pub(super) mode: Mode,
    pub(super) view: Mutex<CurrentView>,
    /// The individual file pointer, in etypes.
    pub(super) position: Mutex<i64>,
    pub(super) shared: Option<SharedPointer>,
    /// What the member of rank 0 removes when the file is closed, with MPI_MODE_DELETE_ON_CLOSE.
    pub(super) entry: Option<Entry>,
    /// Where it is a stream: those that an access may wait for.
    pub(super) stream: Option<Members>,
    pub(super) atomic: AtomicBool,
    pub(super) counts: Arc<FileCounts>,
    /// Held by the thread that is in an atomic access.
    pub(super) atomic_threads: Mutex<()>,
    pub(super) info: Mutex<Info>,
    /// What collective accesses of many short runs go through, from the first one on.
    pub(super) buffer: Mutex<Option<SharedBuffer>>,
    pub(super) filled: Mutex<Filled>,
    pub(super) split: Mutex<Option<Split>>,
    /// What happens to errors of functions on it.
    pub errhandler: ErrhandlerSlot,
}

impl File {
    pub(super) fn new(
        (comm, link): (Arc<Comm>, Link),
        descriptor: Descriptor,
        mode: Mode,
        shared: Option<SharedPointer>,
        info: Info,
        counts: Arc<FileCounts>,
    ) -> Self {
        descriptor.heed(&info);
        let name = descriptor.name().to_string().into();
        Self {
            comm,
            link,
            descriptor,
            mode,
            view: Mutex::new(CurrentView::LaidOut(Arc::new(View::of_bytes(name)))),
            position: Mutex::new(0),
            shared,
            entry: None,
            stream: None,
            atomic: AtomicBool::new(false),
            counts,
            atomic_threads: Mutex::new(()),
            info: Mutex::new(info),
            buffer: Mutex::new(None),
            filled: Mutex::default(),
            split: Mutex::new(None),
            errhandler: ErrhandlerSlot::default(),
        }
    }

    pub(super) fn descriptor(&self) -> &Descriptor {
        &self.descriptor
    }

    /// Its own communicator.
    #[must_use]
    pub fn comm(&self) -> &Comm {
        &self.comm
    }

    /// Its name, as it was opened.
    #[must_use]
    pub fn name(&self) -> String {
        self.descriptor.name().to_string()
    }

    /// The members.
    #[must_use]
    pub fn group(&self) -> &Group {
        self.comm.group()
    }

    /// The access mode.
    #[must_use]
    pub fn mode(&self) -> Mode {
        self.mode
    }

    /// The view in force.
    #[must_use]
    pub fn current_view(&self) -> CurrentView {
        lock(&self.view).clone()
    }

    /// The view in force, laid out.
    ///
    /// # Errors
    /// As for [`View::new`], where the representation is a program's own.
    pub(super) fn view(&self) -> Result<Arc<View>> {
        let parts = match self.current_view() {
            CurrentView::LaidOut(view) => return Ok(view),
            CurrentView::Asked(parts) => parts,
        };
        // Without the lock: the program's functions may ask about the file.
        let view = Arc::new(View::new(parts)?);
        self.check_view(&view)?;
        *lock(&self.view) = CurrentView::LaidOut(view.clone());
        Ok(view)
    }

    /// The hints in force, and the file's name as it was opened (MPI 5.0 §14.2.8).
    #[must_use]
    pub fn info(&self) -> Info {
        let mut info = lock(&self.info).clone();
        // A name that is longer than values of hints is left out.
        let _ = info.set("filename", self.descriptor.name().path().to_bytes());
        info
    }

    /// Changes hints; those that are not named stay as they are.
    pub fn set_info(&self, asked: &Info) {
        let mut info = lock(&self.info);
        *info = hints::changed(core::mem::take(&mut info), asked);
        self.descriptor.heed(&info);
    }

    /// Bytes of the file.
    ///
    /// # Errors
    /// [`Error::File`].
    pub fn size(&self) -> Result<u64> {
        self.descriptor.size()
    }

    /// Has the storage device keep what this member has written (MPI_File_sync).
    ///
    /// # Errors
    /// [`Error::File`].
    pub fn sync(&self) -> Result<()> {
        if self.mode.writes() { self.descriptor.sync() } else { Ok(()) }
    }

    /// Whether accesses are atomic.
    #[must_use]
    pub fn is_atomic(&self) -> bool {
        // Relaxed: the members agree on it in a collective call, which orders it.
        self.atomic.load(Ordering::Relaxed)
    }

    /// Counts an access that is over.
    pub(super) fn count(&self, direction: Direction, moved: &Transfer) {
        let (accesses, bytes) = match direction {
            Direction::Read => (FileCount::Reads, FileCount::BytesRead),
            Direction::Write => (FileCount::Writes, FileCount::BytesWritten),
        };
        self.counts.add(accesses, 1);
        self.counts.add(bytes, moved.bytes);
    }

    pub(super) fn barrier(&self, engine: &Engine) -> Result<()> {
        blocking_barrier(engine, &self.comm)
    }

    /// Tells all members some words of each: those of member `r` begin at `N * r`.
    pub(super) fn exchange<const N: usize>(&self, engine: &Engine, own: [i64; N]) -> Result<Vec<[i64; N]>> {
        exchange(engine, &self.comm, own)
    }

    /// Makes accesses atomic, or no longer; all members call it (MPI_File_set_atomicity).
    ///
    /// # Errors
    /// [`Error::File`] if they differ; those of the messages.
    pub fn set_atomic(&self, engine: &Engine, atomic: bool) -> Result<()> {
        let all = self.exchange(engine, [i64::from(atomic)])?;
        if all.iter().any(|[other]| (*other != 0) != atomic) {
            return Err(self.differ("the atomicities"));
        }
        // Relaxed: the exchange has ordered it.
        self.atomic.store(atomic, Ordering::Relaxed);
        Ok(())
    }

    /// Has the member of rank 0 change the file, and tells all members what came of it.
    /// `value` must be the same everywhere.
    fn changed_by_first(
        &self,
        engine: &Engine,
        (value, differs): (i64, &'static str),
        doing: &str,
        change: impl FnOnce(&Descriptor) -> rustix::io::Result<()>,
    ) -> Result<()> {
        if !self.mode.writes() {
            return Err(self.read_only());
        }
        self.check_offsets("the size of a file that was opened with MPI_MODE_SEQUENTIAL cannot be changed")?;
        let free = self.check_not_split();
        let all = self.exchange(engine, [value, free.is_ok().into()])?;
        free?;
        if all.iter().any(|[_, free]| *free == 0) {
            return Err(self.impossible("another rank has begun a split collective access and not ended it"));
        }
        if all.iter().any(|[other, _]| *other != value) {
            return Err(self.differ(differs));
        }
        if value < 0 {
            let what = format!("the size is {value}; it must not be negative");
            return Err(self.refused(abi::MPI_ERR_ARG, what));
        }
        let errno = if self.comm.rank() == 0 { change(&self.descriptor).err() } else { None };
        let errno = errno_of(self.exchange(engine, [number_of(errno)])?[0][0]);
        errno.map_or(Ok(()), |errno| Err(self.descriptor.failure(doing, errno)))
    }

    /// Makes the file `size` bytes long; all members call it (MPI_File_set_size).
    ///
    /// # Errors
    /// [`Error::File`]; those of the messages.
    pub fn set_size(&self, engine: &Engine, size: i64) -> Result<()> {
        *lock(&self.filled) = Filled::default();
        self.changed_by_first(engine, (size, "the sizes"), "changing the size", |file| {
            file.set_size(size as u64)
        })
    }

    /// Allocates the first `size` bytes; all members call it (MPI_File_preallocate).
    ///
    /// # Errors
    /// As for [`set_size`](Self::set_size).
    pub fn preallocate(&self, engine: &Engine, size: i64) -> Result<()> {
        self.changed_by_first(engine, (size, "the sizes"), "allocating space", |file| {
            file.preallocate(size as u64)
        })
    }

    /// Sets the view; all members call it, each with a view of its own (MPI_File_set_view).
    ///
    /// # Errors
    /// That of `view`, at every member if any has one; [`Error::File`] for etypes or representations that differ.
    pub fn set_view(&self, engine: &Engine, view: Result<CurrentView>, asked: &Info) -> Result<()> {
        let own = view.as_ref().map_or([0, 0, 0], |view| {
            let name = view.parts().representation.name().bytes();
            let hash = name.fold(0_i64, |sum, byte| sum.wrapping_mul(31).wrapping_add(byte.into()));
            [1, view.etype_extent(), hash]
        });
        let all = self.exchange(engine, own)?;
        let mut view = view?;
        if all.iter().any(|[good, ..]| *good == 0) {
            let what = "another rank gave an invalid view; its own error says what is wrong";
            return Err(self.refused(abi::MPI_ERR_ARG, what));
        }
        if all.iter().any(|other| *other != own) {
            return Err(self.differ("the extents of the etypes or the data representations of a view"));
        }
        if self.mode.is_sequential() {
            view = view.moved_to(self.current_displacement(engine)?);
        }
        *lock(&self.view) = view;
        *lock(&self.position) = 0;
        self.set_info(asked);
        if let Some(shared) = self.shared.as_ref().filter(|_| self.comm.rank() == 0) {
            shared.set(0);
        }
        self.barrier(engine)
    }

    /// Where the shared file pointer stands, in bytes of the file. All members call it, each after its accesses.
    fn current_displacement(&self, engine: &Engine) -> Result<u64> {
        let own = self.shared().and_then(|shared| self.view()?.offset_of_etype(shared.get()));
        // All take what the member of rank 0 has found, so that all go on or none.
        let disp = self.exchange(engine, [*own.as_ref().unwrap_or(&-1)])?[0][0];
        u64::try_from(disp).map_err(|_| own.err().unwrap_or_else(|| self.pointer_too_far()))
    }

    /// Checks a view for this file. `None` for the displacement: where the shared file pointer is as the view is set
    /// (MPI_DISPLACEMENT_CURRENT).
    ///
    /// # Errors
    /// [`Error::File`] for a negative displacement; [`Error::Disp`] where the mode asks for the other kind of
    /// displacement; as for [`View::new`], unless the representation is a program's own.
    pub fn make_view(
        &self,
        disp: Option<i64>,
        etype: Datatype,
        filetype: Datatype,
        representation: &[u8],
    ) -> Result<CurrentView> {
        let disp = match disp {
            Some(disp) if !self.mode.is_sequential() => disp,
            // All members must be there before the pointer is looked at: `set_view` does that.
            None if self.mode.is_sequential() => 0,
            Some(_) => {
                return Err(Error::Disp("with MPI_MODE_SEQUENTIAL it must be MPI_DISPLACEMENT_CURRENT"));
            }
            None => return Err(Error::Disp("MPI_DISPLACEMENT_CURRENT is for MPI_MODE_SEQUENTIAL")),
        };
        let representation = super::Representation::named(representation)?;
        let disp = u64::try_from(disp).map_err(|_| {
            let what = format!("the displacement of a view is {disp}; it must not be negative");
            self.refused(abi::MPI_ERR_ARG, what)
        })?;
        let (file, writes) = (self.descriptor.name().to_string().into(), self.mode.writes());
        let view = CurrentView::new(ViewParts { file, writes, disp, etype, filetype, representation })?;
        if let CurrentView::LaidOut(view) = &view {
            self.check_view(view)?;
        }
        Ok(view)
    }

    pub(super) fn shared(&self) -> Result<&SharedPointer> {
        self.shared.as_ref().ok_or_else(|| {
            Error::NoMem(
                "the shared heap has no room for a shared file pointer; PERUSAL_SHARED_HEAP (bytes) says how large it is".into(),
            )
        })
    }

    fn check_direction(&self, direction: Direction) -> Result<()> {
        match direction {
            Direction::Read if !self.mode.reads() => {
                Err(self.refused(abi::MPI_ERR_ACCESS, "it was opened with MPI_MODE_WRONLY"))
            }
            Direction::Write if !self.mode.writes() => Err(self.read_only()),
            _ => Ok(()),
        }
    }

    fn check_start(&self, start: Start) -> Result<()> {
        if start == Start::Shared {
            return Ok(());
        }
        self.check_offsets("it was opened with MPI_MODE_SEQUENTIAL; use the shared file pointer")
    }

    /// Makes an access ready, and moves the pointer that it begins at behind it.
    pub(super) fn prepare(&self, direction: Direction, start: Start, elements: &Elements) -> Result<Access> {
        self.check_direction(direction)?;
        self.check_start(start)?;
        let view = self.view()?;
        let etypes = |access: &Access| access.view.etypes(access.bytes);
        match start {
            Start::At(offset) => {
                let at = view.position(offset)?;
                self.access(direction, view, at, elements)
            }
            Start::Individual => {
                // Before the lock: a program's own representation asks functions that may ask for the pointer.
                let access = self.access(direction, view, 0, elements)?;
                let etypes = etypes(&access)?;
                let mut position = lock(&self.position);
                let at = access.view.position(*position)?;
                access.view.check(at, access.bytes)?;
                *position += etypes;
                Ok(Access { at, ..access })
            }
            Start::Shared => {
                let access = self.access(direction, view, 0, elements)?;
                self.access_event(Event::FilePointerBegin);
                let at = self.shared()?.take(etypes(&access)?).ok_or_else(|| self.pointer_too_far())?;
                self.access_event(Event::FilePointerEnd);
                self.at_shared(access, at)
            }
        }
    }

    /// Checks an access at a place that is not known yet; gives its etypes too.
    pub(super) fn check_access(&self, direction: Direction, elements: &Elements) -> Result<(Access, i64)> {
        self.check_direction(direction)?;
        let access = self.access(direction, self.view()?, 0, elements)?;
        let etypes = access.view.etypes(access.bytes)?;
        Ok((access, etypes))
    }

    /// Checks an access of this start before it begins: no pointer moves.
    ///
    /// # Errors
    /// What is wrong with its arguments.
    pub fn check_arguments(&self, direction: Direction, start: Start, elements: &Elements) -> Result<()> {
        self.check_start(start)?;
        let (access, _) = self.check_access(direction, elements)?;
        match start {
            Start::At(offset) => access.view.check(access.view.position(offset)?, access.bytes),
            Start::Individual | Start::Shared => Ok(()),
        }
    }

    /// Performs an access of this member alone.
    pub fn transfer(&self, direction: Direction, start: Start, elements: &Elements) -> Transfer {
        let how = (direction, start, FileMode::Independent);
        self.observe(how, elements, || match self.prepare(direction, start, elements) {
            Ok(access) => {
                let moved = self.perform(&access, elements);
                self.settle(start, &access, &moved);
                moved
            }
            Err(error) => Transfer::failed(error),
        })
    }

    /// After an access that has moved less than it was to: the individual pointer stands behind what was moved.
    pub(super) fn settle(&self, start: Start, access: &Access, moved: &Transfer) {
        let missing = access.bytes.saturating_sub(moved.in_file.unwrap_or(moved.bytes));
        if start == Start::Individual && missing > 0 {
            *lock(&self.position) -= (missing / access.view.unit) as i64;
        }
    }

    /// Begins an access of this member alone, which goes on in the background,
    /// and calls `over` when it is over, from any thread.
    ///
    /// # Errors
    /// What is wrong with the arguments. Errors of the access itself are its outcome's.
    pub fn begin(
        self: &Arc<Self>,
        direction: Direction,
        start: Start,
        elements: Elements,
        over: impl FnOnce() + Send + 'static,
    ) -> Result<Arc<BackgroundAccess>> {
        let access = self.prepare(direction, start, &elements)?;
        let observed = self.observe_begin(direction, start, &elements, &access);
        Ok(self.clone().start(access, elements, observed, over))
    }

    fn target(&self, offset: i64, whence: Whence, current: i64) -> Result<i64> {
        let from = match whence {
            Whence::Set => 0,
            Whence::Current => current,
            Whence::End => self.view()?.end_of_file(self.size()?)?,
        };
        let at = from.checked_add(offset).filter(|at| *at >= 0).ok_or_else(|| {
            let what =
                format!("the file pointer would stand at etype {from} and {offset} more, which is no offset");
            self.refused(abi::MPI_ERR_ARG, what)
        })?;
        match self.current_view() {
            CurrentView::LaidOut(view) => view.position(at).map(|_| at),
            // The access says whether it is too far.
            CurrentView::Asked(_) => Ok(at),
        }
    }

    /// Moves the individual file pointer (MPI_File_seek).
    ///
    /// # Errors
    /// [`Error::File`] if it would be negative, and for a sequential file.
    pub fn seek(&self, offset: i64, whence: Whence) -> Result<()> {
        self.check_start(Start::Individual)?;
        if whence == Whence::End {
            // Before the lock: a program's own representation asks functions that may ask for the pointer.
            self.view()?;
        }
        let mut position = lock(&self.position);
        *position = self.target(offset, whence, *position)?;
        Ok(())
    }

    /// Moves the shared file pointer; all members call it with the same arguments (MPI_File_seek_shared).
    ///
    /// # Errors
    /// As for [`seek`](Self::seek), and if they differ; those of the messages.
    pub fn seek_shared(&self, engine: &Engine, offset: i64, whence: Whence) -> Result<()> {
        let shared = self.shared()?;
        self.check_start(Start::Shared)?;
        let own = [offset, whence as i64];
        let all = self.exchange(engine, own)?;
        if all.iter().any(|other| *other != own) {
            return Err(self.differ("the offsets, or what they count from,"));
        }
        self.check_offsets("the pointer of a file that was opened with MPI_MODE_SEQUENTIAL cannot be moved")?;
        let at = self.target(offset, whence, shared.get());
        // Nobody moves the pointer before everybody has looked at it.
        self.barrier(engine)?;
        let at = at?;
        if self.comm.rank() == 0 {
            shared.set(at);
        }
        self.barrier(engine)
    }

    /// The individual file pointer.
    ///
    /// # Errors
    /// [`Error::File`] for a sequential file.
    pub fn position(&self) -> Result<i64> {
        self.check_start(Start::Individual)?;
        Ok(*lock(&self.position))
    }

    /// The shared file pointer.
    ///
    /// # Errors
    /// [`Error::NoMem`] if there is none.
    pub fn shared_position(&self) -> Result<i64> {
        if self.mode.is_sequential() {
            return Err(self.impossible(
                "the pointer of a file that was opened with MPI_MODE_SEQUENTIAL cannot be asked",
            ));
        }
        Ok(self.shared()?.get())
    }

    /// The offset in the file, in bytes, of etype `offset` of the view (MPI_File_get_byte_offset).
    ///
    /// # Errors
    /// [`Error::File`] if it is negative or too large, and for a stream that is not sequential.
    pub fn byte_offset(&self, offset: i64) -> Result<i64> {
        // Of what the individual pointer is for, a sequential file allows this alone (MPI 5.0 §14.4.3).
        if !self.mode.is_sequential() {
            self.check_start(Start::Individual)?;
        }
        self.view()?.offset_of_etype(offset)
    }
}

/// Tells all members of a communicator some words of each.
pub(super) fn exchange<const N: usize>(engine: &Engine, comm: &Comm, own: [i64; N]) -> Result<Vec<[i64; N]>> {
    if comm.size() == 1 {
        return Ok(vec![own]);
    }
    let transport = BlockingTransport::new(engine, comm, Purpose::Create);
    let mut all = Scratch::of(comm.size() as usize * N * 8)?;
    let at = comm.rank() as usize * N * 8;
    for (word, room) in own.iter().zip(all[at..].chunks_exact_mut(8)) {
        room.copy_from_slice(&word.to_ne_bytes());
    }
    transport.run(allgather(&transport, &mut all))?;
    let word = |bytes: &[u8]| {
        let mut word = [0; 8];
        word.copy_from_slice(bytes);
        i64::from_ne_bytes(word)
    };
    Ok(all
        .chunks_exact(N * 8)
        .map(|words| core::array::from_fn(|i| word(&words[i * 8..i * 8 + 8])))
        .collect())
}
