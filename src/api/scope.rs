//! Nonblocking messages from and into borrowed buffers: a scope ends them all before it ends itself.

use super::address::{Source, Status, Tag, rank, tag};
use super::communicator::Communicator;
use super::element::Element;
use super::messages::{outcome, recv_buf, send_buf};
use super::threading::{Single, Threading};
use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::p2p::{Mode, Request};
use crate::shm::Abort;
use core::cell::RefCell;
use core::marker::PhantomData;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

/// A scope in which nonblocking messages are begun; see [`Communicator::scope`].
pub struct Scope<'scope, 'env: 'scope, T: Threading = Single> {
    begun: Begun<'env, T>,
    /// Invariant, as in `std::thread::Scope`: a buffer must outlive this scope, not some shorter one.
    scope: PhantomData<&'scope mut &'scope ()>,
    env: PhantomData<&'env mut &'env ()>,
}

/// The requests of a scope that have not been waited for, at the places that their handles know.
struct Begun<'env, T: Threading> {
    comm: &'env Communicator<T>,
    requests: RefCell<Vec<Option<ScopedRequest>>>,
}

#[derive(Clone, Copy)]
struct ScopedRequest {
    request: Request,
    receives: bool,
}

/// A send that was begun in a scope. If nobody keeps this, it is waited for at the scope's end.
pub struct Sending<'scope, T: Threading = Single> {
    begun: &'scope Begun<'scope, T>,
    place: usize,
}

/// A receive that was begun in a scope. If nobody keeps this, it is waited for at the scope's end.
pub struct Receiving<'scope, E: Element, T: Threading = Single> {
    begun: &'scope Begun<'scope, T>,
    place: usize,
    room: (*mut E, usize),
    borrow: PhantomData<&'scope mut [E]>,
}

impl<T: Threading> Communicator<T> {
    /// Runs `body`, in which nonblocking sends and receives can be begun,
    /// and waits for all that it did not wait for itself.
    ///
    /// Their buffers are borrowed until the scope has ended, whatever becomes of the handles: so no message can reach a
    /// buffer that is gone. If `body` returns an error, what can still be cancelled is cancelled instead of waited for.
    /// If it panics, and messages are under way that cannot be cancelled here, the job ends:
    /// waiting for them might take for ever.
    ///
    /// # Errors
    /// Those of `body`; else the first error of a message that `body` did not wait for.
    ///
    /// ```
    /// # fn main() -> perusal::Result<()> {
    /// perusal::run_threads(2, |world| {
    ///     let peer = 1 - world.rank();
    ///     let mine = [world.rank() as u32; 1000];
    ///     let mut theirs = [9; 1000];
    ///     world.scope(|scope| {
    ///         let receiving = scope.irecv(&mut theirs, peer, 7)?;
    ///         scope.isend(&mine, peer, 7)?;
    ///         let (data, status) = receiving.wait()?;
    ///         assert_eq!((data[0] as usize, status.count::<u32>()), (peer, Some(1000)));
    ///         Ok(()) // the send is waited for here
    ///     })?;
    ///     assert_eq!(theirs, [peer as u32; 1000]);
    ///     Ok(())
    /// })?;
    /// # Ok(()) }
    /// ```
    ///
    /// A buffer must outlive the scope, and is not to be looked at while a message may come into it:
    ///
    /// ```compile_fail,E0597
    /// # perusal::run_threads(1, |world| {
    /// world.scope(|scope| {
    ///     let mut room = [0_u8; 8];
    ///     scope.irecv(&mut room, 0, 7)?; // `room` goes before the scope does
    ///     Ok(())
    /// })
    /// # });
    /// ```
    ///
    /// ```compile_fail,E0502
    /// # perusal::run_threads(1, |world| {
    /// let mut room = [0_u8; 8];
    /// world.scope(|scope| {
    ///     let receiving = scope.irecv(&mut room, 0, 7)?;
    ///     println!("{}", room[0]); // still borrowed
    ///     receiving.wait()?;
    ///     Ok(())
    /// })
    /// # });
    /// ```
    pub fn scope<'env, R>(
        &'env self,
        body: impl for<'scope> FnOnce(&'scope Scope<'scope, 'env, T>) -> Result<R>,
    ) -> Result<R> {
        let begun = Begun { comm: self, requests: RefCell::default() };
        let scope = Scope { begun, scope: PhantomData, env: PhantomData };
        match catch_unwind(AssertUnwindSafe(|| body(&scope))) {
            Ok(Ok(value)) => scope.begun.wait_for_all().map(|()| value),
            Ok(Err(error)) => {
                scope.begun.cancel_all();
                Err(error)
            }
            Err(panic) => {
                scope.begun.break_off();
                resume_unwind(panic)
            }
        }
    }
}

