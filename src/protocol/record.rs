//! What a record says: envelope, payload of an eager message, and the handshake of the other protocols.
//!
//! | kind | from → to | `id` names a request of | payload |
//! |---|---|---|---|
//! | `Eager` | sender → receiver | the sender (for cancelling) | the message |
//! | `EagerSynchronous` | sender → receiver | the sender | the message; wants `Matched` |
//! | `Matched` | receiver → sender | the sender | – |
//! | `First` | sender → receiver | the sender (for cancelling) | the size of a message whose fragments are the very next records, and what is known of its bytes |
//! | `Fragment` | sender → receiver | – | a fragment of that message, in order |
//! | `Rts` | sender → receiver | the sender | size, address or 0, place in the shared heap or 0, ticks for a KiB that the sender's ring takes or 0 with what is known of the message's bytes, which others are announced, and whether the place is still to be checked |
//! | `Cts` | receiver → sender | the sender | the receiver's request, bytes wanted, how many such messages may come unasked |
//! | `Data` | sender → receiver | the receiver | a part of the message, in order |
//! | `SplitCts` | receiver → sender | the sender | the receiver's request, address, where the sender's part begins, end |
//! | `SplitDone` | sender → receiver | the receiver | 1, or 0 if the sender could not; how many ticks it took |
//! | `HeapCts` | receiver → sender | the sender | the receiver's request, place of its buffer, size, turn of the cooperative copy or 0 for all by the sender |
//! | `HeapDone` | sender → receiver | the receiver | bytes that the sender has copied there |
//! | `Fin` | receiver → sender | the sender | how it was copied |
//! | `Cancel` | sender → receiver | the sender | – |
//! | `CancelReply` | receiver → sender | the sender | 1 if the message was still unmatched |
//!
//! A peer's bytes become a [`DecodedRecord`] here, once. What a record names (a request, a place in the shared heap, a
//! size that must fit) is checked by the protocol that it is for, where it looks that up.

use crate::engine::{Announced, CONTROL_BYTES, Contents, ControlPayload, Rts};

/// Kinds of record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Kind {
    Eager = 1,
    EagerSynchronous,
    Rts,
    Matched,
    Cts,
    Data,
    SplitCts,
    SplitDone,
    Fin,
    Cancel,
    CancelReply,
    First,
    Fragment,
    HeapCts,
    HeapDone,
}

impl Kind {
    const ALL: [Self; 15] = [
        Self::Eager,
        Self::EagerSynchronous,
        Self::Rts,
        Self::Matched,
        Self::Cts,
        Self::Data,
        Self::SplitCts,
        Self::SplitDone,
        Self::Fin,
        Self::Cancel,
        Self::CancelReply,
        Self::First,
        Self::Fragment,
        Self::HeapCts,
        Self::HeapDone,
    ];

    /// The kind with that number.
    #[inline(always)]
    pub fn of(number: u8) -> Option<Self> {
        Self::ALL.get(usize::from(number).wrapping_sub(1)).copied()
    }
}

/// A record of a handshake.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Control {
    /// With what [`crate::engine::CopyRates::fill_time`] says.
    Rts(Rts, u32),
    Matched,
    /// Clear to send the first `wanted` bytes, through the ring, to this request of the receiver; and so many messages
    /// `unasked` as [`crate::engine::CopyRates::invites`] says.
    Cts {
        receiver: u32,
        wanted: u64,
        unasked: u32,
    },
    /// Clear to write bytes `[split, end)` of the message behind `addr`, in the receiver's memory.
    SplitCts {
        receiver: u32,
        addr: u64,
        split: u64,
        end: u64,
    },
    /// The sender's part is over; `ticks` as [`crate::engine::timed`] says.
    SplitDone {
        copied: bool,
        ticks: u64,
    },
    /// Finished. `protocol` is the number that telemetry has for how the message was copied.
    Fin {
        protocol: u64,
    },
    Cancel,
    CancelReply {
        granted: bool,
    },
    /// The first record of a message in fragments, which has `total` bytes.
    First {
        total: u64,
        contents: Contents,
    },
    /// Clear to copy to `place` of the shared heap: the first `total` bytes of the message (turn 0), or what the sender
    /// claims of them in that turn.
    HeapCts {
        receiver: u32,
        place: u64,
        total: u64,
        turn: u32,
    },
    HeapDone {
        bytes: u64,
    },
}

