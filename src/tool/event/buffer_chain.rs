//! The buffers of one handle: the one that events go to at present, and older ones,
//! until they are delivered and no thread can add to them.
//!
//! A buffer keeps its size. To change the size is to add a buffer, which events go to from then on; what waits in the
//! older ones stays where it is, and is delivered first. So nothing is moved, nothing is lost, and each drop is counted
//! once: by the buffer that had no room or, when that is gone, in one sum.
//!
//! A buffer is retired by its reference count, not by an epoch: that no thread reads it any more is not enough. What
//! counts is that no listener can put anything in, and that is the case when the last listener that had the buffer has
//! been dropped.
//!
//! # Rules
//! - **Chain rule 1.** Passes follow each other, and a buffer is only removed in [`BufferChain::begin_pass`]. So the
//!   indices of the buffers stay the same during a pass, though a buffer may be added.
//! - **Chain rule 2.** The newest buffer is never removed: a handle that has had one always has one.
//! - **Chain rule 3.** The lock of the list is held over no function of a tool.

use super::buffer::{BufferConsumer, BufferProducer, buffer};
use crate::sync::{Arc, AtomicU64, Mutex, MutexGuard, Ordering};
use std::sync::PoisonError;

/// A buffer with both of its ends.
#[derive(Debug)]
pub struct EventBuffer<T> {
    into: BufferProducer<T>,
    /// Locked in passes, and while they deliver.
    from: Mutex<BufferReader<T>>,
}

#[derive(Debug)]
struct BufferReader<T> {
    consumer: BufferConsumer<T>,
    /// How far the present pass goes.
    until: u64,
}

impl<T: Copy> EventBuffer<T> {
    /// Puts `entry` in; false, and counted, if there is no room.
    #[inline]
    pub fn push(&self, entry: T) -> bool {
        self.into.push(entry)
    }

    fn from(&self) -> MutexGuard<'_, BufferReader<T>> {
        self.from.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// All buffers of a handle, the oldest first.
#[derive(Debug)]
pub struct BufferChain<T> {
    all: Mutex<Vec<Arc<EventBuffer<T>>>>,
    /// Drops of buffers that are gone, not reported yet.
    dropped: AtomicU64,
}

impl<T: Copy> BufferChain<T> {
    /// None yet.
    #[must_use]
    pub fn new() -> BufferChain<T> {
        BufferChain { all: Mutex::new(Vec::new()), dropped: AtomicU64::new(0) }
    }

    /// Adds a buffer of `entries` behind the others; `None` if there is no memory for it.
    #[must_use]
    pub fn add(&self, entries: usize) -> Option<Arc<EventBuffer<T>>> {
        let (into, consumer) = buffer(entries)?;
        let made = Arc::new(EventBuffer { into, from: Mutex::new(BufferReader { consumer, until: 0 }) });
        self.all().push(made.clone());
        Some(made)
    }

    /// Whether there has never been a buffer.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.all().is_empty()
    }

    /// Whether there is something for [`dropped`](Self::dropped) to return.
    #[must_use]
    pub fn has_dropped(&self) -> bool {
        // Relaxed: as in `dropped`.
        self.dropped.load(Ordering::Relaxed) > 0 || self.all().iter().any(|buffer| buffer.into.has_dropped())
    }

    /// How many entries were dropped since this was last asked.
    pub fn dropped(&self) -> u64 {
        let all = self.all();
        let present: u64 = all.iter().map(|buffer| buffer.into.dropped()).sum();
        // Relaxed: each drop is in one answer; it is added under the lock that is held here.
        present + self.dropped.swap(0, Ordering::Relaxed)
    }

    /// Begins a pass: it goes as far as the buffers are filled now.
    pub fn begin_pass(&self) {
        let mut all = self.all();
        while all.len() > 1 && self.retire(&mut all[0]) {
            all.remove(0);
        }
        // The newest first: a thread that is seen to have put an entry there has put its entries for the older ones in
        // before.
        for buffer in all.iter().rev() {
            let mut pass = buffer.from();
            pass.until = pass.consumer.claimed();
        }
    }

    /// Whether all of `buffer` is delivered, and no thread can put anything in any more.
    fn retire(&self, buffer: &mut Arc<EventBuffer<T>>) -> bool {
        // The only reference, and ordered behind the end of the others: no thread is inside, or will be.
        let Some(buffer) = Arc::get_mut(buffer) else { return false };
        let empty = buffer.from().consumer.is_empty();
        if empty {
            // Relaxed: as in `dropped`.
            self.dropped.fetch_add(buffer.into.dropped(), Ordering::Relaxed);
        }
        empty
    }

