//! What users cache on communicators, datatypes and windows, and the callbacks that copy and delete it (MPI 5.0 §7.7).
//!
//! One store serves the three kinds of objects. No lock is held while a callback runs, since callbacks may call MPI,
//! these functions included. A key outlives its freeing for as long as an attribute under it is cached anywhere.

use core::ffi::c_void;
use std::collections::HashMap;

use super::lock;
use crate::abi;
use crate::error::{Error, Result};
use crate::sync::{AtomicI32, Mutex, Ordering};

/// What kind of object a key is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyvalKind {
    /// MPI_Comm_create_keyval.
    Comm,
    /// MPI_Type_create_keyval.
    Type,
    /// MPI_Win_create_keyval.
    Win,
}

/// `int (object, keyval, extra_state, attribute_val_in, attribute_val_out, flag)`.
pub type CopyFn = unsafe extern "C" fn(usize, i32, *mut c_void, *mut c_void, *mut c_void, *mut i32) -> i32;
/// `int (object, keyval, attribute_val, extra_state)`.
pub type DeleteFn = unsafe extern "C" fn(usize, i32, *mut c_void, *mut c_void) -> i32;

/// What happens to an attribute when its object is duplicated.
#[derive(Clone, Copy, Debug)]
pub enum OnCopy {
    /// It is not copied (MPI_COMM_NULL_COPY_FN, 0 in the ABI).
    Nothing,
    /// The value is (MPI_COMM_DUP_FN, 1 in the ABI).
    Value,
    /// The callback decides.
    Call(CopyFn),
}

/// What happens to an attribute that is deleted or replaced.
#[derive(Clone, Copy, Debug)]
pub enum OnDelete {
    /// Nothing (MPI_COMM_NULL_DELETE_FN, 0 in the ABI).
    Nothing,
    /// The callback is called.
    Call(DeleteFn),
}

impl OnCopy {
    /// From the address that the ABI passes.
    ///
    /// # Safety
    /// An `address` that is neither 0 nor 1 is that of a [`CopyFn`].
    #[must_use]
    pub unsafe fn from_address(address: usize) -> Self {
        match address {
            abi::MPI_COMM_NULL_COPY_FN => Self::Nothing,
            abi::MPI_COMM_DUP_FN => Self::Value,
            // SAFETY: any other address is that of a `CopyFn` (MPI 5.0 §7.7.2),
            // and a function pointer is as wide as a `usize`.
            _ => Self::Call(unsafe { core::mem::transmute::<usize, CopyFn>(address) }),
        }
    }
}

impl OnDelete {
    /// From the address that the ABI passes.
    ///
    /// # Safety
    /// An `address` that is not 0 is that of a [`DeleteFn`].
    #[must_use]
    pub unsafe fn from_address(address: usize) -> Self {
        match address {
            abi::MPI_COMM_NULL_DELETE_FN => Self::Nothing,
            // SAFETY: any other address is that of a `DeleteFn` (MPI 5.0 §7.7.2),
            // and a function pointer is as wide as a `usize`.
            _ => Self::Call(unsafe { core::mem::transmute::<usize, DeleteFn>(address) }),
        }
    }
}

/// The keys of one rank.
#[derive(Debug, Default)]
pub struct Keyvals(Mutex<KeyTable>);

#[derive(Debug, Default)]
struct KeyTable {
    keys: HashMap<i32, KeyEntry>,
    made: i32,
}

#[derive(Clone, Copy, Debug)]
struct KeyEntry {
    kind: KeyvalKind,
    copy: OnCopy,
    delete: OnDelete,
    extra: usize,
    /// Attributes cached under it, on whatever object.
    uses: usize,
    freed: bool,
}

/// Keys that users make are larger than all predefined ones.
const FIRST_KEYVAL: i32 = 4096;

impl Keyvals {
    /// Makes a key for objects of `kind`; `extra` is handed to the callbacks.
    ///
    /// # Safety
    /// The callbacks can be called for as long as the key or an attribute under it exists.
    ///
    /// # Errors
    /// [`Error::NoMem`] after 2³¹ keys.
    pub unsafe fn create(
        &self,
        kind: KeyvalKind,
        copy: OnCopy,
        delete: OnDelete,
        extra: *mut c_void,
    ) -> Result<i32> {
        let mut table = lock(&self.0);
        let keyval = FIRST_KEYVAL
            .checked_add(table.made)
            .ok_or_else(|| Error::NoMem("no attribute key is left".into()))?;
        table.made += 1;
        let key = KeyEntry { kind, copy, delete, extra: extra as usize, uses: 0, freed: false };
        table.keys.insert(keyval, key);
        Ok(keyval)
    }

