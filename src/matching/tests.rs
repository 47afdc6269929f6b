//! Both queues beside the oracle: random operations, every sequence over a small key space, and great depth.

use super::oracle::{NaiveQueue, TestRandom};
use super::*;
use crate::limits::{every, rounds};

/// A queue of receives and its oracle, kept in step.
struct PostedPair<P: MatchPattern> {
    queue: PostedQueue<u32, P>,
    naive: NaiveQueue<P, u32>,
    posted: Vec<(P, u32, u64)>,
    turn: bool,
    serial: u32,
}

impl<P: MatchPattern + PartialEq> PostedPair<P>
where
    P::Key: PartialEq,
{
    fn new() -> Self {
        Self {
            queue: PostedQueue::new(),
            naive: NaiveQueue::default(),
            posted: Vec::new(),
            turn: false,
            serial: 0,
        }
    }

    fn insert(&mut self, pattern: P) {
        self.serial += 1;
        self.queue.insert(pattern, self.serial);
        self.posted.push((pattern, self.serial, self.naive.insert(pattern, self.serial)));
    }

    /// Every second message is taken by the search that counts nothing.
    fn take(&mut self, key: &P::Key) {
        self.turn = !self.turn;
        let expected = self.naive.take_for(key).map(|(_, value)| value);
        assert_eq!(self.queue.oldest(key), expected, "message {key:?}");
        if self.turn {
            assert_eq!(self.queue.take_uncounted(key), expected, "message {key:?}");
            return;
        }
        assert_eq!(self.queue.take(key), expected, "message {key:?}");
        assert!(self.queue.last_attempts() <= self.naive.len() + 1);
        assert!(expected.is_none() || self.queue.last_attempts() > 0);
    }

    /// Removes a receive that may have been taken by now.
    fn remove(&mut self, random: &mut TestRandom) {
        if self.posted.is_empty() {
            return;
        }
        let at = random.below(self.posted.len() as u64) as usize;
        let (pattern, value, name) = self.posted.swap_remove(at);
        assert_eq!(self.queue.remove(&pattern, value), self.naive.remove(name).is_some());
        assert!(!self.queue.remove(&pattern, value), "it is removed once");
    }

    fn same(&self) {
        assert_eq!(self.queue.len(), self.naive.len());
        assert!(self.queue.iter().eq(self.naive.iter().map(|(_, &value)| value)));
    }
}

/// A queue of messages and its oracle, kept in step.
struct UnexpectedPair<P: MatchPattern> {
    queue: UnexpectedQueue<u32, P>,
    naive: NaiveQueue<P::Key, u32>,
    tickets: Vec<(Ticket, u64)>,
    serial: u32,
}

impl<P: MatchPattern> UnexpectedPair<P>
where
    P::Key: PartialEq,
{
    fn new() -> Self {
        Self { queue: UnexpectedQueue::new(), naive: NaiveQueue::default(), tickets: Vec::new(), serial: 0 }
    }

    fn insert(&mut self, key: P::Key) {
        self.serial += 1;
        let ticket = self.queue.insert(key, self.serial);
        self.tickets.push((ticket, self.naive.insert(key, self.serial)));
    }

    fn take(&mut self, pattern: &P) {
        let peeked = self.queue.peek(pattern).map(|(&key, &value)| (key, value));
        let found = if self.serial.is_multiple_of(2) {
            self.queue.take(pattern)
        } else {
            self.take_in_place(pattern)
        };
        assert_eq!(found, peeked);
        assert_eq!(found, self.naive.take_if(|key, _| pattern.takes(key)), "receive {pattern:?}");
        assert!(self.queue.last_attempts() <= self.naive.len() + 1);
    }

    /// As a receive does that copies its message from where it lies.
    fn take_in_place(&mut self, pattern: &P) -> Option<(P::Key, u32)> {
        let found = self.queue.find(pattern)?;
        let (&key, &value) = self.queue.at(found);
        self.queue.discard(found);
        Some((key, value))
    }

    fn remove_youngest(&mut self, source: <P::Key as MatchKey>::Source, wanted: impl Fn(u32) -> bool) {
        let found = self.queue.remove_youngest(source, |_, &value| wanted(value));
        assert_eq!(found, self.naive.take_youngest(|key, &value| key.is_from(source) && wanted(value)));
    }

    fn remove(&mut self, random: &mut TestRandom) {
        if self.tickets.is_empty() {
            return;
        }
        let at = random.below(self.tickets.len() as u64) as usize;
        let (ticket, name) = self.tickets.swap_remove(at);
        assert_eq!(self.queue.remove(ticket), self.naive.remove(name));
        assert_eq!(self.queue.remove(ticket), None, "a ticket serves once");
    }

    fn same(&self) {
        assert_eq!(self.queue.len(), self.naive.len());
        assert!(self.queue.iter().eq(self.naive.iter()));
    }
}

