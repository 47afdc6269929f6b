//! What whoever comes first takes from memory that all ranks share: context ids and collective segments by their
//! counts, granules of the shared heap by their bits, tables by the word that names them. The rank that takes it sees
//! what its users before have done, and a user that reads the word sees what its maker has.
//!
//! Run:   .ci/loom tables
//! Bound: 2 and 3 threads, every interleaving; a thread that does not get it gives up.
//! Time:  a second.
//!
//! `cargo xtask mutants src/shm/shared_count.rs src/heap/` weakens each ordering and says which model fails
//! (`loom-tests/mutants.md`).
#![cfg(perusal_loom)]

use crate::support::Plain;
use loom::sync::Arc;
use loom::thread;
use perusal::internals::heap::{BitmapWord, agree_on};
use perusal::internals::shm::{Leaving, SharedCount};
use perusal::internals::sync::AtomicU64;

/// Memory that belongs to the thread that has taken what stands before it.
#[derive(Default)]
struct Owned<T> {
    word: T,
    values: [Plain<u32>; 2],
}

impl<T> Owned<T> {
    fn write(&self, at: usize) {
        self.values[at].update(|value| *value += 1);
    }

    fn read(&self, at: usize) -> u32 {
        self.values[at].get()
    }
}

/// The users of something, both of whom use a part of it and leave, beside one who takes it when it is free.
fn two_users_and_the_next(leave: fn(&Owned<SharedCount>)) {
    loom::model(move || {
        let shared = Arc::new(Owned::<SharedCount>::default());
        assert!(shared.word.take(2));
        let users: Vec<_> = (0..2)
            .map(|at| {
                let shared = shared.clone();
                thread::spawn(move || {
                    shared.write(at);
                    leave(&shared);
                })
            })
            .collect();
        if shared.word.take(1) {
            (0..2).for_each(|at| shared.write(at));
            assert_eq!(shared.word.leave(), Some(true));
        }
        users.into_iter().for_each(|user| user.join().unwrap());
        assert!(shared.word.take(1), "it is free when all have left");
        assert!(!shared.word.take(1), "and then it is not");
        assert_eq!((shared.word.leave(), shared.word.leave()), (Some(true), None));
    });
}

#[test]
fn who_takes_an_id_sees_what_all_its_users_have_done() {
    two_users_and_the_next(|shared| {
        assert!(shared.word.leave().is_some());
    });
}

#[test]
fn the_last_user_of_a_segment_clears_up_behind_the_others_and_before_the_next() {
    two_users_and_the_next(|shared| match shared.word.leave_unless_last() {
        Leaving::Others => {}
        Leaving::Last => {
            (0..2).for_each(|at| shared.write(at));
            shared.word.free();
        }
        Leaving::Nobody => panic!("the caller uses it"),
    });
}

#[test]
fn granules_go_from_owner_to_owner_and_their_neighbours_stay() {
    loom::model(|| {
        let heap = Arc::new(Owned::<BitmapWord>::default());
        heap.word.set(0b01).expect("free");
        let owner = {
            let heap = heap.clone();
            thread::spawn(move || {
                heap.write(0);
                heap.word.clear(0b01);
            })
        };
        let neighbour = {
            let heap = heap.clone();
            thread::spawn(move || {
                heap.word.set(0b10).expect("nobody else takes it");
                heap.write(1);
                heap.word.clear(0b10);
            })
        };
        match heap.word.set(0b01) {
            Ok(()) => heap.write(0),
            Err(taken) => assert_eq!(taken, 0b01),
        }
        owner.join().unwrap();
        neighbour.join().unwrap();
        assert_eq!(heap.read(1), 1);
        assert_eq!(heap.word.load() & 0b10, 0);
    });
}

#[test]
fn whoever_asks_for_a_table_gets_the_same_one_as_it_was_made() {
    loom::model(|| {
        let tables = Arc::new(Owned::<AtomicU64>::default());
        let ask = |tables: &Owned<AtomicU64>, own: usize| {
            let make = || {
                tables.write(own);
                Some((own as u64 + 1, own))
            };
            // What is given back is its maker's again.
            let give_back = |own: usize| tables.write(own);
            let place = agree_on(&tables.word, make, give_back).expect("a table");
            assert_eq!(tables.read(place as usize - 1), 1);
            place
        };
        let other = {
            let tables = tables.clone();
            thread::spawn(move || ask(&tables, 1))
        };
        let own = ask(&tables, 0);
        assert_eq!(other.join().unwrap(), own);
    });
}
