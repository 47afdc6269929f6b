//! What one match costs, by depth, pattern and place in the queue: `cargo bench --bench matching [-- NAME]`.
//!
//! One step takes a match and queues the entry again, so a figure is one entry's whole way through the queue.
//!
//! - first: the oldest entry matches, always another one in turn;
//! - last: only the youngest matches, and all others are of every other class there is;
//! - random: any entry matches, so that at great depth each step misses the caches.
//!
//! `plain_list` is the oracle's own cost where only the last entry matches: what a walk would take.
//!
//! Before it is timed, each case runs beside the oracle, a list walked from the front, and every answer is compared.

use divan::Bencher;
use perusal::matching::oracle::{NaiveQueue, TestRandom};
use perusal::matching::{Envelope, MatchPattern, Pattern, PostedQueue, UnexpectedQueue};
use std::fmt;
use std::hint::black_box;

const DEPTHS: [usize; 4] = [1, 10, 1_000, 100_000];

#[derive(Clone, Copy)]
struct Kind {
    name: &'static str,
    any_source: bool,
    any_tag: bool,
}

const KINDS: [Kind; 4] = [
    Kind { name: "exact", any_source: false, any_tag: false },
    Kind { name: "any source", any_source: true, any_tag: false },
    Kind { name: "any tag", any_source: false, any_tag: true },
    Kind { name: "both any", any_source: true, any_tag: true },
];

impl Kind {
    fn pattern(self, key: Envelope) -> Pattern {
        Pattern { source: (!self.any_source).then_some(key.source), tag: (!self.any_tag).then_some(key.tag) }
    }
}

#[derive(Clone, Copy, PartialEq)]
enum Place {
    First,
    Last,
    Random,
}

/// A row: the kind of the receives, and how many entries are queued.
struct Case {
    kind: Kind,
    depth: usize,
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, {}", self.kind.name, self.depth)
    }
}

fn cases() -> impl Iterator<Item = Case> {
    KINDS.into_iter().flat_map(|kind| DEPTHS.map(|depth| Case { kind, depth }))
}

/// What is queued at the start, and what is asked for, over and over.
struct Load<I, A> {
    queued: Vec<I>,
    asked: Vec<A>,
}

/// Both queues by one face.
trait Queue<I, A> {
    fn insert(&mut self, item: I, value: u32);
    fn take(&mut self, ask: &A) -> (I, u32);
}

impl Queue<Envelope, Pattern> for UnexpectedQueue<u32> {
    #[inline(always)]
    fn insert(&mut self, item: Envelope, value: u32) {
        UnexpectedQueue::insert(self, item, value);
    }
    #[inline(always)]
    fn take(&mut self, ask: &Pattern) -> (Envelope, u32) {
        UnexpectedQueue::take(self, ask).expect("every step has its match")
    }
}

/// A queue of receives, and beside it what each of them asks for: the queue gives back names alone.
#[derive(Default)]
struct Receives {
    queue: PostedQueue<u32>,
    asked: Vec<Pattern>,
}

impl Queue<Pattern, Envelope> for Receives {
    #[inline(always)]
    fn insert(&mut self, item: Pattern, value: u32) {
        if self.asked.len() <= value as usize {
            self.asked.push(item);
        }
        self.queue.insert(item, value);
    }
    #[inline(always)]
    fn take(&mut self, ask: &Envelope) -> (Pattern, u32) {
        let value = self.queue.take(ask).expect("every step has its match");
        (self.asked[value as usize], value)
    }
}

impl Queue<Envelope, Pattern> for NaiveQueue<Envelope, u32> {
    fn insert(&mut self, item: Envelope, value: u32) {
        NaiveQueue::insert(self, item, value);
    }
    fn take(&mut self, ask: &Pattern) -> (Envelope, u32) {
        self.take_if(|key, _| ask.takes(key)).expect("every step has its match")
    }
}

impl Queue<Pattern, Envelope> for NaiveQueue<Pattern, u32> {
    fn insert(&mut self, item: Pattern, value: u32) {
        NaiveQueue::insert(self, item, value);
    }
    fn take(&mut self, ask: &Envelope) -> (Pattern, u32) {
        self.take_for(ask).expect("every step has its match")
    }
}

/// The `i`th key: no two agree in their tags, and a hundred and more share a source when the queue is deep.
fn key(i: usize) -> Envelope {
    Envelope { source: (i % 769) as u32, tag: i as i32 }
}

/// Which of `depth` entries are asked for in turn.
fn turns(depth: usize, place: Place) -> Vec<usize> {
    match place {
        Place::First => (0..depth).collect(),
        Place::Last => vec![depth - 1],
        Place::Random => {
            let mut random = TestRandom::new(depth as u64);
            (0..depth.max(1 << 16)).map(|_| random.below(depth as u64) as usize).collect()
        }
    }
}

