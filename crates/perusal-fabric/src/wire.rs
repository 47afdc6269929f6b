//! The records of the provider in the rings.
//!
//! | kind | envelope | payload |
//! |---|---|---|
//! | EAGER | tag, data | the message |
//! | RTS | tag, data | length, number of the send, where the bytes are (0: not in one piece) |
//! | CTS | number of the send | number of the receive, bytes wanted |
//! | DATA | number of the receive | the next bytes |
//! | FIN | number of the send | none: the message is received; in place of a CTS, and after an RTS that asks for it |
//!
//! EAGER and RTS carry in their kind whether the message is tagged, and whether it has data. Numbers come back from a peer, so they count only
//! for an operation with that peer.

use perusal::internals::ring::Header;

pub const EAGER: u8 = 1;
pub const RTS: u8 = 2;
pub const CTS: u8 = 3;
pub const DATA: u8 = 4;
pub const FIN: u8 = 5;
/// The bits of a kind that say which it is.
pub const KIND: u8 = 0x0f;
pub const TAGGED: u8 = 0x10;
pub const HAS_DATA: u8 = 0x20;
/// The sender of an RTS wants a FIN when the message is received.
pub const CONFIRM: u8 = 0x40;

/// The envelope of a message.
#[inline(always)]
pub fn envelope(kind: u8, tag: u64, data: u64) -> Header {
    Header {
        kind,
        context: (tag >> 32) as u32,
        tag: tag as i32,
        source: data as u32,
        id: (data >> 32) as u32,
    }
}

/// The tag of an envelope.
#[inline(always)]
pub fn tag(header: &Header) -> u64 {
    u64::from(header.context) << 32 | u64::from(header.tag.cast_unsigned())
}

/// The data of an envelope.
#[inline(always)]
pub fn data(header: &Header) -> u64 {
    u64::from(header.id) << 32 | u64::from(header.source)
}

/// A record of the protocols, which names an operation.
pub fn control(kind: u8, number: u32) -> Header {
    Header { kind, context: number, tag: 0, source: 0, id: 0 }
}

/// Words as a payload.
pub fn words<const N: usize>(words: [u64; N], to: &mut [u8]) {
    for (word, place) in words.iter().zip(to.chunks_exact_mut(8)) {
        place.copy_from_slice(&word.to_le_bytes());
    }
}

/// Word `at` of a payload; 0 if the payload is too short for it.
pub fn word(payload: &[u8], at: usize) -> u64 {
    payload.get(at * 8..at * 8 + 8).map_or(0, |bytes| u64::from_le_bytes(bytes.try_into().unwrap_or([0; 8])))
}
