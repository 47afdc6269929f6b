//! Words that say how far something is: a thread that reads what was set sees what was done before. The end of a
//! nonblocking collective, and of an access to a file in the background; whether the bindings are open, to calls on
//! their fast path and on their slow one; whether events wait for a pass; a call for the end of the job; a chunk of
//! requests; the communicator of all ranks; why a rank must not go on.
//!
//! Run:   .ci/loom published
//! Bound: 2 and 3 threads, every interleaving with at most 3 preemptions (LOOM_MAX_PREEMPTIONS raises that).
//! Time:  a second.
//!
//! `cargo xtask mutants src/sync/published.rs` (`callback_state.rs`, `waits.rs`, `header.rs`, `slab.rs`) weakens each
//! ordering and says which model fails (`loom-tests/mutants.md`).
#![cfg(perusal_loom)]

use crate::support::Plain;
use loom::sync::Arc;
use loom::thread;
use perusal::internals::events::SlowPath;
use perusal::internals::request::Slab;
use perusal::internals::shm::header::{Abort, AbortWord};
use perusal::internals::sync::{AtomicBool, Ordering, PublishedFlag, PublishedRef, PublishedStage};
use perusal::internals::tool::event::waits::Waits;

fn model(body: impl Fn() + Send + Sync + 'static) {
    perusal::model::check(3, body);
}

/// A word, and something that is written before the word is.
struct Behind<W> {
    word: W,
    value: Plain<u32>,
}

impl<W> Behind<W> {
    fn write(&self, value: u32) {
        self.value.set(value);
    }

    fn read(&self) -> u32 {
        self.value.get()
    }
}

/// Has one thread write the value and set the word, and another one, which reads the value if it sees the word set.
fn who_sees_it_sees_the_value<W: Send + Sync + 'static>(new: fn() -> W, set: fn(&W), sees: fn(&W) -> bool) {
    model(move || {
        let behind = Arc::new(Behind { word: new(), value: Plain::new(0) });
        let reader = {
            let behind = behind.clone();
            thread::spawn(move || {
                if sees(&behind.word) {
                    assert_eq!(behind.read(), 7);
                }
            })
        };
        behind.write(7);
        set(&behind.word);
        reader.join().unwrap();
        assert!(sees(&behind.word), "it is set");
    });
}

#[test]
fn what_is_over_has_written_all_that_it_writes() {
    who_sees_it_sees_the_value(|| PublishedFlag::new(false), |flag| flag.set(true), PublishedFlag::is_set);
}

#[test]
fn a_stage_is_seen_with_what_was_done_before_it() {
    who_sees_it_sees_the_value(PublishedStage::default, |stage| stage.set(2), |stage| stage.get() == 2);
}

#[test]
fn what_has_a_name_is_seen_as_it_was_made() {
    static NAMED: u32 = 5;
    who_sees_it_sees_the_value(
        PublishedRef::none,
        |name| name.set(Some(&NAMED)),
        |name| name.get() == Some(&5),
    );
}

#[test]
fn a_reason_is_seen_with_the_stage_that_it_led_to() {
    who_sees_it_sees_the_value(
        PublishedStage::default,
        |stage| stage.advance(0, 1),
        |stage| stage.get() == 1,
    );
}

#[test]
fn of_two_that_move_on_from_a_stage_one_does() {
    model(|| {
        let stage = Arc::new(PublishedStage::default());
        let other = {
            let stage = stage.clone();
            thread::spawn(move || {
                stage.advance(0, 1);
                stage.get()
            })
        };
        stage.advance(0, 2);
        let own = stage.get();
        assert_eq!(own, other.join().unwrap(), "a stage that one of them has seen is another one");
    });
}

#[test]
fn a_call_on_the_fast_path_sees_what_initialisation_built() {
    who_sees_it_sees_the_value(SlowPath::shut, |path| path.set_open(true), SlowPath::fast_path_is_open);
}