fn unexpected_load(depth: usize, kind: Kind, place: Place) -> Load<Envelope, Pattern> {
    // Only the library's own tags are passed over by a receive that takes anything.
    let filler = |i: usize| Envelope { source: 1000 + (i % 97) as u32, tag: -2 - i as i32 };
    let entry = |i: usize| if place == Place::Last && i + 1 < depth { filler(i) } else { key(i) };
    let asked = turns(depth, place).into_iter().map(|i| kind.pattern(key(i))).collect();
    Load { queued: (0..depth).map(entry).collect(), asked }
}

fn posted_load(depth: usize, kind: Kind, place: Place) -> Load<Pattern, Envelope> {
    let filler =
        |i: usize| KINDS[i % 3].pattern(Envelope { source: 1000 + (i % 97) as u32, tag: 500_000 + i as i32 });
    // Patterns of every source differ in it, so that the one that is asked for is the one that is found.
    let receive = |i: usize| Envelope { source: i as u32, tag: i as i32 };
    let entry = |i: usize| match place {
        Place::Last if i + 1 < depth => filler(i),
        _ => kind.pattern(receive(i)),
    };
    let asked = turns(depth, place).into_iter().map(receive).collect();
    Load { queued: (0..depth).map(entry).collect(), asked }
}

fn fill<I: Copy, A, Q: Queue<I, A>>(mut queue: Q, load: &Load<I, A>) -> Q {
    for (i, &item) in load.queued.iter().enumerate() {
        queue.insert(item, i as u32);
    }
    queue
}

/// Steps beside the oracle, each answer compared.
fn agree<I, A, Q, N>(queue: &mut Q, oracle: &mut N, load: &Load<I, A>, steps: usize)
where
    I: Copy + PartialEq + fmt::Debug,
    Q: Queue<I, A>,
    N: Queue<I, A>,
{
    for ask in load.asked.iter().cycle().take(steps) {
        let (item, value) = queue.take(ask);
        assert_eq!((item, value), oracle.take(ask), "the oracle says otherwise");
        queue.insert(item, value);
        oracle.insert(item, value);
    }
}

/// Times one step; the entries are asked for in turn.
fn measure<I, A, Q: Queue<I, A>>(bencher: Bencher<'_, '_>, mut queue: Q, asked: &[A]) {
    let mut at = 0;
    bencher.bench_local(|| {
        let (item, value) = queue.take(black_box(&asked[at]));
        queue.insert(item, black_box(value));
        at = if at + 1 == asked.len() { 0 } else { at + 1 };
    });
}

/// One case: how it compares with the oracle, then what it costs.
fn case<I, A, Q, N>(bencher: Bencher<'_, '_>, queue: Q, oracle: N, load: &Load<I, A>)
where
    I: Copy + PartialEq + fmt::Debug,
    Q: Queue<I, A>,
    N: Queue<I, A>,
{
    let mut queue = fill(queue, load);
    let mut oracle = fill(oracle, load);
    agree(&mut queue, &mut oracle, load, if load.queued.len() > 1_000 { 40 } else { 1_000 });
    drop(oracle);
    measure(bencher, queue, &load.asked);
}

mod posted {
    use super::*;

    fn step(bencher: Bencher<'_, '_>, case: &Case, place: Place) {
        let load = posted_load(case.depth, case.kind, place);
        super::case(bencher, Receives::default(), NaiveQueue::<Pattern, u32>::default(), &load);
    }

    #[divan::bench(args = cases())]
    fn first(bencher: Bencher<'_, '_>, case: &Case) {
        step(bencher, case, Place::First);
    }

    #[divan::bench(args = cases())]
    fn last(bencher: Bencher<'_, '_>, case: &Case) {
        step(bencher, case, Place::Last);
    }

    #[divan::bench(args = cases())]
    fn random(bencher: Bencher<'_, '_>, case: &Case) {
        step(bencher, case, Place::Random);
    }

    #[divan::bench(args = DEPTHS)]
    fn plain_list(bencher: Bencher<'_, '_>, depth: usize) {
        let load = posted_load(depth, KINDS[0], Place::Last);
        measure(bencher, fill(NaiveQueue::<Pattern, u32>::default(), &load), &load.asked);
    }
}

mod unexpected {
    use super::*;

    fn step(bencher: Bencher<'_, '_>, case: &Case, place: Place) {
        let load = unexpected_load(case.depth, case.kind, place);
        super::case(bencher, UnexpectedQueue::<u32>::new(), NaiveQueue::<Envelope, u32>::default(), &load);
    }

    #[divan::bench(args = cases())]
    fn first(bencher: Bencher<'_, '_>, case: &Case) {
        step(bencher, case, Place::First);
    }

    #[divan::bench(args = cases())]
    fn last(bencher: Bencher<'_, '_>, case: &Case) {
        step(bencher, case, Place::Last);
    }

    #[divan::bench(args = cases())]
    fn random(bencher: Bencher<'_, '_>, case: &Case) {
        step(bencher, case, Place::Random);
    }

    #[divan::bench(args = DEPTHS)]
    fn plain_list(bencher: Bencher<'_, '_>, depth: usize) {
        let load = unexpected_load(depth, KINDS[0], Place::Last);
        measure(bencher, fill(NaiveQueue::<Envelope, u32>::default(), &load), &load.asked);
    }
}

fn main() {
    divan::main();
}
