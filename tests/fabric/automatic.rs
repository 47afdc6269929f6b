//! Progress without a call, where that is asked for (FI_PROGRESS_AUTO).

use crate::node::{Node, Part, Said};
use crate::pattern;
use perusal_fi::api::*;

const ALL: u64 = FI_REMOTE_READ | FI_REMOTE_WRITE;

/// An endpoint that is progressed by itself and one that is not; with each, the other's number.
fn two() -> (Node, Node, u64, u64) {
    let (a, b) = (Node::with_automatic_progress(), Node::new());
    let (to_b, to_a) = (a.insert(&b.name()), b.insert(&a.name()));
    (a, b, to_b, to_a)
}

#[test]
fn messages_and_accesses_are_served_while_nobody_calls() {
    let (target, origin, from, to) = two();
    let (message, mut room) = (pattern(1 << 20, 1), vec![0; 1 << 20]);
    let mut memory = vec![7_u64; 4];
    let _registered = target.register(memory.as_mut_ptr().cast(), 32, ALL, 3).expect("a registration");
    target.receive(&mut room, from, 1, 0, 5);
    for round in 0..3 {
        let mut old = [0];
        assert_eq!(origin.fetch(&[10], &mut old, to, 0, 3, 2), 0);
        assert!(matches!(origin.read(), Said::Done(11, ..)));
        assert_eq!(old, [7 + 10 * round]);
    }
    assert_eq!(origin.send(&message, to, 1, 0, 4), 0);
    assert!(matches!(origin.read(), Said::Done(4, ..)));
    assert!(matches!(target.read(), Said::Done(5, ..)));
    assert!(room == message);
}

#[test]
fn a_send_goes_on_while_its_sender_does_not_call() {
    let (sender, receiver, to, from) = two();
    let (message, mut room) = (pattern(4 << 20, 2), vec![0; 4 << 20]);
    // Of two pieces, which the receiver asks for.
    assert_eq!(sender.send_pieces(&message, to, 1, 0, 4), 0);
    receiver.receive(&mut room, from, 1, 0, 5);
    assert!(matches!(receiver.read(), Said::Done(5, ..)));
    assert!(room == message);
    assert!(matches!(sender.read(), Said::Done(4, ..)));
}

#[test]
fn a_thread_that_waits_is_woken_by_what_happens_without_it() {
    let (node, peer, from, to) = two();
    let mut room = [0; 8];
    for round in 0..20 {
        node.receive(&mut room, from, 1, 0, 5);
        // Either way of waiting: in a call, and for the descriptor.
        if round % 2 == 0 {
            while !node.may_wait() {
                assert_eq!(node.read_now(), None);
            }
        }
        assert_eq!(peer.send(&[round; 8], to, 1, 0, 4), 0);
        assert!(matches!(peer.read(), Said::Done(4, ..)));
        if round % 2 == 0 {
            assert!(node.is_readable(900_000), "nobody woke this thread");
            assert!(matches!(node.read(), Said::Done(5, ..)));
        } else {
            assert!(node.wait(900_000), "nobody woke this thread");
        }
        assert_eq!(room, [round; 8]);
    }
}

#[test]
fn a_domain_closes_while_its_thread_works() {
    for round in 0..20_u64 {
        let (node, peer, from, to) = two();
        let mut room = [0; 8];
        assert_eq!(node.try_close(Part::Domain), -FI_EBUSY);
        // It goes on.
        node.receive(&mut room, from, 1, 0, 5);
        assert_eq!(peer.send(&[1; 8], to, 1, 0, 4), 0);
        if round % 2 == 0 {
            assert!(matches!(node.read(), Said::Done(5, ..)));
        }
        let domain = node.into_domain();
        assert_eq!(domain.try_close(), 0);
    }
}
