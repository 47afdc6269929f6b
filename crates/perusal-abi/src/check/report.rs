//! What was found, and how it is said: mistakes at once, what was left undone in MPI_Finalize, where ranks that say the
//! same say it together.

use super::{ON, STATE, State, WATCH, with};
use crate::coll::call::{CallRoot, CollectiveOp, Elements, Form, Pieces, Transports};
use crate::coll::{self, BlockingTransport, Purpose, tag_of_group_call};
use crate::collective;
use crate::comm::Comm;
use crate::datatype::Datatype;
use crate::engine::{Engine, LibraryMessage};
use crate::error::{self, Error, Result};
use crate::mpi::string_tags::introduced_by;
use crate::process::engine;
use crate::shm::roster::names;
use crate::shm::telemetry::MessageAbout;
use crate::sync::Ordering;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::PoisonError;

/// Mistakes that a rank says at once, at most: a loop makes the same one again and again.
const SAID: usize = 20;

/// Sentences on what a rank has left undone, at most.
const LEFT: usize = 200;

/// What a rank has said.
#[derive(Default)]
pub struct Findings {
    said: HashSet<String>,
    /// Mistakes of which nothing was said.
    more: u64,
}

impl Findings {
    /// Says what this rank has done.
    pub fn say(&mut self, finding: String) {
        let rank = engine().map_or(0, Engine::rank);
        self.print(finding, &format!("rank {rank}: "));
    }

    /// Says something that names the ranks.
    pub fn say_for_all(&mut self, finding: String) {
        self.print(finding, "");
    }

    fn print(&mut self, finding: String, before: &str) {
        if self.said.contains(&finding) {
            return;
        }
        if self.said.len() >= SAID {
            self.more += 1;
            return;
        }
        error::report(format_args!("check: {before}{finding}"));
        self.said.insert(finding);
    }
}

/// What lay in communicators that the program has freed.
#[derive(Default)]
pub struct FreedComms {
    /// Their names, by context id.
    names: HashMap<u32, String>,
    messages: Vec<MessageAbout>,
    /// Calls of some of their members that this rank has left out, in sentences.
    calls: Vec<String>,
}

/// A communicator is about to be freed, with whatever has come on it.
pub fn comm_freed(comm: &Comm) {
    let messages = engine().map(|engine| engine.unexpected_messages_of(comm.p2p())).unwrap_or_default();
    let of_library =
        engine().map(|engine| engine.unexpected_of_library(comm.collective())).unwrap_or_default();
    if let Some(start) = comm.buffers().start() {
        super::detached(start);
    }
    with(|state| {
        state.collectives.forget(comm.context);
        state.messages.forget(comm.context);
        let name = String::from_utf8_lossy(&comm.name()).into_owned();
        let calls = of_library.iter().filter_map(|message| group_call_left_out(&name, message));
        state.freed.calls.extend(calls);
        state.freed.names.insert(comm.context, name);
        state.freed.messages.extend(messages);
    });
}

/// The communicator of a window or file is about to be given up; another one may get its context id.
pub fn context_freed(context: u32) {
    with(|state| state.collectives.forget(context));
}

impl FreedComms {
    /// The messages in communicators that were freed, and those of `there`, with the names that communicators had.
    fn with(self, there: Vec<MessageAbout>) -> Vec<MessageAbout> {
        let mut all = self.messages;
        for mut message in there {
            match self.names.get(&message.context) {
                // It came after the communicator had gone.
                Some(name) if message.comm.is_empty() => message.comm.clone_from(name),
                _ => {}
            }
            all.push(message);
        }
        all
    }
}

/// "1 byte", "4 bytes".
pub fn bytes(number: u64) -> String {
    if number == 1 { "1 byte".to_owned() } else { format!("{number} bytes") }
}

/// A communicator's name in quotation marks.
pub fn name_of(comm: &Comm) -> String {
    in_quotation_marks(&comm.events.about().name)
}

/// The name of a communicator in quotation marks.
pub fn in_quotation_marks(name: &str) -> String {
    if name.is_empty() { "a communicator without a name".to_owned() } else { format!("'{name}'") }
}