    /// Frees the key; attributes under it stay, and so do its callbacks for them.
    ///
    /// # Errors
    /// [`Error::Keyval`] if there is no such key of this kind, or it is predefined.
    pub fn free(&self, kind: KeyvalKind, keyval: i32) -> Result<()> {
        let mut table = lock(&self.0);
        let key = table.find(kind, keyval)?;
        key.freed = true;
        table.drop_unused(keyval);
        Ok(())
    }

    /// Returns the keys that have been made and not been freed.
    #[must_use]
    pub fn kept(&self) -> Vec<i32> {
        let table = lock(&self.0);
        let mut kept: Vec<i32> =
            table.keys.iter().filter(|(_, key)| !key.freed).map(|(key, _)| *key).collect();
        kept.sort_unstable();
        kept
    }

    /// The key's callbacks.
    fn get(&self, kind: KeyvalKind, keyval: i32) -> Result<KeyEntry> {
        lock(&self.0).find(kind, keyval).map(|key| *key)
    }

    fn acquire(&self, kind: KeyvalKind, keyval: i32) -> Result<()> {
        lock(&self.0).find(kind, keyval)?.uses += 1;
        Ok(())
    }

    fn release(&self, keyval: i32) {
        let mut table = lock(&self.0);
        if let Some(key) = table.keys.get_mut(&keyval) {
            key.uses -= 1;
        }
        table.drop_unused(keyval);
    }
}

impl KeyTable {
    fn find(&mut self, kind: KeyvalKind, keyval: i32) -> Result<&mut KeyEntry> {
        if keyval == abi::MPI_KEYVAL_INVALID {
            return Err(Error::Keyval("MPI_KEYVAL_INVALID"));
        }
        if (abi::MPI_TAG_UB..FIRST_KEYVAL).contains(&keyval) {
            return Err(Error::Keyval("predefined attributes cannot be changed"));
        }
        let key = self.keys.get_mut(&keyval).ok_or(Error::Keyval("no such key, or it has been freed"))?;
        if key.kind != kind {
            return Err(Error::Keyval("the key is for another kind of object"));
        }
        Ok(key)
    }

    fn drop_unused(&mut self, keyval: i32) {
        if self.keys.get(&keyval).is_some_and(|key| key.freed && key.uses == 0) {
            self.keys.remove(&keyval);
        }
    }
}

/// The attributes of one object, in the order in which they were last set.
/// Values are addresses or integers, as the user pleases.
#[derive(Debug, Default)]
pub struct Attributes(Mutex<Vec<(i32, usize)>>);

/// Which object of which kind: the first arguments of every callback.
#[derive(Clone, Copy, Debug)]
pub struct AttributeOwner<'a> {
    /// The keys of this rank.
    pub keyvals: &'a Keyvals,
    /// The object's kind.
    pub kind: KeyvalKind,
    /// The object's handle.
    pub handle: usize,
}

impl Attributes {
    /// The value under `keyval`, if one is cached.
    ///
    /// # Errors
    /// [`Error::Keyval`] if there is no such key of this kind.
    pub fn get(&self, owner: AttributeOwner<'_>, keyval: i32) -> Result<Option<usize>> {
        owner.keyvals.get(owner.kind, keyval)?;
        Ok(self.find(keyval))
    }

    /// Caches `value`; the delete callback is called with the one that it replaces.
    ///
    /// # Errors
    /// [`Error::Keyval`] if there is no such key of this kind;
    /// the callback's code if it fails, and the old value stays.
    pub fn set(&self, owner: AttributeOwner<'_>, keyval: i32, value: usize) -> Result<()> {
        let key = owner.keyvals.get(owner.kind, keyval)?;
        if let Some(old) = self.find(keyval) {
            key.deleted(owner.handle, keyval, old)?;
        }
        self.put(owner, keyval, value)
    }

    /// Deletes the attribute, if there is one.
    ///
    /// # Errors
    /// [`Error::Keyval`] if there is no such key of this kind;
    /// the callback's code if it fails, and the attribute stays.
    pub fn delete(&self, owner: AttributeOwner<'_>, keyval: i32) -> Result<()> {
        let key = owner.keyvals.get(owner.kind, keyval)?;
        let Some(value) = self.find(keyval) else { return Ok(()) };
        key.deleted(owner.handle, keyval, value)?;
        self.remove(owner.keyvals, keyval);
        Ok(())
    }