/// The key space of a random run: narrow ones make equal keys, wide ones make bins of one.
#[derive(Clone, Copy)]
struct Space {
    sources: u64,
    tags: u64,
}

impl Space {
    fn envelope(self, random: &mut TestRandom) -> Envelope {
        let tag = random.below(self.tags) as i32;
        // One in sixteen is one of the library's own.
        let tag = if random.below(16) == 0 { -1 - tag } else { tag };
        Envelope { source: random.below(self.sources) as u32, tag }
    }

    fn pattern(self, random: &mut TestRandom) -> Pattern {
        let Envelope { source, tag } = self.envelope(random);
        let open = random.below(8);
        Pattern {
            source: (open != 1 && open != 3).then_some(source),
            tag: (open != 2 && open != 3).then_some(tag),
        }
    }
}

const SPACES: [Space; 4] = [
    Space { sources: 1, tags: 1 },
    Space { sources: 2, tags: 3 },
    Space { sources: 8, tags: 16 },
    Space { sources: 1000, tags: 100_000 },
];

/// Makes a queue swing between empty and deep, with steps the other way on the way.
struct Swing {
    deepest: usize,
    rising: bool,
}

impl Swing {
    fn inserts(&mut self, len: usize, random: &mut TestRandom) -> bool {
        self.rising = if self.rising { len < self.deepest } else { len == 0 };
        random.below(10) < if self.rising { 7 } else { 2 }
    }
}

#[test]
fn posted_receives_are_matched_as_by_a_plain_list_through_both_forms() {
    for (seed, space) in SPACES.into_iter().enumerate() {
        let mut random = TestRandom::new(seed as u64);
        let mut pair = PostedPair::<Pattern>::new();
        let mut swing = Swing { deepest: 150, rising: true };
        let mut turns = [0; 2];
        for step in 0..rounds(20_000) {
            let was_deep = pair.queue.is_deep();
            let any = random.below(pair.naive.len() as u64 * 5 / 4 + 1) as usize;
            let mut key = space.envelope(&mut random);
            if let Some((pattern, _)) = pair.naive.iter().nth(any) {
                key.source = pattern.source.unwrap_or(key.source);
                key.tag = pattern.tag.unwrap_or(key.tag);
            }
            if swing.inserts(pair.naive.len(), &mut random) {
                pair.insert(space.pattern(&mut random));
            } else if random.below(8) == 0 {
                pair.remove(&mut random);
            } else {
                pair.take(&key);
            }
            turns[usize::from(pair.queue.is_deep())] += usize::from(was_deep != pair.queue.is_deep());
            if step % 16 == 0 {
                pair.same();
            }
        }
        assert!(
            cfg!(miri) || turns.iter().all(|&n| n >= 10),
            "the run was to change form several times: {turns:?}"
        );
    }
}

