//! Combined send and receive; buffers of buffered sends (MPI 5.0 §3.10, §3.6).

use crate::abi::MPI_PROC_NULL;
use crate::arguments::{Buffer, CommHandle, StatusOut};
use crate::boundary::RaisedOn;
use crate::check::{self, Access, Half};
use crate::coll::Scratch;
use crate::comm::{Comm, ErrhandlerSlot, lock};
use crate::engine::{Engine, PutAside};
use crate::error::{Error, Result};
use crate::events::fast_path_is_open;
use crate::messages::{contents, recv_buf, recv_peer, send_buf, send_peer};
use crate::mpi::{p2p, typed};
use crate::p2p::{MessageStatus, Request};
use crate::process::engine;
use crate::requests::{Task, insert_task};
use crate::sync::Mutex;
use crate::types::{MPI_Comm, MPI_Request};
use core::ffi::c_int;
use std::sync::Arc;

/// One half of a combined send and receive: a buffer, and who is at the other end.
pub struct End<'a> {
    buf: Buffer<'a>,
    peer: c_int,
    tag: c_int,
}

impl End<'_> {
    /// As the checks know it.
    const fn half(&self) -> Half<'_> {
        Half { peer: self.peer, tag: self.tag, buffer: &self.buf }
    }
}

/// Starts both halves. What is sent is taken from `copy`, if there is one.
fn start(send: &End<'_>, recv: &End<'_>, comm: &Comm, copy: Option<&Scratch>) -> Result<(Request, Request)> {
    send_peer(comm, send.peer, send.tag)?;
    recv_peer(comm, recv.peer, recv.tag)?;
    let (mut from, to) = (send_buf(send.buf.with_peer(send.peer))?, recv_buf(recv.buf.with_peer(recv.peer))?);
    if let Some(copy) = copy {
        from = from.packed_at(copy);
    }
    // SAFETY: argument rule 3: the buffers are valid until both are complete, and MPI 5.0 §3.10 forbids that they
    // overlap; a copy of what is sent lives as long as the operation.
    unsafe { engine()?.isendrecv(comm, (&from, send.peer, send.tag), (&to, recv.peer, recv.tag)) }
}

/// Sends what can be sent without waiting, and then is a blocking receive. `None`, with nothing done, if the message
/// must wait for its receiver, or somebody listens.
fn one_by_one(
    send: &End<'_>,
    recv: &End<'_>,
    comm: CommHandle<'_>,
    status: StatusOut<'_>,
) -> Option<Result<()>> {
    if !fast_path_is_open() {
        return None;
    }
    // What is wrong with the receive is an error before anything is sent.
    let found = comm.find().ok()?;
    recv_peer(found, recv.peer, recv.tag).ok()?;
    let to = recv_buf(recv.buf.with_peer(recv.peer)).ok()?;
    let sent = if send.peer == MPI_PROC_NULL {
        send_peer(found, send.peer, send.tag).is_ok() && send_buf(send.buf.with_peer(send.peer)).is_ok()
    } else {
        p2p::send_fast(send.buf, send.peer, send.tag, comm)
            || typed::send(send.buf, send.peer, send.tag, comm)
    };
    if !sent {
        return None;
    }
    if p2p::recv_fast(recv.buf, recv.peer, recv.tag, comm, status)
        || typed::recv(recv.buf, recv.peer, recv.tag, comm, status)
    {
        return Some(Ok(()));
    }
    // SAFETY: argument rule 3: the buffer has room for its elements until the message has been received.
    let received = engine().and_then(|engine| unsafe { engine.receive(found, &to, recv.peer, recv.tag) });
    Some(received.and_then(|(got, error)| {
        status.set(&got);
        error.map_or(Ok(()), Err)
    }))
}

/// Sends, receives, and waits for both.
fn run(
    send: &End<'_>,
    recv: &End<'_>,
    comm: &Comm,
    copy: Option<&Scratch>,
    status: StatusOut<'_>,
) -> Result<()> {
    if check::is_on() {
        if copy.is_none() {
            check::blocking_exchange(comm, send.half(), recv.half());
            check::blocking_message(comm, send.peer, send.tag, &send.buf, Access::Read);
        }
        check::blocking_message(comm, recv.peer, recv.tag, &recv.buf, Access::Write);
    }
    let (sent, received) = start(send, recv, comm, copy)?;
    let engine = engine()?;
    engine.wait_complete(sent)?;
    engine.wait_for_good(received)?;
    let (_, failed) = engine.take_outcome(sent);
    let (got, error) = engine.take_outcome(received);
    if check::is_on() && error.is_none() {
        check::received(comm, recv.peer, recv.tag, &recv.buf, got.bytes as usize);
    }
    status.set(&got);
    error.or(failed).map_or(Ok(()), Err)
}

/// A packed copy of what a buffer holds, so that it can be received into at once.
///
/// # Errors
/// [`Error::NoMem`], before anything is sent.
fn packed(buffer: Buffer<'_>) -> Result<Scratch> {
    let (count, datatype) = contents(&buffer)?;
    let mut bytes = Scratch::of(datatype.bytes_of(count)?)?;
    // SAFETY: argument rule 3: the elements are there; the copy is as long as the data, and new.
    unsafe { datatype.pack(count, buffer.addr.cast_const().cast(), 0, &mut bytes) };
    Ok(bytes)
}

