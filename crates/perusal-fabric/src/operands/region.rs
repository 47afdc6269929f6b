//! Memory that a domain has registered for accesses of peers.

use crate::api::{FI_EACCES, FI_EKEYREJECTED, FI_ENOKEY};
use crate::protocol::queue::Counter;
use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;

/// A piece of a peer's memory, as the origin of an access names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Remote {
    pub addr: u64,
    pub len: usize,
    pub key: u64,
}

/// Memory that is registered under a key.
#[derive(Debug)]
pub struct Region {
    pub key: u64,
    /// FI_REMOTE_READ, FI_REMOTE_WRITE: what peers may do.
    pub access: u64,
    /// What addresses of accesses count from: 0, or where the memory begins.
    pub base: u64,
    /// Address and length of each piece; accesses see them one behind the other.
    pub pieces: Box<[(u64, usize)]>,
    /// What counts accesses of this region, and which of them.
    pub counters: RefCell<Vec<(u64, Rc<Counter>)>>,
}

impl Region {
    /// Adds the places of `len` bytes from `addr` on to `to`.
    ///
    /// # Errors
    ///
    /// FI_EACCES if they do not lie within the region, or are not mapped.
    pub fn find(&self, addr: u64, len: usize, to: &mut Vec<(u64, usize)>) -> Result<(), i32> {
        let mut offset = usize::try_from(addr.checked_sub(self.base).ok_or(FI_EACCES)?).or(Err(FI_EACCES))?;
        let mut left = len;
        for &(at, room) in &self.pieces {
            if left == 0 {
                break;
            }
            if offset >= room {
                offset -= room;
                continue;
            }
            let here = left.min(room - offset);
            let start = at.checked_add(offset as u64).ok_or(FI_EACCES)?;
            start.checked_add(here as u64).ok_or(FI_EACCES)?;
            // A registration of the whole address space says nothing of what is there.
            if room > isize::MAX as usize && !is_mapped(start, here) {
                return Err(FI_EACCES);
            }
            to.push((start, here));
            left -= here;
            offset = 0;
        }
        if left == 0 { Ok(()) } else { Err(FI_EACCES) }
    }

    /// Whether each of these pieces lies within one of its own.
    pub fn has(&self, pieces: &[(u64, usize)]) -> bool {
        let end = |&(at, len): &(u64, usize)| at.saturating_add(len as u64);
        let within =
            |one: &(u64, usize)| self.pieces.iter().any(|own| own.0 <= one.0 && end(one) <= end(own));
        pieces.iter().all(within)
    }

    /// Counts an access of `len` bytes that is complete.
    pub fn count(&self, which: u64, len: usize) {
        let counters = self.counters.borrow();
        counters.iter().filter(|one| one.0 & which != 0).for_each(|one| one.1.count(false, len));
    }
}

/// Whether there is memory at all these places. A peer says how many.
fn is_mapped(start: u64, len: usize) -> bool {
    // SAFETY: a plain call that asks for a number.
    let page = u64::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).unwrap_or(4096);
    let from = start & !(page - 1);
    let Some(end) = start.checked_add(len as u64) else { return false };
    let mut resident = [0_u8; 1024];
    let step = page * resident.len() as u64;
    let mut pieces = (0..(end - from).div_ceil(step)).map(|piece| from + piece * step);
    pieces.all(|at| {
        let bytes = step.min(end - at) as usize;
        // SAFETY: the kernel writes a byte for each page, of which there are 1024 at most, and answers ENOMEM for
        // addresses that are not mapped.
        unsafe { libc::mincore(at as usize as *mut libc::c_void, bytes, resident.as_mut_ptr()) == 0 }
    })
}

/// The regions of an access, one for each piece, and the places of all in this process.
pub type Found = (Vec<Rc<Region>>, Vec<(u64, usize)>);

/// The regions of a domain.
#[derive(Debug, Default)]
pub struct Regions {
    /// Addresses of accesses are those of the memory (FI_MR_VIRT_ADDR), not offsets into the region.
    virtual_addresses: bool,
    /// Keys are chosen here (FI_MR_PROV_KEY).
    own_keys: bool,
    all: RefCell<HashMap<u64, Rc<Region>>>,
    next_key: Cell<u64>,
    /// Whether a region has had a counter.
    pub counted: Cell<bool>,
    /// How often a region was taken away: what a peer knows of regions holds until then.
    pub generation: Cell<u32>,
}

impl Regions {
    /// No regions, of a domain with these modes of registration.
    pub fn new(virtual_addresses: bool, own_keys: bool) -> Self {
        Self { virtual_addresses, own_keys, ..Self::default() }
    }

