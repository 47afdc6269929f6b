//! The memory that active operations use: an operation must not write what another one uses (MPI 5.0 §3.7.2).

use crate::abi::MPI_BYTE;
use crate::arguments::Buffer;
use crate::coll::call::Elements;
use crate::datatype::Datatype;
use crate::datatypes;
use core::ops::Range;
use std::collections::BTreeMap;

/// What an operation does to a buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// It reads it.
    Read,
    /// It writes it.
    Write,
}

/// Elements in the program's memory that an operation uses.
#[derive(Debug, Clone)]
pub struct Area {
    addr: usize,
    count: usize,
    datatype: Datatype,
    access: Access,
    /// All of it lies in here.
    range: Range<usize>,
}

/// Runs of a buffer with gaps that are compared with another; of one with more nothing is said.
const RUNS: usize = 100_000;
/// Bytes of a buffer that are read to see whether it changes.
const SUMMED: usize = 1 << 20;

impl Area {
    /// The elements of a buffer that has passed the checks of its arguments; `None` if it has none.
    #[must_use]
    pub fn of(buffer: &Buffer<'_>, access: Access) -> Option<Self> {
        let count = usize::try_from(buffer.count).ok()?;
        Self::new(buffer.addr.addr(), count, datatypes::datatype(buffer.datatype).ok()?, access)
    }

    /// So many bytes from `addr` on.
    #[must_use]
    pub fn of_bytes(addr: *const u8, bytes: usize, access: Access) -> Option<Self> {
        Self::new(addr.addr(), bytes, Datatype::predefined(MPI_BYTE)?, access)
    }

    /// Elements of a collective operation.
    #[must_use]
    pub fn of_elements(elements: &Elements, access: Access) -> Option<Self> {
        Self::new(elements.addr().addr(), elements.count(), elements.datatype().clone(), access)
    }

    fn new(addr: usize, count: usize, datatype: Datatype, access: Access) -> Option<Self> {
        if count == 0 || datatype.size() == 0 {
            return None;
        }
        let (low, high) = datatype.data_span(count)?;
        let range = addr.checked_add_signed(low)?..addr.checked_add_signed(high)?;
        Some(Self { addr, count, datatype, access, range })
    }

    /// Bytes of its elements, without gaps.
    pub fn bytes(&self) -> usize {
        self.count.saturating_mul(self.datatype.size())
    }

    /// The place of the first of some areas that holds something else than at the time of its sum,
    /// if both can be known.
    pub fn first_changed(areas: &[Self], sums: &[Option<u64>]) -> Option<usize> {
        let is_changed = |(area, sum): (&Self, &Option<u64>)| {
            sum.is_some_and(|before| area.sum().is_some_and(|now| now != before))
        };
        areas.iter().zip(sums).position(is_changed)
    }

    /// The area behind so many that lie one behind the other, of which this is the first.
    pub fn behind(&self, areas: usize) -> Option<Self> {
        let elements = self.count.checked_mul(areas)?;
        let offset = self.datatype.extent().checked_mul(isize::try_from(elements).ok()?)?;
        Self::new(self.addr.wrapping_add_signed(offset), self.count, self.datatype.clone(), self.access)
    }

    /// The runs of the area in order of addresses; `None` if they are too many.
    fn runs(&self) -> Option<Vec<Range<usize>>> {
        let runs = self.datatype.runs(self.count).take(RUNS + 1);
        let mut runs: Vec<_> = runs
            .map(|(offset, length)| {
                let start = self.addr.wrapping_add_signed(offset);
                start..start.wrapping_add(length)
            })
            .collect();
        runs.sort_unstable_by_key(|run| run.start);
        (runs.len() <= RUNS).then_some(runs)
    }

    /// The addresses of its bytes, in runs; none if these are too many.
    pub fn addresses(&self) -> Vec<Range<u64>> {
        let runs = if self.has_gaps() { self.runs().unwrap_or_default() } else { vec![self.range.clone()] };
        runs.into_iter().map(|run| run.start as u64..run.end as u64).collect()
    }

    /// Whether the operation writes it.
    pub fn is_written(&self) -> bool {
        self.access == Access::Write
    }

