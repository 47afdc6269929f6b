//! Accumulate, get-accumulate, fetch-and-op, compare-and-swap: atomic for each element (MPI 5.0 §12.7.1).
//!
//! One element in mapped memory is changed by an instruction of the processor's, as long as no operation of the job has
//! needed a lock. From then on all of them take the lock of the block that an element begins in ([`BlockLocks`]), so
//! that any two of them on one element exclude each other and many elements are reduced by one loop. In memory that is
//! private to its process the block is read, reduced and written back.

use super::atomics::{Change, change, has_atomics, load_value, store_value};
use super::block_locks::{BLOCK, BlockLocks};
use super::memory::{Reach, Spot};
use super::remote::Remote;
use super::transfer::TargetElements;
use crate::datatype::op::Op;
use crate::datatype::{Basic, Datatype};
use crate::error::{Error, Result};

/// What the elements of an accumulate are, and what is done to them.
#[derive(Debug, Clone, Copy)]
pub(super) struct Update<'a> {
    op: &'a Op,
    element: Element<'a>,
}

/// An element: a value of a basic type, or a value with its index.
#[derive(Debug, Clone, Copy)]
enum Element<'a> {
    Basic(Basic),
    Pair(&'a Datatype),
}

impl Element<'_> {
    /// Bytes of it in a packed stream.
    fn size(self) -> usize {
        match self {
            Self::Basic(basic) => basic.size(),
            Self::Pair(pair) => pair.size(),
        }
    }

    fn same(self, other: Self) -> bool {
        match (self, other) {
            (Self::Basic(one), Self::Basic(other)) => one == other,
            (Self::Pair(one), Self::Pair(other)) => one.named() == other.named(),
            _ => false,
        }
    }
}

fn element(datatype: &Datatype) -> Result<Element<'_>> {
    match (datatype.pair_base(), datatype.uniform()) {
        (Some(pair), _) => Ok(Element::Pair(pair)),
        (None, Some(basic)) => Ok(Element::Basic(basic)),
        _ if datatype.size() == 0 => Basic::of(crate::abi::MPI_BYTE).map(Element::Basic).ok_or(MIXED),
        _ => Err(MIXED),
    }
}

const MIXED: Error = Error::Type(
    "the elements of an accumulate are of one predefined type, or made of one (MPI 5.0, section 12.3.4)",
);

/// Refuses an operation that accumulates do not take.
///
/// # Errors
/// [`Error::Op`] for one of the user's.
pub fn check_operation(op: &Op) -> Result<()> {
    if op.is_predefined() {
        return Ok(());
    }
    Err(Error::Op("an accumulate takes predefined operations only (MPI 5.0, section 12.3.4)"))
}

impl<'a> Update<'a> {
    /// The update of elements of the target's type by elements of the origin's, which must have the same basic type.
    ///
    /// # Errors
    /// [`Error::Type`] for elements of several types; [`Error::Op`] for an operation of the user's or one that does not
    /// take the type.
    pub fn new(op: &'a Op, origin: Option<&Datatype>, target: &'a Datatype) -> Result<Self> {
        check_operation(op)?;
        let element = element(target)?;
        if let Some(origin) = origin.filter(|origin| origin.size() > 0 && target.size() > 0)
            && !self::element(origin)?.same(element)
        {
            return Err(Error::Type("origin and target of an accumulate have different basic types"));
        }
        let takes = match element {
            Element::Basic(basic) => op.takes(basic),
            Element::Pair(pair) => op.check(pair).is_ok(),
        };
        if takes || op.is_for_rma_only() {
            Ok(Self { op, element })
        } else {
            Err(Error::Op("the operation is not defined for this datatype"))
        }
    }

