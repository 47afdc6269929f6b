//! How objects are bound, in which order they are closed, and what address vectors take.

use crate::node::{CAPS, Node, Part, Said, ask_of, info, no_hints};
use crate::two;
use perusal_fi::api::*;
use std::ffi::CString;
use std::mem::ManuallyDrop;

const BUSY: i32 = -FI_EBUSY;

#[test]
fn an_object_is_closed_after_those_that_use_it() {
    let node = Node::new();
    for part in [Part::Fabric, Part::Domain, Part::Queue, Part::Vector] {
        assert_eq!(node.try_close(part), BUSY, "{part:?}");
    }
    // What was not closed serves on.
    let to = node.insert(&node.name());
    let mut buffer = [0; 4];
    node.receive(&mut buffer, FI_ADDR_UNSPEC, 1, 0, 1);
    assert_eq!(node.send(&[1, 2, 3, 4], to, 1, 0, 2), 0);
    assert!(matches!((node.read(), node.read()), (Said::Done(..), Said::Done(..))));
    assert_eq!(buffer, [1, 2, 3, 4]);
}

#[test]
fn a_counter_is_closed_after_the_endpoint_and_the_registration_that_use_it() {
    let node = Node::bound(info(CAPS).expect("an endpoint")).expect("an endpoint");
    let (of_endpoint, events) = (node.counter(), node.event_queue());
    assert_eq!((node.bind(&of_endpoint, FI_SEND), node.bind(&events, 0)), (0, 0));
    assert_eq!((of_endpoint.try_close(), events.try_close()), (BUSY, BUSY));
    let mut memory = [0_u8; 8];
    let registered = node.register(memory.as_mut_ptr(), 8, FI_REMOTE_WRITE, 1).expect("a registration");
    let of_region = node.count(&registered, FI_REMOTE_WRITE);
    assert_eq!(of_region.try_close(), BUSY);
    drop(registered);
    assert_eq!(of_region.try_close(), 0);
    drop(node);
    assert_eq!((of_endpoint.try_close(), events.try_close()), (0, 0));
}

#[test]
fn objects_of_another_domain_are_not_bound() {
    let (node, other) = (Node::bound(info(CAPS).expect("an endpoint")).expect("an endpoint"), Node::new());
    assert_eq!(node.bind_part(&other, Part::Queue, FI_SEND), -FI_EDOMAIN);
    assert_eq!(node.bind_part(&other, Part::Vector, 0), -FI_EDOMAIN);
    assert_eq!(node.bind(&other.counter(), FI_SEND), -FI_EDOMAIN);
    let mut memory = [0_u8; 8];
    let registered = node.register(memory.as_mut_ptr(), 8, FI_REMOTE_WRITE, 1).expect("a registration");
    assert_eq!(registered.bind(&other.counter(), FI_REMOTE_WRITE), -FI_EDOMAIN);
}

#[test]
fn an_endpoint_has_one_vector_and_one_queue_for_each_direction() {
    let node = Node::bound(info(CAPS).expect("an endpoint")).expect("an endpoint");
    let (queue, vector, counter) = (node.queue(), node.vector(0).expect("a vector"), node.counter());
    assert_eq!(node.bind(&vector, 0), -FI_EINVAL);
    for flags in [FI_SEND, FI_RECV, FI_SEND | FI_RECV] {
        assert_eq!(node.bind(&queue, flags), -FI_EINVAL);
    }
    for flags in [0, FI_SELECTIVE_COMPLETION, FI_SEND | FI_READ] {
        assert_eq!(node.bind(&queue, flags), -FI_EBADFLAGS, "{flags:#x}");
    }
    for flags in [0, FI_SEND | FI_MSG] {
        assert_eq!(node.bind(&counter, flags), -FI_EBADFLAGS, "{flags:#x}");
    }
}