/// A combined send and receive under way: two messages, one request.
struct Combined {
    /// The send, and the receive.
    halves: [Request; 2],
    /// A copy of what is sent, if it is received into the same buffer.
    bytes: Mutex<Option<Scratch>>,
    /// What its errors are raised on: the handle of its communicator, and the error handler there.
    comm: (MPI_Comm, Arc<ErrhandlerSlot>),
}

impl Task for Combined {
    fn poll(&self, engine: &Engine) -> Result<bool> {
        engine.check_pending(self.halves[1])?;
        Ok(self.halves.iter().all(|half| half.is_over()))
    }
    fn outcome(&self, engine: &Engine, last: bool) -> (MessageStatus, Option<Error>) {
        let of = |request| if last { engine.take_outcome(request) } else { engine.look_at_outcome(request) };
        let [(_, failed), (status, error)] = self.halves.map(of);
        (status, error.or(failed))
    }
    fn messages(&self) -> &[Request] {
        &self.halves
    }
    fn raises_on(&self) -> Option<RaisedOn> {
        Some(RaisedOn::comm(self.comm.0, &self.comm.1))
    }
    fn cancel(&self, _: &Engine) -> Result<()> {
        // One half may be over and the other not. Said to be cancelled,
        // it would have to end whatever others do (MPI 5.0 §3.8.4).
        Err(Error::Request("a combined send and receive cannot be cancelled"))
    }
    fn free(&self, engine: &Engine) -> Result<()> {
        let [sent, received] = self.halves;
        match lock(&self.bytes).take() {
            // The message may still be read from it.
            Some(bytes) if !sent.is_over() => {
                let _bytes = Mutex::new(bytes);
                engine.progress().put_aside(Box::new(FreedSend { sent, _bytes }));
            }
            _ => engine.free_request(sent),
        }
        engine.free_request(received);
        Ok(())
    }
}

/// A send that nobody will wait for, and the copy of what it sends.
struct FreedSend {
    sent: Request,
    _bytes: Mutex<Scratch>,
}

impl PutAside for FreedSend {
    fn is_over(&self, engine: &Engine) -> bool {
        self.sent.is_over() && {
            // Nobody asks what became of it.
            let _ = engine.take_outcome(self.sent);
            true
        }
    }
    fn holds_up_leaving(&self) -> bool {
        true
    }
}

/// Starts both halves as one request, which keeps the copy of what is sent, if there is one.
fn start_task(send: &End<'_>, recv: &End<'_>, comm: &Comm, copy: Option<Scratch>) -> Result<MPI_Request> {
    let (sent, received) = start(send, recv, comm, copy.as_ref())?;
    let copied = copy.is_some();
    // The copy's bytes do not move with it.
    let bytes = Mutex::new(copy);
    let task = Combined { halves: [sent, received], bytes, comm: (comm.handle(), comm.errhandler.clone()) };
    let handle = insert_task(Box::new(task))?;
    if check::is_on() {
        let sent = (!copied).then(|| send.half());
        check::began_exchange(handle, comm, sent, recv.half());
    }
    Ok(handle)
}

/// MPI_Sendrecv.
pub fn sendrecv(
    from: Buffer<'_>,
    dest: c_int,
    send_tag: c_int,
    to: Buffer<'_>,
    source: c_int,
    recv_tag: c_int,
    comm: CommHandle<'_>,
    status: StatusOut<'_>,
) -> Result<()> {
    let (send, recv) =
        (End { buf: from, peer: dest, tag: send_tag }, End { buf: to, peer: source, tag: recv_tag });
    one_by_one(&send, &recv, comm, status).unwrap_or_else(|| run(&send, &recv, comm.find()?, None, status))
}

/// MPI_Sendrecv_replace.
pub fn sendrecv_replace(
    buf: Buffer<'_>,
    dest: c_int,
    send_tag: c_int,
    source: c_int,
    recv_tag: c_int,
    comm: CommHandle<'_>,
    status: StatusOut<'_>,
) -> Result<()> {
    let (send, recv) = (End { buf, peer: dest, tag: send_tag }, End { buf, peer: source, tag: recv_tag });
    one_by_one(&send, &recv, comm, status).unwrap_or_else(|| {
        let copy = packed(buf)?;
        run(&send, &recv, comm.find()?, Some(&copy), status)
    })
}

/// MPI_Isendrecv.
pub fn isendrecv(
    from: Buffer<'_>,
    dest: c_int,
    send_tag: c_int,
    to: Buffer<'_>,
    source: c_int,
    recv_tag: c_int,
    comm: &Comm,
) -> Result<MPI_Request> {
    let (send, recv) =
        (End { buf: from, peer: dest, tag: send_tag }, End { buf: to, peer: source, tag: recv_tag });
    start_task(&send, &recv, comm, None)
}

/// MPI_Isendrecv_replace.
pub fn isendrecv_replace(
    buf: Buffer<'_>,
    dest: c_int,
    send_tag: c_int,
    source: c_int,
    recv_tag: c_int,
    comm: &Comm,
) -> Result<MPI_Request> {
    let copy = packed(buf)?;
    let (send, recv) = (End { buf, peer: dest, tag: send_tag }, End { buf, peer: source, tag: recv_tag });
    start_task(&send, &recv, comm, Some(copy))
}
