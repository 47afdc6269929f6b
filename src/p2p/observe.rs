//! Where events are raised: what a request or a message says of itself (PERUSE 2.0 §4.3, §5.1.2).

use super::channel::Channel;
use crate::abi;
use crate::events::{Event, Operation as EventOperation, Spec};
use crate::matching::Envelope;
use crate::request::{Body, Operation, Ref};

/// What events say of a request: what the user gave; of a matched receive, the real peer and tag.
pub(crate) fn spec_of(channel: &Channel, body: &Body) -> Spec {
    Spec {
        comm: channel.handle(),
        buf: body.user.0.cast(),
        count: body.count as i64,
        datatype: body.user.1,
        peer: body.peer,
        tag: body.tag,
        operation: match body.operation {
            Operation::Send => EventOperation::Send,
            Operation::Receive => EventOperation::Recv,
        },
    }
}

/// Raises a request's event.
#[inline(always)]
pub(crate) fn request_event(channel: &Channel, request: Ref, event: Event) {
    channel.raise(event, request.id() as isize, || {
        // SAFETY: request rule 2: events of a request are raised by who has its body; the caller holds no reference
        // that it writes through meanwhile.
        spec_of(channel, unsafe { request.body() })
    });
}

/// What events say of a message that no receive is known for.
pub(crate) fn message_spec(channel: &Channel, envelope: &Envelope, bytes: usize) -> Spec {
    Spec {
        comm: channel.handle(),
        buf: core::ptr::null_mut(),
        count: bytes as i64,
        datatype: abi::MPI_BYTE,
        peer: envelope.source as i32,
        tag: envelope.tag,
        operation: EventOperation::Recv,
    }
}

/// Raises a message's event.
#[inline(always)]
pub(crate) fn message_event(channel: &Channel, id: isize, event: Event, envelope: &Envelope, bytes: usize) {
    channel.raise(event, id, || message_spec(channel, envelope, bytes));
}
