//! The values in force.

use super::copy_engines::CopyChoice;
use super::job_shape::JobShape;
use super::overrides::{Overrides, ValueSource};
use super::table::{COUNT, EAGER, NEVER, VARIABLES, VariableId, most_eager};
use super::variable::{Domain, Settable};
use crate::error::Result;
use crate::sync::{AtomicU8, AtomicU64, Ordering};
use core::time::Duration;
use num_enum::FromPrimitive;

/// Why a variable was not given a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// The variable can have no such value.
    Value,
    /// The variable cannot be changed while a collective operation is under way.
    NotNow,
    /// The variable cannot be changed any more in this process.
    Never,
}

/// The values in force in one engine. Any thread may change one at any time.
#[derive(Debug)]
pub struct Config {
    numbers: [AtomicU64; COUNT],
    sources: [AtomicU8; COUNT],
    texts: Vec<(VariableId, String)>,
    shape: JobShape,
    /// Most bytes of an eager message, where rings of other jobs are in use.
    most_eager: AtomicU64,
    /// See [`Self::eager_from_anywhere`].
    eager_from_anywhere: AtomicU64,
}

impl Config {
    /// Takes the values of `overrides`; the others follow from the job.
    ///
    /// # Errors
    /// [`crate::Error::Other`] that names the variable, its value and what it may be.
    pub fn new(overrides: &Overrides, shape: JobShape) -> Result<Self> {
        let config = Self {
            numbers: core::array::from_fn(|_| AtomicU64::new(0)),
            sources: core::array::from_fn(|_| AtomicU8::new(0)),
            texts: VARIABLES
                .iter()
                .filter(|variable| matches!(variable.domain, Domain::Text))
                .map(|variable| (variable.id, overrides.text(variable.id).to_owned()))
                .collect(),
            shape,
            most_eager: AtomicU64::new(u64::MAX),
            eager_from_anywhere: AtomicU64::new(0),
        };
        for variable in &VARIABLES {
            // The job's memory has been made: its rings have the sizes that they have.
            let number = match variable.settable {
                Settable::BeforeJob => (variable.default)(&shape),
                _ => overrides.resolve(variable.id, &shape)?,
            };
            let is_as_asked = overrides.number(variable.id).is_none_or(|asked| asked == number);
            let source = if is_as_asked { overrides.source(variable.id) } else { ValueSource::Default };
            config.put(variable.id, number, source);
        }
        Ok(config)
    }

    fn put(&self, id: VariableId, number: u64, source: ValueSource) {
        // Relaxed, here and in `number`: each value stands for itself; nothing else is read because of it.
        self.numbers[id as usize].store(number, Ordering::Relaxed);
        self.sources[id as usize].store(source as u8, Ordering::Relaxed);
        if matches!(id, VariableId::EagerLimit | VariableId::CopyDirectFrom) {
            let eager = self.number(VariableId::EagerLimit);
            let is_asked = self.source(VariableId::EagerLimit) != ValueSource::Default;
            let direct_from = self.number(VariableId::CopyDirectFrom).max(EAGER + 1);
            let most = if is_asked { u64::MAX } else { direct_from - 1 };
            self.eager_from_anywhere.store(eager.min(most), Ordering::Relaxed);
        }
    }

    /// Returns a value in force; of a choice, its item's value.
    #[inline(always)]
    #[must_use]
    pub fn number(&self, id: VariableId) -> u64 {
        self.numbers[id as usize].load(Ordering::Relaxed)
    }

    /// Returns a text in force.
    #[must_use]
    pub fn text(&self, id: VariableId) -> &str {
        self.texts.iter().find(|(of, _)| *of == id).map_or("", |(_, text)| text)
    }

    /// Returns where a value in force came from.
    #[must_use]
    pub fn source(&self, id: VariableId) -> ValueSource {
        ValueSource::from_primitive(self.sources[id as usize].load(Ordering::Relaxed))
    }

    /// Returns what defaults and ranges follow from.
    #[must_use]
    pub fn shape(&self) -> &JobShape {
        &self.shape
    }

    /// Gives a variable another value. `in_collective` says that a collective operation is under way.
    ///
    /// # Errors
    /// [`Refusal`]; nothing has changed then.
    pub fn change(
        &self,
        id: VariableId,
        number: u64,
        in_collective: bool,
    ) -> core::result::Result<(), Refusal> {
        let variable = id.variable();
        match variable.settable {
            Settable::Never | Settable::BeforeJob | Settable::BeforeInit => return Err(Refusal::Never),
            Settable::BetweenCollectives if in_collective => return Err(Refusal::NotNow),
            Settable::Always | Settable::BetweenCollectives => {}
        }
        // Relaxed: as in `put`.
        let bounded = id == VariableId::EagerLimit && number > self.most_eager.load(Ordering::Relaxed);
        if bounded || !variable.allows(number, &self.shape) {
            return Err(Refusal::Value);
        }
        self.put(id, number, ValueSource::Tool);
        Ok(())
    }

