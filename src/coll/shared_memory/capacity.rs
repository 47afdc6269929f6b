//! What a team has room for, which decides what it serves. All members get the same answers.

use super::Width;
use crate::coll::selection::variable;
use crate::events::Collective;
use crate::team::PAYLOAD;
use crate::variables::algorithms::AUTO;
use crate::variables::{Config, ValueSource, VariableId};

/// Bytes from which a scan goes through the team though ranks outnumber CPUs: its messages would take several fragments each.
const CHAINED_BELOW: usize = 16 << 10;

/// Bytes up to which one of two members sends the other a message, where rings are filled past the cache: what has come is sent on faster through
/// the ring's blocks than the kernel copies it.
const MESSAGES: usize = 512 << 10;

/// Bytes up to which reductions of two members of which each has a result of its own are rounds.
const SHOWN: usize = 64 << 10;

/// How much longer than other data a slice must be to be reduced in one step: members meet more often.
const SLICES: usize = 4;

/// The same, of a reduction whose results others want, which they would fetch from the bulk.
const SLICES_FOR_ALL: usize = 2;

/// Bytes of a block from which a scatter among more than two members that have a CPU each is rounds, or one step: as many as its messages have from which they leave the rings. The root of a shorter one sends messages: each member goes on when it has its own, and
/// the root need not wait for the slowest. (Sixteen ranks, one scatter of 2 KiB: its members have it after 7.0 microseconds in rounds, after 4.4 by messages; one
/// behind the other: 6.3 and 1.8. A gather stays in rounds: its root has all after 5 microseconds, by messages after 10.)
const SCATTERED: usize = 64 << 10;

/// Bytes of a block from which a gather among such members is messages, up to as many as a scatter: the root has them all as soon as through the bulk, and the others go on at once. (Eight ranks, 32 KiB: the last has
/// done after 24 microseconds, through the bulk after 26, the mean member after 4.1 and 7.3; 8 KiB: 9.2 and 1.5, in one step 15.)
const GATHERED: usize = 8 << 10;

/// Bytes of a block from which a gather that is not copied in one step is messages, though it would fit into the bulk: of these, too, there is one copy.
const GATHERED_LONG: usize = 128 << 10;

/// Bytes of a block up to which members that have a CPU each do not copy it out of one member's memory, or into it, all at once: the kernel counts the users of every page, and
/// these counts go from CPU to CPU. (Eight ranks, 256 KiB: a scatter takes 97 microseconds, by messages 36. A broadcast, whose readers use the same pages, takes 177, through the bulk
/// 42, and of 1 MiB 705 and 145.)
const CONTENDED: usize = 1 << 20;

/// Bytes of all blocks together from which that holds: fewer are copied before many members meet.
const CONTENDED_IN_ALL: usize = 128 << 10;

/// Bytes of a block of an alltoall from which it is messages where ranks outnumber CPUs: shorter ones take rounds.
const EXCHANGED: usize = 8 << 10;

/// Bytes of all blocks of all members together up to which that holds: they lie in the rings all at once, and come out of the nearest caches. Longer ones are copied in one step. (Four ranks on two CPUs,
/// 32 KiB: 19 to 21 microseconds, in one step 26 to 31; eight ranks, 8 KiB: 34, and 41 to 50; 32 KiB: 92 to 225, and 96 to 121; sixteen ranks, 32 KiB: 2,150, and 750 to 1,080.)
const EXCHANGED_IN_ALL: usize = 512 << 10;

/// What a team has room for.
#[derive(Clone, Copy)]
pub struct TeamCapacity<'a> {
    /// The job's variables.
    pub config: &'a Config,
    /// Members.
    pub size: usize,
    /// Bytes that a part of the bulk may have.
    pub part_bytes: usize,
    /// Whether the members can read each other's memory, as far as is known.
    pub direct: bool,
}

