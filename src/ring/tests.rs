//! The ring against a queue that a reader can check by eye, and its boundaries one by one.

use super::*;
use crate::limits::rounds;
use std::collections::VecDeque;

const HEADER: Header = Header { kind: 7, context: 1, tag: -5, source: 3, id: 9 };

fn pair(cells: usize, bulk: usize) -> (Producer<HeapRing>, Consumer<HeapRing>) {
    let ring = HeapRing::new(cells, bulk);
    (Producer::new(ring.clone()), Consumer::new(ring))
}

/// One whose producer uses no more of the bulk area than it needs.
fn pair_in_short_laps(cells: usize, bulk: usize) -> (Producer<HeapRing>, Consumer<HeapRing>) {
    let (producer, consumer) = pair(cells, bulk);
    (producer.with_short_laps(), consumer.with_short_laps())
}

fn pop(consumer: &mut Consumer<HeapRing>) -> Option<(Header, Vec<u8>)> {
    let got = consumer.poll(|header, bytes| (*header, bytes.to_vec())).expect("no corruption here");
    consumer.return_credit();
    got
}

#[test]
fn a_new_ring_is_empty() {
    let (_, mut consumer) = pair(4, 1024);
    assert!(!consumer.ready());
    assert_eq!(pop(&mut consumer), None);
}

#[test]
fn an_inline_record_arrives_whole() {
    let (mut producer, mut consumer) = pair(4, 1024);
    assert!(producer.try_push(&HEADER, INLINE, |to| to.fill(42)));
    assert!(consumer.ready());
    assert_eq!(pop(&mut consumer), Some((HEADER, vec![42; INLINE])));
}

#[test]
fn a_full_ring_refuses_without_calling_fill() {
    let (mut producer, _consumer) = pair(4, 1024);
    for _ in 0..4 {
        assert!(producer.try_push(&HEADER, 0, |_| ()));
    }
    assert!(!producer.try_push(&HEADER, 0, |_| panic!("no room, nothing to fill")));
}

#[test]
fn a_drained_ring_always_takes_a_largest_record() {
    let (mut producer, mut consumer) = pair(8, 1024);
    let largest = producer.max_payload();
    let mut random = 88172645463325252_u64;
    for _ in 0..rounds(10_000) {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        let len = random as usize % (largest + 1);
        assert!(producer.try_push(&HEADER, len, |to| to.fill(len as u8)), "drained, so it fits");
        assert_eq!(pop(&mut consumer), Some((HEADER, vec![len as u8; len])));
        assert!(producer.try_push(&HEADER, largest, |to| to.fill(1)), "drained, so the largest fits");
        assert!(pop(&mut consumer).is_some());
    }
}

#[test]
fn a_panic_in_fill_commits_nothing() {
    let (mut producer, mut consumer) = pair(4, 1024);
    let fill = std::panic::AssertUnwindSafe(|| producer.try_push(&HEADER, 8, |_| panic!("half-written")));
    assert!(std::panic::catch_unwind(fill).is_err());
    assert_eq!(pop(&mut consumer), None);
}

#[test]
fn a_length_beyond_the_area_is_corrupt_and_nothing_is_read() {
    let (_, mut consumer) = pair(4, 1024);
    let hostile = record::commit_word(0, 1, record::MAX_LEN);
    consumer.storage().commit(0).store(hostile, crate::sync::Ordering::Release);
    let got = consumer.poll(|_, _| ());
    assert_eq!(got.unwrap_err().value, record::MAX_LEN as u64);
}

