//! Threads of a rank that wait while one of them runs progress: no thread sleeps on when what it waits for has come,
//! nor when no thread runs progress any more and its message still lies there. A lost wake-up is a deadlock, which loom
//! reports (its condition variable has no time-out).
//!
//! A model's rank is what `LongWait::run` and `await_other_thread` are made of: the poller lock with the messages
//! behind it, the requests, and the waiters. Each thread waits for a request of its own; the thread that runs progress
//! completes what comes first, and stops when its own is complete.
//!
//! Run:   .ci/loom waiters
//! Bound: 2 and 3 threads, every interleaving with at most 3 preemptions (LOOM_MAX_PREEMPTIONS raises that).
//! Time:  six seconds, nearly all for three threads.
//!
//! Weakened, each of these makes at least one model fail (checked by editing the line and running, one at a time):
//!
//! - both fences of `Waiters::wait`, and those of `wake_all` and `wake_any_event`;
//! - the comparison of `wakes` with what it was before the look;
//! - counting a wake-up;
//! - `awaited`, and the look at `any_event`, in `wake_after_fence`;
//! - AWAITED in `RequestState::await_end`;
//! - the fence of `Waiters::pass_on`;
//! - passing on by a thread that leaves, by one that only polls once, and by one that is woken and need not run
//!   progress;
//! - the look at the poller lock before a sleep.
#![cfg(perusal_loom)]

use loom::sync::atomic::{AtomicBool, Ordering, fence};
use loom::sync::{Arc, Mutex};
use loom::thread;
use perusal::internals::engine::Waiters;
use perusal::internals::request::RequestState;
use std::collections::VecDeque;
use std::time::Duration;

/// loom's condition variable knows no time.
const LONG: Duration = Duration::from_secs(3600);

fn model(body: impl Fn() + Send + Sync + 'static) {
    perusal::model::check(3, body);
}

struct Rank {
    waiters: Waiters,
    /// The poller lock, which is only ever tried. (loom's own mutex orders too much.)
    polled: AtomicBool,
    /// The requests whose messages lie there; touched by the thread that runs progress.
    messages: Mutex<VecDeque<usize>>,
    requests: [RequestState; 3],
}

impl Rank {
    fn new(messages: &[usize]) -> Arc<Self> {
        let requests = [RequestState::new(), RequestState::new(), RequestState::new()];
        requests.iter().for_each(RequestState::activate);
        let messages = Mutex::new(messages.iter().copied().collect());
        Arc::new(Self { waiters: Waiters::default(), polled: AtomicBool::new(false), messages, requests })
    }

    fn try_poll(&self) -> bool {
        self.polled.compare_exchange(false, true, Ordering::Acquire, Ordering::Relaxed).is_ok()
    }

    fn leave(&self) {
        self.polled.store(false, Ordering::Release);
    }

    /// As `Progress::notify_completion`.
    fn complete(&self, which: usize) {
        let (_, awaited) = self.requests[which].complete_shared();
        fence(Ordering::SeqCst);
        self.waiters.wake_after_fence(awaited);
    }

    fn poller_is_free(&self) -> bool {
        let gone = self.try_poll();
        if gone {
            self.leave();
        }
        gone
    }

    /// As `LongWait::run` for one request.
    fn wait(&self, mine: usize) {
        let request = &self.requests[mine];
        loop {
            if self.try_poll() {
                while !request.is_complete() {
                    let next = self.messages.lock().expect("no panic under this lock").pop_front();
                    self.complete(next.expect("a message for each request"));
                }
                self.leave();
                return self.waiters.pass_on();
            }
            self.waiters.wait(mine, LONG, false, || request.await_end(mine) || self.poller_is_free());
            if request.is_complete() {
                if self.poller_is_free() {
                    self.waiters.pass_on();
                }
                return;
            }
        }
    }

    /// As `Progress::poll_once`, with nothing for the caller.
    fn poll_once(&self) {
        if self.try_poll() {
            self.leave();
            self.waiters.pass_on();
        }
    }
}

/// The last of `waits` runs on this thread.
fn all_end(rank: &Arc<Rank>, waits: &[usize]) {
    let (last, others) = waits.split_last().expect("somebody waits");
    let others: Vec<_> = others
        .iter()
        .map(|&mine| {
            let rank = rank.clone();
            thread::spawn(move || rank.wait(mine))
        })
        .collect();
    rank.wait(*last);
    others.into_iter().for_each(|other| other.join().expect("a thread that waits"));
}

#[test]
fn of_two_that_wait_one_runs_progress_and_the_other_ends_too() {
    for messages in [[0, 1], [1, 0]] {
        model(move || all_end(&Rank::new(&messages), &[0, 1]));
    }
}

#[test]
fn a_thread_that_is_woken_and_need_not_poll_wakes_the_next() {
    for messages in [[0, 1, 2], [1, 0, 2]] {
        model(move || all_end(&Rank::new(&messages), &[0, 1, 2]));
    }
}

#[test]
fn a_look_that_keeps_another_from_driving_passes_on() {
    model(|| {
        let rank = Rank::new(&[0]);
        let poller = {
            let rank = rank.clone();
            thread::spawn(move || rank.poll_once())
        };
        rank.wait(0);
        poller.join().expect("who polls");
    });
}

#[test]
fn a_completion_wakes_its_waiter_while_somebody_else_goes_on_driving() {
    model(|| {
        let rank = Rank::new(&[]);
        assert!(rank.try_poll());
        let waiter = {
            let rank = rank.clone();
            thread::spawn(move || rank.wait(0))
        };
        rank.complete(0);
        waiter.join().expect("who waits");
    });
}

/// `wake`: as the waker does it once it has stored what happened.
fn who_waits_for_anything_is_woken(wake: fn(&Waiters)) {
    model(move || {
        let (rank, happened) = (Rank::new(&[]), Arc::new(AtomicBool::new(false)));
        assert!(rank.try_poll());
        let waiter = {
            let (rank, happened) = (rank.clone(), happened.clone());
            thread::spawn(move || {
                while !happened.load(Ordering::Relaxed) {
                    rank.waiters
                        .wait(0, LONG, true, || happened.load(Ordering::Relaxed) || rank.poller_is_free());
                }
            })
        };
        happened.store(true, Ordering::Relaxed);
        wake(&rank.waiters);
        waiter.join().expect("who waits");
    });
}

#[test]
fn who_waits_for_anything_is_told_of_everything() {
    // As `Progress::notify_completion`.
    who_waits_for_anything_is_woken(|waiters| {
        fence(Ordering::SeqCst);
        waiters.wake_after_fence(None);
    });
}

#[test]
fn who_probes_is_told_of_a_message_that_no_receive_was_posted_for() {
    who_waits_for_anything_is_woken(Waiters::wake_any_event);
}

#[test]
fn who_waits_for_one_request_is_told_when_all_are() {
    model(|| {
        let (rank, failed) = (Rank::new(&[]), Arc::new(AtomicBool::new(false)));
        assert!(rank.try_poll());
        let waiter = {
            let (rank, failed) = (rank.clone(), failed.clone());
            thread::spawn(move || {
                while !failed.load(Ordering::Relaxed) {
                    rank.waiters.wait(0, LONG, false, || {
                        rank.requests[0].await_end(0) || failed.load(Ordering::Relaxed)
                    });
                }
            })
        };
        failed.store(true, Ordering::Relaxed);
        rank.waiters.wake_all();
        waiter.join().expect("who waits");
    });
}
