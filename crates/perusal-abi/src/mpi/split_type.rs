//! MPI_Comm_split_type (MPI 5.0 §7.4.2): a communicator of those who share memory, a part of the machine,
//! or a process set.

use super::comm_create::{admitted, hinted, making, split_by};
use super::{info, session};
use crate::abi::*;
use crate::coll::{BlockingTransport, Purpose, Scratch, allgather};
use crate::comm::Comm;
use crate::error::{Error, Result};
use crate::info::Info;
use crate::process::engine;
use crate::shm::hardware::{Confinement, HARDWARE_RESOURCES, HardwareResource, confinement};
use crate::types::{MPI_Comm, MPI_Info};
use core::ffi::c_int;
use std::sync::Arc;

/// Hint: a type of hardware resource. Of MPI_COMM_TYPE_HW_UNGUIDED the library sets it.
const HARDWARE: &str = "mpi_hw_resource_type";
/// Hint: the name of a process set.
const PROCESS_SET: &str = "mpi_pset_name";
/// The type of what all processes of a node share.
const SHARED_MEMORY: &str = "mpi_shared_memory";

/// The types of hardware resources of this machine, and whether the calling process is confined to one of each
/// (MPI_Get_hw_resource_info).
pub(super) fn resources() -> Result<Info> {
    let mut info = Info::new();
    info.set(SHARED_MEMORY, "true")?;
    for (kind, confined) in HardwareResource::ALL.into_iter().zip(confinement()) {
        match confined {
            Confinement::Unknown => {}
            Confinement::Several => info.set(kind.uri(), "false")?,
            Confinement::One(_) => info.set(kind.uri(), "true")?,
        }
    }
    Ok(info)
}

/// The color of a member whose hints say by what to split; none for one that is confined to no instance of it, or where
/// nothing is known by that name.
fn guided_color(comm: &Comm, hints: &Info, takes_sets: bool) -> Result<Option<c_int>> {
    let set = hints.get(PROCESS_SET)?.filter(|_| takes_sets);
    match (hints.get(HARDWARE)?, set) {
        (Some(_), Some(_)) => {
            Err(Error::InfoKey("a communicator is split by mpi_hw_resource_type or by mpi_pset_name"))
        }
        (Some(kind), None) if kind == SHARED_MEMORY.as_bytes() => Ok(Some(0)),
        (Some(kind), None) => Ok(HardwareResource::named(kind).and_then(|kind| {
            let first = confinement()[kind as usize].first_cpu()?;
            c_int::try_from(first).ok()
        })),
        (None, Some(name)) => set_color(comm, name),
        (None, None) => Ok(None),
    }
}

/// The same for a process set: the rank in `comm` of its first member.
/// A set of an intercommunicator's processes is not looked for.
fn set_color(comm: &Comm, name: &[u8]) -> Result<Option<c_int>> {
    let Some(set) = session::set(name)?.filter(|_| !comm.is_inter()) else { return Ok(None) };
    Ok(set.iter().filter_map(|member| comm.group().rank_of(member)).min().map(|rank| rank as c_int))
}

/// What each member is confined to, as all of them see it: the first CPU of the instance, by type, or -1.
type Confined = [i32; HARDWARE_RESOURCES];

/// The largest type of which not all members are confined to one and the same instance, and some are to one.
fn dividing(members: &[Confined]) -> Option<HardwareResource> {
    let divides = |kind: &HardwareResource| {
        let mut of = members.iter().map(|member| member[*kind as usize]);
        let first = of.next();
        of.any(|other| Some(other) != first)
    };
    HardwareResource::ALL.into_iter().find(divides)
}