    /// Updates a target's elements by packed ones (none for MPI_NO_OP), and puts what they were into `old`, packed:
    /// also of elements for which there is no new one.
    ///
    /// # Errors
    /// Those of the kernel for private memory; [`Error::RankFailed`] if the job ends while another has a lock.
    pub fn perform(
        self,
        remote: Remote<'_>,
        target: TargetElements<'_>,
        new: Option<&[u8]>,
        mut old: Option<&mut [u8]>,
    ) -> Result<()> {
        let locks = target.locks;
        let sent = new.map_or(0, <[u8]>::len);
        let bytes = old.as_ref().map_or(sent, |old| old.len());
        if target.datatype.is_contiguous() && matches!(self.element, Element::Basic(_)) {
            let spot = moved(target.spot, target.datatype.true_lb());
            let same_for_all = sent == bytes || new.is_none();
            if same_for_all && self.by_instruction(remote, locks, spot, bytes, new, old.as_deref_mut()) {
                return Ok(());
            }
            return self.stretch(remote, locks, spot, bytes, new, old);
        }
        self.scattered(remote, target, bytes, new, old)
    }

    /// Updates the first `bytes` bytes of elements that lie anywhere: those that begin in one block under its lock
    /// together, for a lock costs more than an element, and a system call for private memory more than a lock.
    fn scattered(
        self,
        remote: Remote<'_>,
        target: TargetElements<'_>,
        bytes: usize,
        new: Option<&[u8]>,
        mut old: Option<&mut [u8]>,
    ) -> Result<()> {
        let (size, sent) = (self.element.size(), new.map_or(0, <[u8]>::len));
        let most = STAGE / size * size;
        let (mut ascends, mut next, mut done, mut staged) = (None, None, 0, Staged([0; STAGE]));
        while done < bytes {
            // What lies behind the last new element is fetched alone.
            let stop = if done < sent { sent } else { bytes };
            let first = next.take().unwrap_or_else(|| self.piece(target, done, stop));
            let end = if first.len >= LONG_PIECE {
                done + first.len
            } else {
                let ascends = *ascends.get_or_insert_with(|| target.ascends());
                let end;
                (end, next) = self.end_in_block(target, ascends, (done, first), stop.min(done + most));
                end
            };
            let new = new.filter(|_| done < sent).map(|new| &new[done..end]);
            let old = old.as_deref_mut().map(|old| &mut old[done..end]);
            let _held = target.locks.hold(remote.engine, first.block * BLOCK)?;
            if end == done + first.len {
                self.locked(remote, moved(target.spot, first.at), first.len, new, old)?;
            } else {
                self.together(remote, target, (done, &mut staged.0[..end - done]), new, old)?;
            }
            done = end;
        }
        Ok(())
    }

    /// The elements of a target's from byte `from` of the packed ones on, not beyond `stop`, that begin in one block
    /// and lie one behind the other; of pairs only one, which may have a gap within, that no run has.
    fn piece(self, target: TargetElements<'_>, from: usize, stop: usize) -> Piece {
        let (at, len) = target.datatype.locate(from, stop);
        let key = target.spot.key.wrapping_add_signed(at as i64);
        let size = self.element.size();
        let len = match self.element {
            Element::Basic(_) => {
                len.min(((BLOCK - key % BLOCK) as usize).next_multiple_of(size)).min(stop - from)
            }
            Element::Pair(_) => size,
        };
        Piece { block: key / BLOCK, at, len }
    }

    /// The end, not beyond `stop`, of the elements from a piece at byte `from` of the packed ones on that begin in the
    /// same block; and the piece behind it, if that has been looked at.
    fn end_in_block(
        self,
        target: TargetElements<'_>,
        ascends: bool,
        (from, first): (usize, Piece),
        stop: usize,
    ) -> (usize, Option<Piece>) {
        let size = self.element.size();
        let mut end = (from + first.len).min(stop);
        let mut seen = 0;
        while end < stop && (!ascends || seen == 0) {
            let piece = self.piece(target, end, stop);
            if piece.block != first.block {
                return (end, Some(piece));
            }
            end += piece.len;
            seen += 1;
        }
        // Of elements that ascend, the first one that does not begin there is sought by halves.
        let mut most = (stop - end) / size;
        while most > 0 {
            let half = most.div_ceil(2);
            if self.piece(target, end + (half - 1) * size, stop).block == first.block {
                end += half * size;
                most -= half;
            } else {
                most = half - 1;
            }
        }
        (end, None)
    }