impl<'scope, T: Threading> Scope<'scope, '_, T> {
    /// Begins to send `data` (MPI_Isend).
    ///
    /// # Errors
    /// As [`Communicator::send`].
    pub fn isend<E: Element>(
        &'scope self,
        data: &'scope [E],
        dest: usize,
        tag: i32,
    ) -> Result<Sending<'scope, T>> {
        self.begin_send(Mode::Standard, data, dest, tag)
    }

    /// Begins to send `data`; the send is over when the message has met its receive (MPI_Issend).
    ///
    /// # Errors
    /// As [`Communicator::send`].
    pub fn issend<E: Element>(
        &'scope self,
        data: &'scope [E],
        dest: usize,
        tag: i32,
    ) -> Result<Sending<'scope, T>> {
        self.begin_send(Mode::Synchronous, data, dest, tag)
    }

    fn begin_send<E: Element>(
        &'scope self,
        mode: Mode,
        data: &'scope [E],
        dest: usize,
        given: i32,
    ) -> Result<Sending<'scope, T>> {
        let comm = self.begun.comm;
        let (dest, tag) = (rank(dest, comm.size())?, tag(given)?);
        let place = self.begun.add(false, |engine| {
            // SAFETY: `data` is borrowed until the scope has ended, which is not before the request is over or the
            // member settled.
            unsafe { engine.isend(&comm.comm, &send_buf(data), dest, tag, mode) }
        })?;
        Ok(Sending { begun: &self.begun, place })
    }

    /// Begins to receive one message into `room` (MPI_Irecv).
    ///
    /// # Errors
    /// As [`Communicator::recv_into`].
    pub fn irecv<E: Element>(
        &'scope self,
        room: &'scope mut [E],
        source: impl Into<Source>,
        tag: impl Into<Tag>,
    ) -> Result<Receiving<'scope, E, T>> {
        let comm = self.begun.comm;
        let (source, tag) = (source.into().number(comm.size())?, tag.into().number()?);
        let buf = recv_buf(room);
        let room = (buf.addr().cast(), room.len());
        let place = self.begun.add(true, |engine| {
            // SAFETY: the room is borrowed until the scope has ended, which is not before the request is over or the
            // member settled; elements may have any bytes.
            unsafe { engine.irecv(&comm.comm, &buf, source, tag) }
        })?;
        Ok(Receiving { begun: &self.begun, place, room, borrow: PhantomData })
    }
}

