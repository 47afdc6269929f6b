//! Windows: memory of each rank that the others access (MPI 5.0 chapter 12), without data races in safe code.
//!
//! - **API window rule 1.** A reference to a part of a window's memory exists only while its rank is locked exclusively
//!   ([`Locked`]).
//! - **API window rule 2.** All other accesses are accumulates, which are atomic for each number of an element
//!   ([`Access`]). They are made under a shared lock of the target, or between two fences, or while the target exposes
//!   itself, and holds a shared lock of its own memory.
//! - **API window rule 3.** Between two fences no rank holds a lock: each member has said to all others that it begins
//!   an epoch of fences, and a member that holds a lock has said that it does not. A member for which one of the two
//!   fences fails uses the window no more: others may be between them.
//! - **API window rule 4.** The memory is given back only when each member has said to all others that it frees the
//!   window. Otherwise it stays until the job ends.

use super::access::Access;
use super::address::window_rank;
use super::communicator::Communicator;
use super::element::Element;
use super::threading::{Single, Threading};
use crate::comm::Group;
use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::events::{Event, EventRecord, Subscription};
use crate::info::Info;
use crate::limits::LINE;
use crate::rma::{self, Assert, LockKind, Memory};
use core::cell::Cell;
use core::marker::PhantomData;
use core::ops::{Deref, DerefMut};
use core::ptr::NonNull;
use std::thread::panicking;

const NO: Assert = Assert { no_check: false, no_succeed: false };
const LAST: Assert = Assert { no_check: false, no_succeed: true };

/// What members say to each other, so that they do the same. Above them: what the elements are.
const FENCE: u64 = 1;
const FREE: u64 = 2;
const NOT_READY: u64 = 3;

const DIFFERENT: Error = Error::RmaSync(
    "the ranks of a window did not begin the same: one calls another function, or holds a lock or is exposed",
);

/// Elements at each rank of a communicator that all its ranks can access, without the owner's help.
/// [`Communicator::window`] makes one.
///
/// | call | gives | others meanwhile |
/// |---|---|---|
/// | [`lock`](Self::lock) | one rank's elements as a slice | wait |
/// | [`lock_shared`](Self::lock_shared), [`lock_all`](Self::lock_all) | atomic operations on one rank's elements, on all | the same |
/// | [`fence`](Self::fence) | atomic operations on all elements, at all ranks together | the same |
/// | [`expose`](Self::expose), [`start`](Self::start) | atomic operations on the elements of ranks that wait for that | the same |
///
/// A window belongs to its communicator, and one thread of a rank uses it at a time. [`free`](Self::free) gives its
/// memory back; dropped without, its memory stays until the job ends, for another rank may be using it.
///
/// ```
/// use perusal::Reduction::Sum;
///
/// # fn main() -> perusal::Result<()> {
/// let tickets = perusal::run_threads(4, |world| {
///     let counter = world.window::<u64>(if world.rank() == 0 { 1 } else { 0 })?;
///     let all = counter.lock_all()?;
///     let ticket = all.fetch_and_op(Sum, 1, 0, 0)?;
///     drop(all);
///     counter.free()?;
///     Ok(ticket)
/// })?;
/// let mut sorted = tickets;
/// sorted.sort();
/// assert_eq!(sorted, [0, 1, 2, 3]);
/// # Ok(()) }
/// ```
///
/// A slice does not outlive its lock, nor a lock its window:
///
/// ```compile_fail,E0505
/// # perusal::run_threads(1, |world| {
/// let window = world.window::<u64>(8)?;
/// let mut own = window.lock(0)?;
/// let first = &mut own[0];
/// drop(own);
/// *first = 1;
/// # Ok(()) });
/// ```
///
/// ```compile_fail,E0505
/// # perusal::run_threads(1, |world| {
/// let window = world.window::<u64>(8)?;
/// let own = window.lock(0)?;
/// window.free()?;
/// drop(own);
/// # Ok(()) });
/// ```
///
/// Between fences there are atomic operations alone:
///
/// ```compile_fail,E0501
/// # perusal::run_threads(1, |world| {
/// let mut window = world.window::<u64>(8)?;
/// window.fence(|_| window.lock(0).map(drop))?;
/// # Ok(()) });
/// ```
pub struct Window<'c, E: Element, T: Threading = Single> {
    comm: &'c Communicator<T>,
    /// `None` once it is freed.
    inner: Option<rma::Window>,
    /// Exclusive locks of the own memory that have not ended, and whether it is exposed.
    own_locked: Cell<bool>,
    exposed: Cell<bool>,
    /// A panic or an error has left an epoch of fences, in which other members may still be.
    torn: Cell<bool>,
    elements: PhantomData<Cell<E>>,
}