    /// Deletes every attribute, the youngest first (the order that MPI 5.0 §11.2.4 asks for on MPI_COMM_SELF).
    ///
    /// # Errors
    /// The code of the first callback that fails; that attribute and the older ones stay.
    pub fn delete_all(&self, owner: AttributeOwner<'_>) -> Result<()> {
        // Not one snapshot: a callback may add or delete others.
        loop {
            let Some(&(keyval, _)) = lock(&self.0).last() else { return Ok(()) };
            self.delete(owner, keyval)?;
        }
    }

    /// Gives `to`, the attributes of a duplicate, what the copy callbacks allow.
    ///
    /// # Errors
    /// The code of the first callback that fails.
    pub fn copy_to(&self, owner: AttributeOwner<'_>, to: &Self) -> Result<()> {
        let all = lock(&self.0).clone();
        for (keyval, value) in all {
            let key = owner.keyvals.get(owner.kind, keyval)?;
            if let Some(copy) = key.copied(owner.handle, keyval, value)? {
                to.put(owner, keyval, copy)?;
            }
        }
        Ok(())
    }

    /// Takes all of them, for the object that comes in the place of this one.
    #[must_use]
    pub fn take(&self) -> Self {
        Self(Mutex::new(core::mem::take(&mut *lock(&self.0))))
    }

    fn find(&self, keyval: i32) -> Option<usize> {
        lock(&self.0).iter().find(|entry| entry.0 == keyval).map(|entry| entry.1)
    }

    /// Makes the attribute the youngest, also where it replaces an older value of the key.
    fn put(&self, owner: AttributeOwner<'_>, keyval: i32, value: usize) -> Result<()> {
        let mut entries = lock(&self.0);
        match entries.iter().position(|entry| entry.0 == keyval) {
            Some(at) => _ = entries.remove(at),
            None => owner.keyvals.acquire(owner.kind, keyval)?,
        }
        entries.push((keyval, value));
        Ok(())
    }

    fn remove(&self, keyvals: &Keyvals, keyval: i32) {
        let mut entries = lock(&self.0);
        let before = entries.len();
        entries.retain(|entry| entry.0 != keyval);
        if entries.len() < before {
            keyvals.release(keyval);
        }
    }
}

impl KeyEntry {
    fn deleted(&self, handle: usize, keyval: i32, value: usize) -> Result<()> {
        let OnDelete::Call(callback) = self.delete else { return Ok(()) };
        // SAFETY: the program keeps the callback callable while an attribute under the key exists (MPI 5.0 §7.7.2), and
        // this is one.
        succeeded(unsafe { callback(handle, keyval, value as *mut c_void, self.extra as *mut c_void) })
    }

    fn copied(&self, handle: usize, keyval: i32, value: usize) -> Result<Option<usize>> {
        let callback = match self.copy {
            OnCopy::Nothing => return Ok(None),
            OnCopy::Value => return Ok(Some(value)),
            OnCopy::Call(callback) => callback,
        };
        let (mut copy, mut flag) = (0_usize, 0);
        let out = (&raw mut copy).cast::<c_void>();
        let extra = self.extra as *mut c_void;
        // SAFETY: the program keeps the callback callable while an attribute under the key exists (MPI 5.0 §7.7.2), and
        // this is one; `out` is the address of a pointer-sized word and `flag` an int, both alive here.
        succeeded(unsafe { callback(handle, keyval, extra, value as *mut c_void, out, &raw mut flag) })?;
        Ok((flag != 0).then_some(copy))
    }
}

fn succeeded(code: i32) -> Result<()> {
    if code == abi::MPI_SUCCESS { Ok(()) } else { Err(Error::Code(code)) }
}

/// The attributes that every communicator has from the start (MPI 5.0 §9.1.2); their addresses are what users get.
#[derive(Debug)]
pub struct Predefined {
    tag_ub: i32,
    host: i32,
    io: i32,
    wtime_is_global: i32,
    appnum: i32,
    universe_size: i32,
    survives: i32,
    last_used_code: AtomicI32,
}

/// Key of the attribute that says whether the job outlives its ranks (`mpi-ext.h`).
/// The standard's keys are below 4096, too.
pub const MPIX_FT: i32 = 1001;