impl TeamCapacity<'_> {
    /// Bytes of each member that one round takes at most in which all show something.
    #[inline]
    pub(super) fn room_among_all(&self, width: Width) -> usize {
        (self.part_bytes * width as usize / self.size) & !63
    }

    /// Returns whether the team may serve an operation in which each member shows `shown` bytes, or copies `copied` bytes in one step.
    pub fn may_serve(&self, shown: usize, copied: usize) -> bool {
        let direct = self.direct && copied >= self.config.coll_direct_from();
        direct || shown <= PAYLOAD || shown <= self.room_among_all(Width::One)
    }

    /// Returns whether an operation in which one member has `bytes` bytes for each other, or they for it, is messages instead: the ring takes several, one
    /// behind the other, where a round waits for those before it. What fits into a slot or is copied in one step, is not: in a slot,
    /// members that disagree about the operation see it. A message of two members that only one waits for, or that is received where it is reduced, is copied
    /// faster at every length.
    pub fn goes_by_messages(&self, operation: Collective, bytes: usize) -> bool {
        let asked_for = variable(operation).is_some_and(|id| self.config.number(id) != AUTO);
        let by_default = self.config.source(VariableId::CollDirectFrom) == ValueSource::Default;
        let shape = self.config.shape();
        let streams = by_default && shape.streams && !shape.is_oversubscribed();
        let direct_from = self.config.coll_direct_from();
        let (above, below) = match operation {
            Collective::Scatter if self.size > 2 && !shape.is_oversubscribed() => (PAYLOAD, SCATTERED),
            Collective::Gather if self.size > 2 && !shape.is_oversubscribed() && bytes < SCATTERED => {
                (GATHERED - 1, if self.is_one_step_by_default() { SCATTERED } else { 0 })
            }
            Collective::Gather if self.size > 2 && self.avoids_one_step(operation, bytes) => {
                (GATHERED_LONG - 1, CONTENDED)
            }
            _ if self.size != 2 => (PAYLOAD, 0),
            Collective::ReduceScatter | Collective::Scan | Collective::Exscan => {
                (SHOWN, if streams { usize::MAX } else { 0 })
            }
            Collective::Reduce | Collective::Gather if streams => (PAYLOAD, usize::MAX),
            _ if streams => (PAYLOAD, MESSAGES.max(direct_from)),
            _ => (PAYLOAD, direct_from),
        };
        bytes > above && bytes < below && !asked_for
    }

    /// Returns the bytes by which blocks of an allgather are judged for that: 0 where ranks outnumber CPUs, because the bulk has each block once for all, unless somebody has
    /// set the control variable.
    pub(super) fn judged_of_allgather(&self, block: usize) -> usize {
        let once_for_all = self.is_one_step_by_default() && self.config.shape().is_oversubscribed();
        if once_for_all { 0 } else { block }
    }

    /// Returns the bytes by which operands of a scan are judged for that: a slice, if they fit into the bulk; what does not would go by messages, and several times.
    pub(super) fn judged_of_scan(&self, len: usize) -> usize {
        if len <= self.room_among_all(Width::One) { self.slice_in_one_step(len, SLICES) } else { len }
    }

    /// The same of a reduce-scatter of which a member gets `longest` bytes at most: 0 where ranks outnumber CPUs, as for [`Self::judged_of_reduction_in_slices`], unless somebody has set the control
    /// variable, or one member gets so much more than others that rounds would show little of what there is room for.
    pub(super) fn judged_of_reduce_scatter(&self, len: usize, longest: usize) -> usize {
        let rounds = self.is_one_step_by_default() && self.config.shape().is_oversubscribed();
        if rounds && longest.saturating_mul(self.size) / 2 <= len { 0 } else { self.judged_of_scan(len) }
    }

    /// Returns the bytes by which a member's slice of `len` bytes of operands is judged: it must be `times` as long as what is only moved.
    fn slice_in_one_step(&self, len: usize, times: usize) -> usize {
        let shape = self.config.shape();
        // Where the bulk is filled past the cache, what is copied in one step is long anyway.
        let times = if shape.streams && !shape.is_oversubscribed() { 1 } else { times };
        len / self.size / times
    }

    /// Returns the bytes by which a reduction is judged whose results one member wants, or all: 0 where ranks outnumber CPUs, because operands in the bulk are in the cache of who reduces them, and
    /// between two members.
    pub(super) fn judged_of_reduction_in_slices(&self, len: usize) -> usize {
        let rounds = self.size == 2 || self.config.shape().is_oversubscribed();
        if rounds { 0 } else { self.slice_in_one_step(len, SLICES_FOR_ALL) }
    }

    /// As [`Self::may_serve`], for data that one member has for the others or they for it.
    pub fn may_serve_one(&self, operation: Collective, shown: usize, copied: usize) -> bool {
        let copied_in_one_step = if self.avoids_one_step(operation, copied) { 0 } else { copied };
        !self.goes_by_messages(operation, copied) && self.may_serve(shown, copied_in_one_step)
    }

    /// Returns whether an operation in which one member has `bytes` bytes for each other, or they for it, had better not copy them in one step, though the kernel would:
    /// where all others would copy at once ([`CONTENDED`]), and where ranks outnumber CPUs and the root can leave its data in the bulk. Not if somebody has set the control variable.
    pub(super) fn avoids_one_step(&self, operation: Collective, bytes: usize) -> bool {
        let avoids = match operation {
            Collective::Bcast | Collective::Scatter if self.config.shape().is_oversubscribed() => true,
            Collective::Bcast => self.size > 2,
            Collective::Gather | Collective::Scatter if !self.config.shape().is_oversubscribed() => {
                self.size > 2 && bytes < CONTENDED && bytes * self.size >= CONTENDED_IN_ALL
            }
            _ => false,
        };
        avoids && self.is_one_step_by_default()
    }

    /// Returns whether nobody has set the control variable.
    pub(super) fn is_one_step_by_default(&self) -> bool {
        let source = self.config.source(VariableId::CollDirectFrom);
        matches!(source, ValueSource::Default | ValueSource::TuneFile)
    }

    /// Returns whether an alltoall of blocks of `block` bytes is messages, because ranks outnumber CPUs ([`EXCHANGED`]).
    fn exchanges(&self, block: usize) -> bool {
        block >= EXCHANGED
            && self.size > 2
            && block.saturating_mul(self.size).saturating_mul(self.size) <= EXCHANGED_IN_ALL
            && self.config.shape().is_oversubscribed()
            && self.is_one_step_by_default()
            && self.config.number(VariableId::CollAlltoall) == AUTO
    }

    /// Returns the bytes by which blocks of an alltoall are judged for one step: 0 where they are messages.
    pub(super) fn judged_of_alltoall(&self, block: usize) -> usize {
        if self.exchanges(block) { 0 } else { block }
    }

    /// Returns whether the team serves an alltoall of blocks of `block` bytes, if there is memory for it.
    pub fn serves_alltoall(&self, block: usize) -> bool {
        if self.exchanges(block) {
            return false;
        }
        let one = self.alltoall_piece(Width::One);
        // Tiny pieces make many rounds; but where ranks outnumber CPUs, so do messages, which wait for one rank after the other.
        let pieces = one >= 64 || (one > 0 && self.config.shape().is_oversubscribed());
        let most = if pieces { self.config.number(VariableId::CollAlltoallMost) as usize } else { 0 };
        block <= most.max(one).max(PAYLOAD / self.size)
    }

    /// Returns the bytes of each block that one round of an alltoall of that width takes.
    pub(super) fn alltoall_piece(&self, width: Width) -> usize {
        let room = self.room_among_all(width) / self.size;
        room.min(self.config.coll_piece()) & !15
    }

    /// Where ranks outnumber CPUs a round costs a switch of each, so blocks that take several rounds take as few as can be.
    pub(super) fn alltoall_width(&self, block: usize) -> Width {
        let several = block > self.alltoall_piece(Width::One);
        let oversubscribed = self.config.shape().is_oversubscribed();
        if several && oversubscribed && block * self.size > PAYLOAD { Width::Two } else { Width::One }
    }

    /// Returns whether a scan of `bytes` bytes goes along a chain of messages instead: where ranks outnumber CPUs, because a rank waits for none behind it, and from one of two members to
    /// the other; of an exclusive one between two that is all there is to do.
    pub(super) fn chains_scan(&self, bytes: usize, inclusive: bool) -> bool {
        let short = bytes < CHAINED_BELOW;
        let chains = match self.size {
            2 => short || !inclusive,
            _ => short && self.config.shape().is_oversubscribed(),
        };
        chains && self.config.number(VariableId::CollScan) == AUTO
    }

    /// Returns whether the team may serve a scan of `bytes` bytes.
    pub fn may_serve_scan(&self, bytes: usize, inclusive: bool) -> bool {
        !self.goes_by_messages(Collective::Scan, bytes)
            && !self.chains_scan(bytes, inclusive)
            && self.may_serve(bytes, bytes / self.size)
    }
}

