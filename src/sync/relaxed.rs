//! A small value that one thread sets while others may look at it.

use super::{AtomicU32, Ordering};
use core::marker::PhantomData;

/// What fits a word.
pub trait Word: Copy {
    /// The word that says it.
    fn to_word(self) -> u32;
    /// What the word says, which [`Self::to_word`] has made.
    fn of_word(word: u32) -> Self;
}

impl Word for u32 {
    #[inline(always)]
    fn to_word(self) -> u32 {
        self
    }
    #[inline(always)]
    fn of_word(word: u32) -> Self {
        word
    }
}

impl Word for i32 {
    #[inline(always)]
    fn to_word(self) -> u32 {
        self.cast_unsigned()
    }
    #[inline(always)]
    fn of_word(word: u32) -> Self {
        word.cast_signed()
    }
}

impl Word for bool {
    #[inline(always)]
    fn to_word(self) -> u32 {
        u32::from(self)
    }
    #[inline(always)]
    fn of_word(word: u32) -> Self {
        word != 0
    }
}

/// A small value that one thread sets while others may look at it: they see some value that it has had.
/// It orders nothing.
#[derive(Debug)]
pub struct Relaxed<T> {
    word: AtomicU32,
    value: PhantomData<T>,
}

impl<T: Word + Default> Default for Relaxed<T> {
    fn default() -> Self {
        Self::new(T::default())
    }
}

impl<T: Word> Relaxed<T> {
    /// Holds `value`.
    pub fn new(value: T) -> Self {
        Self { word: AtomicU32::new(value.to_word()), value: PhantomData }
    }

    /// The value.
    #[inline(always)]
    pub fn get(&self) -> T {
        // Relaxed: on no edge; a thread that must see a certain value has it by what publishes the rest.
        T::of_word(self.word.load(Ordering::Relaxed))
    }

    /// Whether `value` is the value.
    #[inline(always)]
    pub fn is(&self, value: T) -> bool {
        // Relaxed: as for `get`.
        self.word.load(Ordering::Relaxed) == value.to_word()
    }

    /// Sets the value.
    #[inline(always)]
    pub fn set(&self, value: T) {
        // Relaxed: on no edge, as for `get`.
        self.word.store(value.to_word(), Ordering::Relaxed);
    }
}
