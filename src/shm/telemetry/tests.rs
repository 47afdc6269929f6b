//! Tests of the telemetry page.

use super::*;

#[test]
fn the_high_water_mark_stays_when_the_queue_falls() {
    let length = QueueLength::default();
    length.set(5);
    length.set(2);
    assert_eq!((length.now.get(), length.high.get()), (2, 5));
}

/// Runs `one` on as many threads as there are thread slots with an owner, and twice as many more.
fn on_many_threads(one: impl Fn() + Sync) {
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..3 * OWNED_SLOTS).map(|_| scope.spawn(&one)).collect();
        threads.into_iter().for_each(|thread| thread.join().unwrap());
    });
}

#[test]
fn what_threads_count_at_once_adds_up_to_the_last_message() {
    let page = Telemetry::default();
    on_many_threads(|| (0..1000).for_each(|_| page.count_sent(ProtocolKind::Eager, 100, true)));
    on_many_threads(|| page.count_received(ProtocolKind::Eager, 3, 5, true));
    page.count_sent(ProtocolKind::Eager, 1, false);
    let sum = |part: fn(&Counts) -> &[Counter; PROTOCOLS]| {
        page.sum(|counts| part(counts)[ProtocolKind::Eager as usize].get())
    };
    let threads = 3 * OWNED_SLOTS as u64;
    assert_eq!(sum(|counts| &counts.sent), threads * 1000 + 1);
    assert_eq!(sum(|counts| &counts.sent_bytes), threads * 100_000 + 1);
    assert_eq!(
        (sum(|counts| &counts.received), sum(|counts| &counts.received_bytes)),
        (threads * 3, threads * 5)
    );
}

#[test]
fn a_length_is_right_whoever_takes_what_another_has_put() {
    let page = Telemetry::default();
    on_many_threads(|| (0..100).for_each(|_| page.change_posted(1, true)));
    on_many_threads(|| (0..100).for_each(|_| page.change_unexpected(2, true)));
    std::thread::scope(|scope| scope.spawn(|| page.change_posted(-1000, true)).join().unwrap());
    let threads = 3 * OWNED_SLOTS as u64;
    assert_eq!((page.posted_now(), page.unexpected_now()), (threads * 100 - 1000, threads * 200));
}

#[test]
fn while_somebody_watches_no_extreme_of_several_threads_is_missed() {
    let page = Telemetry::default();
    on_many_threads(|| page.change_posted(1, true));
    let threads = 3 * OWNED_SLOTS as u64;
    watch_extremes();
    let _ = page.posted.cut(page.posted_now());
    on_many_threads(|| page.change_posted(1, true));
    on_many_threads(|| page.change_posted(-2, true));
    on_many_threads(|| page.change_posted(1, true));
    let extremes = (page.posted.most.get(), page.posted.least.get());
    assert_eq!((page.posted_now(), extremes), (threads, (2 * threads, 0)));
    assert_eq!(page.posted.high.get(), 2 * threads);
}

#[test]
fn a_wait_reads_back_as_it_was_noted() {
    let waiting = WaitingFor::default();
    assert_eq!(waiting.get(), None);
    let wait = Wait { kind: Waiting::Receive, peer: Some(3), tag: Some(-5), context: 4, since: 99 };
    waiting.set(&wait);
    assert_eq!(waiting.get(), Some(wait));
    let any = Wait { peer: None, tag: None, ..wait };
    waiting.set(&any);
    assert_eq!(waiting.get(), Some(any));
    assert_eq!(any.to_string(), "a message from any rank, any tag, context 4");
    waiting.set(&Wait { since: 200, ..any });
    assert_eq!(waiting.get(), Some(any), "the same wait goes on");
    waiting.clear();
    assert_eq!(waiting.get(), None);
    waiting.set(&Wait { since: 300, ..any });
    assert_eq!(waiting.get().map(|wait| wait.since), Some(300));
}

#[test]
fn the_wait_of_a_thread_has_its_number_and_how_often_it_has_looked() {
    let place = ThreadWait::default();
    assert_eq!(place.get(), None);
    let wait = Wait { kind: Waiting::Receive, peer: Some(3), tag: None, context: 4, since: 99 };
    let seen = |looks| Some(WaitingThread { thread: u32::MAX, number: 1, looks, wait });
    place.begin(u32::MAX, &wait);
    assert_eq!(place.get(), seen(0));
    (0..3).for_each(|_| place.look());
    assert_eq!(place.get(), seen(3));
    place.end();
    assert_eq!(place.get(), None);
    place.begin(7, &wait);
    assert_eq!(place.get(), Some(WaitingThread { thread: 7, number: 2, looks: 0, wait }));
}

#[test]
fn a_wait_for_any_request_is_closed_where_its_function_says_so() {
    let any = Wait { kind: Waiting::Any, peer: None, tag: None, context: 0, since: 0 };
    let closed = |kind, call: &str| Wait { kind, ..any }.is_closed(|| call.to_owned());
    assert!(closed(Waiting::Any, "MPI_Waitany") && closed(Waiting::Receive, ""));
    assert!(
        !closed(Waiting::Any, "MPI_File_close")
            && !closed(Waiting::Any, "")
            && !closed(Waiting::Outside, "MPI_Wait")
    );
}

#[test]
fn the_clock_does_not_go_back() {
    let first = crate::arch::clock::now();
    assert!(crate::arch::clock::now() >= first);
}
