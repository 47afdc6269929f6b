//! Handles that the program has made and never freed.

use super::{function, types, with};
use crate::mpi::{attr, errhandler, group, info, probe};
use crate::{comms, datatypes, files, windows};
use std::collections::{BTreeMap, BTreeSet};

/// A kind of object that programs make and free.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ObjectKind {
    /// Communicators.
    Comm,
    /// Datatypes.
    Datatype,
    /// Groups.
    Group,
    /// Windows.
    Win,
    /// Files.
    File,
    /// Operations.
    Op,
    /// Error handlers.
    Errhandler,
    /// Info objects.
    Info,
    /// Keys of attributes.
    Keyval,
    /// Messages of matched probes.
    Message,
}

/// Kinds, what one is called, how it is freed, and which are there.
type Row = (ObjectKind, &'static str, &'static str, fn() -> Vec<usize>);

const KINDS: [Row; 10] = [
    (ObjectKind::Comm, "a communicator", "freed; call MPI_Comm_free", comms::made),
    (ObjectKind::Datatype, "a datatype", "freed; call MPI_Type_free", datatypes::made),
    (ObjectKind::Group, "a group", "freed; call MPI_Group_free", group::made),
    (ObjectKind::Win, "a window", "freed; call MPI_Win_free", windows::made),
    (ObjectKind::File, "a file", "closed; call MPI_File_close", files::made),
    (ObjectKind::Op, "an operation", "freed; call MPI_Op_free", datatypes::ops_made),
    (ObjectKind::Errhandler, "an error handler", "freed; call MPI_Errhandler_free", errhandler::made),
    (ObjectKind::Info, "an info object", "freed; call MPI_Info_free", info::made),
    (ObjectKind::Keyval, "a key of attributes", "freed; call MPI_Comm_free_keyval or its like", attr::made),
    (ObjectKind::Message, "a message", "received; call MPI_Mrecv", probe::made),
];

/// What the program has made.
#[derive(Default)]
pub struct Makers {
    /// The functions that have made objects.
    functions: BTreeMap<(ObjectKind, usize), &'static str>,
    /// The names of ports that are open.
    ports: BTreeSet<Vec<u8>>,
}

/// The function that this thread has called makes an object.
pub fn made(kind: ObjectKind, handle: usize) {
    if kind == ObjectKind::Message {
        types::probed(handle);
    }
    with(|state| state.objects.functions.insert((kind, handle), function()));
}

/// The program has opened a port.
pub fn port_opened(name: &[u8]) {
    with(|state| state.objects.ports.insert(name.to_vec()));
}

/// The program has closed a port.
pub fn port_closed(name: &[u8]) {
    with(|state| state.objects.ports.remove(name));
}

impl Makers {
    /// What is there when MPI ends.
    pub fn left(&self) -> Vec<String> {
        let mut left = vec![];
        for (kind, what, freed, there) in KINDS {
            for handle in there() {
                let maker = self.functions.get(&(kind, handle)).copied().unwrap_or_default();
                // MPI_Init makes the communicator with the parent.
                if maker.starts_with("MPI_Init") {
                    continue;
                }
                let name = name(kind, handle);
                let by = if maker.is_empty() { String::new() } else { format!(" from {maker}") };
                left.push(format!("{what}{name}{by} was never {freed}"));
            }
        }
        left.extend(self.ports.iter().map(|_| "a port was never closed; call MPI_Close_port".to_owned()));
        left
    }
}

/// The name that the program has given to an object.
fn name(kind: ObjectKind, handle: usize) -> String {
    let name = match kind {
        ObjectKind::Comm => comms::get_even_incomplete(handle).map(|comm| comm.name()),
        ObjectKind::Datatype => datatypes::name(handle),
        _ => return String::new(),
    };
    match name {
        Ok(name) if !name.is_empty() => format!(" '{}'", String::from_utf8_lossy(&name)),
        _ => String::new(),
    }
}
