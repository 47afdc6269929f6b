//! Handles, and the objects that they stand for.

use super::Argument;
use crate::comm::{Comm, Group};
use crate::datatype::Datatype;
use crate::datatype::op::Op;
use crate::error::Result;
use crate::files::{self, FileObject};
use crate::info::Info;
use crate::windows::{self, WindowObject};
use crate::{comms, datatypes, mpi};
use core::marker::PhantomData;
use std::sync::Arc;

/// A communicator's handle, which nobody frees during `'a` (argument rule 2).
#[derive(Debug, Clone, Copy)]
pub struct CommHandle<'a> {
    handle: usize,
    of: PhantomData<&'a Comm>,
}

impl<'a> Argument<'a, usize> for CommHandle<'a> {
    #[inline(always)]
    unsafe fn of(from: usize) -> Result<Self> {
        Ok(Self { handle: from, of: PhantomData })
    }
}

impl<'a> CommHandle<'a> {
    /// As the program passed it.
    #[must_use]
    pub fn handle(self) -> usize {
        self.handle
    }

    /// The communicator, if there is one. It is complete where the fast path is open.
    #[inline(always)]
    #[must_use]
    pub fn peek(self) -> Option<&'a Comm> {
        // SAFETY: argument rule 2.
        unsafe { comms::peek(self.handle) }
    }

    /// The communicator, if there is one and it is complete.
    #[inline(always)]
    #[must_use]
    pub fn peek_complete(self) -> Option<&'a Comm> {
        self.peek().filter(|comm| comm.is_open())
    }

    /// The communicator.
    ///
    /// # Errors
    /// [`crate::error::Error::Comm`] if there is none.
    #[inline]
    pub fn find(self) -> Result<&'a Comm> {
        // SAFETY: argument rule 2.
        unsafe { comms::find(self.handle) }
    }
}

impl<'a> Argument<'a, usize> for &'a Comm {
    #[inline(always)]
    unsafe fn of(from: usize) -> Result<Self> {
        // SAFETY: argument rule 2.
        unsafe { comms::find(from) }
    }
}

/// A communicator that a nonblocking call may be making still: for functions that send no messages on it.
#[derive(Debug, Clone, Copy)]
pub struct EvenIncomplete<'a>(&'a Comm);

impl core::ops::Deref for EvenIncomplete<'_> {
    type Target = Comm;
    fn deref(&self) -> &Comm {
        self.0
    }
}

impl<'a> Argument<'a, usize> for EvenIncomplete<'a> {
    #[inline(always)]
    unsafe fn of(from: usize) -> Result<Self> {
        // SAFETY: argument rule 2.
        unsafe { comms::find_even_incomplete(from) }.map(Self)
    }
}

impl<'a> Argument<'a, usize> for &'a FileObject {
    #[inline(always)]
    unsafe fn of(from: usize) -> Result<Self> {
        // SAFETY: argument rule 2.
        unsafe { files::find(from) }
    }
}

impl<'a> Argument<'a, usize> for &'a WindowObject {
    #[inline(always)]
    unsafe fn of(from: usize) -> Result<Self> {
        // SAFETY: argument rule 2.
        unsafe { windows::find(from) }
    }
}

impl Argument<'_, usize> for Arc<FileObject> {
    unsafe fn of(from: usize) -> Result<Self> {
        files::get(from)
    }
}

impl Argument<'_, usize> for Arc<Comm> {
    unsafe fn of(from: usize) -> Result<Self> {
        comms::get(from)
    }
}

impl Argument<'_, usize> for Datatype {
    unsafe fn of(from: usize) -> Result<Self> {
        datatypes::any(from)
    }
}

/// A datatype that has been committed.
#[derive(Debug)]
pub struct Committed(pub Datatype);

impl Argument<'_, usize> for Committed {
    unsafe fn of(from: usize) -> Result<Self> {
        datatypes::datatype(from).map(Self)
    }
}

impl Argument<'_, usize> for Op {
    unsafe fn of(from: usize) -> Result<Self> {
        datatypes::op(from)
    }
}

impl Argument<'_, usize> for Arc<Group> {
    unsafe fn of(from: usize) -> Result<Self> {
        mpi::group::find(from)
    }
}

impl Argument<'_, usize> for Arc<mpi::session::Session> {
    unsafe fn of(from: usize) -> Result<Self> {
        mpi::session::find(from)
    }
}

/// The hints of an info argument; none for MPI_INFO_NULL.
impl Argument<'_, usize> for Info {
    unsafe fn of(from: usize) -> Result<Self> {
        mpi::info::hints(from)
    }
}
