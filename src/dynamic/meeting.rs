//! Two processes that know each other's places make an intercommunicator of their groups.

use super::elsewhere::{Introductions, meet_guest};
use crate::coll::connect::connect;
use crate::coll::create::Agreed;
use crate::coll::{BlockingTransport, Purpose};
use crate::comm::links::count;
use crate::comm::{Comm, Group};
use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::limits::CONTEXTS;
use crate::shm::{Contact, contexts};

/// Whom a process meets.
#[derive(Debug, Clone, Copy)]
pub struct OtherEnd {
    /// The process.
    pub contact: Contact,
    /// Processes from its place on for which it speaks, as far as they are known, itself included: a death of theirs
    /// ends waits, too.
    pub processes: u32,
}

impl From<Contact> for OtherEnd {
    fn from(contact: Contact) -> Self {
        Self { contact, processes: 1 }
    }
}

/// A communicator between this process and one other, in which the two agree on that of their groups.
#[derive(Debug)]
pub struct Bridge<'a> {
    engine: &'a Engine,
    comm: Comm,
    /// That the meeting counts as a communicator that reaches out, if it does.
    _counted: Option<Counted<'a>>,
}

/// A meeting that counts as a communicator that reaches out, until this is dropped.
#[derive(Debug)]
struct Counted<'a> {
    engine: &'a Engine,
    /// The other process, if there is such a place.
    place: Option<u32>,
}

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        count(self.engine, self.place, false);
    }
}

impl<'a> Bridge<'a> {
    /// Between this process and the other end, in the context that the launcher has allocated for the two.
    /// `counted`: the meeting has been counted as a communicator that reaches out, until now.
    ///
    /// # Errors
    /// [`Error::Intern`] for numbers that cannot be such; those of getting to know the other's job.
    pub fn open(engine: &'a Engine, other: impl Into<OtherEnd>, counted: bool) -> Result<Self> {
        let OtherEnd { contact: Contact { place, context }, processes } = other.into();
        let in_use = engine.job().places_in_use();
        let is_place = place < in_use;
        let counted = counted.then(|| Counted { engine, place: is_place.then_some(place) });
        if !is_place || place == engine.rank() || !(contexts::SELF + 1..CONTEXTS).contains(&context) {
            return Err(Error::Intern(format!("a meeting with place {place} in context {context}")));
        }
        meet_guest(engine, place)?;
        engine.greet(place);
        let processes = processes.clamp(1, in_use - place);
        let (own, other) = (Group::run(engine.rank(), 1), Group::run(place, processes));
        let comm = Comm::inter(context * 2, 0, own, other, engine.registry().attach(0));
        Ok(Self { engine, comm: engine.open(comm)?, _counted: counted })
    }

    /// Has waits for the other process end when `comm`, for which the two meet, is revoked or loses a member.
    #[must_use]
    pub fn tied_to(self, comm: &Comm) -> Self {
        self.engine.tie(self.comm.p2p(), comm.p2p());
        self
    }
}

impl Drop for Bridge<'_> {
    fn drop(&mut self) {
        self.engine.registry().detach(&self.comm.events);
        self.engine.close_communicator(self.comm.context);
    }
}

/// Makes an intercommunicator between the group of `comm` and that which the other end of `bridge` speaks for. All
/// members of `comm` call this, and `root` alone has a bridge; without one the call fails for all of them.
///
/// # Errors
/// Those of the transport; [`Error::Comm`] where the groups cannot be connected.
pub fn meet(engine: &Engine, comm: &Comm, root: u32, bridge: Option<&Bridge<'_>>) -> Result<Agreed> {
    let transport = BlockingTransport::new(engine, comm, Purpose::Create);
    let agree = |peer: Option<(&BlockingTransport<'_>, usize)>| {
        transport.run(connect(&transport, &Introductions(engine), comm.group(), root as usize, peer))
    };
    match bridge {
        None => agree(None),
        Some(bridge) => {
            let to_other = BlockingTransport::new(engine, &bridge.comm, Purpose::Create);
            let agreed = agree(Some((&to_other, 0)));
            to_other.conclude(agreed)
        }
    }
}
