//! The short form of a queue: keys side by side in a few cache lines, in order of insertion,
//! with a bit for each that lives.
//!
//! New keys go to the end. A key that is taken leaves a hole, a cleared bit, which costs nothing to skip. When the end
//! is reached, the live keys move together if at most half of the lanes are live; otherwise the queue becomes deep.

use crate::limits::{SHORT_QUEUE, SHORT_QUEUE_AGAIN};

/// Lanes compared at a time.
const GROUP: usize = 4;

const _: () = assert!(SHORT_QUEUE.is_multiple_of(GROUP));

/// Up to [`SHORT_QUEUE`] keys `E`, each with a value: the slab index of its entry, or the payload itself.
#[derive(Debug)]
#[repr(C, align(64))]
pub(super) struct KeyLanes<E, V = u32> {
    keys: [E; SHORT_QUEUE],
    slots: [V; SHORT_QUEUE],
    live: u64,
    /// Where the next key goes: behind the youngest live key, or the key that was the youngest when this was set.
    end: u32,
    /// Most keys that it takes: at most [`SHORT_QUEUE`]; fewer make a queue turn deep sooner.
    room: u32,
}

/// Returns how many bits are set, fastest for none and one: the baseline x86-64 has no instruction that counts bits.
#[inline(always)]
pub(super) fn few(bits: u64) -> usize {
    if bits & bits.wrapping_sub(1) == 0 { usize::from(bits != 0) } else { bits.count_ones() as usize }
}

impl<E: Copy + Default, V: Copy + Default + PartialEq> KeyLanes<E, V> {
    /// Lanes for `room` keys, from twice [`SHORT_QUEUE_AGAIN`] to [`SHORT_QUEUE`].
    pub fn new(room: usize) -> Self {
        let room = room.clamp(2 * SHORT_QUEUE_AGAIN, SHORT_QUEUE) as u32;
        Self { keys: [E::default(); SHORT_QUEUE], slots: [V::default(); SHORT_QUEUE], live: 0, end: 0, room }
    }

    #[inline]
    pub fn len(&self) -> usize {
        self.live.count_ones() as usize
    }

    /// Adds a key as the youngest. Returns false if there is no room.
    #[inline(always)]
    pub fn push(&mut self, key: E, slot: V) -> bool {
        if self.end == self.room && !self.make_room() {
            return false;
        }
        let lane = self.end as usize;
        self.keys[lane % SHORT_QUEUE] = key;
        self.slots[lane % SHORT_QUEUE] = slot;
        self.live |= 1 << (lane % SHORT_QUEUE);
        self.end += 1;
        true
    }

    /// Finds room behind the youngest live key, or by removing the holes. Returns false if there are too few holes.
    #[cold]
    #[inline(never)]
    fn make_room(&mut self) -> bool {
        self.end = u64::BITS - self.live.leading_zeros();
        if self.end < self.room {
            return true;
        }
        if self.len() > self.room as usize / 2 {
            return false;
        }
        let mut to = 0;
        for from in bits(self.live) {
            self.keys[to] = self.keys[from as usize];
            self.slots[to] = self.slots[from as usize];
            to += 1;
        }
        self.end = to as u32;
        self.live = (1 << to) - 1; // `to` is at most half of SHORT_QUEUE
        true
    }

    /// Returns the lane of the oldest key that `matches`.
    #[inline(always)]
    pub fn oldest(&self, matches: impl Fn(&E) -> bool) -> Option<u32> {
        match self.first(&matches) {
            Ok(lane) => Some(lane),
            Err(0) => None,
            Err(others) => self.oldest_of(others, matches),
        }
    }

    /// Returns the lane of the oldest key of all if that key `matches`.
    ///
    /// # Errors
    /// The lanes of the other keys, a bit each.
    #[inline(always)]
    pub fn first(&self, matches: impl Fn(&E) -> bool) -> Result<u32, u64> {
        if self.live == 0 {
            return Err(0);
        }
        let first = self.live.trailing_zeros();
        if matches(&self.keys[first as usize % SHORT_QUEUE]) {
            Ok(first)
        } else {
            Err(self.live & (self.live - 1))
        }
    }

    /// The same as [`oldest`](Self::oldest) among the lanes whose bits are set in `among`.
    #[inline(always)]
    pub fn oldest_of(&self, among: u64, matches: impl Fn(&E) -> bool) -> Option<u32> {
        let skip = among.trailing_zeros() as usize / GROUP;
        for (group, keys) in self.keys.chunks_exact(GROUP).enumerate().skip(skip) {
            let base = group * GROUP;
            if base >= self.end as usize {
                break;
            }
            let mut hits = 0u64;
            for (lane, key) in keys.iter().enumerate() {
                hits |= u64::from(matches(key)) << lane;
            }
            let hits = (hits << base) & among;
            if hits != 0 {
                return Some(hits.trailing_zeros());
            }
        }
        None
    }

