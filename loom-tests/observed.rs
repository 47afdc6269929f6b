//! What observers of a rank read in shared memory: never the kind of one wait with the words of another, and no rank that has arrived
//! without its process id.
//!
//! Run:   .ci/loom observed
//! Bound: 2 or 3 threads, every interleaving with at most 3 preemptions (LOOM_MAX_PREEMPTIONS raises that).
//! Time:  seconds.
//!
//! Weakened, each of these makes at least one model fail (checked by editing the line and running, one at a time): the Release and the
//! Release fence of `WaitingFor::set`; the Acquire and the Acquire fence of `WaitingFor::sample`, and its second look at the state; a
//! `RosterEntry::arrive` that moves the state before it takes the place. A `WaitingFor::clear` that loads and stores survives.
//!
//! Open: with a second `set` behind the first one in `another_thread_that_clears_leaves_no_half_of_a_wait`, loom shows a wait that is half of each,
//! which the fences should exclude. Whether the sequence lock or loom is wrong has not been found out.
#![cfg(perusal_loom)]

use loom::sync::Arc;
use loom::thread;
use perusal::internals::shm::telemetry::{Wait, Waiting, WaitingFor};
use perusal::internals::shm::{RankState, RosterEntry};

fn check(model: impl Fn() + Send + Sync + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = builder.preemption_bound.or(Some(3));
    builder.check(model);
}

fn wait(kind: Waiting, n: u32) -> Wait {
    Wait { kind, peer: Some(n), tag: Some(n as i32), context: n, since: n.into() }
}

const FIRST: u32 = 1;
const SECOND: u32 = 2;

fn is_known(seen: Option<Wait>) -> bool {
    let known = [wait(Waiting::Receive, FIRST), wait(Waiting::Send, SECOND)];
    seen.is_none_or(|seen| known.contains(&seen))
}

#[test]
fn a_wait_is_read_whole_while_others_follow() {
    check(|| {
        let waiting = Arc::new(WaitingFor::default());
        let rank = waiting.clone();
        let rank = thread::spawn(move || {
            rank.set(&wait(Waiting::Receive, FIRST));
            rank.set(&wait(Waiting::Send, SECOND));
        });
        let seen = waiting.get();
        assert!(is_known(seen), "{seen:?}");
        rank.join().unwrap();
        assert_eq!(waiting.get(), Some(wait(Waiting::Send, SECOND)));
    });
}

#[test]
fn another_thread_that_clears_leaves_no_half_of_a_wait() {
    check(|| {
        let waiting = Arc::new(WaitingFor::default());
        waiting.set(&wait(Waiting::Receive, FIRST));
        let (setter, clearer) = (waiting.clone(), waiting.clone());
        let setter = thread::spawn(move || setter.set(&wait(Waiting::Send, SECOND)));
        let clearer = thread::spawn(move || clearer.clear());
        let seen = waiting.get();
        assert!(is_known(seen), "{seen:?}");
        setter.join().unwrap();
        clearer.join().unwrap();
        let left = waiting.get();
        assert!(is_known(left), "{left:?}");
    });
}

#[test]
fn a_rank_that_has_arrived_has_its_process_id() {
    check(|| {
        let entry = Arc::new(RosterEntry::default());
        let rank = entry.clone();
        let rank = thread::spawn(move || rank.arrive(0, 7).expect("nobody has the place"));
        if entry.state() != RankState::Absent {
            assert_eq!(entry.pid(), 7);
        }
        rank.join().unwrap();
        assert_eq!((entry.state(), entry.pid()), (RankState::Arrived, 7));
    });
}

#[test]
fn of_two_processes_one_has_the_place() {
    check(|| {
        let entry = Arc::new(RosterEntry::default());
        let rank = entry.clone();
        let rank = thread::spawn(move || rank.arrive(0, 7).is_ok());
        let mine = entry.arrive(0, 8).is_ok();
        let theirs = rank.join().unwrap();
        assert_ne!(mine, theirs);
        assert_eq!(entry.pid(), if mine { 8 } else { 7 });
    });
}