#[test]
fn a_run_hands_out_inline_records_up_to_the_first_that_is_something_else() {
    let (mut producer, mut consumer) = pair(16, 2048);
    let push = |producer: &mut Producer<HeapRing>, id: u32, len: usize| {
        assert!(producer.try_push(&Header { id, ..HEADER }, len, |to| to.fill(id as u8)));
    };
    for (id, len) in [(0, 0), (1, 8), (2, INLINE), (3, INLINE + 1), (4, 8), (5, 8), (6, 8)] {
        push(&mut producer, id, len);
    }
    let mut seen = Vec::new();
    let mut run = |consumer: &mut Consumer<HeapRing>, most: usize, refused: u32| {
        seen.clear();
        let taken = consumer.poll_batch(most, |header, data| {
            let takes = header.id != refused;
            if takes {
                assert!(data.iter().all(|&byte| byte == header.id as u8));
                seen.push((header.id, data.len()));
            }
            takes
        });
        assert_eq!(taken, seen.len());
        seen.clone()
    };
    assert_eq!(run(&mut consumer, 1, 99), [(0, 0)], "as many as were asked for");
    assert_eq!(run(&mut consumer, 9, 99), [(1, 8), (2, INLINE)], "the next has its payload elsewhere");
    assert_eq!(run(&mut consumer, 9, 99), []);
    assert_eq!(pop(&mut consumer).map(|(header, data)| (header.id, data.len())), Some((3, INLINE + 1)));
    assert_eq!(run(&mut consumer, 9, 5), [(4, 8)], "one that is refused stays");
    assert_eq!(run(&mut consumer, 9, 99), [(5, 8), (6, 8)]);
    assert_eq!(run(&mut consumer, 9, 99), [], "the ring is empty");
}

#[test]
fn a_stream_is_looked_at_from_a_distance_for_a_while() {
    let (mut producer, mut consumer) = pair(64, 2048);
    let mut push = |n: usize| {
        (0..n).for_each(|_| assert!(producer.try_push(&HEADER, 8, |to| to.fill(1)), "there is room"));
    };
    let take = |consumer: &mut Consumer<HeapRing>| {
        let taken = consumer.poll_batch(32, |_, _| true);
        consumer.return_credit();
        taken
    };
    push(7);
    assert!(consumer.should_take(100) && take(&mut consumer) == 7, "that is no stream yet");
    push(8);
    assert!(consumer.should_take(100) && take(&mut consumer) == 8);
    push(3);
    assert!(!consumer.should_take(4), "one that is hoped for is missing");
    assert!(consumer.should_take(3) && consumer.has_known(), "all that are hoped for are there");
    assert_eq!(take(&mut consumer), 3);
    push(20);
    assert!(consumer.should_take(100));
    assert_eq!(take(&mut consumer), 16, "what is behind those that were seen is left alone");
    assert!(!consumer.has_known() && consumer.should_take(4) && take(&mut consumer) == 4);
    push(2);
    let in_vain = (0..100).take_while(|_| !consumer.should_take(100)).count();
    assert_eq!(in_vain, 16, "then they are taken although more were hoped for");
    assert_eq!(take(&mut consumer), 2);
    push(1);
    assert!(consumer.should_take(100), "and the stream is over");
}

#[test]
fn who_hopes_for_nothing_sees_the_next_record_of_a_stream_at_once() {
    let (mut producer, mut consumer) = pair(64, 2048);
    for _ in 0..9 {
        assert!(producer.try_push(&HEADER, 8, |to| to.fill(1)));
    }
    assert_eq!(consumer.poll_batch(8, |_, _| true), 8);
    assert!(!consumer.should_take(2) && consumer.should_take(1) && consumer.should_take(0));
}

#[test]
fn random_operations_agree_with_a_plain_queue() {
    for (producer, consumer) in [pair(16, 2048), pair_in_short_laps(16, 2048)] {
        agree_with_a_plain_queue(producer, consumer);
    }
}

fn agree_with_a_plain_queue(mut producer: Producer<HeapRing>, mut consumer: Consumer<HeapRing>) {
    let mut oracle = VecDeque::new();
    let mut random = 0x9e37_79b9_7f4a_7c15_u64;
    let mut next = || {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        random
    };
    for step in 0..rounds(100_000) as u32 {
        let operation = next() % 100;
        if operation == 0 {
            let mut left = next() as usize % 700;
            if producer.room_for_fragments(left, 128) {
                while left > 0 {
                    let len = left.min(128);
                    assert!(producer.try_push(&HEADER, len, |to| to.fill(step as u8)), "there was room");
                    oracle.push_back((HEADER, vec![step as u8; len]));
                    left -= len;
                }
            }
        } else if operation < 50 {
            let len = match next() % 3 {
                0 => next() as usize % (INLINE + 1),
                1 => next() as usize % 100,
                _ => next() as usize % (producer.max_payload() + 1),
            };
            let header = Header { id: step, ..HEADER };
            if producer.try_push(&header, len, |to| to.fill(step as u8)) {
                oracle.push_back((header, vec![step as u8; len]));
            } else {
                assert!(!producer.room(len) && !oracle.is_empty(), "an empty ring is never full");
            }
        } else if operation < 75 {
            assert_eq!(pop(&mut consumer), oracle.pop_front());
        } else {
            let most = next() as usize % 5;
            let taken = consumer.poll_batch(most, |header, data| {
                assert_eq!(Some((*header, data.to_vec())), oracle.pop_front());
                true
            });
            consumer.return_credit();
            let left = taken < most && !oracle.is_empty();
            assert!(!left || oracle[0].1.len() > INLINE, "it stops at nothing else");
        }
    }
}

