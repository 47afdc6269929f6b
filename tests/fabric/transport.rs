//! The transport by itself: the Rust module, the C header, and their examples.

use perusal_fi::transport::{Completion, EAGER_LIMIT, Endpoint, Error, Peer};
use std::process::Command;
use std::time::Duration;

/// After so long a test is hung, on however slow and busy a machine.
const HANG: Duration = Duration::from_secs(900);

fn two() -> (Endpoint, Endpoint, Peer, Peer) {
    let (mut a, mut b) = (Endpoint::open().expect("an endpoint"), Endpoint::open().expect("an endpoint"));
    let (to_b, to_a) = (a.add(b.address()), b.add(a.address()));
    (a, b, to_b, to_a)
}

/// The next completion of `one`, while `other` moves what is under way, too.
fn end(one: &mut Endpoint, other: &mut Endpoint) -> Completion {
    let start = std::time::Instant::now();
    loop {
        if let Some(done) = one.poll() {
            return done;
        }
        other.progress();
        assert!(start.elapsed() < HANG, "no completion");
    }
}

#[test]
fn buffers_go_to_the_endpoint_and_come_back_with_the_message_in_them() {
    let (mut a, mut b, to_b, from_a) = two();
    for len in [0, 1, EAGER_LIMIT, EAGER_LIMIT + 1, 1 << 20] {
        let bytes: Vec<u8> = (0..len).map(|at| at as u8).collect();
        let sent = a.send(to_b, 5 << 32 | 9, 77, bytes.clone(), 1);
        sent.expect("room");
        b.receive(Some(from_a), 5 << 32, u64::from(u32::MAX), vec![0; len + 10], 2);
        let received = end(&mut b, &mut a);
        assert_eq!((received.context, received.received, received.peer), (2, true, Some(from_a)));
        assert_eq!(
            (received.tag, received.data, received.len, received.result),
            (5 << 32 | 9, 77, len, Ok(()))
        );
        assert!(received.bytes() == bytes && received.buffer.len() == len + 10);
        let sent = end(&mut a, &mut b);
        assert_eq!((sent.context, sent.received, sent.result), (1, false, Ok(())));
        assert!(sent.buffer == bytes);
    }
}

#[test]
fn a_message_is_found_and_stays_and_an_unknown_sender_has_no_number() {
    let (mut a, mut b) = (Endpoint::open().expect("an endpoint"), Endpoint::open().expect("an endpoint"));
    let to_b = a.add(b.address());
    assert_eq!(b.probe(None, 0, u64::MAX), None);
    a.inject(to_b, 3, 4, b"abc").expect("room");
    for _ in 0..2 {
        let found = b.probe(None, 0, u64::MAX).expect("a message");
        assert_eq!((found.peer, found.tag, found.data, found.len), (None, 3, 4, 3));
    }
    assert_eq!(b.probe(None, 2, 0), None);
    b.receive(None, 3, 0, vec![0; 2], 8);
    let done = b.poll().expect("a message");
    assert_eq!((done.result, done.bytes(), done.peer), (Err(Error::Truncated), &b"ab"[..], None));
    let too_long = a.inject(to_b, 0, 0, &vec![0; EAGER_LIMIT + 1]);
    assert_eq!(too_long, Err(Error::TooLong));
}

#[test]
fn a_receive_is_cancelled_once_and_not_after_its_number_serves_another() {
    let (mut a, mut b, to_b, _) = two();
    let first = b.receive(None, 1, 0, vec![0; 8], 1);
    b.cancel(first);
    let done = b.poll().expect("its end");
    assert_eq!((done.context, done.result, done.buffer.len()), (1, Err(Error::Canceled), 8));
    b.receive(None, 1, 0, vec![0; 8], 2);
    b.cancel(first);
    a.inject(to_b, 1, 0, &[1; 8]).expect("room");
    assert!(b.wait(HANG).is_some_and(|done| done.context == 2 && done.result.is_ok()));
}

