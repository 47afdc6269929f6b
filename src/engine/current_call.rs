//! What this thread's call is, for the detail of its wait: asked only of a rank that has slept in vain, so the call
//! leaves no more than an address.

use crate::shm::telemetry::{CollectiveAbout, LockAbout, UnreadyPartitions};
use core::cell::Cell;
use core::ptr::NonNull;

/// What a call is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CallAbout {
    /// A collective one, or a wait for a collective operation.
    Collective(CollectiveAbout),
    /// A wait for a partitioned send.
    PartitionedSend(UnreadyPartitions),
    /// A wait for a partitioned receive, and the partitions that have not come.
    PartitionedReceive(UnreadyPartitions),
    /// A wait for the lock of a window.
    Lock(LockAbout),
}

impl From<CollectiveAbout> for CallAbout {
    fn from(about: CollectiveAbout) -> Self {
        Self::Collective(about)
    }
}

/// Says what a call is.
type About = dyn Fn() -> CallAbout;

thread_local! {
    static CURRENT: Cell<Option<NonNull<About>>> = const { Cell::new(None) };
}

/// Gives the thread back what it had before, also where a panic ends the call.
struct Restore(Option<NonNull<About>>);

impl Drop for Restore {
    fn drop(&mut self) {
        CURRENT.set(self.0);
    }
}

/// Runs `call`, which `about` describes.
#[inline]
pub fn describing<R, A: Into<CallAbout>>(about: &(dyn Fn() -> A + '_), call: impl FnOnce() -> R) -> R {
    let about = || about().into();
    let about: &(dyn Fn() -> CallAbout + '_) = &about;
    let about: NonNull<dyn Fn() -> CallAbout + '_> = NonNull::from(about);
    // SAFETY: the type differs in its lifetime alone. `Restore` takes the address away before that ends,
    // and no other thread sees it.
    let about = unsafe { core::mem::transmute::<NonNull<dyn Fn() -> CallAbout + '_>, NonNull<About>>(about) };
    let _restore = Restore(CURRENT.replace(Some(about)));
    call()
}

/// Runs `call`, which is a part of what has been described, or of a call that has not.
/// If nothing has said its number, this is it.
pub(crate) fn numbering<R>(number: u64, call: impl FnOnce() -> R) -> R {
    let outer = CURRENT.get();
    let about = || {
        // SAFETY: `describing` runs further out on this thread's stack, and keeps what it was given.
        let about = match outer.map(|about| unsafe { about.as_ref() }()) {
            Some(CallAbout::Collective(about)) => about,
            _ => CollectiveAbout::default(),
        };
        CollectiveAbout { number: if about.number == 0 { number } else { about.number }, ..about }
    };
    describing(&about, call)
}

/// What the call of this thread is, if it has described itself.
pub(crate) fn described() -> Option<CallAbout> {
    // SAFETY: `describing` runs further out on this thread's stack, and keeps what it was given.
    CURRENT.get().map(|about| unsafe { about.as_ref() }())
}

/// Whether the call of this thread has described itself.
pub(crate) fn is_described() -> bool {
    CURRENT.get().is_some()
}

#[cfg(all(test, not(perusal_loom)))]
mod tests {
    use super::*;
    use crate::shm::telemetry::RootAbout;

    fn collective() -> Option<CollectiveAbout> {
        described().map(|about| match about {
            CallAbout::Collective(about) => about,
            other => panic!("{other:?} is not collective"),
        })
    }

    #[test]
    fn the_innermost_call_is_described_and_none_behind_it() {
        let of = |number| move || CollectiveAbout { number, ..CollectiveAbout::default() };
        let number = || collective().map(|about| about.number);
        describing(&of(1), || {
            assert_eq!(number(), Some(1));
            describing(&of(2), || assert_eq!(number(), Some(2)));
            let panicked = std::panic::catch_unwind(|| describing(&of(3), || panic!("on purpose")));
            assert!(panicked.is_err());
            assert_eq!(number(), Some(1));
        });
        assert_eq!(number(), None);
    }

    #[test]
    fn a_number_is_for_those_who_have_none() {
        let of = |number| {
            move || CollectiveAbout { number, root: Some(RootAbout::Rank(3)), ..CollectiveAbout::default() }
        };
        let said = || collective().map(|about| (about.number, about.root));
        numbering(5, || assert_eq!(said(), Some((5, None))));
        describing(&of(0), || numbering(5, || assert_eq!(said(), Some((5, Some(RootAbout::Rank(3)))))));
        describing(&of(2), || numbering(5, || assert_eq!(said(), Some((2, Some(RootAbout::Rank(3)))))));
        assert_eq!(said(), None);
    }
}