/// Where in the bulk area the producer writes a record of 100 bytes, if it has room for one.
fn place_of_next(producer: &mut Producer<HeapRing>) -> Option<usize> {
    let mut at = 0;
    let begin = producer.storage().write_bulk(0, 1, |bulk| bulk.addr());
    producer.try_push(&HEADER, 100, |to| at = to.as_ptr().addr()).then(|| at - begin)
}

#[test]
fn short_laps_use_what_the_consumer_leaves_unread() {
    let (mut producer, mut consumer) = pair_in_short_laps(1024, 16384);
    let mut furthest = |producer: &mut Producer<HeapRing>, ahead: usize, records: usize| {
        let places = (0..records).map(|_| {
            while producer.position() > consumer.position() + ahead as u64 {
                pop(&mut consumer);
            }
            place_of_next(producer).unwrap_or_else(|| {
                while pop(&mut consumer).is_some() {}
                place_of_next(producer).expect("a drained ring has room")
            })
        });
        places.max().expect("some records")
    };
    assert!(furthest(&mut producer, 0, 1000) <= 1024, "a sixteenth of the area, and one that begins there");
    assert!(furthest(&mut producer, 100, 1000) > 12_000, "as much as is unread, and more");
    furthest(&mut producer, 0, 100 * 1000);
    assert!(furthest(&mut producer, 0, 1000) <= 1024, "as little as at first");
}

#[test]
fn without_short_laps_all_of_the_area_is_used() {
    let (mut producer, mut consumer) = pair(1024, 16384);
    let places = (0..1000).map(|_| {
        let place = place_of_next(&mut producer).expect("a drained ring has room");
        pop(&mut consumer);
        place
    });
    assert_eq!(places.max(), Some(16384 - 128));
}

#[test]
fn two_threads_pass_a_million_records_in_order() {
    for (producer, consumer) in [pair(64, 8192), pair_in_short_laps(64, 8192)] {
        pass_in_order(producer, consumer);
    }
}

fn pass_in_order(mut producer: Producer<HeapRing>, mut consumer: Consumer<HeapRing>) {
    let sender = std::thread::spawn(move || {
        for i in 0..rounds(500_000) as u32 {
            let len = if i % 7 == 0 { 200 } else { 4 };
            while !producer
                .try_push(&Header { id: i, ..HEADER }, len, |to| to[..4].copy_from_slice(&i.to_le_bytes()))
            {
                std::thread::yield_now();
            }
        }
    });
    for i in 0..rounds(500_000) as u32 {
        loop {
            let got = consumer.poll(|header, bytes| (header.id, bytes[..4].to_vec())).expect("no corruption");
            consumer.return_credit();
            match got {
                Some(got) => break assert_eq!(got, (i, i.to_le_bytes().to_vec())),
                None => std::thread::yield_now(),
            }
        }
    }
    sender.join().expect("the sender checks nothing that fails");
}

