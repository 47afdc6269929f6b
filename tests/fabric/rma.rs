//! Accesses to registered memory and atomic operations, between two endpoints of this process and between processes.

use crate::node::{CONTEXT, Counted, Node, Said};
use crate::{Other, pattern, two};
use perusal_fi::api::*;

const ALL: u64 = FI_REMOTE_READ | FI_REMOTE_WRITE;
const WRITTEN: Said = Said::Done(11, FI_RMA | FI_WRITE, 0, 0, 0, FI_ADDR_NOTAVAIL);
const READ: Said = Said::Done(11, FI_RMA | FI_READ, 0, 0, 0, FI_ADDR_NOTAVAIL);
const FETCHED: Said = Said::Done(11, FI_ATOMIC | FI_READ, 0, 0, 0, FI_ADDR_NOTAVAIL);

/// The completion of an access of `a`, whose target makes progress meanwhile.
fn done(a: &Node, b: &Node) -> Said {
    let start = std::time::Instant::now();
    loop {
        if let Some(said) = a.read_now() {
            return said;
        }
        assert_eq!(b.read_now(), None);
        assert!(start.elapsed().as_secs() < 60, "no completion within a minute");
    }
}

#[test]
fn memory_is_written_and_read_by_offset_or_by_address() {
    for mode in [0, FI_MR_SCALABLE, FI_MR_VIRT_ADDR, FI_MR_BASIC] {
        let (a, b) = (Node::with_mode(mode), Node::with_mode(mode));
        let (to, _) = (a.insert(&b.name()), b.insert(&a.name()));
        let mut memory = vec![0_u8; 5 << 20];
        let at = memory.as_mut_ptr();
        let registered = b.register(at, memory.len(), ALL, 77).expect("a registration");
        assert_eq!(registered.key == 77, mode != FI_MR_BASIC);
        let base = if [FI_MR_VIRT_ADDR, FI_MR_BASIC].contains(&mode) { at as u64 } else { 0 };
        for (round, size) in [1, 8, 16 << 10, 16 << 10 | 1, 4 << 20].into_iter().cycle().take(10).enumerate()
        {
            let (mut bytes, mut back) = (pattern(size, round as u64), vec![0; size]);
            let there = base + 100 + round as u64;
            assert_eq!(a.access(true, bytes.as_mut_ptr(), size, to, there, registered.key), 0);
            assert_eq!(done(&a, &b), WRITTEN, "{mode} {round}");
            // SAFETY: the registered bytes, which nobody writes now.
            let written = unsafe { std::slice::from_raw_parts(at.add(100 + round), size) };
            assert!(written == bytes, "{mode} {size}");
            assert_eq!(a.access(false, back.as_mut_ptr(), size, to, there, registered.key), 0);
            assert_eq!(done(&a, &b), READ);
            assert!(back == bytes, "{mode} {size}");
        }
    }
}

#[test]
fn what_is_not_registered_for_it_is_not_accessed() {
    let (a, b, to, _) = two();
    let (mut memory, mut bytes) = (vec![0_u8; 64], vec![1_u8; 64]);
    let at = memory.as_mut_ptr();
    let readable = b.register(at, 32, FI_REMOTE_READ, 1).expect("a registration");
    assert_eq!(b.register(at, 64, ALL, 1).err(), Some(-FI_ENOKEY));
    // The second round meets an origin that knows the region.
    for _ in 0..2 {
        for (write, addr, len, key, error) in [
            (false, 0, 33, 1, FI_EACCES),
            (false, 32, 1, 1, FI_EACCES),
            (false, u64::MAX, 2, 1, FI_EACCES),
            (true, 0, 1, 1, FI_EACCES),
            (false, 0, 1, 2, FI_EKEYREJECTED),
            (true, 0, 20_000, 2, FI_EKEYREJECTED),
        ] {
            let mut long = vec![1; 20_000];
            let from = if len > 64 { long.as_mut_ptr() } else { bytes.as_mut_ptr() };
            assert_eq!(a.access(write, from, len, to, addr, key), 0);
            assert_eq!(done(&a, &b), Said::Failed(11, error), "{write} {addr} {len} {key}");
        }
        assert_eq!(a.access(false, bytes.as_mut_ptr(), 32, to, 0, 1), 0);
        assert_eq!(done(&a, &b), READ);
    }
    drop(readable);
    assert_eq!(a.access(false, bytes.as_mut_ptr(), 32, to, 0, 1), 0);
    assert_eq!(done(&a, &b), Said::Failed(11, FI_EKEYREJECTED));
    assert!(memory.iter().all(|&byte| byte == 0));
}

