//! Mutation points: in models, every ordered access and every fence asks here whether it is the one to be weakened.
//!
//! `PERUSAL_MUTANT=FILE:LINE:COLUMN CHANGE` weakens one place; `PERUSAL_MUTANT_PLACES=FILE` has all places that a run
//! comes by written there instead. `cargo xtask mutants` does both for each model.

#![allow(clippy::disallowed_types, clippy::disallowed_methods)]

use loom::sync::atomic as modelled;
use std::collections::BTreeSet;
use std::fmt::Debug;
use std::ops::{Deref, DerefMut};
use std::panic::Location;
use std::sync::{LazyLock, Mutex};

use Ordering::{AcqRel, Acquire, Relaxed, Release, SeqCst};
pub use modelled::Ordering;

/// How a place is changed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Change {
    /// The access has this ordering.
    Order(Ordering),
    /// Where an exchange fails, it has this ordering.
    FailureOrder(Ordering),
    /// The store, or the fence, is left out.
    Lost,
    /// The store changes places with the thread's next one.
    Late,
    /// The exchange does not look at what it replaces.
    Blind,
}

struct Mutant {
    place: String,
    change: Change,
}

static MUTANT: LazyLock<Option<Mutant>> = LazyLock::new(|| {
    let text = std::env::var("PERUSAL_MUTANT").ok()?;
    let (place, change) = text.rsplit_once(' ').expect("PERUSAL_MUTANT: a place and a change");
    let change = match change {
        "relaxed" => Change::Order(Relaxed),
        "acquire" => Change::Order(Acquire),
        "release" => Change::Order(Release),
        "acqrel" => Change::Order(AcqRel),
        "failure-relaxed" => Change::FailureOrder(Relaxed),
        "lost" => Change::Lost,
        "late" => Change::Late,
        "blind" => Change::Blind,
        other => panic!("PERUSAL_MUTANT: no change is called {other}"),
    };
    Some(Mutant { place: place.to_owned(), change })
});

/// The places that have been met, with what can be changed there; `None` if nobody asks.
static PLACES: LazyLock<Option<(std::path::PathBuf, Mutex<BTreeSet<String>>)>> =
    LazyLock::new(|| std::env::var_os("PERUSAL_MUTANT_PLACES").map(|file| (file.into(), Mutex::default())));

/// What an access is, which decides how it can be weakened.
#[derive(Clone, Copy)]
enum Access {
    Load,
    Store,
    Exchange,
    Failure,
    Fence,
    Check,
}

/// The ways to weaken an access of this ordering.
fn changes(access: Access, order: Ordering) -> &'static [&'static str] {
    match (access, order) {
        (Access::Failure, Acquire | SeqCst) => &["failure-relaxed"],
        (Access::Fence, _) => &["lost"],
        // What is published by a later store must be stored before that.
        (Access::Store, Relaxed) => &["late"],
        (Access::Check, _) => &["blind"],
        (Access::Store, Release | SeqCst) => &["relaxed", "lost"],
        (Access::Load, Acquire) | (Access::Exchange, Acquire | Release) => &["relaxed"],
        (Access::Load, SeqCst) => &["acquire"],
        (Access::Exchange, AcqRel) => &["acquire", "release"],
        (Access::Exchange, SeqCst) => &["acqrel"],
        _ => &[],
    }
}

/// Whether the file is the library's, not a model's or another crate's.
fn is_of_the_library(file: &str) -> bool {
    file.starts_with("src/") || file.starts_with("crates/")
}

/// The change of this access, if it is the mutant's.
fn change_at(at: &Location<'_>, access: Access, order: Ordering) -> Option<Change> {
    if let Some((file, places)) = &*PLACES {
        let changes = changes(access, order);
        if !changes.is_empty() && is_of_the_library(at.file()) {
            let mut places = places.lock().expect("nobody panics while holding it");
            let new = changes.iter().map(|change| places.insert(format!("{at} {change}")));
            // A model may end its process in the middle: what is known is written at once.
            if new.fold(false, |any, new| any | new) {
                let text: Vec<String> = places.iter().cloned().collect();
                std::fs::write(file, text.join("\n")).expect("a writable file");
            }
        }
    }
    let mutant = MUTANT.as_ref()?;
    (mutant.place == at.to_string()).then_some(mutant.change)
}

