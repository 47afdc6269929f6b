//! Opening, closing and deleting files.

use super::entry::Entry;
use super::file::{File, exchange};
use super::hints;
use super::mode::Mode;
use super::pointer::{Place, SharedPointer};
use super::stream::Members;
use super::system::{self, Descriptor, Name, errno_of, number_of};
use crate::abi;
use crate::coll::new_context;
use crate::comm::{Comm, Link, lock};
use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::events::CommEvents;
use crate::info::Info;
use crate::sync::Arc;
use rustix::fd::OwnedFd;
use rustix::io::Errno;

/// Removes a file (MPI_File_delete).
///
/// # Errors
/// [`Error::File`].
pub fn delete(name: &[u8]) -> Result<()> {
    let name = Name::new(name)?;
    system::unlink(&name).map_err(|errno| name.failure("deleting", errno))
}

/// What the first member has opened.
struct First {
    fd: rustix::io::Result<OwnedFd>,
    /// Where the file is, if this call has made it.
    made: Option<Entry>,
}

/// Opens a file that others may make or remove at the same time.
fn open_first(name: &Name, mode: Mode, hints: &Info) -> First {
    let permissions = hints::permissions(hints);
    let make = |name: &Name| {
        let entry = Entry::of(name)?;
        system::open(name, mode, Some(permissions)).map(|fd| (fd, entry))
    };
    let mut name = name.clone();
    for _ in 0..100 {
        if !(mode.creates() && mode.is_exclusive()) {
            match system::open(&name, mode, None) {
                Err(Errno::NOENT) if mode.creates() => {}
                fd => return First { fd, made: None },
            }
        }
        match make(&name) {
            // Somebody else has made it meanwhile, or it is a symbolic link to a file that is to be made.
            Err(Errno::EXIST) if !mode.is_exclusive() => name = name.behind_link().unwrap_or(name),
            Err(errno) => return First { fd: Err(errno), made: None },
            Ok((fd, entry)) => return First { fd: Ok(fd), made: Some(entry) },
        }
    }
    First { fd: Err(Errno::BUSY), made: None }
}

/// Checks the arguments of all members. Returns those of this one.
///
/// # Errors
/// That of this member's arguments; else [`Error::File`] where the modes differ,
/// or another member's arguments are invalid.
fn agree(engine: &Engine, comm: &Comm, name: &[u8], bits: i32) -> Result<(Mode, Name)> {
    let arguments = Mode::new(bits).and_then(|mode| Ok((mode, Name::new(name)?)));
    let all = exchange(engine, comm, [i64::from(bits), i64::from(arguments.is_ok())])?;
    let (mode, name) = arguments?;
    if all.iter().any(|[other, _]| *other != i64::from(bits)) {
        return Err(name.refused(
            abi::MPI_ERR_NOT_SAME,
            "the access modes differ between the ranks; give the same everywhere",
        ));
    }
    if all.iter().any(|[_, good]| *good == 0) {
        return Err(name.refused(
            abi::MPI_ERR_ARG,
            "another rank gave an invalid name or mode; its own error says what is wrong",
        ));
    }
    Ok((mode, name))
}

impl File {
    /// Opens a file; all members of `parent` call this (MPI_File_open).
    /// Nothing is left of one that cannot be opened by all.
    ///
    /// # Errors
    /// [`Error::AccessMode`], [`Error::File`], at every member if any has one; [`Error::Comm`] for an
    /// intercommunicator; those of the messages.
    pub fn open(
        engine: &Engine,
        parent: &Comm,
        name: &[u8],
        mode: i32,
        asked: &Info,
        events: Arc<CommEvents>,
    ) -> Result<Self> {
        if parent.is_inter() {
            return Err(Error::Comm("files are opened on intracommunicators"));
        }
        let context = new_context(engine, parent)?;
        let comm =
            Arc::new(engine.open(Comm::intra(context, parent.rank(), parent.group().clone(), events))?);
        comm.events.about().name = String::from_utf8_lossy(name).into_owned();
        let opened = Self::open_on(engine, comm, name, mode, asked);
        if opened.is_err() {
            engine.close_communicator(context);
        }
        opened
    }