#[test]
fn a_failed_operation_without_a_context_has_that_of_the_endpoint() {
    let (a, b, to, _) = two();
    assert_eq!(a.inject_write(&[1; 8], 0, to, 0, 5), 0);
    assert_eq!(done(&a, &b), Said::Failed(CONTEXT, FI_EKEYREJECTED));
}

#[test]
fn a_region_in_another_one_is_within_it_and_closed_before() {
    let (a, b, to, _) = two();
    let mut memory = [7_u8; 64];
    let at = memory.as_mut_ptr();
    let base = b.register(at, 64, ALL, 1).expect("a registration");
    let part = b.register_in(Some(&base), (at.wrapping_add(32), 32), 2, 0).expect("a registration");
    assert_eq!(base.try_close(), -FI_EBUSY);
    for (from, len) in [(at.wrapping_add(33), 32), (at.wrapping_sub(1), 8)] {
        assert_eq!(b.register_in(Some(&base), (from, len), 3, 0).err(), Some(-FI_EINVAL));
    }
    assert_eq!(b.register_in(None, (at, 64), 3, 16).err(), Some(-FI_EINVAL), "a key for authorization");
    assert_eq!(a.register_in(Some(&base), (at, 64), 3, 0).err(), Some(-FI_EDOMAIN));
    let mut bytes = [0; 32];
    assert_eq!(a.access(false, bytes.as_mut_ptr(), 32, to, 0, part.key), 0);
    assert_eq!((done(&a, &b), bytes), (READ, [7; 32]));
    // It may be read alone, whatever the other one allows.
    assert_eq!(a.access(true, bytes.as_mut_ptr(), 32, to, 0, part.key), 0);
    assert_eq!(done(&a, &b), Said::Failed(11, FI_EACCES));
    drop(part);
    drop(base);
}

/// The bytes of a write that was ended are on their way when a receive begins that has the write's place in a table.
#[test]
fn bytes_of_a_write_that_has_ended_are_no_others() {
    let (a, b, to, _) = two();
    let (message, written) = (vec![1; 200_000], vec![2; 300_000]);
    let (mut memory, mut room) = (vec![0_u8; 300_000], vec![0; 200_000]);
    let (first, second) = memory.split_at_mut(1000);
    let registered = b.register_pieces(&mut [first, second], ALL, 1);
    assert_eq!(a.send_pieces(&message, to, 7, 0, 3), 0);
    let there = [RmaIov { addr: 0, len: 300_000, key: 1 }];
    assert_eq!(a.write_pieces(&[&written[..1000], &written[1000..]], to, &there), 0);
    // The target asks for the bytes, and the origin sends some.
    assert_eq!((b.read_now(), a.read_now()), (None, None));
    drop(registered);
    b.receive(&mut room, FI_ADDR_UNSPEC, 7, 0, 4);
    let (mut said, start) = (Vec::new(), std::time::Instant::now());
    while said.len() < 3 {
        said.extend(a.read_now());
        said.extend(b.read_now());
        assert!(start.elapsed().as_secs() < 900, "no completion: {said:?}");
    }
    assert!(said.contains(&Said::Failed(11, FI_ECANCELED)), "{said:?}");
    assert!(said.iter().any(|one| matches!(one, Said::Done(4, _, 200_000, ..))), "{said:?}");
    assert!(room == message);
}