#[test]
fn an_endpoint_has_one_counter_for_a_kind_of_operations() {
    let node = Node::bound(info(CAPS).expect("an endpoint")).expect("an endpoint");
    let (one, other) = (node.counter(), node.counter());
    assert_eq!((node.bind(&one, FI_SEND | FI_WRITE), node.bind(&other, FI_RECV | FI_READ)), (0, 0));
    for flags in [FI_SEND, FI_WRITE, FI_RECV | FI_REMOTE_READ, FI_READ] {
        assert_eq!(node.bind(&other, flags), -FI_EINVAL, "{flags:#x}");
    }
    assert_eq!(node.bind(&other, FI_REMOTE_READ | FI_REMOTE_WRITE), 0);
    drop(node);
    assert_eq!((one.try_close(), other.try_close()), (0, 0));
}

#[test]
fn an_alias_has_flags_of_its_own_and_outlives_the_first_object() {
    let node = ManuallyDrop::new(Node::new());
    let peer = Node::new();
    let (to, mut room) = (node.insert(&peer.name()), [0; 8]);
    for (flags, error) in [
        (0, -FI_EINVAL),
        (FI_SEND | FI_RECV, -FI_EINVAL),
        (FI_SEND | FI_TRIGGER, -FI_EBADFLAGS),
        (FI_RECV | FI_INJECT, -FI_EBADFLAGS),
    ] {
        assert_eq!(node.alias(flags).err(), Some(error), "{flags:#x}");
    }
    let alias = node.alias(FI_SEND | FI_DELIVERY_COMPLETE).expect("an alias");
    assert_eq!((alias.flags(FI_GETOPSFLAG, FI_SEND), alias.name()), (Ok(FI_DELIVERY_COMPLETE), node.name()));
    assert_eq!((node.flags(FI_GETOPSFLAG, FI_SEND), alias.flags(FI_GETOPSFLAG, FI_RECV)), (Ok(0), Ok(0)));
    // What is sent by the alias is complete when the peer has it, by the first object at once.
    assert_eq!((alias.send_now(&[1; 8], to, 1, 0, 1), node.read_now()), (0, None));
    assert_eq!(node.send_now(&[2; 8], to, 1, 0, 2), 0);
    assert!(matches!(node.read_now(), Some(Said::Done(2, ..))));
    assert_eq!(node.close_endpoint(), 0);
    peer.receive(&mut room, FI_ADDR_UNSPEC, 1, 0, 3);
    assert!(matches!((peer.read(), alias.read()), (Said::Done(3, ..), Said::Done(1, ..))));
    for part in [Part::Queue, Part::Vector] {
        assert_eq!(alias.try_close(part), BUSY, "{part:?}");
    }
    assert_eq!(alias.send_now(&[3; 8], to, 2, 0, 4), 0);
    peer.receive(&mut room, FI_ADDR_UNSPEC, 2, 0, 5);
    assert!(matches!((peer.read(), alias.read()), (Said::Done(5, ..), Said::Done(4, ..))));
    assert_eq!(room, [3; 8]);
    drop(ManuallyDrop::into_inner(alias));
    let disabled = Node::bound(info(CAPS).expect("an endpoint")).expect("an endpoint");
    assert_eq!(disabled.alias(FI_SEND).err(), Some(-FI_EOPBADSTATE));
}

#[test]
fn services_with_numbers_are_inserted_in_their_order() {
    let stem = format!("test-row-{}-", std::process::id());
    let name = |number: u32| format!("{stem}{number:02}");
    let servers = [9, 10].map(|number| crate::service::endpoint_named(&name(number)));
    let node = Node::new();
    let first = CString::new(name(9)).expect("a text");
    let (there, numbers, errors) = node.insert_symmetric((c"127.0.0.1", 1), (&first, 3));
    assert_eq!((there, &numbers[..]), (2, &[0, 1, FI_ADDR_NOTAVAIL][..]));
    assert_eq!(errors, [0, 0, FI_EADDRNOTAVAIL]);
    assert_eq!([0, 1].map(|at| node.lookup(at)), servers.each_ref().map(Node::name));
    // The second node is another one, the first is here.
    let (there, numbers, errors) = node.insert_symmetric((c"127.0.0.1", 2), (&first, 1));
    assert_eq!((there, numbers[0], errors[0]), (if errors[1] == 0 { 2 } else { 1 }, 2, 0));
    assert_eq!(node.insert_symmetric((c"localhost", 2), (&first, 1)).2, [0, FI_EINVAL]);
    assert_eq!(node.insert_symmetric((c"localhost", 0), (&first, 1)).0, 0);
}