    /// Updates elements from byte `from` of the packed ones on, as many as `staged` has room for, whose lock is held:
    /// all are read, reduced and written back.
    fn together(
        self,
        remote: Remote<'_>,
        target: TargetElements<'_>,
        (from, staged): (usize, &mut [u8]),
        new: Option<&[u8]>,
        old: Option<&mut [u8]>,
    ) -> Result<()> {
        let TargetElements { spot, count, datatype, .. } = target;
        let within = from..from + staged.len();
        match spot.reach {
            Reach::Mapped { addr } => {
                // SAFETY: the elements lie in a window that is mapped here, and are changed under their lock.
                unsafe { datatype.pack(count, addr, from, staged) };
            }
            Reach::Private { world, addr } => {
                remote.read(world, addr, datatype.runs_within(within.clone()), staged)?;
            }
        }
        if let Some(old) = old {
            old.copy_from_slice(staged);
        }
        let Some(new) = new.filter(|_| !self.op.is(crate::abi::MPI_NO_OP)) else { return Ok(()) };
        self.reduce(new, staged)?;
        match spot.reach {
            Reach::Mapped { addr } => {
                // SAFETY: the elements lie in a window that is mapped here, and are changed under their lock.
                unsafe { datatype.unpack(count, addr, from, staged) };
                Ok(())
            }
            Reach::Private { world, addr } => remote.write(world, addr, datatype.runs_within(within), staged),
        }
    }

    /// Updates the first `bytes` bytes of elements that lie one behind the other from `spot` on. What lies behind the
    /// last new element is fetched alone.
    fn stretch(
        self,
        remote: Remote<'_>,
        locks: &BlockLocks,
        spot: Spot,
        bytes: usize,
        new: Option<&[u8]>,
        mut old: Option<&mut [u8]>,
    ) -> Result<()> {
        let end = new.map_or(0, |new| new.len().min(bytes));
        if end > 0 {
            let new = new.map(|new| &new[..end]);
            let old = old.as_deref_mut().map(|old| &mut old[..end]);
            self.run(remote, locks, spot, end, new, old)?;
        }
        match old {
            Some(old) if end < bytes => {
                let spot = moved(spot, end as isize);
                self.run(remote, locks, spot, bytes - end, None, Some(&mut old[end..bytes]))
            }
            _ => Ok(()),
        }
    }

    /// Updates the element at `spot`, if it is one of `len` bytes that an instruction can change now.
    fn by_instruction(
        self,
        remote: Remote<'_>,
        locks: &BlockLocks,
        spot: Spot,
        len: usize,
        new: Option<&[u8]>,
        old: Option<&mut [u8]>,
    ) -> bool {
        let (Element::Basic(basic), Reach::Mapped { addr }) = (self.element, spot.reach) else {
            return false;
        };
        if len != basic.size() || !has_atomics(addr, len) {
            return false;
        }
        let Some(_entered) = locks.enter(remote.engine) else { return false };
        // SAFETY: an element's bytes, of a size that was looked at.
        let new = new.map_or(0, |new| unsafe { load_value(new.as_ptr(), len) });
        // SAFETY: the element lies in a window that is mapped here; `has_atomics` has said yes.
        let was = unsafe { change(addr, len, Change::of(self.op, basic, new)) };
        if let Some(old) = old {
            // SAFETY: room for an element, of a size that was looked at.
            unsafe { store_value(old.as_mut_ptr(), len, was) };
        }
        true
    }