#[test]
fn peers_come_and_go() {
    let (mut a, b, to_b, _) = two();
    assert!(!a.has_left(to_b) && a.has_left(Peer(7)));
    a.send(to_b, 0, 0, vec![0; 1 << 20], 1).expect("room");
    drop(b);
    assert!(a.has_left(to_b));
    assert_eq!(a.wait(HANG).expect("an end").result, Err(Error::Closed));
    let error: Error = a.send(to_b, 0, 0, vec![5; 3], 1).expect_err("gone").into();
    assert!(matches!(error, Error::Closed | Error::Unreachable), "{error}");
    assert_eq!((a.remove(to_b), a.remove(to_b)), (Ok(()), Err(Error::UnknownPeer)));
    let refused = a.send(to_b, 0, 0, vec![5; 3], 1).expect_err("removed");
    assert_eq!((refused.error, refused.buffer), (Error::UnknownPeer, vec![5; 3]));
    // One that is removed while it runs ends what is under way, and can be added again.
    let mut c = Endpoint::open().expect("an endpoint");
    let to_c = a.add(c.address());
    a.send(to_c, 0, 0, vec![0; 1 << 20], 3).expect("room");
    a.remove(to_c).expect("a peer");
    assert_eq!(a.wait(HANG).expect("an end").result, Err(Error::Closed));
    let again = a.add(c.address());
    assert_ne!(again, to_c);
    a.inject(again, 4, 0, &[9]).expect("room");
    c.receive(None, 4, 0, vec![0; 1], 1);
    assert_eq!(c.wait(HANG).expect("a message").bytes(), [9]);
    // Another endpoint is where the address says, which a later process with the same number may have, too.
    let other = perusal_fi::transport::Address { nonce: !c.address().nonce, ..c.address() };
    let (to_other, to_c) = (a.add(other), a.add(c.address()));
    assert!(a.has_left(to_other) && !a.has_left(to_c));
    assert!("perusal://1.2".parse::<perusal_fi::transport::Address>() == Err(Error::NoAddress));
}

#[test]
fn a_receive_from_a_peer_that_is_removed_ends() {
    let (mut a, mut b, to_b, first) = two();
    let second = b.add(a.address());
    b.receive(Some(first), 5, 0, vec![0; 3], 1);
    b.receive(None, 5, 0, vec![0; 3], 2);
    b.remove(first).expect("a peer");
    assert!(b.poll().is_none(), "the endpoint has another number");
    b.remove(second).expect("a peer");
    let done = b.poll().expect("its end");
    assert_eq!((done.context, done.received, done.buffer.len()), (1, true, 3));
    assert_eq!((done.result, done.tag, done.peer), (Err(Error::Closed), 5, None));
    // One that names nobody takes what the endpoint sends all the same.
    a.inject(to_b, 5, 0, &[7]).expect("room");
    let done = end(&mut b, &mut a);
    assert_eq!((done.context, done.result, done.bytes()), (2, Ok(()), &[7][..]));
}

#[test]
fn a_receive_from_a_peer_that_is_not_there_ends() {
    let (mut a, mut b, to_b, _) = two();
    // Never added; removed.
    a.remove(to_b).expect("a peer");
    for (peer, context) in [(Peer(70), 1), (to_b, 2)] {
        assert_eq!(a.probe(Some(peer), 0, 0), None);
        a.receive(Some(peer), 5, 0, vec![0; 3], context);
        let done = a.poll().expect("its end");
        assert_eq!((done.context, done.received, done.buffer.len()), (context, true, 3));
        assert_eq!((done.result, done.tag, done.peer), (Err(Error::UnknownPeer), 5, None));
    }
    // Added, with an address where no endpoint ever was.
    let nowhere = perusal_fi::transport::Address { nonce: !b.address().nonce, ..b.address() };
    let nobody = b.add(nowhere);
    b.receive(Some(nobody), 0, 0, vec![0; 3], 3);
    let done = b.wait(HANG).expect("its end");
    assert_eq!((done.context, done.result), (3, Err(Error::Closed)));
}

/// The first process belongs to another user, or the kernel shows nothing of it.
#[test]
fn an_address_in_a_process_of_somebody_else_is_unreachable() {
    let mut a = Endpoint::open().expect("an endpoint");
    let init = a.add(perusal_fi::transport::Address { pid: 1, fd: 2, nonce: 3 });
    assert_eq!(a.inject(init, 0, 0, &[1]), Err(Error::Unreachable));
    assert_eq!(a.send(init, 0, 0, vec![1; 1 << 20], 1).expect_err("nobody").error, Error::Unreachable);
    assert!(a.has_left(init));
}