#[cfg(all(test, not(perusal_loom)))]
mod tests {
    use super::*;
    use crate::variables::{JobShape, Overrides};

    fn shape(size: usize, usable_cpus: u32) -> JobShape {
        JobShape {
            ranks: size as u32,
            usable_cpus,
            ring_cells: 64,
            ring_bulk: 1 << 16,
            sender_fences: false,
            heap: 0,
            streams: false,
        }
    }

    fn by_messages(operation: Collective, size: usize, usable_cpus: u32, bytes: usize) -> bool {
        let config = Config::new(&Overrides::default(), shape(size, usable_cpus)).unwrap();
        let capacity = TeamCapacity { config: &config, size, part_bytes: 1 << 20, direct: true };
        capacity.goes_by_messages(operation, bytes)
    }

    #[test]
    fn scatters_and_gathers_go_by_messages_where_each_of_several_ranks_has_a_cpu() {
        for (bytes, goes) in
            [(PAYLOAD, false), (PAYLOAD + 1, true), (SCATTERED - 1, true), (SCATTERED, false)]
        {
            assert_eq!(by_messages(Collective::Scatter, 3, 3, bytes), goes, "{bytes}");
            assert!(!by_messages(Collective::Scatter, 3, 2, bytes), "{bytes}, oversubscribed");
        }
        for (bytes, goes) in [
            (GATHERED - 1, false),
            (GATHERED, true),
            (SCATTERED - 1, true),
            (SCATTERED, false),
            (GATHERED_LONG - 1, false),
            (GATHERED_LONG, true),
            (CONTENDED - 1, true),
            (CONTENDED, false),
        ] {
            assert_eq!(by_messages(Collective::Gather, 3, 3, bytes), goes, "{bytes}, gather");
            assert!(!by_messages(Collective::Gather, 3, 2, bytes), "{bytes}, gather, oversubscribed");
        }
    }

