//! The libfabric provider, driven through its tables as libfabric drives it, in one process and between two.

mod automatic;
mod counters;
mod faults;
mod forks;
mod hints;
mod node;
mod objects;
mod observe;
mod requested;
mod rma;
mod service;
mod transport;
mod yields;

use node::{Node, Said, info};
use perusal_fi::api::*;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

const SIZES: [usize; 9] = [0, 1, 40, 41, 4096, 16 << 10, (16 << 10) + 1, 300_001, 4 << 20];
const RECEIVED: u64 = FI_RECV | FI_TAGGED | FI_REMOTE_CQ_DATA;

fn pattern(len: usize, seed: u64) -> Vec<u8> {
    (0..len as u64).map(|at| (at.wrapping_mul(31).wrapping_add(seed * 7)) as u8).collect()
}

/// Two endpoints of this process that know each other: with the second, its number in the first.
fn two() -> (Node, Node, u64, u64) {
    let (a, b) = (Node::new(), Node::new());
    let (to_b, to_a) = (a.insert(&b.name()), b.insert(&a.name()));
    (a, b, to_b, to_a)
}

/// The next completion of each: a long message needs the progress of both.
fn both(a: &Node, b: &Node) -> (Said, Said) {
    let (start, mut sent, mut received) = (std::time::Instant::now(), None, None);
    while sent.is_none() || received.is_none() {
        sent = sent.or_else(|| a.read_now());
        received = received.or_else(|| b.read_now());
        assert!(start.elapsed().as_secs() < 60, "no completions within a minute: {sent:?}, {received:?}");
    }
    (sent.expect("checked"), received.expect("checked"))
}

/// By the kernel, by both sides, or through the ring: which way is the faster is found out, and each is tried at times.
#[test]
fn long_messages_arrive_whichever_way_they_are_copied() {
    let (a, b, to_b, to_a) = two();
    let (from_a, from_b) = (pattern(100_001, 1), pattern(100_001, 2));
    for round in 0..200 {
        let (mut at_a, mut at_b) = (vec![0; from_b.len()], vec![0; from_a.len()]);
        b.receive(&mut at_b, to_a, round, 0, 2);
        assert_eq!(a.send(&from_a, to_b, round, 0, 1), 0);
        let both_at_once = round % 2 == 0;
        if both_at_once {
            a.receive(&mut at_a, to_b, round, 0, 3);
            assert_eq!(b.send(&from_b, to_a, round, 0, 4), 0);
        }
        for _ in 0..=u32::from(both_at_once) {
            assert!(matches!(both(&a, &b), (Said::Done(1 | 3, ..), Said::Done(2 | 4, ..))));
        }
        assert!(at_b == from_a && (!both_at_once || at_a == from_b), "round {round}");
    }
}

#[test]
fn an_endpoint_does_nothing_before_it_is_enabled() {
    const REFUSED: isize = -(FI_EOPBADSTATE as isize);
    let (a, b) = (Node::bound(info(node::CAPS).expect("an endpoint")).expect("an endpoint"), Node::new());
    let (to_b, bytes, mut room) = (a.insert(&b.name()), pattern(100, 1), [0; 100]);
    assert_eq!(a.send_now(&bytes, to_b, 1, 0, 0), REFUSED);
    assert_eq!(a.receive_flags(&mut room, 1, 0, 0), REFUSED);
    a.enable();
    b.receive(&mut room, FI_ADDR_UNSPEC, 1, 0, 6);
    assert_eq!(a.send(&bytes, to_b, 1, 0, 5), 0);
    let (sent, received) = both(&a, &b);
    assert!(matches!((sent, received), (Said::Done(5, ..), Said::Done(6, ..))));
    assert_eq!(room[..], bytes);
}

#[test]
fn messages_of_all_sizes_match_by_tag_mask_and_sender() {
    let (a, b, to_b, from_a) = two();
    for (at, &size) in SIZES.iter().chain(&SIZES).enumerate() {
        let bytes = pattern(size, at as u64);
        let (mut wrong, mut right) = (vec![0; 8], vec![0; size]);
        b.receive(&mut wrong, from_a, 1 << 63, 0, 5);
        // All bits of the tag but the lowest eight must agree; the receive is posted first for every other size.
        let tag = 0xdead_beef_0000_0000 | at as u64;
        if at % 2 == 0 {
            b.receive(&mut right, FI_ADDR_UNSPEC, 0xdead_beef_0000_00ff, 0xff, 6);
        }
        let error = match at < SIZES.len() {
            true => a.send(&bytes, to_b, tag, !7, 9),
            false => a.send_pieces(&bytes, to_b, tag, !7, 9),
        };
        assert_eq!(error, 0);
        if at % 2 == 1 {
            assert_eq!(b.read_now(), None);
            b.receive(&mut right, from_a, tag, 0, 6);
        }
        let (sent, received) = both(&a, &b);
        assert!(matches!(sent, Said::Done(9, ..)), "{sent:?}");
        assert_eq!(received, Said::Done(6, RECEIVED, size, !7, tag, from_a));
        assert!(right == bytes, "{size} bytes arrive as they were");
        b.cancel(5);
        assert_eq!(b.read(), Said::Failed(5, FI_ECANCELED));
    }
}