    /// Lowers the limit of eager messages to what a ring of a job of this shape takes, too,
    /// now and when it is set again.
    pub fn bound_eager_limit(&self, shape: JobShape) {
        let most = most_eager(&shape);
        // Relaxed: as in `put`.
        self.most_eager.fetch_min(most, Ordering::Relaxed);
        if self.number(VariableId::EagerLimit) > most {
            self.put(VariableId::EagerLimit, most, ValueSource::Tool);
        }
    }

    /// Largest eager payload in bytes.
    #[inline(always)]
    #[must_use]
    pub fn eager_limit(&self) -> usize {
        self.number(VariableId::EagerLimit) as usize
    }

    /// Largest eager payload in bytes wherever it lies. Longer ones from the shared heap are copied from there, from
    /// 16 KiB on, unless somebody has said what is to be eager.
    #[inline(always)]
    #[must_use]
    pub fn eager_from_anywhere(&self) -> usize {
        // Relaxed: as in `put`. Of two threads that change what it follows from, the last to store it may not have seen
        // the other's value; either was asked for.
        self.eager_from_anywhere.load(Ordering::Relaxed) as usize
    }

    /// Largest payload in bytes that is sent in eager fragments.
    #[inline]
    #[must_use]
    pub fn fragments_limit(&self) -> usize {
        self.number(VariableId::TrainLimit) as usize
    }

    /// How large messages are copied.
    #[inline]
    #[must_use]
    pub fn copy(&self) -> CopyChoice {
        CopyChoice::of(self.number(VariableId::CopyEngine))
    }

    /// Bytes from which a receiver reads the sender's memory, and from which each side copies a half.
    #[inline]
    #[must_use]
    pub fn copy_from(&self) -> [usize; 2] {
        [VariableId::CopyReadFrom, VariableId::CopyHalvesFrom].map(|id| at_least(self.number(id)))
    }

    /// Bytes from which a message in the shared heap is copied once.
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

    /// Messages after which a buffer is remapped into the shared heap; `None` for never.
    #[inline]
    #[must_use]
    pub fn remap_after(&self) -> Option<u64> {
        Some(self.number(VariableId::CopyRemapAfter)).filter(|after| *after != NEVER)
    }