impl<T: Threading> Communicator<T> {
    /// Makes a window with `len` elements of the caller's, all zero (MPI_Win_allocate).
    /// All ranks call it, each with a length of its own.
    ///
    /// # Errors
    /// [`Error::NoMem`] if one of the ranks finds no room in the shared heap; [`Error::Type`] for elements of no bytes,
    /// of a larger alignment than 64, or not the same at all ranks; [`Error::RankFailed`].
    pub fn window<E: Element>(&self, len: usize) -> Result<Window<'_, E, T>> {
        self.make_window(len, Memory::Allocated)
    }

    pub(super) fn make_window<E: Element>(
        &self,
        len: usize,
        memory: fn(usize) -> Memory,
    ) -> Result<Window<'_, E, T>> {
        let fits = size_of::<E>() > 0 && align_of::<E>() <= LINE;
        let bytes = len.checked_mul(size_of::<E>()).filter(|_| fits);
        self.member.close_dropped();
        let made = self.member.perform(|engine| {
            let memory = memory(bytes.unwrap_or(0));
            let unit = size_of::<E>().max(1) as u64;
            let window = rma::Window::create(engine, &self.comm, memory, unit, &Info::default())?;
            self.member.claim(window.context())?;
            let what = (E::HANDLE as u64) << 32 | (E::COUNT as u64) << 8 | u64::from(bytes.is_some());
            Ok((window.agree(engine, what)?, window))
        });
        let (alike, inner) = made?;
        let window = Window {
            comm: self,
            inner: Some(inner),
            own_locked: Cell::new(false),
            exposed: Cell::new(false),
            torn: Cell::new(false),
            elements: PhantomData,
        };
        match bytes {
            Some(_) if alike => {
                window.inner()?.emit_created();
                Ok(window)
            }
            None if fits => Err(Error::NoMem(format!("{len} elements of {} bytes each", size_of::<E>()))),
            _ => Err(Error::Type(
                "a window's elements have bytes, an alignment of at most 64, and the same type at all ranks",
            )),
        }
    }
}

impl<'c, E: Element, T: Threading> Window<'c, E, T> {
    fn inner(&self) -> Result<&rma::Window> {
        self.inner.as_ref().ok_or(Error::RmaSync("the window is freed"))
    }

    /// Performs a call on the window.
    pub(super) fn perform<R>(&self, operation: impl FnOnce(&rma::Window, &Engine) -> Result<R>) -> Result<R> {
        if self.torn.get() {
            return Err(Error::RmaSync("a panic or an error has left an epoch of fences of this window"));
        }
        let window = self.inner()?;
        self.comm.member.perform(|engine| operation(window, engine))
    }

    /// Returns the caller's rank, less than [`size`](Self::size).
    #[must_use]
    pub fn rank(&self) -> usize {
        self.comm.rank()
    }

    /// Returns the number of ranks.
    #[must_use]
    pub fn size(&self) -> usize {
        self.comm.size()
    }

    /// Returns how many elements rank `target` has.
    ///
    /// # Errors
    /// [`Error::WinRank`].
    pub fn len_of(&self, target: usize) -> Result<usize> {
        self.part(target).map(|(_, len)| len)
    }

    /// Where the elements of rank `target` lie, and how many they are.
    pub(super) fn part(&self, target: usize) -> Result<(NonNull<E>, usize)> {
        let part = self.inner()?.shared_part(Some(window_rank(target, self.size())?))?;
        let part = part.ok_or_else(|| Error::Intern("allocated memory that is not mapped".into()))?;
        let address = core::ptr::with_exposed_provenance_mut::<E>(part.addr);
        let address = NonNull::new(address).filter(|address| address.is_aligned());
        let address = address.ok_or_else(|| Error::Intern("allocated memory off its alignment".into()))?;
        Ok((address, part.bytes as usize / size_of::<E>()))
    }