    /// Whether the operation writes some byte more than once, for its type has elements in one place.
    pub fn is_written_twice(&self) -> bool {
        if self.access == Access::Read || !self.has_gaps() {
            return false;
        }
        self.runs().is_some_and(|runs| runs.windows(2).any(|pair| pair[0].end > pair[1].start))
    }

    /// Whether its first and its last byte are memory of the process, or nobody knows.
    pub fn is_there(&self) -> bool {
        let mut bytes = [0_u8; 2];
        let to = libc::iovec { iov_base: bytes.as_mut_ptr().cast(), iov_len: bytes.len() };
        let byte_at = |at: usize| libc::iovec { iov_base: at as *mut _, iov_len: 1 };
        let from = [byte_at(self.range.start), byte_at(self.range.end - 1)];
        // SAFETY: writes into `bytes`; what it reads need not be there: the kernel says so.
        let read = unsafe { libc::process_vm_readv(libc::getpid(), &raw const to, 1, from.as_ptr(), 2, 0) };
        match read {
            2 => true,
            -1 if std::io::Error::last_os_error().raw_os_error() != Some(libc::EFAULT) => true,
            // Memory of devices is none that the kernel reads.
            _ => is_mapped(self.range.start) && is_mapped(self.range.end - 1),
        }
    }

    fn has_gaps(&self) -> bool {
        !self.datatype.is_contiguous()
    }

    /// Bytes that both areas use, if one of them writes them.
    fn conflict(&self, other: &Self) -> usize {
        let overlap =
            |a: &Range<usize>, b: &Range<usize>| a.end.min(b.end).saturating_sub(a.start.max(b.start));
        let all = overlap(&self.range, &other.range);
        if all == 0 || (self.access == Access::Read && other.access == Access::Read) {
            return 0;
        }
        if !self.has_gaps() && !other.has_gaps() {
            return all;
        }
        let (Some(own), Some(others)) = (self.runs(), other.runs()) else { return 0 };
        let (mut at, mut sum) = (0, 0);
        for run in own {
            while at < others.len() && others[at].end <= run.start {
                at += 1;
            }
            sum += others[at..]
                .iter()
                .take_while(|other| other.start < run.end)
                .map(|other| overlap(&run, other))
                .sum::<usize>();
        }
        sum
    }

    /// A number for the contents of an area that is read; `None` of one that is long, or has gaps, or cannot be read.
    #[must_use]
    pub fn sum(&self) -> Option<u64> {
        let length = self.range.len();
        if self.access == Access::Write || self.has_gaps() || length > SUMMED {
            return None;
        }
        let mut bytes = vec![0_u8; length];
        let to = libc::iovec { iov_base: bytes.as_mut_ptr().cast(), iov_len: length };
        let from = libc::iovec { iov_base: self.range.start as *mut _, iov_len: length };
        // SAFETY: writes into `bytes`; what it reads need not be there: the kernel says so.
        let read = unsafe { libc::process_vm_readv(libc::getpid(), &raw const to, 1, &raw const from, 1, 0) };
        let mix = |sum: u64, byte: &u8| (sum ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        (usize::try_from(read) == Ok(length)).then(|| bytes.iter().fold(0xcbf2_9ce4_8422_2325, mix))
    }
}

/// Whether the process has a mapping at `addr` that it may read or write.
fn is_mapped(addr: usize) -> bool {
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap_or_default();
    maps.lines().any(|line| {
        let bounds = line.split_once(' ').and_then(|(range, rest)| {
            let (from, to) = range.split_once('-')?;
            let number = |text| usize::from_str_radix(text, 16).ok();
            Some((number(from)?..number(to)?, rest.starts_with("--")))
        });
        bounds.is_some_and(|(range, is_shut)| !is_shut && range.contains(&addr))
    })
}

/// Bytes that two of some areas share, if one of the two is written; the first such two in the order of addresses.
pub fn overlap(areas: &[Area]) -> usize {
    let mut sorted: Vec<&Area> = areas.iter().collect();
    sorted.sort_unstable_by_key(|area| area.range.start);
    let mut pairs = sorted.iter().enumerate().flat_map(|(at, area)| {
        let near = sorted[at + 1..].iter().take_while(|other| other.range.start < area.range.end);
        near.map(move |other| area.conflict(other))
    });
    pairs.find(|bytes| *bytes > 0).unwrap_or(0)
}

/// Areas that active operations use, by their starts.
#[derive(Default)]
pub struct InUse {
    areas: BTreeMap<(usize, u64), (usize, Area)>,
    /// Bytes of the longest that ever was there.
    longest: usize,
    next: u64,
}

impl InUse {
    /// The request of the first area that conflicts with `area`, and bytes that both use.
    pub fn conflict(&self, area: &Area) -> Option<(usize, Access, usize)> {
        let from = area.range.start.saturating_sub(self.longest);
        self.areas.range((from, 0)..(area.range.end, 0)).find_map(|(_, (request, other))| {
            let bytes = area.conflict(other);
            (bytes > 0).then_some((*request, other.access, bytes))
        })
    }