    /// Updates the `len` bytes of packed elements at `spot`, which lie one behind the other.
    fn run(
        self,
        remote: Remote<'_>,
        locks: &BlockLocks,
        spot: Spot,
        len: usize,
        new: Option<&[u8]>,
        mut old: Option<&mut [u8]>,
    ) -> Result<()> {
        let size = self.element.size();
        let mut at = 0;
        while at < len {
            // The elements that begin in the same block.
            let key = spot.key.wrapping_add(at as u64);
            let left = (BLOCK - key % BLOCK) as usize;
            let part = left.next_multiple_of(size).min(len - at);
            let range = at..at + part;
            let new = new.map(|new| &new[range.clone()]);
            let old = old.as_deref_mut().map(|old| &mut old[range]);
            let _held = locks.hold(remote.engine, key)?;
            self.locked(remote, moved(spot, at as isize), part, new, old)?;
            at += part;
        }
        Ok(())
    }

    /// Updates elements whose lock is held.
    fn locked(
        self,
        remote: Remote<'_>,
        spot: Spot,
        len: usize,
        new: Option<&[u8]>,
        mut old: Option<&mut [u8]>,
    ) -> Result<()> {
        let new = new.filter(|_| !self.op.is(crate::abi::MPI_NO_OP));
        if let (Element::Basic(basic), Reach::Mapped { addr }) = (self.element, spot.reach) {
            if let Some(old) = old {
                // SAFETY: `len` bytes of elements in a window that is mapped here, which are changed under their lock.
                unsafe { core::ptr::copy_nonoverlapping(addr, old.as_mut_ptr(), len) };
            }
            return match new {
                None => Ok(()),
                Some(new) if self.op.is(crate::abi::MPI_REPLACE) => {
                    // SAFETY: `len` bytes of elements on both sides; those in the window are changed under their lock.
                    unsafe { core::ptr::copy_nonoverlapping(new.as_ptr(), addr, len) };
                    Ok(())
                }
                // SAFETY: `len` bytes of whole elements on both sides, which kernels take at any address; those in the
                // window are changed under their lock.
                Some(new) => unsafe { self.op.apply_basic(basic, new.as_ptr(), addr, len / basic.size()) },
            };
        }
        let mut staged = Staged([0; STAGE]);
        let size = self.element.size();
        let step = STAGE / size * size;
        for at in (0..len).step_by(step) {
            let part = step.min(len - at);
            let (spot, staged) = (moved(spot, at as isize), &mut staged.0[..part]);
            self.read(remote, spot, staged)?;
            if let Some(old) = &mut old {
                old[at..at + part].copy_from_slice(staged);
            }
            if let Some(new) = new {
                self.reduce(&new[at..at + part], staged)?;
                self.write(remote, spot, staged)?;
            }
        }
        Ok(())
    }

    /// `right = left op right`, on packed elements.
    fn reduce(self, left: &[u8], right: &mut [u8]) -> Result<()> {
        if self.op.is(crate::abi::MPI_REPLACE) {
            right.copy_from_slice(left);
            return Ok(());
        }
        match self.element {
            Element::Basic(basic) => {
                // SAFETY: both are equally many whole elements, which kernels take at any address.
                unsafe {
                    self.op.apply_basic(basic, left.as_ptr(), right.as_mut_ptr(), right.len() / basic.size())
                }
            }
            // SAFETY: both are whole packed pairs, which kernels take at any address.
            Element::Pair(pair) => unsafe { self.op.apply_packed(left, right, pair, 0) },
        }
    }