#[test]
fn unexpected_messages_are_matched_as_by_a_plain_list_through_both_forms() {
    for (seed, space) in SPACES.into_iter().enumerate() {
        let mut random = TestRandom::new(seed as u64);
        let mut pair = UnexpectedPair::<Pattern>::new();
        let mut swing = Swing { deepest: 150, rising: true };
        let mut turns = [0; 2];
        for step in 0..rounds(20_000) {
            let was_deep = pair.queue.is_deep();
            let any = random.below(pair.naive.len().max(1) as u64) as usize;
            let queued = pair.naive.iter().nth(any).map(|(&key, _)| key);
            if swing.inserts(pair.naive.len(), &mut random) {
                pair.insert(space.envelope(&mut random));
            } else {
                let key = queued.unwrap_or_else(|| space.envelope(&mut random));
                match random.below(10) {
                    0 => pair.remove(&mut random),
                    1 => pair.remove_youngest(key.source, |value| value % 3 == 0),
                    2 => pair.take(&space.pattern(&mut random)),
                    3 => pair.take(&Pattern { source: None, tag: None }),
                    4 => pair.take(&Pattern { source: Some(key.source), tag: None }),
                    5 => pair.take(&Pattern { source: None, tag: Some(key.tag) }),
                    _ => pair.take(&Pattern { source: Some(key.source), tag: Some(key.tag) }),
                }
            }
            turns[usize::from(pair.queue.is_deep())] += usize::from(was_deep != pair.queue.is_deep());
            if step % 16 == 0 {
                pair.same();
            }
        }
        assert!(
            cfg!(miri) || turns.iter().all(|&n| n >= 10),
            "the run was to change form several times: {turns:?}"
        );
    }
}

fn small_keys() -> Vec<Envelope> {
    let tags = [0, 1, -1];
    (0..2).flat_map(|source| tags.map(|tag| Envelope { source, tag })).collect()
}

fn small_patterns() -> Vec<Pattern> {
    let tags = [Some(0), Some(1), Some(-1), None];
    [Some(0), Some(1), None].into_iter().flat_map(|source| tags.map(|tag| Pattern { source, tag })).collect()
}

/// Returns n, where Miri takes every n-th of the cases that it would take without ballast.
fn slow(ballast: usize) -> usize {
    if cfg!(miri) && ballast > 0 { 5 } else { 1 }
}

/// Every three entries in a row, below `ballast` others that nothing asked for matches, against every message.
fn every_three_receives(ballast: usize) {
    let (keys, patterns) = (small_keys(), small_patterns());
    let step = every(12 * 12 * 12) * slow(ballast);
    let mut case = 0;
    for &a in &patterns {
        for &b in &patterns {
            for &c in &patterns {
                case += 1;
                if case % step != 0 {
                    continue;
                }
                let mut pair = PostedPair::<Pattern>::new();
                for i in 0..ballast {
                    pair.insert(Pattern { source: Some(9), tag: Some(i as i32 % 5) });
                }
                for pattern in [a, b, c] {
                    pair.insert(pattern);
                }
                for key in keys.iter().chain(keys.iter().rev()) {
                    pair.take(key);
                }
                pair.same();
            }
        }
    }
}

#[test]
fn every_three_receives_meet_every_message_in_the_short_form() {
    every_three_receives(0);
}

#[test]
fn every_three_receives_meet_every_message_in_the_deep_form() {
    every_three_receives(crate::limits::SHORT_QUEUE);
}

fn every_four_messages(ballast: usize) {
    let (keys, patterns) = (small_keys(), small_patterns());
    let fours = keys.len().pow(4);
    for mut which in (0..fours).step_by(every(fours) * slow(ballast)) {
        let four = [(); 4].map(|()| {
            let key = keys[which % keys.len()];
            which /= keys.len();
            key
        });
        // The receives in an order of their own for each four, so that each comes first some time.
        for turn in (0..patterns.len()).step_by(if cfg!(miri) { 5 } else { 1 }) {
            let mut pair = UnexpectedPair::<Pattern>::new();
            for i in 0..ballast {
                pair.insert(Envelope { source: 9, tag: -5 - (i as i32 % 5) });
            }
            for key in four {
                pair.insert(key);
            }
            for i in 0..patterns.len() {
                pair.take(&patterns[(turn + i) % patterns.len()]);
            }
            pair.same();
        }
    }
}

#[test]
fn every_four_messages_meet_every_receive_in_the_short_form() {
    every_four_messages(0);
}

#[test]
fn every_four_messages_meet_every_receive_in_the_deep_form() {
    every_four_messages(crate::limits::SHORT_QUEUE);
}

const DEPTH: u32 = if cfg!(miri) { 160 } else { 100_000 };

