//! Datatypes and operations by handle.
//!
//! Predefined handles lead to a static table. What users make is a [`TypeObject`] in a handle table; the engine works
//! on the [`Datatype`] inside it, which lives on for as long as a message uses it,
//! however early the user frees the handle.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, LazyLock, PoisonError};

use crate::abi;
use crate::check;
use crate::datatype::op::Op;
use crate::datatype::{CONTIGUOUS_SIZES, Datatype, missing_optional};
use crate::handles::{HandleKind, HandleTable};
use crate::sync::{AtomicBool, Mutex, MutexGuard, Ordering};
use crate::{Error, Result};

/// What a datatype's handle names.
#[derive(Debug)]
pub struct TypeObject {
    /// The type itself.
    pub datatype: Datatype,
    committed: AtomicBool,
    name: Mutex<Option<Vec<u8>>>,
}

static TYPES: HandleTable<TypeObject> = HandleTable::new(HandleKind::Datatype);
static OPS: HandleTable<Op> = HandleTable::new(HandleKind::Op);
/// Names that users gave to predefined types.
static NAMES: LazyLock<Mutex<HashMap<usize, Vec<u8>>>> = LazyLock::new(Mutex::default);
/// Handles that operations hold ([`hold`]).
static HELD: Mutex<BTreeMap<usize, Held>> = Mutex::new(BTreeMap::new());
/// The unnamed predefined types (MPI 5.0 §19.1.5): asking twice gives the same handle.
static UNNAMED: LazyLock<Mutex<Vec<(Datatype, usize)>>> = LazyLock::new(Mutex::default);

const FIRST_PREDEFINED: usize = abi::MPI_DATATYPE_NULL;

