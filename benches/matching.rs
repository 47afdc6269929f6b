//! What one match costs, by depth, pattern and place in the queue: `cargo bench --bench matching`.
//!
//! One step takes a match and queues the entry again, so a figure is one entry's whole way through the queue.
//!
//! - first: the oldest entry matches, always another one in turn;
//! - last: only the youngest matches, and all others are of every other class there is;
//! - random: any entry matches, so that at great depth each step misses the caches.
//!
//! The plain list is the oracle's own cost where only the last entry matches: what a walk would take.
//!
//! Before it is timed, each case runs beside the oracle, a list walked from the front.

use perusal::matching::oracle::{Naive, Random};
use perusal::matching::{Envelope, Pattern, Posted, Select, Unexpected};
use std::hint::black_box;
use std::time::Instant;

const DEPTHS: [usize; 4] = [1, 10, 1_000, 100_000];
const SAMPLES: usize = 25;
/// Long enough that reading the clock is nothing, short enough that a sample is seldom interrupted.
const SAMPLE_NS: u64 = 200_000;

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

const PLACES: [Place; 3] = [Place::First, Place::Last, Place::Random];

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

impl Queue<Envelope, Pattern> for Unexpected<u32> {
    #[inline(always)]
    fn insert(&mut self, item: Envelope, value: u32) {
        Unexpected::insert(self, item, value);
    }
    #[inline(always)]
    fn take(&mut self, ask: &Pattern) -> (Envelope, u32) {
        Unexpected::take(self, ask).expect("every step has its match")
    }
}

impl Queue<Pattern, Envelope> for Posted<u32> {
    #[inline(always)]
    fn insert(&mut self, item: Pattern, value: u32) {
        Posted::insert(self, item, value);
    }
    #[inline(always)]
    fn take(&mut self, ask: &Envelope) -> (Pattern, u32) {
        Posted::take(self, ask).expect("every step has its match")
    }
}

impl Queue<Envelope, Pattern> for Naive<Envelope, u32> {
    fn insert(&mut self, item: Envelope, value: u32) {
        Naive::insert(self, item, value);
    }
    fn take(&mut self, ask: &Pattern) -> (Envelope, u32) {
        self.take_if(|key, _| ask.takes(key)).expect("every step has its match")
    }
}

impl Queue<Pattern, Envelope> for Naive<Pattern, u32> {
    fn insert(&mut self, item: Pattern, value: u32) {
        Naive::insert(self, item, value);
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
            let mut random = Random::new(depth as u64);
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
    I: Copy + PartialEq + std::fmt::Debug,
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

fn run<I, A, Q: Queue<I, A>>(queue: &mut Q, asked: &[A], at: &mut usize, steps: u64) {
    for _ in 0..steps {
        let (item, value) = queue.take(black_box(&asked[*at]));
        queue.insert(item, black_box(value));
        *at = if *at + 1 == asked.len() { 0 } else { *at + 1 };
    }
}

/// Nanoseconds a step: the median of the samples, and the tenth and ninetieth of a hundred.
fn measure<I, A, Q: Queue<I, A>>(queue: &mut Q, asked: &[A]) -> [f64; 3] {
    let mut at = 0;
    let mut timed = |steps: u64| {
        let start = Instant::now();
        run(queue, asked, &mut at, steps);
        start.elapsed().as_nanos() as f64 / steps as f64
    };
    let rough = timed(200).max(0.5);
    let steps = (SAMPLE_NS as f64 / rough) as u64 + 1;
    let mut samples: Vec<f64> = (0..SAMPLES).map(|_| timed(steps)).collect();
    samples.sort_by(f64::total_cmp);
    [samples[SAMPLES / 2], samples[SAMPLES / 10], samples[SAMPLES - 1 - SAMPLES / 10]]
}

/// One case: how it compares with the oracle, then what it costs. Gives the steps that the oracle saw.
fn case<I, A, Q, N>(queue: Q, oracle: N, load: &Load<I, A>) -> ([f64; 3], usize)
where
    I: Copy + PartialEq + std::fmt::Debug,
    Q: Queue<I, A>,
    N: Queue<I, A>,
{
    let mut queue = fill(queue, load);
    let mut oracle = fill(oracle, load);
    let steps = if load.queued.len() > 1_000 { 40 } else { 1_000 };
    agree(&mut queue, &mut oracle, load, steps);
    (measure(&mut queue, &load.asked), steps)
}

/// What the oracle itself takes where only the youngest matches.
fn plain_list(name: &str, depth: usize) -> [f64; 3] {
    if name == "posted" {
        let load = posted_load(depth, KINDS[0], Place::Last);
        measure(&mut fill(Naive::<Pattern, u32>::default(), &load), &load.asked)
    } else {
        let load = unexpected_load(depth, KINDS[0], Place::Last);
        measure(&mut fill(Naive::<Envelope, u32>::default(), &load), &load.asked)
    }
}

fn cell(ns: [f64; 3]) -> String {
    format!("{:.1} ({:.1}, {:.1})", ns[0], ns[1], ns[2])
}

fn main() {
    println!(
        "ns for one match and its entry's return to the queue: median (10 %, 90 %) of {SAMPLES} samples"
    );
    let mut checked = 0;
    for name in ["posted", "unexpected"] {
        println!("\n{name:<12}{:>9}  {:>22}{:>22}{:>22}", "depth", "first", "last", "random");
        for kind in KINDS {
            for depth in DEPTHS {
                print!("{:<12}{depth:>9}  ", kind.name);
                for place in PLACES {
                    let (ns, steps) = if name == "posted" {
                        let load = posted_load(depth, kind, place);
                        case(Posted::<u32>::new(), Naive::<Pattern, u32>::default(), &load)
                    } else {
                        let load = unexpected_load(depth, kind, place);
                        case(Unexpected::<u32>::new(), Naive::<Envelope, u32>::default(), &load)
                    };
                    checked += steps;
                    print!("{:>22}", cell(ns));
                }
                println!();
            }
        }
        for depth in DEPTHS {
            println!("{:<12}{depth:>9}  {:>22}{:>22}", "plain list", "", cell(plain_list(name, depth)));
        }
    }
    println!("\nthe oracle agrees on all of them: {checked} answers compared");
}
