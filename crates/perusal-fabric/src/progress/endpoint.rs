//! An endpoint: its memory, the rings to it, and the progress of all.

use crate::api::{last_error, number_of};
use crate::memory::segment::Segment;
use crate::memory::status::Status;
use crate::memory::words::Known;
use crate::names::address::Address;
use crate::names::service::{Announced, Service};
use crate::operands::region::{Region, Regions};
use crate::peers::Sent;
use crate::progress::elsewhere::Turns;
use crate::progress::senders::Incoming;
use crate::progress::yields::Yields;
use crate::protocol::core::Core;
use crate::protocol::trace::Trace;
use perusal::internals::error::report;
use perusal::internals::shm::cpus;
use perusal::internals::sync::AsymmetricFence;
use std::collections::BTreeSet;
use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::{AsRawFd, FromRawFd, RawFd};
use std::os::unix::fs::MetadataExt;
use std::rc::Rc;
use std::time::{Duration, Instant};

/// Records taken from one ring before the others are looked at.
const BATCH: usize = 64;
/// Polls in vain after which an endpoint whose processes outnumber the CPUs gives its CPU away.
const YIELD_FROM: u32 = 4;
/// Polls in vain after which any endpoint gives its CPU away at times, and how often.
const LONG: u32 = 1000;
const AT_TIMES: u32 = 16;
/// Polls for one look at the clock.
const CLOCK: u32 = 1 << 12;

/// How long an endpoint that is closed waits for peers that have no room for what it still has to send.
const LINGER: Duration = Duration::from_secs(1);
/// How long it waits for a peer that is copying into a buffer of it: that takes longer only if the peer is stopped.
const COPYING: Duration = Duration::from_secs(10);

/// Set to 1, each endpoint tells at its end how much it has sent by which way.
const SUMMARY: &str = "PERUSAL_FABRIC_SUMMARY";

/// The CPUs that this process and those that send to it may use: each may be bound to one.
#[derive(Debug)]
pub(crate) struct Cpus {
    ids: BTreeSet<usize>,
    quota: usize,
    usable: usize,
}

impl Cpus {
    fn new() -> Self {
        let quota = cpus::quota().map_or(usize::MAX, |quota| quota as usize);
        let mut cpus = Self { ids: BTreeSet::new(), quota, usable: 1 };
        cpus.add(0);
        cpus
    }

    /// Counts the CPUs of another process.
    pub(crate) fn add(&mut self, pid: u32) {
        self.ids.extend(cpus::affinity_of(pid).unwrap_or_default());
        self.usable = self.ids.len().min(self.quota).max(1);
    }
}

/// An endpoint.
#[derive(Debug)]
pub struct Endpoint {
    pub address: Address,
    pub(crate) incoming: Vec<Incoming>,
    pub(crate) last: usize,
    pub(crate) changes: u32,
    /// This endpoint sends to itself.
    pub(crate) meets_itself: bool,
    idle: u32,
    polls: u32,
    /// When it was last checked which peers have ended.
    pub(crate) peers_checked: Option<Instant>,
    pub(crate) cpus: Cpus,
    yields: Yields,
    /// When other nodes are asked.
    pub(crate) turns: Turns,
    /// Records that were taken out of rings whose senders have left.
    pub(crate) taken_before: u64,
    /// Records taken and sent, and the time, when these had changed last.
    pub(crate) moved: (u64, u64),
    fence: AsymmetricFence,
    /// What peers wake a thread with that waits for a descriptor:
    /// the end to read, the end to write, the number of the file.
    pipe: Option<(File, File, u64)>,
    armed: bool,
    pub core: Core,
    /// Behind what points into it.
    pub(crate) segment: Segment,
    _announced: Option<Announced>,
}

impl Endpoint {
    /// # Errors
    ///
    /// The number of the error.
    pub fn new() -> Result<Self, i32> {
        Self::of(&Service::default())
    }

    /// An endpoint with the name of a service, if it is one.
    ///
    /// # Errors
    ///
    /// The number of the error: FI_EADDRINUSE if another endpoint has the name.
    pub fn of(service: &Service) -> Result<Self, i32> {
        let (segment, address) = Segment::new(service)?;
        let fence = segment.fence()?;
        let mut core = Core::new(address);
        core.trace = Trace::of_environment(address);
        let cpus = Cpus::new();
        let (process, descriptor) = (address.pid, address.fd);
        segment.status().write(&Status { process, descriptor, ..Status::default() });
        Ok(Self {
            address,
            incoming: Vec::new(),
            last: 0,
            changes: 0,
            meets_itself: false,
            idle: 0,
            polls: 0,
            peers_checked: None,
            cpus,
            yields: Yields::find(),
            turns: Turns::default(),
            taken_before: 0,
            moved: (0, 0),
            fence,
            pipe: None,
            armed: false,
            core,
            segment,
            _announced: service.announce(address)?,
        })
    }

