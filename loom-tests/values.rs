//! Accumulates that the processor performs (atomic mode rule 1): of two on one value neither is lost, and whoever finds
//! another's value there sees what its origin did before.
//!
//! Run:   .ci/loom values
//! Bound: 2 threads, every interleaving with at most 3 preemptions (LOOM_MAX_PREEMPTIONS raises that).
//! Time:  less than a second.
//!
//! `cargo xtask mutants src/rma/atomics.rs` weakens each ordering and says which model fails (`loom-tests/mutants.md`).
#![cfg(perusal_loom)]

use crate::support::Plain;
use loom::sync::Arc;
use loom::thread;
use perusal::internals::abi::{MPI_BOR, MPI_UINT64_T};
use perusal::internals::datatype::Basic;
use perusal::internals::datatype::op::Op;
use perusal::internals::rma::atomics::{Change, Value, change_cell};
use perusal::internals::sync::{AtomicU64, explore};

#[derive(Default)]
struct Target {
    value: AtomicU64,
    /// What each origin does before its accumulate.
    before: [Plain<u32>; 2],
}

impl Target {
    /// Does something, and then the accumulate `own`, as origin `me`: returns what it found.
    /// `seen` says whether that is the other's.
    fn origin(&self, me: usize, own: fn(&Target) -> Value, seen: fn(Value) -> bool) -> Value {
        self.before[me].set(7);
        let found = own(self);
        if seen(found) {
            assert_eq!(self.before[1 - me].get(), 7);
        }
        found
    }
}

/// Has two origins accumulate; `check` gets what each has found, and what is there in the end.
/// A value other than 0 is the other's.
fn two_origins(each: [fn(&Target) -> Value; 2], check: fn([Value; 2], Value)) {
    explore(3, move || {
        let target = Arc::new(Target::default());
        let other = {
            let target = target.clone();
            thread::spawn(move || target.origin(1, each[1], |found| found != 0))
        };
        let own = target.origin(0, each[0], |found| found != 0);
        let other = other.join().unwrap();
        check([own, other], change_cell(&target.value, Change::Nothing));
    });
}

#[test]
fn what_is_fetched_comes_with_what_its_origin_did_before() {
    let fetch = |target: &Target| change_cell(&target.value, Change::Nothing);
    two_origins([|target| change_cell(&target.value, Change::Replace(1)), fetch], |_, last| {
        assert_eq!(last, 1)
    });
}

#[test]
fn of_two_that_replace_a_value_the_second_finds_the_first() {
    let each: [fn(&Target) -> Value; 2] = [
        |target| change_cell(&target.value, Change::Replace(1)),
        |target| change_cell(&target.value, Change::Replace(2)),
    ];
    two_origins(each, |found, last| assert!((found, last) == ([0, 1], 2) || (found, last) == ([2, 0], 1)));
}

#[test]
fn of_two_that_add_the_second_finds_what_the_first_has_added() {
    let each: [fn(&Target) -> Value; 2] = [
        |target| change_cell(&target.value, Change::Add(1)),
        |target| change_cell(&target.value, Change::Add(2)),
    ];
    two_origins(each, |found, last| assert!(last == 3 && (found == [0, 1] || found == [2, 0])));
}

#[test]
fn of_two_that_exchange_the_same_value_one_does() {
    let each: [fn(&Target) -> Value; 2] = [
        |target| change_cell(&target.value, Change::Exchange(0, 1)),
        |target| change_cell(&target.value, Change::Exchange(0, 2)),
    ];
    two_origins(each, |found, last| assert!((found, last) == ([0, 1], 1) || (found, last) == ([2, 0], 2)));
}

#[test]
fn an_exchange_that_follows_another_one_sees_what_its_origin_did() {
    let each: [fn(&Target) -> Value; 2] = [
        |target| change_cell(&target.value, Change::Exchange(0, 1)),
        |target| change_cell(&target.value, Change::Exchange(1, 2)),
    ];
    two_origins(each, |found, last| assert!((found, last) == ([0, 1], 2) || (found, last) == ([0, 0], 1)));
}

#[test]
fn of_two_that_combine_neither_is_lost() {
    let each: [fn(&Target) -> Value; 2] = [|target| combine(target, 1), |target| combine(target, 2)];
    two_origins(each, |found, last| assert!(last == 3 && (found == [0, 1] || found == [2, 0])));
}

fn combine(target: &Target, bits: Value) -> Value {
    let op = Op::predefined(MPI_BOR).expect("MPI_BOR");
    let basic = Basic::of(MPI_UINT64_T).expect("MPI_UINT64_T");
    change_cell(&target.value, Change::Reduce(&op, basic, bits))
}
