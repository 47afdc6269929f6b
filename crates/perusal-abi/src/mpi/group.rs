//! Groups (MPI 5.0 §7.3).

use crate::abi::*;
use crate::capi::args::{list, list_mut, put, take};
use crate::capi::comms;
use crate::capi::types::{MPI_Comm, MPI_Group};
use crate::comm::{Group, Similarity};
use crate::error::{Error, Result};
use crate::export;
use crate::handles::HandleTable;
use core::ffi::c_int;
use std::sync::Arc;

static GROUPS: HandleTable<Group> = HandleTable::new();

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
    GROUPS
        .insert(Arc::new(group))
        .ok_or_else(|| Error::NoMem("no group handle is left; free what is not needed".into()))
}

/// Writes a new group to an output argument.
///
/// # Safety
/// `to` is NULL or may be written.
unsafe fn give(group: Group, to: *mut MPI_Group) -> Result<()> {
    // SAFETY: the caller's promise.
    unsafe { put(to, MPI_GROUP_NULL) }?;
    let handle = insert(group)?;
    // SAFETY: as above.
    unsafe { put(to, handle) }
}

/// How two groups compare, as C has it.
pub fn similarity(similarity: Similarity) -> c_int {
    match similarity {
        Similarity::Ident => MPI_IDENT,
        Similarity::Similar => MPI_SIMILAR,
        Similarity::Unequal => MPI_UNEQUAL,
    }
}

export! {
    /// MPI 5.0 §7.3.1.
    fn MPI_Group_size(group: MPI_Group, size: *mut c_int) raises(MPI_COMM_SELF) {
        // SAFETY: an output argument.
        unsafe { put(size, find(group)?.size() as c_int) }
    }

    /// MPI 5.0 §7.3.1: MPI_UNDEFINED for a process that is no member.
    fn MPI_Group_rank(group: MPI_Group, rank: *mut c_int) raises(MPI_COMM_SELF) {
        let own = find(group)?.rank_of(comms::world()?.rank());
        // SAFETY: an output argument.
        unsafe { put(rank, own.map_or(MPI_UNDEFINED, |rank| rank as c_int)) }
    }

    /// MPI 5.0 §7.3.1.
    fn MPI_Group_translate_ranks(
        group1: MPI_Group,
        n: c_int,
        ranks1: *const c_int,
        group2: MPI_Group,
        ranks2: *mut c_int,
    ) raises(MPI_COMM_SELF) {
        let (from, to) = (find(group1)?, find(group2)?);
        // SAFETY: arrays of n elements each (MPI 5.0 §7.3.1).
        let (ranks, translated) = unsafe { (list(ranks1, n)?, list_mut(ranks2, n)?) };
        for (rank, translated) in ranks.iter().zip(translated) {
            *translated = from.translate(*rank, &to)?;
        }
        Ok(())
    }

    /// MPI 5.0 §7.3.1.
    fn MPI_Group_compare(group1: MPI_Group, group2: MPI_Group, result: *mut c_int) raises(MPI_COMM_SELF) {
        let compared = find(group1)?.compare(&*find(group2)?);
        // SAFETY: an output argument.
        unsafe { put(result, similarity(compared)) }
    }

    /// MPI 5.0 §7.3.2.
    fn MPI_Comm_group(comm: MPI_Comm, group: *mut MPI_Group) raises(comm) {
        // SAFETY: the communicator is the caller's to pass; an output argument.
        unsafe { give(comms::find(comm)?.group().clone(), group) }
    }

    /// MPI 5.0 §7.6.1.
    fn MPI_Comm_remote_group(comm: MPI_Comm, group: *mut MPI_Group) raises(comm) {
        // SAFETY: the communicator is the caller's to pass.
        let found = unsafe { comms::find(comm) }?;
        let remote = found.remote().ok_or(Error::Comm("not an intercommunicator"))?;
        // SAFETY: an output argument.
        unsafe { give(remote.clone(), group) }
    }

    /// MPI 5.0 §7.3.2.
    fn MPI_Group_union(group1: MPI_Group, group2: MPI_Group, newgroup: *mut MPI_Group) raises(MPI_COMM_SELF) {
        // SAFETY: an output argument.
        unsafe { give(find(group1)?.union(&*find(group2)?), newgroup) }
    }

    /// MPI 5.0 §7.3.2.
    fn MPI_Group_intersection(
        group1: MPI_Group,
        group2: MPI_Group,
        newgroup: *mut MPI_Group,
    ) raises(MPI_COMM_SELF) {
        // SAFETY: an output argument.
        unsafe { give(find(group1)?.intersection(&*find(group2)?), newgroup) }
    }

    /// MPI 5.0 §7.3.2.
    fn MPI_Group_difference(
        group1: MPI_Group,
        group2: MPI_Group,
        newgroup: *mut MPI_Group,
    ) raises(MPI_COMM_SELF) {
        // SAFETY: an output argument.
        unsafe { give(find(group1)?.difference(&*find(group2)?), newgroup) }
    }

    /// MPI 5.0 §7.3.2.
    fn MPI_Group_incl(
        group: MPI_Group,
        n: c_int,
        ranks: *const c_int,
        newgroup: *mut MPI_Group,
    ) raises(MPI_COMM_SELF) {
        // SAFETY: an array of n elements; an output argument.
        unsafe { give(find(group)?.incl(list(ranks, n)?)?, newgroup) }
    }

    /// MPI 5.0 §7.3.2.
    fn MPI_Group_excl(
        group: MPI_Group,
        n: c_int,
        ranks: *const c_int,
        newgroup: *mut MPI_Group,
    ) raises(MPI_COMM_SELF) {
        // SAFETY: an array of n elements; an output argument.
        unsafe { give(find(group)?.excl(list(ranks, n)?)?, newgroup) }
    }

    /// MPI 5.0 §7.3.2.
    fn MPI_Group_range_incl(
        group: MPI_Group,
        n: c_int,
        ranges: *const [c_int; 3],
        newgroup: *mut MPI_Group,
    ) raises(MPI_COMM_SELF) {
        // SAFETY: an array of n triplets; an output argument.
        unsafe { give(find(group)?.range_incl(list(ranges, n)?)?, newgroup) }
    }

    /// MPI 5.0 §7.3.2.
    fn MPI_Group_range_excl(
        group: MPI_Group,
        n: c_int,
        ranges: *const [c_int; 3],
        newgroup: *mut MPI_Group,
    ) raises(MPI_COMM_SELF) {
        // SAFETY: an array of n triplets; an output argument.
        unsafe { give(find(group)?.range_excl(list(ranges, n)?)?, newgroup) }
    }

    /// MPI 5.0 §7.3.3. MPI_GROUP_EMPTY may be freed, as every MPI allows, and stays.
    fn MPI_Group_free(group: *mut MPI_Group) raises(MPI_COMM_SELF) {
        // SAFETY: the address of a handle.
        let handle = unsafe { take(group) }?;
        if handle != MPI_GROUP_EMPTY {
            find(handle)?;
            GROUPS.remove(handle);
        }
        // SAFETY: the address of a handle.
        unsafe { put(group, MPI_GROUP_NULL) }
    }
}
