//! Peers that are killed at any moment, and memory that somebody writes anything into.

use crate::node::{Node, Said};
use crate::{Other, pattern, two};
use perusal_fi::api::*;
use std::os::unix::fs::FileExt;
use std::time::{Duration, Instant};

const SIZES: [usize; 5] = [8, 16 << 10, 40_000, 1 << 20, 4 << 20];

/// The next completion with this context, if it comes within a minute.
fn end_of(node: &Node, context: usize) -> Said {
    let start = Instant::now();
    loop {
        let said = node.read();
        if matches!(said, Said::Done(which, ..) | Said::Failed(which, _) if which == context) {
            return said;
        }
        assert!(start.elapsed() < Duration::from_secs(60), "no end of operation {context}");
    }
}

/// One endpoint outlives one peer after the other, each killed while messages go both ways.
#[test]
fn peers_that_are_killed_at_any_moment_end_what_is_under_way() {
    let node = Node::new();
    let mut back = vec![0; 4 << 20];
    for round in 0..12_u64 {
        let mut other = Other::start("echo");
        let to = other.meet(&node);
        let killer = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_micros(500 + 1700 * round));
            drop(other);
        });
        let error = (0..).find_map(|at| {
            let bytes = pattern(SIZES[(at + round as usize) % SIZES.len()], round);
            node.receive(&mut back, to, 0, u64::MAX, 3);
            let error = node.send(&bytes, to, 1, 0, 4);
            let ended = if error == 0 { end_of(&node, 4) } else { Said::Failed(4, -error as i32) };
            // The answer is not waited for: a peer that is gone sends none.
            node.cancel(3);
            match ended {
                Said::Failed(_, error) => Some(error),
                Said::Done(..) => None,
            }
        });
        assert!([Some(FI_ESHUTDOWN), Some(FI_EHOSTUNREACH)].contains(&error), "round {round}: {error:?}");
        killer.join().expect("a thread");
        while node.read_now().is_some() {}
    }
    // What has met so many ends still works.
    let other = Node::new();
    let (to, from) = (node.insert(&other.name()), other.insert(&node.name()));
    other.receive(&mut back, from, 1, 0, 5);
    assert_eq!(node.send(&[7; 8], to, 1, 0, 6), 0);
    assert!(matches!(end_of(&other, 5), Said::Done(5, _, 8, ..)));
}

/// Whatever is written into an endpoint's memory, its calls and those of its peers return, and other endpoints go on.
#[test]
fn anything_written_into_the_memory_is_survived() {
    let mut state = 0x2545_f491_4f6c_dd1d_u64;
    let mut random = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    for _ in 0..40 {
        let (a, b, to_b, from_a) = two();
        let (bytes, mut buffer) = (pattern(100_000, 1), vec![0; 100_000]);
        b.receive(&mut buffer, from_a, 1, 0, 1);
        for size in [8, 3000, 100_000] {
            assert_eq!(a.send(&bytes[..size], to_b, 0, 0, 2), 0);
        }
        b.read_now();
        let name = b.name();
        let fd: u32 = name.split('.').nth(1).expect("a descriptor").parse().expect("a number");
        let memory = std::fs::File::options().write(true).open(format!("/proc/self/fd/{fd}"));
        let memory = memory.expect("this process's own memory");
        for _ in 0..200 {
            // The head and the first slots, or the doorbells and the first rings.
            let at = if random() % 2 == 0 { random() % 1024 } else { random() % (3 << 20) } & !3;
            let value = match random() % 3 {
                0 => random() % 4,
                1 => u64::from(u32::MAX) - random() % 4,
                _ => random(),
            };
            memory.write_all_at(&value.to_le_bytes(), at).expect("room");
            a.send_now(&bytes[..(random() % 20_000) as usize], to_b, random(), 0, 2);
            a.read_now();
            b.read_now();
        }
    }
    let (a, b, to_b, from_a) = two();
    let mut buffer = [0; 8];
    b.receive(&mut buffer, from_a, 1, 0, 1);
    assert_eq!(a.send(&[5; 8], to_b, 1, 0, 2), 0);
    assert!(matches!(b.read(), Said::Done(1, ..)));
}