/// Gives each member what the others are confined to. `shown`: not of one that takes no part.
fn exchange(comm: &Comm, shown: bool) -> Result<(Vec<Confined>, Confined)> {
    let number = |confined: Confinement| confined.first_cpu().and_then(|cpu| i32::try_from(cpu).ok());
    let own: Confined = if shown {
        confinement().map(|confined| number(confined).unwrap_or(-1))
    } else {
        [-1; HARDWARE_RESOURCES]
    };
    let mut all = Scratch::of(comm.size() as usize * size_of::<Confined>())?;
    let bytes = own.iter().flat_map(|number| number.to_ne_bytes());
    let at = comm.rank() as usize * size_of::<Confined>();
    all[at..].iter_mut().zip(bytes).for_each(|(to, byte)| *to = byte);
    let transport = BlockingTransport::new(engine()?, comm, Purpose::Create);
    transport.run(allgather(&transport, &mut all))?;
    let mut numbers = all
        .chunks_exact(size_of::<i32>())
        .map(|four| i32::from_ne_bytes(four.try_into().expect("a chunk has four bytes")));
    let mut next = || core::array::from_fn(|_| numbers.next().expect("each member has given its numbers"));
    Ok(((0..comm.size()).map(|_| next()).collect(), own))
}

/// The name of a split type; empty for that of which members may give another one.
const fn name_of(split_type: c_int) -> &'static str {
    match split_type {
        MPI_COMM_TYPE_SHARED => "MPI_COMM_TYPE_SHARED",
        MPI_COMM_TYPE_HW_GUIDED => "MPI_COMM_TYPE_HW_GUIDED",
        MPI_COMM_TYPE_RESOURCE_GUIDED => "MPI_COMM_TYPE_RESOURCE_GUIDED",
        MPI_COMM_TYPE_HW_UNGUIDED => "MPI_COMM_TYPE_HW_UNGUIDED",
        _ => "",
    }
}

/// MPI_Comm_split_type.
pub fn split_type(parent: Arc<Comm>, split_type: c_int, key: c_int, info: MPI_Info) -> Result<MPI_Comm> {
    let hints = info::hints(info)?;
    let (mut color, unguided) = match split_type {
        MPI_COMM_TYPE_SHARED => (Some(0), false),
        MPI_COMM_TYPE_HW_GUIDED => (guided_color(&parent, &hints, false)?, false),
        MPI_COMM_TYPE_RESOURCE_GUIDED => (guided_color(&parent, &hints, true)?, false),
        MPI_COMM_TYPE_HW_UNGUIDED => (None, true),
        MPI_UNDEFINED => (None, false),
        other => {
            let what = format!("split_type is {other}, which is none of MPI_COMM_TYPE_… nor MPI_UNDEFINED");
            return Err(Error::Value(what));
        }
    };
    making(&parent, ("types", || name_of(split_type).to_owned()), || {
        let mut kind = None;
        // A member that gives MPI_UNDEFINED does not know what the others give: all exchange this, whatever they give.
        if !parent.is_inter() {
            let (members, own) = exchange(&parent, unguided)?;
            if unguided {
                kind = dividing(&members);
                color = kind.map(|kind| own[kind as usize]).filter(|color| *color >= 0);
            }
        }
        let new = hinted(admitted(split_by(&parent, color, key)?, &parent)?, &hints)?;
        if let Some(kind) = kind.filter(|_| new != MPI_COMM_NULL && info != MPI_INFO_NULL) {
            info::set_value(info, HARDWARE, kind.uri())?;
        }
        Ok(new)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_part_that_divides_the_members_is_chosen() {
        let both = [0, 0, 0, 0, 0, 0, 0, 0];
        let other_socket = [0, 4, 4, 4, 4, 4, 4, 4];
        let other_core = [0, 0, 0, 0, 1, 1, 1, 1];
        let anywhere = [0, -1, -1, -1, -1, -1, -1, -1];
        assert_eq!(dividing(&[both, both]), None);
        assert_eq!(dividing(&[both]), None);
        assert_eq!(dividing(&[anywhere, anywhere]), None);
        assert_eq!(dividing(&[both, other_core]), Some(HardwareResource::L2Cache));
        assert_eq!(dividing(&[both, other_core, other_socket]), Some(HardwareResource::Package));
        assert_eq!(dividing(&[both, anywhere]), Some(HardwareResource::Package));
        // One member gives MPI_UNDEFINED.
        assert_eq!(dividing(&[both, [-1; HARDWARE_RESOURCES]]), Some(HardwareResource::Machine));
    }
}