    /// Copies elements at a spot to packed ones.
    fn read(self, remote: Remote<'_>, spot: Spot, to: &mut [u8]) -> Result<()> {
        match (spot.reach, self.element) {
            (Reach::Mapped { addr }, Element::Basic(_)) => {
                // SAFETY: the elements lie in a window that is mapped here, and are changed under their lock.
                unsafe { core::ptr::copy_nonoverlapping(addr, to.as_mut_ptr(), to.len()) };
                Ok(())
            }
            (Reach::Mapped { addr }, Element::Pair(pair)) => {
                // SAFETY: one pair lies in a window that is mapped here, and is changed under its lock.
                unsafe { pair.pack(1, addr, 0, to) };
                Ok(())
            }
            (Reach::Private { world, addr }, Element::Basic(_)) => {
                remote.read(world, addr, core::iter::once((0, to.len())), to)
            }
            (Reach::Private { world, addr }, Element::Pair(pair)) => {
                remote.read(world, addr, pair.runs(1), to)
            }
        }
    }

    /// Copies packed elements to where elements are at a spot.
    fn write(self, remote: Remote<'_>, spot: Spot, from: &[u8]) -> Result<()> {
        match (spot.reach, self.element) {
            (Reach::Mapped { addr }, Element::Basic(_)) => {
                // SAFETY: the elements lie in a window that is mapped here, and are changed under their lock.
                unsafe { core::ptr::copy_nonoverlapping(from.as_ptr(), addr, from.len()) };
                Ok(())
            }
            (Reach::Mapped { addr }, Element::Pair(pair)) => {
                // SAFETY: one pair lies in a window that is mapped here, and is changed under its lock.
                unsafe { pair.unpack(1, addr, 0, from) };
                Ok(())
            }
            (Reach::Private { world, addr }, Element::Basic(_)) => {
                remote.write(world, addr, core::iter::once((0, from.len())), from)
            }
            (Reach::Private { world, addr }, Element::Pair(pair)) => {
                remote.write(world, addr, pair.runs(1), from)
            }
        }
    }
}

/// Replaces the element at a spot by `new` if it is `compare`, byte by byte, and returns what it was.
///
/// # Errors
/// As [`Update::perform`].
pub(super) fn compare_and_swap(
    remote: Remote<'_>,
    TargetElements { spot, locks, .. }: TargetElements<'_>,
    basic: Basic,
    (new, compare): (&[u8], &[u8]),
    old: &mut [u8],
) -> Result<()> {
    let replace = Op::predefined(crate::abi::MPI_REPLACE).expect("the operation is predefined");
    let update = Update { op: &replace, element: Element::Basic(basic) };
    let size = basic.size();
    if let Reach::Mapped { addr } = spot.reach
        && has_atomics(addr, size)
        && let Some(_entered) = locks.enter(remote.engine)
    {
        // SAFETY: elements' bytes, of a size that was looked at; the target's lie in a window that is mapped here.
        unsafe {
            let exchange =
                Change::Exchange(load_value(compare.as_ptr(), size), load_value(new.as_ptr(), size));
            store_value(old.as_mut_ptr(), size, change(addr, size, exchange));
        }
        return Ok(());
    }
    let _held = locks.hold(remote.engine, spot.key)?;
    update.read(remote, spot, old)?;
    if old == compare { update.write(remote, spot, new) } else { Ok(()) }
}

fn moved(spot: Spot, by: isize) -> Spot {
    let reach = match spot.reach {
        Reach::Mapped { addr } => Reach::Mapped { addr: addr.wrapping_offset(by) },
        Reach::Private { world, addr } => Reach::Private { world, addr: addr.wrapping_add_signed(by as i64) },
    };
    Spot { reach, key: spot.key.wrapping_add_signed(by as i64) }
}

/// Elements that begin in one block of a target's memory and lie one behind the other:
/// the block, displacement and bytes.
#[derive(Clone, Copy)]
struct Piece {
    block: u64,
    at: isize,
    len: usize,
}

/// A piece of so many bytes is updated where it lies, and not read and written back.
const LONG_PIECE: usize = 256;

/// Bytes that are staged at a time: a whole number of elements of every type but pairs, of which one is staged.
const STAGE: usize = 4096;

#[repr(align(16))]
struct Staged([u8; STAGE]);
