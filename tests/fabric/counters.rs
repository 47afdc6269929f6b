//! Counters of bytes.

use crate::node::{Node, Opened, Said};
use crate::{both, pattern, two};
use perusal_fi::api::*;
use std::time::{Duration, Instant};

const ALL: u64 = FI_REMOTE_READ | FI_REMOTE_WRITE;

/// Reads a counter until it has this value, within a time that is a hang.
fn counts_up_to(counter: &Opened, value: u64) {
    let start = Instant::now();
    while counter.read_counter() < value {
        assert!(start.elapsed() < Duration::from_secs(900), "it stays at {}", counter.read_counter());
    }
    assert_eq!(counter.read_counter(), value);
}

/// A counter of the bytes of these operations of the endpoint.
fn bytes_of(node: &Node, operations: u64) -> Opened {
    let counter = node.counter_of_bytes();
    assert_eq!(node.bind(&counter, operations), 0);
    counter
}

#[test]
fn messages_of_all_lengths_are_counted_by_their_bytes() {
    let (a, b, to_b, from_a) = two();
    let (sent, received) = (bytes_of(&a, FI_SEND), bytes_of(&b, FI_RECV));
    let mut room = vec![0; 1 << 20];
    let mut bytes = 0;
    for (at, size) in [0, 8, 16 << 10, 40_000, 1 << 20].into_iter().enumerate() {
        let message = pattern(size, at as u64);
        b.receive(&mut room, from_a, 1, 0, 1);
        // Those of several pieces go through the ring.
        assert_eq!(a.send_pieces(&message, to_b, 1, 0, 2), 0);
        both(&a, &b);
        b.receive(&mut room, from_a, 1, 0, 1);
        assert_eq!(a.send(&message, to_b, 1, 0, 2), 0);
        both(&a, &b);
        bytes += 2 * size as u64;
        assert_eq!((sent.read_counter(), received.read_counter()), (bytes, bytes));
    }
    // An error counts as one, and adds no bytes.
    b.receive(&mut room[..4], from_a, 1, 0, 1);
    assert_eq!(a.send(&[1; 8], to_b, 1, 0, 2), 0);
    assert!(matches!(both(&a, &b), (Said::Done(2, ..), Said::Failed(1, FI_ETRUNC))));
    assert_eq!((sent.read_counter(), sent.read_counter_errors()), (bytes + 8, 0));
    assert_eq!((received.read_counter(), received.read_counter_errors()), (bytes, 1));
    drop((a, b));
    [sent, received].iter().for_each(|one| assert_eq!(one.try_close(), 0));
}

#[test]
fn accesses_are_counted_by_their_bytes_at_both_ends() {
    let (a, b) = (Node::new(), Node::new());
    let to = a.insert(&b.name());
    let (reads, writes) = (bytes_of(&a, FI_READ), bytes_of(&a, FI_WRITE));
    let (theirs, written) = (bytes_of(&b, FI_REMOTE_READ), bytes_of(&b, FI_REMOTE_WRITE));
    let mut memory = vec![0_u64; 1 << 14];
    let len = memory.len() * 8;
    let registered = b.register(memory.as_mut_ptr().cast(), len, ALL, 1).expect("a registration");
    let end = || {
        let start = Instant::now();
        while a.read_now().is_none_or(|said| !matches!(said, Said::Done(11, ..))) {
            b.read_now();
            assert!(start.elapsed() < Duration::from_secs(900), "no completion");
        }
    };
    let mut buffer = vec![1_u8; len];
    let mut bytes = 0;
    for size in [8, 16 << 10, 100_000] {
        assert_eq!(a.access(true, buffer.as_mut_ptr(), size, to, 0, 1), 0);
        end();
        assert_eq!(
            a.write_pieces(&[&buffer[..3], &buffer[3..size]], to, &[RmaIov { addr: 0, len: size, key: 1 }]),
            0
        );
        end();
        for _ in 0..2 {
            assert_eq!(a.access(false, buffer.as_mut_ptr(), size, to, 0, 1), 0);
            end();
        }
        bytes += 2 * size as u64;
        [&reads, &writes, &theirs, &written].iter().for_each(|counter| counts_up_to(counter, bytes));
    }
    // What brings values back is a read, and what writes alone a write.
    let mut old = [0; 3];
    assert_eq!(a.fetch(&[1; 3], &mut old, to, 0, 1, 2), 0);
    end();
    counts_up_to(&reads, bytes + 24);
    counts_up_to(&theirs, bytes + 24);
    assert_eq!(a.add_atomically(&1, to, 1, FI_COMPLETION), 0);
    end();
    counts_up_to(&writes, bytes + 8);
    counts_up_to(&written, bytes + 8);
    drop(registered);
    drop((a, b));
    [reads, writes, theirs, written].iter().for_each(|one| assert_eq!(one.try_close(), 0));
}