    /// Returns the live lanes that a search met which ended at `lane`, a bit each; all of them for `None`.
    #[inline]
    pub fn met(&self, lane: Option<u32>) -> u64 {
        match lane {
            Some(lane) => self.live & (u64::MAX >> (63 - lane % 64)),
            None => self.live,
        }
    }

    /// Returns the value of a live lane.
    #[inline(always)]
    pub fn slot(&self, lane: u32) -> V {
        self.slots[lane as usize % SHORT_QUEUE]
    }

    /// Returns the key of a live lane.
    #[inline]
    pub fn key(&self, lane: u32) -> E {
        self.keys[lane as usize % SHORT_QUEUE]
    }

    /// Removes a lane and returns its value.
    #[inline(always)]
    pub fn vacate(&mut self, lane: u32) -> V {
        self.live &= !(1 << (lane % 64));
        if self.live == 0 {
            self.end = 0;
        }
        self.slot(lane)
    }

    /// Returns the live lane that has this value.
    pub fn lane_of(&self, slot: V) -> Option<u32> {
        bits(self.live).find(|&lane| self.slot(lane) == slot)
    }

    /// Returns the live lanes, oldest first.
    pub fn lanes(&self) -> SetBits {
        bits(self.live)
    }

    /// Returns the value of the only live lane.
    #[inline(always)]
    pub fn only(&self) -> V {
        self.slots[self.live.trailing_zeros() as usize % SHORT_QUEUE]
    }

    pub fn clear(&mut self) {
        (self.live, self.end) = (0, 0);
    }
}

/// The positions of the bits that are set in a word, lowest first.
#[derive(Debug, Clone)]
pub(super) struct SetBits(u64);

#[inline]
fn bits(word: u64) -> SetBits {
    SetBits(word)
}

impl Iterator for SetBits {
    type Item = u32;
    #[inline]
    fn next(&mut self) -> Option<u32> {
        let lowest = (self.0 != 0).then(|| self.0.trailing_zeros())?;
        self.0 &= self.0 - 1;
        Some(lowest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn full() -> KeyLanes<u64> {
        let mut lanes = KeyLanes::new(SHORT_QUEUE);
        for i in 0..SHORT_QUEUE as u32 {
            assert!(lanes.push(u64::from(i), 100 + i));
        }
        lanes
    }

    #[test]
    fn every_lane_is_found_and_the_oldest_of_equals_comes_first() {
        let lanes = full();
        for i in 0..SHORT_QUEUE as u32 {
            assert_eq!(lanes.oldest(|&key| key >= u64::from(i)), Some(i));
            assert_eq!(lanes.met(Some(i)).count_ones(), i + 1);
        }
        assert_eq!(lanes.oldest(|&key| key == 999), None);
        assert_eq!(lanes.met(None).count_ones() as usize, SHORT_QUEUE);
    }

    #[test]
    fn room_at_the_end_is_used_again_at_once() {
        let mut lanes = full();
        let last = SHORT_QUEUE as u32 - 1;
        lanes.vacate(last - 1);
        assert!(!lanes.push(7, 130), "a hole is no room");
        lanes.vacate(last);
        assert!(lanes.push(130, 130) && lanes.push(131, 131));
        assert_eq!(lanes.oldest(|&key| key == 131), Some(last));
        (0..SHORT_QUEUE as u32).for_each(|lane| _ = lanes.vacate(lane));
        assert!(lanes.push(7, 7));
        assert_eq!(lanes.oldest(|_| true), Some(0));
    }

    #[test]
    fn lanes_for_fewer_keys_are_full_sooner() {
        let mut lanes = KeyLanes::<u64>::new(16);
        assert!((0..16).all(|i| lanes.push(u64::from(i), i)));
        assert!(!lanes.push(16, 16));
        (0..8).for_each(|lane| _ = lanes.vacate(lane));
        assert!(lanes.push(16, 16), "half of them are holes");
        assert_eq!(lanes.len(), 9);
    }

    #[test]
    fn holes_are_never_found() {
        let mut lanes = full();
        for i in (0..SHORT_QUEUE as u32).step_by(2) {
            assert_eq!(lanes.vacate(i), 100 + i);
        }
        for i in 0..SHORT_QUEUE as u32 {
            let expected = (i % 2 == 1).then_some(i);
            assert_eq!(lanes.oldest(|&key| key == u64::from(i)), expected);
        }
    }

    #[test]
    fn a_full_queue_refuses_and_a_half_empty_one_closes_ranks_in_order() {
        let mut lanes = full();
        assert!(!lanes.push(0, 0));
        for i in 0..SHORT_QUEUE as u32 / 2 {
            lanes.vacate(2 * i);
        }
        assert!(lanes.push(1000, 1000));
        let slots: Vec<u32> = lanes.lanes().map(|lane| lanes.slot(lane)).collect();
        let expected: Vec<u32> = (0..SHORT_QUEUE as u32 / 2).map(|i| 101 + 2 * i).chain([1000]).collect();
        assert_eq!(slots, expected);
    }
}