#[test]
fn addresses_lie_one_behind_the_other_or_are_pointed_to() {
    let (a, b, c) = (Node::new(), Node::new(), Node::new());
    let names = [b.name(), c.name()];
    let texts = [&names[0][..], &names[1][..]];
    for (apart, first) in [(false, 0), (true, 2)] {
        assert_eq!(a.insert_all(&texts, apart, 0), (2, vec![first, first + 1]));
        assert_eq!([first, first + 1].map(|at| a.lookup(at)), names);
    }
    for apart in [false, true] {
        let wrong = [texts[0], "fi_shm://1", texts[1]];
        assert!(matches!(a.insert_all(&wrong, apart, 0), (2, numbers) if numbers[1] == FI_ADDR_NOTAVAIL));
        assert_eq!(a.insert_all(&["fi_shm://1"], apart, 0), (0, vec![FI_ADDR_NOTAVAIL]));
        assert_eq!(a.insert_all(&[], apart, 0), (0, vec![]));
    }
}

#[test]
fn what_would_give_numbers_another_meaning_is_refused() {
    let (a, b, _, _) = two();
    assert_eq!(a.insert_all(&[&b.name()], false, FI_AUTH_KEY).0, -FI_EBADFLAGS);
    for flags in [FI_READ, FI_COMPLETION] {
        assert_eq!(a.vector(flags).err(), Some(-FI_ENOSYS), "{flags:#x}");
    }
    const FI_SYMMETRIC: u64 = 1 << 59;
    assert!(a.vector(FI_SYMMETRIC).is_ok());
}

#[test]
fn a_service_is_inserted_without_a_place_for_its_number() {
    let name = std::ffi::CString::new(format!("test-place-{}", std::process::id())).expect("a text");
    let server = crate::service::endpoint_named(name.to_str().expect("text"));
    let node = Node::new();
    assert_eq!(node.insert_service_at_once(c"localhost", &name), (1, 0));
    assert_eq!(node.lookup(0), server.name());
    drop(server);
    assert_eq!(node.insert_service_at_once(c"localhost", &name), (-FI_EADDRNOTAVAIL, FI_EADDRNOTAVAIL));
}

#[test]
fn what_can_be_waited_for_tells_its_kind_of_wait_object() {
    let node = Node::new();
    for kind in [FI_WAIT_NONE, FI_WAIT_UNSPEC, FI_WAIT_FD, FI_WAIT_YIELD] {
        assert_eq!(node.wait_objects(kind), [kind; 2]);
        assert_eq!(node.event_wait_object(FI_WRITE | FI_AFFINITY, kind), Ok(kind));
    }
    assert_eq!(node.event_wait_object(FI_READ, FI_WAIT_NONE), Err(-FI_EINVAL));
    assert_eq!(node.try_wait_for_vector(), -FI_EINVAL);
}

