//! Making and freeing communicators (MPI 5.0 §7.4.2, §7.4.3, §7.6.2).

use super::string_tags::{self, NamedCall};
use super::{attr, errhandler, group, memory_kinds};
use crate::abi::*;
use crate::arguments::{EvenIncomplete, InOut};
use crate::check as check_calls;
use crate::coll::call::Transports;
use crate::coll::connect::{NOT_CONNECTED, connect};
use crate::coll::create::{self, Agreed, Contexts, among, inter_split, merge, split};
use crate::coll::nonblocking::TeamUse;
use crate::coll::{
    BlockingTransport, NumberedCall, Outline, Purpose, SequenceNumber, Subset, Transport, agreement, run,
    tag_of_group_call, user_tag,
};
use crate::collective::{background, begin, blocking, conclude, conclude_nonblocking};
use crate::comm::{Comm, Group, Link, Similarity, Topology, attributes};
use crate::comms;
use crate::dynamic::Introductions;
use crate::engine::{Engine, describing};
use crate::errhandler::ErrhandlerKind;
use crate::error::{Error, Result};
use crate::events::{CommEvents, hold_fast_path};
use crate::info::Info;
use crate::process::{self, engine};
use crate::shm::telemetry::CollectiveAbout;
use crate::types::{MPI_Comm, MPI_Errhandler, MPI_Group, MPI_Request};
use core::ffi::c_int;
use std::sync::Arc;

/// Opens a communicator that its members have agreed on. It inherits the error handler of `parent`.
pub(super) fn opened(
    agreed: Agreed,
    topology: Option<Arc<Topology>>,
    parent: &Comm,
    events: Arc<CommEvents>,
) -> Result<Comm> {
    let engine = engine()?;
    let Agreed { context, rank, group, remote } = agreed;
    let comm = match remote {
        Some(remote) => Comm::inter(context, rank, group, remote, events),
        None => Comm::intra(context, rank, group, events),
    };
    let comm = engine.open(comm.with_topology(topology))?;
    comm.errhandler.replace(parent.errhandler.get());
    let link = Link::new(engine, comm.group(), comm.remote());
    Ok(comm.leased(Box::new(move |context| {
        engine.close_communicator(context);
        link.end(engine);
    })))
}

/// Opens it and gives it a handle.
pub(crate) fn admit(agreed: Agreed, topology: Option<Arc<Topology>>, parent: &Comm) -> Result<MPI_Comm> {
    let events = engine()?.registry().attach(0);
    let comm = Arc::new(opened(agreed, topology, parent, events)?);
    let handle = comms::insert(comm.clone())?;
    comm.emit_created();
    Ok(handle)
}

/// Frees what `handle` names, after its attributes.
fn free(handle: MPI_Comm) -> Result<()> {
    let comm = comms::get(handle)?;
    if matches!(handle, MPI_COMM_WORLD | MPI_COMM_SELF) {
        return Err(Error::Comm("predefined communicators cannot be freed"));
    }
    attr::comm_freed(handle)?;
    if check_calls::is_on() {
        check_calls::comm_freed(&comm);
    }
    super::dynamic::comm_freed(handle);
    engine()?.registry().detach(&comm.events);
    comms::remove(handle)?.emit_freed();
    Ok(())
}

/// A context for a duplicate of `comm`.
async fn same_context<T: Transport>(transports: &Transports<T>, comm: &Comm, engine: &Engine) -> Result<u32> {
    match transports {
        Transports::Intracomm(transport) => create::context(transport, engine, comm.group()).await,
        Transports::Intercomm(sides) => {
            create::inter_context(sides, (comm.group(), comm.peers()), engine).await
        }
    }
}

/// What a duplicate of `comm` is, in `context`.
fn same(comm: &Comm, context: u32) -> Agreed {
    Agreed { context, rank: comm.rank(), group: comm.group().clone(), remote: comm.remote().cloned() }
}

/// A duplicate with everything that duplicates inherit, and `hints`.
fn duplicate(handle: MPI_Comm, hints: Info) -> Result<MPI_Comm> {
    let old = comms::get(handle)?;
    let engine = engine()?;
    let transports = blocking(engine, &old, Purpose::Create);
    let context = run(same_context(&transports, &old, engine));
    let context = conclude(&transports, context)?;
    let new = admit(same(&old, context), old.topology().cloned(), &old)?;
    match dress(handle, &old, new, hints) {
        Ok(()) => Ok(new),
        Err(error) => {
            // The copy callback's error is what matters.
            let _ = free(new);
            Err(error)
        }
    }
}