#[test]
fn pieces_go_to_pieces() {
    let (a, b, to, _) = two();
    let mut memory = vec![0_u8; 100];
    let _registered = b.register(memory.as_mut_ptr(), 100, ALL, 5).expect("a registration");
    let bytes = pattern(40, 3);
    for round in 0..3 {
        let there = [(10 + round, 3), (50, 36), (90, 1)].map(|(addr, len)| RmaIov { addr, len, key: 5 });
        assert_eq!(a.write_pieces(&[&bytes[..25], &bytes[25..]], to, &there), 0);
        assert_eq!(done(&a, &b), WRITTEN);
        let start = 10 + round as usize;
        assert!(
            memory[start..start + 3] == bytes[..3]
                && memory[50..86] == bytes[3..39]
                && memory[90] == bytes[39]
        );
    }
    let there = [RmaIov { addr: 0, len: 39, key: 5 }];
    assert_eq!(a.write_pieces(&[&bytes], to, &there), -(FI_EINVAL as isize));
}

#[test]
fn data_with_a_write_and_counters_tell_the_target() {
    let (a, b, to, from) = two();
    let mut memory = vec![0_u8; 64];
    let registered = b.register(memory.as_mut_ptr(), 64, ALL, 9).expect("a registration");
    let written = b.count(&registered, FI_REMOTE_WRITE);
    let read = b.count(&registered, FI_REMOTE_READ);
    let mut back = [0_u8; 8];
    for round in 1..4 {
        assert_eq!(a.inject_write(&[round; 8], 100 + u64::from(round), to, 8, 9), 0);
        let flags = FI_RMA | FI_REMOTE_WRITE | FI_REMOTE_CQ_DATA;
        assert_eq!(b.read(), Said::Done(0, flags, 8, 100 + u64::from(round), 0, from));
        assert_eq!(memory[8..16], [round; 8]);
        assert_eq!(a.access(false, back.as_mut_ptr(), 8, to, 8, 9), 0);
        assert_eq!((done(&a, &b), back), (READ, [round; 8]));
        let start = std::time::Instant::now();
        while (written.read(), read.read()) != (u64::from(round), u64::from(round)) {
            assert!(start.elapsed().as_secs() < 60, "the counters of accesses count");
        }
    }
    assert_eq!(a.read_now(), None);
}

/// Polls a counter until it has this value, within a time that is a hang.
fn counts_up_to(counter: &Counted, value: u64) {
    let start = std::time::Instant::now();
    while counter.read() < value {
        assert!(start.elapsed().as_secs() < 900, "the counter stays at {}", counter.read());
    }
    assert_eq!(counter.read(), value);
}

#[test]
fn each_region_counts_what_modifies_it() {
    let (a, b, to, _) = two();
    let (mut memory, mut old) = (vec![0_u64; 2], [0]);
    let (first, second) = memory.split_at_mut(1);
    let one = b.register(first.as_mut_ptr().cast(), 8, ALL, 1).expect("a registration");
    let other = b.register(second.as_mut_ptr().cast(), 8, ALL, 2).expect("a registration");
    let counters = [&one, &other].map(|region| b.count(region, FI_REMOTE_WRITE));
    let there = [1, 2].map(|key| RmaIov { addr: 0, len: 8, key });
    for round in 1..4 {
        assert_eq!(a.write_pieces(&[&[round as u8; 16]], to, &there), 0);
        assert_eq!(done(&a, &b), WRITTEN);
        counters.iter().for_each(|counter| counts_up_to(counter, round));
    }
    assert_eq!(a.fetch(&[10], &mut old, to, 0, 2, 2), 0);
    assert_eq!(done(&a, &b), FETCHED);
    counts_up_to(&counters[1], 4);
    counts_up_to(&counters[0], 3);
}

