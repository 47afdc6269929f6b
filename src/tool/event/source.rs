//! Sources: which thread or buffer an event comes from, and whether in order of time (MPI 5.0 §15.3.8, event sources).
//!
//! Source 0 is all buffers of handles together: what waits there comes out in order for each handle and thread, and in
//! no order beyond that. Each thread that delivers events at once, or asks, is a source of its own, and ordered.

use crate::limits::EVENT_SOURCES;
use crate::sync::{Mutex, MutexGuard};
use std::sync::PoisonError;

/// The buffers; and the threads, should there ever be too many at a time for a source each.
pub const BUFFERS: usize = 0;

/// Sources of threads, by number from 1. One whose thread has ended goes to the next thread that needs one:
/// its time goes on.
struct Threads {
    made: usize,
    free: Vec<usize>,
}

static THREADS: Mutex<Threads> = Mutex::new(Threads { made: 0, free: Vec::new() });

fn threads() -> MutexGuard<'static, Threads> {
    THREADS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The calling thread's source, for as long as the thread runs.
struct Mine(usize);

impl Mine {
    fn take() -> Mine {
        let mut threads = threads();
        if let Some(free) = threads.free.pop() {
            return Mine(free);
        }
        if threads.made + 1 >= EVENT_SOURCES {
            return Mine(BUFFERS);
        }
        threads.made += 1;
        Mine(threads.made)
    }
}

impl Drop for Mine {
    fn drop(&mut self) {
        if self.0 != BUFFERS {
            threads().free.push(self.0);
        }
    }
}

std::thread_local! {
    static MINE: Mine = Mine::take();
}

/// The source of what the calling thread raises at once.
#[must_use]
pub fn of_this_thread() -> usize {
    // While a thread is taken down it may have none any more.
    MINE.try_with(|mine| mine.0).unwrap_or(BUFFERS)
}

/// How many there are; at least two, the calling thread's among them.
#[must_use]
pub fn count() -> usize {
    let _ = of_this_thread();
    threads().made + 1
}

/// What MPI_T_source_get_info returns.
#[derive(Debug)]
pub struct EventSource {
    /// Unique.
    pub name: String,
    /// For people.
    pub description: &'static str,
    /// Whether its events come in the order of their timestamps.
    pub ordered: bool,
}

/// The source of an index.
#[must_use]
pub fn by_index(index: usize) -> Option<EventSource> {
    if index >= count() {
        return None;
    }
    Some(match index {
        BUFFERS => EventSource {
            name: "perusal_buffers".into(),
            description: "events that waited in the buffer of their handle: in order for each handle and thread, else in none; \
                          and all that were dropped",
            ordered: false,
        },
        thread => EventSource {
            name: format!("perusal_thread_{thread}"),
            description: "what one thread raises at once, when it happens; when the thread has ended, the next one that is made",
            ordered: true,
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_keeps_its_source_and_leaves_it_to_a_later_one() {
        let mine = of_this_thread();
        assert_eq!(mine, of_this_thread());
        let other = std::thread::spawn(|| (of_this_thread(), of_this_thread())).join().unwrap();
        assert_eq!(other.0, other.1);
        assert_ne!(other.0, mine);
        assert!(count() > mine.max(other.0));
        assert!(by_index(mine).is_some_and(|source| source.ordered));
        for _ in 0..2 * EVENT_SOURCES {
            std::thread::spawn(|| assert_ne!(of_this_thread(), BUFFERS)).join().unwrap();
        }
    }

    #[test]
    fn the_buffers_are_the_unordered_source_and_the_last_index_is_the_last() {
        assert!(by_index(BUFFERS).is_some_and(|source| !source.ordered));
        assert!(by_index(EVENT_SOURCES).is_none());
    }
}
