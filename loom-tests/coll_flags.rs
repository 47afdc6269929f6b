//! Rounds of collectives: nobody is ahead of a member that has not come, slots are read when they are written and
//! written again when they are read, the last to come has seen all, and one that goes to sleep is woken.
//!
//! Run:   .ci/loom coll_flags
//! Bound: 2 and 3 threads, every interleaving with at most 2 preemptions (LOOM_MAX_PREEMPTIONS raises that); two rounds
//!        can be under way at once (`DEPTH`), so that slots come again in every model.
//! Time:  two seconds on two cores, all models together.
//!
//! Weakened, each of these makes at least one model fail (checked by editing the line and running, one at a time):
//!
//! - the Release of `publish` and of `finish`;
//! - the Acquire of `has_published` and of `is_complete`;
//! - the Acquire, and the Release, of `arrive`;
//! - `may_enter` that says yes at once, or looks one round too far back;
//! - a published slot that says that the round after its own is complete;
//! - the fence of `wake`;
//! - those of `register`.
#![cfg(perusal_loom)]

use loom::sync::Arc;
use loom::thread;
use perusal::internals::doorbell::Doorbell;
use perusal::internals::sync::{AsymmetricFence, Futex};
use perusal::internals::sync::{AtomicU16, AtomicU64};
use perusal::internals::team::{Arrived, Condition, HeapSegment, RoundArrival, Rounds};
use std::time::Duration;

type Member = Rounds<HeapSegment>;

fn model(body: impl Fn() + Send + Sync + 'static) {
    perusal::model::check(2, body);
}

fn until(mut done: impl FnMut() -> bool) {
    while !done() {
        thread::yield_now();
    }
}

fn enter(member: &mut Member, arrival: RoundArrival) {
    member.begin(arrival);
    until(|| member.may_enter().expect("sound"));
}

/// Runs `body` as every member of `members`.
fn members(count: usize, body: fn(&mut Member, usize)) {
    let segment = HeapSegment::new(count);
    let others: Vec<_> = (1..count)
        .map(|me| {
            let segment = segment.clone();
            thread::spawn(move || body(&mut Rounds::new(segment, me), me))
        })
        .collect();
    body(&mut Rounds::new(segment, 0), 0);
    others.into_iter().for_each(|other| other.join().unwrap());
}

fn say(member: &Member, word: u64) {
    // SAFETY: entered, and not published.
    member.write(|slot| unsafe { (*slot).what = word });
}

fn heard(member: &Member, from: usize) -> u64 {
    // SAFETY: the round is complete, or the slot was published.
    member.read(from, |slot| unsafe { (*slot).what })
}

/// A sum to all: the last to come adds up.
fn sum_by_count(member: &mut Member, members: usize, word: u64) -> u64 {
    enter(member, RoundArrival::Count);
    say(member, word);
    let sum = if member.arrive().expect("sound") == Arrived::Last {
        let sum = (0..members).map(|from| heard(member, from)).sum();
        // SAFETY: arrived last.
        member.write_outcome(|outcome| unsafe { (*outcome).what = sum });
        member.finish();
        sum
    } else {
        let round = member.round();
        until(|| member.is_complete(round).expect("sound"));
        // SAFETY: complete.
        member.read_outcome(|outcome| unsafe { (*outcome).what })
    };
    member.leave();
    sum
}

/// A sum to all: everybody adds up.
fn sum_by_flags(member: &mut Member, members: usize, word: u64) -> u64 {
    enter(member, RoundArrival::Flags);
    say(member, word);
    assert_eq!(member.arrive().expect("sound"), Arrived::Somewhere);
    let round = member.round();
    until(|| member.is_complete(round).expect("sound"));
    let sum = (0..members).map(|from| heard(member, from)).sum();
    member.leave();
    sum
}

/// The root's word to all; nobody waits for the others.
fn broadcast(member: &mut Member, me: usize, root: usize, word: u64, arrival: RoundArrival) -> u64 {
    enter(member, arrival);
    let heard = if me == root {
        say(member, word);
        member.publish();
        word
    } else {
        until(|| member.holds(Condition::Published(root)).expect("sound"));
        heard(member, root)
    };
    if (me != root || arrival == RoundArrival::Count) && member.arrive().expect("sound") == Arrived::Last {
        member.finish();
    }
    member.leave();
    heard
}

#[test]
fn a_counted_sum_is_everybodys_and_slots_come_again() {
    model(|| {
        members(2, |member, me| {
            for round in 0..4 {
                assert_eq!(sum_by_count(member, 2, 10 * round + me as u64 + 1), 20 * round + 3);
            }
        });
    });
}

/// Nobody waits here: loom explores no further where three threads spin.
#[test]
fn of_three_exactly_one_comes_last_and_has_seen_all() {
    model(|| {
        let segment = HeapSegment::new(3);
        let arrive = |segment: HeapSegment, me: usize| {
            let mut member = Rounds::new(segment, me);
            member.begin(RoundArrival::Count);
            say(&member, 1 << me);
            let last = member.arrive().expect("sound") == Arrived::Last;
            if last {
                assert_eq!((0..3).map(|from| heard(&member, from)).sum::<u64>(), 7);
                member.finish();
            }
            last
        };
        let others: Vec<_> = (1..3)
            .map(|me| {
                let segment = segment.clone();
                thread::spawn(move || arrive(segment, me))
            })
            .collect();
        let mut last = usize::from(arrive(segment, 0));
        last += others.into_iter().map(|other| usize::from(other.join().unwrap())).sum::<usize>();
        assert_eq!(last, 1);
    });
}