/// Gives a duplicate its hints, attributes and events.
fn dress(handle: MPI_Comm, old: &Comm, new: MPI_Comm, hints: Info) -> Result<()> {
    let new = comms::get(new)?;
    new.set_info(&hints);
    old.attributes.copy_to(attr::owner(attributes::KeyvalKind::Comm, handle), &new.attributes)?;
    engine()?.registry().propagate(&old.events, &new.events);
    Ok(())
}

/// A communicator that a nonblocking call makes. Until it is there its handle names a stand-in without contexts, which
/// takes what is set on it for the communicator: its error handler, attributes, hints and name. Dropped before, it
/// leaves nothing behind. As long as there is one calls take their slow path, which looks whether a communicator is
/// complete.
pub(super) struct ComingComm {
    stand_in: Arc<Comm>,
    handle: MPI_Comm,
    is_there: bool,
}

impl ComingComm {
    /// The stand-in, with the error handler that `parent` has now.
    pub(super) fn new(engine: &Engine, parent: &Comm) -> Result<Self> {
        let events = engine.registry().attach(0);
        let stand_in = Arc::new(Comm::intra(parent.context, parent.rank(), parent.group().clone(), events));
        stand_in.errhandler.replace(parent.errhandler.get());
        let handle = comms::insert(stand_in.clone())?;
        hold_fast_path(true);
        Ok(Self { stand_in, handle, is_there: false })
    }

    /// The handle.
    pub(super) const fn handle(&self) -> MPI_Comm {
        self.handle
    }

    /// Its events.
    pub(super) fn events(&self) -> Arc<CommEvents> {
        self.stand_in.events.clone()
    }

    /// Here it is.
    pub(super) fn arrives(mut self, mut comm: Comm) -> Result<()> {
        comm.errhandler.replace(self.stand_in.errhandler.get());
        comm.attributes = self.stand_in.attributes.take();
        comm.set_info(&self.stand_in.info());
        comm.set_name(&self.stand_in.name());
        let comm = Arc::new(comm);
        self.is_there = true;
        comms::replace(self.handle, comm.clone())?;
        comm.emit_created();
        Ok(())
    }
}

impl Drop for ComingComm {
    fn drop(&mut self) {
        hold_fast_path(false);
        if self.is_there {
            return;
        }
        // That the call has failed is what matters.
        let _ = self.stand_in.attributes.delete_all(attr::owner(attributes::KeyvalKind::Comm, self.handle));
        if let Ok(engine) = engine() {
            engine.registry().detach(&self.stand_in.events);
        }
        let _ = comms::remove(self.handle);
    }
}

/// Begins a duplicate: its handle, which the communicator is behind when the request is complete, and the request. What
/// it inherits is what there is now (MPI 5.0 §7.4.2).
fn duplicate_nonblocking(handle: MPI_Comm, hints: Info) -> Result<(MPI_Comm, MPI_Request)> {
    let old = comms::get(handle)?;
    let engine = engine()?;
    let coming = ComingComm::new(engine, &old)?;
    let new = coming.handle();
    old.attributes.copy_to(attr::owner(attributes::KeyvalKind::Comm, handle), &coming.stand_in.attributes)?;
    coming.stand_in.set_info(&hints);
    let number = SequenceNumber::Once(old.next_in_background());
    let outline = Outline::of_function("MPI_Comm_idup", NumberedCall::count_in_background(engine, &old));
    let from = old.clone();
    let work = async move {
        let transports = background(engine, &old, number, &TeamUse::OfComm);
        let context = same_context(&transports, &old, engine).await;
        let context = conclude_nonblocking(&transports, context)?;
        let comm = opened(same(&old, context), old.topology().cloned(), &old, coming.events())?;
        engine.registry().propagate(&old.events, &comm.events);
        coming.arrives(comm)
    };
    // SAFETY: the work holds what is `Send`, and its transports.
    Ok((new, unsafe { begin(from, Box::pin(work), |_| outline) }?))
}

