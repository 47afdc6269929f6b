//! Blocking messages (MPI 5.0 chapter 3).

use super::address::{Source, Status, Tag, rank, tag};
use super::communicator::Communicator;
use super::element::{Element, datatype, zeroed};
use super::threading::Threading;
use crate::error::{Error, Result};
use crate::p2p::{self, Mode, RecvBuf, RecvMemory, SendBuf};

/// Returns the outcome of a receive that is over, where only its status matters.
pub(super) fn outcome((status, error): (p2p::MessageStatus, Option<Error>)) -> Result<Status> {
    error.map_or(Ok(status.into()), Err)
}

/// Describes `data` as a buffer to send from.
pub(super) fn send_buf<E: Element>(data: &[E]) -> SendBuf<'static> {
    let buf = SendBuf::new(data.as_ptr().cast(), data.len() * E::COUNT, datatype::<E>(), E::HANDLE);
    buf.expect("a slice fits into the address space")
}

/// Describes `data` as a buffer to receive into.
pub(super) fn recv_buf<E: Element>(data: &mut [E]) -> RecvBuf<'static> {
    let buf = RecvBuf::new(data.as_mut_ptr().cast(), data.len() * E::COUNT, datatype::<E>(), E::HANDLE);
    buf.expect("a slice fits into the address space")
}

impl<T: Threading> Communicator<T> {
    /// Sends `data` to rank `dest` and returns when `data` may be used again (MPI_Send, MPI 5.0 §3.2.1): at once, or,
    /// if it is long, when the message has met its receive.
    ///
    /// # Errors
    /// [`Error::Rank`] if `dest` is not less than [`size`](Self::size), [`Error::Tag`] for a negative `tag`;
    /// [`Error::RankFailed`] when the job has come to an end.
    #[inline]
    pub fn send<E: Element>(&self, data: &[E], dest: usize, tag: i32) -> Result<()> {
        self.send_in(Mode::Standard, data, dest, tag)
    }

    /// Sends like [`send`](Self::send), and returns when the message has met its receive (MPI_Ssend).
    ///
    /// # Errors
    /// As [`send`](Self::send).
    pub fn ssend<E: Element>(&self, data: &[E], dest: usize, tag: i32) -> Result<()> {
        self.send_in(Mode::Synchronous, data, dest, tag)
    }

    #[inline]
    fn send_in<E: Element>(&self, mode: Mode, data: &[E], dest: usize, given: i32) -> Result<()> {
        let (dest, tag) = (rank(dest, self.size())?, tag(given)?);
        // SAFETY: `data` is borrowed until `perform` returns, and then its request is over or the member settled (API
        // rule 3).
        self.member.perform(|engine| unsafe { engine.send(&self.comm, &send_buf(data), dest, tag, mode) })
    }

    /// Receives one message into `room` (MPI_Recv). Elements behind the message keep what they were.
    ///
    /// # Errors
    /// [`Error::Truncate`] if the message is larger than `room`; it is received and lost. [`Error::Rank`],
    /// [`Error::Tag`], [`Error::RankFailed`].
    ///
    /// ```
    /// use perusal::Any;
    ///
    /// # fn main() -> perusal::Result<()> {
    /// perusal::run_threads(2, |world| {
    ///     if world.rank() == 0 {
    ///         return world.send(&[1.5_f64, 2.5], 1, 7);
    ///     }
    ///     let mut room = [0.0; 4];
    ///     let status = world.recv_into(&mut room, Any, 7)?;
    ///     assert_eq!((status.source, status.count::<f64>()), (0, Some(2)));
    ///     assert_eq!(room, [1.5, 2.5, 0.0, 0.0]);
    ///     Ok(())
    /// })?;
    /// # Ok(()) }
    /// ```
    #[inline]
    pub fn recv_into<E: Element>(
        &self,
        room: &mut [E],
        source: impl Into<Source>,
        tag: impl Into<Tag>,
    ) -> Result<Status> {
        let (source, tag) = (source.into().number(self.size())?, tag.into().number()?);
        let buf = recv_buf(room);
        self.member.perform(|engine| {
            // SAFETY: `room` is borrowed until `perform` returns, and then its request is over or the member settled
            // (API rule 3); elements may have any bytes.
            unsafe {
                let room = RecvMemory::new(buf.addr(), buf.bytes());
                match engine.receive_unless_observed(&self.comm, room, source, tag) {
                    Some(status) => Ok(status.into()),
                    None => engine.receive(&self.comm, &buf, source, tag).and_then(outcome),
                }
            }
        })
    }