    /// Whether something is left for the present pass.
    #[must_use]
    pub fn has_part(&self) -> bool {
        self.all().iter().any(|buffer| {
            let pass = buffer.from();
            pass.consumer.is_before(pass.until)
        })
    }

    /// Calls `deliver` with what waited when the pass began, in the order in which each thread put it in. Returns
    /// whether nothing at all is left.
    pub fn take(&self, mut deliver: impl FnMut(T)) -> bool {
        let mut empty = true;
        let mut at = 0;
        loop {
            let next = self.all().get(at).cloned();
            let Some(buffer) = next else { return empty };
            // Held over the tool's functions by the thread that delivers, which nothing here waits for.
            let mut pass = buffer.from();
            let until = pass.until;
            while let Some(entry) = pass.consumer.take(until) {
                deliver(entry);
            }
            // An entry that is claimed and not yet written: what its thread puts in later must not come before it.
            if pass.consumer.is_before(until) {
                return false;
            }
            empty &= pass.consumer.is_empty();
            at += 1;
        }
    }

    fn all(&self) -> MutexGuard<'_, Vec<Arc<EventBuffer<T>>>> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T: Copy> Default for BufferChain<T> {
    fn default() -> Self {
        BufferChain::new()
    }
}

#[cfg(all(test, not(perusal_loom)))]
mod tests {
    use super::*;

    fn pass(buffers: &BufferChain<u64>) -> Vec<u64> {
        let mut taken = Vec::new();
        buffers.begin_pass();
        buffers.take(|entry| taken.push(entry));
        taken
    }

    #[test]
    fn what_waits_in_an_older_buffer_is_delivered_first_and_takes_no_room_in_the_next() {
        let buffers = BufferChain::new();
        assert!(buffers.is_empty());
        let old = buffers.add(3).unwrap();
        assert!((0..3).all(|n| old.push(n)) && !old.push(99));
        let new = buffers.add(1).unwrap();
        assert!(new.push(3) && !new.push(98));
        assert_eq!(pass(&buffers), [0, 1, 2, 3]);
        assert_eq!((buffers.dropped(), buffers.has_dropped()), (2, false));
    }

    #[test]
    fn a_buffer_goes_when_it_is_delivered_and_nobody_can_be_inside_and_its_drops_stay() {
        let buffers = BufferChain::new();
        let old = buffers.add(1).unwrap();
        assert!(old.push(1));
        let new = buffers.add(2).unwrap();
        let count = |buffers: &BufferChain<u64>| buffers.all().len();
        assert_eq!((pass(&buffers), count(&buffers)), (vec![1], 2));
        buffers.begin_pass();
        assert_eq!(count(&buffers), 2, "a thread may be inside");
        assert!(old.push(2) && !old.push(3), "and is");
        assert_eq!(pass(&buffers), [2]);
        drop(old);
        buffers.begin_pass();
        assert_eq!((count(&buffers), buffers.dropped()), (1, 1));
        drop(new);
        buffers.begin_pass();
        assert_eq!(count(&buffers), 1, "the newest stays");
    }

    #[test]
    fn whatever_sizes_come_while_threads_put_in_nothing_is_lost_and_each_stays_in_order() {
        const EACH: u64 = 30_000;
        let buffers = BufferChain::new();
        let current = Mutex::new(buffers.add(1).unwrap());
        let (mut seen, mut dropped, mut last) = (0_u64, 0, [None; 3]);
        std::thread::scope(|scope| {
            let threads: Vec<_> = (0..3_u64)
                .map(|thread| {
                    let current = &current;
                    scope.spawn(move || {
                        for n in 0..EACH {
                            // As dispatch does: what it has found may be replaced before it puts the entry in.
                            let into = current.lock().unwrap().clone();
                            into.push(thread << 32 | n);
                        }
                    })
                })
                .collect();
            let mut sizes = [1, 2, 64, 1, 7].into_iter().cycle();
            let mut done = false;
            loop {
                buffers.begin_pass();
                dropped += buffers.dropped();
                buffers.take(|entry| {
                    let (thread, n) = ((entry >> 32) as usize, entry & u64::from(u32::MAX));
                    assert!(last[thread] < Some(n), "a thread's entries stay in order");
                    last[thread] = Some(n);
                    seen += 1;
                });
                if done {
                    break;
                }
                done = threads.iter().all(std::thread::ScopedJoinHandle::is_finished);
                *current.lock().unwrap() = buffers.add(sizes.next().unwrap()).unwrap();
            }
        });
        seen += pass(&buffers).len() as u64;
        dropped += buffers.dropped();
        assert_eq!(seen + dropped, 3 * EACH);
    }
}