/// Splits by color (none: not in any) and key.
pub(crate) fn split_by(comm: &Comm, color: Option<c_int>, key: c_int) -> Result<Option<Agreed>> {
    let engine = engine()?;
    let transports = blocking(engine, comm, Purpose::Create);
    let agreed = match &transports {
        Transports::Intracomm(transport) => run(split(transport, engine, comm.group(), (color, key))),
        Transports::Intercomm(sides) => {
            run(inter_split(sides, engine, (comm.group(), comm.peers()), (color, key)))
        }
    };
    conclude(&transports, agreed)
}

/// The handle of what was agreed on; MPI_COMM_NULL for those who are not in it.
pub(super) fn admitted(agreed: Option<Agreed>, parent: &Comm) -> Result<MPI_Comm> {
    agreed.map_or(Ok(MPI_COMM_NULL), |agreed| admit(agreed, None, parent))
}

/// Gives a new communicator its hints, where the caller is in it (MPI 5.0 §7.4.4).
pub(super) fn hinted(handle: MPI_Comm, hints: &Info) -> Result<MPI_Comm> {
    if handle != MPI_COMM_NULL {
        comms::get(handle)?.set_info(hints);
    }
    Ok(handle)
}

/// The ranks in `comm` of the members of `group`.
fn ranks_in(comm: &Comm, group: &Group) -> Result<Vec<usize>> {
    let rank = |world| comm.group().rank_of(world).map(|rank| rank as usize);
    let ranks: Option<Vec<usize>> = group.iter().map(rank).collect();
    ranks.ok_or(Error::Group("a member of the group is not in the communicator"))
}

/// MPI_Comm_create: a split, in which the members of a group have the same color.
fn create_of(comm: &Comm, group: &Group) -> Result<Option<Agreed>> {
    let ranks = ranks_in(comm, group)?;
    let own = ranks.iter().position(|&rank| rank == comm.rank() as usize);
    // Different groups in one call are disjoint, so their first members differ; both sides of an intercommunicator must
    // have the same color.
    let color = if comm.is_inter() { Some(0) } else { ranks.first().map(|&rank| rank as c_int) };
    split_by(comm, own.and(color), own.unwrap_or(0) as c_int)
}

pub(super) fn only_within(comm: &Comm) -> Result<()> {
    if comm.is_inter() { Err(Error::Comm("an intercommunicator")) } else { Ok(()) }
}

/// `tag` is asked with the ranks of the group in `comm`.
fn group_among(
    comm: &Comm,
    group: Group,
    tag: impl FnOnce(&Engine, &[usize]) -> Result<c_int>,
) -> Result<Option<Agreed>> {
    let ranks = ranks_in(comm, &group)?;
    if !ranks.contains(&(comm.rank() as usize)) {
        return Ok(None);
    }
    let engine = engine()?;
    let transport = BlockingTransport::tagged(engine, comm, tag(engine, &ranks)?);
    transport.run(among(&transport, engine, group, &ranks)).map(Some)
}

/// The string that stands for a tag of which [`user_tag`] has none.
fn large_tag(tag: c_int) -> Vec<u8> {
    format!("tag {tag}").into_bytes()
}

/// The tag of the messages between the leaders of MPI_Intercomm_create on `comm`, where the other one is `other`.
fn tag_of_leaders(engine: &Engine, comm: &Comm, other: c_int, tag: c_int) -> Result<c_int> {
    if let Some(tag) = user_tag(tag, true) {
        return Ok(tag);
    }
    let (here, there) = (engine.name(engine.rank()), engine.name(comm.world_rank_of(other)));
    let text = large_tag(tag);
    if there < here {
        return string_tags::introduced(engine, comm, &text, other as usize);
    }
    let tag = string_tags::fresh(comm);
    string_tags::introduce(engine, comm, (&text, tag), (there != here).then_some(other as usize))?;
    Ok(tag)
}

