//! Marks of ranks that sleep until a word in shared memory changes.

use super::{AsymmetricFence, AtomicU64, Ordering, fence};

/// One rank's bit in a word that says who sleeps.
///
/// A rank that is about to sleep sets its mark and looks at the awaited word once more; a rank that changes that word
/// then looks at the marks. With the fences in between at least one of the two sees the other (team rule 5).
#[derive(Debug, Clone, Copy)]
pub struct SleepMark<'a> {
    word: &'a AtomicU64,
    bit: u64,
}

impl<'a> SleepMark<'a> {
    /// Bit `bit`, less than 64, of `word`.
    #[must_use]
    pub fn new(word: &'a AtomicU64, bit: u32) -> Self {
        Self { word, bit: 1 << bit }
    }

    /// The word that the mark is in.
    #[must_use]
    pub fn word(self) -> &'a AtomicU64 {
        self.word
    }

    /// Sets the mark; the caller looks once more before it sleeps.
    /// Returns at once if nobody has taken it since it was set.
    pub fn set(self, fences: AsymmetricFence) {
        // Relaxed: the bit is set by us alone, and the fences below order what follows.
        if self.word.load(Ordering::Relaxed) & self.bit == 0 {
            self.set_unfenced();
            fences.heavy_barrier();
            fence(Ordering::SeqCst);
        }
    }

    /// Sets the mark alone.
    pub fn set_unfenced(self) {
        // Relaxed: see `set`.
        self.word.fetch_or(self.bit, Ordering::Relaxed);
    }

    /// Takes the mark away; a rank that has seen it may still wake.
    pub fn clear(self) {
        // Relaxed: a mark too many is a wake-up too many.
        self.word.fetch_and(!self.bit, Ordering::Relaxed);
    }
}

/// Whether a bit is set in `word`. To be asked after the change that sleepers may wait for and
/// [`AsymmetricFence::light_barrier`].
#[inline(always)]
pub fn has_sleepers(word: &AtomicU64) -> bool {
    // Relaxed: ordered behind the change by the fence; a hint, which `take_sleepers` confirms.
    word.load(Ordering::Relaxed) != 0
}

/// Calls `wake` with the number of each bit that is set in `words`, and clears them.
#[cold]
pub fn take_sleepers<'a>(words: impl Iterator<Item = &'a AtomicU64>, mut wake: impl FnMut(usize)) {
    for (index, word) in words.enumerate() {
        // Relaxed: a sleeper is woken through its bell, which orders what it needs.
        let mut bits = word.swap(0, Ordering::Relaxed);
        while bits != 0 {
            wake(index * 64 + bits.trailing_zeros() as usize);
            bits &= bits - 1;
        }
    }
}
