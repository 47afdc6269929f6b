//! What observers of a rank read in shared memory: never the kind of one wait with the words of another, and no rank
//! that has arrived without its process id, nor one that has ended without how.
//!
//! Run:   .ci/loom observed
//! Bound: 2 or 3 threads, every interleaving with at most 2 preemptions (LOOM_MAX_PREEMPTIONS raises that).
//! Time:  15 seconds.
//!
//! Weakened, each of these makes at least one model fail (checked by editing the line and running, one at a time):
//!
//! - the Release and the Release fence of `WaitingFor::set`, and the number that it gives a wait;
//! - the Acquire and the Acquire fence of `WaitingFor::sample`, and its second look at the state;
//! - the Release and the Release fence of `DetailWords::set_words`;
//! - the Release of `RosterEntry::arrive`, and that it takes the place before it moves the state.
//!
//! The writer is the first thread, the reader a spawned one, and not the other way round. loom 0.7 looks for another
//! order of two accesses only where the later one follows the earlier one directly in the word's history. A writer that
//! loads a word before it stores there hides its store from an earlier load of the reader, and the orders in which the
//! writer goes first are never tried. Where the first run has the writer go first, they are. Nor does loom carry on
//! what a load shows about the order of the stores to a word; hence one sample in a model (`SAMPLES`).
#![cfg(perusal_loom)]

use loom::sync::Arc;
use loom::thread;
use perusal::internals::shm::Exit;
use perusal::internals::shm::telemetry::{DetailWords, Wait, Waiting, WaitingFor};
use perusal::internals::shm::{RankState, RosterEntry};

fn check(model: impl Fn() + Send + Sync + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = builder.preemption_bound.or(Some(2));
    builder.check(model);
}

fn wait(kind: Waiting, n: u32) -> Wait {
    Wait { kind, peer: Some(n), tag: Some(n as i32), context: n, since: n.into() }
}

const FIRST: u32 = 1;
const SECOND: u32 = 2;
const THIRD: u32 = 3;

fn assert_is_known(seen: Option<Wait>) {
    let known = [wait(Waiting::Receive, FIRST), wait(Waiting::Send, SECOND), wait(Waiting::Send, THIRD)];
    assert!(seen.is_none_or(|seen| known.contains(&seen)), "{seen:?}");
}

#[test]
fn a_wait_is_read_whole_while_others_follow() {
    check(|| {
        let waiting = Arc::new(WaitingFor::default());
        let observer = waiting.clone();
        let observer = thread::spawn(move || assert_is_known(observer.get()));
        waiting.set(&wait(Waiting::Receive, FIRST));
        waiting.set(&wait(Waiting::Send, SECOND));
        observer.join().unwrap();
        assert_eq!(waiting.get(), Some(wait(Waiting::Send, SECOND)));
    });
}

#[test]
fn another_thread_that_clears_leaves_no_half_of_a_wait() {
    check(|| {
        let waiting = Arc::new(WaitingFor::default());
        waiting.set(&wait(Waiting::Receive, FIRST));
        let (observer, clearer) = (waiting.clone(), waiting.clone());
        let observer = thread::spawn(move || assert_is_known(observer.get()));
        let clearer = thread::spawn(move || clearer.clear());
        waiting.set(&wait(Waiting::Send, SECOND));
        waiting.set(&wait(Waiting::Send, THIRD));
        observer.join().unwrap();
        clearer.join().unwrap();
        assert_is_known(waiting.get());
    });
}

#[test]
fn a_detail_is_read_whole_and_of_its_wait_while_the_next_is_written() {
    check(|| {
        let detail = Arc::new(DetailWords::default());
        let observer = detail.clone();
        let observer = thread::spawn(move || {
            // One look: the second wait's detail where it is there, else the first one's.
            let number = if observer.is_of(SECOND.into()) { SECOND } else { FIRST };
            let seen = observer.values(number.into());
            assert!(seen.is_none_or(|seen| seen == [u64::from(number); 2]));
        });
        detail.fill(FIRST.into(), FIRST.into());
        detail.fill(SECOND.into(), SECOND.into());
        observer.join().unwrap();
        assert_eq!(detail.values(SECOND.into()), Some(vec![SECOND.into(); 2]));
    });
}

#[test]
fn a_rank_that_has_arrived_has_its_process_id() {
    check(|| {
        let entry = Arc::new(RosterEntry::default());
        let observer = entry.clone();
        let observer = thread::spawn(move || {
            if observer.state() != RankState::Absent {
                assert_eq!(observer.pid(), 7);
            }
        });
        entry.arrive(0, 7).expect("nobody has the place");
        observer.join().unwrap();
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

#[test]
fn a_rank_whose_end_is_known_has_its_exit_status() {
    check(|| {
        let entry = Arc::new(RosterEntry::default());
        let observer = entry.clone();
        let observer = thread::spawn(move || assert!([None, Some(Exit(9))].contains(&observer.exit())));
        entry.set_exit(Exit(9));
        observer.join().unwrap();
        assert_eq!(entry.exit(), Some(Exit(9)));
    });
}