impl Predefined {
    /// For program `appnum` of a job of `universe_size` ranks, which outlives them or does not.
    #[must_use]
    pub fn new(universe_size: i32, appnum: i32, survives: bool) -> Self {
        Self {
            tag_ub: crate::limits::TAG_UB,
            host: abi::MPI_PROC_NULL,
            io: abi::MPI_ANY_SOURCE,
            // Every rank reads the same monotonic clock of the one node.
            wtime_is_global: 1,
            appnum,
            universe_size,
            survives: i32::from(survives),
            last_used_code: AtomicI32::new(abi::MPI_ERR_LASTCODE),
        }
    }

    /// Address of the `int` that is the value of `keyval`, if that is a predefined key.
    #[must_use]
    pub fn get(&self, keyval: i32) -> Option<*const i32> {
        Some(match keyval {
            abi::MPI_TAG_UB => &raw const self.tag_ub,
            abi::MPI_HOST => &raw const self.host,
            abi::MPI_IO => &raw const self.io,
            abi::MPI_WTIME_IS_GLOBAL => &raw const self.wtime_is_global,
            abi::MPI_APPNUM => &raw const self.appnum,
            abi::MPI_UNIVERSE_SIZE => &raw const self.universe_size,
            MPIX_FT => &raw const self.survives,
            abi::MPI_LASTUSEDCODE => (&raw const self.last_used_code).cast(),
            _ => return None,
        })
    }