#[test]
fn a_hundred_thousand_messages_leave_in_order_by_each_of_the_four_patterns() {
    let key = |i: u32| Envelope { source: i % 64, tag: (i / 64 % 97) as i32 };
    let patterns = |key: Envelope| {
        let (source, tag) = (Some(key.source), Some(key.tag));
        [(source, tag), (None, tag), (source, None), (None, None)]
            .map(|(source, tag)| Pattern { source, tag })
    };
    for class in 0..4 {
        let mut queue = UnexpectedQueue::new();
        for i in 0..DEPTH {
            queue.insert(key(i), i);
        }
        let mut last = std::collections::HashMap::new();
        for i in 0..DEPTH {
            let pattern = patterns(key(i))[class];
            let (envelope, value) = queue.take(&pattern).expect("as many as went in");
            assert_eq!(key(value), envelope);
            assert!(pattern.takes(&envelope));
            let before = last.insert(pattern, value);
            assert!(before < Some(value), "{pattern:?} gave {before:?}, then {value}");
            assert!(queue.last_attempts() <= crate::limits::SHORT_QUEUE);
        }
        assert!(queue.is_empty() && !queue.is_deep());
    }
}

#[test]
fn among_a_hundred_thousand_receives_the_oldest_of_all_four_patterns_is_found() {
    let mut queue = PostedQueue::new();
    let wanted = Envelope { source: 3, tag: 5 };
    let others = |i: u32| Pattern { source: Some(i % 64 + 100), tag: Some((i / 64) as i32) };
    let four = [(None, None), (Some(3), Some(5)), (None, Some(5)), (Some(3), None)];
    for i in 0..DEPTH {
        queue.insert(others(i), i);
        if let Some(&(source, tag)) = four.get((i % (DEPTH / 4)) as usize) {
            queue.insert(Pattern { source, tag }, DEPTH + i);
        }
    }
    let mut last = 0;
    for _ in 0..16 {
        let value = queue.take(&wanted).expect("sixteen receives take this message");
        assert!(value >= DEPTH && value > last);
        assert!(queue.last_attempts() <= 4);
        last = value;
    }
    assert_eq!(queue.take(&wanted), None);
    assert_eq!(queue.len(), DEPTH as usize);
}

#[test]
fn a_queue_that_was_deep_is_short_again_before_it_is_empty() {
    let mut queue = UnexpectedQueue::<u32>::new();
    let many = DEPTH.min(1000).cast_signed();
    for tag in 0..many {
        queue.insert(Envelope { source: 0, tag }, tag.unsigned_abs());
    }
    assert!(queue.is_deep());
    for tag in 0..many - crate::limits::SHORT_QUEUE_AGAIN as i32 {
        assert!(queue.is_deep());
        assert!(queue.take(&Pattern { source: None, tag: Some(tag) }).is_some());
    }
    assert!(!queue.is_deep());
    assert_eq!(queue.len(), crate::limits::SHORT_QUEUE_AGAIN);
}

#[test]
fn a_cancelled_message_is_found_among_its_source_whatever_its_tag() {
    for ballast in [0, 200] {
        let mut queue = UnexpectedQueue::<u32>::new();
        for i in 0..ballast {
            queue.insert(Envelope { source: 1, tag: 4 }, i);
        }
        queue.insert(Envelope { source: 2, tag: -7 }, 1000);
        queue.insert(Envelope { source: 2, tag: 7 }, 1001);
        queue.insert(Envelope { source: 2, tag: -7 }, 1002);
        assert_eq!(queue.remove_youngest(1, |_, &value| value >= 1000), None);
        let tagged = |wanted: i32| move |key: &Envelope, _: &u32| key.tag == wanted;
        assert_eq!(queue.remove_youngest(2, tagged(7)), Some((Envelope { source: 2, tag: 7 }, 1001)));
        assert_eq!(queue.remove_youngest(2, |_, _| true), Some((Envelope { source: 2, tag: -7 }, 1002)));
        assert_eq!(queue.remove_youngest(2, |_, _| true), Some((Envelope { source: 2, tag: -7 }, 1000)));
        assert_eq!(queue.remove_youngest(2, |_, _| true), None);
    }
}

/// Another interface's keys: 64-bit tags, and receives that ignore any bits they like.
mod wide {
    use super::*;

    #[derive(Debug, Clone, Copy, PartialEq)]
    pub struct Tagged {
        pub endpoint: u64,
        pub tag: u64,
    }