    /// Locks rank `target`'s elements and returns them as a slice (MPI_Win_lock with MPI_LOCK_EXCLUSIVE): nobody else
    /// accesses them until it is dropped. They lie in shared memory, so that loads and stores are all it takes.
    ///
    /// # Errors
    /// [`Error::RmaSync`] if the caller has locked that rank, or is in another epoch, or is exposed and locks itself;
    /// [`Error::WinRank`], [`Error::RankFailed`].
    ///
    /// ```
    /// # fn main() -> perusal::Result<()> {
    /// perusal::run_threads(2, |world| {
    ///     let window = world.window::<f64>(1000)?;
    ///     let right = 1 - world.rank();
    ///     window.lock(right)?.fill(world.rank() as f64);
    ///     world.barrier()?;
    ///     assert_eq!(window.lock(world.rank())?[999], right as f64);
    ///     window.free()
    /// })?;
    /// # Ok(()) }
    /// ```
    pub fn lock(&self, target: usize) -> Result<Locked<'_, E, T>> {
        let (first, len) = self.part(target)?;
        let own = target == self.rank();
        if own && self.exposed.get() {
            return Err(Error::RmaSync("the window is exposed: wait for its origins first"));
        }
        self.perform(|window, engine| window.lock(engine, LockKind::Exclusive, target as i32, NO))?;
        self.own_locked.set(own || self.own_locked.get());
        Ok(Locked { window: self, target, elements: (first, len) })
    }

    /// Locks rank `target`'s elements together with others that do the same (MPI_Win_lock with MPI_LOCK_SHARED),
    /// until it is dropped.
    ///
    /// # Errors
    /// As [`lock`](Self::lock).
    pub fn lock_shared(&self, target: usize) -> Result<Shared<'_, E, T>> {
        window_rank(target, self.size())?;
        self.perform(|window, engine| window.lock(engine, LockKind::Shared, target as i32, NO))?;
        Ok(Shared { access: Access { window: self, only: Some(target) } })
    }

    /// Locks the elements of all ranks together with others that do the same (MPI_Win_lock_all), until it is dropped.
    ///
    /// # Errors
    /// As [`lock`](Self::lock).
    pub fn lock_all(&self) -> Result<Shared<'_, E, T>> {
        self.perform(|window, engine| window.lock_all(engine, NO))?;
        Ok(Shared { access: Access { window: self, only: None } })
    }

    /// Runs `body`, which may access all ranks' elements, between two fences (MPI_Win_fence). All ranks call it: it
    /// begins when all have, and what was done in it has been done at all of them when it returns.
    ///
    /// # Errors
    /// Those of `body`, which the other ranks do not see; [`Error::RmaSync`] at all ranks if one holds a lock, is
    /// exposed or calls [`free`](Self::free); [`Error::RankFailed`]. Where a fence has failed, other ranks may still be
    /// in the epoch, and the window can only be dropped.
    ///
    /// ```
    /// # fn main() -> perusal::Result<()> {
    /// perusal::run_threads(3, |world| {
    ///     let mut window = world.window::<i32>(2)?;
    ///     let (left, right) = ((world.rank() + 2) % 3, (world.rank() + 1) % 3);
    ///     window.fence(|epoch| epoch.put(&[world.rank() as i32], right, 1))?;
    ///     assert_eq!(window.lock(world.rank())?[..], [0, left as i32]);
    ///     world.barrier()?;
    ///     window.free()
    /// })?;
    /// # Ok(()) }
    /// ```
    pub fn fence<R>(&mut self, body: impl FnOnce(&Access<'_, E, T>) -> Result<R>) -> Result<R> {
        self.agree(FENCE)?;
        // From here on other members may be inside, until the last fence has succeeded here.
        let inside = Inside(self);
        inside.0.perform(|window, engine| window.fence(engine, NO))?;
        let result = body(&Access { window: inside.0, only: None });
        inside.0.perform(|window, engine| window.fence(engine, LAST))?;
        core::mem::forget(inside);
        result
    }

    /// All members begin the same, and none of them has anything open.
    fn agree(&self, word: u64) -> Result<()> {
        self.perform(|window, engine| {
            let ready = window.check_fence();
            let agreed = window.agree(engine, if ready.is_ok() { word } else { NOT_READY })?;
            ready?;
            if agreed { Ok(()) } else { Err(DIFFERENT) }
        })
    }

    fn group(&self, ranks: &[usize]) -> Result<Group> {
        let listed = ranks.iter().map(|&r| window_rank(r, self.size())).collect::<Result<Vec<i32>>>()?;
        self.inner()?.group().incl(&listed)
    }

    /// Lets the ranks `origins` access the caller's elements once (MPI_Win_post), each by a [`start`](Self::start) that
    /// names the caller. [`Exposed::wait`] returns when all of them have completed.
    ///
    /// # Errors
    /// [`Error::RmaSync`] if the caller is exposed, or holds its own elements; [`Error::WinRank`] and
    /// [`Error::RankTwice`] for a wrong list; [`Error::RankFailed`].
    ///
    /// ```
    /// # fn main() -> perusal::Result<()> {
    /// perusal::run_threads(2, |world| {
    ///     let window = world.window::<u32>(100)?;
    ///     let peer = 1 - world.rank();
    ///     let exposed = window.expose(&[peer])?;
    ///     let started = window.start(&[peer])?; // waits until the peer is exposed
    ///     started.put(&[7; 100], peer, 0)?;
    ///     started.complete()?;
    ///     exposed.wait()?;
    ///     assert_eq!(window.lock(world.rank())?[99], 7);
    ///     world.barrier()?;
    ///     window.free()
    /// })?;
    /// # Ok(()) }
    /// ```
    pub fn expose(&self, origins: &[usize]) -> Result<Exposed<'_, E, T>> {
        let group = self.group(origins)?;
        if self.exposed.get() || self.own_locked.get() {
            return Err(Error::RmaSync(
                "the window is exposed already, or the caller holds its own elements",
            ));
        }
        self.perform(|window, engine| {
            // API window rule 2: a rank that would lock these elements exclusively waits.
            window.hold_own(engine)?;
            self.exposed.set(true);
            window.post(engine, &group)
        })?;
        Ok(Exposed { window: self })
    }

    /// Waits until the ranks `targets` have exposed their elements to the caller, and lets it access them until it
    /// completes (MPI_Win_start).
    ///
    /// # Errors
    /// [`Error::RmaSync`] within another epoch; [`Error::WinRank`] and [`Error::RankTwice`] for a wrong list;
    /// [`Error::RankFailed`].
    pub fn start(&self, targets: &[usize]) -> Result<Started<'_, E, T>> {
        let group = self.group(targets)?;
        self.perform(|window, engine| window.start(engine, &group))?;
        Ok(Started { access: Access { window: self, only: None } })
    }

    /// Frees the window and its memory (MPI_Win_free). All ranks call it.
    ///
    /// # Errors
    /// As [`fence`](Self::fence); the memory then stays until the job ends.
    pub fn free(mut self) -> Result<()> {
        self.agree(FREE)?;
        self.perform(|window, engine| window.free(engine))?;
        if let Some(window) = self.inner.take() {
            self.comm.member.registry().detach(window.events());
            window.emit_freed();
            let context = self.comm.member.perform(|engine| Ok(window.give_back(engine)))?;
            self.comm.member.close(context);
        }
        Ok(())
    }

    /// Calls `closure` for every `event` of the window until the subscription is dropped, as
    /// [`Communicator::subscribe`] does for messages.
    ///
    /// # Errors
    /// [`Error::Other`] if events are compiled out.
    pub fn subscribe(
        &self,
        event: Event,
        closure: impl Fn(&EventRecord<'_>) + Send + Sync + 'static,
    ) -> Result<Subscription> {
        let made = Subscription::new(self.inner()?.events(), event, closure);
        made.map_err(|error| Error::Other(error.to_string()))
    }
}

