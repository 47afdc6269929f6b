//! The kind of algorithm by which members perform an operation: in rounds of their team, in one step, or by messages.
//! This is the one place that selects it; `docs/collectives.md` shows it as a table.
//!
//! All members must select the same kind, so it depends only on what all of them know: the operation, its bytes, the
//! members' number, and control variables that are equal in all ranks.

use super::capacity::FEW_MEMBERS;
use super::{TeamCapacity, Width};
use crate::coll::selection::variable;
use crate::events::Collective;
use crate::team::PAYLOAD;
use crate::variables::algorithms::AUTO;
use crate::variables::{ValueSource, VariableId};
use core::ops::RangeInclusive;

/// How the members of a team perform an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AlgorithmKind {
    /// In rounds: through slots what fits into them, else through the bulk; by messages, if that has no room.
    Rounds,
    /// In one step ([`super::direct`]), if the kernel allows it, else in rounds.
    OneStep,
    /// In one step, if the buffers of all members lie in the shared heap, else in rounds.
    OneStepInHeap,
    /// By messages.
    Messages,
}

/// Bytes of a block that two members with a CPU each exchange by messages, in an allgather or alltoall. Shorter ones
/// take rounds. Longer ones, which each have to copy while the other does, take no longer in one step.
const EXCHANGED_BY_PAIR: RangeInclusive<usize> = 32 << 10..=128 << 10;

/// Most bytes of a block that one of two such members has for the other, and sends as a message. Each message is copied
/// as its bytes ask for ([`crate::engine::Contents`]): of what a program has just stored, and then looks at, one step,
/// which is the kernel's, takes up to twice as long.
const MOVED_BY_PAIR: usize = 256 << 10;

/// Bytes of a block from which members that have a CPU each do not scatter or gather it by messages, though they do so
/// with shorter ones: as many as a message has from which it leaves the rings.
const LEAVES_RINGS: usize = 64 << 10;

/// Bytes of a block from which such members gather it by messages: the root has them all as soon as through the bulk,
/// and the others go on at once. (Eight ranks, 32 KiB: the last has done after 24 microseconds, through the bulk after
/// 26, the mean member after 4.1 and 7.3; 8 KiB: 9.2 and 1.5, in one step 15.)
///
/// They scatter by messages whatever fits into no slot: each member goes on when it has its own, and the root need not
/// wait for the slowest. (Sixteen ranks, one scatter of 2 KiB: its members have it after 7.0 microseconds in rounds,
/// after 4.4 by messages; one behind the other: 6.3 and 1.8. A gather of 2 KiB stays in rounds: its root has all after
/// 5 microseconds, by messages after 10.)
const GATHERED: usize = 8 << 10;

/// Bytes of a block from which a few members that share CPUs scatter by messages: a round is a turn of every member,
/// where one whose message is there already goes on. (Four ranks on two CPUs, 8 KiB: 2.7 microseconds instead of 4.2;
/// 16 KiB: 3.2 instead of 6.1, a gather 3.5 instead of 5.3. Among more, rings fill; eight take 0.6 to 1.4 times as long
/// by messages, sixteen 0.8 to 1.5.)
const SCATTERED_IN_TURN: usize = 4 << 10;

/// Bytes of a block from which a gather that is not copied in one step is messages again, though it would fit into the
/// bulk: of these, too, there is one copy.
const GATHERED_LONG: usize = 128 << 10;

/// Bytes of a block up to which members that have a CPU each do not copy it out of one member's memory, or into it, all
/// at once: the kernel counts the users of every page, and these counts go from CPU to CPU. (Eight ranks, 256 KiB: a
/// scatter takes 97 microseconds, by messages 36. A broadcast, whose readers use the same pages, takes 177, through the
/// bulk 42, and of 1 MiB 705 and 145.)
const CONTENDED: usize = 1 << 20;

/// Bytes of all blocks together from which that holds: fewer are copied before many members meet.
const CONTENDED_IN_ALL: usize = 128 << 10;

/// Bytes of a block of an alltoall from which it is messages where ranks outnumber CPUs: shorter ones take rounds.
const EXCHANGED: usize = 8 << 10;

/// Bytes of all blocks of all members together up to which that holds: they lie in the rings all at once, and come out
/// of the nearest caches. Longer ones are copied in one step. (Four ranks on two CPUs, 32 KiB: 19 to 21 microseconds,
/// in one step 26 to 31; eight ranks, 8 KiB: 34, and 41 to 50; 32 KiB: 92 to 225, and 96 to 121;
/// sixteen ranks, 32 KiB: 2,150, and 750 to 1,080.)
const EXCHANGED_IN_ALL: usize = 512 << 10;

