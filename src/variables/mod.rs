//! What steers the engine: the control variables, and the values in force.
//!
//! | file | what lives there |
//! |---|---|
//! | [`table`] | the variables, a row each |
//! | [`algorithms`] | the algorithms of each collective operation, as enumerations |
//! | [`category`] | the tree that sorts variables and events |
//! | [`enumeration`] | names behind values |
//! | [`overrides`] | what tune file, environment and tools ask for before there is an engine |
//!
//! An engine has one [`Config`]. Its values are atomics that any thread may change at any time: whoever obeys one reads it each
//! time, and must be right with the old and with the new value.

pub mod algorithms;
pub mod category;
pub mod enumeration;
pub mod overrides;
pub mod table;

pub use category::Category;
pub use overrides::{OverrideValue, Overrides, ValueSource};
pub use table::{JobShape, VARIABLES, Variable, VariableId};

use crate::error::Result;
use crate::sync::{AtomicU8, AtomicU64, Ordering};
use core::time::Duration;
use table::{COUNT, Domain, Settable};

/// Which engine copies large messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CopyChoice {
    /// By the thresholds.
    Auto,
    /// In chunks through the ring, both ranks at work.
    Chunks,
    /// One `process_vm_readv` by the receiver.
    Read,
    /// Receiver and sender copy a half each by `process_vm_readv` and `process_vm_writev`.
    Halves,
    /// A plain copy, where both ranks see the memory; elsewhere as `Auto`.
    Direct,
}

/// Why a value was not taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// The variable can have no such value.
    Value,
    /// Not now.
    NotNow,
    /// Not any more in this process.
    Never,
}

/// The values in force in one engine.
#[derive(Debug)]
pub struct Config {
    numbers: [AtomicU64; COUNT],
    origins: [AtomicU8; COUNT],
    texts: Vec<(VariableId, String)>,
    shape: JobShape,
}

impl Config {
    /// The values that were asked for; what was not follows from the job.
    ///
    /// # Errors
    ///
    /// [`crate::Error::Other`] that names the variable, its value and what it may be.
    pub fn new(settings: &Overrides, shape: JobShape) -> Result<Self> {
        let config = Self {
            numbers: core::array::from_fn(|_| AtomicU64::new(0)),
            origins: core::array::from_fn(|_| AtomicU8::new(0)),
            texts: VARIABLES
                .iter()
                .filter(|variable| matches!(variable.kind, Domain::Text))
                .map(|variable| (variable.id, settings.text(variable.id).to_owned()))
                .collect(),
            shape,
        };
        for variable in &VARIABLES {
            // The rings are as they are, whatever is asked for: the job's memory has been made.
            let number = match variable.when {
                Settable::BeforeJob => (variable.default)(&shape),
                _ => settings.resolve(variable.id, &shape)?,
            };
            let is_as_asked = settings.number(variable.id).is_none_or(|asked| asked == number);
            let origin = if is_as_asked { settings.origin(variable.id) } else { ValueSource::Default };
            config.put(variable.id, number, origin);
        }
        Ok(config)
    }

    fn put(&self, id: VariableId, number: u64, origin: ValueSource) {
        // Relaxed, here and in `number`: each value stands for itself; nothing else is read because of it.
        self.numbers[id as usize].store(number, Ordering::Relaxed);
        self.origins[id as usize].store(origin as u8, Ordering::Relaxed);
    }

    /// A value in force; of a choice, its item's value.
    #[inline(always)]
    #[must_use]
    pub fn number(&self, id: VariableId) -> u64 {
        self.numbers[id as usize].load(Ordering::Relaxed)
    }

    /// A text in force.
    #[must_use]
    pub fn text(&self, id: VariableId) -> &str {
        self.texts.iter().find(|(of, _)| *of == id).map_or("", |(_, text)| text)
    }

    /// Where a value in force came from.
    #[must_use]
    pub fn origin(&self, id: VariableId) -> ValueSource {
        match self.origins[id as usize].load(Ordering::Relaxed) {
            1 => ValueSource::TuneFile,
            2 => ValueSource::Environment,
            3 => ValueSource::Tool,
            _ => ValueSource::Default,
        }
    }

    /// What defaults and ranges follow from here.
    #[must_use]
    pub fn shape(&self) -> &JobShape {
        &self.shape
    }

