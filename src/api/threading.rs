//! How many threads of a rank may communicate: a type, so that the compiler keeps the promise.

use core::marker::PhantomData;

/// One of the two thread levels: [`Single`] or [`Multiple`].
///
/// MPI knows two more. MPI_THREAD_FUNNELED is what [`Single`] gives: other threads may exist, and cannot communicate.
/// For MPI_THREAD_SERIALIZED take [`Multiple`]: that threads take turns is nothing a type of several handles can say.
pub trait Threading: sealed::Sealed + 'static {
    /// Whether several threads may be inside the engine at once.
    const SHARED: bool;
}

/// The thread that joined the job communicates, and no other one: everything that leads to its engine is neither `Send`
/// nor `Sync`. The engine takes no locks.
#[derive(Debug)]
pub struct Single(PhantomData<*const ()>);

/// All threads communicate at once (MPI_THREAD_MULTIPLE).
#[derive(Debug)]
pub struct Multiple(());

impl Threading for Single {
    const SHARED: bool = false;
}

impl Threading for Multiple {
    const SHARED: bool = true;
}

mod sealed {
    pub trait Sealed {}
    impl Sealed for super::Single {}
    impl Sealed for super::Multiple {}
}
