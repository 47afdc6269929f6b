//! What a rank that has slept in vain publishes of its wait, for reports of hangs ([`WaitDetail`]).

use super::call_name::mpi_call_name;
use super::context::MatchContext;
use super::current_call::{CallAbout, described, is_described};
use crate::engine::{Engine, Ref, RequestOperation};
use crate::events::CommAbout;
use crate::shm::RankState;
use crate::shm::telemetry::detail::{MESSAGES, UNKNOWN_CONTEXT};
use crate::shm::telemetry::{CallsMade, MessageAbout, Wait, WaitDetail, Waiting};

/// Unexpected messages of a context that are looked at.
const EXAMINED: usize = 10_000;

/// Bytes of a message of the library's own that are looked at.
const SHORT: usize = 1024;

/// A message of the library's own that nobody has taken.
#[derive(Debug)]
pub struct LibraryMessage {
    /// The rank in the job that has sent it.
    pub rank: u32,
    /// Its tag.
    pub tag: i32,
    /// Its bytes, if they are here and few.
    pub bytes: Option<Vec<u8>>,
}

impl Engine {
    /// Publishes the detail of the wait that the rank has published, unless it has done so. The caller runs progress.
    #[cold]
    #[inline(never)]
    pub(super) fn publish_wait_detail(&self) {
        let telemetry = self.telemetry();
        let Some((number, wait)) = telemetry.waiting.numbered() else { return };
        // Other threads mark partitions meanwhile.
        if !telemetry.detail.is_of(number) || wait.kind == Waiting::Partitions {
            telemetry.threads.set(u64::from(self.shared));
            telemetry.detail.set(number, &self.detail_of(&wait));
        }
    }

    fn detail_of(&self, wait: &Wait) -> WaitDetail {
        let mut unexpected = vec![];
        for context in self.contexts_to_examine(wait) {
            self.add_unexpected(context, &mut unexpected);
        }
        unexpected.sort_by_key(|message| distance(message, wait));
        unexpected.truncate(MESSAGES);
        let mut pending = if self.shared { self.pending_of_threads(wait) } else { self.pending_messages() };
        if !self.background.is_empty() {
            // There is room for one that a collective operation awaits.
            pending.truncate(MESSAGES - 1);
        }
        self.background.add_awaited(self, &mut pending);
        pending.truncate(MESSAGES);
        let own = wait.context & !1;
        let comm = self.contexts_to_examine(wait).find(|context| context.id() == own);
        let (mut collective, mut partitions, mut lock) = Default::default();
        match (wait.kind, described()) {
            (Waiting::Collective | Waiting::Operation, Some(CallAbout::Collective(about))) => {
                collective = about
            }
            (Waiting::Partitions, Some(CallAbout::PartitionedSend(unready)))
            | (Waiting::Receive, Some(CallAbout::PartitionedReceive(unready))) => partitions = unready,
            (Waiting::Lock, Some(CallAbout::Lock(about))) => lock = about,
            _ => {}
        }
        WaitDetail {
            call: mpi_call_name(),
            comm: comm.map(about).unwrap_or_default(),
            collective,
            partitions,
            lock,
            unexpected,
            pending,
            operations: self.background.about(),
            made: self.calls_made_before(wait),
        }
    }

    /// The collective calls that the program has made, on communicators on which it is in none:
    /// no other communicator's team is held then.
    fn calls_made_before(&self, wait: &Wait) -> Vec<CallsMade> {
        let own = wait.context & !1;
        let for_messages = match wait.kind {
            Waiting::Receive | Waiting::Send | Waiting::Probe => wait.context.is_multiple_of(2),
            Waiting::Any | Waiting::All => true,
            _ => false,
        };
        let finalizing = self.job.roster().entry(self.rank).state() == RankState::Finalizing;
        let in_call = (wait.kind == Waiting::Collective).then_some(own);
        let asked = (for_messages && !is_described()) || finalizing || in_call.is_some();
        self.calls_made.get().filter(|_| asked).map_or_else(Vec::new, |made| made(in_call))
    }

    /// All contexts; where other threads may take some away, those of the wait only, which has the communicator.
    fn contexts_to_examine(&self, wait: &Wait) -> impl Iterator<Item = &MatchContext> {
        let all = (!self.shared).then(|| self.contexts.all()).into_iter().flatten();
        let own = wait.context & !1;
        let own = if self.shared { self.contexts.get(own) } else { None };
        // SAFETY: a context is taken away by the thread that uses the last of it, and this one takes none away here;
        // other threads, if there are any, leave that of a communicator on which a call waits.
        all.chain(own).map(|context| unsafe { context.as_ref() })
    }

    /// Messages of the program that have come and that no receive has taken.
    ///
    /// # Safety
    ///
    /// No other thread is inside this engine.
    #[must_use]
    pub unsafe fn unexpected_messages(&self) -> Vec<MessageAbout> {
        let mut all = vec![];
        for context in self.contexts.all() {
            // SAFETY: contexts are taken away by threads inside the engine, of which there is no other.
            self.add_unexpected(unsafe { context.as_ref() }, &mut all);
        }
        all
    }

    /// Messages of the program that have come on a context and that no receive has taken.
    #[must_use]
    pub fn unexpected_messages_of(&self, context: &MatchContext) -> Vec<MessageAbout> {
        let mut all = vec![];
        self.add_unexpected(context, &mut all);
        all
    }