#[test]
fn the_flags_of_operations_that_are_called_without_flags_can_be_changed() {
    let node = Node::new();
    assert_eq!(node.flags(FI_GETOPSFLAG, FI_SEND), Ok(0));
    assert!(node.flags(FI_SETOPSFLAG, FI_SEND | FI_DELIVERY_COMPLETE).is_ok());
    assert!(node.flags(FI_SETOPSFLAG, FI_RECV | FI_COMPLETION).is_ok());
    assert_eq!(node.flags(FI_GETOPSFLAG, FI_SEND), Ok(FI_DELIVERY_COMPLETE));
    assert_eq!(node.flags(FI_GETOPSFLAG, FI_RECV), Ok(FI_COMPLETION));
    for (flags, error) in [
        (0, -FI_EINVAL),
        (FI_SEND | FI_RECV, -FI_EINVAL),
        (FI_SEND | FI_FENCE, -FI_EBADFLAGS),
        (FI_RECV | FI_INJECT, -FI_EBADFLAGS),
    ] {
        assert_eq!(node.flags(FI_SETOPSFLAG, flags), Err(error), "{flags:#x}");
    }
    // A send is complete when its peer has it, from now on.
    let (peer, bytes) = (Node::new(), [1; 8]);
    let to = node.insert(&peer.name());
    assert_eq!(node.send_now(&bytes, to, 1, 0, 1), 0);
    assert_eq!(node.read_now(), None);
    let mut room = [0; 8];
    peer.receive(&mut room, FI_ADDR_UNSPEC, 1, 0, 2);
    assert!(matches!((peer.read(), node.read()), (Said::Done(2, ..), Said::Done(1, ..))));
}

#[test]
fn flags_of_a_call_that_ask_for_what_is_not_offered_are_refused() {
    const NO: isize = -(FI_EBADFLAGS as isize);
    let (a, _b, to, _) = two();
    for flag in [FI_FENCE, FI_TRIGGER, FI_COMMIT_COMPLETE, FI_MULTICAST, FI_AUTH_KEY] {
        assert_eq!(a.send_flags(&[1], to, 1, flag), NO, "{flag:#x}");
        assert_eq!(a.receive_flags(&mut [0], 1, 1, flag), NO, "{flag:#x}");
    }
}

#[test]
fn a_raw_key_can_be_had_of_any_registration_and_is_the_key() {
    for mode in [0, FI_MR_BASIC] {
        let node = Node::with_mode(mode);
        let mut memory = [0_u8; 8];
        let at = memory.as_mut_ptr();
        let registered = node.register(at, 8, FI_REMOTE_READ, 0x1234_5678_9abc).expect("a registration");
        assert!(matches!(registered.raw(4), (error, _, key) if error == -FI_ETOOSMALL && key.len() == 8));
        let (error, base, raw) = registered.raw(64);
        assert_eq!((error, base), (0, if mode == 0 { 0 } else { at as u64 }));
        assert_eq!(node.map_raw(&raw), Ok(registered.key));
        assert_eq!(node.map_raw(&raw[1..]), Err(-FI_EINVAL));
    }
}

/// An endpoint has a queue for the ends of what it begins, whatever counts them.
#[test]
fn an_endpoint_is_enabled_with_a_queue_for_what_it_begins() {
    const EITHER: u64 = FI_SEND | FI_RECV;
    const SENDS: u64 = FI_TAGGED | FI_SEND;
    const RECEIVES: u64 = FI_MSG | FI_RECV;
    const TARGET: u64 = FI_RMA | FI_REMOTE_READ | FI_REMOTE_WRITE;
    let node = Node::new();
    for (caps, queue, counter, error) in [
        (FI_MSG, EITHER, 0, 0),
        (FI_MSG, FI_SEND, FI_RECV, 0),
        (FI_MSG, FI_RECV, FI_SEND, -FI_ENOCQ),
        (FI_MSG, 0, EITHER, -FI_ENOCQ),
        (SENDS, FI_SEND, 0, 0),
        (SENDS, FI_RECV, 0, -FI_ENOCQ),
        (RECEIVES, FI_RECV, 0, 0),
        (RECEIVES, FI_SEND, 0, -FI_ENOCQ),
        (RECEIVES | FI_RMA | FI_READ, FI_RECV, FI_READ, -FI_ENOCQ),
        (RECEIVES | FI_RMA | FI_READ, EITHER, 0, 0),
        (FI_RMA, FI_RECV, 0, -FI_ENOCQ),
        (FI_RMA, FI_SEND, 0, 0),
        (TARGET, FI_RECV, 0, 0),
        (TARGET, 0, FI_REMOTE_WRITE, 0),
        (TARGET, 0, 0, -FI_ENOCQ),
    ] {
        assert_eq!(node.enable_another(caps, queue, counter), error, "{caps:#x} {queue:#x} {counter:#x}");
    }
}