#[test]
fn a_message_that_is_too_long_is_an_error_with_its_beginning_received() {
    let (a, b, to_b, _) = two();
    for size in [100, 100_000] {
        let (bytes, mut buffer) = (pattern(size, 3), vec![0; 64]);
        assert_eq!(a.send(&bytes, to_b, 4, 0, 1), 0);
        b.receive(&mut buffer, FI_ADDR_UNSPEC, 4, 0, 2);
        let (sent, received) = both(&a, &b);
        assert_eq!(received, Said::Failed(2, FI_ETRUNC), "{size}");
        assert!(matches!(sent, Said::Done(1, ..)));
        if size == 100 {
            assert!(buffer == bytes[..64]);
        }
    }
}

#[test]
fn a_message_is_peeked_at_claimed_and_discarded() {
    let (a, b, to_b, from_a) = two();
    let mut buffer = vec![0; 16];
    assert_eq!(b.receive_flags(&mut [], 8, 1, FI_PEEK), 0);
    assert_eq!(b.read(), Said::Failed(1, FI_ENOMSG));
    let messages = [pattern(16, 1), pattern(16, 2), pattern(16, 3)];
    messages.iter().for_each(|bytes| assert_eq!(a.send(bytes, to_b, 8, 5, 0), 0));
    let seen = |context| Said::Done(context, RECEIVED, 16, 5, 8, from_a);
    assert_eq!((b.receive_flags(&mut [], 8, 1, FI_PEEK), b.read()), (0, seen(1)));
    assert_eq!((b.receive_flags(&mut [], 8, 2, FI_PEEK | FI_CLAIM), b.read()), (0, seen(2)));
    assert_eq!((b.receive_flags(&mut [], 8, 3, FI_PEEK | FI_DISCARD), b.read()), (0, seen(3)));
    b.receive(&mut buffer, FI_ADDR_UNSPEC, 8, 0, 4);
    assert_eq!((b.read(), &buffer), (seen(4), &messages[2]));
    assert_eq!((b.receive_flags(&mut buffer, 8, 2, FI_CLAIM), b.read()), (0, seen(2)));
    assert_eq!(buffer, messages[0]);
    assert_eq!(b.receive_flags(&mut buffer, 8, 2, FI_CLAIM), -(FI_EINVAL as isize));
}

#[test]
fn a_buffer_for_several_messages_is_given_back_when_it_is_full() {
    let (a, b, to_b, _) = two();
    let mut buffer = vec![0; 256];
    let (first, second) = buffer.split_at_mut(100);
    assert_eq!(b.receive_several(&mut [first, second], 7), -(FI_EINVAL as isize), "several buffers");
    assert_eq!(b.receive_several(&mut [&mut buffer], 7), 0);
    let messages = [pattern(100, 1), pattern(100, 2)];
    for bytes in &messages {
        a.send_plain(bytes, to_b, 1);
    }
    let first = b.read();
    assert!(matches!(first, Said::Done(7, flags, 100, ..) if flags & FI_MULTI_RECV == 0), "{first:?}");
    let mut last = b.read();
    if let Said::Done(7, flags, 100, ..) = last
        && flags & FI_MULTI_RECV == 0
    {
        last = b.read();
    }
    assert!(matches!(last, Said::Done(7, flags, ..) if flags & FI_MULTI_RECV != 0), "{last:?}");
    assert!(buffer[..100] == messages[0] && buffer[100..200] == messages[1]);
}

#[test]
fn reading_no_completion_makes_progress_and_leaves_what_is_there() {
    let (a, b, to_b, _) = two();
    let mut buffers = [[0; 8]; 2];
    assert_eq!(b.read_none(), -(FI_EAGAIN as isize));
    buffers.iter_mut().zip(1..).for_each(|(buffer, tag)| {
        b.receive(buffer, FI_ADDR_UNSPEC, tag, 0, tag as usize);
    });
    // Of the first there is a completion while the second comes.
    for tag in [1, 2] {
        assert_eq!(a.send(&[tag as u8; 8], to_b, tag, 0, 0), 0);
        while b.read_none() != 0 {}
    }
    b.read_none();
    assert_eq!(buffers, [[1; 8], [2; 8]], "both have come before one completion is read");
    for context in [1, 2] {
        assert!(matches!(b.read_now(), Some(Said::Done(found, ..)) if found == context));
    }
    assert_eq!(b.read_none(), -(FI_EAGAIN as isize));
}