    /// Gives a variable another value, from now on. `in_collective` says that a collective operation is under way.
    ///
    /// # Errors
    ///
    /// [`Refusal`], and nothing has changed.
    pub fn change(
        &self,
        id: VariableId,
        number: u64,
        in_collective: bool,
    ) -> core::result::Result<(), Refusal> {
        let variable = &VARIABLES[id as usize];
        match variable.when {
            Settable::Never | Settable::BeforeJob | Settable::BeforeInit => return Err(Refusal::Never),
            Settable::BetweenCollectives if in_collective => return Err(Refusal::NotNow),
            Settable::Always | Settable::BetweenCollectives => {}
        }
        if !variable.allows(number, &self.shape) {
            return Err(Refusal::Value);
        }
        self.put(id, number, ValueSource::Tool);
        Ok(())
    }

    /// Largest eager payload in bytes.
    #[inline(always)]
    #[must_use]
    pub fn eager_limit(&self) -> usize {
        self.number(VariableId::EagerLimit) as usize
    }

    /// Largest payload in bytes that is sent in eager pieces.
    #[inline]
    #[must_use]
    pub fn fragments_limit(&self) -> usize {
        self.number(VariableId::TrainLimit) as usize
    }

    /// How large messages are copied.
    #[inline]
    #[must_use]
    pub fn copy(&self) -> CopyChoice {
        match self.number(VariableId::CopyEngine) {
            1 => CopyChoice::Chunks,
            2 => CopyChoice::Read,
            3 => CopyChoice::Halves,
            4 => CopyChoice::Direct,
            _ => CopyChoice::Auto,
        }
    }

    /// Bytes from which a receiver reads the sender's memory, and from which each side copies a half; `None`: as measured.
    #[inline]
    #[must_use]
    pub fn copy_from(&self) -> [Option<u32>; 2] {
        [VariableId::CopyReadFrom, VariableId::CopyHalvesFrom]
            .map(|id| u32::try_from(self.number(id)).ok().filter(|from| *from != 0))
    }

    /// Bytes from which a message from the shared heap is copied straight.
    #[inline]
    #[must_use]
    pub fn direct_from(&self) -> usize {
        at_least(self.number(VariableId::CopyDirectFrom))
    }

    /// Bytes from which both ranks copy a message from the shared heap to the shared heap.
    #[inline]
    #[must_use]
    pub fn share_from(&self) -> usize {
        at_least(self.number(VariableId::CopyShareFrom))
    }

    /// Bytes on their way to this rank in chunks beyond which they are written past the cache.
    #[inline]
    #[must_use]
    pub fn uncached_from(&self) -> u64 {
        match self.number(VariableId::CopyUncachedFrom) {
            table::NEVER => u64::MAX,
            from => from,
        }
    }

    /// Entries up to which a new queue stays in its short form.
    #[must_use]
    pub fn match_short(&self) -> usize {
        self.number(VariableId::MatchShort) as usize
    }

    /// How long a waiting rank polls.
    #[inline]
    #[must_use]
    pub fn spin(&self) -> Duration {
        Duration::from_micros(self.number(VariableId::SpinUs))
    }

    /// How often a receive looks at its sender's ring before it goes the general way: a part of `spin`.
    #[inline(always)]
    #[must_use]
    pub fn ring_polls(&self) -> u32 {
        // A look with nothing there takes ten nanoseconds or so.
        (self.number(VariableId::SpinUs) * 50).clamp(1, 5_000) as u32
    }

    /// How often a waiting rank gives its CPU away before it sleeps.
    #[inline]
    #[must_use]
    pub fn yields(&self) -> u32 {
        self.number(VariableId::Yields) as u32
    }

    /// How long a sleep lasts at most: after it, the job's health is looked at.
    #[inline]
    #[must_use]
    pub fn longest_sleep(&self) -> Duration {
        Duration::from_millis(self.number(VariableId::NapMs))
    }

    /// Whether communicators get shared memory for their collectives.
    #[inline]
    #[must_use]
    pub fn coll_shared(&self) -> bool {
        self.number(VariableId::CollShared) == 1
    }

    /// Most bytes of a piece of a collective.
    #[inline]
    #[must_use]
    pub fn coll_piece(&self) -> usize {
        self.number(VariableId::CollPiece) as usize
    }