/// A sender that has its buffer back may write anything into it: nobody takes that for the message.
#[test]
fn an_announced_message_to_a_peer_that_was_removed_does_not_arrive() {
    for added_again in [false, true] {
        let (mut a, mut b, to_b, from_a) = two();
        let mut c = Endpoint::open().expect("an endpoint");
        let to_c = a.add(c.address());
        a.send(to_b, 1, 0, vec![1; 1 << 20], 1).expect("room");
        a.send(to_c, 1, 0, vec![3; 1 << 20], 2).expect("room");
        while b.probe(Some(from_a), 1, 0).is_none() || c.probe(None, 1, 0).is_none() {}
        a.remove(to_b).expect("a peer");
        let mut ended = a.wait(HANG).expect("an end");
        assert_eq!((ended.context, ended.result), (1, Err(Error::Closed)));
        ended.buffer.fill(2);
        if added_again {
            let again = a.add(b.address());
            a.send(again, 9, 0, vec![4; 1 << 20], 3).expect("room");
        }
        b.receive(Some(from_a), 1, 0, vec![0; 1 << 20], 4);
        let received = end(&mut b, &mut a);
        assert_eq!((received.context, received.result), (4, Err(Error::Closed)));
        // What others were to have arrives.
        c.receive(None, 1, 0, vec![0; 1 << 20], 5);
        let received = end(&mut c, &mut a);
        assert!(received.result == Ok(()) && received.bytes().iter().all(|&byte| byte == 3));
        if added_again {
            b.receive(Some(from_a), 9, 0, vec![0; 1 << 20], 6);
            let received = end(&mut b, &mut a);
            assert!(received.result == Ok(()) && received.bytes().iter().all(|&byte| byte == 4));
        }
    }
}

#[test]
fn a_peer_that_was_added_twice_keeps_the_number_that_is_left() {
    let (mut a, mut b, to_b, first) = two();
    let second = b.add(a.address());
    b.remove(first).expect("it was added");
    a.inject(to_b, 1, 0, &[7]).expect("room");
    b.receive(None, 1, 0, vec![0; 1], 2);
    assert_eq!(end(&mut b, &mut a).peer, Some(second));
}

#[test]
fn a_thread_that_waits_is_woken_by_a_message_and_endpoints_change_threads() {
    let (mut a, b, to_b, _) = two();
    let waiter = std::thread::spawn(move || {
        let mut b = b;
        assert!(b.wait(Duration::from_millis(20)).is_none());
        b.receive(None, 0, 0, vec![0; 8], 1);
        b.wait(HANG).map(|done| done.len)
    });
    std::thread::sleep(Duration::from_millis(50));
    a.inject(to_b, 0, 0, &[1; 8]).expect("room");
    assert_eq!(waiter.join().expect("a thread"), Some(8));
}

/// Runs a program. Returns its standard output.
fn output(command: &mut Command) -> String {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let (said, wrong) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{command:?}: {}\n{said}{wrong}", output.status);
    said.into_owned()
}

#[test]
fn the_example_in_rust_survives_the_end_of_a_worker() {
    let deps = std::env::current_exe().expect("this program");
    let program = deps.parent().and_then(std::path::Path::parent).expect("a folder").join("examples/farm");
    assert!(program.exists(), "to be built first: cargo build -p perusal-fabric --example farm");
    let said = output(&mut Command::new(program));
    assert!(said.contains("200 results, all right: true"), "{said}");
}

#[test]
fn the_example_in_c_compiles_without_a_warning_and_runs() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let work = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("transport-c");
    std::fs::create_dir_all(&work).expect("a folder");
    let deps = std::env::current_exe().expect("this program");
    let library = deps.parent().expect("a folder").join("libperusal_fi.so");
    // As the distribution calls it.
    std::fs::copy(&library, work.join("libperusal-fi.so")).expect("the library beside this program");
    let flags = ["-Wall", "-Wextra", "-Werror", "-O1", "-o"];
    for (compiler, standard) in [("cc", "-std=gnu11"), ("c++", "-std=c++17")] {
        // The header in C++, the example in C.
        let mut compile = Command::new(compiler);
        compile.arg(standard).args(flags).arg(work.join("program")).arg("-I").arg(root.join("include"));
        if compiler == "cc" {
            compile.arg(root.join("examples/transport/pingpong.c"));
        } else {
            let source = work.join("header.cpp");
            std::fs::write(
                &source,
                "#include <perusal-transport.h>\nint main() { return perusal_progress(nullptr) == 0; }\n",
            )
            .expect("a file");
            compile.arg(source);
        }
        compile.arg("-L").arg(&work).arg("-lperusal-fi");
        output(&mut compile);
        let said = output(Command::new(work.join("program")).env("LD_LIBRARY_PATH", &work));
        assert!(compiler != "cc" || said == "1000 rounds; the other one has left: 1\n", "{said}");
    }
}