/// The ordering to use at a place.
fn order_at(at: &Location<'_>, access: Access, order: Ordering) -> Ordering {
    match (change_at(at, access, order), access) {
        (Some(Change::FailureOrder(weak)), Access::Failure) => weak,
        (Some(Change::Order(weak)), Access::Load | Access::Store | Access::Exchange) => weak,
        _ => order,
    }
}

/// A store that a thread holds back.
struct Held {
    thread: loom::thread::ThreadId,
    store: Box<dyn FnOnce()>,
}

// SAFETY: a model's threads run in turn in one thread of the process.
unsafe impl Send for Held {}

static HELD: Mutex<Option<Held>> = Mutex::new(None);

/// Holds a store of this thread back until its next one.
fn hold(store: Box<dyn FnOnce() + '_>) {
    // SAFETY: the type differs in its lifetime alone, and what is stored to is there when the thread stores next.
    let store = unsafe { core::mem::transmute::<Box<dyn FnOnce() + '_>, Box<dyn FnOnce()>>(store) };
    let thread = loom::thread::current().id();
    *HELD.lock().expect("nobody panics while holding it") = Some(Held { thread, store });
}

/// Does what this thread has held back, behind a store. What a thread that has ended held back is lost.
fn store_held() {
    if !matches!(&*MUTANT, Some(Mutant { change: Change::Late, .. })) {
        return;
    }
    let held = {
        let mut held = HELD.lock().expect("nobody panics while holding it");
        held.take_if(|held| held.thread == loom::thread::current().id())
    };
    if let Some(held) = held {
        (held.store)();
    }
}

/// A fence.
#[track_caller]
pub fn fence(order: Ordering) {
    if change_at(Location::caller(), Access::Fence, order) != Some(Change::Lost) {
        modelled::fence(order);
    }
}

/// The methods of every kind of atomic that has values of type `$value`.
macro_rules! accesses {
    ($value:ty) => {
        /// Reads the value.
        #[track_caller]
        pub fn load(&self, order: Ordering) -> $value {
            self.0.load(order_at(Location::caller(), Access::Load, order))
        }
        /// Writes the value.
        #[track_caller]
        pub fn store(&self, value: $value, order: Ordering) {
            match change_at(Location::caller(), Access::Store, order) {
                Some(Change::Lost) => {}
                Some(Change::Late) => {
                    store_held();
                    let place = core::ptr::from_ref(&self.0);
                    // SAFETY: a thread stores to what it uses, and goes on to use it: what it held back is stored
                    // before its next store is over.
                    return hold(Box::new(move || unsafe { &*place }.store(value, order)));
                }
                Some(Change::Order(weak)) => self.0.store(value, weak),
                _ => self.0.store(value, order),
            }
            store_held();
        }
        accesses!($value, swap);
        /// Exchanges the value if it is `current`.
        ///
        /// # Errors
        /// The value, if it is another.
        #[track_caller]
        pub fn compare_exchange(
            &self,
            current: $value,
            new: $value,
            success: Ordering,
            failure: Ordering,
        ) -> Result<$value, $value> {
            let at = Location::caller();
            let success = order_at(at, Access::Exchange, success);
            if change_at(at, Access::Check, success) == Some(Change::Blind) {
                return Ok(self.0.swap(new, success));
            }
            let result = self.0.compare_exchange(current, new, success, order_at(at, Access::Failure, failure));
            store_held();
            result
        }
        /// As [`Self::compare_exchange`]; it may fail for no reason.
        ///
        /// # Errors
        /// As there.
        #[track_caller]
        pub fn compare_exchange_weak(
            &self,
            current: $value,
            new: $value,
            success: Ordering,
            failure: Ordering,
        ) -> Result<$value, $value> {
            let at = Location::caller();
            let success = order_at(at, Access::Exchange, success);
            if change_at(at, Access::Check, success) == Some(Change::Blind) {
                return Ok(self.0.swap(new, success));
            }
            let failure = order_at(at, Access::Failure, failure);
            let result = self.0.compare_exchange_weak(current, new, success, failure);
            store_held();
            result
        }
        /// Changes the value by a function.
        ///
        /// # Errors
        /// The value, if the function gives none.
        #[track_caller]
        pub fn fetch_update(
            &self,
            success: Ordering,
            failure: Ordering,
            by: impl FnMut($value) -> Option<$value>,
        ) -> Result<$value, $value> {
            let at = Location::caller();
            let success = order_at(at, Access::Exchange, success);
            self.0.fetch_update(success, order_at(at, Access::Failure, failure), by)
        }
    };
    ($value:ty, $($verb:ident),+) => { $(
        /// Changes the value and gives what it was.
        #[track_caller]
        pub fn $verb(&self, value: $value, order: Ordering) -> $value {
            let before = self.0.$verb(value, order_at(Location::caller(), Access::Exchange, order));
            store_held();
            before
        }
    )+ };
}

macro_rules! atomics {
    ($($name:ident: $value:ty [$($verb:ident),*];)+) => { $(
        /// loom's, with mutation points.
        #[derive(Debug, Default)]
        pub struct $name(modelled::$name);

        impl $name {
            /// Holds `value`.
            #[track_caller]
            pub fn new(value: $value) -> Self {
                Self(modelled::$name::new(value))
            }
            /// Gives the value back.
            #[track_caller]
            pub fn into_inner(self) -> $value {
                self.0.into_inner()
            }
            accesses!($value);
            accesses!($value, $($verb),*);
        }

        impl Deref for $name {
            type Target = modelled::$name;
            fn deref(&self) -> &Self::Target {
                &self.0
            }
        }

        impl DerefMut for $name {
            fn deref_mut(&mut self) -> &mut Self::Target {
                &mut self.0
            }
        }
    )+ };
}

atomics! {
    AtomicBool: bool [fetch_and, fetch_or, fetch_xor];
    AtomicI32: i32 [fetch_add, fetch_sub, fetch_and, fetch_or, fetch_max, fetch_min];
    AtomicI64: i64 [fetch_add, fetch_sub, fetch_and, fetch_or, fetch_max, fetch_min];
    AtomicIsize: isize [fetch_add, fetch_sub, fetch_and, fetch_or, fetch_max, fetch_min];
    AtomicU8: u8 [fetch_add, fetch_sub, fetch_and, fetch_or, fetch_max, fetch_min];
    AtomicU16: u16 [fetch_add, fetch_sub, fetch_and, fetch_or, fetch_max, fetch_min];
    AtomicU32: u32 [fetch_add, fetch_sub, fetch_and, fetch_or, fetch_max, fetch_min];
    AtomicU64: u64 [fetch_add, fetch_sub, fetch_and, fetch_or, fetch_max, fetch_min];
    AtomicUsize: usize [fetch_add, fetch_sub, fetch_and, fetch_or, fetch_max, fetch_min];
}

/// loom's, with mutation points.
pub struct AtomicPtr<T>(modelled::AtomicPtr<T>);

impl<T> AtomicPtr<T> {
    /// Holds `value`.
    #[track_caller]
    pub fn new(value: *mut T) -> Self {
        Self(modelled::AtomicPtr::new(value))
    }
    accesses!(*mut T);
}

impl<T> Debug for AtomicPtr<T> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("AtomicPtr")
    }
}

impl<T> Default for AtomicPtr<T> {
    fn default() -> Self {
        Self::new(core::ptr::null_mut())
    }
}

impl<T> Deref for AtomicPtr<T> {
    type Target = modelled::AtomicPtr<T>;
    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

impl<T> DerefMut for AtomicPtr<T> {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.0
    }
}