    /// Bytes on their way to this rank in chunks beyond which they are written past the cache.
    #[inline]
    #[must_use]
    pub fn uncached_from(&self) -> u64 {
        match self.number(VariableId::CopyUncachedFrom) {
            NEVER => u64::MAX,
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

    /// How often a receive polls its sender's ring before it takes the slow path: for a part of `spin`. Where ranks
    /// outnumber CPUs it yields then, so for twice as long: two ranks that talk must not miss each other.
    #[inline(always)]
    #[must_use]
    pub fn ring_polls(&self) -> u32 {
        // A poll that finds nothing takes about ten nanoseconds.
        let polls = if self.shape().is_oversubscribed() { 200 } else { 50 };
        (self.number(VariableId::SpinUs) * polls).clamp(1, 5_000) as u32
    }

    /// How often a waiting rank gives its CPU away before it sleeps.
    #[inline]
    #[must_use]
    pub fn yields(&self) -> u32 {
        self.number(VariableId::Yields) as u32
    }

    /// How long a sleep lasts at most. After it, a rank checks whether its peers are alive.
    #[inline]
    #[must_use]
    pub fn longest_sleep(&self) -> Duration {
        Duration::from_millis(self.number(VariableId::NapMs))
    }

    /// How long MPI_Comm_connect waits for MPI_Comm_accept at most; zero for ever.
    #[must_use]
    pub fn connect_timeout(&self) -> Duration {
        Duration::from_secs(self.number(VariableId::ConnectTimeout))
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

    /// Bytes from which collectives copy out of the other members' memory.
    #[inline]
    #[must_use]
    pub fn coll_direct_from(&self) -> usize {
        at_least(self.number(VariableId::CollDirectFrom))
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

    /// Returns a value in force as people write it.
    #[must_use]
    pub fn show(&self, id: VariableId) -> String {
        let variable = id.variable();
        match variable.domain {
            Domain::Text => self.text(id).to_owned(),
            _ => variable.show(self.number(id)),
        }
    }

    /// Returns environment name and value in force of every variable but empty texts.
    #[must_use]
    pub fn in_force(&self) -> Vec<(&'static str, String)> {
        let all = VARIABLES.iter().map(|variable| (variable.environment, self.show(variable.id)));
        all.filter(|(_, value)| !value.is_empty()).collect()
    }
}

/// A threshold in bytes; [`NEVER`] is beyond all messages.
#[inline]
fn at_least(threshold: u64) -> usize {
    if threshold >= NEVER { usize::MAX } else { threshold as usize }
}

#[cfg(test)]
mod tests {
    use super::super::overrides::OverrideValue;
    use super::*;

    const HERE: JobShape = JobShape {
        ranks: 4,
        usable_cpus: 2,
        ring_cells: 256,
        ring_bulk: 256 << 10,
        sender_fences: true,
        heap: 0,
        streams: false,
    };

    #[test]
    fn every_variable_is_named_once_and_its_default_is_allowed() {
        for (index, variable) in VARIABLES.iter().enumerate() {
            assert_eq!(variable.id as usize, index);
            assert_eq!(variable.environment, format!("PERUSAL_{}", variable.name.to_uppercase()));
            assert!(VARIABLES[..index].iter().all(|other| other.name != variable.name));
            let default = (variable.default)(&HERE);
            assert!(
                matches!(variable.domain, Domain::Text) || variable.allows(default, &HERE),
                "{}",
                variable.name
            );
            assert!(variable.name.is_ascii() && !variable.what.is_empty());
        }
    }

    #[test]
    fn where_writers_learn_to_go_past_the_cache_longer_messages_go_through_rings() {
        use VariableId::{CollDirectFrom, CopyHalvesFrom, CopyReadFrom, EagerLimit, TrainLimit};
        let default = |id: VariableId, shape: &JobShape| (id.variable().default)(shape);
        let a_cpu_each = JobShape { usable_cpus: 4, ..HERE };
        let streams = JobShape { streams: true, ..a_cpu_each };
        for id in [CopyReadFrom, CopyHalvesFrom] {
            assert_eq!(default(id, &a_cpu_each), default(EagerLimit, &a_cpu_each), "{id:?}");
        }
        assert_eq!(default(CollDirectFrom, &a_cpu_each), 8 << 10);
        for id in [CopyReadFrom, CopyHalvesFrom] {
            assert_eq!(default(id, &streams), 1 + default(TrainLimit, &streams), "{id:?}");
        }
        assert_eq!(default(CollDirectFrom, &streams), 64 << 10);
        let eager = [&a_cpu_each, &streams, &JobShape { streams: true, ..HERE }, &HERE];
        assert_eq!(eager.map(|shape| default(EagerLimit, shape)), [16384, 32767, 32767, 16384]);
        for (usable_cpus, ring_fulls) in [(2, 4), (1, 1)] {
            let shared = JobShape { ranks: 8, streams: true, usable_cpus, ..HERE };
            let in_turn = 1 + ring_fulls * u64::from(HERE.ring_bulk);
            assert_eq!([CopyReadFrom, CollDirectFrom].map(|id| default(id, &shared)), [in_turn; 2]);
            assert_eq!(default(CopyHalvesFrom, &shared), NEVER);
        }
    }

    #[test]
    fn where_ranks_share_cpus_what_the_ring_takes_unasked_is_not_announced() {
        let read_from = VariableId::CopyReadFrom.variable().default;
        for (ranks, ring_bulk, from) in [(4, 256, 65537), (8, 256, 65537), (16, 64, 32769), (64, 32, 32768)] {
            let shape = JobShape { ranks, usable_cpus: 2, ring_bulk: ring_bulk << 10, ..HERE };
            assert_eq!(read_from(&shape), from, "{ranks}");
        }
    }

    #[test]
    fn a_change_is_seen_at_once_and_a_wrong_one_changes_nothing() {
        let config = Config::new(&Overrides::default(), HERE).expect("defaults");
        assert_eq!(config.spin(), Duration::from_micros(1), "oversubscribed");
        assert_eq!(config.change(VariableId::SpinUs, 7, false), Ok(()));
        assert_eq!(
            (config.spin(), config.source(VariableId::SpinUs)),
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
    fn what_is_eager_wherever_it_lies_is_shorter_than_what_is_copied_from_the_heap() {
        let config =
            Config::new(&Overrides::default(), JobShape { streams: true, ..HERE }).expect("defaults");
        let change = |id, bytes| config.change(id, bytes, false).expect("in range");
        assert_eq!((config.eager_limit(), config.eager_from_anywhere()), (32_767, 16 << 10));
        for (direct_from, eager) in [(4096, 16 << 10), (20_000, 19_999), (NEVER, 32_767)] {
            change(VariableId::CopyDirectFrom, direct_from);
            assert_eq!(config.eager_from_anywhere(), eager, "{direct_from}");
        }
        change(VariableId::CopyDirectFrom, 4096);
        change(VariableId::EagerLimit, 60_000);
        assert_eq!(config.eager_from_anywhere(), 60_000, "as it was asked for");
    }

    #[test]
    fn what_was_asked_for_is_in_force_but_for_the_rings_that_the_job_has() {
        let mut overrides = Overrides::default();
        overrides.set(VariableId::CopyEngine, OverrideValue::Number(3), ValueSource::Environment);
        overrides.set(VariableId::RingCells, OverrideValue::Number(8), ValueSource::Environment);
        let config = Config::new(&overrides, HERE).expect("good");
        assert_eq!(config.copy(), CopyChoice::Halves);
        let in_force = config.in_force();
        assert!(in_force.contains(&("PERUSAL_COPY_ENGINE", "halves".into())));
        assert!(in_force.contains(&("PERUSAL_RING_CELLS", "256".into())));
        assert_eq!(config.source(VariableId::RingCells), ValueSource::Default);
        assert_eq!(config.source(VariableId::CopyEngine), ValueSource::Environment);
        assert!(in_force.iter().all(|(name, value)| *name != "PERUSAL_BIND_TO" && !value.is_empty()));
    }
}