    /// Sets the largest error code in use (MPI_LASTUSEDCODE).
    pub fn set_last_used_code(&self, code: i32) {
        // Relaxed: a number of its own, that publishes nothing else.
        self.last_used_code.store(code, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::cell::RefCell;

    thread_local! {
        /// What the callbacks were called with: (object, value, extra).
        static DELETED: RefCell<Vec<(usize, usize, usize)>> = const { RefCell::new(Vec::new()) };
    }

    unsafe extern "C" fn note(object: usize, _: i32, value: *mut c_void, extra: *mut c_void) -> i32 {
        DELETED.with_borrow_mut(|list| list.push((object, value as usize, extra as usize)));
        abi::MPI_SUCCESS
    }
    unsafe extern "C" fn refuse(_: usize, _: i32, _: *mut c_void, _: *mut c_void) -> i32 {
        77
    }
    /// Copies even values, doubled; drops odd ones; fails on 13.
    unsafe extern "C" fn double_even(
        _: usize,
        _: i32,
        _: *mut c_void,
        value: *mut c_void,
        out: *mut c_void,
        flag: *mut i32,
    ) -> i32 {
        let value = value as usize;
        if value == 13 {
            return 78;
        }
        // SAFETY: the store passes the address of a word and of an int.
        unsafe {
            *out.cast::<usize>() = value * 2;
            *flag = i32::from(value.is_multiple_of(2));
        }
        abi::MPI_SUCCESS
    }

    fn key(keyvals: &Keyvals, copy: OnCopy, delete: OnDelete) -> i32 {
        // SAFETY: the callbacks are functions of this module.
        unsafe { keyvals.create(KeyvalKind::Comm, copy, delete, 5 as *mut c_void) }.unwrap()
    }

    fn owner(keyvals: &Keyvals, handle: usize) -> AttributeOwner<'_> {
        AttributeOwner { keyvals, kind: KeyvalKind::Comm, handle }
    }

    #[test]
    fn replacing_and_deleting_tell_the_callback_of_the_old_value() {
        DELETED.take();
        let (keyvals, attributes) = (Keyvals::default(), Attributes::default());
        let keyval = key(&keyvals, OnCopy::Nothing, OnDelete::Call(note));
        let object = owner(&keyvals, 9);
        attributes.set(object, keyval, 1).unwrap();
        attributes.set(object, keyval, 2).unwrap();
        assert_eq!(attributes.get(object, keyval).unwrap(), Some(2));
        attributes.delete(object, keyval).unwrap();
        attributes.delete(object, keyval).unwrap();
        assert_eq!(attributes.get(object, keyval).unwrap(), None);
        assert_eq!(DELETED.take(), [(9, 1, 5), (9, 2, 5)]);
    }

    #[test]
    fn a_refused_deletion_leaves_the_attribute() {
        let (keyvals, attributes) = (Keyvals::default(), Attributes::default());
        let keyval = key(&keyvals, OnCopy::Nothing, OnDelete::Call(refuse));
        let object = owner(&keyvals, 9);
        attributes.set(object, keyval, 1).unwrap();
        assert_eq!(attributes.set(object, keyval, 2), Err(Error::Code(77)));
        assert_eq!(attributes.delete_all(object), Err(Error::Code(77)));
        assert_eq!(attributes.get(object, keyval).unwrap(), Some(1));
    }

    #[test]
    fn all_are_deleted_youngest_first() {
        DELETED.take();
        let (keyvals, attributes) = (Keyvals::default(), Attributes::default());
        let object = owner(&keyvals, 3);
        for value in [10, 20, 30] {
            let keyval = key(&keyvals, OnCopy::Nothing, OnDelete::Call(note));
            attributes.set(object, keyval, value).unwrap();
        }
        attributes.delete_all(object).unwrap();
        assert_eq!(DELETED.take().iter().map(|deleted| deleted.1).collect::<Vec<_>>(), [30, 20, 10]);
    }

    #[test]
    fn an_attribute_that_is_set_again_is_the_youngest() {
        DELETED.take();
        let (keyvals, attributes) = (Keyvals::default(), Attributes::default());
        let object = owner(&keyvals, 3);
        let [first, second, third] = [(); 3].map(|()| key(&keyvals, OnCopy::Nothing, OnDelete::Call(note)));
        for (keyval, value) in [(first, 10), (second, 20), (third, 30), (first, 11)] {
            attributes.set(object, keyval, value).unwrap();
        }
        attributes.delete_all(object).unwrap();
        assert_eq!(DELETED.take().iter().map(|deleted| deleted.1).collect::<Vec<_>>(), [10, 11, 30, 20]);
    }

    #[test]
    fn a_duplicate_gets_what_the_copy_callbacks_say() {
        let (keyvals, attributes, copy) = (Keyvals::default(), Attributes::default(), Attributes::default());
        let object = owner(&keyvals, 9);
        let keys = [OnCopy::Nothing, OnCopy::Value, OnCopy::Call(double_even), OnCopy::Call(double_even)]
            .map(|on_copy| key(&keyvals, on_copy, OnDelete::Nothing));
        for (keyval, value) in keys.into_iter().zip([1, 2, 4, 5]) {
            attributes.set(object, keyval, value).unwrap();
        }
        attributes.copy_to(object, &copy).unwrap();
        assert_eq!(keys.map(|keyval| copy.get(object, keyval).unwrap()), [None, Some(2), Some(8), None]);
        attributes.set(object, keys[3], 13).unwrap();
        assert_eq!(attributes.copy_to(object, &Attributes::default()), Err(Error::Code(78)));
    }

    #[test]
    fn a_freed_key_lives_as_long_as_an_attribute_under_it() {
        DELETED.take();
        let (keyvals, attributes) = (Keyvals::default(), Attributes::default());
        let keyval = key(&keyvals, OnCopy::Nothing, OnDelete::Call(note));
        let object = owner(&keyvals, 9);
        attributes.set(object, keyval, 6).unwrap();
        keyvals.free(KeyvalKind::Comm, keyval).unwrap();
        attributes.delete(object, keyval).unwrap();
        assert_eq!(DELETED.take(), [(9, 6, 5)]);
        assert!(matches!(attributes.get(object, keyval), Err(Error::Keyval(_))));
        assert!(matches!(keyvals.free(KeyvalKind::Comm, keyval), Err(Error::Keyval(_))));
    }

    #[test]
    fn a_key_of_another_kind_or_a_predefined_one_is_refused() {
        let (keyvals, attributes) = (Keyvals::default(), Attributes::default());
        let keyval = key(&keyvals, OnCopy::Nothing, OnDelete::Nothing);
        let object = AttributeOwner { kind: KeyvalKind::Type, ..owner(&keyvals, 9) };
        for wrong in [keyval, abi::MPI_KEYVAL_INVALID, abi::MPI_TAG_UB, -5] {
            assert!(matches!(attributes.set(object, wrong, 1), Err(Error::Keyval(_))), "{wrong}");
        }
    }

    #[test]
    fn predefined_attributes_are_addresses_of_ints() {
        let predefined = Predefined::new(4, 1, true);
        predefined.set_last_used_code(99);
        // SAFETY: the addresses lie in `predefined`, which lives on.
        let value = |keyval| predefined.get(keyval).map(|address| unsafe { *address });
        assert_eq!(value(abi::MPI_UNIVERSE_SIZE), Some(4));
        assert_eq!(value(abi::MPI_APPNUM), Some(1));
        assert_eq!(value(MPIX_FT), Some(1));
        assert_eq!(value(abi::MPI_LASTUSEDCODE), Some(99));
        assert_eq!(value(abi::MPI_TAG_UB), Some(i32::MAX));
        assert_eq!(value(4096), None);
    }
}