/// Where a queue for one direction is bound alone, the endpoint begins nothing of the other.
#[test]
fn nothing_is_begun_whose_error_has_no_queue() {
    const NO: isize = -(FI_ENOCQ as isize);
    const NEVER: isize = -(FI_ENOSYS as isize);
    for (caps, queue, sends, receives) in [
        (FI_MSG | FI_TAGGED | FI_RMA, FI_SEND, 0, NO),
        (FI_MSG | FI_TAGGED | FI_RECV | FI_RMA | FI_REMOTE_READ, FI_RECV, NEVER, 0),
    ] {
        let node = Node::bound_for(info(caps).expect("an endpoint"), queue).expect("an endpoint");
        node.enable();
        let peer = Node::new();
        let to = node.insert(&peer.name());
        assert_eq!(node.try_send_plain(&[1], to, 1), sends);
        assert_eq!(node.send_now(&[1], to, 1, 0, 1), sends);
        let mut room = [0; 8];
        assert_eq!(node.receive_flags(&mut room, 1, 2, 0), receives);
        if receives == 0 {
            node.cancel(2);
        } else {
            assert_eq!(node.access(true, room.as_mut_ptr(), 0, to, 0, 3), 0);
        }
    }
}

#[test]
fn a_call_takes_as_many_pieces_as_are_offered() {
    const TOO_MANY: isize = -(FI_EINVAL as isize);
    let (a, _b, to, _) = two();
    // SAFETY: what the provider made has all parts.
    let limit = unsafe { (*(*info(CAPS).expect("an endpoint")).tx_attr).iov_limit };
    assert_eq!(a.pieces(limit, to), [0; 8]);
    assert_eq!(a.pieces(limit + 1, to), [TOO_MANY; 8]);
}

/// What a caller has behind the structure that its version of the interface knows stays as it is.
#[test]
fn an_error_is_written_as_long_as_the_caller_knows_it() {
    const GIVEN: u64 = 0x5555_5555_5555_5555;
    for (version, known) in
        [(1 << 16 | 4, 9), (1 << 16 | 5, 10), (1 << 16 | 19, 10), (1 << 16 | 20, 11), (2 << 16, 11)]
    {
        let offer = ask_of(version, None, None, 0, &no_hints()).expect("an endpoint");
        let node = Node::open(offer).expect("an endpoint");
        for given in [GIVEN, 0] {
            let mut room = [0; 8];
            node.receive(&mut room, FI_ADDR_UNSPEC, 5, 0, 7);
            node.cancel(7);
            let said = node.read_error(given);
            assert_eq!((said[0], said[7] as u32), (7, FI_ECANCELED as u32));
            // Room for more data is the caller's from 1.5 on, if there is any.
            assert_eq!(said[8], if known > 9 { given } else { 0 });
            assert!(known < 10 || said[9] == 0, "there is no more data");
            assert!(known < 11 || said[10] == FI_ADDR_NOTAVAIL);
            assert!(said[known..].iter().all(|&word| word == given), "{version:#x}: {said:x?}");
        }
    }
}

#[test]
fn a_domain_takes_an_event_queue_to_which_nothing_is_reported() {
    const FI_REG_MR: u64 = 1 << 59;
    let node = Node::new();
    let events = node.event_queue();
    assert_eq!(node.bind_domain(&events, FI_REG_MR), -FI_EBADFLAGS);
    assert_eq!((node.bind_domain(&events, 0), events.try_close()), (0, BUSY));
    assert_eq!(node.bind_domain(&node.counter(), 0), -FI_EINVAL);
}