#[test]
fn waiting_ends_with_the_time_or_with_a_message() {
    let (a, b, to_b, _) = two();
    let mut buffer = [0; 8];
    b.receive(&mut buffer, FI_ADDR_UNSPEC, 1, 0, 1);
    assert!(!b.wait(20));
    assert_eq!(a.send(&[1; 8], to_b, 1, 0, 0), 0);
    assert!(b.wait(60_000));
}

#[test]
fn a_signal_ends_a_wait_for_the_descriptor_or_in_a_call() {
    let node = Node::new();
    assert!(!node.poll(10));
    node.signal();
    assert!(node.poll(60_000));
    assert!(!node.poll(10), "one poll is enough for a signal");
    assert!(!node.wait(60_000), "a signal ends it, and there is no completion");
    assert!(!node.poll(10));
}

/// Both processes sleep whenever there is nothing to do: a wake-up that got lost would end in the time limit.
#[test]
fn processes_that_wait_for_a_descriptor_are_woken_by_each_other() {
    let node = Node::new();
    let mut other = Other::start("sleeper");
    let to = other.meet(&node);
    for round in 0..200_u64 {
        let size = SIZES[round as usize % 8];
        let (bytes, mut back) = (pattern(size, round), vec![0; size]);
        node.receive(&mut back, to, round + 1, 0, 3);
        assert_eq!(node.send(&bytes, to, round, round, 4), 0);
        let mut ends = 0;
        while ends < 2 {
            match node.read_now() {
                Some(Said::Done(..)) => ends += 1,
                Some(other) => panic!("{other:?}"),
                None => assert!(node.poll(30_000), "round {round}: nobody woke this process"),
            }
        }
        assert!(back == bytes, "round {round}");
    }
}

#[test]
fn an_address_takes_the_lowest_place_that_is_free() {
    let (a, b) = (Node::new(), Node::new());
    let name = b.name();
    assert_eq!([0, 1, 2].map(|_| a.insert(&name)), [0, 1, 2]);
    a.remove(1);
    a.remove(0);
    assert_eq!([0, 1, 2].map(|_| a.insert(&name)), [0, 1, 3]);
    assert_eq!(a.send(&[1], 1, 0, 0, 0), 0);
}

#[test]
fn event_queues_take_events_without_bytes_and_name_errors() {
    let (events, text) = Node::new().events();
    assert_eq!((events, text.as_str()), (0, "Message longer than the buffer of its receive"));
}

#[test]
fn counters_and_queues_of_other_providers_are_refused() {
    const FI_PEER: u64 = 1 << 43;
    let node = Node::new();
    assert_eq!((node.open_counter(1, 0), node.open_counter(2, 0)), (0, -FI_ENOSYS));
    assert_eq!((node.open_counter(0, FI_PEER), node.open_queue(FI_PEER)), (-FI_ENOSYS, -FI_ENOSYS));
    assert_eq!(node.open_queue(FI_AFFINITY), 0);
}

#[test]
fn every_error_of_the_interface_has_a_text() {
    let a = Node::new();
    assert_eq!(a.error_text(FI_ETRUNC), "Message longer than the buffer of its receive");
    assert_eq!(a.error_text(FI_ESHUTDOWN), "Cannot send after transport endpoint shutdown");
    for number in FI_EOTHER..=FI_ENOMR {
        assert!(!a.error_text(number).starts_with("Unknown error"), "{number}");
    }
}

#[test]
fn an_address_that_nobody_has_is_an_error() {
    let a = Node::new();
    let gone = Node::new().name();
    let to = a.insert(&gone);
    assert_eq!(a.send(&[1], to, 0, 0, 0), -(FI_EHOSTUNREACH as isize));
    assert_eq!(a.send(&[1], 77, 0, 0, 0), -(FI_EINVAL as isize));
    // A descriptor of that number that is no endpoint's.
    let foreign = format!("perusal://{:010}.{:06}.{:016x}", std::process::id(), 0, 1);
    let to = a.insert(&foreign);
    assert_eq!(a.send(&[1], to, 0, 0, 0), -(FI_EHOSTUNREACH as isize));
}