    /// Serves accesses of peers to these regions.
    pub fn serve(&mut self, regions: &Rc<Regions>) {
        regions.each(|region| self.add_region(region));
        if regions.counted.get() {
            self.count_accesses();
        }
        self.core.regions = Some(Rc::clone(regions));
    }

    /// Lets peers know where a region is, if it is one piece.
    pub fn add_region(&self, region: &Region) {
        let (base, access) = (region.base, region.access & self.core.serves);
        if let ([(at, len)], true) = (&region.pieces[..], access != 0) {
            // A region without an entry is asked for.
            self.segment
                .words()
                .tell(region.key, &Known { generation: 0, base, at: *at, len: *len as u64, access });
        }
    }

    /// Tells peers of accesses that need no answer to report them all the same.
    pub fn count_accesses(&mut self) {
        self.segment.words().set_counts_accesses();
    }

    /// Ends accesses to a region that is taken away; peers see by the generation that they do not know the regions any
    /// more.
    pub fn end_region(&mut self, region: &Rc<Region>, generation: u32) {
        self.segment.words().forget(region.key, generation);
        self.core.end_region(region);
    }

    /// Forgets `fi_addr`, and ends what is under way with the endpoint behind it.
    ///
    /// # Errors
    ///
    /// FI_EINVAL if the address vector does not have it.
    pub fn remove(&mut self, fi_addr: u64) -> Result<(), i32> {
        // Cancel rule.
        self.core.cancels = self.core.cancels.wrapping_add(1);
        self.segment.words().cancel(self.core.cancels);
        self.core.remove(fi_addr)
    }

    /// How often it was polled.
    pub fn polls(&self) -> u32 {
        self.polls
    }

    /// Takes what has arrived and sends what waits. Returns whether there was anything.
    #[inline]
    pub fn progress(&mut self) -> bool {
        // A yield is followed by another poll: many a caller yields after a poll in vain itself, and would let two
        // turns of the others pass.
        let any = self.poll() || self.yield_if_due() && self.poll();
        self.yields.are_for_nothing(self.idle < YIELD_FROM || self.idle < LONG && !self.is_outnumbered());
        any
    }

    fn poll(&mut self) -> bool {
        self.polls = self.polls.wrapping_add(1);
        if self.polls.is_multiple_of(CLOCK) {
            self.check_at_times();
        }
        if self.segment.words().changes() != self.changes {
            self.take_changed_slots();
        }
        let mut any = false;
        let count = self.incoming.len();
        for step in 0..count {
            let at = if self.last + step < count { self.last + step } else { self.last + step - count };
            let Incoming { consumer, peer, .. } = &mut self.incoming[at];
            let mut taken = 0;
            while taken < BATCH {
                match consumer.poll(|header, payload| self.core.take(*peer, header, payload)) {
                    Ok(Some(())) => taken += 1,
                    Ok(None) => break,
                    Err(_) => {
                        self.drop_peer(at);
                        return true;
                    }
                }
            }
            if taken > 0 {
                consumer.return_credit();
                self.last = at;
                any = true;
            }
        }
        if self.core.peers.network.is_some() {
            any |= self.network_progress(any);
        }
        if !self.core.peers.with_waiting.is_empty() {
            any |= self.core.push_waiting();
        }
        if any {
            self.idle = 0;
            if self.armed {
                self.disarm();
            }
        }
        any
    }

    /// Ends a poll in vain: gives the CPU away where that is due. It never sleeps: a caller that polls may have other
    /// work, and one that waits calls [`Endpoint::sleep`]. Returns whether the CPU was given away.
    #[inline]
    fn yield_if_due(&mut self) -> bool {
        self.idle = self.idle.wrapping_add(1);
        let outnumbered = self.idle >= YIELD_FROM && self.is_outnumbered();
        // Whoever is awaited may be waiting for this very CPU.
        let long = self.idle >= LONG && self.idle.is_multiple_of(AT_TIMES);
        if outnumbered || long {
            std::thread::yield_now();
        }
        if self.idle == LONG {
            self.say_status();
        }
        outnumbered || long
    }

    /// Whether this endpoint and those that send to it are more than the CPUs that their processes may use.
    pub fn is_outnumbered(&self) -> bool {
        self.incoming.len() - usize::from(self.meets_itself) >= self.cpus.usable
    }

