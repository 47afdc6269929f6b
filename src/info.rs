//! Hints and facts as pairs of strings, in the order in which they were set: what an `MPI_Info` holds (MPI 5.0 §10).

use crate::abi::{MPI_MAX_INFO_KEY, MPI_MAX_INFO_VAL};
use crate::error::{Error, Result};

/// An ordered map from key to value. Both are C strings without their zero: any bytes but 0.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Info {
    pairs: Vec<(Vec<u8>, Vec<u8>)>,
}

impl Info {
    /// Without any pair.
    #[must_use]
    pub const fn new() -> Self {
        Self { pairs: Vec::new() }
    }

    /// Adds a pair, or replaces the value of a key that is there, which keeps its place.
    ///
    /// # Errors
    /// `InfoKey` if the key is empty or does not fit into MPI_MAX_INFO_KEY with its zero,
    /// `InfoValue` alike (which may be empty).
    pub fn set(&mut self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Result<()> {
        let key = checked_key(key.as_ref())?;
        let value = value.as_ref();
        if value.len() >= MPI_MAX_INFO_VAL as usize {
            return Err(Error::InfoValue("longer than MPI_MAX_INFO_VAL"));
        }
        match self.pairs.iter_mut().find(|(k, _)| k == key) {
            Some((_, old)) => *old = value.to_vec(),
            None => self.pairs.push((key.to_vec(), value.to_vec())),
        }
        Ok(())
    }

    /// Sets all pairs of `other`.
    pub fn update(&mut self, other: &Self) {
        for (key, value) in other.iter() {
            // It has fitted there.
            let _ = self.set(key, value);
        }
    }

    /// The value of `key`.
    ///
    /// # Errors
    /// `InfoKey` as in [`Info::set`].
    pub fn get(&self, key: impl AsRef<[u8]>) -> Result<Option<&[u8]>> {
        let key = checked_key(key.as_ref())?;
        Ok(self.pairs.iter().find(|(k, _)| k == key).map(|(_, value)| value.as_slice()))
    }

    /// The value of `key` as text; `None` if it is not there or no UTF-8.
    #[must_use]
    pub fn text(&self, key: &str) -> Option<&str> {
        self.get(key).ok().flatten().and_then(|value| core::str::from_utf8(value).ok())
    }

    /// Removes a pair.
    ///
    /// # Errors
    /// `InfoNoKey` if it is not there; `InfoKey` as in [`Info::set`].
    pub fn delete(&mut self, key: impl AsRef<[u8]>) -> Result<()> {
        let key = checked_key(key.as_ref())?;
        let at = self.pairs.iter().position(|(k, _)| k == key).ok_or(Error::InfoNoKey)?;
        self.pairs.remove(at);
        Ok(())
    }

    /// How many pairs there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.pairs.len()
    }

    /// Is there none?
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.pairs.is_empty()
    }

    /// The key at place `n`, from 0.
    #[must_use]
    pub fn key(&self, n: usize) -> Option<&[u8]> {
        self.pairs.get(n).map(|(key, _)| key.as_slice())
    }

    /// All pairs, in order.
    pub fn iter(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        self.pairs.iter().map(|(key, value)| (key.as_slice(), value.as_slice()))
    }
}

fn checked_key(key: &[u8]) -> Result<&[u8]> {
    if key.is_empty() {
        return Err(Error::InfoKey("empty"));
    }
    if key.len() >= MPI_MAX_INFO_KEY as usize {
        return Err(Error::InfoKey("longer than MPI_MAX_INFO_KEY"));
    }
    Ok(key)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_keep_the_order_in_which_they_were_set() {
        let mut info = Info::new();
        for key in ["one", "two", "three"] {
            info.set(key, "x").unwrap();
        }
        info.set("two", "y").unwrap();
        assert_eq!(info.key(1), Some(b"two".as_slice()));
        assert_eq!(info.text("two"), Some("y"));
        info.delete("one").unwrap();
        assert_eq!((info.len(), info.key(0), info.key(2)), (2, Some(b"two".as_slice()), None));
    }

    #[test]
    fn keys_and_values_that_do_not_fit_are_refused_by_class() {
        let mut info = Info::new();
        let longest_key = "k".repeat(MPI_MAX_INFO_KEY as usize - 1);
        let longest_value = "v".repeat(MPI_MAX_INFO_VAL as usize - 1);
        info.set(&longest_key, &longest_value).unwrap();
        assert_eq!(info.text(&longest_key), Some(longest_value.as_str()));
        assert!(matches!(info.set(longest_key + "k", ""), Err(Error::InfoKey(_))));
        assert!(matches!(info.set("", ""), Err(Error::InfoKey(_))));
        assert!(matches!(info.get(""), Err(Error::InfoKey(_))));
        assert!(matches!(info.set("k", longest_value + "v"), Err(Error::InfoValue(_))));
        assert_eq!(info.delete("k"), Err(Error::InfoNoKey));
        info.set("empty", "").unwrap();
        assert_eq!(info.text("empty"), Some(""));
    }
}