/// Bytes of one element if `handle` is a predefined type whose elements lie one behind the other from displacement 0
/// on.
#[must_use]
#[inline]
pub fn contiguous_size(handle: usize) -> Option<usize> {
    match CONTIGUOUS_SIZES.get(handle.wrapping_sub(FIRST_PREDEFINED)) {
        None | Some(0) => None,
        Some(size) => Some(*size as usize),
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Every critical section here is one statement, so nothing can be half done.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

const UNCOMMITTED: Error = Error::Type("it has not been committed; call MPI_Type_commit");

fn invalid(handle: usize) -> Error {
    Error::Type(match handle {
        abi::MPI_DATATYPE_NULL => "MPI_DATATYPE_NULL",
        0 => "0 is no handle",
        _ if missing_optional(handle).is_some() => "this optional type is not supported",
        _ => "no such datatype, or it has been freed",
    })
}

/// The committed type of `handle`, for communication.
///
/// # Errors
/// [`Error::Type`] if there is none or it has not been committed.
#[inline]
pub fn datatype(handle: usize) -> Result<Datatype> {
    if let Some(ty) = Datatype::predefined_ref(handle) {
        return Ok(ty.clone());
    }
    let object = TYPES.get(handle).ok_or_else(|| invalid(handle))?;
    if object.is_committed() { Ok(object.datatype.clone()) } else { Err(UNCOMMITTED) }
}

/// [`datatype`] without counting a reference.
///
/// # Safety
/// Nobody frees the handle while the result is in use. MPI asks this of the program for every handle that it passes.
///
/// # Errors
/// As for [`datatype`].
#[inline]
pub unsafe fn find<'a>(handle: usize) -> Result<&'a Datatype> {
    if let Some(ty) = Datatype::predefined_ref(handle) {
        return Ok(ty);
    }
    // SAFETY: nobody frees the handle while the result is in use (argument rule 2),
    // so its place in the table stays filled.
    let object = unsafe { TYPES.peek(handle) }.ok_or_else(|| invalid(handle))?;
    if object.is_committed() { Ok(&object.datatype) } else { Err(UNCOMMITTED) }
}

/// The type of `handle`, committed or not, for making others of it and asking about it.
///
/// # Errors
/// [`Error::Type`] if there is none.
pub fn any(handle: usize) -> Result<Datatype> {
    if let Some(ty) = Datatype::predefined_ref(handle) {
        return Ok(ty.clone());
    }
    object(handle).map(|object| object.datatype.clone())
}

/// Something about the type of `handle`, committed or not. Predefined types are not even counted for it: programs ask
/// for each of their elements.
///
/// # Errors
/// [`Error::Type`] if there is none.
pub fn ask<R>(handle: usize, question: impl FnOnce(&Datatype) -> R) -> Result<R> {
    match Datatype::predefined_ref(handle) {
        Some(ty) => Ok(question(ty)),
        None => object(handle).map(|object| question(&object.datatype)),
    }
}

/// What a handle names that is not a named predefined one.
///
/// # Errors
/// [`Error::Type`] if there is none.
pub fn object(handle: usize) -> Result<Arc<TypeObject>> {
    TYPES.get(handle).ok_or_else(|| invalid(handle))
}

/// A handle for `datatype`: the ABI's for a named one, the one and only for an unnamed predefined one,
/// a new one otherwise.
///
/// # Errors
/// [`Error::NoMem`] if there are no more handles.
pub fn insert(datatype: Datatype, committed: bool) -> Result<usize> {
    if let Some(handle) = datatype.named() {
        return Ok(handle);
    }
    if !datatype.is_predefined() {
        return insert_new(datatype, committed);
    }
    let mut unnamed = lock(&UNNAMED);
    if let Some((_, handle)) = unnamed.iter().find(|(known, _)| known.made() == datatype.made()) {
        return Ok(*handle);
    }
    let handle = insert_new(datatype.clone(), true)?;
    unnamed.push((datatype, handle));
    Ok(handle)
}

fn insert_new(datatype: Datatype, committed: bool) -> Result<usize> {
    let object = TypeObject { datatype, committed: AtomicBool::new(committed), name: Mutex::new(None) };
    let handle = TYPES.insert(Arc::new(object))?;
    if check::is_on() {
        check::made(check::ObjectKind::Datatype, handle);
    }
    Ok(handle)
}

/// The handles of derived types.
pub fn made() -> Vec<usize> {
    TYPES.handles().into_iter().filter(|handle| freeable(*handle).is_ok()).collect()
}

/// The handles of users' operations.
pub fn ops_made() -> Vec<usize> {
    OPS.handles()
}

/// Takes the handle of a derived type away.
///
/// # Errors
/// [`Error::Type`] if there is none or it is predefined.
pub fn remove(handle: usize) -> Result<()> {
    check_derived(handle)?;
    let mut all = lock(&HELD);
    match all.get_mut(&handle) {
        Some(held) if held.freed => return Err(invalid(handle)),
        Some(held) => held.freed = true,
        None => {
            TYPES.remove(handle).ok_or_else(|| invalid(handle))?;
        }
    }
    Ok(())
}

/// Whether [`remove`] would accept this handle.
///
/// # Errors
/// As for [`remove`].
pub fn freeable(handle: usize) -> Result<()> {
    check_derived(handle)?;
    check_not_freed(handle)
}

fn check_derived(handle: usize) -> Result<()> {
    if any(handle)?.is_predefined() {
        return Err(Error::Type("a predefined datatype cannot be freed"));
    }
    Ok(())
}

/// Whether the program has not freed a type's handle, which an operation may hold all the same.
///
/// # Errors
/// [`Error::Type`] if it has.
pub fn check_not_freed(handle: usize) -> Result<()> {
    match lock(&HELD).get(&handle) {
        Some(held) if held.freed => Err(invalid(handle)),
        _ => Ok(()),
    }
}

/// How many operations hold a handle, and whether the program has freed it.
#[derive(Default)]
struct Held {
    operations: usize,
    freed: bool,
}

/// A hold on a derived type's handle: it names its type until this is dropped, even if the program frees it before.
#[derive(Debug)]
pub struct HeldType(usize);

/// Holds the handle of a derived type for an operation that calls a function of the program's with it (MPI 5.0 §5.1.9:
/// a type may be freed while an operation uses it). `None` for a predefined one, which stays.
pub fn hold(handle: usize) -> Option<HeldType> {
    // The usual ones need not even be looked for.
    if Datatype::predefined_ref(handle).is_some() {
        return None;
    }
    let mut all = lock(&HELD);
    if TYPES.get(handle)?.datatype.is_predefined() {
        return None;
    }
    all.entry(handle).or_default().operations += 1;
    Some(HeldType(handle))
}

impl Drop for HeldType {
    fn drop(&mut self) {
        let mut all = lock(&HELD);
        let Some(held) = all.get_mut(&self.0) else { return };
        held.operations -= 1;
        if held.operations == 0 && all.remove(&self.0).is_some_and(|held| held.freed) {
            TYPES.remove(self.0);
        }
    }
}

impl TypeObject {
    /// Whether it may be used in communication.
    pub fn is_committed(&self) -> bool {
        // Relaxed: a flag of its own; the type was complete before its handle was published.
        self.committed.load(Ordering::Relaxed)
    }

    /// MPI_Type_commit.
    pub fn commit(&self) {
        // Relaxed: as in `is_committed`.
        self.committed.store(true, Ordering::Relaxed);
    }
}

/// MPI_Type_get_name; the names of missing optional types are known, too.
///
/// # Errors
/// [`Error::Type`] if `handle` names no type.
pub fn name(handle: usize) -> Result<Vec<u8>> {
    if let Some(name) = lock(&NAMES).get(&handle) {
        return Ok(name.clone());
    }
    if handle == abi::MPI_DATATYPE_NULL {
        return Ok(b"MPI_DATATYPE_NULL".to_vec());
    }
    if let Some(name) = missing_optional(handle) {
        return Ok(name.into());
    }
    match Datatype::predefined_ref(handle) {
        Some(ty) => Ok(ty.initial_name().into()),
        None => Ok(lock(&object(handle)?.name).clone().unwrap_or_default()),
    }
}

/// MPI_Type_set_name; what does not fit into MPI_MAX_OBJECT_NAME is cut off.
///
/// # Errors
/// [`Error::Type`] if `handle` names no type.
pub fn set_name(handle: usize, name: &[u8]) -> Result<()> {
    let name = name[..name.len().min(abi::MPI_MAX_OBJECT_NAME as usize - 1)].to_vec();
    if any(handle)?.named().is_some() {
        lock(&NAMES).insert(handle, name);
    } else {
        *lock(&object(handle)?.name) = Some(name);
    }
    Ok(())
}

/// The operation of `handle`.
///
/// # Errors
/// [`Error::Op`] if there is none.
pub fn op(handle: usize) -> Result<Op> {
    Op::predefined(handle).or_else(|| OPS.get(handle).map(|op| (*op).clone())).ok_or(Error::Op(
        match handle {
            abi::MPI_OP_NULL => "MPI_OP_NULL",
            0 => "0 is no handle",
            _ => "no such operation, or it has been freed",
        },
    ))
}

/// A handle for a user's operation.
///
/// # Errors
/// [`Error::NoMem`] if there are no more handles.
pub fn insert_op(op: Op) -> Result<usize> {
    let handle = OPS.insert(Arc::new(op))?;
    if check::is_on() {
        check::made(check::ObjectKind::Op, handle);
    }
    Ok(handle)
}

/// Takes the handle of a user's operation away.
///
/// # Errors
/// [`Error::Op`] if there is none or it is predefined.
pub fn remove_op(handle: usize) -> Result<()> {
    if op(handle)?.is_predefined() {
        return Err(Error::Op("a predefined operation cannot be freed"));
    }
    OPS.remove(handle).map(drop).ok_or(Error::Op("it has been freed"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::datatype::Basic;

    #[test]
    fn the_fast_size_is_that_of_the_type_or_none() {
        for handle in 0..5000 {
            let ty = Datatype::predefined(handle).filter(Datatype::is_contiguous);
            assert_eq!(contiguous_size(handle), ty.as_ref().map(Datatype::size), "{handle}");
            assert!(ty.is_none_or(|ty| ty.true_lb() == 0));
        }
        assert!(Basic::all().all(|basic| contiguous_size(basic.handle()).is_some()));
    }

    #[test]
    fn a_type_is_of_use_once_committed_and_until_freed() {
        let int = datatype(abi::MPI_INT).unwrap();
        let handle = insert(Datatype::contiguous(2, &int).unwrap(), false).unwrap();
        assert_eq!(datatype(handle).map(|_| ()), Err(UNCOMMITTED));
        assert_eq!(any(handle).unwrap().size(), 8);
        object(handle).unwrap().commit();
        let held = datatype(handle).unwrap();
        // SAFETY: the handle is not freed meanwhile.
        assert!(unsafe { find(handle) }.unwrap().same(&held));
        remove(handle).unwrap();
        assert_eq!(held.size(), 8);
        assert!(matches!(any(handle), Err(Error::Type(_))));
        assert!(matches!(remove(abi::MPI_INT), Err(Error::Type(_))));
    }

    #[test]
    fn an_unnamed_predefined_type_has_one_handle() {
        let ask = |precision| insert(Datatype::f90_real(Some(precision), None).unwrap(), false).unwrap();
        assert_eq!(ask(10), ask(10));
        assert_ne!(ask(10), ask(11));
        assert_eq!(any(ask(10)).unwrap().made().combiner(), abi::MPI_COMBINER_F90_REAL);
        assert!(matches!(remove(ask(10)), Err(Error::Type(_))));
        assert!(datatype(ask(11)).is_ok(), "it need not be committed");
    }

    #[test]
    fn names_can_be_changed_and_are_cut_to_the_abis_limit() {
        assert_eq!(name(abi::MPI_LONG_LONG).unwrap(), b"MPI_LONG_LONG_INT");
        set_name(abi::MPI_UINT8_T, &[b'x'; 400]).unwrap();
        assert_eq!(name(abi::MPI_UINT8_T).unwrap().len(), 127);
        assert_eq!(name(abi::MPI_REAL2).unwrap(), b"MPI_REAL2");
        assert!(set_name(abi::MPI_REAL2, b"x").is_err());
    }
}