/// An epoch of fences has begun; dropped only if a panic or an error leaves it.
struct Inside<'w, 'c, E: Element, T: Threading>(&'w Window<'c, E, T>);

impl<E: Element, T: Threading> Drop for Inside<'_, '_, E, T> {
    fn drop(&mut self) {
        self.0.torn.set(true);
    }
}

impl<E: Element, T: Threading> Drop for Window<'_, E, T> {
    fn drop(&mut self) {
        // API window rule 4.
        if let Some(window) = self.inner.take() {
            self.comm.member.registry().detach(window.events());
            window.emit_freed();
            self.comm.member.close(window.context());
        }
    }
}

/// One rank's elements of a window, locked exclusively: a slice.
#[must_use = "dropped, it unlocks"]
pub struct Locked<'w, E: Element, T: Threading = Single> {
    window: &'w Window<'w, E, T>,
    target: usize,
    elements: (NonNull<E>, usize),
}

impl<E: Element, T: Threading> Deref for Locked<'_, E, T> {
    type Target = [E];

    fn deref(&self) -> &[E] {
        // SAFETY: the part of a window that lives, of so many elements, aligned, which may have any bytes. The lock is
        // held exclusively, so nobody writes them (API window rules 1 and 2).
        unsafe { core::slice::from_raw_parts(self.elements.0.as_ptr(), self.elements.1) }
    }
}

