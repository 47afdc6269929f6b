//! Attributes of communicators and datatypes (MPI 5.0 §7.7).
//!
//! Those of datatypes are kept here by handle; whoever frees or duplicates a datatype's handle calls [`type_freed`] and
//! [`type_duplicated`].

use crate::abi::*;
use crate::capi::args::{put, take};
use crate::capi::comms;
use crate::capi::types::{MPI_Comm, MPI_Datatype};
use crate::comm::attributes::{Attributes, Keyvals, Kind, OnCopy, OnDelete, Owner, Predefined};
use crate::comm::lock;
use crate::error::Result;
use crate::export;
use crate::sync::Mutex;
use core::ffi::{c_int, c_void};
use std::collections::HashMap;
use std::sync::{Arc, LazyLock, OnceLock};

static KEYVALS: LazyLock<Keyvals> = LazyLock::new(Keyvals::default);
static PREDEFINED: OnceLock<Predefined> = OnceLock::new();
static OF_TYPES: LazyLock<Mutex<HashMap<usize, Arc<Attributes>>>> = LazyLock::new(Mutex::default);

/// The predefined attributes, once there is a world.
fn predefined() -> Result<&'static Predefined> {
    let size = comms::world()?.size();
    let made = || {
        let predefined = Predefined::new(size as i32, appnum());
        predefined.set_last_used_code(super::error::last_used_code());
        predefined
    };
    Ok(PREDEFINED.get_or_init(made))
}

/// Which of the programs of the job this is: what the launcher says, else the first.
fn appnum() -> i32 {
    std::env::var("PERUSAL_APPNUM").ok().and_then(|number| number.parse().ok()).unwrap_or(0)
}

/// `code` is now the largest error code in use (MPI_LASTUSEDCODE).
pub fn set_last_used_code(code: c_int) {
    if let Some(predefined) = PREDEFINED.get() {
        predefined.set_last_used_code(code);
    }
}

pub(crate) fn owner(kind: Kind, handle: usize) -> Owner<'static> {
    Owner { keyvals: &KEYVALS, kind, handle }
}

/// Deletes the attributes of a communicator that is about to be freed; for MPI_COMM_SELF, what MPI_Finalize does first
/// (MPI 5.0 §11.2.4).
///
/// # Errors
/// The code of a delete callback that fails.
pub fn comm_freed(handle: MPI_Comm) -> Result<()> {
    comms::get(handle)?.attributes.delete_all(owner(Kind::Comm, handle))
}

/// Deletes the attributes of a datatype whose handle is about to be freed.
///
/// # Errors
/// The code of a delete callback that fails; the attribute and the older ones stay.
pub fn type_freed(handle: MPI_Datatype) -> Result<()> {
    let Some(attributes) = lock(&OF_TYPES).get(&handle).cloned() else { return Ok(()) };
    attributes.delete_all(owner(Kind::Type, handle))?;
    lock(&OF_TYPES).remove(&handle);
    Ok(())
}

/// Gives `new`, a duplicate of `old`, the attributes that their copy callbacks allow.
///
/// # Errors
/// The code of a copy callback that fails.
pub fn type_duplicated(old: MPI_Datatype, new: MPI_Datatype) -> Result<()> {
    let Some(attributes) = lock(&OF_TYPES).get(&old).cloned() else { return Ok(()) };
    attributes.copy_to(owner(Kind::Type, old), &of_type(new))
}

fn of_type(handle: MPI_Datatype) -> Arc<Attributes> {
    lock(&OF_TYPES).entry(handle).or_default().clone()
}

/// Makes a key from C's arguments.
///
/// # Safety
/// `copy` and `delete` are the ABI's constants or callbacks for objects of `kind`.
unsafe fn create(
    kind: Kind,
    copy: usize,
    delete: usize,
    keyval: *mut c_int,
    extra: *mut c_void,
) -> Result<()> {
    // SAFETY: the caller's promise.
    let (copy, delete) = unsafe { (OnCopy::from_address(copy), OnDelete::from_address(delete)) };
    // SAFETY: the user keeps callbacks callable while the key is in use (MPI 5.0 §7.7.2).
    let made = unsafe { KEYVALS.create(kind, copy, delete, extra) }?;
    // SAFETY: an output argument.
    unsafe { put(keyval, made) }
}

