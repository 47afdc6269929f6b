//! Numbers and strings as bytes: little-endian words of 32 bits, and strings behind their length.

use crate::error::{Error, Result};

/// Appends words and strings.
#[derive(Debug, Default)]
pub(super) struct Writer(pub Vec<u8>);

impl Writer {
    pub fn word(&mut self, word: u32) -> &mut Self {
        self.0.extend_from_slice(&word.to_le_bytes());
        self
    }

    pub fn words(&mut self, words: &[u32]) -> &mut Self {
        self.word(words.len() as u32);
        words.iter().for_each(|word| _ = self.word(*word));
        self
    }

    pub fn string(&mut self, string: &[u8]) -> &mut Self {
        self.word(string.len() as u32);
        self.0.extend_from_slice(string);
        self
    }

    pub fn strings(&mut self, strings: &[Vec<u8>]) -> &mut Self {
        self.word(strings.len() as u32);
        strings.iter().for_each(|string| _ = self.string(string));
        self
    }
}

/// Takes words and strings off, and believes no length that it cannot check.
#[derive(Debug)]
pub(super) struct Reader<'a>(pub &'a [u8]);

impl<'a> Reader<'a> {
    pub fn word(&mut self) -> Result<u32> {
        let (word, rest) = self.0.split_first_chunk().ok_or_else(cut_off)?;
        self.0 = rest;
        Ok(u32::from_le_bytes(*word))
    }

    pub fn words(&mut self) -> Result<Vec<u32>> {
        let count = self.count(4)?;
        (0..count).map(|_| self.word()).collect()
    }

    pub fn string(&mut self) -> Result<&'a [u8]> {
        let len = self.count(1)?;
        let (string, rest) = self.0.split_at(len);
        self.0 = rest;
        Ok(string)
    }

    pub fn strings(&mut self) -> Result<Vec<Vec<u8>>> {
        let count = self.count(4)?;
        (0..count).map(|_| Ok(self.string()?.to_vec())).collect()
    }

    /// Takes off how many things of `least` bytes or more follow.
    pub fn count(&mut self, least: usize) -> Result<usize> {
        let count = self.word()? as usize;
        count.checked_mul(least).filter(|bytes| *bytes <= self.0.len()).map(|_| count).ok_or_else(cut_off)
    }

    /// Nothing is left.
    pub fn end(&self) -> Result<()> {
        if self.0.is_empty() { Ok(()) } else { Err(cut_off()) }
    }
}

fn cut_off() -> Error {
    Error::Other("a message between a rank and the launcher has the wrong length".into())
}