    /// How often a rank that waits in a collective gives its CPU away; `None` where every rank has a CPU.
    #[inline]
    #[must_use]
    pub fn coll_yields(&self) -> Option<u32> {
        self.shape.is_oversubscribed().then(|| self.number(VariableId::CollYields) as u32)
    }

    /// Whether senders fence.
    #[must_use]
    pub fn fences_on_both_sides(&self) -> bool {
        self.number(VariableId::SenderFences) == 1
    }

    /// A value in force as people write it.
    #[must_use]
    pub fn show(&self, id: VariableId) -> String {
        let variable = &VARIABLES[id as usize];
        match variable.kind {
            Domain::Text => self.text(id).to_owned(),
            _ => variable.show(self.number(id)),
        }
    }

    /// Environment name and value in force of every variable that has one: a text may be empty.
    #[must_use]
    pub fn in_force(&self) -> Vec<(&'static str, String)> {
        let all = VARIABLES.iter().map(|variable| (variable.environment, self.show(variable.id)));
        all.filter(|(_, value)| !value.is_empty()).collect()
    }
}

/// A threshold in bytes: none is beyond [`table::NEVER`].
#[inline]
fn at_least(threshold: u64) -> usize {
    if threshold >= table::NEVER { usize::MAX } else { threshold as usize }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HERE: JobShape = JobShape {
        ranks: 4,
        usable_cpus: 2,
        ring_cells: 256,
        ring_bulk: 256 << 10,
        sender_fences: true,
        heap: 0,
    };

    #[test]
    fn every_variable_is_named_once_and_its_default_is_allowed() {
        for (index, variable) in VARIABLES.iter().enumerate() {
            assert_eq!(variable.id as usize, index);
            assert_eq!(variable.environment, format!("PERUSAL_{}", variable.name.to_uppercase()));
            assert!(VARIABLES[..index].iter().all(|other| other.name != variable.name));
            let default = (variable.default)(&HERE);
            assert!(
                matches!(variable.kind, Domain::Text) || variable.allows(default, &HERE),
                "{}",
                variable.name
            );
            assert!(variable.name.is_ascii() && !variable.what.is_empty());
        }
    }

    #[test]
    fn a_change_is_seen_at_once_and_a_wrong_one_changes_nothing() {
        let config = Config::new(&Overrides::default(), HERE).expect("defaults");
        assert_eq!(config.spin(), Duration::from_micros(1), "crowded");
        assert_eq!(config.change(VariableId::SpinUs, 7, false), Ok(()));
        assert_eq!(
            (config.spin(), config.origin(VariableId::SpinUs)),
            (Duration::from_micros(7), ValueSource::Tool)
        );
        assert_eq!(config.change(VariableId::EagerLimit, 64 << 10, false), Ok(()));
        assert_eq!(config.change(VariableId::EagerLimit, (64 << 10) + 1, false), Err(Refusal::Value));
        assert_eq!(config.eager_limit(), 64 << 10);
        assert_eq!(config.change(VariableId::RingCells, 512, false), Err(Refusal::Never));
        assert_eq!(config.change(VariableId::SenderFences, 0, false), Err(Refusal::Never));
        assert!(config.fences_on_both_sides());
    }

    #[test]
    fn what_was_asked_for_is_in_force_but_for_the_rings_that_the_job_has() {
        let mut settings = Overrides::default();
        settings.set(VariableId::CopyEngine, OverrideValue::Number(3), ValueSource::Environment);
        settings.set(VariableId::RingCells, OverrideValue::Number(8), ValueSource::Environment);
        let config = Config::new(&settings, HERE).expect("good");
        assert_eq!(config.copy(), CopyChoice::Halves);
        let in_force = config.in_force();
        assert!(in_force.contains(&("PERUSAL_COPY_ENGINE", "halves".into())));
        assert!(in_force.contains(&("PERUSAL_RING_CELLS", "256".into())));
        assert_eq!(config.origin(VariableId::RingCells), ValueSource::Default);
        assert_eq!(config.origin(VariableId::CopyEngine), ValueSource::Environment);
        assert!(in_force.iter().all(|(name, value)| *name != "PERUSAL_BIND_TO" && !value.is_empty()));
    }
}