    /// Adds an area of `request`.
    pub fn add(&mut self, request: usize, area: Area) {
        self.longest = self.longest.max(area.range.len());
        self.next += 1;
        self.areas.insert((area.range.start, self.next), (request, area));
    }

    /// Takes the areas of `request` away, whose areas these are.
    pub fn remove(&mut self, request: usize, areas: &[Area]) {
        for area in areas {
            let at = area.range.start;
            let found = self.areas.range((at, 0)..=(at, u64::MAX)).find(|(_, (of, _))| *of == request);
            if let Some(key) = found.map(|(key, _)| *key) {
                self.areas.remove(&key);
            }
        }
    }

    /// Forgets all: the program may know that operations are over.
    pub fn clear(&mut self) {
        self.areas.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::abi::MPI_INT;

    fn ints(addr: usize, count: usize, access: Access) -> Area {
        Area::new(addr, count, Datatype::predefined(MPI_INT).unwrap(), access).unwrap()
    }

    #[test]
    fn what_two_operations_use_is_a_conflict_if_one_writes() {
        let mut used = InUse::default();
        used.add(1, ints(0x1000, 4, Access::Read));
        assert_eq!(used.conflict(&ints(0x1008, 4, Access::Read)), None);
        assert_eq!(used.conflict(&ints(0x1008, 4, Access::Write)), Some((1, Access::Read, 8)));
        assert_eq!(used.conflict(&ints(0x1010, 4, Access::Write)), None);
        assert_eq!(used.conflict(&ints(0x0ff0, 4, Access::Write)), None);
        used.remove(1, &[ints(0x1000, 4, Access::Read)]);
        assert_eq!(used.conflict(&ints(0x1008, 4, Access::Write)), None);
    }

    #[test]
    fn columns_that_lie_between_each_other_are_no_conflict() {
        let int = Datatype::predefined(MPI_INT).unwrap();
        let column = Datatype::vector(4, 1, 4, &int).unwrap();
        let area = |addr| Area::new(addr, 1, column.clone(), Access::Write).unwrap();
        let mut used = InUse::default();
        used.add(7, area(0x1000));
        assert_eq!(used.conflict(&area(0x1004)), None);
        assert_eq!(used.conflict(&area(0x1010)), Some((7, Access::Write, 12)));
        assert_eq!(used.conflict(&ints(0x1010, 8, Access::Read)), Some((7, Access::Write, 8)));
    }

    #[test]
    fn areas_lie_one_behind_the_other() {
        let int = Datatype::predefined(MPI_INT).unwrap();
        let wide = Datatype::resized(&int, 0, 16).unwrap();
        let first = Area::new(0x1000, 2, wide, Access::Read).unwrap();
        let third = first.behind(2).unwrap();
        assert_eq!((third.addr, third.range), (0x1040, 0x1040..0x1054));
    }

    #[test]
    fn a_sum_changes_with_the_contents_and_there_is_none_of_what_is_not_there() {
        let mut data = [1_i32, 2, 3, 4];
        let area = ints(data.as_ptr().addr(), 4, Access::Read);
        let before = area.sum();
        data[2] = 7;
        assert!(before.is_some() && area.sum() != before, "{data:?}");
        assert_eq!(ints(0x10, 4, Access::Read).sum(), None);
    }
}