/// Frees a key and sets the caller's variable to MPI_KEYVAL_INVALID.
///
/// # Safety
/// `keyval` is NULL or may be read and written.
unsafe fn free(kind: Kind, keyval: *mut c_int) -> Result<()> {
    // SAFETY: the caller's promise.
    KEYVALS.free(kind, unsafe { take(keyval) }?)?;
    // SAFETY: as above.
    unsafe { put(keyval, MPI_KEYVAL_INVALID) }
}

/// Writes an attribute's value and whether there is one.
///
/// # Safety
/// `value` is the address of a pointer and `flag` of an int, or NULL.
unsafe fn give(found: Option<usize>, value: *mut c_void, flag: *mut c_int) -> Result<()> {
    // SAFETY: the caller's promise.
    unsafe { put(flag, c_int::from(found.is_some())) }?;
    match found {
        // SAFETY: as above.
        Some(found) => unsafe { put(value.cast::<usize>(), found) },
        None => Ok(()),
    }
}

fn set_comm(comm: MPI_Comm, keyval: c_int, value: *mut c_void) -> Result<()> {
    comms::get(comm)?.attributes.set(owner(Kind::Comm, comm), keyval, value as usize)
}

/// What MPI_Comm_get_attr finds: a predefined attribute, on any communicator, or a user's.
fn get_comm(comm: MPI_Comm, keyval: c_int) -> Result<Option<usize>> {
    let found = comms::get(comm)?;
    if let Some(address) = predefined()?.get(keyval) {
        return Ok(Some(address as usize));
    }
    found.attributes.get(owner(Kind::Comm, comm), keyval)
}

fn delete_comm(comm: MPI_Comm, keyval: c_int) -> Result<()> {
    comms::get(comm)?.attributes.delete(owner(Kind::Comm, comm), keyval)
}

