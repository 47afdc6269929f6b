//! Nonblocking messages that own their buffers, and can be kept anywhere.

use super::address::{Source, Status, Tag, rank, tag};
use super::communicator::Communicator;
use super::element::Element;
use super::messages::{recv_buf, send_buf};
use super::threading::{Single, Threading};
use crate::error::{Error, Result};
use crate::p2p::{self, Mode, Request};

/// A send under way, with its data. Dropped, it goes on by itself; the data is kept until it is over.
#[must_use = "wait for it, or drop it to let it go on by itself"]
pub struct OwnedSend<'c, E: Element, T: Threading = Single>(Owned<'c, E, T>);

/// A receive under way, with its room. Dropped, it is cancelled;
/// if a message has met it, the room is kept until it is over.
#[must_use = "wait for it, or drop it to take it back"]
pub struct OwnedReceive<'c, E: Element, T: Threading = Single>(Owned<'c, E, T>);

/// A request and the memory that it names. Forgotten, both stay for ever.
struct Owned<'c, E: Element, T: Threading> {
    comm: &'c Communicator<T>,
    /// `None` once the request is over, or the member settled.
    request: Option<Request>,
    buffer: Vec<E>,
    receives: bool,
}

impl<T: Threading> Communicator<T> {
    /// Begins to send `data` (MPI_Isend).
    ///
    /// # Errors
    /// As [`send`](Self::send).
    ///
    /// ```
    /// # fn main() -> perusal::Result<()> {
    /// perusal::run_threads(2, |world| {
    ///     let next = (world.rank() + 1) % 2;
    ///     let sending = world.isend(vec![world.rank() as i64; 100_000], next, 7)?;
    ///     let receiving = world.irecv(vec![-1_i64; 100_000], next, 7)?;
    ///     let (data, status) = receiving.wait()?;
    ///     assert_eq!((data[99_999] as usize, status.source), (next, next));
    ///     let again = sending.wait()?; // the vector comes back
    ///     assert_eq!(again.len(), 100_000);
    ///     Ok(())
    /// })?;
    /// # Ok(()) }
    /// ```
    ///
    /// A communicator cannot go before what was begun on it:
    ///
    /// ```compile_fail,E0505
    /// # perusal::run_threads(1, |world| {
    /// let copy = world.dup()?;
    /// let sending = copy.isend(vec![1_u8], 0, 7)?;
    /// drop(copy);
    /// sending.wait().map(drop)
    /// # });
    /// ```
    pub fn isend<E: Element>(&self, data: Vec<E>, dest: usize, given: i32) -> Result<OwnedSend<'_, E, T>> {
        let (dest, tag) = (rank(dest, self.size())?, tag(given)?);
        self.member.reap();
        let buf = send_buf(&data);
        let request = self.member.perform(|engine| {
            // SAFETY: the vector's memory stays where it is and is not written until the request is over or the member
            // settled: it is in `Owned`, or parked, or leaked.
            unsafe { engine.isend(&self.comm, &buf, dest, tag, Mode::Standard) }
        })?;
        Ok(OwnedSend(Owned { comm: self, request: Some(request), buffer: data, receives: false }))
    }

    /// Begins to receive one message into `room`, all of whose elements may be overwritten (MPI_Irecv).
    ///
    /// # Errors
    /// As [`recv_into`](Self::recv_into).
    pub fn irecv<E: Element>(
        &self,
        mut room: Vec<E>,
        source: impl Into<Source>,
        tag: impl Into<Tag>,
    ) -> Result<OwnedReceive<'_, E, T>> {
        let (source, tag) = (source.into().number(self.size())?, tag.into().number()?);
        self.member.reap();
        let buf = recv_buf(&mut room);
        let request = self.member.perform(|engine| {
            // SAFETY: the vector's memory stays where it is and nobody looks at it until the request is over or the
            // member settled: it is in `Owned`, or parked, or leaked. Elements may have any bytes.
            unsafe { engine.irecv(&self.comm, &buf, source, tag) }
        })?;
        Ok(OwnedReceive(Owned { comm: self, request: Some(request), buffer: room, receives: true }))
    }
}

impl<E: Element, T: Threading> Owned<'_, E, T> {
    fn is_complete(&self) -> Result<bool> {
        let Some(request) = self.request else { return Ok(true) };
        self.comm.member.perform(|engine| engine.test_complete(request))
    }

    fn wait(&mut self) -> Result<p2p::MessageStatus> {
        let request = self.request.ok_or(Error::Request("it is over"))?;
        let over = self.comm.member.perform(|engine| {
            engine.wait_for_good(request)?;
            Ok(engine.take_outcome(request))
        });
        if !matches!(over, Err(Error::InsideCallback)) {
            self.request = None;
        }
        let (status, error) = over?;
        error.map_or(Ok(status), Err)
    }

    fn take(&mut self) -> Vec<E> {
        core::mem::take(&mut self.buffer)
    }
}

impl<E: Element, T: Threading> Drop for Owned<'_, E, T> {
    fn drop(&mut self) {
        let Some(request) = self.request else { return };
        let member = &self.comm.member;
        let receives = self.receives;
        let ended = member.perform(|engine| {
            if receives && !request.state().is_complete() {
                engine.cancel(request)?;
            }
            let over = request.state().is_complete();
            if over {
                engine.take_outcome(request);
            }
            Ok(over)
        });
        match ended {
            Ok(false) | Err(Error::InsideCallback) => {
                member.park(request, Box::new(core::mem::take(&mut self.buffer)));
            }
            // Over, or the member is settled: the buffer may go.
            Ok(true) | Err(_) => {}
        }
    }
}

impl<E: Element, T: Threading> OwnedSend<'_, E, T> {
    /// Polls, and returns whether the send is over (MPI_Request_get_status).
    ///
    /// # Errors
    /// [`Error::RankFailed`].
    pub fn is_complete(&self) -> Result<bool> {
        self.0.is_complete()
    }

    /// Waits until the send is over and returns its data (MPI_Wait).
    ///
    /// # Errors
    /// [`Error::RankFailed`].
    pub fn wait(mut self) -> Result<Vec<E>> {
        self.0.wait()?;
        Ok(self.0.take())
    }
}

impl<E: Element, T: Threading> OwnedReceive<'_, E, T> {
    /// Polls, and returns whether the receive is over (MPI_Request_get_status).
    ///
    /// # Errors
    /// [`Error::RankFailed`].
    pub fn is_complete(&self) -> Result<bool> {
        self.0.is_complete()
    }

    /// Waits for the message and returns all of the room, and the status (MPI_Wait).
    ///
    /// # Errors
    /// As [`Communicator::recv_into`].
    pub fn wait(mut self) -> Result<(Vec<E>, Status)> {
        let status = self.0.wait()?;
        Ok((self.0.take(), status.into()))
    }
}