/// What the calls of this rank have left undone, each in a sentence.
fn left_by_calls() -> Vec<String> {
    let left = with(|state: &mut State| {
        let mut left = state.requests.left();
        left.extend(state.objects.left());
        if state.findings.more > 0 {
            left.push(format!("{} further mistakes were found", state.findings.more));
        }
        if state.collectives.unknown > 0 {
            let unknown = state.collectives.unknown;
            left.push(format!("{unknown} collective calls were not compared, for want of shared memory"));
        }
        if state.targets.unknown > 0 {
            let unknown = state.targets.unknown;
            left.push(format!("{unknown} one-sided operations were not compared, for want of shared memory"));
        }
        if state.messages.unknown > 0 {
            let unknown = state.messages.unknown;
            left.push(format!(
                "the types of {unknown} messages were not compared, for want of shared memory"
            ));
        }
        left
    });
    left.map(shortened).unwrap_or_default()
}

/// The first of many sentences.
fn shortened(mut left: Vec<String>) -> Vec<String> {
    if left.len() > LEFT {
        let more = left.len() - LEFT;
        left.truncate(LEFT);
        left.push(format!("{more} more were left undone"));
    }
    left
}

/// The call of some members of a communicator that this message of the library's begins, if it does; its sender has
/// made the call with this rank.
fn group_call_left_out(name: &str, message: &LibraryMessage) -> Option<String> {
    let of_group = tag_of_group_call(message.tag)
        .map(|tag| format!("MPI_Comm_create_group on {} with tag {tag}", in_quotation_marks(name)));
    let call = of_group.or_else(|| {
        let text = introduced_by(message)?;
        Some(format!("MPI_Comm_create_from_group, or its like, with string tag '{text}'"))
    })?;
    let rank = message.rank;
    Some(format!(
        "rank {rank} has called {call}, and this rank, which is in the group, has not; all members of the group must make the call"
    ))
}

/// Such calls that this rank has left out. `met`: all ranks are in MPI_Finalize. Where they are not, a call with a
/// string may be one that this rank makes with its next session.
fn group_calls_left_out(engine: &Engine, freed: &mut FreedComms, met: bool) -> Vec<String> {
    // SAFETY: MPI_Finalize: no other thread calls MPI any more (MPI 5.0 §11.2.2).
    let there = unsafe { engine.unexpected_of_library_anywhere() };
    let mut left = core::mem::take(&mut freed.calls);
    let counts = |message: &LibraryMessage| met || introduced_by(message).is_none();
    let there = there.iter().filter(|(_, _, message)| counts(message));
    left.extend(there.filter_map(|(context, name, message)| {
        // It may have come after the communicator had gone.
        let name = if name.is_empty() { freed.names.get(context).unwrap_or(name) } else { name };
        group_call_left_out(name, message)
    }));
    left.dedup();
    left
}

/// What the program has left undone, each in a sentence. `met`: all ranks are in MPI_Finalize.
fn left(engine: &Engine, met: bool) -> Vec<String> {
    let mut left = left_by_calls();
    let mut freed = with(|state: &mut State| core::mem::take(&mut state.freed)).unwrap_or_default();
    left.extend(group_calls_left_out(engine, &mut freed, met));
    // SAFETY: MPI_Finalize: no other thread calls MPI any more (MPI 5.0 §11.2.2).
    let there = unsafe { engine.unexpected_messages() };
    for message in freed.with(there) {
        let peer = message.peer.map_or_else(|| "a rank".to_owned(), |peer| format!("rank {peer}"));
        let name = in_quotation_marks(&message.comm);
        left.push(format!(
            "a message from {peer}, tag {}, on {name}, {}, was received by nobody",
            message.tag.unwrap_or_default(),
            bytes(message.bytes)
        ));
    }
    shortened(left)
}

/// Stops checking; the calls of the report itself are not the program's.
fn stop() {
    ON.store(false, Ordering::Relaxed);
}

fn close() {
    stop();
    // Ended without the lock, which a callback may be waiting for.
    let watch = WATCH.lock().unwrap_or_else(PoisonError::into_inner).take();
    drop(watch);
    *STATE.lock().unwrap_or_else(PoisonError::into_inner) = None;
}

/// Says what this rank has left undone.
pub fn finish_alone(engine: &'static Engine) {
    super::requests::compare_starts();
    let left = engine.take_what_has_come().map(|()| left(engine, false)).unwrap_or_default();
    close();
    print(vec![(engine.rank(), left)]);
}

