//! What an endpoint does only for those who ask for it.

use crate::node::{Node, Said, ask_of, info, no_hints};
use crate::pattern;
use perusal_fi::api::*;

const TWO: u32 = 2 << 16;
const MESSAGES: u64 = FI_MSG | FI_TAGGED;
const AGAIN: isize = -(FI_EAGAIN as isize);

/// An endpoint with these capabilities.
fn open(caps: u64) -> Node {
    Node::open(info(caps).expect("an offer")).expect("an endpoint")
}

/// The capabilities of the offer to a caller of this version that asks for some.
fn offered(version: u32, caps: u64) -> Option<u64> {
    let mut hints = no_hints();
    hints.caps = caps;
    // SAFETY: what the provider made is valid, and nothing here gives it back.
    ask_of(version, None, None, 0, &hints).ok().map(|info| unsafe { (*info).caps })
}

#[test]
fn what_must_be_asked_for_is_offered_to_nobody_else() {
    let new = [FI_TAGGED_DIRECTED_RECV, FI_TAGGED_MULTI_RECV, FI_EXACT_DIRECTED_RECV];
    for asked in new {
        assert!(offered(TWO, MESSAGES | asked).is_some_and(|caps| caps & asked != 0), "{asked:#x}");
        assert_eq!(offered(1 << 16 | 17, MESSAGES | asked), None, "the bit was another one then");
    }
    let errors = FI_SOURCE | FI_SOURCE_ERR;
    for version in [TWO, 1 << 16 | 17] {
        assert!(offered(version, FI_MSG | errors).is_some_and(|caps| caps & errors == errors));
        assert_eq!(offered(version, FI_MSG | FI_SOURCE_ERR), None, "it needs the source");
        let unasked = offered(version, 0).expect("an offer");
        assert_eq!(unasked & (new[0] | new[1] | new[2] | FI_SOURCE_ERR | FI_FENCE), 0);
        assert!(offered(version, FI_RMA | FI_FENCE).is_some_and(|caps| caps & FI_FENCE != 0));
    }
}

/// A message of the other peer is there first.
#[test]
fn receives_look_at_the_sender_that_they_name_where_that_is_asked_for() {
    for (caps, plain, tagged) in [
        (0, false, false),
        (FI_DIRECTED_RECV, true, true),
        (FI_TAGGED_DIRECTED_RECV, false, true),
        (FI_EXACT_DIRECTED_RECV, true, true),
        (FI_EXACT_DIRECTED_RECV | FI_TAGGED_DIRECTED_RECV, false, true),
    ] {
        let (node, named, other) = (open(MESSAGES | FI_SOURCE | caps), open(MESSAGES), open(MESSAGES));
        let (from, from_other) = (node.insert(&named.name()), node.insert(&other.name()));
        let [to, to_also] = [&named, &other].map(|peer| peer.insert(&node.name()));
        let mut rooms = [[0; 8]; 2];
        for (peer, to, byte) in [(&other, to_also, 2), (&named, to, 1)] {
            peer.send_plain(&[byte; 8], to, 0);
            assert_eq!(peer.send(&[byte; 8], to, 5, 0, 0), 0);
        }
        // So that what has come is there in the order of the peers' rings, which nothing promises.
        while node.receive_flags(&mut [], 6, 9, FI_PEEK) == 0 && node.read() != Said::Failed(9, FI_ENOMSG) {}
        let [first, second] = &mut rooms;
        node.receive_plain(first, from, 1);
        node.receive(second, from, 5, 0, 2);
        let said = [node.read(), node.read()];
        for (room, said, is_directed) in [(rooms[0], &said[0], plain), (rooms[1], &said[1], tagged)] {
            let Said::Done(.., source) = *said else { panic!("{said:?}") };
            assert!(!is_directed || (room, source) == ([1; 8], from), "{caps:#x}: {room:?} {source}");
            assert_eq!(room[0], if source == from_other { 2 } else { 1 });
        }
        let exact = if caps & FI_EXACT_DIRECTED_RECV != 0 { -(FI_EINVAL as isize) } else { 0 };
        assert_eq!(node.try_receive(&mut rooms[0], FI_ADDR_UNSPEC, 7, 0, 3), exact, "{caps:#x}");
    }
}

