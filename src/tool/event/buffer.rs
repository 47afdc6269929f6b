//! Where events wait for a safe point: a bounded queue from many threads to one at a time.
//!
//! An event that finds no room is dropped, which is counted in one word; no thread ever waits, and after [`buffer`]
//! nothing is allocated. One entry is enough for it to work.
//!
//! # Rules
//! - **Buffer rule 1.** A cell's `turn` says who owns it in lap *n*: at 2n the producer that claims the position, at
//!   2n + 1 the consumer. Only the owner touches `value`, and passes the cell on by storing the next turn.
//! - **Buffer rule 2.** A position is claimed by moving `claimed` past it, once, after its cell's turn was seen to be
//!   2n. So one producer has it.
//! - **Buffer rule 3.** There is one [`BufferConsumer`], and it is borrowed mutably while it takes.
//!
//! *Edge 5*: `BufferProducer::push` (Release) → `BufferConsumer::take` (Acquire) publishes the entry;
//! `BufferConsumer::take` (Release) → `BufferProducer::push` (Acquire) gives the cell back; the claim in
//! `BufferProducer::push` (Release) → `BufferConsumer::claimed` (Acquire) orders what the producer had dropped before,
//! here or elsewhere, before what it claimed after.

use crate::sync::{AtomicU64, CachePadded, Cell, Ordering};
use core::mem::MaybeUninit;
use std::sync::Arc;

#[derive(Debug)]
struct BufferCell<T> {
    turn: AtomicU64,
    value: Cell<MaybeUninit<T>>,
}

#[derive(Debug)]
struct BufferCells<T> {
    /// The position that is claimed next.
    claimed: CachePadded<AtomicU64>,
    /// Entries that found no room and were not reported yet.
    dropped: AtomicU64,
    cells: Box<[BufferCell<T>]>,
}

// SAFETY: values are moved from one thread to another (`T: Send`), and never accessed by two at once (buffer rule 1).
unsafe impl<T: Send> Sync for BufferCells<T> {}
// SAFETY: it owns values of `T: Send`, and all else in it is Send.
unsafe impl<T: Send> Send for BufferCells<T> {}

impl<T> BufferCells<T> {
    /// The cell of a position, and its lap.
    fn cell(&self, position: u64) -> (&BufferCell<T>, u64) {
        let room = self.cells.len() as u64;
        (&self.cells[(position % room) as usize], position / room)
    }
}

/// The end that any number of threads put entries in.
#[derive(Debug)]
pub struct BufferProducer<T>(Arc<BufferCells<T>>);

/// The end that they are taken out of.
#[derive(Debug)]
pub struct BufferConsumer<T> {
    shared: Arc<BufferCells<T>>,
    /// The position that is taken next.
    next: u64,
}

/// A buffer of `entries` (at least 1, or 1 all the same); `None` if there is no memory for it.
#[must_use]
pub fn buffer<T: Copy>(entries: usize) -> Option<(BufferProducer<T>, BufferConsumer<T>)> {
    let entries = entries.max(1);
    let mut cells = Vec::new();
    cells.try_reserve_exact(entries).ok()?;
    cells.extend(
        (0..entries).map(|_| BufferCell { turn: AtomicU64::new(0), value: Cell::new(MaybeUninit::uninit()) }),
    );
    let shared = Arc::new(BufferCells {
        claimed: CachePadded::new(AtomicU64::new(0)),
        dropped: AtomicU64::new(0),
        cells: cells.into_boxed_slice(),
    });
    Some((BufferProducer(shared.clone()), BufferConsumer { shared, next: 0 }))
}

impl<T: Copy> BufferProducer<T> {
    /// Puts `entry` in. False if there was no room: then the drop is counted.
    pub fn push(&self, entry: T) -> bool {
        let shared = &*self.0;
        // Relaxed: a guess that the exchange below checks.
        let mut position = shared.claimed.load(Ordering::Relaxed);
        loop {
            let (cell, lap) = shared.cell(position);
            // Acquire: edge 5, pairs with Release in `BufferConsumer::take`: the cell's last entry has been copied out.
            let seen = if cell.turn.load(Ordering::Acquire) == 2 * lap {
                // Release: edge 5, pairs with Acquire in `BufferConsumer::claimed`.
                // Relaxed on failure: the position is a guess again.
                match shared.claimed.compare_exchange_weak(
                    position,
                    position + 1,
                    Ordering::Release,
                    Ordering::Relaxed,
                ) {
                    Ok(_) => {
                        // SAFETY: buffer rules 1 and 2: the turn was 2n and the claim made the cell ours alone.
                        cell.value.with_mut(|value| unsafe { (*value).write(entry) });
                        // Release: edge 5, pairs with Acquire in `BufferConsumer::take`, publishes the entry.
                        cell.turn.store(2 * lap + 1, Ordering::Release);
                        return true;
                    }
                    Err(now) => now,
                }
            } else {
                // Relaxed: unmoved means that the cell is still a lap behind: full. A late view of it drops where there
                // is room again, which is counted like any drop.
                let now = shared.claimed.load(Ordering::Relaxed);
                if now == position {
                    self.drop_one();
                    return false;
                }
                now
            };
            position = seen;
        }
    }

