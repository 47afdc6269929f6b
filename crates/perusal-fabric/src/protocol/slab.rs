//! Operations under way, each with a number.

/// Values with numbers; a number is used again.
#[derive(Debug)]
pub struct Slab<T> {
    entries: Vec<Option<T>>,
    free: Vec<u32>,
}

impl<T> Default for Slab<T> {
    fn default() -> Self {
        Self { entries: Vec::new(), free: Vec::new() }
    }
}

impl<T> Slab<T> {
    #[inline(always)]
    pub fn insert(&mut self, value: T) -> u32 {
        if let Some(at) = self.free.pop() {
            // A free entry has no value that would have to be dropped.
            std::mem::forget(self.entries[at as usize].replace(value));
            return at;
        }
        self.entries.push(Some(value));
        (self.entries.len() - 1) as u32
    }

    #[inline(always)]
    pub fn get(&mut self, at: u32) -> Option<&mut T> {
        self.entries.get_mut(at as usize)?.as_mut()
    }

    /// The value with this number, to look at.
    pub fn at(&self, at: u32) -> Option<&T> {
        self.entries.get(at as usize)?.as_ref()
    }

    #[inline(always)]
    pub fn remove(&mut self, at: u32) -> Option<T> {
        let value = self.entries.get_mut(at as usize)?.take();
        if value.is_some() {
            self.free.push(at);
        }
        value
    }

    pub fn iter(&self) -> impl Iterator<Item = (u32, &T)> {
        self.entries.iter().enumerate().filter_map(|(at, entry)| Some((at as u32, entry.as_ref()?)))
    }
}

/// Values whose numbers go to a peer and come back. A number that comes back may be any, and may come when its value is
/// gone: it is no other value's then. Numbers fit into 62 bits, and none is 0.
#[derive(Debug)]
pub struct Numbered<T> {
    /// Each with its serial: the upper half of its number.
    values: Slab<(u32, T)>,
    serial: u32,
}

/// Serials are below this. So many operations later one comes again;
/// records of the first are not on their way any more.
const SERIALS: u32 = 1 << 30;

impl<T> Default for Numbered<T> {
    fn default() -> Self {
        Self { values: Slab::default(), serial: 0 }
    }
}

impl<T> Numbered<T> {
    pub fn insert(&mut self, value: T) -> u64 {
        self.serial = self.serial % (SERIALS - 1) + 1;
        let at = self.values.insert((self.serial, value));
        u64::from(self.serial) << 32 | u64::from(at)
    }

    pub fn len(&self) -> usize {
        self.values.entries.len() - self.values.free.len()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub fn get(&mut self, number: u64) -> Option<&mut T> {
        let (serial, value) = self.values.get(number as u32)?;
        (u64::from(*serial) == number >> 32).then_some(value)
    }

    pub fn remove(&mut self, number: u64) -> Option<T> {
        self.get(number)?;
        self.values.remove(number as u32).map(|one| one.1)
    }

    pub fn iter(&self) -> impl Iterator<Item = (u64, &T)> {
        self.values.iter().map(|(at, (serial, value))| (u64::from(*serial) << 32 | u64::from(at), value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_not_another_values_when_its_own_is_gone() {
        let mut values = Numbered::default();
        let first = values.insert('a');
        assert_eq!(values.remove(first), Some('a'));
        let second = values.insert('b');
        assert_eq!(first as u32, second as u32, "the place serves again");
        assert!(values.get(first).is_none() && values.remove(first).is_none() && values.get(0).is_none());
        assert_eq!(values.iter().collect::<Vec<_>>(), [(second, &'b')]);
        values.serial = SERIALS - 1;
        let wrapped = values.insert('c');
        assert_eq!((wrapped >> 32, values.get(wrapped)), (1, Some(&mut 'c')));
    }
}