#[test]
fn a_message_of_a_sender_without_a_number_is_an_error_that_names_it() {
    let node = open(MESSAGES | FI_SOURCE | FI_SOURCE_ERR);
    let (peer, mut room) = (open(MESSAGES), [0; 8]);
    let (to, name) = (peer.insert(&node.name()), format!("{}\0", peer.name()));
    let flags = FI_RECV | FI_TAGGED | FI_REMOTE_CQ_DATA;
    let counter = node.counter();
    assert_eq!(node.bind(&counter, FI_RECV), 0);
    // With room for the name, for a part of it, and without: then it stands where the provider says.
    for (buffer, said) in [(64, &name[..]), (10, &name[..10]), (0, &name[..])] {
        node.receive(&mut room, FI_ADDR_UNSPEC, 1, 0, 4);
        assert_eq!(peer.send(&[5; 8], to, 1, 0, 0), 0);
        assert_eq!(node.read_error_data(buffer), (4, flags, 8, FI_EADDRNOTAVAIL, said.into()));
        assert_eq!(std::mem::take(&mut room), [5; 8], "the message is received");
    }
    // Another error has no name, and leaves the next one's.
    node.receive(&mut room[..4], FI_ADDR_UNSPEC, 1, 0, 5);
    node.receive(&mut [0; 8], FI_ADDR_UNSPEC, 1, 0, 6);
    (0..2).for_each(|_| assert_eq!(peer.send(&[5; 8], to, 1, 0, 0), 0));
    let errors = [node.read_error_data(64), node.read_error_data(64)];
    assert_eq!((errors[0].3, &errors[0].4[..]), (FI_ETRUNC, ""));
    assert_eq!((errors[1].3, &errors[1].4), (FI_EADDRNOTAVAIL, &name));
    // The name is an address.
    let from = node.insert(name.trim_end_matches('\0'));
    node.receive(&mut room, FI_ADDR_UNSPEC, 1, 0, 7);
    assert_eq!(peer.send(&[6; 8], to, 1, 0, 0), 0);
    assert_eq!(node.read(), Said::Done(7, flags, 8, 0, 1, from));
    // It was received, so that it counts as such.
    assert_eq!((counter.read_counter(), counter.read_counter_errors()), (5, 1));
    drop(node);
    assert_eq!(counter.try_close(), 0);
}