/// MPI_Intercomm_create. A leader that cannot begin sends its group that error.
fn connected(
    local: &Comm,
    leader: c_int,
    peer: MPI_Comm,
    remote_leader: c_int,
    tag: c_int,
) -> Result<Agreed> {
    only_within(local)?;
    let leader = local.group().checked(leader)?;
    if tag < 0 {
        return Err(Error::Tag(tag));
    }
    let engine = engine()?;
    let transport = BlockingTransport::new(engine, local, Purpose::Create);
    let agree = |peer: Option<(&BlockingTransport<'_>, usize)>| {
        transport.run(connect(&transport, &Introductions(engine), local.group(), leader as usize, peer))
    };
    if local.rank() != leader {
        // Of a peer communicator that is in trouble the leader alone knows.
        return agree(None).map_err(|error| match error {
            Error::Comm(NOT_CONNECTED) => agreement::failure_of_others(engine).unwrap_or(error),
            error => error,
        });
    }
    let checked = comms::get(peer).and_then(|peer| {
        peer.check_peer(remote_leader)?;
        let tag = tag_of_leaders(engine, &peer, remote_leader, tag)?;
        Ok((peer, tag))
    });
    match checked {
        Ok((peer, own_tag)) => {
            let to_leader = BlockingTransport::tagged(engine, &peer, own_tag);
            // The leaders meet on another communicator, of which this is no call:
            // there the tag says which belong together.
            let about = || CollectiveAbout { data: format!("tag {tag}"), ..CollectiveAbout::default() };
            let agreed = describing(&about, || agree(Some((&to_leader, remote_leader as usize))));
            to_leader.conclude(agreed)
        }
        Err(error) => agree(None).and(Err(error)),
    }
}

/// MPI_Intercomm_create_from_groups: as MPI_Intercomm_create, with a string for a tag. Only the leader has `remote`,
/// and there the rank of the other leader.
fn connected_groups(group: &Group, leader: c_int, remote: (MPI_Group, c_int), text: &[u8]) -> Result<Agreed> {
    let engine = engine()?;
    let leader = group.checked(leader)? as usize;
    let call = NamedCall::of(engine, group, leader, text)?
        .ok_or(Error::Group("the caller is not a member of the local group"))?;
    let transport = call.transport();
    let agree = |peer: Option<(&Subset<'_, BlockingTransport<'_>>, usize)>| {
        let members = call.members(&transport);
        transport.run(connect(&members, &Introductions(engine), group, leader, peer))
    };
    if group.rank_of(engine.rank()) != Some(leader as u32) {
        return agree(None);
    }
    match call_of_leaders(engine, remote, text) {
        Ok((leaders, other)) => {
            let to_other = leaders.transport();
            let agreed = agree(Some((&leaders.members(&to_other), other)));
            to_other.conclude(agreed)
        }
        Err(error) => agree(None).and(Err(error)),
    }
}

/// The call of the two leaders of MPI_Intercomm_create_from_groups, and which of them the other one is.
/// Both have them in the same order.
fn call_of_leaders<'e>(
    engine: &'e Engine,
    (group, rank): (MPI_Group, c_int),
    text: &[u8],
) -> Result<(NamedCall<'e>, usize)> {
    let group = group::find(group)?;
    let (here, there) = (engine.rank(), group.world_rank(group.checked(rank)?));
    if here == there {
        return Err(Error::Group("the two groups have a member in common"));
    }
    let is_first = engine.name(here) < engine.name(there);
    let leaders = Group::from_world_ranks(if is_first { vec![here, there] } else { vec![there, here] });
    let call = NamedCall::of(engine, &leaders, 0, text)?;
    let call = call.ok_or_else(|| Error::Intern("a leader is not one of the two".into()))?;
    Ok((call, usize::from(is_first)))
}

fn merged(comm: &Comm, high: bool) -> Result<Agreed> {
    let engine = engine()?;
    match &blocking(engine, comm, Purpose::Create) {
        Transports::Intracomm(_) => Err(Error::Comm("not an intercommunicator")),
        transports @ Transports::Intercomm(sides) => {
            let agreed = run(merge(sides, engine, (comm.group(), comm.peers()), high));
            conclude(transports, agreed)
        }
    }
}

/// Compares a collective call on `comm`, of which members may give any arguments, with those of the other members.
fn compare_function(comm: &Comm) {
    if check_calls::is_on() {
        check_calls::compare_on_comm(comm, "arguments", "");
    }
}