/// Bytes from which a scan goes through the team though ranks outnumber CPUs:
/// its messages would take several fragments each.
const CHAINED_BELOW: usize = 16 << 10;

/// Bytes from which reductions of two members, of which each has a result of its own, are messages there.
const STREAMED_RESULTS: usize = 64 << 10;

/// How much longer than other data a slice must be to be reduced in one step: members meet more often.
const SLICES: usize = 4;

/// The same, of a reduction whose results others want, which they would fetch from the bulk.
const SLICES_FOR_ALL: usize = 2;

/// Bytes of operands, or of a block, from which rounds give way to one step, if all buffers lie in the shared heap.
pub(super) const IN_HEAP: usize = 32 << 10;

/// The same of operands where writers may go past the cache: what two members or four show in the bulk costs them less
/// there. (Two ranks, allreduce of 48 KiB: 5.1 microseconds in the heap, 3.9 in rounds; 192 KiB: 12.7 and 16.7; four
/// ranks, 17.7 and 16.3, 34 and 47.)
const STREAMED_IN_HEAP: usize = 96 << 10;

/// Bytes of a member's slice of such operands, twice as many of those that take few rounds; and of a block of an
/// allgather for each member.
const SLICE_IN_HEAP: usize = 8 << 10;

/// Bytes of such a broadcast for each member: its root otherwise need not wait for the others.
const BCAST_IN_HEAP: usize = 64 << 10;

/// Bytes of data that have changed from which that holds for them, too.
const CHANGED_IN_HEAP: usize = 512 << 10;

/// The same where ranks outnumber CPUs.
const CHANGED_IN_HEAP_IN_TURN: usize = 128 << 10;

/// The same of a broadcast.
const CHANGED_BCAST_IN_HEAP: usize = 2 << 20;