#[test]
fn a_gate_that_is_shut_meanwhile_hides_nothing_of_initialisation() {
    // The count of gates goes down to none behind the opening: the word that a call then sees is another thread's.
    model(|| {
        let behind = Arc::new(Behind { word: SlowPath::shut(), value: Plain::new(0) });
        behind.word.count(true);
        let tool = {
            let behind = behind.clone();
            thread::spawn(move || behind.word.count(false))
        };
        let caller = {
            let behind = behind.clone();
            thread::spawn(move || {
                if behind.word.fast_path_is_open() {
                    assert_eq!(behind.read(), 7);
                }
            })
        };
        behind.write(7);
        behind.word.set_open(true);
        tool.join().unwrap();
        caller.join().unwrap();
        assert!(behind.word.fast_path_is_open());
        behind.word.set_open(false);
        assert!(!behind.word.fast_path_is_open());
    });
}

#[test]
fn who_sees_a_call_for_the_end_sees_what_its_caller_did_before() {
    who_sees_it_sees_the_value(
        AbortWord::default,
        |word| assert!(word.set(Abort::by_program(1, 3))),
        |word| word.get(2) == Some(Abort::by_program(1, 3)),
    );
}

#[test]
fn of_two_calls_for_the_end_one_counts() {
    model(|| {
        let word = Arc::new(AbortWord::default());
        let other = {
            let word = word.clone();
            thread::spawn(move || word.set(Abort::by_program(1, 3)))
        };
        let own = word.set(Abort::by_program(0, 2));
        assert_ne!(own, other.join().unwrap());
        assert_eq!(word.get(2).expect("a call").rank, u32::from(!own));
    });
}

/// What two threads leave for a pass, and the words that say so.
#[derive(Default)]
struct Left {
    waits: Waits,
    events: [AtomicBool; 2],
}

impl Left {
    fn leave(&self, at: usize) {
        // Relaxed, here and below: the edge is to order them.
        self.events[at].store(true, Ordering::Relaxed);
        self.waits.something_waits();
    }

    fn seen(&self) -> [bool; 2] {
        [0, 1].map(|at| self.events[at].load(Ordering::Relaxed))
    }
}

#[test]
fn an_event_that_no_pass_has_seen_still_waits() {
    model(|| {
        let left = Arc::new(Left::default());
        let pass = {
            let left = left.clone();
            thread::spawn(move || if left.waits.take() { left.seen() } else { [false; 2] })
        };
        let other = {
            let left = left.clone();
            thread::spawn(move || left.leave(1))
        };
        left.leave(0);
        other.join().unwrap();
        let seen = pass.join().unwrap();
        assert!(seen == [true; 2] || left.waits.waits(), "a pass saw {seen:?}, and nothing waits");
    });
}

#[test]
fn a_registration_that_ends_meanwhile_gets_a_pass_of_its_own() {
    model(|| {
        let left = Arc::new(Left::default());
        let pass = {
            let left = left.clone();
            // What the thread that delivers does behind a pass that has seen nothing.
            thread::spawn(move || {
                left.waits.take_end().then(|| left.waits.waits() && left.waits.take() && left.seen()[0])
            })
        };
        left.events[0].store(true, Ordering::Relaxed);
        left.waits.something_ends();
        match pass.join().unwrap() {
            Some(seen) => assert!(seen, "sees that something ends, and finds nothing"),
            None => assert!(left.waits.waits(), "the end is for the next pass"),
        }
        left.waits.something_ends();
        assert!(left.waits.take() && left.waits.take_end());
    });
}

#[test]
fn who_finds_a_request_finds_its_slot_whole() {
    const FIRST: usize = 4096;
    model(|| {
        let slab = Arc::new(Slab::<u32>::new());
        let finder = {
            let slab = slab.clone();
            thread::spawn(move || {
                if let Some(request) = slab.get(FIRST) {
                    // SAFETY: nobody else uses the body of this model's requests.
                    assert_eq!(unsafe { *request.body() }, 0);
                }
            })
        };
        assert_eq!(slab.take(false).expect("room").id() as usize, FIRST);
        finder.join().unwrap();
        assert!(slab.get(FIRST).is_some());
    });
}

#[test]
fn who_looks_at_all_requests_sees_whole_slots() {
    model(|| {
        let slab = Arc::new(Slab::<u32>::new());
        let looker = {
            let slab = slab.clone();
            thread::spawn(move || {
                // SAFETY: nobody else uses the body of this model's requests.
                slab.alive_ones().for_each(|request| assert_eq!(unsafe { *request.body() }, 0));
            })
        };
        slab.take(false).expect("room");
        looker.join().unwrap();
        assert_eq!(slab.alive_ones().count(), 1);
    });
}
