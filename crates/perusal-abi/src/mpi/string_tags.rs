//! Tags that are strings (MPI_Comm_create_from_group, MPI_Intercomm_create_from_groups), and numbers of which there are
//! too many to be tags of their own (those that [`crate::coll::user_tag`] has none for): a string is made of these.
//!
//! The tag of a message is a number. So the processes of such a call agree on one first: one of them takes a number
//! that none of its other calls has at present, and introduces the call to the others by a message with the number and
//! the string. That message has a tag that is made of the string, which two strings may have in common; whoever
//! receives it compares the string, and leaves an introduction to another call to the thread that makes that call.

use crate::coll::connect::names;
use crate::coll::{BlockingTransport, NAMED_CALLS, Subset, Transport, run};
use crate::comm::{Comm, Group, lock};
use crate::comms;
use crate::engine::{Engine, LibraryMessage};
use crate::error::{Error, Result};
use crate::shm::roster::names as job_ranks;
use crate::shm::telemetry::CollectiveAbout;
use crate::sync::{AtomicU32, Mutex, Ordering};
use core::ffi::c_int;

/// An introduction that came to a thread in another call.
struct Introduction {
    /// The context of the communicator on which it came.
    context: u32,
    /// The rank there that sent it.
    from: usize,
    text: Vec<u8>,
    tag: c_int,
}

/// The oldest come first.
static STRAYS: Mutex<Vec<Introduction>> = Mutex::new(Vec::new());

/// What the calls of a process have taken for their tags.
static TAKEN: AtomicU32 = AtomicU32::new(0);

/// Tags of calls: above those of all purposes, below those of introductions.
const CALLS: u32 = NAMED_CALLS.cast_unsigned();
/// Of the 29 bits below, the ones that count the calls of a process; the others are its rank.
const COUNT_BITS: u32 = 15;

/// A number made of a string (FNV-1a).
fn hash(text: &[u8]) -> u32 {
    text.iter().fold(0x811c_9dc5, |hash, &byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193))
}

/// The tag of the introductions to calls with string `text`.
fn of_introduction(text: &[u8]) -> c_int {
    (1 << 30) | (hash(text) >> 2) as c_int
}

/// A tag that no other call which this process introduces has at the same time.
pub fn fresh(world: &Comm) -> c_int {
    // Relaxed: a counter; a number comes again when tens of thousands of calls have been made since.
    let count = TAKEN.fetch_add(1, Ordering::Relaxed) & ((1 << COUNT_BITS) - 1);
    (CALLS | ((world.rank() << COUNT_BITS | count) & (CALLS - 1))) as c_int
}

/// A tag for a call with string `text` among processes of several worlds, who do not know each other's ranks there. It
/// differs from the tags of other calls that have a member in common with this one, but for one chance in half a
/// thousand million.
pub fn fresh_among_worlds(text: &[u8]) -> c_int {
    // Relaxed: a counter, as above.
    let count = TAKEN.fetch_add(1, Ordering::Relaxed);
    (CALLS | (hash(text).wrapping_add(count) & (CALLS - 1))) as c_int
}

/// Introduces the call with string `text`, whose tag is `tag`, to the ranks `to` of `world`.
///
/// # Errors
/// The first failure of a message; the others have been sent all the same.
pub fn introduce(
    engine: &Engine,
    world: &Comm,
    (text, tag): (&[u8], c_int),
    to: impl IntoIterator<Item = usize>,
) -> Result<()> {
    let transport = BlockingTransport::tagged(engine, world, of_introduction(text));
    let message = [&tag.to_ne_bytes()[..], text].concat();
    for rank in to {
        run(transport.send(rank, &message))?;
    }
    transport.conclude(Ok(()))
}

/// Waits until rank `from` of `world` introduces the call with string `text`; the call's tag.
///
/// # Errors
/// What makes waiting pointless.
pub fn introduced(engine: &Engine, world: &Comm, text: &[u8], from: usize) -> Result<c_int> {
    let stray = || {
        let mut strays = lock(&STRAYS);
        let is_ours =
            |stray: &Introduction| stray.context == world.context && stray.from == from && stray.text == text;
        let at = strays.iter().position(is_ours)?;
        Some(strays.remove(at).tag)
    };
    loop {
        let message = match engine.coll_take_unless(world, from as i32, of_introduction(text), stray)? {
            Ok(tag) => return Ok(tag),
            Err(message) => message,
        };
        let (tag, came) = message
            .split_first_chunk()
            .map(|(tag, came)| (c_int::from_ne_bytes(*tag), came))
            .ok_or_else(|| Error::Intern("an introduction to a call is too short".into()))?;
        if came == text {
            return Ok(tag);
        }
        lock(&STRAYS).push(Introduction { context: world.context, from, text: came.to_vec(), tag });
        engine.progress().something_happened();
    }
}

/// The string of another call that one of `group` has introduced, and which rank of the job that is, while this one
/// waits in a call with string `text`.
fn given_instead(engine: &Engine, world: &Comm, group: &Group, text: &[u8]) -> Option<(u32, String)> {
    let come = engine.unexpected_of_library(world.collective());
    come.into_iter().find_map(|message| {
        group.rank_of(message.rank)?;
        let (_, given) = message.bytes.as_deref()?.split_first_chunk::<{ size_of::<c_int>() }>()?;
        let is_other = message.tag == of_introduction(given) && given != text;
        is_other.then(|| (message.rank, String::from_utf8_lossy(given).into_owned()))
    })
}