    fn open_on(engine: &Engine, comm: Arc<Comm>, name: &[u8], bits: i32, asked: &Info) -> Result<Self> {
        let (mode, name) = agree(engine, &comm, name, bits)?;
        let info = hints::at_open(asked);
        let home = engine.home_of(comm.group().world_rank(0));
        // The first member makes the file, if it is to be made, so that the others find it.
        let mut entry = None;
        let mut first = (comm.rank() == 0).then(|| {
            let place = mode.deletes_on_close().then(|| Entry::of(&name)).transpose();
            place.map(|place| entry = place).map_or_else(
                |errno| First { fd: Err(errno), made: None },
                |()| open_first(&name, mode, &info),
            )
        });
        let made = first.as_ref().filter(|first| first.fd.is_ok()).and_then(|_| SharedPointer::make(engine));
        let (mut shared, place) = made.map_or((None, 0), |(pointer, place)| (Some(pointer), place));
        let errno = first.as_ref().and_then(|first| first.fd.as_ref().err().copied());
        let of_first = exchange(engine, &comm, [number_of(errno), place as i64])?[0];
        if let Some(errno) = errno_of(of_first[0]) {
            return Err(name.failure("opening", errno));
        }
        let fd = match first.as_mut() {
            Some(first) => core::mem::replace(&mut first.fd, Err(Errno::BADF)),
            None => {
                shared = home.ok().and_then(|home| SharedPointer::at(engine, home, of_first[1] as Place));
                system::open(&name, mode, None)
            }
        };
        let is_stream = fd.as_ref().is_ok_and(|fd| !system::has_offsets(fd));
        let own = [number_of(fd.as_ref().err().copied()), i64::from(is_stream)];
        let all = exchange(engine, &comm, own)?;
        let other = all.iter().position(|[errno, _]| *errno != 0);
        let fd = match (fd, other) {
            (Ok(fd), None) => fd,
            (fd, other) => {
                if let (Ok(fd), Some(made)) = (&fd, first.and_then(|first| first.made)) {
                    // The error that counts is that of opening.
                    let _ = made.remove(fd);
                }
                if let Some(pointer) = shared {
                    pointer.free(engine);
                }
                return Err(match fd {
                    Err(errno) => name.failure("opening", errno),
                    Ok(_) => {
                        let rank = other.unwrap_or(0);
                        let errno = errno_of(all[rank][0]).unwrap_or(Errno::IO);
                        name.failure(&format!("opening at rank {rank} of the communicator"), errno)
                    }
                });
            }
        };
        let link = Link::new(engine, comm.group(), None);
        let files = engine.files.clone();
        let descriptor = Descriptor::new(fd, name, mode, comm.clone());
        let mut file = Self::new((comm, link), descriptor, mode, shared, info, files);
        file.entry = entry;
        file.stream =
            all.iter().any(|[_, is_stream]| *is_stream != 0).then(|| Members::of(engine, file.group()));
        if mode.appends() {
            file.go_to_end(engine)?;
        }
        Ok(file)
    }

    /// All file pointers stand at the end (MPI_MODE_APPEND).
    fn go_to_end(&self, engine: &Engine) -> Result<()> {
        let end = self.size().unwrap_or(0) as i64;
        // Nobody writes before everybody knows where the end is.
        let end = self.exchange(engine, [end])?[0][0];
        *lock(&self.position) = end;
        if let Some(shared) = self.shared.as_ref().filter(|_| self.comm.rank() == 0) {
            shared.set(end);
        }
        self.barrier(engine)
    }

    /// What all members do before they close the file: with MPI_MODE_DELETE_ON_CLOSE it is deleted (MPI_File_close).
    ///
    /// # Errors
    /// [`Error::File`] if it cannot be deleted, and those of the messages: then it is closed all the same.
    pub fn close(&self, engine: &Engine) -> Result<()> {
        self.barrier(engine)?;
        if !self.mode.deletes_on_close() {
            return Ok(());
        }
        let removed = self.entry.as_ref().map(|entry| entry.remove(self.descriptor.fd()));
        let errno = removed.and_then(Result::err);
        let failed = errno_of(self.exchange(engine, [number_of(errno)])?[0][0]);
        failed.map_or(Ok(()), |errno| Err(self.descriptor.failure("deleting on close", errno)))
    }

    /// Gives back what a closed file has taken of the job. Nobody uses it any more.
    pub fn release(self, engine: &Engine) {
        let context = self.context();
        self.link.end(engine);
        self.give_back(engine);
        engine.close_communicator(context);
    }

    /// The context id of the members' messages.
    #[must_use]
    pub fn context(&self) -> u32 {
        self.comm.context
    }

    /// As [`release`](Self::release), but for the context.
    pub fn give_back(self, engine: &Engine) {
        if let Some(pointer) = self.shared {
            pointer.free(engine);
        }
        if let Some(buffer) = self.buffer.into_inner().ok().flatten() {
            buffer.free(engine);
        }
    }
}