#[test]
fn a_tagged_buffer_takes_the_messages_that_match_until_it_is_full() {
    const ONE: u64 = FI_RECV | FI_TAGGED | FI_REMOTE_CQ_DATA;
    let (node, peer) = (open(MESSAGES | FI_TAGGED_MULTI_RECV), open(MESSAGES));
    let to = peer.insert(&node.name());
    let send = |len: usize, tag: u64| assert_eq!(peer.send(&pattern(len, tag), to, tag, 0, 0), 0);
    let done = |context, flags, len, tag| Said::Done(context, flags, len, 0, tag, FI_ADDR_NOTAVAIL);
    let (mut several, mut single) = (vec![0; 300], vec![0; 100]);
    // One message is there before, and one of another tag.
    send(100, 1);
    send(8, 2);
    assert_eq!(node.receive_flags(&mut several, 1, 7, FI_MULTI_RECV), 0);
    assert_eq!(node.read(), done(7, ONE, 100, 1));
    // The buffer is older than this receive, so that the next message is the buffer's.
    node.receive(&mut single, FI_ADDR_UNSPEC, 1, 0, 8);
    send(100, 1);
    assert_eq!(node.read(), done(7, ONE, 100, 1));
    send(90, 1);
    assert_eq!(node.read(), done(7, ONE | FI_MULTI_RECV, 90, 1));
    send(100, 1);
    assert_eq!(node.read(), done(8, ONE, 100, 1));
    let bytes = [pattern(100, 1), pattern(100, 1), pattern(90, 1)].concat();
    assert!(several[..290] == bytes && single == pattern(100, 1));
    // A long message, which needs the progress of both, and a buffer that is given back unused.
    let mut long = vec![0; 500_000];
    assert_eq!(node.receive_flags(&mut long, 3, 9, FI_MULTI_RECV), 0);
    let bytes = pattern(400_000, 3);
    assert_eq!(peer.send(&bytes, to, 3, 0, 1), 0);
    let (mut sent, mut received) = (None, None);
    while sent.is_none() || received.is_none() {
        sent = sent.or_else(|| peer.read_now().filter(|said| matches!(said, Said::Done(1, ..))));
        received = received.or_else(|| node.read_now());
    }
    assert_eq!(received, Some(done(9, ONE, 400_000, 3)));
    assert!(long[..400_000] == bytes);
    node.cancel(9);
    let (context, flags, _, error, _) = node.read_error_data(64);
    assert_eq!((context, flags, error), (9, FI_RECV | FI_TAGGED | FI_MULTI_RECV, FI_ECANCELED));
    // An endpoint without the capability refuses the flag.
    assert_eq!(open(MESSAGES).receive_flags(&mut several, 1, 7, FI_MULTI_RECV), -(FI_EBADFLAGS as isize));
}

/// However many receives are posted: the queue has another form then.
#[test]
fn a_tagged_buffer_for_several_messages_keeps_its_place_among_many_receives() {
    let (node, peer) = (open(MESSAGES | FI_TAGGED_MULTI_RECV), open(MESSAGES));
    let to = peer.insert(&node.name());
    let (mut rooms, mut several) = (vec![[0_u8; 8]; 200], vec![0_u8; 8 * 50]);
    for (at, room) in rooms.iter_mut().enumerate() {
        if at == 100 {
            assert_eq!(node.receive_flags(&mut several, 5, 1000, FI_MULTI_RECV), 0);
        }
        // Every other one takes any tag.
        let ignore = if at % 2 == 0 { u64::MAX } else { 0 };
        node.receive(room, FI_ADDR_UNSPEC, 5, ignore, at);
    }
    // The buffer gives itself back when less than 64 bytes are left.
    let taken = 100 + (8 * 50 - 64) / 8 + 1;
    for round in 0..150 {
        while peer.send(&[1; 8], to, 5, 0, 0) != 0 {}
        let expected = match round {
            ..100 => round,
            round if round < taken => 1000,
            round => 100 + round - taken,
        };
        assert!(matches!(node.read(), Said::Done(context, ..) if context == expected), "{round}");
    }
}