/// Performs a collective call that makes something of `comm`: compared with those of the other members, as
/// [`check_calls::compare_on_comm`] says, and counted as one there, whatever `call` sends and receives.
pub(super) fn making<R>(
    comm: &Comm,
    (what, about): (&'static str, impl FnOnce() -> String),
    call: impl FnOnce() -> Result<R>,
) -> Result<R> {
    if check_calls::is_on() {
        check_calls::compare_on_comm(comm, what, &about());
    }
    NumberedCall::begin(engine()?, comm).describing(call)
}

/// What [`making`] gets where members may give any arguments.
pub(super) const ANY: (&str, fn() -> String) = ("arguments", String::new);

/// MPI_Comm_dup, MPI_Comm_dup_with_info: a duplicate with everything that duplicates inherit, and `hints`.
pub fn dup(comm: MPI_Comm, hints: Info) -> Result<MPI_Comm> {
    making(&*comms::get(comm)?, ANY, || duplicate(comm, hints))
}

/// MPI_Comm_idup, MPI_Comm_idup_with_info.
pub fn idup(comm: MPI_Comm, hints: Info) -> Result<(MPI_Comm, MPI_Request)> {
    compare_function(&*comms::get(comm)?);
    duplicate_nonblocking(comm, hints)
}

/// MPI_Comm_split.
pub fn split_comm(parent: Arc<Comm>, color: c_int, key: c_int) -> Result<MPI_Comm> {
    if color < 0 && color != MPI_UNDEFINED {
        return Err(Error::Value(format!("the color is {color}; it must be 0 or more, or MPI_UNDEFINED")));
    }
    making(&parent, ANY, || {
        admitted(split_by(&parent, (color != MPI_UNDEFINED).then_some(color), key)?, &parent)
    })
}

/// MPI_Comm_create.
pub fn create_comm(parent: Arc<Comm>, group: Arc<Group>) -> Result<MPI_Comm> {
    making(&parent, ANY, || {
        let agreed = create_of(&parent, &group)?;
        if check_calls::is_on()
            && let Some(agreed) = &agreed
        {
            check_calls::compare_groups(&parent, &group, &agreed.group);
        }
        admitted(agreed, &parent)
    })
}

/// MPI_Comm_create_group.
pub fn create_group(parent: Arc<Comm>, group: MPI_Group, tag: c_int) -> Result<MPI_Comm> {
    only_within(&parent)?;
    if tag < 0 {
        return Err(Error::Tag(tag));
    }
    let group = (*group::find(group)?).clone();
    let about = || about_group_call(&parent, &group, tag);
    let agreed = describing(&about, || {
        group_among(&parent, group.clone(), |engine, ranks| match user_tag(tag, false) {
            Some(tag) => Ok(tag),
            None => {
                let fresh = || string_tags::fresh(&parent);
                string_tags::agree(engine, &parent, &large_tag(tag), (ranks, 0), fresh)
            }
        })
    })?;
    admitted(agreed, &parent)
}

/// What distinguishes a call of MPI_Comm_create_group, for the report of a deadlock: its tag, and which other one a
/// member of its group has given, whose message has come; else the group.
fn about_group_call(parent: &Comm, group: &Group, tag: c_int) -> CollectiveAbout {
    let come = engine().map(|engine| engine.unexpected_of_library(parent.collective())).unwrap_or_default();
    let other = come.into_iter().find_map(|message| {
        group.rank_of(message.rank)?;
        Some((message.rank, tag_of_group_call(message.tag).filter(|given| *given != tag)?))
    });
    let op = match other {
        Some((rank, given)) => format!("rank {rank} gave tag {given}"),
        None => string_tags::among_members(group),
    };
    CollectiveAbout { data: format!("tag {tag}"), op, ..CollectiveAbout::default() }
}

/// MPI_Comm_create_from_group.
pub fn create_from_group(
    group: MPI_Group,
    tag: &[u8],
    hints: Info,
    handler: MPI_Errhandler,
) -> Result<MPI_Comm> {
    let handler = errhandler::find(handler, ErrhandlerKind::Comm)?;
    let group = (*group::find(group)?).clone();
    let world = comms::world()?;
    let of_all = group.compare(world.group()) != Similarity::Unequal;
    let engine = engine()?;
    let about = || string_tags::about_call(engine, world, &group, tag);
    let agreed = describing(&about, || {
        let call = NamedCall::of(engine, &group, 0, tag)?;
        let make = |call: NamedCall<'_>| {
            let transport = call.transport();
            transport.run(among(&transport, engine, group.clone(), call.ranks()))
        };
        call.map(make).transpose()
    });
    let handle = admitted(agreed?, world)?;
    if of_all {
        process::all_have_met()?;
    }
    if handle != MPI_COMM_NULL {
        let new = comms::get(handle)?;
        new.set_info(&hints);
        new.errhandler.replace(handler);
    }
    Ok(handle)
}