    /// What has come on a context of the library's own and has been taken by nobody.
    #[must_use]
    pub fn unexpected_of_library(&self, context: &MatchContext) -> Vec<LibraryMessage> {
        let queues = context.queues.lock(self.shared);
        queues
            .unexpected
            .iter()
            .take(EXAMINED)
            .map(|(envelope, message)| LibraryMessage {
                rank: message.world,
                tag: envelope.tag,
                bytes: message.whole().filter(|bytes| bytes.len() <= SHORT).map(<[u8]>::to_vec),
            })
            .collect()
    }

    /// Messages of the library's own that have come on any context and that nobody has taken, each with the context of
    /// the communicator's messages and its name, which is empty if it has gone.
    ///
    /// # Safety
    ///
    /// No other thread is inside this engine.
    #[must_use]
    pub unsafe fn unexpected_of_library_anywhere(&self) -> Vec<(u32, String, LibraryMessage)> {
        // SAFETY: contexts are taken away by threads inside the engine, of which there is no other.
        let all = self.contexts.all().map(|context| unsafe { context.as_ref() });
        let messages = |context: &MatchContext| {
            let own = context.id() & !1;
            // SAFETY: no other thread takes it away, as above.
            let there = self.contexts.get(own).map(|context| unsafe { context.as_ref() });
            let name = there.map(|context| about(context).name).unwrap_or_default();
            let messages = self.unexpected_of_library(context);
            messages.into_iter().map(move |message| (own, name.clone(), message))
        };
        all.filter(|context| !context.id().is_multiple_of(2)).flat_map(messages).collect()
    }

    fn add_unexpected(&self, context: &MatchContext, to: &mut Vec<MessageAbout>) {
        // Messages of the library's own have odd contexts, or tags below zero.
        if !context.id().is_multiple_of(2) {
            return;
        }
        let name = about(context).name;
        let queues = context.queues.lock(self.shared);
        for (envelope, message) in queues.unexpected.iter().take(EXAMINED).filter(|(key, _)| key.tag >= 0) {
            to.push(MessageAbout {
                peer: Some(message.world),
                tag: Some(envelope.tag),
                context: context.id(),
                bytes: message.bytes() as u64,
                sends: false,
                unstarted: false,
                comm: name.clone(),
            });
        }
    }

    /// The first messages of the rank that are not over, where other threads may be changing them: without what only
    /// who has a request may look at. None where some may be the library's own.
    fn pending_of_threads(&self, wait: &Wait) -> Vec<MessageAbout> {
        let is_for_requests =
            matches!(wait.kind, Waiting::Receive | Waiting::Send | Waiting::Any | Waiting::All);
        // What a call of another thread's waits for by messages of the library's own.
        let is_for_own = |kind| {
            !matches!(kind, Waiting::Receive | Waiting::Send | Waiting::Probe | Waiting::Any | Waiting::All)
        };
        let mut others = self.telemetry().waiting_threads();
        if !is_for_requests || !self.background.is_empty() || others.any(|other| is_for_own(other.wait.kind))
        {
            return vec![];
        }
        let active = self.slab.alive_ones().filter(|request| {
            let state = request.state();
            state.is_active() && !state.is_complete()
        });
        let messages = active.map(|request| {
            // SAFETY: request rule 2: of a request that another thread may have, only relaxed atomics are looked at.
            let body = unsafe { request.body() };
            MessageAbout {
                peer: (body.peer.get() >= 0).then(|| body.world.get()),
                tag: (body.tag.get() >= 0).then(|| body.tag.get()),
                context: UNKNOWN_CONTEXT,
                bytes: 0,
                sends: body.operation.get() == RequestOperation::Send,
                unstarted: false,
                comm: String::new(),
            }
        });
        messages.take(MESSAGES).collect()
    }

    /// The first messages of the rank that are not over, and those that its persistent requests stand for, which are
    /// not started. There is one thread.
    fn pending_messages(&self) -> Vec<MessageAbout> {
        let active = |request: &Ref| {
            let state = request.state();
            state.is_active() && !state.is_complete()
        };
        let idle = |request: &Ref| {
            let state = request.state();
            request.is_persistent() && !state.is_active() && !state.is_complete()
        };
        let all = || self.slab.alive_ones();
        let active = all().filter(active).map(|request| (request, false));
        let messages = active.chain(all().filter(idle).map(|request| (request, true)));
        let messages = messages.filter_map(|(request, unstarted)| {
            // SAFETY: request rule 2: there is one thread, and it is here.
            let body = unsafe { request.body() };
            // SAFETY: a request counts as pending on its context until it is released.
            let context = unsafe { body.context.get()?.as_ref() };
            let (peer, tag, world) = match unstarted {
                false => (body.peer.get(), body.tag.get(), body.world.get()),
                true => {
                    let (peer, tag, world, _) = body.template.get();
                    (peer, tag, world)
                }
            };
            Some(MessageAbout {
                peer: (peer >= 0).then_some(world),
                tag: (tag >= 0).then_some(tag),
                context: context.id(),
                bytes: body.bytes.get() as u64,
                sends: body.operation.get() == RequestOperation::Send,
                unstarted,
                comm: about(context).name,
            })
        });
        messages.take(MESSAGES).collect()
    }
}

fn about(context: &MatchContext) -> CommAbout {
    context.events().map(|events| events.about().clone()).unwrap_or_default()
}

/// How far a message is from what is awaited: first those from the same rank in the same communicator.
fn distance(message: &MessageAbout, wait: &Wait) -> u32 {
    let (source, tag) = (message.peer == wait.peer, message.tag == wait.tag);
    match (source, tag, message.context == wait.context) {
        (true, _, true) => 0,
        (true, true, false) => 1,
        (false, true, true) => 2,
        (true, false, false) => 3,
        _ => 4,
    }
}