/// The string of the call that a message introduces, if it is an introduction.
pub fn introduced_by(message: &LibraryMessage) -> Option<String> {
    let (_, given) = message.bytes.as_deref()?.split_first_chunk::<{ size_of::<c_int>() }>()?;
    (message.tag == of_introduction(given)).then(|| String::from_utf8_lossy(given).into_owned())
}

/// What distinguishes a call with a string for a tag, for the report of a deadlock: the string, and which other one has
/// come from one of `from`; else who they are.
pub fn about_call(engine: &Engine, world: &Comm, from: &Group, text: &[u8]) -> CollectiveAbout {
    let op = match given_instead(engine, world, from, text) {
        Some((rank, given)) => format!("rank {rank} gave tag '{given}'"),
        None => among_members(from),
    };
    let data = format!("string tag '{}'", String::from_utf8_lossy(text));
    CollectiveAbout { data, op, ..CollectiveAbout::default() }
}

/// A group, for the report of a deadlock.
pub fn among_members(group: &Group) -> String {
    format!("among {}", job_ranks(&group.iter().collect::<Vec<_>>()))
}

/// The tag of a call with string `text` among the ranks `ranks` of `world`, of which the caller is one and the one at
/// `first` introduces it, with a tag that it gets from `fresh`.
///
/// # Errors
/// As for [`introduce`] and [`introduced`].
pub fn agree(
    engine: &Engine,
    world: &Comm,
    text: &[u8],
    (ranks, first): (&[usize], usize),
    fresh: impl FnOnce() -> c_int,
) -> Result<c_int> {
    let own = world.rank() as usize;
    let first = ranks.get(first).copied().unwrap_or(own);
    if first != own {
        return introduced(engine, world, text, first);
    }
    let tag = fresh();
    introduce(engine, world, (text, tag), ranks.iter().copied().filter(|rank| *rank != own))?;
    Ok(tag)
}

/// A call with a string for a tag, of the members of a group.
pub struct NamedCall<'e> {
    engine: &'e Engine,
    comm: CommOfCall,
    tag: c_int,
    /// The ranks of the members in the communicator of the call, and the caller's place among them.
    ranks: Vec<usize>,
    own: usize,
}

/// On what the members of a call send each other messages.
enum CommOfCall {
    /// The communicator of all ranks of the caller's world, of which all of them are.
    World(&'static Comm),
    /// One for this call, of processes of several worlds, or of several jobs.
    Own(Box<Comm>),
}

impl Drop for NamedCall<'_> {
    fn drop(&mut self) {
        if let CommOfCall::Own(comm) = &self.comm {
            self.engine.registry().detach(&comm.events);
        }
    }
}

impl<'e> NamedCall<'e> {
    /// The call with string `text` of the members of `group`, whose member `first` introduces it to the others. `None`
    /// if the caller is no member. With processes of several worlds the string goes with the names of the members: a
    /// process may be in several such groups, and have the same rank there as others.
    ///
    /// # Errors
    /// As for [`agree`].
    pub fn of(engine: &'e Engine, group: &Group, first: usize, text: &[u8]) -> Result<Option<Self>> {
        let Some(own) = group.rank_of(engine.rank()) else { return Ok(None) };
        let world = comms::world()?;
        let in_world = |place| world.group().rank_of(place).map(|rank| rank as usize);
        if let Some(ranks) = group.iter().map(in_world).collect::<Option<Vec<usize>>>() {
            let tag = agree(engine, world, text, (&ranks, first), || fresh(world))?;
            return Ok(Some(Self { engine, comm: CommOfCall::World(world), tag, ranks, own: own as usize }));
        }
        let comm = engine.open_for_introductions(own, group.clone(), engine.registry().attach(0))?;
        let ranks: Vec<usize> = (0..group.size() as usize).collect();
        let mut call =
            Self { engine, comm: CommOfCall::Own(Box::new(comm)), tag: 0, ranks, own: own as usize };
        let text = [&names(engine, group), text].concat();
        call.tag = agree(engine, call.comm(), &text, (&call.ranks, first), || fresh_among_worlds(&text))?;
        Ok(Some(call))
    }

    fn comm(&self) -> &Comm {
        match &self.comm {
            CommOfCall::World(world) => world,
            CommOfCall::Own(comm) => comm,
        }
    }

    /// The transport of its messages, to ranks of the communicator of the call.
    pub fn transport(&self) -> BlockingTransport<'_> {
        BlockingTransport::tagged(self.engine, self.comm(), self.tag)
    }

    /// The members' ranks in the communicator of the call.
    pub fn ranks(&self) -> &[usize] {
        &self.ranks
    }

    /// The members as a group of their own, over [`Self::transport`].
    pub fn members<'t, T: Transport>(&'t self, transport: &'t T) -> Subset<'t, T> {
        Subset { transport, ranks: &self.ranks, rank: self.own }
    }
}