    /// Registers memory, under the key that is asked for unless keys are chosen here.
    ///
    /// # Errors
    ///
    /// FI_ENOKEY if the key is in use.
    pub fn add(&self, key: u64, access: u64, pieces: Box<[(u64, usize)]>) -> Result<Rc<Region>, i32> {
        let mut all = self.all.borrow_mut();
        let key = if self.own_keys { self.next_key.replace(self.next_key.get() + 1) } else { key };
        if all.contains_key(&key) {
            return Err(FI_ENOKEY);
        }
        let base = if self.virtual_addresses { pieces.first().map_or(0, |piece| piece.0) } else { 0 };
        let region = Rc::new(Region { key, access, base, pieces, counters: RefCell::default() });
        all.insert(key, Rc::clone(&region));
        Ok(region)
    }

    /// Takes a region away.
    pub fn remove(&self, key: u64) {
        self.all.borrow_mut().remove(&key);
        self.generation.set(self.generation.get().wrapping_add(1));
    }

    /// Calls `f` with each region.
    pub fn each(&self, f: impl FnMut(&Rc<Region>)) {
        self.all.borrow().values().for_each(f);
    }

    /// The region with this key, if there is one.
    pub fn get(&self, key: u64) -> Option<Rc<Region>> {
        self.all.borrow().get(&key).cloned()
    }

    /// The regions of an access, one for each piece, and the places of all.
    ///
    /// # Errors
    ///
    /// FI_EKEYREJECTED for a key that is not in use, FI_EACCES for what the region does not allow or does not have.
    pub fn find(&self, remote: &[Remote], access: u64) -> Result<Found, i32> {
        let mut places = Vec::with_capacity(remote.len());
        let mut regions = Vec::with_capacity(remote.len());
        for piece in remote {
            let region = self.get(piece.key).ok_or(FI_EKEYREJECTED)?;
            if region.access & access != access {
                return Err(FI_EACCES);
            }
            region.find(piece.addr, piece.len, &mut places)?;
            regions.push(region);
        }
        Ok((regions, places))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::{FI_REMOTE_READ, FI_REMOTE_WRITE};

    #[test]
    fn accesses_lie_within_what_is_registered_for_them() {
        let regions = Regions::default();
        let pieces = Box::new([(1000, 10), (2000, 20)]);
        regions.add(7, FI_REMOTE_READ, pieces).expect("a key that is free");
        assert_eq!(regions.add(7, FI_REMOTE_READ, Box::new([])).err(), Some(FI_ENOKEY));
        let find =
            |addr, len, key, access| regions.find(&[Remote { addr, len, key }], access).map(|found| found.1);
        assert_eq!(find(0, 30, 7, FI_REMOTE_READ), Ok(vec![(1000, 10), (2000, 20)]));
        assert_eq!(find(12, 3, 7, FI_REMOTE_READ), Ok(vec![(2002, 3)]));
        for (addr, len) in [(0, 31), (30, 1), (u64::MAX, 2), (1, usize::MAX)] {
            assert_eq!(find(addr, len, 7, FI_REMOTE_READ), Err(FI_EACCES), "{addr} {len}");
        }
        assert_eq!(find(0, 1, 7, FI_REMOTE_WRITE), Err(FI_EACCES));
        assert_eq!(find(0, 1, 8, FI_REMOTE_READ), Err(FI_EKEYREJECTED));
        regions.remove(7);
        assert_eq!((find(0, 1, 7, FI_REMOTE_READ), regions.generation.get()), (Err(FI_EKEYREJECTED), 1));
    }

    #[test]
    fn of_the_whole_address_space_only_what_is_mapped_is_accessible() {
        let regions = Regions::default();
        regions.add(1, FI_REMOTE_READ, Box::new([(0, usize::MAX)])).expect("a key that is free");
        let here = [0_u8; 8];
        let find = |addr| regions.find(&[Remote { addr, len: 8, key: 1 }], FI_REMOTE_READ).is_ok();
        assert!(find(here.as_ptr() as u64) && !find(8) && !find(u64::MAX - 7));
    }

    #[test]
    fn memory_is_mapped_as_far_as_it_goes() {
        let memory = vec![1_u8; 10 << 20];
        let start = memory.as_ptr().addr() as u64;
        assert!(is_mapped(start, memory.len()) && is_mapped(start + 5, 1) && is_mapped(start, 0));
        assert!(!is_mapped(start, 1 << 60) && !is_mapped(u64::MAX - 5, 10) && !is_mapped(0, 1));
    }
}