/// A peer that closes while a message is under way, before and after the bytes were asked for.
#[test]
fn an_endpoint_that_closes_ends_what_is_under_way_with_it() {
    let bytes = pattern(4 << 20, 1);
    let (a, b, to_b, _) = two();
    assert_eq!(a.send(&bytes, to_b, 4, 0, 1), 0);
    drop(b);
    assert_eq!(a.read(), Said::Failed(1, FI_ESHUTDOWN));

    let mut buffer = vec![0; bytes.len()];
    for posted_first in [true, false] {
        let (a, b, to_b, _) = two();
        if posted_first {
            b.receive(&mut buffer, FI_ADDR_UNSPEC, 4, 0, 2);
        }
        assert_eq!(a.send_pieces(&bytes, to_b, 4, 0, 1), 0);
        assert_eq!(b.read_now(), None);
        drop(a);
        if !posted_first {
            b.receive(&mut buffer, FI_ADDR_UNSPEC, 4, 0, 2);
        }
        assert_eq!(b.read(), Said::Failed(2, FI_ESHUTDOWN));
    }
}

/// An endpoint that goes to another thread with all that belongs to it.
struct Moved(Node);

// SAFETY: a domain of its own (FI_THREAD_SAFE), and only one thread uses it at a time.
unsafe impl Send for Moved {}

/// A domain that several threads use at once.
struct Shared<'a>(&'a Node);

// SAFETY: the provider's offers are FI_THREAD_SAFE.
unsafe impl Sync for Shared<'_> {}

#[test]
fn threads_register_memory_of_one_domain_at_once() {
    let node = Node::new();
    let shared = Shared(&node);
    let register = |key: u64| {
        let mut memory = [0_u8; 8];
        let shared = &shared;
        for _ in 0..20_000 {
            drop(shared.0.register(memory.as_mut_ptr(), 8, FI_REMOTE_READ, key).expect("a registration"));
        }
    };
    std::thread::scope(|scope| (0..4).for_each(|key| _ = scope.spawn(move || register(key))));
    // The lock of the domain is there as long as one of its objects.
    let mut memory = [0_u8; 8];
    let registered = node.register(memory.as_mut_ptr(), 8, FI_REMOTE_READ, 1).expect("a registration");
    assert_eq!(registered.key, 1);
}

/// A message that is as good as sent for its caller arrives, although its endpoint is closed at once. An endpoint that
/// has waited a second in vain, because the machine gave the other's thread no CPU, says nothing.
#[test]
fn an_endpoint_that_closes_sends_what_it_still_owes() {
    for _ in 0..100 {
        let (a, b, to_b, _) = two();
        let (bytes, mut buffer) = (pattern(16 << 10, 1), vec![0; 16 << 10]);
        assert_eq!(a.inject_delivered(&bytes, to_b, 4), 0);
        b.receive(&mut buffer, FI_ADDR_UNSPEC, 4, 0, 2);
        let b = Moved(b);
        let taker = std::thread::spawn(move || {
            let b = b;
            (b.0.read(), b)
        });
        let start = std::time::Instant::now();
        drop(a);
        let waited = start.elapsed();
        let (received, _b) = taker.join().expect("a thread");
        if matches!(received, Said::Done(2, _, 16_384, ..)) {
            assert!(buffer == bytes);
            return;
        }
        assert!(waited.as_millis() >= 1000, "{received:?} after {waited:?}");
    }
    panic!("the other thread has never had a CPU for a second");
}

// Between processes: the test's program is started again as the other one.

const OTHER: &str = "PERUSAL_FABRIC_TEST_OTHER";
/// Begins the role of one with the name of a service, which takes a message.
const NAMED: &str = "named:";

struct Other {
    child: Child,
    say: ChildStdin,
    hear: BufReader<ChildStdout>,
}

impl Other {
    fn start(role: &str) -> Self {
        let mut child = Command::new(std::env::current_exe().expect("this program"))
            .args(["the_other_process", "--exact", "--nocapture"])
            .env(OTHER, role)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("a process");
        let (say, hear) = (child.stdin.take().expect("a pipe"), child.stdout.take().expect("a pipe"));
        Self { child, say, hear: BufReader::new(hear) }
    }

    /// Exchanges addresses. Returns what `node` calls the other.
    fn meet(&mut self, node: &Node) -> u64 {
        writeln!(self.say, "{}", node.name()).expect("a listener");
        let mut line = String::new();
        // The harness of the tests speaks, too.
        while !line.contains("perusal://") {
            line.clear();
            assert!(self.hear.read_line(&mut line).expect("text") > 0, "the other says its address");
        }
        node.insert(line[line.find("perusal://").expect("an address")..].trim())
    }
}