impl<E: Element, T: Threading> DerefMut for Locked<'_, E, T> {
    fn deref_mut(&mut self) -> &mut [E] {
        // SAFETY: the part of a window that lives, of so many elements, aligned, which may have any bytes. The lock is
        // held exclusively, so nobody reads or writes them,
        // and the guard is borrowed exclusively (API window rules 1 and 2).
        unsafe { core::slice::from_raw_parts_mut(self.elements.0.as_ptr(), self.elements.1) }
    }
}

impl<E: Element, T: Threading> Drop for Locked<'_, E, T> {
    fn drop(&mut self) {
        // What fails leaves the lock held: others wait, or learn why the job has ended.
        let unlocked = self.window.perform(|window, engine| window.unlock(engine, self.target as i32));
        if unlocked.is_ok() && self.target == self.window.rank() {
            self.window.own_locked.set(false);
        }
    }
}

/// Elements of one rank, or of all, locked together with others: atomic operations.
#[must_use = "dropped, it unlocks"]
pub struct Shared<'w, E: Element, T: Threading = Single> {
    access: Access<'w, E, T>,
}

impl<E: Element, T: Threading> Shared<'_, E, T> {
    /// Makes what the caller has done visible to whoever looks at it by loads (MPI_Win_flush_all). For other operations
    /// and locks nothing is needed.
    ///
    /// # Errors
    /// [`Error::RankFailed`].
    pub fn flush(&self) -> Result<()> {
        let target = self.access.only.map(|only| only as i32);
        self.access.window.perform(|window, engine| window.flush(engine, target))
    }
}

impl<'w, E: Element, T: Threading> Deref for Shared<'w, E, T> {
    type Target = Access<'w, E, T>;

    fn deref(&self) -> &Access<'w, E, T> {
        &self.access
    }
}

impl<E: Element, T: Threading> Drop for Shared<'_, E, T> {
    fn drop(&mut self) {
        let only = self.access.only;
        // As for `Locked`.
        let _ = self.access.window.perform(|window, engine| match only {
            Some(target) => window.unlock(engine, target as i32),
            None => window.unlock_all(engine),
        });
    }
}

/// An access epoch of [`Window::start`].
#[must_use = "dropped, it completes"]
pub struct Started<'w, E: Element, T: Threading = Single> {
    access: Access<'w, E, T>,
}

impl<E: Element, T: Threading> Started<'_, E, T> {
    /// Ends the epoch (MPI_Win_complete), as its drop does.
    ///
    /// # Errors
    /// [`Error::RankFailed`].
    pub fn complete(self) -> Result<()> {
        let ended = self.end();
        core::mem::forget(self);
        ended
    }

    fn end(&self) -> Result<()> {
        self.access.window.perform(|window, engine| window.complete(engine))
    }
}

impl<'w, E: Element, T: Threading> Deref for Started<'w, E, T> {
    type Target = Access<'w, E, T>;

    fn deref(&self) -> &Access<'w, E, T> {
        &self.access
    }
}

impl<E: Element, T: Threading> Drop for Started<'_, E, T> {
    fn drop(&mut self) {
        // As for `Locked`.
        let _ = self.end();
    }
}

/// The caller's elements are exposed to other ranks: [`Window::expose`].
#[must_use = "dropped, it waits"]
pub struct Exposed<'w, E: Element, T: Threading = Single> {
    window: &'w Window<'w, E, T>,
}

impl<E: Element, T: Threading> Exposed<'_, E, T> {
    /// Waits until all origins have completed (MPI_Win_wait), as its drop does, unless a panic drops it.
    ///
    /// # Errors
    /// [`Error::RankFailed`].
    pub fn wait(self) -> Result<()> {
        let ended = self.end();
        core::mem::forget(self);
        ended
    }

    fn end(&self) -> Result<()> {
        self.window.perform(|window, engine| {
            window.wait_completed(engine)?;
            window.let_go_of_own(engine);
            Ok(())
        })?;
        self.window.exposed.set(false);
        Ok(())
    }
}

impl<E: Element, T: Threading> Drop for Exposed<'_, E, T> {
    fn drop(&mut self) {
        if !panicking() {
            // As for `Locked`.
            let _ = self.end();
        }
    }
}