#[test]
fn an_operation_with_a_fence_begins_when_all_former_ones_with_its_peer_have_ended() {
    const CAPS: u64 = MESSAGES | FI_RMA | FI_FENCE;
    let (node, peer, other) = (open(CAPS), open(CAPS), open(CAPS));
    let [to, to_other] = [&peer, &other].map(|one| node.insert(&one.name()));
    let (long, mut room, mut memory) = (pattern(100_000, 1), vec![0; 100_000], [0_u8; 8]);
    let place = RmaIov { addr: 0, len: 8, key: 3 };
    let _region = peer.register(memory.as_mut_ptr(), 8, FI_REMOTE_WRITE, 3).expect("a registration");
    // A send that nobody has received yet.
    assert_eq!(node.send(&long, to, 1, 0, 1), 0);
    let write = || node.write_flags(&[&[7; 8]], to, &[place], FI_COMPLETION | FI_FENCE);
    let send = |to| node.send_flags(&[7; 8], to, 2, FI_COMPLETION | FI_FENCE);
    assert_eq!((send(to), write(), send(to_other)), (AGAIN, AGAIN, 0), "the other peer has none before");
    assert!(matches!(node.read(), Said::Done(0, ..)));
    peer.receive(&mut room, FI_ADDR_UNSPEC, 1, 0, 2);
    let (mut sent, mut received) = (None, None);
    while sent.is_none() || received.is_none() {
        sent = sent.or_else(|| node.read_now());
        received = received.or_else(|| peer.read_now());
    }
    assert!(matches!((sent, received), (Some(Said::Done(1, ..)), Some(Said::Done(2, ..)))));
    // A message is on its way when the write is posted: the peer has taken it when the write has ended.
    assert_eq!((send(to), node.read()), (0, Said::Done(0, FI_SEND | FI_TAGGED, 0, 0, 0, FI_ADDR_NOTAVAIL)));
    assert_eq!((write(), node.read_now(), send(to), write()), (0, None, AGAIN, AGAIN));
    while node.read_now().is_none() {
        assert_eq!(peer.read_now(), None);
    }
    assert!(room == long && memory == [7; 8]);
    assert_eq!(peer.receive_flags(&mut [], 2, 9, FI_PEEK), 0);
    assert!(matches!(peer.read(), Said::Done(9, ..)));
    assert_eq!(send(FI_ADDR_UNSPEC), -(FI_EINVAL as isize));
}

/// Completions of a message of the peer with this number, and how they name it.
fn source_of(node: &Node, peer: &Node, to: u64) -> u64 {
    let mut room = [0; 8];
    node.receive(&mut room, FI_ADDR_UNSPEC, 1, 0, 4);
    assert_eq!(peer.send(&[5; 8], to, 1, 0, 0), 0);
    match node.read() {
        Said::Done(4, .., source) => source,
        said => panic!("{said:?}"),
    }
}

#[test]
fn completions_name_their_source_as_the_caller_wants_it() {
    let asks = MESSAGES | FI_SOURCE | FI_SOURCE_ERR | FI_DIRECTED_RECV | FI_AV_USER_ID;
    assert!(offered(TWO, asks).is_some_and(|caps| caps & FI_AV_USER_ID != 0));
    let (node, peer) = (Node::with_own_ids(asks), open(MESSAGES));
    let (number, to) = (node.insert(&peer.name()), peer.insert(&node.name()));
    assert_eq!(source_of(&node, &peer, to), FI_ADDR_NOTAVAIL, "it is known, and has no identifier yet");
    assert_eq!(node.set_user_id(number, 1 << 40, 0), 0);
    assert_eq!(source_of(&node, &peer, to), 1 << 40);
    // Calls name it by its number as before.
    let mut room = [0; 8];
    node.receive(&mut room, number, 1, 0, 5);
    assert_eq!(peer.send(&[5; 8], to, 1, 0, 0), 0);
    assert!(matches!(node.read(), Said::Done(5, ..)));
    assert_eq!(node.set_user_id(number + 1, 1, 0), -FI_EINVAL);
    assert_eq!(node.set_user_id(number, 1, FI_AUTH_KEY), -FI_EBADFLAGS);
    assert_eq!(node.insert_as(&peer.name(), 7).0, -FI_EINVAL, "fi_av_set_user_id says it");
    // With each address.
    let node = open(asks);
    let to = peer.insert(&node.name());
    let (inserted, number) = node.insert_as(&peer.name(), 77);
    assert_eq!((inserted, number), (1, 0));
    assert_eq!(source_of(&node, &peer, to), 77);
    assert_eq!(node.set_user_id(number, 1, 0), -FI_EINVAL, "the vector was not opened for that");
    // Another number of the same endpoint stays when the first goes.
    let again = node.insert(&peer.name());
    assert_eq!(source_of(&node, &peer, to), 77);
    node.remove(number);
    assert_eq!(source_of(&node, &peer, to), again);
}