    #[test]
    fn members_that_share_cpus_exchange_messages_if_all_fit_into_a_cache() {
        let exchanges = |size, usable_cpus, block| {
            let config = Config::new(&Overrides::default(), shape(size, usable_cpus)).unwrap();
            TeamCapacity { config: &config, size, part_bytes: 1 << 20, direct: true }.exchanges(block)
        };
        for (size, block, does) in [
            (4, (8 << 10) - 1, false),
            (4, 8 << 10, true),
            (4, 32 << 10, true),
            (4, (32 << 10) + 1, false),
            (8, 8 << 10, true),
            (8, (8 << 10) + 1, false),
            (16, 8 << 10, false),
            (2, 32 << 10, false),
        ] {
            assert_eq!(exchanges(size, 2, block), does, "{size} ranks, {block}");
            assert!(!exchanges(size, 16, block), "{size} ranks that have a CPU each, {block}");
        }
    }

    #[test]
    fn scans_go_along_a_chain_where_nobody_waits_longer_for_it() {
        let chains = |size, usable_cpus, bytes, inclusive| {
            let config = Config::new(&Overrides::default(), shape(size, usable_cpus)).unwrap();
            TeamCapacity { config: &config, size, part_bytes: 1 << 20, direct: true }
                .chains_scan(bytes, inclusive)
        };
        for usable_cpus in [1, 16] {
            assert!(chains(2, usable_cpus, CHAINED_BELOW - 1, true));
            assert!(!chains(2, usable_cpus, CHAINED_BELOW, true));
            assert!(chains(2, usable_cpus, 1 << 30, false), "one message is all there is to do");
            assert_eq!(chains(3, usable_cpus, CHAINED_BELOW - 1, false), usable_cpus == 1);
            assert!(!chains(3, usable_cpus, CHAINED_BELOW, false));
        }
    }

    #[test]
    fn a_rank_alone_sends_nothing() {
        for operation in [Collective::Bcast, Collective::Scatter, Collective::Scan, Collective::ReduceScatter]
        {
            assert!(!by_messages(operation, 1, 3, 1 << 16), "{operation:?}");
        }
    }
}