#[test]
fn a_flagged_sum_is_everybodys_and_slots_come_again() {
    model(|| {
        members(2, |member, me| {
            for round in 0..4 {
                assert_eq!(sum_by_flags(member, 2, 10 * round + me as u64 + 1), 20 * round + 3);
            }
        });
    });
}

#[test]
fn roots_that_run_ahead_overwrite_nothing() {
    for arrival in [RoundArrival::Count, RoundArrival::Flags] {
        model(move || {
            let body: fn(&mut Member, usize) = match arrival {
                RoundArrival::Count => |member, me| {
                    for round in 0..4 {
                        assert_eq!(broadcast(member, me, 0, round + 7, RoundArrival::Count), round + 7);
                    }
                },
                RoundArrival::Flags => |member, me| {
                    for round in 0..4 {
                        assert_eq!(broadcast(member, me, 0, round + 7, RoundArrival::Flags), round + 7);
                    }
                },
            };
            members(2, body);
        });
    }
}

/// Two members hear each other; what one has seen of the other says that the rounds before are complete,
/// and nothing of those to come.
#[test]
fn who_has_heard_the_other_one_of_two_overwrites_nothing() {
    model(|| {
        members(2, |member, me| {
            enter(member, RoundArrival::Flags);
            say(member, 1 + me as u64);
            member.publish();
            until(|| member.holds(Condition::Published(1 - me)).expect("sound"));
            assert_eq!(heard(member, 1 - me), 2 - me as u64);
            member.leave();
            for (root, word) in [(0, 7), (0, 8), (1, 9), (0, 10)] {
                assert_eq!(broadcast(member, me, root, word, RoundArrival::Flags), word);
            }
        });
    });
}

#[test]
fn rounds_of_both_kinds_follow_each_other() {
    model(|| {
        members(2, |member, me| {
            assert_eq!(sum_by_count(member, 2, 1 + me as u64), 3);
            assert_eq!(broadcast(member, me, 1, 9, RoundArrival::Flags), 9);
            assert_eq!(sum_by_flags(member, 2, 2 + me as u64), 5);
            assert_eq!(broadcast(member, me, 0, 8, RoundArrival::Count), 8);
            assert_eq!(sum_by_count(member, 2, 3 + me as u64), 7);
        });
    });
}

const FENCES: AsymmetricFence = AsymmetricFence::Processor;
/// loom's futex knows no time.
const LONG: Duration = Duration::from_secs(3600);

struct Words {
    state: Futex,
    flags: Vec<AtomicU64>,
    counts: Vec<AtomicU16>,
}

fn bell(words: &Arc<Words>) -> Doorbell {
    // SAFETY: every thread that uses the bell keeps `words`.
    unsafe { Doorbell::over_parts(&words.state, &words.flags, &words.counts) }
}

/// Sleeps until `done`, as the engine does: registered, and asleep only after one more look.
fn sleep_until(member: &mut Member, bell: Doorbell, mut done: impl FnMut(&mut Member) -> bool) {
    loop {
        if done(member) {
            return;
        }
        member.register(FENCES);
        if done(member) {
            return;
        }
        bell.sleep(FENCES, LONG, || false);
        bell.take_flags(0);
    }
}

/// Sleeps until `condition` holds, as a thread does that has not the member's view: it knows only what is awaited.
fn sleep_until_awaited(member: &mut Member, bell: Doorbell, condition: Condition) {
    while !member.holds(condition).expect("sound") {
        if !member.awaited(condition).register(FENCES) {
            bell.sleep(FENCES, LONG, || false);
            bell.take_flags(0);
        }
    }
}

#[test]
fn who_sleeps_for_a_round_is_woken_by_who_completes_it() {
    for arrival in [RoundArrival::Count, RoundArrival::Flags] {
        who_sleeps_is_woken(arrival, |member, bell| {
            let round = member.round();
            sleep_until(member, bell, |m| m.is_complete(round).expect("sound"));
            member.unregister();
        });
    }
}

#[test]
fn who_sleeps_without_the_view_is_woken_by_who_completes_the_round() {
    for arrival in [RoundArrival::Count, RoundArrival::Flags] {
        who_sleeps_is_woken(arrival, |member, bell| {
            let round = member.round();
            sleep_until_awaited(member, bell, Condition::Complete(round));
        });
    }
}

/// Two members complete two rounds, each of which they wait for by `sleep`.
fn who_sleeps_is_woken(arrival: RoundArrival, sleep: fn(&mut Member, Doorbell)) {
    model(move || {
        let segment = HeapSegment::new(2);
        let words: Vec<Arc<Words>> = (0..2)
            .map(|_| {
                Arc::new(Words {
                    state: Futex::default(),
                    flags: vec![AtomicU64::new(0)],
                    counts: vec![AtomicU16::new(0)],
                })
            })
            .collect();
        let run = move |segment: HeapSegment, words: Vec<Arc<Words>>, me: usize| {
            let mut member = Rounds::new(segment, me);
            for _ in 0..2 {
                member.begin(arrival);
                assert!(member.may_enter().expect("sound"));
                if member.arrive().expect("sound") == Arrived::Last {
                    member.finish();
                }
                member.wake(FENCES, |sleeper| bell(&words[sleeper]).ring(sleeper));
                sleep(&mut member, bell(&words[me]));
                member.leave();
            }
        };
        let other = {
            let (segment, words) = (segment.clone(), words.clone());
            thread::spawn(move || run(segment, words, 1))
        };
        run(segment, words, 0);
        other.join().unwrap();
    });
}
