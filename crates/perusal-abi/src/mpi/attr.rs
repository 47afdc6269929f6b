//! Attributes of communicators, datatypes and windows (MPI 5.0 §7.7).
//!
//! Those of datatypes are kept here by handle; whoever frees or duplicates a datatype's handle calls [`type_freed`] and
//! [`type_duplicated`].

use crate::abi::*;
use crate::arguments::{InOut, Out};
use crate::check::{self, ObjectKind};
use crate::comm::attributes::{
    AttributeOwner, Attributes, KeyvalKind, Keyvals, OnCopy, OnDelete, Predefined,
};
use crate::comm::{Comm, lock};
use crate::error::{Error, Result};
use crate::shm::{APPNUM_VARIABLE, GIVEN_APPNUM_VARIABLE};
use crate::sync::Mutex;
use crate::types::{MPI_Comm, MPI_Datatype};
use crate::windows::{self, WindowObject};
use crate::{comms, datatypes};
use core::ffi::{c_int, c_void};
use core::ops::Deref;
use std::collections::HashMap;
use std::sync::{Arc, LazyLock, OnceLock};

static KEYVALS: LazyLock<Keyvals> = LazyLock::new(Keyvals::default);
static PREDEFINED: OnceLock<Predefined> = OnceLock::new();
static OF_TYPES: LazyLock<Mutex<HashMap<usize, Arc<Attributes>>>> = LazyLock::new(Mutex::default);

/// The predefined attributes, once there is a world.
fn predefined() -> Result<&'static Predefined> {
    let job = crate::process::engine()?.job();
    let made = || {
        let universe = i32::try_from(job.header().universe()).unwrap_or(i32::MAX);
        let predefined = Predefined::new(universe, appnum(), job.survives());
        predefined.set_last_used_code(super::error::last_used_code());
        predefined
    };
    Ok(PREDEFINED.get_or_init(made))
}

/// Which of the programs of the job, or of those spawned together, this is:
/// what the spawn says, or the launcher, else the first.
fn appnum() -> i32 {
    let number = |variable| std::env::var(variable).ok()?.parse().ok();
    number(GIVEN_APPNUM_VARIABLE).or_else(|| number(APPNUM_VARIABLE)).unwrap_or(0)
}

/// `code` is now the largest error code in use (MPI_LASTUSEDCODE).
pub fn set_last_used_code(code: c_int) {
    if let Some(predefined) = PREDEFINED.get() {
        predefined.set_last_used_code(code);
    }
}

pub(crate) fn owner(kind: KeyvalKind, handle: usize) -> AttributeOwner<'static> {
    AttributeOwner { keyvals: &KEYVALS, kind, handle }
}

/// Deletes the attributes of a communicator that is about to be freed; for MPI_COMM_SELF, what MPI_Finalize does first
/// (MPI 5.0 §11.2.4).
///
/// # Errors
/// The code of a delete callback that fails.
pub fn comm_freed(handle: MPI_Comm) -> Result<()> {
    comms::get(handle)?.attributes.delete_all(owner(KeyvalKind::Comm, handle))
}

/// Deletes the attributes of a datatype whose handle is about to be freed.
///
/// # Errors
/// The code of a delete callback that fails; the attribute and the older ones stay.
pub fn type_freed(handle: MPI_Datatype) -> Result<()> {
    let Some(attributes) = lock(&OF_TYPES).get(&handle).cloned() else { return Ok(()) };
    attributes.delete_all(owner(KeyvalKind::Type, handle))?;
    lock(&OF_TYPES).remove(&handle);
    Ok(())
}

/// Gives `new`, a duplicate of `old`, the attributes that their copy callbacks allow.
///
/// # Errors
/// The code of a copy callback that fails.
pub fn type_duplicated(old: MPI_Datatype, new: MPI_Datatype) -> Result<()> {
    let Some(attributes) = lock(&OF_TYPES).get(&old).cloned() else { return Ok(()) };
    attributes.copy_to(owner(KeyvalKind::Type, old), &of_type(new))
}