impl Control {
    /// Its kind, and its words.
    fn encode(self) -> (Kind, [u64; 4]) {
        match self {
            Self::Rts(Rts { total, addr, place, is_unchecked, contents, others }, fill) => (
                Kind::Rts,
                [
                    total as u64,
                    addr,
                    place,
                    u64::from(fill)
                        | (contents as u64) << 32
                        | (others as u64) << 40
                        | u64::from(is_unchecked) << 48,
                ],
            ),
            Self::Matched => (Kind::Matched, [0; 4]),
            Self::Cts { receiver, wanted, unasked } => {
                (Kind::Cts, [receiver.into(), wanted, unasked.into(), 0])
            }
            Self::SplitCts { receiver, addr, split, end } => {
                (Kind::SplitCts, [receiver.into(), addr, split, end])
            }
            Self::SplitDone { copied, ticks } => (Kind::SplitDone, [copied.into(), ticks, 0, 0]),
            Self::Fin { protocol } => (Kind::Fin, [protocol, 0, 0, 0]),
            Self::Cancel => (Kind::Cancel, [0; 4]),
            Self::CancelReply { granted } => (Kind::CancelReply, [granted.into(), 0, 0, 0]),
            Self::First { total, contents } => (Kind::First, [total, contents as u64, 0, 0]),
            Self::HeapCts { receiver, place, total, turn } => {
                (Kind::HeapCts, [receiver.into(), place, total, turn.into()])
            }
            Self::HeapDone { bytes } => (Kind::HeapDone, [bytes, 0, 0, 0]),
        }
    }

    fn decode(kind: Kind, words: [u64; 4]) -> Option<Self> {
        let [first, second, third, fourth] = words;
        Some(match kind {
            Kind::Eager | Kind::EagerSynchronous | Kind::Data | Kind::Fragment => return None,
            Kind::Rts => {
                let (total, contents) = (usize::try_from(first).ok()?, Contents::of(fourth >> 32 & 0xff)?);
                let (others, unchecked) = (Announced::of(fourth >> 40 & 0xff)?, fourth >> 48);
                let is_unchecked = match unchecked {
                    0 => false,
                    1 => true,
                    _ => return None,
                };
                let rts = Rts { total, addr: second, place: third, is_unchecked, contents, others };
                Self::Rts(rts, fourth as u32)
            }
            Kind::Matched => Self::Matched,
            Kind::Cts => Self::Cts { receiver: first as u32, wanted: second, unasked: third as u32 },
            Kind::SplitCts => {
                Self::SplitCts { receiver: first as u32, addr: second, split: third, end: fourth }
            }
            Kind::SplitDone => Self::SplitDone { copied: first == 1, ticks: second },
            Kind::Fin => Self::Fin { protocol: first },
            Kind::Cancel => Self::Cancel,
            Kind::CancelReply => Self::CancelReply { granted: first == 1 },
            Kind::First => Self::First { total: first, contents: Contents::of(second)? },
            Kind::HeapCts => {
                Self::HeapCts { receiver: first as u32, place: second, total: third, turn: fourth as u32 }
            }
            Kind::HeapDone => Self::HeapDone { bytes: first },
        })
    }

    /// Its kind, and its payload in the ring.
    pub fn write(self) -> (Kind, ControlPayload) {
        let (kind, words) = self.encode();
        let mut payload = [0; CONTROL_BYTES];
        for (word, bytes) in words.iter().zip(payload.chunks_exact_mut(8)) {
            bytes.copy_from_slice(&word.to_le_bytes());
        }
        (kind, payload)
    }
}