    /// Sends what the caller takes for sent, as far as the peers take it within [`LINGER`], and lets peers that copy
    /// into buffers here come to an end; then takes nothing any more.
    pub(crate) fn close(&mut self) {
        // In a child of fork the rings are its parent's, and the network, too.
        if self.address.pid != std::process::id() {
            self.core.peers.all.iter_mut().for_each(|peer| std::mem::forget(peer.outgoing.take()));
            std::mem::forget(self.core.peers.network.take());
            return;
        }
        let start = Instant::now();
        while ((self.core.has_unfinished() || self.is_sending_elsewhere()) && start.elapsed() < LINGER)
            || (self.core.awaits_part() && start.elapsed() < COPYING)
        {
            self.look_for_the_dead();
            if !self.progress() {
                std::thread::yield_now();
            }
        }
        // A process that looks finds CLOSED slots or an open endpoint (slot rule 1).
        (0..self.core.peers.all.len() as u32).for_each(|peer| self.core.peers.detach(peer));
        self.segment.words().close();
        self.core.trace.take().iter().for_each(|trace| trace.finish());
        if std::env::var_os(SUMMARY).is_some_and(|value| value == "1") {
            let Sent { here, peers_here, elsewhere, peers_elsewhere } = self.core.peers.sent();
            report(format_args!(
                "process {} has sent {here} records to {peers_here} peers on its node and {elsewhere} to {peers_elsewhere} on other nodes",
                self.address.pid
            ));
        }
    }

    /// Makes progress, and has peers write into a pipe when they have something from now on. Returns the end to wait
    /// for, or `None` if there is something to do now.
    ///
    /// # Errors
    ///
    /// The number of the error.
    pub fn arm(&mut self) -> Result<Option<RawFd>, i32> {
        if self.pipe.is_none() {
            self.pipe = Some(new_pipe()?);
        }
        let Some((read, write, file)) = &self.pipe else { return Ok(None) };
        let (mut read, pipe, wakes, file) = (read, read.as_raw_fd(), write.as_raw_fd(), *file);
        let mut bytes = [0; 64];
        while read.read(&mut bytes).is_ok_and(|taken| taken == bytes.len()) {}
        self.turns.come_next();
        if self.progress() {
            return Ok(None);
        }
        self.check_at_times();
        // Pipe rule.
        self.segment.words().arm(wakes.cast_unsigned(), file);
        self.armed = true;
        self.incoming.iter().for_each(|one| one.consumer.enable_notification());
        self.fence.heavy_barrier();
        let waiting = !self.core.peers.with_waiting.is_empty();
        let arrived = self.incoming.iter().any(|one| one.consumer.ready());
        let network = self.core.peers.network.as_ref();
        let elsewhere = network.is_some_and(|network| !network.borrow().is_quiet());
        // Whoever is woken is to find what has come from there.
        self.turns.come_next();
        if waiting || arrived || elsewhere || self.segment.words().changes() != self.changes {
            self.disarm();
            return Ok(None);
        }
        Ok(Some(pipe))
    }

    /// No thread need be woken any more; one that waits already is: it shall look for itself.
    #[cold]
    fn disarm(&mut self) {
        self.armed = false;
        self.segment.words().disarm();
        self.incoming.iter().for_each(|one| one.consumer.disable_notification());
        // A full pipe wakes as well.
        let _ = self.pipe.as_mut().map(|(_, write, _)| write.write(&[1]));
    }

    /// Sleeps until something arrives by a ring, for at most so many milliseconds:
    /// with a network, [`Endpoint::arm`] serves instead.
    pub fn sleep(&mut self, milliseconds: u64) {
        let bell = self.segment.doorbell();
        self.incoming.iter().for_each(|one| one.consumer.enable_notification());
        let quiet = self.core.peers.with_waiting.is_empty();
        let at_most = if quiet { milliseconds.min(100) } else { 1 };
        let (incoming, segment, changes) = (&self.incoming, &self.segment, self.changes);
        let reason =
            || segment.words().changes() != changes || incoming.iter().any(|one| one.consumer.ready());
        bell.sleep(self.fence, Duration::from_millis(at_most), reason);
        (0..bell.words()).for_each(|at| {
            if bell.has_flags(at) {
                bell.take_flags(at);
            }
        });
        self.incoming.iter().for_each(|one| one.consumer.disable_notification());
        self.check_at_times();
    }
}

/// A pipe whose ends do not block, and the number of its file.
fn new_pipe() -> Result<(File, File, u64), i32> {
    let mut ends = [0; 2];
    // SAFETY: room for two descriptors.
    if unsafe { libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC | libc::O_NONBLOCK) } != 0 {
        return Err(last_error());
    }
    // SAFETY: descriptors that were just made and that nobody else has.
    let (read, write) = unsafe { (File::from_raw_fd(ends[0]), File::from_raw_fd(ends[1])) };
    let file = write.metadata().map_err(number_of)?.ino();
    Ok((read, write, file))
}

impl Drop for Endpoint {
    fn drop(&mut self) {
        self.close();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::words;

    #[test]
    fn an_endpoint_that_is_seen_closed_has_left_its_slots() {
        let (owner, mut sender) =
            (Endpoint::new().expect("an endpoint"), Endpoint::new().expect("an endpoint"));
        let memory = Segment::open(sender.address).expect("its memory");
        let to = sender.core.peers.number(owner.address);
        sender.core.peers.outgoing(to).expect("a ring");
        assert_eq!(owner.segment.words().state(0), words::READY);
        sender.close();
        assert!(memory.words().is_closed());
        assert_eq!(owner.segment.words().state(0), words::CLOSED);
    }
}
