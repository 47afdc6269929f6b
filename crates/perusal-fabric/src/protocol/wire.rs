//! The records of the provider in the rings.
//!
//! | kind | envelope | payload |
//! |---|---|---|
//! | EAGER | tag, data | the message |
//! | NUMBERED | tag, data | number of the send, the message: its sender wants a FIN when the peer's endpoint has it |
//! | RTS | tag, data | length, number of the send, where the bytes are (0: not in one piece; from another node 1: the core provider can take them from there), how often the sender has ended announced sends |
//! | CTS | number of the send | number of the receive, bytes wanted, the core provider's tag for them (0: they are to come as DATA) |
//! | DATA | number of the receive | the next bytes |
//! | FIN | number of the send | the error, 0: the message is received, the access is performed; in place of a CTS, and after a NUMBERED or an RTS that asks for it |
//! | WRITE | pieces, data | number of the send, length, where the bytes are (0: not in one piece), the pieces, the bytes if the kind says so |
//! | READ | pieces | number of the receive, the pieces |
//! | ATOMIC | pieces, data | number of the receive or send, type and operation, the pieces, operand, values to compare |
//! | REGION | none | a key, and what is known of it: generation, addresses from, memory at, length, access |
//! | FAIL | number of the receive | the error: nothing (more) comes |
//! | SHARE | number of the send, turn | number of the receive, where the bytes go, how many: both sides copy |
//! | FILLED | number of the receive | bytes that the sender has copied there, the error or 0 |
//! | NOTICE | none, data | FI_REMOTE_READ or FI_REMOTE_WRITE, length, the key of each piece: the sender has accessed this process's memory itself |
//!
//! EAGER, NUMBERED and RTS carry in their kind whether the message is tagged, and whether it has data; accesses,
//! whether bytes follow, whether there is data, and whether the origin wants to know the region. A piece is three
//! words: address, length, key. What is read, and what a fetching atomic operation found, comes as DATA. Numbers come
//! back from a peer, so they count only for an operation with that peer.

use crate::api::FI_EOTHER;
use crate::operands::region::Remote;
use perusal::internals::ring::Header;

pub const EAGER: u8 = 1;
pub const RTS: u8 = 2;
pub const CTS: u8 = 3;
pub const DATA: u8 = 4;
pub const FIN: u8 = 5;
pub const WRITE: u8 = 6;
pub const READ: u8 = 7;
pub const ATOMIC: u8 = 8;
pub const REGION: u8 = 9;
pub const FAIL: u8 = 10;
pub const NOTICE: u8 = 11;
pub const SHARE: u8 = 12;
pub const FILLED: u8 = 13;
pub const NUMBERED: u8 = 14;
/// The bits of a kind that say which it is.
pub const KIND: u8 = 0x0f;
pub const TAGGED: u8 = 0x10;
pub const HAS_DATA: u8 = 0x20;
/// The sender of an RTS wants a FIN when the message is received.
pub const CONFIRM: u8 = 0x40;
/// Of a WRITE: the bytes follow. Of an ATOMIC: the old values come back.
pub const INLINE: u8 = 0x10;
/// The origin of an access wants to know the region.
pub const TELL: u8 = 0x40;

/// Words of a piece.
const PIECE: usize = 3;

/// An access: how many pieces it has, and its data.
pub fn access(kind: u8, pieces: usize, data: u64) -> Header {
    Header { tag: pieces as i32, ..envelope(kind, 0, data) }
}

/// Bytes of words and pieces at the beginning of an access.
pub fn access_bytes(words: usize, pieces: usize) -> usize {
    8 * (words + PIECE * pieces)
}

/// Writes words and pieces. Returns the rest of the payload.
pub fn put_access<'a, const N: usize>(own: [u64; N], pieces: &[Remote], to: &'a mut [u8]) -> &'a mut [u8] {
    let (head, rest) = to.split_at_mut(access_bytes(N, pieces.len()));
    words(own, head);
    for (at, piece) in pieces.iter().enumerate() {
        words([piece.addr, piece.len as u64, piece.key], &mut head[access_bytes(N, at)..]);
    }
    rest
}

/// Reads the pieces behind `words` words, and what follows; `None` if the payload is too short for them.
pub fn take_access<'a>(
    header: &Header,
    payload: &'a [u8],
    words: usize,
    limit: usize,
) -> Option<(Vec<Remote>, &'a [u8])> {
    let count = usize::try_from(header.tag).ok().filter(|count| (1..=limit).contains(count))?;
    let rest = payload.get(access_bytes(words, count)..)?;
    let piece = |at| {
        let first = words + PIECE * at;
        let len = usize::try_from(word(payload, first + 1)).ok()?;
        Some(Remote { addr: word(payload, first), len, key: word(payload, first + 2) })
    };
    Some(((0..count).map(piece).collect::<Option<_>>()?, rest))
}

/// The bits of a message's kind.
#[inline(always)]
pub fn bits(tag: Option<u64>, data: Option<u64>) -> u8 {
    let tagged = if tag.is_some() { TAGGED } else { 0 };
    tagged | if data.is_some() { HAS_DATA } else { 0 }
}

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
pub fn control(kind: u8, number: u64) -> Header {
    Header { kind, context: number as u32, tag: 0, source: 0, id: (number >> 32) as u32 }
}

/// The number of the operation that a record of the protocols names.
pub fn number(header: &Header) -> u64 {
    u64::from(header.id) << 32 | u64::from(header.context)
}

/// Words as a payload.
pub fn words<const N: usize>(words: [u64; N], to: &mut [u8]) {
    for (word, place) in words.iter().zip(to.chunks_exact_mut(8)) {
        place.copy_from_slice(&word.to_le_bytes());
    }
}

/// The number of an error as a payload: 0, or one of those that there are.
pub fn error(payload: &[u8]) -> i32 {
    let number = i32::try_from(word(payload, 0)).unwrap_or(FI_EOTHER);
    if (0..4096).contains(&number) { number } else { FI_EOTHER }
}

/// Word `at` of a payload; 0 if the payload is too short for it.
pub fn word(payload: &[u8], at: usize) -> u64 {
    payload.get(at * 8..at * 8 + 8).map_or(0, |bytes| u64::from_le_bytes(bytes.try_into().unwrap_or([0; 8])))
}