    fn drop_one(&self) {
        // Relaxed: a count that is taken as a whole; `push`'s claim orders it before later entries (edge 5).
        self.0.dropped.fetch_add(1, Ordering::Relaxed);
    }

    /// Whether there is something for [`dropped`](Self::dropped) to return.
    #[must_use]
    pub fn has_dropped(&self) -> bool {
        // Relaxed: as in `dropped`.
        self.0.dropped.load(Ordering::Relaxed) > 0
    }

    /// How many entries were dropped since this was last asked.
    pub fn dropped(&self) -> u64 {
        // Relaxed: each drop is in one answer; `BufferConsumer::claimed` says which must be in this one.
        self.0.dropped.swap(0, Ordering::Relaxed)
    }
}

impl<T: Copy> BufferConsumer<T> {
    /// How far producers have claimed: what to take in one pass. Whatever they dropped before their claims is seen by a
    /// later [`BufferProducer::dropped`].
    #[must_use]
    pub fn claimed(&self) -> u64 {
        // Acquire: edge 5, pairs with Release in `BufferProducer::push`.
        self.shared.claimed.load(Ordering::Acquire)
    }

    /// The oldest entry before position `until`; `None` if there is none, or it is claimed and not yet written.
    pub fn take(&mut self, until: u64) -> Option<T> {
        if self.next >= until {
            return None;
        }
        let (cell, lap) = self.shared.cell(self.next);
        // Acquire: edge 5, pairs with Release in `BufferProducer::push`.
        if cell.turn.load(Ordering::Acquire) != 2 * lap + 1 {
            return None;
        }
        // SAFETY: buffer rules 1 and 3: the turn makes it ours, and a producer has written it.
        let entry = cell.value.with(|value| unsafe { (*value).assume_init_read() });
        // Release: edge 5, pairs with Acquire in `BufferProducer::push`: the entry has been copied out.
        cell.turn.store(2 * lap + 2, Ordering::Release);
        self.next += 1;
        Some(entry)
    }

    /// Whether there is a position before `until` that has not been taken.
    #[must_use]
    pub fn is_before(&self, until: u64) -> bool {
        self.next < until
    }

    /// Whether every position that was claimed has been taken.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.next == self.claimed()
    }
}

#[cfg(all(test, not(perusal_loom)))]
mod tests {
    use super::*;

    fn all(consumer: &mut BufferConsumer<u64>) -> Vec<u64> {
        let until = consumer.claimed();
        core::iter::from_fn(|| consumer.take(until)).collect()
    }

    #[test]
    fn entries_come_out_in_the_order_in_which_they_went_in_at_every_size() {
        for size in 1..9 {
            let (producer, mut consumer) = buffer(size).unwrap();
            for round in 0..5 {
                let entries: Vec<u64> = (0..size as u64).map(|n| round * 100 + n).collect();
                assert!(entries.iter().all(|&n| producer.push(n)));
                assert_eq!(all(&mut consumer), entries, "size {size}");
            }
            assert_eq!(producer.dropped(), 0);
            assert!(consumer.is_empty());
        }
    }

    #[test]
    fn a_full_buffer_drops_the_new_and_counts_it_once() {
        let (producer, mut consumer) = buffer(2).unwrap();
        assert!(producer.push(1) && producer.push(2));
        assert!(!producer.push(3) && !producer.push(4));
        let until = consumer.claimed();
        assert_eq!(consumer.take(until), Some(1));
        assert!(producer.push(5));
        assert_eq!((producer.dropped(), producer.dropped()), (2, 0));
        assert_eq!(consumer.take(until), Some(2));
        assert_eq!(consumer.take(until), None, "beyond the pass");
        assert_eq!(all(&mut consumer), [5]);
    }

    #[test]
    fn a_size_of_none_is_a_size_of_one() {
        let (producer, mut consumer) = buffer(0).unwrap();
        assert!(producer.push(7));
        assert!(!producer.push(8));
        assert_eq!(all(&mut consumer), [7]);
    }

    #[test]
    fn what_comes_out_and_what_was_dropped_is_what_went_in_whatever_threads_do() {
        for size in [1, 2, 3, 64] {
            let (producer, mut consumer) = buffer(size).unwrap();
            let producer = Arc::new(producer);
            const EACH: u64 = 20_000;
            let threads: Vec<_> = (0..3)
                .map(|thread| {
                    let producer = producer.clone();
                    std::thread::spawn(move || {
                        (0..EACH).for_each(|n| {
                            producer.push(thread << 32 | n);
                        })
                    })
                })
                .collect();
            let (mut seen, mut dropped, mut last) = (0, 0, [None; 3]);
            let mut done = false;
            loop {
                for entry in all(&mut consumer) {
                    let (thread, n) = ((entry >> 32) as usize, entry & u64::from(u32::MAX));
                    assert!(last[thread] < Some(n), "a thread's entries stay in order");
                    last[thread] = Some(n);
                    seen += 1;
                }
                dropped += producer.dropped();
                if done {
                    break;
                }
                done = threads.iter().all(std::thread::JoinHandle::is_finished);
                std::thread::yield_now();
            }
            threads.into_iter().for_each(|t| t.join().unwrap());
            seen += all(&mut consumer).len() as u64;
            dropped += producer.dropped();
            assert_eq!(seen + dropped, 3 * EACH, "size {size}");
        }
    }
}