impl Drop for Other {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Not a test of its own: what the other process does.
#[test]
fn the_other_process() {
    let Ok(role) = std::env::var(OTHER) else { return };
    match role.as_str() {
        "poor" => return faults::what_the_kernel_refuses_is_an_error(),
        "host" => return faults::peers_leave_no_descriptors(),
        "parent" => return forks::children_are_refused(),
        _ => {}
    }
    let node = match role.strip_prefix(NAMED) {
        Some(name) => service::endpoint_named(name),
        None => Node::new(),
    };
    println!("\n{}", node.name());
    let mut line = String::new();
    std::io::stdin().lock().read_line(&mut line).expect("an address");
    let to = node.insert(line.trim());
    let mut buffer = vec![0; 4 << 20];
    if role == "region" {
        // Is read and written until it is killed.
        let access = FI_REMOTE_READ | FI_REMOTE_WRITE;
        let _registered =
            node.register(buffer.as_mut_ptr(), buffer.len(), access, 1).expect("a registration");
        loop {
            node.read_now();
        }
    }
    let next = || {
        if role != "sleeper" {
            return node.read();
        }
        loop {
            match node.read_now() {
                Some(said) => return said,
                None => _ = node.poll(60_000),
            }
        }
    };
    loop {
        node.receive(&mut buffer, to, 0, u64::MAX, 1);
        if role == "silent" || role.starts_with(NAMED) {
            // Takes one message, and is then killed.
            node.read();
            std::thread::sleep(std::time::Duration::from_secs(60));
        }
        if role == "changes" {
            // Takes a second message, and goes on as another program, which is then killed.
            node.read();
            node.receive(&mut buffer, to, 0, u64::MAX, 1);
            node.read();
            panic!("{}", Command::new("sleep").arg("1000").exec());
        }
        let Said::Done(1, _, len, data, tag, _) = next() else { panic!("a message") };
        assert_eq!(node.send(&buffer[..len], to, tag + 1, data + 1, 2), 0);
        assert!(matches!(next(), Said::Done(2, ..)));
        if len == 1 && data == 99 {
            return;
        }
    }
}

#[test]
fn two_processes_exchange_messages_of_all_sizes() {
    let node = Node::new();
    let mut other = Other::start("echo");
    let to = other.meet(&node);
    for round in 0..200_u64 {
        let size = SIZES[round as usize % SIZES.len()];
        let (bytes, mut back) = (pattern(size, round), vec![0; size]);
        node.receive(&mut back, to, round + 1, 0, 3);
        assert_eq!(node.send(&bytes, to, round, round * 100, 4), 0);
        let mut said = [node.read(), node.read()];
        if matches!(said[0], Said::Done(3, ..)) {
            said.swap(0, 1);
        }
        assert!(matches!(said[0], Said::Done(4, ..)), "{said:?}");
        assert_eq!(said[1], Said::Done(3, RECEIVED, size, round * 100 + 1, round + 1, to));
        assert!(back == bytes, "round {round}");
    }
    // A long message that both sides copy, into a buffer that is too short for it: its beginning comes.
    let bytes = pattern(1 << 20, 7);
    let mut back = vec![0; 700_001];
    node.receive(&mut back, to, 1, 0, 3);
    assert_eq!(node.send(&bytes, to, 0, 0, 4), 0);
    let said = [node.read(), node.read()];
    assert!(said.contains(&Said::Failed(3, FI_ETRUNC)), "{said:?}");
    assert!(back == bytes[..back.len()]);
    let mut back = [0];
    node.receive(&mut back, to, 1, 0, 3);
    assert_eq!(node.send(&[1], to, 0, 99, 4), 0);
    node.read();
    node.read();
    assert!(other.child.wait().expect("an end").success());
}

#[test]
fn a_peer_that_is_killed_is_an_error_of_what_is_under_way() {
    let node = Node::new();
    let mut other = Other::start("silent");
    let to = other.meet(&node);
    assert_eq!(node.send(&[1], to, 0, 0, 1), 0);
    assert!(matches!(node.read(), Said::Done(1, ..)));
    let bytes = pattern(1 << 20, 1);
    assert_eq!(node.send(&bytes, to, 0, 0, 2), 0);
    other.child.kill().expect("a process");
    other.child.wait().expect("an end");
    assert_eq!(node.read(), Said::Failed(2, FI_ESHUTDOWN));
    let error = node.send(&[1], to, 0, 0, 3);
    assert!([-(FI_ESHUTDOWN as isize), -(FI_EHOSTUNREACH as isize)].contains(&error), "{error}");
}