#[test]
fn later_ends_of_a_ring_go_on_where_the_former_ones_retired() {
    let ring = HeapRing::new(8, 1024);
    let (mut producer, mut consumer) = (Producer::resume(ring.clone()), Consumer::resume(ring.clone()));
    for round in 0..rounds(2000) {
        let len = round * 37 % 200;
        assert!(producer.try_push(&HEADER, len, |to| to.fill(round as u8)));
        if round % 3 == 0 {
            producer.retire();
            producer = Producer::resume(ring.clone());
            if round % 2 == 0 {
                producer = producer.with_short_laps();
            }
        }
        assert_eq!(pop(&mut consumer), Some((HEADER, vec![round as u8; len])));
        if round % 5 == 0 {
            consumer.retire();
            consumer = Consumer::resume(ring.clone()).with_short_laps();
            assert!(!consumer.ready());
        }
    }
    let positions = (producer.position(), consumer.position());
    assert_eq!(positions, (rounds(2000) as u64, rounds(2000) as u64));
}

#[test]
fn what_is_no_position_counts_as_the_first() {
    let ring = HeapRing::new(8, 1024);
    let (words, heads) = (&ring.control().producer, &ring.control().consumer);
    for word in [&words.tail, &words.bulk_tail, &heads.head, &heads.bulk_head] {
        word.store(u64::MAX, crate::sync::Ordering::Relaxed);
    }
    assert_eq!(Producer::resume(ring.clone()).position(), 0);
    assert_eq!(Consumer::resume(ring).position(), 0);
}

#[test]
fn heads_that_are_ahead_of_the_producer_are_not_believed() {
    let ring = HeapRing::new(8, 1024);
    let heads = &ring.control().consumer;
    for word in [&heads.head, &heads.bulk_head] {
        word.store(64, crate::sync::Ordering::Relaxed);
    }
    let mut producer = Producer::resume(ring).with_short_laps();
    let pushed = (0..100).take_while(|_| producer.try_push(&HEADER, 100, |to| to.fill(1))).count();
    assert_eq!(pushed, 8, "as much as fits into an empty ring");
}

/// The rings between two ranks, whose ends pass blocks: what each rank has.
fn exchange(bulk: usize) -> [(Producer<HeapRing>, Consumer<HeapRing>); 2] {
    let [there, back] = [(); 2].map(|()| HeapRing::new(16, bulk));
    [(there.clone(), back.clone()), (back, there)].map(|(outgoing, incoming)| {
        let blocks = Blocks::new(outgoing.clone(), incoming.clone());
        (Producer::new(outgoing).passing(blocks.clone()), Consumer::new(incoming).passing(blocks))
    })
}

/// Bytes of the bulk area that a producer has used.
fn used_bulk(producer: &Producer<HeapRing>) -> u64 {
    producer.retire();
    producer.storage().control().producer.bulk_tail.load(crate::sync::Ordering::Relaxed)
}

#[test]
fn answers_lie_in_blocks_for_ever() {
    let [(mut to_second, mut from_second), (mut to_first, mut from_first)] = exchange(1024);
    for round in 0..rounds(1000) {
        let (question, answer) = (round as u8, !(round as u8));
        assert!(to_second.try_push(&HEADER, 100, |to| to.fill(question)));
        assert_eq!(pop(&mut from_first), Some((HEADER, vec![question; 100])));
        assert!(to_first.try_push(&HEADER, 128, |to| to.fill(answer)));
        assert_eq!(pop(&mut from_second), Some((HEADER, vec![answer; 128])));
    }
    assert_eq!((used_bulk(&to_second), used_bulk(&to_first)), (0, 0));
}

#[test]
fn a_stream_takes_the_bulk_area_once_the_blocks_are_given() {
    let [(mut to_second, mut from_second), (mut to_first, mut from_first)] = exchange(1024);
    for n in 0..20_u8 {
        assert!(to_second.try_push(&HEADER, 100, |to| to.fill(n)), "a drained ring has room");
        assert_eq!(pop(&mut from_first), Some((HEADER, vec![n; 100])));
    }
    // Four blocks, and each of the others takes two lines.
    assert_eq!(used_bulk(&to_second), 16 * 128);
    // What has come goes back, and then this rank's own.
    for n in 0..8_u8 {
        assert!(to_first.try_push(&HEADER, 128, |to| to.fill(n)));
        assert_eq!(pop(&mut from_second), Some((HEADER, vec![n; 128])));
    }
    assert_eq!(used_bulk(&to_first), 0);
    assert!(to_first.try_push(&HEADER, 128, |to| to.fill(1)));
    assert_eq!(used_bulk(&to_first), 128);
}