/// A record that a peer has sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DecodedRecord<'a> {
    /// A message with its payload.
    Eager {
        data: &'a [u8],
        synchronous: bool,
    },
    /// A fragment of the message under way.
    Fragment(&'a [u8]),
    /// A part of a message that the receiver is clear for.
    Data(&'a [u8]),
    Control(Control),
}

impl<'a> DecodedRecord<'a> {
    /// Reads a record of kind number `kind` with payload `data`, whose missing words are zero.
    ///
    /// # Errors
    ///
    /// What makes no sense in it.
    #[inline]
    pub fn read(kind: u8, data: &'a [u8]) -> Result<Self, String> {
        let known = Kind::of(kind).ok_or_else(|| format!("unknown kind of record {kind}"))?;
        Ok(match known {
            Kind::Eager => Self::Eager { data, synchronous: false },
            Kind::EagerSynchronous => Self::Eager { data, synchronous: true },
            Kind::Fragment => Self::Fragment(data),
            Kind::Data => Self::Data(data),
            _ => {
                let words = words(data);
                let control = Control::decode(known, words);
                Self::Control(control.ok_or_else(|| format!("a record of kind {kind} that says {words:?}"))?)
            }
        })
    }
}

/// The words of a record's payload; missing ones are zero.
fn words(from: &[u8]) -> [u64; 4] {
    let mut words = [0; 4];
    for (word, bytes) in words.iter_mut().zip(from.chunks_exact(8)) {
        *word = u64::from_le_bytes(bytes.try_into().expect("chunks of eight"));
    }
    words
}

const _: () = assert!(CONTROL_BYTES <= crate::ring::INLINE);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_control_record_survives_the_ring() {
        let controls = [
            Control::Rts(
                Rts {
                    total: 1 << 40,
                    addr: u64::MAX,
                    place: 1 << 63,
                    is_unchecked: true,
                    contents: Contents::Changed,
                    others: Announced::There,
                },
                u32::MAX,
            ),
            Control::Matched,
            Control::Cts { receiver: u32::MAX, wanted: 12, unasked: 13 },
            Control::SplitCts { receiver: 1, addr: 2, split: 3, end: 4 },
            Control::SplitDone { copied: true, ticks: u64::MAX },
            Control::Fin { protocol: 5 },
            Control::Cancel,
            Control::CancelReply { granted: true },
            Control::First { total: 6, contents: Contents::Changed },
            Control::HeapCts { receiver: 7, place: 8, total: 9, turn: 10 },
            Control::HeapDone { bytes: 11 },
        ];
        for control in controls {
            let (kind, payload) = control.write();
            assert_eq!(DecodedRecord::read(kind as u8, &payload), Ok(DecodedRecord::Control(control)));
        }
        let mut neither = [0; CONTROL_BYTES];
        neither[CONTROL_BYTES - 2] = 2;
        assert!(DecodedRecord::read(Kind::Rts as u8, &neither).is_err(), "a place is checked, or is not");
        let cut_off = DecodedRecord::read(Kind::Rts as u8, &[1; 15]);
        assert_eq!(
            cut_off,
            Ok(DecodedRecord::Control(Control::Rts(
                Rts {
                    total: 0x0101_0101_0101_0101,
                    addr: 0,
                    place: 0,
                    is_unchecked: false,
                    contents: Contents::Unknown,
                    others: Announced::Nothing
                },
                0
            )))
        );
    }

    #[test]
    fn kinds_are_what_they_say_and_nothing_else() {
        for number in 0..=u8::MAX {
            let kind = Kind::of(number);
            assert_eq!(kind.map(|kind| kind as u8), (1..=15).contains(&number).then_some(number));
            assert_eq!(DecodedRecord::read(number, &[0; CONTROL_BYTES]).is_ok(), kind.is_some());
        }
    }
}