fn of_type(handle: MPI_Datatype) -> Arc<Attributes> {
    lock(&OF_TYPES).entry(handle).or_default().clone()
}

/// MPI_X_create_keyval.
///
/// # Safety
/// `copy` and `delete` are the ABI's constants or callbacks for objects of `kind`, which the program keeps callable
/// while the key is in use (MPI 5.0 §7.7.2).
pub unsafe fn create_keyval(
    kind: KeyvalKind,
    copy: usize,
    delete: usize,
    extra: *mut c_void,
) -> Result<c_int> {
    // SAFETY: `copy` and `delete` are the ABI's constants or callbacks that stay callable while the key is in use
    // (MPI 5.0 §7.7.2).
    let key =
        unsafe { KEYVALS.create(kind, OnCopy::from_address(copy), OnDelete::from_address(delete), extra) };
    if check::is_on() {
        let _ = key.as_ref().map(|key| check::made(ObjectKind::Keyval, *key as usize));
    }
    key
}

/// The keys that the program has made and not freed.
pub fn made() -> Vec<usize> {
    KEYVALS.kept().into_iter().map(|key| key as usize).collect()
}

/// MPI_X_free_keyval.
pub fn free_keyval(kind: KeyvalKind, keyval: InOut<'_, c_int>) -> Result<()> {
    KEYVALS.free(kind, keyval.get())?;
    keyval.set(MPI_KEYVAL_INVALID);
    Ok(())
}

/// The attributes of an object, and who owns them.
fn of(kind: KeyvalKind, handle: usize) -> Result<(Held, AttributeOwner<'static>)> {
    let held = match kind {
        KeyvalKind::Type => {
            datatypes::any(handle)?;
            datatypes::check_not_freed(handle)?;
            Held::Type(of_type(handle))
        }
        KeyvalKind::Comm => Held::Comm(comms::get_even_incomplete(handle)?),
        KeyvalKind::Win => Held::Win(windows::get(handle)?),
    };
    Ok((held, owner(kind, handle)))
}

/// Keeps an object's attributes alive.
enum Held {
    Comm(Arc<Comm>),
    Type(Arc<Attributes>),
    Win(Arc<WindowObject>),
}

impl Deref for Held {
    type Target = Attributes;
    fn deref(&self) -> &Attributes {
        match self {
            Self::Comm(comm) => &comm.attributes,
            Self::Type(attributes) => attributes,
            Self::Win(win) => &win.attributes,
        }
    }
}

/// MPI_X_set_attr.
pub fn set(kind: KeyvalKind, handle: usize, keyval: c_int, value: *mut c_void) -> Result<()> {
    let (attributes, owner) = of(kind, handle)?;
    attributes.set(owner, keyval, value as usize)
}

/// MPI_X_get_attr: a predefined attribute, which any communicator has and whose value is the address of an int
/// (§9.1.2), or any window (§12.2.6), or a user's.
pub fn get(
    kind: KeyvalKind,
    handle: usize,
    keyval: c_int,
    value: Option<Out<'_, usize>>,
    flag: Out<'_, c_int>,
) -> Result<()> {
    let (attributes, owner) = of(kind, handle)?;
    let given = match &attributes {
        Held::Comm(_) => predefined()?.get(keyval).map(|address| address as usize),
        Held::Win(win) => win.predefined(keyval)?,
        Held::Type(_) => None,
    };
    let found = match given {
        Some(value) => Some(value),
        None => attributes.get(owner, keyval)?,
    };
    flag.put(found.is_some())?;
    match (found, value) {
        (Some(found), Some(value)) => value.put(found),
        (Some(_), None) => Err(Error::Arg("an output argument is NULL")),
        (None, _) => Ok(()),
    }
}

/// MPI_X_delete_attr.
pub fn delete(kind: KeyvalKind, handle: usize, keyval: c_int) -> Result<()> {
    let (attributes, owner) = of(kind, handle)?;
    attributes.delete(owner, keyval)
}