#[test]
fn the_descriptor_of_an_event_queue_is_readable_while_there_are_events() {
    let node = Node::new();
    let (events, fd) = node.event_queue_to_poll();
    let readable = || {
        let mut poll = libc::pollfd { fd, events: libc::POLLIN, revents: 0 };
        // SAFETY: one entry; the call does not wait.
        unsafe { libc::poll(&raw mut poll, 1, 0) == 1 }
    };
    assert!(!readable() && node.may_wait_for(&events));
    assert_eq!((events.write_event(5, &[1; 3]), events.write_event(6, &[])), (3, 0));
    assert!(readable() && !node.may_wait_for(&events));
    assert_eq!((events.read_event(FI_PEEK), events.read_event(0)), (Ok((5, 3)), Ok((5, 3))));
    assert!(readable());
    assert_eq!(events.read_event(0), Ok((6, 0)));
    assert!(!readable() && node.may_wait_for(&events));
    assert_eq!(events.read_event(0), Err(-(FI_EAGAIN as isize)));
}

/// The members of a poll set: a queue and a counter of the endpoint, as fi_poll_add and fi_poll_del take them.
#[test]
fn a_poll_set_tells_whose_queue_has_something_and_whose_counter_has_changed() {
    const ADD: usize = 1;
    const DELETE: usize = 2;
    let (node, other) = (Node::bound(info(CAPS).expect("an endpoint")).expect("an endpoint"), Node::new());
    let (counter, queue) = (node.counter(), node.opened_part(Part::Queue));
    counter.set_context(0xc);
    queue.set_context(0xa);
    assert_eq!(node.bind(&counter, FI_RECV), 0);
    node.enable();
    assert_eq!(node.poll_set(1).err(), Some(-FI_EINVAL));
    let set = node.poll_set(0).expect("a poll set");
    assert_eq!(set.poll(2), Ok(vec![]), "it has no members");
    assert_eq!((set.poll_change(ADD, &queue, 0), set.poll_change(ADD, &counter, 0)), (0, 0));
    assert_eq!(set.poll_change(ADD, &queue, 0), 0, "once more is once");
    assert_eq!(set.poll_change(ADD, &node.opened_part(Part::Vector), 0), -FI_EINVAL);
    assert_eq!(set.poll_change(ADD, &queue, 1), -FI_EINVAL);
    assert_eq!(set.poll_change(ADD, &other.counter(), 0), -FI_EDOMAIN);
    assert_eq!(set.poll(2), Ok(vec![]));
    let (to, mut room) = (other.insert(&node.name()), [0; 8]);
    node.receive(&mut room, FI_ADDR_UNSPEC, 1, 0, 1);
    assert_eq!(other.send(&[1; 8], to, 1, 0, 2), 0);
    assert_eq!(set.poll(1), Ok(vec![0xa]), "there is room for one");
    assert_eq!(set.poll(2), Ok(vec![0xa, 0xc]));
    assert_eq!(set.poll(2), Ok(vec![0xa]), "the counter was told");
    assert!(matches!(node.read(), Said::Done(1, ..)));
    assert_eq!(set.poll(2), Ok(vec![]));
    assert_eq!((set.poll_change(DELETE, &queue, 0), set.poll_change(DELETE, &queue, 0)), (0, -FI_EINVAL));
    drop(other);
    // A member is closed after it was taken out, or the set was closed.
    assert_eq!((node.try_close(Part::Domain), counter.try_close()), (BUSY, BUSY));
    let domain = node.into_domain();
    assert_eq!((counter.try_close(), set.try_close()), (BUSY, 0));
    assert_eq!((counter.try_close(), domain.try_close()), (0, 0));
}
