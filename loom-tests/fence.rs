//! MPI_Win_fence: a dissemination barrier of empty messages, after which every member sees what all others stored into
//! its memory before, and before which nobody's later stores come: edge 1 of each message, one after the other, carries
//! what its sender has seen so far.
//!
//! Run:   .ci/loom fence
//! Bound: 2 members that fence twice, every interleaving with at most 2 preemptions;
//!        3 members that fence once, with at most 1 (LOOM_MAX_PREEMPTIONS raises both).
//! Time:  a second.
//!
//! Weakened, the Release of a ring's commit and the Acquire of its poll make these models fail
//! (`cargo xtask mutants src/ring`), and so does a barrier that leaves out a step.
#![cfg(perusal_loom)]

use crate::support::Plain;
use loom::sync::Arc;
use loom::thread;
use perusal::internals::ring::{Consumer, Header, HeapRing, Producer};

fn model(preemptions: usize, body: impl Fn() + Send + Sync + 'static) {
    perusal::model::check(preemptions, body);
}

/// What the members have exposed: a value of each for each other.
struct Window {
    values: Vec<Vec<Plain<u32>>>,
}

impl Window {
    fn put(&self, origin: usize, target: usize, value: u32) {
        // An origin has a value of its own at each target, which nobody loads before the fence.
        self.values[target][origin].set(value);
    }

    fn load(&self, origin: usize, target: usize) -> u32 {
        // Between two fences in which nobody puts.
        self.values[target][origin].get()
    }
}

/// A member, with the rings to and from the others that its barrier has messages with, in the order of the steps.
struct Member {
    rank: usize,
    steps: Vec<(Producer<HeapRing>, Consumer<HeapRing>)>,
    window: Arc<Window>,
}

impl Member {
    /// As `coll::algorithms::dissemination::barrier` does. A member that has heard nothing at the second look gives up,
    /// false, and all behind it: loom has no end of waiting, and every order in which messages arrive is among those
    /// that it tries.
    fn fence(&mut self) -> bool {
        let header = Header { kind: 1, context: 1, tag: 1, source: self.rank as u32, id: 0 };
        for (to, from) in &mut self.steps {
            assert!(to.try_push(&header, 0, |_| ()), "there is room for all");
            let mut heard = || from.poll(|_, _| ()).expect("nothing is corrupt").is_some();
            let come = heard() || {
                thread::yield_now();
                heard()
            };
            if !come {
                return false;
            }
        }
        true
    }
}

/// Has `size` members play `body`.
fn members(size: usize, body: fn(&mut Member, usize)) {
    let cells = || Plain::new(0);
    let values = (0..size).map(|_| (0..size).map(|_| cells()).collect()).collect();
    let window = Arc::new(Window { values });
    let distances: Vec<usize> = std::iter::successors(Some(1), |distance| Some(distance * 2))
        .take_while(|distance| *distance < size)
        .collect();
    // A ring for each step and sender: that of a pair, if a pair meets in one step only.
    let rings: Vec<Vec<HeapRing>> =
        distances.iter().map(|_| (0..size).map(|_| HeapRing::new(4, 256)).collect()).collect();
    let mut all: Vec<Member> = (0..size)
        .map(|rank| {
            let steps = distances.iter().zip(&rings).map(|(distance, rings)| {
                let from = (rank + size - distance) % size;
                (Producer::new(rings[rank].clone()), Consumer::new(rings[from].clone()))
            });
            Member { rank, steps: steps.collect(), window: window.clone() }
        })
        .collect();
    let mut first = all.remove(0);
    let others: Vec<_> =
        all.into_iter().map(|mut member| thread::spawn(move || body(&mut member, size))).collect();
    body(&mut first, size);
    others.into_iter().for_each(|other| other.join().unwrap());
}

/// Puts into everybody's memory, fences, and loads what the others have put into its own;
/// false where the fence gave up.
fn put_and_load(member: &mut Member, size: usize) -> bool {
    let others = |rank| (0..size).filter(move |other| *other != rank);
    let rank = member.rank;
    others(rank).for_each(|target| member.window.put(rank, target, 7 + rank as u32));
    let over = member.fence();
    if over {
        others(rank).for_each(|origin| assert_eq!(member.window.load(origin, rank), 7 + origin as u32));
    }
    over
}

#[test]
fn what_two_put_is_there_after_a_fence_and_loaded_before_the_next_put() {
    model(2, || {
        members(2, |member, size| {
            if put_and_load(member, size) && member.fence() {
                let rank = member.rank;
                member.window.put(rank, 1 - rank, 1);
            }
        });
    });
}

#[test]
fn what_three_put_is_there_though_not_all_send_to_each_other_in_every_step() {
    model(1, || members(3, |member, size| _ = put_and_load(member, size)));
}
