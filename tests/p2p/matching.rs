//! The queues' memory: none while nothing is queued, no more than the deepest moment needed, and then for good.

use perusal::matching::{Envelope, Pattern, PostedQueue, UnexpectedQueue};
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

/// Counts what the current thread asks for, so that tests beside this one do not disturb it.
struct Counting;

thread_local! {
    static ASKED: Cell<usize> = const { Cell::new(0) };
}

// SAFETY: hands everything on to `System` unchanged; counting touches a thread-local that never allocates.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let _ = ASKED.try_with(|asked| asked.set(asked.get() + 1));
        // SAFETY: the caller's promise is `System`'s.
        unsafe { System.alloc(layout) }
    }
    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        // SAFETY: the caller's promise is `System`'s, which gave `at`.
        unsafe { System.dealloc(at, layout) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

fn allocations(f: impl FnOnce()) -> usize {
    let before = ASKED.get();
    f();
    ASKED.get() - before
}

const DEPTH: u32 = 5_000;

fn key(i: u32) -> Envelope {
    Envelope { source: i % 13, tag: i as i32 }
}

/// Each of the four kinds of pattern in turn.
fn pattern(i: u32) -> Pattern {
    let Envelope { source, tag } = key(i);
    Pattern { source: (i % 4 < 2).then_some(source), tag: i.is_multiple_of(2).then_some(tag) }
}

#[test]
fn a_queue_that_never_held_anything_owns_no_memory() {
    let asked = allocations(|| {
        let mut posted = PostedQueue::<u64>::new();
        let mut unexpected = UnexpectedQueue::<u64>::new();
        assert_eq!(posted.take(&key(1)), None);
        assert_eq!(unexpected.take(&pattern(1)), None);
    });
    assert_eq!(asked, 0);
}

#[test]
fn a_posted_queue_that_was_as_deep_before_allocates_nothing() {
    let mut queue = PostedQueue::new();
    let mut fill_and_drain = || {
        for i in 0..DEPTH {
            queue.insert(pattern(i), i);
        }
        for i in 0..DEPTH {
            assert!(queue.take(&key(i)).is_some(), "as many messages as receives, each with one of its own");
        }
        assert!(queue.is_empty());
    };
    assert_ne!(allocations(&mut fill_and_drain), 0);
    assert_eq!(allocations(&mut fill_and_drain), 0);
}

#[test]
fn an_unexpected_queue_that_was_as_deep_before_allocates_nothing() {
    let mut queue = UnexpectedQueue::new();
    let mut fill_and_drain = || {
        for i in 0..DEPTH {
            queue.insert(key(i), i);
        }
        // The pickiest first, so that none takes what only another one can.
        for kind in [0, 2, 1, 3] {
            for i in (kind..DEPTH).step_by(4) {
                assert!(queue.take(&pattern(i)).is_some(), "as many receives as messages");
            }
        }
        assert!(queue.is_empty());
    };
    assert_ne!(allocations(&mut fill_and_drain), 0);
    // The bins of a wildcard that was first asked for at half depth see the whole depth now.
    fill_and_drain();
    assert_eq!(allocations(&mut fill_and_drain), 0);
}

#[test]
fn up_and_down_by_one_allocates_nothing_after_the_first_time() {
    let mut queue = UnexpectedQueue::new();
    queue.insert(key(0), 0);
    assert!(queue.take(&pattern(3)).is_some());
    let asked = allocations(|| {
        for i in 0..10_000 {
            queue.insert(key(i), i);
            assert!(queue.take(&pattern(i)).is_some());
        }
    });
    assert_eq!(asked, 0);
}
