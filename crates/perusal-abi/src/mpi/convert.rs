//! Handles as Fortran integers (MPI 5.0 §20.3). Every handle fits into a positive `int`, so both ways are the identity.

use crate::capi::types::*;
use crate::export;
use core::ffi::c_int;

const fn to_int(handle: usize) -> c_int {
    handle as c_int
}

/// An `int` that never was a handle gives a value that no table knows.
const fn from_int(number: c_int) -> usize {
    number as isize as usize
}

export! {
    /// MPI 5.0 §20.3.
    fn MPI_Comm_toint(comm: MPI_Comm) -> c_int { to_int(comm) }
    /// MPI 5.0 §20.3.
    fn MPI_Comm_fromint(comm: c_int) -> MPI_Comm { from_int(comm) }
    /// MPI 5.0 §20.3.
    fn MPI_Errhandler_toint(errhandler: MPI_Errhandler) -> c_int { to_int(errhandler) }
    /// MPI 5.0 §20.3.
    fn MPI_Errhandler_fromint(errhandler: c_int) -> MPI_Errhandler { from_int(errhandler) }
    /// MPI 5.0 §20.3.
    fn MPI_File_toint(file: MPI_File) -> c_int { to_int(file) }
    /// MPI 5.0 §20.3.
    fn MPI_File_fromint(file: c_int) -> MPI_File { from_int(file) }
    /// MPI 5.0 §20.3.
    fn MPI_Group_toint(group: MPI_Group) -> c_int { to_int(group) }
    /// MPI 5.0 §20.3.
    fn MPI_Group_fromint(group: c_int) -> MPI_Group { from_int(group) }
    /// MPI 5.0 §20.3.
    fn MPI_Info_toint(info: MPI_Info) -> c_int { to_int(info) }
    /// MPI 5.0 §20.3.
    fn MPI_Info_fromint(info: c_int) -> MPI_Info { from_int(info) }
    /// MPI 5.0 §20.3.
    fn MPI_Message_toint(message: MPI_Message) -> c_int { to_int(message) }
    /// MPI 5.0 §20.3.
    fn MPI_Message_fromint(message: c_int) -> MPI_Message { from_int(message) }
    /// MPI 5.0 §20.3.
    fn MPI_Op_toint(op: MPI_Op) -> c_int { to_int(op) }
    /// MPI 5.0 §20.3.
    fn MPI_Op_fromint(op: c_int) -> MPI_Op { from_int(op) }
    /// MPI 5.0 §20.3.
    fn MPI_Request_toint(request: MPI_Request) -> c_int { to_int(request) }
    /// MPI 5.0 §20.3.
    fn MPI_Request_fromint(request: c_int) -> MPI_Request { from_int(request) }
    /// MPI 5.0 §20.3.
    fn MPI_Session_toint(session: MPI_Session) -> c_int { to_int(session) }
    /// MPI 5.0 §20.3.
    fn MPI_Session_fromint(session: c_int) -> MPI_Session { from_int(session) }
    /// MPI 5.0 §20.3.
    fn MPI_Type_toint(datatype: MPI_Datatype) -> c_int { to_int(datatype) }
    /// MPI 5.0 §20.3.
    fn MPI_Type_fromint(datatype: c_int) -> MPI_Datatype { from_int(datatype) }
    /// MPI 5.0 §20.3.
    fn MPI_Win_toint(win: MPI_Win) -> c_int { to_int(win) }
    /// MPI 5.0 §20.3.
    fn MPI_Win_fromint(win: c_int) -> MPI_Win { from_int(win) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::handles::{END, FIRST};

    #[test]
    fn every_handle_survives_the_way_through_an_int() {
        for handle in [1, crate::abi::MPI_COMM_WORLD, FIRST, END - 1] {
            assert!(to_int(handle) > 0);
            assert_eq!(from_int(to_int(handle)), handle);
        }
    }
}
