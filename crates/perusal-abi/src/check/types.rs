//! The types of messages (MPI 5.0 §3.3.1): that in which a message is sent, compared with that in which it is received.
//! And whether the receive of a message in ready mode was there when it was sent (MPI 5.0 §3.4).
//!
//! A message is known by its communicator, sender, receiver and tag, and by its number among those: they are matched in
//! the order in which they were sent (MPI 5.0 §3.5). A sender leaves the type in the job's table, and the receiver
//! takes it there when the message is matched; events say when that is. Where threads send at once, their messages with
//! one tag may be numbered in another order than they are sent; but their receiver cannot know which is which, and
//! so they have one type.

use super::requests::Live;
use super::{function, is_on, report, with};
use crate::arch::clock::now;
use crate::coll::signature_table::{KeptText, MESSAGE_TEXT_BYTES, SentMessage};
use crate::comm::Comm;
use crate::datatype::Datatype;
use crate::engine::Engine;
use crate::error::Error;
use crate::events::{Event, EventPayload, EventRecord, EventSet, GlobalSubscription, Operation, Spec};
use crate::process::engine;
use crate::{comms, datatypes};
use core::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::sync::Arc;

/// What the sender of a message has said of it.
type Kept = SentMessage<KeptText>;

/// What a message is by its sender: the handle of its type, its bytes, the function.
type Sent = (usize, u64, &'static str);

/// Messages of one communicator, direction, peer and tag: a number of the context, whether this rank sends, the peer's
/// rank in the job, the tag.
type Stream = (u32, bool, u32, i32);

/// What is known of messages of this process.
#[derive(Default)]
pub struct Messages {
    /// Messages of each stream that have been sent, or matched.
    numbers: HashMap<Stream, u64>,
    /// The last message of a predefined type, and the type and text that it has in the table.
    said: Option<(Sent, (u64, String))>,
    /// The types of messages that matched probes have taken, by the handle of the message.
    probed: HashMap<usize, Kept>,
    /// Messages whose type could not be kept.
    pub unknown: u64,
}

impl Messages {
    /// A communicator has been freed; another one may get its context id.
    pub fn forget(&mut self, context: u32) {
        self.numbers.retain(|stream, _| stream.0 != context);
    }
}

thread_local! {
    /// The receive that has just found an unexpected message, whose removal from the queue follows.
    static FINDS: Cell<Option<Spec>> = const { Cell::new(None) };
    /// The receive that this thread has begun last: its communicator, its buffer, and when that was.
    static BEGUN: Cell<Option<(usize, usize, u64)>> = const { Cell::new(None) };
    /// The stream of the message that the call of this thread has sent last.
    static LAST: Cell<Option<Stream>> = const { Cell::new(None) };
    /// The type of the message that a matched probe of this thread has just taken.
    static TAKEN: RefCell<Option<Kept>> = const { RefCell::new(None) };
    /// The type of the message that the matched receive of this thread is about to receive.
    static MATCHED: RefCell<Option<Kept>> = const { RefCell::new(None) };
}

/// Compares the types of messages from now on. What this returns must stay.
pub fn watch(engine: &Engine) -> GlobalSubscription {
    let events: EventSet =
        [Event::ReqActivate, Event::MsgMatchPostedReq, Event::ReqMatchUnex, Event::MsgRemoveFromUnexQ]
            .into_iter()
            .collect();
    engine.registry().subscribe_globally(events, Arc::new(happened))
}

/// A matched probe has given a message this handle.
pub fn probed(handle: usize) {
    if let Some(sent) = TAKEN.take() {
        with(|state| state.messages.probed.insert(handle, sent));
    }
}

/// The message of this handle is about to be received.
pub fn claimed(handle: usize) {
    if is_on() {
        MATCHED.replace(with(|state| state.messages.probed.remove(&handle)).flatten());
    }
}

/// A request is about to be cancelled. Of a send its receiver cannot know which of several messages it was.
pub fn cancelled(handle: usize) {
    let table = with(|state| {
        state.requests.cancelled(handle);
        if state.requests.receives(handle) { None } else { state.collectives.table() }
    });
    if let Some(table) = table.flatten() {
        table.stop_messages();
    }
}

/// This thread begins a call.
pub fn entered() {
    LAST.set(None);
}

/// The call of this thread has failed. For want of memory a message is not sent that has been counted.
pub fn call_failed(error: &Error) {
    if is_on()
        && matches!(error, Error::BsendSpace { .. } | Error::Segment(_) | Error::NoMem(_))
        && let Some(stream) = LAST.take()
    {
        with(|state| {
            if let Some(number) = state.messages.numbers.get_mut(&stream) {
                *number -= 1;
            }
        });
    }
}

/// A message is sent or matched.
fn happened(record: &EventRecord<'_>) {
    let spec = record.spec;
    // Messages of the library's own have odd contexts.
    if !is_on() || !record.context.is_multiple_of(2) {
        return;
    }
    match record.event {
        Event::ReqActivate if matches!(record.payload, EventPayload::Partitioned) => {}
        Event::ReqActivate if spec.operation == Operation::Recv => {
            // No other one that is active has the same buffer, if there is a buffer.
            BEGUN.set((spec.bytes > 0).then(|| (spec.comm, spec.buf.addr(), now())));
        }
        _ if spec.peer < 0 => {}
        Event::ReqActivate => sent(record.context, spec, record.id.cast_unsigned()),
        Event::MsgMatchPostedReq => {
            if let Some(sent) = taken(record.context, spec) {
                compare(spec, &sent);
                let of_this = BEGUN.get().filter(|begun| (begun.0, begun.1) == (spec.comm, spec.buf.addr()));
                if of_this.is_some_and(|(_, _, begun)| begun > sent.ready) {
                    say_late(spec, &sent);
                }
            }
        }
        Event::ReqMatchUnex => match MATCHED.take() {
            Some(sent) => {
                compare(spec, &sent);
                say_late(spec, &sent);
            }
            None => FINDS.set(Some(*spec)),
        },
        Event::MsgRemoveFromUnexQ => {
            let sent = taken(record.context, spec);
            match (FINDS.take(), sent) {
                (Some(receive), Some(sent)) => {
                    compare(&receive, &sent);
                    say_late(&receive, &sent);
                }
                (Some(_), None) => {}
                // A matched probe.
                (None, sent) => drop(TAKEN.replace(sent)),
            }
        }
        _ => {}
    }
}

/// The communicator of an event, and its peer's rank in the job, if that is of this job.
fn peer(engine: &Engine, spec: &Spec) -> Option<(Arc<Comm>, u32)> {
    let comm = comms::get(spec.comm).ok()?;
    let world = comm.has_peer(spec.peer).then(|| comm.world_rank_of(spec.peer))?;
    (!engine.is_guest(world)).then_some((comm, world))
}

/// The key of the next message of a stream in the job's table.
fn next(messages: &mut Messages, (from, to): (u32, u32), stream: Stream) -> u64 {
    let number = messages.numbers.entry(stream).or_default();
    *number += 1;
    let words = [u64::from(stream.0), u64::from(from) << 32 | u64::from(to), stream.3 as u64, *number];
    let mixed = words.into_iter().fold(0_u64, |key, word| {
        let mixed = (key ^ word ^ word >> 31).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        mixed ^ mixed >> 29
    });
    mixed | 1
}

/// Whether a function that this thread is in sends a message in ready mode, by the request of that number.
fn is_ready(requests: &Live, request: usize) -> bool {
    let function = match function() {
        "MPI_Start" | "MPI_Startall" => requests.maker(request).unwrap_or_default(),
        function => function,
    };
    matches!(function, "MPI_Rsend" | "MPI_Irsend" | "MPI_Rsend_init")
}

/// Leaves the type of a message for its receiver.
fn sent(context: u32, spec: &Spec, request: usize) {
    let Ok(engine) = engine() else { return };
    let Some((_, to)) = peer(engine, spec) else { return };
    let what = (spec.datatype, spec.bytes, function());
    with(|state| {
        let stream = (context, true, to, spec.tag);
        LAST.set(Some(stream));
        let key = next(&mut state.messages, (engine.rank(), to), stream);
        let said = state.messages.said.take().filter(|(other, _)| *other == what);
        let (what, (number, text)) = said.unwrap_or_else(|| (what, described(what)));
        let ready = if is_ready(&state.requests, request) { now() } else { 0 };
        let message = SentMessage { kind: number, ready, text: &*text };
        if !state.collectives.table().is_some_and(|table| table.put(key, message)) {
            state.messages.unknown += 1;
        }
        // A handle of the program's own may come to mean another type.
        let lasts = Datatype::predefined_ref(spec.datatype).is_some();
        state.messages.said = lasts.then_some((what, (number, text)));
    });
}

/// The type of so many bytes that a function sends.
/// One that may stand for others, and that of no bytes, have the number 0.
fn described((datatype, bytes, function): Sent) -> (u64, String) {
    let Ok(datatype) = datatypes::any(datatype) else { return (0, String::new()) };
    let bytes = bytes as usize;
    let mut text = format!("{function}|{}", datatype.contents_text(bytes));
    text.truncate(text.floor_char_boundary(MESSAGE_TEXT_BYTES));
    (datatype.sequence_number(bytes).unwrap_or(0), text)
}

/// Takes the type of the message that has just been matched.
fn taken(context: u32, spec: &Spec) -> Option<Kept> {
    let engine = engine().ok()?;
    let (_, from) = peer(engine, spec)?;
    with(|state| {
        let key = next(&mut state.messages, (from, engine.rank()), (context, false, from, spec.tag));
        state.collectives.table()?.take(key)
    })?
}

/// Says where a message was sent in another type than that of its receive. Of one that ends within an element of that,
/// the end of the receive says so.
fn compare(receive: &Spec, sent: &Kept) {
    let Ok(engine) = engine() else { return };
    let Some((comm, from)) = peer(engine, receive) else { return };
    let Ok(datatype) = datatypes::any(receive.datatype) else { return };
    let bytes = receive.bytes as usize;
    if sent.kind == 0 || datatype.sequence_number(bytes).is_none_or(|own| own == sent.kind) {
        return;
    }
    let text = sent.text.to_string();
    let (by, what) = text.split_once('|').unwrap_or((A_SEND, &text));
    let finding = format!(
        "a message from rank {from}, tag {}, on {}, was sent by {by} as {what} and is received as {}; give the send and its receive the same type",
        receive.tag,
        report::name_of(&comm),
        datatype.contents_text(bytes)
    );
    with(|state| state.findings.say(finding));
}

/// What a message was sent by that says nothing of it.
const A_SEND: &str = "a send";

/// Says that a message in ready mode was sent before its receive began.
fn say_late(receive: &Spec, sent: &Kept) {
    if sent.ready == 0 {
        return;
    }
    let Ok(engine) = engine() else { return };
    let Some((comm, from)) = peer(engine, receive) else { return };
    let text = sent.text.to_string();
    let (by, _) = text.split_once('|').unwrap_or((A_SEND, ""));
    let finding = format!(
        "a message from rank {from}, tag {}, on {}, was sent by {by} in ready mode before its receive began; begin the receive first, or send in another mode",
        receive.tag,
        report::name_of(&comm),
    );
    with(|state| state.findings.say(finding));
}
