//! Probe and matched probe (MPI 5.0 §3.8).

use super::args::RecvBuf;
use crate::arch::clock::now;
use crate::comm::Comm;
use crate::engine::{Data, Engine, MatchContext, RaisingComm, Ref, RequestOperation, UnexpectedMessage};
use crate::error::{Error, Result};
use crate::matching::Envelope;
use crate::protocol::{Probed, pattern};
use crate::request::MessageStatus;
use crate::ring::Polled;
use crate::shm::telemetry::{Wait, Waiting};
use core::ptr::NonNull;

/// A message that a matched probe has taken out of the queue; only [`Engine::imrecv`] can receive it.
#[derive(Debug)]
pub struct Message {
    envelope: Envelope,
    arrived: UnexpectedMessage,
    context: NonNull<MatchContext>,
    source: u32,
}

// SAFETY: the context outlives the message: it is counted as pending there; the payload is the message's own.
unsafe impl Send for Message {}
// SAFETY: nothing of it changes through a shared reference.
unsafe impl Sync for Message {}

impl Message {
    /// What a status says of the message.
    pub fn status(&self) -> MessageStatus {
        status(&self.envelope, &self.arrived)
    }

    /// Its communicator, as what errors of its receive are raised on.
    pub fn raises_on(&self) -> RaisingComm {
        // SAFETY: the message counts as pending on the context, which therefore exists.
        unsafe { self.context.as_ref() }.raises_on()
    }
}

fn status(envelope: &Envelope, arrived: &UnexpectedMessage) -> MessageStatus {
    MessageStatus {
        source: envelope.source as i32,
        tag: envelope.tag,
        bytes: arrived.bytes() as u64,
        ..MessageStatus::EMPTY
    }
}

impl Engine {
    /// Looks for a message without receiving it, after one look at what has come in.
    ///
    /// # Errors
    ///
    /// As [`Engine::wait`].
    pub fn iprobe(&self, comm: &Comm, source: i32, tag: i32) -> Result<Option<MessageStatus>> {
        if source == crate::abi::MPI_PROC_NULL {
            return Ok(Some(MessageStatus::PROC_NULL));
        }
        self.check_not_revoked(comm.p2p())?;
        if let Some(found) = self.peek(comm, source, tag) {
            return Ok(Some(found));
        }
        let found = match self.polled_receive().probe(probed(comm, source, tag)) {
            Polled::Taken(found) => {
                self.progress().end_poll(true, true)?;
                Some(found)
            }
            Polled::Empty => {
                self.progress().poll_in_vain()?;
                None
            }
            Polled::Unwanted => {
                self.progress().poll_for_program(true)?;
                self.peek(comm, source, tag)
            }
        };
        if found.is_none() {
            self.check_probe(comm.p2p(), peer_of(comm, source))?;
        }
        Ok(found)
    }

    fn peek(&self, comm: &Comm, source: i32, tag: i32) -> Option<MessageStatus> {
        let mut queues = comm.p2p().queues.lock(self.shared);
        queues.unexpected.peek(&pattern(source, tag)).map(|(envelope, arrived)| status(envelope, arrived))
    }

    /// Waits for a message and says what it is.
    ///
    /// # Errors
    ///
    /// As [`Engine::wait`].
    pub fn probe(&self, comm: &Comm, source: i32, tag: i32) -> Result<MessageStatus> {
        let why = || Some(probe_wait(comm, source, tag));
        let mut found = self.iprobe(comm, source, tag)?;
        found = found.or_else(|| self.polled_receive().await_probed(probed(comm, source, tag), &why));
        self.progress().wait_until(why, || {
            found = found.or_else(|| self.peek(comm, source, tag));
            found.is_some()
        })?;
        Ok(found.unwrap_or_default())
    }

    /// As [`Engine::iprobe`], and takes the message out of the queue. MPI_PROC_NULL is the caller's to handle.
    ///
    /// # Errors
    ///
    /// As [`Engine::wait`].
    pub fn improbe(&self, comm: &Comm, source: i32, tag: i32) -> Result<Option<Message>> {
        self.check_not_revoked(comm.p2p())?;
        if let Some(found) = self.take_message(comm, source, tag) {
            return Ok(Some(found));
        }
        self.progress().poll_for_program(true)?;
        let found = self.take_message(comm, source, tag);
        if found.is_none() {
            self.check_probe(comm.p2p(), peer_of(comm, source))?;
        }
        Ok(found)
    }

    /// As [`Engine::probe`], and takes the message out of the queue. MPI_PROC_NULL is the caller's to handle.
    ///
    /// # Errors
    ///
    /// As [`Engine::wait`].
    pub fn mprobe(&self, comm: &Comm, source: i32, tag: i32) -> Result<Message> {
        let mut found = self.improbe(comm, source, tag)?;
        self.progress().wait_until(
            || Some(probe_wait(comm, source, tag)),
            || {
                found = found.take().or_else(|| self.take_message(comm, source, tag));
                found.is_some()
            },
        )?;
        found.ok_or_else(|| crate::Error::Intern("a probe ended without a message".into()))
    }

    fn take_message(&self, comm: &Comm, source: i32, tag: i32) -> Option<Message> {
        let context = comm.p2p();
        let (envelope, arrived) = self.take_unexpected(context, source, tag)?;
        context.retain(self.shared);
        Some(Message { envelope, arrived, context: context.into(), source: comm.rank() })
    }

    /// Receives a message that a matched probe found: takes it out of `message`, but not where no request is left.
    ///
    /// # Errors
    ///
    /// [`Error::Request`] if there is none; those of [`Engine::irecv`].
    ///
    /// # Safety
    ///
    /// `buf` describes memory that is valid for writes and untouched by others until the request is complete.
    pub unsafe fn imrecv(&self, buf: &RecvBuf<'_>, message: &mut Option<Message>) -> Result<Ref> {
        const NONE: Error = Error::Request("the message has been received");
        let context = message.as_ref().ok_or(NONE)?.context;
        // SAFETY: the message counts as pending on the context; from here on its request does.
        let context_ref = unsafe { context.as_ref() };
        let request = self.requests().take(context_ref)?;
        let Message { envelope, arrived, source, .. } = message.take().ok_or(NONE)?;
        context_ref.release(self.shared);
        // SAFETY: request rule 2: just taken, not active.
        let body = unsafe { request.body() };
        body.fill(RequestOperation::Receive, Data::from(buf), source, (0, 0), 0);
        body.context.set(Some(context));
        self.start_matched(request, &envelope, arrived)?;
        Ok(request)
    }
}

/// The job rank of the sender that a probe is for; `None` for any.
fn peer_of(comm: &Comm, source: i32) -> Option<u32> {
    (source >= 0).then(|| comm.world_rank_of(source))
}

/// The message that a probe is for.
fn probed(comm: &Comm, source: i32, tag: i32) -> Probed<'_> {
    Probed { context: comm.p2p(), source, world: peer_of(comm, source).unwrap_or(u32::MAX), tag }
}

fn probe_wait(comm: &Comm, source: i32, tag: i32) -> Wait {
    Wait {
        kind: Waiting::Probe,
        peer: peer_of(comm, source),
        tag: (tag >= 0).then_some(tag),
        context: comm.context,
        since: now(),
    }
}