/// Says what the ranks of `world` have left undone.
pub fn finish_together(engine: &'static Engine, world: &Comm) {
    // MPI_Finalize is collective over all ranks (MPI 5.0 §11.2.2).
    super::collectives::compare_on_comm(world, "arguments", "");
    super::requests::compare_starts();
    stop();
    // What was sent before has come when all have met twice.
    let met = (0..2).try_for_each(|_| {
        engine.send_backlog()?;
        perform(engine, world, &CollectiveOp::Barrier)
    });
    let own = match met.and_then(|()| engine.take_what_has_come()) {
        Ok(()) => left(engine, true),
        // Of those whom a death keeps from meeting, each speaks for itself.
        Err(_) if engine.has_failures() => {
            let left = left_by_calls();
            close();
            return print(vec![(engine.rank(), left)]);
        }
        // Why, MPI_Finalize says.
        Err(_) => return close(),
    };
    let text = own.join("\n");
    close();
    match gather(engine, world, text.as_bytes()) {
        Ok(texts) => print(texts),
        Err(_) => print(vec![(engine.rank(), own)]),
    }
}

type Texts = Vec<(u32, Vec<String>)>;

/// Performs an operation of the report's own, by messages that no call of the program's can match.
fn perform(engine: &Engine, world: &Comm, call: &CollectiveOp) -> Result<()> {
    let transport = BlockingTransport::tagged(engine, world, Purpose::Report as i32);
    let transports = Transports::Intracomm(transport);
    // SAFETY: the caller's buffers are valid until the future has been run to its end.
    let result = coll::run(unsafe { call.perform(&transports, world) });
    collective::conclude(&transports, result)
}

/// The sentences of all ranks, at the first; nothing at the others.
fn gather(engine: &Engine, world: &Comm, text: &[u8]) -> Result<Texts> {
    let root = CallRoot::Intracomm(0);
    let byte = Datatype::predefined(crate::abi::MPI_BYTE).ok_or(Error::Type("MPI_BYTE"))?;
    let is_root = world.rank() == 0;
    let ranks = world.size() as usize;
    let mut length = text.len().to_ne_bytes();
    let mut lengths = vec![0_u8; length.len() * ranks];
    let mine = Elements::new(length.as_mut_ptr(), length.len(), byte.clone())?;
    let all = Pieces::new(lengths.as_mut_ptr(), Form::Even(length.len(), byte.clone()), ranks)?;
    perform(engine, world, &CollectiveOp::Gather(Some(mine), is_root.then_some(all), root, true))?;
    let lengths: Vec<usize> =
        lengths.as_chunks().0.iter().map(|length| usize::from_ne_bytes(*length)).collect();
    let mut places = vec![];
    let mut sum = 0_usize;
    for length in &lengths {
        places.push(sum.cast_signed());
        sum = sum.checked_add(*length).ok_or(Error::CountTooLarge(*length))?;
    }
    let mut texts = vec![];
    texts.try_reserve_exact(sum).map_err(|_| Error::NoMem("no memory for the report of mistakes".into()))?;
    texts.resize(sum, 0_u8);
    let mut own = text.to_vec();
    let mine = Elements::new(own.as_mut_ptr(), own.len(), byte.clone())?;
    let all = Pieces::new(texts.as_mut_ptr(), Form::Varied(lengths.clone(), places.clone(), byte), ranks)?;
    perform(engine, world, &CollectiveOp::Gather(Some(mine), is_root.then_some(all), root, false))?;
    if !is_root {
        return Ok(vec![]);
    }
    let of = |(at, (place, length)): (usize, (&isize, &usize))| {
        let place = place.unsigned_abs();
        let text = String::from_utf8_lossy(&texts[place..place + length]);
        (world.world_rank_of(at as i32), text.lines().map(str::to_owned).collect())
    };
    Ok(places.iter().zip(&lengths).enumerate().map(of).collect())
}

/// Prints each sentence once, behind the ranks that say it.
fn print(texts: Texts) {
    let mut sentences: BTreeMap<(u32, usize), (String, Vec<u32>, usize)> = BTreeMap::new();
    for (rank, lines) in texts {
        for (at, line) in lines.into_iter().enumerate() {
            let same = sentences.values_mut().find(|(other, ..)| *other == line);
            match same {
                Some((_, ranks, times)) => {
                    *times += 1;
                    if !ranks.contains(&rank) {
                        ranks.push(rank);
                    }
                }
                None => drop(sentences.insert((rank, at), (line, vec![rank], 1))),
            }
        }
    }
    for (line, ranks, times) in sentences.into_values() {
        let each = if times > ranks.len() { format!(" ({times} times)") } else { String::new() };
        error::report(format_args!("check: {}: {line}{each}", names(&ranks)));
    }
}