impl TeamCapacity<'_> {
    /// Returns the kind of algorithm for an operation. `bytes` are those of one block of a gather, scatter, allgather
    /// (the mean, if blocks differ) or alltoall, else those of a member's operands or of a broadcast.
    #[must_use]
    pub fn algorithm_kind(&self, operation: Collective, bytes: usize) -> AlgorithmKind {
        if self.goes_by_messages(operation, bytes) {
            AlgorithmKind::Messages
        } else if self.bytes_of_step(operation, bytes) >= self.config.coll_direct_from() {
            AlgorithmKind::OneStep
        } else {
            self.kind_of_rounds(operation, bytes)
        }
    }

    /// Returns the kind for what takes rounds, unless all buffers lie in the shared heap.
    fn kind_of_rounds(&self, operation: Collective, bytes: usize) -> AlgorithmKind {
        if self.may_be_in_heap(operation, bytes) {
            AlgorithmKind::OneStepInHeap
        } else {
            AlgorithmKind::Rounds
        }
    }

    /// Returns the kind of algorithm for a reduce-scatter of `len` bytes of operands, of which a member gets `longest`
    /// at most. Where ranks outnumber CPUs it takes rounds, as other reductions, unless one member gets so much more
    /// than others that rounds would show little of what there is room for.
    #[must_use]
    pub fn kind_for_reduce_scatter(&self, len: usize, longest: usize) -> AlgorithmKind {
        let is_even = longest.saturating_mul(self.size) / 2 <= len;
        match self.algorithm_kind(Collective::ReduceScatter, len) {
            AlgorithmKind::OneStep if is_even && self.is_oversubscribed() && self.is_threshold_ours() => {
                self.kind_of_rounds(Collective::ReduceScatter, len)
            }
            kind => kind,
        }
    }

    /// Returns whether an operation is messages: the ring takes several, one behind the other, where a round waits for
    /// those before it. What fits into a slot is not, but for scans: in a slot, members that disagree about the
    /// operation see it. If somebody has asked for an algorithm, none is.
    pub(super) fn goes_by_messages(&self, operation: Collective, bytes: usize) -> bool {
        if variable(operation).is_some_and(|id| self.config.number(id) != AUTO) {
            return false;
        }
        let is_pair = self.size == 2;
        let several_apart = self.size > 2 && !self.is_oversubscribed();
        let shape = self.config.shape();
        let few_in_turn =
            (3..=FEW_MEMBERS).contains(&self.size) && shape.is_oversubscribed() && self.is_threshold_ours();
        match operation {
            // Only one of them waits.
            Collective::Bcast | Collective::Scatter | Collective::Gather | Collective::Reduce if is_pair => {
                bytes > PAYLOAD && bytes < self.end_of_messages_of_pair(operation)
            }
            Collective::Allgather | Collective::Alltoall if is_pair => {
                self.is_pair_apart() && !self.streams() && EXCHANGED_BY_PAIR.contains(&bytes)
            }
            Collective::Scatter if several_apart => bytes > PAYLOAD && bytes < LEAVES_RINGS,
            Collective::Gather if several_apart && self.is_threshold_ours() => {
                (GATHERED..LEAVES_RINGS).contains(&bytes) || (GATHERED_LONG..CONTENDED).contains(&bytes)
            }
            Collective::Scatter if few_in_turn => bytes >= SCATTERED_IN_TURN,
            Collective::Gather if few_in_turn => {
                let end = if shape.streams { self.config.coll_direct_from() } else { LEAVES_RINGS };
                (GATHERED..end).contains(&bytes)
            }
            Collective::Alltoall => self.is_exchanged(bytes),
            // The first has nothing to wait for, and the exclusive one of the second is what the first has.
            Collective::Scan | Collective::Exscan if is_pair => {
                bytes < CHAINED_BELOW
                    || operation == Collective::Exscan
                    || bytes > STREAMED_RESULTS && self.streams()
            }
            Collective::Scan | Collective::Exscan => self.is_oversubscribed() && bytes < CHAINED_BELOW,
            Collective::ReduceScatter if is_pair => bytes > STREAMED_RESULTS && self.streams(),
            _ => false,
        }
    }

    /// Returns up to how many bytes what one of two members has for the other is a message.
    fn end_of_messages_of_pair(&self, operation: Collective) -> usize {
        match operation {
            _ if self.streams() => usize::MAX,
            Collective::Reduce => self.config.coll_direct_from(),
            _ if self.is_pair_apart() => self.config.coll_direct_from().max(MOVED_BY_PAIR + 1),
            _ => self.config.coll_direct_from(),
        }
    }

    /// Returns whether these are two members that have a CPU each, and nobody has said how they move blocks.
    fn is_pair_apart(&self) -> bool {
        self.size == 2 && !self.is_oversubscribed() && self.is_threshold_ours()
    }

    /// Returns how many bytes are moved in one step at least.
    pub(super) fn least_in_one_step(&self) -> usize {
        self.config.coll_direct_from().max(if self.is_pair_apart() { *EXCHANGED_BY_PAIR.start() } else { 0 })
    }

    /// Returns whether an alltoall of blocks of `block` bytes is messages because ranks outnumber CPUs ([`EXCHANGED`]).
    fn is_exchanged(&self, block: usize) -> bool {
        block >= EXCHANGED
            && self.size > 2
            && block.saturating_mul(self.size).saturating_mul(self.size) <= EXCHANGED_IN_ALL
            && self.is_oversubscribed()
            && self.is_threshold_ours()
    }

    /// Returns the bytes of an operation that must reach `coll_direct_from` for one step: 0, if it is never taken.
    fn bytes_of_step(&self, operation: Collective, bytes: usize) -> usize {
        let (oversubscribed, ours) = (self.is_oversubscribed(), self.is_threshold_ours());
        match operation {
            _ if self.size == 2 && self.streams() => 0,
            Collective::Bcast
            | Collective::Scatter
            | Collective::Gather
            | Collective::Allgather
            | Collective::Alltoall
                if bytes < self.least_in_one_step() =>
            {
                0
            }
            // The bulk has each block once for all.
            Collective::Bcast | Collective::Scatter | Collective::Allgather if oversubscribed && ours => 0,
            Collective::Bcast if self.size > 2 && ours => 0,
            Collective::Gather | Collective::Scatter if !oversubscribed && ours => {
                let contended =
                    self.size > 2 && bytes < CONTENDED && bytes.saturating_mul(self.size) >= CONTENDED_IN_ALL;
                if contended { 0 } else { bytes }
            }
            // Operands in the bulk are in the cache of who reduces them.
            Collective::Reduce | Collective::Allreduce if (self.size == 2 || oversubscribed) && ours => 0,
            Collective::Reduce | Collective::Allreduce => self.slice(bytes, SLICES_FOR_ALL),
            // What does not fit into the bulk would go by messages, and several times.
            Collective::ReduceScatter | Collective::Scan | Collective::Exscan
                if bytes <= self.room_among_all(Width::One) =>
            {
                self.slice(bytes, SLICES)
            }
            _ => bytes,
        }
    }

    /// Returns whether an operation that takes rounds is done in one step if all buffers lie in the shared heap: for
    /// then nobody copies anything into the bulk. Where more than two members have a CPU each, all would read one
    /// member's memory at a time.
    fn may_be_in_heap(&self, operation: Collective, bytes: usize) -> bool {
        use Collective::{Allgather, Allreduce, Alltoall, Bcast, Exscan, Reduce, ReduceScatter, Scan};
        let least = match operation {
            Reduce | Allreduce => SLICE_IN_HEAP * self.size,
            ReduceScatter => 2 * SLICE_IN_HEAP * self.size,
            Scan | Exscan if self.size > 2 => 2 * SLICE_IN_HEAP * self.size,
            Allgather if self.size > 2 => SLICE_IN_HEAP * self.size,
            Alltoall if self.size > 2 => IN_HEAP,
            Bcast if self.size > 2 => BCAST_IN_HEAP * self.size,
            _ => return false,
        };
        let reduces = matches!(operation, Reduce | Allreduce | ReduceScatter | Scan | Exscan);
        let least_of_any = if reduces && self.config.shape().streams { STREAMED_IN_HEAP } else { IN_HEAP };
        bytes >= least.max(least_of_any)
            && (self.size == 2 || self.is_oversubscribed())
            && self.is_threshold_ours()
    }

    /// Returns from how many bytes on that is done though they have changed since the operation was last performed:
    /// somebody has stored there, so that they lie in that member's cache.
    pub(super) fn least_changed_in_heap(&self, operation: Collective) -> usize {
        match operation {
            Collective::Bcast => CHANGED_BCAST_IN_HEAP,
            _ if self.is_oversubscribed() => CHANGED_IN_HEAP_IN_TURN,
            _ => CHANGED_IN_HEAP,
        }
    }

    /// Returns the bytes by which a member's slice of `len` bytes of operands is judged:
    /// it must be `times` as long as what is only moved.
    fn slice(&self, len: usize, times: usize) -> usize {
        let shape = self.config.shape();
        // Where the bulk is filled past the cache, what is copied in one step is long anyway.
        let times = if shape.streams && !shape.is_oversubscribed() { 1 } else { times };
        len / self.size / times
    }

    /// Returns whether ranks outnumber CPUs.
    fn is_oversubscribed(&self) -> bool {
        self.config.shape().is_oversubscribed()
    }

    /// Returns whether each rank has a CPU, and rings are filled past the cache.
    fn streams(&self) -> bool {
        let by_default = self.config.source(VariableId::CollDirectFrom) == ValueSource::Default;
        by_default && self.config.shape().streams && !self.is_oversubscribed()
    }

    /// Returns whether nobody has set the control variable `coll_direct_from`: a user who has set it gets one step from
    /// there on.
    fn is_threshold_ours(&self) -> bool {
        let source = self.config.source(VariableId::CollDirectFrom);
        matches!(source, ValueSource::Default | ValueSource::TuneFile)
    }
}