/// MPI_Intercomm_create. `tag` counts apart from the tags of messages.
pub fn intercomm(
    local: Arc<Comm>,
    leader: c_int,
    peer: MPI_Comm,
    remote_leader: c_int,
    tag: c_int,
) -> Result<MPI_Comm> {
    making(&local, ("local leaders", || format!("local leader {leader}")), || {
        admit(connected(&local, leader, peer, remote_leader, tag)?, None, &local)
    })
}

/// MPI_Intercomm_create_from_groups. MPI_COMM_NULL, without a word to others, where a group is empty (MPI 5.0 §7.6.2).
pub fn intercomm_from_groups(
    local: MPI_Group,
    leader: c_int,
    remote: MPI_Group,
    remote_leader: c_int,
    tag: &[u8],
    hints: Info,
    handler: MPI_Errhandler,
) -> Result<MPI_Comm> {
    let handler = errhandler::find(handler, ErrhandlerKind::Comm)?;
    let local = group::find(local)?;
    if local.size() == 0 || remote == MPI_GROUP_EMPTY {
        return Ok(MPI_COMM_NULL);
    }
    let (engine, world) = (engine()?, comms::world()?);
    // The leader hears of the other one. Groups that overlap are an error that the call finds.
    let other =
        group::find(remote).ok().and_then(|group| Some(group.world_rank(group.checked(remote_leader).ok()?)));
    let other = other.filter(|&other| !local.contains(other));
    let from = Group::from_world_ranks(local.iter().chain(other).collect());
    let about = || string_tags::about_call(engine, world, &from, tag);
    let agreed = describing(&about, || connected_groups(&local, leader, (remote, remote_leader), tag))?;
    let handle = admit(agreed, None, world)?;
    let new = comms::get(handle)?;
    new.set_info(&hints);
    new.errhandler.replace(handler);
    Ok(handle)
}

/// MPI_Intercomm_merge.
pub fn merge_comm(parent: Arc<Comm>, high: bool) -> Result<MPI_Comm> {
    making(&parent, ANY, || admit(merged(&parent, high)?, None, &parent))
}

/// MPI_Comm_free. Messages under way still arrive.
pub fn free_comm(comm: InOut<'_, MPI_Comm>) -> Result<()> {
    compare_function(&*comms::get(comm.get())?);
    free(comm.get())?;
    comm.set(MPI_COMM_NULL);
    Ok(())
}

/// MPI_Comm_disconnect: when all have come here, what they sent each other has been received.
pub fn disconnect(comm: InOut<'_, MPI_Comm>) -> Result<()> {
    let found = comms::get(comm.get())?;
    compare_function(&found);
    let ports = blocking(engine()?, &found, Purpose::Barrier);
    // Not as the program's operation, of which events tell.
    let met = match &ports {
        Transports::Intracomm(transport) => run(crate::coll::barrier(transport)),
        Transports::Intercomm(sides) => run(crate::coll::intercomm::barrier(sides)),
    };
    conclude(&ports, met)?;
    let (start, _) = engine()?.detach_buffer(found.buffers())?;
    if check_calls::is_on() {
        check_calls::detached(start.addr());
    }
    free(comm.get())?;
    comm.set(MPI_COMM_NULL);
    Ok(())
}

/// MPI_Comm_set_info: hints that are not named stay as they are.
pub fn set_info(comm: EvenIncomplete<'_>, hints: Info) -> Result<()> {
    comm.set_info(&hints);
    Ok(())
}

/// MPI_Comm_get_info; the object is the caller's to free.
pub fn info(comm: EvenIncomplete<'_>) -> Result<Info> {
    memory_kinds::with_kinds(comm.info(), &comm)
}