#[test]
fn short_and_long_payloads_and_full_rings_take_no_block() {
    let [(mut to_second, _), _] = exchange(1024);
    for (len, bulk) in [(INLINE, 0), (129, 192)] {
        assert!(to_second.try_push(&HEADER, len, |to| to.fill(1)));
        assert_eq!(used_bulk(&to_second), bulk);
    }
    (2..16).for_each(|_| assert!(to_second.try_push(&HEADER, 8, |to| to.fill(1))));
    assert!(!to_second.try_push(&HEADER, 64, |_| panic!("there is no cell")));
}

#[test]
fn a_block_is_room_where_the_bulk_area_is_full() {
    let [(mut to_second, mut from_second), (mut to_first, mut from_first)] = exchange(1024);
    let push = |producer: &mut Producer<HeapRing>| producer.try_push(&HEADER, 128, |to| to.fill(1));
    // Four blocks, and eight payloads of the bulk area.
    for left in (0..12).rev() {
        assert_eq!(to_second.block(), (left >= 8).then_some(128));
        assert!(to_second.room(128) && push(&mut to_second));
    }
    assert!(!to_second.room(128) && !push(&mut to_second));
    // An answer brings a block, before credit comes.
    pop(&mut from_first);
    assert!(push(&mut to_first));
    pop(&mut from_second);
    assert_eq!(to_second.block(), Some(128));
    assert!(!to_second.room(129), "it would not lie in a block");
    assert!(to_second.room(128) && push(&mut to_second));
    assert!(!to_second.room(128));
}

#[test]
fn a_later_rank_has_the_blocks_of_the_one_before() {
    let [(mut to_second, mut from_second), (mut to_first, mut from_first)] = exchange(1024);
    let push = |producer: &mut Producer<HeapRing>| assert!(producer.try_push(&HEADER, 64, |to| to.fill(1)));
    (0..3).for_each(|_| push(&mut to_second));
    (0..3).for_each(|_| assert!(pop(&mut from_first).is_some()));
    push(&mut to_first);
    assert!(pop(&mut from_second).is_some());
    to_second.retire();
    from_second.retire();
    let (outgoing, incoming) = (to_second.storage().clone(), from_second.storage().clone());
    let blocks = Blocks::new(outgoing.clone(), incoming.clone());
    let mut to_second = Producer::resume(outgoing).passing(blocks.clone());
    let mut from_second = Consumer::resume(incoming).passing(blocks);
    let before = used_bulk(&to_second);
    for _ in 0..2 {
        push(&mut to_second);
        assert!(pop(&mut from_first).is_some());
    }
    assert_eq!(used_bulk(&to_second), before, "one of its own, and the one that has come");
    push(&mut to_second);
    assert!(used_bulk(&to_second) > before);
    // Another one receives before it sends: what it is sent lies in blocks that its predecessor has given.
    to_second.retire();
    from_second.retire();
    let (outgoing, incoming) = (to_second.storage().clone(), from_second.storage().clone());
    let mut from_second = Consumer::resume(incoming.clone()).passing(Blocks::new(outgoing, incoming));
    for _ in 0..8 {
        push(&mut to_first);
        assert!(pop(&mut from_second).is_some());
    }
}

#[test]
fn a_block_that_is_not_the_senders_is_corrupt() {
    for (name, with_blocks) in [(0_u32, true), (2, true), (1 + 2 * 7, true), (u32::MAX - 1, true), (1, false)]
    {
        let [(mut to_second, _), (_, mut from_first)] = exchange(1024);
        if !with_blocks {
            from_first = Consumer::new(from_first.storage().clone());
        }
        assert!(to_second.try_push(&HEADER, 64, |to| to.fill(1)));
        to_second.storage().write_body(0, |body| {
            // SAFETY: the body of the only cell, which nobody else uses.
            unsafe { (&mut *body).inline[..4].copy_from_slice(&name.to_ne_bytes()) };
        });
        let error = from_first.poll(|_, _| ()).expect_err("it is this rank's, or there is no such block");
        assert_eq!(error.value, u64::from(name));
    }
}