export! {
    /// MPI 5.0 §7.7.2.
    fn MPI_Comm_create_keyval(
        comm_copy_attr_fn: usize,
        comm_delete_attr_fn: usize,
        comm_keyval: *mut c_int,
        extra_state: *mut c_void,
    ) raises(MPI_COMM_SELF) {
        // SAFETY: callbacks of the types that the standard asks for.
        unsafe { create(Kind::Comm, comm_copy_attr_fn, comm_delete_attr_fn, comm_keyval, extra_state) }
    }

    /// MPI 5.0 §7.7.2.
    fn MPI_Comm_free_keyval(comm_keyval: *mut c_int) raises(MPI_COMM_SELF) {
        // SAFETY: the address of a key.
        unsafe { free(Kind::Comm, comm_keyval) }
    }

    /// MPI 5.0 §7.7.2.
    fn MPI_Comm_set_attr(comm: MPI_Comm, comm_keyval: c_int, attribute_val: *mut c_void) raises(comm) {
        set_comm(comm, comm_keyval, attribute_val)
    }

    /// MPI 5.0 §7.7.2; the value of a predefined attribute is the address of an int (§9.1.2).
    fn MPI_Comm_get_attr(
        comm: MPI_Comm,
        comm_keyval: c_int,
        attribute_val: *mut c_void,
        flag: *mut c_int,
    ) raises(comm) {
        // SAFETY: output arguments.
        unsafe { give(get_comm(comm, comm_keyval)?, attribute_val, flag) }
    }

    /// MPI 5.0 §7.7.2.
    fn MPI_Comm_delete_attr(comm: MPI_Comm, comm_keyval: c_int) raises(comm) {
        delete_comm(comm, comm_keyval)
    }

    /// MPI 5.0 §16.1: the old name of MPI_Comm_create_keyval.
    fn MPI_Keyval_create(
        copy_fn: usize,
        delete_fn: usize,
        keyval: *mut c_int,
        extra_state: *mut c_void,
    ) raises(MPI_COMM_SELF) {
        // SAFETY: callbacks of the types that the standard asks for.
        unsafe { create(Kind::Comm, copy_fn, delete_fn, keyval, extra_state) }
    }

    /// MPI 5.0 §16.1: the old name of MPI_Comm_free_keyval.
    fn MPI_Keyval_free(keyval: *mut c_int) raises(MPI_COMM_SELF) {
        // SAFETY: the address of a key.
        unsafe { free(Kind::Comm, keyval) }
    }

    /// MPI 5.0 §16.1: the old name of MPI_Comm_set_attr.
    fn MPI_Attr_put(comm: MPI_Comm, keyval: c_int, attribute_val: *mut c_void) raises(comm) {
        set_comm(comm, keyval, attribute_val)
    }

    /// MPI 5.0 §16.1: the old name of MPI_Comm_get_attr.
    fn MPI_Attr_get(
        comm: MPI_Comm,
        keyval: c_int,
        attribute_val: *mut c_void,
        flag: *mut c_int,
    ) raises(comm) {
        // SAFETY: output arguments.
        unsafe { give(get_comm(comm, keyval)?, attribute_val, flag) }
    }

    /// MPI 5.0 §16.1: the old name of MPI_Comm_delete_attr.
    fn MPI_Attr_delete(comm: MPI_Comm, keyval: c_int) raises(comm) {
        delete_comm(comm, keyval)
    }

    /// MPI 5.0 §7.7.4.
    fn MPI_Type_create_keyval(
        type_copy_attr_fn: usize,
        type_delete_attr_fn: usize,
        type_keyval: *mut c_int,
        extra_state: *mut c_void,
    ) raises(MPI_COMM_SELF) {
        // SAFETY: callbacks of the types that the standard asks for.
        unsafe { create(Kind::Type, type_copy_attr_fn, type_delete_attr_fn, type_keyval, extra_state) }
    }

    /// MPI 5.0 §7.7.4.
    fn MPI_Type_free_keyval(type_keyval: *mut c_int) raises(MPI_COMM_SELF) {
        // SAFETY: the address of a key.
        unsafe { free(Kind::Type, type_keyval) }
    }

    /// MPI 5.0 §7.7.4.
    fn MPI_Type_set_attr(
        datatype: MPI_Datatype,
        type_keyval: c_int,
        attribute_val: *mut c_void,
    ) raises(MPI_COMM_SELF) {
        valid_type(datatype)?;
        of_type(datatype).set(owner(Kind::Type, datatype), type_keyval, attribute_val as usize)
    }

    /// MPI 5.0 §7.7.4.
    fn MPI_Type_get_attr(
        datatype: MPI_Datatype,
        type_keyval: c_int,
        attribute_val: *mut c_void,
        flag: *mut c_int,
    ) raises(MPI_COMM_SELF) {
        valid_type(datatype)?;
        let found = of_type(datatype).get(owner(Kind::Type, datatype), type_keyval)?;
        // SAFETY: output arguments.
        unsafe { give(found, attribute_val, flag) }
    }

    /// MPI 5.0 §7.7.4.
    fn MPI_Type_delete_attr(datatype: MPI_Datatype, type_keyval: c_int) raises(MPI_COMM_SELF) {
        valid_type(datatype)?;
        of_type(datatype).delete(owner(Kind::Type, datatype), type_keyval)
    }

    /// MPI 5.0 §7.7.3.
    fn MPI_Win_create_keyval(
        win_copy_attr_fn: usize,
        win_delete_attr_fn: usize,
        win_keyval: *mut c_int,
        extra_state: *mut c_void,
    ) raises(MPI_COMM_SELF) {
        // SAFETY: callbacks of the types that the standard asks for.
        unsafe { create(Kind::Win, win_copy_attr_fn, win_delete_attr_fn, win_keyval, extra_state) }
    }

    /// MPI 5.0 §7.7.3.
    fn MPI_Win_free_keyval(win_keyval: *mut c_int) raises(MPI_COMM_SELF) {
        // SAFETY: the address of a key.
        unsafe { free(Kind::Win, win_keyval) }
    }
}

/// Refuses what is no datatype.
fn valid_type(handle: MPI_Datatype) -> Result<()> {
    crate::capi::datatypes::any(handle).map(drop)
}