impl<T: Threading> Begun<'_, T> {
    /// Begins a request and keeps it.
    fn add(&self, receives: bool, begin: impl FnOnce(&Engine) -> Result<Request>) -> Result<usize> {
        // Room first: once there is a request, it must not be lost.
        let mut requests = self.requests.borrow_mut();
        requests.try_reserve(1).map_err(|_| Error::NoMem("one more request in a scope".into()))?;
        let request = self.comm.member.perform(begin)?;
        requests.push(Some(ScopedRequest { request, receives }));
        Ok(requests.len() - 1)
    }

    fn entry(&self, place: usize) -> Result<ScopedRequest> {
        self.requests.borrow()[place].ok_or(Error::Request("it is over"))
    }

    fn is_complete(&self, place: usize) -> Result<bool> {
        let ScopedRequest { request, .. } = self.entry(place)?;
        self.comm.member.perform(|engine| engine.test_complete(request))
    }

    /// Waits for the request at `place`, which is gone afterwards. After an error it is over, or the member settled.
    fn wait(&self, place: usize) -> Result<crate::p2p::MessageStatus> {
        let ScopedRequest { request, .. } = self.entry(place)?;
        let over = self.comm.member.perform(|engine| {
            engine.wait_for_good(request)?;
            Ok(engine.take_outcome(request))
        });
        if !matches!(over, Err(Error::InsideCallback)) {
            self.requests.borrow_mut()[place] = None;
        }
        let (status, error) = over?;
        error.map_or(Ok(status), Err)
    }

    fn places(&self) -> core::ops::Range<usize> {
        0..self.requests.borrow().len()
    }

    fn wait_for_all(&self) -> Result<()> {
        let mut result = Ok(());
        for place in self.places() {
            if self.entry(place).is_ok() {
                let waited = self.wait(place);
                result = result.and(waited.map(drop));
            }
        }
        result
    }

    fn cancel_all(&self) {
        for place in self.places() {
            if self.entry(place).is_ok() {
                // The error that brought us here is the one to tell. Whatever became of cancelling, after waiting the
                // request is over or the member settled.
                let _ = self.cancel(place);
                let _ = self.wait(place);
            }
        }
    }

    fn cancel(&self, place: usize) -> Result<()> {
        let ScopedRequest { request, .. } = self.entry(place)?;
        let over = request.state().is_complete();
        self.comm.member.perform(|engine| if over { Ok(()) } else { engine.cancel(request) })
    }

    /// Ends everything without waiting for anybody.
    fn break_off(&self) {
        let mut under_way = false;
        for place in self.places() {
            let Ok(ScopedRequest { receives, .. }) = self.entry(place) else { continue };
            // A receive that nothing has met is cancelled without asking anybody.
            let cancelled = if receives { self.cancel(place) } else { Ok(()) };
            match cancelled.and_then(|()| self.is_complete(place)) {
                Ok(true) => _ = self.wait(place),
                Ok(false) => under_way = true,
                // The member is settled.
                Err(_) => return,
            }
        }
        if under_way {
            let why = "a panic left a scope while its messages were under way".into();
            self.comm.member.give_up(Error::Other(why), Abort::PANIC);
        }
    }
}

impl<T: Threading> Sending<'_, T> {
    /// Polls, and returns whether the send is over (MPI_Request_get_status).
    ///
    /// # Errors
    /// [`Error::RankFailed`].
    pub fn is_complete(&self) -> Result<bool> {
        self.begun.is_complete(self.place)
    }

    /// Waits until the send is over (MPI_Wait).
    ///
    /// # Errors
    /// [`Error::RankFailed`].
    pub fn wait(self) -> Result<()> {
        self.begun.wait(self.place).map(drop)
    }
}

impl<'scope, E: Element, T: Threading> Receiving<'scope, E, T> {
    /// Polls, and returns whether the receive is over (MPI_Request_get_status).
    ///
    /// # Errors
    /// [`Error::RankFailed`].
    pub fn is_complete(&self) -> Result<bool> {
        self.begun.is_complete(self.place)
    }

    /// Waits for the message and returns the buffer and the status (MPI_Wait).
    ///
    /// # Errors
    /// As [`Communicator::recv_into`].
    pub fn wait(self) -> Result<(&'scope mut [E], Status)> {
        let status = outcome((self.begun.wait(self.place)?, None))?;
        // SAFETY: address and length of the slice that was borrowed for 'scope; the request is over, so nobody else
        // uses it, and `self` is gone. Elements may have any bytes.
        Ok((unsafe { core::slice::from_raw_parts_mut(self.room.0, self.room.1) }, status))
    }

    /// Cancels the receive and returns `None`, unless a message has met it (MPI_Cancel);
    /// then returns what [`wait`](Self::wait) does.
    ///
    /// # Errors
    /// As [`wait`](Self::wait).
    pub fn cancel(self) -> Result<Option<(&'scope mut [E], Status)>> {
        self.begun.cancel(self.place)?;
        let status = self.begun.wait(self.place)?;
        if status.cancelled {
            return Ok(None);
        }
        // SAFETY: address and length of the slice that was borrowed for 'scope; the request is over, so nobody else
        // uses it, and `self` is gone. Elements may have any bytes.
        let room = unsafe { core::slice::from_raw_parts_mut(self.room.0, self.room.1) };
        Ok(Some((room, status.into())))
    }
}
