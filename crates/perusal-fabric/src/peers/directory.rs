//! Peers by the numbers that an address vector gives them.

/// Numbers of one page.
const PAGE: usize = 512;
const NONE: u32 = u32::MAX;

/// Which peer a number means. Numbers that are not used any more cost next to nothing, however many there were.
#[derive(Debug, Default)]
pub struct Directory {
    pages: Vec<Option<Box<Page>>>,
}

#[derive(Debug)]
struct Page {
    peers: [u32; PAGE],
    used: usize,
}

fn place(fi_addr: u64) -> (usize, usize) {
    (usize::try_from(fi_addr / PAGE as u64).unwrap_or(usize::MAX), (fi_addr % PAGE as u64) as usize)
}

impl Directory {
    /// The peer behind `fi_addr`.
    #[inline(always)]
    pub fn get(&self, fi_addr: u64) -> Option<u32> {
        let (page, at) = place(fi_addr);
        let peer = self.pages.get(page)?.as_ref()?.peers[at];
        (peer != NONE).then_some(peer)
    }

    /// From now on `fi_addr` means this peer.
    pub fn insert(&mut self, fi_addr: u64, peer: u32) {
        let (page, at) = place(fi_addr);
        if self.pages.len() <= page {
            self.pages.resize_with(page + 1, || None);
        }
        let page = self.pages[page].get_or_insert_with(|| Box::new(Page { peers: [NONE; PAGE], used: 0 }));
        page.used += usize::from(page.peers[at] == NONE);
        page.peers[at] = peer;
    }

    /// From now on `fi_addr` means nobody. Returns whom it has meant.
    pub fn remove(&mut self, fi_addr: u64) -> Option<u32> {
        let peer = self.get(fi_addr)?;
        let (number, at) = place(fi_addr);
        let page = self.pages[number].as_mut()?;
        page.peers[at] = NONE;
        page.used -= 1;
        if page.used == 0 {
            self.pages[number] = None;
        }
        Some(peer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_means_its_peer_until_it_is_removed_and_pages_go_with_their_numbers() {
        let mut directory = Directory::default();
        let numbers = [0, 1, PAGE as u64 - 1, PAGE as u64, 10 * PAGE as u64 + 3];
        for (peer, &number) in (0..).zip(&numbers) {
            assert_eq!(directory.get(number), None);
            directory.insert(number, peer);
        }
        directory.insert(1, 77);
        assert_eq!(
            numbers.map(|number| directory.get(number)),
            [Some(0), Some(77), Some(2), Some(3), Some(4)]
        );
        assert_eq!((directory.get(2), directory.get(u64::MAX), directory.remove(2)), (None, None, None));
        assert_eq!(
            numbers.map(|number| directory.remove(number)),
            [Some(0), Some(77), Some(2), Some(3), Some(4)]
        );
        assert_eq!(numbers.map(|number| directory.get(number)), [None; 5]);
        assert!(directory.pages.iter().all(Option::is_none));
    }
}
