//! Children of fork, which have what their parent has opened.

use crate::node::{Node, Said};
use crate::{OTHER, both, pattern};
use perusal_fi::transport::{Endpoint, Error, Peer};
use std::process::Command;

#[test]
fn a_child_is_refused_what_its_parent_has_opened() {
    let mut parent = Command::new(std::env::current_exe().expect("this program"));
    parent.args(["the_other_process", "--exact", "--nocapture"]).env(OTHER, "parent");
    let ended = parent.output().expect("a process");
    let said = String::from_utf8_lossy(&ended.stderr);
    assert!(ended.status.success(), "{said}");
    assert_eq!(said.matches("a domain of the process that this one was forked from").count(), 4, "{said}");
    assert_eq!(said.matches("an endpoint of the process that this one was forked from").count(), 4, "{said}");
}

/// How a child ends that does this: the status of its exit.
fn in_child(what: impl FnOnce()) -> i32 {
    // SAFETY: the other threads of this process only wait, and hold nothing that the child needs.
    let child = unsafe { libc::fork() };
    if child == 0 {
        // SAFETY: plain calls. A child that hangs ends by the signal.
        unsafe { libc::alarm(300) };
        what();
        // SAFETY: what the parent has buffered is the parent's.
        unsafe { libc::_exit(0) };
    }
    let mut status = 0;
    // SAFETY: a child of this process, and room for its status.
    assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
    assert!(libc::WIFEXITED(status), "the child ended by signal {}", libc::WTERMSIG(status));
    libc::WEXITSTATUS(status)
}

/// What that process does.
pub fn children_are_refused() {
    for node in [Node::new(), Node::with_automatic_progress()] {
        let peer = Node::new();
        let (to_peer, to_node) = (node.insert(&peer.name()), peer.insert(&node.name()));
        let (bytes, mut room) = (pattern(1 << 20, 1), vec![0; 1 << 20]);
        assert_eq!(in_child(|| _ = node.send_now(&bytes[..8], to_peer, 1, 0, 1)), 1);
        assert_eq!(in_child(|| _ = node.read_now()), 1);
        // Nothing of the parent's is closed.
        let close = || {
            // SAFETY: the copy is closed in the child, whose parent has the original.
            drop(unsafe { std::ptr::read(&raw const node) });
        };
        assert_eq!(in_child(close), 0);
        // What the child opens is its own.
        let own = || {
            let (one, other) = (Node::new(), Node::new());
            let to = one.insert(&other.name());
            let mut room = [0; 8];
            other.receive(&mut room, perusal_fi::api::FI_ADDR_UNSPEC, 1, 0, 2);
            assert_eq!(one.send(&bytes[..8], to, 1, 0, 1), 0);
            assert!(matches!(both(&one, &other), (Said::Done(1, ..), Said::Done(2, ..))));
        };
        assert_eq!(in_child(own), 0);
        peer.receive(&mut room, to_node, 1, 0, 2);
        assert_eq!(node.send(&bytes, to_peer, 1, 0, 1), 0);
        assert!(matches!(both(&node, &peer), (Said::Done(1, ..), Said::Done(2, ..))));
        assert!(room == bytes);
    }
    // An endpoint without libfabric, the second with a completion to take.
    let (mut one, mut other) =
        (Endpoint::open().expect("an endpoint"), Endpoint::open().expect("an endpoint"));
    let (to, back) = (one.add(other.address()), other.add(one.address()));
    one.inject(to, 1, 0, &[1]).expect("room");
    other.inject(back, 1, 0, &[1]).expect("room");
    // SAFETY: the copy is dropped in the child, whose parent has the original.
    assert_eq!(in_child(|| drop(unsafe { std::ptr::read(&raw const one) })), 0);
    // What the child would write into the parent's rings is not written: the process ends.
    assert_eq!(in_child(|| _ = one.inject(to, 1, 0, &[3])), 1);
    assert_eq!(in_child(|| _ = one.poll()), 1);
    assert_eq!(in_child(|| _ = one.address()), 1);
    other.receive(Some(Peer(70)), 1, 0, Vec::new(), 0);
    assert_eq!(in_child(|| _ = other.poll()), 1);
    assert!(other.poll().is_some_and(|done| done.result == Err(Error::UnknownPeer)));
    assert!(!other.has_left(back) && !one.has_left(to));
    one.inject(to, 1, 0, &[2]).expect("room");
    for number in 1..=2 {
        other.receive(Some(back), 1, 0, vec![0], number);
        let done = other.wait(std::time::Duration::from_secs(900)).expect("a message");
        assert!(done.result.is_ok() && done.context == number);
    }
}