#[test]
fn atomic_operations_are_performed_at_the_target() {
    let (a, b, to, _) = two();
    let mut memory = vec![7_u64; 4];
    let _registered = b.register(memory.as_mut_ptr().cast(), 32, ALL, 3).expect("a registration");
    let (sum, swap) = (2, 11);
    let mut old = [0; 2];
    for round in 0..3 {
        assert_eq!(a.fetch(&[10, 20], &mut old, to, 8, 3, sum), 0);
        assert_eq!((done(&a, &b), old), (FETCHED, [7 + 10 * round, 7 + 20 * round]));
    }
    assert_eq!(memory, [7, 37, 67, 7]);
    assert_eq!(a.fetch(&[1, 2], &mut old, to, 0, 3, swap), 0);
    assert_eq!((done(&a, &b), old), (FETCHED, [7, 37]));
    assert_eq!(memory, [1, 2, 67, 7]);
    assert_eq!(a.fetch(&[1, 2], &mut old, to, 24, 3, sum), 0);
    assert_eq!(done(&a, &b), Said::Failed(11, FI_EACCES));
    assert_eq!(a.fetch(&[1], &mut old, to, 0, 3, 99), -(FI_EOPNOTSUPP as isize));
    assert_eq!(a.query(7, sum, 0), Ok((512, 8)));
    assert_eq!(a.query(7, 12, 0), Err(-FI_EOPNOTSUPP));
    assert_eq!(a.query(7, 12, FI_COMPARE_ATOMIC), Ok((512, 8)));
    // The key would be a tag, of a receive.
    assert_eq!(a.add_atomically(&1, to, 3, FI_TAGGED), -(FI_EBADFLAGS as isize));
    assert_eq!(a.query(7, sum, FI_TAGGED), Err(-FI_EOPNOTSUPP));
}

/// Two origins and a target that is one of them: every sum is there once.
#[test]
fn atomic_operations_of_two_origins_do_not_disturb_each_other() {
    let (a, b, to, _) = two();
    let own = b.insert(&b.name());
    let mut memory = vec![0_u64; 1];
    let _registered = b.register(memory.as_mut_ptr().cast(), 8, ALL, 3).expect("a registration");
    let (mut old_a, mut old_b) = ([0], [0]);
    for _ in 0..100 {
        assert_eq!(a.fetch(&[1], &mut old_a, to, 0, 3, 2), 0);
        assert_eq!(b.fetch(&[1], &mut old_b, own, 0, 3, 2), 0);
        assert!(matches!(b.read(), Said::Done(11, ..)));
        assert!(matches!(a.read(), Said::Done(11, ..)));
        assert_ne!(old_a, old_b);
    }
    assert_eq!(memory, [200]);
}

#[test]
fn another_process_is_accessed_without_its_part_once_it_has_told_of_a_region() {
    let node = Node::new();
    let mut other = Other::start("region");
    let to = other.meet(&node);
    let mut bytes = pattern(1 << 16, 1);
    let mut back = vec![0; 1 << 16];
    // The other polls until it has learned that this is over.
    for round in 0..50 {
        let size = [8, 4096, 1 << 16][round % 3];
        assert_eq!(node.access(true, bytes.as_mut_ptr(), size, to, 64, 1), 0);
        assert_eq!(node.read(), WRITTEN);
        assert_eq!(node.access(false, back.as_mut_ptr(), size, to, 64, 1), 0);
        assert_eq!(node.read(), READ);
        assert!(back[..size] == bytes[..size]);
    }
    other.child.kill().expect("a process");
    other.child.wait().expect("an end");
    std::thread::sleep(std::time::Duration::from_millis(2));
    let error = node.access(true, bytes.as_mut_ptr(), 8, to, 64, 1);
    let ended = if error == 0 { node.read() } else { Said::Failed(11, -error as i32) };
    assert!(matches!(ended, Said::Failed(11, FI_ESHUTDOWN | FI_EHOSTUNREACH)), "{ended:?}");
}
