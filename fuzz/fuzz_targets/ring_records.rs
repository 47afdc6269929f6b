//! A ring beside a hostile peer: whatever its memory holds, the consumer hands out records within it or reports
//! [`Corrupt`], and the producer keeps to its side.
//!
//! The ring lies over a heap block of its exact size, so that AddressSanitizer sees a step outside. Until the first
//! hostile write the records that come out must be the ones that went in.
#![no_main]

use libfuzzer_sys::{arbitrary, arbitrary::Arbitrary, fuzz_target};
use perusal::ring::{Consumer, Header, INLINE, MappedRing, Producer};
use std::collections::VecDeque;
use std::ptr::NonNull;

#[derive(Debug, Arbitrary)]
enum Act {
    /// An honest record of that many bytes; more than a record may have is cut.
    Push {
        kind: u8,
        context: u32,
        tag: i32,
        source: u32,
        id: u32,
        len: u16,
    },
    Poll,
    Publish,
    Watch(bool),
    Bells,
    /// The peer commits what it likes where the consumer looks next.
    Forge {
        kind: u8,
        len: u32,
    },
    /// The peer writes anywhere: control words, cells, payloads.
    Write {
        at: u16,
        word: u64,
    },
}

#[derive(Debug, Arbitrary)]
struct Input {
    cells: u8,
    bulk: u8,
    acts: Vec<Act>,
}

#[derive(Clone, Copy)]
#[repr(align(128))]
struct Block(#[expect(dead_code, reason = "only its bytes, by pointer")] [u8; 128]);

/// The payload of the `serial`th record.
fn payload(serial: u64, len: usize) -> Vec<u8> {
    (0..len as u64).map(|i| (serial.wrapping_mul(31) ^ i.wrapping_mul(7)) as u8).collect()
}

struct Scene {
    memory: NonNull<u8>,
    bytes: usize,
    bulk: usize,
    cells: usize,
    producer: Producer<MappedRing>,
    consumer: Consumer<MappedRing>,
    /// What must come out; `None` once the peer wrote.
    expected: Option<VecDeque<(Header, Vec<u8>)>>,
    polled: u64,
    pushed: u64,
    spoiled: bool,
}

impl Scene {
    fn push(&mut self, header: Header, len: usize) {
        let bytes = payload(self.pushed, len);
        if self.producer.try_push(&header, len, |to| to.copy_from_slice(&bytes)) {
            self.pushed += 1;
            if let Some(expected) = &mut self.expected {
                expected.push_back((header, bytes));
            }
        }
    }

    fn poll(&mut self) {
        // The consumer's contract: after a corrupt record the ring is not polled again.
        if self.spoiled {
            return;
        }
        match self.consumer.poll(|header, bytes| (*header, bytes.to_vec())) {
            Err(corrupt) => {
                assert!(self.expected.is_none(), "an honest ring is no corrupt one: {corrupt:?}");
                self.spoiled = true;
            }
            Ok(None) => assert!(self.expected.as_ref().is_none_or(VecDeque::is_empty), "a record is missing"),
            Ok(Some(record)) => {
                assert!(record.1.len() <= INLINE.max(self.bulk / 4));
                self.polled += 1;
                if let Some(expected) = &mut self.expected {
                    assert_eq!(Some(record), expected.pop_front());
                }
            }
        }
    }

    /// Eight bytes of the ring by the peer's hand.
    fn write(&mut self, at: usize, word: u64) {
        let at = at % (self.bytes / 8) * 8;
        self.expected = None;
        // SAFETY: `at + 8 <= bytes`, aligned; nothing else runs, and no reference into the block is held.
        unsafe { self.memory.add(at).cast::<u64>().write(word) };
    }

    fn forge(&mut self, kind: u8, len: u32) {
        let control = MappedRing::bytes(self.cells, 0) - self.cells * 64;
        let cell = control + self.polled as usize % self.cells * 64;
        let sequence = u64::from((self.polled as u32).wrapping_add(1));
        self.write(cell / 8, sequence | u64::from(kind) << 32 | u64::from(len) << 40);
    }

    fn act(&mut self, act: Act) {
        match act {
            Act::Push { kind, context, tag, source, id, len } => {
                let len = usize::from(len) % (self.producer.max_payload().max(INLINE) + 1);
                self.push(Header { kind, context, tag, source, id }, len);
            }
            Act::Poll => self.poll(),
            Act::Publish => _ = self.consumer.return_credit(),
            Act::Watch(true) => self.consumer.disable_notification(),
            Act::Watch(false) => self.consumer.enable_notification(),
            Act::Bells => {
                self.producer.must_notify();
                self.producer.want_credit();
                self.consumer.credit_wanted();
            }
            Act::Forge { kind, len } => self.forge(kind, len),
            Act::Write { at, word } => self.write(usize::from(at), word),
        }
    }
}

fuzz_target!(|input: Input| {
    let cells = 2 << (input.cells % 5);
    let bulk = 256 << (input.bulk % 5);
    let bytes = MappedRing::bytes(cells, bulk);
    let mut blocks = vec![Block([0; 128]); bytes / 128];
    assert_eq!(size_of_val(blocks.as_slice()), bytes, "the block is the ring, to the byte");
    let memory = NonNull::from(blocks.as_mut_slice()).cast::<u8>();
    // SAFETY: `blocks` lives to the end, is aligned, zeroed, of that size, and used by nobody else from here on.
    let ring = unsafe { MappedRing::new(memory, cells, bulk) };
    let (mut producer, mut consumer) = (Producer::new(ring), Consumer::new(ring));
    if input.bulk >= 128 {
        (producer, consumer) = (producer.with_short_laps(), consumer.with_short_laps());
    }
    let mut scene = Scene {
        memory,
        bytes,
        bulk,
        cells,
        producer,
        consumer,
        expected: Some(VecDeque::new()),
        polled: 0,
        pushed: 0,
        spoiled: false,
    };
    for act in input.acts {
        scene.act(act);
    }
    for _ in 0..2 * cells {
        scene.poll();
    }
});
