//! Operations under way, each with a number that goes to the peer and comes back.

/// Values with numbers. A number that comes back from a peer may be any: `get` answers `None` to those that are not in use.
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