    #[derive(Debug, Clone, Copy, PartialEq)]
    pub struct Masked {
        pub endpoint: Option<u64>,
        pub tag: u64,
        pub ignore: u64,
    }

    const ENDPOINT: u128 = (u64::MAX as u128) << 64;
    const TAG: u128 = u64::MAX as u128;

    impl MatchKey for Tagged {
        type Word = u128;
        type Source = u64;
        const CARES: [u128; 4] = [ENDPOINT | TAG, TAG, ENDPOINT, 0];
        const LEARNS: bool = true;
        fn word(&self) -> u128 {
            (u128::from(self.endpoint) << 64) | u128::from(self.tag)
        }
        fn is_from(&self, source: u64) -> bool {
            self.endpoint == source
        }
        fn source_word(source: u64) -> u128 {
            u128::from(source) << 64
        }
    }

    impl MatchPattern for Masked {
        type Key = Tagged;
        fn value(&self) -> u128 {
            let endpoint = self.endpoint.unwrap_or(0);
            Tagged { endpoint, tag: self.tag & !self.ignore }.word()
        }
        fn care(&self) -> u128 {
            let endpoint = if self.endpoint.is_some() { ENDPOINT } else { 0 };
            endpoint | u128::from(!self.ignore)
        }
    }
}

#[test]
fn tags_of_64_bits_with_an_ignore_mask_are_matched_as_by_a_plain_list() {
    let key = |random: &mut TestRandom| wide::Tagged { endpoint: random.below(3), tag: random.below(8) };
    let pattern = |random: &mut TestRandom| wide::Masked {
        endpoint: (random.below(4) != 0).then(|| random.below(3)),
        tag: random.below(8),
        ignore: [0, 0, 0, 1, 6, u64::MAX][random.below(6) as usize],
    };
    let mut random = TestRandom::new(11);
    let mut posted = PostedPair::<wide::Masked>::new();
    let mut unexpected = UnexpectedPair::<wide::Masked>::new();
    let mut swings = [(); 2].map(|()| Swing { deepest: 120, rising: true });
    for step in 0..rounds(20_000) {
        if swings[0].inserts(posted.naive.len(), &mut random) {
            posted.insert(pattern(&mut random));
        } else {
            posted.take(&key(&mut random));
        }
        if swings[1].inserts(unexpected.naive.len(), &mut random) {
            unexpected.insert(key(&mut random));
        } else {
            match random.below(6) {
                0 => unexpected.remove(&mut random),
                1 => unexpected.remove_youngest(random.clone().below(3), |value| value % 2 == 0),
                _ => unexpected.take(&pattern(&mut random)),
            }
        }
        if step % 16 == 0 {
            posted.same();
            unexpected.same();
        }
    }
}

#[test]
fn masks_that_no_class_has_are_learned_and_searched_by_their_bins() {
    let depth = rounds(20_000) as u64 / 10 + 100;
    // Bits that every receive ignores, as MPICH has them.
    const OWN: u64 = 0xf << 60;
    let masks = [(true, OWN), (false, OWN), (true, OWN | 0xffff_ffff)];
    let pattern =
        |tag, (named, ignore): (bool, u64)| wide::Masked { endpoint: named.then_some(1), tag, ignore };
    let mut unexpected = UnexpectedQueue::<u64, wide::Masked>::new();
    for tag in 0..depth {
        unexpected.insert(wide::Tagged { endpoint: 1, tag: tag << 32 | 1 << 60 }, tag);
    }
    for tag in (0..depth).rev() {
        let found = unexpected.take(&pattern(tag << 32, masks[tag as usize % 3]));
        assert_eq!((found.map(|one| one.1), unexpected.last_attempts() <= 8), (Some(tag), true), "{tag}");
    }
    let mut posted = PostedQueue::<u64, wide::Masked>::new();
    (0..depth).for_each(|tag| posted.insert(pattern(tag << 32, masks[tag as usize % 3]), tag));
    for tag in (0..depth).rev() {
        let found = posted.take(&wide::Tagged { endpoint: 1, tag: tag << 32 | 1 << 60 });
        assert_eq!((found, posted.last_attempts() <= 8), (Some(tag), true), "{tag}");
    }
}