    /// Receives one message of any size into a vector as long as the message.
    ///
    /// # Errors
    /// [`Error::Type`] if the message is not made of whole elements, [`Error::NoMem`] if there is no memory for it; it
    /// is received and lost in both cases. [`Error::Rank`], [`Error::Tag`], [`Error::RankFailed`].
    pub fn recv<E: Element>(
        &self,
        source: impl Into<Source>,
        tag: impl Into<Tag>,
    ) -> Result<(Vec<E>, Status)> {
        let (source, tag) = (source.into().number(self.size())?, tag.into().number()?);
        let mut data = Ok(Vec::new());
        let got = self.member.perform(|engine| {
            let message = engine.mprobe(&self.comm, source, tag)?;
            let bytes = message.status().bytes as usize;
            if size_of::<E>() > 0 {
                data = zeroed::<E>(bytes.div_ceil(size_of::<E>()));
            }
            let room = data.as_mut().map_or(&mut [][..], |data| &mut data[..]);
            // SAFETY: `room` is a piece of `data`, or nothing; `data` outlives `perform`, and then the request is over
            // or the member settled (API rule 3).
            let request = unsafe { engine.imrecv(&recv_buf(room), &mut Some(message)) }?;
            engine.wait_complete(request)?;
            outcome(engine.take_outcome(request))
        });
        let data = data?;
        let status = got?;
        match status.count::<E>() {
            Some(_) => Ok((data, status)),
            None => {
                Err(Error::Type("the message is not made of whole elements of the type that is received"))
            }
        }
    }

    /// Sends and receives at once, so that ranks can do so in a ring without waiting for one another (MPI_Sendrecv).
    ///
    /// # Errors
    /// As [`send`](Self::send) and [`recv_into`](Self::recv_into).
    pub fn sendrecv<E: Element, F: Element>(
        &self,
        data: &[E],
        (dest, send_tag): (usize, i32),
        room: &mut [F],
        (source, recv_tag): (impl Into<Source>, impl Into<Tag>),
    ) -> Result<Status> {
        let (dest, send_tag) = (rank(dest, self.size())?, tag(send_tag)?);
        let (source, recv_tag) = (source.into().number(self.size())?, recv_tag.into().number()?);
        let (from, to) = ((&send_buf(data), dest, send_tag), (&recv_buf(room), source, recv_tag));
        self.member.perform(|engine| {
            // SAFETY: both buffers are borrowed until `perform` returns, and then both requests are over or the member
            // settled (API rule 3); elements may have any bytes.
            let (sent, received) = unsafe { engine.isendrecv(&self.comm, from, to) }?;
            engine.wait_complete(sent)?;
            engine.wait_for_good(received)?;
            let (_, failed) = engine.take_outcome(sent);
            let status = outcome(engine.take_outcome(received))?;
            failed.map_or(Ok(status), Err)
        })
    }

    /// Waits for a message and returns its status, without receiving it (MPI_Probe).
    ///
    /// # Errors
    /// [`Error::Rank`], [`Error::Tag`], [`Error::RankFailed`].
    pub fn probe(&self, source: impl Into<Source>, tag: impl Into<Tag>) -> Result<Status> {
        let (source, tag) = (source.into().number(self.size())?, tag.into().number()?);
        self.member.perform(|engine| engine.probe(&self.comm, source, tag).map(Status::from))
    }

    /// Returns the status of a message that is there, if there is one, without receiving it (MPI_Iprobe).
    ///
    /// # Errors
    /// As [`probe`](Self::probe).
    pub fn iprobe(&self, source: impl Into<Source>, tag: impl Into<Tag>) -> Result<Option<Status>> {
        let (source, tag) = (source.into().number(self.size())?, tag.into().number()?);
        self.member.perform(|engine| Ok(engine.iprobe(&self.comm, source, tag)?.map(Status::from)))
    }
}
