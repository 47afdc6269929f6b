//! What endpoints say of themselves for those who look from outside.

use perusal_fi::observe::{KeptMessage, PostedReceive, Status, endpoints};
use perusal_fi::transport::{Address, Endpoint};
use std::time::{Duration, Instant};

const HANG: Duration = Duration::from_secs(900);

/// What the endpoint with this address says.
fn said(address: Address) -> Status {
    let text = address.to_string();
    let mut parts = text.trim_start_matches("perusal://").split('.').map(str::parse::<u32>);
    let mut next = || parts.next().expect("a number").expect("a number");
    let (process, descriptor) = (next(), next());
    let is_it = |one: &Status| (one.process, one.descriptor) == (process, descriptor);
    endpoints().into_iter().find(is_it).expect("an endpoint that is open is found")
}

#[test]
fn an_endpoint_tells_what_it_waits_for_and_what_has_come_instead() {
    let [mut a, mut b] = [(); 2].map(|()| Endpoint::open().expect("an endpoint"));
    let (from_b, to_a) = (a.add(b.address()), b.add(a.address()));
    assert_eq!(said(a.address()).said, 0, "it was not polled");
    a.receive(Some(from_b), 7, 0, vec![0; 8], 1);
    a.receive(None, 9, 3, vec![0; 8], 2);
    b.inject(to_a, 1 << 63, 0, &[1; 40]).expect("room");
    // More than goes at once: it is under way until somebody wants it.
    assert!(b.send(to_a, 5, 0, vec![2; 100_000], 3).is_ok());
    let me = std::process::id();
    let start = Instant::now();
    let mut told = said(a.address());
    while told.kept < 2 || said(b.address()).sends == 0 {
        assert!(start.elapsed() < HANG, "{told:?}");
        (0..2000).for_each(|_| _ = (a.progress(), b.progress()));
        told = said(a.address());
    }
    assert_eq!((told.receives, told.kept, told.taken, told.sends), (2, 2, 2, 0));
    let receive = |from, tag| PostedReceive { from, tag: Some(tag) };
    assert_eq!(told.first_receives, [receive(Some(me), (7, 0)), receive(None, (9, 3))]);
    let kept = |tag, len| KeptMessage { from: me, tag: Some(tag), len };
    assert_eq!(told.first_kept, [kept(1 << 63, 40), kept(5, 100_000)]);
    let sender = said(b.address());
    assert_eq!((sender.sent, sender.sends, sender.first_sends[0].len), (2, 1, 100_000));
    drop(a);
    let is_gone = endpoints().into_iter().all(|one| one.process != me || one.first_kept != told.first_kept);
    assert!(is_gone, "one that is closed is not shown, though its peer has its memory");
}
