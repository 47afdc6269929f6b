//! Groups (MPI 5.0 §7.3).

use crate::abi::*;
use crate::arguments::{EvenIncomplete, Given, InOut, OrUndefined, Room};
use crate::check;
use crate::comm::{Comm, Group, Similarity};
use crate::comms;
use crate::error::{Error, Result};
use crate::handles::{HandleKind, HandleTable};
use crate::types::MPI_Group;
use core::ffi::c_int;
use std::sync::Arc;

static GROUPS: HandleTable<Group> = HandleTable::new(HandleKind::Group);

/// The group of `handle` (MPI 5.0 §7.3).
///
/// # Errors
/// [`Error::Group`] if there is none.
pub fn find(handle: MPI_Group) -> Result<Arc<Group>> {
    match handle {
        MPI_GROUP_EMPTY => Ok(Arc::new(Group::empty())),
        MPI_GROUP_NULL => Err(Error::Group("MPI_GROUP_NULL")),
        _ => GROUPS.get(handle).ok_or(Error::Group("no such group, or it has been freed")),
    }
}

/// A handle for `group`: MPI_GROUP_EMPTY if it has no members.
///
/// # Errors
/// [`Error::NoMem`] if no handle is left.
pub fn insert(group: Group) -> Result<MPI_Group> {
    if group.size() == 0 {
        return Ok(MPI_GROUP_EMPTY);
    }
    let handle = GROUPS.insert(Arc::new(group))?;
    if check::is_on() {
        check::made(check::ObjectKind::Group, handle);
    }
    Ok(handle)
}

/// The handles of all groups.
pub fn made() -> Vec<MPI_Group> {
    GROUPS.handles()
}

/// How two groups compare, as C has it.
pub fn similarity(similarity: Similarity) -> c_int {
    match similarity {
        Similarity::Ident => MPI_IDENT,
        Similarity::Similar => MPI_SIMILAR,
        Similarity::Unequal => MPI_UNEQUAL,
    }
}

/// MPI_Group_size.
pub fn size(group: Arc<Group>) -> Result<u32> {
    Ok(group.size())
}

/// MPI_Group_rank: MPI_UNDEFINED for a process that is no member.
pub fn rank(group: Arc<Group>) -> Result<OrUndefined> {
    let world = comms::world()?;
    Ok(OrUndefined(group.rank_of(world.group().world_rank(world.rank())).map(i64::from)))
}

/// A rank that a group does not have is its own mistake, not a communicator's.
fn of_group<T>(result: Result<T>) -> Result<T> {
    result.map_err(|error| match error {
        Error::Rank { rank, size } => Error::GroupRank { rank, size },
        error => error,
    })
}

/// MPI_Group_translate_ranks.
pub fn translate(
    from: Arc<Group>,
    ranks: &[c_int],
    to: Arc<Group>,
    translated: Room<'_, c_int>,
) -> Result<()> {
    for (at, rank) in ranks.iter().enumerate() {
        translated.set(at, of_group(from.translate(*rank, &to))?);
    }
    Ok(())
}

/// MPI_Group_compare.
pub fn compare(a: Arc<Group>, b: Arc<Group>) -> Result<c_int> {
    Ok(similarity(a.compare(&b)))
}

/// MPI_Comm_group.
pub fn of_comm(comm: EvenIncomplete<'_>) -> Result<Group> {
    Ok(comm.group().clone())
}

/// MPI_Comm_remote_group.
pub fn of_remote(comm: &Comm) -> Result<Group> {
    super::comm::remote(comm).cloned()
}

/// MPI_Group_union.
pub fn union(a: Arc<Group>, b: Arc<Group>) -> Result<Group> {
    Ok(a.union(&b))
}

/// MPI_Group_intersection.
pub fn intersection(a: Arc<Group>, b: Arc<Group>) -> Result<Group> {
    Ok(a.intersection(&b))
}

/// MPI_Group_difference.
pub fn difference(a: Arc<Group>, b: Arc<Group>) -> Result<Group> {
    Ok(a.difference(&b))
}

/// MPI_Group_incl.
pub fn incl(group: Arc<Group>, ranks: &[c_int]) -> Result<Group> {
    of_group(group.incl(ranks))
}

/// MPI_Group_excl.
pub fn excl(group: Arc<Group>, ranks: &[c_int]) -> Result<Group> {
    of_group(group.excl(ranks))
}

/// MPI_Group_range_incl.
pub fn range_incl(group: Arc<Group>, ranges: &[[c_int; 3]]) -> Result<Group> {
    of_group(group.range_incl(ranges))
}

/// MPI_Group_range_excl.
pub fn range_excl(group: Arc<Group>, ranges: &[[c_int; 3]]) -> Result<Group> {
    of_group(group.range_excl(ranges))
}

/// MPI_Group_free. MPI_GROUP_EMPTY may be freed, as every MPI allows, and stays.
pub fn free(group: InOut<'_, MPI_Group>) -> Result<()> {
    let handle = group.get();
    if handle != MPI_GROUP_EMPTY {
        find(handle)?;
        GROUPS.remove(handle);
    }
    group.set(MPI_GROUP_NULL);
    Ok(())
}

/// A function that gives a group gives its handle.
impl Given<MPI_Group> for Group {
    fn given(self) -> Result<MPI_Group> {
        insert(self)
    }
}
