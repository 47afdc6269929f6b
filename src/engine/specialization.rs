//! What a function of the message path is compiled for:
//! with locks or without, for match contexts that somebody observes or nobody.
//!
//! The fast path is the path with all of this known: `Unlocked` and `Unobserved` leave neither a branch nor an event
//! site of it. The slow path asks: `AsStarted` and `Observed`.

use super::Engine;

/// What is known of an engine's locks.
pub(crate) trait Locking: Copy {
    /// Whether several threads may be inside the engine.
    fn shared(engine: &Engine) -> bool;
}

/// An engine of which [`Engine::is_shared`] is known to be `SHARED`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Known<const SHARED: bool>;

/// One thread at a time is inside: nothing is locked (the elision rule of [`crate::sync::ConditionalLock`]).
pub(crate) type Unlocked = Known<false>;
/// Several threads may be inside.
pub(crate) type Locked = Known<true>;

/// An engine that is asked.
#[derive(Debug, Clone, Copy)]
pub(crate) struct AsStarted;

impl<const SHARED: bool> Locking for Known<SHARED> {
    #[inline(always)]
    fn shared(engine: &Engine) -> bool {
        debug_assert_eq!(engine.shared, SHARED);
        SHARED
    }
}

impl Locking for AsStarted {
    #[inline(always)]
    fn shared(engine: &Engine) -> bool {
        engine.shared
    }
}

/// What is known of a match context's listeners.
pub(crate) trait Observation: Copy {
    /// Whether event sites are passed.
    const EVENTS: bool;
}

/// Somebody may listen: each event site asks its gate.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Observed;

/// Nobody listened when the operation began.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Unobserved;

impl Observation for Observed {
    const EVENTS: bool = true;
}

impl Observation for Unobserved {
    const EVENTS: bool = false;
}

/// Runs `work` in a function of its own, so that nothing of it is compiled into the caller: for the locked case of a
/// function whose unlocked case is inlined. `work` takes what it needs by value (`move`): what it borrowed would lie on
/// the stack in the unlocked case too.
#[inline(never)]
pub(crate) fn apart<R>(work: impl FnOnce() -> R) -> R {
    work()
}