#[cfg(all(test, not(perusal_loom)))]
mod tests {
    use super::*;
    use crate::variables::{Config, JobShape, Overrides};
    use Collective::{Alltoall, Bcast, Exscan, Gather, ReduceScatter, Scan, Scatter};

    fn with_capacity<R>(size: usize, usable_cpus: u32, f: impl FnOnce(TeamCapacity<'_>) -> R) -> R {
        with_capacity_of(size, usable_cpus, false, f)
    }

    fn with_capacity_of<R>(
        size: usize,
        usable_cpus: u32,
        streams: bool,
        f: impl FnOnce(TeamCapacity<'_>) -> R,
    ) -> R {
        let shape = JobShape {
            ranks: size as u32,
            usable_cpus,
            ring_cells: 64,
            ring_bulk: 1 << 16,
            sender_fences: false,
            heap: 0,
            streams,
        };
        let config = Config::new(&Overrides::default(), shape).unwrap();
        f(TeamCapacity { config: &config, size, part_bytes: 1 << 20, direct: true })
    }

    fn kind(operation: Collective, size: usize, usable_cpus: u32, bytes: usize) -> AlgorithmKind {
        with_capacity(size, usable_cpus, |team| team.algorithm_kind(operation, bytes))
    }

    fn by_messages(operation: Collective, size: usize, usable_cpus: u32, bytes: usize) -> bool {
        kind(operation, size, usable_cpus, bytes) == AlgorithmKind::Messages
    }

    #[test]
    fn many_members_that_share_cpus_scatter_through_a_part_what_would_fill_rings() {
        for (size, cpus, bytes, serves) in [
            (8, 2, 64 << 10, true),
            (8, 2, 128 << 10, false),
            (8, 2, 16 << 10, true),
            (16, 2, 32 << 10, true),
            (16, 2, 64 << 10, false),
            (5, 2, 128 << 10, false),
            (4, 2, 64 << 10, false),
            (4, 2, 32 << 10, false),
            (8, 8, 32 << 10, false),
        ] {
            let may = with_capacity(size, cpus, |team| team.may_serve(Scatter, bytes));
            assert_eq!(may, serves, "{size} members, {cpus} CPUs, {bytes} bytes");
        }
    }

    #[test]
    fn scatters_and_gathers_go_by_messages_where_each_of_several_ranks_has_a_cpu() {
        for (bytes, goes) in
            [(PAYLOAD, false), (PAYLOAD + 1, true), (LEAVES_RINGS - 1, true), (LEAVES_RINGS, false)]
        {
            assert_eq!(by_messages(Scatter, 3, 3, bytes), goes, "{bytes}");
        }
        for (bytes, goes) in [
            (GATHERED - 1, false),
            (GATHERED, true),
            (LEAVES_RINGS - 1, true),
            (LEAVES_RINGS, false),
            (GATHERED_LONG - 1, false),
            (GATHERED_LONG, true),
            (CONTENDED - 1, true),
            (CONTENDED, false),
        ] {
            assert_eq!(by_messages(Gather, 3, 3, bytes), goes, "{bytes}, gather");
        }
    }

    #[test]
    fn a_few_members_that_share_cpus_scatter_and_gather_by_messages() {
        for (operation, bytes, goes) in [
            (Scatter, SCATTERED_IN_TURN - 1, false),
            (Scatter, SCATTERED_IN_TURN, true),
            (Scatter, LEAVES_RINGS, true),
            (Gather, GATHERED - 1, false),
            (Gather, GATHERED, true),
            (Gather, LEAVES_RINGS - 1, true),
            (Gather, LEAVES_RINGS, false),
            (Gather, GATHERED_LONG, false),
        ] {
            for size in [3, 4] {
                assert_eq!(by_messages(operation, size, 2, bytes), goes, "{size}, {operation:?}, {bytes}");
            }
            assert!(!by_messages(operation, 5, 2, bytes), "{operation:?}, {bytes}");
        }
        with_capacity_of(4, 2, true, |team| {
            let one_step = team.config.coll_direct_from();
            for (bytes, goes) in [(LEAVES_RINGS, true), (one_step - 1, true), (one_step, false)] {
                assert_eq!(team.goes_by_messages(Gather, bytes), goes, "{bytes}, past the cache");
            }
        });
    }

    #[test]
    fn two_members_with_a_cpu_each_move_in_one_step_what_is_long() {
        use AlgorithmKind::{Messages, OneStep, Rounds};
        use Collective::{Allgather, Reduce};
        let (shortest, longest) = EXCHANGED_BY_PAIR.into_inner();
        for (operation, below, longest) in [
            (Bcast, Messages, MOVED_BY_PAIR),
            (Scatter, Messages, MOVED_BY_PAIR),
            (Gather, Messages, MOVED_BY_PAIR),
            (Allgather, Rounds, longest),
            (Alltoall, Rounds, longest),
        ] {
            assert_eq!(kind(operation, 2, 2, shortest - 1), below, "{operation:?}");
            for bytes in [shortest, longest] {
                assert_eq!(kind(operation, 2, 2, bytes), Messages, "{operation:?}, {bytes}");
            }
            assert_eq!(kind(operation, 2, 2, longest + 1), OneStep, "{operation:?}");
        }
        assert_eq!(kind(Reduce, 2, 2, (8 << 10) - 1), Messages);
        assert_eq!(kind(Reduce, 2, 2, 8 << 10), Rounds);
        assert_eq!(kind(Allgather, 3, 3, 8 << 10), OneStep);
    }

    #[test]
    fn members_that_share_cpus_exchange_messages_if_all_fit_into_a_cache() {
        for (size, block, does) in [
            (4, (8 << 10) - 1, false),
            (4, 8 << 10, true),
            (4, 32 << 10, true),
            (4, (32 << 10) + 1, false),
            (8, 8 << 10, true),
            (8, (8 << 10) + 1, false),
            (16, 8 << 10, false),
            (2, 8 << 10, false),
        ] {
            assert_eq!(by_messages(Alltoall, size, 2, block), does, "{size} ranks, {block}");
            assert!(!by_messages(Alltoall, size, 16, block), "{size} ranks that have a CPU each, {block}");
        }
    }

    #[test]
    fn scans_go_along_a_chain_where_nobody_waits_longer_for_it() {
        for usable_cpus in [1, 16] {
            assert!(by_messages(Scan, 2, usable_cpus, CHAINED_BELOW - 1));
            assert!(!by_messages(Scan, 2, usable_cpus, CHAINED_BELOW));
            assert!(by_messages(Exscan, 2, usable_cpus, 1 << 30), "one message is all there is to do");
            assert_eq!(by_messages(Exscan, 3, usable_cpus, CHAINED_BELOW - 1), usable_cpus == 1);
            assert!(!by_messages(Exscan, 3, usable_cpus, CHAINED_BELOW));
        }
    }

    #[test]
    fn a_rank_alone_sends_nothing() {
        for operation in [Bcast, Scatter, Scan, ReduceScatter] {
            assert!(!by_messages(operation, 1, 3, 1 << 16), "{operation:?}");
        }
    }

    #[test]
    fn long_data_in_the_heap_takes_one_step_where_members_share_cpus_or_are_two() {
        use Collective::{Allgather, Allreduce, Gather, Reduce};
        let in_heap =
            |operation, size, cpus, bytes| kind(operation, size, cpus, bytes) == AlgorithmKind::OneStepInHeap;
        for (operation, size, least) in [
            (Reduce, 2, 32 << 10),
            (Allreduce, 4, 32 << 10),
            (Allreduce, 8, 64 << 10),
            (ReduceScatter, 4, 64 << 10),
            (Scan, 8, 128 << 10),
            (Exscan, 4, 64 << 10),
            (Allgather, 8, 64 << 10),
            (Bcast, 4, 256 << 10),
        ] {
            assert!(in_heap(operation, size, 2, least), "{operation:?}, {size} members");
            assert!(!in_heap(operation, size, 2, least - 1), "{operation:?}, {size} members, shorter");
            assert_eq!(
                in_heap(operation, size, 16, least),
                size == 2,
                "{operation:?}, {size} that have a CPU each"
            );
        }
        assert!(in_heap(Alltoall, 16, 2, 32 << 10));
        for (operation, size) in
            [(Scan, 2), (Exscan, 2), (Bcast, 2), (Allgather, 2), (Alltoall, 2), (Gather, 8)]
        {
            assert!(!in_heap(operation, size, 2, 1 << 20), "{operation:?}, {size} members");
        }
    }

    #[test]
    fn operands_in_the_heap_are_longer_where_rings_are_filled_past_the_cache() {
        use Collective::{Allgather, Allreduce};
        for (operation, size, least) in [
            (Allreduce, 2, 96 << 10),
            (Allreduce, 4, 96 << 10),
            (Allreduce, 16, 128 << 10),
            (ReduceScatter, 4, 96 << 10),
            (Scan, 8, 128 << 10),
            (Allgather, 4, 32 << 10),
            (Alltoall, 8, 32 << 10),
        ] {
            let in_heap = |bytes| {
                let kind = with_capacity_of(size, 2, true, |team| team.algorithm_kind(operation, bytes));
                kind == AlgorithmKind::OneStepInHeap
            };
            assert_eq!((in_heap(least), in_heap(least - 1)), (true, false), "{operation:?}, {size} members");
        }
    }

    #[test]
    fn what_has_changed_is_longer_where_it_takes_one_step() {
        use Collective::Reduce;
        let least =
            |size, cpus, operation| with_capacity(size, cpus, |team| team.least_changed_in_heap(operation));
        assert_eq!(least(2, 2, Reduce), 512 << 10);
        assert_eq!(least(4, 2, Reduce), 128 << 10);
        assert_eq!(least(4, 2, Bcast), 2 << 20);
    }
}
